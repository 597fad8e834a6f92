/*
 * cache-ref - vectors of a cache as compiler/kernels/kernels.h has them, of
 * floats, of E4M3 or of i8, which are made here in the plainest way.
 */
#ifndef T0_TESTS_CACHE_REF_H
#define T0_TESTS_CACHE_REF_H

#include "tests/kernels/kernel-run.h"

enum { CACHE_GROUP = 32 };

/* Elements of the array from one vector to the next, worked out by hand. */
static inline uint32_t cache_row_of(enum ssa_kind kind, uint32_t head)
{
	static const struct {
		uint32_t head, row;
	} known[] = { { 32, 40 }, { 64, 72 }, { 96, 112 }, { 128, 144 },
		      { 160, 184 }, { 224, 256 }, { 256, 288 } };

	for (size_t i = 0; kind == SSA_I8 && i < ARRAY_SIZE(known); i++)
		if (known[i].head == head)
			return known[i].row;
	return head;
}

static inline float cache_scale(const struct arr *a, size_t at, uint32_t head,
				uint32_t i)
{
	float d;

	memcpy(&d, a->bits + at + head + i / CACHE_GROUP * sizeof(d),
	       sizeof(d));
	return d;
}

static inline void cache_set_scale(struct arr *a, size_t at, uint32_t head,
				   uint32_t i, float d)
{
	memcpy(a->bits + at + head + i / CACHE_GROUP * sizeof(d), &d,
	       sizeof(d));
}

/* Element i of the vector at `at`. */
static inline double cache_get(const struct arr *a, size_t at, uint32_t head,
			       uint32_t i)
{
	double x = arr_get(a, at + i);

	return a->kind == SSA_I8 ? x * (double)cache_scale(a, at, head, i) : x;
}

/* Element i becomes v; with i8 its group is NaN then. */
static inline void cache_spoil(struct arr *a, size_t at, uint32_t head,
			       uint32_t i, double v)
{
	if (a->kind == SSA_I8)
		cache_set_scale(a, at, head, i, NAN);
	else
		arr_set(a, at + i, v);
}

static inline void vector_random(struct arr *a, size_t at, uint32_t head,
				 uint64_t *seed)
{
	for (uint32_t i = 0; i < head; i++) {
		float x = test_random_f32(seed);

		if (a->kind != SSA_I8) {
			arr_set(a, at + i, (double)x);
			continue;
		}
		arr_set(a, at + i, rint(127 * (double)x));
		if (i % CACHE_GROUP == 0)
			cache_set_scale(a, at, head, i,
					(fabsf(test_random_f32(seed)) + 0.01f) /
						127);
	}
}

/* What rounding does to a group: its scale for the sizes given. */
static inline float group_scale(const double *x, uint32_t n)
{
	float top = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!isfinite(x[i]))
			return NAN;
		top = fmaxf(top, fabsf((float)x[i]));
	}
	return top / 127;
}

/* A vector of numbers of f32 as the cache is to hold it, to the last bit. */
static inline void vector_want(enum ssa_kind kind, const double *x,
			       uint32_t head, double *want, double *tol)
{
	float d = 0;

	for (uint32_t i = 0; i < head; i++) {
		if (kind == ARR_F8) {
			want[i] = f8_value(f8_nearest(x[i]));
			tol[i] = 0;
			continue;
		}
		if (kind != SSA_I8) {
			want[i] = x[i];
			tol[i] = .501 * ulp_of(kind) * fabs(x[i]) +
				 step_of(kind);
			continue;
		}
		if (i % CACHE_GROUP == 0)
			d = group_scale(x + i, CACHE_GROUP);
		want[i] = d == 0 ? 0 :
			(double)(d * nearbyintf((float)x[i] * (1 / d)));
		tol[i] = 0;
	}
}

/* Bounds of a vector that is computed: what it had, and half a step. */
static inline void vector_round(enum ssa_kind kind, const double *want,
				uint32_t head, double *tol)
{
	double top = 0;

	for (uint32_t i = 0; kind == SSA_I8 && i < head; i++) {
		if (i % CACHE_GROUP == 0) {
			top = 0;
			for (uint32_t k = i; k < i + CACHE_GROUP; k++)
				top = fmax(top, fabs(want[k]) + tol[k]);
		}
		tol[i] = 1.01 * tol[i] + .501 * top / 127;
	}
	for (uint32_t i = 0; kind != SSA_I8 && i < head; i++)
		tol[i] += .51 * ulp_of(kind) * fabs(want[i]) + step_of(kind);
}

/*
 * All vectors of an array, side by side and as numbers.  *wrong counts padding
 * that is not as it was.
 */
static inline struct arr cache_numbers(const struct arr *a, uint32_t head,
				       uint8_t padding, size_t *wrong)
{
	const uint32_t row = cache_row_of(a->kind, head);
	const uint32_t used = head + head / CACHE_GROUP * 4;
	const size_t vectors = a->n / row;
	struct arr out = arr_new(a->kind == SSA_I8 ? SSA_F32 : a->kind,
				 vectors * head);

	for (size_t v = 0; v < vectors; v++) {
		for (uint32_t i = 0; i < head; i++)
			arr_set(&out, v * head + i,
				cache_get(a, v * row, head, i));
		for (uint32_t i = used; a->kind == SSA_I8 && i < row; i++)
			*wrong += a->bits[v * row + i] != padding;
	}
	return out;
}

#endif
