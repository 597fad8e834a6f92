/* Twins of compiler/kernels/stream.c. */
#include "stream.h"

KERNEL(32) stream_add(global float *restrict y, global const ELEM *restrict w,
		      global const half *restrict scale,
		      global const float *restrict x, int rows, int n)
{
	const int first = (int)group_x() * (ROWS / 2);
	const struct input in = { .x = x + (long)group_y() * n };
	int r[ROWS / 2];
	float out[ROWS / 2], before[ROWS / 2];

	if (first >= rows)
		return;
	y += (long)group_y() * rows;
	for (int j = 0; j < ROWS / 2; j++) {
		r[j] = cut(first + j, rows);
		before[j] = y[r[j]];
	}
	stream_some(w, n, &in, r, out, ROWS / 2);
	if (lane() == 0)
		for (int j = 0; j < ROWS / 2; j++)
			if (first + j < rows)
				y[first + j] = before[j] + out[j];
}

KERNEL(128) stream_norm(global float *restrict y, global const ELEM *restrict w,
			global const half *restrict scale,
			global const float *restrict x,
			global const float *restrict gain, float eps,
			global const int *restrict pick, int rows, int n)
{
	const int first = wave_row() * ROWS;
	const struct input in = { x + (long)pick[group_y()] * n, gain, eps,
				  true };
	int r[ROWS];
	float out[ROWS];

	if (first >= rows)
		return;
	y += (long)group_y() * rows;
	for (int j = 0; j < ROWS; j++)
		r[j] = cut(first + j, rows);
	stream_rows(w, n, &in, r, out);
	if (lane() == 0)
		for (int j = 0; j < ROWS; j++)
			if (first + j < rows)
				y[first + j] = out[j];
}

KERNEL(128) stream_swiglu(global float *restrict y,
			  global const ELEM *restrict w,
			  global const half *restrict scale,
			  global const float *restrict x,
			  global const float *restrict gain, float eps,
			  int rows, int n)
{
	const int first = wave_row() * (ROWS / 2);
	const struct input in = { x + (long)group_y() * n, gain, eps, true };
	int r[ROWS];
	float out[ROWS];

	if (first >= rows)
		return;
	y += (long)group_y() * rows;
	for (int j = 0; j < ROWS / 2; j++) {
		r[j] = cut(first + j, rows);
		r[ROWS / 2 + j] = r[j] + rows;
	}
	stream_rows(w, n, &in, r, out);
	if (lane() == 0)
		for (int j = 0; j < ROWS / 2; j++)
			if (first + j < rows)
				y[first + j] = silu_of(out[j]) *
					       out[ROWS / 2 + j];
}

enum { HEADS_GROUP = 1024, MAX_HEAD = 256 };
KERNEL(1024) stream_heads(global float *restrict q, global CACHED *restrict kc,
			  global CACHED *restrict vc,
			  global const ELEM *restrict w,
			  global const half *restrict scale,
			  global const float *restrict x,
			  global const float *restrict gain, float eps,
			  global const float *restrict q_gain,
			  global const float *restrict k_gain,
			  global const float *restrict cosine,
			  global const float *restrict sine,
			  global const int *restrict position,
			  global const int *restrict slot, int heads,
			  int kv_heads, int d, int n, int row_ld, int head_ld,
			  long sequence)
{
	local float all[MAX_HEAD];
	const int head = group_x(), token = group_y(), i = lid();
	const int half_d = d >> 1, p = position[token];
	const int last = heads + kv_heads;
	const bool is_q = head < heads, low = i < half_d;
	const int j = low ? i + half_d : i - half_d, at = low ? i : j;
	const struct input in = { x + (long)token * n, gain, eps, true };
	float gain_i = 0, gain_j = 0, co = 0, si = 0, squares = 0;

	if (i < d) {
		gain_i = is_q ? q_gain[i] : k_gain[i];
		gain_j = is_q ? q_gain[j] : k_gain[j];
		co = cosine[(long)p * half_d + at];
		si = sine[(long)p * half_d + at];
	}

	for (int r0 = wave() * ROWS; r0 < d; r0 += HEADS_GROUP / 32 * ROWS) {
		int r[ROWS];
		float out[ROWS];

		for (int j = 0; j < ROWS; j++)
			r[j] = head * d + cut(r0 + j, d);
		stream_rows(w, n, &in, r, out);
		if (lane() == 0)
			for (int j = 0; j < ROWS; j++)
				if (r0 + j < d)
					all[r0 + j] = out[j];
	}
	barrier_lds();
	const float mine = i < d ? all[i] : 0;
	for (int k = lane(); k < MAX_HEAD; k += 32) {
		const float v = k < d ? all[k] : 0;

		squares = FMA(v, v, squares);
	}
	const float rms = rsqrt_of(wave_sum(squares) / (float)d + eps);
	const int kv = head - (head < last ? heads : last);
	const long to = slot[token] * sequence + (long)kv * head_ld +
			(long)p * row_ld;

	if (i >= d)
		return;
	if (head >= last) {
		cache_put(vc + to, d, i, mine);
		return;
	}
	const float a = mine * rms * gain_i;
	const float b = all[j] * rms * gain_j;
	const float y = FMA(a, co, b * (low ? -si : si));

	if (is_q)
		q[((long)token * heads + head) * d + i] = y;
	else
		cache_put(kc + to, d, i, y);
}

KERNEL(128) stream_embed(global float *restrict x,
			 global const ELEM *restrict w,
			 global const half *restrict scale,
			 global const int *restrict id, uint rows, int n)
{
	const int which = id[group_x()];
	const bool there = (uint)which < rows;
	global const ELEM *from = w + (long)(there ? which : 0) * n;
	global float *to = x + (ulong)group_x() * n;

	for (int i = lid(); i < n; i += 128) {
		const float v = from[i];

		to[i] = there ? v : 0;
	}
}

KERNEL(128) stream_widen(global half *restrict out,
			 global const ELEM *restrict w,
			 global const half *restrict scale, int rows, int n)
{
	const int row = group_x();
	const long at = (long)row * n;

	if (row >= rows)
		return;
	for (int i = lid(); i < n / STEP; i += 128) {
		const fv v = __builtin_convertvector(
			*(global const ev *)(w + at + i * STEP), fv);

		*(global hv *)(out + at + i * STEP) =
			__builtin_convertvector(v, hv);
	}
}
