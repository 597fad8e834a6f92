/* results/db/db.c and schema.c: what is opened, created, refused, and how. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/results/results.h"

static char dir[64];

static const char *in_dir(const char *name)
{
	static char path[4][160];
	static int next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void write_bytes(const char *path, long offset, const void *data,
			size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	if (fd < 0 || pwrite(fd, data, len, offset) != (ssize_t)len)
		diag("cannot write %s", path);
	close(fd);
}

static void make_db(const char *path)
{
	struct err e = { 0 };
	struct res_db *db = res_open(path, RES_WRITE, &e);

	ok(db && begin_run(db, &e), "%s is made: %s", strrchr(path, '/'),
	   e.msg);
	res_close(db);
}

/* Opening fails with this code; the message names the path and this text. */
static void refused(const char *path, enum res_mode mode, enum err_code code,
		    const char *text, const char *what)
{
	struct err e = { 0 };
	struct res_db *db = res_open(path, mode, &e);

	ok(!db, "%s is refused", what);
	is_i64(e.code, code, "%s: the code", what);
	has_str(e.msg, path, "%s: the path is named", what);
	has_str(e.msg, text, "%s: the message says \"%s\"", what, text);
	res_close(db);
}

static void test_create(void)
{
	const char *path = in_dir("new.db");
	struct err e = { 0 };
	struct res_db *db = res_open(path, RES_WRITE, &e);

	if (!ok(db, "a missing file is created: %s", e.msg))
		return;
	is_str(res_db_path(db), path, "the handle knows its path");
	res_close(db);
	is_i64(raw_sql(path, "PRAGMA user_version"), 8, "schema version 8");
	is_i64(raw_sql(path, "PRAGMA application_id"), 0x54306462,
	       "the application id is \"T0db\"");
	is_i64(raw_sql(path, "SELECT journal_mode = 'wal' "
			     "FROM pragma_journal_mode"), 1,
	       "write-ahead log");
	is_i64(raw_sql(path, "SELECT count(*) FROM pragma_table_list WHERE "
			     "type = 'table' AND schema = 'main' "
			     "AND NOT strict AND name NOT LIKE 'sqlite_%'"), 0,
	       "every table is STRICT");
	is_i64(raw_sql(path, "SELECT count(*) FROM pragma_table_list WHERE "
			     "type = 'table' AND strict"), 17,
	       "there are sixteen tables");
	ok(access(in_dir("new.db-wal"), F_OK) != 0,
	   "closing leaves one file only");
}

static void test_versions(void)
{
	const char *path = in_dir("version.db");
	struct err e = { 0 };

	raw_sql(path, "VACUUM"); /* a valid sqlite file without content */
	struct res_db *db = res_open(path, RES_READ, &e);
	ok(db, "a reader brings a file of version 0 forward: %s", e.msg);
	res_close(db);
	is_i64(raw_sql(path, "PRAGMA user_version"), 8, "to version 8");

	make_db(path);
	raw_sql(path, "PRAGMA user_version = 9");
	refused(path, RES_READ, ERR_INPUT, "newer", "a newer schema, reading");
	refused(path, RES_WRITE, ERR_INPUT, "schema 9", "a newer schema");
	raw_sql(path, "PRAGMA user_version = 8");
	is_i64(raw_sql(path, "SELECT count(*) FROM runs"), 1,
	       "a refused file keeps its rows");

	write_bytes(in_dir("empty.db"), 0, "", 0);
	db = res_open(in_dir("empty.db"), RES_WRITE, &e);
	ok(db, "an empty file is filled: %s", e.msg);
	res_close(db);
}

static void test_migrate(void)
{
	const char *path = in_dir("old.db");
	struct err e = { 0 };

	make_version(path, 1);
	is_i64(raw_sql(path, "PRAGMA user_version"), 1, "a file of version 1");
	struct res_db *db = res_open(path, RES_READ, &e);
	ok(db, "is brought forward by a reader: %s", e.msg);
	res_close(db);
	is_i64(raw_sql(path, "PRAGMA user_version"), 8, "to today's version");
	is_i64(raw_sql(path, "SELECT seed FROM runs"), 7, "its rows are kept");
	is_i64(raw_sql(path, "SELECT correct = 'fail' FROM v_results"), 1,
	       "a case's verdict still goes before its run's");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_baselines"), 0,
	       "there are no baselines yet");
	ok(is_intact(path), "the file is whole");
}

/* Version 4 knew no caches but by its operands, and pruned decisions. */
static void test_migrate_tunes(void)
{
	const char *path = in_dir("four.db");
	struct err e = { 0 };

	make_version(path, 4);
	raw_sql(path, "INSERT INTO tunes VALUES(7, 1, 'gfx1100', 'bf16', 1, 2, "
		"3, 1, 'c', 'simulated', '', 'k', 'b', 'timed', '', 1, 2.0, "
		"NULL, NULL, 1, 4, 'wmma', 'o'), (8, 1, 'gfx1100', 'bf16', 1, "
		"2, 3, 1, 'c', 'hardware', 'normal cold', 'k', 'b', 'ranked', "
		"'', 1, NULL, NULL, NULL, 0, 4, '', ''), (9, 1, 'a cpu', "
		"'f32', 1, 2, 3, 1, 'c', 'hardware', 'normal', '', 'b', "
		"'ranked', '', 1, NULL, NULL, NULL, 0, 4, '', '');"
		"INSERT INTO tune_checks VALUES(3, 1, 'gfx1100', 'bf16', 'c', "
		"'o', 'even', 'pass', 0.5, 6, 1, '');"
		"INSERT INTO tune_winners VALUES(7, '', 'even', 'quick', 1, "
		"5)");
	struct res_db *db = res_open(path, RES_WRITE, &e);
	ok(db, "a file of version 4 is brought forward: %s", e.msg);
	res_close(db);
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE tune = 7 AND "
			     "winner AND proof = 1 AND caches = 'warm' AND "
			     "time_s = 2.0 AND run = 1"), 1,
	       "its winner is kept, of warm caches");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE tune = 8 AND "
			     "caches = 'cold' AND operands = 'normal'"), 1,
	       "what was measured cold says so");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE tune = 9 AND "
			     "caches = '' AND operands = 'normal'"), 1,
	       "the host's says nothing");
	is_i64(raw_sql(path, "PRAGMA foreign_keys = ON; DELETE FROM verdicts; "
			     "DELETE FROM runs; SELECT count(*) FROM v_tunes "
			     "WHERE run IS NULL"), 3, "they outlive their run");
	ok(is_intact(path), "the file is whole");
}

/* Version 5 had hashes by FNV-1a, which it did not name. */
static void test_migrate_hashes(void)
{
	const char *path = in_dir("five.db");
	struct err e = { 0 };
	int64_t host = 0, build = 0;

	make_version(path, 5);
	raw_sql(path, "UPDATE hosts SET machine = '0123456789abcdef';"
		"UPDATE builds SET binary = 'fedcba9876543210';"
		"INSERT INTO tunes VALUES(7, 1, 'gfx1100', 'bf16', 1, 2, 3, 1, "
		"'', 'c', 'simulated', '', 'k', 'fedcba9876543210', 'ranked', "
		"'', 1, NULL, NULL, NULL, 0, 4, '', '');"
		"INSERT INTO slot_verdicts VALUES"
		"(1, 'SOP1', 1, '', NULL, 'executes', 's0=1 "
		"#00000000000000aa', '', NULL, NULL, NULL, '', ''),"
		"(1, 'SOP1', 2, '', NULL, 'executes', 'nothing', '', NULL, "
		"NULL, NULL, '', '')");
	struct res_db *db = res_open(path, RES_WRITE, &e);
	ok(db, "a file of version 5 is brought forward: %s", e.msg);
	ok(res_host_self(db, &host, &e) && res_build_self(db, &build, &e),
	   "this host and build are stored beside the old: %s", e.msg);
	res_close(db);
	is_i64(raw_sql(path, "SELECT machine = 'fnv1a-64:0123456789abcdef' "
			     "FROM hosts WHERE id = 1"), 1,
	       "the machine keeps its hash and gets the algorithm's name");
	is_i64(raw_sql(path, "SELECT binary = 'fnv1a-64:fedcba9876543210' "
			     "FROM builds WHERE id = 1"), 1,
	       "so does the program");
	is_i64(raw_sql(path, "SELECT code = 'fnv1a-64:fedcba9876543210' "
			     "FROM v_tunes WHERE tune = 7"), 1,
	       "and what was tuned by it");
	is_i64(raw_sql(path, "SELECT signature = 's0=1 "
			     "#fnv1a-64:00000000000000aa' FROM v_slots WHERE "
			     "opcode = 1"), 1, "and what a slot changed");
	is_i64(raw_sql(path, "SELECT signature = 'nothing' FROM v_slots "
			     "WHERE opcode = 2"), 1,
	       "what has no hash stays");
	is_i64(raw_sql(path, "SELECT count(*) FROM hosts WHERE machine LIKE "
			     "'xxh3-128:%' AND length(machine) = 41"), 1,
	       "today's machine names today's algorithm");
	is_i64(raw_sql(path, "SELECT count(*) FROM builds WHERE binary LIKE "
			     "'xxh3-128:%' AND length(binary) = 41"), 1,
	       "today's program, too");
	ok(is_intact(path), "the file is whole");
}

static void test_identity(void)
{
	char id[RES_IDENTITY];

	/* XXH3's test vector of nothing: XXH3_128bits("", 0). */
	res_identity("", 0, id);
	is_str(id, "xxh3-128:99aa06d3014798d86001c324468d497f",
	       "the algorithm and 128 bits");
	ok(res_is_same_algorithm(id, "xxh3-128:0"), "one algorithm");
	ok(!res_is_same_algorithm(id, "fnv1a-64:0"), "two algorithms");
	ok(!res_is_same_algorithm(id, "xxh3"), "one and none");
	ok(res_is_same_algorithm("host-one", "host-two"), "none at all");
}

static void test_foreign(void)
{
	const char *path = in_dir("foreign.db");

	raw_sql(path, "CREATE TABLE recipes(name TEXT)");
	refused(path, RES_WRITE, ERR_INPUT, "not one of T0",
		"another program's database");
	is_i64(raw_sql(path, "SELECT count(*) FROM sqlite_schema"), 1,
	       "another program's database is left alone");
	is_i64(raw_sql(path, "SELECT journal_mode = 'delete' "
			     "FROM pragma_journal_mode"), 1,
	       "and keeps its journal mode");

	const char *text = in_dir("notes.txt");
	static const char words[] = "just some notes, longer than the hundred "
		"bytes that an sqlite header takes, so that only the magic "
		"can tell\n";
	write_bytes(text, 0, words, sizeof(words) - 1);
	refused(text, RES_WRITE, ERR_INPUT, "not a T0 database", "a text file");
	refused(text, RES_READ, ERR_INPUT, "no sqlite header",
		"a text file, reading");
	write_bytes(in_dir("short"), 0, "SQLite", 6);
	refused(in_dir("short"), RES_WRITE, ERR_INPUT, "not a T0 database",
		"six bytes");
	refused(dir, RES_WRITE, ERR_INPUT, "not a regular file", "a folder");
	refused(in_dir("absent.db"), RES_READ, ERR_IO, "no such database",
		"a missing file, reading");
	ok(access(in_dir("absent.db"), F_OK) != 0, "reading creates nothing");
	refused(in_dir("no/such/folder.db"), RES_WRITE, ERR_PERM,
		"folder exists", "a missing folder");
}

static void test_damaged(void)
{
	const char *path = in_dir("cut.db");
	char zeros[512] = { 0 }, ones[512];
	struct stat s;

	memset(ones, 0xff, sizeof(ones));
	make_db(path);
	if (stat(path, &s) || truncate(path, s.st_size - 4096))
		diag("cannot cut %s", path);
	refused(path, RES_READ, ERR_INPUT, "cut short", "a cut file, reading");
	refused(path, RES_WRITE, ERR_INPUT, ".recover", "a cut file");

	make_db(in_dir("schema.db"));
	write_bytes(in_dir("schema.db"), 100, ones, sizeof(ones));
	refused(in_dir("schema.db"), RES_WRITE, ERR_INPUT, "damaged",
		"a damaged schema page");
	make_db(in_dir("page.db"));
	write_bytes(in_dir("page.db"), 16, zeros, 2);
	refused(in_dir("page.db"), RES_WRITE, ERR_INPUT, "damaged",
		"a damaged page size");
	make_db(in_dir("drop.db"));
	raw_sql(in_dir("drop.db"), "DROP TABLE samples; DROP TABLE results");
	refused(in_dir("drop.db"), RES_WRITE, ERR_INPUT, "not a whole",
		"a file without its tables");
}

/* Damage below the schema is met, named and survived when it is read. */
static void test_damaged_rows(void)
{
	const char *path = in_dir("rows.db");
	char ones[4096];
	struct err e = { 0 };

	make_db(path);
	int64_t page = raw_sql(path, "SELECT rootpage FROM sqlite_schema "
				     "WHERE name = 'runs'");
	memset(ones, 0xff, sizeof(ones));
	write_bytes(path, (page - 1) * 4096, ones, sizeof(ones));
	struct res_db *db = res_open(path, RES_READ, &e);
	int64_t n = -7;
	ok(db && !res_query_int(db, &n, &e, "SELECT seed FROM runs", ""),
	   "reading a damaged page fails");
	is_i64(n, -7, "and gives no value");
	is_i64(e.code, ERR_INPUT, "a damaged page: the code");
	has_str(e.msg, ".recover", "a damaged page: the remedy");
	has_str(e.msg, path, "a damaged page: the path");
	res_close(db);
}

static void as_nobody(void)
{
	struct err e = { 0 };
	const char *file = in_dir("locked/t0.db");

	refused(file, RES_WRITE, ERR_PERM, "read-only", "a read-only file");
	struct res_db *db = res_open(file, RES_READ, &e);
	ok(db, "a reader needs no write permission: %s", e.msg);
	int64_t n = 0;
	ok(db && res_query_int(db, &n, &e, "SELECT count(*) FROM v_runs", ""),
	   "and reads: %s", e.msg);
	is_i64(n, 1, "the row that is there");
	res_close(db);
	refused(in_dir("locked/new.db"), RES_WRITE, ERR_PERM,
		"name another file with --db or T0_DB: Permission denied",
		"a new file in a read-only folder");
	refused(in_dir("locked/open.db"), RES_WRITE, ERR_PERM, "folder",
		"a writable file in a read-only folder");
	refused(in_dir("locked/secret.db"), RES_READ, ERR_PERM,
		"Permission denied", "a file that may not be read");
}

/* The checks in a child's TAP would be lost: it must not be root meanwhile. */
static void test_permissions(void)
{
	mkdir(in_dir("locked"), 0755);
	make_db(in_dir("locked/t0.db"));
	make_db(in_dir("locked/open.db"));
	make_db(in_dir("locked/secret.db"));
	chmod(in_dir("locked/t0.db"), 0444);
	chmod(in_dir("locked/open.db"), 0666);
	chmod(in_dir("locked/secret.db"), 0);
	chmod(in_dir("locked"), 0555);
	chmod(dir, 0755);
	bool root = geteuid() == 0;
	if (root && seteuid(65534)) {
		skip("cannot become nobody: %s", strerror(errno));
		return;
	}
	as_nobody();
	if (root && seteuid(0))
		diag("cannot become root again");
	chmod(in_dir("locked"), 0755);
}

/* A killed writer leaves its log; a reader must still see those rows. */
static void test_log_left(void)
{
	const char *path = in_dir("log.db");
	int status;
	struct err e = { 0 };

	make_db(path);
	pid_t pid = fork();
	if (pid == 0) {
		struct res_db *db = res_open(path, RES_WRITE, NULL);
		_exit(db && begin_run(db, NULL) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(access(in_dir("log.db-wal"), F_OK) == 0, "the log is left");
	struct res_db *db = res_open(path, RES_READ, &e);
	int64_t n = 0;
	ok(db && res_query_int(db, &n, &e, "SELECT count(*) FROM runs", ""),
	   "a file with a log is read: %s", e.msg);
	is_i64(n, 2, "rows in the log are seen");
	res_close(db);
}

static void test_path(void)
{
	unsetenv("T0_DB");
	is_str(res_path(NULL), "t0.db", "the default is t0.db");
	setenv("T0_DB", "/x/y.db", 1);
	is_str(res_path(NULL), "/x/y.db", "T0_DB is used");
	is_str(res_path("z.db"), "z.db", "--db wins over T0_DB");
	setenv("T0_DB", "", 1);
	is_str(res_path(""), "t0.db", "empty means not given");
}

int main(void)
{
	make_dir(dir);
	test_create();
	test_versions();
	test_migrate();
	test_migrate_tunes();
	test_migrate_hashes();
	test_identity();
	test_foreign();
	test_damaged();
	test_damaged_rows();
	test_permissions();
	test_log_left();
	test_path();
	remove_dir(dir);
	return plan_done();
}
