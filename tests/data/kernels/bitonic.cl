/* Bitonic sort of 256 values by a workgroup of 256, in LDS. */
#include "gpu.h"

kernel void bitonic(global uint *x)
{
	local uint v[256];
	uint i = lid();

	v[i] = x[gid()];
	barrier_lds();
	for (uint size = 2; size <= 256; size *= 2)
		for (uint step = size / 2; step; step /= 2) {
			uint a = v[i], b = v[i ^ step];
			bool up = !(i & size), low = !(i & step);

			barrier_lds();
			v[i] = (a < b) == (up == low) ? a : b;
			barrier_lds();
		}
	x[gid()] = v[i];
}
