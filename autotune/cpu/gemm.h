/*
 * autotune/cpu/gemm.h - matrix products on the host's processor, and their tuner.
 *
 *	C = alpha * A * op(B) + beta * C
 *
 * A is f32 [m][k], C is f32 [m][n]; rows are `lda` and `ldc` elements apart.
 * B is f32, f16 or bf16, stored [k][n] or, as models store weights, [n][k];
 * `ldb` counts elements, too.  16-bit values become f32 exactly, products are
 * summed in f32: the error of an element is within sqrt(k) * 2^-23 of the sum
 * of the absolute products, times a small constant.
 *
 * beta = 0 does not read C, alpha = 0 reads neither A nor B, and k = 0 is an
 * empty sum.  Otherwise NaN and infinity go where arithmetic takes them.  C
 * must not overlap A or B.
 *
 * With AMX, f32 values are cut into three bf16 parts and f16 values into two,
 * which loses nothing of them; of the products of parts those are left out that
 * are together less than 2^-24 of a product.  Sums are f32.  What differs from
 * the other levels: a value or a part of it below 2^-126 counts as 0, and so
 * does a sum.  Sums that are not finite are made again without AMX.
 *
 * A product is `coarse` where values have errors far larger than f32's, as
 * weights that were integers.  Then AMX cuts f32 values into two parts, which
 * loses less than 2^-16 of each and 2^-14 of a product, and takes half the
 * time.  The other levels compute as ever.
 *
 * The bits of C depend on the shape, the configuration and the level of the
 * instruction set, never on the number of threads.
 *
 * Inside a step that all threads do, such as a model's forward pass:
 *
 *	host_gemm_part(&g, &scratch[thread], thread, threads_count(t));
 *	threads_barrier(t);
 *
 * from outside, with a pool or without: host_gemm(&g, &scratch, pool).
 */
#ifndef T0_AUTOTUNE_HOST_H
#define T0_AUTOTUNE_HOST_H

#include "base/base.h"
#include "base/threads.h"

/*
 * How B is stored.  MADE: nowhere as such, a function makes rows of it as f32
 * when they are wanted, for weights of types that are the caller's.
 */
enum host_gemm_type {
	HOST_GEMM_F32,
	HOST_GEMM_F16,
	HOST_GEMM_BF16,
	HOST_GEMM_MADE
};

/*
 * Makes rows [row, row + n) of a B [n][k], their elements [k0, k0 + k), in
 * out[i * ldo + j].  k0 and k are multiples of HOST_GEMM_MADE_STEP, but for a k
 * that ends a row.
 */
typedef void host_gemm_make_fn(const void *b, size_t row, size_t n, size_t k0,
			       size_t k, float *out, size_t ldo);
#define HOST_GEMM_MADE_STEP 32

/* ------------------------------------------------------ host_plan.c ----- */

/*
 * How a product is split into tiles.  One side is read value by value, each
 * broadcast to a vector ("rows" of a tile); the other is packed, a few vectors
 * wide ("columns").
 */
enum host_gemm_path {
	HOST_GEMM_AUTO,
	HOST_GEMM_DOT,	   /* few rows of A; B is read once, as it is */
	HOST_GEMM_NORMAL,  /* rows of A are broadcast, B is packed */
	HOST_GEMM_SWAPPED, /* rows of B [n][k] are broadcast, A is packed */
	HOST_GEMM_PATHS
};

struct host_gemm_config {
	enum host_gemm_path path;
	uint8_t level;	/* 2, 3 or 4: of x86-64; 5: AMX */
	uint8_t rows;	/* of a tile; at most host_gemm_rows_max() */
	uint8_t vecs;	/* width of a tile in vectors */
	uint16_t kc;	/* of a tile; at most HOST_GEMM_KC_MAX */
	uint16_t nc;	/* columns packed at a time */
	uint16_t depth; /* multiple of kc: k's packed at a time */
	/* How far HOST_GEMM_DOT fetches ahead; 0: what is good for most. */
	uint16_t ahead_bytes;
};

#define HOST_GEMM_KC_MAX   1024
#define HOST_GEMM_VECS_MAX 4
#define HOST_GEMM_DOT_MAX  32 /* rows of A that HOST_GEMM_DOT takes */

struct host_gemm {
	size_t m, n, k;
	float alpha, beta;
	const float *a;
	size_t lda;
	const void *b;
	size_t ldb;
	enum host_gemm_type b_type;
	bool b_by_n; /* B is stored [n][k] */
	host_gemm_make_fn *make; /* for HOST_GEMM_MADE; it gets `b` */
	bool coarse; /* 16 bits of a value are enough; see above */
	float *c;
	size_t ldc;
	/* NULL: what host_gemm_default() says. */
	const struct host_gemm_config *config;
};

/*
 * Rows of the largest tile of so many vectors; 0: there is none.  With AMX
 * vectors are of 16 values and rows multiples of 16; kc is 32.
 */
unsigned host_gemm_rows_max(unsigned level, unsigned vecs);
/* Has this processor AMX with bf16, and does the system let us use it? */
bool host_amx(void);
/*
 * The level of this processor, or the one in T0_HOST_SIMD ("v2", "v3", "v4");
 * 5 is v4 with AMX.
 */
unsigned host_gemm_level(void);
/* "AVX2", "AMX, f32 as bf16 parts": what computes at a level. */
const char *host_gemm_unit(unsigned level);
/* A good configuration for the shape, without having measured. */
void host_gemm_default(const struct host_gemm *g, struct host_gemm_config *c);
/* Can this product be done so?  If not, *why says what is wrong. */
bool host_gemm_legal(const struct host_gemm *g,
		     const struct host_gemm_config *c, const char **why);

/* ----------------------------------------------------- host_gemm.c ------ */

/* Memory for packing, of one thread.  Zero-initialise; grows as needed. */
struct host_gemm_scratch {
	void *data;
	size_t size_bytes;
};
void host_gemm_scratch_fini(struct host_gemm_scratch *s);

/*
 * The share `part` of `parts` of a product.  Shares are independent: each
 * writes its own elements of C, in any order, at once or one after the other,
 * with a scratch that nobody else uses meanwhile.  A configuration that is not
 * legal is a BUG.
 */
void host_gemm_part(const struct host_gemm *g, struct host_gemm_scratch *s,
		    unsigned part, unsigned parts);
/*
 * The same of n products that have m, k, alpha, beta and A in common, as those
 * of one layer's input; A is packed once where it is packed.  The first's
 * configuration is for all.  A is coarse if all of them are.
 */
void host_gemm_list_part(const struct host_gemm *g, size_t n,
			 struct host_gemm_scratch *s, unsigned part,
			 unsigned parts);
/*
 * The yardstick of AMX: so many rounds of multiply-adds of bf16 in registers;
 * returns how many FLOP, 0 without AMX.  A product of f32 and bf16 takes 3 of
 * them, of f32 and f32 6, a coarse one 3.
 */
double host_amx_flop(uint64_t rounds);
/* All shares; `s` is [threads_count(t)], or of one where t is NULL. */
void host_gemm(const struct host_gemm *g, struct host_gemm_scratch *s,
	       struct threads *t);

/* ---------------------------------------------------- host_space.c ------ */

/* A product without its operands, as the tuner and its database have it. */
struct host_problem {
	size_t m, n, k;
	enum host_gemm_type b_type;
	bool b_by_n;
};

#define HOST_GEMM_TEXT 80

/* "swapped v4 12x2 kc512 depth1024 nc384", and back. */
void host_gemm_config_name(const struct host_gemm_config *c,
			   char out[HOST_GEMM_TEXT]);
bool host_gemm_config_parse(const char *s, struct host_gemm_config *c,
			    struct err *e);
/* "f32*bf16[n][k]": what of a problem is not its size. */
void host_problem_op(const struct host_problem *p, char out[HOST_GEMM_TEXT]);

/*
 * Fills out[cap] with legal configurations of a level, each once, the default
 * first; returns how many there are, at most `cap`.
 */
size_t host_gemm_candidates(const struct host_problem *p, unsigned level,
			    struct host_gemm_config *out, size_t cap);

/* ----------------------------------------------------- host_trial.c ----- */

/*
 * A problem with operands (normal, from a seed) and some elements of its result
 * in double: those of first, last and random rows and columns, or all where
 * there are few.
 */
struct host_trial;
struct host_trial *host_trial_new(const struct host_problem *p,
				  unsigned threads, uint64_t seed,
				  struct err *e);
void host_trial_free(struct host_trial *t);
/* Computes the product; C is in host_trial_c() afterwards, [m][n]. */
void host_trial_run(struct host_trial *t, const struct host_gemm_config *c);
float *host_trial_c(struct host_trial *t);
/*
 * The largest error of what is in C, as a share of what is allowed, which is
 * 4 sqrt(k) 2^-23 times the norm of an element's products; INFINITY for NaN.
 * *compared counts elements.
 */
double host_trial_worst(const struct host_trial *t, size_t *compared);
/* Seconds of one run in a sample of at least a millisecond. */
double host_trial_time(struct host_trial *t, const struct host_gemm_config *c);

/* ------------------------------------------------------ host_tune.c ----- */

struct host_tune_opts {
	const char *db;	  /* as res_path() takes it */
	unsigned threads; /* 0: one per processor */
	unsigned level;	  /* 0: host_gemm_level() */
	double seconds;	  /* for a problem; 0: 5 */
	uint64_t seed;
	const volatile int *stop; /* may be NULL; set: end soon */
	int argc;
	char *const *argv;
};
struct host_outcome {
	bool found, stored; /* stored: taken from the database as it is */
	char config[HOST_GEMM_TEXT], second[HOST_GEMM_TEXT];
	double time_s, lo_s, hi_s; /* median and its 95 % interval */
	double default_s; /* of host_gemm_default() in the same rounds */
	size_t samples, candidates, failed;
};
/*
 * Searches for the fastest configuration of each problem on this machine, and
 * stores it.  Every candidate is checked before it is timed; all are timed in
 * turns of random order, and the slower ones leave, until a few remain for the
 * last rounds.  The default stays unless another is faster beyond doubt.  A
 * problem that this program has decided before, for as many threads, is taken
 * from the database; one that was interrupted begins anew, for times of
 * different days are not comparable.
 */
bool host_tune(const struct host_tune_opts *o, const struct host_problem *p,
	       size_t n, struct host_outcome *out, struct err *e);

/* ---------------------------------------------------- host_select.c ----- */

/*
 * The winners of a database for this processor and so many threads, kept in
 * memory.  A file that is not there is an empty table.
 */
struct host_table;
struct host_table *host_table_open(const char *db, unsigned threads,
				   struct err *e);
void host_table_free(struct host_table *t);

enum host_how { HOST_EXACT, HOST_NEAREST, HOST_DEFAULT };
/*
 * The configuration for a product: the winner of this very problem, else of
 * the one of its kind whose sizes are least far, |log2(m/m')| + |log2(n/n')| +
 * |log2(k/k')| <= 2, if it is legal here, else host_gemm_default().  `t` may
 * be NULL.
 */
enum host_how host_select(const struct host_table *t, const struct host_gemm *g,
			  struct host_gemm_config *c);
/* What the rows of a database are kept under: the processor and threads. */
void host_target(unsigned threads, char out[HOST_GEMM_TEXT]);

#endif
