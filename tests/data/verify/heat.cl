/* Steps of a stencil between two tiles with a border. */
#include "opencl.h"

kernel void heat(global const float *in, global float *out, int w, int h,
		 int steps)
{
	local float t[2][18][18];
	int lx = get_local_id(0), ly = get_local_id(1), now = 0;
	int x = get_global_id(0), y = get_global_id(1);

	for (int j = ly; j < 18; j += 16)
		for (int i = lx; i < 18; i += 16) {
			int sx = get_group_id(0) * 16 + i - 1;
			int sy = get_group_id(1) * 16 + j - 1;

			sx = sx < 0 ? 0 : sx >= w ? w - 1 : sx;
			sy = sy < 0 ? 0 : sy >= h ? h - 1 : sy;
			t[0][j][i] = t[1][j][i] = in[sy * w + sx];
		}
	barrier_local();
	for (int s = 0; s < steps; s++) {
		float c = t[now][ly + 1][lx + 1];

		t[now ^ 1][ly + 1][lx + 1] =
			c + 0.1f * (t[now][ly][lx + 1] + t[now][ly + 2][lx + 1] +
				    t[now][ly + 1][lx] + t[now][ly + 1][lx + 2] -
				    4 * c);
		now ^= 1;
		barrier_local();
	}
	if (x < w && y < h)
		out[y * w + x] = t[now][ly + 1][lx + 1];
}
