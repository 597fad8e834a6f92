/*
 * results/cmd/cmd_compare.c - two sides, case by case.
 */
#include "results/cmd/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the effect of one measurement against another ---- */

static bool is_exact(const struct piece *p)
{
	return p->n >= 1 && p->lo == p->value && p->hi == p->value &&
	       p->n_samples < RES_MIN_SAMPLES;
}

static struct res_interval as_change(struct res_interval i, double scale,
				     double off)
{
	return (struct res_interval){ i.value * scale + off, i.lo * scale + off,
				      i.hi * scale + off };
}

static struct res_interval change_of(const struct piece *a,
				     const struct piece *b)
{
	struct res_interval r = res_ratio(a->samples, a->n_samples, b->samples,
					  b->n_samples);
	if (!isnan(r.value))
		return as_change(r, 1, -1);
	/* Values at or below zero have no ratio: the shift as a share. */
	r = res_shift(a->samples, a->n_samples, b->samples, b->n_samples);
	double m = fabs(res_median(a->samples, a->n_samples).value);
	return as_change(r, m > 0 ? 1 / m : r.value == 0 ? 0 : INFINITY, 0);
}

struct effect effect_of(const struct piece *a, const struct piece *b)
{
	double c = a->value == b->value ? 0 :
		   a->value != 0 ? (b->value - a->value) / fabs(a->value) :
				   copysign(INFINITY, b->value - a->value);
	struct effect f = { { c, NAN, NAN }, NAN, false };

	if (is_exact(a) && is_exact(b)) {
		f.change.lo = f.change.hi = c;
		f.p = c != 0 ? 0 : 1;
		f.tested = true;
	} else if (a->n_samples >= RES_MIN_SAMPLES &&
		   b->n_samples >= RES_MIN_SAMPLES) {
		f.change = change_of(a, b);
		f.p = res_mann_whitney(a->samples, a->n_samples, b->samples,
				       b->n_samples).p;
		f.tested = true;
	}
	return f;
}

/* ---- several runs of a side become one ---- */

/* A run's median is the sample of a process; six processes can be ranked. */
static bool has_enough_runs(size_t n)
{
	return n >= RES_MIN_SAMPLES;
}

static struct piece join_runs(const struct piece *v, size_t n, bool by_run)
{
	struct piece p = v[0];
	size_t cap = n, k = 0;

	for (size_t i = 0; i < n; i++)
		cap += v[i].n_samples;
	p.samples = xcalloc(cap, sizeof(*p.samples));
	p.n_samples = 0;
	for (size_t i = 0; i < n; i++) {
		for (k = 0; !by_run && k < v[i].n_samples; k++)
			p.samples[p.n_samples++] = v[i].samples[k];
		if (by_run)
			p.samples[p.n_samples++] = v[i].value;
		if (v[i].correct && strcmp(v[i].correct, "pass"))
			p.correct = v[i].correct;
	}
	if (n > 1 || by_run) {
		struct res_interval m = res_median(p.samples, p.n_samples);
		p.value = p.n_samples ? m.value : p.value;
		p.lo = m.lo;
		p.hi = m.hi;
		p.n = (int64_t)p.n_samples;
	}
	return p;
}

/* ---- the comparison ---- */

struct pair {
	struct piece a, b;
	bool have_a, have_b, by_run;
	struct effect effect;
	const char *verdict;
};

struct comparison {
	struct show *s;
	struct pieces a, b;
	struct pair *pair; /* [n] */
	size_t n;
	size_t proven_worse;
};

static const char *verdict_of(const struct pair *p, double alpha)
{
	const struct effect *f = &p->effect;

	if (!f->tested || !(f->p < alpha) || f->change.value == 0)
		return "~";
	if (!strcmp(p->a.better, "none"))
		return "differs";
	bool up = f->change.value > 0;
	if (up != !strcmp(p->a.better, "higher"))
		return "worse";
	if (p->b.correct && strcmp(p->b.correct, "pass"))
		return "better, but wrong";
	return p->b.correct ? "better" : "better, unchecked";
}

/* All pieces of one measurement must agree with the first of side a. */
static bool check_all(struct comparison *c, const struct piece *first,
		      const struct piece *v, size_t n, struct err *e)
{
	struct buf name = { 0 };
	struct mismatch m;
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		if (pieces_comparable(first, &v[i], false, &c->s->o.allow,
				      &m))
			continue;
		piece_name(first, &name);
		ok = err_set(e, ERR_INPUT,
			     "these sides cannot be compared: %s is %s on one "
			     "and %s on the other%s (%s, runs %lld and %lld); "
			     "--allow %s compares them all the same",
			     m.field, m.a, m.b, m.remedy, name.data,
			     (long long)first->facts->run,
			     (long long)v[i].facts->run, m.field);
	}
	buf_fini(&name);
	return ok;
}

static size_t group_len(const struct pieces *p, size_t i)
{
	size_t n = 0;

	while (i + n < p->n && !piece_order(&p->v[i], &p->v[i + n]))
		n++;
	return n;
}

static bool add_pair(struct comparison *c, size_t i, size_t n, size_t j,
		     size_t m, struct err *e)
{
	struct pair *p = &c->pair[c->n];
	const struct piece *va = c->a.v + i, *vb = c->b.v + j;
	const struct piece *first = n ? va : vb;

	if (!check_all(c, first, va, n, e) || !check_all(c, first, vb, m, e))
		return false;
	c->n++;
	p->have_a = n > 0;
	p->have_b = m > 0;
	p->by_run = has_enough_runs(n) && has_enough_runs(m);
	if (n)
		p->a = join_runs(va, n, p->by_run);
	if (m)
		p->b = join_runs(vb, m, p->by_run);
	p->verdict = "only one side";
	if (!n || !m)
		return true;
	p->effect = effect_of(&p->a, &p->b);
	p->verdict = verdict_of(p, c->s->o.alpha);
	c->proven_worse += !strcmp(p->verdict, "worse") &&
			   fabs(p->effect.change.value) >= c->s->o.least;
	return true;
}

static bool pair_up(struct comparison *c, struct err *e)
{
	size_t i = 0, j = 0;

	c->pair = xcalloc(c->a.n + c->b.n, sizeof(*c->pair));
	while (i < c->a.n || j < c->b.n) {
		int o = i >= c->a.n ? 1 : j >= c->b.n ? -1 :
			piece_order(&c->a.v[i], &c->b.v[j]);
		size_t n = o <= 0 ? group_len(&c->a, i) : 0;
		size_t m = o >= 0 ? group_len(&c->b, j) : 0;
		if (!add_pair(c, i, n, j, m, e))
			return false;
		i += n;
		j += m;
	}
	return true;
}

/* ---- printing ---- */

static void cell_num(struct table *t, int col, int digits, double v)
{
	if (isfinite(v))
		table_cell(t, col, "%.*g", digits, v);
}

/* "1.25 ±2.1%": the farther end of the interval, as a share. */
static void cell_interval(struct table *t, int col, const struct piece *p)
{
	double far = fmax(p->hi - p->value, p->value - p->lo);

	if (isnan(p->lo) || p->value == 0)
		table_cell(t, col, "%.4g", p->value);
	else
		table_cell(t, col, "%.4g ±%.*f%%", p->value,
			   far < 0.01 * fabs(p->value),
			   100 * far / fabs(p->value));
}

/* Numbers are never cut on a narrow terminal, names are. */
static const char text_columns[] = "case,metric,#A,#B,#B/A,#p,verdict";
/* Where not all cases have the same number of samples. */
static const char text_columns_n[] = "case,metric,#A,#B,#B/A,#p,#n,verdict";

static void text_row(struct table *t, const struct pair *p)
{
	const struct piece *any = p->have_a ? &p->a : &p->b;
	struct buf name = { 0 };

	table_row(t);
	piece_name(any, &name);
	table_cell(t, 0, "%s", name.data);
	buf_fini(&name);
	table_cell(t, 1, "%s (%s)", any->metric, any->unit);
	if (p->have_a)
		cell_interval(t, 2, &p->a);
	if (p->have_b)
		cell_interval(t, 3, &p->b);
	table_cell(t, t->n_cols - 1, "%s", p->verdict);
	if (!p->have_a || !p->have_b)
		return;
	const struct res_interval *c = &p->effect.change;
	if (isfinite(c->lo))
		table_cell(t, 4, "%.3f [%.3f,%.3f]", 1 + c->value, 1 + c->lo,
			   1 + c->hi);
	else
		cell_num(t, 4, 4, 1 + c->value);
	if (p->effect.p < 0.001)
		table_cell(t, 5, "<.001");
	else
		cell_num(t, 5, 2, p->effect.p);
	if (t->n_cols == 8)
		table_cell(t, 6, "%zu+%zu", p->a.n_samples, p->b.n_samples);
}

static const char data_columns[] =
	"area,case,params,metric,unit,better,#a,#a_lo,#a_hi,#a_n,#b,#b_lo,"
	"#b_hi,#b_n,of,#ratio,#ratio_lo,#ratio_hi,#p,verdict";

static void data_side(struct table *t, int col, const struct piece *p)
{
	cell_num(t, col, 17, p->value);
	cell_num(t, col + 1, 17, p->lo);
	cell_num(t, col + 2, 17, p->hi);
	table_cell(t, col + 3, "%zu", p->n_samples);
}

static void data_row(struct table *t, const struct pair *p)
{
	const struct piece *any = p->have_a ? &p->a : &p->b;
	const char *const word[] = { any->area, any->name, any->params,
				     any->metric, any->unit, any->better };

	table_row(t);
	for (int i = 0; i < (int)ARRAY_SIZE(word); i++)
		table_cell(t, i, "%s", word[i]);
	if (p->have_a)
		data_side(t, 6, &p->a);
	if (p->have_b)
		data_side(t, 10, &p->b);
	table_cell(t, 14, "%s", p->by_run ? "runs" : "samples");
	table_cell(t, 19, "%s", p->verdict);
	if (!p->have_a || !p->have_b)
		return;
	cell_num(t, 15, 17, 1 + p->effect.change.value);
	cell_num(t, 16, 17, 1 + p->effect.change.lo);
	cell_num(t, 17, 17, 1 + p->effect.change.hi);
	cell_num(t, 18, 17, p->effect.p);
}

/* One mean per metric: latency and bandwidth improve in opposite directions. */
static void mean_row(struct comparison *c, struct table *t, const char *metric)
{
	double *ratio = xcalloc(c->n, sizeof(*ratio));
	size_t n = 0;
	bool text = c->s->cmd.format == TABLE_TEXT;

	for (size_t i = 0; i < c->n; i++) {
		const struct pair *p = &c->pair[i];
		if (p->have_a && p->have_b && !strcmp(p->a.metric, metric) &&
		    1 + p->effect.change.value > 0)
			ratio[n++] = 1 + p->effect.change.value;
	}
	if (n && text) {
		table_row(t);
		for (int i = 0; i < t->n_cols; i++)
			table_cell(t, i, "%s", "");
		table_cell(t, 0, "geometric mean");
		table_cell(t, 1, "%s", metric);
		table_cell(t, 4, "%.3f", res_geomean(ratio, n));
		table_cell(t, t->n_cols - 1, "of %zu", n);
	} else if (n) {
		table_row(t);
		table_cell(t, 1, "geometric mean");
		table_cell(t, 3, "%s", metric);
		table_cell(t, 14, "%zu cases", n);
		table_cell(t, 15, "%.17g", res_geomean(ratio, n));
	}
	free(ratio);
}

static void mean_rows(struct comparison *c, struct table *t)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct pair *p = &c->pair[i];
		const char *metric = (p->have_a ? &p->a : &p->b)->metric;
		bool seen = false;
		for (size_t j = 0; j < i && !seen; j++)
			seen = !strcmp(metric, (c->pair[j].have_a ?
						&c->pair[j].a :
						&c->pair[j].b)->metric);
		if (!seen)
			mean_row(c, t, metric);
	}
}

/* The first pair that has both sides, if all those count alike; else NULL. */
static const struct pair *same_counts(const struct comparison *c)
{
	const struct pair *first = NULL;

	for (size_t i = 0; i < c->n; i++) {
		const struct pair *p = &c->pair[i];
		if (!p->have_a || !p->have_b)
			continue;
		if (!first)
			first = p;
		if (p->a.n_samples != first->a.n_samples ||
		    p->b.n_samples != first->b.n_samples ||
		    p->by_run != first->by_run)
			return NULL;
	}
	return first;
}

static bool print_comparison(struct comparison *c, struct err *e)
{
	bool text = c->s->cmd.format == TABLE_TEXT;
	const struct pair *same = same_counts(c);
	struct table t;

	table_init(&t, !text ? data_columns : same ? text_columns :
						     text_columns_n);
	for (size_t i = 0; i < c->n; i++)
		(text ? text_row : data_row)(&t, &c->pair[i]);
	mean_rows(c, &t);
	bool ok = table_print(&t, c->s->cmd.format, c->s->cmd.out, e);
	if (ok && text && same)
		fprintf(c->s->cmd.out, "n: %zu+%zu %s\n", same->a.n_samples,
			same->b.n_samples, same->by_run ?
			"runs, each run's median is a sample" : "samples");
	table_fini(&t);
	return ok;
}

/* Facts that may differ but explain much; on stderr, not in the result. */
static void remark_difference(struct comparison *c, const char *what,
			      const char *a, const char *b)
{
	if (a && b && strcmp(a, b))
		cmd_remark(&c->s->cmd, "note: %s differs: %s and %s", what, a,
			   b);
}

static void remark_differences(struct comparison *c)
{
	const struct facts *a = c->a.v[0].facts, *b = c->b.v[0].facts;

	remark_difference(c, "driver", a->driver, b->driver);
	remark_difference(c, "firmware", a->firmware, b->firmware);
	remark_difference(c, "kernel", a->kernel, b->kernel);
	remark_difference(c, "compiler", a->compiler, b->compiler);
	remark_difference(c, "build flags", a->flags, b->flags);
}

bool res_cmd_compare(struct cmd *c, struct err *e)
{
	struct show *s = (struct show *)c;
	struct comparison x = { .s = s };
	bool ok = side_load(s, c->argv[0], &x.a, e) &&
		  side_load(s, c->argv[1], &x.b, e) && pair_up(&x, e);

	if (ok) {
		remark_differences(&x);
		ok = print_comparison(&x, e);
		c->status = x.proven_worse ? EXIT_NO : EXIT_YES;
	}
	for (size_t i = 0; i < x.n; i++) {
		free(x.pair[i].a.samples);
		free(x.pair[i].b.samples);
	}
	free(x.pair);
	pieces_fini(&x.a);
	pieces_fini(&x.b);
	return ok;
}
