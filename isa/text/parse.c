/*
 * isa/text/parse.c - one line of LLVM's syntax to struct isa_inst.
 *
 * The line is split into a mnemonic, operands and modifiers once; then each
 * form that the mnemonic allows is tried, shortest first, until one takes all
 * of them.  Trying a form means filling the fields of its format slot by slot,
 * the inverse of isa/code/decode.c; the decoder then judges the fields, so that
 * what it refuses cannot be assembled.  Rules that only text has come last
 * (parse_check.c).
 */
#include <string.h>

#include "base/base.h"
#include "isa/text/parse_int.h"

bool isa_refuse(struct parser *ps, int rank, const char *why)
{
	if (rank >= ps->why_rank) {
		ps->why = why;
		ps->why_rank = rank;
	}
	return false;
}

/* Fields that are not zero when nothing is said. */
static void set_field_defaults(struct parser *ps)
{
	struct isa_inst *in = ps->in;

	if (in->form == ISA_FORM_DPP16) {
		in->f[ISA_F_SRC0] = 250;
		in->extra[0] = 0xff000000;
	} else if (in->form == ISA_FORM_DPP8) {
		in->f[ISA_F_SRC0] = 233;
	} else if (in->form == ISA_FORM_SDWA) {
		in->f[ISA_F_SRC0] = 249;
		in->extra[0] = isa_sdwa_default(in->fmt);
	}
	switch (in->fmt) {
	case ISA_FMT_VOP3P:
		if (ps->op->n_opnd > 1 && ps->op->opnd[1].type == ISA_T_MIX)
			break;
		in->f[ISA_F_OPSEL_HI] = 3;
		in->f[ISA_F_OPSEL_HI2] = 1;
		break;
	case ISA_FMT_SMEM:
		if (ps->op->n_opnd > 1)
			in->f[ISA_F_SOFFSET] = ISA_R_NULL;
		break;
	case ISA_FMT_GLOBAL:
		if (ps->op->n_opnd)
			break;
		/* fall through */
	case ISA_FMT_FLAT:
		in->f[ISA_F_SADDR] = ISA_R_NULL;
		break;
	case ISA_FMT_MUBUF:
		in->f[ISA_F_FORMAT] = in->gen == ISA_GFX12;
		break;
	case ISA_FMT_MTBUF:
		in->f[ISA_F_FORMAT] = 1;
		break;
	case ISA_FMT_VOP3:
		/* v_cmpx names its destination here. */
		if (ps->op->fmt == ISA_FMT_VOPC && ps->op->flags & ISA_WEXEC)
			in->f[ISA_F_VDST] = ISA_R_EXEC_LO;
		break;
	case ISA_FMT_MIMG:
		/* Ray tracing has constants where images have options. */
		if (in->op != ISA_image_bvh_intersect_ray &&
		    in->op != ISA_image_bvh64_intersect_ray)
			break;
		in->f[ISA_F_DMASK] = 15;
		in->f[ISA_F_UNORM] = 1;
		in->f[ISA_F_R128] = 1;
		break;
	}
}

bool isa_finish(struct parser *ps)
{
	struct isa_inst *in = ps->in;
	const char *why;

	in->size_bytes = isa_encode(in, ps->code);
	why = in->size_bytes ? isa_decode_fields(ps->t, in) :
			       "a value does not fit";
	if (!why)
		why = isa_parse_check(ps);
	return !why || isa_refuse(ps, 4, why);
}

/* Try one encoding of ps->op. */
static bool try_form(struct parser *ps, enum isa_op op, enum isa_fmt fmt,
		     enum isa_form form, const char *line)
{
	struct isa_inst *in = ps->in;
	bool vop3 = fmt == ISA_FMT_VOP3 || fmt == ISA_FMT_VOP3SD;
	int opcode = isa_opcode(ps->t->gen, op, vop3);
	int op_bits;

	if (opcode < 0)
		return isa_refuse(ps, 1,
				  "not an instruction of this "
				  "generation");
	isa_inst_clear(in);
	in->op = op;
	in->fmt = fmt;
	in->form = form;
	in->gen = ps->t->gen;
	in->layout = isa_layout(in->gen, fmt);
	in->m0_is_124 = in->gen < ISA_GFX11;
	op_bits = isa_fmt_info(in->layout)->op_bits;
	in->f[ISA_F_OP] = opcode & ((1u << op_bits) - 1);
	in->f[ISA_F_OPHI] = opcode >> op_bits;
	set_field_defaults(ps);
	if (line ? !isa_put_line(ps, line) :
		   !isa_put_mods(ps) || !isa_put_operands(ps))
		return false;
	return isa_finish(ps);
}

static bool is_vop3_fmt(enum isa_fmt f)
{
	return f == ISA_FMT_VOP3 || f == ISA_FMT_VOP3SD || f == ISA_FMT_VOP3P;
}

/* These have a VOP3 encoding only and no suffix for it. */
static bool has_no_suffix(enum isa_op op)
{
	return op == ISA_v_readlane_b32 || op == ISA_v_writelane_b32;
}

static bool try_all(struct parser *ps, const struct mnemonic *m,
		    const char *line)
{
	const struct isa_op_info *op = ps->op;
	enum isa_form form = line ? ISA_FORM_PLAIN : isa_mods_form(ps);
	bool e32 = isa_fmt_is_e32(op->fmt);

	if (m->sdwa || form == ISA_FORM_SDWA)
		return e32 && ps->t->gen < ISA_GFX11 && !m->e64 && !m->dpp ?
			       try_form(ps, m->op, op->fmt, ISA_FORM_SDWA,
					line) :
			       isa_refuse(ps, 3, "SDWA not allowed here");
	if (m->dpp && form == ISA_FORM_PLAIN)
		return isa_refuse(ps, 3, "a DPP control is missing");
	if (form != ISA_FORM_PLAIN &&
	    (m->e32 || (m->e64 && !m->dpp) || (!e32 && !is_vop3_fmt(op->fmt))))
		return isa_refuse(ps, 3, "DPP not allowed here");
	if (!e32) {
		if (m->e64 && has_no_suffix(m->op))
			return isa_refuse(ps, 3, "no such encoding");
		if (has_no_suffix(m->op))
			return try_form(ps, m->op, op->fmt, form, line);
		if (m->e64 ? !is_vop3_fmt(op->fmt) &&
				     op->fmt != ISA_FMT_VINTERP :
			     m->dpp || (m->e32 && (is_vop3_fmt(op->fmt) ||
						   op->fmt == ISA_FMT_VINTERP)))
			return isa_refuse(ps, 3, "no such encoding");
		return try_form(ps, m->op, op->fmt, form, line);
	}
	if (!m->e64 && try_form(ps, m->op, op->fmt, form, line))
		return true;
	if (m->e32 || (m->dpp && !m->e64))
		return false;
	if (!(op->flags & ISA_E64))
		return isa_refuse(ps, 2, "no VOP3 encoding");
	return try_form(ps, m->op,
			isa_op_has_slot(op, ISA_SLOT_CO) ? ISA_FMT_VOP3SD :
							   ISA_FMT_VOP3,
			form, line);
}

/* The row that loads to LDS instead of to registers. */
static bool to_lds(struct parser *ps, struct mnemonic *m)
{
	enum isa_fmt layout = isa_layout(ps->t->gen, ps->op->fmt);
	int opcode = isa_opcode(ps->t->gen, m->op, false);
	enum isa_op op;

	if (opcode < 0 || isa_opcode_bits(layout) ==
				  isa_fmt_info(layout)->op_bits)
		return false;
	op = isa_op_at(ps->t->gen, ps->op->fmt,
		       opcode | 1 << isa_fmt_info(layout)->op_bits);
	if (!(isa_op_info(op)->flags & ISA_LDSDMA))
		return false;
	m->op = op;
	ps->op = isa_op_info(op);
	return true;
}

const char *isa_parse(const struct isa_target *t, const char *text,
		      isa_symbol_fn *symbol, void *ctx, struct isa_inst *in)
{
	uint8_t code[ISA_MAX_SIZE_BYTES];

	return isa_assemble_line(t, text, symbol, ctx, in, code);
}

const char *isa_assemble_line(const struct isa_target *t, const char *text,
			      isa_symbol_fn *symbol, void *ctx,
			      struct isa_inst *in, uint8_t *code)
{
	struct parser ps;
	const char *end, *second, *why;
	struct mnemonic m;

	ps.t = t;
	ps.symbol = symbol;
	ps.ctx = ctx;
	ps.in = in;
	ps.code = code;
	ps.op = NULL;
	ps.why = NULL;
	ps.why_rank = 0;
	text = isa_skip_space(text);
	for (end = text; isa_is_name(*end); end++)
		;
	if (!isa_gen_known(t->gen))
		return "this generation's encodings are not known";
	if (end == text)
		return "no instruction";
	second = isa_name_is_dual(text) ? strstr(end, "::") : NULL;
	if (second)
		return isa_parse_vopd(&ps, text, second) ? NULL : ps.why;
	if (!isa_name_find(t->gen, text, end - text, &m))
		return "unknown instruction";
	ps.op = isa_op_info(m.op);
	if (isa_imm_takes_line(ps.op))
		return try_all(&ps, &m, end) ? NULL : ps.why;
	why = isa_lex_line(&ps, end);
	if (why)
		return why;
	if (isa_has_mod(&ps, MD_LDS) && !to_lds(&ps, &m))
		return "lds not allowed here";
	return try_all(&ps, &m, NULL) ? NULL : ps.why;
}
