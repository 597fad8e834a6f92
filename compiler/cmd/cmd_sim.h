/*
 * compiler/cmd/cmd_sim.h - the commands of t0-sim, and what they share.
 */
#ifndef T0_CMD_SIM_H
#define T0_CMD_SIM_H

#include "base/cmd.h"
#include "compiler/sim/sim.h"
#include "isa/launch/launch.h"
#include "isa/object/lines.h"

struct sim_cmd {
	struct cmd cmd;
	const char *trace, *affine, *costs, *timeline, *plot, *html, *db;
	const char *compare, *chip;
	struct cli_list set, traces, perf;
	uint64_t dispatch, groups, footprint;
	double clock;
	bool annotate, cold, fits, mca, rows, all, products, ranges, order;
	bool guesses;
	bool waves, what_if;
	const char *write; /* of fit */
	uint64_t jobs, number;
	struct launch_plan launch;
};

/* ------------------------------------------------------ cmd_sim_costs.c -- */

/*
 * Those of --costs from the database, then --set; the caller frees *m.  For a
 * command that is going to make the database it need not be there.
 */
bool sim_load_costs(const struct sim_cmd *o, bool makes_db,
		    struct cost_model *m, struct err *e);

bool sim_cmd_costs(struct cmd *c, struct err *e);
bool sim_cmd_import(struct cmd *c, struct err *e);

/* ----------------------------------------------------- cmd_sim_kernel.c -- */

bool sim_cmd_kernel(struct cmd *c, struct err *e);

/* --------------------------------------------------- cmd_sim_validate.c -- */

bool sim_cmd_validate(struct cmd *c, struct err *e);

/* -------------------------------------------------------- cmd_sim_fit.c -- */

bool sim_cmd_fit(struct cmd *c, struct err *e);
bool sim_cmd_design(struct cmd *c, struct err *e);

/* Everything that is known of one run. */
struct show_sim {
	const char *file, *kernel;
	const struct sim_result *r;
	const struct sim_config *c;
	const struct sim_gpu *gpu; /* NULL: the grid is not known */
	double flop;	/* of the dispatch; 0: not known */
	const struct cost_model *m;
	const struct sim_source *src;
	const char *costs; /* which were asked for */
	const struct sim_timeline *timeline; /* for waves over time */
	const struct sim_gain *gain; /* [n_gains] the best first */
	int n_gains;
	const struct co_lines *lines; /* NULL: not known */
};

/* ------------------------------------------------------- cmd_sim_show.c -- */

bool show_text(const struct show_sim *s, FILE *out, struct err *e);
/* Every instruction that ran, with its issues and stalls per execution. */
bool show_annotated(const struct show_sim *s, FILE *out, struct err *e);
/* "waiting, 48 % of it for ...", or the busiest pipe. */
void show_limit(const struct sim_result *r, struct buf *out);
/* "vmcnt 210.5, depend 3.0": cycles per execution, the longest first. */
void show_reasons(const struct sim_line *l, char *out, size_t size);
/* Is it a branch, and where to? */
bool show_branch(const struct sim_line *l, uint64_t *to);
bool show_json(const struct show_sim *s, bool annotate, FILE *out,
	       struct err *e);

/* ------------------------------------------------------ cmd_sim_waves.c -- */

/* A line for each of the first waves: what it does, in columns of time. */
void show_waves(const struct show_sim *s, int columns, struct buf *out);
bool show_gains(const struct show_sim *s, FILE *out, struct err *e);

/* ------------------------------------------------------- cmd_sim_html.c -- */

/* All of it as a page of its own. */
bool show_html(const struct show_sim *s, const char *path, struct err *e);

/* ------------------------------------------------------- cmd_sim_plot.c -- */

/* Occupancy over time, pipes and stalls; FILE.svg or FILE.png by gnuplot. */
bool plot_sim(const struct show_sim *s, const char *path, struct err *e);
/* Predicted against reference of `n` rows, with the band of 15 %. */
bool plot_validation(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e);

#endif
