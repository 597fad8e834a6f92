/*
 * engine/model/retrieve.c - texts as vectors, and judged against a question.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"

/* ---- vectors ---- */

/* Tokens that the next pass takes, of several texts. */
struct filling {
	const struct qwen_embedding *how;
	struct qwen_token *token; /* [max_tokens] */
	uint32_t *text;		  /* [max_tokens]: whose */
	uint32_t n;
	float *out; /* [texts][dimensions] */
};

/* The first values of a token's last norm, made to have length 1. */
static bool vector_put(const float *hidden, uint32_t n, float *out,
		       struct err *e)
{
	double square = 0;

	for (uint32_t i = 0; i < n; i++)
		square += (double)hidden[i] * hidden[i];
	if (!isfinite(square) || square <= 0)
		return err_set(e, ERR_DEVICE,
			       "a text's vector has the length "
			       "%g; the model's output is broken",
			       sqrt(square));
	for (uint32_t i = 0; i < n; i++)
		out[i] = (float)(hidden[i] / sqrt(square));
	return true;
}

static bool pass_run(struct filling *f, struct err *e)
{
	const uint32_t n = f->how->dimensions;
	bool ok = qwen_forward(f->how->state, f->token, f->n, e);

	for (uint32_t i = 0; ok && i < f->n; i++)
		if (f->token[i].hidden)
			ok = vector_put(qwen_hidden(f->how->state, i), n,
					f->out + (size_t)f->text[i] * n, e);
	f->n = 0;
	return ok;
}

static bool token_add(struct filling *f, const struct qwen_token *t,
		      uint32_t text, struct err *e)
{
	f->token[f->n] = *t;
	f->text[f->n++] = text;
	return f->n < f->how->max_tokens || pass_run(f, e);
}

bool qwen_embed(const struct qwen_embedding *how, const struct qwen_ids *text,
		uint32_t n, float *out, struct err *e)
{
	struct filling f = {
		.how = how,
		.out = out,
		.token = xcalloc(how->max_tokens, sizeof(*f.token)),
		.text = xcalloc(how->max_tokens, sizeof(*f.text)),
	};
	bool ok = true;

	for (uint32_t i = 0, place = 0; ok && i < n; i++, place++) {
		if (place == how->sequences) {
			ok = pass_run(&f, e);
			place = 0;
		}
		qwen_state_truncate(how->state, place, 0);
		for (size_t k = 0; ok && k < text[i].n; k++) {
			const struct qwen_token t = { .id = text[i].v[k],
						      .sequence = place,
						      .hidden = k + 1 ==
								text[i].n };
			ok = token_add(&f, &t, i, e) ||
			     err_wrap(e, "text %u", i + 1);
		}
	}
	ok = ok && pass_run(&f, e);
	free(f.token);
	free(f.text);
	return ok;
}

/* ---- judgements ---- */

static size_t common_begin(const struct qwen_ids *a, const struct qwen_ids *b)
{
	size_t n = 0;

	while (n < a->n && n < b->n && a->v[n] == b->v[n])
		n++;
	return n;
}

/* Tokens from `from` on; the logits of the last are wanted. */
static bool rest_feed(const struct qwen_judging *how,
		      const struct qwen_ids *ids, size_t from,
		      struct qwen_token *token, uint32_t *last, struct err *e)
{
	bool ok = true;

	for (uint32_t n; ok && from < ids->n; from += n, *last = n - 1) {
		n = ids->n - from < how->max_tokens ?
			    (uint32_t)(ids->n - from) :
			    how->max_tokens;
		for (uint32_t i = 0; i < n; i++)
			token[i] =
				(struct qwen_token){ .id = ids->v[from + i],
						     .logits = from + i + 1 ==
							       ids->n };
		ok = qwen_forward(how->state, token, n, e);
	}
	return ok;
}

bool qwen_judge(const struct qwen_judging *how, const struct qwen_ids *prompt,
		uint32_t n, double *score, struct err *e)
{
	struct qwen_token *token = xcalloc(how->max_tokens, sizeof(*token));
	bool ok = true;

	qwen_state_truncate(how->state, 0, 0);
	for (uint32_t i = 0; ok && i < n; i++) {
		size_t same = i ? common_begin(&prompt[i - 1], &prompt[i]) : 0;
		uint32_t last = 0;
		same -= same == prompt[i].n; /* its last token has to answer */
		qwen_state_truncate(how->state, 0, (uint32_t)same);
		ok = rest_feed(how, &prompt[i], same, token, &last, e) ||
		     err_wrap(e, "document %u", i + 1);
		const float *l = ok ? qwen_logits(how->state, last) : NULL;
		if (l)
			score[i] =
				1 / (1 + exp((double)l[how->no] - l[how->yes]));
		if (l && isnan(score[i]))
			ok = err_set(e, ERR_DEVICE,
				     "document %u: the logits "
				     "of the answer are no numbers; the "
				     "model's output is broken",
				     i + 1);
	}
	free(token);
	return ok;
}
