/* Twins of compiler/kernels/rows.c and norm.c: one row per workgroup of 128. */
#include "lib.h"

enum { GROUP = 128 };

/* The largest of a row and the sum of e^(x - largest), in one pass. */
struct total {
	float max, sum;
};

INLINE struct total row_total(global const ELEM *x, int n, local float *part)
{
	float max = -FLOAT_MAX, sum = 0;

	for (int i = lid(); i < n; i += GROUP) {
		const float v = x[i], m = max_of(max, v);

		sum = FMA(sum, exp_of(max - m), exp_of(v - m));
		max = m;
	}
	const float top = group_max(max, GROUP, part);
	return (struct total){
		top, group_sum(sum * exp_of(max - top), GROUP, part + 32)
	};
}

KERNEL(128) softmax(global ELEM *out, global const ELEM *in, int n)
{
	local float part[64];
	global const ELEM *x = in + (ulong)group_x() * n;
	global ELEM *y = out + (ulong)group_x() * n;
	const struct total t = row_total(x, n, part);

	for (int i = lid(); i < n; i += GROUP)
		y[i] = (ELEM)(exp_of((float)x[i] - t.max) / t.sum);
}

KERNEL(128) log_softmax(global ELEM *out, global const ELEM *in, int n)
{
	local float part[64];
	global const ELEM *x = in + (ulong)group_x() * n;
	global ELEM *y = out + (ulong)group_x() * n;
	const struct total t = row_total(x, n, part);
	const float log_sum = log_of(t.sum);

	for (int i = lid(); i < n; i += GROUP)
		y[i] = (ELEM)((float)x[i] - t.max - log_sum);
}

/* 1 / sqrt(mean of x^2 + eps). */
INLINE float row_scale(global const ELEM *x, int n, float eps,
		       local float *part)
{
	float sum = 0;

	for (int i = lid(); i < n; i += GROUP) {
		const float v = x[i];

		sum = FMA(v, v, sum);
	}
	sum = group_sum(sum, GROUP, part);
	return 1 / __builtin_sqrtf(sum / (float)n + eps);
}

KERNEL(128) rms_norm(global ELEM *out, global const ELEM *in,
		     global const ELEM *restrict w, float eps, int n)
{
	local float part[32];
	global const ELEM *x = in + (ulong)group_x() * n;
	global ELEM *y = out + (ulong)group_x() * n;
	const float r = row_scale(x, n, eps, part);

	for (int i = lid(); i < n; i += GROUP)
		y[i] = (ELEM)((float)x[i] * r * (float)w[i]);
}

/* Groups of 256; a work-item has four elements, which lie at 16 bytes. */
KERNEL(256) rms_norm_rows(global ELEM *restrict out,
			  global const float *restrict in,
			  global const float *restrict w,
			  global const int *restrict pick, float eps, int n)
{
	typedef ELEM out4 __attribute__((ext_vector_type(4), aligned(8)));
	enum { STEP = 4 * 256 };
	local float part[32];
	global const float *x = in + (ulong)pick[group_x()] * n;
	global ELEM *y = out + (ulong)group_x() * n;
	float sum = 0;

	for (int i = 4 * lid(); i < n; i += STEP) {
		const f4 v = *(global const f4 *)(x + i);

		for (int j = 0; j < 4; j++)
			sum = FMA(v[j], v[j], sum);
	}
	const float mean = group_sum(sum, 256, part) / (float)n;
	const float r = __builtin_amdgcn_rsqf(mean + eps);
	for (int i = 4 * lid(); i < n; i += STEP) {
		const f4 v = *(global const f4 *)(x + i) * r *
			     *(global const f4 *)(w + i);

		*(global out4 *)(y + i) = __builtin_convertvector(v, out4);
	}
}

KERNEL(128) rms_norm_back(global ELEM *dx, global float *dw,
			  global const ELEM *in, global const ELEM *restrict w,
			  global const ELEM *grad, float eps, int n)
{
	local float part[64];
	const ulong row = (ulong)group_x() * n;
	global const ELEM *x = in + row, *g = grad + row;
	global ELEM *y = dx + row;
	const float r = row_scale(x, n, eps, part);
	float dot = 0;

	for (int i = lid(); i < n; i += GROUP)
		dot = FMA((float)x[i] * (float)w[i], (float)g[i], dot);
	const float mean = group_sum(dot, GROUP, part + 32) / (float)n;
	const float back = r * r * mean;

	for (int i = lid(); i < n; i += GROUP) {
		const float xi = x[i], gi = g[i];

		y[i] = (ELEM)(r * ((float)w[i] * gi - xi * back));
		add_float(dw + i, gi * xi * r);
	}
}

KERNEL(128) cross_entropy(global float *loss, global const ELEM *restrict in,
			  global const int *restrict target, int n)
{
	local float part[64];
	global const ELEM *x = in + (ulong)group_x() * n;
	const struct total t = row_total(x, n, part);

	if (lid() == 0)
		loss[group_x()] = log_of(t.sum) +
				  (t.max - (float)x[target[group_x()]]);
}

KERNEL(128) cross_entropy_back(global ELEM *dx, global const ELEM *in,
			       global const int *restrict target, float a,
			       int n)
{
	local float part[64];
	const int hit = target[group_x()];
	global const ELEM *x = in + (ulong)group_x() * n;
	global ELEM *y = dx + (ulong)group_x() * n;
	const struct total t = row_total(x, n, part);

	for (int i = lid(); i < n; i += GROUP) {
		const float p = exp_of((float)x[i] - t.max) / t.sum;

		y[i] = (ELEM)(a * (i == hit ? p - 1 : p));
	}
}

#define ROW_REDUCE(name, op, start)                                         \
	KERNEL(128) name(global float *out, global const ELEM *restrict in, \
			 int n)                                             \
	{                                                                   \
		local float part[32];                                       \
		global const ELEM *x = in + (ulong)group_x() * n;           \
		float v = start;                                            \
									    \
		for (int i = lid(); i < n; i += GROUP)                      \
			v = op##_of(v, (float)x[i]);                        \
		v = group_##op(v, GROUP, part);                             \
		if (lid() == 0)                                             \
			out[group_x()] = v;                                 \
	}
ROW_REDUCE(row_sum, sum, 0)
ROW_REDUCE(row_max, max, -INFINITE)
ROW_REDUCE(row_min, min, INFINITE)

KERNEL(128) argmax(global int *out, global const ELEM *restrict in, int n)
{
	local float part[32];
	local int places[32];
	global const ELEM *x = in + (ulong)group_x() * n;
	float best = -INFINITE;
	int at = 0x7fffffff;

	for (int i = lid(); i < n; i += GROUP) {
		const float v = x[i];

		at = v > best ? i : at;
		best = v > best ? v : best;
	}
	const float top = group_max(best, GROUP, part);
	const int first = group_least(best == top ? at : 0x7fffffff, GROUP,
				      places);

	if (lid() == 0)
		out[group_x()] = first == 0x7fffffff ? 0 : first;
}
