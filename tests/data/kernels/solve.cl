/*
 * A lower triangular system by forward substitution: one workgroup of 64, a
 * column at a time, each lane its row.
 */
#include "gpu.h"

kernel void solve(global const double *l, global const double *b,
		  global double *x)
{
	local double done;
	uint row = lid();
	double sum = b[row];

	for (uint k = 0; k < 64; k++) {
		if (row == k)
			done = sum / l[k * 64 + k];
		barrier_lds();
		if (row > k)
			sum = __builtin_fma(-l[row * 64 + k], done, sum);
		if (row == k)
			x[k] = done;
		barrier_lds();
	}
}
