/*
 * engine/train/optimize.c - weights follow gradients: rules and schedules.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/kernels.h"

static const char *const method_name[TRAIN_METHODS] = {
	[TRAIN_NO_METHOD] = "none", [TRAIN_ADAMW] = "adamw",
	[TRAIN_SGD] = "sgd", [TRAIN_MUON] = "muon",
};
static const char *const schedule_name[TRAIN_SCHEDULES] = {
	[TRAIN_RATE_CONSTANT] = "constant", [TRAIN_RATE_COSINE] = "cosine",
	[TRAIN_RATE_LINEAR] = "linear", [TRAIN_RATE_WSD] = "wsd",
};

const char *train_method_name(enum train_method m)
{
	return method_name[m];
}

const char *train_schedule_name(enum train_schedule s)
{
	return schedule_name[s];
}

static int find_name(const char *const *list, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return i;
	return -1;
}

bool train_method_parse(const char *name, enum train_method *m, struct err *e)
{
	int i = find_name(method_name, TRAIN_METHODS, name);

	*m = (enum train_method)i;
	return i > 0 || err_set(e, ERR_USAGE, "got the optimizer \"%s\"; "
				"wanted adamw, sgd or muon", name);
}

bool train_schedule_parse(const char *name, enum train_schedule *s,
			  struct err *e)
{
	int i = find_name(schedule_name, TRAIN_SCHEDULES, name);

	*s = (enum train_schedule)i;
	return i >= 0 || err_set(e, ERR_USAGE, "got the schedule \"%s\"; "
				 "wanted constant, cosine, linear or wsd",
				 name);
}

/* ---- the rule ---- */

void train_rule_init(struct train_rule *r)
{
	*r = (struct train_rule){
		.method = TRAIN_ADAMW, .schedule = TRAIN_RATE_COSINE, .rate = 1e-3,
		.least = 0.1, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8,
		.momentum = 0.95, .decay = 0.1, .clip = 1, .grow_after = 500,
	};
}

bool train_rule_check(const struct train_rule *r, struct err *e)
{
	const struct {
		const char *name;
		double value, from, to; /* to is out of range */
	} range[] = {
		{ "learning rate", r->rate, 0, 1e3 },
		{ "share of the learning rate at the end", r->least, 0,
		  1.0000001 },
		{ "beta1", r->beta1, 0, 1 },
		{ "beta2", r->beta2, 0, 1 },
		{ "epsilon", r->epsilon, 1e-30, 1 },
		{ "momentum", r->momentum, 0, 1 },
		{ "weight decay", r->decay, 0, 1e3 },
		{ "length to clip to", r->clip, 0, INFINITY },
		{ "moving average", r->average, 0, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(range); i++)
		if (!(range[i].value >= range[i].from &&
		      range[i].value < range[i].to))
			return err_set(e, ERR_USAGE, "the %s is %g; wanted %g "
				       "to less than %g", range[i].name,
				       range[i].value, range[i].from,
				       range[i].to);
	return (r->warmup <= r->steps && r->cooldown <= r->steps - r->warmup) ||
	       err_set(e, ERR_USAGE, "%llu steps of warm-up and %llu of "
		       "cool-down; there are %llu in all",
		       (unsigned long long)r->warmup,
		       (unsigned long long)r->cooldown,
		       (unsigned long long)r->steps);
}

/* The share of the way down that is done, 0 to 1. */
static double share_done(const struct train_rule *r, uint64_t step)
{
	uint64_t from = r->schedule == TRAIN_RATE_WSD ? r->steps - r->cooldown :
						   r->warmup;

	if (r->schedule == TRAIN_RATE_CONSTANT || step < from || r->steps <= from)
		return 0;
	double done = (double)(step - from) / (double)(r->steps - from);
	done = done < 1 ? done : 1;
	return r->schedule == TRAIN_RATE_COSINE ? (1 - cos(M_PI * done)) / 2 : done;
}

double train_rate(const struct train_rule *r, uint64_t step)
{
	if (step < r->warmup)
		return r->rate * (double)(step + 1) / (double)r->warmup;
	return r->rate * (1 - (1 - r->least) * share_done(r, step));
}

void train_adam_init(struct train_adam *a, const struct train_rule *r,
		     uint64_t step, double norm)
{
	double rate = train_rate(r, step), steps = (double)step + 1;

	*a = (struct train_adam){
		.rate = (float)rate, .keep = 1, .beta1 = (float)r->beta1,
		.beta2 = (float)r->beta2, .epsilon = (float)r->epsilon,
		.correct1 = (float)(1 / (1 - pow(r->beta1, steps))),
		.correct2 = (float)(1 / (1 - pow(r->beta2, steps))),
		.momentum = (float)r->momentum,
		.clip = r->clip > 0 && norm > r->clip ?
				(float)(r->clip / norm) : 1,
	};
}

void train_adam_decay(struct train_adam *a, const struct train_rule *r,
		      bool matrix)
{
	a->keep = matrix ? 1 - a->rate * (float)r->decay : 1;
}

/* ---- a step ---- */

#define UNIT 4096 /* elements that a thread takes at once */

struct update {
	struct train *x;
	const struct train_graph *g;
	const struct train_rule *rule;
	uint64_t step;
	struct train_adam how;
	double *square; /* [units]: of all parameters, one after the other */
	double norm;
};

static size_t count_of(const struct train_param *p)
{
	return (size_t)p->rows * p->cols;
}

/* 0 of what learns nothing. */
static size_t units_of(const struct train_param *p)
{
	return p->gradient == TRAIN_NONE ? 0 : (count_of(p) + UNIT - 1) / UNIT;
}

static void sum_squares(struct update *u, struct threads *t, unsigned thread)
{
	double *out = u->square;

	for (uint32_t i = 0; i < u->g->n_params; i++) {
		const struct train_param *p = &u->g->param[i];
		size_t from, to, n = count_of(p);

		if (p->gradient == TRAIN_NONE)
			continue;
		const float *g = train_data(u->x, p->gradient);
		threads_part(t, thread, units_of(p), 1, &from, &to);
		for (; from < to; from++) {
			size_t at = from * UNIT;
			out[from] = train_kernels_best()->square_sum(
				g + at, n - at < UNIT ? n - at : UNIT);
		}
		out += units_of(p);
	}
}

/* Once, by the first thread: the same order whoever summed what. */
static void find_norm(struct update *u)
{
	const struct train_rule *r = u->rule;
	size_t n = 0;
	double sum = 0;

	for (uint32_t i = 0; i < u->g->n_params; i++)
		n += units_of(&u->g->param[i]);
	for (size_t i = 0; i < n; i++)
		sum += u->square[i];
	double scale = train_loss_scale_of(u->x);
	u->norm = sqrt(sum) / scale;
	train_adam_init(&u->how, r, u->step, u->norm);
	u->how.clip /= (float)scale;
}

/*
 * Elements [at, at + n) of a parameter whose f32 values are in w: what they
 * become.
 */
static void update_unit(const struct update *u, const struct train_param *p,
			const struct train_adam *how, size_t at, size_t n,
			float *w)
{
	const struct train_kernels *k = train_kernels_best();
	const float *g = (float *)train_data(u->x, p->gradient) + at;
	float *m = (float *)train_data(u->x, p->state[0]) + at;

	if (p->state[1] != TRAIN_NONE)
		k->adamw(how, n, g, w, m,
			 (float *)train_data(u->x, p->state[1]) + at);
	else
		k->momentum(how, n, g, w, m);
	if (p->average != TRAIN_NONE)
		k->approach(w, n, 1 - (float)u->rule->average,
			    (float *)train_data(u->x, p->average) + at);
}

/* The same where they are, and as the operations read them. */
static void store_unit(const struct update *u, uint32_t i,
		       const struct train_adam *how, size_t at, size_t n)
{
	const struct train_param *p = &u->g->param[i];
	const struct qwen_kernels *e = qwen_kernels_best();
	float space[UNIT];
	uint16_t *narrow = (uint16_t *)train_data(u->x, p->weight) + at;

	if (p->master == p->weight) {
		update_unit(u, p, how, at, n,
			    (float *)train_data(u->x, p->weight) + at);
	} else if (p->master != TRAIN_NONE) {
		float *w = (float *)train_data(u->x, p->master) + at;
		update_unit(u, p, how, at, n, w);
		e->narrow(u->g->type, w, n, narrow);
	} else {
		uint64_t salt = u->rule->seed + u->step * 1000003 + i;
		e->widen(QWEN_W_BF16, narrow, n, space);
		update_unit(u, p, how, at, n, space);
		train_kernels_best()->round_by_chance(
			space, n, (uint32_t)at, (uint32_t)random_next(&salt),
			narrow);
	}
	memset((float *)train_data(u->x, p->gradient) + at, 0,
	       n * sizeof(float));
}

/* Muon: the gradient becomes what AdamW's direction would be. */
static void turn_gradient(struct update *u, const struct train_param *p,
			  struct train_adam *how, struct threads *t,
			  unsigned thread)
{
	float *const space[4] = {
		train_data(u->x, u->g->muon[0]),
		train_data(u->x, u->g->muon[1]),
		train_data(u->x, u->g->muon[2]),
		train_data(u->x, u->g->muon[3]),
	};
	float *g = train_data(u->x, p->gradient);
	float *m = train_data(u->x, p->state[0]);
	uint32_t most = p->rows > p->cols ? p->rows : p->cols;
	size_t from, to;

	threads_part(t, thread, count_of(p), TRAIN_PAD, &from, &to);
	/* Nesterov: where the momentum will be. */
	for (size_t i = from; i < to; i++) {
		m[i] = how->momentum * m[i] + how->clip * g[i];
		g[i] = how->clip * g[i] + how->momentum * m[i];
	}
	threads_barrier(t);
	train_orthogonalize(g, p->rows, p->cols, space,
			    &train_worker_of(u->x, thread)->gemm, t, thread);
	/*
	 * An orthogonal matrix has elements of 1 / sqrt(most) in the mean;
	 * AdamW's steps are of 0.2 of the rate.
	 */
	how->clip = 0.2f * sqrtf((float)most);
	how->momentum = 0;
}

/* `m` of Muon keeps the momentum: the step itself is of the gradient alone. */
static void step_by_gradient(const struct update *u, uint32_t i,
			     const struct train_adam *how, size_t at, size_t n)
{
	const struct train_param *p = &u->g->param[i];
	struct update other = *u;
	float kept[UNIT];
	float *m = (float *)train_data(u->x, p->state[0]) + at;

	memcpy(kept, m, n * sizeof(*m));
	store_unit(&other, i, how, at, n);
	memcpy(m, kept, n * sizeof(*m));
}

static void update_param(struct update *u, uint32_t i, struct threads *t,
			 unsigned thread)
{
	const struct train_param *p = &u->g->param[i];
	struct train_adam how = u->how;
	bool muon = u->rule->method == TRAIN_MUON && p->hidden;
	size_t from, to, n = count_of(p);

	if (p->gradient == TRAIN_NONE)
		return;
	train_adam_decay(&how, u->rule, p->matrix);
	if (muon)
		turn_gradient(u, p, &how, t, thread);
	threads_part(t, thread, units_of(p), 1, &from, &to);
	for (; from < to; from++) {
		size_t at = from * UNIT, some = n - at < UNIT ? n - at : UNIT;
		(muon ? step_by_gradient : store_unit)(u, i, &how, at, some);
	}
}

static void run_update(void *ctx, struct threads *t, unsigned thread)
{
	struct update *u = ctx;

	sum_squares(u, t, thread);
	threads_barrier(t);
	if (!thread)
		find_norm(u);
	threads_barrier(t);
	if (!isfinite(u->norm))
		return;
	for (uint32_t i = 0; i < u->g->n_params; i++) {
		update_param(u, i, t, thread);
		if (u->rule->method == TRAIN_MUON) /* its space is one */
			threads_barrier(t);
	}
}

double train_update_host(struct train *x, const struct train_rule *r,
			 uint64_t step)
{
	struct update u = { .x = x, .g = train_graph_of(x), .rule = r,
			    .step = step };
	size_t units = 0;

	for (uint32_t i = 0; i < u.g->n_params; i++)
		units += units_of(&u.g->param[i]);
	u.square = xcalloc(units, sizeof(*u.square));
	threads_run(train_threads(x), run_update, &u);
	for (uint32_t i = 0; !isfinite(u.norm) && i < u.g->n_params; i++)
		if (u.g->param[i].gradient != TRAIN_NONE)
			memset(train_data(x, u.g->param[i].gradient), 0,
			       count_of(&u.g->param[i]) * sizeof(float));
	free(u.square);
	return u.norm;
}

#define SCALE_MOST 0x1p24

bool train_scale_follow(struct train *x, const struct train_rule *r,
			double norm, struct train_place *p)
{
	bool good = isfinite(norm);

	if (train_graph_of(x)->type != QWEN_W_F16)
		return true;
	p->good_steps = good ? p->good_steps + 1 : 0;
	p->skipped += !good;
	if (!good) {
		p->loss_scale /= 2;
	} else if (p->good_steps == r->grow_after) {
		p->loss_scale = fmin(2 * p->loss_scale, SCALE_MOST);
		p->good_steps = 0;
	}
	train_loss_scale(x, (float)p->loss_scale);
	return good;
}

/* ---- copies ---- */

void train_weights_round(struct train *x)
{
	const struct train_graph *g = train_graph_of(x);

	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];

		if (p->master != p->weight && p->master != TRAIN_NONE)
			qwen_kernels_best()->narrow(
				g->type, train_data(x, p->master),
				count_of(p), train_data(x, p->weight));
	}
	train_changed(x);
}

void train_average_begin(struct train *x)
{
	const struct train_graph *g = train_graph_of(x);

	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		bool wide = p->master != TRAIN_NONE;

		if (p->average != TRAIN_NONE)
			qwen_kernels_best()->widen(
				wide ? QWEN_W_F32 : g->type,
				train_data(x, wide ? p->master : p->weight),
				count_of(p), train_data(x, p->average));
	}
	train_changed(x);
}
