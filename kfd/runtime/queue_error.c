/*
 * kfd/runtime/queue_error.c - what ended a queue: the error words that the
 * device writes, as text and as numbers.
 */
#include "kfd/runtime/runtime.h"

/* How long the memory event may come after the queue's error word. */
#define FAULT_GRACE_MS 200u

static const struct reason {
	uint64_t bit;
	const char *text;
} payload_reasons[] = {
	{ KFD_EC_MASK(KFD_EC_WAVE_ABORT), "a wave aborted" },
	{ KFD_EC_MASK(KFD_EC_WAVE_TRAP), "a wave met s_trap" },
	{ KFD_EC_MASK(KFD_EC_WAVE_MATH), "a floating-point exception" },
	{ KFD_EC_MASK(KFD_EC_WAVE_ILLEGAL_INSTRUCTION),
	  "an illegal instruction" },
	{ KFD_EC_MASK(KFD_EC_WAVE_MEMORY_VIOLATION), "a memory violation" },
	{ KFD_EC_MASK(KFD_EC_WAVE_APERTURE_VIOLATION),
	  "an aperture violation (a flat address outside LDS, scratch and "
	  "memory)" },
	{ KFD_EC_MASK(KFD_EC_PACKET_DISPATCH_DIM),
	  "packet rejected: grid or workgroup dimensions" },
	{ KFD_EC_MASK(KFD_EC_PACKET_GROUP_SEGMENT),
	  "packet rejected: too much LDS" },
	{ KFD_EC_MASK(KFD_EC_PACKET_DISPATCH_CODE),
	  "packet rejected: no valid kernel descriptor at its address" },
	{ KFD_EC_MASK(KFD_EC_PACKET_UNSUPPORTED),
	  "packet rejected: unknown packet type" },
	{ KFD_EC_MASK(KFD_EC_PACKET_WORK_GROUP_SIZE),
	  "packet rejected: workgroup too large" },
	{ KFD_EC_MASK(KFD_EC_PACKET_REGISTER),
	  "packet rejected: too many registers for the workgroup" },
	{ KFD_EC_MASK(KFD_EC_PACKET_VENDOR), "packet rejected: vendor packet" },
	{ KFD_EC_MASK(KFD_EC_PREEMPTION), "the queue could not be preempted" },
	{ KFD_EC_MASK(KFD_EC_DEVICE_MEMORY_VIOLATION),
	  "a memory violation on the device" },
	{ KFD_EC_MASK(KFD_EC_DEVICE_RAS), "an uncorrectable memory error" },
	{ KFD_EC_MASK(KFD_EC_DEVICE_FATAL_HALT), "the device has halted" },
};
static const struct reason inactive_reasons[] = {
	{ KFD_INACTIVE_SCRATCH_WAVE64, "more scratch wanted (wave64)" },
	{ KFD_INACTIVE_DIM, "packet rejected: grid or workgroup dimensions" },
	{ KFD_INACTIVE_GROUP_SEGMENT, "packet rejected: too much LDS" },
	{ KFD_INACTIVE_CODE,
	  "packet rejected: no valid kernel descriptor at its address" },
	{ KFD_INACTIVE_PACKET_FORMAT, "packet rejected: unknown packet type" },
	{ KFD_INACTIVE_WORK_GROUP_SIZE,
	  "packet rejected: workgroup too large" },
	{ KFD_INACTIVE_REGISTERS,
	  "packet rejected: too many registers for the workgroup" },
	{ KFD_INACTIVE_VENDOR, "packet rejected: vendor packet" },
	{ KFD_INACTIVE_SCRATCH_WAVE32, "more scratch wanted (wave32)" },
	{ KFD_INACTIVE_APERTURE, "an aperture violation" },
	{ KFD_INACTIVE_ILLEGAL, "an illegal instruction" },
	{ KFD_INACTIVE_TRAP, "a trap or a memory violation" },
};

static void add_reasons(struct buf *out, uint64_t mask, const struct reason *r,
			size_t n)
{
	const size_t start = out->len;

	for (size_t i = 0; i < n; i++) {
		if (!(mask & r[i].bit))
			continue;
		if (out->len > start)
			buf_adds(out, " and ");
		buf_adds(out, r[i].text);
		mask &= ~r[i].bit;
	}
	if (mask)
		buf_printf(out, "%sexception mask 0x%llx",
			   out->len > start ? " and " : "",
			   (unsigned long long)mask);
}

/* Mark dead with *why and take it as *e; always false. */
static bool queue_kill(struct kfd_queue *q, const struct err *why,
		       const struct kfd_fault *f, struct err *e)
{
	if (!q->dead) {
		q->dead_err = *why;
		q->fault = *f;
	}
	q->dead = true;
	if (e)
		*e = q->dead_err;
	return false;
}

bool kfd_queue_usable(struct kfd_queue *q, struct err *e)
{
	if (!kfd_dev_usable(q->dev, e))
		return false;
	if (!q->dead)
		return true;
	if (e)
		*e = q->dead_err;
	return err_wrap(e, "the queue died before");
}

#define EC(name) KFD_EC_MASK(KFD_EC_##name)
static const struct kind {
	uint64_t payload, inactive;
	enum kfd_fault_kind kind;
} kinds[] = {
	{ EC(WAVE_ILLEGAL_INSTRUCTION), KFD_INACTIVE_ILLEGAL,
	  KFD_FAULT_ILLEGAL },
	{ EC(WAVE_MEMORY_VIOLATION) | EC(DEVICE_MEMORY_VIOLATION), 0,
	  KFD_FAULT_MEMORY },
	{ EC(WAVE_APERTURE_VIOLATION), KFD_INACTIVE_APERTURE,
	  KFD_FAULT_APERTURE },
	{ EC(WAVE_TRAP) | EC(WAVE_ABORT) | EC(WAVE_MATH), KFD_INACTIVE_TRAP,
	  KFD_FAULT_TRAP },
	{ EC(DEVICE_RAS), 0, KFD_FAULT_ECC },
	{ EC(PREEMPTION) | EC(DEVICE_FATAL_HALT), 0, KFD_FAULT_RESET },
	{ UINT64_MAX, UINT64_MAX, KFD_FAULT_PACKET }, /* all others */
};
#undef EC

static enum kfd_fault_kind kind_of(uint64_t payload, uint64_t inactive)
{
	const struct kind *k = kinds;

	while (!(k->payload & payload) && !(k->inactive & inactive))
		k++;
	return k->kind;
}

static bool report_error(struct kfd_queue *q, uint64_t payload,
			 uint64_t inactive, struct err *e)
{
	struct buf text = { 0 }, more = { 0 };
	struct kfd_fault f = { .kind = kind_of(payload,
					       payload ? 0 : inactive) };
	struct err why = { 0 };

	kfd_fault_fill(q->dev, q, &f);

	kfd_queue_describe(q, &text);
	buf_adds(&text, ": ");
	if (payload)
		add_reasons(&text, payload, payload_reasons,
			    ARRAY_SIZE(payload_reasons));
	else
		add_reasons(&text, inactive, inactive_reasons,
			    ARRAY_SIZE(inactive_reasons));
	if (q->dev->d->fault_text && q->dev->d->fault_text(q->dev->d, &more))
		buf_printf(&text, "; %s", more.data);
	err_set(&why, ERR_DEVICE, "%s; the queue has stopped", text.data);
	buf_fini(&text);
	buf_fini(&more);
	return queue_kill(q, &why, &f, e);
}

bool kfd_queue_poll(struct kfd_queue *q, struct err *e)
{
	const uint64_t memory = KFD_EC_MASK(KFD_EC_WAVE_MEMORY_VIOLATION) |
				KFD_EC_MASK(KFD_EC_DEVICE_MEMORY_VIOLATION);
	uint64_t payload = __atomic_load_n(q->err_payload, __ATOMIC_ACQUIRE);
	uint64_t inactive = (uint64_t)__atomic_load_n(&q->inactive->value,
						      __ATOMIC_ACQUIRE);

	if (q->dead) {
		if (e)
			*e = q->dead_err;
		return false;
	}
	if (!payload && !inactive)
		return true;
	/* The memory event knows the address: it is the better report. */
	if (!kfd_events_poll(q->dev, q, payload & memory ? FAULT_GRACE_MS : 0,
			     e))
		return false;
	return report_error(q, payload, inactive, e);
}
