/*
 * kfd/soft/timed - the soft device with the pipeline simulator as its clock:
 * the manual.
 *
 * The soft device executes and knows no time; the simulator (compiler/sim) knows
 * time and no values.  Joined (kfd/soft/watch/watch.h, "Timing"), a kernel runs
 * for real while the simulator decides which wave issues in which cycle.
 *
 * waves.c is the device as a source of waves, model.c a whole card of given
 * costs: it has a clock that falls under load, and a time from packet to packet.
 *
 *	cost_init(&costs, "gfx1100");
 *	soft_model_read(&costs, "card.costs", &e);
 *	struct kfd_driver *d = kfd_soft_new(NULL, &e);
 *	soft_model_attach(d, &costs, &e) && kfd_open_on(&dev, d, "soft", ...)
 *
 * `t0-soft run --costs FILE` shows such a card to any program.  What it says is
 * simulated.
 */
#ifndef T0_KFD_SOFT_TIMED_H
#define T0_KFD_SOFT_TIMED_H

#include "compiler/sim/sim.h"
#include "kfd/soft/watch/watch.h"

/* ----------------------------------------------------------- waves.c ---- */

/*
 * The workgroups that one WGP gets of a dispatch, every `every`th from `first`
 * on, as a source of waves for sim_run().  The caller says in `source` what code
 * it is, and in `cycle` which of the device's cycles is the simulation's first.
 */
struct soft_waves {
	struct sim_source source;
	uint64_t cycle;
	/* private */
	struct soft_timed *dispatch;
	uint64_t first, every;
	struct soft_run **run; /* [source.n_groups] NULL: not yet, or ended */
	struct soft_timed_inst inst;
};
void soft_waves_init(struct soft_waves *w, struct soft_timed *dispatch,
		     const struct soft_timed_dispatch *d, uint64_t first,
		     uint64_t every);
void soft_waves_fini(struct soft_waves *w);

/* ----------------------------------------------------------- costs.c ---- */

/* Of each line NAME=VALUE of a file; empty lines and those with # say nothing. */
bool soft_model_read(struct cost_model *m, const char *path, struct err *e);

/* ----------------------------------------------------------- model.c ---- */

/*
 * Makes the device a card of these costs, which are only read, and outlive it.
 *   - One WGP is simulated.  Of a dispatch of fewer workgroups than the GPU has
 *     WGPs all run on it, else every 48th, while all others are as busy; those
 *     others' workgroups are executed untimed.
 *   - A packet that was waiting begins "dispatch.launch" after the one before
 *     it; another one when it comes.
 *   - Dispatches that fill half of the WGPs or more are load: each runs at
 *     cost_clock() of the cycles of the load before it and of the pause since,
 *     the first one and all that is no load at "clock.short".
 * What cannot be simulated is executed untimed, with a line on standard error.
 */
bool soft_model_attach(struct kfd_driver *d, const struct cost_model *m,
		       struct err *e);

#endif
