/*
 * kfd/soft/device/drm/submit.c - contexts, lists of buffers, the submission of
 * command buffers, and waits for them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/drm/drm.h"

#define CHUNKS_MAX 64
#define LOOK_NS 1000000u /* between looks at several rings */

/* ------------------------------------------------------------- contexts -- */

static struct gem_ctx *find_ctx(struct soft_dev *d, const struct soft_file *f,
				uint32_t id)
{
	for (size_t i = 0; i < d->drm->ctx.n; i++)
		if (d->drm->ctx.v[i].id == id && d->drm->ctx.v[i].file == f->id)
			return &d->drm->ctx.v[i];
	return NULL;
}

static uint32_t count_losses(const struct soft_card *c)
{
	return __atomic_load_n(&c->vram_lost, __ATOMIC_RELAXED);
}

static bool is_lost(const struct gem_ctx *x)
{
	return x->vram_lost != count_losses(x->card);
}

static int query_state(const struct gem_ctx *x, bool second,
		       union drm_amdgpu_ctx *a)
{
	const bool lost = is_lost(x);

	memset(a, 0, sizeof(*a));
	if (second)
		a->out.state.flags = lost ? AMDGPU_CTX_QUERY2_FLAGS_RESET |
					    AMDGPU_CTX_QUERY2_FLAGS_VRAMLOST : 0;
	else
		a->out.state.reset_status = lost ? AMDGPU_CTX_UNKNOWN_RESET :
						   AMDGPU_CTX_NO_RESET;
	return 0;
}

int drm_context(struct soft_dev *d, const struct soft_file *f,
		union drm_amdgpu_ctx *a)
{
	struct gem_ctx *x = find_ctx(d, f, a->in.ctx_id);
	struct gem_ctx made = { .id = d->drm->next_id + 1, .file = f->id,
				.card = f->card,
				.vram_lost = count_losses(f->card) };

	if (a->in.op == AMDGPU_CTX_OP_ALLOC_CTX) {
		d->drm->next_id++;
		vec_push(&d->drm->ctx, made);
		memset(a, 0, sizeof(*a));
		a->out.alloc.ctx_id = made.id;
		return 0;
	}
	if (!x)
		return -EINVAL;
	switch (a->in.op) {
	case AMDGPU_CTX_OP_FREE_CTX:
		*x = d->drm->ctx.v[--d->drm->ctx.n];
		return 0;
	case AMDGPU_CTX_OP_QUERY_STATE:
		return query_state(x, false, a);
	case AMDGPU_CTX_OP_QUERY_STATE2:
		return query_state(x, true, a);
	default:
		return -EINVAL;
	}
}

/* ---------------------------------------------------------------- lists -- */

/* Are all of them buffers of the file? */
static int check_list(struct soft_dev *d, const struct soft_file *f,
		      const struct drm_amdgpu_bo_list_in *in)
{
	struct drm_amdgpu_bo_list_entry e;

	if (in->bo_info_size < sizeof(e) && in->bo_number)
		return -EINVAL;
	for (uint32_t i = 0; i < in->bo_number; i++) {
		if (soft_copy_in(&e, in->bo_info_ptr +
					     (uint64_t)i * in->bo_info_size,
				 sizeof(e)))
			return -EFAULT;
		if (!drm_bo(d, f, e.bo_handle))
			return -ENOENT;
	}
	return 0;
}

static struct gem_list *find_list(struct soft_dev *d, const struct soft_file *f,
				  uint32_t id)
{
	for (size_t i = 0; i < d->drm->list.n; i++)
		if (d->drm->list.v[i].id == id &&
		    d->drm->list.v[i].file == f->id)
			return &d->drm->list.v[i];
	return NULL;
}

/* All memory is always there: a list is looked through, and forgotten. */
int drm_bo_list(struct soft_dev *d, const struct soft_file *f,
		union drm_amdgpu_bo_list *a)
{
	struct gem_list *x = find_list(d, f, a->in.list_handle);
	uint32_t id = a->in.list_handle;
	int ret;

	if (a->in.operation == AMDGPU_BO_LIST_OP_DESTROY) {
		if (!x)
			return -EINVAL;
		*x = d->drm->list.v[--d->drm->list.n];
		return 0;
	}
	ret = check_list(d, f, &a->in);
	if (ret)
		return ret;
	if (a->in.operation == AMDGPU_BO_LIST_OP_CREATE) {
		id = ++d->drm->next_id;
		vec_push(&d->drm->list, (struct gem_list){ id, f->id });
	} else if (a->in.operation != AMDGPU_BO_LIST_OP_UPDATE || !x) {
		return -EINVAL;
	}
	memset(a, 0, sizeof(*a));
	a->out.list_handle = id;
	return 0;
}

/* ----------------------------------------------------------- submission -- */

/* What a submission is made of, as its chunks are read. */
struct submission {
	struct soft_dev *d;
	const struct soft_file *f;
	struct drm_ring *ring;
	struct drm_job *job;
	unsigned n_syncs;
	struct drm_amdgpu_cs_chunk_syncobj sync[DRM_SYNCS_MAX];
};

static int take_ib(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_ib *ib = data;
	struct drm_ring *r;

	if (ib->ip_instance || ib->ip_type >= AMDGPU_HW_IP_NUM)
		return -EINVAL;
	r = drm_ring_get(s->d, s->f->card, ib->ip_type, ib->ring);
	/* All buffers of a submission are for one ring. */
	if (!r || (s->ring && s->ring != r) || s->job->n_ibs == DRM_IBS_MAX ||
	    ib->ib_bytes % 4 || !ib->ib_bytes || ib->va_start % 4)
		return -EINVAL;
	s->ring = r;
	s->job->ib[s->job->n_ibs].va = ib->va_start;
	s->job->ib[s->job->n_ibs++].bytes = ib->ib_bytes;
	return 0;
}

static int take_fence(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_fence *x = data;
	const struct soft_bo *b = drm_bo(s->d, s->f, x->handle);

	if (!b || b->size != KFD_PAGE_BYTES || x->offset % 8 ||
	    x->offset > b->size - 8)
		return -EINVAL;
	s->job->user_fence = (uint64_t *)(b->host + x->offset);
	return 0;
}

static int take_dependency(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_dep *x = data;
	struct drm_ring *r = drm_ring_get(s->d, s->f->card, x->ip_type,
					  x->ring);

	if (!r || !find_ctx(s->d, s->f, x->ctx_id) || x->ip_instance ||
	    s->job->n_deps == DRM_DEPS_MAX ||
	    x->handle > drm_ring_submitted(r))
		return -EINVAL;
	s->job->dep[s->job->n_deps++] = (struct drm_fence){ r, x->handle };
	return 0;
}

static int take_handles(struct submission *s, const void *data)
{
	return check_list(s->d, s->f, data);
}

/* The job begins behind what an object has, or behind a point of it. */
static int take_sync_in(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_sem *x = data;

	return drm_sync_depend(s->d, s->f, x->handle, 0, s->job);
}

static int take_point_in(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_syncobj *x = data;

	return drm_sync_depend(s->d, s->f, x->handle, x->point, s->job);
}

/* Its end is put into an object, or is a point of it. */
static int take_point_out(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_syncobj *x = data;

	if (!drm_sync_is_there(s->d, s->f, x->handle))
		return -EINVAL;
	if (s->n_syncs == DRM_SYNCS_MAX)
		return -EINVAL;
	s->sync[s->n_syncs++] = *x;
	return 0;
}

static int take_sync_out(struct submission *s, const void *data)
{
	const struct drm_amdgpu_cs_chunk_sem *x = data;
	const struct drm_amdgpu_cs_chunk_syncobj point = { x->handle, 0, 0 };

	return take_point_out(s, &point);
}

/* By chunk id: how large an element is, and who takes it. */
static const struct {
	uint32_t bytes;
	int (*fn)(struct submission *s, const void *data);
} chunks[] = {
	[AMDGPU_CHUNK_ID_IB] = { sizeof(struct drm_amdgpu_cs_chunk_ib),
				 take_ib },
	[AMDGPU_CHUNK_ID_FENCE] = { sizeof(struct drm_amdgpu_cs_chunk_fence),
				    take_fence },
	[AMDGPU_CHUNK_ID_DEPENDENCIES] = {
		sizeof(struct drm_amdgpu_cs_chunk_dep), take_dependency },
	[AMDGPU_CHUNK_ID_SCHEDULED_DEPENDENCIES] = {
		sizeof(struct drm_amdgpu_cs_chunk_dep), take_dependency },
	[AMDGPU_CHUNK_ID_BO_HANDLES] = { sizeof(struct drm_amdgpu_bo_list_in),
					 take_handles },
	[AMDGPU_CHUNK_ID_SYNCOBJ_IN] = { sizeof(struct drm_amdgpu_cs_chunk_sem),
					 take_sync_in },
	[AMDGPU_CHUNK_ID_SYNCOBJ_OUT] = {
		sizeof(struct drm_amdgpu_cs_chunk_sem), take_sync_out },
	[AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT] = {
		sizeof(struct drm_amdgpu_cs_chunk_syncobj), take_point_in },
	[AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL] = {
		sizeof(struct drm_amdgpu_cs_chunk_syncobj), take_point_out },
};

static int take_chunk(struct submission *s, uint64_t pointer)
{
	struct drm_amdgpu_cs_chunk c;
	uint64_t at, data[8];
	uint32_t bytes;
	int ret;

	if (soft_copy_in(&at, pointer, sizeof(at)) ||
	    soft_copy_in(&c, at, sizeof(c)))
		return -EFAULT;
	if (c.chunk_id >= ARRAY_SIZE(chunks) || !chunks[c.chunk_id].fn)
		return -EINVAL;
	bytes = chunks[c.chunk_id].bytes;
	if (c.length_dw * 4ull < bytes)
		return -EINVAL;
	for (uint64_t i = 0; i < c.length_dw * 4ull / bytes; i++) {
		ret = soft_copy_in(data, c.chunk_data + i * bytes, bytes);
		if (!ret)
			ret = chunks[c.chunk_id].fn(s, data);
		if (ret)
			return ret;
	}
	return 0;
}

static int read_chunks(struct submission *s, const struct drm_amdgpu_cs_in *in)
{
	const struct gem_ctx *x = find_ctx(s->d, s->f, in->ctx_id);

	if (!x || !in->num_chunks || in->num_chunks > CHUNKS_MAX)
		return -EINVAL;
	if (is_lost(x))
		return -ECANCELED;
	if (in->bo_list_handle && !find_list(s->d, s->f, in->bo_list_handle))
		return -ENOENT;
	for (uint32_t i = 0; i < in->num_chunks; i++) {
		const int ret = take_chunk(s, in->chunks + i * 8ull);

		if (ret)
			return ret;
	}
	return s->job->n_ibs ? 0 : -EINVAL;
}

int drm_submit(struct soft_dev *d, const struct soft_file *f,
	       union drm_amdgpu_cs *a)
{
	struct submission s = { .d = d, .f = f,
				.job = xcalloc(1, sizeof(*s.job)) };
	struct drm_fence fence;
	const int ret = read_chunks(&s, &a->in);

	if (ret) {
		free(s.job);
		return ret;
	}
	memset(a, 0, sizeof(*a));
	a->out.handle = drm_ring_add(s.ring, s.job);
	fence = (struct drm_fence){ s.ring, a->out.handle };
	for (unsigned i = 0; i < s.n_syncs; i++)
		drm_sync_put(d, f, s.sync[i].handle, s.sync[i].point, fence);
	return 0;
}

/* ---------------------------------------------------------------- waits -- */

/* dev->lock is taken here: what is waited for lives until the device ends. */
static int find_fence(struct soft_dev *d, const struct soft_file *f,
		      const struct drm_amdgpu_fence *x, struct drm_fence *out)
{
	struct drm_ring *r = NULL;
	uint64_t last = 0;

	pthread_mutex_lock(&d->lock);
	if (find_ctx(d, f, x->ctx_id) && !x->ip_instance)
		r = drm_ring_get(d, f->card, x->ip_type, x->ring);
	if (r)
		last = drm_ring_submitted(r);
	pthread_mutex_unlock(&d->lock);
	*out = (struct drm_fence){ r, x->seq_no == UINT64_MAX ? last :
								x->seq_no };
	return !r || out->seq > last ? -EINVAL : 0;
}

int drm_wait_submitted(struct soft_dev *d, const struct soft_file *f,
		       union drm_amdgpu_wait_cs *a)
{
	const struct drm_amdgpu_fence x = { a->in.ctx_id, a->in.ip_type,
					    a->in.ip_instance, a->in.ring,
					    a->in.handle };
	const uint64_t until = a->in.timeout;
	struct drm_fence fence;
	const int ret = find_fence(d, f, &x, &fence);

	if (ret)
		return ret;
	memset(a, 0, sizeof(*a));
	a->out.status = !drm_ring_wait(fence.ring, fence.seq, until);
	return 0;
}

/* Fence i of the array is waited for until then: 1 if it came, 0, -errno. */
static int wait_one(struct soft_dev *d, const struct soft_file *f,
		    uint64_t array, uint32_t i, uint64_t until)
{
	struct drm_amdgpu_fence x;
	struct drm_fence fence;
	int ret;

	if (soft_copy_in(&x, array + (uint64_t)i * sizeof(x), sizeof(x)))
		return -EFAULT;
	ret = find_fence(d, f, &x, &fence);
	return ret ? ret : drm_ring_wait(fence.ring, fence.seq, until);
}

/* The same of all of them. */
static int wait_all(struct soft_dev *d, const struct soft_file *f,
		    const struct drm_amdgpu_wait_fences_in *in)
{
	int ret = 1;

	for (uint32_t i = 0; ret > 0 && i < in->fence_count; i++)
		ret = wait_one(d, f, in->fences, i, in->timeout_ns);
	return ret;
}

/* Of any: *first is which, or ~0.  All are looked at, then one waited for. */
static int wait_any(struct soft_dev *d, const struct soft_file *f,
		    const struct drm_amdgpu_wait_fences_in *in, uint32_t *first)
{
	uint64_t now, until;
	int ret = 0;

	do {
		now = time_mono_ns();
		until = in->timeout_ns < now + LOOK_NS ? in->timeout_ns :
							 now + LOOK_NS;
		for (uint32_t i = 0; !ret && i < in->fence_count; i++) {
			ret = wait_one(d, f, in->fences, i, i ? 0 : until);
			*first = i;
		}
	} while (!ret && now < in->timeout_ns && in->fence_count);
	if (!ret)
		*first = UINT32_MAX;
	return ret;
}

int drm_wait_fences(struct soft_dev *d, const struct soft_file *f,
		    union drm_amdgpu_wait_fences *a)
{
	const struct drm_amdgpu_wait_fences_in in = a->in;
	uint32_t first = UINT32_MAX;
	const int ret = in.wait_all ? wait_all(d, f, &in) :
				      wait_any(d, f, &in, &first);

	if (ret < 0)
		return ret;
	memset(a, 0, sizeof(*a));
	a->out.status = (uint32_t)ret;
	a->out.first_signaled = first;
	return 0;
}

/* What was submitted so far may use it: all of that. */
int drm_wait_idle(struct soft_dev *d, const struct soft_file *f,
		  union drm_amdgpu_gem_wait_idle *a)
{
	const uint64_t until = a->in.timeout;
	struct drm_fence fence[DRM_IPS * DRM_RINGS];
	unsigned n = 0;
	uint32_t domain;
	bool idle = true;

	pthread_mutex_lock(&d->lock);
	const struct soft_bo *b = drm_bo(d, f, a->in.handle);

	domain = b && b->flags & KFD_MEM_VRAM ? AMDGPU_GEM_DOMAIN_VRAM :
						AMDGPU_GEM_DOMAIN_GTT;
	for (unsigned i = 0; b && i < DRM_IPS * DRM_RINGS; i++) {
		struct drm_ring *r = d->drm->ring[f->card->index]
						 [i / DRM_RINGS][i % DRM_RINGS];

		if (r)
			fence[n++] = (struct drm_fence){
				r, drm_ring_submitted(r) };
	}
	pthread_mutex_unlock(&d->lock);
	if (!b)
		return -ENOENT;
	for (unsigned i = 0; i < n; i++)
		idle &= drm_ring_wait(fence[i].ring, fence[i].seq, until);
	memset(a, 0, sizeof(*a));
	a->out.status = !idle;
	a->out.domain = domain;
	return 0;
}
