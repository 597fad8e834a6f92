/* Loops around compare-and-swap: a list, a float sum, a lock. */
#include "opencl.h"

#define swap(p, old, new)                                              \
	__opencl_atomic_compare_exchange_strong(                       \
		p, old, new, memory_order_acq_rel, memory_order_acquire, \
		memory_scope_device)

kernel void lockfree(global atomic_uint *head, global uint *next,
		     global atomic_uint *sum, global atomic_int *lock)
{
	uint i = get_global_id(0);
	uint old = __opencl_atomic_load(head, memory_order_acquire,
					memory_scope_device);
	uint bits = 0;
	int zero = 0;

	do
		next[i] = old;
	while (!swap(head, &old, i));
	while (!swap(sum, &bits, as_uint(as_float(bits) + i)))
		;
	if (get_local_id(0))
		return;
	while (!swap(lock, &zero, 1))
		zero = 0;
	next[0] += 1;
	__opencl_atomic_store(lock, 0, memory_order_release,
			      memory_scope_device);
}
