/*
 * results/db/runs.c - the life of a run: begin, take over, finish, find.
 */
#include "results/db/res.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Printed so that a shell reads the same words back. */
static void quote_word(struct buf *b, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_=+,./:@%^";

	if (*word && strspn(word, plain) == strlen(word)) {
		buf_adds(b, word);
		return;
	}
	buf_addc(b, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_adds(b, "'\\''");
		else
			buf_addc(b, *word);
	}
	buf_addc(b, '\'');
}

static struct buf command_line(const struct res_start *s)
{
	struct buf b = { 0 };

	for (int i = 0; i < s->argc; i++) {
		if (i)
			buf_addc(&b, ' ');
		quote_word(&b, s->argv[i]);
	}
	return b;
}

bool res_uuid(char out[33], struct err *e)
{
	unsigned char r[16];

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return err_set(e, ERR_IO, "no random numbers from the kernel");
	for (size_t i = 0; i < sizeof(r); i++)
		snprintf(out + 2 * i, 3, "%02x", r[i]);
	return true;
}

static struct buf inputs_of(const struct res_start *s)
{
	struct buf b = { 0 };

	res_shard_inputs(&b, s->inputs ? s->inputs : "{}", s->shard, s->work);
	return b;
}

/* How busy the host was: processes that ran or wanted to, of the last minute. */
static void conditions_now(char *out, size_t size_bytes)
{
	double load;

	if (getloadavg(&load, 1) == 1)
		snprintf(out, size_bytes, "{\"load\":%.2f}", load);
	else
		snprintf(out, size_bytes, "{}");
}

bool res_run_begin(struct res_db *db, const struct res_start *s, int64_t *run,
		   struct err *e)
{
	char uuid[33], owner[160], conditions[32];

	if (!res_uuid(uuid, e) || !res_write_begin(db, e))
		return false;
	res_owner_self(owner, sizeof(owner));
	conditions_now(conditions, sizeof(conditions));
	struct buf argv = command_line(s), inputs = inputs_of(s);
	bool ok = res_exec(db, e,
		"INSERT INTO runs(uuid, host, device, build, tool, argv, "
		"inputs, conditions, seed, start_ns, state, owner, series, "
		"side) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, ?, ?)",
		"tkkkssttiittt", uuid, s->host, s->device, s->build, s->tool,
		argv.data, inputs.data, conditions, (int64_t)s->seed,
		(int64_t)time_wall_ns(), owner, getenv(RES_SERIES),
		getenv(RES_SIDE));
	buf_fini(&argv);
	buf_fini(&inputs);
	int64_t id = sqlite3_last_insert_rowid(db->sq);
	db->whole = ok && s->whole;
	if (!res_write_end(db, ok, e) || !res_batch_commit(db, e))
		return err_wrap(e, "beginning a run");
	*run = id;
	return true;
}

static bool take_over(struct res_db *db, const struct res_start *s,
		      int64_t *run, struct err *e)
{
	struct buf inputs = inputs_of(s);
	char owner[160];

	bool ok = res_query_int(db, run, e,
			   "SELECT id FROM (SELECT id, state FROM runs "
			   "WHERE tool = ? AND host = ? AND device IS ? "
			   "AND build = ? AND inputs = ? "
			   "AND series IS ? AND side IS ? "
			   "AND (state <> 'running' OR NOT t0_alive(owner)) "
			   "ORDER BY id DESC LIMIT 1) "
			   "WHERE state IN('running', 'interrupted')",
			   "skkkstt", s->tool, s->host, s->device, s->build,
			   inputs.data, getenv(RES_SERIES), getenv(RES_SIDE));
	buf_fini(&inputs);
	if (!ok || !*run)
		return ok;
	res_owner_self(owner, sizeof(owner));
	return res_exec(db, e,
			"UPDATE runs SET state = 'running', end_ns = NULL, "
			"exit_code = NULL, reason = '', owner = ? "
			"WHERE id = ?", "ti", owner, *run);
}

bool res_run_resume(struct res_db *db, const struct res_start *s, int64_t *run,
		    struct err *e)
{
	/* One transaction: two tools must not take the same run. */
	if (!res_write_begin(db, e))
		return false;
	bool ok = take_over(db, s, run, e);
	return (res_write_end(db, ok, e) && res_batch_commit(db, e)) ||
	       err_wrap(e, "looking for a run to go on with");
}

static bool end_run(struct res_db *db, int64_t run, enum res_state state,
		   int exit_code, const char *reason, struct err *e)
{
	if (!res_exec(db, e,
		      "UPDATE runs SET state = ?, end_ns = ?, exit_code = ?, "
		      "reason = ?, owner = '' "
		      "WHERE id = ? AND state = 'running'",
		      "tiisi", res_state_name(state), (int64_t)time_wall_ns(),
		      (int64_t)exit_code, reason, run))
		return false;
	return sqlite3_changes(db->sq) == 1 ||
	       err_set(e, ERR_USAGE, "%s: there is no running run %lld",
		       db->path, (long long)run);
}

bool res_run_finish(struct res_db *db, int64_t run, enum res_state state,
		    int exit_code, const char *reason, struct err *e)
{
	if (!res_write_begin(db, e))
		return false;
	db->whole = false;
	bool ok = end_run(db, run, state, exit_code, reason, e);
	return (res_write_end(db, ok, e) && res_batch_commit(db, e)) ||
	       err_wrap(e, "ending run %lld", (long long)run);
}

bool res_run_previous(struct res_db *db, int64_t run, int64_t *previous,
		      struct err *e)
{
	return res_query_int(
		db, previous, e,
		"SELECT max(r.id) FROM runs me LEFT JOIN devices m "
		"ON m.id = me.device JOIN runs r ON r.tool = me.tool "
		"AND r.inputs = me.inputs AND r.id < me.id "
		"AND r.state = 'complete' LEFT JOIN devices d "
		"ON d.id = r.device WHERE me.id = ? AND d.name IS m.name "
		"AND d.gfx IS m.gfx AND d.uid IS m.uid "
		"AND d.origin IS m.origin",
		"i", run);
}
