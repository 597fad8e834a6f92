/*
 * autotune/cpu/gemm_simd.h - vectors of one level of the instruction set, for
 * the files that are compiled once for each (SIMD_LEVEL is v2, v3 or v4).
 */
#ifndef T0_AUTOTUNE_HOST_SIMD_H
#define T0_AUTOTUNE_HOST_SIMD_H

#include <immintrin.h>
#include <string.h>

#include "autotune/cpu/gemm_int.h"

#ifndef SIMD_LEVEL
#define SIMD_LEVEL v2
#endif
#define CPU_GEMM_CAT_(a, b) a##b
#define CPU_GEMM_CAT(a, b)	CPU_GEMM_CAT_(a, b)
/* cpu_gemm_dot becomes cpu_gemm_dot_v4. */
#define CPU_GEMM_NAME(name) CPU_GEMM_CAT(name##_, SIMD_LEVEL)

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#define ALWAYS inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
/* The same without alignment, for loads and stores. */
typedef float vfu __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint16_t vhu __attribute__((vector_size(2 * LANES), aligned(1)));

extern const struct cpu_gemm_kernels CPU_GEMM_NAME(cpu_gemm_kernels);
void CPU_GEMM_NAME(cpu_gemm_pack_lines)(const struct cpu_gemm_source *s,
					size_t rows, size_t k, float *out);
void CPU_GEMM_NAME(cpu_gemm_pack_rows)(const struct cpu_gemm_source *s,
				       size_t k, size_t columns, size_t width,
				       float *out);
void CPU_GEMM_NAME(cpu_gemm_pack_columns)(const struct cpu_gemm_source *s,
					  size_t k, size_t columns,
					  size_t width, float *out);
void CPU_GEMM_NAME(cpu_gemm_merge)(const float *t, size_t ldt, size_t rows,
				   size_t columns, float alpha, float beta,
				   float *c, size_t ldc);
void CPU_GEMM_NAME(cpu_gemm_turn)(const float *t, size_t ldt, size_t rows,
				  size_t columns, float alpha, float beta,
				  float *c, size_t ldc);
void CPU_GEMM_NAME(cpu_gemm_dot)(const struct cpu_gemm *g, size_t j0, size_t j1,
				 size_t ahead_bytes);
void CPU_GEMM_NAME(cpu_gemm_sweep)(const struct cpu_gemm *g, size_t j0,
				   size_t j1, size_t ahead_bytes);

void CPU_GEMM_NAME(cpu_gemm_make_ints)(const struct cpu_gemm *g, size_t row,
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

static ALWAYS vf load(const float *p)
{
	return *(const vfu *)p;
}

static ALWAYS void store(float *p, vf v)
{
	*(vfu *)p = v;
}

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

static ALWAYS vf splat(float x)
{
	return x - (vf){ 0 };
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

static ALWAYS vf widen_bf16(vh h)
{
#if LANES == 16
	/* Masked by nothing, as below; gcc 12 takes four steps by itself. */
	return (vf)((vu)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)h) << 16);
#elif LANES == 8
	return (vf)((vu)_mm256_cvtepu16_epi32((__m128i)h) << 16);
#else
	return (vf)(__builtin_convertvector(h, vu) << 16);
#endif
}

static ALWAYS vf widen_f16(vh h)
{
#if LANES == 16
	/* Masked by nothing: gcc 12 warns about the plain form. */
	return (vf)_mm512_maskz_cvtph_ps(0xffff, (__m256i)h);
#elif defined(__F16C__)
	return (vf)_mm256_cvtph_ps((__m128i)h);
#else
	/* Shifted into place, then scaled by 2^112: exact, denormals too. */
	vu u = __builtin_convertvector(h, vu);
	vu sign = (u & 0x8000) << 16, rest = (u & 0x7fff) << 13;
	vu big = (vu)((vi)((u & 0x7c00) == 0x7c00));
	vf v = (vf)rest * 0x1p112f;

	v = (vf)(((vu)v & ~big) | ((rest | 0x7f800000) & big));
	return (vf)((vu)v | sign);
#endif
}

static ALWAYS vh load_half(const uint16_t *p)
{
	return *(const vhu *)p;
}

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

/* Element from[i] of `a`, and of `b` from LANES on. */
static ALWAYS vf permute_two(vf a, vf b, vi from)
{
#ifdef __clang__ /* has shuffles by constants only */
	vf r;

	for (int i = 0; i < LANES; i++)
		r[i] = from[i] < LANES ? a[from[i]] : b[from[i] - LANES];
	return r;
#else
	return __builtin_shuffle(a, b, from);
#endif
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
