/* Twins of compiler/kernels/rope.c: a row per wave, both ways of pairing. */
#include "lib.h"

INLINE void turn_row(global ELEM *out, global const ELEM *in,
		     global const float *cosine, global const float *sine,
		     global const int *position, int heads, int n, int rows,
		     float turn, bool pairs)
{
	const int row = wave_row(), half_n = n >> 1;

	if (row >= rows)
		return;
	const int p = position[row / heads];
	global const float *c = cosine + (long)p * half_n;
	global const float *d = sine + (long)p * half_n;
	global const ELEM *x = in + (long)row * n;
	global ELEM *y = out + (long)row * n;

	for (int i = lane(); i < half_n; i += 32) {
		const int i0 = pairs ? 2 * i : i;
		const int i1 = pairs ? i0 + 1 : i + half_n;
		const float a = x[i0], b = x[i1], ci = c[i], di = d[i] * turn;

		y[i0] = (ELEM)(a * ci - b * di);
		y[i1] = (ELEM)FMA(b, ci, a * di);
	}
}

KERNEL(128) rope(global ELEM *out, global const ELEM *in,
		 global const float *restrict cosine,
		 global const float *restrict sine,
		 global const int *restrict position, int heads, int n,
		 int rows, float turn)
{
	turn_row(out, in, cosine, sine, position, heads, n, rows, turn, false);
}

KERNEL(128) rope_pairs(global ELEM *out, global const ELEM *in,
		       global const float *restrict cosine,
		       global const float *restrict sine,
		       global const int *restrict position, int heads, int n,
		       int rows, float turn)
{
	turn_row(out, in, cosine, sine, position, heads, n, rows, turn, true);
}
