/*
 * autotune/cpu/gemm_dot_simd.c - products with few rows of A and B [n][k]: dot
 * products.
 *
 * B is read once, as it is stored; every element of C is a sum along k of its
 * own, in vectors.
 *
 * Memory bandwidth bounds such a product, so the number of cache lines in
 * flight counts.  One stream of addresses does not reach what a core can have:
 * the hardware prefetcher stays within a page and some twenty lines of it.  So
 * the rows of B are read as several streams far from each other; each covers
 * its part of all rows and prefetches its own next lines.
 */
#include "autotune/cpu/gemm_simd.h"

/*
 * Rows of A at a time, and of B (one row of A, more): as many sums as the
 * registers hold.
 */
#if LANES == 16
#define AROWS 6
#else
#define AROWS 2
#endif
#define BROWS_ONE 8
#define BROWS	  4
#define LINE_BYTES  64
#define AHEAD_BYTES 1024

static ALWAYS float sum_lanes(vf v)
{
	float s[LANES];

	memcpy(s, &v, sizeof(s));
	for (int n = LANES / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			s[i] += s[i + n];
	return s[0];
}

/* Rows j, j + step, ... of B, nb of them. */
struct b_rows {
	size_t j, step;
	size_t ahead_bytes;
};

static ALWAYS size_t size_of(enum cpu_gemm_type type)
{
	return type == CPU_GEMM_F32 ? 4 : 2;
}

/* Adds LANES products from `at` on to the sums. */
static ALWAYS void add_products(const struct cpu_gemm *g,
				enum cpu_gemm_type type, const float *a,
				int na, const char *b, size_t b_step, int nb,
				size_t at, vf (*s)[AROWS])
{
	vf x[AROWS];

#pragma GCC unroll 8
	for (int t = 0; t < na; t++)
		x[t] = load(a + t * g->lda + at);
#pragma GCC unroll 8
	for (int r = 0; r < nb; r++) {
		vf w = load_type(type, b + r * b_step, at);
#pragma GCC unroll 8
		for (int t = 0; t < na; t++)
			s[r][t] = fma_(w, x[t], s[r][t]);
	}
}

static ALWAYS void add_last(const struct cpu_gemm *g, enum cpu_gemm_type type,
			    const float *a, int na, const char *b,
			    size_t b_step, int nb, size_t at, vf (*s)[AROWS])
{
	size_t n = g->k - at;

	for (int r = 0; r < nb; r++) {
		vf w = load_type_some(type, b + r * b_step, at, n);
		for (int t = 0; t < na; t++)
			s[r][t] = fma_(w, load_some(a + t * g->lda + at, n),
				       s[r][t]);
	}
}

/* nb rows of B, na rows of A from i on. */
static ALWAYS void dot_rows(const struct cpu_gemm *g, enum cpu_gemm_type type,
			    size_t i, int na, const struct b_rows *rows, int nb)
{
	const size_t line = LINE_BYTES / size_of(type);
	const size_t step = rows->step * g->ldb * size_of(type);
	const char *b = (const char *)g->b + rows->j * g->ldb * size_of(type);
	const float *a = g->a + i * g->lda;
	size_t at = 0;
	vf s[BROWS_ONE][AROWS];

	for (int r = 0; r < nb; r++)
		for (int t = 0; t < na; t++)
			s[r][t] = (vf){ 0 };
	for (; at + line <= g->k; at += line) {
#pragma GCC unroll 8
		for (int r = 0; r < nb; r++)
			__builtin_prefetch(b + r * step + at * size_of(type) +
					   rows->ahead_bytes);
#pragma GCC unroll 8
		for (size_t v = 0; v < line; v += LANES)
			add_products(g, type, a, na, b, step, nb, at + v, s);
	}
	for (; at + LANES <= g->k; at += LANES)
		add_products(g, type, a, na, b, step, nb, at, s);
	if (at < g->k)
		add_last(g, type, a, na, b, step, nb, at, s);
	for (int t = 0; t < na; t++)
		for (int r = 0; r < nb; r++) {
			float *c = g->c + (i + t) * g->ldc + rows->j +
				   r * rows->step;
			float v = g->alpha * sum_lanes(s[r][t]);
			*c = g->beta == 0 ? v : v + g->beta * *c;
		}
}

/* All rows of A against BROWS rows of B, which stay in the first cache. */
static ALWAYS void dot_strip(const struct cpu_gemm *g, enum cpu_gemm_type type,
			     const struct b_rows *rows)
{
	const int nb = BROWS;
	size_t i = 0;

	/* As even as they come: 4 and 4 of 8, not 6 and 2. */
	for (size_t left = (g->m + AROWS - 1) / AROWS; left; left--) {
		size_t na = (g->m - i + left - 1) / left;
		switch (na) {
#if AROWS > 2
		case 6:
			dot_rows(g, type, i, 6, rows, nb);
			break;
		case 5:
			dot_rows(g, type, i, 5, rows, nb);
			break;
		case 4:
			dot_rows(g, type, i, 4, rows, nb);
			break;
		case 3:
			dot_rows(g, type, i, 3, rows, nb);
			break;
#endif
		case 2:
			dot_rows(g, type, i, 2, rows, nb);
			break;
		case 1:
			dot_rows(g, type, i, 1, rows, nb);
		}
		i += na;
	}
}

static ALWAYS void dot_strips(const struct cpu_gemm *g, enum cpu_gemm_type type,
			      size_t j0, size_t j1, size_t ahead_bytes, int nb)
{
	size_t step = (j1 - j0) / (size_t)nb;
	struct b_rows rows = { j0, step, ahead_bytes };

	for (; rows.j < j0 + step; rows.j++)
		if (nb == BROWS_ONE)
			dot_rows(g, type, 0, 1, &rows, BROWS_ONE);
		else
			dot_strip(g, type, &rows);
	/* What is left over of the division, fewer rows than `nb`. */
	for (rows.j = j0 + (size_t)nb * step; rows.j < j1; rows.j++)
		for (size_t i = 0; i < g->m; i++)
			dot_rows(g, type, i, 1, &rows, 1);
}

static ALWAYS void by_type(enum cpu_gemm_type type, const struct cpu_gemm *g,
			   size_t j0, size_t j1, size_t ahead_bytes)
{
	if (g->m == 1)
		dot_strips(g, type, j0, j1, ahead_bytes, BROWS_ONE);
	else
		dot_strips(g, type, j0, j1, ahead_bytes, BROWS);
}

void SIMD(cpu_gemm_dot)(const struct cpu_gemm *g, size_t j0, size_t j1,
			size_t ahead_bytes)
{
	if (!ahead_bytes)
		ahead_bytes = AHEAD_BYTES;
	CPU_GEMM_EACH_TYPE(g->b_type, by_type, g, j0, j1, ahead_bytes)
}
