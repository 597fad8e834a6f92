/*
 * compiler/backend/coalesce_lane.c - one register for values of different lanes.
 *
 * Where lanes leave a divergent loop one by one, or one side of a branch runs
 * after the other, a register E collects what each lane takes along: copies
 * E = x under the mask of those lanes.  Until E is complete the lanes that
 * still run do not look at it, and those that do not run look at nothing else.
 * So x may live in E's register, although both are alive at once: whoever
 * writes x writes the running lanes only.  Such definitions are then partial.
 *
 * Conditions, for the stretch of code from MIR_UNDEF to the block in which E is
 * complete: x is dead behind it; x is written there by plain instructions
 * only, not while all lanes are switched on; nothing writes x between the copy
 * and the end of its block, where the lanes leave; for the second side of a
 * branch, x lives on that side only; x gets along with everything else that
 * has become part of E.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/backend/regalloc.h"

/* The stretch of a register that lanes fill one by one; end 0: none. */
struct stretch {
	uint32_t start, from, end; /* positions */
};

struct lanes {
	struct joiner *j;
	struct life *life; /* [dwords] of each register by itself */
	struct stretch *stretch; /* [n_vregs] */
};

static uint32_t root(const struct lanes *l, uint32_t v)
{
	while (l->j->place[v].reg)
		v = l->j->place[v].reg;
	return v;
}

static void find_stretches(struct lanes *l)
{
	struct mir_func *m = l->j->m;

	for (uint32_t b = 0; b < m->n_order; b++)
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next) {
			struct stretch *s;

			if (i->op != MIR_UNDEF || i->n_opnd < 2)
				continue;
			s = &l->stretch[i->o[0].reg];
			s->start = i->pos;
			s->end = i->o[1].label->start;
			s->from = i->n_opnd > 2 ? i->o[2].label->start : 0;
		}
}

/* Outside of its own stretch, or everywhere. */
static bool meets(const struct life *a, const struct life *b,
		  const struct stretch *cut)
{
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t k = 0; k < b->n; k++) {
			uint32_t start = a->r[i].start > b->r[k].start ?
						 a->r[i].start :
						 b->r[k].start;
			uint32_t end = a->r[i].end < b->r[k].end ?
					       a->r[i].end :
					       b->r[k].end;

			if (start >= end)
				continue;
			if (!cut || start < 2 * cut->start ||
			    end > 2 * cut->end)
				return true;
		}
	return false;
}

/* Where register `v` lies in the joined one. */
static uint32_t offset(const struct lanes *l, uint32_t v)
{
	uint32_t at = 0;

	for (; l->j->place[v].reg; v = l->j->place[v].reg)
		at += l->j->place[v].at;
	return at;
}

/* Numbers of the registers that became part of `v`; free() it. */
static uint32_t *members(const struct lanes *l, uint32_t v, uint32_t *n)
{
	uint32_t *list = xcalloc(l->j->m->n_vregs, sizeof(*list));

	*n = 0;
	for (uint32_t k = 1; k < l->j->m->n_vregs; k++)
		if (root(l, k) == v)
			list[(*n)++] = k;
	return list;
}

static bool pair_meets(const struct lanes *l, uint32_t a, uint32_t b,
		       const struct stretch *cut)
{
	const struct mir_vreg *v = l->j->m->vreg;
	uint32_t oa = offset(l, a), ob = offset(l, b);

	for (uint32_t d = oa > ob ? oa : ob;
	     d < oa + v[a].n && d < ob + v[b].n; d++)
		if (meets(&l->life[v[a].dword + d - oa],
			  &l->life[v[b].dword + d - ob], cut))
			return true;
	return false;
}

/* Do the parts of x get along with the parts of e? */
static bool gets_along(const struct lanes *l, uint32_t e0, uint32_t e,
		       uint32_t x)
{
	uint32_t na, nb, *a = members(l, e, &na), *b = members(l, x, &nb);
	bool good = true;

	for (uint32_t i = 0; good && i < na; i++)
		for (uint32_t k = 0; good && k < nb; k++)
			good = !pair_meets(l, a[i], b[k],
					   a[i] == e0 ? &l->stretch[e0] : NULL);
	free(a);
	free(b);
	return good;
}

static bool within(const struct lanes *l, uint32_t x, const struct stretch *s)
{
	const struct mir_vreg *v = &l->j->m->vreg[x];

	for (uint32_t d = 0; d < v->n; d++) {
		const struct life *f = &l->j->life[v->dword + d];

		if (!f->n)
			continue;
		if (f->r[f->n - 1].end > 2 * s->end ||
		    (s->from && f->r[0].start < 2 * s->from))
			return false;
	}
	return true;
}

static bool defines(const struct lanes *l, const struct mir_inst *i, uint32_t v)
{
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG && root(l, i->o[k].reg) == v)
			return true;
	return false;
}

static bool in_stretch(const struct mir_inst *i, const struct stretch *s)
{
	return i->pos >= s->start && i->pos < s->end;
}

static bool plain_writes(const struct lanes *l, uint32_t x,
			 const struct stretch *s)
{
	struct mir_func *m = l->j->m;

	for (uint32_t b = 0; b < m->n_order; b++)
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next)
			if (in_stretch(i, s) && defines(l, i, x) &&
			    (i->flags & MIR_GLUED ||
			     (i->next && i->next->flags & MIR_GLUED)))
				return false;
	return true;
}

static bool kept_until_they_leave(const struct lanes *l,
				  const struct mir_inst *copy, uint32_t e,
				  uint32_t x)
{
	for (const struct mir_inst *i = copy->next; i; i = i->next)
		if (defines(l, i, e) || defines(l, i, x))
			return false;
	return true;
}

/* The stretch's definitions keep other lanes; nothing starts anew in it. */
static void mark(struct lanes *l, uint32_t e, const struct stretch *s,
		 bool running)
{
	struct mir_func *m = l->j->m;

	for (uint32_t b = 0; b < m->n_order; b++) {
		struct mir_inst *next;

		for (struct mir_inst *i = m->order[b]->first; i; i = next) {
			next = i->next;
			if (!in_stretch(i, s) || !defines(l, i, e))
				continue;
			if (i->op != MIR_UNDEF)
				i->flags |= MIR_PARTIAL;
			else if (i->pos > s->start || running)
				mir_unlink(i);
		}
	}
}

static bool alive_at(const struct lanes *l, uint32_t x, uint32_t pos)
{
	const struct mir_vreg *v = &l->j->m->vreg[x];

	for (uint32_t d = 0; d < v->n; d++) {
		const struct life *f = &l->j->life[v->dword + d];

		for (uint32_t k = 0; k < f->n; k++)
			if (f->r[k].start <= 2 * pos && 2 * pos < f->r[k].end)
				return true;
	}
	return false;
}

static void try_copy(struct lanes *l, struct mir_inst *i)
{
	struct mir_func *m = l->j->m;
	uint32_t e0 = i->o[0].reg, e, x;
	const struct stretch *s = &l->stretch[e0];
	struct mir_opnd to = join_resolve(l->j, i->o[0]);
	struct mir_opnd from = join_resolve(l->j, i->o[1]);
	bool running;

	e = to.reg;
	x = from.reg;
	if (!s->end || from.kind != MIR_VREG || e == x ||
	    m->vreg[x].file != MIR_V || m->vreg[e].n != m->vreg[x].n ||
	    to.n != m->vreg[e].n || from.n != to.n || m->vreg[x].fixed ||
	    m->vreg[e].fixed)
		return;
	if (!within(l, x, s) || !plain_writes(l, x, s) ||
	    !kept_until_they_leave(l, i, e, x) || !gets_along(l, e0, e, x))
		return;
	running = alive_at(l, x, s->start);
	for (uint32_t d = 0; d < m->vreg[x].n; d++)
		live_join(&l->j->life[m->vreg[e].dword + d],
			  &l->j->life[m->vreg[x].dword + d]);
	l->j->place[x] = (struct place){ e, 0 };
	mark(l, e, s, running);
}

void join_lanes(struct joiner *j)
{
	struct lanes l = { .j = j };
	struct mir_func *m = j->m;

	l.stretch = xcalloc(m->n_vregs, sizeof(*l.stretch));
	find_stretches(&l);
	/* Lives of each register alone; j->life has been joined. */
	l.life = live_ranges(m);
	for (uint32_t b = m->n_order; b-- > 0;)
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next)
			if (i->op == MIR_COPY && i->flags & MIR_PARTIAL &&
			    i->o[0].kind == MIR_VREG)
				try_copy(&l, i);
	live_free(l.life, m->n_dwords);
	free(l.stretch);
}
