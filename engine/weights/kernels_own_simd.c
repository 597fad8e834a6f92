/*
 * engine/weights/kernels_own_simd.c - products with our own blocks of 6 and 3
 * bits.
 *
 * The codes of 32 values become bytes in registers, and their sum of products
 * with the activations' bytes is exact in integers; a scale for both follows.
 * That codes are 32 or 4 more than their numbers comes off at the end of a row,
 * by the activations' sums.  unpack_simd.c has what the bits mean.
 */
#include "engine/weights/kernels_blocks.h"

#if LANES >= 8

/* Two bits of values k, k + 8, k + 16 and k + 24 of byte k. */
static inline TARGET __m256i pairs_at(const uint8_t *b)
{
	long long v;

	memcpy(&v, b, 8);
	return _mm256_and_si256(
		_mm256_srlv_epi64(_mm256_set1_epi64x(v),
				  _mm256_setr_epi64x(0, 2, 4, 6)),
		_mm256_set1_epi8(3));
}

static inline TARGET __m256i codes_six(const uint8_t *b)
{
	const __m128i v = _mm_loadu_si128((const void *)b);
	const __m256i low =
		_mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(v, 4), v),
				 _mm256_set1_epi8(15));

	return _mm256_or_si256(low, _mm256_slli_epi16(pairs_at(b + 16), 4));
}

static inline TARGET __m256i codes_three(const uint8_t *b)
{
	uint32_t bits;

	memcpy(&bits, b + 8, 4);
	return _mm256_or_si256(pairs_at(b),
			       _mm256_srli_epi16(fifths_of(bits), 2));
}

/* Sums of 4 products side by side; codes are at most 63. */
static inline TARGET __m256i dot_unsigned(__m256i codes, __m256i x)
{
#if LANES == 16
	return _mm256_dpbusd_epi32(_mm256_setzero_si256(), codes, x);
#else
	return _mm256_madd_epi16(_mm256_maddubs_epi16(codes, x),
				 _mm256_set1_epi16(1));
#endif
}

struct own_sum {
	__m256 dot;
	float less;
};

static inline TARGET float half_one(const uint8_t *b)
{
	uint16_t h;

	memcpy(&h, b, 2);
	return _cvtsh_ss(h);
}

/* A block, by activations from group g on. */
static inline TARGET void add_block(struct own_sum *s, const uint8_t *b,
				    const struct qwen_quants *x, size_t g,
				    bool six, struct qwen_layout l)
{
	const float d = half_one(b);
	float sum = 0;

	prefetch_line(b);
	b += 2;
	for (uint32_t i = 0; i < l.values; i += QWEN_GROUP, g++) {
		const __m256i codes = six ? codes_six(b) : codes_three(b);
		const __m256i dot =
			dot_unsigned(codes, bytes_at(x->q + g * QWEN_GROUP));

		s->dot = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot),
					 _mm256_set1_ps(d * x->d[g]), s->dot);
		sum += x->sum[g];
		b += six ? 24 : 12;
	}
	s->less += d * sum;
}

static inline TARGET float own_total(const struct own_sum *s, float zero)
{
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(s->dot),
			      _mm256_extractf128_ps(s->dot, 1));

	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1))) -
	       zero * s->less;
}

static inline TARGET void dot_rows(const uint8_t *a, const uint8_t *b,
				   uint32_t cols, const struct qwen_quants *x,
				   float *ya, float *yb, bool add, bool two,
				   enum qwen_weights type, struct qwen_layout l)
{
	const bool six = type < QWEN_W_I3_32;
	const float zero = six ? 32 : 4;
	struct own_sum s[2] = { { _mm256_setzero_ps(), 0 },
				{ _mm256_setzero_ps(), 0 } };

	for (size_t g = 0; g < cols / QWEN_GROUP; g += l.values / QWEN_GROUP) {
		add_block(&s[0], a, x, g, six, l);
		a += l.bytes;
		if (!two)
			continue;
		add_block(&s[1], b, x, g, six, l);
		b += l.bytes;
	}
	float v = own_total(&s[0], zero);
	*ya = add ? *ya + v : v;
	if (!two)
		return;
	v = own_total(&s[1], zero);
	*yb = add ? *yb + v : v;
}

PRODUCT_OF(I6_32, 32, 26)
PRODUCT_OF(I6_64, 64, 50)
PRODUCT_OF(I6_128, 128, 98)
PRODUCT_OF(I6_256, 256, 194)
PRODUCT_OF(I3_32, 32, 14)
PRODUCT_OF(I3_64, 64, 26)
PRODUCT_OF(I3_128, 128, 50)
PRODUCT_OF(I3_256, 256, 98)

#endif
