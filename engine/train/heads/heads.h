/*
 * engine/train/heads - what proposes a model's next tokens learns: the manual.
 *
 * The model, the trunk, stays as it is: its hidden states are inputs.  What is
 * learnt is written as engine/speculate reads it.  Arithmetic is f32, on a tape
 * (engine/train/tape).
 */
#ifndef T0_ENGINE_TRAIN_HEADS_H
#define T0_ENGINE_TRAIN_HEADS_H

#include "engine/speculate/speculate.h"
#include "engine/train/tape/tape.h"

/* ----------------------------------------------------------- trunk.c ---- */

/* Rows of tokens through the model; what enters some of its layers. */
struct train_trunk {
	const struct qwen_model *m; /* the caller's */
	uint32_t length, n_taps;
	struct qwen_state *state;
	struct qwen_token *token; /* [length] */
};
bool train_trunk_init(struct train_trunk *t, const struct qwen_model *m,
		      uint32_t length, const uint32_t *tap, uint32_t n_taps,
		      struct err *e);
void train_trunk_fini(struct train_trunk *t);
/*
 * n tokens, rows of at most `length`, whose positions say where a document
 * begins: what enters the layers, into out [n][n_taps][hidden].
 */
bool train_trunk_run(struct train_trunk *t, const uint32_t *id,
		     const uint32_t *position, size_t n, float *out,
		     struct err *e);

/* ---------------------------------------------------------- medusa.c ---- */

/* Medusa's heads with one residual block each (struct qwen_medusa). */
struct train_medusa {
	const struct qwen_model *m; /* the caller's */
	uint32_t n;
	struct tape *tape;
	struct tensor *linear[QWEN_PROPOSED], *bias[QWEN_PROPOSED],
		*out[QWEN_PROPOSED];
};
/*
 * As published: the block changes nothing, the rest is the model's output
 * layer.  `e` gets the errors of all that follows.
 */
void train_medusa_init(struct train_medusa *h, const struct qwen_model *m,
		       uint32_t n, struct err *e);
void train_medusa_fini(struct train_medusa *h);
/* Of each head: the sum of losses, in nats, of so many targets; how many of
 * these were the likeliest token. */
struct train_medusa_sum {
	double loss[QWEN_PROPOSED];
	uint64_t targets[QWEN_PROPOSED], right[QWEN_PROPOSED];
};
/*
 * The mean losses of all heads, added up.  x [n][hidden] leaves the trunk's
 * last layer; target[h] [n] is what head h should say, TRAIN_IGNORE for none.
 */
struct tensor *train_medusa_loss(struct train_medusa *h, const float *x,
				 size_t n, const uint32_t *const *target,
				 struct train_medusa_sum *sum);
/*
 * Targets of head h, out [n], from those of the model: the token 1 + h places
 * behind target[i], of the same document.
 */
void train_medusa_target(uint32_t h, const uint32_t *position,
			 const uint32_t *target, size_t n, uint32_t *out);
/* The folder; `base` is the model's. */
bool train_medusa_write(const struct train_medusa *h, const char *dir,
			const char *base, struct err *e);

#endif
