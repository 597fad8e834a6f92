/*
 * examine_int - what validate.c and report.c share: every measurement with what
 * is predicted for it.
 */
#ifndef T0_SIM_EXAMINE_INT_H
#define T0_SIM_EXAMINE_INT_H

#include "compiler/sim/examine/examine.h"

/* What kind of measurement; names and units are in report.c. */
enum exam_set {
	EXAM_TRACES,
	EXAM_GEMM, /* the four of enum others_class, in its order */
	EXAM_PAIRS,
	EXAM_SPLIT,
	EXAM_TILES,
	EXAM_LOOPS,
	EXAM_CODE,
	EXAM_SETS
};

/* One trace or published row. */
struct exam_row {
	enum exam_set set;
	char name[160];
	const char *file;
	int group;	  /* of exam.group */
	double reference; /* cycles, seconds, operations a second, a ratio */
	double fitted;	  /* predicted with the costs as they are */
	double predicted; /* with those fitted without its group */
	/* Of traces, of `predicted`: struct vector's; else NaN. */
	double issue_error, rank, within;
	double mca; /* llvm-mca's cycles; NaN: not asked */
	int at;	    /* exam.trace or exam.published, else -1 */
};

/* A kernel of traces, or a source of published rows. */
struct exam_group {
	const char *name;
	bool refitted; /* parameters are fitted on it, so its rows are predicted
			* with others */
};

/* A fitted parameter's value without a group. */
struct exam_fit {
	const struct cost_fit *fit;
	int group;
	double value;
};

/* Zero-initialise; validate.c frees it. */
struct exam {
	const struct validate *o;
	const char *file; /* that is being read */
	const struct cost_model *m;
	struct vector *trace;
	struct others_row *published;
	struct exam_row *row;
	struct exam_group *group;
	struct exam_fit *fit;
	int n_traces, n_published, n_rows, n_groups, n_fits;
	int cap_traces, cap_published, cap_rows, cap_groups, cap_fits;
	struct arena mem; /* names of groups */
};

/* ---------------------------------------------------------- report.c ---- */

bool exam_print_rows(const struct exam *x, struct err *e);
/* A line for each group of a set, one for all of it, and one for all times. */
bool exam_print_summary(const struct exam *x, struct err *e);
/*
 * What share of a kernel's or source's rows lies in the range that all others
 * give: of traces, and of times of products.
 */
bool exam_print_ranges(const struct exam *x, struct err *e);
bool exam_print_fits(const struct exam *x, struct err *e);
/* On stderr: of the total time alone, for llvm-mca has no time per issue. */
void exam_print_mca(const struct exam *x);
/* Rows of area "predict" in o->db. */
bool exam_store(const struct exam *x, struct err *e);
bool exam_draw(const struct exam *x, struct err *e);

/* ----------------------------------------------------------- order.c ---- */

/*
 * Of each source, pairs of products whose published times differ by more than a
 * tenth, and how many of these are predicted in that order: those of one shape
 * (tiles, split-K or not, other compilers), and those of small shapes.
 */
bool exam_print_order(const struct exam *x, struct err *e);

#endif
