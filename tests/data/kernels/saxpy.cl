/* y = a * x + y, the smallest useful kernel. */
#include "gpu.h"

kernel void saxpy(float a, global const float *x, global float *y, uint n)
{
	uint i = gid();

	if (i < n)
		y[i] = __builtin_fmaf(a, x[i], y[i]);
}
