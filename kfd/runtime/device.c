/*
 * kfd/runtime/device.c - an open device: is it usable, and what its driver
 * says.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kfd/runtime/runtime.h"

const struct kfd_info *kfd_info(const struct kfd_dev *dev)
{
	return &dev->info;
}

bool kfd_lost(struct kfd_dev *dev, struct err *e)
{
	if (!__atomic_load_n(&dev->lost, __ATOMIC_ACQUIRE))
		return false;
	if (e)
		*e = dev->lost_err;
	return true;
}

bool kfd_dev_lose(struct kfd_dev *dev, const struct err *why,
		  const struct kfd_fault *f, struct err *e)
{
	pthread_mutex_lock(&dev->lock);
	if (!dev->lost) {
		dev->lost_err = *why;
		dev->lost_fault = *f;
		__atomic_store_n(&dev->lost, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&dev->lock);
	if (e)
		*e = dev->lost_err;
	return false;
}

void kfd_set_late(struct kfd_queue *q, bool late)
{
	if (q->late != late)
		__atomic_add_fetch(&q->dev->root->n_late, late ? 1 : -1u,
				   __ATOMIC_ACQ_REL);
	q->late = late;
}

bool kfd_is_late(struct kfd_dev *dev)
{
	return __atomic_load_n(&dev->root->n_late, __ATOMIC_ACQUIRE);
}

bool kfd_dev_usable(struct kfd_dev *dev, struct err *e)
{
	if (!*dev->alive)
		return err_set(
			e, ERR_USAGE,
			"the device was opened by the process that forked "
			"this one; open it again in this process");
	if (kfd_lost(dev, e)) {
		err_wrap(e, "the device was lost before");
		return false;
	}
	return true;
}

bool kfd_clock_read(struct kfd_dev *dev, struct kfd_clock *c, struct err *e)
{
	struct kfd_ioc_get_clock_counters a = { .gpu_id = dev->gpu_id };
	int r;

	if (!kfd_dev_usable(dev, e))
		return false;
	r = kfd_dev_ioctl(dev, KFD_IOC_GET_CLOCK_COUNTERS, &a);
	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_GET_CLOCK_COUNTERS, r, e,
					 "GPU id %u", dev->gpu_id);
	*c = (struct kfd_clock){ .gpu_ticks = a.gpu_clock,
				 .mono_raw_ns = a.cpu_clock };
	return true;
}

bool kfd_vram_available(struct kfd_dev *dev, uint64_t *bytes, struct err *e)
{
	struct kfd_ioc_available_memory a = { .gpu_id = dev->gpu_id };
	int r;

	if (dev->info.kfd_minor < KFD_MINOR_AVAILABLE_MEMORY)
		return err_set(e, ERR_UNSUPPORTED,
			       "KFD 1.%u does not tell "
			       "free memory (1.9 does)",
			       dev->info.kfd_minor);
	r = kfd_dev_ioctl(dev, KFD_IOC_AVAILABLE_MEMORY, &a);
	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_AVAILABLE_MEMORY, r, e,
					 "GPU id %u", dev->gpu_id);
	*bytes = a.available;
	return true;
}

bool kfd_evicted(struct kfd_dev *dev, uint64_t *ms, struct err *e)
{
	struct buf path = { 0 }, text = { 0 };
	int r;

	buf_printf(&path, "/sys/class/kfd/kfd/proc/%d/stats_%u/evicted_ms",
		   (int)getpid(), dev->gpu_id);
	r = dev->d->read_file(dev->d, path.data, &text);
	text.len = strcspn(text.data ? text.data : "", "\n");
	if (text.data)
		text.data[text.len] = 0;
	if (r || !cli_u64(text.data, ms, NULL))
		r = r ? r : -EINVAL;
	if (r)
		err_sys(e, ERR_UNSUPPORTED, -r, "%s: evictions are not counted",
			path.data);
	buf_fini(&path);
	buf_fini(&text);
	return !r;
}
