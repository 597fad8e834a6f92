/*
 * isa - the RDNA instruction set as tables: decode, encode, print.
 *
 * Everything here works on machine code from any source.  No function keeps
 * state, allocates, or reads outside the bytes it was given; all may be called
 * from any number of threads.
 *
 * A whole program, which tests/isa/example.t cuts out of this comment,
 * compiles and runs.  It assembles three lines, and from the bytes alone tells
 * what each is and which registers it needs:
 *
 *	#include <stdio.h>
 *	#include "isa/isa.h"
 *
 *	static void explain(const struct isa_target *t, const uint8_t *code,
 *			    int size_bytes)
 *	{
 *		char text[ISA_TEXT_MAX];
 *		struct isa_inst in;
 *		struct isa_use use;
 *		const char *why = isa_decode(t, code, size_bytes, &in);
 *
 *		if (why) { // not an instruction of this generation
 *			printf("? %s\n", why);
 *			return;
 *		}
 *		isa_print(t, &in, text, sizeof(text));
 *		printf("%s\n", text);
 *		isa_use(t, &in, &use); // EXEC and VCC, too
 *		for (int i = 0; i < use.n; i++)
 *			printf("  %s %c%d+%d\n",
 *			       use.reg[i].role & ISA_DST ? "writes" : "reads",
 *			       use.reg[i].file == ISA_K_VGPR ? 'v' : 's',
 *			       use.reg[i].reg, use.reg[i].count);
 *	}
 *
 *	int main(void)
 *	{
 *		static const char *const line[] = {
 *			"v_fma_f32 v0, -v1, s2, 1.0",
 *			"global_load_b64 v[4:5], v2, s[8:9] offset:16",
 *			"v_add_f32 v0, v1", // one operand is missing
 *		};
 *		struct isa_target t = { ISA_GFX11, 32, false };
 *
 *		for (int i = 0; i < 3; i++) {
 *			uint8_t code[ISA_MAX_SIZE_BYTES];
 *			struct isa_inst in;
 *			const char *why =
 *				isa_parse(&t, line[i], NULL, NULL, &in);
 *
 *			if (why)
 *				printf("%s: %s\n", line[i], why);
 *			else
 *				explain(&t, code, isa_encode(&in, code));
 *		}
 *		return 0;
 *	}
 *
 * Tables hold all facts: isa/tables/types.def (operand types), isa/tables/formats.def
 * (encodings and their fields) and isa/tables/insts.def (instructions); isa/tables/vopd.def
 * maps the halves of dual-issue instructions to the latter.
 *
 * A decoded instruction (struct isa_inst) has two views of the same thing:
 * `f[]`, the raw value of every field of its format, from which isa_encode()
 * rebuilds the very same bytes; and `opnd[]`, the operands in the order of the
 * text, with register numbers, types and widths resolved.
 */
#ifndef T0_ISA_H
#define T0_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA_TEXT_MAX 512      /* enough for every printed instruction */
#define ISA_MAX_SIZE_BYTES 20 /* image with four address dwords */
#define ISA_MAX_OPND 12

/* Generations: one opcode column of isa/tables/insts.def each. */
enum isa_gen {
	ISA_GFX10_3, /* gfx1030.. */
	ISA_GFX11,   /* gfx1100..gfx1103 */
	ISA_GFX11_5, /* gfx1150, gfx1151 */
	ISA_GFX12,   /* gfx1200, gfx1201 */
	ISA_GEN_COUNT
};

struct isa_target {
	enum isa_gen gen;
	int wave; /* 32 or 64: width of lane masks; VOPD exists in 32 only */
	bool lax; /* as hardware, ignore fields that the row does not use */
};

/* ---------------------------------------------------------- tables ---- */

enum isa_fmt {
	ISA_FMT_NONE,
#define FORMAT(name, dwords, mask, bits) ISA_FMT_##name,
#include "isa/tables/formats.def"
	ISA_FMT_COUNT,
	/* Where a format's words look otherwise: see isa_layout(). */
	ISA_FMT_LAYOUTS = ISA_FMT_COUNT - 1,
#define LAYOUT(name, gen, fmt, dwords, mask, bits) ISA_FMT_##name,
#include "isa/tables/formats.def"
	ISA_FMT_END
};

/* Names of fields, over all formats.  ISA_F_OP is the opcode. */
enum isa_field {
	ISA_F_OP,
	ISA_F_OPY,
	ISA_F_SDST,
	ISA_F_SSRC0,
	ISA_F_SSRC1,
	ISA_F_SIMM16,
	ISA_F_SBASE,
	ISA_F_SDATA,
	ISA_F_SOFFSET,
	ISA_F_OFFSET,
	ISA_F_OFFSET0,
	ISA_F_OFFSET1,
	ISA_F_DLC,
	ISA_F_GLC,
	ISA_F_SLC,
	ISA_F_SRC0,
	ISA_F_SRC1,
	ISA_F_SRC2,
	ISA_F_VSRC1,
	ISA_F_VDST,
	ISA_F_SRC0Y,
	ISA_F_VSRC1Y,
	ISA_F_VDSTY,
	ISA_F_ABS,
	ISA_F_NEG,
	ISA_F_NEG_HI,
	ISA_F_OPSEL,
	ISA_F_OPSEL_HI,
	ISA_F_OPSEL_HI2,
	ISA_F_CLAMP,
	ISA_F_OMOD,
	ISA_F_WAITEXP,
	ISA_F_ATTR,
	ISA_F_ATTRCHAN,
	ISA_F_WAITVDST,
	ISA_F_GDS,
	ISA_F_ADDR,
	ISA_F_DATA0,
	ISA_F_DATA1,
	ISA_F_SADDR,
	ISA_F_SVE,
	ISA_F_VDATA,
	ISA_F_SRSRC,
	ISA_F_SSAMP,
	ISA_F_TFE,
	ISA_F_LWE,
	ISA_F_OFFEN,
	ISA_F_IDXEN,
	ISA_F_FORMAT,
	ISA_F_NSA,
	ISA_F_DIM,
	ISA_F_UNORM,
	ISA_F_DMASK,
	ISA_F_R128,
	ISA_F_A16,
	ISA_F_D16,
	ISA_F_EN,
	ISA_F_TARGET,
	ISA_F_DONE,
	ISA_F_ROW,
	ISA_F_VSRC0,
	ISA_F_VSRC2,
	ISA_F_VSRC3,
	ISA_F_RSV0,
	ISA_F_RSV1,
	ISA_F_RSV2,
	ISA_F_RSV3,
	ISA_F_TH,
	ISA_F_SCOPE,
	ISA_F_WAITVSRC,
	ISA_F_OPHI,
	ISA_F_COUNT
};

enum isa_type {
	ISA_T_NONE,
#define TYPE(name, bits, count, kind) ISA_T_##name,
#include "isa/tables/types.def"
#undef TYPE
	ISA_T_COUNT
};

/* Which unit executes an instruction. */
enum isa_pipe {
	ISA_PIPE_SALU,	  /* scalar ALU */
	ISA_PIPE_SMEM,	  /* scalar memory */
	ISA_PIPE_VALU,	  /* vector ALU, one pass */
	ISA_PIPE_VALU64,  /* vector ALU, two passes (64-bit integer, swaps) */
	ISA_PIPE_QUARTER, /* quarter-rate integer multiply */
	ISA_PIPE_TRANS,	  /* transcendental, 32 and 16 bits */
	ISA_PIPE_TRANS64, /* transcendental, 64 bits */
	ISA_PIPE_DOUBLE,  /* f64 */
	ISA_PIPE_WMMA,	  /* matrix */
	ISA_PIPE_LDS,
	ISA_PIPE_LDSDIR,
	ISA_PIPE_FLAT,	  /* LDS or vector memory, by address */
	ISA_PIPE_VMEM,
	ISA_PIPE_EXPORT,
	ISA_PIPE_BRANCH,
	ISA_PIPE_MSG,
	ISA_PIPE_SPECIAL, /* waits, hints, barriers: no execution unit */
	ISA_PIPE_COUNT
};

/* Flags of isa/tables/insts.def. */
enum isa_flag {
	ISA_E64 = 1 << 0,
	ISA_DPP = 1 << 1,
	ISA_DPP64 = 1 << 2,
	ISA_CLAMP = 1 << 3,
	ISA_OMOD = 1 << 4,
	ISA_MOD0 = 1 << 5,
	ISA_MOD1 = 1 << 6,
	ISA_MOD2 = 1 << 7,
	ISA_OPSEL = 1 << 8,
	ISA_NOLIT = 1 << 9,
	ISA_RD = 1 << 10,
	ISA_SWAP = 1 << 11,
	ISA_LOAD = 1 << 12,
	ISA_STORE = 1 << 13,
	ISA_ATOMIC = 1 << 14,
	ISA_HI = 1 << 15,
	ISA_LDSDMA = 1 << 16,
	ISA_GDSONLY = 1 << 17,
	ISA_SAMPLER = 1 << 18,
	ISA_RSCC = 1 << 19,
	ISA_WSCC = 1 << 20,
	ISA_RVCC = 1 << 21,
	ISA_WVCC = 1 << 22,
	ISA_REXEC = 1 << 23,
	ISA_WEXEC = 1 << 24,
	ISA_RM0 = 1 << 25,
	ISA_BARRIER = 1 << 26,
	ISA_END = 1 << 27,
	ISA_GFX = 1 << 28,
};

/* One per row of isa/tables/insts.def: ISA_v_add_f32 and so on. */
enum isa_op {
	ISA_OP_NONE,
#define I(name, fmt, opcodes, operands, pipe, flags) ISA_##name,
#include "isa/tables/insts.def"
	ISA_OP_COUNT
};

/* Operand slots of isa/tables/insts.def (what the words there mean). */
enum isa_slot {
	ISA_SLOT_NONE,
	ISA_SLOT_D,	  /* vector or scalar destination, by format */
	ISA_SLOT_DS,	  /* scalar register in VDST */
	ISA_SLOT_CO,	  /* carry-out mask: VCC, or SDST */
	ISA_SLOT_CD,	  /* compare mask: VCC, or VDST as scalar */
	ISA_SLOT_CI,	  /* carry-in mask: VCC, or SRC2 as scalar */
	ISA_SLOT_S0,
	ISA_SLOT_S1,
	ISA_SLOT_S2,
	ISA_SLOT_S0V,	  /* VGPR only */
	ISA_SLOT_S1V,
	ISA_SLOT_S2V,
	ISA_SLOT_S0S,	  /* scalar or inline constant only */
	ISA_SLOT_S1S,
	ISA_SLOT_S2S,
	ISA_SLOT_S2I,	  /* VGPR or inline constant */
	ISA_SLOT_K,	  /* mandatory literal */
	ISA_SLOT_DIN,	  /* scalar register of SDST that is only read */
	ISA_SLOT_IMM,	  /* SIMM16 */
	ISA_SLOT_REL,	  /* SIMM16: signed dwords from the next instruction */
	ISA_SLOT_MSG,	  /* message: SIMM16, or SSRC0 */
	ISA_SLOT_HWREG,	  /* SIMM16: hardware register, offset, size */
	ISA_SLOT_WAITCNT,
	ISA_SLOT_DELAY,
	ISA_SLOT_DEPCTR,
	ISA_SLOT_SDATA,	  /* scalar memory data */
	ISA_SLOT_SDIMM,	  /* SDATA as an immediate */
	ISA_SLOT_SBASE,
	ISA_SLOT_SOFF,	  /* SOFFSET register and OFFSET of scalar memory */
	ISA_SLOT_VADDR,
	ISA_SLOT_DATA,	  /* flat: DATA0; buffer: VDATA */
	ISA_SLOT_DATA0,
	ISA_SLOT_DATA1,
	ISA_SLOT_DG,	  /* destination if GLC */
	ISA_SLOT_DATAG,	  /* VDATA, also destination if GLC */
	ISA_SLOT_SADDR,
	ISA_SLOT_SRSRC,
	ISA_SLOT_SOFFSET,
	ISA_SLOT_FORMAT,
	ISA_SLOT_OFF2,
	ISA_SLOT_OFF12,
	ISA_SLOT_OFF13,
	ISA_SLOT_OFF16,
	ISA_SLOT_SWIZZLE,
	ISA_SLOT_ATTR,
	ISA_SLOT_EXPORT,
	ISA_SLOT_IMAGE,
	ISA_SLOT_SOFFI,	  /* OFFSET of scalar memory */
	ISA_SLOT_SOFFR,	  /* SOFFSET of scalar memory */
	ISA_SLOT_COUNT
};

struct isa_operand_info {
	uint8_t slot; /* enum isa_slot */
	uint8_t type; /* enum isa_type; ISA_T_NONE where the slot decides */
};

/* One row of isa/tables/insts.def. */
struct isa_op_info {
	const char *name;
	uint8_t fmt;			/* enum isa_fmt */
	uint8_t pipe;			/* enum isa_pipe */
	uint8_t n_opnd;
	int16_t opcode[ISA_GEN_COUNT];	/* -1: absent */
	uint32_t flags;			/* enum isa_flag */
	struct isa_operand_info opnd[6];
};

struct isa_type_info {
	const char *name;
	uint8_t bits;  /* of one element */
	uint8_t count; /* elements */
	char kind;     /* 'B' 'U' 'I' 'F' 'G' 'M', see isa/tables/types.def */
};

struct isa_field_info {
	uint8_t field; /* enum isa_field */
	uint8_t low;   /* bit number from the first dword's bit 0 */
	uint8_t width;
};

struct isa_fmt_info {
	const char *name;
	uint8_t dwords;
	uint8_t op_bits;
	uint32_t mask, bits;
	const struct isa_field_info *field;
	int n_fields;
};

/* ------------------------------------------------------------ table.c ---- */

/* Rows by number; `op` < ISA_OP_COUNT.  Row ISA_OP_NONE is empty. */
const struct isa_op_info *isa_op_info(enum isa_op op);
const struct isa_type_info *isa_type_info(enum isa_type type);
const struct isa_fmt_info *isa_fmt_info(enum isa_fmt fmt);
/* Has it this field (such as ISA_F_GLC)? */
bool isa_fmt_has(enum isa_fmt fmt, enum isa_field field);
/* Is it executed by the vector ALU? */
bool isa_fmt_is_valu(enum isa_fmt fmt);
/* How a generation writes a format: the format itself, or a LAYOUT of it. */
enum isa_fmt isa_layout(enum isa_gen gen, enum isa_fmt fmt);
/* 32-bit registers that a value of this type occupies, in this wave size. */
int isa_type_dwords(enum isa_type type, int wave);

/*
 * The mnemonic of a row in a generation, without suffixes; gfx10_3 has other
 * names for what info->name says.
 */
const char *isa_op_name(enum isa_gen gen, enum isa_op op);
/*
 * The row with this mnemonic of gfx11 or, else, of gfx10_3, or NONE; suffixes
 * _e32, _e64, _dpp are ignored.
 */
enum isa_op isa_op_find(const char *name);
/* Is this one of the generations above? */
bool isa_gen_known(enum isa_gen gen);
/* "gfx1100" -> ISA_GFX11; false for chips that no generation covers. */
bool isa_chip_parse(const char *name, enum isa_gen *gen);

/*
 * The row at (format, opcode), ISA_OP_NONE if the slot is empty.  VOP3 opcodes
 * below 512 answer the VOPC, VOP2 or VOP1 row that they promote.
 */
enum isa_op isa_op_at(enum isa_gen gen, enum isa_fmt fmt, int opcode);
/*
 * Bits of the opcodes of a layout: its field OP, and above it OPHI, if it has
 * one.
 */
int isa_opcode_bits(enum isa_fmt layout);
/* The opcode of a row in its format or, for `vop3`, in VOP3; -1 if absent. */
int isa_opcode(enum isa_gen gen, enum isa_op op, bool vop3);
/* VOPD: the instruction of an X or Y opcode, and its mnemonic. */
enum isa_op isa_vopd_op(int opcode, bool y, const char **name);
/* The same in any generation that has VOPD; isa_vopd_op() is gfx11's. */
enum isa_op isa_vopd_op_in(enum isa_gen gen, int opcode, bool y,
			   const char **name);

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
			   the operand's type (all 64: isa_inline_value()) */
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

struct isa_sdwa {
	uint8_t dst_sel;    /* enum isa_sdwa_sel */
	uint8_t dst_unused; /* the rest: 0 zero, 1 sign, 2 preserved */
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

/* The value of an inline constant 128..248 for an operand type. */
uint64_t isa_inline_value(int field_value, enum isa_type type);

/* ---------------------------------------------------------- encode.c ---- */

/*
 * Encode from `op`, `fmt`, `form`, `f[]`, `literal` and `extra[]`; operands
 * are not consulted.  `out` holds ISA_MAX_SIZE_BYTES.  Returns the size in
 * bytes, 0 if a value does not fit its field.  For every instruction that
 * isa_decode() accepted, the bytes are the ones it was given.
 */
int isa_encode(const struct isa_inst *in, uint8_t *out);

/* ----------------------------------------------------------- print.c ---- */

/*
 * Write the instruction in LLVM's syntax, NUL-terminated, cut at `size`.
 * Returns the length it wants (as snprintf).  Branch targets print as
 * the 16 bits of their field, without a sign.
 */
int isa_print(const struct isa_target *t, const struct isa_inst *in, char *out,
	      size_t size);
/* "v_add_f32_e64", "v_dual_mov_b32 :: v_dual_add_f32". */
int isa_print_name(const struct isa_inst *in, char *out, size_t size);

/* ----------------------------------------------------------- parse.c ---- */

/* What a symbol or expression stands for, when the caller is asked for it. */
enum isa_symbol_use {
	ISA_SYM_INLINE,	 /* asked first: is it a number that is known by now? */
	ISA_SYM_LITERAL, /* 32-bit literal, absolute or to be relocated */
	ISA_SYM_BRANCH,	 /* signed dwords from the next instruction */
	ISA_SYM_VALUE,	 /* a plain number: offsets, immediates */
};
/*
 * Value of the expression `s` (not NUL-terminated); false if it has none.  A
 * caller that does not know a label yet may answer 0 and patch later.
 */
typedef bool isa_symbol_fn(void *ctx, const char *s, int len,
			   enum isa_symbol_use use, int64_t *value);

/*
 * Parse one instruction in LLVM's syntax; comments and labels are the
 * caller's.  Without suffix the shortest encoding that takes the operands is
 * chosen.  `symbol` may be NULL: symbols are then errors.  Returns NULL and
 * fills *in as isa_decode() would, or a static text that says why not.
 */
const char *isa_parse(const struct isa_target *t, const char *text,
		      isa_symbol_fn *symbol, void *ctx, struct isa_inst *in);
/*
 * The same, and the in->size_bytes bytes of the instruction at `code`, which
 * holds ISA_MAX_SIZE_BYTES.
 */
const char *isa_assemble_line(const struct isa_target *t, const char *text,
			      isa_symbol_fn *symbol, void *ctx,
			      struct isa_inst *in, uint8_t *code);

/* ------------------------------------------------------------- use.c ---- */

/* Registers that an instruction reads and writes, implicit ones included. */
struct isa_use {
	struct {
		uint8_t file;	/* ISA_K_VGPR or ISA_K_SGPR */
		uint8_t role;	/* ISA_DST, ISA_SRC or both */
		uint16_t reg;
		uint16_t count; /* consecutive registers */
	} reg[ISA_MAX_OPND + 6];
	int n;
	bool scc_read, scc_write;
};
void isa_use(const struct isa_target *t, const struct isa_inst *in,
	     struct isa_use *use);

#endif
