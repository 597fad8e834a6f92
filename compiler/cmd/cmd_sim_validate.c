/*
 * compiler/cmd/cmd_sim_validate.c - t0-sim validate.
 */
#include "compiler/cmd/cmd_sim.h"
#include "compiler/sim/examine/examine.h"

bool sim_cmd_validate(struct cmd *c, struct err *e)
{
	const struct sim_cmd *o = (struct sim_cmd *)c;
	struct validate v = {
		.traces = &o->traces, .perf = &o->perf, .db = o->db,
		.plot = o->plot, .draw = plot_validation, .mca = o->mca,
		.rows = o->rows, .fits = o->fits, .ranges = o->ranges,
		.order = o->order,
		.format = c->format, .out = c->out,
		.tool = c->tool->name, .quiet = c->quiet,
		.stop = cmd_catch_signals(c),
	};
	struct cost_model m;
	bool ok = sim_load_costs(o, true, &m, e) && validate_run(&v, &m, e);

	cost_fini(&m);
	return ok;
}
