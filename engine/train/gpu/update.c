/*
 * engine/train/gpu/update.c - weights follow gradients.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/train/gpu/gpu_int.h"

static uint64_t count_of(const struct train_param *p)
{
	return (uint64_t)p->rows * p->cols;
}

static uint64_t norm_at(const struct train_gpu *s)
{
	return s->norm ? s->norm->va : 0;
}

/* ---- the length of all gradients ---- */

static uint64_t spans_of(uint64_t n)
{
	return (n + KERNEL_SPAN - 1) / KERNEL_SPAN;
}

static bool put_squares(struct train_gpu *s, const struct train_span *x,
			uint64_t out, struct err *e)
{
	const struct train_launch l = { .kernel = "square_sum",
					.n = spans_of(x->n) };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, out);
	arg_va(&a, x->x);
	arg_u32(&a, (uint32_t)x->n);
	return train_put_kernel(s, &l, &a, e);
}

bool train_put_length(struct train_gpu *s, const struct train_span *x,
		      uint32_t n, uint64_t out, double clip, double scale,
		      struct err *e)
{
	const struct train_launch l = { .kernel = "clip_norm", .n = 1 };
	struct gpu_args a = { .n = 0 };
	uint64_t spans = 0, sums, at;

	for (uint32_t i = 0; i < n; i++)
		spans += spans_of(x[i].n);
	at = sums = train_work_take(s, spans * sizeof(float));
	for (uint32_t i = 0; i < n; i++) {
		if (!put_squares(s, &x[i], at, e))
			return false;
		at += spans_of(x[i].n) * sizeof(float);
	}
	arg_va(&a, out);
	arg_va(&a, sums);
	arg_u32(&a, (uint32_t)spans);
	arg_f32(&a, clip);
	arg_f32(&a, scale);
	return train_put_kernel(s, &l, &a, e);
}

static bool put_norm(struct train_gpu *s, double clip, struct err *e)
{
	const struct train_graph *g = s->g;
	struct train_span *x = xcalloc(g->n_params, sizeof(*x));
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n_params; i++)
		if (g->param[i].gradient != TRAIN_NONE)
			x[n++] = (struct train_span){
				value_at(s, g->param[i].gradient),
				count_of(&g->param[i])
			};
	bool good = train_put_length(s, x, n, norm_at(s), clip,
				     1 / (double)s->loss_scale, e);
	free(x);
	return good;
}

/* ---- a parameter ---- */

struct update {
	const struct train_rule *rule;
	struct train_adam how;
	uint64_t step;
};

static uint32_t salt_of(const struct update *u, uint32_t param)
{
	uint64_t salt = u->rule->seed + u->step * 1000003 + param;

	return (uint32_t)random_next(&salt);
}

/* The values that learn: masters where there are such. */
static uint32_t learner_of(const struct train_param *p)
{
	return p->master != TRAIN_NONE ? p->master : p->weight;
}

static enum dsl_type type_of_learner(const struct train_gpu *s, uint32_t w)
{
	return s->g->value[w].width == 2 ? DSL_BF16 : DSL_F32;
}

/* What all three kernels have last. */
static void arg_last(struct gpu_args *a, const struct train_gpu *s,
		     const struct update *u, uint32_t i)
{
	arg_u32(a, s->record ? 0 : salt_of(u, i)); /* equal sizes, one row */
	arg_u32(a, (uint32_t)count_of(&s->g->param[i]));
}

static float keep_of(const struct update *u, const struct train_param *p)
{
	return p->matrix ? 1 - u->how.rate * (float)u->rule->decay : 1;
}

static bool put_learn(struct train_gpu *s, const struct update *u, uint32_t i,
		      struct err *e)
{
	const struct train_param *p = &s->g->param[i];
	const struct train_adam *h = &u->how;
	bool adamw = p->state[1] != TRAIN_NONE;
	uint32_t w = learner_of(p);
	const struct train_launch l = {
		adamw ? "learn_adamw" : "learn_momentum",
		{ .type = type_of_learner(s, w) },
		count_of(p)
	};
	struct gpu_args a = { .n = 0 };

	arg_va(&a, value_at(s, w));
	arg_va(&a, value_at(s, p->gradient));
	arg_va(&a, value_at(s, p->state[0]));
	if (adamw)
		arg_va(&a, value_at(s, p->state[1]));
	arg_va(&a, norm_at(s));
	arg_f32(&a, h->rate);
	arg_f32(&a, keep_of(u, p));
	arg_f32(&a, adamw ? h->beta1 : h->momentum);
	if (adamw) {
		arg_f32(&a, h->beta2);
		arg_f32(&a, h->epsilon);
		arg_f32(&a, h->correct1);
		arg_f32(&a, h->correct2);
	}
	arg_last(&a, s, u, i);
	return train_put_kernel(s, &l, &a, e);
}

/* Muon; steps of 0.2 of the rate, as AdamW's are (engine/train/optimize.c). */
static bool put_muon(struct train_gpu *s, const struct update *u, uint32_t i,
		     struct err *e)
{
	const struct train_param *p = &s->g->param[i];
	uint32_t w = learner_of(p), most = p->rows > p->cols ? p->rows : p->cols;
	const struct train_launch l = { "learn_direction",
					{ .type = type_of_learner(s, w) },
					count_of(p) };
	struct gpu_args a = { .n = 0 };
	uint64_t direction;

	if (!train_put_direction(s, p, &u->how, norm_at(s), &direction, e))
		return false;
	arg_va(&a, value_at(s, w));
	arg_va(&a, value_at(s, p->gradient));
	arg_va(&a, direction);
	arg_va(&a, norm_at(s));
	arg_f32(&a, u->how.rate * 0.2 * sqrt(most));
	arg_f32(&a, keep_of(u, p));
	arg_last(&a, s, u, i);
	return train_put_kernel(s, &l, &a, e);
}

/* average += (w - average) * share, if the step is one */
static bool put_average(struct train_gpu *s, const struct update *u,
			const struct train_param *p, struct err *e)
{
	uint32_t w = learner_of(p);
	const struct train_launch l = {
		"learn_average",
		{ .type = type_of_learner(s, w) },
		count_of(p)
	};
	struct gpu_args a = { .n = 0 };

	arg_va(&a, value_at(s, p->average));
	arg_va(&a, value_at(s, w));
	arg_va(&a, norm_at(s));
	arg_f32(&a, 1 - (float)u->rule->average);
	arg_u32(&a, (uint32_t)count_of(p));
	return train_put_kernel(s, &l, &a, e);
}

static bool put_param(struct train_gpu *s, const struct update *u, uint32_t i,
		      struct err *e)
{
	const struct train_param *p = &s->g->param[i];
	uint32_t w = learner_of(p);

	train_work_begin(s);
	return (u->rule->method == TRAIN_MUON && p->hidden ? put_muon :
							     put_learn)(s, u, i,
									e) &&
	       (w == p->weight ||
		train_put_convert(s, value_at(s, p->weight), s->half,
				  value_at(s, w), DSL_F32, count_of(p), e)) &&
	       (p->average == TRAIN_NONE || put_average(s, u, p, e));
}

bool train_put_update(struct train_gpu *s, const struct train_rule *r,
		      uint64_t step, struct err *e)
{
	struct update u = { .rule = r, .step = step };

	train_adam_init(&u.how, r, step, 0);
	train_work_begin(s);
	if (!put_norm(s, r->clip, e))
		return false;
	for (uint32_t i = 0; i < s->g->n_params; i++) {
		const struct train_param *p = &s->g->param[i];

		if (p->gradient != TRAIN_NONE && p->state[0] != TRAIN_NONE &&
		    !put_param(s, &u, i, e))
			return err_wrap(e, "%s", p->name);
	}
	return true;
}
