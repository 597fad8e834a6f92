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
 * Reciprocals and square roots are computed in float: their roundings to double
 * and then to float give what one rounding would (Figueroa 1995).
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

#if defined(__AVX512F__)
/*
 * The same in fewer steps, for most floats: a = m / 16 + g with |g| <= 1/32, of
 * which m is in a table but for its whole part; e^(g ln 2) to degree 5 has an
 * error below 2^-42.  Where 2^-40 more or less would be rounded to another
 * float, `odd` says so, and for NaN.
 */
static inline __m256 exp2_eight(__m256 g, __m256i m, __m256 *more)
{
	static const double root[16] = { /* 2^(i/16) */
		1.0000000000000000, 1.0442737824274138, 1.0905077326652577,
		1.1387886347566916, 1.1892071150027210, 1.2418578120734840,
		1.2968395546510096, 1.3542555469368927, 1.4142135623730951,
		1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
		1.6817928305074290, 1.7562521603732995, 1.8340080864093424,
		1.9152065613971474,
	};
	const __m512d t = _mm512_maskz_cvtps_pd(0xff, g);
	const __m512i i = _mm512_maskz_cvtepi32_epi64(0xff, m);
	__m512d p = _mm512_set1_pd(0.0013333558146428443);

	p = _mm512_fmadd_pd(p, t, _mm512_set1_pd(0.009618129107628477));
	p = _mm512_fmadd_pd(p, t, _mm512_set1_pd(0.05550410866482158));
	p = _mm512_fmadd_pd(p, t, _mm512_set1_pd(0.2402265069591007));
	p = _mm512_fmadd_pd(p, t, _mm512_set1_pd(0.6931471805599453));
	p = _mm512_fmadd_pd(p, t, _mm512_set1_pd(1));
	p = _mm512_mul_pd(p, _mm512_permutex2var_pd(_mm512_loadu_pd(root), i,
						    _mm512_loadu_pd(root + 8)));
	*more = _mm512_maskz_cvtpd_ps(
		0xff, _mm512_mul_pd(p, _mm512_set1_pd(1 + 0x1p-40)));
	return _mm512_maskz_cvtpd_ps(
		0xff, _mm512_mul_pd(p, _mm512_set1_pd(1 - 0x1p-40)));
}

static inline __m512 exp2_sixteen(__m512 g, __m512i m, __m512 *more)
{
	const __m256 low = _mm512_castps512_ps256(g);
	const __m256 high = _mm512_maskz_extractf32x8_ps(0xff, g, 1);
	const __m256i i = _mm512_castsi512_si256(m);
	const __m256i j = _mm512_maskz_extracti32x8_epi32(0xff, m, 1);
	__m256 p, q, a = exp2_eight(low, i, &p), b = exp2_eight(high, j, &q);

	*more = _mm512_maskz_insertf32x8(0xffff, _mm512_castps256_ps512(p), q,
					 1);
	return _mm512_maskz_insertf32x8(0xffff, _mm512_castps256_ps512(a), b,
					1);
}

static inline soft_piece exp_f32_piece(const struct soft_lanes *x, soft_piece a,
				       soft_piece b, soft_piece c,
				       soft_piece *odd)
{
	const __m512 limit = _mm512_set1_ps(256), sixteen = _mm512_set1_ps(16);
	const piece_i u = (piece_i)a;
	const __m512 in = (__m512)(u & ((u & 0x7f800000) != 0));
	const __m512 near = _mm512_maskz_min_ps(
		0xffff, _mm512_maskz_max_ps(0xffff, in, -limit), limit);
	const __m512 m = _mm512_maskz_roundscale_ps(0xffff, near * sixteen, 8);
	const __m512i k = _mm512_maskz_cvtps_epi32(0xffff, m);
	const __m512i index = k & _mm512_set1_epi32(15);
	const __m512 g = near - m * _mm512_set1_ps(0.0625f);
	__m512 high, low = exp2_sixteen(g, index, &high);
	const __m512 whole = _mm512_maskz_cvtepi32_ps(
		0xffff, _mm512_maskz_srai_epi32(0xffff, k, 4));
	const piece_i r = (piece_i)_mm512_maskz_scalef_ps(0xffff, low, whole);

	(void)x, (void)b, (void)c;
	*odd |= (soft_piece)((piece_i)low != (piece_i)high) |
		(soft_piece)((piece_f)in != (piece_f)in);
	return (soft_piece)(r & ((r & 0x7f800000) != 0));
}

static __attribute__((noinline)) void exp_f32_lanes(struct soft_lanes *x);
#define KIND_EXP32(name, ...) KIND_PIECE(name, exp_f32)
#else
#define KIND_EXP32(name, ...) KIND_T32(name, __VA_ARGS__)
#endif

static inline double rsq_unit(double a)
{
	/* -0 gives -inf, as 1 / sqrt(-0) does. */
	return 1.0 / __builtin_sqrt(a);
}

#if defined(__AVX512F__)
/* Both roundings of what is within 2^-40 of a double: the same, or it is odd.
 */
struct near {
	__m256 low, high;
};

static inline struct near near_eight(__m512d v)
{
	return (struct near){
		_mm512_maskz_cvtpd_ps(
			0xff, _mm512_mul_pd(v, _mm512_set1_pd(1 - 0x1p-40))),
		_mm512_maskz_cvtpd_ps(
			0xff, _mm512_mul_pd(v, _mm512_set1_pd(1 + 0x1p-40))),
	};
}

/*
 * log2 of m * 2^e, 1 <= m < 2: m is (1 + j/16) (1 + g) with |g| <= 1/32, of
 * which j is in a table, and log2(1 + g) a series to degree 9.  From j = 7 on e
 * counts one more, so that nothing cancels below 1.
 */
static inline struct near log2_eight(__m256i u)
{
	static const double inverse[16] = { /* twice that from 7 on */
		1.0,	   16 / 17.0, 16 / 18.0, 16 / 19.0, 16 / 20.0,
		16 / 21.0, 16 / 22.0, 32 / 23.0, 32 / 24.0, 32 / 25.0,
		32 / 26.0, 32 / 27.0, 32 / 28.0, 32 / 29.0, 32 / 30.0,
		32 / 31.0,
	};
	static const double log[16] = { /* of 1 + j/16, less 1 from 7 on */
		0, 0.08746284125033940, 0.16992500144231237,
		0.24792751344358549, 0.32192809488736235, 0.39231742277876031,
		0.45943161863729726, -0.47643804394298720,
		-0.41503749927884381, -0.35614381022527530,
		-0.29956028185890782, -0.24511249783653148,
		-0.19264507794239588, -0.14201900487242790,
		-0.093109404391481471, -0.045803689613124803,
	};
	const __m256i near = _mm256_add_epi32(u, _mm256_set1_epi32(1 << 18));
	/* Of 2 - 1/32 and more j is 16, which is 0 and one more in e. */
	const __m256i j = _mm256_maskz_srli_epi32(0xff, near, 19);
	const __m256i seven = _mm256_add_epi32(near,
					       _mm256_set1_epi32(9 << 19));
	const __m256i e = _mm256_sub_epi32(
		_mm256_maskz_srli_epi32(0xff, seven, 23),
		_mm256_set1_epi32(127));
	/* m, or half of it where e counts one more. */
	const __m256i m = _mm256_sub_epi32(
		u, _mm256_maskz_slli_epi32(0xff, e, 23));
	const __m512i index = _mm512_maskz_cvtepi32_epi64(0xff, j);
	const __m512d k = _mm512_maskz_cvtepi32_pd(0xff, e);
	const __m512d x = _mm512_maskz_cvtps_pd(0xff, _mm256_castsi256_ps(m));
	const __m512d by = _mm512_permutex2var_pd(_mm512_loadu_pd(inverse), index,
					    _mm512_loadu_pd(inverse + 8));
	const __m512d at = _mm512_permutex2var_pd(_mm512_loadu_pd(log), index,
						  _mm512_loadu_pd(log + 8));
	__m512d g, p = _mm512_set1_pd(0.16029944898766259);

	g = _mm512_fmadd_pd(x, by, _mm512_set1_pd(-1));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(-0.18033688011112042));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(0.20609929155556620));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(-0.24044917348149390));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(0.28853900817779268));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(-0.36067376022224085));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(0.48089834696298783));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(-0.72134752044448170));
	p = _mm512_fmadd_pd(p, g, _mm512_set1_pd(1.4426950408889634));
	return near_eight(_mm512_fmadd_pd(p, g, _mm512_add_pd(at, k)));
}

static inline struct near rsq_eight(__m256i u)
{
	const __m512d a = _mm512_maskz_cvtps_pd(0xff, _mm256_castsi256_ps(u));
	const __m512d half = _mm512_mul_pd(a, _mm512_set1_pd(0.5));
	__m512d y = _mm512_maskz_rsqrt14_pd(0xff, a);

	/* Newton's step twice: 2^-14, 2^-27, 2^-53. */
	for (int i = 0; i < 2; i++) {
		const __m512d d = _mm512_fnmadd_pd(_mm512_mul_pd(half, y), y,
						   _mm512_set1_pd(0.5));

		y = _mm512_fmadd_pd(y, d, y);
	}
	return near_eight(y);
}

/* Of normal positive floats; others are odd. */
#define NORMAL_PIECE(name) \
	static inline soft_piece name##_f32_piece( \
		const struct soft_lanes *x, soft_piece a, soft_piece b, \
		soft_piece c, soft_piece *odd) \
	{ \
		const __m512i u = (__m512i)a; \
		const struct near p = name##_eight( \
			_mm512_castsi512_si256(u)); \
		const struct near q = name##_eight( \
			_mm512_maskz_extracti32x8_epi32(0xff, u, 1)); \
		const __m512 low = _mm512_maskz_insertf32x8( \
			0xffff, _mm512_castps256_ps512(p.low), q.low, 1); \
		const __m512 high = _mm512_maskz_insertf32x8( \
			0xffff, _mm512_castps256_ps512(p.high), q.high, 1); \
\
		(void)x, (void)b, (void)c; \
		*odd |= (soft_piece)((piece_i)low != (piece_i)high) | \
			(soft_piece)(a - 0x00800000 >= 0x7f000000u); \
		return (soft_piece)low; \
	} \
	static __attribute__((noinline)) void name##_f32_lanes( \
		struct soft_lanes *x);
NORMAL_PIECE(log2)
NORMAL_PIECE(rsq)
#undef NORMAL_PIECE
#define KIND_LOG32(name, ...) KIND_PIECE(name, log2_f32)
#define KIND_RSQ32(name, ...) KIND_PIECE(name, rsq_f32)
#else
#define KIND_LOG32(name, ...) KIND_T32(name, __VA_ARGS__)
#define KIND_RSQ32(name, ...) KIND_T32(name, __VA_ARGS__)
#endif

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
 * What is infinite of a finite half is an overflow to FP16_OVFL, as at 1 / 0
 * (measured on gfx1100: AMD, rocjitsu's transcendental_policy_cases).
 */
static inline double limit_pole(double a, double r, uint32_t mode)
{
	bool overflows = a - a == 0 && soft_ovfl16(mode);

	r = overflows && r > 65536 ? 65536 : r;
	return overflows && r < -65536 ? -65536 : r;
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
#define FLOAT_TRANS(type, flush, ...) \
	{ \
		OPERANDS; \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			type a = f32_value(flush(pa[i])); \
			float r = (float)(__VA_ARGS__); \
\
			pd[i] = flush(f32_bits(r)); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan32(x, 1); \
	}
#define KIND_T32(name, ...)  \
	LANE_FN(name) FLOAT_TRANS(double, soft_flush_f32, __VA_ARGS__)
#define KIND_T32D(name, ...) LANE_FN(name) FLOAT_TRANS(double, , __VA_ARGS__)
#define KIND_T32F(name, ...) \
	LANE_FN(name) FLOAT_TRANS(float, soft_flush_f32, __VA_ARGS__) \
	MICROOP_FLUSHED(name, FLUSHED_1, __VA_ARGS__)
#if defined(__AVX512F__)
static void exp_f32_lanes(struct soft_lanes *x)
	FLOAT_TRANS(double, soft_flush_f32, exp2_unit(a))
static void log2_f32_lanes(struct soft_lanes *x)
	FLOAT_TRANS(double, soft_flush_f32, log2_unit(a))
static void rsq_f32_lanes(struct soft_lanes *x)
	FLOAT_TRANS(double, soft_flush_f32, rsq_unit(a))
#endif
#define KIND_T16(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		uint32_t mode = x->mode & ~SOFT_MODE_ROUND_F16_F64; \
		uint32_t bad = 0; \
\
		LANES(i) \
		{ \
			double a = soft_f32_from_f16(pa[i]); \
			double r = __VA_ARGS__; \
\
			pd[i] = soft_f16_from_f64(limit_pole(a, r, mode), \
						  mode); \
			bad |= r != r; \
		} \
		if (__builtin_expect(bad, 0)) \
			fix_nan16(x, 1, 0); \
	}

#include "kfd/soft/exec/valu.def"
