/*
 * autotune/tuner/measure.c - the measurement protocol (tune_int.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"
#include "probes/common/common.h"

/* Launches of a sample take so long together: 1000 ticks of the clock. */
#define SAMPLE_S 1e-5
enum { REPEAT_MOST = 64, WINDOW = 8, RETAKE_MOST = 5 };
/* Two windows are alike: medians of warm-up within this share. */
#define STEADY 0.005
/* More than the Infinity Cache holds: written over between cold samples. */
#define FLUSH_BYTES (128u << 20)

struct measurement {
	struct tune_bench *r;
	struct tune_arm *arm;
	size_t n;
	const struct tune_protocol *p;
	struct kfd_mem *flush[2];
	uint64_t state;
	struct err *e;
};

bool tune_bench_has_clock(const struct tune_bench *r, enum res_origin *origin,
			  struct err *e)
{
	const struct kfd_info *info = kfd_info(r->dev);
	const enum res_origin of = probe_origin(info);
	const bool has = r->clock || of != RES_EMULATED;

	/* What the device does not tell, the simulator does. */
	*origin = r->clock || !has ? RES_SIMULATED : of;
	return has ||
	       err_set(e, ERR_UNSUPPORTED, "%s has no clock: nothing can be "
		       "measured on it, only simulated", info->name);
}

const char *tune_is_impossible(const struct tune_problem *p, double time_s,
			       const struct cost_model *m, double max_hz)
{
	/* Of a SIMD: what the hardware can, whatever the model says. */
	double per_cycle = p->op.in == DSL_F32 ? 2 * 2 * 32 : 2 * 4096 / 32.0;
	double flops = 4 * cost_value(m, COST_N_WGP) * per_cycle * max_hz;
	double bytes = tune_bytes(p);

	if (!(time_s > 0))
		return "took no time";
	if (tune_flop(p) / time_s > flops)
		return "more FLOPS than the peak";
	if (bytes > cost_value(m, COST_MALL_BYTES) &&
	    bytes / time_s > cost_value(m, COST_DRAM_BW) +
			     cost_value(m, COST_MALL_BW))
		return "more bandwidth than memory and caches have";
	return NULL;
}

/* ---- one launch ---- */

static void give_up(struct tune_arm *a, const char *why)
{
	a->good = false;
	snprintf(a->why, sizeof(a->why), "%.150s", why);
}

/* false: the device is gone; an arm that only failed is marked. */
static bool launch_arm(struct measurement *b, struct tune_arm *a, double *s)
{
	struct err why = { 0 };

	if (tune_bench_run(b->r, &a->loaded, &a->launch, s, &why))
		return true;
	if (kfd_lost(b->r->dev, NULL)) {
		*b->e = why;
		return false;
	}
	give_up(a, why.msg);
	return true;
}

/* ---- warm-up ---- */

static bool sample_window(struct measurement *b, struct tune_arm *a,
			  double *median)
{
	double t[WINDOW];

	for (int i = 0; i < WINDOW && a->good; i++)
		if (!launch_arm(b, a, &t[i]))
			return false;
	*median = a->good ? res_median(t, WINDOW).value : NAN;
	return true;
}

/* Until two windows in a row agree, and least_s have passed. */
static bool warm_up(struct measurement *b, struct tune_arm *a)
{
	double least = b->p->warm_least_s > 0 ? b->p->warm_least_s : 1;
	double most = b->p->warm_most_s > 0 ? b->p->warm_most_s : 20;
	uint64_t start = time_mono_ns();
	double before = NAN, now;

	for (double t = 0; a->good && t < most;
	     t = (double)(time_mono_ns() - start) * 1e-9) {
		if (!sample_window(b, a, &now))
			return false;
		if (t >= least && fabs(now / before - 1) <= STEADY)
			return true;
		before = now;
	}
	if (a->good && !b->p->quiet)
		fold_printf(stderr, 2,
			    "t0-tune: warning: the clock was not steady "
			    "after %.0f s of warm-up; intervals will show it\n",
			    most);
	return true;
}

/* ---- samples ---- */

static bool set_caches(struct measurement *b, struct tune_arm *a)
{
	uint64_t a_bytes = b->r->a->size_bytes;
	double unused;

	if (b->p->caches == TUNE_WARM)
		return launch_arm(b, a, &unused);
	if (!kfd_copy(b->r->dev, b->flush[0], 0, b->flush[1], 0, FLUSH_BYTES,
		      b->e))
		return false;
	/* A is what the kernel before has just written. */
	return b->p->caches == TUNE_COLD ||
	       kfd_copy(b->r->dev, b->flush[1], 0, b->r->a, 0,
			a_bytes < FLUSH_BYTES ? a_bytes : FLUSH_BYTES, b->e);
}

static void take_reading(struct tune_arm *a, const struct probe_reading *x)
{
	if (!x->good || isnan(x->s.sclk_hz))
		return;
	a->clock_hz = a->readings ? a->clock_hz + x->s.sclk_hz : x->s.sclk_hz;
	a->power_w = a->readings ? a->power_w + x->s.power_w : x->s.power_w;
	a->readings++;
}

static bool sample_once(struct measurement *b, struct tune_arm *a, double *s,
			bool *evicted)
{
	double sum = 0, t = 0;

	*evicted = false;
	if (!set_caches(b, a) || !a->good)
		return a->good ? false : true;
	struct probe_reading before = probe_reading(b->r->dev);
	/* What is cold is so once. */
	unsigned repeat = b->p->caches == TUNE_WARM ? a->repeat : 1;
	for (unsigned i = 0; i < repeat && a->good; i++) {
		if (!launch_arm(b, a, &t))
			return false;
		sum += t;
	}
	struct probe_reading after = probe_reading(b->r->dev);
	*evicted = probe_was_evicted(&before, &after);
	*s = sum / repeat;
	if (*evicted)
		return true;
	take_reading(a, &before);
	take_reading(a, &after);
	a->sensors = before.good && after.good;
	a->before = before.s;
	a->after = after.s;
	return true;
}

static bool sample_arm(struct measurement *b, struct tune_arm *a)
{
	double s = 0;
	bool evicted = true;

	for (int i = 0; evicted && a->good; i++) {
		if (i == RETAKE_MOST) {
			give_up(a, "the driver keeps taking the card away");
			return true;
		}
		a->retaken += i > 0;
		if (!sample_once(b, a, &s, &evicted))
			return false;
	}
	if (a->good)
		a->sample[a->n++] = s;
	return true;
}

static void shuffle_arms(struct measurement *b, size_t *order)
{
	for (size_t i = 0; i < b->n; i++)
		order[i] = i;
	for (size_t i = b->n; i > 1; i--) {
		size_t k = random_next(&b->state) % i, x = order[i - 1];

		order[i - 1] = order[k];
		order[k] = x;
	}
}

static bool sample_rounds(struct measurement *b, size_t samples)
{
	size_t *order = xcalloc(b->n + 1, sizeof(*order));
	struct progress bar;
	bool ok = true;

	progress_init(&bar, "measuring", samples * b->n, b->p->quiet);
	for (size_t i = 0; ok && i < samples; i++) {
		shuffle_arms(b, order);
		for (size_t k = 0; ok && k < b->n; k++) {
			struct tune_arm *a = &b->arm[order[k]];

			if (b->p->stop && *b->p->stop)
				break;
			ok = !a->good || sample_arm(b, a);
			progress_step(&bar, 1);
		}
	}
	progress_fini(&bar);
	free(order);
	return ok;
}

/* ---- arms ---- */

static void prepare_arm(struct measurement *b, struct tune_arm *a,
			size_t samples)
{
	struct tune_view v = tune_view_all(&b->r->p);
	struct err why = { 0 };

	a->sample = xcalloc(samples + 1, sizeof(double));
	a->clock_hz = a->power_w = NAN;
	a->good = tune_bench_load(b->r, a->code, &a->loaded, &why) &&
		  tune_bench_launch(b->r, a->config, &v, &a->launch, &why);
	if (!a->good)
		give_up(a, why.msg);
}

/* So many launches that ticks of the device's clock do not matter. */
static bool find_repeat(struct measurement *b, struct tune_arm *a)
{
	double s = 0;

	if (a->good && !launch_arm(b, a, &s))
		return false;
	double n = s > 0 ? ceil(SAMPLE_S / s) : 1;

	a->repeat = n > REPEAT_MOST ? REPEAT_MOST : n < 1 ? 1 : (unsigned)n;
	return true;
}

static void finish_arm(struct measurement *b, struct tune_arm *a,
		       size_t samples)
{
	double max_hz = kfd_info(b->r->dev)->node.clk_max_mhz * 1e6;
	const char *why;

	if (a->readings) {
		a->clock_hz /= a->readings;
		a->power_w /= a->readings;
	}
	if (a->good && a->n < samples)
		give_up(a, "interrupted before all samples were taken");
	if (!a->good)
		return;
	a->time_s = res_median(a->sample, a->n);
	/* Boards run above what the driver calls their most. */
	max_hz = fmax(max_hz, cost_value(b->p->costs, COST_CLOCK_SHORT) * 1e6);
	why = tune_is_impossible(&b->r->p, a->time_s.value, b->p->costs,
				 max_hz);
	if (why) {
		snprintf(a->why, sizeof(a->why), "impossible: %s: %.4g us are "
			 "%.4g TFLOPS", why, a->time_s.value * 1e6,
			 tune_flop(&b->r->p) / a->time_s.value / 1e12);
		a->good = false;
	}
}

static bool flush_memory(struct measurement *b)
{
	for (int i = 0; b->p->caches != TUNE_WARM && i < 2; i++)
		if (!kfd_mem_alloc(b->r->dev, KFD_VRAM, FLUSH_BYTES, "flush",
				   &b->flush[i], b->e))
			return false;
	return true;
}

static bool measure_arms(struct measurement *b, size_t samples)
{
	bool ok = flush_memory(b);
	size_t first = 0;

	for (size_t i = 0; ok && i < b->n; i++) {
		prepare_arm(b, &b->arm[i], samples);
		ok = find_repeat(b, &b->arm[i]);
	}
	while (first < b->n && !b->arm[first].good)
		first++;
	ok = ok && (first == b->n || warm_up(b, &b->arm[first])) &&
	     sample_rounds(b, samples);
	for (size_t i = 0; ok && i < b->n; i++)
		finish_arm(b, &b->arm[i], samples);
	for (size_t i = 0; i < b->n; i++)
		tune_bench_unload(&b->arm[i].loaded);
	for (int i = 0; i < 2; i++)
		kfd_mem_free(b->r->dev, b->flush[i]);
	return ok;
}

bool tune_measure(struct tune_bench *r, struct tune_arm *arm, size_t n,
		  const struct tune_protocol *p, struct err *e)
{
	struct measurement b = { .r = r, .arm = arm, .n = n, .p = p,
			   .state = p->seed, .e = e };
	size_t samples = p->samples ? p->samples : TUNE_SAMPLES_LEAST;
	enum res_origin origin;
	struct kfd_lock lock;

	if (samples < TUNE_SAMPLES_LEAST)
		return err_set(e, ERR_USAGE, "%zu samples: wanted at least %d",
			       samples, TUNE_SAMPLES_LEAST);
	if (!tune_bench_has_clock(r, &origin, e) ||
	    !probe_lock(kfd_info(r->dev), &lock, e))
		return false;
	bool ok = measure_arms(&b, samples);
	kfd_lock_drop(&lock);
	return ok;
}

void tune_arm_fini(struct tune_arm *a)
{
	free(a->sample);
	a->sample = NULL;
}
