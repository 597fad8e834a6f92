/* LDS of a fixed size and of the launch's, constants, two kernels. */
constant float weights[7] = { 1, 2, 3, 4, 5, 6, 7 };

kernel void k(global float *out, local float *dyn)
{
	local float tile[65];
	uint i = __builtin_amdgcn_workitem_id_x();

	tile[i] = out[i] * weights[i % 7];
	dyn[i] = tile[i];
	__builtin_amdgcn_s_barrier();
	out[i] = tile[64 - i] + dyn[i ^ 1];
}

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
two(global int *p)
{
	p[__builtin_amdgcn_workitem_id_x()] = 1;
}
