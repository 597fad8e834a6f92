/*
 * kfd/soft/exec/valu_dot2.h - dot products of two pairs, as gfx1100 has them.
 *
 * a.x * b.x + a.y * b.y + c, of v_dot2_f32_f16 and its kin.  Private to the _simd.c files.  The manual's formula leaves the roundings
 * open; what the chip does was measured by AMD for its own emulator (ROCm
 * issue rocm-systems 12056, "rocjitsu"):
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

/* sig * 2^exp; `scale` is the sum of the factors' exponents. */
struct soft_term {
	uint64_t sig;
	int exp, scale;
	bool negative, nan, inf, zero_by_inf;
};

/* Two factors of `frac` fraction bits and `bias`. */
static inline struct soft_term soft_dot2_product(uint32_t a, uint32_t b,
						 int frac, int bias)
{
	uint32_t one = 1u << frac, inf = 0x7fff & ~(one - 1);
	uint32_t ma = a & 0x7fff, mb = b & 0x7fff;
	int ea = (int)(ma >> frac), eb = (int)(mb >> frac);
	/* bf16 knows no denormals here. */
	uint32_t sa = ea ? (ma & (one - 1)) | one : frac == 7 ? 0 : ma;
	uint32_t sb = eb ? (mb & (one - 1)) | one : frac == 7 ? 0 : mb;
	struct soft_term t = { .sig = (uint64_t)sa * sb };

	t.scale = (ea ? ea : 1) + (eb ? eb : 1) - 2 * bias;
	t.exp = t.scale - 2 * frac;
	t.scale = t.sig ? t.scale : SOFT_DOT2_NONE;
	t.negative = (a ^ b) >> 15 & 1;
	t.nan = ma > inf || mb > inf;
	t.inf = ma == inf || mb == inf;
	t.zero_by_inf = (ma == inf && !sb) || (mb == inf && !sa);
	return t;
}

static inline int soft_dot2_top(struct soft_term t)
{
	return t.sig ? t.exp + 63 - __builtin_clzll(t.sig) : SOFT_DOT2_NONE;
}

/* The result if a source is no number; false if all are. */
static inline bool soft_dot2_special(struct soft_term p, struct soft_term q,
				     uint32_t c, uint32_t *out)
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

/* units * 2^grid as a float. */
static inline uint32_t soft_dot2_round(int64_t units, int grid, bool flip)
{
	uint64_t m = units < 0 ? -(uint64_t)units : (uint64_t)units, sig;
	uint32_t sign = (uint32_t)((units < 0) != flip) << 31;
	int top, shift, exp;

	if (!m)
		return 0;
	top = 63 - __builtin_clzll(m);
	shift = top - 23;
	exp = top + grid;
	sig = m << (shift < 0 ? -shift : 0);
	if (shift > 0) {
		uint64_t rest = m & ((1ull << shift) - 1);
		uint64_t half = 1ull << (shift - 1);

		sig = m >> shift;
		sig += rest > half || (rest == half && sig & 1);
	}
	if (sig >> 24) {
		sig >>= 1;
		exp++;
	}
	if (exp < -126)
		return 0;
	if (exp > 127)
		return sign | 0x7f800000;
	return sign | (uint32_t)(exp + 127) << 23 | (sig & 0x7fffff);
}

static inline int64_t soft_dot2_cut(struct soft_term t, int grid, bool flip)
{
	int shift = t.exp - grid;
	uint64_t m = !t.sig || shift <= -64 ? 0 :
		     shift < 0		    ? t.sig >> -shift :
					      t.sig << shift;

	return t.negative != flip ? ~(int64_t)m : (int64_t)m;
}

static inline uint32_t soft_dot2_terms(struct soft_term p, struct soft_term q,
				       uint32_t c)
{
	int exp = c >> 23 & 255;
	struct soft_term s = { .sig = exp ? (c & 0x7fffff) | 0x800000 : 0,
			       .exp = exp - 150,
			       .negative = c >> 31 };
	int top = soft_dot2_top(s), grid;
	uint32_t out;

	if (soft_dot2_special(p, q, c, &out))
		return out;
	if (!(s.sig | p.sig | q.sig))
		return 0;
	top = soft_dot2_top(p) > top ? soft_dot2_top(p) : top;
	top = soft_dot2_top(q) > top ? soft_dot2_top(q) : top;
	grid = (p.scale > q.scale ? p.scale : q.scale) - 24;
	grid = top - 26 > grid ? top - 26 : grid;
	return soft_dot2_round(soft_dot2_cut(s, grid, s.negative) +
				       soft_dot2_cut(p, grid, s.negative) +
				       soft_dot2_cut(q, grid, s.negative),
			       grid, s.negative);
}

/* Packed halves a and b, accumulator c. */
static inline uint32_t soft_dot2_f16(uint32_t a, uint32_t b, uint32_t c)
{
	return soft_dot2_terms(
		soft_dot2_product(a & 0xffff, b & 0xffff, 10, 15),
		soft_dot2_product(a >> 16, b >> 16, 10, 15), c);
}

static inline uint32_t soft_dot2_bf16(uint32_t a, uint32_t b, uint32_t c)
{
	return soft_dot2_terms(
		soft_dot2_product(a & 0xffff, b & 0xffff, 7, 127),
		soft_dot2_product(a >> 16, b >> 16, 7, 127), c);
}

/* -------------------------------------------------------- whole vregs ---- */

/*
 * The same without branches and in 32 bits, so that loops over lanes become
 * vector code; for numbers only.
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

/* All lanes; false, with nothing written, if one has no number. */
static inline bool soft_dot2_vreg(const uint32_t *a, const uint32_t *b,
				   const uint32_t *c, int frac, int bias,
				   uint32_t *d)
{
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
		return false;
	LANES(i)
	r[i] = soft_dot2_numbers(
		soft_dot2_pair(a[i] & 0xffff, b[i] & 0xffff, frac, bias),
		soft_dot2_pair(a[i] >> 16, b[i] >> 16, frac, bias), c[i]);
	memcpy(d, r, sizeof(r));
	return true;
}

static inline void soft_dot2_f16_lanes(const struct soft_lanes *x)
{
	if (!soft_dot2_vreg(x->a, x->b, x->c, 10, 15, x->d))
		LANES(i) x->d[i] = soft_dot2_f16(x->a[i], x->b[i], x->c[i]);
}

static inline void soft_dot2_bf16_lanes(const struct soft_lanes *x)
{
	if (!soft_dot2_vreg(x->a, x->b, x->c, 7, 127, x->d))
		LANES(i) x->d[i] = soft_dot2_bf16(x->a[i], x->b[i], x->c[i]);
}

#endif
