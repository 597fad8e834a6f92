/*
 * kfd/soft/exec/wmma_simd.c - the arithmetic of WMMA on whole rows.
 *
 * wmma.h says where the matrices are and how sums are rounded.
 */
#include "kfd/soft/exec/valu_piece.h"
#include "kfd/soft/exec/wmma.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

/* --------------------------------------------------------------- float ---- */

/*
 * Sixteen words are one piece or a few, as wide as the host's registers: loops
 * over words would be unrolled, not vectorised, and gcc makes scalars of what
 * is wider.
 */
#define PIECE_WORDS ((int)(SOFT_PIECE_BYTES / sizeof(uint32_t)))
#define ROW_PIECES  (WMMA_N / PIECE_WORDS)
#define EACH_PIECE(l) for (int l = 0; l < WMMA_N; l += PIECE_WORDS)
#define PIECE_GET(v, p) memcpy(&(v), (p), SOFT_PIECE_BYTES)
#define PIECE_PUT(p, v) memcpy((p), &(v), SOFT_PIECE_BYTES)
#define WMMA_PAIRS	(WMMA_N / 2)
#define ALWAYS	      static inline __attribute__((always_inline))

/* Sixteen halves, in bits shift + 15:shift of each word, to floats and back. */
#if defined(__AVX512F__)
/* The maskz forms, since GCC 12 warns about its own plain ones. */
#define ALL 0xffff
static inline void row_from_f16(const uint32_t *u, int shift, float *f)
{
	__m512i v = _mm512_maskz_srli_epi32(ALL, _mm512_loadu_si512(u), shift);
	__m256i h = _mm512_maskz_cvtepi32_epi16(ALL, v);

	_mm512_storeu_ps(f, _mm512_maskz_cvtph_ps(ALL, h));
}

static inline void row_to_f16(const float *f, uint32_t *h)
{
	__m256i v = _mm512_maskz_cvtps_ph(ALL, _mm512_loadu_ps(f),
					  _MM_FROUND_TO_NEAREST_INT);

	_mm512_storeu_si512(h, _mm512_maskz_cvtepu16_epi32(ALL, v));
}
#elif defined(__F16C__)
static inline void row_from_f16(const uint32_t *u, int shift, float *f)
{
	const __m256i *p = (const __m256i *)u;
	__m256i low = _mm256_srli_epi32(_mm256_loadu_si256(p), shift);
	__m256i high = _mm256_srli_epi32(_mm256_loadu_si256(p + 1), shift);
	__m256i mask = _mm256_set1_epi32(0xffff);
	__m256i h = _mm256_packus_epi32(_mm256_and_si256(low, mask),
					_mm256_and_si256(high, mask));

	h = _mm256_permute4x64_epi64(h, 0xd8); /* packed 128 bits at a time */
	_mm256_storeu_ps(f, _mm256_cvtph_ps(_mm256_castsi256_si128(h)));
	_mm256_storeu_ps(f + 8,
			 _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1)));
}

static inline void row_to_f16(const float *f, uint32_t *h)
{
	for (int l = 0; l < WMMA_N; l += 8) {
		__m128i v = _mm256_cvtps_ph(_mm256_loadu_ps(f + l),
					    _MM_FROUND_TO_NEAREST_INT);

		_mm256_storeu_si256((__m256i *)(h + l),
				    _mm256_cvtepu16_epi32(v));
	}
}
#else
static inline void row_from_f16(const uint32_t *u, int shift, float *f)
{
	for (int l = 0; l < WMMA_N; l++)
		f[l] = f32_of_half(u[l] >> shift);
}

static inline void row_to_f16(const float *f, uint32_t *h)
{
	for (int l = 0; l < WMMA_N; l++)
		h[l] = soft_f16_from_f32(f[l], SOFT_HALF_EVEN);
}
#endif

/*
 * Sixteen bytes: bf8 is the upper byte of a half, and fp8 as one has the same
 * digits and an exponent that is 8 less, but that its largest is a NaN.
 */
static inline void row_from_byte(enum wmma_type type, const uint32_t *u,
				 int shift, float *f)
{
	uint32_t h[WMMA_N];
	piece_i v, nan;

	EACH_PIECE(l)
	{
		PIECE_GET(v, u + l);
		v = v >> shift & 0xff;
		v = type == WMMA_BF8 ? v << 8 :
				       (v & 0x7f) << 7 | (v & 0x80) << 8;
		PIECE_PUT(h + l, v);
	}
	row_from_f16(h, 0, f);
	if (type == WMMA_BF8)
		return;
	for (int l = 0; l < WMMA_N; l++)
		f[l] *= 256;
	EACH_PIECE(l)
	{
		PIECE_GET(nan, u + l);
		nan = (nan >> shift & 0x7f) == 0x7f;
		PIECE_GET(v, f + l);
		v = piece_pick(nan, v - v + 0x7fc00000, v);
		PIECE_PUT(f + l, v);
	}
}

static inline void row_mods(float *f, uint32_t keep, uint32_t flip)
{
	piece_i v;

	EACH_PIECE(l)
	{
		PIECE_GET(v, f + l);
		v = (v & (int32_t)keep) ^ (int32_t)flip;
		PIECE_PUT(f + l, v);
	}
}

/* A row of numbers of this type as floats. */
ALWAYS void row_load(enum wmma_type type, const uint32_t *u, int shift,
			    float *f)
{
	piece_i v;

	if (type == WMMA_F16) {
		row_from_f16(u, shift, f);
		return;
	}
	if (type == WMMA_FP8 || type == WMMA_BF8) {
		row_from_byte(type, u, shift, f);
		return;
	}
	EACH_PIECE(l)
	{
		PIECE_GET(v, u + l);
		v = type == WMMA_F32 ? v : v >> shift << 16;
		PIECE_PUT(f + l, v);
	}
}

/* Rounded to nearest even; f holds no NaN but 0xffc00000. */
ALWAYS void row_narrow(const struct wmma *m, const float *f,
			      uint32_t *h)
{
	piece_i v;

	if (m->acc == WMMA_BF16) {
		EACH_PIECE(l)
		{
			PIECE_GET(v, f + l);
			v = (v + 0x7fff + (v >> 16 & 1)) >> 16 & 0xffff;
			PIECE_PUT(h + l, v);
		}
	} else if (m->ovfl) {
		for (int l = 0; l < WMMA_N; l++)
			h[l] = soft_f16_from_f32(
				f[l], SOFT_HALF_EVEN | SOFT_MODE_FP16_OVFL);
	} else {
		row_to_f16(f, h);
	}
}

/*
 * Any NaN becomes the default NaN: which came first depends on the processor.
 * A 16-bit result leaves the other half of its register as it was.
 */
ALWAYS void row_store(const struct wmma *m, int shift, float *f, uint32_t *d)
{
	const int32_t keep = shift ? 0xffff : (int32_t)0xffff0000;
	uint32_t h[WMMA_N];
	piece_i v, nan, old;

	EACH_PIECE(l)
	{
		PIECE_GET(v, f + l);
		nan = (v & 0x7fffffff) > (int32_t)F32_INF;
		v = piece_pick(nan, v - v + (int32_t)0xffc00000, v);
		if (m->acc == WMMA_F32)
			PIECE_PUT(d + l, v);
		else
			PIECE_PUT(f + l, v);
	}
	if (m->acc == WMMA_F32)
		return;
	row_narrow(m, f, h);
	EACH_PIECE(l)
	{
		PIECE_GET(v, h + l);
		PIECE_GET(old, d + l);
		v = (old & keep) | v << shift;
		PIECE_PUT(d + l, v);
	}
}

/* --------------------------------------------------------------- sums ---- */

/*
 * d[row] = c[row] + sum over k of a[k][row] * b[k], a row of 16 floats at a
 * time, with C and D in registers.  Many rows are in flight at once, because a
 * fused multiply-add takes four cycles.  False, with nothing written, if a sum
 * is a NaN and `nans` are not wanted.
 */
#define SUM_ROW(at, r) ((float *)soft_wmma_row(base, at, r, layout, false))
#if defined(__AVX512BW__)
ALWAYS bool add_products(const float (*a)[WMMA_N], const float (*b)[WMMA_N],
			 const uintptr_t *base, uintptr_t c, uintptr_t d,
			 enum wmma_layout layout, bool nans)
{
	__m512 acc[WMMA_N];
	__mmask16 nan = 0;

#pragma GCC unroll 16
	for (int r = 0; r < WMMA_N; r++)
		acc[r] = _mm512_loadu_ps(SUM_ROW(c, r));
	for (int k = 0; k < WMMA_N; k++) {
		__m512 row = _mm512_load_ps(b[k]);

#pragma GCC unroll 16
		for (int r = 0; r < WMMA_N; r++)
			acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(a[k][r]), row,
						 acc[r]);
	}
#pragma GCC unroll 8
	for (int r = 0; !nans && r < WMMA_N; r += 2)
		nan |= _mm512_cmp_ps_mask(acc[r], acc[r + 1], _CMP_UNORD_Q);
	if (nan)
		return false;
#pragma GCC unroll 16
	for (int r = 0; r < WMMA_N; r++)
		_mm512_storeu_ps(SUM_ROW(d, r), acc[r]);
	return true;
}
#elif defined(__FMA__)
/* Four rows; true if a sum is a NaN. */
ALWAYS bool four_sums(const float (*a)[WMMA_N], const float (*b)[WMMA_N],
		      const float *const c[4], float (*d)[WMMA_N])
{
	__m256 low[4], high[4], nan = _mm256_setzero_ps();

#pragma GCC unroll 4
	for (int r = 0; r < 4; r++) {
		low[r] = _mm256_loadu_ps(c[r]);
		high[r] = _mm256_loadu_ps(c[r] + 8);
	}
	for (int k = 0; k < WMMA_N; k++) {
		__m256 bl = _mm256_load_ps(b[k]), bh = _mm256_load_ps(b[k] + 8);

#pragma GCC unroll 4
		for (int r = 0; r < 4; r++) {
			__m256 s = _mm256_broadcast_ss(&a[k][r]);

			low[r] = _mm256_fmadd_ps(s, bl, low[r]);
			high[r] = _mm256_fmadd_ps(s, bh, high[r]);
		}
	}
#pragma GCC unroll 4
	for (int r = 0; r < 4; r++) {
		nan = _mm256_or_ps(
			nan, _mm256_cmp_ps(low[r], high[r], _CMP_UNORD_Q));
		_mm256_store_ps(d[r], low[r]);
		_mm256_store_ps(d[r] + 8, high[r]);
	}
	return _mm256_movemask_ps(nan);
}

ALWAYS bool add_products(const float (*a)[WMMA_N], const float (*b)[WMMA_N],
			 const uintptr_t *base, uintptr_t c, uintptr_t d,
			 enum wmma_layout layout, bool nans)
{
	_Alignas(64) float sum[WMMA_N][WMMA_N];
	bool nan = false;

	for (int r = 0; r < WMMA_N; r += 4) {
		const float *const row[] = { SUM_ROW(c, r), SUM_ROW(c, r + 1),
					     SUM_ROW(c, r + 2),
					     SUM_ROW(c, r + 3) };

		nan |= four_sums((const float(*)[WMMA_N]) & a[0][r], b, row,
				 sum + r);
	}
	if (nan && !nans)
		return false;
	for (int r = 0; r < WMMA_N; r++)
		memcpy(SUM_ROW(d, r), sum[r], sizeof(sum[r]));
	return true;
}
#else
/* The product of two halves fits a float, so that no fused step is needed. */
static void multiply_f16(const float (*a)[WMMA_N], const float (*b)[WMMA_N],
			 float (*c)[WMMA_N])
{
	for (int r = 0; r < WMMA_N; r++)
		for (int k = 0; k < WMMA_N; k++)
			for (int l = 0; l < WMMA_N; l++)
				c[r][l] += a[k][r] * b[k][l];
}

static void multiply_any(const float (*a)[WMMA_N], const float (*b)[WMMA_N],
			 float (*c)[WMMA_N])
{
	for (int r = 0; r < WMMA_N; r++)
		for (int k = 0; k < WMMA_N; k++)
			for (int l = 0; l < WMMA_N; l++)
				c[r][l] = __builtin_fmaf(a[k][r], b[k][l],
							 c[r][l]);
}
#endif

#if defined(__FMA__)
/* The same of sums in an array, which are as a wave32 of gfx11 has them; they
 * are written anyway. */
ALWAYS bool add_to_array(const float (*a)[WMMA_N], const float (*b)[WMMA_N],
			 float (*c)[WMMA_N], bool nans)
{
#if defined(__AVX512BW__)
	const uintptr_t none[2] = { 0 };

	return add_products(a, b, none, (uintptr_t)c, (uintptr_t)c, WMMA_GFX11,
			    nans);
#else
	bool nan = false;

	for (int r = 0; r < WMMA_N; r += 4) {
		const float *const row[] = { c[r], c[r + 1], c[r + 2],
					     c[r + 3] };

		nan |= four_sums((const float(*)[WMMA_N]) & a[0][r], b, row,
				 c + r);
	}
	return nans || !nan;
#endif
}
#endif

/* ------------------------------------------------------------ microops ---- */

#if defined(__AVX512BW__)
#define SOFT_WMMA_BYTES &SIMD(soft_wmma_bytes)
#else
#define SOFT_WMMA_BYTES NULL
#endif

#if defined(__AVX512BW__)
/* Two rows of halves, which alternate, as floats. */
static inline void rows_f16(const uint32_t *vreg, float (*f)[WMMA_N])
{
	const __m512i even_then_odd = _mm512_set_epi16(
		31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30,
		28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
	__m512i v = _mm512_maskz_permutexvar_epi16(~0u, even_then_odd,
						   _mm512_loadu_si512(vreg));
	__m256i even = _mm512_maskz_extracti64x4_epi64(0xf, v, 0);
	__m256i odd = _mm512_maskz_extracti64x4_epi64(0xf, v, 1);

	_mm512_store_ps(f[0], _mm512_maskz_cvtph_ps(ALL, even));
	_mm512_store_ps(f[1], _mm512_maskz_cvtph_ps(ALL, odd));
}

static inline void rows_bf16(const uint32_t *vreg, float (*f)[WMMA_N])
{
	const __m512i high = _mm512_set1_epi32((int)0xffff0000);
	__m512i v = _mm512_loadu_si512(vreg);

	_mm512_store_si512(f[0], _mm512_maskz_slli_epi32(ALL, v, 16));
	_mm512_store_si512(f[1], _mm512_and_si512(v, high));
}
#elif defined(__FMA__)
static inline void rows_f16(const uint32_t *vreg, float (*f)[WMMA_N])
{
	row_from_f16(vreg, 0, f[0]);
	row_from_f16(vreg, 16, f[1]);
}

static inline void rows_bf16(const uint32_t *vreg, float (*f)[WMMA_N])
{
	for (int l = 0; l < WMMA_N; l++) {
		f[0][l] = f32_value(vreg[l] << 16);
		f[1][l] = f32_value(vreg[l] & 0xffff0000);
	}
}
#endif

#if defined(__FMA__)
/* Fragments as floats, of eight words or of four. */
ALWAYS void from_halves(const struct soft_microop *m, const uintptr_t *base,
			enum wmma_layout layout, enum wmma_type in)
{
	float(*to)[WMMA_N] = (float(*)[WMMA_N])m->c;

	for (int q = 0; q < WMMA_N / 2; q++) {
		const uint32_t *word =
			soft_wmma_word(base, m->a, q, WMMA_N / 2, layout);

		if (in == WMMA_F16)
			rows_f16(word, to + 2 * q);
		else
			rows_bf16(word, to + 2 * q);
	}
}

ALWAYS void from_bytes(const struct soft_microop *m, const uintptr_t *base,
		       enum wmma_layout layout, enum wmma_type in)
{
	float(*to)[WMMA_N] = (float(*)[WMMA_N])m->c;

	for (int k = 0; k < WMMA_N; k++)
		row_load(in,
			 soft_wmma_word(base, m->a, k / 4, WMMA_N / 4, layout),
			 k % 4 * 8, to[k]);
}

/* Elements that are `bits` wide as pairs of halves; which ones are a pair is
 * the same in A and in B. */
ALWAYS void from_ints(const struct soft_microop *m, const uintptr_t *base,
		      enum wmma_layout layout, int bits, bool is_signed)
{
	uint32_t(*to)[WMMA_N] = (uint32_t(*)[WMMA_N])m->c;

	for (int k = 0; k < WMMA_PAIRS; k++) {
		const soft_piece *p = (const soft_piece *)soft_wmma_word(
			base, m->a, k * bits / 16, bits / 2, layout);

		for (int i = 0; i < ROW_PIECES; i++)
			((soft_piece *)to[k])[i] =
				(soft_piece)piece_elements(
					p[i], k * bits % 16, bits, is_signed);
	}
}

#define EACH_FROM(X) \
	X(f16, WMMA_FROM_F16, from_halves, WMMA_F16) \
	X(bf16, WMMA_FROM_BF16, from_halves, WMMA_BF16) \
	X(fp8, WMMA_FROM_FP8, from_bytes, WMMA_FP8) \
	X(bf8, WMMA_FROM_BF8, from_bytes, WMMA_BF8) \
	X(u8, WMMA_FROM_U8, from_ints, 8, false) \
	X(i8, WMMA_FROM_I8, from_ints, 8, true) \
	X(u4, WMMA_FROM_U4, from_ints, 4, false) \
	X(i4, WMMA_FROM_I4, from_ints, 4, true)
#define FROM_LAYOUT(layout, name, fn, ...) \
	static void microop_from_##name##_##layout( \
		struct soft_wave *w, const struct soft_microop *m, \
		const uintptr_t *base) \
	{ \
		fn(m, base, layout, __VA_ARGS__); \
		SOFT_NEXT(w, m, base); \
	}
#define FROM(name, from, ...) SOFT_WMMA_EACH(FROM_LAYOUT, name, __VA_ARGS__)
EACH_FROM(FROM)

/* Two rows of C that share their words, and of D. */
ALWAYS void pair_load(enum wmma_type acc, const uint32_t *u, float (*f)[WMMA_N])
{
	if (acc == WMMA_F16)
		rows_f16(u, f);
	else
		rows_bf16(u, f);
}

ALWAYS void pair_store(const struct wmma *x, float (*f)[WMMA_N], uint32_t *d)
{
	uint32_t h[2][WMMA_N];
	piece_i low, high;

	row_narrow(x, f[0], h[0]);
	row_narrow(x, f[1], h[1]);
	EACH_PIECE(l)
	{
		PIECE_GET(low, h[0] + l);
		PIECE_GET(high, h[1] + l);
		low |= high << 16;
		PIECE_PUT(d + l, low);
	}
}

/* False, with nothing written, if a sum is a NaN or overflows differently. */
ALWAYS bool wmma_floats(const struct soft_wave *w, const struct soft_microop *m,
			const uintptr_t *base, enum wmma_type acc,
			enum wmma_layout layout)
{
	const float(*a)[WMMA_N] = (const float(*)[WMMA_N])m->a;
	const float(*b)[WMMA_N] = (const float(*)[WMMA_N])m->b;
	const bool paired = soft_wmma_is_paired(layout, acc);
	const struct wmma x = { .acc = acc, .shift = (int)m->imm };
	_Alignas(64) float c[WMMA_N][WMMA_N];

	if (acc == WMMA_F32)
		return add_products(a, b, base, m->c, m->d, layout, false);
	for (int r = 0; r < WMMA_N; r += 1 + paired) {
		const uint32_t *u =
			soft_wmma_row(base, m->c, r, layout, paired);

		if (paired)
			pair_load(acc, u, c + r);
		else
			row_load(acc, u, x.shift, c[r]);
	}
	if ((acc == WMMA_F16 && soft_ovfl16(w->mode)) ||
	    !add_to_array(a, b, c, false))
		return false;
	for (int r = 0; r < WMMA_N; r += 1 + paired) {
		uint32_t *u = soft_wmma_row(base, m->d, r, layout, paired);

		if (paired)
			pair_store(&x, c + r, u);
		else
			row_store(&x, x.shift, c[r], u);
	}
	return true;
}

/* Four rows of a piece. */
ALWAYS void four_int_sums(const uint32_t (*a)[WMMA_N], const soft_piece *b,
			  const soft_piece *const c[4], soft_piece *const d[4])
{
	const piece_i none = { 0 };
	piece_u sum[4];

#pragma GCC unroll 4
	for (int r = 0; r < 4; r++)
		sum[r] = (piece_u)*c[r];
#pragma GCC unroll 8
	for (int k = 0; k < WMMA_PAIRS; k++)
#pragma GCC unroll 4
		for (int r = 0; r < 4; r++)
			sum[r] += (piece_u)piece_madd(
				(piece_h)(none + (int)a[k][r]),
				(piece_h)b[k * ROW_PIECES]);
#pragma GCC unroll 4
	for (int r = 0; r < 4; r++)
		*d[r] = (soft_piece)sum[r];
}

/* Integers, which wrap.  D may be C, or some rows of it, which are read first
 * then. */
ALWAYS bool wmma_ints(const struct soft_wave *w, const struct soft_microop *m,
		      const uintptr_t *base, enum wmma_type acc,
		      enum wmma_layout layout)
{
	const uint32_t(*a)[WMMA_N] = (const uint32_t(*)[WMMA_N])m->a;
	const soft_piece *b = (const soft_piece *)m->b;
	soft_piece all[WMMA_N][ROW_PIECES], *c[WMMA_N], *d[WMMA_N];

	(void)w, (void)acc;
	for (int r = 0; r < WMMA_N; r++) {
		c[r] = (soft_piece *)soft_wmma_row(base, m->c, r, layout,
						   false);
		d[r] = (soft_piece *)soft_wmma_row(base, m->d, r, layout,
						   false);
		if (m->c == m->d)
			continue;
		memcpy(all[r], c[r], sizeof(all[r]));
		c[r] = all[r];
	}
	for (int r = 0; r < WMMA_N; r += 4)
		for (int i = 0; i < ROW_PIECES; i++) {
			const soft_piece *const from[] = { c[r] + i,
							   c[r + 1] + i,
							   c[r + 2] + i,
							   c[r + 3] + i };
			soft_piece *const to[] = { d[r] + i, d[r + 1] + i,
						   d[r + 2] + i, d[r + 3] + i };

			four_int_sums((const uint32_t(*)[WMMA_N]) & a[0][r],
				      b + i, from, to);
		}
	return true;
}

/* What has locals in memory is a function of its own: a microop that had them
 * could not end by a jump. */
#define SUM_LAYOUT(layout, name, sums, acc) \
	static __attribute__((noinline)) bool run_##name##_##layout( \
		const struct soft_wave *w, const struct soft_microop *m, \
		const uintptr_t *base) \
	{ \
		return sums(w, m, base, acc, layout); \
	} \
	static void microop_##name##_##layout(struct soft_wave *w, \
					      const struct soft_microop *m, \
					      const uintptr_t *base) \
	{ \
		if (!run_##name##_##layout(w, m, base)) \
			m->u->fn(w, m->u); \
		SOFT_NEXT(w, m, base); \
	}
#define EACH_SUM(X) \
	X(f32, wmma_floats, WMMA_F32) \
	X(f16, wmma_floats, WMMA_F16) \
	X(bf16, wmma_floats, WMMA_BF16) X(i32, wmma_ints, WMMA_IU8)
#define SUM(...) SOFT_WMMA_EACH(SUM_LAYOUT, __VA_ARGS__)
EACH_SUM(SUM)

#define NAMED(layout, name) [layout] = microop_##name##_##layout,
#define FROM_ROW(name, from, ...) \
	[from] = { SOFT_WMMA_EACH(NAMED, from_##name) },
#define SUM_ROW_OF(name, sums, acc) [acc] = { SOFT_WMMA_EACH(NAMED, name) },
const struct soft_wmma_microops SIMD(soft_wmma_microops) = {
	.from = { EACH_FROM(FROM_ROW) },
	.sum = { EACH_SUM(SUM_ROW_OF)[WMMA_IU4] = { SOFT_WMMA_EACH(NAMED,
								   i32) } },
	.bytes = SOFT_WMMA_BYTES,
};
#else
const struct soft_wmma_microops SIMD(soft_wmma_microops) = {
	.bytes = SOFT_WMMA_BYTES,
};
#endif

/* ----------------------------------------------------------- any float ---- */

ALWAYS void load_rows(enum wmma_type in, const uint32_t *const *word,
		      const uint32_t neg[2], float (*f)[WMMA_N])
{
	const int bits = in <= WMMA_BF16 ? 16 : 8;

	for (int k = 0; k < WMMA_N; k++) {
		row_load(in, word[k * bits / 32], k * bits % 32, f[k]);
		if (neg[k % 2])
			row_mods(f[k], ~0u, neg[k % 2]);
	}
}

/* Each type has its own loop. */
static void load_fragment(enum wmma_type in, const uint32_t *const *word,
			  const uint32_t neg[2], float (*f)[WMMA_N])
{
	switch (in) {
	case WMMA_F16:
		load_rows(WMMA_F16, word, neg, f);
		return;
	case WMMA_BF16:
		load_rows(WMMA_BF16, word, neg, f);
		return;
	case WMMA_FP8:
		load_rows(WMMA_FP8, word, neg, f);
		return;
	default:
		load_rows(WMMA_BF8, word, neg, f);
	}
}

ALWAYS void load_sums(const struct wmma *m, enum wmma_type acc, bool paired,
		      float (*c)[WMMA_N])
{
	for (int r = 0; r < WMMA_N; r++) {
		row_load(acc, m->c[r], paired ? r % 2 * 16 : m->shift, c[r]);
		if (m->c_flip || ~m->c_keep)
			row_mods(c[r], m->c_keep, m->c_flip);
	}
}

void SIMD(soft_wmma_float)(struct wmma *m)
{
	_Alignas(64) float a[WMMA_N][WMMA_N], b[WMMA_N][WMMA_N];
	_Alignas(64) float c[WMMA_N][WMMA_N]; /* a, b: [k][row or column] */
	load_fragment(m->in, m->a, m->neg_a, a);
	load_fragment(m->in_b, m->b, m->neg_b, b);
	if (m->acc == WMMA_F32)
		load_sums(m, WMMA_F32, false, c);
	else if (m->paired)
		load_sums(m, m->acc, true, c);
	else
		load_sums(m, m->acc, false, c);
#if defined(__FMA__)
	add_to_array(a, b, c, true);
#else
	(m->in == WMMA_F16 ? multiply_f16 : multiply_any)(a, b, c);
#endif
	for (int r = 0; r < WMMA_N; r++)
		row_store(m, m->paired ? r % 2 * 16 : m->shift, c[r], m->d[r]);
}

/* ------------------------------------------------------------- integer ---- */

/* Element k of 16 lanes, from registers that hold 32 / bits of them. */
static inline void extract_ints(const uint32_t *const *word, int bits, int k,
				bool is_signed, int32_t *out)
{
	int up = 32 - bits - k * bits % 32, down = 32 - bits;
	piece_i v;

	EACH_PIECE(l)
	{
		PIECE_GET(v, word[k * bits / 32] + l);
		v <<= up;
		v = is_signed ? v >> down : (v >> down) & ((1 << bits) - 1);
		PIECE_PUT(out + l, v);
	}
}

/* 16 products of at most 16 bits fit an int; only C can make it overflow. */
void SIMD(soft_wmma_int)(struct wmma *m)
{
	_Alignas(64) int32_t a[WMMA_N][WMMA_N], b[WMMA_N][WMMA_N], sum[WMMA_N];
	uint32_t c[WMMA_N][WMMA_N]; /* D may be some rows of C */
	int bits = m->in == WMMA_IU8 ? 8 : 4;

	for (int k = 0; k < WMMA_N; k++) {
		extract_ints(m->a, bits, k, m->signed_a, a[k]);
		extract_ints(m->b, bits, k, m->signed_b, b[k]);
	}
	for (int r = 0; r < WMMA_N; r++)
		memcpy(c[r], m->c[r], sizeof(c[r]));
	for (int r = 0; r < WMMA_N; r++) {
		EACH_PIECE(l)
		{
			piece_i acc = { 0 }, row;

			for (int k = 0; k < WMMA_N; k++) {
				PIECE_GET(row, b[k] + l);
				acc += row * a[k][r];
			}
			PIECE_PUT(sum + l, acc);
		}
		for (int l = 0; l < WMMA_N; l++)
			m->d[r][l] = mad_i32(sum[l], c[r][l], m->clamp);
	}
}
