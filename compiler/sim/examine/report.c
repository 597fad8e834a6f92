/*
 * compiler/sim/examine/report.c - what an examination found: tables, rows of
 * the database, a picture.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine_int.h"
#include "results/db/results.h"

static const struct set {
	const char *name, *unit;
	double scale; /* to print it */
	bool is_time; /* a time of a published row */
} sets[EXAM_SETS] = {
	[EXAM_TRACES] = { "traces", "cycle", 1, false },
	[EXAM_GEMM] = { "gemm", "us", 1e6, true },
	[EXAM_PAIRS] = { "pairs", "", 1, false },
	[EXAM_SPLIT] = { "split", "us", 1e6, true },
	[EXAM_TILES] = { "tiles", "us", 1e6, true },
	[EXAM_LOOPS] = { "loops", "1/s", 1, false },
	[EXAM_CODE] = { "code", "us", 1e6, true },
};

static double error_of(double predicted, const struct exam_row *row)
{
	return fabs(predicted / row->reference - 1);
}

/* ---- rows ---- */

static void list_number(struct table *t, int column, int digits, double v)
{
	if (!isnan(v))
		table_cell(t, column, "%.*f", digits, v);
}

static void list_row(struct table *t, const struct exam *x,
		     const struct exam_row *row)
{
	const struct set *set = &sets[row->set];

	table_row(t);
	table_cell(t, 0, "%s", set->name);
	table_cell(t, 1, "%s", x->group[row->group].name);
	table_cell(t, 2, "%s", row->name);
	table_cell(t, 3, "%.6g", row->reference * set->scale);
	table_cell(t, 4, "%.6g", row->predicted * set->scale);
	table_cell(t, 5, "%s", set->unit);
	table_cell(t, 6, "%.2f", 100 * error_of(row->predicted, row));
	list_number(t, 7, 2, 100 * row->issue_error);
	list_number(t, 8, 4, row->rank);
	list_number(t, 9, 1, 100 * row->within);
	table_cell(t, 10, "%.6g", row->fitted * set->scale);
	table_cell(t, 11, "%.2f", 100 * error_of(row->fitted, row));
	list_number(t, 12, 0, row->mca);
}

bool exam_print_rows(const struct exam *x, struct err *e)
{
	struct table t;

	table_init(&t, "set,left_out,row,#reference,#predicted,unit,"
		       "#error_percent,#issue_error_percent,#rank,"
		       "#within_a_cycle_percent,#fitted,#fitted_error_percent,"
		       "#llvm_mca");
	for (int i = 0; i < x->n_rows; i++)
		list_row(&t, x, &x->row[i]);
	bool ok = table_print(&t, x->o->format, x->o->out, e);
	table_fini(&t);
	return ok;
}

bool exam_print_fits(const struct exam *x, struct err *e)
{
	struct table t;

	table_init(&t, "parameter,left_out,#value,unit,#costs,#from");
	for (int i = 0; i < x->n_fits; i++) {
		const struct exam_fit *f = &x->fit[i];
		enum cost_row row = f->fit->row;

		table_row(&t);
		table_cell(&t, 0, "%s", cost_row_info(row)->name);
		table_cell(&t, 1, "%s",
			   f->group < 0 ? "" : x->group[f->group].name);
		table_cell(&t, 2, "%.6g", f->value);
		table_cell(&t, 3, "%s", cost_row_info(row)->unit);
		table_cell(&t, 4, "%.6g", cost_value(x->m, row));
		table_cell(&t, 5, "%.6g", f->fit->from);
	}
	bool ok = table_print(&t, x->o->format, x->o->out, e);
	table_fini(&t);
	return ok;
}

/* ---- summary ---- */

/* Which rows a line sums up; -1: any. */
struct choice {
	int set, group;
	bool times; /* all sets of times instead */
};

static bool is_chosen(const struct exam_row *row, const struct choice *c)
{
	return (c->times ? sets[row->set].is_time : (int)row->set == c->set) &&
	       (c->group < 0 || row->group == c->group);
}

/* Sorts v[n] in place; NaN for none. */
static double find_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), sim_compare_numbers);
	return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
}

struct summary {
	size_t n;
	const char *worst_row;
	double median, worst, fitted_median, fitted_worst, issue, rank;
};

/* Of traces the least of theirs; of rows that of one to another. */
static double find_rank(const struct exam *x, const struct choice *c)
{
	double *real = xmalloc(((size_t)x->n_rows + 1) * sizeof(*real));
	double *guess = xmalloc(((size_t)x->n_rows + 1) * sizeof(*guess));
	double least = NAN;
	size_t n = 0;

	for (int i = 0; i < x->n_rows; i++) {
		const struct exam_row *row = &x->row[i];

		if (!is_chosen(row, c))
			continue;
		if (!(row->rank >= least))
			least = row->rank;
		real[n] = row->reference;
		guess[n++] = row->predicted;
	}
	if (c->set != EXAM_TRACES)
		least = n >= 3 ? sim_rank(real, guess, n) : NAN;
	free(real);
	free(guess);
	return least;
}

static struct summary sum_up(const struct exam *x, const struct choice *c)
{
	size_t most = (size_t)x->n_rows + 1;
	double *error = xmalloc(most * sizeof(*error));
	double *fitted = xmalloc(most * sizeof(*fitted));
	double *issue = xmalloc(most * sizeof(*issue));
	struct summary s = { .rank = find_rank(x, c) };
	double worst = -1;

	for (int i = 0; i < x->n_rows; i++) {
		const struct exam_row *row = &x->row[i];

		if (!is_chosen(row, c))
			continue;
		error[s.n] = error_of(row->predicted, row);
		if (error[s.n] > worst) {
			worst = error[s.n];
			s.worst_row = row->name;
		}
		fitted[s.n] = error_of(row->fitted, row);
		issue[s.n++] = row->issue_error;
	}
	s.median = find_median(error, s.n);
	s.fitted_median = find_median(fitted, s.n);
	s.issue = find_median(issue, s.n);
	s.worst = s.n ? worst : NAN;
	s.fitted_worst = s.n ? fitted[s.n - 1] : NAN;
	free(error);
	free(fitted);
	free(issue);
	return s;
}

static void list_summary(struct table *t, const struct exam *x,
			 struct choice c)
{
	struct summary s = sum_up(x, &c);

	if (!s.n)
		return;
	table_row(t);
	table_cell(t, 0, "%s", c.times ? "times" : sets[c.set].name);
	table_cell(t, 1, "%s", c.group < 0 ? "each" : x->group[c.group].name);
	if (c.group >= 0)
		table_cell(t, 2, "%s",
			   x->group[c.group].refitted ? "yes" : "no");
	table_cell(t, 3, "%zu", s.n);
	table_cell(t, 4, "%.2f", 100 * s.median);
	table_cell(t, 5, "%.2f", 100 * s.worst);
	list_number(t, 6, 2, 100 * s.issue);
	list_number(t, 7, 4, s.rank);
	table_cell(t, 8, "%.2f", 100 * s.fitted_median);
	table_cell(t, 9, "%.2f", 100 * s.fitted_worst);
	if (c.group < 0)
		table_cell(t, 10, "%s", s.worst_row);
}

bool exam_print_summary(const struct exam *x, struct err *e)
{
	struct table t;

	table_init(&t, "set,left_out,refitted,#rows,#median_error_percent,"
		       "#worst_error_percent,#issue_error_percent,#rank,"
		       "#fitted_median_percent,#fitted_worst_percent,"
		       "worst_row");
	for (int set = 0; set < EXAM_SETS; set++) {
		for (int g = 0; g < x->n_groups; g++)
			list_summary(&t, x, (struct choice){ set, g, false });
		list_summary(&t, x, (struct choice){ set, -1, false });
	}
	list_summary(&t, x, (struct choice){ -1, -1, true });
	bool ok = table_print(&t, x->o->format, x->o->out, e);
	table_fini(&t);
	return ok;
}

/* ---- ranges ---- */

static bool is_ranged(const struct exam_row *row, bool traces)
{
	return traces ? row->set == EXAM_TRACES : sets[row->set].is_time;
}

/* Of the rows that are not of `group`: measured over predicted. */
static void range_without(const struct exam *x, int group, bool traces,
			  double *least, double *most)
{
	double *v = xmalloc(((size_t)x->n_rows + 1) * sizeof(*v));
	size_t n = 0;

	for (int i = 0; i < x->n_rows; i++)
		if (x->row[i].group != group && is_ranged(&x->row[i], traces))
			v[n++] = x->row[i].reference / x->row[i].predicted;
	sim_spread(v, n, least, most);
	free(v);
}

/* Rows of a group, and those in a range. */
static int count_inside(const struct exam *x, int group, bool traces,
			double least, double most, int *inside)
{
	int n = 0;

	*inside = 0;
	for (int i = 0; i < x->n_rows; i++) {
		const struct exam_row *row = &x->row[i];
		const double ratio = row->reference / row->predicted;

		if (row->group != group || !is_ranged(row, traces))
			continue;
		n++;
		*inside += ratio >= least && ratio <= most;
	}
	return n;
}

static void list_range(struct table *t, bool traces, const char *group, int n,
		       int inside, double least, double most)
{
	table_row(t);
	table_cell(t, 0, "%s", traces ? "ranges of traces" :
					  "ranges of times");
	table_cell(t, 1, "%s", group);
	table_cell(t, 2, "%d", n);
	list_number(t, 3, 3, least);
	list_number(t, 4, 3, most);
	table_cell(t, 5, "%.1f", 100.0 * inside / n);
}

static void list_ranges(struct table *t, const struct exam *x, bool traces)
{
	int all = 0, all_inside = 0;
	double least, most;

	for (int g = 0; g < x->n_groups; g++) {
		int inside, n;

		range_without(x, g, traces, &least, &most);
		n = count_inside(x, g, traces, least, most, &inside);
		/* Without others there is no range. */
		if (!n || isnan(least))
			continue;
		list_range(t, traces, x->group[g].name, n, inside, least, most);
		all += n;
		all_inside += inside;
	}
	range_without(x, -1, traces, &least, &most);
	if (all)
		list_range(t, traces, "each", all, all_inside, least, most);
}

bool exam_print_ranges(const struct exam *x, struct err *e)
{
	struct table t;

	table_init(&t, "set,left_out,#rows,#least,#most,#inside_percent");
	list_ranges(&t, x, true);
	list_ranges(&t, x, false);
	bool ok = table_print(&t, x->o->format, x->o->out, e);
	table_fini(&t);
	return ok;
}

void exam_print_mca(const struct exam *x)
{
	double ours = 0, theirs = 0;
	int n = 0;

	for (int i = 0; i < x->n_rows; i++) {
		const struct exam_row *row = &x->row[i];

		if (isnan(row->mca))
			continue;
		ours += error_of(row->predicted, row);
		theirs += error_of(row->mca, row);
		n++;
	}
	if (!n)
		fold_printf(stderr, 2,
			    "%s: llvm-mca-19 gave no prediction; is it "
			    "installed?\n",
			    x->o->tool);
	else if (!x->o->quiet)
		fold_printf(stderr, 2,
			    "%s: mean error of the whole time of %d "
			    "traces: %.1f %%, llvm-mca-19 on the same "
			    "instructions: %.1f %%\n",
			    x->o->tool, n, 100 * ours / n, 100 * theirs / n);
}

/* ---- database and picture ---- */

static bool store_value(struct res_db *db, int64_t run, int64_t id,
			const char *metric, double value, const char *unit,
			enum res_origin origin, const char *source,
			struct err *e)
{
	struct res_result x = {
		.run = run, .case_id = id, .metric = metric, .unit = unit,
		.value = value, .lo = NAN, .hi = NAN, .n = 1, .clock_hz = NAN,
		.better = RES_NEITHER, .origin = origin, .source = source,
	};

	return res_result_add(db, &x, NULL, e);
}

static bool store_row(const struct exam *x, struct res_db *db, int64_t run,
		      int number, struct err *e)
{
	const struct exam_row *row = &x->row[number];
	const struct set *set = &sets[row->set];
	const char *unit = set->scale > 1 ? "s" : set->unit;
	char params[256];
	int64_t id;

	/* Two rows may be of one configuration: numbers keep them apart. */
	res_params(params, sizeof(params), "set:s left_out:s row:U", set->name,
		   x->group[row->group].name, (uint64_t)number);
	return res_case_id(db, "predict", row->name, params, &id, e) &&
	       store_value(db, run, id, "reference", row->reference, unit,
			   RES_PUBLISHED, row->file, e) &&
	       store_value(db, run, id, "predicted", row->predicted, unit,
			   RES_SIMULATED, NULL, e);
}

static bool store_rows(const struct exam *x, struct res_db *db, struct err *e)
{
	struct res_start start = { .tool = "t0-sim validate" };
	int64_t run;
	bool ok = res_host_self(db, &start.host, e) &&
		  res_build_self(db, &start.build, e) &&
		  res_run_begin(db, &start, &run, e);

	if (!ok)
		return false;
	res_batch_begin(db);
	for (int i = 0; ok && i < x->n_rows; i++)
		ok = store_row(x, db, run, i, e);
	ok = ok && res_batch_end(db, e);
	return ok && res_run_finish(db, run, RES_COMPLETE, 0, NULL, e);
}

bool exam_store(const struct exam *x, struct err *e)
{
	if (!x->o->db)
		return true;
	struct res_db *db = res_open(x->o->db, RES_WRITE, e);
	bool ok = db && store_rows(x, db, e);
	res_close(db);
	return ok;
}

bool exam_draw(const struct exam *x, struct err *e)
{
	size_t n = (size_t)x->n_rows;

	if (!x->o->plot || !n)
		return true;
	double *real = xmalloc(n * sizeof(*real));
	double *guess = xmalloc(n * sizeof(*guess));
	const char **group = xmalloc(n * sizeof(*group));

	for (size_t i = 0; i < n; i++) {
		real[i] = x->row[i].reference;
		guess[i] = x->row[i].predicted;
		group[i] = x->group[x->row[i].group].name;
	}
	bool ok = x->o->draw(real, guess, group, n, x->o->plot, e);
	free(real);
	free(guess);
	free(group);
	return ok;
}
