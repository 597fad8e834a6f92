/* Inclusive prefix sum within a workgroup; its LDS is given at launch. */
#include "gpu.h"

kernel void scan(global const int *x, global int *sum, local int *tmp)
{
	uint i = lid(), at = gid();
	int v = x[at];

	for (uint step = 1; step < group_size(); step *= 2) {
		tmp[i] = v;
		barrier_lds();
		if (i >= step)
			v += tmp[i - step];
		barrier_lds();
	}
	sum[at] = v;
}
