/*
 * kfd/soft/preload/hooks.c - libc's file functions, with the device's paths
 * redirected.
 *
 * Every hook does the same: change the path, call the next definition of its
 * own name, change the result back.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kfd/soft/preload/preload.h"
#include "kfd/soft/soft.h"

/* Each stands under its own symbol, whatever the headers call it. */
#define HOOK(type, name, ...)                                       \
	__attribute__((visibility("default"))) type hook_##name(__VA_ARGS__) \
		__asm__(#name);                                     \
	static const struct pl_hook entry_##name                    \
		__attribute__((section("pl_hooks"), used)) = {      \
			#name, (void *)(uintptr_t)hook_##name       \
		};                                                  \
	type hook_##name(__VA_ARGS__)
/* The definition that this one hides, found once; NULL ends the program. */
#define NEXT(name, type, ...)                                             \
	({                                                                \
		static type (*next)(__VA_ARGS__);                         \
		if (!__atomic_load_n(&next, __ATOMIC_RELAXED))            \
			__atomic_store_n(                                 \
				&next,                                    \
				(type(*)(__VA_ARGS__))(uintptr_t)dlsym(   \
					RTLD_NEXT, #name),                \
				__ATOMIC_RELAXED);                        \
		next;                                                     \
	})

/* ---------------------------------------------------------------- open -- */

static int open_path(int dir, const char *path, int flags, mode_t mode)
{
	char buf[PL_PATH];
	const char *to = pl_path(path, buf);
	int fd, err = to == path ? 0 : pl_opening(to);

	if (err) {
		errno = err;
		return -1;
	}
	fd = (int)syscall(SYS_openat, dir, to, flags, mode);
	/* A node may be mounted under any name; it is opened for writing. */
	err = fd >= 0 && to == path && (flags & O_ACCMODE) == O_RDWR ?
		      pl_opened(fd) : 0;
	if (err) {
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

static mode_t mode_of(int flags, va_list ap)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

#define HOOK_OPEN(name)                                                \
	HOOK(int, name, const char *path, int flags, ...)              \
	{                                                              \
		va_list ap;                                            \
		va_start(ap, flags);                                   \
		const mode_t mode = mode_of(flags, ap);                \
		va_end(ap);                                            \
		return open_path(AT_FDCWD, path, flags, mode);         \
	}
#define HOOK_OPENAT(name)                                              \
	HOOK(int, name, int dir, const char *path, int flags, ...)     \
	{                                                              \
		va_list ap;                                            \
		va_start(ap, flags);                                   \
		const mode_t mode = mode_of(flags, ap);                \
		va_end(ap);                                            \
		return open_path(dir, path, flags, mode);              \
	}
HOOK_OPEN(open)
HOOK_OPEN(open64)
HOOK_OPEN(__open_2)
HOOK_OPEN(__open64_2)
HOOK_OPENAT(openat)
HOOK_OPENAT(openat64)
HOOK_OPENAT(__openat_2)
HOOK_OPENAT(__openat64_2)

#define HOOK_FOPEN(name)                                                 \
	HOOK(FILE *, name, const char *path, const char *mode)           \
	{                                                                \
		char buf[PL_PATH];                                       \
		const char *to = pl_path(path, buf);                     \
		const int err = to == path ? 0 : pl_opening(to);         \
		if (err) {                                               \
			errno = err;                                     \
			return NULL;                                     \
		}                                                        \
		return NEXT(name, FILE *, const char *, const char *)(to, \
								      mode); \
	}
HOOK_FOPEN(fopen)
HOOK_FOPEN(fopen64)

/* ------------------------------------------------- a path, and no more -- */

/* Functions that only look a path up: (path, ...) and (dir, path, ...). */
#define LOOKUP(type, name, types, args, ...)               \
	HOOK(type, name, __VA_ARGS__)                      \
	{                                                  \
		char buf[PL_PATH];                         \
		path = pl_path(path, buf);                 \
		return NEXT(name, type, EXPAND types) args; \
	}
#define EXPAND(...) __VA_ARGS__

LOOKUP(DIR *, opendir, (const char *), (path), const char *path)
LOOKUP(int, access, (const char *, int), (path, mode), const char *path,
       int mode)
LOOKUP(int, faccessat, (int, const char *, int, int), (dir, path, mode, flags),
       int dir, const char *path, int mode, int flags)
LOOKUP(int, chdir, (const char *), (path), const char *path)
LOOKUP(ssize_t, readlink, (const char *, char *, size_t), (path, out, size),
       const char *path, char *out, size_t size)
LOOKUP(ssize_t, readlinkat, (int, const char *, char *, size_t),
       (dir, path, out, size), int dir, const char *path, char *out,
       size_t size)
LOOKUP(ssize_t, __readlink_chk, (const char *, char *, size_t, size_t),
       (path, out, size, room), const char *path, char *out, size_t size,
       size_t room)
LOOKUP(ssize_t, getxattr, (const char *, const char *, void *, size_t),
       (path, name, out, size), const char *path, const char *name, void *out,
       size_t size)
LOOKUP(ssize_t, lgetxattr, (const char *, const char *, void *, size_t),
       (path, name, out, size), const char *path, const char *name, void *out,
       size_t size)
LOOKUP(ssize_t, listxattr, (const char *, char *, size_t), (path, out, size),
       const char *path, char *out, size_t size)
LOOKUP(ssize_t, llistxattr, (const char *, char *, size_t), (path, out, size),
       const char *path, char *out, size_t size)
typedef int filter(const void *);
typedef int order(const void *, const void *);
LOOKUP(int, scandir, (const char *, void *, filter *, order *),
       (path, list, f, o), const char *path, void *list, filter *f, order *o)
LOOKUP(int, scandir64, (const char *, void *, filter *, order *),
       (path, list, f, o), const char *path, void *list, filter *f, order *o)

static char *real_path(const char *path, char *out)
{
	char buf[PL_PATH];
	char *r = NEXT(realpath, char *, const char *, char *)(
		pl_path(path, buf), out);

	if (r && !pl_inside)
		pl_strip(r);
	return r;
}

HOOK(char *, realpath, const char *path, char *out)
{
	return real_path(path, out);
}

HOOK(char *, __realpath_chk, const char *path, char *out, size_t size)
{
	(void)size; /* at least PATH_MAX, or the compiler would have said so */
	return real_path(path, out);
}

HOOK(char *, canonicalize_file_name, const char *path)
{
	return real_path(path, NULL);
}

HOOK(char *, getcwd, char *out, size_t size)
{
	char *r = NEXT(getcwd, char *, char *, size_t)(out, size);

	if (r && !pl_inside)
		pl_strip(r);
	return r;
}

/* ---------------------------------------------------------------- stat -- */

/* On x86-64 struct stat and struct stat64 are the same. */
static int show_stat(int ret, struct stat *st)
{
	if (!ret && !pl_inside)
		pl_show_stat(st);
	return ret;
}

static int stat_path(int dir, const char *path, struct stat *st, int flags)
{
	char buf[PL_PATH];

	return show_stat((int)syscall(SYS_newfstatat, dir, pl_path(path, buf),
				      st, flags),
			 st);
}

#define HOOK_STAT(name, old, flags)                                     \
	HOOK(int, name, const char *path, struct stat *st)              \
	{                                                               \
		return stat_path(AT_FDCWD, path, st, flags);            \
	}                                                               \
	HOOK(int, old, int version, const char *path, struct stat *st)  \
	{                                                               \
		(void)version;                                          \
		return stat_path(AT_FDCWD, path, st, flags);            \
	}
#define HOOK_FSTAT(name, old)                                           \
	HOOK(int, name, int fd, struct stat *st)                        \
	{                                                               \
		return stat_path(fd, "", st, AT_EMPTY_PATH);            \
	}                                                               \
	HOOK(int, old, int version, int fd, struct stat *st)            \
	{                                                               \
		(void)version;                                          \
		return stat_path(fd, "", st, AT_EMPTY_PATH);            \
	}
#define HOOK_FSTATAT(name, old)                                            \
	HOOK(int, name, int dir, const char *path, struct stat *st, int flags) \
	{                                                                  \
		return stat_path(dir, path, st, flags);                    \
	}                                                                  \
	HOOK(int, old, int version, int dir, const char *path,             \
	     struct stat *st, int flags)                                   \
	{                                                                  \
		(void)version;                                             \
		return stat_path(dir, path, st, flags);                    \
	}
HOOK_STAT(stat, __xstat, 0)
HOOK_STAT(stat64, __xstat64, 0)
HOOK_STAT(lstat, __lxstat, AT_SYMLINK_NOFOLLOW)
HOOK_STAT(lstat64, __lxstat64, AT_SYMLINK_NOFOLLOW)
HOOK_FSTAT(fstat, __fxstat)
HOOK_FSTAT(fstat64, __fxstat64)
HOOK_FSTATAT(fstatat, __fxstatat)
HOOK_FSTATAT(fstatat64, __fxstatat64)

HOOK(int, statx, int dir, const char *path, int flags, unsigned mask,
     struct statx *sx)
{
	char buf[PL_PATH];
	const int ret = (int)syscall(SYS_statx, dir, pl_path(path, buf), flags,
				     mask | STATX_INO, sx);

	if (!ret && !pl_inside)
		pl_show_statx(sx);
	return ret;
}

/* -------------------------------------------------------- the nodes' own -- */

HOOK(int, ioctl, int fd, unsigned long request, ...)
{
	const enum pl_node node = pl_node_of_fd(fd);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (node == PL_NONE)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	return pl_ioctl(node, request, arg);
}

static void *map_node(void *addr, size_t size, int prot, int flags, int fd,
		      off_t offset)
{
	const enum pl_node node = flags & MAP_ANONYMOUS ? PL_NONE :
							  pl_node_of_fd(fd);

	void *p;

	if (node != PL_NONE)
		return pl_mmap(node, addr, size, prot, flags, offset);
	p = (void *)syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
	if (p != MAP_FAILED && flags & MAP_FIXED)
		pl_remapped(p, size, false);
	return p;
}

HOOK(void *, mmap, void *addr, size_t size, int prot, int flags, int fd,
     off_t offset)
{
	return map_node(addr, size, prot, flags, fd, offset);
}

HOOK(void *, mmap64, void *addr, size_t size, int prot, int flags, int fd,
     off_t offset)
{
	return map_node(addr, size, prot, flags, fd, offset);
}

HOOK(int, mprotect, void *addr, size_t size, int prot)
{
	return pl_mprotect(addr, size, prot);
}

HOOK(int, munmap, void *addr, size_t size)
{
	return pl_munmap(addr, size);
}

/* Pages that move take their memory along; those cut off are gone. */
HOOK(void *, mremap, void *addr, size_t size, size_t new_size, int flags, ...)
{
	va_list ap;
	void *to, *p;

	va_start(ap, flags);
	to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
	va_end(ap);
	p = (void *)syscall(SYS_mremap, addr, size, new_size, flags, to);
	if (p == MAP_FAILED)
		return p;
	if (p != addr)
		pl_remapped(addr, size, true);
	else if (new_size < size)
		pl_remapped((char *)addr + new_size, size - new_size, true);
	if (to)
		pl_remapped(to, new_size, false);
	return p;
}

/* -------------------------------------------------------- descriptors -- */

/* The program cannot know that the device's own are open. */
HOOK(int, close, int fd)
{
	if (pl_owns_fd(fd)) {
		errno = EBADF;
		return -1;
	}
	return NEXT(close, int, int)(fd);
}

static int close_some(unsigned first, unsigned last, int flags)
{
	const unsigned most = (unsigned)sysconf(_SC_OPEN_MAX);
	unsigned from = first, at = first;

	/* Around ours; beyond what can be open there are none. */
	for (; at <= last && at < most; at++) {
		if (!pl_owns_fd((int)at))
			continue;
		if (at > from && syscall(SYS_close_range, from, at - 1, flags))
			return -1;
		from = at + 1;
	}
	return from > last && from != first ?
		       0 :
		       (int)syscall(SYS_close_range, from, last, flags);
}

HOOK(int, close_range, unsigned first, unsigned last, int flags)
{
	return close_some(first, last, flags);
}

HOOK(void, closefrom, int first)
{
	close_some(first < 0 ? 0 : (unsigned)first, UINT_MAX, 0);
}

/* What Linux says when the number is in use by a call under way. */
static int copy_fd(int from, int to, int flags)
{
	if (from != to && pl_owns_fd(to)) {
		errno = EBUSY;
		return -1;
	}
	return (int)syscall(SYS_dup3, from, to, flags);
}

HOOK(int, dup2, int from, int to)
{
	if (from == to) /* is it open at all? */
		return fcntl(from, F_GETFD) < 0 ? -1 : to;
	return copy_fd(from, to, 0);
}

HOOK(int, dup3, int from, int to, int flags)
{
	return copy_fd(from, to, flags);
}

/* ------------------------------------------------------------- signals -- */

HOOK(int, sigaction, int sig, const struct sigaction *new,
     struct sigaction *old)
{
	if (kfd_soft_sigaction(sig, new, old))
		return 0;
	return NEXT(sigaction, int, int, const struct sigaction *,
		    struct sigaction *)(sig, new, old);
}

HOOK(sighandler_t, signal, int sig, sighandler_t handler)
{
	const struct sigaction new = { .sa_handler = handler,
				       .sa_flags = SA_RESTART };
	struct sigaction old;

	if (kfd_soft_sigaction(sig, &new, &old))
		return old.sa_handler;
	return NEXT(signal, sighandler_t, int, sighandler_t)(sig, handler);
}
