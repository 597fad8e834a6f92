/*
 * compiler/opt/pass_ifconv.c - if-conversion.
 *
 * An IF whose sides are a few pure operations computes both and selects, which
 * is cheaper than changing the mask of lanes.
 */
#include "compiler/opt/pass.h"

enum { MAX_COST = 6 };

/* Of both sides together; a large number for what must not be speculated. */
static uint32_t cost_of(const struct ssa_block *b)
{
	uint32_t cost = 0;

	for (const struct ssa_inst *i = b->first; i != b->last; i = i->next) {
		if (!(ssa_op_info(i->op)->flags & SSA_OP_PURE))
			return MAX_COST + 1;
		if ((i->op >= SSA_div_u && i->op <= SSA_rem_s) ||
		    (i->op >= SSA_fsqrt && i->op <= SSA_fcos_turns) ||
		    i->op == SSA_fdiv)
			cost += MAX_COST;
		cost++;
	}
	return cost;
}

/* Is it a side of the branch that only leads to the merge? */
static bool is_side(const struct ssa_block *b, const struct ssa_block *merge)
{
	return b->last->op == SSA_jump && b->last->edge[0].to == merge &&
	       b->n_preds == 1 && !b->n_params;
}

/* The arguments for the merge on side k; NULL if it is not simple. */
static struct ssa_edge *edge_to_merge(struct ssa_inst *t, uint32_t k)
{
	struct ssa_block *b = t->edge[k].to;

	if (b == t->merge)
		return &t->edge[k];
	return is_side(b, t->merge) ? &b->last->edge[0] : NULL;
}

static void move_up(struct ssa_inst *t, struct ssa_block *side)
{
	for (struct ssa_inst *i = side->first, *next; i != side->last;
	     i = next) {
		next = i->next;
		ssa_unlink(i);
		ssa_insert_before(t, i);
	}
}

static bool convert_branch(struct ssa_func *f, struct ssa_inst *t)
{
	struct ssa_inst *arg[SSA_MAX_LANES * 4];
	uint32_t cost = 0;

	if (t->op != SSA_branch || !t->merge)
		return false;
	struct ssa_edge *yes = edge_to_merge(t, 0), *no = edge_to_merge(t, 1);

	if (!yes || !no || yes->n_args > MAX_COST)
		return false;
	for (uint32_t k = 0; k < 2; k++)
		if (t->edge[k].to != t->merge)
			cost += cost_of(t->edge[k].to);
	for (uint32_t k = 0; k < yes->n_args; k++)
		cost += yes->arg[k] != no->arg[k];
	if (cost > MAX_COST)
		return false;
	for (uint32_t k = 0; k < 2; k++)
		if (t->edge[k].to != t->merge)
			move_up(t, t->edge[k].to);
	for (uint32_t k = 0; k < yes->n_args; k++) {
		struct ssa_inst *const v[] = { t->arg[0], yes->arg[k],
					       no->arg[k] };

		arg[k] = ssa_inst_new(f, SSA_select, v[1]->type, 3, v);
		arg[k]->line = t->line;
		ssa_insert_before(t, arg[k]);
	}
	t->op = SSA_jump;
	t->n_args = 0;
	ssa_edge_set(f, &t->edge[0], t->merge, yes->n_args, arg);
	t->merge = NULL;
	return true;
}

bool ssa_pass_ifconv(struct ssa_func *f)
{
	bool any = false;

	/* Inner ones stand later; an outer one can follow. */
	for (struct ssa_block *b = f->last; b; b = b->prev)
		any |= convert_branch(f, b->last);
	if (any)
		ssa_analyse(f);
	return any;
}
