/*
 * kfd/soft/device/fault.c - fault reporting: what the program is told, by the
 * ABI and by the record.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

const char *soft_fault_name(enum soft_fault_kind kind)
{
	static const char *const name[] = {
		[SOFT_FAULT_NONE] = "no fault",
		[SOFT_FAULT_ILLEGAL] = "illegal instruction",
		[SOFT_FAULT_UNSUPPORTED] = "unsupported instruction",
		[SOFT_FAULT_MEMORY] = "memory fault",
		[SOFT_FAULT_APERTURE] = "aperture violation",
		[SOFT_FAULT_ALIGN] = "misaligned access",
		[SOFT_FAULT_TRAP] = "trap",
		[SOFT_FAULT_HANG] = "hang",
		[SOFT_FAULT_PACKET] = "refused packet",
	};

	return kind < ARRAY_SIZE(name) ? name[kind] : "unknown fault";
}

bool soft_last_fault(struct kfd_driver *drv, struct soft_fault *out)
{
	struct soft_dev *d = (struct soft_dev *)drv;

	pthread_mutex_lock(&d->fault_lock);
	*out = d->fault;
	pthread_mutex_unlock(&d->fault_lock);
	return out->count;
}

bool soft_fault_text(struct kfd_driver *drv, struct buf *out)
{
	struct soft_fault f;

	if (!soft_last_fault(drv, &f) || !f.text[0])
		return false;
	buf_adds(out, f.text);
	return true;
}

bool soft_fault_report(struct kfd_driver *drv, struct kfd_driver_fault *out)
{
	struct soft_fault f;

	if (!soft_last_fault(drv, &f))
		return false;
	*out = (struct kfd_driver_fault){
		.count = f.count,
		.unsupported = f.kind == SOFT_FAULT_UNSUPPORTED,
		.queue_id = f.queue_id,
		.packet = f.packet,
		.kernel_va = f.kernel,
		.pc = f.pc,
		.va = f.va,
		.write = f.write,
		.lane = f.lane,
		.wave = f.wave,
	};
	memcpy(out->workgroup, f.workgroup, sizeof(out->workgroup));
	return true;
}

static void record_fault(struct soft_queue *q, struct soft_fault *f)
{
	struct soft_dev *d = q->dev;

	f->queue_id = q->id;
	pthread_mutex_lock(&d->fault_lock);
	f->count = d->fault.count + 1;
	d->fault = *f;
	pthread_mutex_unlock(&d->fault_lock);
	soft_report(d, "%s: queue %u (%s): %s",
		    f->kind == SOFT_FAULT_PACKET ? "refused" : "fault", q->id,
		    soft_queue_name(q), f->text);
}

/*
 * The kernel reads and writes the error payload through the process's own
 * addresses: it need not be GPU memory, and a bad pointer must do no harm.
 */
static bool payload_or(struct soft_card *c, uint64_t va, uint64_t bits)
{
	uint64_t *p = soft_map_at(c, va, 8, SOFT_MEM_READ | SOFT_MEM_WRITE);
	uint64_t v = 0;

	if (va % 8)
		return false;
	if (p) {
		__atomic_or_fetch(p, bits, __ATOMIC_SEQ_CST);
		return true;
	}
	if (soft_copy_in(&v, va, 8))
		return false;
	v |= bits;
	return !soft_copy_out(va, &v, 8);
}

/* With RUNTIME_ENABLE: the payload and event named in the CWSR header. */
static bool runtime_error(struct soft_queue *q, uint64_t mask)
{
	const struct kfd_cwsr_header *h;

	if (!__atomic_load_n(&q->dev->runtime_enabled, __ATOMIC_RELAXED))
		return false;
	h = soft_map_at(q->card, q->cwsr_va, sizeof(*h), SOFT_MEM_READ);
	if (!h || !h->err_payload_addr ||
	    !payload_or(q->card, h->err_payload_addr, mask))
		return false;
	soft_event_interrupt(q->dev, h->err_event_id);
	return true;
}

static enum soft_done tell_runtime(struct soft_queue *q, void *mask)
{
	runtime_error(q, *(const uint64_t *)mask);
	return SOFT_DONE;
}

void soft_runtime_error(struct soft_queue *q, uint64_t mask)
{
	soft_cp_step(q, tell_runtime, &mask);
}

bool soft_trap_interrupt(struct soft_queue *q, uint32_t m0)
{
	const uint32_t doorbell = (uint32_t)(q->doorbell - q->card->doorbell);
	const uint64_t mask = m0 >> 10;
	bool taken = false;

	if (!mask || (m0 & 0x3ff) != doorbell)
		return false;
	for (int ec = 1; mask >> (ec - 1); ec++)
		if (mask & KFD_EC_MASK(ec))
			taken |= soft_debug_queue(q, (enum kfd_ec)ec);
	if (!taken)
		runtime_error(q, mask);
	return true;
}

bool soft_queue_inactive(struct soft_queue *q, uint32_t code)
{
	struct amd_queue *aq;
	struct amd_signal *s;
	uint64_t va, *slot, mailbox;
	uint32_t event;

	if (q->type != KFD_QUEUE_COMPUTE_AQL)
		return false; /* these have no such structure */
	aq = soft_cp_queue(q, &va);
	if (!aq || !aq->queue_inactive_signal)
		return false;
	s = soft_cp_at(q, aq->queue_inactive_signal, sizeof(*s),
		       SOFT_MEM_READ | SOFT_MEM_WRITE, "inactive signal");
	if (!s)
		return false;
	mailbox = s->event_mailbox_ptr;
	event = s->event_id;
	__atomic_store_n(&s->value, (int64_t)code, __ATOMIC_SEQ_CST);
	slot = mailbox && mailbox % 8 == 0 ?
		       soft_map_at(q->card, mailbox, 8, SOFT_MEM_WRITE) :
		       NULL;
	if (slot) {
		__atomic_store_n(slot, event, __ATOMIC_RELEASE);
		soft_event_interrupt(q->dev, event);
	}
	return true;
}

/* The program has no event for what happened, and so would wait for ever. */
static void nobody_hears(struct soft_dev *d)
{
	if (d->o.unheard)
		d->o.unheard();
}

/* `hung` is set: say so. */
static void reset_card(struct soft_card *c)
{
	struct soft_dev *d = c->dev;
	const struct kfd_hw_exception x = {
		.reset_type = 0, .reset_cause = 0, .memory_lost = 1,
		.gpu_id = c->gpu_id,
	};

	__atomic_add_fetch(&c->vram_lost, 1, __ATOMIC_RELAXED);
	/* The reset is over as soon as it began. */
	soft_smi_event(c, KFD_SMI_GPU_PRE_RESET, "%x %s\n", c->vram_lost,
		       "hang");
	soft_smi_event(c, KFD_SMI_GPU_POST_RESET, "%x %s\n", c->vram_lost,
		       "hang");
	if (!soft_event_hw(d, &x))
		nobody_hears(d);
	soft_wake_all(d);
}

void soft_queue_error(struct soft_queue *q, enum kfd_ec ec, uint32_t inactive,
		      struct soft_fault *f)
{
	/* An engine that reads nonsense hangs until the card is reset. */
	if (q->type != KFD_QUEUE_COMPUTE_AQL &&
	    f->kind == SOFT_FAULT_PACKET) {
		soft_gpu_reset(q, f);
		return;
	}
	/* The first error of a queue counts: other waves die with it. */
	if (__atomic_exchange_n(&q->dead, 1, __ATOMIC_ACQ_REL))
		return;
	record_fault(q, f);
	/* Whom nobody can tell would wait until the card is reset. */
	if (!soft_debug_queue(q, ec) && !runtime_error(q, KFD_EC_MASK(ec)) &&
	    !soft_queue_inactive(q, inactive) &&
	    !__atomic_exchange_n(&q->card->hung, 1, __ATOMIC_ACQ_REL))
		reset_card(q->card);
}

void soft_page_fault(struct soft_queue *q, struct soft_fault *f, bool execute)
{
	struct soft_dev *d = q->dev;
	struct soft_range r;
	struct kfd_memory_exception x = {
		.va = f->va & ~(uint64_t)(KFD_PAGE_BYTES - 1),
		.gpu_id = q->card->gpu_id,
	};

	if (__atomic_exchange_n(&q->card->evicted, 1, __ATOMIC_ACQ_REL))
		return;
	record_fault(q, f);
	if (!soft_map_find(q->card, f->va, &r))
		x.not_present = 1;
	else if (f->write && !(r.flags & SOFT_MEM_WRITE))
		x.read_only = 1;
	else if (execute && !(r.flags & SOFT_MEM_EXEC))
		x.no_execute = 1;
	else /* it began in a mapped range and ran out of it */
		x.not_present = 1;
	soft_smi_event(q->card, KFD_SMI_VMFAULT, "%x:%s\n", (unsigned)d->pid,
		       program_invocation_short_name);
	if (!soft_debug_fault(q->card, &x) && !soft_event_memory(d, &x))
		nobody_hears(d);
	soft_wake_all(d);
}

void soft_gpu_reset(struct soft_queue *q, struct soft_fault *f)
{
	if (__atomic_exchange_n(&q->card->hung, 1, __ATOMIC_ACQ_REL))
		return;
	record_fault(q, f);
	reset_card(q->card);
}
