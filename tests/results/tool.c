/* t0-results as its user meets it: output, exit status, messages. */
#include <jansson.h>
#include <math.h>
#include <sys/wait.h>

#include "tests/results/results.h"

static char dir[64], path[96];
static struct buf out, err_out;

static void read_into(struct buf *b, const char *name)
{
	char file[96];

	buf_reset(b);
	snprintf(file, sizeof(file), "%s/%s", dir, name);
	file_read(file, 0, b, NULL);
	buf_adds(b, "");
}

/* Exit status of the tool in the test's folder; fills out and err_out. */
static int tool(const char *arguments)
{
	const char *build = getenv("T0_BUILD");
	char command[512];

	snprintf(command, sizeof(command),
		 "unset T0_DB; t=$(realpath '%s/t0-results') && cd '%s' && "
		 "\"$t\" %s >out 2>err", build ? build : "build/rel", dir,
		 arguments);
	int status = system(command);
	read_into(&out, "out");
	read_into(&err_out, "err");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fill_slots(struct res_db *db, int64_t run, struct err *e)
{
	struct res_slot s = {
		.encoding = "VOP3", .opcode = 259, .mnemonic = "v_add_f32",
		.signature = "v0", .expected = "executes", .emulated_ok = 1,
	};

	res_slot_put(db, run, &s, e);
	s = (struct res_slot){ .encoding = "VOP3", .opcode = 1023,
			       .verdict = RES_SLOT_ILLEGAL, .oracle = "",
			       .emulated_ok = -1 };
	res_slot_put(db, run, &s, e);
	s = (struct res_slot){ .encoding = "SOPP", .opcode = 2,
			       .verdict = RES_SLOT_HANGS, .reason = "deadline",
			       .difference = "expected executes",
			       .emulated_ok = -1 };
	res_slot_put(db, run, &s, e);
}

/* Run 1: complete, with everything.  Run 2: its process is gone. */
static void fill(void)
{
	/* Quartiles 0.62 and 0.7: only 9 is beyond 0.82. */
	static const double samples[] = { 0.6, 0.61, 0.62, 0.65, 2.0 / 3,
					  0.68, 0.7, 0.71, 9 };
	struct err e = { 0 };
	struct res_db *db = res_open(path, RES_WRITE, &e);
	int64_t run = db ? begin_run(db, &e) : 0, c = 0;
	struct res_result r = {
		.run = run, .metric = "latency", .unit = "s", .value = 2.0 / 3,
		.lo = 0.5, .hi = 0.75, .n = 9, .clock_hz = NAN,
		.origin = RES_EMULATED, .samples = samples, .n_samples = 9,
	};

	if (!ok(run == 1, "the fixture is made: %s", e.msg))
		return;
	res_case_id(db, "lds", "ds_load \"b32\"", NULL, &c, &e);
	r.case_id = c;
	res_result_add(db, &r, NULL, &e);
	res_verdict_add(db, &(struct res_verdict){
		.run = run, .case_id = c, .reason = "equals the reference" },
		&e);
	fill_slots(db, run, &e);
	res_run_finish(db, run, RES_COMPLETE, 0, NULL, &e);
	begin_run(db, &e);
	res_close(db);
	raw_sql(path, "UPDATE runs SET owner = 'nobody' WHERE id = 2; "
		      "UPDATE runs SET start_ns = 1700000000000000000, "
		      "end_ns = 1700000001500000000 WHERE id = 1");
	is_str(e.msg, "", "the fixture is whole");
}

static json_t *json(const char *what)
{
	json_error_t e;
	json_t *j = json_loads(out.data, 0, &e);

	ok(j, "%s is JSON: %s", what, j ? "" : e.text);
	return j;
}

static void test_list(void)
{
	is_i64(tool("list --db t0.db"), 0, "list succeeds");
	is_str(err_out.data, "", "list is silent on stderr");
	has_str(out.data,
		"run  started               tool     device  origin    state"
		"        cases  slots  pass  fail  open\n"
		"  1  2023-11-14T22:13:20Z  t0-test  Soft    emulated  "
		"complete         1      3     1     0     0\n",
		"list prints a run's counts in a table");
	has_str(out.data, "interrupted", "a killed run is interrupted");

	is_i64(tool("--json list"), 0, "list --json succeeds");
	json_t *j = json("list --json");
	json_t *first = json_array_get(j, 0);
	is_i64((int64_t)json_array_size(j), 2, "both runs are in it");
	is_str(json_string_value(json_object_get(first, "origin")), "emulated",
	       "the origin is in it");
	is_i64(json_integer_value(json_object_get(first, "slots")), 3,
	       "counts are numbers");
	json_decref(j);

	is_i64(tool("list --csv"), 0, "list --csv succeeds");
	has_str(out.data, "run,started,tool,device,origin,state,cases,slots,"
		"pass,fail,open\r\n1,2023-11-14T22:13:20Z,t0-test,Soft,"
		"emulated,complete,1,3,1,0,0\r\n", "CSV has head and row");
}

static void test_show_text(void)
{
	is_i64(tool("show 1"), 0, "show succeeds");
	has_str(out.data, "command     t0-test --seed 'it'\\''s 7'\n",
		"the command is shown");
	has_str(out.data, "duration    1.5 s\n", "so is the duration");
	has_str(out.data, "ds_load \"b32\"", "the case is shown");
	has_str(out.data, " 666.67  ms ", "the value in a unit of its size");
	has_str(out.data, "equals the reference", "the verdict's reason too");
	has_str(out.data,
		"encoding  slots  executes  illegal  faults  hangs  unproven"
		"  differences\n"
		"SOPP          1         0        0       0      1         0"
		"            1\n"
		"VOP3          2         1        1       0      0         0"
		"            0\n"
		"total         3         1        1       0      1         0"
		"            1\n", "slots are counted by encoding");
	ok(!strstr(out.data, "v_add_f32"), "slots are not listed unasked");
	is_i64(tool("show 1 --slots"), 0, "show --slots succeeds");
	has_str(out.data, "v_add_f32", "--slots lists them");
	has_str(out.data, "expected executes", "with their differences");
	is_i64(tool("show last"), 0, "show last succeeds");
	has_str(out.data, "state       interrupted", "last is run 2");
	ok(!strstr(out.data, "encoding"), "a run without slots has no table");
}

static void test_show_programs(void)
{
	is_i64(tool("show 1 --json --slots"), 0, "show --json succeeds");
	json_t *j = json("show --json");
	json_t *r = json_array_get(json_object_get(j, "results"), 0);
	json_t *s = json_array_get(json_object_get(j, "slots"), 1);
	is_str(json_string_value(json_object_get(json_object_get(j, "run"),
						 "seed")),
	       "0x0000000000000007", "the run is an object");
	is_f64(json_real_value(json_object_get(r, "value")), 2.0 / 3,
	       "values keep every bit");
	is_i64(json_integer_value(json_object_get(r, "outliers")), 1,
	       "outliers are counted");
	ok(json_is_null(json_object_get(r, "clock_hz")),
	   "what was not measured is null");
	is_str(json_string_value(json_object_get(r, "correct")), "pass",
	       "the result has its correctness verdict");
	is_i64(json_integer_value(json_object_get(s, "opcode")), 259,
	       "slots are listed in order");
	is_i64((int64_t)json_array_size(json_object_get(j, "verdicts")), 1,
	       "verdicts are listed");
	is_i64((int64_t)json_array_size(json_object_get(j, "slot_summary")), 3,
	       "the summary is listed");
	json_decref(j);
	is_i64(tool("show 2 --json"), 0, "an empty run as JSON");
	json_decref(json("an empty run"));

	is_i64(tool("show 1 --csv"), 0, "show --csv succeeds");
	has_str(out.data, "lds,\"ds_load \"\"b32\"\"\",{},latency,"
		"0.6666666666666666,s,0.5,0.75,9,1,", "results as CSV");
	is_i64(tool("show 1 --csv --slots -o slots.csv"), 0, "-o succeeds");
	is_str(out.data, "", "then nothing is on stdout");
	read_into(&out, "slots.csv");
	has_str(out.data, "VOP3,1023,\"\",,illegal,", "slots as CSV in a file");
}

static void fails(const char *arguments, const char *text)
{
	is_i64(tool(arguments), 2, "\"%s\" exits with 2", arguments);
	has_str(err_out.data, text, "\"%s\" says why", arguments);
	is_str(out.data, "", "\"%s\" prints no result", arguments);
}

static void test_trouble(void)
{
	fails("show 7", "t0.db: there is no run 7; the newest are 1, 2");
	fails("show first", "\"first\" is not a number");
	fails("show 1 2", "unexpected operand \"2\"");
	fails("", "no command");
	fails("lsit", "no command \"lsit\"");
	fails("list --json --csv", "exclude each other");
	fails("list --db absent.db", "absent.db: there is no such database");
	fails("list --db slots.csv", "slots.csv: not a T0 database");
	fails("list -o no/such/file", "no/such/file");
	is_i64(tool("list >/dev/full; exit $?; :"), 2,
	       "a full disk for stdout exits 2");
	raw_sql(path, "PRAGMA user_version = 99");
	fails("list", "written by a newer T0 (schema 99");
	raw_sql(path, "PRAGMA user_version = 2");

	is_i64(tool("list --db empty.db 2>/dev/null; : >empty.db; "
		    "\"$t\" list --db empty.db"), 0, "no runs is no error");
	has_str(err_out.data, "holds no runs yet", "but is told");
	is_i64(tool("list --db empty.db --quiet"), 0, "--quiet succeeds");
	is_str(err_out.data, "", "--quiet does not tell");
	fails("show --db empty.db", "there is no run last; it holds no runs");
	is_i64(tool("show --help"), 0, "show --help succeeds");
	has_str(out.data, "--slots", "and names its options");
}

int main(void)
{
	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t0.db", dir);
	fill();
	test_list();
	test_show_text();
	test_show_programs();
	test_trouble();
	buf_fini(&out);
	buf_fini(&err_out);
	remove_dir(dir);
	return plan_done();
}
