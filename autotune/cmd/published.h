/*
 * autotune/cmd/published.h - what others published, and how far the simulator
 * is off where it can be held against that.
 */
#ifndef T0_AUTOTUNE_PUBLISHED_H
#define T0_AUTOTUNE_PUBLISHED_H

#include "autotune/tuner/tune.h"

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

/* Mean error of predictions, as a share of what was published. */
struct published_error {
	double mean, worst;
	int rows;
	char source[96];
};
/*
 * Of the newest `t0-sim validate` run in the database with rows that judge; if
 * there is none, of the TRITON_TILE rows, simulated now (a second or two).
 */
bool published_error(struct res_db *db, const struct cost_model *m,
		     struct published_error *out, struct err *e);

#endif
