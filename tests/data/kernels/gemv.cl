/* y = A x in double: a workgroup of 64 for each row. */
#include "gpu.h"

kernel void gemv(global const double *a, global const double *x,
		 global double *y, uint n)
{
	local double part[64];
	uint i = lid(), row = group();
	double sum = 0;

	for (uint j = i; j < n; j += 64)
		sum = __builtin_fma(a[row * n + j], x[j], sum);
	part[i] = sum;
	barrier_lds();
	for (uint step = 32; step; step /= 2) {
		if (i < step)
			part[i] += part[i + step];
		barrier_lds();
	}
	if (!i)
		y[row] = part[0];
}
