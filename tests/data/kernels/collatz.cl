/* Steps of the 3n + 1 sequence to 1: every lane leaves its loop elsewhere. */
#include "gpu.h"

kernel void collatz(global const uint *x, global uint *steps)
{
	uint at = gid(), n = 0;
	ulong v = x[at];

	while (v > 1 && n < 1000) {
		v = v & 1 ? 3 * v + 1 : v / 2;
		n++;
	}
	steps[at] = n;
}
