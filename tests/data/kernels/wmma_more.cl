/* WMMA with integers, and with 16-bit accumulators, on one 16 x 16 tile. */
#include "gpu.h"

typedef int v2i __attribute__((ext_vector_type(2)));
typedef int v4i __attribute__((ext_vector_type(4)));
typedef int v8i __attribute__((ext_vector_type(8)));
typedef half v8h __attribute__((ext_vector_type(8)));
typedef half v16h __attribute__((ext_vector_type(16)));

/*
 * Of C and D, lane l has column l & 15 and rows 2 j + (l >> 4); on gfx12 rows
 * j + 8 * (l >> 4).  There lanes l and l + 16 have a half of a row each, two of
 * 16 bits share a register, and of each four bits less is needed.
 */
#ifdef __GFX12__
#define element(j) (((j) + 8 * (lid() >> 4)) * 16 + (lid() & 15))
#define PART(type, p) ((global const type *)(p))[2 * (lid() & 15) + (lid() >> 4)]
#define A8(p) PART(v2i, p)
#define A4(p) PART(int, p)
#define A16(p) PART(v8h, p)
typedef v8h sums;
#define SUM(j) (j)
#define WMMA(name) __builtin_amdgcn_wmma_##name##_w32_gfx12
#define F16(a, b, c) WMMA(f16_16x16x16_f16)(a, b, c)
#else
#define element(j) ((2 * (j) + (lid() >> 4)) * 16 + (lid() & 15))
#define A8(p) (p)[lid() & 15]
#define A4 A8
#define A16 A8
typedef v16h sums;
#define SUM(j) (2 * (j))
#define WMMA(name) __builtin_amdgcn_wmma_##name##_w32
#define F16(a, b, c) WMMA(f16_16x16x16_f16)(a, b, c, false)
#endif

kernel void iu8(global const v4i *a, global const v4i *b, global const int *c,
		global int *d)
{
	v8i sum;

	for (uint j = 0; j < 8; j++)
		sum[j] = c[element(j)];
	/* a is signed, b is not. */
	sum = WMMA(i32_16x16x16_iu8)(true, A8(a), false, A8(b), sum, false);
	for (uint j = 0; j < 8; j++)
		d[element(j)] = sum[j];
}

kernel void iu4(global const v2i *a, global const v2i *b, global const int *c,
		global int *d)
{
	v8i sum;

	for (uint j = 0; j < 8; j++)
		sum[j] = c[element(j)];
	sum = WMMA(i32_16x16x16_iu4)(true, A4(a), true, A4(b), sum, false);
	for (uint j = 0; j < 8; j++)
		d[element(j)] = sum[j];
}

kernel void f16(global const v16h *a, global const v16h *b,
		global const half *c, global half *d)
{
	sums sum = 0;

	for (uint j = 0; j < 8; j++)
		sum[SUM(j)] = c[element(j)];
	sum = F16(A16(a), A16(b), sum);
	for (uint j = 0; j < 8; j++)
		d[element(j)] = sum[SUM(j)];
}
