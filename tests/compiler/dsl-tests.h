/*
 * dsl-tests - the examples of dsl-examples.h against references in double
 * precision, however they are run.
 */
#ifndef T0_TESTS_DSL_TESTS_H
#define T0_TESTS_DSL_TESTS_H

#include <float.h>
#include <stdlib.h>

#include "tests/compiler/dsl-examples.h"

/*
 * Runs a kernel at a level of optimisation with so many groups; says what is
 * wrong.  `f` may be NULL, for reasons that are in *e.
 */
typedef bool example_run(struct ssa_func *f, const struct ssa_call *c,
			 uint32_t gx, uint32_t gy, int level, struct err *e);

static inline void test_saxpy(example_run *run, int level, uint64_t *seed)
{
	enum { N = 1000 };
	float x[N], y[N], was[N];
	struct err e = { 0 };
	struct ssa_func *f = example_saxpy(&e);
	struct ssa_call c = { 0 };
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		x[i] = test_random_f32(seed);
		was[i] = y[i] = test_random_f32(seed);
	}
	call_buffer(&c, x, sizeof(x));
	call_buffer(&c, y, sizeof(y));
	call_f32(&c, 1.7f);
	call_u32(&c, N);
	ok(run(f, &c, (N + 255) / 256, 1, level, &e),
	   "saxpy stays in its buffers, -O%d", level);
	for (int i = 0; i < N; i++)
		wrong += y[i] != fmaf(1.7f, x[i], was[i]);
	is_i64(wrong, 0, "saxpy is fma of each element, -O%d", level);
	ssa_func_free(f);
}

static inline void test_softmax(example_run *run, int level, uint64_t *seed,
				int n)
{
	enum { ROWS = 3 };
	float *in = calloc((size_t)(n * ROWS), 4);
	float *out = calloc((size_t)(n * ROWS), 4);
	struct err e = { 0 };
	struct ssa_func *f = example_softmax(&e);
	struct ssa_call c = { 0 };

	for (int i = 0; i < n * ROWS; i++)
		in[i] = 20 * test_random_f32(seed);
	call_buffer(&c, in, (size_t)(n * ROWS) * 4);
	call_buffer(&c, out, (size_t)(n * ROWS) * 4);
	call_u32(&c, (uint32_t)n);
	ok(run(f, &c, ROWS, 1, level, &e), "softmax of %d runs, -O%d", n,
	   level);
	double worst = softmax_worst(in, out, ROWS, n);
	/* e^x and division err by 2.5 ulp, x - max by half an ulp of at most
	 * 40; each of the n / 64 + 6 additions of the sum by half an ulp. */
	ok(worst < (40 + 3 + n / 64 + 6) * (double)FLT_EPSILON,
	   "softmax of %d: worst relative error %g, -O%d", n, worst, level);
	free(in);
	free(out);
	ssa_func_free(f);
}

static inline void test_tile(example_run *run, int level, uint64_t *seed)
{
	enum { M = 32, N = 48, K = 64 };
	static uint16_t a[M * K], b[K * N];
	static float d[M * N];
	struct err e = { 0 };
	struct ssa_func *f = example_tile(&e);
	struct ssa_call c = { 0 };

	tile_random(a, M * K, seed);
	tile_random(b, K * N, seed);
	memset(d, 0, sizeof(d));
	call_buffer(&c, a, sizeof(a));
	call_buffer(&c, b, sizeof(b));
	call_buffer(&c, d, sizeof(d));
	call_u32(&c, K);
	ok(run(f, &c, M / 16, N / 16, level, &e), "tile runs, -O%d", level);
	double worst = tile_worst(a, b, d, M, N, K);
	ok(worst < (double)FLT_EPSILON / 2,
	   "tile: %g of the sum of magnitudes for each addition, -O%d", worst,
	   level);
	ssa_func_free(f);
}

#endif
