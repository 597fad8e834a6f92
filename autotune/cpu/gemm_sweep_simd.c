/*
 * autotune/cpu/gemm_sweep_simd.c - products with few rows of A and B [k][n]:
 * sums of rows.
 *
 * B is read once, as it is stored; a row of C is the sum of rows of B, each
 * times a value of A.
 *
 * As in gemm_dot_simd.c, rows of B that are far from each other are read side
 * by side, so that enough lines are in flight.  They are added to C together,
 * so many columns at a time that the sums stay in the first cache; in a buffer
 * of their own, for rows of C tend to fall into one set of it.
 */
#include "autotune/cpu/gemm_simd.h"

#define AROWS	    8 /* rows of A at a time; a power of 2 */
#define BROWS	    8 /* rows of B at a time */
#define SUMS	    4096
#define LINE_BYTES  64
#define AHEAD_BYTES 1024

/*
 * Some rows of B, `step` bytes apart, from a column on; as many values of each
 * of some rows of A; and what their products are added to: sum[row * ld +
 * column].
 */
struct group {
	const char *b;
	size_t step;
	float a[AROWS][BROWS];
	float *sum;
	size_t ld;    /* a multiple of LANES: there is room behind a row */
	size_t width; /* columns */
	/* What is fetched: bytes from b, and from `turn` bytes on. */
	size_t ahead, turn, behind;
};

/* LANES columns from `at` on. */
static ALWAYS void add_rows(const struct group *q, enum cpu_gemm_type type,
			    int na, size_t at)
{
	vf s[AROWS];

#pragma GCC unroll 8
	for (int t = 0; t < na; t++)
		s[t] = load(q->sum + t * q->ld + at);
#pragma GCC unroll 8
	for (int r = 0; r < BROWS; r++) {
		vf w = load_type(type, q->b + r * q->step, at);
#pragma GCC unroll 8
		for (int t = 0; t < na; t++)
			s[t] = fma_(w, splat(q->a[t][r]), s[t]);
	}
#pragma GCC unroll 8
	for (int t = 0; t < na; t++)
		store(q->sum + t * q->ld + at, s[t]);
}

/* Any number of rows, to the last column; all else as above. */
static __attribute__((noinline)) void add_some(const struct group *q,
					       enum cpu_gemm_type type, int nb,
					       int na, size_t at)
{
	for (; at < q->width; at += LANES) {
		size_t n = q->width - at;
		for (int r = 0; r < nb; r++) {
			const char *b = q->b + r * q->step;
			vf w = n < LANES ? load_type_some(type, b, at, n) :
					   load_type(type, b, at);
			for (int t = 0; t < na; t++) {
				float *p = q->sum + t * q->ld + at;
				store(p, fma_(w, splat(q->a[t][r]), load(p)));
			}
		}
	}
}

static ALWAYS void add_group(const struct group *q, enum cpu_gemm_type type,
			     int na)
{
	const size_t size = type == CPU_GEMM_F32 ? 4 : 2;
	size_t at = 0;

	for (; at + LANES <= q->width; at += LANES) {
		size_t now = at * size;
		if (now % LINE_BYTES == 0 && q->ahead) {
			now += now < q->turn ? q->ahead : q->behind;
#pragma GCC unroll 8
			for (int r = 0; r < BROWS; r++)
				__builtin_prefetch(q->b + r * q->step + now);
		}
		add_rows(q, type, na, at);
	}
	if (at < q->width)
		add_some(q, type, BROWS, na, at);
}

/* Rows k, k + step, ... of B, nb of them, for rows [i, i + na) of A. */
static ALWAYS void accumulate_rows(const struct cpu_gemm *g,
				   enum cpu_gemm_type type, struct group *q,
				   size_t i, int na, size_t k, size_t step,
				   int nb)
{
	for (int t = 0; t < na; t++)
		for (int r = 0; r < nb; r++)
			q->a[t][r] = g->a[(i + t) * g->lda + k + r * step];
	if (nb < BROWS)
		add_some(q, type, nb, na, 0);
	else
		add_group(q, type, na);
}

/* The same for all rows of A, of which only the first ones fetch. */
static ALWAYS void add_all(const struct cpu_gemm *g, enum cpu_gemm_type type,
			   float *sum, struct group *q, size_t k, size_t step,
			   int nb)
{
	size_t i = 0, ahead = q->ahead;

	while (i < g->m) {
		size_t left = g->m - i;
		q->sum = sum + i * q->ld;
		if (left >= 8)
			accumulate_rows(g, type, q, i, 8, k, step, nb);
		else if (left >= 4)
			accumulate_rows(g, type, q, i, 4, k, step, nb);
		else if (left >= 2)
			accumulate_rows(g, type, q, i, 2, k, step, nb);
		else
			accumulate_rows(g, type, q, i, 1, k, step, nb);
		i += left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
		q->ahead = 0;
	}
	q->ahead = ahead;
}

/* Columns [j, j + width). */
static ALWAYS void sweep_columns(const struct cpu_gemm *g,
				 enum cpu_gemm_type type, size_t j,
				 size_t width, size_t ahead)
{
	const size_t size = type == CPU_GEMM_F32 ? 4 : 2, ld = g->ldb * size;
	const size_t step = g->k / BROWS, end = width * size;
	const char *b = (const char *)g->b + j * size;
	_Alignas(64) float sum[SUMS];
	struct group q = { .step = step * ld,
			   .ld = (width + 15) / 16 * 16,
			   .width = width,
			   .ahead = ahead,
			   .turn = end > ahead ? end - ahead : 0,
			   /* Behind the last column comes the next row. */
			   .behind = ahead + ld - end };

	memset(sum, 0, g->m * q.ld * sizeof(*sum));
	for (size_t k = 0; k < step; k++) {
		q.b = b + k * ld;
		add_all(g, type, sum, &q, k, step, BROWS);
	}
	q.b = b + step * BROWS * ld;
	q.step = ld;
	if (g->k % BROWS)
		add_all(g, type, sum, &q, step * BROWS, 1,
			(int)(g->k % BROWS));
	SIMD(cpu_gemm_merge)(sum, q.ld, g->m, width, g->alpha, g->beta,
			     g->c + j, g->ldc);
}

static ALWAYS void by_type(enum cpu_gemm_type type, const struct cpu_gemm *g,
			   size_t j, size_t j1, size_t ahead_bytes)
{
	const size_t rows = g->m ? g->m : 1;
	const size_t most = SUMS / rows / 64 * 64;

	for (; j < j1; j += most)
		sweep_columns(g, type, j, j1 - j < most ? j1 - j : most,
			      ahead_bytes);
}

void SIMD(cpu_gemm_sweep)(const struct cpu_gemm *g, size_t j0,
			  size_t j1, size_t ahead_bytes)
{
	if (!ahead_bytes)
		ahead_bytes = AHEAD_BYTES;
	CPU_GEMM_EACH_TYPE(g->b_type, by_type, g, j0, j1, ahead_bytes)
}
