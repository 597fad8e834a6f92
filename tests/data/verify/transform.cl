/* 512-point transform in LDS: sines and cosines between barriers. */
#include "opencl.h"

static float2 times(float2 a, float2 b)
{
	return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

kernel void transform(global float2 *x, local float2 *t)
{
	int id = get_local_id(0), at = get_global_id(0) * 2;

	t[id] = x[at];
	t[id + 256] = x[at + 1];
	for (int s = 1; s < 512; s <<= 1) {
		int k = id & (s - 1), i = ((id - k) << 1) + k;
		float turns = -0.5f * k / s;
		float2 w = (float2)(__builtin_amdgcn_cosf(turns),
				    __builtin_amdgcn_sinf(turns));

		barrier_local();
		float2 a = t[i], b = times(t[i + s], w);
		barrier_local();
		t[i] = a + b;
		t[i + s] = a - b;
	}
	barrier_local();
	x[at] = t[id];
	x[at + 1] = t[id + 256];
}
