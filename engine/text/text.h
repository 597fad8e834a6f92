/*
 * engine/text - between text, tokens and conversations: the manual.
 *
 * Qwen's byte-level byte-pair encoding (tokenizer.c, bpe.c, nfc.c) and its way
 * back (detokenize.c), a trainer of small ones (bpe_train.c), conversations
 * (chat.c), questions of a search (retrieve.c), the choice of the next token
 * (sample.c), how likely tokens are (likely.c), and the judgement of what was
 * generated (coherence.c).
 */
#ifndef T0_ENGINE_TEXT_H
#define T0_ENGINE_TEXT_H

#include "base/base.h"
#include "engine/files/files.h"

/* ------------------------------------------------------- tokenizer.c ---- */

/*
 * Text becomes tokens in four steps, as the published tokenizer does it:
 * 1. added tokens (<|im_start|> ...) are cut out, the longest at each place;
 * 2. what is between is brought to Unicode form NFC;
 * 3. a regular expression splits it into words, numbers, punctuation, spaces;
 * 4. in each piece, neighbouring tokens are merged, lowest rank first.
 * Every byte is a token, so nothing is unknown.  Bytes that are not UTF-8 are
 * pieces of their own and come back unchanged: decoding what was encoded gives
 * the NFC form of the text, byte for byte.
 *
 * Files: tokenizer.json; or vocab.json, merges.txt and, where they are there,
 * the "added_tokens_decoder" of tokenizer_config.json or added_tokens.json.
 * They are not trusted: what is damaged is refused with file and place.
 *
 * Threads may share a tokenizer; each encoder and each decoder (both cheap)
 * belongs to one.
 */

struct qwen_tokenizer;

/* Growing token ids. */
struct qwen_ids {
	uint32_t *v;
	size_t n, cap;
};
void qwen_ids_add(struct qwen_ids *ids, uint32_t id);
void qwen_ids_fini(struct qwen_ids *ids);

/* From a model's folder, or a GGUF file. */
struct qwen_tokenizer *qwen_tokenizer_load(const char *dir, struct err *e);
/*
 * From text, as the files hold it: either `json` (tokenizer.json), or `vocab`,
 * `merges` and optionally `added` (a list of {"id", "content", "special"}, or
 * an object of content to id).
 */
struct qwen_source {
	const char *json, *vocab, *merges, *added;
	const char *config; /* tokenizer_config.json, instead of `added` */
};
struct qwen_tokenizer *qwen_tokenizer_parse(const struct qwen_source *s,
					    struct err *e);
void qwen_tokenizer_free(struct qwen_tokenizer *t);

/* One more than the largest id. */
uint32_t qwen_tokenizer_size(const struct qwen_tokenizer *t);
/* The id of an added token by its content, or -1. */
int64_t qwen_token_find(const struct qwen_tokenizer *t, const char *content);
/* Its bytes; NULL for an id that is not given out.  *special may be NULL. */
const char *qwen_token_bytes(const struct qwen_tokenizer *t, uint32_t id,
			     size_t *len_bytes, bool *special);

/* ------------------------------------------------------------ gguf.c ---- */

/* Has the folder, or the file, a tokenizer at all? */
bool qwen_tokenizer_there(const char *path);
/* The tokenizer of a file, appended to `out` as tokenizer.json. */
bool qwen_gguf_tokenizer(const struct qwen_gguf *g, struct buf *out,
			 struct err *e);
/*
 * One for a file, as keys: `vocab` tokens, of which those without a meaning are
 * unused.
 */
void qwen_gguf_put_tokenizer(struct qwen_gguf_out *o,
			     const struct qwen_tokenizer *t, uint32_t vocab);

/* ------------------------------------------------------------- hfq.c ---- */

/* As qwen_gguf_tokenizer(). */
bool qwen_hfq_tokenizer(struct qwen_hfq *h, struct buf *out, struct err *e);

/* ------------------------------------------------------------- bpe.c ---- */

enum {
	QWEN_PLAIN = 1 << 0, /* added tokens in the text are text */
	QWEN_NO_NFC = 1 << 1,
};

struct qwen_encoder;
struct qwen_encoder *qwen_encoder_new(const struct qwen_tokenizer *t);
void qwen_encoder_free(struct qwen_encoder *x);
/* qwen_encode() ends with ERR_STOPPED when *stop is not 0; NULL: never. */
void qwen_encoder_stop(struct qwen_encoder *x, const _Atomic int *stop);
/* Appends the tokens of `text` (any bytes) to `ids`. */
bool qwen_encode(struct qwen_encoder *x, const char *text, size_t len_bytes,
		 unsigned flags, struct qwen_ids *ids, struct err *e);

/* ------------------------------------------------------ detokenize.c ---- */

/* Bytes of a character that is not complete yet.  Zero-initialise. */
struct qwen_detokenizer {
	char held[4];
	unsigned n_held;
	bool skip_special; /* leave special tokens out */
};
/*
 * Appends the text of one more token; the start of a character whose end has
 * not come is held back.  Ids that do not exist give nothing.
 */
void qwen_detokenize(struct qwen_detokenizer *d, const struct qwen_tokenizer *t,
		     uint32_t id, struct buf *out);
/* Appends what is still held. */
void qwen_detokenize_end(struct qwen_detokenizer *d, struct buf *out);

/* ------------------------------------------------------- bpe_train.c ---- */

#define QWEN_BPE_VOCAB_MAX 2048

/*
 * Learns a byte-pair encoding of `vocab` tokens (256 bytes, merges, Qwen's
 * special tokens last) from text, and appends it to `out` as tokenizer.json.
 */
bool qwen_bpe_train(const char *text, size_t len_bytes, uint32_t vocab,
		    struct buf *out, struct err *e);

/* ------------------------------------------------------------ chat.c ---- */

/*
 * The published chat template, written out: turns between <|im_start|> and
 * <|im_end|>, tools in the system turn, results of tools as user turns, and
 * thoughts of earlier turns left out.  Byte for byte what the template gives
 * (tests compare with its rules), for encoding without QWEN_PLAIN.
 */
enum {
	QWEN_CHAT_PROMPT = 1 << 0,   /* ends with the assistant's turn opened */
	QWEN_CHAT_NO_THINK = 1 << 1, /* thinking off: an empty one is given */
};

/*
 * `messages`: JSON, a list of {"role": "system" | "user" | "assistant" |
 * "tool", "content", and for the assistant optionally "reasoning_content" and
 * "tool_calls": [{"name", "arguments"}] or [{"function": {...}}]}.  `tools`:
 * JSON, a list of any objects, or NULL.  Appends to `out`.
 */
bool qwen_chat(const char *messages, const char *tools, unsigned flags,
	       struct buf *out, struct err *e);
/* One user's turn, with a system turn before it unless `system` is NULL. */
void qwen_chat_one(const char *system, const char *user, unsigned flags,
		   struct buf *out);

/* -------------------------------------------------------- retrieve.c ---- */

/*
 * What Qwen3-Embedding and Qwen3-Reranker are asked, as published.  `text` and
 * `document` are bytes that a user gave; `flags` are those of qwen_encode() for
 * them.  Instructions say in a sentence what is searched for.
 */
#define QWEN_SEARCH_INSTRUCTION "Given a web search query, retrieve relevant " \
				"passages that answer the query"
/* The token behind each text; ERR_INPUT: below `vocab` there is none. */
#define QWEN_SEARCH_END "<|endoftext|>"
bool qwen_search_end(const struct qwen_tokenizer *t, uint32_t vocab,
		     uint32_t *end, struct err *e);
/* A text, or with an instruction a query, and the token `end` behind it. */
bool qwen_search_encode(struct qwen_encoder *x, const char *instruction,
			const char *text, size_t len_bytes, unsigned flags,
			uint32_t end, struct qwen_ids *ids, struct err *e);
/* Does the document meet the query?  The next token answers. */
bool qwen_judge_encode(struct qwen_encoder *x, const char *instruction,
		       const char *query, const char *document,
		       size_t len_bytes, unsigned flags, struct qwen_ids *ids,
		       struct err *e);
/* The tokens of both answers; ERR_INPUT: the tokenizer has no such ones. */
bool qwen_judge_words(struct qwen_encoder *x, uint32_t *yes, uint32_t *no,
		      struct err *e);

/* ---------------------------------------------------------- sample.c ---- */

/*
 * From logits to the next token, in the order that Hugging Face applies them:
 * repetition penalty, temperature, top-k, top-p, min-p, then one draw.
 * Temperature 0 is greedy: the largest logit, the lowest id of equals.  The
 * same seed and logits give the same tokens on every machine.
 */
struct qwen_sampling {
	double temperature; /* 0: greedy */
	uint32_t top_k;	    /* 0: all */
	double top_p;	    /* 1: all */
	double min_p;	    /* 0: all */
	double repetition_penalty; /* 1: none */
	uint64_t seed;
};

struct qwen_sampler {
	struct qwen_sampling how;
	uint64_t state;
	uint32_t vocab;
	struct qwen_candidate {
		float logit;
		uint32_t id;
	} *candidate; /* [vocab] */
	double *p;	/* [vocab] */
	uint8_t *seen;	/* [vocab]: 1 for tokens of the text so far */
};

/* ERR_USAGE names the setting that is out of range. */
bool qwen_sampler_init(struct qwen_sampler *s, const struct qwen_sampling *how,
		       uint32_t vocab, struct err *e);
void qwen_sampler_fini(struct qwen_sampler *s);
/* A token of the text so far, prompt included. */
void qwen_sampler_see(struct qwen_sampler *s, uint32_t id);
/*
 * The next token; logits[vocab] stay as they are.  ERR_DEVICE if a logit is
 * NaN, or all are -infinity: the model's output is broken.
 */
bool qwen_sample(struct qwen_sampler *s, const float *logits, uint32_t *id,
		 struct err *e);
/* The same token, and odds[vocab]: the probabilities it was drawn with. */
bool qwen_sample_odds(struct qwen_sampler *s, const float *logits, double *odds,
		      uint32_t *id, struct err *e);
/*
 * The next token, where `proposed` was drawn from odds[vocab]: that is it with
 * probability min(1, p / odds), else one drawn from max(0, p - odds), so that
 * it has p, the probabilities of qwen_sample().
 */
bool qwen_sample_proposed(struct qwen_sampler *s, const float *logits,
			  uint32_t proposed, const double *odds, uint32_t *id,
			  struct err *e);

/* ---------------------------------------------------------- likely.c ---- */

/* log sum exp(v[i]) of n >= 1 logits. */
double qwen_log_total(const float *v, uint32_t n);
/* A token and the natural logarithm of its probability by the logits alone. */
struct qwen_likely {
	uint32_t id;
	double log_p;
};
/*
 * Fills the logarithm of *said, whose id is below `vocab`, and the `n` likeliest
 * tokens, best first, the lowest id of equals.  n is at most vocab.
 */
void qwen_find_likely(const float *logits, uint32_t vocab,
		      struct qwen_likely *said, struct qwen_likely *top,
		      uint32_t n);

/* ------------------------------------------------------- coherence.c ---- */

/*
 * coherence - does generated text make sense, as far as a machine can tell?
 *
 * Fast and wrong output is the classic way to win a benchmark.  This looks at a
 * stream of tokens for what broken kernels and broken sampling produce: one
 * token for ever, loops, leaked special tokens, an immediate end.  Loops are
 * found by their period (1 to 64 tokens), not by counting n-grams, which a loop
 * of five tokens passes.
 *
 * A check needs tokens to look at: shares are judged from QWEN_LEAST_JUDGED
 * tokens on; below that only the other checks speak.
 */
#define QWEN_JUDGED_TOKENS 128	/* of the beginning, and of the end */
#define QWEN_LEAST_JUDGED 32
#define QWEN_LONGEST_PERIOD 64

enum qwen_limit {
#define LIMIT(name, value, side, what) QWEN_LIMIT_##name,
#include "engine/text/coherence.def"
	QWEN_LIMITS
};

struct qwen_limits {
	double v[QWEN_LIMITS];
};
void qwen_limits_init(struct qwen_limits *l);
/* From a file of lines "name value"; errors name file and line. */
bool qwen_limits_load(struct qwen_limits *l, const char *path, struct err *e);
bool qwen_limits_parse(struct qwen_limits *l, const char *text, struct err *e);
const char *qwen_limit_name(enum qwen_limit i);
const char *qwen_limit_what(enum qwen_limit i);

struct qwen_stream {
	const uint32_t *id; /* without the prompt */
	size_t n;
	const uint32_t *stop; /* tokens that end a text; one at most does */
	size_t n_stops;
	bool thinking; /* the prompt asked for a <think> block */
};

struct qwen_coherence {
	double value[QWEN_LIMITS]; /* what was found; NAN: not to be judged */
	bool broken[QWEN_LIMITS];
	bool passed;	 /* nothing is broken */
	size_t loop_at;	 /* where the longest loop begins, and its period */
	uint32_t period; /* 0: none */
};

/*
 * Looks at a stream.  `t` gives the special tokens and the text; it may not be
 * NULL, for a check that cannot run has not passed.
 */
void qwen_coherence_check(struct qwen_coherence *c, const struct qwen_stream *s,
			  const struct qwen_tokenizer *t,
			  const struct qwen_limits *l);

/* -------------------------------------------------- coherence_self.c ---- */

/*
 * Runs the checks on built-in streams, good ones and one for every fault.
 * false: this build's detector is broken, and `e` says on which.
 */
bool qwen_coherence_selftest(struct err *e);

#endif
