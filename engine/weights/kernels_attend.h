/*
 * engine/weights/kernels_attend.h - what scores of floats and of integers share.
 */
#ifndef T0_ENGINE_KERNELS_ATTEND_H
#define T0_ENGINE_KERNELS_ATTEND_H

#include "engine/weights/kernels_simd.h"

#define INLINE static inline __attribute__((always_inline))

/* Heads together, at most. */
#define HEADS 4

/* Columns of a head in most models; such loops have no ends to look for. */
#define HEAD_DIM 128

/* Keys of INT8 or INT4. */
void SIMD(qwen_scores_int)(const struct qwen_matrix *k, const float *q,
			   uint32_t heads, float *s, size_t lds);

/* Rows of values at a time. */
#define QWEN_MIX_ROWS 32

/*
 * Adds up to QWEN_MIX_ROWS rows of INT8 at p, in heads of 128, times shares
 * [heads][rows][4], with the scales in them, to y [heads][128]; one head or
 * two.  For AVX-512 VNNI.
 */
#define mix_bytes SIMD(qwen_mix_bytes)
void mix_bytes(const uint8_t *p, uint32_t rows, const float *share,
	       uint32_t heads, float *y);

/*
 * How far behind what is read rows are asked for; 0: not at all.  Measured on
 * Zen 4: f32 comes at a plain read's rate as long as nothing is asked for while
 * it is read, and at 0.75 of it else; the others need it.
 */
INLINE size_t rows_ahead(enum qwen_weights type)
{
	switch (type) {
	case QWEN_W_F32:
		return 0;
	case QWEN_W_F16:
	case QWEN_W_BF16:
		return 6144;
	default:
		return 8192;
	}
}

/* Of the line that begins at p, where `at`, its place in a row, begins one. */
INLINE void fetch_line(enum qwen_weights type, const uint8_t *p, size_t at)
{
	const size_t ahead = rows_ahead(type);

	if (ahead && at % 64 == 0)
		prefetch_behind(p, ahead);
}

/* call(type, heads, ...) for as many heads at a time as there are left. */
#define EACH_HEADS(heads, call, type, ...) \
	for (uint32_t h = 0; h < (heads);) \
		if ((heads) - h >= 4) { \
			call(type, 4, h, __VA_ARGS__); \
			h += 4; \
		} else if ((heads) - h >= 2) { \
			call(type, 2, h, __VA_ARGS__); \
			h += 2; \
		} else { \
			call(type, 1, h, __VA_ARGS__); \
			h++; \
		}

/* ---- lanes added up ---- */

/*
 * Which lane of two vectors comes to lane i where, of blocks of n lanes, every
 * other one of both is wanted, the first of each pair; the second is n behind.
 */
#define FROM(i, n)  ((i) % (2 * (n)) < (n) ? (i) : LANES + (i) - (n))
#define FROM4(i, n) FROM(i, n), FROM(i + 1, n), FROM(i + 2, n), FROM(i + 3, n)
#if LANES == 16
#define ALL(n)	    FROM4(0, n), FROM4(4, n), FROM4(8, n), FROM4(12, n)
#define SUM_STEPS(do) do(8) do(4) do(2) do(1)
#elif LANES == 8
#define ALL(n)	    FROM4(0, n), FROM4(4, n)
#define SUM_STEPS(do) do(4) do(2) do(1)
#else
#define ALL(n)	    FROM4(0, n)
#define SUM_STEPS(do) do(2) do(1)
#endif

/* n vectors of sums from 2n: blocks of n lanes are added. */
INLINE void sum_step(vf *s, int n, vi from)
{
#pragma GCC unroll 8
	for (int i = 0; i < n; i++)
		s[i] = permute_two(s[i], s[i + n], from) +
		       permute_two(s[i], s[i + n], from + n);
}

/* Lane i becomes the sum of the lanes of s[i], by halves, as sum_lanes(). */
INLINE vf sum_all(vf s[LANES])
{
#define SUM_STEP(n) sum_step(s, n, (vi){ ALL(n) });
	SUM_STEPS(SUM_STEP)
	return s[0];
}

#endif
