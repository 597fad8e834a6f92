/*
 * compiler/sim/what_if.c - what would help: the same dispatch simulated again
 * with one flaw mended at a time.
 */
#include <stdlib.h>

#include "compiler/sim/sim.h"

static const struct sim_change changes[SIM_CHANGES] = {
	{ SIM_NO_CONFLICTS, "bank conflicts",
	  "lanes meet in one bank of LDS",
	  "pad rows by a dword, or swizzle their columns" },
	{ SIM_NO_SCATTER, "scattered access",
	  "lanes of an access are far from each other in memory",
	  "let neighbouring lanes take neighbouring elements" },
	{ SIM_NO_SERIAL_WAITS, "serial waits",
	  "loads are waited for before the next ones are under way",
	  "move loads up, in front of the first wait" },
	{ SIM_NO_SPILLS, "spilled registers",
	  "values go to scratch and back",
	  "keep fewer values at once, or allow more VGPRs" },
	{ SIM_NO_VGPR_LIMIT, "few waves: VGPRs",
	  "registers limit how many waves hide each other's waits",
	  "use fewer VGPRs" },
	{ SIM_NO_LDS_LIMIT, "few waves: LDS",
	  "LDS limits how many workgroups hide each other's waits",
	  "use less LDS" },
	{ SIM_NO_BARRIERS, "barriers",
	  "waves wait for the last of their workgroup",
	  "share less between waves, or use smaller workgroups" },
};

static int by_gain(const void *a, const void *b)
{
	const struct sim_gain *x = a, *y = b;

	return (x->times < y->times) - (x->times > y->times);
}

bool sim_what_if(const struct sim_dispatch *how, struct sim_plan *p,
		 const struct sim_forecast *before,
		 struct sim_gain out[SIM_CHANGES], int *n, struct err *e)
{
	struct sim_dispatch changed = *how;
	struct sim_forecast as_it_is;

	*n = 0;
	changed.clock_mhz = before->clock_mhz;
	changed.issued = NULL;
	if (!sim_object_forecast_as(&changed, &p->launch, &as_it_is, e))
		return false;
	const double time_s = as_it_is.time_s;
	sim_forecast_fini(&as_it_is);
	for (int i = 0; i < SIM_CHANGES; i++) {
		struct sim_forecast f;

		changed.without = changes[i].without;
		if (!sim_object_forecast_as(&changed, &p->launch, &f, e))
			return false;
		const double times = time_s / f.time_s;

		if (times >= 1.01)
			out[(*n)++] = (struct sim_gain){ &changes[i], times };
		sim_forecast_fini(&f);
	}
	qsort(out, (size_t)*n, sizeof(*out), by_gain);
	return true;
}
