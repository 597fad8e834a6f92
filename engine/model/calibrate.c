/*
 * engine/model/calibrate.c - matrices as integers that fit what a text brings
 * to them.
 *
 * A layer at a time: the text goes through the model, whose layers before are
 * integers by then, so that each makes up for what those before it got wrong.
 * Memory is needed for the inputs of one layer.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/model/model.h"

/* Tokens of a sequence; all of them pass at once. */
enum { WINDOW = 256 };

/* Products of the inputs of some matrices: sums over tokens. */
struct moments {
	const struct qwen_matrix *first; /* of those with this input */
	float *sum; /* [cols][cols], from the diagonal on */
};

struct calibration {
	struct qwen_model *m;
	const struct qwen_calibration *how;
	struct qwen_state *st;
	struct moments v[4]; /* of what is fitted next */
	int n;
};

/* Every thread has some rows of the sums. */
static void inputs_see(void *ctx, const struct qwen_matrix *w, const float *x,
		       uint32_t n, unsigned thread)
{
	const struct calibration *c = ctx;
	const struct qwen_kernels *k = c->m->kernels;
	const unsigned threads = threads_count(c->m->threads);
	const uint32_t cols = w->cols;

	for (int i = 0; i < c->n; i++) {
		float *sum = c->v[i].sum;
		if (c->v[i].first != w)
			continue;
		for (size_t r = thread; r < cols; r += threads)
			for (size_t t = 0; t < n; t++)
				k->axpy(x[t * cols + r], x + t * cols + r,
					sum + r * cols + r, cols - (uint32_t)r);
	}
}

static void moments_add(struct calibration *c, const struct qwen_matrix *first)
{
	c->v[c->n++] = (struct moments){
		first, xcalloc((size_t)first->cols * first->cols, sizeof(float))
	};
}

static bool text_pass(struct calibration *c, struct err *e)
{
	const uint32_t most = c->m->config.max_positions;
	const uint32_t window = most < WINDOW ? most : WINDOW;
	struct qwen_token t[WINDOW];
	bool ok = true;

	for (size_t at = 0, n; ok && at < c->how->n; at += n) {
		n = c->how->n - at < window ? c->how->n - at : window;
		for (size_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){ .id = c->how->ids[at + i],
						    .logits = true };
		qwen_state_truncate(c->st, 0, 0);
		/* What a few tokens bring is not seen. */
		ok = n <= QWEN_FEW || qwen_forward(c->st, t, (uint32_t)n, e);
	}
	return ok;
}

/* The matrices of one input, the first of which it was seen before. */
static bool matrices_fit(struct calibration *c, int i,
			 struct qwen_matrix *const *all, int n, struct err *e)
{
	const struct qwen_convert how = { .kernels = c->m->kernels,
					  .threads = c->m->threads,
					  .blocks = &c->m->blocks };
	struct qwen_fit fit;

	if (!qwen_fit_init(&fit, c->v[i].sum, all[0]->cols, c->m->threads, e))
		return false;
	bool ok = true;
	for (int k = 0; ok && k < n; k++) {
		struct qwen_matrix from = *all[k], to = from;
		to.type = c->how->type;
		to.scale = NULL;
		ok = qwen_matrix_fit(&how, &to, &from, &fit, "of a layer", e);
		if (ok)
			*all[k] = to;
	}
	qwen_fit_fini(&fit);
	return ok;
}

static void moments_drop(struct calibration *c)
{
	while (c->n)
		free(c->v[--c->n].sum);
}

static bool layer_fit(struct calibration *c, struct qwen_layer *l,
		      struct err *e)
{
	struct qwen_matrix *const qkv[] = { &l->q, &l->k, &l->v },
				  *const o[] = { &l->o },
				  *const both[] = { &l->gate, &l->up },
				  *const down[] = { &l->down };

	moments_add(c, &l->q);
	moments_add(c, &l->o);
	moments_add(c, &l->gate);
	moments_add(c, &l->down);
	bool ok = text_pass(c, e) && matrices_fit(c, 0, qkv, 3, e) &&
		  matrices_fit(c, 1, o, 1, e) &&
		  matrices_fit(c, 2, both, 2, e) &&
		  matrices_fit(c, 3, down, 1, e);
	moments_drop(c);
	return ok;
}

/* The output layer, and the embedding, which it may be, too. */
static bool ends_fit(struct calibration *c, struct err *e)
{
	struct qwen_model *m = c->m;
	struct qwen_matrix *const head[] = { &m->head };
	const struct qwen_convert how = { .kernels = m->kernels,
					  .threads = m->threads,
					  .blocks = &m->blocks };
	const struct qwen_matrix embed = m->embed;

	moments_add(c, &m->head);
	bool ok = text_pass(c, e) && matrices_fit(c, 0, head, 1, e);
	moments_drop(c);
	if (ok && m->config.tied) {
		m->embed = m->head;
	} else if (ok) {
		m->embed.type = c->how->type;
		ok = qwen_matrix_convert(&how, &m->embed, &embed,
					 "model.embed_tokens.weight", e);
	}
	return ok;
}

static bool layers_fit(struct calibration *c, struct err *e)
{
	bool ok = true;

	for (uint32_t l = 0; ok && l < c->m->config.layers; l++) {
		ok = layer_fit(c, &c->m->layer[l], e) ||
		     err_wrap(e, "layer %u", l);
		if (c->how->progress)
			progress_step(c->how->progress, 1);
	}
	return ok && ends_fit(c, e);
}

static bool can_calibrate(const struct qwen_model *m,
			  const struct qwen_calibration *how, struct err *e)
{
	if (m->backend != &qwen_cpu)
		return err_set(e, ERR_UNSUPPORTED,
			       "--backend %s sees no inputs "
			       "of products; wanted the processor",
			       m->backend->name);
	if (m->config.experts.n)
		return err_set(e, ERR_UNSUPPORTED,
			       "a mixture of experts is not "
			       "calibrated; wanted a dense model");
	return how->n >= QWEN_CALIBRATION_LEAST ||
	       err_set(e, ERR_INPUT,
		       "a text of %zu tokens says too little of "
		       "what comes; wanted %d at least",
		       how->n, QWEN_CALIBRATION_LEAST);
}

bool qwen_model_calibrate(struct qwen_model *m,
			  const struct qwen_calibration *how, struct err *e)
{
	const enum qwen_activations asked = m->activations;
	struct calibration c = { .m = m, .how = how };
	const struct qwen_watch watch = { inputs_see, &c };
	const uint32_t most = m->config.max_positions;
	const uint32_t window = most < WINDOW ? most : WINDOW;
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = window,
					  .max_tokens = window,
					  .stop = how->stop };

	if (!can_calibrate(m, how, e))
		return false;
	m->activations = QWEN_AS_F32;
	m->watch = &watch;
	c.st = qwen_state_new(m, &shape, e);
	bool ok = c.st && layers_fit(&c, e);
	qwen_state_free(c.st);
	m->watch = NULL;
	m->activations = asked;
	return ok;
}
