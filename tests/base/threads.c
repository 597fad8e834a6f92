/* Work on several threads: parts, deals, barriers. */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/threads.h"
#include "tests/tap.h"

#define MOST 4000

struct job {
	size_t n, grain;
	int rounds;
	bool barriers; /* between rounds */
	unsigned slow; /* a thread that rests until all is dealt */
	_Atomic uint32_t dealt[MOST]; /* how often each item was */
	_Atomic size_t total;	      /* dealt */
	size_t took[8];		      /* [threads]: items */
	_Atomic bool badly_cut;
};

/* Until others have taken everything else, for 10 s at most. */
static void rest(struct job *j)
{
	struct timespec t = { 0, 1000000 };

	for (int i = 0; i < 10000 && j->total < j->n; i++)
		nanosleep(&t, NULL);
}

static void work(void *ctx, struct threads *t, unsigned thread)
{
	struct job *j = ctx;
	struct threads_deal d;
	size_t from, to;

	for (int r = 0; r < j->rounds; r++) {
		threads_deal(&d, t, thread, j->n, j->grain);
		while (threads_take(&d, &from, &to)) {
			if (from >= to || to > j->n || from % j->grain ||
			    (to % j->grain && to != j->n))
				j->badly_cut = true;
			j->took[thread] += to - from;
			atomic_fetch_add(&j->total, to - from);
			for (; from < to; from++)
				atomic_fetch_add(&j->dealt[from % MOST], 1);
			if (thread == j->slow)
				rest(j);
		}
		if (j->barriers)
			threads_barrier(t);
	}
}

static size_t wrong(const struct job *j)
{
	size_t bad = 0;

	for (size_t i = 0; i < MOST; i++)
		bad += j->dealt[i] != (i < j->n ? (uint32_t)j->rounds : 0);
	return bad;
}

static void test_each(struct threads *t, unsigned n)
{
	static const struct {
		size_t n, grain;
	} size[] = { { 1, 1 },	  { 0, 16 },   { 15, 16 },  { 16, 16 },
		     { 17, 16 },  { 1000, 1 }, { 999, 16 }, { 4000, 3 },
		     { 4000, 64 } };

	for (size_t i = 0; i < ARRAY_SIZE(size); i++)
		for (int barriers = 0; barriers < 2; barriers++) {
			struct job j = { .n = size[i].n,
					 .grain = size[i].grain,
					 .rounds = 100,
					 .barriers = barriers,
					 .slow = UINT32_MAX };
			threads_run(t, work, &j);
			ok(wrong(&j) == 0 && !j.badly_cut,
			   "%u threads, %zu items by %zu, %s barriers: each "
			   "dealt once", n, j.n, j.grain,
			   barriers ? "with" : "without");
		}
}

/* More steps than a deal counts: coarser ones. */
static void test_many(struct threads *t, unsigned n)
{
	enum { TIMES = 300 };
	struct job j = { .n = (size_t)TIMES * MOST, .grain = 1, .rounds = 1,
			 .slow = UINT32_MAX };
	size_t bad = 0;

	threads_run(t, work, &j);
	for (size_t i = 0; i < MOST; i++)
		bad += j.dealt[i] != TIMES;
	is_u64(bad, 0, "%u threads, %zu items: each dealt once", n, j.n);
}

static void test_slow(struct threads *t, unsigned n)
{
	struct job j = { .n = MOST, .grain = 1, .rounds = 1, .slow = n - 1 };
	size_t part = MOST / n;

	threads_run(t, work, &j);
	is_u64(wrong(&j), 0, "%u threads, one of them slow: each dealt once",
	       n);
	ok(j.took[n - 1] <= (part + n + 3) / 4,
	   "the slow one took %zu of its %zu items, others the rest",
	   j.took[n - 1], part);
}

int main(void)
{
	struct err e = { 0 };

	for (unsigned n = 1; n <= 5; n += n < 3 ? 1 : 2) {
		struct threads *t = threads_new(n, &e);
		if (!ok(t && threads_count(t) == n, "%u threads", n))
			return plan_done();
		test_each(t, n);
		test_many(t, n);
		if (n > 1)
			test_slow(t, n);
		threads_free(t);
	}
	ok(!threads_new(1 << 20, &e) && e.code == ERR_USAGE,
	   "a million threads are refused");
	return plan_done();
}
