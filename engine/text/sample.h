/*
 * sample - from logits to the next token.
 *
 * In the order that Hugging Face applies them: repetition penalty,
 * temperature, top-k, top-p, min-p, then one draw.  Temperature 0 is greedy:
 * the largest logit, the lowest id of equals.  The same seed and logits give
 * the same tokens on every machine.
 */
#ifndef T0_ENGINE_SAMPLE_H
#define T0_ENGINE_SAMPLE_H

#include "base/base.h"

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

#endif
