/*
 * engine/weights/kernels_simd.h - what the *_simd.c files have in common: loads
 * of stored types, functions of vectors, functions of each level of the
 * instruction set.
 */
#ifndef T0_ENGINE_KERNELS_SIMD_H
#define T0_ENGINE_KERNELS_SIMD_H

#include <math.h>
#include <string.h>

#include "base/simd.h"
#include "engine/weights/weights.h"

static inline vf fma_(vf a, vf b, vf c)
{
	return a * b + c; /* one instruction: this file contracts */
}

static inline vf select_lanes(vi mask, vf a, vf b)
{
	return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* a > b ? a : b; a NaN of a is lost, one of b stays.  And a < b. */
static inline vf max_(vf a, vf b)
{
#if LANES == 16
	return (vf)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#elif LANES == 8
	return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return (vf)_mm_max_ps((__m128)a, (__m128)b);
#endif
}

static inline vf min_(vf a, vf b)
{
#if LANES == 16
	return (vf)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
#elif LANES == 8
	return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
	return (vf)_mm_min_ps((__m128)a, (__m128)b);
#endif
}

/* By halves. */
static inline float sum_lanes(vf v)
{
#if LANES == 16
	__m256 h = (__m256)(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6,
						    7) +
			    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13,
						    14, 15));
#elif LANES == 8
	__m256 h = (__m256)v;
#endif
#if LANES >= 8
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(h),
			      _mm256_extractf128_ps(h, 1));
#else
	__m128 q = (__m128)v;
#endif
	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

/*
 * exp to 2 ulp: x = (k + f) ln 2 with |f| <= 1/2, a polynomial of degree 6 in
 * f ln 2 (Taylor's terms: the next one is below 2^-24 there), times 2^k.
 */
static inline vf exp_(vf x)
{
	x = min_(splat(88), max_(splat(-87), x));
	vf t = x * 1.44269504f + 12582912.0f; /* rounds: 1.5 * 2^23 */
	vf k = t - 12582912.0f;
	vf r = fma_(k, splat(-0.693145752f), x);
	vi bits = ((vi)t - 0x4b400000 + 127) << 23;

	r = fma_(k, splat(-1.42860677e-6f), r);
	vf p = fma_(r, splat(1.f / 720), splat(1.f / 120));
	p = fma_(p, r, splat(1.f / 24));
	p = fma_(p, r, splat(1.f / 6));
	p = fma_(p, r, splat(.5f));
	p = fma_(p, r, splat(1));
	p = fma_(p, r, splat(1));
	return p * (vf)bits;
}

/* ---- 16-bit types ---- */

static inline vf load_bf16(const void *p)
{
	return widen_bf16(load_half(p));
}

static inline vf load_f16(const void *p)
{
	return widen_f16(load_half(p));
}

static inline vf load_i8(const int8_t *p)
{
	/* The compiler would widen in halves. */
#if LANES == 16
	vi v = (vi)_mm512_maskz_cvtepi8_epi32(0xffff,
					      _mm_loadu_si128((const void *)p));
#elif LANES == 8
	vi v = (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p));
#else
	vi v = { p[0], p[1], p[2], p[3] };
#endif
	return __builtin_convertvector(v, vf);
}

/* Stores the integers' low bytes. */
static inline void store_i8(int8_t *p, vi v)
{
	/* The compiler would do so one by one. */
#if LANES == 16
	_mm_storeu_si128((__m128i *)p,
			 _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v));
#else
	union {
		vi v;
		__m128i part[LANES / 4];
	} all = { v << 24 >> 24 }; /* packing saturates */
	__m128i b = _mm_packs_epi32(all.part[0], all.part[LANES / 4 - 1]);
	b = _mm_packs_epi16(b, b);
	memcpy(p, &b, LANES);
#endif
}

/*
 * E4M3 divided by F8_UNIT: then its bits are those of an f16 whose exponent has
 * one more, and 127 is no number.
 */
#define F8_UNIT 256.f
static inline vf load_f8(const uint8_t *p)
{
#if LANES == 16
	__m256i b = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p));
	__m256i most = _mm256_set1_epi16(127);
	__mmask16 none = _mm256_cmpeq_epi16_mask(_mm256_and_si256(b, most),
						 most);
	b = _mm256_and_si256(_mm256_slli_epi16(b, 7),
			     _mm256_set1_epi16((short)0xbfff));
	b = _mm256_mask_set1_epi16(b, none, 0x7fff);
	return (vf)_mm512_maskz_cvtph_ps(0xffff, b);
#elif LANES == 8
	__m128i b = _mm_cvtepi8_epi16(_mm_loadl_epi64((const void *)p));
	__m128i most = _mm_set1_epi16(127);
	__m128i none = _mm_cmpeq_epi16(_mm_and_si128(b, most), most);
	b = _mm_and_si128(_mm_slli_epi16(b, 7), _mm_set1_epi16((short)0xbfff));
	return (vf)_mm256_cvtph_ps(_mm_or_si128(b, none));
#else
	vu b = { p[0], p[1], p[2], p[3] };
	vf v = (vf)((b & 127) << 20) * 0x1p112f;

	v = select_lanes((vi)((b & 127) == 127), v - v + NAN, v);
	return (vf)((vu)v | (b & 128) << 24);
#endif
}

static inline float f8_one(uint8_t b)
{
	uint8_t in[LANES] = { b };
	float out[LANES];
	vf v = load_f8(in);

	memcpy(out, &v, sizeof(out));
	return out[0];
}

/* Values i .. of a row of INT4, without their scale: half a group at most. */
static inline vf load_i4(const uint8_t *row, size_t i)
{
	const uint8_t *p = row + i / QWEN_GROUP * (QWEN_GROUP / 2) + i % 16;
	const int shift = i / 16 % 2 * 4;
#if LANES == 16
	/* Of each lane the low bits name a number: the code less 8. */
	const __m512 value = { -8, -7, -6, -5, -4, -3, -2, -1,
			       0,  1,  2,  3,  4,  5,  6,  7 };
	vi b = (vi)_mm512_maskz_cvtepu8_epi32(0xffff,
					      _mm_loadu_si128((const void *)p));

	return (vf)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)(b >> shift),
					       value);
#else
#if LANES == 8
	vi b = (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
#else
	vi b = { p[0], p[1], p[2], p[3] };
#endif
	return __builtin_convertvector((b >> shift & 15) - 8, vf);
#endif
}

static inline vf load_f32(const void *p)
{
	return load(p);
}

static inline float bf16_one(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static inline float f16_one(uint16_t h)
{
	vh one = { h };
	uint16_t in[LANES];
	float out[LANES];

	memcpy(in, &one, sizeof(in));
	vf v = load_f16(in);
	memcpy(out, &v, sizeof(out));
	return out[0];
}

static inline float f32_one(float f)
{
	return f;
}

/*
 * Asks for the line FETCH_BYTES behind p, into the second cache: it takes more
 * requests at a time than the first, which fetches from there by itself.  Of
 * what a plain read comes to, Zen 4 reads so: BF16 1.04 (0.85 with the first
 * cache asked, too), INT8 0.97 (0.79), and at 3 KiB 0.87 and 0.86.
 * In assembly, for it must stay in front of the loads.
 */
#define FETCH_BYTES 1024

static inline __attribute__((always_inline)) void
prefetch_behind(const void *p, size_t bytes)
{
	/* Through integers: it may lie behind the end of what p points into. */
	__asm__ volatile("prefetcht1 %0"
			 :
			 : "m"(*(const char *)((uintptr_t)p + bytes)));
}

static inline __attribute__((always_inline)) void prefetch_line(const void *p)
{
	prefetch_behind(p, FETCH_BYTES);
}

/*
 * An order of rows r0 .. r1 for two at a time that lie some STREAM_BYTES apart:
 * row and row + apart, for all rows of such a block, then of the next one; the
 * last of an odd number alone, with `apart` 0.
 */
#define STREAM_BYTES 1048576

struct pairs {
	uint32_t row, apart; /* the next pair */
	uint32_t most;	     /* that rows may be apart */
	uint32_t block, end; /* first row of the next block, last of all */
};

static inline void pairs_init(struct pairs *p, uint32_t r0, uint32_t r1,
			      size_t row_bytes)
{
	*p = (struct pairs){ .block = r0, .end = r1,
			     .most = (uint32_t)(STREAM_BYTES / row_bytes) + 1 };
}

static inline bool pairs_next(struct pairs *p)
{
	if (p->apart && ++p->row + p->apart < p->block)
		return true;
	const uint32_t left = p->end - p->block;
	p->apart = left / 2 < p->most ? left / 2 : p->most;
	p->row = p->block;
	p->block += p->apart ? 2 * p->apart : left;
	return left;
}

/* Else sums in arrays are stored with every step. */
#define UNROLL _Pragma("GCC unroll 8")

/*
 * With many tokens, those that fit the registers go over some pairs before the
 * next ones do: the pairs stay in the second cache, and the tokens in the first.
 */
#define PAIRS_TOGETHER 16

struct pair {
	uint32_t row, apart; /* apart = 0: that row alone */
};

static inline uint32_t pairs_some(struct pairs *p, struct pair *out)
{
	uint32_t n = 0;

	while (n < PAIRS_TOGETHER && pairs_next(p))
		out[n++] = (struct pair){ p->row, p->apart };
	return n;
}

/* ---- functions of the other files, of this level ---- */

/* kernels_float_simd.c */
void SIMD(qwen_product)(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
			const float *x, size_t ldx, uint32_t n, float *y,
			size_t ldy, bool add);
uint64_t SIMD(qwen_read)(const void *p, size_t size_bytes, unsigned streams,
			 size_t near_bytes, size_t far_bytes);
double SIMD(qwen_fma)(uint64_t rounds);
/* kernels_attend_simd.c */
#define score_keys SIMD(qwen_scores)
#define mix_values SIMD(qwen_mix)
void score_keys(const struct qwen_matrix *keys, const float *q, uint32_t heads,
		float *s, size_t lds);
void mix_values(const struct qwen_matrix *values, const float *s, size_t lds,
		uint32_t heads, float *y);
/* kernels_cache_simd.c */
void SIMD(qwen_narrow_f8)(const float *x, size_t n, uint8_t *y);
void SIMD(qwen_widen_f8)(const uint8_t *x, size_t n, float *y);
void SIMD(qwen_round_int4)(const float *x, uint32_t n, uint8_t *code,
			   uint16_t *scale);
void SIMD(qwen_turn)(float *x, uint32_t n);
/* kernels_int_simd.c */
void SIMD(qwen_product_int)(const struct qwen_matrix *w, uint32_t r0,
			    uint32_t r1, const struct qwen_quants *x,
			    uint32_t n, float *y, size_t ldy, bool add);
#if LANES == 16
/* kernels_pairs_simd.c */
void SIMD(qwen_product_pairs)(const struct qwen_matrix *w, uint32_t r0,
			      uint32_t r1, const uint16_t *x, size_t ldx,
			      uint32_t n, float *y, size_t ldy, bool add);
/* What v4 uses, too, without its dot products of bytes. */
void qwen_scores_v3(const struct qwen_matrix *keys, const float *q,
		    uint32_t heads, float *s, size_t lds);
void qwen_product_int_v3(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
			 const struct qwen_quants *x, uint32_t n, float *y,
			 size_t ldy, bool add);
void qwen_product_blocks_v3(const struct qwen_matrix *w, uint32_t r0,
			    uint32_t r1, const struct qwen_quants *x,
			    uint32_t n, float *y, size_t ldy, bool add);
#endif
void SIMD(qwen_unpack)(const struct qwen_matrix *w, uint32_t row,
		       uint32_t from, uint32_t n, float *out);
void SIMD(qwen_quantize)(const float *x, uint32_t n,
			 const struct qwen_quants *out);
/* kernels_blocks_simd.c: of blocks */
void SIMD(qwen_product_blocks)(const struct qwen_matrix *w, uint32_t r0,
			       uint32_t r1, const struct qwen_quants *x,
			       uint32_t n, float *y, size_t ldy, bool add);
/* unpack_simd.c: the values of blocks */
#define unpack_blocks SIMD(qwen_unpack_blocks)
void unpack_blocks(const struct qwen_matrix *w, uint32_t row, uint32_t from,
		   uint32_t n, float *out);

#endif
