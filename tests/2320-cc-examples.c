/*
 * Compiled kernels against references in double precision: the examples of
 * compiler/dsl.h, and matrix products of every kind with exact results.
 */
#include <float.h>
#include <math.h>

#include "compiler/eval.h"
#include "tests/cc-run.h"
#include "tests/dsl-examples.h"

static uint64_t seed = 4711;
static struct cc_dev dev;

static bool runs(struct ssa_func *f, struct err *e, const struct ssa_call *c,
		 uint32_t gx, uint32_t gy, int level, const char *name)
{
	struct cc_options o;
	bool good;

	cc_options_init(&o);
	o.level = level;
	good = f && cc_try(&dev, f, &o, c, gx, gy, NULL, e);
	if (!ok(good, "%s runs, -O%d", name, level))
		diag("%s", e->msg);
	return good;
}

static void test_saxpy(int level)
{
	enum { N = 1000 };
	float x[N], y[N], was[N];
	struct err e = { 0 };
	struct ssa_func *f = example_saxpy(&e);
	struct ssa_call c = { 0 };
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		x[i] = test_random_f32(&seed);
		was[i] = y[i] = test_random_f32(&seed);
	}
	call_buffer(&c, x, sizeof(x));
	call_buffer(&c, y, sizeof(y));
	call_f32(&c, 1.7f);
	call_u32(&c, N);
	runs(f, &e, &c, (N + 255) / 256, 1, level, "saxpy");
	for (int i = 0; i < N; i++)
		wrong += y[i] != fmaf(1.7f, x[i], was[i]);
	is_i64(wrong, 0, "saxpy is fma of each element, -O%d", level);
	ssa_func_free(f);
}

static void test_softmax(int level, int n)
{
	enum { ROWS = 3 };
	float *in = calloc((size_t)(n * ROWS), 4);
	float *out = calloc((size_t)(n * ROWS), 4);
	struct err e = { 0 };
	struct ssa_func *f = example_softmax(&e);
	struct ssa_call c = { 0 };
	double worst = 0;

	for (int i = 0; i < n * ROWS; i++)
		in[i] = 20 * test_random_f32(&seed);
	call_buffer(&c, in, (size_t)(n * ROWS) * 4);
	call_buffer(&c, out, (size_t)(n * ROWS) * 4);
	call_u32(&c, (uint32_t)n);
	runs(f, &e, &c, ROWS, 1, level, "softmax");
	worst = softmax_worst(in, out, ROWS, n);
	/* As in the interpreter's test of the same kernel. */
	ok(worst < (40 + 3 + n / 64 + 6) * (double)FLT_EPSILON,
	   "softmax of %d: worst relative error %g, -O%d", n, worst, level);
	free(in);
	free(out);
	ssa_func_free(f);
}

static void test_tile(int level)
{
	enum { M = 32, N = 48, K = 64 };
	static uint16_t a[M * K], b[K * N];
	static float d[M * N];
	struct err e = { 0 };
	struct ssa_func *f = example_tile(&e);
	struct ssa_call c = { 0 };
	double worst = 0;

	tile_random(a, M * K, &seed);
	tile_random(b, K * N, &seed);
	call_buffer(&c, a, sizeof(a));
	call_buffer(&c, b, sizeof(b));
	call_buffer(&c, d, sizeof(d));
	call_u32(&c, K);
	runs(f, &e, &c, M / 16, N / 16, level, "tile");
	worst = tile_worst(a, b, d, M, N, K);
	ok(worst < (double)FLT_EPSILON / 2,
	   "tile: %g of the sum of magnitudes for each addition, -O%d", worst,
	   level);
	ssa_func_free(f);
}

int main(void)
{
	cc_dev_begin(&dev);
	diag("seed %llu", (unsigned long long)seed);
	for (int level = 0; level <= 3; level += 3) {
		test_saxpy(level);
		test_softmax(level, 64);
		test_softmax(level, 1000);
		test_tile(level);
	}
	cc_dev_close(&dev);
	return plan_done();
}
