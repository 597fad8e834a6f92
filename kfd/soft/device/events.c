/*
 * kfd/soft/device/events.c - events: what WAIT_EVENTS sleeps on.
 *
 * Signal events have ids 1..4095, which are also their slots in the event
 * page; all others count from KFD_EVENT_NONSIGNAL_FIRST_ID.  An auto-reset
 * event that is set while somebody waits wakes the waiters and stays
 * unsignalled; without waiters it stays signalled for the next wait.  Ages
 * count sets, so that a thread can tell that it missed one.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "kfd/soft/device/dev.h"

/* One event of one WAIT_EVENTS call; lives on that call's heap. */
struct soft_waiter {
	struct soft_event *event; /* NULL once destroyed */
	struct soft_waiter *next;
	bool activated;
	bool told; /* its data changed */
};

void soft_events_init(struct soft_dev *d)
{
	pthread_mutex_init(&d->ev.lock, NULL);
}

void soft_events_fini(struct soft_dev *d)
{
	pthread_mutex_destroy(&d->ev.lock);
	vec_fini(&d->ev.table);
}

/* ------------------------------------------------------------- sleeping -- */

/* ev.lock held: those who sleep look again. */
static void wake_sleepers(struct soft_events *ev)
{
	__atomic_add_fetch(&ev->changes, 1, __ATOMIC_RELEASE);
	if (ev->sleeping)
		syscall(SYS_futex, &ev->changes, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/*
 * Sleep until something changes; until_ns 0: however long that takes.  0 or
 * -errno.  The kernel restarts a sleep without a deadline by the flags of the
 * signal's handler; one with a deadline it always ends.
 */
static int sleep_for_change(struct soft_dev *d, uint64_t until_ns)
{
	struct soft_events *ev = &d->ev;
	const uint32_t seen = __atomic_load_n(&ev->changes, __ATOMIC_RELAXED);
	const struct timespec until = { (time_t)(until_ns / 1000000000u),
					(long)(until_ns % 1000000000u) };
	int ret = 0;

	pthread_mutex_unlock(&ev->lock);
	if (d->o.sleeping)
		d->o.sleeping(true);
	if (syscall(SYS_futex, &ev->changes, FUTEX_WAIT_BITSET_PRIVATE, seen,
		    until_ns ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY))
		ret = errno == EAGAIN ? 0 : -errno;
	if (d->o.sleeping)
		d->o.sleeping(false);
	pthread_mutex_lock(&ev->lock);
	return ret;
}

/* Does every handler of the program ask that its signal restarts calls? */
static bool signals_restart(void)
{
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		struct sigaction a;

		if (!sigaction(sig, NULL, &a) && a.sa_handler != SIG_DFL &&
		    a.sa_handler != SIG_IGN && !(a.sa_flags & SA_RESTART) &&
		    sig != SIGSEGV && sig != SIGBUS)
			return false;
	}
	return true;
}

/* ------------------------------------------------------------ the table */

/* ev.lock held.  Events never move: waiters point at them. */
static struct soft_event *event_by_id(struct soft_events *ev, uint32_t id)
{
	size_t i = id;

	if (id >= KFD_EVENT_NONSIGNAL_FIRST_ID)
		i = KFD_EVENT_PAGE_SLOTS + (id - KFD_EVENT_NONSIGNAL_FIRST_ID);
	else if (id >= KFD_EVENT_PAGE_SLOTS)
		return NULL;
	return i < ev->table.n ? ev->table.v[i] : NULL;
}

static bool is_signal(uint32_t type)
{
	return type == KFD_EVENT_SIGNAL || type == KFD_EVENT_DEBUG;
}

/* The lowest free index of this kind, 0 = none left. */
static size_t event_slot(struct soft_events *ev, bool signal)
{
	size_t i = signal ? 1 : KFD_EVENT_PAGE_SLOTS;
	const size_t end = signal ? KFD_EVENT_PAGE_SLOTS :
				    2 * KFD_EVENT_PAGE_SLOTS;

	while (i < end && i < ev->table.n && ev->table.v[i])
		i++;
	if (i == end)
		return 0;
	while (ev->table.n <= i)
		vec_add(&ev->table);
	return i;
}

/* dev->lock and ev.lock held.  The event page, from the first call on. */
static int event_page(struct soft_dev *d, uint64_t handle)
{
	struct soft_events *ev = &d->ev;
	const struct soft_bo *b;
	void *own;
	int ret;

	if (handle) {
		b = soft_bo_by_handle(d, handle);
		if (ev->page || !b || !(b->flags & KFD_MEM_GTT) ||
		    b->size < KFD_EVENT_PAGE_BYTES)
			return -EINVAL;
		ev->page = (void *)b->host;
		ev->page_bo = (uint32_t)handle;
	} else if (!ev->page) {
		ret = soft_memory_carve(d, KFD_EVENT_PAGE_BYTES, &ev->page_off,
					&own);
		if (ret)
			return ret;
		ev->page = own;
	} else {
		return 0;
	}
	for (unsigned i = 0; i < KFD_EVENT_PAGE_SLOTS; i++)
		__atomic_store_n(&ev->page[i], KFD_EVENT_UNSIGNALLED,
				 __ATOMIC_RELAXED);
	return 0;
}

static int event_new(struct soft_dev *d, struct kfd_ioc_create_event *a)
{
	struct soft_events *ev = &d->ev;
	const bool signal = is_signal(a->event_type);
	struct soft_event *x;
	size_t i;
	int ret = 0;

	if (signal || a->event_page_offset)
		ret = event_page(d, a->event_page_offset);
	if (ret)
		return ret;
	i = event_slot(ev, signal);
	if (!i)
		return -ENOSPC;
	x = xcalloc(1, sizeof(*x));
	x->id = (uint32_t)i;
	if (!signal)
		x->id += KFD_EVENT_NONSIGNAL_FIRST_ID - KFD_EVENT_PAGE_SLOTS;
	x->type = a->event_type;
	x->auto_reset = a->auto_reset;
	x->age = 1;
	ev->table.v[i] = x;
	a->event_id = x->id;
	a->event_trigger_data = signal ? x->id : 0;
	a->event_slot_index = signal ? x->id : 0;
	a->event_page_offset = signal ? KFD_MMAP_OFFSET(KFD_MMAP_TYPE_EVENTS,
							0) : 0;
	return 0;
}

int soft_ioc_create_event(struct soft_dev *d, void *arg)
{
	int ret;

	pthread_mutex_lock(&d->ev.lock);
	ret = event_new(d, arg);
	pthread_mutex_unlock(&d->ev.lock);
	return ret;
}

/* ------------------------------------------------------- set and reset -- */

static void event_set(struct soft_events *ev, struct soft_event *x)
{
	x->signaled = !x->auto_reset || !x->waiters;
	if (!++x->age)
		x->age = 2; /* 0 means "no age", 1 "never set" */
	for (struct soft_waiter *w = x->waiters; w; w = w->next)
		w->activated = true;
	wake_sleepers(ev);
}

static void event_destroy(struct soft_events *ev, struct soft_event *x)
{
	const size_t i = x->id < KFD_EVENT_PAGE_SLOTS ? x->id :
			 x->id - KFD_EVENT_NONSIGNAL_FIRST_ID +
				 KFD_EVENT_PAGE_SLOTS;

	for (struct soft_waiter *w = x->waiters; w; w = w->next)
		w->event = NULL;
	ev->table.v[i] = NULL;
	free(x);
	wake_sleepers(ev);
}

int soft_ioc_destroy_event(struct soft_dev *d, void *arg)
{
	const struct kfd_ioc_event *a = arg;
	struct soft_event *x;

	pthread_mutex_lock(&d->ev.lock);
	x = event_by_id(&d->ev, a->event_id);
	if (x)
		event_destroy(&d->ev, x);
	pthread_mutex_unlock(&d->ev.lock);
	return x ? 0 : -EINVAL;
}

/* Set or reset a signal event. */
static int change_event(struct soft_dev *d, uint32_t id, bool set)
{
	struct soft_event *x;
	bool can;

	pthread_mutex_lock(&d->ev.lock);
	x = event_by_id(&d->ev, id);
	can = x && x->type == KFD_EVENT_SIGNAL;
	if (can && set)
		event_set(&d->ev, x);
	else if (can)
		x->signaled = false;
	pthread_mutex_unlock(&d->ev.lock);
	return can ? 0 : -EINVAL;
}

int soft_ioc_set_event(struct soft_dev *d, void *arg)
{
	return change_event(d, ((struct kfd_ioc_event *)arg)->event_id, true);
}

int soft_ioc_reset_event(struct soft_dev *d, void *arg)
{
	return change_event(d, ((struct kfd_ioc_event *)arg)->event_id, false);
}

void soft_event_interrupt(struct soft_dev *d, uint32_t id)
{
	struct soft_event *x;

	pthread_mutex_lock(&d->ev.lock);
	x = event_by_id(&d->ev, id);
	if (x && is_signal(x->type)) {
		__atomic_store_n(&d->ev.page[id], KFD_EVENT_UNSIGNALLED,
				 __ATOMIC_RELEASE);
		event_set(&d->ev, x);
	}
	pthread_mutex_unlock(&d->ev.lock);
}

/*
 * All error events of the type get the report, of which one is given; false:
 * there are none.
 */
static bool set_errors(struct soft_dev *d, uint32_t type,
		       const struct kfd_memory_exception *m,
		       const struct kfd_hw_exception *h)
{
	bool found = false;

	pthread_mutex_lock(&d->ev.lock);
	for (size_t i = KFD_EVENT_PAGE_SLOTS; i < d->ev.table.n; i++) {
		struct soft_event *x = d->ev.table.v[i];

		if (!x || x->type != type)
			continue;
		found = true;
		if (m)
			x->memory = *m;
		else
			x->hw = *h;
		event_set(&d->ev, x);
	}
	pthread_mutex_unlock(&d->ev.lock);
	return found;
}

bool soft_event_memory(struct soft_dev *d, const struct kfd_memory_exception *m)
{
	return set_errors(d, KFD_EVENT_MEMORY, m, NULL);
}

bool soft_event_hw(struct soft_dev *d, const struct kfd_hw_exception *h)
{
	return set_errors(d, KFD_EVENT_HW_EXCEPTION, NULL, h);
}

/* ---------------------------------------------------------------- wait -- */

/* One WAIT_EVENTS call. */
struct wait {
	struct soft_dev *d;
	struct kfd_event_data *data; /* [n], a copy of the program's */
	struct soft_waiter *w;	     /* [n] */
	uint32_t n;
	bool all;
};

static bool uses_age(const struct wait *x, uint32_t i)
{
	return x->d->o.kfd_minor >= KFD_MINOR_EVENT_AGE &&
	       x->w[i].event->type == KFD_EVENT_SIGNAL &&
	       x->data[i].last_event_age;
}

static bool wait_begin(struct wait *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		struct soft_waiter *w = &x->w[i];

		w->event = event_by_id(&x->d->ev, x->data[i].event_id);
		if (!w->event)
			return false;
		w->activated = w->event->signaled;
		if (w->event->auto_reset)
			w->event->signaled = false;
		if (uses_age(x, i) &&
		    x->data[i].last_event_age != w->event->age)
			w->activated = true;
		w->next = w->event->waiters;
		w->event->waiters = w;
	}
	return true;
}

static uint32_t wait_test(const struct wait *x)
{
	uint32_t activated = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		if (!x->w[i].event)
			return KFD_WAIT_FAIL;
		activated += x->w[i].activated;
	}
	if (x->all || !x->n)
		return activated == x->n ? KFD_WAIT_COMPLETE :
					   KFD_WAIT_TIMEOUT;
	return activated ? KFD_WAIT_COMPLETE : KFD_WAIT_TIMEOUT;
}

/* Payloads and ages of the events that were set. */
static void wait_payload(const struct wait *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		const struct soft_event *e = x->w[i].event;

		if (!e || !x->w[i].activated)
			continue;
		x->w[i].told = true;
		if (e->type == KFD_EVENT_MEMORY)
			x->data[i].memory = e->memory;
		else if (e->type == KFD_EVENT_HW_EXCEPTION)
			x->data[i].hw = e->hw;
		else if (uses_age(x, i))
			x->data[i].last_event_age = e->age;
		else
			x->w[i].told = false;
	}
}

/* A wait that ends without its condition gives back what it consumed. */
static void wait_end(const struct wait *x, bool undo)
{
	for (uint32_t i = 0; i < x->n; i++) {
		struct soft_waiter *w = &x->w[i], **p;

		if (!w->event)
			continue;
		for (p = &w->event->waiters; *p && *p != w; p = &(*p)->next)
			;
		if (*p)
			*p = w->next;
		if (undo && w->activated && w->event->auto_reset)
			w->event->signaled = true;
	}
}

/* Sleep until the condition holds or the deadline passed: 0 or -errno. */
static int wait_sleep(struct wait *x, uint32_t timeout_ms, uint64_t deadline_ns,
		      uint32_t *result)
{
	struct soft_events *ev = &x->d->ev;
	const uint64_t until = timeout_ms == KFD_WAIT_FOREVER ? 0 : deadline_ns;

	for (;;) {
		int ret;

		*result = wait_test(x);
		if (*result != KFD_WAIT_TIMEOUT || !timeout_ms)
			return 0;
		if (ev->ending) {
			*result = KFD_WAIT_FAIL;
			return 0;
		}
		ret = sleep_for_change(x->d, until);
		if (ret == -EINTR && (!until || !signals_restart()))
			return ret;
		if (ret == -ETIMEDOUT) {
			*result = wait_test(x);
			return 0;
		}
	}
}

static int wait_events(struct wait *x, struct kfd_ioc_wait_events *a)
{
	struct soft_events *ev = &x->d->ev;
	const uint64_t deadline =
		time_mono_ns() + (uint64_t)a->timeout * 1000000u;
	int ret = -EINVAL;

	ev->sleeping++;
	if (wait_begin(x)) {
		ret = wait_sleep(x, a->timeout, deadline, &a->wait_result);
		if (!ret)
			wait_payload(x);
		if (!ret && a->wait_result == KFD_WAIT_FAIL)
			ret = -EIO;
	}
	if (ret)
		a->wait_result = KFD_WAIT_FAIL;
	wait_end(x, ret || a->wait_result == KFD_WAIT_TIMEOUT);
	if (ev->ending)
		wake_sleepers(ev);
	ev->sleeping--;
	if (a->timeout && a->timeout != KFD_WAIT_FOREVER) {
		const uint64_t now = time_mono_ns();

		a->timeout = now < deadline ?
			     (uint32_t)((deadline - now) / 1000000u) : 0;
	}
	return ret;
}

/* What the program shall know of the events that were set. */
static int tell_program(const struct wait *x, uint64_t to)
{
	for (uint32_t i = 0; i < x->n; i++)
		if (x->w[i].told &&
		    soft_copy_out(to + i * sizeof(*x->data), &x->data[i],
				  sizeof(*x->data)))
			return -EFAULT;
	return 0;
}

int soft_ioc_wait_events(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_wait_events *a = arg;
	struct wait x = { .d = d, .n = a->num_events, .all = a->wait_for_all };
	int ret;

	if (x.n && !a->events_ptr)
		return -EFAULT;
	if (x.n > 2 * KFD_EVENT_PAGE_SLOTS)
		return -EINVAL;
	x.data = xcalloc(x.n + 1u, sizeof(*x.data));
	x.w = xcalloc(x.n + 1u, sizeof(*x.w));
	ret = soft_copy_in(x.data, a->events_ptr, x.n * sizeof(*x.data));
	if (!ret) {
		pthread_mutex_lock(&d->ev.lock);
		ret = wait_events(&x, a);
		pthread_mutex_unlock(&d->ev.lock);
	}
	if (!ret)
		ret = tell_program(&x, a->events_ptr);
	if (ret)
		a->wait_result = KFD_WAIT_FAIL;
	free(x.w);
	free(x.data);
	return ret;
}

void soft_events_end(struct soft_dev *d)
{
	struct soft_events *ev = &d->ev;
	void *own = NULL;

	pthread_mutex_lock(&ev->lock);
	ev->ending = true;
	for (size_t i = 0; i < ev->table.n; i++)
		if (ev->table.v[i])
			event_destroy(ev, ev->table.v[i]);
	wake_sleepers(ev);
	while (ev->sleeping)
		sleep_for_change(d, 0);
	ev->ending = false;
	ev->table.n = 0;
	if (ev->page && !ev->page_bo)
		own = ev->page;
	ev->page = NULL;
	ev->page_bo = 0;
	pthread_mutex_unlock(&ev->lock);
	if (own)
		soft_memory_drop(d, ev->page_off, KFD_EVENT_PAGE_BYTES, own);
}
