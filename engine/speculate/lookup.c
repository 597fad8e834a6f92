/*
 * engine/speculate/lookup.c - proposals that cost next to nothing.
 */
#include <stdlib.h>

#include "engine/speculate/speculate.h"

static void proposer_free(struct qwen_proposer *p)
{
	free(p);
}

/* How many tokens before `at` are those before the end, at most QWEN_KINDS. */
static uint32_t alike(const struct qwen_ids *text, size_t at)
{
	uint32_t n = 0;

	while (n < QWEN_KINDS && n < at &&
	       text->v[at - 1 - n] == text->v[text->n - 1 - n])
		n++;
	return n;
}

static bool lookup_propose(struct qwen_proposer *p, const struct qwen_ids *text,
			   uint32_t k, struct qwen_proposal *out, struct err *e)
{
	uint32_t best = 0;
	size_t from = 0;

	(void)p;
	(void)e;
	for (size_t at = text->n; --at > 0 && best < QWEN_KINDS;) {
		uint32_t n = alike(text, at);
		if (n > best) {
			best = n;
			from = at;
		}
	}
	if (!best)
		return true;
	out->kind = best - 1;
	for (; out->n < k; out->n++) /* what is proposed goes on, too */
		out->id[out->n] = from + out->n < text->n ?
					  text->v[from + out->n] :
					  out->id[from + out->n - text->n];
	return true;
}

struct qwen_proposer *qwen_lookup_new(void)
{
	struct qwen_proposer *p = xcalloc(1, sizeof(*p));

	*p = (struct qwen_proposer){ "lookup", QWEN_KINDS, NULL, lookup_propose,
				     proposer_free };
	return p;
}

struct wrong {
	struct qwen_proposer proposer;
	uint32_t id;
};

static bool wrong_propose(struct qwen_proposer *p, const struct qwen_ids *text,
			  uint32_t k, struct qwen_proposal *out, struct err *e)
{
	(void)text;
	(void)e;
	for (; out->n < k; out->n++)
		out->id[out->n] = ((struct wrong *)p)->id;
	return true;
}

struct qwen_proposer *qwen_wrong_new(uint32_t vocab)
{
	struct wrong *w = xcalloc(1, sizeof(*w));

	*w = (struct wrong){ { "wrong", 1, NULL, wrong_propose, proposer_free },
			     vocab - 1 };
	return &w->proposer;
}
