/*
 * kfd/runtime/lock.c - the lock of a GPU.
 *
 * flock(2) belongs to the open file: it is released when its holder exits,
 * however that ends, and a stale file means nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kfd/runtime/runtime.h"

#define POLL_NS 50000000

static const char *const dirs[] = { "/run/lock", "/tmp" };

/*
 * Without O_CREAT first: in /tmp a file of somebody else's may be opened, but
 * not with O_CREAT (fs.protected_regular).
 */
static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0)
		return fd;
	if (errno == EACCES)
		return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (errno != ENOENT)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd >= 0)
		(void)fchmod(fd, 0666); /* whatever the umask: all may lock */
	return fd;
}

static void name_file(const struct kfd_info *info, const char *dir,
		      char *out, size_t size)
{
	/* Older drivers give no unique id; then the slot must do. */
	if (info->node.unique_id)
		snprintf(out, size, "%s/t0-gpu-%016llx.lock", dir,
			 (unsigned long long)info->node.unique_id);
	else
		snprintf(out, size, "%s/t0-gpu-%s.lock", dir, info->pci);
}

static int open_in(const struct kfd_info *info, const char *dir,
		   struct kfd_lock *l, struct err *e)
{
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && fd < 0; i++) {
		name_file(info, dir ? dir : dirs[i], l->path, sizeof(l->path));
		fd = open_file(l->path);
		if (dir)
			break;
	}
	if (fd < 0)
		err_sys(e, errno == EACCES ? ERR_PERM : ERR_IO, errno,
			"%s: cannot be opened to lock the GPU; remove it if "
			"it is not a plain file", l->path);
	return fd;
}

/* "process 4711 (t0-tune)", as the holder wrote it; may be old. */
static void read_holder(int fd, char *out, size_t size)
{
	ssize_t n = pread(fd, out, size - 1, 0);

	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	if (!*out)
		snprintf(out, size, "another process");
}

static void write_holder(int fd)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "process %d (%.32s)\n",
			 (int)getpid(), program_invocation_short_name);

	/* For people only: a full disk or a foreign file does not matter. */
	if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n)
		return;
}

static bool wait_for(int fd, const struct kfd_lock_opts *o, char *holder,
		     size_t size)
{
	const uint64_t until = time_mono_ns() + o->timeout_ns;
	const struct timespec nap = { .tv_nsec = POLL_NS };
	bool told = false;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		read_holder(fd, holder, size);
		if (time_mono_ns() >= until) {
			errno = EWOULDBLOCK;
			return false;
		}
		if (!told && o->waiting)
			o->waiting(o->ctx, holder);
		told = true;
		nanosleep(&nap, NULL);
	}
	return true;
}

bool kfd_lock_take(const struct kfd_info *info, const struct kfd_lock_opts *o,
		   struct kfd_lock *out, struct err *e)
{
	static const struct kfd_lock_opts none;
	char holder[128] = "another process";

	*out = (struct kfd_lock){ .fd = -1 };
	if (!strcmp(info->origin, "emulated"))
		return true;
	if (!o)
		o = &none;
	int fd = open_in(info, o->dir, out, e);
	if (fd < 0)
		return false;
	if (!wait_for(fd, o, holder, sizeof(holder))) {
		const int err = errno;

		close(fd);
		if (err != EWOULDBLOCK)
			return err_sys(e, ERR_IO, err, "%s: cannot be locked",
				       out->path);
		return err_set(e, ERR_BUSY,
			       "%s: %s measures on this GPU and did not end "
			       "within %.0f s; two at a time would measure "
			       "each other",
			       out->path, holder, (double)o->timeout_ns * 1e-9);
	}
	out->fd = fd;
	write_holder(fd);
	return true;
}

void kfd_lock_drop(struct kfd_lock *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
