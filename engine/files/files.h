/*
 * engine/files - what a model's folder holds, as it lies on disk: the manual.
 *
 * config.c reads what a Qwen3 model is, safetensors.c maps its weights.
 */
#ifndef T0_ENGINE_FILES_H
#define T0_ENGINE_FILES_H

#include "base/base.h"

/* ---------------------------------------------------------- config.c ---- */

/*
 * What a Qwen3 model is: config.json and generation_config.json.
 *
 * Only dense Qwen3 models are read ("model_type": "qwen3"): anything that this
 * engine would compute wrongly (rotary scaling, sliding windows, attention
 * bias, another activation) is refused by name, never ignored.
 */

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

/* ----------------------------------------------------- safetensors.c ---- */

/*
 * The weights of a model: opens the safetensors files of a Hugging Face folder
 * (one `model.safetensors`, or shards with `model.safetensors.index.json`),
 * maps them, and finds a tensor by name.  `data` points into the mapped file;
 * only a tensor that lies there unaligned to its type is copied.
 *
 * The files are not trusted.  After a successful open, for every tensor:
 * - its type is known, its shape has at most QWEN_MAX_DIMS dimensions, and
 *   shape times type size, without overflow, is exactly its number of bytes;
 * - its bytes lie in the data part of its file, overlap no other tensor's, and
 *   leave no gap (the format's own rule);
 * - its name is unique over all shards, and lies in the shard that the index
 *   says.
 * What breaks a rule is refused with ERR_INPUT, naming file and tensor.
 *
 * Ownership: everything belongs to struct qwen_tensors until
 * qwen_tensors_close(), which unmaps.  Only read afterwards: threads may share.
 */

#define QWEN_MAX_DIMS 8
/* The format's own bound of the JSON header. */
#define QWEN_MAX_HEADER_BYTES 100000000

enum qwen_dtype {
	QWEN_F64, QWEN_F32, QWEN_F16, QWEN_BF16,
	QWEN_I64, QWEN_I32, QWEN_I16, QWEN_I8, QWEN_U8, QWEN_BOOL,
	QWEN_DTYPES
};
const char *qwen_dtype_name(enum qwen_dtype t); /* "F32", as in the files */

struct qwen_tensor {
	const char *name;
	enum qwen_dtype dtype;
	uint32_t n_dims;
	uint64_t shape[QWEN_MAX_DIMS]; /* outermost first, row-major */
	uint64_t count;		       /* elements */
	uint64_t offset;	       /* in the data part of `file` */
	const void *data;
	size_t size_bytes;
	const char *file;
};

struct qwen_tensors {
	struct arena mem;
	struct qwen_tensor *tensor; /* sorted by name */
	size_t n_tensors;
	struct qwen_map {
		const char *path;
		void *base;
		size_t size_bytes;
	} *map;
	size_t n_maps, cap_maps;
	uint64_t total_bytes; /* of all tensors */
};

/* `dir` is the model's folder.  On failure `t` is empty. */
bool qwen_tensors_open(struct qwen_tensors *t, const char *dir, struct err *e);
void qwen_tensors_close(struct qwen_tensors *t);

/*
 * One file from memory, for tests and fuzzing: `bytes` stay the caller's and
 * must outlive `t`; `path` is only for messages.
 */
bool qwen_tensors_parse(struct qwen_tensors *t, const char *path,
			const void *bytes, size_t size_bytes, struct err *e);

const struct qwen_tensor *qwen_tensor_find(const struct qwen_tensors *t,
					   const char *name);
/*
 * The tensor of that name with this shape; ERR_INPUT says what is missing, or
 * which shape it has and which was wanted.
 */
const struct qwen_tensor *qwen_tensor_require(const struct qwen_tensors *t,
					      const char *name, uint32_t n_dims,
					      const uint64_t *shape,
					      struct err *e);

#endif
