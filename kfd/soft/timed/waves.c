/*
 * kfd/soft/timed/waves.c - the soft device as a source of waves.
 *
 * The simulator asks where a wave is and what an instruction touched; the
 * device answers, one instruction at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/timed/timed.h"

static bool waves_begin(struct sim_source *s, int group, uint64_t cycle,
			struct err *e)
{
	struct soft_waves *w = s->ctx;

	(void)cycle;
	w->run[group] = soft_timed_start(w->dispatch, w->first +
					 (uint64_t)group * w->every);
	return w->run[group] ||
	       err_set(e, ERR_DEVICE, "workgroup %d could not be started: too "
		       "many are resident, or the queue was stopped", group);
}

/* What the wave executes next is in w->inst; false: it has ended. */
static bool peek_wave(struct soft_waves *w, int wave)
{
	const int n = w->source.waves_per_group;
	struct soft_run *r = w->run[wave / n];

	/* The last workgroups may have fewer waves. */
	return r && wave % n < soft_timed_waves(r) &&
	       soft_timed_look(w->dispatch, r, wave % n, &w->inst);
}

static bool waves_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	struct soft_waves *w = s->ctx;

	if (!peek_wave(w, wave))
		return false;
	*pc = w->inst.pc;
	return true;
}

static bool waves_step(struct sim_source *s, int wave, uint64_t cycle,
		       struct sim_step *out, struct err *e)
{
	struct soft_waves *w = s->ctx;
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

void soft_waves_init(struct soft_waves *w, struct soft_timed *dispatch,
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

void soft_waves_fini(struct soft_waves *w)
{
	free(w->run);
}
