/*
 * kfd/soft/exec/wmma_bytes_simd.c - WMMA of integers where the host adds four
 * products of bytes to a word (AVX-512 VNNI).
 *
 * It multiplies unsigned bytes by signed ones.  Where both are signed, or
 * neither is, those of B are 128 off in the other's sense, and 128 times the
 * sum of A's row is taken back.  Sums are exact but that they wrap.
 *
 * A and B of 8 bits lie in their registers as the sums want them, and are read
 * there; those of 4 bits are made into such.
 */
#include "kfd/soft/exec/valu_microop.h"
#include "kfd/soft/exec/wmma.h"

#if defined(__AVX512BW__)
#define WORDS 4 /* of four elements each along k */
#define TARGET __attribute__((target("avx512vnni")))
#define ALWAYS static inline __attribute__((always_inline)) TARGET

typedef int32_t word_row[WMMA_N];

/* Elements 0, 2, 4, 6 and 1, 3, 5, 7 of a word, in A as in B. */
static inline void from_4(const struct soft_microop *m, const uintptr_t *base,
			  enum wmma_layout layout, int sign)
{
	const __m512i low = _mm512_set1_epi8(15),
		      top = _mm512_set1_epi8((char)sign);
	word_row *to = (word_row *)m->c;

	for (int k = 0; k < WORDS; k++) {
		__m512i v = _mm512_loadu_si512(
			soft_wmma_word(base, m->a, k / 2, WORDS / 2, layout));

		v = _mm512_maskz_srli_epi32(0xffff, v, k % 2 * 4);
		v = _mm512_xor_si512(_mm512_and_si512(v, low), top);
		_mm512_store_si512(to[k], _mm512_sub_epi8(v, top));
	}
}

#define EACH_FROM(X) \
	X(u4, WMMA_FROM_U4, from_4, 0) \
	X(i4, WMMA_FROM_I4, from_4, 8)
#define FROM_LAYOUT(layout, name, fn, sign) \
	static void microop_from_##name##_##layout( \
		struct soft_wave *w, const struct soft_microop *m, \
		const uintptr_t *base) \
	{ \
		fn(m, base, layout, sign); \
		SOFT_NEXT(w, m, base); \
	}
#define FROM(name, from, ...) SOFT_WMMA_EACH(FROM_LAYOUT, name, __VA_ARGS__)
EACH_FROM(FROM)

/* Word k of all rows of A, or columns of B. */
ALWAYS const int32_t *word_at(const uintptr_t *base, uintptr_t at, int k,
			      enum wmma_layout layout, bool in_place)
{
	return in_place ?
		       (const int32_t *)soft_wmma_word(base, at, k, WORDS,
						       layout) :
		       ((const word_row *)at)[k];
}

/* sum + a * b, of which one is unsigned and one signed. */
ALWAYS __m512i add_products(__m512i sum, __m512i a, __m512i b, bool signed_a)
{
	return signed_a ? _mm512_dpbusd_epi32(sum, b, a) :
			  _mm512_dpbusd_epi32(sum, a, b);
}

ALWAYS void add_all(const struct soft_microop *m, const uintptr_t *base,
		    enum wmma_layout layout, bool in_place, bool signed_a)
{
	const bool equal = m->mods[0] == m->mods[1];
	const __m512i off = _mm512_set1_epi8(equal ? -128 : 0);
	__m512i c[WMMA_N], b[WORDS], backs = _mm512_setzero_si512();
	_Alignas(64) word_row back;
	const int32_t *a[WORDS];

#pragma GCC unroll 4
	for (int k = 0; k < WORDS; k++) {
		a[k] = word_at(base, m->a, k, layout, in_place);
		b[k] = _mm512_xor_si512(
			_mm512_loadu_si512(
				word_at(base, m->b, k, layout, in_place)),
			off);
		backs = add_products(backs, _mm512_loadu_si512(a[k]), off,
				     signed_a);
	}
	_mm512_store_si512(back, backs);
	/* From memory they are spread by the load itself; gcc would shuffle. */
	__asm__("" : "+m"(back));
#pragma GCC unroll 16
	for (int r = 0; r < WMMA_N; r++)
		c[r] = _mm512_loadu_si512(
			soft_wmma_row(base, m->c, r, layout, false));
#pragma GCC unroll 16
	for (int r = 0; r < WMMA_N; r++) {
		__m512i v = _mm512_sub_epi32(c[r], _mm512_set1_epi32(back[r]));

#pragma GCC unroll 4
		for (int k = 0; k < WORDS; k++)
			v = add_products(v, _mm512_set1_epi32(a[k][r]), b[k],
					 signed_a);
		_mm512_storeu_si512(soft_wmma_row(base, m->d, r, layout, false),
				    v);
	}
}

/* What has locals in memory is a function of its own, as in wmma_simd.c. */
#define SUM_LAYOUT(layout, name, in_place) \
	static __attribute__((noinline)) TARGET void name##_##layout( \
		const struct soft_microop *m, const uintptr_t *base) \
	{ \
		if (m->mods[0]) \
			add_all(m, base, layout, in_place, true); \
		else \
			add_all(m, base, layout, in_place, false); \
	} \
	static void microop_##name##_##layout(struct soft_wave *w, \
					      const struct soft_microop *m, \
					      const uintptr_t *base) \
	{ \
		name##_##layout(m, base); \
		SOFT_NEXT(w, m, base); \
	}
SOFT_WMMA_EACH(SUM_LAYOUT, sum, false)
SOFT_WMMA_EACH(SUM_LAYOUT, sum_in_place, true)

#define NAMED(layout, name) [layout] = microop_##name##_##layout,
#define FROM_ROW(name, from, ...) \
	[from] = { SOFT_WMMA_EACH(NAMED, from_##name) },
const struct soft_wmma_microops SIMD(soft_wmma_bytes) = {
	.from = { EACH_FROM(FROM_ROW) },
	.sum = { [WMMA_IU8] = { SOFT_WMMA_EACH(NAMED, sum_in_place) },
		 [WMMA_IU4] = { SOFT_WMMA_EACH(NAMED, sum) } },
};
#else
const struct soft_wmma_microops SIMD(soft_wmma_bytes) = { .bytes = NULL };
#endif
