/*
 * The yardstick of a training step that the engine has none of: memory that is
 * read and written where it lies, as an optimizer does.
 */
#ifndef T0_TESTS_BENCH_YARD_H
#define T0_TESTS_BENCH_YARD_H

#include <string.h>
#include <sys/mman.h>

#include "base/threads.h"

#define YARD_STREAMS 4
#define YARD_FLOATS  ((size_t)16 << 20) /* of each */

/* Arrays that are changed side by side, `step` values of each in turn. */
struct yard {
	struct threads *t;
	uint64_t *data; /* [YARD_STREAMS][YARD_FLOATS / 2] */
	size_t step;
};

static inline bool yard_open(struct yard *y, struct threads *t)
{
	const size_t bytes = YARD_STREAMS * YARD_FLOATS * 4;

	*y = (struct yard){ .t = t };
	y->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (y->data == MAP_FAILED)
		return false;
	madvise(y->data, bytes, MADV_HUGEPAGE);
	memset(y->data, 1, bytes);
	return true;
}

static inline void yard_close(struct yard *y)
{
	if (y->data && y->data != MAP_FAILED)
		munmap(y->data, YARD_STREAMS * YARD_FLOATS * 4);
}

static inline void yard_change(void *ctx, struct threads *t, unsigned thread)
{
	const struct yard *y = ctx;
	const size_t n = YARD_FLOATS / 2, step = y->step;
	size_t at, to;

	threads_part(t, thread, n, step, &at, &to);
	for (; at < to; at += step)
		for (unsigned s = 0; s < YARD_STREAMS; s++) {
			uint64_t *p = y->data + s * n + at;
			for (size_t i = 0; i < step; i++)
				p[i] ^= 1;
		}
}

/* Bytes a second that all threads read and write back, both counted. */
static inline double yard_rewrite_by(struct yard *y, size_t step)
{
	uint64_t from = time_mono_ns();

	y->step = step;
	threads_run(y->t, yard_change, y);
	return 2. * YARD_STREAMS * YARD_FLOATS * 4 /
	       ((double)(time_mono_ns() - from) * 1e-9);
}

/* The best of: one array after the other, by pages, by lines. */
static inline double yard_rewrite(struct yard *y)
{
	static const size_t step[] = { YARD_FLOATS / 16, 2048, 512, 8 };
	double best = 0;

	for (size_t i = 0; i < ARRAY_SIZE(step); i++) {
		double rate = yard_rewrite_by(y, step[i]);
		best = rate > best ? rate : best;
	}
	return best;
}

#endif
