/*
 * kfd/soft/preload/device.c - the soft device inside the program: made when a
 * node is first opened, one handle per node, freed with the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kfd/abi.h"
#include "kfd/soft/preload/preload.h"
#include "kfd/soft/soft.h"

/* What a thread is, outside the device. */
struct outside {
	sigset_t mask;
	int cancel;
	struct outside *sleeper; /* below a handler that called */
};
/* NULL: it is there; what it was before it fell asleep in there. */
static __thread struct outside *outside, *sleeper;

/*
 * Calls of the device take locks: as those of the kernel they are neither
 * cancelled nor interrupted half-way by a handler, which may call again.
 */
static void enter_device(struct outside *o)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* see kfd_soft_sigaction() */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &o->mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &o->cancel);
	o->sleeper = sleeper;
	outside = o;
	pl_inside = true;
}

/* The device's threads never are outside. */
static void begin_inside(void)
{
	pl_inside = true;
}

static void leave_device(const struct outside *o)
{
	pl_inside = false;
	outside = NULL;
	sleeper = o->sleeper;
	pthread_setcancelstate(o->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &o->mask, NULL);
}

/* The device sleeps without a lock: handlers run, and end the sleep. */
static void sleep_outside(bool asleep)
{
	sigset_t all;

	if (asleep && outside) {
		sleeper = outside;
		outside = NULL;
		pl_inside = false;
		pthread_sigmask(SIG_SETMASK, &sleeper->mask, NULL);
	} else if (!asleep && sleeper) {
		sigfillset(&all);
		sigdelset(&all, SIGSEGV);
		sigdelset(&all, SIGBUS);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
		pl_inside = true;
		outside = sleeper;
		sleeper = NULL;
	}
}

/* Written under `lock` before `owner`, which says that it may be read. */
static struct kfd_driver *driver;
static int fds[PL_NODES];
static pid_t owner; /* atomic: the process whose threads serve `driver` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Not 0 where the owner's memory is; a child of fork() finds a 0. */
static char *owned;

/* The device of this process, or NULL. */
static struct kfd_driver *process_driver(void)
{
	return __atomic_load_n(&owner, __ATOMIC_ACQUIRE) == getpid() ? driver :
								       NULL;
}

/*
 * To the file T0_SOFT_LOG, else to the program's standard error; whole lines,
 * as several processes may write.
 */
static void write_line(const char *line)
{
	const char *path = getenv("T0_SOFT_LOG");
	char text[1024];
	const int n = snprintf(text, sizeof(text), "t0-soft: %s\n", line);
	const bool inside = pl_inside;
	int fd = STDERR_FILENO;

	pl_inside = true;
	if (path && *path)
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
			  0666);
	(void)!write(fd, text, (size_t)n);
	if (fd != STDERR_FILENO)
		close(fd);
	pl_inside = inside;
}

/* As the kernel does when told to (amdkfd.send_sigterm=1). */
static void end_process(void)
{
	write_line("the queues have ended, and the program has no event by "
		   "which it could hear of it: it is sent SIGTERM");
	kill(getpid(), SIGTERM);
}

/* "threads=2,kfd_minor=14,chip=gfx1100,vram=1024", a chip for each card, from
 * t0-soft. */
static struct soft_options read_options(void)
{
	struct soft_options o = { 0 };
	const char *env = getenv("T0_SOFT_OPTIONS");
	char *copy = xstrdup(env ? env : ""), *save = NULL;

	for (char *p = strtok_r(copy, ",", &save); p;
	     p = strtok_r(NULL, ",", &save)) {
		char *value = strchr(p, '=');
		const uint64_t v = value ? strtoull(value + 1, NULL, 0) : 1;

		if (!strncmp(p, "threads=", 8))
			o.threads = (unsigned)v;
		else if (!strncmp(p, "kfd_minor=", 10))
			o.kfd_minor = (uint32_t)v;
		else if (!strncmp(p, "chip=", 5) && o.cards < SOFT_CARDS_MAX)
			o.chip[o.cards++] = isa_chip_find(p + 5);
		else if (!strncmp(p, "vram=", 5))
			o.vram_bytes = v;
		else if (!strncmp(p, "small_bar=", 10))
			o.small_bar = v;
		else if (!strncmp(p, "open_errno=", 11))
			o.open_errno = (int)v;
	}
	free(copy);
	o.report = write_line;
	o.unheard = end_process;
	o.sleeping = sleep_outside;
	return o;
}

/* A child of fork() must not wait for a lock that no thread of it holds. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* A child of vfork() runs in its parent's memory until it calls exec(). */
static bool is_borrowed(void)
{
	return owned && *owned &&
	       __atomic_load_n(&owner, __ATOMIC_ACQUIRE) != getpid();
}

bool (*pl_made)(struct kfd_driver *d, const struct isa_chip *chip,
		struct err *e);

/* What else belongs to it; false: there is no device then. */
static bool complete_driver(const struct isa_chip *chip)
{
	struct err e = { 0 };

	if (!driver || ((!pl_made || pl_made(driver, chip, &e)) &&
			pl_inject(driver, &e)))
		return driver != NULL;
	write_line(e.msg);
	driver->free(driver);
	driver = NULL;
	return false;
}

static void make_driver(void)
{
	const struct soft_options o = read_options();
	static int once;

	if (!owned) {
		owned = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (owned == MAP_FAILED ||
		    madvise(owned, 4096, MADV_WIPEONFORK))
			owned = NULL;
	}
	/* After fork() the parent's device is left alone and forgotten. */
	soft_thread_begins = begin_inside;
	driver = kfd_soft_new(&o, NULL);
	memset(fds, -1, sizeof(fds));
	if (!complete_driver(o.chip[0]))
		return;
	if (!once++)
		pthread_atfork(NULL, NULL, in_child);
	__atomic_store_n(&owner, getpid(), __ATOMIC_RELEASE);
	if (owned)
		*owned = 1;
}

static int open_node(enum pl_node node)
{
	struct outside o;
	char path[32];
	int ret = 0;

	if (is_borrowed())
		return 0; /* what it executes will ask again */
	enter_device(&o);
	pthread_mutex_lock(&lock);
	if (!process_driver())
		make_driver();
	if (!process_driver())
		ret = -ENOMEM;
	else if (fds[node] < 0) {
		pl_node_path(node, path);
		ret = fds[node] = driver->open(driver, path,
					       O_RDWR | O_CLOEXEC);
	}
	pthread_mutex_unlock(&lock);
	leave_device(&o);
	return ret < 0 ? -ret : 0;
}

/* The device's file as it is now. */
static void refresh_file(const char *path, const char *shown)
{
	struct kfd_driver *d = process_driver();
	struct buf b = { 0 };
	struct outside o;
	int fd;

	if (!d || !soft_sysfs_live(d, shown))
		return; /* nothing has happened yet that it could tell */
	enter_device(&o);
	if (!d->read_file(d, shown, &b)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && pwrite(fd, b.data, b.len, 0) == (ssize_t)b.len)
			(void)!ftruncate(fd, (off_t)b.len);
		if (fd >= 0)
			close(fd);
	}
	buf_fini(&b);
	leave_device(&o);
}

int pl_opening(const char *path)
{
	const char *shown = path + strlen(pl_root());
	char node[32];

	/* One of a card that there is not is no file of the folder. */
	for (int i = 0; i < PL_NODES; i++) {
		pl_node_path((enum pl_node)i, node);
		if (!strcmp(shown, node))
			return access(path, F_OK) ?
				       0 : open_node((enum pl_node)i);
	}
	refresh_file(path, shown);
	return 0;
}

int pl_opened(int fd)
{
	const enum pl_node node = pl_node_of_fd(fd);

	return node == PL_NONE ? 0 : open_node(node);
}

/* The device's own handle of a node that the program has open. */
static int handle_of(enum pl_node node)
{
	if (node == PL_NONE || !process_driver())
		return -1;
	/* Opened by a program that this process was before exec? */
	if (fds[node] < 0 && open_node(node))
		return -1;
	return fds[node];
}

int pl_ioctl(enum pl_node node, unsigned long request, void *arg)
{
	struct kfd_ioc_acquire_vm vm;
	const int fd = handle_of(node);
	struct outside o;
	int ret;

	if (fd < 0) {
		errno = EBADF; /* inherited from the parent */
		return -1;
	}
	if (node == PL_KFD && KFD_REQUEST_NR(request) == KFD_NR_ACQUIRE_VM) {
		struct iovec to = { &vm, sizeof(vm) }, from = { arg, sizeof(vm) };

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) !=
		    sizeof(vm)) {
			errno = EFAULT;
			return -1;
		}
		vm.drm_fd = (uint32_t)handle_of(pl_node_of_fd((int)vm.drm_fd));
		arg = &vm;
	}
	enter_device(&o);
	ret = driver->ioctl(driver, fd, request, arg);
	leave_device(&o);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

void *pl_mmap(enum pl_node node, void *addr, size_t size, int prot, int flags,
	      off_t offset)
{
	const int fd = handle_of(node);
	struct outside o;
	int err = EBADF;
	void *p = MAP_FAILED;

	enter_device(&o);
	if (fd >= 0)
		p = driver->mmap(driver, addr, size, prot, flags, fd,
				 (uint64_t)offset, &err);
	leave_device(&o);
	if (p == MAP_FAILED)
		errno = err;
	return p;
}

int pl_mprotect(void *addr, size_t size, int prot)
{
	struct kfd_driver *d = pl_inside ? NULL : process_driver();
	int ret;

	if (!d)
		return (int)syscall(SYS_mprotect, addr, size, prot);
	pl_inside = true;
	ret = d->mprotect(d, addr, size, prot);
	pl_inside = false;
	if (ret >= 0)
		return 0;
	errno = -ret;
	return -1;
}

int pl_munmap(void *addr, size_t size)
{
	struct kfd_driver *d = pl_inside ? NULL : process_driver();
	struct outside o;
	int ret;

	if (!d)
		return (int)syscall(SYS_munmap, addr, size);
	enter_device(&o);
	ret = d->munmap(d, addr, size);
	leave_device(&o);
	if (ret >= 0)
		return 0;
	errno = -ret;
	return -1;
}

void pl_remapped(void *addr, size_t size, bool gone)
{
	struct kfd_driver *d = pl_inside ? NULL : process_driver();
	struct outside o;

	if (!d)
		return;
	enter_device(&o);
	kfd_soft_remapped(d, addr, size, gone);
	leave_device(&o);
}

bool pl_owns_fd(int fd)
{
	struct kfd_driver *d = pl_inside ? NULL : process_driver();
	struct outside o;
	bool owns;

	if (!d)
		return false;
	enter_device(&o);
	owns = kfd_soft_owns_fd(d, fd);
	leave_device(&o);
	return owns;
}
