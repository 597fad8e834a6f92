/* Escape times: lanes leave one loop at different times. */
#include "gpu.h"

kernel void mandel(global ushort *steps, float left, float top, float pixel,
		   uint width)
{
	uint i = gid();
	float cx = __builtin_fmaf((float)(i % width), pixel, left);
	float cy = __builtin_fmaf((float)(i / width), pixel, top);
	float x = 0, y = 0;
	uint n = 0;

	while (n < 200) {
		float xx = x * x, yy = y * y;

		if (__builtin_fmaf(y, y, xx) > 4)
			break;
		y = __builtin_fmaf(x + x, y, cy);
		x = (xx - yy) + cx;
		n++;
	}
	steps[i] = n;
}
