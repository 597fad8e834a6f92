/*
 * The three kernels that compiler/dsl/dsl.h teaches with.
 */
#ifndef T0_TESTS_DSL_EXAMPLES_H
#define T0_TESTS_DSL_EXAMPLES_H

#include <math.h>

#include "compiler/dsl/dsl.h"
#include "compiler/ssa/ssa.h"
#include "tests/compiler/ssa-run.h"

static inline struct ssa_func *example_saxpy(struct err *e)
{
	struct dsl *k = KERNEL("saxpy", 256);
	struct val x = ARG_PTR(k, DSL_F32, "x", DSL_READONLY);
	struct val y = ARG_PTR(k, DSL_F32, "y", 0);
	struct val a = ARG(k, DSL_F32, "a"), n = ARG(k, DSL_U32, "n");
	struct val i = GLOBAL_ID(k, 0), in = LT(i, n);

	STORE_IF(in, y, i, FMA(a, LOAD_IF(in, x, i), LOAD_IF(in, y, i)));
	return dsl_finish(k, e);
}

static inline struct ssa_func *example_softmax(struct err *e)
{
	struct dsl *k = KERNEL("softmax", 64);
	struct val in = ARG_PTR(k, DSL_F32, "in", DSL_READONLY);
	struct val out = ARG_PTR(k, DSL_F32, "out", 0);
	struct val n = ARG(k, DSL_I32, "n");
	struct val row = MUL(CAST(DSL_I64, GROUP_ID(k, 0)), CAST(DSL_I64, n));
	struct val x = ADVANCE(in, row), y = ADVANCE(out, row);
	struct var max = VAR(k, DSL_F32, -INFINITY);
	struct var sum = VAR(k, DSL_F32, 0);

	FOR (k, i, LOCAL_ID(k, 0), n, 64) {
		struct val v = LOAD(x, i), m = MAX(max, v);

		SET(sum, FMA(sum, EXP(SUB(max, m)), EXP(SUB(v, m))));
		SET(max, m);
	}
	struct val top = GROUP_MAX(max);
	struct val all = GROUP_SUM(MUL(sum, EXP(SUB(max, top))));

	FOR (k, j, LOCAL_ID(k, 0), n, 64) {
		STORE(y, j, DIV(EXP(SUB(LOAD(x, j), top)), all));
	}
	return dsl_finish(k, e);
}

static inline struct ssa_func *example_tile(struct err *e)
{
	struct dsl *k = KERNEL("tile", 32);
	struct val a = ARG_PTR(k, DSL_F16, "a", DSL_READONLY);
	struct val b = ARG_PTR(k, DSL_F16, "b", DSL_READONLY);
	struct val d = ARG_PTR(k, DSL_F32, "d", 0);
	struct val depth = ARG(k, DSL_I32, "depth");
	struct val m = MUL(GROUP_ID(k, 0), 16);
	struct val n = MUL(GROUP_ID(k, 1), 16);
	struct val ld = MUL(NUM_GROUPS(k, 1), 16);
	struct var acc = VAR_OF(FRAG_ZERO(k, DSL_F32));

	FOR (k, i, 0, depth, 16) {
		struct val fa = FRAG_LOAD('A', a, ADD(MUL(m, depth), i), depth,
					  DSL_ROWS);
		struct val fb = FRAG_LOAD('B', b, ADD(MUL(i, ld), n), ld,
					  DSL_ROWS);

		SET(acc, WMMA(fa, fb, acc));
	}
	FRAG_STORE(d, ADD(MUL(m, ld), n), ld, DSL_ROWS, GET(acc));
	return dsl_finish(k, e);
}

/* ---------------------------------------------------------- references ---- */

/* The worst relative error of softmax; in, out: [rows][n]. */
static inline double softmax_worst(const float *in, const float *out, int rows,
				   int n)
{
	double worst = 0;

	for (int r = 0; r < rows; r++, in += n, out += n) {
		double max = -INFINITY, sum = 0;

		for (int i = 0; i < n; i++)
			max = fmax(max, (double)in[i]);
		for (int i = 0; i < n; i++)
			sum += exp((double)in[i] - max);
		for (int i = 0; i < n; i++) {
			double want = exp((double)in[i] - max) / sum;

			worst = fmax(worst,
				     fabs((double)out[i] - want) / want);
		}
	}
	return worst;
}

static inline void tile_random(uint16_t *f16, int n, uint64_t *seed)
{
	for (int i = 0; i < n; i++)
		f16[i] = (uint16_t)ssa_f64_to_bits(
			SSA_F16, (double)test_random_f32(seed));
}

/*
 * The worst error of d [m][n] = a [m][k] b [k][n], for each addition, as a
 * share of the sum of magnitudes.
 */
static inline double tile_worst(const uint16_t *a, const uint16_t *b,
				const float *d, int m, int n, int k)
{
	double worst = 0;

	for (int i = 0; i < m * n; i++) {
		double want = 0, size = 0;

		for (int j = 0; j < k; j++) {
			double x = ssa_bits_to_f64(SSA_F16, a[i / n * k + j]);
			double y = ssa_bits_to_f64(SSA_F16, b[j * n + i % n]);

			want += x * y;
			size += fabs(x * y);
		}
		worst = fmax(worst, fabs((double)d[i] - want) / (size * k));
	}
	return worst;
}

#endif
