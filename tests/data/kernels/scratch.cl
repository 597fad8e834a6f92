/*
 * A stack per lane with an index that only the data knows: the array has to
 * lie in scratch memory.  Reverses runs of 48 values.
 */
#include "gpu.h"

kernel void scratch(global const int *x, global int *y)
{
	uint base = gid() * 48;
	int stack[48];
	uint top = 0;

	for (uint i = 0; i < 48; i++) {
		stack[top] = x[base + i];
		top += x[base + i] != 0x7fffffff;
	}
	for (uint i = 0; top; i++)
		y[base + i] = stack[--top];
}
