/*
 * kfd/soft/exec/vop3.h - arithmetic that several of the *_simd.c files need.
 *
 * Private to them and vop3_exact.c.  Functions here are branch-free where a
 * loop over lanes is to be vectorised.  Half-precision numbers travel as "any"
 * bits: 32 bits with the sign on top, so that one function serves f32 (F32_INF)
 * and f16 (bits 31:16, F16_INF): both are sign and magnitude, only infinity
 * differs.
 *
 * NaN: the first NaN among the sources in the order of the text, made quiet if
 * `ieee`; an invalid operation gives the default NaN, which is negative (as in
 * valu_shapes.h).  The host's own choice depends on how the compiler ordered
 * the operands, so every NaN is settled by nan_any() or nan_f64().
 */
#ifndef T0_KFD_SOFT_VOP3_H
#define T0_KFD_SOFT_VOP3_H

#include "kfd/soft/exec/valu_half.h"

#define F32_INF 0x7f800000u
#define F16_INF 0x7c000000u
#define F64_INF 0x7ff0000000000000ull
#define F64_SIGN 0x8000000000000000ull

/* ------------------------------------------------------------ integers ---- */

static inline uint32_t zext_16(uint32_t u)
{
	return u & 0xffff;
}

static inline int32_t sext_16(uint32_t u)
{
	return (int16_t)u;
}

static inline int64_t sext_24(uint32_t u)
{
	return (int32_t)(u << 8) >> 8;
}

static inline uint32_t pack_16(uint32_t low, uint32_t high)
{
	return (low & 0xffff) | high << 16;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static inline int32_t min_i32(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

static inline int32_t max_i32(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

static inline int32_t med3_i16(int32_t a, int32_t b, int32_t c)
{
	return max_i32(min_i32(a, b), min_i32(max_i32(a, b), c));
}

/* Results too wide for their type: saturated if `clamp`, else cut. */
static inline uint32_t sat_range(int64_t v, int64_t low, int64_t high,
				 bool clamp)
{
	int64_t s = v < low ? low : v > high ? high : v;

	return (uint32_t)(clamp ? s : v);
}

static inline uint32_t sat_u16(int64_t v, bool clamp)
{
	return sat_range(v, 0, 0xffff, clamp);
}

static inline uint32_t sat_i16(int64_t v, bool clamp)
{
	return sat_range(v, INT16_MIN, INT16_MAX, clamp);
}

static inline uint32_t sat_i32(int64_t v, bool clamp)
{
	return sat_range(v, INT32_MIN, INT32_MAX, clamp);
}

/* A product (or sum of them), exact, plus the addend. */
static inline uint32_t mad_i32(int64_t product, uint32_t c, bool clamp)
{
	return sat_i32(product + (int32_t)c, clamp);
}

static inline uint32_t mad_u32(uint64_t product, uint32_t c, bool clamp)
{
	uint64_t v = product + c;

	return clamp && v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* -------------------------------------------------------------- floats ---- */

static inline bool is_nan_any(uint32_t u, uint32_t inf)
{
	return (u & 0x7fffffff) > inf;
}

/* `r` if it is no NaN, else the NaN that the sources call for. */
static inline uint32_t nan_any(uint32_t r, uint32_t a, uint32_t b, uint32_t c,
			       bool ieee, uint32_t inf)
{
	const uint32_t bit = inf == F32_INF ? 0x400000 : 0x2000000;
	const uint32_t quiet = ieee ? bit : 0;
	uint32_t n = 0x80000000 | inf | bit;

	n = is_nan_any(c, inf) ? c | quiet : n;
	n = is_nan_any(b, inf) ? b | quiet : n;
	n = is_nan_any(a, inf) ? a | quiet : n;
	return is_nan_any(r, inf) ? n : r;
}

/* Of a product and a sum: an invalid product hides what the addend is. */
static inline uint32_t nan_fma(uint32_t r, uint32_t a, uint32_t b, uint32_t c,
			       bool invalid, bool ieee, uint32_t inf)
{
	return nan_any(r, a, b, invalid ? b : c, ieee, inf);
}

static inline uint64_t nan_f64(double r, double a, double b, double c,
			       bool ieee)
{
	const uint64_t bit = 0x8000000000000ull, quiet = ieee ? bit : 0;
	uint64_t n = F64_SIGN | F64_INF | bit;

	n = c != c ? f64_bits(c) | quiet : n;
	n = b != b ? f64_bits(b) | quiet : n;
	n = a != a ? f64_bits(a) | quiet : n;
	return r != r ? n : f64_bits(r);
}

/* Bits of the result: a signalling NaN would not live long as a number. */
static inline uint32_t fma_f32(float a, float b, float c, bool ieee)
{
	const float p = a * b;

	return nan_fma(f32_bits(__builtin_fmaf(a, b, c)), f32_bits(a),
		       f32_bits(b), f32_bits(c), p != p, ieee, F32_INF);
}

static inline uint64_t fma_f64(double a, double b, double c, bool ieee)
{
	const double p = a * b;

	return nan_f64(__builtin_fma(a, b, c), a, b, p != p ? b : c, ieee);
}

static inline float f32_of_half(uint32_t h)
{
	return soft_f32_from_f16(h & 0xffff);
}

/*
 * On halves in bits 31:16, result in bits 15:0.  MXCSR rounds as MODE says for
 * f16, so that the two roundings go the same way; see valu_half.h.
 */
static inline uint32_t fma_f16(uint32_t a, uint32_t b, uint32_t c,
			       uint32_t mode)
{
	double p = (double)f32_of_half(a >> 16) * f32_of_half(b >> 16);
	uint32_t r = soft_f16_from_f64(p + f32_of_half(c >> 16), mode);

	return nan_fma(r << 16, a, b, c, p != p, mode & SOFT_MODE_IEEE,
		       F16_INF) >>
	       16;
}

static inline uint32_t add_f16(uint32_t a, uint32_t b, uint32_t mode)
{
	uint32_t r = soft_f16_from_f32(
		f32_of_half(a >> 16) + f32_of_half(b >> 16), mode);

	return nan_any(r << 16, a, b, b, mode & SOFT_MODE_IEEE, F16_INF) >> 16;
}

static inline uint32_t mul_f16(uint32_t a, uint32_t b, uint32_t mode)
{
	uint32_t r = soft_f16_from_f32(
		f32_of_half(a >> 16) * f32_of_half(b >> 16), mode);

	return nan_any(r << 16, a, b, b, mode & SOFT_MODE_IEEE, F16_INF) >> 16;
}

/*
 * v_fma_dx9_zero_f32 and v_fmac: a zero factor makes the product +0, whatever
 * the other one is; then only the addend may be the NaN.
 */
static inline void fma_dx9_f32_lanes(struct soft_lanes *x)
{
	const bool ieee = x->mode & SOFT_MODE_IEEE;

	LANES(i)
	{
		float a = f32_value(x->a[i]), b = f32_value(x->b[i]);
		float c = f32_value(x->c[i]), none = a == 0 || b == 0 ? 0 : 1;

		a = none != 0 ? a : 0;
		b = none != 0 ? b : 0;
		x->d[i] = fma_f32(a, b, c, ieee);
	}
}

/* gfx10_1's multiply-adds: the product is rounded, too. */
static inline uint32_t mad_f32(float a, float b, float c, bool ieee)
{
	const float p = a * b;

	return nan_fma(f32_bits(p + c), f32_bits(a), f32_bits(b), f32_bits(c),
		       p != p, ieee, F32_INF);
}

static inline void mad_f32_lanes(struct soft_lanes *x)
{
	const bool ieee = x->mode & SOFT_MODE_IEEE;

	LANES(i)
	x->d[i] = mad_f32(f32_value(x->a[i]), f32_value(x->b[i]),
			  f32_value(x->c[i]), ieee);
}

/* The same where a zero factor makes the product +0. */
static inline void mad_legacy_f32_lanes(struct soft_lanes *x)
{
	const bool ieee = x->mode & SOFT_MODE_IEEE;

	LANES(i)
	{
		float a = f32_value(x->a[i]), b = f32_value(x->b[i]);
		const bool none = a == 0 || b == 0;

		x->d[i] = mad_f32(none ? 0 : a, none ? 0 : b,
				  f32_value(x->c[i]), ieee);
	}
}

/* What v_fma_f16 and v_pk_fma_f16 are made of, and their kin. */
static inline void fma_f16_lanes(struct soft_lanes *x)
{
	const uint32_t *a = x->a, *b = x->b, *c = x->c;

	if (soft_plain16(x->mode) && soft_fma16_vreg(a, b, c, 0, x->mode, x->d))
		return;
	LANES(i)
	x->d[i] = fma_f16(a[i] << 16, b[i] << 16, c[i] << 16, x->mode);
}

static __attribute__((noinline, unused)) void
pk_fma_f16_lanes(struct soft_lanes *x)
{
	const uint32_t *a = x->a, *b = x->b, *c = x->c;

	LANES(i)
	x->d[i] = pack_16(fma_f16(a[i] << 16, b[i] << 16, c[i] << 16, x->mode),
			  fma_f16(a[i] & 0xffff0000, b[i] & 0xffff0000,
				  c[i] & 0xffff0000, x->mode));
}

/* Truncated and saturated; NaN is 0. */
static inline uint32_t trunc_clamp(float f, int32_t low, int32_t high)
{
	float min = (float)low, max = (float)high;

	f = f == f ? f : 0;
	f = f < min ? min : f;
	return (uint32_t)(int32_t)(f > max ? max : f);
}

/* [low, 1] to [low * scale, scale], to nearest even; NaN is 0. */
static inline uint32_t norm_int(float f, float low, double scale)
{
	f = f == f ? f : 0;
	f = f < low ? low : f;
	f = f > 1 ? 1 : f;
	return (uint32_t)(int32_t)__builtin_rint(f * scale);
}

/* ---------------------------------------------------- minimum, maximum ---- */

/* Order of floats as integers; -0 is below +0, as the hardware has it. */
static inline int32_t order_any(uint32_t u)
{
	return (int32_t)(u ^ (uint32_t)((int32_t)u >> 31) >> 1);
}

/*
 * `r` unless a source is a NaN: then the other source, or `a` if both are; but
 * in IEEE mode a signalling NaN wins and becomes quiet (RDNA3 ISA 16.8,
 * V_MIN_F32).
 */
static inline uint32_t pick_any(uint32_t r, uint32_t a, uint32_t b, bool ieee,
				uint32_t inf)
{
	/* Without branches, or the loop would not become vector code. */
	const uint32_t quiet = inf == F32_INF ? 0x400000 : 0x2000000;
	const uint32_t silent = ieee ? quiet : ~0u;
	uint32_t an = is_nan_any(a, inf), bn = is_nan_any(b, inf);
	uint32_t signal_a = an & ((a & silent) == 0);
	uint32_t signal_b = bn & ((b & silent) == 0);

	r = an ? b : r;
	r = bn ? a : r;
	r = signal_b ? b | quiet : r;
	return signal_a ? a | quiet : r;
}

static inline uint32_t min_any(uint32_t a, uint32_t b, bool ieee, uint32_t inf)
{
	return pick_any(order_any(a) < order_any(b) ? a : b, a, b, ieee, inf);
}

static inline uint32_t max_any(uint32_t a, uint32_t b, bool ieee, uint32_t inf)
{
	return pick_any(order_any(a) > order_any(b) ? a : b, a, b, ieee, inf);
}

/*
 * gfx12's: a number wins over a NaN, and of two NaNs the first (..._num); or a
 * NaN wins, signalling ones first (minimum, maximum).  NaNs become quiet.
 */
static inline uint32_t quiet_any(uint32_t r, uint32_t inf)
{
	return is_nan_any(r, inf) ? r | (inf == F32_INF ? 0x400000 : 0x2000000) :
				    r;
}

static inline uint32_t min_num_any(uint32_t a, uint32_t b, uint32_t inf)
{
	return quiet_any(min_any(a, b, false, inf), inf);
}

static inline uint32_t max_num_any(uint32_t a, uint32_t b, uint32_t inf)
{
	return quiet_any(max_any(a, b, false, inf), inf);
}

static inline uint32_t prefer_nan(uint32_t r, uint32_t a, uint32_t b,
				  uint32_t inf)
{
	const uint32_t quiet = inf == F32_INF ? 0x400000 : 0x2000000;
	const uint32_t an = is_nan_any(a, inf), bn = is_nan_any(b, inf);
	const uint32_t b_first = bn & !(b & quiet) & !(an & !(a & quiet));

	r = bn ? b | quiet : r;
	r = an & !b_first ? a | quiet : r;
	return r;
}

static inline uint32_t minimum_any(uint32_t a, uint32_t b, uint32_t inf)
{
	return prefer_nan(order_any(a) < order_any(b) ? a : b, a, b, inf);
}

static inline uint32_t maximum_any(uint32_t a, uint32_t b, uint32_t inf)
{
	return prefer_nan(order_any(a) > order_any(b) ? a : b, a, b, inf);
}

#define GFX12_EXTREME(name)                                          \
	static inline uint32_t name##_f32(uint32_t a, uint32_t b)    \
	{                                                            \
		return name##_any(a, b, F32_INF);                    \
	}                                                            \
	static inline uint32_t name##_f16(uint32_t a, uint32_t b)    \
	{                                                            \
		return name##_any(a << 16, b << 16, F16_INF) >> 16;  \
	}
GFX12_EXTREME(min_num)
GFX12_EXTREME(max_num)
GFX12_EXTREME(minimum)
GFX12_EXTREME(maximum)
#undef GFX12_EXTREME

static inline uint32_t min_f32(uint32_t a, uint32_t b, bool ieee)
{
	return min_any(a, b, ieee, F32_INF);
}

static inline uint32_t max_f32(uint32_t a, uint32_t b, bool ieee)
{
	return max_any(a, b, ieee, F32_INF);
}

static inline uint32_t min_f16(uint32_t a, uint32_t b, bool ieee)
{
	return min_any(a << 16, b << 16, ieee, F16_INF) >> 16;
}

static inline uint32_t max_f16(uint32_t a, uint32_t b, bool ieee)
{
	return max_any(a << 16, b << 16, ieee, F16_INF) >> 16;
}

/* -------------------------------------------------------- vop3_exact.c ---- */

/* A binary floating-point format, for arithmetic that runs on its bits. */
struct soft_format {
	int mant_bits, exp_max, bias;
};
extern const struct soft_format soft_format_f16, soft_format_f32,
	soft_format_f64;

/*
 * a * b + c, times 2^scale, rounded once to `to`: what div_fmas needs when its
 * result is denormal.  `round` is as in MODE; with `flush`, what would be
 * denormal if it were rounded to as many bits is zero.  Which NaN comes of
 * NaNs is left to the caller.
 */
double soft_fma_scaled(const struct soft_format *to, double a, double b,
		       double c, int scale, unsigned round, bool flush);

/*
 * div_scale: bits of the result; *vcc: div_fmas shall scale the quotient.  A
 * signalling NaN that is scaled becomes quiet if `ieee`.
 */
uint64_t soft_div_scale(const struct soft_format *f, uint64_t s0, uint64_t s1,
			uint64_t s2, bool ieee, bool *vcc);
/* By how much div_fmas scales (s2: its addend) in a lane whose VCC is set. */
int soft_div_fmas_scale(const struct soft_format *f, uint64_t s2);
uint64_t soft_div_fixup(const struct soft_format *f, uint64_t s0, uint64_t s1,
			uint64_t s2, unsigned round, bool ovfl);

/* 53 bits of 2/pi for the reduction of `x`, number `segment` & 31. */
double soft_trig_preop(double x, uint32_t segment);

#endif
