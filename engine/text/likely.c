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

void qwen_find_likely(const float *logits, uint32_t vocab,
		      struct qwen_likely *said, struct qwen_likely *top,
		      uint32_t n)
{
	double most = -INFINITY, sum = 0, log_sum;

	for (uint32_t i = 0; i < n; i++)
		top[i] = (struct qwen_likely){ 0, -INFINITY };
	for (uint32_t i = 0; i < vocab; i++) {
		most = logits[i] > most ? logits[i] : most;
		if (n && (i < n || logits[i] > top[n - 1].log_p))
			keep_likely(top, n, i, logits[i]);
	}
	for (uint32_t i = 0; i < vocab; i++)
		sum += exp(logits[i] - most);
	log_sum = most + log(sum);
	said->log_p = logits[said->id] - log_sum;
	for (uint32_t i = 0; i < n; i++)
		top[i].log_p -= log_sum;
}
