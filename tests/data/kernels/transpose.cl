/* A matrix of w x h floats through LDS tiles of 16 x 16, 2-D workgroups. */
#include "gpu.h"

__attribute__((reqd_work_group_size(16, 16, 1)))
kernel void transpose(global const float *in, global float *out, uint w,
		      uint h)
{
	local float tile[16][17];
	uint x = __builtin_amdgcn_workitem_id_x();
	uint y = __builtin_amdgcn_workitem_id_y();
	uint gx = __builtin_amdgcn_workgroup_id_x() * 16;
	uint gy = __builtin_amdgcn_workgroup_id_y() * 16;

	tile[y][x] = in[(gy + y) * w + gx + x];
	barrier_lds();
	out[(gx + y) * h + gy + x] = tile[x][y];
}
