/*
 * engine/train/tape/attention.c - attention of any number of heads.
 */
#include <math.h>
#include <string.h>

#include "engine/train/kernels.h"
#include "engine/train/tape/record.h"

/* One head: sizes, and its matrices, dense. */
struct head {
	size_t n, m, d, out;
	float scale;
	float *q, *k, *v; /* [n][d], [m][d], [m][out] */
};

static struct head head_new(struct tape *t, const struct tape_line *l)
{
	const struct tape_shape *q = &l->in[0]->shape, *v = &l->in[2]->shape;
	struct head h = { .n = q->dim[q->n - 2], .d = q->dim[q->n - 1],
			  .m = v->dim[v->n - 2], .out = v->dim[v->n - 1] };

	h.scale = h.d ? 1 / sqrtf((float)h.d) : 0;
	h.q = tape_floats(t, h.n * h.d);
	h.k = tape_floats(t, h.m * h.d);
	h.v = tape_floats(t, h.m * h.out);
	return h;
}

/* Matrix `i` of a tensor, counted over the dimensions before: its element 0. */
static size_t matrix_at(const struct tensor *x, size_t i)
{
	size_t at = 0;

	for (unsigned k = x->shape.n - 2; k--; i /= x->shape.dim[k])
		at += i % x->shape.dim[k] * x->stride[k];
	return at;
}

static void take_matrix(const struct tensor *x, size_t i, float *to)
{
	const size_t *dim = x->shape.dim + x->shape.n - 2;
	const size_t *stride = x->stride + x->shape.n - 2;
	const float *from = x->data + matrix_at(x, i);

	for (size_t r = 0; r < dim[0]; r++)
		for (size_t c = 0; c < dim[1]; c++)
			*to++ = from[r * stride[0] + c * stride[1]];
}

static void give_gradient(const struct tensor *x, size_t i, const float *from)
{
	const size_t *dim = x->shape.dim + x->shape.n - 2;
	const size_t *stride = x->stride + x->shape.n - 2;

	if (!x->grad)
		return;
	float *to = x->grad + matrix_at(x, i);
	for (size_t r = 0; r < dim[0]; r++)
		for (size_t c = 0; c < dim[1]; c++)
			to[r * stride[0] + c * stride[1]] += *from++;
}

static void take_head(const struct tape_line *l, struct head *h, size_t i)
{
	take_matrix(l->in[0], i, h->q);
	take_matrix(l->in[1], i, h->k);
	take_matrix(l->in[2], i, h->v);
}

/* ---- forward ---- */

/* Scores become weights; keys that are not seen have none. */
static void weigh_row(float *row, const bool *seen, size_t m, float scale)
{
	float top = -INFINITY;
	double sum = 0;

	for (size_t j = 0; j < m; j++)
		top = seen[j] ? fmaxf(top, row[j] * scale) : top;
	for (size_t j = 0; j < m; j++)
		if (seen[j])
			sum += row[j] = expf(row[j] * scale - top);
	for (size_t j = 0; j < m; j++)
		row[j] = seen[j] ? row[j] * (float)(1 / sum) : 0;
}

/* Which keys query r of matrix i attends to. */
static void see_keys(const struct tape_line *l, const struct head *h, size_t i,
		     size_t r, bool *seen)
{
	const size_t most = l->causal ? h->m - h->n + r + 1 : h->m;
	const struct tensor *s = l->seen;
	const size_t *stride = s ? s->stride + s->shape.n - 2 : NULL;
	const float *of = s ? s->data + matrix_at(s, i) + r * stride[0] : NULL;

	for (size_t j = 0; j < h->m; j++)
		seen[j] = j < most && (!of || of[j * stride[1]] != 0);
}

static void head_forward(struct tape *t, const struct tape_line *l,
			 struct head *h, size_t i)
{
	float *p = l->kept + i * h->n * h->m;
	bool *seen = arena_alloc(&t->step, h->m + 1);

	take_head(l, h, i);
	tape_product(t, h->n, h->m, h->d, h->q, h->k, true, 0, p);
	for (size_t r = 0; r < h->n; r++) {
		see_keys(l, h, i, r, seen);
		weigh_row(p + r * h->m, seen, h->m, h->scale);
	}
	tape_product(t, h->n, h->out, h->m, p, h->v, false, 0,
		     l->out->data + i * h->n * h->out);
}

/* ---- backward ---- */

/* Gradients of weights become those of what the exponentials were of. */
static void scores_back(const struct head *h, const float *p, float *ds)
{
	for (size_t r = 0; r < h->n; r++) {
		double dot = 0;

		for (size_t j = 0; j < h->m; j++)
			dot += (double)p[r * h->m + j] * ds[r * h->m + j];
		for (size_t j = 0; j < h->m; j++)
			ds[r * h->m + j] = p[r * h->m + j] * h->scale *
					   (ds[r * h->m + j] - (float)dot);
	}
}

/* c [m][cols] = a^T b, a [n][m], b [n][cols] */
static void product_turned(struct tape *t, const struct head *h,
			   const float *a, const float *b, size_t cols,
			   float *turned, float *c)
{
	train_kernels_best()->turn(a, h->m, h->n, h->m, turned, h->n);
	tape_product(t, h->m, cols, h->n, turned, b, false, 0, c);
}

static void attention_back(struct tape *t, const struct tape_line *l)
{
	struct head h = head_new(t, l);
	size_t square = h.n * h.m, most = h.n > h.m ? h.n : h.m;
	size_t heads = 1;
	float *ds = tape_floats(t, square), *turned = tape_floats(t, square);
	float *d = tape_floats(t, most * (h.d > h.out ? h.d : h.out));

	for (unsigned k = 0; k + 2 < l->out->shape.n; k++)
		heads *= l->out->shape.dim[k];
	for (size_t i = 0; i < heads; i++) {
		const float *dy = l->out->grad + i * h.n * h.out;
		const float *p = l->kept + i * square;

		take_head(l, &h, i);
		product_turned(t, &h, p, dy, h.out, turned, d);
		give_gradient(l->in[2], i, d);
		tape_product(t, h.n, h.m, h.out, dy, h.v, true, 0, ds);
		scores_back(&h, p, ds);
		tape_product(t, h.n, h.d, h.m, ds, h.k, false, 0, d);
		give_gradient(l->in[0], i, d);
		product_turned(t, &h, ds, h.q, h.d, turned, d);
		give_gradient(l->in[1], i, d);
	}
}

/* ---- the operation ---- */

/* A tensor whose dimensions but the last two are spread. */
static struct tensor *spread_heads(struct tensor *x, struct tape_shape s)
{
	for (unsigned i = 0; i < 2; i++)
		s.dim[s.n++] = x->shape.dim[x->shape.n - 2 + i];
	return tape_spread(x, s);
}

static bool shapes_fit(const struct tape_shape *q, const struct tape_shape *k,
		       const struct tape_shape *v, bool causal,
		       struct tape_shape *heads)
{
	struct tape_shape some;

	if (q->n < 2 || k->n < 2 || v->n < 2 ||
	    q->dim[q->n - 1] != k->dim[k->n - 1] ||
	    k->dim[k->n - 2] != v->dim[v->n - 2] ||
	    (causal && q->dim[q->n - 2] > k->dim[k->n - 2]))
		return false;
	/* Heads of q and k, and two more as tape_join() leaves out. */
	if (!tape_join(q, k, 2, &some) || some.n + 2 > TAPE_DIMS)
		return false;
	some.n += 2;
	return tape_join(&some, v, 2, heads);
}

static bool seen_fits(const struct tensor *q, const struct tensor *k,
		      const struct tensor *seen, struct tape_shape heads)
{
	struct tape_shape all;

	heads.n += 2; /* as tape_join() leaves them out */
	return seen->shape.n >= 2 && seen->shape.n <= heads.n &&
	       seen->shape.dim[seen->shape.n - 2] ==
		       q->shape.dim[q->shape.n - 2] &&
	       seen->shape.dim[seen->shape.n - 1] ==
		       k->shape.dim[k->shape.n - 2] &&
	       tape_join(&heads, &seen->shape, 2, &all) &&
	       !memcmp(all.dim, heads.dim, all.n * sizeof(*all.dim));
}

static struct tensor *attend_keys(struct tensor *q, struct tensor *k,
				  struct tensor *v, bool causal,
				  struct tensor *seen)
{
	struct tape *t = q->tape;
	struct tape_shape s;

	if (!shapes_fit(&q->shape, &k->shape, &v->shape, causal, &s) ||
	    (seen && !seen_fits(q, k, seen, s)))
		return tape_fail(
			t,
			"attention: q is %s, k %s, v %s%s%s; wanted "
			"[..., n, d], [..., m, d], [..., m, out]%s%s",
			tape_show(t, &q->shape), tape_show(t, &k->shape),
			tape_show(t, &v->shape), seen ? ", what is seen " : "",
			seen ? tape_show(t, &seen->shape) : "",
			causal ? " and n at most m" : "",
			seen ? " and [..., n, m]" : "");
	struct tape_line l = {
		.back = attention_back,
		.causal = causal,
		.seen = seen ? spread_heads(seen, s) : NULL,
		.in = { spread_heads(q, s), spread_heads(k, s),
			spread_heads(v, s) },
	};
	struct head h = head_new(t, &l);
	size_t heads = tape_shape_count(&s);
	s.dim[s.n++] = h.n;
	s.dim[s.n++] = h.out;
	l.out = tape_result(t, s, l.in, 3);
	l.kept = tape_floats(t, heads * h.n * h.m);
	for (size_t i = 0; i < heads; i++)
		head_forward(t, &l, &h, i);
	tape_record(t, &l);
	return l.out;
}

struct tensor *tape_attention(struct tensor *q, struct tensor *k,
			      struct tensor *v, bool causal)
{
	return q && k && v ? attend_keys(q, k, v, causal, NULL) : NULL;
}

struct tensor *tape_attention_seen(struct tensor *q, struct tensor *k,
				   struct tensor *v, struct tensor *seen)
{
	return q && k && v && seen ? attend_keys(q, k, v, false, seen) : NULL;
}
