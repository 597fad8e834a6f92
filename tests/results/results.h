/*
 * results.h - what the tests of results/ share: a folder that goes away, and
 * sqlite without our code between.
 */
#ifndef T0_TESTS_RESULTS_H
#define T0_TESTS_RESULTS_H

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/db/results.h"
#include "tests/tap.h"

/* A new folder, for remove_dir(). */
static inline void make_dir(char out[64])
{
	snprintf(out, 64, "/tmp/t0-results-XXXXXX");
	if (!mkdtemp(out)) {
		perror(out);
		exit(2);
	}
}

static inline void remove_dir(const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		diag("%s failed", command);
}

/* Run SQL with sqlite alone; the first column of the last row, -1 = error. */
static inline int64_t raw_sql(const char *path, const char *sql)
{
	sqlite3 *sq = NULL;
	sqlite3_stmt *st;
	int64_t value = -1;
	int rc = sqlite3_open(path, &sq);

	sqlite3_busy_timeout(sq, 30000);
	for (const char *next = sql; rc == SQLITE_OK && *next;) {
		rc = sqlite3_prepare_v2(sq, next, -1, &st, &next);
		if (rc != SQLITE_OK || !st)
			break;
		value = 0;
		while ((rc = sqlite3_step(st)) == SQLITE_ROW)
			value = sqlite3_column_int64(st, 0);
		rc = sqlite3_finalize(st);
	}
	if (rc != SQLITE_OK) {
		diag("%s: %s: %s", path, sql, sqlite3_errmsg(sq));
		value = -1;
	}
	sqlite3_close(sq);
	return value;
}

/* sqlite's own opinion of the whole file, and no dangling reference. */
static inline bool is_intact(const char *path)
{
	return raw_sql(path, "SELECT count(*) FROM pragma_integrity_check "
			     "WHERE integrity_check = 'ok'") == 1 &&
	       raw_sql(path, "SELECT count(*) FROM pragma_integrity_check") ==
		       1 &&
	       raw_sql(path, "SELECT count(*) FROM pragma_foreign_key_check") ==
		       0;
}

/* A file as version `last` of the schema made it, with a run and a verdict. */
static inline void make_version(const char *path, int last)
{
	char sql[64];

	static const struct {
		int version;
		const char *sql;
	} schema[] = {
#define SQL(version, ...) { version, #__VA_ARGS__ },
#include "results/db/schema.def"
#undef SQL
	};

	for (size_t i = 0; i < ARRAY_SIZE(schema); i++)
		if (schema[i].version <= last)
			raw_sql(path, schema[i].sql);
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", last);
	raw_sql(path, sql);
	raw_sql(path, "PRAGMA application_id = 0x54306462; "
		"INSERT INTO hosts VALUES(1, 'm', 'c', 'k', 1, 2);"
		"INSERT INTO builds VALUES(1, '0', 'abc', 0, 'gcc', '', 'b');"
		"INSERT INTO runs(id, uuid, host, build, tool, argv, inputs, "
		"seed, start_ns, end_ns, state, exit_code, owner) VALUES(1, "
		"'u', 1, 1, 't', 't', '{}', 7, 5, 6, 'complete', 0, '');"
		"INSERT INTO cases VALUES(1, 'a', 'n', '{}');"
		"INSERT INTO results VALUES(1, 1, 1, 'm', 's', 2.5, NULL, "
		"NULL, 1, NULL, 'lower', 'hardware', '');"
		"INSERT INTO verdicts VALUES(1, 1, 1, NULL, 'correctness', "
		"'fail', '', '{}'), (2, 1, NULL, NULL, 'correctness', 'pass', "
		"'', '{}')");
}

static inline bool start_fill(struct res_db *db, struct res_start *s,
			      struct err *e)
{
	static char tool[] = "t0-test", opt[] = "--seed", value[] = "it's 7";
	static char *argv[] = { tool, opt, value, NULL };
	struct res_device d = {
		.name = "Soft", .gfx = "gfx1100", .uid = "0", .driver = "soft",
		.origin = RES_EMULATED, .cu_count = 96, .vram_bytes = 1 << 30,
	};

	*s = (struct res_start){
		.tool = "t0-test", .argc = 3, .argv = argv,
		.inputs = "{\"what\":\"all\"}", .seed = 7,
	};
	return res_host_self(db, &s->host, e) &&
	       res_build_self(db, &s->build, e) &&
	       res_device_id(db, &d, &s->device, e);
}

/* A run on a soft device; 0 and *e on error. */
static inline int64_t begin_run(struct res_db *db, struct err *e)
{
	struct res_start s;
	int64_t run = 0;

	if (start_fill(db, &s, e))
		res_run_begin(db, &s, &run, e);
	return run;
}

#endif
