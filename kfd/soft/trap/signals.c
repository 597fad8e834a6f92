/*
 * kfd/soft/trap/signals.c - the program's signals: all are its own but SIGSYS,
 * which it can neither block nor catch.
 *
 * No thread-local variables here: see trap.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "kfd/soft/trap/trap.h"

#define SIGSYS_BIT (1ull << (SIGSYS - 1))

/* As the kernel has it. */
struct action {
	uint64_t handler, flags, restorer, mask;
};
static struct action wished; /* for SIGSYS; the program sees it again */

static long copy_memory(long nr, void *mine, uint64_t theirs, size_t n)
{
	const struct iovec here = { mine, n };
	const struct iovec there = { (void *)(uintptr_t)theirs, n };
	const long got = trap_raw(nr, (uint64_t)trap_raw(SYS_getpid, 0, 0, 0,
							 0, 0, 0),
				  (uintptr_t)&here, 1, (uintptr_t)&there, 1, 0);

	if (got == -ENOSYS || got == -EPERM) /* a bad pointer ends it, then */
		return 1;
	return got == (long)n ? 0 : -EFAULT;
}

long trap_copy_in(void *to, uint64_t from, size_t n)
{
	const long ret = copy_memory(SYS_process_vm_readv, to, from, n);

	if (ret > 0)
		memcpy(to, (const void *)(uintptr_t)from, n);
	return ret < 0 ? ret : 0;
}

long trap_copy_out(uint64_t to, const void *from, size_t n)
{
	const long ret = copy_memory(SYS_process_vm_writev,
				     (void *)(uintptr_t)from, to, n);

	if (ret > 0)
		memcpy((void *)(uintptr_t)to, from, n);
	return ret < 0 ? ret : 0;
}

long trap_sigaction(const struct trap_call *c)
{
	struct action new, old = wished;
	long ret = 0;

	if (c->arg[3] != sizeof(uint64_t))
		return -EINVAL;
	if (c->arg[1])
		ret = trap_copy_in(&new, c->arg[1], sizeof(new));
	if (ret)
		return ret;
	if (c->arg[0] != SIGSYS) {
		new.mask &= ~SIGSYS_BIT;
		return trap_raw(SYS_rt_sigaction, c->arg[0],
				c->arg[1] ? (uintptr_t)&new : 0, c->arg[2],
				c->arg[3], 0, 0);
	}
	if (c->arg[2])
		ret = trap_copy_out(c->arg[2], &old, sizeof(old));
	if (!ret && c->arg[1])
		wished = new;
	return ret;
}

/* The mask that the handler's return gives back to the thread. */
static uint64_t *mask_of(const struct trap_call *c)
{
	return (uint64_t *)&c->context->uc_sigmask;
}

long trap_sigprocmask(const struct trap_call *c)
{
	const uint64_t old = *mask_of(c);
	uint64_t set = 0, new = old;
	long ret = 0;

	if (c->arg[3] != sizeof(set))
		return -EINVAL;
	if (c->arg[1])
		ret = trap_copy_in(&set, c->arg[1], sizeof(set));
	if (ret)
		return ret;
	if (c->arg[1] && c->arg[0] == SIG_BLOCK)
		new = old | set;
	else if (c->arg[1] && c->arg[0] == SIG_UNBLOCK)
		new = old & ~set;
	else if (c->arg[1] && c->arg[0] == SIG_SETMASK)
		new = set;
	else if (c->arg[1])
		return -EINVAL;
	if (c->arg[2])
		ret = trap_copy_out(c->arg[2], &old, sizeof(old));
	if (!ret)
		*mask_of(c) = new & ~(SIGSYS_BIT | 1ull << (SIGKILL - 1) |
				      1ull << (SIGSTOP - 1));
	return ret;
}

long trap_wait(const struct trap_call *c, long nr, uint64_t x, uint64_t y,
	       uint64_t z, uint64_t w)
{
	uint64_t blocked;
	long ret;

	trap_raw(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)mask_of(c),
		 (uintptr_t)&blocked, sizeof(blocked), 0, 0);
	ret = trap_raw(nr, x, y, z, w, 0, 0);
	trap_raw(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&blocked, 0,
		 sizeof(blocked), 0, 0);
	return ret;
}
