/*
 * verify_step - one instruction under way, for the files that compute the
 * values it leaves behind.
 *
 * verify_step.c   operands, masks, memory, and what is opaque
 * verify_arith.c  arithmetic that addresses are made of
 */
#ifndef T0_ISA_VERIFY_STEP_H
#define T0_ISA_VERIFY_STEP_H

#include "isa/verify/verify_int.h"

enum { MAX_WRITES = 80, OP_PAIR = 0xffff, OP_SCC = 0x10000 };

struct step {
	struct verifier *v;
	struct values *val;
	struct vstate *s;
	const struct cfg_insn *x;
	int insn;
	/* One half of a VOPD, or the whole instruction. */
	enum isa_op op;
	const struct isa_operand *o;
	int n;
	struct {
		uint16_t reg;
		uint32_t value;
	} w[MAX_WRITES];
	int n_w;
};

/* ----------------------------------------------------- verify_step.c ---- */

/* A register will hold `value`; all are written when all were read. */
void step_put(struct step *p, int reg, uint32_t value);
/* The number of an operand's first register in struct vstate. */
int step_reg(const struct isa_operand *o);
/* The low dword of source `i`, and of the destination as it was. */
uint32_t step_src(struct step *p, int i);
uint32_t step_old(struct step *p);
/* VF_ flags of a value. */
int step_flags(struct step *p, uint32_t x);
/* An opaque value of two. */
uint32_t step_pair(struct step *p, uint32_t a, uint32_t b);
/* A value that stands for all that the instruction depends on. */
uint32_t step_chain(struct step *p);

/* ---------------------------------------------------- verify_arith.c ---- */

uint32_t step_product(struct step *p, uint32_t a, uint32_t b);
/* The 32-bit result where it stays linear; 0 if the row is none of these. */
uint32_t step_linear(struct step *p);
/* SCC of an addition, and the addition that reads it. */
void step_carry(struct step *p);
bool step_addc(struct step *p);

#endif
