/* The soft device's events: ids, the page, ages, auto-reset, waiting. */
#include <pthread.h>

#include "tests/soft/softdev.h"

static struct sd s;

static int set(uint32_t id)
{
	struct kfd_ioc_event a = { id, 0 };

	return sd_ioctl(&s, KFD_IOC_SET_EVENT, &a);
}

static int reset(uint32_t id)
{
	struct kfd_ioc_event a = { id, 0 };

	return sd_ioctl(&s, KFD_IOC_RESET_EVENT, &a);
}

static int destroy(uint32_t id)
{
	struct kfd_ioc_event a = { id, 0 };

	return sd_ioctl(&s, KFD_IOC_DESTROY_EVENT, &a);
}

/* The result of one wait: KFD_WAIT_*, or -errno. */
static int wait_for(uint32_t id, uint32_t ms)
{
	struct kfd_event_data d = { .event_id = id };
	uint32_t result;
	const int ret = sd_wait_event(&s, &d, ms, &result);

	return ret ? ret : (int)result;
}

static uint32_t new_event(uint32_t type, bool auto_reset)
{
	struct kfd_ioc_create_event e;

	return sd_event(&s, type, auto_reset, 0, &e) ? 0 : e.event_id;
}

static void test_page(void)
{
	struct sd_mem page = sd_alloc(&s, KFD_EVENT_PAGE_BYTES, GTT_FLAGS);
	struct sd_mem small = sd_alloc(&s, 4096, GTT_FLAGS);
	const uint64_t *slot = page.p;
	struct kfd_ioc_create_event e;

	is_i64(sd_event(&s, KFD_EVENT_MEMORY, false, 99, &e), -EINVAL,
	       "a page that is no object is EINVAL");
	is_i64(sd_event(&s, KFD_EVENT_MEMORY, false, small.handle, &e), -EINVAL,
	       "a page that is too small is EINVAL");
	is_i64(sd_event(&s, KFD_EVENT_MEMORY, false, page.handle, &e), 0,
	       "the first event brings the page");
	is_u64(e.event_id, 0x40000000, "memory events count from 0x40000000");
	ok(slot[0] == UINT64_MAX && slot[4095] == UINT64_MAX,
	   "all slots are unsignalled");
	is_i64(sd_event(&s, KFD_EVENT_SIGNAL, true, page.handle, &e), -EINVAL,
	       "a second page is EINVAL");
	is_i64(sd_event(&s, KFD_EVENT_SIGNAL, true, 0, &e), 0,
	       "a signal event follows");
	ok(e.event_id == 1 && e.event_slot_index == 1 &&
	   e.event_trigger_data == 1, "with id, slot and trigger 1");
	is_u64(e.event_page_offset, 2ull << 62, "and the page's mmap cookie");
	destroy(1);
	is_i64(sd_event(&s, KFD_EVENT_SIGNAL, true, 0, &e), 0, "another");
	is_u64(e.event_id, 1, "takes the lowest free id");
	sd_map(&s, page.handle, false);
	is_i64(sd_free_handle(&s, page.handle), -EPERM,
	       "the event page cannot be freed");
	destroy(1);
	sd_free(&s, &small);
}

static void test_limit(void)
{
	uint32_t n = 0;

	while (new_event(KFD_EVENT_SIGNAL, true))
		n++;
	is_u64(n, 4095, "there are 4095 signal events");
	ok(new_event(KFD_EVENT_HW_EXCEPTION, false), "others are still there");
	for (uint32_t id = 1; id <= n; id++)
		destroy(id);
}

static void test_auto_reset(void)
{
	const uint32_t a = new_event(KFD_EVENT_SIGNAL, true);
	const uint32_t m = new_event(KFD_EVENT_SIGNAL, false);

	is_i64(wait_for(a, 0), KFD_WAIT_TIMEOUT, "a new event is not set");
	is_i64(set(a), 0, "SET_EVENT without a waiter");
	is_i64(wait_for(a, 0), KFD_WAIT_COMPLETE, "stays for the next wait");
	is_i64(wait_for(a, 0), KFD_WAIT_TIMEOUT, "which consumes it");
	set(m);
	wait_for(m, 0);
	is_i64(wait_for(m, 0), KFD_WAIT_COMPLETE,
	       "without auto-reset it stays set");
	is_i64(reset(m), 0, "until RESET_EVENT");
	is_i64(wait_for(m, 0), KFD_WAIT_TIMEOUT, "then it is not");
	is_i64(set(4000), -EINVAL, "setting an unknown event is EINVAL");
	is_i64(set(0x40000000), -EINVAL,
	       "setting a memory event from the CPU is EINVAL");
	is_i64(reset(4000), -EINVAL, "so is resetting an unknown one");
	is_i64(wait_for(4000, 0), -EINVAL, "and waiting for it");
	is_i64(destroy(4000), -EINVAL, "and destroying it");
	destroy(a);
	destroy(m);
}

static void test_ages(void)
{
	const uint32_t a = new_event(KFD_EVENT_SIGNAL, true);
	struct kfd_event_data d = { .event_id = a, .last_event_age = 1 };
	uint32_t result;

	is_i64(sd_wait_event(&s, &d, 0, &result), 0, "a wait with an age");
	is_u64(result, KFD_WAIT_TIMEOUT, "that is current does not return");
	set(a);
	wait_for(a, 0);
	sd_wait_event(&s, &d, 0, &result);
	is_u64(result, KFD_WAIT_COMPLETE,
	       "a set that another wait consumed is seen by its age");
	is_u64(d.last_event_age, 2, "and the new age comes back");
	sd_wait_event(&s, &d, 0, &result);
	is_u64(result, KFD_WAIT_TIMEOUT, "after which it is current");
	destroy(a);
}

static void test_several(void)
{
	const uint32_t id[2] = { new_event(KFD_EVENT_SIGNAL, true),
				 new_event(KFD_EVENT_SIGNAL, true) };
	struct kfd_event_data d[2] = { { .event_id = id[0] },
				       { .event_id = id[1] } };
	struct kfd_ioc_wait_events w = { sd_ptr(d), 2, 1, 2, 9 };

	set(id[0]);
	is_i64(sd_ioctl(&s, KFD_IOC_WAIT_EVENTS, &w), 0, "wait for both");
	is_u64(w.wait_result, KFD_WAIT_TIMEOUT, "when one is set: timeout");
	is_u64(w.timeout, 0, "nothing is left of the timeout");
	is_i64(wait_for(id[0], 0), KFD_WAIT_COMPLETE,
	       "a wait that failed gives back what it consumed");
	set(id[0]);
	set(id[1]);
	w.timeout = 1000;
	sd_ioctl(&s, KFD_IOC_WAIT_EVENTS, &w);
	is_u64(w.wait_result, KFD_WAIT_COMPLETE, "when both are: complete");
	ok(w.timeout > 900, "and most of the second is left (%u ms)",
	   w.timeout);
	w = (struct kfd_ioc_wait_events){ 0, 2, 0, 0, 0 };
	is_i64(sd_ioctl(&s, KFD_IOC_WAIT_EVENTS, &w), -EFAULT,
	       "a null list is EFAULT");
	destroy(id[0]);
	destroy(id[1]);
}

static void test_timeout(void)
{
	const uint32_t a = new_event(KFD_EVENT_SIGNAL, true);
	const uint64_t began = time_mono_ns();

	is_i64(wait_for(a, 10), KFD_WAIT_TIMEOUT, "a wait of 10 ms");
	ok(time_mono_ns() - began >= 10000000, "takes 10 ms");
	destroy(a);
}

struct sleeper {
	uint32_t id;
	int result;
};

static void *sleep_on(void *arg)
{
	struct sleeper *x = arg;

	x->result = wait_for(x->id, 10000);
	return NULL;
}

/* Let the other thread reach its wait; a late one is right as well. */
static void settle(void)
{
	const struct timespec nap = { 0, 20000000 };

	nanosleep(&nap, NULL);
}

static void test_threads(void)
{
	struct sleeper x = { new_event(KFD_EVENT_SIGNAL, false), 99 };
	pthread_t t;

	pthread_create(&t, NULL, sleep_on, &x);
	settle();
	set(x.id);
	pthread_join(t, NULL);
	is_i64(x.result, KFD_WAIT_COMPLETE,
	       "SET_EVENT wakes a sleeping thread");
	reset(x.id);
	pthread_create(&t, NULL, sleep_on, &x);
	settle();
	destroy(x.id);
	pthread_join(t, NULL);
	ok(x.result == -EIO || x.result == -EINVAL,
	   "destroying the event ends the wait with an error (%d)", x.result);
}

/* An old kernel knows no ages and leaves them alone. */
static void test_old(void)
{
	const struct soft_options o = { .kfd_minor = 13 };
	struct sd keep = s;
	struct kfd_event_data d = { .last_event_age = 7 };
	uint32_t result;

	s = sd_open(&o);
	d.event_id = new_event(KFD_EVENT_SIGNAL, true);
	sd_wait_event(&s, &d, 0, &result);
	ok(result == KFD_WAIT_TIMEOUT && d.last_event_age == 7,
	   "KFD 1.13 does not compare ages");
	sd_close(&s);
	s = keep;
}

int main(void)
{
	s = sd_open(NULL);
	test_page();
	test_limit();
	test_auto_reset();
	test_ages();
	test_several();
	test_timeout();
	test_threads();
	test_old();
	sd_close(&s);
	return plan_done();
}
