/*
 * engine/train/op_attention.c - attention in blocks, forward and backward.
 *
 * Scores exist for a block of queries and one of keys at a time and are made
 * again on the way back, so memory grows with the tokens, not their square.
 * A task owns what it writes: forward a block of queries with all heads that
 * share keys, backward the whole row of a key-value head.
 */
#include <math.h>
#include <string.h>

#include "engine/train/kernels.h"

#define BLOCK 64

struct shape {
	uint32_t dim, padded;	/* of a head; a multiple of TRAIN_PAD */
	uint32_t kv_heads, group; /* heads of queries that share keys */
	size_t q_ld, kv_ld;
	uint32_t length, rows, blocks;
	float scale;
	const uint32_t *position;
};

static struct shape shape_of(const struct train_worker *w,
			     const uint32_t *position)
{
	const struct train_graph *g = w->g;
	const struct qwen_config *c = &g->config;

	return (struct shape){
		.dim = c->head_dim,
		.padded = (c->head_dim + TRAIN_PAD - 1) / TRAIN_PAD * TRAIN_PAD,
		.kv_heads = c->kv_heads, .group = c->heads / c->kv_heads,
		.q_ld = (size_t)c->heads * c->head_dim,
		.kv_ld = (size_t)c->kv_heads * c->head_dim,
		.length = g->length, .rows = g->rows,
		.blocks = (g->length + BLOCK - 1) / BLOCK,
		.scale = 1 / sqrtf((float)c->head_dim), .position = position,
	};
}

/* Tokens [at, at + n) of one row. */
struct block {
	size_t at;
	uint32_t n;
};

static struct block block_at(const struct shape *s, uint32_t row, uint32_t i)
{
	uint32_t from = i * BLOCK, left = s->length - from;

	return (struct block){ (size_t)row * s->length + from,
			       left < BLOCK ? left : BLOCK };
}

/* The first block of keys that a block of queries sees. */
static uint32_t first_seen(const struct shape *s, uint32_t row,
			   const struct block *q)
{
	size_t start = q->at - s->position[q->at];

	return (uint32_t)((start - (size_t)row * s->length) / BLOCK);
}

/* Keys [*from, *to) of a block that a token sees. */
static void keys_seen(const struct shape *s, const struct block *k, size_t t,
		      uint32_t *from, uint32_t *to)
{
	size_t start = t - s->position[t], end = k->at + k->n;

	end = t + 1 < end ? t + 1 : end;
	start = start > k->at ? start : k->at;
	*from = start < end ? (uint32_t)(start - k->at) : 0;
	*to = start < end ? (uint32_t)(end - k->at) : 0;
}

/* ---- blocks as products take them ---- */

/* out [BLOCK][padded], zeros around what there is */
static void pack_rows(const struct shape *s, const float *in, size_t ld,
		      const struct block *b, float *out)
{
	memset(out, 0, (size_t)BLOCK * s->padded * sizeof(*out));
	for (uint32_t i = 0; i < b->n; i++)
		memcpy(out + (size_t)i * s->padded, in + (b->at + i) * ld,
		       s->dim * sizeof(*out));
}

/* out [dim][BLOCK] */
static void pack_turned(const struct shape *s, const float *in, size_t ld,
			const struct block *b, float *out)
{
	if (b->n < BLOCK)
		memset(out, 0, (size_t)BLOCK * s->dim * sizeof(*out));
	train_kernels_best()->turn(in + b->at * ld, ld, b->n, s->dim, out,
				   BLOCK);
}

/* ---- forward ---- */

struct forward {
	struct shape s;
	const float *q, *k, *v;
	float *y, *lse;
	enum qwen_weights round; /* F32: not at all */
	/* of the thread */
	float *turned, *values, *scores;
	float *sums;	   /* [group][BLOCK][padded] */
	float *top, *total; /* [group][BLOCK] */
};

static void forward_lay_out(struct train_worker *w, struct forward *f)
{
	const struct shape *s = &f->s;
	size_t wide = (size_t)BLOCK * s->padded, square = BLOCK * BLOCK;
	float *p = train_space(w, 2 * wide + square +
				  s->group * (wide + 2 * BLOCK));

	f->turned = p;
	f->values = p + wide;
	f->scores = p + 2 * wide;
	f->sums = f->scores + square;
	f->top = f->sums + s->group * wide;
	f->total = f->top + s->group * BLOCK;
}

/* Scores of one head become weights, and what was summed is scaled to them. */
static void weigh_block(struct forward *f, uint32_t h, const struct block *q,
			const struct block *k)
{
	const struct train_kernels *e = train_kernels_best();
	float *top = f->top + h * BLOCK, *total = f->total + h * BLOCK;
	uint32_t from, to;

	for (uint32_t i = 0; i < q->n; i++) {
		float *row = f->scores + (size_t)i * BLOCK;
		keys_seen(&f->s, k, q->at + i, &from, &to);
		if (from == to) {
			memset(row, 0, BLOCK * sizeof(*row));
			continue;
		}
		float most = f->s.scale *
			     qwen_kernels_best()->largest(row + from,
							  to - from);
		most = fmaxf(most, top[i]);
		float shrink = expf(top[i] - most);
		total[i] = total[i] * shrink + e->exp_row(row, from, to, BLOCK,
							  f->s.scale, most);
		e->multiply_by(shrink, f->s.padded,
			       f->sums + ((size_t)h * BLOCK + i) *
						 f->s.padded);
		top[i] = most;
	}
}

static void forward_store(struct forward *f, uint32_t head, uint32_t h,
			  const struct block *q)
{
	const struct shape *s = &f->s;
	uint32_t heads = s->kv_heads * s->group;

	for (uint32_t i = 0; i < q->n; i++) {
		const float *sum = f->sums +
				   ((size_t)h * BLOCK + i) * s->padded;
		float *y = f->y + (q->at + i) * s->q_ld + (size_t)head * s->dim;
		float by = 1 / f->total[h * BLOCK + i];

		for (uint32_t d = 0; d < s->dim; d++)
			y[d] = sum[d] * by;
		if (f->round != QWEN_W_F32)
			train_round_row(f->round, y, s->dim, y);
		f->lse[(q->at + i) * heads + head] =
			f->top[h * BLOCK + i] + logf(f->total[h * BLOCK + i]);
	}
}

static void forward_task(struct forward *f, uint32_t row, uint32_t kv,
			 uint32_t block)
{
	const struct train_kernels *e = train_kernels_best();
	const struct shape *s = &f->s;
	struct block q = block_at(s, row, block), k;
	size_t wide = (size_t)BLOCK * s->padded;

	memset(f->sums, 0, s->group * wide * sizeof(*f->sums));
	memset(f->total, 0, s->group * BLOCK * sizeof(*f->total));
	for (uint32_t i = 0; i < s->group * BLOCK; i++)
		f->top[i] = -INFINITY;
	for (uint32_t j = first_seen(s, row, &q); j <= block; j++) {
		k = block_at(s, row, j);
		pack_turned(s, f->k + (size_t)kv * s->dim, s->kv_ld, &k,
			    f->turned);
		pack_rows(s, f->v + (size_t)kv * s->dim, s->kv_ld, &k,
			  f->values);
		for (uint32_t h = 0; h < s->group; h++) {
			uint32_t head = kv * s->group + h;
			e->multiply(q.n, BLOCK, s->dim,
				    f->q + q.at * s->q_ld +
					    (size_t)head * s->dim,
				    s->q_ld, 1, f->turned, BLOCK, f->scores,
				    BLOCK, false);
			weigh_block(f, h, &q, &k);
			e->multiply(q.n, s->padded, k.n, f->scores, BLOCK, 1,
				    f->values, s->padded, f->sums + h * wide,
				    s->padded, true);
		}
	}
	for (uint32_t h = 0; h < s->group; h++)
		forward_store(f, kv * s->group + h, h, &q);
}

void train_attention(struct train_worker *w, const struct train_op *op)
{
	struct forward f = {
		.s = shape_of(w, train_at(w, op, 3)), .q = train_at(w, op, 0),
		.k = train_at(w, op, 1), .v = train_at(w, op, 2),
		.y = train_at(w, op, 4), .lse = train_at(w, op, 5),
		.round = op->round ? w->g->type : QWEN_W_F32,
	};
	struct threads_deal deal;
	size_t each = (size_t)f.s.kv_heads * f.s.blocks, at, to;

	forward_lay_out(w, &f);
	threads_deal(&deal, w->t, w->thread, each * f.s.rows, 1);
	while (threads_take(&deal, &at, &to))
		for (; at < to; at++)
			forward_task(&f, (uint32_t)(at / each),
				     (uint32_t)(at % each / f.s.blocks),
				     (uint32_t)(at % f.s.blocks));
}

/* ---- backward ---- */

struct backward {
	struct shape s;
	const float *dy, *y, *q, *k, *v, *lse;
	float *dq, *dk, *dv, *dots;
	enum qwen_weights round; /* F32: not at all */
	/* of the thread: [dim][BLOCK], [BLOCK][padded] and [BLOCK][BLOCK] */
	float *k_turned, *v_turned;
	float *k_rows, *dk_rows, *dv_rows, *q_rows, *dy_rows, *dq_rows;
	float *p, *ds;
};

static void backward_lay_out(struct train_worker *w, struct backward *b)
{
	size_t wide = (size_t)BLOCK * b->s.padded, square = BLOCK * BLOCK;
	float **const part[] = { &b->k_turned, &b->v_turned, &b->k_rows,
				 &b->dk_rows, &b->dv_rows, &b->q_rows,
				 &b->dy_rows, &b->dq_rows };
	float *at = train_space(w, ARRAY_SIZE(part) * wide + 2 * square);

	for (size_t i = 0; i < ARRAY_SIZE(part); i++, at += wide)
		*part[i] = at;
	b->p = at;
	b->ds = at + square;
}

/* Scores and weights as they were, and the gradient of scores. */
static void scores_again(struct backward *b, uint32_t head,
			 const struct block *q, const struct block *k)
{
	const struct train_kernels *e = train_kernels_best();
	const struct shape *s = &b->s;
	uint32_t heads = s->kv_heads * s->group, from, to;

	e->multiply(q->n, BLOCK, s->dim, b->q_rows, s->padded, 1, b->k_turned,
		    BLOCK, b->p, BLOCK, false);
	e->multiply(q->n, BLOCK, s->dim, b->dy_rows, s->padded, 1,
		    b->v_turned, BLOCK, b->ds, BLOCK, false);
	for (uint32_t i = 0; i < q->n; i++) {
		size_t at = (q->at + i) * heads + head;
		float *p = b->p + (size_t)i * BLOCK;
		float *ds = b->ds + (size_t)i * BLOCK;

		keys_seen(s, k, q->at + i, &from, &to);
		e->exp_row(p, from, to, BLOCK, s->scale, b->lse[at]);
		e->score_back(p, ds, BLOCK, b->dots[at], s->scale, ds);
	}
}

/* One head, a block of queries, the block of keys that is packed. */
static void backward_block(struct backward *b, uint32_t head,
			   const struct block *q, const struct block *k)
{
	const struct train_kernels *e = train_kernels_best();
	const struct shape *s = &b->s;
	size_t column = (size_t)head * s->dim, ld = s->padded;

	pack_rows(s, b->q + column, s->q_ld, q, b->q_rows);
	pack_rows(s, b->dy + column, s->q_ld, q, b->dy_rows);
	scores_again(b, head, q, k);
	e->multiply(k->n, ld, q->n, b->p, 1, BLOCK, b->dy_rows, ld, b->dv_rows,
		    ld, true);
	e->multiply(k->n, ld, q->n, b->ds, 1, BLOCK, b->q_rows, ld, b->dk_rows,
		    ld, true);
	e->multiply(q->n, ld, k->n, b->ds, BLOCK, 1, b->k_rows, ld, b->dq_rows,
		    ld, false);
	for (uint32_t i = 0; i < q->n; i++)
		e->add(b->dq_rows + i * ld, s->dim,
		       b->dq + (q->at + i) * s->q_ld + column);
}

/* Of each token and head dy * y, which the gradients of all scores share. */
static void backward_begin(struct backward *b, uint32_t row, uint32_t kv)
{
	const struct shape *s = &b->s;
	uint32_t heads = s->kv_heads * s->group;
	size_t end = (size_t)(row + 1) * s->length;

	for (size_t t = (size_t)row * s->length; t < end; t++) {
		size_t at = t * s->q_ld + (size_t)kv * s->group * s->dim;

		memset(b->dq + at, 0, s->group * s->dim * sizeof(*b->dq));
		for (uint32_t h = 0; h < s->group; h++, at += s->dim)
			b->dots[t * heads + kv * s->group + h] =
				qwen_kernels_best()->dot(b->dy + at, b->y + at,
							 s->dim);
	}
}

static void backward_store(struct backward *b, uint32_t kv,
			   const struct block *k)
{
	const struct shape *s = &b->s;

	for (uint32_t i = 0; i < k->n; i++) {
		size_t at = (k->at + i) * s->kv_ld + (size_t)kv * s->dim;

		memcpy(b->dk + at, b->dk_rows + (size_t)i * s->padded,
		       s->dim * sizeof(float));
		memcpy(b->dv + at, b->dv_rows + (size_t)i * s->padded,
		       s->dim * sizeof(float));
		if (b->round != QWEN_W_F32)
			train_round_row(b->round, b->dv + at, s->dim,
					b->dv + at);
	}
}

static void backward_task(struct backward *b, uint32_t row, uint32_t kv)
{
	const struct shape *s = &b->s;
	const float *keys = b->k + (size_t)kv * s->dim;
	const float *values = b->v + (size_t)kv * s->dim;
	size_t wide = (size_t)BLOCK * s->padded;

	backward_begin(b, row, kv);
	for (uint32_t j = 0; j < s->blocks; j++) {
		struct block k = block_at(s, row, j);

		pack_turned(s, keys, s->kv_ld, &k, b->k_turned);
		pack_turned(s, values, s->kv_ld, &k, b->v_turned);
		pack_rows(s, keys, s->kv_ld, &k, b->k_rows);
		memset(b->dk_rows, 0, wide * sizeof(float));
		memset(b->dv_rows, 0, wide * sizeof(float));
		for (uint32_t i = j; i < s->blocks; i++) {
			struct block q = block_at(s, row, i);

			if (first_seen(s, row, &q) > j)
				break;
			for (uint32_t h = 0; h < s->group; h++)
				backward_block(b, kv * s->group + h, &q, &k);
		}
		backward_store(b, kv, &k);
	}
}

void train_attention_back(struct train_worker *w, const struct train_op *op)
{
	struct backward b = {
		.s = shape_of(w, train_at(w, op, 5)), .dy = train_at(w, op, 0),
		.y = train_at(w, op, 1), .q = train_at(w, op, 2),
		.k = train_at(w, op, 3), .v = train_at(w, op, 4),
		.lse = train_at(w, op, 6), .dq = train_at(w, op, 7),
		.dk = train_at(w, op, 8), .dv = train_at(w, op, 9),
		.dots = train_at(w, op, 10),
		.round = op->round ? w->g->type : QWEN_W_F32,
	};
	struct threads_deal deal;
	size_t at, to;

	backward_lay_out(w, &b);
	threads_deal(&deal, w->t, w->thread,
		     (size_t)b.s.rows * b.s.kv_heads, 1);
	while (threads_take(&deal, &at, &to))
		for (; at < to; at++)
			backward_task(&b, (uint32_t)(at / b.s.kv_heads),
				      (uint32_t)(at % b.s.kv_heads));
}
