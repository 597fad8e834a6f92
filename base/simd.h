/*
 * base/simd.h - vectors of one level of the instruction set, in the compiler's
 * types, for *_simd.c files, which are compiled once for each: SIMD_LEVEL is v2,
 * v3 or v4.
 */
#ifndef T0_BASE_SIMD_H
#define T0_BASE_SIMD_H

#include <immintrin.h>
#include <stdint.h>

#ifndef SIMD_LEVEL
#define SIMD_LEVEL v2 /* the header alone */
#endif
#define SIMD_CAT_(a, b) a##b
#define SIMD_CAT(a, b)	SIMD_CAT_(a, b)
/* SIMD(dot) is dot_v4. */
#define SIMD(name) SIMD_CAT(name##_, SIMD_LEVEL)

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

static ALWAYS vf load(const float *p)
{
	return *(const vfu *)p;
}

static ALWAYS void store(float *p, vf v)
{
	*(vfu *)p = v;
}

static ALWAYS vh load_half(const void *p)
{
	return *(const vhu *)p;
}

static ALWAYS vf splat(float x)
{
	return x - (vf){ 0 };
}

static ALWAYS vf widen_bf16(vh h)
{
	/* The compiler would widen in halves; masked by nothing, as below. */
#if LANES == 16
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

#endif
