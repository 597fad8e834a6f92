/*
 * engine/train/gpu/update.c - weights follow gradients.
 */
#include "engine/train/gpu/gpu_int.h"

static uint64_t count_of(const struct train_param *p)
{
	return (uint64_t)p->rows * p->cols;
}

static uint64_t spans_of(const struct train_param *p)
{
	return (count_of(p) + KERNEL_SPAN - 1) / KERNEL_SPAN;
}

static uint64_t norm_at(const struct train_gpu *s)
{
	return s->norm ? s->norm->va : 0;
}

/* ---- the length of all gradients ---- */

static bool put_squares(struct train_gpu *s, const struct train_param *p,
			uint64_t out, struct err *e)
{
	const struct train_launch l = { .kernel = "square_sum",
					.n = spans_of(p) };
	struct gpu_args a = { .n = 0 };

	arg_va(&a, out);
	arg_va(&a, value_at(s, p->gradient));
	arg_u32(&a, (uint32_t)count_of(p));
	return train_put_kernel(s, &l, &a, e);
}

static bool put_norm(struct train_gpu *s, double clip, struct err *e)
{
	const struct train_launch l = { .kernel = "clip_norm", .n = 1 };
	struct gpu_args a = { .n = 0 };
	uint64_t n = 0, sums, at;

	for (uint32_t i = 0; i < s->g->n_params; i++)
		if (s->g->param[i].gradient != TRAIN_NONE)
			n += spans_of(&s->g->param[i]);
	at = sums = train_work_take(s, n * sizeof(float));
	for (uint32_t i = 0; i < s->g->n_params; i++) {
		const struct train_param *p = &s->g->param[i];

		if (p->gradient == TRAIN_NONE)
			continue;
		if (!put_squares(s, p, at, e))
			return false;
		at += spans_of(p) * sizeof(float);
	}
	arg_va(&a, norm_at(s));
	arg_va(&a, sums);
	arg_u32(&a, (uint32_t)n);
	arg_f32(&a, clip);
	return train_put_kernel(s, &l, &a, e);
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

static bool put_learn(struct train_gpu *s, const struct update *u, uint32_t i,
		      struct err *e)
{
	const struct train_param *p = &s->g->param[i];
	const struct train_adam *h = &u->how;
	bool adamw = p->state[1] != TRAIN_NONE;
	uint32_t w = learner_of(p);
	const struct train_launch l = {
		adamw ? "learn_adamw" : "learn_momentum",
		{ .type = s->g->value[w].width == 2 ? DSL_BF16 : DSL_F32 },
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
	arg_f32(&a, p->matrix ? 1 - h->rate * (float)u->rule->decay : 1);
	arg_f32(&a, adamw ? h->beta1 : h->momentum);
	if (adamw) {
		arg_f32(&a, h->beta2);
		arg_f32(&a, h->epsilon);
		arg_f32(&a, h->correct1);
		arg_f32(&a, h->correct2);
	}
	arg_u32(&a, s->record ? 0 : salt_of(u, i)); /* equal sizes, one row */
	arg_u32(&a, (uint32_t)count_of(p));
	return train_put_kernel(s, &l, &a, e);
}

/* average += (w - average) * share, if the step is one */
static bool put_average(struct train_gpu *s, const struct update *u,
			const struct train_param *p, struct err *e)
{
	uint32_t w = learner_of(p);
	const struct train_launch l = {
		"learn_average",
		{ .type = s->g->value[w].width == 2 ? DSL_BF16 : DSL_F32 },
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
	return put_learn(s, u, i, e) &&
	       (w == p->weight ||
		train_put_convert(s, value_at(s, p->weight), DSL_BF16,
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
