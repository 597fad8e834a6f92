/*
 * kfd/soft/exec/valu_dot2.h - dot products of two pairs, as gfx1100 has them.
 *
 * a.x * b.x + a.y * b.y + c, of v_dot2_f32_f16 and its kin.  Private to the
 * _simd.c files.  The manual's formula leaves the roundings open; what the chip
 * does was measured by AMD for its own emulator (ROCm issue rocm-systems 12056,
 * "rocjitsu"):
 *  - products are exact; f16 factors keep denormals, bf16 ones and the f32
 *    accumulator's are zero;
 *  - the three terms are cut onto a common grid, whose unit is 2^-26 of the
 *    largest term's leading bit, or 2^-24 of the larger product's factors'
 *    exponents if that is coarser;
 *  - a term whose sign is not the accumulator's is added as its one's
 *    complement, even if it is zero: one unit more is taken away;
 *  - the sum is rounded once to 24 bits, nearest even, and then flushed if it
 *    is below 2^-126;
 *  - MODE does not matter.
 */
#ifndef T0_KFD_SOFT_VALU_DOT2_H
#define T0_KFD_SOFT_VALU_DOT2_H

#include "kfd/soft/exec/valu_half.h"

#define SOFT_DOT2_NONE (-4096) /* the exponent of a zero */

/* What is special about the product of two factors. */
struct soft_dot2_kind {
	bool negative, nan, inf, zero_by_inf;
};

/* Factors of `frac` fraction bits. */
static inline struct soft_dot2_kind soft_dot2_kind(uint32_t a, uint32_t b,
						   int frac)
{
	uint32_t one = 1u << frac, inf = 0x7fff & ~(one - 1);
	uint32_t ma = a & 0x7fff, mb = b & 0x7fff;
	/* bf16 knows no denormals here. */
	uint32_t least = frac == 7 ? one : 1;

	return (struct soft_dot2_kind){
		.negative = (a ^ b) >> 15 & 1,
		.nan = ma > inf || mb > inf,
		.inf = ma == inf || mb == inf,
		.zero_by_inf = (ma == inf && mb < least) ||
			       (mb == inf && ma < least),
	};
}

/* The result if a source is no number; false if all are. */
static inline bool soft_dot2_special(struct soft_dot2_kind p,
				     struct soft_dot2_kind q, uint32_t c,
				     uint32_t *out)
{
	bool c_inf = (c & 0x7fffffff) == 0x7f800000;
	bool up = (p.inf && !p.negative) || (q.inf && !q.negative);
	bool down = (p.inf && p.negative) || (q.inf && q.negative);

	if (p.nan || q.nan)
		*out = 0xffc00a3d; /* this very pattern */
	else if (p.zero_by_inf || q.zero_by_inf || (up && down))
		*out = 0xffc00000;
	else if ((c & 0x7fffffff) > 0x7f800000)
		*out = c | 0x400000;
	else if ((up && c_inf && c >> 31) || (down && c_inf && !(c >> 31)))
		*out = 0xffc00000;
	else if (up || down || c_inf)
		*out = up || (c_inf && !(c >> 31)) ? 0x7f800000 : 0xff800000;
	else
		return false;
	return true;
}

/* -------------------------------------------------------- whole vregs ---- */

/*
 * For numbers, without branches and in 32 bits, so that loops over lanes become
 * vector code.  A term is sig * 2^exp; `scale` is the sum of the factors'
 * exponents, `top` the exponent of the leading bit.
 */
struct soft_dot2_lane {
	uint32_t sig;
	int32_t exp, scale, top;
	int32_t negative; /* 0 or -1 */
};

/* The exponent of the leading bit; sig is below 2^24. */
static inline int32_t soft_dot2_lead(uint32_t sig, int32_t exp)
{
	int32_t n = (int32_t)(f32_bits((float)(int32_t)sig) >> 23) - 127;

	return sig ? n + exp : SOFT_DOT2_NONE;
}

static inline struct soft_dot2_lane soft_dot2_pair(uint32_t a, uint32_t b,
						   int frac, int bias)
{
	uint32_t one = 1u << frac, ma = a & 0x7fff, mb = b & 0x7fff;
	int32_t ea = (int32_t)(ma >> frac), eb = (int32_t)(mb >> frac);
	uint32_t fa = ma & (one - 1), fb = mb & (one - 1);
	uint32_t sa = ea ? fa | one : frac == 7 ? 0 : fa;
	uint32_t sb = eb ? fb | one : frac == 7 ? 0 : fb;
	struct soft_dot2_lane t = { .sig = sa * sb };
	int32_t scale = (ea ? ea : 1) + (eb ? eb : 1) - 2 * bias;

	t.exp = scale - 2 * frac;
	t.scale = t.sig ? scale : SOFT_DOT2_NONE;
	t.top = soft_dot2_lead(t.sig, t.exp);
	t.negative = (int32_t)((a ^ b) << 16) >> 31;
	return t;
}

/* Cut onto the grid; below zero if its sign is not `flip`'s. */
static inline int32_t soft_dot2_units(struct soft_dot2_lane t, int32_t grid,
				      int32_t flip)
{
	int32_t up = t.exp - grid, down = grid - t.exp;
	uint32_t left = t.sig << (up < 0 ? 0 : up > 31 ? 31 : up);
	uint32_t right = t.sig >> (down < 0 ? 0 : down > 31 ? 31 : down);

	return (int32_t)(up < 0 ? right : left) ^ (t.negative ^ flip);
}

static inline uint32_t soft_dot2_numbers(struct soft_dot2_lane p,
					 struct soft_dot2_lane q, uint32_t c)
{
	int32_t exp = c >> 23 & 255, flip = (int32_t)c >> 31, grid, units, e;
	struct soft_dot2_lane s = { .sig = exp ? (c & 0x7fffff) | 0x800000 : 0,
				    .exp = exp - 150, .negative = flip };
	int32_t top = exp ? exp - 127 : SOFT_DOT2_NONE;
	uint32_t bits, sign, r;

	top = p.top > top ? p.top : top;
	top = q.top > top ? q.top : top;
	grid = (p.scale > q.scale ? p.scale : q.scale) - 24;
	grid = top - 26 > grid ? top - 26 : grid;
	units = soft_dot2_units(s, grid, flip) +
		soft_dot2_units(p, grid, flip) +
		soft_dot2_units(q, grid, flip);
	/* Rounds to 24 bits, nearest even. */
	bits = f32_bits((float)(units < 0 ? -units : units));
	e = (int32_t)(bits >> 23) + grid;
	sign = (uint32_t)((units >> 31) ^ flip) & 0x80000000;
	r = sign | (uint32_t)e << 23 | (bits & 0x7fffff);
	r = e > 254 ? sign | 0x7f800000 : r;
	return units == 0 || e < 1 || top == SOFT_DOT2_NONE ? 0 : r;
}

static inline uint32_t soft_dot2_sum(uint32_t a, uint32_t b, uint32_t c,
				     int frac, int bias)
{
	return soft_dot2_numbers(
		soft_dot2_pair(a & 0xffff, b & 0xffff, frac, bias),
		soft_dot2_pair(a >> 16, b >> 16, frac, bias), c);
}

static inline uint32_t soft_dot2_any(uint32_t a, uint32_t b, uint32_t c,
				     int frac, int bias)
{
	uint32_t out;

	if (soft_dot2_special(soft_dot2_kind(a & 0xffff, b & 0xffff, frac),
			      soft_dot2_kind(a >> 16, b >> 16, frac), c, &out))
		return out;
	return soft_dot2_sum(a, b, c, frac, bias);
}

/* All lanes; those of a vreg with a lane that is no number one by one. */
static inline void soft_dot2_vreg(const struct soft_lanes *x, int frac,
				  int bias)
{
	const uint32_t *a = x->a, *b = x->b, *c = x->c;
	const uint32_t inf = 0x7fff & ~((1u << frac) - 1);
	uint32_t odd = 0, r[SOFT_LANES];

	LANES(i)
	{
		odd |= (a[i] & inf) == inf;
		odd |= (a[i] >> 16 & inf) == inf;
		odd |= (b[i] & inf) == inf;
		odd |= (b[i] >> 16 & inf) == inf;
		odd |= (c[i] & 0x7f800000) == 0x7f800000;
	}
	if (odd)
		LANES(i) r[i] = soft_dot2_any(a[i], b[i], c[i], frac, bias);
	else
		LANES(i)
	r[i] = soft_dot2_sum(a[i], b[i], c[i], frac, bias);
	memcpy(x->d, r, sizeof(r));
}

static inline void soft_dot2_f16_lanes(struct soft_lanes *x)
{
	soft_dot2_vreg(x, 10, 15);
}

static inline void soft_dot2_bf16_lanes(struct soft_lanes *x)
{
	soft_dot2_vreg(x, 7, 127);
}

#endif
