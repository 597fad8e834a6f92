/*
 * compiler/sim/plan_launch.c - a command line's launch, to simulate.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "isa/launch/launch.h"

/* Buffers begin so far from each other, or a multiple of it. */
#define APART (UINT64_C(1) << 32)
#define FIRST_VA (UINT64_C(1) << 40)
/* Somewhere: nobody looks behind these. */
#define QUEUE_VA (UINT64_C(1) << 45)

/* Addresses, and what scalar loads find there. */
static void place_buffers(struct sim_plan *p, const struct launch_plan *l,
			  uint64_t *va)
{
	uint64_t next = FIRST_VA;
	int n = 0;

	p->memory = xcalloc((size_t)l->n_args + 1, sizeof(*p->memory));
	for (int i = 0; i < l->n_args; i++) {
		const struct operand *o = &l->arg[i];

		if (o->kind != OPERAND_BUFFER)
			continue;
		va[i] = next;
		next = (next + o->size_bytes + APART) & ~(APART - 1);
		p->buffer_bytes += o->size_bytes;
		if (!o->untouched)
			p->memory[n++] = (struct sim_memory){
				va[i], o->data, o->size_bytes,
			};
	}
	p->launch.memory = p->memory;
	p->launch.n_memory = n;
}

bool sim_plan_init(struct sim_plan *p, struct launch_plan *l, struct err *e)
{
	struct launch_dispatch d = {
		.lds_bytes = l->lds_bytes, .print_va = QUEUE_VA,
		.hostcall_va = QUEUE_VA + APART, .queue_va = QUEUE_VA + 2 * APART,
	};
	uint64_t va[LAUNCH_ARGS_MAX] = { 0 };

	*p = (struct sim_plan){ 0 };
	place_buffers(p, l, va);
	if (!launch_arguments(l, va, e))
		return false;
	memcpy(d.grid, l->grid, sizeof(d.grid));
	memcpy(d.block, l->block, sizeof(d.block));
	launch_hidden(&d, l->kernel->args, l->kernel->n_args, l->kernarg,
		      l->kernarg_bytes);
	p->launch.kernel = l->kernel;
	p->launch.kernarg = l->kernarg;
	p->launch.kernarg_bytes = l->kernarg_bytes;
	p->launch.lds_bytes = l->lds_bytes;
	p->groups = launch_groups(l, p->launch.groups);
	memcpy(p->launch.group_size, l->block, sizeof(l->block));
	memcpy(p->launch.grid, l->grid, sizeof(l->grid));
	return true;
}

void sim_plan_fini(struct sim_plan *p)
{
	free(p->memory);
	*p = (struct sim_plan){ 0 };
}

bool sim_plan_forecast(const struct sim_dispatch *how, struct sim_plan *p,
		       struct sim_forecast *out, struct err *e)
{
	const uint64_t wgps = (uint64_t)cost_value(how->cost, COST_N_WGP);
	struct sim_forecast last;

	p->launch.first = 0;
	if (!sim_object_forecast_as(how, &p->launch, out, e))
		return false;
	p->launch.first = (uint32_t)((p->groups - 1) % wgps);
	if (!p->launch.first)
		return true;
	if (!sim_object_forecast_as(how, &p->launch, &last, e)) {
		sim_forecast_fini(out);
		return false;
	}
	const bool later = last.time_s > out->time_s;

	sim_forecast_fini(later ? out : &last);
	if (later)
		*out = last;
	else
		p->launch.first = 0;
	return true;
}
