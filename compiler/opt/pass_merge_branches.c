/*
 * compiler/opt/pass_merge_branches.c - consecutive IFs of one condition.
 *
 *	if (c) A else B; M; if (c) C else D	->	if (c) { A; M; C }
 *							else { B; M; D }
 *
 * The code between them is copied into both sides, so it must be small and must
 * not talk to other lanes, which would be absent there.  A kernel that handles
 * whole vectors except at its tail gets one path without branches.
 */
#include <stdlib.h>

#include "compiler/opt/pass.h"

enum { MAX_BETWEEN = 256, MAX_MERGED = 16 };

struct branch_pair {
	struct ssa_func *f;
	struct ssa_inst *first, *second; /* the two branches */
	struct ssa_block *between, *merge;
	struct ssa_clone side[2];
	struct ssa_block *copy[2];
	struct ssa_inst **behind; /* by id: what stands for it in the merge */
};

static bool may_copy(const struct ssa_block *b)
{
	uint32_t n = 0;

	for (const struct ssa_inst *i = b->first; i; i = i->next) {
		const uint16_t flags = ssa_op_info(i->op)->flags;

		if (flags & SSA_OP_CROSSES || i->op == SSA_printf ||
		    ++n > MAX_BETWEEN)
			return false;
	}
	return true;
}

static bool find_pair(struct ssa_func *f, struct ssa_block *b,
		      struct branch_pair *t)
{
	struct ssa_inst *first = b->last;

	if (first->op != SSA_branch || !first->merge)
		return false;
	struct ssa_inst *second = first->merge->last;

	*t = (struct branch_pair){ .f = f,
				   .first = first,
				   .second = second,
				   .between = first->merge,
				   .merge = second->merge };
	return second->op == SSA_branch && second->merge &&
	       second->arg[0] == first->arg[0] && may_copy(t->between);
}

/* The edge into the block between on side k. */
static struct ssa_edge *edge_of_side(const struct branch_pair *t, uint32_t k)
{
	struct ssa_inst *direct = t->first;

	if (direct->edge[k].to == t->between)
		return &direct->edge[k];
	for (uint32_t p = 0; p < 2; p++) {
		struct ssa_inst *end = t->between->pred[p]->last;

		if (end != direct &&
		    ssa_dominates(direct->edge[k].to, end->block))
			return &end->edge[0];
	}
	BUG("b%u is not reached from side %u", t->between->id, k);
}

/* A copy of what is between for side k, from there into the second branch. */
static void copy_side(struct branch_pair *t, uint32_t k)
{
	struct ssa_edge *in = edge_of_side(t, k);
	const struct ssa_edge *out = &t->second->edge[k];
	struct ssa_clone *c = &t->side[k];
	struct ssa_block *b = ssa_block_new(t->f);

	for (uint32_t p = 0; p < in->n_args; p++)
		ssa_clone_set(c, t->between->param[p], in->arg[p]);
	ssa_clone_insts(c, t->between->first, t->second, b);
	struct ssa_inst *jump =
		ssa_jump_to(t->f, b, out->to, out->n_args, out->arg);

	jump->line = t->second->line;
	for (uint32_t p = 0; p < out->n_args; p++)
		jump->edge[0].arg[p] = ssa_cloned(c, out->arg[p]);
	ssa_edge_set(t->f, in, b, 0, NULL);
	t->copy[k] = b;
}

static struct ssa_inst *behind_merge(struct branch_pair *t, struct ssa_inst *v)
{
	struct ssa_inst **p = &t->behind[v->id];

	if (*p)
		return *p;
	*p = ssa_block_param(t->f, t->merge, v->type);
	(*p)->line = v->line;
	for (uint32_t k = 0; k < 2; k++) {
		struct ssa_inst *end = t->merge->pred[k]->last;
		const uint32_t side = ssa_dominates(t->copy[0], end->block) ?
					      0 : 1;
		struct ssa_edge *e = &end->edge[end->edge[0].to == t->merge ?
							0 : 1];

		ssa_edge_add(t->f, e, ssa_cloned(&t->side[side], v));
	}
	return *p;
}

/* Operands in block b that were made between. */
static void rewrite_uses(struct branch_pair *t, const struct ssa_block *b,
			 struct ssa_inst **arg, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (arg[k]->block != t->between)
			continue;
		if (ssa_dominates(t->copy[0], b))
			arg[k] = ssa_cloned(&t->side[0], arg[k]);
		else if (ssa_dominates(t->copy[1], b))
			arg[k] = ssa_cloned(&t->side[1], arg[k]);
		else
			arg[k] = behind_merge(t, arg[k]);
	}
}

static void rewrite_all(struct branch_pair *t)
{
	for (struct ssa_block *b = t->f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			rewrite_uses(t, b, i->arg, i->n_args);
			for (uint32_t e = 0; e < ssa_n_edges(i); e++)
				rewrite_uses(t, b, i->edge[e].arg,
					     i->edge[e].n_args);
		}
}

static bool merge_pair(struct ssa_func *f, struct ssa_block *b)
{
	struct branch_pair t;

	if (!find_pair(f, b, &t))
		return false;
	ssa_clone_init(&t.side[0], f);
	ssa_clone_init(&t.side[1], f);
	t.behind = xcalloc(f->n_insts, sizeof(*t.behind));
	copy_side(&t, 0);
	copy_side(&t, 1);
	t.first->merge = t.merge;
	ssa_analyse(f);
	rewrite_all(&t);
	ssa_clone_fini(&t.side[0]);
	ssa_clone_fini(&t.side[1]);
	free(t.behind);
	return true;
}

bool ssa_pass_merge_branches(struct ssa_func *f)
{
	uint32_t n = 0;

	for (struct ssa_block *b = f->first; b; b = b->next)
		while (n < MAX_MERGED && merge_pair(f, b))
			n++;
	return n > 0;
}
