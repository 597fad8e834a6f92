/* Reciprocal square roots in an unrolled loop over a tile. */
#include "opencl.h"

kernel void nbody(global float4 *p, global float4 *v, int n, float dt)
{
	local float4 t[64];
	float4 me = p[get_global_id(0)], f = 0;

	for (int b = 0; b < n; b += 64) {
		t[get_local_id(0)] = p[b + get_local_id(0)];
		barrier_local();
		for (int i = 0; i < 64; i++) {
			float4 d = t[i] - me;
			float r = __builtin_amdgcn_rsqf(d.x * d.x + d.y * d.y +
							d.z * d.z + 1e-6f);

			f += d * (t[i].w * r * r * r);
		}
		barrier_local();
	}
	v[get_global_id(0)] += f * dt;
}
