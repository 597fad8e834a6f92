/* 64 bins of x % 64: atomics in LDS, then in memory. */
#include "gpu.h"

kernel void histogram(global const uint *x, global atomic_uint *bin, uint n)
{
	local atomic_uint mine[64];
	uint i = lid(), at = gid();

	if (i < 64)
		__opencl_atomic_store(&mine[i], 0u, __ATOMIC_RELAXED,
				      memory_scope_work_group);
	barrier_lds();
	if (at < n)
		add_relaxed(&mine[x[at] % 64], 1u, memory_scope_work_group);
	barrier_lds();
	if (i < 64)
		add_relaxed(&bin[i],
			    __opencl_atomic_load(&mine[i], __ATOMIC_RELAXED,
						 memory_scope_work_group),
			    memory_scope_device);
}
