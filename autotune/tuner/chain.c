/*
 * autotune/tuner/chain.c - a product in a row of launches (tune.h).
 */
#include <math.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"

/* A sample lasts so long on a card; a simulated one is always the same. */
#define SAMPLE_S 0.01
#define WARM_S	 1.0
enum { LAUNCHES_MOST = 100, LAUNCHES_SIM = 3, SAMPLES_SIM = 1 };
#define DEADLINE_NS 300000000000ull

struct chain {
	struct tune_bench r;
	struct tune_loaded code;
	struct gemm_launch launch;
};

static bool is_first(const struct gemm_launch *l, int i)
{
	for (int k = 0; k < i; k++)
		if (l->step[k].groups[0])
			return false;
	return l->step[i].groups[0] != 0;
}

/* Seconds from launch to launch, of so many. */
static bool run_chain(struct chain *c, int launches, double *s, struct err *e)
{
	uint64_t first = 0, last = 0, ticket;
	struct kfd_timing from, to;

	for (int k = 0; k < launches; k++)
		for (int i = 0; i < c->launch.n; i++) {
			if (!c->launch.step[i].groups[0])
				continue;
			if (!tune_bench_submit(&c->r, &c->code, &c->launch, i,
					       &ticket, e))
				return false;
			if (!is_first(&c->launch, i))
				continue;
			first = k ? first : ticket;
			last = ticket;
		}
	if (!kfd_drain(c->r.q, time_mono_ns() + DEADLINE_NS, e) ||
	    !kfd_wait(c->r.q, first, 0, &from, e) ||
	    !kfd_wait(c->r.q, last, 0, &to, e))
		return false;
	if (!from.start_ticks || !to.start_ticks)
		return err_set(e, ERR_DEVICE, "the device gave no stamps");
	*s = (double)(to.start_ticks - from.start_ticks) /
	     kfd_clock_hz(c->r.dev) / (launches - 1);
	return true;
}

/* As many as last long enough together. */
static int count_launches(double s)
{
	double n = ceil(SAMPLE_S / s) + 1;

	return n > LAUNCHES_MOST ? LAUNCHES_MOST : n < 3 ? 3 : (int)n;
}

static bool warm_up(struct chain *c, const struct tune_chain *x, double *s,
		    struct err *e)
{
	const uint64_t start = time_mono_ns();

	do {
		if (!run_chain(c, count_launches(*s), s, e))
			return false;
	} while ((double)(time_mono_ns() - start) * 1e-9 < WARM_S &&
		 !(x->stop && *x->stop));
	return true;
}

static bool take_samples(struct chain *c, const struct tune_chain *x,
			 bool simulated, struct tune_chain_time *out,
			 struct err *e)
{
	const size_t n = simulated ? SAMPLES_SIM : TUNE_CHAIN_SAMPLES;
	double s = 0;

	if (!run_chain(c, LAUNCHES_SIM, &s, e) ||
	    (!simulated && !warm_up(c, x, &s, e)))
		return false;
	out->launches = simulated ? LAUNCHES_SIM : count_launches(s);
	out->before = probe_reading(c->r.dev);
	for (size_t i = 0; i < n && !(x->stop && *x->stop); i++) {
		if (!run_chain(c, out->launches, &out->sample[i], e))
			return false;
		out->n++;
	}
	out->after = probe_reading(c->r.dev);
	return out->n || err_set(e, ERR_STOPPED, "before the first sample");
}

static bool check_and_time(struct chain *c, const struct tune_chain *x,
			   bool simulated, struct tune_chain_time *out,
			   struct err *e)
{
	const struct tune_view v = tune_view_all(x->problem);
	struct tune_check_result check;

	if (!tune_check(&c->r, x->problem, x->config, x->code, x->seed, &check,
			e))
		return false;
	out->right = check.pass;
	snprintf(out->detail, sizeof(out->detail), "%s", check.detail);
	return tune_bench_set(&c->r, x->problem, TUNE_NORMAL, x->seed, e) &&
	       tune_bench_load(&c->r, x->code, &c->code, e) &&
	       tune_bench_launch(&c->r, x->config, &v, &c->launch, e) &&
	       take_samples(c, x, simulated, out, e);
}

bool tune_chain_time(const struct tune_chain *x, struct kfd_dev *dev,
		     struct tune_chain_time *out, struct err *e)
{
	const enum res_origin origin = probe_origin(kfd_info(dev));
	struct chain c = { .r = { .dev = dev } };
	struct kfd_lock lock;

	*out = (struct tune_chain_time){ 0 };
	if (origin == RES_EMULATED)
		return err_set(e, ERR_UNSUPPORTED, "%s has no clock: nothing "
			       "can be measured on it", kfd_info(dev)->name);
	if (!probe_lock(kfd_info(dev), &lock, e))
		return false;
	bool ok = kfd_queue_new(dev, NULL, &c.r.q, e) &&
		  check_and_time(&c, x, origin == RES_SIMULATED, out, e);
	tune_bench_unload(&c.code);
	tune_bench_drop(&c.r);
	kfd_lock_drop(&lock);
	return ok;
}
