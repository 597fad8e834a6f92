/*
 * probes/common/timed.h - the soft device with the pipeline simulator as its clock.
 *
 * The soft device executes and knows no time; the simulator (compiler/sim)
 * knows time and no values.  Joined, a kernel runs for real while the
 * simulator decides which wave issues in which cycle, and what the kernel
 * reads from SHADER_CYCLES and GET_REALTIME is the simulator's clock.  So the
 * probes run as on a card, and what they find out is what the simulator was
 * told: the proof that they measure what they say.
 *
 * One WGP is simulated.  A dispatch of fewer workgroups than the GPU has WGPs
 * runs on it; of a larger one it runs its share, every 48th, while all others
 * are as busy, and those others' workgroups are executed without being timed.
 *
 * Results of such a device are `simulated`.  They are never read as costs
 * (compiler/cost/cost.h), for a model must not learn from itself.
 *
 *	struct probe_timed *t = probe_timed_new(&costs);
 *	probe_timed_open(t, &dev, &e);
 *	probe_timed_code(t, code, bytes, kernel->entry_va);
 *	kfd_run(queue, &launch, NULL, &e) && probe_timed_check(t, &e);
 *	kfd_close(dev);
 *	probe_timed_free(t);
 */
#ifndef T0_PROBES_TIMED_H
#define T0_PROBES_TIMED_H

#include "compiler/sim/sim.h"
#include "kfd/kfd.h"
#include "kfd/soft/timing.h"

struct probe_timed;

/* `costs` is only read, and outlives it. */
struct probe_timed *probe_timed_new(const struct cost_model *costs);
/* After kfd_close() of its device. */
void probe_timed_free(struct probe_timed *t);

/* A soft device whose dispatches are timed by `t`. */
bool probe_timed_open(struct probe_timed *t, struct kfd_dev **dev,
		      struct err *e);

/* The code of the dispatches that follow; the bytes stay the caller's. */
void probe_timed_code(struct probe_timed *t, const void *code, size_t bytes,
		      uint64_t va);
/* The cycle that the next dispatch begins with (0): to see counters wrap. */
void probe_timed_first(struct probe_timed *t, uint64_t cycle);

/* Could the last dispatch be simulated?  Else *e says why not. */
bool probe_timed_check(struct probe_timed *t, struct err *e);
/* Wave-instructions of all dispatches so far. */
uint64_t probe_timed_issues(const struct probe_timed *t);

/*
 * For other clients of the soft device: the workgroups that one WGP gets of a
 * dispatch, every `every`th from `first` on, as a source of waves for
 * sim_run().  The caller says in `source` what code it is, and in `cycle` which
 * of the device's cycles is the simulation's first.
 */
struct probe_waves {
	struct sim_source source;
	uint64_t cycle;
	/* private */
	struct soft_timed *dispatch;
	uint64_t first, every;
	struct soft_run **run; /* [source.n_groups] NULL: not yet, or ended */
	struct soft_timed_inst inst;
};
void probe_waves_init(struct probe_waves *w, struct soft_timed *dispatch,
		      const struct soft_timed_dispatch *d, uint64_t first,
		      uint64_t every);
void probe_waves_fini(struct probe_waves *w);

#endif
