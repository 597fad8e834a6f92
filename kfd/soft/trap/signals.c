/*
 * kfd/soft/trap/signals.c - the program's signals: all are its own but SIGSYS,
 * which it can neither block nor catch, and SIGSEGV and SIGBUS once the GPU
 * has memory of the program.  Those belong to whose code is running then: the
 * device's threads catch them (kfd/soft/device/guard.c), all else is told to
 * the program.
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

/* SIGSEGV and SIGBUS: the device's handler, and the program's actions. */
static struct {
	void (*device)(int sig, siginfo_t *info, void *context); /* atomic */
	struct action program[2];
	uint32_t lock;
} shared;

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

/* ------------------------------------------------- SIGSEGV and SIGBUS -- */

bool trap_guards(void)
{
	return __atomic_load_n(&shared.device, __ATOMIC_ACQUIRE);
}

static bool is_shared(int sig)
{
	return (sig == SIGSEGV || sig == SIGBUS) && trap_guards();
}

/* As the kernel would: the action, and which it was. */
static struct action swap_action(int sig, const struct action *new)
{
	struct action *a = &shared.program[sig == SIGBUS], old;

	while (__atomic_exchange_n(&shared.lock, 1, __ATOMIC_ACQUIRE))
		trap_raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	old = *a;
	if (new)
		*a = *new;
	__atomic_store_n(&shared.lock, 0, __ATOMIC_RELEASE);
	return old;
}

/* What the program's action says.  Its handler may jump away. */
static void tell_program(int sig, siginfo_t *info, void *context)
{
	static const struct action usual;
	const struct action a = swap_action(sig, NULL);
	const bool sent = info->si_code <= 0; /* by kill() and the like */
	void (*handler)(int, siginfo_t *, void *) =
		(void (*)(int, siginfo_t *, void *))(uintptr_t)a.handler;
	uint64_t block = a.mask & ~SIGSYS_BIT, old;

	if (a.handler <= 1) { /* SIG_DFL, SIG_IGN */
		if (a.handler && sent)
			return;
		/* The access is made again, and ends the program. */
		trap_raw(SYS_rt_sigaction, (uint64_t)sig, (uintptr_t)&usual, 0,
			 sizeof(old), 0, 0);
		if (sent)
			trap_raw(SYS_tkill,
				 (uint64_t)trap_raw(SYS_gettid, 0, 0, 0, 0, 0,
						    0),
				 (uint64_t)sig, 0, 0, 0, 0);
		return;
	}
	if (a.flags & (uint32_t)SA_RESETHAND)
		swap_action(sig, &usual);
	if (!(a.flags & SA_NODEFER))
		block |= 1ull << (sig - 1);
	trap_raw(SYS_rt_sigprocmask, SIG_BLOCK, (uintptr_t)&block,
		 (uintptr_t)&old, sizeof(old), 0, 0);
	handler(sig, info, context);
	trap_raw(SYS_rt_sigprocmask, SIG_SETMASK, (uintptr_t)&old, 0,
		 sizeof(old), 0, 0);
}

/* Our own code runs on our own threads, or is in the middle of a call. */
static void share_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	const uint64_t at = (uint64_t)u->uc_mcontext.gregs[REG_RIP];

	if (at >= TRAP_TEXT_FIRST && at <= TRAP_TEXT_LAST)
		shared.device(sig, info, context);
	else
		tell_program(sig, info, context);
}

/* The linker puts these in the place of sigaction() (GNUmakefile). */
int __wrap_sigaction(int sig, const struct sigaction *new,
		     struct sigaction *old);
int __real_sigaction(int sig, const struct sigaction *new,
		     struct sigaction *old);

int __wrap_sigaction(int sig, const struct sigaction *new,
		     struct sigaction *old)
{
	struct sigaction mine;

	if (!new || (sig != SIGSEGV && sig != SIGBUS))
		return __real_sigaction(sig, new, old);
	trap_raw(SYS_rt_sigaction, (uint64_t)sig, 0,
		 (uintptr_t)&shared.program[sig == SIGBUS], 8, 0, 0);
	__atomic_store_n(&shared.device, new->sa_sigaction, __ATOMIC_RELEASE);
	mine = *new;
	mine.sa_sigaction = share_signal;
	return __real_sigaction(sig, &mine, old);
}

/* ------------------------------------------------------------- all others -- */

long trap_sigaction(const struct trap_call *c)
{
	const int sig = (int)c->arg[0];
	struct action new, old = wished;
	long ret = 0;

	if (c->arg[3] != sizeof(uint64_t))
		return -EINVAL;
	if (c->arg[1])
		ret = trap_copy_in(&new, c->arg[1], sizeof(new));
	if (ret)
		return ret;
	if (c->arg[1])
		new.mask &= ~SIGSYS_BIT;
	if (sig != SIGSYS && !is_shared(sig))
		return trap_raw(SYS_rt_sigaction, c->arg[0],
				c->arg[1] ? (uintptr_t)&new : 0, c->arg[2],
				c->arg[3], 0, 0);
	if (is_shared(sig))
		old = swap_action(sig, c->arg[1] ? &new : NULL);
	else if (c->arg[1])
		wished = new;
	return c->arg[2] ? trap_copy_out(c->arg[2], &old, sizeof(old)) : 0;
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
