/*
 * decode_int - what the files of the decoder share.
 */
#ifndef T0_ISA_DECODE_INT_H
#define T0_ISA_DECODE_INT_H

#include "isa/code/code.h"

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
	SRC_SDWA = 249,
	SRC_DPP16 = 250,
	SRC_VGPR = 256,
};

/* Decoder state of one instruction. */
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

static inline bool is_dpp(uint32_t src0)
{
	return src0 == SRC_DPP16 || src0 == SRC_DPP8 || src0 == SRC_DPP8_FI;
}

static inline bool is_vop3(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
	       in->fmt == ISA_FMT_VOP3P || in->fmt == ISA_FMT_VINTERP;
}

/* Bits of the signed offsets of FLAT, GLOBAL and SCRATCH. */
static inline int flat_offset_bits(enum isa_gen gen)
{
	return gen == ISA_GFX12 ? 24 : gen < ISA_GFX11 ? 12 : 13;
}

/* Fields that hold a scalar register or source, whatever the row. */
static inline bool is_scalar_field(enum isa_field f)
{
	return f == ISA_F_SDST || f == ISA_F_SSRC0 || f == ISA_F_SSRC1 ||
	       f == ISA_F_SDATA || f == ISA_F_SOFFSET || f == ISA_F_SADDR ||
	       f == ISA_F_SRC0 || f == ISA_F_SRC1 || f == ISA_F_SRC2;
}

/* ------------------------------------------------------ decode_opnd.c ---- */

/* The row's operands, from the fields. */
const char *isa_decode_operands(struct decoder *d);

/* An 8- or 9-bit source field. */
const char *isa_decode_source(struct decoder *d, struct isa_operand *o,
			   uint32_t v);
/* Fill the register number in; the reason, if there is no such tuple. */
const char *isa_decode_vgpr(struct isa_operand *o, uint32_t reg);
const char *isa_decode_sgpr(struct isa_operand *o, uint32_t reg);

/* ------------------------------------------------------ decode_sdwa.c ---- */

/* The SDWA dword, and whether this row may have one; fills in->sdwa. */
const char *isa_decode_sdwa(struct decoder *d);
/* Source 0 or 1: its register and modifiers. */
const char *isa_decode_sdwa_source(struct decoder *d, struct isa_operand *o,
				int i);

/* ----------------------------------------------------- decode_check.c ---- */

/*
 * Fields and modifiers that the format has and the row may not use; sets
 * `has`, `mods` and `opsel`.  isa_decode_unused is the reason for fields that
 * only assemblers insist on, which isa_target.lax forgives.
 */
const char *isa_decode_check(struct decoder *d);
extern const char isa_decode_unused[];

/* ----------------------------------------------------- decode_image.c ---- */

/* Operands of an image instruction. */
const char *isa_decode_image(struct decoder *d);
struct isa_operand *isa_decode_append(struct isa_inst *in, int slot, int role,
				   int dwords);

#endif
