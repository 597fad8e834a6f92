/*
 * kfd/runtime/ioctl.c - calls of the driver: repeated where it says so, and
 * turned into errors that say which call, with what, and what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "kfd/runtime/runtime.h"

#define RETRY_NS      10000000000ull /* of EINTR and EAGAIN, per ioctl */
#define OPEN_RETRY_NS 5000000000ull  /* of EAGAIN: a GPU reset is going on */

/* ------------------------------------------------------------ ioctl --- */

static const struct request {
	unsigned nr;
	const char *name;
} requests[] = {
	{ KFD_NR_GET_VERSION, "GET_VERSION" },
	{ KFD_NR_CREATE_QUEUE, "CREATE_QUEUE" },
	{ KFD_NR_DESTROY_QUEUE, "DESTROY_QUEUE" },
	{ KFD_NR_GET_CLOCK_COUNTERS, "GET_CLOCK_COUNTERS" },
	{ KFD_NR_CREATE_EVENT, "CREATE_EVENT" },
	{ KFD_NR_DESTROY_EVENT, "DESTROY_EVENT" },
	{ KFD_NR_WAIT_EVENTS, "WAIT_EVENTS" },
	{ KFD_NR_GET_PROCESS_APERTURES_NEW, "GET_PROCESS_APERTURES_NEW" },
	{ KFD_NR_ACQUIRE_VM, "ACQUIRE_VM" },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, "ALLOC_MEMORY_OF_GPU" },
	{ KFD_NR_FREE_MEMORY_OF_GPU, "FREE_MEMORY_OF_GPU" },
	{ KFD_NR_MAP_MEMORY_TO_GPU, "MAP_MEMORY_TO_GPU" },
	{ KFD_NR_UNMAP_MEMORY_FROM_GPU, "UNMAP_MEMORY_FROM_GPU" },
	{ KFD_NR_AVAILABLE_MEMORY, "AVAILABLE_MEMORY" },
	{ KFD_NR_RUNTIME_ENABLE, "RUNTIME_ENABLE" },
};

static const struct remedy {
	int sys;
	enum err_code code;
	const char *hint;
} remedies[] = {
	{ EPERM, ERR_PERM, "the system denies this process the device" },
	{ EACCES, ERR_PERM, "the system denies this process the device" },
	{ ENOMEM, ERR_NOMEM, "free memory on the device or in the host" },
	{ ENOSPC, ERR_NOMEM, "the process has used up this kind of object" },
	{ EINVAL, ERR_IO,
	  "the driver refuses these values; report it with "
	  "the output of `t0-device info`" },
	{ ENOTTY, ERR_UNSUPPORTED, "this kernel driver is too old" },
	{ EBADF, ERR_USAGE,
	  "the file belongs to another process; open the "
	  "device after fork(), not before" },
	{ EBUSY, ERR_BUSY, "something of this process still uses it" },
	{ EEXIST, ERR_BUSY, "this process has used the device before" },
	{ ENODEV, ERR_DEVICE, "the device is gone; see the kernel log" },
	{ EIO, ERR_DEVICE,
	  "the device hangs or was reset; see the kernel "
	  "log" },
	{ ETIME, ERR_DEVICE, "the device hangs; see the kernel log" },
	{ EINTR, ERR_TIMEOUT, "interrupted again and again for 10 s" },
	{ EAGAIN, ERR_TIMEOUT, "the driver was not ready for 10 s" },
};

int kfd_dev_ioctl(struct kfd_dev *dev, unsigned long request, void *arg)
{
	uint64_t until = 0;

	for (unsigned n = 0;; n++) {
		int r = dev->d->ioctl(dev->d, dev->kfd_fd, request, arg);
		if (r != -EINTR && r != -EAGAIN)
			return r < 0 ? r : 0;
		if (!until)
			until = time_mono_ns() + RETRY_NS;
		else if (time_mono_ns() > until)
			return r;
		if (n > 16) {
			struct timespec ms = { .tv_nsec = 1000000 };
			nanosleep(&ms, NULL);
		}
	}
}

bool kfd_dev_ioctl_err(struct kfd_dev *dev, unsigned long request,
		       int neg_errno, struct err *e, const char *fmt, ...)
{
	const struct remedy *why = NULL;
	const char *name = "ioctl";
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].nr == KFD_REQUEST_NR(request))
			name = requests[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (remedies[i].sys == -neg_errno)
			why = &remedies[i];
	err_set_at(e, why ? why->code : ERR_IO, 0, __FILE__, __LINE__,
		   "%s: %s (%s, KFD 1.%u): %s; %s", KFD_PATH, name, what,
		   dev->info.kfd_minor, strerror(-neg_errno),
		   why ? why->hint : "see the kernel log");
	if (e)
		e->sys_errno = -neg_errno;
	return false;
}

/* ------------------------------------------------------------- open --- */

/* "root:render" of a file, from the host; the usual owner when unknown. */
static void owner_text(const char *path, char *group, size_t size)
{
	struct stat st;
	struct group gr, *found = NULL;
	char scratch[4096];

	snprintf(group, size, "render");
	if (stat(path, &st))
		return;
	if (!getgrgid_r(st.st_gid, &gr, scratch, sizeof(scratch), &found) &&
	    found)
		snprintf(group, size, "%s", found->gr_name);
	else
		snprintf(group, size, "%u", st.st_gid);
}

static bool open_error(const char *path, int err, struct err *e)
{
	char group[64];

	switch (err) {
	case EACCES:
	case EPERM:
		owner_text(path, group, sizeof(group));
		return err_sys(e, ERR_PERM, err,
			       "%s belongs to group %s: add your user to it "
			       "(sudo usermod -aG %s $USER, then log in again) "
			       "or, in a container, pass the device in",
			       path, group, group);
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return err_set(e, ERR_NODEV,
			       "%s: the amdgpu kernel driver is not loaded or "
			       "found no GPU (T0_DEVICE=soft needs none)",
			       path);
	case EAGAIN:
		return err_sys(e, ERR_BUSY, err,
			       "%s: still locked after 5 s: a GPU reset is in "
			       "progress; see the kernel log",
			       path);
	default:
		return err_sys(e, ERR_IO, err, "%s: cannot be opened", path);
	}
}

/* A handle, or -1 and *e. */
int kfd_file_open(struct kfd_driver *d, const char *path, struct err *e)
{
	uint64_t until = time_mono_ns() + OPEN_RETRY_NS;
	int fd;

	while ((fd = d->open(d, path, O_RDWR | O_CLOEXEC)) == -EINTR ||
	       fd == -EAGAIN) {
		if (time_mono_ns() > until)
			break;
		struct timespec pause = { .tv_nsec = 10000000 };
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		return fd;
	open_error(path, -fd, e);
	return -1;
}
