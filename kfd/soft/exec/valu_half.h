/*
 * kfd/soft/exec/valu_half.h - half precision and bfloat16, in integers.
 *
 * Private to the _simd.c files.  Sums and products of halves may be computed
 * in float and rounded once more: 24 bits are at least 2 * 11 + 2, so the
 * second rounding never changes the outcome (Figueroa 1995).  A fused
 * multiply-add may not: compute it in double, where it is exact or so far from
 * a tie that it does not matter (the product has 22 bits and is a multiple of
 * 2^-48, the addend a multiple of 2^-24), and use soft_f16_from_f64().
 *
 * `mode` is MODE, of which three parts count.  The field of roundings: 0 nearest
 * even, 1 to +inf, 2 to -inf, 3 to zero.  FP16_OVFL turns overflow into the
 * largest finite number; an infinite input stays infinite.  Where results'
 * denormals are off, what is tiny becomes zero: what would be below 2^-14 if it
 * were rounded to 11 bits (AMD measured so: rocjitsu, tiny_result_cases).
 */
#ifndef T0_KFD_SOFT_VALU_HALF_H
#define T0_KFD_SOFT_VALU_HALF_H

#include "kfd/soft/exec/valu.h"

/* MODE of conversions that do not ask it: nearest even, to zero. */
#define SOFT_HALF_EVEN 0xc0u
#define SOFT_HALF_ZERO (SOFT_HALF_EVEN | SOFT_MODE_ROUND_F16_F64)

#if defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#define ROUND_NEAREST _MM_FROUND_TO_NEAREST_INT
#define ROUND_TO_ZERO _MM_FROUND_TO_ZERO
#endif

/* Exact. A signalling NaN stays one, only wider. */
static inline float soft_f32_from_f16(uint32_t h)
{
	uint32_t sign = (h & 0x8000) << 16, m = (h & 0x7fff) << 13;
	uint32_t exp = m & 0x0f800000;
	uint32_t norm = m + (112u << 23) + (exp == 0x0f800000 ? 112u << 23 : 0);
	/* A denormal: 2^-14 + m is normal; subtracting 2^-14 is exact. */
	uint32_t den =
		f32_bits(f32_value(m + (113u << 23)) - f32_value(113u << 23)) &
		0x7fffffff;
	return f32_value(sign | (exp ? norm : den));
}

/* The bits of half h as a float: the host made a signalling NaN quiet. */
static inline uint32_t soft_keep_signal16(uint32_t u, uint32_t h)
{
	uint32_t signals = (h & 0x7fff) > 0x7c00 && !(h & 0x200);

	return u & ~(signals << 22);
}

/* Does rounding away from zero apply to a discarded part? */
static inline bool soft_round_away(unsigned round, uint32_t sign, bool odd,
				   uint32_t rest, uint32_t half)
{
	bool rne = rest > half || (rest == half && odd);
	bool up = rest && !sign, down = rest && sign;
	return round == 0 ? rne : round == 1 ? up : round == 2 ? down : false;
}

/* What an overflow becomes: infinity or the largest finite number. */
static inline uint32_t soft_f16_overflow(uint32_t sign, unsigned round,
					 bool ovfl)
{
	bool inf = round == 0 || (round == 1 && !sign) || (round == 2 && sign);
	return inf && !ovfl ? 0x7c00 : 0x7bff;
}

/* The rounding of f16 results, and FP16_OVFL, from MODE. */
static inline unsigned soft_round16(uint32_t mode)
{
	return mode >> 2 & 3;
}

static inline bool soft_ovfl16(uint32_t mode)
{
	return mode & SOFT_MODE_FP16_OVFL;
}

/* Denormals of results become zeros: bit 1 of MODE's field. */
static inline bool soft_flushes16(uint32_t mode)
{
	return !(mode & 0x80);
}

/* A float's bits: is it below 2^-14 as a half of any exponent? */
static inline bool soft_is_tiny16(uint32_t u, unsigned round)
{
	uint32_t a = u & 0x7fffffff, m = a >> 13;

	m += soft_round_away(round, u >> 31, m & 1, a & 0x1fff, 0x1000);
	return m < 113u << 10;
}

static inline uint32_t soft_f16_from_bits(uint32_t u, uint32_t mode)
{
	unsigned round = soft_round16(mode);
	uint32_t sign = u >> 31, a = u & 0x7fffffff;
	uint32_t nan = 0x7e00 | (a >> 13 & 0x3ff);
	uint32_t exp = a >> 23, shift = exp < 113 ? 126 - exp : 13;
	uint32_t m = (a & 0x7fffff) | 0x800000;
	shift = shift > 25 ? 25 : shift;
	/* Below 2^-14 the whole significand is shifted, above only the rest. */
	uint32_t all = exp < 113 ? (exp ? m : a & 0x7fffff) : a - (112u << 23);
	uint32_t rest = all & ((1u << shift) - 1);
	uint32_t r = all >> shift;
	r += soft_round_away(round, sign, r & 1, rest, 1u << (shift - 1));
	r = r >= 0x7c00 || a >= 0x47800000 ?
		    soft_f16_overflow(sign, round, soft_ovfl16(mode)) :
		    r;
	r = soft_flushes16(mode) && soft_is_tiny16(u, round) ? 0 : r;
	r = a == 0x7f800000 ? 0x7c00 : r;
	r = a > 0x7f800000 ? nan : r;
	return sign << 15 | r;
}

static inline uint32_t soft_f16_from_f32(float f, uint32_t mode)
{
	return soft_f16_from_bits(f32_bits(f), mode);
}

/* --------------------------------------------------------- whole vregs ----
 */

/*
 * The halves in bits shift + 15 : shift of a vreg as floats; floats to halves,
 * which fill 32 bits, to nearest even or to zero.
 */
#if defined(__AVX512BW__)
/* The maskz forms, since GCC 12 warns about its own plain ones. */
#define HALF_ALL 0xffff

static inline void soft_floats_from_f16(const uint32_t *p, int shift, float *f)
{
	for (int i = 0; i < SOFT_LANES; i += 16) {
		__m512i u = _mm512_maskz_srli_epi32(
			HALF_ALL, _mm512_loadu_si512(p + i), (unsigned)shift);
		__m256i h = _mm512_maskz_cvtepi32_epi16(HALF_ALL, u);

		_mm512_storeu_ps(f + i, _mm512_maskz_cvtph_ps(HALF_ALL, h));
	}
}

static inline void soft_f16_round(const float *f, bool to_zero, uint32_t *p)
{
	for (int i = 0; i < SOFT_LANES; i += 16) {
		__m512 v = _mm512_loadu_ps(f + i);
		__m256i h = to_zero ? _mm512_maskz_cvtps_ph(HALF_ALL, v,
							    ROUND_TO_ZERO) :
				      _mm512_maskz_cvtps_ph(HALF_ALL, v,
							    ROUND_NEAREST);

		_mm512_storeu_si512(p + i,
				    _mm512_maskz_cvtepu16_epi32(HALF_ALL, h));
	}
}
#elif defined(__F16C__) && defined(__AVX2__)
static inline void soft_floats_from_f16(const uint32_t *p, int shift, float *f)
{
	for (int i = 0; i < SOFT_LANES; i += 8) {
		__m256i u = _mm256_loadu_si256((const __m256i *)(p + i));
		__m256i h = _mm256_and_si256(_mm256_srli_epi32(u, shift),
					     _mm256_set1_epi32(0xffff));
		__m128i low = _mm256_castsi256_si128(h);
		__m128i high = _mm256_extracti128_si256(h, 1);

		_mm256_storeu_ps(f + i,
				 _mm256_cvtph_ps(_mm_packus_epi32(low, high)));
	}
}

static inline void soft_f16_round(const float *f, bool to_zero, uint32_t *p)
{
	for (int i = 0; i < SOFT_LANES; i += 8) {
		__m256 v = _mm256_loadu_ps(f + i);
		__m128i h = to_zero ? _mm256_cvtps_ph(v, ROUND_TO_ZERO) :
				      _mm256_cvtps_ph(v, ROUND_NEAREST);

		_mm256_storeu_si256((__m256i *)(p + i),
				    _mm256_cvtepu16_epi32(h));
	}
}
#else
static inline void soft_floats_from_f16(const uint32_t *p, int shift, float *f)
{
	LANES(i) f[i] = soft_f32_from_f16(p[i] >> shift);
}

static inline void soft_f16_round(const float *f, bool to_zero, uint32_t *p)
{
	LANES(i)
	p[i] = soft_f16_from_f32(f[i], to_zero ? SOFT_HALF_ZERO :
						 SOFT_HALF_EVEN);
}
#endif

/* Floats to a vreg of halves, bits 31:16 zero. */
static inline void soft_f16_from_floats(const float *f, uint32_t mode,
					uint32_t *p)
{
	if (soft_round16(mode) || soft_ovfl16(mode)) {
		LANES(i) p[i] = soft_f16_from_f32(f[i], mode);
		return;
	}
	soft_f16_round(f, false, p);
	if (soft_flushes16(mode))
		LANES(i)
		p[i] &= soft_is_tiny16(f32_bits(f[i]), 0) ? 0x8000 : ~0u;
}

/*
 * r = a * b + c of halves, rounded to odd, so that rounding once more to half
 * gives what one rounding would.  The product is exact; the error of the sum is
 * exact too (Knuth's two-sum), and tells which neighbour is the odd one.  Needs
 * MXCSR to round to nearest.
 */
static inline void soft_fma_odd(const float *a, const float *b, const float *c,
				float *r)
{
	LANES(i)
	{
		float p = a[i] * b[i], s = p + c[i], back = s - p;
		float e = (p - (s - back)) + (c[i] - back);
		uint32_t u = f32_bits(s), inexact = (e < 0) | (e > 0);
		uint32_t away = (e > 0) == (s > 0) ? 1 : ~0u;

		r[i] = f32_value(u + (inexact & ~u & 1 ? away : 0));
	}
}

/*
 * Bits shift + 15 : shift of a * b + c, to bits 15:0, to nearest even.  False
 * if some lane is a NaN: nothing is to be used then.
 */
static inline bool soft_fma16_vreg(const uint32_t *a, const uint32_t *b,
				    const uint32_t *c, int shift, uint32_t mode,
				    uint32_t *d)
{
	float fa[SOFT_LANES], fb[SOFT_LANES], fc[SOFT_LANES], fr[SOFT_LANES];
	uint32_t bad = 0;

	soft_floats_from_f16(a, shift, fa);
	soft_floats_from_f16(b, shift, fb);
	soft_floats_from_f16(c, shift, fc);
	soft_fma_odd(fa, fb, fc, fr);
	LANES(i) bad |= fr[i] != fr[i];
	soft_f16_from_floats(fr, mode, d);
	return !bad;
}

/* Are results of halves rounded to nearest, and overflows infinite? */
static inline bool soft_plain16(uint32_t mode)
{
	return !(mode & (SOFT_MODE_ROUND_F16_F64 | SOFT_MODE_FP16_OVFL));
}

/* ------------------------------------------------------- through double ----
 */

/* Through a float that was rounded to odd, which loses no tie. */
static inline uint32_t soft_f16_from_f64(double f, uint32_t mode)
{
	uint64_t u = f64_bits(f), low = u & 0x1fffffff;
	uint64_t a = u & ~(1ull << 63);
	uint64_t odd = (u & ~0x1fffffffull) | (uint64_t)(low != 0) << 29;
	uint64_t huge = (u & 1ull << 63) | 0x47ull << 56; /* 2^113: overflows */
	uint64_t tiny = (u & 1ull << 63) | 0x39ull << 56; /* 2^-111 */
	odd = a > 0x47ull << 56 && a < 0x7ffull << 52 ? huge : odd;
	odd = a < 0x39ull << 56 && a ? tiny : odd;
	odd = a > 0x7ffull << 52 ? u | 1ull << 51 : odd;
	return soft_f16_from_f32((float)f64_value(odd), mode);
}

#endif
