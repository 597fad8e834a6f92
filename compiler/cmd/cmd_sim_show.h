/*
 * show.h - what t0-sim prints and draws; not for other folders.
 */
#ifndef T0_SIM_SHOW_H
#define T0_SIM_SHOW_H

#include "compiler/sim/sim.h"

/* Everything that is known of one run. */
struct show_sim {
	const char *file, *kernel;
	const struct sim_result *r;
	const struct sim_config *c;
	const struct sim_gpu *gpu; /* NULL: the grid is not known */
	const struct cost_model *m;
	const struct sim_source *src;
	const char *costs; /* which were asked for */
};

/* ------------------------------------------------------------ show.c ---- */

bool show_text(const struct show_sim *s, FILE *out, struct err *e);
/* Every instruction that ran, with its issues and stalls per execution. */
bool show_annotated(const struct show_sim *s, FILE *out, struct err *e);
bool show_json(const struct show_sim *s, bool annotate, FILE *out,
	       struct err *e);

/* ------------------------------------------------------------ plot.c ---- */

/* Occupancy over time, pipes and stalls; FILE.svg or FILE.png by gnuplot. */
bool plot_sim(const struct show_sim *s, const char *path, struct err *e);
/* Predicted against reference of `n` rows, with the band of 15 %. */
bool plot_validation(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e);

#endif
