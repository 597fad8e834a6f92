/*
 * kfd/soft/exec/valu_shapes.h - the kinds of valu.def as lane functions.
 *
 * Private to the valu_*_simd.c files.  Such a file defines IF_<its group>(row)
 * as row, includes this header, writes its helpers, and includes valu.def.
 *
 * NaN: where an operation makes one, RDNA's result is the first source that is
 * a NaN, made quiet, or else the default NaN.  x86 chooses by the order in
 * which the compiler put the operands, so a second pass settles it; that pass
 * runs only if some lane has a NaN.
 */
#ifndef T0_KFD_SOFT_VALU_SHAPES_H
#define T0_KFD_SOFT_VALU_SHAPES_H

#include "kfd/soft/exec/valu_half.h"
#include "kfd/soft/exec/valu_microop.h"

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

#define V(group, name, kind, flags, ...) \
	IF_##group(KIND_##kind(name, __VA_ARGS__))

/* Negative: RDNA3 ISA 16.7, the examples of V_LOG_F32, V_SQRT_F16, V_SIN_F32.
 */
#define SOFT_NAN16 0xfe00u
#define SOFT_NAN32 0xffc00000u
#define SOFT_NAN64 0xfff8000000000000ull

#define LANE_FN(name) \
	soft_lane_fn SIMD(soft_##name); \
	void SIMD(soft_##name)(struct soft_lanes * x)

/* Sources and destination as locals, so that the compiler sees no aliasing. */
#define OPERANDS \
	const uint32_t *pa = x->a, *pb = x->b, *pc = x->c; \
	uint32_t *restrict pd = x->d; \
	(void)pa, (void)pb, (void)pc, (void)pd

/* ----------------------------------------------------------------- NaN ---- */

static inline uint32_t nan32(uint32_t u)
{
	return (u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : 0;
}

static inline uint64_t nan64(uint64_t u)
{
	return (u & ~(1ull << 63)) > 0x7ffull << 52 ? u | 1ull << 51 : 0;
}

/* Settle the NaNs of a result whose first `n` sources are floats. */
static __attribute__((noinline, unused)) void fix_nan32(struct soft_lanes *x,
							int n)
{
	const uint32_t *src[3] = { x->a, x->b, x->c };

	LANES(i)
	{
		uint32_t u = 0;

		if (!nan32(x->d[i]))
			continue;
		for (int k = 0; k < n && !u; k++)
			u = nan32(src[k][i]);
		x->d[i] = u ? u : SOFT_NAN32;
	}
}

static __attribute__((noinline, unused)) void fix_nan64(struct soft_lanes *x)
{
	LANES(i)
	{
		uint64_t u = nan64(soft_get64(x->a, i));

		if (nan64(soft_get64(x->d, i)))
			soft_put64(x->d, i, u ? u : SOFT_NAN64);
	}
}

static __attribute__((noinline, unused)) void fix_nan16(struct soft_lanes *x,
							int n, int shift)
{
	const uint32_t *src[3] = { x->a, x->b, x->c };

	LANES(i)
	{
		uint32_t u = 0;

		if ((x->d[i] >> shift & 0x7fff) <= 0x7c00)
			continue;
		for (int k = 0; k < n && !u; k++) {
			u = src[k][i] >> shift & 0xffff;
			u = (u & 0x7fff) > 0x7c00 ? u | 0x200 : 0;
		}
		x->d[i] &= ~(0xffffu << shift);
		x->d[i] |= (u ? u : SOFT_NAN16) << shift;
	}
}

/* --------------------------------------------------------------- kinds ---- */

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

#define KIND_D1(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			double a = f64_value(soft_get64(pa, i)); \
			double r = __VA_ARGS__; \
\
			soft_put64(pd, i, f64_bits(r)); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan64(x); \
	}

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
		soft_f16_from_floats(fr, soft_round16(x->mode), \
				     soft_ovfl16(x->mode), pd); \
		if (__builtin_expect(bad, 0)) \
			fix_nan16(x, n, 0); \
	}
#define LOAD_H1		   float a = fa[i]
#define LOAD_H2		   LOAD_H1; float b = fb[i]
#define KIND_H1(name, ...) LANE_FN(name) HALF_LOOP(1, LOAD_H1, __VA_ARGS__)
#define KIND_H2(name, ...) LANE_FN(name) HALF_LOOP(2, LOAD_H2, __VA_ARGS__)

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

#endif
