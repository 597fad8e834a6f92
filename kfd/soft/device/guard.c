/*
 * kfd/soft/device/guard.c - memory of the program that is not there.
 *
 * User pointers, SVM ranges and the arguments of ioctls are pages of the
 * program, which may unmap them, protect them, or truncate the file behind
 * them at any time.  The kernel's driver is told, or copies with care.  Here
 * the ioctls let the kernel do the copying; what executes waves and packets
 * catches the signal of an access that fails, on its own threads and inside
 * soft_guarded() only: all else goes to whom the program has named.
 *
 * The signals are taken with the first such memory, so that programs without
 * any keep them untouched.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "kfd/soft/device/dev.h"

#define PAGE_FAULT_WRITE 2 /* in the error code of x86's page fault */

struct guard {
	sigjmp_buf back;
	const struct soft_card *card;
	struct soft_lost *lost;
};
/* No lazily made block: a signal handler looks at it. */
static __thread struct guard *guard
	__attribute__((tls_model("initial-exec")));

/* Signal dispositions belong to the process, and so does this. */
static const int caught[2] = { SIGSEGV, SIGBUS };
static struct {
	pthread_mutex_t lock;
	bool taken; /* atomic */
	struct sigaction program[2]; /* what it had, or wants to have */
} signals = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ------------------------------------------------------------- signals -- */

/* The signal is none of ours: do what the program's action says. */
static void pass_signal(int sig, siginfo_t *info, void *context)
{
	const struct sigaction a = signals.program[sig == SIGBUS];
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	static const uint64_t plain[4]; /* the same, as the kernel has it */
	const bool sent = info->si_code <= 0; /* by kill() and the like */
	sigset_t block = a.sa_mask, old;

	if (!(a.sa_flags & SA_SIGINFO) && a.sa_handler == SIG_IGN && sent)
		return;
	if (!(a.sa_flags & SA_SIGINFO) &&
	    (a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)) {
		/* The access is made again, and ends the program. */
		syscall(SYS_rt_sigaction, sig, plain, NULL, 8);
		if (sent)
			raise(sig);
		return;
	}
	if (a.sa_flags & (int)SA_RESETHAND)
		signals.program[sig == SIGBUS] = usual;
	if (!(a.sa_flags & SA_NODEFER))
		sigaddset(&block, sig);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	if (a.sa_flags & SA_SIGINFO)
		a.sa_sigaction(sig, info, context);
	else
		a.sa_handler(sig);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Does the card reach this, and where?  A fault elsewhere is a bug of ours. */
static bool find_lost(const struct soft_card *c, uint64_t host, uint64_t *va)
{
	for (size_t i = 0; i < c->map.n; i++) {
		const struct soft_range *r = &c->map.v[i];

		if (host - (uintptr_t)r->host < r->size_bytes) {
			*va = r->va + (host - (uintptr_t)r->host);
			return true;
		}
	}
	return false;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct guard *g = guard;

	if (!g || info->si_code <= 0 ||
	    !find_lost(g->card, (uintptr_t)info->si_addr, &g->lost->va)) {
		pass_signal(sig, info, context);
		return;
	}
	g->lost->write = false;
#ifdef __x86_64__
	g->lost->write = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] &
			 PAGE_FAULT_WRITE;
#endif
	siglongjmp(g->back, 1);
}

void soft_guard_take(void)
{
	/* Nothing is blocked: the guard leaves the handler by a jump. */
	const struct sigaction own = {
		.sa_sigaction = on_signal,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	if (__atomic_load_n(&signals.taken, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&signals.lock);
	if (!signals.taken)
		for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
			sigaction(caught[i], NULL, &signals.program[i]);
			sigaction(caught[i], &own, NULL);
		}
	__atomic_store_n(&signals.taken, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&signals.lock);
}

bool kfd_soft_sigaction(int sig, const struct sigaction *new,
			struct sigaction *old)
{
	struct sigaction *a = &signals.program[sig == SIGBUS];
	struct sigaction was;

	if ((sig != SIGSEGV && sig != SIGBUS) ||
	    !__atomic_load_n(&signals.taken, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&signals.lock);
	was = *a;
	if (new)
		*a = *new;
	pthread_mutex_unlock(&signals.lock);
	if (old)
		*old = was;
	return true;
}

/* --------------------------------------------------------------- guard -- */

bool soft_guarded(const struct soft_card *c, void (*fn)(void *arg), void *arg,
		  struct soft_lost *lost)
{
	struct guard *outer = guard, g; /* `back` is large */
	/* Waves have rounding modes of their own; they leave the x87 alone,
	 * whose state takes long to read. */
	const unsigned fp = _mm_getcsr();

	g.card = c;
	g.lost = lost;
	if (sigsetjmp(g.back, 0)) {
		guard = outer;
		_mm_setcsr(fp);
		return false;
	}
	guard = &g;
	fn(arg);
	guard = outer;
	return true;
}

struct cp_step {
	struct soft_queue *q;
	enum soft_done (*fn)(struct soft_queue *q, void *arg);
	void *arg;
	enum soft_done done;
};

static void run_step(void *arg)
{
	struct cp_step *s = arg;

	s->done = s->fn(s->q, s->arg);
}

enum soft_done soft_cp_step(struct soft_queue *q,
			    enum soft_done (*fn)(struct soft_queue *q,
						 void *arg),
			    void *arg)
{
	struct cp_step s = { q, fn, arg, SOFT_REFUSED };
	struct soft_lost lost;

	soft_map_hold(q->dev);
	if (!soft_guarded(q->card, run_step, &s, &lost)) {
		s.done = SOFT_REFUSED;
		soft_cp_fault(q, lost.va,
			      lost.write ? SOFT_MEM_WRITE : SOFT_MEM_READ,
			      "memory of the program");
	}
	soft_map_release(q->dev);
	return s.done;
}

/* ---------------------------------------------------------- the program -- */

/* Where the kernel does not let us ask it, a bad pointer ends the program. */
static bool is_forbidden(ssize_t n)
{
	return n < 0 && (errno == ENOSYS || errno == EPERM);
}

int soft_copy_in(void *to, uint64_t from, size_t n)
{
	struct iovec mine = { to, n }, theirs = { (void *)(uintptr_t)from, n };
	const ssize_t got =
		n ? process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) : 0;

	if (is_forbidden(got))
		memcpy(to, theirs.iov_base, n);
	else if (got != (ssize_t)n)
		return -EFAULT;
	return 0;
}

int soft_copy_out(uint64_t to, const void *from, size_t n)
{
	struct iovec mine = { (void *)(uintptr_t)from, n };
	struct iovec theirs = { (void *)(uintptr_t)to, n };
	const ssize_t put =
		n ? process_vm_writev(getpid(), &mine, 1, &theirs, 1, 0) : 0;

	if (is_forbidden(put))
		memcpy(theirs.iov_base, from, n);
	else if (put != (ssize_t)n)
		return -EFAULT;
	return 0;
}
