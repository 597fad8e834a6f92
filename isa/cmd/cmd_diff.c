/*
 * isa/cmd/cmd_diff.c - t0-isa diff: what two generations do not share.
 *
 * An instruction of one is that of the other that has its row of
 * isa/tables/insts.def, else the one with its mnemonic.  Those that exist in
 * one generation only, a new name, encoding or opcode, and other operands are
 * one table row each; so are encodings whose fields are elsewhere.  What only
 * graphics needs is compared where both generations have it in the table.
 */
#include <string.h>

#include "base/base.h"
#include "isa/cmd/cmd.h"

/* Operand slots by the words of isa/tables/insts.def. */
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
	[ISA_SLOT_SDSRC] = "SDSRC",
	[ISA_SLOT_SDATAG] = "SDATAG",
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

/* The row that does in generation `to` what `op` does in `from`, or NONE. */
static enum isa_op find_counterpart(enum isa_gen from, enum isa_op op,
			       enum isa_gen to)
{
	const char *name = isa_op_name(from, op);

	if (isa_opcode(to, op, false) >= 0)
		return op;
	for (int i = 1; i < ISA_OP_COUNT; i++)
		if (isa_opcode(to, i, false) >= 0 &&
		    !strcmp(isa_op_name(to, i), name))
			return i;
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

static void add_difference(struct table *t, const char *name, const char *what,
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

/* Of these generations the table has nothing that only graphics needs. */
static bool is_compute_only(enum isa_gen gen)
{
	return gen < ISA_GFX11 || gen == ISA_GFX12;
}

static bool is_graphics(const struct isa_op_info *op)
{
	return op->flags & ISA_GFX || op->fmt == ISA_FMT_MIMG ||
	       op->fmt == ISA_FMT_EXP || op->fmt == ISA_FMT_VINTERP;
}

/* Instructions of `gen` that the other generation has not. */
static void add_only(struct table *t, enum isa_gen gen, enum isa_gen other,
		 bool first)
{
	struct buf mine = { 0 }, none = { 0 };

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const char *name = isa_op_name(gen, op);

		if (isa_opcode(gen, op, false) < 0 ||
		    find_counterpart(gen, op, other) ||
		    (is_compute_only(other) && is_graphics(isa_op_info(op))))
			continue;
		put_place(&mine, gen, op);
		add_difference(t, name, first ? "removed" : "added",
		    first ? &mine : &none, first ? &none : &mine);
	}
	buf_fini(&mine);
	buf_fini(&none);
}

static void add_changed(struct table *t, enum isa_gen a, enum isa_gen b)
{
	struct buf was = { 0 }, is = { 0 };

	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *info = isa_op_info(op), *then;
		const char *name = isa_op_name(a, op);
		enum isa_op to;

		if (isa_opcode(a, op, false) < 0)
			continue;
		to = find_counterpart(a, op, b);
		if (!to)
			continue;
		then = isa_op_info(to);
		if (strcmp(name, isa_op_name(b, to))) {
			buf_adds(&was, name);
			buf_adds(&is, isa_op_name(b, to));
			add_difference(t, name, "renamed", &was, &is);
		}
		if (info->fmt != then->fmt ||
		    isa_opcode(a, op, false) != isa_opcode(b, to, false)) {
			put_place(&was, a, op);
			put_place(&is, b, to);
			add_difference(t, name, "moved", &was, &is);
		}
		if (!same_operands(info, then)) {
			put_operands(&was, op);
			put_operands(&is, to);
			add_difference(t, name, "operands", &was, &is);
		}
	}
	buf_fini(&was);
	buf_fini(&is);
}

static bool has_rows(enum isa_gen gen, int fmt)
{
	for (int op = 1; op < ISA_OP_COUNT; op++)
		if (isa_op_info(op)->fmt == fmt &&
		    isa_opcode(gen, op, false) >= 0)
			return true;
	return false;
}

/* "OP 18+8, ADDR 32+8": the lowest bit and the width of every field. */
static void put_fields(struct buf *b, enum isa_fmt layout)
{
	static const char *const word[ISA_F_COUNT] = {
#define NAME_OF(field) [ISA_F_##field] = #field
		NAME_OF(OP),	  NAME_OF(SBASE),   NAME_OF(SDATA),
		NAME_OF(SOFFSET), NAME_OF(OFFSET),  NAME_OF(DLC),
		NAME_OF(GLC),	  NAME_OF(SLC),	    NAME_OF(VDST),
		NAME_OF(ADDR),	  NAME_OF(DATA0),   NAME_OF(SADDR),
		NAME_OF(SVE),	  NAME_OF(VDATA),   NAME_OF(SRSRC),
		NAME_OF(TFE),	  NAME_OF(OFFEN),   NAME_OF(IDXEN),
		NAME_OF(FORMAT),  NAME_OF(TH),	    NAME_OF(SCOPE),
		NAME_OF(ATTR),	  NAME_OF(ATTRCHAN), NAME_OF(WAITVDST),
		NAME_OF(OPHI),	  NAME_OF(WAITVSRC),
#undef NAME_OF
	};
	const struct isa_fmt_info *f = isa_fmt_info(layout);

	for (int i = 0; i < f->n_fields; i++)
		if (word[f->field[i].field])
			buf_printf(b, "%s%s %d+%d", b->len ? ", " : "",
				   word[f->field[i].field], f->field[i].low,
				   f->field[i].width);
}

static void add_encodings(struct table *t, enum isa_gen a, enum isa_gen b)
{
	struct buf was = { 0 }, is = { 0 };

	for (int fmt = 1; fmt < ISA_FMT_COUNT; fmt++) {
		if (isa_layout(a, fmt) == isa_layout(b, fmt) ||
		    !has_rows(a, fmt) || !has_rows(b, fmt))
			continue;
		put_fields(&was, isa_layout(a, fmt));
		put_fields(&is, isa_layout(b, fmt));
		add_difference(t, isa_fmt_info(fmt)->name, "fields", &was, &is);
	}
	buf_fini(&was);
	buf_fini(&is);
}

static bool parse_chip(const char *name, enum isa_gen *gen, struct err *e)
{
	if (!isa_chip_parse(name, gen))
		return err_set(e, ERR_USAGE,
			       "diff: '%s' is no chip that t0-isa knows; "
			       "wanted a name such as gfx1100",
			       name);
	return true;
}

bool isa_cmd_diff(struct cmd *c, struct err *e)
{
	char **chip = c->argv;
	struct buf columns = { 0 };
	enum isa_gen a, b;
	struct table t;
	bool ok;

	if (!parse_chip(chip[0], &a, e) || !parse_chip(chip[1], &b, e))
		return false;
	buf_printf(&columns, "instruction,difference,%s,%s%s", chip[0], chip[1],
		   strcmp(chip[0], chip[1]) ? "" : " too");
	table_init(&t, columns.data);
	add_only(&t, a, b, true);
	add_only(&t, b, a, false);
	add_changed(&t, a, b);
	add_encodings(&t, a, b);
	ok = cmd_table(c, &t, e);
	if (ok && !t.n_rows)
		cmd_remark(c, "%s and %s have the same instructions", chip[0],
			   chip[1]);
	table_fini(&t);
	buf_fini(&columns);
	return ok;
}
