/*
 * kfd/soft/exec/valu_mods.h - operands before and after a vector instruction.
 *
 * op_sel, abs, neg, denormals, rounding, omod, clamp (RDNA3 ISA 7.2).
 *
 * Private to valu.c and fast/, which has them as vector code, too.
 */
#ifndef T0_KFD_SOFT_VALU_MODS_H
#define T0_KFD_SOFT_VALU_MODS_H

#include <xmmintrin.h>

#include "kfd/soft/exec/valu_half.h"

/*
 * Are input or output denormals of this type flushed in this mode?  Of MODE's
 * denormal fields, bit 0 keeps them in inputs, bit 1 in results.  A source of
 * mixed math is raw here: its row flushes it as the type that it has.
 */
static inline bool mods_flush(enum isa_type type, uint32_t mode, bool output)
{
	const struct isa_type_info *t = isa_type_info(type);
	int field = type == ISA_T_F32 ? mode >> 4 : mode >> 6;

	return t->kind == 'F' && t->bits >= 16 && type != ISA_T_MIX &&
	       !(field >> output & 1);
}

/* A half, or two: denormals become zeros. */
static inline uint32_t mods_flush16(uint32_t u)
{
	uint32_t low = u & 0x7c00 ? 0xffff : 0x8000;
	uint32_t high = u & 0x7c000000 ? 0xffff0000 : 0x80000000;

	return u & (low | high);
}

static inline void mods_flush_vreg(enum isa_type type, uint32_t *p)
{
	int bits = isa_type_info(type)->bits;

	if (bits == 16)
		LANES(i) p[i] = mods_flush16(p[i]);
	else if (bits == 32)
		LANES(i) p[i] = soft_flush_f32(p[i]);
	else
		LANES(i) if (!(p[SOFT_LANES + i] & 0x7ff00000))
		{
			p[i] = 0;
			p[SOFT_LANES + i] &= 0x80000000;
		}
}

/* VOP3P: each half of the operand is chosen and negated by itself. */
static inline void mods_select(unsigned mods, const uint32_t *src,
			       uint32_t *tmp)
{
	int low = mods & ISA_M_HI ? 16 : 0, high = mods & ISA_M_HI_HI ? 16 : 0;
	uint32_t flip = (mods & ISA_M_NEG ? 0x8000 : 0) |
			(mods & ISA_M_NEG_HI ? 0x80000000 : 0);

	LANES(i)
	tmp[i] = ((src[i] >> low & 0xffff) | src[i] >> high << 16) ^ flip;
}

static inline void mods_copy(uint32_t *to, const uint32_t *from, int dwords)
{
	memcpy(to, from, dwords * SOFT_LANES * sizeof(*to));
}

/*
 * The operand with op_sel, abs, neg and flushing applied: `src` itself when
 * nothing has to be done, else `tmp`.  `fmt` is the instruction's format.
 */
static inline const uint32_t *mods_apply(const struct isa_operand *o, int fmt,
					 bool flushes, const uint32_t *src,
					 uint32_t *tmp)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	bool packed = fmt == ISA_FMT_VOP3P && t->bits == 16 && t->count == 2;
	bool single = t->count == 1 && o->type != ISA_T_MIX;
	/* Of untyped operands, V_MOV and V_CNDMASK take signs (ISA 16.7). */
	bool has_sign = strchr("FGB", t->kind);
	/* V_DOT2_F16_F16 has one sign modifier for both of its halves. */
	bool pair = t->bits == 16 && t->count == 2 && !packed && has_sign;
	unsigned mods = packed || (single && has_sign) ? o->mods :
			single			       ? o->mods & ISA_M_HI :
			pair ? o->mods & (ISA_M_NEG | ISA_M_ABS) :
			       0;
	int dwords = t->bits == 64 ? 2 : 1;

	/* Of a packed operand, each half from its own place is what is there.
	 */
	if (mods == (packed ? ISA_M_HI_HI : 0) && !flushes)
		return src;
	if (packed) {
		mods_select(mods, src, tmp);
	} else if (mods & ISA_M_HI) {
		LANES(i) tmp[i] = src[i] >> 16;
	} else {
		mods_copy(tmp, src, dwords);
	}
	if (!packed && mods & (ISA_M_ABS | ISA_M_NEG)) {
		uint32_t sign = pair	      ? 0x80008000 :
				t->bits == 16 ? 0x8000 :
						0x80000000;
		uint32_t keep = mods & ISA_M_ABS ? ~sign : ~0u;
		uint32_t flip = mods & ISA_M_NEG ? sign : 0;
		uint32_t *top = tmp + (dwords - 1) * SOFT_LANES;

		LANES(i) top[i] = (top[i] & keep) ^ flip;
	}
	if (flushes)
		mods_flush_vreg(o->type, tmp);
	return tmp;
}

/* ------------------------------------------------------------ compute ---- */

/* Bits of MXCSR that a row with SOFT_V_ROUND wants. */
static inline unsigned mods_mxcsr(enum isa_type dst, uint32_t mode)
{
	/* MODE: 0 even, 1 up, 2 down, 3 zero; MXCSR: even, down, up, zero. */
	static const unsigned rounding[] = { _MM_ROUND_NEAREST, _MM_ROUND_UP,
					     _MM_ROUND_DOWN,
					     _MM_ROUND_TOWARD_ZERO };
	const bool flush = (dst == ISA_T_F32 || dst == ISA_T_F64) &&
			   mods_flush(dst, mode, true);

	return rounding[mode >> (dst == ISA_T_F32 ? 0 : 2) & 3] |
	       (flush ? _MM_FLUSH_ZERO_ON : 0);
}

/* Run the row as `mode` says of results of type `dst`. */
static inline void mods_compute(const struct soft_lane_op *row,
				enum isa_type dst, uint32_t mode,
				struct soft_lanes *x)
{
	const unsigned bits =
		row->flags & SOFT_V_ROUND ? mods_mxcsr(dst, mode) : 0;
	unsigned old;

	if (!bits) {
		row->fn(x);
		return;
	}
	old = _mm_getcsr();
	_mm_setcsr((old & ~(_MM_ROUND_MASK | _MM_FLUSH_ZERO_MASK)) | bits);
	row->fn(x);
	_mm_setcsr(old);
}

/* ------------------------------------------------------------ results ---- */

/*
 * A float's bits to [0, 1]; `one` is 1.0, `inf` infinity, sign the sign bit.
 * NaN becomes 0 if `dx10`, else it stays.
 */
static inline uint64_t mods_clamp64(uint64_t u, uint64_t sign, uint64_t inf,
			   uint64_t one, bool dx10)
{
	uint64_t a = u & (sign - 1);

	if (a > inf)
		return dx10 ? 0 : u;
	if (u & sign)
		return 0;
	return a > one ? one : u;
}

/* The same, without branches, on 32 bits. */
static inline uint32_t mods_clamp32(uint32_t u, uint32_t sign, uint32_t inf,
				    uint32_t one, bool dx10)
{
	uint32_t a = u & (sign - 1), r = a > one ? one : u;

	r = u & sign ? 0 : r;
	return a > inf ? (dx10 ? 0 : u) : r;
}

static inline void mods_clamp(enum isa_type type, bool dx10, uint32_t *d)
{
	const struct isa_type_info *t = isa_type_info(type);

	if (t->bits == 32) {
		LANES(i)
		d[i] = mods_clamp32(d[i], 0x80000000, 0x7f800000, 0x3f800000,
				    dx10);
	} else if (t->bits == 16) {
		LANES(i)
		{
			uint32_t low = mods_clamp32(d[i] & 0xffff, 0x8000,
						    0x7c00, 0x3c00, dx10);
			uint32_t high = mods_clamp32(d[i] >> 16, 0x8000, 0x7c00,
						     0x3c00, dx10);
			d[i] = low | high << 16;
		}
	} else {
		LANES(i)
		soft_put64(d, i,
			   mods_clamp64(soft_get64(d, i), 1ull << 63,
				      0x7ffull << 52, 0x3ffull << 52, dx10));
	}
}

/*
 * The float of `frac` fraction bits times 2^by.  Zeros, and denormals, become
 * +0; what underflows keeps its sign; what overflows does so as `round` of MODE
 * says (measured on gfx1100: AMD, rocjitsu's omod_underflow_cases and
 * f16_fma_omod_cases).
 */
static inline uint64_t mods_scale_bits(uint64_t u, int frac, uint64_t sign,
				       int by, unsigned round, bool ovfl)
{
	const uint64_t inf = sign - (1ull << frac), mag = u & (sign - 1);
	const int64_t exp = (int64_t)(mag >> frac) + by;
	const bool neg = u & sign;
	const bool outward = !round || round == (neg ? 2u : 1u);

	if (mag >= inf)
		return u;
	if (!(mag >> frac))
		return 0;
	if (exp <= 0)
		return u & sign;
	if (exp >= (int64_t)(inf >> frac))
		return (u & sign) | (inf - !(outward && !ovfl));
	return u + ((uint64_t)(int64_t)by << frac);
}

/* Multiply by 2, 4 or 1/2. */
static inline void mods_scale(enum isa_type type, int omod, uint32_t mode,
			      uint32_t *d)
{
	static const int by[] = { 0, 1, 2, -1 };
	const int n = by[omod];

	if (type == ISA_T_F32)
		LANES(i)
		d[i] = (uint32_t)mods_scale_bits(d[i], 23, 1u << 31, n,
						 mode & 3, false);
	else if (type == ISA_T_F16)
		LANES(i)
		d[i] = (uint32_t)mods_scale_bits(d[i] & 0xffff, 10, 1u << 15, n,
						 soft_round16(mode),
						 soft_ovfl16(mode));
	else if (type == ISA_T_F64)
		LANES(i)
		soft_put64(d, i,
			   mods_scale_bits(soft_get64(d, i), 52, 1ull << 63, n,
					   soft_round16(mode), false));
}

/*
 * Is omod obeyed?  RDNA3 ISA 7.2.2: not with IEEE, nor with output denormals,
 * but that rows of SOFT_V_OMOD have none.
 */
static inline bool mods_scales(const struct isa_inst *in, enum isa_type type,
			       uint32_t mode, unsigned flags)
{
	return in->f[ISA_F_OMOD] &&
	       (mode & (SOFT_MODE_IEEE | SOFT_MODE_OMOD)) != SOFT_MODE_IEEE &&
	       (mods_flush(type, mode, true) || flags & SOFT_V_OMOD);
}

/*
 * omod, clamp and flushing of a result, in place, as the instruction says and
 * enum soft_vflag of its row.
 */
static inline void mods_finish(const struct isa_inst *in, enum isa_type type,
			       uint32_t mode, unsigned flags, uint32_t *d)
{
	const bool scales = mods_scales(in, type, mode, flags);
	const uint32_t even = SOFT_MODE_ROUND_F32 | SOFT_MODE_ROUND_F16_F64;

	if (mods_flush(type, mode, true) &&
	    !(flags & (SOFT_V_KEEP | SOFT_V_KEEP_OUT)))
		mods_flush_vreg(type, d);
	if (scales)
		mods_scale(type, in->f[ISA_F_OMOD],
			   flags & SOFT_V_TRANS ? mode & ~even : mode, d);
	if (in->f[ISA_F_CLAMP])
		mods_clamp(type, mode & SOFT_MODE_DX10_CLAMP, d);
}

#endif
