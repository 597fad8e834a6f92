/*
 * autotune/cpu/gemm_channel_simd.c - tiles of 8-bit integers of which a whole
 * row of A, and of B, shares a scale.
 *
 * Sums over all k's are integers and exact (gemm_quads.h); where a panel's k's
 * come in parts, they wait as such.  Scales are multiplied with once, at the
 * end.
 */
#include "autotune/cpu/gemm_quads.h"

#if LANES >= 8

/* ---- the tile ---- */

/* What the sums of a row begin with, and its scale: behind its integers. */
static ALWAYS const char *row_end(const struct cpu_bytes_block *b, int i)
{
	return b->rows + (size_t)i * b->rows_ld_bytes + b->behind * GROUP;
}

/* Sums that wait. */
static ALWAYS float *sums_at(const struct cpu_bytes_block *b, int i, int j)
{
	return b->sums + (size_t)i * b->lds + j * LANES;
}

static ALWAYS vi first_sum(enum kind kind, const struct cpu_bytes_block *b,
			   int i)
{
	return kind == AVX2_BYTES ? (vi){ 0 } : spread_word(row_end(b, i));
}

static ALWAYS void run_tile(enum kind kind, const struct cpu_bytes_block *b,
			    int rows, int vecs)
{
	const size_t ldp = b->rows_ld_bytes;
	const float *q = b->columns;
	const char *p = b->rows;
	vi s[ROWS_MAX][VECS_MAX];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++) {
			s[i][j] = b->first ? first_sum(kind, b, i) :
					     (vi)load(sums_at(b, i, j));
			__builtin_prefetch(b->c + (size_t)i * b->ldc +
					   j * LANES);
		}
	for (size_t g = 0; g < b->groups; g++) {
		fetch_rows(p, ldp, rows);
		add_products(kind, s, p, ldp, q, rows, vecs);
		p += GROUP;
		q += QUADS * vecs * LANES;
	}
	q = b->columns + b->behind * QUADS * vecs * LANES;
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		vf a = spread_float(row_end(b, i) + sizeof(int32_t)) *
		       splat(b->alpha);
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++) {
			if (!b->last) {
				store(sums_at(b, i, j), (vf)s[i][j]);
				continue;
			}
			update_vector(b->c + (size_t)i * b->ldc + j * LANES,
				      __builtin_convertvector(s[i][j], vf) *
					      (a * load(q + j * LANES)),
				      1, b->beta);
		}
	}
}

/* ---- packing ---- */

enum { PARTS = GROUP / LANES }; /* vectors of a group */
/* As many values are rounded together, where there are. */
#define STEP (LANES == 16 ? 2 * GROUP : GROUP)

/* Halves are folded until one value is left, in all lanes. */
static ALWAYS vi fold_lanes(vi v, bool sum)
{
	vi lane;

	for (int i = 0; i < LANES; i++)
		lane[i] = i;
#pragma GCC unroll 4
	for (int s = LANES / 2; s; s /= 2) {
		vi other = (vi)permute_two((vf)v, (vf)v, lane ^ s);
		v = sum ? (vi)((vu)v + (vu)other) : larger_of(v, other);
	}
	return v;
}

/* The largest of its values without their signs, NaN above all. */
static ALWAYS float most_of(const float *x, size_t k)
{
	vi top[PARTS];

	memset(top, 0, sizeof(top));
	for (size_t i = 0; i < k; i += GROUP)
#pragma GCC unroll 4
		for (int j = 0; j < PARTS; j++)
			top[j] = larger_of(top[j],
					   (vi)load(x + i + j * LANES) &
						   0x7fffffff);
	for (int j = 1; j < PARTS; j++)
		top[0] = larger_of(top[0], top[j]);
	return ((vf)fold_lanes(top[0], false))[0];
}

/*
 * n values, STEP at most, times a factor, to the nearest integers; takes 128
 * times each from a lane of `offset`.
 */
static ALWAYS void round_step(const float *x, size_t n, float factor, char *out,
			      vi *offset)
{
#if LANES == 16
	__m512i v[4];
	vi q, sum = { 0 };

#pragma GCC unroll 4
	for (size_t i = 0; i < 4; i++)
		v[i] = i * LANES < n ?
			       _mm512_maskz_cvtps_epi32(
				       0xffff, (__m512)(load(x + i * LANES) *
							splat(factor))) :
			       _mm512_setzero_si512();
	q = pack_bytes(v);
	memcpy(out, &q, n);
	add_quads(AVX512_VNNI, &sum, (vi){ 0 } + (int32_t)0x80808080, q);
	*offset = (vi)((vu)*offset - (vu)sum);
#else
	for (size_t j = 0; j < n; j += LANES) {
		vi whole = (vi)_mm256_cvtps_epi32(
			(__m256)(load(x + j) * splat(factor)));
		for (int i = 0; i < LANES; i++)
			out[j + i] = (char)whole[i];
		*offset = (vi)((vu)*offset - ((vu)whole << 7));
	}
#endif
}

/* k is a multiple of GROUP.  What is no number makes the row's scale NaN. */
static ALWAYS void pack_row(const float *a, size_t k, float scale, char *out)
{
	const float factor = scale > 0 ? 1 / scale : 0;
	vi offset = { 0 };
	size_t j = 0;

	for (; j + STEP <= k; j += STEP)
		round_step(a + j, STEP, factor, out + j, &offset);
	if (j < k)
		round_step(a + j, GROUP, factor, out + j, &offset);
	offset = fold_lanes(offset, true);
	scale += scale - scale;
	memcpy(out + k, &offset, sizeof(int32_t));
	memcpy(out + k + sizeof(int32_t), &scale, sizeof(scale));
}

static void pack_rows(const float *a, size_t lda, size_t rows, size_t k,
		      char *out)
{
	enum { MANY = 8 };
	float most[MANY];

	for (size_t i = 0, n; i < rows; i += n, a += n * lda) {
		/* First of several rows, for integers wait long for it. */
		n = rows - i < MANY ? rows - i : MANY;
		for (size_t j = 0; j < n; j++)
			most[j] = most_of(a + j * lda, k);
		for (size_t j = 0; j < n; j++) {
			pack_row(a + j * lda, k, most[j] / 127, out);
			out += k + CPU_CHANNEL_ROW_END;
		}
	}
}

/*
 * Words [at, at + n) of `columns` columns in a vector each, other words zeros;
 * both numbers are LANES at most.
 */
static ALWAYS void turn_words(enum kind kind, const struct cpu_gemm *g,
			      size_t column, size_t columns, size_t at,
			      size_t n, size_t vecs, float *out)
{
	const struct cpu_gemm_ints *m = g->b;
	const uint8_t *q = m->q + column * m->q_row + 4 * at;
	vf v[LANES];

#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++, q += m->q_row) {
		v[i] = (vf){ 0 };
		if (i < columns)
			memcpy(&v[i], q, 4 * n);
		if (kind != AVX2_BYTES)
			v[i] = (vf)((vu)v[i] ^ 0x80808080);
	}
	transpose(v);
#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++)
		if (i < n)
			store(out + (at + i) * vecs * LANES, v[i]);
}

static ALWAYS void pack_vector(enum kind kind, const struct cpu_gemm *g,
			       size_t column, size_t n, size_t vecs, float *out)
{
	const struct cpu_gemm_ints *m = g->b;
	const size_t words = g->k / 4;
	float scale[LANES] = { 0 };
	size_t at = 0;

	for (; at + LANES <= words; at += LANES)
		turn_words(kind, g, column, n, at, LANES, vecs, out);
	if (at < words)
		turn_words(kind, g, column, n, at, words - at, vecs, out);
	for (size_t i = 0; i < n; i++)
		memcpy(&scale[i], m->scale + (column + i) * m->scale_row,
		       sizeof(*scale));
	store(out + words * vecs * LANES, load(scale));
}

static ALWAYS void pack_kind(enum kind kind, const struct cpu_gemm *g,
			     size_t column, size_t columns, size_t groups,
			     float *out, float *space)
{
	const size_t vecs = (columns + LANES - 1) / LANES;

	(void)groups, (void)space;
	for (size_t j = 0; j < vecs; j++) {
		const size_t left = columns - j * LANES;
		/* Constants where all are there. */
		if (left >= LANES)
			pack_vector(kind, g, column + j * LANES, LANES, vecs,
				    out + j * LANES);
		else
			pack_vector(kind, g, column + j * LANES, left, vecs,
				    out + j * LANES);
	}
}

/* ---- the tables ---- */

#if LANES == 16
#define ROWS 8
#define EACH_ROWS(do, kind, v) \
	do(kind, 1, v) do(kind, 2, v) do(kind, 3, v) do(kind, 4, v) \
	do(kind, 5, v) do(kind, 6, v) do(kind, 7, v) do(kind, 8, v)
#else
#define ROWS 4
#define EACH_ROWS(do, kind, v) \
	do(kind, 1, v) do(kind, 2, v) do(kind, 3, v) do(kind, 4, v)
#endif

TABLES(cpu_channel, .exact = true, .row_step = GROUP,
       .row_end = CPU_CHANNEL_ROW_END, .column_step = QUADS, .column_end = 1)

#endif
