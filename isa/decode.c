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
#include "isa/isa.h"
#include "isa/isa_int.h"

/* Source field values (RDNA3 ISA 3.1 and 15.1). */
enum {
	SRC_SGPR_LAST = 105,
	SRC_INT_0 = 128,   /* 0..64 */
	SRC_INT_NEG = 193, /* -1..-16 */
	SRC_INT_LAST = 208,
	SRC_DPP8 = 233,
	SRC_DPP8_FI = 234,
	SRC_FLOAT = 240, /* 0.5 -0.5 1 -1 2 -2 4 -4 1/(2 pi) */
	SRC_FLOAT_LAST = 248,
	SRC_DPP16 = 250,
	SRC_VGPR = 256,
};

struct decoder {
	const struct isa_target *t;
	const struct isa_op_info *op;
	struct isa_inst *in;
	uint32_t word[ISA_MAX_SIZE_BYTES / 4];
	int n_words; /* available */
	int at;	     /* consumed */
	bool y;	     /* the Y half of a VOPD */
	unsigned has;  /* bit i: the row has a source i */
	unsigned mods; /* bit i: neg and abs of source i mean something */
	unsigned opsel; /* bits of op_sel that mean something */
};

/* Only in words that assemblers do not make: isa_target.lax forgives it. */
static const char unused_field[] = "unused field is not zero";

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

static const char *vgpr(struct isa_operand *o, uint32_t reg)
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
static const char *sgpr(struct isa_operand *o, uint32_t reg)
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
		return sgpr(o, v);
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
		return vgpr(o, v - SRC_VGPR);
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

static bool is_dpp(uint32_t src0)
{
	return src0 == SRC_DPP16 || src0 == SRC_DPP8 || src0 == SRC_DPP8_FI;
}

static bool is_e32(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP1 || in->fmt == ISA_FMT_VOP2 ||
	       in->fmt == ISA_FMT_VOPC;
}

static bool is_vop3(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
	       in->fmt == ISA_FMT_VOP3P || in->fmt == ISA_FMT_VINTERP;
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
		why = vgpr(o, in->f[d->y ? ISA_F_VSRC1Y : ISA_F_VSRC1]);
		e32_half(o);
	} else if (i == 0 && in->form != ISA_FORM_PLAIN) {
		why = vgpr(o, in->extra[0] & 0xff);
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
	else if (in->form == ISA_FORM_DPP16 && is_e32(in) &&
		 (i == 0 || (i == 1 && in->op != ISA_v_ldexp_f16)))
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
		return sgpr(o, in->f[ISA_F_SDST]);
	if (in->fmt == ISA_FMT_MUBUF || in->fmt == ISA_FMT_MTBUF) {
		o->dwords += in->f[ISA_F_TFE];
		return vgpr(o, in->f[ISA_F_VDATA]);
	}
	if (d->y)
		/* One destination is even, the other odd. */
		return vgpr(o, in->f[ISA_F_VDSTY] << 1 |
				       (~in->f[ISA_F_VDST] & 1));
	why = vgpr(o, in->f[ISA_F_VDST]);
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
	return sgpr(o, reg);
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
	return vgpr(o, f[ISA_F_ADDR]);
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
	return sgpr(o, reg);
}

/* Buffer data: store source, atomic operand, destination when GLC. */
static const char *data(struct decoder *d, struct isa_operand *o, bool returns)
{
	struct isa_inst *in = d->in;

	o->role = ISA_SRC;
	if (in->fmt != ISA_FMT_MUBUF && in->fmt != ISA_FMT_MTBUF)
		return vgpr(o, in->f[ISA_F_DATA0]);
	if (returns && in->f[ISA_F_GLC])
		o->role |= ISA_DST;
	o->dwords += in->f[ISA_F_TFE];
	return vgpr(o, in->f[ISA_F_VDATA]);
}

static const char *soffset(struct decoder *d, struct isa_operand *o)
{
	struct isa_inst *in = d->in;
	uint32_t v = in->f[ISA_F_SOFFSET];

	o->role = ISA_SRC;
	if (in->fmt == ISA_FMT_SMEM) {
		if (v != ISA_R_NULL)
			return sgpr(o, v);
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
	return sgpr(o, reg);
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
		return sgpr(o, f[ISA_F_VDST]);
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
		return sgpr(o, f[ISA_F_SDST]);
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
		return sgpr(o, f[ISA_F_SBASE] * 2);
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
		return vgpr(o, f[ISA_F_DATA1]);
	case ISA_SLOT_DG:
		o->role = ISA_DST;
		if (!f[ISA_F_GLC]) {
			o->dwords = 0;
			return NULL;
		}
		return vgpr(o, f[ISA_F_VDST]);
	case ISA_SLOT_SADDR:
		return saddr(d, o);
	case ISA_SLOT_SRSRC:
		return sgpr(o, f[ISA_F_SRSRC] * 4);
	case ISA_SLOT_FORMAT:
		immediate(o, f[ISA_F_FORMAT]);
		return NULL;
	case ISA_SLOT_OFF12:
		immediate(o, f[ISA_F_OFFSET]);
		return NULL;
	case ISA_SLOT_OFF13:
		/* Signed, but FLAT may not go below its address. */
		immediate(o, in->fmt == ISA_FMT_FLAT ?
				     f[ISA_F_OFFSET] :
				     (uint32_t)((int32_t)(f[ISA_F_OFFSET] << 19) >>
						19));
		return NULL;
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

/* ------------------------------------------------------------ images ---- */

/* Is this part ("_c") one of the words of the name? */
static bool has(const char *name, const char *part)
{
	size_t len = strlen(part);

	for (const char *p = name; (p = strstr(p, part)); p++)
		if (!p[len] || p[len] == '_')
			return true;
	return false;
}

/*
 * Address dwords of an image instruction: coordinates by dimension, and what
 * the name adds.  A16 halves coordinates, but not what stands beside them.
 */
static int image_addresses(const char *name, int dim, bool a16, bool nsa)
{
	static const uint8_t coords[] = { 1, 2, 3, 3, 2, 3, 3, 4 };
	static const uint8_t grads[] = { 2, 4, 6, 4, 2, 4, 4, 4 };
	/* Two 16-bit gradients share a register; each direction starts anew. */
	static const uint8_t grads_16[] = { 2, 2, 4, 2, 2, 2, 2, 2 };
	bool sample = strstr(name, "sample") || strstr(name, "gather") ||
		      strstr(name, "get_lod");
	int n = coords[dim];

	if (strstr(name, "bvh"))
		return (strstr(name, "bvh64") ? 12 : 11) - (a16 ? 3 : 0);
	if (strstr(name, "get_resinfo"))
		return 1;
	n += strstr(name, "_mip") || strstr(name, "_cl") || has(name, "_l");
	if (a16)
		n = (n + 1) / 2;
	if (!sample)
		return n;
	if (has(name, "_d"))
		n += strstr(name, "_g16") ? grads_16[dim] : grads[dim];
	n += has(name, "_o") + has(name, "_c") + has(name, "_b");
	return n > 12 && !nsa ? 16 : n;
}

static int image_data_dwords(const struct isa_inst *in, const char *name)
{
	int n = __builtin_popcount(in->f[ISA_F_DMASK]);

	if (strstr(name, "gather4") || strstr(name, "bvh"))
		n = 4;
	else if (strstr(name, "msaa_load"))
		n = 4;
	if (!n)
		n = 1;
	if (in->f[ISA_F_D16])
		n = (n + 1) / 2;
	return n + in->f[ISA_F_TFE];
}

static struct isa_operand *append(struct isa_inst *in, int slot, int role,
				  int dwords)
{
	struct isa_operand *o = &in->opnd[in->n_opnd++];

	o->slot = slot;
	o->role = role;
	o->dwords = dwords;
	return o;
}

/* Registers of NSA address operand `i`; ray tracing groups vectors. */
static int nsa_width(const char *name, int i, int n_addr)
{
	static const uint8_t bvh[] = { 1, 1, 3, 3, 3 };

	if (strstr(name, "bvh"))
		return i || !strstr(name, "bvh64") ? bvh[i] : 2;
	return i == 4 ? n_addr - 4 : 1;
}

static const char *image(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const char *name = d->op->name;
	int n_addr = image_addresses(name, in->f[ISA_F_DIM],
				     in->f[ISA_F_A16], in->f[ISA_F_NSA]);
	uint32_t flags = d->op->flags;
	int role = flags & ISA_LOAD ? ISA_DST : ISA_SRC;
	const char *why;

	if (flags & ISA_ATOMIC && in->f[ISA_F_GLC])
		role |= ISA_DST;
	why = vgpr(append(in, ISA_SLOT_DATA, role,
			  image_data_dwords(in, name)),
		   in->f[ISA_F_VDATA]);
	if (why)
		return why;
	if (in->f[ISA_F_NSA]) {
		int n = n_addr < 5 ? n_addr : 5;

		for (int i = 0; i < n; i++) {
			int width = nsa_width(name, i, n_addr);
			uint32_t reg = i ? in->extra[0] >> (8 * (i - 1)) & 0xff :
					   in->f[ISA_F_ADDR];

			why = vgpr(append(in, ISA_SLOT_VADDR, ISA_SRC, width),
				   reg);
			if (why)
				return why;
		}
	} else {
		why = vgpr(append(in, ISA_SLOT_VADDR, ISA_SRC, n_addr),
			   in->f[ISA_F_ADDR]);
		if (why)
			return why;
	}
	why = sgpr(append(in, ISA_SLOT_SRSRC, ISA_SRC,
			  strstr(name, "bvh") ? 4 : 8),
		   in->f[ISA_F_SRSRC] * 4);
	if (why || !(flags & ISA_SAMPLER))
		return why;
	return sgpr(append(in, ISA_SLOT_SADDR, ISA_SRC, 4),
		    in->f[ISA_F_SSAMP] * 4);
}

static const char *export_operands(struct isa_inst *in)
{
	static const uint8_t field[4] = { ISA_F_VSRC0, ISA_F_VSRC1, ISA_F_VSRC2,
					  ISA_F_VSRC3 };

	for (int i = 0; i < 4; i++) {
		struct isa_operand *o = append(in, ISA_SLOT_EXPORT, ISA_SRC, 1);

		if (in->f[ISA_F_EN] >> i & 1) {
			vgpr(o, in->f[field[i]]);
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

static void extract(struct isa_inst *in, uint64_t w)
{
	const struct isa_fmt_info *f = isa_fmt_info(in->fmt);

	for (int i = 0; i < f->n_fields; i++)
		in->f[f->field[i].field] =
			w >> f->field[i].low &
			((UINT64_C(1) << f->field[i].width) - 1);
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
	return (d->op->flags & ISA_MOD0 ? 3 : 0) |
	       (d->op->flags & ISA_MOD1 ? 12 : 0);
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

/* Which sources a row has. */
static unsigned sources(const struct isa_op_info *op)
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
		return 3;
	case ISA_v_dot2_f16_f16: /* sources 0 and 1 are whole registers */
	case ISA_v_dot2_bf16_bf16:
		return 12;
	}
	if (op->flags & ISA_OPSEL)
		return sources(op) | 8;
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_type_info *t =
			isa_type_info(op->opnd[i].type);
		int slot = op->opnd[i].slot;

		if (t->bits != 16 || t->count != 1)
			continue;
		if (slot == ISA_SLOT_D)
			bits |= 8;
		else if (slot >= ISA_SLOT_S0 && slot <= ISA_SLOT_S2S)
			bits |= 1u << (slot - ISA_SLOT_S0) % 3;
	}
	return bits;
}

unsigned isa_int_opsel(const struct isa_inst *in)
{
	return in->f[ISA_F_OPSEL] ? in->f[ISA_F_OPSEL] & opsel_bits(in) : 0;
}

/* neg and abs bits that are accepted although they mean nothing. */
static unsigned mods_ignored(const struct decoder *d)
{
	switch (d->in->op) {
	case ISA_v_ldexp_f32:
	case ISA_v_ldexp_f64:
	case ISA_v_trig_preop_f64:
		return 2;
	case ISA_v_cvt_pk_u8_f32:
		return 6;
	}
	return d->op->flags & ISA_OPSEL && !d->mods ? d->has : 0;
}

/* VOP3 and VOP3SD: what the row does not have must be zero. */
static const char *check_vop3(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;
	uint32_t flags = d->op->flags;

	d->mods = (flags & ISA_MOD0 ? 1 : 0) | (flags & ISA_MOD1 ? 2 : 0) |
		  (flags & ISA_MOD2 ? 4 : 0);
	d->mods &= d->has;
	if ((f[ISA_F_NEG] | f[ISA_F_ABS]) & ~(d->mods | mods_ignored(d)))
		return "neg or abs not allowed here";
	if (f[ISA_F_CLAMP] && !(flags & ISA_CLAMP))
		return "clamp not allowed here";
	if (f[ISA_F_OMOD] && !(flags & ISA_OMOD))
		return "output modifier not allowed here";
	if (flags & ISA_OPSEL && f[ISA_F_OPSEL] & 7 & ~d->has)
		return "op_sel of a source that does not exist";
	if (!d->has && f[ISA_F_VDST])
		return unused_field;
	d->opsel = isa_int_opsel(in);
	return NULL;
}

static const char *check_vop3p(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	d->mods = 7;
	if ((f[ISA_F_NEG] | f[ISA_F_NEG_HI] | f[ISA_F_OPSEL]) & ~d->has)
		return "modifier of a source that does not exist";
	if (f[ISA_F_CLAMP] && !(d->op->flags & ISA_CLAMP))
		return "clamp not allowed here";
	if (f[ISA_F_OPSEL] && isa_int_whole_matrix(in))
		return "op_sel not allowed here";
	if (is_dpp(f[ISA_F_SRC0]) && f[ISA_F_SRC1] < SRC_VGPR &&
	    d->op->opnd[1].type == ISA_T_MIX)
		return "this source must be a VGPR";
	return NULL;
}

bool isa_int_whole_matrix(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);

	return op->pipe == ISA_PIPE_WMMA &&
	       isa_type_info(op->opnd[0].type)->bits == 32;
}

/* Modifiers, and sources that the row does not have. */
static const char *check_vector(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;

	if (!is_vop3(in))
		return NULL;
	d->has = sources(d->op);
	if ((f[ISA_F_SRC0] && !(d->has & 1)) ||
	    (f[ISA_F_SRC1] && !(d->has & 2)) ||
	    (f[ISA_F_SRC2] && !(d->has & 4)))
		return unused_field;
	if (in->fmt == ISA_FMT_VOP3P)
		return check_vop3p(d);
	if (in->fmt != ISA_FMT_VINTERP)
		return check_vop3(d);
	d->mods = 7;
	if (f[ISA_F_OPSEL] && !(d->op->flags & ISA_OPSEL))
		return "op_sel not allowed here";
	d->opsel = isa_int_opsel(in);
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

	if ((f[ISA_F_ADDR] && !(use & USE_ADDR)) ||
	    (f[ISA_F_DATA0] && !(use & USE_DATA0)) ||
	    (f[ISA_F_DATA1] && !(use & USE_DATA1)) ||
	    (f[ISA_F_VDST] && !(use & USE_VDST)) ||
	    (!d->op->n_opnd && (f[ISA_F_OFFSET0] || f[ISA_F_OFFSET1])))
		return unused_field;
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

	if (f[ISA_F_TFE] && (d->in->fmt == ISA_FMT_MTBUF ||
			     flags & (ISA_ATOMIC | ISA_LDSDMA)))
		return "tfe not allowed here";
	if (!d->op->n_opnd && (f[ISA_F_TFE] || f[ISA_F_OFFEN] ||
			       f[ISA_F_IDXEN] || f[ISA_F_GLC] || f[ISA_F_DLC]))
		return unused_field;
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
		return unused_field;
	if (!strstr(d->op->name, "bvh"))
		return f[ISA_F_D16] && !has_d16(d->op->name) ?
			       "d16 not allowed here" : NULL;
	/* Ray tracing: constants stand where images have their options. */
	if (f[ISA_F_DMASK] != 15 || !f[ISA_F_UNORM] || !f[ISA_F_R128] ||
	    f[ISA_F_DIM] || f[ISA_F_SLC] || f[ISA_F_DLC] || f[ISA_F_GLC] ||
	    f[ISA_F_D16] || f[ISA_F_TFE] || f[ISA_F_LWE])
		return "fixed field of a ray-tracing instruction differs";
	return NULL;
}

/* Fields that the format has and the row may not use. */
static const char *check(struct decoder *d)
{
	const struct isa_inst *in = d->in;
	const uint32_t *f = in->f;
	bool unused = false;

	switch (in->fmt) {
	case ISA_FMT_SOPP:
		unused = !d->op->n_opnd && f[ISA_F_SIMM16];
		break;
	case ISA_FMT_SMEM: /* invalidations and probes know no caches */
		unused = !(d->op->flags & ISA_LOAD) &&
			 (f[ISA_F_GLC] || f[ISA_F_DLC]);
		break;
	case ISA_FMT_VOP1:
		unused = !d->op->n_opnd && f[ISA_F_VDST];
		break;
	case ISA_FMT_DS:
		return check_lds(d);
	case ISA_FMT_FLAT:
		unused = f[ISA_F_SADDR] != ISA_R_NULL || f[ISA_F_SVE];
		break;
	case ISA_FMT_GLOBAL:
		unused = f[ISA_F_SVE];
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
	return unused ? unused_field : NULL;
}

/*
 * WMMA: the lanes of a wave share the 16 x 16 results and addends, so twice
 * the lanes have half of them each; A and B are the same in both.
 */
static int matrix_share(const struct decoder *d, int slot)
{
	bool shared = slot == ISA_SLOT_D || slot == ISA_SLOT_S2I;

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
			return image(d);
		if (op->opnd[i].slot == ISA_SLOT_EXPORT)
			return export_operands(in);
		o = &in->opnd[in->n_opnd++];
		o->slot = op->opnd[i].slot;
		o->type = op->opnd[i].type;
		o->dwords = isa_type_dwords(o->type, d->t->wave);
		if (d->op->pipe == ISA_PIPE_WMMA)
			o->dwords /= matrix_share(d, o->slot);
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
	in->op = isa_vopd_op(in->f[ISA_F_OP], false, NULL);
	in->op_y = isa_vopd_op(in->f[ISA_F_OPY], true, NULL);
	if (!in->op || !in->op_y)
		return "unknown opcode";
	if (!d->t->lax &&
	    ((in->op == ISA_v_mov_b32 && in->f[ISA_F_VSRC1]) ||
	     (in->op_y == ISA_v_mov_b32 && in->f[ISA_F_VSRC1Y])))
		return unused_field;
	d->op = isa_op_info(in->op);
	why = operands(d);
	if (why)
		return why;
	in->n_opnd_x = in->n_opnd;
	d->op = isa_op_info(in->op_y);
	d->y = true;
	return operands(d);
}

static const char *single(struct decoder *d, uint64_t w)
{
	struct isa_inst *in = d->in;
	const char *why;

	in->op = isa_op_at(d->t->gen, in->fmt, in->f[ISA_F_OP]);
	if (!in->op)
		return "unknown opcode";
	d->op = isa_op_info(in->op);
	if (in->fmt == ISA_FMT_VOP3 && needs_sdst(d->op)) {
		memset(in->f, 0, sizeof(in->f));
		in->fmt = ISA_FMT_VOP3SD;
		extract(in, w);
	}
	why = check(d);
	if (why && !(d->t->lax && why == unused_field))
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
	uint64_t w;

	memset(in, 0, sizeof(*in));
	if (!isa_gen_known(t->gen))
		return "this generation's encodings are not known";
	if (size_bytes > ISA_MAX_SIZE_BYTES)
		size_bytes = ISA_MAX_SIZE_BYTES;
	d.n_words = size_bytes / 4;
	memcpy(d.word, code, 4 * d.n_words);
	if (!d.n_words)
		return "truncated";
	in->fmt = format_of(d.word[0]);
	if (!in->fmt)
		return "reserved encoding";
	f = isa_fmt_info(in->fmt);
	if (d.n_words < f->dwords)
		return "truncated";
	w = d.word[0];
	if (f->dwords == 2)
		w |= (uint64_t)d.word[1] << 32;
	d.at = f->dwords;
	extract(in, w);
	why = in->fmt == ISA_FMT_VOPD ? vopd(&d) : single(&d, w);
	in->size_bytes = 4 * d.at;
	return why;
}
