/*
 * Processes that race for the file, are killed at any moment, or run out of
 * disk: no row whose commit was reported is ever lost.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/results/results.h"

static char dir[64], path[128];

/* splitmix64: the same seed, the same kills. */
static uint64_t rng(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static bool put(struct res_db *db, int64_t run, int64_t i, struct err *e)
{
	char signature[64];

	snprintf(signature, sizeof(signature), "v0=%lld", (long long)i * 3);
	return res_slot_put(db, run, &(struct res_slot){
		.encoding = "VOP3", .opcode = i, .signature = signature,
		.emulated_ok = -1 }, e);
}

static bool all_exited_0(const pid_t *pid, int n)
{
	int good = 0;

	for (int i = 0; i < n; i++) {
		int status = -1;
		waitpid(pid[i], &status, 0);
		good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return good == n;
}

/* ---- several processes at once ---- */

enum { OPENERS = 8, WRITERS = 2, ROWS = 2000 };

static int write_rows(bool batch)
{
	struct err e = { 0 };
	struct res_db *db = res_open(path, RES_WRITE, &e);
	int64_t run = db ? begin_run(db, &e) : 0;
	bool good = run > 0;

	if (batch && good)
		res_batch_begin(db);
	for (int64_t i = 0; good && i < ROWS; i++)
		good = put(db, run, i, &e);
	good = good && res_batch_end(db, &e) &&
	       res_run_finish(db, run, RES_COMPLETE, 0, NULL, &e);
	if (!good)
		diag("writer: %s", e.msg);
	res_close(db);
	return !good;
}

static void test_openers(void)
{
	pid_t pid[OPENERS];

	for (int i = 0; i < OPENERS; i++) {
		pid[i] = fork();
		if (pid[i])
			continue;
		struct err e = { 0 };
		struct res_db *db = res_open(path, RES_WRITE, &e);
		bool good = db && begin_run(db, &e) > 0;
		if (!good)
			diag("opener: %s", e.msg);
		res_close(db);
		_exit(!good);
	}
	ok(all_exited_0(pid, OPENERS), "%d processes create one file",
	   OPENERS);
	is_i64(raw_sql(path, "SELECT count(*) FROM runs"), OPENERS,
	       "each has its run");
	is_i64(raw_sql(path, "SELECT count(*) FROM devices"), 1,
	       "all name one device");
	unlink(path);
}

static void test_writers(void)
{
	pid_t pid[WRITERS];

	for (int i = 0; i < WRITERS; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(write_rows(i == 0));
	}
	ok(all_exited_0(pid, WRITERS), "a batch writer and a single-row "
	   "writer at once");
	is_i64(raw_sql(path, "SELECT count(*) FROM slot_verdicts"),
	       WRITERS * ROWS, "all their rows are there");
	is_i64(raw_sql(path, "SELECT count(*) FROM slot_verdicts "
		       "WHERE signature = 'v0=' || (opcode * 3)"),
	       WRITERS * ROWS, "and right");
	is_i64(raw_sql(path, "SELECT count(*) FROM runs "
		       "WHERE state = 'complete'"), WRITERS, "both ended");
	ok(is_intact(path), "the file is intact");
}

/* ---- kill -9 ---- */

/*
 * Writes slots and results until it is killed; after each reported commit it
 * tells the number of rows through `fd`.
 */
static void write_until_killed(int fd, uint64_t seed)
{
	static const double samples[] = { 1, 2, 3, 4 };
	struct err e = { 0 };
	struct res_db *db = res_open(path, RES_WRITE, &e);
	int64_t run = db ? begin_run(db, &e) : 0, c = 0;
	bool good = run > 0;
	uint64_t batch = rng(&seed) % 3 ? rng(&seed) % 300 : 0;

	if (batch)
		res_batch_begin(db);
	for (int64_t i = 0; good && i < 100000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%lld", (long long)i);
		good = put(db, run, i, &e) &&
		       res_case_id(db, "kill", name, NULL, &c, &e) &&
		       res_result_add(db, &(struct res_result){
				.run = run, .case_id = c, .metric = "m",
				.unit = "s", .value = 2.5, .lo = 1, .hi = 4,
				.clock_hz = NAN, .samples = samples,
				.n_samples = 4, .n = 4 }, NULL, &e);
		if (batch && i % (int64_t)batch)
			continue;
		int64_t told[2] = { run, i + 1 };
		good = good && res_batch_commit(db, &e) &&
		       write(fd, told, sizeof(told)) == sizeof(told);
	}
	diag("victim ended by itself: %s", e.msg);
	_exit(1);
}

/*
 * Lets a victim write for a while, kills it; the last it told is in `told`.
 * The while begins with its first commit, or (early) with its birth.
 */
static void kill_one(uint64_t *seed, bool early, int64_t told[2])
{
	int fd[2];
	int64_t now[2];

	told[0] = told[1] = 0;
	uint64_t child_seed = rng(seed);

	if (pipe(fd))
		exit(2);
	pid_t pid = fork();
	if (!pid) {
		close(fd[0]);
		write_until_killed(fd[1], child_seed);
	}
	close(fd[1]);
	if (!early && read(fd[0], now, sizeof(now)) == sizeof(now))
		memcpy(told, now, sizeof(now));
	usleep((useconds_t)(rng(seed) % 40000));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (read(fd[0], now, sizeof(now)) == sizeof(now))
		memcpy(told, now, sizeof(now));
	close(fd[0]);
}

static bool rows_kept(const int64_t told[2])
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM slot_verdicts "
		 "WHERE run = %lld AND opcode < %lld", (long long)told[0],
		 (long long)told[1]);
	int64_t slots = raw_sql(path, sql);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM results "
		 "WHERE run = %lld", (long long)told[0]);
	int64_t results = raw_sql(path, sql);
	if (slots == told[1] && results >= told[1])
		return true;
	diag("run %lld told %lld, has %lld slots, %lld results",
	     (long long)told[0], (long long)told[1], (long long)slots,
	     (long long)results);
	return false;
}

static void test_kills(void)
{
	const char *slow = getenv("T0_SLOW"), *given = getenv("T0_SEED");
	int kills = slow && *slow == '1' ? 200 : 40, told_any = 0;
	uint64_t seed = given ? strtoull(given, NULL, 0) : time_wall_ns();
	int kept = 0, intact = 0, opened = 0;

	diag("kills: T0_SEED=%llu", (unsigned long long)seed);
	unlink(path);
	for (int i = 0; i < kills; i++) {
		int64_t told[2];
		struct err e = { 0 };
		kill_one(&seed, i % 2, told);
		struct res_db *db = res_open(path, RES_WRITE, &e);
		if (!db)
			diag("kill %d: %s", i, e.msg);
		opened += db != NULL;
		res_close(db);
		told_any += told[1] > 0;
		kept += rows_kept(told);
		intact += is_intact(path);
	}
	is_i64(opened, kills, "after every kill the file opens");
	is_i64(intact, kills, "after every kill the file is intact");
	is_i64(kept, kills, "after every kill all committed rows are there");
	ok(told_any >= kills / 2, "%d of %d victims had committed something",
	   told_any, kills);
	is_i64(raw_sql(path, "SELECT 4 * (SELECT count(*) FROM results) "
			     "- (SELECT count(*) FROM samples)"), 0,
	       "no result is without its samples");
	is_i64(raw_sql(path, "SELECT count(*) FROM runs "
			     "WHERE state <> 'running'"), 0,
	       "killed runs never look complete");
}

/* ---- full disk ---- */

/* Writes until the disk is full; tells how many rows were committed. */
static int64_t write_until_full(struct res_db *db, int64_t run, struct err *e)
{
	int64_t committed = 0;

	res_batch_begin(db);
	for (int64_t i = 0; i < 1000000; i++) {
		if (!put(db, run, i, e))
			break;
		if (i % 100 == 99 && !res_batch_commit(db, e))
			break;
		if (i % 100 == 99)
			committed = i + 1;
	}
	return committed;
}

static void check_full(const char *file, const char *how)
{
	struct err e = { 0 };
	struct res_db *db = res_open(file, RES_WRITE, &e);
	int64_t run = db ? begin_run(db, &e) : 0;

	if (!ok(run > 0, "%s: a run begins: %s", how, e.msg)) {
		res_close(db);
		return;
	}
	int64_t committed = write_until_full(db, run, &e);
	is_i64(e.code, ERR_IO, "%s: the code", how);
	is_i64(err_exit_code(&e), 2, "%s: a tool would exit with 2", how);
	has_str(e.msg, file, "%s: the path is named", how);
	has_str(e.msg, "is kept", "%s: says that nothing is lost", how);
	diag("%s: %s", how, e.msg);
	ok(committed > 0, "%s: %lld rows were committed before", how,
	   (long long)committed);
	int64_t n = -1;
	memset(&e, 0, sizeof(e));
	ok(res_query_int(db, &n, &e, "SELECT count(*) FROM slot_verdicts", ""),
	   "%s: the handle still reads: %s", how, e.msg);
	ok(n >= committed, "%s: and finds them (%lld)", how, (long long)n);
	res_close(db);
}

static void test_file_limit(void)
{
	struct rlimit old, small;

	unlink(path);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 400 << 10;
	setrlimit(RLIMIT_FSIZE, &small);
	check_full(path, "file size limit");
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, SIG_DFL);
	ok(is_intact(path), "file size limit: the file is intact");
	ok(write_rows(true) == 0, "file size limit: lifted, rows are taken");
}

static void test_full_disk(void)
{
	char mount_dir[96], file[128];

	snprintf(mount_dir, sizeof(mount_dir), "%s/small", dir);
	snprintf(file, sizeof(file), "%s/t0.db", mount_dir);
	mkdir(mount_dir, 0755);
	/* A mount namespace of our own: it goes away with this process. */
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("t0", mount_dir, "tmpfs", 0, "size=600k")) {
		skip_some(10, "full disk: cannot mount: %s", strerror(errno));
		return;
	}
	check_full(file, "full disk");
	if (mount("t0", mount_dir, "tmpfs", MS_REMOUNT, "size=20m"))
		diag("cannot enlarge: %s", strerror(errno));
	ok(is_intact(file), "full disk: the file is intact");
	memcpy(path, file, sizeof(path));
	ok(write_rows(true) == 0,
	   "full disk: with space again, rows are taken");
	umount(mount_dir);
}

int main(void)
{
	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t0.db", dir);
	test_openers();
	test_writers();
	test_kills();
	test_file_limit();
	test_full_disk();
	remove_dir(dir);
	return plan_done();
}
