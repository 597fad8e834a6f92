/* A switch, nested divergence, early returns, goto and an inner break. */
#include "../kernels/gpu.h"

kernel void pick(global int *out, global const int *in, int n)
{
	uint i = gid();
	int v;

	if (i >= (uint)n)
		return;
	v = in[i];
	switch (v & 15) {
	case 0: v = v * 3; break;
	case 1: v = v / 7; break;
	case 2: v += n; /* fall through */
	case 3: v ^= 0x55; break;
	case 7: v = -v; break;
	case 9: out[i] = 9; return;
	default: v--;
	}
	out[i] = v;
}

kernel void nested(global int *out, global const int *in, int n)
{
	uint i = gid();
	int sum = 0;

	for (int a = 0; a < n; a++) {
		int v = in[a];

		if (v < 0)
			continue;
		for (int b = 0; b < v; b++) {
			if ((int)i == b)
				goto found;
			if (b > (int)i) {
				sum += b;
				break;
			}
			if (b & 1)
				sum ^= in[b];
			else
				sum -= b;
		}
	}
	sum = -sum;
found:
	out[i] = sum;
}

kernel void clamp_tail(global float *out, float lo, float hi)
{
	uint i = gid();
	float v = out[i];

	if (v < lo)
		v = lo;
	else if (v > hi)
		v = hi;
	else if (lid() & 1)
		v = v * 0.5f;
	out[i] = v;
}
