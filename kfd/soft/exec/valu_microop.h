/*
 * kfd/soft/exec/valu_microop.h - rows of valu.def and vop3.def as microops.
 *
 * Private to the _simd.c files; what a microop is, fast.h says.  The kinds
 * of valu_shapes.h expand a row a second time by the macros below, so that the
 * expression is written once.  One of these microops computes all lanes into
 * locals, which the compiler keeps in registers, before it writes the lanes
 * that execute: the destination may be one of the sources.  Operands have no
 * modifiers left and 32 bits (or more vregs), MODE is at its usual setting, and
 * there is no clamp; rows that need other things run by microop_row_simd.c.
 */
#ifndef T0_KFD_SOFT_VALU_MICROOP_H
#define T0_KFD_SOFT_VALU_MICROOP_H

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kfd/soft/exec/valu.h"

/* Bit i: r[i], which is 0 or -1. */
static inline uint32_t soft_lanes_mask(const int32_t *r)
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

/*
 * Is any of 32 floats, which executes, a NaN?  Asked of all first, which is
 * cheaper.
 */
static inline bool has_nan(const float *r, uint32_t exec)
{
#if defined(__AVX512F__)
	__m512 p = _mm512_loadu_ps(r), q = _mm512_loadu_ps(r + 16);

	return __builtin_expect(_mm512_cmp_ps_mask(p, q, _CMP_UNORD_Q), 0) &&
	       ((_mm512_cmp_ps_mask(p, p, _CMP_UNORD_Q) & exec) ||
		(_mm512_cmp_ps_mask(q, q, _CMP_UNORD_Q) & exec >> 16));
#elif defined(__AVX__)
	__m256 p = _mm256_loadu_ps(r), q = _mm256_loadu_ps(r + 8);
	__m256 s = _mm256_loadu_ps(r + 16), t = _mm256_loadu_ps(r + 24);
	__m256 any = _mm256_or_ps(_mm256_cmp_ps(p, q, _CMP_UNORD_Q),
				  _mm256_cmp_ps(s, t, _CMP_UNORD_Q));

#define NANS(v) (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q))
	return __builtin_expect(_mm256_movemask_ps(any), 0) &&
	       ((NANS(p) | NANS(q) << 8 | NANS(s) << 16 | NANS(t) << 24) &
		exec);
#undef NANS
#else
	uint32_t any = 0;

	LANES(i) any |= (uint32_t)(r[i] != r[i]) << i;
	return any & exec;
#endif
}

/* --------------------------------------------------------------- kinds ---- */

/*
 * The head of a row's microop, its operands, and the body of its kind.  In
 * valu_f32_simd.c, compiled for x86-64-v3, the row
 *
 *	V(FLOAT, v_add_f32, F2, SOFT_V_ROUND, a + b)
 *
 * becomes (after its lane function, which valu_shapes.h shows)
 *
 *	void microop_v_add_f32_v3(struct soft_wave *w,
 *				  const struct soft_microop *m,
 *				  const uintptr_t *base)
 *	{
 *		const uint32_t *pa = (const uint32_t *)(base[m->ka] + m->a);
 *		const uint32_t *pb = (const uint32_t *)(base[m->kb] + m->b);
 *		uint32_t *pd = (uint32_t *)(base[m->half] + m->d);
 *		const uint32_t exec = w->s[ISA_R_EXEC_LO + m->half];
 *		... pc, x, ieee and clamp, which this row does not use
 *		_Alignas(64) float r[32];
 *
 *		for (int i = 0; i < 32; i++) {
 *			float a = f32_value(pa[i]);
 *			float b = f32_value(pb[i]);
 *
 *			r[i] = a + b;
 *		}
 *		if (has_nan(r, exec))
 *			soft_microop_fall_back(w, m);
 *		else
 *			soft_put_vreg(pd, (const uint32_t *)r, exec);
 *		m[1].fn(w, m + 1, base);
 *	}
 *
 * of which FLOAT_ROW gives MICROOP_FLOAT the name, `load` (the declarations of
 * a and b) and the expression.  A second one, microop_flush_v_add_f32_v3, is
 * the same but for soft_flush_f32() around what is loaded and stored.
 */
#define MICROOP_FN(name) \
	soft_microop_fn SIMD(microop_##name); \
	void SIMD(microop_##name)(struct soft_wave * w, \
			       const struct soft_microop *m, \
			       const uintptr_t *base)

/* What the expressions of rows find in scope; unused ones cost nothing. */
#define MICROOP_OPERANDS \
	const uint32_t *pa = (const uint32_t *)(base[m->ka] + m->a); \
	const uint32_t *pb = (const uint32_t *)(base[m->kb] + m->b); \
	const uint32_t *pc = (const uint32_t *)(base[m->kc] + m->c); \
	uint32_t *pd = (uint32_t *)(base[m->half] + m->d); \
	const uint32_t exec = w->s[ISA_R_EXEC_LO + m->half]; \
	const struct soft_lanes x_ = { .mode = w->mode, .half = m->half, \
		.mods = { m->mods[0], m->mods[1], m->mods[2] } }; \
	const struct soft_lanes *x = &x_; \
	const bool ieee = x->mode & SOFT_MODE_IEEE, clamp = false; \
	(void)pa, (void)pb, (void)pc, (void)pd, (void)x, (void)exec; \
	(void)ieee, (void)clamp

#define MICROOP_FLOAT(name, load, ...) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		_Alignas(64) float r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = __VA_ARGS__; \
		} \
		if (__builtin_expect(has_nan(r, exec), 0)) \
			soft_microop_fall_back(w, m); \
		else \
			soft_put_vreg(pd, (const uint32_t *)(const void *)r, \
				      exec); \
		SOFT_NEXT(w, m, base); \
	}

/* +-2^-126, which may have been tiny before it was rounded. */
static inline uint32_t is_least_normal(uint32_t u)
{
	return u << 1 == 0x01000000;
}

/* Where MODE turns f32 denormals into zeros, in sources and result. */
#define FLUSHED_1 const float a = f32_value(soft_flush_f32(pa[i]))
#define FLUSHED_2 FLUSHED_1; const float b = f32_value(soft_flush_f32(pb[i]))
#define FLUSHED_3 FLUSHED_2; const float c = f32_value(soft_flush_f32(pc[i]))
#define MICROOP_FLUSH(name, load, ...) \
	MICROOP_FLUSHED(flush_##name, load, __VA_ARGS__)
#define MICROOP_FLUSHED(name, load, ...) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		_Alignas(64) float r[SOFT_LANES]; \
		_Alignas(64) uint32_t u[SOFT_LANES]; \
		uint32_t least = 0; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = __VA_ARGS__; \
		} \
		LANES(i) least |= is_least_normal(f32_bits(r[i])); \
		if (__builtin_expect(least | has_nan(r, exec), 0)) { \
			soft_microop_fall_back(w, m); \
		} else { \
			LANES(i) u[i] = soft_flush_f32(f32_bits(r[i])); \
			soft_put_vreg(pd, u, exec); \
		} \
		SOFT_NEXT(w, m, base); \
	}

/*
 * Halves, as floats.  v_add_f16 has `float a = fa[i]; float b = fb[i]` as load
 * and a + b; the result goes to the half of the register that imm says.
 */
#define MICROOP_HALF(name, n, load, ...) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		_Alignas(64) float fa[SOFT_LANES], fb[SOFT_LANES]; \
		_Alignas(64) float fr[SOFT_LANES]; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
\
		soft_floats_from_f16(pa, 0, fa); \
		if (n > 1) \
			soft_floats_from_f16(pb, 0, fb); \
		LANES(i) \
		{ \
			load; \
			fr[i] = __VA_ARGS__; \
		} \
		(void)fb; \
		MICROOP_PUT_HALF; \
	}
/* a * b + c */
#define MICROOP_FMA16(name) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		_Alignas(64) float fa[SOFT_LANES], fb[SOFT_LANES]; \
		_Alignas(64) float fc[SOFT_LANES], fr[SOFT_LANES]; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
\
		soft_floats_from_f16(pa, 0, fa); \
		soft_floats_from_f16(pb, 0, fb); \
		soft_floats_from_f16(pc, 0, fc); \
		soft_fma_odd(fa, fb, fc, fr); \
		MICROOP_PUT_HALF; \
	}
#define MICROOP_PUT_HALF \
	if (!soft_plain16(w->mode) || \
	    __builtin_expect(has_nan(fr, exec), 0)) { \
		soft_microop_fall_back(w, m); \
	} else { \
		soft_f16_round(fr, false, r); \
		soft_put_vreg16(pd, r, exec, m->imm); \
	} \
	SOFT_NEXT(w, m, base)

/*
 * Integers.  v_add_nc_u32: r[i] = clamp && a + b < a ? ~0u : a + b, of which
 * `clamp` is the constant false here; then soft_put_vreg(pd, r, exec).
 */
#define MICROOP_WORD(name, load, ...) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = (uint32_t)(__VA_ARGS__); \
		} \
		soft_put_vreg(pd, r, exec); \
		SOFT_NEXT(w, m, base); \
	}

/*
 * v_cmp_lt_i32: r[i] = (a < b) ? -1 : 0, which the compiler leaves in vector
 * registers; then w->s[m->mask_out] = soft_lanes_mask(r) & exec.
 */
#define MICROOP_COMPARE(name, load, ...) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		_Alignas(64) int32_t r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			load; \
			r[i] = (__VA_ARGS__) ? -1 : 0; \
		} \
		w->s[m->mask_out] = soft_lanes_mask(r) & exec; \
		SOFT_NEXT(w, m, base); \
	}

/* v_cndmask_b32: no expression; the mask is VCC or an SGPR. */
#define MICROOP_SELECT(name) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		const uint32_t mask = w->s[m->mask_in]; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
\
		LANES(i) r[i] = mask & soft_lane_bit[i] ? pb[i] : pa[i]; \
		soft_put_vreg(pd, r, exec); \
		SOFT_NEXT(w, m, base); \
	}

/*
 * cm is -1 where the carry in is set, a bit of `in_mask`.  There is a carry out
 * where `sure` holds, and where `maybe` does if there is one in.
 * v_add_co_ci_u32 has in_mask w->s[m->mask_in], sum a + b - cm, sure a + b < a
 * and maybe a + b == ~0u; its loop is
 *
 *	const uint32_t a = pa[i], b = pb[i];
 *	const uint32_t cm = in & soft_lane_bit[i] ? ~0u : 0;
 *	uint32_t o = (a + b == ~0u) ? cm : 0;
 *
 *	r[i] = a + b - cm;
 *	out[i] = (int32_t)((a + b < a) ? ~0u : o);
 */
#define MICROOP_CARRY(name, in_mask, sum, sure, maybe) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		const uint32_t in = in_mask; \
		_Alignas(64) uint32_t r[SOFT_LANES]; \
		_Alignas(64) int32_t out[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			const uint32_t a = pa[i], b = pb[i]; \
			const uint32_t cm = in & soft_lane_bit[i] ? ~0u : 0; \
			uint32_t o = (maybe) ? cm : 0; \
\
			r[i] = sum; \
			out[i] = (int32_t)((sure) ? ~0u : o); \
		} \
		w->s[m->mask_out] = soft_lanes_mask(out) & exec; \
		soft_put_vreg(pd, r, exec); \
		SOFT_NEXT(w, m, base); \
	}

/*
 * Shifts of 64 bits by n, as low and high half of l and h; far: by 32 more.
 * v_lshlrev_b64 has
 *
 *	rl[i] = far ? 0 : l << n;
 *	rh[i] = far ? l << n : h << n | (l >> 1 >> (31 - n));
 */
#define MICROOP_SHIFT64(name, low, high) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
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
		soft_put_vreg(pd, rl, exec); \
		soft_put_vreg(pd + SOFT_LANES, rh, exec); \
		SOFT_NEXT(w, m, base); \
	}

#endif
