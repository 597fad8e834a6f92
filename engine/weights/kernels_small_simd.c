/*
 * engine/weights/kernels_small_simd.c - products with GGUF's blocks of 32, and
 * with IQ4_XS, whose runs of 32 are such, as they are stored.
 *
 * LANES runs at a time: their scales are gathered into one vector; their codes
 * come side by side, of nibbles first all low and then all high halves, which is
 * the order of qwen_quants.half.  unpack_simd.c has what the bits mean.
 */
#include "engine/weights/kernels_blocks.h"

#if LANES >= 8

/* Blocks whose codes fill a vector: of nibbles, or of bytes. */
#define PER	   (LANES / 8) /* of IQ4_XS */
#define STEP(type) (LANES * 4 / ((type) == QWEN_W_Q8_0 ? 32 : 16))

static inline TARGET vb load_bytes(const void *p)
{
#if LANES == 16
	return _mm512_loadu_si512(p);
#else
	return _mm256_loadu_si256(p);
#endif
}

/* ---- scales ---- */

/* The first four bytes of each block, a lane each. */
static inline TARGET vi heads_of(const uint8_t *b, size_t bytes)
{
	vi v = { 0 };
	int32_t head;

#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++) {
		memcpy(&head, b + (size_t)i * bytes, 4);
#if LANES == 16
		v = (vi)_mm512_mask_set1_epi32((__m512i)v,
					       (__mmask16)(1 << i), head);
#else
		v[i] = head;
#endif
	}
	return v;
}

/* The low halves of lanes as floats. */
static inline TARGET vf floats_of_halves(vi v)
{
#if LANES == 16
	return (vf)_mm512_maskz_cvtph_ps(
		0xffff, _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)v));
#else
	__m256i w = _mm256_and_si256((__m256i)v, _mm256_set1_epi32(0xffff));

	return (vf)_mm256_cvtph_ps(_mm_packus_epi32(
		_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
#endif
}

/* Exponents of MXFP4 in the low bytes of lanes: halves of 2^(e - 127). */
static inline TARGET vf floats_of_exponents(vi v)
{
	v &= 255;
	vi small = 0x200000 << (v & 1);

	return select_lanes(v < 2, (vf)small, (vf)((v - 1) << 23));
}

/*
 * IQ4_XS: of the blocks that LANES runs are in, 6 bits of each, less 32, times
 * the half before them.
 */
static inline TARGET vf floats_of_blocks(const uint8_t *b, size_t bytes)
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
#else
	(void)bytes;
#endif
	vi steps = (low >> 4 * lane & 15) | (high >> (16 + 2 * lane) & 3) << 4;

	return __builtin_convertvector(steps - 32, vf) *
	       floats_of_halves(high);
}

/* ---- codes ---- */

/* Side by side from blocks: `bytes` of a block, codes of it at `at`. */
static inline TARGET vb gather_codes(const uint8_t *b, size_t bytes, size_t at,
				     enum qwen_weights type)
{
#if LANES == 16
	if (type == QWEN_W_Q8_0)
		return _mm512_inserti64x4(
			_mm512_castsi256_si512(bytes_at(b + at)),
			bytes_at(b + bytes + at), 1);
	if (bytes == 16)
		return _mm512_loadu_si512(b);
	__m128i p[4];
	for (int i = 0; i < 4; i++)
		p[i] = _mm_loadu_si128((const void *)(b + i * bytes + at));
	return _mm512_inserti64x4(
		_mm512_castsi256_si512(_mm256_inserti128_si256(
			_mm256_castsi128_si256(p[0]), p[1], 1)),
		_mm256_inserti128_si256(_mm256_castsi128_si256(p[2]), p[3], 1),
		1);
#else
	if (type == QWEN_W_Q8_0)
		return bytes_at(b + at);
	return _mm256_inserti128_si256(
		_mm256_castsi128_si256(
			_mm_loadu_si128((const void *)(b + at))),
		_mm_loadu_si128((const void *)(b + bytes + at)), 1);
#endif
}

/* 16 for every set bit, of 16 bits of each block, from bit `from` on. */
static inline TARGET vb gather_fifths(const uint8_t *b, size_t bytes, size_t at,
				      int from)
{
	uint64_t all = 0;

	for (int i = 0; i < LANES / 4; i++) {
		uint16_t w;
		memcpy(&w, b + i * bytes + at + from / 8, 2);
		all |= (uint64_t)w << 16 * i;
	}
#if LANES == 16
	return _mm512_maskz_set1_epi8(all, 16);
#else
	return fifths_of((uint32_t)all);
#endif
}

/* What codes of 4 bits stand for, zero_of(type) added. */
static inline TARGET vb values_of(vb codes, enum qwen_weights type)
{
	if (type != QWEN_W_IQ4_NL && type != QWEN_W_IQ4_XS &&
	    type != QWEN_W_MXFP4)
		return codes;
#if LANES == 16
	return _mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(
					   0xffff, values_table(type)),
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

static inline TARGET struct codes codes_of(const uint8_t *b, size_t bytes,
					   enum qwen_weights type)
{
	const bool fifths = type == QWEN_W_Q5_0 || type == QWEN_W_Q5_1;
	const size_t head = type == QWEN_W_IQ4_XS ? 0 :
			    type == QWEN_W_MXFP4 ? 1 :
			    type == QWEN_W_Q4_1 || type == QWEN_W_Q5_1 ? 4 : 2;
	vb v = gather_codes(b, bytes, head + (fifths ? 4 : 0), type);
	struct codes c = { v, v };

	if (type == QWEN_W_Q8_0)
		return c;
	c.low = v & splat_byte(15);
	c.high = (vb)((vu)v >> 4) & splat_byte(15);
	if (fifths) {
		c.low |= gather_fifths(b, bytes, head, 0);
		c.high |= gather_fifths(b, bytes, head, 16);
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
static inline TARGET vi dot_step(struct codes c, const int8_t *q,
				 enum qwen_weights type)
{
	vb x = load_bytes(q);
#if LANES == 16
	const vb none = _mm512_setzero_si512();

	if (type == QWEN_W_Q8_0)
		return (vi)_mm512_dpbusd_epi32(
			none, _mm512_xor_si512(c.low, splat_byte(128)), x);
	return (vi)_mm512_dpbusd_epi32(_mm512_dpbusd_epi32(none, c.low, x),
				       c.high, load_bytes(q + 64));
#else
	const vb ones = _mm256_set1_epi16(1);

	if (type == QWEN_W_Q8_0)
		return (vi)dot_signed(c.low, x);
	vb y = load_bytes(q + 64);
	if (type == QWEN_W_IQ4_NL || type == QWEN_W_IQ4_XS) {
		const vb zero = splat_byte(128);
		return (vi)_mm256_add_epi32(
			dot_signed(_mm256_sub_epi8(c.low, zero), x),
			dot_signed(_mm256_sub_epi8(c.high, zero), y));
	}
	/* Sums of pairs are exact in 16 bits: 4 * 31 * 127 fits. */
	return (vi)_mm256_madd_epi16(
		_mm256_add_epi16(_mm256_maddubs_epi16(c.low, x),
				 _mm256_maddubs_epi16(c.high, y)),
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

static inline TARGET vf scales_of(const uint8_t *b, vi head,
				  enum qwen_weights type, size_t bytes)
{
	return type == QWEN_W_IQ4_XS ? floats_of_blocks(b, bytes) :
	       type == QWEN_W_MXFP4 ? floats_of_exponents(head) :
				      floats_of_halves(head);
}

/* LANES runs from group g of the activations on. */
static inline TARGET void add_blocks(struct sums *s, const uint8_t *b,
				     const struct qwen_quants *x, size_t g,
				     enum qwen_weights type, size_t bytes)
{
	const bool runs = type == QWEN_W_IQ4_XS;
	const vi head = runs ? (vi){ 0 } : heads_of(b, bytes);
	const vf sum = load(x->sum + g);
	vf f = scales_of(b, head, type, bytes);

	if (type == QWEN_W_Q4_1 || type == QWEN_W_Q5_1)
		s->least = fma_(floats_of_halves((vi)((vu)head >> 16)), sum,
				s->least);
	if (offset_of(type))
		s->offset = fma_(f, sum, s->offset);
	f *= load(x->d + g);
	for (size_t at = 0; at < (runs ? PER : LANES) * bytes; at += 64)
		prefetch_line(b + at);
#pragma GCC unroll 8
	for (int i = 0; i < LANES; i += STEP(type)) {
		const int8_t *q = type == QWEN_W_Q8_0 ?
			x->q + (g + i) * QWEN_GROUP :
			x->half + g * QWEN_GROUP + i / 4 * 128 + i % 4 * 16;
		const uint8_t *from = runs ? b + i / 8 * bytes + 8 + i % 8 * 16
					   : b + i * bytes;
		vi dot = dot_step(codes_of(from, runs ? 16 : bytes, type), q,
				  type);
		s->dot = fma_(spread_lanes(f, i, type),
			      __builtin_convertvector(dot, vf), s->dot);
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
				   enum qwen_weights type,
				   struct qwen_layout l)
{
	const size_t step = (size_t)LANES * QWEN_GROUP / l.values * l.bytes;
	struct sums sa = { { 0 }, { 0 }, { 0 } }, sb = sa;
	size_t n = cols / QWEN_GROUP, g = 0;

	for (; g + LANES <= n; g += LANES) {
		add_blocks(&sa, a, x, g, type, l.bytes);
		a += step;
		if (!two)
			continue;
		add_blocks(&sb, b, x, g, type, l.bytes);
		b += step;
	}
	if (g < n) {
		struct rest r;
		const size_t bytes = (n - g) * QWEN_GROUP / l.values * l.bytes;
		add_blocks(&sa, rest_of(a, &r, bytes), x, g, type, l.bytes);
		if (two)
			add_blocks(&sb, rest_of(b, &r, bytes), x, g, type,
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
