/*
 * engine/train/tape/record.h - what the operations of a tape share: lines,
 * memory of a step, walks over tensors of any strides.
 */
#ifndef T0_ENGINE_TRAIN_TAPE_RECORD_H
#define T0_ENGINE_TRAIN_TAPE_RECORD_H

#include "base/vec.h"
#include "engine/train/tape/tape.h"

#define TAPE_OPERANDS 3

/* An operation that was done.  Operands that are missing are NULL. */
struct tape_line {
	/* Adds to the gradients of operands that have one. */
	void (*back)(struct tape *t, const struct tape_line *l);
	struct tensor *out, *in[TAPE_OPERANDS];
	int which;	     /* function, reduction */
	float number;	     /* a factor, how many targets */
	bool causal;
	const struct tensor *seen; /* keys of attention; NULL: all */
	float *kept;	     /* what the way back needs */
	const uint32_t *ids; /* of rows; TAPE_MAX: of elements */
};

struct tape_learner {
	struct tensor *x;
	float *state[2]; /* the optimizer's */
};

struct tape {
	struct threads *pool;
	struct err *e;
	struct cpu_gemm_scratch *gemm; /* a thread's each */
	struct arena step, kept;
	VEC(struct tape_line) line;
	VEC(struct tape_learner) learner;
};

/* ------------------------------------------------------------ tape.c ---- */

/* Sets the error unless there is one already; returns NULL. */
struct tensor *tape_fail(struct tape *t, const char *fmt, ...)
	T0_PRINTF(2, 3);
/* "[2, 3]" in memory of the step. */
const char *tape_show(struct tape *t, const struct tape_shape *s);
size_t tape_shape_count(const struct tape_shape *s);
/* Zeros of the step. */
float *tape_floats(struct tape *t, size_t n);
/* Zeros of shape s, with a gradient if one of the operands has one. */
struct tensor *tape_result(struct tape *t, struct tape_shape s,
			   struct tensor *const *in, unsigned n);
/* A line, if its result has a gradient. */
void tape_record(struct tape *t, const struct tape_line *l);
/* c [m][n] = a [m][k] op(b) + beta c, all dense; sizes may be 0. */
void tape_product(struct tape *t, size_t m, size_t n, size_t k, const float *a,
		  const float *b, bool b_by_n, float beta, float *c);

/* ------------------------------------------------------------ view.c ---- */

/* x itself if it is dense, else a copy. */
struct tensor *tape_dense(struct tensor *x);
/*
 * The shape that both can be spread to, of all dimensions but the last
 * `apart`; false: there is none.
 */
bool tape_join(const struct tape_shape *a, const struct tape_shape *b,
	       unsigned apart, struct tape_shape *out);

#define TAPE_WALKED 3
/*
 * The rows of tensors of one shape, in order: row i of tensor k begins at
 * element off[k] and goes on in steps of by[k].
 *
 *	tape_walk_begin(&w, x, n);
 *	while (tape_walk_next(&w))
 *		for (size_t i = 0; i < w.n; i++)
 *			... x[k]->data[w.off[k] + i * w.by[k]]
 */
struct tape_walk {
	const struct tensor *x[TAPE_WALKED];
	unsigned n_x;
	size_t rows; /* that are left */
	bool inside;
	size_t at[TAPE_DIMS];
	size_t n, off[TAPE_WALKED], by[TAPE_WALKED];
};
void tape_walk_begin(struct tape_walk *w, struct tensor *const *x,
		     unsigned n);
bool tape_walk_next(struct tape_walk *w);

#endif
