/*
 * compiler/opt/pass_strength.c - strength reduction.
 *
 * A product of a loop's counter and a value from outside becomes a parameter
 * that the latch adds to.
 *
 * For a parameter i with i' = i + step and a product i * m, m and step from
 * outside: p = init * m before the loop, p' = p + step * m.  Modulo 2^n both
 * are the same without conditions.
 */
#include <stdlib.h>

#include "compiler/opt/pass.h"

enum { MAX_NEW = 4 }; /* parameters for each loop: they cost registers */

struct loop {
	struct ssa_func *f;
	struct ssa_block *head, *before, *latch;
	uint32_t made;
};

static struct ssa_edge *edge_into(struct ssa_block *from,
				  const struct ssa_block *to)
{
	struct ssa_inst *t = from->last;

	return &t->edge[t->edge[0].to == to ? 0 : 1];
}

static bool is_outside(const struct loop *l, const struct ssa_inst *i)
{
	return !ssa_loop_has(l->head, i->block);
}

/* The step of parameter k, if it is an addition of a value from outside. */
static struct ssa_inst *step_of(const struct loop *l, uint32_t k)
{
	struct ssa_inst *p = l->head->param[k];
	struct ssa_inst *next = edge_into(l->latch, l->head)->arg[k];

	if (next->op != SSA_add)
		return NULL;
	struct ssa_inst *step = next->arg[next->arg[0] == p ? 1 : 0];

	if ((next->arg[0] != p && next->arg[1] != p) || !is_outside(l, step))
		return NULL;
	return step;
}

static bool reduce_product(struct loop *l, struct ssa_inst *mul)
{
	for (uint32_t k = 0; k < l->head->n_params; k++) {
		struct ssa_inst *i = l->head->param[k];
		const uint32_t side = mul->arg[0] == i ? 0 : 1;
		struct ssa_inst *m = mul->arg[!side];
		struct ssa_inst *step;

		if (mul->arg[side] != i || !is_outside(l, m) ||
		    !(step = step_of(l, k)))
			continue;
		struct ssa_inst *at = l->before->last;
		struct ssa_inst *init = edge_into(l->before, l->head)->arg[k];
		struct ssa_inst *from = ssa_emit2(l->f, at, SSA_mul, init, m);
		struct ssa_inst *by = ssa_emit2(l->f, at, SSA_mul, step, m);
		struct ssa_inst *p = ssa_block_param(l->f, l->head, mul->type);
		struct ssa_inst *next = ssa_emit2(l->f, l->latch->last, SSA_add,
						  p, by);

		p->line = mul->line;
		ssa_edge_add(l->f, edge_into(l->before, l->head), from);
		ssa_edge_add(l->f, edge_into(l->latch, l->head), next);
		ssa_forward(mul, p);
		l->made++;
		return true;
	}
	return false;
}

static bool reduce_loop(struct ssa_func *f, struct ssa_block *head)
{
	struct loop l = { .f = f, .head = head, .before = ssa_preheader(head) };
	bool any = false;

	if (!l.before || head->n_preds != 2)
		return false;
	l.latch = head->pred[head->pred[0] == l.before];
	for (struct ssa_block *b = head; b && ssa_loop_has(head, b);
	     b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (i->op == SSA_mul && i->type.n == 1 &&
			    !i->tmp.ptr && l.made < MAX_NEW)
				any |= reduce_product(&l, i);
	return any;
}

bool ssa_pass_strength(struct ssa_func *f)
{
	bool any = false;

	ssa_forward_init(f);
	for (struct ssa_block *b = f->last; b; b = b->prev)
		if (b->loop == b)
			any |= reduce_loop(f, b);
	ssa_forward_all(f);
	return any;
}
