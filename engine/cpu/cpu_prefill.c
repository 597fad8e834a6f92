/*
 * engine/cpu/cpu_prefill.c - passes of many tokens.
 *
 * Products and attention are tiled matrix products (autotune/cpu/gemm.h);
 * norms and heads are split by tokens.  Integer weights become f32 where tiles
 * want them; activations stay f32, where cpu_decode.c rounds them to 8 bits.
 */
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu_int.h"

static enum cpu_gemm_type gemm_type(enum qwen_weights w)
{
	switch (w) {
	case QWEN_W_F32:
		return CPU_GEMM_F32;
	case QWEN_W_F16:
		return CPU_GEMM_F16;
	case QWEN_W_BF16:
		return CPU_GEMM_BF16;
	default:
		return CPU_GEMM_MADE;
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

/* Shapes of a pass are few: they are looked up once and kept. */
static const struct choice *choice_of(struct worker *w,
				      const struct cpu_gemm *g)
{
	struct choice *c = w->choice;

	for (; c < w->choice + CHOICES; c++)
		if (c->m == g->m && c->n == g->n && c->k == g->k &&
		    c->b_type == g->b_type)
			return c;
	c = &w->choice[w->n_choices++ % CHOICES];
	*c = (struct choice){ .m = g->m, .n = g->n, .k = g->k,
			      .b_type = g->b_type };
	c->tuned = cpu_select(w->s->m->device, g, &c->config) != CPU_DEFAULT;
	return c;
}

/* What was tuned for the first of a list, if all of it can be done so. */
static const struct cpu_gemm_config *find_tuned(struct worker *w,
						const struct cpu_gemm *g, int n)
{
	const struct choice *c = choice_of(w, g);
	const char *why;
	bool legal = c->tuned;

	for (int i = 0; legal && i < n; i++)
		legal = cpu_gemm_legal(&g[i], &c->config, &why);
	return legal ? &c->config : NULL;
}

void cpu_prefill_products(struct worker *w, const float *x, uint32_t n,
			  const struct rows *r, int n_rows)
{
	struct cpu_gemm g[MOST_ROWS];
	struct integers made[MOST_ROWS];

	for (int i = 0; i < n_rows; i++) {
		const struct qwen_matrix *m = r[i].w;
		bool integer = qwen_is_integer(m->type);
		made[i] = (struct integers){ m, w->s->m->kernels };
		g[i] = (struct cpu_gemm){ .m = n,
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
					  .coarse = integer,
					  .c = r[i].y,
					  .ldc = m->rows };
		if (integer)
			g[i].b = &made[i];
	}
	g->config = find_tuned(w, g, n_rows);
	cpu_gemm_list_part(g, (size_t)n_rows, &w->gemm, w->thread,
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

/*
 * One query head of a run of tokens.  Keys that all of the run see are one
 * block; behind it come blocks of DIAGONAL, each for the tokens that see some
 * of it, so that little is computed in vain.
 */
#define DIAGONAL 64

struct attention {
	struct worker *w;
	const struct run *run;
	size_t at; /* of position 0 in the cache */
	size_t row; /* of the first token in q and a */
	uint32_t before, length; /* positions before the run, and with it */
	size_t ld; /* of the scores: rows that do not share cache sets */
};

/* Some keys, and the first token of the run that sees some of them. */
struct keys {
	uint32_t token, from, n;
};

static bool keys_next(const struct attention *t, struct keys *k)
{
	uint32_t at = k->from + k->n;

	if (at == t->length)
		return false;
	k->token = at < t->before ? 0 : at - t->before;
	k->from = at;
	k->n = at < t->before ? t->before : t->length - at;
	if (at >= t->before && k->n > DIAGONAL)
		k->n = DIAGONAL;
	return true;
}

/*
 * Are scores and sums of values coarse?  With a cache that rounds them, or
 * where all of them come from integer weights.
 */
static bool attention_coarse(const struct cpu *s)
{
	return s->cache.type != QWEN_W_F32 ||
	       qwen_is_integer(s->m->layer[0].k.type);
}

static struct qwen_matrix keys_rows(const struct attention *t,
				    const uint8_t *part, const struct keys *k)
{
	const struct qwen_cache *c = &t->w->s->cache;
	float *wide = c->type == QWEN_W_INT8 ?
			      cpu_space(t->w, (size_t)k->n * c->head_dim) :
			      NULL;

	return qwen_cache_rows(c, part, t->at + k->from, k->n, wide);
}

/* Scores of the run's tokens, but for those of positions they cannot see. */
static void compute_scores(const struct attention *t)
{
	const struct cpu *s = t->w->s;
	const struct qwen_config *c = &s->m->config;
	size_t ldq = (size_t)c->heads * c->head_dim;

	for (struct keys k = { 0 }; keys_next(t, &k);) {
		struct qwen_matrix m = keys_rows(t, s->cache.key, &k);
		struct cpu_gemm g = { .m = t->run->n - k.token,
				      .n = k.n,
				      .k = c->head_dim,
				      .alpha = (float)(1 / sqrt(c->head_dim)),
				      .a = s->q + t->row + k.token * ldq,
				      .lda = ldq,
				      .b = m.data,
				      .ldb = c->head_dim,
				      .b_type = gemm_type(m.type),
				      .b_by_n = true,
				      .coarse = attention_coarse(s),
				      .c = t->w->score + k.token * t->ld +
					   k.from,
				      .ldc = t->ld };
		cpu_gemm_part(&g, &t->w->gemm, 0, 1);
	}
}

/* Scores become shares; those of a block that are not seen are 0. */
static void softmax_scores(const struct attention *t)
{
	for (uint32_t i = 0; i < t->run->n; i++) {
		float *score = t->w->score + i * t->ld;
		uint32_t seen = t->before + i + 1;
		uint32_t end = t->before + (i / DIAGONAL + 1) * DIAGONAL;
		end = end < t->length ? end : t->length;
		t->w->s->m->kernels->softmax(score, seen);
		memset(score + seen, 0, (end - seen) * sizeof(*score));
	}
}

static void mix_values(const struct attention *t)
{
	const struct cpu *s = t->w->s;
	const struct qwen_config *c = &s->m->config;
	size_t lda = (size_t)c->heads * c->head_dim;

	for (struct keys k = { 0 }; keys_next(t, &k);) {
		struct qwen_matrix m = keys_rows(t, s->cache.value, &k);
		struct cpu_gemm g = { .m = t->run->n - k.token,
				      .n = c->head_dim,
				      .k = k.n,
				      .alpha = 1,
				      .beta = k.from > 0,
				      .a = t->w->score + k.token * t->ld +
					   k.from,
				      .lda = t->ld,
				      .b = m.data,
				      .ldb = c->head_dim,
				      .b_type = gemm_type(m.type),
				      .coarse = attention_coarse(s),
				      .c = s->a + t->row + k.token * lda,
				      .ldc = lda };
		cpu_gemm_part(&g, &t->w->gemm, 0, 1);
	}
}

static void attend_run(struct worker *w, uint32_t layer, const struct run *run,
		       uint32_t head)
{
	const struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	struct attention t = { .w = w,
			       .run = run,
			       .before = s->p->position[run->first] };

	t.at = qwen_cache_at(&s->cache, layer,
			     s->p->token[run->first].sequence,
			     head / (c->heads / c->kv_heads), 0);
	t.row = ((size_t)run->first * c->heads + head) * c->head_dim;
	t.length = t.before + run->n;
	t.ld = score_ld(t.length);
	compute_scores(&t);
	softmax_scores(&t);
	mix_values(&t);
}

void cpu_prefill_attention(struct worker *w, uint32_t layer)
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
	cpu_prefill_products(w, s->h, n, qkv, 3);
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
	cpu_prefill_products(w, s->a, n, &o, 1);
}

void cpu_prefill_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows both[] = { cpu_part(w, &l->gate, s->gate, false),
				     cpu_part(w, &l->up, s->up, false) };
	size_t from, to;

	wide_norms(w, l->ffn_norm);
	cpu_prefill_products(w, s->h, s->p->n, both, 2);
	threads_part(w->t, w->thread, (size_t)s->p->n * s->m->config.ffn, 64,
		     &from, &to);
	s->m->kernels->swiglu(s->gate + from, s->up + from,
			      (uint32_t)(to - from), s->gate + from);
	threads_barrier(w->t);
	const struct rows down = cpu_part(w, &l->down, s->x, true);
	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	cpu_prefill_products(w, s->gate, s->p->n, &down, 1);
}
