/*
 * autotune/cpu/gemm_int.h - what the object of each level of the instruction
 * set gives to the host's GEMM (autotune/cpu/gemm.h).
 */
#ifndef T0_AUTOTUNE_GEMM_INT_H
#define T0_AUTOTUNE_GEMM_INT_H

#include "autotune/cpu/gemm.h"

#define CPU_GEMM_ROWS_MAX 16

/* One block of a product: rows times columns, `k` products each. */
struct cpu_gemm_block {
	size_t k;
	const float *p; /* rows in lines: p[k / lanes][row][k % lanes] */
	const float *q; /* columns: q[k][column] */
	float alpha, beta;
	float *c; /* c[row * ldc + column] */
	size_t ldc;
	/* Rows of k values that are wanted soon, any address. */
	const char *ahead;
	unsigned ahead_rows;
	unsigned ahead_shift; /* log2 of the size of a value, in bytes */
	size_t ahead_ld_bytes;
};

/* Values [count][k] of a type, `ld` apart, and where they go as f32. */
struct cpu_gemm_source {
	enum cpu_gemm_type type;
	const void *data;
	size_t ld;
};

struct cpu_gemm_kernels {
	unsigned lanes; /* f32 values of a vector */
	/*
	 * Values of a k that stand together in 32 bits: 1, or 2 of bf16.  K's
	 * of tiles, and so kc and depth, are such units; packing counts values
	 * and fills the last unit with zeros.
	 */
	unsigned unit;
	/* Rows of the largest tile with 1, 2, ... vectors. */
	uint8_t rows[CPU_GEMM_VECS_MAX];
	/* c = alpha * p * q + beta * c; c is read only where beta is not 0. */
	void (*tile[CPU_GEMM_VECS_MAX][CPU_GEMM_ROWS_MAX])(
		const struct cpu_gemm_block *b);
	/* Rows of a B of INT8 or INT4 as f32; see cpu_gemm_make_fn. */
	void (*make_ints)(const struct cpu_gemm *g, size_t row, size_t n,
			  size_t k0, size_t k, float *out, size_t ldo);
	/* s [rows][k] to lines: out[k / lanes][row][lanes], zeros behind k. */
	void (*pack_lines)(const struct cpu_gemm_source *s, size_t rows,
			   size_t k, float *out);
	/*
	 * Columns to vectors: out[k][width], zeros behind `columns`.  By rows
	 * of s: s is [k][columns]; by columns: s is [columns][k].
	 */
	void (*pack_rows)(const struct cpu_gemm_source *s, size_t k,
			  size_t columns, size_t width, float *out);
	void (*pack_columns)(const struct cpu_gemm_source *s, size_t k,
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
	 * CPU_GEMM_DOT: c[i][j] = alpha * sum a[i][k] b[j][k] + beta * c[i][j]
	 * for all i < m and j0 <= j < j1; sweep, where b is [k][n].
	 */
	void (*dot)(const struct cpu_gemm *g, size_t j0, size_t j1,
		    size_t ahead_bytes);
	void (*sweep)(const struct cpu_gemm *g, size_t j0, size_t j1,
		      size_t ahead_bytes);
};

/*
 * Tiles of bf16 values in 1 KiB, as AMX takes them: 16 rows, or pairs of k's,
 * of 64 bytes.  Packed is [k / CPU_AMX_K][parts][tiles], zeros behind what
 * there is.
 */
#define CPU_AMX_LEVEL	     CPU_LEVEL_AMX
#define CPU_AMX_TILE_BYTES  1024
#define CPU_AMX_K	     32 /* of a tile */
#define CPU_AMX_ROWS_MAX    32
#define CPU_AMX_COLUMNS_MAX 32

/* In how many bf16 values one of a type goes: without loss, but for coarse. */
static inline unsigned cpu_amx_parts(enum cpu_gemm_type type, bool coarse)
{
	return type == CPU_GEMM_BF16	       ? 1 :
	       type == CPU_GEMM_F16 || coarse ? 2 :
						 3;
}

/* Of `rows` rows or columns in so many parts, packed. */
static inline size_t cpu_amx_bytes(unsigned parts, size_t rows, size_t k)
{
	return (rows + 15) / 16 * ((k + CPU_AMX_K - 1) / CPU_AMX_K) * parts *
	       CPU_AMX_TILE_BYTES;
}

/*
 * Groups of 32 bytes, each with a scale.  A row's are [groups] of CPU_BYTES_ROW
 * bytes: the integers, -128 times their sum, the scale in f32.  A panel of
 * columns is [groups][8 + 1][width] words: four integers of a column each, then
 * its scales.
 */
#define CPU_BYTES_GROUP	 32
#define CPU_BYTES_ROW	 40
#define CPU_BYTES_OFFSET 32
#define CPU_BYTES_SCALE	 36
#define CPU_BYTES_COLUMN 9
#define CPU_BYTES_ROWS	 8 /* of a tile, at most */
#define CPU_BYTES_VECS	 3
/*
 * CHANNEL8: a row's are [groups] of 32 bytes, then -128 times the sum of all, and
 * the scale; a panel of columns is [groups][8][width] words, then their scales.
 */
#define CPU_CHANNEL_ROW_END 8

struct cpu_bytes_block {
	const char *rows;
	size_t rows_ld_bytes;
	const float *columns;
	size_t groups;
	float alpha, beta;
	float *c;
	size_t ldc;
	/*
	 * Of kernels that are exact: how many groups there are up to the end of
	 * a row, these included, and sums of integers that wait between the
	 * first of its parts and the last.
	 */
	size_t behind;
	bool first, last;
	float *sums;
	size_t lds;
};

struct cpu_bytes_kernels {
	unsigned lanes;
	uint8_t rows, vecs; /* of the largest tile */
	bool exact;	    /* sums of all k's are of integers */
	/* Bytes of a packed row: of a group, and behind the last. */
	uint8_t row_step, row_end;
	/* Vectors of a packed column, likewise. */
	uint8_t column_step, column_end;
	/* c = alpha * rows * columns + beta * c, as cpu_gemm_kernels' tiles */
	void (*tile[CPU_BYTES_VECS][CPU_BYTES_ROWS])(
		const struct cpu_bytes_block *b);
	void (*pack_rows)(const float *a, size_t lda, size_t rows, size_t k,
			  char *out);
	/* `space` holds (CPU_BYTES_COLUMN + 8) * lanes * groups + 64 floats. */
	void (*pack_columns)(const struct cpu_gemm *g, size_t column,
			     size_t columns, size_t groups, float *out,
			     float *space);
	void (*merge)(const float *t, size_t ldt, size_t rows, size_t columns,
		      float alpha, float beta, float *c, size_t ldc);
};
/* Of a level of bytes that this processor has, for a B of a type. */
const struct cpu_bytes_kernels *cpu_bytes_kernels(unsigned level,
						  enum cpu_gemm_type b_type);

struct cpu_amx_block {
	const char *rows, *columns; /* packed */
	size_t k;
	float *sums; /* [tiles of rows][tiles of columns][16][16] */
	bool first;  /* they begin at 0 */
	/* Values [ahead_rows][k] that are wanted soon, not packed. */
	const char *ahead;
	size_t ahead_rows, ahead_ld_bytes, ahead_step_bytes; /* of 32 k's */
};

struct cpu_amx_kernels {
	/* s is [rows][k] and [columns][k]; f32 goes in 2 or 3 parts. */
	void (*pack_rows)(const struct cpu_gemm_source *s, unsigned parts,
			  size_t rows, size_t k, char *out);
	void (*pack_turned)(const struct cpu_gemm_source *s, unsigned parts,
			    size_t k, size_t columns, char *out);
	/* s is [k][columns]; panels of `tiles` tiles, one behind the other. */
	void (*pack_paired)(const struct cpu_gemm_source *s, unsigned parts,
			    size_t k, size_t columns, size_t tiles, char *out);
	/* By parts of rows and columns and tiles of both, each less one. */
	void (*tile[3][3][2][2])(const struct cpu_amx_block *b);
	/* n is a multiple of 16. */
	bool (*finite)(const float *s, size_t n);
	/* Rounds of multiply-adds in registers; returns how many FLOP. */
	double (*spin)(uint64_t rounds);
	/* Around the use of tiles: a thread without them is switched faster. */
	void (*begin)(void);
	void (*end)(void);
};

extern const struct cpu_amx_kernels cpu_amx_kernels;

/* Of a level that this processor has. */
const struct cpu_gemm_kernels *cpu_gemm_kernels(unsigned level);

/* ------------------------------------------------------ cpu_gemm.c ----- */

/* From element (row, column) on. */
struct cpu_gemm_source cpu_gemm_source_at(const struct cpu_gemm_source *s,
					  size_t row, size_t column);
/* Aligned to a cache line and more; what was there before is gone. */
void *cpu_gemm_scratch_get(struct cpu_gemm_scratch *s, size_t bytes);
/* The part [*from, *to) of n in steps of `unit`. */
void cpu_gemm_split(size_t n, size_t unit, unsigned part, unsigned parts,
		    size_t *from, size_t *to);

/* A product to be shared out; costs are in products of a value. */
struct cpu_gemm_shares {
	size_t rows, columns;
	size_t width, lanes; /* columns of a panel, and of a vector */
	size_t most;	     /* columns that are packed at a time */
	size_t column_cost, row_cost; /* to pack a value of each */
};

/*
 * In how many parts to cut the rows, the rest of `parts` being cuts of the
 * columns: what makes the largest share cheapest.  Rows are packed once for all
 * columns that are packed at a time.
 */
unsigned cpu_gemm_cuts(const struct cpu_gemm_shares *s, unsigned parts);

/* Rows of a B that is made, as f32. */
static inline void cpu_gemm_make(const struct cpu_gemm_kernels *k,
				 const struct cpu_gemm *g, size_t row, size_t n,
				 size_t k0, size_t count, float *out,
				 size_t ldo)
{
	if (g->b_type == CPU_GEMM_MADE)
		g->make(g->b, row, n, k0, count, out, ldo);
	else
		k->make_ints(g, row, n, k0, count, out, ldo);
}

/* ------------------------------------------------------ gemm_bytes.c ---- */

/* A share of products of a list, by a configuration of a level of bytes. */
void cpu_bytes_part(const struct cpu_gemm *g, size_t n,
		    const struct cpu_gemm_config *how,
		    struct cpu_gemm_scratch *scratch, unsigned part,
		    unsigned parts);

/* -------------------------------------------------------- gemm_amx.c ---- */

/*
 * A share of products with the same columns, all of a list if these are of A,
 * by a configuration of CPU_AMX_LEVEL.
 */
void cpu_amx_part(const struct cpu_gemm *g, size_t n,
		  const struct cpu_gemm_config *how,
		  struct cpu_gemm_scratch *scratch, unsigned part,
		  unsigned parts);

/* ------------------------------------------------------- gemm_plan.c ---- */

/* cpu_gemm_spin() of units of a level of x86-64. */
double cpu_gemm_spin_v2(unsigned level, uint64_t rounds);
double cpu_gemm_spin_v3(unsigned level, uint64_t rounds);
double cpu_gemm_spin_v4(unsigned level, uint64_t rounds);
/* The VNNI of AVX, where that of AVX-512 needs not be. */
bool cpu_has_avx_vnni(void);

/* cpu_gemm_default() for a level. */
void cpu_gemm_plan(const struct cpu_gemm *g, unsigned level,
		   struct cpu_gemm_config *c);
/* Sets nc and depth for the path and kc; `deep`: all of k if it fits. */
void cpu_gemm_blocks(const struct cpu_gemm *g, bool deep,
		     struct cpu_gemm_config *c);
/* The same for CPU_AMX_LEVEL, with at most so many k's at a time. */
void cpu_amx_blocks(const struct cpu_gemm *g, size_t depth,
		    struct cpu_gemm_config *c);

#endif
