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
 * begins: what enters the layers, into out [n][n_taps][hidden], and, unless
 * `said` is NULL, the likeliest token behind each, into said [n].
 */
bool train_trunk_run(struct train_trunk *t, const uint32_t *id,
		     const uint32_t *position, size_t n, float *out,
		     uint32_t *said, struct err *e);

/* ---------------------------------------------------------- target.c ---- */

/*
 * What is said so many places ahead of the model, out [n], from what the model
 * should say: the token 1 + ahead places behind target[i], of the same
 * document; else TRAIN_IGNORE.
 */
void train_heads_target(uint32_t ahead, const uint32_t *position,
			const uint32_t *target, size_t n, uint32_t *out);
/* Of each head: the sum of losses, in nats, of so many targets; how many of
 * these were the likeliest token. */
struct train_heads_sum {
	double loss[QWEN_PROPOSED];
	uint64_t targets[QWEN_PROPOSED], right[QWEN_PROPOSED];
};
/* Which of n logits is the largest, the first of them. */
uint32_t train_heads_likeliest(const float *logits, size_t n);
/*
 * Adds the mean loss of a head's logits [..., vocab] to *all, NULL at first,
 * and what they were like to *sum.  false: the tape has no memory.
 */
bool train_heads_lose(struct train_heads_sum *sum, uint32_t head,
		      struct tensor *logits, const uint32_t *target,
		      struct tensor **all);

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
/*
 * The mean losses of all heads, added up.  x [n][hidden] leaves the trunk's
 * last layer; target[h] [n] is what head h should say, TRAIN_IGNORE for none.
 */
struct tensor *train_medusa_loss(struct train_medusa *h, const float *x,
				 size_t n, const uint32_t *const *target,
				 struct train_heads_sum *sum);
/* The folder; `base` is the model's. */
bool train_medusa_write(const struct train_medusa *h, const char *dir,
			const char *base, struct err *e);

/* ----------------------------------------------------------- eagle.c ---- */

/* The matrices and norms of struct qwen_eagle. */
enum train_eagle_part {
	TRAIN_EAGLE_FC,
	TRAIN_EAGLE_Q,
	TRAIN_EAGLE_K,
	TRAIN_EAGLE_V,
	TRAIN_EAGLE_O,
	TRAIN_EAGLE_GATE,
	TRAIN_EAGLE_UP,
	TRAIN_EAGLE_DOWN,
	TRAIN_EAGLE_OUT,
	TRAIN_EAGLE_EMBED_NORM,
	TRAIN_EAGLE_HIDDEN_NORM,
	TRAIN_EAGLE_FFN_NORM,
	TRAIN_EAGLE_NORM,
	TRAIN_EAGLE_PARTS
};

/*
 * A layer that goes on with the model's hidden states, and with its own results
 * as it will have to where it proposes several tokens: of the sizes and the
 * vocabulary of the model's layers, whose embedding it takes as it is.
 */
struct train_eagle {
	const struct qwen_model *m; /* the caller's */
	uint32_t steps;		    /* tokens that it says in a row */
	uint32_t length;	    /* of a row, at most */
	struct tape *tape;
	struct tensor *w[TRAIN_EAGLE_PARTS];
	float *cosine, *sine; /* [length + steps][head_dim / 2] */
};
/*
 * Uniform, but for the norms and the output layer, which are the model's, and
 * the highest hidden state, which goes through.  `e` gets the errors of all
 * that follows.
 */
void train_eagle_init(struct train_eagle *h, const struct qwen_model *m,
		      uint32_t steps, uint32_t length, uint64_t seed,
		      struct err *e);
void train_eagle_fini(struct train_eagle *h);
/*
 * The mean losses of all steps, added up.  x [rows][length][3][hidden] enters
 * the layers qwen_eagle_taps() of the trunk, at tokens id and positions
 * [rows][length], 0 where a row or a document begins; target[s] is of
 * train_heads_target(s, ...).
 */
struct tensor *train_eagle_loss(struct train_eagle *h, const float *x,
				const uint32_t *id, const uint32_t *position,
				size_t rows, size_t length,
				const uint32_t *const *target,
				struct train_heads_sum *sum);
/* The folder; `base` is the model's. */
bool train_eagle_write(const struct train_eagle *h, const char *dir,
		       const char *base, struct err *e);

#endif
