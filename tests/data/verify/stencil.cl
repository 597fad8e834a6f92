/* A halo in LDS, filled under divergence, and a second array beside it. */
#include "../kernels/gpu.h"

__attribute__((reqd_work_group_size(128, 1, 1)))
kernel void stencil(global float *out, global const float *in,
		    global const float *weight)
{
	local float row[128 + 2], w[4];
	uint i = lid();

	row[i + 1] = in[gid() + 1];
	if (i == 0)
		row[0] = in[gid()];
	if (i == 127)
		row[129] = in[gid() + 2];
	if (i < 3)
		w[i] = weight[i];
	barrier_lds();
	out[gid()] = row[i] * w[0] + row[i + 1] * w[1] + row[i + 2] * w[2];
}

/* Each work-item's own three words of LDS need no barrier. */
__attribute__((reqd_work_group_size(128, 1, 1)))
kernel void own(global float *out, global const uint *pick)
{
	local float mine[128][3];
	uint i = lid();

	mine[i][0] = out[gid()];
	mine[i][1] = mine[i][0] * 2.0f;
	mine[i][2] = mine[i][1] + mine[i][0];
	out[gid()] = mine[i][pick[gid()] % 3];
}

/* One wave: LDS is in order, no barrier is needed. */
__attribute__((reqd_work_group_size(32, 1, 1)))
kernel void one_wave(global float *out)
{
	local float row[32];
	uint i = lid();

	row[i] = out[gid()];
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	out[gid()] = row[31 - i];
}
