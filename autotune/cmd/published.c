/*
 * autotune/cmd/published.c - figures of others, beside ours.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cmd/cmd.h"
#include "compiler/sim/examine/examine.h"

static const struct row {
	enum published_system system;
	enum dsl_type type, out;
	bool b_trans;
	uint32_t m, n, k;
	double tflops;
	const char *remark;
} rows[] = {
#define PUBLISHED(system, type, b_trans, out, m, n, k, tflops, remark)   \
	{ PUBLISHED_##system, DSL_##type, DSL_##out, b_trans, m, n, k, \
	  tflops, remark },
#include "autotune/cmd/published.def"
};

double published_tflops(enum published_system s, const struct tune_problem *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];

		if (r->system == s && r->type == p->op.in && r->m == p->m &&
		    r->n == p->n && r->k == p->k && p->batch == 1 &&
		    !p->op.epilogue && !p->op.beta && !p->op.weights &&
		    p->caches == TUNE_WARM)
			return r->tflops;
	}
	return NAN;
}

double published_triton(const struct tune_problem *p)
{
	return fmax(published_tflops(PUBLISHED_TRITON, p),
		    published_tflops(PUBLISHED_TRITON_TILE, p));
}

/* ---- the simulator's error ---- */

enum { ROWS_MOST = 4096 };

struct ratios {
	double v[ROWS_MOST]; /* [n] published over simulated */
	size_t n;
};

static void take_ratio(struct ratios *r, double ratio)
{
	if (r->n < ROWS_MOST && ratio > 0)
		r->v[r->n++] = ratio;
}

static void sum_up(struct ratios *r, struct published_error *out)
{
	out->rows = out->range_rows = (int)r->n;
	for (size_t i = 0; i < r->n; i++) {
		const double error = fabs(1 / r->v[i] - 1);

		out->mean += error / (double)r->n;
		out->worst = fmax(out->worst, error);
	}
	sim_spread(r->v, r->n, &out->least, &out->most);
}

/* A few rows say little of how far others lie; the published ranges do. */
static void take_range(struct published_error *out)
{
	const struct sim_range *off = sim_range(SIM_RANGE_TIMES, COST_CHIP);

	out->least = off->least;
	out->most = off->most;
	out->range_rows = off->rows;
}

/* Matrix products whose source was left out; results.h, area "predict". */
static bool of_database(struct res_db *db, struct ratios *out, struct err *e)
{
	struct table t;
	bool ok;

	table_init(&t, "#ratio");
	ok = res_query(db, &t, 0, e,
		       "SELECT x.value / p.value FROM v_results x "
		       "JOIN v_results p ON p.run = x.run AND "
		       "p.case_id = x.case_id AND p.metric = 'predicted' "
		       "WHERE x.metric = 'reference' AND x.area = 'predict' "
		       "AND x.params LIKE '%left_out%' "
		       "AND json_extract(x.params, '$.set') = 'gemm' "
		       "AND x.run = "
		       "(SELECT max(run) FROM v_results WHERE area = 'predict' "
		       "AND params LIKE '%left_out%')", "");
	for (int i = 0; ok && i < t.n_rows; i++)
		take_ratio(out, strtod(t.row[i][0], NULL));
	table_fini(&t);
	return ok;
}

/* Seconds of a row, published and simulated. */
static bool simulate_row(const struct row *r, const struct cost_model *m,
			 double *want, double *got, struct err *e)
{
	struct others_tile tile = { OTHERS_TRITON, 128, 128, 32, 0, false };
	struct others_shape shape = { (int)r->m, (int)r->n, (int)r->k, 1 };
	struct others_guess g;

	if (!others_predict(&tile, &shape, m, &g, e))
		return err_wrap(e, "the simulator's error");
	*want = 2.0 * r->m * r->n * r->k / (r->tflops * 1e12);
	*got = g.gpu_s + cost_value(m, COST_LAUNCH_ASYNC) * 1e-6;
	return true;
}

static bool simulate_rows(const struct cost_model *m, struct ratios *out,
			  struct err *e)
{
	double want, got;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].system != PUBLISHED_TRITON_TILE)
			continue;
		if (!simulate_row(&rows[i], m, &want, &got, e))
			return false;
		take_ratio(out, want / got);
	}
	return true;
}

bool published_error(struct res_db *db, const struct cost_model *m,
		     struct published_error *out, struct err *e)
{
	struct ratios *r = xcalloc(1, sizeof(*r));
	bool ok = !db || of_database(db, r, e), stored = r->n > 0;

	*out = (struct published_error){ 0 };
	ok = ok && (stored || simulate_rows(m, r, e));
	if (ok)
		sum_up(r, out);
	if (stored) {
		snprintf(out->source, sizeof(out->source), "t0-sim validate, "
			 "each source left out");
	} else {
		snprintf(out->source, sizeof(out->source), "Triton 128x128x32, "
			 "%d published sizes", out->rows);
		take_range(out);
	}
	free(r);
	return ok;
}

/* ---- rows of the database ---- */

static const char *const system_name[] = {
	[PUBLISHED_ROCBLAS] = "rocBLAS",
	[PUBLISHED_TRITON] = "Triton",
	[PUBLISHED_TRITON_TILE] = "Triton 128x128x32",
	[PUBLISHED_T0_GPU] = "T0-GPU",
};

static bool store_value(struct res_db *db, struct res_result *x,
			const char *metric, const char *unit, double value,
			enum res_origin origin, struct err *e)
{
	x->metric = metric;
	x->unit = unit;
	x->value = value;
	x->origin = origin;
	return res_result_add(db, x, NULL, e);
}

/* Its speed, and what the simulator says of a kernel that is known. */
static bool store_row(struct res_db *db, int64_t run, const struct row *r,
		      const struct cost_model *m, struct err *e)
{
	const struct gemm_op op = { .in = r->type, .out = r->out,
				    .b_trans = r->b_trans };
	struct res_result x = { .run = run, .n = 1, .lo = NAN, .hi = NAN,
				.clock_hz = NAN, .better = RES_HIGHER };
	char type[TUNE_TEXT], params[256], source[160];
	double want, got;

	gemm_op_name(&op, type, sizeof(type));
	res_params(params, sizeof(params), "m:u n:u k:u type:s", r->m, r->n,
		   r->k, type);
	snprintf(source, sizeof(source), "autotune/cmd/published.def%s%s",
		 *r->remark ? ", " : "", r->remark);
	x.source = source;
	if (!res_case_id(db, "gemm", system_name[r->system], params,
			 &x.case_id, e) ||
	    !store_value(db, &x, "flops", "FLOP/s", r->tflops * 1e12,
			 RES_PUBLISHED, e))
		return false;
	if (r->system != PUBLISHED_TRITON_TILE)
		return true;
	x.better = RES_NEITHER;
	res_params(params, sizeof(params), "set:s m:u n:u k:u",
		   "Triton's tile, published", r->m, r->n, r->k);
	return simulate_row(r, m, &want, &got, e) &&
	       res_case_id(db, "predict", system_name[r->system], params,
			   &x.case_id, e) &&
	       store_value(db, &x, "reference", "s", want, RES_PUBLISHED, e) &&
	       store_value(db, &x, "predicted", "s", got, RES_SIMULATED, e);
}

static bool store_rows(struct res_db *db, const struct res_start *start,
		       const struct cost_model *m, struct err *e)
{
	int64_t run;

	if (!res_run_begin(db, start, &run, e))
		return false;
	res_batch_begin(db);
	bool ok = true;
	for (size_t i = 0; ok && i < ARRAY_SIZE(rows); i++)
		ok = store_row(db, run, &rows[i], m, e);
	ok = ok && res_batch_end(db, e);
	return res_run_finish(db, run, ok ? RES_COMPLETE : RES_FAILED,
			      ok ? 0 : err_exit_code(e), ok ? NULL : e->msg,
			      ok ? e : NULL) && ok;
}

bool published_store(const char *path, const struct cost_model *m,
		     const struct res_shard *shard, struct err *e)
{
	static const struct res_shard all = { .index = 1, .count = 1 };
	if (shard && !res_shard_has(shard, "t0-tune published"))
		return true;
	struct res_db *db = res_open(path, RES_WRITE, e);
	char inputs[64], digest[COST_DIGEST];
	struct res_start start = { .tool = "t0-tune published",
				   .inputs = inputs,
				   .shard = shard ? &all : NULL };
	struct buf stored = { 0 };
	int64_t there;

	cost_digest(m, digest);
	res_params(inputs, sizeof(inputs), "costs:s", digest);
	res_shard_inputs(&stored, inputs, start.shard, NULL);
	bool ok = db && res_host_self(db, &start.host, e) &&
		  res_build_self(db, &start.build, e) &&
		  res_query_int(db, &there, e, "SELECT count(*) FROM runs "
				"WHERE tool = ? AND build = ? AND inputs = ? "
				"AND state = 'complete'", "tit", start.tool,
				start.build, stored.data) &&
		  (there || store_rows(db, &start, m, e));
	buf_fini(&stored);
	res_close(db);
	return ok;
}
