/*
 * compiler/sim/examine/validate.c - traces and published rows against
 * predictions.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/examine/examine.h"
#include "results/db/results.h"

/* One row of either kind, judged. */
struct row {
	char set[8], name[160], group[256];
	bool judges;
	double reference, predicted; /* cycles or seconds */
	double error, rank;	     /* share of the reference */
	double within;		     /* of a trace: struct vector's */
	double mca;		     /* llvm-mca's cycles; NaN: not asked */
};

/* Sets of rows, and the unit of what is compared. */
static const struct set {
	const char *name, *unit;
	double scale; /* to print it */
} sets[] = {
	{ "traces", "cycle", 1 },
	/* in the order of enum others_class */
	{ "gemm", "us", 1e6 },
	{ "pairs", "", 1 },
	{ "split", "us", 1e6 },
	{ "tiles", "us", 1e6 },
	{ "loops", "1/s", 1 }, /* loops.def */
};

static const struct set *set_of(const struct row *r)
{
	size_t k = 0;

	while (strcmp(sets[k].name, r->set))
		k++;
	return &sets[k];
}

struct rows {
	struct row *v;
	size_t n, cap;
};

static struct row *add_row(struct rows *r)
{
	vec_push(r, (struct row){ .rank = NAN, .within = NAN, .mca = NAN });
	return &r->v[r->n - 1];
}

/* ---- traces ---- */

static void take_vector(struct rows *r, const struct vector *v, bool mca)
{
	struct row *row = add_row(r);

	snprintf(row->set, sizeof(row->set), "traces");
	snprintf(row->name, sizeof(row->name), "%s %s", v->kernel, v->id);
	snprintf(row->group, sizeof(row->group), "%s", v->kernel);
	row->judges = v->judges;
	row->reference = (double)v->duration;
	row->predicted = (double)v->event[v->n - 1].guess;
	row->error = v->error / (double)(v->duration ? v->duration : 1);
	row->rank = v->rank;
	row->within = v->within;
	if (mca)
		row->mca = mca_cycles(v);
}

static bool run_traces(const struct validate *o, const struct cost_model *m,
		       struct rows *r, struct err *e)
{
	struct buf b = { 0 };
	bool ok = file_read(o->traces, 0, &b, e);
	int line = 0;

	for (char *at = b.data, *next; ok && at && *at; at = next) {
		struct vector v;
		char where[300];

		if (o->stop && *o->stop) {
			ok = err_set(e, ERR_STOPPED, "%d traces were predicted,"
				     " nothing is stored", line);
			break;
		}
		next = strchr(at, '\n');
		size_t len = next ? (size_t)(next++ - at) : strlen(at);
		snprintf(where, sizeof(where), "%s:%d", o->traces, ++line);
		ok = vector_parse(&v, at, len, where, e) &&
		     vector_predict(&v, m, e);
		if (ok)
			take_vector(r, &v, o->mca);
		vector_fini(&v);
	}
	buf_fini(&b);
	return ok;
}

/* ---- published rows ---- */

static void take_gemm(void *ctx, const struct others_row *g)
{
	struct row *row = add_row(ctx);

	snprintf(row->set, sizeof(row->set), "%s", sets[1 + g->class].name);
	snprintf(row->name, sizeof(row->name), "%s %dx%dx%d tile %dx%dx%d%s%s",
		 g->system, g->m, g->n, g->k, g->tile.m, g->tile.n, g->tile.k,
		 g->split_k > 1 ? " split" : "",
		 g->class == OTHERS_PAIRS ? " wgp/cu" :
		 g->tile.cu_mode	  ? " cu" :
					    "");
	snprintf(row->group, sizeof(row->group), "%s", g->group);
	row->judges = g->judges;
	row->reference = g->time_s;
	row->predicted = g->predicted_s;
	row->error = fabs(g->predicted_s / g->time_s - 1);
}

/* cost.def cites such rows: none of them judges. */
static void take_loop(void *ctx, const struct loop_row *l)
{
	struct row *row = add_row(ctx);

	snprintf(row->set, sizeof(row->set), "loops");
	snprintf(row->name, sizeof(row->name), "%s", l->name);
	snprintf(row->group, sizeof(row->group), "loops");
	row->reference = l->reference;
	row->predicted = l->predicted;
	row->error = fabs(l->predicted / l->reference - 1);
}

static bool run_rows(const struct validate *o, const struct cost_model *m,
		     struct rows *r, struct err *e)
{
	return others_rows_run(o->perf, m, o->quiet, o->stop, take_gemm, r,
			       e) &&
	       loop_rows_run(o->perf, m, take_loop, r, e);
}

/* ---- summary ---- */

/* Of the total time alone: llvm-mca has no time per instruction. */
static void mca_summary(const struct validate *o, const struct rows *r)
{
	double ours = 0, theirs = 0;
	int n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct row *row = &r->v[i];

		if (isnan(row->mca))
			continue;
		ours += fabs(row->predicted / row->reference - 1);
		theirs += fabs(row->mca / row->reference - 1);
		n++;
	}
	if (!n)
		fprintf(stderr, "%s: llvm-mca-19 gave no prediction; is it "
			"installed?\n", o->tool);
	else if (!o->quiet)
		fprintf(stderr, "%s: mean error of the whole time of %d "
			"traces: %.1f %%, llvm-mca-19 on the same "
			"instructions: %.1f %%\n", o->tool, n,
			100 * ours / n, 100 * theirs / n);
}

struct summary {
	size_t n;
	double median, mean, worst, rank;
};

/* Least rank correlation of a trace; of GEMM groups, their mean. */
static double rank_of_traces(const struct rows *r, bool judges)
{
	double least = NAN;

	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->v[i].set, "traces") &&
		    r->v[i].judges == judges &&
		    !(r->v[i].rank >= least))
			least = r->v[i].rank;
	return least;
}

static bool same_group(const struct row *a, const struct row *b)
{
	return !strcmp(a->set, b->set) && !strcmp(a->group, b->group);
}

/*
 * Configurations of one size by one author, where there are three or more:
 * those that train, or all of them if one judges.  NaN for other groups, and
 * for all but the first row of a group.
 */
static double rank_of_group(const struct rows *r, size_t first, bool judges)
{
	double *x = xmalloc(r->n * sizeof(*x)), *y = xmalloc(r->n * sizeof(*y));
	bool any = !judges;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct row *row = &r->v[i];

		if (!same_group(row, &r->v[first]) || (row->judges && !judges))
			continue;
		if (i < first) {
			n = 0;
			break;
		}
		any |= row->judges;
		x[n] = row->reference;
		y[n++] = row->predicted;
	}
	double rank = n >= 3 && any ? sim_rank(x, y, n) : NAN;
	free(x);
	free(y);
	return rank;
}

static double rank_of_gemm(const struct rows *r, bool judges)
{
	double sum = 0;
	int n = 0;

	for (size_t i = 0; i < r->n; i++) {
		double rank = strcmp(r->v[i].set, "gemm")
				      ? NAN : rank_of_group(r, i, judges);

		if (!isnan(rank)) {
			sum += rank;
			n++;
		}
	}
	return n ? sum / n : NAN;
}

static struct summary sum_up(const struct rows *r, const char *set, bool judges)
{
	double *x = xmalloc((r->n + 1) * sizeof(*x));
	struct summary s = { 0 };

	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->v[i].set, set) && r->v[i].judges == judges) {
			x[s.n++] = r->v[i].error;
			s.mean += r->v[i].error;
		}
	qsort(x, s.n, sizeof(*x), sim_compare_numbers);
	s.mean /= (double)(s.n ? s.n : 1);
	s.median = s.n ? x[s.n / 2] : NAN;
	s.worst = s.n ? x[s.n - 1] : NAN;
	s.rank = !strcmp(set, "traces") ? rank_of_traces(r, judges)
		 : !strcmp(set, "gemm") ? rank_of_gemm(r, judges) : NAN;
	free(x);
	return s;
}

static void summary_row(struct table *t, const struct rows *r, const char *set,
			bool judges)
{
	struct summary s = sum_up(r, set, judges);

	if (!s.n)
		return;
	table_row(t);
	table_cell(t, 0, "%s", set);
	table_cell(t, 1, "%s", judges ? "judge" : "train");
	table_cell(t, 2, "%zu", s.n);
	table_cell(t, 3, "%.2f", 100 * s.median);
	table_cell(t, 4, "%.2f", 100 * s.mean);
	table_cell(t, 5, "%.2f", 100 * s.worst);
	if (!isnan(s.rank))
		table_cell(t, 6, "%.4f", s.rank);
}

static bool print_summary(const struct validate *o, const struct rows *r,
			  struct err *e)
{
	struct table t;

	table_init(&t, "set,split,#rows,#median_error_percent,"
		       "#mean_error_percent,#worst_error_percent,#rank");
	for (size_t k = 0; k < 2 * ARRAY_SIZE(sets); k++)
		summary_row(&t, r, sets[k / 2].name, k % 2);
	bool ok = table_print(&t, o->format, o->out, e);
	table_fini(&t);
	return ok;
}

static bool print_rows(const struct validate *o, const struct rows *r,
		       struct err *e)
{
	struct table t;

	table_init(&t, "set,split,row,#reference,#predicted,unit,"
		       "#error_percent,#rank,#within_a_cycle_percent,"
		       "#llvm_mca");
	for (size_t i = 0; i < r->n; i++) {
		const struct row *row = &r->v[i];
		const struct set *set = set_of(row);

		table_row(&t);
		table_cell(&t, 0, "%s", row->set);
		table_cell(&t, 1, "%s", row->judges ? "judge" : "train");
		table_cell(&t, 2, "%s", row->name);
		table_cell(&t, 3, "%.6g", row->reference * set->scale);
		table_cell(&t, 4, "%.6g", row->predicted * set->scale);
		table_cell(&t, 5, "%s", set->unit);
		table_cell(&t, 6, "%.2f", 100 * row->error);
		if (!isnan(row->rank))
			table_cell(&t, 7, "%.4f", row->rank);
		if (!isnan(row->within))
			table_cell(&t, 8, "%.1f", 100 * row->within);
		if (!isnan(row->mca))
			table_cell(&t, 9, "%.0f", row->mca);
	}
	bool ok = table_print(&t, o->format, o->out, e);
	table_fini(&t);
	return ok;
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

static bool store_row(struct res_db *db, int64_t run, const struct row *row,
		      size_t number, const char *file, struct err *e)
{
	const struct set *set = set_of(row);
	const char *unit = set->scale > 1 ? "s" : set->unit;
	char params[96], name[64];
	int64_t id;

	/* Two rows may be of one configuration: numbers keep them apart. */
	snprintf(name, sizeof(name), "%s %s", row->set,
		 row->judges ? "judge" : "train");
	res_params(params, sizeof(params), "set:s row:U", name,
		   (uint64_t)number);
	return res_case_id(db, "predict", row->name, params, &id, e) &&
	       store_value(db, run, id, "reference", row->reference, unit,
			   RES_PUBLISHED, file, e) &&
	       store_value(db, run, id, "predicted", row->predicted, unit,
			   RES_SIMULATED, NULL, e);
}

static bool store_rows(const struct validate *o, const struct rows *r,
		       struct res_db *db, struct err *e)
{
	struct res_start start = { .tool = "t0-sim validate" };
	int64_t run;
	bool ok = res_host_self(db, &start.host, e) &&
		  res_build_self(db, &start.build, e) &&
		  res_run_begin(db, &start, &run, e);

	if (!ok)
		return false;
	res_batch_begin(db);
	for (size_t i = 0; ok && i < r->n; i++)
		ok = store_row(db, run, &r->v[i], i,
			       !strcmp(r->v[i].set, "traces") ? o->traces :
								o->perf,
			       e);
	ok = ok && res_batch_end(db, e);
	return ok && res_run_finish(db, run, RES_COMPLETE, 0, NULL, e);
}

static bool store_all(const struct validate *o, const struct rows *r,
		      struct err *e)
{
	if (!o->db)
		return true;
	struct res_db *db = res_open(o->db, RES_WRITE, e);
	bool ok = db && store_rows(o, r, db, e);
	res_close(db);
	return ok;
}

static bool draw_rows(const struct validate *o, const struct rows *r,
		      struct err *e)
{
	double *x = xmalloc((r->n + 1) * sizeof(*x));
	double *y = xmalloc((r->n + 1) * sizeof(*y));
	const char **g = xmalloc((r->n + 1) * sizeof(*g));

	for (size_t i = 0; i < r->n; i++) {
		x[i] = r->v[i].reference;
		y[i] = r->v[i].predicted;
		g[i] = r->v[i].group;
	}
	bool ok = o->draw(x, y, g, r->n, o->plot, e);
	free(x);
	free(y);
	free(g);
	return ok;
}

bool validate_run(const struct validate *o, const struct cost_model *m,
		  struct err *e)
{
	struct rows r = { 0 };

	if (!o->traces && !o->perf)
		return err_set(e, ERR_USAGE, "validate against what?  Wanted "
			       "--traces FILE.jsonl or --perf FILE.csv");
	bool ok = (!o->traces || run_traces(o, m, &r, e)) &&
		  (!o->perf || run_rows(o, m, &r, e));
	if (ok && o->mca)
		mca_summary(o, &r);
	ok = ok && (!o->rows || print_rows(o, &r, e)) &&
	     print_summary(o, &r, e) && store_all(o, &r, e) &&
	     (!o->plot || !r.n || draw_rows(o, &r, e));
	free(r.v);
	return ok;
}
