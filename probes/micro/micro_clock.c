/*
 * probes/micro/micro_clock.c - t0-probe clock: the shader clock under load.
 *
 * Load is a kernel of matrix products on all WGPs, a pause one wave that sleeps.
 * A chain of both, packet behind packet, holds the card busy for a given share
 * of the time, as long as its power limit takes to act; the last loads say at
 * which clock they ran, and the device's stamps which share it was.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

enum {
	WAVES = 8,
	PRODUCTS = 8,	 /* in the shorter loop */
	KEPT = 8,	 /* loads at the end that are looked at */
	RING = 256,
	ITERATIONS = 400, /* 600 000 cycles: SHADER_CYCLES must not wrap twice */
	ITERATIONS_SIM = 40, /* much more than a launch */
	ROUNDS_SIM = KEPT + 1,
	PAUSE_TICKS = 25000, /* of 10 ns: about a load on a card */
};
#define CHAIN_S	    0.6 /* of a card; quick: 0.2 */
#define DEADLINE_NS 60000000000ull

/* Pauses, as a share of PAUSE_TICKS. */
static const double pauses[] = { 0, 0.1, 0.25, 0.5, 1, 2, 4, 8 };

struct clock {
	struct micro_device d;
	struct micro_probe load, pause;
	uint32_t groups;
	bool simulated; /* needs neither warmth nor time */
};

/* ---- kernels ---- */

/* Each workgroup has results of its own; s15 is its number. */
static const char load_setup[] =
	"s_mul_i32 s3, s15, 0x8000\ns_add_u32 s4, s4, s3\n"
	"s_addc_u32 s5, s5, 0\n";
_Static_assert(WAVES * MICRO_WAVE_BYTES == 0x8000, "load_setup");

/* Until s11 ticks of the device's clock have gone by. */
static const char pause_setup[] =
	"s_sendmsg_rtn_b64 s[20:21], sendmsg(MSG_RTN_GET_REALTIME)\n"
	"s_waitcnt lgkmcnt(0)\n"
	"s_add_u32 s24, s20, s11\n"
	".Lpause:\n"
	"s_sleep 8\n"
	"s_sendmsg_rtn_b64 s[22:23], sendmsg(MSG_RTN_GET_REALTIME)\n"
	"s_waitcnt lgkmcnt(0)\n"
	"s_sub_u32 s25, s22, s24\n"
	"s_cmp_lt_i32 s25, 0\n"
	"s_cbranch_scc1 .Lpause\n";

/* A modelled clock is one of time, not of power: what takes as long, but not
 * the host's time. */
static const char heavy[] = "v_wmma_f32_16x16x16_f16 v[%d:%h], v[17:24], "
			    "v[26:33], v[%d:%h]";
static const char slow[] = "v_fma_f64 v[%d:%e], v[18:19], v[20:21], v[%d:%e]";

static bool make_load(struct clock *c, struct err *e)
{
	struct buf setup = { 0 }, body[2] = { { 0 }, { 0 } };

	buf_adds(&setup, load_setup);
	/* Ones times halves: data that moves, and stays finite. */
	for (int k = 16; k < 128; k++)
		buf_printf(&setup, "v_mov_b32 v%d, 0x%x\n", k,
			   k < 40 ? 0x38003c00u : 0u);
	for (int k = 0; k < 2 * PRODUCTS; k++)
		for (int b = k < PRODUCTS ? 0 : 1; b < 2; b++)
			micro_expand(&body[b], c->simulated ? slow : heavy,
				     40 + 8 * (k % 8));
	const struct micro_text t = { .setup = setup.data,
				      .loop = { body[0].data, body[1].data },
				      .waves = WAVES };
	const bool good = micro_probe_init(&c->load, &c->d, &t, "load",
					   PRODUCTS,
					   c->simulated ? ITERATIONS_SIM :
							  ITERATIONS, e);
	buf_fini(&setup);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	c->load.groups = c->groups;
	return good;
}

static bool make_pause(struct clock *c, struct err *e)
{
	const struct micro_text t = { .setup = pause_setup,
				      .loop = { "s_nop 0\n", "s_nop 0\n" } };

	return micro_probe_init(&c->pause, &c->d, &t, "pause", 1, 1, e);
}

/* ---- a chain ---- */

/* `kept`: where it leaves what it reads, of KEPT places. */
static bool put_one(struct clock *c, struct micro_probe *p, int kept,
		    uint32_t ticks, uint64_t *ticket, struct err *e)
{
	const uint64_t room = (uint64_t)c->groups * WAVES * MICRO_WAVE_BYTES;
	const struct {
		uint64_t out, data;
		uint32_t iterations, reps, warm, unused;
	} args = { c->d.out->va + (uint64_t)kept * room, c->d.data->va,
		   p->iterations, 1, ticks, 0 };
	const struct kfd_launch l = { .kernel = p->kernel,
				      .grid = { 32 * p->waves * p->groups },
				      .wg = { 32 * p->waves },
				      .args = &args,
				      .args_bytes = sizeof(args),
				      .deadline_ns = time_mono_ns() +
						     DEADLINE_NS };

	return kfd_put(c->d.q, &l, ticket, e);
}

struct chain {
	uint64_t ticket[KEPT]; /* of the last loads, in turn */
	double clock_hz[KEPT];
	double share; /* of the time that the card was under load */
};

static bool put_chain(struct clock *c, int rounds, uint32_t ticks,
		      struct chain *x, struct err *e)
{
	uint64_t pause;

	for (int i = 0; i < rounds; i++) {
		if (!put_one(c, &c->load, i % KEPT, 0, &x->ticket[i % KEPT],
			     e) ||
		    (ticks && !put_one(c, &c->pause, KEPT, ticks, &pause, e)))
			return false;
		/* The next packets are there before the first of these ends. */
		if (i % 16 == 0 && i)
			kfd_flush(c->d.q);
	}
	kfd_flush(c->d.q);
	return kfd_drain(c->d.q, time_mono_ns() + DEADLINE_NS, e);
}

static double reading_of(const struct clock *c, int kept)
{
	const uint64_t room = (uint64_t)c->groups * WAVES * MICRO_WAVE_BYTES;
	const uint8_t *at = (const uint8_t *)c->d.out->cpu +
			    (uint64_t)kept * room;
	uint32_t cycles[4];
	uint64_t time[2];

	memcpy(cycles, at, sizeof(cycles));
	memcpy(time, at + sizeof(cycles), sizeof(time));
	return (double)probe_ticks_between(cycles[0], cycles[3], 20) /
	       (double)(time[1] - time[0]) * 1e8;
}

/* From the first of the last loads to the last: what part of it was load. */
static bool read_chain(struct clock *c, int rounds, struct chain *x,
		       struct err *e)
{
	double busy = 0, begin = 0, end = 0;

	for (int i = 0; i < KEPT; i++) {
		const int k = (rounds + i) % KEPT; /* from the oldest on */
		struct kfd_timing t;

		if (!kfd_wait(c->d.q, x->ticket[k], 0, &t, e))
			return false;
		if (!t.end_ticks)
			return err_set(e, ERR_DEVICE, "the device gave no "
				       "stamps of a load");
		begin = i ? begin : (double)t.start_ticks;
		end = (double)t.start_ticks;
		busy += i + 1 < KEPT ? (double)(t.end_ticks - t.start_ticks) :
				       0;
		x->clock_hz[i] = reading_of(c, k);
	}
	x->share = busy / (end - begin);
	return true;
}

/* Seconds of a load, to know how many make a chain. */
static bool time_load(struct clock *c, double *s, struct err *e)
{
	struct kfd_timing t;
	uint64_t ticket;

	if (!put_one(c, &c->load, 0, 0, &ticket, e))
		return false;
	kfd_flush(c->d.q);
	if (!kfd_wait(c->d.q, ticket, time_mono_ns() + DEADLINE_NS, &t, e))
		return false;
	*s = (double)t.device_ns * 1e-9;
	return *s > 0 || err_set(e, ERR_DEVICE, "the device gave no stamps");
}

/* ---- rows ---- */

static bool store_chain(struct clock *c, double pause, const struct chain *x,
			struct err *e)
{
	struct probe_run *r = &c->d.run;
	struct table *t = &c->d.table;
	const double clock = probe_quantile(x->clock_hz, KEPT, 0.5);
	char params[96];

	res_params(params, sizeof(params), "pause_percent:d",
		   (int)(100 * pause + 0.5));
	table_row(t);
	table_cell(t, 0, "%.0f", 100 * pause);
	table_cell(t, 1, "%.2f", 100 * x->share);
	table_cell(t, 2, "%.0f", clock * 1e-6);
	if (r->after.good && !isnan(r->after.s.power_w))
		table_cell(t, 3, "%.0f", r->after.s.power_w);
	if (r->after.good && !isnan(r->after.s.junction_c))
		table_cell(t, 4, "%.0f", r->after.s.junction_c);
	return probe_run_samples(r, "clock", "load", params, "clock", "Hz",
				 RES_NEITHER, x->clock_hz, KEPT, e) &&
	       probe_run_samples(r, "clock", "load", params, "share", "1",
				 RES_NEITHER, &x->share, 1, e);
}

static bool run_chain(struct clock *c, double load_s, double pause,
		      struct err *e)
{
	/* A pause is in loads of this device. */
	const double pause_s = c->simulated ? pause * load_s :
					      pause * PAUSE_TICKS * 1e-8;
	const double most = c->d.o->quick ? CHAIN_S / 3 : CHAIN_S;
	int rounds = c->simulated ? ROUNDS_SIM :
				    (int)(most / (load_s + pause_s)) + KEPT;
	struct chain x = { 0 };

	c->d.run.before = probe_reading(c->d.dev);
	if (!put_chain(c, rounds, (uint32_t)(pause_s * 1e8 + 0.5), &x, e))
		return false;
	c->d.run.after = probe_reading(c->d.dev);
	(void)probe_was_evicted(&c->d.run.before, &c->d.run.after);
	return read_chain(c, rounds, &x, e) && store_chain(c, pause, &x, e);
}

/* A ring that holds all that is looked at, and room for its results. */
static bool make_room(struct clock *c, struct err *e)
{
	struct micro_device *d = &c->d;
	const struct kfd_queue_opts o = { .ring_packets = RING,
					  .stop = d->o->stop };
	const uint64_t room = (uint64_t)c->groups * WAVES * MICRO_WAVE_BYTES;

	kfd_mem_free(d->dev, d->out);
	d->out = NULL;
	if (!kfd_queue_free(d->q, e))
		return false;
	d->q = NULL;
	return kfd_queue_new(d->dev, &o, &d->q, e) &&
	       kfd_mem_alloc(d->dev, KFD_GTT, (KEPT + 1) * room, "results",
			     &d->out, e);
}

int micro_clock(const struct probe_opts *o, struct err *e)
{
	struct clock c = { .groups = 48 };
	double load_s = 0;
	bool good = micro_device_open(&c.d, o, "clock",
				      "#pause_percent,#busy_percent,"
				      "#clock_mhz,#power_w,#junction_c", e);

	if (good) {
		const uint32_t cus = kfd_info(c.d.dev)->node.cu_count;

		c.groups = cus ? cus / 2 : c.groups;
		c.simulated = probe_origin(kfd_info(c.d.dev)) != RES_HARDWARE;
	}
	good = good && make_room(&c, e) && make_load(&c, e) &&
	       make_pause(&c, e) && time_load(&c, &load_s, e);
	for (size_t i = 0; i < ARRAY_SIZE(pauses) && good && !*o->stop; i++)
		good = run_chain(&c, load_s, pauses[i], e);
	micro_probe_fini(&c.load);
	micro_probe_fini(&c.pause);
	return micro_device_close(&c.d, good, e);
}
