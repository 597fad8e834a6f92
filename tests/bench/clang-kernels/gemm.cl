/*
 * C = A B, as one would write it: a tile of 128 x 128 by four waves of 64 x 64,
 * one tile of 32 in K in LDS with padded rows, vector loads, two barriers a
 * step.  A is M x K, B is N x K, C is M x N, all bf16; tiles divide the sides.
 */
#include "lib.h"

enum { TILE = 128, DEEP = 32, PITCH = DEEP + 8, FRAGS = 4 };

typedef short s8 __attribute__((ext_vector_type(8)));
typedef short s16 __attribute__((ext_vector_type(16)));
typedef float f8 __attribute__((ext_vector_type(8)));

INLINE s16 fragment(local const short *row)
{
	const s8 low = *(local const s8 *)row;
	const s8 high = *(local const s8 *)(row + 8);

	return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
				       10, 11, 12, 13, 14, 15);
}

/* 16 elements of each row pair of the tile per work-item. */
INLINE void fetch(local short *to, global const short *from, int row, int ld,
		  int k)
{
	for (int j = 0; j < 4; j++) {
		const int r = lid() / 4 + 32 * j, c = lid() % 4 * 8;

		*(local s8 *)(to + r * PITCH + c) =
			*(global const s8 *)(from + (long)(row + r) * ld + k +
					     c);
	}
}

INLINE void multiply(f8 acc[FRAGS][FRAGS], local const short *a,
		     local const short *b)
{
	const int l = lane() % 16;

	for (int s = 0; s < DEEP; s += 16) {
		s16 fa[FRAGS], fb[FRAGS];

		for (int i = 0; i < FRAGS; i++) {
			fa[i] = fragment(a + (16 * i + l) * PITCH + s);
			fb[i] = fragment(b + (16 * i + l) * PITCH + s);
		}
		for (int i = 0; i < FRAGS; i++)
			for (int j = 0; j < FRAGS; j++)
				acc[i][j] =
		__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(fa[i], fb[j],
							    acc[i][j]);
	}
}

KERNEL(128) gemm(global __bf16 *restrict c, global const short *restrict a,
		 global const short *restrict b, int n, int k_end, int ld)
{
	local short tile_a[TILE * PITCH], tile_b[TILE * PITCH];
	const int m0 = group_y() * TILE, n0 = group_x() * TILE;
	const int wm = wave() % 2 * 64, wn = wave() / 2 * 64;
	const int l = lane() % 16;
	f8 acc[FRAGS][FRAGS] = { 0 };

	for (int k = 0; k < k_end; k += DEEP) {
		fetch(tile_a, a, m0, ld, k);
		fetch(tile_b, b, n0, ld, k);
		barrier_lds();
		multiply(acc, tile_a + wm * PITCH, tile_b + wn * PITCH);
		barrier_lds();
	}
	for (int i = 0; i < FRAGS; i++)
		for (int j = 0; j < FRAGS; j++)
			for (int e = 0; e < 8; e++) {
				const int row = m0 + wm + 16 * i + 2 * e +
						lane() / 16;

				c[(long)row * n + n0 + wn + 16 * j + l] =
					(__bf16)acc[i][j][e];
			}
}

/*
 * The same of rows that lie along the side, not along K: turned on the way, two
 * of them at a time, so that LDS is written by dwords.
 */
INLINE void fetch_turned(local short *to, global const short *from, int side,
			 int ld, int k)
{
	typedef short s2 __attribute__((ext_vector_type(2)));

	for (int j = 0; j < 2; j++) {
		const int r = lid() / 16 * 2 + 16 * j, c = lid() % 16 * 8;
		global const short *x = from + (long)(k + r) * ld + side + c;
		const s8 low = *(global const s8 *)x;
		const s8 high = *(global const s8 *)(x + ld);

		for (int e = 0; e < 8; e++)
			*(local s2 *)(to + (c + e) * PITCH + r) =
				(s2)(low[e], high[e]);
	}
}

/* C += A^T B, C of f32: A is K x M, B is K x N, ld is M. */
KERNEL(128) gemm_tn(global float *restrict c, global const short *restrict a,
		    global const short *restrict b, int n, int k_end, int ld)
{
	local short tile_a[TILE * PITCH], tile_b[TILE * PITCH];
	const int m0 = group_y() * TILE, n0 = group_x() * TILE;
	const int wm = wave() % 2 * 64, wn = wave() / 2 * 64;
	f8 acc[FRAGS][FRAGS] = { 0 };

	for (int k = 0; k < k_end; k += DEEP) {
		fetch_turned(tile_a, a, m0, ld, k);
		fetch_turned(tile_b, b, n0, n, k);
		barrier_lds();
		multiply(acc, tile_a + wm * PITCH, tile_b + wn * PITCH);
		barrier_lds();
	}
	for (int i = 0; i < FRAGS; i++)
		for (int j = 0; j < FRAGS; j++)
			for (int e = 0; e < 8; e++) {
				const int row = m0 + wm + 16 * i + 2 * e +
						lane() / 16;

				c[(long)row * n + n0 + wn + 16 * j +
				  lane() % 16] += acc[i][j][e];
			}
}
