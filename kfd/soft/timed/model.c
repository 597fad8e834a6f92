/*
 * kfd/soft/timed/model.c - a card of given costs: dispatches take the time that
 * the simulator says, one after the other, at a clock that load lowers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/abi.h"
#include "kfd/soft/timed/timed.h"

/* Code before and behind the first instruction that may be executed. */
enum { CODE_MOST = 1 << 20 };

struct model {
	const struct cost_model *costs;
	pthread_mutex_t lock;
	/* Of the last load: its cycles (0: there was none), and its end. */
	double load_cycles;
	uint64_t load_end;
	uint64_t entry_va; /* of the last dispatch: its code is in the cache */
};

/* ---- the clock ---- */

static bool is_load(const struct model *m, const struct soft_timed_dispatch *d)
{
	return 2 * (double)d->total >= cost_value(m->costs, COST_N_WGP);
}

static double clock_for(struct model *m, const struct soft_timed_dispatch *d,
			uint64_t start)
{
	double mhz = cost_value(m->costs, COST_CLOCK_SHORT), pause;

	pthread_mutex_lock(&m->lock);
	if (is_load(m, d) && m->load_cycles > 0) {
		pause = start > m->load_end ? (double)(start - m->load_end) : 0;
		mhz = cost_clock(m->costs, m->load_cycles,
				 pause / KFD_GPU_CLOCK_HZ);
	}
	pthread_mutex_unlock(&m->lock);
	return mhz;
}

static void note_load(struct model *m, const struct soft_timed_dispatch *d,
		      uint64_t start, double cycles, double mhz)
{
	if (!is_load(m, d))
		return;
	pthread_mutex_lock(&m->lock);
	m->load_cycles = cycles;
	m->load_end = start + (uint64_t)(cycles / (mhz * 1e6) *
					 KFD_GPU_CLOCK_HZ);
	pthread_mutex_unlock(&m->lock);
}

/* ---- dispatches ---- */

static uint64_t begin_of(const struct model *m,
			 const struct soft_timed_dispatch *d)
{
	double launch_s = cost_value(m->costs, COST_LAUNCH) * 1e-6;

	return d->after_ticks ? d->after_ticks +
					(uint64_t)(launch_s * KFD_GPU_CLOCK_HZ +
						   0.5) :
				d->taken_ticks;
}

/* Was it the last one, too? */
static bool is_known(struct model *m, uint64_t entry_va)
{
	pthread_mutex_lock(&m->lock);
	const bool known = m->entry_va == entry_va;

	m->entry_va = entry_va;
	pthread_mutex_unlock(&m->lock);
	return known;
}

static bool simulate(struct model *m, struct soft_timed *t,
		     const struct soft_timed_dispatch *d, double mhz,
		     double *cycles, struct err *e)
{
	uint64_t wgps = (uint64_t)cost_value(m->costs, COST_N_WGP);
	uint64_t every = d->total < wgps ? 1 : wgps;
	const struct sim_config c = { .cost = m->costs, .clock_mhz = mhz,
				      .warmth = SIM_EMPTY,
				      .warm_code = is_known(m, d->entry_va),
				      .busy_wgps = (int)every };
	struct soft_waves w;
	struct sim_result r;

	soft_waves_init(&w, t, d, 0, every);
	w.source.code = soft_timed_code(t, d->entry_va, CODE_MOST,
					&w.source.code_va,
					&w.source.code_bytes);
	bool ok = w.source.code ? sim_run(&w.source, &c, &r, e) :
				  err_set(e, ERR_DEVICE, "its code is in no "
					  "buffer");
	if (ok) {
		*cycles = (double)r.cycles;
		sim_fini(&r);
	}
	soft_waves_fini(&w);
	return ok;
}

static void on_dispatch(void *ctx, struct soft_timed *t,
			const struct soft_timed_dispatch *d)
{
	struct model *m = ctx;
	uint64_t start = begin_of(m, d);
	double mhz = clock_for(m, d, start), cycles;
	struct err e = { 0 };

	soft_timed_begin(t, start);
	soft_timed_clock(t, 0, mhz);
	if (!simulate(m, t, d, mhz, &cycles, &e)) {
		fprintf(stderr, "t0-soft: '%s' takes no time: %s\n", d->kernel,
			e.msg);
		return;
	}
	soft_timed_end(t, (uint64_t)cycles);
	note_load(m, d, start, cycles, mhz);
}

bool soft_model_attach(struct kfd_driver *d, const struct cost_model *costs,
		       struct err *e)
{
	/* The device's as long as the process is: nobody is told of its end. */
	struct model *m = xcalloc(1, sizeof(*m));
	const struct soft_timing client = { m, on_dispatch };

	m->costs = costs;
	pthread_mutex_init(&m->lock, NULL);
	if (soft_set_timing(d, &client, e))
		return true;
	free(m);
	return false;
}
