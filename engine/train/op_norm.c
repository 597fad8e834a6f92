/*
 * engine/train/op_norm.c - operations on rows: embedding, norms, rotation,
 * SwiGLU, rounding.
 */
#include <string.h>

#include "engine/train/kernels.h"

/* Rows of a thread. */
static void rows_of(const struct train_worker *w, size_t n, size_t grain,
		    size_t *from, size_t *to)
{
	threads_part(w->t, w->thread, n, grain, from, to);
}

/* ---- embedding ---- */

void train_embed(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *y = train_operand(w, op, 2);
	const struct train_value *table = train_operand(w, op, 1);
	const struct qwen_kernels *k = qwen_kernels_best();
	const uint32_t *id = train_at(w, op, 0);
	const char *from = train_at(w, op, 1);
	float *out = train_at(w, op, 2);
	size_t t, to;

	rows_of(w, y->rows, 1, &t, &to);
	for (; t < to; t++)
		k->widen(train_type_of(w->g, table),
			 from + id[t] * table->cols * table->width,
			 table->cols, out + t * y->cols);
}

/* Threads have columns: a token's row is added to in the order of the text. */
void train_embed_back(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *dy = train_operand(w, op, 1);
	const struct train_kernels *k = train_kernels_best();
	const uint32_t *id = train_at(w, op, 0);
	const float *in = train_at(w, op, 1);
	float *table = train_at(w, op, 2);
	size_t from, to, n = dy->cols;

	rows_of(w, n, TRAIN_PAD, &from, &to);
	if (from == to)
		return;
	for (size_t t = 0; t < dy->rows; t++)
		k->add(in + t * n + from, to - from,
		       table + id[t] * n + from);
}

/* ---- norms ---- */

void train_norm(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *x = train_operand(w, op, 0);
	const struct train_kernels *k = train_kernels_best();
	const float *in = train_at(w, op, 0), *weight = train_at(w, op, 1);
	float *y = train_at(w, op, 2), *scale = train_at(w, op, 3);
	float eps = (float)w->g->config.norm_eps;
	size_t n = x->cols, t, to;

	rows_of(w, x->rows, 1, &t, &to);
	for (; t < to; t++) {
		scale[t] = k->norm(in + t * n, weight, (uint32_t)n, eps,
				   y + t * n);
		if (op->round)
			train_round_row(w->g->type, y + t * n, n, y + t * n);
	}
}

/*
 * Sums of the weight's gradient: each block of rows has its own, and these are
 * added in their order, so that nobody sees who summed what.
 */
static void add_partials(struct train_worker *w, const float *partial,
			 size_t rows, size_t n, float *dw)
{
	size_t from, to;

	threads_barrier(w->t);
	rows_of(w, n, TRAIN_PAD, &from, &to);
	for (size_t i = 0; from < to && i * TRAIN_BLOCK < rows; i++)
		train_kernels_best()->add(partial + i * n + from, to - from,
					  dw + from);
}

/* The blocks of a thread's rows, and memory for their sums, zeroed. */
static void blocks_of(const struct train_worker *w, size_t rows, size_t n,
		      float *partial, size_t *from, size_t *to)
{
	size_t blocks = (rows + TRAIN_BLOCK - 1) / TRAIN_BLOCK, a, b;

	rows_of(w, blocks, 1, &a, &b);
	memset(partial + a * n, 0, (b - a) * n * sizeof(*partial));
	*from = a * TRAIN_BLOCK;
	*to = b * TRAIN_BLOCK < rows ? b * TRAIN_BLOCK : rows;
}

void train_norm_back(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *x = train_operand(w, op, 1);
	const struct train_kernels *k = train_kernels_best();
	const float *dy = train_at(w, op, 0), *in = train_at(w, op, 1);
	const float *weight = train_at(w, op, 2), *scale = train_at(w, op, 3);
	float *dx = train_at(w, op, 4), *partial = train_at(w, op, 6);
	size_t n = x->cols, t, to;

	blocks_of(w, x->rows, n, partial, &t, &to);
	for (; t < to; t++)
		k->norm_back(dy + t * n, in + t * n, weight, (uint32_t)n,
			     scale[t], op->add, dx + t * n,
			     partial + t / TRAIN_BLOCK * n);
	if (op->v[5] != TRAIN_NONE)
		add_partials(w, partial, x->rows, n, train_at(w, op, 5));
}

/* ---- norms of heads, and their rotation ---- */

void train_turn(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *x = train_operand(w, op, 0);
	const struct train_kernels *k = train_kernels_best();
	const struct qwen_kernels *e = qwen_kernels_best();
	const float *in = train_at(w, op, 0), *weight = train_at(w, op, 1);
	const uint32_t *position = train_at(w, op, 2);
	const float *cosine = train_at(w, op, 3), *sine = train_at(w, op, 4);
	float *y = train_at(w, op, 5), *scale = train_at(w, op, 6);
	uint32_t n = w->g->config.head_dim;
	size_t heads = x->cols / n, r, to;

	rows_of(w, x->rows, 1, &r, &to);
	to *= heads;
	for (r *= heads; r < to; r++) {
		size_t at = (size_t)position[r / heads] * (n / 2);
		scale[r] = k->norm(in + r * n, weight, n,
				   (float)w->g->config.norm_eps, y + r * n);
		e->rope(y + r * n, cosine + at, sine + at, n);
	}
}

/* The rotation back: by the same angle the other way. */
static void turn_other_way(const float *in, const float *cosine,
			   const float *sine, uint32_t n, float *out)
{
	uint32_t half = n / 2;

	for (uint32_t i = 0; i < half; i++) {
		float a = in[i], b = in[i + half];
		out[i] = a * cosine[i] + b * sine[i];
		out[i + half] = b * cosine[i] - a * sine[i];
	}
}

void train_turn_back(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *x = train_operand(w, op, 1);
	const struct train_kernels *k = train_kernels_best();
	const float *dy = train_at(w, op, 0), *in = train_at(w, op, 1);
	const float *weight = train_at(w, op, 2);
	const uint32_t *position = train_at(w, op, 3);
	const float *cosine = train_at(w, op, 4), *sine = train_at(w, op, 5);
	const float *scale = train_at(w, op, 6);
	float *dx = train_at(w, op, 7), *partial = train_at(w, op, 9);
	uint32_t n = w->g->config.head_dim;
	size_t heads = x->cols / n, rows = x->rows * heads, r, to;
	float *d = train_space(w, n);

	blocks_of(w, rows, n, partial, &r, &to);
	for (; r < to; r++) {
		size_t at = (size_t)position[r / heads] * (n / 2);
		turn_other_way(dy + r * n, cosine + at, sine + at, n, d);
		k->norm_back(d, in + r * n, weight, n, scale[r], op->add,
			     dx + r * n, partial + r / TRAIN_BLOCK * n);
		if (op->round)
			train_round_row(w->g->type, dx + r * n, n, dx + r * n);
	}
	if (op->v[8] != TRAIN_NONE)
		add_partials(w, partial, rows, n, train_at(w, op, 8));
}

/* ---- elementwise ---- */

void train_round_row(enum qwen_weights type, const float *x, size_t n,
		     float *y)
{
	const struct qwen_kernels *k = qwen_kernels_best();
	uint16_t half[256];

	if (type == QWEN_W_BF16) {
		train_kernels_best()->round(x, n, y);
		return;
	}
	for (size_t i = 0, some; i < n; i += some) {
		some = n - i < 256 ? n - i : 256;
		k->narrow(type, x + i, some, half);
		k->widen(type, half, some, y + i);
	}
}

/* Elements of a thread, in whole cache lines. */
static size_t elements_of(const struct train_worker *w,
			  const struct train_value *x, size_t *from)
{
	size_t to;

	rows_of(w, x->rows * x->cols, TRAIN_PAD, from, &to);
	return to - *from;
}

void train_swiglu(struct train_worker *w, const struct train_op *op)
{
	const float *gate = train_at(w, op, 0), *up = train_at(w, op, 1);
	float *y = train_at(w, op, 2);
	size_t at, n = elements_of(w, train_operand(w, op, 2), &at);

	qwen_kernels_best()->swiglu(gate + at, up + at, (uint32_t)n, y + at);
	if (op->round)
		train_round_row(w->g->type, y + at, n, y + at);
}

void train_swiglu_back(struct train_worker *w, const struct train_op *op)
{
	const struct train_kernels *k = train_kernels_best();
	const float *dy = train_at(w, op, 0), *gate = train_at(w, op, 1);
	const float *up = train_at(w, op, 2);
	float *dgate = train_at(w, op, 3), *dup = train_at(w, op, 4);
	size_t at, n = elements_of(w, train_operand(w, op, 3), &at);

	k->swiglu_back(dy + at, gate + at, up + at, n, dgate + at, dup + at);
	if (op->round) {
		train_round_row(w->g->type, dgate + at, n, dgate + at);
		train_round_row(w->g->type, dup + at, n, dup + at);
	}
}

void train_round(struct train_worker *w, const struct train_op *op)
{
	const float *x = train_at(w, op, 0);
	float *y = train_at(w, op, 1);
	size_t at, n = elements_of(w, train_operand(w, op, 1), &at);

	train_round_row(w->g->type, x + at, n, y + at);
}
