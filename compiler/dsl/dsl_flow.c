/*
 * compiler/dsl/dsl_flow.c - control flow and variables.
 *
 * A variable is an array of SSA values that changes while the kernel is built.
 * Where an IF ends, each variable that its sides left differently becomes a
 * parameter of the merge.  A loop takes every variable as a parameter; copy
 * propagation (compiler/opt) removes those that it did not need.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/dsl/dsl_int.h"

uint64_t dsl_region_new(struct dsl *k)
{
	VEC_GROW(k->open, k->n_regions, 1, k->cap_regions);
	k->open[k->n_regions] = true;
	return k->n_regions++;
}

struct ssa_block *dsl_block_new(struct dsl *k)
{
	struct ssa_block *b = ssa_block_new(k->f);

	b->tmp.num = k->region;
	return b;
}

/* ----------------------------------------------------------- variables -- */

struct var dsl_var(struct dsl_at at, struct val init)
{
	struct dsl *k = init.k;

	if (!dsl_go(k, at) || !dsl_defined(k, at, &init, 1))
		return (struct var){ k, 0 };
	VEC_GROW(k->var, k->n_vars, 1, k->cap_vars);
	k->var[k->n_vars] = (struct dsl_slot){ init, at.line };
	return (struct var){ k, k->n_vars++ };
}

struct val dsl_get(struct var v)
{
	struct dsl *k = v.k;

	if (!k || k->err.code)
		return (struct val){ 0 };
	const struct dsl_slot *s = &k->var[v.id];

	if (!s->v.e)
		dsl_fail(k, (struct dsl_at){ k->f->file, k->line },
			 "undefined value: the variable of line %u was made in "
			 "an IF or a loop that has ended", s->line);
	return s->v;
}

void dsl_set(struct dsl_at at, struct var v, struct val to)
{
	struct dsl *k = v.k ? v.k : to.k;

	if (!dsl_go(k, at))
		return;
	if (!v.k) {
		dsl_fail(k, at, "SET() of an undefined variable");
		return;
	}
	struct dsl_slot *s = &k->var[v.id];

	to = dsl_typed(k, at, to, s->v.type);
	if (k->err.code || !dsl_defined(k, at, &to, 1))
		return;
	if (!s->v.e) {
		dsl_fail(k, at, "undefined value: the variable of line %u was "
			 "made in an IF or a loop that has ended", s->line);
		return;
	}
	if (to.type != s->v.type || to.n != s->v.n || to.frag != s->v.frag) {
		dsl_fail(k, at, "type mismatch: SET() of %u x %s, the variable "
			 "of line %u has %u x %s", to.n,
			 dsl_type_info[to.type].name, s->line, s->v.n,
			 dsl_type_info[s->v.type].name);
		return;
	}
	s->v = to;
}

static struct dsl_slot *save_vars(struct dsl *k)
{
	struct dsl_slot *s = arena_alloc(k->f->arena,
					 (k->n_vars + 1) * sizeof(*s));

	if (k->n_vars)
		memcpy(s, k->var, k->n_vars * sizeof(*s));
	return s;
}

static void restore_vars(struct dsl *k, const struct dsl_flow *w)
{
	if (w->n_vars)
		memcpy(k->var, w->at_start, w->n_vars * sizeof(*k->var));
}

/* Variables made inside have no value any more. */
static void close_scope(struct dsl *k, const struct dsl_flow *w)
{
	for (uint32_t j = w->n_vars; j < k->n_vars; j++)
		k->var[j].v.e = NULL;
	k->open[k->region] = false;
	k->region = w->region;
}

/* -------------------------------------------------------------- blocks -- */

static struct ssa_inst *end_block(struct dsl *k, enum ssa_op op,
				  struct ssa_inst *cond)
{
	return dsl_emit(k, op, ssa_type(SSA_VOID, 0), cond ? 1 : 0, &cond);
}

/* A list of arguments for an edge, grown one by one. */
struct list {
	struct ssa_inst **v;
	uint32_t n, cap;
};

static void set_edge(struct dsl *k, struct ssa_inst *t, uint32_t e,
		     struct ssa_block *to, struct list *l)
{
	ssa_edge_set(k->f, &t->edge[e], to, l->n, l->v);
	free(l->v);
}

static struct dsl_flow *push_flow(struct dsl *k, struct dsl_at at,
				  enum dsl_flow_kind kind)
{
	if (k->depth == DSL_MAX_DEPTH) {
		dsl_fail(k, at, "more than %d nested IFs and loops",
			 DSL_MAX_DEPTH);
		return NULL;
	}
	struct dsl_flow *w = &k->flow[k->depth++];

	*w = (struct dsl_flow){ .kind = kind,
				.line = at.line,
				.region = k->region,
				.n_vars = k->n_vars,
				.at_start = save_vars(k) };
	return w;
}

/* The constructs of C call this before the body and behind it. */
bool dsl_body(struct dsl *k)
{
	const bool enter = !k->closed;

	k->closed = false;
	return enter;
}

/* -------------------------------------------------------------- IF, ELSE -- */

static void enter_side(struct dsl *k)
{
	k->region = (uint32_t)dsl_region_new(k);
	k->block = dsl_block_new(k);
}

void dsl_if(struct dsl *k, struct dsl_at at, struct val c)
{
	if (!dsl_go(k, at))
		return;
	c = dsl_typed(k, at, c, DSL_BOOL);
	if (k->err.code || !dsl_defined(k, at, &c, 1) ||
	    !dsl_want(k, at, &c, DSL_BOOL))
		return;
	if (c.n != 1) {
		dsl_fail(k, at, "IF of %u elements, wanted one", c.n);
		return;
	}
	struct dsl_flow *w = push_flow(k, at, DSL_IF);

	if (!w)
		return;
	w->branch = end_block(k, SSA_branch, c.e[0]);
	enter_side(k);
	w->branch->edge[0].to = k->block;
}

/* The parameters of merge m: what differs between its two ways, t's and u's. */
static void merge_vars(struct dsl *k, uint32_t n_vars, struct ssa_inst *t,
		       const struct dsl_slot *a, struct ssa_inst *u,
		       uint32_t u_edge, const struct dsl_slot *b,
		       struct ssa_block *m)
{
	struct list la = { 0 }, lb = { 0 };

	for (uint32_t j = 0; j < n_vars; j++) {
		if (!a[j].v.e || !b[j].v.e)
			continue;
		struct val v = a[j].v;

		k->var[j].v = v;
		if (a[j].v.e == b[j].v.e)
			continue;
		v.e = arena_alloc(k->f->arena, v.n * sizeof(*v.e));
		for (uint32_t x = 0; x < v.n; x++) {
			v.e[x] = a[j].v.e[x];
			if (v.e[x] == b[j].v.e[x])
				continue;
			v.e[x] = ssa_block_param(k->f, m, v.e[x]->type);
			v.e[x]->line = k->line;
			vec_push(&la, a[j].v.e[x]);
			vec_push(&lb, b[j].v.e[x]);
		}
		k->var[j].v = v;
	}
	set_edge(k, t, 0, m, &la);
	set_edge(k, u, u_edge, m, &lb);
}

/* Behind an IF whose false edge goes to the merge itself. */
static void end_if(struct dsl *k, struct dsl_flow *w)
{
	w->then_jump = end_block(k, SSA_jump, NULL);
	w->then_vars = save_vars(k);
	close_scope(k, w);
	k->block = dsl_block_new(k);
	w->branch->merge = k->block;
	merge_vars(k, w->n_vars, w->then_jump, w->then_vars, w->branch, 1,
		   w->at_start, k->block);
	k->last_if = *w;
	k->last_merge = k->block;
}

static void end_else(struct dsl *k, struct dsl_flow *w)
{
	struct ssa_inst *jump = end_block(k, SSA_jump, NULL);
	const struct dsl_slot *vars = save_vars(k);

	close_scope(k, w);
	k->block = dsl_block_new(k);
	w->branch->merge = k->block;
	merge_vars(k, w->n_vars, w->then_jump, w->then_vars, jump, 0, vars,
		   k->block);
	k->last_merge = NULL;
}

void dsl_endif(struct dsl *k)
{
	k->closed = true;
	if (k->err.code)
		return;
	struct dsl_flow w = k->flow[--k->depth];

	if (w.kind == DSL_IF)
		end_if(k, &w);
	else
		end_else(k, &w);
}

/* Opens the IF that just ended again: its merge is still empty. */
void dsl_else(struct dsl *k, struct dsl_at at)
{
	if (!dsl_go(k, at))
		return;
	if (!k->last_merge || k->last_merge != k->block || k->block->first) {
		dsl_fail(k, at, "ELSE does not follow an IF");
		return;
	}
	k->flow[k->depth] = k->last_if;
	struct dsl_flow *w = &k->flow[k->depth++];

	w->kind = DSL_ELSE;
	w->line = at.line;
	ssa_block_unlink(k->f, k->block);
	k->last_merge = NULL;
	restore_vars(k, w);
	enter_side(k);
	ssa_edge_set(k->f, &w->branch->edge[1], k->block, 0, NULL);
}

/* --------------------------------------------------------------- loops -- */

/* Every variable becomes a parameter of b; arguments for it go to `l`. */
static void take_vars(struct dsl *k, uint32_t n_vars, struct ssa_block *b,
		      struct list *l)
{
	for (uint32_t j = 0; j < n_vars; j++) {
		struct val v = k->var[j].v;

		if (!v.e)
			continue;
		v.e = arena_alloc(k->f->arena, v.n * sizeof(*v.e));
		for (uint32_t x = 0; x < v.n; x++) {
			vec_push(l, k->var[j].v.e[x]);
			v.e[x] = ssa_block_param(k->f, b,
						 k->var[j].v.e[x]->type);
			v.e[x]->line = k->line;
		}
		k->var[j].v = v;
	}
}

static void list_vars(struct dsl *k, uint32_t n_vars, struct list *l)
{
	for (uint32_t j = 0; j < n_vars; j++)
		for (uint32_t x = 0; k->var[j].v.e && x < k->var[j].v.n; x++)
			vec_push(l, k->var[j].v.e[x]);
}

/* Jumps to a new header; `i`, if there is one, is its first parameter. */
static void enter_loop(struct dsl *k, struct dsl_flow *w, struct ssa_inst *i)
{
	struct ssa_inst *t = end_block(k, SSA_jump, NULL);
	struct list l = { 0 };

	enter_side(k);
	w->head = k->block;
	if (i) {
		vec_push(&l, i);
		w->count = ssa_block_param(k->f, w->head, i->type);
		w->count->line = k->line;
	}
	take_vars(k, w->n_vars, w->head, &l);
	set_edge(k, t, 0, w->head, &l);
	/* Where the loop is left, variables are as at its header. */
	w->at_start = save_vars(k);
}

/* The header's end: into the body while `cond`; the exit is made later. */
static void branch_loop(struct dsl *k, struct dsl_flow *w,
			struct ssa_inst *cond)
{
	w->branch = end_block(k, SSA_branch, cond);
	k->block = dsl_block_new(k);
	ssa_edge_set(k->f, &w->branch->edge[0], k->block, 0, NULL);
}

static void leave_loop(struct dsl *k, struct dsl_flow *w, struct list *l)
{
	struct ssa_inst *t = end_block(k, SSA_jump, NULL);
	struct list out = { 0 };

	list_vars(k, w->n_vars, l);
	set_edge(k, t, 0, w->head, l);
	restore_vars(k, w);
	close_scope(k, w);
	k->block = dsl_block_new(k);
	take_vars(k, w->n_vars, k->block, &out);
	set_edge(k, w->branch, 1, k->block, &out);
}

struct val dsl_for(struct dsl *k, struct dsl_at at, struct val lo,
		   struct val hi, struct val step)
{
	struct val v[] = { lo, hi, step };

	if (!dsl_go(k, at) || !dsl_defined(k, at, v, 3))
		return (struct val){ 0 };
	enum dsl_type type = DSL_I32;

	for (int j = 2; j >= 0; j--)
		if (v[j].type != DSL_NUMBER)
			type = v[j].type;
	for (int j = 0; j < 3; j++) {
		v[j] = dsl_typed(k, at, v[j], type);
		if (k->err.code || !dsl_want(k, at, &v[j], type))
			return (struct val){ 0 };
		if (v[j].n != 1 || dsl_type_info[type].is_float) {
			dsl_fail(k, at, "type mismatch: FOR counts by one "
				 "integer, got %u x %s", v[j].n,
				 dsl_type_info[type].name);
			return (struct val){ 0 };
		}
	}
	struct dsl_flow *w = push_flow(k, at, DSL_FOR);

	if (!w)
		return (struct val){ 0 };
	w->step = v[2];
	enter_loop(k, w, v[0].e[0]);
	struct val i = dsl_val1(k, type, w->count);

	branch_loop(k, w, dsl_binary(at, DSL_LT, i, v[1]).e[0]);
	return i;
}

void dsl_endfor(struct dsl *k)
{
	struct list l = { 0 };

	k->closed = true;
	if (k->err.code)
		return;
	struct dsl_flow w = k->flow[--k->depth];
	struct ssa_inst *next = dsl_emit2(k, SSA_add, w.count->type, w.count,
					  w.step.e[0]);

	next->line = w.line;
	next->flags |= dsl_type_info[w.step.type].is_signed ? SSA_NSW : SSA_NUW;
	vec_push(&l, next);
	leave_loop(k, &w, &l);
}

void dsl_while(struct dsl *k, struct dsl_at at)
{
	if (!dsl_go(k, at))
		return;
	struct dsl_flow *w = push_flow(k, at, DSL_WHILE);

	if (w)
		enter_loop(k, w, NULL);
}

bool dsl_while_if(struct dsl *k, struct dsl_at at, struct val c)
{
	if (!dsl_go(k, at))
		return true;
	struct dsl_flow *w = &k->flow[k->depth - 1];

	c = dsl_typed(k, at, c, DSL_BOOL);
	if (k->err.code || !dsl_defined(k, at, &c, 1) ||
	    !dsl_want(k, at, &c, DSL_BOOL))
		return true;
	if (c.n != 1 || k->block != w->head)
		dsl_fail(k, at, "the condition of WHILE has %u elements or "
			 "control flow in it; keep it in a variable", c.n);
	else
		branch_loop(k, w, c.e[0]);
	return true;
}

void dsl_endwhile(struct dsl *k)
{
	struct list l = { 0 };

	k->closed = true;
	if (k->err.code)
		return;
	struct dsl_flow w = k->flow[--k->depth];

	leave_loop(k, &w, &l);
}
