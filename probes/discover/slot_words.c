/*
 * probes/discover/slot_words.c - the words that stand for a slot.
 *
 * Operands come from the format alone, so that a slot that no table knows is
 * run like any other.  The table is used for known rows only, and only to
 * leave fields zero that the row does not read (disassemblers insist on that)
 * and to aim jumps at the markers.
 */
#include <string.h>

#include "probes/discover/discover_int.h"

#define VGPR(n)	 (256u + (n))
#define INLINE_0 128u
#define MSG_INT	 1u   /* sendmsg(MSG_INTERRUPT) */
#define MSG_TIME 131u /* sendmsg(MSG_RTN_GET_REALTIME) */
#define SOME_IMM 0x7123u
#define DUAL_MOV 8u /* v_dual_mov_b32, the other half of a VOPD slot */

/* Fields that are zero unless the row has an operand that reads them. */
static const struct {
	uint8_t field, first, last; /* range of enum isa_slot */
} optional[] = {
	{ ISA_F_ADDR, ISA_SLOT_VADDR, ISA_SLOT_VADDR },
	{ ISA_F_OFFEN, ISA_SLOT_VADDR, ISA_SLOT_VADDR },
	{ ISA_F_DATA0, ISA_SLOT_DATA, ISA_SLOT_DATA0 },
	{ ISA_F_DATA1, ISA_SLOT_DATA1, ISA_SLOT_DATA1 },
	{ ISA_F_SBASE, ISA_SLOT_SBASE, ISA_SLOT_SBASE },
	{ ISA_F_SRSRC, ISA_SLOT_SRSRC, ISA_SLOT_SRSRC },
	{ ISA_F_SOFFSET, ISA_SLOT_SOFF, ISA_SLOT_SOFF },
	{ ISA_F_SOFFSET, ISA_SLOT_SOFFR, ISA_SLOT_SOFFR },
	{ ISA_F_SOFFSET, ISA_SLOT_SRSRC, ISA_SLOT_SRSRC },
	{ ISA_F_OFFSET1, ISA_SLOT_OFF2, ISA_SLOT_OFF2 },
	{ ISA_F_OFFSET1, ISA_SLOT_OFF16, ISA_SLOT_SWIZZLE },
	{ ISA_F_SSRC0, ISA_SLOT_MSG, ISA_SLOT_MSG },
	{ ISA_F_SRC2, ISA_SLOT_S2I, ISA_SLOT_S2I },
	{ ISA_F_SRC2, ISA_SLOT_CI, ISA_SLOT_CI },
};
/* The same for sources 0, 1 and 2. */
static const uint8_t sources[3][3] = {
	{ ISA_F_SRC0, ISA_F_SSRC0, ISA_F_SRC0 },
	{ ISA_F_SRC1, ISA_F_SSRC1, ISA_F_VSRC1 },
	{ ISA_F_SRC2, ISA_F_SRC2, ISA_F_SRC2 },
};

typedef uint32_t fields[ISA_F_COUNT];

/* Which of those fields the row reads. */
static void find_read_fields(const struct isa_op_info *op,
			     bool used[ISA_F_COUNT])
{
	for (int i = 0; i < op->n_opnd; i++) {
		const unsigned slot = op->opnd[i].slot;

		for (size_t k = 0; k < ARRAY_SIZE(optional); k++)
			if (slot >= optional[k].first &&
			    slot <= optional[k].last)
				used[optional[k].field] = true;
		if (slot >= ISA_SLOT_S0 && slot <= ISA_SLOT_S2S)
			for (int k = 0; k < 3; k++)
				used[sources[(slot - ISA_SLOT_S0) % 3][k]] =
					true;
	}
}

static bool has_slot(const struct isa_op_info *op, enum isa_slot slot)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == slot)
			return true;
	return false;
}

/* ------------------------------------------------ operands by format ---- */

static void fill_scalar(const struct probe_slot *s, fields f)
{
	f[ISA_F_SSRC0] = PROBE_S_SRC0;
	f[ISA_F_SSRC1] = PROBE_S_SRC1;
	switch (s->fmt) {
	case ISA_FMT_SOP1:
		/* Whatever is or may be a jump goes to the second marker. */
		if (!s->op || isa_op_info(s->op)->pipe == ISA_PIPE_BRANCH)
			f[ISA_F_SSRC0] = PROBE_S_NEXT;
		else if (isa_op_info(s->op)->pipe == ISA_PIPE_MSG)
			f[ISA_F_SSRC0] = MSG_TIME;
		break;
	case ISA_FMT_SOPK:
		/* Bit 0 of the MODE register, or a jump over one dword. */
		f[ISA_F_SIMM16] = 1;
		if (s->op && isa_op_info(s->op)->pipe == ISA_PIPE_SALU &&
		    !has_slot(isa_op_info(s->op), ISA_SLOT_HWREG))
			f[ISA_F_SIMM16] = SOME_IMM;
		if (s->op && isa_op_info(s->op)->pipe == ISA_PIPE_SPECIAL)
			f[ISA_F_SDST] = s->op == ISA_s_version ? 0 : ISA_R_NULL;
		break;
	case ISA_FMT_SOPP:
		if (s->op && (isa_op_info(s->op)->pipe == ISA_PIPE_BRANCH))
			f[ISA_F_SIMM16] =
				!(isa_op_info(s->op)->flags & ISA_END);
		if (s->op && isa_op_info(s->op)->pipe == ISA_PIPE_MSG)
			f[ISA_F_SIMM16] = MSG_INT;
		if (s->op == ISA_s_trap || s->op == ISA_s_round_mode)
			f[ISA_F_SIMM16] = 1;
		break;
	case ISA_FMT_SMEM:
		f[ISA_F_SBASE] = PROBE_S_RSRC / 2;
		f[ISA_F_SOFFSET] = ISA_R_NULL;
		break;
	default:
		break;
	}
}

/* Sources that must be scalar, and masks. */
static void scalar_sources(const struct isa_op_info *op, fields f)
{
	for (int i = 0; i < op->n_opnd; i++) {
		const int slot = op->opnd[i].slot;

		if (slot == ISA_SLOT_S0S)
			f[ISA_F_SRC0] = PROBE_S_SRC0;
		else if (slot == ISA_SLOT_S1S)
			f[ISA_F_SRC1] = PROBE_S_SRC1;
		else if (slot == ISA_SLOT_S2S || slot == ISA_SLOT_CI)
			f[ISA_F_SRC2] = PROBE_S_SRC1;
	}
}

static void fill_vector(const struct probe_slot *s, fields f)
{
	f[ISA_F_SRC0] = VGPR(PROBE_V_SRC0);
	f[ISA_F_SRC1] = VGPR(PROBE_V_SRC1);
	f[ISA_F_SRC2] = VGPR(PROBE_V_SRC2);
	f[ISA_F_VSRC1] = PROBE_V_SRC1;
	if (s->fmt == ISA_FMT_VOP3P) {
		f[ISA_F_OPSEL_HI] = 3;
		f[ISA_F_OPSEL_HI2] = 1;
	} else if (s->fmt == ISA_FMT_VOPD) {
		/* Banks and destination parity as RDNA3 ISA 7.6 wants them. */
		const bool y = !strcmp(s->encoding, "VOPDY");

		f[ISA_F_OP] = y ? DUAL_MOV : (uint32_t)s->opcode;
		f[ISA_F_OPY] = y ? (uint32_t)s->opcode : DUAL_MOV;
		f[ISA_F_SRC0Y] = VGPR(PROBE_V_SRC0 + 1);
		if (y)
			f[ISA_F_VSRC1Y] = PROBE_V_SRC1 + 1;
		f[ISA_F_VSRC1] = y ? 0 : PROBE_V_SRC1;
	} else if (s->op && s->fmt == ISA_FMT_VOP3) {
		scalar_sources(isa_op_info(s->op), f);
		if (isa_op_info(s->op)->flags & ISA_WEXEC)
			f[ISA_F_VDST] = ISA_R_EXEC_LO;
	}
}

static void fill_memory(const struct probe_slot *s, fields f)
{
	const enum isa_fmt layout = isa_layout(s->gen, s->fmt);

	f[ISA_F_DATA0] = PROBE_V_SRC0;
	f[ISA_F_DATA1] = PROBE_V_SRC1;
	f[ISA_F_SADDR] = ISA_R_NULL;
	f[ISA_F_ADDR] = PROBE_V_OFFSET;
	f[ISA_F_SRSRC] = PROBE_S_RSRC / 4;
	switch (s->fmt) {
	case ISA_FMT_DS:
		f[ISA_F_ADDR] = PROBE_V_LDS;
		f[ISA_F_OFFSET1] = 1;
		f[ISA_F_GDS] = s->op && isa_op_info(s->op)->flags & ISA_GDSONLY;
		break;
	case ISA_FMT_FLAT:
		f[ISA_F_ADDR] = PROBE_V_ADDR;
		break;
	case ISA_FMT_GLOBAL:
		f[ISA_F_SADDR] = PROBE_S_RSRC;
		break;
	case ISA_FMT_SCRATCH:
		f[ISA_F_ADDR] = PROBE_V_SCRATCH;
		f[ISA_F_SVE] = 1;
		break;
	case ISA_FMT_MTBUF:
		f[ISA_F_FORMAT] = probe_buffer_format(s->gen);
		/* fallthrough */
	case ISA_FMT_MUBUF:
		f[ISA_F_SOFFSET] = isa_field_width(layout, ISA_F_SOFFSET) > 7 ?
					   INLINE_0 :
					   ISA_R_NULL;
		f[ISA_F_OFFEN] = 1;
		break;
	case ISA_FMT_MIMG:
		f[ISA_F_DMASK] = 1;
		f[ISA_F_NSA] = !strcmp(s->encoding, "MIMG_NSA");
		break;
	default:
		break;
	}
	/* Atomics give the old value back. */
	if (s->op && (has_slot(isa_op_info(s->op), ISA_SLOT_DG) ||
		      has_slot(isa_op_info(s->op), ISA_SLOT_DATAG)))
		f[ISA_F_GLC] = 1;
}

/* Fields that a known row does not read become zero. */
static void zero_unused(const struct probe_slot *s, fields f)
{
	bool used[ISA_F_COUNT] = { false };

	find_read_fields(isa_op_info(s->op), used);
	if (s->fmt == ISA_FMT_VOPD) {
		/* Two rows share the word; the moving half has one source. */
		if (!used[ISA_F_VSRC1])
			f[ISA_F_VSRC1] = f[ISA_F_VSRC1Y] = 0;
		return;
	}
	for (size_t k = 0; k < ARRAY_SIZE(optional); k++)
		if (!used[optional[k].field])
			f[optional[k].field] = 0;
	for (int i = 0; i < 9; i++)
		if (!used[sources[i / 3][i % 3]])
			f[sources[i / 3][i % 3]] = 0;
	if (s->fmt == ISA_FMT_SCRATCH && !f[ISA_F_ADDR])
		f[ISA_F_SVE] = 0;
	if (!has_slot(isa_op_info(s->op), ISA_SLOT_SADDR))
		f[ISA_F_SADDR] = ISA_R_NULL;
}

/* Values that are too wide lose their highest bits, as opcodes do here. */
static void encode_slot(struct probe_slot *s, const fields f)
{
	struct isa_inst in = { .fmt = (uint8_t)s->fmt,
			       .gen = (uint8_t)s->gen,
			       .layout = (uint8_t)isa_layout(s->gen, s->fmt),
			       .m0_is_124 = s->gen < ISA_GFX11 };
	uint8_t bytes[ISA_MAX_SIZE_BYTES];

	for (int i = 0; i < ISA_F_COUNT; i++)
		in.f[i] = f[i] & ((1u << isa_field_width(in.layout, i)) - 1);
	s->n_words = isa_encode(&in, bytes) / 4;
	memcpy(s->word, bytes, 4 * (size_t)s->n_words);
}

static void set_opcode(const struct probe_slot *s, fields f)
{
	const enum isa_fmt layout = isa_layout(s->gen, s->fmt);

	f[ISA_F_OP] = (uint32_t)s->opcode;
	f[ISA_F_OPHI] = (uint32_t)s->opcode >> isa_fmt_info(layout)->op_bits;
}

void probe_slot_write(struct probe_slot *s)
{
	fields f = { 0 };

	set_opcode(s, f);
	if (isa_fmt_has(s->fmt, ISA_F_VDST) ||
	    isa_fmt_has(s->fmt, ISA_F_VDATA) ||
	    isa_fmt_has(s->fmt, ISA_F_VSRC1)) {
		fill_vector(s, f);
		fill_memory(s, f);
	} else {
		fill_scalar(s, f);
	}
	if (s->op)
		zero_unused(s, f);
	encode_slot(s, f);
}

/* ---------------------------------------------------------- variants ---- */

#define IMAGE_VARIANTS 32

static int image_variant(const struct probe_slot *s, int i, uint32_t *word)
{
	if (i > IMAGE_VARIANTS)
		return 0;
	if (i == IMAGE_VARIANTS) { /* ray queries: UNORM, R128, DMASK 15 */
		word[0] = s->word[0] | 0x8f80u;
		return s->n_words;
	}
	i--;
	/* DIM in bits 4..2, DMASK in 11..8, A16 is bit 16. */
	word[0] = (s->word[0] & ~0x10f1cu) | (uint32_t)(i & 7) << 2 |
		  (i & 8 ? 0xfu : 1u) << 8 | (i & 16 ? 1u << 16 : 0);
	return s->n_words;
}

int probe_slot_variant(const struct probe_slot *s, int i,
		       uint32_t word[PROBE_WORDS_MAX])
{
	memcpy(word, s->word, sizeof(s->word));
	if (i == 0)
		return s->n_words;
	if (s->fmt == ISA_FMT_MIMG)
		return image_variant(s, i, word);
	if (i > 1 || s->op)
		return 0;
	/* The opcode alone, every operand zero. */
	if (s->fmt) {
		struct probe_slot zero = *s;
		fields f = { 0 };

		if (s->fmt == ISA_FMT_VOPD)
			return 0;
		set_opcode(s, f);
		encode_slot(&zero, f);
		memcpy(word, zero.word, sizeof(zero.word));
	} else {
		word[1] = 0;
	}
	return s->n_words;
}
