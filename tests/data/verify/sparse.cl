/* A sparse matrix times a vector, in 64-bit floats, with a division. */
#include "opencl.h"

kernel void sparse(global const int *row, global const int *col,
		   global const double *val, global const double *x,
		   global double *y, int n)
{
	int r = get_global_id(0);
	double s = 0;

	if (r >= n)
		return;
	for (int i = row[r]; i < row[r + 1]; i++)
		s = __builtin_fma(val[i], x[col[i]], s);
	y[r] = s / (1.0 + s * s);
}
