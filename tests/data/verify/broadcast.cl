/* One work-item writes, all read; uniform and data-dependent conditions. */
#include "../kernels/gpu.h"

kernel void broadcast(global int *out, global const int *in, int mode)
{
	local int value[2];

	if (lid() == 0) {
		value[0] = in[group()];
		value[1] = -1;
	}
	barrier_lds();
	if (mode == 1) {
		int v = value[0];

		barrier_lds();
		if (lid() == 31)
			value[1] = v + 1;
		barrier_lds();
	}
	out[gid()] = value[0] + value[1];
}

kernel void uniform_loop(global float *out, global const int *rounds)
{
	local float row[256];
	uint i = lid() & 255;
	int n = rounds[group()];

	row[i] = out[gid()];
	for (int r = 0; r < n; r++) {
		float v;

		barrier_lds();
		v = row[(i + r) & 255];
		barrier_lds();
		row[i] = v * 0.5f;
	}
	barrier_lds();
	out[gid()] = row[255 - i];
}
