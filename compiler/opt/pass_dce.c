/*
 * compiler/opt/pass_dce.c - dead code elimination.
 *
 * Values that nothing needs are deleted, among them parameters that only feed
 * themselves around a loop.
 */
#include <stdlib.h>

#include "compiler/opt/pass.h"

/* Marked values whose operands are still to be marked. */
struct work {
	struct ssa_inst **v; /* [n_insts] */
	uint32_t n;
};

static void mark_needed(struct work *w, struct ssa_inst *i)
{
	if (i->tmp.num)
		return;
	i->tmp.num = 1;
	w->v[w->n++] = i;
}

/* What every predecessor passes for a parameter that is needed. */
static void mark_incoming(struct work *w, const struct ssa_inst *param)
{
	const struct ssa_block *b = param->block;
	uint32_t k = 0;

	while (b->param[k] != param)
		k++;
	for (uint32_t p = 0; p < b->n_preds; p++) {
		const struct ssa_inst *t = b->pred[p]->last;

		for (uint32_t e = 0; e < ssa_n_edges(t); e++)
			if (t->edge[e].to == b)
				mark_needed(w, t->edge[e].arg[k]);
	}
}

static void mark_all(struct work *w, struct ssa_func *f)
{
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (!ssa_removable(i))
				mark_needed(w, i);
	while (w->n) {
		struct ssa_inst *i = w->v[--w->n];

		for (uint32_t k = 0; k < i->n_args; k++)
			mark_needed(w, i->arg[k]);
		if (i->op == SSA_param)
			mark_incoming(w, i);
	}
}

bool ssa_pass_dce(struct ssa_func *f)
{
	struct work w = { xcalloc(f->n_insts, sizeof(*w.v)), 0 };
	bool changed = false;

	ssa_forward_init(f); /* tmp.num is 0 */
	mark_all(&w, f);
	free(w.v);
	for (struct ssa_block *b = f->first; b; b = b->next) {
		for (uint32_t k = b->n_params; k-- > 0;)
			if (!b->param[k]->tmp.num) {
				ssa_param_remove(b, k);
				changed = true;
			}
		for (struct ssa_inst *i = b->first, *next; i; i = next) {
			next = i->next;
			if (!i->tmp.num) {
				ssa_unlink(i);
				changed = true;
			}
		}
	}
	return changed;
}
