/*
 * make - models of any Qwen3 shape with random weights, for tests and
 * benchmarks: every path of the engine runs without a download.
 *
 * What is written is a Hugging Face folder: config.json,
 * generation_config.json, model.safetensors, and, for vocabularies of up to
 * QWEN_MOST_LEARNT tokens, tokenizer.json with a byte-pair encoding learnt from
 * text that every Debian system has.  Weights are uniform with the variance
 * that keeps activations near one, so that the arithmetic is as in a trained
 * model; what such a model says is noise.
 */
#ifndef T0_ENGINE_MAKE_H
#define T0_ENGINE_MAKE_H

#include <signal.h>

#include "engine/files/config.h"
#include "engine/weights/kernels.h"

/* "tiny", "0.6b" .. "32b"; ERR_USAGE lists them. */
bool qwen_shape_find(const char *name, struct qwen_config *c, struct err *e);

struct qwen_make {
	struct qwen_config config;
	enum qwen_weights weights; /* F32, F16 or BF16 */
	uint64_t seed;
	uint32_t shards; /* 0 and 1: one file */
	const char *tokenizer; /* a folder whose tokenizer files to copy */
	struct progress *progress; /* in tensors, or NULL */
	/* Or NULL: ends early, without the file begun, once it is set. */
	const volatile sig_atomic_t *stop;
};
/* Writes the folder (made if it is not there); nothing is half-written. */
bool qwen_make(const char *dir, const struct qwen_make *how, struct err *e);

/* ---------------------------------------------------------- learn.c ---- */

#define QWEN_MOST_LEARNT 2048

/*
 * Learns a byte-pair encoding of `vocab` tokens (256 bytes, merges, Qwen's
 * special tokens last) from text, and appends it to `out` as tokenizer.json.
 */
bool qwen_learn(const char *text, size_t len_bytes, uint32_t vocab,
		struct buf *out, struct err *e);

#endif
