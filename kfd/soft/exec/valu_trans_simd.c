/*
 * kfd/soft/exec/valu_trans_simd.c - transcendental operations.
 *
 * Group TRANS of valu.def.  The hardware's are accurate to about 1 ulp; these
 * are computed in double with polynomials of our own and rounded once, to
 * nearest, so that they are within 0.51 ulp and the same on every host: only +,
 * -, *, / and sqrt are used, which IEEE 754 defines.  Bits may differ from the
 * chip's in the last place.  The f32 unit knows no denormals, whatever MODE
 * says, but for sine and cosine; the f16 unit keeps them (RDNA3 ISA 16.7).
 *
 * Angles are in turns: sin(a) here is sin(2 pi a) elsewhere.
 */
#define IF_TRANS(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"

/*
 * Whole numbers to bits and back without the conversions between integers and
 * doubles that AVX2 lacks: near 1.5 * 2^52 the last bit of a double counts 1.
 */
static inline uint64_t low_bits(double n)
{
	return f64_bits(n + 6755399441055744.0);
}

/* 2^n, if it is a normal number. */
static inline double power_of_two(double n)
{
	return f64_value(low_bits(n + 1023) << 52);
}

/* 2^a: a = n + f, |f| <= 1/2; Taylor series of e^(f ln 2) to degree 11. */
static inline double exp2_unit(double a)
{
	double in = a < -1100 ? -1100 : a > 1100 ? 1100 : a;
	double n = __builtin_rint(in), t = (in - n) * 0.6931471805599453;
	double p = 1 / 39916800.0;
	double half, rest;

	p = p * t + 1 / 3628800.0;
	p = p * t + 1 / 362880.0;
	p = p * t + 1 / 40320.0;
	p = p * t + 1 / 5040.0;
	p = p * t + 1 / 720.0;
	p = p * t + 1 / 120.0;
	p = p * t + 1 / 24.0;
	p = p * t + 1 / 6.0;
	p = p * t + 0.5;
	p = p * t + 1;
	p = p * t + 1;
	/* 2^n in two factors, as n may be beyond what one double holds. */
	half = __builtin_rint(n * 0.5);
	rest = n - half;
	p *= power_of_two(half);
	p *= power_of_two(rest);
	return a == a ? p : a;
}

/*
 * log2 of a normal double: m 2^e with m in [sqrt(1/2), sqrt(2)); then
 * ln m = 2 atanh((m - 1) / (m + 1)), a series in odd powers up to the 17th.
 */
static inline double log2_unit(double a)
{
	uint64_t u = f64_bits(a);
	/* 2^52 plus the biased exponent, less both. */
	double e = f64_value((u >> 52 & 0x7ff) | 1075ull << 52) -
		   (4503599627370496.0 + 1023);
	double m = f64_value((u & ((1ull << 52) - 1)) | 1023ull << 52);
	double less = m * 0.5, more = e + 1;
	bool above = m > 1.4142135623730951;
	double s, z, p;

	m = above ? less : m;
	e = above ? more : e;
	s = (m - 1) / (m + 1);
	z = s * s;
	p = 1 / 17.0;
	p = p * z + 1 / 15.0;
	p = p * z + 1 / 13.0;
	p = p * z + 1 / 11.0;
	p = p * z + 1 / 9.0;
	p = p * z + 1 / 7.0;
	p = p * z + 1 / 5.0;
	p = p * z + 1 / 3.0;
	p = p * z + 1;
	p = e + p * s * 2.8853900817779268; /* 2 / ln 2 */
	p = a < __builtin_inf() ? p : a; /* a NaN stays */
	p = a == 0 ? -__builtin_inf() : p;
	return a < 0 ? __builtin_nan("") : p;
}

static inline double rsq_unit(double a)
{
	/* -0 gives -inf, as 1 / sqrt(-0) does. */
	return 1.0 / __builtin_sqrt(a);
}

/*
 * The sine of a turns, `quarter` quarters further.  The nearest quarter turn
 * and the rest are exact; the rest is at most 1/8 turn, pi/4.
 */
static inline double sin_unit(double a, int quarter)
{
	double big = a - a == 0 ? a : 0; /* infinity has no angle */
	double frac = big - __builtin_rint(big);
	double n = __builtin_rint(frac * 4);
	double t = (frac * 4 - n) * 1.5707963267948966, z = t * t;
	uint64_t q = low_bits(n + quarter);
	double s = -1 / 1307674368000.0, c = 1 / 20922789888000.0, r;

	s = s * z + 1 / 6227020800.0;
	s = s * z - 1 / 39916800.0;
	s = s * z + 1 / 362880.0;
	s = s * z - 1 / 5040.0;
	s = s * z + 1 / 120.0;
	s = s * z - 1 / 6.0;
	s = t + t * z * s;
	c = c * z - 1 / 87178291200.0;
	c = c * z + 1 / 479001600.0;
	c = c * z - 1 / 3628800.0;
	c = c * z + 1 / 40320.0;
	c = c * z - 1 / 720.0;
	c = c * z + 1 / 24.0;
	c = c * z - 0.5;
	c = c * z + 1;
	r = q & 1 ? c : s;
	r = q & 2 ? 0 - r : r;
	/* sin(-0) is -0; a whole number of turns is +0. */
	r = a == 0 && !quarter ? a : r;
	return a - a == 0 ? r : a - a;
}

/*
 * `flush` is soft_flush_f32 (T32) or nothing (T32D).  v_rcp_f32's loop is
 *
 *	double a = f32_value(soft_flush_f32(pa[i]));
 *	float r = (float)(1.0 / a);
 *
 *	pd[i] = soft_flush_f32(f32_bits(r));
 *	bad |= r != r;
 */
#define FLOAT_TRANS(flush, ...) \
	{ \
		OPERANDS; \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			double a = f32_value(flush(pa[i])); \
			float r = (float)(__VA_ARGS__); \
\
			pd[i] = flush(f32_bits(r)); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan32(x, 1); \
	}
#define KIND_T32(name, ...)  \
	LANE_FN(name) FLOAT_TRANS(soft_flush_f32, __VA_ARGS__)
#define KIND_T32D(name, ...) LANE_FN(name) FLOAT_TRANS(, __VA_ARGS__)
#define KIND_T16(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		bool ovfl = soft_ovfl16(x->mode); \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			double a = soft_f32_from_f16(pa[i]); \
			double r = __VA_ARGS__; \
\
			pd[i] = soft_f16_from_f64(r, 0, ovfl); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan16(x, 1, 0); \
	}

#include "kfd/soft/exec/valu.def"
