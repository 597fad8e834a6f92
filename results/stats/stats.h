/*
 * stats.h - what samples say, without assuming a distribution.
 *
 * Benchmark samples are skewed, have outliers and come in tens, so everything
 * here rests on order: medians, ranks and pairwise differences.  Outliers are
 * counted and shown (t0-results show), never deleted.  Intervals are 95 %;
 * where the samples are too few to hold one, lo and hi are NaN ("not known").
 *
 * Arrays belong to the caller and are never changed.  Samples must be finite.
 * Nothing here can fail but by running out of memory, which ends the process.
 * Compared with R and scipy to 1e-12 in tests/results/stats.c.
 */
#ifndef T0_RESULTS_STATS_H
#define T0_RESULTS_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* A median of fewer samples has no 95 % interval: 2 * 0.5^5 is over 5 %. */
#define RES_MIN_SAMPLES 6

/*
 * Up to this many samples of both sides together, orders are counted exactly;
 * above, the normal approximation takes over (with correction for ties and
 * continuity), which by then is right to about a thousandth of p.  Counting
 * with ties costs much more, so it ends sooner.
 */
#define RES_EXACT_SAMPLES 60
#define RES_EXACT_TIED 24

/* An estimate with its 95 % interval. */
struct res_interval {
	double value, lo, hi;
};

/*
 * The median with its order-statistic interval: the narrowest symmetric pair
 * of samples that holds the true median in at least 95 % of experiments,
 * whatever the distribution.  NaN for n = 0.
 */
struct res_interval res_median(const double *x, size_t n);

/*
 * The quantile q of `sorted` (ascending), interpolated linearly between the
 * samples around (n - 1) * q: type 7 of R, the default of numpy.
 */
double res_quantile(const double *sorted, size_t n, double q);

/* A sorted copy; free() it. */
double *res_sorted(const double *x, size_t n);

/* Median absolute deviation from the median, not scaled to a sigma. */
double res_mad(const double *x, size_t n);

/* The same as a share of the median; NaN where the median is 0. */
double res_relative_mad(const double *x, size_t n);

/* How many samples lie outside Tukey's fences, quartiles -+ 1.5 ranges. */
struct res_fences {
	double lo, hi;
	size_t outside;
};
struct res_fences res_outliers(const double *x, size_t n);

/* The geometric mean of positive values; NaN if one is not, or n = 0. */
double res_geomean(const double *x, size_t n);

/* Mann-Whitney: do a and b come from one distribution? */
struct res_rank_test {
	double u;   /* pairs with a above b, ties count one half */
	double p;   /* two-sided: twice the smaller tail, at most 1 */
	bool exact; /* counted, not approximated */
};
struct res_rank_test res_mann_whitney(const double *a, size_t na,
				      const double *b, size_t nb);

/*
 * Hodges-Lehmann: by how much b lies above a, the median of all differences
 * b - a, with the interval that inverts the Mann-Whitney test.  Ties make the
 * interval wider than needed, never narrower.  lo and hi are NaN where no
 * interval reaches 95 % (3 against 3).
 */
struct res_interval res_shift(const double *a, size_t na, const double *b,
			      size_t nb);

/*
 * The same for b / a, by way of logarithms; all NaN if a sample is not above
 * zero.  The interval of a ratio of medians would ignore the noise of one side.
 */
struct res_interval res_ratio(const double *a, size_t na, const double *b,
			      size_t nb);

/* ------------------------------------------------------- blocks.c ---- */

/*
 * Two sides whose processes ran in turns (A B B A ...): x[n] and, for each,
 * whether it is of side b, in the order in which they ran.  Neighbours form a
 * block as soon as two of each side are in it, so that what drifts while all
 * this goes on counts for neither side; sides that ran one after the other are
 * one block, and the test is Mann-Whitney's.
 *
 * block[n]: the number of each one's block, from 0; returns how many there are.
 */
size_t res_blocks(const bool *b, size_t n, size_t *block);

/* Do both sides come from one distribution?  Two-sided: twice the smaller tail,
 * counted exactly for blocks of up to 40. */
double res_turns_p(const double *x, const bool *b, size_t n);

struct res_turns {
	/*
	 * By how much b lies above a: the median of the differences of
	 * neighbours, with the interval of level 1 - alpha that inverts the
	 * test.  lo, hi: NaN where no interval reaches that level; all NaN
	 * where a side is empty.
	 */
	struct res_interval shift;
	double p;
	size_t blocks;
};
struct res_turns res_turns(const double *x, const bool *b, size_t n,
			   double alpha);

/* The smallest p that this order of turns can give, whatever is measured. */
double res_turns_least_p(const bool *b, size_t n);

#endif
