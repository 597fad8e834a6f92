/*
 * kfd/soft/device/drm/ring.c - the kernel's rings: a thread each, which runs
 * the command buffers of its jobs in order.
 *
 * A ring is a queue of the device that no program sees: its command buffers
 * are run by the engines of packets, and what they refuse or miss has the same
 * ends, a reset or a page fault.  A job that ended so counts as done.
 */
#include <stdlib.h>

#include "kfd/soft/device/drm/drm.h"

#define LOOK_AGAIN_NS 200000u

struct drm_ring {
	struct soft_queue q;
	pthread_t thread;
	/* A leaf. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct drm_job *job, **end;
	uint64_t submitted, done;
};

static bool is_ending(const struct drm_ring *r)
{
	return __atomic_load_n(&r->q.stop, __ATOMIC_ACQUIRE);
}

/* ------------------------------------------------------------ execution -- */

/* The next packets of the command buffer. */
static enum soft_done run_some(struct soft_queue *q, uint64_t va,
			       uint32_t bytes)
{
	if (q->type == KFD_QUEUE_COMPUTE)
		return soft_pm4_buffer(q, va, bytes / 4);
	q->ring_base = va;
	q->ring_bytes = bytes;
	q->stream_end = bytes;
	return q->read_index < bytes ? soft_sdma_run(q) : SOFT_REFUSED;
}

static bool is_buffer_done(const struct soft_queue *q, enum soft_done done,
			   uint32_t bytes)
{
	return q->type == KFD_QUEUE_COMPUTE ? done == SOFT_DONE :
					      q->read_index >= bytes;
}

/* False: it failed, or the card did. */
static bool run_buffer(struct drm_ring *r, uint64_t va, uint32_t bytes)
{
	struct soft_queue *q = &r->q;

	q->read_index = 0;
	for (;;) {
		const enum soft_go go = soft_queue_go(q);
		const uint64_t seq = soft_wake_announce(q->dev);
		enum soft_done done = SOFT_LATER;

		if (go == SOFT_GO)
			done = run_some(q, va, bytes);
		if (go == SOFT_STOP || done == SOFT_REFUSED ||
		    is_buffer_done(q, done, bytes)) {
			soft_wake_cancel(q->dev);
			return go == SOFT_GO && is_buffer_done(q, done, bytes);
		}
		if (done == SOFT_LATER)
			soft_wake_sleep(q->dev, seq, LOOK_AGAIN_NS);
		else
			soft_wake_cancel(q->dev);
	}
}

static void run_job(struct drm_ring *r, const struct drm_job *j)
{
	bool good = true;

	for (unsigned i = 0; i < j->n_deps; i++)
		while (!is_ending(r) &&
		       !drm_ring_wait(j->dep[i].ring, j->dep[i].seq,
				      time_mono_ns() + LOOK_AGAIN_NS))
			continue;
	for (unsigned i = 0; good && i < j->n_ibs; i++)
		good = run_buffer(r, j->ib[i].va, j->ib[i].bytes);
}

/* The job is over: tell who waits.  r->lock held. */
static void finish_job(struct drm_ring *r, struct drm_job *j)
{
	if (j->user_fence)
		soft_copy_out((uintptr_t)j->user_fence, &j->seq,
			      sizeof(j->seq));
	r->job = j->next;
	if (!r->job)
		r->end = &r->job;
	r->done = j->seq;
	free(j);
	pthread_cond_broadcast(&r->changed);
}

static void *ring_main(void *arg)
{
	struct drm_ring *r = arg;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		struct drm_job *j = r->job;

		if (is_ending(r))
			break;
		if (!j) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		pthread_mutex_unlock(&r->lock);
		run_job(r, j);
		pthread_mutex_lock(&r->lock);
		finish_job(r, j);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* ---------------------------------------------------------------- rings -- */

static struct drm_ring *ring_new(struct soft_card *c, uint32_t ip)
{
	struct drm_ring *r = xcalloc(1, sizeof(*r));
	pthread_condattr_t a;

	r->q.dev = c->dev;
	r->q.card = c;
	r->q.type = ip == AMDGPU_HW_IP_DMA ? KFD_QUEUE_SDMA : KFD_QUEUE_COMPUTE;
	r->q.id = SOFT_QUEUES_MAX + ip;
	r->q.active = 1;
	r->q.cus = isa_chip_cus(c->chip);
	r->q.doorbell = c->doorbell;
	r->end = &r->job;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &a);
	pthread_condattr_destroy(&a);
	if (!soft_thread(&r->thread, ring_main, r))
		return r;
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
	return NULL;
}

struct drm_ring *drm_ring_get(struct soft_dev *d, struct soft_card *c,
			      uint32_t ip, uint32_t ring)
{
	static const unsigned there[DRM_IPS] = { 1, 4, 2 };
	struct drm_ring **r;

	if (ip >= DRM_IPS || ring >= there[ip])
		return NULL;
	r = &d->drm->ring[c->index][ip][ring];
	if (!*r)
		*r = ring_new(c, ip);
	return *r;
}

uint64_t drm_ring_submitted(struct drm_ring *r)
{
	uint64_t seq;

	pthread_mutex_lock(&r->lock);
	seq = r->submitted;
	pthread_mutex_unlock(&r->lock);
	return seq;
}

uint64_t drm_ring_add(struct drm_ring *r, struct drm_job *job)
{
	uint64_t seq;

	pthread_mutex_lock(&r->lock);
	job->seq = seq = ++r->submitted;
	*r->end = job;
	r->end = &job->next;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return seq;
}

bool drm_ring_wait(struct drm_ring *r, uint64_t seq, uint64_t until_ns)
{
	const uint64_t most = INT64_MAX;
	const uint64_t at = until_ns < most ? until_ns : most;
	const struct timespec until = { (time_t)(at / 1000000000u),
					(long)(at % 1000000000u) };
	bool done;

	pthread_mutex_lock(&r->lock);
	while (r->done < seq && !is_ending(r) &&
	       !pthread_cond_timedwait(&r->changed, &r->lock, &until))
		continue;
	done = r->done >= seq;
	pthread_mutex_unlock(&r->lock);
	return done;
}

void drm_ring_forget(struct drm_ring *r, const uint8_t *host, uint64_t bytes)
{
	pthread_mutex_lock(&r->lock);
	for (struct drm_job *j = r->job; j; j = j->next)
		if ((uintptr_t)j->user_fence - (uintptr_t)host < bytes)
			j->user_fence = NULL;
	pthread_mutex_unlock(&r->lock);
}

void drm_ring_stop(struct drm_ring *r)
{
	__atomic_store_n(&r->q.stop, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&r->lock);
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	soft_wake_all(r->q.dev);
	pthread_join(r->thread, NULL);
}

void drm_ring_free(struct drm_ring *r)
{
	while (r->job) {
		struct drm_job *j = r->job;

		r->job = j->next;
		free(j);
	}
	soft_worker_fini(&r->q.worker);
	soft_pm4_free(&r->q);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
