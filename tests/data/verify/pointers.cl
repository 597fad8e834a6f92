/* Generic pointers (FLAT), private arrays behind them, byte accesses. */
#include "../kernels/gpu.h"

kernel void pointers(global int *out, global const uchar *bytes, int which)
{
	local int shared[64];
	int own[16];
	int *p;

	for (int i = 0; i < 16; i++)
		own[i] = bytes[gid() * 16 + i] << i;
	shared[lid() & 63] = own[lid() & 15];
	barrier_lds();
	if (which == 0)
		p = own;
	else if (which == 1)
		p = shared;
	else
		p = out;
	out[gid()] = p[(lid() * 7) & 15] + own[(lid() * 3) & 15];
}

struct item {
	uchar tag;
	short count;
	float weight[5];
};

kernel void items(global struct item *it, global uint *sum)
{
	struct item mine = it[gid()];
	uint s = 0;

	mine.weight[mine.tag % 5] += 1.0f;
	for (int i = 0; i < 5; i++)
		s += (uint)mine.weight[i] * mine.count;
	it[gid()] = mine;
	sum[gid()] = s;
}
