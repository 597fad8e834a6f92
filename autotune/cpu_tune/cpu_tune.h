/*
 * autotune/cpu_tune - the tuner of the host's products: the manual.
 *
 * cpu_space.c says which configurations a product may have, cpu_trial.c runs
 * one and checks what it computed, cpu_tune.c searches for the fastest and
 * stores it, cpu_select.c tells an engine what was found.
 */
#ifndef T0_AUTOTUNE_CPU_TUNE_H
#define T0_AUTOTUNE_CPU_TUNE_H

#include "autotune/cpu/gemm.h"
#include "results/db/results.h"

/* ------------------------------------------------------- cpu_space.c ---- */

/* A product without its operands, as the tuner and its database have it. */
struct cpu_problem {
	size_t m, n, k;
	enum cpu_gemm_type b_type;
	bool b_by_n;
	enum cpu_gemm_type a_as; /* what A may be rounded to */
};

#define CPU_GEMM_TEXT 80

/* "swapped v4 12x2 kc512 depth1024 nc384", and back. */
void cpu_gemm_config_name(const struct cpu_gemm_config *c,
			  char out[CPU_GEMM_TEXT]);
bool cpu_gemm_config_parse(const char *s, struct cpu_gemm_config *c,
			   struct err *e);
/* "f32*bf16[n][k]", "int8*int4[n][k]": what of a problem is not its size. */
void cpu_problem_op(const struct cpu_problem *p, char out[CPU_GEMM_TEXT]);

/*
 * Fills out[cap] with legal configurations of a level and of the units that go
 * with it, each once, the default first; returns how many there are, at most
 * `cap`.
 */
size_t cpu_gemm_candidates(const struct cpu_problem *p, unsigned level,
			   struct cpu_gemm_config *out, size_t cap);

/* ----------------------------------------------------- cpu_trial.c ----- */

/*
 * A problem with operands (normal, from a seed) and some elements of its result
 * in double: those of first, last and random rows and columns, or all where
 * there are few.
 */
struct cpu_trial;
struct cpu_trial *cpu_trial_new(const struct cpu_problem *p,
				unsigned threads, uint64_t seed,
				struct err *e);
void cpu_trial_free(struct cpu_trial *t);
/* Computes the product; C is in cpu_trial_c() afterwards, [m][n]. */
void cpu_trial_run(struct cpu_trial *t, const struct cpu_gemm_config *c);
float *cpu_trial_c(struct cpu_trial *t);
/*
 * The largest error of what is in C, as a share of what is allowed, which is
 * 4 sqrt(k) 2^-23 times the norm of an element's products, and 4 times the norm
 * of what rounding A and B may change in each; INFINITY for NaN.  *compared
 * counts elements.
 */
double cpu_trial_worst(const struct cpu_trial *t, size_t *compared);
/* Seconds of one run in a sample of at least a millisecond. */
double cpu_trial_time(struct cpu_trial *t, const struct cpu_gemm_config *c);

/* ------------------------------------------------------ cpu_tune.c ----- */

struct cpu_tune_opts {
	const char *db;	  /* as res_path() takes it */
	unsigned threads; /* 0: one per processor */
	unsigned level;	  /* 0: cpu_gemm_level() */
	double seconds;	  /* for a problem; 0: 5 */
	uint64_t seed;
	const _Atomic int *stop; /* may be NULL; set: end soon */
	int argc;
	char *const *argv;
	const struct res_shard *shard; /* NULL: the problems are all there are */
	const char *work;	       /* of a shard, for struct res_start */
};
struct cpu_outcome {
	bool found, stored; /* stored: taken from the database as it is */
	char config[CPU_GEMM_TEXT], second[CPU_GEMM_TEXT];
	double time_s, lo_s, hi_s; /* median and its 95 % interval */
	double default_s; /* of cpu_gemm_default() in the same rounds */
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
bool cpu_tune(const struct cpu_tune_opts *o, const struct cpu_problem *p,
	      size_t n, struct cpu_outcome *out, struct err *e);

/* ---------------------------------------------------- cpu_select.c ----- */

/*
 * The winners of a database for this processor and so many threads, kept in
 * memory.  A file that is not there is an empty table.
 */
struct cpu_table;
struct cpu_table *cpu_table_open(const char *db, unsigned threads,
				 struct err *e);
void cpu_table_free(struct cpu_table *t);

enum cpu_choice { CPU_EXACT, CPU_NEAREST, CPU_DEFAULT };
/*
 * The configuration for a product: the winner of this very problem, else of
 * the one of its kind whose sizes are least far, |log2(m/m')| + |log2(n/n')| +
 * |log2(k/k')| <= 2, if it is legal here, else cpu_gemm_default().  `t` may
 * be NULL.
 */
enum cpu_choice cpu_select(const struct cpu_table *t, const struct cpu_gemm *g,
			   struct cpu_gemm_config *c);
/* What the rows of a database are kept under: the processor and threads. */
void cpu_target(unsigned threads, char out[CPU_GEMM_TEXT]);

#endif
