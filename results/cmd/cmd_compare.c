/*
 * results/cmd/cmd_compare.c - two sides, case by case.
 */
#include "results/cmd/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the comparison ---- */

struct comparison {
	struct show *s;
	struct pieces a, b;
	struct calibrations known;
	struct pairs pairs;
	size_t single, few; /* rows: one process; too few of them */
};

static void count_weak(struct comparison *c)
{
	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct pair *p = &c->pairs.v[i];
		if (!pair_has_both(p))
			continue;
		c->single += pair_is_chancy(p) && (p->a.n == 1 || p->b.n == 1);
		c->few += !p->effect.tested && p->a.n > 1 && p->b.n > 1;
	}
}

/* ---- printing ---- */

static void cell_num(struct table *t, int col, int digits, double v)
{
	if (isfinite(v))
		table_cell(t, col, "%.*g", digits, v);
}

/* "1.25 ±2.1%": the farther end of the interval, as a share; `by`: the unit. */
static void cell_interval(struct table *t, int col, const struct measured *m,
			  double by)
{
	const struct res_interval *i = &m->median;
	double far = fmax(i->hi - i->value, i->value - i->lo);

	if (isnan(i->lo) || i->value == 0 || m->exact)
		table_cell(t, col, "%.4g", i->value * by);
	else
		table_cell(t, col, "%.4g ±%.*f%%", i->value * by,
			   far < 0.01 * fabs(i->value),
			   100 * far / fabs(i->value));
}

/* Numbers are never cut on a narrow terminal, names are. */
static const char text_columns[] = "case,metric,#A,#B,#B/A,#p,verdict";
/* Where not all cases were measured by the same number of processes. */
static const char text_columns_n[] = "case,metric,#A,#B,#B/A,#p,#n,verdict";

static void text_row(struct table *t, const struct pair *p)
{
	const struct piece *any = pair_piece(p);
	const struct measured *m = p->n_a ? &p->a : &p->b;
	const char *unit;
	const double by = unit_scale(m->median.value, any->unit, &unit);
	struct buf name = { 0 };

	table_row(t);
	piece_title(any, &name);
	table_cell(t, 0, "%s", name.data);
	buf_fini(&name);
	table_cell(t, 1, "%s (%s)", any->metric, unit);
	if (p->n_a)
		cell_interval(t, 2, &p->a, by);
	if (p->n_b)
		cell_interval(t, 3, &p->b, by);
	table_cell(t, t->n_cols - 1, "%s", p->verdict);
	if (!pair_has_both(p))
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
	const struct piece *any = pair_piece(p);
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
	if (!pair_has_both(p))
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
	double *ratio = xcalloc(c->pairs.n, sizeof(*ratio));
	size_t n = 0;
	bool text = show_is_text(c->s);

	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct pair *p = &c->pairs.v[i];
		if (pair_has_both(p) && !strcmp(p->of_a->metric, metric) &&
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
	for (size_t i = 0; i < c->pairs.n; i++) {
		const char *metric = pair_piece(&c->pairs.v[i])->metric;
		bool seen = false;
		for (size_t j = 0; j < i && !seen; j++)
			seen = !strcmp(metric, pair_piece(&c->pairs.v[j])->metric);
		if (!seen)
			mean_row(c, t, metric);
	}
}

/* The first pair that has both sides, if all those count alike; else NULL. */
static const struct pair *same_counts(const struct comparison *c)
{
	const struct pair *first = NULL;

	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct pair *p = &c->pairs.v[i];
		if (!pair_has_both(p))
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
	if (!c->pairs.family)
		return;
	fold_printf(out, 2,
		    "method: rank test of processes, in blocks of those that "
		    "ran in turns; %.3g shared by %zu rows (Bonferroni)\n",
		    c->s->o.alpha, c->pairs.family);
	for (size_t i = 0; i < c->pairs.n; i++) {
		const struct effect *f = &c->pairs.v[i].effect;
		if (!pair_is_chancy(&c->pairs.v[i]) || !f->tested)
			continue;
		worst = fmax(worst, f->detectable);
		after |= !f->turns;
	}
	if (worst > 0)
		fold_printf(out, 2,
			    "detectable: changes of %.3g %% in the noisiest "
			    "row, 19 times of 20\n",
			    100 * worst);
	if (after)
		fold_printf(out, 2,
			    "the sides ran one after the other: what drifted "
			    "between them is in the ratios (t0-results bench "
			    "runs them in turns)\n");
	if (c->single)
		fold_printf(
			out, 2,
			"%zu row%s compare%s one process: its luck is not "
			"known, so nothing is proven; measure with several, "
			"t0-results bench -- COMMAND\n",
			c->single, c->single == 1 ? "" : "s",
			c->single == 1 ? "s" : "");
	if (c->few)
		fprintf(out, "%zu row%s too few processes to prove anything "
			"among %zu rows: a side of %zu that takes turns can\n",
			c->few, c->few == 1 ? " has" : "s have", c->pairs.family,
			turns_needed(c->s->o.alpha / (double)c->pairs.family));
	calibrations_print(&c->known, &c->a, out);
}

static bool print_comparison(struct comparison *c, struct err *e)
{
	bool text = show_is_text(c->s);
	const struct pair *same = same_counts(c);
	struct table t;

	table_init(&t, !text ? data_columns : same ? text_columns :
						     text_columns_n);
	for (size_t i = 0; i < c->pairs.n; i++)
		(text ? text_row : data_row)(&t, &c->pairs.v[i]);
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
		  side_load(s, c->argv[1], &x.b, e) &&
		  pairs_make(&x.pairs, &x.a, &x.b, &s->o.allow, e) &&
		  calibrations_load(s->db, &x.known, e);

	if (ok) {
		pairs_judge(&x.pairs, s->o.alpha, &x.known);
		count_weak(&x);
		remark_differences(&x);
		ok = print_comparison(&x, e);
		c->status = pairs_worse(&x.pairs, s->o.least) ? EXIT_NO :
								EXIT_YES;
	}
	pairs_fini(&x.pairs);
	calibrations_fini(&x.known);
	pieces_fini(&x.a);
	pieces_fini(&x.b);
	return ok;
}
