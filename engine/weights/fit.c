/*
 * engine/weights/fit.c - integers chosen for what a product makes of them.
 *
 * A row w becomes d q with the least (w - d q) H (w - d q)', where H has the
 * mean products of the columns' inputs, its diagonal that of each column alone.
 * With H = R R' and R upper triangular that is the sum over columns j of
 * R[j][j] squared times (t[j] - d q[j]) squared, where t[j] is w[j] and what
 * the columns before j got wrong, as their inputs foretell that of j (Frantar
 * et al., GPTQ; Babai's nearest plane).  So columns are rounded one after
 * another; of several scales each group has the one whose columns, rounded so,
 * lose least.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/weights/weights.h"

/* Of the mean of H's diagonal, added to it: what few tokens say is uncertain.
 */
#define DAMPING 0.01f

/* ---- the inputs ---- */

struct factoring {
	struct qwen_fit *f;
	const struct qwen_kernels *k;
	const float *diagonal; /* of H */
	bool broken;
};

/*
 * Columns of R from the last one on, in the place of H; every thread takes some
 * rows.  The diagonal, which all of them need, is in f->weight as its square.
 */
static void factor_columns(void *ctx, struct threads *t, unsigned thread)
{
	struct factoring *g = ctx;
	const uint32_t n = g->f->cols;
	float *r = g->f->after;
	size_t from, to;

	for (uint32_t j = n; j-- > 0;) {
		const float *tail = r + (size_t)j * n + j + 1;
		const uint32_t behind = n - j - 1;
		const float square =
			g->diagonal[j] - g->k->dot(tail, tail, behind);
		const float by = 1 / sqrtf(square);
		if (thread == 0) {
			g->broken |= !(square > 0) || !isfinite(square);
			g->f->weight[j] = square;
		}
		threads_part(t, thread, j, 1, &from, &to);
		for (size_t i = from; i < to; i++) {
			float *row = r + i * n + j;
			*row = (*row - g->k->dot(row + 1, tail, behind)) * by;
		}
		threads_barrier(t);
	}
	threads_part(t, thread, n, 1, &from, &to);
	for (size_t i = from; i < to; i++)
		for (uint32_t j = (uint32_t)i + 1; j < n; j++)
			r[i * n + j] /= sqrtf(g->f->weight[j]);
}

bool qwen_fit_init(struct qwen_fit *f, float *moments, uint32_t cols,
		   struct threads *threads, struct err *e)
{
	float *diagonal = xmalloc(cols * sizeof(*diagonal));
	struct factoring g = { .f = f,
			       .k = qwen_kernels_best(),
			       .diagonal = diagonal };
	double mean = 0;

	*f = (struct qwen_fit){ .cols = cols,
				.after = moments,
				.weight = xcalloc(cols, sizeof(float)) };
	for (size_t i = 0; i < cols; i++)
		mean += moments[i * cols + i] / cols;
	for (size_t i = 0; i < cols; i++)
		diagonal[i] = moments[i * cols + i] +
			      (mean > 0 ? DAMPING * (float)mean : 1);
	threads_run(threads, factor_columns, &g);
	free(diagonal);
	if (!g.broken)
		return true;
	qwen_fit_fini(f);
	return err_set(e, ERR_INPUT,
		       "the inputs of a product are no finite "
		       "numbers");
}

void qwen_fit_fini(struct qwen_fit *f)
{
	free(f->weight);
	*f = (struct qwen_fit){ 0 };
}

/* ---- a group ---- */

/* Scales tried: a size of each sign. */
enum { SIZES = 16, TRIED = 2 * SIZES };

struct group {
	uint32_t at; /* its first column */
	float least, most;
	const float *x; /* [QWEN_GROUP]: as they are */
	const float *t; /* [QWEN_GROUP]: what is to be reached */
	float d[TRIED];
};

/* 1.5 * 2^23: adding it rounds. */
#define ROUND 12582912.0f

static float round_to(const struct group *g, float v)
{
	v = v > g->least ? v : g->least;
	v = v < g->most ? v : g->most;
	return v + ROUND - ROUND;
}

/* Around the one that brings the farthest value to the least code. */
static void scales_choose(struct group *g, const struct qwen_kernels *k)
{
	uint16_t half[TRIED];
	float top = 0;

	for (int i = 0; i < QWEN_GROUP; i++)
		top = fmaxf(top, fabsf(g->t[i]));
	for (int i = 0; i < SIZES; i++) {
		g->d[i] = top / (g->least * (0.76f + 0.03f * (float)i));
		g->d[SIZES + i] = -g->d[i];
	}
	k->narrow(QWEN_W_F16, g->d, TRIED, half);
	k->widen(QWEN_W_F16, half, TRIED, g->d);
}

/* The number of the scale whose columns, one after another, lose least. */
static int scale_find(const struct qwen_fit *f, const struct group *g)
{
	float t[QWEN_GROUP][TRIED], inverse[TRIED], loss[TRIED] = { 0 };
	int best = 0;

	for (int k = 0; k < TRIED; k++)
		inverse[k] = g->d[k] != 0 ? 1 / g->d[k] : 0;
	for (int i = 0; i < QWEN_GROUP; i++)
		for (int k = 0; k < TRIED; k++)
			t[i][k] = g->t[i];
	for (int i = 0; i < QWEN_GROUP; i++) {
		const float *after = f->after + (g->at + i) * f->cols + g->at;
		float off[TRIED];
		for (int k = 0; k < TRIED; k++) {
			float v = g->d[k] * round_to(g, t[i][k] * inverse[k]);
			float miss = t[i][k] - v;
			loss[k] += f->weight[g->at + i] * miss * miss;
			off[k] = g->x[i] - v;
		}
		for (int j = i + 1; j < QWEN_GROUP; j++)
			for (int k = 0; k < TRIED; k++)
				t[j][k] += after[j] * off[k];
	}
	for (int k = 1; k < TRIED; k++)
		best = loss[k] < loss[best] ? k : best;
	return best;
}

void qwen_fit_row(const struct qwen_fit *f, int least, int most, const float *x,
		  int8_t *q, uint16_t *scale)
{
	const struct qwen_kernels *k = qwen_kernels_best();
	float *t = xmalloc(f->cols * sizeof(*t));

	memcpy(t, x, f->cols * sizeof(*t));
	for (uint32_t c = 0; c < f->cols; c += QWEN_GROUP, scale++) {
		struct group g = { c,	  (float)least, (float)most,
				   x + c, t + c,	{ 0 } };
		scales_choose(&g, k);
		const float d = g.d[scale_find(f, &g)];
		const float inverse = d != 0 ? 1 / d : 0;
		k->narrow(QWEN_W_F16, &d, 1, scale);
		for (size_t i = c; i < c + QWEN_GROUP; i++) {
			float code = round_to(&g, t[i] * inverse);
			q[i] = (int8_t)code;
			k->axpy(x[i] - d * code, f->after + i * f->cols + i + 1,
				t + i + 1, f->cols - (uint32_t)i - 1);
		}
	}
	free(t);
}
