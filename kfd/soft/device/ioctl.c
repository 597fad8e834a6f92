/*
 * kfd/soft/device/ioctl.c - the table of ioctls of /dev/kfd, and those that
 * need no other part of the device.
 *
 * As in the kernel, an ioctl is chosen by its number alone; the program's
 * structure may be shorter or longer than ours.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kfd/soft/device/dev.h"

/* ------------------------------------------------------------- clocks -- */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Cards do not come out of their resets at the same moment. */
uint64_t soft_gpu_clock(const struct soft_card *c)
{
	const uint64_t apart = KFD_GPU_CLOCK_HZ / 8;

	return clock_ns(CLOCK_MONOTONIC_RAW) / (1000000000u / KFD_GPU_CLOCK_HZ) +
	       c->index * apart;
}

/* ---------------------------------------------- ioctls without a part -- */

static int check_gpu(struct soft_dev *d, uint32_t gpu_id)
{
	return soft_card_by_id(d, gpu_id) ? 0 : -EINVAL;
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

	/* No effect since gfx9. */
	if (a->default_policy > 1 || a->alternate_policy > 1)
		return -EINVAL;
	return check_gpu(d, a->gpu_id);
}

static int ioc_clocks(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_clock_counters *a = arg;
	const struct soft_card *c = soft_card_by_id(d, a->gpu_id);

	/* As in the kernel an unknown GPU only leaves its clock at 0. */
	a->gpu_clock = c ? soft_gpu_clock(c) : 0;
	a->cpu_clock = clock_ns(CLOCK_MONOTONIC_RAW);
	a->system_clock = clock_ns(CLOCK_BOOTTIME);
	a->system_freq = 1000000000u;
	return 0;
}

struct kfd_aperture soft_aperture(const struct soft_card *c)
{
	return (struct kfd_aperture){
		.lds_base = SOFT_LDS_BASE,
		.lds_limit = SOFT_LDS_BASE | 0xffffffff,
		.scratch_base = SOFT_SCRATCH_BASE,
		.scratch_limit = SOFT_SCRATCH_BASE | 0xffffffff,
		.gpuvm_base = SOFT_GPUVM_BASE,
		.gpuvm_limit = SOFT_GPUVM_LIMIT,
		.gpu_id = c->gpu_id,
	};
}

/*
 * Those of all GPUs.  The processor's graphics have their own, where nothing
 * can be made.
 */
static uint32_t all_apertures(const struct soft_dev *d,
			      struct kfd_aperture out[SOFT_CARDS_MAX + 1])
{
	for (unsigned i = 0; i < d->n_cards; i++)
		out[i] = soft_aperture(&d->card[i]);
	out[d->n_cards] = out[0];
	out[d->n_cards].gpu_id = SOFT_IGPU_ID;
	return d->n_cards + d->o.igpu_first;
}

static int ioc_apertures(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_process_apertures *a = arg;
	struct kfd_aperture all[SOFT_CARDS_MAX + 1];
	uint32_t n = all_apertures(d, all);

	/* Of more GPUs this old call tells nothing. */
	if (n > ARRAY_SIZE(a->node))
		n = ARRAY_SIZE(a->node);
	memcpy(a->node, all, n * sizeof(*all));
	a->num_of_nodes = n;
	return 0;
}

static int ioc_apertures_new(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_process_apertures_new *a = arg;
	struct kfd_aperture all[SOFT_CARDS_MAX + 1];
	const uint32_t there = all_apertures(d, all);
	const uint32_t n = a->num_of_nodes < there ? a->num_of_nodes : there;

	/* Nothing asked for: how many there are; else how many were told. */
	a->num_of_nodes = n ? n : there;
	return n && !a->apertures_ptr ?
		       -EFAULT :
		       soft_copy_out(a->apertures_ptr, all, n * sizeof(*all));
}

static int ioc_acquire_vm(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_acquire_vm *a = arg;
	const struct soft_file *f = soft_file_by_fd(d, (int)a->drm_fd);
	struct soft_card *c = soft_card_by_id(d, a->gpu_id);

	if (!f || !c || f->card != c)
		return -EINVAL;
	if (c->vm_file)
		return c->vm_file == f->id ? 0 : -EBUSY;
	c->vm_file = f->id;
	return 0;
}

static int ioc_scratch_va(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_set_scratch_backing_va *a = arg;

	/* No effect with the hardware scheduler. */
	return check_gpu(d, a->gpu_id);
}

static int ioc_tile_config(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_tile_config *a = arg;
	const struct soft_card *c = soft_card_by_id(d, a->gpu_id);

	if (!c)
		return -EINVAL;
	a->gb_addr_config = c->chip->addr_config;
	a->num_tile_configs = 0;
	a->num_macro_tile_configs = 0;
	return 0;
}

static int ioc_trap_handler(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_set_trap_handler *a = arg;
	struct soft_card *c = soft_card_by_id(d, a->gpu_id);

	if (!c)
		return -EINVAL;
	if (!c->vm_file)
		return -ESRCH;
	soft_map_hold_alone(d);
	c->traps.tba = a->tba_addr;
	c->traps.tma = a->tma_addr;
	soft_map_release_alone(d);
	return 0;
}

static int ioc_xnack(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_set_xnack_mode *a = arg;

	if (a->xnack_enabled >= 0 && d->n_queues)
		return -EBUSY;
	if (a->xnack_enabled > 0)
		return -EPERM; /* gfx11 cannot retry faults */
	a->xnack_enabled = 0;
	return 0;
}

/*
 * Who may, may save and restore processes; what a process has here is inside
 * itself already, and there is nothing beside it to save.
 */
static int ioc_criu(struct soft_dev *d, void *arg)
{
	(void)d, (void)arg;
	return geteuid() ? -EACCES : -EINVAL;
}

static int ioc_deprecated(struct soft_dev *d, void *arg)
{
	(void)d, (void)arg;
	return -EPERM;
}

/* ----------------------------------------------------------- dispatch -- */

struct ioc {
	unsigned size; /* of the kernel's structure, bytes */
	unsigned dir;  /* KFD_DIR_* */
	uint32_t since_minor;
	bool unlocked; /* blocks, or takes the lock itself */
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
	IOC(KFD_IOC_SMI_EVENTS, KFD_MINOR_SMI_EVENTS, soft_ioc_smi_events),
	IOC(KFD_IOC_SVM(0), KFD_MINOR_SVM, soft_ioc_svm),
	IOC(KFD_IOC_SET_XNACK_MODE, 0, ioc_xnack),
	IOC(KFD_IOC_AVAILABLE_MEMORY, KFD_MINOR_AVAILABLE_MEMORY,
	    soft_ioc_available),
	IOC(KFD_IOC_RUNTIME_ENABLE, KFD_MINOR_RUNTIME_ENABLE,
	    soft_ioc_runtime_enable),
	IOC(KFD_IOC_SET_CU_MASK, 0, soft_ioc_set_cu_mask),
	IOC(KFD_IOC_GET_QUEUE_WAVE_STATE, 0, soft_ioc_wave_state),
	IOC(KFD_IOC_ALLOC_QUEUE_GWS, 0, soft_ioc_queue_gws),
	IOC(KFD_IOC_GET_DMABUF_INFO, 0, soft_ioc_dmabuf_info),
	IOC(KFD_IOC_IMPORT_DMABUF, 0, soft_ioc_import_dmabuf),
	IOC(KFD_IOC_EXPORT_DMABUF, KFD_MINOR_EXPORT_DMABUF,
	    soft_ioc_export_dmabuf),
	IOC(KFD_IOC_CRIU_OP, KFD_MINOR_CRIU, ioc_criu),
	IOC(KFD_IOC_DBG_TRAP, KFD_MINOR_DBG_TRAP, soft_ioc_dbg_trap),
	IOC(KFD_IOC_DBG_DEPRECATED(0), 0, ioc_deprecated),
	IOC(KFD_IOC_DBG_DEPRECATED(1), 0, ioc_deprecated),
	IOC(KFD_IOC_DBG_DEPRECATED(2), 0, ioc_deprecated),
	IOC(KFD_IOC_DBG_DEPRECATED(3), 0, ioc_deprecated),
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
	const uint64_t at = (uintptr_t)arg;
	int ret = 0;

	if (room > sizeof(small))
		k = xmalloc(room);
	memset(k, 0, room);
	if (i->dir & KFD_DIR_W)
		ret = soft_copy_in(k, at, user_size);
	if (ret)
		goto out;
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
	if (i->dir & KFD_DIR_R && soft_copy_out(at, k, user_size))
		ret = -EFAULT;
out:
	if (k != small)
		free(k);
	return ret;
}

static int call_ioctl(struct soft_dev *d, unsigned long request, void *arg)
{
	const unsigned nr = KFD_REQUEST_NR(request);
	const struct ioc *i = &iocs[nr < ARRAY_SIZE(iocs) ? nr : 0];
	struct soft_call c = { .kind = SOFT_CALL_IOCTL, .nr = nr, .arg = arg };
	int ret;

	if (KFD_REQUEST_TYPE(request) != 'K' || !i->fn ||
	    d->o.kfd_minor < i->since_minor)
		return -ENOTTY;
	if (!arg)
		return -EFAULT;
	ret = soft_hooks_call(d, &c);
	if (!ret)
		ret = ioc_call(d, i, KFD_REQUEST_SIZE(request), arg);
	if (!ret) {
		c.kind = SOFT_CALL_DONE;
		ret = soft_hooks_call(d, &c);
	}
	return ret;
}

int soft_kfd_ioctl(struct soft_dev *d, unsigned long request, void *arg)
{
	const int ret = call_ioctl(d, request, arg);

	if (ret < 0 && ret != -EINTR && ret != -EAGAIN)
		soft_explain_ioctl(d, request, arg, -ret);
	return ret;
}
