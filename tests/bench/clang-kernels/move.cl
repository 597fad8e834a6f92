/* Twins of compiler/kernels/move.c. */
#include "lib.h"

enum { GROUP = 128, TILE = 32, PITCH = TILE + 1 };

KERNEL(128) causal_mask(global ELEM *out, global const ELEM *in, int n,
			int queries, int offset)
{
	const int last = (int)group_x() % queries + offset;
	global const ELEM *x = in + (ulong)group_x() * n;
	global ELEM *y = out + (ulong)group_x() * n;

	for (int i = lid(); i < n; i += GROUP)
		y[i] = (ELEM)(i > last ? -INFINITE : (float)x[i]);
}

KERNEL(128) embed(global ELEM *out, global const ELEM *restrict table,
		  global const int *restrict id, uint vocab, int n)
{
	const int which = id[group_x()];
	const bool there = (uint)which < vocab;
	global const ELEM *x = table + (long)which * n;
	global ELEM *y = out + (ulong)group_x() * n;

	for (int i = lid(); i < n; i += GROUP)
		y[i] = there ? x[i] : (ELEM)0;
}

KERNEL(128) embed_back(global float *table, global const ELEM *restrict grad,
		       global const int *restrict id, uint vocab, int n)
{
	const int which = id[group_x()];
	global float *to = table + (long)which * n;
	global const ELEM *g = grad + (ulong)group_x() * n;

	if ((uint)which >= vocab)
		return;
	for (int i = lid(); i < n; i += GROUP)
		add_float(to + i, (float)g[i]);
}

KERNEL(256) transpose(global ELEM *out, global const ELEM *in, int m, int n)
{
	local float tile[TILE * PITCH];
	const int tx = lid() % TILE, ty = lid() / TILE;
	const int c0 = group_x() * TILE, r0 = group_y() * TILE;
	const int c = c0 + tx, r = r0 + tx;

	for (int i = 0; i < TILE; i += 256 / TILE) {
		const int row = r0 + ty + i;

		if (row < m && c < n)
			tile[(ty + i) * PITCH + tx] = in[(long)row * n + c];
	}
	barrier_lds();
	for (int i = 0; i < TILE; i += 256 / TILE) {
		const int row = c0 + ty + i;

		if (row < n && r < m)
			out[(long)row * m + r] =
				(ELEM)tile[tx * PITCH + ty + i];
	}
}
