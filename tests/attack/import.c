/*
 * Fuzz target: files that t0-results takes in.  The first byte chooses: an
 * export of another database, published costs, a list of changes.  An import
 * either takes all or leaves the database as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "results/cmd/cmd.h"
#include "results/cmd/experiment.h"
#include "tests/attack/driver/driver.h"

static struct res_db *open_once(void)
{
	static struct res_db *db;
	static char path[96];
	struct err e = { 0 };

	if (db)
		return db;
	snprintf(path, sizeof(path), "%s/t0.db", work_folder());
	db = res_open(path, RES_WRITE, &e);
	if (!db)
		BUG("%s", e.msg);
	/* Nothing here outlives the process: the disk need not know. */
	res_exec(db, &e, "PRAGMA synchronous = OFF", "");
	return db;
}

static int64_t count_rows(struct res_db *db)
{
	int64_t n = -1;

	res_query_int(db, &n, NULL, "SELECT (SELECT count(*) FROM runs) + "
		      "(SELECT count(*) FROM results) + (SELECT count(*) FROM "
		      "samples) + (SELECT count(*) FROM tunes) + (SELECT "
		      "count(*) FROM baselines) + (SELECT count(*) FROM notes) "
		      "+ (SELECT count(*) FROM hosts) + (SELECT count(*) FROM "
		      "cases)", "");
	return n;
}

/* A last line that nobody takes makes every import fail. */
static void export_lines(const uint8_t *data, size_t size)
{
	struct show s = { .db = open_once() };
	char *operand[] = { (char *)input_file(data, size, "\n{\"no\":1}\n"),
			    NULL };
	struct err e = { 0 };
	int64_t before = count_rows(s.db);

	s.cmd.argc = 1;
	s.cmd.argv = operand;
	s.cmd.quiet = true;
	if (res_cmd_import(&s.cmd, &e) || !e.msg[0])
		BUG("taken, or refused without a reason");
	if (count_rows(s.db) != before)
		BUG("%lld rows became %lld by a refused import",
		    (long long)before, (long long)count_rows(s.db));
}

static void costs(const uint8_t *data, size_t size)
{
	struct res_db *db = open_once();
	struct cost_import counts;
	struct err e = { 0 };

	if (!cost_import(db, input_file(data, size, NULL), NULL, &counts, &e) &&
	    !e.msg[0])
		BUG("refused without a reason");
	e = (struct err){ 0 };
	if (!res_batch_end(db, &e) ||
	    !res_exec(db, &e, "DELETE FROM runs", ""))
		BUG("%s", e.msg);
}

static void changes(const uint8_t *data, size_t size)
{
	struct changes l = { 0 };
	struct err e = { 0 };

	/* A patch is a file, and the input may name any. */
	for (size_t i = 0; i + 5 <= size; i++)
		if (!memcmp(data + i, "patch", 5))
			return;
	if (!changes_read(&l, input_file(data, size, NULL), &e) && !e.msg[0])
		BUG("refused without a reason");
	changes_fini(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kind[])(const uint8_t *data, size_t size) = {
		export_lines, costs, changes
	};

	if (size > 1)
		kind[*data % ARRAY_SIZE(kind)](data + 1, size - 1);
	return 0;
}
