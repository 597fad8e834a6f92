/*
 * compiler/opt/pass_fma.c - fused multiply-add.
 *
 * A product that only a sum uses is fused with it, where both allow it
 * (SSA_CONTRACT).
 */
#include "compiler/opt/pass.h"

/* tmp.num counts uses. */
static void count_uses(struct ssa_func *f)
{
	ssa_forward_init(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			for (uint32_t k = 0; k < i->n_args; k++)
				i->arg[k]->tmp.num++;
			for (uint32_t e = 0; e < ssa_n_edges(i); e++)
				for (uint32_t k = 0; k < i->edge[e].n_args; k++)
					i->edge[e].arg[k]->tmp.num++;
		}
}

static bool is_product(const struct ssa_inst *p, const struct ssa_inst *sum)
{
	return p->op == SSA_fmul && p->tmp.num == 1 &&
	       p->flags & SSA_CONTRACT && p->block->loop == sum->block->loop;
}

static struct ssa_inst *emit_neg(struct ssa_func *f, struct ssa_inst *at,
				 struct ssa_inst *x)
{
	struct ssa_inst *n = ssa_inst_new(f, SSA_fneg, x->type, 1, &x);

	n->line = at->line;
	ssa_insert_before(at, n);
	return n;
}

static bool fuse_product(struct ssa_func *f, struct ssa_inst *i)
{
	if ((i->op != SSA_fadd && i->op != SSA_fsub) ||
	    !(i->flags & SSA_CONTRACT))
		return false;
	const bool minus = i->op == SSA_fsub;
	const int k = is_product(i->arg[0], i) ? 0 : 1;

	if (!is_product(i->arg[k], i))
		return false;
	struct ssa_inst *p = i->arg[k], *c = i->arg[!k];
	struct ssa_inst *a = p->arg[0];

	/* a b - c = fma(a, b, -c); c - a b = fma(-a, b, c) */
	if (minus && k == 0)
		c = emit_neg(f, i, c);
	else if (minus)
		a = emit_neg(f, i, a);
	struct ssa_inst *const arg[] = { a, p->arg[1], c };

	i->op = SSA_fma;
	i->n_args = 3;
	i->arg = ssa_args_copy(f, 3, arg);
	p->tmp.num = 0; /* dce takes it */
	return true;
}

bool ssa_pass_fma(struct ssa_func *f)
{
	bool any = false;

	count_uses(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			any |= fuse_product(f, i);
	return any;
}
