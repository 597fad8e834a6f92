/*
 * autotune/tuner/check.h - is what a kernel computes right?
 *
 * Operands are normal random numbers, results are compared with a reference in
 * double precision.  An element may be off by
 *
 *	CHECK_EPS sqrt(K) 2^-24 |a||b| / sqrt(K)    the sum in f32, whose errors
 *						    add up like a random walk
 *	+ half a unit in the last place of C's type
 *
 * with a the row of A and b the column of B; through an epilogue the first part
 * grows by what the epilogue's slope makes of it.  Integers must be equal.
 *
 * Small products are compared in full.  Of large ones, a small one of the same
 * class (tune_class()) is, and of the real one whole rows and columns - first,
 * last, around the edges of tiles, random ones - and an element of every tile.
 * Where even running it takes too long, the real one is run twice: all of C
 * with a short K, and the last tiles of C with all of K.
 */
#ifndef T0_AUTOTUNE_CHECK_H
#define T0_AUTOTUNE_CHECK_H

#include "autotune/tuner/bench_device.h"

struct tune_check {
	bool pass;
	double worst;	   /* largest error as a share of what is allowed */
	uint64_t compared; /* elements */
	uint64_t wrong;
	uint64_t seed;
	char detail[200];  /* the first wrong element, or what was compared */
};

/*
 * Runs `code`, which is said to be the product `p` with `c`.  true: *out is the
 * answer, a fault of the kernel being a wrong one.  false and *e: there is none
 * (the device is gone, no memory).
 */
bool tune_check(struct tune_rig *r, const struct tune_problem *p,
		const struct gemm_config *c, const struct gemm_code *code,
		uint64_t seed, struct tune_check *out, struct err *e);

/* The same for the operands that lie on the rig, as `v` left C. */
void tune_check_block(struct tune_rig *r, const struct gemm_config *c,
		      const struct tune_view *v, bool all,
		      struct tune_check *out);

#endif
