/*
 * compiler/dsl/dsl_op.c - arithmetic, comparisons, select and conversions.
 */
#include "compiler/dsl/dsl_int.h"

enum { NONE = SSA_OPS };

/* The operation for floats, signed and unsigned integers, and conditions. */
static const struct row {
	const char *name;
	uint16_t on_float, on_signed, on_unsigned, on_bool;
} row[DSL_OPS] = {
	[DSL_ADD] = { "ADD", SSA_fadd, SSA_add, SSA_add, NONE },
	[DSL_SUB] = { "SUB", SSA_fsub, SSA_sub, SSA_sub, NONE },
	[DSL_MUL] = { "MUL", SSA_fmul, SSA_mul, SSA_mul, NONE },
	[DSL_DIV] = { "DIV", SSA_fdiv, SSA_div_s, SSA_div_u, NONE },
	[DSL_REM] = { "REM", NONE, SSA_rem_s, SSA_rem_u, NONE },
	[DSL_MIN] = { "MIN", SSA_fmin, SSA_min_s, SSA_min_u, NONE },
	[DSL_MAX] = { "MAX", SSA_fmax, SSA_max_s, SSA_max_u, NONE },
	[DSL_AND] = { "AND", NONE, SSA_and, SSA_and, SSA_and },
	[DSL_OR] = { "OR", NONE, SSA_or, SSA_or, SSA_or },
	[DSL_XOR] = { "XOR", NONE, SSA_xor, SSA_xor, SSA_xor },
	[DSL_SHL] = { "SHL", NONE, SSA_shl, SSA_shl, NONE },
	[DSL_SHR] = { "SHR", NONE, SSA_shr_s, SSA_shr_u, NONE },
	[DSL_MULHI] = { "MULHI", NONE, SSA_mulhi_s, SSA_mulhi_u, NONE },
	[DSL_COPYSIGN] = { "COPYSIGN", SSA_copysign, NONE, NONE, NONE },
	/* From here: predicates. */
	[DSL_LT] = { "LT", SSA_FOLT, SSA_SLT, SSA_ULT, NONE },
	[DSL_LE] = { "LE", SSA_FOLE, SSA_SLE, SSA_ULE, NONE },
	[DSL_GT] = { "GT", SSA_FOGT, SSA_SGT, SSA_UGT, NONE },
	[DSL_GE] = { "GE", SSA_FOGE, SSA_SGE, SSA_UGE, NONE },
	[DSL_EQ] = { "EQ", SSA_FOEQ, SSA_EQ, SSA_EQ, NONE },
	[DSL_NE] = { "NE", SSA_FUNE, SSA_NE, SSA_NE, NONE },
	/* From here: one operand. */
	[DSL_NEG] = { "NEG", SSA_fneg, SSA_sub, SSA_sub, NONE },
	[DSL_ABS] = { "ABS", SSA_fabs, SSA_max_s, NONE, NONE },
	[DSL_NOT] = { "NOT", NONE, SSA_not, SSA_not, SSA_not },
	[DSL_SQRT] = { "SQRT", SSA_fsqrt, NONE, NONE, NONE },
	[DSL_RSQRT] = { "RSQRT", SSA_frsqrt, NONE, NONE, NONE },
	[DSL_RCP] = { "RCP", SSA_frcp, NONE, NONE, NONE },
	[DSL_EXP2] = { "EXP2", SSA_fexp2, NONE, NONE, NONE },
	[DSL_LOG2] = { "LOG2", SSA_flog2, NONE, NONE, NONE },
	[DSL_FLOOR] = { "FLOOR", SSA_ffloor, NONE, NONE, NONE },
	[DSL_CEIL] = { "CEIL", SSA_fceil, NONE, NONE, NONE },
	[DSL_TRUNC] = { "TRUNC", SSA_ftrunc, NONE, NONE, NONE },
	[DSL_ROUND] = { "ROUND", SSA_fround, NONE, NONE, NONE },
	[DSL_CLZ] = { "CLZ", NONE, SSA_clz, SSA_clz, NONE },
	[DSL_CTZ] = { "CTZ", NONE, SSA_ctz, SSA_ctz, NONE },
	[DSL_POPCOUNT] = { "POPCOUNT", NONE, SSA_popcount, SSA_popcount, NONE },
	[DSL_SIN_TURNS] = { "SIN_TURNS", SSA_fsin_turns, NONE, NONE, NONE },
	[DSL_COS_TURNS] = { "COS_TURNS", SSA_fcos_turns, NONE, NONE, NONE },
};

static bool only_i32(enum dsl_op op)
{
	return op == DSL_MULHI || (op >= DSL_CLZ && op <= DSL_POPCOUNT);
}

/* The SSA operation or predicate for this type; an error if there is none. */
static uint32_t choose_op(struct dsl *k, struct dsl_at at, enum dsl_op op,
			  const struct val *v)
{
	const struct dsl_type_info *t = &dsl_type_info[v->type];
	const struct row *r = &row[op];
	const uint32_t ssa = v->type == DSL_BOOL ? r->on_bool :
			     t->is_float	 ? r->on_float :
			     t->is_signed	 ? r->on_signed :
						   r->on_unsigned;

	if (v->frag || !t->computes) {
		dsl_fail(k, at, "%s of %s: CAST() it to compute%s", r->name,
			 t->name, v->frag ? ", FRAG_ELEMS() first" : "");
		return NONE;
	}
	if (ssa == NONE || (only_i32(op) && v->type == DSL_I64)) {
		dsl_fail(k, at, "type mismatch: there is no %s of %s", r->name,
			 t->name);
		return NONE;
	}
	return ssa;
}

/* Gives numbers the type of the others; all must have one type then. */
static bool unify_types(struct dsl *k, struct dsl_at at, struct val *v,
			size_t n)
{
	enum dsl_type type = DSL_NUMBER;

	if (!dsl_defined(k, at, v, n))
		return false;
	for (size_t j = 0; j < n; j++)
		if (v[j].type != DSL_NUMBER && type == DSL_NUMBER)
			type = v[j].type;
	for (size_t j = 0; j < n; j++) {
		v[j] = dsl_typed(k, at, v[j], type);
		if (k->err.code)
			return false;
		if (v[j].type != type)
			return dsl_fail(k, at, "type mismatch: %s and %s; "
					"CAST() one", dsl_type_info[type].name,
					dsl_type_info[v[j].type].name);
	}
	return true;
}

struct val dsl_binary(struct dsl_at at, enum dsl_op op, struct val a,
		      struct val b)
{
	struct val v[] = { a, b };
	struct dsl *k = dsl_pick(v, 2);

	if (!dsl_go(k, at) || !unify_types(k, at, v, 2))
		return (struct val){ 0 };
	const bool compares = op >= DSL_LT && op <= DSL_NE;
	const uint32_t ssa = choose_op(k, at, op, &v[0]);
	const uint32_t n = dsl_width(k, at, v, 2);

	if (ssa == NONE || !n)
		return (struct val){ 0 };
	struct val out = dsl_val(k, compares ? DSL_BOOL : v[0].type, n);

	for (uint32_t j = 0; j < n; j++) {
		struct ssa_inst *x = dsl_at_elem(&v[0], j);
		struct ssa_inst *y = dsl_at_elem(&v[1], j);

		if (!compares) {
			out.e[j] = dsl_emit2(k, ssa, x->type, x, y);
			continue;
		}
		out.e[j] = dsl_emit2(k, ssa >= SSA_FOEQ ? SSA_fcmp : SSA_icmp,
				     ssa_type(SSA_I1, 1), x, y);
		out.e[j]->sub = (uint8_t)ssa;
	}
	return out;
}

/* Elements j and j + 1, or twice the only one. */
static struct ssa_inst *pair_at(struct dsl *k, const struct val *v, uint32_t j)
{
	struct ssa_inst *e[] = { dsl_at_elem(v, j), dsl_at_elem(v, j + 1) };
	const struct val two = { .k = k, .e = e, .type = v->type, .n = 2 };

	return dsl_pack(k, &two);
}

struct val dsl_pairs(struct dsl_at at, enum dsl_op op, struct val a,
		     struct val b)
{
	struct val v[] = { a, b };
	struct dsl *k = dsl_pick(v, 2);

	if (!dsl_go(k, at) || !unify_types(k, at, v, 2))
		return (struct val){ 0 };
	const uint32_t n = dsl_width(k, at, v, 2);

	if (v[0].type != DSL_F16 || n % 2 ||
	    (op > DSL_MUL && op != DSL_MIN && op != DSL_MAX)) {
		dsl_fail(k, at, "type mismatch: PAIRS of %u elements of %s; "
			 "wanted ADD, SUB, MUL, MIN or MAX of an even number "
			 "of f16", n, dsl_type_info[v[0].type].name);
		return (struct val){ 0 };
	}
	struct val out = dsl_val(k, DSL_F16, n);

	for (uint32_t j = 0; j < n; j += 2) {
		const struct val two = dsl_unpack(
			k, DSL_F16, dsl_emit2(k, row[op].on_float,
					      ssa_type(SSA_F16, 2),
					      pair_at(k, &v[0], j),
					      pair_at(k, &v[1], j)));

		out.e[j] = two.e[0];
		out.e[j + 1] = two.e[1];
	}
	return out;
}

static struct ssa_inst *emit_unary(struct dsl *k, enum dsl_op op,
				   enum ssa_op ssa, struct ssa_inst *x)
{
	if (ssa == SSA_sub || op == DSL_ABS) {
		struct ssa_inst *zero = dsl_bits_const(k, x->type.kind, 0);

		if (ssa == SSA_fabs)
			return dsl_emit1(k, ssa, x->type, x);
		struct ssa_inst *neg = dsl_emit2(k, SSA_sub, x->type, zero, x);

		return op == DSL_NEG ? neg :
				       dsl_emit2(k, SSA_max_s, x->type, x, neg);
	}
	return dsl_emit1(k, ssa, x->type, x);
}

struct val dsl_unary(struct dsl_at at, enum dsl_op op, struct val a)
{
	struct dsl *k = a.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &a, 1))
		return (struct val){ 0 };
	const uint32_t ssa = choose_op(k, at, op, &a);

	if (ssa == NONE)
		return (struct val){ 0 };
	struct val out = dsl_val(k, a.type, a.n);

	for (uint32_t j = 0; j < a.n; j++)
		out.e[j] = emit_unary(k, op, ssa, a.e[j]);
	return out;
}

struct val dsl_fma(struct dsl_at at, struct val a, struct val b, struct val c)
{
	struct val v[] = { a, b, c };
	struct dsl *k = dsl_pick(v, 3);

	if (!dsl_go(k, at) || !unify_types(k, at, v, 3))
		return (struct val){ 0 };
	if (!dsl_type_info[v[0].type].is_float)
		return dsl_binary(at, DSL_ADD,
				  dsl_binary(at, DSL_MUL, v[0], v[1]), v[2]);
	const uint32_t n = dsl_width(k, at, v, 3);

	if (choose_op(k, at, DSL_ADD, &v[0]) == NONE || !n)
		return (struct val){ 0 };
	struct val out = dsl_val(k, v[0].type, n);

	for (uint32_t j = 0; j < n; j++) {
		struct ssa_inst *const arg[] = { dsl_at_elem(&v[0], j),
						 dsl_at_elem(&v[1], j),
						 dsl_at_elem(&v[2], j) };

		out.e[j] = dsl_emit(k, SSA_fma, arg[0]->type, 3, arg);
	}
	return out;
}

struct val dsl_select(struct dsl_at at, struct val c, struct val a,
		      struct val b)
{
	struct val v[] = { a, b, c };
	struct dsl *k = dsl_pick(v, 3);

	if (!dsl_go(k, at) || !unify_types(k, at, v, 2) ||
	    !dsl_defined(k, at, &c, 1) || !dsl_want(k, at, &c, DSL_BOOL))
		return (struct val){ 0 };
	const uint32_t n = dsl_width(k, at, v, 3);

	if (!n || !v[0].k)
		return (struct val){ 0 };
	struct val out = dsl_val(k, v[0].type, n);

	out.elem = v[0].elem;
	for (uint32_t j = 0; j < n; j++) {
		struct ssa_inst *const arg[] = { dsl_at_elem(&c, j),
						 dsl_at_elem(&v[0], j),
						 dsl_at_elem(&v[1], j) };

		out.e[j] = dsl_emit(k, SSA_select, arg[1]->type, 3, arg);
	}
	return out;
}

struct val dsl_dot4(struct dsl_at at, struct val a, struct val b, struct val c)
{
	struct val v[] = { a, b, c };
	struct dsl *k = dsl_pick(v, 3);

	if (!dsl_go(k, at) || !unify_types(k, at, v, 3) ||
	    !dsl_want(k, at, &v[0], DSL_I32))
		return (struct val){ 0 };
	const uint32_t n = dsl_width(k, at, v, 3);
	struct val out = dsl_val(k, DSL_I32, n ? n : 1);

	for (uint32_t j = 0; j < n; j++) {
		struct ssa_inst *const arg[] = { dsl_at_elem(&v[0], j),
						 dsl_at_elem(&v[1], j),
						 dsl_at_elem(&v[2], j) };

		out.e[j] = dsl_emit(k, SSA_dot4_s, arg[0]->type, 3, arg);
	}
	return out;
}

struct val dsl_dot2(struct dsl_at at, struct val a, struct val b, struct val c)
{
	struct val v[] = { a, b, c };
	struct dsl *k = dsl_pick(v, 3);

	if (!dsl_go(k, at))
		return (struct val){ 0 };
	v[2] = c = dsl_typed(k, at, c, DSL_F32);
	if (k->err.code || !dsl_defined(k, at, v, 3) ||
	    !dsl_want(k, at, &c, DSL_F32))
		return (struct val){ 0 };
	if (a.type != b.type || a.n != 2 || b.n != 2 || c.n != 1 ||
	    (a.type != DSL_F16 && a.type != DSL_BF16)) {
		dsl_fail(k, at, "type mismatch: DOT2 of %s and %s, wanted two "
			 "elements of f16 or bf16", dsl_type_info[a.type].name,
			 dsl_type_info[b.type].name);
		return (struct val){ 0 };
	}
	struct ssa_inst *const arg[] = { dsl_pack(k, &a), dsl_pack(k, &b),
					 c.e[0] };

	return dsl_val1(k, DSL_F32,
			dsl_emit(k, SSA_dot2, dsl_ssa(DSL_F32), 3, arg));
}

/* --------------------------------------------------------- conversions -- */

static struct ssa_inst *int_to_int(struct dsl *k, enum dsl_type from,
				   enum dsl_type to, struct ssa_inst *x)
{
	const struct ssa_type t = dsl_ssa(to);
	const uint32_t bits = ssa_kind_bits(t.kind);
	const uint32_t had = ssa_kind_bits(x->type.kind);

	if (bits == had)
		return x;
	if (bits < had)
		return dsl_emit1(k, SSA_trunc, t, x);
	return dsl_emit1(k, dsl_type_info[from].is_signed ? SSA_sext : SSA_zext,
			 t, x);
}

static struct ssa_inst *float_to_float(struct dsl *k, enum dsl_type to,
				       struct ssa_inst *x)
{
	const struct ssa_type t = dsl_ssa(to), f32 = ssa_type(SSA_F32, 1);

	if (x->type.kind == t.kind)
		return x;
	if (x->type.kind != SSA_F32)
		x = dsl_emit1(k, SSA_fcvt, f32, x);
	return to == DSL_F32 ? x : dsl_emit1(k, SSA_fcvt, t, x);
}

static struct ssa_inst *int_to_float(struct dsl *k, enum dsl_type from,
				     enum dsl_type to, struct ssa_inst *x)
{
	const bool is_signed = dsl_type_info[from].is_signed;

	x = int_to_int(k, from, DSL_I32, x);
	x = dsl_emit1(k, is_signed ? SSA_fcvt_from_s : SSA_fcvt_from_u,
		      ssa_type(SSA_F32, 1), x);
	return float_to_float(k, to, x);
}

static struct ssa_inst *float_to_int(struct dsl *k, enum dsl_type to,
				     struct ssa_inst *x)
{
	const struct dsl_type_info *t = &dsl_type_info[to];
	const struct ssa_type i32 = ssa_type(SSA_I32, 1);
	const uint32_t bits = ssa_kind_bits(t->kind);

	x = float_to_float(k, DSL_F32, x);
	if (bits == 32)
		return dsl_emit1(k, t->is_signed ? SSA_fcvt_to_s :
						   SSA_fcvt_to_u, i32, x);
	const int64_t low = t->is_signed ? -((int64_t)1 << (bits - 1)) : 0;
	const int64_t high = ((int64_t)1 << (bits - t->is_signed)) - 1;

	x = dsl_emit1(k, SSA_fcvt_to_s, i32, x);
	x = dsl_emit2(k, SSA_max_s, i32, x,
		      dsl_bits_const(k, SSA_I32, (uint64_t)low));
	x = dsl_emit2(k, SSA_min_s, i32, x,
		      dsl_bits_const(k, SSA_I32, (uint64_t)high));
	return dsl_emit1(k, SSA_trunc, ssa_type(t->kind, 1), x);
}

static struct ssa_inst *bool_to(struct dsl *k, enum dsl_type to,
				struct ssa_inst *x)
{
	const struct ssa_type t = dsl_ssa(to);

	if (!dsl_type_info[to].is_float) {
		if (ssa_kind_bits(t.kind) >= 16)
			return dsl_emit1(k, SSA_zext, t, x);
		return dsl_emit1(k, SSA_trunc, t,
				 dsl_emit1(k, SSA_zext, ssa_type(SSA_I32, 1),
					   x));
	}
	struct ssa_inst *const arg[] = {
		x, dsl_typed(k, DSL_AT, dsl_of_i64(1), to).e[0],
		dsl_typed(k, DSL_AT, dsl_of_i64(0), to).e[0]
	};

	return dsl_emit(k, SSA_select, t, 3, arg);
}

static struct ssa_inst *cast_elem(struct dsl *k, enum dsl_type from,
				  enum dsl_type to, struct ssa_inst *x)
{
	const bool from_float = dsl_type_info[from].is_float;
	const bool to_float = dsl_type_info[to].is_float;

	if (from == DSL_BOOL)
		return bool_to(k, to, x);
	if (from_float)
		return to_float ? float_to_float(k, to, x) :
				  float_to_int(k, to, x);
	return to_float ? int_to_float(k, from, to, x) :
			  int_to_int(k, from, to, x);
}

struct val dsl_cast(struct dsl_at at, enum dsl_type type, struct val x)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	if (x.type == type)
		return x;
	if (type == DSL_BOOL)
		return dsl_binary(at, DSL_NE, x, dsl_of_i64(0));
	const bool floats = dsl_type_info[x.type].is_float ||
			    dsl_type_info[type].is_float;

	const bool wide = x.type == DSL_I64 || type == DSL_I64;

	if (floats && wide && x.type == DSL_F32)
		return dsl_f32_to_i64(at, x);
	if (floats && wide && type == DSL_F32)
		return dsl_i64_to_f32(at, x);
	if (x.frag || x.type >= DSL_GLOBAL || type < DSL_I8 ||
	    type >= DSL_GLOBAL || (floats && wide)) {
		dsl_fail(k, at, "there is no conversion of %s%s to %s",
			 x.frag ? "a fragment of " : "",
			 dsl_type_info[x.type].name, dsl_type_info[type].name);
		return (struct val){ 0 };
	}
	struct val out = dsl_val(k, type, x.n);

	for (uint32_t j = 0; j < x.n; j++)
		out.e[j] = cast_elem(k, x.type, type, x.e[j]);
	return out;
}

struct val dsl_bits(struct dsl_at at, enum dsl_type type, struct val x)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	const struct ssa_type t = dsl_ssa(type);
	const uint32_t had = x.n * ssa_kind_bits(dsl_type_info[x.type].kind);
	const uint32_t n = had / (ssa_kind_bits(t.kind) ? ssa_kind_bits(t.kind)
							: had + 1);

	if (x.frag || x.type == DSL_BOOL || type < DSL_I8 ||
	    type >= DSL_GLOBAL || x.type >= DSL_GLOBAL || n < 1 ||
	    n > SSA_MAX_LANES || n * ssa_kind_bits(t.kind) != had) {
		dsl_fail(k, at, "type mismatch: %u elements of %s are not the "
			 "bits of %s", x.n, dsl_type_info[x.type].name,
			 dsl_type_info[type].name);
		return (struct val){ 0 };
	}
	struct val out = dsl_val(k, type, n);

	if (n == x.n) {
		for (uint32_t j = 0; j < n; j++)
			out.e[j] = x.e[j]->type.kind == t.kind ?
					   x.e[j] :
					   dsl_emit1(k, SSA_bitcast, t, x.e[j]);
		return out;
	}
	return dsl_unpack(k, type,
			  dsl_emit1(k, SSA_bitcast, ssa_type(t.kind, n),
				    dsl_pack(k, &x)));
}
