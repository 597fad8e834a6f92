/*
 * isa/code - machine code of RDNA: decode, encode, register use, occupancy.
 *
 * Everything here works on machine code from any source.  No function keeps
 * state, allocates, or reads outside the bytes it was given; all may be called
 * from any number of threads.
 *
 * A decoded instruction (struct isa_inst) has two views of the same thing:
 * `f[]`, the raw value of every field of its format, from which isa_encode()
 * rebuilds the very same bytes; and `opnd[]`, the operands in the order of the
 * text, with register numbers, types and widths resolved.
 */
#ifndef T0_ISA_CODE_H
#define T0_ISA_CODE_H

#include <string.h>

#include "isa/tables/tables.h"

#define ISA_MAX_SIZE_BYTES 20 /* image with four address dwords */
#define ISA_MAX_OPND 12

/* ---------------------------------------------------------- decode.c ---- */

/*
 * A form is what follows the words of the format, and whether a VOP1, VOP2 or
 * VOPC instruction uses VOP3.
 */
enum isa_form {
	ISA_FORM_PLAIN,
	ISA_FORM_DPP16,	 /* SRC0 field 250 */
	ISA_FORM_DPP8,	 /* SRC0 field 233, or 234 with fetch-inactive */
	ISA_FORM_SDWA,	 /* SRC0 field 249, gfx10_3 only */
};

enum isa_kind {
	ISA_K_NONE,
	ISA_K_VGPR,	/* reg = 0..255 */
	ISA_K_SGPR,	/* reg = 0..105, and ISA_R_* below: scalar registers */
	ISA_K_INLINE,	/* reg: 128..248; value: low 32 bits of the constant of
			   the operand's type (all 64: isa_inline_value()); of
			   MIX, the type that op_sel_hi chooses */
	ISA_K_LITERAL,	/* value: the 32-bit literal as encoded */
	ISA_K_IMM,	/* value: raw immediate field; REL is sign-extended */
	ISA_K_SPECIAL,	/* reg = ISA_R_SCC, ISA_R_VCCZ.. : read-only sources */
	ISA_K_OFF,	/* no register ("off", "null" as an absent address) */
};

/* Numbers of scalar operands in 8- and 9-bit source fields (RDNA3 ISA 3.1). */
enum isa_reg {
	ISA_R_VCC_LO = 106,
	ISA_R_VCC_HI = 107,
	ISA_R_TTMP0 = 108, /* ..123 */
	ISA_R_NULL = 124,
	ISA_R_M0 = 125,
	ISA_R_EXEC_LO = 126,
	ISA_R_EXEC_HI = 127,
	ISA_R_SHARED_BASE = 235,
	ISA_R_SHARED_LIMIT = 236,
	ISA_R_PRIVATE_BASE = 237,
	ISA_R_PRIVATE_LIMIT = 238,
	ISA_R_POPS_WAVE_ID = 239,
	ISA_R_VCCZ = 251,
	ISA_R_EXECZ = 252,
	ISA_R_SCC = 253,
	ISA_R_LDS_DIRECT = 254,
	ISA_R_LITERAL = 255,
};

enum isa_role { ISA_DST = 1, ISA_SRC = 2 };

enum isa_mod {
	ISA_M_NEG = 1,
	ISA_M_ABS = 2,
	ISA_M_HI = 4,	  /* op_sel: the high half of a 16-bit operand */
	ISA_M_HI_HI = 8,  /* op_sel_hi of packed math: high half for the high */
	ISA_M_NEG_HI = 16, /* packed math: negate the high half */
	ISA_M_SEXT = 32	   /* SDWA: extend the sign of the part */
};

struct isa_operand {
	uint8_t kind;	/* enum isa_kind */
	uint8_t role;	/* enum isa_role, or'ed */
	uint8_t slot;	/* enum isa_slot */
	uint8_t type;	/* enum isa_type */
	uint8_t dwords; /* 32-bit registers, 0 for immediates */
	uint8_t mods;	/* enum isa_mod, or'ed */
	uint16_t reg;
	uint32_t value;
};

struct isa_dpp {
	uint16_t ctrl;	  /* DPP16: 9-bit control */
	uint8_t row_mask, bank_mask;
	bool fi;	  /* fetch inactive lanes */
	bool bound_ctrl;
	uint32_t sel;	  /* DPP8: eight 3-bit lane numbers */
};

/* Parts of registers that SDWA reads and writes: SDWA_DWORD and so on. */
enum isa_sdwa_sel {
	ISA_SDWA_BYTE_0,
	ISA_SDWA_WORD_0 = 4,
	ISA_SDWA_WORD_1,
	ISA_SDWA_DWORD,
};

/* What becomes of the rest: zeros, the part's sign above it, what it was. */
enum isa_sdwa_rest { ISA_SDWA_PAD, ISA_SDWA_SIGN, ISA_SDWA_PRESERVE };

struct isa_sdwa {
	uint8_t dst_sel;    /* enum isa_sdwa_sel */
	uint8_t dst_unused; /* enum isa_sdwa_rest */
	uint8_t sel[2];	    /* of the sources */
	uint8_t omod;
	bool clamp;
	bool sext[2];
	bool has_sdst; /* VOPC: the mask goes to `sdst` instead of VCC */
	uint8_t sdst;
};

struct isa_inst {
	uint16_t op;	/* enum isa_op; of VOPD the X half */
	uint16_t op_y;	/* VOPD: the Y half, else ISA_OP_NONE */
	uint8_t fmt;	/* enum isa_fmt of the words: VOP2 or VOP3, ... */
	uint8_t layout; /* enum isa_fmt of the fields; 0: the same as fmt */
	uint8_t gen;	/* enum isa_gen that it was decoded as */
	uint8_t form;	/* enum isa_form */
	uint8_t size_bytes;
	uint8_t n_opnd;
	uint8_t n_opnd_x; /* VOPD: operands of the X half come first */
	bool has_literal;
	bool has_unused; /* VOP3: a source that the row does not have is not 0 */
	uint32_t literal;
	uint32_t extra[3]; /* DPP or SDWA dword, or image address dwords, as
			      encoded */
	struct isa_dpp dpp;
	struct isa_sdwa sdwa;
	bool m0_is_124; /* gfx10_3: the words number M0 and NULL so, f[] does
			   not */
	uint32_t f[ISA_F_COUNT]; /* raw fields, 0 where the format has none */
	struct isa_operand opnd[ISA_MAX_OPND];
};

/*
 * Decode one instruction at `code`.  Returns NULL and fills *in, or a static
 * text that says why these bytes are no instruction ("unknown opcode",
 * "reserved bits set", "truncated", ...).  At most min(size_bytes,
 * ISA_MAX_SIZE_BYTES) bytes are read.
 */
const char *isa_decode(const struct isa_target *t, const void *code,
		       size_t size_bytes, struct isa_inst *in);

/*
 * The format that the first word of an instruction has in a generation, or
 * ISA_FMT_NONE: of no instruction, or of graphics that the tables leave out.
 */
enum isa_fmt isa_format_of(enum isa_gen gen, uint32_t word);

/* The value of an inline constant 128..248 for an operand type. */
uint64_t isa_inline_value(int field_value, enum isa_type type);

/* The counts of s_waitcnt's SIMM16; those that wait for nothing are the largest. */
struct isa_waits {
	unsigned vm, exp, lgkm;
};
enum { ISA_WAITS_VM = 63, ISA_WAITS_EXP = 7, ISA_WAITS_LGKM = 63 };

static inline struct isa_waits isa_waits_of(enum isa_gen gen, uint32_t v)
{
	if (gen < ISA_GFX11)
		return (struct isa_waits){ (v & 15) | (v >> 14 & 3) << 4,
					   v >> 4 & 7, v >> 8 & 63 };
	return (struct isa_waits){ v >> 10 & 63, v & 7, v >> 4 & 63 };
}

static inline uint32_t isa_waits_encode(enum isa_gen gen, struct isa_waits w)
{
	if (gen < ISA_GFX11)
		return (w.vm & 15) | w.exp << 4 | w.lgkm << 8 | w.vm >> 4 << 14;
	return w.vm << 10 | w.exp | w.lgkm << 4;
}

/* ---------------------------------------------------------- encode.c ---- */

/*
 * Encode from `op`, `fmt`, `form`, `f[]`, `literal` and `extra[]`; operands
 * are not consulted.  `out` holds ISA_MAX_SIZE_BYTES.  Returns the size in
 * bytes, 0 if a value does not fit its field.  For every instruction that
 * isa_decode() accepted, the bytes are the ones it was given.
 */
int isa_encode(const struct isa_inst *in, uint8_t *out);

/* ---------------------------------------------------------- reg_use.c ---- */

/*
 * Registers that an instruction reads and writes, implicit ones included.  From
 * gfx11 on instructions of 16 bits leave the other half of a VGPR alone: a load
 * into it may be outstanding.
 */
enum isa_half { ISA_HALF_LOW = 1, ISA_HALF_HIGH = 2, ISA_HALF_BOTH = 3 };

struct isa_use {
	struct {
		uint8_t file;	/* ISA_K_VGPR or ISA_K_SGPR */
		uint8_t role;	/* ISA_DST, ISA_SRC or both */
		uint8_t halves; /* enum isa_half, or'ed */
		uint16_t reg;
		uint16_t count; /* consecutive registers */
	} reg[ISA_MAX_OPND + 6];
	int n;
	bool scc_read, scc_write;
};
void isa_use(const struct isa_target *t, const struct isa_inst *in,
	     struct isa_use *use);

/* -------------------------------------------------------- occupancy.c ---- */

/*
 * Occupancy: how many waves of a kernel fit a SIMD at once, and what stops
 * more.
 *
 * A SIMD has wave slots and a VGPR file that waves share in granules; a
 * compute unit (CU) has SIMDs, LDS and barriers, a workgroup processor (WGP)
 * two CUs.  A workgroup lives in one CU or, in WGP mode, in one WGP, and takes
 * its LDS in granules and, if it has more than one wave, a barrier (RDNA3 ISA
 * 3.5).  How many there are of each says isa/tables/chips.def.
 */

struct isa_resources {
	int wave;	    /* 32 or 64 */
	int vgprs;	    /* per work-item, as the wave needs them */
	uint32_t lds_bytes; /* per workgroup, static and dynamic */
	int workgroup_size; /* work-items */
	bool wgp_mode;
};

struct isa_occupancy {
	int waves;	   /* per SIMD: the least of the four below */
	const char *limit; /* "waves", "vgprs", "lds" or "workgroups" */
	int by_slots, by_vgprs, by_lds, by_workgroups;
	int vgprs_allocated; /* per work-item, whole granules */
	uint32_t lds_allocated_bytes;
	int workgroups; /* that fit a CU (WGP) as a whole */
};

/* False for chips whose sizes are not known, and for impossible needs. */
bool isa_occupancy(const char *chip, const struct isa_resources *r,
		   struct isa_occupancy *o);

/* -------------------------------------- shared with printer and parser ---- */

/*
 * What isa_decode() does once it knows row, format and fields: checks them and
 * fills the operands from op, fmt, layout, gen, f[], extra[] and the literal.
 * The caller has cleared the rest.
 */
const char *isa_decode_fields(const struct isa_target *t, struct isa_inst *in);

/* Registers of an operand of a row, by wave size. */
int isa_slot_dwords_wave64(const struct isa_target *t,
			   const struct isa_op_info *op,
			   const struct isa_operand_info *slot);
static inline int isa_slot_dwords(const struct isa_target *t,
				  const struct isa_op_info *op,
				  const struct isa_operand_info *slot)
{
	return t->wave == 32 ? isa_type_dwords_wave32[slot->type] :
			       isa_slot_dwords_wave64(t, op, slot);
}

/* memset() of a size that gcc knows is "rep stos", four times as slow. */
static inline void isa_inst_clear(struct isa_inst *in)
{
	size_t size_bytes = sizeof(*in);

	__asm__("" : "+r"(size_bytes));
	memset(in, 0, size_bytes);
}

/* gfx10_3's numbers of M0 and NULL to gfx11's and back; others stay. */
static inline uint32_t isa_swap_m0(uint32_t reg)
{
	return reg == ISA_R_NULL || reg == ISA_R_M0 ? reg ^ 1 : reg;
}

/*
 * SADDR of gfx10_3's scratch without any address, which LLVM 19 also has for
 * gfx10_1's loads to LDS; -1 elsewhere.
 */
static inline uint32_t isa_inst_absent_saddr(const struct isa_inst *in)
{
	return in->fmt == ISA_FMT_SCRATCH &&
			       (in->gen == ISA_GFX10_3 ||
				(in->gen == ISA_GFX10_1 &&
				 isa_op_info(in->op)->flags & ISA_LDSDMA)) ?
		       ISA_R_EXEC_HI : ~0u;
}

/* Which of SRC0 to SRC2 the row reads, a bit each. */
unsigned isa_op_source_fields(const struct isa_op_info *op);

/* The op_sel bits of VOP3 and VINTERP words that select something. */
unsigned isa_inst_opsel(const struct isa_inst *in);

/* op_sel chooses the half of source 2 that says how far they shift. */
static inline bool isa_inst_is_align(const struct isa_inst *in)
{
	return (in->op == ISA_v_alignbit_b32 ||
		in->op == ISA_v_alignbyte_b32) &&
	       in->gen >= ISA_GFX11;
}

/* Sparse matrix products of gfx12. */
static inline bool isa_inst_is_swmmac(const struct isa_inst *in)
{
	return in->op >= ISA_v_swmmac_f32_16x16x32_f16 &&
	       in->op <= ISA_v_swmmac_f32_16x16x32_bf8_bf8;
}

/* No op_sel and only some neg bits: gfx12's matrices, 8-bit floats. */
static inline bool isa_inst_has_fixed_mods(const struct isa_inst *in)
{
	return in->gen == ISA_GFX12 && in->fmt == ISA_FMT_VOP3P &&
	       in->op >= ISA_v_dot4_f32_fp8_bf8 &&
	       in->op <= ISA_v_swmmac_f32_16x16x32_bf8_bf8;
}

/* op_sel of conversions of one 8-bit float is the number of a byte, else -1. */
static inline int isa_inst_byte_sel(const struct isa_inst *in)
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

/* WMMA whose results are 32 bits wide: op_sel selects no halves. */
bool isa_inst_has_whole_matrix(const struct isa_inst *in);

/*
 * The two places of gfx10_1's ds_*_src2_*.  B lies a signed number of dwords
 * from A, which the low 15 bits of the offset are; where its highest bit is
 * set, bits 31:17 of the address are, and A is what is below them.
 */
struct isa_src2 {
	uint32_t a, b;
};

static inline struct isa_src2 isa_lds_src2(uint32_t addr, uint32_t offset)
{
	const bool own = offset & 0x8000;
	const uint32_t a = own ? addr & 0x1ffff : addr;
	const int32_t dwords = (int32_t)(own ? addr : offset << 17) >> 17;

	return (struct isa_src2){ a, a + 4 * (uint32_t)dwords };
}

#endif
