/*
 * kfd/soft/device/drm/syncobj.c - synchronisation objects: names for fences, of
 * one at a time (binary) or in a line of points (timeline).
 *
 * An object has the fences that were put into it, in order; a point is reached
 * when its fence and all before it are.  Rings run their jobs in order, so a
 * fence is a ring and a number.
 */
#include <errno.h>
#include <time.h>

#include "kfd/soft/device/drm/drm.h"

#define LOOK_NS	    500000u /* between looks at what another thread may submit */
#define HANDLES_MAX 4096u

static struct drm_syncobj *find_syncobj(struct soft_dev *d,
					const struct soft_file *f, uint32_t id)
{
	for (size_t i = 0; i < d->drm->sync.n; i++)
		if (d->drm->sync.v[i].id == id &&
		    d->drm->sync.v[i].file == f->id)
			return &d->drm->sync.v[i];
	return NULL;
}

static bool is_reached(const struct drm_fence *f)
{
	return !f->ring || drm_ring_wait(f->ring, f->seq, 0);
}

/* ------------------------------------------------------------- contents -- */

static void set_fence(struct drm_syncobj *s, struct drm_fence fence)
{
	s->fence.n = 0;
	s->reached = 0;
	s->timeline = false;
	vec_push(&s->fence, (struct drm_sync_point){ 0, fence });
}

/* Points only grow; the last one stays, since it says how far they are. */
static void add_point(struct drm_syncobj *s, uint64_t point,
		      struct drm_fence fence)
{
	size_t gone = 0;

	while (gone < s->fence.n && is_reached(&s->fence.v[gone].fence))
		s->reached = s->fence.v[gone++].value;
	for (size_t i = gone; i < s->fence.n; i++)
		s->fence.v[i - gone] = s->fence.v[i];
	s->fence.n -= gone;
	if (s->fence.n && s->fence.v[s->fence.n - 1].value > point)
		point = s->fence.v[s->fence.n - 1].value;
	if (s->reached > point)
		point = s->reached;
	s->timeline = true;
	vec_push(&s->fence, (struct drm_sync_point){ point, fence });
}

/* Fences [0, n) have to be reached for a point, 0: for all there is. */
static bool count_fences(const struct drm_syncobj *s, uint64_t point, size_t *n)
{
	*n = 0;
	if (point && s->timeline && s->reached >= point)
		return true;
	if (!s->fence.n || (point && !s->timeline))
		return false;
	for (*n = 1; point && *n <= s->fence.n; (*n)++)
		if (s->fence.v[*n - 1].value >= point)
			return true;
	*n = s->fence.n;
	return !point;
}

enum sync_state { SYNC_NONE, SYNC_PENDING, SYNC_REACHED };

/* Of a point; *first is the first fence that is not reached. */
static enum sync_state look_at(const struct drm_syncobj *s, uint64_t point,
			       struct drm_fence *first)
{
	size_t n;

	if (!count_fences(s, point, &n))
		return SYNC_NONE;
	for (size_t i = 0; i < n; i++)
		if (!is_reached(&s->fence.v[i].fence)) {
			*first = s->fence.v[i].fence;
			return SYNC_PENDING;
		}
	return SYNC_REACHED;
}

/* ------------------------------------------------------ in a submission -- */

int drm_sync_depend(struct soft_dev *d, const struct soft_file *f, uint32_t id,
		    uint64_t point, struct drm_job *job)
{
	const struct drm_syncobj *s = find_syncobj(d, f, id);
	size_t n;

	if (!s)
		return -ENOENT;
	if (!count_fences(s, point, &n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (is_reached(&s->fence.v[i].fence))
			continue;
		if (job->n_deps == DRM_DEPS_MAX)
			return -EINVAL;
		job->dep[job->n_deps++] = s->fence.v[i].fence;
	}
	return 0;
}

bool drm_sync_is_there(struct soft_dev *d, const struct soft_file *f,
		       uint32_t id)
{
	return find_syncobj(d, f, id);
}

void drm_sync_put(struct soft_dev *d, const struct soft_file *f, uint32_t id,
		  uint64_t point, struct drm_fence fence)
{
	struct drm_syncobj *s = find_syncobj(d, f, id);

	if (s && point)
		add_point(s, point, fence);
	else if (s)
		set_fence(s, fence);
}

/* ---------------------------------------------------------------- calls -- */

static int create_syncobj(struct soft_dev *d, const struct soft_file *f,
			  struct drm_syncobj_create *a)
{
	const struct drm_syncobj s = { .id = ++d->drm->next_id, .file = f->id };

	if (a->flags & ~(uint32_t)DRM_SYNCOBJ_CREATE_SIGNALED)
		return -EINVAL;
	vec_push(&d->drm->sync, s);
	if (a->flags)
		set_fence(&d->drm->sync.v[d->drm->sync.n - 1],
			  (struct drm_fence){ 0 });
	a->handle = s.id;
	return 0;
}

static void drop_syncobj(struct soft_dev *d, struct drm_syncobj *s)
{
	vec_fini(&s->fence);
	*s = d->drm->sync.v[--d->drm->sync.n];
}

static int destroy_syncobj(struct soft_dev *d, const struct soft_file *f,
			   const struct drm_syncobj_destroy *a)
{
	struct drm_syncobj *s = find_syncobj(d, f, a->handle);

	if (!s || a->pad)
		return -EINVAL;
	drop_syncobj(d, s);
	return 0;
}

void drm_sync_close(struct soft_dev *d, const struct soft_file *f)
{
	for (size_t i = d->drm->sync.n; i-- > 0;)
		if (d->drm->sync.v[i].file == f->id)
			drop_syncobj(d, &d->drm->sync.v[i]);
}

/* Handle i of a program's array, and maybe its point. */
static int read_handle(uint64_t handles, uint64_t points, uint32_t i,
		       uint32_t *id, uint64_t *point)
{
	*point = 0;
	if (soft_copy_in(id, handles + i * 4ull, sizeof(*id)) ||
	    (points && soft_copy_in(point, points + i * 8ull, sizeof(*point))))
		return -EFAULT;
	return 0;
}

static int reset_one(struct drm_syncobj *s, uint64_t *point, uint32_t flags)
{
	(void)point;
	(void)flags;
	s->fence.n = 0;
	s->reached = 0;
	s->timeline = false;
	return 0;
}

static int signal_one(struct drm_syncobj *s, uint64_t *point, uint32_t flags)
{
	(void)flags;
	if (*point)
		add_point(s, *point, (struct drm_fence){ 0 });
	else
		set_fence(s, (struct drm_fence){ 0 });
	return 0;
}

static int query_one(struct drm_syncobj *s, uint64_t *point, uint32_t flags)
{
	const bool last = flags & DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED;

	*point = s->timeline ? s->reached : 0;
	for (size_t i = 0; s->timeline && i < s->fence.n; i++) {
		if (!last && !is_reached(&s->fence.v[i].fence))
			break;
		*point = s->fence.v[i].value;
	}
	return 0;
}

/* Each of the array's objects is given to `fn`, after all were found. */
static int for_each(struct soft_dev *d, const struct soft_file *f,
		    const struct drm_syncobj_timeline_array *a,
		    int (*fn)(struct drm_syncobj *s, uint64_t *point,
			      uint32_t flags))
{
	uint64_t point;
	uint32_t id;

	if (!a->count_handles || a->count_handles > HANDLES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < 2 * a->count_handles; i++) {
		const uint32_t k = i % a->count_handles;
		int ret = read_handle(a->handles, a->points, k, &id, &point);
		struct drm_syncobj *s = ret ? NULL : find_syncobj(d, f, id);

		if (!ret && !s)
			ret = -ENOENT;
		if (!ret && i >= a->count_handles)
			ret = fn(s, &point, a->flags);
		if (!ret && i >= a->count_handles && fn == query_one)
			ret = soft_copy_out(a->points + k * 8ull, &point,
					    sizeof(point));
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * What one has becomes another's, or a point of it: the fence of a point stands
 * for those before it, too, so these go along, in front of it.
 */
static int transfer_fence(struct soft_dev *d, const struct soft_file *f,
			  const struct drm_syncobj_transfer *a)
{
	struct drm_syncobj *from = find_syncobj(d, f, a->src_handle);
	struct drm_syncobj *to = find_syncobj(d, f, a->dst_handle);
	VEC(struct drm_fence) all = { 0 };
	uint64_t last;
	size_t n;

	if (a->pad)
		return -EINVAL;
	if (!from || !to)
		return -ENOENT;
	if (!count_fences(from, a->src_point, &n))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!is_reached(&from->fence.v[i].fence))
			vec_push(&all, from->fence.v[i].fence);
	if (!all.n)
		vec_push(&all, (struct drm_fence){ 0 });
	if (!a->dst_point)
		reset_one(to, NULL, 0);
	last = to->fence.n ? to->fence.v[to->fence.n - 1].value : to->reached;
	for (size_t i = 0; i + 1 < all.n; i++)
		vec_push(&to->fence, (struct drm_sync_point){ last, all.v[i] });
	if (a->dst_point)
		add_point(to, a->dst_point, all.v[all.n - 1]);
	else
		vec_push(&to->fence,
			 (struct drm_sync_point){ 0, all.v[all.n - 1] });
	vec_fini(&all);
	return 0;
}

int drm_sync_call(struct soft_dev *d, const struct soft_file *f, unsigned nr,
		  union drm_sync_arg *a)
{
	const struct drm_syncobj_timeline_array all = {
		.handles = a->array.handles,
		.count_handles = a->array.count_handles,
	};

	switch (nr) {
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_CREATE):
		return create_syncobj(d, f, &a->create);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_DESTROY):
		return destroy_syncobj(d, f, &a->destroy);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_RESET):
		return a->array.pad ? -EINVAL : for_each(d, f, &all, reset_one);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_SIGNAL):
		return a->array.pad ? -EINVAL :
				      for_each(d, f, &all, signal_one);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL):
		return a->points.flags ? -EINVAL :
					 for_each(d, f, &a->points, signal_one);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_QUERY):
		return a->points.flags &
				       ~(uint32_t)
					       DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED ?
			       -EINVAL :
			       for_each(d, f, &a->points, query_one);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TRANSFER):
		return transfer_fence(d, f, &a->transfer);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD):
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE):
		return -EOPNOTSUPP;
	default:
		return -ENOTTY;
	}
}

/* ---------------------------------------------------------------- waits -- */

/* One look: SYNC_* or -errno; takes dev->lock. */
static int look_once(struct soft_dev *d, const struct soft_file *f, uint32_t id,
		     uint64_t point, struct drm_fence *first)
{
	int ret = -ENOENT;

	pthread_mutex_lock(&d->lock);
	const struct drm_syncobj *s = find_syncobj(d, f, id);

	if (s)
		ret = (int)look_at(s, point, first);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

static void sleep_until(uint64_t until_ns)
{
	const struct timespec t = { (time_t)(until_ns / 1000000000u),
				    (long)(until_ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Waits for the fence, or for one to be submitted, but not for long. */
static void wait_some(const struct drm_fence *fence, uint64_t until_ns)
{
	const uint64_t soon = time_mono_ns() + LOOK_NS;
	const uint64_t until = until_ns < soon ? until_ns : soon;

	if (!fence->ring || !drm_ring_wait(fence->ring, fence->seq, until))
		sleep_until(until);
}

/* All handles once: 1 reached (which in *first), 0 not yet, -errno. */
static int look_around(struct soft_dev *d, const struct soft_file *f,
		       const struct drm_syncobj_timeline_wait *a,
		       uint32_t *first, struct drm_fence *pending)
{
	const bool all = a->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL;
	const bool later = a->flags & (DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT |
				       DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE);
	const bool there = a->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE;
	uint32_t reached = 0;

	for (uint32_t i = 0; i < a->count_handles; i++) {
		uint64_t point;
		uint32_t id;
		int ret = read_handle(a->handles, a->points, i, &id, &point);

		if (!ret)
			ret = look_once(d, f, id, point, pending);
		if (ret < 0)
			return ret;
		if (ret == SYNC_NONE && !later)
			return -EINVAL;
		if (ret == SYNC_REACHED || (there && ret == SYNC_PENDING)) {
			if (!reached++)
				*first = i;
		}
	}
	return all ? reached == a->count_handles : reached > 0;
}

int drm_sync_wait(struct soft_dev *d, const struct soft_file *f, bool timeline,
		  struct drm_syncobj_timeline_wait *a)
{
	const uint32_t known =
		DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL |
		DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT |
		(timeline ? DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE : 0);
	const uint64_t until = a->timeout_nsec < 0 ? 0 :
						     (uint64_t)a->timeout_nsec;

	if (a->flags & ~known || a->count_handles > HANDLES_MAX)
		return -EINVAL;
	if (!a->count_handles)
		return 0;
	for (;;) {
		struct drm_fence pending = { 0 };
		const int ret =
			look_around(d, f, a, &a->first_signaled, &pending);

		if (ret)
			return ret < 0 ? ret : 0;
		if (time_mono_ns() >= until)
			return -ETIME;
		wait_some(&pending, until);
	}
}
