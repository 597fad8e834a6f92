/*
 * kfd/soft/device/drm/gem.c - buffers of the DRM nodes: the objects of
 * memory.c, with an owner, addresses of the program's choice, and metadata.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "kfd/soft/device/drm/drm.h"

#define AWAIT_NS 1000000000u
/* Where programs may put things: low, and the 47 bits below 2^64. */
#define LOW_VA	0x200000ull /* below are the kernel's own, says DEV_INFO */
#define HIGH_VA 0xffff800000000000ull

struct soft_bo *drm_bo(struct soft_dev *d, const struct soft_file *f,
		       uint32_t handle)
{
	struct soft_bo *b = handle < d->n_bo ? d->bo[handle] : NULL;

	return b && handle && b->drm_file == f->id ? b : NULL;
}

int drm_gem_create(const struct soft_file *f, union drm_amdgpu_gem_create *a)
{
	const uint64_t domains = a->in.domains;
	uint64_t handle;
	uint32_t flags = KFD_MEM_WRITABLE | KFD_MEM_EXECUTABLE;
	int ret;

	/* The chip has neither GDS nor ordered append for programs. */
	if (domains & ~(uint64_t)(AMDGPU_GEM_DOMAIN_CPU |
				  AMDGPU_GEM_DOMAIN_GTT |
				  AMDGPU_GEM_DOMAIN_VRAM) ||
	    !a->in.bo_size)
		return -EINVAL;
	flags |= domains & AMDGPU_GEM_DOMAIN_VRAM ? KFD_MEM_VRAM : KFD_MEM_GTT;
	if (!(a->in.domain_flags & AMDGPU_GEM_CREATE_NO_CPU_ACCESS))
		flags |= KFD_MEM_PUBLIC;
	ret = soft_bo_new(f->card, a->in.bo_size, flags, f->id, &handle);
	if (ret)
		return ret;
	memset(a, 0, sizeof(*a));
	a->out.handle = (uint32_t)handle;
	return 0;
}

int drm_gem_mmap(struct soft_dev *d, const struct soft_file *f,
		 union drm_amdgpu_gem_mmap *a)
{
	const struct soft_bo *b = drm_bo(d, f, a->in.handle);

	if (!b)
		return -ENOENT;
	if (!(b->flags & KFD_MEM_PUBLIC))
		return -EPERM;
	a->out.addr_ptr = b->offset;
	return 0;
}

/* ------------------------------------------------------------ addresses -- */

static int map_buffer(struct soft_dev *d, struct soft_bo *b,
		      const struct drm_amdgpu_gem_va *a)
{
	struct soft_range r = { a->va_address, a->map_size,
				b->host + a->offset_in_bo, 0 };

	if (a->offset_in_bo > b->size || a->map_size > b->size - a->offset_in_bo)
		return -EINVAL;
	if (!soft_map_is_free(&b->card->map, r.va, r.size_bytes))
		return -EINVAL;
	r.flags |= a->flags & AMDGPU_VM_PAGE_READABLE ? SOFT_MEM_READ : 0;
	r.flags |= a->flags & AMDGPU_VM_PAGE_WRITEABLE ? SOFT_MEM_WRITE : 0;
	r.flags |= a->flags & AMDGPU_VM_PAGE_EXECUTABLE ? SOFT_MEM_EXEC : 0;
	soft_map_insert(b->card, &r);
	vec_push(&d->drm->map, (struct gem_map){ .va = r.va,
						 .size_bytes = r.size_bytes,
						 .bo = a->handle,
						 .file = b->drm_file,
						 .card = b->card });
	return 0;
}

/*
 * Addresses of a sparse resource that has no memory yet: reads are zeros.
 * Writes would be lost there; here they are faults, so that somebody sees it.
 */
static int map_nothing(struct soft_dev *d, const struct soft_file *f,
		       const struct drm_amdgpu_gem_va *a)
{
	struct soft_range r = { a->va_address, a->map_size, NULL,
				SOFT_MEM_READ };

	if (!soft_map_is_free(&f->card->map, r.va, r.size_bytes))
		return -EINVAL;
	r.host = mmap(NULL, r.size_bytes, PROT_READ,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r.host == MAP_FAILED)
		return -ENOMEM;
	soft_map_insert(f->card, &r);
	vec_push(&d->drm->map, (struct gem_map){ .va = r.va,
						 .size_bytes = r.size_bytes,
						 .zeros = r.host,
						 .file = f->id,
						 .card = f->card });
	return 0;
}

static void drop_map(struct soft_dev *d, size_t i)
{
	struct soft_drm *m = d->drm;

	soft_map_remove(m->map.v[i].card, m->map.v[i].va);
	if (m->map.v[i].zeros)
		munmap(m->map.v[i].zeros, m->map.v[i].size_bytes);
	m->map.v[i] = m->map.v[--m->map.n];
}

/* Whole mappings between two addresses; a part of one is EINVAL. */
static int clear_range(struct soft_dev *d, const struct soft_file *f,
		       const struct drm_amdgpu_gem_va *a)
{
	const uint64_t end = a->va_address + a->map_size;
	const struct gem_map *m = d->drm->map.v;

	for (size_t i = 0; i < d->drm->map.n; i++)
		if (m[i].card == f->card && m[i].va < end &&
		    a->va_address < m[i].va + m[i].size_bytes &&
		    (m[i].va < a->va_address ||
		     m[i].va + m[i].size_bytes > end))
			return -EINVAL;
	for (size_t i = d->drm->map.n; i-- > 0;)
		if (d->drm->map.v[i].card == f->card &&
		    d->drm->map.v[i].va - a->va_address < a->map_size)
			drop_map(d, i);
	return 0;
}

static int unmap_buffer(struct soft_dev *d, const struct drm_amdgpu_gem_va *a)
{
	for (size_t i = 0; i < d->drm->map.n; i++)
		if (d->drm->map.v[i].va == a->va_address &&
		    d->drm->map.v[i].bo == a->handle) {
			drop_map(d, i);
			return 0;
		}
	return -ENOENT;
}

bool soft_drm_overlaps(const struct soft_dev *d, uint64_t va, uint64_t size)
{
	for (size_t i = 0; i < d->drm->map.n; i++) {
		const struct gem_map *m = &d->drm->map.v[i];

		if (va < m->va + m->size_bytes && m->va < va + size)
			return true;
	}
	return false;
}

static bool is_for_programs(uint64_t va, uint64_t size)
{
	if (va >= HIGH_VA)
		return size && size <= -va;
	return va >= LOW_VA && va < SOFT_USER_LIMIT && size &&
	       size <= SOFT_USER_LIMIT - va;
}

int drm_gem_va(struct soft_dev *d, const struct soft_file *f,
	       const struct drm_amdgpu_gem_va *a)
{
	const uint64_t parts = a->va_address | a->offset_in_bo | a->map_size;
	struct soft_bo *b = drm_bo(d, f, a->handle);
	const bool nothing = a->flags & AMDGPU_VM_PAGE_PRT;

	if (!is_for_programs(a->va_address, a->map_size) ||
	    parts % KFD_PAGE_BYTES)
		return -EINVAL;
	if (!b && !nothing && a->operation != AMDGPU_VA_OP_CLEAR)
		return -ENOENT;
	switch (a->operation) {
	case AMDGPU_VA_OP_MAP:
		return nothing ? map_nothing(d, f, a) : map_buffer(d, b, a);
	case AMDGPU_VA_OP_UNMAP:
		return unmap_buffer(d, a);
	case AMDGPU_VA_OP_CLEAR:
		return clear_range(d, f, a);
	default: /* of parts of mappings: sparse textures */
		return -EINVAL;
	}
}

/* ------------------------------------------------------------- metadata -- */

int drm_gem_metadata(struct soft_dev *d, const struct soft_file *f,
		     struct drm_amdgpu_gem_metadata *a)
{
	struct soft_bo *b = drm_bo(d, f, a->handle);

	if (!b)
		return -ENOENT;
	if (a->op == AMDGPU_GEM_METADATA_OP_GET_METADATA) {
		a->data.tiling_info = b->tiling;
		a->data.flags = b->metadata_flags;
		a->data.data_size_bytes = b->metadata_bytes;
		memcpy(a->data.data, b->metadata, b->metadata_bytes);
		return 0;
	}
	if (a->op != AMDGPU_GEM_METADATA_OP_SET_METADATA ||
	    a->data.data_size_bytes > sizeof(b->metadata))
		return -EINVAL;
	b->tiling = a->data.tiling_info;
	b->metadata_flags = a->data.flags;
	b->metadata_bytes = a->data.data_size_bytes;
	memcpy(b->metadata, a->data.data, b->metadata_bytes);
	return 0;
}

int drm_gem_op(struct soft_dev *d, const struct soft_file *f,
	       const struct drm_amdgpu_gem_op *a)
{
	const struct soft_bo *b = drm_bo(d, f, a->handle);
	struct drm_amdgpu_gem_create_in info;

	if (!b)
		return -ENOENT;
	if (a->op == AMDGPU_GEM_OP_SET_PLACEMENT)
		return 0; /* a wish: it stays where it is */
	if (a->op != AMDGPU_GEM_OP_GET_GEM_CREATE_INFO)
		return -EINVAL;
	info = (struct drm_amdgpu_gem_create_in){
		.bo_size = b->size, .alignment = KFD_PAGE_BYTES,
		.domains = b->flags & KFD_MEM_VRAM ? AMDGPU_GEM_DOMAIN_VRAM :
						     AMDGPU_GEM_DOMAIN_GTT,
		.domain_flags = b->flags & KFD_MEM_PUBLIC ?
					0 : AMDGPU_GEM_CREATE_NO_CPU_ACCESS,
	};
	return soft_copy_out(a->value, &info, sizeof(info));
}

/* ------------------------------------------------------- ends and files -- */

/* Unless it takes too long: what runs will miss what is gone. */
static void await_rings(struct soft_dev *d, const struct soft_card *c)
{
	struct drm_ring **r = &d->drm->ring[c->index][0][0];
	const uint64_t until = time_mono_ns() + AWAIT_NS;

	for (size_t i = 0; i < DRM_IPS * DRM_RINGS; i++)
		if (r[i] && !drm_ring_wait(r[i], drm_ring_submitted(r[i]),
					   until))
			return;
}

static void drop_buffer(struct soft_dev *d, uint32_t handle)
{
	const struct soft_bo *b = d->bo[handle];
	struct drm_ring **r = &d->drm->ring[b->card->index][0][0];

	for (size_t i = 0; i < DRM_IPS * DRM_RINGS; i++)
		if (r[i])
			drm_ring_forget(r[i], b->host, b->size);
	for (size_t i = d->drm->map.n; i-- > 0;)
		if (d->drm->map.v[i].bo == handle)
			drop_map(d, i);
	soft_bo_delete(d, handle);
}

int drm_gem_close(struct soft_dev *d, const struct soft_file *f,
		  uint32_t handle)
{
	if (!drm_bo(d, f, handle))
		return -EINVAL;
	await_rings(d, d->bo[handle]->card);
	drop_buffer(d, handle);
	return 0;
}

void drm_gem_close_all(struct soft_dev *d, const struct soft_file *f)
{
	await_rings(d, f->card);
	for (uint32_t i = 1; i < d->n_bo; i++)
		if (drm_bo(d, f, i))
			drop_buffer(d, i);
	for (size_t i = d->drm->map.n; i-- > 0;)
		if (d->drm->map.v[i].file == f->id)
			drop_map(d, i);
}

int drm_prime_export(struct soft_dev *d, const struct soft_file *f,
		     struct drm_prime_handle *a)
{
	struct soft_bo *b = drm_bo(d, f, a->handle);

	if (!b)
		return -ENOENT;
	a->fd = soft_bo_export(d, b, a->flags & O_CLOEXEC);
	return a->fd < 0 ? a->fd : 0;
}

int drm_prime_import(struct soft_dev *d, const struct soft_file *f,
		     struct drm_prime_handle *a)
{
	uint64_t handle;
	const int ret = soft_bo_import(f->card, a->fd, 0, &handle);

	if (ret)
		return ret;
	a->handle = (uint32_t)handle;
	d->bo[a->handle]->drm_file = f->id;
	d->bo[a->handle]->flags |= KFD_MEM_PUBLIC;
	return 0;
}
