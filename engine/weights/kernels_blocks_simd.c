/*
 * engine/weights/kernels_blocks_simd.c - products with GGUF's blocks of 256 as
 * they are stored, and the choice among all of its types.
 *
 * Codes become bytes in registers and are multiplied by the activations' bytes;
 * sums of a scale's values are exact in integers.  One multiplication by all
 * scales follows.  A vector has a group of 32 values in each 8 lanes: with
 * AVX-512 that of one row and that of another.  unpack_simd.c has what the bits
 * mean.
 */
#include "engine/weights/kernels_blocks.h"

#if LANES >= 8

/* Groups of a block, and rows of a vector. */
#define GROUPS 8
#define ROWS   (LANES / 8)

/* A block of each row of a vector. */
struct blocks {
	const uint8_t *of[2];
};

/* ---- codes ---- */

/* 32 bytes of each. */
static inline TARGET vb bytes_of(struct blocks b, int at)
{
#if LANES == 16
	return _mm512_inserti64x4(
		_mm512_castsi256_si512(bytes_at(b.of[0] + at)),
		bytes_at(b.of[1] + at), 1);
#else
	return bytes_at(b.of[0] + at);
#endif
}

/* Bits of bytes from `from` on become bits from `to` on. */
static inline TARGET vb bits_of(vb v, int from, int to, int mask)
{
#if LANES == 16
	v = from > to ? _mm512_srli_epi16(v, (unsigned)(from - to)) :
	    from < to ? _mm512_slli_epi16(v, (unsigned)(to - from)) : v;
#else
	v = from > to ? _mm256_srli_epi16(v, from - to) :
	    from < to ? _mm256_slli_epi16(v, to - from) : v;
#endif
	return v & splat_byte(mask << to);
}

/* Codes of group i, unsigned. */
static inline TARGET vb codes_of(struct blocks b, int i, enum qwen_weights type)
{
	switch (type) {
	case QWEN_W_Q4_K:
		return bits_of(bytes_of(b, 16 + i / 2 * 32), i % 2 * 4, 0, 15);
	case QWEN_W_Q5_K:
		return bits_of(bytes_of(b, 48 + i / 2 * 32), i % 2 * 4, 0, 15) |
		       bits_of(bytes_of(b, 16), i, 4, 1);
	case QWEN_W_Q6_K:
		return bits_of(bytes_of(b, i / 4 * 64 + i % 2 * 32),
			       i % 4 / 2 * 4, 0, 15) |
		       bits_of(bytes_of(b, 128 + i / 4 * 32), i % 4 * 2, 4, 3);
	case QWEN_W_Q3_K:
		return bits_of(bytes_of(b, 32 + i / 4 * 32), i % 4 * 2, 0, 3) |
		       bits_of(bytes_of(b, 0), i, 2, 1);
	default: /* Q2_K */
		return bits_of(bytes_of(b, 16 + i / 4 * 32), i % 4 * 2, 0, 3);
	}
}

/* The activations of group g, for every row. */
static inline TARGET vb inputs_of(const struct qwen_quants *x, size_t g)
{
	__m256i v = bytes_at(x->q + g * QWEN_GROUP);
#if LANES == 16
	return _mm512_maskz_broadcast_i64x4(0xff, v);
#else
	return v;
#endif
}

/* Sums of 4 products side by side of codes and x. */
static inline TARGET vi dot_codes(vb codes, vb x)
{
#if LANES == 16
	return (vi)_mm512_dpbusd_epi32(_mm512_setzero_si512(), codes, x);
#else
	return (vi)dot_unsigned(codes, x);
#endif
}

/* ---- scales ---- */

/* 8 bytes of each row as floats. */
static inline TARGET vf floats_of(const uint64_t bytes[2])
{
#if LANES == 16
	__m128i b = _mm_set_epi64x((long long)bytes[1], (long long)bytes[0]);

	return __builtin_convertvector(
		(vi)_mm512_maskz_cvtepi8_epi32(0xffff, b), vf);
#else
	__m128i b = _mm_cvtsi64_si128((long long)bytes[0]);

	return (vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));
#endif
}

/* A half of each row, in all lanes of the row. */
static inline TARGET vf halves_of(struct blocks b, int at)
{
	uint16_t h[2];

#pragma GCC unroll 4
	for (int r = 0; r < ROWS; r++)
		memcpy(&h[r], b.of[r] + at, 2);
#if LANES == 16
	__m256i v = _mm256_mask_set1_epi16(_mm256_set1_epi16((short)h[0]),
					   0xff00, (short)h[1]);

	return (vf)_mm512_maskz_cvtph_ps(0xffff, v);
#else
	return (vf)_mm256_cvtph_ps(_mm_set1_epi16((short)h[0]));
#endif
}

/* 8 floats for every row. */
static inline TARGET vf floats_at(const float *p)
{
	__m256 v = _mm256_loadu_ps(p);
#if LANES == 16
	return (vf)_mm512_maskz_broadcast_f32x8(0xffff, v);
#else
	return (vf)v;
#endif
}

/* Lane at[i] of each row's 8, in its lane i. */
static inline TARGET vf pick_lanes(vf v, const int at[8])
{
#if LANES == 16
	const vi lane = { at[0],     at[1],	at[2],	   at[3],
			  at[4],     at[5],	at[6],	   at[7],
			  at[0] + 8, at[1] + 8, at[2] + 8, at[3] + 8,
			  at[4] + 8, at[5] + 8, at[6] + 8, at[7] + 8 };

	return (vf)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)lane,
					       (__m512)v);
#else
	return (vf)_mm256_permutevar8x32_ps(
		(__m256)v, _mm256_setr_epi32(at[0], at[1], at[2], at[3], at[4],
					     at[5], at[6], at[7]));
#endif
}

/*
 * What groups are multiplied by, or, in two halves, what 16 runs are; and the
 * same of minima.
 */
struct scales {
	vf by[2], least[2];
};

/* Four bytes each: bits of low ones, and two more of others above them. */
static inline TARGET uint64_t six_bits(uint32_t low, uint32_t mixed,
				       uint32_t high)
{
	return (low & 0x3f3f3f3f) |
	       (uint64_t)((mixed & 0x0f0f0f0f) | (high & 0x03030303) << 4)
		       << 32;
}

static inline TARGET struct scales scales_4K(struct blocks b)
{
	uint64_t by[2], least[2];
	struct scales s;
	uint32_t w[3];

#pragma GCC unroll 4
	for (int r = 0; r < ROWS; r++) {
		memcpy(w, b.of[r] + 4, 12);
		by[r] = six_bits(w[0], w[2], w[0] >> 6);
		least[r] = six_bits(w[1], w[2] >> 4, w[1] >> 6);
	}
	s.by[0] = floats_of(by) * halves_of(b, 0);
	s.least[0] = floats_of(least) * halves_of(b, 2);
	return s;
}

#define LOW4 0x0f0f0f0f0f0f0f0f

static inline TARGET struct scales scales_3K(struct blocks b)
{
	const uint64_t low2 = 0x03030303;
	uint64_t q, by[2][2];
	struct scales s;
	uint32_t h;

#pragma GCC unroll 4
	for (int r = 0; r < ROWS; r++) {
		memcpy(&q, b.of[r] + 96, 8);
		memcpy(&h, b.of[r] + 104, 4);
		by[0][r] = (q & LOW4) | (h & low2) << 4 |
			   (h >> 2 & low2) << 36;
		by[1][r] = (q >> 4 & LOW4) | (h >> 4 & low2) << 4 |
			   (h >> 6 & low2) << 36;
	}
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++)
		s.by[i] = (floats_of(by[i]) - 32) * halves_of(b, 108);
	return s;
}

static inline TARGET struct scales scales_2K(struct blocks b)
{
	uint64_t q, by[2][2], least[2][2];
	struct scales s;

#pragma GCC unroll 4
	for (int r = 0; r < 2 * ROWS; r++) {
		memcpy(&q, b.of[r / 2] + r % 2 * 8, 8);
		by[r % 2][r / 2] = q & LOW4;
		least[r % 2][r / 2] = q >> 4 & LOW4;
	}
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
		s.by[i] = floats_of(by[i]) * halves_of(b, 80);
		s.least[i] = floats_of(least[i]) * halves_of(b, 82);
	}
	return s;
}

static inline TARGET struct scales scales_6K(struct blocks b)
{
	struct scales s;
	uint64_t by[2];

#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
#pragma GCC unroll 4
		for (int r = 0; r < ROWS; r++)
			memcpy(&by[r], b.of[r] + 192 + 8 * i, 8);
		s.by[i] = floats_of(by) * halves_of(b, 208);
	}
	return s;
}

/* ---- sums of rows ---- */

/* Products; minima, or what codes have too much, times activations. */
struct sums {
	vf dot, least;
};

/* With the activations' scales; minima are done with. */
static inline TARGET struct scales begin_block(struct sums *sum,
					       struct blocks b,
					       const struct qwen_quants *x,
					       size_t g, enum qwen_weights type)
{
	static const int twice[2][8] = { { 0, 0, 1, 1, 2, 2, 3, 3 },
					 { 4, 4, 5, 5, 6, 6, 7, 7 } };
	const vf d = floats_at(x->d + g);
	struct scales s;

	if (type == QWEN_W_Q4_K || type == QWEN_W_Q5_K) {
		s = scales_4K(b);
		sum->least = fma_(s.least[0], floats_at(x->sum + g),
				     sum->least);
		s.by[0] *= d;
		return s;
	}
	s = type == QWEN_W_Q6_K ? scales_6K(b) :
	    type == QWEN_W_Q3_K ? scales_3K(b) : scales_2K(b);
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
		if (type != QWEN_W_Q2_K)
			s.least[i] = s.by[i] * (float)zero_of(type);
		sum->least = fma_(s.least[i],
				  floats_at(x->half_sum + 2 * g + 8 * i),
				  sum->least);
		s.by[i] *= pick_lanes(d, twice[i]);
	}
	return s;
}

static inline TARGET vf spread_lanes(const vf s[2], int i, bool groups)
{
	const int a = groups ? i : 2 * i % 8, c = groups ? i : a + 1;
	const int at[8] = { a, a, a, a, c, c, c, c };

	return pick_lanes(s[groups ? 0 : i / 4], at);
}

static inline TARGET void add_blocks(struct sums *s, struct blocks b,
				     const struct qwen_quants *x, size_t g,
				     enum qwen_weights type, size_t bytes)
{
	const bool groups = type == QWEN_W_Q4_K || type == QWEN_W_Q5_K;
	const struct scales f = begin_block(s, b, x, g, type);

	for (size_t at = 0; at < bytes; at += 64)
#pragma GCC unroll 4
		for (int r = 0; r < ROWS; r++)
			prefetch_line(b.of[r] + at);
#pragma GCC unroll 8
	for (int i = 0; i < GROUPS; i++) {
		vb in = inputs_of(x, g + (size_t)i);
		vi dot = dot_codes(codes_of(b, i, type), in);
		s->dot = fma_(spread_lanes(f.by, i, groups),
			      __builtin_convertvector(dot, vf), s->dot);
	}
}

/* The sum of a row's lanes. */
static inline TARGET float row_sum(const struct sums *s, int row)
{
	const vf v = s->dot - s->least;
	__m256 h;

#if LANES == 16
	h = row ? _mm512_maskz_extractf32x8_ps(0xff, (__m512)v, 1) :
		  _mm512_castps512_ps256((__m512)v);
#else
	(void)row;
	h = (__m256)v;
#endif
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(h),
			      _mm256_extractf128_ps(h, 1));

	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

/* One alone is both: rows have one sum, whatever they are paired with. */
static inline TARGET void dot_rows(const uint8_t *a, const uint8_t *b,
				   uint32_t cols, const struct qwen_quants *x,
				   float *ya, float *yb, bool add, bool two,
				   enum qwen_weights type,
				   struct qwen_layout l)
{
	const size_t n = cols / QWEN_GROUP;
	struct sums s[3 - ROWS] = { { { 0 }, { 0 } } };
	struct blocks at = { { a, b } }, other = { { b, b } };

	for (size_t g = 0; g < n; g += GROUPS) {
		add_blocks(&s[0], at, x, g, type, l.bytes);
		at.of[0] += l.bytes;
		at.of[1] += l.bytes;
		if (ROWS == 2 || !two)
			continue;
		add_blocks(&s[2 - ROWS], other, x, g, type, l.bytes);
		other.of[0] += l.bytes;
	}
	float v = row_sum(&s[0], 0);
	*ya = add ? *ya + v : v;
	if (!two)
		return;
	v = row_sum(&s[2 - ROWS], ROWS - 1);
	*yb = add ? *yb + v : v;
}

PRODUCT_OF(Q6_K, 256, 210)
PRODUCT_OF(Q5_K, 256, 176)
PRODUCT_OF(Q4_K, 256, 144)
PRODUCT_OF(Q3_K, 256, 110)
PRODUCT_OF(Q2_K, 256, 84)

static void (*const product[])(PRODUCT_ARGS) = {
#define BLOCK(NAME, ...) PRODUCT(NAME),
#include "engine/files/dtype.def"
};
#else

/* Values at once. */
#define STEP 256

/* Without instructions for bytes: values as floats. */
static inline float dot_row(const struct qwen_matrix *m, uint32_t row,
			    const struct qwen_quants *x)
{
	float v = 0, w[STEP];

	for (uint32_t c = 0; c < m->cols; c += STEP) {
		uint32_t n = m->cols - c < STEP ? m->cols - c : STEP;
		unpack_blocks(m, row, c, n, w);
		for (uint32_t i = 0; i < n; i += QWEN_GROUP) {
			float s = 0;
			for (uint32_t k = i; k < i + QWEN_GROUP; k++)
				s += w[k] * (float)x->q[c + k];
			v += x->d[(c + i) / QWEN_GROUP] * s;
		}
	}
	return v;
}
#endif

void SIMD(qwen_product_blocks)(const struct qwen_matrix *w, uint32_t r0,
			       uint32_t r1, const struct qwen_quants *x,
			       uint32_t n, float *y, size_t ldy, bool add)
{
#if LANES == 16
	/* The first processors with AVX-512 have no such instruction. */
	if (!__builtin_cpu_supports("avx512vnni")) {
		qwen_product_blocks_v3(w, r0, r1, x, n, y, ldy, add);
		return;
	}
#endif
#if LANES >= 8
	product[w->type - QWEN_W_INT4 - 1](w, r0, r1, x, n, y, ldy, add);
#else
	for (uint32_t t = 0; t < n; t++)
		for (uint32_t r = r0; r < r1; r++) {
			float v = dot_row(w, r, &x[t]);
			float *to = y + t * ldy + r;
			*to = add ? *to + v : v;
		}
#endif
}
