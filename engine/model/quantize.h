/*
 * quantize - a model's folder with its matrices as groups of integers, and what
 * that costs in quality.
 *
 * What is written is a Hugging Face folder that qwen_model_load() reads as it
 * is: each matrix NAME as I8 [rows][cols], or as U8 [rows][cols / 2] for INT4
 * (engine/weights/kernels.h has the order of its halves), with NAME_scale as F16
 * [rows][cols / 32] beside it; norms are F32.  Configuration and tokenizer are
 * copied.
 */
#ifndef T0_ENGINE_QUANTIZE_H
#define T0_ENGINE_QUANTIZE_H

#include "engine/model/model.h"

/* Writes m, which has been loaded as INT8 or INT4 from the folder `from`. */
bool qwen_quantized_write(const struct qwen_model *m, const char *from,
			  const char *to, struct err *e);

/* How far b's predictions are from a's, over one text. */
struct qwen_quality {
	uint32_t tokens;	/* predictions compared */
	double kl;		/* mean of KL(a || b), nats */
	double kl_worst;
	double same_best;	/* share of tokens with the same likeliest */
	double perplexity_a, perplexity_b;
};
/* ids [n], n at least 2; both models have the same vocabulary. */
bool qwen_quality(const struct qwen_model *a, const struct qwen_model *b,
		  const uint32_t *ids, uint32_t n,
		  const volatile sig_atomic_t *stop, struct qwen_quality *out,
		  struct err *e);

#endif
