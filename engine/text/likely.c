/*
 * engine/text/likely.c - how likely tokens are.
 */
#include <math.h>

#include "engine/text/text.h"

/* Puts a token among the n likeliest so far, of which the last is let go. */
static void keep_likely(struct qwen_likely *top, uint32_t n, uint32_t id,
			double logit)
{
	uint32_t at = n - 1;

	for (; at && top[at - 1].log_p < logit; at--)
		top[at] = top[at - 1];
	top[at] = (struct qwen_likely){ id, logit };
}

double qwen_log_total(const float *v, uint32_t n)
{
	double top = v[0], sum = 0;

	for (uint32_t i = 1; i < n; i++)
		top = v[i] > top ? v[i] : top;
	for (uint32_t i = 0; i < n; i++)
		sum += exp(v[i] - top);
	return top + log(sum);
}

void qwen_find_likely(const float *logits, uint32_t vocab,
		      struct qwen_likely *said, struct qwen_likely *top,
		      uint32_t n)
{
	const double total = qwen_log_total(logits, vocab);

	for (uint32_t i = 0; i < n; i++)
		top[i] = (struct qwen_likely){ 0, -INFINITY };
	for (uint32_t i = 0; i < vocab && n; i++)
		if (i < n || logits[i] > top[n - 1].log_p)
			keep_likely(top, n, i, logits[i]);
	said->log_p = logits[said->id] - total;
	for (uint32_t i = 0; i < n; i++)
		top[i].log_p -= total;
}
