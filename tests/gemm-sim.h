/*
 * gemm-sim - the time of matrix products in the pipeline simulator, whose waves
 * the soft device executes: of what one WGP gets of the product the first
 * workgroups that fit it at once run for real, with two depths of K; longer K
 * loops go on at that pace.  Lines that workgroups elsewhere read at the same
 * time are paid once below L1.
 */
#ifndef T0_TESTS_GEMM_SIM_H
#define T0_TESTS_GEMM_SIM_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/gemm/gemm.h"
#include "compiler/sim/sim.h"
#include "isa/co.h"
#include "isa/occupancy.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/timing.h"

/* A range of memory and by how many workgroups a line of it is shared. */
struct gemm_range {
	uint64_t va, size;
	double shared;
};

struct gemm_sim {
	struct kfd_dev *dev;
	struct kfd_queue *queue;
	struct cost_model costs;
	/* of the dispatch in work */
	struct gemm_range range[2];
	uint64_t footprint;
	int busy_wgps, fits; /* workgroups of a WGP at once */
	const uint8_t *code;
	size_t code_bytes;
	uint64_t code_va;
	struct soft_timed *dispatch;
	struct soft_run **run;
	struct soft_timed_inst inst;
	int waves;
	double *shared; /* [code_bytes / 4] */
	struct sim_result r;
	bool good;
	struct err e;
};

static inline bool gemm_sim_begin(struct sim_source *s, int group,
				  uint64_t cycle, struct err *e)
{
	struct gemm_sim *t = s->ctx;

	(void)cycle;
	t->run[group] = soft_timed_start(t->dispatch, (uint64_t)group);
	return t->run[group] || err_set(e, ERR_DEVICE, "no workgroup");
}

static inline bool gemm_sim_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	struct gemm_sim *t = s->ctx;
	struct soft_run *r = t->run[wave / t->waves];

	if (!r || !soft_timed_look(t->dispatch, r, wave % t->waves, &t->inst))
		return false;
	*pc = t->inst.pc;
	return true;
}

static inline void gemm_sim_note(struct gemm_sim *t)
{
	if (!t->inst.n_accesses)
		return;
	for (int k = 0; k < 2; k++)
		if (t->inst.access[0].at - t->range[k].va < t->range[k].size)
			t->shared[(t->inst.pc - t->code_va) / 4] =
				t->range[k].shared;
}

static inline bool gemm_sim_step(struct sim_source *s, int wave, uint64_t cycle,
				 struct sim_step *out, struct err *e)
{
	struct gemm_sim *t = s->ctx;
	struct soft_run *r = t->run[wave / t->waves];
	const int w = wave % t->waves;

	if (!r || !soft_timed_look(t->dispatch, r, w, &t->inst))
		return err_set(e, ERR_DEVICE, "wave %d cannot go on", wave);
	gemm_sim_note(t);
	*out = (struct sim_step){ .exec = t->inst.exec, .kind = t->inst.kind,
				  .access_bytes = t->inst.access_bytes,
				  .n_accesses = t->inst.n_accesses,
				  .access = t->inst.access };
	const struct soft_timed_step step =
		soft_timed_step(t->dispatch, r, w, cycle);

	if (step.group_ended)
		t->run[wave / t->waves] = NULL;
	return step.state != SOFT_TIMED_STOP ||
	       err_set(e, ERR_DEVICE, "wave %d faulted", wave);
}

static inline double gemm_sim_sharing(struct sim_source *s, uint64_t pc)
{
	struct gemm_sim *t = s->ctx;
	const double n = t->shared[(pc - t->code_va) / 4];

	return n > 1 ? n : 1;
}

static inline void gemm_sim_dispatch(void *ctx, struct soft_timed *dispatch,
				     const struct soft_timed_dispatch *d)
{
	struct gemm_sim *t = ctx;
	struct sim_source s = { .ctx = t, .code = t->code,
				.code_va = t->code_va,
				.code_bytes = t->code_bytes,
				.wave_size = (int)d->wave_size,
				.waves_per_group = (int)d->waves_per_group,
				.n_groups = (int)d->total,
				.lds_bytes = d->lds_bytes,
				.vgprs = (int)d->vgprs,
				.cu_mode = !d->wgp_mode,
				.begin = gemm_sim_begin, .pc = gemm_sim_pc,
				.step = gemm_sim_step,
				.sharing = gemm_sim_sharing };
	const struct sim_config c = { .cost = &t->costs, .warmth = SIM_WARM,
				      .footprint_bytes = t->footprint,
				      .warm_code = true,
				      .busy_wgps = t->busy_wgps };

	t->dispatch = dispatch;
	t->waves = (int)d->waves_per_group;
	t->run = xcalloc(d->total, sizeof(*t->run));
	t->shared = xcalloc(t->code_bytes / 4 + 1, sizeof(double));
	sim_fini(&t->r);
	t->r = (struct sim_result){ 0 };
	soft_timed_clock(dispatch, 0, 2400);
	t->e = (struct err){ 0 };
	t->good = sim_run(&s, &c, &t->r, &t->e);
	if (t->good)
		soft_timed_end(dispatch, t->r.cycles);
	free(t->run);
	free(t->shared);
}

static inline bool gemm_sim_open(struct gemm_sim *t, struct err *e)
{
	const struct soft_timing client = { t, gemm_sim_dispatch };
	struct kfd_driver *d = kfd_soft_new(NULL, e);

	memset(t, 0, sizeof(*t));
	cost_init(&t->costs, "gfx1100");
	return d && soft_set_timing(d, &client, e) &&
	       kfd_open_on(&t->dev, d, "soft", "timed", e) &&
	       kfd_queue_new(t->dev, NULL, &t->queue, e);
}

static inline void gemm_sim_close(struct gemm_sim *t)
{
	sim_fini(&t->r);
	kfd_close(t->dev);
	cost_fini(&t->costs);
}

/* Runs a dispatch; its result is in t->r. */
static inline bool gemm_sim_run(struct gemm_sim *t, const struct buf *object,
				const char *kernel, const uint32_t groups[3],
				uint32_t group_size, const void *args,
				struct err *e)
{
	const struct kfd_kernel *k;
	struct kfd_code *code = NULL;
	struct kfd_launch l = { .args = args };
	struct co co;

	if (!co_parse(&co, object->data, object->len, e))
		return false;
	bool good = kfd_code_load(t->dev, object->data, object->len, &code, e) &&
		    kfd_code_kernel(code, kernel, &k, e);

	if (good) {
		l.kernel = k;
		l.args_bytes = k->explicit_bytes;
		l.wg[0] = group_size;
		l.grid[0] = groups[0] * group_size;
		l.grid[1] = groups[1];
		l.grid[2] = groups[2];
		t->code = co.kernels[0].code;
		t->code_bytes = co.kernels[0].code_bytes;
		t->code_va = k->entry_va;
		good = kfd_run(t->queue, &l, NULL, e);
		if (good && !t->good)
			good = err_set(e, ERR_DEVICE, "%s", t->e.msg);
	}
	kfd_code_unload(code);
	co_fini(&co);
	return good;
}

/* How a product is tiled, and how to launch a part of it. */
struct gemm_sim_job {
	const struct buf *object;
	const char *kernel;
	uint32_t m, n, k; /* the product */
	uint32_t tile_m, tile_n, tile_k, group_size;
	uint32_t order;	  /* rows of tiles in a band; 0: a row at a time */
	uint32_t in_bytes, out_bytes;
	/*
	 * Arguments and grid for `groups` workgroups of the product with only
	 * `k` of K; operands at these addresses.
	 */
	void (*launch)(const struct gemm_sim_job *j, uint32_t groups,
		       uint32_t k, const uint64_t va[3], uint32_t grid[3],
		       void *args);
	const void *ctx;
};

struct gemm_sim_time {
	double cycles, step, rounds; /* step: of a tile of K, slots filled */
	int groups, at_once;	     /* of the fullest WGP */
	enum sim_pipe limit;
	double share; /* of that pipe */
};

/* Workgroups of a WGP at once. */
static inline int gemm_sim_fits(const struct buf *object, uint32_t group_size)
{
	struct isa_occupancy o;
	struct err e = { 0 };
	struct co co;
	int n = 0;

	if (!co_parse(&co, object->data, object->len, &e))
		return 0;
	const struct co_descriptor *d = &co.kernels[0].desc;
	const struct isa_resources need = {
		.wave = co_descriptor_wave_size(d),
		.vgprs = co_descriptor_vgprs(d),
		.lds_bytes = co.kernels[0].group_segment_bytes,
		.workgroup_size = (int)group_size,
		.wgp_mode = co.kernels[0].workgroup_processor_mode,
	};

	if (isa_occupancy("gfx1100", &need, &o))
		n = o.workgroups * (need.wgp_mode ? 1 : 2);
	/* A group's LDS lies in one half. */
	if (need.lds_bytes && n > 2 * (65536 / (int)need.lds_bytes))
		n = 2 * (65536 / (int)need.lds_bytes);
	co_fini(&co);
	return n;
}

/* Cycles of `groups` workgroups that begin together, with `k` of K. */
static inline bool gemm_sim_some(struct gemm_sim *t,
				 const struct gemm_sim_job *j, uint32_t groups,
				 uint32_t k, struct kfd_mem *const m[3],
				 double *cycles, struct err *e)
{
	const uint64_t va[3] = { m[0]->va, m[1]->va, m[2]->va };
	const uint32_t tiles_m = (j->m + j->tile_m - 1) / j->tile_m;
	const uint32_t tiles_n = (j->n + j->tile_n - 1) / j->tile_n;
	const double all = (double)tiles_m * tiles_n;
	const double now = fmin(all, 48.0 * groups);
	const double band = fmin(j->order > 1 ? j->order : 1, tiles_m);
	uint8_t args[256] = { 0 };
	uint32_t grid[3];

	/* Bands run through all columns: rows at once, columns at once. */
	const double columns = fmin(tiles_n, fmax(1, now / band));
	const double rows = fmax(1, now / columns);

	t->range[0] = (struct gemm_range){ va[0], m[0]->size_bytes, columns };
	t->range[1] = (struct gemm_range){ va[1], m[1]->size_bytes, rows };
	t->footprint = ((uint64_t)j->m * j->k + (uint64_t)j->n * j->k) *
			       j->in_bytes + (uint64_t)j->m * j->n * j->out_bytes;
	t->busy_wgps = all < 48 ? (int)all : 48;
	j->launch(j, groups, k, va, grid, args);
	if (!gemm_sim_run(t, j->object, j->kernel, grid, j->group_size, args, e))
		return false;
	*cycles = (double)t->r.cycles;
	return true;
}

enum { GEMM_SIM_LESS = 16, GEMM_SIM_MORE = 48 };

static inline bool gemm_sim_round(struct gemm_sim *t,
				  const struct gemm_sim_job *j, uint32_t groups,
				  struct kfd_mem *const m[3],
				  struct gemm_sim_time *x, double *cycles,
				  struct err *e)
{
	const uint32_t less = GEMM_SIM_LESS * j->tile_k;
	const uint32_t more = GEMM_SIM_MORE * j->tile_k;
	double a, b;

	if (j->k <= more) {
		if (!gemm_sim_some(t, j, groups, j->k, m, cycles, e))
			return false;
		x->step = *cycles / ((double)j->k / j->tile_k);
	} else {
		if (!gemm_sim_some(t, j, groups, less, m, &a, e) ||
		    !gemm_sim_some(t, j, groups, more, m, &b, e))
			return false;
		x->step = (b - a) / (GEMM_SIM_MORE - GEMM_SIM_LESS);
		*cycles = b + x->step * ((double)j->k / j->tile_k -
					 GEMM_SIM_MORE);
	}
	x->limit = t->r.limit;
	x->share = t->r.share[t->r.limit];
	return true;
}

/* The time of the product on the GPU, launch not included. */
static inline bool gemm_sim_product(struct gemm_sim *t,
				    const struct gemm_sim_job *j,
				    struct gemm_sim_time *x, struct err *e)
{
	const uint64_t size[3] = { (uint64_t)j->m * j->k * j->in_bytes,
				   (uint64_t)j->n * j->k * j->in_bytes,
				   (uint64_t)j->m * j->n * j->out_bytes };
	const double all = ceil((double)j->m / j->tile_m) *
			   ceil((double)j->n / j->tile_n);
	struct kfd_mem *m[3] = { 0 };
	double full = 0, part = 0;
	bool good = true;

	*x = (struct gemm_sim_time){ .groups = (int)ceil(all / 48) };
	x->at_once = gemm_sim_fits(j->object, j->group_size);
	if (!x->at_once)
		return err_set(e, ERR_UNSUPPORTED, "%s does not fit a WGP",
			       j->kernel);
	for (int k = 0; good && k < 3; k++)
		good = kfd_mem_alloc(t->dev, KFD_VRAM, size[k], "operand",
				     &m[k], e);
	const int whole = x->groups / x->at_once, rest = x->groups % x->at_once;

	good = good && (!rest || gemm_sim_round(t, j, (uint32_t)rest, m, x,
						&part, e));
	good = good && (!whole || gemm_sim_round(t, j, (uint32_t)x->at_once, m,
						 x, &full, e));
	x->rounds = whole + !!rest;
	x->cycles = whole * full + part;
	for (int k = 0; k < 3; k++)
		if (m[k])
			kfd_mem_free(t->dev, m[k]);
	return good;
}

/* ---- kernels of compiler/gemm ---- */

struct gemm_sim_config {
	const struct gemm_op *op;
	const struct gemm_config *c;
};

static inline void gemm_sim_launch(const struct gemm_sim_job *j,
				   uint32_t groups, uint32_t k,
				   const uint64_t va[3], uint32_t grid[3],
				   void *args)
{
	const struct gemm_sim_config *x = j->ctx;
	const struct gemm_operands o = { .a = va[0], .b = va[1], .c = va[2],
					 .alpha = 1 };
	/* A band's columns, or a row, as far as the product has tiles. */
	const uint32_t tiles_m = j->m / j->tile_m, tiles_n = j->n / j->tile_n;
	const uint32_t band = j->order > 1 ? j->order : 1;
	uint32_t deep = groups < band ? groups : band;

	deep = deep < tiles_m ? deep : tiles_m;
	uint32_t wide = (groups + deep - 1) / deep;

	wide = wide < tiles_n ? wide : tiles_n;
	const struct gemm_shape s = {
		.m = j->tile_m * deep, .n = j->tile_n * wide, .k = k,
		.lda = x->op->a_trans ? j->m : j->k,
		.ldb = x->op->b_trans ? j->k : j->n, .ldc = j->n,
	};
	struct gemm_launch l;
	struct err e = { 0 };

	if (!gemm_launch(x->op, x->c, &s, &o, &l, &e))
		BUG("%s", e.msg);
	memcpy(grid, l.step[0].groups, sizeof(l.step[0].groups));
	if (deep == band && grid[0] > groups)
		grid[0] = groups;
	memcpy(args, l.step[0].args, l.step[0].args_bytes);
}

static inline bool gemm_sim_ours(struct gemm_sim *t, const struct gemm_op *op,
				 const struct gemm_config *c,
				 const struct gemm_code *code, uint32_t m,
				 uint32_t n, uint32_t k,
				 struct gemm_sim_time *x, struct err *e)
{
	const struct gemm_sim_config ctx = { op, c };
	const struct gemm_sim_job j = {
		.object = &code->object[0].bytes, .kernel = "gemm",
		.m = m, .n = n, .k = k, .tile_m = c->m, .tile_n = c->n,
		.tile_k = c->k,
		.group_size = 32u * c->waves_m * c->waves_n,
		.order = c->order, .launch = gemm_sim_launch, .ctx = &ctx,
		.in_bytes = op->in == DSL_I8 ? 1 : op->in == DSL_F32 ? 4 : 2,
		.out_bytes = op->out == DSL_F32 || op->out == DSL_I32 ? 4 : 2,
	};

	return gemm_sim_product(t, &j, x, e);
}

#endif
