/*
 * kfd/soft/exec/valu_piece.h - rows of the tables that are written for pieces
 * of a vreg.
 *
 * Private to the _simd.c files.  gcc makes poor code of long loops over lanes
 * that mix halves, bytes and words.  A row of kind PIECE is a function of
 * pieces instead, as wide as the host's registers:
 *
 *	static inline soft_piece NAME_piece(const struct soft_lanes *x,
 *					    soft_piece a, soft_piece b,
 *					    soft_piece c, soft_piece *odd);
 *
 * It ors into *odd where it cannot say what the result is.  If any bit there is
 * set the whole vreg is made by NAME_lanes(x), which can everything.
 */
#ifndef T0_KFD_SOFT_VALU_PIECE_H
#define T0_KFD_SOFT_VALU_PIECE_H

#include "kfd/soft/exec/valu_half.h"
#include "kfd/soft/exec/valu_microop.h"

typedef int32_t piece_i __attribute__((vector_size(SOFT_PIECE_BYTES)));
typedef uint32_t piece_u __attribute__((vector_size(SOFT_PIECE_BYTES)));
typedef float piece_f __attribute__((vector_size(SOFT_PIECE_BYTES)));
typedef int16_t piece_h __attribute__((vector_size(SOFT_PIECE_BYTES)));

/* a where mask m is -1, b where it is 0. */
static inline piece_i piece_pick(piece_i m, piece_i a, piece_i b)
{
	return (a & m) | (b & ~m);
}

/* All bits, or none. */
static inline soft_piece piece_all(bool yes)
{
	const soft_piece none = { 0 };

	return none - (uint32_t)yes;
}

static inline bool piece_any(piece_i m)
{
#if defined(__AVX512F__)
	return _mm512_test_epi32_mask((__m512i)m, (__m512i)m);
#elif defined(__AVX__)
	return !_mm256_testz_si256((__m256i)m, (__m256i)m);
#else
	return _mm_movemask_epi8(_mm_cmpeq_epi8((__m128i)m,
						_mm_setzero_si128())) !=
	       0xffff;
#endif
}

/* Products of halves as integers; those of a word are added. */
static inline piece_i piece_madd(piece_h a, piece_h b)
{
#if defined(__AVX512BW__)
	return (piece_i)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
	return (piece_i)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
	return (piece_i)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}

/* Element j of each half of a word, as a half. */
static inline piece_h piece_elements(soft_piece p, int j, int bits,
				    bool is_signed)
{
	typedef uint16_t half_u __attribute__((vector_size(SOFT_PIECE_BYTES)));
	const int up = 16 - bits - j, down = 16 - bits;

	return is_signed ? (piece_h)p << up >> down :
			   (piece_h)((half_u)p << up >> down);
}

/* Bits moved to the left, or to the right where `by` is below 0; by 31 at most
 * counts. */
static inline piece_i piece_shift(piece_i v, piece_i by)
{
#if defined(__AVX512F__)
	return (piece_i)_mm512_or_si512(
		_mm512_sllv_epi32((__m512i)v, (__m512i)by),
		_mm512_srlv_epi32((__m512i)v, (__m512i)-by));
#elif defined(__AVX2__)
	return (piece_i)_mm256_or_si256(
		_mm256_sllv_epi32((__m256i)v, (__m256i)by),
		_mm256_srlv_epi32((__m256i)v, (__m256i)-by));
#else
	piece_i r;

	for (size_t i = 0; i < SOFT_PIECE_BYTES / sizeof(r[0]); i++) {
		uint64_t u = (uint32_t)v[i];

		r[i] = by[i] > 31 || by[i] < -31 ? 0 :
		       by[i] < 0 ? (int32_t)(u >> -by[i]) :
				   (int32_t)(u << by[i]);
	}
	return r;
#endif
}

/* ------------------------------------------------------- packed halves ---- */

/* Halves of a piece as floats: its first ones and its last ones, in order. */
struct piece_pair {
	piece_f first, last;
};

#if defined(__AVX512F__)
/* The maskz forms, since GCC 12 warns about its own plain ones. */
static inline struct piece_pair piece_widen(soft_piece p)
{
	__m256i a = _mm512_castsi512_si256((__m512i)p);
	__m256i b = _mm512_maskz_extracti64x4_epi64(0xf, (__m512i)p, 1);

	return (struct piece_pair){ (piece_f)_mm512_maskz_cvtph_ps(0xffff, a),
				    (piece_f)_mm512_maskz_cvtph_ps(0xffff, b) };
}

static inline soft_piece piece_narrow(piece_f first, piece_f last)
{
	__m256i a = _mm512_maskz_cvtps_ph(0xffff, (__m512)first,
					  _MM_FROUND_TO_NEAREST_INT);
	__m256i b = _mm512_maskz_cvtps_ph(0xffff, (__m512)last,
					  _MM_FROUND_TO_NEAREST_INT);

	return (soft_piece)_mm512_maskz_inserti64x4(
		0xff, _mm512_castsi256_si512(a), b, 1);
}
#elif defined(__F16C__)
static inline struct piece_pair piece_widen(soft_piece p)
{
	__m128i a = _mm256_castsi256_si128((__m256i)p);
	__m128i b = _mm256_extracti128_si256((__m256i)p, 1);

	return (struct piece_pair){ (piece_f)_mm256_cvtph_ps(a),
				    (piece_f)_mm256_cvtph_ps(b) };
}

static inline soft_piece piece_narrow(piece_f first, piece_f last)
{
	__m128i a = _mm256_cvtps_ph((__m256)first, _MM_FROUND_TO_NEAREST_INT);
	__m128i b = _mm256_cvtps_ph((__m256)last, _MM_FROUND_TO_NEAREST_INT);

	return (soft_piece)_mm256_inserti128_si256(_mm256_castsi128_si256(a), b,
						   1);
}
#else
static inline struct piece_pair piece_widen(soft_piece p)
{
	struct piece_pair r;
	uint16_t h[SOFT_PIECE_BYTES / 2];

	memcpy(h, &p, sizeof(h));
	for (size_t i = 0; i < ARRAY_SIZE(h) / 2; i++) {
		r.first[i] = soft_f32_from_f16(h[i]);
		r.last[i] = soft_f32_from_f16(h[ARRAY_SIZE(h) / 2 + i]);
	}
	return r;
}

static inline soft_piece piece_narrow(piece_f first, piece_f last)
{
	uint16_t h[SOFT_PIECE_BYTES / 2];
	soft_piece p;

	for (size_t i = 0; i < ARRAY_SIZE(h) / 2; i++) {
		h[i] = (uint16_t)soft_f16_from_f32(first[i], SOFT_HALF_EVEN);
		h[ARRAY_SIZE(h) / 2 + i] =
			(uint16_t)soft_f16_from_f32(last[i], SOFT_HALF_EVEN);
	}
	memcpy(&p, h, sizeof(h));
	return p;
}
#endif

/* Bits 15:0 of each word as a half, and a float rounded to one. */
#if defined(__AVX512F__)
static inline piece_f piece_half(soft_piece p)
{
	return (piece_f)_mm512_maskz_cvtph_ps(
		0xffff, _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)p));
}

static inline piece_i piece_to_half(piece_f f)
{
	return (piece_i)_mm512_maskz_cvtepu16_epi32(
		0xffff, _mm512_maskz_cvtps_ph(0xffff, (__m512)f,
					      _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__F16C__)
static inline piece_f piece_half(soft_piece p)
{
	const __m256i h = (__m256i)(p & 0xffff);

	return (piece_f)_mm256_cvtph_ps(
		_mm_packus_epi32(_mm256_castsi256_si128(h),
				 _mm256_extracti128_si256(h, 1)));
}

static inline piece_i piece_to_half(piece_f f)
{
	return (piece_i)_mm256_cvtepu16_epi32(
		_mm256_cvtps_ph((__m256)f, _MM_FROUND_TO_NEAREST_INT));
}
#else
static inline piece_f piece_half(soft_piece p)
{
	piece_f f;

	for (size_t i = 0; i < SOFT_PIECE_BYTES / sizeof(f[0]); i++)
		f[i] = soft_f32_from_f16(p[i] & 0xffff);
	return f;
}

static inline piece_i piece_to_half(piece_f f)
{
	piece_i h;

	for (size_t i = 0; i < SOFT_PIECE_BYTES / sizeof(h[0]); i++)
		h[i] = (int32_t)soft_f16_from_f32(f[i], SOFT_HALF_EVEN);
	return h;
}
#endif

/* a * b + c, rounded once. */
static inline piece_f piece_fma(piece_f a, piece_f b, piece_f c)
{
#if defined(__AVX512F__)
	return (piece_f)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
	return (piece_f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
	piece_f f;

	for (size_t i = 0; i < SOFT_PIECE_BYTES / sizeof(f[0]); i++)
		f[i] = __builtin_fmaf(a[i], b[i], c[i]);
	return f;
#endif
}

/* Where one of two floats is no number. */
static inline soft_piece piece_nan(piece_f a, piece_f b)
{
	return (soft_piece)((a != a) | (b != b));
}

/* a * b + c of halves, rounded to odd: soft_fma_odd(). */
static inline piece_f piece_fma_odd(piece_f a, piece_f b, piece_f c)
{
	const piece_f p = a * b, s = p + c, back = s - p;
	const piece_f e = (p - (s - back)) + (c - back);
	const piece_i u = (piece_i)s, inexact = (e < 0) | (e > 0);
	const piece_i away = ((e > 0) ^ (s > 0)) | 1;

	return (piece_f)(u + (away & inexact & -(~u & 1)));
}

/*
 * a * b + c of halves as a float that may be rounded to half.  That of a fused
 * step may be, unless it is a tie of halves, which the first rounding may have
 * made, or below 2^-14, where ties are elsewhere.
 */
static inline piece_f piece_fma16(piece_f a, piece_f b, piece_f c)
{
#if defined(__AVX512F__)
	piece_f f = (piece_f)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
	piece_f f = (piece_f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
#if defined(__FMA__)
	const piece_i u = (piece_i)f, size = u & 0x7fffffff;

	if (!piece_any(((u & 0x1fff) == 0x1000) |
		       ((size < 113 << 23) & (size != 0))))
		return f;
#endif
	return piece_fma_odd(a, b, c);
}

/* Not in modes that round, overflow or underflow in other ways. */
static inline soft_piece odd_mode16(const struct soft_lanes *x)
{
	return piece_all(!soft_plain16(x->mode) || soft_flushes16(x->mode));
}

static inline soft_piece pk_fma_f16_piece(const struct soft_lanes *x,
					  soft_piece a, soft_piece b,
					  soft_piece c, soft_piece *odd)
{
	const struct piece_pair p = piece_widen(a), q = piece_widen(b);
	const struct piece_pair r = piece_widen(c);
	const piece_f first = piece_fma16(p.first, q.first, r.first);
	const piece_f last = piece_fma16(p.last, q.last, r.last);

	*odd |= piece_nan(first, last) | odd_mode16(x);
	return piece_narrow(first, last);
}

/* --------------------------------------------------------------- kinds ---- */

#define PIECE_LOOP(name, x, from_a, from_b, from_c, to, odd) \
	_Pragma("GCC unroll 8") for (int i_ = 0; i_ < SOFT_PIECES; i_++) \
		to[i_] = name##_piece(x, ((const soft_piece *)from_a)[i_], \
				      ((const soft_piece *)from_b)[i_], \
				      ((const soft_piece *)from_c)[i_], &odd)

/* Of rows with fewer sources some lanes are read in the place of others. */
#define KIND_PIECE(name, fn) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		soft_piece odd = { 0 }; \
		soft_piece r[SOFT_PIECES]; \
\
		PIECE_LOOP(fn, x, pa, pb, pc, r, odd); \
		if (__builtin_expect(piece_any((piece_i)odd), 0)) { \
			fn##_lanes(x); \
			return; \
		} \
		for (int i = 0; i < SOFT_PIECES; i++) \
			((soft_piece *)pd)[i] = r[i]; \
	} \
	MICROOP_PIECE(name, fn)

#define MICROOP_PIECE(name, fn) \
	MICROOP_FN(name) \
	{ \
		MICROOP_OPERANDS; \
		soft_piece odd = { 0 }; \
		soft_piece r[SOFT_PIECES]; \
\
		PIECE_LOOP(fn, x, pa, pb, pc, r, odd); \
		if (__builtin_expect(piece_any((piece_i)odd), 0)) \
			soft_microop_fall_back(w, m); \
		else \
			soft_put_vreg(pd, (const uint32_t *)r, exec); \
		SOFT_NEXT(w, m, base); \
	}

#endif
