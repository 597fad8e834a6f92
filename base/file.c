/*
 * base/file.c - whole files, and the clocks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cmd.h"

static enum err_code io_code(int errnum)
{
	return errnum == EACCES || errnum == EPERM || errnum == EROFS ?
		       ERR_PERM :
		       ERR_IO;
}

/* ---- reading ---- */

enum { CHUNK_BYTES = 65536 };
#define MOST_BYTES   ((size_t)1 << 30) /* of a file, unless the caller says */
#define STREAM_BYTES ((size_t)64 << 20) /* of a pipe, or a device */

/* What is shown of "-". */
static const char *shown_path(const char *path)
{
	return strcmp(path, "-") ? path : "stdin";
}

/*
 * The descriptor to read from; -1 on an error.  A named pipe nobody writes into
 * would keep open(2) waiting, which goes on behind a signal: read_some() waits.
 */
static int open_input(const char *path, struct err *e)
{
	int fd = strcmp(path, "-") ?
			 open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) :
			 STDIN_FILENO;

	if (fd < 0)
		err_sys(e, io_code(errno), errno, "%s: cannot open", path);
	else if (fd != STDIN_FILENO)
		fcntl(fd, F_SETFL, 0);
	return fd;
}

static void close_input(int fd)
{
	if (fd > STDIN_FILENO)
		close(fd);
}

/* Until there is something, or a signal is caught, be it just before. */
static bool wait_for_input(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	while ((n = poll(&p, 1, 50)) == 0 && !cmd_is_stopped())
		;
	return n > 0 || (n < 0 && errno != EINTR);
}

/*
 * Appends what can be had at once, *n bytes, 0 at the end.  A caught signal
 * ends waiting for it.
 */
static bool read_some(int fd, const char *path, struct buf *out, size_t *n,
		      struct err *e)
{
	char chunk[CHUNK_BYTES];
	ssize_t got;

	if (!wait_for_input(fd))
		return err_set(e, ERR_STOPPED, "while reading %s",
			       shown_path(path));
	do
		got = read(fd, chunk, sizeof(chunk));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, io_code(errno), errno, "%s: cannot read",
			       shown_path(path));
	*n = (size_t)got;
	buf_add(out, chunk, *n);
	return true;
}

/* What is to be read at most; false if a plain file has more. */
static bool check_size(int fd, const char *path, size_t *max_bytes,
		       struct err *e)
{
	struct stat s;
	bool plain = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);

	if (!*max_bytes)
		*max_bytes = plain ? MOST_BYTES : STREAM_BYTES;
	return !plain || (uintmax_t)s.st_size <= *max_bytes ||
	       err_set(e, ERR_INPUT, "%s: too large: %jd bytes; wanted at most "
		       "%zu", shown_path(path), (intmax_t)s.st_size,
		       *max_bytes);
}

static bool read_all(int fd, const char *path, size_t max_bytes,
		     struct buf *out, struct err *e)
{
	size_t before = out->len, n;

	if (!check_size(fd, path, &max_bytes, e))
		return false;
	do {
		if (!read_some(fd, path, out, &n, e))
			return false;
		if (out->len - before > max_bytes)
			return err_set(e, ERR_INPUT, "%s: too large: over %zu "
				       "bytes", shown_path(path), max_bytes);
	} while (n);
	return true;
}

bool file_read(const char *path, size_t max_bytes, struct buf *out,
	       struct err *e)
{
	int fd = open_input(path, e);

	if (fd < 0)
		return false;
	const bool had = out->data;
	const size_t before = out->len;
	bool done = read_all(fd, path, max_bytes, out, e);
	if (!done && !had) {
		buf_fini(out);
	} else if (!done) {
		out->len = before;
		out->data[before] = '\0';
	}
	close_input(fd);
	return done;
}

bool file_lines_open(struct file_lines *l, const char *path, size_t max_bytes,
		     struct err *e)
{
	*l = (struct file_lines){ .path = path, .max_bytes = max_bytes };
	l->fd = open_input(path, e);
	return l->fd >= 0;
}

/* The lines before the next one go. */
static void drop_lines(struct file_lines *l)
{
	if (!l->next)
		return;
	l->text.len -= l->next;
	memmove(l->text.data, l->text.data + l->next, l->text.len);
	l->next = 0;
}

/* Reads until the next line is whole; *end: of it, in l->text. */
static bool read_line(struct file_lines *l, size_t *end, struct err *e)
{
	struct buf *b = &l->text;
	size_t from = l->next, got = 1;
	const char *found = NULL;

	for (;;) {
		if (b->len > from)
			found = memchr(b->data + from, '\n', b->len - from);
		*end = found ? (size_t)(found - b->data) : b->len;
		if (*end - l->next > l->max_bytes)
			return err_set(e, ERR_INPUT, "%s: line %" PRIu64 ": "
				       "too long: over %zu bytes", l->path,
				       l->line + 1, l->max_bytes);
		if (found || !got)
			return true;
		drop_lines(l);
		from = b->len;
		if (!read_some(l->fd, l->path, b, &got, e))
			return false;
	}
}

bool file_lines_next(struct file_lines *l, char **line, size_t *len,
		     struct err *e)
{
	size_t end;

	*line = NULL;
	if (!read_line(l, &end, e))
		return false;
	if (l->next == l->text.len)
		return true;
	*line = l->text.data + l->next;
	*len = end - l->next;
	l->cut = end == l->text.len;
	l->text.data[end] = '\0';
	l->next = end + !l->cut;
	l->line++;
	return true;
}

void file_lines_close(struct file_lines *l)
{
	close_input(l->fd);
	buf_fini(&l->text);
}

/* ---- writing ---- */

static bool write_all(int fd, const char *path, const char *data, size_t len,
		      struct err *e)
{
	while (len) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, io_code(errno), errno,
				       "%s: cannot write", path);
		data += n;
		len -= (size_t)n;
	}
	return true;
}

/* A new file next to `path`; its name is put into `tmp`. */
static int open_temporary(const char *path, mode_t mode, struct buf *tmp,
			  struct err *e)
{
	static atomic_uint serial;

	for (int tries = 0; tries < 100; tries++) {
		buf_reset(tmp);
		buf_printf(tmp, "%s.tmp-%ld-%u", path, (long)getpid(),
			   atomic_fetch_add(&serial, 1));
		int fd = open(tmp->data,
			      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	err_sys(e, io_code(errno), errno, "%s: cannot create %s", path,
		tmp->data);
	return -1;
}

void file_sync_folder(const char *path)
{
	char *folder = xstrdup(path);
	char *slash = strrchr(folder, '/');

	if (slash)
		slash[slash == folder] = '\0';
	int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(folder);
}

/* A named pipe is waited for until somebody reads it, or a signal comes. */
static int open_special(const char *path, struct err *e)
{
	struct stat st;
	const bool pipe = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
	int fd;

	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 &&
	       pipe && errno == ENXIO)
		if (poll(NULL, 0, 50) < 0 || cmd_is_stopped())
			return err_set(e, ERR_STOPPED, "nobody reads %s", path),
			       -1;
	if (fd < 0)
		err_sys(e, io_code(errno), errno, "%s: cannot open", path);
	else
		fcntl(fd, F_SETFL, 0);
	return fd;
}

/* Devices and pipes (-o /dev/null) have no old contents to protect. */
static bool write_special(const char *path, const void *data, size_t len_bytes,
			  struct err *e)
{
	int fd = open_special(path, e);

	if (fd < 0)
		return false;
	bool done = write_all(fd, path, data, len_bytes, e);
	close(fd);
	return done;
}

static bool replace_file(const char *path, const struct stat *old, bool sync,
			 const void *data, size_t len_bytes, struct err *e)
{
	struct buf tmp = { 0 };
	bool done = false;
	int fd = open_temporary(path, 0666, &tmp, e);

	if (fd < 0)
		goto out;
	done = write_all(fd, path, data, len_bytes, e);
	if (done && old)
		done = fchmod(fd, old->st_mode & 07777) == 0 ||
		       err_sys(e, io_code(errno), errno,
			       "%s: cannot set permissions", tmp.data);
	if (done && sync)
		done = fsync(fd) == 0 ||
		       err_sys(e, ERR_IO, errno, "%s: cannot sync", path);
	if (close(fd) != 0 && done)
		done = err_sys(e, ERR_IO, errno, "%s: cannot close", path);
	if (done)
		done = rename(tmp.data, path) == 0 ||
		       err_sys(e, io_code(errno), errno,
			       "%s: cannot rename %s to it", path, tmp.data);
	if (!done)
		unlink(tmp.data);
	else if (sync)
		file_sync_folder(path);
out:
	buf_fini(&tmp);
	return done;
}

static bool write_file(const char *path, bool sync, const void *data,
		       size_t len_bytes, struct err *e)
{
	struct stat st;
	bool exists = stat(path, &st) == 0;

	if (exists && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return write_special(path, data, len_bytes, e);
	/*
	 * Through a symbolic link the file is replaced, not the link; one that
	 * has no name (a deleted file behind /dev/stdout) is written where it
	 * is.
	 */
	char *real = exists ? realpath(path, NULL) : NULL;
	if (exists && !real)
		return write_special(path, data, len_bytes, e);
	bool done = replace_file(real ? real : path, exists ? &st : NULL, sync,
				 data, len_bytes, e);
	free(real);
	return done;
}

/* What must be writable for it: the file if it is a device, else its folder. */
static char *writable_path(const char *path, const struct stat *st)
{
	char *real = st ? realpath(path, NULL) : NULL;

	if (st && (!S_ISREG(st->st_mode) || !real)) {
		free(real);
		return xstrdup(path);
	}
	char *folder = real ? real : xstrdup(path);
	char *slash = strrchr(folder, '/');
	if (slash) {
		slash[slash == folder] = '\0';
		return folder;
	}
	free(folder);
	return xstrdup(".");
}

bool file_check_writable(const char *path, struct err *e)
{
	struct stat st;
	const bool exists = stat(path, &st) == 0;

	if (exists && S_ISDIR(st.st_mode))
		return err_sys(e, ERR_IO, EISDIR, "%s: cannot be written", path);
	char *place = writable_path(path, exists ? &st : NULL);
	const bool may = faccessat(AT_FDCWD, place, W_OK, AT_EACCESS) == 0 ||
			 err_sys(e, io_code(errno), errno,
				 "%s: cannot be written", path);
	free(place);
	return may;
}

bool file_write_atomic(const char *path, const void *data, size_t len_bytes,
		       struct err *e)
{
	return write_file(path, true, data, len_bytes, e);
}

bool file_write_unsynced(const char *path, const void *data, size_t len_bytes,
			 struct err *e)
{
	return write_file(path, false, data, len_bytes, e);
}

bool stdout_check(struct err *e)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	const int flags = fcntl(STDOUT_FILENO, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return err_set(e, ERR_IO, "stdout is closed: what was to be "
			       "printed is lost; wanted a file, or /dev/null");
	return err_sys(e, ERR_IO, errno, "stdout: cannot write");
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t time_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t time_thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t time_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* ---------------------------------------------------------------- folders */

char *file_cache_folder(const char *name)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct buf b = { 0 };

	if (xdg && *xdg == '/')
		buf_printf(&b, "%s/t0", xdg);
	else if (home && *home)
		buf_printf(&b, "%s/.cache/t0", home);
	else
		return NULL;
	if (name)
		buf_printf(&b, "/%s", name);
	return b.data;
}

bool file_make_folders(const char *path, struct err *e)
{
	char *p = xstrdup(path);
	bool good = true;

	for (char *s = p + 1; good; s++) {
		if (*s != '/' && *s)
			continue;
		const char was = *s;
		*s = 0;
		if (mkdir(p, 0777) && errno != EEXIST)
			good = err_sys(e, ERR_IO, errno,
				       "%s: cannot make the folder", p);
		*s = was;
		if (!was)
			break;
	}
	free(p);
	return good;
}
