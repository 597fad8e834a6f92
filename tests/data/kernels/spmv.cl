/* y = A x of a sparse matrix in rows: loops of every length side by side. */
#include "gpu.h"

kernel void spmv(global const uint *start, global const ushort *column,
		 global const float *value, global const float *x,
		 global float *y)
{
	uint row = gid();
	float sum = 0;

	for (uint i = start[row]; i < start[row + 1]; i++) {
		if (value[i] == 0)
			continue;
		sum = __builtin_fmaf(value[i], x[column[i]], sum);
		if (sum > 1e6f)
			break;
	}
	y[row] = sum;
}
