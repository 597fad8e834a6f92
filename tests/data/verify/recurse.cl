/* Recursion: the stack is dynamic, the call graph has a cycle. */
#include "../kernels/gpu.h"

__attribute__((noinline)) static uint odd(uint n);

__attribute__((noinline)) static uint even(uint n)
{
	return n == 0 ? 1 : odd(n - 1);
}

__attribute__((noinline)) static uint odd(uint n)
{
	return n == 0 ? 0 : even(n - 1);
}

__attribute__((noinline)) static uint fib(uint n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

kernel void recurse(global uint *out)
{
	out[gid()] = even(gid() & 7) + fib(gid() & 5);
}
