/* C = A * B + C through tiles of 16 x 16 in LDS; sizes need not be multiples. */
#include "gpu.h"

#define TILE 16
#define row_in_tile() __builtin_amdgcn_workitem_id_y()
#define group_y()     __builtin_amdgcn_workgroup_id_y()

kernel void sgemm(global const float *a, global const float *b, global float *c,
		 uint m, uint n, uint k)
{
	local float ta[TILE][TILE + 1], tb[TILE][TILE + 1];
	uint x = lid(), y = row_in_tile();
	uint col = group() * TILE + x, row = group_y() * TILE + y;
	float sum = 0;

	for (uint at = 0; at < k; at += TILE) {
		ta[y][x] = row < m && at + x < k ? a[row * k + at + x] : 0;
		tb[y][x] = at + y < k && col < n ? b[(at + y) * n + col] : 0;
		barrier_lds();
		for (uint i = 0; i < TILE; i++)
			sum = __builtin_fmaf(ta[y][i], tb[i][x], sum);
		barrier_lds();
	}
	if (row < m && col < n)
		c[row * n + col] += sum;
}
