/*
 * results/stats/rank.c - two samples: Mann-Whitney's test, Hodges-Lehmann's
 * shift.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "results/stats/stats.h"

/* ------------------------------------------------------ distributions -- */

/* Ways to pick m of n. */
static double count_choices(size_t n, size_t m)
{
	double c = 1;

	for (size_t i = 1; i <= m; i++)
		c = c * (double)(n - m + i) / (double)i;
	return c;
}

/*
 * How often U = 0, 1, ... len - 1 occur among all ways to pick m of m + n
 * distinct ranks: the coefficients of the Gaussian binomial, built up a factor
 * (1 - x^(n+i)) / (1 - x^i) at a time.  Every step is an integer below 2^53 for
 * m + n <= RES_EXACT_SAMPLES, so doubles hold it exactly.  free() it.
 */
static double *u_counts(size_t m, size_t n, size_t len)
{
	double *c = xcalloc(len, sizeof(*c));

	c[0] = 1;
	for (size_t i = 1; i <= m; i++) {
		for (size_t u = len; u-- > n + i;)
			c[u] -= c[u - n - i];
		for (size_t u = i; u < len; u++)
			c[u] += c[u - i];
	}
	return c;
}

/* P for U at `u` or farther out, on both sides. */
static double distinct_p(size_t na, size_t nb, size_t u)
{
	size_t m = na < nb ? na : nb, n = na + nb - m;
	size_t tail = u < m * n - u ? u : m * n - u;
	double *c = u_counts(m, n, tail + 1), sum = 0;

	for (size_t i = 0; i <= tail; i++)
		sum += c[i];
	free(c);
	return fmin(1, 2 * sum / count_choices(m + n, m));
}

/* A group of t equal samples; their doubled mid-rank. */
struct tie {
	size_t t, rank;
};

/*
 * The same with ties, for the sum of the doubled mid-ranks of the m samples of
 * one side: count[k][sum] grows by a group at a time, which may give j of its t
 * ranks in C(t, j) ways.  From the top down, so that none is used twice.
 */
static double tied_p(const struct tie *tie, size_t n_ties, size_t m,
		     size_t sum)
{
	size_t len = 1, top[RES_EXACT_TIED + 1] = { 0 };
	double below = 0, above = 0;

	for (size_t g = 0; g < n_ties; g++)
		len += tie[g].t * tie[g].rank;
	double *c = xcalloc((m + 1) * len, sizeof(*c)); /* [m + 1][len] */
	c[0] = 1;
	for (size_t g = 0, seen = 0; g < n_ties; seen += tie[g++].t)
		for (size_t k = (seen < m ? seen : m) + 1; k-- > 0;)
			for (size_t j = 1; j <= tie[g].t && k + j <= m; j++) {
				size_t step = j * tie[g].rank;
				double ways = count_choices(tie[g].t, j);
				double *to = c + (k + j) * len + step;
				for (size_t s = 0; s <= top[k]; s++)
					to[s] += ways * c[k * len + s];
				if (top[k + j] < top[k] + step)
					top[k + j] = top[k] + step;
			}
	for (size_t s = 0; s < len; s++) {
		below += s <= sum ? c[m * len + s] : 0;
		above += s >= sum ? c[m * len + s] : 0;
	}
	size_t n = 0;
	for (size_t g = 0; g < n_ties; g++)
		n += tie[g].t;
	free(c);
	return fmin(1, 2 * fmin(below, above) / count_choices(n, m));
}

/* -------------------------------------------------------- Mann-Whitney -- */

struct ranked {
	struct tie *tie; /* [n_ties], ascending; most are of one sample */
	size_t n_ties;
	size_t sum_a;	 /* doubled */
	double tie_term; /* sum of t^3 - t */
	bool ties;
};

/* Merges two sorted samples, a group of equal values at a time. */
static void rank_samples(const double *a, size_t na, const double *b,
			 size_t nb, struct ranked *r)
{
	size_t i = 0, j = 0, n = 0;

	*r = (struct ranked){ .tie = xcalloc(na + nb, sizeof(*r->tie)) };
	while (i < na || j < nb) {
		double v = j >= nb || (i < na && a[i] <= b[j]) ? a[i] : b[j];
		size_t from_a = i, first = n;

		for (; i < na && a[i] == v; i++)
			n++;
		for (; j < nb && b[j] == v; j++)
			n++;
		double t = (double)(n - first);
		r->ties |= n - first > 1;
		r->tie_term += t * t * t - t;
		r->tie[r->n_ties++] = (struct tie){ n - first, first + 1 + n };
		r->sum_a += (i - from_a) * (first + 1 + n);
	}
}

static double normal_p(const struct ranked *r, size_t na, size_t nb, double u)
{
	double mn = (double)na * (double)nb, n = (double)(na + nb);
	double var = mn / 12 * (n + 1 - r->tie_term / (n * (n - 1)));
	double off = fabs(u - mn / 2) - 0.5;

	if (!(var > 0) || off <= 0)
		return 1;
	return erfc(off / sqrt(2 * var));
}

struct res_rank_test res_mann_whitney(const double *a, size_t na,
				      const double *b, size_t nb)
{
	struct res_rank_test t = { NAN, 1, true };
	struct ranked r;

	if (!na || !nb)
		return t;
	double *sa = res_sorted(a, na), *sb = res_sorted(b, nb);
	rank_samples(sa, na, sb, nb, &r);
	t.u = (double)r.sum_a / 2 - (double)na * (double)(na + 1) / 2;
	t.exact = na + nb <= (r.ties ? RES_EXACT_TIED : RES_EXACT_SAMPLES);
	if (!t.exact)
		t.p = normal_p(&r, na, nb, t.u);
	else if (r.ties)
		t.p = tied_p(r.tie, r.n_ties, na, r.sum_a);
	else
		t.p = distinct_p(na, nb, (size_t)t.u);
	free(r.tie);
	free(sa);
	free(sb);
	return t;
}

/* ------------------------------------------------------ Hodges-Lehmann -- */

/*
 * The rank, from either end, of the difference that bounds the interval: the
 * smallest k with P(U <= k) above 2.5 %.  0 = there is none.
 */
static size_t shift_rank(size_t na, size_t nb)
{
	double mn = (double)na * (double)nb;

	if (na + nb > RES_EXACT_SAMPLES) {
		const double z = 1.959963984540054; /* of 97.5 % */
		double k = floor(mn / 2 - z * sqrt(mn * (double)(na + nb + 1) /
						   12));
		return k > 0 ? (size_t)k : 0;
	}
	size_t m = na < nb ? na : nb, k = 0;
	double *c = u_counts(m, na + nb - m, na * nb / 2 + 1);
	double all = count_choices(na + nb, m);
	for (double sum = c[0]; sum <= 0.025 * all; sum += c[++k])
		;
	free(c);
	return k;
}

struct differences {
	const double *a, *b; /* sorted */
	size_t na, nb;
	double *some; /* [n_some], scratch that grows */
	size_t cap;
};

/* The k-th smallest of d, from 0, by Hoare's partitioning. */
static double pick_some(double *d, size_t n, size_t k)
{
	size_t lo = 0, hi = n - 1;

	while (lo < hi) {
		double pivot = d[lo + (hi - lo) / 2];
		size_t i = lo, j = hi;

		for (;; i++, j--) {
			while (d[i] < pivot)
				i++;
			while (d[j] > pivot)
				j--;
			if (i >= j)
				break;
			double swap = d[i];
			d[i] = d[j];
			d[j] = swap;
		}
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return d[k];
}

/* How many differences are at most d?  One walk along a staircase. */
static size_t count_upto(const struct differences *s, double d)
{
	size_t j = 0, count = 0;

	for (size_t i = 0; i < s->na; i++) {
		while (j < s->nb && s->b[j] - s->a[i] <= d)
			j++;
		count += j;
	}
	return count;
}

/* Collects the differences in (lo, hi]; there are n. */
static void collect_between(struct differences *s, double lo, double hi,
			    size_t n)
{
	size_t from = 0, to = 0, k = 0;

	if (s->cap < n) {
		s->cap = n;
		s->some = xrealloc(s->some, n * sizeof(*s->some));
	}
	for (size_t i = 0; i < s->na; i++) {
		while (from < s->nb && s->b[from] - s->a[i] <= lo)
			from++;
		while (to < s->nb && s->b[to] - s->a[i] <= hi)
			to++;
		for (size_t j = from; j < to; j++)
			s->some[k++] = s->b[j] - s->a[i];
	}
}

/* Doubles as integers that sort alike. */
static int64_t order_of(double x)
{
	int64_t i;

	memcpy(&i, &x, sizeof(i));
	return i < 0 ? INT64_MIN - i : i;
}

static double from_order(int64_t i)
{
	double x;

	i = i < 0 ? INT64_MIN - i : i;
	memcpy(&x, &i, sizeof(x));
	return x;
}

/* (lo, hi] holds the difference that is looked for; at_lo are at most lo. */
struct bracket {
	double lo, hi;
	size_t at_lo, at_hi;
};

/*
 * Where to cut the bracket: in proportion to the counts, which is quick, and
 * every third time in the middle of the doubles, which cannot fail.
 */
static double cut_at(const struct bracket *b, size_t k, int step)
{
	double share = ((double)(k - b->at_lo) + 0.5) /
		       (double)(b->at_hi - b->at_lo);
	double mid = b->lo + (b->hi - b->lo) * share;
	int64_t lo = order_of(b->lo), hi = order_of(b->hi);

	if (step % 3 != 2 && mid > b->lo && mid < b->hi)
		return mid;
	return from_order((lo >> 1) + (hi >> 1) + (lo & hi & 1));
}

/*
 * The k-th smallest of all na * nb differences, from 0, without making them:
 * narrow the bracket until few are left, then look at those.
 */
static double select_nth(struct differences *s, size_t k)
{
	struct bracket b = {
		.lo = nextafter(s->b[0] - s->a[s->na - 1], -INFINITY),
		.hi = s->b[s->nb - 1] - s->a[0],
		.at_hi = s->na * s->nb,
	};
	size_t few = 2 * (s->na + s->nb);

	for (int step = 0; b.at_hi - b.at_lo > few; step++) {
		double mid = cut_at(&b, k, step);
		if (!(mid > b.lo && mid < b.hi))
			return b.hi; /* neighbours: all that are left tie */
		size_t n = count_upto(s, mid);
		if (n > k) {
			b.hi = mid;
			b.at_hi = n;
		} else {
			b.lo = mid;
			b.at_lo = n;
		}
	}
	collect_between(s, b.lo, b.hi, b.at_hi - b.at_lo);
	return pick_some(s->some, b.at_hi - b.at_lo, k - b.at_lo);
}

struct res_interval res_shift(const double *a, size_t na, const double *b,
			      size_t nb)
{
	struct res_interval r = { NAN, NAN, NAN };
	size_t n = na * nb;

	if (!n)
		return r;
	double *sa = res_sorted(a, na), *sb = res_sorted(b, nb);
	struct differences s = { sa, sb, na, nb, NULL, 0 };
	r.value = n % 2 ? select_nth(&s, n / 2) :
			  select_nth(&s, n / 2 - 1) / 2 +
				  select_nth(&s, n / 2) / 2;
	size_t k = shift_rank(na, nb);
	if (k) {
		r.lo = select_nth(&s, k - 1);
		r.hi = select_nth(&s, n - k);
	}
	free(s.some);
	free(sa);
	free(sb);
	return r;
}

static double *log_each(const double *x, size_t n)
{
	double *l = xcalloc(n ? n : 1, sizeof(*l));

	for (size_t i = 0; i < n; i++) {
		if (!(x[i] > 0)) {
			free(l);
			return NULL;
		}
		l[i] = log(x[i]);
	}
	return l;
}

struct res_interval res_ratio(const double *a, size_t na, const double *b,
			      size_t nb)
{
	struct res_interval r = { NAN, NAN, NAN };
	double *la = log_each(a, na), *lb = la ? log_each(b, nb) : NULL;

	if (lb) {
		r = res_shift(la, na, lb, nb);
		r = (struct res_interval){ exp(r.value), exp(r.lo),
					   exp(r.hi) };
	}
	free(la);
	free(lb);
	return r;
}
