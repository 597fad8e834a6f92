/*
 * kfd/soft/exec/valu_cvt_simd.c - conversions (valu.def, CVT).
 *
 * To integers: NaN gives 0 and what does not fit the nearest that does
 * (RDNA3 ISA 16.7, V_CVT_I32_F32 and its kind).
 */
#define IF_CVT(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

/* `f` is integral or not finite. */
static inline uint32_t i32_from_f32(float f)
{
	float in = f >= -0x1p31f && f < 0x1p31f ? f : 0;
	int32_t r = (int32_t)in;

	r = f >= 0x1p31f ? INT32_MAX : r;
	return (uint32_t)(f < -0x1p31f ? INT32_MIN : r);
}

static inline uint32_t u32_from_f32(float f)
{
	bool high = f >= 0x1p31f;
	float in = f >= 0 && f < 0x1p32f ? f : 0;
	uint32_t r = (uint32_t)(int32_t)(high ? in - 0x1p31f : in);

	r = high ? r + 0x80000000 : r;
	return f >= 0x1p32f ? ~0u : r;
}

static inline uint32_t i32_from_f64(double f)
{
	double in = f > -0x1p31 - 1 && f < 0x1p31 ? f : 0;
	int32_t r = (int32_t)in;

	r = f >= 0x1p31 ? INT32_MAX : r;
	return (uint32_t)(f <= -0x1p31 - 1 ? INT32_MIN : r);
}

static inline uint32_t u32_from_f64(double f)
{
	double in = f > 0 && f < 0x1p32 ? f : 0;

	return f >= 0x1p32 ? ~0u : (uint32_t)(int64_t)in;
}

/* floor(f + 0.5) without the rounding of that sum. */
static inline uint32_t nearest_i32(float f)
{
	float low = __builtin_floorf(f);

	return i32_from_f32(f - low >= 0.5f ? low + 1 : low);
}

/*
 * A signalling NaN that becomes wider stays one, but with MODE.IEEE (measured
 * on gfx1100: AMD, rocjitsu's HalfInputConversionsApplyModifiersAndMode).
 */
static inline uint32_t f32_from_half(float f, uint32_t half, bool ieee)
{
	return ieee ? f32_bits(f) | (f != f ? 0x400000 : 0) :
		      soft_keep_signal16(f32_bits(f), half);
}

static inline uint64_t f64_from_f32(uint32_t a, bool ieee)
{
	uint64_t signals = is_nan_any(a, F32_INF) && !(a & 0x400000) && !ieee;

	return f64_bits((double)f32_value(a)) & ~(signals << 51);
}

static void cvt_f16_f32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	float f[SOFT_LANES];

	LANES(i) f[i] = f32_value(pa[i]);
	soft_f16_from_floats(f, x->mode, pd);
}

static void cvt_f32_f16_lanes(struct soft_lanes *x)
{
	OPERANDS;
	float f[SOFT_LANES];

	soft_floats_from_f16(pa, 0, f);
	LANES(i) pd[i] = f32_from_half(f[i], pa[i], ieee);
}

static void cvt_pk_rtz_f16_f32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	float f[SOFT_LANES];
	uint32_t low[SOFT_LANES], high[SOFT_LANES];

	LANES(i) f[i] = f32_value(pa[i]);
	soft_f16_round(f, true, low);
	LANES(i) f[i] = f32_value(pb[i]);
	soft_f16_round(f, true, high);
	LANES(i) pd[i] = low[i] | high[i] << 16;
}

#include "kfd/soft/exec/valu.def"
