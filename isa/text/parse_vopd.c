/*
 * isa/text/parse_vopd.c - "X :: Y", two instructions in one (RDNA3 ISA 7.6).
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

static bool put_dual_destination(struct parser *ps, const struct arg *a, bool y)
{
	struct isa_inst *in = ps->in;
	uint32_t v;

	if (!isa_put_vgpr(ps, a, 1, ISA_T_B32, &v))
		return false;
	if (!y) {
		in->f[ISA_F_VDST] = v;
		return true;
	}
	if ((v & 1) == (in->f[ISA_F_VDST] & 1))
		return isa_refuse(ps, 4,
				  "one destination must be even, the "
				  "other odd");
	in->f[ISA_F_VDSTY] = v >> 1;
	return true;
}

static bool put_dual_slot(struct parser *ps, const struct arg *a,
			  const struct isa_operand_info *slot, bool y)
{
	struct isa_inst *in = ps->in;
	uint32_t v;

	if (a->neg || a->abs)
		return isa_refuse(ps, 3, "VOPD has no source modifiers");
	switch (slot->slot) {
	case ISA_SLOT_D:
		return put_dual_destination(ps, a, y);
	case ISA_SLOT_S0:
		if (!isa_put_source(ps, a, slot, true, &v))
			return false;
		in->f[y ? ISA_F_SRC0Y : ISA_F_SRC0] = v;
		return true;
	case ISA_SLOT_S1:
		if (!isa_put_vgpr(ps, a, 1, ISA_T_B32, &v))
			return false;
		in->f[y ? ISA_F_VSRC1Y : ISA_F_VSRC1] = v;
		return true;
	}
	if (a->kind != ARG_INT && a->kind != ARG_FLOAT && a->kind != ARG_WORD)
		return isa_refuse(ps, 2, "wanted a literal");
	return isa_const_literal(ps, a, slot, &v) && isa_set_literal(ps, v);
}

/* One half: its operands go to the fields of X or Y. */
static bool put_half(struct parser *ps, const char *name, const char *name_end,
		     bool y)
{
	int opcode = isa_name_dual(ps->t->gen, name, name_end - name, y);
	const char *why;
	int at = 0;

	if (opcode < 0)
		return isa_refuse(ps, 3,
				  "not an instruction of this half of VOPD");
	why = isa_lex_line(ps, name_end);
	if (why || ps->n_mods)
		return isa_refuse(ps, 3, why ? why : "VOPD has no modifiers");
	ps->in->f[y ? ISA_F_OPY : ISA_F_OP] = opcode;
	ps->op = isa_op_info(isa_vopd_op_in(ps->t->gen, opcode, y, NULL));
	for (int i = 0; i < ps->op->n_opnd; i++) {
		const struct isa_operand_info *slot = &ps->op->opnd[i];

		if (slot->slot == ISA_SLOT_CI) /* vcc, not written */
			continue;
		if (at >= ps->n_args)
			return isa_refuse(ps, 2, "too few operands");
		if (!put_dual_slot(ps, &ps->arg[at++], slot, y))
			return false;
	}
	return at == ps->n_args || isa_refuse(ps, 2, "too many operands");
}

static const char *name_end(const char *p)
{
	while (isa_is_name(*p))
		p++;
	return p;
}

bool isa_parse_vopd(struct parser *ps, const char *text, const char *second)
{
	struct isa_inst *in = ps->in;
	const char *x_end = name_end(text), *y = isa_skip_space(second + 2);
	char first[ISA_TEXT_MAX];
	size_t len = second - text;

	if (len >= sizeof(first))
		return isa_refuse(ps, 4, "line too long");
	memcpy(first, text, len);
	first[len] = 0;
	isa_inst_clear(in);
	in->fmt = ISA_FMT_VOPD;
	in->gen = ps->t->gen;
	in->layout = isa_layout(in->gen, in->fmt);
	if (!put_half(ps, first, first + (x_end - text), false) ||
	    !put_half(ps, y, name_end(y), true))
		return false;
	return isa_finish(ps);
}
