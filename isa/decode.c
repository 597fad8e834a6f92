/*
 * isa/decode.c - bytes to struct isa_inst.
 *
 * The word's top bits give the format, the opcode gives the row of
 * isa/insts.def, and the row's operand slots say what the fields mean.  What
 * LLVM 19 refuses (unused fields that are not zero, modifiers that the row has
 * not, register tuples beyond the file) is refused here, too; bits that it
 * ignores stay in f[] only, so that encoding gives the same bytes back.
 */
#include <string.h>

#include "base/base.h"
#include "isa/isa_int.h"

uint64_t isa_inline_value(int value, enum isa_type type)
{
	static const uint16_t f16[] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000,
					0xc000, 0x4400, 0xc400, 0x3118 };
	static const uint16_t bf16[] = { 0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000,
					 0xc000, 0x4080, 0xc080, 0x3e22 };
	static const uint32_t f32[] = { 0x3f000000, 0xbf000000, 0x3f800000,
					0xbf800000, 0x40000000, 0xc0000000,
					0x40800000, 0xc0800000, 0x3e22f983 };
	static const uint64_t f64[] = {
		0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
		0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
		0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882
	};
	const struct isa_type_info *t = isa_type_info(type);
	int i = value - SRC_FLOAT;

	if (value >= SRC_INT_0 && value < SRC_INT_NEG)
		return value - SRC_INT_0;
	if (value >= SRC_INT_NEG && value <= SRC_INT_LAST) {
		int64_t n = SRC_INT_NEG - 1 - value;

		return t->bits == 64 ? (uint64_t)n : (uint32_t)n;
	}
	if (i < 0 || value > SRC_FLOAT_LAST)
		return 0;
	if (t->bits == 64 && t->kind == 'F')
		return f64[i];
	if (t->kind == 'G')
		return bf16[i];
	/* Packed integers see the f32 bits, single 16-bit ones the f16. */
	if (t->bits == 16 && (t->kind == 'F' || t->count == 1))
		return f16[i];
	return f32[i];
}

/* ---------------------------------------------------------- operands ---- */

const char *isa_int_vgpr(struct isa_operand *o, uint32_t reg)
{
	o->kind = ISA_K_VGPR;
	o->reg = reg;
	if (reg + (o->dwords ? o->dwords : 1) > 256)
		return "VGPR tuple beyond v255";
	return NULL;
}

/*
 * A scalar register number.  The low bits of a tuple's number are ignored, and
 * it does not leave its file.
 */
const char *isa_int_sgpr(struct isa_operand *o, uint32_t reg)
{
	uint32_t n = o->dwords ? o->dwords : 1;
	uint32_t align = n >= 3 ? 4 : n;

	o->kind = ISA_K_SGPR;
	o->reg = reg;
	if (n == 1 || reg == ISA_R_NULL)
		return NULL;
	if (reg <= SRC_SGPR_LAST || (reg >= ISA_R_TTMP0 && reg < ISA_R_NULL))
		reg = o->reg = reg & ~(align - 1);
	if (reg <= SRC_SGPR_LAST)
		return reg + n > SRC_SGPR_LAST + 1 ?
			       "scalar register tuple beyond s105" : NULL;
	if (reg >= ISA_R_TTMP0 && reg < ISA_R_NULL)
		return reg + n > ISA_R_NULL ? "tuple beyond ttmp15" : NULL;
	if (n == 2 && (reg == ISA_R_VCC_LO || reg == ISA_R_EXEC_LO))
		return NULL;
	return "not a scalar register tuple";
}

/* Which source fields a literal is spent on is the format's affair. */
static const char *literal(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;

	if (!in->has_literal) {
		if (d->at >= d->n_words)
			return "truncated: literal missing";
		in->literal = d->word[d->at++];
		in->has_literal = true;
	}
	o->kind = ISA_K_LITERAL;
	o->value = in->literal;
	return NULL;
}

static const char *scalar_source(struct decoder *d, struct isa_operand *o,
				 uint32_t v)
{
	if (v < 128)
		return isa_int_sgpr(o, v);
	if ((v >= SRC_INT_0 && v <= SRC_INT_LAST) ||
	    (v >= SRC_FLOAT && v <= SRC_FLOAT_LAST)) {
		o->kind = ISA_K_INLINE;
		o->reg = v;
		o->value = isa_inline_value(v, o->type);
		return NULL;
	}
	if ((v >= ISA_R_SHARED_BASE && v <= ISA_R_POPS_WAVE_ID) ||
	    (v >= ISA_R_VCCZ && v <= ISA_R_SCC)) {
		o->kind = ISA_K_SPECIAL;
		o->reg = v;
		return NULL;
	}
	if (v == ISA_R_LITERAL) {
		if (d->op->flags & ISA_NOLIT)
			return "literal not allowed here";
		return literal(d, o);
	}
	return "reserved source operand";
}

static const char *source(struct decoder *d, struct isa_operand *o, uint32_t v)
{
	if (v >= SRC_VGPR)
		return isa_int_vgpr(o, v - SRC_VGPR);
	return scalar_source(d, o, v);
}

/* One 16-bit value in a 32-bit register: which half, and the register. */
static bool is_half(const struct isa_operand *o)
{
	const struct isa_type_info *t = isa_type_info(o->type);

	return t->bits == 16 && t->count == 1;
}

/* In 32-bit encodings bit 7 of a 16-bit operand's VGPR selects the half. */
static void e32_half(struct isa_operand *o)
{
	if (o->kind != ISA_K_VGPR || !is_half(o) || !(o->reg & 0x80))
		return;
	o->reg &= 0x7f;
	o->mods |= ISA_M_HI;
}

static bool is_e32(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP1 || in->fmt == ISA_FMT_VOP2 ||
	       in->fmt == ISA_FMT_VOPC;
}

/* Source modifiers of source `i` in VOP3, VOP3P and VINTERP words. */
static void vop3_mods(struct decoder *d, struct isa_operand *o, int i)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	if (f[ISA_F_NEG] & d->mods & 1u << i)
		o->mods |= ISA_M_NEG;
	if (f[ISA_F_ABS] & d->mods & 1u << i)
		o->mods |= ISA_M_ABS;
	if (in->fmt == ISA_FMT_VOP3P) {
		uint32_t hi = f[ISA_F_OPSEL_HI] | f[ISA_F_OPSEL_HI2] << 2;

		if (f[ISA_F_OPSEL] >> i & 1)
			o->mods |= ISA_M_HI;
		if (hi >> i & 1)
			o->mods |= ISA_M_HI_HI;
		if (f[ISA_F_NEG_HI] >> i & 1)
			o->mods |= o->type == ISA_T_MIX ? ISA_M_ABS :
							  ISA_M_NEG_HI;
	} else if (is_half(o) && f[ISA_F_OPSEL] & d->opsel & 1u << i) {
		o->mods |= ISA_M_HI;
	}
}

static const char *vector_source(struct decoder *d, struct isa_operand *o,
				 int i, char restriction)
{
	static const uint8_t field[3] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2 };
	struct isa_inst *in = d->in;
	const char *why;
	uint32_t v;

	o->role = ISA_SRC;
	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPC) {
		v = in->f[i ? ISA_F_SSRC1 : ISA_F_SSRC0];
		/* What indexes registers or jumps takes no constants. */
		if (d->op->flags & ISA_NOLIT && v >= 128)
			return "this source must be a scalar register";
		return scalar_source(d, o, v);
	}
	if (i == 1 && (is_e32(in) || in->fmt == ISA_FMT_VOPD)) {
		why = isa_int_vgpr(o, in->f[d->y ? ISA_F_VSRC1Y : ISA_F_VSRC1]);
		e32_half(o);
	} else if (i == 0 && in->form != ISA_FORM_PLAIN) {
		why = isa_int_vgpr(o, in->extra[0] & 0xff);
		if (is_e32(in))
			e32_half(o);
	} else {
		v = in->f[d->y && !i ? ISA_F_SRC0Y : field[i]];
		if (restriction == 'V' && v < SRC_VGPR)
			return "this source must be a VGPR";
		if (restriction == 'S' && v >= SRC_VGPR)
			return "this source must be scalar";
		why = source(d, o, v);
		if (restriction == 'I' && o->kind != ISA_K_VGPR &&
		    o->kind != ISA_K_INLINE)
			return "this source must be a VGPR or inline constant";
		if (is_e32(in))
			e32_half(o);
	}
	if (is_vop3(in))
		vop3_mods(d, o, i);
	else if (in->form == ISA_FORM_DPP16 && is_e32(in) && i < 2 &&
		 d->op->flags & (i ? ISA_MOD1 : ISA_MOD0) &&
		 !(i && in->op == ISA_v_ldexp_f16))
		o->mods |= (in->extra[0] >> (20 + 2 * i) & 1 ? ISA_M_NEG : 0) |
			   (in->extra[0] >> (21 + 2 * i) & 1 ? ISA_M_ABS : 0);
	return why;
}

static const char *destination(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	const char *why;

	o->role = d->op->flags & ISA_RD ? ISA_DST | ISA_SRC : ISA_DST;
	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPK)
		return isa_int_sgpr(o, in->f[ISA_F_SDST]);
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF) {
		o->dwords += in->f[ISA_F_TFE];
		return isa_int_vgpr(o, in->f[ISA_F_VDATA]);
	}
	if (d->y)
		/* One destination is even, the other odd. */
		return isa_int_vgpr(o, in->f[ISA_F_VDSTY] << 1 |
				       (~in->f[ISA_F_VDST] & 1));
	why = isa_int_vgpr(o, in->f[ISA_F_VDST]);
	if (is_e32(in))
		e32_half(o);
	else if (is_vop3(in) && is_half(o) && in->f[ISA_F_OPSEL] & 8)
		o->mods |= ISA_M_HI;
	return why;
}

/* Lane masks: VCC in 32-bit encodings, any scalar register in VOP3. */
static const char *mask(struct decoder *d, struct isa_operand *o, uint32_t reg,
			int role)
{
	o->role = role;
	if (is_e32(d->in) || d->in->fmt == ISA_FMT_VOPD)
		reg = ISA_R_VCC_LO;
	if (reg >= 128)
		return "a lane mask must be a scalar register";
	return isa_int_sgpr(o, reg);
}

static void immediate(struct isa_operand *o, uint32_t value)
{
	o->role = ISA_SRC;
	o->kind = ISA_K_IMM;
	o->value = value;
}

/* Address operands of FLAT, GLOBAL, SCRATCH, LDS and buffers. */
static const char *vaddr(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	o->role = ISA_SRC;
	switch (in->fmt) {
	case ISA_FMT_FLAT:
		o->dwords = 2;
		break;
	case ISA_FMT_GLOBAL:
		o->dwords = f[ISA_F_SADDR] == ISA_R_NULL ? 2 : 1;
		break;
	case ISA_FMT_SCRATCH:
		o->dwords = 1;
		if (!f[ISA_F_SVE])
			o->kind = ISA_K_OFF;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		o->dwords = f[ISA_F_OFFEN] + f[ISA_F_IDXEN];
		if (!o->dwords)
			o->kind = ISA_K_OFF;
		break;
	default:
		o->dwords = 1;
	}
	if (o->kind == ISA_K_OFF) {
		o->dwords = 0;
		return NULL;
	}
	return isa_int_vgpr(o, f[ISA_F_ADDR]);
}

static const char *saddr(struct decoder *d, struct isa_operand *o)
{
	uint32_t reg = d->in->f[ISA_F_SADDR];

	o->role = ISA_SRC;
	if (reg == ISA_R_NULL) {
		o->kind = ISA_K_OFF;
		return NULL;
	}
	if (d->in->fmt == ISA_FMT_FLAT)
		return "FLAT has no scalar address";
	o->dwords = d->in->fmt == ISA_FMT_SCRATCH ? 1 : 2;
	return isa_int_sgpr(o, reg);
}

/* Buffer data: store source, atomic operand, destination when GLC. */
static const char *data(struct decoder *d, struct isa_operand *o, bool returns)
{
	struct isa_inst *in = d->in;

	o->role = ISA_SRC;
	if (in->fmt != ISA_FMT_MUBUF && in->fmt != ISA_FMT_MTBUF)
		return isa_int_vgpr(o, in->f[ISA_F_DATA0]);
	if (returns && in->f[ISA_F_GLC])
		o->role |= ISA_DST;
	o->dwords += in->f[ISA_F_TFE];
	return isa_int_vgpr(o, in->f[ISA_F_VDATA]);
}

static const char *soffset(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	uint32_t v = in->f[ISA_F_SOFFSET];

	o->role = ISA_SRC;
	if (in->fmt == ISA_FMT_SMEM) {
		if (v != ISA_R_NULL)
			return isa_int_sgpr(o, v);
		o->kind = ISA_K_OFF;
		return NULL;
	}
	if (v == ISA_R_LITERAL)
		return "literal not allowed here";
	return scalar_source(d, o, v);
}

/* SMEM data may not be EXEC; a tuple may be NULL. */
static const char *sdata(struct decoder *d, struct isa_operand *o)
{
	uint32_t reg = d->in->f[ISA_F_SDATA];

	o->role = ISA_DST;
	if (reg == ISA_R_M0 || reg >= ISA_R_EXEC_LO)
		return "scalar load to M0 or EXEC";
	return isa_int_sgpr(o, reg);
}

static const char *fill(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	o->role = ISA_SRC;
	switch (o->slot) {
	case ISA_SLOT_D:
		return destination(d, o);
	case ISA_SLOT_DS:
		o->role = ISA_DST;
		if (f[ISA_F_VDST] >= 128)
			return "this destination must be scalar";
		return isa_int_sgpr(o, f[ISA_F_VDST]);
	case ISA_SLOT_CO:
		return mask(d, o, f[ISA_F_SDST], ISA_DST);
	case ISA_SLOT_CD:
		return mask(d, o, f[ISA_F_VDST], ISA_DST);
	case ISA_SLOT_CI:
		return mask(d, o, f[ISA_F_SRC2], ISA_SRC);
	case ISA_SLOT_S0:
	case ISA_SLOT_S1:
	case ISA_SLOT_S2:
		return vector_source(d, o, o->slot - ISA_SLOT_S0, 0);
	case ISA_SLOT_S0V:
	case ISA_SLOT_S1V:
	case ISA_SLOT_S2V:
		return vector_source(d, o, o->slot - ISA_SLOT_S0V, 'V');
	case ISA_SLOT_S0S:
	case ISA_SLOT_S1S:
	case ISA_SLOT_S2S:
		return vector_source(d, o, o->slot - ISA_SLOT_S0S, 'S');
	case ISA_SLOT_S2I:
		return vector_source(d, o, 2, 'I');
	case ISA_SLOT_K:
		return literal(d, o);
	case ISA_SLOT_DIN:
		return isa_int_sgpr(o, f[ISA_F_SDST]);
	case ISA_SLOT_REL:
		immediate(o, (uint32_t)(int16_t)f[ISA_F_SIMM16]);
		return NULL;
	case ISA_SLOT_MSG:
		immediate(o, in->fmt == ISA_FMT_SOP1 ? f[ISA_F_SSRC0] :
						       f[ISA_F_SIMM16]);
		return NULL;
	case ISA_SLOT_IMM:
	case ISA_SLOT_HWREG:
	case ISA_SLOT_WAITCNT:
	case ISA_SLOT_DELAY:
	case ISA_SLOT_DEPCTR:
		immediate(o, f[ISA_F_SIMM16]);
		return NULL;
	case ISA_SLOT_SDATA:
		return sdata(d, o);
	case ISA_SLOT_SDIMM:
		immediate(o, f[ISA_F_SDATA]);
		return NULL;
	case ISA_SLOT_SBASE:
		return isa_int_sgpr(o, f[ISA_F_SBASE] * 2);
	case ISA_SLOT_SOFF:
	case ISA_SLOT_SOFFSET:
		return soffset(d, o);
	case ISA_SLOT_VADDR:
		return vaddr(d, o);
	case ISA_SLOT_DATA:
	case ISA_SLOT_DATA0:
		return data(d, o, false);
	case ISA_SLOT_DATAG:
		return data(d, o, true);
	case ISA_SLOT_DATA1:
		return isa_int_vgpr(o, f[ISA_F_DATA1]);
	case ISA_SLOT_DG:
		o->role = ISA_DST;
		if (!f[ISA_F_GLC]) {
			o->dwords = 0;
			return NULL;
		}
		return isa_int_vgpr(o, f[ISA_F_VDST]);
	case ISA_SLOT_SADDR:
		return saddr(d, o);
	case ISA_SLOT_SRSRC:
		/* gfx12 numbers single registers, of which only one is null. */
		if (f[ISA_F_SRSRC] * 4 == ISA_R_NULL && f[ISA_F_RSV3])
			return "not a scalar register tuple";
		return isa_int_sgpr(o, f[ISA_F_SRSRC] * 4);
	case ISA_SLOT_FORMAT:
		immediate(o, f[ISA_F_FORMAT]);
		return NULL;
	case ISA_SLOT_OFF12:
		immediate(o, in->gen != ISA_GFX12 ? f[ISA_F_OFFSET] :
			     (uint32_t)((int32_t)(f[ISA_F_OFFSET] << 8) >> 8));
		return NULL;
	case ISA_SLOT_OFF13:
		/* Signed, but gfx11's FLAT may not go below its address. */
		if (in->gen == ISA_GFX12)
			immediate(o, (uint32_t)((int32_t)(f[ISA_F_OFFSET] << 8) >>
						8));
		else
			immediate(o, in->fmt == ISA_FMT_FLAT ?
				     f[ISA_F_OFFSET] :
				     (uint32_t)((int32_t)(f[ISA_F_OFFSET] << 19) >>
						19));
		return NULL;
	case ISA_SLOT_SOFFI:
		immediate(o, (uint32_t)((int32_t)(f[ISA_F_OFFSET] << 8) >> 8));
		return NULL;
	case ISA_SLOT_SOFFR:
		return isa_int_sgpr(o, f[ISA_F_SOFFSET]);
	case ISA_SLOT_OFF2:
	case ISA_SLOT_OFF16:
	case ISA_SLOT_SWIZZLE:
		immediate(o, f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8);
		return NULL;
	case ISA_SLOT_ATTR:
		immediate(o, f[ISA_F_ATTR] << 2 | f[ISA_F_ATTRCHAN]);
		return NULL;
	}
	BUG("operand slot %d has no meaning", o->slot);
}

static const char *export_operands(struct isa_inst *in)
{
	static const uint8_t field[4] = { ISA_F_VSRC0, ISA_F_VSRC1, ISA_F_VSRC2,
					  ISA_F_VSRC3 };

	for (int i = 0; i < 4; i++) {
		struct isa_operand *o = isa_int_append(in, ISA_SLOT_EXPORT, ISA_SRC, 1);

		if (in->f[ISA_F_EN] >> i & 1) {
			isa_int_vgpr(o, in->f[field[i]]);
		} else {
			o->kind = ISA_K_OFF;
			o->dwords = 0;
		}
	}
	return NULL;
}

/* -------------------------------------------------------------- words ---- */

static enum isa_fmt format_of(uint32_t w)
{
#define FORMAT(name, dwords, mask, bits) \
	if ((w & (mask)) == (bits))      \
		return ISA_FMT_##name;
#include "isa/formats.def"
	return ISA_FMT_NONE;
}

/* Formats that gfx12 writes as gfx11 does are those without a LAYOUT. */
static enum isa_fmt format_of_gfx12(uint32_t w)
{
	enum isa_fmt fmt;

#define LAYOUT(name, fmt, dwords, mask, bits) \
	if ((w & (mask)) == (bits))           \
		return ISA_FMT_##fmt;
#include "isa/formats.def"
	fmt = format_of(w);
	if (isa_layout(ISA_GFX12, fmt) != fmt || fmt == ISA_FMT_MIMG ||
	    fmt == ISA_FMT_EXP)
		return ISA_FMT_NONE;
	return fmt;
}

static void extract(struct isa_inst *in, const uint32_t *word)
{
	const struct isa_fmt_info *f = isa_fmt_info(in->layout);

	for (int i = 0; i < f->n_fields; i++) {
		int low = f->field[i].low;

		in->f[f->field[i].field] = word[low / 32] >> low % 32 &
					   ((1u << f->field[i].width) - 1);
	}
}

/* Rows with a mask destination use the SDST layout of VOP3. */
static bool needs_sdst(const struct isa_op_info *op)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_CO)
			return true;
	return false;
}

/* neg and abs bits of two sources that a DPP dword may have in VOP1 .. VOPC. */
static unsigned dpp_mods(const struct decoder *d)
{
	uint32_t flags = d->op->flags;

	/* The 16-bit move accepts them without a meaning. */
	return (flags & ISA_MOD0 || d->in->op == ISA_v_mov_b16 ? 3 : 0) |
	       (flags & ISA_MOD1 ? 12 : 0);
}

/* The DPP dword, and whether this row may have one in this encoding. */
static const char *dpp(struct decoder *d)
{
	struct isa_inst *in = d->in;
	uint32_t src0 = in->f[ISA_F_SRC0], w;
	bool vop3 = is_vop3(in);

	if (!(is_e32(in) || vop3) || in->fmt == ISA_FMT_VINTERP ||
	    !is_dpp(src0) || !d->op->n_opnd)
		return NULL;
	if (!(d->op->flags & (vop3 ? ISA_DPP64 : ISA_DPP)))
		return "DPP not allowed here";
	if (d->at >= d->n_words)
		return "truncated: DPP dword missing";
	w = in->extra[0] = d->word[d->at++];
	if (src0 == SRC_DPP16) {
		if (!vop3 && w >> 20 & 15 & ~dpp_mods(d))
			return "neg or abs not allowed here";
		in->form = ISA_FORM_DPP16;
		in->dpp.ctrl = w >> 8 & 0x1ff;
		in->dpp.fi = w >> 18 & 1;
		in->dpp.bound_ctrl = w >> 19 & 1;
		in->dpp.bank_mask = w >> 24 & 15;
		in->dpp.row_mask = w >> 28;
		return NULL;
	}
	in->form = ISA_FORM_DPP8;
	in->dpp.fi = src0 == SRC_DPP8_FI;
	in->dpp.sel = w >> 8;
	return NULL;
}

/*
 * WMMA: the lanes of a wave share the 16 x 16 results and addends, so twice
 * the lanes have half of them each; A and B are the same in both.
 */
static int matrix_share(const struct decoder *d, int slot)
{
	bool shared = slot == ISA_SLOT_D || slot == ISA_SLOT_S2I ||
		      (d->t->gen == ISA_GFX12 && slot != ISA_SLOT_S2V);

	return shared && d->t->wave == 64 ? 2 : 1;
}

static const char *operands(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const struct isa_op_info *op = d->op;

	for (int i = 0; i < op->n_opnd; i++) {
		struct isa_operand *o;
		const char *why;

		if (op->opnd[i].slot == ISA_SLOT_IMAGE)
			return isa_int_image(d);
		if (op->opnd[i].slot == ISA_SLOT_EXPORT)
			return export_operands(in);
		o = &in->opnd[in->n_opnd++];
		o->slot = op->opnd[i].slot;
		o->type = op->opnd[i].type;
		o->dwords = isa_type_dwords(o->type, d->t->wave);
		if (d->op->pipe == ISA_PIPE_WMMA)
			o->dwords = (o->dwords + matrix_share(d, o->slot) - 1) /
				    matrix_share(d, o->slot);
		if (d->t->wave == 64 && (in->op == ISA_global_load_tr_b128 ||
					 in->op == ISA_global_load_tr_b64) &&
		    o->slot == ISA_SLOT_D)
			o->dwords /= 2;
		why = fill(d, o);
		if (why)
			return why;
	}
	return NULL;
}

static const char *vopd(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const char *why;

	if (d->t->wave != 32)
		return "VOPD exists in wave32 only";
	in->op = isa_vopd_op_in(d->t->gen, in->f[ISA_F_OP], false, NULL);
	in->op_y = isa_vopd_op_in(d->t->gen, in->f[ISA_F_OPY], true, NULL);
	if (!in->op || !in->op_y)
		return "unknown opcode";
	if (!d->t->lax &&
	    ((in->op == ISA_v_mov_b32 && in->f[ISA_F_VSRC1]) ||
	     (in->op_y == ISA_v_mov_b32 && in->f[ISA_F_VSRC1Y])))
		return isa_int_unused;
	d->op = isa_op_info(in->op);
	why = operands(d);
	if (why)
		return why;
	in->n_opnd_x = in->n_opnd;
	d->op = isa_op_info(in->op_y);
	d->y = true;
	return operands(d);
}

static const char *single(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const char *why;

	in->op = isa_op_at(d->t->gen, in->fmt, in->f[ISA_F_OP]);
	if (!in->op)
		return "unknown opcode";
	d->op = isa_op_info(in->op);
	if (in->fmt == ISA_FMT_VOP3 && needs_sdst(d->op)) {
		memset(in->f, 0, sizeof(in->f));
		in->fmt = in->layout = ISA_FMT_VOP3SD;
		extract(in, d->word);
	}
	why = isa_int_check(d);
	if (why && !(d->t->lax && why == isa_int_unused))
		return why;
	if (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA]) {
		if (d->at >= d->n_words)
			return "truncated: address dword missing";
		in->extra[0] = d->word[d->at++];
	}
	why = dpp(d);
	return why ? why : operands(d);
}

const char *isa_decode(const struct isa_target *t, const void *code,
		       size_t size_bytes, struct isa_inst *in)
{
	struct decoder d = { .t = t, .in = in };
	const struct isa_fmt_info *f;
	const char *why;

	memset(in, 0, sizeof(*in));
	if (!isa_gen_known(t->gen))
		return "this generation's encodings are not known";
	if (size_bytes > ISA_MAX_SIZE_BYTES)
		size_bytes = ISA_MAX_SIZE_BYTES;
	d.n_words = size_bytes / 4;
	memcpy(d.word, code, 4 * d.n_words);
	if (!d.n_words)
		return "truncated";
	in->gen = t->gen;
	in->fmt = t->gen == ISA_GFX12 ? format_of_gfx12(d.word[0]) :
					format_of(d.word[0]);
	if (!in->fmt)
		return "reserved encoding";
	in->layout = isa_layout(t->gen, in->fmt);
	f = isa_fmt_info(in->layout);
	if (d.n_words < f->dwords)
		return "truncated";
	d.at = f->dwords;
	extract(in, d.word);
	why = in->fmt == ISA_FMT_VOPD ? vopd(&d) : single(&d);
	in->size_bytes = 4 * d.at;
	return why;
}
