/*
 * d = a * b + c for one 16x16x16 tile, row-major, one wave of 32.
 *
 * Lane l and lane l + 16 both hold row l of a and column l of b; c and d have
 * column l % 16, in element r row 2 * r + l / 16 (RDNA3 ISA, 7.9).  On gfx12 they
 * share the row and the column, and have rows r + 8 * (l / 16).
 */
#include "gpu.h"

#ifdef __GFX12__
#define EACH 8 /* elements of a and b in a lane */
#define ROW(r) ((r) + 8 * half_wave)
#define K(k) ((k) % 4 + 4 * half_wave + 8 * ((k) / 4))
#define WMMA(type, a, b, c) \
	__builtin_amdgcn_wmma_f32_16x16x16_##type##_w32_gfx12(a, b, c)
#else
#define EACH 16
#define ROW(r) (2 * (r) + half_wave)
#define K(k) (k)
#define WMMA(type, a, b, c) \
	__builtin_amdgcn_wmma_f32_16x16x16_##type##_w32(a, b, c)
#endif
typedef half v16h __attribute__((ext_vector_type(EACH)));
typedef short v16s __attribute__((ext_vector_type(EACH)));
typedef float v8f __attribute__((ext_vector_type(8)));

kernel void wmma(global const half *a, global const half *b,
		 global const float *c, global float *d)
{
	uint l = lid(), half_wave = l >> 4, n = l & 15;
	v16h va, vb;
	v8f acc;

	for (uint k = 0; k < EACH; k++) {
		va[k] = a[n * 16 + K(k)];
		vb[k] = b[K(k) * 16 + n];
	}
	for (uint r = 0; r < 8; r++)
		acc[r] = c[ROW(r) * 16 + n];
	acc = WMMA(f16, va, vb, acc);
	for (uint r = 0; r < 8; r++)
		d[ROW(r) * 16 + n] = acc[r];
}

kernel void wmma_bf16(global const short *a, global const short *b,
		      global const float *c, global float *d)
{
	uint l = lid(), half_wave = l >> 4, n = l & 15;
	v16s va, vb;
	v8f acc;

	for (uint k = 0; k < EACH; k++) {
		va[k] = a[n * 16 + K(k)];
		vb[k] = b[K(k) * 16 + n];
	}
	for (uint r = 0; r < 8; r++)
		acc[r] = c[ROW(r) * 16 + n];
	acc = WMMA(bf16, va, vb, acc);
	for (uint r = 0; r < 8; r++)
		d[ROW(r) * 16 + n] = acc[r];
}
