/* Double precision: fused multiply-add, division, square root, conversion. */
#include "gpu.h"

kernel void f64(global const double *x, global double *y)
{
	uint i = gid();
	double v = x[i];

	y[4 * i] = __builtin_fma(v, v, -1.0);
	y[4 * i + 1] = 1.0 / v;
	y[4 * i + 2] = __builtin_sqrt(v);
	y[4 * i + 3] = (double)(int)v;
}
