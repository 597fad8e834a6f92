/*
 * engine/train/tape/row.c - operations on rows: softmax, norm, embedding, loss.
 */
#include <math.h>
#include <string.h>

#include "engine/train/kernels.h"
#include "engine/train/tape/record.h"

/* Rows of the last dimension of a dense tensor; *n: their length. */
static size_t rows_of(const struct tensor *x, size_t *n)
{
	*n = x->shape.dim[x->shape.n - 1];
	return *n ? tape_count(x) / *n : 0;
}

/* ---- softmax ---- */

static void softmax_row(const float *x, size_t n, float *y)
{
	float top = -INFINITY;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		top = fmaxf(top, x[i]);
	for (size_t i = 0; i < n; i++)
		sum += y[i] = expf(x[i] - top);
	for (size_t i = 0; i < n; i++)
		y[i] *= (float)(1 / sum);
}

static void softmax_back(struct tape *t, const struct tape_line *l)
{
	size_t n, rows = rows_of(l->out, &n);

	(void)t;
	for (size_t r = 0; r < rows; r++) {
		const float *y = l->out->data + r * n;
		const float *dy = l->out->grad + r * n;
		double dot = 0;

		for (size_t i = 0; i < n; i++)
			dot += (double)y[i] * dy[i];
		for (size_t i = 0; i < n; i++)
			l->in[0]->grad[r * n + i] +=
				y[i] * (dy[i] - (float)dot);
	}
}

struct tensor *tape_softmax(struct tensor *x)
{
	size_t n;

	x = tape_dense(x);
	if (!x)
		return NULL;
	if (!x->shape.n)
		return tape_fail(x->tape, "softmax: got one number; wanted a "
				 "dimension");
	struct tensor *y = tape_result(x->tape, x->shape, &x, 1);
	for (size_t r = 0, rows = rows_of(x, &n); r < rows; r++)
		softmax_row(x->data + r * n, n, y->data + r * n);
	tape_record(x->tape, &(struct tape_line){ .back = softmax_back,
						  .out = y, .in = { x } });
	return y;
}

/* ---- norm ---- */

/* kept: the scale of each row. */
static void norm_back(struct tape *t, const struct tape_line *l)
{
	const struct tensor *x = l->in[0], *w = l->in[1];
	size_t n, rows = rows_of(x, &n);
	float *nobody = tape_floats(t, n);

	for (size_t r = 0; r < rows; r++)
		train_kernels_best()->norm_back(
			l->out->grad + r * n, x->data + r * n, w->data,
			(uint32_t)n, l->kept[r], x->grad != NULL,
			x->grad ? x->grad + r * n : nobody,
			w->grad ? w->grad : nobody);
}

struct tensor *tape_norm(struct tensor *x, struct tensor *w, float epsilon)
{
	size_t n;

	x = tape_dense(x);
	w = tape_dense(w);
	if (!x || !w)
		return NULL;
	struct tape *t = x->tape;
	if (!x->shape.n || w->shape.n != 1 ||
	    w->shape.dim[0] != x->shape.dim[x->shape.n - 1] ||
	    w->shape.dim[0] > UINT32_MAX)
		return tape_fail(t, "norm: x is %s and w %s; wanted x [..., n] "
				 "and w [n]", tape_show(t, &x->shape),
				 tape_show(t, &w->shape));
	struct tensor *const in[] = { x, w };
	struct tensor *y = tape_result(t, x->shape, in, 2);
	size_t rows = rows_of(x, &n);
	float *scale = tape_floats(t, rows);
	for (size_t r = 0; r < rows; r++)
		scale[r] = train_kernels_best()->norm(x->data + r * n, w->data,
						      (uint32_t)n, epsilon,
						      y->data + r * n);
	tape_record(t, &(struct tape_line){ .back = norm_back, .out = y,
					    .in = { x, w }, .kept = scale });
	return y;
}

/* ---- embedding ---- */

static void embedding_back(struct tape *t, const struct tape_line *l)
{
	size_t n, rows = rows_of(l->out, &n);

	(void)t;
	for (size_t r = 0; r < rows; r++)
		train_kernels_best()->add(l->out->grad + r * n, n,
					  l->in[0]->grad + l->ids[r] * n);
}

struct tensor *tape_embedding(struct tensor *table, struct tape_shape s,
			      const uint32_t *ids)
{
	size_t count = tape_shape_count(&s);

	table = tape_dense(table);
	if (!table)
		return NULL;
	struct tape *t = table->tape;
	if (table->shape.n != 2 || s.n == TAPE_DIMS)
		return tape_fail(t, "embedding: the table is %s and ids %s; "
				 "wanted [rows, n] and at most %d dimensions",
				 tape_show(t, &table->shape),
				 tape_show(t, &s), TAPE_DIMS - 1);
	for (size_t i = 0; i < count; i++)
		if (ids[i] >= table->shape.dim[0])
			return tape_fail(t, "embedding: id %zu is %u; wanted "
					 "one below the %zu rows of the table",
					 i, ids[i], table->shape.dim[0]);
	size_t n = table->shape.dim[1];
	s.dim[s.n++] = n;
	struct tensor *y = tape_result(t, s, &table, 1);
	uint32_t *kept = arena_alloc(&t->step, count * sizeof(*kept));
	for (size_t i = 0; n && i < count; i++) {
		kept[i] = ids[i];
		memcpy(y->data + i * n, table->data + ids[i] * n,
		       n * sizeof(float));
	}
	tape_record(t, &(struct tape_line){ .back = embedding_back, .out = y,
					    .in = { table }, .ids = kept });
	return y;
}

/* ---- loss ---- */

/* kept: softmax of each row; ids: targets; number: 1 / how many count. */
static void loss_back(struct tape *t, const struct tape_line *l)
{
	size_t n, rows = rows_of(l->in[0], &n);
	float by = l->out->grad[0] * l->number;

	(void)t;
	for (size_t r = 0; r < rows; r++) {
		float *dx = l->in[0]->grad + r * n;

		if (l->ids[r] == TRAIN_IGNORE)
			continue;
		for (size_t i = 0; i < n; i++)
			dx[i] += by * l->kept[r * n + i];
		dx[l->ids[r]] -= by;
	}
}

/* -log of what softmax gives to the target; softmax of the row in p. */
static double surprise_of(const float *x, size_t n, uint32_t target, float *p)
{
	float top = -INFINITY;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		top = fmaxf(top, x[i]);
	for (size_t i = 0; i < n; i++)
		sum += exp((double)x[i] - top);
	softmax_row(x, n, p);
	return log(sum) + top - x[target];
}

struct tensor *tape_cross_entropy(struct tensor *x, const uint32_t *target)
{
	size_t n, targets = 0;
	double sum = 0;

	x = tape_dense(x);
	if (!x)
		return NULL;
	struct tape *t = x->tape;
	if (!x->shape.n)
		return tape_fail(t, "cross-entropy: got one number; wanted "
				 "logits [..., n]");
	size_t rows = rows_of(x, &n);
	struct tensor *y = tape_result(t, (struct tape_shape){ 0 }, &x, 1);
	float *p = tape_floats(t, rows * n);
	uint32_t *kept = arena_alloc(&t->step, rows * sizeof(*kept));
	for (size_t r = 0; r < rows; r++) {
		kept[r] = target[r];
		if (target[r] == TRAIN_IGNORE)
			continue;
		if (target[r] >= n)
			return tape_fail(t, "cross-entropy: target %zu is %u; "
					 "wanted one below the %zu logits", r,
					 target[r], n);
		sum += surprise_of(x->data + r * n, n, target[r], p + r * n);
		targets++;
	}
	float by = targets ? 1 / (float)targets : 0;
	y->data[0] = targets ? (float)(sum / (double)targets) : 0;
	tape_record(t, &(struct tape_line){ .back = loss_back, .out = y,
					    .in = { x }, .kept = p,
					    .ids = kept, .number = by });
	return y;
}
