/*
 * Products with few rows of A: every element of C is a sum along k of its own,
 * in vectors, so that B [n][k] is read once, in order, as it is stored.
 */
#include "autotune/host_simd.h"

/* Rows of B and of A at a time: as many sums as the registers hold. */
#if LANES == 16
#define BROWS 4
#define AROWS 6
#else
#define BROWS 4
#define AROWS 2
#endif

static ALWAYS float total(vf v)
{
	float s[LANES];

	memcpy(s, &v, sizeof(s));
	for (int n = LANES / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			s[i] += s[i + n];
	return s[0];
}

/* nb rows of B from j on, na rows of A from i on. */
static ALWAYS void dots(const struct host_gemm *g, enum host_gemm_type type,
			size_t i, int na, size_t j, int nb, size_t ahead)
{
	const size_t size = type == HOST_GEMM_F32 ? 4 : 2;
	const char *b = (const char *)g->b + j * g->ldb * size;
	const float *a = g->a + i * g->lda;
	size_t at = 0;
	vf s[BROWS][AROWS];

	for (int r = 0; r < nb; r++)
		for (int t = 0; t < na; t++)
			s[r][t] = (vf){ 0 };
	for (; at + LANES <= g->k; at += LANES) {
		vf x[AROWS];
#pragma GCC unroll 8
		for (int t = 0; t < na; t++)
			x[t] = load(a + t * g->lda + at);
#pragma GCC unroll 8
		for (int r = 0; r < nb; r++) {
			const char *row = b + r * g->ldb * size;
			__builtin_prefetch(row + at * size + ahead);
			vf w = load_type(type, row, at);
#pragma GCC unroll 8
			for (int t = 0; t < na; t++)
				s[r][t] = fma_(w, x[t], s[r][t]);
		}
	}
	if (at < g->k)
		for (int r = 0; r < nb; r++) {
			vf w = load_type_some(type, b + r * g->ldb * size, at,
					      g->k - at);
			for (int t = 0; t < na; t++)
				s[r][t] = fma_(w,
					       load_some(a + t * g->lda + at,
							 g->k - at),
					       s[r][t]);
		}
	for (int t = 0; t < na; t++)
		for (int r = 0; r < nb; r++) {
			float *c = g->c + (i + t) * g->ldc + j + r;
			float v = g->alpha * total(s[r][t]);
			*c = g->beta == 0 ? v : v + g->beta * *c;
		}
}

/* All rows of A against nb rows of B, which stay in the first cache. */
static ALWAYS void strip(const struct host_gemm *g, enum host_gemm_type type,
			 size_t j, int nb, size_t ahead)
{
	size_t i = 0;

	for (; i + AROWS <= g->m; i += AROWS)
		dots(g, type, i, AROWS, j, nb, ahead);
	switch (g->m - i) {
#if AROWS > 2
	case 5:
		dots(g, type, i, 5, j, nb, ahead);
		break;
	case 4:
		dots(g, type, i, 4, j, nb, ahead);
		break;
	case 3:
		dots(g, type, i, 3, j, nb, ahead);
		break;
	case 2:
		dots(g, type, i, 2, j, nb, ahead);
		break;
#endif
	case 1:
		dots(g, type, i, 1, j, nb, ahead);
	}
}

static ALWAYS void strips(const struct host_gemm *g, enum host_gemm_type type,
			  size_t j, size_t j1, size_t ahead)
{
	for (; j + BROWS <= j1; j += BROWS)
		strip(g, type, j, BROWS, ahead);
	for (; j < j1; j++)
		strip(g, type, j, 1, ahead);
}

void HOST_NAME(host_dot)(const struct host_gemm *g, size_t j0, size_t j1,
			 size_t ahead_bytes)
{
	if (!ahead_bytes)
		ahead_bytes =
			BROWS * g->ldb * (g->b_type == HOST_GEMM_F32 ? 4 : 2);
	switch (g->b_type) {
	case HOST_GEMM_BF16:
		strips(g, HOST_GEMM_BF16, j0, j1, ahead_bytes);
		break;
	case HOST_GEMM_F16:
		strips(g, HOST_GEMM_F16, j0, j1, ahead_bytes);
		break;
	default:
		strips(g, HOST_GEMM_F32, j0, j1, ahead_bytes);
	}
}
