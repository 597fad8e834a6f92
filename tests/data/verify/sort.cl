/* Bitonic sort in LDS: barriers in a doubly nested uniform loop. */
#include "../kernels/gpu.h"

__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void sort(global uint *data)
{
	local uint key[256];
	uint i = lid();

	key[i] = data[gid()];
	barrier_lds();
	for (uint size = 2; size <= 256; size <<= 1)
		for (uint step = size >> 1; step; step >>= 1) {
			uint other = i ^ step;

			if (other > i) {
				uint a = key[i], b = key[other];

				if ((a > b) == !(i & size)) {
					key[i] = b;
					key[other] = a;
				}
			}
			barrier_lds();
		}
	data[gid()] = key[i];
}
