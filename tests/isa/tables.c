/*
 * The instruction table agrees with itself: every row decodes from its own
 * encoding, alone at its opcode, under its own name; every format, type and
 * slot is consistent; what the manual says about a few rows is there.
 */
#include <stdlib.h>

#include "tests/isa/gen.h"
#include "tests/tap.h"

static const struct isa_target wave32 = { .gen = ISA_GFX11, .wave = 32 };

static bool has_slot(const struct isa_op_info *op, int slot)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == slot)
			return true;
	return false;
}

/* A word of this row with registers that every operand may have. */
static int plain_word(enum isa_op op, bool vop3, uint8_t *code)
{
	const struct isa_op_info *info = isa_op_info(op);
	struct isa_inst in = { .op = (uint16_t)op };
	uint32_t *f = in.f;

	in.fmt = !vop3			     ? info->fmt :
		 has_slot(info, ISA_SLOT_CO) ? ISA_FMT_VOP3SD :
					       ISA_FMT_VOP3;
	f[ISA_F_OP] = (uint32_t)isa_opcode(ISA_GFX11, op, vop3);
	if (in.fmt == ISA_FMT_EXP)
		f[ISA_F_OP] = 0;
	for (int i = 0; i < info->n_opnd; i++) {
		int slot = info->opnd[i].slot;

		if (slot >= ISA_SLOT_S0 && slot <= ISA_SLOT_S2V)
			f[ISA_F_SRC0 + (slot - ISA_SLOT_S0) % 3] = 256;
		else if (slot == ISA_SLOT_S2I)
			f[ISA_F_SRC2] = 256;
	}
	if (gen_is_vop(in.fmt) || in.fmt <= ISA_FMT_VOP2)
		f[ISA_F_SSRC0] = f[ISA_F_SSRC1] = 0;
	f[ISA_F_SADDR] = ISA_R_NULL;
	f[ISA_F_GDS] = (info->flags & ISA_GDSONLY) != 0;
	if (in.fmt == ISA_FMT_MIMG && strstr(info->name, "bvh")) {
		f[ISA_F_DMASK] = 15;
		f[ISA_F_UNORM] = f[ISA_F_R128] = 1;
	}
	memset(code, 0, ISA_MAX_SIZE_BYTES);
	return isa_encode(&in, code);
}

static bool decodes_as(enum isa_op op, bool vop3)
{
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	const char *why;

	if (!plain_word(op, vop3, code)) {
		diag("%s does not encode", isa_op_info(op)->name);
		return false;
	}
	why = isa_decode(&wave32, code, sizeof(code), &in);
	if (!why && in.op == op)
		return true;
	diag("%s%s: %s", isa_op_info(op)->name, vop3 ? "_e64" : "",
	     why ? why : isa_op_info((enum isa_op)in.op)->name);
	return false;
}

static void rows_decode(void)
{
	int rows = 0, e64 = 0, wrong = 0;

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *info = isa_op_info((enum isa_op)op);

		if (info->opcode[ISA_GFX11] < 0)
			continue;
		rows++;
		wrong += !decodes_as((enum isa_op)op, false);
		if (!(info->flags & ISA_E64))
			continue;
		e64++;
		wrong += !decodes_as((enum isa_op)op, true);
	}
	is_u64((uint64_t)wrong, 0, "every row decodes from its own encoding");
	ok(rows == 1141 && e64 == 311,
	   "1141 instructions, 311 of them also in VOP3");
}

static void rows_are_found(void)
{
	int at = 0, by_name = 0, suffix = 0;

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *info = isa_op_info((enum isa_op)op);
		int opcode = isa_opcode(ISA_GFX11, (enum isa_op)op, false);
		int vop3 = isa_opcode(ISA_GFX11, (enum isa_op)op, true);
		char name[80];

		/* gfx12 has mnemonics of gfx11 in rows of their own. */
		if (opcode < 0)
			continue;
		by_name += (int)isa_op_find(info->name) != op;
		snprintf(name, sizeof(name), "%s_e64_dpp", info->name);
		suffix += (int)isa_op_find(name) != op;
		at += (int)isa_op_at(ISA_GFX11,
					     (enum isa_fmt)info->fmt,
					     opcode) != op;
		if (info->flags & ISA_E64)
			at += (int)isa_op_at(ISA_GFX11, ISA_FMT_VOP3, vop3) !=
			      op;
	}
	is_u64((uint64_t)at, 0, "every opcode answers its row");
	is_u64((uint64_t)by_name, 0, "every name answers its row, so no two "
				     "are alike");
	is_u64((uint64_t)suffix, 0, "suffixes of names are ignored");
	is_u64(isa_op_find("v_add"), ISA_OP_NONE, "half a name is none");
	is_u64(isa_op_find(""), ISA_OP_NONE, "no name is none");
	is_u64(isa_op_find("_e32"), ISA_OP_NONE, "a suffix is no name");
}

/* Opcodes from the RDNA3 ISA manual, chapter 16. */
static void known_opcodes(void)
{
	static const struct {
		const char *name;
		enum isa_fmt fmt;
		int opcode, vop3;
	} known[] = {
		{ "s_add_u32", ISA_FMT_SOP2, 0, -1 },
		{ "s_mul_hi_u32", ISA_FMT_SOP2, 45, -1 },
		{ "s_mov_b64", ISA_FMT_SOP1, 1, -1 },
		{ "s_cmp_lg_u64", ISA_FMT_SOPC, 17, -1 },
		{ "s_endpgm", ISA_FMT_SOPP, 48, -1 },
		{ "s_movk_i32", ISA_FMT_SOPK, 0, -1 },
		{ "s_load_b128", ISA_FMT_SMEM, 2, -1 },
		{ "v_mov_b32", ISA_FMT_VOP1, 1, 0x181 },
		{ "v_add_f32", ISA_FMT_VOP2, 3, 0x103 },
		{ "v_cmp_eq_f32", ISA_FMT_VOPC, 18, 18 },
		{ "v_fma_f32", ISA_FMT_VOP3, 531, 531 },
		{ "v_pk_fma_f16", ISA_FMT_VOP3P, 14, -1 },
		{ "v_wmma_f32_16x16x16_f16", ISA_FMT_VOP3P, 64, -1 },
		{ "ds_load_b32", ISA_FMT_DS, 54, -1 },
		{ "global_load_b32", ISA_FMT_GLOBAL, 20, -1 },
		{ "flat_store_b128", ISA_FMT_FLAT, 29, -1 },
		{ "scratch_load_b64", ISA_FMT_SCRATCH, 21, -1 },
		{ "buffer_load_b32", ISA_FMT_MUBUF, 20, -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		enum isa_op op = isa_op_find(known[i].name);

		ok(isa_op_info(op)->fmt == known[i].fmt &&
			   isa_opcode(ISA_GFX11, op, false) ==
				   known[i].opcode &&
			   isa_opcode(ISA_GFX11, op, true) == known[i].vop3,
		   "%s has the opcode of the manual", known[i].name);
	}
}

static void empty_slots(void)
{
	is_u64(isa_op_at(ISA_GFX11, ISA_FMT_SOP2, 7), ISA_OP_NONE,
	       "an empty opcode has no row");
	is_u64(isa_op_at(ISA_GFX11, ISA_FMT_SOP2, 128), ISA_OP_NONE,
	       "an opcode beyond the field has no row");
	is_u64(isa_op_at(ISA_GFX11, ISA_FMT_SOP2, -1), ISA_OP_NONE,
	       "a negative opcode has no row");
	is_u64(isa_op_at(ISA_GEN_COUNT, ISA_FMT_SOP2, 0), ISA_OP_NONE,
	       "an unknown generation has no rows");
	is_u64(isa_vopd_op(14, false, NULL), ISA_OP_NONE,
	       "VOPD X has no opcode 14");
	is_u64(isa_vopd_op(16, false, NULL), ISA_OP_NONE,
	       "VOPD X cannot add integers");
	is_u64(isa_vopd_op(16, true, NULL), ISA_v_add_nc_u32,
	       "VOPD Y adds integers at opcode 16");
}

/* Registers by type, RDNA3 ISA 3.3: 64-bit values take two, masks a wave's. */
static void widths(void)
{
	is_u64((uint64_t)isa_type_dwords(ISA_T_F32, 32), 1,
	       "f32 is 1 register");
	is_u64((uint64_t)isa_type_dwords(ISA_T_F64, 32), 2, "f64 is 2");
	is_u64((uint64_t)isa_type_dwords(ISA_T_F16, 32), 1, "f16 is 1");
	is_u64((uint64_t)isa_type_dwords(ISA_T_B96, 32), 3, "96 bits are 3");
	is_u64((uint64_t)isa_type_dwords(ISA_T_V16F16, 32), 8, "16 f16 are 8");
	is_u64((uint64_t)isa_type_dwords(ISA_T_MASK, 32), 1,
	       "a wave32 lane mask is 1");
	is_u64((uint64_t)isa_type_dwords(ISA_T_MASK, 64), 2,
	       "a wave64 lane mask is 2");
	is_u64(isa_inline_value(128, ISA_T_I32), 0, "128 is 0");
	is_u64(isa_inline_value(192, ISA_T_I32), 64, "192 is 64");
	is_u64(isa_inline_value(193, ISA_T_I32), 0xffffffff, "193 is -1");
	is_u64(isa_inline_value(208, ISA_T_I64), (uint64_t)-16, "208 is -16");
	is_u64(isa_inline_value(242, ISA_T_F32), 0x3f800000, "242 is 1.0f");
	is_u64(isa_inline_value(242, ISA_T_F64), 0x3ff0000000000000,
	       "242 is 1.0 in f64");
	is_u64(isa_inline_value(243, ISA_T_I64), 0xbff0000000000000,
	       "243 is -1.0 for integers of 64 bits, too");
	is_u64(isa_inline_value(246, ISA_T_B64), 0x4010000000000000,
	       "and for bits");
	is_u64(isa_inline_value(248, ISA_T_U64), 0x3fc45f306dc9c882,
	       "1/(2 pi) has a low half");
	is_u64(isa_inline_value(242, ISA_T_U32), 0x3f800000,
	       "32-bit integers see a float");
	is_u64(isa_inline_value(242, ISA_T_F16), 0x3c00, "242 is 1.0 in f16");
	is_u64(isa_inline_value(242, ISA_T_BF16), 0x3f80, "242 is 1.0 in bf16");
	is_u64(isa_inline_value(248, ISA_T_F32), 0x3e22f983, "248 is 1/(2 pi)");
}

/* Claimed bits of a format: mask and fields, each bit once. */
static void formats(void)
{
	int wrong = 0;

	for (int i = 1; i < ISA_FMT_COUNT; i++) {
		const struct isa_fmt_info *f = isa_fmt_info((enum isa_fmt)i);
		uint64_t claimed = f->mask;
		uint64_t all = f->dwords == 2 ? ~UINT64_C(0) : UINT32_MAX;

		for (int k = 0; k < f->n_fields; k++) {
			uint64_t bits =
				((UINT64_C(1) << f->field[k].width) - 1)
				<< f->field[k].low;

			wrong += (claimed & bits) != 0;
			claimed |= bits;
		}
		wrong += claimed != all;
	}
	is_u64((uint64_t)wrong, 0, "fields claim every bit of a format once");
	ok(isa_fmt_has(ISA_FMT_MUBUF, ISA_F_GLC), "MUBUF has GLC");
	ok(!isa_fmt_has(ISA_FMT_VOP1, ISA_F_GLC), "VOP1 has no GLC");
}

static void chips(void)
{
	enum isa_gen gen = ISA_GEN_COUNT;

	ok(isa_chip_parse("gfx1100", &gen) && gen == ISA_GFX11,
	   "gfx1100 is of gfx11");
	ok(isa_gen_known(ISA_GFX11), "gfx11 can be decoded");
	ok(isa_chip_parse("gfx1151", &gen) && gen == ISA_GFX11_5 &&
		   isa_gen_known(gen),
	   "gfx1151 is of gfx11_5 and can be decoded");
	ok(isa_chip_parse("gfx1201", &gen) && gen == ISA_GFX12 &&
		   isa_gen_known(gen),
	   "gfx1201 is of gfx12 and can be decoded");
	is_u64(isa_op_at(ISA_GFX12, ISA_FMT_FLAT, 20), ISA_flat_load_b32,
	       "gfx12's flat_load_b32 is 20");
	is_u64((uint64_t)isa_fmt_info(isa_layout(ISA_GFX12, ISA_FMT_FLAT))
		       ->dwords,
	       3, "in three dwords");
	ok(isa_chip_parse("gfx1030", &gen) && gen == ISA_GFX10_3 &&
		   isa_gen_known(gen),
	   "gfx1030 is of gfx10_3 and can be decoded");
	ok(isa_chip_parse("gfx1010", &gen) && gen == ISA_GFX10_1 &&
		   isa_gen_known(gen),
	   "gfx1010 is of gfx10_1 and can be decoded");
	is_u64(isa_op_at(ISA_GFX10_1, ISA_FMT_VOP2, 31), ISA_v_mac_f32,
	       "gfx10_1 has v_mac_f32");
	is_u64(isa_op_at(ISA_GFX10_3, ISA_FMT_VOP2, 31), ISA_OP_NONE,
	       "gfx10_3 has not");
	is_u64(isa_op_at(ISA_GFX10_1, ISA_FMT_VOP3P, 19), ISA_OP_NONE,
	       "gfx10_1 has no v_dot2_f32_f16");
	is_u64(isa_op_at(ISA_GFX10_1, ISA_FMT_VOP2, 3), ISA_v_add_f32,
	       "and what both have is the same");
	is_u64(isa_op_at(ISA_GFX10_3, ISA_FMT_DS, 13), ISA_ds_store_b32,
	       "gfx10_3's ds_write_b32 is 13");
	is_str(isa_op_name(ISA_GFX10_3, ISA_ds_store_b32), "ds_write_b32",
	       "and has this name there");
	is_str(isa_op_name(ISA_GFX11, ISA_ds_store_b32), "ds_store_b32",
	       "and another later");
	is_u64(isa_op_find("ds_write_b32"), ISA_ds_store_b32,
	       "which finds the row, too");
	is_u64(isa_op_at(ISA_GFX10_3, ISA_FMT_MUBUF, 256 + 12),
	       ISA_buffer_load_lds_b32,
	       "a load to LDS is the load with a bit set");
	is_u64(isa_op_at(ISA_GFX11_5, ISA_FMT_SOP2, 64), ISA_s_add_f32,
	       "gfx11_5 has s_add_f32");
	is_u64(isa_op_at(ISA_GFX11, ISA_FMT_SOP2, 64), ISA_OP_NONE,
	       "gfx11 has not");
	ok(!isa_chip_parse("gfx900", &gen), "gfx900 is not known");
	ok(!isa_chip_parse("", &gen), "no chip is not known");
}

static void refusals(void)
{
	static const struct {
		uint32_t word[2];
		const char *why;
	} bad[] = {
		{ { 0x83800000, 0 }, "unknown opcode" },
		{ { 0xbfff0000, 0 }, "unknown opcode" },
		{ { 0xbfbd0001, 0 }, "unused field is not zero" },
		{ { 0x800000d1, 0 }, "reserved source operand" },
		{ { 0xd6130000, 0x04000000 | 254 }, "reserved source operand" },
		{ { 0xbe80016b, 0 }, "not a scalar register tuple" },
		{ { 0xdc760000, 0x007cfe00 }, "VGPR tuple beyond v255" },
		{ { 0xdc760000, 0x007c00ff }, "VGPR tuple beyond v255" },
		{ { 0xd51b8000, 0x00000100 }, "clamp not allowed here" },
		{ { 0xc0000000, 0 }, "reserved encoding" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct isa_inst in;
		const char *why = isa_decode(&wave32, bad[i].word, 8, &in);

		is_str(why, bad[i].why, "%08x %08x is refused",
		       bad[i].word[0], bad[i].word[1]);
	}
}

int main(void)
{
	rows_decode();
	rows_are_found();
	known_opcodes();
	empty_slots();
	widths();
	formats();
	chips();
	refusals();
	return plan_done();
}
