/*
 * kfd/soft/exec/valu_step.h - rows of valu.def and vop3.def as steps (step.h).
 *
 * Private to the _simd.c files.  A step computes all lanes into locals, which
 * the compiler keeps in registers, before it writes the lanes that execute: the
 * destination may be one of the sources.  Operands have no modifiers left and
 * 32 bits (or more planes), MODE is at its usual setting, and there is no
 * clamp.
 */
#ifndef T0_KFD_SOFT_VALU_STEP_H
#define T0_KFD_SOFT_VALU_STEP_H

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kfd/soft/exec/valu.h"

/* Run the step's instruction by its handler. */
void soft_step_slow(struct soft_wave *w, const struct soft_step *s);

/* bit[i] = 1 << i: cheaper than variable shifts before AVX2. */
static const uint32_t step_bit[SOFT_LANES] = {
#define B4(n) 1u << (n), 2u << (n), 4u << (n), 8u << (n)
	B4(0), B4(4), B4(8), B4(12), B4(16), B4(20), B4(24), B4(28),
#undef B4
};

static inline void step_put(uint32_t *to, const uint32_t *from, uint32_t exec)
{
	if (__builtin_expect(exec == ~0u, 1))
		memcpy(to, from, SOFT_LANES * sizeof(*to));
	else
		LANES(i) to[i] = exec & step_bit[i] ? from[i] : to[i];
}

static inline void step_put16(uint32_t *to, const uint32_t *from, uint32_t exec,
			      bool high)
{
	uint32_t keep = high ? 0xffff : 0xffff0000;
	int shift = high ? 16 : 0;

	LANES(i)
	{
		uint32_t v = (to[i] & keep) | (from[i] & 0xffff) << shift;

		to[i] = exec & step_bit[i] ? v : to[i];
	}
}

/* Bit i: r[i], which is 0 or -1. */
static inline uint32_t step_mask(const int32_t *r)
{
	uint32_t m = 0;

#if defined(__AVX512DQ__)
	for (int i = 0; i < SOFT_LANES; i += 16)
		m |= (uint32_t)_mm512_movepi32_mask(_mm512_loadu_si512(r + i))
		     << i;
#elif defined(__AVX__)
	for (int i = 0; i < SOFT_LANES; i += 8)
		m |= (uint32_t)_mm256_movemask_ps(
			     _mm256_loadu_ps((const float *)(r + i)))
		     << i;
#elif defined(__SSE2__)
	for (int i = 0; i < SOFT_LANES; i += 4)
		m |= (uint32_t)_mm_movemask_ps(
			     _mm_loadu_ps((const float *)(r + i)))
		     << i;
#else
	LANES(i) m |= (uint32_t)(r[i] & 1) << i;
#endif
	return m;
}

/* Is any of 32 floats a NaN? */
static inline bool step_any_nan(const float *r)
{
#if defined(__AVX512F__)
	return _mm512_cmp_ps_mask(_mm512_loadu_ps(r), _mm512_loadu_ps(r + 16),
				  _CMP_UNORD_Q);
#elif defined(__AVX__)
	__m256 p = _mm256_cmp_ps(_mm256_loadu_ps(r), _mm256_loadu_ps(r + 8),
				 _CMP_UNORD_Q);
	__m256 q = _mm256_cmp_ps(_mm256_loadu_ps(r + 16),
				 _mm256_loadu_ps(r + 24), _CMP_UNORD_Q);

	return _mm256_movemask_ps(_mm256_or_ps(p, q));
#elif defined(__SSE2__)
	__m128 any = _mm_setzero_ps();

	for (int i = 0; i < SOFT_LANES; i += 8)
		any = _mm_or_ps(any, _mm_cmpunord_ps(_mm_loadu_ps(r + i),
						     _mm_loadu_ps(r + i + 4)));
	return _mm_movemask_ps(any);
#else
	bool any = false;

	LANES(i) any |= r[i] != r[i];
	return any;
#endif
}

/* One that executes? */
static __attribute__((noinline, unused)) bool step_nan_counts(const float *r,
							      uint32_t exec)
{
	uint32_t m = 0;

	LANES(i) m |= (uint32_t)(r[i] != r[i]) << i;
	return m & exec;
}

/* --------------------------------------------------------------- kinds ---- */

#define STEP_FN(name) \
	soft_step_fn SIMD(step_##name); \
	void SIMD(step_##name)(struct soft_wave * w, \
			       const struct soft_step *s, \
			       const uintptr_t *base)

/* What the expressions of rows find in scope. */
#define STEP_PLANES \
	const uint32_t *pa = (const uint32_t *)(base[s->ka] + s->a); \
	const uint32_t *pb = (const uint32_t *)(base[s->kb] + s->b); \
	const uint32_t *pc = (const uint32_t *)(base[s->kc] + s->c); \
	uint32_t *pd = (uint32_t *)(base[s->half] + s->d); \
	const uint32_t exec = w->s[ISA_R_EXEC_LO + s->half]; \
	const struct soft_lanes x_ = { .mode = w->mode, .half = s->half }; \
	const struct soft_lanes *x = &x_; \
	const bool ieee = x->mode & SOFT_MODE_IEEE, clamp = false; \
	(void)pa, (void)pb, (void)pc, (void)pd, (void)x, (void)exec; \
	(void)ieee, (void)clamp

#define STEP_FLOAT(name, load, ...) \
	STEP_FN(name) \
	{ \
		STEP_PLANES; \
		_Alignas(64) float r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = __VA_ARGS__; \
		} \
		if (__builtin_expect(step_any_nan(r), 0) && \
		    step_nan_counts(r, exec)) \
			soft_step_slow(w, s); \
		else \
			step_put(pd, (const uint32_t *)(const void *)r, exec); \
		SOFT_NEXT(w, s, base); \
	}

static inline uint32_t step_flush(uint32_t u)
{
	return u & 0x7f800000 ? u : u & 0x80000000;
}

/* Where MODE turns f32 denormals into zeros, in sources and result. */
#define FLUSHED_1 const float a = f32_value(step_flush(pa[i]))
#define FLUSHED_2 FLUSHED_1; const float b = f32_value(step_flush(pb[i]))
#define FLUSHED_3 FLUSHED_2; const float c = f32_value(step_flush(pc[i]))
#define STEP_FLUSH(name, load, ...) \
	STEP_FN(flush_##name) \
	{ \
		STEP_PLANES; \
		_Alignas(64) float r[SOFT_LANES]; \
		_Alignas(64) uint32_t u[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = __VA_ARGS__; \
		} \
		if (__builtin_expect(step_any_nan(r), 0) && \
		    step_nan_counts(r, exec)) { \
			soft_step_slow(w, s); \
		} else { \
			LANES(i) u[i] = step_flush(f32_bits(r[i])); \
			step_put(pd, u, exec); \
		} \
		SOFT_NEXT(w, s, base); \
	}

#define STEP_WORD(name, load, ...) \
	STEP_FN(name) \
	{ \
		STEP_PLANES; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = (uint32_t)(__VA_ARGS__); \
		} \
		step_put(pd, r, exec); \
		SOFT_NEXT(w, s, base); \
	}

#define STEP_COMPARE(name, load, ...) \
	STEP_FN(name) \
	{ \
		STEP_PLANES; \
		_Alignas(64) int32_t r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = (__VA_ARGS__) ? -1 : 0; \
		} \
		w->s[s->mask_out] = step_mask(r) & exec; \
		SOFT_NEXT(w, s, base); \
	}

#define STEP_SELECT(name) \
	STEP_FN(name) \
	{ \
		STEP_PLANES; \
		const uint32_t mask = w->s[s->mask_in]; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
\
		LANES(i) r[i] = mask & step_bit[i] ? pb[i] : pa[i]; \
		step_put(pd, r, exec); \
		SOFT_NEXT(w, s, base); \
	}

/*
 * cm is -1 where the carry in is set.  There is a carry out where `sure` holds,
 * and where `maybe` does if there is one in.
 */
#define STEP_CARRY(name, in_mask, sum, sure, maybe) \
	STEP_FN(name) \
	{ \
		STEP_PLANES; \
		const uint32_t in = in_mask; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
		_Alignas(64) int32_t out[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			const uint32_t a = pa[i], b = pb[i]; \
			const uint32_t cm = in & step_bit[i] ? ~0u : 0; \
			uint32_t o = (maybe) ? cm : 0; \
\
			r[i] = sum; \
			out[i] = (int32_t)((sure) ? ~0u : o); \
		} \
		w->s[s->mask_out] = step_mask(out) & exec; \
		step_put(pd, r, exec); \
		SOFT_NEXT(w, s, base); \
	}

/* Shifts of 64 bits by n, as low and high half of l and h. */
#define STEP_SHIFT64(name, low, high) \
	STEP_FN(name) \
	{ \
		STEP_PLANES; \
		_Alignas(64) uint32_t rl[SOFT_LANES], rh[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			const uint32_t l = pb[i], h = pb[SOFT_LANES + i]; \
			const uint32_t n = pa[i] & 31; \
			const bool far = pa[i] & 32; \
\
			rl[i] = low; \
			rh[i] = high; \
		} \
		step_put(pd, rl, exec); \
		step_put(pd + SOFT_LANES, rh, exec); \
		SOFT_NEXT(w, s, base); \
	}

#endif
