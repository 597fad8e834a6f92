/*
 * pass - what the passes of the middle share.
 *
 * A pass is `bool ssa_pass_NAME(struct ssa_func *f)`: it gets a function that
 * ssa_check() accepts and for which ssa_analyse() is valid, leaves one that
 * ssa_check() accepts, and says whether it changed anything.  What it does not
 * know it leaves alone: no pass can fail.  compiler/opt/pass.def names them.
 *
 * Replacing.  Passes do not search for uses: they note "this value is now that
 * one" with ssa_forward() while they walk, look operands up with
 * ssa_forwarded(), and end with ssa_forward_all(), which rewrites every use and
 * deletes what was replaced.  `tmp` of instructions belongs to this meanwhile.
 */
#ifndef T0_COMPILER_PASS_H
#define T0_COMPILER_PASS_H

#include "compiler/ssa/ssa.h"

#define PASS(name) bool ssa_pass_##name(struct ssa_func *f);
#include "compiler/opt/pass.def"

/* ----------------------------------------------------------- pass.c ---- */

/*
 * The passes, one row each in compiler/opt/pass.def, run by level:
 * 0 only what the back end needs, 1 cheap, 2 all, 3 all with unrolling.  Checks
 * the function before, between and after.  `dump`, if not NULL, is called with
 * the name of each pass after it ran.
 */
typedef void ssa_dump_fn(void *ctx, const char *pass, const struct ssa_func *f);
bool ssa_optimize(struct ssa_func *f, int level, ssa_dump_fn *dump, void *ctx,
		  struct err *e);
/* One pass by name, for tests; ERR_USAGE lists the names. */
bool ssa_pass_run(struct ssa_func *f, const char *pass, bool *changed,
		  struct err *e);

/* ------------------------------------------------------- pass_util.c ---- */

/* Forget all forwards (tmp of every instruction and parameter is NULL). */
void ssa_forward_init(struct ssa_func *f);
void ssa_forward(struct ssa_inst *from, struct ssa_inst *to);
struct ssa_inst *ssa_forwarded(struct ssa_inst *i);
/* Rewrites uses; unlinks instructions that were forwarded; false if none. */
bool ssa_forward_all(struct ssa_func *f);

/* Puts an operation of two operands and their type before `at`. */
struct ssa_inst *ssa_emit2(struct ssa_func *f, struct ssa_inst *at,
			   enum ssa_op op, struct ssa_inst *a,
			   struct ssa_inst *b);
/* The block before a loop that does nothing but enter it; or NULL. */
struct ssa_block *ssa_preheader(const struct ssa_block *head);
/* A constant, at the start of the entry block. */
struct ssa_inst *ssa_entry_const(struct ssa_func *f, struct ssa_type t,
				 uint64_t bits);
/* May it go when nobody uses its value? */
bool ssa_removable(const struct ssa_inst *i);
/* Removes the parameter and the arguments for it on all edges. */
void ssa_param_remove(struct ssa_block *b, uint32_t k);

#endif
