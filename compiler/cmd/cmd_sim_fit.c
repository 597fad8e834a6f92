/*
 * compiler/cmd/cmd_sim_fit.c - t0-sim fit and design: costs from a card.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/card/card.h"
#include "compiler/cmd/cmd_sim.h"
#include "results/db/results.h"

static const char *const states[] = {
	[CARD_STATED] = "stated", [CARD_FOUND] = "found",
	[CARD_UNKNOWN] = "unknown", [CARD_ODD] = "odd",
};

/* ---- parameters ---- */

static void list_number(struct table *t, int column, double v)
{
	if (!isnan(v))
		table_cell(t, column, "%.6g", v);
}

static void list_row(struct table *t, enum cost_row row,
		     const struct card_fit_row *x)
{
	const struct cost_row_info *info = cost_row_info(row);

	table_row(t);
	table_cell(t, 0, "%s", info->name);
	table_cell(t, 1, "%s", states[x->state]);
	list_number(t, 2, info->value);
	list_number(t, 3, x->value);
	list_number(t, 4, x->lo);
	list_number(t, 5, x->hi);
	table_cell(t, 6, "%s", info->unit);
	list_number(t, 7, x->measured);
	list_number(t, 8, x->simulated);
	list_number(t, 9, 100 * x->effect);
}

static bool print_rows(struct cmd *c, const struct card_fit *f, bool all,
		       struct err *e)
{
	struct table t;

	table_init(&t, "parameter,state,#default,#value,#lo,#hi,unit,"
		       "#measured,#simulated,#effect_percent");
	for (int row = 0; row < COST_ROW_COUNT; row++)
		if (all || f->row[row].state != CARD_STATED)
			list_row(&t, row, &f->row[row]);
	bool ok = cmd_table(c, &t, e);
	table_fini(&t);
	return ok;
}

/* ---- products ---- */

static bool is_same_problem(const struct card_gemm *a, const struct card_gemm *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k &&
	       !strcmp(a->dtype, b->dtype);
}

/* The fastest of the products that compute what number i does; -1: none. */
static int fastest(const double *seconds, int i, int n)
{
	const struct card_gemm *g = card_gemms(&(int){ 0 });
	int best = -1;

	for (int k = 0; k < n; k++)
		if (is_same_problem(&g[i], &g[k]) && !isnan(seconds[k]) &&
		    (best < 0 || seconds[k] < seconds[best]))
			best = k;
	return best;
}

static void list_product(struct table *t, const struct card_fit *f,
			 const struct card_data *d, int i, int n)
{
	const struct card_gemm *g = &card_gemms(&(int){ 0 })[i];
	const bool measured = d->gemm[i].n > 0;

	table_row(t);
	table_cell(t, 0, "%d", i + 1);
	table_cell(t, 1, "%s", g->dtype);
	table_cell(t, 2, "%ux%ux%u", g->m, g->n, g->k);
	table_cell(t, 3, "%s", g->config);
	if (measured)
		table_cell(t, 4, "%.2f", d->gemm[i].value * 1e6);
	if (isnan(f->gemm[i]))
		return;
	table_cell(t, 5, "%.2f", f->before[i] * 1e6);
	table_cell(t, 6, "%.2f", f->gemm[i] * 1e6);
	if (measured)
		table_cell(t, 7, "%.1f",
			   100 * (f->gemm[i] / d->gemm[i].value - 1));
	const bool before = fastest(f->before, i, n) == i;
	const bool after = fastest(f->gemm, i, n) == i;

	table_cell(t, 8, "%s", before && after ? "before, after" :
			       before	       ? "before" :
			       after	       ? "after" :
						 "");
}

static bool print_products(struct cmd *c, const struct card_fit *f,
			   const struct card_data *d, struct err *e)
{
	struct table t;
	int n;

	card_gemms(&n);
	table_init(&t, "#number,types,product,configuration,#measured_us,"
		       "#before_us,#after_us,#error_percent,fastest");
	for (int i = 0; i < n; i++)
		list_product(&t, f, d, i, n);
	bool ok = cmd_table(c, &t, e);
	table_fini(&t);
	return ok;
}

/* Sizes whose fastest product is another one now. */
static void remark_winners(struct cmd *c, const struct card_fit *f)
{
	int n, changed = 0;
	const struct card_gemm *g = card_gemms(&n);

	for (int i = 0; i < n; i++) {
		const int before = fastest(f->before, i, n);
		const int after = fastest(f->gemm, i, n);

		if (before != i || after == i || after < 0)
			continue;
		changed++;
		cmd_remark(c, "%s %ux%ux%u: %s wins instead of %s, by %.1f %%",
			   g[i].dtype, g[i].m, g[i].n, g[i].k, g[after].config,
			   g[i].config,
			   100 * (f->gemm[i] / f->gemm[after] - 1));
	}
	if (!changed && !isnan(f->gemm[0]))
		cmd_remark(c, "no product of the kit loses its place as the "
			   "fastest of its size");
}

/* ---- what is done with it ---- */

static void remark_all(struct cmd *c, const struct card_fit *f,
		       const struct card_data *d)
{
	int n[4] = { 0 };
	double effect = 0;

	for (int row = 0; row < COST_ROW_COUNT; row++) {
		const struct card_fit_row *x = &f->row[row];

		n[x->state]++;
		if (x->state == CARD_UNKNOWN && x->effect > effect)
			effect = x->effect;
	}
	cmd_remark(c, "%s: figures are %s; %d parameters found, %d unknown "
		   "(they change no product of the kit by more than %.1f %%), "
		   "%d odd", *d->device ? d->device : "a device without a name",
		   res_origin_name(d->origin), n[CARD_FOUND], n[CARD_UNKNOWN],
		   100 * effect, n[CARD_ODD]);
	if (d->mixed)
		cmd_remark(c, "warning: %d rows of another origin passed over",
			   d->mixed);
	if (d->failed)
		cmd_remark(c, "warning: %d rows passed over whose values were "
			   "wrong", d->failed);
	if (f->other_code)
		cmd_remark(c, "warning: %d products were measured with other "
			   "machine code than this build makes", f->other_code);
	if (!isnan(f->residual))
		cmd_remark(c, "simulated products are off by %.1f %% in the "
			   "median", 100 * f->residual);
	remark_winners(c, f);
}

static bool write_costs(const struct card_fit *f, const char *path,
			struct err *e)
{
	FILE *out = fopen(path, "w");
	bool ok = out != NULL;

	for (int row = 0; ok && row < COST_ROW_COUNT; row++)
		if (f->row[row].state == CARD_FOUND)
			ok = fprintf(out, "%s=%.9g\n", cost_row_info(row)->name,
				     f->row[row].value) > 0;
	if (out && fclose(out))
		ok = false;
	return ok || err_sys(e, ERR_IO, errno, "%s", path);
}

static bool store_found(struct res_db *db, int64_t run,
			const struct card_fit *f, enum res_origin origin,
			struct err *e)
{
	for (int row = 0; row < COST_ROW_COUNT; row++) {
		const struct card_fit_row *x = &f->row[row];
		const struct cost_row_info *info = cost_row_info(row);
		struct res_result r = {
			.run = run, .metric = "value", .unit = info->unit,
			.value = x->value, .lo = x->lo, .hi = x->hi, .n = 1,
			.clock_hz = NAN, .better = RES_NEITHER,
			.origin = origin,
		};

		if (x->state == CARD_FOUND &&
		    (!res_case_id(db, "cost", info->name, "{}", &r.case_id,
				  e) ||
		     !res_result_add(db, &r, NULL, e)))
			return false;
	}
	return true;
}

/* As rows of area "cost", of the card that they are of. */
static bool store_costs(const char *path, const struct card_fit *f,
			const struct card_data *d, struct err *e)
{
	const struct res_device device = { .name = d->device, .gfx = "gfx1100",
					   .origin = d->origin };
	struct res_start start = { .tool = "t0-sim fit" };
	struct res_db *db = res_open(path, RES_WRITE, e);
	int64_t run;
	bool ok = db && res_host_self(db, &start.host, e) &&
		  res_build_self(db, &start.build, e) &&
		  res_device_id(db, &device, &start.device, e) &&
		  res_run_begin(db, &start, &run, e) &&
		  store_found(db, run, f, d->origin, e) &&
		  res_run_finish(db, run, RES_COMPLETE, 0, NULL, e);

	res_close(db);
	return ok;
}

static bool is_empty(const struct card_data *d)
{
	for (int i = 0; i < CARD_POINTS_MAX; i++)
		if (d->point[i].n > 0)
			return false;
	return !d->n_loads;
}

bool sim_cmd_fit(struct cmd *c, struct err *e)
{
	const struct sim_cmd *o = (struct sim_cmd *)c;
	const struct card_fit_how how = {
		.products = o->number > CARD_GEMMS_MAX ? CARD_GEMMS_MAX :
							 (int)o->number,
		.rest = true, .jobs = (unsigned)o->jobs, .quiet = c->quiet,
		.stop = cmd_catch_signals(c),
	};
	struct card_data *d = xcalloc(1, sizeof(*d));
	struct card_fit f;
	bool ok = card_read(d, c->argv[0], e);

	if (ok && is_empty(d))
		ok = err_set(e, ERR_INPUT, "%s: nothing that the kit measures "
			     "(make card)", c->argv[0]);
	if (ok) {
		ok = card_fit(&f, d, &how, e) &&
		     (o->products ? print_products(c, &f, d, e) :
				    print_rows(c, &f, o->all, e)) &&
		     (!o->write || write_costs(&f, o->write, e)) &&
		     (!o->db || store_costs(o->db, &f, d, e));
		if (ok)
			remark_all(c, &f, d);
		card_fit_fini(&f);
	}
	free(d);
	return ok;
}

bool sim_cmd_design(struct cmd *c, struct err *e)
{
	const struct sim_cmd *o = (struct sim_cmd *)c;
	const struct card_fit_how how = {
		.jobs = (unsigned)o->jobs, .quiet = c->quiet,
		.stop = cmd_catch_signals(c),
	};

	if (o->number > CARD_GEMMS_MAX)
		return err_set(e, ERR_USAGE, "--number %llu: wanted at most %d",
			       (unsigned long long)o->number, CARD_GEMMS_MAX);
	return card_design(c->out, o->number ? (int)o->number : 60, &how, e);
}
