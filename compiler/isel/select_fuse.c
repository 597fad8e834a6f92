/*
 * compiler/isel/select_fuse.c - two operations that are one vector instruction.
 *
 * The inner operation has no other use; it was selected by itself before, and
 * dead code elimination removes that (mir_dce()).
 */
#include "compiler/isel/select.h"

/* outer(inner(x, y), z): one instruction of x, y and z. */
struct fusion {
	uint16_t outer, inner;
	uint16_t op;
	bool either; /* the inner one may be the second operand */
};

#define F(outer, inner, op, either) \
	{ SSA_##outer, SSA_##inner, ISA_##op, either },
static const struct fusion on_i32[] = {
	F(add, shl, v_lshl_add_u32, true)
	F(add, add, v_add3_u32, true)
	F(add, xor, v_xad_u32, true)
	F(shl, add, v_add_lshl_u32, false)
	F(or, shl, v_lshl_or_b32, true)
	F(or, and, v_and_or_b32, true)
	F(or, or, v_or3_b32, true)
	F(xor, xor, v_xor3_b32, true)
	F(min_s, min_s, v_min3_i32, true)
	F(max_s, max_s, v_max3_i32, true)
	F(min_u, min_u, v_min3_u32, true)
	F(max_u, max_u, v_max3_u32, true)
};
static const struct fusion on_f32[] = {
	F(fmin, fmin, v_min3_f32, true)
	F(fmax, fmax, v_max3_f32, true)
	F(fmin, fmax, v_maxmin_f32, true)
	F(fmax, fmin, v_minmax_f32, true)
};
#undef F

static bool only_for(const struct sel *s, const struct ssa_inst *inner,
		     uint16_t op)
{
	return inner->op == op && s->val[inner->id].uses == 1 &&
	       s->val[inner->id].cls == SEL_V;
}

/* Operand number of `i` that the row fuses with, -1. */
static int inner_of(const struct sel *s, const struct ssa_inst *i,
		    const struct fusion *f)
{
	if (i->op != f->outer)
		return -1;
	if (only_for(s, i->arg[0], f->inner))
		return 0;
	return f->either && only_for(s, i->arg[1], f->inner) ? 1 : -1;
}

/* Three literals or scalars would only come back as moves. */
static bool operands_fit(const struct sel *s, const struct mir_opnd o[3])
{
	int scalars = 0;
	bool literal = false;

	for (int k = 0; k < 3; k++) {
		bool lit = o[k].kind == MIR_IMM && !sel_is_inline(o[k].imm, 0);

		scalars += lit || mir_is_s(s->m, &o[k]);
		if (lit && literal)
			return false;
		literal |= lit;
	}
	return scalars <= 2;
}

static bool by_table(struct sel *s, const struct ssa_inst *i,
		     const struct fusion *f, size_t n, bool is_float)
{
	for (size_t k = 0; k < n; k++) {
		int at = inner_of(s, i, &f[k]);
		const struct ssa_inst *in;
		struct mir_opnd o[3];

		if (at < 0 || mir_lacks(s->m, f[k].op))
			continue;
		in = i->arg[at];
		o[0] = is_float ? sel_get_f(s, in->arg[0]) :
				  sel_get(s, in->arg[0]);
		o[1] = is_float ? sel_get_f(s, in->arg[1]) :
				  sel_get(s, in->arg[1]);
		o[2] = is_float ? sel_get_f(s, i->arg[!at]) :
				  sel_get(s, i->arg[!at]);
		if (!operands_fit(s, o))
			continue;
		sel_v(s, f[k].op, sel_def(s, i), o[0], o[1], o[2]);
		return true;
	}
	return false;
}

/* (x >> c) & (2^n - 1) */
static bool fuse_bitfield(struct sel *s, const struct ssa_inst *i)
{
	const struct ssa_inst *in = i->arg[0];
	uint64_t mask, c;
	uint32_t n = 0;

	if (i->op != SSA_and || !sel_const(i->arg[1], &mask) ||
	    !only_for(s, in, SSA_shr_u) || !sel_const(in->arg[1], &c))
		return false;
	while (mask >> n & 1)
		n++;
	if (!n || (mask & 0xffffffff) >> n || (c & 31) + n > 32)
		return false;
	sel_v(s, ISA_v_bfe_u32, sel_def(s, i), sel_get(s, in->arg[0]),
	      mir_imm(c & 31), mir_imm(n));
	return true;
}

/* x y + z of small x and y */
static bool mul_add(struct sel *s, const struct ssa_inst *i)
{
	for (int k = 0; k < 2 && i->op == SSA_add; k++) {
		const struct ssa_inst *in = i->arg[k];
		struct mir_opnd o[3];

		if (!only_for(s, in, SSA_mul) || !sel_fits24(s, in->arg[0]) ||
		    !sel_fits24(s, in->arg[1]))
			continue;
		o[0] = sel_get(s, in->arg[0]);
		o[1] = sel_get(s, in->arg[1]);
		o[2] = sel_get(s, i->arg[!k]);
		if (!operands_fit(s, o))
			continue;
		sel_v(s, ISA_v_mad_u32_u24, sel_def(s, i), o[0], o[1], o[2]);
		return true;
	}
	return false;
}

bool sel_fuse(struct sel *s, const struct ssa_inst *i)
{
	if (s->val[i->id].cls != SEL_V || i->type.n != 1 || i->n_args != 2)
		return false;
	if (i->type.kind == SSA_F32)
		return by_table(s, i, on_f32, ARRAY_SIZE(on_f32), true);
	if (i->type.kind != SSA_I32)
		return false;
	return by_table(s, i, on_i32, ARRAY_SIZE(on_i32), false) ||
	       fuse_bitfield(s, i) || mul_add(s, i);
}
