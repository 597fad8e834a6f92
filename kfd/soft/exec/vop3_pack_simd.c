/*
 * kfd/soft/exec/vop3_pack_simd.c - VOP3P rows of vop3.def (group PACK): packed
 * math, dot products, mixed precision.
 */
#define IF_PACK(...) __VA_ARGS__
#include <xmmintrin.h>

#include "kfd/soft/exec/valu_dot2.h"
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

/* ------------------------------------------------------- packed halves ---- */

#define PACKED(name, one, op) \
	static inline soft_piece name##_piece(const struct soft_lanes *x, \
					      soft_piece a, soft_piece b, \
					      soft_piece c, soft_piece *odd) \
	{ \
		const struct piece_pair p = piece_widen(a); \
		const struct piece_pair q = piece_widen(b); \
		const piece_f first = p.first op q.first; \
		const piece_f last = p.last op q.last; \
\
		(void)c; \
		*odd |= piece_nan(first, last) | odd_mode16(x); \
		return piece_narrow(first, last); \
	} \
	static __attribute__((noinline)) void name##_lanes( \
		struct soft_lanes *x) \
	{ \
		const uint32_t *a = x->a, *b = x->b; \
\
		LANES(i) \
		x->d[i] = pack_16(one(a[i] << 16, b[i] << 16, x->mode), \
				  one(a[i] & 0xffff0000, b[i] & 0xffff0000, \
				      x->mode)); \
	}
PACKED(pk_add_f16, add_f16, +)
PACKED(pk_mul_f16, mul_f16, *)
#undef PACKED

/* Halves as integers in the same order; and back. */
static inline piece_h in_order16(piece_h h)
{
	return h ^ (h >> 15 & 0x7fff);
}

#define EXTREME(name, one, relation) \
	static inline soft_piece name##_piece(const struct soft_lanes *x, \
					      soft_piece a, soft_piece b, \
					      soft_piece c, soft_piece *odd) \
	{ \
		const piece_h p = in_order16((piece_h)a); \
		const piece_h q = in_order16((piece_h)b); \
		const piece_h pick = p relation q; \
\
		(void)x, (void)c; \
		*odd |= (soft_piece)((((piece_h)a & 0x7fff) > 0x7c00) | \
				     (((piece_h)b & 0x7fff) > 0x7c00)); \
		return (soft_piece)in_order16((p & pick) | (q & ~pick)); \
	} \
	static __attribute__((noinline)) void name##_lanes( \
		struct soft_lanes *x) \
	{ \
		const uint32_t *a = x->a, *b = x->b; \
		const bool ieee = x->mode & SOFT_MODE_IEEE; \
\
		LANES(i) \
		x->d[i] = pack_16(one(a[i] << 16, b[i] << 16, ieee, F16_INF) \
					  >> 16, \
				  one(a[i] & 0xffff0000, b[i] & 0xffff0000, \
				      ieee, F16_INF) >> 16); \
	}
EXTREME(pk_min_f16, min_any, <)
EXTREME(pk_max_f16, max_any, >)
#undef EXTREME

/* -------------------------------------------------------- dot products ---- */

/* neg_lo of a source makes its elements signed. */
static inline int32_t int_element(uint32_t u, int j, int bits, bool is_signed)
{
	uint32_t v = u << (32 - bits - j);

	return is_signed ? (int32_t)v >> (32 - bits)
			 : (int32_t)(v >> (32 - bits));
}

static inline int32_t dot_any(uint32_t a, uint32_t b, int bits, bool sa,
			      bool sb)
{
	int32_t sum = 0;

	for (int j = 0; j < 32; j += bits)
		sum += int_element(a, j, bits, sa) *
		       int_element(b, j, bits, sb);
	return sum;
}

static inline soft_piece dot_piece(soft_piece a, soft_piece b, soft_piece c,
				   int bits, bool sa, bool sb)
{
	piece_u sum = (piece_u)c; /* it wraps */

#pragma GCC unroll 4
	for (int j = 0; j < 16; j += bits)
		sum += (piece_u)piece_madd(piece_elements(a, j, bits, sa),
					   piece_elements(b, j, bits, sb));
	return (soft_piece)sum;
}

/* Sums are exact but for the last one, which clamp saturates. */
#define DOT(name, bits, sa, sb, last) \
	static inline soft_piece name##_piece(const struct soft_lanes *x, \
					      soft_piece a, soft_piece b, \
					      soft_piece c, soft_piece *odd) \
	{ \
		*odd |= piece_all(x->clamp); \
		return dot_piece(a, b, c, bits, sa, sb); \
	} \
	static __attribute__((noinline)) void name##_lanes( \
		struct soft_lanes *x) \
	{ \
		OPERANDS; \
\
		LANES(i) \
		pd[i] = last(dot_any(pa[i], pb[i], bits, sa, sb), pc[i], \
			     clamp); \
	}
#define SIGNED(k) (x->mods[k] & ISA_M_NEG)
DOT(dot4_i32_iu8, 8, SIGNED(0), SIGNED(1), mad_i32)
DOT(dot8_i32_iu4, 4, SIGNED(0), SIGNED(1), mad_i32)
DOT(dot4_i32_i8, 8, true, true, mad_i32)
DOT(dot8_i32_i4, 4, true, true, mad_i32)
DOT(dot4_u32_u8, 8, false, false, mad_u32)
DOT(dot8_u32_u4, 4, false, false, mad_u32)
#undef SIGNED
#undef DOT

/* ----------------------------------------------------- mixed precision ---- */

/*
 * One source of fma_mix: f32, or with op_sel_hi the half that op_sel names.
 * The operands come raw, so denormals are treated here; as floats, those of
 * halves are below 2^-14.
 */
static inline void mix_source(const uint32_t *p, unsigned mods, uint32_t mode,
			      float *f)
{
	const bool is_half = mods & ISA_M_HI_HI;
	const bool keep = mode & (is_half ? 1 << 6 : 1 << 4);
	const uint32_t least = keep ? 0 : is_half ? 113u << 23 : 1u << 23;
	const uint32_t mask = mods & ISA_M_ABS ? 0x7fffffff : ~0u;
	const uint32_t flip = mods & ISA_M_NEG ? 0x80000000 : 0;

	if (is_half)
		soft_floats_from_f16(p, mods & ISA_M_HI ? 16 : 0, f);
	else
		memcpy(f, p, SOFT_LANES * sizeof(*f));
	LANES(i)
	{
		const uint32_t half = mods & ISA_M_HI ? p[i] >> 16 : p[i];
		uint32_t u = f32_bits(f[i]);

		u = is_half ? soft_keep_signal16(u, half) : u;
		u = (u & 0x7fffffff) < least ? u & 0x80000000 : u;
		f[i] = f32_value((u & mask) ^ flip);
	}
}

static __attribute__((noinline)) void
fma_mix_f32_lanes(struct soft_lanes *x)
{
	float a[SOFT_LANES], b[SOFT_LANES], c[SOFT_LANES];
	uint32_t *d = x->d, nan = 0;

	mix_source(x->a, x->mods[0], x->mode, a);
	mix_source(x->b, x->mods[1], x->mode, b);
	mix_source(x->c, x->mods[2], x->mode, c);
	LANES(i)
	{
		const float f = __builtin_fmaf(a[i], b[i], c[i]);

		d[i] = f32_bits(f);
		nan |= f != f;
	}
	if (nan)
		LANES(i)
	d[i] = fma_f32(a[i], b[i], c[i], x->mode & SOFT_MODE_IEEE);
}

/* Terms that cancel give -0 if MODE rounds down. */
static inline double exact_zero(double p, double c, unsigned round)
{
	const bool neg = (f64_bits(p) | f64_bits(c)) & F64_SIGN;

	return round == 2 && neg ? -0.0 : p + c;
}

/*
 * a * b + c in double, the last bit set where something is lost, so that the
 * rounding to a half is that of the exact sum (Boldo and Melquiond, "Emulation
 * of a FMA", 2008).  The product is exact.
 */
static inline double fma_to_odd(float a, float b, float c, unsigned round)
{
	const double p = (double)a * b, s = p + c, t = s - p;
	const double lost = (p - (s - t)) + (c - t);
	uint64_t u = f64_bits(s);

	if (s == 0)
		return exact_zero(p, c, round);
	if (!(s - s == 0) || lost == 0 || u & 1)
		return s;
	return f64_value((lost > 0) == (s > 0) ? u + 1 : u - 1);
}

static inline uint32_t mix_f16(float a, float b, float c, uint32_t mode)
{
	const float p = a * b;
	const uint32_t r = soft_f16_from_f64(
		fma_to_odd(a, b, c, soft_round16(mode)), mode);
	const uint32_t nan =
		nan_fma(SOFT_NAN32, f32_bits(a), f32_bits(b), f32_bits(c),
			p != p, true, F32_INF);

	return (r & 0x7fff) > 0x7c00 ? soft_f16_from_bits(nan, mode) : r;
}

/*
 * By way of f32, as long as that is no tie of halves, which the first rounding
 * may have made; those of denormal halves are elsewhere.  False: it is not so
 * in some lane, or one is a NaN.
 */
static bool mix_by_f32(const float *a, const float *b, const float *c,
		       uint32_t *d)
{
	float f[SOFT_LANES];
	uint32_t bad = 0;

	LANES(i)
	{
		const uint32_t u = f32_bits(f[i] = __builtin_fmaf(a[i], b[i],
								  c[i]));
		const uint32_t m = u & 0x7fffffff;

		bad |= (u & 0x1fff) == 0x1000;
		bad |= (m < 113u << 23) & (m != 0);
		bad |= m > F32_INF;
	}
	if (bad)
		return false;
	soft_f16_from_floats(f, SOFT_HALF_EVEN, d);
	return true;
}

/*
 * The sum is rounded once, as MODE's f16 field says (measured on gfx1100: AMD,
 * rocjitsu's fma_mix_half_cases).
 */
static __attribute__((noinline)) void
fma_mix_f16_lanes(struct soft_lanes *x)
{
	float a[SOFT_LANES], b[SOFT_LANES], c[SOFT_LANES];
	uint32_t *d = x->d;

	mix_source(x->a, x->mods[0], x->mode, a);
	mix_source(x->b, x->mods[1], x->mode, b);
	mix_source(x->c, x->mods[2], x->mode, c);
	if (soft_plain16(x->mode) && mix_by_f32(a, b, c, d))
		return;
	LANES(i) d[i] = mix_f16(a[i], b[i], c[i], x->mode);
}

/* The same of a piece, where denormals are kept: a source as it counts. */
static inline piece_f mix_piece(soft_piece p, unsigned mods)
{
	const piece_i mask = (piece_i)piece_all(true) &
			     (mods & ISA_M_ABS ? 0x7fffffff : -1);
	const int flip = mods & ISA_M_NEG ? (int)0x80000000 : 0;

	if (mods & ISA_M_HI_HI)
		p = (soft_piece)piece_half(mods & ISA_M_HI ? p >> 16 : p);
	return (piece_f)(((piece_i)p & mask) ^ flip);
}

static inline piece_f mix_sum(const struct soft_lanes *x, soft_piece a,
			      soft_piece b, soft_piece c, soft_piece *odd)
{
	const piece_f f = piece_fma(mix_piece(a, x->mods[0]),
				    mix_piece(b, x->mods[1]),
				    mix_piece(c, x->mods[2]));

	*odd |= (soft_piece)(f != f) | piece_all((x->mode & 0x50) != 0x50);
	return f;
}

static inline soft_piece fma_mix_f32_piece(const struct soft_lanes *x,
					   soft_piece a, soft_piece b,
					   soft_piece c, soft_piece *odd)
{
	return (soft_piece)mix_sum(x, a, b, c, odd);
}

/* By way of f32, as in mix_by_f32(). */
static inline soft_piece fma_mix_f16_piece(const struct soft_lanes *x,
					   soft_piece a, soft_piece b,
					   soft_piece c, soft_piece *odd)
{
	const piece_f f = mix_sum(x, a, b, c, odd);
	const piece_i u = (piece_i)f, m = u & 0x7fffffff;

	*odd |= (soft_piece)(((u & 0x1fff) == 0x1000) |
			     ((m < 113 << 23) & (m != 0))) |
		odd_mode16(x);
	return (soft_piece)piece_to_half(f);
}

/* -------------------------------------------------------- rows by kind ---- */

/*
 * A row of pairs is a function of one half, and a loop that calls it for both.
 * v_pk_add_i16 (kind PU2) becomes
 *
 *	static inline uint32_t half_v_pk_add_i16(const struct soft_lanes *x,
 *						 uint32_t a, uint32_t b,
 *						 uint32_t c, bool clamp,
 *						 bool ieee)
 *	{
 *		return (uint32_t)(sat_i16((int64_t)sext_16(a) + sext_16(b),
 *					  clamp));
 *	}
 *
 * and in soft_v_pk_add_i16_v3(), for each lane,
 *
 *	const uint32_t a = pa[i], b = pb[i], c = 0;
 *
 *	pd[i] = pack_16(half_v_pk_add_i16(x, a & 0xffff, b & 0xffff, c & 0xffff,
 *				       clamp, ieee),
 *		     half_v_pk_add_i16(x, a >> 16, b >> 16, c >> 16,
 *				       clamp, ieee));
 *
 * `low` and `high` move a half to where the expression wants it (PU_LOW and so
 * on), `third` is c: 0 for rows of two sources.
 */
#define HALF_EXPR(type, name, ...)                              \
	static inline uint32_t half_##name(const struct soft_lanes *x, \
					   type a, type b, type c, \
					   bool clamp, bool ieee) \
	{                                                        \
		(void)x, (void)a, (void)b, (void)c;              \
		(void)clamp, (void)ieee;                         \
		return (uint32_t)(__VA_ARGS__);                         \
	}
/* Both halves, moved to bits 15:0. */
#define BOTH_HALVES(name, low, high, third)                              \
	LANE_FN(name)                                                        \
	{                                                                \
		OPERANDS;                                               \
		LANES(i)                                                 \
		{                                                        \
			const uint32_t a = pa[i], b = pb[i], c = third;  \
			pd[i] = pack_16(half_##name(x, low(a), low(b), low(c), \
						 clamp, ieee),           \
				     half_##name(x, high(a), high(b), high(c), \
						 clamp, ieee));          \
		}                                                        \
	}                                                                \
	MICROOP_WORD(name,                                                  \
		  const uint32_t a = pa[i]; const uint32_t b = pb[i];    \
		  const uint32_t c = third,                              \
		  pack_16(half_##name(x, low(a), low(b), low(c), clamp, ieee), \
		       half_##name(x, high(a), high(b), high(c), clamp,  \
				   ieee)))
#define PU_LOW(u) ((u) & 0xffff)
#define PU_HIGH(u) ((u) >> 16)
#define KIND_PU2(name, ...)             \
	HALF_EXPR(uint32_t, name, __VA_ARGS__) \
	BOTH_HALVES(name, PU_LOW, PU_HIGH, 0)
#define KIND_PU3(name, ...)             \
	HALF_EXPR(uint32_t, name, __VA_ARGS__) \
	BOTH_HALVES(name, PU_LOW, PU_HIGH, pc[i])

#include "kfd/soft/exec/vop3.def"
