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

/* Issues and stalls of all waves in the order of cycles. */
struct timeline {
	struct timeline_event {
		uint64_t cycle, ready;
		uint32_t busy;
		uint16_t op;
		int16_t wave;
		uint8_t simd, stall, pipe;
		uint64_t pc;
	} *v;
	size_t n, cap;
	bool full; /* TIMELINE_MAX reached */
};
#define TIMELINE_MAX 2000000

/* ------------------------------------------------------------ show.c ---- */

bool show_text(const struct show_sim *s, FILE *out, struct err *e);
/* Every instruction that ran, with its issues and stalls per execution. */
bool show_annotated(const struct show_sim *s, FILE *out, struct err *e);
bool show_json(const struct show_sim *s, bool annotate, FILE *out,
	       struct err *e);

/* -------------------------------------------------------- timeline.c ---- */

/* A sim_config.issued; ctx is the timeline. */
void timeline_issue(void *ctx, const struct sim_event *ev);
/* Trace-event JSON, which Perfetto opens; one cycle is one microsecond. */
bool timeline_write(const struct timeline *t, const struct show_sim *s,
		    const char *path, struct err *e);
void timeline_fini(struct timeline *t);

/* ------------------------------------------------------------ plot.c ---- */

/* Occupancy over time, pipes and stalls; FILE.svg or FILE.png by gnuplot. */
bool plot_sim(const struct show_sim *s, const char *path, struct err *e);
/* Predicted against reference of `n` rows, with the band of 15 %. */
bool plot_validation(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e);

#endif
