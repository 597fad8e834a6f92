/*
 * kfd/linux/linux.c - the Linux side of the driver seam: libc with -errno
 * results, nothing more.
 *
 * Retries, messages and policy belong to the callers.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd/driver.h"

static int linux_open(struct kfd_driver *d, const char *path, int flags)
{
	(void)d;
	int fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

static int linux_close(struct kfd_driver *d, int fd)
{
	(void)d;
	return close(fd) < 0 ? -errno : 0;
}

static int linux_ioctl(struct kfd_driver *d, int fd, unsigned long request,
		       void *arg)
{
	(void)d;
	int r = ioctl(fd, request, arg);
	return r < 0 ? -errno : r;
}

static void *linux_mmap(struct kfd_driver *d, void *addr, size_t size_bytes,
			int prot, int flags, int fd, uint64_t offset,
			int *err_no)
{
	(void)d;
	/* Doorbell cookies have bit 63 set: the cast keeps all bits. */
	void *p = mmap(addr, size_bytes, prot, flags, fd, (off_t)offset);
	if (p == MAP_FAILED)
		*err_no = errno;
	return p;
}

static int linux_munmap(struct kfd_driver *d, void *addr, size_t size_bytes)
{
	(void)d;
	return munmap(addr, size_bytes) < 0 ? -errno : 0;
}

static int linux_read_file(struct kfd_driver *d, const char *path,
			   struct buf *out)
{
	(void)d;
	char chunk[4096];
	ssize_t n = 0;
	int fd, r;

	do
		fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			buf_add(out, chunk, (size_t)n);
	} while (n > 0 || (n < 0 && errno == EINTR));
	r = n < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int linux_list_dir(struct kfd_driver *d, const char *path,
			  struct buf *out)
{
	(void)d;
	DIR *dir = opendir(path);
	if (!dir)
		return -errno;
	errno = 0;
	for (struct dirent *de; (de = readdir(dir)); errno = 0) {
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, "..")) {
			buf_adds(out, de->d_name);
			buf_addc(out, '\n');
		}
	}
	int r = -errno;
	closedir(dir);
	return r;
}

static void linux_ring(struct kfd_driver *d, volatile uint64_t *doorbell,
		       uint64_t value)
{
	(void)d;
	__atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
}

static void linux_free(struct kfd_driver *d)
{
	free(d);
}

/* Under `t0-soft run` files, and all else, are of cards in software. */
static const char *find_origin(void)
{
	struct buf b = { 0 };
	const char *origin = "hardware";

	if (!linux_read_file(NULL, KFD_SOFT_MARK, &b))
		origin = b.data && !strncmp(b.data, KFD_SOFT_SIMULATED,
					    strlen(KFD_SOFT_SIMULATED)) ?
				 "simulated" :
				 "emulated";
	buf_fini(&b);
	return origin;
}

struct kfd_driver *kfd_linux_new(void)
{
	struct kfd_driver *d = xcalloc(1, sizeof(*d));

	*d = (struct kfd_driver){
		.name = "kfd",
		.origin = find_origin(),
		.open = linux_open,
		.close = linux_close,
		.ioctl = linux_ioctl,
		.mmap = linux_mmap,
		.munmap = linux_munmap,
		.read_file = linux_read_file,
		.list_dir = linux_list_dir,
		.ring = linux_ring,
		.free = linux_free,
	};
	return d;
}
