/*
 * compiler/sim/groups.c - dispatch of workgroups: slots, VGPRs, LDS, barriers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/sim_int.h"

enum {
	SLOTS = 16,	      /* waves of a SIMD */
	LDS_HALF = 65536,     /* bytes */
	BARRIERS = 16,	      /* of a CU */
};

static bool has_wave_slot(const struct sim *s, int simd)
{
	return s->simd[simd].waves < SLOTS &&
	       s->simd[simd].vgprs + s->vgpr_need <= (int)s->chip->vgprs;
}

/* The emptiest of SIMDs first..last that has room; -1: none. */
static int find_emptiest_simd(const struct sim *s, int first, int last)
{
	int best = -1;

	for (int k = first; k <= last; k++)
		if (has_wave_slot(s, k) &&
		    (best < 0 || s->simd[k].waves < s->simd[best].waves))
			best = k;
	return best;
}

static void occupy_simd(struct sim *s, int simd, int by)
{
	s->simd[simd].waves += by;
	s->simd[simd].vgprs += by * s->vgpr_need;
}

/* SIMDs for the waves of a group; false, and nothing taken, without room. */
static bool place_waves(struct sim *s, int group, int first, int last,
			int *simd)
{
	int n = s->src->waves_per_group, k = 0;

	for (; k < n; k++) {
		simd[k] = s->c->simd ? s->c->simd[group * n + k] :
				       find_emptiest_simd(s, first, last);
		if (simd[k] < 0 || !has_wave_slot(s, simd[k]))
			break;
		occupy_simd(s, simd[k], 1);
	}
	if (k == n)
		return true;
	while (k--)
		occupy_simd(s, simd[k], -1);
	return false;
}

/*
 * A WGP-mode group may lie anywhere in both halves, across their border, too
 * (RDNA3 ISA 12.1); it counts to the half that has more room.
 */
static int find_wgp_half(const struct sim *s)
{
	const struct cu *a = &s->cu[s->next_cu], *b = &s->cu[!s->next_cu];

	if (a->lds_bytes + b->lds_bytes + s->lds_need > 2 * LDS_HALF ||
	    (s->src->waves_per_group > 1 &&
	     a->groups + b->groups >= 2 * BARRIERS))
		return -1;
	return a->lds_bytes <= b->lds_bytes ? s->next_cu : !s->next_cu;
}

/* A CU whose half has room for the group's LDS and barrier; -1: none. */
static int find_half(const struct sim *s)
{
	if (!s->src->cu_mode)
		return find_wgp_half(s);
	for (int k = 0; k < 2; k++) {
		const struct cu *cu = &s->cu[(s->next_cu + k) % 2];

		if (cu->lds_bytes + s->lds_need <= LDS_HALF &&
		    (s->src->waves_per_group == 1 || cu->groups < BARRIERS))
			return (s->next_cu + k) % 2;
	}
	return -1;
}

static bool find_place(struct sim *s, int group, int *half, int *simd)
{
	*half = find_half(s);
	if (*half < 0)
		return false;
	if (!s->src->cu_mode)
		return place_waves(s, group, 0, SIM_SIMDS - 1, simd);
	if (place_waves(s, group, *half * 2, *half * 2 + 1, simd))
		return true;
	*half = !*half;
	return s->cu[*half].lds_bytes + s->lds_need <= LDS_HALF &&
	       place_waves(s, group, *half * 2, *half * 2 + 1, simd);
}

static struct wave *new_wave(struct sim *s)
{
	for (int i = 0; i < SIM_WAVES_MAX; i++)
		if (s->storage[i].id < 0)
			return memset(&s->storage[i], 0, sizeof(struct wave));
	BUG("more than %d waves", SIM_WAVES_MAX);
}

/* The dispatcher starts a wave per cycle and shader engine, in turn. */
static uint64_t launch_time(struct sim *s, int wave)
{
	double wgps = cost_value(s->m, COST_N_WGP) /
		      cost_value(s->m, COST_N_SE);
	uint64_t every = (uint64_t)(wgps * cost_value(s->m, COST_WAVE_RATE));

	if (s->c->start)
		return sim_max(s->c->start[wave], s->now);
	s->next_launch = sim_max(s->next_launch + every, s->now);
	return sim_max(s->next_launch, s->slot_free);
}

static void start_wave(struct sim *s, int group, int k, int simd)
{
	struct wave *w = new_wave(s);
	int n = s->src->waves_per_group;

	w->id = group * n + k;
	w->group = group;
	w->simd = simd;
	w->cu = simd / 2;
	w->start = launch_time(s, w->id);
	w->place = s->n_waves;
	s->ready[w->place] = w->start;
	if (!s->c->start) {
		w->hold = w->start + sim_cycles(s, COST_WAVE_START);
		w->hold_why = SIM_START;
	}
	s->wave[s->n_waves++] = w;
	s->r->wave[w->id].simd = simd;
	s->r->wave[w->id].start = w->start + s->skew;
}

static void note_occupancy(struct sim *s, uint64_t cycle)
{
	struct sim_result *r = s->r;

	if (r->n_occupancy &&
	    r->occupancy[r->n_occupancy - 1].cycle >= cycle) {
		r->occupancy[r->n_occupancy - 1].waves = s->n_waves;
	} else {
		VEC_GROW(r->occupancy, r->n_occupancy, 1, s->cap_occupancy);
		r->occupancy[r->n_occupancy++] =
			(struct sim_occupancy){ cycle, s->n_waves };
	}
	if (s->n_waves > r->resident)
		r->resident = s->n_waves;
}

static bool start_group(struct sim *s, int half, const int *simd)
{
	int g = s->next_group++, n = s->src->waves_per_group;

	s->group[g] = (struct group){ .left = n, .alone = n == 1,
				      .half = half };
	s->cu[half].lds_bytes += s->lds_need;
	s->cu[half].groups += n > 1;
	s->next_cu = !half;
	for (int k = 0; k < n; k++)
		start_wave(s, g, k, simd[k]);
	note_occupancy(s, s->now);
	return !s->src->begin || s->src->begin(s->src, g, s->now, s->e);
}

bool sim_launch(struct sim *s)
{
	int simd[SIM_WAVES_MAX], half;

	while (s->next_group < s->src->n_groups &&
	       s->n_waves + s->src->waves_per_group <= SIM_WAVES_MAX &&
	       find_place(s, s->next_group, &half, simd))
		if (!start_group(s, half, simd))
			return false;
	if (s->n_waves || s->next_group == s->src->n_groups)
		return true;
	return err_set(s->e, ERR_INPUT, "a workgroup of %d waves with %d VGPRs "
		       "and %u bytes of LDS does not fit a WGP",
		       s->src->waves_per_group, s->src->vgprs,
		       s->src->lds_bytes);
}

static void free_group(struct sim *s, const struct group *g)
{
	s->cu[g->half].lds_bytes -= s->lds_need;
	s->cu[g->half].groups -= s->src->waves_per_group > 1;
}

/* Cycles from its own arrival to the last one's. */
static void count_barrier_wait(struct sim *s, struct wave *w)
{
	uint64_t n = s->now - w->issued;

	w->stall[SIM_BARRIER] += n;
	s->count[w->info->line].stall[SIM_BARRIER] += n;
}

/* The barrier opens when all waves that have not ended are there. */
static void release_barrier(struct sim *s, int group)
{
	struct group *g = &s->group[group];
	uint64_t on_simd[SIM_SIMDS] = { 0 }, most = 0;

	if (!g->arrived || g->arrived < g->left)
		return;
	for (int i = 0; i < s->n_waves; i++)
		if (s->wave[i]->group == group)
			most = sim_max(most, ++on_simd[s->wave[i]->simd]);
	uint64_t at = g->last + sim_cycles(s, COST_BARRIER) +
		      (most - 1) * sim_cycles(s, COST_BARRIER_WAVE);
	for (int i = 0; i < s->n_waves; i++)
		if (s->wave[i]->group == group && s->wave[i]->at_barrier) {
			s->wave[i]->at_barrier = false;
			s->wave[i]->hold = at;
			s->wave[i]->hold_why = SIM_BARRIER;
			s->ready[i] = s->now + 1;
			count_barrier_wait(s, s->wave[i]);
		}
	g->arrived = 0;
}

void sim_arrive(struct sim *s, struct wave *w)
{
	struct group *g = &s->group[w->group];

	if (g->alone)
		return;
	w->at_barrier = true;
	s->ready[w->place] = SIM_NEVER;
	g->arrived++;
	g->last = s->now;
	release_barrier(s, w->group);
}

void sim_retire(struct sim *s, struct wave *w)
{
	struct sim_wave_times *t = &s->r->wave[w->id];
	int i = w->place;

	t->end = w->end + s->skew;
	memcpy(t->stall, w->stall, sizeof(t->stall));
	occupy_simd(s, w->simd, -1);
	for (s->n_waves--; i < s->n_waves; i++) {
		s->wave[i] = s->wave[i + 1];
		s->wave[i]->place = i;
		s->ready[i] = s->ready[i + 1];
	}
	s->slot_free = w->end + sim_cycles(s, COST_WAVE_REUSE);
	if (!--s->group[w->group].left)
		free_group(s, &s->group[w->group]);
	release_barrier(s, w->group);
	w->id = -1;
	note_occupancy(s, s->now);
}
