/*
 * stream_int - weights that stream past a few activations: what the builders of
 * such products share (stream.c says how matrices lie).
 */
#ifndef T0_COMPILER_STREAM_INT_H
#define T0_COMPILER_STREAM_INT_H

#include "compiler/kernels/kernels_int.h"

/* A matrix that streams, and how a lane takes its columns. */
struct stream {
	struct val w, scale, n;
	enum dsl_type type;
	uint32_t step; /* columns of a lane at a time */
	uint32_t rows; /* of a wave at a time: KERNEL_STREAM_ROWS, or fewer */
	uint32_t span; /* columns that share a scale, in bits */
};

/* The inputs of a product, one for each token, and the norm before it. */
struct stream_input {
	struct val x[KERNEL_MAX_TOKENS]; /* [n] */
	struct val gain;		 /* [n]; with `norm` */
	struct val eps;
	uint32_t tokens;
	bool norm;
};

/* Arguments w, scale; the caller sets n, the columns. */
struct stream stream_args(struct dsl *k, const struct kernel_shape *s);
/* Arguments x[, gain, eps]; all inputs begin where x does. */
struct stream_input stream_input_args(struct dsl *k, bool norm,
				      uint32_t tokens);
/* The rows of x that are the inputs: of tokens at[]. */
void stream_input_rows(struct stream_input *in, const struct val *at,
		       struct val n);
/*
 * out[token][row], the same in all lanes: the products of s->rows rows r[] with
 * the inputs.
 */
void stream_rows(struct dsl *k, const struct stream *s,
		 const struct stream_input *in, const struct val *r,
		 struct val out[KERNEL_MAX_TOKENS][KERNEL_STREAM_ROWS]);
/* Writes out[j] to y[first + j] from one lane. */
void stream_store(struct dsl *k, struct val y, struct val first,
		  struct val rows, const struct val *out, uint32_t n);

#endif
