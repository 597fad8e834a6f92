/* Ballots, lane reads, permutes, DPP and swizzles in both wave sizes. */
#include "../kernels/gpu.h"

kernel void vote(global int *out, global const int *in)
{
	int v = in[gid()];
	uint mine = __builtin_amdgcn_mbcnt_lo(~0u, 0);
	int first = __builtin_amdgcn_readfirstlane(v);
	int s = __builtin_amdgcn_ds_swizzle(v, 0x041f);
	int p = __builtin_amdgcn_ds_bpermute((mine ^ 5) << 2, v);
	int d = __builtin_amdgcn_update_dpp(v, v, 0x111, 0xf, 0xf, false);

	if (v > 3)
		s += __builtin_amdgcn_permlane16(v, v, 0x76543210, 0xfedcba98,
						 false, false);
	out[gid()] = first + s + p + d;
}
