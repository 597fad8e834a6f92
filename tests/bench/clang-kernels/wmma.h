/*
 * What the twins with matrix products share: fragments of 16x16x16 products by
 * a wave of 32, as the chip lays them out.  Of lane l, column l % 16:
 *
 *                A's row, B's column          results
 *   gfx11        all 16 of K                  rows 2 j + l / 16
 *   gfx12        8 of K, from l / 16 * 8      rows l / 16 * 8 + j
 */
typedef float f8 __attribute__((ext_vector_type(8)));
typedef short s8 __attribute__((ext_vector_type(8)));
typedef short s16 __attribute__((ext_vector_type(16)));
typedef half h8 __attribute__((ext_vector_type(8)));
typedef half h16 __attribute__((ext_vector_type(16)));

#define COLUMN (lane() % 16)
#define HALF (lane() / 16)

#ifdef __GFX12__
typedef s8 FRAGMENT;
typedef h8 FRAGMENT_HALF;
#define FRAGMENT_OF(p) (*(p + HALF))
#define RESULT_ROW(j) (HALF * 8 + (j))
/* The row of A whose results are those of keys 8 HALF + j. */
#define ROW COLUMN
#define WMMA_BF16 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12
#define WMMA_HALF __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12
#else
typedef s16 FRAGMENT;
typedef h16 FRAGMENT_HALF;
#define FRAGMENT_OF(p)                                                       \
	__builtin_shufflevector(*(p), *(p + 1), 0, 1, 2, 3, 4, 5, 6, 7, 8,   \
				9, 10, 11, 12, 13, 14, 15)
#define RESULT_ROW(j) (2 * (j) + HALF)
#define ROW ((COLUMN & 1) * 8 + COLUMN / 2)
#define WMMA_BF16 __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32
#define WMMA_HALF __builtin_amdgcn_wmma_f32_16x16x16_f16_w32
#endif

#define WMMA(a, b, c) WMMA_BF16(a, b, c)
#define WMMA_F16(a, b, c)                                  \
	WMMA_HALF(__builtin_astype(a, FRAGMENT_HALF), \
		  __builtin_astype(b, FRAGMENT_HALF), c)

/* 16 neighbours of LDS. */
INLINE FRAGMENT tile_of(const local short *p)
{
	return FRAGMENT_OF((const local s8 *)p);
}

/* The value of the other half of the wave. */
INLINE float other(float x)
{
	x = float_b(OTHER_ROW(bits_f(x)));
	HERE(x);
	return x;
}

/* From 8 numbers of each half of the wave, of its column, one of B. */
INLINE FRAGMENT fragment_of(s8 own)
{
#ifdef __GFX12__
	return own;
#else
	const int4 mine = __builtin_astype(own, int4);
	int4 theirs;

	for (int j = 0; j < 4; j++) {
		theirs[j] = OTHER_ROW(mine[j]);
		HERE(theirs[j]);
	}
	const int4 first = HALF ? theirs : mine, second = HALF ? mine : theirs;

	return __builtin_astype(__builtin_shufflevector(first, second, 0, 1, 2,
							3, 4, 5, 6, 7), s16);
#endif
}
