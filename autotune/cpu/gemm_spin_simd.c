/*
 * autotune/cpu/gemm_spin_simd.c - the yardsticks of units: as many
 * multiply-adds as registers allow, in enough sums that none waits for itself.
 */
#include "autotune/cpu/gemm_simd.h"

#define CHAINS	12
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define INIT(i)	vi s##i = { i };
#define KEEP(i)	all ^= s##i;

/* `step` of sum, a and b, and how many FLOP that is; sums may wrap. */
#define SPIN(name, flop, step) \
	static double name(uint64_t rounds) \
	{ \
		vi a = (vi){ 0 } + 0x3f803f80, b = a, all = { 0 }; \
		EACH(INIT) \
		for (uint64_t r = 0; r < rounds; r++) { \
			EACH(step) \
		} \
		EACH(KEEP) \
		volatile int32_t keep = all[0]; \
		(void)keep; \
		return (double)(flop) * LANES * CHAINS * (double)rounds; \
	}
#define FMA(i) \
	__asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define BF16(i) \
	__asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define VNNI(i) \
	__asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(s##i) : "v"(a), "v"(b));
#define EVEX(i) \
	__asm__ volatile("%{evex%} vpdpbusd %2, %1, %0" \
			 : "+x"(s##i) \
			 : "x"(a), "x"(b));
#define VEX(i) \
	__asm__ volatile("%{vex%} vpdpbusd %2, %1, %0" \
			 : "+x"(s##i) \
			 : "x"(a), "x"(b));
#define BYTES(i) \
	s##i = (vi)_mm256_add_epi32( \
		(__m256i)s##i, \
		_mm256_madd_epi16( \
			_mm256_maddubs_epi16((__m256i)a, (__m256i)b), \
			_mm256_set1_epi16(1))); \
	__asm__ volatile("" : "+x"(s##i), "+x"(a));

#if LANES == 16
SPIN(spin_fma, 2, FMA)
SPIN(spin_bf16, 4, BF16)
SPIN(spin_vnni, 8, VNNI)

double cpu_gemm_spin_v4(unsigned level, uint64_t rounds)
{
	return level == CPU_LEVEL_BF16 ? spin_bf16(rounds) :
	       level == CPU_LEVEL_VNNI ? spin_vnni(rounds) :
					 spin_fma(rounds);
}
#elif LANES == 8
SPIN(spin_fma, 2, FMA)
SPIN(spin_evex, 8, EVEX)
SPIN(spin_vex, 8, VEX)
SPIN(spin_bytes, 8, BYTES)

double cpu_gemm_spin_v3(unsigned level, uint64_t rounds)
{
	if (level == CPU_LEVEL_AVX_VNNI)
		return cpu_has_avx_vnni() ? spin_vex(rounds) :
					    spin_evex(rounds);
	return level == CPU_LEVEL_BYTES ? spin_bytes(rounds) :
					  spin_fma(rounds);
}
#else
#define MULTIPLY(i) \
	s##i = (vi)((vf)a * (vf)b + (vf)s##i); \
	__asm__ volatile("" : "+x"(s##i));
SPIN(spin_fma, 2, MULTIPLY)

double cpu_gemm_spin_v2(unsigned level, uint64_t rounds)
{
	(void)level;
	return spin_fma(rounds);
}
#endif
