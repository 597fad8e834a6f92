/*
 * compiler/backend/live_interval.c - liveness: live sets of blocks, live
 * intervals of dwords.
 */
#include "base/vec.h"
#include "compiler/backend/backend_int.h"

#include <stdlib.h>
#include <string.h>

static uint32_t set_words(const struct mir_func *m)
{
	return (m->n_dwords + 63) / 64;
}

static bool has_bit(const uint64_t *set, uint32_t k)
{
	return set[k / 64] >> k % 64 & 1;
}

static void set_bit(uint64_t *set, uint32_t k)
{
	set[k / 64] |= UINT64_C(1) << k % 64;
}

static void clear_bit(uint64_t *set, uint32_t k)
{
	set[k / 64] &= ~(UINT64_C(1) << k % 64);
}

/* Is operand k read (a result that keeps its register's rest is)? */
static bool is_read(const struct mir_inst *i, int k)
{
	return k >= i->n_def || mir_reads_result(i);
}

static uint32_t dword_of(const struct mir_func *m, const struct mir_opnd *o,
			 int k)
{
	return m->vreg[o->reg].dword + o->sub + (uint32_t)k;
}

/* Backwards over one instruction. */
static void transfer_inst(const struct mir_func *m, const struct mir_inst *i,
			  uint64_t *live)
{
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG && !is_read(i, k))
			for (int j = 0; j < i->o[k].n; j++)
				clear_bit(live, dword_of(m, &i->o[k], j));
	for (int k = 0; k < i->n_opnd; k++)
		if (i->o[k].kind == MIR_VREG && is_read(i, k))
			for (int j = 0; j < i->o[k].n; j++)
				set_bit(live, dword_of(m, &i->o[k], j));
}

static bool update_block(struct mir_func *m, struct mir_block *b,
			 uint64_t *live)
{
	uint32_t n = set_words(m);
	bool changed;

	memset(b->live_out, 0, n * 8);
	for (uint32_t k = 0; k < b->n_succ; k++)
		for (uint32_t w = 0; w < n; w++)
			b->live_out[w] |= b->succ[k]->live_in[w];
	memcpy(live, b->live_out, n * 8);
	for (struct mir_inst *i = b->last; i; i = i->prev)
		transfer_inst(m, i, live);
	changed = memcmp(live, b->live_in, n * 8) != 0;
	memcpy(b->live_in, live, n * 8);
	return changed;
}

void mir_compute_live(struct mir_func *m)
{
	uint64_t *live;
	bool changed = true;

	mir_number(m);
	live = xcalloc(set_words(m) + 1, 8);
	for (uint32_t b = 0; b < m->n_order; b++) {
		m->order[b]->live_in =
			arena_alloc(m->arena, set_words(m) * 8 + 8);
		m->order[b]->live_out =
			arena_alloc(m->arena, set_words(m) * 8 + 8);
	}
	while (changed) {
		changed = false;
		for (uint32_t b = m->n_order; b-- > 0;)
			changed |= update_block(m, m->order[b], live);
	}
	free(live);
}

bool live_has_register(const struct mir_func *m, const uint64_t *set,
		       uint32_t v)
{
	for (uint32_t j = 0; j < m->vreg[v].n; j++)
		if (has_bit(set, m->vreg[v].dword + j))
			return true;
	return false;
}

/* ------------------------------------------------------------- ranges ---- */

/* Ranges are found in descending order and reversed at the end. */
static void push_range(struct live_interval *l, uint32_t start, uint32_t end)
{
	if (l->n && l->r[l->n - 1].start <= end) {
		if (start < l->r[l->n - 1].start)
			l->r[l->n - 1].start = start;
		return;
	}
	VEC_GROW(l->r, l->n, 1, l->cap);
	l->r[l->n++] = (struct live_range){ start, end };
}

struct builder {
	struct mir_func *m;
	struct live_interval *live;
	uint32_t *until; /* end of the range under way, 0 = dead */
};

static void build_inst(struct builder *b, const struct mir_inst *i)
{
	uint32_t t = 2 * i->pos, def = i->flags & MIR_EARLY ? t : t + 1;

	for (int k = 0; k < i->n_def; k++) {
		if (i->o[k].kind != MIR_VREG)
			continue;
		for (int j = 0; j < i->o[k].n; j++) {
			uint32_t d = dword_of(b->m, &i->o[k], j);

			/* A dead definition. */
			if (!b->until[d])
				b->until[d] = t + 2;
			if (is_read(i, k))
				continue;
			push_range(&b->live[d], def, b->until[d]);
			b->until[d] = 0;
		}
	}
	for (int k = 0; k < i->n_opnd; k++)
		if (i->o[k].kind == MIR_VREG && is_read(i, k))
			for (int j = 0; j < i->o[k].n; j++) {
				uint32_t d = dword_of(b->m, &i->o[k], j);

				if (!b->until[d])
					b->until[d] = t + 1;
			}
}

static void build_block(struct builder *b, struct mir_block *x)
{
	for (uint32_t d = 0; d < b->m->n_dwords; d++)
		b->until[d] = has_bit(x->live_out, d) ? 2 * x->end : 0;
	for (struct mir_inst *i = x->last; i; i = i->prev)
		build_inst(b, i);
	for (uint32_t d = 0; d < b->m->n_dwords; d++)
		if (b->until[d])
			push_range(&b->live[d], 2 * x->start, b->until[d]);
}

static void reverse_ranges(struct live_interval *l)
{
	for (uint32_t i = 0, j = l->n; i + 1 < j--; i++) {
		struct live_range t = l->r[i];

		l->r[i] = l->r[j];
		l->r[j] = t;
	}
}

struct live_interval *live_intervals(struct mir_func *m)
{
	struct builder b = { .m = m };

	b.live = xcalloc(m->n_dwords + 1, sizeof(*b.live));
	b.until = xcalloc(m->n_dwords + 1, sizeof(*b.until));
	for (uint32_t k = m->n_order; k-- > 0;)
		build_block(&b, m->order[k]);
	for (uint32_t d = 0; d < m->n_dwords; d++)
		reverse_ranges(&b.live[d]);
	free(b.until);
	return b.live;
}

void live_intervals_free(struct live_interval *l, uint32_t n)
{
	for (uint32_t d = 0; d < n; d++)
		free(l[d].r);
	free(l);
}

bool live_interval_overlaps(const struct live_interval *a,
			    const struct live_interval *b, uint32_t except)
{
	uint32_t i = 0, j = 0;

	while (i < a->n && j < b->n) {
		struct live_range c = live_range_common(a->r[i], b->r[j]);

		if (c.start < c.end &&
		    !(except && c.start >= 2 * except &&
		      c.end <= 2 * except + 1))
			return true;
		if (a->r[i].end < b->r[j].end)
			i++;
		else
			j++;
	}
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct live_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void live_interval_join(struct live_interval *a, const struct live_interval *b)
{
	struct live_interval l = { 0 };

	if (!b->n)
		return;
	l.cap = a->n + b->n;
	l.r = xmalloc(l.cap * sizeof(*l.r));
	if (a->n)
		memcpy(l.r, a->r, a->n * sizeof(*l.r));
	memcpy(l.r + a->n, b->r, b->n * sizeof(*l.r));
	qsort(l.r, l.cap, sizeof(*l.r), by_start);
	for (uint32_t k = 0; k < l.cap; k++) {
		if (l.n && l.r[k].start <= l.r[l.n - 1].end) {
			if (l.r[k].end > l.r[l.n - 1].end)
				l.r[l.n - 1].end = l.r[k].end;
			continue;
		}
		l.r[l.n++] = l.r[k];
	}
	free(a->r);
	*a = l;
}
