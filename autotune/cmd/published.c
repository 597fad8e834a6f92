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
	enum dsl_type type;
	uint32_t m, n, k;
	double tflops;
} rows[] = {
#define PUBLISHED(system, type, b_trans, out, m, n, k, tflops, remark) \
	{ PUBLISHED_##system, DSL_##type, m, n, k, tflops },
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

static void take_error(struct published_error *x, double error)
{
	x->mean += error;
	x->worst = fmax(x->worst, error);
	x->rows++;
}

/* Rows that judge, of matrix products; results/db/results.h, area "predict". */
static bool of_database(struct res_db *db, struct published_error *out,
			struct err *e)
{
	struct table t;
	bool ok;

	table_init(&t, "#error");
	ok = res_query(db, &t, 0, e,
		       "SELECT abs(p.value / x.value - 1) FROM v_results x "
		       "JOIN v_results p ON p.run = x.run AND "
		       "p.case_id = x.case_id AND p.metric = 'predicted' "
		       "WHERE x.metric = 'reference' AND x.area = 'predict' "
		       "AND x.params LIKE '%gemm judge%' AND x.run = "
		       "(SELECT max(run) FROM v_results WHERE area = 'predict' "
		       "AND params LIKE '%gemm judge%')", "");
	for (int i = 0; ok && i < t.n_rows; i++)
		take_error(out, strtod(t.row[i][0], NULL));
	snprintf(out->source, sizeof(out->source), "t0-sim validate, "
		 "rows that judge");
	table_fini(&t);
	return ok;
}

static bool simulate_row(const struct row *r, const struct cost_model *m,
		     struct published_error *out, struct err *e)
{
	struct others_tile tile = { OTHERS_TRITON, 128, 128, 32, 0, false };
	struct others_shape shape = { (int)r->m, (int)r->n, (int)r->k, 1 };
	struct others_guess g;

	if (!others_predict(&tile, &shape, m, &g, e))
		return err_wrap(e, "the simulator's error");
	double flop = 2.0 * r->m * r->n * r->k;
	double want = flop / (r->tflops * 1e12);

	take_error(out,
		   fabs((g.gpu_s + cost_value(m, COST_LAUNCH_ASYNC) * 1e-6) /
				want -
			1));
	return true;
}

bool published_error(struct res_db *db, const struct cost_model *m,
		     struct published_error *out, struct err *e)
{
	*out = (struct published_error){ 0 };
	if (db && !of_database(db, out, e))
		return false;
	bool stored = out->rows > 0;
	for (size_t i = 0; !stored && i < ARRAY_SIZE(rows); i++)
		if (rows[i].system == PUBLISHED_TRITON_TILE &&
		    !simulate_row(&rows[i], m, out, e))
			return false;
	if (!stored)
		snprintf(out->source, sizeof(out->source), "Triton 128x128x32, "
			 "%d published sizes", out->rows);
	out->mean /= out->rows ? out->rows : 1;
	return true;
}
