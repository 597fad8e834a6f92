/*
 * engine/train/op_engram.c - a table of runs of words, added to the residual
 * stream as far as a gate lets it, and back.
 */
#include <math.h>
#include <string.h>

#include "engine/train/kernels.h"

/* What both ways have of a token. */
struct engram {
	const struct train_worker *w;
	const uint32_t *id, *position;
	const struct train_value *table;
	const char *data;
	size_t n;
};

static struct engram engram_of(const struct train_worker *w,
			       const struct train_op *op)
{
	return (struct engram){
		.w = w,
		.id = train_at(w, op, 0),
		.position = train_at(w, op, 1),
		.table = train_operand(w, op, 4),
		.data = train_at(w, op, 4),
		.n = train_operand(w, op, 4)->cols,
	};
}

static void find_rows(const struct engram *g, size_t t,
		      uint32_t row[QWEN_ORDERS])
{
	uint32_t id[QWEN_ORDERS + 1];

	for (uint32_t i = 0; i <= QWEN_ORDERS; i++)
		id[i] = g->position[t] >= i ? g->id[t - i] : QWEN_NO_TOKEN;
	qwen_engram_rows(&g->w->g->config, id, row);
}

/* The rows' sum, columns from .. to of it; `space` has room for a row. */
static void sum_rows(const struct engram *g, const uint32_t row[QWEN_ORDERS],
		     size_t from, size_t to, float *e, float *space)
{
	const struct qwen_kernels *k = qwen_kernels_best();

	for (uint32_t i = 0; i < QWEN_ORDERS; i++) {
		k->widen(train_type_of(g->w->g, g->table),
			 g->data + (row[i] * g->n + from) * g->table->width,
			 to - from, i ? space : e);
		if (i)
			train_kernels_best()->add(space, to - from, e);
	}
}

void train_engram(struct train_worker *w, const struct train_op *op)
{
	const struct engram g = engram_of(w, op);
	const struct qwen_kernels *k = qwen_kernels_best();
	const float *x = train_at(w, op, 2), *weight = train_at(w, op, 3);
	float *y = train_at(w, op, 5), *scale = train_at(w, op, 6);
	float *gate = train_at(w, op, 7), *e = train_space(w, 2 * g.n);
	uint32_t row[QWEN_ORDERS];
	size_t t, to;

	threads_part(w->t, w->thread, train_operand(w, op, 2)->rows, 1, &t,
		     &to);
	for (; t < to; t++) {
		find_rows(&g, t, row);
		sum_rows(&g, row, 0, g.n, e, e + g.n);
		scale[t] = train_kernels_best()->norm(
			x + t * g.n, weight, (uint32_t)g.n,
			(float)w->g->config.norm_eps, y + t * g.n);
		gate[t] = 1 / (1 + expf(-k->dot(y + t * g.n, e, (uint32_t)g.n) /
					sqrtf((float)g.n)));
		memcpy(y + t * g.n, x + t * g.n, g.n * sizeof(*y));
		k->axpy(gate[t], e, y + t * g.n, (uint32_t)g.n);
	}
}

/* Gradients of what the gates are of, over the root of the width. */
static void gates_back(struct train_worker *w, const struct train_op *op,
		       const struct engram *g)
{
	const float *gate = train_at(w, op, 6), *d = train_at(w, op, 7);
	float *ds = train_at(w, op, 10), *e = train_space(w, 2 * g->n);
	uint32_t row[QWEN_ORDERS];
	size_t t, to;

	threads_part(w->t, w->thread, train_operand(w, op, 2)->rows, 1, &t,
		     &to);
	for (; t < to; t++) {
		find_rows(g, t, row);
		sum_rows(g, row, 0, g->n, e, e + g->n);
		ds[t] = qwen_kernels_best()->dot(d + t * g->n, e,
						 (uint32_t)g->n) *
			gate[t] * (1 - gate[t]) / sqrtf((float)g->n);
	}
}

/* Threads have columns: rows are added to in the order of the text. */
static void weights_back(struct train_worker *w, const struct train_op *op,
			 const struct engram *g)
{
	const float *x = train_at(w, op, 2), *weight = train_at(w, op, 3);
	const float *scale = train_at(w, op, 5), *gate = train_at(w, op, 6);
	const float *d = train_at(w, op, 7), *ds = train_at(w, op, 10);
	float *dweight = train_at(w, op, 8), *dtable = train_at(w, op, 9);
	float *e = train_space(w, 2 * g->n);
	uint32_t row[QWEN_ORDERS];
	size_t from, to;

	threads_part(w->t, w->thread, g->n, TRAIN_PAD, &from, &to);
	for (size_t t = 0; t < train_operand(w, op, 2)->rows && from < to;
	     t++) {
		find_rows(g, t, row);
		sum_rows(g, row, from, to, e, e + g->n);
		for (size_t c = from; c < to; c++) {
			const size_t at = t * g->n + c;
			const float turned = ds[t] * x[at] * scale[t];
			const float de = gate[t] * d[at] + turned * weight[c];
			dweight[c] += turned * e[c - from];
			for (uint32_t i = 0; i < QWEN_ORDERS; i++)
				dtable[row[i] * g->n + c] += de;
		}
	}
}

/* What goes through the gate's norm, beside what goes past it. */
static void stream_back(struct train_worker *w, const struct train_op *op,
			const struct engram *g)
{
	const float *x = train_at(w, op, 2), *weight = train_at(w, op, 3);
	const float *scale = train_at(w, op, 5), *ds = train_at(w, op, 10);
	float *d = train_at(w, op, 7), *e = train_space(w, 2 * g->n);
	uint32_t row[QWEN_ORDERS];
	size_t t, to;

	threads_part(w->t, w->thread, train_operand(w, op, 2)->rows, 1, &t,
		     &to);
	for (; t < to; t++) {
		const float *xt = x + t * g->n;
		double mean = 0;

		find_rows(g, t, row);
		sum_rows(g, row, 0, g->n, e, e + g->n);
		for (size_t c = 0; c < g->n; c++) {
			e[c] *= ds[t] * weight[c];
			mean += (double)(e[c] * xt[c] * scale[t]);
		}
		mean /= (double)g->n;
		for (size_t c = 0; c < g->n; c++)
			d[t * g->n + c] +=
				scale[t] *
				(e[c] - xt[c] * scale[t] * (float)mean);
	}
}

void train_engram_back(struct train_worker *w, const struct train_op *op)
{
	const struct engram g = engram_of(w, op);

	gates_back(w, op, &g);
	threads_barrier(w->t);
	if (op->v[9] != TRAIN_NONE)
		weights_back(w, op, &g);
	threads_barrier(w->t);
	stream_back(w, op, &g);
}
