/* A divergent loop with continue and break, then a switch. */
#include "opencl.h"

kernel void fractal(global uint *out, float x0, float y0, float d, uint w,
		    uint most)
{
	uint x = get_global_id(0), y = get_global_id(1), n = 0;
	float cr = x0 + x * d, ci = y0 + y * d, a = 0, b = 0;

	while (a * a + b * b < 4 && n < most) {
		float t = a * a - b * b + cr;

		b = 2 * a * b + ci;
		a = t;
		n++;
		if (n & 256)
			continue;
		if (a == 7)
			break;
	}
	switch (n & 7) {
	case 0:
		n *= 3;
		break;
	case 1:
		n ^= w;
		break;
	case 3:
		n += y;
		break;
	case 5:
		n = n / (x + 1);
		break;
	default:
		n = __builtin_popcount(n);
	}
	out[y * w + x] = n;
}
