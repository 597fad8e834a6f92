/*
 * Dispatches: the workgroups' way over the threads, and their faults.
 *
 * A workgroup stays on one thread for some thousand instructions per wave and
 * is then set aside, so that workgroups that wait for others of the same
 * dispatch do not keep them from running: as many are in flight as the card
 * could hold.  The queue's own thread works until all are done; the pool's
 * threads help.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/dev.h"

/* Instructions of one wave between looks at the map, deadline and others. */
#define SLICE_INSTS 4096u
/* Slices of a workgroup before others get their turn. */
#define TURN_SLICES 32u

struct dispatch {
	struct soft_launch l;
	struct soft_job job;
	uint64_t deadline_ns;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t next, ended;
	uint32_t resident;
	struct soft_run *waiting, **waiting_end; /* set aside, oldest first */
	struct soft_run *spare; /* memory to use again */
	bool failed;
};

/* ------------------------------------------------------------- faults -- */

static void wave_text(struct soft_fault *f, const struct soft_wave *w)
{
	const char *kind = soft_fault_name(f->kind), *what = w->fault.text;
	const bool said = !strncmp(what, kind, strlen(kind));

	snprintf(f->text, sizeof(f->text),
		 "%s%s%s (packet %" PRIu64 ", kernel 0x%" PRIx64
		 ", workgroup %u,%u,%u, wave %u, pc 0x%" PRIx64 ")",
		 said ? "" : kind, said ? "" : ": ", what, f->packet, f->kernel,
		 f->workgroup[0], f->workgroup[1], f->workgroup[2], f->wave,
		 f->pc);
}

static struct soft_fault fault_at(const struct dispatch *dp,
				  const struct soft_wave *w,
				  enum soft_fault_kind kind)
{
	struct soft_fault f = { .kind = kind, .lane = -1 };

	f.packet = dp->l.q->began_index;
	f.kernel = dp->l.packet.kernel_object;
	memcpy(f.workgroup, w->group->id, sizeof(f.workgroup));
	f.wave = (uint32_t)w->index;
	f.pc = w->pc;
	return f;
}

/* With a slice held: tell the program what this wave did. */
static void wave_fault(struct dispatch *dp, const struct soft_wave *w)
{
	const struct soft_fault_info *x = &w->fault;
	struct soft_queue *q = dp->l.q;
	struct soft_fault f = fault_at(dp, w, x->kind);

	f.pc = x->pc;
	f.va = x->va;
	f.write = x->write;
	f.lane = x->lane;
	f.n_words = (unsigned)x->code_bytes / 4;
	if (f.n_words > ARRAY_SIZE(f.words))
		f.n_words = ARRAY_SIZE(f.words);
	memcpy(f.words, x->code, f.n_words * 4);
	wave_text(&f, w);
	switch (x->kind) {
	case SOFT_FAULT_MEMORY:
		/* A scalar fault at the pc itself is a fetch. */
		soft_page_fault(q, &f, x->va == x->pc);
		break;
	case SOFT_FAULT_APERTURE:
		soft_queue_error(q, KFD_EC_WAVE_APERTURE_VIOLATION,
				 KFD_INACTIVE_APERTURE, &f);
		break;
	case SOFT_FAULT_ALIGN:
		soft_queue_error(q, KFD_EC_WAVE_MEMORY_VIOLATION,
				 KFD_INACTIVE_APERTURE, &f);
		break;
	case SOFT_FAULT_TRAP:
		soft_queue_error(q, KFD_EC_WAVE_TRAP, KFD_INACTIVE_TRAP, &f);
		break;
	case SOFT_FAULT_HANG:
		soft_gpu_reset(q, &f);
		break;
	default: /* illegal, or unknown to this device: the card says so too */
		soft_queue_error(q, KFD_EC_WAVE_ILLEGAL_INSTRUCTION,
				 KFD_INACTIVE_ILLEGAL, &f);
	}
}

/* The dispatch passed its deadline in this workgroup. */
static void hang(struct dispatch *dp, const struct soft_run *r)
{
	const struct soft_wave *w = r->g.wave;
	struct soft_fault f;

	for (int i = 0; i < r->g.n_waves; i++)
		if (r->g.wave[i].state == SOFT_READY) {
			w = &r->g.wave[i];
			break;
		}
	f = fault_at(dp, w, SOFT_FAULT_HANG);
	snprintf(f.text, sizeof(f.text),
		 "hang: no workgroup of packet %" PRIu64 ", kernel 0x%" PRIx64
		 ", ended within %" PRIu64 " ms; workgroup %u,%u,%u, wave %u "
		 "is at pc 0x%" PRIx64, f.packet, f.kernel,
		 dp->l.q->dev->o.deadline_ns / 1000000, f.workgroup[0],
		 f.workgroup[1], f.workgroup[2], f.wave, f.pc);
	soft_map_hold(dp->l.q->dev);
	soft_gpu_reset(dp->l.q, &f);
	soft_map_release(dp->l.q->dev);
}

/* ------------------------------------------------------------- slices -- */

/* With a slice held: what may have changed since the last one. */
static bool slice_begin(struct dispatch *dp, struct soft_run *r,
			struct soft_wave *w, struct soft_worker *k)
{
	struct soft_dev *d = dp->l.q->dev;
	const uint32_t epoch = __atomic_load_n(&d->map.code_epoch,
					       __ATOMIC_RELAXED);

	if (!k->code)
		k->code = soft_code_cache_new();
	else if (k->code_epoch != epoch)
		soft_code_cache_reset(k->code);
	k->code_epoch = epoch;
	r->g.code = k->code;
	memset(&w->last, 0, sizeof(w->last));
	if (!dp->l.scratch_wave_bytes)
		return true;
	w->scratch = soft_cp_at(dp->l.q, w->scratch_va,
				dp->l.scratch_wave_bytes,
				SOFT_MEM_READ | SOFT_MEM_WRITE,
				"scratch memory of a wave");
	return w->scratch;
}

/* Run one wave for a slice: false when the dispatch is over. */
static bool slice(struct dispatch *dp, struct soft_run *r, struct soft_wave *w,
		  struct soft_worker *k)
{
	struct soft_dev *d = dp->l.q->dev;
	bool good;

	soft_map_hold(d);
	good = slice_begin(dp, r, w, k);
	if (good && d->watch)
		soft_watch_run(d->watch, r, w, SLICE_INSTS);
	else if (good)
		soft_wave_run(w, SLICE_INSTS);
	if (w->state == SOFT_FAULTED) {
		wave_fault(dp, w);
		good = false;
	}
	soft_map_release(d);
	return good;
}

/* Count the waves; open the barrier when all that live have arrived. */
static void barrier_update(struct soft_run *r, struct soft_watch *watch)
{
	struct soft_group *g = &r->g;

	g->n_ended = g->n_waiting = 0;
	for (int i = 0; i < g->n_waves; i++) {
		g->n_ended += g->wave[i].state == SOFT_ENDED;
		g->n_waiting += g->wave[i].state == SOFT_AT_BARRIER;
	}
	if (!g->n_waiting || g->n_ended + g->n_waiting < g->n_waves)
		return;
	if (watch)
		soft_watch_barrier(watch, r);
	for (int i = 0; i < g->n_waves; i++)
		if (g->wave[i].state == SOFT_AT_BARRIER)
			g->wave[i].state = SOFT_READY;
	g->n_waiting = 0;
}

enum turn { TURN_ENDED, TURN_MORE, TURN_FAILED };

static enum turn turn(struct dispatch *dp, struct soft_run *r,
		      struct soft_worker *k)
{
	struct soft_group *g = &r->g;

	for (unsigned n = 0; n < TURN_SLICES; n++) {
		for (int i = 0; i < g->n_waves; i++) {
			if (g->wave[i].state != SOFT_READY)
				continue;
			if (soft_queue_go(dp->l.q) != SOFT_GO)
				return TURN_MORE;
			if (!slice(dp, r, &g->wave[i], k))
				return TURN_FAILED;
		}
		barrier_update(r, dp->l.q->dev->watch);
		if (g->n_ended == g->n_waves)
			return TURN_ENDED;
		if (time_mono_ns() > __atomic_load_n(&dp->deadline_ns,
						     __ATOMIC_RELAXED)) {
			hang(dp, r);
			return TURN_FAILED;
		}
	}
	return TURN_MORE;
}

/* --------------------------------------------------------- scheduling -- */

/* dp->lock held.  A workgroup to work on, new ones first. */
static struct soft_run *take(struct dispatch *dp)
{
	struct soft_run *r;

	if (dp->failed)
		return NULL;
	if (dp->next < dp->l.total && dp->resident < dp->l.max_resident) {
		r = dp->spare;
		if (r) {
			dp->spare = r->next;
		} else {
			r = soft_run_new(&dp->l);
			/* Memory and scratch slot stay together. */
			r->slot = dp->resident;
		}
		dp->resident++;
		r->index = dp->next++;
		r->fresh = true;
		return r;
	}
	r = dp->waiting;
	if (r) {
		dp->waiting = r->next;
		if (!dp->waiting)
			dp->waiting_end = &dp->waiting;
	}
	return r;
}

/* dp->lock held. */
static void put(struct dispatch *dp, struct soft_run *r, enum turn t)
{
	if (t == TURN_MORE) {
		r->next = NULL;
		*dp->waiting_end = r;
		dp->waiting_end = &r->next;
		return;
	}
	dp->failed |= t == TURN_FAILED;
	if (t == TURN_ENDED) {
		dp->ended++;
		__atomic_store_n(&dp->deadline_ns,
				 time_mono_ns() + dp->l.q->dev->o.deadline_ns,
				 __ATOMIC_RELAXED);
	}
	dp->resident--;
	r->next = dp->spare;
	dp->spare = r;
}

/* One turn of one workgroup; false = nothing to take now. */
static bool dispatch_turn(void *arg, struct soft_worker *k)
{
	struct dispatch *dp = arg;
	struct soft_run *r = NULL;
	enum turn t;
	bool more;

	pthread_mutex_lock(&dp->lock);
	if (soft_queue_go(dp->l.q) == SOFT_GO)
		r = take(dp);
	pthread_mutex_unlock(&dp->lock);
	if (!r)
		return false;
	if (r->fresh)
		soft_run_start(r, &dp->l);
	if (r->fresh && dp->l.q->dev->watch)
		soft_watch_start(dp->l.q->dev->watch, r, &dp->l);
	r->fresh = false;
	t = turn(dp, r, k);
	pthread_mutex_lock(&dp->lock);
	put(dp, r, t);
	more = !dp->failed && (dp->waiting || dp->next < dp->l.total);
	pthread_cond_broadcast(&dp->changed);
	pthread_mutex_unlock(&dp->lock);
	return more;
}

static void pause_dispatch(struct dispatch *dp)
{
	struct soft_dev *d = dp->l.q->dev;
	const uint64_t began = time_mono_ns();
	const uint64_t seq = soft_wake_announce(d);

	if (soft_queue_go(dp->l.q) == SOFT_PAUSE)
		soft_wake_sleep(d, seq, 100000000u);
	else
		soft_wake_cancel(d);
	__atomic_add_fetch(&dp->deadline_ns, time_mono_ns() - began,
			   __ATOMIC_RELAXED);
}

/* Helpers have the rest: until one of them finishes or sets aside. */
static void wait_helpers(struct dispatch *dp)
{
	pthread_mutex_lock(&dp->lock);
	while (!dp->failed && dp->ended < dp->l.total && !dp->waiting &&
	       !(dp->next < dp->l.total && dp->resident < dp->l.max_resident) &&
	       soft_queue_go(dp->l.q) == SOFT_GO)
		pthread_cond_wait(&dp->changed, &dp->lock);
	pthread_mutex_unlock(&dp->lock);
}

static bool is_over(struct dispatch *dp, bool *good)
{
	bool over;

	pthread_mutex_lock(&dp->lock);
	*good = dp->ended == dp->l.total;
	over = *good || dp->failed;
	pthread_mutex_unlock(&dp->lock);
	return over;
}

/* Until the dispatch is over: true when all workgroups ended. */
static bool work(struct dispatch *dp)
{
	struct soft_queue *q = dp->l.q;
	const bool help = dp->l.total > 1;
	bool good = false;

	if (help)
		soft_pool_add(q->dev->pool, &dp->job);
	while (!is_over(dp, &good)) {
		const enum soft_go go = soft_queue_go(q);

		if (go == SOFT_STOP)
			break;
		if (go == SOFT_PAUSE) {
			pause_dispatch(dp);
		} else if (!dispatch_turn(dp, &q->worker)) {
			wait_helpers(dp);
		} else if (help) {
			soft_pool_offer(q->dev->pool, &dp->job);
		}
	}
	if (help)
		soft_pool_remove(q->dev->pool, &dp->job);
	return good;
}

static void dispatch_fini(struct dispatch *dp)
{
	struct soft_run *lists[] = { dp->waiting, dp->spare };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while (lists[i]) {
			struct soft_run *r = lists[i];

			lists[i] = r->next;
			soft_run_free(r);
		}
	pthread_cond_destroy(&dp->changed);
	pthread_mutex_destroy(&dp->lock);
}

static uint64_t env_clock(void *ctx)
{
	(void)ctx;
	return soft_gpu_clock();
}

static void dispatch_init(struct dispatch *dp, struct soft_queue *q,
			  const struct aql_dispatch *p)
{
	const uint64_t n = q->ring_bytes / AQL_PACKET_BYTES;

	memset(dp, 0, sizeof(*dp));
	pthread_mutex_init(&dp->lock, NULL);
	pthread_cond_init(&dp->changed, NULL);
	dp->waiting_end = &dp->waiting;
	dp->job.turn = dispatch_turn;
	dp->job.arg = dp;
	dp->l.q = q;
	dp->l.packet = *p;
	dp->l.packet_va = q->ring_base + q->read_index % n * AQL_PACKET_BYTES;
	dp->l.env = (struct soft_env){
		.ctx = q->dev,
		.find = soft_map_find,
		.realtime = env_clock,
		.shared_base = SOFT_LDS_BASE,
		.shared_limit = SOFT_LDS_BASE | 0xffffffff,
		.private_base = SOFT_SCRATCH_BASE,
		.private_limit = SOFT_SCRATCH_BASE | 0xffffffff,
	};
}

enum soft_done soft_dispatch(struct soft_queue *q, const struct aql_dispatch *p,
			     const struct soft_regs *regs)
{
	/* A kernel that asks for its packet may read it until it ends; all
	 * others let their slot go when they start, as the card does: a read
	 * index says nothing about completion. */
	struct dispatch dp;
	enum soft_done r;
	bool late;

	soft_map_hold(q->dev);
	dispatch_init(&dp, q, p);
	dp.l.regs = regs;
	r = soft_launch_prepare(q, &dp.l);
	late = dp.l.kd.kernel_code_properties & AMD_PROP_DISPATCH_PTR;
	if (r == SOFT_DONE) {
		q->began_ts = soft_gpu_clock();
		if (!late && !regs)
			soft_packet_retire(q);
		if (q->dev->watch)
			soft_watch_begin(q->dev->watch, &dp.l);
	}
	soft_map_release(q->dev);
	if (r == SOFT_DONE) {
		dp.deadline_ns = time_mono_ns() + q->dev->o.deadline_ns;
		soft_load_begin(q->dev);
		if (!work(&dp))
			r = SOFT_REFUSED;
		soft_load_end(q->dev);
		if (q->dev->watch)
			soft_watch_end(q->dev->watch);
	}
	if (r == SOFT_DONE) {
		soft_map_hold(q->dev);
		if (late)
			soft_packet_retire(q);
		soft_packet_complete(q, p->completion_signal,
				     soft_gpu_clock());
		soft_map_release(q->dev);
	}
	dispatch_fini(&dp);
	return r;
}
