/* Divisions, square roots and doubles: VCC, transcendental units and pairs. */
#include "../kernels/gpu.h"

kernel void numbers(global float *f, global double *d, global ulong *u)
{
	uint i = gid();
	float x = f[i];
	double y = d[i];
	ulong z = u[i];

	f[i] = x / (x + 3.0f) + __builtin_sqrtf(x) * __builtin_amdgcn_sinf(x) +
	       __builtin_amdgcn_exp2f(x) * __builtin_amdgcn_rcpf(x);
	d[i] = y / (y * y + 1.0) + __builtin_sqrt(y);
	u[i] = z / 10007 + z * z % (z | 1) + (z << (i & 63));
}

kernel void trans_chain(global float *f)
{
	uint i = gid();
	float x = f[i];

	for (int k = 0; k < 8; k++)
		x = __builtin_amdgcn_rcpf(__builtin_amdgcn_exp2f(x) +
					  __builtin_amdgcn_logf(x + 2.0f));
	f[i] = x;
}
