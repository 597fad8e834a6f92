/*
 * ssa_int - what the files of the SSA form share.
 */
#ifndef T0_COMPILER_SSA_INT_H
#define T0_COMPILER_SSA_INT_H

#include "compiler/ssa/ssa.h"

/* ----------------------------------------------------- check_types.c ---- */

/* Is there such a type, with so many elements? */
bool ssa_type_valid(struct ssa_type t);
/* What is wrong with the types of `i` and its operands; NULL: nothing. */
const char *ssa_check_types(const struct ssa_func *f,
			    const struct ssa_inst *i);

/* ------------------------------------------------------- ssa_names.c ---- */

/* Flags with a name: all but SSA_UNIFORM, which is a result of analysis. */
enum { SSA_FLAG_BITS = 10 };

extern const char *const ssa_kind_name[SSA_KINDS];
extern const char *const ssa_flag_name[SSA_FLAG_BITS];

/* The names of `sub` for this operation; NULL and 0 if it has none. */
const char *const *ssa_sub_names(enum ssa_op op, uint32_t *n);
bool ssa_op_has_imm(enum ssa_op op);

#endif
