/*
 * select_mem - one access to memory, as loads, stores and atomics select it.
 */
#ifndef T0_COMPILER_SELECT_MEM_H
#define T0_COMPILER_SELECT_MEM_H

#include "compiler/isel/select.h"

struct sel_access {
	const struct sel *s;
	const struct ssa_inst *i;
	bool lds, store;
	struct mir_opnd data;	  /* registers */
	struct mir_opnd addr;	  /* vector registers */
	struct mir_opnd base;	  /* scalar, or OFF */
	int32_t off;
	const char *tail;
	bool partial;
	bool upper;		  /* store 16 bits: of the upper half */
};

/* -------------------------------------------------------- select_mem.c ---- */

/* Fills in where the access goes. */
void sel_address(struct sel *s, struct sel_access *a);
/* Writes down what `m` touches: `bytes` at `at` of the access. */
void sel_note(struct sel_access *a, struct mir_inst *m, int at, int bytes);
/* Only lanes of the mask from here on; what to give to sel_mask_end(). */
struct mir_opnd sel_mask_begin(struct sel *s, const struct ssa_inst *mask);
void sel_mask_end(struct sel *s, struct mir_opnd save);

#endif
