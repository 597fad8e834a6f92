/*
 * engine/speculate/draft.c - a smaller model proposes.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/speculate/speculate.h"

struct draft {
	struct qwen_proposer proposer;
	struct qwen_shape shape;
	struct qwen_sampling how;
	uint32_t vocab;
	struct qwen_state *state;
	struct qwen_sampler sampler;
	struct qwen_ids held;	  /* what the state holds */
	size_t seen;		  /* of the text, by the sampler */
	struct qwen_token *token; /* [max_tokens] */
	double *odds;		  /* [QWEN_PROPOSED][vocab], or NULL: greedy */
};

static void draft_free(struct qwen_proposer *p)
{
	struct draft *d = (struct draft *)p;

	qwen_state_free(d->state);
	qwen_sampler_fini(&d->sampler);
	qwen_ids_fini(&d->held);
	free(d->token);
	free(d->odds);
	free(d);
}

static bool sampler_init(struct draft *d, struct err *e)
{
	d->seen = 0;
	if (!qwen_sampler_init(&d->sampler, &d->how, d->vocab, e))
		return false;
	/* Not the draws that decide about what was drawn. */
	d->sampler.state = ~d->how.seed;
	return true;
}

/* The state's length follows the text where it is asked. */
static void draft_begin(struct qwen_proposer *p, uint32_t from)
{
	struct draft *d = (struct draft *)p;
	struct err e = { 0 };

	(void)from;
	qwen_sampler_fini(&d->sampler);
	if (!sampler_init(d, &e))
		BUG("%s", e.msg);
}

/* Tokens behind those that the state holds; logits of the last of them. */
static const float *read_tokens(struct draft *d, const uint32_t *id, size_t n,
				struct err *e)
{
	uint32_t some = 0;

	for (size_t at = 0; at < n; at += some) {
		some = n - at < d->shape.max_tokens ? (uint32_t)(n - at) :
						      d->shape.max_tokens;
		for (uint32_t i = 0; i < some; i++)
			d->token[i] = (struct qwen_token){
				.id = id[at + i], .logits = at + i + 1 == n
			};
		if (!qwen_forward(d->state, d->token, some, e))
			return NULL;
		for (uint32_t i = 0; i < some; i++)
			qwen_ids_add(&d->held, id[at + i]);
	}
	return qwen_logits(d->state, some - 1);
}

/* The state holds all of the text; the logits of its last token. */
static const float *follow_text(struct draft *d, const struct qwen_ids *text,
				struct err *e)
{
	size_t same = 0;

	while (same < d->held.n && same + 1 < text->n &&
	       d->held.v[same] == text->v[same])
		same++;
	qwen_state_truncate(d->state, 0, (uint32_t)same);
	d->held.n = same;
	for (; d->seen < text->n; d->seen++)
		qwen_sampler_see(&d->sampler, text->v[d->seen]);
	return read_tokens(d, text->v + same, text->n - same, e);
}

static bool draft_propose(struct qwen_proposer *p, const struct qwen_ids *text,
			  uint32_t k, struct qwen_proposal *out, struct err *e)
{
	struct draft *d = (struct draft *)p;
	const float *logits;

	if (text->n + k > d->shape.positions)
		return true;
	logits = follow_text(d, text, e);
	out->odds = d->odds;
	while (logits) {
		uint32_t *id = &out->id[out->n];
		if (!(d->odds ? qwen_sample_odds(&d->sampler, logits,
						 d->odds + (size_t)out->n *
								   d->vocab,
						 id, e) :
				qwen_sample(&d->sampler, logits, id, e)))
			return false;
		if (++out->n == k)
			return true;
		logits = read_tokens(d, id, 1, e);
	}
	return false;
}

struct qwen_proposer *qwen_draft_new(const struct qwen_model *draft,
				     const struct qwen_shape *shape,
				     const struct qwen_sampling *how,
				     struct err *e)
{
	const uint32_t longest = draft->config.max_positions;
	struct draft *d = xcalloc(1, sizeof(*d));

	d->proposer = (struct qwen_proposer){ "draft", 1, draft_begin,
					      draft_propose, draft_free };
	d->shape = *shape;
	d->how = *how;
	d->shape.positions = shape->positions < longest ? shape->positions :
							  longest;
	d->vocab = draft->config.vocab;
	d->token = xcalloc(shape->max_tokens, sizeof(*d->token));
	if (how->temperature > 0)
		d->odds = xcalloc((size_t)QWEN_PROPOSED * d->vocab,
				  sizeof(*d->odds));
	d->state = qwen_state_new(draft, &d->shape, e);
	if (d->state && sampler_init(d, e))
		return &d->proposer;
	draft_free(&d->proposer);
	return NULL;
}
