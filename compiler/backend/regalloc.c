/*
 * compiler/backend/regalloc.c - linear scan over live intervals with holes.
 *
 * Registers are assigned in the order of interval starts; a group takes the
 * first aligned place where all of its dwords are free during their intervals
 * (each hardware register has a bit per half step of time).  Where nothing
 * fits, the intervals of least spill cost (uses, ten times dearer per loop
 * depth, over length) are spilled, and allocation starts over.
 */
#include "compiler/backend/backend_int.h"

#include <stdlib.h>
#include <string.h>

enum { N_VGPRS = 256, N_SGPRS = 108, VCC = 106, MAX_ROUNDS = 40 };

struct allocator {
	struct mir_func *m;
	const struct alloc_limits *limits;
	struct live_interval *live;
	uint64_t *busy[2]; /* [registers][n_words] */
	size_t n_words;
	uint32_t *order; /* vregs by the beginning of their lives */
	uint32_t n;
	double *weight; /* [n_vregs] */
	bool *spill;	/* [n_vregs] */
	bool spilled;
	uint32_t *owner[2]; /* growing lists: vregs per hardware register */
};

static uint64_t *busy_row(struct allocator *a, int file, int reg)
{
	return a->busy[file] + (size_t)reg * a->n_words;
}

static uint64_t range_mask(uint32_t from, uint32_t to, size_t w)
{
	uint64_t lo = w == from / 64 ? ~UINT64_C(0) << from % 64 : ~UINT64_C(0);
	uint64_t hi = w == (to - 1) / 64 ?
			      ~UINT64_C(0) >> (63 - (to - 1) % 64) :
			      ~UINT64_C(0);

	return lo & hi;
}

static bool is_free_during(struct allocator *a, int file, int reg,
			   const struct live_interval *l)
{
	const uint64_t *r = busy_row(a, file, reg);

	for (uint32_t k = 0; k < l->n; k++)
		for (size_t w = l->r[k].start / 64; w <= (l->r[k].end - 1) / 64;
		     w++)
			if (r[w] & range_mask(l->r[k].start, l->r[k].end, w))
				return false;
	return true;
}

static void set_busy(struct allocator *a, int file, int reg,
		     const struct live_interval *l, bool on)
{
	uint64_t *r = busy_row(a, file, reg);

	for (uint32_t k = 0; k < l->n; k++)
		for (size_t w = l->r[k].start / 64; w <= (l->r[k].end - 1) / 64;
		     w++) {
			uint64_t x = range_mask(l->r[k].start, l->r[k].end, w);

			if (on)
				r[w] |= x;
			else
				r[w] &= ~x;
		}
}

static int limit_of(const struct allocator *a, int file)
{
	return (int)(file == MIR_V ? a->limits->vgprs : a->limits->sgprs);
}

static struct live_interval *interval_of(struct allocator *a, uint32_t v, int k)
{
	return &a->live[a->m->vreg[v].dword + (uint32_t)k];
}

static bool fits_at(struct allocator *a, uint32_t v, int reg)
{
	const struct mir_vreg *x = &a->m->vreg[v];
	int limit = limit_of(a, x->file);

	/* VCC follows the others and is for lane masks. */
	if (x->file == MIR_S && reg >= VCC) {
		if (!x->vcc || reg + x->n > VCC + 2)
			return false;
	} else if (reg + x->n > limit) {
		return false;
	}
	for (int k = 0; k < x->n; k++)
		if (!is_free_during(a, x->file, reg + k, interval_of(a, v, k)))
			return false;
	return true;
}

static void assign_register(struct allocator *a, uint32_t v, int reg)
{
	struct mir_vreg *x = &a->m->vreg[v];

	x->phys = (int16_t)reg;
	for (int k = 0; k < x->n; k++)
		set_busy(a, x->file, reg + k, interval_of(a, v, k), true);
}

static void evict_register(struct allocator *a, uint32_t v)
{
	struct mir_vreg *x = &a->m->vreg[v];

	for (int k = 0; k < x->n; k++)
		set_busy(a, x->file, x->phys + k, interval_of(a, v, k), false);
	x->phys = -1;
	a->spill[v] = a->spilled = true;
}

/* -------------------------------------------------------------- order ---- */

static bool find_start(struct allocator *a, uint32_t v, uint32_t *at)
{
	*at = UINT32_MAX;
	for (int k = 0; k < a->m->vreg[v].n; k++) {
		const struct live_interval *l = interval_of(a, v, k);

		if (l->n && l->r[0].start < *at)
			*at = l->r[0].start;
	}
	return *at != UINT32_MAX;
}

struct key {
	uint32_t v, at, n;
};

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return x->v < y->v ? -1 : x->v > y->v;
}

static void sort_by_start(struct allocator *a)
{
	struct key *key = xcalloc(a->m->n_vregs, sizeof(*key));

	a->n = 0;
	for (uint32_t v = 1; v < a->m->n_vregs; v++) {
		if (!find_start(a, v, &key[a->n].at) || a->m->vreg[v].fixed)
			continue;
		key[a->n].v = v;
		key[a->n++].n = a->m->vreg[v].n;
	}
	qsort(key, a->n, sizeof(*key), by_key);
	for (uint32_t k = 0; k < a->n; k++)
		a->order[k] = key[k].v;
	free(key);
}

/* Spill cost per half step of the interval. */
static void compute_weights(struct allocator *a)
{
	struct mir_func *m = a->m;

	for (uint32_t b = 0; b < m->n_order; b++) {
		double w = 1;

		for (uint32_t d = 0; d < m->order[b]->depth && d < 8; d++)
			w *= 10;
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next)
			for (int k = 0; k < i->n_opnd; k++)
				if (i->o[k].kind == MIR_VREG &&
				    i->op != MIR_UNDEF)
					a->weight[i->o[k].reg] += w;
	}
	for (uint32_t v = 1; v < m->n_vregs; v++) {
		double length = 1;

		for (int k = 0; k < m->vreg[v].n; k++) {
			const struct live_interval *l = interval_of(a, v, k);

			for (uint32_t r = 0; r < l->n; r++)
				length += l->r[r].end - l->r[r].start;
		}
		a->weight[v] /= length;
		if (m->vreg[v].tiny || m->vreg[v].fixed)
			a->weight[v] = 1e30;
	}
}

/* -------------------------------------------------------------- places ---- */

/* VCC is busy from a definition of it to its uses, implicit ones too. */
static void reserve_vcc(struct allocator *a)
{
	for (uint32_t b = 0; b < a->m->n_order; b++) {
		struct mir_inst *i = a->m->order[b]->first;

		for (uint32_t from = 0; i; i = i->next) {
			struct live_range r;
			struct live_interval l = { &r, 1, 1 };
			bool reads = mir_isa_flags(i) & ISA_RVCC;

			for (int k = 0; k < i->n_opnd; k++) {
				if (i->o[k].kind != MIR_HW ||
				    i->o[k].reg != VCC)
					continue;
				if (k < i->n_def)
					from = 2 * i->pos + 1;
				else
					reads = true;
			}
			if (!reads || !from)
				continue;
			r = (struct live_range){ from, 2 * i->pos + 1 };
			set_busy(a, MIR_S, VCC, &l, true);
			if (a->m->wave == 64)
				set_busy(a, MIR_S, VCC + 1, &l, true);
		}
	}
}

static int hinted_register(struct allocator *a, uint32_t v)
{
	const struct mir_vreg *x = &a->m->vreg[v];
	const struct mir_vreg *h = &a->m->vreg[x->hint];
	int reg;

	if (x->vcc && fits_at(a, v, VCC))
		return VCC;
	if (!x->hint || h->phys < 0)
		return -1;
	reg = h->phys + x->hint_at - x->hint_sub;
	if (reg >= 0 && reg % x->align == 0 && fits_at(a, v, reg))
		return reg;
	return -1;
}

static int find_register(struct allocator *a, uint32_t v)
{
	const struct mir_vreg *x = &a->m->vreg[v];
	int limit = limit_of(a, x->file);
	int reg = hinted_register(a, v);

	if (reg >= 0)
		return reg;
	for (reg = 0; reg + x->n <= limit; reg += x->align)
		if (fits_at(a, v, reg))
			return reg;
	return -1;
}

/* ---------------------------------------------------------- conflicts ---- */

static bool has_conflict(struct allocator *a, uint32_t v, int reg, uint32_t u)
{
	const struct mir_vreg *x = &a->m->vreg[v], *y = &a->m->vreg[u];

	if (y->file != x->file || y->phys < 0)
		return false;
	for (int k = 0; k < x->n; k++) {
		int j = reg + k - y->phys;

		if (j >= 0 && j < y->n &&
		    live_interval_overlaps(interval_of(a, v, k),
					   interval_of(a, u, j), 0))
			return true;
	}
	return false;
}

/* Adds what it costs to move `u` away to each place of `v` that needs it. */
static void add_costs(struct allocator *a, uint32_t v, uint32_t u, int limit,
		      double *cost)
{
	const struct mir_vreg *x = &a->m->vreg[v], *y = &a->m->vreg[u];

	/* Dword j of u lies at dword k of v's: v is at reg. */
	for (int reg = y->phys - x->n + 1; reg < y->phys + y->n; reg++)
		if (reg >= 0 && reg + x->n <= limit && reg % x->align == 0 &&
		    has_conflict(a, v, reg, u))
			cost[reg] += a->weight[u];
}

static bool evict_cheapest(struct allocator *a, uint32_t v)
{
	const struct mir_vreg *x = &a->m->vreg[v];
	int limit = limit_of(a, x->file);
	double best = a->weight[v], cost[N_VGPRS] = { 0 };
	int at = -1;

	for (uint32_t u = 1; u < a->m->n_vregs; u++)
		if (u != v && a->m->vreg[u].file == x->file &&
		    a->m->vreg[u].phys >= 0)
			add_costs(a, v, u, limit, cost);
	for (int reg = 0; reg + x->n <= limit; reg += x->align)
		if (cost[reg] < best) {
			best = cost[reg];
			at = reg;
		}
	if (at < 0) {
		if (a->weight[v] >= 1e30)
			return false;
		a->spill[v] = a->spilled = true;
		return true;
	}
	for (uint32_t u = 1; u < a->m->n_vregs; u++)
		if (u != v && has_conflict(a, v, at, u))
			evict_register(a, u);
	assign_register(a, v, at);
	return true;
}

/* A sum that replaces its addend takes the short form v_fmac. */
static void set_hints(struct allocator *a)
{
	MIR_EACH_INST(a->m, i) {
		struct mir_vreg *v = &a->m->vreg[i->o[0].reg];

		if (i->op != ISA_v_fma_f32 ||
		    !mir_is_v(a->m, &i->o[3]) || i->o[3].mods)
			continue;
		v->hint = i->o[3].reg;
		v->hint_sub = i->o[0].sub;
		v->hint_at = i->o[3].sub;
	}
}

static bool scan_intervals(struct allocator *a)
{
	for (uint32_t v = 1; v < a->m->n_vregs; v++)
		if (a->m->vreg[v].fixed)
			assign_register(a, v, a->m->vreg[v].phys);
		else
			a->m->vreg[v].phys = -1;
	for (uint32_t k = 0; k < a->n; k++) {
		uint32_t v = a->order[k];
		int reg = find_register(a, v);

		if (reg >= 0)
			assign_register(a, v, reg);
		else if (!evict_cheapest(a, v))
			return false;
	}
	return true;
}

/* -------------------------------------------------------------- rounds ---- */

static bool allocate_once(struct mir_func *m, const struct alloc_limits *limits,
			  bool *again)
{
	struct allocator a = { .m = m, .limits = limits };
	bool good;

	mir_compute_live(m);
	a.live = live_intervals(m);
	a.n_words = (2 * (size_t)m->order[m->n_order - 1]->end + 128) / 64;
	a.busy[MIR_V] = xcalloc(N_VGPRS * a.n_words, 8);
	a.busy[MIR_S] = xcalloc(N_SGPRS * a.n_words, 8);
	a.order = xcalloc(m->n_vregs, sizeof(*a.order));
	a.weight = xcalloc(m->n_vregs, sizeof(*a.weight));
	a.spill = xcalloc(m->n_vregs, sizeof(*a.spill));
	sort_by_start(&a);
	set_hints(&a);
	compute_weights(&a);
	reserve_vcc(&a);
	good = scan_intervals(&a);
	*again = a.spilled;
	live_intervals_free(a.live, m->n_dwords);
	if (good && a.spilled)
		mir_spill(m, a.spill);
	free(a.busy[MIR_V]);
	free(a.busy[MIR_S]);
	free(a.order);
	free(a.weight);
	free(a.spill);
	return good;
}

static void count_used(struct mir_func *m)
{
	for (uint32_t v = 1; v < m->n_vregs; v++) {
		const struct mir_vreg *x = &m->vreg[v];
		uint32_t end = (uint32_t)(x->phys + x->n);

		if (x->phys < 0)
			continue;
		if (x->file == MIR_V)
			m->vgprs = end > m->vgprs ? end : m->vgprs;
		else if (x->phys < VCC)
			m->sgprs = end > m->sgprs ? end : m->sgprs;
	}
}

bool mir_allocate(struct mir_func *m, const struct alloc_limits *limits,
		  struct err *e)
{
	bool again = true;

	for (int k = 0; again; k++)
		if (k == MAX_ROUNDS || !allocate_once(m, limits, &again))
			return err_set(e, ERR_UNSUPPORTED,
				       "kernel %s does not fit %u VGPRs and %u "
				       "SGPRs, not even with spilling; allow "
				       "more (max_vgprs) or use smaller "
				       "vectors",
				       m->name, limits->vgprs, limits->sgprs);
	count_used(m);
	return true;
}
