/*
 * check - what the files of the SSA verifier share (ssa_check() of ssa.h).
 */
#ifndef T0_COMPILER_CHECK_H
#define T0_COMPILER_CHECK_H

#include "compiler/ssa/ssa.h"

/* ------------------------------------------------------ check_types.c ---- */

/* Is there such a type, with so many elements? */
bool ssa_type_valid(struct ssa_type t);
/* What is wrong with the types of `i` and its operands; NULL: nothing. */
const char *ssa_check_types(const struct ssa_func *f,
			    const struct ssa_inst *i);

#endif
