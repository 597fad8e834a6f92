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

#include "kfd/soft/exec/valu_piece.h"

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

/* The result if a source is no number; false if all are, and *out stays. */
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

/* ------------------------------------------------------------- pieces ---- */

/*
 * For numbers, lanes of a piece.  A term is sig * 2^exp; `scale` is the sum of
 * the factors' exponents, `top` the exponent of the leading bit.
 */
struct soft_dot2_term {
	piece_i sig, exp, scale, top;
	piece_i negative; /* 0 or -1 */
};

static inline piece_i soft_dot2_max(piece_i a, piece_i b)
{
	return piece_pick(a > b, a, b);
}

/* The exponent of the leading bit; sig is below 2^24. */
static inline piece_i soft_dot2_lead(piece_i sig, piece_i exp)
{
	const piece_f f = __builtin_convertvector(sig, piece_f);
	const piece_i none = { 0 };

	return piece_pick(sig == 0, none + SOFT_DOT2_NONE,
			  ((piece_i)f >> 23) - 127 + exp);
}

/* Of factors in bits 15:0. */
static inline struct soft_dot2_term soft_dot2_pair(piece_i a, piece_i b,
						   int frac, int bias)
{
	const int one = 1 << frac;
	const piece_i ma = a & 0x7fff, mb = b & 0x7fff, none = { 0 };
	const piece_i ea = ma >> frac, eb = mb >> frac;
	const piece_i da = ea == 0, db = eb == 0; /* bf16 has no denormals */
	piece_i sa = (ma & (one - 1)) | (one & ~da);
	piece_i sb = (mb & (one - 1)) | (one & ~db);
	struct soft_dot2_term t;
	piece_i scale;

	if (frac == 7) {
		sa &= ~da;
		sb &= ~db;
	}
	scale = (ea - da) + (eb - db) - 2 * bias;
	t.sig = piece_madd((piece_h)sa, (piece_h)sb);
	t.exp = scale - 2 * frac;
	t.scale = piece_pick(t.sig == 0, none + SOFT_DOT2_NONE, scale);
	t.top = soft_dot2_lead(t.sig, t.exp);
	t.negative = (a ^ b) << 16 >> 31;
	return t;
}

/* Cut onto the grid; below zero if its sign is not `flip`'s. */
static inline piece_i soft_dot2_units(struct soft_dot2_term t, piece_i grid,
				      piece_i flip)
{
	return piece_shift(t.sig, t.exp - grid) ^ (t.negative ^ flip);
}

static inline piece_i soft_dot2_numbers(struct soft_dot2_term p,
					struct soft_dot2_term q, piece_i c)
{
	const piece_i exp = c >> 23 & 255, flip = c >> 31, none = { 0 };
	const struct soft_dot2_term s = {
		.sig = ((c & 0x7fffff) | 0x800000) & (exp != 0),
		.exp = exp - 150,
		.negative = flip,
	};
	piece_i top = piece_pick(exp == 0, none + SOFT_DOT2_NONE, exp - 127);
	piece_i grid, units, bits, e, sign, r;

	top = soft_dot2_max(soft_dot2_max(p.top, q.top), top);
	grid = soft_dot2_max(soft_dot2_max(p.scale, q.scale) - 24, top - 26);
	units = soft_dot2_units(s, grid, flip) +
		soft_dot2_units(p, grid, flip) +
		soft_dot2_units(q, grid, flip);
	/* Rounds to 24 bits, nearest even. */
	bits = (piece_i)__builtin_convertvector(
		piece_pick(units < 0, -units, units), piece_f);
	e = (bits >> 23) + grid;
	sign = ((units >> 31) ^ flip) & (int)0x80000000;
	r = sign | e << 23 | (bits & 0x7fffff);
	r = piece_pick(e > 254, sign | 0x7f800000, r);
	return r & ~((units == 0) | (e < 1) | (top == SOFT_DOT2_NONE));
}

/* *odd: where a source is no number. */
static inline soft_piece soft_dot2_piece(soft_piece a, soft_piece b,
					 soft_piece c, int frac, int bias,
					 soft_piece *odd)
{
	const piece_i u = (piece_i)a, v = (piece_i)b, w = (piece_i)c;
	const int inf = 0x7fff & ~((1 << frac) - 1);

	*odd |= (soft_piece)(((u & inf) == inf) | ((u >> 16 & inf) == inf) |
			     ((v & inf) == inf) | ((v >> 16 & inf) == inf) |
			     ((w & 0x7f800000) == 0x7f800000));
	return (soft_piece)soft_dot2_numbers(
		soft_dot2_pair(u & 0xffff, v & 0xffff, frac, bias),
		soft_dot2_pair(u >> 16 & 0xffff, v >> 16 & 0xffff, frac, bias),
		w);
}

/* Any sources: all lanes as numbers, and then those that are special. */
static inline void soft_dot2_lanes(const struct soft_lanes *x, int frac,
				   int bias)
{
	const uint32_t *a = x->a, *b = x->b, *c = x->c;
	soft_piece r[SOFT_PIECES], odd = { 0 };
	uint32_t *d = (uint32_t *)r;

	for (int i = 0; i < SOFT_PIECES; i++)
		r[i] = soft_dot2_piece(((const soft_piece *)a)[i],
				       ((const soft_piece *)b)[i],
				       ((const soft_piece *)c)[i], frac, bias,
				       &odd);
	LANES(i)
	soft_dot2_special(soft_dot2_kind(a[i] & 0xffff, b[i] & 0xffff, frac),
			  soft_dot2_kind(a[i] >> 16, b[i] >> 16, frac), c[i],
			  &d[i]);
	memcpy(x->d, r, sizeof(r));
}

/* What rows of kind PIECE want (valu_piece.h). */
#define SOFT_DOT2(name, frac, bias) \
	static inline soft_piece name##_piece(const struct soft_lanes *x, \
					      soft_piece a, soft_piece b, \
					      soft_piece c, soft_piece *odd) \
	{ \
		(void)x; \
		return soft_dot2_piece(a, b, c, frac, bias, odd); \
	} \
	static __attribute__((noinline)) void name##_lanes( \
		struct soft_lanes *x) \
	{ \
		soft_dot2_lanes(x, frac, bias); \
	}
SOFT_DOT2(dot2_f16, 10, 15)
SOFT_DOT2(dot2_bf16, 7, 127)
#undef SOFT_DOT2

#endif
