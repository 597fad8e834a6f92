/*
 * isa_int - what the files of decoder and printer share beyond isa/isa.h.
 */
#ifndef T0_ISA_INT_H
#define T0_ISA_INT_H

#include <string.h>

#include "isa/isa.h"

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

/* One decoding under way. */
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

/* A memset() whose size gcc knows is "rep stos", four times as slow. */
static inline void isa_int_clear(struct isa_inst *in)
{
	size_t size_bytes = sizeof(*in);

	__asm__("" : "+r"(size_bytes));
	memset(in, 0, size_bytes);
}

static inline bool is_dpp(uint32_t src0)
{
	return src0 == SRC_DPP16 || src0 == SRC_DPP8 || src0 == SRC_DPP8_FI;
}

static inline bool is_vop3(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP3 || in->fmt == ISA_FMT_VOP3SD ||
	       in->fmt == ISA_FMT_VOP3P || in->fmt == ISA_FMT_VINTERP;
}

static inline bool isa_int_is_e32(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_VOP1 || in->fmt == ISA_FMT_VOP2 ||
	       in->fmt == ISA_FMT_VOPC;
}

/* One 16-bit value in a 32-bit register. */
static inline bool isa_int_is_half(enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	return t->bits == 16 && t->count == 1;
}

/* gfx10_3's numbers of M0 and NULL to gfx11's and back; others stay. */
static inline uint32_t isa_int_swap_m0(uint32_t reg)
{
	return reg == ISA_R_NULL || reg == ISA_R_M0 ? reg ^ 1 : reg;
}

/* SADDR of gfx10_3's scratch without any address; -1 elsewhere. */
static inline uint32_t isa_int_no_address(const struct isa_inst *in)
{
	return in->gen == ISA_GFX10_3 && in->fmt == ISA_FMT_SCRATCH ?
		       ISA_R_EXEC_HI : ~0u;
}

/* Bits of the signed offsets of FLAT, GLOBAL and SCRATCH. */
static inline int isa_int_offset_bits(enum isa_gen gen)
{
	return gen == ISA_GFX12 ? 24 : gen == ISA_GFX10_3 ? 12 : 13;
}

/* Fields that hold a scalar register or source, whatever the row. */
static inline bool isa_int_is_scalar(enum isa_field f)
{
	return f == ISA_F_SDST || f == ISA_F_SSRC0 || f == ISA_F_SSRC1 ||
	       f == ISA_F_SDATA || f == ISA_F_SOFFSET || f == ISA_F_SADDR ||
	       f == ISA_F_SRC0 || f == ISA_F_SRC1 || f == ISA_F_SRC2;
}

/* ----------------------------------------------------------- decode.c ---- */

/*
 * What isa_decode() does once it knows row, format and fields: checks them and
 * fills the operands from op, fmt, layout, gen, f[], extra[] and the literal.
 * The caller has cleared the rest.
 */
const char *isa_int_meaning(const struct isa_target *t, struct isa_inst *in);

/* Registers of a value of a type, in wave32. */
extern const uint8_t isa_int_dwords[ISA_T_COUNT];

/* ------------------------------------------------------ decode_opnd.c ---- */

/* Registers of an operand of a row, by wave size. */
int isa_int_wave64_dwords(const struct isa_target *t,
			  const struct isa_op_info *op,
			  const struct isa_operand_info *slot);
static inline int isa_int_slot_dwords(const struct isa_target *t,
				      const struct isa_op_info *op,
				      const struct isa_operand_info *slot)
{
	return t->wave == 32 ? isa_int_dwords[slot->type] :
			       isa_int_wave64_dwords(t, op, slot);
}

/* The row's operands, from the fields. */
const char *isa_int_operands(struct decoder *d);

/* An 8- or 9-bit source field. */
const char *isa_int_source(struct decoder *d, struct isa_operand *o,
			   uint32_t v);
/* Fill the register number in; the reason, if there is no such tuple. */
const char *isa_int_vgpr(struct isa_operand *o, uint32_t reg);
const char *isa_int_sgpr(struct isa_operand *o, uint32_t reg);

/* ------------------------------------------------------ decode_sdwa.c ---- */

/* The SDWA dword, and whether this row may have one; fills in->sdwa. */
const char *isa_int_sdwa(struct decoder *d);
/* Source 0 or 1: its register and modifiers. */
const char *isa_int_sdwa_source(struct decoder *d, struct isa_operand *o,
				int i);

/* ----------------------------------------------------- decode_check.c ---- */

/*
 * Fields and modifiers that the format has and the row may not use; sets
 * `has`, `mods` and `opsel`.  isa_int_unused is the reason for fields that only
 * assemblers insist on, which isa_target.lax forgives.
 */
const char *isa_int_check(struct decoder *d);
extern const char isa_int_unused[];

/* The op_sel bits of VOP3 and VINTERP words that select something. */
unsigned isa_int_opsel(const struct isa_inst *in);

/* Sparse matrix products of gfx12. */
static inline bool isa_int_is_sparse(const struct isa_inst *in)
{
	return in->op >= ISA_v_swmmac_f32_16x16x32_f16 &&
	       in->op <= ISA_v_swmmac_f32_16x16x32_bf8_bf8;
}

/* What has no op_sel and not every neg: gfx12's matrices, 8-bit floats. */
static inline bool isa_int_is_fixed(const struct isa_inst *in)
{
	return in->gen == ISA_GFX12 && in->fmt == ISA_FMT_VOP3P &&
	       in->op >= ISA_v_dot4_f32_fp8_bf8 &&
	       in->op <= ISA_v_swmmac_f32_16x16x32_bf8_bf8;
}

/* op_sel of conversions of one 8-bit float is the number of a byte, else -1. */
static inline int isa_int_byte_sel(const struct isa_inst *in)
{
	uint32_t sel = in->f[ISA_F_OPSEL];

	switch (in->op) {
	case ISA_v_cvt_f32_fp8:
	case ISA_v_cvt_f32_bf8:
		return (sel & 1) << 1 | (sel >> 1 & 1);
	case ISA_v_cvt_sr_fp8_f32:
	case ISA_v_cvt_sr_bf8_f32:
		return sel >> 2 & 3;
	}
	return -1;
}

/* WMMA with 32-bit results: there are no halves to select. */
bool isa_int_whole_matrix(const struct isa_inst *in);

/* ----------------------------------------------------------- table.c ---- */

/* Older names that gfx12 takes beside its own; the last has no row. */
struct isa_alias {
	uint16_t op; /* enum isa_op */
	const char *name;
};
extern const struct isa_alias isa_int_aliases12[];
/* Bits of a field in a format or layout, 0 where it has none. */
extern const uint8_t isa_int_widths[ISA_FMT_END][ISA_F_COUNT];
static inline int isa_int_field_width(enum isa_fmt fmt, enum isa_field field)
{
	return fmt < ISA_FMT_END && field < ISA_F_COUNT ?
		       isa_int_widths[fmt][field] : 0;
}

/* ------------------------------------------------------- print_imm.c ---- */

/* Kinds of isa/tables/names.def. */
enum isa_name_kind {
	BUFFMT,
	HWREG,
	MSG,
	EXPTGT,
	DIM,
	INSTID,
	SKIP,
	UCVERSION,
	HWREG12,
	MSG12,
	BUFFMT10,
	HWREG10,
	MSG10,
	GSOP10,
	SYSOP10,
	NAME_KINDS
};
enum { NAME_NUMBERS = 136 };

/* The name of a number, or NULL. */
const char *isa_int_name(enum isa_name_kind kind, uint32_t number);

/* ----------------------------------------------------- decode_image.c ---- */

/* Operands of an image instruction. */
const char *isa_int_image(struct decoder *d);
struct isa_operand *isa_int_append(struct isa_inst *in, int slot, int role,
				   int dwords);

#endif
