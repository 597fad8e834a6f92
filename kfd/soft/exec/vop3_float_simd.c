/*
 * kfd/soft/exec/vop3_float_simd.c - floating-point rows of vop3.def (group FLOAT).
 */
#include "kfd/soft/exec/vop3.h"

/* ------------------------------------------------------------- helpers ---- */

static inline uint32_t min32(uint32_t a, uint32_t b, bool ieee)
{
	return min_any(a, b, ieee, F32_INF);
}

static inline uint32_t max32(uint32_t a, uint32_t b, bool ieee)
{
	return max_any(a, b, ieee, F32_INF);
}

static inline uint32_t min16(uint32_t a, uint32_t b, bool ieee)
{
	return min_any(a << 16, b << 16, ieee, F16_INF) >> 16;
}

static inline uint32_t max16(uint32_t a, uint32_t b, bool ieee)
{
	return max_any(a << 16, b << 16, ieee, F16_INF) >> 16;
}

/* As floats: both zeros are equal. */
static inline bool same_any(uint32_t a, uint32_t b)
{
	return a == b || !((a | b) & 0x7fffffff);
}

/* The larger of the two that are not the largest; with a NaN the smallest. */
static inline uint32_t med3(uint32_t a, uint32_t b, uint32_t c, bool ieee,
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
static inline float mullit(float a, float b, float c)
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

/* Towards zero and saturated; NaN is 0. */
static inline uint32_t trunc_clamp(uint32_t u, int32_t low, int32_t high)
{
	float f = f32_value(u), min = (float)low, max = (float)high;

	f = f == f ? f : 0;
	f = f < min ? min : f;
	return (uint32_t)(int32_t)(f > max ? max : f);
}

/* [low, 1] to [low * scale, scale], to nearest even; NaN is 0. */
static inline uint32_t norm(float f, float low, double scale)
{
	f = f == f ? f : 0;
	f = f < low ? low : f;
	f = f > 1 ? 1 : f;
	return (uint32_t)(int32_t)__builtin_rint(f * scale);
}

/* -------------------------------------------------------- rows by kind ---- */

/* NaNs are rare: a second pass settles them where there are any. */
static __attribute__((noinline)) void settle_f32(struct soft_lanes *x, int n)
{
	const uint32_t *b = n > 1 ? x->b : x->a, *c = n > 2 ? x->c : x->a;

	LANES(i) x->d[i] = nan_any(x->d[i], x->a[i], b[i], c[i], F32_INF);
}

static __attribute__((noinline)) void settle_f64(struct soft_lanes *x, int n)
{
	const uint32_t *b = n > 1 ? x->b : x->a, *c = n > 2 ? x->c : x->a;

	LANES(i)
	soft_put64(x->d, i, f64_bits(nan_f64(f64_value(soft_get64(x->d, i)),
					     f64_value(soft_get64(x->a, i)),
					     f64_value(soft_get64(b, i)),
					     f64_value(soft_get64(c, i)))));
}

#define FLOAT_ROW(name, n, load, expr)                 \
	ROW(name)                                      \
	{                                              \
		ROW_IN(x);                             \
		uint32_t bad = 0;                      \
		LANES(i)                               \
		{                                      \
			load;                          \
			const float r = (expr);        \
			pd[i] = f32_bits(r);           \
			bad |= r != r;                 \
		}                                      \
		if (__builtin_expect(bad, 0))          \
			settle_f32(x, n);              \
	}
#define DOUBLE_ROW(name, n, load, expr)                \
	ROW(name)                                      \
	{                                              \
		ROW_IN(x);                             \
		uint32_t bad = 0;                      \
		LANES(i)                               \
		{                                      \
			load;                          \
			const double r = (expr);       \
			soft_put64(pd, i, f64_bits(r)); \
			bad |= r != r;                 \
		}                                      \
		if (__builtin_expect(bad, 0))          \
			settle_f64(x, n);              \
	}
#define LOAD_F1 const float a = f32_value(pa[i])
#define LOAD_F2 LOAD_F1; const float b = f32_value(pb[i])
#define LOAD_F3 LOAD_F2; const float c = f32_value(pc[i])
#define LOAD_D1 const double a = f64_value(soft_get64(pa, i))
#define LOAD_D2 LOAD_D1; const double b = f64_value(soft_get64(pb, i))
#define LOAD_D3 LOAD_D2; const double c = f64_value(soft_get64(pc, i))
#define LOAD_INT const int32_t b = (int32_t)pb[i]

#define ROW_F3(name, expr)                   \
	FLOAT_ROW(name, 3, LOAD_F3, expr)    \
	MICROOP_FLOAT(name, LOAD_F3, expr)      \
	MICROOP_FLUSH(name, FLUSHED_3, expr)
#define ROW_FI(name, expr)                             \
	FLOAT_ROW(name, 1, LOAD_F1; LOAD_INT, expr)    \
	MICROOP_FLOAT(name, LOAD_F1; LOAD_INT, expr)
#define ROW_D2(name, expr) DOUBLE_ROW(name, 2, LOAD_D2, expr)
#define ROW_D3(name, expr) DOUBLE_ROW(name, 3, LOAD_D3, expr)
#define ROW_DI(name, expr) DOUBLE_ROW(name, 1, LOAD_D1; LOAD_INT, expr)

#define V_INT(name, kind, expr)
#define V_FLOAT(name, kind, expr) ROW_##kind(name, expr)
#define V_PACK(name, kind, expr)
#define V(group, name, kind, flags, expr) V_##group(name, kind, expr)
#include "kfd/soft/exec/vop3.def"
#undef V

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

ROW(v_min_f64)
{
	ROW_IN(x);

	LANES(i)
	{
		uint64_t a = soft_get64(pa, i), b = soft_get64(pb, i);
		uint64_t r = order_f64(a) < order_f64(b) ? a : b;

		soft_put64(pd, i, pick_f64(r, a, b, ieee));
	}
}

ROW(v_max_f64)
{
	ROW_IN(x);

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
static inline uint32_t extreme(const struct soft_lanes *x)
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
ROW(v_div_fixup_f32)
{
	ROW_IN(x);

	if (!extreme(x) && !nan_lanes(x)) {
		LANES(i)
		pd[i] = (pa[i] & 0x7fffffff) | ((pb[i] ^ pc[i]) & 0x80000000);
		return;
	}
	LANES(i) pd[i] = (uint32_t)soft_div_fixup(&soft_format_f32, pa[i],
						  pb[i], pc[i], x->mode & 3);
}

ROW(v_div_fixup_f64)
{
	ROW_IN(x);

	LANES(i)
	soft_put64(pd, i, soft_div_fixup(&soft_format_f64, soft_get64(pa, i),
					 soft_get64(pb, i), soft_get64(pc, i),
					 x->mode >> 2 & 3));
}

ROW(v_div_fixup_f16)
{
	ROW_IN(x);

	LANES(i) pd[i] = (uint32_t)soft_div_fixup(&soft_format_f16, lo(pa[i]),
						  lo(pb[i]), lo(pc[i]),
						  x->mode >> 2 & 3);
}

/* Nothing is scaled where both are far from the ends of the range. */
ROW(v_div_scale_f32)
{
	ROW_IN(x);
	uint32_t mask = 0;

	if (!extreme(x)) {
		memcpy(pd, pa, SOFT_LANES * sizeof(*pd));
		x->mask_out = 0;
		return;
	}

	LANES(i)
	{
		bool vcc;

		pd[i] = (uint32_t)soft_div_scale(&soft_format_f32, pa[i], pb[i],
						 pc[i], &vcc);
		mask |= (uint32_t)vcc << i;
	}
	x->mask_out = mask;
}

ROW(v_div_scale_f64)
{
	ROW_IN(x);
	uint32_t mask = 0;

	LANES(i)
	{
		bool vcc;

		soft_put64(pd, i, soft_div_scale(&soft_format_f64,
						 soft_get64(pa, i),
						 soft_get64(pb, i),
						 soft_get64(pc, i), &vcc));
		mask |= (uint32_t)vcc << i;
	}
	x->mask_out = mask;
}

/* Lanes without VCC are a plain fma; the others are rare. */
ROW(v_div_fmas_f32)
{
	ROW_IN(x);

	LANES(i)
	pd[i] = f32_bits(fma_f32(f32_value(pa[i]), f32_value(pb[i]),
				 f32_value(pc[i])));
	for (uint32_t m = x->mask_in & x->exec; m; m &= m - 1) {
		int i = __builtin_ctz(m);

		pd[i] = f32_bits((float)soft_fma_scaled(
			&soft_format_f32, f32_value(pa[i]), f32_value(pb[i]),
			f32_value(pc[i]),
			soft_div_fmas_scale(&soft_format_f32, pc[i]),
			x->mode & 3));
	}
}

ROW(v_div_fmas_f64)
{
	ROW_IN(x);

	LANES(i)
	{
		double a = f64_value(soft_get64(pa, i));
		double b = f64_value(soft_get64(pb, i));
		double c = f64_value(soft_get64(pc, i));
		bool scaled = x->mask_in >> i & 1;
		int by = soft_div_fmas_scale(&soft_format_f64, f64_bits(c));

		soft_put64(pd, i,
			   f64_bits(scaled ? soft_fma_scaled(&soft_format_f64,
							     a, b, c, by,
							     x->mode >> 2 & 3)
					   : fma_f64(a, b, c)));
	}
}

/* -------------------------------------------------------------- halves ---- */

ROW(v_fma_f16)
{
	ROW_IN(x);

	if (soft_plain16(x->mode) && soft_fma16_vreg(pa, pb, pc, 0, pd))
		return;
	LANES(i)
	pd[i] = fma_f16(pa[i] << 16, pb[i] << 16, pc[i] << 16, x->mode);
}

/* -------------------------------------------------------- dot products ---- */

/* c + low products, then + high products: two fused steps, each rounded. */
ROW(v_dot2_f16_f16)
{
	ROW_IN(x);

	LANES(i)
	{
		uint32_t a = pa[i], b = pb[i];
		uint32_t t = fma_f16(a << 16, b << 16, pc[i] << 16, x->mode);

		pd[i] = fma_f16(a & 0xffff0000, b & 0xffff0000, t << 16,
				x->mode);
	}
}

/* To nearest even; a NaN keeps its upper bits and becomes quiet. */
static inline uint32_t bf16_from_f32(uint32_t u)
{
	uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return is_nan_any(u, F32_INF) ? (u >> 16 | 0x40) : r;
}

/*
 * a * b + c on bfloat16 bits in 31:16.  The product has 16 bits and is exact in
 * double; the sum is there too or so far from a tie that only its direction
 * counts, which rounding to odd keeps.
 */
static inline uint32_t fma_bf16(uint32_t a, uint32_t b, uint32_t c)
{
	const struct soft_format f = { 7, 255, 127 };
	double r = soft_fma_scaled(&f, f32_value(a), f32_value(b), f32_value(c),
				   0, 0);

	return bf16_from_f32(nan_any(f32_bits((float)r), a, b, c, F32_INF));
}

ROW(v_dot2_bf16_bf16)
{
	ROW_IN(x);

	LANES(i)
	{
		uint32_t a = pa[i], b = pb[i];
		uint32_t t = fma_bf16(a << 16, b << 16, pc[i] << 16);

		pd[i] = fma_bf16(a & 0xffff0000, b & 0xffff0000, t << 16);
	}
}
