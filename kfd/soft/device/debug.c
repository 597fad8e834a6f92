/*
 * kfd/soft/device/debug.c - the debugger's side: exceptions of queues, device
 * and process, suspended queues and snapshots.
 *
 * A process is debugged from inside: other processes have devices of their
 * own, and the call finds none of them.  Of the hardware's traps there are
 * those of address watches, which end in the program's trap handler.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kfd/soft/device/dev.h"

#define OF_DEVICE                                                         \
	(KFD_EC_MASK(KFD_EC_DEVICE_QUEUE_DELETE) |                        \
	 KFD_EC_MASK(KFD_EC_DEVICE_MEMORY_VIOLATION) |                    \
	 KFD_EC_MASK(KFD_EC_DEVICE_RAS) |                                 \
	 KFD_EC_MASK(KFD_EC_DEVICE_FATAL_HALT) |                          \
	 KFD_EC_MASK(KFD_EC_DEVICE_NEW))
#define OF_PROCESS                              \
	(KFD_EC_MASK(KFD_EC_PROCESS_RUNTIME) | \
	 KFD_EC_MASK(KFD_EC_PROCESS_DEVICE_REMOVE))

void soft_debug_init(struct soft_dev *d)
{
	pthread_mutex_init(&d->debug.lock, NULL);
	pthread_cond_init(&d->debug.changed, NULL);
	d->debug.fd = -1;
}

void soft_debug_fini(struct soft_dev *d)
{
	soft_debug_end(d);
	pthread_cond_destroy(&d->debug.changed);
	pthread_mutex_destroy(&d->debug.lock);
}

/* ----------------------------------------------------------- exceptions -- */

/* debug.lock held.  Is it wanted?  Then the debugger is woken. */
static bool notify_debugger(struct soft_debug *g, uint64_t mask)
{
	if (!g->on || !(g->enabled & mask))
		return false;
	(void)!write(g->fd, ".", 1);
	return true;
}

bool soft_debug_queue(struct soft_queue *q, enum kfd_ec ec)
{
	struct soft_debug *g = &q->dev->debug;
	bool taken;

	pthread_mutex_lock(&g->lock);
	/* That it is new is known of a queue whoever looks. */
	if (g->on || ec == KFD_EC_QUEUE_NEW)
		q->exceptions |= KFD_EC_MASK(ec);
	taken = notify_debugger(g, KFD_EC_MASK(ec));
	pthread_mutex_unlock(&g->lock);
	return taken;
}

bool soft_debug_fault(struct soft_card *c, const struct kfd_memory_exception *m)
{
	const uint64_t bit = KFD_EC_MASK(KFD_EC_DEVICE_MEMORY_VIOLATION);
	struct soft_debug *g = &c->dev->debug;
	bool taken;

	pthread_mutex_lock(&g->lock);
	if (g->on && !(c->exceptions & bit)) {
		c->exceptions |= bit;
		c->fault = *m;
	}
	taken = notify_debugger(g, bit);
	pthread_mutex_unlock(&g->lock);
	return taken;
}

static void raise_process(struct soft_debug *g)
{
	const uint64_t bit = KFD_EC_MASK(KFD_EC_PROCESS_RUNTIME);

	pthread_mutex_lock(&g->lock);
	g->process |= bit;
	notify_debugger(g, bit);
	pthread_mutex_unlock(&g->lock);
}

/* The next queue from *id on, in the order of their numbers, or NULL. */
static struct soft_queue *next_queue(struct soft_dev *d, uint32_t *id)
{
	while (*id < SOFT_QUEUES_MAX)
		if (d->queue[(*id)++])
			return d->queue[*id - 1];
	return NULL;
}

/* ------------------------------------------------------- runtime enable -- */

/* The debugger is told and has to agree. */
static void await_debugger(struct soft_dev *d)
{
	struct soft_debug *g = &d->debug;

	raise_process(g);
	while (g->on && !g->may_run)
		pthread_cond_wait(&g->changed, &d->lock);
	if (g->may_run)
		g->may_run--;
}

int soft_ioc_runtime_enable(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_runtime_enable *a = arg;
	const bool on = a->mode_mask & KFD_RUNTIME_ENABLE;

	a->capabilities_mask = 0;
	if (on && d->runtime_enabled)
		return -EBUSY;
	if (on && d->n_queues)
		return -EEXIST;
	__atomic_store_n(&d->runtime_enabled, on, __ATOMIC_RELAXED);
	d->debug.runtime = (struct kfd_debug_runtime){
		.r_debug = on ? a->r_debug : 0,
		.runtime_state = on ? KFD_RUNTIME_STATE_ENABLED :
				      KFD_RUNTIME_STATE_DISABLED,
		.ttmp_setup = on && a->mode_mask & KFD_RUNTIME_TTMP_SAVE,
	};
	if (d->debug.on)
		await_debugger(d);
	return 0;
}

/* ----------------------------------------------------- the debugger asks -- */

/* Whether there is a debugger; with `clear` no address is watched any more. */
static void set_traps(struct soft_dev *d, struct soft_card *c, bool on,
		      bool clear)
{
	soft_map_hold_alone(d);
	c->traps.debugger = on;
	if (clear)
		memset(c->traps.watch, 0, sizeof(c->traps.watch));
	soft_map_release_alone(d);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void resume_all(struct soft_dev *d)
{
	struct soft_queue *q;

	for (uint32_t id = 0; (q = next_queue(d, &id));)
		__atomic_store_n(&q->suspended, 0, __ATOMIC_RELEASE);
	soft_wake_all(d);
}

void soft_debug_end(struct soft_dev *d)
{
	struct soft_debug *g = &d->debug;
	struct soft_queue *q;

	resume_all(d);
	pthread_mutex_lock(&g->lock);
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
	g->on = false;
	g->enabled = g->process = 0;
	g->flags = 0;
	__atomic_store_n(&g->trap_mask, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&g->trap_replace, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < d->n_cards; i++)
		d->card[i].exceptions = 0;
	for (uint32_t id = 0; (q = next_queue(d, &id));)
		q->exceptions = 0;
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < d->n_cards; i++)
		set_traps(d, &d->card[i], false, true);
	g->may_run = 0;
	pthread_cond_broadcast(&g->changed);
}

static int dbg_enable(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	struct soft_debug *g = &d->debug;
	int fd;

	if (g->on)
		return -EALREADY;
	fd = fcntl((int)a->enable.dbg_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -EBADF;
	if (soft_copy_out(a->enable.rinfo_ptr, &g->runtime,
		      min_size(a->enable.rinfo_size, sizeof(g->runtime)))) {
		close(fd);
		return -EFAULT;
	}
	a->enable.rinfo_size = sizeof(g->runtime);
	pthread_mutex_lock(&g->lock);
	g->fd = fd;
	g->enabled = a->enable.exception_mask;
	g->on = true;
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < d->n_cards; i++)
		set_traps(d, &d->card[i], true, false);
	return 0;
}

static int dbg_send(struct soft_dev *d, const struct kfd_ioc_dbg_trap *a)
{
	const uint64_t violation =
		KFD_EC_MASK(KFD_EC_DEVICE_MEMORY_VIOLATION);
	const uint64_t runtime = KFD_EC_MASK(KFD_EC_PROCESS_RUNTIME);
	const struct soft_card *c = soft_card_by_id(d, a->event.gpu_id);
	struct soft_queue *q;

	if (a->event.exception_mask & violation) {
		if (!c)
			return -ENODEV;
		soft_event_memory(d, &c->fault);
	}
	if (a->event.exception_mask & runtime) {
		d->debug.may_run++;
		pthread_cond_broadcast(&d->debug.changed);
	}
	q = soft_queue_by_id(d, a->event.queue_id);
	if (q && a->event.exception_mask & ~(violation | runtime))
		soft_runtime_error(q, a->event.exception_mask &
					      ~(violation | runtime));
	return 0;
}

static int dbg_query(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	const uint64_t clear = a->event.exception_mask;
	struct soft_debug *g = &d->debug;
	uint64_t *status = NULL;
	struct soft_queue *q;

	a->event.exception_mask = 0;
	a->event.gpu_id = a->event.queue_id = 0;
	pthread_mutex_lock(&g->lock);
	for (uint32_t id = 0; !status && (q = next_queue(d, &id));)
		if (q->exceptions & g->enabled) {
			status = &q->exceptions;
			a->event.queue_id = q->id;
			a->event.gpu_id = q->card->gpu_id;
		}
	for (unsigned i = 0; !status && i < d->n_cards; i++)
		if (d->card[i].exceptions & g->enabled) {
			status = &d->card[i].exceptions;
			a->event.gpu_id = d->card[i].gpu_id;
		}
	if (!status && g->process & g->enabled)
		status = &g->process;
	if (status) {
		a->event.exception_mask = *status;
		*status &= ~clear;
	}
	pthread_mutex_unlock(&g->lock);
	return status ? 0 : -EAGAIN;
}

static int dbg_set_enabled(struct soft_dev *d, const struct kfd_ioc_dbg_trap *a)
{
	struct soft_debug *g = &d->debug;
	uint64_t found;
	struct soft_queue *q;

	pthread_mutex_lock(&g->lock);
	found = g->process;
	for (unsigned i = 0; i < d->n_cards; i++)
		found |= d->card[i].exceptions;
	for (uint32_t id = 0; (q = next_queue(d, &id));)
		found |= q->exceptions;
	g->enabled = a->enabled.exception_mask;
	notify_debugger(g, found);
	pthread_mutex_unlock(&g->lock);
	return 0;
}

/* debug.lock held.  Where the exception would stand; *info what is known. */
static int find_status(struct soft_dev *d, const struct kfd_ioc_dbg_trap *a,
		       uint64_t **status, const void **info, size_t *n)
{
	const uint32_t code = a->info.exception_code;
	const uint64_t bit = code && code <= 64 ? KFD_EC_MASK(code) : 0;
	struct soft_debug *g = &d->debug;
	struct soft_queue *q;
	struct soft_card *c;

	*info = NULL, *n = 0;
	if (bit & OF_PROCESS) {
		*status = &g->process;
		if (code == KFD_EC_PROCESS_RUNTIME)
			*info = &g->runtime, *n = sizeof(g->runtime);
	} else if (bit & OF_DEVICE) {
		c = soft_card_by_id(d, a->info.source_id);
		if (!c)
			return -EINVAL;
		*status = &c->exceptions;
		if (code == KFD_EC_DEVICE_MEMORY_VIOLATION)
			*info = &c->fault, *n = sizeof(c->fault);
	} else if (bit && code <= KFD_EC_QUEUE_NEW) {
		q = soft_queue_by_id(d, a->info.source_id);
		if (!q)
			return -EINVAL;
		*status = &q->exceptions;
	} else {
		return -EINVAL;
	}
	return **status & bit ? 0 : -ENODATA;
}

static int dbg_info(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	uint64_t *status;
	const void *info;
	size_t n;
	int ret;

	if (!a->info.info_ptr)
		return -EINVAL;
	pthread_mutex_lock(&d->debug.lock);
	ret = find_status(d, a, &status, &info, &n);
	if (!ret && soft_copy_out(a->info.info_ptr, info,
			      min_size(n, a->info.info_size)))
		ret = -EFAULT;
	if (!ret) {
		a->info.info_size = (uint32_t)n;
		if (a->info.clear_exception)
			*status &= ~KFD_EC_MASK(a->info.exception_code);
	}
	pthread_mutex_unlock(&d->debug.lock);
	return ret;
}

/* ------------------------------------------------------ suspend, resume -- */

/* Suspend or resume one: false when it is too new. */
static bool change_queue(struct soft_dev *d, struct soft_queue *q, bool suspend,
			 uint64_t clear)
{
	bool good;

	pthread_mutex_lock(&d->debug.lock);
	good = !suspend || q->suspended ||
	       !(q->exceptions & KFD_EC_MASK(KFD_EC_QUEUE_NEW));
	if (good) {
		__atomic_store_n(&q->suspended, suspend, __ATOMIC_RELEASE);
		q->exceptions &= ~clear;
	}
	pthread_mutex_unlock(&d->debug.lock);
	return good;
}

/* How many of the queues named in the array followed; -errno. */
static int dbg_queues(struct soft_dev *d, uint64_t array, uint32_t n,
		      bool suspend, uint64_t clear)
{
	const size_t bytes = (size_t)n * sizeof(uint32_t);
	uint32_t *id;
	int done = 0;

	if (!array && !suspend) {
		resume_all(d);
		return (int)d->n_queues;
	}
	if (n > SOFT_QUEUES_MAX || (!array && n))
		return -EINVAL;
	id = xcalloc(n + 1u, sizeof(*id));
	if (soft_copy_in(id, array, bytes)) {
		free(id);
		return -EFAULT;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct soft_queue *q = soft_queue_by_id(d, id[i]);

		if (q && change_queue(d, q, suspend, clear))
			done++;
		else
			id[i] |= KFD_DBG_QUEUE_INVALID;
	}
	soft_wake_all(d);
	soft_copy_out(array, id, bytes);
	free(id);
	return done;
}

/* ------------------------------------------------------------ snapshots -- */

static int queue_snapshots(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	const uint32_t room = a->snapshot.count, step = a->snapshot.entry_size;
	uint64_t to = a->snapshot.buf_ptr;
	struct soft_queue *q;
	int ret = 0;

	a->snapshot.count = 0;
	if (!step)
		return -EINVAL;
	a->snapshot.entry_size = (uint32_t)min_size(
		step, sizeof(struct kfd_queue_snapshot));
	pthread_mutex_lock(&d->debug.lock);
	for (uint32_t id = 0; !ret && (q = next_queue(d, &id));) {
		const struct kfd_queue_snapshot s = {
			.exception_status = q->exceptions,
			.ring_base = q->ring_base,
			.wptr_addr = q->wptr_va,
			.rptr_addr = q->rptr_va,
			.cwsr_addr = q->cwsr_va,
			.queue_id = q->id,
			.gpu_id = q->card->gpu_id,
			.ring_size = q->ring_bytes,
			.type = q->type == KFD_QUEUE_SDMA_BY_ENG_ID ?
					KFD_QUEUE_SDMA : q->type,
			.cwsr_size = q->cwsr_bytes,
		};

		if (a->snapshot.count++ >= room)
			continue;
		q->exceptions &= ~a->snapshot.exception_mask;
		if (soft_copy_out(to, &s, a->snapshot.entry_size))
			ret = -EFAULT;
		to += step;
	}
	pthread_mutex_unlock(&d->debug.lock);
	return ret;
}

/* What is told of a card; the exceptions in `clear` are over. */
static struct kfd_device_snapshot card_snapshot(struct soft_card *c,
						uint64_t clear)
{
	const struct kfd_aperture p = soft_aperture(c);
	struct kfd_device_snapshot s = {
		.lds_base = p.lds_base, .lds_limit = p.lds_limit,
		.scratch_base = p.scratch_base,
		.scratch_limit = p.scratch_limit,
		.gpuvm_base = p.gpuvm_base, .gpuvm_limit = p.gpuvm_limit,
		.gpu_id = p.gpu_id,
	};

	soft_gpu_identity(c, &s);
	pthread_mutex_lock(&c->dev->debug.lock);
	s.exception_status = c->exceptions;
	c->exceptions &= ~clear;
	pthread_mutex_unlock(&c->dev->debug.lock);
	return s;
}

static int device_snapshots(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	const uint32_t room = a->snapshot.count, step = a->snapshot.entry_size;
	uint64_t to = a->snapshot.buf_ptr;

	if (!to)
		return -EINVAL;
	a->snapshot.count = d->n_cards;
	a->snapshot.entry_size = (uint32_t)min_size(
		step, sizeof(struct kfd_device_snapshot));
	for (unsigned i = 0; i < d->n_cards && i < room; i++, to += step) {
		const struct kfd_device_snapshot s =
			card_snapshot(&d->card[i], a->snapshot.exception_mask);

		if (soft_copy_out(to, &s, a->snapshot.entry_size))
			return -EFAULT;
	}
	return 0;
}

/* -------------------------------------------------------------- the call */

/* Waves that start from now on trap on what it says. */
static int launch_override(struct soft_debug *g, struct kfd_ioc_dbg_trap *a)
{
	const uint32_t can = KFD_DBG_TRAP_ADDRESS_WATCH;
	const uint32_t wanted = a->launch_override.enable_mask;
	const uint32_t asked = a->launch_override.support_request_mask;
	const uint32_t was = g->trap_mask;

	a->launch_override.support_request_mask = can;
	if (a->launch_override.override_mode > 1)
		return -EPERM;
	if (asked & ~can)
		return -EACCES;
	a->launch_override.enable_mask = was;
	__atomic_store_n(&g->trap_mask, (wanted & asked) | (was & ~asked),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&g->trap_replace, a->launch_override.override_mode,
			 __ATOMIC_RELAXED);
	return 0;
}

/* Memory operations are always precise here. */
static int set_flags(struct soft_debug *g, struct kfd_ioc_dbg_trap *a)
{
	const uint32_t asked = a->flags.flags;

	a->flags.flags = g->flags;
	if (asked & ~KFD_DBG_FLAG_SINGLE_MEM_OP)
		return -EACCES;
	g->flags = asked;
	return 0;
}

static int watch_set(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	/* The hardware compares the bits above 29 always, below 7 never. */
	const uint64_t above = ~UINT64_C(0) << 30, below = 0x7f;
	struct soft_card *c = soft_card_by_id(d, a->watch.gpu_id);
	uint32_t id = 0;

	if (!c)
		return -ENODEV;
	while (id < SOFT_WATCHES && c->traps.watch[id].on)
		id++;
	if (id == SOFT_WATCHES)
		return -ENOMEM;
	soft_map_hold_alone(d);
	c->traps.watch[id] = (struct soft_address_watch){
		.on = true, .mode = a->watch.mode & 3,
		.va = a->watch.address,
		.mask = (a->watch.mask | above) & ~below,
	};
	soft_map_release_alone(d);
	a->watch.id = id;
	return 0;
}

static int watch_clear(struct soft_dev *d, const struct kfd_ioc_dbg_trap *a)
{
	struct soft_card *c = soft_card_by_id(d, a->unwatch.gpu_id);
	const uint32_t id = a->unwatch.id;

	if (!c)
		return -ENODEV;
	if (id >= SOFT_WATCHES || !c->traps.watch[id].on)
		return -EINVAL;
	soft_map_hold_alone(d);
	c->traps.watch[id].on = false;
	soft_map_release_alone(d);
	return 0;
}

static int dbg_call(struct soft_dev *d, struct kfd_ioc_dbg_trap *a)
{
	switch (a->op) {
	case KFD_DBG_ENABLE:
		return dbg_enable(d, a);
	case KFD_DBG_DISABLE:
		soft_debug_end(d);
		return 0;
	case KFD_DBG_SEND_RUNTIME_EVENT:
		return dbg_send(d, a);
	case KFD_DBG_SET_EXCEPTIONS_ENABLED:
		return dbg_set_enabled(d, a);
	case KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE:
		return launch_override(&d->debug, a);
	case KFD_DBG_SET_WAVE_LAUNCH_MODE:
		/* Nobody could resume a halted wave: see its save area. */
		return a->launch_mode.launch_mode ? -EINVAL : 0;
	case KFD_DBG_SUSPEND_QUEUES:
		return dbg_queues(d, a->suspend.queue_array_ptr,
				  a->suspend.num_queues, true,
				  a->suspend.exception_mask);
	case KFD_DBG_RESUME_QUEUES:
		return dbg_queues(d, a->resume.queue_array_ptr,
				  a->resume.num_queues, false, 0);
	case KFD_DBG_SET_NODE_ADDRESS_WATCH:
		return watch_set(d, a);
	case KFD_DBG_CLEAR_NODE_ADDRESS_WATCH:
		return watch_clear(d, a);
	case KFD_DBG_SET_FLAGS:
		return set_flags(&d->debug, a);
	case KFD_DBG_QUERY_DEBUG_EVENT:
		return dbg_query(d, a);
	case KFD_DBG_QUERY_EXCEPTION_INFO:
		return dbg_info(d, a);
	case KFD_DBG_GET_QUEUE_SNAPSHOT:
		return queue_snapshots(d, a);
	case KFD_DBG_GET_DEVICE_SNAPSHOT:
		return device_snapshots(d, a);
	default:
		return -EINVAL;
	}
}

/* These work on hardware that the runtime has set up. */
static bool needs_runtime(uint32_t op)
{
	return op >= KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE &&
	       op <= KFD_DBG_SET_FLAGS;
}

int soft_ioc_dbg_trap(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_dbg_trap *a = arg;

	if ((pid_t)a->pid != d->pid)
		return -ESRCH;
	if (a->op != KFD_DBG_ENABLE && !d->debug.on)
		return -EINVAL;
	if (needs_runtime(a->op) && !d->runtime_enabled)
		return -EPERM;
	return dbg_call(d, a);
}
