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
#ifndef T0_ENGINE_COHERENCE_H
#define T0_ENGINE_COHERENCE_H

#include "engine/text/tokenizer.h"

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

/*
 * Runs the checks on built-in streams, good ones and one for every fault.
 * false: this build's detector is broken, and `e` says on which.
 */
bool qwen_coherence_selftest(struct err *e);

#endif
