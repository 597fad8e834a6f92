/*
 * results/cmd/series.c - fresh processes of one or several builds, in turns.
 *
 * A series is known by what it runs: its name is a hash of the programs' bytes
 * and arguments, and a number.  So the same command goes on with a series that
 * lacks processes, and begins a new one after a complete one.
 */
#include "results/cmd/series.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "results/process/process.h"

/* ------------------------------------------------------------ identity -- */

/* " 2/7" behind the name of a shard's series, "" of others. */
static void shard_suffix(const struct series *x, char out[RES_SHARD_TEXT])
{
	*out = 0;
	if (x->shard && x->shard->count) {
		char text[RES_SHARD_TEXT];
		res_shard_print(x->shard, NULL, text);
		snprintf(out, RES_SHARD_TEXT, " %.*s", RES_SHARD_TEXT - 2, text);
	}
}

static bool add_program(struct buf *b, const char *path, struct err *e)
{
	struct buf bytes = { 0 };
	char identity[RES_IDENTITY];

	if (!file_read(path, 0, &bytes, e))
		return err_wrap(e, "the program to run");
	res_identity(bytes.data, bytes.len, identity);
	buf_printf(b, "%s\n", identity);
	buf_fini(&bytes);
	return true;
}

/* By the program's bytes, or by what `side->key` says they come from. */
static bool series_key(const struct series *x, char out[RES_IDENTITY],
		       struct err *e)
{
	struct buf b = { 0 };
	bool ok = true;

	buf_printf(&b, "%s\n", x->label ? x->label : "");
	for (size_t i = 0; ok && i < x->n_sides; i++) {
		const struct series_side *side = &x->side[i];
		buf_printf(&b, "%s\n", side->name);
		if (side->key)
			buf_printf(&b, "%s\n", side->key);
		else
			ok = add_program(&b, side->program, e);
	}
	for (const char *const *a = x->argv + 1; *a; a++)
		buf_printf(&b, "%s\n", *a);
	res_identity(b.data, b.len, out);
	buf_fini(&b);
	return ok;
}

static bool count_done(struct series *x, size_t side, size_t *n, struct err *e)
{
	int64_t count;

	if (!res_query_int(x->s->db, &count, e, "SELECT count(*) FROM runs "
			   "WHERE series = ? AND side = ? AND "
			   "state = 'complete'", "tt", x->name,
			   x->side[side].name))
		return false;
	*n = (size_t)count;
	return true;
}

static bool count_all(struct series *x, size_t *n, struct err *e)
{
	size_t one;

	*n = 0;
	for (size_t i = 0; i < x->n_sides; i++) {
		if (!count_done(x, i, &one, e))
			return false;
		*n += one;
	}
	return true;
}

/* The newest of this key, if it lacks processes; else the next number. */
static bool choose_name(struct series *x, size_t *done, struct err *e)
{
	char key[RES_IDENTITY], suffix[RES_SHARD_TEXT];
	int64_t number;

	shard_suffix(x, suffix);
	if (!series_key(x, key, e) ||
	    !res_query_int(x->s->db, &number, e, "SELECT max(CAST(substr("
			   "series, length(?1) + 2) AS INTEGER)) FROM runs "
			   "WHERE substr(series, 1, length(?1) + 1) = ?1 || "
			   "'.' AND (CASE WHEN instr(series, ' ') THEN substr("
			   "series, instr(series, ' ')) ELSE '' END) = ?2",
			   "tt", key, suffix))
		return false;
	snprintf(x->name, sizeof(x->name), "%s.%lld%s", key,
		 (long long)(number ? number : 1), suffix);
	if (!count_all(x, done, e))
		return false;
	if (*done >= x->processes * x->n_sides && number && !x->recalls) {
		snprintf(x->name, sizeof(x->name), "%s.%lld%s", key,
			 (long long)number + 1, suffix);
		*done = 0;
	}
	return true;
}

/* ----------------------------------------------------------- processes -- */

static bool run_process(const struct series *x, const struct series_side *side,
			const char *db, const char *log, struct err *e)
{
	const char *const *argv = side->argv ? side->argv : x->argv;
	char shard[RES_SHARD_TEXT];
	struct buf set[4] = { 0 };
	VEC(const char *) words = { 0 };

	buf_printf(&set[0], "T0_DB=%s", db);
	buf_printf(&set[1], "%s=%s", RES_SERIES, x->name);
	buf_printf(&set[2], "%s=%s", RES_SIDE, side->name);
	/* Not what this process was told: a series may be a shard's or not. */
	shard_suffix(x, shard);
	buf_printf(&set[3], "%s=%s", RES_SHARD, *shard ? shard + 1 : "");
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		vec_push(&words, set[i].data);
	for (const char *const *s = side->set; s && *s; s++)
		vec_push(&words, *s);
	struct process p = { side->program, argv, side->dir, words.v, words.n,
			     log, x->s->cmd.stop };
	bool ok = process_run(&p, e);
	vec_fini(&words);
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		buf_fini(&set[i]);
	return ok;
}

/* What a build with another schema wrote, as runs of this series. */
static bool take_rows(struct series *x, const struct series_side *side,
		      const char *db, struct err *e)
{
	struct res_db *from = res_open(db, RES_WRITE, e);
	bool ok = from && res_exec(from, e, "UPDATE runs SET series = ?, "
				   "side = ?", "tt", x->name, side->name);

	res_close(from);
	return ok && show_merge(x->s->db, db, e);
}

static bool run_one(struct series *x, const struct series_side *side,
		    const char *dir, struct err *e)
{
	struct buf log = { 0 }, db = { 0 };

	buf_printf(&log, "%s/log", dir);
	if (x->foreign)
		buf_printf(&db, "%s/process.db", dir);
	else
		buf_adds(&db, x->db_path);
	bool ok = run_process(x, side, db.data, log.data, e) &&
		  (!x->foreign || take_rows(x, side, db.data, e));
	unlink(log.data);
	if (x->foreign)
		res_remove(db.data);
	buf_fini(&log);
	buf_fini(&db);
	return ok;
}

/* ---------------------------------------------------------------- turns -- */

/* Forwards and backwards: A B B A, A B C C B A. */
static size_t side_at(const struct series *x, size_t i)
{
	size_t round = i / x->n_sides, k = i % x->n_sides;

	return round % 2 ? x->n_sides - 1 - k : k;
}

static bool check_stored(struct series *x, size_t wanted, struct err *e)
{
	size_t now;

	return count_all(x, &now, e) &&
	       (now >= wanted ||
		err_set(e, ERR_INPUT, "%s stored no run; wanted a command that "
			"measures into a database, such as t0-probe latency, "
			"without --db", x->argv[0]));
}

static bool run_turns(struct series *x, size_t done, const char *dir,
		      struct err *e)
{
	const _Atomic int *stop = cmd_catch_signals(&x->s->cmd);
	size_t all = x->processes * x->n_sides;
	struct progress bar;
	bool ok = true;

	progress_init(&bar, "processes", all, x->s->cmd.quiet);
	progress_step(&bar, done);
	for (size_t i = done; ok && i < all; i++) {
		x->failed = &x->side[side_at(x, i)];
		ok = run_one(x, x->failed, dir, e) &&
		     check_stored(x, i + 1, e);
		if (*stop || (x->until_ns && time_mono_ns() > x->until_ns)) {
			x->failed = NULL;
			ok = err_set(e, ERR_STOPPED, "the same command goes on "
				     "with the processes that ended");
		}
		progress_step(&bar, 1);
	}
	if (ok)
		x->failed = NULL;
	progress_fini(&bar);
	return ok;
}

bool series_processes(const struct show *s, size_t *n, struct err *e)
{
	if (s->o.processes < 0)
		return err_set(e, ERR_USAGE, "--processes %d: wanted at least "
			       "1, and %d to prove much", s->o.processes,
			       GATE_PROCESSES);
	*n = s->o.processes ? (size_t)s->o.processes : GATE_PROCESSES;
	return true;
}

bool series_run(struct series *x, struct err *e)
{
	struct buf dir = { 0 };
	size_t done = 0;
	char *path = realpath(res_db_path(x->s->db), NULL);

	x->db_path = path;
	bool ok = path && choose_name(x, &done, e) &&
		  scratch_folder(&dir, NULL, "series", e);
	if (ok) {
		if (done)
			cmd_remark(&x->s->cmd, "going on with a series that "
				   "has %zu of %zu processes", done,
				   x->processes * x->n_sides);
		ok = run_turns(x, done, dir.data, e);
		rmdir(dir.data);
	}
	buf_fini(&dir);
	free(path);
	return ok;
}

bool series_first_run(struct series *x, size_t side, int64_t *run,
		      struct err *e)
{
	return res_query_int(x->s->db, run, e, "SELECT min(id) FROM runs WHERE "
			     "series = ? AND side = ? AND state = 'complete'",
			     "tt", x->name, x->side[side].name);
}
