/*
 * kfd/soft/device/dmabuf.c - buffers as files: exported to other interfaces
 * and processes, and imported.
 *
 * An exported buffer moves into a memory file of its own, of its own size, so
 * that the descriptor can be mapped, passed on and imported by any process
 * with a soft device: its pages are then the same for all.  The file's name
 * says what it is, and of which card.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kfd/soft/device/dev.h"

/* And flags and card's number, in hexadecimal. */
#define FILE_NAME "t0-soft-buffer:"
#define COPY_BYTES (1u << 20)

/* What of the flags an importer is told. */
#define TOLD (KFD_MEM_VRAM | KFD_MEM_GTT | KFD_MEM_PUBLIC)

/* --------------------------------------------------------------- export -- */

/* Copy what was ever written; holes stay holes. */
static bool copy_pages(const struct soft_dev *d, const struct soft_bo *b,
		       int to)
{
	off_t at = (off_t)b->offset, end = (off_t)(b->offset + b->size);

	while ((at = lseek(d->memfd, at, SEEK_DATA)) >= 0 && at < end) {
		off_t stop = lseek(d->memfd, at, SEEK_HOLE);

		for (stop = stop < end ? stop : end; at < stop;) {
			const off_t in = at - (off_t)b->offset;
			const size_t n = stop - at < COPY_BYTES ?
						 (size_t)(stop - at) :
						 COPY_BYTES;

			if (pwrite(to, b->host + in, n, in) != (ssize_t)n)
				return false;
			at += (off_t)n;
		}
	}
	return true;
}

/* Show the new file wherever the process has the old one mapped. */
static bool move_mappings(const struct soft_dev *d, const struct soft_bo *b,
			  int to)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, end, offset, ino;
	struct stat st;
	char *line = NULL, how[5];
	size_t room = 0;
	bool good = f && !fstat(d->memfd, &st);

	while (good && getline(&line, &room, f) > 0) {
		if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &from, &end, how,
			   &offset, &ino) != 5 || ino != st.st_ino ||
		    !strstr(line, " /memfd:t0-soft") || offset < b->offset ||
		    offset - b->offset >= b->size)
			continue;
		good = mmap((void *)from, end - from,
			    (how[0] == 'r' ? PROT_READ : 0) |
				    (how[1] == 'w' ? PROT_WRITE : 0),
			    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, to,
			    (off_t)(offset - b->offset)) != MAP_FAILED;
	}
	free(line);
	if (f)
		fclose(f);
	return good;
}

/* A file of its own for the buffer. */
static int give_file(struct soft_dev *d, struct soft_bo *b)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), FILE_NAME "%x:%x", b->flags & TOLD,
		 b->card->index);
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* Whoever gets it cannot cut it off under the GPU. */
	if (fd < 0 || ftruncate(fd, (off_t)b->size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	/* No wave and no engine may touch it meanwhile. */
	soft_map_hold_alone(d);
	if (copy_pages(d, b, fd) && move_mappings(d, b, fd))
		b->file = fd;
	soft_map_release_alone(d);
	if (b->file < 0)
		goto fail;
	fallocate(d->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)b->offset, (off_t)b->size);
	return 0;
fail:
	if (fd >= 0)
		close(fd);
	return -ENOMEM;
}

int soft_bo_export(struct soft_dev *d, struct soft_bo *b, bool cloexec)
{
	const int ret = b->file < 0 ? give_file(d, b) : 0;
	int fd;

	if (ret)
		return ret;
	fd = fcntl(b->file, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
	return fd < 0 ? -errno : fd;
}

int soft_ioc_export_dmabuf(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_export_dmabuf *a = arg;
	struct soft_bo *b = soft_bo_by_handle(d, a->handle);
	int fd;

	/* User pointers, doorbells and registers are nobody else's. */
	if (!b || !(b->flags & (KFD_MEM_VRAM | KFD_MEM_GTT)))
		return b && b->flags & KFD_MEM_USERPTR ? -EPERM : -EINVAL;
	if (a->flags & ~(unsigned)(O_CLOEXEC | O_ACCMODE))
		return -EINVAL;
	fd = soft_bo_export(d, b, a->flags & O_CLOEXEC);
	if (fd < 0)
		return fd;
	a->dmabuf_fd = (uint32_t)fd;
	return 0;
}

/* --------------------------------------------------------------- import -- */

/* Of an exported buffer. */
struct exported {
	uint32_t flags;
	unsigned card; /* its number; that of another machine, too */
	uint64_t size;
};

/* 0 or -errno. */
static int read_file(int fd, struct exported *x)
{
	char path[64], name[128];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	if (sscanf(name, "/memfd:" FILE_NAME "%x:%x", &x->flags, &x->card) != 2)
		return -EINVAL;
	x->size = (uint64_t)st.st_size;
	/* Whoever has the file may have changed its size. */
	return !x->size || x->size % KFD_PAGE_BYTES ? -EINVAL : 0;
}

/* The object of this process that the file shows, or NULL. */
static const struct soft_bo *find_exported(const struct soft_dev *d, int fd)
{
	struct stat want, st;

	if (fstat(fd, &want))
		return NULL;
	for (size_t i = 1; i < d->n_bo; i++)
		if (d->bo[i] && d->bo[i]->file >= 0 && !d->bo[i]->imported &&
		    !fstat(d->bo[i]->file, &st) && st.st_ino == want.st_ino)
			return d->bo[i];
	return NULL;
}

/* What its maker wrote about it; other processes are not told. */
static int copy_metadata(const struct soft_bo *b,
			 struct kfd_ioc_get_dmabuf_info *a)
{
	const uint32_t n = b ? b->metadata_bytes : 0, room = a->metadata_size;

	a->metadata_size = n;
	return n && n <= room && a->metadata_ptr ?
		       soft_copy_out(a->metadata_ptr, b->metadata, n) : 0;
}

int soft_ioc_dmabuf_info(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_get_dmabuf_info *a = arg;
	struct exported x;
	const int ret = read_file((int)a->dmabuf_fd, &x);

	if (ret)
		return ret;
	if (x.card >= d->n_cards)
		return -EINVAL; /* no card of this machine */
	a->flags = x.flags;
	a->size = x.size;
	a->gpu_id = d->card[x.card].gpu_id;
	return copy_metadata(find_exported(d, (int)a->dmabuf_fd), a);
}

int soft_bo_import(struct soft_card *c, int from, uint64_t va, uint64_t *handle)
{
	struct soft_dev *d = c->dev;
	struct exported x;
	struct soft_bo *b;
	void *host;
	int fd, ret;

	ret = read_file(from, &x);
	if (ret)
		return ret;
	fd = fcntl(from, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	soft_guard_take();
	host = mmap(NULL, x.size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (host == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	b = xcalloc(1, sizeof(*b));
	*b = (struct soft_bo){
		.card = c, .va = va, .size = x.size, .host = host,
		.file = fd,
		.flags = (x.flags & TOLD) | KFD_MEM_WRITABLE |
			 KFD_MEM_EXECUTABLE,
		.offset = d->memfd_end, .imported = true,
	};
	/* Its cookie for mmap(): an offset that nobody else has. */
	d->memfd_end += x.size;
	*handle = soft_bo_add(d, b);
	return 0;
}

int soft_ioc_import_dmabuf(struct soft_dev *d, void *arg)
{
	struct kfd_ioc_import_dmabuf *a = arg;
	struct soft_card *c = soft_card_by_id(d, a->gpu_id);

	if (!c)
		return -EINVAL;
	if (!c->vm_file)
		return -ENODEV;
	return soft_bo_import(c, (int)a->dmabuf_fd, a->va_addr, &a->handle);
}
