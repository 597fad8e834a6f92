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

/* ---------------------------------------------------------- memory.c ---- */

/* What a load, store, atomic or cmpxchg touches. */
struct ssa_place {
	struct ssa_inst *root; /* the pointer under all ptradds */
	struct ssa_inst *base, *off;
	int64_t add;	 /* constant bytes from base + off */
	uint32_t size;	 /* bytes */
	struct ssa_inst *mask; /* or NULL */
};
bool ssa_is_access(const struct ssa_inst *i);
struct ssa_place ssa_place(const struct ssa_inst *i);
/* Never the same byte (in one lane)? */
bool ssa_disjoint(const struct ssa_func *f, const struct ssa_inst *a,
		  const struct ssa_inst *b);
/* The same bytes exactly, under the same mask? */
bool ssa_same_place(const struct ssa_inst *a, const struct ssa_inst *b);
/* May i write what load `l` reads, in this or another lane? */
bool ssa_may_clobber(const struct ssa_func *f, const struct ssa_inst *i,
		     const struct ssa_inst *l);

#endif
