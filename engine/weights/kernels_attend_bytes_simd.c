/*
 * engine/weights/kernels_attend_bytes_simd.c - values of INT8 in heads of 128.
 *
 * Shares become integers of 16 bits of the largest, as two bytes: four rows'
 * values of a column stand side by side then, and one instruction multiplies
 * and adds them, exactly.  What 16 bits round is far below what INT8 does.
 */
#include "engine/weights/kernels_attend.h"

#if LANES == 16

#define TARGET __attribute__((target("avx512vnni"), always_inline))

enum {
	COLS = 128, /* of a row */
	WIDTH = 64, /* columns at a time */
	FOUR = 4,   /* rows, and groups, at a time */
	CHUNKS = QWEN_MIX_ROWS / FOUR,
	LARGEST = 65280, /* what the largest share becomes */
};

/* ---- shares ---- */

/* Of each head, of four rows: [heads][high, low bytes][groups][rows]. */
struct bytes {
	_Alignas(64) uint8_t of[CHUNKS][2][2][FOUR][FOUR];
};

/* Of four rows; those from `left` on are not there. */
static inline TARGET __m512 shares_at(const float *share, uint32_t left)
{
	return _mm512_maskz_loadu_ps(
		left < FOUR ? (__mmask16)((1u << FOUR * left) - 1) : 0xffff,
		share);
}

/* The largest of n rows' shares; infinity or more of what has no bytes. */
static inline TARGET float find_largest(const float *share, uint32_t n)
{
	__m512i top = _mm512_setzero_si512();

	for (uint32_t r = 0; r < n; r += FOUR)
		top = _mm512_max_epu32(
			top, _mm512_castps_si512(
				     shares_at(share + FOUR * r, n - r)));
	const uint32_t bits = _mm512_reduce_max_epu32(top);
	float largest;

	memcpy(&largest, &bits, sizeof(largest));
	return largest < INFINITY ? largest : INFINITY;
}

/* Low bytes of 16 integers, of four rows by groups, by groups. */
static inline TARGET __m128i turn_bytes(__m512i v)
{
	return _mm_shuffle_epi8(_mm512_cvtepi32_epi8(v),
				_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6,
					      10, 14, 3, 7, 11, 15));
}

static inline TARGET void shares_split(struct bytes *to, int head,
				       const float *share, uint32_t n,
				       float factor)
{
	for (uint32_t r = 0; r < n; r += FOUR) {
		const __m512i v = _mm512_cvtps_epi32(
			_mm512_mul_ps(shares_at(share + FOUR * r, n - r),
				      _mm512_set1_ps(factor)));
		_mm_store_si128((void *)to->of[r / FOUR][head][0],
				turn_bytes(_mm512_srli_epi32(v, 8)));
		_mm_store_si128((void *)to->of[r / FOUR][head][1],
				turn_bytes(v));
	}
}

/* ---- sums ---- */

/* Vector i has columns 4 i .. of each 16 of WIDTH, of rows r .. r + 3. */
static inline TARGET void turn_rows(const uint8_t *p, __m512i v[4])
{
	__m512i row[FOUR], a, b, c, d;

#pragma GCC unroll 4
	for (int i = 0; i < FOUR; i++)
		row[i] = _mm512_loadu_si512(p + i * COLS);
	a = _mm512_unpacklo_epi8(row[0], row[1]);
	b = _mm512_unpackhi_epi8(row[0], row[1]);
	c = _mm512_unpacklo_epi8(row[2], row[3]);
	d = _mm512_unpackhi_epi8(row[2], row[3]);
	v[0] = _mm512_unpacklo_epi16(a, c);
	v[1] = _mm512_unpackhi_epi16(a, c);
	v[2] = _mm512_unpacklo_epi16(b, d);
	v[3] = _mm512_unpackhi_epi16(b, d);
}

static inline TARGET void add_rows(__m512i sum[2][2][4], const uint8_t *p,
				   const struct bytes *share, uint32_t chunk,
				   int at, int heads)
{
	const __m512i all = _mm512_load_si512(share->of[chunk]);
	__m512i v[4];

	turn_rows(p, v);
#pragma GCC unroll 2
	for (int h = 0; h < heads; h++)
#pragma GCC unroll 2
		for (int part = 0; part < 2; part++) {
			/* Lower lanes have one group, others the next. */
			const int g = (h * 2 + part) * FOUR + at / QWEN_GROUP;
			const __m512i by = _mm512_permutexvar_epi32(
				_mm512_setr_epi32(g, g, g, g, g, g, g, g, g + 1,
						  g + 1, g + 1, g + 1, g + 1,
						  g + 1, g + 1, g + 1),
				all);
#pragma GCC unroll 4
			for (int i = 0; i < 4; i++)
				sum[h][part][i] = _mm512_dpbusd_epi32(
					sum[h][part][i], by, v[i]);
		}
}

/* Sums of a head, as turn_rows() has columns, times `unit` onto y. */
static inline TARGET void add_sums(const __m512i sum[2][4], float unit,
				   float *y)
{
	__m512 f[4], a, b, c, d;

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		f[i] = _mm512_cvtepi32_ps(_mm512_add_epi32(
			_mm512_slli_epi32(sum[0][i], 8), sum[1][i]));
	a = _mm512_shuffle_f32x4(f[0], f[1], 0x44);
	b = _mm512_shuffle_f32x4(f[2], f[3], 0x44);
	c = _mm512_shuffle_f32x4(f[0], f[1], 0xee);
	d = _mm512_shuffle_f32x4(f[2], f[3], 0xee);
	f[0] = _mm512_shuffle_f32x4(a, b, 0x88);
	f[1] = _mm512_shuffle_f32x4(a, b, 0xdd);
	f[2] = _mm512_shuffle_f32x4(c, d, 0x88);
	f[3] = _mm512_shuffle_f32x4(c, d, 0xdd);
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		store(y + i * LANES, fma_((vf)f[i], splat(unit),
					  load(y + i * LANES)));
}

static inline TARGET void mix_heads(const uint8_t *p, uint32_t n,
				    const float *share, int heads, float *y)
{
	uint8_t rest[FOUR * COLS] = { 0 };
	struct bytes bytes;
	float unit[2];

	for (int h = 0; h < heads; h++) {
		const float *of = share + (uint32_t)h * n * FOUR;
		const float largest = find_largest(of, n);
		unit[h] = largest / LARGEST;
		shares_split(&bytes, h, of, n,
			     largest > 0 ? LARGEST / largest : 0);
	}
	memcpy(rest, p + n / FOUR * FOUR * COLS, n % FOUR * COLS);
#pragma GCC unroll 2
	for (int at = 0; at < COLS; at += WIDTH) {
		__m512i sum[2][2][4] = { 0 };
		for (uint32_t r = 0; r + FOUR <= n; r += FOUR) {
			/* Both passes ask for half of what comes. */
			for (int i = 0; i < FOUR * WIDTH; i += 64)
				fetch_line(QWEN_W_INT8,
					   p + at * QWEN_MIX_ROWS +
						   r * WIDTH + i,
					   0);
			add_rows(sum, p + r * COLS + at, &bytes, r / FOUR, at,
				 heads);
		}
		if (n % FOUR)
			add_rows(sum, rest + at, &bytes, n / FOUR, at, heads);
		for (int h = 0; h < heads; h++)
			add_sums((const __m512i(*)[4])sum[h], unit[h],
				 y + h * COLS + at);
	}
}

__attribute__((target("avx512vnni"))) void
mix_bytes(const uint8_t *p, uint32_t rows, const float *share, uint32_t heads,
	  float *y)
{
	if (heads == 2)
		mix_heads(p, rows, share, 2, y);
	else
		mix_heads(p, rows, share, 1, y);
}
#endif
