/*
 * base/threads.c - a pool of threads with barriers, and deals of work.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/threads.h"

#define MAX_THREADS 1024
#define SPINS 5000 /* pauses of up to 140 cycles: some 200 microseconds */

/*
 * What is left of a thread's part: the round of deals, then steps from and to.
 * Of an older round than one's own, it is the whole part; of a later one,
 * whose owner has thus found nothing more, nothing.
 */
struct left {
	_Alignas(64) _Atomic uint64_t steps; /* round:32, from:16, to:16 */
	uint32_t round;			     /* the owner's */
};
#define MOST_STEPS 0xffff

struct threads {
	unsigned n;
	int spins; /* before a thread sleeps */
	pthread_t *thread;
	void (*work)(void *ctx, struct threads *t, unsigned thread);
	void *ctx;
	/* Alone in their cache lines: everybody spins on them. */
	_Alignas(64) _Atomic uint32_t round; /* of runs; odd ends the pool */
	_Alignas(64) _Atomic uint32_t arrived;
	_Alignas(64) _Atomic uint32_t phase; /* counts barriers */
	/* Rarely written: nobody is to be woken while all are spinning. */
	_Alignas(64) _Atomic uint32_t sleepers;
	struct left left[]; /* [n] */
};

struct start {
	struct threads *t;
	unsigned thread;
};

static void call_futex(_Atomic uint32_t *at, int op, uint32_t v)
{
	syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, 0);
}

/*
 * Waits of this thread, one after the other, that ended asleep: for rounds and
 * at barriers.  Beside other programs whom it waits for may have no processor:
 * then it spins but a little, and in full now and then, to see whether that is
 * over.
 */
enum wait { WAIT_ROUND, WAIT_BARRIER };
static _Thread_local unsigned slept[2];

/* Waits until *at is no longer `old`; returns what it is. */
static uint32_t wait_change(struct threads *t, _Atomic uint32_t *at,
			    uint32_t old, enum wait w)
{
	const bool in_full = slept[w] < 4 || slept[w] % 32 == 0;
	uint32_t now = old;

	for (int i = in_full ? t->spins : t->spins / 100; i > 0; i--) {
		now = atomic_load_explicit(at, memory_order_acquire);
		if (now != old) {
			if (in_full)
				slept[w] = 0;
			return now;
		}
		__builtin_ia32_pause();
	}
	slept[w]++;
	/*
	 * Counted before it looks again, so that wake_sleepers() sees one of
	 * both.
	 */
	atomic_fetch_add(&t->sleepers, 1);
	while ((now = atomic_load(at)) == old)
		call_futex(at, FUTEX_WAIT, old);
	atomic_fetch_sub(&t->sleepers, 1);
	return now;
}

static void wake_sleepers(struct threads *t, _Atomic uint32_t *at, uint32_t v)
{
	atomic_store(at, v);
	if (atomic_load(&t->sleepers))
		call_futex(at, FUTEX_WAKE, MAX_THREADS);
}

void threads_barrier(struct threads *t)
{
	uint32_t phase = atomic_load_explicit(&t->phase, memory_order_relaxed);

	if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) ==
	    t->n - 1) {
		atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
		wake_sleepers(t, &t->phase, phase + 1);
	} else {
		wait_change(t, &t->phase, phase, WAIT_BARRIER);
	}
}

static void *thread_main(void *arg)
{
	struct start s = *(struct start *)arg;
	uint32_t round = 0;

	free(arg);
	for (;;) {
		round = wait_change(s.t, &s.t->round, round, WAIT_ROUND);
		if (round & 1)
			return NULL;
		s.t->work(s.t->ctx, s.t, s.thread);
		threads_barrier(s.t);
	}
}

static unsigned count_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

struct threads *threads_new(unsigned n, struct err *e)
{
	struct threads *t;

	n = n ? n : count_processors();
	if (n > MAX_THREADS) {
		err_set(e, ERR_USAGE, "%u threads; wanted at most %d", n,
			MAX_THREADS);
		return NULL;
	}
	size_t bytes = sizeof(*t) + n * sizeof(*t->left);
	if (posix_memalign((void **)&t, 64, bytes) != 0) {
		err_set(e, ERR_NOMEM, "no memory for threads");
		return NULL;
	}
	memset(t, 0, bytes);
	t->n = 1;
	/* Without a processor each, who spins keeps another from working. */
	t->spins = n <= count_processors() ? SPINS : 0;
	t->thread = xcalloc(n, sizeof(*t->thread));
	for (; t->n < n; t->n++) {
		struct start *s = xmalloc(sizeof(*s));
		*s = (struct start){ t, t->n };
		int why = pthread_create(&t->thread[t->n], NULL, thread_main,
					 s);
		if (why) {
			free(s);
			err_sys(e, ERR_NOMEM, why, "cannot start thread %u of "
				"%u; ask for fewer, or raise the limits of "
				"memory and processes (ulimit -v, -u)",
				t->n + 1, n);
			threads_free(t);
			return NULL;
		}
	}
	return t;
}

void threads_free(struct threads *t)
{
	if (!t)
		return;
	wake_sleepers(t, &t->round, 1);
	for (unsigned i = 1; i < t->n; i++)
		pthread_join(t->thread[i], NULL);
	free(t->thread);
	free(t);
}

unsigned threads_count(const struct threads *t)
{
	return t->n;
}

void threads_run(struct threads *t,
		 void (*work)(void *ctx, struct threads *t, unsigned thread),
		 void *ctx)
{
	t->work = work;
	t->ctx = ctx;
	wake_sleepers(t, &t->round, atomic_load(&t->round) + 2);
	work(ctx, t, 0);
	threads_barrier(t);
}

void threads_part(const struct threads *t, unsigned thread, size_t n,
		       size_t grain, size_t *from, size_t *to)
{
	size_t units = (n + grain - 1) / grain;

	*from = units * thread / t->n * grain;
	*to = units * (thread + 1) / t->n * grain;
	*from = *from < n ? *from : n;
	*to = *to < n ? *to : n;
}

/* ---- deals ---- */

void threads_deal(struct threads_deal *d, struct threads *t, unsigned thread,
		  size_t n, size_t grain)
{
	size_t most = MOST_STEPS * grain;

	*d = (struct threads_deal){ .t = t,
				    .thread = thread,
				    .round = ++t->left[thread].round,
				    .n = n,
				    .grain = (n / most + 1) * grain };
}

/* Steps of a part that nobody has taken any of. */
static void deal_steps(const struct threads_deal *d, unsigned thread,
		      uint32_t *from, uint32_t *to)
{
	size_t a, b;

	threads_part(d->t, thread, d->n, d->grain, &a, &b);
	*from = (uint32_t)((a + d->grain - 1) / d->grain);
	*to = (uint32_t)((b + d->grain - 1) / d->grain);
}

/*
 * A quarter of what is left of a part, as steps; all where nobody else could
 * take any.  None: false.
 */
static bool take_some(const struct threads_deal *d, unsigned thread,
		      uint32_t *from, uint32_t *to)
{
	_Atomic uint64_t *at = &d->t->left[thread].steps;
	uint64_t old = atomic_load(at), rest;

	do {
		uint32_t round = (uint32_t)(old >> 32);
		if ((int32_t)(round - d->round) > 0)
			return false;
		*from = old >> 16 & MOST_STEPS;
		*to = old & MOST_STEPS;
		if (round != d->round)
			deal_steps(d, thread, from, to);
		if (*from == *to)
			return false;
		uint32_t some = (*to - *from + 3) / 4;
		if (d->t->n == 1)
			some = *to - *from;
		rest = (uint64_t)d->round << 32;
		if (thread == d->thread) {
			rest |= (*from + some) << 16 | *to;
			*to = *from + some;
		} else {
			rest |= *from << 16 | (*to - some);
			*from = *to - some;
		}
	} while (!atomic_compare_exchange_weak(at, &old, rest));
	return true;
}

bool threads_take(struct threads_deal *d, size_t *from, size_t *to)
{
	uint32_t a, b;

	for (; d->behind < d->t->n; d->behind++)
		if (take_some(d, (d->thread + d->behind) % d->t->n, &a, &b)) {
			*from = a * d->grain;
			*to = b * d->grain < d->n ? b * d->grain : d->n;
			return true;
		}
	return false;
}
