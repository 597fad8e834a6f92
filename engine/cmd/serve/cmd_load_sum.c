/*
 * engine/cmd/serve/cmd_load_sum.c - what a run of requests comes to.
 */
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "engine/cmd/serve/cmd_load.h"
#include "results/stats/stats.h"

const char *load_end_name(enum load_end end)
{
	static const char *const names[LOAD_ENDS] = {
		[LOAD_ANSWERED] = "answered",	[LOAD_UNREACHED] = "unreached",
		[LOAD_TIMEOUT] = "timeout",	[LOAD_BUSY] = "busy",
		[LOAD_STATUS] = "status",	[LOAD_CUT] = "cut",
		[LOAD_MALFORMED] = "malformed", [LOAD_TOLD] = "told",
		[LOAD_EMPTY] = "empty",
	};

	return names[end];
}

struct values {
	double *v;
	size_t n, cap;
};

static void fill_quantiles(const struct values *x, double *half, double *nine,
			   double *most)
{
	double *sorted = res_sorted(x->v, x->n);

	if (x->n) {
		*half = res_quantile(sorted, x->n, 0.5);
		*most = res_quantile(sorted, x->n, 0.99);
		if (nine)
			*nine = res_quantile(sorted, x->n, 0.9);
	}
	free(sorted);
}

static bool is_good(const struct load_request *r, double within_first,
		    double within_token)
{
	double each = r->got > 1 ? (r->last - r->first) / (r->got - 1) : 0;

	return r->first - r->at <= within_first && each <= within_token;
}

static bool is_wrong(const struct load_request *r)
{
	return r->got > r->tokens ||
	       (r->counted && r->length && r->got != r->tokens);
}

void load_sum_up(struct load_sum *s, const struct load_run *r,
		 double within_first, double within_token)
{
	struct values first = { 0 }, gaps = { 0 }, whole = { 0 }, late = { 0 };
	double end = 0, tokens = 0, good = 0;
	double *v = s->v, ignored;

	*s = (struct load_sum){ 0 };
	for (int i = 0; i < LOAD_METRICS; i++)
		v[i] = NAN;
	for (size_t i = 0; i < r->n; i++) {
		const struct load_request *q = &r->v[i];
		s->ends[q->end]++;
		vec_push(&late, q->sent - q->at);
		end = fmax(end, q->last);
		if (q->end != LOAD_ANSWERED)
			continue;
		vec_push(&first, q->first - q->at);
		vec_push(&whole, q->last - q->at);
		for (size_t k = 0; k < q->gaps.n; k++)
			vec_push(&gaps, q->gaps.v[k]);
		tokens += q->got;
		good += is_good(q, within_first, within_token);
		s->wrong += is_wrong(q);
	}
	v[LOAD_THROUGHPUT] = tokens / end;
	v[LOAD_ANSWERS] = s->ends[LOAD_ANSWERED] / end;
	v[LOAD_GOODPUT] = good / end;
	fill_quantiles(&first, &v[LOAD_FIRST_50], &v[LOAD_FIRST_90],
		       &v[LOAD_FIRST_99]);
	fill_quantiles(&gaps, &v[LOAD_TOKEN_50], &v[LOAD_TOKEN_90],
		       &v[LOAD_TOKEN_99]);
	fill_quantiles(&whole, &v[LOAD_ANSWER_50], NULL, &v[LOAD_ANSWER_99]);
	fill_quantiles(&late, &ignored, NULL, &v[LOAD_LATE_99]);
	vec_fini(&first);
	vec_fini(&gaps);
	vec_fini(&whole);
	vec_fini(&late);
}
