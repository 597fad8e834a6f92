/* Fourier transforms of 128 points, radix 2, in LDS; factors from the host. */
#include "gpu.h"

#define POINTS 128

kernel void fft(global const float2 *x, global float2 *y,
		global const float2 *root)
{
	local float2 v[POINTS];
	uint i = lid(), at = group() * POINTS;

	for (uint k = i; k < POINTS; k += POINTS / 2) {
		uint r = __builtin_bitreverse32(k) >> 25;

		v[r] = x[at + k];
	}
	barrier_lds();
	for (uint half_size = 1; half_size < POINTS; half_size *= 2) {
		uint j = i & (half_size - 1), low = 2 * (i - j) + j;
		float2 w = root[j * (POINTS / 2 / half_size)];
		float2 a = v[low], b = v[low + half_size], t;

		t.x = __builtin_fmaf(-b.y, w.y, b.x * w.x);
		t.y = __builtin_fmaf(b.y, w.x, b.x * w.y);
		barrier_lds();
		v[low] = a + t;
		v[low + half_size] = a - t;
		barrier_lds();
	}
	y[at + i] = v[i];
	y[at + i + POINTS / 2] = v[i + POINTS / 2];
}
