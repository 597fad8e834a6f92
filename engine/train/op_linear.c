/*
 * engine/train/op_linear.c - products with weights, and the output layer.
 */
#include <math.h>
#include <string.h>

#include "engine/train/kernels.h"

static enum cpu_gemm_type type_of(const struct train_worker *w,
				  const struct train_value *m)
{
	enum qwen_weights t = train_type_of(w->g, m);

	return t == QWEN_W_BF16 ? CPU_GEMM_BF16 :
	       t == QWEN_W_F16	? CPU_GEMM_F16 :
				  CPU_GEMM_F32;
}

static void run_gemm(struct train_worker *w, const struct cpu_gemm *g)
{
	cpu_gemm_part(g, &w->gemm, w->thread, w->threads);
}

void train_linear(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *m = train_operand(w, op, 1);
	const struct train_value *x = train_operand(w, op, 0);
	bool add = op->v[2] != TRAIN_NONE;
	float *y = train_at(w, op, 3);
	struct cpu_gemm g = {
		.m = x->rows, .n = m->rows, .k = m->cols, .alpha = 1,
		.beta = add, .a = train_at(w, op, 0), .lda = m->cols,
		.b = train_at(w, op, 1), .ldb = m->cols,
		.b_type = type_of(w, m),
		.b_by_n = true, .c = y, .ldc = m->rows,
	};

	if (add) {
		const float *z = train_at(w, op, 2);
		size_t from, to;

		threads_part(w->t, w->thread, g.m * g.n, TRAIN_PAD, &from,
			     &to);
		memcpy(y + from, z + from, (to - from) * sizeof(*y));
		threads_barrier(w->t);
	}
	run_gemm(w, &g);
}

void train_linear_dx(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *m = train_operand(w, op, 1);
	struct cpu_gemm g = {
		.m = train_operand(w, op, 0)->rows, .n = m->cols, .k = m->rows,
		.alpha = 1, .beta = op->add, .a = train_at(w, op, 0),
		.lda = m->rows, .b = train_at(w, op, 1), .ldb = m->cols,
		.b_type = type_of(w, m), .c = train_at(w, op, 2),
		.ldc = m->cols,
	};

	run_gemm(w, &g);
}

/*
 * out[j][i] = in[i][j]: the library takes a first matrix by its rows only.  To
 * turn one costs little beside a product of as many columns as a model has.
 */
static void turn_matrix(struct train_worker *w, const float *in, size_t rows,
			size_t cols, float *out, size_t ldo)
{
	size_t from, to;

	threads_part(w->t, w->thread, cols, TRAIN_PAD, &from, &to);
	train_kernels_best()->turn(in + from, cols, rows, to - from,
				   out + from * ldo, ldo);
	threads_barrier(w->t);
}

void train_linear_dw(struct train_worker *w, const struct train_op *op)
{
	const struct train_value *dy = train_operand(w, op, 0);
	const struct train_value *x = train_operand(w, op, 1);
	float *turned = train_at(w, op, 3);
	size_t ld = train_operand(w, op, 3)->cols;
	struct cpu_gemm g = {
		.m = dy->cols, .n = x->cols, .k = dy->rows, .alpha = 1,
		.beta = 1, .a = turned, .lda = ld,
		.b = train_at(w, op, 1), .ldb = x->cols,
		.b_type = CPU_GEMM_F32, .c = train_at(w, op, 2),
		.ldc = x->cols,
	};

	turn_matrix(w, train_at(w, op, 0), dy->rows, dy->cols, turned, ld);
	run_gemm(w, &g);
}

/* ---- the output layer ---- */

/* One chunk of the vocabulary. */
struct chunk {
	const struct train_value *x, *w;
	const float *in;
	const char *weight;
	const uint32_t *target;
	float *lse, *logits;
	size_t size; /* of a whole chunk */
	size_t at, n;
};

static struct chunk chunk_first(const struct train_worker *w,
				const struct train_op *op, unsigned lse,
				unsigned logits)
{
	struct chunk c = {
		.x = train_operand(w, op, 0), .w = train_operand(w, op, 1),
		.in = train_at(w, op, 0), .weight = train_at(w, op, 1),
		.target = train_at(w, op, 2), .lse = train_at(w, op, lse),
		.logits = train_at(w, op, logits),
		.size = train_operand(w, op, logits)->cols,
	};

	c.n = c.size;
	return c;
}

static bool chunk_next(struct chunk *c)
{
	c->at += c->n;
	c->n = c->w->rows - c->at < c->size ? c->w->rows - c->at : c->size;
	return c->n;
}

static const void *chunk_weight(const struct chunk *c)
{
	return c->weight + c->at * c->w->cols * c->w->width;
}

/* logits [T][n] */
static void chunk_logits(struct train_worker *w, const struct chunk *c)
{
	struct cpu_gemm g = {
		.m = c->x->rows, .n = c->n, .k = c->x->cols, .alpha = 1,
		.a = c->in, .lda = c->x->cols, .b = chunk_weight(c),
		.ldb = c->w->cols, .b_type = type_of(w, c->w), .b_by_n = true,
		.c = c->logits, .ldc = c->n,
	};

	run_gemm(w, &g);
	threads_barrier(w->t);
}

/* log(exp(a) + the sum of exp(x - a') * exp(a')), without overflow */
static float lse_add(float lse, float top, float sum)
{
	float more = top + logf(sum), high = fmaxf(lse, more);

	return high + logf(expf(lse - high) + expf(more - high));
}

/* The exponentials of a row, without changing it. */
static float sum_exponentials(const struct chunk *c, const float *row,
			      float top)
{
	const struct train_kernels *k = train_kernels_best();
	float part[256], sum = 0;

	for (size_t i = 0; i < c->n; i += 256) {
		uint32_t n = (uint32_t)(c->n - i < 256 ? c->n - i : 256);

		memcpy(part, row + i, n * sizeof(*part));
		memset(part + n, 0, (256 - n) * sizeof(*part));
		sum += k->exp_row(part, 0, n, 256, 1, top);
	}
	return sum;
}

/* `loss` holds the target's logit until the last chunk. */
static void chunk_sums(struct train_worker *w, const struct chunk *c,
		       float *loss)
{
	const struct qwen_kernels *k = qwen_kernels_best();
	size_t t, to;

	threads_part(w->t, w->thread, c->x->rows, TRAIN_PAD, &t, &to);
	for (; t < to; t++) {
		const float *row = c->logits + t * c->n;
		float top = k->largest(row, (uint32_t)c->n);
		float sum = sum_exponentials(c, row, top);

		c->lse[t] = c->at ? lse_add(c->lse[t], top, sum) :
				    top + logf(sum);
		if (c->target[t] - c->at < c->n)
			loss[t] = row[c->target[t] - c->at];
		if (c->at + c->n == c->w->rows)
			loss[t] = c->target[t] == TRAIN_IGNORE ?
					  0 : c->lse[t] - loss[t];
	}
}

void train_loss(struct train_worker *w, const struct train_op *op)
{
	float *loss = train_at(w, op, 3);
	struct chunk c = chunk_first(w, op, 4, 5);

	do {
		if (c.at) /* the others still read the last one */
			threads_barrier(w->t);
		chunk_logits(w, &c);
		chunk_sums(w, &c, loss);
	} while (chunk_next(&c));
}

/* Logits become their gradient. */
static void chunk_gradient(struct train_worker *w, const struct chunk *c,
			   bool round)
{
	const struct train_kernels *k = train_kernels_best();
	float part[256], scale = train_scale_of(w);
	size_t t, to;

	threads_part(w->t, w->thread, c->x->rows, 1, &t, &to);
	for (; t < to; t++) {
		float *row = c->logits + t * c->n;

		if (c->target[t] == TRAIN_IGNORE) {
			memset(row, 0, c->n * sizeof(*row));
			continue;
		}
		for (size_t i = 0; i < c->n; i += 256) {
			uint32_t n = (uint32_t)(c->n - i < 256 ? c->n - i :
								 256);

			memcpy(part, row + i, n * sizeof(*part));
			memset(part + n, 0, (256 - n) * sizeof(*part));
			k->exp_row(part, 0, n, 256, 1, c->lse[t]);
			memcpy(row + i, part, n * sizeof(*part));
		}
		if (c->target[t] - c->at < c->n)
			row[c->target[t] - c->at] -= 1;
		k->multiply_by(scale, c->n, row);
		if (round)
			train_round_row(w->g->type, row, c->n, row);
	}
	threads_barrier(w->t);
}

/* dw NULL: the output layer learns nothing. */
static void chunk_back(struct train_worker *w, const struct chunk *c,
		       float *dx, float *dw, float *turned, size_t ld)
{
	size_t hidden = c->x->cols;
	struct cpu_gemm by_x = {
		.m = c->x->rows, .n = hidden, .k = c->n, .alpha = 1,
		.beta = c->at > 0, .a = c->logits, .lda = c->n,
		.b = chunk_weight(c), .ldb = hidden, .b_type = type_of(w, c->w),
		.c = dx, .ldc = hidden,
	};
	struct cpu_gemm by_w = {
		.m = c->n, .n = hidden, .k = c->x->rows, .alpha = 1,
		.beta = 1, .a = turned, .lda = ld, .b = c->in,
		.ldb = hidden, .b_type = CPU_GEMM_F32,
		.c = dw ? dw + c->at * hidden : NULL, .ldc = hidden,
	};

	run_gemm(w, &by_x);
	if (!dw)
		return;
	turn_matrix(w, c->logits, c->x->rows, c->n, turned, ld);
	run_gemm(w, &by_w);
}

void train_loss_back(struct train_worker *w, const struct train_op *op)
{
	struct chunk c = chunk_first(w, op, 3, 6);
	bool whole = c.size == c.w->rows; /* LOSS has left all of them */

	do {
		if (!whole)
			chunk_logits(w, &c);
		chunk_gradient(w, &c, op->round);
		chunk_back(w, &c, train_at(w, op, 4),
			   op->v[5] == TRAIN_NONE ? NULL : train_at(w, op, 5),
			   train_at(w, op, 7), train_operand(w, op, 7)->cols);
		threads_barrier(w->t);
	} while (chunk_next(&c));
}
