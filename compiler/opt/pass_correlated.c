/*
 * compiler/opt/pass_correlated.c - correlated value propagation.
 *
 * Blocks dominated by one edge of a branch know its condition.
 */
#include "compiler/opt/pass.h"

/*
 * 1 or 0 if condition c is so in block b and all that it dominates because of
 * the edge into b; -1 otherwise.
 */
static int edge_says(const struct ssa_block *b, const struct ssa_inst *c)
{
	if (b->n_preds != 1)
		return -1;
	const struct ssa_inst *t = b->pred[0]->last;

	if (t->op != SSA_branch || t->arg[0] != c)
		return -1;
	return t->edge[0].to == b;
}

static int known_condition(const struct ssa_block *b, const struct ssa_inst *c)
{
	for (; b; b = b->idom) {
		const int says = edge_says(b, c);

		if (says >= 0)
			return says;
		if (b == c->block) /* above, nothing knows it yet */
			return -1;
	}
	return -1;
}

static bool replace_conditions(struct ssa_func *f, const struct ssa_block *b,
			       struct ssa_inst **arg, uint32_t n)
{
	bool any = false;

	for (uint32_t k = 0; k < n; k++) {
		if (arg[k]->type.kind != SSA_I1 || arg[k]->op == SSA_const)
			continue;
		const int says = known_condition(b, arg[k]);

		if (says < 0)
			continue;
		arg[k] = ssa_entry_const(f, arg[k]->type, (uint64_t)says);
		any = true;
	}
	return any;
}

bool ssa_pass_correlated(struct ssa_func *f)
{
	bool any = false;

	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			any |= replace_conditions(f, b, i->arg, i->n_args);
			for (uint32_t e = 0; e < ssa_n_edges(i); e++)
				any |= replace_conditions(f, b, i->edge[e].arg,
							  i->edge[e].n_args);
		}
	return any;
}
