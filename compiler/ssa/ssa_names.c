/*
 * compiler/ssa/ssa_names.c - the text form: names and printing.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/ssa/ssa_int.h"

const char *const ssa_kind_name[SSA_KINDS] = {
	"void", "i1", "i8", "i16", "i32", "i64",
	"f16", "bf16", "f32", "f64", "ptr", "lds",
};
static const char *const pred_name[SSA_PREDS] = {
	"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule",
	"ugt", "uge", "foeq", "fone", "folt", "fole", "fogt", "foge",
	"fueq", "fune", "fult", "fule", "fugt", "fuge", "ord", "uno",
};
static const char *const rmw_name[SSA_RMWS] = {
	"xchg", "add", "min_s", "max_s", "min_u", "max_u",
	"and", "or", "xor", "fadd", "fmin", "fmax",
};
static const char *const wmma_name[SSA_WMMAS] = {
	"f32_f16", "f32_bf16", "f16_f16", "bf16_bf16", "i32_iu8", "i32_iu4",
};
const char *const ssa_flag_name[SSA_FLAG_BITS] = {
	"contract", "fast", "reassoc", "volatile", "stream", "invariant",
	"signed_a", "signed_b", "nuw", "nsw",
};

const char *const *ssa_sub_names(enum ssa_op op, uint32_t *n)
{
	switch (op) {
	case SSA_icmp:
	case SSA_fcmp:
		*n = SSA_PREDS;
		return pred_name;
	case SSA_atomic:
	case SSA_reduce:
	case SSA_scan:
	case SSA_group_reduce:
		*n = SSA_RMWS;
		return rmw_name;
	case SSA_wmma:
		*n = SSA_WMMAS;
		return wmma_name;
	default:
		*n = 0;
		return NULL;
	}
}

bool ssa_op_has_imm(enum ssa_op op)
{
	switch (op) {
	case SSA_const:
	case SSA_arg:
	case SSA_local_id:
	case SSA_group_id:
	case SSA_num_groups:
	case SSA_lds:
	case SSA_extract:
	case SSA_shuffle_xor:
	case SSA_scan:
	case SSA_printf:
		return true;
	default:
		return false;
	}
}

static void put_type(struct buf *out, struct ssa_type t)
{
	buf_adds(out, ssa_kind_name[t.kind]);
	if (t.n > 1)
		buf_printf(out, "x%u", t.n);
}

static void put_values(struct buf *out, uint32_t n, struct ssa_inst *const *v)
{
	for (uint32_t k = 0; k < n; k++)
		buf_printf(out, "%s%%%u", k ? ", " : "", v[k]->id);
}

static void put_edge(struct buf *out, const struct ssa_edge *e)
{
	buf_printf(out, "b%u", e->to->id);
	if (!e->n_args)
		return;
	buf_addc(out, '(');
	put_values(out, e->n_args, e->arg);
	buf_addc(out, ')');
}

/* What a constant means, as a comment. */
static void put_meaning(struct buf *out, const struct ssa_inst *i)
{
	if (i->op != SSA_const || i->type.n != 1)
		return;
	if (i->type.kind == SSA_F32) {
		const union {
			uint32_t bits;
			float f;
		} u = { (uint32_t)i->imm };

		buf_printf(out, " ; %.9g", (double)u.f);
	} else if (i->imm > 9 && ssa_kind_is_int(i->type.kind)) {
		const uint32_t drop = 64 - ssa_kind_bits(i->type.kind);

		buf_printf(out, " ; %lld",
			   (long long)(int64_t)(i->imm << drop) >> drop);
	}
}

static void put_tail(struct buf *out, const struct ssa_inst *i)
{
	if (i->off)
		buf_printf(out, " %+d", i->off);
	if (i->align)
		buf_printf(out, " align %u", 1u << i->align);
	for (int k = 0; k < SSA_FLAG_BITS; k++)
		if (i->flags >> k & 1)
			buf_printf(out, " %s", ssa_flag_name[k]);
	if (i->line)
		buf_printf(out, " !%u", i->line);
	put_meaning(out, i);
	buf_addc(out, '\n');
}

static void put_op(struct buf *out, const struct ssa_inst *i)
{
	uint32_t n;
	const char *const *sub = ssa_sub_names(i->op, &n);

	buf_addc(out, '\t');
	if (i->type.kind != SSA_VOID)
		buf_printf(out, "%%%u = ", i->id);
	buf_adds(out, ssa_op_info(i->op)->name);
	if (sub && i->sub < n)
		buf_printf(out, ".%s", sub[i->sub]);
	if (i->type.kind != SSA_VOID) {
		buf_addc(out, ' ');
		put_type(out, i->type);
	}
}

static void put_inst(struct buf *out, const struct ssa_inst *i)
{
	put_op(out, i);
	if (i->n_args)
		buf_addc(out, ' ');
	put_values(out, i->n_args, i->arg);
	if (ssa_op_has_imm(i->op))
		buf_printf(out, i->op == SSA_const ? " 0x%llx" : " %llu",
			   (unsigned long long)i->imm);
	for (uint32_t k = 0; k < ssa_n_edges(i); k++) {
		buf_adds(out, i->op == SSA_branch ? ", " : " ");
		put_edge(out, &i->edge[k]);
	}
	if (i->merge)
		buf_printf(out, " merge b%u", i->merge->id);
	put_tail(out, i);
}

static void put_block(struct buf *out, const struct ssa_block *b)
{
	buf_printf(out, "b%u", b->id);
	for (uint32_t k = 0; k < b->n_params; k++) {
		buf_printf(out, "%s%%%u ", k ? ", " : "(", b->param[k]->id);
		put_type(out, b->param[k]->type);
	}
	buf_adds(out, b->n_params ? "):\n" : ":\n");
	for (const struct ssa_inst *i = b->first; i; i = i->next)
		put_inst(out, i);
}

static void put_string(struct buf *out, const char *s)
{
	buf_addc(out, '"');
	for (; *s; s++) {
		const unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (isprint(c))
			buf_addc(out, *s);
		else
			buf_printf(out, "\\x%02x", c);
	}
	buf_addc(out, '"');
}

static void put_arg(struct buf *out, const struct ssa_arg *a)
{
	buf_printf(out, "arg %s ", a->name);
	put_type(out, a->type);
	if (a->elem.n) {
		buf_addc(out, ' ');
		put_type(out, a->elem);
	}
	if (a->noalias)
		buf_adds(out, " noalias");
	if (a->readonly)
		buf_adds(out, " readonly");
	buf_addc(out, '\n');
}

void ssa_print(const struct ssa_func *f, struct buf *out)
{
	buf_printf(out, "kernel %s group %u %u %u wave %u", f->name,
		   f->group[0], f->group[1], f->group[2], f->wave);
	if (f->waves)
		buf_printf(out, " waves %u", f->waves);
	buf_addc(out, '\n');
	if (f->file) {
		buf_adds(out, "file ");
		put_string(out, f->file);
		buf_addc(out, '\n');
	}
	for (uint32_t k = 0; k < f->n_args; k++)
		put_arg(out, &f->arg[k]);
	for (uint32_t k = 0; k < f->n_lds; k++)
		buf_printf(out, "lds %s %u align %u\n", f->lds[k].name,
			   f->lds[k].size_bytes, f->lds[k].align_bytes);
	for (uint32_t k = 0; k < f->n_formats; k++) {
		buf_adds(out, "format ");
		put_string(out, f->format[k]);
		buf_addc(out, '\n');
	}
	for (const struct ssa_block *b = f->first; b; b = b->next)
		put_block(out, b);
}
