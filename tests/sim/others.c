/*
 * Generated kernels of matrix products: what they consist of, that they are
 * correct code, and how well published figures are met.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"
#include "isa/verify/verify.h"
#include "tests/tap.h"

#define PATH "../shared/reference/t0_gemm_published.csv"
#define LOOPS "../shared/reference/published_perf.csv"

static const struct others_shape big = { 4096, 4096, 4096, 1 };

/* By hand: waves, products of a wave and step, bytes of LDS. */
static const struct {
	struct others_tile t;
	int waves, wmmas;
	uint32_t lds;
} known[] = {
	/* 64 x 64 of a wave: 16 products per 16 of K; rows of 80 bytes of A,
	 * 32 rows of 256 bytes of B */
	{ { OTHERS_TRITON, 128, 128, 32, 0, false }, 4, 32,
	  128 * 80 + 32 * 256 },
	/* 32 x 128 of a wave; 256 rows of 32 bytes, twice: published 16 KB */
	{ { OTHERS_T0, 128, 128, 16, 0, true }, 4, 16, 2 * 256 * 32 },
	{ { OTHERS_T0, 128, 128, 32, 0, true }, 4, 32, 32 << 10 },
	{ { OTHERS_T0, 128, 64, 64, 0, true }, 4, 32, 48 << 10 },
	{ { OTHERS_T0, 64, 64, 16, 0, true }, 2, 8, 2 * 128 * 32 },
	{ { OTHERS_T0, 32, 64, 16, 0, true }, 1, 8, 2 * 96 * 32 },
};

/* Waits that are missing, barriers, registers, ...: none may be reported. */
static void check_code(const struct others_code *g)
{
	struct isa_target t = { ISA_GFX11, 32, false };
	struct verify_report r = { 0 };
	struct verify_input in;
	struct err e = { 0 };
	int n = 0;

	verify_input_raw(&in, t, g->code.data, g->code.len);
	in.max_workgroup = g->waves * 32;
	ok(isa_verify(&in, &r, &e), "can be verified: %s", e.msg);
	for (int i = 0; i < r.n; i++) {
		diag("%s: %s: %s", verify_rule_name(r.v[i].rule), r.v[i].text,
		     r.v[i].what);
		n++;
	}
	is_i64(n, 0, "the verifier finds nothing in %d instructions",
	       r.n_insns);
	verify_report_fini(&r);
	verify_input_fini(&in);
}

static void test_code(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const struct others_tile *t = &known[i].t;
		struct others_code g;
		struct err e = { 0 };

		ok(others_generate(&g, t, &big, 2, 1, &e), "tile %dx%dx%d: %s",
		   t->m, t->n, t->k, e.msg);
		is_i64(g.waves, known[i].waves, "waves");
		is_i64(g.wmmas, known[i].wmmas, "products of a wave and step");
		is_u64(g.lds_bytes, known[i].lds, "bytes of LDS");
		ok(g.vgprs <= 256, "%d VGPRs", g.vgprs);
		check_code(&g);
		others_fini(&g);
	}
}

static void test_refused(void)
{
	static const struct others_tile bad[] = {
		{ OTHERS_TRITON, 0, 128, 32, 0, false },
		{ OTHERS_TRITON, 128, 128, 24, 0, false },
		{ OTHERS_TRITON, 512, 512, 32, 0, false },
		{ OTHERS_T0, 48, 128, 16, 0, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct others_code g;
		struct err e = { 0 };

		ok(!others_generate(&g, &bad[i], &big, 2, 1, &e) &&
		   e.code == ERR_UNSUPPORTED, "refused: %s", e.msg);
		others_fini(&g);
	}
}

/* A bound that no machine of these costs can beat. */
static void test_bound(const struct cost_model *m)
{
	struct others_guess g;
	struct err e = { 0 };

	ok(others_predict(&known[0].t, &big, m, &g, &e), "4096^3: %s", e.msg);
	/* 32 cycles a product of 8192 FLOP, 192 SIMDs */
	double least = 2.0 * 4096 * 4096 * 4096 / 8192 * 32 / 192;
	ok(g.cycles > least, "%.0f cycles, the matrix units alone need %.0f",
	   g.cycles, least);
	ok(g.cycles < 2 * least, "and less than twice that");
	ok(g.clock_mhz >= cost_value(m, COST_CLOCK) &&
	   g.clock_mhz < 1.01 * cost_value(m, COST_CLOCK),
	   "at the sustained clock: %g", g.clock_mhz);
	ok(others_predict(&known[0].t,
			   &(struct others_shape){ 512, 512, 512, 1 },
			m, &g, &e), "512^3: %s", e.msg);
	is_f64(g.clock_mhz, cost_value(m, COST_CLOCK_SHORT),
	       "a short one at the clock of short ones");
	is_i64(g.groups, 1, "16 workgroups on 48 WGPs: one each");
}

struct judged {
	double error[128], real[16], guess[16];
	int n, n_ranked;
};

static void judge(void *ctx, const struct others_row *row)
{
	struct judged *j = ctx;

	if (row->class != OTHERS_GEMM)
		return;
	if (j->n < (int)ARRAY_SIZE(j->error))
		j->error[j->n++] = fabs(row->predicted_s / row->time_s - 1);
	if (strstr(row->source, "VA-recycling") && j->n_ranked < 16) {
		j->real[j->n_ranked] = row->time_s;
		j->guess[j->n_ranked++] = row->predicted_s;
	}
}

static void test_published(const struct cost_model *m)
{
	struct judged j = { 0 };
	struct err e = { 0 };
	FILE *f = fopen(PATH, "r");

	if (!f) {
		skip("no %s: nothing to judge with", PATH);
		return;
	}
	fclose(f);
	ok(others_rows_run(PATH, m, true, NULL, judge, &j, &e), "are read: %s",
	   e.msg);
	ok(j.n >= 20, "%d products", j.n);
	qsort(j.error, (size_t)j.n, sizeof(*j.error), sim_compare_numbers);
	ok(j.error[j.n / 2] <= 0.15, "median error %.1f %%",
	   100 * j.error[j.n / 2]);
	ok(j.n_ranked >= 3 &&
	   sim_rank(j.real, j.guess, (size_t)j.n_ranked) >= 0.9,
	   "%d configurations of one size are ranked: %.2f", j.n_ranked,
	   sim_rank(j.real, j.guess, (size_t)j.n_ranked));
}

struct rates {
	int n, clocked;
	double worst;
};

/* clpeak's rows say their clock; the others' is assumed. */
static void rate(void *ctx, const struct loop_row *row)
{
	struct rates *r = ctx;

	r->n++;
	if (strncmp(row->name, "clpeak", 6))
		return;
	r->clocked++;
	r->worst = fmax(r->worst, fabs(row->predicted / row->reference - 1));
}

static void test_loops(const struct cost_model *m)
{
	struct rates r = { 0 };
	struct err e = { 0 };
	FILE *f = fopen(LOOPS, "r");

	if (!f) {
		skip("no %s: no rates to compare with", LOOPS);
		return;
	}
	fclose(f);
	ok(loop_rows_run(LOOPS, m, rate, &r, &e), "rates are read: %s", e.msg);
	ok(r.n >= 8 && r.clocked >= 5, "%d loops, %d with their clock", r.n,
	   r.clocked);
	ok(r.worst <= 0.1, "those within %.1f %%", 100 * r.worst);
	r.n = 0;
	ok(loop_rows_run(PATH, m, rate, &r, &e) && !r.n,
	   "a file of the other kind has none");
}

int main(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	test_code();
	test_refused();
	test_bound(&m);
	test_published(&m);
	test_loops(&m);
	cost_fini(&m);
	return plan_done();
}
