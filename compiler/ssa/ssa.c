/*
 * compiler/ssa/ssa.c - operations, types, functions, blocks, instructions.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/ssa/ssa.h"

#define RESULT_N 'N'
#define RESULT_A 'A'
#define RESULT_B 'B'
#define RESULT_T 'T'
#define V	 (-1)
#define P	 SSA_OP_PURE
#define C	 SSA_OP_COMMUTES
#define R	 SSA_OP_READS
#define W	 SSA_OP_WRITES
#define X	 SSA_OP_CROSSES
#define S	 SSA_OP_SAME
#define E	 SSA_OP_ENDS
static const struct ssa_op_info op_table[SSA_OPS] = {
#define OP(name, args, result, flags) { #name, args, RESULT_##result, flags },
#include "compiler/ssa/ssa.def"
};
#undef V
#undef P
#undef C
#undef R
#undef W
#undef X
#undef S
#undef E

const struct ssa_op_info *ssa_op_info(enum ssa_op op)
{
	if (op >= SSA_OPS)
		BUG("operation %d, wanted less than %d", op, SSA_OPS);
	return &op_table[op];
}

uint32_t ssa_kind_bits(enum ssa_kind kind)
{
	static const uint8_t bits[SSA_KINDS] = {
		[SSA_I1] = 1,	[SSA_I8] = 8,	 [SSA_I16] = 16,
		[SSA_I32] = 32, [SSA_I64] = 64,	 [SSA_F16] = 16,
		[SSA_BF16] = 16, [SSA_F32] = 32, [SSA_F64] = 64,
		[SSA_PTR] = 64, [SSA_LDS] = 32,
	};

	return bits[kind];
}

uint32_t ssa_type_bytes(struct ssa_type t)
{
	return t.n * ((ssa_kind_bits(t.kind) + 7) / 8);
}

bool ssa_type_eq(struct ssa_type a, struct ssa_type b)
{
	return a.kind == b.kind && a.n == b.n;
}

bool ssa_kind_is_int(enum ssa_kind kind)
{
	return kind >= SSA_I1 && kind <= SSA_I64;
}

bool ssa_kind_is_float(enum ssa_kind kind)
{
	return kind >= SSA_F16 && kind <= SSA_F64;
}

uint32_t ssa_n_edges(const struct ssa_inst *i)
{
	return i->op == SSA_branch ? 2 : i->op == SSA_jump ? 1 : 0;
}

uint8_t ssa_pred_swap(uint8_t pred)
{
	static const uint8_t to[SSA_PREDS] = {
		[SSA_EQ] = SSA_EQ,     [SSA_NE] = SSA_NE,
		[SSA_SLT] = SSA_SGT,   [SSA_SLE] = SSA_SGE,
		[SSA_SGT] = SSA_SLT,   [SSA_SGE] = SSA_SLE,
		[SSA_ULT] = SSA_UGT,   [SSA_ULE] = SSA_UGE,
		[SSA_UGT] = SSA_ULT,   [SSA_UGE] = SSA_ULE,
		[SSA_FOEQ] = SSA_FOEQ, [SSA_FONE] = SSA_FONE,
		[SSA_FOLT] = SSA_FOGT, [SSA_FOLE] = SSA_FOGE,
		[SSA_FOGT] = SSA_FOLT, [SSA_FOGE] = SSA_FOLE,
		[SSA_FUEQ] = SSA_FUEQ, [SSA_FUNE] = SSA_FUNE,
		[SSA_FULT] = SSA_FUGT, [SSA_FULE] = SSA_FUGE,
		[SSA_FUGT] = SSA_FULT, [SSA_FUGE] = SSA_FULE,
		[SSA_ORD] = SSA_ORD,   [SSA_UNO] = SSA_UNO,
	};

	return to[pred];
}

/* ----------------------------------------------------------- functions -- */

struct ssa_func *ssa_func_new(const char *name)
{
	struct arena *arena = xcalloc(1, sizeof(*arena));
	struct ssa_func *f = arena_alloc(arena, sizeof(*f));

	f->arena = arena;
	f->name = arena_strdup(arena, name);
	f->wave = 32;
	for (int i = 0; i < 3; i++)
		f->group[i] = 1;
	return f;
}

void ssa_func_free(struct ssa_func *f)
{
	if (!f)
		return;
	struct arena *arena = f->arena; /* f lies in it */

	arena_fini(arena);
	free(arena);
}

/* The array of n elements with room for one more. */
static void *grow_array(struct ssa_func *f, const void *old, uint32_t n,
			size_t size)
{
	void *p = arena_alloc(f->arena, (n + 1) * size);

	if (n)
		memcpy(p, old, n * size);
	return p;
}

/* The kernarg segment aligns each argument to its size. */
static uint32_t next_arg_offset(const struct ssa_func *f, struct ssa_type t)
{
	const uint32_t bytes = ssa_type_bytes(t);
	uint32_t end = 0;

	if (f->n_args) {
		const struct ssa_arg *last = &f->arg[f->n_args - 1];

		end = last->offset + ssa_type_bytes(last->type);
	}
	return (end + bytes - 1) / bytes * bytes;
}

uint32_t ssa_arg_add(struct ssa_func *f, const char *name, struct ssa_type t)
{
	const uint32_t offset = next_arg_offset(f, t);

	f->arg = grow_array(f, f->arg, f->n_args, sizeof(*f->arg));
	f->arg[f->n_args] = (struct ssa_arg){
		.name = arena_strdup(f->arena, name),
		.type = t,
		.offset = offset,
	};
	return f->n_args++;
}

uint32_t ssa_lds_add(struct ssa_func *f, const char *name, uint32_t size_bytes,
		     uint32_t align_bytes)
{
	f->lds = grow_array(f, f->lds, f->n_lds, sizeof(*f->lds));
	f->lds[f->n_lds] = (struct ssa_lds){
		.name = arena_strdup(f->arena, name),
		.size_bytes = size_bytes,
		.align_bytes = align_bytes,
	};
	return f->n_lds++;
}

uint32_t ssa_format_add(struct ssa_func *f, const char *format)
{
	f->format = grow_array(f, f->format, f->n_formats, sizeof(*f->format));
	f->format[f->n_formats] = arena_strdup(f->arena, format);
	return f->n_formats++;
}

/* -------------------------------------------------------------- blocks -- */

static struct ssa_block *block_make(struct ssa_func *f)
{
	struct ssa_block *b = arena_alloc(f->arena, sizeof(*b));

	b->id = f->n_blocks++;
	return b;
}

struct ssa_block *ssa_block_new(struct ssa_func *f)
{
	struct ssa_block *b = block_make(f);

	b->prev = f->last;
	*(f->last ? &f->last->next : &f->first) = b;
	f->last = b;
	return b;
}

struct ssa_block *ssa_block_after(struct ssa_func *f, struct ssa_block *at)
{
	struct ssa_block *b = block_make(f);

	b->prev = at;
	b->next = at->next;
	*(at->next ? &at->next->prev : &f->last) = b;
	at->next = b;
	return b;
}

void ssa_block_unlink(struct ssa_func *f, struct ssa_block *b)
{
	*(b->prev ? &b->prev->next : &f->first) = b->next;
	*(b->next ? &b->next->prev : &f->last) = b->prev;
	b->prev = b->next = NULL;
}

struct ssa_inst *ssa_block_param(struct ssa_func *f, struct ssa_block *b,
				 struct ssa_type t)
{
	struct ssa_inst *p = ssa_inst_new(f, SSA_param, t, 0, NULL);

	b->param = grow_array(f, b->param, b->n_params, sizeof(*b->param));
	b->param[b->n_params++] = p;
	p->block = b;
	return p;
}

/* -------------------------------------------------------- instructions -- */

struct ssa_inst **ssa_args_copy(struct ssa_func *f, uint32_t n,
				struct ssa_inst *const *arg)
{
	if (!n)
		return NULL;
	struct ssa_inst **p = arena_alloc(f->arena, n * sizeof(*p));

	memcpy(p, arg, n * sizeof(*p));
	return p;
}

struct ssa_inst *ssa_inst_new(struct ssa_func *f, enum ssa_op op,
			      struct ssa_type t, uint32_t n_args,
			      struct ssa_inst *const *arg)
{
	struct ssa_inst *i = arena_alloc(f->arena, sizeof(*i));

	i->op = (uint16_t)op;
	i->type = t;
	i->id = f->n_insts++;
	i->n_args = n_args;
	i->arg = ssa_args_copy(f, n_args, arg);
	return i;
}

struct ssa_inst *ssa_const(struct ssa_func *f, struct ssa_type t, uint64_t bits)
{
	struct ssa_inst *i = ssa_inst_new(f, SSA_const, t, 0, NULL);
	const uint32_t width = t.n * ssa_kind_bits(t.kind);

	i->imm = width < 64 ? bits & (((uint64_t)1 << width) - 1) : bits;
	return i;
}

void ssa_append(struct ssa_block *b, struct ssa_inst *i)
{
	i->block = b;
	i->prev = b->last;
	i->next = NULL;
	*(b->last ? &b->last->next : &b->first) = i;
	b->last = i;
}

void ssa_insert_before(struct ssa_inst *at, struct ssa_inst *i)
{
	i->block = at->block;
	i->prev = at->prev;
	i->next = at;
	*(at->prev ? &at->prev->next : &at->block->first) = i;
	at->prev = i;
}

void ssa_insert_after(struct ssa_inst *at, struct ssa_inst *i)
{
	if (at->next)
		ssa_insert_before(at->next, i);
	else
		ssa_append(at->block, i);
}

void ssa_unlink(struct ssa_inst *i)
{
	*(i->prev ? &i->prev->next : &i->block->first) = i->next;
	*(i->next ? &i->next->prev : &i->block->last) = i->prev;
	i->prev = i->next = NULL;
}

static void replace_in(struct ssa_inst **arg, uint32_t n,
		       const struct ssa_inst *from, struct ssa_inst *to)
{
	for (uint32_t k = 0; k < n; k++)
		if (arg[k] == from)
			arg[k] = to;
}

void ssa_replace(struct ssa_func *f, struct ssa_inst *from, struct ssa_inst *to)
{
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			replace_in(i->arg, i->n_args, from, to);
			for (uint32_t k = 0; k < ssa_n_edges(i); k++)
				replace_in(i->edge[k].arg, i->edge[k].n_args,
					   from, to);
		}
}

void ssa_edge_set(struct ssa_func *f, struct ssa_edge *edge,
		  struct ssa_block *to, uint32_t n, struct ssa_inst *const *arg)
{
	edge->to = to;
	edge->n_args = n;
	edge->arg = ssa_args_copy(f, n, arg);
}

struct ssa_inst *ssa_jump_to(struct ssa_func *f, struct ssa_block *from,
			     struct ssa_block *to, uint32_t n,
			     struct ssa_inst *const *arg)
{
	struct ssa_inst *t =
		ssa_inst_new(f, SSA_jump, ssa_type(SSA_VOID, 0), 0, NULL);

	ssa_append(from, t);
	ssa_edge_set(f, &t->edge[0], to, n, arg);
	return t;
}

void ssa_edge_add(struct ssa_func *f, struct ssa_edge *edge,
		  struct ssa_inst *arg)
{
	edge->arg = grow_array(f, edge->arg, edge->n_args, sizeof(*edge->arg));
	edge->arg[edge->n_args++] = arg;
}

/* ---------------------------------------------------------------- copy -- */

/* From the old function's ids to the new function's things. */
struct copy {
	struct ssa_func *f;
	struct ssa_inst **inst;
	struct ssa_block **block;
};

static struct ssa_inst *copy_of(struct copy *c, const struct ssa_inst *i)
{
	if (!c->inst[i->id])
		c->inst[i->id] = arena_alloc(c->f->arena, sizeof(*i));
	return c->inst[i->id];
}

static struct ssa_inst **copied_args(struct copy *c, uint32_t n,
				     struct ssa_inst *const *arg)
{
	struct ssa_inst **p = ssa_args_copy(c->f, n, arg);

	for (uint32_t k = 0; k < n; k++)
		p[k] = copy_of(c, arg[k]);
	return p;
}

static struct ssa_inst *copy_inst(struct copy *c, const struct ssa_inst *i)
{
	struct ssa_inst *to = copy_of(c, i);

	*to = *i;
	to->prev = to->next = NULL;
	to->block = c->block[i->block->id];
	to->arg = copied_args(c, i->n_args, i->arg);
	to->merge = i->merge ? c->block[i->merge->id] : NULL;
	for (uint32_t k = 0; k < ssa_n_edges(i); k++) {
		to->edge[k].to = c->block[i->edge[k].to->id];
		to->edge[k].arg =
			copied_args(c, i->edge[k].n_args, i->edge[k].arg);
	}
	return to;
}

static void copy_header(struct ssa_func *to, const struct ssa_func *f)
{
	memcpy(to->group, f->group, sizeof(f->group));
	to->wave = f->wave;
	to->waves = f->waves;
	if (f->file)
		to->file = arena_strdup(to->arena, f->file);
	for (uint32_t k = 0; k < f->n_args; k++) {
		ssa_arg_add(to, f->arg[k].name, f->arg[k].type);
		const char *name = to->arg[k].name;

		to->arg[k] = f->arg[k];
		to->arg[k].name = name;
	}
	for (uint32_t k = 0; k < f->n_lds; k++)
		ssa_lds_add(to, f->lds[k].name, f->lds[k].size_bytes,
			    f->lds[k].align_bytes);
	for (uint32_t k = 0; k < f->n_formats; k++)
		ssa_format_add(to, f->format[k]);
}

static void copy_block(struct copy *c, const struct ssa_block *b)
{
	struct ssa_block *to = c->block[b->id];

	to->n_params = b->n_params;
	to->param = copied_args(c, b->n_params, b->param);
	for (uint32_t k = 0; k < b->n_params; k++)
		copy_inst(c, b->param[k]);
	for (const struct ssa_inst *i = b->first; i; i = i->next)
		ssa_append(to, copy_inst(c, i));
}

struct ssa_func *ssa_func_copy(const struct ssa_func *f)
{
	struct copy c = {
		.f = ssa_func_new(f->name),
		.inst = xcalloc(f->n_insts + 1, sizeof(*c.inst)),
		.block = xcalloc(f->n_blocks + 1, sizeof(*c.block)),
	};

	copy_header(c.f, f);
	for (const struct ssa_block *b = f->first; b; b = b->next) {
		c.block[b->id] = ssa_block_new(c.f);
		c.block[b->id]->id = b->id;
	}
	for (const struct ssa_block *b = f->first; b; b = b->next)
		copy_block(&c, b);
	c.f->n_insts = f->n_insts;
	c.f->n_blocks = f->n_blocks;
	free(c.inst);
	free(c.block);
	return c.f;
}
