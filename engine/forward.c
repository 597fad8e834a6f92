#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cache.h"

/* What one thread needs for itself in attention. */
struct scratch {
	float *score; /* [heads per kv head][positions] */
	float *row;   /* [head_dim]: a key or a value as f32 */
};

struct qwen_state {
	const struct qwen_model *m;
	struct qwen_shape shape;
	struct qwen_cache cache;
	uint32_t *length; /* [sequences] */
	float *cosine, *sine; /* [positions][head_dim / 2] */
	struct arena mem;
	struct scratch *scratch; /* [threads] */
	/* Of one pass; [max_tokens] rows each. */
	const struct qwen_token *token;
	uint32_t n;
	uint32_t *position;
	float *x;	       /* [hidden]: the residual stream */
	float *h;	       /* [hidden]: normalized */
	float *q, *k, *v;      /* [heads][head_dim], [kv_heads][head_dim] */
	float *a;	       /* [heads][head_dim]: attention's result */
	float *o;	       /* [hidden]: what is added to x */
	float *gate, *up;      /* [ffn] */
	struct qwen_group *xq; /* a product's input for integer weights */
	float *logits;	       /* [wanted][vocab] */
	uint32_t *logits_at;   /* token to row of logits, or NONE */
	uint32_t *logits_of;   /* the reverse */
	uint32_t n_logits, cap_logits;
};
#define NONE UINT32_MAX

static uint32_t largest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static float *floats(struct qwen_state *s, size_t a, size_t b)
{
	return arena_alloc(&s->mem, a * b * sizeof(float));
}

static void buffers_init(struct qwen_state *s)
{
	const struct qwen_config *c = &s->m->config;
	size_t n = s->shape.max_tokens, threads;
	uint32_t widest = largest(c->ffn, largest(c->hidden,
						  c->heads * c->head_dim));

	s->x = floats(s, n, c->hidden);
	s->h = floats(s, n, c->hidden);
	s->o = floats(s, n, c->hidden);
	s->q = floats(s, n, (size_t)c->heads * c->head_dim);
	s->a = floats(s, n, (size_t)c->heads * c->head_dim);
	s->k = floats(s, n, (size_t)c->kv_heads * c->head_dim);
	s->v = floats(s, n, (size_t)c->kv_heads * c->head_dim);
	s->gate = floats(s, n, c->ffn);
	s->up = floats(s, n, c->ffn);
	s->xq = arena_alloc(&s->mem, n * (widest / QWEN_GROUP + 1) *
					     sizeof(*s->xq));
	s->position = arena_alloc(&s->mem, n * sizeof(*s->position));
	s->logits_at = arena_alloc(&s->mem, n * sizeof(*s->logits_at));
	s->logits_of = arena_alloc(&s->mem, n * sizeof(*s->logits_of));
	s->length = arena_alloc(&s->mem, s->shape.sequences *
						 sizeof(*s->length));
	threads = threads_count(s->m->threads);
	s->scratch = arena_alloc(&s->mem, threads * sizeof(*s->scratch));
	for (size_t t = 0; t < threads; t++) {
		s->scratch[t].score = floats(s, c->heads / c->kv_heads,
					     s->shape.positions);
		s->scratch[t].row = floats(s, 1, c->head_dim);
	}
}

/* Angles in double: positions times small frequencies lose bits in f32. */
static void angles_init(struct qwen_state *s)
{
	const struct qwen_config *c = &s->m->config;
	uint32_t half = c->head_dim / 2;

	s->cosine = floats(s, s->shape.positions, half);
	s->sine = floats(s, s->shape.positions, half);
	for (uint32_t i = 0; i < half; i++) {
		double step = pow(c->rope_theta, -2.0 * i / c->head_dim);
		for (uint32_t p = 0; p < s->shape.positions; p++) {
			s->cosine[(size_t)p * half + i] = (float)cos(p * step);
			s->sine[(size_t)p * half + i] = (float)sin(p * step);
		}
	}
}

struct qwen_state *qwen_state_new(const struct qwen_model *m,
				  const struct qwen_shape *shape,
				  struct err *e)
{
	struct qwen_state *s;

	if (!shape->sequences || !shape->positions || !shape->max_tokens ||
	    shape->positions > m->config.max_positions) {
		err_set(e, ERR_USAGE, "%u sequences of %u positions, %u tokens "
			"at once: wanted at least 1 of each, and at most %u "
			"positions for this model", shape->sequences,
			shape->positions, shape->max_tokens,
			m->config.max_positions);
		return NULL;
	}
	s = xcalloc(1, sizeof(*s));
	s->m = m;
	s->shape = *shape;
	if (!qwen_cache_init(&s->cache, m, shape, e)) {
		free(s);
		return NULL;
	}
	buffers_init(s);
	angles_init(s);
	return s;
}

void qwen_state_free(struct qwen_state *s)
{
	if (!s)
		return;
	qwen_cache_fini(&s->cache);
	free(s->logits);
	arena_fini(&s->mem);
	free(s);
}

uint64_t qwen_state_bytes(const struct qwen_state *s)
{
	return s->cache.size_bytes;
}

uint32_t qwen_state_length(const struct qwen_state *s, uint32_t sequence)
{
	return sequence < s->shape.sequences ? s->length[sequence] : 0;
}

void qwen_state_cut(struct qwen_state *s, uint32_t sequence, uint32_t n)
{
	if (sequence < s->shape.sequences && n < s->length[sequence])
		s->length[sequence] = n;
}

/* ---- one pass ---- */

static bool tokens_check(const struct qwen_state *s, struct err *e)
{
	const struct qwen_config *c = &s->m->config;

	if (s->n > s->shape.max_tokens)
		return err_set(e, ERR_USAGE, "%u tokens in one pass; at most "
			       "%u fit", s->n, s->shape.max_tokens);
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->token[i].id >= c->vocab)
			return err_set(e, ERR_USAGE, "token %u has id %u; the "
				       "vocabulary has %u", i, s->token[i].id,
				       c->vocab);
		if (s->token[i].sequence >= s->shape.sequences)
			return err_set(e, ERR_USAGE, "token %u is of sequence "
				       "%u; there are %u", i,
				       s->token[i].sequence,
				       s->shape.sequences);
	}
	return true;
}

/* Gives each token its position; nothing changes if one has no room. */
static bool positions_set(struct qwen_state *s, struct err *e)
{
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		uint32_t *length = &s->length[s->token[i].sequence];
		if (*length == s->shape.positions)
			break;
		s->position[i] = (*length)++;
	}
	if (i == s->n)
		return true;
	err_set(e, ERR_USAGE, "sequence %u is full: its context has %u "
		"positions", s->token[i].sequence, s->shape.positions);
	while (i-- > 0)
		s->length[s->token[i].sequence]--;
	return false;
}

static void logits_init(struct qwen_state *s)
{
	s->n_logits = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		s->logits_at[i] = s->token[i].logits ? s->n_logits : NONE;
		if (s->token[i].logits)
			s->logits_of[s->n_logits++] = i;
	}
	if (s->n_logits > s->cap_logits) {
		s->cap_logits = s->n_logits;
		free(s->logits);
		s->logits = xcalloc((size_t)s->cap_logits * s->m->config.vocab,
				    sizeof(*s->logits));
	}
}

/* One of several products of the same input. */
struct out {
	const struct qwen_matrix *w;
	float *y;
};

static bool any_integer(const struct out *out, int n_out)
{
	for (int i = 0; i < n_out; i++)
		if (out[i].w->type >= QWEN_W_INT8)
			return true;
	return false;
}

/*
 * y = W x for n tokens, the rows of each matrix split over the threads.  Ends
 * in a barrier.
 */
static void products(struct qwen_state *s, struct threads *t,
		     unsigned thread, const float *x, uint32_t n,
		     const struct out *out, int n_out)
{
	const struct qwen_kernels *k = s->m->kernels;
	uint32_t cols = out[0].w->cols, groups = cols / QWEN_GROUP;
	size_t from, to;

	if (any_integer(out, n_out)) {
		threads_part(t, thread, n, 1, &from, &to);
		for (size_t i = from; i < to; i++)
			k->quantize(x + i * cols, cols, s->xq + i * groups);
		threads_barrier(t);
	}
	for (int i = 0; i < n_out; i++) {
		const struct qwen_matrix *w = out[i].w;
		threads_part(t, thread, w->rows, 16, &from, &to);
		if (w->type >= QWEN_W_INT8)
			k->product_int(w, (uint32_t)from, (uint32_t)to, s->xq,
				       n, out[i].y, w->rows);
		else
			k->product(w, (uint32_t)from, (uint32_t)to, x, cols, n,
				   out[i].y, w->rows);
	}
	threads_barrier(t);
}

/* h = norm(x) for every token; ends in a barrier. */
static void normalize(struct qwen_state *s, struct threads *t,
		      unsigned thread, const float *w)
{
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(t, thread, s->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		s->m->kernels->rms_norm(s->x + i * c->hidden, w, c->hidden,
					(float)c->norm_eps,
					s->h + i * c->hidden);
	threads_barrier(t);
}

/* x += o for every token; ends in a barrier. */
static void add(struct qwen_state *s, struct threads *t, unsigned thread)
{
	size_t from, to;

	threads_part(t, thread, (size_t)s->n * s->m->config.hidden, 64,
			  &from, &to);
	for (size_t i = from; i < to; i++)
		s->x[i] += s->o[i];
	threads_barrier(t);
}

static void head_turn(struct qwen_state *s, float *x, const float *norm,
		      uint32_t position)
{
	const struct qwen_config *c = &s->m->config;
	size_t at = (size_t)position * (c->head_dim / 2);

	s->m->kernels->rms_norm(x, norm, c->head_dim, (float)c->norm_eps, x);
	s->m->kernels->rope(x, s->cosine + at, s->sine + at, c->head_dim);
}

/* Norms and turns queries and keys, and fills the cache. */
static void heads_turn(struct qwen_state *s, struct threads *t,
		       unsigned thread, uint32_t layer)
{
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	uint32_t heads = c->heads + c->kv_heads, d = c->head_dim;
	size_t from, to;

	threads_part(t, thread, (size_t)s->n * heads, 1, &from, &to);
	for (size_t i = from; i < to; i++) {
		uint32_t n = (uint32_t)(i / heads), h = (uint32_t)(i % heads);
		if (h < c->heads) {
			head_turn(s, s->q + ((size_t)n * c->heads + h) * d,
				  l->q_norm, s->position[n]);
			continue;
		}
		h -= c->heads;
		size_t row = ((size_t)n * c->kv_heads + h) * d;
		size_t at = qwen_cache_at(&s->cache, layer,
					  s->token[n].sequence, h,
					  s->position[n]);
		head_turn(s, s->k + row, l->k_norm, s->position[n]);
		qwen_cache_put(&s->cache, s->cache.key, at, s->k + row);
		qwen_cache_put(&s->cache, s->cache.value, at, s->v + row);
	}
	threads_barrier(t);
}

/* The query heads of one key-value head, for one token. */
static void attend(struct qwen_state *s, const struct scratch *x,
		   uint32_t layer, uint32_t n, uint32_t kv)
{
	const struct qwen_config *c = &s->m->config;
	const struct qwen_kernels *k = s->m->kernels;
	uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	uint32_t length = s->position[n] + 1;
	size_t at = qwen_cache_at(&s->cache, layer, s->token[n].sequence, kv,
				  0);
	float *q = s->q + ((size_t)n * c->heads + kv * per) * d;
	float *a = s->a + ((size_t)n * c->heads + kv * per) * d;
	float scale = (float)(1 / sqrt(d));

	for (uint32_t p = 0; p < length; p++) {
		qwen_cache_get(&s->cache, s->cache.key, at + p, x->row);
		for (uint32_t h = 0; h < per; h++)
			x->score[(size_t)h * length + p] =
				scale * k->dot(q + h * d, x->row, d);
	}
	for (uint32_t h = 0; h < per; h++)
		k->softmax(x->score + (size_t)h * length, length);
	memset(a, 0, (size_t)per * d * sizeof(*a));
	for (uint32_t p = 0; p < length; p++) {
		qwen_cache_get(&s->cache, s->cache.value, at + p, x->row);
		for (uint32_t h = 0; h < per; h++)
			k->axpy(x->score[(size_t)h * length + p], x->row,
				a + h * d, d);
	}
}

static void attention(struct qwen_state *s, struct threads *t,
		      unsigned thread, uint32_t layer)
{
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	unsigned threads = threads_count(t);
	const struct out qkv[] = { { &l->q, s->q }, { &l->k, s->k },
				   { &l->v, s->v } };

	normalize(s, t, thread, l->attn_norm);
	products(s, t, thread, s->h, s->n, qkv, 3);
	heads_turn(s, t, thread, layer);
	/* Dealt out in turn: later tokens of a prompt have more to look at. */
	for (size_t i = thread; i < (size_t)s->n * c->kv_heads; i += threads)
		attend(s, &s->scratch[thread], layer,
		       (uint32_t)(i / c->kv_heads), (uint32_t)(i % c->kv_heads));
	threads_barrier(t);
	products(s, t, thread, s->a, s->n, &(struct out){ &l->o, s->o }, 1);
	add(s, t, thread);
}

static void feed_forward(struct qwen_state *s, struct threads *t,
			 unsigned thread, uint32_t layer)
{
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct out both[] = { { &l->gate, s->gate }, { &l->up, s->up } };
	size_t from, to;

	normalize(s, t, thread, l->ffn_norm);
	products(s, t, thread, s->h, s->n, both, 2);
	threads_part(t, thread, (size_t)s->n * s->m->config.ffn, 64, &from,
			  &to);
	s->m->kernels->swiglu(s->gate + from, s->up + from,
			      (uint32_t)(to - from), s->gate + from);
	threads_barrier(t);
	products(s, t, thread, s->gate, s->n, &(struct out){ &l->down, s->o },
		 1);
	add(s, t, thread);
}

/* Only the tokens whose logits are wanted, gathered into h. */
static void last(struct qwen_state *s, struct threads *t, unsigned thread)
{
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(t, thread, s->n_logits, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		s->m->kernels->rms_norm(s->x + (size_t)s->logits_of[i] *
							c->hidden,
					s->m->norm, c->hidden,
					(float)c->norm_eps,
					s->h + i * c->hidden);
	threads_barrier(t);
	if (s->n_logits)
		products(s, t, thread, s->h, s->n_logits,
			 &(struct out){ &s->m->head, s->logits }, 1);
}

static void pass(void *ctx, struct threads *t, unsigned thread)
{
	struct qwen_state *s = ctx;
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(t, thread, s->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		qwen_matrix_row(s->m->kernels, &s->m->embed, s->token[i].id,
				s->x + i * c->hidden);
	threads_barrier(t);
	for (uint32_t l = 0; l < c->layers; l++) {
		attention(s, t, thread, l);
		feed_forward(s, t, thread, l);
	}
	last(s, t, thread);
}

bool qwen_forward(struct qwen_state *s, const struct qwen_token *token,
		  uint32_t n, struct err *e)
{
	s->token = token;
	s->n = n;
	if (!tokens_check(s, e) || !positions_set(s, e)) {
		s->n = 0;
		return false;
	}
	logits_init(s);
	if (n)
		threads_run(s->m->threads, pass, s);
	return true;
}

const float *qwen_logits(const struct qwen_state *s, uint32_t i)
{
	if (i >= s->n || s->logits_at[i] == NONE)
		return NULL;
	return s->logits + (size_t)s->logits_at[i] * s->m->config.vocab;
}
