/*
 * engine/cmd - the commands of t0-qwen3, and what they share.
 */
#ifndef T0_ENGINE_CMD_H
#define T0_ENGINE_CMD_H

#include <limits.h>

#include "base/cmd.h"
#include "engine/model/model.h"
#include "engine/text/text.h"

struct qwen_cmd {
	struct cmd cmd;
	/* the model and how to run it */
	const char *model, *backend, *device, *chip;
	const char *weights, *cache; /* NULL: as stored; f16 */
	const char *activations;     /* NULL: auto */
	uint64_t threads, context, chunk, devices;
	bool copy;
	bool mapped; /* weights are not computed with */
	const char *checksum;
	/* the text */
	const char *prompt, *prompt_file, *system, *messages, *tools, *ids;
	bool chat, no_think, plain;
	uint64_t tokens;
	/* sampling; NAN and UINT64_MAX: as the model says */
	double temperature, top_p, min_p, penalty;
	uint64_t top_k;
	bool greedy;
	uint64_t seed;
	const char *speculate, *draft, *heads_dir; /* NULL: a token a pass */
	/* bench */
	const char *prefill, *decode, *batch, *depth, *db;
	uint64_t samples;
	bool fresh;	 /* a process for each sample */
	const char *one; /* this is such a process, for this phase */
	/* quantize */
	const char *to, *calibrate;
	double bits; /* for a weight; 0: one type */
	bool frontier;
	/* embed, rerank */
	struct cli_list queries;
	const char *instruct, *texts;
	uint64_t dimensions; /* 0: all */
	bool cosine;
	bool headless; /* the output layer is of no use */
	/* convert */
	const char *type;
	/* tokenize */
	bool offsets, detokenize;
	/* make, check */
	const char *shape, *tokenizer, *limits;
	uint64_t shards;
	bool all;
	/* train */
	struct cli_list data, valid;
	uint64_t steps, rows, accumulate, length, layers, hidden, heads,
		kv_heads, head_dim, ffn, vocab, warmup, cooldown, eval_every,
		save_every, lora, medusa, eagle;
	double valid_share, rate, rate_end, decay, clip, beta1, beta2,
		momentum, average;
	const char *engram; /* ROWS[:LAYER], or NULL */
	const char *precision, *recompute, *optimizer, *schedule,
		*lora_targets;
	bool untied, no_masters, resume;
	const char *sweep, *shard; /* NULL: one run; the whole sweep */
	bool train; /* of forecast */
	bool tui; /* of train and serve */
	/* serve */
	const char *bind, *key_file, *pooling;
	uint64_t port, sequences, blocks, queue, max_body, timeout, receive,
		grace;
	/* load */
	const char *url, *asked_model, *request_rate, *trace, *log;
	uint64_t requests, words;
	double within_first, within_token;
	/* chat */
	const char *thinking, *history;
	uint64_t answer; /* tokens of one, at most */
	const _Atomic int *stop; /* of cmd */
};

/* A loaded model with its tokenizer; `tok` is NULL where no files are. */
struct qwen_session {
	struct progress bar; /* of loading; warnings that follow use it, too */
	struct threads *threads;
	struct qwen_model model;
	struct qwen_tokenizer *tok;
	bool loaded;
};
/* Is the tokenizer read?  Where the text is all ids, it need not be there. */
enum qwen_words { QWEN_WORDS_NO, QWEN_WORDS_IF_THERE, QWEN_WORDS };
bool qwen_session_open(struct qwen_session *s, const struct qwen_cmd *c,
		       enum qwen_words words, struct err *e);
void qwen_session_close(struct qwen_session *s);
/* The prompt of the command line as tokens. */
bool qwen_cmd_prompt(const struct qwen_cmd *c, const struct qwen_session *s,
		     struct qwen_ids *ids, struct err *e);
/* Greedy, what was asked for, or what the model says. */
struct qwen_sampling qwen_cmd_sampling(const struct qwen_cmd *c,
				       const struct qwen_config *m);
bool qwen_cmd_state(const struct qwen_cmd *c, const struct qwen_session *s,
		    uint32_t sequences, uint32_t positions,
		    struct qwen_state **out, struct err *e);
/* All of `ids` into sequence 0 in chunks; logits of the last, or of all. */
bool qwen_feed(const struct qwen_cmd *c, struct qwen_state *st,
	       const uint32_t *ids, size_t n,
	       bool (*each)(void *ctx, size_t i, const float *logits,
			    struct err *e),
	       void *ctx, struct err *e);

/* What products of the layers, of long passes or short ones, round to. */
const char *qwen_cmd_activations(const struct qwen_model *m, bool wide);

/*
 * What rows of the database call a model: the last part of its path.  With
 * QWEN_INPUTS bytes res_params() has room for it beside what else there is.
 */
const char *qwen_cmd_name(const char *path);
enum { QWEN_INPUTS = 6 * PATH_MAX + 256 };

/* What numbers of options may be: the first that is not is refused. */
struct qwen_option {
	const char *name; /* without -- */
	uint64_t got, least, most;
};
bool qwen_options_check(const struct qwen_option *v, size_t n, struct err *e);

/* --devices; `processor`: it is what computes, which is one. */
bool qwen_cmd_devices(const struct qwen_cmd *c, bool processor, struct err *e);
/* --accumulate: batches of a step, which --devices share. */
bool qwen_cmd_batches(const struct qwen_cmd *c, struct err *e);

/* What of a step the options say: all but the sizes of a new model. */
struct train_how;
bool qwen_cmd_how(const struct qwen_cmd *c, struct train_how *how,
		  struct err *e);
/* forecast --train: a step on a card, simulated, as a table and as rows. */
struct cost_model;
bool qwen_forecast_step(const struct qwen_cmd *c, const struct qwen_config *m,
			const struct cost_model *costs, struct err *e);

/* The commands. */
bool qwen_cmd_generate(struct cmd *c, struct err *e);
bool qwen_cmd_logits(struct cmd *c, struct err *e);
bool qwen_cmd_eval(struct cmd *c, struct err *e);
bool qwen_cmd_bench(struct cmd *c, struct err *e);
bool qwen_cmd_info(struct cmd *c, struct err *e);
bool qwen_cmd_forecast(struct cmd *c, struct err *e);
bool qwen_cmd_quantize(struct cmd *c, struct err *e);
bool qwen_cmd_embed(struct cmd *c, struct err *e);
bool qwen_cmd_rerank(struct cmd *c, struct err *e);
bool qwen_cmd_convert(struct cmd *c, struct err *e);
bool qwen_cmd_tokenize(struct cmd *c, struct err *e);
bool qwen_cmd_make(struct cmd *c, struct err *e);
bool qwen_cmd_check(struct cmd *c, struct err *e);
bool qwen_cmd_train(struct cmd *c, struct err *e);
bool qwen_cmd_serve(struct cmd *c, struct err *e);
bool qwen_cmd_chat(struct cmd *c, struct err *e);
bool qwen_cmd_load(struct cmd *c, struct err *e);

#endif
