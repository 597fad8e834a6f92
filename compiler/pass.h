/*
 * pass - what the passes of the middle share.
 *
 * A pass is `bool ssa_pass_NAME(struct ssa_func *f)`: it gets a function that
 * ssa_check() accepts and for which ssa_analyse() is valid, leaves one that
 * ssa_check() accepts, and says whether it changed anything.  What it does not
 * know it leaves alone: no pass can fail.  compiler/pass.def names them.
 *
 * Replacing.  Passes do not search for uses: they note "this value is now that
 * one" with ssa_forward() while they walk, look operands up with
 * ssa_forwarded(), and end with ssa_forward_all(), which rewrites every use and
 * deletes what was replaced.  `tmp` of instructions belongs to this meanwhile.
 */
#ifndef T0_COMPILER_PASS_H
#define T0_COMPILER_PASS_H

#include "compiler/ssa.h"

#define PASS(name) bool ssa_pass_##name(struct ssa_func *f);
#include "compiler/pass.def"

/* ------------------------------------------------------- pass_util.c ---- */

/* Forget all forwards (tmp of every instruction and parameter is NULL). */
void ssa_forward_init(struct ssa_func *f);
void ssa_forward(struct ssa_inst *from, struct ssa_inst *to);
struct ssa_inst *ssa_forwarded(struct ssa_inst *i);
/* Rewrites uses; unlinks instructions that were forwarded; false if none. */
bool ssa_forward_all(struct ssa_func *f);

/* May it go when nobody uses its value? */
bool ssa_removable(const struct ssa_inst *i);
/* Removes the parameter and the arguments for it on all edges. */
void ssa_param_remove(struct ssa_block *b, uint32_t k);

#endif
