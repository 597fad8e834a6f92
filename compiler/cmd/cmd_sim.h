/*
 * compiler/cmd/cmd_sim.h - the commands of t0-sim, and what they share.
 */
#ifndef T0_CMD_SIM_H
#define T0_CMD_SIM_H

#include "base/cmd.h"
#include "compiler/sim/sim.h"
#include "isa/launch/launch.h"

struct sim_cmd {
	struct cmd cmd;
	const char *trace, *affine, *costs, *timeline, *plot, *db;
	const char *compare;
	struct cli_list set, traces, perf;
	uint64_t dispatch, groups, footprint;
	double clock;
	bool annotate, cold, fits, mca, rows, all, products;
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
};

/* ------------------------------------------------------- cmd_sim_show.c -- */

bool show_text(const struct show_sim *s, FILE *out, struct err *e);
/* Every instruction that ran, with its issues and stalls per execution. */
bool show_annotated(const struct show_sim *s, FILE *out, struct err *e);
bool show_json(const struct show_sim *s, bool annotate, FILE *out,
	       struct err *e);

/* ------------------------------------------------------- cmd_sim_plot.c -- */

/* Occupancy over time, pipes and stalls; FILE.svg or FILE.png by gnuplot. */
bool plot_sim(const struct show_sim *s, const char *path, struct err *e);
/* Predicted against reference of `n` rows, with the band of 15 %. */
bool plot_validation(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e);

#endif
