/*
 * compiler/sim/examine/validate.c - measurements against predictions: read, as
 * the costs are, and with those fitted again without each kernel and source.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/examine/examine_int.h"

static int find_group(struct exam *x, const char *name)
{
	for (int i = 0; i < x->n_groups; i++)
		if (!strcmp(x->group[i].name, name))
			return i;
	VEC_GROW(x->group, x->n_groups, 1, x->cap_groups);
	x->group[x->n_groups] = (struct exam_group){
		.name = arena_strdup(&x->mem, name),
		.refitted = fit_knows(name),
	};
	return x->n_groups++;
}

static struct exam_row *add_row(struct exam *x, enum exam_set set,
				const char *group)
{
	int g = find_group(x, group);

	VEC_GROW(x->row, x->n_rows, 1, x->cap_rows);
	x->row[x->n_rows] = (struct exam_row){
		.set = set, .file = x->file, .group = g, .issue_error = NAN,
		.rank = NAN, .within = NAN, .mca = NAN, .at = -1,
	};
	return &x->row[x->n_rows++];
}

/* ---- traces ---- */

/* What the last vector_predict() said. */
static void take_prediction(struct exam_row *row, const struct vector *v)
{
	/* A trace of one issue takes no time. */
	row->reference = v->duration ? (double)v->duration : 1;
	row->predicted = v->duration ? (double)v->predicted : 1;
	row->issue_error = v->issue_error;
	row->rank = v->rank;
	row->within = v->within;
}

static void take_trace(struct exam *x, const struct vector *v)
{
	struct exam_row *row = add_row(x, EXAM_TRACES, v->kernel);

	snprintf(row->name, sizeof(row->name), "%s %s", v->kernel, v->id);
	take_prediction(row, v);
	row->fitted = row->predicted;
	row->at = x->n_traces;
	if (x->o->mca)
		row->mca = mca_cycles(v);
	VEC_GROW(x->trace, x->n_traces, 1, x->cap_traces);
	x->trace[x->n_traces++] = *v;
}

static bool read_trace(struct exam *x, const char *json, size_t len, int line,
		       struct err *e)
{
	struct vector v;
	char where[300];

	snprintf(where, sizeof(where), "%s:%d", x->file, line);
	if (!vector_parse(&v, json, len, where, e))
		return false;
	if (!vector_predict(&v, x->m, e)) {
		vector_fini(&v);
		return false;
	}
	take_trace(x, &v);
	return true;
}

static bool read_traces(struct exam *x, struct err *e)
{
	const struct validate *o = x->o;
	struct buf b = { 0 };
	bool ok = file_read(x->file, 0, &b, e);
	int line = 0;

	for (char *at = b.data, *next; ok && at && *at; at = next) {
		if (o->stop && *o->stop) {
			ok = err_set(e, ERR_STOPPED, "%d traces were predicted,"
				     " nothing is stored", line);
			break;
		}
		next = strchr(at, '\n');
		size_t len = next ? (size_t)(next++ - at) : strlen(at);
		ok = read_trace(x, at, len, ++line, e);
	}
	buf_fini(&b);
	return ok;
}

/* ---- published rows ---- */

static void take_published(void *ctx, const struct others_row *g)
{
	struct exam *x = ctx;
	struct exam_row *row = add_row(x, EXAM_GEMM + g->class, g->source);

	snprintf(row->name, sizeof(row->name), "%s %dx%dx%d tile %dx%dx%d%s%s",
		 g->system, g->m, g->n, g->k, g->tile.m, g->tile.n, g->tile.k,
		 g->split_k > 1 ? " split" : "",
		 g->class == OTHERS_PAIRS ? " wgp/cu" :
		 g->tile.cu_mode	  ? " cu" :
					    "");
	row->reference = g->time_s;
	row->predicted = row->fitted = g->predicted_s;
	row->at = x->n_published;
	VEC_GROW(x->published, x->n_published, 1, x->cap_published);
	x->published[x->n_published++] = *g;
}

static void take_row(struct exam *x, enum exam_set set,
		     const struct loop_row *l)
{
	struct exam_row *row = add_row(x, set, l->source);

	snprintf(row->name, sizeof(row->name), "%s", l->name);
	row->reference = l->reference;
	row->predicted = row->fitted = l->predicted;
}

static void take_loop(void *ctx, const struct loop_row *l)
{
	take_row(ctx, EXAM_LOOPS, l);
}

static void take_code(void *ctx, const struct loop_row *l)
{
	take_row(ctx, EXAM_CODE, l);
}

static bool read_published(struct exam *x, struct err *e)
{
	const struct validate *o = x->o;
	bool found;

	if (!code_rows_run(x->file, x->m, take_code, x, &found, e))
		return false;
	if (found)
		return true;
	return others_rows_run(x->file, x->m, o->quiet, o->stop,
			       take_published, x, e) &&
	       loop_rows_run(x->file, x->m, take_loop, x, e);
}

/* ---- without a group ---- */

static bool predict_row(struct exam *x, struct exam_row *row,
			const struct cost_model *m, struct err *e)
{
	if (row->set == EXAM_TRACES) {
		if (!vector_predict(&x->trace[row->at], m, e))
			return false;
		take_prediction(row, &x->trace[row->at]);
	} else if (row->at >= 0) {
		row->predicted = others_row_time(&x->published[row->at], m);
	}
	return true;
}

static double loss_of_row(const struct exam_row *row, enum cost_fit_by by)
{
	double time = fabs(log(fmax(row->predicted, 1e-9) / row->reference));

	if (row->set != EXAM_TRACES)
		return time;
	return row->issue_error + (by == COST_FIT_TIME ? time : 0);
}

/* Of a fit_data: the mean of the group's rows but ratios and rates. */
static bool find_loss(void *ctx, int group, enum cost_fit_by by,
		      const struct cost_model *m, double *loss, struct err *e)
{
	struct exam *x = ctx;
	int n = 0;

	*loss = 0;
	for (int i = 0; i < x->n_rows; i++) {
		struct exam_row row = x->row[i];

		if (row.group != group || row.at < 0 || row.set == EXAM_PAIRS)
			continue;
		if (!predict_row(x, &row, m, e))
			return false;
		*loss += loss_of_row(&row, by);
		n++;
	}
	*loss /= n ? n : 1;
	return true;
}

static bool is_fitted_to(const struct exam *x, const struct cost_fit *f,
			 int group)
{
	bool any = group >= 0 && cost_fit_names(f, x->group[group].name);

	for (int i = 0; group < 0 && i < x->n_groups; i++)
		any |= cost_fit_names(f, x->group[i].name);
	return any;
}

static void keep_fits(struct exam *x, int group, const struct cost_model *m)
{
	const struct cost_fit *f;
	int n;

	f = cost_fits(&n);
	VEC_GROW(x->fit, x->n_fits, n, x->cap_fits);
	for (int i = 0; i < n; i++)
		if (is_fitted_to(x, &f[i], group))
			x->fit[x->n_fits++] = (struct exam_fit){
				&f[i], group, cost_value(m, f[i].row),
			};
}

/* Group -1: fitted to all of them, and nothing is predicted. */
static bool leave_out(struct exam *x, const struct fit_data *d, int group,
		      struct err *e)
{
	struct cost_model m = *x->m; /* borrows all but its rows */
	bool ok = fit_costs(&m, d, group, e);

	for (int i = 0; ok && i < x->n_rows; i++)
		if (x->row[i].group == group)
			ok = predict_row(x, &x->row[i], &m, e);
	if (ok)
		keep_fits(x, group, &m);
	return ok;
}

static bool leave_each_out(struct exam *x, struct err *e)
{
	const char **names = xcalloc((size_t)x->n_groups + 1, sizeof(*names));
	struct fit_data d = { .group = names, .n = x->n_groups,
			      .loss = find_loss, .ctx = x,
			      .stop = x->o->stop };
	bool ok = true;

	for (int i = 0; i < x->n_groups; i++)
		names[i] = x->group[i].name;
	if (x->o->fits)
		ok = leave_out(x, &d, -1, e);
	for (int i = 0; ok && i < x->n_groups; i++)
		if (x->group[i].refitted)
			ok = leave_out(x, &d, i, e) ||
			     err_wrap(e, "without %s", names[i]);
	free(names);
	return ok;
}

static bool read_files(struct exam *x, const struct cli_list *l,
		       bool (*read)(struct exam *x, struct err *e),
		       struct err *e)
{
	for (int i = 0; i < l->n; i++) {
		x->file = l->v[i];
		if (!read(x, e))
			return false;
	}
	return true;
}

static void free_exam(struct exam *x)
{
	for (int i = 0; i < x->n_traces; i++)
		vector_fini(&x->trace[i]);
	free(x->trace);
	free(x->published);
	free(x->row);
	free(x->group);
	free(x->fit);
	arena_fini(&x->mem);
}

bool validate_run(const struct validate *o, const struct cost_model *m,
		  struct err *e)
{
	struct exam x = { .o = o, .m = m };

	if (!o->traces->n && !o->perf->n)
		return err_set(e, ERR_USAGE, "validate against what?  Wanted "
			       "--traces FILE.jsonl or --perf FILE.csv");
	bool ok = read_files(&x, o->traces, read_traces, e) &&
		  read_files(&x, o->perf, read_published, e) &&
		  leave_each_out(&x, e);
	if (ok && o->mca)
		exam_print_mca(&x);
	ok = ok && (!o->rows || exam_print_rows(&x, e)) &&
	     (!o->fits || exam_print_fits(&x, e)) &&
	     (!o->ranges || exam_print_ranges(&x, e)) &&
	     (!o->order || exam_print_order(&x, e)) &&
	     exam_print_summary(&x, e) && exam_store(&x, e) &&
	     exam_draw(&x, e);
	free_exam(&x);
	return ok;
}
