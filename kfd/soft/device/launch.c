/*
 * kfd/soft/device/launch.c - dispatches: workgroup scheduling over threads,
 * and their faults.
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
#include <time.h>

#include "kfd/soft/device/dev.h"

/* Instructions of one wave between looks at the map, deadline and others. */
#define SLICE_INSTS 4096u
/* Slices of a workgroup before others get their turn. */
#define TURN_SLICES 32u
/* Turns of a thread before it looks what else there is to do. */
#define TURNS_AT_ONCE 32u
/* Workgroups that end soon are taken for about so long at once. */
#define BATCH_NS 30000u
#define BATCH_MAX 32u
/* Between looks whether the queue may go on. */
#define PAUSE_NS 100000000u

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

static struct soft_fault fault_at(const struct soft_dispatch *dp,
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
static void wave_fault(struct soft_dispatch *dp, const struct soft_wave *w)
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

/* No fault, and yet the dispatch will not end: who runs it shall know. */
static void report_halt(struct soft_dispatch *dp, const struct soft_run *r)
{
	const struct soft_wave *w = r->g.wave;
	struct soft_fault f;

	while (w->state != SOFT_HALTED)
		w++;
	f = fault_at(dp, w, SOFT_FAULT_TRAP);
	soft_report(dp->l.q->dev,
		    "halted: queue %u (%s): the program's trap handler stopped "
		    "packet %" PRIu64 ", kernel 0x%" PRIx64
		    ", workgroup %u,%u,%u, wave %u at pc 0x%" PRIx64,
		    dp->l.q->id, soft_queue_name(dp->l.q), f.packet, f.kernel,
		    f.workgroup[0], f.workgroup[1], f.workgroup[2], f.wave,
		    f.pc);
}

/* The dispatch passed its deadline in this workgroup. */
static void report_hang(struct soft_dispatch *dp, const struct soft_run *r)
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
static bool slice_begin(struct soft_dispatch *dp, struct soft_run *r,
			struct soft_wave *w, struct soft_worker *k)
{
	const struct soft_card *c = dp->l.q->card;
	const uint32_t epoch = __atomic_load_n(&c->map.code_epoch,
					       __ATOMIC_RELAXED);
	struct soft_code_cache **code = &k->code[c->index].cache;

	if (!*code)
		*code = soft_code_cache_new();
	else if (k->code[c->index].epoch != epoch)
		soft_code_cache_stale(*code);
	k->code[c->index].epoch = epoch;
	r->g.code = *code;
	memset(&w->last, 0, sizeof(w->last));
	if (!dp->l.scratch_wave_bytes)
		return true;
	w->scratch = soft_cp_at(dp->l.q, w->scratch_va,
				dp->l.scratch_wave_bytes,
				SOFT_MEM_READ | SOFT_MEM_WRITE,
				"scratch memory of a wave");
	return w->scratch;
}

struct slice {
	struct soft_dispatch *dp;
	struct soft_run *r;
	struct soft_wave *w;
	struct soft_worker *k;
	uint64_t n;
	bool good;
};

static void run_slice(void *arg)
{
	struct slice *s = arg;
	struct soft_dispatch *dp = s->dp;

	s->good = slice_begin(dp, s->r, s->w, s->k);
	if (s->good && dp->watcher)
		dp->watcher->ops->run_wave(dp->watcher, s->r, s->w, s->n);
	else if (s->good)
		soft_wave_run(s->w, s->n);
	if (s->w->state == SOFT_FAULTED) {
		wave_fault(dp, s->w);
		s->good = false;
	}
}

/* The wave's access failed on the host. */
static void lose_slice(struct slice *s, const struct soft_lost *lost)
{
	struct soft_fault_info *x = &s->w->fault;

	/* It may have been at work there. */
	soft_code_cache_reset(s->r->g.code);
	s->w->state = SOFT_FAULTED;
	s->good = false;
	*x = (struct soft_fault_info){ .kind = SOFT_FAULT_MEMORY, .lane = -1 };
	x->pc = s->w->pc;
	x->va = lost->va;
	x->write = lost->write;
	snprintf(x->text, sizeof(x->text),
		 "%s at 0x%" PRIx64 ": the program gave this memory and took "
		 "it away again", x->write ? "write" : "read", x->va);
	wave_fault(s->dp, s->w);
}

bool soft_dispatch_slice(struct soft_dispatch *dp, struct soft_run *r,
			 struct soft_wave *w, struct soft_worker *k,
			 uint64_t n)
{
	struct slice s = { dp, r, w, k, n, false };
	struct soft_lost lost;

	soft_map_hold(dp->l.q->dev);
	if (!soft_guarded(dp->l.q->card, run_slice, &s, &lost))
		lose_slice(&s, &lost);
	soft_map_release(dp->l.q->dev);
	return s.good;
}

struct opening {
	struct soft_dispatch *dp;
	struct soft_run *r;
};

static void tell_watcher(void *ctx)
{
	const struct opening *o = ctx;

	if (o->dp->watcher)
		o->dp->watcher->ops->barrier(o->dp->watcher, o->r);
}

bool soft_dispatch_barrier(struct soft_dispatch *dp, struct soft_run *r)
{
	struct opening o = { dp, r };

	return soft_open_barrier(&r->g, tell_watcher, &o);
}

/*
 * Of the time in which a workgroup should have ended half is the clock's and
 * half this thread's own: on a busy host a kernel is slow and does not hang.
 */
bool soft_dispatch_hangs(struct soft_dispatch *dp, const struct soft_run *r,
			 struct soft_worker *k)
{
	const uint64_t deadline_ns = __atomic_load_n(&dp->deadline_ns,
						     __ATOMIC_RELAXED);
	const uint64_t half_ns = dp->patience_ns / 2;

	if (time_mono_ns() + half_ns <= deadline_ns)
		return false;
	if (k->late_for_ns != deadline_ns) {
		k->late_for_ns = deadline_ns;
		k->late_at_ns = time_thread_ns();
	}
	if (time_thread_ns() - k->late_at_ns <= half_ns)
		return false;
	report_hang(dp, r);
	return true;
}

/* Can no wave go on, as the others wait for halted ones? */
static bool is_halted(const struct soft_group *g)
{
	bool halted = false;

	for (int i = 0; i < g->n_waves; i++) {
		if (g->wave[i].state == SOFT_READY)
			return false;
		halted |= g->wave[i].state == SOFT_HALTED;
	}
	return halted;
}

static enum soft_turn run_turn(struct soft_dispatch *dp, struct soft_run *r,
			       struct soft_worker *k)
{
	struct soft_group *g = &r->g;

	for (unsigned n = 0; n < TURN_SLICES; n++) {
		for (int i = 0; i < g->n_waves; i++) {
			if (g->wave[i].state != SOFT_READY)
				continue;
			if (soft_queue_go(dp->l.q) != SOFT_GO)
				return SOFT_TURN_MORE;
			if (!soft_dispatch_slice(dp, r, &g->wave[i], k,
						 SLICE_INSTS))
				return SOFT_TURN_FAILED;
		}
		soft_dispatch_barrier(dp, r);
		if (g->n_ended == g->n_waves) {
			if (g->counts)
				soft_counters_add(dp->l.q->card, r);
			return SOFT_TURN_ENDED;
		}
		if (is_halted(g))
			return SOFT_TURN_HALTED;
		if (soft_dispatch_hangs(dp, r, k))
			return SOFT_TURN_FAILED;
	}
	return SOFT_TURN_MORE;
}

/* --------------------------------------------------------- scheduling -- */

struct soft_run *soft_dispatch_take(struct soft_dispatch *dp, uint64_t index)
{
	struct soft_run *r = dp->spare;

	if (r) {
		dp->spare = r->next;
	} else {
		/* Memory and scratch slot stay together. */
		r = soft_run_new(&dp->l, dp->resident);
	}
	dp->resident++;
	r->index = index;
	r->fresh = true;
	return r;
}

/* dp->lock held.  Is there one that nobody has taken yet, or kept? */
static bool is_new(struct soft_dispatch *dp)
{
	const uint8_t *done = dp->started;

	if (dp->n_back)
		return true;
	while (done && dp->next < dp->l.total &&
	       done[dp->next / 8] >> dp->next % 8 & 1)
		dp->next++;
	return dp->next < dp->l.total;
}

/* dp->lock held, is_new().  Some workgroups for one thread. */
static struct soft_indices take_new(struct soft_dispatch *dp)
{
	const struct soft_dev *d = dp->l.q->dev;
	struct soft_indices x = { dp->next, dp->next + 1 };
	uint64_t share, n = dp->batch;

	if (dp->n_back)
		return dp->back[--dp->n_back];
	/* All threads shall have work until the end. */
	share = (dp->l.total - dp->next) / (4 * d->o.threads);
	n = n < share ? n : share;
	if (n > 1 && !dp->started && !dp->watcher &&
	    dp->n_back < SOFT_BACK_MAX / 2)
		x.end = dp->next + n;
	dp->next = x.end;
	return x;
}

/* dp->lock held.  A workgroup to work on, new ones first; *more: others. */
static struct soft_run *take_group(struct soft_dispatch *dp,
				   struct soft_indices *more)
{
	struct soft_run *r;

	*more = (struct soft_indices){ 0, 0 };
	if (dp->failed)
		return NULL;
	if (is_new(dp) && dp->resident < dp->l.max_resident) {
		*more = take_new(dp);
		return soft_dispatch_take(dp, more->next++);
	}
	r = dp->waiting;
	if (r) {
		dp->waiting = r->next;
		if (!dp->waiting)
			dp->waiting_end = &dp->waiting;
	}
	return r;
}

void soft_dispatch_put(struct soft_dispatch *dp, struct soft_run *r,
		       enum soft_turn t)
{
	if (t == SOFT_TURN_MORE) {
		r->next = NULL;
		*dp->waiting_end = r;
		dp->waiting_end = &r->next;
		return;
	}
	if (t == SOFT_TURN_HALTED) {
		if (!dp->halted) /* one line of a dispatch */
			report_halt(dp, r);
		r->next = dp->halted;
		dp->halted = r;
		return;
	}
	dp->failed |= t == SOFT_TURN_FAILED;
	if (t == SOFT_TURN_ENDED) {
		dp->ended++;
		__atomic_store_n(&dp->deadline_ns,
				 time_mono_ns() + dp->patience_ns,
				 __ATOMIC_RELAXED);
	}
	dp->resident--;
	r->next = dp->spare;
	dp->spare = r;
}

void soft_dispatch_start(struct soft_dispatch *dp, struct soft_run *r,
			 uint64_t clock)
{
	if (!r->fresh)
		return;
	soft_run_start(r, &dp->l, clock);
	if (dp->watcher)
		dp->watcher->ops->group_start(dp->watcher, r, &dp->l);
	r->fresh = false;
}

/*
 * A turn of r, and while that ends it, of the next one in its place.  They are
 * short and start at one time: to read the clock takes as long as to start one.
 */
static enum soft_turn run_turns(struct soft_dispatch *dp, struct soft_run *r,
				struct soft_indices *more,
				struct soft_worker *k, uint64_t *ended)
{
	const uint64_t clock = soft_gpu_clock(dp->l.q->card);
	enum soft_turn t;

	for (*ended = 0;; ++*ended) {
		soft_dispatch_start(dp, r, clock);
		t = run_turn(dp, r, k);
		if (t != SOFT_TURN_ENDED || more->next >= more->end ||
		    soft_queue_go(dp->l.q) != SOFT_GO)
			return t;
		r->index = more->next++;
		r->fresh = true;
	}
}

/* dp->lock held: how many to take at once, so that it lasts BATCH_NS. */
static void set_batch(struct soft_dispatch *dp, enum soft_turn t, uint64_t n,
		      uint64_t ns)
{
	uint64_t batch = BATCH_NS * n / (ns + 1);

	dp->batch = t != SOFT_TURN_ENDED || !batch ? 1 :
		    batch > BATCH_MAX		     ? BATCH_MAX :
						       (uint32_t)batch;
}

/*
 * Some turns of workgroups; false = nothing to take now.  Several at once,
 * since workgroups that end soon would cost their threads more in locks.
 */
static bool dispatch_turn(void *arg, struct soft_worker *k)
{
	struct soft_dispatch *dp = arg;
	struct soft_indices rest;
	struct soft_run *r;
	unsigned n = 0;
	bool more;

	pthread_mutex_lock(&dp->lock);
	while (n < TURNS_AT_ONCE && soft_queue_go(dp->l.q) == SOFT_GO &&
	       (r = take_group(dp, &rest))) {
		uint64_t ended, ns = time_mono_ns();
		enum soft_turn t;

		pthread_mutex_unlock(&dp->lock);
		t = run_turns(dp, r, &rest, k, &ended);
		ns = time_mono_ns() - ns;
		pthread_mutex_lock(&dp->lock);
		if (rest.next < rest.end)
			dp->back[dp->n_back++] = rest;
		dp->ended += ended;
		soft_dispatch_put(dp, r, t);
		set_batch(dp, t, ended + 1, ns);
		pthread_cond_broadcast(&dp->changed);
		n++;
	}
	more = n && !dp->failed && (dp->waiting || is_new(dp));
	pthread_mutex_unlock(&dp->lock);
	return more;
}

void soft_dispatch_pause(struct soft_dispatch *dp)
{
	struct soft_dev *d = dp->l.q->dev;
	const uint64_t began = time_mono_ns();
	const uint64_t seq = soft_wake_announce(d);

	if (soft_queue_go(dp->l.q) == SOFT_PAUSE)
		soft_wake_sleep(d, seq, PAUSE_NS);
	else
		soft_wake_cancel(d);
	__atomic_add_fetch(&dp->deadline_ns, time_mono_ns() - began,
			   __ATOMIC_RELAXED);
}

/* Until a queue changes, or somebody may have set something aside. */
static void nap(struct soft_queue *q)
{
	const uint64_t seq = soft_wake_announce(q->dev);

	if (soft_queue_go(q) == SOFT_GO)
		soft_wake_sleep(q->dev, seq, PAUSE_NS);
	else
		soft_wake_cancel(q->dev);
}

/* Helpers have the rest: until one of them finishes or sets aside. */
static void wait_helpers(struct soft_dispatch *dp)
{
	pthread_mutex_lock(&dp->lock);
	while (!dp->failed && dp->ended < dp->l.total && !dp->waiting &&
	       !dp->halted && !(is_new(dp) && dp->resident < dp->l.max_resident) &&
	       soft_queue_go(dp->l.q) == SOFT_GO)
		pthread_cond_wait(&dp->changed, &dp->lock);
	pthread_mutex_unlock(&dp->lock);
}

/* Some are halted: others may still end, but nobody will wake us for them. */
static bool is_stuck(struct soft_dispatch *dp)
{
	bool stuck;

	pthread_mutex_lock(&dp->lock);
	stuck = dp->halted && !dp->failed;
	pthread_mutex_unlock(&dp->lock);
	return stuck;
}

static bool is_over(struct soft_dispatch *dp, bool *good)
{
	bool over;

	pthread_mutex_lock(&dp->lock);
	*good = dp->ended == dp->l.total;
	over = *good || dp->failed;
	pthread_mutex_unlock(&dp->lock);
	return over;
}

/* Until the dispatch is over: true when all workgroups ended. */
static bool run_workgroups(struct soft_dispatch *dp)
{
	struct soft_queue *q = dp->l.q;
	const bool help = dp->l.total > 1 && !dp->watcher;
	bool good = false;

	if (help)
		soft_pool_add(q->dev->pool, &dp->job);
	while (!is_over(dp, &good)) {
		const enum soft_go go = soft_queue_go(q);

		if (go == SOFT_STOP)
			break;
		if (go == SOFT_PAUSE) {
			soft_dispatch_pause(dp);
		} else if (!dispatch_turn(dp, &q->worker)) {
			wait_helpers(dp);
			if (is_stuck(dp))
				nap(q);
		} else if (help) {
			soft_pool_offer(q->dev->pool, &dp->job);
		}
	}
	if (help)
		soft_pool_remove(q->dev->pool, &dp->job);
	return good;
}

/* Sleep until the clock has come to dp->end_ts. */
static void wait_end(const struct soft_dispatch *dp)
{
	while (dp->end_ts && soft_queue_go(dp->l.q) != SOFT_STOP) {
		const uint64_t now = soft_gpu_clock(dp->l.q->card);
		uint64_t ns;

		if (now >= dp->end_ts)
			return;
		ns = (dp->end_ts - now) * (1000000000u / KFD_GPU_CLOCK_HZ);
		if (ns > PAUSE_NS)
			ns = PAUSE_NS;
		nanosleep(&(struct timespec){ 0, (long)ns }, NULL);
	}
}

static void dispatch_fini(struct soft_dispatch *dp)
{
	struct soft_run *lists[] = { dp->waiting, dp->spare, dp->halted };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while (lists[i]) {
			struct soft_run *r = lists[i];

			lists[i] = r->next;
			if (dp->watcher)
				dp->watcher->ops->group_free(dp->watcher, r);
			soft_run_free(r);
		}
	free(dp->started);
	pthread_cond_destroy(&dp->changed);
	pthread_mutex_destroy(&dp->lock);
}

static uint64_t env_clock(void *ctx)
{
	return soft_gpu_clock(ctx);
}

static void env_interrupt(const struct soft_env *env, uint32_t m0,
			  bool from_handler)
{
	const struct soft_launch *l = (const void *)((const char *)env -
					offsetof(struct soft_launch, env));

	if (!from_handler || !soft_trap_interrupt(l->q, m0))
		soft_event_interrupt(l->q->dev, m0 & 0x7fffff);
}

static void dispatch_init(struct soft_dispatch *dp, struct soft_queue *q,
			  const struct aql_dispatch *p)
{
	pthread_mutexattr_t a;

	memset(dp, 0, sizeof(*dp));
	/* It is held for moments: waiting awake is cheaper than sleeping. */
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&dp->lock, &a);
	pthread_mutexattr_destroy(&a);
	pthread_cond_init(&dp->changed, NULL);
	dp->waiting_end = &dp->waiting;
	dp->job.turn = dispatch_turn;
	dp->job.arg = dp;
	dp->l.q = q;
	dp->watcher = soft_hook_watcher(q->dev);
	dp->patience_ns = q->dev->o.deadline_ns;
	dp->l.packet = *p;
	dp->l.env = (struct soft_env){
		.gen = q->card->chip->gen,
		.ctx = q->card,
		.find = soft_map_find,
		.ranges_stay = true, /* map.code_epoch */
		.realtime = env_clock,
		.interrupt = env_interrupt,
		.shared_base = SOFT_LDS_BASE,
		.shared_limit = SOFT_LDS_BASE | 0xffffffff,
		.private_base = SOFT_SCRATCH_BASE,
		.private_limit = SOFT_SCRATCH_BASE | 0xffffffff,
		.swizzles_scratch = !soft_gen(q->card)->own_scratch,
		.lds_faults = q->dev->o.lds_faults,
	};
}

/* What its waves trap on, and whether they are counted. */
static void prepare_seen(struct soft_queue *q, struct soft_launch *l)
{
	const struct soft_debug *g = &q->dev->debug;

	l->trap_keep = __atomic_load_n(&g->trap_replace, __ATOMIC_RELAXED) ?
			       0 : UINT32_MAX;
	l->trap_mask = __atomic_load_n(&g->trap_mask, __ATOMIC_RELAXED);
	l->env.traps = q->card->traps.tba ? &q->card->traps : NULL;
	l->counted = soft_counters_on(q->card, soft_pm4_counts(q));
	l->env.doorbell = (uint32_t)(q->doorbell - q->card->doorbell);
}

static bool is_late(const struct soft_dispatch *dp)
{
	return dp->l.kd.kernel_code_properties & AMD_PROP_DISPATCH_PTR;
}

/*
 * Check it and let its packet go.  A kernel that asks for its packet may read
 * it until it ends; all others let their slot go when they start, as the card
 * does: a read index says nothing about completion.
 */
static enum soft_done begin_dispatch(struct soft_queue *q, void *arg)
{
	/* Rings of the kernel, of which programs see nothing, have no size. */
	const uint64_t n = q->ring_bytes / AQL_PACKET_BYTES;
	struct soft_dispatch *dp = arg;
	const enum soft_done r = soft_launch_check(q, &dp->l);

	dp->l.packet_va = n ? q->ring_base +
			      q->read_index % n * AQL_PACKET_BYTES : 0;
	if (r != SOFT_DONE)
		return r;
	prepare_seen(q, &dp->l);
	q->began_ts = soft_gpu_clock(q->card);
	if (!is_late(dp) && !dp->l.regs)
		soft_packet_retire(q);
	if (dp->watcher)
		dp->watcher->ops->begin(dp->watcher, &dp->l);
	return SOFT_DONE;
}

static enum soft_done end_dispatch(struct soft_queue *q, void *arg)
{
	struct soft_dispatch *dp = arg;

	if (is_late(dp))
		soft_packet_retire(q);
	soft_packet_complete(q, dp->l.packet.completion_signal,
			     dp->end_ts ? dp->end_ts : soft_gpu_clock(q->card));
	return SOFT_DONE;
}

enum soft_done soft_dispatch(struct soft_queue *q, const struct aql_dispatch *p,
			     const struct soft_regs *regs)
{
	struct soft_dispatch dp;
	enum soft_done r;

	dispatch_init(&dp, q, p);
	dp.l.regs = regs;
	r = soft_cp_step(q, begin_dispatch, &dp);
	if (r == SOFT_DONE) {
		soft_load_begin(q->card);
		soft_hooks_run_dispatch(&dp);
		dp.deadline_ns = time_mono_ns() + dp.patience_ns;
		if (!run_workgroups(&dp))
			r = SOFT_REFUSED;
		soft_load_end(q->card);
		if (dp.watcher)
			dp.watcher->ops->end(dp.watcher);
	}
	if (r == SOFT_DONE) {
		wait_end(&dp);
		r = soft_cp_step(q, end_dispatch, &dp);
	}
	dispatch_fini(&dp);
	return r;
}
