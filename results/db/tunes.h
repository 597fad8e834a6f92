/*
 * tunes.h - what the tuner tried, checked and chose.
 *
 * A row is a configuration for a problem under a key: the words are the
 * tuner's (autotune/tuner/tune.h), the rules are the schema's
 * (results/db/schema.def, version 5).  Rows are never decided twice under one
 * key, so that a search which was killed goes on with what is missing.  A
 * winner is a timed configuration whose machine code passed the check of its
 * class and failed none: the schema refuses any other, whoever writes it.
 */
#ifndef T0_RESULTS_TUNES_H
#define T0_RESULTS_TUNES_H

#include "results/db/results.h"

enum res_tune_state {
	RES_TUNE_RANKED,   /* has a bound; nothing decided yet */
	RES_TUNE_REJECTED, /* cannot be had, or cannot win; `reason` */
	RES_TUNE_FAILED,   /* computes the wrong thing, or not at all */
	RES_TUNE_TIMED,
};
const char *res_tune_state_name(enum res_tune_state s);

/* What a decision depends on, but for the configuration. */
struct res_tune_key {
	const char *target; /* "gfx1100" */
	const char *op;
	int64_t m, n, k, batch;
	const char *caches; /* "warm", "cold-b", "cold"; "" where not said */
	enum res_origin origin; /* simulated or hardware */
	const char *operands;	/* "" where time does not depend on them */
	const char *costs, *code; /* digests */
};

/* NAN: not known.  Text may be NULL for "". */
struct res_tune {
	int64_t id; /* of a row that was read */
	const char *config;
	enum res_tune_state state;
	const char *reason, *limits, *object;
	double bound_s, time_s, lo_s, hi_s, clock_hz;
	int64_t samples;
};

struct res_tune_check {
	const char *target, *op, *config, *object, *class;
	bool pass;
	double worst;	  /* largest error, as a share of what is allowed */
	int64_t compared; /* elements */
	uint64_t seed;
	const char *detail;
};

struct res_tune_winner {
	struct res_tune_key key;
	struct res_tune tune;
	const char *second; /* configuration of the runner-up; "" */
	const char *class, *budget;
	int64_t candidates;
};

/* ------------------------------------------------------------ tunes.c -- */

/* Store a row; what an earlier one of its key and configuration said, goes. */
bool res_tune_put(struct res_db *db, int64_t run, const struct res_tune_key *k,
		  const struct res_tune *t, struct err *e);
/*
 * Calls fn for every row of a key, the fastest first, then by bound.  Strings
 * live until fn returns; fn returns false to stop early (no error).
 */
bool res_tune_each(struct res_db *db, const struct res_tune_key *k,
		   bool (*fn)(void *ctx, const struct res_tune *t), void *ctx,
		   struct err *e);

bool res_tune_check_put(struct res_db *db, int64_t run,
			const struct res_tune_check *c, struct err *e);
/*
 * *answer: 1 the code passed for this class and failed nowhere, -1 it failed
 * somewhere, 0 nobody has looked.
 */
bool res_tune_checked(struct res_db *db, const struct res_tune_check *c,
		      int *answer, struct err *e);

/*
 * Make the row of this configuration the winner of its key, instead of any
 * before.  Refused (ERR_INPUT) unless it is timed, checked and right.
 */
bool res_tune_win(struct res_db *db, const struct res_tune_winner *w,
		  struct err *e);
/*
 * Calls fn for the winners of a target and op, whatever their shapes, origins,
 * costs and code, the newest first.
 */
bool res_tune_winners(struct res_db *db, const char *target, const char *op,
		      bool (*fn)(void *ctx, const struct res_tune_winner *w),
		      void *ctx, struct err *e);

#endif
