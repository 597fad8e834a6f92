/*
 * The measurement protocol, on the soft device with the simulator's clock: a
 * clock that never drifts, so what is seen is the protocol's own.
 */
#include <math.h>

#include "autotune/tuner/tune_int.h"
#include "probes/common/common.h"
#include "tests/results/results.h"

static char dir[64], path[96];
static struct cost_model costs;

/* ---- a simulated clock that writes down what is launched ---- */

enum { LOG = 4096 };
static uint64_t launched[LOG]; /* entry of each launch */
static size_t n_launched;

static bool clock_open(void *ctx, struct kfd_dev **dev, struct err *e)
{
	return probe_timed_open(ctx, dev, e);
}

static void clock_about(void *ctx, const struct kfd_kernel *k, size_t bytes)
{
	/* Device memory that the host sees lies at the same address. */
	probe_timed_code(ctx, (const void *)(uintptr_t)k->entry_va, bytes,
			 k->entry_va);
	if (n_launched < LOG)
		launched[n_launched++] = k->entry_va;
}

static bool clock_check(void *ctx, struct err *e)
{
	return probe_timed_check(ctx, e);
}

static struct tune_problem problem(uint32_t size)
{
	struct tune_problem p = { .m = size, .n = size, .k = size,
				  .batch = 1 };
	struct err e = { 0 };

	if (!tune_op_parse("bf16", "nt", NULL, &p.op, &e))
		diag("%s", e.msg);
	return p;
}

/* ---- by hand ---- */

static void test_impossible(void)
{
	/* 192 SIMDs of 256 FLOP a cycle: 122.9 TFLOPS at 2.5 GHz. */
	struct tune_problem p = problem(4096);

	ok(!tune_is_impossible(&p, 1.2e-3, &costs, 2.5e9),
	   "4096 cubed in 1.2 ms are 114.5 TFLOPS: possible");
	has_str(tune_is_impossible(&p, 1.1e-3, &costs, 2.5e9), "FLOPS",
		"in 1.1 ms they are 124.9: impossible");
	has_str(tune_is_impossible(&p, 0, &costs, 2.5e9), "no time",
		"no time at all is impossible");
	p = (struct tune_problem){ .op = p.op, .m = 1, .n = 1 << 17,
				   .k = 4096, .batch = 1 };
	/* 1 GiB of weights; 960 GB/s of DRAM and 3 TB/s of cache */
	has_str(tune_is_impossible(&p, 1e-4, &costs, 2.5e9), "bandwidth",
		"1 GiB in 100 us is more than memory gives");
	ok(!tune_is_impossible(&p, 1.2e-3, &costs, 2.5e9),
	   "in 1.2 ms it is possible");
}

static void test_refused(void)
{
	struct tune_bench r = { 0 };
	struct tune_arm a = { 0 };
	struct tune_protocol p = { .costs = &costs, .samples = 9 };
	enum res_origin origin;
	struct err e = { 0 };

	if (!ok(tune_bench_open(&r, "soft", NULL, NULL, &e), "the soft device: %s", e.msg))
		return;
	ok(!tune_bench_has_clock(&r, &origin, &e), "has no clock");
	is_i64(e.code, ERR_UNSUPPORTED, "nothing can be measured on it");
	e = (struct err){ 0 };
	ok(!tune_measure(&r, &a, 1, &p, &e), "nine samples are too few");
	is_i64(e.code, ERR_USAGE, "whatever the device");
	tune_bench_close(&r);
}

/* ---- the protocol ---- */

static const char *const configs[] = {
	"16x16x16_w1x1_b1_p1_u1_g0_pad_wgp_even",
	"32x32x32_w2x1_b1_p1_u1_g0_pad_wgp_even",
	"16x32x16_w1x1_b2_p1_u1_g0_pad_cu_even",
};
enum { ARMS = ARRAY_SIZE(configs), SAMPLES = 12 };

static int arm_of(uint64_t entry)
{
	/* The first launches are one of each, in order. */
	for (int i = 0; i < ARMS; i++)
		if (launched[i] == entry)
			return i;
	return -1;
}

/* Every round has every arm once; rounds differ in their order. */
static void look_at_rounds(const struct tune_arm *arm)
{
	size_t sample = 0, at, orders = 0, wrong = 0;
	int before[ARMS] = { -1, -1, -1 };

	for (int i = 0; i < ARMS; i++)
		sample += 1 + arm[i].repeat; /* one to warm the caches */
	at = n_launched - SAMPLES * sample;
	for (int round = 0; round < SAMPLES; round++) {
		int order[ARMS], seen = 0;

		for (int i = 0; i < ARMS; i++) {
			uint64_t entry = launched[at];

			order[i] = arm_of(entry);
			if (order[i] < 0) {
				wrong++;
				break;
			}
			seen |= 1 << order[i];
			for (unsigned k = 0; k <= arm[order[i]].repeat; k++)
				wrong += launched[at++] != entry;
		}
		wrong += seen != (1 << ARMS) - 1;
		orders += memcmp(order, before, sizeof(order)) != 0;
		memcpy(before, order, sizeof(order));
	}
	is_u64(wrong, 0, "each round samples every configuration once");
	ok(orders > SAMPLES / 2,
	   "in %zu orders that differ from the one before", orders);
}

static bool compile_arms(struct tune_problem *p, struct gemm_config *c,
			 struct gemm_code *code)
{
	struct err e = { 0 };

	for (int i = 0; i < ARMS; i++)
		if (!gemm_config_parse(configs[i], &c[i], &e) ||
		    !gemm_compile(&p->op, &c[i], NULL, &code[i], &e)) {
			diag("%s: %s", configs[i], e.msg);
			return false;
		}
	return true;
}

static void test_protocol(const struct tune_clock *clock)
{
	struct tune_protocol how = { .samples = SAMPLES, .seed = 9,
				     .warm_least_s = 1e-3, .warm_most_s = 5,
				     .costs = &costs, .quiet = true };
	struct tune_problem p = problem(32);
	struct gemm_config c[ARMS];
	struct gemm_code code[ARMS] = { { .n = 0 } };
	struct tune_arm arm[ARMS] = { { 0 } };
	struct tune_bench r = { 0 };
	enum res_origin origin;
	struct err e = { 0 };

	for (int i = 0; i < ARMS; i++)
		arm[i] = (struct tune_arm){ .config = &c[i],
					    .code = &code[i] };
	if (!ok(compile_arms(&p, c, code) &&
		tune_bench_open(&r, NULL, clock, NULL, &e) &&
		tune_bench_set(&r, &p, TUNE_NORMAL, 1, &e),
		"a device with a simulated clock: %s", e.msg))
		return;
	ok(tune_bench_has_clock(&r, &origin, &e) && origin == RES_SIMULATED,
	   "its times are simulated");
	ok(tune_measure(&r, arm, ARMS, &how, &e), "is measured on: %s", e.msg);
	for (int i = 0; i < ARMS; i++) {
		ok(arm[i].good && arm[i].n == SAMPLES, "%s: %.2f us, %s",
		   configs[i], arm[i].time_s.value * 1e6, arm[i].why);
		ok(arm[i].time_s.lo <= arm[i].time_s.value &&
		   arm[i].time_s.value <= arm[i].time_s.hi &&
		   arm[i].time_s.hi - arm[i].time_s.lo <= 2e-8,
		   "a clock that does not drift: within two ticks, %d", i);
		/* 32 cubed alone takes microseconds: so many in a sample. */
		ok(arm[i].repeat >= 1 && arm[i].repeat <= 64,
		   "a sample of %u launches", arm[i].repeat);
	}
	look_at_rounds(arm);
	for (int i = 0; i < ARMS; i++) {
		tune_arm_fini(&arm[i]);
		gemm_code_fini(&code[i]);
	}
	tune_bench_close(&r);
}

/* The whole search with it: measured rows beside the predicted ones. */
static void test_search(const struct tune_clock *clock)
{
	struct tune_problem p = problem(32);
	struct tune_problems l = { .v = &p, .n = 1 };
	struct tune_opts o = {
		.db = path, .operands = "normal", .clock = clock,
		.budget = { "quick", 4, 1, 2, 0 }, .seed = 3, .quiet = true,
		.costs = &costs, .samples = 10,
	};
	struct tune_outcome out;
	struct err e = { 0 };

	ok(tune_search(&o, &l, &out, &e) && out.found, "a search with it: %s%s",
	   e.msg, out.why);
	is_i64(out.samples, 10, "ends with ten samples");
	ok(out.lo_s <= out.time_s && out.time_s <= out.hi_s,
	   "and their interval");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE "
			     "operands = 'normal' AND samples = 10 AND "
			     "origin = 'simulated'"), 2,
	       "both finalists have a measured row");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE winner AND "
			     "operands = 'normal'"), 1, "one of them has won");
	is_i64(raw_sql(path, "SELECT count(*) FROM samples"), 20,
	       "all samples are kept");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE "
			     "caches = 'warm'") ==
	       raw_sql(path, "SELECT count(*) FROM v_tunes"), 1,
	       "their caches are said to be warm");
	p.caches = TUNE_COLD_B;
	ok(tune_search(&o, &l, &out, &e) && out.found && !out.stored,
	   "cold ones are another search: %s%s", e.msg, out.why);
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE winner AND "
			     "operands = 'normal' AND caches = 'cold-b' AND "
			     "samples = 10"), 1, "with a winner of its own");
	is_i64(raw_sql(path, "SELECT count(*) FROM cases WHERE "
			     "params ->> 'caches' = 'cold-b' AND "
			     "area = 'tune' AND name = 't0-tune'") > 1, 1,
	       "its samples say how the caches were");
	is_i64(raw_sql(path, "SELECT count(*) FROM v_tunes WHERE "
			     "origin = 'hardware'") +
	       raw_sql(path, "SELECT count(*) FROM v_results WHERE "
			     "origin = 'hardware'"), 0,
	       "nothing claims to be hardware");
}

int main(void)
{
	make_dir(dir);
	snprintf(path, sizeof(path), "%s/t.db", dir);
	cost_init(&costs, TUNE_CHIP);
	struct probe_timed *t = probe_timed_new(&costs);
	const struct tune_clock clock = { clock_open, clock_about, clock_check,
					  t };

	test_impossible();
	test_refused();
	test_protocol(&clock);
	test_search(&clock);
	probe_timed_free(t);
	cost_fini(&costs);
	remove_dir(dir);
	return plan_done();
}
