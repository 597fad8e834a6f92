/*
 * config - what a Qwen3 model is: config.json and generation_config.json.
 *
 * Only dense Qwen3 models are read ("model_type": "qwen3"): anything that this
 * engine would compute wrongly (rotary scaling, sliding windows, attention
 * bias, another activation) is refused by name, never ignored.
 */
#ifndef T0_ENGINE_CONFIG_H
#define T0_ENGINE_CONFIG_H

#include "base/base.h"

#define QWEN_MAX_STOPS 8

struct qwen_config {
	uint32_t layers;	/* num_hidden_layers */
	uint32_t hidden;	/* hidden_size */
	uint32_t heads;		/* num_attention_heads: of queries */
	uint32_t kv_heads;	/* num_key_value_heads; divides heads */
	uint32_t head_dim;	/* even */
	uint32_t ffn;		/* intermediate_size */
	uint32_t vocab;		/* vocab_size */
	uint32_t max_positions; /* max_position_embeddings */
	double rope_theta;
	double norm_eps;	/* rms_norm_eps */
	bool tied;		/* the output layer is the embedding */

	/* generation_config.json, where it exists; else greedy, no limit */
	bool sample; /* do_sample */
	double temperature, top_p, min_p, repetition_penalty;
	uint32_t top_k; /* 0: all */
	uint32_t stop[QWEN_MAX_STOPS]; /* eos_token_id */
	uint32_t n_stops;
};

/* Reads both files of a model's folder; errors name file and key. */
bool qwen_config_load(struct qwen_config *c, const char *dir, struct err *e);
/* The same from text; `generation` may be NULL. */
bool qwen_config_parse(struct qwen_config *c, const char *config,
		       const char *generation, struct err *e);
/* Parameters in all, and those that a decoded token reads. */
uint64_t qwen_config_params(const struct qwen_config *c);
/*
 * Floating-point operations of a prompt of n tokens in the matrices and in
 * attention, with the output layer for the last token alone.
 */
double qwen_config_flop(const struct qwen_config *c, uint32_t n);

#endif
