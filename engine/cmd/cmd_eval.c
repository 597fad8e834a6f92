/*
 * engine/cmd/cmd_eval.c - t0-qwen3 logits and eval.
 *
 * What the model says about given tokens.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/cmd.h"

/* ---- logits ---- */

struct dump {
	struct buf out;
	size_t n;
	uint32_t vocab;
	bool all;
};

/* float32, little-endian. */
static bool keep_logits(void *ctx, size_t i, const float *logits, struct err *e)
{
	struct dump *d = ctx;

	(void)e;
	if (d->all || i + 1 == d->n)
		buf_add(&d->out, logits, d->vocab * sizeof(*logits));
	return true;
}

bool qwen_cmd_logits(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct dump d = { .all = c->all };
	struct qwen_state *st = NULL;
	struct qwen_ids ids = { 0 };
	struct qwen_session s;
	bool ok;

	if (!r->output)
		return err_set(e, ERR_USAGE, "--out names no file for the "
			       "logits");
	if (!qwen_session_open(&s, c, c->ids ? QWEN_WORDS_NO : QWEN_WORDS,
			       e))
		return false;
	ok = qwen_cmd_prompt(c, &s, &ids, e) &&
	     qwen_cmd_state(c, &s, 1, (uint32_t)ids.n, &st, e);
	d.n = ids.n;
	d.vocab = s.model.config.vocab;
	ok = ok && qwen_feed(c, st, ids.v, ids.n, keep_logits, &d, e);
	if (ok)
		fwrite(d.out.data, 1, d.out.len, r->out);
	buf_fini(&d.out);
	qwen_ids_fini(&ids);
	qwen_state_free(st);
	qwen_session_close(&s);
	return ok;
}

/* ---- eval ---- */

struct score {
	const uint32_t *id;
	size_t n;
	uint32_t vocab;
	double bits; /* of all tokens but the first */
	size_t judged;
};

/* Negative log probability of token i + 1, in nats. */
static bool judge_token(void *ctx, size_t i, const float *logits, struct err *e)
{
	struct score *s = ctx;
	double top = logits[0], sum = 0;

	if (i + 1 == s->n)
		return true;
	for (uint32_t k = 1; k < s->vocab; k++)
		top = logits[k] > top ? logits[k] : top;
	for (uint32_t k = 0; k < s->vocab; k++)
		sum += exp(logits[k] - top);
	double nats = top + log(sum) - logits[s->id[i + 1]];
	if (!isfinite(nats))
		return err_set(e, ERR_DEVICE, "the logits of token %zu are "
			       "broken", i);
	s->bits += nats / log(2);
	s->judged++;
	return true;
}

/*
 * In windows of `size` tokens.  Each begins with the last token of the one
 * before: every token but the first is judged once.
 */
static bool windows_judge(const struct qwen_cmd *c, struct qwen_state *st,
			  const struct qwen_ids *ids, size_t size,
			  struct score *s, struct err *e)
{
	bool ok = true;

	for (size_t at = 0; ok && at + 1 < ids->n; at += size - 1) {
		s->id = ids->v + at;
		s->n = ids->n - at < size ? ids->n - at : size;
		qwen_state_truncate(st, 0, 0);
		ok = qwen_feed(c, st, s->id, s->n, judge_token, s, e);
	}
	return ok;
}

/* Tokens that the model sees at once. */
static size_t window_size(const struct qwen_cmd *c, const struct qwen_config *m,
			  size_t n)
{
	size_t most = c->context < m->max_positions ? c->context :
						      m->max_positions;

	return n < most ? n : most;
}

static bool score_print(const struct qwen_cmd *c, const struct qwen_model *m,
			uint64_t cache_bytes, const struct score *s,
			struct err *e)
{
	double bits = s->bits / (double)s->judged;
	struct table t;

	table_init(&t, "#tokens,#perplexity,#bits_per_token,"
		       "activations,cache,#cache_bytes");
	table_row(&t);
	table_cell(&t, 0, "%zu", s->judged);
	table_cell(&t, 1, "%.6g", exp2(bits));
	table_cell(&t, 2, "%.6g", bits);
	table_cell(&t, 3, "%s", qwen_cmd_activations(m, true));
	table_cell(&t, 4, "%s", c->cache ? c->cache : "f16");
	table_cell(&t, 5, "%llu", (unsigned long long)cache_bytes);
	bool ok = cmd_table(&c->cmd, &t, e);
	table_fini(&t);
	return ok;
}

bool qwen_cmd_eval(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct qwen_state *st = NULL;
	struct qwen_ids ids = { 0 };
	struct score score = { 0 };
	struct qwen_session s;
	bool ok;

	if (!qwen_session_open(&s, c, c->ids ? QWEN_WORDS_NO : QWEN_WORDS,
			       e))
		return false;
	ok = qwen_cmd_prompt(c, &s, &ids, e);
	if (ok && ids.n < 2)
		ok = err_set(e, ERR_USAGE, "one token cannot be judged; wanted "
			     "at least 2");
	size_t size = window_size(c, &s.model.config, ids.n);
	if (ok && size < 2)
		ok = err_set(e, ERR_USAGE, "a context of %zu tokens predicts "
			     "nothing; wanted at least 2", size);
	score.vocab = s.model.config.vocab;
	ok = ok && qwen_cmd_state(c, &s, 1, (uint32_t)size, &st, e) &&
	     windows_judge(c, st, &ids, size, &score, e) &&
	     score_print(c, &s.model, qwen_state_bytes(st), &score, e);
	qwen_ids_fini(&ids);
	qwen_state_free(st);
	qwen_session_close(&s);
	return ok;
}
