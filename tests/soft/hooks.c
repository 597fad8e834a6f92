/*
 * Hooks of the soft device (kfd/soft/device/dev.h): what is attached is asked
 * in order, the first that refuses ends the question, and all are freed with
 * the device, the last one first.
 */
#include <errno.h>
#include <string.h>

#include "kfd/soft/device/dev.h"
#include "tests/tap.h"

static char said[64]; /* a letter for each time that a hook was asked */

struct probe {
	struct soft_hook hook;
	char letter;
	int answer;
};

static int say(struct soft_hook *h)
{
	const struct probe *p = (struct probe *)h;

	strncat(said, &p->letter, 1);
	return p->answer;
}

static int on_open(struct soft_hook *h, const struct soft_call *c)
{
	return c->kind == SOFT_CALL_OPEN ? say(h) : 0;
}

static int on_call(struct soft_hook *h, const struct soft_call *c)
{
	return c->kind == SOFT_CALL_MMAP || c->kind == SOFT_CALL_DONE ? 0 :
									say(h);
}

static void on_free(struct soft_hook *h)
{
	say(h);
}

static const struct soft_hook_ops first_ops = { .call = on_open,
						.free = on_free };
static const struct soft_hook_ops second_ops = { .call = on_call,
						 .free = on_free };

int main(void)
{
	struct err e = { 0 };
	struct kfd_driver *drv = kfd_soft_new(NULL, &e);
	struct soft_dev *d = (struct soft_dev *)drv;
	struct probe a = { { &first_ops }, 'a', 0 };
	struct probe b = { { &second_ops }, 'b', -EPERM };
	struct probe other = { { &first_ops }, 'c', 0 };
	struct kfd_ioc_map_memory map = { 0 };
	int fd;

	if (!ok(drv, "a device is made"))
		return plan_done();
	fd = drv->open(drv, "/dev/kfd", 0);
	ok(fd >= 0, "without hooks it opens");
	ok(soft_hook_attach(d, &a.hook) == &a.hook, "one hook");
	ok(soft_hook_attach(d, &b.hook) == &b.hook, "and another");
	ok(soft_hook_attach(d, &other.hook) == &a.hook,
	   "a second of the same kind is not attached");
	ok(soft_hook_find(d, &second_ops) == &b.hook, "each can be found");
	ok(!soft_hook_watcher(d), "none of them watches waves");
	is_i64(drv->open(drv, "/dev/kfd", 0), -EPERM, "a hook can refuse");
	is_str(said, "ab", "both were asked, in order");
	a.answer = -EACCES;
	is_i64(drv->open(drv, "/dev/kfd", 0), -EACCES, "so can the other");
	is_str(said, "aba", "and the second is not asked any more");
	is_i64(drv->ioctl(drv, fd, KFD_IOC_MAP_MEMORY_TO_GPU, &map), -EPERM,
	       "one that has nothing to say of an ioctl is passed over");
	is_str(said, "abab", "and the next one is asked");
	drv->close(drv, fd);
	drv->free(drv);
	is_str(said, "ababba", "with the device go the hooks, the last first");
	return plan_done();
}
