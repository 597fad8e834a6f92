/*
 * compiler/sim/examine/rank.c - rank correlation.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/sim/examine/examine.h"

struct ranked {
	double v, rank;
	size_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

static double *rank_values(const double *x, size_t n)
{
	struct ranked *r = xmalloc((n + 1) * sizeof(*r));
	double *out = xmalloc((n + 1) * sizeof(*out));

	for (size_t i = 0; i < n; i++)
		r[i] = (struct ranked){ x[i], 0, i };
	qsort(r, n, sizeof(*r), by_value);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && r[j].v == r[i].v; j++)
			;
		for (size_t k = i; k < j; k++)
			out[r[k].at] = (double)(i + j - 1) / 2;
	}
	free(r);
	return out;
}

double sim_rank(const double *x, const double *y, size_t n)
{
	double *a = rank_values(x, n), *b = rank_values(y, n);
	double mean = ((double)n - 1) / 2, ab = 0, aa = 0, bb = 0;

	for (size_t i = 0; i < n; i++) {
		ab += (a[i] - mean) * (b[i] - mean);
		aa += (a[i] - mean) * (a[i] - mean);
		bb += (b[i] - mean) * (b[i] - mean);
	}
	free(a);
	free(b);
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

int sim_compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The number at place p, from 0, between its neighbours. */
static double number_at(const double *v, size_t n, double p)
{
	const double at = fmin(fmax(p, 0), (double)n - 1);
	const size_t i = (size_t)at;

	return i + 1 < n ? v[i] + (v[i + 1] - v[i]) * (at - (double)i) : v[i];
}

void sim_spread(double *v, size_t n, double *least, double *most)
{
	*least = *most = NAN;
	if (!n)
		return;
	qsort(v, n, sizeof(*v), sim_compare_numbers);
	*least = number_at(v, n, 0.1 * ((double)n + 1) - 1);
	*most = number_at(v, n, 0.9 * ((double)n + 1) - 1);
}
