/*
 * kfd/soft/exec/fast/microop.h - straight code in its fast form.
 *
 * Private to kfd/soft/.  An instruction that was executed often becomes the
 * head of a stretch: the instructions that followed it so far, up to the next
 * branch, as an array of steps.  A step is one cache line and knows where its
 * operands are; each ends by calling the next one (a jump, when optimised), and
 * the last one returns.  Nothing else happens between two steps: the registers
 * that are allocated, MODE and the number of instructions that may still run
 * are compared once for the whole stretch (soft_stretch_fits()).
 *
 * Steps give the same bits as the handlers of exec.h.  One that cannot, such as
 * a sum with a NaN, calls the handler instead and goes on.  Whatever may fault
 * or look at the wave's PC sets it first (soft_step_checked); the stretch then
 * stops at that instruction.  Instructions that only steer timing have no step.
 *
 * Operands: base[k] + address is a plane of 32 dwords.  base[0] and base[1] are
 * the VGPRs of the wave's halves, base[2] is 0: constants and broadcast SGPRs
 * are planes of the stretch itself.
 */
#ifndef T0_KFD_SOFT_STEP_H
#define T0_KFD_SOFT_STEP_H

#include "kfd/soft/exec/code.h"

#define SOFT_STRETCH_AFTER 16	/* executions before the fast form pays */
#define SOFT_STRETCH_INSTS 256	/* at most, in one stretch */
#define SOFT_STRETCH_FRAGMENTS 16 /* of matrices, in floats */
#define SOFT_STEP_ABSOLUTE 2	/* base of planes that are no VGPRs */
#define SOFT_STEP_NO_MASK 0xff

struct soft_step;
typedef void soft_step_fn(struct soft_wave *w, const struct soft_step *s,
			  const uintptr_t *base);

/* What VOPD instructions have two of. */
enum soft_dual { SOFT_PART_ALL, SOFT_PART_X, SOFT_PART_Y };

struct soft_step {
	soft_step_fn *fn;
	uintptr_t a, b, c, d;	  /* addresses of planes, from their bases */
	uint8_t ka, kb, kc;	  /* bases; d is of base[half] */
	uint8_t half;
	uint8_t mask_in, mask_out; /* scalar registers of this half's lanes */
	uint8_t part;		  /* enum soft_dual */
	uint8_t mods[3];	  /* enum isa_mod of a, b, c */
	uint16_t left;		  /* instructions of the stretch after this */
	uint32_t imm;		  /* what the step's function needs besides */
	const struct soft_uop *u; /* the whole instruction, in its node */
};

struct soft_stretch {
	struct soft_stretch *older;
	struct soft_node *last;
	uint64_t n_insts;
	uint32_t mode; /* MODE[7:0] for which it was made */
	int n_vgprs;
	uint8_t *plane; /* of constants and the like */
	struct soft_step *step;
};

static inline bool soft_stretch_fits(const struct soft_stretch *t,
				     const struct soft_wave *w,
				     uint64_t max_insts)
{
	return t && t->n_insts <= max_insts && t->n_vgprs <= w->n_vgprs &&
	       t->mode == (w->mode & 0xff);
}

#define SOFT_NEXT(w, s, base) (s)[1].fn((w), (s) + 1, (base))

/* ------------------------------------------------------------ step.c ---- */

/* Make the stretch from node n on, unless nothing would be gained. */
void soft_stretch_make(struct soft_code_cache *c, struct soft_node *n,
		       uint32_t mode);
/* Run it; returns the node of its last instruction. */
struct soft_node *soft_stretch_go(const struct soft_stretch *t,
				  struct soft_wave *w,
				  struct soft_code_cache *c);
void soft_stretches_free(struct soft_code_cache *c);

/* The stretch being made. */
struct soft_maker {
	struct buf steps;
	uint8_t *plane;	    /* [max_planes][32] dwords */
	int n_planes, max_planes;
	struct {
		uint32_t lo, hi; /* value, or register */
		int dwords;
		bool scalar, valid;
		uint8_t *plane;
	} known[64];
	int n_known;
	struct {
		uint32_t op;  /* the WMMA that tells the type */
		int reg;      /* the first of its 8 VGPRs */
		bool valid;   /* the plane has what the registers have */
		uint8_t *plane; /* [16][16] floats: 8 planes */
	} fragment[SOFT_STRETCH_FRAGMENTS];
	int n_fragments;
	uint32_t mode; /* MODE[7:0] */
	bool wide;     /* wave64 */
	uint64_t n_insts;
};

struct soft_step *soft_maker_add(struct soft_maker *m, soft_step_fn *fn,
				 const struct soft_uop *u);
/* `n` planes that no other step uses, NULL: no more room. */
uint8_t *soft_maker_planes(struct soft_maker *m, int n);

/* Calls the handler; the stretch goes on if the wave may. */
soft_step_fn soft_step_checked;

/* ------------------------------------------------------- step_wmma.c ---- */

/*
 * Add the steps of a WMMA instruction; false: there are none.  A fragment that
 * several of them share becomes floats once, as long as nothing writes its
 * registers: soft_maker_written() is told of every other instruction.
 */
bool soft_step_wmma(struct soft_maker *m, const struct soft_uop *u);
void soft_maker_written(struct soft_maker *m, const struct soft_uop *u);

/* ------------------------------------------------------ step_cross.c ---- */

/* Add the steps of an instruction that moves lanes at will; false: none. */
bool soft_step_cross(struct soft_maker *m, const struct soft_uop *u);

/* ------------------------------------------------------- step_valu.c ---- */

/* Add the steps of a vector instruction; false: there are none, add nothing. */
bool soft_step_valu(struct soft_maker *m, const struct soft_uop *u);

#endif
