/*
 * engine/train/tape/linear.c - products with a matrix, and a bias.
 */
#include "engine/train/kernels.h"
#include "engine/train/tape/record.h"

static void bias_back(const struct tape_line *l, size_t rows, size_t out)
{
	for (size_t r = 0; l->in[2] && l->in[2]->grad && r < rows; r++)
		train_kernels_best()->add(l->out->grad + r * out, out,
					  l->in[2]->grad);
}

static void linear_back(struct tape *t, const struct tape_line *l)
{
	const struct tensor *x = l->in[0], *w = l->in[1];
	size_t out = w->shape.dim[0], in = w->shape.dim[1];
	size_t rows = out ? tape_count(l->out) / out : 0;

	if (x->grad)
		tape_product(t, rows, in, out, l->out->grad, w->data, false, 1,
			     x->grad);
	if (w->grad) {
		float *turned = tape_floats(t, rows * out);
		train_kernels_best()->turn(l->out->grad, out, rows, out,
					   turned, rows);
		tape_product(t, out, in, rows, turned, x->data, false, 1,
			     w->grad);
	}
	bias_back(l, rows, out);
}

static bool linear_fits(const struct tensor *x, const struct tensor *w,
			const struct tensor *bias)
{
	return x->shape.n && w->shape.n == 2 &&
	       x->shape.dim[x->shape.n - 1] == w->shape.dim[1] &&
	       (!bias || (bias->shape.n == 1 &&
			  bias->shape.dim[0] == w->shape.dim[0]));
}

struct tensor *tape_linear(struct tensor *x, struct tensor *w,
			   struct tensor *bias)
{
	bool biased = bias;

	x = tape_dense(x);
	w = tape_dense(w);
	bias = tape_dense(bias);
	if (!x || !w || (biased && !bias))
		return NULL;
	struct tape *t = x->tape;
	if (!linear_fits(x, w, bias))
		return tape_fail(t, "linear: x is %s, w %s, the bias %s; "
				 "wanted [..., in], [out, in] and [out]",
				 tape_show(t, &x->shape),
				 tape_show(t, &w->shape),
				 bias ? tape_show(t, &bias->shape) : "none");
	struct tape_shape s = x->shape;
	size_t out = w->shape.dim[0], in = w->shape.dim[1];
	s.dim[s.n - 1] = out;
	struct tensor *const all[] = { x, w, bias };
	struct tensor *y = tape_result(t, s, all, 3);
	size_t rows = out ? tape_count(y) / out : 0;
	tape_product(t, rows, out, in, x->data, w->data, true, 0, y->data);
	for (size_t r = 0; bias && r < rows; r++)
		train_kernels_best()->add(bias->data, out, y->data + r * out);
	tape_record(t, &(struct tape_line){ .back = linear_back, .out = y,
					    .in = { x, w, bias } });
	return y;
}
