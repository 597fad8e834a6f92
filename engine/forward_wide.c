/*
 * Wide passes of the CPU backend: products and attention are matrix products in
 * tiles (autotune/host.h), norms and heads are split by tokens.  Integer
 * weights become f32 a block of rows at a time; activations stay f32, where a
 * narrow pass rounds them to 8 bits.
 */
#include <math.h>
#include <string.h>

#include "engine/forward_int.h"

/* Rows of integer weights that are made f32 at once. */
#define UNPACKED 256

static enum host_gemm_type gemm_type(enum qwen_weights w)
{
	return w == QWEN_W_F32 ? HOST_GEMM_F32 :
	       w == QWEN_W_F16 ? HOST_GEMM_F16 :
				 HOST_GEMM_BF16;
}

/* The thread's rows of integer weights, made f32 a block at a time. */
static void unpacked_product(struct worker *w, struct host_gemm g,
			     const struct rows *r)
{
	const struct qwen_matrix *m = r->w;
	float *b = cpu_space(w, (size_t)UNPACKED * m->cols);

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

void cpu_wide_products(struct worker *w, const float *x, uint32_t n,
		       const struct rows *r, int n_rows)
{
	uint32_t cols = r[0].w->cols;

	for (int i = 0; i < n_rows; i++) {
		const struct qwen_matrix *m = r[i].w;
		struct host_gemm g = { .m = n,
				       .n = m->rows,
				       .k = cols,
				       .alpha = 1,
				       .beta = r[i].add,
				       .a = x,
				       .lda = cols,
				       .b = m->data,
				       .ldb = cols,
				       .b_type = gemm_type(m->type),
				       .b_by_n = true,
				       .c = r[i].y,
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
			      cpu_space(w, (size_t)length * d) :
			      NULL;
	struct qwen_matrix m =
		qwen_cache_rows(&s->cache, s->cache.key, at, length, wide);
	struct host_gemm g = { .m = run->n,
			       .n = length,
			       .k = d,
			       .alpha = (float)(1 / sqrt(d)),
			       .a = s->q + row,
			       .lda = (size_t)c->heads * d,
			       .b = m.data,
			       .ldb = d,
			       .b_type = gemm_type(m.type),
			       .b_by_n = true,
			       .c = w->score,
			       .ldc = length };

	host_gemm_part(&g, &w->gemm, 0, 1);
	for (uint32_t i = 0; i < run->n; i++) {
		float *score = w->score + (size_t)i * length;
		uint32_t seen = before + i + 1;
		s->m->kernels->softmax(score, seen);
		memset(score + seen, 0, (length - seen) * sizeof(*score));
	}
	m = qwen_cache_rows(&s->cache, s->cache.value, at, length, wide);
	g = (struct host_gemm){ .m = run->n,
				.n = d,
				.k = length,
				.alpha = 1,
				.a = w->score,
				.lda = length,
				.b = m.data,
				.ldb = d,
				.b_type = gemm_type(m.type),
				.c = s->a + row,
				.ldc = (size_t)c->heads * d };
	host_gemm_part(&g, &w->gemm, 0, 1);
}

void cpu_wide_attention(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows qkv[] = { cpu_part(w, &l->q, s->q, false),
				    cpu_part(w, &l->k, s->k, false),
				    cpu_part(w, &l->v, s->v, false) };
	uint32_t n = s->p->n;
	size_t from, to;

	wide_norms(w, l->attn_norm);
	cpu_wide_products(w, s->h, n, qkv, 3);
	threads_part(w->t, w->thread, n, 1, &from, &to);
	for (uint32_t i = (uint32_t)from; i < to; i++) {
		for (uint32_t h = 0; h < c->heads; h++)
			cpu_q_turn(s, layer, i, h);
		for (uint32_t h = 0; h < c->kv_heads; h++)
			cpu_kv_turn(s, layer, i, h);
	}
	threads_barrier(w->t);
	/* Dealt out in turn: later runs of a prompt have more to look at. */
	for (size_t i = w->thread; i < (size_t)s->n_runs * c->heads;
	     i += threads_count(w->t))
		attend_run(w, layer, &s->run[i / c->heads],
			   (uint32_t)(i % c->heads));
	threads_barrier(w->t);
	const struct rows o = cpu_part(w, &l->o, s->x, true);
	cpu_wide_products(w, s->a, n, &o, 1);
}

void cpu_wide_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows both[] = { cpu_part(w, &l->gate, s->gate, false),
				     cpu_part(w, &l->up, s->up, false) };
	size_t from, to;

	wide_norms(w, l->ffn_norm);
	cpu_wide_products(w, s->h, s->p->n, both, 2);
	threads_part(w->t, w->thread, (size_t)s->p->n * s->m->config.ffn, 64,
		     &from, &to);
	s->m->kernels->swiglu(s->gate + from, s->up + from,
			      (uint32_t)(to - from), s->gate + from);
	threads_barrier(w->t);
	const struct rows down = cpu_part(w, &l->down, s->x, true);
	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	cpu_wide_products(w, s->gate, s->p->n, &down, 1);
}
