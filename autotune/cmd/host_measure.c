/*
 * autotune/cmd/host_measure.c - t0-tune --device host --measure.
 *
 * How fast the processor's products are as programs get them: in the
 * configuration of the database, checked, then timed again and again.
 */
#include <math.h>
#include <stdlib.h>

#include "autotune/cmd/cmd.h"
#include "autotune/cpu_tune/cpu_tune.h"
#include "base/threads.h"
#include "results/db/results.h"
#include "results/stats/stats.h"

enum { SAMPLES = 30, WARM = 3 };

struct measuring {
	const struct tune_opts *o;
	struct res_record rows;
	struct cpu_table *winners;
	unsigned threads;
	struct table table;
	bool all; /* right */
};

static bool store_flops(struct measuring *x, const struct cpu_problem *p,
			const double *flops, size_t n, struct res_interval v,
			bool right, struct err *e)
{
	char params[160], name[CPU_GEMM_TEXT + 8], op[CPU_GEMM_TEXT];

	cpu_problem_op(p, op);
	snprintf(name, sizeof(name), "host %s", op);
	res_params(params, sizeof(params), "type:s m:U n:U k:U threads:u",
		   cpu_gemm_type_name(p->b_type), (uint64_t)p->m,
		   (uint64_t)p->n, (uint64_t)p->k, x->threads);
	if (!res_record_case(&x->rows, "gemm", name, params, e))
		return false;
	struct res_result r = {
		.run = x->rows.run, .case_id = x->rows.case_id,
		.metric = "flops", .unit = "FLOP/s", .value = v.value,
		.lo = v.lo, .hi = v.hi, .n = (int64_t)n, .clock_hz = NAN,
		.better = RES_HIGHER, .origin = RES_HARDWARE,
		.samples = flops, .n_samples = n,
	};
	return res_result_add(x->rows.db, &r, NULL, e) &&
	       res_record_verdict(&x->rows, right ? RES_PASS : RES_FAIL,
				  right ? "within the bound" :
					  "an error above the bound",
				  NULL, e);
}

static bool measure_problem(struct measuring *x, const struct cpu_problem *p,
			    struct err *e)
{
	const size_t n = x->o->samples ? x->o->samples : SAMPLES;
	const double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k;
	const struct cpu_gemm g = { .m = p->m, .n = p->n, .k = p->k,
				    .b_type = p->b_type,
				    .b_by_n = p->b_by_n, .a_as = p->a_as };
	struct cpu_trial *t = cpu_trial_new(p, x->threads, x->o->seed, e);
	char config[CPU_GEMM_TEXT], op[CPU_GEMM_TEXT];
	double *flops = xcalloc(n, sizeof(*flops));
	struct cpu_gemm_config c;
	size_t compared;

	if (!t) {
		free(flops);
		return false;
	}
	cpu_select(x->winners, &g, &c);
	cpu_gemm_config_name(&c, config);
	cpu_problem_op(p, op);
	cpu_trial_run(t, &c);
	bool right = cpu_trial_worst(t, &compared) <= 1;
	for (size_t i = 0; i < WARM; i++)
		cpu_trial_time(t, &c);
	for (size_t i = 0; i < n && !*x->o->stop; i++)
		flops[i] = flop / cpu_trial_time(t, &c);
	cpu_trial_free(t);
	if (*x->o->stop) {
		free(flops);
		return err_set(e, ERR_STOPPED, "nothing of %zux%zux%zu is "
			       "kept", p->m, p->n, p->k);
	}
	struct res_interval v = res_median(flops, n);
	x->all = x->all && right;
	table_row(&x->table);
	table_cell(&x->table, 0, "%zux%zux%zu", p->m, p->n, p->k);
	table_cell(&x->table, 1, "%s", op);
	table_cell(&x->table, 2, "%.1f", v.value / 1e9);
	table_cell(&x->table, 3, "%.1f", v.lo / 1e9);
	table_cell(&x->table, 4, "%.1f", v.hi / 1e9);
	table_cell(&x->table, 5, "%s", config);
	table_cell(&x->table, 6, "hardware");
	table_cell(&x->table, 7, right ? "right" : "wrong");
	bool ok = store_flops(x, p, flops, n, v, right, e);
	free(flops);
	return ok;
}

static bool count_threads(struct measuring *x, struct err *e)
{
	struct threads *all = threads_new(x->o->jobs, e);

	if (all)
		x->threads = threads_count(all);
	threads_free(all);
	return all != NULL;
}

bool tune_measure_host(const struct tune_opts *o,
		       const struct tune_problems *l,
		       const struct tune_report *r, bool *all, struct err *e)
{
	const struct res_start start = { .tool = "t0-tune --device host",
					 .argc = o->argc, .argv = o->argv,
					 .seed = o->seed };
	struct measuring x = { .o = o, .all = true };
	struct cpu_problem p;
	bool ok = count_threads(&x, e) &&
		  (x.winners = cpu_table_open(o->db, x.threads, e)) &&
		  res_record_begin(&x.rows, o->db, &start, e);

	table_init(&x.table, "shape,op,#GFLOPS,#lo,#hi,configuration,origin,"
			     "verdict");
	for (size_t i = 0; ok && i < l->n; i++)
		ok = tune_host_problem(&l->v[i], &p, e) &&
		     measure_problem(&x, &p, e);
	ok = res_record_end(&x.rows, ok, e);
	ok = ok && table_print(&x.table, r->format, r->out, e);
	*all = x.all;
	table_fini(&x.table);
	cpu_table_free(x.winners);
	return ok;
}
