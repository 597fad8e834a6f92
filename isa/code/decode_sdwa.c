/*
 * isa/code/decode_sdwa.c - SDWA (sub-dword addressing): the dword after a VOP1,
 * VOP2 or VOPC instruction of gfx10_3 that selects bytes and words of its
 * registers (RDNA2 ISA 13.3.6 and 13.3.7).
 *
 *	 0  source 0		16  its part	24  source 1's part
 *	 8  part of the result	19  sext	27  sext
 *	11  the rest of it	20  neg, abs	28  neg, abs
 *	13  clamp		23  scalar	31  scalar
 *	14  output modifier
 *
 * VOPC has a scalar destination in bits 8 to 14 where bit 15 is set.
 */
#include "isa/code/decode_int.h"

/* Is source `i` of the row a float, with neg and abs rather than sext? */
static bool source_is_float(const struct isa_op_info *op, int i)
{
	return op->flags & (i ? ISA_MOD1 : ISA_MOD0) &&
	       !(i && op == isa_op_info(ISA_v_ldexp_f16));
}

/* Rows with 64-bit operands, tied accumulators and lane tricks have none. */
static bool has_sdwa(const struct isa_op_info *op, enum isa_op id)
{
	if (!(op->flags & ISA_E64) || id == ISA_v_fmac_f32 ||
	    id == ISA_v_fmac_f16 || id == ISA_v_fmac_dx9_zero_f32 ||
	    id == ISA_v_mac_f32 || id == ISA_v_mac_legacy_f32)
		return false;
	for (int i = 0; i < op->n_opnd; i++)
		if (isa_type_info(op->opnd[i].type)->bits == 64)
			return false;
	return true;
}

static const char *source_part(struct isa_sdwa *s, uint32_t w, int i,
			       bool is_float)
{
	uint32_t part = w >> (16 + 8 * i);

	s->sel[i] = part & 7;
	s->sext[i] = part >> 3 & 1;
	if (s->sel[i] > ISA_SDWA_DWORD)
		return "reserved part of a register";
	if (is_float && s->sext[i])
		return "sext of a float";
	if (!is_float && part >> 4 & 3)
		return "neg or abs of an integer";
	return NULL;
}

const char *isa_decode_sdwa(struct decoder *d)
{
	struct isa_inst *in = d->in;
	struct isa_sdwa *s = &in->sdwa;
	const char *why;
	uint32_t w;

	if (!has_sdwa(d->op, in->op))
		return "SDWA not allowed here";
	if (d->at >= d->n_words)
		return "truncated: SDWA dword missing";
	w = in->extra[0] = d->word[d->at++];
	in->form = ISA_FORM_SDWA;
	if (in->fmt == ISA_FMT_VOPC) {
		s->has_sdst = w >> 15 & 1;
		s->sdst = isa_swap_m0(w >> 8 & 127);
		if (s->has_sdst && d->op->flags & ISA_WEXEC)
			return "this comparison writes EXEC alone";
	} else {
		s->dst_sel = w >> 8 & 7;
		s->dst_unused = w >> 11 & 3;
		s->clamp = w >> 13 & 1;
		s->omod = w >> 14 & 3;
		if (s->dst_sel > ISA_SDWA_DWORD || s->dst_unused > 2)
			return "reserved part of a register";
		if (s->omod &&
		    (!(d->op->flags & ISA_OMOD) ||
		     isa_type_info(d->op->opnd[0].type)->kind != 'F'))
			return "output modifier not allowed here";
	}
	if (in->fmt == ISA_FMT_VOP1 && w & 0xbf000000)
		return isa_decode_unused;
	why = source_part(s, w, 0, source_is_float(d->op, 0));
	if (!why && in->fmt != ISA_FMT_VOP1)
		why = source_part(s, w, 1, source_is_float(d->op, 1));
	return why;
}

const char *isa_decode_sdwa_source(struct decoder *d, struct isa_operand *o,
				   int i)
{
	struct isa_inst *in = d->in;
	uint32_t part = in->extra[0] >> (16 + 8 * i);
	uint32_t reg = i ? in->f[ISA_F_VSRC1] : in->extra[0] & 0xff;

	if (part >> 3 & 1)
		o->mods |= ISA_M_SEXT;
	if (part >> 4 & 1)
		o->mods |= ISA_M_NEG;
	if (part >> 5 & 1)
		o->mods |= ISA_M_ABS;
	if (!(part >> 7 & 1))
		return isa_decode_vgpr(o, reg);
	if (reg == ISA_R_LITERAL)
		return "SDWA has no literal";
	return isa_decode_source(d, o, isa_swap_m0(reg));
}
