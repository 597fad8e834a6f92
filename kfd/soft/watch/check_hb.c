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

static void raise_clock(struct clock *to,
			const uint32_t done[CLASS_COUNT])
{
	for (int k = 0; k < CLASS_COUNT; k++)
		if (done[k] > to->done[k])
			to->done[k] = done[k];
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
	raise_clock(&c->v[i], done);
}

/* How many waves of `from` are not in `to`; what both have is raised. */
static uint32_t raise_clocks(struct clocks *to, const struct clocks *from)
{
	uint32_t i = 0, missing = 0;

	for (uint32_t j = 0; j < from->n; j++) {
		while (i < to->n && to->v[i].wave < from->v[j].wave)
			i++;
		if (i < to->n && to->v[i].wave == from->v[j].wave)
			raise_clock(&to->v[i++], from->v[j].done);
		else
			missing++;
	}
	return missing;
}

static void add_clocks(struct clocks *to, const struct clocks *from)
{
	const uint32_t missing = raise_clocks(to, from);
	uint32_t i = to->n, j = from->n, at = to->n + missing;

	if (!missing)
		return;
	vec_reserve(to, missing);
	to->n = at;
	/* From behind: each goes where one behind it was, or to its own place. */
	while (j && at > i) {
		if (i && to->v[i - 1].wave >= from->v[j - 1].wave) {
			j -= to->v[i - 1].wave == from->v[j - 1].wave;
			to->v[--at] = to->v[--i];
		} else {
			to->v[--at] = from->v[--j];
		}
	}
}

/* ------------------------------------------------------------- order ---- */

bool hb_before(const struct actor *a, uint32_t wave, int cls, uint32_t seq)
{
	const uint32_t in_group = wave - a->sh->wave[0].number;
	const struct clocks *c = &a->sw->known;
	uint32_t i;

	if (wave == a->sw->number)
		return true;
	if (in_group < (uint32_t)a->sh->n_waves &&
	    a->sh->wave[in_group].at_barrier[cls] > seq)
		return true;
	i = search_clock(c, wave);
	return i < c->n && c->v[i].wave == wave && c->v[i].done[cls] > seq;
}

void hb_barrier(struct shadow *sh)
{
	struct clocks all = { 0 };

	for (int i = 0; i < sh->n_waves; i++)
		add_clocks(&all, &sh->wave[i].known);
	for (int i = 0; i < sh->n_waves && all.n; i++) {
		add_clocks(&sh->wave[i].known, &all);
		sh->wave[i].learnt++;
	}
	clocks_fini(&all);
}

void hb_invalidate(struct actor *a)
{
	add_clocks(&a->sw->known, &a->sw->acquired);
	a->sw->learnt += a->sw->acquired.n != 0;
	a->sw->acquired.n = 0;
}

/* ----------------------------------------------------------- atomics ---- */

/*
 * What lies at a location, and what there is no need to do again: the wave that
 * acquired last has all of so many releases, and the one that released last had
 * left all of what it knew then.
 */
struct location {
	struct clocks c;
	uint64_t releases, acquired;
	uint64_t knew;
	uint32_t acquirer, releaser; /* number + 1; 0: none */
};

void hb_fini(struct memory_shadow *m)
{
	for (size_t i = 0; i < m->released.n_slots; i++) {
		struct location *l = m->released.slot[i].value;

		if (l)
			clocks_fini(&l->c);
		free(l);
	}
	addr_table_fini(&m->released);
}

/* What lies there; LDS is as the workgroup sees it, memory may be stale. */
static void acquire_from(struct actor *a, struct location *l, bool is_lds)
{
	struct shadow_wave *w = a->sw;

	if (l->acquirer == w->number + 1 && l->acquired == l->releases)
		return;
	l->acquirer = w->number + 1;
	l->acquired = l->releases;
	add_clocks(is_lds ? &w->known : &w->acquired, &l->c);
	w->learnt += is_lds;
}

/* How far this wave is, its neighbours were, and what it knows. */
static void release_to(struct actor *a, struct location *l)
{
	struct shadow_wave *w = a->sw;
	uint32_t done[CLASS_COUNT];

	if (l->releaser != w->number + 1 || l->knew != w->learnt)
		add_clocks(&l->c, &w->known);
	l->releaser = w->number + 1;
	l->knew = w->learnt;
	for (int k = 0; k < CLASS_COUNT; k++)
		done[k] = check_done(w, k);
	add_clock(&l->c, w->number, done);
	for (int i = 0; i < a->sh->n_waves; i++)
		if (&a->sh->wave[i] != w)
			add_clock(&l->c, a->sh->wave[i].number,
				  a->sh->wave[i].at_barrier);
	/* It has what it left itself. */
	l->acquired += l->acquirer == w->number + 1 &&
		       l->acquired == l->releases;
	l->releases++;
}

void hb_atomic(struct actor *a, uint64_t key, bool acquire, bool release)
{
	struct addr_table *released = &a->t->mem.released;
	struct location *l = addr_table_get(released, key);

	if (!l && !release)
		return;
	if (!l) {
		l = xcalloc(1, sizeof(*l));
		addr_table_put(released, key, l);
	}
	if (acquire)
		acquire_from(a, l, key >> 63);
	if (release)
		release_to(a, l);
}
