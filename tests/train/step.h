/*
 * train-step - a step of a whole tiny Qwen3, and how far its loss and gradients
 * are from those of double precision (tests/ref/grad.h).  For tests of whoever
 * executes it.
 */
#ifndef T0_TESTS_TRAIN_STEP_H
#define T0_TESTS_TRAIN_STEP_H

#include "base/float.h"
#include "engine/train/train.h"
#include "tests/ref/grad.h"
#include "tests/tap.h"

#define LENGTH 13
#define ROWS   2
#define TOKENS (ROWS * LENGTH)
#define MOST_TENSORS 64 /* tensors */

static uint64_t step_seed = 21;
static uint32_t ids[TOKENS], positions[TOKENS], targets[TOKENS];
static unsigned n_targets;

static inline double random_weight(void)
{
	return (double)(int64_t)(random_next(&step_seed) >> 11) * 0x1p-52 - 1;
}

static inline struct qwen_config config_of(bool tied)
{
	return (struct qwen_config){
		.layers = 2, .hidden = 24, .heads = 4, .kv_heads = tied ? 2 : 1,
		.head_dim = 10, .ffn = 34, .vocab = 67, .max_positions = 64,
		.rope_theta = 1e4, .norm_eps = 1e-6, .tied = tied,
	};
}

static inline void make_batch(void)
{
	for (int t = 0; t < TOKENS; t++) {
		bool begins = t % LENGTH == 0 || t == 5 || t == 20;
		ids[t] = (uint32_t)(random_next(&step_seed) % 67);
		positions[t] = begins ? 0 : positions[t - 1] + 1;
		targets[t] = t == 4 || t > 23 ?
				     TRAIN_IGNORE :
				     (uint32_t)(random_next(&step_seed) % 67);
		n_targets += targets[t] != TRAIN_IGNORE;
	}
}

/* ---- the reference ---- */

struct model {
	struct grad_shape s;
	double *p[MOST_TENSORS];
	size_t n[MOST_TENSORS];
	unsigned n_params;
	const struct train_param *param;
};

/* Matrices with what their adapters add, for as long as a loss takes. */
static inline void merge_adapters(const struct model *m, double **p)
{
	for (unsigned i = 0; i < m->n_params; i++) {
		const struct train_param *of = &m->param[i];

		p[i] = m->p[i];
		if (of->adapter == TRAIN_NONE)
			continue;
		const double *a = m->p[of->adapter], *b = m->p[of->adapter + 1];
		uint32_t rank = m->param[of->adapter].rows;
		p[i] = malloc(m->n[i] * sizeof(double));
		for (size_t k = 0; k < m->n[i]; k++) {
			p[i][k] = m->p[i][k];
			for (uint32_t r = 0; r < rank; r++)
				p[i][k] += b[k / of->cols * rank + r] *
					   a[r * of->cols + k % of->cols];
		}
	}
}

static inline double model_loss(void *ctx)
{
	const struct model *m = ctx;

	double *p[MOST_TENSORS];

	merge_adapters(m, p);
	double loss = grad_model(&m->s, p, ids, positions, targets, TOKENS) /
		      n_targets;
	for (unsigned i = 0; i < m->n_params; i++)
		if (p[i] != m->p[i])
			free(p[i]);
	return loss;
}

/* Random weights of the graph's type: both sides begin with the same. */
static inline void model_new(struct model *m, const struct train_graph *g)
{
	const struct qwen_config *c = &g->config;

	step_seed = 22;
	m->s = (struct grad_shape){
		(int)c->layers, (int)c->hidden, (int)c->heads,
		(int)c->kv_heads, (int)c->head_dim, (int)c->ffn, (int)c->vocab,
		c->rope_theta, c->norm_eps, c->tied,
	};
	m->n_params = g->n_params;
	m->param = g->param;
	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		uint32_t mask = !p->matrix	       ? UINT32_MAX :
				g->type == QWEN_W_BF16 ? 0xffff0000 :
				g->type == QWEN_W_F16  ? 0xffffe000 :
							 UINT32_MAX;

		/* What adapters add is small. */
		double size = i < g->n_tensors ? 1 : .4;

		m->n[i] = (size_t)p->rows * p->cols;
		m->p[i] = malloc(m->n[i] * sizeof(double));
		for (size_t k = 0; k < m->n[i]; k++) {
			double v = p->matrix ?
					   random_weight() * size *
						   sqrt(3. / p->cols) :
					   1 + .3 * random_weight();
			m->p[i][k] = f32_value(f32_bits((float)v) & mask);
		}
	}
}

static inline void model_free(struct model *m)
{
	for (unsigned i = 0; i < m->n_params; i++)
		free(m->p[i]);
}

/* ---- the step ---- */

/* Who runs it; a backend of NULL is the host. */
struct step_by {
	struct threads *threads;
	const struct train_backend *backend;
};

#define SCALE 1024 /* of the loss, in f16 */

/* Gradients without the scale that they were made with. */
static inline void unscale_gradients(struct train *x,
				     const struct train_graph *g)
{
	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		if (p->gradient == TRAIN_NONE)
			continue;
		float *d = train_data(x, p->gradient);
		for (size_t k = 0; k < (size_t)p->rows * p->cols; k++)
			d[k] /= SCALE;
	}
}

/* A step's gradients; NULL is said why. */
static inline struct train *step_run(struct train_graph *g,
				     const struct train_how *how, bool tied,
				     const struct step_by *by, struct model *m)
{
	struct qwen_config c = config_of(tied);
	struct err e = { 0 };
	struct train *x;

	if (!train_qwen3(g, &c, how, &e) ||
	    !(x = train_new(g, by->threads, by->backend, &e))) {
		diag("%s", e.msg);
		return NULL;
	}
	model_new(m, g);
	for (uint32_t i = 0; i < g->n_params; i++) {
		float *to = train_data(x, g->param[i].weight);
		uint16_t *half = train_data(x, g->param[i].weight);
		for (size_t k = 0; k < m->n[i]; k++) {
			float f = (float)m->p[i][k];
			if (g->value[g->param[i].weight].width == 2)
				half[k] = (uint16_t)(
					g->type == QWEN_W_F16 ?
						float_bits(f, 5, 10) :
						f32_bits(f) >> 16);
			else
				to[k] = f;
		}
	}
	memcpy(train_data(x, g->ids), ids, sizeof(ids));
	memcpy(train_data(x, g->position), positions, sizeof(positions));
	memcpy(train_data(x, g->target), targets, sizeof(targets));
	train_scale(x, 1.f / (float)n_targets);
	train_loss_scale(x, how->type == QWEN_W_F16 ? SCALE : 1);
	if (!train_run(x, 0, g->n_ops, &e))
		diag("%s", e.msg);
	if (how->type == QWEN_W_F16)
		unscale_gradients(x, g);
	return x;
}

static inline double loss_of(const struct train *x,
			     const struct train_graph *g)
{
	const float *loss = train_data(x, g->loss);
	double sum = 0;

	for (int t = 0; t < TOKENS; t++)
		sum += loss[t];
	return sum / n_targets;
}

/* How far the gradient of a tensor is from slopes; 0 if it has none. */
static inline double tensor_error(const struct train_graph *g,
				  const struct train *x, struct model *m,
				  uint32_t i)
{
	if (g->param[i].gradient == TRAIN_NONE)
		return 0;
	return grad_error(model_loss, m, m->p[i],
			  train_data(x, g->param[i].gradient), m->n[i],
			  1 + m->n[i] / 60, false);
}

static inline void test_step(const char *name, const struct train_how *how,
			     bool tied, const struct step_by *by,
			     double bound, double loss_bound)
{
	struct train_graph g;
	struct model m;
	struct train *x = step_run(&g, how, tied, by, &m);
	double want = model_loss(&m), got = loss_of(x, &g);
	const char *where = "";
	double worst = 0;

	if (!ok(fabs(got - want) <= loss_bound * want, "%s: the loss", name))
		diag("got %.8f, wanted %.8f", got, want);
	for (uint32_t i = 0; i < g.n_params; i++) {
		double off = tensor_error(&g, x, &m, i);

		where = off > worst ? g.param[i].name : where;
		worst = fmax(worst, off);
	}
	ok(worst <= bound, "%s: gradients of all tensors", name);
	diag("%s: loss off by %.1e, gradients by %.1e, %s", name,
	     fabs(got / want - 1), worst, where);
	model_free(&m);
	train_free(x);
	train_graph_fini(&g);
}

#endif
