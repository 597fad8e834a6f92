/*
 * regalloc - what liveness, coalescing, allocation and spilling share.
 *
 * Time is counted in half steps: instruction p reads its sources at 2p and
 * writes its results at 2p + 1 (at 2p if MIR_EARLY).  The life of a register
 * is a list of half-open ranges of such times, kept for each 32-bit register
 * of a virtual register by itself.
 */
#ifndef T0_COMPILER_REGALLOC_H
#define T0_COMPILER_REGALLOC_H

#include "compiler/mir/mir.h"

struct range {
	uint32_t start, end;
};

struct life {
	struct range *r; /* ascending, apart */
	uint32_t n, cap;
};

/* -------------------------------------------------------------- live.c ---- */

/* Live sets of blocks; numbers the function first. */
void mir_live(struct mir_func *m);
/* The lives of all dwords, [m->n_dwords], after mir_live(). */
struct life *live_ranges(struct mir_func *m);
void live_free(struct life *l, uint32_t n);
bool live_overlap(const struct life *a, const struct life *b, uint32_t except);
/* *a becomes the union of both. */
void live_join(struct life *a, const struct life *b);

/* ---------------------------------------------------------- coalesce.c ---- */

/* Registers joined by copies and ties become one where lives allow it. */
void mir_coalesce(struct mir_func *m);

/* Which register a virtual register has become part of. */
struct place {
	uint32_t reg;
	uint8_t at;
};
struct joiner {
	struct mir_func *m;
	struct life *life;    /* [dwords] of what has been joined */
	struct place *place;  /* [n_vregs] */
};
struct mir_opnd join_resolve(const struct joiner *j, struct mir_opnd o);

/* ----------------------------------------------------- coalesce_lane.c ---- */

/*
 * Then those whose lanes take turns: a register that lanes fill one by one and
 * what they fill it with.
 */
void join_lanes(struct joiner *j);

/* ---------------------------------------------------------- regalloc.c ---- */

struct alloc_limits {
	uint32_t vgprs, sgprs;
};
/*
 * Gives every virtual register hardware registers, with spills where they do
 * not suffice.  False only if not even spilling helps.
 */
bool mir_allocate(struct mir_func *m, const struct alloc_limits *limits,
		  struct err *e);

/* ------------------------------------------------------------- spill.c ---- */

/* Rewrites the function so that the marked registers live in memory. */
void mir_spill(struct mir_func *m, const bool *which);

/* ------------------------------------------------------------ expand.c ---- */

/* Copies to moves, after allocation; drops those that move nothing. */
void mir_expand(struct mir_func *m);
/* Two-address and constant forms of multiply-add. */
void mir_shrink(struct mir_func *m);

#endif
