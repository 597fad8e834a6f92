/* WMMA with integers, and with 16-bit accumulators, on one 16 x 16 tile. */
#include "gpu.h"

typedef int v2i __attribute__((ext_vector_type(2)));
typedef int v4i __attribute__((ext_vector_type(4)));
typedef int v8i __attribute__((ext_vector_type(8)));
typedef half v16h __attribute__((ext_vector_type(16)));

/* Of C and D, lane l has column l & 15 and rows 2 j + (l >> 4). */
#define element(j) ((2 * (j) + (lid() >> 4)) * 16 + (lid() & 15))

kernel void iu8(global const v4i *a, global const v4i *b, global const int *c,
		global int *d)
{
	v8i sum;

	for (uint j = 0; j < 8; j++)
		sum[j] = c[element(j)];
	/* a is signed, b is not. */
	sum = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(
		true, a[lid() & 15], false, b[lid() & 15], sum, false);
	for (uint j = 0; j < 8; j++)
		d[element(j)] = sum[j];
}

kernel void iu4(global const v2i *a, global const v2i *b, global const int *c,
		global int *d)
{
	v8i sum;

	for (uint j = 0; j < 8; j++)
		sum[j] = c[element(j)];
	sum = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(
		true, a[lid() & 15], true, b[lid() & 15], sum, false);
	for (uint j = 0; j < 8; j++)
		d[element(j)] = sum[j];
}

kernel void f16(global const v16h *a, global const v16h *b,
		global const half *c, global half *d)
{
	v16h sum = 0;

	for (uint j = 0; j < 8; j++)
		sum[2 * j] = c[element(j)];
	sum = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(
		a[lid() & 15], b[lid() & 15], sum, false);
	for (uint j = 0; j < 8; j++)
		d[element(j)] = sum[2 * j];
}
