/*
 * What a program may do with the card's nodes, one line each: "good NAME" or
 * "bad NAME".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define GET_VERSION 0x80084b01ul
#define ACQUIRE_VM 0x40084b15ul
#define AMDGPU_INFO 0x40206445ul

static void say(int good, const char *name)
{
	printf("%s %s\n", good ? "good" : "bad", name);
	fflush(stdout);
}

static int version(int fd)
{
	uint32_t v[2] = { 0 };

	return ioctl(fd, GET_VERSION, v) ? -errno : (int)v[0];
}

static int child(int (*fn)(int), int fd)
{
	int status = -1;
	const pid_t pid = fork();

	if (!pid)
		_exit(fn(fd));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int inherited(int fd)
{
	return version(fd) == -EBADF;
}

static int own(int fd)
{
	const int mine = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	(void)fd;
	return mine >= 0 && version(mine) == 1;
}

static int unmap(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	(void)fd;
	return p != MAP_FAILED && !munmap(p, 4096);
}

/* The device's threads must not take the program's signals. */
static volatile sig_atomic_t handled;
static pthread_t main_thread;

static void handler(int sig)
{
	(void)sig;
	handled = pthread_equal(pthread_self(), main_thread) ? 1 : 2;
}

static void test_signal(void)
{
	sigset_t set, old;

	main_thread = pthread_self();
	signal(SIGUSR1, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	kill(getpid(), SIGUSR1);
	usleep(20000);
	say(!handled, "a blocked signal waits for the program");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	say(handled == 1, "and then comes to the program's thread");
}

int main(void)
{
	struct {
		uint64_t pointer;
		uint32_t size, query, arg[4];
	} info = { 0 };
	uint32_t accel = 0, vm[2];
	struct statx sx;
	struct stat st;
	char path[4096];
	struct dirent **list;
	FILE *f;

	const int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	const int drm = open64("/dev/dri/renderD128", O_RDWR);
	const int at = openat(AT_FDCWD, "/dev/dri/card0", O_RDWR);

	say(kfd >= 0 && drm >= 0 && at >= 0, "all nodes can be opened");
	say(open("/dev/dri/renderD129", O_RDWR) < 0 && errno == ENOENT,
	    "a second card is not there");
	say(!access("/dev/kfd", R_OK | W_OK), "access is granted");
	say(version(kfd) == 1, "an ioctl on /dev/kfd");
	say(version(drm) == -ENOTTY, "KFD's are none of the render node");
	say(version(0) < 0, "other files have none");
	info.pointer = (uintptr_t)&accel;
	info.size = 4;
	say(!ioctl(drm, AMDGPU_INFO, &info) && accel == 1,
	    "a DRM ioctl on the render node");
	accel = 0;
	say(!ioctl(at, AMDGPU_INFO, &info) && accel == 1, "and on the card");
	say(!fstat(drm, &st) && S_ISCHR(st.st_mode) &&
		    st.st_rdev == makedev(226, 128),
	    "fstat tells the render node's number");
	say(!stat("/dev/dri/card0", &st) && S_ISCHR(st.st_mode) &&
		    st.st_rdev == makedev(226, 0),
	    "stat tells the card's");
	say(!statx(AT_FDCWD, "/dev/kfd", 0, STATX_ALL, &sx) &&
		    S_ISCHR(sx.stx_mode),
	    "statx tells a device, too");

	const int copy = fcntl(kfd, F_DUPFD_CLOEXEC, 100), second = dup(kfd);
	const int render = dup(drm);

	close(kfd);
	say(copy >= 100 && version(copy) == 1 && version(second) == 1,
	    "copies of a descriptor work when it is closed");
	vm[0] = (uint32_t)render;
	vm[1] = 41852;
	say(!ioctl(copy, ACQUIRE_VM, vm), "a copy of the render node's, too");
	vm[0] = (uint32_t)open("/dev/null", O_RDONLY);
	say(ioctl(copy, ACQUIRE_VM, vm) && errno == EINVAL,
	    "another file is none of a card");

	say(child(inherited, copy) == 1, "a forked child gets EBADF");
	say(child(own, copy) == 1, "and its own device when it opens one");
	say(child(unmap, copy) == 1, "and may map and unmap");
	say(version(copy) == 1, "which leaves the parent's alone");

	say(realpath("/sys/class/drm/card0/device", path) &&
		    !strncmp(path, "/sys/devices/pci0000:00/", 24),
	    "a real path is below /sys");
	say(readlink("/sys/class/kfd/kfd", path, sizeof(path)) > 0,
	    "links can be read");
	say(scandir("/sys/class/kfd/kfd/topology/nodes", &list, NULL,
		    alphasort) == 4,
	    "folders can be scanned");
	f = fopen("/sys/class/drm/card0/device/gpu_busy_percent", "r");
	say(f && fgets(path, sizeof(path), f) && !strcmp(path, "0\n"),
	    "files can be read with stdio");
	say(!chdir("/sys/class/drm/card0/device") && !access("vendor", R_OK) &&
		    getcwd(path, sizeof(path)) &&
		    !strncmp(path, "/sys/devices/pci0000:00/", 24),
	    "one can go there");
	say(mmap(NULL, 4096, PROT_READ, MAP_SHARED, drm, 0) == MAP_FAILED &&
		    errno == EINVAL,
	    "mmap of what is no buffer is EINVAL");
	test_signal();
	return 0;
}
