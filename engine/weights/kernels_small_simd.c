/*
 * engine/weights/kernels_small_simd.c - products with GGUF's blocks of 32, and
 * with IQ4_XS, whose runs of 32 are such, as they are stored.
 *
 * LANES runs at a time: their scales are gathered into one vector; their codes
 * come side by side, of nibbles first all low and then all high halves, which
 * is the order of qwen_quants.half.  unpack_simd.c has what the bits mean.
 */
#include "engine/weights/kernels_blocks.h"

#if LANES >= 8

/* Blocks whose codes fill a vector: of nibbles, or of bytes. */
#define STEP(type) (LANES * 4 / ((type) == QWEN_W_Q8_0 ? 32 : 16))

/* In a register, where the compiler would load each time that it is used. */
static inline TARGET vb keep_loaded(vb v)
{
#if LANES == 16
	__asm__("" : "+v"(v));
#endif
	return v;
}

/* ---- LANES blocks of a row ---- */

/* `size` bytes, with AVX-512 as vectors side by side, the last ends there. */
struct stretch {
	const uint8_t *b;
	int size;
#if LANES == 16
	vb v[9];
#endif
};

#if LANES == 16

/* Words of 16 bits, and their numbers, by a function of that of a lane. */
typedef uint16_t vw __attribute__((vector_size(64)));
#define HALF_LANES(F, n) \
	F(n), F(n + 1), F(n + 2), F(n + 3), F(n + 4), F(n + 5), F(n + 6), \
		F(n + 7), F(n + 8), F(n + 9), F(n + 10), F(n + 11), F(n + 12), \
		F(n + 13), F(n + 14), F(n + 15)
#define LANES_OF(F) { HALF_LANES(F, 0), HALF_LANES(F, 16) }

static inline TARGET int start_of(const struct stretch *s, int i)
{
	return 64 * i + 64 < s->size ? 64 * i : s->size - 64;
}

static inline TARGET struct stretch stretch_of(const uint8_t *b, int size)
{
	struct stretch s = { .b = b, .size = size };

#pragma GCC unroll 9
	for (int i = 0; 64 * i < size; i++)
		s.v[i] = keep_loaded(load_bytes(b + start_of(&s, i)));
	return s;
}

/* Lane i is word at[i], where that is in vector k or the next one. */
static inline TARGET vb pick_words(const struct stretch *s, int k, vw at)
{
	const int here = start_of(s, k), next = start_of(s, k + 1);
	const vw later = (vw)(at >= (uint16_t)(32 * k + 32));
	const vw index = at - (uint16_t)(here / 2) +
			 (later & (uint16_t)(32 - (next - here) / 2));

	if (64 * k + 64 >= s->size)
		return _mm512_permutexvar_epi16((vb)index, s->v[k]);
	return _mm512_permutex2var_epi16(s->v[k], (vb)index, s->v[k + 1]);
}

/* The words from byte `from` of each block on, or a byte before that. */
static inline TARGET __m256i words_of(const struct stretch *s, int from,
				      int bytes)
{
#define WORD(block) (uint16_t)(((block) * bytes + from) / 2)
	const vw at = LANES_OF(WORD);
	__m256i v = _mm256_setzero_si256();

#pragma GCC unroll 5
	for (int k = 0; 64 * k < s->size; k += 2) {
		const int first = (64 * k - from + bytes - 1) / bytes;

		v = _mm256_mask_mov_epi16(
			v, (__mmask16)(0xffffu << first),
			_mm512_castsi512_si256(pick_words(s, k, at)));
	}
	return v;
}

/* 16 bytes each of 4 blocks, of the first from byte `from` on. */
static inline TARGET vb nibbles_of(const struct stretch *s, int from, int bytes)
{
#define CODE(word) (uint16_t)(from / 2 + (word) / 8 * bytes / 2 + (word) % 8)
	const vw at = LANES_OF(CODE);
	const int span = 3 * bytes + 16, k = from / 64;

	if (from + span <= start_of(s, k + 1) + 64)
		return pick_words(s, k, at);
	const struct stretch four = stretch_of(s->b + from, span);
	return pick_words(&four, 0, at - (uint16_t)(from / 2));
}

static inline TARGET vf floats_of_halves(__m256i v)
{
	return (vf)_mm512_maskz_cvtph_ps(0xffff, v);
}

static inline TARGET vi first_bytes(const struct stretch *s, int bytes)
{
#define ODD(block) ((block) * bytes % 2 * 8)
	const vi shift = { HALF_LANES(ODD, 0) };
	const __m512i w =
		_mm512_maskz_cvtepu16_epi32(0xffff, words_of(s, 0, bytes));

	return (vi)w >> shift & 255;
}

#else

static inline struct stretch stretch_of(const uint8_t *b, int size)
{
	return (struct stretch){ .b = b, .size = size };
}

static inline __m128i words_of(const struct stretch *s, int from, int bytes)
{
	uint16_t w[LANES];

#pragma GCC unroll 8
	for (int i = 0; i < LANES; i++)
		memcpy(&w[i], s->b + i * bytes + from, 2);
	return _mm_setr_epi16((short)w[0], (short)w[1], (short)w[2],
			      (short)w[3], (short)w[4], (short)w[5],
			      (short)w[6], (short)w[7]);
}

static inline vf floats_of_halves(__m128i v)
{
	return (vf)_mm256_cvtph_ps(v);
}

static inline vi first_bytes(const struct stretch *s, int bytes)
{
	return (vi)_mm256_cvtepu16_epi32(words_of(s, 0, bytes)) & 255;
}
#endif

/* ---- scales ---- */

/* Exponents of MXFP4: halves of 2^(e - 127). */
static inline TARGET vf floats_of_exponents(vi v)
{
	vi small = 0x200000 << (v & 1);

	return select_lanes(v < 2, (vf)small, (vf)((v - 1) << 23));
}

/*
 * IQ4_XS: of the blocks that LANES runs are in, 6 bits of each, less 32, times
 * the half before them.
 */
static inline TARGET vf floats_of_blocks(const uint8_t *b, int bytes)
{
	vi low = { 0 }, high = low, lane = low;
	uint32_t four, head;

	for (int i = 0; i < LANES; i++)
		lane[i] = i % 8;
	memcpy(&head, b, 4);
	memcpy(&four, b + 4, 4);
	high += (int32_t)head;
	low += (int32_t)four;
#if LANES == 16
	memcpy(&head, b + bytes, 4);
	memcpy(&four, b + bytes + 4, 4);
	high = (vi)_mm512_mask_set1_epi32((__m512i)high, 0xff00, (int)head);
	low = (vi)_mm512_mask_set1_epi32((__m512i)low, 0xff00, (int)four);
	const vf d = floats_of_halves(
		_mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)high));
#else
	(void)bytes;
	const vf d = floats_of_halves(_mm_set1_epi16((short)head));
#endif
	vi steps = (low >> 4 * lane & 15) | (high >> (16 + 2 * lane) & 3) << 4;

	return __builtin_convertvector(steps - 32, vf) * d;
}

static inline TARGET vf scales_of(const struct stretch *s, int bytes,
				  enum qwen_weights type)
{
	return type == QWEN_W_IQ4_XS ?
		       floats_of_blocks(s->b, bytes) :
	       type == QWEN_W_MXFP4 ?
		       floats_of_exponents(first_bytes(s, bytes)) :
		       floats_of_halves(words_of(s, 0, bytes));
}

/* ---- codes ---- */

static inline TARGET bool has_fifths(enum qwen_weights type)
{
	return type == QWEN_W_Q5_0 || type == QWEN_W_Q5_1;
}

static inline TARGET bool has_minima(enum qwen_weights type)
{
	return type == QWEN_W_Q4_1 || type == QWEN_W_Q5_1;
}

/* The byte where the codes of run i begin. */
static inline TARGET int place_of(int i, int bytes, enum qwen_weights type)
{
	if (type == QWEN_W_IQ4_XS)
		return i / 8 * bytes + 8 + i % 8 * 16;
	return i * bytes + (type == QWEN_W_MXFP4 ? 1 : 2) +
	       (has_minima(type) ? 2 : 0) + (has_fifths(type) ? 4 : 0);
}

static inline TARGET __m256i two_of(const uint8_t *b, int apart)
{
	return _mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128((const void *)b)),
		_mm_loadu_si128((const void *)(b + apart)), 1);
}

/* Of runs from i on side by side, as many as a vector holds. */
static inline TARGET vb gather_codes(const struct stretch *s, int i, int bytes,
				     enum qwen_weights type)
{
	const int from = place_of(i, bytes, type);
	const uint8_t *b = s->b + from;

#if LANES == 16
	if (type == QWEN_W_IQ4_XS)
		return load_bytes(b);
	if (type != QWEN_W_Q8_0 && bytes % 2 == 0)
		return nibbles_of(s, from, bytes);
	const bool whole = type == QWEN_W_Q8_0;
	return _mm512_inserti64x4(
		_mm512_castsi256_si512(whole ? bytes_at(b) : two_of(b, bytes)),
		whole ? bytes_at(b + bytes) : two_of(b + 2 * bytes, bytes), 1);
#else
	if (type == QWEN_W_Q8_0 || type == QWEN_W_IQ4_XS)
		return bytes_at(b);
	return two_of(b, bytes);
#endif
}

/* 16 to codes whose bit is set: 16 bits of each block, `bytes` apart. */
static inline TARGET vb add_fifths(vb codes, const uint8_t *bits, int bytes)
{
	uint64_t all = 0;

#pragma GCC unroll 4
	for (int i = 0; i < LANES / 4; i++) {
		uint16_t w;
		memcpy(&w, bits + i * bytes, 2);
		all |= (uint64_t)w << 16 * i;
	}
#if LANES == 16
	return _mm512_mask_add_epi8(codes, all, codes, splat_byte(16));
#else
	return codes | fifths_of((uint32_t)all);
#endif
}

/* What codes of 4 bits stand for, zero_of(type) added. */
static inline TARGET vb values_of(vb codes, enum qwen_weights type)
{
	if (type != QWEN_W_IQ4_NL && type != QWEN_W_IQ4_XS &&
	    type != QWEN_W_MXFP4)
		return codes;
#if LANES == 16
	return _mm512_shuffle_epi8(
		_mm512_maskz_broadcast_i32x4(0xffff, values_table(type)),
		codes);
#else
	return _mm256_shuffle_epi8(
		_mm256_broadcastsi128_si256(values_table(type)), codes);
#endif
}

/* Low and high halves; of bytes only the first. */
struct codes {
	vb low, high;
};

static inline TARGET struct codes codes_of(const struct stretch *s, int i,
					   int bytes, enum qwen_weights type)
{
	vb v = gather_codes(s, i, bytes, type);
	struct codes c = { v, v };

	if (type == QWEN_W_Q8_0)
		return c;
	c.low = v & splat_byte(15);
	c.high = (vb)((vu)v >> 4) & splat_byte(15);
	if (has_fifths(type)) {
		const uint8_t *bits = s->b + place_of(i, bytes, type) - 4;
		c.low = add_fifths(c.low, bits, bytes);
		c.high = add_fifths(c.high, bits + 2, bytes);
	}
	c.low = values_of(c.low, type);
	c.high = values_of(c.high, type);
	return c;
}

/* ---- products ---- */

/*
 * What the unsigned codes that are multiplied have too much.  Without VNNI,
 * codes of 8 bits are signed: their signs go to the activations.
 */
static inline TARGET int offset_of(enum qwen_weights type)
{
	return LANES < 16 && zero_of(type) == 128 ? 0 : zero_of(type);
}

/* Sums of 4 or 8 products of codes and activations, side by side. */
static inline TARGET vi dot_step(struct codes c, struct codes x,
				 enum qwen_weights type)
{
#if LANES == 16
	const vb none = _mm512_setzero_si512();

	if (type == QWEN_W_Q8_0)
		return (vi)_mm512_dpbusd_epi32(
			none, _mm512_xor_si512(c.low, splat_byte(128)), x.low);
	return (vi)_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(none, c.low, x.low),
				       c.high, x.high);
#else
	const vb ones = _mm256_set1_epi16(1);

	if (type == QWEN_W_Q8_0)
		return (vi)dot_signed(c.low, x.low);
	if (type == QWEN_W_IQ4_NL || type == QWEN_W_IQ4_XS) {
		const vb zero = splat_byte(128);
		return (vi)_mm256_add_epi32(
			dot_signed(_mm256_sub_epi8(c.low, zero), x.low),
			dot_signed(_mm256_sub_epi8(c.high, zero), x.high));
	}
	/* Sums of pairs are exact in 16 bits: 4 * 31 * 127 fits. */
	return (vi)_mm256_madd_epi16(
		_mm256_add_epi16(_mm256_maddubs_epi16(c.low, x.low),
				 _mm256_maddubs_epi16(c.high, x.high)),
		ones);
#endif
}

/* The factors of blocks i .. of f, each in the lanes of its sums. */
static inline TARGET vf spread_lanes(vf f, int i, enum qwen_weights type)
{
	const int shift = type == QWEN_W_Q8_0 ? 3 : 2;
#if LANES == 16
	vi lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	vi at = (lane >> shift) + i;

	return (vf)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)at, (__m512)f);
#else
	vi lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
	vi at = (lane >> shift) + i;

	return (vf)_mm256_permutevar8x32_ps((__m256)f, (__m256i)at);
#endif
}

struct sums {
	vf dot, offset, least;
};

/* The activations of LANES runs from group g on, for codes of run i and on. */
static inline TARGET struct codes
inputs_of(const struct qwen_quants *x, size_t g, int i, enum qwen_weights type)
{
	if (type == QWEN_W_Q8_0) {
		const int8_t *q = x->q + (g + (size_t)i) * QWEN_GROUP;
		return (struct codes){ .low = load_bytes(q) };
	}
	const int8_t *q = x->half + g * QWEN_GROUP + i / 4 * 128 + i % 4 * 16;
	return (struct codes){ load_bytes(q), load_bytes(q + 64) };
}

/* LANES runs of a row, that are `size` bytes, by the activations from g on. */
static inline TARGET void add_blocks(struct sums *sum, const uint8_t *b,
				     int size, const struct qwen_quants *x,
				     size_t g, enum qwen_weights type,
				     int bytes)
{
	const size_t behind =
		type == QWEN_W_Q8_0 ? FETCH_BYTES : FETCH_STEP_BYTES;
	const struct stretch s = stretch_of(b, size);
	const vf total = load(x->sum + g);
	vf f = scales_of(&s, bytes, type);

	if (has_minima(type))
		sum->least = fma_(floats_of_halves(words_of(&s, 2, bytes)),
				  total, sum->least);
	if (offset_of(type))
		sum->offset = fma_(f, total, sum->offset);
	f *= load(x->d + g);
#pragma GCC unroll 8
	for (int i = 0; i < LANES; i += STEP(type)) {
		prefetch_lines(b, i * size / LANES,
			       (i + STEP(type)) * size / LANES, behind);
		vi dot = dot_step(codes_of(&s, i, bytes, type),
				  inputs_of(x, g, i, type), type);
		sum->dot = fma_(spread_lanes(f, i, type),
				__builtin_convertvector(dot, vf), sum->dot);
	}
}

/* The last blocks of a row, with zeros behind them. */
struct rest {
	uint8_t b[LANES * 34]; /* also of IQ4_XS */
};

static inline TARGET const uint8_t *rest_of(const uint8_t *b, struct rest *to,
					    size_t bytes)
{
	memset(to, 0, sizeof(*to));
	return memcpy(to->b, b, bytes);
}

static inline TARGET float total_of(const struct sums *s,
				    enum qwen_weights type)
{
	return sum_lanes(s->dot - (float)offset_of(type) * s->offset +
			 s->least);
}

/* One row, or two; `two`, `type` and `l` are constants where it is inlined. */
static inline TARGET void dot_rows(const uint8_t *a, const uint8_t *b,
				   uint32_t cols, const struct qwen_quants *x,
				   float *ya, float *yb, bool add, bool two,
				   enum qwen_weights type, struct qwen_layout l)
{
	const int size = LANES * QWEN_GROUP / l.values * l.bytes;
	struct sums sa = { { 0 }, { 0 }, { 0 } }, sb = sa;
	size_t n = cols / QWEN_GROUP, g = 0;

	for (; g + LANES <= n; g += LANES) {
		add_blocks(&sa, a, size, x, g, type, l.bytes);
		a += size;
		if (!two)
			continue;
		add_blocks(&sb, b, size, x, g, type, l.bytes);
		b += size;
	}
	if (g < n) {
		struct rest r;
		const size_t bytes = (n - g) * QWEN_GROUP / l.values * l.bytes;
		add_blocks(&sa, rest_of(a, &r, bytes), size, x, g, type,
			   l.bytes);
		if (two)
			add_blocks(&sb, rest_of(b, &r, bytes), size, x, g, type,
				   l.bytes);
	}
	float v = total_of(&sa, type);
	*ya = add ? *ya + v : v;
	if (!two)
		return;
	v = total_of(&sb, type);
	*yb = add ? *yb + v : v;
}

PRODUCT_OF(Q8_0, 32, 34)
PRODUCT_OF(Q5_1, 32, 24)
PRODUCT_OF(Q5_0, 32, 22)
PRODUCT_OF(Q4_1, 32, 20)
PRODUCT_OF(Q4_0, 32, 18)
PRODUCT_OF(IQ4_NL, 32, 18)
PRODUCT_OF(MXFP4, 32, 17)
PRODUCT_OF(IQ4_XS, 256, 136)
#endif
