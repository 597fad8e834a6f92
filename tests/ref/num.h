/*
 * ref-num - IEEE 754 arithmetic in integers: slow, exact until it is rounded
 * once, in any of the four roundings of MODE.
 *
 *	const struct ref_fmt *f = &F32;
 *	uint64_t u = ref_fma(f, a, b, c, 0);	// bits in, bits out
 *
 * A NaN result is RDNA's: the first source that is a NaN, made quiet, else the
 * negative quiet NaN.  Added to a rounding, REF_SIGNAL lets a signalling NaN be
 * one, and REF_FLUSH makes zero of what would be below the smallest normal
 * number if it were rounded to as many bits.
 */
#ifndef T0_TESTS_REF_NUM_H
#define T0_TESTS_REF_NUM_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef unsigned __int128 u128;

struct ref_fmt {
	int exp_bits, frac_bits;
};

static const struct ref_fmt F16 = { 5, 10 }, BF16 = { 8, 7 }, F32 = { 8, 23 },
			    F64 = { 11, 52 };

/* Roundings, as two bits of MODE name them. */
enum { REF_EVEN, REF_UP, REF_DOWN, REF_ZERO, REF_SIGNAL = 4, REF_FLUSH = 8 };

/* (-1)^neg m 2^exp, unless inf or nan. */
struct ref_num {
	bool neg, inf, nan;
	int exp;
	u128 m;
};

static inline uint64_t ref_inf(const struct ref_fmt *f)
{
	return ((UINT64_C(1) << f->exp_bits) - 1) << f->frac_bits;
}

static inline uint64_t ref_sign(const struct ref_fmt *f)
{
	return UINT64_C(1) << (f->exp_bits + f->frac_bits);
}

static inline uint64_t ref_one(const struct ref_fmt *f)
{
	return ((UINT64_C(1) << (f->exp_bits - 1)) - 1) << f->frac_bits;
}

static inline uint64_t ref_quiet(const struct ref_fmt *f)
{
	return UINT64_C(1) << (f->frac_bits - 1);
}

static inline uint64_t ref_mag(const struct ref_fmt *f, uint64_t u)
{
	return u & (ref_sign(f) - 1);
}

static inline bool ref_is_nan(const struct ref_fmt *f, uint64_t u)
{
	return ref_mag(f, u) > ref_inf(f);
}

static inline bool ref_is_snan(const struct ref_fmt *f, uint64_t u)
{
	return ref_is_nan(f, u) && !(u & ref_quiet(f));
}

static inline bool ref_is_denormal(const struct ref_fmt *f, uint64_t u)
{
	return ref_mag(f, u) && ref_mag(f, u) >> f->frac_bits == 0;
}

static inline uint64_t ref_flush(const struct ref_fmt *f, uint64_t u)
{
	return ref_is_denormal(f, u) ? u & ref_sign(f) : u;
}

static inline struct ref_num ref_load(const struct ref_fmt *f, uint64_t u)
{
	int bias = (1 << (f->exp_bits - 1)) - 1;
	int e = (int)(ref_mag(f, u) >> f->frac_bits);
	uint64_t frac = u & ((UINT64_C(1) << f->frac_bits) - 1);
	struct ref_num n = { .neg = u & ref_sign(f) };

	n.nan = ref_is_nan(f, u);
	n.inf = ref_mag(f, u) == ref_inf(f);
	n.m = e ? frac | UINT64_C(1) << f->frac_bits : frac;
	n.exp = (e ? e : 1) - bias - f->frac_bits;
	return n;
}

/* Should a magnitude be rounded away from zero?  rest of 2 * half units. */
static inline bool ref_away(bool neg, bool odd, u128 rest, u128 half, int round)
{
	round &= 3;
	if (round == REF_EVEN)
		return rest > half || (rest == half && odd);
	return rest && ((round == REF_UP && !neg) ||
			(round == REF_DOWN && neg));
}

static inline uint64_t ref_overflow(const struct ref_fmt *f, bool neg,
				    int round)
{
	bool inf = !(round & 3) || (round & 3) == (neg ? REF_DOWN : REF_UP);

	return ref_inf(f) - !inf;
}

/* The upper bits of m, without the last `drop`. */
static inline uint64_t ref_drop(struct ref_num n, int drop, int round)
{
	uint64_t r;

	if (drop > 127)
		return ref_away(n.neg, false, 1, 2, round);
	if (drop <= 0)
		return (uint64_t)(n.m << -drop);
	r = (uint64_t)(n.m >> drop);
	return r + ref_away(n.neg, r & 1, n.m & (((u128)1 << drop) - 1),
			    (u128)1 << (drop - 1), round);
}

/* Round once. */
static inline uint64_t ref_store(const struct ref_fmt *f, struct ref_num n,
				 int round)
{
	int bias = (1 << (f->exp_bits - 1)) - 1, top = 127, drop;
	uint64_t sign = n.neg ? ref_sign(f) : 0, r;
	int least = 1 - bias - f->frac_bits;

	if (n.nan)
		return ref_sign(f) | ref_inf(f) | ref_quiet(f);
	if (n.inf)
		return sign | ref_inf(f);
	if (!n.m)
		return sign;
	while (!(n.m >> top))
		top--;
	/* The unit of the result: that of its exponent, or of denormals. */
	drop = top - f->frac_bits;
	if (round & REF_FLUSH && n.exp + drop < least) {
		/* A carry makes it twice as large. */
		r = ref_drop(n, drop, round) >> f->frac_bits;
		if (n.exp + drop + (r > 1) < least)
			return sign;
	}
	if (n.exp + drop < least)
		drop = least - n.exp;
	r = ref_drop(n, drop, round);
	/* r units of 2^(exp + drop); the carry into the exponent is wanted. */
	r += (uint64_t)(n.exp + drop + bias + f->frac_bits - 1)
	     << f->frac_bits;
	if (n.exp + drop + bias + f->frac_bits - 1 >=
		    (1 << f->exp_bits) ||
	    r >= ref_inf(f))
		r = ref_overflow(f, n.neg, round);
	return sign | r;
}

/* m >> n; bit 0 says too whether anything was lost. */
static inline u128 ref_jam(u128 m, int n)
{
	if (n <= 0)
		return m;
	if (n > 127)
		return m != 0;
	return m >> n | ((m & (((u128)1 << n) - 1)) != 0);
}

/* Bit 125 set, or 0. */
static inline struct ref_num ref_norm(struct ref_num n)
{
	while (n.m && !(n.m >> 125)) {
		n.m <<= 1;
		n.exp--;
	}
	return n;
}

static inline struct ref_num ref_mul_num(struct ref_num a, struct ref_num b)
{
	struct ref_num r = { .neg = a.neg != b.neg, .exp = a.exp + b.exp,
			     .m = a.m * b.m, .inf = a.inf || b.inf };

	r.nan = (a.inf && !b.inf && !b.m) || (b.inf && !a.inf && !a.m);
	return r;
}

/* Exact, or so close that every rounding sees the same. */
static inline struct ref_num ref_add_num(struct ref_num a, struct ref_num b,
					 int round)
{
	struct ref_num r = { 0 };

	if (a.nan || b.nan || (a.inf && b.inf && a.neg != b.neg)) {
		r.nan = true;
		return r;
	}
	if (a.inf || b.inf)
		return a.inf ? a : b;
	if (!a.m && !b.m) {
		a.neg = a.neg == b.neg ? a.neg : (round & 3) == REF_DOWN;
		return a;
	}
	if (!a.m || !b.m)
		return a.m ? a : b;
	a = ref_norm(a);
	b = ref_norm(b);
	if (a.exp < b.exp) {
		r = a;
		a = b;
		b = r;
	}
	b.m = ref_jam(b.m, a.exp - b.exp);
	r = a;
	if (a.neg == b.neg) {
		r.m = a.m + b.m;
		return r;
	}
	r.neg = b.m > a.m ? b.neg : a.neg;
	r.m = b.m > a.m ? b.m - a.m : a.m - b.m;
	if (!r.m)
		r.neg = (round & 3) == REF_DOWN;
	return r;
}

/* A NaN that is passed on. */
static inline uint64_t ref_pass(const struct ref_fmt *f, uint64_t u, int round)
{
	return round & REF_SIGNAL ? u : u | ref_quiet(f);
}

/* The NaN that sources call for: the first of them. */
static inline uint64_t ref_nan(const struct ref_fmt *f, const uint64_t *u,
			       int n, int round)
{
	for (int i = 0; i < n; i++)
		if (ref_is_nan(f, u[i]))
			return ref_pass(f, u[i], round);
	return ref_sign(f) | ref_inf(f) | ref_quiet(f);
}

static inline uint64_t ref_result(const struct ref_fmt *f, struct ref_num r,
				  int round, int n, uint64_t a, uint64_t b,
				  uint64_t c)
{
	const uint64_t u[] = { a, b, c };

	for (int i = 0; i < n; i++)
		r.nan |= ref_is_nan(f, u[i]);
	return r.nan ? ref_nan(f, u, n, round) : ref_store(f, r, round);
}

static inline uint64_t ref_fma(const struct ref_fmt *f, uint64_t a, uint64_t b,
			       uint64_t c, int round)
{
	struct ref_num p = ref_mul_num(ref_load(f, a), ref_load(f, b));

	/* An invalid product hides the addend (measured on gfx1100). */
	return ref_result(f, ref_add_num(p, ref_load(f, c), round), round,
			  p.nan ? 2 : 3, a, b, c);
}

static inline uint64_t ref_add(const struct ref_fmt *f, uint64_t a, uint64_t b,
			       int round)
{
	return ref_result(f, ref_add_num(ref_load(f, a), ref_load(f, b), round),
			  round, 2, a, b, 0);
}

static inline uint64_t ref_mul(const struct ref_fmt *f, uint64_t a, uint64_t b,
			       int round)
{
	return ref_result(f, ref_mul_num(ref_load(f, a), ref_load(f, b)), round,
			  2, a, b, 0);
}

/* a - b: a NaN b keeps its sign. */
static inline uint64_t ref_sub(const struct ref_fmt *f, uint64_t a, uint64_t b,
			       int round)
{
	uint64_t nb = ref_is_nan(f, b) ? b : b ^ ref_sign(f);

	return ref_add(f, a, nb, round);
}

/*
 * Between formats; a NaN keeps its upper fraction bits, and becomes quiet where
 * they get fewer.
 */
static inline uint64_t ref_convert(const struct ref_fmt *to,
				   const struct ref_fmt *from, uint64_t u,
				   int round)
{
	int d = to->frac_bits - from->frac_bits;
	bool signals = round & REF_SIGNAL && d > 0 && ref_is_snan(from, u);
	uint64_t frac = u & ((UINT64_C(1) << from->frac_bits) - 1);

	if (!ref_is_nan(from, u))
		return ref_store(to, ref_load(from, u), round);
	return (u & ref_sign(from) ? ref_sign(to) : 0) | ref_inf(to) |
	       (signals ? 0 : ref_quiet(to)) |
	       (d >= 0 ? frac << d : frac >> -d);
}

static inline uint64_t ref_from_int(const struct ref_fmt *f, int64_t v,
				    int round)
{
	struct ref_num n = { .neg = v < 0,
			     .m = v < 0 ? -(u128)v & UINT64_MAX : (u128)v };

	return ref_store(f, n, round);
}

/* u * 2^by, rounded once. */
static inline uint64_t ref_scale(const struct ref_fmt *f, uint64_t u, int by,
				 int round)
{
	struct ref_num n = ref_load(f, u);

	if (n.nan)
		return ref_pass(f, u, round);
	n.exp += by;
	return ref_store(f, n, round);
}

/*
 * To an integer in a rounding, saturated to [low, high]; NaN is 0.  `floor` of
 * the value plus one half when `nearest`.
 */
static inline int64_t ref_to_int(const struct ref_fmt *f, uint64_t u, int round,
				 int64_t low, int64_t high)
{
	struct ref_num n = ref_load(f, u);
	int64_t v;

	if (n.nan)
		return 0;
	if (n.inf || (n.m && n.exp > 40))
		return n.neg ? low : high;
	if (n.exp >= 0) {
		n.m <<= n.exp;
		if (n.m >> 62)
			return n.neg ? low : high;
		v = (int64_t)n.m;
	} else if (n.exp < -120) {
		v = ref_away(n.neg, false, n.m, (u128)1 << 126, round);
	} else {
		u128 rest = n.m & (((u128)1 << -n.exp) - 1);

		v = (int64_t)(n.m >> -n.exp);
		v += ref_away(n.neg, v & 1, rest, (u128)1 << (-n.exp - 1),
			      round);
	}
	v = n.neg ? -v : v;
	return v < low ? low : v > high ? high : v;
}

/* A float rounded to a whole number of its own format. */
static inline uint64_t ref_rint(const struct ref_fmt *f, uint64_t u, int round)
{
	struct ref_num n = ref_load(f, u);
	u128 rest;

	if (n.nan)
		return ref_pass(f, u, round);
	if (n.inf || n.exp >= 0 || !n.m)
		return u;
	if (n.exp < -120) {
		n.m = ref_away(n.neg, false, 1, 2, round);
	} else {
		rest = n.m & (((u128)1 << -n.exp) - 1);
		n.m >>= -n.exp;
		n.m += ref_away(n.neg, n.m & 1, rest,
				(u128)1 << (-n.exp - 1 < 0 ? 0 : -n.exp - 1),
				round);
	}
	n.exp = 0;
	return ref_store(f, n, round);
}

/* ---- order ---- */

enum { REF_LT = 1, REF_EQ = 2, REF_GT = 4, REF_UN = 8 };

static inline int ref_compare(const struct ref_fmt *f, uint64_t a, uint64_t b)
{
	struct ref_num x = ref_load(f, a), y = ref_load(f, b);
	uint64_t ma = ref_mag(f, a), mb = ref_mag(f, b);

	if (x.nan || y.nan)
		return REF_UN;
	if (!ma && !mb)
		return REF_EQ;
	if (x.neg != y.neg)
		return x.neg ? REF_LT : REF_GT;
	if (ma == mb)
		return REF_EQ;
	return (ma < mb) != x.neg ? REF_LT : REF_GT;
}

/* V_MIN and V_MAX: -0 is below +0; NaN as RDNA3 ISA 16.8 has it. */
static inline uint64_t ref_pick(const struct ref_fmt *f, uint64_t a, uint64_t b,
				bool max, bool ieee)
{
	int c = ref_compare(f, a, b);

	if (ieee && ref_is_snan(f, a))
		return a | ref_quiet(f);
	if (ieee && ref_is_snan(f, b))
		return b | ref_quiet(f);
	if (ref_is_nan(f, b))
		return a;
	if (ref_is_nan(f, a))
		return b;
	if (c == REF_EQ) /* differ in the sign of zero at most */
		c = (a & ref_sign(f)) > (b & ref_sign(f)) ? REF_LT : REF_GT;
	return (c == REF_LT) != max ? a : b;
}

/* ---- long double, for what is transcendental ---- */

static inline long double ref_value(const struct ref_fmt *f, uint64_t u)
{
	struct ref_num n = ref_load(f, u);
	long double v;

	if (n.nan)
		return NAN;
	v = n.inf ? INFINITY : ldexpl((long double)(uint64_t)n.m, n.exp);
	return n.neg ? -v : v;
}

/* Correctly rounded to nearest but for ties that 64 bits cannot tell. */
static inline uint64_t ref_from_value(const struct ref_fmt *f, long double v)
{
	struct ref_num n = { .neg = signbit(v), .inf = isinf(v),
			     .nan = isnan(v) };
	int e;

	if (!n.nan && !n.inf) {
		n.m = (u128)(uint64_t)ldexpl(frexpl(fabsl(v), &e), 64);
		n.exp = e - 64;
	}
	return ref_store(f, n, REF_EVEN);
}

/* Distance on the line of all floats of the format; NaNs are all alike. */
static inline uint64_t ref_ulps(const struct ref_fmt *f, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)ref_mag(f, a), y = (int64_t)ref_mag(f, b);

	if (ref_is_nan(f, a) || ref_is_nan(f, b))
		return ref_is_nan(f, a) == ref_is_nan(f, b) ? 0 : UINT64_MAX;
	x = a & ref_sign(f) ? -x : x;
	y = b & ref_sign(f) ? -y : y;
	return x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
}

#endif
