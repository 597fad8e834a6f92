/*
 * compiler/backend/coalesce.c - copy coalescing: registers joined by copies
 * become one.
 */
#include "compiler/backend/backend_int.h"

#include <stdlib.h>

struct copy_candidate {
	struct mir_inst *i;
	struct mir_opnd to, from;
	uint32_t except; /* position, as live_interval_overlaps() */
};

struct mir_opnd coalescer_resolve(const struct coalescer *j, struct mir_opnd o)
{
	while (o.kind == MIR_VREG && j->into[o.reg].reg) {
		const struct merged_into *p = &j->into[o.reg];

		o.sub = (uint8_t)(o.sub + p->at);
		o.reg = p->reg;
	}
	return o;
}

static bool is_whole(const struct mir_func *m, const struct mir_opnd *o)
{
	return !o->sub && o->n == m->vreg[o->reg].n;
}

static bool may_merge(const struct coalescer *j, uint32_t from, uint32_t into,
		      uint8_t at, uint32_t except)
{
	const struct mir_vreg *f = &j->m->vreg[from], *t = &j->m->vreg[into];

	if (f->fixed || t->fixed || f->file != t->file || at + f->n > t->n ||
	    at % f->align)
		return false;
	for (int k = 0; k < f->n; k++)
		if (live_interval_overlaps(
			    &j->live[f->dword + (uint32_t)k],
			    &j->live[t->dword + at + (uint32_t)k], except))
			return false;
	return true;
}

static void merge_into(struct coalescer *j, uint32_t from, uint32_t into,
		       uint8_t at)
{
	struct mir_vreg *f = &j->m->vreg[from], *t = &j->m->vreg[into];

	for (int k = 0; k < f->n; k++)
		live_interval_join(&j->live[t->dword + at + (uint32_t)k],
				   &j->live[f->dword + (uint32_t)k]);
	t->vcc |= f->vcc;
	j->into[from] = (struct merged_into){ into, at };
}

static void try_join(struct coalescer *j, const struct copy_candidate *x)
{
	struct mir_opnd to = coalescer_resolve(j, x->to),
			from = coalescer_resolve(j, x->from);

	if (to.kind != MIR_VREG || from.kind != MIR_VREG || to.n != from.n ||
	    to.reg == from.reg)
		return;
	if (is_whole(j->m, &to) &&
	    may_merge(j, to.reg, from.reg, from.sub, x->except))
		merge_into(j, to.reg, from.reg, from.sub);
	else if (is_whole(j->m, &from) &&
		 may_merge(j, from.reg, to.reg, to.sub, x->except))
		merge_into(j, from.reg, to.reg, to.sub);
}

static bool find_candidate(struct mir_inst *i, struct copy_candidate *x)
{
	x->i = i;
	x->except = 0;
	if (i->op == MIR_COPY && !(i->flags & MIR_PARTIAL)) {
		x->to = i->o[0];
		x->from = i->o[1];
		return x->to.kind == MIR_VREG && x->from.kind == MIR_VREG;
	}
	if (i->flags & MIR_TIED) {
		x->to = i->o[0];
		x->from = i->o[i->n_opnd - 1];
		x->except = i->pos;
		return x->from.kind == MIR_VREG;
	}
	return false;
}

/* Wide ones and those in loops first. */
static int by_gain(const void *a, const void *b)
{
	const struct copy_candidate *x = a, *y = b;
	uint32_t dx = x->i->block->depth, dy = y->i->block->depth;
	int tx = (x->i->flags & MIR_TIED) != 0;
	int ty = (y->i->flags & MIR_TIED) != 0;

	if (dx != dy)
		return dx > dy ? -1 : 1;
	if (tx != ty)
		return ty - tx;
	if (x->to.n != y->to.n)
		return y->to.n - x->to.n;
	return x->i->pos < y->i->pos ? -1 : x->i->pos > y->i->pos;
}

static void rewrite_operands(struct coalescer *j)
{
	struct mir_func *m = j->m;

	MIR_EACH_INST_SAFE(m, i) {
		for (int k = 0; k < i->n_opnd; k++)
			i->o[k] = coalescer_resolve(j, i->o[k]);
		if (i->op == MIR_COPY && mir_same(&i->o[0], &i->o[1]))
			mir_remove(i);
	}
}

void mir_coalesce(struct mir_func *m)
{
	struct coalescer j = { .m = m };
	struct copy_candidate *list;
	uint32_t n = 0;

	mir_compute_live(m);
	j.live = live_intervals(m);
	j.into = xcalloc(m->n_vregs, sizeof(*j.into));
	list = xcalloc(m->n_insts + 1, sizeof(*list));
	MIR_EACH_INST(m, i)
		n += find_candidate(i, &list[n]);
	qsort(list, n, sizeof(*list), by_gain);
	for (uint32_t k = 0; k < n; k++)
		try_join(&j, &list[k]);
	coalesce_lanes(&j);
	rewrite_operands(&j);
	live_intervals_free(j.live, m->n_dwords);
	free(list);
	free(j.into);
}
