/*
 * compiler/sim/steady_state.c - time jumps over loops in a steady state.
 *
 * With sim_config.trips = N the waves' last N trips of their loops are looked
 * at now and then.  When every resident wave is in an innermost loop, and made
 * the newer half of its trips as fast as the older half, nothing new will
 * happen until the first of them leaves its loop.  So time jumps to a little
 * before: every wave's source goes on, untimed, by as many trips as the wave
 * would have made, workgroups by their own pace, and what is counted (stalls,
 * pipes, bytes) grows as it did since the last look.  Workgroups that compete
 * for a pipe drift against each other; if their paces only differ a little,
 * and all together are as fast as before, time jumps by a few times what was
 * looked at, half-way at most, and they are looked at again.  Where it does not
 * get steady, N grows, and in the end all is simulated.
 *
 * That is sound for loops whose trips cost the same: the sources' addresses
 * move on, but caches that would fill beyond the trips that were looked at are
 * not seen.  tests/sim/steady-state.c compares with the full simulation.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim_int.h"

/*
 * The halves of an even pace differ by so many cycles at most; of paces that
 * drift, by one part in DRIFT, and the sum of all paces by one in DRIFT_ALL.
 * Waves that are held up by older ones have made fewer trips than those.
 */
enum { EVEN_CYCLES = 2, DRIFT = 6, DRIFT_ALL = 32, TRIPS_LEAST = 4 };
/* Drifting workgroups jump over so many times what was looked at. */
enum { DRIFT_JUMP = 4 };

enum pace { PACE_NONE, PACE_DRIFTS, PACE_EVEN };

/* What grows, at a time. */
struct counters {
	uint64_t at;
	double pipe[SIM_PIPE_COUNT], bytes[SIM_LEVELS], exchanged, issues;
	int n_lines;
	struct line_count *line; /* [n_lines] */
};

struct steady {
	int trips;	/* of each wave that are looked at */
	uint64_t look;	/* not before this cycle */
	struct counters before, now;
};

/* ---- counters ---- */

static void take_counters(const struct sim *s, struct counters *c)
{
	const struct sim_result *r = s->r;

	c->at = s->now;
	for (int p = 0; p < SIM_PIPE_COUNT; p++)
		c->pipe[p] = (double)r->busy[p];
	c->pipe[SIM_PIPE_L2] = s->l2_busy;
	c->pipe[SIM_PIPE_MEMORY] = s->memory_busy;
	for (int k = 0; k < SIM_LEVELS; k++)
		c->bytes[k] = (double)r->bytes[k];
	c->exchanged = r->exchanged_bytes;
	c->issues = (double)r->issues;
	c->n_lines = r->n_lines;
	c->line = xrealloc(c->line, ((size_t)r->n_lines + 1) *
			   sizeof(*c->line));
	memcpy(c->line, s->count, (size_t)r->n_lines * sizeof(*c->line));
}

static void grow_counter(uint64_t *n, uint64_t from, uint64_t to, double by)
{
	*n += (uint64_t)(by * (double)(to - from) + 0.5);
}

static void repeat_line(struct line_count *l, const struct line_count *from,
			const struct line_count *to, double by)
{
	for (int k = 0; k < SIM_STALL_COUNT; k++)
		grow_counter(&l->stall[k], from->stall[k], to->stall[k], by);
	grow_counter(&l->conflicts, from->conflicts, to->conflicts, by);
	grow_counter(&l->lines, from->lines, to->lines, by);
}

/* What happened from a to b happens `by` times more. */
static void repeat_counters(struct sim *s, const struct counters *a,
			    const struct counters *b, double by)
{
	static const struct line_count none;
	struct sim_result *r = s->r;

	for (int p = 0; p < SIM_PIPE_COUNT; p++)
		r->busy[p] += (uint64_t)(by * (b->pipe[p] - a->pipe[p]));
	s->l2_busy += by * (b->pipe[SIM_PIPE_L2] - a->pipe[SIM_PIPE_L2]);
	s->memory_busy += by * (b->pipe[SIM_PIPE_MEMORY] -
				a->pipe[SIM_PIPE_MEMORY]);
	for (int k = 0; k < SIM_LEVELS; k++)
		r->bytes[k] += (uint64_t)(by * (b->bytes[k] - a->bytes[k]));
	r->exchanged_bytes += by * (b->exchanged - a->exchanged);
	r->issues += (uint64_t)(by * (b->issues - a->issues));
	for (int i = 0; i < b->n_lines; i++)
		repeat_line(&s->count[i], i < a->n_lines ? &a->line[i] : &none,
			    &b->line[i], by);
}

/* ---- waves ---- */

/* When the wave came to its branch, `back` trips ago. */
static uint64_t arrival_cycle(const struct wave *w, int back)
{
	return w->arrival[(w->trips - (uint64_t)back) % SIM_TRIPS_MAX];
}

static uint64_t abs_diff(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Half of the trips that are looked at. */
static int half_of(const struct steady *t, const struct wave *w)
{
	uint64_t n = (uint64_t)t->trips;

	return (int)(w->trips <= n ? (w->trips - 1) / 2 : n / 2);
}

static enum pace pace_of(const struct steady *t, const struct wave *w,
			 double *older, double *newer)
{
	if (w->trips <= TRIPS_LEAST || w->jump)
		return PACE_NONE;
	int half = half_of(t, w);
	uint64_t last = arrival_cycle(w, 0) - arrival_cycle(w, half);
	uint64_t first = arrival_cycle(w, half) - arrival_cycle(w, 2 * half);
	uint64_t diff = abs_diff(last, first);

	*newer += half / (double)last;
	*older += half / (double)first;
	if (diff <= EVEN_CYCLES)
		return PACE_EVEN;
	return diff <= first / DRIFT ? PACE_DRIFTS : PACE_NONE;
}

/* Cycles of a trip of the wave. */
static double trip_cycles(const struct steady *t, const struct wave *w)
{
	int n = 2 * half_of(t, w);

	return (double)(arrival_cycle(w, 0) - arrival_cycle(w, n)) / n;
}

static enum pace pace_of_all(const struct sim *s)
{
	double older = 0, newer = 0;
	enum pace worst = PACE_EVEN;

	for (int i = 0; i < s->n_waves; i++) {
		enum pace p = pace_of(s->steady, s->wave[i], &older, &newer);

		worst = p < worst ? p : worst;
	}
	return fabs(newer - older) > older / DRIFT_ALL ? PACE_NONE : worst;
}

/* Cycles until the first wave is at the end of its loop, less two trips. */
static bool find_jump(struct sim *s, double *cycles)
{
	*cycles = 1e300;
	for (int i = 0; i < s->n_waves; i++) {
		const struct wave *w = s->wave[i];
		uint64_t left;

		if (!s->src->trips(s->src, w->id, w->branch, &left, s->e))
			return false;
		double n = left > 2 ? (double)(left - 2) : 0;
		double own = n * trip_cycles(s->steady, w);

		*cycles = own < *cycles ? own : *cycles;
	}
	return true;
}

/* Waves of a workgroup stay together: its first one's pace is everybody's. */
static void share_jump(struct sim *s, double cycles)
{
	for (int i = 0; i < s->n_waves; i++) {
		struct wave *w = s->wave[i], *first = w;

		for (int k = i; k-- > 0;)
			if (s->wave[k]->group == w->group)
				first = s->wave[k];
		if (first != w) {
			w->jump = first->jump;
			continue;
		}
		w->owed += cycles / trip_cycles(s->steady, w);
		w->jump = (uint64_t)(w->owed + 0.5);
		w->owed -= (double)w->jump;
	}
}

/* ---- looking ---- */

static bool check_pace(struct sim *s, const struct wave *w)
{
	struct steady *t = s->steady;
	enum pace pace = pace_of_all(s);
	bool seen = t->before.line;
	struct counters swap = t->before;
	double cycles = 0;

	t->look =
		s->now + (arrival_cycle(w, 0) - arrival_cycle(w, t->trips / 2));
	take_counters(s, &t->now);
	if (pace && seen && !find_jump(s, &cycles))
		return false;
	double seen_for = (double)(t->now.at - t->before.at);

	if (pace == PACE_DRIFTS)
		cycles = fmin(cycles / 2, DRIFT_JUMP * seen_for);
	/* A jump over less than what was looked at is not worth it. */
	if (cycles > seen_for) {
		share_jump(s, cycles);
		s->skew += (uint64_t)(cycles + 0.5);
		repeat_counters(s, &t->before, &t->now, cycles / seen_for);
		free(t->before.line);
		t->before = (struct counters){ 0 };
		return true;
	}
	if (!pace && seen && t->trips < SIM_TRIPS_MAX * 2 / 3)
		t->trips += t->trips / 4;
	t->before = t->now;
	t->now = swap;
	return true;
}

bool sim_steady_branch(struct sim *s, struct wave *w)
{
	struct steady *t = s->steady;
	uint64_t n;

	if (w->branch != w->pc)
		w->trips = 0;
	w->branch = w->pc;
	w->arrival[++w->trips % SIM_TRIPS_MAX] = s->now;
	if (w->jump) {
		if (!s->src->jump(s->src, w->id, w->jump, &n, s->e))
			return false;
		w->jump = 0;
	}
	if (w->trips > (uint64_t)t->trips && s->now >= t->look)
		return check_pace(s, w);
	return true;
}

void sim_steady_jumped(struct wave *w, bool jumped)
{
	if (jumped)
		return;
	w->branch = 0;
	w->trips = 0;
}

void sim_steady_init(struct sim *s)
{
	int n = s->c->trips;

	if (n <= 0 || !s->src->jump)
		return;
	s->steady = xcalloc(1, sizeof(*s->steady));
	s->steady->trips = n < 4 ? 4 : n < SIM_TRIPS_MAX / 2
					   ? n : SIM_TRIPS_MAX / 2;
}

void sim_steady_fini(struct sim *s)
{
	if (!s->steady)
		return;
	s->r->skipped = s->skew;
	free(s->steady->before.line);
	free(s->steady->now.line);
	free(s->steady);
	s->steady = NULL;
}
