/* A sum over the lanes by DPP and row exchange. */
#include "opencl.h"

kernel void dppsum(global const int *in, global int *out)
{
	int v = in[get_global_id(0)];

	v += __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, true);
	v += __builtin_amdgcn_update_dpp(0, v, 0x112, 0xf, 0xf, true);
	v += __builtin_amdgcn_update_dpp(0, v, 0x114, 0xf, 0xe, false);
	v += __builtin_amdgcn_update_dpp(0, v, 0x118, 0xf, 0xc, false);
	v += __builtin_amdgcn_permlanex16(0, v, 0xffffffff, 0xffffffff, false,
					  false);
	if (in[0] > 3)
		v = __builtin_amdgcn_mov_dpp8(v, 0x688fac);
	if (get_local_id(0) == 31)
		out[get_group_id(0)] = __builtin_amdgcn_readlane(v, 31) +
				       __builtin_amdgcn_readfirstlane(v);
}
