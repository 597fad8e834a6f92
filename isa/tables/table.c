/*
 * isa/tables/table.c - expands isa/tables/types.def, formats.def, insts.def and
 * vopd.def into constant tables, and proves while compiling that they are
 * consistent: the fields of every format partition its bits, and no two
 * instructions of a generation share an opcode (a designated initialiser given
 * twice is an error here).
 */
#include <string.h>

#include "base/base.h"
#include "isa/tables/tables.h"

#pragma GCC diagnostic error "-Woverride-init"

/* ------------------------------------------------------------- types ---- */

static const struct isa_type_info types[ISA_T_COUNT] = {
#define TYPE(n, b, c, k) \
	[ISA_T_##n] = { .name = #n, .bits = b, .count = c, .kind = #k[0] },
#include "isa/tables/types.def"
#undef TYPE
};

const struct isa_type_info *isa_type_info(enum isa_type type)
{
	return &types[type < ISA_T_COUNT ? type : ISA_T_NONE];
}

const uint8_t isa_type_dwords_wave32[ISA_T_COUNT] = {
#define TYPE(n, b, c, k) [ISA_T_##n] = ((b) * (c) + 31) / 32,
#include "isa/tables/types.def"
#undef TYPE
};

int isa_type_dwords(enum isa_type type, int wave)
{
	if (type == ISA_T_MASK)
		return wave / 32;
	return type < ISA_T_COUNT ? isa_type_dwords_wave32[type] : 0;
}

/* ----------------------------------------------------------- formats ---- */

/*
 * Two conditions make the fields and the mask a partition of the bits: the
 * widths add up to the size, and every bit is claimed an odd number of times.
 */
#define BITS(low, width) \
	((~(unsigned __int128)0 >> (128 - (width))) << (low))

#define FORMAT(name, dwords, mask, bits) \
	_Static_assert(32 * (dwords) == __builtin_popcount(mask)
#define LAYOUT(name, gen, fmt, dwords, mask, bits) \
	_Static_assert(32 * (dwords) == __builtin_popcount(mask)
#define FIELD(fmt, field, low, width) + (width)
#define END_FORMAT(name) , #name ": the field widths do not add up");
#include "isa/tables/formats.def"

#define FORMAT(name, dwords, mask, bits) \
	_Static_assert(BITS(0, 32 * (dwords)) == ((unsigned __int128)(mask)
#define LAYOUT(name, gen, fmt, dwords, mask, bits) \
	_Static_assert(BITS(0, 32 * (dwords)) == ((unsigned __int128)(mask)
#define FIELD(fmt, field, low, width) ^ BITS(low, width)
#define END_FORMAT(name) ), #name ": fields overlap or leave a bit unclaimed");
#include "isa/tables/formats.def"

#define FORMAT(name, dwords, mask, bits)  \
	_Static_assert(((bits) & ~(mask)) == 0, #name ": bits beyond mask"); \
	static const struct isa_field_info fields_##name[] = {
#define LAYOUT(name, gen, fmt, dwords, mask, bits) \
	FORMAT(name, dwords, mask, bits)
#define FIELD(fmt, field, low, width) { ISA_F_##field, low, width },
#define END_FORMAT(name) \
	} \
	;
#include "isa/tables/formats.def"

/* Fields are read and written within a dword. */
#define LAYOUT(name, gen, fmt, dwords, mask, bits)
#define FIELD(fmt, field, low, width)                      \
	_Static_assert((low) / 32 == ((low) + (width) - 1) / 32, \
		       #fmt "." #field ": crosses a dword");
#include "isa/tables/formats.def"

/* OP_BITS_SOP1 and so on; EXP has no opcode field. */
enum {
#define LAYOUT(name, gen, fmt, dwords, mask, bits)
#define FIELD(fmt, field, low, width) field##_BITS_##fmt = (width),
#include "isa/tables/formats.def"
	OP_BITS_EXP = 0,
};

static const struct isa_fmt_info formats[ISA_FMT_END] = {
	[ISA_FMT_NONE] = { .name = "none" },
#define FORMAT(n, dw, m, b)                           \
	[ISA_FMT_##n] = { .name = #n,                 \
			  .dwords = dw,               \
			  .op_bits = OP_BITS_##n,     \
			  .mask = m,                  \
			  .bits = b,                  \
			  .field = fields_##n,        \
			  .n_fields = ARRAY_SIZE(fields_##n) },
#define LAYOUT(n, gen, fmt, dw, m, b) FORMAT(n, dw, m, b)
#include "isa/tables/formats.def"
};

const struct isa_fmt_info *isa_fmt_info(enum isa_fmt fmt)
{
	return &formats[fmt < ISA_FMT_END ? fmt : ISA_FMT_NONE];
}

enum isa_fmt isa_layout(enum isa_gen gen, enum isa_fmt fmt)
{
	static const uint8_t layout[ISA_GEN_COUNT][ISA_FMT_COUNT] = {
#define LAYOUT(name, gen, fmt, dwords, mask, bits) \
	[ISA_##gen][ISA_FMT_##fmt] = ISA_FMT_##name,
#include "isa/tables/formats.def"
	};

	gen = isa_layout_gen(gen);
	if (gen < ISA_GEN_COUNT && fmt < ISA_FMT_COUNT && layout[gen][fmt])
		return layout[gen][fmt];
	return fmt;
}

const uint8_t isa_field_widths[ISA_FMT_END][ISA_F_COUNT] = {
#define LAYOUT(name, gen, fmt, dwords, mask, bits)
#define FIELD(fmt, field, low, width) [ISA_FMT_##fmt][ISA_F_##field] = (width),
#include "isa/tables/formats.def"
};

bool isa_fmt_has(enum isa_fmt fmt, enum isa_field field)
{
	return isa_field_width(fmt, field);
}

bool isa_fmt_is_valu(enum isa_fmt fmt)
{
	switch (fmt) {
	case ISA_FMT_VOP1:
	case ISA_FMT_VOP2:
	case ISA_FMT_VOPC:
	case ISA_FMT_VOP3:
	case ISA_FMT_VOP3SD:
	case ISA_FMT_VOP3P:
	case ISA_FMT_VOPD:
	case ISA_FMT_VINTERP:
		return true;
	default:
		return false;
	}
}

/* ------------------------------------------------------ instructions ---- */

/* The words of isa/tables/insts.def. */
enum {
	_ = -1,
	E64 = ISA_E64,
	DPP = ISA_DPP,
	DPP64 = ISA_DPP64,
	CLAMP = ISA_CLAMP,
	OMOD = ISA_OMOD,
	MOD0 = ISA_MOD0,
	MOD01 = ISA_MOD0 | ISA_MOD1,
	MOD012 = ISA_MOD0 | ISA_MOD1 | ISA_MOD2,
	OPSEL = ISA_OPSEL,
	NOLIT = ISA_NOLIT,
	RD = ISA_RD,
	SWAP = ISA_SWAP,
	LOAD = ISA_LOAD,
	STORE = ISA_STORE,
	ATOMIC = ISA_ATOMIC,
	HI = ISA_HI,
	LDSDMA = ISA_LDSDMA,
	GDSONLY = ISA_GDSONLY,
	SAMPLER = ISA_SAMPLER,
	RSCC = ISA_RSCC,
	WSCC = ISA_WSCC,
	RVCC = ISA_RVCC,
	WVCC = ISA_WVCC,
	REXEC = ISA_REXEC,
	WEXEC = ISA_WEXEC,
	RM0 = ISA_RM0,
	BARRIER = ISA_BARRIER,
	END_ = ISA_END,
	GFX = ISA_GFX,
};
#define OPND(slot, type) { ISA_SLOT_##slot, ISA_T_##type },
#define NONE
#define D(t) OPND(D, t)
#define DS(t) OPND(DS, t)
#define CO OPND(CO, MASK)
#define CD OPND(CD, MASK)
#define CI OPND(CI, MASK)
#define S0(t) OPND(S0, t)
#define S1(t) OPND(S1, t)
#define S2(t) OPND(S2, t)
#define S0V(t) OPND(S0V, t)
#define S1V(t) OPND(S1V, t)
#define S2V(t) OPND(S2V, t)
#define S0S(t) OPND(S0S, t)
#define S1S(t) OPND(S1S, t)
#define S2S(t) OPND(S2S, t)
#define S2I(t) OPND(S2I, t)
#define K(t) OPND(K, t)
#define DIN(t) OPND(DIN, t)
#define IMM OPND(IMM, NONE)
#define REL OPND(REL, NONE)
#define MSG OPND(MSG, NONE)
#define HWREG OPND(HWREG, NONE)
#define WAITCNT OPND(WAITCNT, NONE)
#define DELAY OPND(DELAY, NONE)
#define DEPCTR OPND(DEPCTR, NONE)
#define SDATA(t) OPND(SDATA, t)
#define SDSRC(t) OPND(SDSRC, t)
#define SDATAG(t) OPND(SDATAG, t)
#define SDIMM OPND(SDIMM, NONE)
#define SBASE(t) OPND(SBASE, t)
#define SOFF OPND(SOFF, B32)
/* LDS addresses have their type in the row; that of the others follows. */
#define VADDR OPND(VADDR, NONE)
#define LADDR OPND(VADDR, U32)
#define DATA(t) OPND(DATA, t)
#define DATA0(t) OPND(DATA0, t)
#define DATA1(t) OPND(DATA1, t)
#define DG(t) OPND(DG, t)
#define DATAG(t) OPND(DATAG, t)
#define SADDR OPND(SADDR, NONE)
#define SRSRC OPND(SRSRC, B128)
#define SOFFSET OPND(SOFFSET, B32)
#define FORMAT_ OPND(FORMAT, NONE)
#define OFF2 OPND(OFF2, NONE)
#define OFF12 OPND(OFF12, NONE)
#define OFF13 OPND(OFF13, NONE)
#define OFF16 OPND(OFF16, NONE)
#define SWIZZLE OPND(SWIZZLE, NONE)
#define ATTR OPND(ATTR, NONE)
#define EXPORT OPND(EXPORT, NONE)
#define IMAGE OPND(IMAGE, NONE)
#define SOFFI OPND(SOFFI, NONE)
#define SOFFR OPND(SOFFR, B32)

#define N_OPNDS(...) \
	(ARRAY_SIZE(((struct isa_operand_info[]){ __VA_ARGS__ { 0, 0 } })) - 1)

/* The columns; gfx10_1 has that of gfx10_3 where it has none of its own. */
#define FIRST_OF(first, ...) (first)
#define GFX10_1_OF(gfx10_3, gfx11, gfx11_5, gfx12, ...) \
	FIRST_OF(__VA_ARGS__ __VA_OPT__(,) gfx10_3, )
#define GFX10_3_OF(gfx10_3, ...) (gfx10_3)
#define GFX11_OF(gfx10_3, gfx11, ...) (gfx11)
#define GFX11_5_OF(gfx10_3, gfx11, gfx11_5, ...) (gfx11_5)
#define GFX12_OF(gfx10_3, gfx11, gfx11_5, gfx12, ...) (gfx12)

/* A name given twice is a renamed row. */
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct isa_op_info ops[ISA_OP_COUNT] = {
	[ISA_OP_NONE] = { .name = "", .opcode = { -1, -1, -1, -1, -1 } },
#define I(n, f, opcodes, operands, p, fl)                \
	[ISA_##n] = { .name = #n,                        \
		      .fmt = ISA_FMT_##f,                \
		      .pipe = ISA_PIPE_##p,              \
		      .n_opnd = N_OPNDS(operands),       \
		      .opcode = { GFX10_1_OF opcodes,    \
				  GFX10_3_OF opcodes,    \
				  GFX11_OF opcodes,      \
				  GFX11_5_OF opcodes,    \
				  GFX12_OF opcodes },    \
		      .flags = (fl),                     \
		      .opnd = { operands } },
#include "isa/tables/insts.def"
#define RENAME(n, text) [ISA_##n].name = text,
#define RENAME10(n, text)
#define ALIAS12(n, text)
#include "isa/tables/renames.def"
};

static const char *const names10[ISA_OP_COUNT] = {
#define RENAME(n, text)
#define RENAME10(n, text) [ISA_##n] = text,
#define ALIAS12(n, text)
#include "isa/tables/renames.def"
};

const struct isa_alias isa_aliases_gfx12[] = {
#define RENAME(n, text)
#define RENAME10(n, text)
#define ALIAS12(n, text) { ISA_##n, text },
#include "isa/tables/renames.def"
	{ ISA_OP_NONE, "" },
};

#pragma GCC diagnostic error "-Woverride-init"

const struct isa_op_info *isa_op_info(enum isa_op op)
{
	return &ops[op < ISA_OP_COUNT ? op : ISA_OP_NONE];
}

int isa_op_sources(const struct isa_op_info *op)
{
	int n = 0;

	for (int i = 0; i < op->n_opnd; i++)
		n += op->opnd[i].slot >= ISA_SLOT_S0 &&
		     op->opnd[i].slot <= ISA_SLOT_S2I;
	return n;
}

const char *isa_op_name(enum isa_gen gen, enum isa_op op)
{
	const char *old = op < ISA_OP_COUNT ? names10[op] : NULL;

	return old && gen < ISA_GFX11 ? old : isa_op_info(op)->name;
}

enum isa_op isa_op_find(const char *name)
{
	static const char *const suffix[] = { "_dpp8", "_dpp", "_e64", "_e32" };
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
		size_t n = strlen(suffix[i]);

		if (len > n && !memcmp(name + len - n, suffix[i], n))
			len -= n;
	}
	for (int op = 1; op < ISA_OP_COUNT; op++)
		if (!strncmp(ops[op].name, name, len) && !ops[op].name[len])
			return op;
	for (int op = 1; op < ISA_OP_COUNT; op++)
		if (names10[op] && !strncmp(names10[op], name, len) &&
		    !names10[op][len] && !(ops[op].flags & ISA_LDSDMA))
			return op;
	return ISA_OP_NONE;
}

/* ------------------------------------------------------ opcode index ---- */

/*
 * The slots of a format are consecutive, and so are the formats.  Layouts have
 * up to 9 bits of opcode.
 */
#define MAX(a, b) ((a) > (b) ? (a) : (b))
enum {
#define FORMAT(n, dw, mask, bits) \
	BASE_##n, LAST_##n = BASE_##n + (1 << MAX(OP_BITS_##n, 9)) - 1,
#include "isa/tables/formats.def"
	N_SLOTS
};

static const uint16_t bases[ISA_FMT_COUNT] = {
#define FORMAT(n, dw, mask, bits) \
	[ISA_FMT_##n] = ISA_FMT_##n == ISA_FMT_VOP3SD ? BASE_VOP3 : BASE_##n,
#include "isa/tables/formats.def"
};

/*
 * The slot of a row; each row that the generation lacks has a slot of its own
 * after the real ones, so that "given twice" still means "opcode used twice".
 */
#define ABSENT(n) (N_SLOTS + ISA_##n)
#define ABSENT_E64(n) (N_SLOTS + ISA_OP_COUNT + ISA_##n)
#define SLOT(n, f, opcode)                                                 \
	((opcode) < 0 ? ABSENT(n) :                                        \
	 (ISA_FMT_##f == ISA_FMT_VOP3SD ? BASE_VOP3 : BASE_##f) + (opcode))
#define PROMOTE(fmt) \
	((fmt) == ISA_FMT_VOP1 ? 0x180 : (fmt) == ISA_FMT_VOP2 ? 0x100 : 0)
#define SLOT_E64(n, f, opcode, flags)                       \
	((opcode) < 0 || !((flags) & ISA_E64) ? ABSENT_E64(n) : \
	 BASE_VOP3 + (opcode) + PROMOTE(ISA_FMT_##f))

/*
 * The row at each slot, by generation: a table each, for gcc is slow with
 * designators that go to and fro between two rows of an array.
 */
#define AT(n, f, opcode, flags) \
	[SLOT(n, f, opcode)] = ISA_##n, \
		     [SLOT_E64(n, f, opcode, flags)] = ISA_##n,
#define AT_SLOTS (N_SLOTS + 2 * ISA_OP_COUNT)
static const uint16_t at_gfx10_1[AT_SLOTS] = {
#define I(n, f, opcodes, operands, p, fl) AT(n, f, GFX10_1_OF opcodes, fl)
#include "isa/tables/insts.def"
};
static const uint16_t at_gfx10_3[AT_SLOTS] = {
#define I(n, f, opcodes, operands, p, fl) AT(n, f, GFX10_3_OF opcodes, fl)
#include "isa/tables/insts.def"
};
static const uint16_t at_gfx11[AT_SLOTS] = {
#define I(n, f, opcodes, operands, p, fl) AT(n, f, GFX11_OF opcodes, fl)
#include "isa/tables/insts.def"
};
static const uint16_t at_gfx11_5[AT_SLOTS] = {
#define I(n, f, opcodes, operands, p, fl) AT(n, f, GFX11_5_OF opcodes, fl)
#include "isa/tables/insts.def"
};
static const uint16_t at_gfx12[AT_SLOTS] = {
#define I(n, f, opcodes, operands, p, fl) AT(n, f, GFX12_OF opcodes, fl)
#include "isa/tables/insts.def"
};
static const uint16_t *const at[ISA_GEN_COUNT] = {
	[ISA_GFX10_1] = at_gfx10_1,
	[ISA_GFX10_3] = at_gfx10_3,
	[ISA_GFX11] = at_gfx11,
	[ISA_GFX11_5] = at_gfx11_5,
	[ISA_GFX12] = at_gfx12,
};

bool isa_gen_known(enum isa_gen gen)
{
	return gen < ISA_GEN_COUNT;
}

int isa_opcode_bits(enum isa_fmt layout)
{
	return isa_fmt_info(layout)->op_bits + isa_fmt_has(layout, ISA_F_OPHI);
}

enum isa_op isa_op_at(enum isa_gen gen, enum isa_fmt fmt, int opcode)
{
	if (!isa_gen_known(gen) || fmt <= ISA_FMT_NONE ||
	    fmt >= ISA_FMT_COUNT || fmt == ISA_FMT_VOPD || opcode < 0 ||
	    opcode >> MAX(formats[fmt].op_bits, 9))
		return ISA_OP_NONE;
	return at[gen][bases[fmt] + opcode];
}

int isa_opcode(enum isa_gen gen, enum isa_op op, bool vop3)
{
	const struct isa_op_info *o = isa_op_info(op);
	int opcode = gen < ISA_GEN_COUNT ? o->opcode[gen] : -1;

	if (opcode < 0 || !vop3)
		return opcode;
	if (o->fmt == ISA_FMT_VOP3 || o->fmt == ISA_FMT_VOP3SD)
		return opcode;
	return o->flags & ISA_E64 ? opcode + PROMOTE(o->fmt) : -1;
}

/* -------------------------------------------------------------- VOPD ---- */

static const struct {
	const char *name;
	int8_t opcode[2]; /* as X, as Y */
	bool gfx11, gfx12;
	uint16_t op;
} duals[] = {
#define VOPD(name, x, y, op) { #name, { x, y }, true, true, ISA_##op },
#define VOPD11(name, x, y, op) { #name, { x, y }, true, false, ISA_##op },
#define VOPD12(name, x, y, op) { #name, { x, y }, false, true, ISA_##op },
#include "isa/tables/vopd.def"
#undef VOPD
#undef VOPD11
#undef VOPD12
};

enum isa_op isa_vopd_op(int opcode, bool y, const char **name)
{
	return isa_vopd_op_in(ISA_GFX11, opcode, y, name);
}

enum isa_op isa_vopd_op_in(enum isa_gen gen, int opcode, bool y,
			   const char **name)
{
	for (size_t i = gen < ISA_GFX11 ? ARRAY_SIZE(duals) : 0;
	     opcode >= 0 && i < ARRAY_SIZE(duals); i++) {
		if (duals[i].opcode[y] != opcode ||
		    !(gen == ISA_GFX12 ? duals[i].gfx12 : duals[i].gfx11))
			continue;
		if (name)
			*name = duals[i].name;
		return duals[i].op;
	}
	return ISA_OP_NONE;
}
