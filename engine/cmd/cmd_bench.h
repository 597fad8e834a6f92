/* cmd_bench - what the files of t0-qwen3 bench share. */
#ifndef T0_ENGINE_CMD_BENCH_H
#define T0_ENGINE_CMD_BENCH_H

#include "engine/cmd/cmd.h"
#include "results/db/results.h"
#include "results/stats/stats.h"

struct qwen_bench {
	struct qwen_cmd *c;
	struct qwen_session s;
	struct qwen_state *st;
	struct res_db *db;
	int64_t run;
	uint64_t *prefill, *decode, *batch, *depth;
	size_t n_prefill, n_decode, n_batch, n_depth;
	uint32_t longest, widest, positions; /* positions: of a sequence */
	struct qwen_ids prompt, said;
	uint64_t model_hash, prompt_hash;
	uint64_t file_hash; /* of the prompt's file; 0: none */
	uint64_t finished; /* samples of the case so far */
	double error; /* of the self-check, relative */
	struct qwen_roofline *peak;
	struct table t;
};

/* What is timed, and what came of it. */
struct qwen_case {
	const char *phase; /* "prefill" or "decode" */
	uint32_t tokens;   /* of the prompt; steps of decode */
	uint32_t width;	   /* sequences */
	uint32_t depth;	   /* positions of each that are filled before */
	/* Of each of the command's samples. */
	double *seconds, *speed, *limit;
};

/* Columns of the whole table, which programs get. */
enum {
	BENCH_PHASE,
	BENCH_TOKENS,
	BENCH_BATCH,
	BENCH_SPEED,
	BENCH_FIRST,
	BENCH_PERCENT,
	BENCH_SAMPLES,
	BENCH_LIMIT,
	BENCH_DEPTH,
	BENCH_ACTIVATIONS,
	BENCH_PERCENT_LO,
	BENCH_PERCENT_HI,
	BENCH_GAIN,
	BENCH_TAU,
	BENCH_ACCEPTANCE,
	BENCH_SPEED_LO,
	BENCH_SPEED_HI,
};
#define BENCH_COLUMNS \
	"phase,#tokens,#batch,#tokens_per_s,#first_token_s," \
	"#percent_of_limit,#samples,limit,#depth,activations,#percent_lo," \
	"#percent_hi,#gain,#tau,#acceptance,#tokens_per_s_lo," \
	"#tokens_per_s_hi"

/* -------------------------------------------------- cmd_bench_sample.c --- */

/* Seconds of one sample, here; decode leaves its first sequence in b->said. */
bool qwen_bench_once(struct qwen_bench *b, const struct qwen_case *k,
		     double *seconds, struct err *e);
/*
 * Again and again until that takes 50 ms, and what one took then: no clock
 * tells less apart on a machine that others use.  With --fresh once, in a
 * process of its own: caches, pages and the heap are as a user finds them.
 */
bool qwen_bench_sample(struct qwen_bench *b, const struct qwen_case *k,
		       double *seconds, struct err *e);

/* --------------------------------------------------- cmd_bench_store.c --- */

/* Opens the database and begins a run in it; b->run is 0 if it failed. */
bool qwen_bench_begin(struct qwen_bench *b, struct err *e);
/* Ends the run; `ok`: all was measured, else *e says what happened. */
bool qwen_bench_end(struct qwen_bench *b, bool ok, struct err *e);
/* Tokens per second with their interval, in the row that is the last. */
void qwen_bench_speed_cells(struct table *t, struct res_interval speed);
/* All of a case, with its verdicts, and a row of the table. */
bool qwen_bench_store(struct qwen_bench *b, const struct qwen_case *k,
		      struct err *e);
/* b->finished samples of a case, and their median with its interval. */
bool qwen_bench_samples(struct qwen_bench *b, int64_t case_id,
			const char *metric, const char *unit, const double *v,
			enum res_better better, struct res_interval *median,
			struct err *e);
/* One value of what was measured, so that it is not the same the next time. */
bool qwen_bench_derived(struct qwen_bench *b, int64_t case_id,
			const char *metric, const char *unit, double v,
			enum res_better better, struct err *e);
/* Verdicts: the case is right, and whether b->said makes sense. */
bool qwen_bench_correct(struct qwen_bench *b, int64_t case_id, const char *why,
			struct err *e);
bool qwen_bench_coherence(struct qwen_bench *b, int64_t case_id, uint32_t depth,
			  struct err *e);
/* The peak of the process's memory so far, and the cache. */
bool qwen_bench_store_memory(struct qwen_bench *b, struct err *e);

/* ----------------------------------------------------- cmd_bench_show.c --- */

/* The table: for programs all of it, for people a line for each test. */
bool qwen_bench_show(const struct qwen_bench *b, struct err *e);

/* ----------------------------------------------- cmd_bench_speculate.c --- */

/* What --speculate and --draft win behind the prompt, if they are given. */
bool qwen_bench_speculate(struct qwen_bench *b, struct err *e);

#endif
