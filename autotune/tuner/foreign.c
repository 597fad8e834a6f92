/*
 * autotune/tuner/foreign.c - a product that others compiled, judged as ours are.
 *
 * Its time is simulated by the same rules (simulate.c): addresses of its own
 * launch, workgroups that share a WGP as registers, LDS and slots let them,
 * the clock of kernels of its length, operands in the smallest cache that holds
 * all; the slower of the WGPs with the first and with the last workgroup; never
 * less than what the arithmetic and a single reading of its operands take.
 * Right is what check.c calls so, with the operands that it has.
 */
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"
#include "compiler/sim/sim.h"
#include "isa/launch/launch.h"

/* FLOP up to which all of C is compared, and up to which it is run at all. */
#define COMPARE_ALL 3e8
#define RUN_ALL	    2e11

/* ---- which arguments are the matrices ---- */

static bool check_matrix(const struct launch_plan *l, int i, const char *what,
			 double wanted, struct err *e)
{
	if (l->arg[i].size_bytes >= wanted)
		return true;
	return err_set(e, ERR_USAGE, "argument %d '%s' is %s of the product: "
		       "%zu bytes, wanted at least %.0f", i, l->arg[i].text,
		       what, l->arg[i].size_bytes, wanted);
}

bool tune_foreign_init(struct tune_foreign *f, struct launch_plan *l,
		       const struct tune_problem *p, struct err *e)
{
	int at[3], n = 0;
	double c_bytes = (double)p->batch * p->m * p->n *
			 tune_type_bytes(p->op.out);

	*f = (struct tune_foreign){ .plan = l };
	if (p->op.weights || p->op.beta || p->op.epilogue)
		return err_set(e, ERR_UNSUPPORTED, "a product of others is "
			       "judged plain: without weights of integers, "
			       "epilogue and beta");
	for (int i = 0; i < l->n_args && n < 3; i++)
		if (l->arg[i].kind == OPERAND_BUFFER)
			at[n++] = i;
	if (n < 3)
		return err_set(e, ERR_USAGE, "%d buffers among the arguments; "
			       "the first three are A, B and C of the product",
			       n);
	f->a = at[0];
	f->b = at[1];
	f->c = at[2];
	return check_matrix(l, f->a, "A", tune_bytes_a(p), e) &&
	       check_matrix(l, f->b, "B", tune_bytes_b(p), e) &&
	       check_matrix(l, f->c, "C", c_bytes, e);
}

/* ---- time ---- */

bool tune_foreign_simulate(const struct tune_problem *p,
			   const struct tune_foreign *f,
			   const struct cost_model *m,
			   struct tune_simulation *out, struct err *e)
{
	const struct sim_dispatch how = {
		.cost = m, .warmth = SIM_WARM, .trips = SIM_TRIPS,
		.footprint_bytes = (uint64_t)tune_bytes_warm(p),
	};
	struct sim_plan plan;
	struct sim_forecast t;

	*out = (struct tune_simulation){ 0 };
	if (p->caches != TUNE_WARM)
		return err_set(e, ERR_UNSUPPORTED, "products of others are "
			       "judged with warm caches: which tile meets cold "
			       "ones when is not known");
	bool ok = sim_plan_init(&plan, f->plan, e) &&
		  sim_plan_forecast(&how, &plan, &t, e);
	sim_plan_fini(&plan);
	if (!ok)
		return err_wrap(e, "%s", f->plan->kernel->name);
	const double least = tune_least_time(p, m, t.clock_mhz * 1e6);

	out->time_s = t.time_s < least ? least : t.time_s;
	out->cycles = t.cycles;
	out->clock_hz = t.clock_mhz * 1e6;
	out->at_once = t.at_once;
	out->unknown = t.unknown;
	snprintf(out->limit, sizeof(out->limit), "%s %.0f %%%s", t.limit,
		 100 * t.round.share[t.round.limit],
		 t.time_s < least ? " (bound)" : "");
	sim_forecast_fini(&t);
	return true;
}

/* ---- is it right ---- */

static bool place_operands(struct tune_bench *r, const struct tune_foreign *f,
			   uint64_t va[LAUNCH_ARGS_MAX], struct err *e)
{
	const struct launch_plan *l = f->plan;

	for (int i = 0; i < l->n_args; i++) {
		const struct operand *o = &l->arg[i];
		struct kfd_mem *mem = i == f->a	  ? r->a
				      : i == f->b ? r->b
				      : i == f->c ? r->c
						  : NULL;

		if (o->kind != OPERAND_BUFFER)
			continue;
		if (!mem && !kfd_mem_alloc(r->dev, KFD_VRAM, o->size_bytes,
					   o->text, &mem, e))
			return false;
		if (mem != r->a && mem != r->b && mem != r->c && !o->untouched)
			memcpy(mem->cpu, o->data, o->size_bytes);
		va[i] = mem->va;
	}
	kfd_mem_flush(r->dev);
	return true;
}

static bool launch_foreign(struct tune_bench *r, const struct tune_foreign *f,
			   struct err *e)
{
	struct launch_plan *l = f->plan;
	uint64_t va[LAUNCH_ARGS_MAX] = { 0 };
	const struct kfd_kernel *k;
	struct kfd_code *code;

	if (!place_operands(r, f, va, e) || !launch_arguments(l, va, e) ||
	    !kfd_code_load(r->dev, l->co.bytes, l->co.len, &code, e) ||
	    !kfd_code_kernel(code, l->kernel->name, &k, e))
		return false;
	const struct kfd_launch launch = {
		.kernel = k, .args = l->kernarg, .args_bytes = l->explicit_bytes,
		.grid = { l->grid[0], l->grid[1], l->grid[2] },
		.wg = { l->block[0], l->block[1], l->block[2] },
		.dyn_lds_bytes = l->lds_bytes,
		.stack_bytes = (uint32_t)l->stack_bytes,
		.deadline_ns = time_mono_ns() + UINT64_C(600000000000),
	};

	return kfd_run(r->q, &launch, NULL, e);
}

bool tune_foreign_check(const struct tune_problem *p,
			const struct tune_foreign *f, const char *device,
			uint64_t seed, struct tune_verdict *out, struct err *e)
{
	/* Seams of tiles are sampled where most kernels have some. */
	const struct gemm_config tiles = { .m = 64, .n = 64 };
	const struct tune_view v = tune_view_all(p);
	struct tune_check_result x = { .seed = seed };
	struct tune_bench r = { 0 };
	bool ok;

	*out = (struct tune_verdict){ 0 };
	if (tune_flop(p) > RUN_ALL) {
		snprintf(out->detail, sizeof(out->detail), "%.3g FLOP are more "
			 "than the %.3g that are run", tune_flop(p), RUN_ALL);
		return true;
	}
	ok = tune_bench_open(&r, device, NULL, NULL, e) &&
	     tune_bench_set(&r, p, TUNE_NORMAL, seed, e);
	if (ok) {
		tune_bench_stale(&r, seed);
		ok = launch_foreign(&r, f, e);
		out->checked = ok || e->code == ERR_DEVICE ||
			       e->code == ERR_TIMEOUT;
	}
	if (ok) {
		tune_check_block(&r, &tiles, &v, tune_flop(p) <= COMPARE_ALL,
				 &x);
		out->right = !x.wrong && x.compared;
		out->compared = x.compared;
	}
	snprintf(out->detail, sizeof(out->detail), "%s",
		 ok ? x.detail : e->msg);
	tune_bench_close(&r);
	return ok || out->checked;
}
