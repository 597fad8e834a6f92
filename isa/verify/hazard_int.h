/*
 * hazard_int - walks back from an instruction over all paths, which the checks
 * of hazards share.
 */
#ifndef T0_ISA_HAZARD_INT_H
#define T0_ISA_HAZARD_INT_H

#include "isa/verify/verify_int.h"

/* Of one instruction on the way: go on, the producer, nothing before counts. */
enum answer { ON, FOUND, CLEAR };

struct regs { /* VGPRs, as operands */
	uint16_t reg[ISA_MAX_OPND], count[ISA_MAX_OPND];
	int n;
};

/* From an instruction back. */
struct walk {
	struct verifier *v;
	const struct cfg_insn *at;
	struct regs src;
	int reg, count; /* SGPRs or the VGPR in question */
	int found;	/* the producer */
	uint8_t *seen;
};

/* State of a backward walk along one path. */
struct trail {
	int valus, trans, stage, exec_at;
	int def_at[ISA_MAX_OPND]; /* VALUs back to the writer, -1 */
	bool writer;
};

typedef enum answer look(struct walk *w, struct trail *t, int insn);

/* ---------------------------------------------------- verify_hazard.c ---- */

/* Is there a producer on some path to `insn`?  w->found says which. */
bool hazard_is_found(struct walk *w, look *fn, int insn);
void hazard_report(struct walk *w, enum verify_rule rule, int insn,
		   const char *what);

static inline bool hazard_exists(const struct verifier *v, enum isa_hazard h)
{
	return isa_gen_info(v->in->target.gen)->hazards & h;
}

enum { HAZARD_VA_VDST = 0xf000, HAZARD_VM_VSRC = 0x1c, HAZARD_SA_SDST = 1 };
/* s_waitcnt_depctr: all bits of `field` are 0. */
static inline bool hazard_waits_for(const struct cfg_insn *x, uint32_t field)
{
	return (x->in.op == ISA_s_waitcnt_depctr ||
		x->in.op == ISA_s_wait_alu) &&
	       !(x->in.f[ISA_F_SIMM16] & field);
}

/* -------------------------------------------------- verify_hazard10.c ---- */

/* What gfx10_1 does not interlock. */
void hazard_check_gfx10(struct walk *w, int insn);

#endif
