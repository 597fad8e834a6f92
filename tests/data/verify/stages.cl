/* Matrix products from two LDS buffers, one filled while one is read. */
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#include "opencl.h"

typedef half v16h __attribute__((ext_vector_type(16)));
typedef float v8f __attribute__((ext_vector_type(8)));

kernel void stages(global const v16h *a, global const v16h *b, global v8f *c,
		   int k)
{
	local v16h ta[2][64], tb[2][64];
	int id = get_local_id(0), lane = id & 15;
	v8f x = 0, y = 0;

	ta[0][id] = a[id];
	tb[0][id] = b[id];
	barrier_local();
	for (int i = 0; i < k; i++) {
		v16h next_a = a[(i + 1) * 64 + id], next_b = b[(i + 1) * 64 + id];
		v16h fa = ta[i & 1][lane], fb = tb[i & 1][lane];
		v16h fc = tb[i & 1][lane + 16];

		x = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(fa, fb, x);
		y = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(fa, fc, y);
		ta[~i & 1][id] = next_a;
		tb[~i & 1][id] = next_b;
		barrier_local();
	}
	c[get_global_id(0) * 2] = x;
	c[get_global_id(0) * 2 + 1] = y;
}
