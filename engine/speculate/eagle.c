/*
 * engine/speculate/eagle.c - a layer that goes on with the model's own hidden
 * states.
 *
 * Entry i of its cache is made of what enters three of the model's layers at
 * position i and of the token behind it; what comes out says the token behind
 * that one, and stands for the model's hidden states of the next entry where
 * these are not there yet.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/speculate/heads_int.h"

/* Entries that are made at once. */
#define TOGETHER QWEN_FEW

/* ---- the folder ---- */

static bool real_read(const json_t *j, const char *key, double otherwise,
		      double *out, struct err *e)
{
	const json_t *v = json_object_get(j, key);

	*out = v ? json_number_value(v) : otherwise;
	return *out > 0 ||
	       err_set(e, ERR_INPUT, "\"%s\": wanted a number above 0", key);
}

static bool config_take(struct qwen_eagle *h, const json_t *j, struct err *e)
{
	const struct qwen_config *m = &h->m->config;
	const json_t *scaling = json_object_get(j, "rope_scaling");
	struct qwen_config *c = &h->config;

	if (scaling && !json_is_null(scaling))
		return err_set(e, ERR_UNSUPPORTED,
			       "\"rope_scaling\": wanted none");
	if (!heads_count_read(j, "hidden_size", 1, 1 << 20, HEADS_NEED,
			      &c->hidden, e) ||
	    !heads_count_read(j, "intermediate_size", 1, 1 << 20, HEADS_NEED,
			      &c->ffn, e) ||
	    !heads_count_read(j, "num_attention_heads", 1, 1024, HEADS_NEED,
			      &c->heads, e) ||
	    !heads_count_read(j, "num_key_value_heads", 1, 1024, c->heads,
			      &c->kv_heads, e) ||
	    !heads_count_read(j, "head_dim", 1, 1024, c->hidden / c->heads,
			      &c->head_dim, e) ||
	    !heads_count_read(j, "vocab_size", 1, UINT32_MAX - 1, HEADS_NEED,
			      &c->vocab, e) ||
	    !heads_count_read(j, "draft_vocab_size", 1, c->vocab, c->vocab,
			      &h->vocab, e) ||
	    !real_read(j, "rms_norm_eps", 1e-6, &c->norm_eps, e) ||
	    !real_read(j, "rope_theta", 1e4, &c->rope_theta, e))
		return false;
	if (c->hidden != m->hidden || c->vocab != m->vocab)
		return err_set(e, ERR_INPUT,
			       "hidden size %u and %u tokens; the model has %u "
			       "and %u: wanted its own heads",
			       c->hidden, c->vocab, m->hidden, m->vocab);
	return (c->heads % c->kv_heads == 0 && c->head_dim % 2 == 0) ||
	       err_set(e, ERR_INPUT,
		       "%u heads of %u with %u of keys; wanted a multiple, and "
		       "an even head_dim",
		       c->heads, c->head_dim, c->kv_heads);
}

static bool config_read(struct qwen_eagle *h, const char *dir, struct err *e)
{
	json_t *j = heads_config_open(dir, e);
	const bool ok = j && config_take(h, j, e);

	if (j && !ok)
		err_wrap(e, "%s/config.json", dir);
	json_decref(j);
	return ok;
}

/* Which token of the model each of the draft's is. */
static bool vocabulary_find(struct qwen_eagle *h, struct err *e)
{
	const uint64_t mine = h->vocab, all = h->config.vocab;
	const struct qwen_tensor *d2t, *t2d;

	if (mine == all)
		return true;
	d2t = qwen_tensor_require(&h->tensors, "d2t", 1, &mine, e);
	t2d = d2t ? qwen_tensor_require(&h->tensors, "t2d", 1, &all, e) : NULL;
	if (!t2d)
		return false;
	if (d2t->dtype != QWEN_I64 || t2d->dtype != QWEN_BOOL)
		return err_set(e, ERR_INPUT,
			       "%s: d2t is %s and t2d %s; wanted I64 and BOOL",
			       d2t->file, qwen_dtype_name(d2t->dtype),
			       qwen_dtype_name(t2d->dtype));
	h->token = arena_alloc(&h->mem, mine * sizeof(*h->token));
	for (uint32_t i = 0; i < mine; i++) {
		int64_t far;
		memcpy(&far, (const char *)d2t->data + 8 * (size_t)i, 8);
		if (far < -(int64_t)i || far >= (int64_t)(all - i) ||
		    !((const uint8_t *)t2d->data)[i + far])
			return err_set(e, ERR_INPUT,
				       "%s: d2t of token %u is %lld; wanted "
				       "one of the model's that t2d has",
				       d2t->file, i, (long long)far);
		h->token[i] = (uint32_t)(i + far);
	}
	return true;
}

static bool parts_find(struct qwen_eagle *h, struct err *e)
{
	const struct qwen_config *c = &h->config;
	const uint32_t q = c->heads * c->head_dim, n = c->hidden;
	const uint32_t kv = c->kv_heads * c->head_dim;
	const struct qwen_kernels *k = h->m->kernels;
	const struct {
		const char *name;
		uint32_t rows, cols;
		struct qwen_matrix *out;
	} matrix[] = {
		{ "fc.weight", n, 3 * n, &h->fc },
		{ "midlayer.self_attn.q_proj.weight", q, 2 * n, &h->q },
		{ "midlayer.self_attn.k_proj.weight", kv, 2 * n, &h->k },
		{ "midlayer.self_attn.v_proj.weight", kv, 2 * n, &h->v },
		{ "midlayer.self_attn.o_proj.weight", n, q, &h->o },
		{ "midlayer.mlp.gate_proj.weight", c->ffn, n, &h->gate },
		{ "midlayer.mlp.up_proj.weight", c->ffn, n, &h->up },
		{ "midlayer.mlp.down_proj.weight", n, c->ffn, &h->down },
		{ "lm_head.weight", h->vocab, n, &h->out },
	};
	const struct {
		const char *name;
		float **out;
	} norm[] = {
		{ "midlayer.input_layernorm.weight", &h->embed_norm },
		{ "midlayer.hidden_norm.weight", &h->hidden_norm },
		{ "midlayer.post_attention_layernorm.weight", &h->ffn_norm },
		{ "norm.weight", &h->norm },
	};

	for (size_t i = 0; i < ARRAY_SIZE(matrix); i++)
		if (!heads_matrix_find(&h->tensors, k, matrix[i].name,
				       matrix[i].rows, matrix[i].cols,
				       matrix[i].out, e))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(norm); i++)
		if (!(*norm[i].out = heads_row_find(&h->tensors, k, &h->mem,
						    norm[i].name, n, e)))
			return false;
	h->embed = h->m->embed;
	return (!qwen_tensor_find(&h->tensors, "embed_tokens.weight") ||
		heads_matrix_find(&h->tensors, k, "embed_tokens.weight",
				  c->vocab, n, &h->embed, e)) &&
	       vocabulary_find(h, e);
}

static void buffers_init(struct qwen_eagle *h)
{
	const struct qwen_config *c = &h->config;
	const size_t all = h->positions, half = c->head_dim / 2;
	const size_t q = (size_t)c->heads * c->head_dim;
	const size_t kv = (size_t)c->kv_heads * c->head_dim;
	const struct {
		float **out;
		size_t n;
	} buffer[] = {
		{ &h->x, TOGETHER * c->hidden },
		{ &h->h, (size_t)TOGETHER * 2 * c->hidden },
		{ &h->qs, TOGETHER * q },
		{ &h->as, TOGETHER * q },
		{ &h->gates, TOGETHER * c->ffn },
		{ &h->ups, TOGETHER * c->ffn },
		{ &h->keys, all * kv },
		{ &h->values, all * kv },
		{ &h->score, all },
		{ &h->cosine, all * half },
		{ &h->sine, all * half },
		{ &h->logits, h->vocab },
	};

	for (size_t i = 0; i < ARRAY_SIZE(buffer); i++)
		*buffer[i].out = xcalloc(buffer[i].n, sizeof(float));
	qwen_angles(c, 0, h->positions, h->cosine, h->sine);
}

void qwen_eagle_taps(const struct qwen_config *c, uint32_t tap[3])
{
	const uint32_t n = c->layers;

	tap[0] = n < 2 ? n : 2;
	tap[1] = n / 2;
	tap[2] = n < 3 ? 0 : n - 3;
}

bool qwen_eagle_open(struct qwen_eagle *h, const char *dir,
		     const struct qwen_model *m, uint32_t positions,
		     struct err *e)
{
	*h = (struct qwen_eagle){ .m = m, .positions = positions };
	qwen_eagle_taps(&m->config, h->tap);
	if (config_read(h, dir, e) && qwen_tensors_open(&h->tensors, dir, e) &&
	    parts_find(h, e)) {
		buffers_init(h);
		return true;
	}
	qwen_eagle_close(h);
	return false;
}

void qwen_eagle_close(struct qwen_eagle *h)
{
	float *const buffer[] = { h->x,	    h->h,      h->qs,	h->as,
				  h->gates, h->ups,    h->keys, h->values,
				  h->score, h->cosine, h->sine, h->logits };

	for (size_t i = 0; i < ARRAY_SIZE(buffer); i++)
		free(buffer[i]);
	qwen_tensors_close(&h->tensors);
	arena_fini(&h->mem);
	*h = (struct qwen_eagle){ 0 };
}

/* ---- a layer ---- */

struct product {
	const struct qwen_kernels *k;
	const struct qwen_matrix *w;
	const float *x;
	float *y;
	uint32_t n;
	bool add;
};

static void run_product(void *ctx, struct threads *t, unsigned thread)
{
	const struct product *p = ctx;
	size_t from, to;

	threads_part(t, thread, p->w->rows, 16, &from, &to);
	p->k->product(p->w, (uint32_t)from, (uint32_t)to, p->x, p->w->cols,
		      p->n, p->y, p->w->rows, p->add);
}

/* y [n][rows] = W x, or with `add` += */
static void multiply_rows(const struct qwen_eagle *h,
			  const struct qwen_matrix *w, const float *x,
			  uint32_t n, float *y, bool add)
{
	struct product p = { h->m->kernels, w, x, y, n, add };

	threads_run(h->m->threads, run_product, &p);
}

static void norm_row(const struct qwen_eagle *h, const float *x,
		     const float *norm, float *y)
{
	h->m->kernels->rms_norm(x, norm, h->config.hidden,
				(float)h->config.norm_eps, y);
}

/* One query of a head over the entries up to `last`. */
static void attend_head(const struct qwen_eagle *h, const float *q,
			uint32_t last, uint32_t kv, float *y)
{
	const struct qwen_kernels *k = h->m->kernels;
	const uint32_t d = h->config.head_dim;
	const size_t wide = (size_t)h->config.kv_heads * d;

	for (uint32_t p = h->first; p <= last; p++)
		h->score[p] =
			k->dot(q, h->keys + p * wide + (size_t)kv * d, d) *
			(float)(1 / sqrt(d));
	k->softmax(h->score + h->first, last + 1 - h->first);
	memset(y, 0, d * sizeof(*y));
	for (uint32_t p = h->first; p <= last; p++)
		k->axpy(h->score[p], h->values + p * wide + (size_t)kv * d, y,
			d);
}

static void attend_entries(struct qwen_eagle *h, uint32_t from, uint32_t n)
{
	const struct qwen_config *c = &h->config;
	const struct qwen_kernels *k = h->m->kernels;
	const uint32_t d = c->head_dim, per = c->heads / c->kv_heads;

	for (uint32_t i = 0; i < n; i++) {
		const size_t angle = (size_t)(from + i) * (d / 2);
		float *keys = h->keys + (size_t)(from + i) * c->kv_heads * d;
		float *q = h->qs + (size_t)i * c->heads * d;
		float *a = h->as + (size_t)i * c->heads * d;

		for (uint32_t j = 0; j < c->kv_heads; j++)
			k->rope(keys + (size_t)j * d, h->cosine + angle,
				h->sine + angle, d);
		for (uint32_t j = 0; j < c->heads; j++) {
			k->rope(q + (size_t)j * d, h->cosine + angle,
				h->sine + angle, d);
			attend_head(h, q + (size_t)j * d, from + i, j / per,
				    a + (size_t)j * d);
		}
	}
}

/* h->x [n][hidden] through the layer, as entries from .. */
static void run_layer(struct qwen_eagle *h, const uint32_t *id, uint32_t from,
		      uint32_t n)
{
	const struct qwen_config *c = &h->config;
	const size_t kv = (size_t)c->kv_heads * c->head_dim;

	for (uint32_t i = 0; i < n; i++) {
		float *both = h->h + (size_t)i * 2 * c->hidden;
		qwen_matrix_row(h->m->kernels, &h->embed, id[i], both);
		norm_row(h, both, h->embed_norm, both);
		norm_row(h, h->x + (size_t)i * c->hidden, h->hidden_norm,
			 both + c->hidden);
	}
	multiply_rows(h, &h->q, h->h, n, h->qs, false);
	multiply_rows(h, &h->k, h->h, n, h->keys + from * kv, false);
	multiply_rows(h, &h->v, h->h, n, h->values + from * kv, false);
	attend_entries(h, from, n);
	multiply_rows(h, &h->o, h->as, n, h->x, true);
	for (uint32_t i = 0; i < n; i++)
		norm_row(h, h->x + (size_t)i * c->hidden, h->ffn_norm,
			 h->h + (size_t)i * c->hidden);
	multiply_rows(h, &h->gate, h->h, n, h->gates, false);
	multiply_rows(h, &h->up, h->h, n, h->ups, false);
	h->m->kernels->swiglu(h->gates, h->ups, n * c->ffn, h->gates);
	multiply_rows(h, &h->down, h->gates, n, h->x, true);
}

const float *qwen_eagle_read(struct qwen_eagle *h, const float *hidden,
			     const uint32_t *id, uint32_t from, uint32_t n)
{
	const size_t wide = h->config.hidden;
	uint32_t some = 0;

	for (uint32_t at = 0; at < n; at += some) {
		some = n - at < TOGETHER ? n - at : TOGETHER;
		multiply_rows(h, &h->fc, hidden + at * 3 * wide, some, h->x,
			      false);
		run_layer(h, id + at, from + at, some);
	}
	memmove(h->x, h->x + (some - 1) * wide, wide * sizeof(*h->x));
	return h->x;
}

void qwen_eagle_guess(struct qwen_eagle *h, uint32_t id, uint32_t at)
{
	run_layer(h, &id, at, 1);
}

uint32_t qwen_eagle_say(struct qwen_eagle *h)
{
	uint32_t id = 0;

	norm_row(h, h->x, h->norm, h->h);
	multiply_rows(h, &h->out, h->h, 1, h->logits, false);
	const float top = h->m->kernels->largest(h->logits, h->vocab);
	while (id + 1 < h->vocab && h->logits[id] != top)
		id++;
	return h->token ? h->token[id] : id;
}

/* ---- the proposer ---- */

struct eagle {
	struct qwen_proposer proposer;
	const struct qwen_state *state;
	uint32_t sequence;
	struct qwen_eagle heads;
	struct qwen_ids held; /* entry i is of its tokens 0 .. i + 1 */
};

static void eagle_begin(struct qwen_proposer *p, uint32_t from)
{
	struct eagle *d = (struct eagle *)p;

	d->heads.first = from;
	d->held.n = 0;
}

/* Entries of all of the text; false: there are none, or no room. */
static bool follow_text(struct eagle *d, const struct qwen_ids *text)
{
	size_t same = 0;

	if (text->n < d->heads.first + 2 || text->n > d->heads.positions ||
	    qwen_state_length(d->state, d->sequence) + 1 < text->n)
		return false;
	/* The last one again: what comes out of it is wanted. */
	while (same < d->held.n && same + 1 < text->n &&
	       d->held.v[same] == text->v[same])
		same++;
	const uint32_t from = same > d->heads.first ? (uint32_t)same - 1 :
						      d->heads.first;
	qwen_eagle_read(&d->heads, qwen_kept(d->state, d->sequence, from),
			text->v + from + 1, from, (uint32_t)text->n - 1 - from);
	d->held.n = same;
	for (size_t i = same; i < text->n; i++)
		qwen_ids_add(&d->held, text->v[i]);
	return true;
}

static bool eagle_propose(struct qwen_proposer *p, const struct qwen_ids *text,
			  uint32_t k, struct qwen_proposal *out, struct err *e)
{
	struct eagle *d = (struct eagle *)p;
	const uint32_t n = (uint32_t)text->n;

	(void)e;
	if (!follow_text(d, text))
		return true;
	for (;;) {
		out->id[out->n++] = qwen_eagle_say(&d->heads);
		if (out->n == k || n - 1 + out->n > d->heads.positions)
			return true;
		qwen_eagle_guess(&d->heads, out->id[out->n - 1],
				 n - 2 + out->n);
	}
}

static void eagle_free(struct qwen_proposer *p)
{
	struct eagle *d = (struct eagle *)p;

	qwen_eagle_close(&d->heads);
	qwen_ids_fini(&d->held);
	free(d);
}

struct qwen_proposer *
qwen_eagle_new(const char *dir, const struct qwen_model *m, uint32_t positions,
	       struct qwen_state *state, uint32_t sequence, struct err *e)
{
	struct eagle *d = xcalloc(1, sizeof(*d));

	d->proposer = (struct qwen_proposer){ "eagle", 1, eagle_begin,
					      eagle_propose, eagle_free };
	d->state = state;
	d->sequence = sequence;
	if (qwen_eagle_open(&d->heads, dir, m, positions, e) &&
	    qwen_state_tap(state, d->heads.tap, 3, e))
		return &d->proposer;
	eagle_free(&d->proposer);
	return NULL;
}
