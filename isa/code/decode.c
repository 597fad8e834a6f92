/*
 * isa/code/decode.c - bytes to struct isa_inst.
 *
 * The word's top bits give the format, the opcode gives the row of
 * isa/tables/insts.def, and the row's operand slots say what the fields mean.
 * The decoder refuses what LLVM 19 refuses: unused fields that are not zero,
 * modifiers that the row does not take, register tuples beyond the file.  But
 * sources that a VOP3 row does not have may be anything, as the chip has it and
 * later LLVMs need.  Bits that are ignored stay in f[] only, so that encoding restores the same bytes.
 */
#include <string.h>

#include "base/base.h"
#include "isa/code/decode_int.h"

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
	/* 64-bit integers see the bits of a double, as in LLVM. */
	if (t->bits == 64)
		return f64[i];
	if (t->kind == 'G')
		return bf16[i];
	/* Packed integers see the f32 bits, single 16-bit ones the f16. */
	if (t->bits == 16 && (t->kind == 'F' || t->count == 1))
		return f16[i];
	return f32[i];
}

/* -------------------------------------------------------------- words ---- */

static enum isa_fmt format_of(uint32_t w)
{
#define FORMAT(name, dwords, mask, bits) \
	if ((w & (mask)) == (bits))      \
		return ISA_FMT_##name;
#include "isa/tables/formats.def"
	return ISA_FMT_NONE;
}

/* Formats of gfx11 that the generation lacks, or that the table leaves out. */
static bool is_absent(enum isa_gen gen, enum isa_fmt fmt)
{
	switch (fmt) {
	case ISA_FMT_MIMG:
	case ISA_FMT_EXP:
		return true;
	case ISA_FMT_VOPD:
	case ISA_FMT_VINTERP:
	case ISA_FMT_LDSDIR:
		return gen < ISA_GFX11;
	default:
		return false;
	}
}

/* A format without a LAYOUT of the generation is encoded as in gfx11. */
static enum isa_fmt format_in(enum isa_gen gen, uint32_t w)
{
	const enum isa_gen whose = isa_layout_gen(gen);
	enum isa_fmt fmt;

#define LAYOUT(name, its_gen, fmt, dwords, mask, bits)          \
	if (whose == ISA_##its_gen && (w & (mask)) == (bits))   \
		return ISA_FMT_##fmt;
#include "isa/tables/formats.def"
	fmt = format_of(w);
	if (isa_layout(gen, fmt) != fmt || is_absent(gen, fmt))
		return ISA_FMT_NONE;
	return fmt;
}

enum isa_fmt isa_format_of(enum isa_gen gen, uint32_t word)
{
	return gen == ISA_GFX12 || gen < ISA_GFX11 ? format_in(gen, word) :
							format_of(word);
}

/* One switch over all formats, so that shifts and masks are constants. */
static void extract_fields(struct isa_inst *in, const uint32_t *word)
{
	const bool swap = in->m0_is_124;
	uint32_t v;

	switch (in->layout) {
#define FORMAT(name, dwords, mask, bits) case ISA_FMT_##name:
#define LAYOUT(name, gen, fmt, dwords, mask, bits) case ISA_FMT_##name:
#define FIELD(fmt, field, low, width) \
	v = word[(low) / 32] >> (low) % 32 & ((1u << (width)) - 1); \
	in->f[ISA_F_##field] = \
		is_scalar_field(ISA_F_##field) && swap ? isa_swap_m0(v) : v;
#define END_FORMAT(name) break;
#include "isa/tables/formats.def"
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

	/* The 16-bit move accepts them and ignores them. */
	return (flags & ISA_MOD0 || d->in->op == ISA_v_mov_b16 ? 3 : 0) |
	       (flags & ISA_MOD1 ? 12 : 0);
}

/* The DPP dword, and whether this row may have one in this encoding. */
static const char *decode_dpp(struct decoder *d)
{
	struct isa_inst *in = d->in;
	uint32_t src0 = in->f[ISA_F_SRC0], w;
	bool vop3 = is_vop3(in);

	if (d->t->gen < ISA_GFX11 && isa_fmt_is_e32(in->fmt) &&
	    src0 == SRC_SDWA && d->op->n_opnd)
		return isa_decode_sdwa(d);
	if (!(isa_fmt_is_e32(in->fmt) || vop3) || in->fmt == ISA_FMT_VINTERP ||
	    !is_dpp(src0) || !d->op->n_opnd)
		return NULL;
	if (!(d->op->flags & (vop3 ? ISA_DPP64 : ISA_DPP)) ||
	    (d->t->gen < ISA_GFX11 &&
	     (vop3 || in->fmt == ISA_FMT_VOPC ||
	      in->op == ISA_v_pk_fmac_f16)))
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

static const char *decode_vopd(struct decoder *d)
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
		return isa_decode_unused;
	d->op = isa_op_info(in->op);
	why = isa_decode_operands(d);
	if (why)
		return why;
	in->n_opnd_x = in->n_opnd;
	d->op = isa_op_info(in->op_y);
	d->y = true;
	return isa_decode_operands(d);
}

/* The row that the words name; decode_vopd() finds both halves of VOPD. */
static const char *find_row(struct decoder *d)
{
	struct isa_inst *in = d->in;
	uint32_t high = in->f[ISA_F_OPHI] << isa_fmt_info(in->layout)->op_bits;

	if (in->fmt == ISA_FMT_VOPD)
		return NULL;
	in->op = isa_op_at(d->t->gen, in->fmt, high | in->f[ISA_F_OP]);
	if (!in->op)
		return "unknown opcode";
	if (in->fmt == ISA_FMT_VOP3 && needs_sdst(isa_op_info(in->op))) {
		memset(in->f, 0, sizeof(in->f));
		in->fmt = in->layout = ISA_FMT_VOP3SD;
		extract_fields(in, d->word);
	}
	return NULL;
}

static const char *decode_single(struct decoder *d)
{
	struct isa_inst *in = d->in;
	const char *why;

	d->op = isa_op_info(in->op);
	why = isa_decode_check(d);
	if (why && !(d->t->lax && why == isa_decode_unused))
		return why;
	if (in->fmt == ISA_FMT_MIMG && in->f[ISA_F_NSA]) {
		if (d->at >= d->n_words)
			return "truncated: address dword missing";
		in->extra[0] = d->word[d->at++];
	}
	why = decode_dpp(d);
	return why ? why : isa_decode_operands(d);
}

/* What follows from the fields and the row. */
static const char *decode_meaning(struct decoder *d)
{
	return d->in->fmt == ISA_FMT_VOPD ? decode_vopd(d) : decode_single(d);
}

const char *isa_decode_fields(const struct isa_target *t, struct isa_inst *in)
{
	struct decoder d = { .t = t,
			     .in = in,
			     .word = { in->extra[0] },
			     .n_words = 1 };

	return decode_meaning(&d);
}

const char *isa_decode(const struct isa_target *t, const void *code,
		       size_t size_bytes, struct isa_inst *in)
{
	struct decoder d = { .t = t, .in = in };
	const struct isa_fmt_info *f;
	const char *why;

	isa_inst_clear(in);
	if (!isa_gen_known(t->gen))
		return "this generation's encodings are not known";
	if (size_bytes > ISA_MAX_SIZE_BYTES)
		size_bytes = ISA_MAX_SIZE_BYTES;
	d.n_words = size_bytes / 4;
	memcpy(d.word, code, 4 * d.n_words);
	if (!d.n_words)
		return "truncated";
	in->gen = t->gen;
	in->fmt = isa_format_of(t->gen, d.word[0]);
	in->m0_is_124 = t->gen < ISA_GFX11;
	if (!in->fmt)
		return "reserved encoding";
	in->layout = isa_layout(t->gen, in->fmt);
	f = isa_fmt_info(in->layout);
	if (d.n_words < f->dwords)
		return "truncated";
	d.at = f->dwords;
	extract_fields(in, d.word);
	why = find_row(&d);
	if (!why)
		why = decode_meaning(&d);
	in->size_bytes = 4 * d.at;
	return why;
}
