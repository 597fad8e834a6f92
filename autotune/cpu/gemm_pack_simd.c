/*
 * autotune/cpu/gemm_pack_simd.c - packing of operands for the tiles of
 * gemm_tile_simd.c.
 *
 * 16-bit values become f32, rows become columns, and tiles of a swapped
 * product are transposed back.
 */
#include "autotune/cpu/gemm_simd.h"

static ALWAYS size_t size_of(enum cpu_gemm_type type)
{
	return type == CPU_GEMM_F32 ? 4 : 2;
}

static ALWAYS const void *row_of(enum cpu_gemm_type type, const void *data,
				 size_t ld, size_t row)
{
	return (const char *)data + row * ld * size_of(type);
}

/* n values, and zeros up to `width`, a multiple of LANES. */
static ALWAYS void widen_row(enum cpu_gemm_type type, const void *p, size_t n,
			     size_t width, float *out)
{
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		store(out + i, load_type(type, p, i));
	for (; i < width; i += LANES)
		store(out + i, load_type_some(type, p, i, i < n ? n - i : 0));
}

static ALWAYS void lines_type(enum cpu_gemm_type type,
			      const struct cpu_gemm_source *s, size_t rows,
			      size_t k, float *out)
{
	for (size_t i = 0; i < rows; i++) {
		const void *p = row_of(type, s->data, s->ld, i);
		float *to = out + i * LANES;
		size_t at = 0;
		for (; at + LANES <= k; at += LANES, to += rows * LANES)
			store(to, load_type(type, p, at));
		if (at < k)
			store(to, load_type_some(type, p, at, k - at));
	}
}

static ALWAYS void rows_type(enum cpu_gemm_type type,
			     const struct cpu_gemm_source *s, size_t k,
			     size_t columns, size_t width, float *out)
{
	for (size_t i = 0; i < k; i++)
		widen_row(type, row_of(type, s->data, s->ld, i), columns, width,
			  out + i * width);
}

/* A square of columns n <= LANES and k <= LANES, turned. */
static ALWAYS void pack_square(enum cpu_gemm_type type,
			       const struct cpu_gemm_source *s, size_t column,
			       size_t n, size_t at, size_t k, float *out,
			       size_t width)
{
	vf v[LANES];

#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++) {
		const void *p = row_of(type, s->data, s->ld, column + i);
		v[i] = i >= n	  ? (vf){ 0 } :
		       k == LANES ? load_type(type, p, at) :
				    load_type_some(type, p, at, k);
	}
	transpose(v);
#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++)
		if (i < k)
			store(out + i * width, v[i]);
}

/*
 * LANES columns of bf16, 2 * LANES k's, turned as pairs: half the shuffles, and
 * a pair is two f32 but for a shift and a mask.  The next columns are asked
 * for meanwhile, far apart as they are.
 */
static ALWAYS void pack_pairs(const struct cpu_gemm_source *s, size_t column,
			      size_t at, float *out, size_t width)
{
	vf v[LANES];

#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++) {
		const uint16_t *p = (const uint16_t *)s->data +
				    (column + i) * s->ld + at;
		memcpy(&v[i], p, sizeof(v[i]));
		_mm_prefetch((const char *)(p + LANES * s->ld), _MM_HINT_T1);
	}
	transpose(v);
#pragma GCC unroll 16
	for (size_t i = 0; i < LANES; i++) {
		store(out + 2 * i * width, (vf)((vu)v[i] << 16));
		store(out + (2 * i + 1) * width, (vf)((vu)v[i] & 0xffff0000));
	}
}

static ALWAYS void columns_type(enum cpu_gemm_type type,
				const struct cpu_gemm_source *s, size_t k,
				size_t columns, size_t width, float *out)
{
	for (size_t j = 0; j < width; j += LANES) {
		size_t n = j < columns ? columns - j : 0, at = 0;
		if (n >= LANES && type == CPU_GEMM_BF16)
			for (; at + 2 * LANES <= k; at += 2 * LANES)
				pack_pairs(s, j, at, out + at * width + j,
					   width);
		if (n >= LANES)
			for (; at + LANES <= k; at += LANES)
				pack_square(type, s, j, LANES, at, LANES,
					    out + at * width + j, width);
		n = n < LANES ? n : LANES;
		for (; at < k; at += LANES)
			pack_square(type, s, j, n, at,
				    k - at < LANES ? k - at : LANES,
				    out + at * width + j, width);
	}
}

void SIMD(cpu_gemm_pack_lines)(const struct cpu_gemm_source *s,
			       size_t rows, size_t k, float *out)
{
	CPU_GEMM_EACH_TYPE(s->type, lines_type, s, rows, k, out)
}

void SIMD(cpu_gemm_pack_rows)(const struct cpu_gemm_source *s,
			      size_t k, size_t columns, size_t width,
			      float *out)
{
	CPU_GEMM_EACH_TYPE(s->type, rows_type, s, k, columns, width, out)
}

void SIMD(cpu_gemm_pack_columns)(const struct cpu_gemm_source *s,
				 size_t k, size_t columns,
				 size_t width, float *out)
{
	CPU_GEMM_EACH_TYPE(s->type, columns_type, s, k, columns, width, out)
}

void SIMD(cpu_gemm_merge)(const float *t, size_t ldt, size_t rows,
			  size_t columns, float alpha, float beta,
			  float *c, size_t ldc)
{
	for (size_t i = 0; i < rows; i++, t += ldt, c += ldc) {
		size_t j = 0;
		for (; j + LANES <= columns; j += LANES)
			update_vector(c + j, load(t + j), alpha, beta);
		if (j < columns)
			update_some(c + j, load(t + j), alpha, beta,
				    columns - j);
	}
}

void SIMD(cpu_gemm_turn)(const float *t, size_t ldt, size_t rows,
			 size_t columns, float alpha, float beta,
			 float *c, size_t ldc)
{
	for (size_t i = 0; i < rows; i += LANES) {
		size_t n = rows - i < LANES ? rows - i : LANES;
		for (size_t j = 0; j < columns; j += LANES) {
			vf v[LANES];
			for (size_t r = 0; r < LANES; r++)
				v[r] = r < n ? load(t + (i + r) * ldt + j) :
					       (vf){ 0 };
			transpose(v);
			for (size_t r = 0; r < LANES && j + r < columns; r++) {
				float *at = c + (j + r) * ldc + i;
				if (n == LANES)
					update_vector(at, v[r], alpha, beta);
				else
					update_some(at, v[r], alpha, beta, n);
			}
		}
	}
}
