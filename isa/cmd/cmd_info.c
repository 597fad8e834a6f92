/*
 * isa/cmd/cmd_info.c - t0-isa info and list.
 */
#include <string.h>

#include "isa/cmd/cmd.h"

static const char *const pipe_name[ISA_PIPE_COUNT] = {
	[ISA_PIPE_SALU] = "salu",	[ISA_PIPE_SMEM] = "smem",
	[ISA_PIPE_VALU] = "valu",	[ISA_PIPE_VALU64] = "valu64",
	[ISA_PIPE_QUARTER] = "quarter", [ISA_PIPE_TRANS] = "trans",
	[ISA_PIPE_TRANS64] = "trans64", [ISA_PIPE_DOUBLE] = "double",
	[ISA_PIPE_WMMA] = "wmma",	[ISA_PIPE_LDS] = "lds",
	[ISA_PIPE_LDSDIR] = "ldsdir",	[ISA_PIPE_FLAT] = "flat",
	[ISA_PIPE_VMEM] = "vmem",	[ISA_PIPE_EXPORT] = "export",
	[ISA_PIPE_BRANCH] = "branch",	[ISA_PIPE_MSG] = "message",
	[ISA_PIPE_SPECIAL] = "special",
};

static const char *const slot_name[ISA_SLOT_COUNT] = {
	[ISA_SLOT_D] = "destination",
	[ISA_SLOT_DS] = "scalar destination",
	[ISA_SLOT_CO] = "carry-out mask",
	[ISA_SLOT_CD] = "compare mask",
	[ISA_SLOT_CI] = "carry-in or select mask",
	[ISA_SLOT_S0] = "source 0",
	[ISA_SLOT_S1] = "source 1",
	[ISA_SLOT_S2] = "source 2",
	[ISA_SLOT_S0V] = "source 0, VGPR only",
	[ISA_SLOT_S1V] = "source 1, VGPR only",
	[ISA_SLOT_S2V] = "source 2, VGPR only",
	[ISA_SLOT_S0S] = "source 0, scalar only",
	[ISA_SLOT_S1S] = "source 1, scalar only",
	[ISA_SLOT_S2S] = "source 2, scalar only",
	[ISA_SLOT_S2I] = "source 2, VGPR or inline constant",
	[ISA_SLOT_K] = "mandatory literal",
	[ISA_SLOT_DIN] = "scalar source in SDST",
	[ISA_SLOT_IMM] = "16-bit immediate",
	[ISA_SLOT_REL] = "branch offset in dwords",
	[ISA_SLOT_MSG] = "message",
	[ISA_SLOT_HWREG] = "hardware register",
	[ISA_SLOT_WAITCNT] = "wait counts",
	[ISA_SLOT_DELAY] = "ALU delays",
	[ISA_SLOT_DEPCTR] = "dependency counters",
	[ISA_SLOT_SDATA] = "scalar data",
	[ISA_SLOT_SDSRC] = "scalar data",
	[ISA_SLOT_SDATAG] = "scalar data",
	[ISA_SLOT_SDIMM] = "immediate in SDATA",
	[ISA_SLOT_SBASE] = "scalar base",
	[ISA_SLOT_SOFF] = "scalar offset and 21-bit immediate",
	[ISA_SLOT_VADDR] = "vector address",
	[ISA_SLOT_DATA] = "data",
	[ISA_SLOT_DATA0] = "data 0",
	[ISA_SLOT_DATA1] = "data 1",
	[ISA_SLOT_DG] = "destination if glc",
	[ISA_SLOT_DATAG] = "data, destination if glc",
	[ISA_SLOT_SADDR] = "scalar address",
	[ISA_SLOT_SRSRC] = "buffer descriptor",
	[ISA_SLOT_SOFFSET] = "scalar offset",
	[ISA_SLOT_FORMAT] = "buffer format",
	[ISA_SLOT_OFF2] = "two 8-bit offsets",
	[ISA_SLOT_OFF12] = "12-bit offset",
	[ISA_SLOT_OFF13] = "13-bit signed offset",
	[ISA_SLOT_OFF16] = "16-bit offset",
	[ISA_SLOT_SWIZZLE] = "swizzle pattern",
	[ISA_SLOT_ATTR] = "attribute and channel",
	[ISA_SLOT_EXPORT] = "four export sources",
	[ISA_SLOT_IMAGE] = "data, addresses, descriptors",
	[ISA_SLOT_SOFFI] = "24-bit immediate offset",
	[ISA_SLOT_SOFFR] = "scalar offset",
};

static const struct {
	uint32_t flag;
	const char *text;
} flag_name[] = {
	{ ISA_E64, "VOP3 form" },
	{ ISA_DPP, "DPP" },
	{ ISA_DPP64, "DPP in VOP3 form" },
	{ ISA_CLAMP, "clamp" },
	{ ISA_OMOD, "output modifier" },
	{ ISA_MOD0, "neg/abs on source 0" },
	{ ISA_MOD1, "neg/abs on source 1" },
	{ ISA_MOD2, "neg/abs on source 2" },
	{ ISA_OPSEL, "op_sel" },
	{ ISA_NOLIT, "no literal" },
	{ ISA_RD, "reads its destination" },
	{ ISA_SWAP, "writes its source" },
	{ ISA_LOAD, "load" },
	{ ISA_STORE, "store" },
	{ ISA_ATOMIC, "atomic" },
	{ ISA_HI, "high half of the register" },
	{ ISA_LDSDMA, "loads to LDS" },
	{ ISA_GDSONLY, "GDS only" },
	{ ISA_SAMPLER, "sampler" },
	{ ISA_RSCC, "reads SCC" },
	{ ISA_WSCC, "writes SCC" },
	{ ISA_RVCC, "reads VCC" },
	{ ISA_WVCC, "writes VCC" },
	{ ISA_REXEC, "reads EXEC" },
	{ ISA_WEXEC, "writes EXEC" },
	{ ISA_RM0, "reads M0" },
	{ ISA_BARRIER, "barrier" },
	{ ISA_END, "ends the program" },
	{ ISA_GFX, "graphics only" },
};

static void info_opcodes(const struct isa_op_info *op, enum isa_op id,
			 enum isa_gen gen, struct buf *b)
{
	int opcode = isa_opcode(gen, id, false);
	int vop3 = isa_opcode(gen, id, true);

	if (opcode < 0) {
		buf_adds(b, id == ISA_v_dot2acc_f32_bf16 ?
				    "only as a half of VOPD" :
				    "not in this generation");
		return;
	}
	buf_printf(b, "%s %d (0x%x)", isa_fmt_info(op->fmt)->name, opcode,
		   opcode);
	if (op->flags & ISA_E64)
		buf_printf(b, ", VOP3 %d (0x%x)", vop3, vop3);
}

/* The generations that have the instruction, and with which opcodes. */
static void info_generations(enum isa_op id, struct buf *b)
{
	static const char *const name[ISA_GEN_COUNT] = {
		[ISA_GFX10_1] = "gfx10_1", [ISA_GFX10_3] = "gfx10_3",
		[ISA_GFX11] = "gfx11",
		[ISA_GFX11_5] = "gfx11_5", [ISA_GFX12] = "gfx12",
	};

	for (int gen = 0; gen < ISA_GEN_COUNT; gen++)
		if (isa_gen_known(gen) && isa_opcode(gen, id, false) >= 0)
			buf_printf(b, "%s%s %d", b->len ? ", " : "", name[gen],
				   isa_opcode(gen, id, false));
}

static void info_vopd(enum isa_op id, struct buf *b)
{
	for (int y = 0; y < 2; y++)
		for (int i = 0; i < 32; i++) {
			const char *name;

			if (isa_vopd_op(i, y, &name) == id)
				buf_printf(b, "%s%s as VOPD %c %d",
					   b->len ? ", " : "", name, "XY"[y],
					   i);
		}
}

/* Says which name was probably meant, with or without its encoding's suffix. */
static bool no_instruction(const char *name, struct err *e)
{
	struct cmd_near near = { .name = name };

	for (int i = 1; i < ISA_OP_COUNT; i++)
		cmd_near_try(&near, isa_op_info(i)->name);
	if (near.meant)
		return err_set(e, ERR_USAGE, "no instruction is named '%s': "
			       "did you mean %s?", name, near.meant);
	return err_set(e, ERR_USAGE, "no instruction is named '%s'; t0-isa "
		       "list prints all of them", name);
}

static bool add_info(const struct isa_cmd *o, const char *name, struct table *t,
		 struct err *e)
{
	enum isa_op id = isa_op_find(name);
	const struct isa_op_info *op;
	const char *shown;
	struct buf b = { 0 };

	for (int y = 0; !id && y < 2; y++)
		for (int i = 0; !id && i < 32; i++) {
			const char *dual = "";
			enum isa_op at = isa_vopd_op(i, y, &dual);

			if (at && !strcmp(dual, name))
				id = at;
		}
	/* Another row may have this name in the generation that is asked. */
	for (int i = 1; id && isa_opcode(o->target.gen, id, false) < 0 &&
			i < ISA_OP_COUNT; i++)
		if (!strcmp(isa_op_info(i)->name, isa_op_info(id)->name) &&
		    isa_opcode(o->target.gen, i, false) >= 0)
			id = i;
	if (!id)
		return no_instruction(name, e);
	op = isa_op_info(id);
	shown = isa_op_name(o->target.gen, id);
#define ROW(key, ...)                       \
	do {                                \
		table_row(t);               \
		table_cell(t, 0, "%s", shown);    \
		table_cell(t, 1, "%s", key); \
		table_cell(t, 2, __VA_ARGS__); \
	} while (0)
	info_opcodes(op, id, o->target.gen, &b);
	ROW("encoding", "%s", b.data);
	buf_reset(&b);
	info_generations(id, &b);
	if (b.len)
		ROW("generations", "%s", b.data);
	buf_reset(&b);
	info_vopd(id, &b);
	if (b.len)
		ROW("dual issue", "%s", b.data);
	ROW("pipe", "%s", pipe_name[op->pipe]);
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_type_info *ty =
			isa_type_info(op->opnd[i].type);

		ROW("operand", "%s%s%s", slot_name[op->opnd[i].slot],
		    ty->name ? ": " : "", ty->name ? ty->name : "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(flag_name); i++)
		if (op->flags & flag_name[i].flag)
			ROW("property", "%s", flag_name[i].text);
#undef ROW
	buf_fini(&b);
	return true;
}

bool isa_cmd_info(struct cmd *c, struct err *e)
{
	struct table t;
	bool ok = true;

	table_init(&t, "instruction,fact,value");
	for (int i = 0; ok && i < c->argc; i++)
		ok = add_info((struct isa_cmd *)c, c->argv[i], &t, e);
	ok = ok && cmd_table(c, &t, e);
	table_fini(&t);
	return ok;
}

bool isa_cmd_list(struct cmd *c, struct err *e)
{
	const struct isa_cmd *o = (struct isa_cmd *)c;
	struct table t;
	bool ok;

	table_init(&t, "instruction,encoding,#opcode,pipe");
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *i = isa_op_info(op);

		if (i->opcode[o->target.gen] < 0)
			continue;
		table_row(&t);
		table_cell(&t, 0, "%s", isa_op_name(o->target.gen, op));
		table_cell(&t, 1, "%s", isa_fmt_info(i->fmt)->name);
		table_cell(&t, 2, "%d", i->opcode[o->target.gen]);
		table_cell(&t, 3, "%s", pipe_name[i->pipe]);
	}
	ok = cmd_table(c, &t, e);
	table_fini(&t);
	return ok;
}
