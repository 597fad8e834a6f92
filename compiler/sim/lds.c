/*
 * compiler/sim/lds.c - the local data share: banks, and the path to them.
 */
#include "compiler/sim/sim_int.h"

enum { BANKS_MAX = 64 };

/* ---- banks ---- */

/* Lanes that are served together, by bytes of one lane's access. */
static uint32_t phase_lanes(const struct sim *s, uint32_t bytes)
{
	if (bytes <= 4)
		return 32;
	return (uint32_t)sim_cycles(s, bytes <= 8 ? COST_LDS_PHASE64
						  : COST_LDS_PHASE128);
}

/* Division by what nearly always is a power of two. */
static uint32_t bank_of(uint32_t dword, uint32_t banks)
{
	return banks & (banks - 1) ? dword % banks : dword & (banks - 1);
}

/*
 * Data cycles of a group of lanes: the most distinct rows of one bank.  Lanes
 * that read one row share it; atomics on it come one after the other.
 */
static uint32_t group_cycles(const struct sim *s, const struct sim_step *st,
			     uint32_t from, uint32_t to, bool atomic)
{
	uint32_t banks = (uint32_t)sim_cycles(s, COST_LDS_BANKS), most = 0;
	uint32_t row[BANKS_MAX][64]; /* [bank][n], of which n[bank] are set */
	uint8_t n[BANKS_MAX] = { 0 };

	banks = banks > BANKS_MAX ? BANKS_MAX : banks ? banks : 1;
	for (uint32_t a = from; a < to; a++)
		for (uint32_t b = 0; b < st->access_bytes; b += 4) {
			uint32_t dword = (uint32_t)(st->access[a].at + b) / 4;
			uint32_t bank = bank_of(dword, banks), k = 0;

			while (k < n[bank] && (atomic || row[bank][k] != dword))
				k++;
			if (k == n[bank] && k < 64)
				row[bank][n[bank]++] = dword;
			most = n[bank] > most ? n[bank] : most;
		}
	return most ? most : 1;
}

/*
 * Tells patterns of lanes apart, wherever in LDS they begin.  Four chains, for
 * one would wait for each of its products.
 */
static uint64_t hash_pattern(const struct sim_step *st)
{
	const uint64_t by = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t h[4] = { st->n_accesses * 256 + st->access_bytes, 1, 2, 3 };
	uint64_t first = st->access[0].at & ~UINT64_C(3);
	uint32_t a = 0;

	for (; a + 4 <= st->n_accesses; a += 4)
#pragma GCC unroll 4
		for (uint32_t k = 0; k < 4; k++)
			h[k] = (h[k] ^ (st->access[a + k].at - first)) * by;
	for (; a < st->n_accesses; a++)
		h[0] = (h[0] ^ (st->access[a].at - first)) * by;
	for (uint32_t k = 1; k < 4; k++)
		h[0] = (h[0] ^ h[k]) * by;
	return h[0] | 1;
}

static void find_cycles(const struct sim *s, struct info *i,
			const struct sim_step *st)
{
	uint32_t lanes = phase_lanes(s, st->access_bytes), groups = 0;

	i->lds_cycles = 0;
	for (uint32_t a = 0; a < st->n_accesses; a += lanes, groups++)
		i->lds_cycles += group_cycles(s, st, a,
					      a + lanes < st->n_accesses
						      ? a + lanes
						      : st->n_accesses,
					      i->atomic);
	i->lds_extra = (i->lds_cycles - groups) *
		       (uint32_t)sim_cycles(s, COST_LDS_CONFLICT);
	i->lds_cycles = groups + i->lds_extra;
}

/*
 * Cycles of the data path; i->lds_extra counts those that conflicts cost.
 * Loops repeat their patterns, so the last one is kept.
 */
static uint32_t lds_cycles(const struct sim *s, struct info *i,
			   const struct sim_step *st)
{
	if (!st->n_accesses) {
		i->lds_extra = 0;
		return i->lds_dwords * (uint32_t)s->src->wave_size / 32;
	}
	uint64_t seen = hash_pattern(st);
	if (seen != i->lds_pattern)
		find_cycles(s, i, st);
	i->lds_pattern = seen;
	if (s->c->without & SIM_NO_CONFLICTS) {
		i->lds_cycles -= i->lds_extra;
		i->lds_extra = 0;
	}
	return i->lds_cycles;
}

/* ---- accesses ---- */

void sim_lds(struct sim *s, struct wave *w, const struct sim_step *st)
{
	int half = s->src->cu_mode ? w->cu : s->group[w->group].half;
	struct info *i = w->info;
	uint32_t cycles = lds_cycles(s, i, st);
	uint64_t begin = sim_max(sim_export_path(s, w), s->cu[half].lds_free);
	uint64_t at;

	cycles = cycles > i->issue ? cycles : i->issue;
	s->cu[half].lds_free = begin + cycles;
	ring_put(&s->cu[w->cu].lds_data, begin + cycles);
	/* The wait for it takes the last cycle of the latency. */
	at = begin + cycles - 2 + i->latency - sim_cycles(s, COST_LDS_START);
	if (sim_waits_for_data(s)) /* what it stores may be on its way */
		at = sim_max(at, sim_data_ready(w) + i->latency);
	at = w->order_lds = sim_max(at, w->order_lds);
	if (sim_waits_for_data(s))
		sim_data_put(w, at);
	pending_drop(&w->lgkm, s->now);
	pending_add(&w->lgkm, at, SIM_LDSCNT);
	s->count[i->line].conflicts += i->lds_extra;
	w->busy = cycles;
}
