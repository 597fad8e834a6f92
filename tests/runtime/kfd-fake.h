/*
 * kfd-fake - a driver that records what the runtime asks of the kernel, and
 * answers as a test wants.  It stands in for /dev/kfd where the order of calls
 * and the bytes of structures matter; it runs no code: its packet processor
 * "executes" a packet by completing its signal.
 *
 * One program includes it once; everything is static.
 */
#ifndef T0_TESTS_KFD_FAKE_H
#define T0_TESTS_KFD_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kfd/abi.h"
#include "kfd/kfd.h"

#define FAKE_ROOT "/sys/devices/virtual/kfd/kfd/topology/"
#define FAKE_LOG  8192
#define FAKE_GPU  51234u

enum fake_cp {		      /* what becomes of a packet */
	       FAKE_COMPLETE, /* when the doorbell rings */
	       FAKE_LAZY,     /* one packet per WAIT_EVENTS */
	       FAKE_SILENT,   /* completes, but the interrupt is lost */
	       FAKE_HANG,     /* fetched (read index moves), never completed */
	       FAKE_FAULT,    /* memory event */
	       FAKE_RESET,    /* hardware exception event */
	       FAKE_ILLEGAL,  /* error word of the queue */
	       FAKE_INACTIVE, /* queue_inactive_signal */
};

struct fake_file {
	char path[160];
	char *text;
	int err; /* instead of text */
};
struct fake_call { /* one ioctl, with the structure as it came in */
	unsigned nr;
	unsigned long request;
	union {
		uint8_t bytes[96];
		struct kfd_ioc_alloc_memory alloc;
		struct kfd_ioc_free_memory free;
		struct kfd_ioc_map_memory map;
		struct kfd_ioc_create_queue queue;
		struct kfd_ioc_create_event event;
		struct kfd_ioc_wait_events wait;
		struct kfd_ioc_acquire_vm vm;
		struct kfd_ioc_runtime_enable runtime;
	};
	uint64_t age; /* of the first event of a wait */
};
struct fake_queue {
	struct kfd_ioc_create_queue q;
	uint64_t next;	/* packet to look at */
	uint64_t limit; /* rung up to here */
	uint64_t err_payload_addr;
	bool live;
};

struct fake {
	struct kfd_driver drv; /* first */
	uint32_t major, minor;
	struct fake_file file[64];
	int n_files;
	int kfd_err, render_err; /* positive errno of open() */
	int open_again;		 /* opens that say EAGAIN first */
	uint64_t vram_left;
	/* An errno for one ioctl number, after `skip` calls, `times` times. */
	struct {
		unsigned nr;
		int err, skip, times;
	} inject;
	unsigned eintr_every;	   /* every nth ioctl says EINTR or EAGAIN */
	unsigned generation_moves; /* reads of generation_id that differ */
	bool map_no_success;
	uint64_t gpu_clock, cpu_clock; /* what CLOCK_COUNTERS says */

	enum fake_cp cp;
	uint64_t fault_va;
	struct fake_queue queue[8];
	int n_queues;
	uint64_t doorbell[1024];
	void *doorbell_map;
	uint32_t n_events, memory_event, hw_event;
	bool memory_pending, hw_pending, signal_pending;
	/* Each kernarg's first dword, in order of execution. */
	uint32_t seen[4096];
	unsigned n_seen;
	struct aql_dispatch last; /* packet executed last */

	struct fake_call log[FAKE_LOG];
	int n_log;
	struct buf trace; /* names of calls, in order */
	unsigned n_ioctls, fds_open;
	size_t mapped_bytes; /* now, the doorbells apart */
	uint64_t handles;
	int live_bos;
	bool freed_ok; /* every FREE came before its munmap */
	bool *gone;    /* set by free() */
};

static struct fake *fake_of(struct kfd_driver *d)
{
	return (struct fake *)d;
}

static void fake_file(struct fake *f, const char *path, const char *text)
{
	struct fake_file *x = NULL;

	for (int i = 0; i < f->n_files && !x; i++)
		if (!strcmp(f->file[i].path, path))
			x = &f->file[i];
	if (!x)
		x = &f->file[f->n_files++];
	snprintf(x->path, sizeof(x->path), "%s", path);
	free(x->text);
	x->text = text ? xstrdup(text) : NULL;
	x->err = 0;
}

static inline void fake_file_err(struct fake *f, const char *path, int err)
{
	fake_file(f, path, NULL);
	for (int i = 0; i < f->n_files; i++)
		if (!strcmp(f->file[i].path, path))
			f->file[i].err = err;
}

/* A GPU node of `cus` CUs at nodes/<n>/. */
static void fake_gpu(struct fake *f, int n, uint32_t gpu_id, unsigned target,
		     unsigned cus, unsigned arrays)
{
	struct buf b = { 0 };
	char path[96];

	snprintf(path, sizeof(path), "nodes/%d/gpu_id", n);
	buf_printf(&b, "%u\n", gpu_id);
	fake_file(f, path, b.data);
	buf_reset(&b);
	buf_printf(&b,
		   "cpu_cores_count 0\nsimd_count %u\nmem_banks_count 1\n"
		   "max_waves_per_simd 16\nlds_size_in_kb 64\n"
		   "wave_front_size 32\narray_count %u\n"
		   "simd_arrays_per_engine 2\ncu_per_simd_array 8\n"
		   "simd_per_cu 2\nmax_slots_scratch_cu 32\n"
		   "gfx_target_version %u\nvendor_id 4098\n"
		   "device_id 29772\nlocation_id 768\ndomain 0\n"
		   "drm_render_minor %d\nfw_version 2140\n"
		   "capability 671588992\nsdma_fw_version 20\n"
		   "unique_id 12345678901234567890\nnum_xcc 1\n"
		   "max_engine_clk_fcompute 2371\nbrand_new_key 7\n",
		   cus * 2, arrays, target, 128 + n);
	snprintf(path, sizeof(path), "nodes/%d/properties", n);
	fake_file(f, path, b.data);
	snprintf(path, sizeof(path), "nodes/%d/name", n);
	fake_file(f, path, "ip discovery\n");
	snprintf(path, sizeof(path), "nodes/%d/mem_banks/0/properties", n);
	fake_file(f, path,
		  "heap_type 1\nsize_in_bytes 25753026560\nflags 0\n"
		  "width 384\nmem_clk_max 1249\n");
	buf_fini(&b);
}

static int fake_open(struct kfd_driver *d, const char *path, int flags)
{
	struct fake *f = fake_of(d);
	const bool kfd = !strcmp(path, "/dev/kfd");

	if ((flags & (O_RDWR | O_CLOEXEC)) != (O_RDWR | O_CLOEXEC))
		return -EINVAL;
	if (f->open_again > 0) {
		f->open_again--;
		return -EAGAIN;
	}
	if (kfd ? f->kfd_err : f->render_err)
		return kfd ? -f->kfd_err : -f->render_err;
	buf_printf(&f->trace, "open(%s) ", path);
	f->fds_open++;
	return kfd ? 100 : 200;
}

static int fake_close(struct kfd_driver *d, int fd)
{
	struct fake *f = fake_of(d);

	buf_printf(&f->trace, "close(%s) ", fd == 100 ? "kfd" : "render");
	f->fds_open--;
	return 0;
}

static void *fake_mmap(struct kfd_driver *d, void *addr, size_t size, int prot,
		       int flags, int fd, uint64_t offset, int *err)
{
	struct fake *f = fake_of(d);
	void *p;

	if (fd == 100 && offset >> 62 == KFD_MMAP_TYPE_DOORBELL) {
		if (size != 8192 || offset & 8191) {
			*err = EINVAL;
			return MAP_FAILED;
		}
		buf_adds(&f->trace, "mmap(doorbell) ");
		return f->doorbell;
	}
	if (fd == 200 && offset < 0x100000000ull) {
		*err = EINVAL; /* a cookie that was never given */
		return MAP_FAILED;
	}
	p = mmap(addr, size, prot,
		 (flags & ~MAP_SHARED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		*err = errno;
	else if (!(flags & MAP_FIXED))
		f->mapped_bytes += size;
	return p;
}

static int fake_munmap(struct kfd_driver *d, void *addr, size_t size)
{
	struct fake *f = fake_of(d);

	if (addr == f->doorbell)
		return 0;
	f->mapped_bytes -= size;
	return munmap(addr, size) ? -errno : 0;
}

static int fake_read_file(struct kfd_driver *d, const char *path,
			  struct buf *out)
{
	struct fake *f = fake_of(d);
	const size_t root = strlen(FAKE_ROOT);

	if (strncmp(path, FAKE_ROOT, root))
		return -ENOENT;
	if (!strcmp(path + root, "generation_id")) {
		buf_printf(out, "%u\n", 3 + f->generation_moves);
		if (f->generation_moves)
			f->generation_moves--;
		return 0;
	}
	for (int i = 0; i < f->n_files; i++) {
		if (strcmp(f->file[i].path, path + root))
			continue;
		if (f->file[i].err)
			return -f->file[i].err;
		buf_adds(out, f->file[i].text);
		return 0;
	}
	return -ENOENT;
}

static int fake_list_dir(struct kfd_driver *d, const char *path,
			 struct buf *out)
{
	struct fake *f = fake_of(d);
	bool any = false;

	if (strcmp(path, FAKE_ROOT "nodes"))
		return -ENOENT;
	for (int i = f->n_files - 1; i >= 0; i--) { /* out of order */
		int n = 0, end = 0;
		if (sscanf(f->file[i].path, "nodes/%d/gpu_id%n", &n, &end) ==
			    1 &&
		    end) {
			buf_printf(out, "%d\n", n);
			any = true;
		}
	}
	return any ? 0 : -ENOENT;
}

/* ------------------------------------------------ packet processor ---- */

static void fake_finish(struct fake *f, struct aql_dispatch *p, bool silent)
{
	struct amd_signal *s =
		(struct amd_signal *)(uintptr_t)p->completion_signal;

	if (AQL_HEADER_TYPE(p->header) == AQL_KERNEL_DISPATCH) {
		f->last = *p;
		if (p->kernarg_address && f->n_seen < 4096)
			f->seen[f->n_seen++] =
				*(uint32_t *)(uintptr_t)p->kernarg_address;
	}
	s->start_ts = 1000;
	s->end_ts = 1250;
	__atomic_fetch_sub(&s->value, 1, __ATOMIC_ACQ_REL);
	if (!silent && s->event_mailbox_ptr) {
		*(uint64_t *)(uintptr_t)s->event_mailbox_ptr = s->event_id;
		f->signal_pending = true;
	}
}

static struct amd_queue *fake_aq(const struct fake_queue *q)
{
	return (struct amd_queue *)(uintptr_t)(q->q.rptr_addr - 0x80);
}

/* One packet; false when the queue has none or stands. */
static bool fake_step(struct fake *f, struct fake_queue *q)
{
	struct amd_queue *aq = fake_aq(q);
	struct aql_dispatch *ring =
		(struct aql_dispatch *)(uintptr_t)q->q.ring_base;
	struct aql_dispatch *p = &ring[q->next & (aq->size - 1)];

	if (!q->live || q->next >= q->limit ||
	    AQL_HEADER_TYPE(p->header) == AQL_INVALID)
		return false;
	switch (f->cp) {
	case FAKE_HANG:
		break;
	case FAKE_FAULT:
		f->memory_pending = true;
		return q->live = false;
	case FAKE_RESET:
		f->hw_pending = true;
		return q->live = false;
	case FAKE_ILLEGAL:
		*(uint64_t *)(uintptr_t)q->err_payload_addr = 1ull << 3;
		f->signal_pending = true;
		return q->live = false;
	case FAKE_INACTIVE:
		((struct amd_signal *)(uintptr_t)aq->queue_inactive_signal)
			->value = 0x40;
		f->signal_pending = true;
		return q->live = false;
	default:
		fake_finish(f, p, f->cp == FAKE_SILENT);
	}
	p->header = AQL_INVALID;
	q->next++;
	__atomic_store_n(&aq->read_dispatch_id, q->next, __ATOMIC_RELEASE);
	return true;
}

static void fake_ring(struct kfd_driver *d, volatile uint64_t *doorbell,
		      uint64_t value)
{
	struct fake *f = fake_of(d);
	const uint64_t slot = (uint64_t)(doorbell - f->doorbell);

	for (int i = 0; i < f->n_queues; i++) {
		struct fake_queue *q = &f->queue[i];
		if ((q->q.doorbell_offset & 8191) / 8 != slot)
			continue;
		q->limit = value + 1;
		while (f->cp != FAKE_LAZY && fake_step(f, q))
			;
	}
}

/* ------------------------------------------------------------ ioctls -- */

static int fake_apertures(struct fake *f, void *arg)
{
	struct kfd_ioc_get_process_apertures_new *a = arg;
	struct kfd_aperture *out = (void *)(uintptr_t)a->apertures_ptr;
	uint32_t n = 0;

	for (int i = 0; i < f->n_files; i++) {
		int node, end = 0;
		if (sscanf(f->file[i].path, "nodes/%d/gpu_id%n", &node, &end) !=
			    1 ||
		    !end || !f->file[i].text || !atoi(f->file[i].text))
			continue;
		if (out && n < a->num_of_nodes)
			out[n] = (struct kfd_aperture){
				.lds_base = 0x1000000000000,
				.scratch_base = 0x2000000000000,
				.gpuvm_base = 0x1000000,
				.gpuvm_limit = 0x7fffffffffff,
				.gpu_id = (uint32_t)atoi(f->file[i].text),
			};
		n++;
	}
	a->num_of_nodes = n;
	return 0;
}

static int fake_create_queue(struct fake *f, struct kfd_ioc_create_queue *a)
{
	struct fake_queue *q = &f->queue[f->n_queues];
	struct kfd_cwsr_header *h = (void *)(uintptr_t)a->cwsr_addr;

	a->queue_id = 70 + (uint32_t)f->n_queues;
	/* Not queue_id * 8: the runtime must take the offset. */
	a->doorbell_offset = KFD_MMAP_OFFSET(KFD_MMAP_TYPE_DOORBELL, FAKE_GPU) |
			     (0x100 + 16 * (uint64_t)f->n_queues);
	*q = (struct fake_queue){ .q = *a,
				  .live = true,
				  .err_payload_addr = h->err_payload_addr };
	f->n_queues++;
	return 0;
}

static int fake_wait(struct fake *f, struct kfd_ioc_wait_events *a)
{
	struct kfd_event_data *ev = (void *)(uintptr_t)a->events_ptr;
	bool any = f->signal_pending;

	if (f->cp == FAKE_LAZY)
		for (int i = 0; i < f->n_queues; i++)
			any |= fake_step(f, &f->queue[i]);
	for (uint32_t i = 0; i < a->num_events; i++) {
		if (ev[i].event_id == f->memory_event && f->memory_pending) {
			ev[i].memory = (struct kfd_memory_exception){
				.not_present = 1,
				.va = f->fault_va,
				.gpu_id = FAKE_GPU,
			};
			any = true;
		}
		if (ev[i].event_id == f->hw_event && f->hw_pending) {
			ev[i].hw =
				(struct kfd_hw_exception){ .memory_lost = 1,
							   .gpu_id = FAKE_GPU };
			any = true;
		}
	}
	f->signal_pending = false;
	if (!any && a->timeout) {
		struct timespec ms = { .tv_nsec = 1000000 };
		nanosleep(&ms, NULL);
	}
	a->wait_result = any ? KFD_WAIT_COMPLETE : KFD_WAIT_TIMEOUT;
	return 0;
}

static const char *fake_name(unsigned nr)
{
	switch (nr) {
	case KFD_NR_GET_VERSION:
		return "VERSION";
	case KFD_NR_GET_PROCESS_APERTURES_NEW:
		return "APERTURES";
	case KFD_NR_ACQUIRE_VM:
		return "VM";
	case KFD_NR_ALLOC_MEMORY_OF_GPU:
		return "ALLOC";
	case KFD_NR_FREE_MEMORY_OF_GPU:
		return "FREE";
	case KFD_NR_MAP_MEMORY_TO_GPU:
		return "MAP";
	case KFD_NR_UNMAP_MEMORY_FROM_GPU:
		return "UNMAP";
	case KFD_NR_CREATE_EVENT:
		return "EVENT";
	case KFD_NR_DESTROY_EVENT:
		return "-EVENT";
	case KFD_NR_CREATE_QUEUE:
		return "QUEUE";
	case KFD_NR_DESTROY_QUEUE:
		return "-QUEUE";
	case KFD_NR_RUNTIME_ENABLE:
		return "RUNTIME";
	case KFD_NR_WAIT_EVENTS:
		return "WAIT";
	case KFD_NR_GET_CLOCK_COUNTERS:
		return "CLOCKS";
	default:
		return "other";
	}
}

static int fake_answer(struct fake *f, unsigned nr, void *arg)
{
	switch (nr) {
	case KFD_NR_GET_VERSION:
		*(struct kfd_ioc_get_version *)arg =
			(struct kfd_ioc_get_version){ f->major, f->minor };
		return 0;
	case KFD_NR_GET_PROCESS_APERTURES_NEW:
		return fake_apertures(f, arg);
	case KFD_NR_ALLOC_MEMORY_OF_GPU: {
		struct kfd_ioc_alloc_memory *a = arg;
		a->handle = (uint64_t)a->gpu_id << 32 | ++f->handles;
		a->mmap_offset = 0x100000000ull + (f->handles << 12);
		f->live_bos++;
		return 0;
	}
	case KFD_NR_FREE_MEMORY_OF_GPU:
		f->live_bos--;
		return 0;
	case KFD_NR_MAP_MEMORY_TO_GPU:
	case KFD_NR_UNMAP_MEMORY_FROM_GPU: {
		struct kfd_ioc_map_memory *a = arg;
		a->n_success = f->map_no_success ? 0 : a->n_devices;
		return 0;
	}
	case KFD_NR_CREATE_EVENT: {
		struct kfd_ioc_create_event *a = arg;
		a->event_id = ++f->n_events;
		a->event_slot_index = a->event_id;
		if (a->event_type == KFD_EVENT_MEMORY)
			f->memory_event = a->event_id;
		if (a->event_type == KFD_EVENT_HW_EXCEPTION)
			f->hw_event = a->event_id;
		return 0;
	}
	case KFD_NR_CREATE_QUEUE:
		return fake_create_queue(f, arg);
	case KFD_NR_DESTROY_QUEUE:
		for (int i = 0; i < f->n_queues; i++)
			if (f->queue[i].q.queue_id == *(uint32_t *)arg)
				f->queue[i].live = false;
		return 0;
	case KFD_NR_WAIT_EVENTS:
		return fake_wait(f, arg);
	case KFD_NR_AVAILABLE_MEMORY:
		((struct kfd_ioc_available_memory *)arg)->available =
			f->vram_left;
		return 0;
	case KFD_NR_GET_CLOCK_COUNTERS:
		*(struct kfd_ioc_get_clock_counters *)arg =
			(struct kfd_ioc_get_clock_counters){
				.gpu_clock = f->gpu_clock,
				.cpu_clock = f->cpu_clock,
			};
		return 0;
	case KFD_NR_ACQUIRE_VM:
	case KFD_NR_RUNTIME_ENABLE:
	case KFD_NR_DESTROY_EVENT:
		return 0;
	default:
		return -ENOTTY;
	}
}

static int fake_ioctl(struct kfd_driver *d, int fd, unsigned long request,
		      void *arg)
{
	struct fake *f = fake_of(d);
	const unsigned nr = KFD_REQUEST_NR(request);

	if (fd != 100)
		return -EBADF;
	f->n_ioctls++;
	if (f->eintr_every && f->n_ioctls % f->eintr_every)
		return f->n_ioctls % 2 ? -EINTR : -EAGAIN;
	if (f->inject.nr == nr && f->inject.times) {
		if (f->inject.skip) {
			f->inject.skip--;
		} else {
			f->inject.times--;
			return -f->inject.err;
		}
	}
	if (f->n_log < FAKE_LOG) {
		struct fake_call *c = &f->log[f->n_log++];
		size_t size = KFD_REQUEST_SIZE(request);
		*c = (struct fake_call){ .nr = nr, .request = request };
		memcpy(c->bytes, arg, size < 96 ? size : 96);
		if (nr == KFD_NR_WAIT_EVENTS)
			c->age = ((struct kfd_event_data *)(uintptr_t)
					  c->wait.events_ptr)
					 ->last_event_age;
	}
	if (nr != KFD_NR_WAIT_EVENTS)
		buf_printf(&f->trace, "%s ", fake_name(nr));
	return fake_answer(f, nr, arg);
}

static void fake_drop(struct kfd_driver *d)
{
	struct fake *f = fake_of(d);

	for (int i = 0; i < f->n_files; i++)
		free(f->file[i].text);
	buf_fini(&f->trace);
	if (f->gone)
		*f->gone = true;
	free(f);
}

/* One CPU node and one 7900 XTX, KFD 1.17. */
static struct fake *fake_new(void)
{
	struct fake *f = xcalloc(1, sizeof(*f));

	f->drv = (struct kfd_driver){ .name = "kfd",
				      .origin = "hardware",
				      .open = fake_open,
				      .close = fake_close,
				      .ioctl = fake_ioctl,
				      .mmap = fake_mmap,
				      .munmap = fake_munmap,
				      .read_file = fake_read_file,
				      .list_dir = fake_list_dir,
				      .ring = fake_ring,
				      .free = fake_drop };
	f->major = 1;
	f->minor = 17;
	f->vram_left = 1000000;
	f->gpu_clock = 4711;
	fake_file(f, "nodes/0/gpu_id", "0\n");
	fake_file(f, "nodes/0/properties", "cpu_cores_count 16\n");
	fake_gpu(f, 1, FAKE_GPU, 110000, 96, 12);
	return f;
}

/* The nth recorded call of that number, or NULL. */
static inline struct fake_call *fake_call(struct fake *f, unsigned nr, int n)
{
	for (int i = 0; i < f->n_log; i++)
		if (f->log[i].nr == nr && n-- == 0)
			return &f->log[i];
	return NULL;
}

static inline int fake_count(const struct fake *f, unsigned nr)
{
	int n = 0;

	for (int i = 0; i < f->n_log; i++)
		n += f->log[i].nr == nr;
	return n;
}

#endif
