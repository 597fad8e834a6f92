/* Constants of all widths. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

kernel void k(global double *d, global half *h, global long *l,
	      constant double *c)
{
	uint i = __builtin_amdgcn_workitem_id_x();

	d[i] = d[i] * 3.14159265358979 + 1e300 / d[i + 1] + c[i];
	h[i] = h[i] * 0.3h + 1.5h;
	l[i] = l[i] * 0x123456789abcdefL + (l[i] >> 7) % 1000003;
}
