/*
 * engine/train/tape/reduce.c - sums, means and maxima along a dimension.
 */
#include "engine/train/tape/record.h"

static const char *const reduction_name[TAPE_REDUCTIONS] = {
	[TAPE_SUM] = "sum", [TAPE_MEAN] = "mean", [TAPE_MAX] = "max",
};

/* A row x in steps of `by`: its value, of MAX where the largest is. */
static float reduce_row(int how, const float *x, size_t n, size_t by,
			uint32_t *where)
{
	size_t best = 0;
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += x[i * by];
		best = x[i * by] > x[best * by] ? i : best;
	}
	*where = (uint32_t)best;
	if (how == TAPE_MAX)
		return x[best * by];
	return (float)(how == TAPE_MEAN ? sum / (double)n : sum);
}

/* Operands: x with the dimension last, and the result spread to it. */
static void reduce_back(struct tape *t, const struct tape_line *l)
{
	struct tensor *const x[] = { l->out, l->in[0] };
	const uint32_t *where = l->ids;
	struct tape_walk w;

	(void)t;
	tape_walk_begin(&w, x, 2);
	for (; tape_walk_next(&w); where++) {
		float dy = x[0]->grad[w.off[0]];
		float *dx = x[1]->grad + w.off[1];

		if (l->which == TAPE_MAX) {
			dx[*where * w.by[1]] += dy;
			continue;
		}
		dy /= l->which == TAPE_MEAN ? (float)w.n : 1;
		for (size_t i = 0; i < w.n; i++)
			dx[i * w.by[1]] += dy;
	}
}

struct tensor *tape_reduce(enum tape_reduction how, struct tensor *x,
			   unsigned dim)
{
	struct tape_shape s;
	struct tape_walk w;

	if (!x)
		return NULL;
	struct tape *t = x->tape;
	if (dim >= x->shape.n || x->shape.dim[dim] > UINT32_MAX ||
	    (!x->shape.dim[dim] && how != TAPE_SUM))
		return tape_fail(t, "%s: dimension %u of %s; wanted one that "
				 "it has%s", reduction_name[how], dim,
				 tape_show(t, &x->shape),
				 how == TAPE_SUM ? "" : ", not empty");
	s = x->shape;
	s.dim[dim] = 1;
	struct tensor *y = tape_result(t, s, &x, 1);
	struct tensor *both[] = { NULL, tape_swap(x, dim, x->shape.n - 1) };
	both[0] = tape_spread(tape_swap(y, dim, s.n - 1), both[1]->shape);
	uint32_t *where = arena_alloc(&t->step,
				      tape_count(y) * sizeof(*where));
	const struct tape_line line = { .back = reduce_back, .out = both[0],
					.in = { both[1] }, .which = (int)how,
					.ids = where };
	tape_walk_begin(&w, both, 2);
	while (tape_walk_next(&w))
		y->data[w.off[0]] = reduce_row((int)how,
					       both[1]->data + w.off[1], w.n,
					       w.by[1], where++);
	tape_record(t, &line);
	return y;
}

struct tensor *tape_reduce_all(enum tape_reduction how, struct tensor *x)
{
	if (!x)
		return NULL;
	x = tape_reshape(x, TAPE_SHAPE(tape_count(x)));
	return tape_reshape(tape_reduce(how, x, 0), (struct tape_shape){ 0 });
}
