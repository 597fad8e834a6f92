/*
 * Fuzz target: a database from anywhere.  The input changes a good one, which
 * has a row of most kinds: triples of bytes name a place of the last 1/256th
 * parts of its pages and a byte to put there, and what follows a zero triple is
 * SQL, run past all that T0 checks.  Opened to be read, it is refused or
 * exported.
 */
#include <stdlib.h>
#include <string.h>

#include "results/cmd/cmd.h"
#include "results/db/tunes.h"
#include "tests/attack/driver/driver.h"

static struct buf good; /* the file */

static void must(bool done, const struct err *e)
{
	if (!done)
		BUG("%s", e->msg);
}

static void fill(struct res_db *db, struct err *e)
{
	static const double samples[] = { 1, 2, 3, 4, 5, 6 };
	struct res_device d = { .name = "Soft", .gfx = "gfx1100", .uid = "0",
				.driver = "soft", .origin = RES_EMULATED };
	struct res_start s = { .tool = "t0-test", .inputs = "{}" };
	int64_t run = 0, c = 0;

	must(res_host_self(db, &s.host, e) && res_build_self(db, &s.build, e) &&
	     res_device_id(db, &d, &s.device, e) &&
	     res_run_begin(db, &s, &run, e) &&
	     res_case_id(db, "area", "name", NULL, &c, e) &&
	     res_result_add(db, &(struct res_result){
			.run = run, .case_id = c, .metric = "m", .unit = "s",
			.value = 3, .lo = 1, .hi = 6, .clock_hz = 1e9,
			.samples = samples, .n_samples = 6, .n = 6 }, NULL, e) &&
	     res_slot_put(db, run, &(struct res_slot){
			.encoding = "VOP3", .opcode = 1, .signature = "v0=1",
			.emulated_ok = -1 }, e) &&
	     res_run_finish(db, run, RES_COMPLETE, 0, NULL, e), e);
}

static void make_good(void)
{
	struct err e = { 0 };
	char path[96];

	snprintf(path, sizeof(path), "%s/good.db", work_folder());
	struct res_db *db = res_open(path, RES_WRITE, &e);
	must(db != NULL, &e);
	fill(db, &e);
	must(res_exec(db, &e, "PRAGMA wal_checkpoint(TRUNCATE)", "") &&
	     res_exec(db, &e, "PRAGMA journal_mode = DELETE", ""), &e);
	res_close(db);
	must(file_read(path, 0, &good, &e), &e);
}

/* The number of bytes that were changes. */
static size_t change_bytes(uint8_t *file, const uint8_t *data, size_t size)
{
	size_t i = 0;

	for (; i + 3 <= size; i += 3) {
		if (!data[i] && !data[i + 1] && !data[i + 2])
			return i + 3;
		size_t at = (data[i] << 8 | data[i + 1]) * UINT64_C(4) %
			    good.len;

		file[at + data[i + 2] % 4] = data[i + 2];
	}
	return size;
}

static bool count_line(void *ctx, const char *line, size_t len, struct err *e)
{
	(void)line, (void)len, (void)e;
	++*(int *)ctx;
	return true;
}

static void read_rows(const char *path)
{
	struct err e = { 0 };
	struct res_db *db = res_open(path, RES_READ, &e);
	int lines = 0;

	if (db && !res_export(db, false, count_line, &lines, &e) && !e.msg[0])
		BUG("not exported without a reason");
	if (db) {
		struct pieces p = { 0 };

		pieces_of_results(db, &p, &e, "1", "");
		pieces_fini(&p);
		p = (struct pieces){ 0 };
		pieces_of_baselines(db, &p, &e, "1", "");
		pieces_fini(&p);
	} else if (!e.msg[0]) {
		BUG("refused without a reason");
	}
	res_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "PRAGMA ignore_check_constraints = 1;"
				     "PRAGMA synchronous = 0;"
				     "PRAGMA journal_mode = MEMORY;";

	if (!good.len)
		make_good();
	if (size > 2048)
		return 0;
	uint8_t *file = xmalloc(good.len + 4);
	memcpy(file, good.data, good.len);
	size_t changed = change_bytes(file, data, size);
	const char *path = input_file(file, good.len, NULL);
	free(file);
	if (changed < size) {
		char *sql = strndup((const char *)data + changed,
				    size - changed);
		sqlite3 *sq;

		if (sqlite3_open(path, &sq) == SQLITE_OK) {
			sqlite3_limit(sq, SQLITE_LIMIT_ATTACHED, 0);
			sqlite3_exec(sq, before, NULL, NULL, NULL);
			sqlite3_exec(sq, sql, NULL, NULL, NULL);
		}
		sqlite3_close(sq);
		free(sql);
	}
	read_rows(path);
	return 0;
}
