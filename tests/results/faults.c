/*
 * A disk that fails: everything that writes the database is tried with every
 * single call to the file system failing in turn, in every way that it can.
 * Each time the tool says what happened to which file, or did its work, and the
 * file opens again, is intact, and holds all that was there and all that was
 * reported as stored.
 *
 * One call of eight of each kind, another for each; with T0_SLOW=1 every one, and
 * every version.
 */
#include "results/cmd/cmd.h"
#include "results/cmd/experiment.h"
#include "results/db/tunes.h"
#include "compiler/cost/cost.h"
#include "tests/results/faults.h"
#include "tests/results/results.h"

static char dir[64], path[128], lines[128], other[160], costs[128];
static FILE *nowhere;
static bool slow;

/* ---- what is tried ---- */

/*
 * Returns what the tool would.  *stored is how much of `measure` the calls so
 * far have reported as stored, beyond what the template held.
 */
typedef bool operate_fn(int64_t *stored, struct err *e);

struct operation {
	const char *name, *template; /* the file before; NULL: none */
	operate_fn *run;
	const char *measure; /* SQL: what it adds to, or takes from */
	bool whole;	     /* all of it or nothing */
	bool slow;	     /* only with T0_SLOW: much as one before it */
};

static bool op_create(int64_t *stored, struct err *e)
{
	struct res_db *db = res_open(path, RES_WRITE, e);

	*stored = 0;
	res_close(db);
	return db != NULL;
}

static bool op_read(int64_t *stored, struct err *e)
{
	struct res_db *db = res_open(path, RES_READ, e);

	*stored = 0;
	res_close(db);
	return db != NULL;
}

static bool put_result(struct res_db *db, int64_t run, struct err *e)
{
	static const double samples[] = { 1, 2, 3, 4, 5, 6 };
	int64_t c = 0;

	return res_case_id(db, "fault", "case", NULL, &c, e) &&
	       res_result_add(db, &(struct res_result){
			.run = run, .case_id = c, .metric = "m", .unit = "s",
			.value = 3, .lo = 1, .hi = 6, .clock_hz = 1e9,
			.samples = samples, .n_samples = 6, .n = 6 }, NULL, e);
}

static bool op_run(int64_t *stored, struct err *e)
{
	struct res_db *db = res_open(path, RES_WRITE, e);
	int64_t run = db ? begin_run(db, e) : 0;
	bool good = run > 0;

	*stored += good;
	good = good && put_result(db, run, e);
	*stored += good;
	good = good && res_run_finish(db, run, RES_COMPLETE, 0, NULL, e);
	*stored += good;
	res_close(db);
	return good;
}

static bool op_batch(int64_t *stored, struct err *e)
{
	struct res_db *db = res_open(path, RES_WRITE, e);
	int64_t run = db ? begin_run(db, e) : 0;
	bool good = run > 0;

	if (good)
		res_batch_begin(db);
	for (int64_t i = 0; good && i < 600; i++) {
		good = res_slot_put(db, run, &(struct res_slot){
			.encoding = "VOP3", .opcode = i, .signature = "v0=1",
			.emulated_ok = -1 }, e);
		if (good && i == 299) {
			good = res_batch_commit(db, e);
			*stored = good ? 300 : 0;
		}
	}
	good = good && res_batch_end(db, e);
	if (good)
		*stored = 600;
	res_close(db);
	return good;
}

/* A command of t0-results; operands end with NULL. */
static bool command(bool (*run)(struct cmd *c, struct err *e),
		    const struct show_opts *o, enum res_mode mode,
		    struct err *e, char *const *operands)
{
	struct show s = { .o = *o };

	s.cmd.argv = (char **)operands;
	while (operands[s.cmd.argc])
		s.cmd.argc++;
	s.cmd.quiet = true;
	s.cmd.out = nowhere;
	s.db = res_open(path, mode, e);
	bool good = s.db && run(&s.cmd, e);
	res_close(s.db);
	return good;
}

#define COMMAND(run, options, ...)                                         \
	command(run, &(struct show_opts){ options }, RES_WRITE, e,         \
		(char *const[]){ __VA_ARGS__, NULL })

static bool op_import(int64_t *stored, struct err *e)
{
	*stored = 0;
	return COMMAND(res_cmd_import, 0, lines);
}

static bool op_merge(int64_t *stored, struct err *e)
{
	*stored = 0;
	return COMMAND(res_cmd_merge, 0, other);
}

static bool op_accept(int64_t *stored, struct err *e)
{
	const struct show_opts o = { .limit = 0.05, .reason = "a test" };

	*stored = 0;
	return command(res_cmd_baseline, &o, RES_WRITE, e, (char *const[]){
		       (char *)"accept", (char *)"last", NULL });
}

static bool op_retire(int64_t *stored, struct err *e)
{
	const struct show_opts o = { .reason = "a test" };

	*stored = 0;
	return command(res_cmd_baseline, &o, RES_WRITE, e, (char *const[]){
		       (char *)"retire", (char *)"1", NULL });
}

static bool op_note(int64_t *stored, struct err *e)
{
	const struct show_opts o = { .hypothesis = "faster",
				     .status = "keep" };

	*stored = 0;
	return command(res_cmd_note, &o, RES_WRITE, e, (char *const[]){
		       (char *)"add", NULL });
}

static bool op_prune(int64_t *stored, struct err *e)
{
	const struct show_opts o = { .yes = true, .tunes = true };

	*stored = 0;
	return command(res_cmd_prune, &o, RES_WRITE, e, (char *const[]){
		       (char *)"1", (char *)"3", (char *)"last", NULL });
}

static bool op_experiment(int64_t *stored, struct err *e)
{
	const struct experiment_key key = { "make bench", "abc", 3 };
	const struct change c = { CHANGE_ENV, "X=1", "faster", "X=1" };
	const struct outcome o = { .verdict = "discard", .reason = "",
				   .row = "" };
	struct res_db *db = res_open(path, RES_WRITE, e);
	bool good = db && experiment_store(db, &key, &c, &o, e);

	*stored = 0;
	res_close(db);
	return good;
}

static bool op_costs(int64_t *stored, struct err *e)
{
	struct res_db *db = res_open(path, RES_WRITE, e);
	struct cost_import counts;
	bool good = db && cost_import(db, costs, NULL, &counts, e);

	*stored = 0;
	res_close(db);
	return good;
}

static bool op_tune(int64_t *stored, struct err *e)
{
	const struct res_tune_winner w = {
		.key = { .target = "gfx1100", .op = "bf16", .m = 1, .n = 2,
			 .k = 3, .batch = 1, .caches = "warm",
			 .origin = RES_SIMULATED, .operands = "",
			 .costs = "c", .code = "b" },
		.tune = { .config = "x", .state = RES_TUNE_TIMED, .object = "o",
			  .bound_s = 1, .time_s = 2, .samples = 1,
			  .clock_hz = 1e9 },
		.second = "", .class = "even", .budget = "quick",
		.candidates = 1,
	};
	const struct res_tune_check check = {
		.target = "gfx1100", .op = "bf16", .config = "x",
		.object = "o", .class = "even", .pass = true, .worst = 0.5,
		.compared = 6, .seed = 1,
	};
	struct res_db *db = res_open(path, RES_WRITE, e);
	int64_t run = db ? begin_run(db, e) : 0;
	bool good = run && res_tune_put(db, run, &w.key, &w.tune, e);

	*stored += good;
	good = good && res_tune_check_put(db, run, &check, e);
	*stored += good;
	good = good && res_tune_win(db, &w, e);
	*stored += good;
	res_close(db);
	return good;
}

static bool ignore_line(void *ctx, const char *line, size_t len, struct err *e)
{
	(void)ctx, (void)line, (void)len, (void)e;
	return true;
}

static bool op_export(int64_t *stored, struct err *e)
{
	struct res_db *db = res_open(path, RES_READ, e);
	bool good = db && res_export(db, false, ignore_line, NULL, e);

	*stored = 0;
	res_close(db);
	return good;
}

#define COUNT(table) "SELECT count(*) FROM " table
static const struct operation operations[] = {
	{ "a new file", NULL, op_create, COUNT("sqlite_schema"), true, false },
	{ "version 1 brought forward by a writer", "v1", op_create,
	  "PRAGMA user_version", true, true },
	{ "version 1 brought forward by a reader", "v1", op_read,
	  "PRAGMA user_version", true, false },
	{ "version 2", "v2", op_create, "PRAGMA user_version", true,
	  true },
	{ "version 3", "v3", op_create, "PRAGMA user_version", true,
	  true },
	{ "version 4", "v4", op_create, "PRAGMA user_version", true,
	  true },
	{ "version 5", "v5", op_create, "PRAGMA user_version", true, false },
	{ "version 6", "v6", op_create, "PRAGMA user_version", true,
	  true },
	{ "version 7", "v7", op_read, "PRAGMA user_version", true, false },
	{ "a run", "full", op_run,
	  "SELECT (SELECT count(*) FROM runs WHERE tool = 't0-test') + "
	  "(SELECT count(*) FROM samples s JOIN results r ON r.id = s.result "
	  "WHERE r.metric = 'm' AND idx = 5) + (SELECT count(*) FROM runs "
	  "WHERE tool = 't0-test' AND state = 'complete')", false, false },
	{ "a batch of slots", "full", op_batch,
	  "SELECT count(*) FROM slot_verdicts WHERE encoding = 'VOP3' AND "
	  "signature = 'v0=1'", false, false },
	{ "an import", "empty", op_import, "SELECT (SELECT count(*) FROM runs) "
	  "+ (SELECT count(*) FROM samples) + (SELECT count(*) FROM verdicts)",
	  true, false },
	{ "a merge", "empty", op_merge, COUNT("samples"), true,
	  true },
	{ "an acceptance", "full", op_accept, COUNT("baselines"), true, false },
	{ "a retirement", "accepted", op_retire, COUNT("baselines"), true, false },
	{ "a note", "full", op_note, COUNT("notes"), true, false },
	{ "an experiment", "full", op_experiment, COUNT("experiments"), true, false },
	{ "imported costs", "full", op_costs,
	  "SELECT count(*) FROM results WHERE origin = 'published'", false, false },
	{ "a tuner's decisions", "full", op_tune,
	  "SELECT (SELECT count(*) FROM tunes) + (SELECT count(*) FROM "
	  "tune_checks) + (SELECT count(*) FROM tune_winners)", false, false },
	{ "runs deleted", "accepted", op_prune, COUNT("runs"), true, false },
	{ "an export", "full", op_export, COUNT("runs"), true, false },
};

/* ---- one fault ---- */

static const char *template_path(const char *name)
{
	static char at[160];

	snprintf(at, sizeof(at), "%s/%s.db", dir, name);
	return at;
}

static void put_template(const struct operation *o)
{
	static const struct operation *last;
	static struct buf content;
	struct err e = { 0 };

	res_remove(path);
	if (o != last)
		buf_reset(&content);
	if (o->template && (o == last || file_read(template_path(o->template),
						   0, &content, &e)))
		file_write_unsynced(path, content.data, content.len, &e);
	if (e.code)
		BUG("%s", e.msg);
	last = o;
}

/* Of what a message says, one is enough. */
static bool names_cause(enum fault_kind kind, const char *msg)
{
	static const char *const opening[] = { "cannot open", "read-only",
					       "may not be written",
					       "disk error" };

	if (fault_rows[kind].rc == SQLITE_FULL)
		return strstr(msg, "disk full");
	if (fault_rows[kind].rc == SQLITE_BUSY)
		return strstr(msg, "another process held it");
	if (fault_rows[kind].rc != SQLITE_CANTOPEN)
		return strstr(msg, "disk error");
	for (size_t i = 0; i < ARRAY_SIZE(opening); i++)
		if (strstr(msg, opening[i]))
			return true;
	return false;
}

struct tally {
	int64_t before, after; /* of o->measure */
	unsigned points, odd;
};

static bool complain(struct tally *t, const struct operation *o,
		     enum fault_kind kind, unsigned at, const char *what,
		     const char *detail)
{
	if (t->odd++ < 5)
		diag("%s, %s at call %u: %s: %s", o->name,
		     fault_rows[kind].name, at, what, detail);
	return false;
}

/* What sqlite alone finds in the file, in one go: schemas are long. */
struct found {
	int64_t value; /* of o->measure */
	bool intact, hosts;
};

static int64_t single_value(sqlite3 *sq, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t value = -1;

	if (sqlite3_prepare_v2(sq, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		value = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return value;
}

static struct found look_into(const struct operation *o)
{
	struct found f = { .value = -1 };
	sqlite3 *sq = NULL;

	if (sqlite3_open(path, &sq) == SQLITE_OK) {
		f.value = single_value(sq, o->measure);
		f.intact = single_value(sq, "SELECT group_concat("
			"integrity_check) = 'ok' FROM "
			"pragma_integrity_check") == 1 &&
			   single_value(sq, "SELECT count(*) FROM "
					"pragma_foreign_key_check") == 0;
		f.hosts = single_value(sq, "SELECT count(*) FROM hosts") > 0;
	}
	sqlite3_close(sq);
	return f;
}

static bool check_file(struct tally *t, const struct operation *o,
		       enum fault_kind kind, unsigned at, bool good,
		       int64_t stored)
{
	struct err e = { 0 };
	char text[96];

	/* As the next tool opens it. */
	struct res_db *db = res_open(path, o->template ? RES_READ : RES_WRITE,
				     &e);
	if (!db)
		return complain(t, o, kind, at, "does not open again", e.msg);
	res_close(db);
	struct found f = look_into(o);
	if (!f.intact)
		return complain(t, o, kind, at, "the file", "is not intact");
	snprintf(text, sizeof(text), "%lld of %lld to %lld, %lld reported",
		 (long long)f.value, (long long)t->before, (long long)t->after,
		 (long long)stored);
	bool between = t->after >= t->before ?
		f.value >= t->before + stored && f.value <= t->after :
		f.value <= t->before && f.value >= t->after;
	/* Opening has brought an old version forward by now. */
	if (o->run == op_create || o->run == op_read)
		between = f.value == t->after;
	if ((good && f.value != t->after) || !between ||
	    (o->whole && f.value != t->before && f.value != t->after))
		return complain(t, o, kind, at, "holds", text);
	if (o->template && strcmp(o->template, "empty") && !f.hosts)
		return complain(t, o, kind, at, "what was there", "is gone");
	return true;
}

/* False when there are fewer calls than that. */
static bool try_fault(struct tally *t, const struct operation *o,
		      enum fault_kind kind, unsigned at)
{
	struct err e = { 0 };
	int64_t stored = 0;

	put_template(o);
	faults_arm(kind, at);
	bool good = o->run(&stored, &e);
	unsigned hits = faults.hits;
	faults_arm(FAULT_NONE, 0);
	if (!hits) {
		if (!good)
			complain(t, o, kind, at, "fails without a fault",
				 e.msg);
		return false;
	}
	t->points++;
	if (!good && (!strstr(e.msg, path) || !names_cause(kind, e.msg)))
		complain(t, o, kind, at, "the message", e.msg);
	check_file(t, o, kind, at, good, stored);
	return true;
}

static void test_operation(const struct operation *o)
{
	struct tally t = { 0 };
	struct err e = { 0 };
	int64_t stored = 0;

	put_template(o);
	t.before = o->template ? raw_sql(path, o->measure) : 0;
	put_template(o);
	bool good = o->run(&stored, &e);
	t.after = raw_sql(path, o->measure);
	ok(good, "%s: %s", o->name, good ? "works" : e.msg);
	ok(t.before != t.after || o->run == op_export, "and changes %lld to "
	   "%lld", (long long)t.before, (long long)t.after);
	for (int kind = FAULT_NONE + 1; kind < FAULT_COUNT; kind++)
		for (unsigned at = slow ? 1 : 1 + kind % 8;
		     try_fault(&t, o, kind, at); at += slow ? 1 : 8)
			;
	is_i64(t.odd, 0, "with a fault at each of %u points it is told, and "
	       "the file whole", t.points);
}

/* ---- templates ---- */

static void make_template(const char *name, bool full, bool accepted)
{
	struct err e = { 0 };

	res_remove(path);
	struct res_db *db = res_open(path, RES_WRITE, &e);
	if (!db)
		BUG("%s", e.msg);
	res_close(db);
	int64_t none;
	if ((full && !op_import(&none, &e)) ||
	    (accepted && !op_accept(&none, &e)))
		BUG("%s", e.msg);
	if (rename(path, template_path(name)))
		BUG("%s", name);
}

static void make_templates(void)
{
	static const char table[] = "name,value,unit,source\n"
		"branch.taken,31,cycle,a paper\nmem.l2,210,cycle,a blog\n";
	char command_line[256];
	struct err e = { 0 };

	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t.db", dir);
	snprintf(lines, sizeof(lines), "%s/lines", dir);
	snprintf(costs, sizeof(costs), "%s/costs.csv", dir);
	snprintf(other, sizeof(other), "%s", template_path("full"));
	snprintf(command_line, sizeof(command_line), "awk -f "
		 "tests/data/results/fixture.awk >%s", lines);
	if (system(command_line) ||
	    !file_write_unsynced(costs, table, sizeof(table) - 1, &e))
		BUG("no fixture");
	for (int v = 1; v <= 7; v++) {
		char name[8];

		snprintf(name, sizeof(name), "v%d", v);
		make_version(template_path(name), v);
	}
	make_template("empty", false, false);
	make_template("full", true, false);
	make_template("accepted", true, true);
}

int main(void)
{
	nowhere = fopen("/dev/null", "w");
	faults_install();
	make_templates();
	slow = getenv("T0_SLOW");
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (slow || !operations[i].slow)
			test_operation(&operations[i]);
	fclose(nowhere);
	remove_dir(dir);
	return plan_done();
}
