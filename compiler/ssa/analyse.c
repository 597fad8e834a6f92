/*
 * compiler/ssa/analyse.c - predecessors, dominators, loops, uniform values.
 *
 * Dominators as in Cooper, Harvey and Kennedy: "A simple, fast dominance
 * algorithm".
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/ssa/ssa.h"

enum { UNSEEN = UINT32_MAX, OPEN = UINT32_MAX - 1 };

/* --------------------------------------------------------------- order -- */

struct order {
	struct ssa_block **block; /* [n], filled from the end */
	uint32_t at;
};

/* An exit block is no header (ssa.h), so its depth tells. */
static bool edge_leaves(const struct ssa_inst *t, const struct ssa_edge *e)
{
	return e->to->loop_depth < t->block->loop_depth;
}

/*
 * The successor of a terminator that is walked as number k.  What is walked
 * first ends up last: what leaves a loop, else the second side of a branch.
 */
static struct ssa_block *nth_successor(const struct ssa_inst *t, uint32_t k)
{
	if (t->op == SSA_branch && !edge_leaves(t, &t->edge[0]))
		k = !k;
	return t->edge[k].to;
}

static void visit_postorder(struct order *o, struct ssa_block *b)
{
	b->rpo = OPEN;
	for (uint32_t k = 0; k < ssa_n_edges(b->last); k++) {
		struct ssa_block *to = nth_successor(b->last, k);

		if (to->rpo == UNSEEN)
			visit_postorder(o, to);
	}
	o->block[--o->at] = b;
}

static void set_layout(struct ssa_func *f, struct ssa_block **block, uint32_t n)
{
	f->first = f->last = NULL;
	for (uint32_t k = 0; k < n; k++) {
		struct ssa_block *b = block[k];

		b->rpo = k;
		b->prev = f->last;
		b->next = NULL;
		*(f->last ? &f->last->next : &f->first) = b;
		f->last = b;
	}
}

/* Puts the reachable blocks in reverse postorder and forgets the others. */
static void order_blocks(struct ssa_func *f)
{
	struct order o = { NULL, 0 };
	uint32_t n = 0;

	for (struct ssa_block *b = f->first; b; b = b->next) {
		b->rpo = UNSEEN;
		n++;
	}
	o.block = xcalloc(n, sizeof(*o.block));
	o.at = n;
	visit_postorder(&o, f->first);
	set_layout(f, o.block + o.at, n - o.at);
	free(o.block);
}

static void find_preds(struct ssa_func *f)
{
	for (struct ssa_block *b = f->first; b; b = b->next)
		b->n_preds = 0;
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (uint32_t k = 0; k < ssa_n_edges(b->last); k++)
			b->last->edge[k].to->n_preds++;
	for (struct ssa_block *b = f->first; b; b = b->next) {
		b->pred = arena_alloc(f->arena,
				      b->n_preds * sizeof(*b->pred));
		b->n_preds = 0;
	}
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (uint32_t k = 0; k < ssa_n_edges(b->last); k++) {
			struct ssa_block *to = b->last->edge[k].to;

			to->pred[to->n_preds++] = b;
		}
}

/* ---------------------------------------------------------- dominators -- */

static struct ssa_block *intersect_dominators(struct ssa_block *a,
					      struct ssa_block *b)
{
	while (a != b) {
		while (a->rpo > b->rpo)
			a = a->idom;
		while (b->rpo > a->rpo)
			b = b->idom;
	}
	return a;
}

static struct ssa_block *meet_preds(const struct ssa_block *b)
{
	struct ssa_block *dom = NULL;

	for (uint32_t k = 0; k < b->n_preds; k++)
		if (b->pred[k]->idom)
			dom = dom ? intersect_dominators(dom, b->pred[k]) :
				    b->pred[k];
	return dom;
}

static void find_dominators(struct ssa_func *f)
{
	bool changed = true;

	for (struct ssa_block *b = f->first; b; b = b->next)
		b->idom = NULL;
	f->first->idom = f->first; /* while working, to stop at */
	while (changed) {
		changed = false;
		for (struct ssa_block *b = f->first->next; b; b = b->next) {
			struct ssa_block *dom = meet_preds(b);

			changed |= dom != b->idom;
			b->idom = dom;
		}
	}
	f->first->idom = NULL;
}

bool ssa_dominates(const struct ssa_block *a, const struct ssa_block *b)
{
	while (b && b->rpo > a->rpo)
		b = b->idom;
	return a == b;
}

/* --------------------------------------------------------------- loops -- */

bool ssa_loop_has(const struct ssa_block *head, const struct ssa_block *b)
{
	for (const struct ssa_block *l = b->loop; l; l = l->idom->loop)
		if (l == head)
			return true;
	return false;
}

/* Marks what reaches `b` inside the loop of `head` as a part of it. */
static void mark_loop(struct ssa_block *head, struct ssa_block *b)
{
	if (b->tmp.ptr == head)
		return;
	b->tmp.ptr = head;
	b->loop = head;
	b->loop_depth++;
	if (b == head)
		return;
	for (uint32_t k = 0; k < b->n_preds; k++)
		mark_loop(head, b->pred[k]);
}

/* Outer loops have earlier headers, so that inner ones overwrite them. */
static void find_loops(struct ssa_func *f)
{
	for (struct ssa_block *b = f->first; b; b = b->next) {
		b->loop = NULL;
		b->loop_depth = 0;
		b->tmp.ptr = NULL;
	}
	for (struct ssa_block *head = f->first; head; head = head->next)
		for (uint32_t k = 0; k < head->n_preds; k++)
			if (ssa_dominates(head, head->pred[k]))
				mark_loop(head, head->pred[k]);
}

void ssa_analyse(struct ssa_func *f)
{
	for (struct ssa_block *b = f->first; b; b = b->next) {
		b->loop = NULL;
		b->loop_depth = 0;
	}
	order_blocks(f);
	find_preds(f);
	find_dominators(f);
	find_loops(f);
	/* Again, now that it is known which edges leave loops. */
	order_blocks(f);
}

/* ---------------------------------------------------------- uniformity -- */

/* Is the result the same in all lanes if the operands are? */
static bool follows_operands(const struct ssa_inst *i)
{
	const struct ssa_op_info *info = ssa_op_info(i->op);

	return info->flags & SSA_OP_PURE ||
	       (i->op == SSA_load && !(i->flags & SSA_VOLATILE)) ||
	       i->op == SSA_branch;
}

static bool same_by_nature(const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_read_first:
	case SSA_read_lane:
	case SSA_ballot:
	case SSA_reduce:
	case SSA_group_reduce:
	case SSA_clock:
		return true;
	default:
		return ssa_op_info(i->op)->flags & SSA_OP_SAME;
	}
}

static bool all_uniform(struct ssa_inst *const *arg, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!(arg[k]->flags & SSA_UNIFORM))
			return false;
	return true;
}

static bool inst_uniform(const struct ssa_inst *i)
{
	if (same_by_nature(i))
		return true;
	if (i->op == SSA_local_id || i->op == SSA_lane)
		return false;
	if (i->op == SSA_shuffle || i->op == SSA_shuffle_xor)
		return i->arg[0]->flags & SSA_UNIFORM;
	return follows_operands(i) && all_uniform(i->arg, i->n_args);
}

static void mark_divergent(struct ssa_inst *i, bool *changed)
{
	if (i->flags & SSA_UNIFORM) {
		i->flags &= (uint16_t)~SSA_UNIFORM;
		*changed = true;
	}
}

/*
 * Lanes come to a merge from both sides of its branch, and to the block behind
 * a loop from different iterations; a header's lanes are all in one iteration.
 */
static bool edges_diverge(const struct ssa_inst *t)
{
	return t->op == SSA_branch && !(t->flags & SSA_UNIFORM);
}

static void diverge_params(struct ssa_block *b, bool *changed)
{
	for (uint32_t k = 0; k < b->n_params; k++)
		mark_divergent(b->param[k], changed);
}

static void step_edges(struct ssa_inst *t, bool *changed)
{
	for (uint32_t k = 0; k < ssa_n_edges(t); k++) {
		const struct ssa_edge *e = &t->edge[k];

		for (uint32_t p = 0; p < e->n_args; p++)
			if (!(e->arg[p]->flags & SSA_UNIFORM))
				mark_divergent(e->to->param[p], changed);
		/* Behind the loop; the merge is done below. */
		if (edges_diverge(t) && edge_leaves(t, e))
			diverge_params(e->to, changed);
	}
	if (edges_diverge(t) && t->merge)
		diverge_params(t->merge, changed);
}

void ssa_uniform(struct ssa_func *f)
{
	bool changed = true;

	for (struct ssa_block *b = f->first; b; b = b->next) {
		for (uint32_t k = 0; k < b->n_params; k++)
			b->param[k]->flags |= SSA_UNIFORM;
		for (struct ssa_inst *i = b->first; i; i = i->next)
			i->flags |= SSA_UNIFORM;
	}
	while (changed) {
		changed = false;
		for (struct ssa_block *b = f->first; b; b = b->next) {
			for (struct ssa_inst *i = b->first; i; i = i->next)
				if (!inst_uniform(i))
					mark_divergent(i, &changed);
			step_edges(b->last, &changed);
		}
	}
}
