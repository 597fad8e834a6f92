/*
 * compiler/dsl/dsl_lane.c - operations between lanes and between waves; printf.
 */
#include <string.h>

#include "compiler/dsl/dsl_int.h"

#undef DSL_AT
#define DSL_AT at

static enum ssa_rmw rmw_of(enum dsl_op op, const struct dsl_type_info *t)
{
	switch (op) {
	case DSL_ADD:
		return t->is_float ? SSA_RMW_FADD : SSA_RMW_ADD;
	case DSL_MIN:
		return t->is_float  ? SSA_RMW_FMIN :
		       t->is_signed ? SSA_RMW_MIN_S :
				      SSA_RMW_MIN_U;
	case DSL_MAX:
		return t->is_float  ? SSA_RMW_FMAX :
		       t->is_signed ? SSA_RMW_MAX_S :
				      SSA_RMW_MAX_U;
	default:
		return SSA_RMWS;
	}
}

static struct val combine_lanes(struct dsl_at at, enum ssa_op over,
				enum dsl_op op, struct val x, uint64_t imm)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	const struct dsl_type_info *t = &dsl_type_info[x.type];
	const enum ssa_rmw rmw = rmw_of(op, t);

	if ((t->kind != SSA_I32 && t->kind != SSA_F32) || rmw == SSA_RMWS) {
		dsl_fail(k, at, "type mismatch: a reduction of %s, wanted ADD, "
			 "MIN or MAX of i32, u32 or f32", t->name);
		return (struct val){ 0 };
	}
	struct val out = dsl_val(k, x.type, x.n);

	for (uint32_t j = 0; j < x.n; j++) {
		out.e[j] = dsl_emit1(k, over, dsl_ssa(x.type), x.e[j]);
		out.e[j]->sub = (uint8_t)rmw;
		out.e[j]->imm = imm;
		if (t->is_float)
			out.e[j]->flags |= SSA_REASSOC;
	}
	return out;
}

struct val dsl_reduce(struct dsl_at at, enum ssa_op over, enum dsl_op op,
		      struct val x)
{
	return combine_lanes(at, over, op, x, 0);
}

struct val dsl_scan(struct dsl_at at, enum dsl_op op, struct val x,
		    bool inclusive)
{
	return combine_lanes(at, SSA_scan, op, x, inclusive);
}

/* What changes nothing: 0, or the value that loses to every other. */
static struct val identity_of(enum dsl_op op, const struct val *x)
{
	const struct dsl_type_info *t = &dsl_type_info[x->type];
	const uint64_t bits =
		op == DSL_ADD ?
			0 :
			ssa_rmw_identity(rmw_of(op, t), ssa_type(t->kind, 1));

	return dsl_val1(x->k, x->type, dsl_bits_const(x->k, t->kind, bits));
}

/* Results of whole waves go through LDS; each wave adds those before it. */
struct val dsl_group_scan(struct dsl_at at, enum dsl_op op, struct val x,
			  bool inclusive)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	const uint32_t size = k->f->group[0] * k->f->group[1] * k->f->group[2];
	const uint32_t waves = (size + k->f->wave - 1) / k->f->wave;
	const struct val all = dsl_scan(at, op, x, true);
	struct val sum = inclusive ? all : dsl_scan(at, op, x, false);

	if (waves == 1 || !all.k)
		return sum;
	const struct val part = LDS(k, x.type, waves, "scan");
	const struct val wave = WAVE(k), none = identity_of(op, &x);

	IF (k, EQ(LANE(k), k->f->wave - 1)) {
		STORE(part, wave, all);
	}
	BARRIER(k);
	for (uint32_t w = 0; w + 1 < waves; w++)
		sum = dsl_binary(at, op, sum, SELECT(GT(wave, w),
						     LOAD(part, w), none));
	BARRIER(k);
	return sum;
}

/* ------------------------------------------------------------ shuffles -- */

static bool can_cross_lanes(struct dsl *k, struct dsl_at at,
			    const struct val *x)
{
	if (!x->frag && x->type > DSL_BOOL && x->type < DSL_GLOBAL &&
	    x->type != DSL_I64)
		return true;
	return dsl_fail(k, at, "type mismatch: %s cannot go to other lanes, "
			"wanted 32 bits or fewer", dsl_type_info[x->type].name);
}

struct val dsl_shuffle(struct dsl_at at, enum ssa_op op, struct val x,
		       struct val lane)
{
	struct val v[] = { x, lane };
	struct dsl *k = dsl_pick(v, 2);

	if (!dsl_go(k, at))
		return (struct val){ 0 };
	lane = v[1] = dsl_typed(k, at, lane, DSL_I32);
	if (k->err.code || !dsl_defined(k, at, v, 2) ||
	    !can_cross_lanes(k, at, &x))
		return (struct val){ 0 };
	if (lane.type != DSL_U32 && !dsl_want(k, at, &lane, DSL_I32))
		return (struct val){ 0 };
	const uint32_t n = dsl_width(k, at, v, 2);
	struct val out = dsl_val(k, x.type, n ? n : 1);

	for (uint32_t j = 0; j < n; j++)
		out.e[j] = dsl_emit2(k, op, dsl_ssa(x.type), dsl_at_elem(&x, j),
				     dsl_at_elem(&lane, j));
	return out;
}

static struct val emit_each(struct dsl *k, enum ssa_op op, const struct val *x,
			    uint64_t imm)
{
	struct val out = dsl_val(k, x->type, x->n);

	out.elem = x->elem;
	for (uint32_t j = 0; j < x->n; j++) {
		out.e[j] = dsl_emit1(k, op, dsl_ssa(x->type), x->e[j]);
		out.e[j]->imm = imm;
	}
	return out;
}

struct val dsl_shuffle_xor(struct dsl_at at, struct val x, uint32_t mask)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1) ||
	    !can_cross_lanes(k, at, &x))
		return (struct val){ 0 };
	if (mask >= k->f->wave) {
		dsl_fail(k, at, "lane mask %u, wanted less than %u", mask,
			 k->f->wave);
		return (struct val){ 0 };
	}
	return emit_each(k, SSA_shuffle_xor, &x, mask);
}

struct val dsl_read_first(struct dsl_at at, struct val x)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	if (x.frag || x.type == DSL_BOOL) {
		dsl_fail(k, at, "type mismatch: READ_FIRST of %s",
			 x.frag ? "a fragment" : "bool");
		return (struct val){ 0 };
	}
	return emit_each(k, SSA_read_first, &x, 0);
}

struct val dsl_ballot(struct dsl_at at, struct val c)
{
	struct dsl *k = c.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &c, 1) ||
	    !dsl_want(k, at, &c, DSL_BOOL))
		return (struct val){ 0 };
	if (c.n != 1) {
		dsl_fail(k, at, "BALLOT of %u elements, wanted one", c.n);
		return (struct val){ 0 };
	}
	return dsl_val1(k, DSL_U32, dsl_emit1(k, SSA_ballot,
					      ssa_type(SSA_I32, 1), c.e[0]));
}

/* -------------------------------------------------------------- printf -- */

/* Conversions of a format, not counting "%%". */
static size_t count_conversions(const char *fmt)
{
	size_t n = 0;

	for (; *fmt; fmt++) {
		if (*fmt != '%')
			continue;
		fmt++;
		n += *fmt != '%';
		if (!*fmt)
			break;
	}
	return n;
}

void dsl_printf(struct dsl *k, struct dsl_at at, const char *fmt,
		const struct val *v, size_t n)
{
	struct ssa_inst *arg[SSA_MAX_LANES];

	if (!dsl_go(k, at) || !dsl_defined(k, at, v + 1, n - 1))
		return;
	if (count_conversions(fmt) != n - 1 || n - 1 > SSA_MAX_LANES) {
		dsl_fail(k, at,
			 "\"%s\" wants %zu values, got %zu (of at most "
			 "%d)",
			 fmt, count_conversions(fmt), n - 1, SSA_MAX_LANES);
		return;
	}
	for (size_t j = 1; j < n; j++) {
		const enum ssa_kind kind = dsl_type_info[v[j].type].kind;

		if (v[j].n != 1 || v[j].frag ||
		    (kind != SSA_I32 && kind != SSA_I64 && kind != SSA_F32 &&
		     kind != SSA_PTR)) {
			dsl_fail(k, at, "type mismatch: value %zu of PRINTF is "
				 "%s, wanted i32, u32, i64, f32 or a pointer",
				 j, dsl_type_info[v[j].type].name);
			return;
		}
		arg[j - 1] = v[j].e[0];
	}
	struct ssa_inst *i = dsl_emit(k, SSA_printf, ssa_type(SSA_VOID, 0),
				      (uint32_t)(n - 1), arg);

	i->imm = ssa_format_add(k->f, fmt);
}
