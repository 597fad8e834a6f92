/* More live values than registers: spills of both kinds, many loads at once. */
#include "../kernels/gpu.h"

__attribute__((amdgpu_num_vgpr(32), amdgpu_num_sgpr(32)))
kernel void spill(global float *out, global const float *in,
		  global const int *table)
{
	float v[48];
	float sum = 0.0f;
	int t[40];

#pragma unroll
	for (int i = 0; i < 48; i++)
		v[i] = in[gid() * 48 + i];
#pragma unroll
	for (int i = 0; i < 40; i++)
		t[i] = table[i];
	if (lid() & 4)
		sum = v[lid() & 1 ? 3 : 40];
#pragma unroll
	for (int i = 0; i < 48; i++)
		sum += v[i] * v[47 - i] * (float)t[i % 40];
#pragma unroll
	for (int i = 0; i < 40; i++)
		sum = sum * 0.5f + (float)(t[i] ^ t[39 - i]);
	out[gid()] = sum;
}
