/*
 * kfd/runtime/fault.c - fault records for programs: who did what where.
 *
 * Put together from the kernel's event, the queue's ring, the memory map, and
 * what the driver knows beyond the ABI.
 */
#include <errno.h>
#include <string.h>

#include "kfd/runtime/runtime.h"

const char *kfd_fault_name(enum kfd_fault_kind kind)
{
	static const char *const name[] = {
		[KFD_FAULT_NONE] = "no fault",
		[KFD_FAULT_ILLEGAL] = "illegal instruction",
		[KFD_FAULT_UNSUPPORTED] = "unsupported instruction",
		[KFD_FAULT_MEMORY] = "memory fault",
		[KFD_FAULT_APERTURE] = "aperture violation",
		[KFD_FAULT_TRAP] = "trap",
		[KFD_FAULT_PACKET] = "refused packet",
		[KFD_FAULT_HANG] = "hang",
		[KFD_FAULT_RESET] = "reset",
		[KFD_FAULT_ECC] = "uncorrectable memory error",
		[KFD_FAULT_GONE] = "device gone",
	};

	return kind < ARRAY_SIZE(name) ? name[kind] : "unknown fault";
}

/* With dev->lock held: the kernel whose descriptor stands at `va`. */
static void name_kernel(struct kfd_dev *dev, uint64_t va, struct kfd_fault *f)
{
	const char *name = kfd_code_name_at(dev, va);

	if (name)
		snprintf(f->kernel, sizeof(f->kernel), "%s", name);
}

/* What the driver adds, if it speaks of something new. */
static void add_driver(struct kfd_dev *dev, struct kfd_fault *f)
{
	struct kfd_driver_fault x;
	struct kfd_queue *q;

	if (!dev->d->fault || !dev->d->fault(dev->d, &x))
		return;
	pthread_mutex_lock(&dev->lock);
	const bool fresh = x.count != dev->faults_seen;
	dev->faults_seen = x.count;
	for (q = dev->queues; q && (!q->made || q->id != x.queue_id);)
		q = q->next;
	if (fresh) {
		f->pc = x.pc;
		if (x.unsupported && f->kind == KFD_FAULT_ILLEGAL)
			f->kind = KFD_FAULT_UNSUPPORTED;
		if (x.va) {
			f->va = x.va;
			f->has_va = true;
			f->write = x.write;
		}
	}
	if (fresh && q) {
		f->has_packet = true;
		f->queue = q->number;
		f->packet = x.packet;
		f->kernel[0] = 0;
		name_kernel(dev, x.kernel_va, f);
	}
	pthread_mutex_unlock(&dev->lock);
}

uint64_t kfd_queue_oldest(const struct kfd_queue *q)
{
	uint64_t id = q->done;

	while (id < q->put && signal_done(slot_of(q, id)->sig))
		id++;
	return id;
}

void kfd_queue_describe(const struct kfd_queue *q, struct buf *out)
{
	const uint64_t id = kfd_queue_oldest(q);

	if (id == q->put) {
		buf_printf(out, "queue %u (no packet outstanding)", q->number);
		return;
	}
	buf_printf(out, "kernel '%s', packet %llu of queue %u",
		   slot_of(q, id)->what, (unsigned long long)id, q->number);
	if (q->put - id > 1)
		buf_printf(out, " (%llu more behind it)",
			   (unsigned long long)(q->put - id - 1));
}

/* The oldest packet; only the queue's own thread. */
static void add_queue(struct kfd_queue *q, struct kfd_fault *f)
{
	const uint64_t id = kfd_queue_oldest(q);

	f->queue = q->number;
	if (id == q->put)
		return;
	const struct slot *s = slot_of(q, id);
	f->has_packet = true;
	f->packet = s->id;
	snprintf(f->kernel, sizeof(f->kernel), "%s", s->what);
}

void kfd_fault_fill(struct kfd_dev *dev, struct kfd_queue *q,
		    struct kfd_fault *f)
{
	if (q)
		add_queue(q, f);
	/* A deadline is the host's: the driver knows nothing of it. */
	if (f->kind != KFD_FAULT_HANG)
		add_driver(dev, f);
	if (q && f->has_packet && f->queue == q->number && !f->kernel[0])
		add_queue(q, f);
	if (f->has_va)
		kfd_mem_nearest(dev, f->va, f);
}

void kfd_fault_describe(const struct kfd_fault *f, struct kfd_queue *q,
			struct buf *out)
{
	if (q && (!f->has_packet || f->queue == q->number)) {
		kfd_queue_describe(q, out);
		return;
	}
	if (!f->has_packet) {
		buf_adds(out, "queue unknown");
		return;
	}
	if (f->kernel[0])
		buf_printf(out, "kernel '%s', ", f->kernel);
	buf_printf(out, "packet %llu of queue %u",
		   (unsigned long long)f->packet, f->queue);
}

bool kfd_queue_fault(struct kfd_queue *q, struct kfd_fault *out)
{
	if (q->fault.kind) {
		*out = q->fault;
		return true;
	}
	return kfd_lost_fault(q->dev, out);
}

bool kfd_lost_fault(struct kfd_dev *dev, struct kfd_fault *out)
{
	if (!__atomic_load_n(&dev->lost, __ATOMIC_ACQUIRE))
		return false;
	*out = dev->lost_fault;
	return true;
}

/* ------------------------------------------------------ VRAM is lost --- */

/* AMDGPU_INFO of the render node (kfd-runtime D). */
struct amdgpu_info {
	uint64_t return_pointer;
	uint32_t return_size, query;
	uint64_t more[2];
};
#define AMDGPU_INFO_REQUEST    0x40206445ul
#define AMDGPU_INFO_VRAM_LOST_ 0x1fu

bool kfd_vram_lost(struct kfd_dev *dev, uint32_t *count, struct err *e)
{
	uint32_t n = 0;
	struct amdgpu_info a = { .return_pointer = (uintptr_t)&n,
				 .return_size = sizeof(n),
				 .query = AMDGPU_INFO_VRAM_LOST_ };
	int r;

	do
		r = dev->d->ioctl(dev->d, dev->render_fd, AMDGPU_INFO_REQUEST,
				  &a);
	while (r == -EINTR);
	if (r < 0)
		return err_sys(e, ERR_UNSUPPORTED, -r,
			       "the driver does not count lost memory");
	*count = n;
	return true;
}

bool kfd_vram_check(struct kfd_dev *dev, struct kfd_queue *q, struct err *e)
{
	struct kfd_fault f = { .kind = KFD_FAULT_RESET, .device_lost = true,
			       .memory_lost = true };
	struct buf text = { 0 };
	struct err why = { 0 };
	uint32_t now;

	if (!dev->counts_lost || !kfd_vram_lost(dev, &now, NULL) ||
	    now == dev->vram_lost)
		return true;
	kfd_fault_fill(dev, q, &f);
	kfd_fault_describe(&f, q, &text);
	err_set(&why, ERR_DEVICE,
		"the GPU was reset, cause unknown (the driver counts %u losses "
		"of its memory, %u before): contents of its memory are lost; "
		"%s; the device must be opened again",
		now, dev->vram_lost, text.data);
	buf_fini(&text);
	return kfd_dev_lose(dev, &why, &f, e);
}
