/*
 * autotune/cmd - what the files of t0-tune share: tables of what a search found,
 * what others published beside it, and the search on the host.
 */
#ifndef T0_AUTOTUNE_CMD_H
#define T0_AUTOTUNE_CMD_H

#include "autotune/tuner/tune.h"

/* --------------------------------------------------------- report.c ---- */

struct published_error;
struct tune_report {
	enum table_format format;
	FILE *out;
	bool quiet;	/* no notes */
	bool explain;	/* of every winner: its pipes and stalls */
	const char *db; /* for the simulator's error; NULL: not looked at */
	const struct cost_model *costs;
	/* How far simulated times are off; tune_report()'s own. */
	const struct published_error *error;
};

/* The table, and below it, as text, what its numbers mean. */
bool tune_report(const struct tune_report *r, const struct tune_outcome *o,
		 size_t n, struct err *e);
/* The ranked space of a problem. */
bool tune_report_space(const struct tune_report *r,
		       const struct tune_problems *l, struct err *e);

/* --------------------------------------------------------- compare.c ---- */

/* A product of others, and what it is held against. */
struct tune_comparison {
	const struct tune_problem *problem;
	const struct tune_foreign *foreign;
	const char *kernel, *db, *device;
	const struct cost_model *costs;
	uint64_t seed;
};
/*
 * A row of theirs and, if there is a winner of this very problem, one of ours,
 * both simulated now; *complete: so it is, and theirs is not wrong.  *t is made
 * in any case; remarks are lines.
 */
bool tune_compare(const struct tune_comparison *x, struct table *t,
		  bool *complete, struct buf *remarks, struct err *e);

/* ------------------------------------------------------------ card.c ---- */

/* The products of the kit (autotune/card/card.h), numbered from 1. */
void tune_card_list(struct table *t);
/*
 * Measure n of them on the device of *o; *right: all computed what they should.
 * *t is made in any case.
 */
struct probe_opts;
bool tune_card_measure(const struct probe_opts *o, const int *number, size_t n,
		       struct table *t, bool *right, struct err *e);

/* -------------------------------------------------- host_products.c ---- */

/*
 * The search on the host's processor (autotune/cpu/gemm.h), and its table;
 * *all: every problem has a winner.
 */
bool tune_on_host(const struct tune_opts *o, const struct tune_problems *l,
		  const struct tune_report *r, bool *all, struct err *e);

/* The product that the host computes; ERR_UNSUPPORTED if it does not. */
struct cpu_problem;
bool tune_host_problem(const struct tune_problem *p, struct cpu_problem *out,
		       struct err *e);

/* --------------------------------------------------- host_measure.c ---- */

/*
 * Times the products in the configurations of the database, each checked first,
 * and stores rows of area "gemm"; *all: every one is right.
 */
bool tune_measure_host(const struct tune_opts *o,
		       const struct tune_problems *l,
		       const struct tune_report *r, bool *all, struct err *e);

/* ------------------------------------------------------ published.c ---- */

/*
 * What others published, and how far the simulator is off where it can be held
 * against that.
 */

enum published_system {
	PUBLISHED_ROCBLAS,
	PUBLISHED_TRITON,      /* tuned by itself */
	PUBLISHED_TRITON_TILE, /* 128x128x32 */
	PUBLISHED_T0_GPU
};

/*
 * TFLOPS of one shape and type, whatever the layout, of loops over one product:
 * warm caches.  NAN: nothing.
 */
double published_tflops(enum published_system s, const struct tune_problem *p);
/* The best of both Triton rows. */
double published_triton(const struct tune_problem *p);

/*
 * Mean error of predictions, as a share of what was published; and the range of
 * published over predicted that holds 80 % of products: of the same rows, or,
 * where nothing was validated, sim_range()'s.
 */
struct published_error {
	double mean, worst, least, most;
	int rows, range_rows; /* of the error; of the range */
	char source[96];
};
/*
 * Of the products of the newest `t0-sim validate` run in the database, each
 * source left out; if there is none, of the TRITON_TILE rows, simulated now (a second or two).
 */
bool published_error(struct res_db *db, const struct cost_model *m,
		     struct published_error *out, struct err *e);
/*
 * All rows as a run of their own, origin `published`, and what the simulator
 * says of the TRITON_TILE rows (areas "gemm" and "predict"); once for a build
 * and costs.  One shard has them, as the only one of a work of its own.
 */
bool published_store(const char *path, const struct cost_model *m,
		     const struct res_shard *shard, struct err *e);

/* ---------------------------------------------------------- panel.c ---- */

/* Has the search draw what it learns, full screen; NULL where that cannot be. */
struct tune_watch *tune_watch_open(struct tune_opts *o);
void tune_watch_close(struct tune_watch *w);

#endif
