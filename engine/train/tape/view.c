/*
 * engine/train/tape/view.c - views of tensors, and walks over them.
 */
#include <string.h>

#include "engine/train/tape/record.h"

/* ---- walks ---- */

static size_t inner_of(const struct tape_shape *s)
{
	return s->n ? s->dim[s->n - 1] : 1;
}

void tape_walk_begin(struct tape_walk *w, struct tensor *const *x, unsigned n)
{
	const struct tape_shape *s = &x[0]->shape;

	*w = (struct tape_walk){ .n_x = n, .n = inner_of(s), .rows = 1 };
	for (unsigned i = 0; i + 1 < s->n; i++)
		w->rows *= s->dim[i];
	for (unsigned k = 0; k < n; k++) {
		w->x[k] = x[k];
		w->by[k] = s->n ? x[k]->stride[s->n - 1] : 0;
	}
}

bool tape_walk_next(struct tape_walk *w)
{
	const struct tape_shape *s = &w->x[0]->shape;

	if (!w->rows)
		return false;
	w->rows--;
	if (!w->inside)
		return w->inside = true;
	for (unsigned i = s->n - 1; i--;) { /* rows > 1, so there are some */
		bool over = ++w->at[i] == s->dim[i];

		for (unsigned k = 0; k < w->n_x; k++)
			w->off[k] += w->x[k]->stride[i];
		if (!over)
			break;
		for (unsigned k = 0; k < w->n_x; k++)
			w->off[k] -= s->dim[i] * w->x[k]->stride[i];
		w->at[i] = 0;
	}
	return true;
}

/* ---- copies ---- */

static void copy_back(struct tape *t, const struct tape_line *l)
{
	struct tensor *const x[] = { l->out, l->in[0] };
	struct tape_walk w;

	(void)t;
	tape_walk_begin(&w, x, 2);
	while (tape_walk_next(&w))
		for (size_t i = 0; i < w.n; i++)
			l->in[0]->grad[w.off[1] + i * w.by[1]] +=
				l->out->grad[w.off[0] + i * w.by[0]];
}

/* y becomes x, and with x's gradient gets a line. */
static void copy_into(struct tensor *y, struct tensor *x)
{
	struct tensor *const both[] = { y, x };
	struct tape_walk w;

	tape_walk_begin(&w, both, 2);
	while (tape_walk_next(&w))
		for (size_t i = 0; i < w.n; i++)
			y->data[w.off[0] + i * w.by[0]] =
				x->data[w.off[1] + i * w.by[1]];
	if (x->grad)
		tape_record(x->tape, &(struct tape_line){ .back = copy_back,
							  .out = y,
							  .in = { x } });
}

struct tensor *tape_copy(struct tensor *x)
{
	if (!x)
		return NULL;
	struct tensor *y = tape_result(x->tape, x->shape, &x, 1);

	copy_into(y, x);
	return y;
}

bool tape_is_dense(const struct tensor *x)
{
	size_t want = 1;

	for (unsigned i = x->shape.n; i--;) {
		if (x->stride[i] != want && x->shape.dim[i] != 1)
			return tape_count(x) == 0;
		want *= x->shape.dim[i];
	}
	return true;
}

struct tensor *tape_dense(struct tensor *x)
{
	return !x || tape_is_dense(x) ? x : tape_copy(x);
}

/* ---- views ---- */

static struct tensor *view_new(const struct tensor *x)
{
	struct tensor *y = arena_alloc(&x->tape->step, sizeof(*y));

	*y = *x;
	return y;
}

struct tensor *tape_reshape(struct tensor *x, struct tape_shape s)
{
	if (!x)
		return NULL;
	if (tape_shape_count(&s) != tape_count(x))
		return tape_fail(x->tape, "reshape: %s has %zu elements; got "
				 "%s of %zu", tape_show(x->tape, &x->shape),
				 tape_count(x), tape_show(x->tape, &s),
				 tape_shape_count(&s));
	struct tensor *y = view_new(tape_dense(x));
	size_t stride = 1;
	y->shape = s;
	for (unsigned i = s.n; i--;) {
		y->stride[i] = stride;
		stride *= s.dim[i];
	}
	return y;
}

struct tensor *tape_slice(struct tensor *x, unsigned dim, size_t from,
			  size_t n)
{
	if (!x)
		return NULL;
	if (dim >= x->shape.n || from > x->shape.dim[dim] ||
	    n > x->shape.dim[dim] - from)
		return tape_fail(x->tape, "slice: %zu elements from %zu on of "
				 "dimension %u of %s; wanted some that it has",
				 n, from, dim, tape_show(x->tape, &x->shape));
	struct tensor *y = view_new(x);
	y->shape.dim[dim] = n;
	y->data += from * x->stride[dim];
	if (y->grad)
		y->grad += from * x->stride[dim];
	return y;
}

struct tensor *tape_swap(struct tensor *x, unsigned a, unsigned b)
{
	if (!x)
		return NULL;
	if (a >= x->shape.n || b >= x->shape.n)
		return tape_fail(x->tape, "swap: dimensions %u and %u of %s; "
				 "wanted some that it has", a, b,
				 tape_show(x->tape, &x->shape));
	struct tensor *y = view_new(x);
	y->shape.dim[a] = x->shape.dim[b];
	y->stride[a] = x->stride[b];
	y->shape.dim[b] = x->shape.dim[a];
	y->stride[b] = x->stride[a];
	return y;
}

struct tensor *tape_spread(struct tensor *x, struct tape_shape s)
{
	if (!x)
		return NULL;
	unsigned lacks = s.n - x->shape.n;
	bool fits = s.n >= x->shape.n;
	struct tensor *y = view_new(x);

	y->shape = s;
	for (unsigned i = 0; fits && i < s.n; i++) {
		size_t has = i < lacks ? 1 : x->shape.dim[i - lacks];

		fits = has == s.dim[i] || has == 1;
		y->stride[i] = has == 1 ? 0 : x->stride[i - lacks];
	}
	return fits ? y :
		      tape_fail(x->tape, "spread: got %s; wanted what can be "
				"%s: of each dimension its size, or 1",
				tape_show(x->tape, &x->shape),
				tape_show(x->tape, &s));
}

struct tensor *tape_append(struct tensor *a, struct tensor *b, unsigned dim)
{
	struct tensor *const both[] = { a, b };
	struct tape_shape s, t;

	if (!a || !b)
		return NULL;
	s = a->shape;
	t = b->shape;
	if (dim < s.n && dim < t.n) {
		s.dim[dim] += t.dim[dim];
		t.dim[dim] = s.dim[dim];
	}
	if (dim >= s.n || s.n != t.n ||
	    memcmp(s.dim, t.dim, s.n * sizeof(*s.dim)) != 0)
		return tape_fail(a->tape,
				 "append: %s and %s in dimension %u; wanted "
				 "one that both have, and else the same sizes",
				 tape_show(a->tape, &a->shape),
				 tape_show(a->tape, &b->shape), dim);
	struct tensor *y = tape_result(a->tape, s, both, 2);
	copy_into(tape_slice(y, dim, 0, a->shape.dim[dim]), a);
	copy_into(tape_slice(y, dim, a->shape.dim[dim], b->shape.dim[dim]), b);
	return y;
}

bool tape_join(const struct tape_shape *a, const struct tape_shape *b,
	       unsigned apart, struct tape_shape *out)
{
	unsigned n = (a->n > b->n ? a->n : b->n) - apart;

	*out = (struct tape_shape){ .n = n };
	for (unsigned i = 1; i <= n; i++) {
		size_t p = i + apart <= a->n ? a->dim[a->n - apart - i] : 1;
		size_t q = i + apart <= b->n ? b->dim[b->n - apart - i] : 1;

		if (p != q && p != 1 && q != 1)
			return false;
		out->dim[n - i] = p == 1 ? q : p;
	}
	return true;
}
