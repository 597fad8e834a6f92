/*
 * compiler/isel/select_int64.c - 64-bit integers out of 32-bit instructions.
 */
#include "compiler/isel/select.h"

static bool in_v(const struct sel *s, struct mir_opnd o)
{
	return mir_is_v(s->m, &o);
}

/* In VCC the instructions are half as long. */
static struct mir_opnd new_carry(struct sel *s)
{
	struct mir_opnd c = sel_new_mask(s);

	s->m->vreg[c.reg].vcc = true;
	return c;
}

static void carry_pair(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		       struct mir_opnd b, bool sub)
{
	struct mir_opnd c;

	if (!in_v(s, d)) {
		/* No copy may come between the two and touch SCC. */
		a = a.kind == MIR_IMM ? a : sel_to_s(s, a);
		b = b.kind == MIR_IMM ? b : sel_to_s(s, b);
		sel_s(s, sub ? ISA_s_sub_u32 : ISA_s_add_u32, mir_part(d, 0, 1),
		      sel_lo(a), sel_lo(b));
		s->glue = true;
		sel_s(s, sub ? ISA_s_subb_u32 : ISA_s_addc_u32,
		      mir_part(d, 1, 1), sel_hi(a), sel_hi(b));
		s->glue = false;
		return;
	}
	c = new_carry(s);
	sel_v(s, sub ? ISA_v_sub_co_u32 : ISA_v_add_co_u32, mir_part(d, 0, 1),
	      c, sel_lo(a), sel_lo(b));
	/* The carry takes one of the two scalars. */
	if (!in_v(s, sel_hi(b)) && sel_hi(b).kind != MIR_IMM &&
	    !in_v(s, sel_hi(a)))
		b = sel_to_v(s, b);
	sel_v(s, sub ? ISA_v_sub_co_ci_u32 : ISA_v_add_co_ci_u32,
	      mir_part(d, 1, 1), new_carry(s), sel_hi(a),
	      sel_to_v(s, sel_hi(b)), c);
}

void sel_add64(struct sel *s, struct mir_opnd d, struct mir_opnd a,
	       struct mir_opnd b)
{
	carry_pair(s, d, a, b, false);
}

void sel_add64_u32(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		   struct mir_opnd b)
{
	struct mir_opnd c;

	if (!in_v(s, d)) {
		b = b.kind == MIR_IMM ? b : sel_to_s(s, b);
		sel_s(s, ISA_s_add_u32, mir_part(d, 0, 1), sel_lo(a), b);
		s->glue = true;
		sel_s(s, ISA_s_addc_u32, mir_part(d, 1, 1), sel_hi(a),
		      mir_imm(0));
		s->glue = false;
		return;
	}
	c = new_carry(s);
	sel_v(s, ISA_v_add_co_u32, mir_part(d, 0, 1), c, sel_lo(a), b);
	sel_v(s, ISA_v_add_co_ci_u32, mir_part(d, 1, 1), new_carry(s),
	      mir_imm(0), sel_to_v(s, sel_hi(a)), c);
}

static void each_half(struct sel *s, const struct ssa_inst *i, int vop, int sop)
{
	struct mir_opnd o[3] = { sel_def(s, i) }, half[3];
	const int n = 1 + (int)i->n_args;

	for (int k = 1; k < n; k++)
		o[k] = sel_get(s, i->arg[k - 1]);
	if (!in_v(s, o[0])) {
		sel_s_list(s, sop, o, n);
		return;
	}
	for (int h = 0; h < 2; h++) {
		for (int k = 0; k < n; k++)
			half[k] = sel_dword(o[k], h);
		sel_v_list(s, vop, half, n);
	}
}

static void select_shift64(struct sel *s, const struct ssa_inst *i, int vop,
			   int sop)
{
	struct mir_opnd d = sel_def(s, i), a = sel_get(s, i->arg[0]);
	struct mir_opnd n = sel_lo(sel_get(s, i->arg[1]));
	uint64_t c;

	if (sel_const(i->arg[1], &c))
		n = mir_imm(c & 63);
	if (!in_v(s, d))
		sel_s(s, sop, d, a, n);
	else
		sel_v(s, vop, d, n, a);
}

/* The number of 32 bits that was extended so, or might as well have been. */
static const struct ssa_inst *
extended_from(const struct sel *s, const struct ssa_inst *v, enum ssa_op op)
{
	if ((v->op != SSA_sext && v->op != SSA_zext) ||
	    v->arg[0]->type.kind != SSA_I32)
		return NULL;
	return v->op == op || ssa_never_negative(s->f, v->arg[0]) ?
		       v->arg[0] : NULL;
}

/* Both factors are 32-bit numbers. */
static bool mul_extended(struct sel *s, const struct ssa_inst *i,
			 struct mir_opnd d)
{
	for (int sign = 0; sign < 2; sign++) {
		enum ssa_op op = sign ? SSA_sext : SSA_zext;
		const struct ssa_inst *x = extended_from(s, i->arg[0], op);
		const struct ssa_inst *y = extended_from(s, i->arg[1], op);
		struct mir_opnd a, b;

		if (!x || !y)
			continue;
		a = sel_get(s, x);
		b = sel_get(s, y);
		if (in_v(s, d)) {
			sel_v(s, sign ? ISA_v_mad_i64_i32 : ISA_v_mad_u64_u32,
			      d, mir_hw(ISA_R_NULL, s->mask), a, b, mir_imm(0))
				->flags |= MIR_EARLY;
			return true;
		}
		sel_s(s, sign ? ISA_s_mul_hi_i32 : ISA_s_mul_hi_u32,
		      mir_part(d, 1, 1), a, b);
		sel_s(s, ISA_s_mul_i32, mir_part(d, 0, 1), a, b);
		return true;
	}
	return false;
}

static void mul_scalar(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		       struct mir_opnd b)
{
	struct mir_opnd p = sel_new_s(s, 1), q = sel_new_s(s, 1);
	struct mir_opnd r = sel_new_s(s, 1), w = sel_new_s(s, 1);

	sel_s(s, ISA_s_mul_hi_u32, p, sel_lo(a), sel_lo(b));
	sel_s(s, ISA_s_mul_i32, q, sel_lo(a), sel_hi(b));
	sel_s(s, ISA_s_mul_i32, r, sel_hi(a), sel_lo(b));
	sel_s(s, ISA_s_add_i32, w, p, q);
	sel_s(s, ISA_s_add_i32, mir_part(d, 1, 1), w, r);
	sel_s(s, ISA_s_mul_i32, mir_part(d, 0, 1), sel_lo(a), sel_lo(b));
}

/* The product of the low halves, and the mixed ones on top. */
static void select_mul64(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), a, b, p, t, u;

	if (mul_extended(s, i, d))
		return;
	a = sel_get(s, i->arg[0]);
	b = sel_get(s, i->arg[1]);
	if (!in_v(s, d)) {
		mul_scalar(s, d, a, b);
		return;
	}
	p = sel_new_v(s, 2);
	t = sel_new_v(s, 1);
	u = sel_new_v(s, 1);
	sel_v(s, ISA_v_mad_u64_u32, p, mir_hw(ISA_R_NULL, s->mask), sel_lo(a),
	      sel_lo(b), mir_imm(0))
		->flags |= MIR_EARLY;
	sel_v(s, ISA_v_mul_lo_u32, t, sel_lo(a), sel_hi(b));
	sel_v(s, ISA_v_mul_lo_u32, u, sel_hi(a), sel_lo(b));
	sel_copy(s, mir_part(d, 0, 1), mir_part(p, 0, 1));
	sel_v(s, ISA_v_add3_u32, mir_part(d, 1, 1), mir_part(p, 1, 1), t, u);
}

/* Smaller or larger of two, by a 64-bit compare. */
static void select_minmax64(struct sel *s, const struct ssa_inst *i, int cmp,
			    int unused)
{
	struct mir_opnd d = sel_def(s, i), a = sel_get(s, i->arg[0]);
	struct mir_opnd b = sel_get(s, i->arg[1]), m = sel_new_mask(s);

	(void)unused;
	sel_v(s, cmp, m, a, b);
	sel_cndmask(s, d, m, a, b);
}

static const struct {
	uint16_t op, v, s;
	void (*select)(struct sel *s, const struct ssa_inst *i, int vop,
		       int sop);
} row64[] = {
	{ SSA_and, ISA_v_and_b32, ISA_s_and_b64, each_half },
	{ SSA_or, ISA_v_or_b32, ISA_s_or_b64, each_half },
	{ SSA_xor, ISA_v_xor_b32, ISA_s_xor_b64, each_half },
	{ SSA_not, ISA_v_not_b32, ISA_s_not_b64, each_half },
	{ SSA_shl, ISA_v_lshlrev_b64, ISA_s_lshl_b64, select_shift64 },
	{ SSA_shr_u, ISA_v_lshrrev_b64, ISA_s_lshr_b64, select_shift64 },
	{ SSA_shr_s, ISA_v_ashrrev_i64, ISA_s_ashr_i64, select_shift64 },
	{ SSA_min_u, ISA_v_cmp_lt_u64, ISA_OP_NONE, select_minmax64 },
	{ SSA_max_u, ISA_v_cmp_gt_u64, ISA_OP_NONE, select_minmax64 },
	{ SSA_min_s, ISA_v_cmp_lt_i64, ISA_OP_NONE, select_minmax64 },
	{ SSA_max_s, ISA_v_cmp_gt_i64, ISA_OP_NONE, select_minmax64 },
};

void sel_int64(struct sel *s, const struct ssa_inst *i)
{
	for (size_t k = 0; k < ARRAY_SIZE(row64); k++)
		if (row64[k].op == i->op) {
			row64[k].select(s, i, row64[k].v, row64[k].s);
			return;
		}
	switch (i->op) {
	case SSA_add:
	case SSA_sub:
		carry_pair(s, sel_def(s, i), sel_get(s, i->arg[0]),
			   sel_get(s, i->arg[1]), i->op == SSA_sub);
		return;
	case SSA_mul:
		select_mul64(s, i);
		return;
	case SSA_div_u:
	case SSA_div_s:
	case SSA_rem_u:
	case SSA_rem_s:
		sel_div(s, i);
		return;
	}
	sel_refuse(s, i, "no 64-bit form");
}
