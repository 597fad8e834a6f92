/* Atomics of every scope, with and without result, in global memory and LDS. */
#include "../kernels/gpu.h"

kernel void counters(global atomic_uint *c, global uint *old)
{
	local atomic_uint n;
	uint mine;

	if (lid() == 0)
		__opencl_atomic_store(&n, 0, __ATOMIC_RELAXED,
				      __OPENCL_MEMORY_SCOPE_WORK_GROUP);
	barrier_lds();
	mine = __opencl_atomic_fetch_add(&n, 1, __ATOMIC_ACQ_REL,
					 __OPENCL_MEMORY_SCOPE_WORK_GROUP);
	barrier_lds();
	if (lid() == 0)
		__opencl_atomic_fetch_add(&c[0], 1, __ATOMIC_SEQ_CST,
					  __OPENCL_MEMORY_SCOPE_DEVICE);
	old[gid()] = mine +
		__opencl_atomic_fetch_max(&c[1 + (lid() & 3)], mine,
					  __ATOMIC_RELEASE,
					  __OPENCL_MEMORY_SCOPE_DEVICE);
}

kernel void spin(global atomic_int *lock, global int *value)
{
	if (lid() == 0) {
		int want = 0;

		while (!__opencl_atomic_compare_exchange_strong(
			lock, &want, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
			__OPENCL_MEMORY_SCOPE_DEVICE))
			want = 0;
		*value += 1;
		__opencl_atomic_store(lock, 0, __ATOMIC_RELEASE,
				      __OPENCL_MEMORY_SCOPE_DEVICE);
	}
}

kernel void add_float(global float *sum, global const float *in)
{
	union { uint u; float f; } old, new;
	global atomic_uint *p = (global atomic_uint *)sum;

	old.u = __opencl_atomic_load(p, __ATOMIC_RELAXED,
				     __OPENCL_MEMORY_SCOPE_DEVICE);
	do
		new.f = old.f + in[gid()];
	while (!__opencl_atomic_compare_exchange_weak(
		p, &old.u, new.u, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
		__OPENCL_MEMORY_SCOPE_DEVICE));
}
