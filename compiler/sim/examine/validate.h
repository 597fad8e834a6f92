/*
 * validate.h - predictions against what others measured, as a result of its
 * own.  See compiler/sim/examine/split.def for which rows judge.
 */
#ifndef T0_SIM_VALIDATE_H
#define T0_SIM_VALIDATE_H

#include "compiler/cost/cost.h"

struct validate {
	const char *traces; /* JSON lines of compiler/sim/examine/vector.h, or NULL */
	const char *perf;   /* CSV of published GEMM rows, or NULL */
	const char *db;	    /* where to store area "predict"; NULL: nowhere */
	const char *plot;   /* picture, or NULL; by draw() */
	bool (*draw)(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e);
	bool mca, rows, quiet;
	enum table_format format;
	FILE *out;
	const char *tool;
};

/* -------------------------------------------------------- validate.c ---- */

bool validate_run(const struct validate *v, const struct cost_model *m,
		  struct err *e);

#endif
