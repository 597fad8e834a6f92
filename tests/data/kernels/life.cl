/* A cellular automaton on a torus: neighbours of bytes in two dimensions. */
#include "gpu.h"

#define id_y()	  __builtin_amdgcn_workitem_id_y()
#define group_y() __builtin_amdgcn_workgroup_id_y()

kernel void life(global const uchar *in, global uchar *out, int width,
		 int height)
{
	int x = group() * 16 + lid(), y = group_y() * 8 + id_y(), n = 0;

	for (int dy = -1; dy <= 1; dy++)
		for (int dx = -1; dx <= 1; dx++)
			if (dx || dy)
				n += in[(y + dy + height) % height * width +
					(x + dx + width) % width];
	out[y * width + x] = n == 3 || (n == 2 && in[y * width + x]);
}
