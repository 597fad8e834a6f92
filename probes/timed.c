/*
 * The simulator asks its wave source where a wave is and what an instruction
 * touched; this source asks the soft device, one instruction at a time.
 */
#include <stdlib.h>

#include "kfd/soft/soft.h"
#include "kfd/soft/timing.h"
#include "probes/timed.h"

struct probe_timed {
	const struct cost_model *costs;
	const uint8_t *code;
	size_t code_bytes;
	uint64_t code_va, first;
	/* Of the dispatch in work. */
	struct soft_timed *dispatch;
	struct soft_run **run; /* [groups] NULL: not yet, or ended */
	struct soft_timed_inst inst;
	int waves_per_group, every;
	uint64_t cycles, issues;
	bool failed;
	struct err why;
};

/* --------------------------------------------------------- wave source -- */

static bool source_begin(struct sim_source *s, int group, uint64_t cycle,
			 struct err *e)
{
	struct probe_timed *t = s->ctx;

	(void)cycle;
	t->run[group] = soft_timed_start(t->dispatch, (uint64_t)group *
						     (uint64_t)t->every);
	return t->run[group] ||
	       err_set(e, ERR_DEVICE, "workgroup %d could not be started: too "
		       "many are resident, or the queue was stopped", group);
}

static bool source_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	struct probe_timed *t = s->ctx;
	struct soft_run *r = t->run[wave / t->waves_per_group];

	if (!r || !soft_timed_look(t->dispatch, r, wave % t->waves_per_group,
				   &t->inst))
		return false;
	*pc = t->inst.pc;
	return true;
}

static bool source_step(struct sim_source *s, int wave, uint64_t cycle,
			struct sim_step *out, struct err *e)
{
	struct probe_timed *t = s->ctx;
	const int group = wave / t->waves_per_group;
	struct soft_run *r = t->run[group];
	const int w = wave % t->waves_per_group;

	/* Others were looked at since; the addresses are this wave's. */
	if (!r || !soft_timed_look(t->dispatch, r, w, &t->inst))
		return err_set(e, ERR_DEVICE, "wave %d cannot go on", wave);
	*out = (struct sim_step){ .exec = t->inst.exec,
				  .kind = t->inst.kind,
				  .access_bytes = t->inst.access_bytes,
				  .n_accesses = t->inst.n_accesses,
				  .access = t->inst.access };
	const struct soft_timed_step step =
		soft_timed_step(t->dispatch, r, w, t->first + cycle);

	if (step.group_ended)
		t->run[group] = NULL;
	return step.state != SOFT_TIMED_STOP ||
	       err_set(e, ERR_DEVICE, "wave %d faulted, or the queue was "
		       "stopped", wave);
}

/* ------------------------------------------------------------- dispatch -- */

static bool simulate(struct probe_timed *t,
		     const struct soft_timed_dispatch *d, struct err *e)
{
	struct sim_source s = { .ctx = t,
				.code = t->code,
				.code_va = t->code_va,
				.code_bytes = t->code_bytes,
				.wave_size = (int)d->wave_size,
				.waves_per_group = (int)d->waves_per_group,
				.n_groups = (int)((d->total +
						   (uint64_t)t->every - 1) /
						  (uint64_t)t->every),
				.lds_bytes = d->lds_bytes,
				.vgprs = (int)d->vgprs,
				.cu_mode = !d->wgp_mode,
				.begin = source_begin,
				.pc = source_pc,
				.step = source_step };
	const struct sim_config c = { .cost = t->costs, .warmth = SIM_EMPTY,
				      .busy_wgps = t->every };
	struct sim_result r;

	if (d->entry_va != t->code_va)
		return err_set(e, ERR_INPUT, "kernel '%s' at 0x%llx is not the "
			       "one whose code was given", d->kernel,
			       (unsigned long long)d->entry_va);
	if (!sim_run(&s, &c, &r, e))
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

	t->dispatch = dispatch;
	t->waves_per_group = (int)d->waves_per_group;
	t->every = (int)cost_value(t->costs, COST_N_WGP);
	if (d->total < (uint64_t)t->every)
		t->every = 1;
	t->run = xcalloc(d->total, sizeof(struct soft_run *));
	t->why = (struct err){ 0 };
	soft_timed_clock(dispatch, t->first, cost_value(t->costs, COST_CLOCK));
	t->failed = !simulate(t, d, &t->why);
	if (!t->failed)
		soft_timed_end(dispatch, t->first + t->cycles);
	free(t->run);
	t->run = NULL;
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
