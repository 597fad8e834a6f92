/*
 * Wide passes of the CPU backend: products and attention are matrix products in
 * tiles (autotune/host.h), norms and heads are split by tokens.  Integer
 * weights become f32 where tiles want them; activations stay f32, where a
 * narrow pass rounds them to 8 bits.
 */
#include <math.h>
#include <string.h>

#include "engine/forward_int.h"

static enum host_gemm_type gemm_type(enum qwen_weights w)
{
	switch (w) {
	case QWEN_W_F32:
		return HOST_GEMM_F32;
	case QWEN_W_F16:
		return HOST_GEMM_F16;
	case QWEN_W_BF16:
		return HOST_GEMM_BF16;
	default:
		return HOST_GEMM_MADE;
	}
}

/* Integer weights, and who makes them f32. */
struct integers {
	const struct qwen_matrix *w;
	const struct qwen_kernels *k;
};

static void integers_make(const void *b, size_t row, size_t n, size_t k0,
			  size_t k, float *out, size_t ldo)
{
	const struct integers *m = b;

	for (size_t i = 0; i < n; i++)
		m->k->unpack(m->w, (uint32_t)(row + i), (uint32_t)k0,
			     (uint32_t)k, out + i * ldo);
}

void cpu_wide_products(struct worker *w, const float *x, uint32_t n,
		       const struct rows *r, int n_rows)
{
	struct host_gemm g[MOST_ROWS];
	struct integers made[MOST_ROWS];

	for (int i = 0; i < n_rows; i++) {
		const struct qwen_matrix *m = r[i].w;
		bool integer = m->type >= QWEN_W_INT8;
		made[i] = (struct integers){ m, w->s->m->kernels };
		g[i] = (struct host_gemm){ .m = n,
					   .n = m->rows,
					   .k = m->cols,
					   .alpha = 1,
					   .beta = r[i].add,
					   .a = x,
					   .lda = m->cols,
					   .b = m->data,
					   .ldb = m->cols,
					   .b_type = gemm_type(m->type),
					   .b_by_n = true,
					   .make = integers_make,
					   .c = r[i].y,
					   .ldc = m->rows };
		if (integer)
			g[i].b = &made[i];
	}
	host_gemm_list_part(g, (size_t)n_rows, &w->gemm, w->thread,
			    threads_count(w->t));
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
