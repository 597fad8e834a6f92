/*
 * kfd/soft/inject/inject.c - fault injection: rules, and what they do.
 *
 * The first rule attaches the injector to the device (struct soft_hook), which
 * from then on asks it at every call and packet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/dev.h"
#include "kfd/soft/inject/inject.h"

#define RULES_MAX 64
#define POLL_NS	  1000000u /* between looks at what may end a hang */

struct rule {
	struct soft_inject r;
	uint64_t matches, strikes;
	uint64_t random;
};

struct injector {
	struct soft_hook hook;
	struct soft_dev *dev;
	pthread_mutex_t lock; /* a leaf */
	struct rule rule[RULES_MAX];
	unsigned n;
	struct soft_census *left;
};

/* One more match of this rule: does it strike? */
static bool rule_fires(struct rule *r)
{
	const uint64_t times = r->r.times ? r->r.times : 1;
	const uint64_t n = r->matches++;
	bool hit = n >= r->r.after && r->strikes < times;

	if (r->r.one_in)
		hit = random_next(&r->random) % r->r.one_in == 0 &&
		      n >= r->r.after;
	r->strikes += hit;
	return hit;
}

/* --------------------------------------------------------------- calls -- */

static bool is_about(const struct soft_inject *r, const struct soft_call *c)
{
	static const enum soft_inject_what what[] = {
		[SOFT_CALL_OPEN] = SOFT_INJECT_OPEN,
		[SOFT_CALL_IOCTL] = SOFT_INJECT_IOCTL,
		[SOFT_CALL_DONE] = SOFT_INJECT_IOCTL_DONE,
		[SOFT_CALL_MMAP] = SOFT_INJECT_MMAP,
	};

	if (r->what != what[c->kind])
		return false;
	return c->kind == SOFT_CALL_OPEN ?
		       !strcmp(r->path ? r->path : "/dev/kfd", c->path) :
		       r->nr == c->nr;
}

static int fail_call(struct soft_hook *h, const struct soft_call *c)
{
	struct injector *s = (struct injector *)h;
	struct kfd_ioc_map_memory *map = c->arg;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->n && !err; i++)
		if (is_about(&s->rule[i].r, c) && rule_fires(&s->rule[i]))
			err = s->rule[i].r.err;
	pthread_mutex_unlock(&s->lock);
	if (err && c->kind == SOFT_CALL_DONE &&
	    (c->nr == KFD_NR_MAP_MEMORY_TO_GPU ||
	     c->nr == KFD_NR_UNMAP_MEMORY_FROM_GPU))
		map->n_success = map->n_devices - 1;
	return -err;
}

/* ------------------------------------------------------------- packets -- */

static bool is_packet_rule(enum soft_inject_what what)
{
	return what >= SOFT_INJECT_FAULT;
}

/* Sleep up to `ns`, but no longer than the queue may go on. */
static bool sleep_interruptible(struct soft_queue *q, uint64_t ns)
{
	const uint64_t until = time_mono_ns() + ns;
	uint64_t now;

	while (soft_queue_go(q) != SOFT_STOP) {
		now = time_mono_ns();
		if (now >= until)
			return true;
		const uint64_t seq = soft_wake_announce(q->dev);
		soft_wake_sleep(q->dev, seq,
				until - now < POLL_NS ? until - now : POLL_NS);
	}
	return false;
}

static struct soft_fault fault_of(const struct soft_queue *q,
				  enum soft_fault_kind kind, const char *what)
{
	struct soft_fault f = { .kind = kind, .lane = -1 };

	f.packet = q->read_index;
	snprintf(f.text, sizeof(f.text), "injected %s (packet %llu)", what,
		 (unsigned long long)q->read_index);
	return f;
}

static void poison_memory(struct soft_queue *q)
{
	struct soft_fault f = fault_of(q, SOFT_FAULT_HANG, "memory poison");
	const struct kfd_memory_exception m = {
		.imprecise = 1,
		.gpu_id = q->card->gpu_id,
		.error_type = KFD_MEM_ERROR_SRAM_ECC,
	};

	soft_event_memory(q->dev, &m);
	soft_gpu_reset(q, &f);
}

static void raise_spurious(struct soft_queue *q, uint64_t ns)
{
	const struct amd_signal *s;
	uint32_t *dw, event = 0;

	soft_map_hold(q->dev);
	dw = soft_map_at(q->card,
			 q->ring_base + q->read_index %
						(q->ring_bytes /
						 AQL_PACKET_BYTES) *
						AQL_PACKET_BYTES,
			 AQL_PACKET_BYTES, SOFT_MEM_READ);
	s = dw ? soft_map_at(q->card, ((struct aql_dispatch *)dw)
					     ->completion_signal,
			     sizeof(*s), SOFT_MEM_READ) :
		 NULL;
	if (s)
		event = s->event_id;
	soft_map_release(q->dev);
	for (int i = 0; event && i < 8; i++) {
		soft_event_interrupt(q->dev, event);
		if (!sleep_interruptible(q, ns))
			return;
	}
}

static void reset_gpu(struct soft_queue *q, const char *what, bool mute)
{
	struct soft_fault f = fault_of(q, SOFT_FAULT_HANG, what);

	if (!mute) {
		soft_gpu_reset(q, &f);
		return;
	}
	__atomic_store_n(&q->card->hung, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&q->card->vram_lost, 1, __ATOMIC_RELAXED);
	soft_wake_all(q->dev);
}

static void pause_all(struct soft_dev *d, uint64_t ns)
{
	__atomic_store_n(&d->paused_until_ns, time_mono_ns() + ns,
			 __ATOMIC_RELEASE);
	__atomic_add_fetch(&d->evicted_ns, ns, __ATOMIC_RELAXED);
}

/* Faults and refusals: called with a slice held. */
static void raise_fault(struct soft_queue *q, const struct soft_inject *r)
{
	struct soft_fault f;

	switch (r->what) {
	case SOFT_INJECT_FAULT:
		f = fault_of(q, SOFT_FAULT_MEMORY, "page fault");
		f.va = r->va;
		f.write = true;
		soft_page_fault(q, &f, false);
		break;
	case SOFT_INJECT_ILLEGAL:
		f = fault_of(q, SOFT_FAULT_ILLEGAL, "illegal instruction");
		soft_queue_error(q, KFD_EC_WAVE_ILLEGAL_INSTRUCTION,
				 KFD_INACTIVE_ILLEGAL, &f);
		break;
	case SOFT_INJECT_ECC:
		poison_memory(q);
		break;
	case SOFT_INJECT_RESET:
	case SOFT_INJECT_RESET_MUTE:
		reset_gpu(q, "reset", r->what == SOFT_INJECT_RESET_MUTE);
		break;
	default:
		f = fault_of(q, SOFT_FAULT_PACKET, "refusal");
		soft_queue_error(q, KFD_EC_PACKET_DISPATCH_DIM,
				 KFD_INACTIVE_DIM, &f);
	}
}

/* false: the packet is not to be run. */
static bool fail_one_packet(struct soft_queue *q, const struct soft_inject *r)
{
	switch (r->what) {
	case SOFT_INJECT_HANG:
		if (sleep_interruptible(q, r->ns ? r->ns : UINT64_MAX / 4)) {
			soft_map_hold(q->dev);
			reset_gpu(q, "hang", false);
			soft_map_release(q->dev);
		}
		return false;
	case SOFT_INJECT_PAUSE:
		pause_all(q->dev, r->ns);
		return false; /* it comes again */
	case SOFT_INJECT_SLOW:
		return sleep_interruptible(q, r->ns);
	case SOFT_INJECT_LOST_IRQ:
		q->mute = true;
		return true;
	case SOFT_INJECT_SPURIOUS:
		raise_spurious(q, r->ns);
		return true;
	default:
		soft_map_hold(q->dev);
		raise_fault(q, r);
		soft_map_release(q->dev);
		return false;
	}
}

static bool fail_packet(struct soft_hook *h, struct soft_queue *q)
{
	struct injector *s = (struct injector *)h;
	struct soft_inject hit;
	bool found = false;

	q->mute = false;
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->n && !found; i++)
		if (is_packet_rule(s->rule[i].r.what) &&
		    rule_fires(&s->rule[i])) {
			hit = s->rule[i].r;
			found = true;
		}
	pthread_mutex_unlock(&s->lock);
	return !found || fail_one_packet(q, &hit);
}

/* -------------------------------------------------------------- census -- */

void soft_census(struct kfd_driver *drv, struct soft_census *out)
{
	struct soft_dev *d = (struct soft_dev *)drv;

	*out = (struct soft_census){ 0 };
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_files; i++)
		out->files += d->file[i].fd >= 0;
	for (size_t i = 1; i < d->n_bo; i++)
		out->objects += d->bo[i] != NULL;
	out->queues = d->n_queues;
	for (unsigned i = 0; i < d->n_cards; i++)
		out->vram_bytes += d->card[i].vram_used;
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_lock(&d->ev.lock);
	for (size_t i = 0; i < d->ev.table.n; i++)
		out->events += d->ev.table.v[i] != NULL;
	pthread_mutex_unlock(&d->ev.lock);
}

static void count_left(struct soft_hook *h)
{
	struct injector *s = (struct injector *)h;

	if (s->left)
		soft_census(&s->dev->driver, s->left);
	s->left = NULL;
}

/* ------------------------------------------------------------ injector -- */

static void injector_free(struct soft_hook *h)
{
	struct injector *s = (struct injector *)h;

	pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct soft_hook_ops injector_ops = {
	.call = fail_call,
	.closing = count_left,
	.before_packet = fail_packet,
	.free = injector_free,
};

/* The device's; attached at the first use. */
static struct injector *injector_of(struct kfd_driver *drv)
{
	struct soft_dev *d = (struct soft_dev *)drv;
	struct injector *s = xcalloc(1, sizeof(*s));
	struct soft_hook *there;

	s->hook.ops = &injector_ops;
	s->dev = d;
	pthread_mutex_init(&s->lock, NULL);
	there = soft_hook_attach(d, &s->hook);
	if (there != &s->hook)
		injector_free(&s->hook);
	return (struct injector *)there;
}

void soft_inject(struct kfd_driver *drv, const struct soft_inject *rule)
{
	struct injector *s = injector_of(drv);

	pthread_mutex_lock(&s->lock);
	if (s->n == RULES_MAX)
		BUG("more than %d injection rules", RULES_MAX);
	s->rule[s->n] = (struct rule){ .r = *rule };
	s->rule[s->n].random = rule->seed;
	s->n++;
	pthread_mutex_unlock(&s->lock);
}

uint64_t soft_injected(struct kfd_driver *drv, enum soft_inject_what what)
{
	struct injector *s = injector_of(drv);
	uint64_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->n; i++)
		if (s->rule[i].r.what == what)
			n += s->rule[i].strikes;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void soft_census_at_close(struct kfd_driver *drv, struct soft_census *out)
{
	injector_of(drv)->left = out;
}
