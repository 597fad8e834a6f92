/*
 * kfd/soft/watch/check_hb.c - happens-before: barriers and atomics as vector
 * clocks.
 *
 * Memory instructions of a wave are numbered, and a wave's clock says, for
 * each kind, before which number all are complete.  A barrier tells every wave
 * of the workgroup how far the others were when they came to it.  An atomic
 * access leaves, at its location, how far its wave was and what it knew
 * (release); one that returns a value takes what lies there (acquire).  What
 * was acquired through memory counts from buffer_gl0_inv on: before it a wave
 * may still read stale lines of its cache.
 *
 * Plain stores and loads stand in for atomic ones as compilers emit them: a
 * store directly after s_waitcnt_vscnt 0 releases, a load with GLC acquires.
 * On gfx12 these are s_wait_storecnt 0, a scope beyond the CU, and global_inv.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kfd/soft/watch/watch_int.h"

/* ------------------------------------------------------------ clocks ---- */

void clocks_fini(struct clocks *c)
{
	free(c->v);
	memset(c, 0, sizeof(*c));
}

/* Index of the wave, or of the place for it. */
static uint32_t search_clock(const struct clocks *c, uint32_t wave)
{
	uint32_t lo = 0, hi = c->n;

	while (lo < hi) {
		const uint32_t mid = (lo + hi) / 2;

		if (c->v[mid].wave < wave)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void add_clock(struct clocks *c, uint32_t wave,
		      const uint32_t done[CLASS_COUNT])
{
	const uint32_t i = search_clock(c, wave);

	if (i == c->n || c->v[i].wave != wave) {
		vec_reserve(c, 1);
		memmove(&c->v[i + 1], &c->v[i], (c->n - i) * sizeof(*c->v));
		c->n++;
		c->v[i] = (struct clock){ .wave = wave };
	}
	for (int k = 0; k < CLASS_COUNT; k++)
		if (done[k] > c->v[i].done[k])
			c->v[i].done[k] = done[k];
}

static void add_clocks(struct clocks *to, const struct clocks *from)
{
	for (uint32_t i = 0; i < from->n; i++)
		add_clock(to, from->v[i].wave, from->v[i].done);
}

/* ------------------------------------------------------------- order ---- */

bool hb_before(const struct actor *a, uint32_t wave, int cls, uint32_t seq)
{
	const uint32_t n = a->sh->l->waves_per_group;
	const struct clocks *c = &a->sw->known;
	uint32_t i;

	if (wave == a->sw->number)
		return true;
	if (wave / n == a->sh->index &&
	    a->sh->wave[wave % n].at_barrier[cls] > seq)
		return true;
	i = search_clock(c, wave);
	return i < c->n && c->v[i].wave == wave && c->v[i].done[cls] > seq;
}

void hb_barrier(struct shadow *sh)
{
	struct clocks all = { 0 };

	for (int i = 0; i < sh->n_waves; i++)
		add_clocks(&all, &sh->wave[i].known);
	for (int i = 0; i < sh->n_waves && all.n; i++)
		add_clocks(&sh->wave[i].known, &all);
	clocks_fini(&all);
}

void hb_invalidate(struct actor *a)
{
	add_clocks(&a->sw->known, &a->sw->acquired);
	a->sw->acquired.n = 0;
}

/* ----------------------------------------------------------- atomics ---- */

void hb_fini(struct memory_shadow *m)
{
	for (size_t i = 0; i < m->released.n_slots; i++) {
		struct clocks *c = m->released.slot[i].value;

		if (c)
			clocks_fini(c);
		free(c);
	}
	addr_table_fini(&m->released);
}

/* How far this wave is, its neighbours were, and what it knows. */
static void release_to(const struct actor *a, struct clocks *c)
{
	uint32_t done[CLASS_COUNT];

	add_clocks(c, &a->sw->known);
	for (int k = 0; k < CLASS_COUNT; k++)
		done[k] = check_done(a->sw, k);
	add_clock(c, a->sw->number, done);
	for (int i = 0; i < a->sh->n_waves; i++)
		if (&a->sh->wave[i] != a->sw)
			add_clock(c, a->sh->wave[i].number,
				  a->sh->wave[i].at_barrier);
}

void hb_atomic(struct actor *a, uint64_t key, bool acquire, bool release)
{
	struct addr_table *released = &a->t->mem.released;
	struct clocks *c = addr_table_get(released, key);

	if (!c && !release)
		return;
	if (!c) {
		c = xcalloc(1, sizeof(*c));
		addr_table_put(released, key, c);
	}
	if (acquire)
		add_clocks(key >> 63 ? &a->sw->known : &a->sw->acquired, c);
	if (release)
		release_to(a, c);
}
