/*
 * engine/weights/kernels_blocks_simd.c - products with GGUF's blocks of 256 as
 * they are stored, and the choice among all of its types.
 *
 * Codes become bytes in registers and are multiplied by the activations' bytes;
 * sums of a scale's values are exact in integers.  A vector has one group of 32
 * values, or with AVX-512 two; there the sums of all runs of 16 are gathered
 * into one vector, and multiplied by their scales at once.  unpack_simd.c has
 * what the bits mean.
 */
#include "engine/weights/kernels_blocks.h"

#if LANES >= 8

/* Groups of a block. */
#define GROUPS 8

/* ---- codes ---- */

/* 32 bytes, for each group of a vector. */
static inline TARGET vb bytes_for_each(const uint8_t *p)
{
#if LANES == 16
	return _mm512_maskz_broadcast_i64x4(0xff, bytes_at(p));
#else
	return bytes_at(p);
#endif
}

/*
 * Bits of bytes from `from` on become bits from `to` on; those of the second
 * group are `step` higher.  Rotated in lanes, they stay in their bytes.
 */
static inline TARGET vb bits_of(vb v, int from, int step, int to, int mask)
{
#if LANES == 16
	const int by = to - from, other = by - step;

	if (step)
		v = _mm512_rolv_epi32(
			v, _mm512_setr_epi32(by, by, by, by, by, by, by, by,
					     other, other, other, other, other,
					     other, other, other));
	else
		v = by < 0 ? _mm512_srli_epi16(v, (unsigned)-by) :
		    by > 0 ? _mm512_slli_epi16(v, (unsigned)by) :
			     v;
#else
	(void)step;
	v = from > to ? _mm256_srli_epi16(v, from - to) :
	    from < to ? _mm256_slli_epi16(v, to - from) :
			v;
#endif
	return v & splat_byte(mask << to);
}

/* Codes of the groups of a vector from i on, unsigned. */
static inline TARGET vb codes_of(const uint8_t *b, int i,
				 enum qwen_weights type)
{
	switch (type) {
	case QWEN_W_Q4_K:
		return bits_of(bytes_for_each(b + 16 + i / 2 * 32), i % 2 * 4,
			       4, 0, 15);
	case QWEN_W_Q5_K:
		return bits_of(bytes_for_each(b + 48 + i / 2 * 32), i % 2 * 4,
			       4, 0, 15) |
		       bits_of(bytes_for_each(b + 16), i, 1, 4, 1);
	case QWEN_W_Q6_K:
		return bits_of(load_bytes(b + i / 4 * 64 + i % 2 * 32),
			       i % 4 / 2 * 4, 0, 0, 15) |
		       bits_of(bytes_for_each(b + 128 + i / 4 * 32), i % 4 * 2,
			       2, 4, 3);
	case QWEN_W_Q3_K:
		return bits_of(bytes_for_each(b + 32 + i / 4 * 32), i % 4 * 2,
			       2, 0, 3) |
		       bits_of(bytes_for_each(b), i, 1, 2, 1);
	default: /* Q2_K */
		return bits_of(bytes_for_each(b + 16 + i / 4 * 32), i % 4 * 2,
			       2, 0, 3);
	}
}

/* ---- scales ---- */

/* Groups have scales and minima; else runs of 16 values have. */
static inline TARGET bool has_groups(enum qwen_weights type)
{
	return type == QWEN_W_Q4_K || type == QWEN_W_Q5_K;
}

/* Products; minima, or what codes have too much, times activations. */
struct sums {
	vf dot, least;
};

#if LANES == 16

/*
 * Lane l is of run 4 (l % 4) + l / 4, where that run's sum comes to lie; F says
 * what of its source that is.
 */
#define LANES_BY(F) \
	F(0), F(4), F(8), F(12), F(1), F(5), F(9), F(13), F(2), F(6), F(10), \
		F(14), F(3), F(7), F(11), F(15)
#define RUN(run)   run
#define GROUP(run) ((run) / 2)

static inline TARGET vf lanes_of(vf v, vi at)
{
	return (vf)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)at, (__m512)v);
}

static inline TARGET vf floats_of(__m128i bytes)
{
	return __builtin_convertvector(
		(vi)_mm512_maskz_cvtepi8_epi32(0xffff, bytes), vf);
}

static inline TARGET vf floats_of_runs(__m128i bytes)
{
	return floats_of(_mm_shuffle_epi8(bytes, _mm_setr_epi8(LANES_BY(RUN))));
}

/* A half, in all lanes. */
static inline TARGET vf half_of(const uint8_t *p)
{
	uint16_t h;

	memcpy(&h, p, 2);
	return (vf)_mm512_maskz_broadcastss_ps(
		0xffff, _mm_cvtph_ps(_mm_cvtsi32_si128(h)));
}

/* A half in the lower lanes, the next one in the upper. */
static inline TARGET vf two_halves_of(const uint8_t *p)
{
	const vi at = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 };

	return lanes_of((vf)_mm512_castps128_ps512(
				_mm_cvtph_ps(_mm_loadl_epi64((const void *)p))),
			at);
}

/* 6 bits of each group, then of its minimum. */
static inline TARGET __m128i bytes_of_groups(const uint8_t *b)
{
	const __m128i v = _mm_loadu_si128((const void *)b);
	const __m128i low = _mm_srlv_epi32(_mm_shuffle_epi32(v, 0xed),
					   _mm_setr_epi32(0, 0, 0, 4));
	const __m128i high =
		_mm_srli_epi32(_mm_maskz_shuffle_epi32(10, v, 0x84), 2);
	const __m128i mask =
		_mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);

	return _mm_or_si128(_mm_and_si128(low, mask),
			    _mm_and_si128(high, _mm_set1_epi8(0x30)));
}

/* Q3_K: 6 bits of each run. */
static inline TARGET __m128i bytes_of_runs(const uint8_t *b)
{
	long long four;
	int two;

	memcpy(&four, b + 96, 8);
	memcpy(&two, b + 104, 4);
	const __m128i low = _mm_srlv_epi32(_mm_set1_epi64x(four),
					   _mm_setr_epi32(0, 0, 4, 4));
	const __m128i high =
		_mm_srlv_epi32(_mm_set1_epi32(two), _mm_setr_epi32(0, 2, 4, 6));

	return _mm_or_si128(
		_mm_and_si128(low, _mm_set1_epi8(15)),
		_mm_slli_epi32(_mm_and_si128(high, _mm_set1_epi8(3)), 4));
}

/* Of groups: what their sums are multiplied by; minima are done with. */
static inline TARGET vf begin_groups(struct sums *sum, const uint8_t *b,
				     const struct qwen_quants *x, size_t g)
{
	/* Of the lower lanes scales, of the upper ones minima. */
	const vf in = (vf)_mm512_insertf32x8(
		_mm512_castps256_ps512(_mm256_loadu_ps(x->d + g)),
		_mm256_loadu_ps(x->sum + g), 1);
	const vf by = floats_of(bytes_of_groups(b)) * two_halves_of(b) * in;

	sum->least += by;
	return lanes_of(by, (vi){ LANES_BY(GROUP) });
}

/* The same of runs. */
static inline TARGET vf begin_runs(struct sums *sum, const uint8_t *b,
				   const struct qwen_quants *x, size_t g,
				   enum qwen_weights type)
{
	const vf d = (vf)_mm512_castps256_ps512(_mm256_loadu_ps(x->d + g));
	const vf half_sum = load(x->half_sum + 2 * g);
	const __m128i low = _mm_set1_epi8(15);
	vf by, least;
	__m128i v;

	if (type == QWEN_W_Q2_K) {
		v = _mm_loadu_si128((const void *)b);
		by = floats_of_runs(_mm_and_si128(v, low)) * half_of(b + 80);
		v = _mm_and_si128(_mm_srli_epi16(v, 4), low);
		least = floats_of_runs(v) * half_of(b + 82);
	} else {
		if (type == QWEN_W_Q6_K) {
			v = _mm_loadu_si128((const void *)(b + 192));
			by = floats_of_runs(v) * half_of(b + 208);
		} else {
			by = (floats_of_runs(bytes_of_runs(b)) - 32) *
			     half_of(b + 108);
		}
		least = by * (float)zero_of(type);
	}
	sum->least = fma_(least, lanes_of(half_sum, (vi){ LANES_BY(RUN) }),
			  sum->least);
	return by * lanes_of(d, (vi){ LANES_BY(GROUP) });
}

/*
 * The sums of runs of all four vectors of a block.  Twice, words of two vectors
 * side by side are added up in pairs: 8 products of codes of 5 bits fit; of
 * those of 6 bits, four do.
 */
static inline TARGET vi gather_sums(const vi dot[4], enum qwen_weights type)
{
	const __m512i ones = _mm512_set1_epi16(1);
	const __m512i a = _mm512_madd_epi16(
		_mm512_packs_epi32((__m512i)dot[0], (__m512i)dot[1]), ones);
	const __m512i b = _mm512_madd_epi16(
		_mm512_packs_epi32((__m512i)dot[2], (__m512i)dot[3]), ones);

	if (type != QWEN_W_Q6_K)
		return (vi)_mm512_madd_epi16(_mm512_packs_epi32(a, b), ones);
	return (vi)_mm512_shuffle_ps((__m512)a, (__m512)b, 0x88) +
	       (vi)_mm512_shuffle_ps((__m512)a, (__m512)b, 0xdd);
}

/* A block, by the activations from group g on. */
static inline TARGET void add_block(struct sums *sum, const uint8_t *b,
				    const struct qwen_quants *x, size_t g,
				    enum qwen_weights type)
{
	const vf by = has_groups(type) ? begin_groups(sum, b, x, g) :
					 begin_runs(sum, b, x, g, type);
	vi dot[4];

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		dot[i] = (vi)_mm512_dpbusd_epi32(
			_mm512_setzero_si512(), codes_of(b, 2 * i, type),
			load_bytes(x->q + (g + 2 * (size_t)i) * QWEN_GROUP));
	sum->dot = fma_(__builtin_convertvector(gather_sums(dot, type), vf), by,
			sum->dot);
}

static inline TARGET float total_of(const struct sums *s,
				    enum qwen_weights type)
{
	const __mmask16 some = has_groups(type) ? 0xff00 : 0xffff;

	return sum_lanes(s->dot -
			 (vf)_mm512_maskz_mov_ps(some, (__m512)s->least));
}

#else

/* 8 bytes as floats. */
static inline vf floats_of(uint64_t bytes)
{
	return (vf)_mm256_cvtepi32_ps(
		_mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)bytes)));
}

static inline vf half_of(const uint8_t *p)
{
	uint16_t h;

	memcpy(&h, p, 2);
	return (vf)_mm256_cvtph_ps(_mm_set1_epi16((short)h));
}

/* Lane at[i] in lane i. */
static inline vf pick_lanes(vf v, const int at[8])
{
	return (vf)_mm256_permutevar8x32_ps(
		(__m256)v, _mm256_setr_epi32(at[0], at[1], at[2], at[3], at[4],
					     at[5], at[6], at[7]));
}

/*
 * What groups are multiplied by, or, in two halves, what runs of 16 are; and
 * the same of minima.
 */
struct scales {
	vf by[2], least[2];
};

/* Four bytes each: bits of low ones, and two more of others above them. */
static inline uint64_t six_bits(uint32_t low, uint32_t mixed, uint32_t high)
{
	return (low & 0x3f3f3f3f) |
	       (uint64_t)((mixed & 0x0f0f0f0f) | (high & 0x03030303) << 4)
		       << 32;
}

static inline struct scales scales_4K(const uint8_t *b)
{
	struct scales s;
	uint32_t w[3];

	memcpy(w, b + 4, 12);
	s.by[0] = floats_of(six_bits(w[0], w[2], w[0] >> 6)) * half_of(b);
	s.least[0] = floats_of(six_bits(w[1], w[2] >> 4, w[1] >> 6)) *
		     half_of(b + 2);
	return s;
}

#define LOW4 0x0f0f0f0f0f0f0f0f

static inline struct scales scales_3K(const uint8_t *b)
{
	const uint64_t low2 = 0x03030303;
	const vf d = half_of(b + 108);
	struct scales s;
	uint64_t q;
	uint32_t h;

	memcpy(&q, b + 96, 8);
	memcpy(&h, b + 104, 4);
	s.by[0] = (floats_of((q & LOW4) | (h & low2) << 4 |
			     (h >> 2 & low2) << 36) -
		   32) *
		  d;
	s.by[1] = (floats_of((q >> 4 & LOW4) | (h >> 4 & low2) << 4 |
			     (h >> 6 & low2) << 36) -
		   32) *
		  d;
	return s;
}

static inline struct scales scales_2K(const uint8_t *b)
{
	struct scales s;
	uint64_t q;

	for (int i = 0; i < 2; i++) {
		memcpy(&q, b + 8 * i, 8);
		s.by[i] = floats_of(q & LOW4) * half_of(b + 80);
		s.least[i] = floats_of(q >> 4 & LOW4) * half_of(b + 82);
	}
	return s;
}

static inline struct scales scales_6K(const uint8_t *b)
{
	struct scales s;
	uint64_t q;

	for (int i = 0; i < 2; i++) {
		memcpy(&q, b + 192 + 8 * i, 8);
		s.by[i] = floats_of(q) * half_of(b + 208);
	}
	return s;
}

/* With the activations' scales; minima are done with. */
static inline struct scales begin_block(struct sums *sum, const uint8_t *b,
					const struct qwen_quants *x, size_t g,
					enum qwen_weights type)
{
	static const int twice[2][8] = { { 0, 0, 1, 1, 2, 2, 3, 3 },
					 { 4, 4, 5, 5, 6, 6, 7, 7 } };
	const vf d = load(x->d + g);
	struct scales s;

	if (has_groups(type)) {
		s = scales_4K(b);
		sum->least = fma_(s.least[0], load(x->sum + g), sum->least);
		s.by[0] *= d;
		return s;
	}
	s = type == QWEN_W_Q6_K ? scales_6K(b) :
	    type == QWEN_W_Q3_K ? scales_3K(b) :
				  scales_2K(b);
#pragma GCC unroll 2
	for (int i = 0; i < 2; i++) {
		if (type != QWEN_W_Q2_K)
			s.least[i] = s.by[i] * (float)zero_of(type);
		sum->least = fma_(s.least[i], load(x->half_sum + 2 * g + 8 * i),
				  sum->least);
		s.by[i] *= pick_lanes(d, twice[i]);
	}
	return s;
}

static inline vf spread_lanes(const vf s[2], int i, bool groups)
{
	const int a = groups ? i : 2 * i % 8, c = groups ? i : a + 1;
	const int at[8] = { a, a, a, a, c, c, c, c };

	return pick_lanes(s[groups ? 0 : i / 4], at);
}

/* A block, by the activations from group g on. */
static inline void add_block(struct sums *sum, const uint8_t *b,
			     const struct qwen_quants *x, size_t g,
			     enum qwen_weights type)
{
	const struct scales s = begin_block(sum, b, x, g, type);

#pragma GCC unroll 8
	for (int i = 0; i < GROUPS; i++) {
		const vb in = load_bytes(x->q + (g + (size_t)i) * QWEN_GROUP);
		vi dot = (vi)dot_unsigned(codes_of(b, i, type), in);
		sum->dot = fma_(spread_lanes(s.by, i, has_groups(type)),
				__builtin_convertvector(dot, vf), sum->dot);
	}
}

static inline float total_of(const struct sums *s, enum qwen_weights type)
{
	(void)type;
	return sum_lanes(s->dot - s->least);
}
#endif

/* ---- rows ---- */

static inline TARGET void dot_rows(const uint8_t *a, const uint8_t *b,
				   uint32_t cols, const struct qwen_quants *x,
				   float *ya, float *yb, bool add, bool two,
				   enum qwen_weights type, struct qwen_layout l)
{
	const uint8_t *row[2] = { a, b };
	float *const y[2] = { ya, yb };
	struct sums s[2] = { { { 0 }, { 0 } } };

	for (size_t g = 0; g < cols / QWEN_GROUP; g += GROUPS)
#pragma GCC unroll 2
		for (int r = 0; r <= two; r++) {
			prefetch_lines(row[r], 0, (int)l.bytes,
				       FETCH_STEP_BYTES);
			add_block(&s[r], row[r], x, g, type);
			row[r] += l.bytes;
		}
#pragma GCC unroll 2
	for (int r = 0; r <= two; r++) {
		const float v = total_of(&s[r], type);
		*y[r] = add ? *y[r] + v : v;
	}
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
