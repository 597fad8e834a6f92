/* Packed f16 (two per register) and the dot products of pairs. */
#include "gpu.h"

typedef half v2h __attribute__((ext_vector_type(2)));
typedef short v2s __attribute__((ext_vector_type(2)));

kernel void f16(global const v2h *a, global const v2h *b, global v2h *fma)
{
	uint i = gid();

	fma[i] = __builtin_elementwise_fma(a[i], b[i], (v2h)(1.0h, -2.0h));
}

#if defined(__GFX11__) || defined(__GFX12__)
kernel void dot2_bf16(global const v2s *a, global const v2s *b,
		      global float *sum)
{
	uint i = gid();

	sum[i] = __builtin_amdgcn_fdot2_f32_bf16(a[i], b[i], sum[i], false);
}

kernel void dot4(global const int *a, global const int *b, global int *sum)
{
	uint i = gid();

	sum[i] = __builtin_amdgcn_sudot4(true, a[i], true, b[i], sum[i], false);
}
#elif defined(__gfx1030__)
kernel void dot4(global const int *a, global const int *b, global int *sum)
{
	uint i = gid();

	sum[i] = __builtin_amdgcn_sdot4(a[i], b[i], sum[i], false);
}
#endif
