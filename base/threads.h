/*
 * threads - the same function on all threads at once, with barriers.
 *
 * For work of many short steps, such as a model's forward pass: each step is
 * split over the threads and ends in a barrier.  Waiting threads spin briefly,
 * then sleep, so an idle pool costs nothing; they hardly spin where a pool has
 * more threads than there are processors, or other programs have them.
 */
#ifndef T0_BASE_THREADS_H
#define T0_BASE_THREADS_H

#include "base/base.h"

struct threads;

/* `n` threads, the caller's included; 0: one per processor it may use. */
struct threads *threads_new(unsigned n, struct err *e);
void threads_free(struct threads *t);
unsigned threads_count(const struct threads *t);

/* Runs work(ctx, t, thread) on every thread; returns when all are done. */
void threads_run(struct threads *t,
		 void (*work)(void *ctx, struct threads *t, unsigned thread),
		 void *ctx);
/* For `work`: waits until every thread has come here. */
void threads_barrier(struct threads *t);
/* The part [*from, *to) of n items, in steps of `grain`, of one thread. */
void threads_part(const struct threads *t, unsigned thread, size_t n,
		       size_t grain, size_t *from, size_t *to);

/*
 * n items dealt out while they are worked on, so that a thread which is slowed
 * down holds up the others little: each takes its part, as threads_part() has
 * it, from the front; then what is left of others', from the back.  What is
 * taken at once shrinks towards the end.  Every item is dealt exactly once.
 *
 *	threads_deal(&d, t, thread, n, 16);
 *	while (threads_take(&d, &from, &to))
 *		...
 *
 * All threads begin the same deals in the same order, and take until nothing
 * is left.  Only a barrier says that the others have done what they took.
 */
struct threads_deal {
	struct threads *t;
	unsigned thread, behind; /* takes from thread + behind */
	uint32_t round;
	size_t n, grain;
};
void threads_deal(struct threads_deal *d, struct threads *t, unsigned thread,
		  size_t n, size_t grain);
/* False: everything is taken. */
bool threads_take(struct threads_deal *d, size_t *from, size_t *to);

#endif
