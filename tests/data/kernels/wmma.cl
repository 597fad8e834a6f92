/*
 * d = a * b + c for one 16x16x16 tile, row-major, one wave of 32.
 *
 * Lane l and lane l + 16 both hold row l of a and column l of b; c and d have
 * column l % 16, in element r row 2 * r + l / 16 (RDNA3 ISA, 7.9).
 */
#include "gpu.h"

typedef half v16h __attribute__((ext_vector_type(16)));
typedef short v16s __attribute__((ext_vector_type(16)));
typedef float v8f __attribute__((ext_vector_type(8)));

kernel void wmma(global const half *a, global const half *b,
		 global const float *c, global float *d)
{
	uint l = lid(), half_wave = l >> 4, n = l & 15;
	v16h va, vb;
	v8f acc;

	for (uint k = 0; k < 16; k++) {
		va[k] = a[n * 16 + k];
		vb[k] = b[k * 16 + n];
	}
	for (uint r = 0; r < 8; r++)
		acc[r] = c[(2 * r + half_wave) * 16 + n];
	acc = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(va, vb, acc);
	for (uint r = 0; r < 8; r++)
		d[(2 * r + half_wave) * 16 + n] = acc[r];
}

kernel void wmma_bf16(global const short *a, global const short *b,
		      global const float *c, global float *d)
{
	uint l = lid(), half_wave = l >> 4, n = l & 15;
	v16s va, vb;
	v8f acc;

	for (uint k = 0; k < 16; k++) {
		va[k] = a[n * 16 + k];
		vb[k] = b[k * 16 + n];
	}
	for (uint r = 0; r < 8; r++)
		acc[r] = c[(2 * r + half_wave) * 16 + n];
	acc = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(va, vb, acc);
	for (uint r = 0; r < 8; r++)
		d[(2 * r + half_wave) * 16 + n] = acc[r];
}
