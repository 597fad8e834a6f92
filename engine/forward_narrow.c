/*
 * Narrow passes of the CPU backend.  What is small is done by every thread for
 * itself rather than shared: norms and quantization; a thread has whole heads,
 * so that it needs nothing of others from the queries to the result of
 * attention.  Four barriers remain per layer.
 */
#include <math.h>
#include <string.h>

#include "engine/forward_int.h"

/* Positions of an int8 cache that are widened at once. */
#define WIDENED 64

/* The query heads of one key-value head, for one token. */
static void attend(struct worker *w, uint32_t layer, uint32_t n, uint32_t kv)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_kernels *k = s->m->kernels;
	uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	uint32_t length = s->p->position[n] + 1;
	uint32_t step = s->cache.type == QWEN_W_INT8 ? WIDENED : length;
	size_t at =
		qwen_cache_at(&s->cache, layer, s->p->token[n].sequence, kv, 0);
	float *q = s->q + ((size_t)n * c->heads + kv * per) * d;
	float *a = s->a + ((size_t)n * c->heads + kv * per) * d;
	float scale = (float)(1 / sqrt(d));
	float *wide = cpu_space(w, (size_t)WIDENED * d);

	for (uint32_t p = 0; p < length; p += step) {
		uint32_t some = length - p < step ? length - p : step;
		struct qwen_matrix m = qwen_cache_rows(&s->cache, s->cache.key,
						       at + p, some, wide);
		k->product(&m, 0, some, q, d, per, w->score + p, length, false);
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

void cpu_products(struct worker *w, const float *x, uint32_t n,
		  const struct rows *r, int n_rows)
{
	const struct qwen_kernels *k = w->s->m->kernels;
	uint32_t cols = r[0].w->cols;

	for (uint32_t i = 0; i < n && any_integer(r, n_rows); i++)
		k->quantize(x + (size_t)i * cols, cols, &w->xq[i]);
	for (int i = 0; i < n_rows; i++)
		product(k, &r[i], x, w->xq, n);
}

/* ---- a layer ---- */

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

void cpu_narrow_attention(struct worker *w, uint32_t layer)
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
		cpu_products(w, norms(w, l->attn_norm), s->p->n, qkv, 3);
	for (uint32_t n = 0; n < s->p->n; n++)
		for (uint32_t h = (uint32_t)h0; h < h1; h++) {
			for (uint32_t i = h * per; i < (h + 1) * per; i++)
				cpu_q_turn(s, layer, n, i);
			cpu_kv_turn(s, layer, n, h);
			attend(w, layer, n, h);
		}
	threads_barrier(w->t);
	const struct rows o = cpu_part(w, &l->o, s->x, true);
	cpu_products(w, s->a, s->p->n, &o, 1);
	threads_barrier(w->t);
}

void cpu_narrow_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows both[] = { cpu_part(w, &l->gate, s->gate, false),
				     cpu_part(w, &l->up, s->up, false) };
	size_t from = both[0].r0, n = both[0].r1 - from;

	cpu_products(w, norms(w, l->ffn_norm), s->p->n, both, 2);
	for (uint32_t i = 0; i < s->p->n; i++, from += s->m->config.ffn)
		s->m->kernels->swiglu(s->gate + from, s->up + from, (uint32_t)n,
				      s->gate + from);
	threads_barrier(w->t);
	const struct rows down = cpu_part(w, &l->down, s->x, true);
	cpu_products(w, s->gate, s->p->n, &down, 1);
	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	threads_barrier(w->t);
}
