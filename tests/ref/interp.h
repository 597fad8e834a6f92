/*
 * interp - the reference interpreter: what a function in SSA form means.
 */
#ifndef T0_TESTS_INTERP_H
#define T0_TESTS_INTERP_H

#include "compiler/ssa/ssa.h"

/*
 * Runs a whole grid in plain C, the reference of what a function means: exact
 * where the operation is, correctly rounded for the approximate ones.
 * `arg[i]` holds the bits of argument i; pointers are host addresses.  Groups
 * and waves run one after the other up to their next barrier.
 *
 * ERR_DEVICE, with the place in the kernel, for: an access outside of
 * `range[n_ranges]` or the group's LDS, or less aligned than it says; a barrier
 * that some work-items do not reach; an assume that is false.
 */
struct ssa_range {
	void *base;
	size_t size_bytes;
};
struct ssa_run {
	uint32_t groups[3];
	const uint64_t *arg;
	const struct ssa_range *range;
	size_t n_ranges;
	uint64_t max_steps;  /* 0: no limit; else ERR_TIMEOUT beyond */
	struct buf *printed; /* what printf wrote, or NULL */
};
bool ssa_interpret(struct ssa_func *f, const struct ssa_run *run,
		   struct err *e);

#endif
