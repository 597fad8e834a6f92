/*
 * autotune/cpu/gemm_tile_simd.c - the register tiles of AVX levels.
 *
 * Each value of a row is broadcast and multiplied with the vectors of the
 * columns.  `rows` and `vecs` are constants where the tile is inlined, so that
 * all sums stay in registers; a table has every size that the registers hold.
 *
 * Two multiply-adds per cycle leave few issue slots for other instructions
 * where another thread has half of the core: so rows stand in lines, all
 * within reach of one register and a displacement of one byte, and some of the
 * broadcasts are part of multiply-adds.
 *
 * AVX-512 BF16 multiplies pairs of k's where others multiply one: all the same
 * but for the instruction.
 */
#include "autotune/cpu/gemm_simd.h"

/* What is in 32 bits of an operand: a value, or two of bf16. */
enum kind { ONE_F32, TWO_BF16 };

struct sums {
	vf s[CPU_GEMM_ROWS_MAX][CPU_GEMM_VECS_MAX];
};

/*
 * How many rows a multiply-add takes from memory itself, once per vector; the
 * others are loaded once.  As many as leave the loads below 2 a clock.
 */
static ALWAYS int folded_rows(int rows, int vecs)
{
	return LANES < 16 ? 0 :
	       vecs == 1  ? rows :
	       vecs == 2  ? rows * 2 / 3 :
	       vecs == 3  ? rows / 2 :
			    0;
}

/*
 * sum += x * column.  Spelt out, as compilers would rather save the copy of
 * another register than keep a sum where it is.
 */
static ALWAYS void add_product(enum kind kind, vf *sum, vf x, vf column)
{
#if LANES == 16
	if (kind == TWO_BF16) {
		__asm__("vdpbf16ps %2, %1, %0"
			: "+v"(*sum)
			: "v"(x), "v"(column));
		return;
	}
#endif
	(void)kind;
#if LANES >= 8
	__asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(x), "v"(column));
#else
	*sum = fma_(x, column, *sum);
#endif
}

/* The same with x from memory for every lane. */
static ALWAYS void add_folded(enum kind kind, vf *sum, const float *x,
			      vf column)
{
#if LANES == 16
	if (kind == TWO_BF16)
		__asm__("vdpbf16ps %2%{1to16%}, %1, %0"
			: "+v"(*sum)
			: "v"(column), "m"(*x));
	else
		__asm__("vfmadd231ps %2%{1to16%}, %1, %0"
			: "+v"(*sum)
			: "v"(column), "m"(*x));
#else
	add_product(kind, sum, splat(*x), column);
#endif
}

/* The 32 bits for every lane, whatever they are. */
static ALWAYS vf spread_bits(const float *x)
{
#if LANES == 16
	int32_t bits;

	memcpy(&bits, x, sizeof(bits));
	return (vf)_mm512_set1_epi32(bits);
#else
	return splat(*x);
#endif
}

/* One k; row i stands at p[i * LANES]. */
static ALWAYS void step_one(enum kind kind, struct sums *t, const float *p,
			    const float *q, int rows, int vecs)
{
	vf column[CPU_GEMM_VECS_MAX];

#pragma GCC unroll 4
	for (int j = 0; j < vecs; j++)
		column[j] = load(q + j * LANES);
#pragma GCC unroll 16
	for (int i = 0; i < rows; i++) {
		const float *at = p + i * LANES;
		bool fold = i < folded_rows(rows, vecs);
		vf x = fold ? column[0] : spread_bits(at);
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++)
			if (fold)
				add_folded(kind, &t->s[i][j], at, column[j]);
			else
				add_product(kind, &t->s[i][j], x, column[j]);
	}
}

/* Four k's of one line. */
static ALWAYS void step_four(enum kind kind, struct sums *t, const float *p,
			     const float *q, int rows, int vecs)
{
#pragma GCC unroll 4
	for (int u = 0; u < 4; u++)
		step_one(kind, t, p + u, q + u * vecs * LANES, rows, vecs);
}

static ALWAYS void sum_up(enum kind kind, struct sums *t,
			  const struct cpu_gemm_block *b, int rows, int vecs)
{
	const float *p = b->p, *q = b->q;
	const char *ahead = b->ahead;
	size_t k = b->k;

	for (; k >= LANES; k -= LANES) {
		const char *line = ahead;
#pragma GCC unroll 1
		for (unsigned i = b->ahead_rows; i; i--) {
			_mm_prefetch(line, _MM_HINT_T1);
			line += b->ahead_ld_bytes;
		}
		ahead += (size_t)LANES << b->ahead_shift;
#pragma GCC unroll 1
		for (int u = 0; u < LANES; u += 4) {
			step_four(kind, t, p, q, rows, vecs);
			p += 4;
			q += 4 * vecs * LANES;
		}
		p += (rows - 1) * LANES;
	}
	for (; k; k--, p++, q += vecs * LANES)
		step_one(kind, t, p, q, rows, vecs);
}

static ALWAYS void run_tile(enum kind kind, const struct cpu_gemm_block *b,
			    int rows, int vecs)
{
	struct sums t;

#pragma GCC unroll 16
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++) {
			t.s[i][j] = (vf){ 0 };
			__builtin_prefetch(b->c + i * b->ldc + j * LANES);
		}
	sum_up(kind, &t, b, rows, vecs);
#pragma GCC unroll 16
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int j = 0; j < vecs; j++)
			update_vector(b->c + i * b->ldc + j * LANES, t.s[i][j],
				      b->alpha, b->beta);
}

#define TILE(rows, vecs) \
	static void tile_##vecs##_##rows(const struct cpu_gemm_block *b) \
	{ \
		run_tile(ONE_F32, b, rows, vecs); \
	}
#define TILE_BF16(rows, vecs) \
	static void tile_bf16_##vecs##_##rows(const struct cpu_gemm_block *b) \
	{ \
		run_tile(TWO_BF16, b, rows, vecs); \
	}
#define NAME(rows, vecs) [vecs - 1][rows - 1] = tile_##vecs##_##rows,

#define NAME_BF16(rows, vecs) \
	[vecs - 1][rows - 1] = tile_bf16_##vecs##_##rows,

#define UPTO_4(do, v) \
	do \
	(1, v) do(2, v) do(3, v) do(4, v)
#define UPTO_6(do, v)  UPTO_4(do, v) do(5, v) do(6, v)
#define UPTO_9(do, v)  UPTO_6(do, v) do(7, v) do(8, v) do(9, v)
#define UPTO_12(do, v) UPTO_9(do, v) do(10, v) do(11, v) do(12, v)
#define UPTO_14(do, v) UPTO_12(do, v) do(13, v) do(14, v)
#define UPTO_16(do, v) UPTO_14(do, v) do(15, v) do(16, v)

/* Sums, the columns and one row's value: 32 registers, or 16. */
#if LANES == 16
#define ROWS \
	{ \
		16, 14, 9, 6 \
	}
#define ALL(do) UPTO_16(do, 1) UPTO_14(do, 2) UPTO_9(do, 3) UPTO_6(do, 4)
#else
#define ROWS \
	{ \
		12, 6, 4 \
	}
#define ALL(do) UPTO_12(do, 1) UPTO_6(do, 2) UPTO_4(do, 3)
#endif

ALL(TILE)

const struct cpu_gemm_kernels SIMD(cpu_gemm_kernels) = {
	.lanes = LANES,
	.unit = 1,
	.rows = ROWS,
	.tile = { ALL(NAME) },
	.make_ints = SIMD(cpu_gemm_make_ints),
	.pack_lines = SIMD(cpu_gemm_pack_lines),
	.pack_rows = SIMD(cpu_gemm_pack_rows),
	.pack_columns = SIMD(cpu_gemm_pack_columns),
	.merge = SIMD(cpu_gemm_merge),
	.turn = SIMD(cpu_gemm_turn),
	.dot = SIMD(cpu_gemm_dot),
	.sweep = SIMD(cpu_gemm_sweep),
};

#if LANES == 16
ALL(TILE_BF16)

const struct cpu_gemm_kernels cpu_gemm_kernels_bf16 = {
	.lanes = LANES,
	.unit = 2,
	.rows = ROWS,
	.tile = { ALL(NAME_BF16) },
	.make_ints = SIMD(cpu_gemm_make_ints),
	.pack_lines = cpu_gemm_pairs_lines,
	.pack_rows = cpu_gemm_pairs_rows,
	.pack_columns = cpu_gemm_pairs_columns,
	.merge = SIMD(cpu_gemm_merge),
	.turn = SIMD(cpu_gemm_turn),
};
#endif
