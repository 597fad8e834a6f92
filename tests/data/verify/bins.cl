/* Atomics in LDS, then in memory. */
#include "opencl.h"

kernel void bins(global const uchar *in, global uint *out, uint n)
{
	local uint bin[256];
	uint id = get_local_id(0);

	for (uint i = id; i < 256; i += get_local_size(0))
		bin[i] = 0;
	barrier_local();
	for (uint i = get_global_id(0); i < n; i += get_global_size(0))
		__opencl_atomic_fetch_add((local atomic_uint *)&bin[in[i]], 1u,
					  memory_order_relaxed,
					  memory_scope_work_group);
	barrier_local();
	for (uint i = id; i < 256; i += get_local_size(0))
		if (bin[i])
			__opencl_atomic_fetch_add((global atomic_uint *)&out[i],
						  bin[i], memory_order_relaxed,
						  memory_scope_device);
}
