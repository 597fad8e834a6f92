/*
 * kfd/soft/device/queue.c - queues: the ioctls that create and destroy them,
 * and the thread of each that processes its packets.
 *
 * A queue's thread sleeps until a doorbell changes.  The runtime rings through
 * kfd_driver.ring(), which wakes it; programs that store to the doorbell by
 * themselves are noticed by a 1 ms timer.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kfd/soft/device/dev.h"

/* How long a thread sleeps without being woken, ns. */
#define POLL_FOREIGN_NS 1000000u   /* nobody has used ring() yet */
#define POLL_FOREIGN_SPIN_NS 100000u /* ... and look on after work so long */
#define POLL_IDLE_NS 100000000u	   /* ring() wakes us */
#define POLL_BARRIER_NS 20000u	   /* first look at a waiting packet */
#define POLL_BARRIER_MAX_NS 1000000u

/* Not the queue id: programs must use the offset that they were given. */
#define DOORBELL_FIRST 256u

/* ---------------------------------------------------------- wake-ups -- */

void soft_wake_init(struct soft_dev *d)
{
	pthread_condattr_t a;

	pthread_mutex_init(&d->wake.lock, NULL);
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&d->wake.cond, &a);
	pthread_condattr_destroy(&a);
}

void soft_wake_fini(struct soft_dev *d)
{
	pthread_cond_destroy(&d->wake.cond);
	pthread_mutex_destroy(&d->wake.lock);
}

void soft_wake_all(struct soft_dev *d)
{
	if (!__atomic_load_n(&d->wake.parked, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&d->wake.lock);
	d->wake.seq++;
	pthread_cond_broadcast(&d->wake.cond);
	pthread_mutex_unlock(&d->wake.lock);
}

uint64_t soft_wake_announce(struct soft_dev *d)
{
	uint64_t seq;

	__atomic_add_fetch(&d->wake.parked, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&d->wake.lock);
	seq = d->wake.seq;
	pthread_mutex_unlock(&d->wake.lock);
	return seq;
}

void soft_wake_cancel(struct soft_dev *d)
{
	__atomic_sub_fetch(&d->wake.parked, 1, __ATOMIC_SEQ_CST);
}

void soft_wake_sleep(struct soft_dev *d, uint64_t announced, uint64_t ns)
{
	const uint64_t at = time_mono_ns() + ns;
	const struct timespec until = { (time_t)(at / 1000000000u),
					(long)(at % 1000000000u) };
	int ret = 0;

	pthread_mutex_lock(&d->wake.lock);
	while (d->wake.seq == announced && !ret)
		ret = pthread_cond_timedwait(&d->wake.cond, &d->wake.lock,
					     &until);
	pthread_mutex_unlock(&d->wake.lock);
	soft_wake_cancel(d);
}

/* ------------------------------------------------------------- thread -- */

const char *soft_queue_name(const struct soft_queue *q)
{
	return q->type == KFD_QUEUE_COMPUTE_AQL ? "AQL" :
	       q->type == KFD_QUEUE_COMPUTE	? "PM4" :
						  "SDMA";
}

enum soft_go soft_queue_go(const struct soft_queue *q)
{
	const struct soft_card *c = q->card;

	if (__atomic_load_n(&q->stop, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&q->dead, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&c->evicted, __ATOMIC_ACQUIRE) ||
	    __atomic_load_n(&c->hung, __ATOMIC_ACQUIRE))
		return SOFT_STOP;
	const uint64_t paused = __atomic_load_n(&q->dev->paused_until_ns,
						__ATOMIC_ACQUIRE);
	if (paused && time_mono_ns() < paused)
		return SOFT_PAUSE;
	if (__atomic_load_n(&q->suspended, __ATOMIC_ACQUIRE))
		return SOFT_PAUSE;
	return __atomic_load_n(&q->active, __ATOMIC_ACQUIRE) ? SOFT_GO :
							       SOFT_PAUSE;
}

static uint64_t idle_ns(const struct soft_dev *d)
{
	return __atomic_load_n(&d->rung, __ATOMIC_RELAXED) ? POLL_IDLE_NS :
							     POLL_FOREIGN_NS;
}

/* The next packet, if there is one; SOFT_REFUSED = nothing to do now. */
static enum soft_done next_packet(struct soft_queue *q)
{
	enum soft_done done;

	if (q->type == KFD_QUEUE_COMPUTE_AQL)
		return soft_packet_ready(q) ? soft_packet_run(q) : SOFT_REFUSED;
	if (!soft_stream_ready(q))
		return SOFT_REFUSED;
	done = q->type == KFD_QUEUE_COMPUTE ? soft_pm4_run(q) :
					      soft_sdma_run(q);
	q->again = done == SOFT_LATER;
	return done;
}

static void *queue_main(void *arg)
{
	struct soft_queue *q = arg;
	uint64_t barrier_ns = POLL_BARRIER_NS, worked_ns = 0;

	while (!__atomic_load_n(&q->stop, __ATOMIC_ACQUIRE)) {
		const uint64_t seq = soft_wake_announce(q->dev);
		enum soft_done done = SOFT_REFUSED;
		uint64_t ns = POLL_IDLE_NS;

		/* `stop` may have been set before we announced ourselves. */
		if (__atomic_load_n(&q->stop, __ATOMIC_SEQ_CST)) {
			soft_wake_cancel(q->dev);
			break;
		}
		if (soft_queue_go(q) == SOFT_GO) {
			ns = idle_ns(q->dev);
			done = next_packet(q);
		}
		if (done == SOFT_DONE) {
			barrier_ns = POLL_BARRIER_NS;
			worked_ns = time_mono_ns();
			soft_wake_cancel(q->dev);
			continue;
		}
		if (done == SOFT_LATER) {
			ns = barrier_ns;
			if (barrier_ns < POLL_BARRIER_MAX_NS)
				barrier_ns *= 2;
		}
		if (ns == POLL_FOREIGN_NS && done == SOFT_REFUSED &&
		    time_mono_ns() - worked_ns < POLL_FOREIGN_SPIN_NS) {
			soft_wake_cancel(q->dev);
			sched_yield();
			continue;
		}
		soft_wake_sleep(q->dev, seq, ns);
	}
	return NULL;
}

/* ------------------------------------------------------------- checks -- */

static int check_properties(uint32_t percentage, uint32_t priority,
			    uint32_t ring_size)
{
	if ((percentage & 0xff) > 100 || priority > KFD_QUEUE_PRIORITY_MAX)
		return -EINVAL;
	return ring_size & (ring_size - 1) ? -EINVAL : 0;
}

/* No XGMI engines on this card; engines by id came with 1.17. */
static bool type_exists(const struct soft_card *c,
			const struct kfd_ioc_create_queue *a)
{
	return a->type == KFD_QUEUE_COMPUTE_AQL ||
	       a->type == KFD_QUEUE_COMPUTE || a->type == KFD_QUEUE_SDMA ||
	       (a->type == KFD_QUEUE_SDMA_BY_ENG_ID &&
		c->dev->o.kfd_minor >= KFD_MINOR_SDMA_ENGINE_ID &&
		a->sdma_engine_id < c->chip->sdma_engines);
}

static int check_create(const struct soft_dev *d, const struct soft_card *c,
			const struct kfd_ioc_create_queue *a)
{
	const uint64_t user[] = { a->ring_base, a->rptr_addr, a->wptr_addr,
				  a->eop_addr, a->cwsr_addr };
	int ret;

	if (c && __atomic_load_n(&c->hung, __ATOMIC_ACQUIRE))
		return -EIO;
	ret = check_properties(a->percentage, a->priority, a->ring_size);
	if (ret)
		return ret;
	for (size_t i = 0; i < ARRAY_SIZE(user); i++)
		if (user[i] >= SOFT_USER_LIMIT)
			return -EFAULT;
	if (!c || !type_exists(c, a))
		return -EINVAL;
	if (!c->vm_file)
		return -ESRCH;
	return d->n_queues < SOFT_QUEUES_MAX ? 0 : -ENOSPC;
}

static uint64_t page_of(uint64_t va)
{
	return va & ~(uint64_t)(KFD_PAGE_BYTES - 1);
}

static bool is_sdma(uint32_t type)
{
	return type == KFD_QUEUE_SDMA || type == KFD_QUEUE_SDMA_BY_ENG_ID;
}

/*
 * Find the buffers.  The scheduler firmware always wanted the write pointer
 * alone in a page; since Linux 6.12 (1.17) the kernel wants each buffer mapped
 * at exactly its size, and with sizes of its own choice.
 */
static int find_buffers(struct soft_card *c,
			const struct kfd_ioc_create_queue *a,
			uint32_t bo[SOFT_BO_COUNT])
{
	const struct kfd_cwsr s =
		kfd_cwsr_sizes(isa_chip_cus(c->chip), c->chip->gfx_target, 1);

	bo[SOFT_BO_WPTR] = soft_bo_exact(c, page_of(a->wptr_addr),
					 KFD_PAGE_BYTES);
	bo[SOFT_BO_RPTR] = soft_bo_exact(c, page_of(a->rptr_addr),
					 KFD_PAGE_BYTES);
	bo[SOFT_BO_RING] = soft_bo_exact(c, a->ring_base, a->ring_size);
	bo[SOFT_BO_EOP] = soft_bo_exact(c, a->eop_addr, a->eop_size);
	bo[SOFT_BO_CWSR] = 0;
	if (!bo[SOFT_BO_WPTR])
		return -EINVAL;
	if (c->dev->o.kfd_minor < KFD_MINOR_SDMA_ENGINE_ID)
		return 0;
	if (!bo[SOFT_BO_RPTR] || !bo[SOFT_BO_RING])
		return -EINVAL;
	if (is_sdma(a->type))
		return 0;
	if (!bo[SOFT_BO_EOP] || a->eop_size != KFD_EOP_BYTES)
		return -EINVAL;
	if (a->ctl_stack_size != s.ctl_stack_bytes ||
	    a->cwsr_size != s.cwsr_bytes)
		return -EINVAL;
	bo[SOFT_BO_CWSR] = soft_bo_exact(c, a->cwsr_addr, s.area_bytes);
	if (!bo[SOFT_BO_CWSR] &&
	    !soft_svm_covers(c, a->cwsr_addr, s.area_bytes))
		return -EINVAL;
	return 0;
}

static void count_references(struct soft_card *c,
			     const uint32_t bo[SOFT_BO_COUNT], bool take)
{
	for (size_t i = 0; i < SOFT_BO_COUNT; i++)
		if (bo[i])
			c->dev->bo[bo[i]]->queue_refs[c->index] +=
				take ? 1u : -1u;
}

/* ------------------------------------------------------------- ioctls -- */

struct soft_queue *soft_queue_by_id(struct soft_dev *d, uint32_t id)
{
	return id < SOFT_QUEUES_MAX ? d->queue[id] : NULL;
}

static struct soft_queue *queue_new(struct soft_card *c,
				    const struct kfd_ioc_create_queue *a,
				    uint32_t id)
{
	struct soft_queue *q = xcalloc(1, sizeof(*q));

	q->dev = c->dev;
	q->card = c;
	q->id = id;
	q->type = a->type;
	q->ring_base = a->ring_base;
	q->ring_bytes = a->ring_size;
	q->rptr_va = a->rptr_addr;
	q->wptr_va = a->wptr_addr;
	q->cwsr_va = a->cwsr_addr;
	q->cwsr_bytes = a->cwsr_size;
	q->ctl_stack_bytes = a->ctl_stack_size;
	q->cus = isa_chip_cus(c->chip);
	q->active = (a->percentage & 0xff) && a->ring_size;
	q->doorbell = &c->doorbell[(id + DOORBELL_FIRST) % SOFT_QUEUES_MAX];
	/* The first doorbell is 0: anything else must stand there before. */
	q->doorbell_seen = UINT64_MAX;
	q->began_index = UINT64_MAX;
	__atomic_store_n(q->doorbell, UINT64_MAX, __ATOMIC_SEQ_CST);
	return q;
}

int soft_ioc_create_queue(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_create_queue *a = arg;
	struct soft_card *c = soft_card_by_id(d, a->gpu_id);
	struct soft_queue *q;
	uint32_t bo[SOFT_BO_COUNT], id = 0;
	int ret;

	if (a->ring_size && a->ring_size < KFD_QUEUE_RING_MIN_BYTES &&
	    !(a->ring_size & (a->ring_size - 1)))
		a->ring_size = KFD_QUEUE_RING_MIN_BYTES;
	ret = check_create(d, c, a);
	if (!ret)
		ret = find_buffers(c, a, bo);
	if (ret)
		return ret;
	while (d->queue[id])
		id++;
	q = queue_new(c, a, id);
	memcpy(q->bo, bo, sizeof(bo));
	if (soft_thread(&q->thread, queue_main, q)) {
		free(q);
		return -ENOMEM;
	}
	count_references(c, bo, true);
	d->queue[id] = q;
	d->n_queues++;
	soft_debug_queue(q, KFD_EC_QUEUE_NEW);
	a->queue_id = id;
	a->doorbell_offset =
		KFD_MMAP_OFFSET(KFD_MMAP_TYPE_DOORBELL, c->gpu_id) |
		(uint64_t)(q->doorbell - c->doorbell) * sizeof(*q->doorbell);
	return 0;
}

/* Take the queue out of the table, stop it, and free it. */
static int queue_end(struct soft_dev *d, uint32_t id)
{
	struct soft_queue *q = NULL;

	pthread_mutex_lock(&d->lock);
	if (id < SOFT_QUEUES_MAX && d->queue[id]) {
		q = d->queue[id];
		d->queue[id] = NULL;
		d->n_queues--;
		if (q->card->gws == q)
			q->card->gws = NULL;
	}
	pthread_mutex_unlock(&d->lock);
	if (!q)
		return -EINVAL;
	__atomic_store_n(&q->stop, 1, __ATOMIC_SEQ_CST);
	soft_wake_all(d);
	pthread_join(q->thread, NULL);
	pthread_mutex_lock(&d->lock);
	count_references(q->card, q->bo, false);
	pthread_mutex_unlock(&d->lock);
	soft_worker_fini(&q->worker);
	soft_pm4_free(q);
	free(q);
	return 0;
}

int soft_ioc_destroy_queue(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_destroy_queue *a = arg;

	return queue_end(d, a->queue_id);
}

void soft_queues_end(struct soft_dev *d)
{
	for (uint32_t id = 0; id < SOFT_QUEUES_MAX; id++)
		queue_end(d, id);
}

/* Another ring for the queue; it must be mapped at exactly its size. */
static int ring_change(struct soft_dev *d, struct soft_queue *q, uint64_t base,
		       uint32_t bytes)
{
	const uint32_t bo = soft_bo_exact(q->card, base, bytes);

	if (!bo)
		return -EINVAL;
	if (q->bo[SOFT_BO_RING])
		d->bo[q->bo[SOFT_BO_RING]]->queue_refs[q->card->index]--;
	d->bo[bo]->queue_refs[q->card->index]++;
	q->bo[SOFT_BO_RING] = bo;
	soft_map_hold_alone(d);
	q->ring_base = base;
	q->ring_bytes = bytes;
	soft_map_release_alone(d);
	return 0;
}

int soft_ioc_update_queue(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_update_queue *a = arg;
	struct soft_queue *q;
	int ret;

	ret = check_properties(a->percentage, a->priority, a->ring_size);
	if (ret)
		return ret;
	if (a->ring_base >= SOFT_USER_LIMIT)
		return -EFAULT;
	q = soft_queue_by_id(d, a->queue_id);
	if (!q)
		return -EFAULT; /* as the kernel says it */
	if (a->ring_size &&
	    (a->ring_base != q->ring_base || a->ring_size != q->ring_bytes))
		ret = ring_change(d, q, a->ring_base, a->ring_size);
	if (ret)
		return ret;
	__atomic_store_n(&q->active,
			 (a->percentage & 0xff) && a->ring_size,
			 __ATOMIC_SEQ_CST);
	soft_wake_all(d);
	return 0;
}
