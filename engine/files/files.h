/*
 * engine/files - what a model's folder holds, as it lies on disk: the manual.
 *
 * config.c reads what a Qwen3 model is, safetensors.c finds its weights; gguf.c
 * and hfq.c read files that hold both.  maps.c has them in memory, checksum.c
 * tells whether they are what they were.
 */
#ifndef T0_ENGINE_FILES_H
#define T0_ENGINE_FILES_H


#include "base/base.h"

struct json_t; /* jansson's */

/* ---------------------------------------------------------- config.c ---- */

/*
 * What a Qwen3 model is: config.json and generation_config.json.
 *
 * Dense Qwen3 models and mixtures of experts are read ("model_type": "qwen3" and
 * "qwen3_moe"): anything that this engine would compute wrongly (rotary scaling
 * but YaRN, sliding windows, attention bias, another activation, weights packed
 * otherwise) is refused by name, never ignored.
 */

#define QWEN_MAX_STOPS	  8
#define QWEN_EXPERTS_MAX  4096
#define QWEN_EXPERTS_USED 64 /* by a token, at most */

struct qwen_config {
	uint32_t layers;	/* num_hidden_layers */
	uint32_t hidden;	/* hidden_size */
	uint32_t heads;		/* num_attention_heads: of queries */
	uint32_t kv_heads;	/* num_key_value_heads; divides heads */
	uint32_t head_dim;	/* even */
	uint32_t ffn;		/* intermediate_size; of an expert, if any */
	uint32_t vocab;		/* vocab_size */
	/* max_position_embeddings, or what YaRN stretches it to */
	uint32_t max_positions;
	double rope_theta;
	/*
	 * YaRN, which stretches the angles to longer texts than a model was
	 * trained on; `factor` 0: none.
	 */
	struct qwen_yarn {
		double factor;
		double positions; /* original_max_position_embeddings */
		double fast, slow; /* beta_fast, beta_slow: turns in these */
		double attention;  /* what cosines and sines are scaled by */
	} yarn;
	/* How matrices are packed: "quantization_config" (packing.c). */
	struct qwen_packing {
		enum {
			QWEN_PACKED_NOT, /* as their types say */
			QWEN_PACKED_FP8, /* e4m3, scales of blocks */
			QWEN_PACKED_GPTQ,
			QWEN_PACKED_AWQ, /* "gemm" */
			QWEN_PACKED_HFQ, /* as types of hipfire's files say */
		} kind;
		uint32_t bits;	/* of GPTQ and AWQ */
		uint32_t rows;	/* of a block of FP8 */
		uint32_t group; /* columns that share a scale; 0: all */
		bool zero_more; /* zeros are stored less one */
	} packing;
	/*
	 * A mixture of experts (model_type "qwen3_moe"): every layer has so
	 * many, each a feed-forward network of its own, of which a router
	 * chooses `used` for each token; `n` 0: one network, for all.
	 */
	struct qwen_experts {
		uint32_t n;    /* num_experts */
		uint32_t used; /* num_experts_per_tok */
		bool normed;   /* norm_topk_prob: shares of those sum to 1 */
	} experts;
	/*
	 * An Engram ("t0_engram": {"rows", "layer"}), of models that T0 trains:
	 * tables of so many rows of runs of two and of three tokens, added to
	 * what enters a layer; `rows` 0: none.
	 */
	struct qwen_engram {
		uint32_t rows, layer;
	} engram;
	double norm_eps;	/* rms_norm_eps */
	bool tied;		/* the output layer is the embedding */

	/* generation_config.json, where it exists; else greedy, no limit */
	bool sample; /* do_sample */
	double temperature, top_p, min_p, repetition_penalty;
	uint32_t top_k; /* 0: all */
	uint32_t stop[QWEN_MAX_STOPS]; /* eos_token_id */
	uint32_t n_stops;
};

/*
 * Reads both files of a model's folder, or the keys of a GGUF file; errors name
 * file and key.
 */
#define QWEN_ENGRAM_ROWS (1 << 28) /* of an Engram's tables each, at most */
bool qwen_config_load(struct qwen_config *c, const char *dir, struct err *e);
/* The same from text; `generation` may be NULL. */
bool qwen_config_parse(struct qwen_config *c, const char *config,
		       const char *generation, struct err *e);
/* config_write.c: both files' text, which reads back as it is; appended. */
void qwen_config_print(const struct qwen_config *c, struct buf *config,
		       struct buf *generation);
/* Both files in a folder; any text, or what `j` has, which it takes, in one. */
bool qwen_config_write(const struct qwen_config *c, const char *dir,
		       struct err *e);
bool qwen_text_write(const char *dir, const char *name, const struct buf *text,
		     struct err *e);
bool qwen_json_write(const char *dir, const char *name, struct json_t *j,
		     struct err *e);
/*
 * A file of one folder, in another.  *there (or NULL): `from` has it; if not,
 * one of another model is removed from `dir`, as it would be read instead.
 */
bool qwen_file_copy(const char *from, const char *dir, const char *name,
		    bool *there, struct err *e);
void qwen_file_remove(const char *dir, const char *name);
/* Is a text over behind this token? */
bool qwen_config_stops(const struct qwen_config *c, uint32_t id);
/* Parameters in all. */
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
#define PLAIN(NAME, ...) QWEN_##NAME,
#define BLOCK(NAME, ...) QWEN_##NAME,
#define PACKED(NAME, ...) QWEN_##NAME,
#include "engine/files/dtype.def"
	QWEN_DTYPES
};
/* Of hipfire's files alone. */
static inline bool qwen_dtype_is_packed(enum qwen_dtype t)
{
	return t >= QWEN_Q4F16G64;
}
const char *qwen_dtype_name(enum qwen_dtype t); /* "F32", as in the files */
/* Values of one block, 1 where there are no blocks, and its bytes. */
uint32_t qwen_dtype_values(enum qwen_dtype t);
uint32_t qwen_dtype_bytes(enum qwen_dtype t);
/* Its number in GGUF files, or -1. */
int qwen_dtype_gguf(enum qwen_dtype t);

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
		int fd;
		void *base; /* where a large page begins */
		size_t size_bytes;
		size_t room_bytes; /* of addresses: whole large pages */
	} *map;
	size_t n_maps, cap_maps;
	uint64_t total_bytes; /* of all tensors */
};

/*
 * `dir` is the model's folder, or a GGUF or HFQ file, whose tensors of Qwen3
 * are named as in folders.  Names that lack "model.", as those of
 * Qwen3-Embedding, get it. On failure `t` is empty.
 */
bool qwen_tensors_open(struct qwen_tensors *t, const char *dir, struct err *e);
/* One file of a name of its own. */
bool qwen_tensors_open_file(struct qwen_tensors *t, const char *path,
			    struct err *e);
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

/* ------------------------------------------------------------ maps.c ---- */

/*
 * Mapped files in large pages.  With small ones a decoded token waits for
 * translations of addresses.  Where the file system has none, the bytes are
 * read into memory that has, which takes the place of the mapping: nothing else
 * changes, and whoever reads there meanwhile sees the same numbers.
 */
#define QWEN_LARGE_PAGE ((size_t)2 << 20)

/* How the bytes of all of t's files may lie in memory. */
enum qwen_paging {
	QWEN_PAGES_FEW,	   /* less than two large pages: it does not matter */
	QWEN_PAGES_FILES,  /* large ones of the file system */
	QWEN_PAGES_MEMORY, /* large ones of memory, a copy */
	QWEN_PAGES_SMALL,  /* small ones: memory is less than twice as much */
};
/* `memory_bytes` of the machine. */
enum qwen_paging qwen_pages_choose(const struct qwen_tensors *t,
				  uint64_t memory_bytes);

struct threads;
struct progress;
/*
 * Reads all files into large pages of memory, by all threads at once.  ERR_IO:
 * a file cannot be read; ERR_NOMEM; ERR_STOPPED: *stop was set (NULL: never).
 */
bool qwen_maps_read(const struct qwen_tensors *t, struct threads *threads,
		    struct progress *progress, const _Atomic int *stop,
		    struct err *e);
/*
 * The same, or large pages of the file system, by a thread of its own; it keeps
 * what is mapped where something fails.  NULL: there is no such thread.
 */
struct qwen_settling *qwen_maps_settle(const struct qwen_tensors *t,
				       enum qwen_paging how);
void qwen_settling_wait(struct qwen_settling *s); /* NULL: at once */
/* Before the tensors are closed: it ends, finished or not. */
void qwen_settling_end(struct qwen_settling *s);

/* -------------------------------------------------------- checksum.c ---- */

/*
 * What a model's weights are, in a file beside them: a line "HASH  NAME" for
 * each file, XXH3 of 128 bits, as `xxh128sum` writes and checks it.
 */
enum qwen_checksum {
	QWEN_CHECKSUM_NONE,
	QWEN_CHECKSUM_STORE,
	QWEN_CHECKSUM_VERIFY,
};
bool qwen_checksum_parse(const char *name, enum qwen_checksum *c,
			 struct err *e);
/* "DIR/weights.xxh128", or "FILE.gguf.xxh128". */
#define QWEN_CHECKSUM_FILE "weights.xxh128"
/*
 * Of the model's open files.  ERR_INPUT: a file is not what was stored, or
 * nothing was.
 */
bool qwen_checksum_do(enum qwen_checksum what, const struct qwen_tensors *t,
		      const char *model, struct threads *threads,
		      struct err *e);

/* ----------------------------------------------- safetensors_write.c ---- */

/* Bytes of a tensor by its type, n_dims and shape. */
size_t qwen_tensor_bytes(const struct qwen_tensor *t);
/* The bytes of tensor i of a list, valid until the next call; NULL: *e. */
typedef const void *qwen_bytes_fn(void *ctx, size_t i, struct err *e);
/*
 * A file of tensors, of which only name, type and shape are looked at: the same
 * bytes whenever these and their data are the same.  It is there as a whole or
 * not at all.
 */
bool qwen_tensors_write(const char *path, const struct qwen_tensor *t, size_t n,
			qwen_bytes_fn *make, void *ctx, struct err *e);

/* ------------------------------------------------------------ gguf.c ---- */

/*
 * GGUF: one file with keys and values (what the model is, its tokenizer) and
 * tensors, versions 2 and 3, little-endian.
 *
 * The file is not trusted.  After a successful open its numbers and strings lie
 * in it, keys and names are unique, and each tensor has a known type, rows of
 * whole blocks, and its bytes at the next aligned place behind the one before
 * it, in the file (the format's own rule).  What breaks a rule is refused with
 * ERR_INPUT or ERR_UNSUPPORTED, naming file and key or tensor.
 */
enum qwen_gguf_type { /* numbered as in the files */
	QWEN_GGUF_U8, QWEN_GGUF_I8, QWEN_GGUF_U16, QWEN_GGUF_I16,
	QWEN_GGUF_U32, QWEN_GGUF_I32, QWEN_GGUF_F32, QWEN_GGUF_BOOL,
	QWEN_GGUF_STRING, QWEN_GGUF_ARRAY,
	QWEN_GGUF_U64, QWEN_GGUF_I64, QWEN_GGUF_F64,
	QWEN_GGUF_TYPES
};
#define QWEN_MAX_NAME_BYTES 65535 /* the format's own bound of keys */
#define QWEN_GGUF_ALIGNMENT 32	  /* where the file does not say it */

struct qwen_gguf_value {
	const char *key;
	enum qwen_gguf_type type; /* of an array: of its items; never ARRAY */
	bool array;
	uint64_t n;		/* items; 1 if it is no array */
	const uint8_t *data;	/* as stored */
	size_t size_bytes;
};

/* All belongs to it until qwen_gguf_close(), which unmaps. */
struct qwen_gguf {
	struct qwen_tensors t; /* names as in the file */
	uint32_t version, alignment;
	struct qwen_gguf_value *value; /* sorted by key */
	size_t n_values;
};

/* Is it a file at all?  Models are those or folders; GGUF, if not HFQ. */
bool qwen_is_file(const char *path);
bool qwen_gguf_open(struct qwen_gguf *g, const char *path, struct err *e);
/* From memory, as qwen_tensors_parse(). */
bool qwen_gguf_parse(struct qwen_gguf *g, const char *path, const void *bytes,
		     size_t size_bytes, struct err *e);
void qwen_gguf_close(struct qwen_gguf *g);

/* NULL if it is not there. */
const struct qwen_gguf_value *qwen_gguf_find(const struct qwen_gguf *g,
					     const char *key);
/* Item i as a whole number; false if it is none, or too large. */
bool qwen_gguf_int(const struct qwen_gguf_value *v, uint64_t i, int64_t *out);
/*
 * Item i as a number.  An f32 is taken for the shortest decimal that gives it:
 * 1e-6, not 9.99999997e-7.
 */
bool qwen_gguf_real(const struct qwen_gguf_value *v, uint64_t i, double *out);
/*
 * One string after another, from *at == NULL on; not ended by a zero byte.
 * False after the last, or if they are no strings.
 */
bool qwen_gguf_text(const struct qwen_gguf_value *v, const uint8_t **at,
		    const char **text, size_t *len_bytes);

/* ------------------------------------------------------------- hfq.c ---- */

/*
 * HFQ: hipfire's files (.hfq, .mq4 and others), version 1, little-endian: what
 * a folder's config.json, tokenizer.json and tokenizer_config.json say, as one
 * JSON object, and tensors, named as in folders.  The file is not trusted:
 * after a successful open each tensor has a known type, rows of whole blocks,
 * and its bytes in the file.
 */
struct qwen_hfq {
	struct qwen_tensors t;
	struct json_t *words; /* "config", "tokenizer" and others */
	struct buf keys;      /* of "gguf_meta", as GGUF files have them */
};
bool qwen_is_hfq(const char *path);
bool qwen_hfq_open(struct qwen_hfq *h, const char *path, struct err *e);
/* From memory, as qwen_tensors_parse(). */
bool qwen_hfq_parse(struct qwen_hfq *h, const char *path, const void *bytes,
		    size_t size_bytes, struct err *e);
void qwen_hfq_close(struct qwen_hfq *h);
/* What qwen_config_load() takes from a folder. */
bool qwen_hfq_config(struct qwen_config *c, const struct qwen_hfq *h,
		     struct err *e);
/*
 * What a folder's tokenizer.json or tokenizer_config.json has, appended to
 * `out`; false if there is none.
 */
bool qwen_hfq_text(const struct qwen_hfq *h, const char *name, struct buf *out);
bool qwen_hfq_has_tokenizer(const struct qwen_hfq *h);
/*
 * Instead of these, of one made of a GGUF file: its texts and lists, until `h`
 * is closed; false if there are none.
 */
bool qwen_hfq_keys(struct qwen_hfq *h, struct qwen_gguf *g, struct err *e);

/* ------------------------------------------------------ gguf_write.c ---- */

/* Keys of a file to be written, in their order.  Zero-initialise. */
struct qwen_gguf_out {
	struct buf keys;
	uint64_t n_keys;
};
void qwen_gguf_out_fini(struct qwen_gguf_out *o);
void qwen_gguf_put_int(struct qwen_gguf_out *o, const char *key, uint32_t v);
void qwen_gguf_put_real(struct qwen_gguf_out *o, const char *key, double v);
void qwen_gguf_put_text(struct qwen_gguf_out *o, const char *key,
			const char *text);
/* A list of STRING or I32; its n items must follow. */
void qwen_gguf_put_list(struct qwen_gguf_out *o, const char *key,
			enum qwen_gguf_type type, uint64_t n);
void qwen_gguf_item_text(struct qwen_gguf_out *o, const char *s, size_t len);
void qwen_gguf_item_int(struct qwen_gguf_out *o, int32_t v);
/* The architecture: "qwen3", of a mixture "qwen3moe". */
const char *qwen_gguf_kind(const struct qwen_config *c);
/* All that qwen_gguf_config() reads, but the sizes that tensors have. */
void qwen_gguf_put_config(struct qwen_gguf_out *o, const struct qwen_config *c);
/*
 * Version 3; tensors as for qwen_tensors_write().  One of three dimensions is
 * shape[0] matrices, and `make` is asked for each of them: its numbers count
 * tensors and such matrices.
 */
bool qwen_gguf_write(const struct qwen_gguf_out *o, const char *path,
		     const struct qwen_tensor *t, size_t n,
		     qwen_bytes_fn *make, void *ctx, struct err *e);

/* ------------------------------------------------------ gguf_model.c ---- */

/*
 * The name of a Qwen3 tensor there ("blk.0.attn_q.weight") of its name in
 * folders ("model.layers.0.self_attn.q_proj.weight"), or the other way; NULL if
 * it is none.  Rows and columns are the same in both.
 */
const char *qwen_gguf_rename(struct arena *mem, const char *name, bool to_gguf);
/*
 * Matrices of a layer's experts are one tensor there: part 0 to 2 of one of
 * them ("model.layers.0.mlp.experts.7.up_proj.weight", without ".weight"), and
 * of all ("blk.0.ffn_up_exps.weight").
 */
#define QWEN_EXPERT_PARTS 3
const char *qwen_expert_name(struct arena *mem, uint32_t layer, uint32_t expert,
			     int part);
const char *qwen_gguf_experts_name(struct arena *mem, uint32_t layer, int part);
/*
 * What the model is; refused is what qwen_config_load() refuses, too.  It
 * samples by default if there is a general.sampling.temp.
 */
bool qwen_gguf_config(struct qwen_config *c, const struct qwen_gguf *g,
		      struct err *e);

#endif
