/*
 * Loops over what the transcendental unit has: 2^x, log2, reciprocal, square
 * roots, and sine and cosine of turns.
 */
#include "gpu.h"

kernel void units(global const float *x, global float *y)
{
	uint i = gid();
	float v = x[i], e = 0, s = 0;

	for (uint k = 1; k <= 16; k++) {
		float t = v * k;

		e += __builtin_amdgcn_exp2f(-t) * __builtin_amdgcn_rcpf(t);
		s += __builtin_amdgcn_sinf(t) * __builtin_amdgcn_cosf(t);
	}
	y[4 * i] = e;
	y[4 * i + 1] = s;
	y[4 * i + 2] = __builtin_amdgcn_logf(v) * __builtin_amdgcn_rsqf(v);
	y[4 * i + 3] = __builtin_amdgcn_sqrtf(v);
}

/* Newton's method for the cube root, in double, until it stays. */
kernel void cube_root(global const double *x, global double *y)
{
	uint i = gid();
	double a = x[i], r = a > 1 ? a : 1, old;

	do {
		old = r;
		r = (2 * r + a / (r * r)) / 3;
	} while (r < old);
	y[i] = old;
}
