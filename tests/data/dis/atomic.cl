kernel void k(volatile global atomic_int *a, global int *b)
{
	b[0] = __opencl_atomic_fetch_add(a, 1, __ATOMIC_SEQ_CST, 4);
}
