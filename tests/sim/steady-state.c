/*
 * Loops that are left when they are steady: the time and the counts must be
 * those of the full simulation, within the bound stated here.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/sim/examine/examine.h"
#include "tests/tap.h"

enum { TRIPS = 126 };
#define BOUND 0.02 /* of the cycles */

static const struct {
	struct others_tile t;
	int groups;
	uint64_t footprint;
	bool steady; /* else workgroups starve others: all is simulated */
} kernels[] = {
	{ { OTHERS_TRITON, 128, 128, 32, 0, false }, 1, 64 << 20, true },
	{ { OTHERS_TRITON, 128, 128, 32, 0, false }, 4, 64 << 20, true },
	{ { OTHERS_TRITON, 64, 64, 32, 0, false }, 8, 300 << 20, false },
	{ { OTHERS_T0, 128, 128, 16, 0, true }, 4, 64 << 20, true },
	{ { OTHERS_T0, 64, 64, 16, 0, false }, 6, 4 << 20, true },
	{ { OTHERS_T0, 32, 64, 16, 0, true }, 12, 300 << 20, true },
};

static bool simulate(const struct cost_model *m, size_t k, int trips,
		     struct sim_result *r)
{
	static const struct others_shape s = { 4096, 4096, 4096, 1 };
	struct others_code g;
	struct err e = { 0 };
	struct sim_source src = { .wave_size = 32,
				  .cu_mode = kernels[k].t.cu_mode };
	struct sim_config c = { .cost = m, .warmth = SIM_WARM,
				.footprint_bytes = kernels[k].footprint,
				.warm_code = true, .trips = trips };
	bool ok = others_generate(&g, &kernels[k].t, &s, TRIPS,
				  kernels[k].groups, &e) &&
		  sim_affine_open(&src, (uint8_t *)g.code.data, g.code.len,
				  4096, g.affine.data, "gemm", &e);

	src.vgprs = g.vgprs;
	src.lds_bytes = g.lds_bytes;
	ok = ok && sim_run(&src, &c, r, &e);
	if (!ok)
		diag("%s", e.msg);
	sim_affine_close(&src);
	others_fini(&g);
	return ok;
}

static void is_near(double got, double wanted, double bound, const char *what)
{
	ok(fabs(got / wanted - 1) <= bound, "%s: %.0f, in full %.0f (%+.2f %%)",
	   what, got, wanted, 100 * (got / wanted - 1));
}

static void test_kernel(const struct cost_model *m, size_t k)
{
	struct sim_result full, part;
	const struct others_tile *t = &kernels[k].t;

	if (!ok(simulate(m, k, 0, &full) && simulate(m, k, SIM_TRIPS, &part),
		"%d groups of %dx%dx%d", kernels[k].groups, t->m, t->n, t->k))
		return;
	is_u64(full.skipped, 0, "nothing is left out unless asked for");
	ok(part.skipped > full.cycles / 5 * 2 || !kernels[k].steady,
	   "%llu cycles left out",
	   (unsigned long long)part.skipped);
	is_near((double)part.cycles, (double)full.cycles, BOUND, "cycles");
	is_near((double)part.issues, (double)full.issues, BOUND, "issues");
	is_near((double)part.busy[SIM_PIPE_WMMA],
		(double)full.busy[SIM_PIPE_WMMA], BOUND, "matrix pipe");
	is_i64(part.limit, full.limit, "limited by %s",
	       sim_pipe_name(full.limit));
	sim_fini(&full);
	sim_fini(&part);
}

int main(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	for (size_t k = 0; k < ARRAY_SIZE(kernels); k++)
		test_kernel(&m, k);
	cost_fini(&m);
	return plan_done();
}
