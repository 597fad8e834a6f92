/*
 * compiler/ssa/clone.c - copies of parts of a function.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/ssa/ssa.h"

void ssa_clone_init(struct ssa_clone *c, struct ssa_func *f)
{
	*c = (struct ssa_clone){ .f = f, .n_values = f->n_insts,
				 .n_blocks = f->n_blocks };
	c->value = xcalloc(c->n_values + 1, sizeof(*c->value));
	c->block = xcalloc(c->n_blocks + 1, sizeof(*c->block));
}

void ssa_clone_fini(struct ssa_clone *c)
{
	free(c->value);
	free(c->block);
}

void ssa_clone_set(struct ssa_clone *c, const struct ssa_inst *from,
		   struct ssa_inst *to)
{
	c->value[from->id] = to;
}

struct ssa_inst *ssa_cloned(const struct ssa_clone *c, struct ssa_inst *i)
{
	return i->id < c->n_values && c->value[i->id] ? c->value[i->id] : i;
}

static struct ssa_block *block_of(const struct ssa_clone *c,
				  struct ssa_block *b)
{
	return b && b->id < c->n_blocks && c->block[b->id] ? c->block[b->id] :
							      b;
}

void ssa_clone_reset(struct ssa_clone *c)
{
	memset(c->value, 0, c->n_values * sizeof(*c->value));
	memset(c->block, 0, c->n_blocks * sizeof(*c->block));
}

struct ssa_block *ssa_clone_block(struct ssa_clone *c,
				  const struct ssa_block *b)
{
	struct ssa_block *to = ssa_block_new(c->f);

	c->block[b->id] = to;
	for (uint32_t k = 0; k < b->n_params; k++) {
		struct ssa_inst *p = ssa_block_param(c->f, to,
						     b->param[k]->type);

		p->line = b->param[k]->line;
		ssa_clone_set(c, b->param[k], p);
	}
	return to;
}

static void clone_edge(struct ssa_clone *c, struct ssa_edge *to,
		       const struct ssa_edge *from)
{
	ssa_edge_set(c->f, to, block_of(c, from->to), from->n_args, from->arg);
	for (uint32_t k = 0; k < to->n_args; k++)
		to->arg[k] = ssa_cloned(c, to->arg[k]);
}

void ssa_clone_insts(struct ssa_clone *c, struct ssa_inst *from,
		     const struct ssa_inst *to, struct ssa_block *at)
{
	for (struct ssa_inst *i = from; i != to; i = i->next) {
		struct ssa_inst *n = ssa_inst_new(c->f, i->op, i->type,
						  i->n_args, i->arg);

		n->sub = i->sub;
		n->align = i->align;
		n->flags = i->flags;
		n->line = i->line;
		n->off = i->off;
		n->imm = i->imm;
		n->merge = block_of(c, i->merge);
		for (uint32_t k = 0; k < n->n_args; k++)
			n->arg[k] = ssa_cloned(c, n->arg[k]);
		for (uint32_t k = 0; k < ssa_n_edges(i); k++)
			clone_edge(c, &n->edge[k], &i->edge[k]);
		ssa_append(at, n);
		ssa_clone_set(c, i, n);
	}
}
