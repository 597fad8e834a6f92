/*
 * Products of decoding in double precision: seven kinds of weights, and how far
 * off sums in f32 may be.
 */
#ifndef T0_TESTS_STREAMED_H
#define T0_TESTS_STREAMED_H

#include "tests/kernels/kernel-run.h"

static uint64_t seed = 2570;
/* Columns that share a scale of weights of 6 or 3 bits; of others it is 32. */
static uint32_t span = 32;

static const struct {
	enum dsl_type type;
	const char *name;
} kinds[] = { { DSL_F32, "f32" },
	      { DSL_F16, "f16" },
	      { DSL_BF16, "bf16" },
	      { DSL_I8, "int8" },
	      { DSL_U8, "int4" },
	      { DSL_U32, "int6" },
	      { DSL_I16, "int3" } };
enum { INT6 = 5, INT3 = 6 };

/* Weights as they lie in memory, and their values. */
struct matrix {
	struct arr w, scale;
	double *v;
	size_t n;
};

/* Column k of 32, of codes of 6 or 3 bits. */
static inline int own_number(bool six, const uint8_t *b, size_t k)
{
	int pair = (six ? b + 16 : b)[k % 8] >> 2 * (k / 8) & 3;

	return six ? (pair << 4 | (b[k % 16] >> 4 * (k / 16) & 15)) - 32 :
		     (pair | (b[8 + k / 8] >> k % 8 & 1) << 2) - 4;
}

static inline void own_random(struct matrix *m, bool six, size_t all)
{
	const size_t bytes = six ? 24 : 12;

	m->w = arr_new(SSA_I8, all / 32 * bytes);
	m->scale = arr_random(SSA_F16, all / span, 0.05, &seed);
	for (size_t i = 0; i < m->w.n; i++)
		m->w.bits[i] = (uint8_t)test_random(&seed);
	for (size_t i = 0; i < all; i++)
		m->v[i] = own_number(six, m->w.bits + i / 32 * bytes, i % 32) *
			  arr_get(&m->scale, i / span);
}

static inline struct matrix matrix_random(enum dsl_type t, size_t rows,
					  size_t n)
{
	bool four = t == DSL_U8, whole = four || t == DSL_I8;
	struct matrix m = { .n = n };

	m.v = calloc(rows * n + 1, sizeof(*m.v));
	if (t == DSL_U32 || t == DSL_I16) {
		own_random(&m, t == DSL_U32, rows * n);
		return m;
	}
	m.scale = arr_random(SSA_F16, whole ? rows * n / 32 : 0, 0.05, &seed);
	if (!whole) {
		m.w = arr_random(kind_of(t), rows * n, 1, &seed);
		for (size_t i = 0; i < rows * n; i++)
			m.v[i] = arr_get(&m.w, i);
		return m;
	}
	m.w = arr_new(SSA_I8, rows * n / (four ? 2 : 1));
	for (size_t i = 0; i < m.w.n; i++)
		m.w.bits[i] = (uint8_t)test_random(&seed);
	for (size_t i = 0; i < rows * n; i++) {
		size_t g = i / 32, k = i % 32;
		uint8_t b = m.w.bits[four ? g * 16 + k % 16 : i];
		int q = !four ? (int8_t)b : (k < 16 ? b & 15 : b >> 4) - 8;
		m.v[i] = q * arr_get(&m.scale, g);
	}
	return m;
}

static inline void matrix_free(struct matrix *m)
{
	free(m->w.bits);
	free(m->scale.bits);
	free(m->v);
}

static inline void call_matrix(struct ssa_call *c, const struct matrix *m)
{
	call_arr(c, &m->w);
	call_arr(c, &m->scale);
}

/* A value and how far off a sum in f32 may be. */
struct num {
	double v, tol;
};

#define EPS 1e-6
static inline double rms_of(const struct arr *x, size_t at, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += arr_get(x, at + i) * arr_get(x, at + i);
	return sqrt(sum / n + (float)EPS);
}

/* Row r of the product with token t of x; `gain` NULL: without the norm. */
static inline struct num product(const struct matrix *m, size_t r,
				 const struct arr *x, size_t t,
				 const struct arr *gain)
{
	double rms = gain ? rms_of(x, t * m->n, m->n) : 1;
	struct num out = { 0 };

	for (size_t i = 0; i < m->n; i++) {
		double p = m->v[r * m->n + i] * arr_get(x, t * m->n + i) *
			   (gain ? arr_get(gain, i) : 1) / rms;
		out.v += p;
		out.tol += fabs(p);
	}
	out.tol *= 0x1p-23 * (2 + sqrt(m->n) / 8);
	return out;
}

struct tally {
	size_t wrong, missed;
};

static inline void tally(struct tally *t, const struct arr *got,
			 const struct num *want)
{
	double *v = calloc(got->n + 1, sizeof(*v));
	double *tol = calloc(got->n + 1, sizeof(*tol));

	for (size_t i = 0; i < got->n; i++) {
		v[i] = want[i].v;
		tol[i] = want[i].tol;
	}
	t->wrong += judge(got, v, tol);
	t->missed += got->n > 7 ? mutants_missed(got, v, tol) : 0;
	free(v);
	free(tol);
}

static inline double silu(double x)
{
	return x / (1 + exp(-x));
}

/* silu(gate) * up */
static inline struct num gated(struct num gate, struct num up)
{
	double s = silu(gate.v);

	return (struct num){ .v = s * up.v,
			     .tol = 1.1 * gate.tol * fabs(up.v) +
				    (up.tol + 0x1p-20 * fabs(up.v)) * fabs(s) };
}

#endif
