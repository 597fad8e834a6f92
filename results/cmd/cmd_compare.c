/*
 * results/cmd/cmd_compare.c - two sides, case by case.
 */
#include "results/cmd/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the comparison ---- */

struct pair {
	const struct piece *of_a, *of_b; /* in the sides' pieces */
	size_t n_a, n_b;
	struct measured a, b;
	struct effect effect;
	const char *verdict;
};

struct comparison {
	struct show *s;
	struct pieces a, b;
	struct calibrations known;
	struct pair *pair; /* [n] */
	size_t n;
	size_t family; /* rows that chance may decide: they share alpha */
	size_t proven_worse, single, few;
};

static bool has_both(const struct pair *p)
{
	return p->n_a && p->n_b;
}

static bool is_chancy(const struct pair *p)
{
	return has_both(p) && !(p->a.exact && p->b.exact);
}

static const struct piece *any_piece(const struct pair *p)
{
	return p->n_a ? p->of_a : p->of_b;
}

static const char *verdict_of(const struct pair *p)
{
	const struct effect *f = &p->effect;
	const char *better = p->of_a->better;

	if (!f->tested)
		return "inconclusive";
	if (!f->proven)
		return f->exact ? "same" : "~";
	if (!strcmp(better, "none"))
		return "differs";
	if ((f->change.value > 0) != !strcmp(better, "higher"))
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
	*p = (struct pair){ va, vb, n, m, .verdict = "only one side" };
	measured_init(&p->a, va, n);
	measured_init(&p->b, vb, m);
	c->n++;
	c->family += is_chancy(p);
	return true;
}

/* Every row gets its part of alpha, so that all together keep it (Bonferroni). */
static void judge_pairs(struct comparison *c)
{
	double alpha = c->s->o.alpha / (double)(c->family ? c->family : 1);

	for (size_t i = 0; i < c->n; i++) {
		struct pair *p = &c->pair[i];
		if (!has_both(p))
			continue;
		p->effect = effect_of(&p->a, &p->b, alpha,
				      calibrated_drift(&c->known, p->of_a));
		p->verdict = verdict_of(p);
		c->single += is_chancy(p) && (p->a.n == 1 || p->b.n == 1);
		c->few += !p->effect.tested && p->a.n > 1 && p->b.n > 1;
		c->proven_worse += !strcmp(p->verdict, "worse") &&
				   fabs(p->effect.change.value) >= c->s->o.least;
	}
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
static void cell_interval(struct table *t, int col, const struct measured *m)
{
	const struct res_interval *i = &m->median;
	double far = fmax(i->hi - i->value, i->value - i->lo);

	if (isnan(i->lo) || i->value == 0 || m->exact)
		table_cell(t, col, "%.4g", i->value);
	else
		table_cell(t, col, "%.4g ±%.*f%%", i->value,
			   far < 0.01 * fabs(i->value),
			   100 * far / fabs(i->value));
}

/* Numbers are never cut on a narrow terminal, names are. */
static const char text_columns[] = "case,metric,#A,#B,#B/A,#p,verdict";
/* Where not all cases were measured by the same number of processes. */
static const char text_columns_n[] = "case,metric,#A,#B,#B/A,#p,#n,verdict";

static void text_row(struct table *t, const struct pair *p)
{
	const struct piece *any = any_piece(p);
	struct buf name = { 0 };

	table_row(t);
	piece_name(any, &name);
	table_cell(t, 0, "%s", name.data);
	buf_fini(&name);
	table_cell(t, 1, "%s (%s)", any->metric, any->unit);
	if (p->n_a)
		cell_interval(t, 2, &p->a);
	if (p->n_b)
		cell_interval(t, 3, &p->b);
	table_cell(t, t->n_cols - 1, "%s", p->verdict);
	if (!has_both(p))
		return;
	const struct res_interval *c = &p->effect.change;
	if (isfinite(c->lo) && isfinite(c->hi) && !p->effect.exact)
		table_cell(t, 4, "%.3f [%.3f,%.3f]", 1 + c->value, 1 + c->lo,
			   1 + c->hi);
	else
		cell_num(t, 4, 4, 1 + c->value);
	if (p->effect.exact)
		table_cell(t, 5, "exact");
	else if (p->effect.p < 0.001)
		table_cell(t, 5, "<.001");
	else
		cell_num(t, 5, 2, p->effect.p);
	if (t->n_cols == 8)
		table_cell(t, 6, "%zu+%zu", p->a.n, p->b.n);
}

static const char data_columns[] =
	"area,case,params,metric,unit,better,#a,#a_lo,#a_hi,#a_n,#b,#b_lo,"
	"#b_hi,#b_n,of,#ratio,#ratio_lo,#ratio_hi,#p,verdict,#detectable";

static void data_side(struct table *t, int col, const struct measured *m)
{
	cell_num(t, col, 17, m->median.value);
	cell_num(t, col + 1, 17, m->median.lo);
	cell_num(t, col + 2, 17, m->median.hi);
	table_cell(t, col + 3, "%zu", m->n);
}

static void data_row(struct table *t, const struct pair *p)
{
	const struct piece *any = any_piece(p);
	const char *const word[] = { any->area, any->name, any->params,
				     any->metric, any->unit, any->better };

	table_row(t);
	for (int i = 0; i < (int)ARRAY_SIZE(word); i++)
		table_cell(t, i, "%s", word[i]);
	if (p->n_a)
		data_side(t, 6, &p->a);
	if (p->n_b)
		data_side(t, 10, &p->b);
	table_cell(t, 14, "%s", p->effect.exact ? "exact" : "processes");
	table_cell(t, 19, "%s", p->verdict);
	if (!has_both(p))
		return;
	cell_num(t, 15, 17, 1 + p->effect.change.value);
	cell_num(t, 16, 17, 1 + p->effect.change.lo);
	cell_num(t, 17, 17, 1 + p->effect.change.hi);
	cell_num(t, 18, 17, p->effect.p);
	cell_num(t, 20, 17, p->effect.detectable);
}

/* One mean per metric: latency and bandwidth improve in opposite directions. */
static void mean_row(struct comparison *c, struct table *t, const char *metric)
{
	double *ratio = xcalloc(c->n, sizeof(*ratio));
	size_t n = 0;
	bool text = c->s->cmd.format == TABLE_TEXT;

	for (size_t i = 0; i < c->n; i++) {
		const struct pair *p = &c->pair[i];
		if (has_both(p) && !strcmp(p->of_a->metric, metric) &&
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
		const char *metric = any_piece(&c->pair[i])->metric;
		bool seen = false;
		for (size_t j = 0; j < i && !seen; j++)
			seen = !strcmp(metric, any_piece(&c->pair[j])->metric);
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
		if (!has_both(p))
			continue;
		if (!first)
			first = p;
		if (p->a.n != first->a.n || p->b.n != first->b.n)
			return NULL;
	}
	return first;
}

/* Processes a side: two of each in a block, which can fall in six ways. */
static size_t turns_needed(double alpha)
{
	return 2 * (size_t)ceil(log(2 / alpha) / log(6));
}

/* How the verdicts came about; below the table. */
static void print_method(const struct comparison *c, const struct pair *same)
{
	FILE *out = c->s->cmd.out;
	double worst = 0;
	bool after = false;

	if (same)
		fprintf(out, "n: %zu+%zu processes, each one's median\n",
			same->a.n, same->b.n);
	if (!c->family)
		return;
	fprintf(out, "method: rank test of processes, in blocks of those that "
		"ran in turns; %.3g shared by %zu rows (Bonferroni)\n",
		c->s->o.alpha, c->family);
	for (size_t i = 0; i < c->n; i++) {
		const struct effect *f = &c->pair[i].effect;
		if (!is_chancy(&c->pair[i]) || !f->tested)
			continue;
		worst = fmax(worst, f->detectable);
		after |= !f->turns;
	}
	if (worst > 0)
		fprintf(out, "detectable: changes of %.3g %% in the noisiest "
			"row, 19 times of 20\n", 100 * worst);
	if (after)
		fputs("the sides ran one after the other: what drifted between "
		      "them is in the ratios (t0-results bench runs them in "
		      "turns)\n", out);
	if (c->single)
		fprintf(out, "%zu row%s compare%s one process: its luck is not "
			"known, so nothing is proven; measure with several, "
			"t0-results bench -- COMMAND\n", c->single,
			c->single == 1 ? "" : "s", c->single == 1 ? "s" : "");
	if (c->few)
		fprintf(out, "%zu row%s too few processes to prove anything "
			"among %zu rows: a side of %zu that takes turns can\n",
			c->few, c->few == 1 ? " has" : "s have", c->family,
			turns_needed(c->s->o.alpha / (double)c->family));
	calibrations_print(&c->known, &c->a, out);
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
	if (ok && text)
		print_method(c, same);
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
		  side_load(s, c->argv[1], &x.b, e) && pair_up(&x, e) &&
		  calibrations_load(s->db, &x.known, e);

	if (ok) {
		judge_pairs(&x);
		remark_differences(&x);
		ok = print_comparison(&x, e);
		c->status = x.proven_worse ? EXIT_NO : EXIT_YES;
	}
	for (size_t i = 0; i < x.n; i++) {
		measured_fini(&x.pair[i].a);
		measured_fini(&x.pair[i].b);
	}
	free(x.pair);
	calibrations_fini(&x.known);
	pieces_fini(&x.a);
	pieces_fini(&x.b);
	return ok;
}
