/*
 * kfd/runtime/lock.c - the lock of a GPU.
 *
 * flock(2) belongs to the open file: it is released when its holder exits,
 * however that ends.  The file is the card's render node, so only who may use
 * the card can keep others from it, and there is nothing to be left over.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "kfd/runtime/runtime.h"

#define POLL_NS 50000000

static int open_node(const struct kfd_info *info, const char *dir,
		     struct kfd_lock *l, struct err *e)
{
	if (info->node.render_minor < 0)
		return err_set(e, ERR_UNSUPPORTED, "the driver does not name "
			       "the GPU's render node, which is to be locked"),
		       -1;
	snprintf(l->path, sizeof(l->path), "%s/renderD%d",
		 dir ? dir : "/dev/dri", info->node.render_minor);
	const int fd = open(l->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_sys(e, errno == EACCES ? ERR_PERM : ERR_IO, errno,
			"%s: cannot be opened to lock the GPU", l->path);
	return fd;
}

/*
 * Who holds the lock of this file, by a line of /proc/locks as
 * "5: FLOCK  ADVISORY  WRITE 1588 fe:00:11018350 0 EOF"; 0: not to be seen,
 * as from another container.
 */
static int find_holder(int fd)
{
	struct buf text = { 0 };
	struct stat s;
	char file[64];
	int pid = 0;

	if (fstat(fd, &s) || !file_read("/proc/locks", 0, &text, NULL)) {
		buf_fini(&text);
		return 0;
	}
	snprintf(file, sizeof(file), " %02x:%02x:%llu 0 EOF", major(s.st_dev),
		 minor(s.st_dev), (unsigned long long)s.st_ino);
	for (char *at = text.data, *line; !pid && (line = strsep(&at, "\n"));) {
		char *end = strstr(line, file);
		const char *kind = strstr(line, "FLOCK");

		if (!end || !kind || strstr(line, "->")) /* one that waits */
			continue;
		*end = 0;
		pid = atoi(strrchr(line, ' ') + 1);
	}
	buf_fini(&text);
	return pid > 0 ? pid : 0;
}

/* "process 4711 (t0-tune)" */
static void name_holder(int fd, char *out, size_t size)
{
	const int pid = find_holder(fd);
	struct buf name = { 0 };
	char path[64];

	snprintf(out, size, "another process");
	if (!pid)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (file_read(path, 0, &name, NULL))
		snprintf(out, size, "process %d (%.*s)", pid,
			 (int)strcspn(name.data, "\n"), name.data);
	else
		snprintf(out, size, "process %d", pid);
	buf_fini(&name);
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
		name_holder(fd, holder, size);
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
	if (strcmp(info->origin, "hardware") != 0)
		return true;
	if (!o)
		o = &none;
	int fd = open_node(info, o->dir, out, e);
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
	return true;
}

void kfd_lock_drop(struct kfd_lock *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
