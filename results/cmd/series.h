/*
 * series.h - fresh processes that are compared; for bench, calibrate,
 * bench-commits, bisect and experiment, not for others.
 */
#ifndef T0_RESULTS_SERIES_H
#define T0_RESULTS_SERIES_H

#include "results/cmd/cmd.h"

/* One build of the program. */
struct series_side {
	const char *name;    /* kept as the runs' `side` */
	const char *program; /* a path */
	const char *dir;     /* to run it in; NULL: here */
	const char *key;     /* what it is built from; NULL: its own bytes */
	const char *const *argv; /* instead of the series' own; NULL: those */
	const char *const *set;	 /* "NAME=VALUE" for it, up to NULL; NULL: none */
};

struct series {
	struct show *s;
	const char *const *argv; /* of the command, whatever argv[0] is */
	const struct series_side *side; /* [n_sides] */
	size_t n_sides;
	size_t processes;  /* a side */
	bool foreign;	   /* builds whose schema may be older than this one's */
	const char *label; /* series of another label are others; NULL: none */
	const struct res_shard *shard; /* of the processes' work; NULL: the whole */
	bool recalls;	   /* one that is complete is taken as it is */
	uint64_t until_ns; /* stop then (time_mono_ns()); 0: never */
	/* Results. */
	const struct series_side *failed; /* whose process failed; else NULL */
	char name[RES_IDENTITY + 24 + RES_SHARD_TEXT];
	const char *db_path; /* private */
};

/* The processes of --processes, else those that are advised. */
bool series_processes(const struct show *s, size_t *n, struct err *e);
/*
 * Run what the series lacks: sides forwards and backwards in turns, each
 * process with the database in T0_DB; its run is kept with series and side.
 * Stops at the first process that fails, which keeps what was stored.
 */
bool series_run(struct series *x, struct err *e);
/* The run that stands for a side on the command line. */
bool series_first_run(struct series *x, size_t side, int64_t *run,
		      struct err *e);

/*
 * One measurement in each of n processes of one program, rows of them: the
 * logarithms, in the order of time.
 */
struct pool {
	double **value;	 /* [rows][n] */
	bool *principal; /* [rows]: whose changes are to be detected */
	size_t rows, n;
	double alpha; /* of a row */
	uint64_t seed;
};

struct pool_verdict {
	size_t false_alarms; /* trials with any false verdict */
	size_t serial, serial_false;
	/* Shares: the worst principal row's, NaN if there is none; the drift
	 * is the row's in the middle. */
	double detectable, spread, drift;
};

/*
 * Of `trials` windows of 2 * side processes, two of each four neighbours are
 * dealt to side b: what is proven is false.  b made slower: what is found 19
 * times of 20.  Groups of `side` one after the other: drift.
 */
struct pool_verdict pool_judge(struct pool *p, size_t side, size_t trials);

/*
 * Processes of a program, a, and of one that is slower, b, in turns.  A trial
 * takes some of their blocks of A B B A, in the order of time, `side` processes
 * of each: a comparison, and a gate with a as the baseline.  `alpha` is a row's.
 */
struct planted_verdict {
	size_t trials;
	size_t found;  /* comparisons that prove a row worse */
	size_t passed; /* gates that pass every row */
	double change; /* what b lost, of the row in the middle; a share */
};
struct pieces;
struct planted_verdict pool_judge_planted(const struct pieces *rows,
					  size_t side, size_t trials,
					  double alpha);

#endif
