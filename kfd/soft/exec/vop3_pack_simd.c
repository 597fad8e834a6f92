/*
 * kfd/soft/exec/vop3_pack_simd.c - VOP3P rows of vop3.def (group PACK): packed
 * math, dot products, mixed precision.
 */
#include <xmmintrin.h>

#include "kfd/soft/exec/valu_dot2.h"
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

/* -------------------------------------------------------- rows by kind ---- */

#define HALF_EXPR(type, name, expr)                              \
	static inline uint32_t half_##name(const struct soft_lanes *x, \
					   type a, type b, type c, \
					   bool clamp, bool ieee) \
	{                                                        \
		(void)x, (void)a, (void)b, (void)c;              \
		(void)clamp, (void)ieee;                         \
		return (uint32_t)(expr);                         \
	}
/* Both halves, moved to bits 15:0 (PU) or 31:16 (PH). */
#define BOTH_HALVES(name, low, high, third)                              \
	ROW(name)                                                        \
	{                                                                \
		ROW_IN(x);                                               \
		LANES(i)                                                 \
		{                                                        \
			const uint32_t a = pa[i], b = pb[i], c = third;  \
			pd[i] = pack(half_##name(x, low(a), low(b), low(c), \
						 clamp, ieee),           \
				     half_##name(x, high(a), high(b), high(c), \
						 clamp, ieee));          \
		}                                                        \
	}                                                                \
	MICROOP_WORD(name,                                                  \
		  const uint32_t a = pa[i]; const uint32_t b = pb[i];    \
		  const uint32_t c = third,                              \
		  pack(half_##name(x, low(a), low(b), low(c), clamp, ieee), \
		       half_##name(x, high(a), high(b), high(c), clamp,  \
				   ieee)))
#define PU_LOW(u) ((u) & 0xffff)
#define PU_HIGH(u) ((u) >> 16)
#define PH_LOW(u) ((u) << 16)
#define PH_HIGH(u) ((u) & 0xffff0000)
#define ROW_PU2(name, expr)             \
	HALF_EXPR(uint32_t, name, expr) \
	BOTH_HALVES(name, PU_LOW, PU_HIGH, 0)
#define ROW_PU3(name, expr)             \
	HALF_EXPR(uint32_t, name, expr) \
	BOTH_HALVES(name, PU_LOW, PU_HIGH, pc[i])
#define ROW_PH2(name, expr)             \
	HALF_EXPR(uint32_t, name, expr) \
	BOTH_HALVES(name, PH_LOW, PH_HIGH, 0)
#define ROW_PH3(name, expr)             \
	HALF_EXPR(uint32_t, name, expr) \
	BOTH_HALVES(name, PH_LOW, PH_HIGH, pc[i])

#define V_INT(name, kind, expr)
#define V_FLOAT(name, kind, expr)
#define V_PACK(name, kind, expr) ROW_##kind(name, expr)
#define V(group, name, kind, flags, expr) V_##group(name, kind, expr)
#include "kfd/soft/exec/vop3.def"
#undef V

/* ------------------------------------------------------- packed halves ---- */

ROW(v_pk_fma_f16)
{
	ROW_IN(x);
	uint32_t low[SOFT_LANES], high[SOFT_LANES];

	if (soft_plain16(x->mode) && soft_fma16_vreg(pa, pb, pc, 0, low) &&
	    soft_fma16_vreg(pa, pb, pc, 16, high)) {
		LANES(i) pd[i] = low[i] | high[i] << 16;
		return;
	}
	LANES(i)
	pd[i] = pack(fma_f16(pa[i] << 16, pb[i] << 16, pc[i] << 16, x->mode),
		     fma_f16(pa[i] & 0xffff0000, pb[i] & 0xffff0000,
			     pc[i] & 0xffff0000, x->mode));
}

/* One half of sums or products; false if some lane is a NaN. */
static inline bool plane16(const uint32_t *a, const uint32_t *b, int shift,
			   bool multiply, uint32_t *d)
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

static inline bool planes16(struct soft_lanes *x, bool multiply)
{
	ROW_IN(x);
	uint32_t low[SOFT_LANES], high[SOFT_LANES];

	if (!soft_plain16(x->mode) || !plane16(pa, pb, 0, multiply, low) ||
	    !plane16(pa, pb, 16, multiply, high))
		return false;
	LANES(i) pd[i] = low[i] | high[i] << 16;
	return true;
}

ROW(v_pk_add_f16)
{
	ROW_IN(x);

	if (planes16(x, false))
		return;
	LANES(i)
	pd[i] = pack(add_f16(pa[i] << 16, pb[i] << 16, x->mode),
		     add_f16(pa[i] & 0xffff0000, pb[i] & 0xffff0000, x->mode));
}

ROW(v_pk_mul_f16)
{
	ROW_IN(x);

	if (planes16(x, true))
		return;
	LANES(i)
	pd[i] = pack(mul_f16(pa[i] << 16, pb[i] << 16, x->mode),
		     mul_f16(pa[i] & 0xffff0000, pb[i] & 0xffff0000, x->mode));
}

/* -------------------------------------------------------- dot products ---- */

ROW(v_dot2_f32_f16)
{
	soft_dot2_f16_lanes(x);
}

ROW(v_dot2_f32_bf16)
{
	soft_dot2_bf16_lanes(x);
}

/* neg_lo of a source makes its elements signed. */
static inline int32_t element(uint32_t u, int j, int bits, bool is_signed)
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
		sum += element(a, j, bits, sa) * element(b, j, bits, sb);
	return sum;
}

ROW(v_dot4_i32_iu8)
{
	ROW_IN(x);
	const bool sa = x->mods[0] & ISA_M_NEG, sb = x->mods[1] & ISA_M_NEG;

	LANES(i)
	pd[i] = mad_i32(dot_signed(pa[i], pb[i], 8, sa, sb), pc[i], clamp);
}

ROW(v_dot8_i32_iu4)
{
	ROW_IN(x);
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

static inline void fma_mix(struct soft_lanes *x)
{
	float a[SOFT_LANES], b[SOFT_LANES], c[SOFT_LANES];
	uint32_t *d = x->d;

	mix_source(x->a, x->mods[0], x->mode, a);
	mix_source(x->b, x->mods[1], x->mode, b);
	mix_source(x->c, x->mods[2], x->mode, c);
	LANES(i) d[i] = f32_bits(fma_f32(a[i], b[i], c[i]));
}

ROW(v_fma_mix_f32)
{
	fma_mix(x);
}

/*
 * The sum is rounded to f32 by MODE's f32 field, then to f16 by its f16 field.
 * The caller would set MXCSR for the f16 destination, so the row does it.
 */
static void fma_mix_half(struct soft_lanes *x)
{
	static const unsigned mxcsr[] = { _MM_ROUND_NEAREST, _MM_ROUND_UP,
					  _MM_ROUND_DOWN,
					  _MM_ROUND_TOWARD_ZERO };
	unsigned old = _mm_getcsr();
	float f[SOFT_LANES];
	uint32_t *d = x->d;

	_mm_setcsr((old & ~_MM_ROUND_MASK) | mxcsr[x->mode & 3]);
	fma_mix(x);
	_mm_setcsr(old);
	memcpy(f, d, sizeof(f));
	soft_f16_from_floats(f, soft_round16(x->mode), soft_ovfl16(x->mode),
			     d);
}

ROW(v_fma_mixlo_f16)
{
	fma_mix_half(x);
}

ROW(v_fma_mixhi_f16)
{
	fma_mix_half(x);
}
