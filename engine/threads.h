/*
 * threads - the same function on all threads at once, with barriers.
 *
 * A model's forward pass is a few hundred short steps; each is split over the
 * threads and ends in a barrier.  Waiting threads spin briefly, then sleep, so
 * an idle pool costs nothing.
 */
#ifndef T0_ENGINE_THREADS_H
#define T0_ENGINE_THREADS_H

#include "base/base.h"

struct qwen_threads;

/* `n` threads, the caller's included; 0: one per processor it may use. */
struct qwen_threads *qwen_threads_new(unsigned n, struct err *e);
void qwen_threads_free(struct qwen_threads *t);
unsigned qwen_threads_count(const struct qwen_threads *t);

/* Runs work(ctx, t, thread) on every thread; returns when all are done. */
void qwen_threads_run(struct qwen_threads *t,
		      void (*work)(void *ctx, struct qwen_threads *t,
				   unsigned thread),
		      void *ctx);
/* For `work`: waits until every thread has come here. */
void qwen_threads_barrier(struct qwen_threads *t);
/* The part [*from, *to) of n items, in steps of `grain`, of one thread. */
void qwen_threads_part(const struct qwen_threads *t, unsigned thread, size_t n,
		       size_t grain, size_t *from, size_t *to);

#endif
