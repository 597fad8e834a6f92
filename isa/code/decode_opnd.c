/*
 * isa/code/decode_opnd.c - operand slots of isa/tables/insts.def: what the
 * fields of an instruction say about registers, constants and immediates.
 */
#include "base/base.h"
#include "isa/code/decode_int.h"

const char *isa_decode_vgpr(struct isa_operand *o, uint32_t reg)
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
const char *isa_decode_sgpr(struct isa_operand *o, uint32_t reg)
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

/* The literal dword: the format decides which source fields may use it. */
static const char *use_literal(struct decoder *d, struct isa_operand *o)
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

/* LDS parameter or value, addressed by M0 (RDNA2 ISA 10.3.2). */
static bool takes_lds_direct(const struct decoder *d,
			     const struct isa_operand *o)
{
	return d->t->gen < ISA_GFX11 && o->dwords == 1 &&
	       (isa_fmt_is_e32(d->in->fmt) || is_vop3(d->in));
}

/* Sources that gfx11 removed. */
static bool is_removed(enum isa_gen gen, uint32_t v)
{
	return gen >= ISA_GFX11 && (v == ISA_R_POPS_WAVE_ID ||
				      v == ISA_R_VCCZ || v == ISA_R_EXECZ);
}

static const char *scalar_source(struct decoder *d, struct isa_operand *o,
				 uint32_t v)
{
	if (v < 128)
		return isa_decode_sgpr(o, v);
	if ((v >= SRC_INT_0 && v <= SRC_INT_LAST) ||
	    (v >= SRC_FLOAT && v <= SRC_FLOAT_LAST)) {
		o->kind = ISA_K_INLINE;
		o->reg = v;
		o->value = isa_inline_value(v, o->type);
		return NULL;
	}
	if (is_removed(d->t->gen, v))
		return "VCCZ, EXECZ and POPS_EXITING_WAVE_ID are no sources "
		       "since gfx11";
	if ((v >= ISA_R_SHARED_BASE && v <= ISA_R_POPS_WAVE_ID) ||
	    (v >= ISA_R_VCCZ && v <= ISA_R_SCC) ||
	    (v == ISA_R_LDS_DIRECT && takes_lds_direct(d, o))) {
		o->kind = ISA_K_SPECIAL;
		o->reg = v;
		return NULL;
	}
	if (v == ISA_R_LITERAL) {
		if (d->op->flags & ISA_NOLIT)
			return "literal not allowed here";
		return use_literal(d, o);
	}
	return "reserved source operand";
}

const char *isa_decode_source(struct decoder *d, struct isa_operand *o,
			      uint32_t v)
{
	if (v >= SRC_VGPR)
		return isa_decode_vgpr(o, v - SRC_VGPR);
	return scalar_source(d, o, v);
}

/* In 32-bit encodings bit 7 of a 16-bit operand's VGPR selects the half. */
static void e32_half(const struct decoder *d, struct isa_operand *o)
{
	if (d->t->gen < ISA_GFX11 || o->kind != ISA_K_VGPR ||
	    !isa_type_is_half(o->type) || !(o->reg & 0x80))
		return;
	o->reg &= 0x7f;
	o->mods |= ISA_M_HI;
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
		/* As f16 it is the half, in bits 15:0. */
		if (o->type == ISA_T_MIX && o->mods & ISA_M_HI_HI &&
		    o->kind == ISA_K_INLINE)
			o->value = isa_inline_value(o->reg, ISA_T_F16);
	} else if ((isa_type_is_half(o->type) || isa_inst_is_align(in)) &&
		   f[ISA_F_OPSEL] & d->opsel & 1u << i) {
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
		/* Register indices and jump targets are never constants. */
		if (d->op->flags & ISA_NOLIT && v >= 128)
			return "this source must be a scalar register";
		return scalar_source(d, o, v);
	}
	if (in->form == ISA_FORM_SDWA)
		return isa_decode_sdwa_source(d, o, i);
	if (i == 1 && (isa_fmt_is_e32(in->fmt) || in->fmt == ISA_FMT_VOPD)) {
		why = isa_decode_vgpr(o,
				      in->f[d->y ? ISA_F_VSRC1Y : ISA_F_VSRC1]);
		e32_half(d, o);
	} else if (i == 0 && in->form != ISA_FORM_PLAIN) {
		why = isa_decode_vgpr(o, in->extra[0] & 0xff);
		if (isa_fmt_is_e32(in->fmt))
			e32_half(d, o);
	} else {
		v = in->f[d->y && !i ? ISA_F_SRC0Y : field[i]];
		if (restriction == 'V' && v < SRC_VGPR)
			return "this source must be a VGPR";
		if (restriction == 'S' && v >= SRC_VGPR)
			return "this source must be scalar";
		if (restriction == 'S' && v == ISA_R_LDS_DIRECT)
			return "reserved source operand";
		why = isa_decode_source(d, o, v);
		if (restriction == 'I' && o->kind != ISA_K_VGPR &&
		    o->kind != ISA_K_INLINE)
			return "this source must be a VGPR or inline constant";
		if (isa_fmt_is_e32(in->fmt))
			e32_half(d, o);
	}
	if (is_vop3(in))
		vop3_mods(d, o, i);
	else if (in->form == ISA_FORM_DPP16 && isa_fmt_is_e32(in->fmt) &&
		 i < 2 && d->op->flags & (i ? ISA_MOD1 : ISA_MOD0) &&
		 !(i && in->op == ISA_v_ldexp_f16))
		o->mods |= (in->extra[0] >> (20 + 2 * i) & 1 ? ISA_M_NEG : 0) |
			   (in->extra[0] >> (21 + 2 * i) & 1 ? ISA_M_ABS : 0);
	return why;
}

static const char *set_destination(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	const char *why;

	o->role = d->op->flags & ISA_RD ? ISA_DST | ISA_SRC : ISA_DST;
	if (in->fmt == ISA_FMT_SOP1 || in->fmt == ISA_FMT_SOP2 ||
	    in->fmt == ISA_FMT_SOPK)
		return isa_decode_sgpr(o, in->f[ISA_F_SDST]);
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF) {
		o->dwords += in->f[ISA_F_TFE];
		return isa_decode_vgpr(o, in->f[ISA_F_VDATA]);
	}
	if (d->y)
		/* One destination is even, the other odd. */
		return isa_decode_vgpr(o, in->f[ISA_F_VDSTY] << 1 |
						  (~in->f[ISA_F_VDST] & 1));
	why = isa_decode_vgpr(o, in->f[ISA_F_VDST]);
	if (isa_fmt_is_e32(in->fmt))
		e32_half(d, o);
	else if (is_vop3(in) && isa_type_is_half(o->type) &&
		 in->f[ISA_F_OPSEL] & 8)
		o->mods |= ISA_M_HI;
	return why;
}

/* Lane masks: VCC in 32-bit encodings, any scalar register in VOP3. */
static const char *set_lane_mask(struct decoder *d, struct isa_operand *o,
				 uint32_t reg, int role)
{
	o->role = role;
	if (d->in->form == ISA_FORM_SDWA && d->in->sdwa.has_sdst)
		return isa_decode_sgpr(o, d->in->sdwa.sdst);
	if (isa_fmt_is_e32(d->in->fmt) || d->in->fmt == ISA_FMT_VOPD)
		reg = ISA_R_VCC_LO;
	if (reg >= 128)
		return "a lane mask must be a scalar register";
	return isa_decode_sgpr(o, reg);
}

static uint32_t sign_extend(uint32_t v, int bits)
{
	return (uint32_t)((int32_t)(v << (32 - bits)) >> (32 - bits));
}

static void set_immediate(struct isa_operand *o, uint32_t value)
{
	o->role = ISA_SRC;
	o->kind = ISA_K_IMM;
	o->value = value;
}

/* Address operands of FLAT, GLOBAL, SCRATCH, LDS and buffers. */
static const char *set_vaddr(struct decoder *d, struct isa_operand *o)
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
		if (d->t->gen < ISA_GFX11 ? f[ISA_F_SADDR] != ISA_R_NULL :
					       !f[ISA_F_SVE])
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
	return isa_decode_vgpr(o, f[ISA_F_ADDR]);
}

static const char *set_saddr(struct decoder *d, struct isa_operand *o)
{
	uint32_t reg = d->in->f[ISA_F_SADDR];

	o->role = ISA_SRC;
	if (reg == ISA_R_NULL || reg == isa_inst_absent_saddr(d->in)) {
		o->kind = ISA_K_OFF;
		return NULL;
	}
	if (d->in->fmt == ISA_FMT_FLAT)
		return "FLAT has no scalar address";
	o->dwords = d->in->fmt == ISA_FMT_SCRATCH ? 1 : 2;
	return isa_decode_sgpr(o, reg);
}

/* Buffer data: store source, atomic operand, destination when GLC. */
static const char *set_buffer_data(struct decoder *d, struct isa_operand *o,
				   bool returns)
{
	struct isa_inst *in = d->in;

	o->role = ISA_SRC;
	if (in->fmt != ISA_FMT_MUBUF && in->fmt != ISA_FMT_MTBUF)
		return isa_decode_vgpr(o, in->f[ISA_F_DATA0]);
	if (returns && in->f[ISA_F_GLC])
		o->role |= ISA_DST;
	o->dwords += in->f[ISA_F_TFE];
	return isa_decode_vgpr(o, in->f[ISA_F_VDATA]);
}

static const char *set_soffset(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	uint32_t v = in->f[ISA_F_SOFFSET];

	o->role = ISA_SRC;
	if (in->fmt == ISA_FMT_SMEM) {
		if (v != ISA_R_NULL)
			return isa_decode_sgpr(o, v);
		o->kind = ISA_K_OFF;
		return NULL;
	}
	if (v == ISA_R_LITERAL)
		return "literal not allowed here";
	return scalar_source(d, o, v);
}

/* SMEM data may not be EXEC; a tuple may be NULL. */
static const char *set_sdata(struct decoder *d, struct isa_operand *o,
			     int role)
{
	uint32_t reg = d->in->f[ISA_F_SDATA];

	o->role = role;
	if (reg == ISA_R_M0 || reg >= ISA_R_EXEC_LO)
		return "scalar load to M0 or EXEC";
	return isa_decode_sgpr(o, reg);
}

/* VDST as a scalar register. */
static uint32_t scalar_vdst(const struct isa_inst *in)
{
	uint32_t v = in->f[ISA_F_VDST];

	return in->m0_is_124 ? isa_swap_m0(v) : v;
}

/* Operands that are no registers. */
static uint32_t immediate_value(const struct isa_inst *in, int slot)
{
	const uint32_t *f = in->f;

	switch (slot) {
	case ISA_SLOT_REL:
		return sign_extend(f[ISA_F_SIMM16], 16);
	case ISA_SLOT_MSG:
		return f[in->fmt == ISA_FMT_SOP1 ? ISA_F_SSRC0 : ISA_F_SIMM16];
	case ISA_SLOT_IMM:
	case ISA_SLOT_HWREG:
	case ISA_SLOT_WAITCNT:
	case ISA_SLOT_DELAY:
	case ISA_SLOT_DEPCTR:
		return f[ISA_F_SIMM16];
	case ISA_SLOT_SDIMM:
		return in->m0_is_124 ? isa_swap_m0(f[ISA_F_SDATA]) :
				       f[ISA_F_SDATA];
	case ISA_SLOT_FORMAT:
		return f[ISA_F_FORMAT];
	case ISA_SLOT_OFF12:
		return in->gen == ISA_GFX12 ? sign_extend(f[ISA_F_OFFSET], 24) :
					      f[ISA_F_OFFSET];
	case ISA_SLOT_OFF13:
		/* Signed, but gfx11's FLAT may not go below its address. */
		if (in->fmt == ISA_FMT_FLAT && in->gen != ISA_GFX12)
			return f[ISA_F_OFFSET];
		return sign_extend(f[ISA_F_OFFSET], flat_offset_bits(in->gen));
	case ISA_SLOT_SOFFI:
		return sign_extend(f[ISA_F_OFFSET], 24);
	case ISA_SLOT_OFF2:
	case ISA_SLOT_OFF16:
	case ISA_SLOT_SWIZZLE:
		return f[ISA_F_OFFSET0] | f[ISA_F_OFFSET1] << 8;
	case ISA_SLOT_ATTR:
		return f[ISA_F_ATTR] << 2 | f[ISA_F_ATTRCHAN];
	}
	BUG("operand slot %d has no meaning", slot);
}

static const char *fill_operand(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	o->role = ISA_SRC;
	switch (o->slot) {
	case ISA_SLOT_D:
		return set_destination(d, o);
	case ISA_SLOT_DS:
		o->role = ISA_DST;
		if (f[ISA_F_VDST] >= 128)
			return "this destination must be scalar";
		return isa_decode_sgpr(o, scalar_vdst(in));
	case ISA_SLOT_CO:
		return set_lane_mask(d, o, f[ISA_F_SDST], ISA_DST);
	case ISA_SLOT_CD:
		return set_lane_mask(d, o, scalar_vdst(in), ISA_DST);
	case ISA_SLOT_CI:
		return set_lane_mask(d, o, f[ISA_F_SRC2], ISA_SRC);
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
		return use_literal(d, o);
	case ISA_SLOT_DIN:
		return isa_decode_sgpr(o, f[ISA_F_SDST]);
	case ISA_SLOT_SDATA:
		return set_sdata(d, o, ISA_DST);
	case ISA_SLOT_SDSRC:
		return set_sdata(d, o, ISA_SRC);
	case ISA_SLOT_SDATAG:
		return set_sdata(d, o, f[ISA_F_GLC] ? ISA_DST | ISA_SRC :
						      ISA_SRC);
	case ISA_SLOT_SBASE:
		if (f[ISA_F_SBASE] * 2 == ISA_R_NULL && in->gen < ISA_GFX11)
			return "not a scalar register tuple";
		return isa_decode_sgpr(o, f[ISA_F_SBASE] * 2);
	case ISA_SLOT_SOFF:
	case ISA_SLOT_SOFFSET:
		return set_soffset(d, o);
	case ISA_SLOT_VADDR:
		return set_vaddr(d, o);
	case ISA_SLOT_DATA:
	case ISA_SLOT_DATA0:
		return set_buffer_data(d, o, false);
	case ISA_SLOT_DATAG:
		return set_buffer_data(d, o, true);
	case ISA_SLOT_DATA1:
		return isa_decode_vgpr(o, f[ISA_F_DATA1]);
	case ISA_SLOT_DG:
		o->role = ISA_DST;
		if (!f[ISA_F_GLC]) {
			o->dwords = 0;
			return NULL;
		}
		return isa_decode_vgpr(o, f[ISA_F_VDST]);
	case ISA_SLOT_SADDR:
		return set_saddr(d, o);
	case ISA_SLOT_SRSRC:
		/* gfx12 encodes a single register; only one is null. */
		if (f[ISA_F_SRSRC] * 4 == ISA_R_NULL &&
		    (f[ISA_F_RSV3] || in->gen < ISA_GFX11))
			return "not a scalar register tuple";
		return isa_decode_sgpr(o, f[ISA_F_SRSRC] * 4);
	case ISA_SLOT_SOFFR:
		return isa_decode_sgpr(o, f[ISA_F_SOFFSET]);
	}
	set_immediate(o, immediate_value(in, o->slot));
	return NULL;
}

static const char *export_operands(struct isa_inst *in)
{
	static const uint8_t field[4] = { ISA_F_VSRC0, ISA_F_VSRC1, ISA_F_VSRC2,
					  ISA_F_VSRC3 };

	for (int i = 0; i < 4; i++) {
		struct isa_operand *o =
			isa_decode_append(in, ISA_SLOT_EXPORT, ISA_SRC, 1);

		if (in->f[ISA_F_EN] >> i & 1) {
			isa_decode_vgpr(o, in->f[field[i]]);
		} else {
			o->kind = ISA_K_OFF;
			o->dwords = 0;
		}
	}
	return NULL;
}

/* ---------------------------------------------------------------- row ---- */

/*
 * WMMA: the lanes of a wave share the 16 x 16 results and addends, so twice
 * the lanes have half of them each; A and B are the same in both.
 */
int isa_slot_dwords_wave64(const struct isa_target *t,
			   const struct isa_op_info *op,
			   const struct isa_operand_info *slot)
{
	int n = isa_type_dwords(slot->type, 64), s = slot->slot;
	bool shared = s == ISA_SLOT_D || s == ISA_SLOT_S2I ||
		      (t->gen == ISA_GFX12 && s != ISA_SLOT_S2V);

	if (s == ISA_SLOT_D && (op == isa_op_info(ISA_global_load_tr_b128) ||
				op == isa_op_info(ISA_global_load_tr_b64)))
		return n / 2;
	return op->pipe == ISA_PIPE_WMMA && shared ? (n + 1) / 2 : n;
}

const char *isa_decode_operands(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const struct isa_op_info *op = d->op;

	for (int i = 0; i < op->n_opnd; i++) {
		struct isa_operand *o;
		const char *why;

		if (op->opnd[i].slot == ISA_SLOT_IMAGE)
			return isa_decode_image(d);
		if (op->opnd[i].slot == ISA_SLOT_EXPORT)
			return export_operands(in);
		o = &in->opnd[in->n_opnd++];
		o->slot = op->opnd[i].slot;
		o->type = op->opnd[i].type;
		o->dwords = isa_slot_dwords(d->t, op, &op->opnd[i]);
		why = fill_operand(d, o);
		if (why)
			return why;
	}
	return NULL;
}
