/*
 * engine/cpu/cpu_prefill.c - passes of many tokens.
 *
 * Products and attention are tiled matrix products (autotune/cpu/gemm.h);
 * norms and heads are split by tokens.  Activations are rounded as the unit of
 * the weights' type takes them: cpu_activations().
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

/* Integer weights: where they stand, or who makes them f32. */
struct integers {
	const struct qwen_matrix *w;
	const struct qwen_kernels *k;
	struct cpu_gemm_ints ints;
};

static void integers_make(const void *b, size_t row, size_t n, size_t k0,
			  size_t k, float *out, size_t ldo)
{
	const struct integers *m = b;

	for (size_t i = 0; i < n; i++)
		m->k->unpack(m->w, (uint32_t)(row + i), (uint32_t)k0,
			     (uint32_t)k, out + i * ldo);
}

/* In groups of 32 with a scale, wherever that is: the product takes them so. */
static void integers_init(struct cpu_gemm *g, struct integers *to,
			  const struct qwen_matrix *m)
{
	const bool four = m->type == QWEN_W_INT4 || m->type == QWEN_W_Q4_0;
	const size_t bytes = four ? 16 : 32, groups = m->cols / QWEN_GROUP;
	const uint8_t *data = m->data;

	switch (m->type) {
	case QWEN_W_INT8:
	case QWEN_W_INT4:
		to->ints = (struct cpu_gemm_ints){ data,
						   (const uint8_t *)m->scale,
						   groups * bytes, bytes,
						   groups * 2, 2 };
		break;
	case QWEN_W_Q8_0:
	case QWEN_W_Q4_0:
		to->ints = (struct cpu_gemm_ints){
			data + 2, data, groups * (bytes + 2), bytes + 2,
			groups * (bytes + 2), bytes + 2
		};
		break;
	default:
		g->b = to;
		return;
	}
	g->b = &to->ints;
	g->b_type = four ? CPU_GEMM_INT4 : CPU_GEMM_INT8;
}

static enum cpu_gemm_type rounded_type(enum qwen_activations as)
{
	return as == QWEN_AS_BF16 ? CPU_GEMM_BF16 :
	       as == QWEN_AS_INT8 ? CPU_GEMM_INT8 :
				    CPU_GEMM_F32;
}

/* Shapes of a pass are few: they are looked up once and kept. */
static const struct choice *choice_of(struct worker *w,
				      const struct cpu_gemm *g)
{
	struct choice *c = w->choice;

	for (; c < w->choice + CHOICES; c++)
		if (c->m == g->m && c->n == g->n && c->k == g->k &&
		    c->b_type == g->b_type && c->a_as == g->a_as)
			return c;
	c = &w->choice[w->n_choices++ % CHOICES];
	*c = (struct choice){ .m = g->m, .n = g->n, .k = g->k,
			      .b_type = g->b_type, .a_as = g->a_as };
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

/* Are both of the same kind, so that a unit that takes one takes the other? */
static bool is_like(const struct cpu_gemm *a, const struct cpu_gemm *b)
{
	return a->a_as == b->a_as &&
	       (a->b_type >= CPU_GEMM_MADE) == (b->b_type >= CPU_GEMM_MADE);
}

/* What was asked for, where the product's unit need not round to it. */
static void round_inputs(struct worker *w, float *x, size_t n)
{
	enum qwen_activations as = w->s->m->activations;
	size_t from, to;

	if (as != QWEN_AS_BF16 && as != QWEN_AS_F16)
		return;
	threads_part(w->t, w->thread, n, 16, &from, &to);
	cpu_round(as, x + from, to - from);
	threads_barrier(w->t);
}

void cpu_prefill_products(struct worker *w, float *x, uint32_t n,
			  const struct rows *r, int n_rows)
{
	struct cpu_gemm g[MOST_ROWS];
	struct integers made[MOST_ROWS];
	const struct qwen_watch *watch = w->s->m->watch;

	if (watch) {
		watch->see(watch->ctx, r[0].w, x, n, w->thread);
		threads_barrier(w->t);
	}
	round_inputs(w, x, (size_t)n * r[0].w->cols);
	for (int i = 0; i < n_rows; i++) {
		const struct qwen_matrix *m = r[i].w;
		bool integer = qwen_is_integer(m->type);
		made[i] = (struct integers){ .w = m, .k = w->s->m->kernels };
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
					  .a_as = rounded_type(cpu_activations(
						  w->s->m, m->type, true)),
					  .c = r[i].y,
					  .ldc = m->rows };
		if (integer)
			integers_init(&g[i], &made[i], m);
	}
	for (int i = 0, next; i < n_rows; i = next) {
		for (next = i + 1; next < n_rows && is_like(&g[i], &g[next]);)
			next++;
		g[i].config = find_tuned(w, &g[i], next - i);
		cpu_gemm_list_part(&g[i], (size_t)(next - i), &w->gemm,
				   w->thread, threads_count(w->t));
	}
	threads_barrier(w->t);
}

void cpu_wide_norms(struct worker *w, const float *norm)
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
 * The query heads of one key-value head, of a run of tokens: their rows are
 * those of one matrix, [tokens][heads].  Keys and values come a run of positions
 * at a time, whose scores stay in a cache; what was summed up before is made
 * smaller when a larger score comes.
 */
struct attention {
	struct worker *w;
	const struct run *run;
	struct qwen_place place;
	uint32_t per, d;
	uint32_t before, length; /* positions before the run, and with it */
	/* Of the block of keys at hand: */
	uint32_t from, n;
	uint32_t token; /* the first of the run that sees some of it */
};

/* Whether scores or sums of values are coarse: where the cache rounds them. */
static bool attention_coarse(const struct cpu *s, enum qwen_weights kept)
{
	return kept != QWEN_W_F32 || qwen_is_integer(s->m->layer[0].k.type);
}

/* Queries, keys, shares and values are rounded as the keys' products are. */
static enum cpu_gemm_type attention_as(const struct cpu *s,
				       enum qwen_weights kept)
{
	enum qwen_activations as =
		cpu_activations(s->m, s->m->layer[0].k.type, true);

	return as == QWEN_AS_F32 || as == QWEN_AS_F16 ||
			       kept == QWEN_W_F32 ?
		       CPU_GEMM_F32 :
		       CPU_GEMM_BF16;
}

/* Queries side by side. */
static void copy_queries(const struct attention *t)
{
	const struct cpu *s = t->w->s;
	const struct qwen_config *c = &s->m->config;
	const uint32_t n = t->per * t->d;

	for (uint32_t i = 0; i < t->run->n; i++) {
		size_t row = (size_t)(t->run->first + i) * c->heads +
			     t->place.head * t->per;

		memcpy(t->w->query + (size_t)i * n, s->q + row * t->d,
		       n * sizeof(float));
	}
}

/* Are its bytes what a product takes? */
static bool is_taken(enum qwen_weights w)
{
	return w <= QWEN_W_BF16;
}

/* Bytes become f32; what blocks of a table hold is put side by side. */
static void widen_rows(const struct attention *t, const struct qwen_matrix *m,
		       uint32_t at)
{
	const struct qwen_kernels *k = t->w->s->m->kernels;
	float *to = t->w->wide + (size_t)at * t->d;

	if (m->type == QWEN_W_F8)
		k->widen(m->type, m->data, (size_t)m->rows * t->d, to);
	else if (!is_taken(m->type))
		for (uint32_t i = 0; i < m->rows; i++)
			k->unpack(m, i, 0, t->d, to + (size_t)i * t->d);
	else
		memcpy((uint8_t *)t->w->wide +
			       at * (qwen_matrix_bytes(m) / m->rows),
		       m->data, qwen_matrix_bytes(m));
}

static struct qwen_matrix block_rows(const struct attention *t,
				     enum qwen_part_of part)
{
	const struct cpu *s = t->w->s;
	struct qwen_place p = t->place;

	p.part = part;
	struct qwen_matrix m = qwen_cache_rows(&s->cache, &p, t->from, t->n);
	if (is_taken(m.type) && m.rows == t->n)
		return m;
	for (uint32_t at = 0; at < t->n; at += m.rows) {
		m = qwen_cache_rows(&s->cache, &p, t->from + at, t->n - at);
		widen_rows(t, &m, at);
	}
	return (struct qwen_matrix){ is_taken(m.type) ? m.type : QWEN_W_F32,
				     t->n, t->d, t->w->wide, NULL };
}

/* Scores of the tokens that see some of the block. */
static void compute_scores(const struct attention *t)
{
	const enum qwen_weights kept = t->w->s->cache.type.keys;
	const struct qwen_matrix m = block_rows(t, QWEN_KEYS);
	const size_t row = (size_t)t->token * t->per;
	const struct cpu_gemm g = { .m = t->run->n * t->per - row,
				    .n = t->n,
				    .k = t->d,
				    .alpha = (float)(1 / sqrt(t->d)),
				    .a = t->w->query + row * t->d,
				    .lda = t->d,
				    .b = m.data,
				    .ldb = t->d,
				    .b_type = gemm_type(m.type),
				    .b_by_n = true,
				    .coarse = attention_coarse(t->w->s,
							       kept),
				    .a_as = attention_as(t->w->s, kept),
				    .c = t->w->score + row * QWEN_RUN,
				    .ldc = QWEN_RUN };

	cpu_gemm_part(&g, &t->w->gemm, 0, 1);
}

/* Scores become exp(score - top); those that a token does not see are 0. */
static void exp_scores(const struct attention *t)
{
	const struct qwen_kernels *k = t->w->s->m->kernels;

	for (uint32_t i = t->token * t->per; i < t->run->n * t->per; i++) {
		float *score = t->w->score + (size_t)i * QWEN_RUN;
		float *sum = t->w->sum + (size_t)i * t->d;
		struct part *part = &t->w->part[i];
		uint32_t seen = t->before + i / t->per + 1 - t->from;
		seen = seen < t->n ? seen : t->n;
		float top = k->largest(score, seen);
		if (t->from && top > part->top) {
			float share = expf(part->top - top);
			part->sum *= share;
			for (uint32_t j = 0; j < t->d; j++)
				sum[j] *= share;
		}
		if (!t->from || top > part->top)
			part->top = top;
		part->sum += k->exp_sum(score, seen, part->top);
		memset(score + seen, 0, (t->n - seen) * sizeof(*score));
	}
}

static void mix_values(const struct attention *t)
{
	const enum qwen_weights kept = t->w->s->cache.type.values;
	const struct qwen_matrix m = block_rows(t, QWEN_VALUES);
	const size_t row = (size_t)t->token * t->per;
	const struct cpu_gemm g = { .m = t->run->n * t->per - row,
				    .n = t->d,
				    .k = t->n,
				    .alpha = 1,
				    .beta = t->from > 0,
				    .a = t->w->score + row * QWEN_RUN,
				    .lda = QWEN_RUN,
				    .b = m.data,
				    .ldb = t->d,
				    .b_type = gemm_type(m.type),
				    .coarse = attention_coarse(t->w->s,
							       kept),
				    .a_as = attention_as(t->w->s, kept),
				    .c = t->w->sum + row * t->d,
				    .ldc = t->d };

	cpu_gemm_part(&g, &t->w->gemm, 0, 1);
}

static void put_sums(const struct attention *t)
{
	const struct cpu *s = t->w->s;
	const uint32_t heads = s->m->config.heads;

	for (uint32_t i = 0; i < t->run->n * t->per; i++) {
		size_t row = (size_t)(t->run->first + i / t->per) * heads +
			     t->place.head * t->per + i % t->per;
		const float *sum = t->w->sum + (size_t)i * t->d;
		float share = (float)(1 / t->w->part[i].sum);
		float *a = s->a + row * t->d;

		memset(a, 0, t->d * sizeof(*a));
		s->m->kernels->axpy(share, sum, a, t->d);
		cpu_turn_back(s, a);
	}
}

static void attend_run(struct worker *w, uint32_t layer, const struct run *run,
		       uint32_t head)
{
	const struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	struct attention t = {
		.w = w,
		.run = run,
		.place = { .layer = layer, .head = head,
			   .sequence = s->p->token[run->first].sequence },
		.per = c->heads / c->kv_heads,
		.d = c->head_dim,
		.before = s->p->position[run->first],
	};

	t.length = t.before + run->n;
	memset(w->part, 0, (size_t)run->n * t.per * sizeof(*w->part));
	copy_queries(&t);
	for (; t.from < t.length; t.from += t.n) {
		t.n = t.length - t.from < s->cache.run ? t.length - t.from :
							 s->cache.run;
		t.token = t.from > t.before ? t.from - t.before : 0;
		compute_scores(&t);
		exp_scores(&t);
		mix_values(&t);
	}
	put_sums(&t);
}

/* Later runs of a prompt have more to look at: the last come first. */
static void attend_runs(struct worker *w, uint32_t layer)
{
	const struct cpu *s = w->s;
	const uint32_t kv_heads = s->m->config.kv_heads;
	const size_t items = (size_t)s->n_runs * kv_heads;
	struct threads_deal deal;
	size_t from, to;

	threads_deal(&deal, w->t, w->thread, items, 1);
	while (threads_take(&deal, &from, &to))
		for (; from < to; from++) {
			size_t i = items - 1 - from;
			attend_run(w, layer, &s->run[i / kv_heads],
				   (uint32_t)(i % kv_heads));
		}
	threads_barrier(w->t);
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

	cpu_wide_norms(w, l->attn_norm);
	cpu_prefill_products(w, s->h, n, qkv, 3);
	threads_part(w->t, w->thread, n, 1, &from, &to);
	for (uint32_t i = (uint32_t)from; i < to; i++) {
		for (uint32_t h = 0; h < c->heads; h++)
			cpu_q_turn(s, layer, i, h);
		for (uint32_t h = 0; h < c->kv_heads; h++)
			cpu_kv_turn(s, layer, i, h);
	}
	threads_barrier(w->t);
	attend_runs(w, layer);
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

	cpu_wide_norms(w, l->ffn_norm);
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
