/*
 * engine/weights/kernels_attend_int_simd.c - scores of keys that are integers.
 *
 * Queries are rounded to bytes, so that the sums within a group are exact; one
 * multiplication by both scales follows.
 */
#include "engine/weights/kernels_attend.h"

#if LANES >= 8
#if LANES == 16
#define TARGET __attribute__((target("avx512vnni"), always_inline))
typedef __m512i vb;
#else
#define TARGET __attribute__((always_inline))
typedef __m256i vb;
#endif
#define BYTES (LANES * 4)

/* Heads' queries as bytes: of one vector of columns. */
struct bytes {
	vb q;
	vf scale;
#if LANES == 16
	vb first; /* what the offset of the keys, 128 or 8, adds, negative */
#endif
};

/* Sums of four products side by side of keys k and queries. */
static inline TARGET vf dot_bytes(vb k, const struct bytes *q)
{
#if LANES == 16
	vi sum = (vi)_mm512_dpbusd_epi32(q->first, k, q->q);
#else
	vi sum = (vi)_mm256_madd_epi16(
		_mm256_maddubs_epi16(_mm256_abs_epi8(k),
				     _mm256_sign_epi8(q->q, k)),
		_mm256_set1_epi16(1));
#endif
	return __builtin_convertvector(sum, vf);
}

/* BYTES keys in their order; the instruction of AVX-512 wants them unsigned. */
static inline TARGET vb load_bytes(bool four, const void *p)
{
#if LANES == 16
	if (four) {
		const vb by = { 0, 0, 4, 4, 0, 0, 4, 4 };
		vb b = _mm512_castsi256_si512(_mm256_loadu_si256(p));
		/* Masked by nothing: gcc 12 warns about the plain forms. */
		b = _mm512_maskz_shuffle_i64x2(0xff, b, b, 0x50);
		b = _mm512_maskz_srlv_epi64(0xff, b, by);
		return _mm512_and_si512(b, _mm512_set1_epi8(15));
	}
	return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
#else
	if (four) {
		const vb by = { 0, 0, 4, 4 };
		vb b = _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
		b = _mm256_and_si256(_mm256_srlv_epi64(b, by),
				     _mm256_set1_epi8(15));
		return _mm256_sub_epi8(b, _mm256_set1_epi8(8));
	}
	return _mm256_loadu_si256(p);
#endif
}

/* The factors of the groups in a vector of bytes, each in its lanes. */
static inline TARGET vf spread_scales(const float *d)
{
#if LANES == 16
	return (vf)_mm512_maskz_insertf32x8(
		0xffff, _mm512_castps256_ps512(_mm256_set1_ps(d[0])),
		_mm256_set1_ps(d[1]), 1);
#else
	return splat(d[0]);
#endif
}

/* The columns of INT8 heads that are computed with at once. */
#define MOST_COLS   256
#define MOST_GROUPS (MOST_COLS / QWEN_GROUP)

/* Queries [d] to bytes; groups beyond d are zero. */
static inline TARGET void bytes_init(bool four, struct bytes *b, const float *q,
				     uint32_t d)
{
	_Alignas(64) int8_t byte[MOST_COLS] = { 0 };
	float scale[MOST_GROUPS] = { 0 }, sum[MOST_GROUPS];
	const struct qwen_quants to = { .q = byte, .d = scale, .sum = sum };

	(void)four; /* without AVX-512 */
	SIMD(qwen_quantize)(q, d, &to);
	for (uint32_t c = 0; c < d; c += BYTES, b++) {
		memcpy(&b->q, byte + c, sizeof(b->q));
		b->scale = spread_scales(scale + c / QWEN_GROUP);
#if LANES == 16
		b->first = _mm512_slli_epi32(
			_mm512_dpbusd_epi32(_mm512_setzero_si512(),
					    _mm512_set1_epi8(1), b->q),
			four ? 3 : 7);
		b->first = _mm512_sub_epi32(_mm512_setzero_si512(), b->first);
#endif
	}
}

/* Rows and heads as sum_rows() has them; scales are [rows][MOST_GROUPS]. */
static inline TARGET void sum_int(bool four, const uint8_t *p,
				  const float *scale, uint32_t d,
				  const struct bytes *b, int rows, int heads,
				  vf *s)
{
	const uint32_t per = four ? 2 : 1; /* keys of a byte */
	const uint32_t parts = (d + BYTES - 1) / BYTES;

#pragma GCC unroll 16
	for (int i = 0; i < rows * heads; i++)
		s[i] = splat(0);
#pragma GCC unroll 16
	for (int r = 0; r < rows; r++)
		for (uint32_t c = 0; c < parts; c++) {
			const uint8_t *at = p + (size_t)r * (d / per) +
					    c * (BYTES / per);
			fetch_line(four ? QWEN_W_INT4 : QWEN_W_INT8, at,
				   c * (BYTES / per));
			vb k = load_bytes(four, at);
			vf f = spread_scales(scale + r * MOST_GROUPS +
					     c * BYTES / QWEN_GROUP);
#pragma GCC unroll 4
			for (int h = 0; h < heads; h++) {
				const struct bytes *x = &b[h * (int)parts];
				s[h * rows + r] = fma_(dot_bytes(k, &x[c]),
						       f * x[c].scale,
						       s[h * rows + r]);
			}
		}
}

/* Of `rows` rows from r on, as f32; what is behind the last group stays 0. */
static inline TARGET void widen_scales(const struct qwen_matrix *k, uint32_t r,
				       uint32_t rows, float *scale)
{
	const uint32_t groups = k->cols / QWEN_GROUP;
	const uint16_t *from = k->scale + (size_t)r * groups;

	if (groups == MOST_GROUPS / 2) { /* heads of 128 */
#pragma GCC unroll 16
		for (uint32_t i = 0; i < rows; i++, from += groups) {
			__m128i h = _mm_loadl_epi64((const void *)from);
			_mm_storeu_ps(scale + i * MOST_GROUPS, _mm_cvtph_ps(h));
		}
		return;
	}
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t g = 0; g < groups; g++)
			scale[i * MOST_GROUPS + g] = f16_one(*from++);
}

/* Of d columns: a constant where it is the usual one. */
static inline TARGET void score_columns(bool four, uint32_t d,
					const struct qwen_matrix *k,
					const float *q, int heads, float *out,
					size_t ldo)
{
	const size_t row_bytes = d / (four ? 2 : 1);
	const uint32_t rows = LANES / (uint32_t)heads;
	const uint32_t parts = (d + BYTES - 1) / BYTES;
	float scale[LANES * MOST_GROUPS] = { 0 };
	struct bytes b[HEADS * MOST_COLS / BYTES];
	const uint8_t *p = k->data;
	uint32_t r = 0;
	vf s[LANES];

	for (int h = 0; h < heads; h++)
		bytes_init(four, b + h * (int)parts, q + (size_t)h * d, d);
	for (; r + rows <= k->rows; r += rows, p += rows * row_bytes) {
		float sum[LANES];
		widen_scales(k, r, rows, scale);
		sum_int(four, p, scale, d, b, (int)rows, heads, s);
		store(sum, sum_all(s));
		for (int h = 0; h < heads; h++)
			memcpy(out + (size_t)h * ldo + r, sum + h * (int)rows,
			       rows * sizeof(float));
	}
	for (; r < k->rows; r++, p += row_bytes) {
		widen_scales(k, r, 1, scale);
		sum_int(four, p, scale, d, b, 1, heads, s);
		for (int h = 0; h < heads; h++)
			out[(size_t)h * ldo + r] = sum_lanes(s[h]);
	}
}

static inline TARGET void score_int(bool four, const struct qwen_matrix *k,
				    const float *q, int heads, float *out,
				    size_t ldo)
{
	if (k->cols == HEAD_DIM)
		score_columns(four, HEAD_DIM, k, q, heads, out, ldo);
	else
		score_columns(four, k->cols, k, q, heads, out, ldo);
}

#define SCORE_INT(four, n, h, k, q, s, lds) \
	score_int(four, k, q + (size_t)h * k->cols, n, s + h * lds, lds)
#if LANES == 16
static __attribute__((target("avx512vnni"))) void
#else
static void
#endif
scores_int(const struct qwen_matrix *k, const float *q, uint32_t heads,
	   float *s, size_t lds)
{
	if (k->type == QWEN_W_INT4) {
		EACH_HEADS(heads, SCORE_INT, true, k, q, s, lds)
	} else {
		EACH_HEADS(heads, SCORE_INT, false, k, q, s, lds)
	}
}
#endif

#if LANES < 16
/* Row by row as f32: where bytes have no product, or heads are large. */
static void scores_wide(const struct qwen_matrix *k, const float *q,
			uint32_t heads, float *s, size_t lds)
{
	for (uint32_t r = 0; r < k->rows; r++)
		for (uint32_t h = 0; h < heads; h++) {
			float sum = 0;
			for (uint32_t c = 0; c < k->cols; c += QWEN_GROUP) {
				float x[QWEN_GROUP];
				vf v = { 0 };
				SIMD(qwen_unpack)(k, r, c, QWEN_GROUP, x);
				for (int i = 0; i < QWEN_GROUP; i += LANES)
					v = fma_(load(x + i),
						 load(q + h * k->cols + c + i),
						 v);
				sum += sum_lanes(v);
			}
			s[h * lds + r] = sum;
		}
}
#endif

void SIMD(qwen_scores_int)(const struct qwen_matrix *k, const float *q,
			   uint32_t heads, float *s, size_t lds)
{
#if LANES == 16
	/* The first processors with AVX-512 have no such instruction. */
	if (__builtin_cpu_supports("avx512vnni") && k->cols <= MOST_COLS)
		scores_int(k, q, heads, s, lds);
	else
		qwen_scores_v3(k, q, heads, s, lds);
#elif LANES == 8
	if (k->cols <= MOST_COLS)
		scores_int(k, q, heads, s, lds);
	else
		scores_wide(k, q, heads, s, lds);
#else
	scores_wide(k, q, heads, s, lds);
#endif
}
