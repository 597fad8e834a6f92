/*
 * The space: large, legal, without twins, ranked in about the simulator's
 * order, and bounded from below.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune.h"
#include "compiler/sim/examine/examine.h"
#include "tests/tap.h"

enum { SAMPLE = 40 };

static struct cost_model costs;

static struct tune_problem problem(const char *layout, uint32_t m, uint32_t n,
				   uint32_t k)
{
	struct tune_problem p = { .m = m, .n = n, .k = k, .batch = 1 };
	struct err e = { 0 };

	if (!tune_op_parse("bf16", layout, "", &p.op, &e))
		diag("%s", e.msg);
	return p;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static size_t twins(const struct tune_space *s)
{
	char (*name)[TUNE_TEXT] = calloc(s->n + 1, TUNE_TEXT);
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		gemm_config_name(&s->v[i].config, name[i], TUNE_TEXT);
	qsort(name, s->n, TUNE_TEXT, by_name);
	for (size_t i = 1; i < s->n; i++)
		n += !strcmp(name[i - 1], name[i]);
	free(name);
	return n;
}

static void test_space(const char *layout, uint32_t m, uint32_t n, uint32_t k,
		       size_t least)
{
	struct tune_problem p = problem(layout, m, n, k);
	struct gemm_shape shape = tune_shape(&p);
	struct tune_space s;
	size_t wrong = 0, silent = 0, order = 0;

	tune_space_init(&s, &p, &costs);
	ok(s.legal >= least, "%ux%ux%u %s: %zu of %zu configurations are legal",
	   m, n, k, layout, s.legal, s.n);
	for (size_t i = 0; i < s.n; i++) {
		const struct tune_candidate *c = &s.v[i];
		bool legal = c->state == RES_TUNE_RANKED;

		wrong += legal &&
			 (!gemm_check(&p.op, &c->config, NULL) ||
			  !gemm_fits(&p.op, &c->config, &shape, NULL) ||
			  !(c->bound_s > 0) || !(c->estimate_s > 0));
		silent += !legal && !*c->reason;
		order += i && i < s.legal &&
			 c->estimate_s < s.v[i - 1].estimate_s;
		wrong += legal != (i < s.legal);
	}
	is_u64(wrong, 0, "all that is said to be legal is, %ux%ux%u", m, n, k);
	is_u64(silent, 0, "the rest says why not, %ux%ux%u", m, n, k);
	is_u64(order, 0, "the best estimate comes first, %ux%ux%u", m, n, k);
	is_u64(twins(&s), 0, "none is there twice, %ux%ux%u", m, n, k);
	tune_space_fini(&s);
}

/* Every so manieth of the ranked space, simulated. */
static void test_rank(const char *layout, uint32_t m, uint32_t columns,
		      uint32_t k, double least)
{
	struct tune_problem p = problem(layout, m, columns, k);
	double guess[SAMPLE], time[SAMPLE];
	struct tune_space s;
	size_t n = 0;

	tune_space_init(&s, &p, &costs);
	for (size_t i = 0; i < SAMPLE; i++) {
		const struct tune_candidate *c = &s.v[i * s.legal / SAMPLE];
		struct gemm_code code = { .n = 0 };
		struct tune_simulation t = { 0 };
		struct err e = { 0 };

		if (gemm_compile(&p.op, &c->config, NULL, &code, &e) &&
		    !code.object[0].stats.spills &&
		    tune_simulate(&p, &c->config, &code, &costs, false, &t,
				  &e)) {
			guess[n] = c->estimate_s;
			time[n++] = t.time_s;
		}
		tune_simulation_fini(&t);
		gemm_code_fini(&code);
	}
	double rank = sim_rank(guess, time, n);
	ok(n >= SAMPLE / 2 && rank > least,
	   "%ux%ux%u %s: the estimate's order "
	   "agrees with the simulator's: %.2f of %zu",
	   m, columns, k, layout, rank, n);
	tune_space_fini(&s);
}

/* 4096 cubed on 192 SIMDs of 256 FLOP a cycle at 2400 MHz: 1165 us. */
static void test_bound(void)
{
	struct tune_problem p = problem("nt", 4096, 4096, 4096);
	struct tune_candidate c = { .config = {
		.m = 128, .n = 128, .k = 32, .waves_m = 2, .waves_n = 2,
		.buffers = 1, .prefetch = 1, .unroll = 1, .split = 1 } };
	struct tune_needs needs;

	tune_needs_guess("gfx1100", &p, &c.config, &needs);
	tune_roofline(&p, &costs, &needs, &c);
	/*
	 * 1024 tiles on 48 WGPs: the fullest has 22 of 21.3.  Between two the
	 * card is idle for 2.26 us, 0.2 % of the time, so the clock is higher
	 * by less than 0.1.
	 */
	double peak = 2.0 * 4096 * 4096 * 4096 / (192 * 256 * 2.4e9);
	ok(fabs(c.bound_s / (peak * 22 / (1024 / 48.0)) - 1) < 1e-3,
	   "the bound of 4096 cubed is the matrix units' %.1f us",
	   c.bound_s * 1e6);
	is_str(c.limit, "wmma", "by that pipe");
	ok(c.estimate_s > c.bound_s, "the estimate is above it");
	p = problem("nt", 1, 131072, 4096);
	tune_roofline(&p, &costs, &needs, &c);
	/* A GiB of weights at 864 GB/s */
	ok(c.bound_s > 0x1p30 / 864e9 && c.bound_s < 1.01 * 0x1p30 / 864e9,
	   "a GiB of weights takes %.0f us", c.bound_s * 1e6);
	is_str(c.limit, "memory", "by memory");
}

static double predicted(const struct tune_problem *p, const char *name,
			double *bound_s)
{
	struct tune_simulation t = { 0 };
	struct gemm_code code = { .n = 0 };
	struct tune_candidate c = { .bound_s = 0 };
	struct tune_needs needs;
	struct err e = { 0 };

	if (!gemm_config_parse(name, &c.config, &e) ||
	    !gemm_compile(&p->op, &c.config, NULL, &code, &e) ||
	    !tune_simulate(p, &c.config, &code, &costs, false, &t, &e))
		diag("%s: %s", name, e.msg);
	tune_needs_guess("gfx1100", p, &c.config, &needs);
	tune_roofline(p, &costs, &needs, &c);
	*bound_s = c.bound_s;
	tune_simulation_fini(&t);
	gemm_code_fini(&code);
	return t.time_s;
}

static size_t in_state(const struct tune_problems *l, enum tune_caches c)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->v[i].caches == c;
	return n;
}

/* A model's weights are not where the last call left them. */
static void test_states(void)
{
	enum tune_caches all = TUNE_COLD;
	struct tune_problems l = { 0 };
	struct gemm_op op = problem("nt", 1, 1, 1).op;
	struct err e = { 0 };

	ok(tune_problems_sizes(&l, &op, "256..1024", &e) &&
	   in_state(&l, TUNE_WARM) == 3, "sizes are of warm caches");
	ok(tune_problems_model(&l, &op, "qwen3-0.6b", &e) &&
	   in_state(&l, TUNE_COLD_B) == l.n - 3 && l.n > 10,
	   "what a model needs has its weights in memory: %zu", l.n - 3);
	l.caches = &all;
	ok(tune_problems_sizes(&l, &op, "256", &e) &&
	   in_state(&l, TUNE_COLD) == 1, "unless another state is asked for");
	tune_problems_fini(&l);
}

/* Which workgroups take the long way: compiler/gemm/feed.c. */
static void test_masks(void)
{
	struct gemm_config c = { .m = 64, .n = 64, .k = 32, .waves_m = 2,
				 .waves_n = 2, .buffers = 1, .prefetch = 1,
				 .unroll = 1, .split = 1 };
	const struct {
		const char *layout;
		uint32_t m, n, k;
		double share;
	} row[] = {
		{ "nt", 128, 128, 64, 0 }, { "nt", 100, 100, 64, 0 },
		{ "nt", 128, 128, 65, 0 }, /* rows of 130 bytes */
		{ "nn", 128, 129, 64, 1 / 3.0 },
		{ "nn", 128, 192 - 32, 64, 1 / 3.0 },
		{ "tt", 96, 128, 64, 0.5 }, { "tn", 96, 96, 64, 0.75 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct tune_problem p = problem(row[i].layout, row[i].m,
						row[i].n, row[i].k);
		double got = tune_masked_share(&p, &c);

		ok(fabs(got - row[i].share) < 1e-9, "%ux%ux%u %s: %.2f of the "
		   "tiles are masked", p.m, p.n, p.k, row[i].layout, got);
	}
	c.even = true;
	struct tune_problem p = problem("nn", 128, 128, 64);
	ok(tune_masked_share(&p, &c) == 0, "of an even one none is");
	c.even = false;
	p = problem("nt", 128, 128, 65);
	p.op.in = DSL_I8;
	ok(tune_masked_share(&p, &c) == 1, "of bytes in odd rows all are");
}

/*
 * Gate and up of a prompt: a tile that loads without fetching ahead is fine
 * while B lies in the Infinity Cache, and waits for DRAM where it does not.
 */
static void test_caches(void)
{
	const char *waits = "256x128x64_w2x4_b1_p0_u1_g0_pad_wgp_even";
	const char *hides = "128x64x32_w2x1_b1_p0_u1_g0_pad_wgp_even";
	const char *narrow = "16x16x64_w1x1_b1_p1_u1_g0_pad_wgp";
	struct tune_problem p = { .m = 512, .n = 3072, .k = 1024, .batch = 1 };
	struct tune_problem cold, line;
	double bound, warm_s, cold_s;
	struct err e = { 0 };

	ok(tune_op_parse("bf16", "nt", "swiglu", &p.op, &e), "%s", e.msg);
	cold = p;
	cold.caches = TUNE_COLD_B;
	warm_s = predicted(&p, hides, &bound) / predicted(&p, waits, &bound);
	cold_s = predicted(&cold, hides, &bound) /
		 predicted(&cold, waits, &bound);
	ok(warm_s > 0.97, "with warm caches %s is as fast, 1 : %.3f", waits,
	   warm_s);
	ok(cold_s < 0.97, "with B in memory it falls behind, %.3f : 1",
	   cold_s);

	/*
	 * Decoding: 6.3 MB of weights at 864 GB/s are 7.3 us, 2.1 from caches.
	 */
	line = problem("nt", 1, 3072, 1024);
	warm_s = predicted(&line, narrow, &bound);
	ok(bound < 4e-6 && warm_s < 7e-6, "one row, warm: %.2f us, %.2f at "
	   "least", warm_s * 1e6, bound * 1e6);
	line.caches = TUNE_COLD_B;
	cold_s = predicted(&line, narrow, &bound);
	ok(bound > 7.2e-6 && bound < 7.4e-6 && cold_s >= bound &&
	   cold_s < 15e-6, "with B in memory: %.2f us, %.2f at least",
	   cold_s * 1e6, bound * 1e6);
	line.caches = TUNE_COLD;
	ok(predicted(&line, narrow, &bound) >= cold_s, "with A there as well: "
	   "not less");
}

int main(void)
{
	cost_init(&costs, TUNE_CHIP);
	test_space("nn", 256, 256, 256, 1000);
	test_space("nt", 4096, 4096, 4096, 1000);
	test_space("nt", 1, 3072, 1024, 300);
	test_space("tt", 1000, 77, 33, 500);
	test_bound();
	test_states();
	test_masks();
	test_caches();
	test_rank("nt", 1024, 1024, 1024, 0.6);
	test_rank("nn", 512, 512, 512, 0.7);
	/*
	 * Masked in all tiles, at the ends of rows of K, and in the last step.
	 */
	test_rank("nn", 65, 65, 513, 0.7);
	test_rank("tt", 129, 500, 65, 0.7);
	test_rank("nt", 100, 100, 100, 0.7);
	cost_fini(&costs);
	return plan_done();
}
