/*
 * engine/train/tape - gradients of experiments: the manual.
 *
 * An operation on tensors computes at once and leaves a line on a tape;
 * tape_backward() goes along the tape from its end and gives every tensor that
 * depends on a parameter the gradient of the loss by it.  For what has no list
 * of operations of its own (engine/train/train.h): small models, new ideas.
 *
 * A whole program, which tests/train/tape-example.t cuts out of this comment,
 * compiles and runs.  Two layers learn whether two bits differ:
 *
 *	#include <stdio.h>
 *	#include "engine/train/tape/tape.h"
 *
 *	int main(void)
 *	{
 *		static const float bits[] = { 0, 0, 0, 1, 1, 0, 1, 1 };
 *		static const uint32_t differ[] = { 0, 1, 1, 0 };
 *		struct err e = { 0 };
 *		struct train_rule rule;
 *		struct tape *t = tape_new(NULL, &e);
 *		struct tensor *w1 = tape_param(t, TAPE_SHAPE(8, 2));
 *		struct tensor *b1 = tape_param(t, TAPE_SHAPE(8));
 *		struct tensor *w2 = tape_param(t, TAPE_SHAPE(2, 8));
 *		struct tensor *x, *loss;
 *		float last = 0;
 *
 *		tape_fill(w1, 1, 7); // uniform in -1 .. 1, by seed 7
 *		tape_fill(w2, 1, 8);
 *		train_rule_init(&rule);
 *		rule.rate = 0.05;
 *		rule.steps = 200;
 *		for (uint64_t step = 0; step < rule.steps; step++) {
 *			x = tape_input(t, TAPE_SHAPE(4, 2), bits);
 *			x = tape_apply(TAPE_TANH, tape_linear(x, w1, b1));
 *			loss = tape_cross_entropy(tape_linear(x, w2, NULL),
 *						  differ);
 *			if (!tape_backward(loss) ||
 *			    !tape_update(t, &rule, step, NULL))
 *				return err_report("xor", &e);
 *			last = loss->data[0];
 *			tape_clear(t); // x and loss are gone
 *		}
 *		printf("loss %s 0.1\n", last < 0.1 ? "below" : "above");
 *		tape_free(t);
 *		return 0;
 *	}
 *
 * Errors: an operation whose operands do not fit returns NULL and says why in
 * the tape's `e`, with its name and all shapes; one that is given NULL returns
 * NULL and leaves `e` as it is.  So a model is written without checks, and the
 * loss, or tape_backward(), tells.  The first error stays.
 *
 * Ownership: tensors are the tape's.  Those of a step lie in one arena, which
 * tape_clear() frees at once; parameters stay until tape_free().  One thread
 * at a time uses a tape; products are shared out to its pool, the rest is not.
 *
 * Arithmetic is f32; bits never depend on the number of threads.
 */
#ifndef T0_ENGINE_TRAIN_TAPE_H
#define T0_ENGINE_TRAIN_TAPE_H

#include "engine/train/train.h"

#define TAPE_DIMS 5 /* at most */

struct tape;

/* Sizes, the outermost first.  No dimension: one number.  Sizes may be 0. */
struct tape_shape {
	unsigned n;
	size_t dim[TAPE_DIMS];
};
#define TAPE_SHAPE(...)                                                    \
	((struct tape_shape){ sizeof((const size_t[]){ __VA_ARGS__ }) /    \
				      sizeof(size_t),                      \
			      { __VA_ARGS__ } })

/*
 * A tensor is only read by the caller, but for the data of parameters.  Views
 * share memory with what they are of, data and gradients: element
 * [i][j] is data[i * stride[0] + j * stride[1]].  What was broadcast has a
 * stride of 0.
 */
struct tensor {
	struct tape *tape;
	struct tape_shape shape;
	size_t stride[TAPE_DIMS]; /* elements */
	float *data;
	float *grad; /* strides as data; NULL: depends on no parameter */
};

/* ------------------------------------------------------------ tape.c ---- */

/*
 * The pool (NULL: the caller's thread alone) and `e`, which gets the errors of
 * all that follows, are the caller's and must outlive the tape.
 */
struct tape *tape_new(struct threads *pool, struct err *e);
void tape_free(struct tape *t);
/* The step ends: its tensors are gone, gradients of parameters stay. */
void tape_clear(struct tape *t);

/* Zeros that learn, dense. */
struct tensor *tape_param(struct tape *t, struct tape_shape s);
/* A dense copy of `data`, or zeros where that is NULL.  It learns nothing. */
struct tensor *tape_input(struct tape *t, struct tape_shape s,
			  const float *data);
/* A parameter becomes uniform within -most .. most; by the seed alone. */
void tape_fill(struct tensor *p, float most, uint64_t seed);

size_t tape_count(const struct tensor *x); /* elements */
/* Are the elements in order, with nothing between them? */
bool tape_is_dense(const struct tensor *x);

/*
 * Adds the gradients of `loss`, which has one element, to those of all that it
 * depends on.  Once a step: the tape's lines are used up.
 */
bool tape_backward(struct tensor *loss);
/*
 * Step `step` of a rule, as train_update() does it: clips, updates parameters
 * and sets their gradients to 0.  Parameters of two dimensions and more decay.
 * *norm, unless NULL, is the length of all gradients together; if that is not
 * a number, nothing is updated.  ERR_USAGE: the rule is Muon's.
 */
bool tape_update(struct tape *t, const struct train_rule *r, uint64_t step,
		 double *norm);

/* ------------------------------------------------------------ view.c ---- */

/* The same elements in their order; a view of what is dense, else a copy. */
struct tensor *tape_reshape(struct tensor *x, struct tape_shape s);
/* Views: elements [from, from + n) of dimension `dim`; two dimensions change
   places. */
struct tensor *tape_slice(struct tensor *x, unsigned dim, size_t from,
			  size_t n);
struct tensor *tape_swap(struct tensor *x, unsigned a, unsigned b);
/*
 * A view of shape s: dimensions are counted from the last; those that x lacks,
 * or has with size 1, are repeated.
 */
struct tensor *tape_spread(struct tensor *x, struct tape_shape s);
struct tensor *tape_copy(struct tensor *x); /* dense */
/* a, and behind it in dimension `dim` b; other sizes are the same. */
struct tensor *tape_append(struct tensor *a, struct tensor *b, unsigned dim);

/* --------------------------------------------------------- element.c ---- */

/* Both operands are spread to the shape that has the larger of each size. */
struct tensor *tape_add(struct tensor *a, struct tensor *b);
struct tensor *tape_subtract(struct tensor *a, struct tensor *b);
struct tensor *tape_multiply(struct tensor *a, struct tensor *b);
struct tensor *tape_divide(struct tensor *a, struct tensor *b);
/* x * by + plus */
struct tensor *tape_scale(struct tensor *x, float by, float plus);

/* GELU is x times the normal distribution's integral up to x. */
enum tape_function {
	TAPE_RELU,
	TAPE_GELU,
	TAPE_SILU,
	TAPE_SIGMOID,
	TAPE_TANH,
	TAPE_EXP,
	TAPE_LOG,
	TAPE_SQRT,
	TAPE_FUNCTIONS
};
struct tensor *tape_apply(enum tape_function f, struct tensor *x);

/* ---------------------------------------------------------- reduce.c ---- */

enum tape_reduction {
	TAPE_SUM,
	TAPE_MEAN,
	TAPE_MAX, /* the first of the largest has the gradient */
	TAPE_REDUCTIONS
};
/*
 * Along dimension `dim`, which stays with size 1, so that the result can be
 * spread again.  A mean or maximum of nothing is an error.
 */
struct tensor *tape_reduce(enum tape_reduction r, struct tensor *x,
			   unsigned dim);
/* Of all elements: no dimension is left. */
struct tensor *tape_reduce_all(enum tape_reduction r, struct tensor *x);

/* ------------------------------------------------------------- row.c ---- */

/* [..., n]: of every row by itself. */
struct tensor *tape_softmax(struct tensor *x);
/* x / rms(x) * w of every row; x [..., n], w [n]. */
struct tensor *tape_norm(struct tensor *x, struct tensor *w, float epsilon);
/*
 * Rows of table [rows][n], ids in shape s -> [s..., n].  An id that the table
 * does not have is an error.
 */
struct tensor *tape_embedding(struct tensor *table, struct tape_shape s,
			      const uint32_t *ids);
/*
 * The mean of -log softmax(logits)[target] over rows with a target: logits
 * [..., n], a target a row, TRAIN_IGNORE for none.  No targets: 0.
 */
struct tensor *tape_cross_entropy(struct tensor *logits,
				  const uint32_t *target);

/* ---------------------------------------------------------- linear.c ---- */

/* x [..., in], w [out][in], bias [out] or NULL -> [..., out] */
struct tensor *tape_linear(struct tensor *x, struct tensor *w,
			   struct tensor *bias);

/* ------------------------------------------------------- attention.c ---- */

/*
 * softmax(q k^T / sqrt(d)) v: q [..., n, d], k [..., m, d], v [..., m, out]
 * -> [..., n, out].  The dimensions before are spread, so heads of queries may
 * share keys.  Causal: the last query sees all keys, one before it a key less;
 * m is then at least n.  All weights are kept, so memory grows with n m.
 */
struct tensor *tape_attention(struct tensor *q, struct tensor *k,
			      struct tensor *v, bool causal);
/*
 * The same, where `seen` [..., n, m] is not 0, else as if the key were not
 * there; who sees none gets zeros.  `seen` is spread as q, and learns nothing.
 */
struct tensor *tape_attention_seen(struct tensor *q, struct tensor *k,
				   struct tensor *v, struct tensor *seen);

#endif
