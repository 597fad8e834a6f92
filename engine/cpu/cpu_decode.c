/*
 * engine/cpu/cpu_decode.c - passes of few tokens.
 *
 * Bandwidth of the weights bounds them.  Small work (norms, quantization) is
 * repeated by every thread rather than shared.  Rows of weights are dealt out
 * dynamically, so that nobody waits for a thread whose memory is slower at the
 * moment, and in large pieces, of which memory gives most.  Then heads of keys
 * are dealt out, and attended with by who has them, where they have one run of
 * positions.  Where there are more, runs are dealt out, too, behind a barrier
 * of their own: the sixth of a layer.  But of a tree the branches have the same
 * positions: a token attends to what the pass writes before the next one is
 * stored, so what it sees are its ancestors.  A run's sums do not depend on who
 * makes them, and are put together in order.
 */
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu_int.h"

/* ---- attention ---- */

/* Are there more items than heads, so that they are shared by themselves? */
static bool is_deep(const struct cpu *s)
{
	return s->item[s->p->n] > s->p->n * s->m->config.kv_heads;
}

/* The first position that the pass writes of a token's sequence. */
static uint32_t first_written(const struct qwen_pass *p, uint32_t n)
{
	uint32_t first = p->position[n];

	for (uint32_t i = 0; i < p->n; i++)
		if (p->token[i].sequence == p->token[n].sequence &&
		    p->position[i] < first)
			first = p->position[i];
	return first;
}

void cpu_decode_init(struct cpu *s)
{
	const struct qwen_pass *p = s->p;

	for (uint32_t n = 0; n < p->n; n++) {
		uint32_t runs = p->position[n] / s->cache.run + 1;
		s->item[n + 1] = s->item[n] + runs * s->m->config.kv_heads;
	}
	for (uint32_t n = 0; n < p->n; n++)
		s->at_once[n] = !is_deep(s) ? 0 :
				p->tree ? first_written(p, n) / s->cache.run :
					  UINT32_MAX;
}

/*
 * Rows of a cache that are to come: a page of memory of their own, which the
 * hardware's prefetcher does not foresee.
 */
static void fetch_rows(const struct qwen_cache *c, const struct qwen_place *p,
		       uint32_t from, uint32_t n)
{
	const struct qwen_matrix m = qwen_cache_rows(c, p, from, n);
	const size_t bytes = qwen_matrix_bytes(&m);

	for (size_t i = 0; i < bytes; i += 64)
		__builtin_prefetch((const char *)m.data + i);
}

/* What one run of positions adds to the query heads of a key-value head. */
static void attend_run(struct worker *w, uint32_t layer, uint32_t n,
		       uint32_t kv, uint32_t run)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_kernels *k = s->m->kernels;
	const uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	const uint32_t from = run * s->cache.run;
	const uint32_t left = s->p->position[n] + 1 - from;
	const uint32_t some = left < s->cache.run ? left : s->cache.run;
	const size_t item = s->item[n] + (size_t)run * c->kv_heads + kv;
	struct qwen_place p = { QWEN_KEYS, layer, s->p->token[n].sequence, kv };
	float *sums = s->sums + item * per * d;
	float scale = (float)(1 / sqrt(d));

	struct qwen_matrix m;
	for (uint32_t i = 0; i < some; i += m.rows) {
		m = qwen_cache_rows(&s->cache, &p, from + i, some - i);
		if (i + m.rows < some)
			fetch_rows(&s->cache, &p, from + i + m.rows,
				   some - i - m.rows);
		k->scores(&m, s->q + ((size_t)n * c->heads + kv * per) * d, per,
			  w->score + i, QWEN_RUN);
	}
	for (uint32_t h = 0; h < per; h++) {
		float *score = w->score + h * QWEN_RUN;
		struct part *part = &s->part[item * per + h];
		for (uint32_t i = 0; i < some; i++)
			score[i] *= scale;
		part->top = k->largest(score, some);
		part->sum = k->exp_sum(score, some, part->top);
	}
	memset(sums, 0, (size_t)per * d * sizeof(*sums));
	p.part = QWEN_VALUES;
	for (uint32_t i = 0; i < some; i += m.rows) {
		m = qwen_cache_rows(&s->cache, &p, from + i, some - i);
		if (i + m.rows < some)
			fetch_rows(&s->cache, &p, from + i + m.rows,
				   some - i - m.rows);
		k->mix(&m, w->score + i, QWEN_RUN, per, sums);
	}
}

/* All runs of one query head into its result, in their order. */
static void merge_runs(const struct cpu *s, uint32_t n, uint32_t head)
{
	const struct qwen_config *c = &s->m->config;
	const uint32_t per = c->heads / c->kv_heads, d = c->head_dim;
	const uint32_t runs = s->p->position[n] / s->cache.run + 1;
	size_t at = ((size_t)s->item[n] + head / per) * per + head % per;
	float *a = s->a + ((size_t)n * c->heads + head) * d;
	const struct part *part = &s->part[at];
	float top = part->top;
	double sum = 0;

	for (uint32_t r = 1; r < runs; r++)
		top = fmaxf(top, part[(size_t)r * c->heads].top);
	memset(a, 0, d * sizeof(*a));
	for (uint32_t r = 0; r < runs; r++, at += c->heads, part += c->heads) {
		float share = expf(part->top - top);
		sum += share * part->sum;
		s->m->kernels->axpy(share, s->sums + at * d, a, d);
	}
	for (uint32_t i = 0; i < d; i++)
		a[i] *= (float)(1 / sum);
	cpu_turn_back(s, a);
}

/* A run that is done; who has done a head's last puts them together. */
static void run_done(struct cpu *s, uint32_t n, uint32_t kv)
{
	const struct qwen_config *c = &s->m->config;
	const uint32_t per = c->heads / c->kv_heads;
	_Atomic uint32_t *there = &s->there[n * c->kv_heads + kv];

	if (atomic_fetch_add(there, 1) < s->p->position[n] / s->cache.run)
		return;
	*there = 0;
	for (uint32_t h = 0; h < per; h++)
		merge_runs(s, n, kv * per + h);
}

/* Runs of all tokens and heads, dealt out; ends in a barrier. */
static void attend_deep(struct worker *w, uint32_t layer)
{
	const struct cpu *s = w->s;
	const uint32_t kv_heads = s->m->config.kv_heads;
	struct threads_deal deal;
	size_t from, to;

	threads_deal(&deal, w->t, w->thread, s->item[s->p->n], 1);
	while (threads_take(&deal, &from, &to))
		for (; from < to; from++) {
			uint32_t n = 0, i;
			while (from >= s->item[n + 1])
				n++;
			i = (uint32_t)from - s->item[n];
			if (i / kv_heads >= s->at_once[n])
				continue;
			attend_run(w, layer, n, i % kv_heads, i / kv_heads);
			run_done(w->s, n, i % kv_heads);
		}
	threads_barrier(w->t);
}

/* ---- products ---- */

/* Does it take its input as bf16, of two bytes? */
static bool takes_pairs(const struct cpu *s, enum qwen_weights w)
{
	return w == QWEN_W_BF16 && s->pairs;
}

void cpu_input(struct worker *w, const float *x, uint32_t n,
	       const struct rows *r, int n_rows)
{
	const struct qwen_model *m = w->s->m;
	uint32_t cols = r[0].w->cols;
	unsigned all = 0;
	bool pairs = false;

	for (int i = 0; i < n_rows; i++) {
		all |= 1u << cpu_activations(m, r[i].w->type, false);
		pairs = pairs || takes_pairs(w->s, r[i].w->type);
	}
	if (pairs)
		m->kernels->narrow(QWEN_W_BF16, x, (size_t)n * cols, w->xp);
	for (uint32_t i = 0; i < n && all >> QWEN_AS_INT8; i++)
		m->kernels->quantize(x + (size_t)i * cols, cols, &w->xq[i]);
	if (m->activations != QWEN_AS_BF16 && m->activations != QWEN_AS_F16)
		return;
	memcpy(w->xr, x, (size_t)n * cols * sizeof(*x));
	cpu_round(m->activations, w->xr, (size_t)n * cols);
}

/*
 * Whole cache lines of results, of enough weights that a stream of them gets
 * going and few enough that nobody waits long for the last ones.
 */
#define DEALT_BYTES 65536

size_t cpu_grain(const struct qwen_matrix *m)
{
	return (DEALT_BYTES / (qwen_matrix_bytes(m) / m->rows) / 16 + 1) * 16;
}

/* Integer weights as f32, a row at a time: where x must not become bytes. */
static void product_wide(struct worker *w, const float *x, uint32_t n,
			 const struct rows *r)
{
	const struct qwen_kernels *k = w->s->m->kernels;
	const struct qwen_matrix row = { QWEN_W_F32, 1, r->w->cols, w->row,
					 NULL };

	for (uint32_t i = (uint32_t)r->r0; i < r->r1; i++) {
		k->unpack(r->w, i, 0, r->w->cols, w->row);
		k->product(&row, 0, 1, x, row.cols, n, r->y + i, r->w->rows,
			   r->add);
	}
}

void cpu_product(struct worker *w, const float *x, uint32_t first, uint32_t n,
		 const struct rows *r)
{
	const struct qwen_kernels *k = w->s->m->kernels;
	const struct qwen_matrix *m = r->w;
	enum qwen_activations as;

	if (takes_pairs(w->s, m->type)) {
		k->product_pairs(m, (uint32_t)r->r0, (uint32_t)r->r1,
				 w->xp + (size_t)first * m->cols, m->cols, n,
				 r->y, m->rows, r->add);
		return;
	}
	as = cpu_activations(w->s->m, m->type, false);
	x = (as == QWEN_AS_F32 ? x : w->xr) + (size_t)first * m->cols;
	if (as == QWEN_AS_INT8)
		k->product_int(m, (uint32_t)r->r0, (uint32_t)r->r1,
			       w->xq + first, n, r->y, m->rows, r->add);
	else if (qwen_is_integer(m->type))
		product_wide(w, x, n, r);
	else
		k->product(m, (uint32_t)r->r0, (uint32_t)r->r1, x, m->cols, n,
			   r->y, m->rows, r->add);
}

/* A matrix's product with all tokens, shared by the threads; a barrier. */
static void multiply_shared(struct worker *w, const float *x,
			    const struct qwen_matrix *m, float *y)
{
	struct rows r = { .w = m, .y = y, .add = true };
	struct threads_deal d;

	cpu_input(w, x, w->s->p->n, &r, 1);
	threads_deal(&d, w->t, w->thread, m->rows, cpu_grain(m));
	while (threads_take(&d, &r.r0, &r.r1))
		cpu_product(w, x, 0, w->s->p->n, &r);
	threads_barrier(w->t);
}

/* ---- a layer ---- */

const float *cpu_norm_tokens(struct worker *w, const float *norm)
{
	const struct qwen_config *c = &w->s->m->config;

	for (size_t i = 0; i < w->s->p->n; i++)
		w->s->m->kernels->rms_norm(w->s->x + i * c->hidden, norm,
					   c->hidden, (float)c->norm_eps,
					   w->h + i * c->hidden);
	return w->h;
}

/* A key-value head whose queries, keys and values are there. */
static void finish_head(struct worker *w, uint32_t layer, uint32_t h)
{
	struct cpu *s = w->s;
	uint32_t per = s->m->config.heads / s->m->config.kv_heads;

	for (uint32_t n = 0; n < s->p->n; n++) {
		for (uint32_t i = h * per; i < (h + 1) * per; i++)
			cpu_q_turn(s, layer, n, i);
		cpu_kv_turn(s, layer, n, h);
		for (uint32_t run = s->at_once[n];
		     run <= s->p->position[n] / s->cache.run; run++) {
			attend_run(w, layer, n, h, run);
			run_done(s, n, h);
		}
	}
}

/* Rows [from, to) of the products one behind the other. */
static void multiply_listed(struct worker *w, const float *x,
			    const struct rows *list, int n, size_t from,
			    size_t to)
{
	for (int i = 0; i < n; i++) {
		const size_t rows = list[i].w->rows;
		struct rows r = list[i];
		r.r0 = from < rows ? from : rows;
		r.r1 = to < rows ? to : rows;
		if (r.r0 < r.r1)
			cpu_product(w, x, 0, w->s->p->n, &r);
		from -= r.r0;
		to -= r.r1;
	}
}

void cpu_decode_attention(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows qkv[] = { { .w = &l->q, .y = s->q },
				    { .w = &l->k, .y = s->k },
				    { .w = &l->v, .y = s->v } };
	const float *x = cpu_norm_tokens(w, l->attn_norm);
	struct threads_deal deal;
	size_t from, to;

	cpu_input(w, x, s->p->n, qkv, 3);
	threads_deal(&deal, w->t, w->thread,
		     (size_t)l->q.rows + l->k.rows + l->v.rows,
		     cpu_grain(&l->q));
	while (threads_take(&deal, &from, &to))
		multiply_listed(w, x, qkv, 3, from, to);
	threads_barrier(w->t);
	threads_deal(&deal, w->t, w->thread, s->m->config.kv_heads, 1);
	while (threads_take(&deal, &from, &to))
		for (; from < to; from++)
			finish_head(w, layer, (uint32_t)from);
	threads_barrier(w->t);
	if (is_deep(s))
		attend_deep(w, layer);
	multiply_shared(w, s->a, &l->o, s->x);
}

void cpu_decode_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_layer *l = &s->m->layer[layer];
	struct rows gate = { .w = &l->gate, .y = s->gate };
	struct rows up = { .w = &l->up, .y = s->up };
	const struct rows both[] = { gate, up };
	const float *x = cpu_norm_tokens(w, l->ffn_norm);
	uint32_t ffn = s->m->config.ffn;
	struct threads_deal d;

	cpu_input(w, x, s->p->n, both, 2);
	threads_deal(&d, w->t, w->thread, ffn, cpu_grain(gate.w));
	while (threads_take(&d, &gate.r0, &gate.r1)) {
		up.r0 = gate.r0;
		up.r1 = gate.r1;
		cpu_product(w, x, 0, s->p->n, &gate);
		cpu_product(w, x, 0, s->p->n, &up);
		for (size_t i = 0, at = gate.r0; i < s->p->n; i++, at += ffn)
			s->m->kernels->swiglu(s->gate + at, s->up + at,
					      (uint32_t)(gate.r1 - gate.r0),
					      s->gate + at);
	}
	threads_barrier(w->t);
	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	multiply_shared(w, s->gate, &l->down, s->x);
}
