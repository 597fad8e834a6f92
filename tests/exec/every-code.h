/*
 * every-code - encodings and modifiers of random vector instructions.
 */
#ifndef T0_TESTS_EVERY_CODE_H
#define T0_TESTS_EVERY_CODE_H

#include "tests/exec/every-lane.h"

/* -------------------------------------------------------- instructions ---- */

enum encoding { SHORT, LONG, ENCODINGS };

/* Encodings of a row: its own format, and VOP3 if it has that, too. */
static inline bool has_encoding(const struct isa_op_info *op, enum encoding e)
{
	return e == SHORT || op->flags & ISA_E64;
}

/* Bits of op_sel that choose a half: the destination's, single sources'. */
static inline unsigned halves(const struct isa_op_info *op)
{
	unsigned bits = 8;

	for (int i = 0, k = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot >= ISA_SLOT_S0 &&
		    op->opnd[i].slot <= ISA_SLOT_S2S) {
			if (isa_type_info(op->opnd[i].type)->count == 1)
				bits |= 1u << k;
			k++;
		}
	return bits;
}

/* What the row's modifier flags allow, some of the time. */
static inline void modifiers(struct isa_inst *in, const struct isa_op_info *op,
		      unsigned flags)
{
	const bool floats = isa_type_info(op->opnd[0].type)->kind == 'F';
	unsigned mask = op->flags & ISA_MOD2 ? 7 :
			op->flags & ISA_MOD1 ? 3 :
			op->flags & ISA_MOD0 ? 1 :
					       0;

	if (op->flags & ISA_RD)
		mask &= 3;
	if (chance(40)) {
		in->f[ISA_F_NEG] = rnd() & mask;
		in->f[ISA_F_ABS] = rnd() & mask;
	}
	if (op->flags & ISA_CLAMP && (floats || flags & INTCLAMP))
		in->f[ISA_F_CLAMP] = chance(30);
	if (op->flags & ISA_OMOD && floats && chance(30))
		in->f[ISA_F_OMOD] = rnd() & 3;
	if (op->flags & ISA_OPSEL && chance(50))
		in->f[ISA_F_OPSEL] = rnd() & halves(op);
}

/* Halves and signs of packed math; of mixed math, halves and magnitudes. */
static inline void packed_modifiers(struct isa_inst *in, const struct isa_op_info *op,
			     unsigned flags)
{
	const struct isa_type_info *t = isa_type_info(op->opnd[1].type);
	bool any = chance(50), three = op->n_opnd == 4;

	in->f[ISA_F_OPSEL_HI] = 3;
	in->f[ISA_F_OPSEL_HI2] = 1;
	if (flags & INTCLAMP || isa_type_info(op->opnd[0].type)->kind == 'F')
		in->f[ISA_F_CLAMP] = chance(25) && op->flags & ISA_CLAMP;
	if (!any)
		return;
	if (flags & MIX || t->bits == 16) {
		in->f[ISA_F_OPSEL] = rnd() & (three ? 7 : 3);
		in->f[ISA_F_OPSEL_HI] = rnd() & 3;
		in->f[ISA_F_OPSEL_HI2] = rnd() & 1;
		if (flags & DOT) /* the third source is one float */
			in->f[ISA_F_OPSEL] &= 3, in->f[ISA_F_OPSEL_HI2] = 1;
	}
	if (t->kind == 'F' || t->kind == 'G' || flags & MIX) {
		in->f[ISA_F_NEG] = rnd() & (three && !(flags & DOT) ? 7 : 3);
		in->f[ISA_F_NEG_HI] = rnd() & (three && !(flags & DOT) ? 7 : 3);
	} else if (op->opnd[1].type == ISA_T_V4I8 ||
		   op->opnd[1].type == ISA_T_V8I4) {
		in->f[ISA_F_NEG] = rnd() & 3;
	}
}

/* Those that are no function of one lane: tests/exec/every-cross. */
static inline bool is_cross(int op)
{
	switch (op) {
#define X(name) case ISA_##name:
#include "tests/ref/cross.def"
		return true;
	}
	return false;
}

#endif
