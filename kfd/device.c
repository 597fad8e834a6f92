/*
 * Opening and closing: from a driver to a device that can run kernels.
 *
 * The order is the driver's demand (kfd-abi 3): version, topology, render
 * node, apertures, ACQUIRE_VM, event page and error events, RUNTIME_ENABLE
 * before the first queue.  Closing goes backwards and never stops at an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kfd/runtime.h"

#define KFD_PATH      "/dev/kfd"
#define RETRY_NS      10000000000ull /* of EINTR and EAGAIN, per ioctl */
#define OPEN_RETRY_NS 5000000000ull  /* of EAGAIN: a GPU reset is going on */

/* ------------------------------------------------------------ ioctl --- */

static const struct request {
	unsigned nr;
	const char *name;
} requests[] = {
	{ KFD_NR_GET_VERSION, "GET_VERSION" },
	{ KFD_NR_CREATE_QUEUE, "CREATE_QUEUE" },
	{ KFD_NR_DESTROY_QUEUE, "DESTROY_QUEUE" },
	{ KFD_NR_GET_CLOCK_COUNTERS, "GET_CLOCK_COUNTERS" },
	{ KFD_NR_CREATE_EVENT, "CREATE_EVENT" },
	{ KFD_NR_DESTROY_EVENT, "DESTROY_EVENT" },
	{ KFD_NR_WAIT_EVENTS, "WAIT_EVENTS" },
	{ KFD_NR_GET_PROCESS_APERTURES_NEW, "GET_PROCESS_APERTURES_NEW" },
	{ KFD_NR_ACQUIRE_VM, "ACQUIRE_VM" },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, "ALLOC_MEMORY_OF_GPU" },
	{ KFD_NR_FREE_MEMORY_OF_GPU, "FREE_MEMORY_OF_GPU" },
	{ KFD_NR_MAP_MEMORY_TO_GPU, "MAP_MEMORY_TO_GPU" },
	{ KFD_NR_UNMAP_MEMORY_FROM_GPU, "UNMAP_MEMORY_FROM_GPU" },
	{ KFD_NR_AVAILABLE_MEMORY, "AVAILABLE_MEMORY" },
	{ KFD_NR_RUNTIME_ENABLE, "RUNTIME_ENABLE" },
};

static const struct remedy {
	int sys;
	enum err_code code;
	const char *hint;
} remedies[] = {
	{ EPERM, ERR_PERM, "the system denies this process the device" },
	{ EACCES, ERR_PERM, "the system denies this process the device" },
	{ ENOMEM, ERR_NOMEM, "free memory on the device or in the host" },
	{ ENOSPC, ERR_NOMEM, "the process has used up this kind of object" },
	{ EINVAL, ERR_IO,
	  "the driver refuses these values; report it with "
	  "the output of `t0-device info`" },
	{ ENOTTY, ERR_UNSUPPORTED, "this kernel driver is too old" },
	{ EBADF, ERR_USAGE,
	  "the file belongs to another process; open the "
	  "device after fork(), not before" },
	{ EBUSY, ERR_BUSY, "something of this process still uses it" },
	{ EEXIST, ERR_BUSY, "this process has used the device before" },
	{ ENODEV, ERR_DEVICE, "the device is gone; see the kernel log" },
	{ EIO, ERR_DEVICE,
	  "the device hangs or was reset; see the kernel "
	  "log" },
	{ ETIME, ERR_DEVICE, "the device hangs; see the kernel log" },
	{ EINTR, ERR_TIMEOUT, "interrupted again and again for 10 s" },
	{ EAGAIN, ERR_TIMEOUT, "the driver was not ready for 10 s" },
};

int kfd_dev_ioctl(struct kfd_dev *dev, unsigned long request, void *arg)
{
	uint64_t until = 0;

	for (unsigned n = 0;; n++) {
		int r = dev->d->ioctl(dev->d, dev->kfd_fd, request, arg);
		if (r != -EINTR && r != -EAGAIN)
			return r < 0 ? r : 0;
		if (!until)
			until = time_mono_ns() + RETRY_NS;
		else if (time_mono_ns() > until)
			return r;
		if (n > 16) {
			struct timespec ms = { .tv_nsec = 1000000 };
			nanosleep(&ms, NULL);
		}
	}
}

bool kfd_dev_ioctl_err(struct kfd_dev *dev, unsigned long request,
		       int neg_errno, struct err *e, const char *fmt, ...)
{
	const struct remedy *why = NULL;
	const char *name = "ioctl";
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].nr == KFD_REQUEST_NR(request))
			name = requests[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].sys == -neg_errno)
			why = &remedies[i];
	err_set_at(e, why ? why->code : ERR_IO, 0, __FILE__, __LINE__,
		   "%s: %s (%s, KFD 1.%u): %s; %s", KFD_PATH, name, what,
		   dev->info.kfd_minor, strerror(-neg_errno),
		   why ? why->hint : "see the kernel log");
	if (e)
		e->sys_errno = -neg_errno;
	return false;
}

/* ------------------------------------------------------------- open --- */

/* "root:render" of a file, from the host; the usual owner when unknown. */
static void owner_text(const char *path, char *group, size_t size)
{
	struct stat st;
	struct group gr, *found = NULL;
	char scratch[4096];

	snprintf(group, size, "render");
	if (stat(path, &st))
		return;
	if (!getgrgid_r(st.st_gid, &gr, scratch, sizeof(scratch), &found) &&
	    found)
		snprintf(group, size, "%s", found->gr_name);
	else
		snprintf(group, size, "%u", st.st_gid);
}

static bool open_error(const char *path, int err, struct err *e)
{
	char group[64];

	switch (err) {
	case EACCES:
	case EPERM:
		owner_text(path, group, sizeof(group));
		return err_sys(e, ERR_PERM, err,
			       "%s belongs to group %s: add your user to it "
			       "(sudo usermod -aG %s $USER, then log in again) "
			       "or, in a container, pass the device in",
			       path, group, group);
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return err_sys(e, ERR_NODEV, err,
			       "%s: the amdgpu kernel driver is not loaded or "
			       "found no GPU (T0_DEVICE=soft needs none)",
			       path);
	case EAGAIN:
		return err_sys(e, ERR_BUSY, err,
			       "%s: still locked after 5 s: a GPU reset is in "
			       "progress; see the kernel log",
			       path);
	default:
		return err_sys(e, ERR_IO, err, "%s: cannot be opened", path);
	}
}

/* A handle, or -1 and *e. */
int kfd_file_open(struct kfd_driver *d, const char *path, struct err *e)
{
	uint64_t until = time_mono_ns() + OPEN_RETRY_NS;
	int fd;

	while ((fd = d->open(d, path, O_RDWR | O_CLOEXEC)) == -EINTR ||
	       fd == -EAGAIN) {
		if (time_mono_ns() > until)
			break;
		struct timespec pause = { .tv_nsec = 10000000 };
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		return fd;
	open_error(path, -fd, e);
	return -1;
}

static bool check_version(struct kfd_dev *dev, struct err *e)
{
	struct kfd_ioc_get_version v = { 0 };
	int r = kfd_dev_ioctl(dev, KFD_IOC_GET_VERSION, &v);

	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_GET_VERSION, r, e,
					 "asking for the version");
	dev->info.kfd_major = v.major;
	dev->info.kfd_minor = v.minor;
	if (v.major != KFD_VERSION_MAJOR)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s speaks version %u.%u, this program 1.x; a "
			       "newer T0 is needed",
			       KFD_PATH, v.major, v.minor);
	return true;
}

bool kfd_node_is_gfx11(const struct kfd_node *n)
{
	return n->gpu_id && n->gfx_target / 10000 == 11;
}

/*
 * The GPU numbered `gpu` (-1: the first gfx11 one).  Hidden nodes have no
 * number: what they are cannot be read.
 */
static const struct kfd_node *choose(const struct kfd_topology *t, int gpu,
				     int *number, struct err *e)
{
	struct buf seen = { 0 };
	const struct kfd_node *found = NULL;
	int n = 0, hidden = 0;

	for (int i = 0; i < t->n_nodes && !found; i++) {
		const struct kfd_node *node = &t->node[i];
		char gfx[16];

		hidden += node->hidden;
		if (!node->gpu_id)
			continue;
		kfd_gfx_name(node->gfx_target, gfx);
		buf_printf(&seen, "%skfd:%d is %s", n ? ", " : "", n, gfx);
		if (gpu < 0 ? kfd_node_is_gfx11(node) : n == gpu) {
			found = node;
			*number = n;
		}
		n++;
	}
	if (!found)
		err_set(e, ERR_NODEV,
			"no %s among the %d GPUs of %s (%s%s); "
			"see t0-device list",
			gpu < 0 ? "gfx11 GPU" : "GPU of that number", n,
			KFD_PATH, n ? seen.data : "none",
			hidden ?
				"; some nodes are hidden by the device cgroup" :
				"");
	else if (!kfd_node_is_gfx11(found))
		err_set(e, ERR_NODEV, "%s; wanted gfx11", seen.data);
	buf_fini(&seen);
	return found && kfd_node_is_gfx11(found) ? found : NULL;
}

/* Sizes below come from these: a zero would make a queue that hangs. */
bool kfd_node_check(const struct kfd_node *n, struct err *e)
{
	const struct {
		const char *name;
		uint64_t v;
	} need[] = {
		{ "simd_count", n->simd_count },
		{ "simd_per_cu", n->simd_per_cu },
		{ "array_count", n->array_count },
		{ "simd_arrays_per_engine", n->arrays_per_engine },
		{ "max_waves_per_simd", n->max_waves_per_simd },
		{ "lds_size_in_kb", n->lds_bytes },
	};

	for (size_t i = 0; i < ARRAY_SIZE(need); i++)
		if (!need[i].v)
			return err_set(e, ERR_INPUT,
				       "topology node %d: %s is missing or 0; "
				       "queue sizes depend on it",
				       n->index, need[i].name);
	if (n->render_minor < 0)
		return err_set(e, ERR_NODEV,
			       "topology node %d has no drm_render_minor: no "
			       "render node to make its memory with",
			       n->index);
	return true;
}

static void fill_info(struct kfd_info *info, const struct kfd_node *n)
{
	const bool big = n->gfx_target == 110000 || n->gfx_target == 110001 ||
			 n->gfx_target == 110501;

	info->node = *n;
	kfd_board_name(n, info->name);
	kfd_gfx_name(n->gfx_target, info->gfx);
	kfd_pci_name(n, info->pci);
	/* kfd-abi 9: 1536 registers in steps of 24, or 1024 in steps of 16. */
	info->vgprs_per_simd = big ? 1536 : 1024;
	info->vgpr_granule = big ? 24 : 16;
	info->tick_hz = KFD_GPU_CLOCK_HZ;
}

static bool choose_gpu(struct kfd_dev *dev, int gpu, struct err *e)
{
	struct kfd_topology t;
	int number = 0;

	if (!kfd_topology_read(dev->d, &t, e))
		return false;
	const struct kfd_node *n = choose(&t, gpu, &number, e);
	bool ok = n && kfd_node_check(n, e);
	if (ok) {
		fill_info(&dev->info, n);
		dev->gpu_id = n->gpu_id;
		if (!strcmp(dev->d->name, "soft"))
			snprintf(dev->info.spec, sizeof(dev->info.spec),
				 "soft");
		else
			snprintf(dev->info.spec, sizeof(dev->info.spec),
				 "%s:%d", dev->d->name, number);
	}
	kfd_topology_fini(&t);
	return ok;
}

static bool open_render(struct kfd_dev *dev, struct err *e)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%d",
		 dev->info.node.render_minor);
	dev->render_fd = kfd_file_open(dev->d, path, e);
	return dev->render_fd >= 0;
}

static bool read_apertures(struct kfd_dev *dev, struct err *e)
{
	struct kfd_ioc_get_process_apertures_new a = { 0 };
	struct kfd_aperture *list;
	bool found = false;
	const unsigned long req = KFD_IOC_GET_PROCESS_APERTURES_NEW;
	int r = kfd_dev_ioctl(dev, req, &a);

	if (r)
		return kfd_dev_ioctl_err(dev, req, r, e,
					 "asking for the count");
	if (a.num_of_nodes == 0 || a.num_of_nodes > 4096)
		return err_set(e, ERR_NODEV,
			       "%s gives %u GPUs to this "
			       "process, the topology at least one",
			       KFD_PATH, a.num_of_nodes);
	list = xcalloc(a.num_of_nodes, sizeof(*list));
	a.apertures_ptr = (uintptr_t)list;
	uint32_t cap = a.num_of_nodes;
	r = kfd_dev_ioctl(dev, req, &a);
	for (uint32_t i = 0; !r && i < a.num_of_nodes && i < cap; i++) {
		if (list[i].gpu_id != dev->gpu_id)
			continue;
		dev->info.lds_base = list[i].lds_base;
		dev->info.scratch_base = list[i].scratch_base;
		dev->info.gpuvm_base = list[i].gpuvm_base;
		dev->info.gpuvm_limit = list[i].gpuvm_limit;
		found = true;
	}
	free(list);
	if (r)
		return kfd_dev_ioctl_err(dev, req, r, e, "%u GPUs", cap);
	if (!found)
		return err_set(e, ERR_NODEV,
			       "%s has no address space for GPU "
			       "id %u of the topology; was it unplugged?",
			       KFD_PATH, dev->gpu_id);
	return true;
}

static bool acquire_vm(struct kfd_dev *dev, struct err *e)
{
	struct kfd_ioc_acquire_vm a = { .drm_fd = (uint32_t)dev->render_fd,
					.gpu_id = dev->gpu_id };
	int r = kfd_dev_ioctl(dev, KFD_IOC_ACQUIRE_VM, &a);

	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_ACQUIRE_VM, r, e,
					 "render node %d, GPU id %u",
					 dev->info.node.render_minor,
					 dev->gpu_id);
	return true;
}

/*
 * Wave exceptions go to the process's error words only if asked for before
 * the first queue.  Older kernels lack it: queue_inactive_signal remains.
 */
static bool enable_runtime(struct kfd_dev *dev, struct err *e)
{
	struct kfd_ioc_runtime_enable a = { .mode_mask = KFD_RUNTIME_ENABLE };

	if (dev->info.kfd_minor < KFD_MINOR_RUNTIME_ENABLE)
		return true;
	int r = kfd_dev_ioctl(dev, KFD_IOC_RUNTIME_ENABLE, &a);
	if (r && r != -ENOTTY)
		return kfd_dev_ioctl_err(dev, KFD_IOC_RUNTIME_ENABLE, r, e,
					 "mode 1");
	dev->info.runtime_enabled = !r;
	return true;
}

/* The HDP flush register; a kernel that denies it costs nothing but that. */
static void map_mmio(struct kfd_dev *dev)
{
	struct mem *m = kfd_mem_new(dev, MEM_FLAGS_MMIO, KFD_MMIO_REMAP_BYTES,
				    "flush register", NULL);

	dev->mmio = m;
	dev->hdp = m ? m->pub.cpu : NULL;
	dev->info.hdp_flush = m != NULL;
}

static bool mark_process(struct kfd_dev *dev, struct err *e)
{
	void *p = mmap(NULL, KFD_PAGE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return err_sys(e, ERR_NOMEM, errno, "a page of memory");
	/* Where wiping is not supported a fork shows as EBADF, later. */
	(void)madvise(p, KFD_PAGE_BYTES, MADV_WIPEONFORK);
	dev->alive = p;
	*dev->alive = 1;
	return true;
}

bool kfd_open_driver(struct kfd_dev **out, struct kfd_driver *d, int gpu,
		     const char *why, struct err *e)
{
	struct kfd_dev *dev = xcalloc(1, sizeof(*dev));

	dev->d = d;
	dev->kfd_fd = dev->render_fd = -1;
	pthread_mutex_init(&dev->lock, NULL);
	dev->info.driver = d->name;
	dev->info.origin = d->origin;
	bool ok = mark_process(dev, e) &&
		  (dev->kfd_fd = kfd_file_open(d, KFD_PATH, e)) >= 0 &&
		  check_version(dev, e) && choose_gpu(dev, gpu, e) &&
		  open_render(dev, e) && read_apertures(dev, e) &&
		  acquire_vm(dev, e) && kfd_events_init(dev, e) &&
		  enable_runtime(dev, e);
	if (!ok) {
		kfd_close(dev);
		*out = NULL;
		return false;
	}
	map_mmio(dev);
	snprintf(dev->info.why, sizeof(dev->info.why),
		 "%s, %s, %u CUs, %s (%s)", dev->info.spec, dev->info.name,
		 dev->info.node.cu_count, dev->info.origin,
		 why ? why : "chosen by the caller");
	*out = dev;
	return true;
}

static bool open_soft(struct kfd_dev **dev, const char *why, struct err *e)
{
	struct kfd_driver *d = kfd_soft_new(NULL, e);

	if (!d)
		return err_wrap(e, "the gfx1100 in software");
	return kfd_open_driver(dev, d, -1, why, e);
}

/* "kfd" and "kfd:N". */
static bool parse_kfd(const char *spec, int *gpu)
{
	uint64_t n;

	*gpu = -1;
	if (!strcmp(spec, "kfd"))
		return true;
	if (strncmp(spec, "kfd:", 4) || !cli_u64(spec + 4, &n, NULL) ||
	    n > 1000)
		return false;
	*gpu = (int)n;
	return true;
}

bool kfd_open(struct kfd_dev **dev, const char *spec, struct err *e)
{
	struct err no = { 0 };
	char why[448];
	int gpu;

	*dev = NULL;
	if (spec && !strcmp(spec, "soft"))
		return open_soft(dev, "asked for", e);
	if (spec && *spec) {
		if (!parse_kfd(spec, &gpu))
			return err_set(e, ERR_USAGE,
				       "device \"%s\": wanted soft, kfd or "
				       "kfd:N (see t0-device list)",
				       spec);
		return kfd_open_driver(dev, kfd_linux_new(), gpu, "asked for",
				       e) ||
		       err_wrap(e, "device %s", spec);
	}
	if (kfd_open_driver(dev, kfd_linux_new(), -1, "the first gfx11 GPU",
			    &no))
		return true;
	snprintf(why, sizeof(why), "no usable gfx11 GPU: %.400s", no.msg);
	return open_soft(dev, why, e);
}

/* ------------------------------------------------------------ close --- */

static void disable_runtime(struct kfd_dev *dev)
{
	struct kfd_ioc_runtime_enable a = { 0 };

	if (dev->info.runtime_enabled)
		(void)kfd_dev_ioctl(dev, KFD_IOC_RUNTIME_ENABLE, &a);
}

void kfd_close(struct kfd_dev *dev)
{
	if (!dev)
		return;
	/*
	 * In a child of fork() everything here belongs to the parent, and the
	 * driver's threads do not exist: leave it all alone.
	 */
	if (dev->alive && !*dev->alive)
		return;
	while (dev->queues)
		kfd_queue_free(dev->queues, NULL);
	kfd_codes_fini(dev);
	kfd_signals_fini(dev);
	kfd_events_fini(dev);
	if (dev->kfd_fd >= 0)
		disable_runtime(dev);
	while (dev->live)
		kfd_mem_delete(dev, dev->live, NULL);
	kfd_mem_forget(dev);
	if (dev->doorbells)
		dev->d->munmap(dev->d, dev->doorbells,
			       KFD_DOORBELL_SLICE_BYTES);
	if (dev->render_fd >= 0)
		dev->d->close(dev->d, dev->render_fd);
	if (dev->kfd_fd >= 0)
		dev->d->close(dev->d, dev->kfd_fd);
	dev->d->free(dev->d);
	if (dev->alive)
		munmap((void *)(uintptr_t)dev->alive, KFD_PAGE_BYTES);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

/* ---------------------------------------------------------- queries --- */

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

bool kfd_dev_lose(struct kfd_dev *dev, const struct err *why, struct err *e)
{
	pthread_mutex_lock(&dev->lock);
	if (!dev->lost) {
		dev->lost_err = *why;
		__atomic_store_n(&dev->lost, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&dev->lock);
	if (e)
		*e = dev->lost_err;
	return false;
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
				 .mono_raw_ns = a.cpu_clock,
				 .boot_ns = a.system_clock };
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
