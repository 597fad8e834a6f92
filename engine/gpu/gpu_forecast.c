/*
 * engine/gpu/gpu_forecast.c - a pass simulated, without a card and without
 * weights.
 *
 * The packets of a pass, from the same code that puts them on a queue, go
 * through the pipeline simulator one by one.  A model of the right sizes is
 * laid out in the memory of the gfx1100 in software, and nothing is written
 * there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/sim.h"
#include "engine/gpu/gpu_int.h"

/* A launch, and how often there was one like it. */
struct launch {
	const struct gpu_code *code;
	uint32_t groups[3], group_size[3], times;
	uint8_t *args; /* [kernel->kernarg_bytes] */
};

struct record {
	struct launch *v;
	size_t n, cap;
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
static void hidden_fill(const struct kfd_kernel *k, struct launch *x)
{
	for (uint32_t i = 0; i < k->n_args; i++) {
		int dim = (int)k->arg[i].kind - CO_ARG_HIDDEN_BLOCK_COUNT_X;
		if (dim >= 0 && dim < 3)
			memcpy(x->args + k->arg[i].offset, &x->groups[dim],
			       sizeof(x->groups[dim]));
	}
}

static void record_launch(void *ctx, const struct gpu_code *c,
			  const struct kfd_launch *l)
{
	const struct kfd_kernel *k = c->kernel;
	struct record *r = ctx;
	struct launch x = { .code = c, .times = 1,
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
			r->v[i].times++;
			free(x.args);
			return;
		}
	vec_push(r, x);
}

/* ---- one pass, recorded ---- */

static bool pass_put(struct gpu_state *s, const struct gpu_question *q,
		     struct err *e)
{
	const uint32_t n = q->sequences * q->tokens;
	struct qwen_token *token = xcalloc(n, sizeof(*token));
	uint32_t *position = xcalloc(n, sizeof(*position));
	uint32_t *wanted = xcalloc(q->sequences, sizeof(*wanted));
	struct qwen_pass p = { .token = token, .position = position, .n = n,
			       .wanted = wanted, .n_wanted = q->sequences };

	for (uint32_t i = 0; i < n; i++) {
		token[i].sequence = i / q->tokens;
		position[i] = q->positions - q->tokens + i % q->tokens;
	}
	for (uint32_t i = 0; i < q->sequences; i++) {
		wanted[i] = (i + 1) * q->tokens - 1;
		token[wanted[i]].best = true;
	}
	bool good = gpu_put_pass(s, &p, e);
	free(token);
	free(position);
	free(wanted);
	return good;
}

/* ---- simulating ---- */

/* A round of one WGP stands for the grid. */
static void count_work(const struct launch *x, const struct sim_forecast *f,
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

static bool simulate_launch(const struct launch *x, const struct gpu_state *s,
			    const struct cost_model *m, uint64_t footprint,
			    struct gpu_forecast *out, struct err *e)
{
	const struct kfd_kernel *k = x->code->kernel;
	struct gpu_share *to = &out->share[out->n];
	struct sim_forecast f;
	struct co co;

	if (!co_parse(&co, x->code->object, x->code->object_bytes, e))
		return false;
	const struct sim_memory words = {
		s->words->va, s->words->cpu, s->words->size_bytes,
	};
	const struct sim_launch l = {
		.kernel = &co.kernels[0],
		.kernarg = x->args, .kernarg_bytes = k->kernarg_bytes,
		.groups = { x->groups[0], x->groups[1], x->groups[2] },
		.group_size = { x->group_size[0], x->group_size[1],
				x->group_size[2] },
		.memory = &words, .n_memory = 1,
		.guess = true,
		/* The later a query, the more keys it sees. */
		.uneven = s->flash && x->code == &s->flash->code,
	};
	bool good = sim_object_forecast(m, &l, footprint, &f, e);
	if (good) {
		snprintf(to->kernel, sizeof(to->kernel), "%s",
			 x->code->label);
		snprintf(to->chosen, sizeof(to->chosen), "%s",
			 x->code->chosen);
		snprintf(to->limit, sizeof(to->limit), "%s", f.limit);
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

static bool model_place(struct qwen_model *m, const struct qwen_config *c,
			const struct gpu_question *q, struct err *e)
{
	const struct qwen_load how = { .device = "soft" };

	qwen_model_outline(m, c, q->weights);
	m->backend = &qwen_gpu;
	return qwen_gpu.open(m, &how, e);
}

bool gpu_forecast(const struct qwen_config *c, const struct gpu_question *q,
		  const struct cost_model *m, struct gpu_forecast *out,
		  struct err *e)
{
	const struct qwen_shape shape = {
		.sequences = q->sequences, .positions = q->positions,
		.max_tokens = q->sequences * q->tokens, .cache = q->cache,
	};
	struct gpu_state *s = NULL;
	struct record r = { 0 };
	struct qwen_model model;
	bool good;

	*out = (struct gpu_forecast){ 0 };
	good = model_place(&model, c, q, e) &&
	       (s = gpu_state_make(&model, &shape, e));
	if (good) {
		s->record = record_launch;
		s->record_ctx = &r;
		good = pass_put(s, q, e);
	}
	out->weight_bytes = model.token_bytes;
	out->share = xcalloc(r.n + 1, sizeof(*out->share));
	for (size_t i = 0; good && i < r.n; i++)
		good = simulate_launch(&r.v[i], s, m,
				       model.token_bytes + gpu_cache_bytes(s),
				       out, e);
	for (size_t i = 0; i < r.n; i++)
		free(r.v[i].args);
	free(r.v);
	if (s)
		gpu_state_free(s);
	qwen_model_close(&model);
	if (!good) {
		free(out->share);
		out->share = NULL;
	}
	return good;
}
