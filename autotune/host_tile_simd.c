/*
 * Tiles of C in registers: each value of a row is broadcast and multiplied with
 * the vectors of the columns.  `rows` and `vecs` are constants where the tile
 * is inlined, so that all sums stay in registers; a table has every size that
 * the registers hold.
 */
#include "autotune/host_simd.h"

/* Rows that one address register serves: [base], [base + ld], [base + 2 ld]. */
#define GROUP  3
#define GROUPS ((HOST_ROWS_MAX + GROUP - 1) / GROUP)

struct sums {
	vf s[HOST_ROWS_MAX][HOST_GEMM_VECS_MAX];
};

/* One k; row i stands at base[i / GROUP] + i % GROUP * ld + at. */
static ALWAYS void step(struct sums *t, const char *const *base, size_t ld,
			size_t at, const float *q, int rows, int vecs)
{
	vf column[HOST_GEMM_VECS_MAX];

#pragma GCC unroll 4
	for (int j = 0; j < vecs; j++)
		column[j] = load(q + j * LANES);
#pragma GCC unroll 24
	for (int i = 0; i < rows; i++) {
		const char *p = base[i / GROUP] + i % GROUP * ld + at;
		vf x = splat(*(const float *)p);
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++)
			t->s[i][j] = fma_(x, column[j], t->s[i][j]);
	}
}

static ALWAYS void sum_up(struct sums *t, const struct host_block *b, int rows,
			  int vecs)
{
	const char *base[GROUPS];
	const float *q = b->q;
	size_t ld = b->ldp * sizeof(*b->p), ldq = b->ldq, k = b->k;

#pragma GCC unroll 8
	for (int i = 0; i < (rows + GROUP - 1) / GROUP; i++) {
		base[i] = (const char *)b->p + i * GROUP * ld;
		/* Keeps one register per group, whatever the compiler sees. */
		__asm__("" : "+r"(base[i]));
	}
	/* Each line is asked for several times: cheaper than to count. */
	const char *ahead = b->ahead;
	size_t ahead_ld = b->ahead_ld_bytes, ahead_step = 4u << b->ahead_shift;

	for (; k >= 4; k -= 4, ahead += ahead_step) {
		_mm_prefetch(ahead, _MM_HINT_T1);
		_mm_prefetch(ahead + ahead_ld, _MM_HINT_T1);
		_mm_prefetch(ahead + 2 * ahead_ld, _MM_HINT_T1);
#pragma GCC unroll 4
		for (int u = 0; u < 4; u++, q += ldq)
			step(t, base, ld, u * sizeof(float), q, rows, vecs);
#pragma GCC unroll 8
		for (int i = 0; i < (rows + GROUP - 1) / GROUP; i++)
			base[i] += 4 * sizeof(float);
	}
	for (size_t at = 0; k; k--, q += ldq, at += sizeof(float))
		step(t, base, ld, at, q, rows, vecs);
}

static ALWAYS void tile(const struct host_block *b, int rows, int vecs)
{
	struct sums t;

#pragma GCC unroll 24
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++) {
			t.s[i][j] = (vf){ 0 };
			__builtin_prefetch(b->c + i * b->ldc + j * LANES);
		}
	sum_up(&t, b, rows, vecs);
#pragma GCC unroll 24
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++)
			update(b->c + i * b->ldc + j * LANES, t.s[i][j],
			       b->alpha, b->beta);
}

#define TILE(rows, vecs) \
	static void tile_##vecs##_##rows(const struct host_block *b) \
	{ \
		tile(b, rows, vecs); \
	}
#define NAME(rows, vecs) [vecs - 1][rows - 1] = tile_##vecs##_##rows,

#define UPTO_4(do, v) \
	do \
	(1, v) do(2, v) do(3, v) do(4, v)
#define UPTO_6(do, v)  UPTO_4(do, v) do(5, v) do(6, v)
#define UPTO_9(do, v)  UPTO_6(do, v) do(7, v) do(8, v) do(9, v)
#define UPTO_12(do, v) UPTO_9(do, v) do(10, v) do(11, v) do(12, v)
#define UPTO_14(do, v) UPTO_12(do, v) do(13, v) do(14, v)
#define UPTO_24(do, v) \
	UPTO_14(do, v) \
	do \
	(15, v) do(16, v) do(17, v) do(18, v) do(19, v) do(20, v) do( \
		21, v) do(22, v) do(23, v) do(24, v)

/* Sums, the columns and one row's value: 32 registers, or 16. */
#if LANES == 16
#define ROWS \
	{ \
		24, 14, 9, 6 \
	}
#define ALL(do) UPTO_24(do, 1) UPTO_14(do, 2) UPTO_9(do, 3) UPTO_6(do, 4)
#else
#define ROWS \
	{ \
		12, 6, 4 \
	}
#define ALL(do) UPTO_12(do, 1) UPTO_6(do, 2) UPTO_4(do, 3)
#endif

ALL(TILE)

const struct host_kernels HOST_NAME(host_kernels) = {
	.lanes = LANES,
	.rows = ROWS,
	.tile = { ALL(NAME) },
	.widen = HOST_NAME(host_widen),
	.pack_rows = HOST_NAME(host_pack_rows),
	.pack_columns = HOST_NAME(host_pack_columns),
	.merge = HOST_NAME(host_merge),
	.turn = HOST_NAME(host_turn),
	.dot = HOST_NAME(host_dot),
	.sweep = HOST_NAME(host_sweep),
};
