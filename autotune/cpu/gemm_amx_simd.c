/*
 * autotune/cpu/gemm_amx_simd.c - the AMX kernels: packing bf16 parts and
 * multiplying tiles.
 *
 * Tiles of C are sums of 16 x 16 values in one register: products of bf16
 * values are added 32 at a time, each exact, the sums in f32.
 *
 * A wider value is split into bf16 parts: the nearest bf16 value, the one
 * nearest to the remainder, and so on; the last part is the remainder
 * truncated to 8 bits.  Three parts hold an f32 value exactly, two an f16
 * value; two parts of an f32 value lose less than 2^-16 of it.
 *
 * Only the products of parts that matter are added: those left out are at most
 * 2^-24 of a * b, or 2^-16 where f32 values have two parts.  The order is
 * fixed for each pair of types, so the bits of a sum do not depend on how a
 * product is divided.
 */
#include "autotune/cpu/gemm_simd.h"

#if LANES == 16

#define AMX __attribute__((target("amx-tile,amx-bf16")))
/* Registers: 0 to 3 are sums, 4 and 5 rows, 6 and 7 columns. */
#define TILE ((size_t)CPU_AMX_TILE_BYTES)

/* ---- packing ---- */

/* The next part of x; what is left of it stays in x. */
static ALWAYS vu next_part(vf *x, bool last)
{
	vu part = (last ? (vu)*x : (vu)*x + 0x8000) & 0xffff0000;

	*x -= (vf)part;
	return part;
}

/* A row of a tile in each part: lane i is even[i], then odd[i]. */
static ALWAYS void emit_row(vf even, vf odd, unsigned parts, char *out,
			    size_t part_bytes)
{
#pragma GCC unroll 3
	for (unsigned p = 1; p <= parts; p++, out += part_bytes) {
		vu low = next_part(&even, p == parts),
		   high = next_part(&odd, p == parts);
		store((float *)out, (vf)(low >> 16 | high));
	}
}

static ALWAYS const void *row_of(enum cpu_gemm_type type,
				 const struct cpu_gemm_source *s, size_t row)
{
	return (const char *)s->data +
	       row * s->ld * (type == CPU_GEMM_F32 ? 4 : 2);
}

/* LANES values from i on; zeros from `end` on. */
static ALWAYS vf load_until(enum cpu_gemm_type type, const void *p, size_t i,
			    size_t end)
{
	return i + LANES <= end ? load_type(type, p, i) :
	       i < end		? load_type_some(type, p, i, end - i) :
				  (vf){ 0 };
}

/* 32 values bf16 as they are. */
static ALWAYS vf load_pairs(const void *p, size_t i, size_t end)
{
	__mmask32 some = i + 32 <= end ? ~0u :
			 i < end       ? (1u << (end - i)) - 1 :
					 0;

	return (vf)_mm512_maskz_loadu_epi16(some, (const uint16_t *)p + i);
}

static ALWAYS void pack_natural(enum cpu_gemm_type type, unsigned parts,
				const void *p, size_t at, size_t k, char *out,
				size_t part_bytes)
{
	static const int32_t order[16] = { 0,  2,  4,  6,  8,  10, 12, 14,
					   16, 18, 20, 22, 24, 26, 28, 30 };

	if (type == CPU_GEMM_BF16) {
		store((float *)out, load_pairs(p, at, k));
		return;
	}
	__m512i even = _mm512_loadu_si512(order);
	__m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
	__m512 a = (__m512)load_until(type, p, at, k);
	__m512 b = (__m512)load_until(type, p, at + LANES, k);

	emit_row((vf)_mm512_permutex2var_ps(a, even, b),
		 (vf)_mm512_permutex2var_ps(a, odd, b), parts, out, part_bytes);
}

static ALWAYS void rows_type(enum cpu_gemm_type type, unsigned parts,
			     const struct cpu_gemm_source *s, size_t rows,
			     size_t k, char *out)
{
	size_t tiles = (rows + 15) / 16, part_bytes = tiles * TILE;

	for (size_t at = 0; at < k; at += CPU_AMX_K) {
		for (size_t i = 0; i < tiles * 16; i++) {
			char *o = out + i / 16 * TILE + i % 16 * 64;
			if (i < rows)
				pack_natural(type, parts, row_of(type, s, i),
					     at, k, o, part_bytes);
			else
				emit_row((vf){ 0 }, (vf){ 0 }, parts, o,
					 part_bytes);
		}
		out += parts * part_bytes;
	}
}

/* So far ahead rows of s are fetched: each begins another page. */
enum { AHEAD_ROWS = 8 };

static ALWAYS void fetch_row(enum cpu_gemm_type type, const void *row,
			     size_t i)
{
	_mm_prefetch((const char *)row + i * (type == CPU_GEMM_F32 ? 4 : 2),
		     _MM_HINT_T0);
}

/* 16 columns, k's from `at` on, turned into a tile. */
static ALWAYS void pack_transposed(enum cpu_gemm_type type, unsigned parts,
				   const struct cpu_gemm_source *s,
				   size_t column, size_t columns, size_t at,
				   size_t k, char *out, size_t part_bytes)
{
	bool pairs = type == CPU_GEMM_BF16;

	for (unsigned half = 0; half < (pairs ? 1 : 2); half++) {
		vf v[LANES];
#pragma GCC unroll 16
		for (size_t i = 0; i < LANES; i++) {
			const void *p = row_of(type, s, column + i);
			v[i] = column + i >= columns ? (vf){ 0 } :
			       pairs		     ? load_pairs(p, at, k) :
					load_until(type, p, at + half * LANES,
						   k);
		}
		transpose(v);
#pragma GCC unroll 16
		for (size_t i = 0; i < LANES; i += pairs ? 1 : 2, out += 64)
			if (pairs)
				store((float *)out, v[i]);
			else
				emit_row(v[i], v[i + 1], parts, out,
					 part_bytes);
	}
}

static ALWAYS void turned_type(enum cpu_gemm_type type, unsigned parts,
			       const struct cpu_gemm_source *s, size_t k,
			       size_t columns, char *out)
{
	size_t tiles = (columns + 15) / 16, part_bytes = tiles * TILE;

	for (size_t at = 0; at < k; at += CPU_AMX_K) {
		for (size_t t = 0; t < tiles; t++)
			pack_transposed(type, parts, s, t * 16, columns, at, k,
					out + t * TILE, part_bytes);
		out += parts * part_bytes;
	}
}

/*
 * Two rows of s, k's `at` and at + 1, become one of each tile: all of their
 * columns, for memory is read fastest in its order.
 */
static ALWAYS void pair_of_rows(enum cpu_gemm_type type, unsigned parts,
				const struct cpu_gemm_source *s, size_t at,
				size_t k, size_t columns, size_t tiles,
				char *out)
{
	size_t step = at / CPU_AMX_K;
	size_t steps = (k + CPU_AMX_K - 1) / CPU_AMX_K;
	const void *even = row_of(type, s, at), *odd = row_of(type, s, at + 1);

	size_t tile_bytes = parts * TILE;

	out += at % CPU_AMX_K * 32;
	for (size_t j = 0; j < columns; j += tiles * 16) {
		size_t left = (columns - j + 15) / 16;
		size_t wide = left < tiles ? left : tiles;
		char *o = out + step * wide * tile_bytes;
		for (size_t t = 0; t < wide; t++, o += TILE) {
			fetch_row(type, even, AHEAD_ROWS * s->ld + j + t * 16);
			fetch_row(type, odd, AHEAD_ROWS * s->ld + j + t * 16);
			emit_row(load_until(type, even, j + t * 16,
					    at < k ? columns : 0),
				 load_until(type, odd, j + t * 16,
					    at + 1 < k ? columns : 0),
				 parts, o, wide * TILE);
		}
		out += steps * wide * tile_bytes;
	}
}

static ALWAYS void paired_type(enum cpu_gemm_type type, unsigned parts,
			       const struct cpu_gemm_source *s, size_t k,
			       size_t columns, size_t tiles, char *out)
{
	size_t end = (k + CPU_AMX_K - 1) / CPU_AMX_K * CPU_AMX_K;

	for (size_t at = 0; at < end; at += 2)
		pair_of_rows(type, parts, s, at, k, columns, tiles, out);
}

#define EACH_TYPE(call, ...) \
	if (s->type == CPU_GEMM_BF16) \
		call(CPU_GEMM_BF16, 1, __VA_ARGS__); \
	else if (s->type == CPU_GEMM_F16) \
		call(CPU_GEMM_F16, 2, __VA_ARGS__); \
	else if (parts == 2) \
		call(CPU_GEMM_F32, 2, __VA_ARGS__); \
	else \
		call(CPU_GEMM_F32, 3, __VA_ARGS__);

static void pack_rows(const struct cpu_gemm_source *s, unsigned parts,
		      size_t rows, size_t k, char *out)
{
	EACH_TYPE(rows_type, s, rows, k, out)
}

static void pack_turned(const struct cpu_gemm_source *s, unsigned parts,
			size_t k, size_t columns, char *out)
{
	EACH_TYPE(turned_type, s, k, columns, out)
}

static void pack_paired(const struct cpu_gemm_source *s, unsigned parts,
			size_t k, size_t columns, size_t tiles, char *out)
{
	EACH_TYPE(paired_type, s, k, columns, tiles, out)
}

/* ---- tiles ---- */

static ALWAYS AMX void rows_load(const char *p, unsigned rows)
{
	_tile_loadd(4, p, 64);
	if (rows > 1)
		_tile_loadd(5, p + TILE, 64);
}

static ALWAYS AMX void columns_load(const char *p, unsigned columns)
{
	_tile_loadd(6, p, 64);
	if (columns > 1)
		_tile_loadd(7, p + TILE, 64);
}

static ALWAYS AMX void multiply_tiles(unsigned rows, unsigned columns)
{
	_tile_dpbf16ps(0, 4, 6);
	if (columns > 1)
		_tile_dpbf16ps(1, 4, 7);
	if (rows > 1)
		_tile_dpbf16ps(2, 5, 6);
	if (rows > 1 && columns > 1)
		_tile_dpbf16ps(3, 5, 7);
}

static ALWAYS void prefetch_tiles(const char *p, unsigned tiles)
{
#pragma GCC unroll 32
	for (unsigned i = 0; i < tiles * 16; i++)
		_mm_prefetch(p + i * 64, _MM_HINT_T0);
}

/*
 * 32 k's.  Each letter loads the part of the rows (R) or the columns (C) that
 * P multiplies; F fetches a part of the next columns.
 */
static ALWAYS AMX void step_parts(const char *r, const char *c,
				  unsigned r_parts, unsigned c_parts,
				  unsigned rows, unsigned columns)
{
#define R(part) rows_load(r + part * rows * TILE, rows);
#define C(part) columns_load(c + part * columns * TILE, columns);
#define P	multiply_tiles(rows, columns);
#define F(part) prefetch_tiles(c + (c_parts + part) * columns * TILE, columns);
	switch (r_parts * 10 + c_parts) {
	case 21:
		C(0) R(1) P F(0) R(0) P
		break;
	case 12:
		R(0) C(1) P F(1) C(0) P F(0)
		break;
	case 22:
		R(0) C(1) P F(1) C(0) P F(0) R(1) P
		break;
	case 31:
		C(0) R(2) P F(0) R(1) P R(0) P
		break;
	case 13:
		R(0) C(2) P F(2) C(1) P F(1) C(0) P F(0)
		break;
	case 32:
		R(2) C(0) P F(0) R(1) P C(1) P F(1) R(0) P C(0) P
		break;
	case 23:
		R(0) C(2) P F(2) C(1) P F(1) R(1) P C(0) P F(0) R(0) P
		break;
	case 33:
		R(2) C(0) P F(0) R(1) P C(1) P F(1) R(0) P C(2) P F(2) C(0) P
		break;
	}
#undef R
#undef C
#undef P
#undef F
}

static ALWAYS AMX void sums_load(const float *s, bool first, unsigned rows,
				 unsigned columns)
{
	if (first) {
		_tile_zero(0);
		_tile_zero(1);
		_tile_zero(2);
		_tile_zero(3);
		return;
	}
	_tile_loadd(0, s, 64);
	if (columns > 1)
		_tile_loadd(1, s + 256, 64);
	if (rows > 1)
		_tile_loadd(2, s + columns * 256, 64);
	if (rows > 1 && columns > 1)
		_tile_loadd(3, s + 768, 64);
}

static ALWAYS AMX void sums_store(float *s, unsigned rows, unsigned columns)
{
	_tile_stored(0, s, 64);
	if (columns > 1)
		_tile_stored(1, s + 256, 64);
	if (rows > 1)
		_tile_stored(2, s + columns * 256, 64);
	if (rows > 1 && columns > 1)
		_tile_stored(3, s + 768, 64);
}

/* Into the second cache: what is packed next, and the sums of step i. */
static ALWAYS void fetch_ahead(const struct cpu_amx_block *b, size_t i,
			       unsigned tiles)
{
	const char *p = b->ahead + i * b->ahead_step_bytes;
	const char *sums = (const char *)b->sums + tiles * TILE + i * 256;

	for (size_t r = 0; r < b->ahead_rows; r++, p += b->ahead_ld_bytes) {
		_mm_prefetch(p, _MM_HINT_T1);
		_mm_prefetch(p + b->ahead_step_bytes - 1, _MM_HINT_T1);
	}
	if (!b->first && i < tiles * 4)
		for (size_t j = 0; j < 4; j++)
			_mm_prefetch(sums + j * 64, _MM_HINT_T1);
}

static ALWAYS AMX void run_tile(const struct cpu_amx_block *b, unsigned r_parts,
				unsigned c_parts, unsigned rows,
				unsigned columns)
{
	const char *r = b->rows, *c = b->columns;

	/* Loads of tiles are not known to read memory. */
	__asm__ volatile("" ::: "memory");
	sums_load(b->sums, b->first, rows, columns);
	for (size_t k = 0; k < b->k; k += CPU_AMX_K) {
		step_parts(r, c, r_parts, c_parts, rows, columns);
		fetch_ahead(b, k / CPU_AMX_K, rows * columns);
		r += r_parts * rows * TILE;
		c += c_parts * columns * TILE;
	}
	sums_store(b->sums, rows, columns);
}

#define ALL(do, r, c) \
	do(r, c, 1, 1) do(r, c, 1, 2) do(r, c, 2, 1) do(r, c, 2, 2)
#define TILES(do) \
	ALL(do, 3, 1) ALL(do, 3, 2) ALL(do, 3, 3) ALL(do, 1, 3) ALL(do, 2, 3) \
	ALL(do, 2, 1) ALL(do, 1, 2) ALL(do, 2, 2)
#define DEFINE(rp, cp, rows, columns) \
	static AMX void tile_##rp##cp##_##rows##columns( \
		const struct cpu_amx_block *b) \
	{ \
		run_tile(b, rp, cp, rows, columns); \
	}
#define NAME(rp, cp, rows, columns) \
	[rp - 1][cp - 1][rows - 1][columns - 1] = \
		tile_##rp##cp##_##rows##columns,

TILES(DEFINE)

/* ---- sums ---- */

static bool all_finite(const float *s, size_t n)
{
	__mmask16 odd = 0;

	/* Both NaN, both infinities. */
	for (size_t i = 0; i < n; i += LANES)
		odd |= _mm512_fpclass_ps_mask((__m512)load(s + i), 0x99);
	return !odd;
}

static AMX void begin_tiles(void)
{
	/* Eight full registers; in memory, for all of it is read. */
	static const struct {
		uint8_t palette, start, zero[14];
		uint16_t row_bytes[16];
		uint8_t rows[16];
	} c = { .palette = 1,
		.row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
		.rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

	_tile_loadconfig(&c);
}

static AMX void end_tiles(void)
{
	_tile_release();
}

static AMX double spin_tiles(uint64_t rounds)
{
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_zero(4);
	_tile_zero(5);
	_tile_zero(6);
	_tile_zero(7);
	for (uint64_t i = 0; i < rounds; i++)
		multiply_tiles(2, 2);
	return 4.0 * 2 * 16 * 16 * CPU_AMX_K * (double)rounds;
}

const struct cpu_amx_kernels cpu_amx_kernels = {
	.pack_rows = pack_rows,
	.pack_turned = pack_turned,
	.pack_paired = pack_paired,
	.tile = { TILES(NAME) },
	.finite = all_finite,
	.spin = spin_tiles,
	.begin = begin_tiles,
	.end = end_tiles,
};

#endif
