/*
 * compiler/backend/coalesce_lane.c - one register for values of different
 * lanes.
 *
 * Where lanes leave a divergent loop one by one, or the sides of a branch run
 * one after the other, a register E collects the value that each lane takes
 * along, by copies E = x under the mask of those lanes.  Until E is complete,
 * active lanes do not read it, and inactive lanes read nothing else.  So x may
 * share E's register although their live intervals overlap: a definition of x
 * writes active lanes only.  Such definitions become partial.
 *
 * Conditions, within the region from MIR_UNDEF to the block in which E is
 * complete: x is dead after it; x is defined there by plain instructions only,
 * not while all lanes are on; nothing defines x between the copy and the end of
 * its block, where the lanes leave; for the second side of a branch, x is live
 * on that side only; and x does not interfere with anything else that has
 * become part of E.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/backend/backend_int.h"

/* Where lanes fill a register one by one; end 0: nowhere. */
struct lane_region {
	uint32_t start, from, end; /* positions */
};

struct lanes {
	struct coalescer *j;
	struct live_interval *live; /* [dwords] of each register by itself */
	struct lane_region *region; /* [n_vregs] */
};

static uint32_t find_root(const struct lanes *l, uint32_t v)
{
	while (l->j->into[v].reg)
		v = l->j->into[v].reg;
	return v;
}

static void find_regions(struct lanes *l)
{
	struct mir_func *m = l->j->m;

	MIR_EACH_INST(m, i) {
		struct lane_region *s;

		if (i->op != MIR_UNDEF || i->n_opnd < 2)
			continue;
		s = &l->region[i->o[0].reg];
		s->start = i->pos;
		s->end = i->o[1].label->start;
		s->from = i->n_opnd > 2 ? i->o[2].label->start : 0;
	}
}

/* Do they interfere outside of a region, or anywhere without one? */
static bool overlaps_outside(const struct live_interval *a,
			     const struct live_interval *b,
			     const struct lane_region *cut)
{
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t k = 0; k < b->n; k++) {
			struct live_range c =
				live_range_common(a->r[i], b->r[k]);

			if (c.start < c.end &&
			    (!cut || c.start < 2 * cut->start ||
			     c.end > 2 * cut->end))
				return true;
		}
	return false;
}

/* Where register `v` lies in the joined one. */
static uint32_t offset_of(const struct lanes *l, uint32_t v)
{
	uint32_t at = 0;

	for (; l->j->into[v].reg; v = l->j->into[v].reg)
		at += l->j->into[v].at;
	return at;
}

/* Numbers of the registers that became part of `v`; free() it. */
static uint32_t *collect_members(const struct lanes *l, uint32_t v, uint32_t *n)
{
	uint32_t *list = xcalloc(l->j->m->n_vregs, sizeof(*list));

	*n = 0;
	for (uint32_t k = 1; k < l->j->m->n_vregs; k++)
		if (find_root(l, k) == v)
			list[(*n)++] = k;
	return list;
}

static bool pair_overlaps(const struct lanes *l, uint32_t a, uint32_t b,
			  const struct lane_region *cut)
{
	const struct mir_vreg *v = l->j->m->vreg;
	uint32_t oa = offset_of(l, a), ob = offset_of(l, b);

	for (uint32_t d = oa > ob ? oa : ob;
	     d < oa + v[a].n && d < ob + v[b].n; d++)
		if (overlaps_outside(&l->live[v[a].dword + d - oa],
				     &l->live[v[b].dword + d - ob], cut))
			return true;
	return false;
}

/* Does no part of x interfere with a part of e? */
static bool may_share(const struct lanes *l, uint32_t e0, uint32_t e,
		      uint32_t x)
{
	uint32_t na, nb, *a = collect_members(l, e, &na),
			 *b = collect_members(l, x, &nb);
	bool good = true;

	for (uint32_t i = 0; good && i < na; i++)
		for (uint32_t k = 0; good && k < nb; k++)
			good = !pair_overlaps(l, a[i], b[k],
					      a[i] == e0 ? &l->region[e0] :
							   NULL);
	free(a);
	free(b);
	return good;
}

static bool lives_within(const struct lanes *l, uint32_t x,
			 const struct lane_region *s)
{
	const struct mir_vreg *v = &l->j->m->vreg[x];

	for (uint32_t d = 0; d < v->n; d++) {
		const struct live_interval *f = &l->j->live[v->dword + d];

		if (!f->n)
			continue;
		if (f->r[f->n - 1].end > 2 * s->end ||
		    (s->from && f->r[0].start < 2 * s->from))
			return false;
	}
	return true;
}

static bool defines_register(const struct lanes *l, const struct mir_inst *i,
			     uint32_t v)
{
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG && find_root(l, i->o[k].reg) == v)
			return true;
	return false;
}

static bool in_region(const struct mir_inst *i, const struct lane_region *s)
{
	return i->pos >= s->start && i->pos < s->end;
}

static bool is_written_plainly(const struct lanes *l, uint32_t x,
			       const struct lane_region *s)
{
	struct mir_func *m = l->j->m;

	MIR_EACH_INST(m, i)
		if (in_region(i, s) && defines_register(l, i, x) &&
		    (i->flags & MIR_GLUED ||
		     (i->next && i->next->flags & MIR_GLUED)))
			return false;
	return true;
}

static bool is_kept_until_exit(const struct lanes *l,
			       const struct mir_inst *copy, uint32_t e,
			       uint32_t x)
{
	for (const struct mir_inst *i = copy->next; i; i = i->next)
		if (defines_register(l, i, e) || defines_register(l, i, x))
			return false;
	return true;
}

/* Definitions in the region become partial; its other starts go. */
static void mark_partial(struct lanes *l, uint32_t e,
			 const struct lane_region *s, bool running)
{
	struct mir_func *m = l->j->m;

	MIR_EACH_INST_SAFE(m, i) {
		if (!in_region(i, s) || !defines_register(l, i, e))
			continue;
		if (i->op != MIR_UNDEF)
			i->flags |= MIR_PARTIAL;
		else if (i->pos > s->start || running)
			mir_unlink(i);
	}
}

static bool is_alive_at(const struct lanes *l, uint32_t x, uint32_t pos)
{
	const struct mir_vreg *v = &l->j->m->vreg[x];

	for (uint32_t d = 0; d < v->n; d++) {
		const struct live_interval *f = &l->j->live[v->dword + d];

		for (uint32_t k = 0; k < f->n; k++)
			if (f->r[k].start <= 2 * pos && 2 * pos < f->r[k].end)
				return true;
	}
	return false;
}

static void try_merge_copy(struct lanes *l, struct mir_inst *i)
{
	struct mir_func *m = l->j->m;
	uint32_t e0 = i->o[0].reg, e, x;
	const struct lane_region *s = &l->region[e0];
	struct mir_opnd to = coalescer_resolve(l->j, i->o[0]);
	struct mir_opnd from = coalescer_resolve(l->j, i->o[1]);
	bool running;

	e = to.reg;
	x = from.reg;
	if (!s->end || from.kind != MIR_VREG || e == x ||
	    m->vreg[x].file != MIR_V || m->vreg[e].n != m->vreg[x].n ||
	    to.n != m->vreg[e].n || from.n != to.n || m->vreg[x].fixed ||
	    m->vreg[e].fixed)
		return;
	if (!lives_within(l, x, s) || !is_written_plainly(l, x, s) ||
	    !is_kept_until_exit(l, i, e, x) || !may_share(l, e0, e, x))
		return;
	running = is_alive_at(l, x, s->start);
	for (uint32_t d = 0; d < m->vreg[x].n; d++)
		live_interval_join(&l->j->live[m->vreg[e].dword + d],
				   &l->j->live[m->vreg[x].dword + d]);
	l->j->into[x] = (struct merged_into){ e, 0 };
	mark_partial(l, e, s, running);
}

void coalesce_lanes(struct coalescer *j)
{
	struct lanes l = { .j = j };
	struct mir_func *m = j->m;

	l.region = xcalloc(m->n_vregs, sizeof(*l.region));
	find_regions(&l);
	/* Of each register by itself; j->live has been joined. */
	l.live = live_intervals(m);
	for (uint32_t b = m->n_order; b-- > 0;)
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next)
			if (i->op == MIR_COPY && i->flags & MIR_PARTIAL &&
			    i->o[0].kind == MIR_VREG)
				try_merge_copy(&l, i);
	live_intervals_free(l.live, m->n_dwords);
	free(l.region);
}
