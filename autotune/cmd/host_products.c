/*
 * autotune/cmd/host_products.c - t0-tune --device host.
 *
 * The processor's own products.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cmd/cmd.h"
#include "autotune/cpu_tune/cpu_tune.h"

/* Seconds of a problem. */
static double seconds_of(const struct tune_budget *b, size_t n)
{
	static const struct {
		const char *name;
		double seconds;
	} budgets[] = { { "quick", 1 }, { "standard", 5 },
			{ "exhaustive", 60 } };

	for (size_t i = 0; i < ARRAY_SIZE(budgets); i++)
		if (!strcmp(b->name, budgets[i].name))
			return budgets[i].seconds;
	return b->seconds / (double)n;
}

bool tune_host_problem(const struct tune_problem *p, struct cpu_problem *out,
		       struct err *e)
{
	*out = (struct cpu_problem){ .m = p->m, .n = p->n, .k = p->k,
				     .b_by_n = p->op.b_trans };
	switch (p->op.in) {
	case DSL_F32:
		out->b_type = CPU_GEMM_F32;
		break;
	case DSL_F16:
		out->b_type = CPU_GEMM_F16;
		break;
	case DSL_BF16:
		out->b_type = CPU_GEMM_BF16;
		if (cpu_gemm_may(CPU_LEVEL_BF16))
			out->a_as = CPU_GEMM_BF16;
		break;
	case DSL_I8:
		out->b_type = CPU_GEMM_CHANNEL8;
		out->a_as = CPU_GEMM_INT8;
		break;
	default:
		return err_set(e, ERR_UNSUPPORTED, "--device host: wanted "
			       "--dtype f32, f16, bf16, i8, bf16w8 or bf16w4 "
			       "(of B; A and C are f32)");
	}
	if (p->op.weights) {
		out->a_as = CPU_GEMM_INT8;
		out->b_type = p->op.weights == DSL_I8 ? CPU_GEMM_INT8 :
							CPU_GEMM_INT4;
	}
	if (out->b_type >= CPU_GEMM_MADE && (!p->op.b_trans || p->k % 32))
		return err_set(e, ERR_UNSUPPORTED, "--device host: integers "
			       "are stored N x K (--layout nt), K a multiple of "
			       "32");
	if (p->op.a_trans || p->op.epilogue || p->op.beta ||
	    p->batch > 1)
		return err_set(e, ERR_UNSUPPORTED, "--device host: A is M x K, "
			       "one product at a time, without epilogue");
	return true;
}

static void add_row(struct table *t, const struct cpu_problem *p,
		const struct cpu_outcome *o)
{
	double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
	char op[CPU_GEMM_TEXT];

	cpu_problem_op(p, op);
	table_row(t);
	table_cell(t, 0, "%zux%zux%zu", p->m, p->n, p->k);
	table_cell(t, 1, "%s", op);
	table_cell(t, 10, "%zu", o->candidates);
	table_cell(t, 11, "%s", o->found ? "right" : "none");
	if (!o->found)
		return;
	table_cell(t, 2, "%.2f", o->time_s * 1e6);
	if (!isnan(o->lo_s)) {
		table_cell(t, 3, "%.2f", o->lo_s * 1e6);
		table_cell(t, 4, "%.2f", o->hi_s * 1e6);
	}
	table_cell(t, 5, "%.4g", flop / o->time_s / 1e9);
	if (o->default_s > 0)
		table_cell(t, 6, "%.3f", o->default_s / o->time_s);
	table_cell(t, 7, "%s", o->config);
	if (*o->second)
		table_cell(t, 8, "%s", o->second);
	table_cell(t, 9, "hardware");
}

static bool print_products(const struct tune_report *r,
			   const struct cpu_problem *p,
			   const struct cpu_outcome *o, size_t n, struct err *e)
{
	struct table t;

	table_init(&t, "shape,op,#us,#lo,#hi,#GFLOPS,#over_default,best,"
		       "runner_up,origin,#candidates,verdict");
	for (size_t i = 0; i < n; i++)
		add_row(&t, &p[i], &o[i]);
	bool ok = table_print(&t, r->format, r->out, e);
	table_fini(&t);
	return ok;
}

bool tune_on_host(const struct tune_opts *o, const struct tune_problems *l,
		  const struct tune_report *r, bool *all, struct err *e)
{
	struct cpu_problem *p = xcalloc(l->n + 1, sizeof(*p));
	struct cpu_outcome *out = xcalloc(l->n + 1, sizeof(*out));
	const struct cpu_tune_opts x = {
		.db = o->db, .threads = o->jobs, .seed = o->seed,
		.seconds = seconds_of(&o->budget, l->n), .stop = o->stop,
		.argc = o->argc, .argv = o->argv,
		.shard = o->shard, .work = o->work,
	};
	bool ok = true;

	for (size_t i = 0; ok && i < l->n; i++)
		ok = tune_host_problem(&l->v[i], &p[i], e);
	ok = ok && cpu_tune(&x, p, l->n, out, e) &&
	     print_products(r, p, out, l->n, e);
	*all = true;
	for (size_t i = 0; i < l->n; i++)
		*all = *all && out[i].found;
	free(p);
	free(out);
	return ok;
}
