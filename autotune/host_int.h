/*
 * host_int.h - what the object of each level of the instruction set gives to
 * the host's GEMM (autotune/host.h).
 */
#ifndef T0_AUTOTUNE_HOST_INT_H
#define T0_AUTOTUNE_HOST_INT_H

#include "autotune/host.h"

#define HOST_ROWS_MAX 24

/* One block of a product: rows times columns, `k` products each. */
struct host_block {
	size_t k;
	const float *p; /* rows, ldp apart: p[row * ldp + k] */
	size_t ldp;
	const float *q; /* columns, side by side: q[k * ldq + column] */
	size_t ldq;
	float alpha, beta;
	float *c; /* c[row * ldc + column] */
	size_t ldc;
	/* HOST_AHEAD rows of k values that are wanted soon, any address. */
	const char *ahead;
	size_t ahead_ld_bytes;
	unsigned ahead_shift; /* log2 of the size of a value, in bytes */
};
#define HOST_AHEAD 3

/* Values [count][k] of a type, `ld` apart, and where they go as f32. */
struct host_source {
	enum host_gemm_type type;
	const void *data;
	size_t ld;
};

struct host_kernels {
	unsigned lanes; /* f32 values of a vector */
	/* Rows of the largest tile with 1, 2, ... vectors. */
	uint8_t rows[HOST_GEMM_VECS_MAX];
	/* c = alpha * p * q + beta * c; c is read only where beta is not 0. */
	void (*tile[HOST_GEMM_VECS_MAX][HOST_ROWS_MAX])(
		const struct host_block *b);
	/* s [rows][k] to out[row * ldo + k]. */
	void (*widen)(const struct host_source *s, size_t rows, size_t k,
		      float *out, size_t ldo);
	/*
	 * Columns to vectors: out[k][width], zeros behind `columns`.  By rows
	 * of s: s is [k][columns]; by columns: s is [columns][k].
	 */
	void (*pack_rows)(const struct host_source *s, size_t k, size_t columns,
			  size_t width, float *out);
	void (*pack_columns)(const struct host_source *s, size_t k,
			     size_t columns, size_t width, float *out);
	/*
	 * A tile that was computed apart: c[i][j] = alpha * t[i][j] + beta *
	 * c[i][j] for i < rows, j < columns, and turned, c[j][i].  Rows of t
	 * are ldt apart, a multiple of lanes; all of them may be read.
	 */
	void (*merge)(const float *t, size_t ldt, size_t rows, size_t columns,
		      float alpha, float beta, float *c, size_t ldc);
	void (*turn)(const float *t, size_t ldt, size_t rows, size_t columns,
		     float alpha, float beta, float *c, size_t ldc);
	/*
	 * HOST_GEMM_DOT: c[i][j] = alpha * sum a[i][k] b[j][k] + beta * c[i][j]
	 * for all i < m and j0 <= j < j1.
	 */
	void (*dot)(const struct host_gemm *g, size_t j0, size_t j1,
		    size_t ahead_bytes);
};

/* Of a level that this processor has. */
const struct host_kernels *host_kernels(unsigned level);

/* ------------------------------------------------------ host_plan.c ----- */

/* host_gemm_default() for a level. */
void host_gemm_plan(const struct host_gemm *g, unsigned level,
		    struct host_gemm_config *c);
/* Sets nc and depth for the path and kc; `deep`: all of k if it fits. */
void host_gemm_blocks(const struct host_gemm *g, bool deep,
		      struct host_gemm_config *c);

#endif
