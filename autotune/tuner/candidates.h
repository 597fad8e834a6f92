/*
 * autotune/tuner/candidates.h - the search for one problem, and who works on it.
 *
 * Workers take candidates and give answers; the main thread alone talks to the
 * database and to devices.
 */
#ifndef T0_AUTOTUNE_HUNT_H
#define T0_AUTOTUNE_HUNT_H

#include <pthread.h>

#include "autotune/tuner/bench_device.h"

struct hunt_entry {
	struct tune_candidate c;
	char config[TUNE_TEXT];
	bool taken; /* a worker has it, or it is decided */
	double time_s, clock_hz;
	char object[20], limit[64];
};

enum { HUNT_SEEDS = 4 };

struct hunt {
	const struct tune_problem *p;
	struct hunt_entry *v; /* [n] by estimate, the illegal ones last */
	size_t n, legal;
	uint32_t timed, taken, failed, rejected;
	size_t seed[HUNT_SEEDS]; /* [n_seeds] indices: fast for others */
	size_t n_seeds;
	size_t best; /* index of the fastest; n: none yet */
	size_t *tried; /* [n_tried] those timed, or that did not compile */
	size_t n_tried;
	bool done;   /* nothing is left to do: taken from the database */
};

/* ---------------------------------------------------------- hunt.c ---- */

/*
 * The space of p, with what `known` rows of its key say already, and what won
 * for the problems nearest to it.
 */
bool hunt_init(struct hunt *h, const struct tune_problem *p,
	       const struct tune_opts *o, struct tune_store *s, struct err *e);
void hunt_fini(struct hunt *h);
/*
 * The next candidate to time: what won for near problems, then the best by
 * estimate, one of each tile, for a quarter of the budget; then the one that is
 * expected to be the fastest, which is its estimate times what was found of
 * configurations like it (hunt.c).
 * Those whose bound is above the fastest time are left out, and marked
 * rejected.  false: no more.
 */
bool hunt_next(struct hunt *h, uint32_t budget, size_t *out);
/* What is the fastest for another problem, if it was not tried for this one. */
bool hunt_follow(struct hunt *h, const struct hunt *other, uint32_t budget,
		 size_t *out);
/* A candidate was timed, or could not be. */
void hunt_take(struct hunt *h, size_t i);
/* The row of an entry, for the database. */
struct res_tune hunt_row(const struct hunt_entry *x);

/* ------------------------------------------------------- compile.c ---- */

/* Machine code by operation and configuration: compiled once, kept. */
struct code_cache;
struct code_cache *code_cache_new(const struct tune_opts *o);
void code_cache_free(struct code_cache *c);
/*
 * Thread-safe; who comes while another compiles it, waits.  NULL and *e: it
 * cannot be had (and why, each time).
 */
const struct gemm_code *code_get(struct code_cache *c,
				 const struct gemm_op *op,
				 const struct gemm_config *config,
				 struct err *e);
/* What there is no use in running: spills, no workgroup fits. */
bool code_is_usable(const struct gemm_config *c, const struct gemm_code *code,
		    struct err *e);

/* --------------------------------------------------------- judge.c ---- */

struct judge {
	const struct tune_opts *o;
	struct tune_store *s;
	struct code_cache *codes;
	struct tune_rig rig;
	/* Of the times that decide; operands "" for simulated ones. */
	enum res_origin origin;
	char operands[32];
	bool measures;
};
/*
 * A device that may have a clock is opened, and measured on if it has; the soft
 * one waits until there is something to check.
 */
bool judge_open(struct judge *j, struct err *e);
/* Checks the fastest until the budget's number is right, and chooses. */
bool judge_hunt(struct judge *j, struct hunt *h, struct tune_outcome *out,
		struct err *e);
/* What the database has for this problem under this key, if it has won. */
bool judge_known(struct judge *j, const struct tune_problem *p,
		 struct tune_outcome *out, struct err *e);

/* ---------------------------------------------------------- race.c ---- */

/*
 * Measure the `n` finalists; their rows, samples and sensors are stored, and
 * `out` describes the fastest, or says why there is none.
 */
bool race(struct judge *j, struct hunt *h, const size_t *finalist, size_t n,
	  struct tune_outcome *out, struct err *e);

#endif
