/*
 * engine/speculate/heads_int.h - folders of heads (medusa.c, eagle.c): their
 * config.json, and what their tensors are to the host's products.
 *
 * Private to engine/speculate.
 */
#ifndef T0_ENGINE_SPECULATE_HEADS_INT_H
#define T0_ENGINE_SPECULATE_HEADS_INT_H

#include <jansson.h>

#include "engine/speculate/speculate.h"

/* config.json of a folder; NULL and *e, which names the file. */
json_t *heads_config_open(const char *dir, struct err *e);
/* A count of it, least to most, or where it is missing `otherwise`. */
#define HEADS_NEED UINT32_MAX /* it must not be missing */
bool heads_count_read(const json_t *j, const char *key, uint32_t least,
		      uint32_t most, uint32_t otherwise, uint32_t *out,
		      struct err *e);
/* The tensor of that name, [rows][cols], as it is stored. */
bool heads_matrix_find(const struct qwen_tensors *t,
		       const struct qwen_kernels *k, const char *name,
		       uint32_t rows, uint32_t cols, struct qwen_matrix *out,
		       struct err *e);
/* The one of one dimension [n] as f32, in `mem`; NULL and *e. */
float *heads_row_find(const struct qwen_tensors *t,
		      const struct qwen_kernels *k, struct arena *mem,
		      const char *name, uint32_t n, struct err *e);

#endif
