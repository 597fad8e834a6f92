/*
 * kfd/soft/exec/vop3_float_simd.c - floating-point rows (vop3.def, FLOAT).
 */
#define IF_FLOAT(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

/* ------------------------------------------------------------- helpers ---- */

/* As floats: both zeros are equal. */
static inline bool same_any(uint32_t a, uint32_t b)
{
	return a == b || !((a | b) & 0x7fffffff);
}

/* The larger of the two that are not the largest; with a NaN the smallest. */
static inline uint32_t med3_any(uint32_t a, uint32_t b, uint32_t c, bool ieee,
				uint32_t inf)
{
	uint32_t top = max_any(max_any(a, b, ieee, inf), c, ieee, inf);
	bool nan = is_nan_any(a, inf) || is_nan_any(b, inf) ||
		   is_nan_any(c, inf);
	uint32_t r = max_any(a, b, ieee, inf);

	r = same_any(top, b) ? max_any(a, c, ieee, inf) : r;
	r = same_any(top, a) ? max_any(b, c, ieee, inf) : r;
	return nan ? min_any(min_any(a, b, ieee, inf), c, ieee, inf) : r;
}

static inline uint32_t med3_num_any(uint32_t a, uint32_t b, uint32_t c,
				    uint32_t inf)
{
	const bool nan = is_nan_any(a, inf) || is_nan_any(b, inf) ||
			 is_nan_any(c, inf);

	return nan ? min_num_any(min_num_any(a, b, inf), c, inf) :
		     med3_any(a, b, c, false, inf);
}

/*
 * The face of a cube map: the axis of largest magnitude, z before y before x.
 */
enum axis { AXIS_X, AXIS_Y, AXIS_Z };

static inline enum axis cube_axis(float x, float y, float z)
{
	float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y);
	float az = __builtin_fabsf(z);

	return az >= ax && az >= ay ? AXIS_Z : ay >= ax ? AXIS_Y : AXIS_X;
}

static inline float cube_major(float x, float y, float z)
{
	enum axis m = cube_axis(x, y, z);

	return m == AXIS_Z ? z : m == AXIS_Y ? y : x;
}

static inline float cube_id(float x, float y, float z)
{
	return 2 * (float)cube_axis(x, y, z) + (cube_major(x, y, z) < 0);
}

static inline float cube_sc(float x, float y, float z)
{
	enum axis m = cube_axis(x, y, z);

	if (m == AXIS_X)
		return x < 0 ? z : -z;
	return m == AXIS_Z && z < 0 ? -x : x;
}

static inline float cube_tc(float x, float y, float z)
{
	if (cube_axis(x, y, z) != AXIS_Y)
		return -y;
	return y < 0 ? -z : z;
}

/* The specular term of fixed-function lighting; c is the guard. */
static inline float mul_lit(float a, float b, float c)
{
	bool usable = b > -__FLT_MAX__ && c > 0;

	return usable ? a * b : -__FLT_MAX__;
}

/* Exact in double, then rounded once. */
static inline float ldexp_f32(float a, int32_t b)
{
	int32_t e = min_i32(max_i32(b, -400), 400);
	double by = f64_value((uint64_t)(e + 1023) << 52);

	return (float)(a * by);
}

/*
 * A power of two beyond a double's range is applied in steps; those that go
 * down keep 53 bits in hand, so that only the last one can round.
 */
static inline double ldexp_f64(double a, int32_t b)
{
	int32_t e = min_i32(max_i32(b, -2200), 2200);
	double r = a;

	for (; e > 1023; e -= 1023)
		r *= 0x1p1023;
	for (; e < -1022; e += 969)
		r *= 0x1p-969;
	return r * f64_value((uint64_t)(e + 1023) << 52);
}

static inline uint32_t put_u8(uint32_t old, uint32_t index, uint32_t byte)
{
	int shift = (index & 3) * 8;

	return (old & ~(0xffu << shift)) | byte << shift;
}

/*
 * Saturated, NaN is 0.  The manual does not name the rounding; it is MODE's,
 * as of every conversion to a packed pixel.
 */
static inline uint32_t to_u8(float f, uint32_t mode)
{
	float up = __builtin_ceilf(f), down = __builtin_floorf(f);
	float zero = __builtin_truncf(f), even = __builtin_rintf(f);
	unsigned round = mode & 3;
	float r = round == 0 ? even :
		  round == 1 ? up :
		  round == 2 ? down :
			       zero;

	r = r > 0 ? r : 0;
	return (uint32_t)(int32_t)(r < 255 ? r : 255);
}

/* ---------------------------------------------------- minimum, maximum ---- */

static inline int64_t order_f64(uint64_t u)
{
	return (int64_t)(u ^ (uint64_t)((int64_t)u >> 63) >> 1);
}

/* As pick_any(), in 64 bits. */
static inline uint64_t pick_f64(uint64_t r, uint64_t a, uint64_t b, bool ieee)
{
	const uint64_t quiet = 0x8000000000000ull;
	bool an = (a & ~F64_SIGN) > F64_INF, bn = (b & ~F64_SIGN) > F64_INF;

	r = an ? b : r;
	r = bn ? a : r;
	r = bn && ieee && !(b & quiet) ? b | quiet : r;
	return an && ieee && !(a & quiet) ? a | quiet : r;
}

static void min_f64_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		uint64_t a = soft_get64(pa, i), b = soft_get64(pb, i);
		uint64_t r = order_f64(a) < order_f64(b) ? a : b;

		soft_put64(pd, i, pick_f64(r, a, b, ieee));
	}
}

/* gfx12's, as those of f32 in vop3.h. */
static inline bool is_nan_f64(uint64_t u)
{
	return (u & ~F64_SIGN) > F64_INF;
}

static inline uint64_t num_f64(uint64_t r, uint64_t a, uint64_t b)
{
	const uint64_t quiet = 0x8000000000000ull;

	r = is_nan_f64(a) ? b : r;
	r = is_nan_f64(b) ? a : r;
	return is_nan_f64(r) ? r | quiet : r;
}

static inline uint64_t nan_first_f64(uint64_t r, uint64_t a, uint64_t b)
{
	const uint64_t quiet = 0x8000000000000ull;
	const bool an = is_nan_f64(a), bn = is_nan_f64(b);

	if (an && (!(a & quiet) || !bn || b & quiet))
		return a | quiet;
	return bn ? b | quiet : r;
}

#define EXTREME_F64(name, relation, pick)                             \
	static void name##_f64_lanes(struct soft_lanes *x)            \
	{                                                             \
		OPERANDS;                                             \
		LANES(i)                                              \
		{                                                     \
			uint64_t a = soft_get64(pa, i);               \
			uint64_t b = soft_get64(pb, i);               \
			uint64_t r = order_f64(a) relation order_f64(b) ? \
					     a : b;                   \
			soft_put64(pd, i, pick(r, a, b));             \
		}                                                     \
	}
EXTREME_F64(min_num, <, num_f64)
EXTREME_F64(max_num, >, num_f64)
EXTREME_F64(minimum, <, nan_first_f64)
EXTREME_F64(maximum, >, nan_first_f64)
#undef EXTREME_F64

static void max_f64_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		uint64_t a = soft_get64(pa, i), b = soft_get64(pb, i);
		uint64_t r = order_f64(a) > order_f64(b) ? a : b;

		soft_put64(pd, i, pick_f64(r, a, b, ieee));
	}
}

/* ------------------------------------------------------------ division ---- */

/* Of a float whose magnitude is from 2^-40 to 2^40. */
static inline uint32_t is_middling(uint32_t u)
{
	return (u >> 23 & 255) - 87 < 80;
}

/* Lanes that execute and where sources b and c are not both like that. */
static inline uint32_t extreme_lanes(const struct soft_lanes *x)
{
	_Alignas(64) int32_t r[SOFT_LANES];

	LANES(i) r[i] = is_middling(x->b[i]) & is_middling(x->c[i]) ? 0 : -1;
	return soft_lanes_mask(r) & x->exec;
}

/* Lanes that execute and where source a is a NaN. */
static inline uint32_t nan_lanes(const struct soft_lanes *x)
{
	_Alignas(64) int32_t r[SOFT_LANES];

	LANES(i) r[i] = (x->a[i] & 0x7fffffff) > F32_INF ? -1 : 0;
	return soft_lanes_mask(r) & x->exec;
}

/* Of numbers in the middle of the range, only the sign is to be settled. */
static void div_fixup_f32_lanes(struct soft_lanes *x)
{
	OPERANDS;

	if (!extreme_lanes(x) && !nan_lanes(x)) {
		LANES(i)
		pd[i] = (pa[i] & 0x7fffffff) | ((pb[i] ^ pc[i]) & 0x80000000);
		return;
	}
	LANES(i) pd[i] = (uint32_t)soft_div_fixup(&soft_format_f32, pa[i],
						  pb[i], pc[i], x->mode & 3, false);
}

static void div_fixup_f64_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	soft_put64(pd, i, soft_div_fixup(&soft_format_f64, soft_get64(pa, i),
					 soft_get64(pb, i), soft_get64(pc, i),
					 soft_round16(x->mode), false));
}

static void div_fixup_f16_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	pd[i] = (uint32_t)soft_div_fixup(&soft_format_f16, zext_16(pa[i]),
					 zext_16(pb[i]), zext_16(pc[i]),
					 soft_round16(x->mode),
					 soft_ovfl16(x->mode));
}

/* Nothing is scaled where both are far from the ends of the range. */
static void div_scale_f32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	uint32_t mask = 0;

	if (!extreme_lanes(x)) {
		memcpy(pd, pa, SOFT_LANES * sizeof(*pd));
		x->mask_out = 0;
		return;
	}

	LANES(i)
	{
		bool vcc;

		pd[i] = (uint32_t)soft_div_scale(&soft_format_f32, pa[i], pb[i],
						 pc[i], ieee, &vcc);
		mask |= (uint32_t)vcc << i;
	}
	x->mask_out = mask;
}

static void div_scale_f64_lanes(struct soft_lanes *x)
{
	OPERANDS;
	uint32_t mask = 0;

	LANES(i)
	{
		bool vcc;

		soft_put64(pd, i, soft_div_scale(&soft_format_f64,
						 soft_get64(pa, i),
						 soft_get64(pb, i),
						 soft_get64(pc, i), ieee,
						 &vcc));
		mask |= (uint32_t)vcc << i;
	}
	x->mask_out = mask;
}

/* Lanes without VCC are a plain fma; the others are rare. */
static void div_fmas_f32_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	pd[i] = fma_f32(f32_value(pa[i]), f32_value(pb[i]), f32_value(pc[i]),
			ieee);
	for (uint32_t m = x->mask_in & x->exec; m; m &= m - 1) {
		int i = __builtin_ctz(m);
		float r = (float)soft_fma_scaled(
			&soft_format_f32, f32_value(pa[i]), f32_value(pb[i]),
			f32_value(pc[i]),
			soft_div_fmas_scale(&soft_format_f32, pc[i]),
			x->mode & 3, !(x->mode & 0x20));

		pd[i] = r == r ? f32_bits(r) : pd[i];
	}
}

static void div_fmas_f64_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		double a = f64_value(soft_get64(pa, i));
		double b = f64_value(soft_get64(pb, i));
		double c = f64_value(soft_get64(pc, i));
		int by = soft_div_fmas_scale(&soft_format_f64, f64_bits(c));
		double r;

		soft_put64(pd, i, fma_f64(a, b, c, ieee));
		if (!(x->mask_in >> i & 1))
			continue;
		r = soft_fma_scaled(&soft_format_f64, a, b, c, by,
				    soft_round16(x->mode),
				    soft_flushes16(x->mode));
		if (r == r)
			soft_put64(pd, i, f64_bits(r));
	}
}

/* -------------------------------------------------------- dot products ---- */

/* c + low products, then + high products: two fused steps, each rounded. */
static void dot2_f16_f16_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		uint32_t a = pa[i], b = pb[i];
		uint32_t t = fma_f16(a << 16, b << 16, pc[i] << 16, x->mode);

		pd[i] = fma_f16(a & 0xffff0000, b & 0xffff0000, t << 16,
				x->mode);
	}
}

/* To nearest even; a NaN is one in its upper bits. */
static inline uint32_t bf16_from_f32(uint32_t u)
{
	uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return is_nan_any(u, F32_INF) ? u >> 16 : r;
}

/*
 * a * b + c on bfloat16 bits in 31:16.  The product has 16 bits and is exact in
 * double; the sum is there too or so far from a tie that only its direction
 * counts, which rounding to odd keeps.
 */
static inline uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c, bool ieee)
{
	const struct soft_format f = { 7, 255, 127 };
	double r = soft_fma_scaled(&f, f32_value(a), f32_value(b), f32_value(c),
				   0, 0, false);
	const float p = f32_value(a) * f32_value(b);
	const uint32_t u =
		nan_fma(f32_bits((float)r), a, b, c, p != p, ieee, F32_INF);

	return bf16_from_f32(u);
}

static void dot2_bf16_bf16_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		uint32_t a = pa[i], b = pb[i];
		uint32_t t = fma_bf16(a << 16, b << 16, pc[i] << 16, ieee);

		pd[i] = fma_bf16(a & 0xffff0000, b & 0xffff0000, t << 16, ieee);
	}
}

#include "kfd/soft/exec/vop3.def"
