/*
 * kfd/runtime/queue.c - AQL queues: their memory, their creation, their
 * scratch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kfd/runtime/service.h"

/* In the queue's page, after amd_queue (runtime.h has the others). */
enum { PAGE_DOORBELL_SIGNAL = 0x280 };

static const struct kfd_queue_opts defaults = {
	.ring_packets = 256,
	.kernarg_bytes = 256 * 1024,
	.priority = KFD_QUEUE_PRIORITY_NORMAL,
	.spin_ns = 50000,
	.printf_bytes = 1u << 20,
};

static bool take_opts(struct kfd_queue_opts *o, const struct kfd_queue_opts *in,
		      struct err *e)
{
	*o = in ? *in : defaults;
	if (!o->ring_packets)
		o->ring_packets = defaults.ring_packets;
	if (!o->kernarg_bytes)
		o->kernarg_bytes = defaults.kernarg_bytes;
	if (!o->priority)
		o->priority = defaults.priority;
	if (!o->spin_ns)
		o->spin_ns = defaults.spin_ns;
	if (!o->printf_bytes)
		o->printf_bytes = defaults.printf_bytes;
	if (o->printf_bytes < 8192 || o->printf_bytes > 1u << 30)
		return err_set(e, ERR_USAGE,
			       "a buffer of %u bytes for printf; wanted 8192 "
			       "to 2^30",
			       o->printf_bytes);
	if (o->ring_packets < 64 || o->ring_packets > 131072 ||
	    o->ring_packets & (o->ring_packets - 1))
		return err_set(e, ERR_USAGE,
			       "a ring of %u packets; wanted a "
			       "power of two, 64 to 131072",
			       o->ring_packets);
	if (o->priority > KFD_QUEUE_PRIORITY_MAX)
		return err_set(e, ERR_USAGE,
			       "queue priority %u; wanted 0 to "
			       "%u",
			       o->priority, KFD_QUEUE_PRIORITY_MAX);
	return true;
}

/* ------------------------------------------------------------ memory --- */

static bool alloc_memory(struct kfd_queue *q, uint64_t cwsr_bytes,
			 struct err *e)
{
	struct kfd_dev *dev = q->dev;
	const size_t ring = (size_t)q->opts.ring_packets * AQL_PACKET_BYTES;
	const size_t sigs =
		(size_t)q->opts.ring_packets * sizeof(struct amd_signal);
	const uint32_t gtt = MEM_FLAGS_GTT;

	/* The kernel wants these as buffers of exactly these sizes. */
	return (q->page = kfd_mem_new(dev, gtt, KFD_PAGE_BYTES, "queue page",
				      e)) &&
	       (q->ring = kfd_mem_new(dev, gtt, ring, "queue ring", e)) &&
	       (q->eop = kfd_mem_new(dev, MEM_FLAGS_PRIVATE, KFD_EOP_BYTES,
				     "queue EOP", e)) &&
	       (q->cwsr =
			kfd_mem_new(dev, gtt, cwsr_bytes, "context save", e)) &&
	       (q->sigs = kfd_mem_new(dev, gtt, sigs, "queue signals", e)) &&
	       (q->args = kfd_mem_new(dev, gtt, q->opts.kernarg_bytes,
				      "kernel arguments", e));
}

static void init_ring(struct kfd_queue *q)
{
	struct aql_dispatch *p = q->ring->pub.cpu;

	/* 0 would be a vendor packet. */
	for (uint32_t i = 0; i < q->opts.ring_packets; i++)
		p[i] = (struct aql_dispatch){ .header = AQL_INVALID };
}

static void init_cwsr(struct kfd_queue *q, const struct kfd_cwsr *size)
{
	const uint32_t n = q->dev->info.node.num_xcc;

	for (uint32_t i = 0; i < n; i++) {
		struct kfd_cwsr_header *h =
			(void *)((char *)q->cwsr->pub.cpu +
				 (size_t)i * size->cwsr_bytes);
		*h = (struct kfd_cwsr_header){
			.debug_offset = (n - i) * size->cwsr_bytes,
			.debug_size = size->debug_bytes,
			.err_payload_addr = q->page->pub.va + PAGE_ERR_PAYLOAD,
			.err_event_id = q->err_event.id,
		};
	}
}

static void init_page(struct kfd_queue *q)
{
	const struct kfd_info *info = &q->dev->info;
	char *page = q->page->pub.cpu;

	memset(page, 0, KFD_PAGE_BYTES);
	q->aq = (void *)page;
	q->err_payload = (void *)(page + PAGE_ERR_PAYLOAD);
	q->inactive = (void *)(page + PAGE_INACTIVE);
	*q->inactive = (struct amd_signal){
		.kind = AMD_SIGNAL_USER,
		.event_mailbox_ptr = kfd_event_mailbox(q->dev, &q->err_event),
		.event_id = q->err_event.id,
	};
	*q->aq = (struct amd_queue){
		.features = 1, /* kernel dispatch */
		.base_address = q->ring->pub.va,
		.doorbell_signal = q->page->pub.va + PAGE_DOORBELL_SIGNAL,
		.size = q->opts.ring_packets,
		.id = q->number,
		.group_segment_aperture_base_hi =
			(uint32_t)(info->lds_base >> 32),
		.private_segment_aperture_base_hi =
			(uint32_t)(info->scratch_base >> 32),
		.max_cu_id = info->node.cu_count - 1,
		.max_wave_id =
			info->node.simd_per_cu * info->node.max_waves_per_simd -
			1,
		.read_dispatch_id_field_base_byte_offset =
			offsetof(struct amd_queue, read_dispatch_id),
		.queue_properties = AMD_QUEUE_PROP_PTR64 |
				    AMD_QUEUE_PROP_PROFILING,
		.queue_inactive_signal = q->page->pub.va + PAGE_INACTIVE,
	};
}

/* ---------------------------------------------------------- creation --- */

/* One mapping of the process's doorbells serves all queues. */
static bool map_doorbells(struct kfd_dev *dev, uint64_t offset, struct err *e)
{
	const uint64_t base = offset &
			      ~(uint64_t)(KFD_DOORBELL_SLICE_BYTES - 1);
	int err = 0;
	void *p;

	pthread_mutex_lock(&dev->lock);
	p = dev->doorbells;
	if (!p) {
		p = dev->d->mmap(dev->d, NULL, KFD_DOORBELL_SLICE_BYTES,
				 PROT_READ | PROT_WRITE, MAP_SHARED,
				 dev->kfd_fd, base, &err);
		dev->doorbells = p == MAP_FAILED ? NULL : p;
	}
	pthread_mutex_unlock(&dev->lock);
	if (p == MAP_FAILED)
		return err_sys(e, ERR_IO, err,
			       "mapping the doorbells (%u "
			       "bytes at offset 0x%llx of /dev/kfd)",
			       KFD_DOORBELL_SLICE_BYTES,
			       (unsigned long long)base);
	(void)madvise(p, KFD_DOORBELL_SLICE_BYTES, MADV_DONTFORK);
	return true;
}

static bool create_queue(struct kfd_queue *q, const struct kfd_cwsr *size,
			 struct err *e)
{
	struct kfd_dev *dev = q->dev;
	struct kfd_ioc_create_queue a = {
		.ring_base = q->ring->pub.va,
		.wptr_addr = q->page->pub.va +
			     offsetof(struct amd_queue, write_dispatch_id),
		.rptr_addr = q->page->pub.va +
			     offsetof(struct amd_queue, read_dispatch_id),
		.ring_size = (uint32_t)q->ring->pub.size_bytes,
		.gpu_id = dev->gpu_id,
		.type = KFD_QUEUE_COMPUTE_AQL,
		.percentage = 100,
		.priority = q->opts.priority,
		.eop_addr = q->eop->pub.va,
		.eop_size = KFD_EOP_BYTES,
		.cwsr_addr = q->cwsr->pub.va,
		.cwsr_size = size->cwsr_bytes,
		.ctl_stack_size = size->ctl_stack_bytes,
	};
	int r = kfd_dev_ioctl(dev, KFD_IOC_CREATE_QUEUE, &a);

	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_CREATE_QUEUE, r, e,
					 "AQL queue %u, %u CUs", q->number,
					 dev->info.node.cu_count);
	q->id = a.queue_id;
	q->made = true;
	if (!map_doorbells(dev, a.doorbell_offset, e))
		return false;
	q->doorbell =
		(void *)((char *)dev->doorbells +
			 (a.doorbell_offset & (KFD_DOORBELL_SLICE_BYTES - 1)));
	struct amd_signal *bell =
		(void *)((char *)q->page->pub.cpu + PAGE_DOORBELL_SIGNAL);
	bell->kind = AMD_SIGNAL_DOORBELL;
	bell->value = (int64_t)(uintptr_t)q->doorbell;
	return true;
}

static void link_queue(struct kfd_queue *q)
{
	struct kfd_dev *dev = q->dev;

	pthread_mutex_lock(&dev->lock);
	q->next = dev->queues;
	if (q->next)
		q->next->prev = q;
	dev->queues = q;
	q->number = dev->n_queues_made++;
	pthread_mutex_unlock(&dev->lock);
}

static void unlink_queue(struct kfd_queue *q)
{
	struct kfd_dev *dev = q->dev;

	pthread_mutex_lock(&dev->lock);
	if (q->prev)
		q->prev->next = q->next;
	else
		dev->queues = q->next;
	if (q->next)
		q->next->prev = q->prev;
	pthread_mutex_unlock(&dev->lock);
}

bool kfd_queue_new(struct kfd_dev *dev, const struct kfd_queue_opts *o,
		   struct kfd_queue **out, struct err *e)
{
	const struct kfd_node *n = &dev->info.node;
	const struct kfd_cwsr size =
		kfd_cwsr_sizes(n->cu_count, n->gfx_target, n->num_xcc);
	struct kfd_queue_opts opts;

	*out = NULL;
	if (!kfd_dev_usable(dev, e) || !take_opts(&opts, o, e))
		return false;
	struct kfd_queue *q = xcalloc(1, sizeof(*q));
	q->dev = dev;
	q->opts = opts;
	q->slot = xcalloc(opts.ring_packets, sizeof(*q->slot));
	link_queue(q);
	bool ok = kfd_event_new(dev, KFD_EVENT_SIGNAL, &q->done_event, e) &&
		  kfd_event_new(dev, KFD_EVENT_SIGNAL, &q->err_event, e) &&
		  alloc_memory(q, size.area_bytes, e);
	if (ok) {
		init_ring(q);
		init_cwsr(q, &size);
		init_page(q);
		ok = create_queue(q, &size, e);
	}
	if (!ok) {
		kfd_queue_free(q, NULL);
		return false;
	}
	*out = q;
	return true;
}

bool kfd_queue_free(struct kfd_queue *q, struct err *e)
{
	struct err first = { 0 };

	if (!q || !*q->dev->alive)
		return true;
	struct kfd_dev *dev = q->dev;
	unlink_queue(q);
	struct kfd_ioc_destroy_queue a = { .queue_id = q->id };
	int r = q->made ? kfd_dev_ioctl(dev, KFD_IOC_DESTROY_QUEUE, &a) : 0;
	if (r)
		kfd_dev_ioctl_err(dev, KFD_IOC_DESTROY_QUEUE, r, &first,
				  "queue %u", q->number);
	else
		kfd_set_late(q, false);
	kfd_service_fini(q);
	kfd_event_delete(dev, &q->err_event);
	kfd_event_delete(dev, &q->done_event);
	struct mem *const mem[] = { q->scratch, q->args, q->sigs, q->cwsr,
				    q->eop,	q->ring, q->page };
	for (size_t i = 0; i < ARRAY_SIZE(mem); i++)
		kfd_mem_delete(dev, mem[i], first.code ? NULL : &first);
	free(q->slot);
	free(q);
	if (first.code && e)
		*e = first;
	return !first.code;
}

/* ----------------------------------------------------------- scratch --- */

/* Do waves begin with the place of their scratch memory, as from gfx11 on? */
static bool has_own_scratch(const struct kfd_node *n)
{
	const struct isa_chip *chip = isa_chip_of_target(n->gfx_target);

	return !chip || isa_gen_info(chip->gen)->own_scratch;
}

/* Bytes of a wave's scratch memory come in these. */
static uint32_t scratch_unit(const struct kfd_node *n)
{
	return has_own_scratch(n) ? 256 : 1024;
}

static void set_scratch(struct kfd_queue *q, uint32_t wave_bytes,
			uint64_t bytes)
{
	const struct kfd_node *n = &q->dev->info.node;
	const bool own = has_own_scratch(n);
	struct amd_queue *aq = q->aq;
	const uint64_t va = q->scratch->pub.va;
	uint64_t waves = bytes / wave_bytes / (own ? n->engines : 1);

	if (waves > n->cu_count * 32u)
		waves = n->cu_count * 32u;
	if (waves > 0xfff)
		waves = 0xfff;
	aq->compute_tmpring_size =
		AMD_TMPRING(waves, wave_bytes / scratch_unit(n));
	aq->scratch_resource_descriptor[0] = (uint32_t)va;
	/* Bit 30, or 31: swizzled, a lane's dwords lie a wave apart. */
	aq->scratch_resource_descriptor[1] = (uint32_t)(va >> 32 & 0xffff) |
					     1u << (own ? 30 : 31);
	aq->scratch_resource_descriptor[2] = (uint32_t)bytes;
	/* Select XYZW, 32_UINT, add thread id, no bounds by offset. */
	aq->scratch_resource_descriptor[3] = own ? 0x20814fac : 0x21814fac;
	aq->scratch_backing_memory_location = va;
	aq->scratch_backing_memory_byte_size = bytes;
	aq->scratch_wave64_lane_byte_size = wave_bytes / 64;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool kfd_queue_scratch(struct kfd_queue *q, uint32_t private_bytes,
		       uint32_t lanes, uint64_t deadline_ns, struct err *e)
{
	const struct kfd_node *n = &q->dev->info.node;
	const uint64_t slots_cu = n->scratch_slots_cu ? n->scratch_slots_cu :
							32;
	const uint64_t slots = (n->cu_count + n->engines - 1) / n->engines *
			       n->engines * slots_cu;
	const uint32_t unit = scratch_unit(n);
	const uint64_t wave = ALIGN_UP(
		ALIGN_UP((uint64_t)private_bytes, unit / lanes) * lanes, unit);

	if (wave <= q->scratch_wave_bytes)
		return true;
	if (wave > AMD_SCRATCH_WAVE_MAX_BYTES)
		return err_set(e, ERR_INPUT,
			       "%u bytes of scratch per lane, "
			       "%llu per wave; the limit is %u per wave",
			       private_bytes, (unsigned long long)wave,
			       AMD_SCRATCH_WAVE_MAX_BYTES);
	if (!kfd_drain(q, deadline_ns, e))
		return err_wrap(e, "waiting to grow scratch");
	struct mem *m = kfd_mem_new(q->dev, MEM_FLAGS_SCRATCH, wave * slots,
				    "scratch", e);
	if (!m)
		return err_wrap(e,
				"scratch of %u bytes per lane for %llu "
				"waves",
				private_bytes, (unsigned long long)slots);
	struct mem *old = q->scratch;
	q->scratch = m;
	q->scratch_wave_bytes = (uint32_t)wave;
	set_scratch(q, (uint32_t)wave, wave * slots);
	kfd_mem_delete(q->dev, old, NULL);
	return true;
}
