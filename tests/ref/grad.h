/*
 * grad - operations of a Qwen3 and the loss of a whole one in double precision,
 * written from the published architecture, and gradients by differences: it
 * knows no backward formula and shares no code with the engine.
 */
#ifndef T0_TESTS_GRAD_REF_H
#define T0_TESTS_GRAD_REF_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct grad_shape {
	int layers, hidden, heads, kv_heads, dim, ffn, vocab;
	double theta, eps;
	bool tied;
};

/* y[rows] += W [rows][cols] x */
static inline void grad_mat(const double *w, const double *x, int rows,
			    int cols, double *y)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < cols; j++)
			y[i] += w[(size_t)i * cols + j] * x[j];
}

static inline void grad_norm(const double *x, const double *w, int n,
			     double eps, double *y)
{
	double s = 0;

	for (int i = 0; i < n; i++)
		s += x[i] * x[i] / n;
	for (int i = 0; i < n; i++)
		y[i] = x[i] / sqrt(s + eps) * w[i];
}

static inline void grad_rope(double *x, int dim, double theta,
			     uint32_t position)
{
	for (int i = 0; i < dim / 2; i++) {
		double a = position * pow(theta, -2.0 * i / dim);
		double p = x[i], q = x[i + dim / 2];

		x[i] = p * cos(a) - q * sin(a);
		x[i + dim / 2] = p * sin(a) + q * cos(a);
	}
}

/* Token t of flat q, k, v sees those from t - position[t] on. */
static inline void grad_attend(const struct grad_shape *s, const double *q,
			       const double *k, const double *v,
			       const uint32_t *position, int t, double *y)
{
	int from = t - (int)position[t];
	double *e = malloc((size_t)(t - from + 1) * sizeof(*e));

	for (int h = 0; h < s->heads; h++) {
		int g = h / (s->heads / s->kv_heads);
		const double *a = q + ((size_t)t * s->heads + h) * s->dim;
		double sum = 0, top = -INFINITY;

		for (int u = from; u <= t; u++) {
			double dot = 0;
			for (int d = 0; d < s->dim; d++)
				dot += a[d] * k[((size_t)u * s->kv_heads + g) *
							s->dim + d];
			e[u - from] = dot / sqrt(s->dim);
			top = fmax(top, e[u - from]);
		}
		for (int u = from; u <= t; u++)
			sum += e[u - from] = exp(e[u - from] - top);
		for (int d = 0; d < s->dim; d++) {
			y[h * s->dim + d] = 0;
			for (int u = from; u <= t; u++)
				y[h * s->dim + d] +=
					e[u - from] / sum *
					v[((size_t)u * s->kv_heads + g) *
						  s->dim + d];
		}
	}
	free(e);
}

static inline double grad_silu(double x)
{
	return x / (1 + exp(-x));
}

/* -log of the softmax of W x at the target. */
static inline double grad_surprise(const double *w, const double *x, int vocab,
				   int hidden, uint32_t target)
{
	double *l = calloc((size_t)vocab, sizeof(*l)), top = -INFINITY, sum = 0;

	grad_mat(w, x, vocab, hidden, l);
	for (int i = 0; i < vocab; i++)
		top = fmax(top, l[i]);
	for (int i = 0; i < vocab; i++)
		sum += exp(l[i] - top);
	double out = top + log(sum) - l[target];
	free(l);
	return out;
}

/*
 * Tensors of a layer in the order of a model's folder as the engine lists it:
 * two norms of the residual, those of queries and keys, then matrices.
 */
enum { GRAD_N1, GRAD_N2, GRAD_NQ, GRAD_NK, GRAD_Q, GRAD_K, GRAD_V, GRAD_O,
       GRAD_GATE, GRAD_UP, GRAD_DOWN, GRAD_LAYER };

static inline void grad_layer(const struct grad_shape *s, double *const *p,
			      const uint32_t *position, int n, double *x)
{
	int qd = s->heads * s->dim, kd = s->kv_heads * s->dim;
	double *q = calloc((size_t)n * qd, sizeof(*q));
	double *k = calloc((size_t)n * kd, sizeof(*k));
	double *v = calloc((size_t)n * kd, sizeof(*v));
	double *h = calloc((size_t)s->hidden, sizeof(*h));
	double *a = calloc((size_t)qd, sizeof(*a));
	double *g = calloc((size_t)s->ffn, sizeof(*g));
	double *u = calloc((size_t)s->ffn, sizeof(*u));

	for (int t = 0; t < n; t++) {
		grad_norm(x + (size_t)t * s->hidden, p[GRAD_N1], s->hidden,
			  s->eps, h);
		grad_mat(p[GRAD_Q], h, qd, s->hidden, q + (size_t)t * qd);
		grad_mat(p[GRAD_K], h, kd, s->hidden, k + (size_t)t * kd);
		grad_mat(p[GRAD_V], h, kd, s->hidden, v + (size_t)t * kd);
		for (int i = 0; i < s->heads + s->kv_heads; i++) {
			bool is_q = i < s->heads;
			double *r = is_q ? q + (size_t)t * qd + i * s->dim :
					   k + (size_t)t * kd +
						   (i - s->heads) * s->dim;
			grad_norm(r, p[is_q ? GRAD_NQ : GRAD_NK], s->dim,
				  s->eps, r);
			grad_rope(r, s->dim, s->theta, position[t]);
		}
	}
	for (int t = 0; t < n; t++) {
		double *row = x + (size_t)t * s->hidden;

		grad_attend(s, q, k, v, position, t, a);
		grad_mat(p[GRAD_O], a, s->hidden, qd, row);
		grad_norm(row, p[GRAD_N2], s->hidden, s->eps, h);
		memset(g, 0, (size_t)s->ffn * sizeof(*g));
		memset(u, 0, (size_t)s->ffn * sizeof(*u));
		grad_mat(p[GRAD_GATE], h, s->ffn, s->hidden, g);
		grad_mat(p[GRAD_UP], h, s->ffn, s->hidden, u);
		for (int i = 0; i < s->ffn; i++)
			g[i] = grad_silu(g[i]) * u[i];
		grad_mat(p[GRAD_DOWN], g, s->hidden, s->ffn, row);
	}
	double *const all[] = { q, k, v, h, a, g, u };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

/*
 * The sum of the losses of all tokens that have a target.  `p`: the embedding,
 * GRAD_LAYER tensors for each layer, the last norm, an output layer that is
 * not tied.
 */
static inline double grad_model(const struct grad_shape *s, double *const *p,
				const uint32_t *id, const uint32_t *position,
				const uint32_t *target, int n)
{
	double *x = malloc((size_t)n * s->hidden * sizeof(*x)), sum = 0;
	double *h = malloc((size_t)s->hidden * sizeof(*h));
	double *const *last = p + 1 + s->layers * GRAD_LAYER;

	for (int t = 0; t < n; t++)
		memcpy(x + (size_t)t * s->hidden,
		       p[0] + (size_t)id[t] * s->hidden,
		       (size_t)s->hidden * sizeof(*x));
	for (int l = 0; l < s->layers; l++)
		grad_layer(s, p + 1 + l * GRAD_LAYER, position, n, x);
	for (int t = 0; t < n; t++) {
		if (target[t] == UINT32_MAX)
			continue;
		grad_norm(x + (size_t)t * s->hidden, last[0], s->hidden,
			  s->eps, h);
		sum += grad_surprise(s->tied ? p[0] : last[1], h, s->vocab,
				     s->hidden, target[t]);
	}
	free(x);
	free(h);
	return sum;
}

/* The slope of f at x[i], from both sides. */
static inline double grad_slope(double (*f)(void *ctx), void *ctx, double *x)
{
	double was = *x, step = 1e-5 * fmax(1e-1, fabs(was));

	*x = was + step;
	double high = f(ctx);
	*x = was - step;
	double low = f(ctx);
	*x = was;
	return (high - low) / (2 * step);
}

/*
 * How far the gradient `got` is from slopes, in every `stride`-th element and
 * the last: the largest difference over the largest slope, that at least 0.1
 * where values are of the size of 1; or the length of the difference over that
 * of the slopes.  kept [n]: those that are known, NaN the others; or NULL.
 */
static inline double grad_error_kept(double (*f)(void *ctx), void *ctx,
				     double *x, const float *got, size_t n,
				     size_t stride, bool largest, double *kept)
{
	double most = 0, size = 1e-1, off2 = 0, size2 = 0;

	for (size_t i = 0; i < n; i += i + stride < n || i + 1 == n ?
						stride : n - 1 - i) {
		if (!isfinite(got[i]))
			return INFINITY;
		double want = kept && !isnan(kept[i]) ?
				      kept[i] :
				      grad_slope(f, ctx, x + i);
		double off = got[i] - want;

		if (kept)
			kept[i] = want;
		most = fmax(most, fabs(off));
		size = fmax(size, fabs(want));
		off2 += off * off;
		size2 += want * want;
	}
	return largest ? most / size : sqrt(off2 / size2);
}

static inline double grad_error(double (*f)(void *ctx), void *ctx, double *x,
				const float *got, size_t n, size_t stride,
				bool largest)
{
	return grad_error_kept(f, ctx, x, got, n, stride, largest, NULL);
}

#endif
