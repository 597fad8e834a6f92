/*
 * softdev - drive the soft device through bare ioctls, for its own tests.
 *
 * Nothing here is the runtime: each helper is the shortest legal sequence of
 * calls, and every refusal can be provoked by changing one field before.
 */
#ifndef T0_TESTS_SOFTDEV_H
#define T0_TESTS_SOFTDEV_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/order.h"
#include "kfd/abi.h"
#include "kfd/soft/soft.h"
#include "tests/tap.h"

#define VRAM_FLAGS                                                       \
	(KFD_MEM_WRITABLE | KFD_MEM_VRAM | KFD_MEM_PUBLIC | \
	 KFD_MEM_EXECUTABLE | KFD_MEM_NO_SUBSTITUTE)
#define GTT_FLAGS                                                      \
	(KFD_MEM_WRITABLE | KFD_MEM_GTT | KFD_MEM_COHERENT | \
	 KFD_MEM_UNCACHED | KFD_MEM_EXECUTABLE | KFD_MEM_NO_SUBSTITUTE)

struct sd {
	struct kfd_driver *d;
	int kfd, drm;
	uint32_t gpu; /* of this card */
};
struct sd_mem {
	void *p; /* CPU and GPU address */
	uint64_t size, handle;
	uint32_t flags;
};
struct sd_queue {
	struct amd_queue *q;
	struct amd_signal *inactive;
	uint8_t *ring;
	uint32_t packets;
	uint64_t next; /* packet to write */
	volatile uint64_t *doorbell;
	struct sd_mem queue, ringm, eop, cwsr, sig;
	struct kfd_ioc_create_queue a; /* as passed */
	void *doorbells;
};

static inline uint64_t sd_ptr(const volatile void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static inline int sd_ioctl(struct sd *s, unsigned long request, void *arg)
{
	return s->d->ioctl(s->d, s->kfd, request, arg);
}

/* Open both nodes and acquire the VM; exits when the host cannot. */
static inline struct sd sd_open(const struct soft_options *o)
{
	struct err e = { 0 };
	struct sd s = { kfd_soft_new(o, &e), -1, -1, SOFT_GPU_ID };
	struct kfd_ioc_acquire_vm vm = { 0, SOFT_GPU_ID };

	if (!s.d) {
		diag("%s", e.msg);
		exit(1);
	}
	s.kfd = s.d->open(s.d, "/dev/kfd", O_RDWR | O_CLOEXEC);
	s.drm = s.d->open(s.d, "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	vm.drm_fd = (uint32_t)s.drm;
	if (s.kfd < 0 || s.drm < 0 || sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &vm)) {
		diag("cannot open the soft device");
		exit(1);
	}
	return s;
}

/* The same machine's card i, its VM acquired; only `first` is closed. */
static inline struct sd sd_card(const struct sd *first, unsigned i)
{
	struct sd s = { first->d, first->kfd, -1, SOFT_GPU_ID_OF(i) };
	struct kfd_ioc_acquire_vm vm = { 0, s.gpu };
	char path[32];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", 128 + i);
	s.drm = s.d->open(s.d, path, O_RDWR | O_CLOEXEC);
	vm.drm_fd = (uint32_t)s.drm;
	if (s.drm < 0 || sd_ioctl(&s, KFD_IOC_ACQUIRE_VM, &vm)) {
		diag("cannot acquire card %u", i);
		exit(1);
	}
	return s;
}

static inline void sd_close(struct sd *s)
{
	s->d->close(s->d, s->drm);
	s->d->close(s->d, s->kfd);
	s->d->free(s->d);
	memset(s, 0, sizeof(*s));
}

/* Address space without memory, 2 MiB aligned. */
static inline void *sd_reserve(uint64_t size)
{
	const uint64_t huge = 2u << 20;
	uint8_t *p = mmap(NULL, size + huge, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *q = (uint8_t *)((sd_ptr(p) + huge - 1) & ~(huge - 1));

	munmap(p, (size_t)(q - p));
	munmap(q + size, (size_t)(p + huge - q));
	return q;
}

static inline int sd_map(struct sd *s, uint64_t handle, bool map)
{
	struct kfd_ioc_map_memory a = { handle, sd_ptr(&s->gpu), 1, 0 };

	return sd_ioctl(s, map ? KFD_IOC_MAP_MEMORY_TO_GPU :
				 KFD_IOC_UNMAP_MEMORY_FROM_GPU, &a);
}

/* Allocate at a fresh address, map on the CPU, and on the GPU if `gpu`. */
static inline int sd_try_alloc(struct sd *s, uint64_t size, uint32_t flags,
			       bool gpu, struct sd_mem *m)
{
	struct kfd_ioc_alloc_memory a = { .size = size,
					  .gpu_id = s->gpu,
					  .flags = flags };
	const bool hidden = flags & KFD_MEM_VRAM && !(flags & KFD_MEM_PUBLIC);
	int ret, err = 0;

	m->p = sd_reserve(size);
	m->size = size;
	m->flags = flags;
	a.va_addr = sd_ptr(m->p);
	ret = sd_ioctl(s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
	if (ret) {
		munmap(m->p, size);
		return ret;
	}
	m->handle = a.handle;
	if (s->d->mmap(s->d, m->p, size,
		       hidden ? PROT_NONE : PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, s->drm, a.mmap_offset,
		       &err) == MAP_FAILED)
		return -err;
	return gpu ? sd_map(s, m->handle, true) : 0;
}

static inline struct sd_mem sd_alloc(struct sd *s, uint64_t size,
				     uint32_t flags)
{
	struct sd_mem m;
	const int ret = sd_try_alloc(s, size, flags, true, &m);

	if (ret) {
		diag("allocation of %llu bytes: %s", (unsigned long long)size,
		     strerror(-ret));
		exit(1);
	}
	return m;
}

static inline int sd_free_handle(struct sd *s, uint64_t handle)
{
	struct kfd_ioc_free_memory a = { handle };

	return sd_ioctl(s, KFD_IOC_FREE_MEMORY_OF_GPU, &a);
}

/* Unmap, free, and give the address space back: the first error. */
static inline int sd_free(struct sd *s, struct sd_mem *m)
{
	int ret = sd_map(s, m->handle, false);

	if (!ret)
		ret = sd_free_handle(s, m->handle);
	s->d->munmap(s->d, m->p, m->size);
	return ret;
}

/* ------------------------------------------------------------- queues -- */

/* Buffers and arguments of a queue, not yet created. */
static inline void sd_queue_prepare(struct sd *s, struct sd_queue *q,
				    uint32_t packets)
{
	const struct kfd_cwsr c = kfd_cwsr_sizes(96, 110000, 1);

	memset(q, 0, sizeof(*q));
	q->packets = packets;
	q->queue = sd_alloc(s, 4096, GTT_FLAGS);
	q->ringm = sd_alloc(s, packets * 64ull, GTT_FLAGS);
	q->eop = sd_alloc(s, 4096, VRAM_FLAGS);
	q->cwsr = sd_alloc(s, c.area_bytes, GTT_FLAGS);
	q->sig = sd_alloc(s, 4096, GTT_FLAGS);
	q->inactive = q->sig.p;
	q->inactive->kind = AMD_SIGNAL_USER;
	q->ring = q->ringm.p;
	for (uint32_t i = 0; i < packets; i++)
		q->ring[i * 64] = AQL_INVALID;
	q->q = q->queue.p;
	q->q->base_address = sd_ptr(q->ring);
	q->q->size = packets;
	q->q->read_dispatch_id_field_base_byte_offset = 0x80;
	q->q->queue_properties = AMD_QUEUE_PROP_PTR64 |
				 AMD_QUEUE_PROP_PROFILING;
	q->q->queue_inactive_signal = sd_ptr(q->inactive);
	q->a = (struct kfd_ioc_create_queue){
		.ring_base = sd_ptr(q->ring),
		.wptr_addr = sd_ptr(&q->q->write_dispatch_id),
		.rptr_addr = sd_ptr(&q->q->read_dispatch_id),
		.ring_size = packets * 64,
		.gpu_id = s->gpu,
		.type = KFD_QUEUE_COMPUTE_AQL,
		.percentage = 100,
		.priority = KFD_QUEUE_PRIORITY_NORMAL,
		.eop_addr = sd_ptr(q->eop.p),
		.eop_size = KFD_EOP_BYTES,
		.cwsr_addr = sd_ptr(q->cwsr.p),
		.cwsr_size = c.cwsr_bytes,
		.ctl_stack_size = c.ctl_stack_bytes,
	};
}

static inline int sd_queue_create(struct sd *s, struct sd_queue *q)
{
	int err = 0, ret = sd_ioctl(s, KFD_IOC_CREATE_QUEUE, &q->a);

	if (ret)
		return ret;
	q->doorbells = s->d->mmap(s->d, NULL, KFD_DOORBELL_SLICE_BYTES,
				  PROT_READ | PROT_WRITE, MAP_SHARED, s->kfd,
				  q->a.doorbell_offset & ~0x1fffull, &err);
	if (q->doorbells == MAP_FAILED)
		return -err;
	q->doorbell = (void *)((uint8_t *)q->doorbells +
			       (q->a.doorbell_offset & 0x1fff));
	return 0;
}

static inline struct sd_queue sd_queue(struct sd *s, uint32_t packets)
{
	struct sd_queue q;
	int ret;

	sd_queue_prepare(s, &q, packets);
	ret = sd_queue_create(s, &q);
	if (ret) {
		diag("CREATE_QUEUE: %s", strerror(-ret));
		exit(1);
	}
	return q;
}

static inline int sd_queue_destroy(struct sd *s, struct sd_queue *q)
{
	struct kfd_ioc_destroy_queue a = { q->a.queue_id, 0 };
	const int ret = sd_ioctl(s, KFD_IOC_DESTROY_QUEUE, &a);

	s->d->munmap(s->d, q->doorbells, KFD_DOORBELL_SLICE_BYTES);
	return ret;
}

static inline int sd_queue_buffers_free(struct sd *s, struct sd_queue *q)
{
	struct sd_mem *m[] = { &q->queue, &q->ringm, &q->eop, &q->cwsr,
			       &q->sig };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		ret = ret ? ret : sd_free(s, m[i]);
	return ret;
}

/* Write a packet at `index` without its header, then publish the header. */
static inline void sd_put_at(struct sd_queue *q, uint64_t index,
			     const void *packet)
{
	uint8_t *at = q->ring + index % q->packets * 64;
	uint32_t head;

	memcpy(&head, packet, 4);
	memcpy(at + 4, (const uint8_t *)packet + 4, 60);
	__atomic_store_n((uint32_t *)at, head, __ATOMIC_RELEASE);
}

/* Reserve, write and ring. */
static inline uint64_t sd_submit(struct sd *s, struct sd_queue *q,
				 const void *packet)
{
	const uint64_t i = q->next++;

	__atomic_store_n(&q->q->write_dispatch_id, q->next, __ATOMIC_RELEASE);
	sd_put_at(q, i, packet);
	s->d->ring(s->d, q->doorbell, i);
	return i;
}

/* Wait up to `ms` until the value is `wanted`. */
static inline bool sd_wait_value(const struct amd_signal *s, int64_t wanted,
				 unsigned ms)
{
	const uint64_t end = time_mono_ns() + ms * 1000000ull;

	for (;;) {
		const struct timespec nap = { 0, 50000 };

		if (__atomic_load_n(&s->value, __ATOMIC_ACQUIRE) == wanted) {
			order_acquire();
			return true;
		}
		if (time_mono_ns() > end)
			return false;
		nanosleep(&nap, NULL);
	}
}

/* Does the value keep being `value` for `ms`? */
static inline bool sd_stays(const struct amd_signal *s, int64_t value,
			    unsigned ms)
{
	const uint64_t end = time_mono_ns() + ms * 1000000ull;

	while (time_mono_ns() < end) {
		const struct timespec nap = { 0, 500000 };

		if (__atomic_load_n(&s->value, __ATOMIC_ACQUIRE) != value)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static inline struct aql_barrier sd_barrier(uint16_t type,
					    const struct amd_signal *done)
{
	struct aql_barrier b = {
		.header = AQL_HEADER(type, 1, AQL_SCOPE_SYSTEM,
				     AQL_SCOPE_SYSTEM),
		.completion_signal = sd_ptr(done),
	};

	return b;
}

/* ------------------------------------------------------------- events -- */

static inline int sd_event(struct sd *s, uint32_t type, bool auto_reset,
			   uint64_t page, struct kfd_ioc_create_event *a)
{
	*a = (struct kfd_ioc_create_event){ .event_page_offset = page,
					    .event_type = type,
					    .auto_reset = auto_reset };
	return sd_ioctl(s, KFD_IOC_CREATE_EVENT, a);
}

/* Wait for one event: the ioctl's result; *result and *data as left. */
static inline int sd_wait_event(struct sd *s, struct kfd_event_data *data,
				uint32_t timeout_ms, uint32_t *result)
{
	struct kfd_ioc_wait_events w = { sd_ptr(data), 1, 0, timeout_ms, 99 };
	const int ret = sd_ioctl(s, KFD_IOC_WAIT_EVENTS, &w);

	*result = w.wait_result;
	return ret;
}

#endif
