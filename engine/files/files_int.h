/*
 * engine/files/files_int.h - what the readers of files share.
 */
#ifndef T0_ENGINE_FILES_INT_H
#define T0_ENGINE_FILES_INT_H

#include <jansson.h>
#include <stdio.h>

#include "engine/files/files.h"

/* ----------------------------------------------------------- maps.c ---- */

/* The file, mapped, one more of t's; `path` lives as long as `t`. */
const struct qwen_map *qwen_file_map(struct qwen_tensors *t, const char *path,
				     struct err *e);
void qwen_file_unmap(struct qwen_map *m);

/* ----------------------------------------------------- safetensors.c ---- */

/* x's bytes are at `data`: copied if they are not aligned to their type. */
void qwen_tensor_place(struct qwen_tensors *t, struct qwen_tensor *x,
		       const void *data);
/* By name; a name that is there twice is refused. */
bool qwen_tensors_sort(struct qwen_tensors *t, struct err *e);

/* --------------------------------------------------------- packing.c ---- */

/* From "quantization_config", NULL where there is none. */
bool qwen_packing_read(struct qwen_packing *p, const json_t *j, struct err *e);

/* ---------------------------------------------------------- stream.c ---- */

/* A file under another name until it is whole; `path` is the caller's. */
struct qwen_stream {
	FILE *f;
	const char *path;
	char *tmp;
};
/* Each stream is closed, opened or not. */
bool qwen_stream_open(struct qwen_stream *s, const char *path, struct err *e);
bool qwen_stream_add(struct qwen_stream *s, const void *p, size_t n,
		     struct err *e);
/* On disk and in its place, or, if not `ok`, gone; returns which. */
bool qwen_stream_close(struct qwen_stream *s, bool ok, struct err *e);

/* ------------------------------------------------------------ gguf.c ---- */

/* What is left of a file's head. */
struct qwen_cursor {
	const uint8_t *at, *end;
};
/* The next bytes, or a number of so many; `what` they are is for the message.
 */
const uint8_t *qwen_bytes_take(struct qwen_cursor *c, uint64_t n,
			       const char *what, struct err *e);
bool qwen_number_take(struct qwen_cursor *c, unsigned bytes, const char *what,
		      uint64_t *out, struct err *e);

static inline uint64_t qwen_gguf_pad(uint64_t at, uint32_t alignment)
{
	return (at + alignment - 1) / alignment * alignment;
}

/* ------------------------------------------------------ gguf_model.c ---- */

/* Of files what qwen_config_load() and qwen_tensors_open() are of folders. */
bool qwen_gguf_config_load(struct qwen_config *c, const char *path,
			   struct err *e);
bool qwen_gguf_tensors(struct qwen_tensors *t, const char *path, struct err *e);

/* ------------------------------------------------------------- hfq.c ---- */

bool qwen_hfq_config_load(struct qwen_config *c, const char *path,
			  struct err *e);
bool qwen_hfq_tensors(struct qwen_tensors *t, const char *path, struct err *e);

#endif
