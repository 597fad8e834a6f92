/*
 * threads - the same function on all threads at once, with barriers.
 *
 * For work of many short steps, such as a model's forward pass: each step is
 * split over the threads and ends in a barrier.  Waiting threads spin briefly,
 * then sleep, so an idle pool costs nothing.
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

#endif
