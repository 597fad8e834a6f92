/*
 * results/stats/stats.c and rank.c against R and scipy: tests/data/stats, made
 * by the programs beside them.  A relative difference of 1e-12 fails.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "results/stats/stats.h"
#include "tests/tap.h"

struct vector {
	const char *what;
	double *a, *b, *want;
	size_t na, nb, n_want;
};

static size_t numbers(char *text, double **out)
{
	size_t n = 0;

	*out = xcalloc(strlen(text) + 1, sizeof(**out));
	for (char *end; strcmp(text, "-"); text = end) {
		double v = strtod(text, &end);
		if (end == text)
			break;
		(*out)[n++] = v;
	}
	return n;
}

/* What the code under test says in the same order as the file. */
static size_t compute(const struct vector *v, double got[3])
{
	struct res_interval i = { NAN, NAN, NAN };
	struct res_rank_test t;
	struct res_fences f;
	const char *w = v->what;

	if (!strcmp(w, "median"))
		i = res_median(v->a, v->na);
	else if (!strcmp(w, "shift") || !strcmp(w, "shift-value"))
		i = res_shift(v->a, v->na, v->b, v->nb);
	else if (!strcmp(w, "ratio"))
		i = res_ratio(v->a, v->na, v->b, v->nb);
	else if (!strcmp(w, "mad"))
		i.value = res_mad(v->a, v->na);
	else if (!strcmp(w, "relative-mad"))
		i.value = res_relative_mad(v->a, v->na);
	else if (!strcmp(w, "geomean"))
		i.value = res_geomean(v->a, v->na);
	got[0] = i.value;
	got[1] = i.lo;
	got[2] = i.hi;
	if (!strcmp(w, "quantile")) {
		double *s = res_sorted(v->a, v->na);
		got[0] = res_quantile(s, v->na, v->b[0]);
		free(s);
	} else if (!strcmp(w, "mann-whitney")) {
		t = res_mann_whitney(v->a, v->na, v->b, v->nb);
		got[0] = t.u;
		got[1] = t.p;
		got[2] = t.exact;
	} else if (!strcmp(w, "outliers")) {
		f = res_outliers(v->a, v->na);
		got[0] = f.lo;
		got[1] = f.hi;
		got[2] = (double)f.outside;
	}
	return v->n_want;
}

static bool close_to(double got, double want)
{
	return fabs(got - want) <= 1e-12 * fmax(1, fabs(want)) &&
	       fabs(got - want) <= 1e-9 * fabs(want);
}

static void check(const struct vector *v, const char *file, int line)
{
	double got[3];
	bool good = v->n_want > 0;

	compute(v, got);
	for (size_t i = 0; i < v->n_want; i++) {
		if (close_to(got[i], v->want[i]))
			continue;
		diag("value %zu: got %.17g, wanted %.17g", i, got[i],
		     v->want[i]);
		good = false;
	}
	ok(good, "%s:%d: %s of %zu and %zu", file, line, v->what, v->na, v->nb);
}

static void check_line(char *text, const char *file, int line)
{
	struct vector v = { .what = strtok(text, "\t") };
	char *a = strtok(NULL, "\t"), *b = strtok(NULL, "\t");
	char *want = strtok(NULL, "\t");

	if (!ok(want != NULL, "%s:%d has four columns", file, line))
		return;
	v.na = numbers(a, &v.a);
	v.nb = numbers(b, &v.b);
	v.n_want = numbers(want, &v.want);
	check(&v, file, line);
	free(v.a);
	free(v.b);
	free(v.want);
}

static void check_file(const char *name)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	char path[128], *save = NULL;
	int line = 0;

	snprintf(path, sizeof(path), "tests/data/stats/%s", name);
	if (!ok(file_read(path, 0, &text, &e), "%s is read: %s", name, e.msg))
		return;
	for (char *l = strtok_r(text.data, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save))
		if (++line && *l != '#')
			check_line(l, name, line);
	ok(line > 50, "%s holds vectors", name);
	buf_fini(&text);
}

static void test_few(void)
{
	const double x[] = { 3, 1, 2, 5, 4, 9 };
	struct res_interval m = res_median(x, 5);

	is_f64(m.value, 3, "the median of five");
	ok(isnan(m.lo) && isnan(m.hi), "five samples have no interval");
	m = res_median(x, 6);
	is_f64(m.lo, 1, "six samples: the interval begins at the least");
	is_f64(m.hi, 9, "and ends at the greatest");
	ok(isnan(res_median(x, 0).value), "no samples have no median");
	m = res_shift(x, 3, x + 3, 3);
	is_f64(m.value, 3, "three against three have a shift");
	ok(isnan(m.lo), "but no interval: 2 of 20 orders are too many");
	struct res_rank_test t = res_mann_whitney(x, 0, x, 3);
	is_f64(t.p, 1, "nothing against something proves nothing");
	const double same[] = { 7, 7, 7, 7, 7, 7, 7, 7 };
	is_f64(res_mann_whitney(same, 4, same, 8).p, 1, "equal samples: p = 1");
	is_f64(res_shift(same, 4, same, 8).hi, 0, "and no shift");
	const double mixed[] = { 1, 2, 0 };
	ok(isnan(res_ratio(x, 3, mixed, 3).value), "no ratio with a zero");
	ok(isnan(res_geomean(mixed, 3)), "nor a geometric mean");
}

/* By hand: {1, 2, 3} below {4, 5, 6}: 1 of C(6,3) = 20 orders each way. */
static void test_by_hand(void)
{
	const double a[] = { 1, 2, 3 }, b[] = { 4, 5, 6 };
	struct res_rank_test t = res_mann_whitney(a, 3, b, 3);

	is_f64(t.u, 0, "no pair of a lies above b");
	is_f64(t.p, 0.1, "p is 2 / 20");
	t = res_mann_whitney(b, 3, a, 3);
	is_f64(t.u, 9, "all nine pairs the other way");
	is_f64(t.p, 0.1, "with the same p");
}

/* The walk along the staircase must find what sorting all of them finds. */
static void test_many(void)
{
	enum { N = 300 };
	static double a[N], b[N], d[N * N];
	uint64_t state = 12345;

	diag("seed %llu", (unsigned long long)state);
	for (int i = 0; i < N; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		a[i] = (double)(int64_t)(state >> 40) - 8e6;
		state = state * 6364136223846793005u + 1442695040888963407u;
		b[i] = (double)(int64_t)(state >> 42) / 3 - 2e6;
	}
	for (int i = 0; i < N * N; i++)
		d[i] = b[i % N] - a[i / N];
	double *s = res_sorted(d, N * N);
	struct res_interval r = res_shift(a, N, b, N);
	is_f64(r.value, s[N * N / 2 - 1] / 2 + s[N * N / 2] / 2,
	       "the median of 90,000 differences");
	/* 45,000 - 1.959964 * sqrt(90,000 * 601 / 12) = 40,838.8 */
	is_f64(r.lo, s[40838 - 1], "its interval begins at the 40,838th");
	is_f64(r.hi, s[N * N - 40838], "and ends as far from the end");
	free(s);
}

int main(void)
{
	test_few();
	test_by_hand();
	test_many();
	check_file("from-r.tsv");
	check_file("from-scipy.tsv");
	return plan_done();
}
