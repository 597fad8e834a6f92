/*
 * isa/text/parse_source.c - registers and constants to the source fields of
 * arithmetic, with their modifiers.
 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

static bool is_half(enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	return t->bits == 16 && t->count == 1;
}

/*
 * "v1.h" in the 32-bit encodings: bit 7 of the register field, so that 16-bit
 * operands reach v127 only.
 */
static bool vgpr_field(struct parser *ps, const struct arg *a,
		       enum isa_type type, uint32_t *field)
{
	bool e32 = isa_fmt_is_e32(ps->in->fmt), half = is_half(type);

	if (a->half && !half)
		return isa_refuse(ps, 3, "this operand is a whole register");
	if (ps->t->gen < ISA_GFX11) {
		*field = a->reg;
		return !a->half || isa_refuse(ps, 3, "registers have no halves "
						     "in this generation");
	}
	if (e32 && half && a->reg > 127)
		return isa_refuse(ps, 1,
				  "16-bit operands above v127 want VOP3");
	*field = a->reg | (e32 && a->half == 'h' ? 0x80u : 0);
	return true;
}

bool isa_width_ok(struct parser *ps, const struct arg *a, int want)
{
	unsigned align = want >= 3 ? 4 : want;

	if (a->reg == ISA_R_NULL && a->kind == ARG_SGPR)
		return true;
	if (a->n != want)
		return isa_refuse(ps, 2, "wrong register width");
	if (a->kind == ARG_SGPR && want > 1 &&
	    (a->reg - (a->reg >= ISA_R_TTMP0 ? ISA_R_TTMP0 : 0)) % align &&
	    a->reg != ISA_R_VCC_LO && a->reg != ISA_R_EXEC_LO)
		return isa_refuse(ps, 3, "misaligned scalar register tuple");
	return true;
}

/* ------------------------------------------------------------ sources ---- */

/* Integers are the high half of a 64-bit float, and inline if that is. */
static int inline_high_half(const struct arg *a, enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	if (a->kind != ARG_INT || t->bits != 64 || t->kind != 'F' ||
	    a->i < INT32_MIN || a->i > (int64_t)UINT32_MAX)
		return -1;
	for (int f = 240; f <= 248; f++)
		if (isa_inline_value(f, ISA_T_F64) == (uint64_t)a->i << 32)
			return f;
	return -1;
}

static bool constant_field(struct parser *ps, const struct arg *a,
			   const struct isa_operand_info *slot, uint32_t *field)
{
	int f = a->kind == ARG_WORD ? -1 : isa_const_inline(a, slot->type);
	struct arg number = *a;
	uint32_t lit;

	if (a->kind == ARG_WORD && ps->symbol) {
		/* Symbols that are known by now may be inline constants. */
		if (!isa_word_value(ps, a, ISA_SYM_INLINE, &number.i))
			number.i = INT64_MIN;
		if (number.i != INT64_MIN) {
			number.kind = ARG_INT;
			f = isa_const_inline(&number, slot->type);
		}
	}
	if (f < 0)
		f = inline_high_half(&number, slot->type);
	if (f >= 0 && !a->lit) {
		*field = f;
		return true;
	}
	if (ps->op->flags & ISA_NOLIT)
		return isa_refuse(ps, 3, "literal not allowed here");
	if (ps->in->form != ISA_FORM_PLAIN)
		return isa_refuse(ps, 3, "DPP has no literal");
	*field = ISA_R_LITERAL;
	return isa_const_literal(ps, &number, slot, &lit) &&
	       isa_set_literal(ps, lit);
}

bool isa_put_source(struct parser *ps, const struct arg *arg,
		    const struct isa_operand_info *slot, bool vgprs,
		    uint32_t *field)
{
	struct arg tuple;
	const struct arg *a = arg;

	if (arg->kind == ARG_LIST) {
		isa_lex_tuple(ps, arg, &tuple);
		a = &tuple;
	}
	switch (a->kind) {
	case ARG_VGPR:
		if (!vgprs)
			return isa_refuse(ps, 2, "VGPR not allowed here");
		if (!isa_width_ok(ps, a, isa_want_dwords(ps, slot)) ||
		    !vgpr_field(ps, a, slot->type, field))
			return false;
		*field += 256;
		return true;
	case ARG_SGPR:
		if (!isa_width_ok(ps, a, isa_want_dwords(ps, slot)))
			return false;
		*field = a->reg;
		return true;
	case ARG_SPECIAL:
		*field = a->reg;
		return true;
	case ARG_INT:
	case ARG_FLOAT:
	case ARG_WORD:
		return constant_field(ps, a, slot, field);
	}
	return isa_refuse(ps, 2, "unexpected operand");
}

bool isa_put_vgpr(struct parser *ps, const struct arg *arg, int dwords,
		  enum isa_type type, uint32_t *field)
{
	struct arg tuple;
	const struct arg *a = arg;

	if (arg->kind == ARG_LIST) {
		isa_lex_tuple(ps, arg, &tuple);
		a = &tuple;
	}
	if (a->kind != ARG_VGPR)
		return isa_refuse(ps, 2, "wanted a VGPR");
	return isa_width_ok(ps, a, dwords) && vgpr_field(ps, a, type, field);
}

/* Integer sources whose neg bit has a name that LLVM prints. */
static bool takes_sext(const struct isa_inst *in, int i)
{
	enum isa_op op = in->op;
	uint32_t flags = isa_op_info(op)->flags;

	if (flags & ISA_OPSEL && !(flags & (ISA_MOD0 | ISA_MOD1 | ISA_MOD2)))
		return true;
	switch (op) {
	case ISA_v_ldexp_f16:
		return i == 1 && in->gen < ISA_GFX11;
	case ISA_v_ldexp_f32:
	case ISA_v_ldexp_f64:
	case ISA_v_trig_preop_f64:
		return i == 1;
	case ISA_v_cvt_pk_u8_f32:
		return i > 0;
	default:
		return false;
	}
}

/*
 * The 32-bit encodings have no neg and abs; a constant's are computed, on the
 * sign bit of the operand's type.
 */
static bool fold_mods(const struct parser *ps, const struct arg *a,
		      const struct isa_operand_info *slot, struct arg *out)
{
	int bits = isa_type_info(slot->type)->bits;
	int64_t sign = INT64_C(1) << (bits < 64 ? bits - 1 : 0);

	if (!isa_fmt_is_e32(ps->in->fmt) || !(ps->op->flags & ISA_MOD0) ||
	    isa_type_info(slot->type)->count != 1 ||
	    (a->kind != ARG_FLOAT && (a->kind != ARG_INT || bits == 64)))
		return false;
	*out = *a;
	out->neg = out->abs = false;
	if (a->kind == ARG_FLOAT) {
		out->d = a->abs ? fabs(a->d) : a->d;
		out->d = a->neg ? -out->d : out->d;
		return true;
	}
	out->i &= 2 * sign - 1;
	out->i = a->abs ? out->i & ~sign : out->i;
	out->i = a->neg ? out->i ^ sign : out->i;
	return true;
}

/* Source modifiers of operand `i`, and the register half that it names. */
static bool put_source_mods(struct parser *ps, const struct arg *a, int i,
			    const struct isa_operand_info *slot)
{
	static const uint16_t allowed[] = { ISA_MOD0, ISA_MOD1, ISA_MOD2 };
	struct isa_inst *in = ps->in;
	bool mix = slot->type == ISA_T_MIX;
	bool vop3 = in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
		    in->fmt == ISA_FMT_VINTERP ||
		    (mix && in->fmt == ISA_FMT_VOP3P);

	if (a->half == 'h' &&
	    (in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VINTERP))
		in->f[ISA_F_OPSEL] |= 1u << i;
	if (a->sext) {
		if (!vop3 || !takes_sext(in, i))
			return isa_refuse(ps, 2, "sext not allowed here");
		in->f[ISA_F_NEG] |= 1u << i;
		return true;
	}
	if (!a->neg && !a->abs)
		return true;
	if ((!mix && !(ps->op->flags & allowed[i])) || takes_sext(in, i))
		return isa_refuse(ps, 2, "neg and abs not allowed here");
	if (vop3) {
		if (a->abs && !isa_fmt_has(in->fmt, ISA_F_ABS) && !mix)
			return isa_refuse(ps, 2, "abs not allowed here");
		in->f[ISA_F_NEG] |= (uint32_t)a->neg << i;
		in->f[mix ? ISA_F_NEG_HI : ISA_F_ABS] |= (uint32_t)a->abs << i;
		return true;
	}
	if (in->form == ISA_FORM_DPP16 && i < 2) {
		in->extra[0] |= (uint32_t)a->neg << (20 + 2 * i) |
				(uint32_t)a->abs << (21 + 2 * i);
		return true;
	}
	return isa_refuse(ps, 1, "neg and abs not allowed in this encoding");
}

static bool put_scalar_source(struct parser *ps, const struct arg *a, int i,
			      const struct isa_operand_info *slot)
{
	uint32_t v;

	if (a->neg || a->abs)
		return isa_refuse(ps, 3, "scalar operands have no neg or abs");
	return isa_put_source(ps, a, slot, false, &v) &&
	       isa_put_field(ps, i ? ISA_F_SSRC1 : ISA_F_SSRC0, v);
}

/* DPP's second source: only a VGPR before gfx11_5. */
static bool dpp_source_ok(struct parser *ps, const struct arg *a, int i)
{
	if (ps->in->form == ISA_FORM_PLAIN || i != 1 || a->kind == ARG_VGPR ||
	    ps->t->gen >= ISA_GFX11_5)
		return true;
	return isa_refuse(ps, 3, "source 1 of DPP is a VGPR");
}

bool isa_put_alu_source(struct parser *ps, const struct arg *a, int i,
			const struct isa_operand_info *slot, char only)
{
	static const uint8_t field[3] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2 };
	static const struct isa_operand_info mask = { ISA_SLOT_S1, ISA_T_B32 };
	struct isa_inst *in = ps->in;
	struct arg folded;
	uint32_t v = 0;

	/* v_cmp_class: the mask of classes is a 32-bit operand. */
	if (i == 1 && a->kind != ARG_VGPR &&
	    (in->op == ISA_v_cmp_class_f16 || in->op == ISA_v_cmpx_class_f16))
		slot = &mask;

	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPC)
		return put_scalar_source(ps, a, i, slot);
	if (in->form == ISA_FORM_SDWA)
		return isa_put_sdwa_source(ps, a, i, slot);
	if ((a->neg || a->abs) && i == 0 && fold_mods(ps, a, slot, &folded))
		a = &folded;
	if (!put_source_mods(ps, a, i, slot) || !dpp_source_ok(ps, a, i))
		return false;
	if (i == 2 && isa_inst_is_align(in)) { /* op_sel says which half */
		folded = *a;
		folded.half = 0;
		a = &folded;
	}
	if (i == 1 && isa_fmt_is_e32(in->fmt)) {
		if (!isa_put_vgpr(ps, a, isa_want_dwords(ps, slot), slot->type,
				  &v))
			return isa_refuse(ps, 1, "this encoding wants a VGPR");
		in->f[ISA_F_VSRC1] = v;
		return true;
	}
	if (i == 0 && in->form != ISA_FORM_PLAIN) {
		if (!isa_put_vgpr(ps, a, isa_want_dwords(ps, slot), slot->type,
				  &v))
			return false;
		in->extra[0] |= v;
		return true;
	}
	if (!isa_put_source(ps, a, slot, only != 'S', &v))
		return false;
	if (only == 'V' && v < 256)
		return isa_refuse(ps, 2, "this source must be a VGPR");
	in->f[field[i]] = v;
	return true;
}
