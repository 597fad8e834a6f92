/*
 * isa/cmd_diff.c - t0-isa diff: what two generations' columns of isa/insts.def do not share.
 *
 * Instructions are matched by mnemonic.  Rows that exist in one generation
 * only, rows whose encoding or opcode changed, and mnemonics that stand for
 * different operands are one table row each.
 */
#include <string.h>

#include "base/base.h"
#include "isa/cmd.h"

/* Operand slots by the words of isa/insts.def. */
static const char *const slot_word[ISA_SLOT_COUNT] = {
	[ISA_SLOT_D] = "D",
	[ISA_SLOT_DS] = "DS",
	[ISA_SLOT_CO] = "CO",
	[ISA_SLOT_CD] = "CD",
	[ISA_SLOT_CI] = "CI",
	[ISA_SLOT_S0] = "S0",
	[ISA_SLOT_S1] = "S1",
	[ISA_SLOT_S2] = "S2",
	[ISA_SLOT_S0V] = "S0V",
	[ISA_SLOT_S1V] = "S1V",
	[ISA_SLOT_S2V] = "S2V",
	[ISA_SLOT_S0S] = "S0S",
	[ISA_SLOT_S1S] = "S1S",
	[ISA_SLOT_S2S] = "S2S",
	[ISA_SLOT_S2I] = "S2I",
	[ISA_SLOT_K] = "K",
	[ISA_SLOT_DIN] = "DIN",
	[ISA_SLOT_IMM] = "IMM",
	[ISA_SLOT_REL] = "REL",
	[ISA_SLOT_MSG] = "MSG",
	[ISA_SLOT_HWREG] = "HWREG",
	[ISA_SLOT_WAITCNT] = "WAITCNT",
	[ISA_SLOT_DELAY] = "DELAY",
	[ISA_SLOT_DEPCTR] = "DEPCTR",
	[ISA_SLOT_SDATA] = "SDATA",
	[ISA_SLOT_SDIMM] = "SDIMM",
	[ISA_SLOT_SBASE] = "SBASE",
	[ISA_SLOT_SOFF] = "SOFF",
	[ISA_SLOT_VADDR] = "VADDR",
	[ISA_SLOT_DATA] = "DATA",
	[ISA_SLOT_DATA0] = "DATA0",
	[ISA_SLOT_DATA1] = "DATA1",
	[ISA_SLOT_DG] = "DG",
	[ISA_SLOT_DATAG] = "DATAG",
	[ISA_SLOT_SADDR] = "SADDR",
	[ISA_SLOT_SRSRC] = "SRSRC",
	[ISA_SLOT_SOFFSET] = "SOFFSET",
	[ISA_SLOT_FORMAT] = "FORMAT",
	[ISA_SLOT_OFF2] = "OFF2",
	[ISA_SLOT_OFF12] = "OFF12",
	[ISA_SLOT_OFF13] = "OFF13",
	[ISA_SLOT_OFF16] = "OFF16",
	[ISA_SLOT_SWIZZLE] = "SWIZZLE",
	[ISA_SLOT_ATTR] = "ATTR",
	[ISA_SLOT_EXPORT] = "EXPORT",
	[ISA_SLOT_IMAGE] = "IMAGE",
	[ISA_SLOT_SOFFI] = "SOFFI",
	[ISA_SLOT_SOFFR] = "SOFFR",
};

/* The row that has this mnemonic in a generation, or NONE. */
static enum isa_op named(enum isa_gen gen, const char *name)
{
	for (int op = 1; op < ISA_OP_COUNT; op++)
		if (isa_opcode(gen, op, false) >= 0 &&
		    !strcmp(isa_op_info(op)->name, name))
			return op;
	return ISA_OP_NONE;
}

static void put_place(struct buf *b, enum isa_gen gen, enum isa_op op)
{
	const struct isa_op_info *info = isa_op_info(op);

	buf_printf(b, "%s %d", isa_fmt_info(info->fmt)->name,
		   isa_opcode(gen, op, false));
}

static void put_operands(struct buf *b, enum isa_op op)
{
	const struct isa_op_info *info = isa_op_info(op);

	if (!info->n_opnd)
		buf_adds(b, "none");
	for (int i = 0; i < info->n_opnd; i++) {
		const struct isa_type_info *t =
			isa_type_info(info->opnd[i].type);

		buf_printf(b, "%s%s", i ? " " : "",
			   slot_word[info->opnd[i].slot]);
		if (t->name)
			buf_printf(b, " %s", t->name);
		buf_adds(b, i + 1 < info->n_opnd ? "," : "");
	}
}

static bool same_operands(const struct isa_op_info *a,
			  const struct isa_op_info *b)
{
	return a->n_opnd == b->n_opnd &&
	       !memcmp(a->opnd, b->opnd, sizeof(a->opnd));
}

static void add(struct table *t, const char *name, const char *what,
		struct buf *a, struct buf *b)
{
	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", what);
	table_cell(t, 2, "%s", a->len ? a->data : "");
	table_cell(t, 3, "%s", b->len ? b->data : "");
	buf_reset(a);
	buf_reset(b);
}

/* Instructions of `gen` that the other generation has not. */
static void only(struct table *t, enum isa_gen gen, enum isa_gen other,
		 bool first)
{
	struct buf mine = { 0 }, none = { 0 };

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const char *name = isa_op_info(op)->name;

		if (isa_opcode(gen, op, false) < 0 || named(other, name))
			continue;
		put_place(&mine, gen, op);
		add(t, name, first ? "removed" : "added",
		    first ? &mine : &none, first ? &none : &mine);
	}
	buf_fini(&mine);
	buf_fini(&none);
}

static void changed(struct table *t, enum isa_gen a, enum isa_gen b)
{
	struct buf was = { 0 }, is = { 0 };

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *info = isa_op_info(op), *then;
		enum isa_op to;

		if (isa_opcode(a, op, false) < 0)
			continue;
		to = named(b, info->name);
		if (!to)
			continue;
		then = isa_op_info(to);
		if (info->fmt != then->fmt ||
		    isa_opcode(a, op, false) != isa_opcode(b, to, false)) {
			put_place(&was, a, op);
			put_place(&is, b, to);
			add(t, info->name, "moved", &was, &is);
		}
		if (!same_operands(info, then)) {
			put_operands(&was, op);
			put_operands(&is, to);
			add(t, info->name, "operands", &was, &is);
		}
	}
	buf_fini(&was);
	buf_fini(&is);
}

static bool parse_chip(const char *name, enum isa_gen *gen, struct err *e)
{
	if (!isa_chip_parse(name, gen))
		return err_set(e, ERR_USAGE,
			       "diff: '%s' is no chip that t0-isa knows; wanted "
			       "a name such as gfx1100",
			       name);
	if (!isa_gen_known(*gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "diff: the encodings of %s are not in the table",
			       name);
	return true;
}

bool isa_cmd_diff(const struct isa_cmd *c, int n, char **chip, struct err *e)
{
	enum table_format f = c->json ? TABLE_JSON :
			      c->csv  ? TABLE_CSV :
					TABLE_TEXT;
	struct buf columns = { 0 };
	enum isa_gen a, b;
	struct table t;
	bool ok;

	if (n != 2)
		return err_set(e, ERR_USAGE,
			       "diff: got %d names, wanted two chips", n);
	if (!parse_chip(chip[0], &a, e) || !parse_chip(chip[1], &b, e))
		return false;
	buf_printf(&columns, "instruction,difference,%s,%s%s", chip[0], chip[1],
		   strcmp(chip[0], chip[1]) ? "" : " too");
	table_init(&t, columns.data);
	only(&t, a, b, true);
	only(&t, b, a, false);
	changed(&t, a, b);
	ok = table_print(&t, f, c->out, e);
	table_fini(&t);
	buf_fini(&columns);
	return ok;
}
