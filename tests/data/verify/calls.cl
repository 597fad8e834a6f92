/* Functions that are really called, twice nested and through a pointer. */
#include "../kernels/gpu.h"

__attribute__((noinline)) static float poly(float x, float a)
{
	return x * x * a + x;
}

__attribute__((noinline)) static float twice(float x)
{
	return poly(poly(x, 2.0f), 3.0f);
}

__attribute__((noinline)) float shared_sum(local float *tile, uint n)
{
	float sum = 0.0f;

	for (uint i = 0; i < n; i++)
		sum += tile[i];
	return sum;
}

kernel void calls(global float *out, global const float *in)
{
	local float tile[64];
	uint i = lid() & 63;

	tile[i] = twice(in[gid()]);
	barrier_lds();
	out[gid()] = shared_sum(tile, 64) + poly(in[gid()], 4.0f);
}
