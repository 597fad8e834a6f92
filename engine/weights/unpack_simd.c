/*
 * engine/weights/unpack_simd.c - what the bits of stored blocks mean.
 *
 * The published definitions, to the bit: products and sums are rounded one by
 * one, in their order.  All numbers are little-endian; `half` is an f16.  A
 * block's codes come in runs: of 32 values (or 64) the first half lies in the
 * low bits of its bytes, the second half in the high ones.
 *
 * Codes are taken out of 16 bytes at a time and become floats all at once.
 */
#include "engine/weights/kernels_simd.h"

static inline float half_at(const uint8_t *p)
{
	uint16_t h;

	memcpy(&h, p, 2);
	return f16_one(h);
}

/* ---- codes ---- */

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Sixteen bytes: what is stored in halves would have to be waited for. */
typedef uint64_t codes __attribute__((vector_size(16)));

/* Of each of 16 bytes `bits` bits from bit `at` on. */
static inline codes get_bits(const uint8_t *p, int at, int bits)
{
	codes w;

	memcpy(&w, p, sizeof(w));
	return w >> at & EACH_BYTE * ((1u << bits) - 1);
}

/*
 * Of 8 bytes two bits from bit `at` on; then the two behind them.  So our own
 * types have values k, k + 8, k + 16 and k + 24 of 32 in byte k.
 */
static inline codes get_pairs(const uint8_t *p, int at)
{
	const codes by = { (uint64_t)at, (uint64_t)at + 2 };
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return (codes){ w, w } >> by & EACH_BYTE * 3;
}

/* The bits of two bytes, from the lowest on, a byte for each. */
static inline codes spread_bits(const uint8_t *p)
{
	const __m128i place = _mm_set_epi64x(0x0101010101010101, 0);
	const __m128i bit = _mm_set1_epi64x(0x8040201008040201);
	const __m128i all = _mm_shuffle_epi8(
		_mm_cvtsi32_si128(p[0] | p[1] << 8), place);

	return (codes)_mm_cmpeq_epi8(_mm_and_si128(all, bit), bit) & EACH_BYTE;
}

static inline void put_codes(uint8_t *to, codes c)
{
	memcpy(to, &c, sizeof(c));
}

/* Of 32 values in 16 bytes. */
static inline void take_halves(const uint8_t *q, uint8_t *code)
{
	put_codes(code, get_bits(q, 0, 4));
	put_codes(code + 16, get_bits(q, 4, 4));
}

/* The same, with a fifth bit from 4 bytes. */
static inline void take_fives(const uint8_t *q, const uint8_t *high,
			      uint8_t *code)
{
	put_codes(code, get_bits(q, 0, 4) | spread_bits(high) << 4);
	put_codes(code + 16, get_bits(q, 4, 4) | spread_bits(high + 2) << 4);
}

/* d (code - zero) */
static inline void scale_codes(const uint8_t *code, int n, float d, float zero,
			       float *y)
{
	for (int i = 0; i < n; i += LANES)
		store(y + i, splat(d) * (load_i8((const int8_t *)code + i) -
					 splat(zero)));
}

/* d code + more */
static inline void scale_more(const uint8_t *code, int n, float d, float more,
			      float *y)
{
	for (int i = 0; i < n; i += LANES)
		store(y + i, splat(d) * load_i8((const int8_t *)code + i) +
				     splat(more));
}

/* ---- blocks of 32 ---- */

/* half d, i8 q[32]: d q */
static void unpack_Q8_0(const uint8_t *b, float *y)
{
	scale_codes(b + 2, 32, half_at(b), 0, y);
}

/* half d, u4 q[32]: d (q - 8) */
static void unpack_Q4_0(const uint8_t *b, float *y)
{
	uint8_t code[32];

	take_halves(b + 2, code);
	scale_codes(code, 32, half_at(b), 8, y);
}

/* half d, half m, u4 q[32]: d q + m */
static void unpack_Q4_1(const uint8_t *b, float *y)
{
	uint8_t code[32];

	take_halves(b + 4, code);
	scale_more(code, 32, half_at(b), half_at(b + 2), y);
}

/* half d, u1 h[32], u4 q[32]: d (q + 16 h - 16) */
static void unpack_Q5_0(const uint8_t *b, float *y)
{
	uint8_t code[32];

	take_fives(b + 6, b + 2, code);
	scale_codes(code, 32, half_at(b), 16, y);
}

/* half d, half m, u1 h[32], u4 q[32]: d (q + 16 h) + m */
static void unpack_Q5_1(const uint8_t *b, float *y)
{
	uint8_t code[32];

	take_fives(b + 8, b + 4, code);
	scale_more(code, 32, half_at(b), half_at(b + 2), y);
}

/* The values that IQ4's codes stand for: closer together around zero. */
static const int8_t uneven[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
				   1, 13, 25, 38, 53, 69, 89, 113 };

/* 16 bytes of codes, each times d. */
static inline void look_up(const int8_t value[16], float d, const uint8_t *q,
			   float *y)
{
	const __m128i table = _mm_loadu_si128((const void *)value);
	const __m128i v = _mm_loadu_si128((const void *)q);
	const __m128i low = _mm_set1_epi8(15);
	int8_t x[32];

	_mm_storeu_si128((__m128i *)x,
			 _mm_shuffle_epi8(table, _mm_and_si128(v, low)));
	_mm_storeu_si128((__m128i *)x + 1,
			 _mm_shuffle_epi8(table, _mm_and_si128(
				_mm_srli_epi16(v, 4), low)));
	for (int i = 0; i < 32; i += LANES)
		store(y + i, splat(d) * load_i8(x + i));
}

/* half d, u4 q[32]: d uneven[q] */
static void unpack_IQ4_NL(const uint8_t *b, float *y)
{
	look_up(uneven, half_at(b), b + 2, y);
}

/* u8 e, u4 q[32]: 2^(e - 128) times the doubled e2m1 number q */
static void unpack_MXFP4(const uint8_t *b, float *y)
{
	static const int8_t doubled[16] = { 0, 1,  2,  3,  4,  6,  8,  12,
					    0, -1, -2, -3, -4, -6, -8, -12 };
	/* Below 2^-126 it is no normal number. */
	const uint32_t bits = b[0] < 2 ? 0x200000u << b[0] :
					 (uint32_t)(b[0] - 1) << 23;
	float d;

	memcpy(&d, &bits, 4);
	look_up(doubled, d, b + 1, y);
}

/* ---- blocks of 256 ---- */

/*
 * Scales and minima of 8 runs, 6 bits each, in 12 bytes: those of the first 4
 * in the low bits of bytes 0 .. 3 and 4 .. 7; of the others 4 bits in the
 * halves of bytes 8 .. 11 and 2 in the high bits of the first ones.
 */
static inline int scale_of(const uint8_t *s, int i)
{
	return i < 4 ? s[i] & 63 : (s[i + 4] & 15) | s[i - 4] >> 6 << 4;
}

static inline int min_of(const uint8_t *s, int i)
{
	return i < 4 ? s[i + 4] & 63 : s[i + 4] >> 4 | s[i] >> 6 << 4;
}

/* half d, half dmin, u6 scale[8], u6 min[8], u4 q[256] in runs of 64 */
static void unpack_Q4_K(const uint8_t *b, float *y)
{
	const float d = half_at(b), dmin = half_at(b + 2);
	uint8_t code[32];

	for (int i = 0; i < 8; i++) {
		const uint8_t *q = b + 16 + i / 2 * 32;

		for (int k = 0; k < 32; k += 16)
			put_codes(code + k, get_bits(q + k, i % 2 * 4, 4));
		scale_more(code, 32, d * (float)scale_of(b + 4, i),
			   -dmin * (float)min_of(b + 4, i), y + 32 * i);
	}
}

/* The same with a fifth bit: bit i of byte k is that of value 32 i + k. */
static void unpack_Q5_K(const uint8_t *b, float *y)
{
	const float d = half_at(b), dmin = half_at(b + 2);
	uint8_t code[32];

	for (int i = 0; i < 8; i++) {
		const uint8_t *q = b + 48 + i / 2 * 32;

		for (int k = 0; k < 32; k += 16)
			put_codes(code + k,
				  get_bits(q + k, i % 2 * 4, 4) |
					  get_bits(b + 16 + k, i, 1) << 4);
		scale_more(code, 32, d * (float)scale_of(b + 4, i),
			   -dmin * (float)min_of(b + 4, i), y + 32 * i);
	}
}

/*
 * u4 low[256] in runs of 128, u2 high[256], i8 scale[16], half d: of a run,
 * values 32 i + k have their low bits in byte k + i % 2 * 32, the high ones in
 * bits 2 i of byte k.
 */
static void unpack_Q6_K(const uint8_t *b, float *y)
{
	const float d = half_at(b + 208);
	uint8_t code[32];

	for (int i = 0; i < 8; i++) {
		const uint8_t *low = b + i / 4 * 64 + i % 2 * 32;
		const uint8_t *high = b + 128 + i / 4 * 32;

		for (int k = 0; k < 32; k += 16)
			put_codes(code + k,
				  get_bits(low + k, i % 4 / 2 * 4, 4) |
					  get_bits(high + k, i % 4 * 2, 2)
						  << 4);
		for (int k = 0; k < 32; k += 16)
			scale_codes(code + k, 16,
				    d * (float)(int8_t)b[192 + 2 * i + k / 16],
				    32, y + 32 * i + k);
	}
}

/* u4 scale[16] and min[16] in halves of bytes, u2 q[256], half d, half dmin */
static void unpack_Q2_K(const uint8_t *b, float *y)
{
	const float d = half_at(b + 80), dmin = half_at(b + 82);
	uint8_t code[32];

	for (int i = 0; i < 8; i++) {
		const uint8_t *q = b + 16 + i / 4 * 32;

		for (int k = 0; k < 32; k += 16)
			put_codes(code + k, get_bits(q + k, i % 4 * 2, 2));
		for (int k = 0; k < 32; k += 16) {
			const uint8_t s = b[2 * i + k / 16];

			scale_more(code + k, 16, d * (float)(s & 15),
				   -dmin * (float)(s >> 4), y + 32 * i + k);
		}
	}
}

/*
 * u1 high[256] as in Q5_K, u2 q[256], u6 scale[16], half d: d (scale - 32)
 * (q + 4 high - 4).  Scales: 4 bits in the halves of bytes 0 .. 7, 2 in bytes
 * 8 .. 11.
 */
static void unpack_Q3_K(const uint8_t *b, float *y)
{
	const float d = half_at(b + 108);
	const uint8_t *s = b + 96;
	uint8_t code[16];

	for (int i = 0; i < 16; i++) {
		int scale = (i < 8 ? s[i] & 15 : s[i - 8] >> 4) |
			    (s[8 + i % 4] >> i / 4 * 2 & 3) << 4;
		const uint8_t *q = b + 32 + i / 8 * 32 + i % 2 * 16;

		const uint8_t *high = b + i % 2 * 16;

		put_codes(code, get_bits(q, i % 8 / 2 * 2, 2) |
					get_bits(high, i / 2, 1) << 2);
		scale_codes(code, 16, d * (float)(scale - 32), 4, y + 16 * i);
	}
}

/* half d, u2 high[8], u4 low[8], u4 q[256]: d (scale - 32) uneven[q] */
static void unpack_IQ4_XS(const uint8_t *b, float *y)
{
	const float d = half_at(b);
	const uint32_t high = b[2] | (uint32_t)b[3] << 8;

	for (int i = 0; i < 8; i++) {
		int scale = (b[4 + i / 2] >> i % 2 * 4 & 15) |
			    (int)(high >> 2 * i & 3) << 4;
		look_up(uneven, d * (float)(scale - 32), b + 8 + 16 * i,
			y + 32 * i);
	}
}

/* ---- our own ---- */

/* half d, then of each 32 values u4 low[32] as in Q4_0, u2 high: d (q - 32) */
static void unpack_six(const uint8_t *b, int n, float *y)
{
	const float d = half_at(b);
	uint8_t code[32];

	b += 2;
	for (int g = 0; g < n; g += 32, b += 24) {
		for (int i = 0; i < 2; i++)
			put_codes(code + 16 * i,
				  get_bits(b, 4 * i, 4) |
					  get_pairs(b + 16, 4 * i) << 4);
		scale_codes(code, 32, d, 32, y + g);
	}
}

/* half d, then of each 32 values u2 low, u1 high[32]: d (q - 4) */
static void unpack_three(const uint8_t *b, int n, float *y)
{
	const float d = half_at(b);
	uint8_t code[32];

	b += 2;
	for (int g = 0; g < n; g += 32, b += 12) {
		for (int i = 0; i < 2; i++)
			put_codes(code + 16 * i,
				  get_pairs(b, 4 * i) |
					  spread_bits(b + 8 + 2 * i) << 2);
		scale_codes(code, 32, d, 4, y + g);
	}
}

#define OWN(NAME, how, n) \
	static void unpack_##NAME(const uint8_t *b, float *y) \
	{ \
		how(b, n, y); \
	}
OWN(I6_32, unpack_six, 32)
OWN(I6_64, unpack_six, 64)
OWN(I6_128, unpack_six, 128)
OWN(I6_256, unpack_six, 256)
OWN(I3_32, unpack_three, 32)
OWN(I3_64, unpack_three, 64)
OWN(I3_128, unpack_three, 128)
OWN(I3_256, unpack_three, 256)

/* ---- all of them ---- */

static void (*const unpack_one[])(const uint8_t *b, float *y) = {
#define BLOCK(NAME, ...) unpack_##NAME,
#include "engine/files/dtype.def"
};

void unpack_blocks(const struct qwen_matrix *w, uint32_t row, uint32_t from,
		   uint32_t n, float *out)
{
	const struct qwen_layout l = qwen_layout(w->type);
	const uint8_t *b = (const uint8_t *)w->data +
			   (size_t)row * (w->cols / l.values) * l.bytes +
			   (size_t)(from / l.values) * l.bytes;
	float part[256];

	for (from %= l.values; n; from = 0, b += l.bytes) {
		uint32_t some = l.values - from < n ? l.values - from : n;
		if (some == l.values) {
			unpack_one[w->type - QWEN_W_INT4 - 1](b, out);
		} else {
			unpack_one[w->type - QWEN_W_INT4 - 1](b, part);
			memcpy(out, part + from, some * sizeof(*out));
		}
		out += some;
		n -= some;
	}
}
