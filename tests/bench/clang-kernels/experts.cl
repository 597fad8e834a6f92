/* Twins of compiler/kernels/experts.c. */
#include "stream.h"

enum { EXPERTS_MAX = 4096, USED_MAX = 64, ROUTE_GROUP = 128 };

INLINE uint key_of(float v)
{
	const uint bits = (uint)bits_f(v == 0 ? 0 : v);

	return v != v ? 0 : bits ^ ((int)bits >= 0 ? 0x80000000u : 0xffffffffu);
}

KERNEL(128) route(global float *restrict share, global int *restrict expert,
		  global const float *restrict score, int n, int used,
		  int normed)
{
	local uint keys[EXPERTS_MAX];
	local float best[USED_MAX], part[32], part2[32];
	global const float *x = score + (long)group_x() * n;
	global int *to = expert + (long)group_x() * used;
	float top = -INFINITE, sum = 0;

	for (int i = lid(); i < n; i += ROUTE_GROUP) {
		keys[i] = key_of(x[i]);
		top = max_of(top, x[i]);
	}
	top = group_max(top, ROUTE_GROUP, part);
	barrier_lds();
	for (int i = lid(); i < n; i += ROUTE_GROUP) {
		const float e = exp_of(x[i] - top);
		const uint mine = keys[i];
		int rank = 0;

		for (int j = 0; j < n; j++)
			rank += keys[j] > mine || (keys[j] == mine && j < i);
		if (rank < used) {
			best[rank] = e;
			to[rank] = i;
		}
		sum += rank < used || !normed ? e : 0;
	}
	sum = group_sum(sum, ROUTE_GROUP, part2);
	barrier_lds();
	for (int i = lid(); i < used; i += ROUTE_GROUP)
		share[(long)group_x() * used + i] = best[i] / sum;
}

KERNEL(128) expert_swiglu(global float *restrict y,
			  global const ELEM *restrict w,
			  global const half *restrict scale,
			  global const float *restrict x,
			  global const float *restrict gain, float eps,
			  global const float *restrict share,
			  global const int *restrict expert, int used,
			  int rows, int n)
{
	const int first = wave_row() * (ROWS / 2), pair = group_y();
	const struct input in = { x + (long)(pair / used) * n, gain, eps,
				  true };
	const int top = expert[pair] * 2 * rows;
	int r[ROWS];
	float out[ROWS];

	if (first >= rows)
		return;
	y += (long)pair * rows;
	for (int j = 0; j < ROWS / 2; j++) {
		r[j] = top + cut(first + j, rows);
		r[ROWS / 2 + j] = r[j] + rows;
	}
	stream_rows(w, n, &in, r, out);
	if (lane() == 0)
		for (int j = 0; j < ROWS / 2; j++)
			if (first + j < rows)
				y[first + j] = silu_of(out[j]) *
					       out[ROWS / 2 + j] * share[pair];
}

enum { ADD_WAVES = 2, ADD_ROWS = 2 };
KERNEL(64) expert_add(global float *restrict y, global const ELEM *restrict w,
		      global const half *restrict scale,
		      global const float *restrict x,
		      global const int *restrict expert, int used, int rows,
		      int n)
{
	local float part[ADD_WAVES][ADD_ROWS];
	const int first = (int)group_x() * ADD_ROWS, token = group_y();
	const int mine = first + (int)lid();
	const bool in = lid() < ADD_ROWS && mine < rows;
	const float before = in ? y[(long)token * rows + mine] : 0;
	float sum[ADD_ROWS] = { 0 };

	for (int slot = wave(); slot < used; slot += ADD_WAVES) {
		const int pair = token * used + slot;
		const struct input own = { .x = x + (long)pair * n };
		const int top = expert[pair] * rows;
		int r[ADD_ROWS];
		float out[ADD_ROWS];

		for (int j = 0; j < ADD_ROWS; j++)
			r[j] = top + cut(first + j, rows);
		stream_some(w, n, &own, r, out, ADD_ROWS);
		for (int j = 0; j < ADD_ROWS; j++)
			sum[j] += out[j];
	}
	if (lane() == 0)
		for (int j = 0; j < ADD_ROWS; j++)
			part[wave()][j] = sum[j];
	barrier_lds();
	if (in) {
		float all = before;

		for (int i = 0; i < ADD_WAVES; i++)
			all += part[i][lid()];
		y[(long)token * rows + mine] = all;
	}
}
