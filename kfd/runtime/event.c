/*
 * kfd/runtime/event.c - events: the event page, the device's two error events,
 * and the one wait that everything else uses.
 *
 * A wait trusts nothing but the signal's value.  An event only ends the sleep
 * early: wake-ups may be lost, merged or spurious, so every sleep is capped
 * and the value read again.
 */
#include <errno.h>
#include <string.h>

#include "kfd/runtime/runtime.h"

/* Longest sleep: with ages a lost wake-up cannot happen, without it can. */
#define SLEEP_MAX_MS	 1000u
#define SLEEP_MAX_OLD_MS 10u
#define LOST_LOOK_NS	 900000000ull /* between looks at the counter */
#define LATE_NS		 100000000ull /* of a sleep that ends late, no loss */
#define STOP_NS		 1000000000ull /* what ends so soon may end */

bool kfd_event_new(struct kfd_dev *dev, uint32_t type, struct event *ev,
		   struct err *e)
{
	struct kfd_ioc_create_event a = {
		.event_type = type,
		/*
		 * All that wait see it; who comes later sees the device lost.
		 * An error of another GPU, which is no concern of this one,
		 * must not stay set and end every sleep.
		 */
		.auto_reset = true,
		.node_id = (uint32_t)dev->info.node.index,
	};
	/* The first event hands over the page; later ones pass 0. */
	if (dev == dev->root && !dev->memory_event.made)
		a.event_page_offset = dev->event_page->handle;
	int r = kfd_dev_ioctl(dev, KFD_IOC_CREATE_EVENT, &a);
	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_CREATE_EVENT, r, e,
					 "type %u", type);
	if (type == KFD_EVENT_SIGNAL &&
	    a.event_slot_index >= KFD_EVENT_PAGE_SLOTS)
		return err_set(e, ERR_IO,
			       "CREATE_EVENT: slot %u is outside "
			       "the event page of %u",
			       a.event_slot_index, KFD_EVENT_PAGE_SLOTS);
	*ev = (struct event){ .id = a.event_id,
			      .slot = a.event_slot_index,
			      .made = true };
	/* Ages start at 1 and grow with every set. */
	ev->age = dev->info.kfd_minor >= KFD_MINOR_EVENT_AGE;
	return true;
}

void kfd_event_delete(struct kfd_dev *dev, struct event *ev)
{
	struct kfd_ioc_event a = { .event_id = ev->id };

	if (ev->made)
		(void)kfd_dev_ioctl(dev, KFD_IOC_DESTROY_EVENT, &a);
	ev->made = false;
}

uint64_t kfd_event_mailbox(struct kfd_dev *dev, const struct event *ev)
{
	return dev->event_page->pub.va + 8ull * ev->slot;
}

bool kfd_events_init(struct kfd_dev *dev, struct err *e)
{
	struct kfd_dev *root = dev->root;

	if (dev == root)
		dev->event_page = kfd_mem_new(dev, MEM_FLAGS_GTT,
					      KFD_EVENT_PAGE_BYTES,
					      "event page", e);
	else if (kfd_mem_share(&root->event_page->pub, root, dev, e))
		dev->event_page = root->event_page; /* one per process */
	return dev->event_page &&
	       kfd_event_new(dev, KFD_EVENT_MEMORY, &dev->memory_event, e) &&
	       kfd_event_new(dev, KFD_EVENT_HW_EXCEPTION, &dev->hw_event, e) &&
	       kfd_event_new(dev, KFD_EVENT_SIGNAL, &dev->signal_event, e);
}

void kfd_events_fini(struct kfd_dev *dev)
{
	kfd_event_delete(dev, &dev->signal_event);
	kfd_event_delete(dev, &dev->hw_event);
	kfd_event_delete(dev, &dev->memory_event);
}

/* ----------------------------------------------------- device errors --- */

static void add_driver_text(struct kfd_dev *dev, struct buf *out)
{
	struct buf more = { 0 };

	if (dev->d->fault_text && dev->d->fault_text(dev->d, &more))
		buf_printf(out, "; %s", more.data);
	buf_fini(&more);
}

/* The device is lost by *f, which is still to be completed. */
static bool lose_device(struct kfd_dev *dev, struct kfd_queue *q,
			struct kfd_fault *f, struct buf *text, struct err *e)
{
	struct err why = { 0 };

	f->device_lost = true;
	kfd_fault_fill(dev, q, f);
	if (f->has_va) {
		buf_printf(text, " at 0x%llx; ", (unsigned long long)f->va);
		kfd_mem_describe(dev, f->va, text);
	}
	buf_adds(text, "; ");
	kfd_fault_describe(f, q, text);
	add_driver_text(dev, text);
	err_set(&why, ERR_DEVICE, "%s; the device must be opened again",
		text->data);
	buf_fini(text);
	if (q)
		q->fault = *f;
	return kfd_dev_lose(dev, &why, f, e);
}

static bool memory_fault(struct kfd_dev *dev, struct kfd_queue *q,
			 const struct kfd_memory_exception *x, struct err *e)
{
	struct kfd_fault f = { .kind = KFD_FAULT_MEMORY, .va = x->va,
			       .has_va = !x->imprecise,
			       .write = x->read_only };
	struct buf text = { 0 };

	if (x->error_type == KFD_MEM_ERROR_SRAM_ECC ||
	    x->error_type == KFD_MEM_ERROR_POISON) {
		f.kind = KFD_FAULT_ECC;
		buf_adds(&text, "uncorrectable memory error (ECC)");
	} else if (x->error_type == KFD_MEM_ERROR_HANG) {
		buf_adds(&text, "memory fault reported after a hang");
	} else {
		buf_printf(&text, "memory fault: %s",
			   x->not_present ? "page not present" :
			   x->read_only	  ? "write to a read-only page" :
			   x->no_execute  ? "execution of a data page" :
					    "reason not given");
	}
	if (x->imprecise)
		buf_adds(&text, ", address not known");
	return lose_device(dev, q, &f, &text, e);
}

static bool hw_exception(struct kfd_dev *dev, struct kfd_queue *q,
			 const struct kfd_hw_exception *x, struct err *e)
{
	struct kfd_fault f = { .kind = x->reset_cause == 1 ? KFD_FAULT_ECC :
							     KFD_FAULT_RESET,
			       .memory_lost = x->memory_lost };
	struct buf text = { 0 };

	buf_printf(&text, "the %s was reset (%s)%s",
		   x->reset_type ? "compute engine" : "GPU",
		   x->reset_cause == 0 ? "hang, of this or another process" :
		   x->reset_cause == 1 ? "uncorrectable ECC error" :
					 "cause unknown",
		   x->memory_lost ? ", contents of its memory are lost" : "");
	return lose_device(dev, q, &f, &text, e);
}

/* The driver has given the device up: nothing will ever complete. */
static bool device_gone(struct kfd_dev *dev, struct kfd_queue *q,
			struct err *why, struct err *e)
{
	struct kfd_fault f = { .kind = KFD_FAULT_GONE, .device_lost = true };

	if (q)
		kfd_fault_fill(dev, q, &f);
	if (q)
		q->fault = f;
	return kfd_dev_lose(dev, why, &f, e);
}

/* -------------------------------------------------------------- wait --- */

enum { EV_SIGNAL, EV_MEMORY, EV_HW, EV_QUEUE, EV_N };

/* false and *e when one of the device's error events has come. */
static bool check_events(struct kfd_dev *dev, struct kfd_queue *q,
			 const struct kfd_event_data *ev, struct err *e)
{
	/*
	 * A payload is valid when it names a GPU (kfd-abi 6).  The driver stops
	 * the queues of that one, and tells all that have an event.
	 */
	if (ev[EV_MEMORY].memory.gpu_id == dev->gpu_id)
		return memory_fault(dev, q, &ev[EV_MEMORY].memory, e);
	if (ev[EV_HW].hw.gpu_id == dev->gpu_id)
		return hw_exception(dev, q, &ev[EV_HW].hw, e);
	return true;
}

/* Sleep until an event or the time; false and *e on an error. */
static bool sleep_on(struct kfd_dev *dev, struct kfd_queue *q, struct event *ev,
		     uint32_t timeout_ms, struct err *e)
{
	struct kfd_event_data data[EV_N] = {
		[EV_SIGNAL] = { .event_id = ev->id, .last_event_age = ev->age },
		[EV_MEMORY] = { .event_id = dev->memory_event.id },
		[EV_HW] = { .event_id = dev->hw_event.id },
	};
	struct kfd_ioc_wait_events w = { .events_ptr = (uintptr_t)data,
					 .num_events = EV_QUEUE,
					 .timeout = timeout_ms };

	if (q) {
		data[EV_QUEUE].event_id = q->err_event.id;
		data[EV_QUEUE].last_event_age = q->err_event.age;
		w.num_events = EV_N;
	}
	/* One attempt: the caller's loop is the retry, with its deadline. */
	int r = dev->d->ioctl(dev->d, dev->kfd_fd, KFD_IOC_WAIT_EVENTS, &w);
	if (r == -EINTR || r == -EAGAIN)
		return true;
	if (r < 0) {
		struct err why = { 0 };

		kfd_dev_ioctl_err(dev, KFD_IOC_WAIT_EVENTS, r, &why,
				  "%u events, %u ms", w.num_events, timeout_ms);
		if (why.code == ERR_DEVICE)
			return device_gone(dev, q, &why, e);
		if (e)
			*e = why;
		return false;
	}
	if (ev->age)
		ev->age = data[EV_SIGNAL].last_event_age;
	if (q && q->err_event.age)
		q->err_event.age = data[EV_QUEUE].last_event_age;
	return check_events(dev, q, data, e);
}

bool kfd_events_poll(struct kfd_dev *dev, struct kfd_queue *q,
		     uint32_t timeout_ms, struct err *e)
{
	struct kfd_event_data data[EV_HW + 1] = {
		[EV_MEMORY] = { .event_id = dev->memory_event.id },
		[EV_HW] = { .event_id = dev->hw_event.id },
	};
	struct kfd_ioc_wait_events w = {
		.events_ptr = (uintptr_t)&data[EV_MEMORY],
		.num_events = 2,
		.timeout = timeout_ms,
	};

	if (kfd_lost(dev, e))
		return false;
	/* An error of its own must not hide the one that is looked for. */
	if (kfd_dev_ioctl(dev, KFD_IOC_WAIT_EVENTS, &w))
		return true;
	return check_events(dev, q, data, e);
}

static bool spin_until(const struct amd_signal *sig, uint64_t until_ns)
{
	do {
		for (int i = 0; i < 64; i++) {
			if (signal_done(sig))
				return true;
			__builtin_ia32_pause();
		}
	} while (time_mono_ns() < until_ns);
	return false;
}

static bool timed_out(struct kfd_dev *dev, struct kfd_queue *q,
		      uint64_t waited_ns, struct err *e)
{
	struct buf text = { 0 };

	if (q) {
		kfd_set_late(q, true);
		q->fault = (struct kfd_fault){ .kind = KFD_FAULT_HANG };
		kfd_fault_fill(dev, q, &q->fault);
		kfd_queue_describe(q, &text);
	} else {
		buf_adds(&text, "signal");
	}
	err_set(e, ERR_TIMEOUT,
		"%s: not complete at its deadline, after "
		"%.3f s of waiting; the kernel hangs or needs more time",
		text.data, (double)waited_ns * 1e-9);
	buf_fini(&text);
	return false;
}

static bool stopped(struct kfd_queue *q, struct err *e)
{
	struct buf text = { 0 };

	kfd_queue_describe(q, &text);
	err_set(e, ERR_STOPPED, "%s: not complete", text.data);
	buf_fini(&text);
	return false;
}

/*
 * How long it is since `from_ns`, if a sleep of sleep_ms should have ended long
 * ago: a host that stood still, suspended or busy with others, has not waited.
 */
static uint64_t lost_ns(uint64_t from_ns, uint32_t sleep_ms)
{
	const uint64_t took_ns = time_mono_ns() - from_ns;

	return took_ns > sleep_ms * 1000000ull + LATE_NS ? took_ns : 0;
}

bool kfd_event_wait(struct kfd_dev *dev, const struct kfd_wait *w,
		    struct err *e)
{
	const uint64_t start = time_mono_ns();
	const uint32_t cap_ms = w->ev->age ? SLEEP_MAX_MS : SLEEP_MAX_OLD_MS;
	uint64_t until = start + w->spin_ns, looked = start, stop_ns = 0;
	uint64_t deadline_ns = w->deadline_ns;

	if (until > deadline_ns)
		until = deadline_ns;
	if (spin_until(w->sig, until))
		return true;
	for (;;) {
		uint32_t sleep_ms = cap_ms;

		if (signal_done(w->sig))
			return true;
		if (kfd_lost(dev, e))
			return false;
		if (w->q && !w->poll(w->q, &sleep_ms, e))
			return false;
		uint64_t now = time_mono_ns();
		if (!stop_ns && w->q && w->q->opts.stop && *w->q->opts.stop)
			stop_ns = now + STOP_NS;
		if (stop_ns && now >= stop_ns)
			return stopped(w->q, e);
		/* A reset whose event was missed shows in a counter. */
		if ((now >= deadline_ns || now - looked > LOST_LOOK_NS) &&
		    !kfd_vram_check(dev, w->q, e))
			return false;
		if (now - looked > LOST_LOOK_NS)
			looked = now;
		if (now >= deadline_ns)
			return timed_out(dev, w->q, now - start, e);
		uint64_t ms = (deadline_ns - now) / 1000000 + 1;
		if (ms < sleep_ms)
			sleep_ms = (uint32_t)ms;
		if (sleep_ms && !sleep_on(dev, w->q, w->ev, sleep_ms, e))
			return false;
		uint64_t lost = lost_ns(now, sleep_ms);
		deadline_ns += lost < UINT64_MAX - deadline_ns ? lost : 0;
	}
}
