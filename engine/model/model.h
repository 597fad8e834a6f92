/*
 * model - a Qwen3 model: its weights, its state, one forward pass.
 *
 * The network, as published: token embedding; per layer RMSNorm, grouped-query
 * attention whose queries and keys are normalized per head before the rotary
 * embedding (halves rotated), RMSNorm, SwiGLU; a last RMSNorm and the output
 * layer.  Activations and sums are f32.  Who computes: engine/state/backend.h.
 *
 * A forward pass takes a flat list of tokens, each with its sequence and
 * position: a prompt in one piece or in chunks, one more token of several
 * sequences, or a mixture.  Tokens of one sequence come in order, each at the
 * position behind its last.
 *
 *	struct qwen_model m;
 *	if (!qwen_model_load(&m, dir, &how, threads, &e))
 *		...
 *	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
 *	qwen_forward(s, tokens, n, &e);
 *	next = argmax(qwen_logits(s, n - 1));
 *
 * Ownership: a model is only read after loading, and may have many states;
 * each state is used by one thread at a time and uses the model's threads.
 */
#ifndef T0_ENGINE_MODEL_H
#define T0_ENGINE_MODEL_H

#include <signal.h>

#include "engine/files/config.h"
#include "engine/weights/kernels.h"
#include "engine/files/safetensors.h"
#include "base/threads.h"

struct kfd_driver;
struct progress;

struct qwen_layer {
	struct qwen_matrix q, k, v, o, gate, up, down;
	const float *attn_norm, *ffn_norm; /* [hidden] */
	const float *q_norm, *k_norm;	   /* [head_dim] */
};

struct qwen_model {
	struct qwen_config config;
	struct qwen_tensors tensors;
	struct qwen_matrix embed, head; /* [vocab][hidden] */
	const float *norm;		/* [hidden] */
	struct qwen_layer *layer;	/* [layers] */
	struct threads *threads;	/* the caller's */
	const struct qwen_kernels *kernels;
	uint64_t token_bytes; /* weights that one decoded token reads */
	struct arena mem;
	struct qwen_block {
		void *data;
		size_t size_bytes, used_bytes;
	} *block; /* converted and copied weights */
	size_t n_blocks;
	const struct qwen_backend *backend;
	void *device; /* the backend's own */
};

/* ---------------------------------------------------------- model.c ---- */

struct qwen_load {
	bool convert; /* false: weights as the files hold them */
	enum qwen_weights weights;
	/*
	 * Weights of the wanted type, too, into memory of large pages: costs
	 * time to load and memory beside the file's, and decodes faster.
	 */
	bool copy;
	struct progress *progress; /* in layers, or NULL */
	/* Or NULL: loading ends early, with ERR_BUSY, once it is set. */
	const volatile sig_atomic_t *stop;
	const struct qwen_backend *backend; /* NULL: the CPU */
	const char *device; /* which one of the backend, or NULL */
	/*
	 * Or NULL: told of what is no error, as a cache that cannot be written,
	 * as long as the model is open.
	 */
	void (*warn)(void *ctx, const char *text);
	void *ctx;
	struct kfd_driver *driver; /* gpu: instead of it; the model's then */
};
/*
 * Weights of the wanted type stay where they are mapped, unless a copy is
 * asked for; others are converted, rounded to nearest even.  Integer types
 * need columns in multiples of QWEN_GROUP.  Tensors that no pass would use are
 * refused.  On failure `m` is empty.
 */
bool qwen_model_load(struct qwen_model *m, const char *dir,
		     const struct qwen_load *how, struct threads *threads,
		     struct err *e);
void qwen_model_close(struct qwen_model *m);
/*
 * A model without weights, all matrices of one type: for what depends on sizes
 * alone.  `m` gets neither threads nor a backend; end with qwen_model_close().
 */
void qwen_model_outline(struct qwen_model *m, const struct qwen_config *c,
			enum qwen_weights w);

/* One tensor of a loaded model: a matrix, or a norm of n values as f32. */
struct qwen_part {
	const char *name; /* as in the files */
	const struct qwen_matrix *matrix; /* or NULL */
	const float *norm;
	uint32_t n;
};
/* Every one of them, in the order of a pass; a tied output layer is none. */
bool qwen_model_each(const struct qwen_model *m,
		     bool (*each)(void *ctx, const struct qwen_part *p,
				  struct err *e),
		     void *ctx, struct err *e);

/* -------------------------------------------------------- convert.c ---- */

/*
 * One tensor [rows][cols] as a matrix of the wanted type, its memory in m's
 * blocks.  `scale` is the tensor of scales of stored integers, else NULL.
 */
bool qwen_matrix_make(struct qwen_model *m, struct qwen_matrix *out,
		      const struct qwen_tensor *t,
		      const struct qwen_tensor *scale,
		      const struct qwen_load *how, struct err *e);
/* One row of any matrix as f32 [cols]. */
void qwen_matrix_row(const struct qwen_kernels *k, const struct qwen_matrix *w,
		     uint32_t row, float *out);

/* ---------------------------------------------------------- state.c ---- */

struct qwen_token {
	uint32_t id;
	uint32_t sequence;
	bool logits; /* wanted for this token: qwen_logits() */
	bool best;   /* wanted for this token: qwen_best() */
};

struct qwen_shape {
	uint32_t sequences;  /* that have a cache */
	uint32_t positions;  /* of each */
	uint32_t max_tokens; /* of one pass */
	enum qwen_weights cache; /* F32, F16, BF16 or INT8 */
	/* Or NULL: a pass ends early, within a layer, once it is set. */
	const volatile sig_atomic_t *stop;
};

struct qwen_state;
struct qwen_state *qwen_state_new(const struct qwen_model *m,
				  const struct qwen_shape *shape,
				  struct err *e);
void qwen_state_free(struct qwen_state *s);
uint64_t qwen_state_bytes(const struct qwen_state *s); /* of the cache */
struct qwen_counts;
/* What the device did so far; all 0 where there is none. */
void qwen_state_counts(const struct qwen_state *s, struct qwen_counts *out);
/* Tokens that a sequence holds; cut it to `n`, 0 empties it. */
uint32_t qwen_state_length(const struct qwen_state *s, uint32_t sequence);
void qwen_state_cut(struct qwen_state *s, uint32_t sequence, uint32_t n);

/*
 * ERR_USAGE: more tokens than max_tokens, an id or sequence that is not there,
 * or a sequence that would leave its context.  ERR_BUSY: stopped by `stop`.
 * The state is then as it was before.
 */
bool qwen_forward(struct qwen_state *s, const struct qwen_token *token,
		  uint32_t n, struct err *e);
/* [vocab] of token i of the last pass; NULL if they were not wanted. */
const float *qwen_logits(const struct qwen_state *s, uint32_t i);
/*
 * The id of the largest of them, the lowest of equals, computed where the
 * logits are; token i must have wanted it.
 */
uint32_t qwen_best(const struct qwen_state *s, uint32_t i);

#endif
