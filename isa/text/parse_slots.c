/*
 * isa/text/parse_slots.c - operands to fields, the inverse of
 * isa/code/decode.c.
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

/* ----------------------------------------------------------- registers ---- */

static bool scalar_register(struct parser *ps, const struct arg *arg,
			    int dwords, uint32_t *field)
{
	struct arg a;

	isa_lex_tuple(ps, arg, &a);
	if (a.kind != ARG_SGPR)
		return isa_refuse(ps, 2, "wanted a scalar register");
	if (a.neg || a.abs)
		return isa_refuse(ps, 3, "neg and abs not allowed here");
	if (!isa_width_ok(ps, &a, dwords))
		return false;
	*field = a.reg;
	return true;
}

static bool put_vgpr_field(struct parser *ps, const struct arg *a, int dwords,
			   enum isa_type type, enum isa_field field)
{
	uint32_t v;

	return isa_put_vgpr(ps, a, dwords, type, &v) &&
	       isa_put_field(ps, field, v);
}

static bool put_scalar_field(struct parser *ps, const struct arg *a, int dwords,
			     enum isa_field field)
{
	uint32_t v;

	if (!scalar_register(ps, a, dwords, &v))
		return false;
	/* VDST is a VGPR elsewhere, so that isa_encode() leaves it alone. */
	if (field == ISA_F_VDST && ps->in->m0_is_124)
		v = isa_swap_m0(v);
	return isa_put_field(ps, field, v);
}

/* ------------------------------------------------------- destinations ---- */

static bool put_destination(struct parser *ps, const struct arg *a,
			    const struct isa_operand_info *slot)
{
	struct isa_inst *in = ps->in;
	int n = isa_want_dwords(ps, slot);

	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPK)
		return put_scalar_field(ps, a, n, ISA_F_SDST);
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF)
		return put_vgpr_field(ps, a, n + (int)in->f[ISA_F_TFE],
				      ISA_T_NONE, ISA_F_VDATA);
	if (a->half == 'h' &&
	    (in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VINTERP))
		in->f[ISA_F_OPSEL] |= 8;
	return put_vgpr_field(ps, a, n, slot->type, ISA_F_VDST);
}

/* VCC by name in the 32-bit encodings, any scalar register in VOP3. */
static bool put_mask(struct parser *ps, const struct arg *a,
		     enum isa_field field)
{
	struct isa_inst *in = ps->in;
	uint32_t v;

	if (field == ISA_F_VDST && !isa_fmt_is_e32(in->fmt))
		return put_scalar_field(ps, a, ps->t->wave / 32, field);
	if (!scalar_register(ps, a, ps->t->wave / 32, &v))
		return false;
	if (in->form == ISA_FORM_SDWA && field == ISA_F_VDST) {
		if (v != ISA_R_VCC_LO)
			in->extra[0] |= 0x8000 | isa_swap_m0(v) << 8;
		return true;
	}
	if (isa_fmt_is_e32(ps->in->fmt))
		return v == ISA_R_VCC_LO ||
		       isa_refuse(ps, 1, "this encoding wants vcc");
	return isa_put_field(ps, field, v);
}

/* ------------------------------------------------------------- memory ---- */

static bool put_vaddr(struct parser *ps, const struct arg *a)
{
	struct isa_inst *in = ps->in;
	struct arg tuple;
	int n = 1;

	isa_lex_tuple(ps, a, &tuple);
	ps->vaddr_n = tuple.n;
	switch (in->fmt) {
	case ISA_FMT_FLAT:
		n = 2;
		break;
	case ISA_FMT_GLOBAL:
		/* 64 bits unless a scalar address follows. */
		if (tuple.kind != ARG_VGPR || tuple.n > 2)
			return isa_refuse(ps, 2, "wanted a VGPR address");
		n = tuple.n;
		break;
	case ISA_FMT_SCRATCH:
		ps->vaddr_n = a->kind == ARG_VGPR;
		if (isa_field_width(in->layout, ISA_F_SVE))
			in->f[ISA_F_SVE] = ps->vaddr_n;
		if (a->kind == ARG_OFF)
			return true;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		n = in->f[ISA_F_IDXEN] + in->f[ISA_F_OFFEN];
		if (a->kind == ARG_OFF && !n)
			return true;
		if (!n)
			return isa_refuse(ps, 2,
					  "a buffer address wants idxen "
					  "or offen");
		break;
	default:
		break;
	}
	return put_vgpr_field(ps, a, n, ISA_T_NONE, ISA_F_ADDR);
}

static bool put_saddr(struct parser *ps, const struct arg *a)
{
	struct isa_inst *in = ps->in;
	bool scratch = in->fmt == ISA_FMT_SCRATCH;
	uint32_t v = ISA_R_NULL;

	if (a->kind != ARG_OFF) {
		if (!scalar_register(ps, a, scratch ? 1 : 2, &v))
			return false;
		/* Where an address follows, it would be twice as wide. */
		if (v == ISA_R_NULL && !scratch &&
		    isa_op_has_slot(ps->op, ISA_SLOT_VADDR))
			return isa_refuse(ps, 3, "write off instead of null");
		if (v == ISA_R_EXEC_HI)
			return isa_refuse(ps, 3, "exec_hi not allowed here");
	}
	if (ps->t->gen == ISA_GFX10_1 && scratch && a->kind == ARG_OFF &&
	    !ps->vaddr_n && isa_inst_absent_saddr(in) == ~0u)
		return isa_refuse(ps, 1, "this scratch needs an address");
	if (v == ISA_R_NULL && !ps->vaddr_n)
		v = isa_inst_absent_saddr(in) == ~0u ?
			    v :
			    isa_inst_absent_saddr(in);
	else if (ps->t->gen < ISA_GFX11 && scratch && v != ISA_R_NULL &&
		 ps->vaddr_n)
		return isa_refuse(ps, 3, "this scratch has one address");
	/* vaddr is 64 bits wide exactly when there is no saddr. */
	if (in->fmt == ISA_FMT_GLOBAL &&
	    isa_op_has_slot(ps->op, ISA_SLOT_VADDR) &&
	    (ps->vaddr_n == 2) != (v == ISA_R_NULL))
		return isa_refuse(ps, 3,
				  "a global address is v[n:n+1], off "
				  "or vn, s[n:n+1]");
	return isa_put_field(ps, ISA_F_SADDR, v);
}

static bool put_data(struct parser *ps, const struct arg *a,
		     const struct isa_operand_info *slot)
{
	struct isa_inst *in = ps->in;
	bool buffer = in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF;
	int n = isa_want_dwords(ps, slot);

	return put_vgpr_field(ps, a, buffer ? n + (int)in->f[ISA_F_TFE] : n,
			      ISA_T_NONE, buffer ? ISA_F_VDATA : ISA_F_DATA0);
}

/* "s4", "null" or an immediate; "s4 offset:16" has both. */
static bool put_soff(struct parser *ps, const struct arg *a)
{
	int64_t i = a->i;

	if (a->kind == ARG_SGPR)
		return put_scalar_field(ps, a, 1, ISA_F_SOFFSET);
	if (a->kind == ARG_WORD && !isa_word_value(ps, a, ISA_SYM_VALUE, &i))
		return false;
	if (a->kind != ARG_INT && a->kind != ARG_WORD)
		return isa_refuse(ps, 2, "wanted an offset");
	return isa_put_field(ps, ISA_F_SOFFSET, ISA_R_NULL) &&
	       isa_put_scalar_offset(ps, i);
}

static bool put_soffset(struct parser *ps, const struct arg *a)
{
	static const struct isa_operand_info slot = { 0, ISA_T_B32 };
	uint32_t v;

	if (a->kind == ARG_WORD ||
	    ((a->kind == ARG_FLOAT || a->kind == ARG_INT) &&
	     isa_const_inline(a, ISA_T_B32) < 0))
		return isa_refuse(ps, 3,
				  "wanted a register or inline constant");
	return isa_put_source(ps, a, &slot, false, &v) &&
	       isa_put_field(ps, ISA_F_SOFFSET, v);
}

/* A register tuple whose field counts in tuples. */
bool isa_put_tuple(struct parser *ps, const struct arg *a, int dwords,
		   enum isa_field field, int unit)
{
	uint32_t v;

	if (!scalar_register(ps, a, dwords, &v))
		return false;
	if (v == ISA_R_NULL && unit == 4)
		return isa_refuse(ps, 3, "a resource cannot be null");
	if (v % unit)
		return isa_refuse(ps, 3, "misaligned scalar register tuple");
	return isa_put_field(ps, field, v / unit);
}

/* -------------------------------------------------------------- slots ---- */

static bool put_literal(struct parser *ps, const struct arg *a,
			const struct isa_operand_info *slot)
{
	uint32_t v;

	if (a->kind != ARG_INT && a->kind != ARG_FLOAT && a->kind != ARG_WORD)
		return isa_refuse(ps, 2, "wanted a literal");
	return isa_const_literal(ps, a, slot, &v) && isa_set_literal(ps, v);
}

static bool put_attr(struct parser *ps, const struct arg *a)
{
	const char *p = a->s, *chan;
	int n = -1;

	if (a->kind == ARG_WORD && isa_has_prefix(p, a->len, "attr")) {
		p += 4;
		n = isa_lex_digits(&p);
	}
	/* The field has 6 bits, the hardware 33 attributes. */
	if (n < 0 || n > 32 || a->s + a->len - p != 2 || *p != '.')
		return isa_refuse(ps, 3, "wanted attr0.x to attr32.w");
	chan = strchr("xyzw", p[1]);
	return chan ? isa_put_field(ps, ISA_F_ATTR, n) &&
			       isa_put_field(ps, ISA_F_ATTRCHAN,
					     strlen("xyzw") - strlen(chan)) :
		      isa_refuse(ps, 3, "an attribute's channel is x y z or w");
}

static bool put_memory_slot(struct parser *ps, const struct arg *a,
			    const struct isa_operand_info *slot)
{
	int n = isa_want_dwords(ps, slot);

	switch (slot->slot) {
	case ISA_SLOT_SDATA:
	case ISA_SLOT_SDSRC:
	case ISA_SLOT_SDATAG:
		if (a->reg == ISA_R_NULL && a->kind == ARG_SGPR && n > 2)
			return isa_refuse(ps, 3, "null holds 64 bits at most");
		return put_scalar_field(ps, a, n, ISA_F_SDATA);
	case ISA_SLOT_SDIMM:
		return a->kind == ARG_INT ?
			       isa_put_field(ps, ISA_F_SDATA,
					     ps->in->m0_is_124 ?
						     isa_swap_m0(a->i) :
						     a->i) :
			       isa_refuse(ps, 2, "wanted an immediate");
	case ISA_SLOT_SBASE:
		if (a->reg == ISA_R_NULL && a->kind == ARG_SGPR && n > 2)
			return isa_refuse(ps, 3, "a resource cannot be null");
		return isa_put_tuple(ps, a, n, ISA_F_SBASE, 2);
	case ISA_SLOT_SOFF:
		return put_soff(ps, a);
	case ISA_SLOT_SOFFI:
		return a->kind == ARG_INT ?
			       isa_put_scalar_offset(ps, a->i) :
			       isa_refuse(ps, 2, "wanted an immediate");
	case ISA_SLOT_SOFFR:
		return put_scalar_field(ps, a, 1, ISA_F_SOFFSET);
	case ISA_SLOT_VADDR:
		return put_vaddr(ps, a);
	case ISA_SLOT_DATA:
	case ISA_SLOT_DATA0:
	case ISA_SLOT_DATAG:
		return put_data(ps, a, slot);
	case ISA_SLOT_DATA1:
		return put_vgpr_field(ps, a, n, ISA_T_NONE, ISA_F_DATA1);
	case ISA_SLOT_DG:
		return put_vgpr_field(ps, a, n, ISA_T_NONE, ISA_F_VDST);
	case ISA_SLOT_SADDR:
		return put_saddr(ps, a);
	case ISA_SLOT_SRSRC:
		return isa_put_tuple(ps, a, 4, ISA_F_SRSRC, 4);
	case ISA_SLOT_SOFFSET:
		return put_soffset(ps, a);
	}
	return isa_refuse(ps, 1, "operand not understood");
}

static bool put_slot(struct parser *ps, const struct arg *a,
		     const struct isa_operand_info *slot)
{
	int n = isa_want_dwords(ps, slot);
	bool source = slot->slot >= ISA_SLOT_S0 && slot->slot <= ISA_SLOT_S2I;

	if ((a->neg || a->abs || a->sext) && !source)
		return isa_refuse(ps, 3, "neg, abs and sext not allowed here");
	switch (slot->slot) {
	case ISA_SLOT_D:
		return put_destination(ps, a, slot);
	case ISA_SLOT_DS:
		return put_scalar_field(ps, a, n, ISA_F_VDST);
	case ISA_SLOT_CO:
		return put_mask(ps, a, ISA_F_SDST);
	case ISA_SLOT_CD:
		return put_mask(ps, a, ISA_F_VDST);
	case ISA_SLOT_CI:
		return put_mask(ps, a, ISA_F_SRC2);
	case ISA_SLOT_S0:
	case ISA_SLOT_S1:
	case ISA_SLOT_S2:
		return isa_put_alu_source(ps, a, slot->slot - ISA_SLOT_S0, slot,
					  0);
	case ISA_SLOT_S0V:
	case ISA_SLOT_S1V:
	case ISA_SLOT_S2V:
		return isa_put_alu_source(ps, a, slot->slot - ISA_SLOT_S0V,
					  slot, 'V');
	case ISA_SLOT_S0S:
	case ISA_SLOT_S1S:
	case ISA_SLOT_S2S:
		return isa_put_alu_source(ps, a, slot->slot - ISA_SLOT_S0S,
					  slot, 'S');
	case ISA_SLOT_S2I:
		return isa_put_alu_source(ps, a, 2, slot, 'I');
	case ISA_SLOT_K:
		return put_literal(ps, a, slot);
	case ISA_SLOT_DIN:
		return put_scalar_field(ps, a, n, ISA_F_SDST);
	case ISA_SLOT_IMM:
	case ISA_SLOT_REL:
	case ISA_SLOT_MSG:
	case ISA_SLOT_HWREG:
		return isa_put_imm(ps, a, slot->slot);
	case ISA_SLOT_ATTR:
		return put_attr(ps, a);
	}
	return put_memory_slot(ps, a, slot);
}

/* Slots without an operand in the text: modifiers, or absent by encoding. */
static bool slot_is_silent(const struct parser *ps, int slot)
{
	switch (slot) {
	case ISA_SLOT_OFF2:
	case ISA_SLOT_OFF12:
	case ISA_SLOT_OFF13:
	case ISA_SLOT_OFF16:
	case ISA_SLOT_SWIZZLE:
	case ISA_SLOT_FORMAT:
		return true;
	case ISA_SLOT_DG:
		return !ps->in->f[ISA_F_GLC];
	case ISA_SLOT_SADDR:
		return ps->in->fmt == ISA_FMT_FLAT;
	}
	return false;
}

/*
 * Operands that text may leave out: the number of s_endpgm, the offset of
 * scalar loads, and VCC where the 32-bit encoding has no other.
 */
static bool slot_is_optional(const struct parser *ps, int i, int left)
{
	int slot = ps->op->opnd[i].slot;

	if (ps->in->op == ISA_s_endpgm)
		return left == 0;
	if (slot == ISA_SLOT_SOFF)
		return left == 0 && !ps->in->f[ISA_F_OFFSET];
	if (!isa_fmt_is_e32(ps->in->fmt))
		return false;
	if (slot == ISA_SLOT_CD)
		return left == ps->op->n_opnd - 1;
	/* Carries are written both or not at all. */
	if (slot == ISA_SLOT_CO ||
	    (slot == ISA_SLOT_CI && isa_op_has_slot(ps->op, ISA_SLOT_CO)))
		return ps->n_args == ps->op->n_opnd - 2;
	return slot == ISA_SLOT_CI && left == 0;
}

bool isa_put_operands(struct parser *ps)
{
	const struct isa_op_info *op = ps->op;
	int at = 0;

	if (op->n_opnd && op->opnd[0].slot == ISA_SLOT_IMAGE)
		return isa_put_image(ps);
	if (op->fmt == ISA_FMT_EXP)
		return isa_put_export(ps);
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *slot = &op->opnd[i];

		if (slot_is_silent(ps, slot->slot) ||
		    slot_is_optional(ps, i, ps->n_args - at))
			continue;
		if (at >= ps->n_args)
			return isa_refuse(ps, 2, "too few operands");
		if (!put_slot(ps, &ps->arg[at], slot))
			return false;
		at++;
	}
	return at == ps->n_args || isa_refuse(ps, 2, "too many operands");
}
