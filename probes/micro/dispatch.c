/*
 * probes/micro/dispatch.c - t0-probe dispatch: what a launch costs.
 *
 * The kernel is empty (s_endpgm, one wave), so that the time is the way there
 * and back.  A sample is one batch: put, doorbell, wait for the last packet,
 * divided by its packets.  `put` is the host's share before the doorbell.  In
 * mode "device" the time is the device's: from the start of the batch's first
 * packet to that of its last, as it stamped them.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

#define SAMPLES	      200
#define SAMPLES_QUICK 30
#define WARM_UP	      10
/* Of a batch; what models time needs the host's. */
#define DEADLINE_NS   120000000000ull

struct series {
	const char *name;
	unsigned packets;
	bool sync; /* kfd_run(): one call, waits */
	bool device; /* by the device's stamps */
	double total_s[SAMPLES], put_s[SAMPLES]; /* per packet */
	double count[2], tsc;			 /* per packet, all samples */
	bool counted;
	size_t n;
};

struct dispatch {
	const struct probe_opts *o;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	const struct kfd_kernel *kernel;
	struct probe_perf perf;
};

static bool time_batch(struct dispatch *d, struct series *s, double *total,
		       double *put, struct err *e)
{
	struct kfd_launch l = { .kernel = d->kernel, .grid = { 32 },
				.wg = { 32 } };
	const uint64_t start = time_mono_ns();
	uint64_t ticket = 0, filled = start;
	struct probe_perf_count c;
	bool good = true;

	probe_perf_start(&d->perf);
	if (s->sync)
		good = kfd_run(d->q, &l, NULL, e);
	for (unsigned i = 0; !s->sync && i < s->packets && good; i++) {
		l.quiet = i + 1 < s->packets;
		good = kfd_put(d->q, &l, &ticket, e);
	}
	if (!s->sync)
		filled = time_mono_ns();
	if (!s->sync && good) {
		kfd_flush(d->q);
		good = kfd_wait(d->q, ticket, 0, NULL, e);
	}
	const uint64_t end = time_mono_ns();
	s->counted = probe_perf_stop(&d->perf, &c);
	for (int i = 0; i < 2; i++)
		s->count[i] += c.value[i] / s->packets;
	s->tsc += (double)c.tsc / s->packets;
	*total = (double)(end - start) * 1e-9 / s->packets;
	*put = (double)(filled - start) * 1e-9 / s->packets;
	return good;
}

/* A batch's packets are as far apart as the device says. */
static bool stamp_batch(struct dispatch *d, const struct series *s,
			double *total, struct err *e)
{
	const uint64_t deadline_ns = time_mono_ns() + DEADLINE_NS;
	struct kfd_launch l = { .kernel = d->kernel, .grid = { 32 },
				.wg = { 32 }, .deadline_ns = deadline_ns };
	uint64_t first = 0, ticket = 0;
	struct kfd_timing from, to;

	for (unsigned i = 0; i < s->packets; i++) {
		l.quiet = i && i + 1 < s->packets;
		if (!kfd_put(d->q, &l, &ticket, e))
			return false;
		first = i ? first : ticket;
	}
	kfd_flush(d->q);
	if (!kfd_wait(d->q, first, deadline_ns, &from, e) ||
	    !kfd_wait(d->q, ticket, deadline_ns, &to, e))
		return false;
	if (!from.start_ticks || !to.start_ticks)
		return err_set(e, ERR_DEVICE, "the device gave no stamps");
	*total = (double)(to.start_ticks - from.start_ticks) /
		 kfd_clock_hz(d->dev) / (s->packets - 1);
	return true;
}

static bool sample_series(struct dispatch *d, struct series *s, size_t i,
			  struct err *e)
{
	double unused, *total = i ? &s->total_s[i - 1] : &unused;

	return s->device ? stamp_batch(d, s, total, e) :
			   time_batch(d, s, total,
				      i ? &s->put_s[i - 1] : &unused, e);
}

static bool measure_series(struct dispatch *d, struct series *s, struct err *e)
{
	s->n = d->o->quick ? SAMPLES_QUICK : SAMPLES;
	for (int i = 0; i < WARM_UP; i++)
		if (!sample_series(d, s, 0, e))
			return false;
	s->count[0] = s->count[1] = s->tsc = 0;
	for (size_t i = 1; i <= s->n; i++)
		if (!sample_series(d, s, i, e))
			return false;
	return true;
}

static bool store_series(struct probe_run *r, const struct series *s,
			 struct err *e)
{
	char params[64];

	res_params(params, sizeof(params), "mode:s packets:u", s->name,
		   (unsigned)s->packets);
	return probe_run_samples(r, "dispatch", "empty kernel", params,
				 "latency", "s", RES_LOWER, s->total_s, s->n,
				 e) &&
	       (s->sync || s->device ||
		probe_run_samples(r, "dispatch", "empty kernel", params, "put",
				  "s", RES_LOWER, s->put_s, s->n, e));
}

static void add_row(struct table *t, const struct dispatch *d,
		    const struct series *s)
{
	static const double q[] = { 0.5, 0.9, 0.99 };

	table_row(t);
	table_cell(t, 0, "%s", s->name);
	table_cell(t, 1, "%u", s->packets);
	for (int i = 0; i < 3; i++)
		table_cell(t, 2 + i, "%.0f",
			   probe_quantile(s->total_s, s->n, q[i]) * 1e9);
	if (s->device)
		return;
	if (!s->sync)
		table_cell(t, 5, "%.0f",
			   probe_quantile(s->put_s, s->n, 0.5) * 1e9);
	table_cell(t, 6, "%.0f", s->tsc / (double)s->n);
	for (int i = 0; i < 2 && s->counted && d->perf.hardware; i++)
		table_cell(t, 7 + i, "%.0f", s->count[i] / (double)s->n);
	if (s->counted && d->perf.software)
		table_cell(t, 9, "%.3f", s->count[1] / (double)s->n);
}

static bool run_all(struct dispatch *d, struct probe_run *r, struct table *t,
		    struct err *e)
{
	static const unsigned sizes[] = { 0, 1, 10, 50, 200 }; /* 0 = run */
	/* Between dispatches of a modelled time the host's goes by. */
	const bool simulated = probe_origin(kfd_info(d->dev)) == RES_SIMULATED;
	const size_t first = simulated ? ARRAY_SIZE(sizes) : 0;
	struct series *s = xcalloc(1, sizeof(*s));
	bool good = true;

	for (size_t i = first;
	     i <= ARRAY_SIZE(sizes) && good && !probe_stopped(d->o); i++) {
		if (i == ARRAY_SIZE(sizes))
			*s = (struct series){ .name = "device", .device = true,
					      .packets = simulated ? 20 : 200 };
		else
			*s = (struct series){
				.name = sizes[i] ? "batched" : "sync",
				.packets = sizes[i] ? sizes[i] : 1,
				.sync = !sizes[i],
			};
		r->before = probe_reading(d->dev);
		good = measure_series(d, s, e);
		r->after = probe_reading(d->dev);
		(void)probe_was_evicted(&r->before, &r->after);
		good = good && store_series(r, s, e);
		if (good)
			add_row(t, d, s);
	}
	free(s);
	return good;
}

static bool open_device(struct dispatch *d, struct err *e)
{
	if (!kfd_open(&d->dev, d->o->device, e))
		return false;
	const struct kfd_raw_desc desc = {
		.name = "empty",
		.rsrc1 = probe_rsrc1(probe_gen(d->dev), 8),
		.rsrc2 = 0x80,
		.properties = 0x400,
	};
	if (!d->o->quiet)
		fold_printf(stderr, 2, "t0-probe: device: %s\n",
			    kfd_info(d->dev)->why);
	const struct kfd_queue_opts o = { .stop = d->o->stop };

	return kfd_queue_new(d->dev, &o, &d->q, e) &&
	       probe_load(d->dev, "s_endpgm\n", &desc, &d->kernel, e);
}

int probe_dispatch(const struct probe_opts *o, struct err *e)
{
	struct dispatch d = { .o = o, .perf.fd = { -1, -1 } };
	struct probe_run r = { .db = res_open(o->db, RES_WRITE, e) };
	struct kfd_lock lock = { .fd = -1 };
	struct table t;
	bool good;

	table_init(&t, "mode,#packets,#p50_ns,#p90_ns,#p99_ns,#put_ns,#tsc,"
		       "#cycles,#instructions,#switches");
	good = r.db && open_device(&d, e) &&
	       probe_lock(kfd_info(d.dev), &lock, e) &&
	       probe_run_begin(&r, o, "t0-probe dispatch", kfd_info(d.dev),
			       o->quick ? "{\"quick\":true}" : NULL, e);
	if (good) {
		probe_perf_open(&d.perf);
		if (!o->quiet)
			fold_printf(stderr, 2, "t0-probe: per packet; %s\n",
				    d.perf.what);
		good = run_all(&d, &r, &t, e);
		probe_perf_close(&d.perf);
	}
	kfd_lock_drop(&lock);
	kfd_close(d.dev);
	good = probe_run_end(&r, o, good, good ? 0 : err_exit_code(e), e) &&
	       probe_print_table(o, &t, NULL, e);
	table_fini(&t);
	return good ? EXIT_YES : err_exit_code(e);
}
