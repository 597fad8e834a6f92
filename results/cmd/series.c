/*
 * results/cmd/series.c - fresh processes of one or several builds, in turns.
 *
 * A series is known by what it runs: its name is a hash of the programs' bytes
 * and arguments, and a number.  So the same command goes on with a series that
 * lacks processes, and begins a new one after a complete one.
 */
#include "results/cmd/series.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ------------------------------------------------------------ identity -- */

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
	for (char *const *a = x->argv + 1; *a; a++)
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
	char key[RES_IDENTITY];
	int64_t number;

	if (!series_key(x, key, e) ||
	    !res_query_int(x->s->db, &number, e, "SELECT max(CAST(substr("
			   "series, length(?1) + 2) AS INTEGER)) FROM runs "
			   "WHERE substr(series, 1, length(?1) + 1) = ?1 || "
			   "'.'", "t", key))
		return false;
	snprintf(x->name, sizeof(x->name), "%s.%lld", key,
		 (long long)(number ? number : 1));
	if (!count_all(x, done, e))
		return false;
	if (*done >= x->processes * x->n_sides && number) {
		snprintf(x->name, sizeof(x->name), "%s.%lld", key,
			 (long long)number + 1);
		*done = 0;
	}
	return true;
}

/* ----------------------------------------------------------- processes -- */

/* The environment with these set; the strings are `set`'s. free() it. */
static char **environment(char *const *set, size_t n)
{
	size_t have = 0, k = 0;

	while (environ[have])
		have++;
	char **env = xcalloc(have + n + 1, sizeof(*env));
	for (size_t i = 0; i < have; i++) {
		bool replaced = false;
		for (size_t j = 0; j < n; j++) {
			size_t len = strcspn(set[j], "=") + 1;
			replaced |= !strncmp(environ[i], set[j], len);
		}
		if (!replaced)
			env[k++] = environ[i];
	}
	memcpy(env + k, set, n * sizeof(*env));
	return env;
}

static bool spawn(const struct series *x, const struct series_side *side,
		  const char *db, const char *log, pid_t *child, struct err *e)
{
	posix_spawn_file_actions_t files;
	struct buf set[3] = { 0 };
	char *argv0 = x->argv[0];

	buf_printf(&set[0], "T0_DB=%s", db);
	buf_printf(&set[1], "%s=%s", RES_SERIES, x->name);
	buf_printf(&set[2], "%s=%s", RES_SIDE, side->name);
	char *const words[] = { set[0].data, set[1].data, set[2].data };
	char **env = environment(words, ARRAY_SIZE(words));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_TRUNC |
					 O_CREAT, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	if (side->dir)
		posix_spawn_file_actions_addchdir_np(&files, side->dir);
	x->argv[0] = (char *)side->program;
	int failed = posix_spawn(child, side->program, &files, NULL, x->argv,
				 env);
	x->argv[0] = argv0;
	posix_spawn_file_actions_destroy(&files);
	free(env);
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		buf_fini(&set[i]);
	return !failed ||
	       err_sys(e, ERR_IO, failed, "%s: cannot run", side->program);
}

/* The last lines of what it said. */
static void tail_of(const char *log, char out[256])
{
	struct buf text = { 0 };

	*out = 0;
	if (file_read(log, 0, &text, NULL) && text.len) {
		size_t from = text.len > 240 ? text.len - 240 : 0;
		while (text.len && text.data[text.len - 1] == '\n')
			text.data[--text.len] = 0;
		snprintf(out, 256, "%s", text.data + from);
	}
	buf_fini(&text);
}

static bool wait_for(pid_t child, const struct series_side *side,
		     const char *log, struct err *e)
{
	char said[256];
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	tail_of(log, said);
	return err_set(e, ERR_INPUT, "%s %s %d; it said: %s", side->program,
		       WIFEXITED(status) ? "ended with" : "was killed by signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) :
					   WTERMSIG(status), said);
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
	pid_t child;

	buf_printf(&log, "%s/log", dir);
	if (x->foreign)
		buf_printf(&db, "%s/process.db", dir);
	else
		buf_adds(&db, x->db_path);
	bool ok = spawn(x, side, db.data, log.data, &child, e) &&
		  wait_for(child, side, log.data, e) &&
		  (!x->foreign || take_rows(x, side, db.data, e));
	unlink(log.data);
	if (x->foreign)
		unlink(db.data);
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
	const volatile int *stop = cmd_catch_signals(&x->s->cmd);
	size_t all = x->processes * x->n_sides;
	struct progress bar;
	bool ok = true;

	progress_init(&bar, "processes", all, x->s->cmd.quiet);
	progress_step(&bar, done);
	for (size_t i = done; ok && i < all; i++) {
		ok = run_one(x, &x->side[side_at(x, i)], dir, e) &&
		     check_stored(x, i + 1, e);
		if (*stop)
			ok = err_set(e, ERR_STOPPED, "the same command goes on "
				     "with the processes that ended");
		progress_step(&bar, 1);
	}
	progress_fini(&bar);
	return ok;
}

static bool make_folder(struct buf *dir, struct err *e)
{
	const char *base = getenv("TMPDIR");

	buf_printf(dir, "%s/t0-series-XXXXXX", base && *base ? base : "/tmp");
	return mkdtemp(dir->data) ||
	       err_sys(e, ERR_IO, errno, "%s: cannot make the folder (TMPDIR "
		       "names another place)", dir->data);
}

bool series_run(struct series *x, struct err *e)
{
	struct buf dir = { 0 };
	size_t done = 0;
	char *path = realpath(res_db_path(x->s->db), NULL);

	x->db_path = path;
	bool ok = path && choose_name(x, &done, e) && make_folder(&dir, e);
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

/* ------------------------------------------------------------- neighbour -- */

bool neighbour_start(pid_t *pid, struct err *e)
{
	*pid = fork();
	if (*pid < 0)
		return err_sys(e, ERR_NOMEM, errno, "a busy neighbour");
	if (*pid)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile unsigned i = 0;; i++)
		;
}

void neighbour_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
