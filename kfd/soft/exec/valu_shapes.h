/*
 * kfd/soft/exec/valu_shapes.h - kinds of rows as lane functions.
 *
 * Private to the valu_*_simd.c and vop3_*_simd.c files.  Such a file defines
 * IF_<its group>(row) as row, includes this header, writes its helpers, and
 * includes valu.def or vop3.def.
 *
 * NaN: where an operation makes one, RDNA's result is the first source that is
 * a NaN, or else the default NaN.  A signalling one becomes quiet with MODE.IEEE
 * only (measured on gfx1100: AMD, rocjitsu's binary_f32_policy_cases).  x86
 * chooses by the order in which the compiler put the operands, so a second pass
 * settles it; that pass runs only if some lane has a NaN.
 */
#ifndef T0_KFD_SOFT_VALU_SHAPES_H
#define T0_KFD_SOFT_VALU_SHAPES_H

#include "kfd/soft/exec/valu_half.h"
#include "kfd/soft/exec/valu_microop.h"
#include "kfd/soft/exec/valu_piece.h"

#ifndef IF_FLOAT
#define IF_FLOAT(...)
#endif
#ifndef IF_HALF
#define IF_HALF(...)
#endif
#ifndef IF_INT
#define IF_INT(...)
#endif
#ifndef IF_CVT
#define IF_CVT(...)
#endif
#ifndef IF_PART
#define IF_PART(...)
#endif
#ifndef IF_TRANS
#define IF_TRANS(...)
#endif
#ifndef IF_CMP
#define IF_CMP(...)
#endif
#ifndef IF_PACK
#define IF_PACK(...)
#endif

/*
 * A row of the file's own group becomes what its kind says, the others nothing.
 * In valu_f32_simd.c, which defines IF_FLOAT(row) as row, the row
 *
 *	V(FLOAT, v_add_f32, F2, SOFT_V_ROUND, a + b)
 *
 * is KIND_F2(v_add_f32, a + b), and that is, compiled for x86-64-v3,
 *
 *	soft_lane_fn soft_v_add_f32_v3;
 *	void soft_v_add_f32_v3(struct soft_lanes *x)
 *	{
 *		const uint32_t *restrict pa = x->a, *restrict pb = x->b;
 *		const uint32_t *restrict pc = x->c;
 *		uint32_t *restrict pd = x->d;
 *		const bool clamp = x->clamp, ieee = x->mode & SOFT_MODE_IEEE;
 *		uint32_t bad = 0;
 *
 *		for (int i = 0; i < 32; i++) {
 *			float a = f32_value(pa[i]);
 *			float b = f32_value(pb[i]);
 *			float r = a + b;
 *
 *			pd[i] = f32_bits(r);
 *			bad |= r != r;
 *		}
 *		if (__builtin_expect(bad, 0))
 *			fix_nan32(x, 2);
 *	}
 *
 * followed by the row's microops (valu_microop.h).  A kind is made of the head
 * (LANE_FN), the locals (OPERANDS), and a loop, whose parameters are: `n`, how
 * many sources may have been the NaN; `load`, the declarations of a, b and c
 * (LOAD_F2); and the expression, last, as it may have commas.
 */
#define V(group, name, kind, flags, ...) \
	IF_##group(KIND_##kind(name, __VA_ARGS__))

/* Negative: RDNA3 ISA 16.7, the examples of V_LOG_F32, V_SQRT_F16, V_SIN_F32.
 */
#define SOFT_NAN16 0xfe00u
#define SOFT_NAN32 0xffc00000u
#define SOFT_NAN64 0xfff8000000000000ull

/* The head of a row's function; a body follows. */
#define LANE_FN(name) \
	soft_lane_fn SIMD(soft_##name); \
	void SIMD(soft_##name)(struct soft_lanes * x)

/* What the expressions of rows find in scope; see also MICROOP_OPERANDS. */
#define OPERANDS \
	const uint32_t *restrict pa = x->a, *restrict pb = x->b; \
	const uint32_t *restrict pc = x->c; \
	uint32_t *restrict pd = x->d; \
	const bool clamp = x->clamp, ieee = x->mode & SOFT_MODE_IEEE; \
	(void)pa, (void)pb, (void)pc, (void)pd, (void)clamp, (void)ieee

/* ----------------------------------------------------------------- NaN ---- */

/* A NaN as it is passed on, 0 of other numbers. */
static inline uint32_t pass_nan32(uint32_t u, bool ieee)
{
	return (u & 0x7fffffff) <= 0x7f800000 ? 0 : u | (uint32_t)ieee << 22;
}

static inline uint64_t pass_nan64(uint64_t u, bool ieee)
{
	return (u & ~(1ull << 63)) <= 0x7ffull << 52 ? 0 :
						       u | (uint64_t)ieee << 51;
}

static inline bool is_invalid_product(double a, double b)
{
	const double p = a * b;

	return p != p;
}

/*
 * Settle the NaNs of a result whose first `n` sources are floats.  Where there
 * are three, it is a product and a sum, and an invalid product hides what the
 * addend is (measured on gfx1100: rocjitsu, f16_fma_nan_cases).
 */
static __attribute__((noinline, unused)) void fix_nan32(struct soft_lanes *x,
							int n)
{
	const uint32_t *src[3] = { x->a, x->b, x->c };
	const bool ieee = x->mode & SOFT_MODE_IEEE;

	LANES(i)
	{
		uint32_t u = 0;
		int m = n;

		if (!pass_nan32(x->d[i], false))
			continue;
		if (n == 3 && is_invalid_product(f32_value(x->a[i]),
						 f32_value(x->b[i])))
			m = 2;
		for (int k = 0; k < m && !u; k++)
			u = pass_nan32(src[k][i], ieee);
		x->d[i] = u ? u : SOFT_NAN32;
	}
}

static __attribute__((noinline, unused)) void fix_nan64(struct soft_lanes *x,
							int n)
{
	const uint32_t *src[3] = { x->a, x->b, x->c };
	const bool ieee = x->mode & SOFT_MODE_IEEE;

	LANES(i)
	{
		uint64_t u = 0;
		int m = n;

		if (!pass_nan64(soft_get64(x->d, i), false))
			continue;
		if (n == 3 &&
		    is_invalid_product(f64_value(soft_get64(x->a, i)),
				       f64_value(soft_get64(x->b, i))))
			m = 2;
		for (int k = 0; k < m && !u; k++)
			u = pass_nan64(soft_get64(src[k], i), ieee);
		soft_put64(x->d, i, u ? u : SOFT_NAN64);
	}
}

static __attribute__((noinline, unused)) void fix_nan16(struct soft_lanes *x,
							int n, int shift)
{
	const uint32_t *src[3] = { x->a, x->b, x->c };
	const uint32_t quiet = x->mode & SOFT_MODE_IEEE ? 0x200 : 0;

	LANES(i)
	{
		uint32_t u = 0;

		if ((x->d[i] >> shift & 0x7fff) <= 0x7c00)
			continue;
		for (int k = 0; k < n && !u; k++) {
			u = src[k][i] >> shift & 0xffff;
			u = (u & 0x7fff) > 0x7c00 ? u | quiet : 0;
		}
		x->d[i] &= ~(0xffffu << shift);
		x->d[i] |= (u ? u : SOFT_NAN16) << shift;
	}
}

/* --------------------------------------------------------------- kinds ---- */

/* F1 F2 F3, FU, FI: floats, with the example above. */
#define FLOAT_LOOP(n, load, ...) \
	{ \
		OPERANDS; \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			load; \
			float r = __VA_ARGS__; \
\
			pd[i] = f32_bits(r); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan32(x, n); \
	}
#define LOAD_F1		   float a = f32_value(pa[i])
#define LOAD_F2		   LOAD_F1; float b = f32_value(pb[i])
#define LOAD_F3		   LOAD_F2; float c = f32_value(pc[i])
#define FLOAT_ROW(name, n, load, ...) \
	LANE_FN(name) FLOAT_LOOP(n, load, __VA_ARGS__) \
	MICROOP_FLOAT(name, load, __VA_ARGS__)
#define KIND_F1(name, ...) \
	FLOAT_ROW(name, 1, LOAD_F1, __VA_ARGS__) \
	MICROOP_FLUSH(name, FLUSHED_1, __VA_ARGS__)
#define KIND_F2(name, ...) \
	FLOAT_ROW(name, 2, LOAD_F2, __VA_ARGS__) \
	MICROOP_FLUSH(name, FLUSHED_2, __VA_ARGS__)
#define KIND_F3(name, ...) \
	FLOAT_ROW(name, 3, LOAD_F3, __VA_ARGS__) \
	MICROOP_FLUSH(name, FLUSHED_3, __VA_ARGS__)
#define KIND_FU(name, ...) FLOAT_ROW(name, 0, LOAD_U1, __VA_ARGS__)

#define KIND_FI(name, ...) FLOAT_ROW(name, 1, LOAD_F1; LOAD_INT, __VA_ARGS__)

/* D1 D2 D3, DI: the same loop in double; a lane is in two vregs. */
#define DOUBLE_ROW(name, n, load, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			load; \
			double r = __VA_ARGS__; \
\
			soft_put64(pd, i, f64_bits(r)); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan64(x, n); \
	}
#define LOAD_D1		   double a = f64_value(soft_get64(pa, i))
#define LOAD_D2		   LOAD_D1; double b = f64_value(soft_get64(pb, i))
#define LOAD_D3		   LOAD_D2; double c = f64_value(soft_get64(pc, i))
#define LOAD_INT	   int32_t b = (int32_t)pb[i]
#define KIND_D1(name, ...) DOUBLE_ROW(name, 1, LOAD_D1, __VA_ARGS__)
#define KIND_D2(name, ...) DOUBLE_ROW(name, 2, LOAD_D2, __VA_ARGS__)
#define KIND_D3(name, ...) DOUBLE_ROW(name, 3, LOAD_D3, __VA_ARGS__)
#define KIND_DI(name, ...) DOUBLE_ROW(name, 1, LOAD_D1; LOAD_INT, __VA_ARGS__)

/*
 * H1 H2: the sources are widened at once, computed as floats, and rounded at
 * once.  v_add_f16 (n = 2) has `float a = fa[i]; float b = fb[i]` as load.
 */
#define HALF_LOOP(n, load, ...) \
	{ \
		OPERANDS; \
		float fa[SOFT_LANES], fb[SOFT_LANES], fr[SOFT_LANES]; \
		uint32_t bad = 0; \
\
		soft_floats_from_f16(pa, 0, fa); \
		if (n > 1) \
			soft_floats_from_f16(pb, 0, fb); \
		LANES(i) \
		{ \
			load; \
			float r = __VA_ARGS__; \
\
			fr[i] = r; \
			bad |= r != r; \
		} \
		(void)fb; \
		soft_f16_from_floats(fr, x->mode, pd); \
		if (__builtin_expect(bad, 0)) \
			fix_nan16(x, n, 0); \
	}
#define LOAD_H1		   float a = fa[i]
#define LOAD_H2		   LOAD_H1; float b = fb[i]
#define HALF_ROW(name, n, load, ...) \
	LANE_FN(name) HALF_LOOP(n, load, __VA_ARGS__) \
	MICROOP_HALF(name, n, load, __VA_ARGS__)
#define KIND_H1(name, ...) HALF_ROW(name, 1, LOAD_H1, __VA_ARGS__)
#define KIND_H2(name, ...) HALF_ROW(name, 2, LOAD_H2, __VA_ARGS__)
#define KIND_FMA16(name, lanes) \
	KIND_FN(name, lanes) \
	MICROOP_FMA16(name)

/*
 * U1 U2 U3, QU: integers.  v_and_b32 is
 *
 *	uint32_t a = pa[i];
 *	uint32_t b = pb[i];
 *	pd[i] = (a & b);
 */
#define WORD_LOOP(load, ...) \
	{ \
		OPERANDS; \
		LANES(i) \
		{ \
			load; \
			pd[i] = (__VA_ARGS__); \
		} \
	}
#define LOAD_U1		   uint32_t a = pa[i]
#define LOAD_U2		   LOAD_U1; uint32_t b = pb[i]
#define LOAD_U3		   LOAD_U2; uint32_t c = pc[i]
#define LOAD_QU		   uint64_t a = soft_get64(pa, i)
#define WORD_ROW(name, load, ...) \
	LANE_FN(name) WORD_LOOP(load, __VA_ARGS__) \
	MICROOP_WORD(name, load, __VA_ARGS__)
#define KIND_U1(name, ...) WORD_ROW(name, LOAD_U1, __VA_ARGS__)
#define KIND_U2(name, ...) WORD_ROW(name, LOAD_U2, __VA_ARGS__)
#define KIND_U3(name, ...) WORD_ROW(name, LOAD_U3, __VA_ARGS__)
#define KIND_QU(name, ...) WORD_ROW(name, LOAD_QU, __VA_ARGS__)

/* Two vregs to two. */
#define KIND_QQ(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		LANES(i) \
		{ \
			uint64_t a = soft_get64(pa, i); \
\
			soft_put64(pd, i, __VA_ARGS__); \
		} \
	}

/* One vreg to two. */
#define KIND_UQ(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		LANES(i) \
		{ \
			uint32_t a = pa[i]; \
\
			soft_put64(pd, i, __VA_ARGS__); \
		} \
	}

/* A carry out of bit 32, or a borrow; with clamp the result is `limit` then. */
#define KIND_CARRY(name, sum, limit) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		uint32_t out = 0; \
\
		LANES(i) \
		{ \
			uint32_t a = pa[i], b = pb[i]; \
			uint32_t ci = x->mask_in >> i & 1; \
			uint64_t r = sum; \
			uint32_t co = r >> 32 & 1; \
\
			(void)ci; \
			pd[i] = clamp && co ? limit : (uint32_t)r; \
			out |= co << i; \
		} \
		x->mask_out = out; \
	} \
	MICROOP_##name(name)

/*
 * Written by hand: expr is a static function above the row.  v_min_f64 is
 *
 *	void soft_v_min_f64_v3(struct soft_lanes *x)
 *	{
 *		min_f64_lanes(x);
 *	}
 */
#define KIND_FN(name, lanes) \
	LANE_FN(name) \
	{ \
		lanes(x); \
	}

#endif
