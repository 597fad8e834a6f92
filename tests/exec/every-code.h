/*
 * every-code - encodings and modifiers of random vector instructions.
 */
#ifndef T0_TESTS_EVERY_CODE_H
#define T0_TESTS_EVERY_CODE_H

#include "tests/exec/every.h"
#include "tests/ref/vector.h"

/* -------------------------------------------------------- instructions ---- */

enum {
	WARM = 20,  /* runs after which the fast form exists */
	SPARE = 20, /* SGPRs of mask results, and of other operands */
	S_SOURCE = 30,
	S_MASK = 40,
};

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
static inline void packed_modifiers(struct isa_inst *in,
				    const struct isa_op_info *op,
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

static inline bool is_short(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP1 || in->fmt == ISA_FMT_VOP2 ||
	       in->fmt == ISA_FMT_VOPC;
}

static inline void any_modifiers(struct isa_inst *in,
				 const struct isa_op_info *op, unsigned flags)
{
	if (op->fmt == ISA_FMT_VOP3P)
		packed_modifiers(in, op, flags);
	else if (!is_short(in))
		modifiers(in, op, flags);
}

/* ------------------------------------------------------------ encoding ---- */

/* Which of SRC0 to SRC2 an operand is, -1: none. */
static inline int source_number(const struct isa_operand_info *o)
{
	if (o->slot == ISA_SLOT_S2I)
		return 2;
	if (o->slot < ISA_SLOT_S0 || o->slot > ISA_SLOT_S2S)
		return -1;
	return (o->slot - ISA_SLOT_S0) % 3;
}

static inline enum isa_fmt format_in(const struct isa_op_info *op,
				     enum encoding e)
{
	if (e == SHORT)
		return (enum isa_fmt)op->fmt;
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_CO)
			return ISA_FMT_VOP3SD;
	return ISA_FMT_VOP3;
}

/* The instruction with VGPRs for sources, as far as it takes them. */
static inline struct isa_inst vector_inst(enum isa_op number_of,
					  enum encoding e)
{
	const struct isa_op_info *op = isa_op_info(number_of);
	struct isa_inst in = { .op = (uint16_t)number_of,
			       .fmt = (uint8_t)format_in(op, e) };

	in.f[ISA_F_OP] = (uint32_t)isa_opcode(ISA_GFX11, number_of, e == LONG);
	in.f[ISA_F_VDST] = (uint32_t)(rnd() % 24 * 2);
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *o = &op->opnd[i];

		if (o->slot == ISA_SLOT_CD || o->slot == ISA_SLOT_DS)
			in.f[ISA_F_VDST] = SPARE;
		else if (o->slot == ISA_SLOT_CO)
			in.f[ISA_F_SDST] = SPARE;
		else if (o->slot == ISA_SLOT_CI)
			in.f[ISA_F_SRC2] = S_MASK;
		else if (o->slot == ISA_SLOT_K)
			in.has_literal = true,
			in.literal = (uint32_t)value_of(isa_type_info(o->type));
		else if (o->slot >= ISA_SLOT_S0S && o->slot <= ISA_SLOT_S2S)
			in.f[ISA_F_SRC0 + source_number(o)] = S_SOURCE;
		else if (source_number(o) >= 0)
			in.f[ISA_F_SRC0 + source_number(o)] =
				256 + (uint32_t)(rnd() % 24 * 2);
	}
	if (is_short(&in))
		in.f[ISA_F_VSRC1] = in.f[ISA_F_SRC1] & 255;
	/* The second form of compares writes EXEC and names no register. */
	if (op->flags & ISA_WEXEC && !is_short(&in))
		in.f[ISA_F_VDST] = ISA_R_EXEC_LO;
	return in;
}

/* False: it does not encode so. */
static inline bool encode_decode(const struct isa_inst *in, int wave,
				 struct isa_inst *out, uint8_t *code)
{
	static const struct isa_target targets[] = { { ISA_GFX11, 32, false },
						     { ISA_GFX11, 64, false } };
	int size;

	memset(code, 0, ISA_MAX_SIZE_BYTES);
	size = isa_encode(in, code);
	return size &&
	       !isa_decode(&targets[wave == 64], code, (size_t)size, out);
}

static inline uint32_t random_mode(unsigned flags)
{
	uint32_t mode = 0xf0;

	if (chance(50))
		mode |= SOFT_MODE_IEEE;
	if (chance(50))
		mode |= SOFT_MODE_DX10_CLAMP;
	if (chance(20))
		mode |= SOFT_MODE_FP16_OVFL;
	if (chance(30) && flags & (ARITH | MIX | TRANS))
		mode |= rnd() & 15;
	if (chance(30) && flags & (ARITH | MIX | TRANS))
		mode &= 0xffffff0f | (uint32_t)rnd();
	return mode;
}

/* ---------------------------------------------------------------- rows ---- */

static inline bool is_vector(const struct isa_op_info *op)
{
	return isa_fmt_is_valu(op->fmt) && op->fmt != ISA_FMT_VOPD &&
	       op->opcode[ISA_GFX11] >= 0 &&
	       (op->fmt == ISA_FMT_VINTERP || !(op->flags & ISA_GFX));
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
