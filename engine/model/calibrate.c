/*
 * engine/model/calibrate.c - matrices as integers that fit what a text brings
 * to them.
 *
 * A layer at a time: the text goes through the model, whose layers before are
 * integers by then, so that each makes up for what those before it got wrong.
 * Memory is needed for the inputs of one layer: of a mixture, of all its experts.
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
	struct moments *v; /* [n]: of what is fitted next */
	size_t n;
};

/* Every thread has some rows of the sums. */
static void inputs_see(void *ctx, const struct qwen_matrix *w, const float *x,
		       uint32_t n, unsigned thread)
{
	const struct calibration *c = ctx;
	const struct qwen_kernels *k = c->m->kernels;
	const unsigned threads = threads_count(c->m->threads);
	const uint32_t cols = w->cols;

	for (size_t i = 0; i < c->n; i++) {
		float *sum = c->v[i].sum;
		if (c->v[i].first != w)
			continue;
		for (size_t r = thread; r < cols; r += threads)
			for (size_t t = 0; t < n; t++)
				k->axpy(x[t * cols + r], x + t * cols + r,
					sum + r * cols + r, cols - (uint32_t)r);
	}
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
struct sharing {
	struct qwen_matrix *of[3];
	int n;
};

static enum qwen_weights wanted_type(const struct calibration *c,
				     const struct qwen_matrix *w)
{
	return c->how->types ? c->how->types[qwen_matrix_number(c->m, w)] :
			       c->how->type;
}

static bool matrices_fit(struct calibration *c, size_t i,
			 const struct sharing *s, struct err *e)
{
	const struct qwen_convert how = { .kernels = c->m->kernels,
					  .threads = c->m->threads,
					  .blocks = &c->m->blocks };
	struct qwen_fit fit;

	if (!qwen_fit_init(&fit, c->v[i].sum, s->of[0]->cols, c->m->threads, e))
		return false;
	bool ok = true;
	for (int k = 0; ok && k < s->n; k++) {
		const struct qwen_matrix from = *s->of[k];
		struct qwen_matrix to = from;
		to.type = wanted_type(c, s->of[k]);
		to.scale = NULL;
		ok = qwen_matrix_fit(&how, &to, &from, &fit, "of a layer", e);
		if (ok)
			*s->of[k] = to;
	}
	qwen_fit_fini(&fit);
	return ok;
}

/* All that the text says of some inputs, and then what they go into. */
static bool inputs_fit(struct calibration *c, const struct sharing *s, size_t n,
		       struct err *e)
{
	c->v = xcalloc(n, sizeof(*c->v));
	for (; c->n < n; c->n++) {
		const struct qwen_matrix *m = s[c->n].of[0];
		c->v[c->n] = (struct moments){
			m, xcalloc((size_t)m->cols * m->cols, sizeof(float))
		};
	}
	bool ok = text_pass(c, e);
	for (size_t i = 0; ok && i < n; i++)
		ok = matrices_fit(c, i, &s[i], e);
	while (c->n)
		free(c->v[--c->n].sum);
	free(c->v);
	c->v = NULL;
	return ok;
}

static bool layer_fit(struct calibration *c, struct qwen_layer *l,
		      struct err *e)
{
	const uint32_t experts = c->m->config.experts.n;
	const size_t n = 2 + 2 * (experts ? experts : 1);
	struct sharing *s = xcalloc(n, sizeof(*s));

	s[0] = (struct sharing){ { &l->q, &l->k, &l->v }, 3 };
	s[1] = (struct sharing){ { &l->o }, 1 };
	s[2] = (struct sharing){ { &l->gate, &l->up }, 2 };
	s[3] = (struct sharing){ { &l->down }, 1 };
	/* What comes to an expert is what the router sends there. */
	for (uint32_t i = 0; i < experts; i++) {
		struct qwen_expert *x = &l->expert[i];
		s[2 + 2 * i] = (struct sharing){ { &x->gate, &x->up }, 2 };
		s[3 + 2 * i] = (struct sharing){ { &x->down }, 1 };
	}
	bool ok = inputs_fit(c, s, n, e);
	free(s);
	return ok;
}

/* The output layer, and the embedding, which it may be, too. */
static bool ends_fit(struct calibration *c, struct err *e)
{
	struct qwen_model *m = c->m;
	const struct sharing head = { { &m->head }, 1 };
	const struct qwen_convert how = { .kernels = m->kernels,
					  .threads = m->threads,
					  .blocks = &m->blocks };
	const struct qwen_matrix embed = m->embed;

	if (!inputs_fit(c, &head, 1, e))
		return false;
	if (m->config.tied) {
		m->embed = m->head;
		return true;
	}
	m->embed.type = wanted_type(c, &m->embed);
	m->embed.scale = NULL;
	return qwen_matrix_convert(&how, &m->embed, &embed,
				   "model.embed_tokens.weight", e);
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

bool qwen_calibration_check(const struct qwen_model *m, size_t n, struct err *e)
{
	if (m->backend != &qwen_cpu)
		return err_set(e, ERR_UNSUPPORTED,
			       "--backend %s sees no inputs "
			       "of products; wanted the processor",
			       m->backend->name);
	return n >= QWEN_CALIBRATION_LEAST ||
	       err_set(e, ERR_INPUT,
		       "a text of %zu tokens says too little of "
		       "what comes; wanted %d at least",
		       n, QWEN_CALIBRATION_LEAST);
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

	if (!qwen_calibration_check(m, how->n, e))
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
