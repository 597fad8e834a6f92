/*
 * isa/code/decode_check.c - fields that a row does not use must be zero:
 * sources, modifiers, registers, cache and GDS bits, as LLVM 19 demands.
 */
#include <string.h>

#include "base/base.h"
#include "isa/code/decode_int.h"

const char isa_decode_unused[] = "unused field is not zero";

unsigned isa_op_source_fields(const struct isa_op_info *op)
{
	unsigned has = 0;

	for (int i = 0; i < op->n_opnd; i++) {
		int slot = op->opnd[i].slot;

		if (slot >= ISA_SLOT_S0 && slot <= ISA_SLOT_S2S)
			has |= 1u << (slot - ISA_SLOT_S0) % 3;
		else if (slot == ISA_SLOT_S2I || slot == ISA_SLOT_CI)
			has |= 4;
	}
	return has;
}

/* Bits of op_sel that select something, by row. */
static unsigned opsel_bits(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	unsigned bits = 0;

	switch (in->op) {
	case ISA_v_permlane16_b32: /* fetch-inactive and bound control */
	case ISA_v_permlanex16_b32:
	case ISA_v_permlane16_var_b32:
	case ISA_v_permlanex16_var_b32:
		return 3;
	case ISA_v_cvt_pk_f32_fp8:
	case ISA_v_cvt_pk_f32_bf8:
		return 9;
	case ISA_v_cvt_f32_fp8:
	case ISA_v_cvt_f32_bf8:
		return 3;
	case ISA_v_cvt_sr_fp8_f32:
	case ISA_v_cvt_sr_bf8_f32:
		return 12;
	case ISA_v_dot2_f16_f16: /* sources 0 and 1 are whole registers */
	case ISA_v_dot2_bf16_bf16:
		return 12;
	}
	if (in->op == ISA_v_fmac_f16 && in->gen < ISA_GFX11)
		return 0;
	if (isa_inst_is_align(in))
		return 4;
	if (op->flags & ISA_OPSEL)
		return isa_op_source_fields(op) | 8;
	for (int i = 0; i < op->n_opnd; i++) {
		int slot = op->opnd[i].slot;

		if (!isa_type_is_half(op->opnd[i].type))
			continue;
		if (slot == ISA_SLOT_D)
			bits |= 8;
		else if (slot >= ISA_SLOT_S0 && slot <= ISA_SLOT_S2S)
			bits |= 1u << (slot - ISA_SLOT_S0) % 3;
	}
	return bits;
}

unsigned isa_inst_opsel(const struct isa_inst *in)
{
	return in->f[ISA_F_OPSEL] ? in->f[ISA_F_OPSEL] & opsel_bits(in) : 0;
}

/* neg and abs bits that are accepted although they mean nothing. */
static unsigned mods_ignored(const struct decoder *d)
{
	switch (d->in->op) {
	case ISA_v_ldexp_f16:
		return d->t->gen < ISA_GFX11 ? 2 : 0;
	case ISA_v_ldexp_f32:
	case ISA_v_ldexp_f64:
	case ISA_v_trig_preop_f64:
		return 2;
	case ISA_v_cvt_pk_u8_f32:
		return 6;
	case ISA_v_cvt_sr_fp8_f32:
	case ISA_v_cvt_sr_bf8_f32:
		return 2;
	case ISA_v_permlane16_var_b32:
	case ISA_v_permlanex16_var_b32:
		return 3;
	}
	return d->op->flags & ISA_OPSEL && !d->mods ? d->has : 0;
}

/* VOP3 and VOP3SD: fields that the row does not use must be zero. */
static const char *check_vop3(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;
	uint32_t flags = d->op->flags;

	d->mods = (flags & ISA_MOD0 ? 1 : 0) | (flags & ISA_MOD1 ? 2 : 0) |
		  (flags & ISA_MOD2 ? 4 : 0);
	d->mods &= d->has;
	if (in->op == ISA_v_ldexp_f16 && in->gen < ISA_GFX11)
		d->mods &= 1;
	if ((f[ISA_F_NEG] | f[ISA_F_ABS]) & ~(d->mods | mods_ignored(d)))
		return "neg or abs not allowed here";
	if (f[ISA_F_CLAMP] && !(flags & ISA_CLAMP))
		return "clamp not allowed here";
	if (f[ISA_F_OMOD] && !(flags & ISA_OMOD))
		return "output modifier not allowed here";
	if (flags & ISA_OPSEL && f[ISA_F_OPSEL] & 7 & ~d->has &&
	    !(in->op == ISA_v_fmac_f16 && in->gen < ISA_GFX11))
		return "op_sel of a source that does not exist";
	d->opsel = isa_inst_opsel(in);
	return f[ISA_F_OPSEL] & ~d->opsel && isa_inst_byte_sel(in) >= 0 &&
			       !is_dpp(f[ISA_F_SRC0]) ?
		       "op_sel not allowed here" :
		       NULL;
}

/* How many index keys a sparse matrix product has, 1 = none. */
static int index_keys(const struct isa_inst *in, int wave)
{
	switch (in->op) {
	case ISA_v_swmmac_i32_16x16x64_iu4:
		return wave == 64 ? 2 : 1;
	case ISA_v_swmmac_i32_16x16x32_iu4:
		return 2;
	}
	return isa_inst_is_swmmac(in) ? wave == 64 ? 4 : 2 : 1;
}

/* Matrix products of gfx12 and dot products of 8-bit floats. */
static const char *check_fixed_gfx12(const struct decoder *d)
{
	const struct isa_op_info *op = d->op;
	const uint32_t *f = d->in->f;
	const struct isa_type_info *t = isa_type_info(op->opnd[1].type);
	bool sparse = isa_inst_is_swmmac(d->in);
	bool fp8 = strstr(op->name, "fp8") || strstr(op->name, "bf8");
	uint32_t lo = fp8 ? 0 : 3, hi = lo;

	if (t->kind == 'I' && !fp8)
		hi = 0;
	else if (!sparse)
		lo = hi = lo | 4;
	if (f[ISA_F_OPSEL_HI] != 3 || f[ISA_F_OPSEL_HI2] != 1 ||
	    f[ISA_F_OPSEL] >= (uint32_t)index_keys(d->in, d->t->wave))
		return "op_sel not allowed here";
	if (f[ISA_F_NEG] & ~lo || f[ISA_F_NEG_HI] & ~hi)
		return "neg not allowed here";
	return NULL;
}

static const char *check_vop3p(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	d->mods = 7;
	if (d->t->gen == ISA_GFX12 && isa_inst_has_fixed_mods(in) &&
	    is_dpp(f[ISA_F_SRC0]) && f[ISA_F_SRC1] < SRC_VGPR)
		return "this source must be a VGPR";
	if (d->t->gen == ISA_GFX12 && isa_inst_has_fixed_mods(in))
		return f[ISA_F_CLAMP] && !(d->op->flags & ISA_CLAMP) ?
			       "clamp not allowed here" :
			       check_fixed_gfx12(d);
	if ((f[ISA_F_NEG] | f[ISA_F_NEG_HI] | f[ISA_F_OPSEL]) & ~d->has)
		return "modifier of a source that does not exist";
	if (f[ISA_F_CLAMP] && !(d->op->flags & ISA_CLAMP))
		return "clamp not allowed here";
	if (f[ISA_F_OPSEL] && isa_inst_has_whole_matrix(in))
		return "op_sel not allowed here";
	if (is_dpp(f[ISA_F_SRC0]) && f[ISA_F_SRC1] < SRC_VGPR &&
	    d->op->opnd[1].type == ISA_T_MIX)
		return "this source must be a VGPR";
	return NULL;
}

bool isa_inst_has_whole_matrix(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);

	return op->pipe == ISA_PIPE_WMMA &&
	       isa_type_info(op->opnd[0].type)->bits == 32;
}

static const char *check_vinterp(struct decoder *d)
{
	d->mods = 7;
	d->opsel = isa_inst_opsel(d->in);
	if (d->in->f[ISA_F_OPSEL] && !(d->op->flags & ISA_OPSEL))
		return "op_sel not allowed here";
	return NULL;
}

/* Modifiers, and sources that the row does not have. */
static const char *check_vector(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;
	const char *why;

	if (!is_vop3(in))
		return NULL;
	d->has = isa_op_source_fields(d->op);
	if (in->fmt == ISA_FMT_VOP3P)
		why = check_vop3p(d);
	else if (in->fmt == ISA_FMT_VINTERP)
		why = check_vinterp(d);
	else
		why = check_vop3(d);
	if (why)
		return why;
	if (!d->has)
		return f[ISA_F_SRC0] || f[ISA_F_SRC1] || f[ISA_F_SRC2] ||
				       f[ISA_F_VDST] ?
			       isa_decode_unused :
			       NULL;
	/* LLVM 21 and later write 128 there; the chip does not look. */
	d->in->has_unused = (f[ISA_F_SRC1] && !(d->has & 2)) ||
			    (f[ISA_F_SRC2] && !(d->has & 4));
	return NULL;
}

/* Which fields of memory instructions the row's operands use. */
enum { USE_ADDR = 1, USE_DATA0 = 2, USE_DATA1 = 4, USE_VDST = 8 };

static unsigned memory_fields(const struct isa_op_info *op)
{
	unsigned use = 0;

	for (int i = 0; i < op->n_opnd; i++)
		switch (op->opnd[i].slot) {
		case ISA_SLOT_VADDR:
			use |= USE_ADDR;
			break;
		case ISA_SLOT_DATA:
		case ISA_SLOT_DATA0:
			use |= USE_DATA0;
			break;
		case ISA_SLOT_DATA1:
			use |= USE_DATA1;
			break;
		case ISA_SLOT_D:
			use |= USE_VDST;
			break;
		}
	return use;
}

static const char *check_lds(const struct decoder *d)
{
	const uint32_t *f = d->in->f;
	unsigned use = memory_fields(d->op);

	if (f[ISA_F_GDS] && d->t->gen == ISA_GFX12)
		return "gfx12 has no GDS";

	if ((f[ISA_F_ADDR] && !(use & USE_ADDR)) ||
	    (f[ISA_F_DATA0] && !(use & USE_DATA0)) ||
	    (f[ISA_F_DATA1] && !(use & USE_DATA1)) ||
	    (f[ISA_F_VDST] && !(use & USE_VDST)) ||
	    (!d->op->n_opnd && (f[ISA_F_OFFSET0] || f[ISA_F_OFFSET1])))
		return isa_decode_unused;
	if (d->op->flags & ISA_GDSONLY && !f[ISA_F_GDS])
		return "exists for GDS only";
	switch (d->in->op) {
	case ISA_ds_nop:
	case ISA_ds_permute_b32:
	case ISA_ds_bpermute_b32:
	case ISA_ds_bvh_stack_rtn_b32:
		if (f[ISA_F_GDS])
			return "does not exist for GDS";
	}
	return NULL;
}

static const char *check_buffer(const struct decoder *d)
{
	const uint32_t *f = d->in->f;
	uint32_t flags = d->op->flags;

	if (d->t->gen < ISA_GFX11 && d->op->flags & ISA_ATOMIC &&
	    f[ISA_F_DLC])
		return "dlc not allowed here";
	if (f[ISA_F_TFE] && (d->in->fmt == ISA_FMT_MTBUF ||
			     flags & (ISA_ATOMIC | ISA_LDSDMA)))
		return "tfe not allowed here";
	if (!d->op->n_opnd && (f[ISA_F_TFE] || f[ISA_F_OFFEN] ||
			       f[ISA_F_IDXEN] || f[ISA_F_GLC] || f[ISA_F_DLC]))
		return isa_decode_unused;
	return NULL;
}

static bool has_d16(const char *name)
{
	return !strstr(name, "_pck") && !strstr(name, "atomic") &&
	       !strstr(name, "_get_");
}

static const char *check_image(const struct decoder *d)
{
	const uint32_t *f = d->in->f;

	if (f[ISA_F_SSAMP] && !(d->op->flags & ISA_SAMPLER))
		return isa_decode_unused;
	if (!strstr(d->op->name, "bvh"))
		return f[ISA_F_D16] && !has_d16(d->op->name) ?
			       "d16 not allowed here" : NULL;
	/* Ray tracing has constants in the fields of image options. */
	if (f[ISA_F_DMASK] != 15 || !f[ISA_F_UNORM] || !f[ISA_F_R128] ||
	    f[ISA_F_DIM] || f[ISA_F_SLC] || f[ISA_F_DLC] || f[ISA_F_GLC] ||
	    f[ISA_F_D16] || f[ISA_F_TFE] || f[ISA_F_LWE])
		return "fixed field of a ray-tracing instruction differs";
	return NULL;
}

/* SDATA of probes and prefetches is an immediate of five bits. */
static const char *check_smem_gfx12(const struct decoder *d)
{
	const struct isa_op_info *op = d->op;

	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_SDIMM &&
		    d->in->f[ISA_F_SDATA] > 31)
			return isa_decode_unused;
	return NULL;
}

/* Has an unused field of FLAT, SCRATCH or GLOBAL a value? */
static bool flat_unused(const struct decoder *d)
{
	const uint32_t *f = d->in->f;
	bool saddr = f[ISA_F_SADDR] != ISA_R_NULL;
	bool flat = d->in->fmt == ISA_FMT_FLAT;

	if (d->t->gen < ISA_GFX11)
		return f[ISA_F_RSV1] || (flat && saddr);
	if (d->in->fmt == ISA_FMT_SCRATCH)
		return false;
	return f[ISA_F_SVE] || ((flat || !d->op->n_opnd) && saddr);
}

/* Fields that the format has and the row may not use. */
const char *isa_decode_check(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;
	bool unused = false;

	switch (in->fmt) {
	case ISA_FMT_SOPP:
		unused = !d->op->n_opnd && f[ISA_F_SIMM16];
		break;
	case ISA_FMT_SMEM: /* invalidations and probes have no cache bits */
		unused = !(d->op->flags & ISA_LOAD) &&
			 (f[ISA_F_GLC] || f[ISA_F_DLC]);
		if (d->t->gen == ISA_GFX12)
			return check_smem_gfx12(d);
		if (d->t->gen < ISA_GFX11)
			return NULL;
		break;
	case ISA_FMT_VOP1:
		unused = !d->op->n_opnd && f[ISA_F_VDST];
		break;
	case ISA_FMT_DS:
		return check_lds(d);
	case ISA_FMT_FLAT:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_GLOBAL:
		unused = flat_unused(d);
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		return check_buffer(d);
	case ISA_FMT_MIMG:
		return check_image(d);
	case ISA_FMT_LDSDIR:
		if (f[ISA_F_RSV0])
			return "reserved bits set";
		break;
	default:
		return check_vector(d);
	}
	return unused ? isa_decode_unused : NULL;
}
