/*
 * kfd/soft/exec/fast/microop_lanes.h - questions about the offsets of all 32
 * lanes.
 *
 * Private to microop_mem_simd.c, microop_line.h and microop_move_simd.c.  Answers are a bit per
 * lane unless they are said to be yes or no.
 */
#ifndef T0_KFD_SOFT_MICROOP_LANES_H
#define T0_KFD_SOFT_MICROOP_LANES_H

#include "kfd/soft/exec/valu_microop.h"

static const uint32_t lanes_number[SOFT_LANES] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

#if defined(__AVX512F__)
#define HALF(p, i) _mm512_loadu_si512((p) + 16 * (i))

/* p[i] outside of [low, low + span]. */
static inline uint32_t lanes_outside(const uint32_t *p, uint32_t low,
				     uint32_t span)
{
	const __m512i l = _mm512_set1_epi32((int)low);
	const __m512i s = _mm512_set1_epi32((int)span);
	__mmask16 a = _mm512_cmpgt_epu32_mask(
		_mm512_sub_epi32(HALF(p, 0), l), s);
	__mmask16 b = _mm512_cmpgt_epu32_mask(
		_mm512_sub_epi32(HALF(p, 1), l), s);

	return a | (uint32_t)b << 16;
}

/* p[i] is not v. */
static inline uint32_t lanes_differ(const uint32_t *p, uint32_t v)
{
	const __m512i x = _mm512_set1_epi32((int)v);

	return _mm512_cmpneq_epu32_mask(HALF(p, 0), x) |
	       (uint32_t)_mm512_cmpneq_epu32_mask(HALF(p, 1), x) << 16;
}

/* Yes if some p[i] is not p[0] + i * step, a power of two. */
static inline bool lanes_off_line(const uint32_t *p, uint32_t step)
{
	const __m512i first = _mm512_set1_epi32((int)p[0]);
	const __m128i by = _mm_cvtsi32_si128(__builtin_ctz(step));
	__m512i a = _mm512_sll_epi32(HALF(lanes_number, 0), by);
	__m512i b = _mm512_sll_epi32(HALF(lanes_number, 1), by);

	return _mm512_cmpneq_epu32_mask(
		       _mm512_sub_epi32(HALF(p, 0), first), a) |
	       _mm512_cmpneq_epu32_mask(
		       _mm512_sub_epi32(HALF(p, 1), first), b);
}

/* Are lanes 16 to 31 as lanes 0 to 15? */
static inline bool lanes_repeat(const uint32_t *p)
{
	return !_mm512_cmpneq_epu32_mask(HALF(p, 0), HALF(p, 1));
}

/* Are some not at these distances from the first one? */
static inline bool lanes_elsewhere(const uint32_t *p, const int32_t *distance)
{
	const __m512i first = _mm512_set1_epi32((int)p[0]);

	return _mm512_cmpneq_epu32_mask(_mm512_sub_epi32(HALF(p, 0), first),
					HALF(distance, 0)) |
	       _mm512_cmpneq_epu32_mask(_mm512_sub_epi32(HALF(p, 1), first),
					HALF(distance, 1));
}

/* And those in a line? */
static inline bool lanes_repeat_line(const uint32_t *p, uint32_t step)
{
	const __m512i first = _mm512_set1_epi32((int)p[0]);
	const __m128i by = _mm_cvtsi32_si128(__builtin_ctz(step));

	return lanes_repeat(p) &&
	       !_mm512_cmpneq_epu32_mask(
		       _mm512_sub_epi32(HALF(p, 0), first),
		       _mm512_sll_epi32(HALF(lanes_number, 0), by));
}
#undef HALF
#else
static inline uint32_t lanes_outside(const uint32_t *p, uint32_t low,
				     uint32_t span)
{
	_Alignas(64) int32_t r[SOFT_LANES];

	LANES(i) r[i] = p[i] - low > span ? -1 : 0;
	return soft_lanes_mask(r);
}

static inline uint32_t lanes_differ(const uint32_t *p, uint32_t v)
{
	_Alignas(64) int32_t r[SOFT_LANES];

	LANES(i) r[i] = p[i] != v ? -1 : 0;
	return soft_lanes_mask(r);
}

static inline bool lanes_off_line(const uint32_t *p, uint32_t step)
{
	uint32_t differ = 0;

	LANES(i) differ |= p[i] ^ (p[0] + lanes_number[i] * step);
	return differ;
}

#if defined(__AVX2__)
static inline bool lanes_elsewhere(const uint32_t *p, const int32_t *distance)
{
	uint32_t differ = 0;

	LANES(i) differ |= p[i] ^ (p[0] + (uint32_t)distance[i]);
	return differ;
}
#endif

static inline bool lanes_repeat_line(const uint32_t *p, uint32_t step)
{
	uint32_t differ = 0;

	LANES(i) differ |= p[i] ^ (p[0] + lanes_number[i] % 16 * step);
	return !differ;
}
#endif

#endif
