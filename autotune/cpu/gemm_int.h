/*
 * host_int.h - what the object of each level of the instruction set gives to
 * the host's GEMM (autotune/cpu/gemm.h).
 */
#ifndef T0_AUTOTUNE_HOST_INT_H
#define T0_AUTOTUNE_HOST_INT_H

#include "autotune/cpu/gemm.h"

#define HOST_ROWS_MAX 16

/* One block of a product: rows times columns, `k` products each. */
struct host_block {
	size_t k;
	const float *p; /* rows in lines: p[k / lanes][row][k % lanes] */
	const float *q; /* columns: q[k][column] */
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
	/* s [rows][k] to lines: out[k / lanes][row][lanes], zeros behind k. */
	void (*pack_lines)(const struct host_source *s, size_t rows, size_t k,
			   float *out);
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
	 * for all i < m and j0 <= j < j1; sweep, where b is [k][n].
	 */
	void (*dot)(const struct host_gemm *g, size_t j0, size_t j1,
		    size_t ahead_bytes);
	void (*sweep)(const struct host_gemm *g, size_t j0, size_t j1,
		      size_t ahead_bytes);
};

/*
 * Tiles of bf16 values in 1 KiB, as AMX takes them: 16 rows, or pairs of k's,
 * of 64 bytes.  Packed is [k / HOST_AMX_K][parts][tiles], zeros behind what
 * there is.
 */
#define HOST_AMX_LEVEL	     5
#define HOST_AMX_TILE_BYTES  1024
#define HOST_AMX_K	     32 /* of a tile */
#define HOST_AMX_ROWS_MAX    32
#define HOST_AMX_COLUMNS_MAX 32

/* In how many bf16 values one of a type goes: without loss, but for coarse. */
static inline unsigned host_amx_parts(enum host_gemm_type type, bool coarse)
{
	return type == HOST_GEMM_BF16	       ? 1 :
	       type == HOST_GEMM_F16 || coarse ? 2 :
						 3;
}

/* Of `rows` rows or columns in so many parts, packed. */
static inline size_t host_amx_bytes(unsigned parts, size_t rows, size_t k)
{
	return (rows + 15) / 16 * ((k + HOST_AMX_K - 1) / HOST_AMX_K) * parts *
	       HOST_AMX_TILE_BYTES;
}

struct host_amx_block {
	const char *rows, *columns; /* packed */
	size_t k;
	float *sums; /* [tiles of rows][tiles of columns][16][16] */
	bool first;  /* they begin at 0 */
	/* Values [ahead_rows][k] that are wanted soon, not packed. */
	const char *ahead;
	size_t ahead_rows, ahead_ld_bytes, ahead_step_bytes; /* of 32 k's */
};

struct host_amx_kernels {
	/* s is [rows][k] and [columns][k]; f32 goes in 2 or 3 parts. */
	void (*pack_rows)(const struct host_source *s, unsigned parts,
			  size_t rows, size_t k, char *out);
	void (*pack_turned)(const struct host_source *s, unsigned parts,
			    size_t k, size_t columns, char *out);
	/* s is [k][columns]; panels of `tiles` tiles, one behind the other. */
	void (*pack_paired)(const struct host_source *s, unsigned parts,
			    size_t k, size_t columns, size_t tiles, char *out);
	/* By parts of rows and columns and tiles of both, each less one. */
	void (*tile[3][3][2][2])(const struct host_amx_block *b);
	/* n is a multiple of 16. */
	bool (*finite)(const float *s, size_t n);
	/* Rounds of multiply-adds in registers; returns how many FLOP. */
	double (*spin)(uint64_t rounds);
	/* Around the use of tiles: a thread without them is switched faster. */
	void (*begin)(void);
	void (*end)(void);
};

extern const struct host_amx_kernels host_amx_kernels;

/* Of a level that this processor has. */
const struct host_kernels *host_kernels(unsigned level);

/* ------------------------------------------------------ host_gemm.c ----- */

/* From element (row, column) on. */
struct host_source host_source_at(const struct host_source *s, size_t row,
				  size_t column);
/* Aligned to a cache line and more; what was there before is gone. */
void *host_scratch_get(struct host_gemm_scratch *s, size_t bytes);
/* The part [*from, *to) of n in steps of `unit`. */
void host_cut(size_t n, size_t unit, unsigned part, unsigned parts,
	      size_t *from, size_t *to);

/* ------------------------------------------------------- host_amx.c ----- */

/*
 * A share of products with the same columns, all of a list if these are of A,
 * by a configuration of HOST_AMX_LEVEL.
 */
void host_amx_part(const struct host_gemm *g, size_t n,
		   const struct host_gemm_config *how,
		   struct host_gemm_scratch *scratch, unsigned part,
		   unsigned parts);

/* ------------------------------------------------------ host_plan.c ----- */

/* host_gemm_default() for a level. */
void host_gemm_plan(const struct host_gemm *g, unsigned level,
		    struct host_gemm_config *c);
/* Sets nc and depth for the path and kc; `deep`: all of k if it fits. */
void host_gemm_blocks(const struct host_gemm *g, bool deep,
		      struct host_gemm_config *c);
/* The same for HOST_AMX_LEVEL, with at most so many k's at a time. */
void host_amx_blocks(const struct host_gemm *g, size_t depth,
		     struct host_gemm_config *c);

#endif
