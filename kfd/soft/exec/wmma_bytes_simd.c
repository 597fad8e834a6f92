/*
 * kfd/soft/exec/wmma_bytes_simd.c - WMMA of integers where the host adds four
 * products of bytes to a word (AVX-512 VNNI).
 *
 * It multiplies unsigned bytes by signed ones.  Where both are signed, or
 * neither is, those of A are 128 off in the other's sense, and 128 times the
 * sum of B's column is taken back.  Sums are exact but that they wrap.
 */
#include "kfd/soft/exec/valu_microop.h"
#include "kfd/soft/exec/wmma.h"

#if defined(__AVX512BW__)
#define WORDS 4 /* of four elements each along k */
#define TARGET __attribute__((target("avx512vnni")))
#define ALWAYS static inline __attribute__((always_inline)) TARGET

typedef int32_t word_row[WMMA_N];

static void microop_from_8(struct soft_wave *w, const struct soft_microop *m,
			   const uintptr_t *base)
{
	const uint32_t *from = (const uint32_t *)(base[0] + m->a);
	word_row *to = (word_row *)m->c;

	for (int k = 0; k < WORDS; k++)
		_mm512_store_si512(to[k],
				   _mm512_loadu_si512(from + k * SOFT_LANES));
	SOFT_NEXT(w, m, base);
}

/* Elements 0, 2, 4, 6 and 1, 3, 5, 7 of a word, in A as in B. */
static inline void from_4(const struct soft_microop *m, const uintptr_t *base,
			  int sign)
{
	const __m512i low = _mm512_set1_epi8(15), top = _mm512_set1_epi8((char)sign);
	const uint32_t *from = (const uint32_t *)(base[0] + m->a);
	word_row *to = (word_row *)m->c;

	for (int k = 0; k < WORDS; k++) {
		__m512i v = _mm512_loadu_si512(from + k / 2 * SOFT_LANES);

		v = _mm512_maskz_srli_epi32(0xffff, v, k % 2 * 4);
		v = _mm512_xor_si512(_mm512_and_si512(v, low), top);
		_mm512_store_si512(to[k], _mm512_sub_epi8(v, top));
	}
}

static void microop_from_u4(struct soft_wave *w, const struct soft_microop *m,
			    const uintptr_t *base)
{
	from_4(m, base, 0);
	SOFT_NEXT(w, m, base);
}

static void microop_from_i4(struct soft_wave *w, const struct soft_microop *m,
			    const uintptr_t *base)
{
	from_4(m, base, 8);
	SOFT_NEXT(w, m, base);
}

/* sum + a * b, of which one is unsigned and one signed. */
ALWAYS __m512i add_products(__m512i sum, __m512i a, __m512i b, bool signed_b)
{
	return signed_b ? _mm512_dpbusd_epi32(sum, a, b) :
			  _mm512_dpbusd_epi32(sum, b, a);
}

ALWAYS void add_all(const struct soft_microop *m, const uintptr_t *base,
		    bool wide, bool signed_b)
{
	const bool equal = m->mods[0] == m->mods[1];
	const __m512i off = _mm512_set1_epi8(equal ? -128 : 0);
	__m512i sum[WMMA_N], b[WORDS], back = _mm512_setzero_si512();
	_Alignas(64) word_row a[WORDS];

	for (int k = 0; k < WORDS; k++) {
		const __m512i v = _mm512_load_si512(((word_row *)m->a)[k]);

		b[k] = _mm512_load_si512(((word_row *)m->b)[k]);
		_mm512_store_si512(a[k], _mm512_xor_si512(v, off));
		back = add_products(back, off, b[k], signed_b);
	}
	/* From memory they are spread by the load itself; gcc would shuffle. */
	__asm__("" : "+m"(a));
#pragma GCC unroll 16
	for (int r = 0; r < WMMA_N; r++)
		sum[r] = _mm512_sub_epi32(
			_mm512_loadu_si512(soft_wmma_row(base, m->c, r, wide)),
			back);
	for (int k = 0; k < WORDS; k++)
#pragma GCC unroll 16
		for (int r = 0; r < WMMA_N; r++)
			sum[r] = add_products(sum[r],
					      _mm512_set1_epi32(a[k][r]), b[k],
					      signed_b);
#pragma GCC unroll 16
	for (int r = 0; r < WMMA_N; r++)
		_mm512_storeu_si512(soft_wmma_row(base, m->d, r, wide), sum[r]);
}

/* What has locals in memory is a function of its own, as in wmma_simd.c. */
#define SUM(wide) \
	static __attribute__((noinline)) TARGET void sum_##wide( \
		const struct soft_microop *m, const uintptr_t *base) \
	{ \
		if (m->mods[1]) \
			add_all(m, base, wide, true); \
		else \
			add_all(m, base, wide, false); \
	} \
	static void microop_sum_##wide(struct soft_wave *w, \
				       const struct soft_microop *m, \
				       const uintptr_t *base) \
	{ \
		sum_##wide(m, base); \
		SOFT_NEXT(w, m, base); \
	}
SUM(0)
SUM(1)

const struct soft_wmma_microops SIMD(soft_wmma_bytes) = {
	.from = { [WMMA_FROM_U8] = microop_from_8,
		  [WMMA_FROM_I8] = microop_from_8,
		  [WMMA_FROM_U4] = microop_from_u4,
		  [WMMA_FROM_I4] = microop_from_i4 },
	.sum = { [WMMA_IU8] = { microop_sum_0, microop_sum_1 } },
};
#else
const struct soft_wmma_microops SIMD(soft_wmma_bytes) = { .bytes = NULL };
#endif
