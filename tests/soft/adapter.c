/*
 * What clients do to the adapter that shows them the software device: the
 * test runs itself under `t0-soft run`, where it forks, executes, clones,
 * closes what it did not open, waits under signals, and is cancelled.  What
 * is wanted is what Linux does with a device that it drives itself.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfd/abi.h"
#include "tests/tap.h"

#define GPU 0xa37cu
#define MS 1000000ull

extern char **environ;
static const char *self;
static int kfd = -1, drm = -1;

/* -------------------------------------------------------------- the ABI -- */

static bool answers(int fd)
{
	struct kfd_ioc_get_version v = { 0 };

	return !ioctl(fd, KFD_IOC_GET_VERSION, &v) && v.major == 1;
}

static int errno_of(int fd)
{
	return answers(fd) ? 0 : errno;
}

static bool open_device(void)
{
	struct kfd_ioc_acquire_vm vm = { 0, GPU };

	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	drm = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	vm.drm_fd = (uint32_t)drm;
	return kfd >= 0 && drm >= 0 && !ioctl(kfd, KFD_IOC_ACQUIRE_VM, &vm);
}

/* A page of GTT; does it hold what is written? */
static bool memory_works(void)
{
	uint32_t *at = mmap(NULL, 4096, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioc_alloc_memory a = {
		.va_addr = (uintptr_t)at, .size = 4096, .gpu_id = GPU,
		.flags = KFD_MEM_GTT | KFD_MEM_WRITABLE,
	};
	struct kfd_ioc_free_memory f;
	bool good;

	if (ioctl(kfd, KFD_IOC_ALLOC_MEMORY_OF_GPU, &a))
		return false;
	good = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    drm, (off_t)a.mmap_offset) == at;
	if (good)
		at[7] = 4711;
	good = good && at[7] == 4711;
	munmap(at, 4096);
	f.handle = a.handle;
	return good && !ioctl(kfd, KFD_IOC_FREE_MEMORY_OF_GPU, &f);
}

static uint32_t new_event(void)
{
	struct kfd_ioc_create_event e = { .event_type = KFD_EVENT_SIGNAL };

	return ioctl(kfd, KFD_IOC_CREATE_EVENT, &e) ? 0 : e.event_id;
}

static int wait_event(uint32_t id, uint32_t timeout_ms, uint32_t *result)
{
	struct kfd_event_data d = { .event_id = id };
	struct kfd_ioc_wait_events w = { (uintptr_t)&d, 1, 0, timeout_ms, 99 };
	const int ret = ioctl(kfd, KFD_IOC_WAIT_EVENTS, &w);

	*result = w.wait_result;
	return ret ? errno : 0;
}

static void set_event(uint32_t id)
{
	struct kfd_ioc_event e = { id, 0 };

	ioctl(kfd, KFD_IOC_SET_EVENT, &e);
}

/* The exit status of a child that runs fn; 128 + signal. */
static int in_child(int (*fn)(void))
{
	const pid_t pid = fork();
	int status = 0;

	if (!pid) {
		alarm(30);
		_exit(fn());
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/* ---------------------------------------------------------- descriptors -- */

static void test_descriptors(void)
{
	const int copy = dup(kfd), high = fcntl(kfd, F_DUPFD_CLOEXEC, 200);
	int fd, n = 0, same;
	struct stat st;

	ok(answers(copy) && answers(high), "copies of the descriptor work");
	fd = open("/dev/null", O_RDONLY);
	is_i64(errno_of(fd), ENOTTY, "/dev/null is no such device");
	ok(dup2(kfd, fd) == fd && answers(fd), "until it is put there");
	close(fd);
	is_i64(errno_of(fd), EBADF, "closed it is no descriptor");
	same = open("/dev/null", O_RDONLY);
	is_i64(same, fd, "its number is used again");
	is_i64(errno_of(same), ENOTTY, "and is no device");
	close(same);
	close(copy);
	close(high);
	ok(answers(kfd), "the first one works on");
	for (int i = 0; i < 500; i++) {
		const int x = open(i % 2 ? "/dev/kfd" : "/dev/dri/renderD128",
				   O_RDWR | O_CLOEXEC);

		n += x >= 0 && fstat(x, &st) == 0 && S_ISCHR(st.st_mode);
		if (i % 10)
			close(x);
	}
	is_i64(n, 500, "500 are opened");
	ok(memory_works(), "and there is memory");
}

/* As daemons do; the device's own descriptors are not the program's. */
static int close_everything(void)
{
	char path[] = "/tmp/t0-adapter-XXXXXX", text[8] = "";
	int fd;

	if (close_range(3, ~0u, 0) || answers(kfd))
		return 1;
	for (int i = 3; i < 60; i++)
		close(i);
	closefrom(3);
	/* What takes their numbers must not be taken for the device's. */
	fd = mkstemp(path);
	if (write(fd, "mine", 4) != 4)
		return 2;
	for (int i = 3; i < 40; i++)
		if (i != fd)
			dup2(fd, i);
	if (!open_device() || !memory_works())
		return 3;
	if (pread(fd, text, 8, 0) != 4 || strcmp(text, "mine"))
		return 4;
	unlink(path);
	return 0;
}

static int close_at_once(void)
{
	if (!open_device())
		return 9;
	return close_everything();
}

/* ------------------------------------------------------------ processes -- */

static volatile uint64_t *bells;

static int as_child(void)
{
	if (errno_of(kfd) != EBADF)
		return 1;
	if (!open_device() || !memory_works())
		return 2;
	return 0;
}

static int ring_parent(void)
{
	bells[300] = 1;
	return 0;
}

static int execute_self(const char *what)
{
	execl(self, self, what, NULL);
	return 99;
}

static int execute_open(void)
{
	fcntl(kfd, F_SETFD, 0);
	return execute_self("fresh");
}

static int execute_closed(void)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", kfd);
	execl(self, self, "closed", number, NULL);
	return 99;
}

static int execute_atexit(void)
{
	return execute_self("atexit");
}

static void test_processes(void)
{
	char *argv[] = { (char *)(uintptr_t)self, (char *)(uintptr_t)"fresh",
			 NULL };
	int status = -1;
	pid_t pid;

	bells = mmap(NULL, KFD_DOORBELL_SLICE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_SHARED, kfd,
		     (off_t)KFD_MMAP_OFFSET(KFD_MMAP_TYPE_DOORBELL, GPU));
	ok(bells != MAP_FAILED, "doorbells are mapped");
	is_i64(in_child(as_child), 0, "a child needs a device of its own");
	is_i64(in_child(ring_parent), 128 + SIGSEGV,
	       "and has no doorbells of its parent's");
	is_i64(in_child(execute_open), 0, "a program that is executed, too");
	is_i64(in_child(execute_closed), 0, "O_CLOEXEC closes");
	is_i64(in_child(execute_atexit), 0, "calls after exit() work");
	is_i64(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0, "spawn");
	waitpid(pid, &status, 0);
	is_i64(status, 0, "a program that is spawned sees the device");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	pid = vfork();
#pragma GCC diagnostic pop
	if (!pid) {
		const int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

		execl(self, self, fd >= 0 ? "fresh" : "none", NULL);
		_exit(98);
	}
	waitpid(pid, &status, 0);
	is_i64(status, 0, "a child of vfork() opens and executes");
	ok(answers(kfd) && memory_works(), "the parent's device works on");
	is_i64(in_child(close_everything), 0,
	       "all descriptors closed, files are safe");
	is_i64(in_child(close_at_once), 0, "with a device in use, too");
}

/* -------------------------------------------------------------- threads -- */

static void *open_and_close(void *arg)
{
	int *bad = arg;

	for (int i = 0; i < 150; i++) {
		const int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE |
			       MAP_ANONYMOUS, -1, 0);

		if (fd < 0 || !answers(fd) || !memory_works())
			__atomic_add_fetch(bad, 1, __ATOMIC_RELAXED);
		munmap(p, 4096);
		close(fd);
	}
	return NULL;
}

static void *wait_for_ever(void *arg)
{
	uint32_t result;

	wait_event(*(uint32_t *)arg, KFD_WAIT_FOREVER, &result);
	pthread_testcancel();
	return NULL;
}

static void test_threads(void)
{
	uint32_t event = new_event(), result;
	pthread_t t[6];
	void *ret = NULL;
	int bad = 0;

	for (int i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, open_and_close, &bad);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	is_i64(bad, 0, "six threads open, map and close at the same time");
	pthread_create(&t[0], NULL, wait_for_ever, &event);
	usleep(20000);
	pthread_cancel(t[0]);
	usleep(20000);
	set_event(event);
	pthread_join(t[0], &ret);
	ok(ret == PTHREAD_CANCELED, "a thread is cancelled after its ioctl");
	set_event(event);
	is_i64(wait_event(event, 1000, &result), 0, "others wait as before");
	is_u64(result, KFD_WAIT_COMPLETE, "with success");
}

/* -------------------------------------------------------------- signals -- */

static volatile sig_atomic_t caught, failed;
static uint32_t waited;

static void on_alarm(int sig)
{
	const int e = errno;

	(void)sig;
	caught++;
	failed += !answers(kfd); /* a handler may call, too */
	errno = e;
}

static void on_alarm_set(int sig)
{
	on_alarm(sig);
	if (caught == 3)
		set_event(waited);
}

static void start_timer(void (*handler)(int), int flags, int ms)
{
	const struct sigaction a = { .sa_handler = handler,
				     .sa_flags = flags };
	const struct itimerval t = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	caught = 0;
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

static void stop_timer(void)
{
	const struct itimerval t = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &t, NULL);
	signal(SIGALRM, SIG_DFL);
}

static void test_signals(void)
{
	const struct {
		uint32_t ms;
		int flags, want;
		const char *name;
	} t[] = {
		{ KFD_WAIT_FOREVER, 0, EINTR, "for ever, no restart" },
		{ 20000, 0, EINTR, "20 s, no restart" },
		{ KFD_WAIT_FOREVER, SA_RESTART, 0, "for ever, restart" },
		{ 20000, SA_RESTART, 0, "20 s, restart" },
	};
	int bad = 0;

	waited = new_event();
	for (size_t i = 0; i < 4; i++) {
		uint32_t result = 0;
		struct kfd_ioc_event e = { waited, 0 };

		ioctl(kfd, KFD_IOC_RESET_EVENT, &e);
		start_timer(t[i].want ? on_alarm : on_alarm_set, t[i].flags,
			    20);
		is_i64(wait_event(waited, t[i].ms, &result), t[i].want,
		       "a wait under signals: %s", t[i].name);
		stop_timer();
		if (!t[i].want)
			is_u64(result, KFD_WAIT_COMPLETE, "%s: complete",
			       t[i].name);
	}
	start_timer(on_alarm, SA_RESTART, 1);
	while (caught < 100) {
		bad += !answers(kfd);
		bad += !memory_works();
	}
	stop_timer();
	is_i64(bad, 0, "ioctls under a hail of signals");
	is_i64(failed, 0, "and those of the handlers");
}

/* --------------------------------------------------------------- others -- */

static char empty_root[] = "/tmp/t0-adapter-XXXXXX";

static int leave_root(void)
{
	if (chroot(empty_root))
		return 77;
	if (open("/dev/kfd", O_RDWR) >= 0 || errno != ENOENT)
		return 1;
	return 0;
}

static int clear_environment(void)
{
	clearenv();
	return open_device() && memory_works() ? 0 : 1;
}

static void test_others(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW), *m;
	int (*call)(int, unsigned long, ...);
	struct kfd_ioc_get_version v = { 0 };
	int ret;

	*(void **)&call = dlsym(libc, "ioctl");
	ok(!call(kfd, KFD_IOC_GET_VERSION, &v), "ioctl() by dlsym() works");
	for (int i = 0; i < 20; i++) {
		m = dlopen("libm.so.6", RTLD_NOW);
		dlclose(m);
	}
	dlclose(libc);
	ok(answers(kfd), "libraries come and go");
	is_i64(ioctl(kfd, KFD_IOC_GET_VERSION, (void *)8), -1, "bad pointers");
	is_i64(errno, EFAULT, "are EFAULT");
	is_i64(ioctl(kfd, KFD_IOC_ACQUIRE_VM, (void *)8), -1, "everywhere");
	is_i64(errno, EFAULT, "in the adapter, too");
	is_i64(in_child(clear_environment), 0, "the environment is not needed");
	ok(mkdtemp(empty_root), "an empty folder is made");
	ret = in_child(leave_root);
	rmdir(empty_root);
	if (ret == 77)
		skip("only root may chroot()");
	else
		is_i64(ret, 0, "in another root there is no device");
}

/* ------------------------------------------------------------ as a child -- */

static void at_exit(void)
{
	if (!answers(kfd))
		_exit(5);
}

static int run_as(const char *what, const char *number)
{
	alarm(30);
	if (!strcmp(what, "closed"))
		return errno_of(atoi(number)) == EBADF ? 0 : 1;
	if (!strcmp(what, "none") || !open_device() || !memory_works())
		return 3;
	if (!strcmp(what, "atexit"))
		atexit(at_exit);
	return 0;
}

int main(int argc, char **argv)
{
	const char *build = getenv("T0_BUILD");
	char tool[1000], library[1000];

	self = "/proc/self/exe";
	if (argc > 1)
		return run_as(argv[1], argc > 2 ? argv[2] : "");
	snprintf(tool, sizeof(tool), "%s/t0-soft", build ? build : "");
	snprintf(library, sizeof(library), "%s/libt0-soft-preload.so",
		 build ? build : "");
	if (!getenv("T0_SOFT_ROOT")) {
		if (access(library, R_OK))
			skip_all("this build mode has no adapter");
		execl(tool, tool, "run", "--", argv[0], NULL);
		diag("%s cannot be executed", tool);
		return 2;
	}
	ok(open_device(), "the device is there");
	test_descriptors();
	test_processes();
	test_threads();
	test_signals();
	test_others();
	return plan_done();
}
