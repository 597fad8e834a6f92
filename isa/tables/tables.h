/*
 * isa/tables - the RDNA instruction set as tables: the manual.
 *
 * Tables hold all facts: types.def (operand types), formats.def (encodings and
 * their fields) and insts.def (instructions); vopd.def maps the halves of
 * dual-issue instructions to the latter, renames.def has the opcodes and names
 * of other generations, and errata.def the opcodes about which table,
 * disassembler and chip do not agree.  mods.def and names.def hold words of the
 * text, for isa/text.
 *
 * Everything here is constant: no function keeps state or allocates, and all
 * may be called from any number of threads.
 */
#ifndef T0_ISA_TABLES_H
#define T0_ISA_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Generations: one opcode column of isa/tables/insts.def each. */
enum isa_gen {
	ISA_GFX10_1, /* gfx1010 */
	ISA_GFX10_3, /* gfx1030.. */
	ISA_GFX11,   /* gfx1100..gfx1103 */
	ISA_GFX11_5, /* gfx1150, gfx1151 */
	ISA_GFX12,   /* gfx1200, gfx1201 */
	ISA_GEN_COUNT
};

/* The generation whose LAYOUTs of formats.def it has. */
static inline enum isa_gen isa_layout_gen(enum isa_gen gen)
{
	return gen == ISA_GFX10_1 ? ISA_GFX10_3 : gen;
}

struct isa_target {
	enum isa_gen gen;
	int wave; /* 32 or 64: width of lane masks; VOPD exists in 32 only */
	bool lax; /* as hardware, ignore fields that the row does not use */
};

/* ------------------------------------------------------- the tables ---- */

enum isa_fmt {
	ISA_FMT_NONE,
#define FORMAT(name, dwords, mask, bits) ISA_FMT_##name,
#include "isa/tables/formats.def"
	ISA_FMT_COUNT,
	/* Formats that a generation encodes differently: see isa_layout(). */
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
	ISA_SLOT_SDSRC,	  /* SDATA that is stored */
	ISA_SLOT_SDATAG,  /* SDATA, also destination if GLC */
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
/* Does the format have this field (such as ISA_F_GLC)? */
bool isa_fmt_has(enum isa_fmt fmt, enum isa_field field);
/* Does the vector ALU execute it? */
bool isa_fmt_is_valu(enum isa_fmt fmt);
/* How a generation writes a format: the format itself, or a LAYOUT of it. */
enum isa_fmt isa_layout(enum isa_gen gen, enum isa_fmt fmt);
/* 32-bit registers that a value of this type occupies, in this wave size. */
int isa_type_dwords(enum isa_type type, int wave);
/* One 16-bit value in a 32-bit register. */
static inline bool isa_type_is_half(enum isa_type type)
{
	const struct isa_type_info *t = isa_type_info(type);

	return t->bits == 16 && t->count == 1;
}
/* Source operands of the vector ALU: slots S0 to S2I. */
int isa_op_sources(const struct isa_op_info *op);

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
/* ------------------------------------------------------------- chips ---- */

/* Hazards that a generation's hardware does not interlock (verify.def). */
enum isa_hazard {
	ISA_HZ_TRANS = 1,    /* a transcendental result is read too soon */
	ISA_HZ_FORWARD = 2,  /* wave64: sources on both sides of an EXEC write */
	ISA_HZ_MASK = 4,     /* wave64: a lane mask in use is overwritten */
	ISA_HZ_PERMLANE = 8, /* v_permlane behind v_cmpx */
	ISA_HZ_MAD = 16,     /* 64-bit multiply-add onto a source of its own */
	ISA_HZ_SGPRS = 32,   /* fewer than 16 SGPRs are initialised wrongly */
	ISA_HZ_MATRIX = 64,  /* a matrix result is A or B of the next product */
	ISA_HZ_VMEM_SGPR = 128, /* an SGPR that memory still reads is written */
	ISA_HZ_SMEM_SGPR = 256, /* the VALU writes what a scalar load reads */
	ISA_HZ_CMPX = 512,	/* v_cmpx writes an EXEC that is still read */
	ISA_HZ_LDS_BRANCH = 1024, /* LDS, a branch, vector memory or back */
	ISA_HZ_BRANCH_3F = 2048,  /* a branch by 0x3f dwords */
};

/* What the chips of a generation have alike; sizes are in bytes or KiB. */
struct isa_gen_info {
	const char *generic; /* the target whose code all its chips run */
	unsigned waves_per_simd, simds_per_cu; /* a WGP is two CUs */
	unsigned lds_bytes, lds_granule;       /* of a CU */
	unsigned barriers_per_cu;
	/* Vector cache of a CU; scalar caches of a WGP; GL1 of an array. */
	unsigned tcp_kib, sqc_inst_kib, sqc_data_kib, gl1_kib;
	unsigned line_bytes; /* of the vector caches */
	uint8_t gfx_ip[2];   /* the graphics block: major, minor */
	/*
	 * Work-item ids are 10 bits each of v0, else v0, v1 and v2.  Waves know
	 * where their scratch memory is, else it says so in SGPRs: a descriptor,
	 * an address, and the wave's offset behind the workgroup's ids.
	 */
	bool packed_ids, own_scratch;
	unsigned hazards; /* enum isa_hazard */
	/*
	 * Each kind of memory instruction has its own counter and wait; workgroup
	 * ids are in TTMPs, not behind the user SGPRs; WMMA deals K and rows out
	 * to lanes (kfd/soft/exec/gfx12/matrix.h).
	 */
	bool split_counters, ids_in_ttmp, dealt_matrices;
};
const struct isa_gen_info *isa_gen_info(enum isa_gen gen);

/* The kernel's AMDGPU_VRAM_TYPE_*. */
enum isa_memory { ISA_GDDR6 = 9, ISA_DDR5 = 10, ISA_LPDDR5 = 12 };

/*
 * A row of chips.def.  What follows gfx_target is 0 for chips that have no
 * device in software.
 */
struct isa_chip {
	const char *name;
	enum isa_gen gen;
	unsigned vgprs;			  /* of a SIMD in wave32, per lane */
	uint32_t gfx_target;		  /* as the kernel writes it: 110000 */
	uint16_t device_id, subdevice_id; /* PCI, vendor 0x1002 */
	uint8_t pci_rev, family, external_rev;
	unsigned n_se, sa_per_se, cus_per_sa; /* engines, arrays */
	unsigned n_rb, n_tcc; /* render backends, channels of L2 */
	unsigned l2_kib, mall_kib;
	uint32_t addr_config;		   /* GB_ADDR_CONFIG */
	unsigned sclk_mhz[2], mclk_mhz[4]; /* lowest to highest level */
	enum isa_memory vram_type;
	unsigned vram_bits;
	uint64_t vram_bytes, power_cap_uw, power_max_uw;
	unsigned sdma_engines;
	/* Versions of blocks: major, minor, revision. */
	uint8_t gc_rev, sdma_ip[3], mp_ip[3], vcn_ip[3];
	unsigned n_vcn; /* instances of it */
};

/* By name, "gfx1100", or by the kernel's number; NULL: it is not known. */
const struct isa_chip *isa_chip_find(const char *name);
const struct isa_chip *isa_chip_of_target(uint32_t gfx_target);
/* The i-th row, NULL behind the last. */
const struct isa_chip *isa_chip_at(size_t i);
/*
 * The chip whose code it is, "gfx1100"; of a generic target, "gfx11-generic",
 * the first that runs it.  NULL: it is not known.
 */
const struct isa_chip *isa_chip_of_code(const char *name);
/* "gfx1100" -> ISA_GFX11; false for chips that no generation covers. */
bool isa_chip_parse(const char *name, enum isa_gen *gen);
/*
 * VGPRs come in granules, here those of wave32; wave64 has half of the
 * registers, in half of the granule.
 */
static inline unsigned isa_chip_granule(const struct isa_chip *c)
{
	return c->gen == ISA_GFX10_1 ? 8 : c->vgprs / 64;
}
static inline unsigned isa_chip_cus(const struct isa_chip *c)
{
	return c->n_se * c->sa_per_se * c->cus_per_sa;
}
/*
 * The board that has this PCI device, or NULL.  CUs count more than a revision,
 * which boards share at times; either may be 0, for not known.
 */
const char *isa_board_name(uint32_t device_id, uint32_t pci_rev,
			   uint32_t cu_count);

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

/* Is it VOP1, VOP2 or VOPC, whose promoted form is VOP3? */
static inline bool isa_fmt_is_e32(enum isa_fmt fmt)
{
	return fmt == ISA_FMT_VOP1 || fmt == ISA_FMT_VOP2 ||
	       fmt == ISA_FMT_VOPC;
}

/* isa_type_dwords() in wave32. */
extern const uint8_t isa_type_dwords_wave32[ISA_T_COUNT];
/* Older names that gfx12 takes beside its own; the last has no row. */
struct isa_alias {
	uint16_t op; /* enum isa_op */
	const char *name;
};
extern const struct isa_alias isa_aliases_gfx12[];
/* Bits of a field in a format or layout, 0 where it has none. */
extern const uint8_t isa_field_widths[ISA_FMT_END][ISA_F_COUNT];
static inline int isa_field_width(enum isa_fmt fmt, enum isa_field field)
{
	return fmt < ISA_FMT_END && field < ISA_F_COUNT ?
		       isa_field_widths[fmt][field] : 0;
}

/* ----------------------------------------------------------- errata.c ---- */

/*
 * A row of errata.def explains one opcode slot: what running it is known to
 * do, and why that is not what a reader of the table or of a disassembly would
 * expect.  Comparisons of the three ask here before they report a difference.
 */

/* What a kernel that reaches the slot is known to do. */
enum isa_outcome {
	ISA_OUTCOME_ANY, /* nothing is known, or it depends */
	ISA_OUTCOME_EXECUTES,
	ISA_OUTCOME_ILLEGAL,
	ISA_OUTCOME_FAULTS,
	ISA_OUTCOME_HANGS,
};

struct isa_erratum {
	unsigned gens; /* a bit per enum isa_gen */
	const char *encoding; /* as t0-probe names it: "VOP1", "VOPDX" */
	int opcode;
	enum isa_outcome outcome;
	const char *name;   /* mnemonic, or what the slot looks like */
	const char *reason; /* a sentence, with its source */
};

/* The row of a slot of a generation, or NULL. */
const struct isa_erratum *isa_erratum_at(enum isa_gen gen, const char *encoding,
					 int opcode);

#endif
