/*
 * engine/weights/kernels_blocks.h - what products with blocks of 32 and of 256
 * share, for kernels_small_simd.c and kernels_blocks_simd.c.
 */
#ifndef T0_ENGINE_KERNELS_BLOCKS_H
#define T0_ENGINE_KERNELS_BLOCKS_H

#include "engine/weights/kernels_simd.h"

#if LANES == 16
#define VNNI   __attribute__((target("avx512vnni,avx512vl")))
#define TARGET __attribute__((target("avx512vnni,avx512vl"), always_inline))
#else
#define VNNI
#define TARGET __attribute__((always_inline))
#endif

#if LANES >= 8

/* A vector of bytes. */
#if LANES == 16
typedef __m512i vb;
#else
typedef __m256i vb;
#endif

static inline TARGET vb splat_byte(int v)
{
#if LANES == 16
	return _mm512_set1_epi8((char)v);
#else
	return _mm256_set1_epi8((char)v);
#endif
}

static inline TARGET vb load_bytes(const void *p)
{
#if LANES == 16
	return _mm512_loadu_si512(p);
#else
	return _mm256_loadu_si256(p);
#endif
}

static inline TARGET __m256i bytes_at(const void *p)
{
	return _mm256_loadu_si256(p);
}

/*
 * How far behind what is read blocks are asked for: on Zen 4 Q4_0 comes to 0.87
 * of a plain read so, and Q6_K to 0.86 where 4096 makes it 0.77.  But Q8_0,
 * whose bytes take least work, to 0.90 with FETCH_BYTES and 0.75 with this.
 */
#define FETCH_STEP_BYTES 6144

/*
 * Asks for the lines of bytes [from, to) of a step, `behind` behind it.  Some
 * at a time: of many at once the first cache drops those that it has no room
 * for.
 */
static inline TARGET void prefetch_lines(const uint8_t *b, int from, int to,
					 size_t behind)
{
	for (int at = (from + 63) / 64 * 64; at < to; at += 64)
		prefetch_behind(b + at, behind);
}

/* 32 bits: 16 in each byte of one that is set. */
static inline TARGET __m256i fifths_of(uint32_t bits)
{
#if LANES == 16
	return _mm256_maskz_set1_epi8(bits, 16);
#else
	const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101,
						0x0202020202020202,
						0x0303030303030303);
	const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
	__m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte);

	return _mm256_and_si256(
		_mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit),
		_mm256_set1_epi8(16));
#endif
}

/* What codes of 4 bits stand for, zero_of(type) added. */
static inline TARGET __m128i values_table(enum qwen_weights type)
{
	const __m128i uneven = _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118,
					     (char)129, (char)141, (char)153,
					     (char)166, (char)181, (char)197,
					     (char)217, (char)241);
	const __m128i doubled = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24,
					      12, 11, 10, 9, 8, 6, 4, 0);

	return type == QWEN_W_MXFP4 ? doubled : uneven;
}

/* Which code is zero; the least is 0. */
static inline TARGET int zero_of(enum qwen_weights type)
{
	switch (type) {
	case QWEN_W_Q8_0:
	case QWEN_W_IQ4_NL:
	case QWEN_W_IQ4_XS:
		return 128;
	case QWEN_W_Q6_K:
		return 32;
	case QWEN_W_Q5_0:
		return 16;
	case QWEN_W_MXFP4:
		return 12;
	case QWEN_W_Q4_0:
		return 8;
	case QWEN_W_Q3_K:
		return 4;
	default: /* a minimum says it */
		return 0;
	}
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

#if LANES == 8
/*
 * Sums of 4 products side by side of signed bytes, the signs of s given to x.
 * Sums of pairs are exact in 16 bits: 2 * 128 * 127 fits.
 */
static inline __m256i dot_signed(__m256i s, __m256i x)
{
	return _mm256_madd_epi16(
		_mm256_maddubs_epi16(_mm256_abs_epi8(s),
				     _mm256_sign_epi8(x, s)),
		_mm256_set1_epi16(1));
}
#endif

/*
 * One row at a, or with `two` another one at b, by the activations of a token;
 * `two`, `type` and `l` are constants where it is inlined.
 */
static inline TARGET void dot_rows(const uint8_t *a, const uint8_t *b,
				   uint32_t cols, const struct qwen_quants *x,
				   float *ya, float *yb, bool add, bool two,
				   enum qwen_weights type,
				   struct qwen_layout l);

static inline TARGET void multiply_rows(const struct qwen_matrix *m,
					uint32_t r0, uint32_t r1,
					const struct qwen_quants *x, uint32_t n,
					float *y, size_t ldy, bool add,
					enum qwen_weights type,
					struct qwen_layout l)
{
	const size_t row_bytes = (size_t)(m->cols / l.values) * l.bytes;
	struct pairs p;

	pairs_init(&p, r0, r1, row_bytes);
	while (pairs_next(&p)) {
		const uint8_t *a = (const uint8_t *)m->data + p.row * row_bytes;
		const uint8_t *b = a + p.apart * row_bytes;
		float *to = y + p.row;
		for (uint32_t t = 0; t < n; t++, to += ldy)
			if (p.apart)
				dot_rows(a, b, m->cols, &x[t], to,
					 to + p.apart, add, true, type, l);
			else
				dot_rows(a, a, m->cols, &x[t], to, to, add,
					 false, type, l);
	}
}
#endif

/* The product of a type. */
#define PRODUCT(NAME) SIMD(qwen_product_##NAME)
#define PRODUCT_ARGS \
	const struct qwen_matrix *m, uint32_t r0, uint32_t r1, \
		const struct qwen_quants *x, uint32_t n, float *y, \
		size_t ldy, bool add
#define PRODUCT_OF(NAME, values, bytes) \
	VNNI void PRODUCT(NAME)(PRODUCT_ARGS) \
	{ \
		multiply_rows(m, r0, r1, x, n, y, ldy, add, QWEN_W_##NAME, \
			      (struct qwen_layout){ values, bytes }); \
	}
#define BLOCK(NAME, ...) void PRODUCT(NAME)(PRODUCT_ARGS);
#include "engine/files/dtype.def"

#endif
