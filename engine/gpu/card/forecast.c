/*
 * engine/gpu/card/forecast.c - launches recorded, and simulated one by one,
 * without a card.
 */
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "compiler/sim/sim.h"
#include "engine/gpu/card/card.h"

/* A launch, and how often there was one like it. */
struct gpu_launch {
	const struct gpu_code *code;
	uint32_t groups[3], group_size[3], times;
	uint8_t *args; /* [kernel->kernarg_bytes] */
};

/* What of the arguments is no address: with it a kernel takes as long. */
static bool same_sizes(const struct kfd_kernel *k, const uint8_t *a,
		       const uint8_t *b)
{
	for (uint32_t i = 0; i < k->n_args; i++)
		if (k->arg[i].kind != CO_ARG_GLOBAL_BUFFER &&
		    memcmp(a + k->arg[i].offset, b + k->arg[i].offset,
			   k->arg[i].size) != 0)
			return false;
	return true;
}

/* Our kernels ask for no hidden argument but the number of groups. */
static void hidden_fill(const struct kfd_kernel *k, struct gpu_launch *x)
{
	for (uint32_t i = 0; i < k->n_args; i++) {
		int dim = (int)k->arg[i].kind - CO_ARG_HIDDEN_BLOCK_COUNT_X;
		if (dim >= 0 && dim < 3)
			memcpy(x->args + k->arg[i].offset, &x->groups[dim],
			       sizeof(x->groups[dim]));
	}
}

void gpu_record_launch(struct gpu_record *r, const struct gpu_code *c,
		       const struct kfd_launch *l)
{
	const struct kfd_kernel *k = c->kernel;
	struct gpu_launch x = { .code = c,
				.times = r->more ? r->more : 1,
				.args = xcalloc(1, k->kernarg_bytes + 1) };

	for (int d = 0; d < 3; d++) {
		x.group_size[d] = l->wg[d];
		x.groups[d] = l->grid[d] / l->wg[d];
	}
	memcpy(x.args, l->args, l->args_bytes);
	hidden_fill(k, &x);
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].code == c &&
		    !memcmp(r->v[i].groups, x.groups, sizeof(x.groups)) &&
		    same_sizes(k, r->v[i].args, x.args)) {
			r->v[i].times += x.times;
			free(x.args);
			return;
		}
	vec_push(r, x);
}

void gpu_record_fini(struct gpu_record *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->v[i].args);
	free(r->v);
	*r = (struct gpu_record){ 0 };
}

/* ---- simulating ---- */

/* A round of one WGP stands for the grid. */
static void count_work(const struct gpu_launch *x, const struct sim_forecast *f,
		       struct gpu_share *to)
{
	const struct sim_result *r = &f->round;
	double items = 1, waves;

	for (int d = 0; d < 3; d++)
		items *= x->group_size[d];
	waves = ceil(items / r->wave_size);
	for (int d = 0; d < 3; d++)
		waves *= x->groups[d];
	to->flop = sim_flop(r) * waves / r->n_waves;
	to->far_bytes = r->exchanged_bytes * waves / r->n_waves;
}

/* An argument of 4 bytes, by its name; 0: it has none. */
static uint32_t named_argument(const struct gpu_launch *x, const char *name)
{
	const struct kfd_kernel *k = x->code->kernel;
	uint32_t v = 0;

	for (uint32_t i = 0; i < k->n_args; i++)
		if (!strcmp(k->arg[i].name, name) && k->arg[i].size == 4)
			memcpy(&v, x->args + k->arg[i].offset, sizeof(v));
	return v;
}

/* Products of tiles call them n and k, those of streams rows and n. */
static void find_sizes(const struct gpu_launch *x, struct gpu_share *to)
{
	const uint32_t rows = named_argument(x, "rows");
	const uint32_t n = named_argument(x, "n");

	to->outputs = rows ? rows : n;
	to->inputs = rows ? n : named_argument(x, "k");
}

static bool simulate_launch(const struct gpu_launch *x,
			    const struct gpu_record *r,
			    const struct cost_model *m,
			    struct gpu_forecast *out, struct err *e)
{
	const struct kfd_kernel *k = x->code->kernel;
	struct gpu_share *to = &out->share[out->n];
	struct sim_forecast f;
	struct co co;

	if (!co_parse(&co, x->code->object, x->code->object_bytes, e))
		return false;
	const struct kfd_mem *seen[] = { r->words, r->table };
	struct sim_memory memory[ARRAY_SIZE(seen) + GPU_KNOWN_MAX];
	uint32_t n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		if (seen[i])
			memory[n++] = (struct sim_memory){
				seen[i]->va, seen[i]->cpu, seen[i]->size_bytes
			};
	for (int i = 0; i < GPU_KNOWN_MAX; i++)
		memory[n++] = (struct sim_memory){ r->known[i].va,
						   r->known[i].bytes,
						   r->known[i].size_bytes };
	const struct sim_launch l = {
		.kernel = &co.kernels[0],
		.kernarg = x->args,
		.kernarg_bytes = k->kernarg_bytes,
		.groups = { x->groups[0], x->groups[1], x->groups[2] },
		.group_size = { x->group_size[0], x->group_size[1],
				x->group_size[2] },
		.memory = memory,
		.n_memory = n,
		.guess = true,
		.uneven = x->code->uneven,
	};
	bool good = sim_object_forecast(m, &l, r->footprint_bytes, &f, e);
	if (good) {
		snprintf(to->kernel, sizeof(to->kernel), "%s", x->code->label);
		snprintf(to->chosen, sizeof(to->chosen), "%s", x->code->chosen);
		snprintf(to->limit, sizeof(to->limit), "%s", f.limit);
		find_sizes(x, to);
		to->launches = x->times;
		to->each_s = f.time_s;
		count_work(x, &f, to);
		out->kernels_s += x->times * f.time_s;
		out->launches_s += x->times * f.launch_s;
		out->packets += x->times;
		out->n++;
		sim_forecast_fini(&f);
	} else {
		err_wrap(e, "%s", k->name);
	}
	co_fini(&co);
	return good;
}

bool gpu_record_simulate(const struct gpu_record *r, const struct cost_model *m,
			 struct gpu_forecast *out, struct err *e)
{
	bool good = true;

	*out = (struct gpu_forecast){ 0 };
	out->share = xcalloc(r->n + 1, sizeof(*out->share));
	for (size_t i = 0; good && i < r->n; i++)
		good = simulate_launch(&r->v[i], r, m, out, e);
	if (!good) {
		free(out->share);
		*out = (struct gpu_forecast){ 0 };
	}
	return good;
}
