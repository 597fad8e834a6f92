/*
 * Calls through pointers: a function that calls itself to a depth that only the
 * data knows, its frames in scratch, and one of several, chosen by a table, so
 * that lanes go different ways.  (What calls itself by name has no stack of its
 * own: clang 19 counts one frame only.)
 */
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#include "gpu.h"

#define noinline __attribute__((noinline))

typedef uint binary(uint, uint);

noinline uint ackermann(uint m, uint n)
{
	binary *volatile self = ackermann;
	uint inner;

	if (!m)
		return n + 1;
	inner = n ? self(m, n - 1) : 1;
	return self(m - 1, inner);
}

noinline uint add(uint a, uint b)
{
	return a + b;
}

noinline uint multiply(uint a, uint b)
{
	return a * b;
}

noinline uint rotate_by(uint a, uint b)
{
	return a << (b & 31) | a >> (-b & 31);
}

binary *constant table[] = { add, multiply, rotate_by, add };

kernel void recurse(global const uint *x, global uint *y)
{
	uint i = gid();
	binary *volatile start = ackermann;

	y[i] = start(x[i] & 1, x[i] >> 1 & 7);
}

kernel void choose(global const uint *x, global uint *y)
{
	uint i = gid(), v = i;

	for (uint k = 0; k < 8; k++)
		v = table[x[i] >> 4 * k & 3](v, x[i] | 1);
	y[i] = v;
}
