/*
 * cache-ref - vectors of a cache as compiler/kernels/kernels.h has them, of
 * floats, of E4M3, of i8 or of codes of 4 bits, which are made here in the
 * plainest way.
 */
#ifndef T0_TESTS_CACHE_REF_H
#define T0_TESTS_CACHE_REF_H

#include "tests/kernels/kernel-run.h"

enum { CACHE_GROUP = 32 };

/* Elements of the array from one vector to the next, worked out by hand. */
static inline uint32_t cache_row_of(enum ssa_kind kind, uint32_t head)
{
	static const struct {
		uint32_t head, row, words;
	} known[] = { { 32, 40, 5 },	{ 64, 72, 9 },	  { 96, 112, 14 },
		      { 128, 144, 18 }, { 160, 184, 23 }, { 224, 256, 32 },
		      { 256, 288, 36 } };
	const bool scaled = kind == SSA_I8 || kind == ARR_U4;

	for (size_t i = 0; scaled && i < ARRAY_SIZE(known); i++)
		if (known[i].head == head)
			return kind == SSA_I8 ? known[i].row : known[i].words;
	return head;
}

/* Are there scales? */
static inline bool cache_is_scaled(enum ssa_kind kind)
{
	return kind == SSA_I8 || kind == ARR_U4;
}

/* Where the scale of element i lies, in bytes of the array. */
static inline size_t cache_scale_at(const struct arr *a, size_t at,
				    uint32_t head, uint32_t i)
{
	return a->kind == SSA_I8 ? at + head + i / CACHE_GROUP * 4 :
				   at * 4 + head / 2 + i / CACHE_GROUP * 2;
}

static inline float cache_scale(const struct arr *a, size_t at, uint32_t head,
				uint32_t i)
{
	const uint8_t *p = a->bits + cache_scale_at(a, at, head, i);
	_Float16 half;
	float d;

	memcpy(&half, p, sizeof(half));
	memcpy(&d, p, a->kind == SSA_I8 ? sizeof(d) : 0);
	return a->kind == SSA_I8 ? d : (float)half;
}

static inline void cache_set_scale(struct arr *a, size_t at, uint32_t head,
				   uint32_t i, float d)
{
	uint8_t *p = a->bits + cache_scale_at(a, at, head, i);
	const _Float16 half = (_Float16)d;

	if (a->kind == SSA_I8)
		memcpy(p, &d, sizeof(d));
	else
		memcpy(p, &half, sizeof(half));
}

/* Code i of the vector's words, 0 to 15, from its bytes. */
static inline uint8_t *cache_byte(const struct arr *a, size_t at, uint32_t i)
{
	return a->bits + at * 4 + i / 2;
}

static inline int cache_code(const struct arr *a, size_t at, uint32_t i)
{
	return *cache_byte(a, at, i) >> i % 2 * 4 & 15;
}

static inline void cache_set_code(struct arr *a, size_t at, uint32_t i,
				  unsigned code)
{
	uint8_t *byte = cache_byte(a, at, i);

	*byte = (uint8_t)((*byte & (i % 2 ? 15 : 240)) | code << i % 2 * 4);
}

/* Element i of the vector at `at`. */
static inline double cache_get(const struct arr *a, size_t at, uint32_t head,
			       uint32_t i)
{
	if (a->kind == ARR_U4)
		return (cache_code(a, at, i) - 8) *
		       (double)cache_scale(a, at, head, i);
	double x = arr_get(a, at + i);

	return a->kind == SSA_I8 ? x * (double)cache_scale(a, at, head, i) : x;
}

/* Element i becomes v; with scales its group is NaN then. */
static inline void cache_spoil(struct arr *a, size_t at, uint32_t head,
			       uint32_t i, double v)
{
	if (cache_is_scaled(a->kind))
		cache_set_scale(a, at, head, i, NAN);
	else
		arr_set(a, at + i, v);
}

static inline void vector_random(struct arr *a, size_t at, uint32_t head,
				 uint64_t *seed)
{
	for (uint32_t i = 0; i < head; i++) {
		float x = test_random_f32(seed);

		if (!cache_is_scaled(a->kind)) {
			arr_set(a, at + i, (double)x);
			continue;
		}
		if (a->kind == SSA_I8)
			arr_set(a, at + i, rint(127 * (double)x));
		else
			cache_set_code(a, at, i,
				       (unsigned)rint(7.5 + 7.5 * (double)x));
		if (i % CACHE_GROUP == 0)
			cache_set_scale(a, at, head, i,
					(fabsf(test_random_f32(seed)) + 0.01f) /
						(a->kind == SSA_I8 ? 127 : -8));
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

/* The same of codes of 4 bits: the value whose size is largest, by -8. */
static inline float group_scale4(const double *x, uint32_t n)
{
	float most = 0;

	for (uint32_t i = 0; i < n; i++) {
		const float v = (float)x[i];
		if (!isfinite(v))
			return NAN;
		if (fabsf(v) > fabsf(most) || v == -fabsf(most))
			most = v;
	}
	return (float)(_Float16)(most / -8);
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
		if (kind == ARR_U4) {
			if (i % CACHE_GROUP == 0)
				d = group_scale4(x + i, CACHE_GROUP);
			float q = d == 0 ? 0 :
				nearbyintf((float)x[i] * (1 / d));
			want[i] = d == 0 ? 0 : (double)(d *
				(q > 7 ? 7 : q < -8 ? -8 : q));
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
	/* Of 4 bits the largest on the scale's other side loses a step. */
	const double step = kind == SSA_I8 ? .501 / 127 : 1.01 / 8;
	double top = 0;

	for (uint32_t i = 0; cache_is_scaled(kind) && i < head; i++) {
		if (i % CACHE_GROUP == 0) {
			top = 0;
			for (uint32_t k = i; k < i + CACHE_GROUP; k++)
				top = fmax(top, fabs(want[k]) + tol[k]);
		}
		tol[i] = 1.01 * tol[i] + step * top;
	}
	for (uint32_t i = 0; !cache_is_scaled(kind) && i < head; i++)
		tol[i] += .51 * ulp_of(kind) * fabs(want[i]) + step_of(kind);
}

/* x[n] times Hadamard's matrix over the root of n, a power of two; so bounds. */
static inline void vector_turn(double *x, double *tol, uint32_t n)
{
	double was[256], off[256];

	memcpy(was, x, n * sizeof(*was));
	memcpy(off, tol, n * sizeof(*off));
	for (uint32_t i = 0; i < n; i++) {
		double sum = 0, slack = 0;

		for (uint32_t j = 0; j < n; j++) {
			sum += __builtin_parity(i & j) ? -was[j] : was[j];
			slack += off[j] + 0x1p-21 * fabs(was[j]);
		}
		x[i] = sum / sqrt(n);
		tol[i] = slack / sqrt(n);
	}
}

/*
 * All vectors of an array, side by side and as numbers.  *wrong counts padding
 * that is not as it was.
 */
static inline struct arr cache_numbers(const struct arr *a, uint32_t head,
				       uint8_t padding, size_t *wrong)
{
	const uint32_t row = cache_row_of(a->kind, head);
	const uint32_t row_bytes = row * arr_bytes(a);
	const uint32_t used = a->kind == SSA_I8 ?
				      head + head / CACHE_GROUP * 4 :
				      head / 2 + head / CACHE_GROUP * 2;
	const size_t vectors = a->n / row;
	struct arr out = arr_new(cache_is_scaled(a->kind) ? SSA_F32 : a->kind,
				 vectors * head);

	for (size_t v = 0; v < vectors; v++) {
		for (uint32_t i = 0; i < head; i++)
			arr_set(&out, v * head + i,
				cache_get(a, v * row, head, i));
		for (uint32_t i = used;
		     cache_is_scaled(a->kind) && i < row_bytes; i++)
			*wrong += a->bits[v * row_bytes + i] != padding;
	}
	return out;
}

#endif
