/*
 * probes/micro/micro.h - how a cost is measured, on whatever machine.
 *
 * A cost is never read off one clock difference.  The same loop exists twice,
 * with n and with 2n copies of what is measured, and both run the same number
 * of times: what the loop, the counter and the call cost is in both, so that
 *
 *	cost of one copy = (T(2n) - T(n)) / (n * iterations)
 *
 * Around each pair the clock is measured.  A pair is rejected, counted by
 * reason and taken again when the clock was not the same before and after,
 * when a run was interrupted, when the longer loop was not the longer one, or
 * when the loop did not compute what it should.  Nothing is dropped because
 * of its result.  A sample is the median of a few pairs.
 *
 * All series of one run are measured in rounds, one sample each, in an order
 * shuffled anew for every round: what drifts over the run lies in the spread
 * of every series, not in the difference between them.
 *
 * The machine is behind micro_read_fn, so the method itself is tested with a
 * clock that jumps, wraps and lies (tests/probes/micro-method.c).
 */
#ifndef T0_PROBES_MICRO_H
#define T0_PROBES_MICRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "results/stats/stats.h"

/* ----------------------------------------------------------- micro.c ---- */

enum micro_reject {
	MICRO_GOOD,
	MICRO_CLOCK, /* the clock moved between before and after */
	MICRO_CUT,   /* a run was interrupted */
	MICRO_ORDER, /* the longer loop took no longer */
	MICRO_VALUE, /* the chain's final value is wrong */
	MICRO_REJECTS
};

/* One pair of runs.  Ticks are of any counter; clocks of any unit. */
struct micro_pair {
	double before, after;	/* clock, as cycles per tick; both > 0 */
	double shorter, longer; /* ticks of the loops of n and of 2n */
	double copies;		/* by which they differ: n * iterations */
	bool cut;		/* the reader saw an interruption */
	bool wrong;		/* final value is not the expected one */
};

/* How far two readings of the clock may lie apart. */
#define MICRO_CLOCK_TOLERANCE 0.005

/* Why not, or MICRO_GOOD and *cycles = cycles of one copy. */
enum micro_reject micro_judge(const struct micro_pair *p, double *cycles);

/*
 * From `start` to `end` on a counter of `bits` bits that wrapped at most once.
 */
uint32_t micro_ticks(uint32_t start, uint32_t end, int bits);

/* Reads one pair; false and *e only when the machine is lost. */
typedef bool micro_read_fn(void *ctx, struct micro_pair *p, struct err *e);

#define MICRO_SAMPLES_MAX 101
#define MICRO_PAIRS_MAX	  9

/* One metric of one thing.  The caller fills the first part. */
struct micro_series {
	const char *name;
	micro_read_fn *read;
	void *ctx;
	double floor; /* added to the interval: what the method can resolve */

	double v[MICRO_SAMPLES_MAX];	     /* [n] samples in order */
	size_t n;
	unsigned rejected[MICRO_REJECTS];
	bool gave_up; /* too many rejections; `n` may be short */
	double clock; /* mean of the clocks of accepted pairs */
	double clock_sum;
	unsigned n_clocks;
};

struct micro_plan {
	size_t samples; /* per series, at most MICRO_SAMPLES_MAX */
	size_t pairs;	/* per sample, at most MICRO_PAIRS_MAX */
	uint64_t seed;	/* of the order */
	const volatile int *stop; /* may be NULL; set: ends after this pair */
	struct progress *progress; /* may be NULL: a step per sample */
};

/* Measure all series.  A stop is no error: what there is stays. */
bool micro_run(const struct micro_plan *plan, struct micro_series **s,
	       size_t n, struct err *e);

/*
 * Median with its 95 % interval, widened on both sides by what the method can
 * resolve: half of the tolerance of the clock, and s->floor.
 */
struct res_interval micro_result(const struct micro_series *s);

/* "12 clock moved, 3 interrupted" appended; nothing if none. */
void micro_rejections(const struct micro_series *s, struct buf *out);

/* A cyclic permutation of n numbers: one orbit (Sattolo). */
void micro_cycle(uint32_t *next, uint32_t n, uint64_t seed);

#endif
