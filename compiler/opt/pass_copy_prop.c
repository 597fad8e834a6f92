/*
 * compiler/opt/pass_copy_prop.c - copy propagation.
 *
 * A parameter that receives the same value on every edge, apart from itself
 * around a loop, is that value.  A parameter that carries a value out of a loop
 * stays: such values must pass one (compiler/ssa/ssa.h).
 */
#include "compiler/opt/pass.h"

static struct ssa_inst *common_incoming(const struct ssa_block *b, uint32_t k)
{
	struct ssa_inst *param = b->param[k], *same = NULL;

	for (uint32_t p = 0; p < b->n_preds; p++) {
		const struct ssa_inst *t = b->pred[p]->last;

		for (uint32_t e = 0; e < ssa_n_edges(t); e++) {
			if (t->edge[e].to != b)
				continue;
			struct ssa_inst *v = ssa_forwarded(t->edge[e].arg[k]);

			if (v == param || v == same)
				continue;
			if (same)
				return NULL;
			same = v;
		}
	}
	return same;
}

static bool stays_closed(const struct ssa_block *b, const struct ssa_inst *v)
{
	return !v->block->loop || ssa_loop_has(v->block->loop, b);
}

bool ssa_pass_copy_prop(struct ssa_func *f)
{
	bool again = true;

	ssa_forward_init(f);
	while (again) {
		again = false;
		for (struct ssa_block *b = f->first; b; b = b->next)
			for (uint32_t k = 0; k < b->n_params; k++) {
				struct ssa_inst *v;

				if (b->param[k]->tmp.ptr)
					continue;
				v = common_incoming(b, k);
				if (!v || !stays_closed(b, v))
					continue;
				ssa_forward(b->param[k], v);
				again = true;
			}
	}
	return ssa_forward_all(f);
}
