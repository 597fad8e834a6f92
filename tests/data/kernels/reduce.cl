/* Sum per workgroup of 256 through LDS: a tree with a barrier per step. */
#include "gpu.h"

kernel void reduce(global const float *x, global float *sum, uint n)
{
	local float part[256];
	uint i = lid(), at = group() * 256 + i;

	part[i] = at < n ? x[at] : 0.0f;
	barrier_lds();
	for (uint step = 128; step; step >>= 1) {
		if (i < step)
			part[i] += part[i + step];
		barrier_lds();
	}
	if (!i)
		sum[group()] = part[0];
}
