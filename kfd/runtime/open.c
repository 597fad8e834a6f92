/*
 * kfd/runtime/open.c - opening and closing: from a driver to a device that can
 * run kernels.
 *
 * The order is the driver's demand (kfd-abi 3): version, topology, render
 * node, apertures, ACQUIRE_VM, event page and error events, RUNTIME_ENABLE
 * before the first queue.  Closing is the reverse and never stops at an error.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd/runtime/runtime.h"
#include "kfd/soft/soft.h"

/* ------------------------------------------------------------- open --- */

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
	const struct isa_chip *chip = isa_chip_of_target(n->gfx_target);

	info->node = *n;
	kfd_board_name(n, info->name);
	kfd_gfx_name(n->gfx_target, info->gfx);
	kfd_pci_name(n, info->pci);
	/* As in all chips that are small, where this one is not known. */
	info->vgprs_per_simd = chip ? chip->vgprs : 1024;
	info->vgpr_granule = chip ? isa_chip_granule(chip) : 16;
	info->tick_hz = KFD_GPU_CLOCK_HZ;
}

/* "soft:gfx1151*2" behind what is there. */
static void add_cards(struct buf *spec, uint32_t gfx_target, int n)
{
	char gfx[16];

	kfd_gfx_name(gfx_target, gfx);
	buf_adds(spec, spec->len ? ",soft" : "soft");
	if (n && strcmp(gfx, SOFT_CHIP))
		buf_printf(spec, ":%s", gfx);
	if (n > 1)
		buf_printf(spec, "*%d", n);
}

/* "soft", "soft*2:1", or what else finds this GPU again. */
void kfd_spec_name(const struct kfd_driver *d, const struct kfd_topology *t,
		   int number, char out[KFD_SPEC_BYTES])
{
	struct buf spec = { 0 };
	int cards = 0, same = 0;
	uint32_t chip = 0;

	for (int i = 0; i < t->n_nodes; i++)
		if (kfd_node_is_usable(&t->node[i])) {
			if (cards && t->node[i].gfx_target != chip)
				add_cards(&spec, chip, same), same = 0;
			chip = t->node[i].gfx_target;
			cards++, same++;
		}
	add_cards(&spec, chip, same);
	if (strcmp(d->name, "soft"))
		snprintf(out, KFD_SPEC_BYTES, "%s:%d", d->name, number);
	else if (cards < 2)
		snprintf(out, KFD_SPEC_BYTES, "%s", spec.data);
	else
		snprintf(out, KFD_SPEC_BYTES, "%s:%d", spec.data, number);
	buf_fini(&spec);
}

static bool open_render(struct kfd_dev *dev, const struct kfd_node *n,
			struct err *e)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%d", n->render_minor);
	dev->render_fd = kfd_file_open(dev->d, path, e);
	return dev->render_fd >= 0;
}

/* Has this process opened it before? */
static bool check_free(const struct kfd_dev *dev, const struct kfd_node *n,
		       struct err *e)
{
	const struct kfd_dev *o = dev->root;

	for (; o; o = o == dev->root ? dev->root->peers : o->next_peer)
		if (o != dev && o->gpu_id == n->gpu_id)
			return err_set(e, ERR_BUSY, "%s is open already",
				       o->info.spec);
	return true;
}

/*
 * The first of the matching GPUs that works.  Of several, one whose render
 * node is missing or forbidden (a container shows some of them) is passed
 * over; if none is left, the first one's error is reported.
 */
static bool choose_gpu(struct kfd_dev *dev, const struct kfd_select *sel,
		       struct err *e)
{
	struct gpu gpu[GPUS_MAX];
	struct kfd_topology t;
	struct err first = { 0 };
	bool ok = false;
	int n = 0;

	if (!kfd_topology_read(dev->d, &t, e))
		return false;
	if (!kfd_select_gpus(sel, &t, gpu, &n, &first))
		n = 0;
	for (int i = 0; i < n && !ok; i++) {
		struct err why = { 0 };

		ok = kfd_node_check(gpu[i].node, &why) &&
		     check_free(dev, gpu[i].node, &why) &&
		     open_render(dev, gpu[i].node, &why);
		if (ok) {
			fill_info(&dev->info, gpu[i].node);
			dev->gpu_id = gpu[i].node->gpu_id;
			kfd_spec_name(dev->d, &t, gpu[i].number,
				      dev->info.spec);
		} else if (!first.code) {
			first = why;
		}
	}
	if (!ok && e)
		*e = first;
	kfd_topology_fini(&t);
	return ok;
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

static struct kfd_dev *dev_new(struct kfd_driver *d)
{
	struct kfd_dev *dev = xcalloc(1, sizeof(*dev));

	dev->d = d;
	dev->root = dev;
	dev->kfd_fd = dev->render_fd = -1;
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->pools_lock, NULL);
	pthread_mutex_init(&dev->copy_lock, NULL);
	dev->copier_ops = &kfd_copier_ops;
	dev->reclaim = kfd_pools_trim;
	dev->info.driver = d->name;
	dev->info.origin = d->origin;
	return dev;
}

/* What is the same for all GPUs of a process, at the first. */
static bool open_process(struct kfd_dev *dev, struct err *e)
{
	return mark_process(dev, e) &&
	       (dev->kfd_fd = kfd_file_open(dev->d, KFD_PATH, e)) >= 0 &&
	       check_version(dev, e);
}

static void open_extras(struct kfd_dev *dev, const char *why)
{
	map_mmio(dev);
	dev->counts_lost = kfd_vram_lost(dev, &dev->vram_lost, NULL);
	/* Without a first reading there are no host times, and no harm. */
	(void)kfd_clock_calibrate(dev, NULL);
	snprintf(dev->info.why, sizeof(dev->info.why), "%s %s, %s (%s)",
		 dev->info.spec,
		 dev->info.driver && !strcmp(dev->info.driver, "kfd") ?
			 dev->info.name : dev->info.gfx,
		 dev->info.origin, why ? why : "chosen by the caller");
}

static bool open_selected(struct kfd_dev **out, struct kfd_driver *d,
			  const struct kfd_select *sel, const char *why,
			  struct err *e)
{
	struct kfd_dev *dev = dev_new(d);

	bool ok = open_process(dev, e) && choose_gpu(dev, sel, e) &&
		  read_apertures(dev, e) && acquire_vm(dev, e) &&
		  kfd_events_init(dev, e) && enable_runtime(dev, e);
	if (!ok) {
		kfd_close(dev);
		*out = NULL;
		return false;
	}
	open_extras(dev, why);
	*out = dev;
	return true;
}

bool kfd_open_driver(struct kfd_dev **out, struct kfd_driver *d, int gpu,
		     const char *why, struct err *e)
{
	const struct kfd_select sel = {
		.by = gpu < 0 ? SELECT_FIRST : SELECT_NUMBER,
		.number = gpu,
	};

	return open_selected(out, d, &sel, why, e);
}

bool kfd_open_on(struct kfd_dev **out, struct kfd_driver *d, const char *spec,
		 const char *why, struct err *e)
{
	struct kfd_select sel;

	*out = NULL;
	if (kfd_select_parse(spec, &sel, e))
		return open_selected(out, d, &sel, why, e);
	d->free(d);
	return false;
}

bool kfd_open_peer(struct kfd_dev **out, struct kfd_dev *first,
		   const char *spec, struct err *e)
{
	struct kfd_dev *root = first->root;
	struct kfd_select sel;

	*out = NULL;
	if (!kfd_dev_usable(root, e) || !kfd_select_parse(spec, &sel, e))
		return false;
	struct kfd_dev *dev = dev_new(root->d);
	dev->root = root;
	dev->alive = root->alive;
	dev->kfd_fd = root->kfd_fd;
	dev->info.kfd_major = root->info.kfd_major;
	dev->info.kfd_minor = root->info.kfd_minor;
	dev->info.runtime_enabled = root->info.runtime_enabled;
	if (!choose_gpu(dev, &sel, e) || !read_apertures(dev, e) ||
	    !acquire_vm(dev, e) || !kfd_events_init(dev, e)) {
		kfd_close(dev);
		return false;
	}
	dev->next_peer = root->peers;
	root->peers = dev;
	open_extras(dev, "another GPU");
	*out = dev;
	return true;
}

static bool open_soft(struct kfd_dev **dev, const struct kfd_select *sel,
		      const char *why, struct err *e)
{
	struct soft_options o = sel->machine;
	struct kfd_driver *d;

	o.lds_faults = true;
	d = kfd_soft_new(&o, e);

	if (!d)
		return err_wrap(e, "the device in software");
	return open_selected(dev, d, sel, why, e);
}

bool kfd_open(struct kfd_dev **dev, const char *spec, struct err *e)
{
	const struct kfd_select first = { .by = SELECT_FIRST };
	struct kfd_select sel;
	struct err no = { 0 };

	*dev = NULL;
	if (!kfd_select_parse(spec, &sel, e))
		return false;
	if (sel.soft)
		return open_soft(dev, &sel, "asked for", e);
	if (!sel.any)
		return open_selected(dev, kfd_linux_new(), &sel, "asked for",
				     e) ||
		       err_wrap(e, "device %s", spec);
	if (open_selected(dev, kfd_linux_new(), &sel, "the first gfx11 GPU",
			  &no))
		return true;
	if (!open_soft(dev, &first, no.code == ERR_NODEV ? "no GPU here" :
		       "no usable GPU here", e))
		return false;
	struct kfd_info *info = &(*dev)->info;
	snprintf(info->reason, sizeof(info->reason), "%.*s",
		 (int)sizeof(info->reason) - 1, no.msg);
	if (getenv("T0_VERBOSE")) {
		const size_t len = strlen(info->why);

		snprintf(info->why + len, sizeof(info->why) - len, ": %s",
			 info->reason);
	}
	return true;
}

/* ------------------------------------------------------------ close --- */

static void disable_runtime(struct kfd_dev *dev)
{
	struct kfd_ioc_runtime_enable a = { 0 };

	if (dev->info.runtime_enabled)
		(void)kfd_dev_ioctl(dev, KFD_IOC_RUNTIME_ENABLE, &a);
}

/* The files and the driver are the first GPU's to close. */
static void close_process(struct kfd_dev *dev)
{
	if (dev->kfd_fd >= 0)
		dev->d->close(dev->d, dev->kfd_fd);
	dev->d->free(dev->d);
	if (dev->alive)
		munmap((void *)(uintptr_t)dev->alive, KFD_PAGE_BYTES);
}

static void unlink_peer(struct kfd_dev *dev)
{
	struct kfd_dev **at = &dev->root->peers;

	while (*at && *at != dev)
		at = &(*at)->next_peer;
	if (*at)
		*at = dev->next_peer;
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
	while (dev->peers)
		kfd_close(dev->peers);
	unlink_peer(dev);
	kfd_copier_fini(dev);
	while (dev->queues)
		kfd_queue_free(dev->queues, NULL);
	kfd_pools_fini(dev);
	kfd_codes_fini(dev);
	kfd_signals_fini(dev);
	kfd_events_fini(dev);
	if (dev->kfd_fd >= 0 && dev == dev->root)
		disable_runtime(dev);
	while (dev->live)
		kfd_mem_delete(dev, dev->live, NULL);
	kfd_mem_forget(dev);
	if (dev->doorbells)
		dev->d->munmap(dev->d, dev->doorbells,
			       KFD_DOORBELL_SLICE_BYTES);
	if (dev->render_fd >= 0)
		dev->d->close(dev->d, dev->render_fd);
	if (dev == dev->root)
		close_process(dev);
	pthread_mutex_destroy(&dev->copy_lock);
	pthread_mutex_destroy(&dev->pools_lock);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

/* Is this the runtime's own? */
static bool is_ours(const struct kfd_dev *dev, const struct mem *m)
{
	if (m == dev->event_page || m == dev->mmio)
		return true;
	for (const struct slab *s = dev->slabs; s; s = s->next)
		if (s->mem == m && !s->users)
			return true;
	for (const struct sigblock *b = dev->signals; b; b = b->next)
		if (b->mem == m && !b->used)
			return true;
	return false;
}

bool kfd_close_check(struct kfd_dev *dev, struct err *e)
{
	struct buf left = { 0 };
	unsigned n = 0;

	kfd_copier_fini(dev);
	for (const struct kfd_pool *p = dev->pools; p && !n; n++)
		buf_adds(&left, "a buffer pool");
	for (const struct kfd_queue *q = dev->queues; q; q = q->next)
		buf_printf(&left, "%squeue %u", n++ ? ", " : "", q->number);
	for (const struct mem *m = dev->live; m; m = m->next)
		if (!is_ours(dev, m) && n++ < 16)
			buf_printf(&left, "%s'%s' (%zu bytes)",
				   n > 1 ? ", " : "", m->pub.name,
				   m->pub.size_bytes);
	if (n)
		err_set(e, ERR_USAGE, "left open or allocated at the end: %s",
			left.data);
	buf_fini(&left);
	kfd_close(dev);
	return !n;
}
