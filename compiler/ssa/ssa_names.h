/*
 * text - names that printing (text.c) and parsing (ssa_parse.c) of SSA share.
 */
#ifndef T0_COMPILER_TEXT_H
#define T0_COMPILER_TEXT_H

#include "compiler/ssa/ssa.h"

/* Flags with a name: all but SSA_UNIFORM, which is a result of analysis. */
enum { SSA_FLAG_BITS = 10 };

/* ------------------------------------------------------------ text.c ---- */

extern const char *const ssa_kind_name[SSA_KINDS];
extern const char *const ssa_flag_name[SSA_FLAG_BITS];

/* The names of `sub` for this operation; NULL and 0 if it has none. */
const char *const *ssa_sub_names(enum ssa_op op, uint32_t *n);
bool ssa_op_has_imm(enum ssa_op op);

#endif
