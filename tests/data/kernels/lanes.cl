/* Between the lanes of a wave: bpermute, first lane, ballot, DPP shuffles. */
#include "gpu.h"

kernel void lanes(global const int *x, global int *y)
{
	uint l = lid() & 31, n = gid();
	int v = x[n];

	y[4 * n] = __builtin_amdgcn_ds_bpermute((31 - l) * 4, v);
	y[4 * n + 1] = __builtin_amdgcn_readfirstlane(v);
	y[4 * n + 2] = (int)__builtin_amdgcn_ballot_w32(v & 1);
	/* row_ror:1, lane l gets l - 1 within its row of 16 */
	y[4 * n + 3] = __builtin_amdgcn_update_dpp(0, v, 0x121, 0xf, 0xf,
						   false);
}
