/*
 * kfd/soft/device/drm/drm.h - the DRM nodes: what their files share.
 *
 *	drm.c     the calls, and those that answer questions
 *	gem.c     buffers, their addresses and their files
 *	submit.c  contexts and the command buffers that are submitted in them
 *	syncobj.c synchronisation objects
 *	ring.c    the rings that run those
 *
 * Private to this folder.  Buffers, contexts and lists belong to the file that
 * made them and go with it.  All files of a card share one address space, which
 * is also that of /dev/kfd.
 *
 * All calls return 0 or -errno.
 */
#ifndef T0_KFD_SOFT_DEVICE_DRM_H
#define T0_KFD_SOFT_DEVICE_DRM_H

#include <amdgpu_drm.h>
#include <drm.h>

#include "kfd/soft/device/dev.h"

#define DRM_IPS 3   /* AMDGPU_HW_IP_GFX, _COMPUTE, _DMA */
#define DRM_RINGS 4 /* of one of them, at most */
#define DRM_IBS_MAX 16
#define DRM_DEPS_MAX 64
#define DRM_SYNCS_MAX 64 /* objects that one submission puts a fence into */

/* A buffer, or a part of it, in the address space of its card. */
struct gem_map {
	uint64_t va, size_bytes;
	uint32_t bo; /* its index in soft_dev.bo; 0: nothing, read as zeros */
	void *zeros; /* of the latter: whose pages they are */
	uint64_t file;
	struct soft_card *card;
};
struct gem_ctx {
	uint32_t id, vram_lost; /* the card's, when it was made */
	uint64_t file;
	struct soft_card *card;
};
struct gem_list {
	uint32_t id;
	uint64_t file;
};

/* A ring's command buffers up to `seq`. */
struct drm_fence {
	struct drm_ring *ring; /* NULL: of a ring that never ran anything */
	uint64_t seq;
};
/* A synchronisation object: syncobj.c. */
struct drm_sync_point {
	uint64_t value; /* binary: 0 */
	struct drm_fence fence;
};
struct drm_syncobj {
	uint32_t id;
	uint64_t file;
	bool timeline;
	uint64_t reached; /* the last point of those that are no longer kept */
	VEC(struct drm_sync_point) fence;
};
struct drm_job {
	struct drm_job *next;
	uint64_t seq;
	unsigned n_ibs, n_deps;
	struct {
		uint64_t va;
		uint32_t bytes;
	} ib[DRM_IBS_MAX];
	struct drm_fence dep[DRM_DEPS_MAX];
	uint64_t *user_fence; /* gets seq, or NULL; its ring's lock */
};

/* What the files of a device have made; dev->lock. */
struct soft_drm {
	VEC(struct gem_map) map;
	VEC(struct gem_ctx) ctx;
	VEC(struct gem_list) list;
	VEC(struct drm_syncobj) sync;
	uint32_t next_id;
	struct drm_ring *ring[SOFT_CARDS_MAX][DRM_IPS][DRM_RINGS];
};

/* --------------------------------------------------------------- gem.c ---- */

/* The file's buffer, or NULL.  dev->lock held, as by all of this part. */
struct soft_bo *drm_bo(struct soft_dev *d, const struct soft_file *f,
		       uint32_t handle);
int drm_gem_create(const struct soft_file *f, union drm_amdgpu_gem_create *a);
int drm_gem_mmap(struct soft_dev *d, const struct soft_file *f,
		 union drm_amdgpu_gem_mmap *a);
int drm_gem_va(struct soft_dev *d, const struct soft_file *f,
	       const struct drm_amdgpu_gem_va *a);
int drm_gem_metadata(struct soft_dev *d, const struct soft_file *f,
		     struct drm_amdgpu_gem_metadata *a);
int drm_gem_op(struct soft_dev *d, const struct soft_file *f,
	       const struct drm_amdgpu_gem_op *a);
/* When what was submitted is done, as the kernel keeps it so long. */
int drm_gem_close(struct soft_dev *d, const struct soft_file *f,
		  uint32_t handle);
/* The same of all that the file has. */
void drm_gem_close_all(struct soft_dev *d, const struct soft_file *f);
int drm_prime_export(struct soft_dev *d, const struct soft_file *f,
		     struct drm_prime_handle *a);
int drm_prime_import(struct soft_dev *d, const struct soft_file *f,
		     struct drm_prime_handle *a);

/* ------------------------------------------------------------ submit.c ---- */

/* With dev->lock held, but for the waits. */
int drm_context(struct soft_dev *d, const struct soft_file *f,
		union drm_amdgpu_ctx *a);
int drm_bo_list(struct soft_dev *d, const struct soft_file *f,
		union drm_amdgpu_bo_list *a);
int drm_submit(struct soft_dev *d, const struct soft_file *f,
	       union drm_amdgpu_cs *a);
int drm_wait_submitted(struct soft_dev *d, const struct soft_file *f,
		       union drm_amdgpu_wait_cs *a);
int drm_wait_fences(struct soft_dev *d, const struct soft_file *f,
		    union drm_amdgpu_wait_fences *a);
int drm_wait_idle(struct soft_dev *d, const struct soft_file *f,
		  union drm_amdgpu_gem_wait_idle *a);

/* ----------------------------------------------------------- syncobj.c ---- */

union drm_sync_arg {
	struct drm_syncobj_create create;
	struct drm_syncobj_destroy destroy;
	struct drm_syncobj_array array;
	struct drm_syncobj_timeline_array points;
	struct drm_syncobj_transfer transfer;
};
/* One of the calls that do not wait; -ENOTTY: another.  dev->lock held. */
int drm_sync_call(struct soft_dev *d, const struct soft_file *f, unsigned nr,
		union drm_sync_arg *a);
/* -ETIME: not in time.  dev->lock is taken. */
int drm_sync_wait(struct soft_dev *d, const struct soft_file *f, bool timeline,
		  struct drm_syncobj_timeline_wait *a);
/* The job runs behind what the object has at a point (0: at all). */
int drm_sync_depend(struct soft_dev *d, const struct soft_file *f, uint32_t id,
		    uint64_t point, struct drm_job *job);
bool drm_sync_is_there(struct soft_dev *d, const struct soft_file *f,
		       uint32_t id);
/* The fence becomes the object's, or its next point. */
void drm_sync_put(struct soft_dev *d, const struct soft_file *f, uint32_t id,
		  uint64_t point, struct drm_fence fence);
/* Those of a file go. */
void drm_sync_close(struct soft_dev *d, const struct soft_file *f);

/* -------------------------------------------------------------- ring.c ---- */

/* The card's ring, made when it is asked for first; NULL: there is none. */
struct drm_ring *drm_ring_get(struct soft_dev *d, struct soft_card *c,
			      uint32_t ip, uint32_t ring);
/* What was submitted to it last. */
uint64_t drm_ring_submitted(struct drm_ring *r);
/* Append a job, which is the ring's from then on: its number. */
uint64_t drm_ring_add(struct drm_ring *r, struct drm_job *job);
/* Has it come so far?  Waits until the monotonic clock shows `until_ns`. */
bool drm_ring_wait(struct drm_ring *r, uint64_t seq, uint64_t until_ns);
/* No fence is written to this host memory any more. */
void drm_ring_forget(struct drm_ring *r, const uint8_t *host, uint64_t bytes);
/* End what it runs; others may still wait for it. */
void drm_ring_stop(struct drm_ring *r);
/* It was stopped. */
void drm_ring_free(struct drm_ring *r);

#endif
