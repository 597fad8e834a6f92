/*
 * results/stats/stats.c - one sample: median, quantiles, spread, outliers.
 */
#include "results/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static int by_value(const void *p, const void *q)
{
	double a = *(const double *)p, b = *(const double *)q;

	return (a > b) - (a < b);
}

double *res_sorted(const double *x, size_t n)
{
	double *s = xcalloc(n ? n : 1, sizeof(*s));

	if (n)
		memcpy(s, x, n * sizeof(*s));
	qsort(s, n, sizeof(*s), by_value);
	return s;
}

double res_quantile(const double *sorted, size_t n, double q)
{
	if (!n)
		return NAN;
	double at = (double)(n - 1) * q;
	size_t i = (size_t)at;
	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static double median_of(const double *sorted, size_t n)
{
	if (!n)
		return NAN;
	return n % 2 ? sorted[n / 2] :
		       sorted[n / 2 - 1] / 2 + sorted[n / 2] / 2;
}

/*
 * The largest k with P(Bin(n, 1/2) < k) <= 2.5 %: sample k from either end, 1
 * being the outermost, bounds the interval.  0 = there is none.  The sum begins
 * where it matters: 12 * sqrt(n) below the middle is 24 sigmas away.
 */
static size_t median_rank(size_t n)
{
	double d = (double)n, i = n > 1000 ? floor(d / 2 - 12 * sqrt(d)) : 0;
	double term = n <= 1000 ? ldexp(1, -(int)n) :
				  exp(lgamma(d + 1) - lgamma(i + 1) -
				      lgamma(d - i + 1) - d * M_LN2);

	for (double sum = term; sum <= 0.025; sum += term) {
		term *= (d - i) / (i + 1);
		i++;
	}
	return (size_t)i;
}

struct res_interval res_median(const double *x, size_t n)
{
	double *s = res_sorted(x, n);
	struct res_interval m = { median_of(s, n), NAN, NAN };
	size_t k = n >= RES_MIN_SAMPLES ? median_rank(n) : 0;

	if (k) {
		m.lo = s[k - 1];
		m.hi = s[n - k];
	}
	free(s);
	return m;
}

double res_mad(const double *x, size_t n)
{
	double *s = res_sorted(x, n);
	double m = median_of(s, n);

	for (size_t i = 0; i < n; i++)
		s[i] = fabs(s[i] - m);
	qsort(s, n, sizeof(*s), by_value);
	m = median_of(s, n);
	free(s);
	return m;
}

double res_relative_mad(const double *x, size_t n)
{
	double m = fabs(res_median(x, n).value);

	return m > 0 ? res_mad(x, n) / m : NAN;
}

struct res_fences res_outliers(const double *x, size_t n)
{
	double *s = res_sorted(x, n);
	double q1 = res_quantile(s, n, 0.25), q3 = res_quantile(s, n, 0.75);
	struct res_fences f = { q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1), 0 };

	for (size_t i = 0; i < n; i++)
		f.outside += s[i] < f.lo || s[i] > f.hi;
	free(s);
	return f;
}

double res_geomean(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (!(x[i] > 0))
			return NAN;
		sum += log(x[i]);
	}
	return n ? exp(sum / (double)n) : NAN;
}
