/*
 * autotune/cpu/gemm_quads.h - bytes, four products at a time, for the files
 * that are compiled once for each level of the instruction set.
 *
 * Three ways: VNNI of AVX-512 and of AVX take one instruction for four products
 * and the sum, but unsigned bytes on one side, so B gets 128 added and every
 * sum begins with what that adds; AVX2 takes four.
 */
#ifndef T0_AUTOTUNE_GEMM_QUADS_H
#define T0_AUTOTUNE_GEMM_QUADS_H

#include "autotune/cpu/gemm_simd.h"

#if LANES >= 8

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

#endif
#endif
