/*
 * kfd/soft/device/memory.c - buffer objects and SVM ranges: who owns which
 * memory.
 *
 * VRAM, GTT, doorbells and the MMIO page are pieces of one sparse memory file
 * whose offsets only grow: the cookie for mmap() is the offset itself, and
 * the device keeps its own mapping of every piece, because programs may map
 * theirs PROT_NONE or not at all.  User pointers and SVM ranges are read where
 * they are, for the program lives in this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/vec.h"
#include "kfd/soft/device/dev.h"

/* DRM's mmap cookies begin above 4 GiB too: programs may not cut them. */
#define MEMFD_FIRST 0x100000000ull
#define NO_OFFSET UINT64_MAX
/* Pages that KFD lets all processes pin, in sixteenths of the RAM. */
#define SYS_LIMIT_16THS 15

static uint64_t page_up(uint64_t v)
{
	return (v + KFD_PAGE_BYTES - 1) & ~(uint64_t)(KFD_PAGE_BYTES - 1);
}

static bool page_aligned(uint64_t v)
{
	return v % KFD_PAGE_BYTES == 0;
}

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* -------------------------------------------------------- memory file -- */

int soft_memory_carve(struct soft_dev *d, uint64_t size, uint64_t *offset,
		      void **host)
{
	const uint64_t huge = 2u << 20;
	uint64_t off = d->memfd_end;
	void *p;

	if (size >= huge)
		off = (off + huge - 1) & ~(huge - 1);
	if (ftruncate(d->memfd, (off_t)(off + size)))
		return -ENOMEM;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_NORESERVE, d->memfd, (off_t)off);
	if (p == MAP_FAILED)
		return -ENOMEM;
	d->memfd_end = off + size;
	*offset = off;
	*host = p;
	return 0;
}

void soft_memory_drop(struct soft_dev *d, uint64_t offset, uint64_t size,
		      void *host)
{
	munmap(host, size);
	/* Gives the pages back; the offset is not used again. */
	fallocate(d->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)offset, (off_t)size);
}

void soft_memory_usage(struct soft_card *c, uint64_t *vram, uint64_t *gtt)
{
	struct soft_dev *d = c->dev;

	pthread_mutex_lock(&d->lock);
	*vram = c->vram_used;
	*gtt = d->sys_used;
	pthread_mutex_unlock(&d->lock);
}

/* The pages of a card that programs map. */
static int carve_pages(struct soft_card *c)
{
	const int ret = soft_memory_carve(c->dev, KFD_DOORBELL_SLICE_BYTES,
					  &c->doorbell_off,
					  (void **)&c->doorbell);

	return ret ? ret : soft_memory_carve(c->dev, KFD_MMIO_REMAP_BYTES,
					     &c->mmio_off, (void **)&c->mmio);
}

bool soft_memory_init(struct soft_dev *d, struct err *e)
{
	const long pages = sysconf(_SC_PHYS_PAGES);
	int ret = 0;

	d->memfd = memfd_create("t0-soft", MFD_CLOEXEC);
	if (d->memfd < 0)
		return err_sys(e, ERR_NOMEM, errno, "memfd_create");
	d->memfd_end = MEMFD_FIRST;
	d->sys_limit = (uint64_t)(pages > 0 ? pages : 0) * KFD_PAGE_BYTES /
		       16 * SYS_LIMIT_16THS;
	d->n_bo = 1;
	d->bo = xcalloc(1, sizeof(*d->bo));
	soft_map_init(d);
	for (unsigned i = 0; i < d->n_cards && !ret; i++)
		ret = carve_pages(&d->card[i]);
	if (ret)
		return err_sys(e, ERR_NOMEM, -ret, "memory file");
	return true;
}

void soft_memory_fini(struct soft_dev *d)
{
	if (!d->bo)
		return; /* memfd_create() failed: nothing was made */
	for (unsigned i = 0; i < d->n_cards; i++) {
		if (d->card[i].doorbell)
			munmap(d->card[i].doorbell, KFD_DOORBELL_SLICE_BYTES);
		if (d->card[i].mmio)
			munmap(d->card[i].mmio, KFD_MMIO_REMAP_BYTES);
	}
	for (size_t i = 1; i < d->n_bo; i++)
		free(d->bo[i]);
	free(d->bo);
	vec_fini(&d->svm);
	soft_map_fini(d);
	close(d->memfd);
}

/* ----------------------------------------------------- buffer objects -- */

struct soft_bo *soft_bo_by_handle(struct soft_dev *d, uint64_t handle)
{
	const uint64_t i = handle & 0xffffffff;

	/* The object is its card's, under no other's id. */
	if (!i || i >= d->n_bo || !d->bo[i] || d->bo[i]->drm_file ||
	    handle >> 32 != d->bo[i]->card->gpu_id)
		return NULL;
	return d->bo[i];
}

/* Has the card mapped it? */
static bool is_mapped(const struct soft_bo *b, const struct soft_card *c)
{
	return b->mapped >> c->index & 1;
}

uint32_t soft_bo_exact(struct soft_card *c, uint64_t va, uint64_t size)
{
	const struct soft_dev *d = c->dev;

	for (size_t i = 1; i < d->n_bo; i++) {
		const struct soft_bo *b = d->bo[i];

		if (b && is_mapped(b, c) && b->va == va && b->size == size)
			return (uint32_t)i;
	}
	return 0;
}

bool soft_bo_overlaps(const struct soft_dev *d, uint64_t va, uint64_t size)
{
	for (size_t i = 1; i < d->n_bo; i++)
		if (d->bo[i] && d->bo[i]->mapped &&
		    overlaps(va, size, d->bo[i]->va, d->bo[i]->size))
			return true;
	return false;
}

static bool is_system(const struct soft_bo *b)
{
	return b->flags & (KFD_MEM_GTT | KFD_MEM_USERPTR);
}

static int charge_memory(struct soft_dev *d, const struct soft_bo *b)
{
	if (b->flags & KFD_MEM_VRAM) {
		if (b->size > b->card->vram_bytes - b->card->vram_used)
			return -ENOMEM;
		b->card->vram_used += b->size;
	} else if (is_system(b)) {
		if (d->sys_used > d->sys_limit ||
		    b->size > d->sys_limit - d->sys_used)
			return -ENOMEM;
		d->sys_used += b->size;
	}
	return 0;
}

static void uncharge_memory(struct soft_dev *d, const struct soft_bo *b)
{
	if (b->imported)
		return;
	if (b->flags & KFD_MEM_VRAM)
		b->card->vram_used -= b->size;
	else if (is_system(b))
		d->sys_used -= b->size;
}

/* Is the whole of it mapped, whatever its protection? */
static bool is_host_mapped(uint64_t addr, uint64_t size)
{
	unsigned char vec[4096];
	const uint64_t most = sizeof(vec) * KFD_PAGE_BYTES;

	if (addr >= SOFT_USER_LIMIT || size > SOFT_USER_LIMIT - addr)
		return false;
	for (uint64_t n; size; addr += n, size -= n) {
		n = size < most ? size : most;
		if (mincore((void *)(uintptr_t)addr, n, vec))
			return false;
	}
	return true;
}

/* Can all pages be read?  The kernel pins them at once. */
static bool user_pages(uint64_t addr, uint64_t size)
{
	const uint64_t ends[] = { addr, addr + size - KFD_PAGE_BYTES };
	bool good = is_host_mapped(addr, size);

	/* That also likes PROT_NONE, a reservation without memory. */
	for (size_t i = 0; good && i < ARRAY_SIZE(ends); i++) {
		char c;

		good = !soft_copy_in(&c, ends[i], 1);
	}
	return good;
}

/* Give the object its memory. */
static int bo_back(struct soft_dev *d, struct soft_bo *b, uint64_t user)
{
	b->offset = NO_OFFSET;
	switch (b->flags & KFD_MEM_PLACE_MASK) {
	case KFD_MEM_USERPTR:
		if (!user_pages(user, b->size))
			return -EFAULT;
		soft_guard_take();
		b->host = (void *)(uintptr_t)user;
		return 0;
	case KFD_MEM_DOORBELL:
		b->host = (void *)b->card->doorbell;
		return 0;
	case KFD_MEM_MMIO_REMAP:
		b->host = (void *)b->card->mmio;
		return 0;
	default:
		return soft_memory_carve(d, b->size, &b->offset,
					 (void **)&b->host);
	}
}

static uint64_t bo_cookie(const struct soft_bo *b)
{
	if (b->flags & KFD_MEM_DOORBELL)
		return KFD_MMAP_OFFSET(KFD_MMAP_TYPE_DOORBELL, b->card->gpu_id);
	if (b->flags & KFD_MEM_MMIO_REMAP)
		return KFD_MMAP_OFFSET(KFD_MMAP_TYPE_MMIO, b->card->gpu_id);
	return b->offset;
}

/* No card reaches it any more. */
static void bo_vanish(struct soft_dev *d, const struct soft_bo *b)
{
	for (unsigned i = 0; i < d->n_cards && !b->gone; i++)
		if (is_mapped(b, &d->card[i]))
			soft_map_remove(&d->card[i], b->va);
}

void soft_bo_delete(struct soft_dev *d, size_t i)
{
	struct soft_bo *b = d->bo[i];

	bo_vanish(d, b);
	if (b->file >= 0) {
		munmap(b->host, b->size);
		close(b->file);
	} else if (b->offset != NO_OFFSET) {
		soft_memory_drop(d, b->offset, b->size, b->host);
	}
	uncharge_memory(d, b);
	free(b);
	d->bo[i] = NULL;
}

uint64_t soft_bo_add(struct soft_dev *d, struct soft_bo *b)
{
	size_t i = 1;

	while (i < d->n_bo && d->bo[i])
		i++;
	if (i == d->n_bo) {
		VEC_GROW(d->bo, d->n_bo, 1, d->cap_bo);
		d->n_bo++;
	}
	d->bo[i] = b;
	return (uint64_t)b->card->gpu_id << 32 | i;
}

/* The kernel looks at an object's address when it maps it. */
static bool is_mappable(const struct soft_bo *b)
{
	return page_aligned(b->va) && b->va >= SOFT_GPUVM_BASE &&
	       b->va <= SOFT_GPUVM_LIMIT &&
	       b->size - 1 <= SOFT_GPUVM_LIMIT - b->va;
}

static int alloc_check(const struct soft_card *c,
		       const struct kfd_ioc_alloc_memory *a)
{
	const struct soft_dev *d = c->dev;
	const uint32_t place = a->flags & KFD_MEM_PLACE_MASK;
	const uint64_t size = page_up(a->size);

	if (!a->size || size < a->size)
		return -EINVAL;
	if (!place || place & (place - 1))
		return -EINVAL;
	if (d->o.small_bar && place == KFD_MEM_VRAM &&
	    a->flags & KFD_MEM_PUBLIC)
		return -EINVAL;
	if (place == KFD_MEM_DOORBELL && a->size != KFD_DOORBELL_SLICE_BYTES)
		return -EINVAL;
	if (place == KFD_MEM_MMIO_REMAP && a->size != KFD_MMIO_REMAP_BYTES)
		return -EINVAL;
	if (place == KFD_MEM_USERPTR &&
	    (!a->mmap_offset || !page_aligned(a->mmap_offset)))
		return -EINVAL;
	if (soft_svm_overlaps(d, a->va_addr, size) ||
	    (place == KFD_MEM_USERPTR &&
	     soft_svm_overlaps(d, a->mmap_offset, size)))
		return -EADDRINUSE;
	return c->vm_file ? 0 : -ENODEV;
}

/* Charged and backed, or not there. */
static int bo_make(const struct soft_bo *like, uint64_t user, uint64_t *handle)
{
	struct soft_dev *d = like->card->dev;
	struct soft_bo *b = xcalloc(1, sizeof(*b));
	int ret;

	*b = *like;
	b->size = page_up(b->size);
	b->file = -1;
	ret = charge_memory(d, b);
	if (!ret) {
		ret = bo_back(d, b, user);
		if (ret)
			uncharge_memory(d, b);
	}
	if (ret)
		free(b);
	else
		*handle = soft_bo_add(d, b);
	return ret;
}

int soft_bo_new(struct soft_card *c, uint64_t size, uint32_t flags,
		uint64_t drm_file, uint64_t *handle)
{
	const struct soft_bo b = { .card = c, .size = size, .flags = flags,
				   .drm_file = drm_file };

	return page_up(size) < size ? -EINVAL : bo_make(&b, 0, handle);
}

int soft_ioc_alloc(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_alloc_memory *a = arg;
	struct soft_card *c = soft_card_by_id(d, a->gpu_id);
	const struct soft_bo b = { .card = c, .va = a->va_addr, .size = a->size,
				   .flags = a->flags };
	int ret;

	ret = c ? alloc_check(c, a) : -EINVAL;
	if (!ret)
		ret = bo_make(&b, a->mmap_offset, &a->handle);
	if (ret)
		return ret;
	if (!(a->flags & KFD_MEM_USERPTR))
		a->mmap_offset = bo_cookie(soft_bo_by_handle(d, a->handle));
	return 0;
}

int soft_ioc_free(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_free_memory *a = arg;
	const struct soft_bo *b = soft_bo_by_handle(d, a->handle);

	if (!b)
		return -EINVAL;
	/* The kernel writes to the event page until the process ends. */
	if (d->ev.page_bo == (uint32_t)a->handle)
		return -EPERM;
	if (b->mapped) /* as what queues use is */
		return -EBUSY;
	soft_bo_delete(d, (uint32_t)a->handle);
	return 0;
}

/* What lies on another card is reached through that card's BAR. */
static bool is_peer_accessible(const struct soft_bo *b,
			       const struct soft_card *c)
{
	return b->card == c || is_system(b) || !c->dev->o.small_bar;
}

static int bo_map(struct soft_card *c, struct soft_bo *b)
{
	struct soft_range r = { b->va, b->size, b->host, SOFT_MEM_READ };

	if (!c->vm_file)
		return -ENODEV;
	if (is_mapped(b, c))
		return 0;
	if (!is_peer_accessible(b, c))
		return -EINVAL;
	if (b->gone)
		return -EFAULT; /* its user pages are no more */
	if (!is_mappable(b) || !soft_map_is_free(&c->map, b->va, b->size))
		return -EINVAL;
	if (b->flags & KFD_MEM_WRITABLE)
		r.flags |= SOFT_MEM_WRITE;
	if (b->flags & KFD_MEM_EXECUTABLE)
		r.flags |= SOFT_MEM_EXEC;
	soft_map_insert(c, &r);
	b->mapped |= 1u << c->index;
	return 0;
}

static int bo_unmap(struct soft_card *c, struct soft_bo *b)
{
	if (!is_mapped(b, c))
		return -EINVAL;
	if (b->queue_refs[c->index])
		return -EBUSY;
	if (!b->gone)
		soft_map_remove(c, b->va);
	b->mapped &= ~(1u << c->index);
	return 0;
}

static int for_devices(struct soft_dev *d, struct kfd_ioc_map_memory *a,
		       int (*fn)(struct soft_card *, struct soft_bo *))
{
	struct soft_bo *b;

	if (!a->n_devices || a->n_success > a->n_devices)
		return -EINVAL;
	if (!a->device_ids_array_ptr)
		return -EFAULT;
	b = soft_bo_by_handle(d, a->handle);
	if (!b)
		return -EINVAL;
	if (!b->card->vm_file)
		return -ENODEV;
	for (; a->n_success < a->n_devices; a->n_success++) {
		struct soft_card *c;
		uint32_t id;
		int ret = soft_copy_in(&id, a->device_ids_array_ptr +
						    a->n_success * 4ull, 4);

		c = ret ? NULL : soft_card_by_id(d, id);
		if (!ret)
			ret = c ? fn(c, b) : -EINVAL;
		if (ret)
			return ret;
	}
	return 0;
}

int soft_ioc_map(struct soft_dev *d, void *arg)
{
	return for_devices(d, arg, bo_map);
}

int soft_ioc_unmap(struct soft_dev *d, void *arg)
{
	return for_devices(d, arg, bo_unmap);
}

int soft_ioc_available(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_available_memory *a = arg;
	const struct soft_card *c = soft_card_by_id(d, a->gpu_id);

	if (!c)
		return -EINVAL;
	a->available = c->vram_bytes - c->vram_used;
	return 0;
}

int soft_bo_mmap(struct soft_dev *d, uint64_t *offset, uint64_t size)
{
	for (size_t i = 1; i < d->n_bo; i++) {
		const struct soft_bo *b = d->bo[i];

		if (!b || b->offset != *offset)
			continue;
		if (page_up(size) > b->size)
			return -EINVAL;
		/*
		 * All VRAM, not only what was asked for as visible: since
		 * Linux 5.15 a page that the host touches is moved into its
		 * window.
		 */
		if (b->file < 0)
			return d->memfd;
		*offset = 0;
		return b->file;
	}
	return -EINVAL;
}

/* ------------------------------------------------- the process's side -- */

void soft_host_unmapped(struct soft_dev *d, uint64_t addr, uint64_t size,
			bool gone)
{
	soft_svm_unmapped(d, addr, size);
	for (size_t i = 1; gone && i < d->n_bo; i++) {
		struct soft_bo *b = d->bo[i];

		if (!b || b->gone || !(b->flags & KFD_MEM_USERPTR) ||
		    !overlaps(addr, size, (uintptr_t)b->host, b->size))
			continue;
		bo_vanish(d, b);
		b->gone = true;
	}
}

void soft_memory_end(struct soft_dev *d)
{
	soft_svm_end(d);
	for (size_t i = 1; i < d->n_bo; i++)
		if (d->bo[i] && !d->bo[i]->drm_file)
			soft_bo_delete(d, i);
}
