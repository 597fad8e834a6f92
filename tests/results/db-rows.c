/* What goes into the database comes out again; what may not go in does not. */
#include <math.h>
#include <sys/wait.h>

#include "results/db/res.h"
#include "tests/results/results.h"

static char dir[64], path[96];

static int64_t count(const char *sql)
{
	return raw_sql(path, sql);
}

static void test_facts(struct res_db *db)
{
	struct res_device d = { .name = "A", .gfx = "gfx1100", .uid = "1" };
	int64_t a = 0, b = 0;
	struct err e = { 0 };

	ok(res_device_id(db, &d, &a, &e) && res_device_id(db, &d, &b, &e),
	   "a device is stored: %s", e.msg);
	ok(a > 0, "with a positive id");
	is_i64(b, a, "the same facts give the same id");
	d.uid = "2";
	ok(res_device_id(db, &d, &b, &e) && b != a,
	   "a twin with another unique id is another device");
	d.facts = "not json";
	ok(!res_device_id(db, &d, &b, &e),
	   "facts that are not JSON are refused");
	is_i64(e.code, ERR_USAGE, "as a wrong argument");
	ok(res_host_self(db, &a, &e) && res_host_self(db, &b, &e) && a == b,
	   "this host has one id");
	ok(res_build_self(db, &a, &e) && res_build_self(db, &b, &e) && a == b,
	   "this executable has one id");
	is_i64(count("SELECT length(binary) FROM builds"), 41,
	       "the build has an algorithm and 128 bits in hex");
	is_i64(count("SELECT cores FROM hosts"), sysconf(_SC_NPROCESSORS_ONLN),
	       "the host's processors are stored");
}

static void test_result(struct res_db *db, int64_t run)
{
	static const double samples[] = { 3.0, 1.0, 0.1, 2e-300, 5e-324 };
	struct err e = { 0 };
	int64_t c = 0, id = 0;
	struct res_result r = {
		.run = run, .metric = "latency", .unit = "s", .value = 1.0,
		.lo = 0.1, .hi = 3.0, .n = 5, .clock_hz = 2.5e9,
		.origin = RES_HARDWARE, .samples = samples, .n_samples = 5,
	};

	ok(res_case_id(db, "valu", "v_add_f32", "{\"waves\":1}", &c, &e),
	   "a case is named: %s", e.msg);
	r.case_id = c;
	ok(res_result_add(db, &r, &id, &e), "a result is stored: %s", e.msg);
	is_i64(count("SELECT value = 1.0 AND lo = 0.1 AND hi = 3.0 AND n = 5 "
		     "AND clock_hz = 2.5e9 AND unit = 's' AND better = 'lower' "
		     "AND origin = 'hardware' AND source = '' "
		     "AND area = 'valu' AND params = '{\"waves\":1}' "
		     "AND correct IS NULL FROM v_results"), 1,
	       "every column comes back");
	is_i64(count("SELECT group_concat(value = CASE idx WHEN 0 THEN 3.0 "
		     "WHEN 1 THEN 1.0 WHEN 2 THEN 0.1 WHEN 3 THEN 2e-300 "
		     "ELSE 5e-324 END, '') FROM samples"), 11111,
	       "samples come back in order, bit for bit");
	ok(!res_result_add(db, &r, NULL, &e),
	   "a second row of the same metric is refused");
	has_str(e.msg, "latency", "and the metric named");
	is_i64(count("SELECT count(*) FROM samples"), 5,
	       "no sample of the refused row stays");
}

static void test_verdict(struct res_db *db, int64_t run)
{
	struct err e = { 0 };
	int64_t c = 0;
	struct res_verdict v = {
		.run = run, .kind = RES_CORRECTNESS, .answer = RES_NODATA,
		.reason = "no reference",
	};

	ok(res_verdict_add(db, &v, &e), "a run's verdict is stored: %s", e.msg);
	is_i64(count("SELECT correct = 'no data' FROM v_results"), 1,
	       "a result is under its run's verdict");
	res_case_id(db, "valu", "v_add_f32", "{\"waves\":1}", &c, &e);
	v.case_id = c;
	v.answer = RES_FAIL;
	res_verdict_add(db, &v, &e);
	v.answer = RES_PASS;
	ok(res_verdict_add(db, &v, &e), "a case's too: %s", e.msg);
	is_i64(count("SELECT correct = 'pass' FROM v_results"), 1,
	       "the case's newest verdict wins over the run's");
	is_i64(count("SELECT passed * 100 + failed * 10 + undecided "
		     "FROM v_runs"), 111, "v_runs counts all three");
	v.run = 999;
	ok(!res_verdict_add(db, &v, &e), "a verdict on no run is refused");
	has_str(e.msg, "FOREIGN KEY", "because of the reference");
}

static struct res_result good(int64_t run, int64_t c, const char *metric)
{
	return (struct res_result){
		.run = run, .case_id = c, .metric = metric, .unit = "s",
		.value = 2, .lo = NAN, .hi = NAN, .clock_hz = NAN, .n = 1,
	};
}

#define REFUSED(change, text)                                             \
	do {                                                              \
		struct res_result r = good(run, c, "m" #change);          \
		struct err e = { 0 };                                     \
		r.change;                                                 \
		ok(!res_result_add(db, &r, NULL, &e), #change " refused"); \
		is_i64(e.code, ERR_USAGE, #change ": the code");          \
		has_str(e.msg, text, #change ": the reason");             \
	} while (0)

static void test_refused(struct res_db *db, int64_t run)
{
	static const double nan_sample[] = { 1.0, NAN };
	int64_t before = count("SELECT count(*) FROM results"), c = 0;
	struct err none = { 0 };

	res_case_id(db, "x", "y", NULL, &c, &none);
	REFUSED(value = NAN, "value");
	REFUSED(value = INFINITY, "value is finite");
	REFUSED(lo = 1, "the interval holds the value");
	REFUSED(lo = r.hi = 3, "the interval holds the value");
	REFUSED(n = -1, "n counts samples");
	REFUSED(clock_hz = 0, "unknown clock is not 0");
	REFUSED(metric = "", "names its metric");
	REFUSED(case_id = 0, "case_id");
	REFUSED(run = 12345, "FOREIGN KEY");
	REFUSED(origin = RES_PUBLISHED, "names its source");
	REFUSED(samples = nan_sample; r.n_samples = 2, "sample 1");
	is_i64(count("SELECT count(*) FROM results"), before,
	       "nothing that was refused stayed");
	ok(!res_case_id(db, "", "y", NULL, &c, &none), "a case needs an area");
	ok(!res_case_id(db, "a", "y", "[1]", &c, &none),
	   "case params are an object");
	ok(!res_case_id(db, "a", "y", "{", &c, &none),
	   "case params are whole JSON");
	struct res_result r = good(run, 0, "fine");
	res_case_id(db, "x", "y", NULL, &r.case_id, &none);
	ok(res_result_add(db, &r, NULL, &none), "a good row is still taken");
}

static bool copy_slot(void *ctx, const struct res_slot *s)
{
	struct buf *b = ctx;

	buf_printf(b, "%s %d %s|%s|%s|%s|%s|%s|%s|%d|%s|%s\n", s->encoding,
		   (int)s->opcode, s->form, s->mnemonic ? s->mnemonic : "NULL",
		   res_slot_verdict_name(s->verdict), s->signature, s->reason,
		   s->expected ? s->expected : "NULL",
		   s->oracle ? s->oracle : "NULL", s->emulated_ok,
		   s->difference, s->errata);
	return strcmp(s->encoding, "ZZZ") != 0;
}

static void test_slots(struct res_db *db, int64_t run)
{
	struct res_slot s[] = {
		{ .encoding = "VOP3", .opcode = 10, .mnemonic = "v_x",
		  .signature = "v0=1", .expected = "executes", .oracle = "v_x",
		  .emulated_ok = 1 },
		{ .encoding = "VOP3", .opcode = 9, .emulated_ok = -1,
		  .verdict = RES_SLOT_ILLEGAL, .oracle = "" },
		{ .encoding = "SOP1", .opcode = 3, .form = "w64",
		  .verdict = RES_SLOT_HANGS, .reason = "2 s",
		  .difference = "table: executes", .errata = "E1" },
	};
	struct err e = { 0 };
	struct buf b = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(s); i++)
		ok(res_slot_put(db, run, &s[i], &e), "slot %zu stored: %s", i,
		   e.msg);
	ok(res_slot_each(db, run, copy_slot, &b, &e), "slots are read");
	is_str(b.data,
	       "SOP1 3 w64|NULL|hangs||2 s|NULL|NULL|0|table: executes|E1\n"
	       "VOP3 9 |NULL|illegal|||NULL||-1||\n"
	       "VOP3 10 |v_x|executes|v0=1||executes|v_x|1||\n",
	       "they come back whole and in order");
	s[1].verdict = RES_SLOT_UNPROVEN;
	ok(!res_slot_put(db, run, &s[1], &e),
	   "unproven without why is refused");
	has_str(e.msg, "says why", "with the reason");
	s[1].reason = "no memory operand";
	ok(res_slot_put(db, run, &s[1], &e), "a slot is replaced: %s", e.msg);
	is_i64(count("SELECT slots * 10 + unproven FROM v_slot_summary "
		     "WHERE encoding = 'VOP3'"), 21, "and counted once");
	is_i64(count("SELECT differences FROM v_slot_summary "
		     "WHERE encoding = 'SOP1'"), 1, "differences are counted");
	buf_fini(&b);
}

static bool copy_change(void *ctx, const struct res_slot *was,
			const struct res_slot *is)
{
	const struct res_slot *s = is ? is : was;

	buf_printf(ctx, "%s %d %s>%s\n", s->encoding, (int)s->opcode,
		   was ? res_slot_verdict_name(was->verdict) : "-",
		   is ? res_slot_verdict_name(is->verdict) : "-");
	return true;
}

/* What was stored with printf stays the same text: cases are found by it. */
static void test_params(void)
{
	char p[512];

	res_params(p, sizeof(p), "");
	is_str(p, "{}", "no parameters");
	res_params(p, sizeof(p), "bytes:U threads:u", UINT64_C(1) << 40, 8u);
	is_str(p, "{\"bytes\":1099511627776,\"threads\":8}",
	       "a memory's bandwidth");
	res_params(p, sizeof(p), "bytes:U workgroups:d", (uint64_t)4096, 1);
	is_str(p, "{\"bytes\":4096,\"workgroups\":1}", "of one workgroup");
	res_params(p, sizeof(p), "with:s", "v_add_f32");
	is_str(p, "{\"with\":\"v_add_f32\"}", "an overlap");
	res_params(p, sizeof(p), "mode:s packets:u", "barrier", 64u);
	is_str(p, "{\"mode\":\"barrier\",\"packets\":64}", "a dispatch");
	res_params(p, sizeof(p), "stride:d", -2);
	is_str(p, "{\"stride\":-2}", "LDS at a stride");
	res_params(p, sizeof(p), "waves:u code_bytes:U", 16u, (uint64_t)1234);
	is_str(p, "{\"waves\":16,\"code_bytes\":1234}", "a mix");
	res_params(p, sizeof(p), "phase:s tokens:u batch:u", "decode", 128u,
		   4u);
	is_str(p, "{\"phase\":\"decode\",\"tokens\":128,\"batch\":4}",
	       "the engine");
	res_params(p, sizeof(p), "set:s row:U", "tritonblas judge",
		   (uint64_t)7);
	is_str(p, "{\"set\":\"tritonblas judge\",\"row\":7}", "a prediction");
	res_params(p, sizeof(p), "m:u n:u k:u batch:u type:s config:s "
		   "operands:s caches:s", 1u, 2u, 3u, 4u, "bf16", "128x128",
		   "normal", "warm");
	is_str(p, "{\"m\":1,\"n\":2,\"k\":3,\"batch\":4,\"type\":\"bf16\","
		  "\"config\":\"128x128\",\"operands\":\"normal\","
		  "\"caches\":\"warm\"}", "a tuned product");
	res_params(p, sizeof(p), "m:u ?batch:u ?caches:s ?b:u", 1u, 0u, NULL,
		   2u);
	is_str(p, "{\"m\":1,\"b\":2}", "what need not be there");
	res_params(p, sizeof(p), "?a:u ?b:s", 0u, NULL);
	is_str(p, "{}", "nothing that need be there");
	res_params(p, sizeof(p), "model:X fresh:b copied:b",
		   UINT64_C(0x12abc), false, true);
	is_str(p, "{\"model\":\"0000000000012abc\",\"fresh\":false,"
		  "\"copied\":true}", "a run of the engine");
	res_params(p, sizeof(p), "with:s", "a\"b\\c\n");
	is_str(p, "{\"with\":\"a\\\"b\\\\c\\u000a\"}",
	       "what JSON must escape");
}

static void test_slot_algorithms(struct res_db *db, struct err *e)
{
	struct err why = { 0 };
	struct buf b = { 0 };
	int64_t old = begin_run(db, e), now = begin_run(db, e);
	struct res_slot s = { .encoding = "SOP1", .opcode = 2,
			      .signature = "s0=1 #fnv1a-64:1" };
	struct res_slot lds = { .encoding = "DS", .opcode = 1,
				.signature = "lds:32 #fnv1a-64:2" };

	res_slot_put(db, old, &s, e);
	res_slot_put(db, now, &s, e);
	res_slot_put(db, old, &lds, e);
	res_slot_put(db, now, &lds, e);
	ok(res_slot_diff(db, old, now, copy_change, &b, &why) && !b.len,
	   "signatures of one algorithm are compared: %s", why.msg);
	s.signature = "s0=1 #xxh3-64:1";
	res_slot_put(db, now, &s, e);
	ok(!res_slot_diff(db, old, now, copy_change, &b, &why),
	   "those of two are not");
	is_i64(why.code, ERR_UNSUPPORTED, "by a code of its own");
	has_str(why.msg, "different algorithms", "which is said");
	has_str(why.msg, "measure the older again", "and what to do");
	buf_fini(&b);
	res_run_finish(db, old, RES_FAILED, 0, NULL, e);
	res_run_finish(db, now, RES_FAILED, 0, NULL, e);
}

/* Also the rule by which a run finds the one before it. */
static void test_slot_diff(struct res_db *db, int64_t first)
{
	struct err e = { 0 };
	struct buf b = { 0 };
	int64_t second = begin_run(db, &e), previous = -1;
	struct res_slot s[] = {
		{ .encoding = "SOP1", .opcode = 2 },
		{ .encoding = "VOP3", .opcode = 9 },
		{ .encoding = "VOP3", .opcode = 10, .expected = "executes",
		  .signature = "v0=1", .errata = "not looked at" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(s); i++)
		res_slot_put(db, second, &s[i], &e);
	ok(res_slot_diff(db, first, second, copy_change, &b, &e),
	   "two runs are compared: %s", e.msg);
	is_str(b.data, "SOP1 2 ->executes\nSOP1 3 hangs>-\n"
	       "VOP3 9 unproven>executes\n",
	       "new, gone and changed slots are told, in order");
	test_slot_algorithms(db, &e);
	test_params();
	ok(res_run_previous(db, second, &previous, &e) && previous == 0,
	   "a run that is not complete is no previous one");
	ok(res_run_finish(db, first, RES_COMPLETE, 0, NULL, &e),
	   "the first is completed: %s", e.msg);
	ok(res_run_previous(db, second, &previous, &e) && previous == first,
	   "then it is");
	is_i64(count("SELECT max(run) FROM v_latest_slots"), first,
	       "the latest slots are those of the newest complete run");
	ok(res_run_finish(db, second, RES_FAILED, 3, "fault", &e),
	   "and failed");
	ok(!res_run_finish(db, second, RES_COMPLETE, 0, NULL, &e),
	   "a run ends once");
	has_str(e.msg, "no running run 2", "and the message says so");
	buf_fini(&b);
}

static void test_run(struct res_db *db, int64_t run)
{
	struct res_start s;
	struct err e = { 0 };
	int64_t id = -1;

	is_i64(count("SELECT argv = 't0-test --seed ''it''\\''''s 7''' "
		     "FROM v_runs"), 1, "the command line is quoted for sh");
	is_i64(count("SELECT state = 'running' AND end_ns IS NULL AND seed = 7 "
		     "AND length(uuid) = 32 AND origin = 'emulated' AND "
		     "start_ns > 1.7e18 AND cu_count = 96 FROM v_runs"), 1,
	       "a new run is running");
	start_fill(db, &s, &e);
	ok(res_run_resume(db, &s, &id, &e) && id == 0,
	   "a run whose process lives is not taken over");
	s.seed = UINT64_MAX;
	s.inputs = "{\"what\":\"seed\"}";
	ok(res_run_begin(db, &s, &id, &e) && id == run + 1, "a second run");
	is_i64(count("SELECT seed FROM runs WHERE id = 2"), -1,
	       "a seed keeps its 64 bits");
	s.tool = "";
	ok(!res_run_begin(db, &s, &id, &e), "a run without a tool is refused");
	s.tool = "t0-test";
	s.host = 0;
	ok(!res_run_begin(db, &s, &id, &e), "a run without a host is refused");
	raw_sql(path, "DELETE FROM runs WHERE id = 2; UPDATE sqlite_sequence "
		      "SET seq = 1 WHERE name = 'runs'");
}

static void killed_run(struct res_slot *s)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct res_db *db = res_open(path, RES_WRITE, NULL);
		struct res_start st;
		int64_t run = 0;
		bool fine = db && start_fill(db, &st, NULL);
		st.tool = "t0-killed";
		fine = fine && res_run_begin(db, &st, &run, NULL) &&
		       res_slot_put(db, run, s, NULL);
		_exit(fine ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(status == 0, "a process dies and leaves a run");
}

static void test_resume(struct res_db *db)
{
	struct res_slot slot = { .encoding = "DS", .opcode = 1 };
	struct res_start s;
	struct err e = { 0 };
	int64_t run = 0, again = 0;

	killed_run(&slot);
	start_fill(db, &s, &e);
	s.tool = "t0-killed";
	s.inputs = "{\"what\":\"else\"}";
	ok(res_run_resume(db, &s, &run, &e) && run == 0,
	   "other inputs do not take it over");
	s.inputs = "{\"what\":\"all\"}";
	ok(res_run_resume(db, &s, &run, &e) && run > 0,
	   "the same work takes it over: %s", e.msg);
	is_i64(count("SELECT count(*) FROM v_slots WHERE tool = 't0-killed'"),
	       1, "with what it had found");
	ok(res_run_resume(db, &s, &again, &e) && again == 0, "only once");
	res_run_finish(db, run, RES_INTERRUPTED, 130, "Ctrl-C", &e);
	ok(res_run_resume(db, &s, &again, &e) && again == run,
	   "an interrupted run is taken over");
	is_i64(count("SELECT state = 'running' AND end_ns IS NULL AND "
		     "exit_code IS NULL AND reason = '' FROM runs "
		     "WHERE tool = 't0-killed'"), 1, "and runs again");
	res_run_finish(db, run, RES_COMPLETE, 0, NULL, &e);
	ok(res_run_resume(db, &s, &again, &e) && again == 0,
	   "a complete run is left alone");
}

/* Owners are known by boot, pid namespace, pid and start time. */
static void test_owner(void)
{
	char self[160], other[200];

	res_owner_self(self, sizeof(self));
	ok(res_owner_alive(self), "this process is alive");
	snprintf(other, sizeof(other), "x%s", self);
	ok(!res_owner_alive(other), "a process of another boot is not");
	snprintf(other, sizeof(other), "%s9", self);
	ok(!res_owner_alive(other), "nor is one that had the same pid before");
	unsigned long long ns, start;
	long pid;
	char boot[64];
	is_i64(sscanf(self, "%63s %llu %ld %llu", boot, &ns, &pid, &start), 4,
	       "an owner has four parts");
	snprintf(other, sizeof(other), "%s %llu %ld %llu", boot, ns + 1, pid,
		 start + 1);
	ok(res_owner_alive(other), "one in another container counts as alive");
	ok(!res_owner_alive(""), "an ended run has no owner");
}

/*
 * A second handle of this process must not cost the first one its locks: else
 * another process that closes the file believes to be the last and removes the
 * log under us.
 */
static void test_two_handles(struct res_db *db)
{
	struct res_slot slot = { .encoding = "SMEM" };
	struct err e = { 0 };
	char log[128];

	snprintf(log, sizeof(log), "%s-wal", path);
	int64_t run = begin_run(db, &e);
	struct res_db *second = res_open(path, RES_READ, &e);
	ok(second, "a process may have two handles: %s", e.msg);
	res_close(second);
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		res_close(res_open(path, RES_WRITE, NULL));
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(access(log, F_OK) == 0, "the log stays while we have the file");
	ok(res_slot_put(db, run, &slot, &e), "and we go on writing: %s", e.msg);
}

static void test_batch(struct res_db *db)
{
	struct res_slot s = { .encoding = "MUBUF" };
	struct err e = { 0 };
	int64_t run = begin_run(db, &e);
	const char *rows = "SELECT count(*) FROM slot_verdicts "
			   "WHERE encoding = 'MUBUF'";

	res_batch_begin(db);
	for (s.opcode = 0; s.opcode < 10; s.opcode++)
		res_slot_put(db, run, &s, &e);
	is_i64(count(rows), 0, "a batch is not seen before its commit");
	s.encoding = "";
	ok(!res_slot_put(db, run, &s, &e), "a row inside a batch is refused");
	s.encoding = "MUBUF";
	ok(res_batch_commit(db, &e), "the batch is committed: %s", e.msg);
	is_i64(count(rows), 10, "the rest of the batch is there");
	for (; s.opcode < 10 + 256; s.opcode++)
		res_slot_put(db, run, &s, &e);
	is_i64(count(rows), 266, "256 rows commit themselves");
	res_slot_put(db, run, &s, &e);
	usleep(1100000);
	s.opcode++;
	res_slot_put(db, run, &s, &e);
	is_i64(count(rows), 268, "so does a row after a second");
	ok(res_batch_end(db, &e), "a batch ends: %s", e.msg);
	s.opcode++;
	res_slot_put(db, run, &s, &e);
	is_i64(count(rows), 269, "then every row commits by itself");
}

/* A run that is stored as a whole: `kill`, by a process that dies in it. */
static int whole_run(bool kill)
{
	struct err e = { 0 };
	struct res_slot slot = { .encoding = "MTBUF" };
	struct res_db *db = res_open(path, RES_WRITE, &e);
	struct res_start s = { .tool = "t0 whole", .whole = true };
	int64_t run = 0;
	bool good = db && res_host_self(db, &s.host, &e) &&
		    res_build_self(db, &s.build, &e) &&
		    res_run_begin(db, &s, &run, &e);

	res_batch_begin(db);
	for (slot.opcode = 0; good && slot.opcode < 600; slot.opcode++)
		good = res_slot_put(db, run, &slot, &e);
	good = good && res_batch_end(db, &e);
	if (kill)
		raise(SIGKILL);
	good = good && res_run_finish(db, run, RES_COMPLETE, 0, NULL, &e);
	slot.encoding = "MIMG";
	good = good && res_slot_put(db, run, &slot, &e);
	is_i64(count("SELECT count(*) FROM slot_verdicts "
		     "WHERE encoding = 'MIMG'"), 1,
	       "behind it every row commits by itself: %s", e.msg);
	res_close(db);
	return !good;
}

static void test_whole(void)
{
	const char *rows = "SELECT count(*) FROM slot_verdicts "
			   "WHERE encoding = 'MTBUF'";
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(whole_run(true));
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status), "a writer of a whole run is killed");
	is_i64(count("SELECT count(*) FROM runs WHERE tool = 't0 whole'"), 0,
	       "nothing of its run is there");
	is_i64(count(rows), 0, "nor of its rows");
	ok(whole_run(false) == 0, "one that lives");
	is_i64(count("SELECT count(*) FROM runs WHERE tool = 't0 whole' "
		     "AND state = 'complete'"), 1, "has stored its run");
	is_i64(count(rows), 600, "and all its rows");
}

static void test_query(struct res_db *db)
{
	struct table t;
	struct err e = { 0 };
	int64_t n = -1;

	table_init(&t, "text,#int,#real,none");
	ok(res_query(db, &t, 0, &e, "SELECT ?, ?, ?, ?", "tidd", "a,b",
		     (int64_t)-5, 0.1, NAN), "a query is answered: %s", e.msg);
	is_str(t.row[0][0], "a,b", "text");
	is_str(t.row[0][1], "-5", "an integer");
	is_str(t.row[0][2], "0.1", "a real in the fewest digits");
	is_str(t.row[0][3], NULL, "NaN is NULL and no cell");
	ok(res_query(db, &t, 3, &e, "SELECT NULL, NULL, ?, NULL", "d",
		     2.0 / 3), "with three digits");
	is_str(t.row[1][2], "0.667", "a real is rounded");
	table_fini(&t);
	ok(res_query_int(db, &n, &e, "SELECT id FROM runs WHERE id < 0", "") &&
	   n == 0, "no row is 0");
	ok(!res_query_int(db, &n, &e, "SELECT x FROM nowhere", ""),
	   "wrong SQL is an error");
	has_str(e.msg, "nowhere", "that says what is wrong");
}

int main(void)
{
	struct err e = { 0 };

	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t0.db", dir);
	struct res_db *db = res_open(path, RES_WRITE, &e);
	if (!ok(db, "the database opens: %s", e.msg))
		return plan_done();
	test_facts(db);
	int64_t run = begin_run(db, &e);
	is_i64(run, 1, "the first run: %s", e.msg);
	test_run(db, run);
	test_result(db, run);
	test_verdict(db, run);
	test_refused(db, run);
	test_slots(db, run);
	test_slot_diff(db, run);
	test_resume(db);
	test_owner();
	test_two_handles(db);
	test_batch(db);
	test_whole();
	test_query(db);
	res_close(db);
	ok(is_intact(path), "the file is intact");
	raw_sql(path, "PRAGMA foreign_keys = ON; DELETE FROM runs");
	is_i64(count("SELECT (SELECT count(*) FROM results) + (SELECT count(*) "
		     "FROM samples) + (SELECT count(*) FROM verdicts) + "
		     "(SELECT count(*) FROM slot_verdicts)"), 0,
	       "what belongs to a run goes with it");
	remove_dir(dir);
	return plan_done();
}
