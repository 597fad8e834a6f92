/*
 * The machine: handles of /dev/kfd and the render node, the table of ioctls,
 * and those that need no other part of the device.
 *
 * As in the kernel, an ioctl is chosen by its number alone; the program's
 * structure may be shorter or longer than ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kfd/soft/dev.h"

static const char *const node_paths[] = {
	[SOFT_NODE_KFD] = "/dev/kfd",
	[SOFT_NODE_RENDER] = "/dev/dri/renderD128",
	[SOFT_NODE_CARD] = "/dev/dri/card0",
};

static struct soft_dev *dev_of(struct kfd_driver *d)
{
	return (struct soft_dev *)d;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t soft_gpu_clock(void)
{
	return clock_ns(CLOCK_MONOTONIC_RAW) /
	       (1000000000u / KFD_GPU_CLOCK_HZ);
}

int soft_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(t, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* ------------------------------------------------------------ handles -- */

static struct soft_file *file_by_fd(struct soft_dev *d, int fd)
{
	for (size_t i = 0; fd >= 0 && i < d->n_files; i++)
		if (d->file[i].fd == fd)
			return &d->file[i];
	return NULL;
}

static struct soft_file *file_slot(struct soft_dev *d)
{
	for (size_t i = 0; i < d->n_files; i++)
		if (d->file[i].fd < 0)
			return &d->file[i];
	d->file = xrealloc(d->file, (d->n_files + 1) * sizeof(*d->file));
	return &d->file[d->n_files++];
}

static int soft_open(struct kfd_driver *drv, const char *path, int flags)
{
	struct soft_dev *d = dev_of(drv);
	struct soft_file *f;
	unsigned node = 0;
	int fd;

	(void)flags; /* O_RDWR | O_CLOEXEC is the only sensible choice */
	while (node < ARRAY_SIZE(node_paths) && strcmp(path, node_paths[node]))
		node++;
	if (node == ARRAY_SIZE(node_paths))
		return -ENOENT;
	if (node == SOFT_NODE_KFD && d->o.open_errno)
		return -d->o.open_errno;
	if ((fd = soft_inject_open(d, path)))
		return fd;
	/* A real descriptor: its number collides with no other file. */
	fd = fcntl(d->memfd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	pthread_mutex_lock(&d->lock);
	f = file_slot(d);
	*f = (struct soft_file){ fd, (enum soft_node)node, getpid(),
				 ++d->next_file_id };
	d->kfd_opens += node == SOFT_NODE_KFD && f->pid == d->pid;
	pthread_mutex_unlock(&d->lock);
	return fd;
}

/* What the kernel does when the process lets go of /dev/kfd. */
static void process_end(struct soft_dev *d)
{
	soft_queues_end(d);
	soft_events_end(d);
	pthread_mutex_lock(&d->lock);
	soft_memory_end(d);
	d->vm_file = 0;
	__atomic_store_n(&d->runtime_enabled, 0, __ATOMIC_RELAXED);
	d->trap_tba = d->trap_tma = 0;
	__atomic_store_n(&d->evicted, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&d->hung, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->lock);
}

static int soft_close(struct kfd_driver *drv, int fd)
{
	struct soft_dev *d = dev_of(drv);
	struct soft_file *f;
	bool last = false;

	pthread_mutex_lock(&d->lock);
	f = file_by_fd(d, fd);
	if (f) {
		if (f->node == SOFT_NODE_KFD && f->pid == d->pid &&
		    getpid() == d->pid)
			last = --d->kfd_opens == 0;
		f->fd = -1;
	}
	pthread_mutex_unlock(&d->lock);
	if (!f)
		return -EBADF;
	if (last) {
		soft_inject_closing(d);
		process_end(d);
	}
	close(fd);
	return 0;
}

/* ---------------------------------------------- ioctls without a part -- */

static int check_gpu(uint32_t gpu_id)
{
	return gpu_id == SOFT_GPU_ID ? 0 : -EINVAL;
}

static int ioc_version(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_version *a = arg;

	a->major = KFD_VERSION_MAJOR;
	a->minor = d->o.kfd_minor;
	return 0;
}

static int ioc_memory_policy(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_set_memory_policy *a = arg;

	(void)d; /* no effect since gfx9 */
	if (a->default_policy > 1 || a->alternate_policy > 1)
		return -EINVAL;
	return check_gpu(a->gpu_id);
}

static int ioc_clocks(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_clock_counters *a = arg;

	(void)d;
	/* As in the kernel an unknown GPU only leaves its clock at 0. */
	a->gpu_clock = check_gpu(a->gpu_id) ? 0 : soft_gpu_clock();
	a->cpu_clock = clock_ns(CLOCK_MONOTONIC_RAW);
	a->system_clock = clock_ns(CLOCK_BOOTTIME);
	a->system_freq = 1000000000u;
	return 0;
}

static struct kfd_aperture aperture(void)
{
	return (struct kfd_aperture){
		.lds_base = SOFT_LDS_BASE,
		.lds_limit = SOFT_LDS_BASE | 0xffffffff,
		.scratch_base = SOFT_SCRATCH_BASE,
		.scratch_limit = SOFT_SCRATCH_BASE | 0xffffffff,
		.gpuvm_base = SOFT_GPUVM_BASE,
		.gpuvm_limit = SOFT_GPUVM_LIMIT,
		.gpu_id = SOFT_GPU_ID,
	};
}

/* The processor's graphics have their own, where nothing can be made. */
static struct kfd_aperture igpu_aperture(void)
{
	struct kfd_aperture a = aperture();

	a.gpu_id = SOFT_IGPU_ID;
	return a;
}

static int ioc_apertures(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_process_apertures *a = arg;

	a->node[0] = aperture();
	a->node[1] = igpu_aperture();
	a->num_of_nodes = d->o.igpu_first ? 2 : 1;
	return 0;
}

static int ioc_apertures_new(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_process_apertures_new *a = arg;
	struct kfd_aperture *out = (void *)(uintptr_t)a->apertures_ptr;

	if (a->num_of_nodes && !out)
		return -EFAULT;
	if (a->num_of_nodes)
		out[0] = aperture();
	if (a->num_of_nodes > 1 && d->o.igpu_first)
		out[1] = igpu_aperture();
	a->num_of_nodes = d->o.igpu_first ? 2 : 1;
	return 0;
}

static int ioc_acquire_vm(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_acquire_vm *a = arg;
	const struct soft_file *f = file_by_fd(d, (int)a->drm_fd);

	if (!f || f->node == SOFT_NODE_KFD || check_gpu(a->gpu_id))
		return -EINVAL;
	if (d->vm_file)
		return d->vm_file == f->id ? 0 : -EBUSY;
	d->vm_file = f->id;
	return 0;
}

static int ioc_scratch_va(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_set_scratch_backing_va *a = arg;

	(void)d; /* no effect with the hardware scheduler */
	return check_gpu(a->gpu_id);
}

static int ioc_tile_config(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_tile_config *a = arg;

	(void)d;
	if (check_gpu(a->gpu_id))
		return -EINVAL;
	a->gb_addr_config = KFD_GFX1100_GB_ADDR_CONFIG;
	a->num_tile_configs = 0;
	a->num_macro_tile_configs = 0;
	return 0;
}

static int ioc_trap_handler(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_set_trap_handler *a = arg;

	if (check_gpu(a->gpu_id))
		return -EINVAL;
	if (!d->vm_file)
		return -ESRCH;
	d->trap_tba = a->tba_addr;
	d->trap_tma = a->tma_addr;
	return 0;
}

static int ioc_xnack(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_set_xnack_mode *a = arg;

	(void)d;
	if (a->xnack_enabled > 0)
		return -EPERM; /* gfx11 cannot retry faults */
	a->xnack_enabled = 0;
	return 0;
}

static int ioc_runtime_enable(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_runtime_enable *a = arg;

	a->capabilities_mask = 0;
	if (!(a->mode_mask & KFD_RUNTIME_ENABLE)) {
		__atomic_store_n(&d->runtime_enabled, 0, __ATOMIC_RELAXED);
		return 0;
	}
	if (d->runtime_enabled)
		return -EBUSY;
	if (d->n_queues)
		return -EEXIST;
	__atomic_store_n(&d->runtime_enabled, 1, __ATOMIC_RELAXED);
	return 0;
}

/* ----------------------------------------------------------- dispatch -- */

struct ioc {
	unsigned size; /* of the kernel's structure, bytes */
	unsigned dir;  /* KFD_DIR_* */
	uint32_t since_minor;
	bool unlocked; /* blocks, or locks by itself */
	int (*fn)(struct soft_dev *d, void *arg);
};

#define IOC(request, since, fn) \
	[KFD_REQUEST_NR(request)] = { KFD_REQUEST_SIZE(request), \
				      (unsigned)((request) >> 30), since, \
				      false, fn }
#define IOC_UNLOCKED(request, since, fn) \
	[KFD_REQUEST_NR(request)] = { KFD_REQUEST_SIZE(request), \
				      (unsigned)((request) >> 30), since, \
				      true, fn }

static const struct ioc iocs[] = {
	IOC(KFD_IOC_GET_VERSION, 0, ioc_version),
	IOC(KFD_IOC_CREATE_QUEUE, 0, soft_ioc_create_queue),
	IOC_UNLOCKED(KFD_IOC_DESTROY_QUEUE, 0, soft_ioc_destroy_queue),
	IOC(KFD_IOC_SET_MEMORY_POLICY, 0, ioc_memory_policy),
	IOC_UNLOCKED(KFD_IOC_GET_CLOCK_COUNTERS, 0, ioc_clocks),
	IOC(KFD_IOC_GET_PROCESS_APERTURES, 0, ioc_apertures),
	IOC(KFD_IOC_UPDATE_QUEUE, 0, soft_ioc_update_queue),
	IOC(KFD_IOC_CREATE_EVENT, 0, soft_ioc_create_event),
	IOC_UNLOCKED(KFD_IOC_DESTROY_EVENT, 0, soft_ioc_destroy_event),
	IOC_UNLOCKED(KFD_IOC_SET_EVENT, 0, soft_ioc_set_event),
	IOC_UNLOCKED(KFD_IOC_RESET_EVENT, 0, soft_ioc_reset_event),
	IOC_UNLOCKED(KFD_IOC_WAIT_EVENTS, 0, soft_ioc_wait_events),
	IOC(KFD_IOC_SET_SCRATCH_BACKING_VA, 0, ioc_scratch_va),
	IOC(KFD_IOC_GET_TILE_CONFIG, 0, ioc_tile_config),
	IOC(KFD_IOC_SET_TRAP_HANDLER, 0, ioc_trap_handler),
	IOC(KFD_IOC_GET_PROCESS_APERTURES_NEW, 0, ioc_apertures_new),
	IOC(KFD_IOC_ACQUIRE_VM, 0, ioc_acquire_vm),
	IOC(KFD_IOC_ALLOC_MEMORY_OF_GPU, 0, soft_ioc_alloc),
	IOC(KFD_IOC_FREE_MEMORY_OF_GPU, 0, soft_ioc_free),
	IOC(KFD_IOC_MAP_MEMORY_TO_GPU, 0, soft_ioc_map),
	IOC(KFD_IOC_UNMAP_MEMORY_FROM_GPU, 0, soft_ioc_unmap),
	IOC(KFD_IOC_SVM(0), KFD_MINOR_SVM, soft_ioc_svm),
	IOC(KFD_IOC_SET_XNACK_MODE, 0, ioc_xnack),
	IOC(KFD_IOC_AVAILABLE_MEMORY, KFD_MINOR_AVAILABLE_MEMORY,
	    soft_ioc_available),
	IOC(KFD_IOC_RUNTIME_ENABLE, KFD_MINOR_RUNTIME_ENABLE,
	    ioc_runtime_enable),
};

/* The kernel's size of the structure: CREATE_QUEUE grew with 1.17. */
static unsigned ioc_size(const struct soft_dev *d, const struct ioc *i)
{
	if (i->fn == soft_ioc_create_queue &&
	    d->o.kfd_minor < KFD_MINOR_SDMA_ENGINE_ID)
		return KFD_CREATE_QUEUE_OLD_BYTES;
	return i->size;
}

/* The attributes of an SVM call must lie inside what was passed. */
static bool svm_fits(const struct kfd_ioc_svm *a, unsigned user_size)
{
	return user_size >= sizeof(*a) &&
	       a->nattr <= (user_size - sizeof(*a)) /
				   sizeof(struct kfd_svm_attr);
}

static int ioc_call(struct soft_dev *d, const struct ioc *i, unsigned user_size,
		    void *arg)
{
	const unsigned size = ioc_size(d, i);
	/* SVM attributes follow their structure: keep what is longer. */
	const unsigned room = user_size > i->size ? user_size : i->size;
	uint64_t small[512 / 8];
	void *k = small;
	int ret;

	if (room > sizeof(small))
		k = xmalloc(room);
	memset(k, 0, room);
	if (i->dir & KFD_DIR_W)
		memcpy(k, arg, user_size);
	if (size < i->size) /* fields that this kernel does not know */
		memset((char *)k + size, 0, room - size);
	if (!i->unlocked)
		pthread_mutex_lock(&d->lock);
	if (i->fn == soft_ioc_svm && !svm_fits(k, user_size))
		ret = -EINVAL;
	else
		ret = i->fn(d, k);
	if (!i->unlocked)
		pthread_mutex_unlock(&d->lock);
	/* Copied back after a refusal too, as the kernel does. */
	if (i->dir & KFD_DIR_R)
		memcpy(arg, k, user_size);
	if (k != small)
		free(k);
	return ret;
}

static int soft_ioctl(struct kfd_driver *drv, int fd, unsigned long request,
		      void *arg)
{
	struct soft_dev *d = dev_of(drv);
	const unsigned nr = KFD_REQUEST_NR(request);
	const struct ioc *i = &iocs[nr < ARRAY_SIZE(iocs) ? nr : 0];
	const struct soft_file *f;
	enum soft_node node = SOFT_NODE_KFD;
	bool mine = false;
	int ret;

	pthread_mutex_lock(&d->lock);
	f = file_by_fd(d, fd);
	if (f) {
		node = f->node;
		mine = f->pid == d->pid && getpid() == d->pid;
	}
	pthread_mutex_unlock(&d->lock);
	/* The state is the opener's: a forked child must open its own. */
	if (!f || (node == SOFT_NODE_KFD && !mine))
		return -EBADF;
	if (node != SOFT_NODE_KFD)
		return soft_drm_ioctl(d, node, request, arg);
	if (KFD_REQUEST_TYPE(request) != 'K' || !i->fn ||
	    d->o.kfd_minor < i->since_minor)
		return -ENOTTY;
	if (!arg)
		return -EFAULT;
	if ((ret = soft_inject_ioctl(d, nr)))
		return ret;
	ret = ioc_call(d, i, KFD_REQUEST_SIZE(request), arg);
	return soft_inject_after(d, nr, arg, ret);
}

/* --------------------------------------------------------------- mmap -- */

/* Where an mmap of /dev/kfd leads in the memory file. */
static int kfd_mmap_offset(struct soft_dev *d, uint64_t offset, uint64_t size,
			   uint64_t *out)
{
	const unsigned type = (unsigned)(offset >> KFD_MMAP_TYPE_SHIFT);
	const uint32_t gpu = offset >> KFD_MMAP_GPU_ID_SHIFT & 0xffff;

	if (type == KFD_MMAP_TYPE_DOORBELL) {
		if (gpu != SOFT_GPU_ID || size != KFD_DOORBELL_SLICE_BYTES)
			return -EINVAL;
		*out = d->doorbell_off;
	} else if (type == KFD_MMAP_TYPE_MMIO) {
		if (gpu != SOFT_GPU_ID || size != KFD_MMIO_REMAP_BYTES)
			return -EINVAL;
		*out = d->mmio_off;
	} else if (type == KFD_MMAP_TYPE_EVENTS) {
		if (!d->ev.page || d->ev.page_bo ||
		    size != KFD_EVENT_PAGE_BYTES)
			return -EINVAL;
		*out = d->ev.page_off;
	} else {
		return -EINVAL;
	}
	return 0;
}

static void *soft_mmap(struct kfd_driver *drv, void *addr, size_t size_bytes,
		       int prot, int flags, int fd, uint64_t offset,
		       int *err_no)
{
	struct soft_dev *d = dev_of(drv);
	const struct soft_file *f;
	unsigned type = 0;
	int ret = 0;
	void *p;

	pthread_mutex_lock(&d->lock);
	f = file_by_fd(d, fd);
	if (f && f->node == SOFT_NODE_KFD)
		type = (unsigned)(offset >> KFD_MMAP_TYPE_SHIFT);
	if (f && f->pid != getpid())
		ret = -EBADF;
	else if (f && f->node != SOFT_NODE_KFD)
		ret = soft_bo_mmap(d, offset, size_bytes, prot);
	else if (f)
		ret = kfd_mmap_offset(d, offset, size_bytes, &offset);
	pthread_mutex_unlock(&d->lock);
	if (f && ret >= 0)
		ret = soft_inject_mmap(d, type);
	if (ret < 0) {
		*err_no = -ret;
		return MAP_FAILED;
	}
	p = mmap(addr, size_bytes, prot, flags, f ? d->memfd : fd,
		 (off_t)offset);
	if (p == MAP_FAILED)
		*err_no = errno;
	return p;
}

static int soft_munmap(struct kfd_driver *drv, void *addr, size_t size_bytes)
{
	struct soft_dev *d = dev_of(drv);

	if (getpid() == d->pid) {
		pthread_mutex_lock(&d->lock);
		soft_host_unmapped(d, (uintptr_t)addr, size_bytes);
		pthread_mutex_unlock(&d->lock);
	}
	return munmap(addr, size_bytes) ? -errno : 0;
}

/* ---------------------------------------------------- the driver table -- */

static int soft_read_file(struct kfd_driver *drv, const char *path,
			  struct buf *out)
{
	return soft_topology_read(dev_of(drv), path, out);
}

static int soft_list_dir(struct kfd_driver *drv, const char *path,
			 struct buf *out)
{
	return soft_topology_list(dev_of(drv), path, out);
}

static void soft_ring(struct kfd_driver *drv, volatile uint64_t *doorbell,
		      uint64_t value)
{
	struct soft_dev *d = dev_of(drv);

	/* Ordered before the look at `parked` in soft_wake_all(). */
	__atomic_store_n(doorbell, value, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&d->rung, __ATOMIC_RELAXED))
		__atomic_store_n(&d->rung, 1, __ATOMIC_RELAXED);
	soft_wake_all(d);
}

static void soft_free(struct kfd_driver *drv)
{
	struct soft_dev *d = dev_of(drv);

	for (size_t i = 0; i < d->n_files; i++)
		if (d->file[i].fd >= 0)
			close(d->file[i].fd);
	/* A forked child has neither the threads nor their locks in order. */
	if (getpid() != d->pid)
		return;
	process_end(d);
	soft_inject_fini(d);
	free(d->file);
	soft_pool_free(d->pool);
	soft_wake_fini(d);
	soft_events_fini(d);
	soft_memory_fini(d);
	soft_load_fini(d);
	if (d->sites != d->watch)
		soft_watch_free(d->sites);
	soft_watch_free(d->watch);
	pthread_mutex_destroy(&d->fault_lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static const struct kfd_driver soft_driver = {
	.name = "soft",
	.origin = "emulated",
	.open = soft_open,
	.close = soft_close,
	.ioctl = soft_ioctl,
	.mmap = soft_mmap,
	.munmap = soft_munmap,
	.read_file = soft_read_file,
	.list_dir = soft_list_dir,
	.ring = soft_ring,
	.fault_text = soft_fault_text,
	.fault = soft_fault_report,
	.note = soft_watch_note,
	.free = soft_free,
};

static struct soft_options options_resolve(const struct soft_options *o)
{
	struct soft_options r = { 0 };

	if (o)
		r = *o;
	if (!r.threads) {
		const long n = sysconf(_SC_NPROCESSORS_ONLN);

		r.threads = n > 0 ? (unsigned)n : 1;
	}
	if (r.deterministic || soft_watch_wanted(&r.watch))
		r.threads = 1;
	if (!r.kfd_minor)
		r.kfd_minor = KFD_MINOR_SDMA_ENGINE_ID;
	if (!r.vram_bytes)
		r.vram_bytes = SOFT_VRAM_BYTES;
	if (!r.deadline_ns)
		r.deadline_ns = 10000000000u;
	return r;
}

struct kfd_driver *kfd_soft_new(const struct soft_options *o, struct err *e)
{
	struct soft_dev *d = xcalloc(1, sizeof(*d));

	d->driver = soft_driver;
	d->o = options_resolve(o);
	d->pid = getpid();
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->fault_lock, NULL);
	soft_load_init(d);
	soft_wake_init(d);
	soft_events_init(d);
	if (!soft_memory_init(d, e)) {
		err_wrap(e, "soft device");
		goto fail;
	}
	if (soft_watch_wanted(&d->o.watch)) {
		d->watch = soft_watch_new(d, &d->o.watch, e);
		if (!d->watch)
			goto fail;
	}
	d->pool = soft_pool_new(d->o.threads - 1);
	if (!d->pool) {
		err_set(e, ERR_NOMEM,
			"soft device: cannot start %u threads; ask for fewer "
			"or raise the process limit (ulimit -u)",
			d->o.threads);
		goto fail;
	}
	return &d->driver;
fail:
	soft_free(&d->driver);
	return NULL;
}
