/*
 * The probes on the soft device with the simulator's clock: they have to find
 * out what the simulator was told, also when it is told something else, and to
 * notice when a kernel computes the wrong thing.  Nothing of it may become a
 * cost.
 */
#include <math.h>

#include "isa/verify/verify.h"

#include "probes/micro/micro.h"
#include "tests/results/results.h"

static const _Atomic int stop;
static char dir[64], db[96];
static char prog[] = "7340", *argv[] = { prog, NULL };

static struct probe_opts options(const char *const *set, int n)
{
	return (struct probe_opts){ .device = "sim", .db = db, .seed = 1,
				    .quiet = true, .argc = 1, .argv = argv,
				    .stop = &stop, .format_out = "/dev/null",
				    .set = { (const char **)set, n } };
}

static const struct micro_inst *inst(const char *name)
{
	size_t n;
	const struct micro_inst *v = micro_insts(&n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i].name, name))
			return &v[i];
	return NULL;
}

/* Cycles of one probe; NaN and a failed check when it could not be had. */
static double measure(struct micro_device *d, const struct micro_inst *i,
		      bool stream, uint32_t waves)
{
	struct micro_probe p;
	struct err e = { 0 };
	double v = NAN;

	if (!micro_inst_probe(&p, d, i, stream, waves, &e) ||
	    !micro_probe_run(&p, 1, &e))
		diag("%s: %s", i->name, e.msg);
	else if (p.series.n && p.right && p.has_values)
		v = probe_series_median(&p.series).value;
	micro_probe_fini(&p);
	return v;
}

/* What the verifier has against a kernel; a line per finding. */
static int findings(const struct micro_probe *p, const char *name)
{
	struct verify_input in;
	struct verify_report r = { 0 };
	struct err e = { 0 };
	int n = 0;

	verify_input_raw(&in, (struct isa_target){ ISA_GFX11, 32, false },
			 p->code.data, p->code.len);
	/*
	 * A chain of one transcendental into the next is what is measured: the
	 * wait that compilers put between would be measured with it.  On a
	 * card that got it wrong the values would say so.
	 */
	in.allow[VERIFY_HZ_TRANS] = !p->stream;
	/* Scalar loads come back in any order, all with the same zero; what a
	 * message returns is not looked at. */
	in.allow[VERIFY_WAIT_LGKM] = p->stream &&
				     (!strcmp(name, "s_load_b32") ||
				      !strcmp(name, "s_sendmsg_rtn_b32"));
	if (!isa_verify(&in, &r, &e))
		n = 1;
	for (int i = 0; i < r.n; i++) {
		diag("%s: %s: %s (%s)", name, verify_rule_name(r.v[i].rule),
		     r.v[i].what, r.v[i].text);
		n++;
	}
	verify_report_fini(&r);
	verify_input_fini(&in);
	return n;
}

static void near_to(double got, double want, const char *what)
{
	if (!ok(fabs(got - want) <= 0.02 * want, "%s: within 2 %%", what))
		diag("got %g, wanted %g", got, want);
}

/* Every instruction that stands for a row gives the row. */
static void test_rows(void)
{
	struct probe_opts o = options(NULL, 0);
	struct micro_device d;
	struct err e = { 0 };
	size_t n;
	const struct micro_inst *v = micro_insts(&n);

	if (!ok(micro_device_open(&d, &o, "test", "x", &e), "opens: %s",
		e.msg))
		return;
	for (size_t i = 0; i < n; i++)
		for (int stream = 0; stream < 2; stream++) {
			const char *row = stream ? v[i].interval :
						   v[i].latency;
			const char *text = stream ? v[i].stream : v[i].chain;
			char what[128];

			if (!*row || !*text)
				continue;
			snprintf(what, sizeof(what), "%s is %s", v[i].name,
				 row);
			near_to(measure(&d, &v[i], stream, 1),
				cost_value(&d.costs, cost_row_find(row)), what);
		}
	is_u64((uint64_t)micro_device_close(&d, true, &e), EXIT_YES, "closes");
}

/* Rows without a name in the table, and rows that were changed. */
static void test_perturbed(void)
{
	static const char *const set[] = { "valu.latency=6",
					   "trans.issue=8",
					   "lds.load.latency=41",
					   "branch.taken=19",
					   "wmma.issue=48",
					   "wmma.latency=50",
					   "smem.latency=55",
					   "vmem.load.issue=2" };
	static const struct {
		const char *name;
		bool stream;
		double want;
	} rows[] = {
		{ "v_add_f32", false, 6 },    { "v_fma_f32", false, 6 },
		{ "v_xor_b32", false, 6 },    { "v_rcp_f32", true, 8 },
		{ "v_rcp_f32", false, 10 },   { "ds_load_b32", false, 41 },
		{ "s_branch taken", false, 19 },
		{ "v_wmma_f32_16x16x16_f16", true, 48 },
		{ "s_load_b32", false, 55 },  { "s_add_u32", false, 2 },
		{ "global_load_b32", true, 2 },
	};
	struct probe_opts o = options(set, ARRAY_SIZE(set));
	struct micro_device d;
	struct err e = { 0 };

	if (!ok(micro_device_open(&d, &o, "test", "x", &e), "changed: opens"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char what[128];

		snprintf(what, sizeof(what), "changed: %s %s is %g",
			 rows[i].name, rows[i].stream ? "interval" : "latency",
			 rows[i].want);
		near_to(measure(&d, inst(rows[i].name), rows[i].stream, 1),
			rows[i].want, what);
	}
	micro_device_close(&d, true, &e);
}

/* Every kernel obeys the machine's rules. */
static void test_verified(void)
{
	struct probe_opts o = options(NULL, 0);
	struct micro_device d;
	struct err e = { 0 };
	size_t n;
	const struct micro_inst *v = micro_insts(&n);
	int bad = 0;

	if (!ok(micro_device_open(&d, &o, "test", "x", &e), "verified: opens"))
		return;
	for (size_t i = 0; i < n; i++)
		for (int stream = 0; stream < 2; stream++) {
			struct micro_probe p;

			if (!*(stream ? v[i].stream : v[i].chain) ||
			    !micro_inst_probe(&p, &d, &v[i], stream, 4, &e))
				continue;
			bad += findings(&p, v[i].name);
			micro_probe_fini(&p);
		}
	is_i64(bad, 0, "verified: all kernels, without a finding");
	micro_device_close(&d, true, &e);
}

/* The 20 bits of the counter run over in the middle of a loop. */
static void test_wrap(void)
{
	struct probe_opts o = options(NULL, 0);
	struct micro_device d;
	struct err e = { 0 };
	bool wrapped = false, right = true;

	o.samples = 1; /* a dispatch, whose times are then looked at */

	if (!ok(micro_device_open(&d, &o, "test", "x", &e), "wrap: opens"))
		return;
	for (unsigned k = 0; k < 6; k++) {
		struct micro_probe p;

		/* Every dispatch begins 777777 cycles after the last one. */
		d.first = (1u << 20) - 777777 - 30000 - 3000 * k;
		if (!micro_inst_probe(&p, &d, inst("v_add_f32"), false, 1, &e))
			break;
		p.iterations = 40;
		right &= micro_probe_run(&p, 1, &e) && p.series.n == 1 &&
			 fabs(probe_series_median(&p.series).value - 5) < 0.01;
		for (uint32_t r = 1; r < p.reps; r++) {
			const uint32_t *c = (const uint32_t *)d.out->cpu +
					    r * MICRO_REC_BYTES / 4;

			wrapped |= c[1] < c[0] || c[3] < c[2];
		}
		micro_probe_fini(&p);
	}
	ok(wrapped, "wrap: the counter did wrap");
	ok(right, "wrap: and the latency is 5 all the same");
	micro_device_close(&d, true, &e);
}

static void step_wrong(union micro_value v[MICRO_LANES],
		       const union micro_value *a, const union micro_value *b)
{
	(void)b;
	for (int l = 0; l < MICRO_LANES; l++)
		v[l].f[0] = v[l].f[0] + a->f[0] * (l == 17 ? 2 : 1);
}

/* C that thinks otherwise of one lane stands for a device that is wrong. */
static void test_wrong(void)
{
	struct probe_opts o = options(NULL, 0);
	struct micro_inst wrong = *inst("v_add_f32");
	struct micro_device d;
	struct micro_probe p;
	struct err e = { 0 };

	wrong.step = step_wrong;
	if (!ok(micro_device_open(&d, &o, "wrong", "x", &e), "wrong: opens"))
		return;
	ok(micro_inst_probe(&p, &d, &wrong, false, 1, &e) &&
		   micro_probe_run(&p, 1, &e),
	   "wrong: runs");
	ok(!p.right && p.series.rejected[PROBE_PAIR_VALUE] && !p.series.n,
	   "wrong: a lane that differs is noticed, and gives no sample");
	ok(micro_probe_store(&p, "cost", "v_wrong", "{}", "latency", "cycle", 1,
			     &e),
	   "wrong: is stored");
	d.wrong += !p.right;
	micro_probe_fini(&p);
	is_u64((uint64_t)micro_device_close(&d, true, &e), EXIT_NO,
	       "wrong: the exit code says so");
	has_str(e.msg, "something else than C", "wrong: and the message");
	is_i64(raw_sql(db, "SELECT count(*) FROM v_verdicts WHERE "
			   "name = 'v_wrong' AND verdict = 'fail'"), 1,
	       "wrong: the verdict is a failure");
	is_i64(raw_sql(db, "SELECT count(*) FROM v_results WHERE "
			   "name = 'v_wrong'"), 0,
	       "wrong: and there is no figure");
}

/* Instructions together, jumps and code that does not fit: values, too. */
static void test_mixed(void)
{
	static int (*const run[])(const struct probe_opts *, struct err *) = {
		micro_overlap, micro_branch, micro_fetch,
	};
	static const char *const area[] = { "overlap", "branch", "fetch" };
	struct probe_opts o = options(NULL, 0);
	struct err e = { 0 };
	char sql[256];

	o.samples = 1;
	for (size_t i = 0; i < ARRAY_SIZE(run); i++) {
		is_u64((uint64_t)run[i](&o, &e), EXIT_YES, "%s: runs: %s",
		       area[i], e.msg);
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM v_verdicts "
			 "WHERE area = '%s' AND verdict <> 'pass'", area[i]);
		is_i64(raw_sql(db, sql), 0, "%s: all values are right",
		       area[i]);
		snprintf(sql, sizeof(sql),
			 "SELECT count(*) > 8 FROM v_verdicts "
			 "WHERE area = '%s' AND verdict = 'pass'",
			 area[i]);
		is_i64(raw_sql(db, sql), 1, "%s: and were compared", area[i]);
	}
}

/* In thousandths of the unit, from the database. */
static double stored(const char *area, const char *name, const char *params,
		     const char *metric, double unit)
{
	char sql[512];

	snprintf(sql, sizeof(sql), "SELECT CAST(round(value * %g) AS INTEGER) "
		 "FROM v_results WHERE area = '%s' AND name = '%s' AND "
		 "params = '%s' AND metric = '%s' ORDER BY result", 1000 / unit,
		 area, name, params, metric);
	return (double)raw_sql(db, sql) / 1000;
}

/* What all WGPs read at the same time, from the level that holds it. */
static void test_bandwidth(void)
{
	static const char *const set[] = { "clock=2000", "mem.l2_rate=1536",
					   "mem.ic_rate=2e12",
					   "mem.dram_rate=800e9" };
	static const struct {
		const char *row;
		uint32_t slice;
		double gb_s; /* L0: 96 times 64 B of 2 GHz */
	} rows[] = {
		{ "mem.l0_rate", 32 << 10, 12288 },
		{ "mem.l2_rate", 96 << 10, 3072 },
		{ "mem.ic_rate", 1 << 20, 2000 },
		{ "mem.dram_rate", 4 << 20, 720 },
	};
	struct probe_opts o = options(set, ARRAY_SIZE(set));
	struct err e = { 0 };

	o.max_bytes = 4096;
	o.samples = 1;
	is_u64((uint64_t)micro_memory(&o, &e), EXIT_YES, "bandwidth: runs");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char params[64], what[64];

		snprintf(params, sizeof(params),
			 "{\"bytes\":%u,\"workgroups\":48}", rows[i].slice);
		snprintf(what, sizeof(what), "bandwidth: %s", rows[i].row);
		near_to(stored("memory", "read", params, "bandwidth", 1e9),
			rows[i].gb_s, what);
	}
}

static void test_lds(void)
{
	static const struct {
		const char *name;
		int stride;
		double want;
	} rows[] = {
		{ "ds_load_b32", 0, 1 },    { "ds_load_b32", 1, 1 },
		{ "ds_load_b32", 2, 2 },    { "ds_load_b32", 3, 1 },
		{ "ds_load_b32", 8, 8 },    { "ds_load_b32", 32, 32 },
		{ "ds_load_b32", 33, 1 },   { "ds_load_b64", 2, 2 },
		{ "ds_load_b128", 4, 4 },   { "ds_load_b128", 32, 32 },
		{ "ds_store_b32", 32, 32 }, { "ds_store_b128", 4, 4 },
	};
	struct probe_opts o = options(NULL, 0);
	struct err e = { 0 };

	is_u64((uint64_t)micro_lds(&o, &e), EXIT_YES, "lds: runs");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char params[32], what[64];

		snprintf(params, sizeof(params), "{\"stride\":%d}",
			 rows[i].stride);
		snprintf(what, sizeof(what), "lds: %s, stride %d", rows[i].name,
			 rows[i].stride);
		near_to(stored("lds", rows[i].name, params, "interval", 1),
			rows[i].want, what);
	}
}

/* 12, 12 and 8 lanes of four dwords want two rows, two and one of each bank. */
static void test_lds_phases(void)
{
	static const char *const set[] = { "lds.phase64=400",
					   "lds.phase128=12" };
	struct probe_opts o = options(set, ARRAY_SIZE(set));
	struct err e = { 0 };

	is_u64((uint64_t)micro_lds(&o, &e), EXIT_YES,
	       "lds: runs with phases that are no part of a wave");
	near_to(stored("lds", "ds_load_b64", "{\"stride\":2}", "interval", 1),
		2, "lds: all lanes together");
	near_to(stored("lds", "ds_load_b128", "{\"stride\":4}", "interval", 1),
		5, "lds: 12 lanes together");
}

static void test_memory(void)
{
	/* The Infinity Cache is made small: what is beyond it is soon seen. */
	static const char *const set[] = { "mem.l1=150", "mem.l2=260",
					   "clock=2000", "mem.ic=70",
					   "mem.ic_bytes=12582912",
					   "mem.dram=120" };
	static const struct {
		uint64_t kib;
		double cycles; /* beyond L2: 260 + 70 or 120 ns of 2 GHz */
	} rows[] = {
		{ 4, 90 },     { 32, 90 },     { 64, 150 },    { 256, 150 },
		{ 512, 260 },  { 4096, 260 },  { 8192, 400 },  { 16384, 500 },
	};
	struct probe_opts o = options(set, ARRAY_SIZE(set));
	struct err e = { 0 };

	o.quick = true; /* all WGPs at once are another test's */
	o.max_bytes = 16u << 20;
	is_u64((uint64_t)micro_memory(&o, &e), EXIT_YES, "memory: runs");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char params[64], what[64];

		snprintf(params, sizeof(params), "{\"bytes\":%llu}",
			 (unsigned long long)rows[i].kib << 10);
		snprintf(what, sizeof(what), "memory: %llu KiB",
			 (unsigned long long)rows[i].kib);
		near_to(stored("memory", "chase", params, "latency", 1e-9),
			rows[i].cycles / 2, what);
	}
	near_to(stored("cost", "mem.l1", "{}", "value", 1), 150,
		"memory: the row mem.l1");
	near_to(stored("cost", "mem.ic", "{}", "value", 1), 70,
		"memory: the row mem.ic, in nanoseconds");
	near_to(stored("cost", "mem.dram", "{}", "value", 1), 120,
		"memory: the row mem.dram");
}

static void load_costs(struct cost_model *m)
{
	struct err e = { 0 };
	struct res_db *r = res_open(db, RES_READ, &e);

	cost_init(m, "gfx1100");
	ok(r && cost_load(m, r, COST_HARDWARE, &e), "costs: the database is "
	   "read %s", e.msg);
	res_close(r);
}

/*
 * Simulated rows are no costs.  The very same rows from a card are: that there
 * is none here is what the last test changes, behind the program's back.
 */
static void test_costs(void)
{
	static const char *const set[] = { "valu.latency=7", "mul.issue=3" };
	struct probe_opts o = options(set, ARRAY_SIZE(set));
	struct cost_model m;
	struct err e = { 0 };

	is_u64((uint64_t)micro_throughput(&o, &e), EXIT_YES,
	       "costs: throughput runs");
	is_u64((uint64_t)micro_latency(&o, &e), EXIT_YES,
	       "costs: latency runs");
	is_i64(raw_sql(db, "SELECT count(*) FROM v_results WHERE "
			   "origin <> 'simulated'"), 0,
	       "costs: everything is stored as simulated");
	load_costs(&m);
	is_u64((uint64_t)cost_count(&m, COST_HARDWARE), 0,
	       "costs: nothing simulated is taken for hardware");
	is_f64(cost_value(&m, COST_VALU_LATENCY), 5,
	       "costs: the compiler keeps its own");
	cost_fini(&m);

	raw_sql(db, "UPDATE results SET origin = 'hardware'");
	raw_sql(db, "UPDATE devices SET origin = 'hardware'");
	load_costs(&m);
	near_to(cost_value(&m, COST_VALU_LATENCY), 7,
		"costs: a card's latency becomes the compiler's");
	is_u64(m.row[COST_VALU_LATENCY].origin, COST_HARDWARE,
	       "costs: and says where it is from");
	near_to(m.op[ISA_v_mul_hi_u32].latency.value,
		8, "costs: a mnemonic has a cost of its own");
	cost_fini(&m);
}

int main(void)
{
	make_dir(dir);
	snprintf(db, sizeof(db), "%s/t0.db", dir);
	test_rows();
	test_perturbed();
	test_verified();
	test_wrap();
	test_wrong();
	test_lds();
	test_lds_phases();
	test_bandwidth();
	test_memory();
	test_mixed();
	test_costs();
	remove_dir(dir);
	return plan_done();
}
