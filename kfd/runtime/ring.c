/*
 * kfd/runtime/ring.c - the ring of a queue: its packets, and waiting for them.
 *
 * Every packet has a completion signal of its own (unless the launch names
 * one), so what has finished, in which slot, is always known from signals:
 * that frees argument space and ring slots, and names the guilty packet.
 */
#include <string.h>

#include "kfd/runtime/service.h"

#define BARRIER_DEPS 5 /* signals of a packet */
#define SLEEP_SERVICE_MS 1u /* while kernels may ask: they may wait */

uint64_t kfd_deadline(uint64_t deadline_ns)
{
	return deadline_ns ? deadline_ns : time_mono_ns() + KFD_DEADLINE_NS;
}

static struct amd_signal *own_signal(struct kfd_queue *q, uint64_t id)
{
	return (struct amd_signal *)q->sigs->pub.cpu +
	       (id & (q->opts.ring_packets - 1));
}

void kfd_queue_retire(struct kfd_queue *q)
{
	while (q->done < q->put) {
		struct slot *s = slot_of(q, q->done);

		if (!signal_done(s->sig))
			break;
		if (s->print)
			kfd_service_end(q, s->print);
		s->print = NULL;
		q->args_tail = s->args_end;
		if (s->ends || (s->loud && q->seen == q->done))
			q->seen = q->done + 1;
		q->done++;
	}
	if (q->done == q->put)
		kfd_set_late(q, false);
}

/* ----------------------------------------------------------- waiting --- */

/* The first packet from `id` on that interrupts; `put` when there is none. */
static uint64_t loud_from(struct kfd_queue *q, uint64_t id)
{
	while (id < q->put && !slot_of(q, id)->loud)
		id++;
	return id;
}

/* The same of those that end a chain. */
static uint64_t end_from(struct kfd_queue *q, uint64_t id)
{
	while (id < q->put && !slot_of(q, id)->ends)
		id++;
	return id;
}

/* Its errors, and what its kernels ask for. */
static bool poll_queue(struct kfd_queue *q, uint32_t *sleep_ms, struct err *e)
{
	if (!kfd_queue_poll(q, e))
		return false;
	switch (kfd_service_poll(q)) {
	case SERVICE_IDLE:
		break;
	case SERVICE_SOON:
		if (*sleep_ms > SLEEP_SERVICE_MS)
			*sleep_ms = SLEEP_SERVICE_MS;
		break;
	case SERVICE_MORE:
		*sleep_ms = 0;
	}
	return true;
}

static bool wait_slot(struct kfd_queue *q, uint64_t id, uint64_t deadline_ns,
		      struct err *e)
{
	struct amd_signal *sig = slot_of(q, id)->sig;
	struct event other = q->dev->signal_event;
	const struct kfd_wait w = {
		.sig = sig,
		.ev = sig == own_signal(q, id) ? &q->done_event : &other,
		.q = q,
		.poll = poll_queue,
		.spin_ns = q->opts.spin_ns,
		.deadline_ns = deadline_ns,
	};

	kfd_flush(q);
	if (kfd_event_wait(q->dev, &w, e))
		return true;
	/* What ended before is shown before the error. */
	kfd_queue_retire(q);
	return false;
}

bool kfd_ring_wait_oldest(struct kfd_queue *q, uint64_t deadline_ns,
			  struct err *e)
{
	uint64_t id = loud_from(q, q->done);

	if (id == q->put)
		id = q->put - 1;
	if (!wait_slot(q, id, deadline_ns, e))
		return false;
	kfd_queue_retire(q);
	return true;
}

static void read_timing(struct kfd_queue *q, uint64_t id, struct kfd_timing *t)
{
	const struct slot *s = slot_of(q, id);
	const double hz = kfd_clock_hz(q->dev);

	t->start_ticks = t->end_ticks = t->device_ns = t->start_ns = 0;
	if (s->id != id)
		return; /* the slot has moved on */
	uint64_t start = s->sig->start_ts, end = s->sig->end_ts;
	if (!start || end < start)
		return; /* not given, or the clock was reset in between */
	t->start_ticks = start;
	t->end_ticks = end;
	t->device_ns = (uint64_t)((double)(end - start) * 1e9 / hz);
	/* A clock that cannot be read costs the host time, not the duration. */
	if (!kfd_clock_ns(q->dev, start, &t->start_ns, NULL))
		t->start_ns = 0;
}

/* A quiet packet is waited for through the one that ends its chain. */
static bool wait_quiet(struct kfd_queue *q, uint64_t id, uint64_t deadline_ns,
		       struct err *e)
{
	uint64_t end = end_from(q, id < q->done ? q->done : id);

	if (end == q->put && !kfd_barrier(q, NULL, 0, &end, e))
		return false;
	return wait_slot(q, end, deadline_ns, e);
}

static bool is_over(struct kfd_queue *q, uint64_t ticket)
{
	const struct slot *s = slot_of(q, ticket);

	return ticket < q->seen ||
	       (s->id == ticket && s->loud && signal_done(s->sig));
}

bool kfd_wait(struct kfd_queue *q, uint64_t ticket, uint64_t deadline_ns,
	      struct kfd_timing *t, struct err *e)
{
	if (ticket >= q->put)
		return err_set(e, ERR_USAGE,
			       "packet %llu was never put into "
			       "queue %u",
			       (unsigned long long)ticket, q->number);
	kfd_queue_retire(q);
	if (!is_over(q, ticket)) {
		deadline_ns = kfd_deadline(deadline_ns);
		if (!kfd_queue_usable(q, e))
			return false;
		if (ticket >= q->done && slot_of(q, ticket)->loud ?
			    !wait_slot(q, ticket, deadline_ns, e) :
			    !wait_quiet(q, ticket, deadline_ns, e))
			return false;
		kfd_queue_retire(q);
	}
	if (t)
		read_timing(q, ticket, t);
	return true;
}

bool kfd_drain(struct kfd_queue *q, uint64_t deadline_ns, struct err *e)
{
	deadline_ns = kfd_deadline(deadline_ns);
	kfd_queue_retire(q);
	if (q->seen < q->put && !kfd_queue_usable(q, e))
		return false;
	if (q->chained && !kfd_barrier(q, NULL, 0, NULL, e))
		return false;
	while (q->done < q->put)
		if (!kfd_ring_wait_oldest(q, deadline_ns, e))
			return false;
	return true;
}

/* ----------------------------------------------------------- packets --- */

bool kfd_ring_reserve(struct kfd_queue *q, uint64_t deadline_ns, struct err *e)
{
	kfd_queue_retire(q);
	if (q->put - q->done < q->opts.ring_packets)
		return true;
	deadline_ns = kfd_deadline(deadline_ns);
	while (q->put - q->done >= q->opts.ring_packets)
		if (!kfd_ring_wait_oldest(q, deadline_ns, e))
			return err_wrap(e, "waiting for space in the ring");
	return true;
}

bool kfd_ring_take_print(struct kfd_queue *q, const struct kfd_kernel *k,
			 uint64_t deadline_ns, struct printbuf **out,
			 struct err *e)
{
	bool busy;

	for (;; deadline_ns = kfd_deadline(deadline_ns)) {
		if (!kfd_service_take(q, k, out, &busy, e))
			return false;
		if (!busy)
			return true;
		if (!kfd_ring_wait_oldest(q, kfd_deadline(deadline_ns), e))
			return err_wrap(e, "waiting for a printf buffer");
	}
}

void kfd_ring_drop_print(struct printbuf *b)
{
	kfd_service_drop(b);
}

uint64_t kfd_ring_arm(struct kfd_queue *q, const char *what, bool loud,
		      bool ends, struct kfd_signal *done)
{
	struct slot *s = slot_of(q, q->put);
	struct amd_signal *own = own_signal(q, q->put);

	*s = (struct slot){ .id = q->put,
			    .sig = done ? kfd_signal_hw(done) : own,
			    .what = what,
			    .loud = loud,
			    .ends = ends,
			    .args_end = q->args_head };
	if (!done) {
		own->kind = AMD_SIGNAL_USER;
		own->event_mailbox_ptr =
			loud ? kfd_event_mailbox(q->dev, &q->done_event) : 0;
		own->event_id = loud ? q->done_event.id : 0;
		own->start_ts = own->end_ts = 0;
		__atomic_store_n(&own->value, 1, __ATOMIC_RELEASE);
	}
	return (uintptr_t)s->sig;
}

/* Bytes 4..63 first; the header makes the packet the device's. */
void kfd_ring_publish(struct kfd_queue *q, const void *packet)
{
	char *at = (char *)q->ring->pub.cpu +
		   (q->put & (q->opts.ring_packets - 1)) * AQL_PACKET_BYTES;
	uint32_t first;

	memcpy(&first, packet, 4);
	memcpy(at + 4, (const char *)packet + 4, AQL_PACKET_BYTES - 4);
	order_release();
	__atomic_store_n((uint32_t *)(void *)at, first, __ATOMIC_RELEASE);
	q->put++;
	__atomic_store_n(&q->aq->write_dispatch_id, q->put, __ATOMIC_RELEASE);
}

/*
 * Within a chain it is enough that the device sees what packets before wrote:
 * a fence to the host empties L2, too.
 */
uint16_t kfd_ring_header(struct kfd_queue *q, enum aql_type type, bool barrier,
			 bool quiet)
{
	const bool chained = q->chained;

	q->chained = quiet;
	return AQL_HEADER(type, barrier,
			  chained ? AQL_SCOPE_AGENT : AQL_SCOPE_SYSTEM,
			  quiet ? AQL_SCOPE_AGENT : AQL_SCOPE_SYSTEM);
}

void kfd_flush(struct kfd_queue *q)
{
	if (q->rung == q->put)
		return;
	q->rung = q->put;
	/* The doorbell takes the index of the last packet, not the count. */
	q->dev->d->ring(q->dev->d, q->doorbell, q->put - 1);
}

/* The packet behind all before it and, at most BARRIER_DEPS, signals. */
static bool put_barrier(struct kfd_queue *q, const uint64_t *dep, int n,
			struct err *e)
{
	struct aql_barrier p = { 0 };

	if (!kfd_queue_usable(q, e) || !kfd_ring_reserve(q, 0, e))
		return false;
	for (int i = 0; i < n; i++)
		p.dep_signal[i] = dep[i];
	p.header = kfd_ring_header(q, AQL_BARRIER_AND, true, false);
	p.completion_signal = kfd_ring_arm(q, KFD_BARRIER, true, true, NULL);
	kfd_ring_publish(q, &p);
	return true;
}

bool kfd_barrier(struct kfd_queue *q, struct kfd_signal *const *dep, int n_deps,
		 uint64_t *ticket, struct err *e)
{
	uint64_t va[BARRIER_DEPS] = { 0 };

	if (n_deps < 0 || n_deps > BARRIER_DEPS)
		return err_set(e, ERR_USAGE, "a barrier on %d signals; wanted "
			       "at most %d", n_deps, BARRIER_DEPS);
	for (int i = 0; i < n_deps; i++)
		va[i] = dep[i]->va;
	if (!put_barrier(q, va, n_deps, e))
		return false;
	kfd_flush(q);
	if (ticket)
		*ticket = q->put - 1;
	return true;
}

bool kfd_queue_share(struct kfd_queue *q, struct kfd_dev *peer, struct err *e)
{
	return kfd_mem_share(&q->sigs->pub, q->dev, peer, e);
}

bool kfd_after(struct kfd_queue *q, const struct kfd_after *on, int n,
	       struct err *e)
{
	uint64_t va[BARRIER_DEPS] = { 0 };
	int at = 0;

	for (int i = 0; i < n; i++) {
		const struct slot *s = slot_of(on[i].queue, on[i].ticket);

		if (on[i].queue == q || s->id != on[i].ticket)
			continue; /* in order, or long done */
		if (!s->loud)
			return err_set(e, ERR_USAGE, "packet %llu of a queue is "
				       "quiet; wanted the end of a chain",
				       (unsigned long long)on[i].ticket);
		kfd_flush(on[i].queue);
		va[at++] = (uintptr_t)s->sig;
		if (at == BARRIER_DEPS) {
			if (!put_barrier(q, va, at, e))
				return false;
			at = 0;
		}
	}
	return !at || put_barrier(q, va, at, e);
}
