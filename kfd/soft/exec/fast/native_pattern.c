/*
 * kfd/soft/exec/fast/native_pattern.c - what moves are for host code, and how
 * their lanes are learned to lie.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/fast/native_move.h"

static const struct soft_move_type types[SOFT_MOVE_COUNT] = {
	[SOFT_MOVE_load_32] = { .dwords = 1 },
	[SOFT_MOVE_load_64] = { .dwords = 2 },
	[SOFT_MOVE_load_96] = { .dwords = 3 },
	[SOFT_MOVE_load_128] = { .dwords = 4 },
	[SOFT_MOVE_load_u8] = { .bits = 8 },
	[SOFT_MOVE_load_i8] = { .bits = 8, .is_signed = true },
	[SOFT_MOVE_load_u16] = { .bits = 16 },
	[SOFT_MOVE_load_i16] = { .bits = 16, .is_signed = true },
	[SOFT_MOVE_load_low_u8] = { .bits = 8, .part = SOFT_LOW },
	[SOFT_MOVE_load_low_i8] = { .bits = 8,
				    .is_signed = true,
				    .part = SOFT_LOW },
	[SOFT_MOVE_load_low_16] = { .bits = 16, .part = SOFT_LOW },
	[SOFT_MOVE_load_high_u8] = { .bits = 8, .part = SOFT_HIGH },
	[SOFT_MOVE_load_high_i8] = { .bits = 8,
				     .is_signed = true,
				     .part = SOFT_HIGH },
	[SOFT_MOVE_load_high_16] = { .bits = 16, .part = SOFT_HIGH },
	[SOFT_MOVE_store_32] = { .dwords = 1, .store = true },
	[SOFT_MOVE_store_64] = { .dwords = 2, .store = true },
	[SOFT_MOVE_store_96] = { .dwords = 3, .store = true },
	[SOFT_MOVE_store_128] = { .dwords = 4, .store = true },
	[SOFT_MOVE_store_8] = { .bits = 8, .store = true },
	[SOFT_MOVE_store_16] = { .bits = 16, .store = true },
	[SOFT_MOVE_store_high_8] = { .bits = 8,
				     .store = true,
				     .part = SOFT_HIGH },
	[SOFT_MOVE_store_high_16] = { .bits = 16,
				      .store = true,
				      .part = SOFT_HIGH },
};

static const struct soft_move_type *type_of(const struct soft_microop *m)
{
	soft_move_fn *const *move = soft_simd()->moves->move;
	int k = 0;

	while ((uintptr_t)move[k] != m->b)
		k++;
	return &types[k];
}

/* -------------------------------------------------------------- lanes ---- */

static bool are_even(const int32_t *d, uint32_t step, bool rows)
{
	for (uint32_t i = 0; i < SOFT_LANES; i++)
		if ((uint32_t)d[i] != (rows ? i % 16 : i) * step)
			return false;
	return true;
}

#define MOST_BYTES (1 << 28) /* from lane 0 to another */

static bool are_near(const int32_t *d)
{
	for (int i = 0; i < SOFT_LANES; i++)
		if (d[i] < -MOST_BYTES || d[i] > MOST_BYTES)
			return false;
	return true;
}

/* Where they are expected; `bytes` apart if nothing else is known. */
static void set_lanes(struct soft_native_move *v, const int32_t *expected,
		      int32_t bytes)
{
	int32_t low = 0;

	v->expected = expected;
	for (int32_t i = 0; i < SOFT_LANES; i++) {
		v->distance[i] = expected ? expected[i] : i * bytes;
		low = v->distance[i] < low ? v->distance[i] : low;
	}
	v->before_bytes = (uint32_t)-low;
	for (int i = 0; i < SOFT_LANES; i++)
		v->distance[i] -= low;
	v->step = (uint32_t)v->distance[1];
	v->rows = v->step && v->distance[16] == 0;
	v->even = !low && are_even(v->distance, v->step, v->rows);
}

/* How far the last one in memory begins behind the first. */
static uint32_t reach_of(const struct soft_native_move *v)
{
	int32_t high = 0;

	for (int i = 0; i < SOFT_LANES; i++)
		high = v->distance[i] > high ? v->distance[i] : high;
	return (uint32_t)high;
}

/* ------------------------------------------------------------- pieces ---- */

static void add_piece(struct soft_native_move *v, int n, uint32_t at,
		      uintptr_t vreg)
{
	struct soft_piece *p = &v->piece[v->n_pieces++];

	p->n = n;
	p->at = (int32_t)at;
	for (int i = 0; i < n; i++)
		p->vreg[i] = vreg + (uintptr_t)i * SOFT_VREG_BYTES;
}

/* The second address: it may go on where the first one ends. */
static void add_second(struct soft_native_move *v, const struct soft_microop *m)
{
	const int n = v->type->dwords;
	const uint32_t at = (uint32_t)m->c;
	struct soft_piece *p = &v->piece[0];

	add_piece(v, n, at, m->c >> 32);
	if (at != m->imm + 4u * (uint32_t)n || n > 2)
		return;
	for (int i = 0; i < n; i++)
		p->vreg[p->n++] = v->piece[1].vreg[i];
	v->n_pieces = 1;
}

/* Does one lane's first place have bytes of another one's second? */
static bool do_overlap(const struct soft_native_move *v)
{
	const int32_t apart = v->piece[1].at - v->piece[0].at;

	for (int i = 0; i < SOFT_LANES; i++)
		for (int k = 0; k < SOFT_LANES; k++)
			if (i != k && abs(v->distance[i] - v->distance[k] -
					  apart) < 4 * v->piece[0].n)
				return true;
	return false;
}

/* What a move is whose lanes are there; false: there is no code for it. */
static bool describe_move(struct soft_native_move *v,
			  const struct soft_microop *m, const int32_t *expected)
{
	const enum soft_where where = soft_native_where(m);
	const bool lds = where == SOFT_AT_LDS || where == SOFT_AT_LDS2;
	uint32_t last = lds ? m->imm : 0;

	if (where == SOFT_AT_COUNT || where == SOFT_AT_SWIZZLED ||
	    (where == SOFT_AT_BUFFER && !soft_native_knows_buffer(m)) ||
	    (expected && !are_near(expected)))
		return false;
	*v = (struct soft_native_move){ .where = where, .type = type_of(m) };
	set_lanes(v, expected, m->mods[0]);
	if (v->type->dwords == 3 && (v->type->store || !expected))
		return false;
	add_piece(v, v->type->dwords ? v->type->dwords : 1, last, m->d);
	if (where == SOFT_AT_LDS2)
		add_second(v, m);
	if (v->n_pieces > 1) {
		/* A lane stores to both before the next one does. */
		if (v->type->store && do_overlap(v))
			return false;
		if (v->piece[1].at > v->piece[0].at)
			last = (uint32_t)v->piece[1].at;
	}
	v->lane_bytes = soft_native_touched(v);
	v->span_bytes = last + reach_of(v) + v->lane_bytes;
	/* Lanes of scratch have as many bytes as they are apart. */
	if (where == SOFT_AT_SCRATCH &&
	    (!expected || !v->even || v->rows || v->step < v->lane_bytes))
		return false;
	return true;
}

int soft_native_find_moves(struct soft_native_move v[SOFT_WAYS],
			   const struct soft_microop *m)
{
	const struct soft_pattern *p = soft_pattern_of(m);
	int n = 0;

	if (soft_native_where(m) == SOFT_AT_COUNT || soft_is_scattered(m))
		return 0;
	for (int i = 0; i < p->n_ways; i++)
		n += describe_move(&v[n], m, p->way[i]);
	return p->n_ways ? n : describe_move(v, m, NULL);
}

bool soft_native_moves(const struct soft_microop *m)
{
	struct soft_native_move v[SOFT_WAYS];

	return soft_native_find_moves(v, m) > 0;
}

bool soft_native_moves_some(const struct soft_microop *m)
{
	struct soft_native_move v[SOFT_WAYS];
	const int n = soft_native_find_moves(v, m);

	for (int i = 0; i < n; i++)
		if (soft_native_is_dword_line(&v[i]))
			return true;
	return false;
}

bool soft_native_in_memory(const struct soft_microop *m)
{
	const enum soft_where where = soft_native_where(m);

	return where == SOFT_AT_SADDR || where == SOFT_AT_VADDR ||
	       where == SOFT_AT_FLAT || where == SOFT_AT_BUFFER;
}

/* Does it load to its own address? */
static bool loads_address(const struct soft_native_move *v,
			  const struct soft_microop *m)
{
	for (int i = 0; !v->type->store && i < v->n_pieces; i++)
		for (int k = 0; k < v->piece[i].n; k++)
			if (v->piece[i].vreg[k] == m->a ||
			    v->piece[i].vreg[k] == m->a + SOFT_VREG_BYTES)
				return true;
	return false;
}

bool soft_native_moves_next(const struct soft_microop *m)
{
	struct soft_native_move v[SOFT_WAYS], w[SOFT_WAYS];
	const enum soft_where where = soft_native_where(m);

	if (where == SOFT_AT_COUNT || where == SOFT_AT_SCRATCH ||
	    where == SOFT_AT_BUFFER || where != soft_native_where(m + 1) ||
	    m[0].a != m[1].a || soft_native_find_moves(v, m) != 1 ||
	    soft_native_find_moves(w, m + 1) != 1 || loads_address(v, m))
		return false;
	if (soft_native_in_memory(m) &&
	    (m[0].c != m[1].c || m[0].mask_out != m[1].mask_out ||
	     v->type->store != w->type->store))
		return false;
	return v->before_bytes == w->before_bytes &&
	       !memcmp(v->distance, w->distance, sizeof(v->distance));
}

/* ----------------------------------------------------------- learning ---- */

#define SEEN	 4  /* ways that are looked at */
#define OFTEN	 3  /* times are enough */
#define MISSES	 64 /* in new ways are too many: nothing is expected */
#define VERSIONS 8  /* are enough: what they expect stays */

/* Ways in which lanes were seen that are not expected, and how often. */
struct soft_seen {
	int32_t way[SEEN][SOFT_LANES];
	uint8_t times[SEEN];
	uint8_t next; /* to be forgotten */
};

/* What is kept begins in the next line of the host's caches. */
struct soft_kept {
	_Alignas(64) struct soft_kept *older;
};

void soft_patterns_free(struct soft_code_cache *c)
{
	while (c->kept) {
		struct soft_kept *older = c->kept->older;

		free(c->kept);
		c->kept = older;
	}
}

static void *keep_bytes(struct soft_code_cache *c, size_t bytes)
{
	struct soft_kept *k = xaligned(64, sizeof(*k) + bytes);

	k->older = c->kept;
	c->kept = k;
	return memset(k + 1, 0, bytes);
}

/* Which of the ways seen it is, from now on once more. */
static int note_way(struct soft_code_cache *c, struct soft_pattern *p,
		    const uint32_t *off)
{
	int32_t way[SOFT_LANES];
	struct soft_seen *s;
	int i = 0;

	if (!p->seen)
		p->seen = keep_bytes(c, sizeof(*p->seen));
	s = p->seen;
	for (int k = 0; k < SOFT_LANES; k++)
		way[k] = (int32_t)(off[k] - off[0]);
	while (i < SEEN &&
	       (!s->times[i] || memcmp(s->way[i], way, sizeof(way))))
		i++;
	if (i == SEEN) {
		i = s->next++ % SEEN;
		memcpy(s->way[i], way, sizeof(way));
		s->times[i] = 0;
		p->n_misses += p->n_misses < MISSES;
	}
	s->times[i] += s->times[i] < OFTEN;
	return i;
}

/* From now on that is expected, instead of what was first. */
static void expect_seen(struct soft_code_cache *c, struct soft_pattern *p,
			int i)
{
	int32_t *way = keep_bytes(c, sizeof(p->seen->way[i]));

	memcpy(way, p->seen->way[i], sizeof(p->seen->way[i]));
	p->seen->times[i] = 0;
	if (p->n_ways == SOFT_WAYS)
		memmove(&p->way[0], &p->way[1],
			--p->n_ways * sizeof(p->way[0]));
	p->way[p->n_ways++] = way;
	p->n_misses = 0;
	p->version++;
}

bool soft_pattern_is_for(const struct soft_uop *u)
{
	const uint32_t *f = u->in.f;
	uint32_t off[2];
	bool store;

	switch (u->in.fmt) {
	case ISA_FMT_DS:
		return soft_lds_plain(u, &store, off);
	case ISA_FMT_MUBUF:
		return soft_buffer_plain(u, &store) && !f[ISA_F_IDXEN] &&
		       f[ISA_F_OFFEN];
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
		return soft_vmem_plain(u, &store);
	}
	return false;
}

void soft_pattern_note(const struct soft_wave *w, struct soft_code_cache *c,
		       struct soft_node *n)
{
	const struct isa_inst *in = &n->u.in;
	const uint32_t *addr = w->v[0][in->f[ISA_F_ADDR]];
	const bool own = in->fmt == ISA_FMT_SCRATCH;
	uint32_t off[SOFT_LANES];

	if (w->wave_size != SOFT_LANES || w->s[ISA_R_EXEC_LO] != ~0u)
		return;
	for (uint32_t i = 0; own && i < SOFT_LANES; i++)
		off[i] = (in->f[ISA_F_SVE] ? addr[i] : 0) +
			 i * w->scratch_lane_bytes;
	note_way(c, &n->pattern, own ? off : addr);
}

void soft_pattern_settle(struct soft_code_cache *c, struct soft_pattern *p,
			 uint32_t bytes)
{
	bool line = true;

	if (p->version || !p->seen)
		return;
	for (int i = 0; i < SEEN; i++)
		line &= p->seen->times[i] < OFTEN ||
			are_even(p->seen->way[i], bytes, false);
	for (int i = 0; i < SEEN && !line; i++)
		if (p->seen->times[i] == OFTEN)
			expect_seen(c, p, i);
	p->n_misses = 0;
}

void soft_pattern_learn(struct soft_code_cache *c, const struct soft_microop *m,
			const uint32_t *off)
{
	struct soft_pattern *p = soft_pattern_of(m);
	struct soft_native_move v;
	int i;

	if (m->ka != p->version) { /* made before that was known */
		c->again = true;
		return;
	}
	if (p->version == VERSIONS)
		return;
	i = note_way(c, p, off);
	if (p->seen->times[i] < OFTEN && p->n_misses < MISSES)
		return;
	c->again = true;
	if (p->n_misses == MISSES || !describe_move(&v, m, p->seen->way[i]))
		p->version = SOFT_SCATTERED;
	else
		expect_seen(c, p, i);
}
