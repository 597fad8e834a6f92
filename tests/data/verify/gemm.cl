/* A tiled GEMM with WMMA out of LDS, two buffers and one barrier a step. */
#include "../kernels/gpu.h"

typedef half half16v __attribute__((ext_vector_type(16)));
typedef float float8v __attribute__((ext_vector_type(8)));

__attribute__((reqd_work_group_size(128, 1, 1)))
kernel void gemm(global float *c, global const half *a, global const half *b,
		 uint k_tiles, uint stride)
{
	local half tile_a[2][64 * 16], tile_b[2][64 * 16];
	uint id = lid(), wave = id >> 5, lane = id & 15;
	float8v acc[4] = { 0 };

	for (uint i = 0; i < 8; i++) {
		tile_a[0][id * 8 + i] = a[id * stride + i];
		tile_b[0][id * 8 + i] = b[id * stride + i];
	}
	barrier_lds();
	for (uint k = 0; k < k_tiles; k++) {
		uint now = k & 1;
		half16v fa;

		for (uint i = 0; i < 8; i++) {
			tile_a[now ^ 1][id * 8 + i] =
				a[id * stride + (k + 1) * 16 + i];
			tile_b[now ^ 1][id * 8 + i] =
				b[id * stride + (k + 1) * 16 + i];
		}
		for (uint e = 0; e < 16; e++)
			fa[e] = tile_a[now][(wave * 16 + lane) * 16 + e];
		for (uint n = 0; n < 4; n++) {
			half16v fb;

			for (uint e = 0; e < 16; e++)
				fb[e] = tile_b[now][(n * 16 + lane) * 16 + e];
			acc[n] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(
				fa, fb, acc[n]);
		}
		barrier_lds();
	}
	for (uint n = 0; n < 4; n++)
		for (uint e = 0; e < 8; e++)
			c[(group() * 64 + wave * 16 + e) * stride + n * 16 +
			  lane] = acc[n][e];
}

__attribute__((reqd_work_group_size(64, 1, 1)))
kernel void gemm_single(global float *c, global const half *a,
			global const half *b, uint k_tiles)
{
	local half tile_a[32 * 16], tile_b[16 * 16];
	uint id = lid(), wave = id >> 5, lane = id & 15;
	float8v acc = (float8v)(0.0f);

	for (uint k = 0; k < k_tiles; k++) {
		half16v fa, fb;

		for (uint i = 0; i < 8; i++)
			tile_a[id * 8 + i] = a[k * 512 + id * 8 + i];
		for (uint i = 0; i < 4; i++)
			tile_b[id * 4 + i] = b[k * 256 + id * 4 + i];
		barrier_lds();
		for (uint e = 0; e < 16; e++) {
			fa[e] = tile_a[(wave * 16 + lane) * 16 + e];
			fb[e] = tile_b[lane * 16 + e];
		}
		acc = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(fa, fb, acc);
		barrier_lds();
	}
	for (uint e = 0; e < 8; e++)
		c[gid() * 8 + e] = acc[e];
}
