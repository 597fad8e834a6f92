/*
 * kfd/soft/trap/serve.c - the threads that do for the program's threads what
 * their handler cannot: calls of the device.
 *
 * A slot is a thread of ours and a futex.  Only some of them may serve a call
 * that waits for events, so that those that end the wait always find one.
 * As they would keep a process alive whose own threads have all ended, one more
 * looks whether they have.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/base.h"
#include "kfd/abi.h"
#include "kfd/soft/preload/preload.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/trap/trap.h"

#define SLOTS 48
#define SLOTS_QUICK 8
#define STACK_BYTES (1u << 20)
#define LOOK_NS 20000000
#define OUR_NAME "t0-soft device"

enum state { FREE, CLAIMED, ASKED, DONE };

static struct slot {
	uint32_t state; /* atomic, a futex */
	enum trap_ask what;
	uint64_t arg[6], x, y;
	long result;
} slots[SLOTS];
static bool has_device; /* atomic */
static uint32_t asked;	 /* atomic, a futex: somebody has asked */

static void sleep_while(uint32_t *word, uint32_t value)
{
	trap_raw(SYS_futex, (uintptr_t)word, FUTEX_WAIT_PRIVATE, value, 0, 0,
		 0);
}

static void set_state(struct slot *s, uint32_t state)
{
	__atomic_store_n(&s->state, state, __ATOMIC_RELEASE);
	trap_raw(SYS_futex, (uintptr_t)&s->state, FUTEX_WAKE_PRIVATE, INT_MAX,
		 0, 0, 0);
}

/* ------------------------------------------------- the program's threads -- */

static struct slot *claim_slot(bool waits)
{
	for (;;) {
		for (int i = waits ? SLOTS_QUICK : 0; i < SLOTS; i++) {
			uint32_t was = FREE;

			if (__atomic_compare_exchange_n(&slots[i].state, &was,
							CLAIMED, false,
							__ATOMIC_ACQ_REL,
							__ATOMIC_RELAXED))
				return &slots[i];
		}
		trap_raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
}

long trap_ask(const struct trap_call *c, enum trap_ask what, uint64_t x,
	      uint64_t y)
{
	const bool waits = what == TRAP_IOCTL &&
			   KFD_REQUEST_NR(c->arg[1]) == KFD_NR_WAIT_EVENTS;
	struct slot *s = claim_slot(waits);
	long result;

	if (!__atomic_exchange_n(&asked, 1, __ATOMIC_ACQ_REL))
		trap_raw(SYS_futex, (uintptr_t)&asked, FUTEX_WAKE_PRIVATE, 1,
			 0, 0, 0);
	s->what = what;
	memcpy(s->arg, c->arg, sizeof(s->arg));
	s->x = x;
	s->y = y;
	set_state(s, ASKED);
	while (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == ASKED)
		if (waits)
			trap_wait(c, SYS_futex, (uintptr_t)&s->state,
				  FUTEX_WAIT_PRIVATE, ASKED, 0);
		else
			sleep_while(&s->state, ASKED);
	result = s->result;
	set_state(s, FREE);
	return result;
}

bool trap_has_device(void)
{
	return __atomic_load_n(&has_device, __ATOMIC_ACQUIRE);
}

/* -------------------------------------------------------------- our own -- */

static long serve_call(const struct slot *s)
{
	const uint64_t *a = s->arg;
	long ret;

	switch (s->what) {
	case TRAP_OPENING:
	case TRAP_OPENED:
		ret = s->what == TRAP_OPENING ?
			      pl_opening((const char *)(uintptr_t)s->x) :
			      pl_opened((int)s->x);
		__atomic_store_n(&has_device, true, __ATOMIC_RELEASE);
		return -ret;
	case TRAP_IOCTL:
		ret = pl_ioctl((enum pl_node)s->x, a[1],
			       (void *)(uintptr_t)a[2]);
		return ret < 0 ? -errno : ret;
	case TRAP_MMAP:
		ret = (long)pl_mmap((enum pl_node)s->x,
				    (void *)(uintptr_t)a[0], a[1], (int)a[2],
				    (int)a[3], (off_t)a[5]);
		return ret == -1 ? -errno : ret;
	case TRAP_OWNS:
		return pl_owns_fd((int)s->x);
	case TRAP_MUNMAP:
		ret = pl_munmap((void *)(uintptr_t)a[0], a[1]);
		return ret ? -errno : 0;
	case TRAP_MPROTECT:
		ret = pl_mprotect((void *)(uintptr_t)a[0], a[1], (int)a[2]);
		return ret ? -errno : 0;
	case TRAP_REPLACED:
	case TRAP_GONE:
		pl_remapped((void *)(uintptr_t)s->x, s->y,
			    s->what == TRAP_GONE);
		return 0;
	}
	return -ENOSYS;
}

static void *serve_slot(void *arg)
{
	struct slot *s = arg;
	uint32_t state;

	prctl(PR_SET_NAME, OUR_NAME);
	for (;;) {
		state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
		if (state != ASKED) {
			sleep_while(&s->state, state);
			continue;
		}
		s->result = serve_call(s);
		set_state(s, DONE);
	}
	return NULL;
}

/* The rest of "/proc/self/task/TID/NAME", or -1. */
static int open_task(const char *tid, const char *name)
{
	char path[320];

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Has the first thread ended?  Then with what, as wait() tells it. */
static bool main_ended(int *status)
{
	char text[1024], tid[16], *p;
	ssize_t n;
	int fd;

	snprintf(tid, sizeof(tid), "%d", (int)getpid());
	fd = open_task(tid, "stat");
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')');
	if (!p || p[2] != 'Z')
		return false;
	p = strrchr(p, ' '); /* the last field */
	*status = p ? atoi(p) : 0;
	return true;
}

/* Are all the others ours? */
static bool all_ours(void)
{
	DIR *d = opendir("/proc/self/task");
	bool ours = d;

	for (struct dirent *e; ours && (e = readdir(d));) {
		char name[32] = "";
		int fd;

		if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
			continue;
		fd = open_task(e->d_name, "comm");
		if (fd < 0)
			continue; /* it has ended */
		if (read(fd, name, sizeof(name) - 1) > 0)
			ours = !strcmp(name, OUR_NAME "\n");
		close(fd);
	}
	if (d)
		closedir(d);
	return ours;
}

/* All slots' threads, at the first question; most programs ask none. */
static void make_threads(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 0; i < SLOTS; i++)
		if (pthread_create(&t, &attr, serve_slot, &slots[i])) {
			fprintf(stderr, "t0-soft: --trap: no thread for the "
				"device: %s\n", strerror(errno));
			_exit(EXIT_TROUBLE);
		}
	pthread_attr_destroy(&attr);
}

/* The first of our threads: makes the others, and looks for the end. */
static void *watch_process(void *arg)
{
	const struct timespec nap = { 0, LOOK_NS };
	bool made = false;
	int status;

	prctl(PR_SET_NAME, OUR_NAME);
	do {
		if (!made)
			trap_raw(SYS_futex, (uintptr_t)&asked,
				 FUTEX_WAIT_PRIVATE, 0, (uintptr_t)&nap, 0, 0);
		else
			nanosleep(&nap, NULL);
		if (!made && __atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
			make_threads();
			made = true;
		}
	} while (!main_ended(&status) || !all_ours());
	_exit(status >> 8);
	return arg;
}

bool trap_serve(void)
{
	pthread_t t;
	int err = soft_thread(&t, watch_process, NULL);

	errno = err;
	return !err;
}
