/*
 * isa-gen - random machine code that is mostly valid: a row of the
 * instruction table (or a pair of dual-issue halves), fields filled with what
 * stands in such fields, and now and then anything at all.
 *
 *	struct isa_gen_state g = { .seed = 1, .gen = ISA_GFX11 };
 *	uint8_t code[ISA_MAX_SIZE_BYTES];
 *	gen_inst(&g, code);		// always all ISA_MAX_SIZE_BYTES
 */
#ifndef T0_TESTS_ISA_GEN_H
#define T0_TESTS_ISA_GEN_H

#include <string.h>

#include "base/base.h"
#include "isa/code/code.h"

struct isa_gen_state {
	uint64_t seed; /* not 0 */
	enum isa_gen gen;
};

/* xorshift64* by Vigna. */
static inline uint32_t gen_u32(struct isa_gen_state *g)
{
	g->seed ^= g->seed >> 12;
	g->seed ^= g->seed << 25;
	g->seed ^= g->seed >> 27;
	return (uint32_t)((g->seed * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

/* 0..n-1 */
static inline uint32_t gen_below(struct isa_gen_state *g, uint32_t n)
{
	return (uint32_t)((uint64_t)gen_u32(g) * n >> 32);
}

static inline bool gen_percent(struct isa_gen_state *g, uint32_t percent)
{
	return gen_below(g, 100) < percent;
}

/* A scalar register number, mostly aligned so that tuples are possible. */
static inline uint32_t gen_sgpr(struct isa_gen_state *g)
{
	static const uint8_t special[] = { 106, 107, 108, 112, 116, 120, 122,
					   123, 124, 124, 125, 126, 127 };

	if (gen_percent(g, 25))
		return special[gen_below(g, sizeof(special))];
	if (gen_percent(g, 60))
		return gen_below(g, 27) * 4;
	return gen_below(g, 106);
}

/* The value of an 8- or 9-bit source field. */
static inline uint32_t gen_source(struct isa_gen_state *g)
{
	static const uint8_t special[] = { 235, 236, 237, 238, 239, 249, 249,
					   250, 250, 250, 251, 252, 253,
					   254, 255, 255, 255, 233, 234 };
	uint32_t p = gen_below(g, 100);

	if (p < 40)
		return 256 + gen_below(g, 256);
	if (p < 62)
		return gen_sgpr(g);
	if (p < 72)
		return 128 + gen_below(g, 81);
	if (p < 80)
		return 240 + gen_below(g, 9);
	if (p < 96)
		return special[gen_below(g, sizeof(special))];
	return gen_below(g, 512);
}

static inline uint32_t gen_field(struct isa_gen_state *g, int field)
{
	uint32_t any = gen_u32(g);

	switch (field) {
	case ISA_F_SSRC0:
	case ISA_F_SSRC1:
	case ISA_F_SRC0:
	case ISA_F_SRC1:
	case ISA_F_SRC2:
	case ISA_F_SRC0Y:
	case ISA_F_SOFFSET:
		return gen_source(g);
	case ISA_F_SDST:
	case ISA_F_SDATA:
		return gen_sgpr(g);
	case ISA_F_SADDR:
		return gen_percent(g, 50) ? ISA_R_NULL : gen_sgpr(g);
	case ISA_F_RSV0:
	case ISA_F_RSV1:
	case ISA_F_RSV2:
	case ISA_F_RSV3:
		return gen_percent(g, 96) ? 0 : any;
	case ISA_F_OPSEL_HI:
		return gen_percent(g, 60) ? 3 : any;
	case ISA_F_OPSEL_HI2:
		return gen_percent(g, 60) ? 1 : any;
	case ISA_F_ABS:
	case ISA_F_NEG:
	case ISA_F_NEG_HI:
	case ISA_F_OPSEL:
	case ISA_F_CLAMP:
	case ISA_F_OMOD:
	case ISA_F_TFE:
	case ISA_F_LWE:
	case ISA_F_D16:
	case ISA_F_GDS:
		return gen_percent(g, 70) ? 0 : any;
	case ISA_F_OFFSET:
	case ISA_F_OFFSET0:
	case ISA_F_OFFSET1:
	case ISA_F_SIMM16:
	case ISA_F_DATA1:
		return gen_percent(g, 35) ? 0 : any & gen_u32(g);
	default:
		return any;
	}
}

/*
 * VOP3 and the like: only sources and modifiers that the row has, most of the
 * time; the others are where refusals are found.
 */
static inline void gen_sources(struct isa_gen_state *g, struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	unsigned have = 0;

	for (int i = 0; i < op->n_opnd; i++) {
		int slot = op->opnd[i].slot;
		int n = slot == ISA_SLOT_S2I || slot == ISA_SLOT_CI ?
				2 :
				(slot - ISA_SLOT_S0) % 3;

		if (slot < ISA_SLOT_S0 || slot > ISA_SLOT_S2I) {
			if (slot == ISA_SLOT_CI)
				in->f[ISA_F_SRC2] = gen_sgpr(g);
			have |= slot == ISA_SLOT_CI ? 4 : 0;
			continue;
		}
		have |= 1u << n;
		if (slot >= ISA_SLOT_S0V && slot <= ISA_SLOT_S2V &&
		    gen_percent(g, 90))
			in->f[ISA_F_SRC0 + n] |= 256;
		if (slot >= ISA_SLOT_S0S && slot <= ISA_SLOT_S2S &&
		    gen_percent(g, 90))
			in->f[ISA_F_SRC0 + n] &= 255;
	}
	if (gen_percent(g, 12))
		return;
	for (int i = 0; i < 3; i++)
		if (!(have >> i & 1)) {
			in->f[ISA_F_SRC0 + i] = 0;
			in->f[ISA_F_ABS] &= ~(1u << i);
			in->f[ISA_F_NEG] &= ~(1u << i);
			if (i < 2 || in->fmt != ISA_FMT_VOP3)
				in->f[ISA_F_OPSEL] &= ~(1u << i);
		}
	if (!(op->flags & (ISA_MOD0 | ISA_MOD1 | ISA_MOD2)) &&
	    in->fmt != ISA_FMT_VOP3P)
		in->f[ISA_F_NEG] = in->f[ISA_F_ABS] = 0;
	if (!(op->flags & ISA_CLAMP))
		in->f[ISA_F_CLAMP] = 0;
	if (!(op->flags & ISA_OMOD))
		in->f[ISA_F_OMOD] = 0;
}

/* Fields that exist in the words but not in this row are mostly zero. */
static inline void gen_unused(struct isa_gen_state *g, struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	unsigned used = 0;

	if (gen_percent(g, 10))
		return;
	for (int i = 0; i < op->n_opnd; i++)
		switch (op->opnd[i].slot) {
		case ISA_SLOT_D:
		case ISA_SLOT_DG:
			used |= 1;
			break;
		case ISA_SLOT_VADDR:
			used |= 2;
			break;
		case ISA_SLOT_DATA:
		case ISA_SLOT_DATA0:
			used |= 4;
			break;
		case ISA_SLOT_DATA1:
			used |= 8;
			break;
		}
	if (!(used & 1))
		in->f[ISA_F_VDST] = 0;
	if (!(used & 2))
		in->f[ISA_F_ADDR] = 0;
	if (!(used & 4))
		in->f[ISA_F_DATA0] = 0;
	if (!(used & 8))
		in->f[ISA_F_DATA1] = 0;
	if (op->flags & ISA_GDSONLY)
		in->f[ISA_F_GDS] = 1;
	if (op->flags & ISA_ATOMIC && op->fmt != ISA_FMT_DS &&
	    op->n_opnd && op->opnd[0].slot != ISA_SLOT_DG)
		in->f[ISA_F_GLC] = 0;
	if (in->fmt == ISA_FMT_FLAT)
		in->f[ISA_F_SADDR] = ISA_R_NULL;
	if (in->fmt != ISA_FMT_SCRATCH)
		in->f[ISA_F_SVE] = 0;
}

/* Images without a sampler, and ray tracing with its fixed fields. */
static inline void gen_image(struct isa_inst *in)
{
	static const uint8_t zero[] = { ISA_F_DIM, ISA_F_SLC, ISA_F_DLC,
					ISA_F_GLC, ISA_F_D16, ISA_F_TFE,
					ISA_F_LWE };
	const struct isa_op_info *op = isa_op_info((enum isa_op)in->op);

	if (!(op->flags & ISA_SAMPLER))
		in->f[ISA_F_SSAMP] = 0;
	if (!strstr(op->name, "bvh"))
		return;
	for (size_t i = 0; i < sizeof(zero); i++)
		in->f[zero[i]] = 0;
	in->f[ISA_F_DMASK] = 15;
	in->f[ISA_F_UNORM] = in->f[ISA_F_R128] = 1;
}

static inline void gen_fit(struct isa_inst *in)
{
	const struct isa_fmt_info *f =
		isa_fmt_info((enum isa_fmt)(in->layout ? in->layout : in->fmt));

	for (int i = 0; i < f->n_fields; i++)
		in->f[f->field[i].field] &= (1u << f->field[i].width) - 1;
}

static inline bool gen_is_vop(int fmt)
{
	return fmt == ISA_FMT_VOP3 || fmt == ISA_FMT_VOP3SD ||
	       fmt == ISA_FMT_VOP3P || fmt == ISA_FMT_VINTERP;
}

/* A DPP16 control word whose control is one that exists, mostly. */
static inline uint32_t gen_dpp16(struct isa_gen_state *g)
{
	static const uint16_t ctrl[] = { 0x000, 0x01b, 0x0e4, 0x101, 0x10f,
					 0x111, 0x11f, 0x121, 0x12f, 0x140,
					 0x141, 0x150, 0x15f, 0x160, 0x16f };
	uint32_t w = gen_u32(g);

	if (gen_percent(g, 80))
		w &= ~0x00f3fe00u; /* no modifiers, nothing reserved */
	if (gen_percent(g, 80))
		w = (w & ~0x1ff00u) |
		    (uint32_t)ctrl[gen_below(g, ARRAY_SIZE(ctrl))] << 8;
	return w;
}

/*
 * An SDWA dword (isa/code/decode_sdwa.c): mostly without what only some rows
 * have, never with reserved parts, of which LLVM 19's disassembler dies.
 */
static inline uint32_t gen_sdwa(struct isa_gen_state *g, int fmt)
{
	static const uint32_t rare[] = { 0x3000c000, 0x08080000, 0x00300000,
					 0x80800000, 0x00000000, 0x00002000 };
	uint32_t w = gen_u32(g);

	for (size_t i = 0; i < ARRAY_SIZE(rare); i++)
		if (gen_percent(g, 70))
			w &= ~rare[i];
	if (fmt == ISA_FMT_VOP1 && gen_percent(g, 95))
		w &= 0x40ffffff;
	return w;
}

/* Makes every dword that LLVM 19 may take for SDWA's one that it survives. */
static inline void gen_tame_sdwa(uint8_t *code)
{
	for (int i = 0; i + 8 <= ISA_MAX_SIZE_BYTES; i += 4) {
		uint32_t w, next;

		memcpy(&w, code + i, 4);
		memcpy(&next, code + i + 4, 4);
		if (w >> 31 || (w & 0x1ff) != 249)
			continue;
		for (int low = 8; low <= 24; low += 8)
			if ((next >> low & 7) == 7)
				next &= ~(1u << low);
		if ((next >> 11 & 3) == 3)
			next &= ~(1u << 11);
		memcpy(code + i + 4, &next, 4);
	}
}

/* What follows as a literal: anything, or what equals an inline constant. */
static inline uint32_t gen_literal(struct isa_gen_state *g)
{
	static const uint32_t known[] = { 0,	      1,	  64,
					  65,	      0xfffffff0, 0xffffffef,
					  0xffff,     0xfff0,	  0x3c00,
					  0x12343c00, 0xc400,	  0x3118,
					  0x3f80,     0x3f000000, 0xbf800000,
					  0x40800000, 0x3e22f983, 0x3ff00000,
					  0xc0100000, 0x80000000, 0x10000 };

	return gen_percent(g, 60) ? gen_u32(g) :
				    known[gen_below(g, ARRAY_SIZE(known))];
}

/* One instruction of this row, in VOP3 if `vop3`, else in its own format. */
static inline void gen_row(struct isa_gen_state *g, enum isa_op op, bool vop3,
			   uint8_t *code)
{
	const struct isa_op_info *info = isa_op_info(op);
	struct isa_inst in = { .op = (uint16_t)op,
			       .gen = (uint8_t)g->gen,
			       .m0_is_124 = g->gen < ISA_GFX11 };
	const struct isa_fmt_info *f;
	int n, opcode = isa_opcode(g->gen, op, vop3);

	in.fmt = vop3 ? ISA_FMT_VOP3 : info->fmt;
	for (int i = 0; vop3 && i < info->n_opnd; i++)
		if (info->opnd[i].slot == ISA_SLOT_CO)
			in.fmt = ISA_FMT_VOP3SD;
	in.layout = (uint8_t)isa_layout(g->gen, (enum isa_fmt)in.fmt);
	f = isa_fmt_info((enum isa_fmt)in.layout);
	for (int i = 0; i < f->n_fields; i++)
		in.f[f->field[i].field] = gen_field(g, f->field[i].field);
	if (gen_is_vop(in.fmt))
		gen_sources(g, &in);
	else if (in.fmt >= ISA_FMT_DS && in.fmt <= ISA_FMT_GLOBAL)
		gen_unused(g, &in);
	if (in.fmt == ISA_FMT_MIMG && gen_percent(g, 90))
		gen_image(&in);
	in.f[ISA_F_OP] = (uint32_t)opcode & ((1u << f->op_bits) - 1);
	if (isa_fmt_has((enum isa_fmt)in.layout, ISA_F_OPHI))
		in.f[ISA_F_OPHI] = (uint32_t)opcode >> f->op_bits;
	if (in.fmt == ISA_FMT_EXP)
		in.f[ISA_F_OP] = 0;
	gen_fit(&in);
	for (int i = 0; i < ISA_MAX_SIZE_BYTES; i += 4) {
		uint32_t w = gen_literal(g);

		memcpy(code + i, &w, 4);
	}
	n = isa_encode(&in, code);
	if (in.f[ISA_F_SRC0] == 250) {
		uint32_t w = gen_dpp16(g);

		memcpy(code + n, &w, 4);
	}
	if (in.f[ISA_F_SRC0] == 249 && g->gen < ISA_GFX11) {
		uint32_t w = gen_sdwa(g, in.fmt);

		memcpy(code + n, &w, 4);
	}
}

static inline void gen_vopd(struct isa_gen_state *g, uint8_t *code)
{
	struct isa_inst in = { .fmt = ISA_FMT_VOPD };
	const struct isa_fmt_info *f = isa_fmt_info(ISA_FMT_VOPD);
	uint32_t w;

	for (int i = 0; i < f->n_fields; i++)
		in.f[f->field[i].field] = gen_field(g, f->field[i].field);
	in.f[ISA_F_OP] = gen_below(g, gen_percent(g, 95) ? 14 : 16);
	in.f[ISA_F_OPY] = gen_below(g, gen_percent(g, 95) ? 19 : 32);
	gen_fit(&in);
	for (int i = 0; i < ISA_MAX_SIZE_BYTES; i += 4) {
		w = gen_literal(g);
		memcpy(code + i, &w, 4);
	}
	isa_encode(&in, code);
}

static inline void gen_any(struct isa_gen_state *g, uint8_t *code)
{
	for (int i = 0; i < ISA_MAX_SIZE_BYTES; i += 4) {
		uint32_t w = gen_u32(g);

		memcpy(code + i, &w, 4);
	}
}

static inline void gen_one(struct isa_gen_state *g, uint8_t *code)
{
	uint32_t p = gen_below(g, 100);

	if (p < 4) {
		gen_any(g, code);
		return;
	}
	if (p < 9 && g->gen >= ISA_GFX11) {
		gen_vopd(g, code);
		return;
	}
	for (;;) {
		enum isa_op op =
			(enum isa_op)(1 + gen_below(g, ISA_OP_COUNT - 1));
		bool vop3 = isa_op_info(op)->flags & ISA_E64 &&
			    gen_percent(g, 50);

		if (isa_opcode(g->gen, op, vop3) < 0)
			continue;
		gen_row(g, op, vop3, code);
		return;
	}
}

static inline void gen_inst(struct isa_gen_state *g, uint8_t *code)
{
	gen_one(g, code);
	if (g->gen < ISA_GFX11)
		gen_tame_sdwa(code);
}

#endif
