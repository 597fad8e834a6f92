/*
 * engine/text/sample.c - the next token from logits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/text.h"

static bool range_check(const char *name, double v, double lo, double hi,
			struct err *e)
{
	if (v >= lo && v <= hi)
		return true;
	return err_set(e, ERR_USAGE, "%s is %g; wanted %g to %g", name, v, lo,
		       hi);
}

bool qwen_sampler_init(struct qwen_sampler *s, const struct qwen_sampling *how,
		       uint32_t vocab, struct err *e)
{
	*s = (struct qwen_sampler){ .how = *how, .state = how->seed,
				    .vocab = vocab };
	if (!range_check("temperature", how->temperature, 0, 1e6, e) ||
	    !range_check("top-p", how->top_p, 0, 1, e) ||
	    !range_check("min-p", how->min_p, 0, 1, e) ||
	    !range_check("repetition penalty", how->repetition_penalty, 1e-3,
			 1e3, e))
		return false;
	s->candidate = xcalloc(vocab, sizeof(*s->candidate));
	s->p = xcalloc(vocab, sizeof(*s->p));
	s->seen = xcalloc(vocab, 1);
	return true;
}

void qwen_sampler_fini(struct qwen_sampler *s)
{
	free(s->candidate);
	free(s->p);
	free(s->seen);
	*s = (struct qwen_sampler){ 0 };
}

void qwen_sampler_see(struct qwen_sampler *s, uint32_t id)
{
	if (id < s->vocab)
		s->seen[id] = 1;
}

/* Upper 53 bits: uniform in [0, 1). */
static double draw_uniform(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* The logit after the penalty: away from tokens that were there. */
static float penalize_logit(const struct qwen_sampler *s, float logit,
			    uint32_t id)
{
	double r = s->how.repetition_penalty;

	if (!s->seen[id])
		return logit;
	return (float)(logit > 0 ? logit / r : logit * r);
}

/* The best id, and unless that is all that is wanted, candidates. */
static bool logits_take(struct qwen_sampler *s, const float *logits,
			uint32_t *best, struct err *e)
{
	bool greedy = s->how.temperature == 0;
	bool plain = s->how.repetition_penalty == 1;
	float top = -INFINITY;
	uint32_t at = 0;

	for (uint32_t i = 0, n = s->vocab; i < n; i++) {
		float v = logits[i];
		if (isnan(v))
			return err_set(e, ERR_DEVICE, "logit %u is NaN: the "
				       "model's output is broken", i);
		if (!plain)
			v = penalize_logit(s, v, i);
		if (!greedy)
			s->candidate[i] = (struct qwen_candidate){ v, i };
		if (v > top) {
			top = v;
			at = i;
		}
	}
	*best = at;
	if (!isfinite(top))
		return err_set(e, ERR_DEVICE, "the largest logit is %g: the "
			       "model's output is broken", (double)top);
	return true;
}

/* Best first; equal ones by id, so that the order is the same everywhere. */
static int best_first(const void *a, const void *b)
{
	const struct qwen_candidate *x = a, *y = b;

	if (x->logit != y->logit)
		return x->logit > y->logit ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Moves the k best of v[n] to the front, in any order (quickselect). */
static void select_best(struct qwen_candidate *v, uint32_t n, uint32_t k)
{
	uint32_t lo = 0, hi = n;

	while (hi - lo > 1 && k > lo && k < hi) {
		/* Never the last one: each round then leaves some behind. */
		struct qwen_candidate pivot = v[lo + (hi - lo - 1) / 2];
		uint32_t i = lo, j = hi - 1;
		for (;; i++, j--) {
			while (best_first(&v[i], &pivot) < 0)
				i++;
			while (best_first(&v[j], &pivot) > 0)
				j--;
			if (i >= j)
				break;
			struct qwen_candidate t = v[i];
			v[i] = v[j];
			v[j] = t;
		}
		if (k <= j + 1)
			hi = j + 1;
		else
			lo = j + 1;
	}
}

/* Unnormalized probabilities of the first n candidates, sorted; their sum. */
static double weigh_candidates(struct qwen_sampler *s, uint32_t n)
{
	double top = s->candidate[0].logit, sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		s->p[i] = exp((s->candidate[i].logit - top) /
			      s->how.temperature);
		sum += s->p[i];
	}
	return sum;
}

/* How many of the n candidates top-p and min-p leave; at least one. */
static uint32_t cut_candidates(const struct qwen_sampler *s, uint32_t n,
			       double sum)
{
	double before = 0;
	uint32_t keep = 0;

	while (keep < n && (keep == 0 || before < s->how.top_p * sum) &&
	       s->p[keep] >= s->how.min_p * s->p[0])
		before += s->p[keep++];
	return keep;
}

/* Candidates that are left, best first, and the sum of their weights. */
static uint32_t weigh_left(struct qwen_sampler *s, double *sum)
{
	uint32_t n = s->vocab;

	if (s->how.top_k && s->how.top_k < n) {
		select_best(s->candidate, n, s->how.top_k);
		n = s->how.top_k;
	}
	qsort(s->candidate, n, sizeof(*s->candidate), best_first);
	n = cut_candidates(s, n, weigh_candidates(s, n));
	*sum = 0;
	for (uint32_t i = 0; i < n; i++)
		*sum += s->p[i];
	return n;
}

/* One of the first n candidates, by their weights. */
static uint32_t draw_candidate(struct qwen_sampler *s, uint32_t n, double sum)
{
	double draw = draw_uniform(&s->state) * sum, at = 0;

	for (uint32_t i = 0; i < n; i++) {
		at += s->p[i];
		if (draw < at)
			return s->candidate[i].id;
	}
	return s->candidate[n - 1].id;
}

bool qwen_sample(struct qwen_sampler *s, const float *logits, uint32_t *id,
		 struct err *e)
{
	double sum;
	uint32_t n;

	if (!logits_take(s, logits, id, e))
		return false;
	if (s->how.temperature == 0)
		return true;
	n = weigh_left(s, &sum);
	*id = draw_candidate(s, n, sum);
	return true;
}

bool qwen_sample_odds(struct qwen_sampler *s, const float *logits, double *odds,
		      uint32_t *id, struct err *e)
{
	double sum;
	uint32_t n;

	if (!logits_take(s, logits, id, e))
		return false;
	memset(odds, 0, s->vocab * sizeof(*odds));
	odds[*id] = 1;
	if (s->how.temperature == 0)
		return true;
	n = weigh_left(s, &sum);
	odds[*id] = 0;
	for (uint32_t i = 0; i < n; i++)
		odds[s->candidate[i].id] = s->p[i] / sum;
	*id = draw_candidate(s, n, sum);
	return true;
}

bool qwen_sample_proposed(struct qwen_sampler *s, const float *logits,
			  uint32_t proposed, const double *odds, uint32_t *id,
			  struct err *e)
{
	double sum, mine = 0, more = 0;
	uint32_t n, last = 0;

	if (!logits_take(s, logits, id, e))
		return false;
	if (s->how.temperature == 0)
		return true;
	n = weigh_left(s, &sum);
	for (uint32_t i = 0; i < n; i++)
		if (s->candidate[i].id == proposed)
			mine = s->p[i] / sum;
	*id = proposed;
	if (draw_uniform(&s->state) * odds[proposed] < mine)
		return true;
	/* The rest: where the odds here are larger. */
	for (uint32_t i = 0; i < n; i++) {
		double rest = s->p[i] / sum - odds[s->candidate[i].id];
		s->p[i] = rest > 0 ? rest : 0;
		more += s->p[i];
		last = rest > 0 ? i + 1 : last;
	}
	if (last) /* else both are the same, but for rounding */
		*id = draw_candidate(s, last, more);
	return true;
}
