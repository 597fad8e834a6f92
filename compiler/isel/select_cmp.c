/*
 * compiler/isel/select_cmp.c - comparisons, conditions and selections.
 */
#include "compiler/isel/select.h"

/* Vector compares by predicate: i32/u32 and i64/u64 by the sign. */
static int icmp_v(uint8_t pred, bool wide)
{
	static const uint16_t op[][2] = {
		[SSA_EQ] = { ISA_v_cmp_eq_u32, ISA_v_cmp_eq_u64 },
		[SSA_NE] = { ISA_v_cmp_ne_u32, ISA_v_cmp_ne_u64 },
		[SSA_SLT] = { ISA_v_cmp_lt_i32, ISA_v_cmp_lt_i64 },
		[SSA_SLE] = { ISA_v_cmp_le_i32, ISA_v_cmp_le_i64 },
		[SSA_SGT] = { ISA_v_cmp_gt_i32, ISA_v_cmp_gt_i64 },
		[SSA_SGE] = { ISA_v_cmp_ge_i32, ISA_v_cmp_ge_i64 },
		[SSA_ULT] = { ISA_v_cmp_lt_u32, ISA_v_cmp_lt_u64 },
		[SSA_ULE] = { ISA_v_cmp_le_u32, ISA_v_cmp_le_u64 },
		[SSA_UGT] = { ISA_v_cmp_gt_u32, ISA_v_cmp_gt_u64 },
		[SSA_UGE] = { ISA_v_cmp_ge_u32, ISA_v_cmp_ge_u64 },
	};

	return op[pred][wide];
}

static int icmp_s(uint8_t pred, bool wide)
{
	static const uint16_t op[] = {
		[SSA_EQ] = ISA_s_cmp_eq_u32,  [SSA_NE] = ISA_s_cmp_lg_u32,
		[SSA_SLT] = ISA_s_cmp_lt_i32, [SSA_SLE] = ISA_s_cmp_le_i32,
		[SSA_SGT] = ISA_s_cmp_gt_i32, [SSA_SGE] = ISA_s_cmp_ge_i32,
		[SSA_ULT] = ISA_s_cmp_lt_u32, [SSA_ULE] = ISA_s_cmp_le_u32,
		[SSA_UGT] = ISA_s_cmp_gt_u32, [SSA_UGE] = ISA_s_cmp_ge_u32,
	};

	if (!wide)
		return op[pred];
	return pred == SSA_EQ ? ISA_s_cmp_eq_u64 :
	       pred == SSA_NE ? ISA_s_cmp_lg_u64 :
				ISA_OP_NONE;
}

/* The short encoding wants a vector register second. */
static uint8_t order_operands(const struct sel *s, struct mir_opnd *a,
			      struct mir_opnd *b, uint8_t pred)
{
	struct mir_opnd t = *a;

	if (mir_is_v(s->m, b) || !mir_is_v(s->m, a))
		return pred;
	*a = *b;
	*b = t;
	return ssa_pred_swap(pred);
}

static bool is_signed(uint8_t pred)
{
	return pred >= SSA_SLT && pred <= SSA_SGE;
}

static bool scalar_compare(const struct sel *s, const struct ssa_inst *i)
{
	bool wide;

	if (i->op != SSA_icmp)
		return false;
	wide = sel_dwords(s, i->arg[0]->type) == 2;
	return i->flags & SSA_UNIFORM &&
	       i->arg[0]->type.kind != SSA_I1 && sel_is_s(s, i->arg[0]) &&
	       sel_is_s(s, i->arg[1]) && icmp_s(i->sub, wide);
}

/* One of the operands must be a register. */
static void emit_s_cmp(struct sel *s, const struct ssa_inst *i)
{
	bool wide = sel_dwords(s, i->arg[0]->type) == 2;
	struct mir_opnd a = sel_ext(s, i->arg[0], is_signed(i->sub));
	struct mir_opnd b = sel_ext(s, i->arg[1], is_signed(i->sub));

	sel_s(s, icmp_s(i->sub, wide), a, b);
}

static void mask_compare(struct sel *s, const struct ssa_inst *i)
{
	sel_s(s, i->sub == SSA_EQ ? sel_mop(s, s_xnor) : sel_mop(s, s_xor),
	      sel_def(s, i), sel_get(s, i->arg[0]), sel_get(s, i->arg[1]));
}

void sel_icmp(struct sel *s, const struct ssa_inst *i)
{
	bool wide = sel_dwords(s, i->arg[0]->type) == 2;
	struct mir_opnd d = sel_def(s, i), a, b;
	uint8_t pred = i->sub;

	if (i->arg[0]->type.kind == SSA_I1) {
		mask_compare(s, i);
		return;
	}
	if (scalar_compare(s, i)) {
		emit_s_cmp(s, i);
		s->glue = true;
		sel_s(s, sel_mop(s, s_cselect), d, mir_imm(UINT32_MAX),
		      mir_imm(0));
		s->glue = false;
		return;
	}
	a = sel_ext(s, i->arg[0], is_signed(pred));
	b = sel_ext(s, i->arg[1], is_signed(pred));
	pred = order_operands(s, &a, &b, pred);
	s->m->vreg[d.reg].vcc = true;
	sel_v(s, icmp_v(pred, wide), d, a, b);
}

/* -------------------------------------------------------------- float ---- */

#define CMP(name) \
	{ ISA_v_cmp_##name##_f16, ISA_v_cmp_##name##_f32, \
	  ISA_v_cmp_##name##_f64 }
static const uint16_t fcmp_op[][3] = {
	[SSA_FOEQ] = CMP(eq),  [SSA_FONE] = CMP(lg),  [SSA_FOLT] = CMP(lt),
	[SSA_FOLE] = CMP(le),  [SSA_FOGT] = CMP(gt),  [SSA_FOGE] = CMP(ge),
	[SSA_FUEQ] = CMP(nlg), [SSA_FUNE] = CMP(neq), [SSA_FULT] = CMP(nge),
	[SSA_FULE] = CMP(ngt), [SSA_FUGT] = CMP(nle), [SSA_FUGE] = CMP(nlt),
	[SSA_ORD] = CMP(o),    [SSA_UNO] = CMP(u),
};
#undef CMP

void sel_fcmp(struct sel *s, const struct ssa_inst *i)
{
	uint8_t kind = i->arg[0]->type.kind, pred;
	int width = kind == SSA_F16 ? 0 : kind == SSA_F32 ? 1 : 2;
	struct mir_opnd a = sel_get_f(s, i->arg[0]);
	struct mir_opnd b = sel_get_f(s, i->arg[1]), d = sel_def(s, i);

	pred = order_operands(s, &a, &b, i->sub);
	s->m->vreg[d.reg].vcc = true;
	sel_v(s, fcmp_op[pred][width], d, a, b);
}

/* --------------------------------------------------------- conditions ---- */

void sel_scc(struct sel *s, const struct ssa_inst *cond, bool *inverted)
{
	*inverted = false;
	while (cond->op == SSA_not) {
		cond = cond->arg[0];
		*inverted = !*inverted;
	}
	if (scalar_compare(s, cond)) {
		emit_s_cmp(s, cond);
		return;
	}
	sel_s(s, sel_mop(s, s_and), sel_new_mask(s), sel_get(s, cond),
	      sel_exec(s));
}

static void select_mask(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd c = sel_get(s, i->arg[0]), t = sel_new_mask(s);
	struct mir_opnd u = sel_new_mask(s);

	sel_s(s, sel_mop(s, s_and), t, sel_get(s, i->arg[1]), c);
	sel_s(s, sel_mop(s, s_and_not1), u, sel_get(s, i->arg[2]), c);
	sel_s(s, sel_mop(s, s_or), sel_def(s, i), t, u);
}

void sel_select(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d, a, b;

	if (i->type.kind == SSA_I1) {
		select_mask(s, i);
		return;
	}
	d = sel_def(s, i);
	a = sel_get(s, i->arg[1]);
	b = sel_get(s, i->arg[2]);
	if (s->val[i->id].cls == SEL_S) {
		bool inverted;

		if (a.kind == MIR_IMM && b.kind == MIR_IMM)
			a = d.n == 1 && !sel_is_inline(a.imm, 0) ?
				    sel_to_s(s, a) :
				    a;
		sel_scc(s, i->arg[0], &inverted);
		s->glue = true;
		sel_s(s, d.n == 2 ? ISA_s_cselect_b64 : ISA_s_cselect_b32, d,
		      inverted ? b : a, inverted ? a : b);
		s->glue = false;
		return;
	}
	sel_cndmask(s, d, sel_get(s, i->arg[0]), a, b);
}
