/*
 * engine/model/budget.c - types of matrices for so many bits.
 *
 * What a matrix loses alone says where bits help; that losses of several add up
 * is taken for granted, which is near enough to choose by.  Experts of a layer,
 * few of which a text sees enough of, have one type for each of their matrices.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cpu/cpu.h"
#include "engine/model/model.h"

/* Tokens that are looked at, and those of a sequence. */
enum { LOOKED_AT = 512, WINDOW = 256 };

/* In the order of their bits: those of GGUF files, and our own. */
enum { CHOICES = 5 };
static const enum qwen_weights choices[2][CHOICES] = {
	{ QWEN_W_Q3_K, QWEN_W_Q4_0, QWEN_W_Q5_0, QWEN_W_Q6_K, QWEN_W_Q8_0 },
	{ QWEN_W_I3_64, QWEN_W_I3_32, QWEN_W_INT4, QWEN_W_I6_64, QWEN_W_INT8 },
};

/* ---- matrices by number ---- */

/* q, k, v, o, gate, up, down; the last three of all experts, if there are any.
 */
enum { OF_LAYER = 7, OF_FFN = 3 };

uint32_t qwen_matrix_count(const struct qwen_model *m)
{
	return 1 + OF_LAYER * m->config.layers + !m->config.tied;
}

static uint32_t matrices_of(const struct qwen_model *m, uint32_t number)
{
	const uint32_t experts = m->config.experts.n;

	return experts && number && number <= OF_LAYER * m->config.layers &&
			       (number - 1) % OF_LAYER >= OF_LAYER - OF_FFN ?
		       experts :
		       1;
}

/* The i-th of those of a number. */
static struct qwen_matrix *matrix_at(struct qwen_model *m, uint32_t number,
				     uint32_t i)
{
	if (number == 0)
		return &m->embed;
	if (number > OF_LAYER * m->config.layers)
		return &m->head;
	struct qwen_layer *l = &m->layer[(number - 1) / OF_LAYER];
	struct qwen_expert *x = m->config.experts.n ? &l->expert[i] : NULL;
	struct qwen_matrix *const all[OF_LAYER] = {
		&l->q,
		&l->k,
		&l->v,
		&l->o,
		x ? &x->gate : &l->gate,
		x ? &x->up : &l->up,
		x ? &x->down : &l->down,
	};
	return all[(number - 1) % OF_LAYER];
}

uint32_t qwen_matrix_number(const struct qwen_model *m,
			    const struct qwen_matrix *w)
{
	struct qwen_model *of = (struct qwen_model *)m;

	for (uint32_t k = 1; k < qwen_matrix_count(m); k++)
		for (uint32_t i = 0; i < matrices_of(m, k); i++)
			if (matrix_at(of, k, i) == w)
				return k;
	return 0; /* the embedding, or an output layer that is it */
}

/* Are rows of a number whole blocks of a choice? */
static bool can_be(struct qwen_model *m, uint32_t number, enum qwen_weights w)
{
	const uint32_t whole = qwen_is_block(w) ? qwen_layout(w).values :
						  QWEN_GROUP;

	return matrix_at(m, number, 0)->cols % whole == 0;
}

static int least_choice(struct qwen_model *m, const enum qwen_weights *choice,
			uint32_t number)
{
	int k = 0;

	while (k + 1 < CHOICES && !can_be(m, number, choice[k]))
		k++;
	return k;
}

/* ---- what is lost ---- */

struct trial {
	struct qwen_model *m;
	const struct qwen_budget *how;
	const enum qwen_weights *choice; /* [CHOICES] */
	struct qwen_state *st;
	uint32_t window, n; /* tokens of a sequence, and of all */
	float *logits;	    /* [n][vocab] of the model as it is */
	double *total;	    /* [n]: their log totals */
	/* [matrices][CHOICES] */
	double *loss;
};

/* Adds up what the text's predictions diverge; `keep`: has them kept. */
static bool text_try(struct trial *t, bool keep, double *sum, struct err *e)
{
	const uint32_t vocab = t->m->config.vocab;
	struct qwen_token token[WINDOW];

	*sum = 0;
	for (uint32_t at = 0, n; at < t->n; at += n) {
		n = t->n - at < t->window ? t->n - at : t->window;
		for (uint32_t i = 0; i < n; i++)
			token[i] =
				(struct qwen_token){ .id = t->how->ids[at + i],
						     .logits = true };
		qwen_state_truncate(t->st, 0, 0);
		if (!qwen_forward(t->st, token, n, e))
			return false;
		for (uint32_t i = at; i < at + n; i++) {
			const float *v = qwen_logits(t->st, i - at);
			float *as = t->logits + (size_t)i * vocab;
			const double total = qwen_log_total(v, vocab);
			if (keep) {
				memcpy(as, v, vocab * sizeof(*v));
				t->total[i] = total;
			}
			*sum += qwen_divergence(as, t->total[i], v, total,
						vocab);
		}
	}
	return true;
}

/* The matrices of one number as one type, and back. */
static bool matrix_try(struct trial *t, uint32_t number, int k, struct err *e)
{
	struct qwen_model *m = t->m;
	const uint32_t n = matrices_of(m, number);
	struct qwen_matrix *was = xcalloc(n, sizeof(*was));
	const bool both = number == 0 && m->config.tied;
	struct qwen_blocks blocks = { 0 };
	const struct qwen_convert how = { .kernels = m->kernels,
					  .threads = m->threads,
					  .blocks = &blocks };
	uint32_t done = 0;
	bool ok = true;

	for (; ok && done < n; done++) {
		struct qwen_matrix *w = matrix_at(m, number, done), as = *w;

		was[done] = *w;
		as.type = t->choice[k];
		as.scale = NULL;
		ok = qwen_matrix_convert(&how, &as, &was[done], "of a layer",
					 e);
		if (ok)
			*w = as;
	}
	if (ok && both)
		m->head = m->embed;
	ok = ok && text_try(t, false, &t->loss[number * CHOICES + k], e);
	while (done--)
		*matrix_at(m, number, done) = was[done];
	if (both)
		m->head = m->embed;
	free(was);
	qwen_blocks_fini(&blocks);
	return ok;
}

static bool matrices_try(struct trial *t, struct err *e)
{
	double none;
	bool ok = text_try(t, true, &none, e);

	for (uint32_t i = 0; ok && i < qwen_matrix_count(t->m); i++) {
		for (int k = 0; ok && k < CHOICES; k++)
			ok = !can_be(t->m, i, t->choice[k]) ||
			     matrix_try(t, i, k, e);
		if (t->how->progress)
			progress_step(t->how->progress, 1);
	}
	return ok;
}

/* ---- what is chosen ---- */

static double bytes_of(struct qwen_model *m, uint32_t number,
		       enum qwen_weights type)
{
	struct qwen_matrix w = *matrix_at(m, number, 0);

	w.type = type;
	w.scale = NULL;
	return (double)qwen_matrix_bytes(&w) * matrices_of(m, number);
}

/* The step up that helps most for its bytes, of those that are left. */
static bool step_find(const struct trial *t, const int *at, double left,
		      uint32_t *number, int *to)
{
	double best = 0;

	for (uint32_t i = 0; i < qwen_matrix_count(t->m); i++)
		for (int k = at[i] + 1; k < CHOICES; k++) {
			const double *loss = t->loss + i * CHOICES;
			double more = bytes_of(t->m, i, t->choice[k]) -
				      bytes_of(t->m, i, t->choice[at[i]]);
			double helps = (loss[at[i]] - loss[k]) / more;
			if (!can_be(t->m, i, t->choice[k]) || more > left || helps <= best)
				continue;
			best = helps;
			*number = i;
			*to = k;
		}
	return best > 0;
}

static void types_choose(const struct trial *t, double left,
			 enum qwen_weights *types)
{
	const uint32_t n = qwen_matrix_count(t->m);
	int *at = xcalloc(n, sizeof(*at)), to = 0;
	uint32_t i = 0;

	for (i = 0; i < n; i++)
		at[i] = least_choice(t->m, t->choice, i);
	while (step_find(t, at, left, &i, &to)) {
		left -= bytes_of(t->m, i, t->choice[to]) -
			bytes_of(t->m, i, t->choice[at[i]]);
		at[i] = to;
	}
	for (i = 0; i < n; i++)
		types[i] = t->choice[at[i]];
	free(at);
}

/* Bytes that are left where all matrices have the fewest. */
static bool bytes_left(struct qwen_model *m, const enum qwen_weights *choice,
		       double bits, double *left, struct err *e)
{
	double weights = 0, least = 0;

	for (uint32_t i = 0; i < qwen_matrix_count(m); i++) {
		const struct qwen_matrix *w = matrix_at(m, i, 0);
		weights += (double)w->rows * w->cols * matrices_of(m, i);
		least += bytes_of(m, i, choice[least_choice(m, choice, i)]);
	}
	*left = bits / 8 * weights - least;
	return *left > -1 ||
	       err_set(e, ERR_USAGE,
		       "%g bits for a weight; wanted %.3g at least "
		       "for rows of these sizes",
		       bits, 8 * least / weights);
}

bool qwen_budget_spend(struct qwen_model *m, const struct qwen_budget *how,
		       enum qwen_weights *types, struct err *e)
{
	const enum qwen_activations asked = m->activations;
	const uint32_t most = m->config.max_positions;
	struct trial t = { .m = m,
			   .how = how,
			   .choice = choices[how->own],
			   .window = most < WINDOW ? most : WINDOW,
			   .n = how->n < LOOKED_AT ? (uint32_t)how->n :
						     LOOKED_AT };
	const struct qwen_shape shape = { .sequences = 1,
					  .positions = t.window,
					  .max_tokens = t.window,
					  .stop = how->stop };
	double left;

	if (!qwen_calibration_check(m, how->n, e) ||
	    !bytes_left(m, t.choice, how->bits, &left, e))
		return false;
	m->activations = QWEN_AS_F32;
	t.logits = xcalloc((size_t)t.n * m->config.vocab, sizeof(*t.logits));
	t.total = xcalloc(t.n, sizeof(*t.total));
	t.loss = xcalloc((size_t)qwen_matrix_count(m) * CHOICES,
			 sizeof(*t.loss));
	t.st = qwen_state_new(m, &shape, e);
	bool ok = t.st && matrices_try(&t, e);
	if (ok)
		types_choose(&t, left, types);
	qwen_state_free(t.st);
	free(t.logits);
	free(t.total);
	free(t.loss);
	m->activations = asked;
	return ok;
}
