/*
 * autotune/cpu/gemm_simd.h - what the *_simd.c files have in common: stored
 * types as vectors, functions of each level of the instruction set.
 */
#ifndef T0_AUTOTUNE_HOST_SIMD_H
#define T0_AUTOTUNE_HOST_SIMD_H

#include <string.h>

#include "autotune/cpu/gemm_int.h"
#include "base/simd.h"

extern const struct cpu_gemm_kernels SIMD(cpu_gemm_kernels);
void SIMD(cpu_gemm_pack_lines)(const struct cpu_gemm_source *s,
			       size_t rows, size_t k, float *out);
void SIMD(cpu_gemm_pack_rows)(const struct cpu_gemm_source *s,
			      size_t k, size_t columns, size_t width,
			      float *out);
void SIMD(cpu_gemm_pack_columns)(const struct cpu_gemm_source *s,
				 size_t k, size_t columns,
				 size_t width, float *out);
void SIMD(cpu_gemm_merge)(const float *t, size_t ldt, size_t rows,
			  size_t columns, float alpha, float beta,
			  float *c, size_t ldc);
void SIMD(cpu_gemm_turn)(const float *t, size_t ldt, size_t rows,
			 size_t columns, float alpha, float beta,
			 float *c, size_t ldc);
void SIMD(cpu_gemm_dot)(const struct cpu_gemm *g, size_t j0, size_t j1,
			size_t ahead_bytes);
void SIMD(cpu_gemm_sweep)(const struct cpu_gemm *g, size_t j0,
			  size_t j1, size_t ahead_bytes);

void SIMD(cpu_gemm_make_ints)(const struct cpu_gemm *g, size_t row,
			      size_t n, size_t k0, size_t k,
			      float *out, size_t ldo);
#if LANES == 16
/* gemm_pairs_simd.c: the same as pairs of bf16, whatever is stored. */
void cpu_gemm_pairs_lines(const struct cpu_gemm_source *s, size_t rows,
			  size_t k, float *out);
void cpu_gemm_pairs_rows(const struct cpu_gemm_source *s, size_t k,
			 size_t columns, size_t width, float *out);
void cpu_gemm_pairs_columns(const struct cpu_gemm_source *s, size_t k,
			    size_t columns, size_t width, float *out);
#endif

/* The first n of a vector's values, zeros behind them; n < LANES. */
static ALWAYS vf load_some(const float *p, size_t n)
{
#if LANES == 16
	return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
	float v[LANES] = { 0 };

	for (size_t i = 0; i < n; i++)
		v[i] = p[i];
	return load(v);
#endif
}

static ALWAYS void store_some(float *p, vf v, size_t n)
{
#if LANES == 16
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
	float t[LANES];

	store(t, v);
	for (size_t i = 0; i < n; i++)
		p[i] = t[i];
#endif
}

/* Spelt out: left to the compiler, sums would differ from tile to tile. */
static ALWAYS vf fma_(vf a, vf b, vf c)
{
#if LANES == 16
	return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif LANES == 8
	return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
	return a * b + c;
#endif
}

/* alpha * v + beta * what is there, which is not read for beta = 0. */
static ALWAYS void update_vector(float *c, vf v, float alpha, float beta)
{
	v *= splat(alpha);
	store(c, beta == 0 ? v : fma_(splat(beta), load(c), v));
}

static ALWAYS void update_some(float *c, vf v, float alpha, float beta,
			       size_t n)
{
	v *= splat(alpha);
	store_some(c, beta == 0 ? v : fma_(splat(beta), load_some(c, n), v), n);
}

/* ---- stored types to f32 ---- */

static ALWAYS vh load_half_some(const uint16_t *p, size_t n)
{
	uint16_t h[LANES] = { 0 };

	for (size_t i = 0; i < n; i++)
		h[i] = p[i];
	return load_half(h);
}

/* Of a group of a row of integers. */
static ALWAYS float cpu_gemm_scale(const struct cpu_gemm *g, size_t row,
				   size_t group)
{
	const struct cpu_gemm_ints *m = g->b;
	const uint8_t *p = m->scale + row * m->scale_row +
			   group * m->scale_group;
	vh one = { 0 };
	uint16_t h;
	float f;

	if (g->b_type == CPU_GEMM_CHANNEL8) {
		memcpy(&f, p, sizeof(f));
		return f;
	}
	memcpy(&h, p, sizeof(h));
	one[0] = h;
	return widen_f16(one)[0];
}

/* call(TYPE, ...) with a constant TYPE: each gets code of its own. */
#define CPU_GEMM_EACH_TYPE(type, call, ...) \
	switch (type) { \
	case CPU_GEMM_BF16: \
		call(CPU_GEMM_BF16, __VA_ARGS__); \
		break; \
	case CPU_GEMM_F16: \
		call(CPU_GEMM_F16, __VA_ARGS__); \
		break; \
	default: \
		call(CPU_GEMM_F32, __VA_ARGS__); \
	}

/* LANES values of a type from element i on. */
static ALWAYS vf load_type(enum cpu_gemm_type type, const void *p, size_t i)
{
	switch (type) {
	case CPU_GEMM_BF16:
		return widen_bf16(load_half((const uint16_t *)p + i));
	case CPU_GEMM_F16:
		return widen_f16(load_half((const uint16_t *)p + i));
	default:
		return load((const float *)p + i);
	}
}

static ALWAYS vf load_type_some(enum cpu_gemm_type type, const void *p,
				size_t i, size_t n)
{
	switch (type) {
	case CPU_GEMM_BF16:
		return widen_bf16(load_half_some((const uint16_t *)p + i, n));
	case CPU_GEMM_F16:
		return widen_f16(load_half_some((const uint16_t *)p + i, n));
	default:
		return load_some((const float *)p + i, n);
	}
}

/*
 * v[i][j] and v[j][i] change places, in log2(LANES) rounds: each exchanges the
 * halves of pairs of blocks that are one half apart.
 */
static ALWAYS void transpose(vf v[LANES])
{
	vi lane;

	for (int i = 0; i < LANES; i++)
		lane[i] = i;
#pragma GCC unroll 4
	for (int s = 1; s < LANES; s *= 2) {
		vi odd = (lane & s) != 0;
		vi low = lane + (odd & (LANES - s));
		vi high = lane + s + (odd & (LANES - s));
#pragma GCC unroll 16
		for (int i = 0; i < LANES; i++) {
			if (i & s)
				continue;
			vf a = v[i], b = v[i + s];
			v[i] = permute_two(a, b, low);
			v[i + s] = permute_two(a, b, high);
		}
	}
}

#endif
