/*
 * backend - machine code from MIR: the passes in the order in which the driver
 * runs them.
 *
 * Before allocation: mir_schedule(), mir_coalesce(), mir_allocate() (which
 * spills).  After it operands name hardware registers, and the rest follows:
 * pseudo operations become moves, branches and blocks find their places, wait
 * counts, hazards and hints come last, since they depend on the final order.
 * mir_encode() ends it; nothing may be inserted after hazards are resolved but
 * hints, which no correctness depends on, and branches over branches.
 *
 * All passes rewrite the function in place and own nothing of it; what they
 * make is in the function's arena.  They are thread-safe on different
 * functions.
 */
#ifndef T0_COMPILER_BACKEND_H
#define T0_COMPILER_BACKEND_H

#include "compiler/cost/cost.h"
#include "compiler/mir/mir.h"
#include "compiler/ssa/ssa.h"

/* ---------------------------------------------------------- schedule.c ---- */

struct sched_options {
	const struct cost_model *costs;
	uint32_t max_vgprs; /* what a lane may have */
	uint32_t waves;	    /* occupancy to aim at, 0: what the code allows, */
	uint32_t enough;    /* or so many of these; 0: all of them */
	const struct isa_chip *chip;
};
/*
 * List scheduling of each block, top down, by critical path (latencies and
 * pipes from the cost model), so that loads move up and their uses down, within
 * the registers that the wanted occupancy leaves.
 */
void mir_schedule(struct mir_func *m, const struct sched_options *o);

/* ---------------------------------------------------------- coalesce.c ---- */

/* Registers joined by copies and ties become one without interference. */
void mir_coalesce(struct mir_func *m);

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

/* ---------------------------------------------------- expand_pseudos.c ---- */

/* Copies to moves, after allocation; drops those that move nothing. */
void mir_expand_pseudos(struct mir_func *m);
/* Two-address and constant forms of multiply-add. */
void mir_shrink_encoding(struct mir_func *m);

/* ----------------------------------------------------------- backend.c ---- */

/* Removes branches over bodies that cost less than the branch. */
void mir_drop_skips(struct mir_func *m);
/*
 * Where waves are not born with it, says where scratch memory is: s[2:3] and the
 * wave's offset behind the group's ids, s16, as in the descriptor.
 */
void mir_begin_scratch(struct mir_func *m);
/* Gives registers back while the last stores are under way. */
void mir_dealloc_vgprs(struct mir_func *m);

/* --------------------------------------------------- block_placement.c ---- */

/* Fewer and cheaper branches; `rotates`: loops test at their bottom. */
void mir_place_blocks(struct mir_func *m, bool rotates);

/* -------------------------------------------------------- exec_masks.c ---- */

/* Neighbouring masked accesses share the saved mask. */
void mir_merge_exec_masks(struct mir_func *m);

/* -------------------------------------------------------------- vopd.c ---- */

/* Pairs of vector instructions; before waits and hazards. */
void mir_form_vopd(struct mir_func *m);

/* ---------------------------------------------------------- retarget.c ---- */

/* gfx11's instructions, of which all passes before know, become the chip's. */
void mir_retarget(struct mir_func *m);

/* ---------------------------------------------------- insert_waitcnt.c ---- */

/* The fewest waits with which every register is written before its use. */
void mir_insert_waitcnt(struct mir_func *m);

/* ----------------------------------------------------------- hazards.c ---- */

/* Waits where gfx11 does not interlock. */
void mir_resolve_hazards(struct mir_func *m);

/* -------------------------------------------------- insert_delay_alu.c ---- */

void mir_insert_clauses(struct mir_func *m);
/* Distances by the latencies of its vector, transcendental and scalar ALU. */
void mir_insert_delay_alu(struct mir_func *m, const struct cost_model *costs);

/* ------------------------------------------------------- long_branch.c ---- */

/*
 * Leads branches that are too long over hops, by the addresses of the last
 * encoding, which is out of date where it returns true.
 */
bool mir_insert_hops(struct mir_func *m);

/* -------------------------------------------------------------- emit.c ---- */

/* Machine code, appended; sets addresses. */
bool mir_encode(struct mir_func *m, const char *chip, struct buf *code,
		struct err *e);

/* What the code object says of it, besides its code. */
struct cc_kernel {
	const struct ssa_func *f;
	struct mir_func *m;
	const char *chip;
	const char *costs; /* cost_origins() */
	bool wgp, hidden;
	uint32_t groups; /* bit d: the group id of dimension d is used */
	uint32_t hidden_offset; /* of block counts in the arguments */
};
bool cc_object_build(const struct cc_kernel *k, const struct buf *code,
		     struct buf *out, struct err *e);
/* The same as text that `t0-isa asm` accepts, appended. */
void cc_assembly_build(const struct cc_kernel *k, struct buf *out);

#endif
