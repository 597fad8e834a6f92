/*
 * kfd/cmd/cmd_run_time.c - how long a job took, and would take on a card.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "kfd/cmd/job.h"

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t kfd_job_median_ns(const struct kfd_job *r)
{
	uint64_t *sorted = xmalloc(r->n_done * sizeof(*sorted)), m;

	memcpy(sorted, r->device_ns, r->n_done * sizeof(*sorted));
	qsort(sorted, r->n_done, sizeof(*sorted), compare_u64);
	m = sorted[(r->n_done - 1) / 2];
	free(sorted);
	return m;
}

/* A launch that takes the executor longer than this keeps the simulator busy
 * for longer than one waits for. */
static const uint64_t most_emulated_ns = 200 * UINT64_C(1000000);

void kfd_job_simulate(struct kfd_job *r)
{
	struct sim_plan plan = { 0 };
	struct cost_model costs;
	struct sim_forecast f;
	struct err e = { 0 };

	if (!strcmp(kfd_info(r->dev)->origin, "hardware") || !r->n_done ||
	    kfd_job_median_ns(r) > most_emulated_ns)
		return;
	cost_init(&costs, kfd_info(r->dev)->gfx);
	bool ok = sim_plan_init(&plan, &r->l, &e);
	const struct sim_dispatch how = {
		.cost = &costs, .trips = SIM_TRIPS, .warmth = SIM_WARM,
		.footprint_bytes = plan.buffer_bytes,
	};
	if (ok && sim_plan_forecast(&how, &plan, &f, &e)) {
		r->simulated_s = f.time_s;
		sim_forecast_fini(&f);
	}
	sim_plan_fini(&plan);
	cost_fini(&costs);
}
