/*
 * clone - copies of parts of a function, for passes that repeat code.
 */
#ifndef T0_COMPILER_CLONE_H
#define T0_COMPILER_CLONE_H

#include "compiler/ssa/ssa.h"

/* What stands for a value or a block in the copy; NULL: itself. */
struct ssa_clone {
	struct ssa_func *f;
	struct ssa_inst **value;  /* by id, [n_values] */
	struct ssa_block **block; /* by id, [n_blocks] */
	uint32_t n_values, n_blocks;
};

/* ----------------------------------------------------------- clone.c ---- */

/* For what the function has now; what is made later stands for itself. */
void ssa_clone_init(struct ssa_clone *c, struct ssa_func *f);
void ssa_clone_fini(struct ssa_clone *c);
void ssa_clone_set(struct ssa_clone *c, const struct ssa_inst *from,
		   struct ssa_inst *to);
struct ssa_inst *ssa_cloned(const struct ssa_clone *c, struct ssa_inst *i);
/* Forgets all values and blocks. */
void ssa_clone_reset(struct ssa_clone *c);
/* An empty block with copies of b's parameters, at the end of the layout. */
struct ssa_block *ssa_clone_block(struct ssa_clone *c,
				  const struct ssa_block *b);
/* Appends copies of from..to (not with `to`; NULL: all) to a block. */
void ssa_clone_insts(struct ssa_clone *c, struct ssa_inst *from,
		     const struct ssa_inst *to, struct ssa_block *at);

#endif
