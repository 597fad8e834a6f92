/* Two-dimensional groups, two matrices in LDS and an integer multiply. */
#include "../kernels/gpu.h"

#define ly() __builtin_amdgcn_workitem_id_y()

__attribute__((reqd_work_group_size(16, 16, 1)))
kernel void multiply(global float *c, global const float *a,
		     global const float *b, uint n)
{
	local float ta[16][17], tb[16][17];
	uint x = lid(), y = ly();
	uint col = group() * 16 + x;
	uint row = __builtin_amdgcn_workgroup_id_y() * 16 + y;
	float sum = 0.0f;

	for (uint k = 0; k < n; k += 16) {
		ta[y][x] = a[row * n + k + x];
		tb[y][x] = b[(k + y) * n + col];
		barrier_lds();
		for (uint j = 0; j < 16; j++)
			sum += ta[y][j] * tb[j][x];
		barrier_lds();
	}
	c[row * n + col] = sum;
}
