/* Recursion in two functions, one inside the arguments of the other. */
#include "opencl.h"

__attribute__((noinline)) static int ack(int m, int n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ack(m - 1, 1);
	return ack(m - 1, ack(m, n - 1));
}

__attribute__((noinline)) static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

kernel void ackermann(global int *out)
{
	int i = get_global_id(0);

	out[i] = ack(i & 1, i & 3) + fib(i & 7);
}
