/*
 * range - what is known about integer values without running: bounds as
 * unsigned numbers, and how many low bits are zero.
 *
 * Facts hold wherever the value is used.  They come from the definition alone,
 * a few steps deep; ssa_analyse() must be valid.  Only scalars of integers.
 */
#ifndef T0_COMPILER_RANGE_H
#define T0_COMPILER_RANGE_H

#include "compiler/ssa/ssa.h"

struct ssa_bounds {
	uint64_t min, max; /* unsigned, of the type's width */
};

/* ----------------------------------------------------------- range.c ---- */

struct ssa_bounds ssa_bounds(const struct ssa_func *f,
			     const struct ssa_inst *i);
uint32_t ssa_zero_bits(const struct ssa_inst *i); /* low ones */
/* Is a + b, as unsigned numbers, the sum? */
bool ssa_adds_exactly(const struct ssa_func *f, const struct ssa_inst *a,
		      const struct ssa_inst *b);
/* Is it 0 or positive as a signed number? */
bool ssa_never_negative(const struct ssa_func *f, const struct ssa_inst *i);

#endif
