/*
 * kfd/soft/exec/vop3_pack_simd.c - VOP3P rows of vop3.def (group PACK): packed
 * math, dot products, mixed precision.
 */
#define IF_PACK(...) __VA_ARGS__
#include <xmmintrin.h>

#include "kfd/soft/exec/valu_dot2.h"
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

/* ------------------------------------------------------------- helpers ---- */

static inline uint32_t dot4_u8(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (int j = 0; j < 32; j += 8)
		sum += (a >> j & 0xff) * (b >> j & 0xff);
	return sum;
}

static inline uint32_t dot8_u4(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (int j = 0; j < 32; j += 4)
		sum += (a >> j & 15) * (b >> j & 15);
	return sum;
}

/* ------------------------------------------------------- packed halves ---- */

/* One half of sums or products; false if some lane is a NaN. */
static inline bool arith_f16_vreg(const uint32_t *a, const uint32_t *b,
				  int shift, bool multiply, uint32_t *d)
{
	float fa[SOFT_LANES], fb[SOFT_LANES], fr[SOFT_LANES];
	uint32_t bad = 0;

	soft_floats_from_f16(a, shift, fa);
	soft_floats_from_f16(b, shift, fb);
	if (multiply)
		LANES(i) fr[i] = fa[i] * fb[i];
	else
		LANES(i) fr[i] = fa[i] + fb[i];
	LANES(i) bad |= fr[i] != fr[i];
	soft_f16_from_floats(fr, 0, false, d);
	return !bad;
}

static inline bool arith_pk_f16(struct soft_lanes *x, bool multiply)
{
	OPERANDS;
	uint32_t low[SOFT_LANES], high[SOFT_LANES];

	if (!soft_plain16(x->mode) ||
	    !arith_f16_vreg(pa, pb, 0, multiply, low) ||
	    !arith_f16_vreg(pa, pb, 16, multiply, high))
		return false;
	LANES(i) pd[i] = low[i] | high[i] << 16;
	return true;
}

static void pk_add_f16_lanes(struct soft_lanes *x)
{
	OPERANDS;

	if (arith_pk_f16(x, false))
		return;
	LANES(i)
	pd[i] = pack_16(add_f16(pa[i] << 16, pb[i] << 16, x->mode),
		     add_f16(pa[i] & 0xffff0000, pb[i] & 0xffff0000, x->mode));
}

static void pk_mul_f16_lanes(struct soft_lanes *x)
{
	OPERANDS;

	if (arith_pk_f16(x, true))
		return;
	LANES(i)
	pd[i] = pack_16(mul_f16(pa[i] << 16, pb[i] << 16, x->mode),
		     mul_f16(pa[i] & 0xffff0000, pb[i] & 0xffff0000, x->mode));
}

/* -------------------------------------------------------- dot products ---- */

/* neg_lo of a source makes its elements signed. */
static inline int32_t int_element(uint32_t u, int j, int bits, bool is_signed)
{
	uint32_t v = u << (32 - bits - j);

	return is_signed ? (int32_t)v >> (32 - bits)
			 : (int32_t)(v >> (32 - bits));
}

static inline int32_t dot_signed(uint32_t a, uint32_t b, int bits, bool sa,
				 bool sb)
{
	int32_t sum = 0;

	for (int j = 0; j < 32; j += bits)
		sum += int_element(a, j, bits, sa) *
		       int_element(b, j, bits, sb);
	return sum;
}

static void dot4_i32_iu8_lanes(struct soft_lanes *x)
{
	OPERANDS;
	const bool sa = x->mods[0] & ISA_M_NEG, sb = x->mods[1] & ISA_M_NEG;

	LANES(i)
	pd[i] = mad_i32(dot_signed(pa[i], pb[i], 8, sa, sb), pc[i], clamp);
}

static void dot8_i32_iu4_lanes(struct soft_lanes *x)
{
	OPERANDS;
	const bool sa = x->mods[0] & ISA_M_NEG, sb = x->mods[1] & ISA_M_NEG;

	LANES(i)
	pd[i] = mad_i32(dot_signed(pa[i], pb[i], 4, sa, sb), pc[i], clamp);
}

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
		uint32_t u = f32_bits(f[i]);

		u = (u & 0x7fffffff) < least ? u & 0x80000000 : u;
		f[i] = f32_value((u & mask) ^ flip);
	}
}

static inline void fma_mix_f32_lanes(struct soft_lanes *x)
{
	float a[SOFT_LANES], b[SOFT_LANES], c[SOFT_LANES];
	uint32_t *d = x->d;

	mix_source(x->a, x->mods[0], x->mode, a);
	mix_source(x->b, x->mods[1], x->mode, b);
	mix_source(x->c, x->mods[2], x->mode, c);
	LANES(i) d[i] = f32_bits(fma_f32(a[i], b[i], c[i]));
}

/*
 * The sum is rounded to f32 by MODE's f32 field, then to f16 by its f16 field.
 * The caller would set MXCSR for the f16 destination, so the row does it.
 */
static void fma_mix_f16_lanes(struct soft_lanes *x)
{
	static const unsigned mxcsr[] = { _MM_ROUND_NEAREST, _MM_ROUND_UP,
					  _MM_ROUND_DOWN,
					  _MM_ROUND_TOWARD_ZERO };
	unsigned old = _mm_getcsr();
	float f[SOFT_LANES];
	uint32_t *d = x->d;

	_mm_setcsr((old & ~_MM_ROUND_MASK) | mxcsr[x->mode & 3]);
	fma_mix_f32_lanes(x);
	_mm_setcsr(old);
	memcpy(f, d, sizeof(f));
	soft_f16_from_floats(f, soft_round16(x->mode), soft_ovfl16(x->mode),
			     d);
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
/* Both halves, moved to bits 15:0 (PU) or 31:16 (PH). */
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
#define PH_LOW(u) ((u) << 16)
#define PH_HIGH(u) ((u) & 0xffff0000)
#define KIND_PU2(name, ...)             \
	HALF_EXPR(uint32_t, name, __VA_ARGS__) \
	BOTH_HALVES(name, PU_LOW, PU_HIGH, 0)
#define KIND_PU3(name, ...)             \
	HALF_EXPR(uint32_t, name, __VA_ARGS__) \
	BOTH_HALVES(name, PU_LOW, PU_HIGH, pc[i])
#define KIND_PH2(name, ...)             \
	HALF_EXPR(uint32_t, name, __VA_ARGS__) \
	BOTH_HALVES(name, PH_LOW, PH_HIGH, 0)
#define KIND_PH3(name, ...)             \
	HALF_EXPR(uint32_t, name, __VA_ARGS__) \
	BOTH_HALVES(name, PH_LOW, PH_HIGH, pc[i])

#include "kfd/soft/exec/vop3.def"
