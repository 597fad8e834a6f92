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

#if LANES == 16

/* The same of two groups side by side: dwords of both from where they lie. */
static inline TARGET __m512i codes_six_two(const uint8_t *b)
{
	const __m512i v = _mm512_maskz_loadu_epi32(0xfff, b);
	const __m512i low = _mm512_srlv_epi64(
		_mm512_permutexvar_epi32(_mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2,
							   3, 6, 7, 8, 9, 6, 7,
							   8, 9), v),
		_mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
	/* Bits 4 and 5 of each byte are its own. */
	const __m512i high = _mm512_rolv_epi64(
		_mm512_permutexvar_epi32(_mm512_setr_epi32(4, 5, 4, 5, 4, 5, 4,
							   5, 10, 11, 10, 11,
							   10, 11, 10, 11), v),
		_mm512_setr_epi64(4, 2, 0, 62, 4, 2, 0, 62));
	const __m512i all = _mm512_ternarylogic_epi32(_mm512_set1_epi8(15), low,
						      high, 0xca);

	return _mm512_and_si512(all, _mm512_set1_epi8(63));
}

static inline TARGET __m512i codes_three_two(const uint8_t *b)
{
	const __m512i v = _mm512_maskz_loadu_epi32(0x3f, b);
	const __m512i pairs = _mm512_and_si512(
		_mm512_srlv_epi64(
			_mm512_permutexvar_epi32(
				_mm512_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1, 3, 4,
						  3, 4, 3, 4, 3, 4), v),
			_mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6)),
		_mm512_set1_epi8(3));
	uint32_t first, second;

	memcpy(&first, b + 8, 4);
	memcpy(&second, b + 20, 4);
	return _mm512_mask_add_epi8(pairs, (uint64_t)second << 32 | first,
				    pairs, _mm512_set1_epi8(4));
}

#endif

struct own_sum {
	__m256 dot;
#if LANES == 16
	__m512 two; /* of pairs of groups */
#endif
	float less;
};

static inline TARGET struct own_sum own_zero(void)
{
	return (struct own_sum){ .dot = _mm256_setzero_ps() };
}

static inline TARGET float half_one(const uint8_t *b)
{
	uint16_t h;

	memcpy(&h, b, 2);
	return _cvtsh_ss(h);
}

#if LANES == 16

/* The groups of a block of 64 values or more, without its scale and their sum. */
static inline TARGET float add_twos(struct own_sum *s, const uint8_t *b,
				    const struct qwen_quants *x, size_t g,
				    bool six, struct qwen_layout l, float d)
{
	const __m512i side = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1,
					       1, 1, 1, 1, 1);
	const __m512 all = _mm512_set1_ps(d);
	float sum = 0;

	for (uint32_t i = 0; i < l.values; i += 2 * QWEN_GROUP, g += 2) {
		const __m512i codes = six ? codes_six_two(b) :
					    codes_three_two(b);
		const __m512i dot = _mm512_dpbusd_epi32(
			_mm512_setzero_si512(), codes,
			_mm512_loadu_si512(x->q + g * QWEN_GROUP));
		const __m128 both = _mm_castpd_ps(
			_mm_load_sd((const double *)(const void *)&x->d[g]));
		const __m512 by = _mm512_permutexvar_ps(
			side, _mm512_castps128_ps512(both));

		s->two = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
					 _mm512_mul_ps(all, by), s->two);
		sum += x->sum[g] + x->sum[g + 1];
		b += six ? 48 : 24;
	}
	return sum;
}

#endif

/* A block, by activations from group g on. */
static inline TARGET void add_block(struct own_sum *s, const uint8_t *b,
				    const struct qwen_quants *x, size_t g,
				    bool six, struct qwen_layout l)
{
	const float d = half_one(b);
	float sum = 0;

	prefetch_line(b);
	b += 2;
#if LANES == 16
	if (l.values > QWEN_GROUP) {
		s->less += d * add_twos(s, b, x, g, six, l, d);
		return;
	}
#endif
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
	__m256 all = s->dot;
#if LANES == 16
	all = _mm256_add_ps(all, _mm256_add_ps(
		_mm512_castps512_ps256(s->two),
		_mm512_extractf32x8_ps(s->two, 1)));
#endif
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(all),
			      _mm256_extractf128_ps(all, 1));

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
	struct own_sum s[2] = { own_zero(), own_zero() };

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
