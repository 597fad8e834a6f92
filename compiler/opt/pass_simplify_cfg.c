/*
 * compiler/opt/pass_simplify_cfg.c - simplification of the control flow.
 *
 * A branch on a constant becomes a jump, and a block with one predecessor that
 * jumps to it is appended to that.
 */
#include <string.h>

#include "compiler/opt/pass.h"

/* Without the edges, what is left is still well-formed (compiler/ssa/ssa.h): of an
 * IF, the merge has one way less; a loop that is left at once is none. */
static bool fold_branch(struct ssa_inst *t)
{
	if (t->op != SSA_branch || t->arg[0]->op != SSA_const)
		return false;
	const uint32_t way = t->arg[0]->imm ? 0 : 1;

	if (!t->merge) {
		const bool leaves = t->edge[way].to->loop_depth <
				    t->block->loop_depth;

		/* One that never ends stays; the latch's last trip, too. */
		if (!leaves || t->block != t->block->loop)
			return false;
	}
	t->edge[0] = t->edge[way];
	t->op = SSA_jump;
	t->n_args = 0;
	t->merge = NULL;
	return true;
}

/* Appends the only successor of b, which has no other predecessor. */
static bool append_successor(struct ssa_func *f, struct ssa_block *b)
{
	struct ssa_inst *t = b->last;
	struct ssa_block *c = t->edge[0].to;

	if (t->op != SSA_jump || c->n_preds != 1 || c == f->first || c == b)
		return false;
	for (uint32_t k = 0; k < c->n_params; k++)
		ssa_forward(c->param[k], t->edge[0].arg[k]);
	ssa_unlink(t);
	for (struct ssa_inst *i = c->first, *next; i; i = next) {
		next = i->next;
		ssa_append(b, i);
	}
	for (uint32_t k = 0; k < ssa_n_edges(b->last); k++) {
		struct ssa_block *to = b->last->edge[k].to;

		for (uint32_t p = 0; p < to->n_preds; p++)
			if (to->pred[p] == c)
				to->pred[p] = b;
	}
	c->n_params = 0;
	c->first = c->last = NULL;
	ssa_block_unlink(f, c);
	return true;
}

bool ssa_pass_simplify_cfg(struct ssa_func *f)
{
	bool any = false;

	for (struct ssa_block *b = f->first; b; b = b->next)
		any |= fold_branch(b->last);
	if (any)
		ssa_analyse(f);
	ssa_forward_init(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		while (append_successor(f, b))
			any = true;
	ssa_forward_all(f);
	return any;
}
