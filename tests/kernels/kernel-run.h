/*
 * kernel-run - kernels of the library on the soft device in checked mode, and
 * judges that compare with references in double precision.
 */
#ifndef T0_TESTS_KERNEL_RUN_H
#define T0_TESTS_KERNEL_RUN_H

#include <math.h>

#include "compiler/kernels/kernels.h"
#include "compiler/ssa/ssa.h"
#include "tests/compiler/cc-run.h"

/* Bytes of E4M3, which are no type of the compiler's: of arrays alone. */
#define ARR_F8 ((enum ssa_kind)100)

/* Words of eight codes of 4 bits. */
#define ARR_U4 ((enum ssa_kind)101)

/* 1.m 2^(e - 7), or 0.m 2^-6; 127 is no number. */
static inline double f8_value(unsigned code)
{
	int e = code >> 3 & 15, m = code & 7;
	double v = e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m / 8.0, -6);

	return (code & 127) == 127 ? NAN : code & 128 ? -v : v;
}

/* The nearest, of two the even one; what is infinite is no number. */
static inline uint8_t f8_nearest(double x)
{
	unsigned sign = signbit(x) ? 128 : 0, best = 0;

	for (unsigned i = 1; i < 127; i++) {
		double d = fabs(fabs(x) - f8_value(i)) -
			   fabs(fabs(x) - f8_value(best));
		if (d < 0 || (d == 0 && i % 2 == 0))
			best = i;
	}
	return (uint8_t)(sign | (isfinite(x) ? best : 127));
}

/* An array as it lies in memory. */
struct arr {
	enum ssa_kind kind;
	size_t n;
	uint8_t *bits;
};

static inline uint32_t arr_bytes(const struct arr *a)
{
	return a->kind == ARR_F8 ? 1 :
	       a->kind == ARR_U4 ? 4 : ssa_type_bytes(ssa_type(a->kind, 1));
}

static inline double arr_get(const struct arr *a, size_t i)
{
	uint64_t bits = 0;
	uint32_t size = arr_bytes(a);

	memcpy(&bits, a->bits + i * size, size);
	if (a->kind == SSA_I32)
		return (int32_t)bits;
	if (a->kind == SSA_I8)
		return (int8_t)bits;
	if (a->kind == ARR_F8)
		return f8_value((unsigned)bits);
	return ssa_bits_to_f64(a->kind, bits);
}

static inline void arr_set(struct arr *a, size_t i, double v)
{
	uint32_t size = arr_bytes(a);
	uint64_t bits = a->kind == SSA_I32 || a->kind == SSA_I8 ?
				(uint64_t)(int64_t)v :
			a->kind == ARR_F8 ? f8_nearest(v) :
				ssa_f64_to_bits(a->kind, v);

	memcpy(a->bits + i * size, &bits, size);
}

/* One byte more than nothing, so that an empty array has an address. */
static inline struct arr arr_new(enum ssa_kind kind, size_t n)
{
	struct arr a = { kind, n, NULL };

	a.bits = calloc(n * arr_bytes(&a) + 1, 1);
	return a;
}

/* Uniform in +-scale. */
static inline struct arr arr_random(enum ssa_kind kind, size_t n, double scale,
				    uint64_t *seed)
{
	struct arr a = arr_new(kind, n);

	for (size_t i = 0; i < n; i++)
		arr_set(&a, i, scale * (double)test_random_f32(seed));
	return a;
}

/* What a kernel that forgets to write leaves behind. */
#define STALE 77.0
static inline struct arr arr_stale(enum ssa_kind kind, size_t n)
{
	struct arr a = arr_new(kind, n);

	for (size_t i = 0; i < n; i++)
		arr_set(&a, i, STALE);
	return a;
}

static inline void call_arr(struct ssa_call *c, const struct arr *a)
{
	call_buffer(c, a->bits, a->n ? a->n * arr_bytes(a) : 1);
}

static inline double ulp_of(enum ssa_kind kind)
{
	return kind == SSA_F32 ? 0x1p-23 :
	       kind == SSA_F16 ? 0x1p-10 :
	       kind == ARR_F8  ? 0x1p-3 :
				 0x1p-7;
}

/* Smallest step of a type: results below it round to a multiple. */
static inline double step_of(enum ssa_kind kind)
{
	return kind == SSA_F16 ? 0x1p-24 : kind == ARR_F8 ? 0x1p-9 : 0x1p-126;
}

static inline bool close_enough(double got, double want, double tol)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (isinf(want) || isinf(got))
		return got == want;
	return fabs(got - want) <= tol;
}

/* How many of got differ from want[n] by more than tol[n]. */
static inline size_t judge(const struct arr *got, const double *want,
			   const double *tol)
{
	size_t wrong = 0;

	for (size_t i = 0; i < got->n; i++) {
		bool good = close_enough(arr_get(got, i), want[i], tol[i]);
		if (!good && !wrong++)
			diag("element %zu: got %.9g, wanted %.9g within %.3g",
			     i, arr_get(got, i), want[i], tol[i]);
	}
	return wrong;
}

/*
 * The judge must notice what broken kernels leave: nothing but zeros, a tail
 * that was not written, a tile that was written with its neighbour's values.
 * Returns the number of mutants that it missed.  A mutant that is no change (a
 * result of zeros) is none.
 */
static inline size_t mutants_missed(const struct arr *good, const double *want,
				    const double *tol)
{
	size_t missed = 0, bytes = good->n * arr_bytes(good);

	for (int m = 0; m < 3; m++) {
		struct arr x = arr_new(good->kind, good->n);
		size_t wrong = 0, part = good->n / 4;
		memcpy(x.bits, good->bits, bytes);
		for (size_t i = 0; i < x.n; i++)
			if (m == 0)
				arr_set(&x, i, 0);
			else if (m == 1 && i + 1 == x.n)
				arr_set(&x, i, STALE);
			else if (m == 2 && i < part)
				arr_set(&x, i, arr_get(good, i + part));
		bool same = memcmp(x.bits, good->bits, bytes) == 0;
		for (size_t i = 0; i < x.n; i++)
			wrong += !close_enough(arr_get(&x, i), want[i], tol[i]);
		missed += !same && !wrong;
		free(x.bits);
	}
	return missed;
}

/* A kernel compiled for one shape. */
struct lib {
	const struct kernel_entry *entry;
	struct kernel_shape shape;
	struct ssa_func *f;
	struct cc_object obj;
};

static inline bool lib_open_shape(struct lib *l, const char *name,
				  const struct kernel_shape *shape)
{
	struct cc_options o;
	struct err e = { 0 };

	*l = (struct lib){ .entry = kernel_find(name), .shape = *shape };
	cc_test_options(&o);
	l->f = l->entry ? kernel_build(l->entry, &l->shape, &e) : NULL;
	if (l->f && cc_compile(l->f, &o, &l->obj, &e))
		return true;
	diag("%s: %s", name, e.msg);
	ssa_func_free(l->f);
	l->f = NULL;
	return false;
}

static inline bool lib_open(struct lib *l, const char *name,
			    enum dsl_type type, enum dsl_type to)
{
	return lib_open_shape(l, name, &(struct kernel_shape){ .type = type,
							       .to = to });
}

static inline void lib_close(struct lib *l)
{
	if (l->f) {
		cc_object_fini(&l->obj);
		ssa_func_free(l->f);
	}
}

/* Runs on gx by gy groups (an empty launch has one); false and a word why. */
static inline bool lib_run(struct cc_dev *d, struct lib *l,
			   const struct ssa_call *c, uint64_t gx, uint64_t gy)
{
	struct err e = { 0 };

	if (cc_launch(d, l->f, &l->obj, c, gx ? (uint32_t)gx : 1,
		      gy ? (uint32_t)gy : 1, &e))
		return true;
	diag("%s: %s", l->entry->name, e.msg);
	return false;
}

static inline enum ssa_kind kind_of(enum dsl_type t)
{
	return t == DSL_F16 ? SSA_F16 : t == DSL_BF16 ? SSA_BF16 :
	       t == DSL_I8  ? SSA_I8  :
	       t == DSL_U8  ? ARR_F8  :
	       t == DSL_U32 ? ARR_U4  : SSA_F32;
}

#endif
