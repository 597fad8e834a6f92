/*
 * engine/state - a model in memory, and the seam of the backends: the manual.
 *
 * The network, as published: token embedding; per layer RMSNorm, grouped-query
 * attention whose queries and keys are normalized per head before the rotary
 * embedding (halves rotated), RMSNorm, SwiGLU; a last RMSNorm and the output
 * layer.  Activations and sums are f32, but for what products round them to.
 *
 * A forward pass takes a flat list of tokens, each with its sequence and
 * position: a prompt in one piece or in chunks, one more token of several
 * sequences, or a mixture.  Tokens of one sequence come in order, each at the
 * position behind its last.
 *
 * Ownership: a model is only read after loading, and may have many states;
 * each state is used by one thread at a time and uses the model's threads.
 */
#ifndef T0_ENGINE_STATE_H
#define T0_ENGINE_STATE_H


#include "base/threads.h"
#include "engine/weights/weights.h"

struct kfd_driver;
struct progress;

/* ----------------------------------------------------- activations.c ---- */

/*
 * What the inputs of products are rounded to before they are multiplied.  AUTO:
 * the backend chooses by the type of the weights (engine/cpu/cpu.h).
 */
enum qwen_activations {
	QWEN_AS_AUTO,
	QWEN_AS_F32, /* not at all */
	QWEN_AS_BF16,
	QWEN_AS_F16,
	QWEN_AS_INT8 /* in groups of 32, where weights are integers */
};
const char *qwen_activations_name(enum qwen_activations a);
bool qwen_activations_parse(const char *name, enum qwen_activations *a,
			    struct err *e);

/* A feed-forward network: one of a mixture's. */
struct qwen_expert {
	struct qwen_matrix gate, up, down;
};

struct qwen_layer {
	struct qwen_matrix q, k, v, o;
	struct qwen_matrix gate, up, down; /* where there are no experts */
	struct qwen_matrix router;	   /* [experts][hidden], f32 */
	struct qwen_expert *expert;	   /* [experts], the model's */
	const float *attn_norm, *ffn_norm; /* [hidden] */
	const float *q_norm, *k_norm;	   /* [head_dim] */
};

/*
 * Sees what goes into products: all threads of a pass call it, before those of
 * matrix `w`, and of others that take the same, with x [n][w->cols].  Only
 * passes of more than QWEN_FEW tokens on the processor do; with an expert's
 * matrix x has what is sent to it, and down's input is times the share.
 */
struct qwen_watch {
	void (*see)(void *ctx, const struct qwen_matrix *w, const float *x,
		    uint32_t n, unsigned thread);
	void *ctx;
};

struct qwen_model {
	struct qwen_config config;
	struct qwen_tensors tensors;
	struct qwen_matrix embed, head; /* [vocab][hidden] */
	const float *norm;		/* [hidden] */
	struct qwen_matrix engram; /* [orders * rows][hidden], or no rows */
	const float *engram_gate;  /* [hidden] */
	struct qwen_layer *layer;	/* [layers] */
	struct threads *threads;	/* the caller's */
	const struct qwen_kernels *kernels;
	uint64_t token_bytes; /* weights that one decoded token reads */
	struct arena mem;
	struct qwen_blocks blocks; /* converted and copied weights */
	const struct qwen_backend *backend;
	enum qwen_activations activations; /* asked for */
	const struct qwen_watch *watch;	   /* or NULL */
	void *device; /* the backend's own */
	struct qwen_settling *settling; /* or NULL: weights stay as they are */
};

struct qwen_load {
	bool convert; /* false: weights as the files hold them */
	enum qwen_weights weights;
	/*
	 * Weights that are computed with as the files hold them are read into
	 * memory of large pages before the model is open; else that is done
	 * meanwhile, where memory is at least twice as large as they are.
	 */
	bool copy;
	bool mapped; /* neither: they stay in the files' pages */
	uint64_t memory_bytes; /* 0: memory_limit_bytes() */
	enum qwen_checksum checksum; /* stored or verified before all else */
	enum qwen_activations activations; /* of the processor */
	/*
	 * The output layer is not read, and need not be there: logits mean
	 * nothing.  For models of embeddings.
	 */
	bool headless;
	struct progress *progress; /* in layers, or NULL */
	/* Or NULL: loading ends early, with ERR_STOPPED, once it is set. */
	const _Atomic int *stop;
	const struct qwen_backend *backend; /* NULL: the CPU */
	const char *device; /* which one of the backend, or NULL */
	uint32_t devices; /* gpu: that share the model, 1..8; 0: one */
	/*
	 * Or NULL: told of what is no error, as a cache that cannot be written,
	 * as long as the model is open.
	 */
	void (*warn)(void *ctx, const char *text);
	void (*remark)(void *ctx, const char *text); /* or NULL */
	void *ctx;
	struct kfd_driver *driver; /* gpu: instead of it; the model's then */
};

/* --------------------------------------------------------- outline.c ---- */

/*
 * A model without weights, all matrices of one type: for what depends on sizes
 * alone.  `m` gets neither threads nor a backend; end with qwen_model_close().
 */
void qwen_model_outline(struct qwen_model *m, const struct qwen_config *c,
			enum qwen_weights w);
void qwen_model_close(struct qwen_model *m);

/* One tensor of a model: a matrix, or a norm of n values as f32. */
struct qwen_part {
	const char *name; /* as in the files */
	struct qwen_matrix *matrix; /* or NULL */
	bool expert;		    /* not every token reads it */
	bool router;		    /* stays f32: it decides, and is small */
	bool looked_up;		    /* a token reads some rows of it */
	const float **norm;	    /* or NULL */
	uint32_t n;
};
/* What of it a decoded token reads, in bytes. */
uint64_t qwen_part_bytes(const struct qwen_model *m, const struct qwen_part *p);
typedef bool qwen_part_fn(void *ctx, const struct qwen_part *p, struct err *e);
/* Every one of a layer. */
bool qwen_layer_each(const struct qwen_model *m, uint32_t layer,
		     qwen_part_fn *each, void *ctx, struct err *e);
/* Every one of them, in the order of a pass; a tied output layer is none. */
bool qwen_model_each(struct qwen_model *m, qwen_part_fn *each, void *ctx,
		     struct err *e);
/* Those of its Engram, of which it may have none. */
bool qwen_engram_each(struct qwen_model *m, qwen_part_fn *each, void *ctx,
		      struct err *e);

/* ---------------------------------------------------------- engram.c ---- */

/*
 * An Engram: what is known of the last two tokens of a text and of the last
 * three, found by their hash.  The rows' sum e is added to the stream x that
 * enters a layer, as far as a gate lets it:
 *
 *	x += sigmoid(norm(x) . e / sqrt(hidden)) e
 */
enum { QWEN_ORDERS = 2 };
#define QWEN_NO_TOKEN UINT32_MAX /* before the beginning */
/* The rows of the table, of a token, the one before it, the one before that. */
void qwen_engram_rows(const struct qwen_config *c,
		      const uint32_t id[QWEN_ORDERS + 1],
		      uint32_t row[QWEN_ORDERS]);

/* ----------------------------------------------------------- state.c ---- */

struct qwen_token {
	uint32_t id;
	uint32_t sequence;
	bool logits; /* wanted for this token: qwen_logits() */
	bool best;   /* wanted for this token: qwen_argmax() */
	bool hidden; /* wanted for this token: qwen_hidden() */
};

struct qwen_shape {
	uint32_t sequences;  /* that have a cache */
	uint32_t positions;  /* of each */
	uint32_t max_tokens; /* of one pass */
	struct qwen_kinds cache; /* what keys and values are kept in */
	/* Or NULL: a pass ends early, within a layer, once it is set. */
	const _Atomic int *stop;
	/*
	 * 0: each sequence has memory of its own.  Else the cache is so many
	 * blocks of QWEN_BLOCK positions, dealt out by qwen_state_map().
	 */
	uint32_t blocks;
};

/*
 * With a cache of blocks, a token's results in a pass of at most so many do not
 * depend on the others of the pass, to the bit.  On a gfx1100 that holds for
 * weights of f32; of other types, products for more than four tokens may round
 * their inputs to the type of the weights, as those for prompts do.
 */
#define QWEN_FEW 16

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
void qwen_state_truncate(struct qwen_state *s, uint32_t sequence, uint32_t n);
/*
 * Makes a sequence n positions long, those it lacks with keys and values that
 * mean nothing: for measurements.  False: the backend cannot, or n is too many.
 */
bool qwen_state_fill(struct qwen_state *s, uint32_t sequence, uint32_t n);
/*
 * Of a state with blocks: the sequence has `length` positions so far, and
 * position p of it is in block[p / QWEN_BLOCK], which is below shape.blocks.
 * The array is the caller's and stays while the sequence is used; it has room
 * for what passes add, in blocks that no other sequence has.
 */
void qwen_state_map(struct qwen_state *s, uint32_t sequence,
		    const uint32_t *block, uint32_t length);
/* Block `to` becomes what `from` is. */
void qwen_state_copy(struct qwen_state *s, uint32_t from, uint32_t to);

/*
 * From now on passes keep what enters n layers, of every position: what leaves
 * the last one where a number is the model's `layers`.  The state is empty; n 0
 * ends it.  ERR_UNSUPPORTED: the backend keeps nothing.
 */
#define QWEN_TAPS 3 /* at most */
bool qwen_state_tap(struct qwen_state *s, const uint32_t *layer, uint32_t n,
		    struct err *e);
/* [n][hidden] of a position that the sequence holds. */
const float *qwen_kept(const struct qwen_state *s, uint32_t sequence,
		       uint32_t position);

/*
 * ERR_USAGE: more tokens than max_tokens, an id or sequence that is not there,
 * or a sequence that would leave its context.  ERR_STOPPED: by `stop`.
 * The state is then as it was before.
 */
bool qwen_forward(struct qwen_state *s, const struct qwen_token *token,
		  uint32_t n, struct err *e);
/*
 * A pass whose tokens are trees, at most QWEN_FEW of them: token i follows
 * parent[i], a token before it of its sequence, or with QWEN_ROOT what the
 * sequence holds, and sees that and its ancestors alone, to the bit what a pass
 * of these would see.  A token's descendants stand right behind it, but for
 * tokens of other sequences.  Sequences hold nothing of it until
 * qwen_state_take().  ERR_UNSUPPORTED: the backend has no trees; else as
 * qwen_forward().
 */
#define QWEN_ROOT UINT32_MAX
bool qwen_forward_tree(struct qwen_state *s, const struct qwen_token *token,
		       const uint32_t *parent, uint32_t n, struct err *e);
/*
 * Token i of such a pass, the last one of the state, and its ancestors are now
 * held by their sequence; once for a sequence.
 */
void qwen_state_take(struct qwen_state *s, uint32_t i);
/* [vocab] of token i of the last pass; NULL if they were not wanted. */
const float *qwen_logits(const struct qwen_state *s, uint32_t i);
/*
 * The id of the largest of them, the lowest of equals, computed where the
 * logits are; token i must have wanted it.
 */
uint32_t qwen_argmax(const struct qwen_state *s, uint32_t i);
/* [hidden] of token i of the last pass, behind the last norm; NULL as above. */
const float *qwen_hidden(const struct qwen_state *s, uint32_t i);
/* Are its times those of another machine than the one that it stands for? */
bool qwen_is_emulated(const struct qwen_model *m);

/* ------------------------------------------------------ the backends ---- */

/*
 * One description of a model (struct qwen_model: shapes, and weights as
 * matrices in host memory) serves every backend.  What is the same for all is
 * done once above this line (state.c): tokens are checked, each gets its
 * position, sequences have lengths, results have rows.  A backend gets a
 * pass that is known to be right and fits, and owns everything else: where
 * weights lie, the cache of keys and values, its buffers, the order of work.
 *
 * The hook is coarse, a whole pass, because backends differ in how they cut
 * it: the CPU runs a few barriers per layer, a GPU one command stream per
 * pass.  The layers of engine/cpu are what others are compared with.
 *
 * A new backend is one `const struct qwen_backend` and a row of the table in
 * engine/model/backends.c; `t0-qwen3 --backend NAME` then finds it, and all
 * commands and benchmarks work.  What it must hold, tests/engine/logits.c
 * proves: logits within the bounds of the type against the reference, for
 * prefill, chunks, decode and batches in any order and mixture.
 */

/*
 * One pass.  With `tree`, position[i] is behind that of a token's parent, and
 * tokens come so that, where one is computed, those at the positions before it
 * that were written last are its ancestors: a backend which stores and attends
 * token by token has nothing else to do but to remember what was stored.
 *
 * Tokens of one sequence come in order; `position` is where each is
 * stored, and it attends to positions 0 .. position[i] of its sequence, those
 * of the same pass included.  After qwen_state_truncate() a position may be
 * written again: the cache is just overwritten.
 */
struct qwen_pass {
	const struct qwen_token *token; /* [n] */
	const uint32_t *position;	/* [n] */
	uint32_t n;			/* 1 .. shape.max_tokens */
	bool tree;
	/* Rows of results: row r is of token wanted[r]; ascending. */
	const uint32_t *wanted; /* [n_wanted] */
	uint32_t n_wanted;	/* may be 0: the output layer is not needed */
	/*
	 * Host memory.  Row r of `logits` is written if
	 * token[wanted[r]].logits, best[r] if .best: the id of the largest
	 * logit, the lowest of equals.
	 */
	float *logits;	/* [n_wanted][vocab] */
	uint32_t *best; /* [n_wanted] */
	/* Row r is of token shown[r], ascending: what the last norm made of it. */
	const uint32_t *shown; /* [n_shown] */
	uint32_t n_shown;
	float *hidden; /* [n_shown][hidden], host memory */
	const uint32_t *gram; /* [n][QWEN_ORDERS]: rows of an Engram's table */
	/* What enters layers tap[n_taps], of token i into kept[i]. */
	const uint32_t *tap;
	uint32_t n_taps;
	float *const *kept; /* [n]: [n_taps][hidden] each */
	/*
	 * Not NULL and set: give up at the next layer or packet and return
	 * false with ERR_STOPPED; the caller then forgets the pass.
	 */
	const _Atomic int *stop;
};

/* What a pass cost a device, for t0-qwen3 bench; 0 on the CPU. */
struct qwen_counts {
	uint64_t passes, packets, copies, copied_bytes; /* since state_new */
};

struct qwen_backend {
	const char *name; /* as --backend has it */
	/*
	 * Does it compute with blocks of GGUF files as they are stored?  If
	 * not, it gets the nearest type that it knows.
	 */
	bool blocks;
	bool own; /* and with T0's own? */
	/*
	 * A pass of so many tokens at most gives each of them the bits that a
	 * pass of its own would, whatever they and their sequences are; 1: no
	 * more is known of it.
	 */
	uint32_t few;
	bool taps; /* does a pass keep what enters layers? */
	/*
	 * After a model's weights are mapped, or converted as `how` says: puts
	 * them where this backend wants them, with what it needs to know in
	 * m->device, which a failure leaves NULL.  NULL: nothing to do.  Host
	 * copies stay mapped, so that embeddings may be read there.
	 */
	bool (*open)(struct qwen_model *m, const struct qwen_load *how,
		     struct err *e);
	void (*close)(struct qwen_model *m); /* if m->device is not NULL */
	/* NULL: no.  Then times are not those of the machine it stands for. */
	bool (*is_emulated)(const struct qwen_model *m);
	/* Caches and buffers of one qwen_state; `shape` has been checked. */
	void *(*state_new)(const struct qwen_model *m,
			   const struct qwen_shape *shape, struct err *e);
	void (*state_free)(void *state);
	uint64_t (*cache_bytes)(const void *state);
	/* Returns when the results are there. */
	bool (*forward)(void *state, const struct qwen_pass *p, struct err *e);
	/* Noise as keys and values of positions from .. to - 1; NULL: no. */
	void (*fill)(void *state, uint32_t sequence, uint32_t from,
		     uint32_t to);
	/* A sequence's table of blocks; NULL: it knows no blocks. */
	void (*map)(void *state, uint32_t sequence, const uint32_t *block);
	void (*copy)(void *state, uint32_t from, uint32_t to);
	/* Token i of the last pass, a tree, is stored again; NULL: no trees. */
	void (*take)(void *state, uint32_t i);
	/* NULL: there are none. */
	void (*counts)(const void *state, struct qwen_counts *out);
};

#endif
