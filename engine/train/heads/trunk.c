/*
 * engine/train/heads/trunk.c - hidden states of a model that does not learn.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/train/heads/heads.h"

bool train_trunk_init(struct train_trunk *t, const struct qwen_model *m,
		      uint32_t length, const uint32_t *tap, uint32_t n_taps,
		      struct err *e)
{
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = length,
					  .max_tokens = length,
					  .cache = qwen_both(QWEN_W_F32) };

	*t = (struct train_trunk){ .m = m, .length = length, .n_taps = n_taps };
	t->token = xcalloc(length, sizeof(*t->token));
	t->state = qwen_state_new(m, &shape, e);
	return t->state && qwen_state_tap(t->state, tap, n_taps, e);
}

void train_trunk_fini(struct train_trunk *t)
{
	qwen_state_free(t->state);
	free(t->token);
	*t = (struct train_trunk){ 0 };
}

bool train_trunk_run(struct train_trunk *t, const uint32_t *id,
		     const uint32_t *position, size_t n, float *out,
		     uint32_t *said, struct err *e)
{
	const size_t wide = (size_t)t->n_taps * t->m->config.hidden;
	uint32_t some;

	for (size_t at = 0; at < n; at += some) {
		for (some = 0; at + some < n && some < t->length; some++) {
			if (some && position[at + some] == 0)
				break;
			t->token[some] =
				(struct qwen_token){ .id = id[at + some],
						     .logits = said };
		}
		qwen_state_truncate(t->state, 0, 0);
		if (!qwen_forward(t->state, t->token, some, e))
			return false;
		memcpy(out + at * wide, qwen_kept(t->state, 0, 0),
		       some * wide * sizeof(*out));
		for (uint32_t i = 0; said && i < some; i++)
			said[at + i] = train_heads_likeliest(
				qwen_logits(t->state, i), t->m->config.vocab);
	}
	return true;
}
