/*
 * engine/model/convert_int.h - what the files of conversions share: what is
 * written (convert_plan.c), its words (convert_words.c), its bytes (convert.c).
 */
#ifndef T0_ENGINE_CONVERT_INT_H
#define T0_ENGINE_CONVERT_INT_H

#include <string.h>

#include "engine/model/model.h"

struct conversion {
	const struct qwen_conversion *how;
	bool to_gguf;
	struct qwen_config config;
	struct qwen_tensors in;
	/* What is written, and of what, in the order of the files. */
	struct qwen_tensor *out;
	const struct qwen_tensor **from;
	const char **packed; /* its name, where it is packed by others */
	size_t n;
	const char *joined; /* what a tensor of experts will be called */
	struct arena mem;
	struct qwen_blocks blocks; /* of the tensor that is written */
	float *row;		   /* of a norm */
	struct buf bytes;
};

static inline bool dtype_is_float(enum qwen_dtype t)
{
	return t == QWEN_F32 || t == QWEN_F16 || t == QWEN_BF16;
}

static inline bool name_has_end(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* --------------------------------------------------- convert_plan.c ---- */

/* All tensors of the file or folder, in their order, and of what. */
bool qwen_convert_plan(struct conversion *c, struct err *e);
/* What is taken instead of a tensor, or NULL. */
const struct qwen_matrix *qwen_convert_made(const struct conversion *c,
					    const char *name);
/* The tensor of a tensor's scales, or NULL. */
const struct qwen_tensor *qwen_convert_scale(const struct conversion *c,
					     const struct qwen_tensor *t);

/* -------------------------------------------------- convert_words.c ---- */

/* Tokenizer and template: into a file's keys, or as a folder's files. */
bool qwen_convert_words_put(struct conversion *c, struct qwen_gguf_out *o,
			    struct err *e);
bool qwen_convert_words_write(struct conversion *c, struct err *e);
/* One of a folder's files. */
bool qwen_convert_text(struct conversion *c, const char *name,
		       const struct buf *text, struct err *e);

#endif
