/*
 * autotune/cpu/gemm_pairs_simd.c - packing of operands for AVX-512 BF16.
 *
 * Values become bf16, rounded to nearest even, and stand in pairs of k's, the
 * even one in the low half of 32 bits; an odd last one beside zero.
 */
#include "autotune/cpu/gemm_simd.h"

#if LANES == 16

static ALWAYS const void *row_of(enum cpu_gemm_type type,
				 const struct cpu_gemm_source *s, size_t row)
{
	return (const char *)s->data +
	       row * s->ld * (type == CPU_GEMM_F32 ? 4 : 2);
}

/* The first n of 16 values; n may be more, or none. */
static ALWAYS vf load_up_to(enum cpu_gemm_type type, const void *p, size_t i,
			    size_t n)
{
	return n >= LANES ? load_type(type, p, i) :
	       n	  ? load_type_some(type, p, i, n) :
			    (vf){ 0 };
}

static ALWAYS vf pair_up(vf low, vf high)
{
	vf out;

	__asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(out) : "v"(low), "v"(high));
	return out;
}

/* 32 values from i on as 16 pairs. */
static ALWAYS vf load_all_pairs(enum cpu_gemm_type type, const void *p,
				size_t i)
{
	return type == CPU_GEMM_BF16 ?
		       (vf)_mm512_loadu_si512((const uint16_t *)p + i) :
		       pair_up(load_type(type, p, i),
			       load_type(type, p, i + LANES));
}

/* The same; zeros behind the first n. */
static ALWAYS vf load_pairs(enum cpu_gemm_type type, const void *p, size_t i,
			    size_t n)
{
	if (type == CPU_GEMM_BF16) {
		__mmask32 some = n >= 32 ? ~0u : (1u << n) - 1;
		return (vf)_mm512_maskz_loadu_epi16(some,
						    (const uint16_t *)p + i);
	}
	return pair_up(load_up_to(type, p, i, n),
		       load_up_to(type, p, i + LANES,
				  n > LANES ? n - LANES : 0));
}

static ALWAYS void lines_type(enum cpu_gemm_type type,
			      const struct cpu_gemm_source *s, size_t rows,
			      size_t k, float *out)
{
	for (size_t i = 0; i < rows; i++) {
		const void *p = row_of(type, s, i);
		float *to = out + i * LANES;
		size_t at = 0;
		for (; at + 32 <= k; at += 32, to += rows * LANES)
			store(to, load_all_pairs(type, p, at));
		if (at < k)
			store(to, load_pairs(type, p, at, k - at));
	}
}

/* 16 columns, n of them there, and up to 32 k's from `at` on, turned. */
static ALWAYS void turn_square(enum cpu_gemm_type type,
			       const struct cpu_gemm_source *s, size_t column,
			       size_t n, size_t at, size_t k, float *out,
			       size_t width)
{
	vf v[LANES];

#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++) {
		const void *p = row_of(type, s, column + i);
		v[i] = i < n ? load_pairs(type, p, at, k - at) : (vf){ 0 };
	}
	transpose(v);
#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++)
		if (at + 2 * i < k)
			store(out + i * width, v[i]);
}

static ALWAYS void columns_type(enum cpu_gemm_type type,
				const struct cpu_gemm_source *s, size_t k,
				size_t columns, size_t width, float *out)
{
	for (size_t j = 0; j < width; j += LANES) {
		size_t n = j < columns ? columns - j : 0, at = 0;
		for (; n >= LANES && at + 32 <= k; at += 32) {
			turn_square(type, s, j, LANES, at, at + 32,
				    out + at / 2 * width + j, width);
			for (size_t i = 0; i < LANES; i++)
				_mm_prefetch((const char *)row_of(
						     type, s, j + LANES + i) +
						     at * (type == CPU_GEMM_F32 ?
								   4 : 2),
					     _MM_HINT_T1);
		}
		for (; at < k; at += 32)
			turn_square(type, s, j, n, at, k,
				    out + at / 2 * width + j, width);
	}
}

/* 16 values as bf16, each in 32 bits. */
static ALWAYS vu load_wide(enum cpu_gemm_type type, const void *p, size_t j,
			   size_t n)
{
	vf v = load_up_to(type, p, j, n);
	__m256i h;

	__asm__("vcvtneps2bf16 %1, %0" : "=v"(h) : "v"(v));
	return (vu)_mm512_maskz_cvtepu16_epi32(0xffff, h);
}

static ALWAYS void rows_type(enum cpu_gemm_type type,
			     const struct cpu_gemm_source *s, size_t k,
			     size_t columns, size_t width, float *out)
{
	for (size_t i = 0; i < k; i += 2, out += width) {
		const void *even = row_of(type, s, i);
		const void *odd = row_of(type, s, i + 1);
		for (size_t j = 0; j < width; j += LANES) {
			size_t n = j < columns ? columns - j : 0;
			vu low = load_wide(type, even, j, n);
			vu high = load_wide(type, odd, j, i + 1 < k ? n : 0);
			store(out + j, (vf)(low | high << 16));
		}
	}
}

void cpu_gemm_pairs_lines(const struct cpu_gemm_source *s, size_t rows,
			  size_t k, float *out)
{
	CPU_GEMM_EACH_TYPE(s->type, lines_type, s, rows, k, out)
}

void cpu_gemm_pairs_rows(const struct cpu_gemm_source *s, size_t k,
			 size_t columns, size_t width, float *out)
{
	CPU_GEMM_EACH_TYPE(s->type, rows_type, s, k, columns, width, out)
}

void cpu_gemm_pairs_columns(const struct cpu_gemm_source *s, size_t k,
			    size_t columns, size_t width, float *out)
{
	CPU_GEMM_EACH_TYPE(s->type, columns_type, s, k, columns, width, out)
}

#endif
