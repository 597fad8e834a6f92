/*
 * compiler/sim/gpu.c - from the workgroups of one WGP to the whole GPU.
 */
#include <math.h>
#include <string.h>

#include "compiler/sim/sim.h"

/* Groups that a WGP holds at once, as far as the simulation saw. */
static int groups_at_once(const struct sim_result *r, int simulated)
{
	int waves = simulated ? r->n_waves / simulated : 1;
	int n = waves ? r->resident / waves : 1;

	return n ? n : 1;
}

/*
 * The simulated WGP did `simulated` groups; the fullest of the GPU has `mine`.
 * Whole rounds take as long as the simulated ones did; so does a partial one,
 * since fewer groups are only faster by the memory bandwidth that they get
 * more of (not counted).
 */
static double rounds_of(double groups, int at_once)
{
	return ceil(groups / at_once);
}

void sim_gpu(const struct sim_result *r, const struct sim_config *c,
	     int simulated, uint64_t groups, struct sim_gpu *out)
{
	const struct cost_model *m = c->cost;
	double wgps = cost_value(m, COST_N_WGP), hz = r->clock_mhz * 1e6;
	double mine = ceil((double)groups / wgps);
	int at_once = groups_at_once(r, simulated);
	double waves = simulated ? (double)r->n_waves / simulated : 1;

	memset(out, 0, sizeof(*out));
	out->groups = groups;
	out->wgps = (int)wgps;
	out->groups_per_wgp = at_once;
	out->full_rounds = rounds_of(mine, at_once);
	out->cycles = (double)r->cycles * out->full_rounds /
		      rounds_of(simulated, at_once);
	out->limit = "wgp";
	double dispatch = (double)groups * waves *
			  cost_value(m, COST_WAVE_RATE) /
			  cost_value(m, COST_N_SE);
	if (dispatch > out->cycles) {
		out->cycles = dispatch;
		out->limit = "dispatch";
	} else if (r->limit == SIM_PIPE_MEMORY || r->limit == SIM_PIPE_L2) {
		out->limit = "memory";
	}
	out->time_s = out->cycles / hz;
	out->launch_s = cost_value(m, COST_LAUNCH) * 1e-6;
}
