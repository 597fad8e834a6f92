/*
 * engine/weights - element types, matrices and their arithmetic: the manual.
 *
 * kernels*.c compute on one thread with matrices as they are stored,
 * unpack_simd.c knows the blocks of GGUF files, dtype.c makes matrices of a
 * type from tensors of another, fit.c chooses integers by the inputs of
 * products, foreign.c and packed.c read what others pack, cache.c keeps the
 * keys and values of attention, rope.c the angles of positions.
 */
#ifndef T0_ENGINE_WEIGHTS_H
#define T0_ENGINE_WEIGHTS_H

#include "base/base.h"
#include "base/threads.h"
#include "engine/files/files.h"

/* --------------------------------------------------------- kernels.c ---- */

/*
 * Compiled for x86-64-v2, v3 (AVX2, FMA, F16C) and v4 (AVX-512) from the same
 * sources (kernels*_simd.c); qwen_kernels_best() gives those for this CPU.
 * Sums are in f32, in an order that depends on the level, never on the number
 * of threads: the same machine gives the same bits with one thread or many.
 *
 * Weights are matrices W [rows][cols], a row per output, as the files hold
 * them.  Activations are f32, or what a product says.
 */

/* How a matrix is stored. */
enum qwen_weights {
	QWEN_W_F32,
	QWEN_W_F16,
	QWEN_W_BF16,
	QWEN_W_INT8, /* groups of QWEN_GROUP columns share a scale */
	QWEN_W_INT4,
	/* Blocks, as GGUF files have them or our own: "q4_k" (dtype.def). */
#define BLOCK(NAME, ...) QWEN_W_##NAME,
#include "engine/files/dtype.def"
	QWEN_WEIGHTS,
	/* Of caches alone: */
	QWEN_W_F8 = QWEN_WEIGHTS, /* E4M3, without scales */
	QWEN_W_INT4R, /* INT4, of vectors that were turned: kernels' turn() */
};
/* Are there integers, so that activations are rounded to them, too? */
static inline bool qwen_is_integer(enum qwen_weights w)
{
	return w >= QWEN_W_INT8 && w < QWEN_WEIGHTS;
}
/*
 * Is it one of T0's own blocks: a scale for 32 to 256 values of 6 or 3 bits?  No
 * GGUF file has them.
 */
static inline bool qwen_is_own(enum qwen_weights w)
{
	return w >= QWEN_W_I6_32 && w <= QWEN_W_I3_256;
}
/* Do scales lie between the integers, in blocks? */
static inline bool qwen_is_block(enum qwen_weights w)
{
	return w > QWEN_W_INT4 && w < QWEN_WEIGHTS;
}
/* A row is a whole number of so many values in so many bytes. */
struct qwen_layout {
	uint32_t values, bytes;
};
struct qwen_layout qwen_layout(enum qwen_weights w); /* of blocks */

/* "bf16", as command lines have it. */
const char *qwen_weights_name(enum qwen_weights w);
bool qwen_weights_parse(const char *name, enum qwen_weights *w, struct err *e);

#define QWEN_GROUP 32

/*
 * A matrix.  INT8: `data` is int8_t [rows][cols].  INT4: uint8_t
 * [rows][cols / 2]; in each group of 32 columns, byte j holds column j in its
 * low and column j + 16 in its high half, 8 added.  `scale`: f16 bits
 * [rows][cols / 32]; a weight is its integer times its scale.  Blocks: `data` is
 * [rows][cols / values] of them, and there is no `scale`.
 */
struct qwen_matrix {
	enum qwen_weights type;
	uint32_t rows, cols;
	const void *data;
	const uint16_t *scale; /* NULL but for INT8 and INT4 */
};
/* Bytes that a product reads of a matrix. */
uint64_t qwen_matrix_bytes(const struct qwen_matrix *w);

/*
 * Activations of one token for the integer types: each group of 32 as int8_t q
 * and a scale d, with x ~ q * d.  `sum` is d times the sum of q, for offsets
 * of the weights, and `half_sum`, or NULL, those of the halves of groups.
 * `half`, or NULL, holds q in the order of INT4: of every 4 groups, their first
 * halves, then their second ones.  All are padded with zeros: `q` and `half` to
 * a multiple of QWEN_PAD values, the others to that of their groups.
 */
struct qwen_quants {
	int8_t *q;
	float *d, *sum;
	int8_t *half;
	float *half_sum;
};
#define QWEN_PAD 512
/* Places the arrays for `cols` values in `mem`; returns the bytes they need. */
size_t qwen_quants_place(struct qwen_quants *q, uint32_t cols, void *mem);

struct qwen_kernels {
	const char *name; /* "v3" */
	/*
	 * y[t * ldy + r] = sum over c of W[r][c] x[t * ldx + c], for rows
	 * r0 <= r < r1 and n tokens t; with `add`, += instead.  F32, F16 and
	 * BF16.  Made for few tokens: weights are read once, as a stream.
	 */
	void (*product)(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
			const float *x, size_t ldx, uint32_t n, float *y,
			size_t ldy, bool add);
	/*
	 * The same for BF16 and inputs of bf16, by AVX-512 BF16, which takes
	 * what is smaller than a normal number for 0; NULL at other levels.
	 * The caller knows whether this CPU has it.
	 */
	void (*product_pairs)(const struct qwen_matrix *w, uint32_t r0,
			      uint32_t r1, const uint16_t *x, size_t ldx,
			      uint32_t n, float *y, size_t ldy, bool add);
	/* The same for INT8, INT4 and blocks; x[t] is token t. */
	void (*product_int)(const struct qwen_matrix *w, uint32_t r0,
			    uint32_t r1, const struct qwen_quants *x,
			    uint32_t n, float *y, size_t ldy, bool add);
	/*
	 * Columns [from, from + n) of one row of integer weights as f32; both
	 * are multiples of QWEN_GROUP.  Blocks become what their published
	 * definition says, to the bit.
	 */
	void (*unpack)(const struct qwen_matrix *w, uint32_t row, uint32_t from,
		       uint32_t n, float *out);
	/*
	 * n is a multiple of QWEN_GROUP; the padding is not written.  What is
	 * infinite or NaN makes q d of all its group NaN.
	 */
	void (*quantize)(const float *x, uint32_t n,
			 const struct qwen_quants *out);
	/* n is a multiple of QWEN_GROUP; codes and scales as INT4 has them. */
	void (*round_int4)(const float *x, uint32_t n, uint8_t *code,
			   uint16_t *scale);
	/*
	 * x[n] times Hadamard's matrix, normalized: no value stands out any
	 * more, products of two vectors stay what they were, and a second time
	 * gives x again.  In blocks of the largest power of two that divides n,
	 * a multiple of QWEN_GROUP.
	 */
	void (*turn)(float *x, uint32_t n);
	/*
	 * Attention with keys and values as the cache has them, F32, F16, BF16,
	 * F8, INT8 or INT4, of several heads that share them: s[h * lds + p] =
	 * sum over i of keys[p][i] q[h][i], for every row p; with integers, q
	 * is rounded to 8 bits in groups, too.  And y[h][i] += sum over p of
	 * s[h * lds + p] values[p][i].
	 */
	void (*scores)(const struct qwen_matrix *keys, const float *q,
		       uint32_t heads, float *s, size_t lds);
	void (*mix)(const struct qwen_matrix *values, const float *s,
		    size_t lds, uint32_t heads, float *y);
	/* y = x / rms(x) * w; y may be x. */
	void (*rms_norm)(const float *x, const float *w, uint32_t n, float eps,
			 float *y);
	/* Rotates pairs (i, i + n/2) of x[n] by cos[n/2] and sin[n/2]. */
	void (*rope)(float *x, const float *cos, const float *sin, uint32_t n);
	/* y[i] = silu(gate[i]) * up[i] */
	void (*swiglu)(const float *gate, const float *up, uint32_t n,
		       float *y);
	float (*dot)(const float *a, const float *b, uint32_t n);
	void (*axpy)(float a, const float *x, float *y, uint32_t n);
	/* x becomes exp(x - max) / sum; the sum is in double. */
	void (*softmax)(float *x, uint32_t n);
	/* x becomes exp(x - top); returns their sum. */
	double (*exp_sum)(float *x, uint32_t n, float top);
	/* Of n > 0 values; with NaN among them, anything. */
	float (*largest)(const float *x, uint32_t n);
	/* n values of F32, F16, BF16 or F8 to f32, and back. */
	void (*widen)(enum qwen_weights type, const void *x, size_t n,
		      float *y);
	void (*narrow)(enum qwen_weights type, const float *x, size_t n,
		       void *y);
	/*
	 * The yardsticks.  Reads memory in whole cache lines, as 1 to 8 streams
	 * side by side, prefetching so many bytes ahead into the first cache
	 * and into the second (0: not at all); the sum of its words proves
	 * that it was read.
	 */
	uint64_t (*read)(const void *p, size_t size_bytes, unsigned streams,
			 size_t near_bytes, size_t far_bytes);
	/* As many multiply-adds as registers allow; returns how many FLOP. */
	double (*fma)(uint64_t rounds);
};

/* The best set for this CPU, or the one named in T0_ENGINE_SIMD (v2 v3 v4). */
const struct qwen_kernels *qwen_kernels_best(void);
/* Every set that this CPU can run, for tests; NULL ends it. */
const struct qwen_kernels *const *qwen_kernels_all(void);

/* ----------------------------------------------------------- dtype.c ---- */

/* Memory of matrices, many in one mapping of large pages; zero-initialise. */
struct qwen_blocks {
	struct qwen_block {
		void *data;
		size_t size_bytes, used_bytes;
	} *v;
	size_t n, cap;
};
void qwen_blocks_fini(struct qwen_blocks *b);

/* How tensors become matrices. */
struct qwen_convert {
	const struct qwen_kernels *kernels;
	struct threads *threads;    /* that share the rows */
	struct qwen_blocks *blocks; /* own what is converted or copied */
	bool convert;		    /* false: the types that the files hold */
	enum qwen_weights weights;  /* the wanted one */
};
/*
 * One tensor [rows][cols] as a matrix of the wanted type.  `scale` is the
 * tensor of scales of stored integers, else NULL.
 */
bool qwen_matrix_make(struct qwen_matrix *out, const struct qwen_tensor *t,
		      const struct qwen_tensor *scale,
		      const struct qwen_convert *how, struct err *e);
/* A matrix as another type, which out->type says; `name` is for messages. */
bool qwen_matrix_convert(const struct qwen_convert *how,
			 struct qwen_matrix *out,
			 const struct qwen_matrix *from, const char *name,
			 struct err *e);
/* A matrix of out's type and size, made of rows that `read` gives as f32. */
bool qwen_matrix_from_rows(const struct qwen_convert *how,
			   struct qwen_matrix *out,
			   void (*read)(const void *ctx, size_t row, float *x),
			   const void *ctx, const char *name, struct err *e);
/* One row of any matrix as f32 [cols]. */
void qwen_matrix_row(const struct qwen_kernels *k, const struct qwen_matrix *w,
		     uint32_t row, float *out);

/* ----------------------------------------------------------- fit.c ---- */

/*
 * Integers for what products make of them, where it is known what comes in.
 * `after`, in row i right of column i, is by how much each column's weight is to
 * change where that of column i is one too small; `weight` what is lost where a
 * column's weight, changed so, is off by one.
 */
struct qwen_fit {
	uint32_t cols;
	float *after;  /* [cols][cols], the caller's */
	float *weight; /* [cols] */
};
/*
 * moments [cols][cols], from the diagonal on to the right: sums of x[i] x[j] over
 * tokens' inputs x.  They become f->after, and stay the caller's.  ERR_INPUT: one
 * is not finite.
 */
bool qwen_fit_init(struct qwen_fit *f, float *moments, uint32_t cols,
		   struct threads *threads, struct err *e);
void qwen_fit_fini(struct qwen_fit *f);
/*
 * Codes from `least` to `most`, of which each `run` columns share a scale: an
 * f16, or where there are `steps` a whole number from -steps to steps - 1 times
 * the f16 of 256 columns.
 */
struct qwen_codes {
	int least, most;
	uint32_t run; /* 16 to 256 */
	int steps;    /* 0: none */
};
/*
 * x[cols] as codes q, with the f16 of each run or of 256 columns, and the step of
 * each run (NULL where there are none).  The same on any number of threads.
 */
void qwen_fit_row(const struct qwen_fit *f, const struct qwen_codes *c,
		  const float *x, int8_t *q, uint16_t *half, int *step);
/* What a type's are; NULL: it is not fitted. */
const struct qwen_codes *qwen_codes_of(enum qwen_weights type);
/* A block of one of our own types of its codes and its f16. */
void qwen_pack_run(enum qwen_weights type, const int8_t *q, uint16_t half,
		   uint8_t *out);
/*
 * A matrix as INT8, INT4, Q8_0, Q6_K, Q5_0, Q4_0, Q3_K or one of our own, which
 * out->type says, fitted to inputs.
 */
bool qwen_matrix_fit(const struct qwen_convert *how, struct qwen_matrix *out,
		     const struct qwen_matrix *from, const struct qwen_fit *fit,
		     const char *name, struct err *e);

/* --------------------------------------------------------- foreign.c ---- */

/*
 * A matrix as checkpoints of others have it, in the published layouts.
 *
 * FP8: NAME.weight is F8_E4M3 [rows][cols], NAME.weight_scale_inv a scale for
 * each block of rows and columns.  GPTQ: NAME.qweight has words of columns
 * [cols / per][rows], .qzeros words of rows [groups][rows / per], .scales
 * [groups][rows], and maybe .g_idx [cols] the group of each column; a weight is
 * its code less the zero, times the scale.  AWQ: the same, but .qweight has
 * words of rows [cols][rows / per], in an order of their own.  HFQ: NAME.weight
 * is of a type of hipfire's (packed.c), or of another.
 */
struct qwen_foreign {
	struct qwen_packing how; /* with a group */
	uint32_t rows, cols;
	const struct qwen_tensor *codes, *scale, *zeros, *order;
};
/* Is the matrix (its name ends in "weight") packed so? */
bool qwen_is_foreign(const struct qwen_tensors *t,
		     const struct qwen_packing *how, const char *name);
/* Its tensors; ERR_INPUT says which is missing or not as it should be. */
bool qwen_foreign_find(struct qwen_foreign *f, const struct qwen_tensors *t,
		       const struct qwen_packing *how, const char *name,
		       uint32_t rows, uint32_t cols, struct err *e);
void qwen_foreign_row(const struct qwen_foreign *f, size_t row, float *out);
/* packed.c: of a tensor [rows][cols] of a type of hipfire's. */
void qwen_packed_row(const struct qwen_tensor *t, size_t row, float *out);

/* ------------------------------------------------------------ pack.c ---- */

/*
 * x[n] as blocks of a type, n a multiple of its values: the scales are searched
 * for the least squared error.  The same values give the same bytes on every
 * machine.
 */
void qwen_pack_row(enum qwen_weights type, const float *x, uint32_t n,
		   uint8_t *out);
/* A block of Q6_K or Q3_K of its codes, its f16 and the steps of its 16 runs. */
void qwen_pack_steps(enum qwen_weights type, const int8_t q[256], uint16_t half,
		     const int step[16], uint8_t *out);

/* ----------------------------------------------------------- cache.c ---- */

/*
 * What keys and values of a cache are kept in, each: F32, F16, BF16 or F8, or,
 * for heads that are multiples of QWEN_GROUP, INT8, INT4 or INT4R.
 */
struct qwen_kinds {
	enum qwen_weights keys, values;
};
static inline struct qwen_kinds qwen_both(enum qwen_weights w)
{
	return (struct qwen_kinds){ w, w };
}
/* "int8", or "f16,int4": of keys, of values. */
bool qwen_kinds_parse(const char *text, struct qwen_kinds *k, struct err *e);
#define QWEN_KINDS_TEXT 16
const char *qwen_kinds_print(struct qwen_kinds k, char out[QWEN_KINDS_TEXT]);
/* Bytes of one vector of n values. */
size_t qwen_kept_bytes(enum qwen_weights w, uint32_t n);
/* Those of one position in all layers and heads. */
uint64_t qwen_position_bytes(struct qwen_kinds k, const struct qwen_config *c);

/*
 * Keys and values of the tokens so far, in runs of QWEN_RUN positions:
 * [sequences][runs][layers][keys, values][kv_heads] runs, each [QWEN_RUN]
 * vectors of head_dim.  What attention reads of a head lies together, and
 * memory of positions that no token has had is not touched, but for a run.
 * Scales lie behind a layer's values, in the same order: the hardware's
 * prefetcher goes from one head's vectors to the next one's then, where a gap
 * of 2 KiB costs as much as reading 14.
 */
#define QWEN_RUN 256
/*
 * With `blocks`, the memory is that many blocks of QWEN_BLOCK positions
 * instead, [blocks][layers][keys, values][kv_heads], and each sequence's table
 * says which block has positions QWEN_BLOCK i .. QWEN_BLOCK i + QWEN_BLOCK - 1.
 */
#define QWEN_BLOCK 16

struct qwen_cache {
	struct qwen_kinds type;
	uint32_t blocks; /* 0: there are no tables */
	uint32_t layers, sequences, positions, kv_heads, head_dim;
	const struct qwen_kernels *k;

	uint64_t size_bytes; /* of the positions' keys and values */
	uint32_t run, runs;  /* positions of a run; runs of a sequence */
	uint32_t together;   /* positions that lie so: of a run, or a block */
	const uint32_t **table; /* [sequences], the caller's arrays */
	/* Of a head's keys, of its values; scales lie apart. */
	size_t code_bytes[2], scale_bytes[2];
	size_t mapped_bytes;
	uint8_t *data;
};

/* The keys or the values of one head. */
struct qwen_place {
	enum qwen_part_of { QWEN_KEYS, QWEN_VALUES } part;
	uint32_t layer, sequence, head;
};

/* Takes the memory; the caller has filled the first part. */
bool qwen_cache_init(struct qwen_cache *c, struct err *e);
void qwen_cache_fini(struct qwen_cache *c);
/* Stores one vector of head_dim values; INT4R turns it. */
void qwen_cache_put(const struct qwen_cache *c, const struct qwen_place *p,
		    uint32_t position, const float *x);
/*
 * Vectors of position `from` on, where a run or a block begins, as a matrix: n,
 * or as many of them as lie together.  Those of INT4R are INT4, and turned.
 */
struct qwen_matrix qwen_cache_rows(const struct qwen_cache *c,
				   const struct qwen_place *p, uint32_t from,
				   uint32_t n);
/* A block becomes what another one is. */
void qwen_cache_copy(const struct qwen_cache *c, uint32_t from, uint32_t to);

/* ------------------------------------------------------------ rope.c ---- */

/*
 * Angles of the rotary embedding, of positions from .. to - 1: cosine and sine
 * [positions][head_dim / 2], from double, as positions times small frequencies
 * lose bits in f32.  With YaRN they are stretched, and scaled by its factor of
 * attention.
 */
void qwen_angles(const struct qwen_config *c, uint32_t from, uint32_t to,
		 float *cosine, float *sine);

#endif
