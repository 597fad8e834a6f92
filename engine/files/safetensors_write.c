/*
 * engine/files/safetensors_write.c - safetensors files, written.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/files_int.h"

size_t qwen_tensor_bytes(const struct qwen_tensor *t)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < t->n_dims; i++)
		n *= t->shape[i];
	return (size_t)(n / qwen_dtype_values(t->dtype)) *
	       qwen_dtype_bytes(t->dtype);
}

/* In the order of the tensors, which is that of their data. */
static char *header_text(const struct qwen_tensor *t, size_t n)
{
	json_t *all = json_object();
	json_int_t at = 0;

	for (size_t i = 0; i < n; i++) {
		json_int_t end = at + (json_int_t)qwen_tensor_bytes(&t[i]);
		json_t *shape = json_array();
		for (uint32_t d = 0; d < t[i].n_dims; d++)
			json_array_append_new(shape, json_integer(
				(json_int_t)t[i].shape[d]));
		json_object_set_new(all, t[i].name, json_pack(
			"{s:s, s:o, s:[I,I]}", "dtype",
			qwen_dtype_name(t[i].dtype), "shape", shape,
			"data_offsets", at, end));
		at = end;
	}
	char *text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	return text;
}

/* The header's length, and the header, so that data begin in a cache line. */
static bool header_add(struct qwen_stream *s, const char *text, struct err *e)
{
	size_t len = strlen(text), padded = (8 + len + 63) / 64 * 64 - 8;
	uint8_t head[8];
	char blanks[64];

	memset(blanks, ' ', sizeof(blanks));
	for (int i = 0; i < 8; i++)
		head[i] = (uint8_t)((uint64_t)padded >> 8 * i);
	return qwen_stream_add(s, head, 8, e) &&
	       qwen_stream_add(s, text, len, e) &&
	       qwen_stream_add(s, blanks, padded - len, e);
}

bool qwen_tensors_write(const char *path, const struct qwen_tensor *t, size_t n,
			qwen_bytes_fn *make, void *ctx, struct err *e)
{
	struct qwen_stream s;
	bool ok = qwen_stream_open(&s, path, e);
	char *text = header_text(t, n);

	ok = ok && header_add(&s, text, e);
	for (size_t i = 0; ok && i < n; i++) {
		const void *data = make(ctx, i, e);
		ok = data && qwen_stream_add(&s, data,
					     qwen_tensor_bytes(&t[i]), e);
	}
	free(text);
	return qwen_stream_close(&s, ok, e);
}
