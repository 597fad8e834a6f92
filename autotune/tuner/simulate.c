/*
 * autotune/tuner/simulate.c - the time of a product by the pipeline simulator.
 *
 * Code, arguments and addresses are those of the real launch; the simulator
 * (compiler/sim) follows them for the workgroups that one WGP gets, a full
 * round and the rest, and leaves loops when they are steady.  Approximated:
 *   - the other WGPs do what this one does, at the same time; it is the one
 *     that has the first workgroup, or the last, where some tiles are masked
 *     and take longer: whichever is slower;
 *   - operands lie where the problem's caches say (tune.h): warm ones in the
 *     smallest level that holds all of them, cold ones in DRAM until a round
 *     has fetched them;
 *   - the time is never less than the bound (roofline.c): what a model of
 * caches takes for shared may be fetched twice, but nothing is fetched less
 * than once;
 *   - a second kernel (split, stream-K) begins a launch after the first ends.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune.h"
#include "compiler/sim/sim.h"
#include "isa/object/object.h"

/* Addresses far apart, aligned as allocations are. */
static struct gemm_operands make_addresses(void)
{
	return (struct gemm_operands){
		.a = UINT64_C(1) << 40, .b = UINT64_C(2) << 40,
		.c = UINT64_C(3) << 40, .bias = UINT64_C(4) << 40,
		.residual = UINT64_C(5) << 40,
		.workspace = UINT64_C(6) << 40,
		.scale = UINT64_C(7) << 40, .alpha = 1, .beta = 1,
	};
}

/* ---- where operands lie ---- */

struct where {
	uint64_t warm_bytes;
	struct sim_cold cold[SIM_COLD_MOST];
	int n_cold;
	bool mixed; /* some tiles are masked, others not */
};

/*
 * Rounds of the fullest WGP that find new parts of A and B.  Workgroups begin
 * in the order of their numbers: bands of `order` rows of tiles run through all
 * columns, for one product or part of K after the other.
 */
struct rounds {
	double all, a, b;
};

static struct rounds count_rounds(const struct tune_problem *p,
				  const struct gemm_config *c, int at_once,
				  const struct cost_model *m)
{
	double rows = ceil((double)p->m / c->m);
	double columns = ceil((double)tune_columns(p) / c->n);
	double band = c->order > 1 ? fmin(c->order, rows) : 1;
	double apart = (double)p->batch * (c->split > 1 ? c->split : 1);
	double round = at_once * cost_value(m, COST_N_WGP);
	struct rounds r = { .all = ceil(rows * columns * apart / round) };

	r.a = r.b = r.all;
	if (c->stream_k)
		return r;
	r.b = fmin(r.all, apart * ceil(columns * band / round));
	r.a = fmin(r.all, apart * ceil(rows / band));
	return r;
}

static struct where find_where(const struct tune_problem *p,
			       const struct gemm_config *c,
			       const struct gemm_code *code,
			       const struct gemm_operands *x,
			       const struct cost_model *m)
{
	const struct cc_stats *s = &code->object[0].stats;
	int at_once = tune_groups_at_once(m->chip, c, (int)s->vgprs,
					  s->lds_bytes);
	struct rounds r = count_rounds(p, c, at_once ? at_once : 1, m);
	double masked = tune_masked_share(p, c);
	struct where w = { .warm_bytes = (uint64_t)tune_bytes_warm(p),
			   .mixed = masked > 0 && masked < 1 };

	if (p->caches != TUNE_WARM)
		w.cold[w.n_cold++] = (struct sim_cold){
			x->b, (uint64_t)tune_bytes_b(p), (int)r.b };
	if (p->caches == TUNE_COLD)
		w.cold[w.n_cold++] = (struct sim_cold){
			x->a, (uint64_t)tune_bytes_a(p), (int)r.a };
	return w;
}

/* ---- kernels ---- */

static bool find_slowest(const struct cost_model *m, struct sim_launch *l,
			 const struct where *at, struct sim_forecast *f,
			 struct err *e)
{
	uint32_t n = l->groups[0] * l->groups[1] * l->groups[2];
	struct sim_forecast last;

	if (!sim_object_forecast(m, l, at->warm_bytes, f, e))
		return false;
	l->first = n ? (n - 1) % (uint32_t)cost_value(m, COST_N_WGP) : 0;
	if (!at->mixed || !l->first)
		return true;
	if (!sim_object_forecast(m, l, at->warm_bytes, &last, e)) {
		sim_forecast_fini(f);
		return false;
	}
	if (last.time_s <= f->time_s) {
		sim_forecast_fini(&last);
		return true;
	}
	sim_forecast_fini(f);
	*f = last;
	return true;
}

/* One kernel; NAN time for one that has nothing to do. */
static bool forecast_kernel(const struct gemm_code *code,
			    const struct gemm_launch *g, int i,
			    const struct where *at, const struct cost_model *m,
			    struct sim_forecast *f, struct err *e)
{
	const struct buf *bytes = &code->object[i].bytes;
	struct co co = { 0 };
	const struct co_kernel *k = NULL;

	if (!co_parse(&co, bytes->data, bytes->len, e))
		return false;
	k = co_kernel_require(&co, g->step[i].kernel, e);
	if (!k) {
		co_fini(&co);
		return false;
	}
	size_t size = k->kernarg_bytes > g->step[i].args_bytes
			      ? k->kernarg_bytes : g->step[i].args_bytes;
	uint8_t *args = xcalloc(size + 1, 1);

	memcpy(args, g->step[i].args, g->step[i].args_bytes);
	struct sim_launch l = {
		.kernel = k, .kernarg = args, .kernarg_bytes = size,
		.groups = { g->step[i].groups[0], g->step[i].groups[1],
			    g->step[i].groups[2] },
		.group_size = { g->step[i].group_size, 1, 1 },
	};
	const struct where warm = { .warm_bytes = at->warm_bytes };

	/* The second kernel reads what the first has written. */
	at = i ? &warm : at;
	memcpy(l.cold, at->cold, sizeof(l.cold));
	l.n_cold = at->n_cold;
	bool ok = find_slowest(m, &l, at, f, e) ||
		  err_wrap(e, "%s", g->step[i].kernel);
	free(args);
	co_fini(&co);
	return ok;
}

/* The pipes' shares and the longest stalls of a round. */
static void explain_forecast(const struct sim_forecast *f, const char *kernel,
			     struct buf *out)
{
	const struct sim_result *r = &f->round;
	uint64_t all = 0;

	buf_printf(out, "  %s: %.2f us at %.0f MHz: %.0f rounds of %d "
		   "workgroups, %.0f cycles, limited by %s\n  pipes:", kernel,
		   f->time_s * 1e6, f->clock_mhz, f->rounds, f->at_once,
		   f->cycles, f->limit);
	for (int p = 0; p < SIM_PIPE_COUNT; p++)
		if (r->share[p] >= 0.01)
			buf_printf(out, " %s %.0f %%", sim_pipe_name(p),
				   100 * r->share[p]);
	for (int s = 0; s < SIM_STALL_COUNT; s++)
		all += r->stall[s];
	buf_printf(out, "\n  waves: issue %.0f %%",
		   100 * (double)r->stall[SIM_ISSUE] / (double)(all ? all : 1));
	for (int s = SIM_ISSUE + 1; s < SIM_STALL_COUNT; s++)
		if (r->stall[s] * 100 >= all * 2)
			buf_printf(out, ", %s %.0f %%", sim_stall_name(s),
				   100 * (double)r->stall[s] / (double)all);
	buf_adds(out, "\n");
}

static void add_forecast(struct tune_simulation *out,
			 const struct sim_forecast *f, int i)
{
	double share = f->round.share[f->round.limit];

	out->time_s += f->time_s + (i ? f->launch_s : 0);
	out->cycles += f->cycles;
	out->unknown += f->unknown;
	if (i)
		return;
	out->clock_hz = f->clock_mhz * 1e6;
	out->at_once = f->at_once;
	snprintf(out->limit, sizeof(out->limit), "%s %.0f %%", f->limit,
		 100 * share);
}

static void apply_bound(const struct tune_problem *p,
			const struct gemm_config *c,
			const struct gemm_code *code,
			const struct cost_model *m,
			struct tune_simulation *out)
{
	const struct cc_stats *s = &code->object[0].stats;
	struct tune_candidate x = { .config = *c };
	struct tune_needs needs = {
		(int)s->vgprs,
		tune_groups_at_once(m->chip, c, (int)s->vgprs, s->lds_bytes),
		s->lds_bytes,
	};

	tune_roofline(p, m, &needs, &x);
	if (out->time_s >= x.bound_s)
		return;
	out->time_s = x.bound_s;
	snprintf(out->limit, sizeof(out->limit), "%s (bound)", x.limit);
}

bool tune_simulate(const struct tune_problem *p, const struct gemm_config *c,
		   const struct gemm_code *code, const struct cost_model *m,
		   bool explained, struct tune_simulation *out, struct err *e)
{
	struct gemm_shape s = tune_shape(p);
	struct gemm_operands x = make_addresses();
	struct gemm_launch g;
	struct where at = find_where(p, c, code, &x, m);

	*out = (struct tune_simulation){ 0 };
	if (!gemm_launch(&p->op, c, &s, &x, &g, e))
		return false;
	for (int i = 0; i < g.n; i++) {
		struct sim_forecast f;

		if (!forecast_kernel(code, &g, i, &at, m, &f, e))
			return false;
		add_forecast(out, &f, i);
		if (explained)
			explain_forecast(&f, g.step[i].kernel, &out->explain);
		sim_forecast_fini(&f);
	}
	apply_bound(p, c, code, m, out);
	return out->time_s > 0 ||
	       err_set(e, ERR_INPUT, "an empty product takes no time");
}

void tune_simulation_fini(struct tune_simulation *p)
{
	buf_fini(&p->explain);
}
