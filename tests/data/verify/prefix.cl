/* Inclusive prefix sum in LDS between two buffers that change places. */
#include "opencl.h"

kernel void prefix(global const float *in, global float *out, global float *sums,
		 local float *t)
{
	int id = get_local_id(0), n = get_local_size(0);
	int from = 0, to = n;

	t[id] = in[get_global_id(0)];
	barrier_local();
	for (int d = 1; d < n; d *= 2) {
		t[to + id] = id >= d ? t[from + id] + t[from + id - d] :
				       t[from + id];
		barrier_local();
		int swap = to;
		to = from;
		from = swap;
	}
	out[get_global_id(0)] = t[from + id];
	if (id == n - 1)
		sums[get_group_id(0)] = t[from + id];
}
