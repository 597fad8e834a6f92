/*
 * kfd/runtime/memory.c - device memory.
 *
 * Each buffer is one reservation of host addresses, which the device uses too,
 * with an unmapped page on either side.  Freed buffers are remembered for a
 * while, so that a fault in one of them can be named.  Buffers that held code
 * keep their addresses (kfd.h, invariants).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kfd/runtime/runtime.h"

#define FRAGMENT_MAX (2u << 20) /* the page table's large fragment */

static const char *const domain_names[] = {
	[KFD_VRAM] = "VRAM",
	[KFD_VRAM_PRIVATE] = "private VRAM",
	[KFD_GTT] = "GTT",
	[KFD_USERPTR] = "host pages",
};

static enum kfd_domain domain_of(uint32_t flags)
{
	if (flags & KFD_MEM_USERPTR)
		return KFD_USERPTR;
	if (!(flags & KFD_MEM_VRAM))
		return KFD_GTT;
	return flags & KFD_MEM_PUBLIC ? KFD_VRAM : KFD_VRAM_PRIVATE;
}

static void *dev_mmap(struct kfd_dev *dev, void *addr, size_t bytes, int prot,
		      int flags, int fd, uint64_t offset, int *err_no)
{
	*err_no = 0;
	return dev->d->mmap(dev->d, addr, bytes, prot, flags, fd, offset,
			    err_no);
}

/*
 * Reserve addresses: guard page, slack for the alignment, guard page.  Sizes
 * of 2^k and more are aligned to 2^k up to 2 MiB: fewer TLB entries.
 */
static bool reserve_range(struct kfd_dev *dev, struct mem *m, struct err *e)
{
	const size_t page = KFD_PAGE_BYTES;
	size_t align = page;
	int err;

	while (align < FRAGMENT_MAX && align * 2 <= m->bytes)
		align *= 2;
	m->resv_bytes = m->bytes + 2 * page + (align - page);
	void *p = dev_mmap(dev, NULL, m->resv_bytes, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0,
			   &err);
	if (p == MAP_FAILED)
		return err_sys(e, ERR_NOMEM, err,
			       "reserving %zu bytes of "
			       "addresses for '%s'",
			       m->resv_bytes, m->pub.name);
	m->resv = p;
	m->pub.va = ALIGN_UP((uintptr_t)p + page, align);
	if (m->pub.va < dev->info.gpuvm_base ||
	    m->pub.va + m->bytes - 1 > dev->info.gpuvm_limit)
		return err_set(e, ERR_NOMEM,
			       "'%s' at 0x%llx is outside what "
			       "the device can address (0x%llx..0x%llx)",
			       m->pub.name, (unsigned long long)m->pub.va,
			       (unsigned long long)dev->info.gpuvm_base,
			       (unsigned long long)dev->info.gpuvm_limit);
	return true;
}

/* The pages of a user pointer must be there before the driver sees them. */
static bool back_with_pages(struct kfd_dev *dev, struct mem *m, struct err *e)
{
	int err;
	void *p = dev_mmap(dev, (void *)(uintptr_t)m->pub.va, m->bytes,
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0,
			   &err);

	if (p == MAP_FAILED)
		return err_sys(e, ERR_NOMEM, err,
			       "%zu bytes of host memory "
			       "for '%s'",
			       m->bytes, m->pub.name);
	return true;
}

static bool alloc_error(struct kfd_dev *dev, struct mem *m, int r,
			struct err *e)
{
	uint64_t left;
	const char *where = domain_names[domain_of(m->flags)];

	if (r != -ENOMEM)
		return kfd_dev_ioctl_err(dev, KFD_IOC_ALLOC_MEMORY_OF_GPU, r, e,
					 "%zu bytes of %s for '%s' at 0x%llx, "
					 "flags 0x%x",
					 m->bytes, where, m->pub.name,
					 (unsigned long long)m->pub.va,
					 m->flags);
	if (!(m->flags & KFD_MEM_VRAM))
		return err_sys(e, ERR_NOMEM, ENOMEM,
			       "%zu bytes of %s for '%s': the driver's limit "
			       "on pinned system memory is reached (about "
			       "15/16 of RAM, whatever is free); use smaller "
			       "buffers",
			       m->bytes, where, m->pub.name);
	if (!kfd_vram_available(dev, &left, NULL))
		return err_sys(e, ERR_NOMEM, ENOMEM,
			       "%zu bytes of %s for '%s', of %llu in all",
			       m->bytes, where, m->pub.name,
			       (unsigned long long)dev->info.node.vram_bytes);
	return err_sys(e, ERR_NOMEM, ENOMEM,
		       "%zu bytes of %s for '%s', %llu of %llu are available",
		       m->bytes, where, m->pub.name, (unsigned long long)left,
		       (unsigned long long)dev->info.node.vram_bytes);
}

static bool alloc_bo(struct kfd_dev *dev, struct mem *m, uint64_t *cookie,
		     struct err *e)
{
	struct kfd_ioc_alloc_memory a = { .va_addr = m->pub.va,
					  .size = m->bytes,
					  .gpu_id = dev->gpu_id,
					  .flags = m->flags };

	if (m->flags & KFD_MEM_USERPTR)
		a.mmap_offset = m->pub.va;
	int r = kfd_dev_ioctl(dev, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a);
	if (r)
		return alloc_error(dev, m, r, e);
	m->handle = a.handle;
	m->has_bo = true;
	*cookie = a.mmap_offset;
	return true;
}

static bool map_cpu(struct kfd_dev *dev, struct mem *m, uint64_t cookie,
		    struct err *e)
{
	const bool bar = m->flags & KFD_MEM_MMIO_REMAP;
	void *at = (void *)(uintptr_t)m->pub.va;
	int err;

	if (m->flags & KFD_MEM_VRAM && !(m->flags & KFD_MEM_PUBLIC))
		return true;
	if (!(m->flags & KFD_MEM_USERPTR) &&
	    dev_mmap(dev, at, m->bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_FIXED, bar ? dev->kfd_fd : dev->render_fd,
		     cookie, &err) == MAP_FAILED)
		return err_sys(e, ERR_NOMEM, err, "mapping '%s' (%zu bytes)",
			       m->pub.name, m->bytes);
	/*
	 * A forked child that copied these pages would make the driver evict
	 * our queues; it has no use for them.
	 */
	(void)madvise(at, m->bytes, MADV_DONTFORK);
	m->pub.cpu = at;
	return true;
}

static int gpu_map(struct kfd_dev *dev, struct mem *m, const uint32_t *ids,
		   unsigned n, bool on)
{
	struct kfd_ioc_map_memory a = { .handle = m->handle,
					.device_ids_array_ptr = (uintptr_t)ids,
					.n_devices = n };
	/* EINTR keeps n_success: the retry continues there. */
	int r = kfd_dev_ioctl(dev,
			      on ? KFD_IOC_MAP_MEMORY_TO_GPU :
				   KFD_IOC_UNMAP_MEMORY_FROM_GPU,
			      &a);

	return r ? r : a.n_success == n ? 0 : -EIO;
}

/* From every GPU that has it. */
static int gpu_unmap(struct kfd_dev *dev, struct mem *m)
{
	uint32_t ids[1 + ARRAY_SIZE(m->shared)] = { dev->gpu_id };

	memcpy(ids + 1, m->shared, sizeof(m->shared));
	return gpu_map(dev, m, ids, 1 + m->n_shared, false);
}

static bool map_gpu(struct kfd_dev *dev, struct mem *m, struct err *e)
{
	int r = gpu_map(dev, m, &dev->gpu_id, 1, true);

	/* It may be there all the same: unmap_and_free() then takes it away. */
	m->mapped = true;
	if (r)
		return kfd_dev_ioctl_err(dev, KFD_IOC_MAP_MEMORY_TO_GPU, r, e,
					 "'%s', %zu bytes", m->pub.name,
					 m->bytes);
	m->mapped = true;
	return true;
}

static void note_mem(struct kfd_dev *dev, const struct mem *m, int kind)
{
	const struct kfd_note n = { .kind = kind,
				    .va = m->pub.va,
				    .size_bytes = m->pub.size_bytes,
				    .name = m->pub.name };

	if (dev->d->note)
		dev->d->note(dev->d, &n);
}

static void link_mem(struct kfd_dev *dev, struct mem *m)
{
	pthread_mutex_lock(&dev->lock);
	m->next = dev->live;
	if (dev->live)
		dev->live->prev = m;
	dev->live = m;
	dev->live_bytes += m->bytes;
	pthread_mutex_unlock(&dev->lock);
}

static void remember_freed(struct kfd_dev *dev, const struct mem *m)
{
	struct freed *f = &dev->freed[dev->n_freed++ % FREED_N];

	*f = (struct freed){ .va = m->pub.va,
			     .size_bytes = m->pub.size_bytes,
			     .domain = m->pub.domain };
	memcpy(f->name, m->pub.name, sizeof(f->name));
}

static void unlink_mem(struct kfd_dev *dev, struct mem *m)
{
	pthread_mutex_lock(&dev->lock);
	if (m->prev)
		m->prev->next = m->next;
	else
		dev->live = m->next;
	if (m->next)
		m->next->prev = m->prev;
	dev->live_bytes -= m->bytes;
	remember_freed(dev, m);
	pthread_mutex_unlock(&dev->lock);
}

/* Give the addresses back, or keep them without pages. */
static void release_va(struct kfd_dev *dev, struct mem *m)
{
	int err;

	if (!m->resv)
		return;
	if (!m->holds_code) {
		dev->d->munmap(dev->d, m->resv, m->resv_bytes);
		return;
	}
	(void)dev_mmap(dev, (void *)(uintptr_t)m->pub.va, m->bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0, &err);
	struct range *r = xmalloc(sizeof(*r));
	*r = (struct range){ .at = m->resv, .bytes = m->resv_bytes };
	pthread_mutex_lock(&dev->lock);
	r->next = dev->kept;
	dev->kept = r;
	pthread_mutex_unlock(&dev->lock);
}

/* UNMAP, FREE, then munmap: the other order evicts the process's queues. */
static int unmap_and_free(struct kfd_dev *dev, struct mem *m)
{
	struct kfd_ioc_free_memory a = { .handle = m->handle };
	int first = 0;

	if (m->mapped)
		first = gpu_unmap(dev, m);
	if (m->has_bo) {
		int r = kfd_dev_ioctl(dev, KFD_IOC_FREE_MEMORY_OF_GPU, &a);
		first = first ? first : r;
	}
	release_va(dev, m);
	return first;
}

struct mem *kfd_mem_new(struct kfd_dev *dev, uint32_t flags, size_t bytes,
			const char *name, struct err *e)
{
	struct mem *m = xcalloc(1, sizeof(*m));
	uint64_t cookie = 0;

	m->flags = flags;
	m->bytes = ALIGN_UP(bytes, KFD_PAGE_BYTES);
	m->pub.size_bytes = bytes;
	m->pub.domain = domain_of(flags);
	snprintf(m->pub.name, sizeof(m->pub.name), "%s", name ? name : "?");
	if (reserve_range(dev, m, e) &&
	    (!(flags & KFD_MEM_USERPTR) || back_with_pages(dev, m, e)) &&
	    alloc_bo(dev, m, &cookie, e) && map_cpu(dev, m, cookie, e) &&
	    map_gpu(dev, m, e)) {
		link_mem(dev, m);
		note_mem(dev, m, KFD_NOTE_MEMORY);
		return m;
	}
	unmap_and_free(dev, m);
	free(m);
	return NULL;
}

bool kfd_mem_delete(struct kfd_dev *dev, struct mem *m, struct err *e)
{
	if (!m)
		return true;
	unlink_mem(dev, m);
	note_mem(dev, m, KFD_NOTE_GONE);
	int r = unmap_and_free(dev, m);
	if (r)
		kfd_dev_ioctl_err(dev, KFD_IOC_FREE_MEMORY_OF_GPU, r, e, "'%s'",
				  m->pub.name);
	free(m);
	return !r;
}

void kfd_mem_forget(struct kfd_dev *dev)
{
	for (struct range *r = dev->kept, *next; r; r = next) {
		next = r->next;
		dev->d->munmap(dev->d, r->at, r->bytes);
		free(r);
	}
	dev->kept = NULL;
}

/* ----------------------------------------------------------- public --- */

static const uint32_t domain_flags[] = {
	[KFD_VRAM] = MEM_FLAGS_VRAM,
	[KFD_VRAM_PRIVATE] = MEM_FLAGS_PRIVATE,
	[KFD_GTT] = MEM_FLAGS_GTT,
	[KFD_USERPTR] = MEM_FLAGS_USER,
};

bool kfd_mem_alloc(struct kfd_dev *dev, enum kfd_domain domain,
		   size_t size_bytes, const char *name, struct kfd_mem **out,
		   struct err *e)
{
	*out = NULL;
	if (!kfd_dev_usable(dev, e))
		return false;
	if ((unsigned)domain >= ARRAY_SIZE(domain_flags))
		return err_set(e, ERR_USAGE, "'%s': no memory domain %d", name,
			       (int)domain);
	/* 47 bits are what the device addresses; also keeps sums in range. */
	if (size_bytes == 0 || size_bytes > (size_t)1 << 46)
		return err_set(e, ERR_USAGE,
			       "'%s': %zu bytes; wanted 1 to "
			       "2^46",
			       name, size_bytes);
	if (domain == KFD_VRAM && !dev->info.node.large_bar)
		return err_set(e, ERR_UNSUPPORTED,
			       "'%s': the host cannot see this card's memory "
			       "(small BAR): enable Resizable BAR in the "
			       "firmware set-up, or use GTT or private VRAM",
			       name);
	struct err full = { 0 };
	const uint32_t flags = domain_flags[domain];
	struct mem *m = kfd_mem_new(dev, flags, size_bytes, name, &full);
	/* What the pools keep is ours to give. */
	if (!m && full.code == ERR_NOMEM && dev->reclaim(dev))
		m = kfd_mem_new(dev, flags, size_bytes, name, &full);
	if (!m && e)
		*e = full;
	*out = m ? &m->pub : NULL;
	return m != NULL;
}

void kfd_mem_rename(struct kfd_dev *dev, struct kfd_mem *m, const char *name,
		    size_t size_bytes)
{
	pthread_mutex_lock(&dev->lock);
	snprintf(m->name, sizeof(m->name), "%s", name ? name : "?");
	m->size_bytes = size_bytes;
	pthread_mutex_unlock(&dev->lock);
}

bool kfd_mem_share(struct kfd_mem *pub, struct kfd_dev *owner,
		   struct kfd_dev *peer, struct err *e)
{
	struct mem *m = (struct mem *)pub;

	if (owner->root != peer->root || owner == peer)
		return err_set(e, ERR_USAGE,
			       "'%s' can be shared with a GPU that was opened "
			       "by kfd_open_peer() of the same device",
			       pub->name);
	if (m->n_shared == ARRAY_SIZE(m->shared))
		return err_set(e, ERR_UNSUPPORTED,
			       "'%s' is shared by %zu GPUs already", pub->name,
			       ARRAY_SIZE(m->shared) + 1);
	int r = gpu_map(owner, m, &peer->gpu_id, 1, true);
	if (r)
		return kfd_dev_ioctl_err(owner, KFD_IOC_MAP_MEMORY_TO_GPU, r, e,
					 "'%s' to GPU id %u", pub->name,
					 peer->gpu_id);
	m->shared[m->n_shared++] = peer->gpu_id;
	return true;
}

void kfd_mem_free(struct kfd_dev *dev, struct kfd_mem *m)
{
	if (m && *dev->alive && !kfd_is_late(dev))
		kfd_mem_delete(dev, (struct mem *)m, NULL);
}

void kfd_mem_flush(struct kfd_dev *dev)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (dev->hdp)
		__atomic_store_n(&dev->hdp[KFD_MMIO_HDP_MEM_FLUSH], 1,
				 __ATOMIC_RELEASE);
}

uint64_t kfd_mem_live_bytes(struct kfd_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	uint64_t n = dev->live_bytes;
	pthread_mutex_unlock(&dev->lock);
	return n;
}

/* ----------------------------------------------------- fault reports --- */

/* 0 inside, else the distance in bytes. */
static uint64_t distance_to(uint64_t va, uint64_t at, size_t size_bytes)
{
	if (va < at)
		return at - va;
	return va - at < size_bytes ? 0 : va - at - size_bytes + 1;
}

struct nearest {
	uint64_t va, at, dist;
	size_t size_bytes;
	enum kfd_domain domain;
	const char *name;
	bool freed;
};

static void consider_range(struct nearest *n, uint64_t at, size_t size_bytes,
			   enum kfd_domain domain, const char *name, bool freed)
{
	uint64_t d = distance_to(n->va, at, size_bytes);

	/* Live ones come first: they win where a dead one was as near. */
	if (n->name && d >= n->dist)
		return;
	*n = (struct nearest){ n->va, at, d, size_bytes, domain, name, freed };
}

/* What is further from an address has nothing to do with it. */
#define FAR_BYTES (1ull << 32)

static void describe_nearest(const struct nearest *n, struct buf *out)
{
	const char *state = n->freed ? "freed " : "";

	buf_printf(out, "0x%llx is ", (unsigned long long)n->va);
	if (n->dist >= FAR_BYTES) {
		buf_adds(out, "near nothing that was allocated");
		return;
	}
	if (n->dist == 0)
		buf_printf(out, "%llu bytes into ",
			   (unsigned long long)(n->va - n->at));
	else if (n->va < n->at)
		buf_printf(out, "%llu bytes before ",
			   (unsigned long long)n->dist);
	else
		buf_printf(out, "%llu bytes past the end of ",
			   (unsigned long long)(n->dist - 1));
	buf_printf(out, "%s'%s' (%s, 0x%llx, %zu bytes)", state, n->name,
		   domain_names[n->domain], (unsigned long long)n->at,
		   n->size_bytes);
}

/* With dev->lock held. */
static struct nearest find_nearest(struct kfd_dev *dev, uint64_t va)
{
	struct nearest n = { .va = va };
	unsigned kept = dev->n_freed < FREED_N ? dev->n_freed : FREED_N;

	for (const struct mem *m = dev->live; m; m = m->next)
		consider_range(&n, m->pub.va, m->pub.size_bytes, m->pub.domain,
			       m->pub.name, false);
	for (unsigned i = 1; i <= kept; i++) {
		const struct freed *f =
			&dev->freed[(dev->n_freed - i) % FREED_N];
		consider_range(&n, f->va, f->size_bytes, f->domain, f->name,
			       true);
	}
	return n;
}

void kfd_mem_nearest(struct kfd_dev *dev, uint64_t va, struct kfd_fault *f)
{
	pthread_mutex_lock(&dev->lock);
	const struct nearest n = find_nearest(dev, va);
	if (n.name) {
		snprintf(f->near.name, sizeof(f->near.name), "%s", n.name);
		f->near.va = n.at;
		f->near.size_bytes = n.size_bytes;
		f->near.domain = n.domain;
		f->near.freed = n.freed;
		f->near.offset = (int64_t)(va - n.at);
	}
	pthread_mutex_unlock(&dev->lock);
}

void kfd_mem_describe(struct kfd_dev *dev, uint64_t va, struct buf *out)
{
	pthread_mutex_lock(&dev->lock);
	const struct nearest n = find_nearest(dev, va);
	if (n.name)
		describe_nearest(&n, out);
	else
		buf_printf(out, "0x%llx is near no allocation",
			   (unsigned long long)va);
	pthread_mutex_unlock(&dev->lock);
}
