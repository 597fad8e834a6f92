/*
 * kfd/soft/watch/timed.c - timed dispatches: a client steps their waves, one
 * instruction at a time.
 *
 * The client runs inside soft_dispatch() on the queue's thread, before the
 * pool gets what it has left over (watch.h).
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

#define PATIENCE 30u /* times the usual deadline: models are slow */
#define LOOK_AT_CLOCK 4096u /* steps between looks at the deadline */
#define GROUPS_MAX (1ull << 28) /* of a dispatch that a client is given */
#define BUFFERS_AT (1ull << 40) /* where the client sees them */
#define OTHERS_AT (1ull << 32)	/* and what is in no buffer: one page */

/* Where a buffer lies, and where the client sees it. */
struct placed {
	uint64_t va, size, at;
};

/* What is attached to the device. */
struct timer {
	struct soft_hook hook;
	struct soft_dev *dev;
	struct soft_timing client; /* run NULL: nobody models time */
	struct soft_watch *sites;  /* decodes: the device's watch, or own */
	bool own_sites;
	uint64_t n_dispatches; /* atomic: that the client was given */
	/* Of each queue's last dispatch, by id: its end, and the doorbell then. */
	struct last {
		uint64_t index, rung, end_ts;
	} last[SOFT_QUEUES_MAX];
};

struct soft_timed {
	struct soft_dispatch *dp;
	struct soft_watch *sites;
	struct soft_now now;
	struct soft_run *resident; /* in the client's hands */
	struct placed *placed;	   /* [n_placed] by handle */
	size_t n_placed, latest;
	uint64_t first_cycle, last_cycle;
	double ticks_per_cycle;
	uint64_t start_ts, n_steps;
	bool ended;   /* last_cycle is the client's word */
	bool stopped; /* no wave may continue */
};

/* ------------------------------------------------------------ clocks ---- */

static uint64_t ticks_at(const struct soft_timed *t, uint64_t cycle)
{
	if (cycle <= t->first_cycle)
		return t->start_ts;
	return t->start_ts + (uint64_t)((double)(cycle - t->first_cycle) *
					t->ticks_per_cycle + 0.5);
}

void soft_timed_clock(struct soft_timed *t, uint64_t first_cycle,
		      double clk_mhz)
{
	t->first_cycle = first_cycle;
	if (clk_mhz > 0)
		t->ticks_per_cycle = KFD_GPU_CLOCK_HZ / 1e6 / clk_mhz;
}

void soft_timed_end(struct soft_timed *t, uint64_t cycle)
{
	t->last_cycle = cycle;
	t->ended = true;
}

void soft_timed_begin(struct soft_timed *t, uint64_t ticks)
{
	t->start_ts = ticks;
	t->dp->l.q->began_ts = ticks;
}

/* --------------------------------------------------------------- code --- */

const uint8_t *soft_timed_code(struct soft_timed *t, uint64_t va, uint64_t most,
			       uint64_t *from_va, size_t *bytes)
{
	struct soft_dev *d = t->dp->l.q->dev;
	const uint8_t *at = NULL;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 1; i < d->n_bo && !at; i++) {
		const struct soft_bo *b = d->bo[i];

		if (!b || !b->host || va - b->va >= b->size)
			continue;
		const uint64_t before = va - b->va, rest = b->size - before;
		const uint64_t back = before < most ? before : most;

		*from_va = va - back;
		*bytes = back + (rest < most ? rest : most);
		at = b->host + before - back;
	}
	pthread_mutex_unlock(&d->lock);
	return at;
}

/* -------------------------------------------------------- workgroups ---- */

struct soft_run *soft_timed_start(struct soft_timed *t, uint64_t index)
{
	struct soft_dispatch *dp = t->dp;
	struct soft_run *r = NULL;
	uint8_t *done;

	if (t->stopped || index >= dp->l.total)
		return NULL;
	done = &dp->started[index / 8];
	pthread_mutex_lock(&dp->lock);
	if (!(*done >> index % 8 & 1) && dp->resident < dp->l.max_resident) {
		*done |= (uint8_t)(1u << index % 8);
		r = soft_dispatch_take(dp, index);
	}
	pthread_mutex_unlock(&dp->lock);
	if (!r)
		return NULL;
	soft_dispatch_start(dp, r, soft_gpu_clock(dp->l.q->card));
	r->next = t->resident;
	t->resident = r;
	return r;
}

int soft_timed_waves(const struct soft_run *r)
{
	return r->g.n_waves;
}

void soft_timed_group_id(const struct soft_run *r, uint32_t id[3])
{
	memcpy(id, r->g.id, sizeof(r->g.id));
}

/* Out of the client's hands. */
static void give_back(struct soft_timed *t, struct soft_run *r,
		      enum soft_turn how)
{
	struct soft_run **at = &t->resident;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	pthread_mutex_lock(&t->dp->lock);
	soft_dispatch_put(t->dp, r, how);
	pthread_mutex_unlock(&t->dp->lock);
}

/* --------------------------------------------------------- addresses ---- */

static void place_buffers(struct soft_timed *t, struct soft_dev *d)
{
	uint64_t at = BUFFERS_AT;

	pthread_mutex_lock(&d->lock);
	t->placed = xcalloc(d->n_bo, sizeof(*t->placed));
	for (size_t i = 1; i < d->n_bo; i++) {
		const struct soft_bo *b = d->bo[i];

		if (!b)
			continue;
		t->placed[t->n_placed++] =
			(struct placed){ b->va, b->size, at };
		at += b->size;
	}
	pthread_mutex_unlock(&d->lock);
}

static uint64_t place_address(struct soft_timed *t, uint64_t va)
{
	for (size_t n = 0; n < t->n_placed; n++) {
		const size_t i = (t->latest + n) % t->n_placed;
		const struct placed *p = &t->placed[i];

		if (va - p->va < p->size) {
			t->latest = i;
			return p->at + (va - p->va);
		}
	}
	return OTHERS_AT + va % KFD_PAGE_BYTES;
}

/* ------------------------------------------------------------- steps ---- */

bool soft_timed_look(struct soft_timed *t, struct soft_run *r, int wave,
		     struct soft_timed_inst *out)
{
	struct soft_wave *w = &r->g.wave[wave];
	bool there;

	if (w->state != SOFT_READY)
		return false;
	soft_map_hold(t->dp->l.q->dev);
	there = watch_look(t->sites, w, out);
	soft_map_release(t->dp->l.q->dev);
	if (there && (out->kind & TRACE_SPACE) == TRACE_MEMORY)
		for (uint32_t i = 0; i < out->n_accesses; i++)
			out->access[i].at = place_address(t, out->access[i].at);
	return there;
}

/* May the queue go on?  Waits while it is paused. */
static bool may_go(struct soft_timed *t, const struct soft_run *r)
{
	enum soft_go go;

	while ((go = soft_queue_go(t->dp->l.q)) == SOFT_PAUSE)
		soft_dispatch_pause(t->dp);
	if (go == SOFT_STOP ||
	    (++t->n_steps % LOOK_AT_CLOCK == 0 &&
	     soft_dispatch_hangs(t->dp, r, &t->dp->l.q->worker)))
		t->stopped = true;
	return !t->stopped;
}

static enum soft_timed_state state_of(const struct soft_wave *w)
{
	switch (w->state) {
	case SOFT_READY:
		return SOFT_TIMED_READY;
	case SOFT_AT_BARRIER:
	case SOFT_AT_NAMED_BARRIER:
		return SOFT_TIMED_BARRIER;
	case SOFT_ENDED:
		return SOFT_TIMED_END;
	default:
		return SOFT_TIMED_STOP;
	}
}

static bool execute_step(struct soft_timed *t, struct soft_run *r,
			 struct soft_wave *w, uint64_t cycle)
{
	struct soft_dispatch *dp = t->dp;

	t->now = (struct soft_now){ cycle, ticks_at(t, cycle) };
	if (!t->ended && cycle > t->last_cycle)
		t->last_cycle = cycle;
	if (soft_dispatch_slice(dp, r, w, &dp->l.q->worker, 1))
		return true;
	t->stopped = true;
	give_back(t, r, SOFT_TURN_FAILED);
	return false;
}

struct soft_timed_step soft_timed_step(struct soft_timed *t,
				       struct soft_run *r, int wave,
				       uint64_t cycle)
{
	struct soft_timed_step out = { .state = SOFT_TIMED_STOP };
	struct soft_wave *w = &r->g.wave[wave];

	if (t->stopped || !may_go(t, r))
		return out;
	if (w->state != SOFT_READY) {
		out.state = state_of(w);
		return out;
	}
	if (!execute_step(t, r, w, cycle))
		return out;
	out.state = state_of(w);
	if (out.state == SOFT_TIMED_READY)
		return out;
	out.barrier_opened = soft_dispatch_barrier(t->dp, r);
	if (out.barrier_opened)
		out.state = state_of(w);
	out.group_ended = r->g.n_ended == r->g.n_waves;
	if (out.group_ended)
		give_back(t, r, SOFT_TURN_ENDED);
	return out;
}

/* ---------------------------------------------------------- dispatch ---- */

static struct soft_timed_dispatch
describe_dispatch(const struct soft_dispatch *dp, const char *kernel)
{
	const struct soft_launch *l = &dp->l;
	struct soft_timed_dispatch d = {
		.kernel = kernel,
		.kernel_va = l->regs ? 0 : l->packet.kernel_object,
		.entry_va = l->entry,
		.kernarg_va = l->regs ? 0 : l->packet.kernarg_address,
		.queue_id = l->q->id,
		.total = l->total,
		.wave_size = l->wave_size,
		.waves_per_group = l->waves_per_group,
		.vgprs = l->n_vgprs,
		.lds_bytes = l->packet.group_segment_size,
		.scratch_bytes = l->packet.private_segment_size,
		.wgp_mode = l->kd.compute_pgm_rsrc1 & AMD_RSRC1_WGP_MODE,
		.max_resident = l->max_resident,
	};

	for (int i = 0; i < 3; i++) {
		d.n_groups[i] = l->n_groups[i];
		d.group_size[i] = l->packet.workgroup_size[i];
	}
	return d;
}

/* The end of the dispatch before this one, which was waiting then; 0. */
static uint64_t waited_for(const struct timer *timer,
			   const struct soft_queue *q)
{
	const struct last *l = &timer->last[q->id % SOFT_QUEUES_MAX];

	return l->end_ts && q->began_index == l->index + 1 &&
		       (int64_t)(l->rung - q->began_index) >= 0 ?
		       l->end_ts :
		       0;
}

/* Doorbells hold the number of the last packet. */
static void keep_last(struct timer *timer, const struct soft_dispatch *dp,
		      uint64_t index)
{
	const struct soft_queue *q = dp->l.q;

	timer->last[q->id % SOFT_QUEUES_MAX] = (struct last){
		index, __atomic_load_n(q->doorbell, __ATOMIC_ACQUIRE),
		dp->end_ts,
	};
}

static void run_dispatch(struct soft_hook *h, struct soft_dispatch *dp)
{
	struct timer *timer = (struct timer *)h;
	struct soft_dev *d = timer->dev;
	struct soft_timed t = { .dp = dp, .sites = timer->sites,
				.start_ts = dp->l.q->began_ts };
	struct soft_timed_dispatch info;
	char kernel[128];

	if (!timer->client.run || dp->l.total > GROUPS_MAX)
		return;
	watch_kernel_name(t.sites, dp->l.packet.kernel_object, kernel);
	info = describe_dispatch(dp, kernel);
	const uint64_t index = dp->l.q->began_index;
	info.number = __atomic_add_fetch(&timer->n_dispatches, 1,
					 __ATOMIC_RELAXED);
	info.taken_ticks = t.start_ts;
	info.after_ticks = waited_for(timer, dp->l.q);
	place_buffers(&t, d);
	soft_timed_clock(&t, 0, dp->l.q->card->chip->sclk_mhz[1]);
	dp->started = xcalloc(1, dp->l.total / 8 + 1);
	dp->l.env.now = &t.now;
	dp->patience_ns = PATIENCE * d->o.deadline_ns;
	dp->deadline_ns = time_mono_ns() + dp->patience_ns;
	timer->client.run(timer->client.ctx, &t, &info);
	while (t.resident)
		give_back(&t, t.resident, SOFT_TURN_MORE);
	free(t.placed);
	dp->l.env.now = NULL;
	dp->patience_ns = d->o.deadline_ns;
	if (t.n_steps || t.ended)
		dp->end_ts = ticks_at(&t, t.last_cycle);
	keep_last(timer, dp, index);
}

/* ------------------------------------------------------------ client ---- */

static void pass_note(struct soft_hook *h, const struct kfd_note *n)
{
	const struct timer *timer = (struct timer *)h;

	if (timer->own_sites)
		watch_note(timer->sites, n);
}

static void timer_free(struct soft_hook *h)
{
	struct timer *timer = (struct timer *)h;

	if (timer->own_sites)
		watch_free(timer->sites);
	free(timer);
}

static const struct soft_hook_ops timer_ops = {
	.note = pass_note,
	.run_dispatch = run_dispatch,
	.free = timer_free,
};

static struct timer *timer_of(struct soft_dev *d)
{
	const struct soft_watch_options none = { 0 };
	struct timer *timer = (void *)soft_hook_find(d, &timer_ops);

	if (timer)
		return timer;
	timer = xcalloc(1, sizeof(*timer));
	timer->hook.ops = &timer_ops;
	timer->dev = d;
	timer->sites = watch_find(d);
	timer->own_sites = !timer->sites;
	if (timer->own_sites)
		timer->sites = watch_new(&none, NULL);
	return (void *)soft_hook_attach(d, &timer->hook);
}

bool soft_set_timing(struct kfd_driver *drv, const struct soft_timing *client,
		     struct err *e)
{
	if (!watch_can_attach(drv, "the model of time", e))
		return false;
	timer_of((struct soft_dev *)drv)->client =
		client ? *client : (struct soft_timing){ 0 };
	return true;
}
