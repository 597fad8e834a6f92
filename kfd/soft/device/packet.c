/*
 * kfd/soft/device/packet.c - the AQL packet processor: a queue's packets, one
 * after the other.
 *
 * The barrier bit needs nothing, since packets of one queue never overlap.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

#define IB_DWORDS_MAX 65536u

union packet {
	uint32_t dw[AQL_PACKET_BYTES / 4];
	uint16_t header;
	struct aql_dispatch dispatch;
	struct aql_barrier barrier;
	struct aql_pm4_ib pm4;
	struct aql_barrier_value value;
};

void soft_cp_fault(struct soft_queue *q, uint64_t va, uint32_t need,
		   const char *what)
{
	struct soft_fault f = { .kind = SOFT_FAULT_MEMORY, .lane = -1 };

	f.va = va;
	f.write = need & SOFT_MEM_WRITE;
	f.packet = q->began_index;
	snprintf(f.text, sizeof(f.text),
		 "packet %llu: the packet processor cannot %s the %s at 0x%llx%s",
		 (unsigned long long)f.packet, f.write ? "write" : "read", what,
		 (unsigned long long)va,
		 va % 4 ? ", which is not aligned to 4 bytes" : "");
	soft_page_fault(q, &f, false);
}

void *soft_cp_at(struct soft_queue *q, uint64_t va, uint64_t size,
		 uint32_t need, const char *what)
{
	/* All that comes here is made of aligned words. */
	void *p = va % (size % 8 ? 4 : 8) ? NULL :
					    soft_map_at(q->card, va, size, need);

	if (!p)
		soft_cp_fault(q, va, need, what);
	return p;
}

struct amd_queue *soft_cp_queue(struct soft_queue *q, uint64_t *va)
{
	const uint64_t at = offsetof(struct amd_queue,
				     read_dispatch_id_field_base_byte_offset) -
			    offsetof(struct amd_queue, read_dispatch_id);
	const uint32_t *offset = soft_cp_at(q, q->rptr_va + at, 4,
					    SOFT_MEM_READ, "queue structure");

	if (!offset)
		return NULL;
	*va = q->rptr_va - *offset;
	return soft_cp_at(q, *va, sizeof(struct amd_queue),
			  SOFT_MEM_READ | SOFT_MEM_WRITE, "queue structure");
}

static uint64_t packet_va(const struct soft_queue *q)
{
	const uint64_t n = q->ring_bytes / AQL_PACKET_BYTES;

	return q->ring_base + q->read_index % n * AQL_PACKET_BYTES;
}

static uint32_t *packet_at(struct soft_queue *q)
{
	return soft_cp_at(q, packet_va(q), AQL_PACKET_BYTES,
			  SOFT_MEM_READ | SOFT_MEM_WRITE, "ring");
}

/* ---------------------------------------------------------- readiness -- */

/*
 * With a slice held.  Doorbells of several producers may come in any order,
 * so a new one only says: look at everything that is published.
 */
static bool is_ready(struct soft_queue *q)
{
	const uint64_t bell = __atomic_load_n(q->doorbell, __ATOMIC_SEQ_CST);
	const uint64_t *wptr;
	const uint32_t *dw;
	uint64_t end;

	q->began_index = q->read_index;
	if (bell != q->doorbell_seen) {
		q->doorbell_seen = bell;
		q->armed = true;
	}
	if (!q->armed)
		return false;
	wptr = soft_cp_at(q, q->wptr_va, 8, SOFT_MEM_READ, "write index");
	if (!wptr)
		return false;
	end = __atomic_load_n(wptr, __ATOMIC_ACQUIRE);
	if (end < q->doorbell_seen + 1)
		end = q->doorbell_seen + 1;
	dw = q->read_index < end ? packet_at(q) : NULL;
	/* Reserved but not published: another doorbell follows. */
	q->armed = dw && AQL_HEADER_TYPE(__atomic_load_n(
				 dw, __ATOMIC_ACQUIRE)) != AQL_INVALID;
	order_acquire();
	return q->armed;
}

static enum soft_done look_ready(struct soft_queue *q, void *arg)
{
	(void)arg;
	return is_ready(q) ? SOFT_DONE : SOFT_LATER;
}

bool soft_packet_ready(struct soft_queue *q)
{
	return soft_cp_step(q, look_ready, NULL) == SOFT_DONE;
}

/* --------------------------------------------------------- completion -- */

void soft_packet_retire(struct soft_queue *q)
{
	uint64_t *rptr = soft_cp_at(q, q->rptr_va, 8,
				    SOFT_MEM_READ | SOFT_MEM_WRITE,
				    "read index");
	uint32_t *dw = packet_at(q);

	if (!rptr || !dw)
		return;
	__atomic_store_n(dw, AQL_INVALID, __ATOMIC_RELEASE);
	q->read_index++;
	__atomic_store_n(rptr, q->read_index, __ATOMIC_RELEASE);
}

void soft_packet_complete(struct soft_queue *q, uint64_t signal,
			  uint64_t end_ts)
{
	struct amd_signal *s;
	uint64_t *slot = NULL, mailbox;
	uint32_t event;

	if (!signal)
		return;
	s = soft_cp_at(q, signal, sizeof(*s), SOFT_MEM_READ | SOFT_MEM_WRITE,
		       "completion signal");
	if (!s)
		return;
	mailbox = s->event_mailbox_ptr;
	event = s->event_id;
	if (mailbox) {
		slot = soft_cp_at(q, mailbox, 8, SOFT_MEM_WRITE,
				  "event mailbox");
		if (!slot)
			return;
	}
	/* Always, not only with AMD_QUEUE_PROP_PROFILING: it does no harm. */
	__atomic_store_n(&s->start_ts, q->began_ts, __ATOMIC_RELAXED);
	__atomic_store_n(&s->end_ts, end_ts, __ATOMIC_RELAXED);
	order_release();
	/* From here on the program may use the signal for something else. */
	__atomic_sub_fetch(&s->value, 1, __ATOMIC_SEQ_CST);
	if (slot && !q->mute) {
		__atomic_store_n(slot, event, __ATOMIC_RELEASE);
		soft_event_interrupt(q->dev, event);
	}
	soft_wake_all(q->dev); /* barrier packets of other queues */
}

/* A packet that only had to wait is over. */
static enum soft_done finish_waiting(struct soft_queue *q, uint64_t signal)
{
	soft_packet_retire(q);
	soft_packet_complete(q, signal, soft_gpu_clock(q->card));
	return SOFT_DONE;
}

enum soft_done soft_packet_refuse(struct soft_queue *q, enum kfd_ec ec,
				  uint32_t inactive, uint64_t kernel,
				  const char *fmt, ...)
{
	struct soft_fault f = { .kind = SOFT_FAULT_PACKET, .lane = -1 };
	va_list ap;

	f.packet = q->read_index;
	f.kernel = kernel;
	va_start(ap, fmt);
	vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	soft_queue_error(q, ec, inactive, &f);
	return SOFT_REFUSED;
}

/* ----------------------------------------------------- barrier packets -- */

/* The value of a signal; false after a page fault. */
static bool signal_value(struct soft_queue *q, uint64_t va, int64_t *value)
{
	const struct amd_signal *s = soft_cp_at(q, va, sizeof(*s),
						SOFT_MEM_READ, "signal");

	if (s)
		*value = __atomic_load_n(&s->value, __ATOMIC_SEQ_CST);
	return s;
}

static enum soft_done run_barrier(struct soft_queue *q,
				  const struct aql_barrier *b, bool any)
{
	unsigned n = 0, zero = 0;
	int64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(b->dep_signal); i++) {
		if (!b->dep_signal[i])
			continue;
		if (!signal_value(q, b->dep_signal[i], &value))
			return SOFT_REFUSED;
		n++;
		zero += value == 0;
	}
	if (n && (any ? !zero : zero < n))
		return SOFT_LATER;
	return finish_waiting(q, b->completion_signal);
}

static bool value_holds(const struct aql_barrier_value *b, int64_t value)
{
	const int64_t v = value & b->mask;

	switch (b->cond) {
	case AQL_COND_EQ:
		return v == b->value;
	case AQL_COND_NE:
		return v != b->value;
	case AQL_COND_LT:
		return v < b->value;
	default:
		return v >= b->value;
	}
}

static enum soft_done barrier_value(struct soft_queue *q,
				    const struct aql_barrier_value *b)
{
	int64_t value;

	if (b->cond > AQL_COND_GTE)
		return soft_packet_refuse(q, KFD_EC_PACKET_VENDOR,
					  KFD_INACTIVE_VENDOR, 0,
					  "barrier-value packet %llu has the "
					  "unknown condition %u; accepted: 0..3",
					  (unsigned long long)q->read_index,
					  b->cond);
	if (b->signal) {
		if (!signal_value(q, b->signal, &value))
			return SOFT_REFUSED;
		if (!value_holds(b, value))
			return SOFT_LATER;
	}
	return finish_waiting(q, b->completion_signal);
}

/* ------------------------------------------------------ vendor packets -- */

static enum soft_done end_pm4_ib(struct soft_queue *q, void *arg)
{
	const struct aql_pm4_ib *p = arg;

	return finish_waiting(q, p->completion_signal);
}

static enum soft_done refuse_pm4_ib(struct soft_queue *q, void *arg)
{
	const struct aql_pm4_ib *p = arg;

	return soft_packet_refuse(q, KFD_EC_PACKET_VENDOR, KFD_INACTIVE_VENDOR,
				  0, "PM4 packet %llu: 0x%08x; accepted: an "
				  "INDIRECT_BUFFER of 1..%u dwords",
				  (unsigned long long)q->read_index,
				  p->ib_jump_cmd[0], IB_DWORDS_MAX);
}

/* Without a slice: the buffer may start dispatches. */
static enum soft_done pm4_ib(struct soft_queue *q, struct aql_pm4_ib *p)
{
	const uint32_t *c = p->ib_jump_cmd, n = c[3] & 0xfffff;
	const uint64_t va = (uint64_t)c[2] << 32 | (c[1] & ~3u);
	enum soft_done done;

	if (PM4_OP(c[0]) != PM4_INDIRECT_BUFFER || c[0] >> 30 != 3 || !n ||
	    n > IB_DWORDS_MAX)
		return soft_cp_step(q, refuse_pm4_ib, p);
	done = soft_pm4_buffer(q, va, n);
	return done == SOFT_DONE ? soft_cp_step(q, end_pm4_ib, p) : done;
}

static enum soft_done run_vendor(struct soft_queue *q, const union packet *p)
{
	if (p->pm4.amd_format == AQL_VENDOR_BARRIER_VALUE)
		return barrier_value(q, &p->value);
	return soft_packet_refuse(q, KFD_EC_PACKET_VENDOR, KFD_INACTIVE_VENDOR,
				  0, "vendor packet %llu has the unknown "
				  "format %u; accepted: 1 (PM4), 2 (barrier "
				  "value); is its ring slot initialised to "
				  "INVALID (1)?",
				  (unsigned long long)q->read_index,
				  p->pm4.amd_format);
}

/* With a slice held: everything but dispatches and PM4. */
static enum soft_done run_other(struct soft_queue *q, const union packet *p)
{
	switch (AQL_HEADER_TYPE(p->header)) {
	case AQL_VENDOR:
		return run_vendor(q, p);
	case AQL_BARRIER_AND:
		return run_barrier(q, &p->barrier, false);
	case AQL_BARRIER_OR:
		return run_barrier(q, &p->barrier, true);
	default:
		return soft_packet_refuse(
			q, KFD_EC_PACKET_UNSUPPORTED,
			KFD_INACTIVE_PACKET_FORMAT, 0,
			"packet %llu has the unsupported type %u (header "
			"0x%04x); accepted: 0 (vendor), 2 (dispatch), 3 and 5 "
			"(barriers)",
			(unsigned long long)q->read_index,
			AQL_HEADER_TYPE(p->header), p->header);
	}
}

/* Those that may run kernels, and so must not hold the map. */
enum kind { KIND_DISPATCH, KIND_PM4, KIND_OTHER };

static enum kind kind_of(const union packet *p)
{
	switch (AQL_HEADER_TYPE(p->header)) {
	case AQL_KERNEL_DISPATCH:
		return KIND_DISPATCH;
	case AQL_VENDOR:
		return p->pm4.amd_format == AQL_VENDOR_PM4_IB ? KIND_PM4 :
								KIND_OTHER;
	default:
		return KIND_OTHER;
	}
}

/* The packet as it is now; all but dispatches and PM4 are run. */
static enum soft_done take_packet(struct soft_queue *q, void *arg)
{
	const uint32_t *dw = packet_at(q);
	union packet *p = arg;

	if (!dw)
		return SOFT_REFUSED;
	p->dw[0] = __atomic_load_n(dw, __ATOMIC_ACQUIRE);
	memcpy(&p->dw[1], dw + 1, sizeof(*p) - 4);
	return kind_of(p) == KIND_OTHER ? run_other(q, p) : SOFT_DONE;
}

enum soft_done soft_packet_run(struct soft_queue *q)
{
	union packet p = { 0 };
	enum soft_done done;

	if (!q->again) {
		if (!soft_hooks_before_packet(q))
			return SOFT_REFUSED;
		q->began_ts = soft_gpu_clock(q->card);
	}
	done = soft_cp_step(q, take_packet, &p);
	if (done == SOFT_DONE && kind_of(&p) == KIND_DISPATCH)
		done = soft_dispatch(q, &p.dispatch, NULL);
	else if (done == SOFT_DONE && kind_of(&p) == KIND_PM4)
		done = pm4_ib(q, &p.pm4);
	q->again = done == SOFT_LATER;
	return done;
}
