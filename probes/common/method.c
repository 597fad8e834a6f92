/*
 * probes/common/method.c - costs measured by pairs of loops, in shuffled
 * rounds.
 */
#include <math.h>
#include <stdlib.h>

#include "probes/common/common.h"

/* Pairs that may be rejected per pair wanted before a series gives up. */
#define PATIENCE 20

static const char *const reject_name[PROBE_REJECTS] = {
	"good", "clock moved", "interrupted", "longer loop was not longer",
	"wrong final value",
};

enum probe_reject probe_pair_cycles(const struct probe_pair *p, double *cycles)
{
	const double clock = (p->before + p->after) / 2;

	*cycles = NAN;
	if (p->wrong)
		return PROBE_PAIR_VALUE;
	if (p->cut)
		return PROBE_PAIR_CUT;
	if (!(p->before > 0 && p->after > 0) ||
	    fabs(p->after - p->before) > PROBE_CLOCK_TOLERANCE * clock)
		return PROBE_PAIR_CLOCK;
	if (p->longer < p->shorter)
		return PROBE_PAIR_ORDER;
	*cycles = (p->longer - p->shorter) * clock / p->copies;
	return PROBE_PAIR_GOOD;
}

uint32_t probe_ticks_between(uint32_t start, uint32_t end, int bits)
{
	return (end - start) & (uint32_t)((UINT64_C(1) << bits) - 1);
}

void probe_random_cycle(uint32_t *next, uint32_t n, uint64_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		next[i] = i;
	for (uint32_t i = n - 1; i > 0; i--) {
		const uint32_t j = (uint32_t)(random_next(&seed) % i);
		const uint32_t was = next[i];

		next[i] = next[j];
		next[j] = was;
	}
}

static bool is_stopped(const struct probe_plan *p)
{
	return p->stop && *p->stop;
}

/* One sample; s->gave_up when it cannot be had. */
static bool take_sample(const struct probe_plan *plan, struct probe_series *s,
			struct err *e)
{
	double v[PROBE_PAIRS_MAX];
	size_t n = 0;

	for (size_t left = plan->pairs * PATIENCE; n < plan->pairs; left--) {
		struct probe_pair p = { 0 };

		if (is_stopped(plan))
			return true;
		if (!left) {
			s->gave_up = true;
			return true;
		}
		if (!s->read(s->ctx, &p, e))
			return err_wrap(e, "%s", s->name);
		const enum probe_reject why = probe_pair_cycles(&p, &v[n]);
		s->rejected[why] += why != PROBE_PAIR_GOOD;
		if (why == PROBE_PAIR_VALUE) {
			s->gave_up = true; /* again would be wrong again */
			return true;
		}
		if (why != PROBE_PAIR_GOOD)
			continue;
		s->clock_sum += (p.before + p.after) / 2;
		s->clock = s->clock_sum / ++s->n_clocks;
		n++;
	}
	s->v[s->n++] = res_median(v, n).value;
	return true;
}

static void shuffle_series(struct probe_series **s, size_t n, uint64_t *state)
{
	for (size_t i = n - 1; i > 0; i--) {
		const size_t j = random_next(state) % (i + 1);
		struct probe_series *was = s[i];

		s[i] = s[j];
		s[j] = was;
	}
}

bool probe_measure(const struct probe_plan *plan, struct probe_series **s,
	       size_t n, struct err *e)
{
	uint64_t state = plan->seed;

	if (!n)
		return true;
	struct probe_series **order =
		xmalloc(n * sizeof(struct probe_series *));
	for (size_t i = 0; i < n; i++)
		order[i] = s[i];
	bool good = true;
	for (size_t round = 0; round < plan->samples && good; round++) {
		shuffle_series(order, n, &state);
		for (size_t i = 0; i < n && good && !is_stopped(plan); i++) {
			if (order[i]->gave_up)
				continue;
			good = take_sample(plan, order[i], e);
			if (plan->progress)
				progress_step(plan->progress, 1);
		}
	}
	free(order);
	return good;
}

struct res_interval probe_series_median(const struct probe_series *s)
{
	struct res_interval r = res_median(s->v, s->n);
	const double wide = fabs(r.value) * PROBE_CLOCK_TOLERANCE / 2 +
			    s->floor;

	r.lo -= wide;
	r.hi += wide;
	return r;
}

void probe_rejects_print(const unsigned rejected[PROBE_REJECTS],
			 struct buf *out)
{
	bool any = false;

	for (int i = PROBE_PAIR_CLOCK; i < PROBE_REJECTS; i++)
		if (rejected[i]) {
			buf_printf(out, "%s%u %s", any ? ", " : "", rejected[i],
				   reject_name[i]);
			any = true;
		}
}

void probe_rejects_add(struct probe_rejects *all, const struct probe_series *s,
		       struct table *t)
{
	struct buf why = { 0 };

	for (int i = PROBE_PAIR_CLOCK; i < PROBE_REJECTS; i++)
		all->n[i] += s->rejected[i];
	all->empty += !s->n && !s->rejected[PROBE_PAIR_VALUE];
	all->column = true;
	probe_rejects_print(s->rejected, &why);
	if (t && why.len)
		table_cell(t, t->n_cols - 1, "%s", why.data);
	buf_fini(&why);
}

bool probe_is_for_people(const struct probe_opts *o)
{
	return o->format == TABLE_TEXT || o->format == TABLE_MARKDOWN;
}

void probe_bytes_cell(const struct probe_opts *o, struct table *t, int col,
		      uint64_t bytes)
{
	struct buf text = { 0 };

	if (probe_is_for_people(o)) {
		unit_print(&text, (double)bytes, "B");
		table_cell(t, col, "%s", text.data);
	} else {
		table_cell(t, col, "%llu", (unsigned long long)bytes);
	}
	buf_fini(&text);
}

static void say_rejects(const struct probe_rejects *all)
{
	struct buf why = { 0 };

	probe_rejects_print(all->n, &why);
	if (why.len)
		fold_printf(stderr, 2,
			    "t0-probe: measured again: %s (--csv has them "
			    "by row)\n",
			    why.data);
	if (all->empty)
		fold_printf(
			stderr, 2,
			"t0-probe: %u row%s without a value: what else "
			"runs here left no time to measure; again when it is "
			"idle\n",
			all->empty, all->empty == 1 ? "" : "s");
	buf_fini(&why);
}

bool probe_print_table(const struct probe_opts *o, const struct table *t,
		       const struct probe_rejects *all, struct err *e)
{
	FILE *out = o->format_out ? fopen(o->format_out, "w") : stdout;
	struct table shown = *t;
	bool good;

	if (!out)
		return err_set(e, ERR_IO, "%s: cannot be written",
			       o->format_out);
	if (all && all->column && !o->quiet)
		say_rejects(all);
	if (all && all->column && probe_is_for_people(o))
		shown.n_cols--;
	good = table_print(&shown, o->format, out, e);
	if (out != stdout && fclose(out) && good)
		good = err_set(e, ERR_IO, "cannot be written");
	if (!good && o->format_out)
		return err_wrap(e, "%s", o->format_out);
	return good && stdout_check(e);
}
