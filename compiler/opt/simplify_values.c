/*
 * compiler/opt/simplify_values.c - simplification of floats, comparisons,
 * selections, conversions and vectors.
 *
 * Floating-point rules hold for every IEEE value, except for the payload of a
 * NaN.
 */
#include <math.h>

#include "compiler/opt/simplify_int.h"

/* -------------------------------------------------------------- floats -- */

static bool is_neg(const struct ssa_inst *i)
{
	return i->op == SSA_fneg;
}

/* The reciprocal, if that is exact and normal. */
static struct ssa_inst *exact_reciprocal(struct simplify *s,
					 const struct ssa_inst *c)
{
	if (c->op != SSA_const || c->type.n != 1 || c->type.kind != SSA_F32)
		return NULL;
	const double v = ssa_bits_to_f64(SSA_F32, c->imm);
	int e;

	if (fabs(frexp(v, &e)) != 0.5 || e < -120 || e > 120)
		return NULL;
	return bits_of(s, c->type, ssa_f64_to_bits(SSA_F32, 1 / v));
}

static struct ssa_inst *float_two(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0], *y = i->arg[1], *r;

	switch (i->op) {
	case SSA_fadd:
		if (is_real(y, -0.0))
			return x;
		if (is_neg(y))
			return become(s, i, SSA_fsub, x, y->arg[0]);
		if (is_neg(x))
			return become(s, i, SSA_fsub, y, x->arg[0]);
		return NULL;
	case SSA_fsub:
		if (is_real(y, 0))
			return x;
		if (is_real(x, -0.0))
			return become(s, i, SSA_fneg, y, NULL);
		if (is_neg(y))
			return become(s, i, SSA_fadd, x, y->arg[0]);
		return NULL;
	case SSA_fmul:
		if (is_real(y, 1))
			return x;
		if (is_real(y, -1))
			return become(s, i, SSA_fneg, x, NULL);
		if (is_neg(x) && is_neg(y))
			return become(s, i, SSA_fmul, x->arg[0], y->arg[0]);
		return NULL;
	case SSA_fdiv:
		if (is_real(y, 1))
			return x;
		r = exact_reciprocal(s, y);
		return r ? become(s, i, SSA_fmul, x, r) : NULL;
	case SSA_fmin:
	case SSA_fmax:
		return x == y ? x : NULL;
	default:
		return NULL;
	}
}

struct ssa_inst *ssa_simplify_float(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0];

	if (i->op == SSA_fneg)
		return is_neg(x) ? x->arg[0] : NULL;
	if (i->op == SSA_fabs) {
		if (x->op == SSA_fabs)
			return x;
		if (is_neg(x))
			return become(s, i, SSA_fabs, x->arg[0], NULL);
		return NULL;
	}
	if (i->op == SSA_fma) {
		if (is_neg(x) && is_neg(i->arg[1])) {
			i->arg[0] = x->arg[0];
			i->arg[1] = i->arg[1]->arg[0];
			s->changed = true;
		}
		if (is_real(i->arg[1], 1))
			return become(s, i, SSA_fadd, x, i->arg[2]);
		if (is_real(i->arg[2], -0.0))
			return become(s, i, SSA_fmul, x, i->arg[1]);
		return NULL;
	}
	return i->n_args == 2 ? float_two(s, i) : NULL;
}

/* --------------------------------------------- comparisons, selections -- */

static const uint8_t inverse[SSA_PREDS] = {
	[SSA_EQ] = SSA_NE,     [SSA_NE] = SSA_EQ,     [SSA_SLT] = SSA_SGE,
	[SSA_SLE] = SSA_SGT,   [SSA_SGT] = SSA_SLE,   [SSA_SGE] = SSA_SLT,
	[SSA_ULT] = SSA_UGE,   [SSA_ULE] = SSA_UGT,   [SSA_UGT] = SSA_ULE,
	[SSA_UGE] = SSA_ULT,   [SSA_FOEQ] = SSA_FUNE, [SSA_FONE] = SSA_FUEQ,
	[SSA_FOLT] = SSA_FUGE, [SSA_FOLE] = SSA_FUGT, [SSA_FOGT] = SSA_FULE,
	[SSA_FOGE] = SSA_FULT, [SSA_FUEQ] = SSA_FONE, [SSA_FUNE] = SSA_FOEQ,
	[SSA_FULT] = SSA_FOGE, [SSA_FULE] = SSA_FOGT, [SSA_FUGT] = SSA_FOLE,
	[SSA_FUGE] = SSA_FOLT, [SSA_ORD] = SSA_UNO,   [SSA_UNO] = SSA_ORD,
};

/* -1: not known. */
static int decide_by_bounds(const struct simplify *s, const struct ssa_inst *i)
{
	if (i->op == SSA_fcmp || !ssa_kind_is_int(i->arg[0]->type.kind))
		return -1;
	if (i->arg[0] == i->arg[1])
		return i->sub == SSA_EQ || i->sub == SSA_SLE ||
		       i->sub == SSA_SGE || i->sub == SSA_ULE ||
		       i->sub == SSA_UGE;
	const bool is_signed = i->sub >= SSA_SLT && i->sub <= SSA_SGE;
	const struct ssa_bounds a = ssa_bounds(s->f, i->arg[0]);
	const struct ssa_bounds b = ssa_bounds(s->f, i->arg[1]);

	if (is_signed && !(ssa_never_negative(s->f, i->arg[0]) &&
			   ssa_never_negative(s->f, i->arg[1])))
		return -1;
	switch (i->sub) {
	case SSA_EQ:
	case SSA_NE:
		return a.max < b.min || b.max < a.min ? i->sub == SSA_NE : -1;
	case SSA_SLT:
	case SSA_ULT:
		return a.max < b.min ? 1 : a.min >= b.max ? 0 : -1;
	case SSA_SLE:
	case SSA_ULE:
		return a.max <= b.min ? 1 : a.min > b.max ? 0 : -1;
	case SSA_SGT:
	case SSA_UGT:
		return a.min > b.max ? 1 : a.max <= b.min ? 0 : -1;
	default:
		return a.min >= b.max ? 1 : a.max < b.min ? 0 : -1;
	}
}

struct ssa_inst *ssa_simplify_compare(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0], *y = i->arg[1];
	const int known = decide_by_bounds(s, i);

	if (known >= 0)
		return bits_of(s, i->type, (uint64_t)known);
	if (x->op == SSA_const && y->op != SSA_const) {
		i->sub = ssa_pred_swap(i->sub);
		i->arg[0] = y;
		i->arg[1] = x;
		s->changed = true;
	}
	/* A condition that was made a number. */
	if (i->op == SSA_icmp && is_value(i->arg[1], 0) &&
	    i->arg[0]->op == SSA_zext &&
	    i->arg[0]->arg[0]->type.kind == SSA_I1) {
		struct ssa_inst *c = i->arg[0]->arg[0];

		if (i->sub == SSA_NE)
			return c;
		if (i->sub == SSA_EQ)
			return become(s, i, SSA_not, c, NULL);
	}
	return NULL;
}

struct ssa_inst *ssa_simplify_not(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0];

	if (x->op != SSA_icmp && x->op != SSA_fcmp)
		return NULL;
	i->sub = inverse[x->sub];
	i->op = x->op;
	i->flags = x->flags & (uint16_t)~SSA_UNIFORM;
	i->n_args = 2;
	i->arg = ssa_args_copy(s->f, 2, x->arg);
	s->changed = true;
	return NULL;
}

struct ssa_inst *ssa_simplify_select(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *c = i->arg[0];

	if (i->arg[1] == i->arg[2])
		return i->arg[1];
	if (c->op == SSA_const)
		return i->arg[c->imm ? 1 : 2];
	if (i->type.kind == SSA_I1 && is_value(i->arg[1], 1) &&
	    is_value(i->arg[2], 0))
		return c;
	if (c->op == SSA_not) {
		struct ssa_inst *x = i->arg[1];

		i->arg[0] = c->arg[0];
		i->arg[1] = i->arg[2];
		i->arg[2] = x;
		s->changed = true;
	}
	return NULL;
}

/* ---------------------------------------------- conversions and vectors -- */

struct ssa_inst *ssa_simplify_convert(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0];
	struct ssa_inst *y = x->n_args ? x->arg[0] : NULL;

	switch (i->op) {
	case SSA_bitcast:
		if (ssa_type_eq(x->type, i->type))
			return x;
		if (x->op == SSA_bitcast)
			return ssa_type_eq(y->type, i->type) ?
				       y : become(s, i, SSA_bitcast, y, NULL);
		return NULL;
	case SSA_trunc:
		if (x->op == SSA_zext || x->op == SSA_sext ||
		    x->op == SSA_trunc) {
			const uint32_t has = ssa_kind_bits(y->type.kind);
			const uint32_t wants = ssa_kind_bits(i->type.kind);

			if (has == wants)
				return y;
			if (has > wants)
				return become(s, i, SSA_trunc, y, NULL);
			if (x->op != SSA_trunc && wants >= 16)
				return become(s, i, x->op, y, NULL);
		}
		return NULL;
	case SSA_zext:
		return x->op == SSA_zext ? become(s, i, SSA_zext, y, NULL) :
					   NULL;
	case SSA_sext:
		if (x->op == SSA_sext || x->op == SSA_zext)
			return become(s, i, x->op, y, NULL);
		if (ssa_kind_bits(x->type.kind) > 1 &&
		    ssa_never_negative(s->f, x))
			return become(s, i, SSA_zext, x, NULL);
		return NULL;
	case SSA_fcvt: /* there and back */
		return x->op == SSA_fcvt && ssa_type_eq(y->type, i->type) &&
				       x->type.kind == SSA_F32 ? y : NULL;
	default:
		return NULL;
	}
}

struct ssa_inst *ssa_simplify_vector(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *v = i->arg[0];

	if (i->op == SSA_extract) {
		if (v->op == SSA_pack)
			return v->arg[i->imm];
		if (v->op == SSA_const && !v->imm)
			return bits_of(s, i->type, 0);
		return NULL;
	}
	/* A vector taken apart and put together again. */
	if (v->op != SSA_extract || !ssa_type_eq(v->arg[0]->type, i->type))
		return NULL;
	for (uint32_t k = 0; k < i->n_args; k++)
		if (i->arg[k]->op != SSA_extract || i->arg[k]->imm != k ||
		    i->arg[k]->arg[0] != v->arg[0])
			return NULL;
	return v->arg[0];
}
