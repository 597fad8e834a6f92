/*
 * engine/model - models from files, and files from models: the manual.
 *
 * One description of a model serves every backend (engine/state/state.h).
 *
 *	struct qwen_model m;
 *	if (!qwen_model_load(&m, dir, &how, threads, &e))
 *		...
 *	struct qwen_state *s = qwen_state_new(&m, &shape, &e);
 *	qwen_forward(s, tokens, n, &e);
 *	next = argmax(qwen_logits(s, n - 1));
 */
#ifndef T0_ENGINE_MODEL_H
#define T0_ENGINE_MODEL_H

#include "engine/state/state.h"
#include "engine/text/text.h"

/* -------------------------------------------------------- backends.c ---- */

/* NULL is the first of the table; ERR_UNSUPPORTED lists what there is. */
const struct qwen_backend *qwen_backend_find(const char *name, struct err *e);

/* ----------------------------------------------------------- model.c ---- */

/*
 * Weights of the wanted type stay where they are mapped, in large pages as soon
 * as that can be (engine/files/files.h: maps.c; qwen_settling_wait(m->settling)
 * waits); others are converted, rounded to nearest even.  Integer types
 * need columns in multiples of QWEN_GROUP.  Tensors that no pass would use are
 * refused.  On failure `m` is empty.
 */
bool qwen_model_load(struct qwen_model *m, const char *dir,
		     const struct qwen_load *how, struct threads *threads,
		     struct err *e);

/* -------------------------------------------------------- retrieve.c ---- */

/* How texts become vectors, with a state of the caller's, which is emptied. */
struct qwen_embedding {
	struct qwen_state *state;
	uint32_t sequences, max_tokens; /* the state's shape */
	uint32_t dimensions; /* of a vector: 1 to the model's hidden size */
};
/*
 * The vector of each of n texts (qwen_search_encode(), none empty) into out
 * [n][dimensions]: the beginning of what the last norm makes of the last token,
 * with length 1.  Texts share passes.
 */
bool qwen_embed(const struct qwen_embedding *how, const struct qwen_ids *text,
		uint32_t n, float *out, struct err *e);

struct qwen_judging {
	struct qwen_state *state; /* its first sequence, which is emptied */
	uint32_t max_tokens;	  /* the state's */
	uint32_t yes, no;	  /* tokens: qwen_judge_words() */
};
/*
 * For each of n prompts (qwen_judge_encode()) the probability of "yes" where
 * the answer is that or "no".  What a prompt begins with as the one before it
 * is computed once.
 */
bool qwen_judge(const struct qwen_judging *how, const struct qwen_ids *prompt,
		uint32_t n, double *score, struct err *e);

/* -------------------------------------------------------- quantize.c ---- */

/*
 * A model's folder with its matrices as groups of integers, and what that costs
 * in quality.
 *
 * What is written is a Hugging Face folder that qwen_model_load() reads as it
 * is: each matrix NAME as I8 [rows][cols], or as U8 [rows][cols / 2] for INT4
 * (engine/weights/weights.h has the order of its halves), with NAME_scale as
 * F16 [rows][cols / 32] beside it, or as one of our own types, I6_32 to I3_256
 * [rows][cols], whose bytes are blocks; norms are F32.  Configuration and tokenizer
 * are copied.
 */

/* Writes m, whose matrices are such integers, from the folder `from`. */
bool qwen_quantized_write(struct qwen_model *m, const char *from,
			  const char *to, struct err *e);

/* A text, in windows that models see one by one. */
struct qwen_sample_text {
	const uint32_t *ids; /* [n], n at least 2 */
	size_t n;
	uint32_t window; /* tokens of one, at least 2 */
};
/* How far b's predictions are from a's, over a text. */
struct qwen_quality {
	uint32_t tokens;	/* predictions compared */
	double kl;		/* mean of KL(a || b), nats */
	double kl_off;		/* half of the 95 % interval of that mean */
	double kl_worst;
	double same_best;	/* share of tokens with the same likeliest */
	double perplexity_a, perplexity_b;
};
/* KL(a || b) of logits [n] whose log totals are ta and tb, nats. */
double qwen_divergence(const float *a, double ta, const float *b, double tb,
		       uint32_t n);
/* Both models have the same vocabulary. */
bool qwen_quality(const struct qwen_model *a, const struct qwen_model *b,
		  const struct qwen_sample_text *text,
		  const _Atomic int *stop, struct qwen_quality *out,
		  struct err *e);

/* ------------------------------------------------------- calibrate.c ---- */

/* What makes a model's matrices integers that fit a text. */
#define QWEN_CALIBRATION_LEAST 128 /* tokens */
struct qwen_calibration {
	enum qwen_weights type; /* as qwen_matrix_fit() takes it */
	/* Or NULL: instead of it, of each matrix by qwen_matrix_number(). */
	const enum qwen_weights *types;
	const uint32_t *ids;	/* [n] */
	size_t n;
	struct progress *progress; /* in layers, or NULL */
	/* Or NULL: ends early, with the model of no use, once it is set. */
	const _Atomic int *stop;
};
/*
 * In the place of a model's matrices of floats, on the processor; norms and
 * routers stay.  The text is read once for each layer; an expert sees what is
 * sent to it, and what gets none is rounded.
 */
bool qwen_model_calibrate(struct qwen_model *m,
			  const struct qwen_calibration *how, struct err *e);

/* Can it be, with so many tokens?  It says why not. */
bool qwen_calibration_check(const struct qwen_model *m, size_t n,
			    struct err *e);

/* ---------------------------------------------------------- budget.c ---- */

/*
 * Matrices by number: the embedding, those of each layer in the order of a
 * pass, the output layer where it is another one.  Where there are experts,
 * their gates have one number, and so have their ups and their downs.
 */
uint32_t qwen_matrix_count(const struct qwen_model *m);
uint32_t qwen_matrix_number(const struct qwen_model *m,
			    const struct qwen_matrix *w);
/*
 * The type of each number, types[qwen_matrix_count()], so that all of them have
 * `bits` for a weight at most, scales included, and little is lost: each matrix
 * alone as each type says by how much the predictions of a text diverge; what
 * helps most for its bytes is taken first.  The model is one of floats, on the
 * processor, and is as it was afterwards.  ERR_USAGE: fewer bits than there
 * are.
 */
struct qwen_budget {
	double bits;
	bool own; /* types of folders, else those of GGUF files */
	const uint32_t *ids; /* [n], of which some are looked at */
	size_t n;
	struct progress *progress; /* in matrices, or NULL */
	const _Atomic int *stop; /* or NULL */
};
bool qwen_budget_spend(struct qwen_model *m, const struct qwen_budget *how,
		       enum qwen_weights *types, struct err *e);

/* --------------------------------------------------------- convert.c ---- */

/*
 * A model's folder as one GGUF file, or a GGUF file as a folder or another such
 * file: weights, configuration, tokenizer and template of conversations.
 *
 * Without a type nothing is lost: a file takes floats as they are, and int8 and
 * int4 as Q8_0 and Q4_0, which are the same numbers; a folder takes floats as
 * they are, and blocks as F32.  FP8, GPTQ and AWQ become F32.  A type is of the matrices; where a row is no
 * whole number of its blocks the nearest smaller one is taken, as others do.
 * Norms are F32 in a file; in a folder they have the matrices' type where that
 * holds their values.  The same model gives the same bytes.
 */
struct qwen_conversion {
	const char *from, *to; /* a name that ends in .gguf is a file */
	bool typed;
	enum qwen_weights type;
	/*
	 * Or NULL: a model whose matrices a file takes instead of those of
	 * `from`, with their types; a dense one.
	 */
	const struct qwen_model *made;
	struct threads *threads;
	struct progress *progress; /* in tensors, or NULL */
	/* Or NULL: ends early, without the file begun, once it is set. */
	const _Atomic int *stop;
	/*
	 * Or NULL: written in any case.  Set where `to` was that copy already,
	 * and nothing was written (qwen_copy_is_current()).
	 */
	bool *current;
};
bool qwen_model_convert(const struct qwen_conversion *how, struct err *e);

/* --------------------------------------------------------- current.c ---- */

/*
 * Is the model `to` what would be written now?  As make sees it: its weights,
 * the file `weights`, are newer than each file of the model `from` and than the
 * program that runs, and have these tensors, t[n], named as in folders, with
 * their types and shapes; their numbers are not looked at.
 */
bool qwen_copy_is_current(const char *from, const char *to, const char *weights,
			  const struct qwen_tensor *t, size_t n);

/* ------------------------------------------------------- synthetic.c ---- */

/*
 * Models of any Qwen3 shape with random weights, for tests and benchmarks:
 * every path of the engine runs without a download.
 *
 * What is written is a Hugging Face folder: config.json,
 * generation_config.json, model.safetensors, and, for vocabularies of up to
 * QWEN_BPE_VOCAB_MAX tokens, tokenizer.json with a byte-pair encoding learnt
 * from text that every Debian system has.  Weights are uniform with the
 * variance that keeps activations near one, so that the arithmetic is as in a
 * trained model; what such a model says is noise.
 */

/* "tiny", "0.6b" .. "32b"; ERR_USAGE lists them. */
bool qwen_shape_find(const char *name, struct qwen_config *c, struct err *e);

struct qwen_synthetic {
	struct qwen_config config;
	enum qwen_weights weights; /* F32, F16 or BF16 */
	uint64_t seed;
	uint32_t shards; /* 0 and 1: one file */
	const char *tokenizer; /* a folder whose tokenizer files to copy */
	struct progress *progress; /* in tensors, or NULL */
	/* Or NULL: ends early, without the file begun, once it is set. */
	const _Atomic int *stop;
};
/* Writes the folder (made if it is not there); nothing is half-written. */
bool qwen_synthetic_write(const char *dir, const struct qwen_synthetic *how,
			  struct err *e);
/* Copies what makes up a tokenizer; ERR_INPUT: there is none. */
bool qwen_tokenizer_copy(const char *from, const char *dir, struct err *e);

#endif
