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

/* ---- a run of columns that share a scale ---- */

/* Scales tried: a size of each sign. */
enum { SIZES = 16, TRIED = 2 * SIZES, MOST_RUN = 256, BLOCK = 256 };

struct run {
	const struct qwen_codes *c;
	uint32_t at;	/* its first column */
	const float *x; /* [c->run]: as they are */
	const float *t; /* [c->run]: what is to be reached */
	float unit;	/* scales are whole multiples of it; 0: any f16 */
	float d[TRIED];
};

/* 1.5 * 2^23: adding it rounds. */
#define ROUND 12582912.0f

static float round_to(float v, int least, int most)
{
	v = v > (float)least ? v : (float)least;
	v = v < (float)most ? v : (float)most;
	return v + ROUND - ROUND;
}

static float farthest_of(const float *t, uint32_t n)
{
	float top = 0;

	for (uint32_t i = 0; i < n; i++)
		top = fmaxf(top, fabsf(t[i]));
	return top;
}

static float step_of(const struct run *r, float d)
{
	return r->unit > 0 ?
		       round_to(d / r->unit, -r->c->steps, r->c->steps - 1) :
		       0;
}

/* Around the one that brings the farthest value to the least code. */
static void scales_choose(struct run *r, const struct qwen_kernels *k)
{
	const float top = farthest_of(r->t, r->c->run);
	uint16_t half[TRIED];
	/* Of many values the farthest are best cut off. */
	const float apart = r->c->run > 32 ? 0.06f : 0.03f;

	for (int i = 0; i < SIZES; i++) {
		r->d[i] = top / ((float)r->c->least *
				 (0.76f + apart * (float)i));
		r->d[SIZES + i] = -r->d[i];
	}
	if (r->c->steps) {
		for (int i = 0; i < TRIED; i++)
			r->d[i] = r->unit * step_of(r, r->d[i]);
		return;
	}
	k->narrow(QWEN_W_F16, r->d, TRIED, half);
	k->widen(QWEN_W_F16, half, TRIED, r->d);
}

/* The scale whose columns, one after another, lose least. */
static float scale_find(const struct qwen_fit *f, const struct run *r)
{
	float t[MOST_RUN][TRIED], inverse[TRIED], loss[TRIED] = { 0 };
	const uint32_t n = r->c->run;
	int best = 0;

	for (int k = 0; k < TRIED; k++)
		inverse[k] = r->d[k] != 0 ? 1 / r->d[k] : 0;
	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < TRIED; k++)
			t[i][k] = r->t[i];
	for (uint32_t i = 0; i < n; i++) {
		const float *after =
			f->after + (size_t)(r->at + i) * f->cols + r->at;
		float off[TRIED];
		for (int k = 0; k < TRIED; k++) {
			float v = r->d[k] * round_to(t[i][k] * inverse[k],
						     r->c->least, r->c->most);
			float miss = t[i][k] - v;
			loss[k] += f->weight[r->at + i] * miss * miss;
			off[k] = r->x[i] - v;
		}
		for (uint32_t j = i + 1; j < n; j++)
			for (int k = 0; k < TRIED; k++)
				t[j][k] += after[j] * off[k];
	}
	for (int k = 1; k < TRIED; k++)
		best = loss[k] < loss[best] ? k : best;
	return r->d[best];
}

/* Of a block whose scales are steps: so that all of its runs have theirs. */
static float unit_choose(const struct qwen_codes *c, const float *t,
			 const struct qwen_kernels *k, uint16_t *half)
{
	const float headroom = 1.1f;
	float unit = headroom * farthest_of(t, BLOCK) /
		     (float)(-c->least * c->steps);

	k->narrow(QWEN_W_F16, &unit, 1, half);
	k->widen(QWEN_W_F16, half, 1, &unit);
	return unit;
}

void qwen_fit_row(const struct qwen_fit *f, const struct qwen_codes *c,
		  const float *x, int8_t *q, uint16_t *half, int *step)
{
	const struct qwen_kernels *k = qwen_kernels_best();
	float *t = xmalloc(f->cols * sizeof(*t));
	struct run r = { .c = c };

	memcpy(t, x, f->cols * sizeof(*t));
	for (uint32_t at = 0; at < f->cols; at += c->run) {
		r.at = at;
		r.x = x + at;
		r.t = t + at;
		if (c->steps && at % BLOCK == 0)
			r.unit = unit_choose(c, r.t, k, half++);
		scales_choose(&r, k);
		const float d = scale_find(f, &r);
		const float inverse = d != 0 ? 1 / d : 0;
		if (c->steps)
			*step++ = (int)step_of(&r, d);
		else
			k->narrow(QWEN_W_F16, &d, 1, half++);
		for (size_t i = at; i < at + c->run; i++) {
			float code =
				round_to(t[i] * inverse, c->least, c->most);
			q[i] = (int8_t)code;
			k->axpy(x[i] - d * code, f->after + i * f->cols + i + 1,
				t + i + 1, f->cols - (uint32_t)i - 1);
		}
	}
	free(t);
}
