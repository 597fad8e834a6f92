/* cache - keys and values of the tokens so far, in one of four types. */
#ifndef T0_ENGINE_CACHE_H
#define T0_ENGINE_CACHE_H

#include "engine/model/model.h"

/*
 * [layers][sequences][kv_heads][positions] vectors of head_dim, for keys and
 * for values: those of one head lie together, as attention reads them.
 */
struct qwen_cache {
	enum qwen_weights type; /* F32, F16, BF16 or INT8 */
	uint32_t sequences, positions, kv_heads, head_dim;
	size_t vector_bytes;
	uint64_t size_bytes; /* of both */
	uint8_t *key, *value;
	const struct qwen_kernels *k;
};

bool qwen_cache_init(struct qwen_cache *c, const struct qwen_model *m,
		     const struct qwen_shape *shape, struct err *e);
void qwen_cache_fini(struct qwen_cache *c);
/* Index of a vector in `key` and in `value`. */
size_t qwen_cache_at(const struct qwen_cache *c, uint32_t layer,
		     uint32_t sequence, uint32_t head, uint32_t position);
/* Stores one vector of head_dim values. */
void qwen_cache_put(const struct qwen_cache *c, uint8_t *part, size_t at,
		    const float *x);
/*
 * The n vectors from `at` on as a matrix of F32, F16 or BF16; INT8 is widened
 * into space [n][head_dim].
 */
struct qwen_matrix qwen_cache_rows(const struct qwen_cache *c,
				   const uint8_t *part, size_t at, uint32_t n,
				   float *space);

#endif
