/*
 * The method: pairs are judged, samples collected in shuffled rounds.
 */
#include <math.h>
#include <stdlib.h>

#include "probes/micro/micro.h"

/* Pairs that may be rejected per pair wanted before a series gives up. */
#define PATIENCE 20

static const char *const reject_name[MICRO_REJECTS] = {
	"good", "clock moved", "interrupted", "longer loop was not longer",
	"wrong final value",
};

enum micro_reject micro_judge(const struct micro_pair *p, double *cycles)
{
	const double clock = (p->before + p->after) / 2;

	*cycles = NAN;
	if (p->wrong)
		return MICRO_VALUE;
	if (p->cut)
		return MICRO_CUT;
	if (!(p->before > 0 && p->after > 0) ||
	    fabs(p->after - p->before) > MICRO_CLOCK_TOLERANCE * clock)
		return MICRO_CLOCK;
	if (p->longer < p->shorter)
		return MICRO_ORDER;
	*cycles = (p->longer - p->shorter) * clock / p->copies;
	return MICRO_GOOD;
}

uint32_t micro_ticks(uint32_t start, uint32_t end, int bits)
{
	return (end - start) & (uint32_t)((UINT64_C(1) << bits) - 1);
}

void micro_cycle(uint32_t *next, uint32_t n, uint64_t seed)
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

static bool stopped(const struct micro_plan *p)
{
	return p->stop && *p->stop;
}

/* One sample; s->gave_up when it cannot be had. */
static bool sample(const struct micro_plan *plan, struct micro_series *s,
		   struct err *e)
{
	double v[MICRO_PAIRS_MAX];
	size_t n = 0;

	for (size_t left = plan->pairs * PATIENCE; n < plan->pairs; left--) {
		struct micro_pair p = { 0 };

		if (stopped(plan))
			return true;
		if (!left) {
			s->gave_up = true;
			return true;
		}
		if (!s->read(s->ctx, &p, e))
			return err_wrap(e, "%s", s->name);
		const enum micro_reject why = micro_judge(&p, &v[n]);
		s->rejected[why] += why != MICRO_GOOD;
		if (why == MICRO_VALUE) {
			s->gave_up = true; /* again would be wrong again */
			return true;
		}
		if (why != MICRO_GOOD)
			continue;
		s->clock_sum += (p.before + p.after) / 2;
		s->clock = s->clock_sum / ++s->n_clocks;
		n++;
	}
	s->v[s->n++] = res_median(v, n).value;
	return true;
}

static void shuffle(struct micro_series **s, size_t n, uint64_t *state)
{
	for (size_t i = n - 1; i > 0; i--) {
		const size_t j = random_next(state) % (i + 1);
		struct micro_series *was = s[i];

		s[i] = s[j];
		s[j] = was;
	}
}

bool micro_run(const struct micro_plan *plan, struct micro_series **s,
	       size_t n, struct err *e)
{
	uint64_t state = plan->seed;

	if (!n)
		return true;
	struct micro_series **order =
		xmalloc(n * sizeof(struct micro_series *));
	for (size_t i = 0; i < n; i++)
		order[i] = s[i];
	bool good = true;
	for (size_t round = 0; round < plan->samples && good; round++) {
		shuffle(order, n, &state);
		for (size_t i = 0; i < n && good && !stopped(plan); i++) {
			if (order[i]->gave_up)
				continue;
			good = sample(plan, order[i], e);
			if (plan->progress)
				progress_step(plan->progress, 1);
		}
	}
	free(order);
	return good;
}

struct res_interval micro_result(const struct micro_series *s)
{
	struct res_interval r = res_median(s->v, s->n);
	const double wide = fabs(r.value) * MICRO_CLOCK_TOLERANCE / 2 +
			    s->floor;

	r.lo -= wide;
	r.hi += wide;
	return r;
}

void micro_rejections(const struct micro_series *s, struct buf *out)
{
	bool any = false;

	for (int i = MICRO_CLOCK; i < MICRO_REJECTS; i++)
		if (s->rejected[i]) {
			buf_printf(out, "%s%u %s", any ? ", " : "",
				   s->rejected[i], reject_name[i]);
			any = true;
		}
}
