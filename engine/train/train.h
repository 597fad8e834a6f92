/*
 * engine/train - Qwen3 models learn: the manual.
 *
 * A step is a list of operations, forward and backward, that is known before
 * the first one runs; so is all memory, one arena.  There are no closures and
 * there is no tape: what a backward operation reads is an operand like any
 * other, and a layer whose activations are not kept is in the list twice.
 *
 *	train_qwen3(&g, &config, &how, &e);	  the list, where everything lies
 *	x = train_new(&g, threads, NULL, &e);	  one arena, zeroed
 *	train_run(x, g.forward, g.n_ops);	  gradients of a batch
 *
 * The list and the places know nothing of who executes: a backend is a table
 * of functions, one for each kind of operation, or a device that takes the list
 * (struct train_backend; engine/train/gpu is one).
 *
 * Tokens are flat, T = rows * length of them.  A row is text in which documents
 * follow each other; `position` counts from 0 in each, so a token sees those
 * of its document only, and a document that is cut begins again in the next
 * row.  Where `target` is TRAIN_IGNORE, nothing is learnt.
 *
 * Arithmetic: sums are f32.  With QWEN_W_BF16 matrices are bf16 and so are the
 * values that products take, rounded; the residual stream, norms and attention
 * stay f32.  QWEN_W_F16 is the same with f16, whose gradients would vanish:
 * the loss is multiplied with a scale that follows what they bear
 * (train_scale_follow()).  Bits depend on the machine's level of vectors, never
 * on the number of threads.
 *
 * Gradients of a whole model are, tensor by tensor, within 1e-4 (f32), 2.5e-3
 * (f16) and 2e-2 (bf16) of the length of double precision's; those of a single
 * operation within 1e-5 (tests/train/model.c, ops.c).
 */
#ifndef T0_ENGINE_TRAIN_H
#define T0_ENGINE_TRAIN_H

#include "autotune/cpu/gemm.h"
#include "engine/state/state.h"

/* ----------------------------------------------------------- graph.c ---- */

enum train_kind {
#define OP(name, operands) TRAIN_##name,
#include "engine/train/ops.def"
#undef OP
	TRAIN_KINDS
};
const char *train_kind_name(enum train_kind k); /* "LINEAR_DX" */
/* As ops.def has them. */
const char *train_kind_operands(enum train_kind k);

#define TRAIN_OPERANDS 11
#define TRAIN_NONE     UINT32_MAX /* an operand that is missing */
#define TRAIN_IGNORE   UINT32_MAX /* a target that is none */

/* What is in memory when. */
enum train_home {
	TRAIN_WEIGHT,	/* always: what the operations read */
	TRAIN_MASTER,	/* always: the same as f32, where that is bf16 */
	TRAIN_GRADIENT, /* always: sums over the batches of a step */
	TRAIN_STATE,	/* always: the optimizer's */
	TRAIN_INPUT,	/* always: of the batch, and tables */
	TRAIN_PASSING,	/* from the first operation that has it to the last */
};

struct train_value {
	enum train_home home;
	uint32_t width; /* bytes of an element: 4, or 2 for the graph's type */
	size_t rows, cols;
	uint32_t first, last; /* operations; PASSING only */
	size_t offset;	      /* in the arena; a multiple of 64 */
};

struct train_op {
	enum train_kind kind;
	bool add;   /* operands x are added to */
	bool round; /* what it writes for products is of the graph's type */
	uint32_t v[TRAIN_OPERANDS];
};

/* A tensor of the model. */
struct train_param {
	char name[112];	     /* as in the files */
	uint32_t rows, cols; /* of a norm 1 row */
	bool matrix;
	/* Values; master: f32.  What learns nothing has only a weight. */
	uint32_t weight, master, gradient;
	uint32_t state[2]; /* the optimizer's, or TRAIN_NONE */
	uint32_t average;  /* or TRAIN_NONE */
	uint32_t adapter;  /* of the list: its A, behind which is B; or NONE */
	bool hidden;	   /* a matrix of a layer */
	bool looked_up;	   /* a table: a token has some rows of it */
};

struct train_graph {
	struct qwen_config config; /* attention: heads, kv_heads, head_dim */
	enum qwen_weights type;	   /* of matrices, but for adapters: f32 */
	uint32_t rows, length;	   /* of the batch */
	struct train_value *value;
	uint32_t n_values, cap_values;
	struct train_op *op;
	uint32_t n_ops, cap_ops;
	struct train_param *param;
	uint32_t n_params, cap_params;
	uint32_t n_tensors; /* the first so many: of the model's files */
	/* Operations [0, forward) are the loss alone, the rest a whole step. */
	uint32_t forward;
	uint32_t ids, position, target, cosine, sine; /* values, INPUT */
	uint32_t loss;	      /* of each token, by either part */
	/* Of Muon: two of the largest matrix, two squares; or TRAIN_NONE. */
	uint32_t muon[4];
	size_t bytes;	      /* of the arena, once planned */
	size_t kept, passing; /* of these: always there, and at the peak */
};

void train_graph_fini(struct train_graph *g);
/* An element is 4 bytes, or of `width` bytes; returns its number. */
uint32_t train_value_add(struct train_graph *g, enum train_home home,
			 size_t rows, size_t cols, uint32_t width);
/* Operands in the order of ops.def; more than the kind has is a BUG. */
struct train_op *train_op_add(struct train_graph *g, enum train_kind kind,
			      const uint32_t *v, unsigned n);
#define TRAIN_OP(g, kind, ...)                                        \
	train_op_add((g), TRAIN_##kind, (const uint32_t[]){ __VA_ARGS__ }, \
		     sizeof((const uint32_t[]){ __VA_ARGS__ }) /      \
			     sizeof(uint32_t))

/*
 * Gives every value its place.  Passing ones share memory with those that are
 * not there at the same time.  An operation that reads what none before it has
 * written is a BUG.  ERR_USAGE: the sizes overflow.
 */
bool train_memory_plan(struct train_graph *g, struct err *e);

/* ----------------------------------------------------------- qwen3.c ---- */

/* Matrices of a layer that get adapters, as --lora-targets names them. */
#define TRAIN_TARGETS 7
extern const char *const train_target_name[TRAIN_TARGETS]; /* "q_proj" */

/* Which activations are made again when the backward pass needs them. */
enum {
	TRAIN_AGAIN_ATTENTION = 1, /* of attention, up to its result */
	TRAIN_AGAIN_FFN = 2,	   /* of SwiGLU */
};

/* The optimizers. */
enum train_method {
	TRAIN_NO_METHOD, /* gradients only */
	TRAIN_ADAMW,
	TRAIN_SGD, /* with momentum */
	TRAIN_MUON, /* matrices of layers; the rest AdamW */
	TRAIN_METHODS
};

struct train_how {
	uint32_t rows, length;	 /* of a batch; length: at most the context */
	enum qwen_weights type;	 /* QWEN_W_F32, QWEN_W_BF16 or QWEN_W_F16 */
	/* Of 16 bits: f32 of all matrices is kept, too.  F16 needs it. */
	bool masters;
	unsigned again;		 /* TRAIN_AGAIN_... */
	uint32_t again_layers;	 /* of the first so many layers */
	uint32_t vocab_chunk;	 /* logits at a time of a token; 0: 4096 */
	enum train_method method; /* what the optimizer keeps */
	bool average;		 /* a moving average of all weights */
	/*
	 * Not 0: only adapters learn, y = x (W + B A)^T with A [rank][in] and
	 * B [out][rank], of matrices whose bit is set (LoRA, with an alpha that
	 * is the rank).
	 */
	uint32_t rank;
	unsigned targets;
};

/*
 * The step of a model.  ERR_USAGE names what of `how` cannot be.  End with
 * train_graph_fini(), also after a failure.
 */
bool train_qwen3(struct train_graph *g, const struct qwen_config *c,
		 const struct train_how *how, struct err *e);
/* Floating-point operations of one batch, nothing made again counted. */
double train_flop(const struct train_graph *g);

/* ------------------------------------------------------------- run.c ---- */

struct train;
struct train_rule;

/* One thread of a run, as operations see it. */
struct train_worker {
	struct train *x;
	const struct train_graph *g;
	struct threads *t;
	unsigned thread, threads;
	struct cpu_gemm_scratch gemm;
	float *space; /* [space_floats]: the thread's own */
	size_t space_floats;
};

/*
 * A device takes whole lists, and has its own memory.  ctx is its own; what it
 * is given of a run lives as long as that.
 */
struct train_device {
	/*
	 * Memory of the graph, zeroed, that the host sees, or a copy of it;
	 * close() ends it, also after a failure.
	 */
	bool (*open)(void *ctx, const struct train_graph *g, char **arena,
		     struct err *e);
	void (*close)(void *ctx);
	/* A copy's values that are always there go to the device, and back. */
	bool (*send)(void *ctx, struct err *e);
	bool (*fetch)(void *ctx, struct err *e);
	/*
	 * As train_run() and train_update(), with the scales; of a copy the
	 * batch goes there before, and its losses come back.
	 */
	bool (*run)(void *ctx, uint32_t from, uint32_t to, float scale,
		    struct err *e);
	/*
	 * How many batches of a step it computes at once, or NULL: one.  Each
	 * is in a lane from 0, begun behind the other, with the batch that is
	 * there then; the losses are there when it ends.
	 */
	uint32_t (*lanes)(const void *ctx);
	bool (*begin)(void *ctx, uint32_t lane, uint32_t from, uint32_t to,
		      float scale, struct err *e);
	bool (*end)(void *ctx, uint32_t lane, struct err *e);
	bool (*update)(void *ctx, const struct train_rule *r, uint64_t step,
		       float loss_scale, double *norm, struct err *e);
};

/*
 * Who executes.  On the host all threads call run[kind] for each operation in
 * turn, and wait for each other behind it.
 */
struct train_backend {
	const char *name;
	void (*run[TRAIN_KINDS])(struct train_worker *w,
				 const struct train_op *op);
	const struct train_device *device; /* or NULL: the host */
	void *ctx;			   /* the device's; the caller's */
};
extern const struct train_backend train_cpu;

/*
 * The arena of a planned graph, zeroed; the graph, the threads and the backend
 * are the caller's and must outlive it.  `b` NULL: train_cpu.  ERR_NOMEM says
 * how much was wanted and how much there is.
 */
struct train *train_new(const struct train_graph *g, struct threads *t,
			const struct train_backend *b, struct err *e);
void train_free(struct train *x);
/*
 * Memory of a value, as `rows` and `cols` say.  A device may have its own: then
 * this is a copy, of which ids, positions and targets go there with every run
 * and losses come back.  Whoever changes other values says so before the next
 * run (what the device has made of them meanwhile is lost); whoever reads them
 * fetches them.
 */
void *train_data(const struct train *x, uint32_t value);
void train_changed(struct train *x);
bool train_fetch(const struct train *x, struct err *e);
/* What gradients are multiplied with: 1 / targets of a step.  1 at first. */
void train_scale(struct train *x, float scale);
/*
 * What is multiplied with that on top, all the way back, and divided out again
 * by train_update(): a power of two.  1 at first.
 */
void train_loss_scale(struct train *x, float scale);
struct threads *train_threads(const struct train *x);
const struct train_graph *train_graph_of(const struct train *x);
/* Operations [from, to).  Only a device fails. */
bool train_run(struct train *x, uint32_t from, uint32_t to, struct err *e);
/* Batches of one step that are computed at once; they divide a step's. */
uint32_t train_lanes(const struct train *x);
/*
 * All operations for each of n batches of a step, n a multiple of the lanes:
 * put() writes the batch, done() reads its losses.
 */
struct train_batches {
	uint64_t n;
	void (*put)(void *ctx, uint64_t i);
	void (*done)(void *ctx, uint64_t i);
	void *ctx;
};
bool train_run_batches(struct train *x, const struct train_batches *b,
		       struct err *e);
/* Bytes of memory that the system would still give. */
uint64_t train_memory_free(void);

/* ------------------------------------------------------ optimize.c ------ */

enum train_schedule {
	TRAIN_RATE_CONSTANT,
	TRAIN_RATE_COSINE,
	TRAIN_RATE_LINEAR,
	TRAIN_RATE_WSD, /* constant, then down in the last `cooldown` steps */
	TRAIN_SCHEDULES
};
const char *train_method_name(enum train_method m);	/* "adamw" */
const char *train_schedule_name(enum train_schedule s); /* "cosine" */
bool train_method_parse(const char *name, enum train_method *m, struct err *e);
bool train_schedule_parse(const char *name, enum train_schedule *s,
			  struct err *e);

/*
 * How weights follow gradients.  There are two groups: matrices decay, norms
 * never do.  Decay is decoupled: a weight loses rate * decay of itself.
 */
struct train_rule {
	enum train_method method; /* as the graph was made for */
	enum train_schedule schedule;
	uint64_t steps, warmup, cooldown;
	double rate;	/* at its highest */
	double least;	/* the share of it at the end */
	double beta1, beta2, epsilon; /* AdamW */
	double momentum;	      /* SGD, Muon */
	double decay;
	double clip;	/* of the length of all gradients together; 0: none */
	double average; /* the share that a moving average keeps in a step */
	uint64_t seed;	/* of stochastic rounding */
	uint64_t grow_after; /* f16: good steps until the scale doubles */
};
/* AdamW as most use it: 0.9, 0.95, 1e-8, decay 0.1, clip 1, rate 1e-3. */
void train_rule_init(struct train_rule *r);
/* ERR_USAGE names what is out of range. */
bool train_rule_check(const struct train_rule *r, struct err *e);
/* The learning rate of step `step`, from 0: up in `warmup` steps, then down. */
double train_rate(const struct train_rule *r, uint64_t step);

/* What an optimizer does in a step, the same for all of a parameter. */
struct train_adam {
	float rate, keep; /* keep: what decay leaves of a weight */
	float beta1, beta2, epsilon;
	float correct1, correct2; /* 1 / (1 - beta^steps) */
	float momentum;
	float clip; /* what a gradient is multiplied with */
};
/* What a rule does in a step, gradients being `norm` long (0: no clipping). */
void train_adam_init(struct train_adam *a, const struct train_rule *r,
		     uint64_t step, double norm);
/* For a parameter that is a matrix, or not: that does not decay. */
void train_adam_decay(struct train_adam *a, const struct train_rule *r,
		      bool matrix);

/*
 * Step `step` of a rule: clips, updates, and sets gradients to 0.  *norm is the
 * length of all gradients together before clipping; if that is not a number
 * nothing is updated.  Only a device fails.
 *
 * Weights in bf16 without masters are rounded up or down by chance, in
 * proportion to what is near; the chances depend on seed, step and place.
 */
bool train_update(struct train *x, const struct train_rule *r, uint64_t step,
		  double *norm, struct err *e);
struct train_place;
#define TRAIN_LOSS_SCALE 65536 /* of f16, at first */
/*
 * Behind a step of f16 whose gradients were `norm` long: if that is no number,
 * the step was skipped, and the loss's scale is halved; after `grow_after` good
 * ones in a row it doubles, up to 2^24.  Keeps it in `p` and gives it to `x`.
 * Returns false for a skipped step.  Other types: true, nothing is done.
 */
bool train_scale_follow(struct train *x, const struct train_rule *r,
			double norm, struct train_place *p);
/* A moving average begins: as the weights are now. */
void train_average_begin(struct train *x);
/* After masters were set: weights of 16 bits become them, rounded. */
void train_weights_round(struct train *x);

/* ---------------------------------------------------------- muon.c ------ */

/*
 * Newton-Schulz: makes all singular values of x [rows][cols] about 1, within
 * [0.6, 1.3], from any that are at least 1e-3 of the length of x.  space: two
 * matrices like x and two squares of the smaller side.
 *
 * Products are coarse (autotune/cpu/gemm.h).  bf16 is known to be enough for
 * them, and that is more: 16 bits of every value with AMX, where it saves as
 * much; elsewhere f32, as bf16 would save nothing there.
 */
void train_orthogonalize(float *x, uint32_t rows, uint32_t cols,
			 float *const space[4], struct cpu_gemm_scratch *gemm,
			 struct threads *t, unsigned thread);

/* -------------------------------------------------------- folder.c ------ */

/*
 * Weights as models begin: normal with deviation 0.02, what is added to the
 * residual stream smaller by the root of twice the layers; norms are 1.
 */
void train_random(struct train *x, uint64_t seed);
/* Adapters as they begin: A uniform within 1 / sqrt(in), B zero. */
void train_adapters_random(struct train *x, uint64_t seed);
/*
 * adapter_config.json and adapter_model.safetensors (f32), as peft has them;
 * `base` names the model that they belong to (null there if it is not UTF-8).
 */
bool train_adapters_write(const struct train *x, const char *dir,
			  const char *base, struct err *e);
/* Weights of a Hugging Face folder of the graph's shape, of any float type. */
bool train_read(struct train *x, const char *dir, struct err *e);
/*
 * config.json, generation_config.json and model.safetensors (in the type of the
 * graph), each written beside its place and renamed; the weights, or with
 * `average` their moving average; adapters are added to what they belong to.
 */
bool train_write(const struct train *x, const char *dir, bool average,
		 struct err *e);

/* ---------------------------------------------------- checkpoint.c ------ */

/* How far a run has come. */
struct train_place {
	uint64_t step;	   /* the next one */
	uint64_t row;	   /* of the corpus: the next one */
	uint64_t tokens;   /* learnt so far */
	double best;	   /* the least loss of what is held out; INFINITY */
	uint64_t best_step;
	double loss_sum;     /* of the steps since the caller's last report */
	uint64_t loss_steps; /* how many these are */
	double loss_scale;   /* f16: at present; else 1 */
	uint64_t good_steps; /* since it changed */
	uint64_t skipped;    /* steps, in all */
};

/*
 * Weights that learn, what the optimizer keeps, and the place: all that a run
 * needs to go on with the same bits.  The file is written beside its place,
 * flushed and renamed, so there is always a whole one.  `about` says what the run is, in
 * lines "name value"; a run that goes on must be the same.
 */
bool train_checkpoint_write(const struct train *x, const char *path,
			    const char *about, const struct train_place *p,
			    struct err *e);
/*
 * ERR_INPUT: the file is damaged (its checksum is another), or of another run:
 * the first line of `about` that differs is named.  The arena is undefined
 * after an error.
 */
bool train_checkpoint_read(struct train *x, const char *path,
			   const char *about, struct train_place *p,
			   struct err *e);

#endif
