/*
 * probes/common/timed.c - the soft device, timed by the pipeline simulator, as
 * probes want it: the code of each dispatch, one clock.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/soft.h"
#include "probes/common/common.h"

/* The queue's thread reads what the program's last gave it. */
struct probe_timed {
	pthread_mutex_t lock; /* of all but the costs */
	const struct cost_model *costs;
	const uint8_t *code;
	size_t code_bytes;
	uint64_t code_va, first;
	uint64_t cycles, issues;
	bool failed;
	struct err why;
};

/* ------------------------------------------------------------- dispatch -- */

static bool simulate_dispatch(struct probe_timed *t, struct soft_waves *w,
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
	struct soft_waves w;

	pthread_mutex_lock(&t->lock);
	soft_waves_init(&w, dispatch, d, 0, d->total < wgps ? 1 : wgps);
	t->why = (struct err){ 0 };
	soft_timed_clock(dispatch, t->first, cost_value(t->costs, COST_CLOCK));
	t->failed = !simulate_dispatch(t, &w, d, &t->why);
	if (!t->failed)
		soft_timed_end(dispatch, t->first + t->cycles);
	soft_waves_fini(&w);
	pthread_mutex_unlock(&t->lock);
}

/* ------------------------------------------------------------------ use -- */

struct probe_timed *probe_timed_new(const struct cost_model *costs)
{
	struct probe_timed *t = xcalloc(1, sizeof(*t));

	t->costs = costs;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void probe_timed_free(struct probe_timed *t)
{
	if (t)
		pthread_mutex_destroy(&t->lock);
	free(t);
}

bool probe_timed_open(struct probe_timed *t, struct kfd_dev **dev,
		      struct err *e)
{
	const struct soft_timing client = { t, on_dispatch };
	const struct soft_options o = { .chip = {
						isa_chip_find(t->costs->chip) } };
	struct kfd_driver *d = kfd_soft_new(&o, e);
	char why[96];

	if (!d)
		return false;
	if (!soft_set_timing(d, &client, e)) {
		d->free(d);
		return false;
	}
	snprintf(why, sizeof(why), "the %s in software, timed by the pipeline "
		 "simulator", t->costs->chip);
	return kfd_open_on(dev, d, "soft", why, e);
}

void probe_timed_code(struct probe_timed *t, const void *code, size_t bytes,
		      uint64_t va)
{
	pthread_mutex_lock(&t->lock);
	t->code = code;
	t->code_bytes = bytes;
	t->code_va = va;
	pthread_mutex_unlock(&t->lock);
}

void probe_timed_first(struct probe_timed *t, uint64_t cycle)
{
	pthread_mutex_lock(&t->lock);
	t->first = cycle;
	pthread_mutex_unlock(&t->lock);
}

bool probe_timed_check(struct probe_timed *t, struct err *e)
{
	pthread_mutex_lock(&t->lock);
	const bool failed = t->failed;
	if (failed && e)
		*e = t->why;
	pthread_mutex_unlock(&t->lock);
	return !failed;
}

uint64_t probe_timed_issues(struct probe_timed *t)
{
	pthread_mutex_lock(&t->lock);
	const uint64_t issues = t->issues;
	pthread_mutex_unlock(&t->lock);
	return issues;
}
