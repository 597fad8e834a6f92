/*
 * compiler/opt/pass_util.c - what the passes share.
 */
#include <string.h>

#include "compiler/opt/pass.h"

void ssa_forward_init(struct ssa_func *f)
{
	for (struct ssa_block *b = f->first; b; b = b->next) {
		for (uint32_t k = 0; k < b->n_params; k++)
			b->param[k]->tmp.ptr = NULL;
		for (struct ssa_inst *i = b->first; i; i = i->next)
			i->tmp.ptr = NULL;
	}
}

void ssa_forward(struct ssa_inst *from, struct ssa_inst *to)
{
	from->tmp.ptr = to;
}

struct ssa_inst *ssa_forwarded(struct ssa_inst *i)
{
	while (i->tmp.ptr)
		i = i->tmp.ptr;
	return i;
}

static void rewrite_forwarded(struct ssa_inst **arg, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		arg[k] = ssa_forwarded(arg[k]);
}

bool ssa_forward_all(struct ssa_func *f)
{
	bool any = false;

	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			rewrite_forwarded(i->arg, i->n_args);
			for (uint32_t k = 0; k < ssa_n_edges(i); k++)
				rewrite_forwarded(i->edge[k].arg,
						  i->edge[k].n_args);
		}
	for (struct ssa_block *b = f->first; b; b = b->next) {
		for (uint32_t k = b->n_params; k-- > 0;)
			if (b->param[k]->tmp.ptr) {
				ssa_param_remove(b, k);
				any = true;
			}
		for (struct ssa_inst *i = b->first, *next; i; i = next) {
			next = i->next;
			if (i->tmp.ptr) {
				ssa_unlink(i);
				any = true;
			}
		}
	}
	return any;
}

struct ssa_inst *ssa_emit2(struct ssa_func *f, struct ssa_inst *at,
			   enum ssa_op op, struct ssa_inst *a,
			   struct ssa_inst *b)
{
	struct ssa_inst *const arg[] = { a, b };
	struct ssa_inst *i = ssa_inst_new(f, op, a->type, 2, arg);

	i->line = at->line;
	ssa_insert_before(at, i);
	return i;
}

struct ssa_block *ssa_preheader(const struct ssa_block *head)
{
	for (uint32_t k = 0; k < head->n_preds; k++)
		if (!ssa_loop_has(head, head->pred[k]) &&
		    head->pred[k]->last->op == SSA_jump)
			return head->pred[k];
	return NULL;
}

struct ssa_inst *ssa_entry_const(struct ssa_func *f, struct ssa_type t,
				 uint64_t bits)
{
	struct ssa_inst *c = ssa_const(f, t, bits);

	ssa_insert_before(f->first->first, c);
	return c;
}

bool ssa_removable(const struct ssa_inst *i)
{
	const uint16_t flags = ssa_op_info(i->op)->flags;

	if (i->op == SSA_store) { /* one that is masked off for good */
		const struct ssa_inst *mask = ssa_place(i).mask;

		return mask && mask->op == SSA_const && !mask->imm;
	}
	return !(flags & (SSA_OP_WRITES | SSA_OP_ENDS)) &&
	       !(i->flags & SSA_VOLATILE) && i->op != SSA_assume;
}

static void drop_element(struct ssa_inst **v, uint32_t n, uint32_t k)
{
	memmove(v + k, v + k + 1, (n - k - 1) * sizeof(*v));
}

void ssa_param_remove(struct ssa_block *b, uint32_t k)
{
	for (uint32_t p = 0; p < b->n_preds; p++) {
		struct ssa_inst *t = b->pred[p]->last;

		for (uint32_t e = 0; e < ssa_n_edges(t); e++)
			if (t->edge[e].to == b)
				drop_element(t->edge[e].arg,
					     t->edge[e].n_args--, k);
	}
	drop_element(b->param, b->n_params--, k);
}
