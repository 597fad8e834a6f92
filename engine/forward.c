/*
 * The CPU backend.  Every step is split over the model's threads, by rows of
 * the weights, so that each thread streams its own part of a matrix.
 *
 * A narrow pass (decoding) is a stream of weights with little arithmetic.  What
 * is small is done by every thread for itself rather than shared: norms and
 * quantization; a thread has whole heads, so that it needs nothing of others
 * from the queries to the result of attention.  Four barriers remain per layer.
 *
 * A wide pass (a prompt) is arithmetic: products and attention are matrix
 * products in tiles (autotune/host.h), norms and heads are split by tokens.
 * Integer weights become f32 a block of rows at a time; activations stay f32,
 * where a narrow pass rounds them to 8 bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/host.h"
#include "engine/backend.h"
#include "engine/cache.h"

/* Tokens of a narrow pass, at most. */
#define NARROW 8
/* Positions of an int8 cache that a narrow pass widens at once. */
#define WIDENED 64
/* Tokens of a wide pass that attend together; rows of integers made f32. */
#define TOGETHER 64
#define UNPACKED 256

struct cpu {
	const struct qwen_model *m;
	struct qwen_shape shape;
	struct qwen_cache cache;
	float *cosine, *sine; /* [positions][head_dim / 2] */
	struct arena mem;
	struct worker *worker; /* [threads] */
	/* Of one pass; [max_tokens] rows each. */
	const struct qwen_pass *p;
	float *x;	  /* [hidden]: the residual stream */
	float *h;	  /* [hidden]: normalized; of wide passes */
	float *q, *k, *v; /* [heads][head_dim], [kv_heads][head_dim] */
	float *a;	  /* [heads][head_dim]: attention's result */
	float *gate, *up; /* [ffn] */
	struct run *run;  /* [n_runs] */
	uint32_t n_runs;
	bool stopped;	  /* set by thread 0 before a barrier */
};

/* Tokens of one sequence at positions that follow each other. */
struct run {
	uint32_t first, n; /* at most TOGETHER */
};

/* One thread, and what it has for itself. */
struct worker {
	struct cpu *s;
	struct threads *t;
	unsigned thread;
	float *score; /* [heads per kv head or TOGETHER][positions] */
	float *space; /* grows: keys or values, or rows of weights, as f32 */
	size_t space_floats;
	struct host_gemm_scratch gemm;
	float *h;     /* [NARROW][hidden] */
	struct qwen_quants xq[NARROW];
	uint32_t *best; /* [max_tokens] */
};

static float *space(struct worker *w, size_t floats)
{
	if (floats > w->space_floats) {
		free(w->space);
		w->space = xmalloc(floats * sizeof(float));
		w->space_floats = floats;
	}
	return w->space;
}

static uint32_t largest(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static float *floats(struct cpu *s, size_t a, size_t b)
{
	return arena_alloc(&s->mem, a * b * sizeof(float));
}

static void quants_init(struct cpu *s, struct qwen_quants *q, uint32_t n)
{
	const struct qwen_config *c = &s->m->config;
	uint32_t widest = largest(c->ffn, largest(c->hidden,
						  c->heads * c->head_dim));
	struct qwen_quants none;
	size_t bytes = qwen_quants_place(&none, widest, NULL);

	for (uint32_t i = 0; i < n; i++)
		qwen_quants_place(&q[i], widest, arena_alloc(&s->mem, bytes));
}

static void worker_init(struct cpu *s, struct worker *w, unsigned thread)
{
	const struct qwen_config *c = &s->m->config;

	*w = (struct worker){ .s = s, .t = s->m->threads, .thread = thread };
	w->score = floats(s, largest(c->heads / c->kv_heads, TOGETHER),
			  s->shape.positions);
	w->h = floats(s, NARROW, c->hidden);
	w->best = arena_alloc(&s->mem, s->shape.max_tokens * sizeof(*w->best));
	quants_init(s, w->xq, NARROW);
}

static void buffers_init(struct cpu *s)
{
	const struct qwen_config *c = &s->m->config;
	size_t n = s->shape.max_tokens;
	unsigned threads = threads_count(s->m->threads);

	s->x = floats(s, n, c->hidden);
	s->h = floats(s, n, c->hidden);
	s->q = floats(s, n, (size_t)c->heads * c->head_dim);
	s->a = floats(s, n, (size_t)c->heads * c->head_dim);
	s->k = floats(s, n, (size_t)c->kv_heads * c->head_dim);
	s->v = floats(s, n, (size_t)c->kv_heads * c->head_dim);
	s->gate = floats(s, n, c->ffn);
	s->up = floats(s, n, c->ffn);
	s->run = arena_alloc(&s->mem, n * sizeof(*s->run));
	s->worker = arena_alloc(&s->mem, threads * sizeof(*s->worker));
	for (unsigned t = 0; t < threads; t++)
		worker_init(s, &s->worker[t], t);
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

	for (unsigned t = 0; t < threads_count(s->m->threads); t++) {
		free(s->worker[t].space);
		host_gemm_scratch_fini(&s->worker[t].gemm);
	}
	qwen_cache_fini(&s->cache);
	arena_fini(&s->mem);
	free(s);
}

static uint64_t cpu_cache_bytes(const void *state)
{
	return ((const struct cpu *)state)->cache.size_bytes;
}

/* ---- heads and attention ---- */

static void head_turn(const struct cpu *s, float *x, const float *norm,
		      uint32_t position)
{
	const struct qwen_config *c = &s->m->config;
	size_t at = (size_t)position * (c->head_dim / 2);

	s->m->kernels->rms_norm(x, norm, c->head_dim, (float)c->norm_eps, x);
	s->m->kernels->rope(x, s->cosine + at, s->sine + at, c->head_dim);
}

/* Norms and turns one key-value head of token n, and stores it. */
static void kv_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h)
{
	const struct qwen_config *c = &s->m->config;
	size_t row = ((size_t)n * c->kv_heads + h) * c->head_dim;
	size_t at = qwen_cache_at(&s->cache, layer, s->p->token[n].sequence, h,
				  s->p->position[n]);

	head_turn(s, s->k + row, s->m->layer[layer].k_norm, s->p->position[n]);
	qwen_cache_put(&s->cache, s->cache.key, at, s->k + row);
	qwen_cache_put(&s->cache, s->cache.value, at, s->v + row);
}

static void q_turn(struct cpu *s, uint32_t layer, uint32_t n, uint32_t h)
{
	const struct qwen_config *c = &s->m->config;

	head_turn(s, s->q + ((size_t)n * c->heads + h) * c->head_dim,
		  s->m->layer[layer].q_norm, s->p->position[n]);
}

/* The query heads of one key-value head, for one token. */
static void attend(struct worker *w, uint32_t layer, uint32_t n, uint32_t kv)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_kernels *k = s->m->kernels;
	uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	uint32_t length = s->p->position[n] + 1;
	uint32_t step = s->cache.type == QWEN_W_INT8 ? WIDENED : length;
	size_t at = qwen_cache_at(&s->cache, layer, s->p->token[n].sequence,
				  kv, 0);
	float *q = s->q + ((size_t)n * c->heads + kv * per) * d;
	float *a = s->a + ((size_t)n * c->heads + kv * per) * d;
	float scale = (float)(1 / sqrt(d));
	float *wide = space(w, (size_t)WIDENED * d);

	for (uint32_t p = 0; p < length; p += step) {
		uint32_t some = length - p < step ? length - p : step;
		struct qwen_matrix m = qwen_cache_rows(
			&s->cache, s->cache.key, at + p, some, wide);
		k->product(&m, 0, some, q, d, per, w->score + p, length,
			   false);
	}
	for (size_t i = 0; i < (size_t)per * length; i++)
		w->score[i] *= scale;
	for (uint32_t h = 0; h < per; h++)
		k->softmax(w->score + (size_t)h * length, length);
	memset(a, 0, (size_t)per * d * sizeof(*a));
	for (uint32_t p = 0; p < length; p += step) {
		uint32_t some = length - p < step ? length - p : step;
		struct qwen_matrix m = qwen_cache_rows(
			&s->cache, s->cache.value, at + p, some, wide);
		k->mix(m.type, m.data, d, some, w->score + p, length, per, a,
		       d);
	}
}

/* ---- products ---- */

/* One of several products of the same input: rows r0 .. r1 of a matrix. */
struct rows {
	const struct qwen_matrix *w;
	size_t r0, r1;
	float *y; /* [tokens][all rows] */
	bool add;
};

static bool any_integer(const struct rows *r, int n_rows)
{
	for (int i = 0; i < n_rows; i++)
		if (r[i].w->type >= QWEN_W_INT8)
			return true;
	return false;
}

static void product(const struct qwen_kernels *k, const struct rows *r,
		    const float *x, const struct qwen_quants *xq, uint32_t n)
{
	const struct qwen_matrix *w = r->w;

	if (w->type >= QWEN_W_INT8)
		k->product_int(w, (uint32_t)r->r0, (uint32_t)r->r1, xq, n, r->y,
			       w->rows, r->add);
	else
		k->product(w, (uint32_t)r->r0, (uint32_t)r->r1, x, w->cols, n,
			   r->y, w->rows, r->add);
}

/* Of few tokens x [n][cols], without waiting for anybody. */
static void products(struct worker *w, const float *x, uint32_t n,
		     const struct rows *r, int n_rows)
{
	const struct qwen_kernels *k = w->s->m->kernels;
	uint32_t cols = r[0].w->cols;

	for (uint32_t i = 0; i < n && any_integer(r, n_rows); i++)
		k->quantize(x + (size_t)i * cols, cols, &w->xq[i]);
	for (int i = 0; i < n_rows; i++)
		product(k, &r[i], x, w->xq, n);
}

/* The thread's part of all rows. */
static struct rows part(const struct worker *w, const struct qwen_matrix *m,
			float *y, bool add)
{
	struct rows r = { .w = m, .y = y, .add = add };

	threads_part(w->t, w->thread, m->rows, 16, &r.r0, &r.r1);
	return r;
}

/* ---- narrow passes ---- */

/* Norms of all tokens into the thread's own h. */
static const float *norms(struct worker *w, const float *norm)
{
	const struct qwen_config *c = &w->s->m->config;

	for (size_t i = 0; i < w->s->p->n; i++)
		w->s->m->kernels->rms_norm(w->s->x + i * c->hidden, norm,
					   c->hidden, (float)c->norm_eps,
					   w->h + i * c->hidden);
	return w->h;
}

static void narrow_attention(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	size_t h0, h1; /* the thread's key-value heads */

	threads_part(w->t, w->thread, c->kv_heads, 1, &h0, &h1);
	const struct rows qkv[] = {
		{ &l->q, h0 * per * d, h1 * per * d, s->q, false },
		{ &l->k, h0 * d, h1 * d, s->k, false },
		{ &l->v, h0 * d, h1 * d, s->v, false },
	};
	if (h0 < h1)
		products(w, norms(w, l->attn_norm), s->p->n, qkv, 3);
	for (uint32_t n = 0; n < s->p->n; n++)
		for (uint32_t h = (uint32_t)h0; h < h1; h++) {
			for (uint32_t i = h * per; i < (h + 1) * per; i++)
				q_turn(s, layer, n, i);
			kv_turn(s, layer, n, h);
			attend(w, layer, n, h);
		}
	threads_barrier(w->t);
	const struct rows o = part(w, &l->o, s->x, true);
	products(w, s->a, s->p->n, &o, 1);
	threads_barrier(w->t);
}

static void narrow_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows both[] = { part(w, &l->gate, s->gate, false),
				     part(w, &l->up, s->up, false) };
	size_t from = both[0].r0, n = both[0].r1 - from;

	products(w, norms(w, l->ffn_norm), s->p->n, both, 2);
	for (uint32_t i = 0; i < s->p->n; i++, from += s->m->config.ffn)
		s->m->kernels->swiglu(s->gate + from, s->up + from, (uint32_t)n,
				      s->gate + from);
	threads_barrier(w->t);
	const struct rows down = part(w, &l->down, s->x, true);
	products(w, s->gate, s->p->n, &down, 1);
	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	threads_barrier(w->t);
}

/* ---- wide passes ---- */

static enum host_gemm_type gemm_type(enum qwen_weights w)
{
	return w == QWEN_W_F32 ? HOST_GEMM_F32 :
	       w == QWEN_W_F16 ? HOST_GEMM_F16 : HOST_GEMM_BF16;
}

/* The thread's rows of integer weights, made f32 a block at a time. */
static void unpacked_product(struct worker *w, struct host_gemm g,
			     const struct rows *r)
{
	const struct qwen_matrix *m = r->w;
	float *b = space(w, (size_t)UNPACKED * m->cols);

	g.b = b;
	g.b_type = HOST_GEMM_F32;
	for (size_t at = r->r0; at < r->r1; at += g.n) {
		g.n = r->r1 - at < UNPACKED ? r->r1 - at : UNPACKED;
		for (size_t i = 0; i < g.n; i++)
			qwen_matrix_row(w->s->m->kernels, m, (uint32_t)(at + i),
					b + i * m->cols);
		g.c = r->y + at;
		host_gemm_part(&g, &w->gemm, 0, 1);
	}
}

/* Products of n tokens, split over the threads.  Ends in a barrier. */
static void wide_products(struct worker *w, const float *x, uint32_t n,
			  const struct rows *r, int n_rows)
{
	uint32_t cols = r[0].w->cols;

	for (int i = 0; i < n_rows; i++) {
		const struct qwen_matrix *m = r[i].w;
		struct host_gemm g = { .m = n, .n = m->rows, .k = cols,
				       .alpha = 1, .beta = r[i].add, .a = x,
				       .lda = cols, .b = m->data, .ldb = cols,
				       .b_type = gemm_type(m->type),
				       .b_by_n = true, .c = r[i].y,
				       .ldc = m->rows };
		if (m->type >= QWEN_W_INT8)
			unpacked_product(w, g, &r[i]);
		else
			host_gemm_part(&g, &w->gemm, w->thread,
				       threads_count(w->t));
	}
	threads_barrier(w->t);
}

/* h = norm(x) for every token; ends in a barrier. */
static void wide_norms(struct worker *w, const float *norm)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	size_t from, to;

	threads_part(w->t, w->thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		s->m->kernels->rms_norm(s->x + i * c->hidden, norm, c->hidden,
					(float)c->norm_eps,
					s->h + i * c->hidden);
	threads_barrier(w->t);
}

/* One query head of a run of tokens: two matrix products around a softmax. */
static void attend_run(struct worker *w, uint32_t layer, const struct run *run,
		       uint32_t head)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	uint32_t d = c->head_dim, before = s->p->position[run->first];
	uint32_t length = before + run->n;
	size_t at = qwen_cache_at(&s->cache, layer,
				  s->p->token[run->first].sequence,
				  head / (c->heads / c->kv_heads), 0);
	size_t row = ((size_t)run->first * c->heads + head) * d;
	float *wide = s->cache.type == QWEN_W_INT8 ?
		space(w, (size_t)length * d) : NULL;
	struct qwen_matrix m = qwen_cache_rows(&s->cache, s->cache.key, at,
					       length, wide);
	struct host_gemm g = { .m = run->n, .n = length, .k = d,
			       .alpha = (float)(1 / sqrt(d)), .a = s->q + row,
			       .lda = (size_t)c->heads * d, .b = m.data,
			       .ldb = d, .b_type = gemm_type(m.type),
			       .b_by_n = true, .c = w->score, .ldc = length };

	host_gemm_part(&g, &w->gemm, 0, 1);
	for (uint32_t i = 0; i < run->n; i++) {
		float *score = w->score + (size_t)i * length;
		uint32_t seen = before + i + 1;
		s->m->kernels->softmax(score, seen);
		memset(score + seen, 0, (length - seen) * sizeof(*score));
	}
	m = qwen_cache_rows(&s->cache, s->cache.value, at, length, wide);
	g = (struct host_gemm){ .m = run->n, .n = d, .k = length, .alpha = 1,
				.a = w->score, .lda = length, .b = m.data,
				.ldb = d, .b_type = gemm_type(m.type),
				.c = s->a + row,
				.ldc = (size_t)c->heads * d };
	host_gemm_part(&g, &w->gemm, 0, 1);
}

/* Cuts the pass into runs. */
static void runs_init(struct cpu *s)
{
	const struct qwen_pass *p = s->p;

	s->n_runs = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		struct run *r = &s->run[s->n_runs];
		if (i && r[-1].n < TOGETHER &&
		    p->token[i].sequence == p->token[i - 1].sequence)
			r[-1].n++;
		else
			s->run[s->n_runs++] = (struct run){ i, 1 };
	}
}

static void wide_attention(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows qkv[] = { part(w, &l->q, s->q, false),
				    part(w, &l->k, s->k, false),
				    part(w, &l->v, s->v, false) };
	uint32_t n = s->p->n;
	size_t from, to;

	wide_norms(w, l->attn_norm);
	wide_products(w, s->h, n, qkv, 3);
	threads_part(w->t, w->thread, n, 1, &from, &to);
	for (uint32_t i = (uint32_t)from; i < to; i++) {
		for (uint32_t h = 0; h < c->heads; h++)
			q_turn(s, layer, i, h);
		for (uint32_t h = 0; h < c->kv_heads; h++)
			kv_turn(s, layer, i, h);
	}
	threads_barrier(w->t);
	/* Dealt out in turn: later runs of a prompt have more to look at. */
	for (size_t i = w->thread; i < (size_t)s->n_runs * c->heads;
	     i += threads_count(w->t))
		attend_run(w, layer, &s->run[i / c->heads],
			   (uint32_t)(i % c->heads));
	threads_barrier(w->t);
	const struct rows o = part(w, &l->o, s->x, true);
	wide_products(w, s->a, n, &o, 1);
}

static void wide_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows both[] = { part(w, &l->gate, s->gate, false),
				     part(w, &l->up, s->up, false) };
	size_t from, to;

	wide_norms(w, l->ffn_norm);
	wide_products(w, s->h, s->p->n, both, 2);
	threads_part(w->t, w->thread, (size_t)s->p->n * s->m->config.ffn, 64,
		     &from, &to);
	s->m->kernels->swiglu(s->gate + from, s->up + from,
			      (uint32_t)(to - from), s->gate + from);
	threads_barrier(w->t);
	const struct rows down = part(w, &l->down, s->x, true);
	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	wide_products(w, s->gate, s->p->n, &down, 1);
}

/* ---- one pass ---- */

static void last_norm(struct cpu *s, uint32_t row, float *h)
{
	const struct qwen_config *c = &s->m->config;

	s->m->kernels->rms_norm(s->x + (size_t)s->p->wanted[row] * c->hidden,
				s->m->norm, c->hidden, (float)c->norm_eps, h);
}

/*
 * The output layer, only for the tokens whose results are wanted, and the best
 * of the thread's part of their logits.
 */
static void last(struct worker *w)
{
	struct cpu *s = w->s;
	const struct qwen_pass *p = s->p;
	const struct qwen_config *c = &s->m->config;
	const struct rows head = part(w, &s->m->head, p->logits, false);
	size_t from, to;

	if (p->n_wanted > NARROW) {
		threads_part(w->t, w->thread, p->n_wanted, 1, &from, &to);
		for (size_t r = from; r < to; r++)
			last_norm(s, (uint32_t)r, s->h + r * c->hidden);
		threads_barrier(w->t);
		wide_products(w, s->h, p->n_wanted, &head, 1);
	} else if (p->n_wanted) {
		for (uint32_t r = 0; r < p->n_wanted; r++)
			last_norm(s, r, w->h + (size_t)r * c->hidden);
		products(w, w->h, p->n_wanted, &head, 1);
	}
	for (uint32_t r = 0; r < p->n_wanted; r++) {
		const float *v = p->logits + (size_t)r * c->vocab;
		size_t at = head.r0;
		float top = -INFINITY;
		if (!p->token[p->wanted[r]].best)
			continue;
		for (size_t i = head.r0; i < head.r1; i++)
			if (v[i] > top) {
				top = v[i];
				at = i;
			}
		w->best[r] = (uint32_t)(at < c->vocab ? at : c->vocab - 1);
	}
	threads_barrier(w->t);
}

/* The best of all threads' bests. */
static void bests(struct cpu *s)
{
	for (uint32_t r = 0; r < s->p->n_wanted; r++) {
		const float *v = s->p->logits + (size_t)r * s->m->config.vocab;
		uint32_t best = s->worker[0].best[r];
		for (unsigned t = 1; t < threads_count(s->m->threads); t++) {
			uint32_t other = s->worker[t].best[r];
			best = v[other] > v[best] ? other : best;
		}
		s->p->best[r] = best;
	}
}

static void pass(void *ctx, struct threads *t, unsigned thread)
{
	struct cpu *s = ctx;
	struct worker *w = &s->worker[thread];
	const struct qwen_config *c = &s->m->config;
	bool narrow = s->p->n <= NARROW;
	size_t from, to;

	threads_part(t, thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		qwen_matrix_row(s->m->kernels, &s->m->embed, s->p->token[i].id,
				s->x + i * c->hidden);
	threads_barrier(t);
	for (uint32_t l = 0; l < c->layers && !s->stopped; l++) {
		if (narrow) {
			narrow_attention(w, l);
			narrow_ffn(w, l);
		} else {
			wide_attention(w, l);
			wide_ffn(w, l);
		}
	}
	if (!s->stopped)
		last(w);
}

static bool cpu_forward(void *state, const struct qwen_pass *p, struct err *e)
{
	struct cpu *s = state;

	s->p = p;
	s->stopped = false;
	runs_init(s);
	threads_run(s->m->threads, pass, s);
	if (s->stopped)
		return err_set(e, ERR_BUSY, "stopped by a signal");
	bests(s);
	return true;
}

const struct qwen_backend qwen_cpu = {
	.name = "cpu",
	.state_new = cpu_state_new,
	.state_free = cpu_state_free,
	.cache_bytes = cpu_cache_bytes,
	.forward = cpu_forward,
};
