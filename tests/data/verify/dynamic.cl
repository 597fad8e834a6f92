/* LDS whose size the launch decides, and a work queue in global memory. */
#include "../kernels/gpu.h"

kernel void dynamic(global float *out, local float *row, uint n)
{
	for (uint i = lid(); i < n; i += group_size())
		row[i] = out[i];
	barrier_lds();
	for (uint i = lid(); i < n; i += group_size())
		out[i] = row[n - 1 - i];
}

kernel void queue(global atomic_uint *next, global float *out, uint n)
{
	for (;;) {
		uint i = __opencl_atomic_fetch_add(
			next, 1, __ATOMIC_RELAXED,
			__OPENCL_MEMORY_SCOPE_DEVICE);

		if (i >= n)
			break;
		out[i] = out[i] * 2.0f + 1.0f;
	}
}
