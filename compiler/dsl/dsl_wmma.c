/*
 * compiler/dsl/dsl_wmma.c - matrix fragments, laid out as enum ssa_wmma says.
 */
#include "compiler/dsl/dsl_int.h"

#undef DSL_AT
#define DSL_AT at

enum { TILE = 16 };

/* A and B in the form of SSA: the vector of one lane. */
static struct ssa_type operand_type(enum dsl_type t)
{
	switch (t) {
	case DSL_F16:
		return ssa_type(SSA_F16, 16);
	case DSL_BF16:
		return ssa_type(SSA_BF16, 16);
	case DSL_I8:
	case DSL_U8:
		return ssa_type(SSA_I32, 4);
	default:
		return ssa_type(SSA_VOID, 0);
	}
}

static struct ssa_type result_type(enum dsl_type t)
{
	switch (t) {
	case DSL_F32:
	case DSL_I32:
		return ssa_type(dsl_type_info[t].kind, 8);
	case DSL_F16:
	case DSL_BF16:
		return ssa_type(dsl_type_info[t].kind, 16);
	default:
		return ssa_type(SSA_VOID, 0);
	}
}

static struct val make_frag(struct dsl *k, enum dsl_type t, char role,
			    struct ssa_inst *v)
{
	struct val f = dsl_val1(k, t, v);

	f.frag = role;
	return f;
}

static bool is_role(struct dsl *k, struct dsl_at at, const struct val *f,
		    char role)
{
	return f->frag == role ||
	       dsl_fail(k, at, "type mismatch: got %s%s, wanted a fragment %c",
			f->frag ? "another fragment of " : "",
			dsl_type_info[f->type].name, role);
}

struct val dsl_frag_zero(struct dsl *k, struct dsl_at at, enum dsl_type type)
{
	const struct ssa_type t = result_type(type);

	if (!dsl_go(k, at))
		return (struct val){ 0 };
	if (!t.n) {
		dsl_fail(k, at, "type mismatch: a fragment C of %s, wanted "
			 "f32, i32, f16 or bf16", dsl_type_info[type].name);
		return (struct val){ 0 };
	}
	return make_frag(k, type, 'C', dsl_entry(k, SSA_const, t, 0));
}

/* The 16 elements of this lane, one apart or `ld` apart. */
static struct ssa_inst *load_operand(struct dsl_at at, const struct val *p,
				     const struct val *i, const struct val *ld,
				     bool adjacent)
{
	struct dsl *k = p->k;
	const struct val lane = AND(LANE(k), TILE - 1);
	struct val x;

	if (adjacent) {
		x = LOADV(*p, ADD(*i, MUL(lane, *ld)), TILE);
		return x.k ? dsl_pack(k, &x) : NULL;
	}
	const struct val first = ADD(*i, lane);
	struct val each[TILE];

	for (uint32_t j = 0; j < TILE; j++)
		each[j] = LOAD(*p, ADD(first, MUL(*ld, j)));
	x = dsl_join(at, each, TILE);
	return x.k ? dsl_pack(k, &x) : NULL;
}

static struct ssa_inst *load_bytes(struct dsl_at at, const struct val *p,
				   const struct val *i, const struct val *ld)
{
	struct dsl *k = p->k;
	const struct val lane = AND(LANE(k), TILE - 1);
	const struct val x = LOADV(*p, ADD(*i, MUL(lane, *ld)), TILE);

	return x.k ? dsl_emit1(k, SSA_bitcast, ssa_type(SSA_I32, 4),
			       dsl_pack(k, &x)) : NULL;
}

struct val dsl_frag_load(struct dsl_at at, char role, struct val p,
			 struct val i, struct val ld, enum dsl_layout layout)
{
	const struct val v[] = { p, i, ld };
	struct dsl *k = dsl_pick(v, 3);

	if (!dsl_go(k, at) || !dsl_defined(k, at, v, 3))
		return (struct val){ 0 };
	const struct ssa_type t = operand_type(p.elem);
	const bool adjacent = (role == 'A') == (layout == DSL_ROWS);
	const bool is_bytes = t.kind == SSA_I32;

	if ((role != 'A' && role != 'B') || !t.n || (is_bytes && !adjacent)) {
		dsl_fail(k, at, "type mismatch: no fragment %c of %s in this "
			 "layout", role, dsl_type_info[p.elem].name);
		return (struct val){ 0 };
	}
	i = dsl_typed(k, at, i, ld.type == DSL_NUMBER ? DSL_I32 : ld.type);
	ld = dsl_typed(k, at, ld, i.type);
	if (k->err.code)
		return (struct val){ 0 };
	struct ssa_inst *x = is_bytes ? load_bytes(at, &p, &i, &ld) :
					load_operand(at, &p, &i, &ld, adjacent);

	return x ? make_frag(k, p.elem, role, x) : (struct val){ 0 };
}

struct val dsl_frag_from(struct dsl_at at, char role, struct val x)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	const struct ssa_type t = operand_type(x.type);

	if ((role != 'A' && role != 'B') || !t.n || x.n != TILE || x.frag) {
		dsl_fail(k, at, "type mismatch: a fragment %c of %u x %s, "
			 "wanted 16 of f16, bf16, i8 or u8", role, x.n,
			 dsl_type_info[x.type].name);
		return (struct val){ 0 };
	}
	struct ssa_inst *v = dsl_pack(k, &x);

	if (t.kind == SSA_I32)
		v = dsl_emit1(k, SSA_bitcast, t, v);
	return make_frag(k, x.type, role, v);
}

static int product_of(enum dsl_type ab, enum dsl_type c)
{
	if (ab == DSL_F16)
		return c == DSL_F32 ? SSA_WMMA_F32_F16 :
		       c == DSL_F16 ? SSA_WMMA_F16_F16 : -1;
	if (ab == DSL_BF16)
		return c == DSL_F32  ? SSA_WMMA_F32_BF16 :
		       c == DSL_BF16 ? SSA_WMMA_BF16_BF16 : -1;
	return c == DSL_I32 ? SSA_WMMA_I32_IU8 : -1;
}

struct val dsl_wmma(struct dsl_at at, struct val a, struct val b, struct val c)
{
	const struct val v[] = { a, b, c };
	struct dsl *k = dsl_pick(v, 3);

	if (!dsl_go(k, at) || !dsl_defined(k, at, v, 3) ||
	    !is_role(k, at, &a, 'A') || !is_role(k, at, &b, 'B') ||
	    !is_role(k, at, &c, 'C'))
		return (struct val){ 0 };
	const int sub = product_of(a.type, c.type);
	const bool small = dsl_ssa(a.type).kind == dsl_ssa(b.type).kind;

	if (sub < 0 || !small) {
		dsl_fail(k, at,
			 "type mismatch: no matrix product of %s and %s "
			 "to %s",
			 dsl_type_info[a.type].name, dsl_type_info[b.type].name,
			 dsl_type_info[c.type].name);
		return (struct val){ 0 };
	}
	struct ssa_inst *const arg[] = { a.e[0], b.e[0], c.e[0] };
	struct ssa_inst *d = dsl_emit(k, SSA_wmma, c.e[0]->type, 3, arg);

	d->sub = (uint8_t)sub;
	d->flags |= (uint16_t)((a.type == DSL_I8 ? SSA_SIGNED_A : 0) |
			       (b.type == DSL_I8 ? SSA_SIGNED_B : 0));
	return make_frag(k, c.type, 'C', d);
}

/* ------------------------------------------------------------ elements -- */

struct val dsl_frag_row(struct dsl *k, struct dsl_at at, uint32_t j)
{
	return ADD(SHR(LANE(k), 4), 2 * (int64_t)j);
}

struct val dsl_frag_column(struct dsl *k, struct dsl_at at)
{
	return AND(LANE(k), TILE - 1);
}

struct val dsl_frag_elems(struct dsl_at at, struct val c)
{
	struct dsl *k = c.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &c, 1) ||
	    !is_role(k, at, &c, 'C'))
		return (struct val){ 0 };
	const uint32_t step = c.e[0]->type.n / 8;
	struct val out = dsl_val(k, c.type, 8);

	for (uint32_t j = 0; j < 8; j++) {
		out.e[j] = dsl_emit1(k, SSA_extract, dsl_ssa(c.type), c.e[0]);
		out.e[j]->imm = j * step;
	}
	return out;
}

struct val dsl_frag_of(struct dsl_at at, struct val x)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	const struct ssa_type t = result_type(x.type);

	if (x.n != 8 || !t.n || x.frag) {
		dsl_fail(k, at, "type mismatch: a fragment C of %u x %s, "
			 "wanted 8 of f32, i32, f16 or bf16", x.n,
			 dsl_type_info[x.type].name);
		return (struct val){ 0 };
	}
	const uint32_t step = t.n / 8;
	struct ssa_inst *e[SSA_MAX_LANES];

	for (uint32_t j = 0; j < t.n; j++)
		e[j] = j % step ? dsl_bits_const(k, t.kind, 0) : x.e[j / step];
	return make_frag(k, x.type, 'C', dsl_emit(k, SSA_pack, t, t.n, e));
}

struct val dsl_frag_operand(struct dsl_at at, char role, struct val x)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	if ((x.type != DSL_F16 && x.type != DSL_BF16) || x.n != TILE ||
	    x.frag || (role != 'A' && role != 'B')) {
		dsl_fail(k, at, "type mismatch: a fragment %c of %u x %s, "
			 "wanted A or B of 16 f16 or bf16", role, x.n,
			 dsl_type_info[x.type].name);
		return (struct val){ 0 };
	}
	return make_frag(k, x.type, role, dsl_pack(k, &x));
}

void dsl_frag_store(struct dsl_at at, struct val p, struct val i,
		    struct val ld, enum dsl_layout layout, struct val c)
{
	const struct val v[] = { p, i, ld, c };
	struct dsl *k = dsl_pick(v, 4);

	if (!dsl_go(k, at) || !dsl_defined(k, at, v, 4))
		return;
	i = dsl_typed(k, at, i, ld.type == DSL_NUMBER ? DSL_I32 : ld.type);
	ld = dsl_typed(k, at, ld, i.type);
	const struct val x = CAST(p.elem, FRAG_ELEMS(c));
	const struct val column = FRAG_COLUMN(k);

	for (uint32_t j = 0; j < 8 && !k->err.code; j++) {
		const struct val row = FRAG_ROW(k, j);
		const struct val far = layout == DSL_ROWS ? row : column;
		const struct val near = layout == DSL_ROWS ? column : row;

		STORE(p, ADD(ADD(i, MUL(far, ld)), near), ELEM(x, j));
	}
}
