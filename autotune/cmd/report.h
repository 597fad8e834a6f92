/*
 * autotune/cmd/report.h - what a search found, for people and programs.
 */
#ifndef T0_AUTOTUNE_REPORT_H
#define T0_AUTOTUNE_REPORT_H

#include "autotune/tuner/tune.h"

struct tune_report {
	enum table_format format;
	FILE *out;
	bool quiet;	/* no notes */
	bool explain;	/* of every winner: its pipes and stalls */
	const char *db; /* for the simulator's error; NULL: not looked at */
	const struct cost_model *costs;
};

/* The table, and below it, as text, what its numbers mean. */
bool tune_report(const struct tune_report *r, const struct tune_outcome *o,
		 size_t n, struct err *e);
/* The ranked space of a problem. */
bool tune_report_space(const struct tune_report *r,
		       const struct tune_problems *l, struct err *e);
/* -------------------------------------------------- host_products.c ---- */

/*
 * The search on the host's processor (autotune/cpu/gemm.h), and its table;
 * *all: every problem has a winner.
 */
bool tune_on_host(const struct tune_opts *o, const struct tune_problems *l,
		  const struct tune_report *r, bool *all, struct err *e);

#endif
