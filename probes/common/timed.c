/*
 * probes/common/timed.c - the soft device, timed by the pipeline simulator.
 *
 * The simulator asks its wave source where a wave is and what an instruction
 * touched; this source asks the soft device, one instruction at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/soft.h"
#include "probes/common/common.h"

struct probe_timed {
	const struct cost_model *costs;
	const uint8_t *code;
	size_t code_bytes;
	uint64_t code_va, first;
	uint64_t cycles, issues;
	bool failed;
	struct err why;
};

/* --------------------------------------------------------- wave source -- */

static bool waves_begin(struct sim_source *s, int group, uint64_t cycle,
			struct err *e)
{
	struct probe_waves *w = s->ctx;

	(void)cycle;
	w->run[group] = soft_timed_start(w->dispatch, w->first +
					 (uint64_t)group * w->every);
	return w->run[group] ||
	       err_set(e, ERR_DEVICE, "workgroup %d could not be started: too "
		       "many are resident, or the queue was stopped", group);
}

/* What the wave executes next is in w->inst; false: it has ended. */
static bool peek_wave(struct probe_waves *w, int wave)
{
	const int n = w->source.waves_per_group;
	struct soft_run *r = w->run[wave / n];

	return r && soft_timed_look(w->dispatch, r, wave % n, &w->inst);
}

static bool waves_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	struct probe_waves *w = s->ctx;

	if (!peek_wave(w, wave))
		return false;
	*pc = w->inst.pc;
	return true;
}

static bool waves_step(struct sim_source *s, int wave, uint64_t cycle,
		       struct sim_step *out, struct err *e)
{
	struct probe_waves *w = s->ctx;
	const int n = w->source.waves_per_group;

	/* Others were looked at since; the addresses are this wave's. */
	if (!peek_wave(w, wave))
		return err_set(e, ERR_DEVICE, "wave %d cannot go on", wave);
	*out = (struct sim_step){ .exec = w->inst.exec,
				  .kind = w->inst.kind,
				  .access_bytes = w->inst.access_bytes,
				  .n_accesses = w->inst.n_accesses,
				  .access = w->inst.access };
	const struct soft_timed_step step =
		soft_timed_step(w->dispatch, w->run[wave / n], wave % n,
				w->cycle + cycle);

	if (step.group_ended)
		w->run[wave / n] = NULL;
	return step.state != SOFT_TIMED_STOP ||
	       err_set(e, ERR_DEVICE, "wave %d faulted, or the queue was "
		       "stopped", wave);
}

void probe_waves_init(struct probe_waves *w, struct soft_timed *dispatch,
		      const struct soft_timed_dispatch *d, uint64_t first,
		      uint64_t every)
{
	memset(w, 0, sizeof(*w));
	w->dispatch = dispatch;
	w->first = first;
	w->every = every;
	w->source = (struct sim_source){
		.ctx = w,
		.code_va = d->entry_va,
		.wave_size = (int)d->wave_size,
		.waves_per_group = (int)d->waves_per_group,
		.n_groups = (int)((d->total - first + every - 1) / every),
		.lds_bytes = d->lds_bytes,
		.vgprs = (int)d->vgprs,
		.cu_mode = !d->wgp_mode,
		.begin = waves_begin,
		.pc = waves_pc,
		.step = waves_step
	};
	w->run = xcalloc((size_t)w->source.n_groups, sizeof(*w->run));
}

void probe_waves_fini(struct probe_waves *w)
{
	free(w->run);
}

/* ------------------------------------------------------------- dispatch -- */

static bool simulate_dispatch(struct probe_timed *t, struct probe_waves *w,
			      const struct soft_timed_dispatch *d,
			      struct err *e)
{
	const struct sim_config c = { .cost = t->costs, .warmth = SIM_EMPTY,
				      .busy_wgps = (int)w->every };
	struct sim_result r;

	if (d->entry_va != t->code_va)
		return err_set(e, ERR_INPUT, "kernel '%s' at 0x%llx is not the "
			       "one whose code was given", d->kernel,
			       (unsigned long long)d->entry_va);
	w->cycle = t->first;
	w->source.code = t->code;
	w->source.code_bytes = t->code_bytes;
	if (!sim_run(&w->source, &c, &r, e))
		return err_wrap(e, "simulating '%s'", d->kernel);
	t->cycles = r.cycles;
	t->issues += r.issues;
	sim_fini(&r);
	return true;
}

static void on_dispatch(void *ctx, struct soft_timed *dispatch,
			const struct soft_timed_dispatch *d)
{
	struct probe_timed *t = ctx;
	const uint64_t wgps = (uint64_t)cost_value(t->costs, COST_N_WGP);
	struct probe_waves w;

	probe_waves_init(&w, dispatch, d, 0, d->total < wgps ? 1 : wgps);
	t->why = (struct err){ 0 };
	soft_timed_clock(dispatch, t->first, cost_value(t->costs, COST_CLOCK));
	t->failed = !simulate_dispatch(t, &w, d, &t->why);
	if (!t->failed)
		soft_timed_end(dispatch, t->first + t->cycles);
	probe_waves_fini(&w);
}

/* ------------------------------------------------------------------ use -- */

struct probe_timed *probe_timed_new(const struct cost_model *costs)
{
	struct probe_timed *t = xcalloc(1, sizeof(*t));

	t->costs = costs;
	return t;
}

void probe_timed_free(struct probe_timed *t)
{
	free(t);
}

bool probe_timed_open(struct probe_timed *t, struct kfd_dev **dev,
		      struct err *e)
{
	const struct soft_timing client = { t, on_dispatch };
	struct kfd_driver *d = kfd_soft_new(NULL, e);

	if (!d)
		return false;
	if (!soft_set_timing(d, &client, e)) {
		d->free(d);
		return false;
	}
	return kfd_open_on(dev, d, "soft", "the gfx1100 in software, timed by "
			   "the pipeline simulator", e);
}

void probe_timed_code(struct probe_timed *t, const void *code, size_t bytes,
		      uint64_t va)
{
	t->code = code;
	t->code_bytes = bytes;
	t->code_va = va;
}

void probe_timed_first(struct probe_timed *t, uint64_t cycle)
{
	t->first = cycle;
}

bool probe_timed_check(struct probe_timed *t, struct err *e)
{
	if (t->failed && e)
		*e = t->why;
	return !t->failed;
}

uint64_t probe_timed_issues(const struct probe_timed *t)
{
	return t->issues;
}
