/*
 * compiler/dsl/dsl_mem.c - loads, stores and atomics.
 */
#include "compiler/dsl/dsl_int.h"

/* Where an access goes, as SSA wants it. */
struct place {
	struct ssa_inst *base, *off;
	int32_t add;
};

static bool is_pointer(struct dsl *k, struct dsl_at at, const struct val *p)
{
	if ((p->type == DSL_GLOBAL || p->type == DSL_SHARED) && p->n == 1)
		return true;
	return dsl_fail(k, at, "type mismatch: got %s, wanted a pointer",
			dsl_type_info[p->type].name);
}

static bool is_index(struct dsl *k, struct dsl_at at, const struct val *p,
		     const struct val *i)
{
	if (i->type == DSL_NUMBER) {
		if (i->whole && i->i >= 0 && i->i < INT32_MAX / 8)
			return true;
		return dsl_fail(k, at, "the index %g is not a number from 0 to "
				"%d", i->f, INT32_MAX / 8);
	}
	if (i->type == DSL_I32 || i->type == DSL_U32 ||
	    (i->type == DSL_I64 && p->type == DSL_GLOBAL))
		return true;
	return dsl_fail(k, at, "type mismatch: an index of %s, wanted i32, "
			"u32%s", dsl_type_info[i->type].name,
			p->type == DSL_GLOBAL ? " or i64" : "");
}

static uint32_t elem_bytes(const struct val *p)
{
	return ssa_type_bytes(dsl_ssa(p->elem));
}

/* Element index to bytes; sizes are powers of two. */
static struct ssa_inst *scale_index(struct dsl *k, struct ssa_inst *i,
				    uint32_t bytes, uint16_t flag)
{
	if (bytes == 1)
		return i;
	struct ssa_inst *by = dsl_bits_const(k, i->type.kind,
					     (uint64_t)__builtin_ctz(bytes));
	struct ssa_inst *r = dsl_emit2(k, SSA_shl, i->type, i, by);

	r->flags |= flag;
	return r;
}

static struct place place_of(struct dsl *k, const struct val *p,
			     const struct val *i, uint32_t j)
{
	const uint32_t bytes = elem_bytes(p);
	struct place at = { .base = p->e[0] };

	if (i->type == DSL_NUMBER) {
		at.add = (int32_t)(i->i * bytes);
		at.off = dsl_bits_const(k, SSA_I32, 0);
		return at;
	}
	struct ssa_inst *x = dsl_at_elem(i, j);

	if (i->type != DSL_I64) {
		at.off = scale_index(k, x, bytes, SSA_NUW);
		return at;
	}
	at.base = dsl_emit2(k, SSA_ptradd, at.base->type, at.base,
			    scale_index(k, x, bytes, SSA_NSW));
	at.off = dsl_bits_const(k, SSA_I32, 0);
	return at;
}

/* One access; `value` is what is stored, `mask` may be NULL. */
static struct ssa_inst *emit_access(struct dsl *k, enum ssa_op op,
				    struct ssa_type t, const struct val *p,
				    const struct place *at,
				    struct ssa_inst *value,
				    struct ssa_inst *mask)
{
	struct ssa_inst *arg[4] = { at->base, at->off };
	uint32_t n = 2;

	if (value)
		arg[n++] = value;
	if (mask)
		arg[n++] = mask;
	struct ssa_inst *i = dsl_emit(k, op, t, n, arg);
	const struct ssa_type moved = value ? value->type : t;
	const uint32_t elem = (uint32_t)__builtin_ctz(elem_bytes(p));
	const uint32_t size = ssa_type_bytes(moved);
	const uint32_t most = (uint32_t)__builtin_ctz(size);
	const uint32_t promised = p->align < most ? p->align : most;

	i->off = at->add;
	i->align = (uint8_t)(promised > elem ? promised : elem);
	if (op == SSA_load && p->readonly)
		i->flags |= SSA_INVARIANT;
	return i;
}

/* Numbers for masks: 1 is no mask, 0 a constant. */
static bool take_mask(struct dsl *k, struct dsl_at at, struct val *m)
{
	if (m->type == DSL_NUMBER && m->i == 1) {
		m->e = NULL;
		return true;
	}
	*m = dsl_typed(k, at, *m, DSL_BOOL);
	return !k->err.code && dsl_defined(k, at, m, 1) &&
	       dsl_want(k, at, m, DSL_BOOL);
}

static struct ssa_inst *mask_of(const struct val *m, uint32_t j)
{
	return m->e ? dsl_at_elem(m, j) : NULL;
}

static bool take_access(struct dsl *k, struct dsl_at at, struct val *p,
			struct val *i, struct val *mask)
{
	struct val v[] = { *p, *i };

	return dsl_go(k, at) && dsl_defined(k, at, v, 2) &&
	       is_pointer(k, at, p) && is_index(k, at, p, i) &&
	       take_mask(k, at, mask);
}

static bool width_good(struct dsl *k, struct dsl_at at, uint32_t n)
{
	return (n >= 1 && n <= SSA_MAX_LANES) ||
	       dsl_fail(k, at, "unsupported width: %u elements, wanted 1 to "
			"%d", n, SSA_MAX_LANES);
}

struct val dsl_load(struct dsl_at at, struct val p, struct val i, uint32_t n,
		    struct val mask)
{
	struct val v[] = { p, i, mask };
	struct dsl *k = dsl_pick(v, 3);

	if (!take_access(k, at, &p, &i, &mask) || !width_good(k, at, n))
		return (struct val){ 0 };
	const struct val w[] = { i, mask };
	const uint32_t places = dsl_width(k, at, w, mask.e ? 2 : 1);

	if (!places || (n > 1 && places > 1)) {
		dsl_fail(k, at, "unsupported width: %u elements at %u places",
			 n, places);
		return (struct val){ 0 };
	}
	const struct ssa_type t = ssa_type(dsl_type_info[p.elem].kind, n);
	struct val out = dsl_val(k, p.elem, places);

	for (uint32_t j = 0; j < places; j++) {
		const struct place to = place_of(k, &p, &i, j);

		out.e[j] = emit_access(k, SSA_load, t, &p, &to, NULL,
				       mask_of(&mask, j));
	}
	return n == 1 ? out : dsl_unpack(k, p.elem, out.e[0]);
}

void dsl_store(struct dsl_at at, struct val p, struct val i, struct val x,
	       struct val mask)
{
	struct val v[] = { p, i, x, mask };
	struct dsl *k = dsl_pick(v, 4);

	if (!take_access(k, at, &p, &i, &mask))
		return;
	x = dsl_typed(k, at, x, p.elem);
	if (k->err.code || !dsl_defined(k, at, &x, 1) ||
	    !dsl_want(k, at, &x, p.elem))
		return;
	if (p.readonly) {
		dsl_fail(k, at, "a store through a pointer to read only");
		return;
	}
	const struct ssa_type none = ssa_type(SSA_VOID, 0);
	const struct val w[] = { i, x, mask };
	const uint32_t places = dsl_width(k, at, w, mask.e ? 3 : 2);
	const bool whole = i.n == 1 && (!mask.e || mask.n == 1);

	for (uint32_t j = 0; j < (whole ? !!places : places); j++) {
		const struct place to = place_of(k, &p, &i, j);

		emit_access(k, SSA_store, none, &p, &to,
			    whole ? dsl_pack(k, &x) : dsl_at_elem(&x, j),
			    mask_of(&mask, j));
	}
}

/* Everything at once where it fits, one by one at the tail. */
#undef DSL_AT
#define DSL_AT at

struct val dsl_load_in(struct dsl_at at, struct val p, struct val i, uint32_t n,
		       struct val end)
{
	struct dsl *k = p.k;

	if (!dsl_go(k, at) || !width_good(k, at, n))
		return (struct val){ 0 };
	if (n == 1)
		return LOAD_IF(LT(i, end), p, i);
	struct val zero = dsl_val(k, p.elem, n);

	if (!is_pointer(k, at, &p))
		return (struct val){ 0 };
	for (uint32_t j = 0; j < n; j++)
		zero.e[j] = dsl_bits_const(k, dsl_type_info[p.elem].kind, 0);
	struct var r = VAR_OF(zero);

	IF (k, LE(ADD(i, n), end)) {
		SET(r, LOADV(p, i, n));
	}
	ELSE (k) {
		const struct val each = RANGE(i, n);

		SET(r, LOAD_IF(LT(each, end), p, each));
	}
	return GET(r);
}

void dsl_store_in(struct dsl_at at, struct val p, struct val i, struct val x,
		  struct val end)
{
	struct dsl *k = p.k;

	if (!dsl_go(k, at))
		return;
	if (x.n == 1) {
		STORE_IF(LT(i, end), p, i, x);
		return;
	}
	IF (k, LE(ADD(i, x.n), end)) {
		STORE(p, i, x);
	}
	ELSE (k) {
		const struct val each = RANGE(i, x.n);

		STORE_IF(LT(each, end), p, each, x);
	}
}

/* ------------------------------------------------------------ pointers -- */

struct val dsl_advance(struct dsl_at at, struct val p, struct val i)
{
	struct val v[] = { p, i };
	struct dsl *k = dsl_pick(v, 2);

	if (!dsl_go(k, at) || !dsl_defined(k, at, v, 2) ||
	    !is_pointer(k, at, &p))
		return (struct val){ 0 };
	const bool shared = p.type == DSL_SHARED;

	i = dsl_typed(k, at, i, shared ? DSL_I32 : DSL_I64);
	if (k->err.code || !is_index(k, at, &p, &i))
		return (struct val){ 0 };
	if (!shared)
		i = dsl_cast(at, DSL_I64, i);
	p.e = dsl_val1(k, p.type,
		       dsl_emit2(
			       k, SSA_ptradd, p.e[0]->type, p.e[0],
			       scale_index(k, i.e[0], elem_bytes(&p), SSA_NSW)))
		      .e;
	return p;
}

struct val dsl_aligned(struct dsl_at at, struct val p, uint32_t bytes)
{
	struct dsl *k = p.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &p, 1) ||
	    !is_pointer(k, at, &p))
		return (struct val){ 0 };
	if (!bytes || bytes & (bytes - 1) || bytes > 256) {
		dsl_fail(k, at, "an alignment of %u, wanted a power of two to "
			 "256", bytes);
		return (struct val){ 0 };
	}
	p.align = (uint8_t)__builtin_ctz(bytes);
	return p;
}

struct val dsl_as(struct dsl_at at, enum dsl_type elem, struct val p)
{
	struct dsl *k = p.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &p, 1) ||
	    !is_pointer(k, at, &p))
		return (struct val){ 0 };
	if (elem <= DSL_BOOL || elem >= DSL_GLOBAL) {
		dsl_fail(k, at, "a pointer to %s", dsl_type_info[elem].name);
		return (struct val){ 0 };
	}
	p.elem = (uint8_t)elem;
	return p;
}

/* ------------------------------------------------------------- atomics -- */

struct val dsl_atomic(struct dsl_at at, enum ssa_rmw op, struct val p,
		      struct val i, struct val x, struct val mask)
{
	struct val v[] = { p, i, x, mask };
	struct dsl *k = dsl_pick(v, 4);

	if (!take_access(k, at, &p, &i, &mask))
		return (struct val){ 0 };
	x = dsl_typed(k, at, x, p.elem);
	if (k->err.code || !dsl_defined(k, at, &x, 1) ||
	    !dsl_want(k, at, &x, p.elem))
		return (struct val){ 0 };
	const bool is_float = x.type == DSL_F32;

	if (p.readonly || op >= SSA_RMWS ||
	    (!is_float && x.type != DSL_I32 && x.type != DSL_U32 &&
	     x.type != DSL_I64) ||
	    (op != SSA_RMW_XCHG && is_float != (op >= SSA_RMW_FADD))) {
		dsl_fail(k, at, "type mismatch: this atomic is not there for "
			 "%s, or the memory is for reading only",
			 dsl_type_info[x.type].name);
		return (struct val){ 0 };
	}
	const struct val w[] = { i, x, mask };
	const uint32_t n = dsl_width(k, at, w, mask.e ? 3 : 2);
	struct val out = dsl_val(k, x.type, n ? n : 1);

	for (uint32_t j = 0; j < n; j++) {
		const struct place to = place_of(k, &p, &i, j);

		out.e[j] = emit_access(k, SSA_atomic, dsl_ssa(x.type), &p, &to,
				       dsl_at_elem(&x, j), mask_of(&mask, j));
		out.e[j]->sub = (uint8_t)op;
	}
	return out;
}

struct val dsl_cas(struct dsl_at at, struct val p, struct val i,
		   struct val expected, struct val to)
{
	struct val v[] = { p, i, expected, to }, mask = dsl_of_i64(1);
	struct dsl *k = dsl_pick(v, 4);

	if (!take_access(k, at, &p, &i, &mask))
		return (struct val){ 0 };
	v[2] = dsl_typed(k, at, expected, p.elem);
	v[3] = dsl_typed(k, at, to, p.elem);
	if (k->err.code || !dsl_defined(k, at, v, 4) ||
	    !dsl_want(k, at, &v[2], p.elem) || !dsl_want(k, at, &v[3], p.elem))
		return (struct val){ 0 };
	if ((p.elem != DSL_I32 && p.elem != DSL_U32 && p.elem != DSL_I64) ||
	    p.readonly || i.n * v[2].n * v[3].n != 1) {
		dsl_fail(k, at, "type mismatch: CAS of %s, wanted one i32, u32 "
			 "or i64 that may be written",
			 dsl_type_info[p.elem].name);
		return (struct val){ 0 };
	}
	const struct place where = place_of(k, &p, &i, 0);

	return dsl_val1(k, p.elem,
			emit_access(k, SSA_cmpxchg, dsl_ssa(p.elem), &p, &where,
				    v[2].e[0], v[3].e[0]));
}

void dsl_sync(struct dsl *k, struct dsl_at at, enum ssa_op op)
{
	if (dsl_go(k, at))
		dsl_emit(k, op, ssa_type(SSA_VOID, 0), 0, NULL);
}
