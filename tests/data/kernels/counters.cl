/* Atomics on memory of every kind that OpenCL has, in any order. */
#include "gpu.h"

#define relaxed __ATOMIC_RELAXED
#define device	__OPENCL_MEMORY_SCOPE_DEVICE

kernel void atomics(global const int *x, global atomic_int *low,
		    global atomic_int *high, global atomic_uint *bits,
		    global atomic_ulong *sum, global atomic_uint *ticket,
		    global uint *owner)
{
	uint i = gid();
	int v = x[i];
	uint mine;

	__opencl_atomic_fetch_min(low, v, relaxed, device);
	__opencl_atomic_fetch_max(high, v, relaxed, device);
	__opencl_atomic_fetch_or(bits, (uint)v & 0xff, relaxed, device);
	__opencl_atomic_fetch_xor(bits + 1, (uint)v, relaxed, device);
	__opencl_atomic_fetch_and(bits + 2, (uint)v | 0xfffff000, relaxed,
				  device);
	__opencl_atomic_fetch_add(sum, (ulong)(long)v, relaxed, device);
	mine = __opencl_atomic_fetch_add(ticket, 1, relaxed, device);
	owner[mine] = i;
}

/* A sum of floats by compare and swap. */
kernel void swap_add(global const float *x, global atomic_uint *sum)
{
	uint old = __opencl_atomic_load(sum, relaxed, device), new;

	do
		new = __builtin_astype(__builtin_astype(old, float) + x[gid()],
				       uint);
	while (!__opencl_atomic_compare_exchange_strong(
		sum, &old, new, relaxed, relaxed, device));
}
