/*
 * isa/parse_slots.c - operands to fields, the inverse of isa/decode.c.
 */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "isa/parse.h"

bool isa_is_e32(enum isa_fmt f)
{
	return f == ISA_FMT_VOP1 || f == ISA_FMT_VOP2 || f == ISA_FMT_VOPC;
}

/* The lanes of a wave share results and addends of WMMA. */
static int dwords_of(const struct parser *ps,
		     const struct isa_operand_info *slot)
{
	int n = isa_type_dwords(slot->type, ps->t->wave);
	bool shared = slot->slot == ISA_SLOT_D || slot->slot == ISA_SLOT_S2I ||
		      (ps->t->gen == ISA_GFX12 && slot->slot != ISA_SLOT_S2V);

	if (ps->t->wave == 64 && slot->slot == ISA_SLOT_D &&
	    (ps->in->op == ISA_global_load_tr_b128 ||
	     ps->in->op == ISA_global_load_tr_b64))
		return n / 2;

	return ps->op->pipe == ISA_PIPE_WMMA && shared && ps->t->wave == 64 ?
		       (n + 1) / 2 :
		       n;
}

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
	bool e32 = isa_is_e32(ps->in->fmt), half = is_half(type);

	if (a->half && !half)
		return isa_refuse(ps, 3, "this operand is a whole register");
	if (e32 && half && a->reg > 127)
		return isa_refuse(ps, 1, "16-bit operands above v127 want VOP3");
	*field = a->reg | (e32 && a->half == 'h' ? 0x80u : 0);
	return true;
}

static bool width_ok(struct parser *ps, const struct arg *a, int want)
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


static bool constant_field(struct parser *ps, const struct arg *a,
			   const struct isa_operand_info *slot, uint32_t *field)
{
	int f = a->kind == ARG_WORD ? -1 : isa_const_inline(a, slot->type);
	struct arg number = *a;
	uint32_t lit;

	if (a->kind == ARG_WORD && ps->symbol) {
		/* Symbols that are numbers by now may be inline. */
		if (!isa_word_value(ps, a, ISA_SYM_INLINE, &number.i))
			number.i = INT64_MIN;
		if (number.i != INT64_MIN) {
			number.kind = ARG_INT;
			f = isa_const_inline(&number, slot->type);
		}
	}
	if (f >= 0) {
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
		if (!width_ok(ps, a, dwords_of(ps, slot)) ||
		    !vgpr_field(ps, a, slot->type, field))
			return false;
		*field += 256;
		return true;
	case ARG_SGPR:
		if (!width_ok(ps, a, dwords_of(ps, slot)))
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

static bool scalar_register(struct parser *ps, const struct arg *arg,
			    int dwords, uint32_t *field)
{
	struct arg a;

	isa_lex_tuple(ps, arg, &a);
	if (a.kind != ARG_SGPR)
		return isa_refuse(ps, 2, "wanted a scalar register");
	if (a.neg || a.abs)
		return isa_refuse(ps, 3, "neg and abs not allowed here");
	if (!width_ok(ps, &a, dwords))
		return false;
	*field = a.reg;
	return true;
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
	return width_ok(ps, a, dwords) && vgpr_field(ps, a, type, field);
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

	return scalar_register(ps, a, dwords, &v) &&
	       isa_put_field(ps, field, v);
}

/* Integer sources whose neg bit has a name that LLVM prints. */
static bool takes_sext(enum isa_op op, int i)
{
	uint32_t flags = isa_op_info(op)->flags;

	if (flags & ISA_OPSEL && !(flags & (ISA_MOD0 | ISA_MOD1 | ISA_MOD2)))
		return true;
	switch (op) {
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

	if (!isa_is_e32(ps->in->fmt) || !(ps->op->flags & ISA_MOD0) ||
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

/* Source modifiers of operand `i`, and the half that it names. */
static bool put_source_mods(struct parser *ps, const struct arg *a, int i,
			    const struct isa_operand_info *slot)
{
	static const uint16_t allowed[] = { ISA_MOD0, ISA_MOD1, ISA_MOD2 };
	struct isa_inst *in = ps->in;
	bool mix = slot->type == ISA_T_MIX;
	bool vop3 = in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
		    in->fmt == ISA_FMT_VINTERP ||
		    (mix && in->fmt == ISA_FMT_VOP3P);

	if (a->half == 'h' && in->fmt == ISA_FMT_VOP3)
		in->f[ISA_F_OPSEL] |= 1u << i;
	if (a->sext) {
		if (!vop3 || !takes_sext(in->op, i))
			return isa_refuse(ps, 2, "sext not allowed here");
		in->f[ISA_F_NEG] |= 1u << i;
		return true;
	}
	if (!a->neg && !a->abs)
		return true;
	if (!mix && !(ps->op->flags & allowed[i]))
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

/* What DPP does not take as its second source: only VGPRs before gfx11_5. */
static bool dpp_source_ok(struct parser *ps, const struct arg *a, int i)
{
	if (ps->in->form == ISA_FORM_PLAIN || i != 1 || a->kind == ARG_VGPR ||
	    ps->t->gen >= ISA_GFX11_5)
		return true;
	return isa_refuse(ps, 3, "source 1 of DPP is a VGPR");
}

static bool put_source(struct parser *ps, const struct arg *a, int i,
		       const struct isa_operand_info *slot, char only)
{
	static const uint8_t field[3] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2 };
	static const struct isa_operand_info mask = { ISA_SLOT_S1, ISA_T_B32 };
	struct isa_inst *in = ps->in;
	struct arg folded;
	uint32_t v = 0;

	/* The classes to test for are written as 32 bits. */
	if (i == 1 && a->kind != ARG_VGPR &&
	    (in->op == ISA_v_cmp_class_f16 || in->op == ISA_v_cmpx_class_f16))
		slot = &mask;

	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPC)
		return put_scalar_source(ps, a, i, slot);
	if ((a->neg || a->abs) && i == 0 && fold_mods(ps, a, slot, &folded))
		a = &folded;
	if (!put_source_mods(ps, a, i, slot) || !dpp_source_ok(ps, a, i))
		return false;
	if (i == 1 && isa_is_e32(in->fmt)) {
		if (!isa_put_vgpr(ps, a, dwords_of(ps, slot), slot->type, &v))
			return isa_refuse(ps, 1, "this encoding wants a VGPR");
		return isa_put_field(ps, ISA_F_VSRC1, v);
	}
	if (i == 0 && in->form != ISA_FORM_PLAIN) {
		if (!isa_put_vgpr(ps, a, dwords_of(ps, slot), slot->type, &v))
			return false;
		in->extra[0] |= v;
		return true;
	}
	if (!isa_put_source(ps, a, slot, only != 'S', &v))
		return false;
	if (only == 'V' && v < 256)
		return isa_refuse(ps, 2, "this source must be a VGPR");
	return isa_put_field(ps, field[i], v);
}

/* ------------------------------------------------------- destinations ---- */

static bool put_destination(struct parser *ps, const struct arg *a,
			    const struct isa_operand_info *slot)
{
	struct isa_inst *in = ps->in;
	int n = dwords_of(ps, slot);

	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPK)
		return put_scalar_field(ps, a, n, ISA_F_SDST);
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF)
		return put_vgpr_field(ps, a, n + (int)in->f[ISA_F_TFE],
				      ISA_T_NONE, ISA_F_VDATA);
	if (a->half == 'h' && in->fmt == ISA_FMT_VOP3)
		in->f[ISA_F_OPSEL] |= 8;
	return put_vgpr_field(ps, a, n, slot->type, ISA_F_VDST);
}

/* VCC by name in the 32-bit encodings, any scalar register in VOP3. */
static bool put_mask(struct parser *ps, const struct arg *a,
		     enum isa_field field)
{
	uint32_t v;

	if (!scalar_register(ps, a, ps->t->wave / 32, &v))
		return false;
	if (isa_is_e32(ps->in->fmt))
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
		/* The scalar address that follows decides; 64 bits without. */
		if (tuple.kind != ARG_VGPR || tuple.n > 2)
			return isa_refuse(ps, 2, "wanted a VGPR address");
		n = tuple.n;
		break;
	case ISA_FMT_SCRATCH:
		in->f[ISA_F_SVE] = a->kind == ARG_VGPR;
		if (a->kind == ARG_OFF)
			return true;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		n = in->f[ISA_F_IDXEN] + in->f[ISA_F_OFFEN];
		if (a->kind == ARG_OFF && !n)
			return true;
		if (!n)
			return isa_refuse(ps, 2, "a buffer address wants idxen "
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
		if (v == ISA_R_NULL && !scratch)
			return isa_refuse(ps, 3, "write off instead of null");
		if (v == ISA_R_EXEC_HI)
			return isa_refuse(ps, 3, "exec_hi not allowed here");
	}
	/* vaddr is 64 bits wide exactly when there is no saddr. */
	if (in->fmt == ISA_FMT_GLOBAL &&
	    isa_op_has_slot(ps->op, ISA_SLOT_VADDR) &&
	    (ps->vaddr_n == 2) != (v == ISA_R_NULL))
		return isa_refuse(ps, 3, "a global address is v[n:n+1], off "
					 "or vn, s[n:n+1]");
	return isa_put_field(ps, ISA_F_SADDR, v);
}

static bool put_data(struct parser *ps, const struct arg *a,
		     const struct isa_operand_info *slot)
{
	struct isa_inst *in = ps->in;
	bool buffer = in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF;
	int n = dwords_of(ps, slot);

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
	int n = dwords_of(ps, slot);

	switch (slot->slot) {
	case ISA_SLOT_SDATA:
		if (a->reg == ISA_R_NULL && a->kind == ARG_SGPR && n > 2)
			return isa_refuse(ps, 3, "null holds 64 bits at most");
		return put_scalar_field(ps, a, n, ISA_F_SDATA);
	case ISA_SLOT_SDIMM:
		return a->kind == ARG_INT ?
			       isa_put_field(ps, ISA_F_SDATA, a->i) :
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
	int n = dwords_of(ps, slot);
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
		return put_source(ps, a, slot->slot - ISA_SLOT_S0, slot, 0);
	case ISA_SLOT_S0V:
	case ISA_SLOT_S1V:
	case ISA_SLOT_S2V:
		return put_source(ps, a, slot->slot - ISA_SLOT_S0V, slot, 'V');
	case ISA_SLOT_S0S:
	case ISA_SLOT_S1S:
	case ISA_SLOT_S2S:
		return put_source(ps, a, slot->slot - ISA_SLOT_S0S, slot, 'S');
	case ISA_SLOT_S2I:
		return put_source(ps, a, 2, slot, 'I');
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

/* Slots that no operand stands for: modifiers, or absent by encoding. */
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
	if (!isa_is_e32(ps->in->fmt))
		return false;
	if (slot == ISA_SLOT_CD)
		return left == ps->op->n_opnd - 1;
	/* Of carries, both or none are written. */
	if (slot == ISA_SLOT_CO || (slot == ISA_SLOT_CI &&
				    isa_op_has_slot(ps->op, ISA_SLOT_CO)))
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
