/*
 * engine/cpu/cpu_experts.c - feed-forward networks that tokens choose.
 *
 * A router gives every token a score for each expert, in f32; the largest few
 * (of equals the first) are used, with their part of the softmax as shares.
 * What a token and one of its experts do together is a pair.  Pairs are sorted
 * by expert, so that an expert's weights are read once for all tokens that use
 * it, and those of an expert that none uses are not touched.  A pair's share
 * scales what goes into its last product; what comes out is added to the token
 * in the order of experts, so that sums depend on nothing but the token.
 */
#include <math.h>
#include <string.h>

#include "engine/cpu/cpu_int.h"

struct pair {
	uint32_t expert, token;
	float share;
};

struct experts {
	float *score;	   /* [max_tokens][experts] */
	struct pair *best; /* [max_tokens][used]: of each token, sorted */
	struct pair *pair; /* the same, sorted by expert, then by token */
	uint32_t *at;	   /* [max_tokens][used]: their places in `pair` */
	uint32_t *first;   /* [experts + 1]: of each expert, in `pair` */
	/* [max_tokens][used][hidden]: of wide passes, in and out */
	float *x;
};

void cpu_experts_init(struct cpu *s)
{
	const struct qwen_config *c = &s->m->config;
	const size_t n = s->shape.max_tokens, pairs = n * c->experts.used;

	if (!c->experts.n)
		return;
	s->experts = arena_alloc(&s->mem, sizeof(*s->experts));
	struct experts *x = s->experts;
	x->score = arena_alloc(&s->mem, n * c->experts.n * sizeof(*x->score));
	x->best = arena_alloc(&s->mem, pairs * sizeof(*x->best));
	x->pair = arena_alloc(&s->mem, pairs * sizeof(*x->pair));
	x->at = arena_alloc(&s->mem, pairs * sizeof(*x->at));
	x->first = arena_alloc(&s->mem,
			       (c->experts.n + 1) * sizeof(*x->first));
	if (n > NARROW)
		x->x = arena_alloc(&s->mem, pairs * c->hidden * sizeof(*x->x));
}

/* ---- who goes where ---- */

/* Scores of one token h [hidden]: the same in a pass of any width. */
static void score_token(const struct cpu *s, uint32_t layer, const float *h,
			size_t token)
{
	const struct qwen_matrix *m = &s->m->layer[layer].router;

	s->m->kernels->product(m, 0, m->rows, h, m->cols, 1,
			       s->experts->score + token * m->rows, m->rows,
			       false);
}

/* The largest scores, by expert, and their shares. */
static void choose(const struct cpu *s, uint32_t token)
{
	const struct qwen_experts *c = &s->m->config.experts;
	struct pair *best = s->experts->best + (size_t)token * c->used;
	float *score = s->experts->score + (size_t)token * c->n;
	const float top = s->m->kernels->largest(score, c->n);
	double sum = 0, part = 0;

	for (uint32_t i = 0; i < c->n; i++)
		sum += exp((double)score[i] - top);
	for (uint32_t k = 0; k < c->used; k++) {
		uint32_t most = 0;
		while (isnan(score[most]) && most + 1 < c->n)
			most++;
		for (uint32_t i = most + 1; i < c->n; i++)
			if (score[i] > score[most])
				most = i;
		best[k] = (struct pair){ most, token,
					 (float)(exp((double)score[most] -
						     top) / sum) };
		part += best[k].share;
		score[most] = NAN; /* it is taken */
	}
	for (uint32_t k = 0; k < c->used && c->normed; k++)
		best[k].share = (float)(best[k].share / part);
	for (uint32_t k = 1; k < c->used; k++)
		for (uint32_t i = k; i && best[i].expert < best[i - 1].expert;
		     i--) {
			struct pair swap = best[i];
			best[i] = best[i - 1];
			best[i - 1] = swap;
		}
}

/* All pairs, by expert. */
static void sort_pairs(const struct cpu *s)
{
	const struct qwen_experts *c = &s->m->config.experts;
	const size_t pairs = (size_t)s->p->n * c->used;
	struct experts *x = s->experts;

	memset(x->first, 0, (c->n + 1) * sizeof(*x->first));
	for (size_t i = 0; i < pairs; i++)
		x->first[x->best[i].expert + 1]++;
	for (uint32_t e = 0; e < c->n; e++)
		x->first[e + 1] += x->first[e];
	for (size_t i = 0; i < pairs; i++) {
		x->at[i] = x->first[x->best[i].expert]++;
		x->pair[x->at[i]] = x->best[i];
	}
	for (uint32_t e = c->n; e > 0; e--)
		x->first[e] = x->first[e - 1];
	x->first[0] = 0;
}

/* Scores, choices and the order of pairs; ends in a barrier. */
static void route(struct worker *w, uint32_t layer, const float *h)
{
	struct cpu *s = w->s;
	const uint32_t hidden = s->m->config.hidden;
	size_t from, to;

	threads_part(w->t, w->thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++) {
		score_token(s, layer, h + i * hidden, i);
		choose(s, (uint32_t)i);
	}
	threads_barrier(w->t);
	if (w->thread == 0)
		sort_pairs(s);
	threads_barrier(w->t);
}

/* ---- few tokens ---- */

/* The used expert that the i-th row of all is of, and which row of it. */
static uint32_t expert_of(const struct experts *x, size_t *row, size_t rows)
{
	uint32_t e = 0;

	for (;; e++) {
		if (x->first[e] == x->first[e + 1])
			continue;
		if (*row < rows)
			return e;
		*row -= rows;
	}
}

static uint32_t count_used(const struct experts *x, uint32_t n)
{
	uint32_t used = 0;

	for (uint32_t e = 0; e < n; e++)
		used += x->first[e] < x->first[e + 1];
	return used;
}

/* Rows r0 .. r1 of an expert's first two matrices, for its tokens. */
static void open_rows(struct worker *w, uint32_t layer, uint32_t e,
		      const float *h, size_t r0, size_t r1)
{
	const struct cpu *s = w->s;
	const struct qwen_expert *m = &s->m->layer[layer].expert[e];
	const struct experts *x = s->experts;
	const size_t ffn = s->m->config.ffn;

	for (uint32_t p = x->first[e]; p < x->first[e + 1]; p++) {
		float *gate = s->gate + p * ffn, *up = s->up + p * ffn;
		const uint32_t token = x->pair[p].token;
		const struct rows g = { &m->gate, r0, r1, gate, false };
		const struct rows u = { &m->up, r0, r1, up, false };

		cpu_product(w, h, token, 1, &g);
		cpu_product(w, h, token, 1, &u);
		s->m->kernels->swiglu(gate + r0, up + r0, (uint32_t)(r1 - r0),
				      gate + r0);
		for (size_t i = r0; i < r1; i++)
			gate[i] *= x->pair[p].share;
	}
}

/* Rows of all experts' last matrices, added to the tokens in their order. */
static void close_rows(struct worker *w, uint32_t layer, size_t r0, size_t r1)
{
	const struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct experts *x = s->experts;

	for (uint32_t e = 0; e < c->experts.n; e++)
		for (uint32_t p = x->first[e]; p < x->first[e + 1]; p++) {
			const struct rows r = {
				&s->m->layer[layer].expert[e].down, r0, r1,
				s->x + (size_t)x->pair[p].token * c->hidden,
				true
			};
			cpu_product(w, s->gate, p, 1, &r);
		}
}

static void narrow_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct rows both[] = { { .w = &l->expert[0].gate },
				     { .w = &l->expert[0].up } };
	const struct rows down = { .w = &l->expert[0].down };
	const float *h = cpu_norm_tokens(w, l->ffn_norm);
	struct threads_deal d;
	size_t from, to;

	route(w, layer, h);
	cpu_input(w, h, s->p->n, both, 2);
	threads_deal(&d, w->t, w->thread,
		     (size_t)count_used(s->experts, c->experts.n) * c->ffn,
		     cpu_grain(both[0].w));
	while (threads_take(&d, &from, &to))
		while (from < to) {
			size_t r0 = from;
			uint32_t e = expert_of(s->experts, &r0, c->ffn);
			size_t some = to - from < c->ffn - r0 ? to - from :
								c->ffn - r0;
			open_rows(w, layer, e, h, r0, r0 + some);
			from += some;
		}
	threads_barrier(w->t);
	cpu_input(w, s->gate, s->p->n * c->experts.used, &down, 1);
	threads_deal(&d, w->t, w->thread, c->hidden, 16);
	while (threads_take(&d, &from, &to))
		close_rows(w, layer, from, to);
	threads_barrier(w->t);
}

/* ---- many tokens ---- */

/* The tokens' inputs, a row for each pair; ends in a barrier. */
static void gather(struct worker *w)
{
	const struct cpu *s = w->s;
	const size_t hidden = s->m->config.hidden;
	size_t from, to;

	threads_part(w->t, w->thread,
		     (size_t)s->p->n * s->m->config.experts.used, 1, &from,
		     &to);
	for (size_t p = from; p < to; p++)
		memcpy(s->experts->x + p * hidden,
		       s->h + s->experts->pair[p].token * hidden,
		       hidden * sizeof(float));
	threads_barrier(w->t);
}

/* Activations of all pairs times their shares; ends in a barrier. */
static void activate(struct worker *w)
{
	const struct cpu *s = w->s;
	const size_t ffn = s->m->config.ffn;
	size_t from, to;

	threads_part(w->t, w->thread,
		     (size_t)s->p->n * s->m->config.experts.used, 1, &from,
		     &to);
	for (size_t p = from; p < to; p++) {
		float *gate = s->gate + p * ffn;
		s->m->kernels->swiglu(gate, s->up + p * ffn, (uint32_t)ffn,
				      gate);
		for (size_t i = 0; i < ffn; i++)
			gate[i] *= s->experts->pair[p].share;
	}
	threads_barrier(w->t);
}

/* What the pairs made, added to their tokens; ends in a barrier. */
static void scatter(struct worker *w)
{
	const struct cpu *s = w->s;
	const size_t hidden = s->m->config.hidden;
	const uint32_t used = s->m->config.experts.used;
	size_t from, to;

	threads_part(w->t, w->thread, s->p->n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		for (uint32_t k = 0; k < used; k++)
			s->m->kernels->axpy(
				1, s->experts->x +
					   s->experts->at[i * used + k] * hidden,
				s->x + i * hidden, (uint32_t)hidden);
	threads_barrier(w->t);
}

static void wide_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;
	const struct qwen_config *c = &s->m->config;
	const struct qwen_layer *l = &s->m->layer[layer];
	const struct experts *x = s->experts;

	cpu_wide_norms(w, l->ffn_norm);
	route(w, layer, s->h);
	gather(w);
	for (uint32_t e = 0; e < c->experts.n; e++) {
		const struct qwen_expert *m = &l->expert[e];
		const size_t first = x->first[e];
		const struct rows both[] = {
			cpu_part(w, &m->gate, s->gate + first * c->ffn, false),
			cpu_part(w, &m->up, s->up + first * c->ffn, false)
		};
		if (first < x->first[e + 1])
			cpu_prefill_products(w, x->x + first * c->hidden,
					     x->first[e + 1] - (uint32_t)first,
					     both, 2);
	}
	activate(w);
	for (uint32_t e = 0; e < c->experts.n; e++) {
		const size_t first = x->first[e];
		const struct rows down = cpu_part(w, &l->expert[e].down,
						  x->x + first * c->hidden,
						  false);
		if (first < x->first[e + 1])
			cpu_prefill_products(w, s->gate + first * c->ffn,
					     x->first[e + 1] - (uint32_t)first,
					     &down, 1);
	}
	scatter(w);
}

void cpu_experts_ffn(struct worker *w, uint32_t layer)
{
	struct cpu *s = w->s;

	if (w->thread == 0)
		s->stopped = s->p->stop && *s->p->stop;
	if (s->p->n <= NARROW)
		narrow_ffn(w, layer);
	else
		wide_ffn(w, layer);
}
