/*
 * interp_int - what the files of the reference interpreter share.
 *
 * A wave runs one block at a time for the lanes that are there.  Which block is
 * next: the first in layout order that any lane waits at.  As the layout is a
 * reverse postorder with adjacent loops (ssa_analyse()), lanes of both sides of
 * a branch meet at its merge, and those that left a loop wait behind it.
 */
#ifndef T0_TESTS_INTERP_INT_H
#define T0_TESTS_INTERP_INT_H

#include "tests/ref/interp.h"

enum { INTERP_LANES = 64, INTERP_DONE = INT32_MAX };

/* One grid that runs; the parts of a workgroup are of the current one. */
struct interp {
	struct ssa_func *f;
	const struct ssa_run *run;
	struct err *e;
	struct ssa_block **block; /* [n_blocks], by rpo */
	uint32_t *slot;		  /* [n_insts], by id: its first word */
	uint32_t n_words;
	uint32_t group[3];
	uint8_t *lds;
	uint32_t lds_bytes;
	uint32_t *lds_base; /* [n_lds] */
	uint64_t steps;
	size_t last_range;
	uint64_t *edge; /* arguments on their way, [n_words][INTERP_LANES] */
};

struct interp_wave {
	struct interp *m;
	uint32_t id;
	uint64_t *v; /* values, [n_words][INTERP_LANES] */
	uint32_t at[INTERP_LANES]; /* rpo of the block that each lane is at */
	struct ssa_inst *pc; /* NULL: choose a block */
	uint64_t mask;	     /* lanes that execute pc */
	bool waiting;	     /* at the barrier or group_reduce pc */
};

/* For each lane in the mask. */
#define INTERP_EACH(lane, mask)                                         \
	for (uint64_t each_left = (mask), lane = 0;                     \
	     each_left && (lane = (uint64_t)__builtin_ctzll(each_left), \
			  true);                                        \
	     each_left &= each_left - 1)

/* Word `k` of value i in a lane; elements lie as in memory. */
static inline uint64_t *interp_word(const struct interp_wave *w,
				    const struct ssa_inst *i, uint32_t k,
				    uint64_t lane)
{
	return &w->v[(uint64_t)(w->m->slot[i->id] + k) * INTERP_LANES + lane];
}
static inline uint64_t interp_arg(const struct interp_wave *w,
				  const struct ssa_inst *i, uint32_t k,
				  uint64_t lane)
{
	return *interp_word(w, i->arg[k], 0, lane);
}
static inline uint32_t interp_words(struct ssa_type t)
{
	return (ssa_type_bytes(t) + 7) / 8;
}

/* -------------------------------------------------------- interp.c ---- */

/* ERR_DEVICE at this instruction.  Returns false. */
bool interp_fail(const struct interp_wave *w, const struct ssa_inst *i,
		 uint64_t lane, const char *fmt, ...) T0_PRINTF(4, 5);

/* ----------------------------------------------------- interp_mem.c ---- */

/* load, store, atomic, cmpxchg */
bool interp_access(struct interp_wave *w, const struct ssa_inst *i);
/* The value as bytes, in memory order. */
void interp_get(const struct interp_wave *w, const struct ssa_inst *i,
		uint64_t lane, void *bytes);
void interp_put(struct interp_wave *w, const struct ssa_inst *i, uint64_t lane,
		const void *bytes);
void interp_printf(struct interp_wave *w, const struct ssa_inst *i);

/* ---------------------------------------------------- interp_lane.c ---- */

/* Operations between lanes. */
void interp_lanes(struct interp_wave *w, const struct ssa_inst *i);
void interp_wmma(struct interp_wave *w, const struct ssa_inst *i);
/* group_reduce, once all waves wait at it. */
void interp_group_reduce(struct interp_wave *wave, uint32_t n_waves,
			 const struct ssa_inst *i);

#endif
