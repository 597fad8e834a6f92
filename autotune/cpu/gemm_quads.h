/*
 * autotune/cpu/gemm_quads.h - bytes, four products at a time: what tiles by
 * groups and by channels (gemm_bytes_simd.c, gemm_channel_simd.c) share.
 *
 * Three ways: VNNI of AVX-512 and of AVX take one instruction for four products
 * and the sum, but unsigned bytes on one side, so B gets 128 added and every
 * sum begins with what that adds; AVX2 takes four.
 */
#ifndef T0_AUTOTUNE_GEMM_QUADS_H
#define T0_AUTOTUNE_GEMM_QUADS_H

#include "autotune/cpu/gemm_simd.h"

#if LANES >= 8

enum { GROUP = CPU_BYTES_GROUP, QUADS = GROUP / 4 };
#define ROWS_MAX CPU_BYTES_ROWS
#define VECS_MAX CPU_BYTES_VECS

/* How bytes are multiplied. */
enum kind { AVX512_VNNI, AVX_VNNI, AVX2_BYTES };

static ALWAYS vi spread_word(const char *p)
{
	int32_t w;

	memcpy(&w, p, sizeof(w));
#if LANES == 16
	return (vi)_mm512_set1_epi32(w);
#else
	return (vi)_mm256_set1_epi32(w);
#endif
}

static ALWAYS vf spread_float(const char *p)
{
	return (vf)spread_word(p);
}

/* sum += products of four bytes side by side; of b as `kind` has them. */
static ALWAYS void add_quads(enum kind kind, vi *sum, vi b, vi a)
{
#if LANES == 16
	(void)kind;
	__asm__("vpdpbusd %2, %1, %0" : "+v"(*sum) : "v"(b), "v"(a));
#else
	if (kind == AVX512_VNNI)
		__asm__("%{evex%} vpdpbusd %2, %1, %0"
			: "+x"(*sum)
			: "x"(b), "x"(a));
	else if (kind == AVX_VNNI)
		__asm__("%{vex%} vpdpbusd %2, %1, %0"
			: "+x"(*sum)
			: "x"(b), "x"(a));
	else
		*sum += (vi)_mm256_madd_epi16(
			_mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)b),
					     _mm256_sign_epi8((__m256i)a,
							      (__m256i)b)),
			_mm256_set1_epi16(1));
#endif
}

/*
 * The products of one group of k's of all rows, `ldp` bytes apart, and columns;
 * constants where it is inlined.
 */
static ALWAYS void add_products(enum kind kind, vi s[ROWS_MAX][VECS_MAX],
				const char *p, size_t ldp, const float *q,
				int rows, int vecs)
{
#pragma GCC unroll 8
	for (int k = 0; k < QUADS; k++) {
		vi b[VECS_MAX];
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			b[j] = (vi)load(q + (k * vecs + j) * LANES);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			vi a = spread_word(p + (size_t)i * ldp + 4 * k);
#pragma GCC unroll 3
			for (int j = 0; j < vecs; j++)
				add_quads(kind, &s[i][j], b[j], a);
		}
	}
}

/* The rows of the next tile stand behind these. */
static ALWAYS void fetch_rows(const char *p, size_t ldp, int rows)
{
#pragma GCC unroll 8
	for (int i = rows; i < 2 * rows; i++)
		__builtin_prefetch(p + (size_t)i * ldp);
}

static ALWAYS vi larger_of(vi a, vi b)
{
#if LANES == 16
	return (vi)_mm512_maskz_max_epi32(0xffff, (__m512i)a, (__m512i)b);
#else
	return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
#endif
}

#if LANES == 16
/* Integers of four vectors as bytes, in their order. */
static ALWAYS vi pack_bytes(const __m512i v[4])
{
	const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6,
						10, 14, 3, 7, 11, 15);

	return (vi)_mm512_maskz_permutexvar_epi32(
		0xffff, order,
		_mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]),
				   _mm512_packs_epi32(v[2], v[3])));
}
#endif

/* ---- tables ---- */

/*
 * TABLES(prefix, ...) defines the kernels of each way that this level has; a
 * file has run_tile(), pack_rows(), pack_kind(), ROWS, VECS and EACH_ROWS(), and
 * says what else stands in a table.
 */
#define TILE(kind, rows, vecs) \
	static void tile_##kind##_##vecs##_##rows( \
		const struct cpu_bytes_block *b) \
	{ \
		run_tile(kind, b, rows, vecs); \
	}
#define NAME(kind, rows, vecs) \
	[vecs - 1][rows - 1] = tile_##kind##_##vecs##_##rows,
#define TABLE(kind, name, ...) \
	EACH(TILE, kind) \
	static void pack_##kind(const struct cpu_gemm *g, size_t column, \
				size_t columns, size_t groups, float *out, \
				float *space) \
	{ \
		pack_kind(kind, g, column, columns, groups, out, space); \
	} \
	const struct cpu_bytes_kernels name = { \
		.lanes = LANES, \
		.rows = ROWS, \
		.vecs = VECS, \
		.tile = { EACH(NAME, kind) }, \
		.pack_rows = pack_rows, \
		.pack_columns = pack_##kind, \
		.merge = SIMD(cpu_gemm_merge), \
		__VA_ARGS__ \
	};
#if LANES == 16
#define VECS 3
#define EACH(do, kind) \
	EACH_ROWS(do, kind, 1) EACH_ROWS(do, kind, 2) EACH_ROWS(do, kind, 3)
#define TABLES(prefix, ...) \
	TABLE(AVX512_VNNI, prefix##_vnni_v4, __VA_ARGS__)
#else
#define VECS 2
#define EACH(do, kind) EACH_ROWS(do, kind, 1) EACH_ROWS(do, kind, 2)
#define TABLES(prefix, ...) \
	TABLE(AVX512_VNNI, prefix##_vnni_vl, __VA_ARGS__) \
	TABLE(AVX_VNNI, prefix##_vnni_v3, __VA_ARGS__) \
	TABLE(AVX2_BYTES, prefix##_v3, __VA_ARGS__)
#endif

#endif
#endif
