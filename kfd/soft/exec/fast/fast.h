/*
 * kfd/soft/exec/fast/fast.h - the fast path: superblocks of microops.
 *
 * Private to kfd/soft/exec, and the only header of fast/ that files outside of
 * it include: what wave.c runs, and what a microop is for those who make them.
 *
 * The words are those of binary translation:
 *
 *   microop     a host function and its operands, all resolved: one cache line.
 *               An instruction becomes one or a few.  Each ends by calling the
 *               next one (a jump, when optimised); the last one returns.
 *   superblock  straight code as an array of microops: it is entered at the top
 *               only, runs to the first branch, and may be left early where an
 *               instruction faults.  It passes labels that others jump to,
 *               whose code is then in several superblocks: that is the
 *               difference from a basic block.  It never follows a branch that
 *               is taken, which a trace would; and a trace, in this tree, is a
 *               file (isa/trace/trace.h).
 *   translator  makes superblocks (translate.h).  An instruction that was
 *               entered SOFT_HOT_AFTER times, by a branch or where a wave goes
 *               on, becomes the top of one, made of the instructions that
 *               followed it so far.
 *   vreg        one row of 32 dwords, a lane each: a half of a vector register
 *               (exec.h), or a temporary of the superblock.
 *
 * Where the host has AVX2, vector microops that follow each other are also made
 * into one function of host code (native.h).
 *
 * Nothing but microops happens inside of a superblock: allocated registers,
 * MODE and the number of instructions that may still run are compared once,
 * before it starts (soft_superblock_fits()).
 *
 * Microops give the same bits as the handlers of exec.h.  One that cannot, such
 * as a sum with a NaN, calls the handler instead and goes on.  Whatever may
 * fault or look at the wave's PC sets it first (soft_microop_checked); the
 * superblock is then left at that instruction.  Instructions that only steer
 * timing have no microop.
 */
#ifndef T0_KFD_SOFT_FAST_H
#define T0_KFD_SOFT_FAST_H

#include "kfd/soft/exec/exec.h"

#define SOFT_HOT_AFTER	      16  /* executions before translation pays */
#define SOFT_SUPERBLOCK_INSTS 256 /* at most, in one superblock */
#define SOFT_BASE_ABSOLUTE    2	  /* base of vregs that are no VGPRs */
#define SOFT_NO_MASK	      0xff

struct soft_code_cache;
struct soft_node;
struct soft_microop;
typedef void soft_microop_fn(struct soft_wave *w, const struct soft_microop *m,
			     const uintptr_t *base);

/* What VOPD instructions have two of. */
enum soft_dual { SOFT_PART_ALL, SOFT_PART_X, SOFT_PART_Y };

/*
 * Operands are vregs at base[k] + address.  base[0] and base[1] are the VGPRs
 * of the wave's halves, base[2] is 0: for temporaries, which hold constants and
 * broadcast SGPRs.
 */
struct soft_microop {
	soft_microop_fn *fn;
	uintptr_t a, b, c, d; /* addresses of vregs, from their bases */
	uint8_t ka, kb, kc;   /* bases; d is of base[half] */
	uint8_t half;
	uint8_t mask_in, mask_out; /* scalar registers of this half's lanes */
	uint8_t part;		   /* enum soft_dual */
	uint8_t mods[3];	   /* enum isa_mod of a, b, c */
	uint16_t left; /* instructions of the superblock after this */
	uint32_t imm;  /* what the function needs besides */
	const struct soft_uop *u; /* the whole instruction, in its node */
};

/* How a microop ends. */
#define SOFT_NEXT(w, m, base) (m)[1].fn((w), (m) + 1, (base))

struct soft_superblock {
	struct soft_superblock *older;
	struct soft_node *last;
	uint64_t n_insts;
	uint32_t mode; /* MODE[7:0] for which it was made */
	int n_vgprs;
	uint8_t *temp; /* vregs of constants and the like */
	struct soft_microop *microop;
};

static inline bool soft_superblock_fits(const struct soft_superblock *b,
					const struct soft_wave *w,
					uint64_t max_insts)
{
	return b && b->n_insts <= max_insts && b->n_vgprs <= w->n_vgprs &&
	       b->mode == (w->mode & 0xff);
}

/* ------------------------------------------------------ superblock.c ---- */

/* Make the superblock from node n on, unless nothing would be gained. */
void soft_superblock_translate(struct soft_code_cache *c, struct soft_node *n,
			       uint32_t mode);
/* Run it; returns the node of its last instruction. */
struct soft_node *soft_superblock_run(const struct soft_superblock *b,
				      struct soft_wave *w,
				      struct soft_code_cache *c);
void soft_superblocks_free(struct soft_code_cache *c);

/* --------------------------------------------------- native_pattern.c ---- */

/* Does it move lanes to or from where a VGPR says? */
bool soft_pattern_is_for(const struct soft_uop *u);
/* Of such a one, before its handler runs: where its lanes are. */
void soft_pattern_note(const struct soft_wave *w, struct soft_code_cache *c,
		       struct soft_node *n);
/* What nodes know of lanes: there must be none left that does. */
void soft_patterns_free(struct soft_code_cache *c);

/* -------------------------------------------------- translate_valu.c ---- */

/* Run the vector instruction of a microop by its handler. */
void soft_microop_fall_back(struct soft_wave *w, const struct soft_microop *m);

#endif
