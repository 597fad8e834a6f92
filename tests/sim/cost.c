/* The cost table, classes of instructions, and costs from a database. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cost/cost.h"
#include "isa/text/text.h"
#include "results/db/results.h"
#include "tests/tap.h"

static const struct isa_target target = { ISA_GFX11, 32, false };

static struct isa_inst parse(const char *text)
{
	struct isa_inst in;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	const char *why = isa_parse(&target, text, NULL, NULL, &in);

	if (why)
		BUG("%s: %s", text, why);
	int n = isa_encode(&in, code);
	if (isa_decode(&target, code, n, &in))
		BUG("%s does not decode", text);
	return in;
}

/* Worked out by hand from the published facts. */
static const struct {
	const char *text, *class;
	double latency, issue;
} known[] = {
	{ "v_add_f32 v0, v1, v2", "valu", 5, 1 },
	{ "v_fma_f32 v0, v1, v2, v3", "valu", 5, 1 },
	{ "v_add_f32_dpp v0, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
	  "dpp", 6, 1 },
	{ "v_lshlrev_b64 v[0:1], 2, v[2:3]", "valu64", 6, 2 },
	{ "v_mul_lo_u32 v0, v1, v2", "mul", 8, 4 },
	{ "v_mad_u64_u32 v[0:1], null, v2, v3, v[4:5]", "mad64", 8, 4 },
	{ "v_exp_f32 v0, v1", "trans", 10, 4 },
	{ "v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", "double", 38, 32 },
	{ "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", "wmma",
	  34, 32 },
	{ "v_wmma_i32_16x16x16_iu4 v[0:7], v[8:9], v[10:11], v[0:7]", "wmma4",
	  18, 16 },
	{ "v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5", "vopd", 5,
	  1 },
	{ "s_add_u32 s0, s1, s2", "salu", 2, 1 },
	{ "s_load_b64 s[0:1], s[2:3], null", "smem", 40, 1 },
	{ "ds_load_b32 v0, v1", "lds.load", 33, 1 },
	{ "ds_store_b32 v0, v1", "lds.store", 34, 1 },
	{ "ds_add_u32 v0, v1", "lds.atomic", 34, 1 },
	{ "ds_bpermute_b32 v0, v1, v2", "lds.permute", 34, 3 },
	{ "global_load_b32 v0, v[1:2], off", "vmem.load", 230, 1 },
	{ "global_store_b32 v[0:1], v2, off", "vmem.store", 250, 1 },
	{ "global_atomic_add_u32 v[0:1], v2, off", "vmem.atomic", 250, 1 },
	{ "s_cbranch_scc0 4", "branch", 3, 3 },
	{ "s_waitcnt vmcnt(0)", "special", 1, 1 },
	{ "v_readfirstlane_b32 s0, v0", "readlane", 16, 1 },
};

static void test_classes(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct isa_inst in = parse(known[i].text);
		is_str(cost_class_name(cost_class_of(&in)), known[i].class,
		       "class of %s", known[i].text);
		ok(cost_latency(&m, &in) == known[i].latency &&
		   cost_issue(&m, &in) == known[i].issue,
		   "its latency %g, issue %g", known[i].latency,
		   known[i].issue);
	}
	cost_fini(&m);
}

static void test_rows(void)
{
	struct cost_model m;
	struct err e = { 0 };
	int twice = 0, incomplete = 0;

	cost_init(&m, "gfx1100");
	for (int i = 0; i < COST_ROW_COUNT; i++) {
		const struct cost_row_info *r = cost_row_info(i);

		twice += cost_row_find(r->name) != (enum cost_row)i;
		incomplete += !r->source[0] || !strchr("HML", r->confidence) ||
			      m.row[i].value != r->value ||
			      m.row[i].origin != COST_DEFAULT;
	}
	is_i64(twice, 0, "every row has a name of its own");
	is_i64(incomplete, 0, "every row has source, confidence and default");
	is_i64(cost_count(&m, COST_DEFAULT), COST_ROW_COUNT,
	       "all are defaults");
	ok(cost_set(&m, "branch.taken", 30, COST_HARDWARE, &e) &&
	   cost_value(&m, COST_BRANCH_TAKEN) == 30, "a row can be set");
	is_i64(cost_count(&m, COST_HARDWARE), 1, "and is counted by origin");
	ok(!cost_set(&m, "branch.taken", -1, COST_HARDWARE, &e),
	   "negative costs are refused: %s", e.msg);
	ok(!cost_set(&m, "branch.take", 1, COST_HARDWARE, &e),
	   "unknown names are refused: %s", e.msg);
	cost_fini(&m);
}

struct put {
	struct res_db *db;
	int64_t run;
};

static bool put(struct put *p, const char *name, const char *metric,
		const char *unit, double value, enum res_origin origin)
{
	struct err e = { 0 };
	struct res_result r = {
		.run = p->run, .metric = metric, .unit = unit, .value = value,
		.lo = value - 0.5, .hi = value + 0.5, .n = 9, .clock_hz = 2e9,
		.better = RES_LOWER, .origin = origin,
		.source = origin == RES_PUBLISHED ? "a paper" : NULL,
	};

	if (res_case_id(p->db, "cost", name, NULL, &r.case_id, &e) &&
	    res_result_add(p->db, &r, NULL, &e))
		return true;
	diag("%s", e.msg);
	return false;
}

static bool begin(struct put *p, const char *gfx, enum res_origin origin)
{
	struct err e = { 0 };
	struct res_start s = { .tool = "t0-test" };
	struct res_device d = { .name = "card", .gfx = gfx, .uid = "1",
				.origin = origin };

	return res_host_self(p->db, &s.host, &e) &&
	       res_build_self(p->db, &s.build, &e) &&
	       (!gfx || res_device_id(p->db, &d, &s.device, &e)) &&
	       res_run_begin(p->db, &s, &p->run, &e);
}

static bool end(struct put *p)
{
	struct err e = { 0 };

	return res_run_finish(p->db, p->run, RES_COMPLETE, 0, NULL, &e);
}

static bool fill(struct res_db *db)
{
	struct put p = { .db = db };

	return begin(&p, NULL, RES_PUBLISHED) &&
	       put(&p, "branch.taken", "value", "cycle", 31, RES_PUBLISHED) &&
	       put(&p, "mem.l2", "value", "cycle", 222, RES_PUBLISHED) &&
	       put(&p, "no.such", "value", "cycle", 1, RES_PUBLISHED) &&
	       put(&p, "mem.l1", "value", "s", 1, RES_PUBLISHED) && end(&p) &&
	       begin(&p, "gfx1100", RES_HARDWARE) &&
	       put(&p, "mem.l2", "value", "cycle", 240, RES_HARDWARE) &&
	       put(&p, "v_mul_lo_u32", "latency", "cycle", 11, RES_HARDWARE) &&
	       put(&p, "v_mul_lo_u32", "interval", "cycle", 5, RES_HARDWARE) &&
	       end(&p) && begin(&p, "gfx1100", RES_EMULATED) &&
	       put(&p, "mem.l0", "value", "cycle", 1, RES_SIMULATED) &&
	       end(&p) && begin(&p, "gfx1201", RES_HARDWARE) &&
	       put(&p, "mem.l0", "value", "cycle", 2, RES_HARDWARE) && end(&p);
}

static void test_load(struct res_db *db)
{
	struct cost_model m;
	struct err e = { 0 };
	struct isa_inst mul = parse("v_mul_lo_u32 v0, v1, v2");
	struct table t;

	cost_init(&m, "gfx1100");
	ok(cost_load(&m, db, COST_HARDWARE, &e), "costs are read: %s", e.msg);
	ok(cost_value(&m, COST_L2_LAT) == 240, "hardware wins over published");
	ok(cost_value(&m, COST_BRANCH_TAKEN) == 31, "published over default");
	ok(cost_value(&m, COST_L1_LAT) == 130, "another unit is passed over");
	ok(cost_value(&m, COST_L0_LAT) == 90,
	   "simulated rows and other chips are never read");
	ok(cost_latency(&m, &mul) == 11 && cost_issue(&m, &mul) == 5,
	   "a mnemonic's own cost wins over its class");
	is_i64(m.n_ignored, 2, "what could not be used is counted");
	is_i64(m.row[COST_L2_LAT].n, 9, "the samples are known");
	ok(fabs(m.row[COST_L2_LAT].spread - 0.5 / 240) < 1e-12, "the spread");
	ok(m.row[COST_L2_LAT].age_days >= 0 &&
	   m.row[COST_L2_LAT].age_days < 1, "the age");
	table_init(&t, COST_COLUMNS);
	cost_list(&m, &t);
	is_i64(t.n_rows, COST_ROW_COUNT + 2, "the list has all of them");
	table_fini(&t);
	cost_fini(&m);

	cost_init(&m, "gfx1100");
	ok(cost_load(&m, db, COST_PUBLISHED, &e) &&
	   cost_value(&m, COST_L2_LAT) == 222 && cost_latency(&m, &mul) == 8,
	   "without hardware when only published ones are wanted");
	cost_fini(&m);
}

/* By hand: (f / 2400)^3 times the busy share is 1. */
static void test_clock(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	ok(cost_clock(&m, 1e9, 0) < 2400.1, "always busy: the power limit");
	is_f64(floor(cost_clock(&m, 100, 1) + 0.5), 3000,
	       "mostly idle: all that there is");
	/* 2700 MHz: 1.423828 of the power, so busy for 0.702332 of it. */
	double cycles = 2700e6 * 1e-4;
	double idle_s = 1e-4 * (1.423828125 - 1);
	ok(fabs(cost_clock(&m, cycles, idle_s) - 2700) < 0.1,
	   "between: %g", cost_clock(&m, cycles, idle_s));
	/* d ln f / d ln t = -idle / (3 - idle): a fifth where it is half. */
	double last = 3000, largest = 0;
	for (double us = 1; us < 1000; us *= 1.1) {
		double mhz = cost_clock(&m, us * 2400, 2e-6);

		largest = fmax(largest, fabs(last - mhz));
		last = mhz;
	}
	ok(largest > 0 && largest < 60, "no step where kernels are a tenth "
	   "longer: %g MHz", largest);
	cost_fini(&m);
}

/* Each guess takes each part of its range once; what is known stays. */
static void test_draws(void)
{
	struct cost_model m, x[COST_DRAWS];
	struct err e = { 0 };
	bool part[COST_DRAWS - 1] = { false }, together = true;
	int moved = 0;

	cost_init(&m, "gfx1100");
	ok(cost_set(&m, "mem.l2_rate", 1900, COST_HARDWARE, &e),
	   "one of them is measured");
	for (int i = 0; i < COST_DRAWS; i++)
		cost_draw(&m, i, &x[i]);
	for (int row = 0; row < COST_ROW_COUNT; row++)
		moved += cost_value(&x[0], row) != cost_value(&m, row);
	is_i64(moved, 0, "the first draw is as they are");
	for (int i = 0; i < COST_DRAWS; i++) {
		const double l1 = cost_value(&x[i], COST_L1_LAT);

		together = together && cost_value(&x[i], COST_VALU_LATENCY) == 5 &&
			   cost_value(&x[i], COST_L2_BW) == 1900 &&
			   cost_value(&x[i], COST_CLOCK) == 2400 &&
			   cost_value(&x[i], COST_LDS_BANKS) == 32 &&
			   l1 >= cost_value(&x[i], COST_L0_LAT) &&
			   l1 <= cost_value(&x[i], COST_L2_LAT);
		if (!i)
			continue;
		/* log2 of half to twice, in eleven parts: their middles. */
		const double at = log2(cost_value(&x[i], COST_MALL_BW) / 3e12);
		const double of = (at + 1) * 11 / 2 - 0.5;
		const int k = (int)lround(of);

		if (k >= 0 && k < COST_DRAWS - 1 && fabs(of - k) < 1e-6)
			part[k] = true;
	}
	ok(together, "what is measured, stated or sure is so in all; levels "
	   "of caches are one behind the other");
	for (int k = 0; k < COST_DRAWS - 1; k++)
		ok(part[k], "a guess is once in part %d of its range", k);
	cost_fini(&m);
}

int main(void)
{
	char path[] = "/tmp/t0-cost-XXXXXX";
	struct err e = { 0 };

	test_rows();
	test_classes();
	test_clock();
	test_draws();
	close(mkstemp(path));
	unlink(path);
	struct res_db *db = res_open(path, RES_WRITE, &e);
	ok(db && fill(db), "a database of costs: %s", e.msg);
	if (db)
		test_load(db);
	res_close(db);
	unlink(path);
	return plan_done();
}
