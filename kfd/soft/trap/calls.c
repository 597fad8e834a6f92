/*
 * kfd/soft/trap/calls.c - what becomes of a trapped system call.
 *
 * The paths of the device lead into the folder T0_SOFT_ROOT, as in
 * kfd/soft/preload, and calls on its nodes go to the device; all others are
 * made as they are.
 *
 * No thread-local variables here: see trap.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"
#include "kfd/soft/preload/preload.h"
#include "kfd/soft/trap/trap.h"

#define BREAK_BYTES (64ull << 30) /* of address space */
#define ARGUMENTS_NEAR 64
#define SELF_EXE "/proc/self/exe"

static long raw_call(const struct trap_call *c)
{
	const uint64_t *a = c->arg;

	return trap_raw(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static const char *text_at(uint64_t address)
{
	return (const char *)(uintptr_t)address;
}

static bool is_owner(void)
{
	return trap_raw(SYS_getpid, 0, 0, 0, 0, 0, 0) == trap.owner;
}

static enum pl_node node_of(uint64_t fd)
{
	struct stat st;

	if ((int)fd < 0 ||
	    trap_raw(SYS_newfstatat, fd, (uintptr_t) "", (uintptr_t)&st,
		     AT_EMPTY_PATH, 0, 0))
		return PL_NONE;
	return pl_node_of_inode(st.st_dev, st.st_ino);
}

/* --------------------------------------------------------------- paths -- */

/* Where the path leads; itself when it is none of the device's. */
static const char *lead_path(uint64_t address, char out[TRAP_PATH])
{
	const char *path = text_at(address);
	char first;

	if (trap_copy_in(&first, address, 1))
		return path; /* the kernel says EFAULT */
	if (!strcmp(path, SELF_EXE))
		return trap.program;
	return pl_lead(path, out, TRAP_PATH);
}

/*
 * Folders above those of the device, where this machine has none of the name:
 * who follows links by himself asks for each.
 */
static const char *lead_above(const char *path, char out[TRAP_PATH])
{
	const size_t n = strlen(trap.arg[TRAP_ROOT]), m = strlen(path);

	if (strncmp(path, "/sys/", 5) || n + m >= TRAP_PATH)
		return path;
	memcpy(out, trap.arg[TRAP_ROOT], n);
	memcpy(out + n, path, m + 1);
	return out;
}

/* The call with another path in argument `at`. */
static long path_call(const struct trap_call *c, int at)
{
	struct trap_call to = *c;
	char buf[TRAP_PATH];
	const char *path = text_at(c->arg[at]), *led;
	long ret;

	led = lead_path(c->arg[at], buf);
	to.arg[at] = (uintptr_t)led;
	ret = raw_call(&to);
	if (ret != -ENOENT || led != path)
		return ret;
	to.arg[at] = (uintptr_t)lead_above(path, buf);
	return to.arg[at] == c->arg[at] ? ret : raw_call(&to);
}

static long show_stat(long ret, uint64_t st)
{
	if (!ret)
		pl_show_stat((struct stat *)(uintptr_t)st);
	return ret;
}

static long show_statx(const struct trap_call *c)
{
	struct trap_call with = *c;
	long ret;

	with.arg[3] |= STATX_INO;
	ret = path_call(&with, 1);
	if (!ret)
		pl_show_statx((struct statx *)(uintptr_t)c->arg[4]);
	return ret;
}

static long read_link(const struct trap_call *c, int at)
{
	size_t n = strlen(trap.program);

	char buf[TRAP_PATH];

	if (lead_path(c->arg[at], buf) != trap.program)
		return path_call(c, at);
	if (n > c->arg[at + 2])
		n = c->arg[at + 2];
	return trap_copy_out(c->arg[at + 1], trap.program, n) ?: (long)n;
}

static long current_folder(const struct trap_call *c)
{
	char *out = (char *)(uintptr_t)c->arg[0];
	const long ret = raw_call(c);

	if (ret <= 0)
		return ret;
	pl_strip(out);
	return (long)strlen(out) + 1;
}

/* ---------------------------------------------------------------- open -- */

static long refuse_child(void)
{
	static const char line[] =
		"t0-soft: refused: open under --trap: a child of fork() has no "
		"device until it executes a program\n";

	trap_raw(SYS_write, 2, (uintptr_t)line, sizeof(line) - 1, 0, 0, 0);
	return -ENODEV;
}

static bool is_node(const char *path)
{
	struct stat st;

	return !trap_raw(SYS_newfstatat, (uint64_t)AT_FDCWD, (uintptr_t)path,
			 (uintptr_t)&st, 0, 0, 0) &&
	       pl_node_of_inode(st.st_dev, st.st_ino) != PL_NONE;
}

static long open_path(const struct trap_call *c, uint64_t dir, uint64_t path,
		      uint64_t flags, uint64_t mode)
{
	char buf[TRAP_PATH];
	const char *to = lead_path(path, buf);
	long fd, ret = 0;

	if (to == buf && is_owner())
		ret = trap_ask(c, TRAP_OPENING, (uintptr_t)buf, 0);
	else if (to == buf && is_node(to))
		ret = refuse_child();
	if (ret)
		return ret;
	fd = trap_wait(c, SYS_openat, dir, (uintptr_t)to, flags, mode);
	if (fd < 0 || to == buf || (flags & O_ACCMODE) != O_RDWR ||
	    node_of((uint64_t)fd) == PL_NONE)
		return fd;
	/* A node may be mounted under any name. */
	ret = is_owner() ? trap_ask(c, TRAP_OPENED, (uint64_t)fd, 0) :
			   refuse_child();
	if (!ret)
		return fd;
	trap_raw(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return ret;
}

static long open_how(const struct trap_call *c)
{
	uint64_t how[3] = { 0 }; /* struct open_how: flags, mode, resolve */
	char buf[TRAP_PATH];
	long ret;

	if (c->arg[3] < sizeof(how) || lead_path(c->arg[1], buf) != buf)
		return raw_call(c);
	ret = trap_copy_in(how, c->arg[2], sizeof(how));
	return ret ? ret : open_path(c, c->arg[0], c->arg[1], how[0], how[1]);
}

/* --------------------------------------------------- nodes, descriptors -- */

static long call_node(const struct trap_call *c, enum trap_ask what, int at)
{
	const enum pl_node node = node_of(c->arg[at]);

	if (node == PL_NONE)
		return raw_call(c);
	if (!is_owner())
		return -EBADF; /* inherited from the parent */
	return trap_ask(c, what, node, 0);
}

/* Does the device want to know of changed mappings? */
static bool is_watching(void)
{
	return trap_guards() && is_owner();
}

static long map_file(const struct trap_call *c)
{
	long ret;

	if (!(c->arg[3] & MAP_ANONYMOUS) && node_of(c->arg[4]) != PL_NONE)
		return call_node(c, TRAP_MMAP, 4);
	ret = raw_call(c);
	if ((ret > 0 || ret < -4095) && c->arg[3] & MAP_FIXED && is_watching())
		trap_ask(c, TRAP_REPLACED, (uint64_t)ret, c->arg[1]);
	return ret;
}

static long unmap_pages(const struct trap_call *c)
{
	greg_t *r = c->context->uc_mcontext.gregs;
	const uint64_t here = (uintptr_t)__builtin_frame_address(0);

	/*
	 * The stack that we are on, as a thread does that is about to end:
	 * the call is made again when we have left it.
	 */
	if (here - c->arg[0] < c->arg[1]) {
		r[REG_R9] = (greg_t)TRAP_AGAIN;
		r[REG_RIP] -= 2;
		return c->nr;
	}
	return is_watching() ? trap_ask(c, TRAP_MUNMAP, 0, 0) : raw_call(c);
}

/* Pages that move take their memory along; those cut off are gone. */
static long move_pages(const struct trap_call *c)
{
	const uint64_t *a = c->arg;
	const long ret = raw_call(c);

	if ((ret < 0 && ret >= -4095) || !is_watching())
		return ret;
	if ((uint64_t)ret != a[0])
		trap_ask(c, TRAP_GONE, a[0], a[1]);
	else if (a[2] < a[1])
		trap_ask(c, TRAP_GONE, a[0] + a[2], a[1] - a[2]);
	if (a[3] & MREMAP_FIXED)
		trap_ask(c, TRAP_REPLACED, (uint64_t)ret, a[2]);
	return ret;
}

/* The device's own, which the program knows nothing of? */
static bool is_kept(const struct trap_call *c, uint64_t fd)
{
	return trap_has_device() && is_owner() &&
	       trap_ask(c, TRAP_OWNS, fd, 0);
}

static long close_range_around(const struct trap_call *c)
{
	const uint64_t last = (uint32_t)c->arg[1];
	uint64_t from = (uint32_t)c->arg[0], at = from, most = 0;
	uint64_t limit[2] = { 0 };
	long ret = 0;

	if (!trap_has_device() || !is_owner() || from > last)
		return raw_call(c);
	trap_raw(SYS_prlimit64, 0, 7 /* RLIMIT_NOFILE */, 0, (uintptr_t)limit,
		 0, 0);
	for (most = limit[0]; !ret && at <= last && at < most; at++) {
		/* Only those that are open can be kept. */
		if (trap_raw(SYS_fcntl, at, F_GETFD, 0, 0, 0, 0) < 0 ||
		    !trap_ask(c, TRAP_OWNS, at, 0))
			continue;
		if (at > from)
			ret = trap_raw(SYS_close_range, from, at - 1, c->arg[2],
				       0, 0, 0);
		from = at + 1;
	}
	return ret || from > last ? ret :
				    trap_raw(SYS_close_range, from, last,
					     c->arg[2], 0, 0, 0);
}

/* --------------------------------------------------------------- break -- */

/* The kernel's own break belongs to libc in this loader. */
static long move_break(uint64_t to)
{
	static uint64_t first, now; /* of the process, as the kernel's is */
	long p;

	if (!now) {
		p = trap_raw(SYS_mmap, 0, BREAK_BYTES, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			     (uint64_t)-1, 0);
		if (p < 0)
			return 0;
		first = now = (uint64_t)p;
	}
	const uint64_t had = (now + 4095) & ~4095ull;
	const uint64_t want = (to + 4095) & ~4095ull;

	if (to < first || to > first + BREAK_BYTES)
		return (long)now;
	/* Fresh pages either way: what is given back reads 0 later. */
	if (want != had &&
	    trap_raw(SYS_mmap, want > had ? had : want,
		     want > had ? want - had : had - want,
		     want > had ? PROT_READ | PROT_WRITE : PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
			     (want > had ? 0 : MAP_NORESERVE),
		     (uint64_t)-1, 0) < 0)
		return (long)now;
	now = to;
	return (long)now;
}

/* ------------------------------------------------------------- execute -- */

/* What the kernel would say of it: 0, or -errno. */
static long check_program(const char *path)
{
	unsigned char head[20] = { 0 };
	long fd, n, ret;

	ret = trap_raw(SYS_faccessat, (uint64_t)AT_FDCWD, (uintptr_t)path, 1,
		       0, 0, 0);
	if (ret)
		return ret;
	fd = trap_raw(SYS_openat, (uint64_t)AT_FDCWD, (uintptr_t)path,
		      O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return fd;
	n = trap_raw(SYS_read, (uint64_t)fd, (uintptr_t)head, sizeof(head), 0,
		     0, 0);
	trap_raw(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	if (n < 0)
		return -EACCES; /* a folder */
	if (n > 2 && head[0] == '#' && head[1] == '!')
		return 0;
	/* ELF of 64 bits for x86-64: the machine is at 18. */
	return n == sizeof(head) && !memcmp(head, "\177ELF\2", 5) &&
			       head[18] == 62 && !head[19] ?
		       0 : -ENOEXEC;
}

static long execute(const struct trap_call *c, uint64_t path, uint64_t argv,
		    uint64_t envp)
{
	const uint64_t *args = (const uint64_t *)(uintptr_t)argv;
	uint64_t near[TRAP_ARGS + ARGUMENTS_NEAR + 2], *to = near;
	char buf[TRAP_PATH];
	const char *program = lead_path(path, buf);
	size_t n = 0;
	long ret = check_program(program);

	(void)c;
	if (ret)
		return ret;
	while (args && args[n])
		n++;
	const size_t bytes = (TRAP_ARGS + n + 2) * sizeof(*to);

	if (n > ARGUMENTS_NEAR) {
		ret = trap_raw(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
		if (ret < 0)
			return ret;
		to = (uint64_t *)ret;
	}
	for (int i = 0; i < TRAP_PROGRAM; i++)
		to[i] = (uintptr_t)trap.arg[i];
	to[TRAP_PROGRAM] = (uintptr_t)program;
	for (size_t i = 0; i < n; i++)
		to[TRAP_ARGS + i] = args[i];
	to[TRAP_ARGS + n] = 0;
	ret = trap_raw(SYS_execve, (uintptr_t)trap.self, (uintptr_t)to, envp,
		       0, 0, 0);
	if (to != near)
		trap_raw(SYS_munmap, (uintptr_t)to, bytes, 0, 0, 0, 0);
	return ret;
}

/* execveat() of a descriptor, as fexecve() does it, or of a path. */
static long execute_at(const struct trap_call *c)
{
	static const char folder[] = "/proc/self/fd/";
	char path[64], digits[16];
	uint64_t fd = (uint32_t)c->arg[0];
	size_t n = sizeof(folder) - 1, m = 0;

	if (c->arg[1] >= 4096 &&
	    ((int)fd == AT_FDCWD || *text_at(c->arg[1]) == '/'))
		return execute(c, c->arg[1], c->arg[2], c->arg[3]);
	if (c->arg[1] < 4096 || *text_at(c->arg[1]) ||
	    !(c->arg[4] & AT_EMPTY_PATH))
		return -ENOSYS; /* a path below a descriptor */
	memcpy(path, folder, n);
	do
		digits[m++] = (char)('0' + fd % 10);
	while ((fd /= 10));
	while (m)
		path[n++] = digits[--m];
	path[n] = '\0';
	return execute(c, (uintptr_t)path, c->arg[2], c->arg[3]);
}

/* ------------------------------------------------------------- handler -- */

static long answer_file(struct trap_call *c)
{
	const uint64_t *a = c->arg;
	const uint64_t here = (uint64_t)AT_FDCWD;

	switch (c->nr) {
	case SYS_open:
		return open_path(c, here, a[0], a[1], a[2]);
	case SYS_openat:
		return open_path(c, a[0], a[1], a[2], a[3]);
	case SYS_openat2:
		return open_how(c);
	case SYS_stat:
	case SYS_lstat:
		return show_stat(path_call(c, 0), a[1]);
	case SYS_fstat:
		return show_stat(raw_call(c), a[1]);
	case SYS_newfstatat:
		return show_stat(path_call(c, 1), a[2]);
	case SYS_statx:
		return show_statx(c);
	case SYS_access:
	case SYS_chdir:
	case SYS_getxattr:
	case SYS_lgetxattr:
	case SYS_listxattr:
	case SYS_llistxattr:
		return path_call(c, 0);
	case SYS_faccessat:
	case SYS_faccessat2:
		return path_call(c, 1);
	case SYS_readlink:
		return read_link(c, 0);
	case SYS_readlinkat:
		return read_link(c, 1);
	case SYS_getcwd:
		return current_folder(c);
	}
	return raw_call(c);
}

static long answer_call(struct trap_call *c)
{
	const uint64_t *a = c->arg;

	switch (c->nr) {
	case SYS_ioctl:
		return call_node(c, TRAP_IOCTL, 0);
	case SYS_mmap:
		return map_file(c);
	case SYS_munmap:
		return unmap_pages(c);
	case SYS_mremap:
		return move_pages(c);
	case SYS_mprotect:
		return is_watching() ? trap_ask(c, TRAP_MPROTECT, 0, 0) :
				       raw_call(c);
	case SYS_close:
		return is_kept(c, a[0]) ? -EBADF : raw_call(c);
	case SYS_dup2:
	case SYS_dup3:
		/* What Linux says when a call under way has the number. */
		return is_kept(c, a[1]) ? -EBUSY : raw_call(c);
	case SYS_close_range:
		return close_range_around(c);
	case SYS_brk:
		return move_break(a[0]);
	case SYS_rt_sigaction:
		return trap_sigaction(c);
	case SYS_rt_sigprocmask:
		return trap_sigprocmask(c);
	case SYS_execve:
		return execute(c, a[0], a[1], a[2]);
	case SYS_execveat:
		return execute_at(c);
	}
	return answer_file(c);
}

void trap_handle(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	greg_t *r = u->uc_mcontext.gregs;
	struct trap_call c = {
		.nr = info->si_syscall,
		.arg = { (uint64_t)r[REG_RDI], (uint64_t)r[REG_RSI],
			 (uint64_t)r[REG_RDX], (uint64_t)r[REG_R10],
			 (uint64_t)r[REG_R8], (uint64_t)r[REG_R9] },
		.context = u,
	};

	(void)sig;
	r[REG_RAX] = answer_call(&c);
}
