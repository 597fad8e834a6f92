/*
 * The CPU backend: every step is split over the model's threads and ends in a
 * barrier.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend.h"
#include "engine/cache.h"

/* What one thread needs for itself in attention. */
struct scratch {
	float *score; /* [heads per kv head][positions] */
	float *row;   /* [head_dim]: a key or a value as f32 */
};

struct cpu {
	const struct qwen_model *m;
	struct qwen_shape shape;
	struct qwen_cache cache;
	float *cosine, *sine; /* [positions][head_dim / 2] */
	struct arena mem;
	struct scratch *scratch; /* [threads] */
	/* Of one pass; [max_tokens] rows each. */
	const struct qwen_pass *p;
	float *x;	       /* [hidden]: the residual stream */
	float *h;	       /* [hidden]: normalized */
	float *q, *k, *v;      /* [heads][head_dim], [kv_heads][head_dim] */
	float *a;	       /* [heads][head_dim]: attention's result */
	float *o;	       /* [hidden]: what is added to x */
	float *gate, *up;      /* [ffn] */
	struct qwen_group *xq; /* a product's input for integer weights */
	bool stopped;	       /* set by one thread before a barrier */
};

static uint32_t largest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static float *floats(struct cpu *s, size_t a, size_t b)
{
	return arena_alloc(&s->mem, a * b * sizeof(float));
}

static void buffers_init(struct cpu *s)
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
	threads = threads_count(s->m->threads);
	s->scratch = arena_alloc(&s->mem, threads * sizeof(*s->scratch));
	for (size_t t = 0; t < threads; t++) {
		s->scratch[t].score = floats(s, c->heads / c->kv_heads,
					     s->shape.positions);
		s->scratch[t].row = floats(s, 1, c->head_dim);
	}
}

static void *cpu_state_new(const struct qwen_model *m,
			   const struct qwen_shape *shape, struct err *e)
{
	const struct qwen_config *c = &m->config;
	struct cpu *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->shape = *shape;
	if (!qwen_cache_init(&s->cache, m, shape, e)) {
		free(s);
		return NULL;
	}
	buffers_init(s);
	s->cosine = floats(s, shape->positions, c->head_dim / 2);
	s->sine = floats(s, shape->positions, c->head_dim / 2);
	qwen_angles(c, shape->positions, s->cosine, s->sine);
	return s;
}

static void cpu_state_free(void *state)
{
	struct cpu *s = state;

	qwen_cache_fini(&s->cache);
	arena_fini(&s->mem);
	free(s);
}

static uint64_t cpu_cache_bytes(const void *state)
{
	return ((const struct cpu *)state)->cache.size_bytes;
}

/* ---- one pass ---- */

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
static void products(struct cpu *s, struct threads *t,
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
static void normalize(struct cpu *s, struct threads *t,
		      unsigned thread, const float *w)
{
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(t, thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		s->m->kernels->rms_norm(s->x + i * c->hidden, w, c->hidden,
					(float)c->norm_eps,
					s->h + i * c->hidden);
	threads_barrier(t);
}

/* x += o for every token; ends in a barrier. */
static void add(struct cpu *s, struct threads *t, unsigned thread)
{
	size_t from, to;

	threads_part(t, thread, (size_t)s->p->n * s->m->config.hidden, 64,
			  &from, &to);
	for (size_t i = from; i < to; i++)
		s->x[i] += s->o[i];
	threads_barrier(t);
}

static void head_turn(struct cpu *s, float *x, const float *norm,
		      uint32_t position)
{
	const struct qwen_config *c = &s->m->config;
	size_t at = (size_t)position * (c->head_dim / 2);

	s->m->kernels->rms_norm(x, norm, c->head_dim, (float)c->norm_eps, x);
	s->m->kernels->rope(x, s->cosine + at, s->sine + at, c->head_dim);
}

/* Norms and turns queries and keys, and fills the cache. */
static void heads_turn(struct cpu *s, struct threads *t,
		       unsigned thread, uint32_t layer)
{
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	uint32_t heads = c->heads + c->kv_heads, d = c->head_dim;
	size_t from, to;

	threads_part(t, thread, (size_t)s->p->n * heads, 1, &from, &to);
	for (size_t i = from; i < to; i++) {
		uint32_t n = (uint32_t)(i / heads), h = (uint32_t)(i % heads);
		if (h < c->heads) {
			head_turn(s, s->q + ((size_t)n * c->heads + h) * d,
				  l->q_norm, s->p->position[n]);
			continue;
		}
		h -= c->heads;
		size_t row = ((size_t)n * c->kv_heads + h) * d;
		size_t at = qwen_cache_at(&s->cache, layer,
					  s->p->token[n].sequence, h,
					  s->p->position[n]);
		head_turn(s, s->k + row, l->k_norm, s->p->position[n]);
		qwen_cache_put(&s->cache, s->cache.key, at, s->k + row);
		qwen_cache_put(&s->cache, s->cache.value, at, s->v + row);
	}
	threads_barrier(t);
}

/* The query heads of one key-value head, for one token. */
static void attend(struct cpu *s, const struct scratch *x,
		   uint32_t layer, uint32_t n, uint32_t kv)
{
	const struct qwen_config *c = &s->m->config;
	const struct qwen_kernels *k = s->m->kernels;
	uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	uint32_t length = s->p->position[n] + 1;
	size_t at = qwen_cache_at(&s->cache, layer, s->p->token[n].sequence, kv,
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

static void attention(struct cpu *s, struct threads *t,
		      unsigned thread, uint32_t layer)
{
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	unsigned threads = threads_count(t);
	const struct out qkv[] = { { &l->q, s->q }, { &l->k, s->k },
				   { &l->v, s->v } };

	normalize(s, t, thread, l->attn_norm);
	products(s, t, thread, s->h, s->p->n, qkv, 3);
	heads_turn(s, t, thread, layer);
	/* Dealt out in turn: later tokens of a prompt have more to look at. */
	for (size_t i = thread; i < (size_t)s->p->n * c->kv_heads; i += threads)
		attend(s, &s->scratch[thread], layer,
		       (uint32_t)(i / c->kv_heads), (uint32_t)(i % c->kv_heads));
	threads_barrier(t);
	products(s, t, thread, s->a, s->p->n, &(struct out){ &l->o, s->o }, 1);
	add(s, t, thread);
}

static void feed_forward(struct cpu *s, struct threads *t,
			 unsigned thread, uint32_t layer)
{
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct out both[] = { { &l->gate, s->gate }, { &l->up, s->up } };
	size_t from, to;

	normalize(s, t, thread, l->ffn_norm);
	products(s, t, thread, s->h, s->p->n, both, 2);
	threads_part(t, thread, (size_t)s->p->n * s->m->config.ffn, 64, &from,
			  &to);
	s->m->kernels->swiglu(s->gate + from, s->up + from,
			      (uint32_t)(to - from), s->gate + from);
	threads_barrier(t);
	products(s, t, thread, s->gate, s->p->n, &(struct out){ &l->down, s->o },
		 1);
	add(s, t, thread);
}

/* Only the tokens whose logits are wanted, gathered into h. */
static void last(struct cpu *s, struct threads *t, unsigned thread)
{
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(t, thread, s->p->n_wanted, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		s->m->kernels->rms_norm(s->x + (size_t)s->p->wanted[i] *
							c->hidden,
					s->m->norm, c->hidden,
					(float)c->norm_eps,
					s->h + i * c->hidden);
	threads_barrier(t);
	if (s->p->n_wanted)
		products(s, t, thread, s->h, s->p->n_wanted,
			 &(struct out){ &s->m->head, s->p->logits }, 1);
}

/* The best of each row that wants it. */
static void bests(struct cpu *s, struct threads *t, unsigned thread)
{
	const struct qwen_pass *p = s->p;
	uint32_t vocab = s->m->config.vocab;
	size_t from, to;

	threads_part(t, thread, p->n_wanted, 1, &from, &to);
	for (size_t r = from; r < to; r++) {
		const float *v = p->logits + r * vocab;
		uint32_t at = 0;
		if (!p->token[p->wanted[r]].best)
			continue;
		for (uint32_t i = 1; i < vocab; i++)
			at = v[i] > v[at] ? i : at;
		p->best[r] = at;
	}
	threads_barrier(t);
}

/* All threads see the same answer: one asks, and a barrier follows. */
static bool stopped(struct cpu *s, struct threads *t, unsigned thread)
{
	if (!s->p->stop)
		return false;
	if (thread == 0)
		s->stopped = *s->p->stop;
	threads_barrier(t);
	return s->stopped;
}

static void pass(void *ctx, struct threads *t, unsigned thread)
{
	struct cpu *s = ctx;
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(t, thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		qwen_matrix_row(s->m->kernels, &s->m->embed, s->p->token[i].id,
				s->x + i * c->hidden);
	threads_barrier(t);
	for (uint32_t l = 0; l < c->layers; l++) {
		attention(s, t, thread, l);
		feed_forward(s, t, thread, l);
		if (stopped(s, t, thread))
			return;
	}
	last(s, t, thread);
	bests(s, t, thread);
}

static bool cpu_forward(void *state, const struct qwen_pass *p, struct err *e)
{
	struct cpu *s = state;

	s->p = p;
	s->stopped = false;
	threads_run(s->m->threads, pass, s);
	return !s->stopped || err_set(e, ERR_BUSY, "stopped by a signal");
}

const struct qwen_backend qwen_cpu = {
	.name = "cpu",
	.state_new = cpu_state_new,
	.state_free = cpu_state_free,
	.cache_bytes = cpu_cache_bytes,
	.forward = cpu_forward,
};
