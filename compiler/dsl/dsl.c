/*
 * compiler/dsl/dsl.c - the builder of a kernel: errors, arguments, leaves,
 * values.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/dsl/dsl_int.h"

enum { LDS_BYTES = 65536 }; /* of a workgroup on gfx11 */

const struct dsl_type_info dsl_type_info[DSL_TYPES] = {
	[DSL_NONE] = { "undefined", SSA_VOID, false, false, false },
	[DSL_BOOL] = { "bool", SSA_I1, false, false, true },
	[DSL_I8] = { "i8", SSA_I8, false, true, false },
	[DSL_U8] = { "u8", SSA_I8, false, false, false },
	[DSL_I16] = { "i16", SSA_I16, false, true, false },
	[DSL_I32] = { "i32", SSA_I32, false, true, true },
	[DSL_U32] = { "u32", SSA_I32, false, false, true },
	[DSL_I64] = { "i64", SSA_I64, false, true, true },
	[DSL_F16] = { "f16", SSA_F16, true, true, true },
	[DSL_BF16] = { "bf16", SSA_BF16, true, true, false },
	[DSL_F32] = { "f32", SSA_F32, true, true, true },
	[DSL_GLOBAL] = { "a global pointer", SSA_PTR, false, false, false },
	[DSL_SHARED] = { "an LDS pointer", SSA_LDS, false, false, false },
	[DSL_NUMBER] = { "a number", SSA_VOID, false, false, false },
};

/* -------------------------------------------------------------- errors -- */

bool dsl_fail(struct dsl *k, struct dsl_at at, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!k || k->err.code)
		return false;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(&k->err, ERR_INPUT, "%s:%u: %s: %s", at.file, at.line,
		       k->f->name, text);
}

/* A helper in another file counts as the line that came before. */
bool dsl_go(struct dsl *k, struct dsl_at at)
{
	if (!k || k->err.code)
		return false;
	if (!strcmp(at.file, k->f->file))
		k->line = at.line;
	return true;
}

struct dsl *dsl_pick(const struct val *v, size_t n)
{
	for (size_t j = 0; j < n; j++)
		if (v[j].k)
			return v[j].k;
	return NULL;
}

static bool in_scope(const struct dsl *k, const struct val *v)
{
	for (uint32_t j = 0; j < v->n; j++)
		if (!k->open[v->e[j]->block->tmp.num])
			return false;
	return true;
}

bool dsl_defined(struct dsl *k, struct dsl_at at, const struct val *v, size_t n)
{
	for (size_t j = 0; j < n; j++) {
		if (v[j].type == DSL_NUMBER)
			continue;
		if (v[j].type == DSL_NONE || !v[j].e)
			return dsl_fail(k, at, "operand %zu is an undefined "
					"value", j + 1);
		if (v[j].k != k)
			return dsl_fail(k, at, "operand %zu belongs to another "
					"kernel", j + 1);
		if (!in_scope(k, &v[j]))
			return dsl_fail(k, at, "operand %zu is an undefined "
					"value here: it was computed on line "
					"%u in an IF or a loop that has ended; "
					"use a variable", j + 1,
					v[j].e[0]->line);
	}
	return true;
}

bool dsl_want(struct dsl *k, struct dsl_at at, const struct val *v,
	      enum dsl_type type)
{
	if (v->type == type && !v->frag)
		return true;
	return dsl_fail(k, at, "type mismatch: got %s%s, wanted %s",
			v->frag ? "a fragment of " : "",
			dsl_type_info[v->type].name, dsl_type_info[type].name);
}

uint32_t dsl_width(struct dsl *k, struct dsl_at at, const struct val *v,
		   size_t n)
{
	uint32_t width = 1;

	for (size_t j = 0; j < n; j++) {
		if (v[j].n == 1)
			continue;
		if (width != 1 && v[j].n != width) {
			dsl_fail(k, at, "operands of %u and %u elements", width,
				 v[j].n);
			return 0;
		}
		width = v[j].n;
	}
	return width;
}

/* ------------------------------------------------------------- kernels -- */

struct dsl *dsl_new(struct dsl_at at, const char *name, uint32_t x, uint32_t y,
		    uint32_t z, ...)
{
	struct dsl *k = xcalloc(1, sizeof(*k));

	k->f = ssa_func_new(name);
	k->f->file = arena_strdup(k->f->arena, at.file);
	k->f->group[0] = x;
	k->f->group[1] = y;
	k->f->group[2] = z;
	k->math = SSA_CONTRACT;
	k->region = (uint32_t)dsl_region_new(k);
	k->block = dsl_block_new(k);
	if (!x || !y || !z || (uint64_t)x * y * z > 1024)
		dsl_fail(k, at, "a group of %u x %u x %u work-items, wanted 1 "
			 "to 1024", x, y, z);
	return k;
}

static void dsl_free(struct dsl *k)
{
	free(k->var);
	free(k->open);
	free(k);
}

const char *dsl_name(const struct dsl *k)
{
	return k->f->name;
}

struct ssa_func *dsl_finish(struct dsl *k, struct err *e)
{
	struct ssa_func *f = k->f;

	if (k->depth && !k->err.code) {
		const struct dsl_at at = { f->file,
					   k->flow[k->depth - 1].line };

		dsl_fail(k, at, "the body of this was left by break, goto or "
			 "return");
	}
	ssa_append(k->block, ssa_inst_new(f, SSA_ret, ssa_type(SSA_VOID, 0), 0,
					  NULL));
	if (k->err.code) {
		if (e)
			*e = k->err;
	} else if (ssa_check(f, e)) {
		dsl_free(k);
		return f;
	}
	ssa_func_free(f);
	dsl_free(k);
	return NULL;
}

void dsl_math(struct dsl *k, uint16_t flags)
{
	k->math = flags & (SSA_CONTRACT | SSA_FAST | SSA_REASSOC);
}

void dsl_waves(struct dsl *k, uint32_t waves)
{
	k->f->waves = waves;
}

/* ------------------------------------------------------------ emission -- */

static bool takes_policy(enum ssa_op op)
{
	return op >= SSA_fadd && op <= SSA_dot2;
}

struct ssa_inst *dsl_emit(struct dsl *k, enum ssa_op op, struct ssa_type t,
			  uint32_t n, struct ssa_inst *const *arg)
{
	struct ssa_inst *i = ssa_inst_new(k->f, op, t, n, arg);

	i->line = k->line;
	if (takes_policy(op))
		i->flags = k->math;
	ssa_append(k->block, i);
	return i;
}

struct ssa_inst *dsl_emit1(struct dsl *k, enum ssa_op op, struct ssa_type t,
			   struct ssa_inst *a)
{
	return dsl_emit(k, op, t, 1, &a);
}

struct ssa_inst *dsl_emit2(struct dsl *k, enum ssa_op op, struct ssa_type t,
			   struct ssa_inst *a, struct ssa_inst *b)
{
	struct ssa_inst *const arg[] = { a, b };

	return dsl_emit(k, op, t, 2, arg);
}

struct ssa_inst *dsl_entry(struct dsl *k, enum ssa_op op, struct ssa_type t,
			   uint64_t imm)
{
	const uint64_t hash = (imm ^ imm >> 32 ^ imm >> 16 ^ op ^ t.kind) *
			      0x9e3779b97f4a7c15;
	struct dsl_leaf **at = &k->leaf[hash >> 56];
	struct ssa_block *entry = k->f->first;

	for (struct dsl_leaf *l = *at; l; l = l->next)
		if (l->i->op == op && l->i->imm == imm &&
		    ssa_type_eq(l->i->type, t))
			return l->i;
	struct ssa_inst *i = ssa_inst_new(k->f, op, t, 0, NULL);
	struct dsl_leaf *l = arena_alloc(k->f->arena, sizeof(*l));

	i->imm = imm;
	if (k->last_leaf)
		ssa_insert_after(k->last_leaf, i);
	else if (entry->first)
		ssa_insert_before(entry->first, i);
	else
		ssa_append(entry, i);
	k->last_leaf = i;
	*l = (struct dsl_leaf){ *at, i };
	*at = l;
	return i;
}

struct ssa_inst *dsl_bits_const(struct dsl *k, enum ssa_kind kind,
				uint64_t bits)
{
	return dsl_entry(k, SSA_const, ssa_type(kind, 1),
			 ssa_bits_cut(kind, bits));
}

/* -------------------------------------------------------------- values -- */

struct val dsl_val(struct dsl *k, enum dsl_type type, uint32_t n)
{
	return (struct val){
		.k = k,
		.e = arena_alloc(k->f->arena, n * sizeof(struct ssa_inst *)),
		.type = (uint8_t)type,
		.n = (uint8_t)n,
	};
}

struct val dsl_val1(struct dsl *k, enum dsl_type type, struct ssa_inst *i)
{
	struct val v = dsl_val(k, type, 1);

	v.e[0] = i;
	return v;
}

struct val dsl_of_val(struct val v)
{
	return v;
}

struct val dsl_of_f64(double f)
{
	const bool whole = f == floor(f) && fabs(f) < 0x1p62;

	return (struct val){ .type = DSL_NUMBER, .n = 1, .f = f,
			     .whole = whole, .i = whole ? (int64_t)f : 0 };
}

struct val dsl_of_i64(int64_t i)
{
	return (struct val){ .type = DSL_NUMBER, .n = 1, .f = (double)i,
			     .whole = true, .i = i };
}

static bool number_fits(const struct val *v, enum ssa_kind kind)
{
	const uint32_t bits = ssa_kind_bits(kind);

	return bits == 64 || (v->i >= -((int64_t)1 << (bits - 1)) &&
			      v->i < (int64_t)1 << bits);
}

struct val dsl_typed(struct dsl *k, struct dsl_at at, struct val v,
		     enum dsl_type type)
{
	const struct dsl_type_info *t = &dsl_type_info[type];

	if (v.type != DSL_NUMBER)
		return v;
	if (t->is_float)
		return dsl_val1(k, type,
				dsl_bits_const(k, t->kind,
					       ssa_f64_to_bits(t->kind, v.f)));
	if (type == DSL_NONE || type >= DSL_GLOBAL) {
		dsl_fail(k, at, "type mismatch: a number for %s", t->name);
		return (struct val){ 0 };
	}
	if (!v.whole || !number_fits(&v, t->kind)) {
		dsl_fail(k, at, "type mismatch: %g is no %s", v.f, t->name);
		return (struct val){ 0 };
	}
	return dsl_val1(k, type, dsl_bits_const(k, t->kind, (uint64_t)v.i));
}

struct val dsl_const(struct dsl *k, struct dsl_at at, enum dsl_type type,
		     struct val number)
{
	if (!dsl_go(k, at) || !dsl_defined(k, at, &number, 1))
		return (struct val){ 0 };
	number = dsl_typed(k, at, number, type);
	if (k->err.code || !dsl_want(k, at, &number, type))
		return (struct val){ 0 };
	return number;
}

static bool data_type(enum dsl_type t)
{
	return t > DSL_BOOL && t < DSL_GLOBAL;
}

struct val dsl_arg(struct dsl *k, struct dsl_at at, enum dsl_type type,
		   const char *name)
{
	if (!dsl_go(k, at))
		return (struct val){ 0 };
	if (!data_type(type) || k->f->n_args == SSA_MAX_ARGS) {
		dsl_fail(k, at, "argument '%s': %s, or more than %d", name,
			 dsl_type_info[type].name, SSA_MAX_ARGS);
		return (struct val){ 0 };
	}
	const struct ssa_type t = dsl_ssa(type);
	const uint32_t number = ssa_arg_add(k->f, name, t);

	return dsl_val1(k, type, dsl_entry(k, SSA_arg, t, number));
}

struct val dsl_arg_ptr(struct dsl *k, struct dsl_at at, enum dsl_type elem,
		       const char *name, uint32_t flags)
{
	if (!dsl_go(k, at))
		return (struct val){ 0 };
	if (!data_type(elem) || k->f->n_args == SSA_MAX_ARGS) {
		dsl_fail(k, at, "argument '%s': a pointer to %s, or more than "
			 "%d", name, dsl_type_info[elem].name, SSA_MAX_ARGS);
		return (struct val){ 0 };
	}
	const struct ssa_type t = ssa_type(SSA_PTR, 1);
	const uint32_t number = ssa_arg_add(k->f, name, t);
	struct ssa_arg *a = &k->f->arg[number];
	struct val v =
		dsl_val1(k, DSL_GLOBAL, dsl_entry(k, SSA_arg, t, number));

	a->elem = dsl_ssa(elem);
	a->readonly = flags & DSL_READONLY;
	a->noalias = flags != 0;
	v.elem = (uint8_t)elem;
	v.readonly = a->readonly;
	return v;
}

struct val dsl_lds(struct dsl *k, struct dsl_at at, enum dsl_type elem,
		   uint32_t count, const char *name)
{
	uint64_t total = 0;

	if (!dsl_go(k, at))
		return (struct val){ 0 };
	const uint64_t bytes = (uint64_t)count * ssa_type_bytes(dsl_ssa(elem));

	for (uint32_t j = 0; j < k->f->n_lds; j++)
		total += (k->f->lds[j].size_bytes + 15u) & ~15u;
	if (!data_type(elem) || !count || total + bytes > LDS_BYTES) {
		dsl_fail(k, at, "too much LDS or of a wrong type: '%s' of %u "
			 "times %s makes %llu bytes, %d are there", name, count,
			 dsl_type_info[elem].name,
			 (unsigned long long)(total + bytes), LDS_BYTES);
		return (struct val){ 0 };
	}
	const uint32_t number = ssa_lds_add(k->f, name, (uint32_t)bytes, 16);
	struct val v = dsl_val1(k, DSL_SHARED,
				dsl_entry(k, SSA_lds, ssa_type(SSA_LDS, 1),
					  number));

	v.elem = (uint8_t)elem;
	return v;
}

struct val dsl_leaf(struct dsl *k, struct dsl_at at, enum ssa_op op,
		    uint32_t dim)
{
	const struct ssa_type t = ssa_type(SSA_I32, 1);

	if (!dsl_go(k, at))
		return (struct val){ 0 };
	if (dim > 2) {
		dsl_fail(k, at, "dimension %u, wanted 0 to 2", dim);
		return (struct val){ 0 };
	}
	if (op == SSA_clock)
		return dsl_val1(k, DSL_I32, dsl_emit(k, op, t, 0, NULL));
	return dsl_val1(k, DSL_I32, dsl_entry(k, op, t, dim));
}

struct val dsl_global_id(struct dsl *k, struct dsl_at at, uint32_t dim)
{
	const struct val group = dsl_leaf(k, at, SSA_group_id, dim);
	const struct val local = dsl_leaf(k, at, SSA_local_id, dim);

	if (!dsl_go(k, at))
		return (struct val){ 0 };
	const struct val size = dsl_of_i64(k->f->group[dim]);
	struct val id = dsl_fma(at, group, size, local);

	id.type = DSL_U32; /* a grid may have 2^32 - 1 work-items */
	return id;
}

struct val dsl_range(struct dsl_at at, struct val start, uint32_t n)
{
	struct dsl *k = start.k;
	struct val count;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &start, 1))
		return (struct val){ 0 };
	if (n < 1 || n > SSA_MAX_LANES || start.n != 1) {
		dsl_fail(k, at, "unsupported width: a range of %u, wanted 1 "
			 "to %d", n, SSA_MAX_LANES);
		return (struct val){ 0 };
	}
	count = dsl_val(k, start.type, n);
	for (uint32_t j = 0; j < n; j++)
		count.e[j] = dsl_bits_const(k, dsl_type_info[start.type].kind,
					    j);
	return dsl_binary(at, DSL_ADD, start, count);
}

struct val dsl_elem(struct dsl_at at, struct val x, uint32_t j)
{
	struct dsl *k = x.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &x, 1))
		return (struct val){ 0 };
	if (j >= x.n) {
		dsl_fail(k, at, "element %u of a value of %u", j, x.n);
		return (struct val){ 0 };
	}
	x.e += j;
	x.n = 1;
	return x;
}

struct val dsl_join(struct dsl_at at, const struct val *v, size_t n)
{
	struct dsl *k = dsl_pick(v, n);
	uint32_t width = 0, at_elem = 0;

	if (!dsl_go(k, at) || !dsl_defined(k, at, v, n))
		return (struct val){ 0 };
	for (size_t j = 0; j < n; j++) {
		if (!dsl_want(k, at, &v[j], v[0].type))
			return (struct val){ 0 };
		width += v[j].n;
	}
	if (width > SSA_MAX_LANES) {
		dsl_fail(k, at, "unsupported width: %u elements, wanted 1 to "
			 "%d", width, SSA_MAX_LANES);
		return (struct val){ 0 };
	}
	struct val out = dsl_val(k, v[0].type, width);

	for (size_t j = 0; j < n; j++)
		for (uint32_t x = 0; x < v[j].n; x++)
			out.e[at_elem++] = v[j].e[x];
	return out;
}

struct val dsl_unpack(struct dsl *k, enum dsl_type type, struct ssa_inst *v)
{
	struct val out = dsl_val(k, type, v->type.n);

	if (v->type.n == 1) {
		out.e[0] = v;
		return out;
	}
	for (uint32_t j = 0; j < v->type.n; j++) {
		out.e[j] = dsl_emit1(k, SSA_extract, dsl_ssa(type), v);
		out.e[j]->imm = j;
	}
	return out;
}

struct ssa_inst *dsl_pack(struct dsl *k, const struct val *v)
{
	if (v->n == 1)
		return v->e[0];
	return dsl_emit(k, SSA_pack,
			ssa_type(dsl_type_info[v->type].kind, v->n), v->n,
			v->e);
}
