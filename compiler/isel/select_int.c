/*
 * compiler/isel/select_int.c - integer operations: one instruction by the table
 * compiler/isel/select.def, and those that take several.
 */
#include "compiler/isel/select.h"

enum { SEL_R = 1, SEL_Z = 2, SEL_X = 4, SEL_F = 8 };
enum { SSA_W = SSA_KINDS, SSA_PAIR_I, SSA_PAIR_F };

struct row {
	uint16_t op;
	uint8_t kind, flags;
	uint16_t v, s;
};

#define ISA__ ISA_OP_NONE
#define R SEL_R
#define Z SEL_Z
#define X SEL_X
#define F SEL_F
static const struct row row[] = {
#define SEL(op, kind, vop, sop, flags) \
	{ SSA_##op, SSA_##kind, flags, ISA_##vop, ISA_##sop },
#include "compiler/isel/select.def"
};
#undef R
#undef Z
#undef X
#undef F

static int row_kind(struct ssa_type t)
{
	if (t.n == 2 && t.kind == SSA_I16)
		return SSA_PAIR_I;
	if (t.n == 2 && t.kind == SSA_F16)
		return SSA_PAIR_F;
	if (t.n != 1)
		return -1;
	if (t.kind == SSA_LDS || (t.kind >= SSA_I8 && t.kind <= SSA_I32))
		return SSA_W;
	return t.kind;
}

static const struct row *find_row(const struct ssa_inst *i)
{
	int kind = row_kind(i->type);

	for (size_t k = 0; k < ARRAY_SIZE(row); k++)
		if (row[k].op == i->op && row[k].kind == kind)
			return &row[k];
	return NULL;
}

static bool is_int64(struct ssa_type t)
{
	return t.n == 1 && (t.kind == SSA_I64 || t.kind == SSA_PTR);
}

/* Uniform integers that the scalar ALU computes. */
bool sel_int_scalar(const struct sel *s, const struct ssa_inst *i)
{
	const struct row *r = find_row(i);

	(void)s;
	if (i->type.n != 1)
		return r && r->s;
	switch (i->op) {
	case SSA_add:
	case SSA_sub:
	case SSA_and:
	case SSA_or:
	case SSA_xor:
	case SSA_not:
	case SSA_shl:
	case SSA_shr_u:
	case SSA_shr_s:
	case SSA_mul:
		return is_int64(i->type) || (r && r->s);
	case SSA_clz:
	case SSA_ctz:
	case SSA_popcount:
		return i->arg[0]->type.kind == SSA_I32;
	case SSA_div_u:
	case SSA_div_s:
	case SSA_rem_u:
	case SSA_rem_s:
		return row_kind(i->type) == SSA_W;
	case SSA_ptradd:
	case SSA_trunc:
		return true;
	case SSA_zext:
	case SSA_sext:
		return i->arg[0]->type.kind != SSA_I1;
	}
	return r && r->s;
}

/* A shift count of less than 32 bits' range. */
static struct mir_opnd shift_count(struct sel *s, const struct ssa_inst *i,
				   bool scalar)
{
	uint32_t bits = ssa_kind_bits(i->type.kind);
	struct mir_opnd o = sel_get(s, i->arg[1]), d;
	uint64_t c;

	if (o.kind == MIR_VREG && o.n > 1)
		o = mir_part(o, 0, 1);
	if (sel_const(i->arg[1], &c) && i->type.n == 1)
		return mir_imm((uint32_t)c & (bits - 1));
	/* The hardware takes the count modulo 32, or 64. */
	if (bits >= 32 || i->type.n == 2)
		return o;
	d = scalar ? sel_new_s(s, 1) : sel_new_v(s, 1);
	if (scalar)
		sel_s(s, ISA_s_and_b32, d, o, mir_imm(bits - 1));
	else
		sel_v(s, ISA_v_and_b32, d, mir_imm(bits - 1), o);
	return d;
}

static struct mir_opnd row_source(struct sel *s, const struct ssa_inst *i,
				  const struct row *r, int k, bool scalar)
{
	if (r->flags & SEL_R && k == 1)
		return shift_count(s, i, scalar);
	if (r->flags & SEL_F)
		return sel_get_f(s, i->arg[k]);
	if (r->flags & (SEL_Z | SEL_X) && r->kind == SSA_W)
		return sel_ext(s, i->arg[k], r->flags & SEL_X);
	return sel_get(s, i->arg[k]);
}

static struct mir_opnd wide_float(struct sel *s, struct mir_opnd o)
{
	uint8_t mods = o.mods;

	if (o.kind != MIR_IMM || !o.imm)
		return o;
	o.mods = 0;
	o = sel_to_v(s, o);
	o.mods = mods;
	return o;
}

static void by_row(struct sel *s, const struct ssa_inst *i, const struct row *r)
{
	bool scalar = s->val[i->id].cls == SEL_S;
	struct mir_opnd o[4] = { sel_def(s, i) };

	for (uint32_t k = 0; k < i->n_args; k++) {
		o[k + 1] = row_source(s, i, r, (int)k, scalar);
		if (r->kind == SSA_F64)
			o[k + 1] = wide_float(s, o[k + 1]);
	}
	if (scalar) {
		sel_s_list(s, r->s, o, 1 + (int)i->n_args);
		return;
	}
	if (r->flags & SEL_R) {
		struct mir_opnd t = o[1];

		o[1] = o[2];
		o[2] = t;
	}
	sel_v_list(s, r->v, o, 1 + (int)i->n_args);
}

/* ---- counting bits */

static void count_zeros(struct sel *s, const struct ssa_inst *i, int vop,
			int sop)
{
	struct mir_opnd d = sel_def(s, i), a = sel_ext(s, i->arg[0], false);
	bool scalar = s->val[i->id].cls == SEL_S;
	struct mir_opnd t = scalar ? sel_new_s(s, 1) : sel_new_v(s, 1);

	/* They give -1 for zero. */
	if (scalar) {
		sel_s(s, sop, t, a);
		sel_s(s, ISA_s_min_u32, d, t, mir_imm(32));
	} else {
		sel_v(s, vop, t, a);
		sel_v(s, ISA_v_min_u32, d, mir_imm(32), t);
	}
}

static void select_popcount(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), a = sel_ext(s, i->arg[0], false);

	if (s->val[i->id].cls == SEL_S)
		sel_s(s, ISA_s_bcnt1_i32_b32, d, a);
	else
		sel_v(s, ISA_v_bcnt_u32_b32, d, a, mir_imm(0));
}

/* ---- lane masks */

static void mask_op(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), a = sel_get(s, i->arg[0]);

	switch (i->op) {
	case SSA_not:
		sel_s(s, sel_mop(s, s_not), d, a);
		return;
	case SSA_and:
		sel_s(s, sel_mop(s, s_and), d, a, sel_get(s, i->arg[1]));
		return;
	case SSA_or:
		sel_s(s, sel_mop(s, s_or), d, a, sel_get(s, i->arg[1]));
		return;
	case SSA_xor:
	case SSA_add:
	case SSA_sub:
		sel_s(s, sel_mop(s, s_xor), d, a, sel_get(s, i->arg[1]));
		return;
	}
	sel_refuse(s, i, "this operation is not for i1");
}

static bool is_word(struct ssa_type t)
{
	return row_kind(t) == SSA_W;
}

/* ---- products */

bool sel_fits24(const struct sel *s, const struct ssa_inst *i)
{
	return i->type.kind == SSA_I32 && i->type.n == 1 &&
	       ssa_bounds(s->f, i).max < 1u << 24;
}

/* The general product takes four times as long as these. */
static bool short_product(struct sel *s, const struct ssa_inst *i)
{
	const struct ssa_inst *x = i->arg[0];
	uint64_t c;

	if (i->op != SSA_mul || i->type.kind != SSA_I32 || i->type.n != 1 ||
	    s->val[i->id].cls != SEL_V)
		return false;
	if (sel_fits24(s, x) && sel_fits24(s, i->arg[1])) {
		sel_v(s, ISA_v_mul_u32_u24, sel_def(s, i), sel_get(s, x),
		      sel_get(s, i->arg[1]));
		return true;
	}
	if (!sel_const(i->arg[1], &c) || c < 3 || (c - 1) & (c - 2))
		return false;
	sel_v(s, ISA_v_lshl_add_u32, sel_def(s, i), sel_get(s, x),
	      mir_imm((uint32_t)__builtin_ctzll(c - 1)), sel_get(s, x));
	return true;
}

bool sel_int(struct sel *s, const struct ssa_inst *i)
{
	const struct row *r = find_row(i);

	if (i->type.kind == SSA_I1) {
		mask_op(s, i);
		return true;
	}
	if (sel_fuse(s, i) || short_product(s, i))
		return true;
	if (r) {
		by_row(s, i, r);
		return true;
	}
	if (is_int64(i->type)) {
		sel_int64(s, i);
		return true;
	}
	if (!is_word(i->type))
		return false;
	switch (i->op) {
	case SSA_clz:
		count_zeros(s, i, ISA_v_clz_i32_u32, ISA_s_clz_i32_u32);
		return true;
	case SSA_ctz:
		count_zeros(s, i, ISA_v_ctz_i32_b32, ISA_s_ctz_i32_b32);
		return true;
	case SSA_popcount:
		select_popcount(s, i);
		return true;
	case SSA_div_u:
	case SSA_div_s:
	case SSA_rem_u:
	case SSA_rem_s:
		sel_div(s, i);
		return true;
	}
	return false;
}

/* -------------------------------------------------------- conversions ---- */

static void mask_to_int(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), m = sel_get(s, i->arg[0]);
	uint32_t one = i->op == SSA_sext ? UINT32_MAX : 1;

	for (int k = 0; k < d.n; k++) {
		if (k && i->op == SSA_zext) {
			sel_copy(s, mir_part(d, k, 1), mir_imm(0));
			continue;
		}
		sel_v(s, ISA_v_cndmask_b32, mir_part(d, k, 1), mir_imm(0),
		      mir_imm(one), m);
	}
}

static void int_to_mask(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd t = sel_new_v(s, 1), o = sel_get(s, i->arg[0]);

	sel_v(s, ISA_v_and_b32, t, mir_imm(1), sel_lo(o));
	sel_v(s, ISA_v_cmp_ne_u32, sel_def(s, i), mir_imm(0), t);
}

static void select_extend64(struct sel *s, const struct ssa_inst *i)
{
	bool sign = i->op == SSA_sext;
	struct mir_opnd o = sel_ext(s, i->arg[0], sign), d = sel_def(s, i);
	struct mir_opnd hi = mir_part(d, 1, 1);

	sel_copy(s, mir_part(d, 0, 1), o);
	if (!sign)
		sel_copy(s, hi, mir_imm(0));
	else if (s->val[i->id].cls == SEL_S)
		sel_s(s, ISA_s_ashr_i32, hi, o, mir_imm(31));
	else
		sel_v(s, ISA_v_ashrrev_i32, hi, mir_imm(31), o);
}

void sel_convert_int(struct sel *s, const struct ssa_inst *i)
{
	struct ssa_type from = i->arg[0]->type;

	if (i->type.kind == SSA_I1 && from.kind != SSA_I1)
		int_to_mask(s, i);
	else if (from.kind == SSA_I1 && i->type.kind != SSA_I1)
		mask_to_int(s, i);
	else if (i->op == SSA_trunc)
		sel_alias(s, i, sel_lo(sel_get(s, i->arg[0])));
	else if (sel_dwords(s, i->type) == 2 && sel_dwords(s, from) == 1)
		select_extend64(s, i);
	else
		sel_alias(s, i, sel_ext(s, i->arg[0], i->op == SSA_sext));
}
