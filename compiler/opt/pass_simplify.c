/*
 * compiler/opt/pass_simplify.c - constant folding and algebra.
 *
 * A rule looks at one instruction whose operands are simplified already, and
 * either names an equal value or changes the instruction in place.  This file
 * has the walk and the rules for integers and pointers.
 */
#include "compiler/opt/simplify_int.h"

/* ------------------------------------------------------------ integers -- */

/* x op c where x is itself (y op' d) with a constant d. */
static struct ssa_inst *reassociate_const(struct simplify *s,
					  struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0];
	uint64_t c, d;

	if (i->n_args != 2 || x->n_args != 2 || !is_const(i->arg[1], &c) ||
	    !is_const(x->arg[1], &d) || !ssa_type_eq(x->type, i->type))
		return NULL;
	const struct ssa_type t = i->type;
	const uint32_t bits = ssa_kind_bits(t.kind);
	const uint16_t both = x->flags & i->flags & SSA_NUW;

	if (x->op == i->op && (i->op == SSA_add || i->op == SSA_mul ||
			       i->op == SSA_and || i->op == SSA_or ||
			       i->op == SSA_xor)) {
		const uint64_t arg[] = { d, c };
		uint64_t r;

		/* Two steps up that do not wrap are one that does not. */
		const uint64_t half = (uint64_t)1 << (bits - 1);
		const bool up = i->op == SSA_add && c < half && d < half &&
				c + d < half;
		const uint16_t up_flag =
			up ? x->flags & i->flags & SSA_NSW : 0;

		ssa_eval(i, arg, &r);
		become(s, i, i->op, x->arg[0], bits_of(s, t, r));
		i->flags |= i->op == SSA_add || i->op == SSA_mul ? both : 0;
		i->flags |= up_flag;
		return NULL;
	}
	if (i->op == SSA_shl && x->op == SSA_shl && c + d < bits) {
		become(s, i, SSA_shl, x->arg[0], bits_of(s, t, c + d));
		i->flags |= both;
		return NULL;
	}
	if (i->op == SSA_shr_u && x->op == SSA_shr_u && c + d < bits)
		return become(s, i, SSA_shr_u, x->arg[0],
			      bits_of(s, t, c + d));
	if (i->op == SSA_shl && x->op == SSA_mul && c < bits)
		return become(s, i, SSA_mul, x->arg[0],
			      bits_of(s, t, d << c));
	/* (y + d) << c: the constant goes where an address can take it. */
	if (i->op == SSA_shl && x->op == SSA_add && c < bits) {
		const bool exact = i->flags & SSA_NUW &&
				   (x->flags & SSA_NUW ||
				    ssa_adds_exactly(s->f, x->arg[0],
						     x->arg[1]));
		struct ssa_inst *y = ssa_emit2(s->f, i, SSA_shl, x->arg[0],
					       i->arg[1]);

		become(s, i, SSA_add, y, bits_of(s, t, d << c));
		if (exact) {
			y->flags |= SSA_NUW;
			i->flags |= SSA_NUW;
		}
	}
	return NULL;
}

static bool power_of_two(const struct ssa_inst *i, uint64_t *log2)
{
	uint64_t v;

	if (!is_const(i, &v) || !v || v & (v - 1))
		return false;
	*log2 = (uint64_t)__builtin_ctzll(v);
	return true;
}

/* By a constant on the right. */
static struct ssa_inst *int_constant(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *x = i->arg[0], *c = i->arg[1];
	uint64_t log2;

	switch (i->op) {
	case SSA_add:
	case SSA_or:
	case SSA_xor:
	case SSA_shl:
	case SSA_shr_u:
	case SSA_shr_s:
		if (is_value(c, 0))
			return x;
		break;
	case SSA_sub:
		if (is_value(c, 0))
			return x;
		if (c->op == SSA_const)
			return become(s, i, SSA_add, x,
				      bits_of(s, i->type, -c->imm));
		break;
	case SSA_and:
		if (is_value(c, 0))
			return c;
		if (is_value(c, ~(uint64_t)0))
			return x;
		/* A mask over all that x can have. */
		if (c->op == SSA_const && !(c->imm & (c->imm + 1)) &&
		    ssa_bounds(s->f, x).max <= c->imm)
			return x;
		break;
	case SSA_mul:
		if (is_value(c, 0))
			return c;
		if (is_value(c, 1))
			return x;
		if (power_of_two(c, &log2)) {
			const uint16_t flags = i->flags & SSA_NUW;

			become(s, i, SSA_shl, x, bits_of(s, i->type, log2));
			i->flags |= flags;
		}
		break;
	case SSA_div_u:
		if (power_of_two(c, &log2))
			return become(s, i, SSA_shr_u, x,
				      bits_of(s, i->type, log2));
		break;
	case SSA_rem_u:
		if (power_of_two(c, &log2))
			return become(s, i, SSA_and, x,
				      bits_of(s, i->type, c->imm - 1));
		break;
	case SSA_div_s:
	case SSA_rem_s:
		if (is_value(c, 1))
			return i->op == SSA_div_s ? x :
						    bits_of(s, i->type, 0);
		break;
	default:
		break;
	}
	return NULL;
}

/* Both operands the same. */
static struct ssa_inst *int_same(struct simplify *s, struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_and:
	case SSA_or:
	case SSA_min_u:
	case SSA_max_u:
	case SSA_min_s:
	case SSA_max_s:
		return i->arg[0];
	case SSA_sub:
	case SSA_xor:
		return bits_of(s, i->type, 0);
	default:
		return NULL;
	}
}

/* What the bounds of the operands say. */
static struct ssa_inst *int_bounds(struct simplify *s, struct ssa_inst *i)
{
	if (i->op != SSA_div_s && i->op != SSA_rem_s && i->op != SSA_shr_s &&
	    !(i->op >= SSA_min_u && i->op <= SSA_max_s))
		return NULL;
	const bool positive = ssa_never_negative(s->f, i->arg[0]);
	const bool both = positive && ssa_never_negative(s->f, i->arg[1]);

	if (i->op == SSA_shr_s && positive)
		return become(s, i, SSA_shr_u, i->arg[0], i->arg[1]);
	if (i->op == SSA_div_s && both)
		return become(s, i, SSA_div_u, i->arg[0], i->arg[1]);
	if (i->op == SSA_rem_s && both)
		return become(s, i, SSA_rem_u, i->arg[0], i->arg[1]);
	const bool is_signed = i->op == SSA_min_s || i->op == SSA_max_s;
	const bool min = i->op == SSA_min_s || i->op == SSA_min_u;

	if (i->op < SSA_min_u || i->op > SSA_max_s || (is_signed && !both))
		return NULL;
	const struct ssa_bounds a = ssa_bounds(s->f, i->arg[0]);
	const struct ssa_bounds b = ssa_bounds(s->f, i->arg[1]);

	if (a.max <= b.min)
		return i->arg[min ? 0 : 1];
	if (b.max <= a.min)
		return i->arg[min ? 1 : 0];
	return NULL;
}

/* The number of the wave, from a work-item's: the same in all its lanes. */
static struct ssa_inst *wave_of(struct simplify *s, struct ssa_inst *i)
{
	const struct ssa_inst *x = i->arg[0];
	const struct ssa_func *f = s->f;
	const uint64_t log2 = f->wave == 64 ? 6 : 5;
	uint64_t c;

	if (i->op != SSA_shr_u || x->op != SSA_local_id || x->imm ||
	    f->group[1] != 1 || f->group[2] != 1 || !is_const(i->arg[1], &c) ||
	    c < log2 || c > 31)
		return NULL;
	struct ssa_inst *wave = ssa_inst_new(s->f, SSA_wave, i->type, 0, NULL);

	wave->line = i->line;
	ssa_insert_before(i, wave);
	return become(s, i, SSA_shr_u, wave, bits_of(s, i->type, c - log2));
}

static struct ssa_inst *simplify_int(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *r = NULL;

	if (i->op == SSA_not)
		return i->arg[0]->op == SSA_not ? i->arg[0]->arg[0] : NULL;
	if (i->type.n != 1 || i->n_args != 2)
		return NULL;
	wave_of(s, i);
	if (i->arg[0] == i->arg[1])
		r = int_same(s, i);
	if (!r)
		r = int_constant(s, i);
	if (!r && i->n_args == 2 && !s->changed)
		r = int_bounds(s, i);
	return r ? r : reassociate_const(s, i);
}

/* ------------------------------------------------------------ pointers -- */

static struct ssa_inst *simplify_ptradd(struct simplify *s, struct ssa_inst *i)
{
	struct ssa_inst *p = i->arg[0];
	uint64_t c, d;

	if (!is_const(i->arg[1], &c))
		return NULL;
	if (!c)
		return p;
	if (p->op != SSA_ptradd || !is_const(p->arg[1], &d))
		return NULL;
	const struct ssa_type t =
		ssa_type(i->type.kind == SSA_PTR ? SSA_I64 : SSA_I32, 1);
	const int64_t sum = ssa_bits_to_s(i->arg[1]->type.kind, c) +
			    ssa_bits_to_s(p->arg[1]->type.kind, d);

	return become(s, i, SSA_ptradd, p->arg[0],
		      bits_of(s, t, ssa_bits_cut(t.kind, (uint64_t)sum)));
}

/* ----------------------------------------------------------------- all -- */

/* The value if all operands are constants. */
static struct ssa_inst *fold_constants(struct simplify *s,
				       const struct ssa_inst *i)
{
	uint64_t arg[3], out;

	if (!i->n_args || i->n_args > 3 || ssa_type_bytes(i->type) > 8 ||
	    !ssa_eval_exact(i) || i->op == SSA_ptradd)
		return NULL;
	for (uint32_t k = 0; k < i->n_args; k++) {
		if (i->arg[k]->op != SSA_const ||
		    ssa_type_bytes(i->arg[k]->type) > 8)
			return NULL;
		arg[k] = i->arg[k]->imm;
	}
	return ssa_eval(i, arg, &out) ? bits_of(s, i->type, out) : NULL;
}

/* An access whose mask is a constant; dce takes what never writes. */
static struct ssa_inst *simplify_access(struct simplify *s, struct ssa_inst *i)
{
	const struct ssa_place p = ssa_place(i);

	if (!p.mask || p.mask->op != SSA_const)
		return NULL;
	if (p.mask->imm) {
		i->n_args--;
		s->changed = true;
		return NULL;
	}
	return i->op == SSA_load ? bits_of(s, i->type, 0) : NULL;
}

/* Constants on the right. */
static void order_operands(struct simplify *s, struct ssa_inst *i)
{
	if (ssa_op_info(i->op)->flags & SSA_OP_COMMUTES &&
	    i->arg[0]->op == SSA_const && i->arg[1]->op != SSA_const) {
		struct ssa_inst *x = i->arg[0];

		i->arg[0] = i->arg[1];
		i->arg[1] = x;
		s->changed = true;
	}
}

/* The value that i is, or NULL. */
static struct ssa_inst *simplify_inst(struct simplify *s, struct ssa_inst *i)
{
	if (i->op == SSA_local_id && s->f->group[i->imm] == 1)
		return bits_of(s, i->type, 0);
	if (ssa_is_access(i))
		return simplify_access(s, i);
	if (!(ssa_op_info(i->op)->flags & SSA_OP_PURE) || !i->n_args)
		return NULL;
	struct ssa_inst *r = fold_constants(s, i);

	if (r)
		return r;
	order_operands(s, i);
	if (i->op == SSA_not && i->type.kind == SSA_I1 &&
	    i->arg[0]->op != SSA_not)
		return ssa_simplify_not(s, i);
	if (i->op >= SSA_add && i->op < SSA_clz)
		return simplify_int(s, i);
	if (i->op >= SSA_fadd && i->op <= SSA_fmax)
		return ssa_simplify_float(s, i);
	if (i->op == SSA_icmp || i->op == SSA_fcmp)
		return ssa_simplify_compare(s, i);
	if (i->op == SSA_select)
		return ssa_simplify_select(s, i);
	if (i->op >= SSA_zext && i->op <= SSA_fcvt)
		return ssa_simplify_convert(s, i);
	if (i->op == SSA_pack || i->op == SSA_extract)
		return ssa_simplify_vector(s, i);
	return i->op == SSA_ptradd ? simplify_ptradd(s, i) : NULL;
}

static bool round_of(struct ssa_func *f)
{
	struct simplify s = { .f = f };
	bool any = false;

	ssa_forward_init(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			for (uint32_t k = 0; k < i->n_args; k++)
				i->arg[k] = ssa_forwarded(i->arg[k]);
			s.changed = false;
			struct ssa_inst *to = simplify_inst(&s, i);

			if (to)
				ssa_forward(i, to);
			any |= to || s.changed;
		}
	ssa_forward_all(f);
	return any;
}

bool ssa_pass_simplify(struct ssa_func *f)
{
	bool any = false;

	/* Each round leaves less; rules that undo each other would not. */
	for (int k = 0; k < 8 && round_of(f); k++)
		any = true;
	return any;
}
