/*
 * ref-lane - what the rows of tests/ref/valu.def are written in.
 */
#ifndef T0_TESTS_REF_LANE_H
#define T0_TESTS_REF_LANE_H

#include "isa/tables/tables.h"
#include "kfd/soft/exec/exec.h" /* enum soft_mode */
#include "tests/ref/num.h"

enum ref_flag {
	ARITH = 1,    /* rounds, and obeys the denormal fields of MODE */
	TRANS = 2,    /* to be met within one unit in the last place */
	INTCLAMP = 4, /* obeys clamp as integers do: it saturates */
	PAIR = 8,     /* run once for each 16-bit half */
	MIX = 16,     /* sources are f32, or f16 as op_sel_hi says */
	DOT = 32,     /* within l->tolerance of the exact sum */
	NODEN = 64,   /* f32 denormals are zeros, whatever MODE says */
	OMOD = 128,   /* omod counts whatever MODE's denormals are */
};

struct ref_lane {
	uint64_t s[3];
	uint32_t wide[4];    /* of the last source, and of the result */
	uint8_t mods[3];     /* enum isa_mod */
	bool in, out, clamp; /* mask bits in and out */
	bool any_inf;	     /* a float source is infinite */
	bool skip;	     /* the manual does not say */
	int lane;	     /* 0..63 */
	uint32_t mode;
	long double tolerance;
};

/* ------------------------------------------------------------ integers ---- */

static inline int64_t s64(uint64_t u)
{
	return (int64_t)u;
}

static inline int64_t s32(uint64_t u)
{
	return (int32_t)u;
}

static inline int64_t s16(uint64_t u)
{
	return (int16_t)u;
}

static inline int64_t s24(uint64_t u)
{
	return (int64_t)(u << 40) >> 40;
}

static inline int64_t u24(uint64_t u)
{
	return (int64_t)(u & 0xffffff);
}

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The n-th of three in ascending order. */
static inline int64_t sorted(int64_t a, int64_t b, int64_t c, int n)
{
	int64_t low = least(least(a, b), c), high = most(most(a, b), c);

	return n == 0 ? low : n == 2 ? high : a + b + c - low - high;
}

/* The low `bits` of v, or v saturated to that many. */
static inline uint64_t fit(int64_t v, int bits, bool is_signed, bool clamp)
{
	int64_t high = (INT64_C(1) << (bits - is_signed)) - 1;

	if (clamp)
		v = least(most(v, is_signed ? -high - 1 : 0), high);
	return (uint64_t)v & ((UINT64_C(1) << bits) - 1);
}

static inline uint64_t carry(int64_t v, bool *out, bool clamp)
{
	*out = v < 0 || v >> 32;
	return fit(v, 32, false, clamp);
}

static inline uint64_t mad64(u128 v, bool *out, bool clamp)
{
	*out = v >> 64 != 0;
	return clamp && *out ? UINT64_MAX : (uint64_t)v;
}

static inline uint64_t mads64(int64_t product, int64_t c, bool *out, bool clamp)
{
	__int128 v = (__int128)product + c;

	*out = v < 0;
	if (clamp && v > INT64_MAX)
		return INT64_MAX;
	if (clamp && v < INT64_MIN)
		return (uint64_t)INT64_MIN;
	return (uint64_t)v;
}

static inline uint64_t reversed(uint64_t u)
{
	uint64_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (u >> i & 1) << (31 - i);
	return r;
}

static inline uint64_t first_one(uint64_t u)
{
	for (int i = 0; i < 32; i++)
		if (u >> i & 1)
			return (uint64_t)i;
	return UINT64_MAX;
}

/* How many bits below the sign's equal it, counted from it; -1: all. */
static inline uint64_t signs(uint64_t u)
{
	for (int i = 1; i < 32; i++)
		if ((u >> (31 - i) & 1) != (u >> 31 & 1))
			return (uint64_t)i;
	return UINT64_MAX;
}

static inline uint64_t ones(uint64_t u)
{
	uint64_t n = 0;

	for (; u; u >>= 1)
		n += u & 1;
	return n;
}

static inline uint64_t below(int lane)
{
	return (UINT64_C(1) << lane) - 1;
}

static inline uint64_t bfe_i32(uint64_t u, unsigned from, unsigned n)
{
	int64_t v = s32(u) >> from;

	return n ? (uint64_t)((int64_t)((uint64_t)v << (64 - n)) >> (64 - n)) :
		   0;
}

static inline uint64_t permuted(uint64_t a, uint64_t b, uint64_t sel)
{
	uint64_t from = a << 32 | b, r = 0;

	for (int i = 0; i < 4; i++) {
		unsigned n = sel >> 8 * i & 255;
		uint64_t v = n < 8   ? from >> 8 * n & 255 :
			     n < 12  ? (from >> (16 * (n - 8) + 15) & 1) * 255 :
			     n == 12 ? 0 :
				       255;

		r |= v << 8 * i;
	}
	return r;
}

static inline uint64_t lerp(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r = 0;

	for (int i = 0; i < 32; i += 8)
		r |= ((a >> i & 255) + (b >> i & 255) + (c >> i & 1)) / 2 << i;
	return r;
}

/* Sum of absolute differences; masked: bytes of b that are 0 do not count. */
static inline int64_t sad(uint64_t a, uint64_t b, int bits, bool masked)
{
	uint64_t mask = (UINT64_C(1) << bits) - 1;
	int64_t sum = 0;

	for (int i = 0; i < 32; i += bits) {
		int64_t x = s64(a >> i & mask), y = s64(b >> i & mask);

		sum += masked && !y ? 0 : x > y ? x - y : y - x;
	}
	return sum;
}

static inline uint64_t qsad(uint64_t a, uint64_t b, uint64_t c, bool masked,
			    bool clamp)
{
	uint64_t r = 0;

	for (int i = 0; i < 4; i++)
		r |= fit(sad(a >> 8 * i & UINT32_MAX, b, 8, masked) +
				 s64(c >> 16 * i & 0xffff),
			 16, false, clamp)
		     << 16 * i;
	return r;
}

static inline uint64_t mqsad32(struct ref_lane *l, uint64_t a, uint64_t b,
			       bool clamp)
{
	for (int i = 0; i < 4; i++)
		l->wide[i] = (uint32_t)fit(
			sad(a >> 8 * i & UINT32_MAX, b, 8, true) + l->wide[i],
			32, false, clamp);
	return 0;
}

static inline uint64_t pair(uint64_t low, uint64_t high)
{
	return (low & 0xffff) | (high & 0xffff) << 16;
}

static inline uint64_t put_byte(uint64_t c, uint64_t index, int64_t byte)
{
	uint64_t mask = UINT64_C(255) << 8 * (index % 4);

	return (c & ~mask) | (uint64_t)byte << 8 * (index % 4);
}

static inline uint64_t dot_int(uint64_t a, uint64_t b, uint64_t c, int bits,
			       bool sa, bool sb, bool is_signed, bool clamp)
{
	int64_t sum = is_signed ? s32(c) : s64(c), wrap = INT64_C(1) << bits;

	for (int i = 0; i < 32; i += bits) {
		int64_t x = s64(a >> i) & (wrap - 1),
			y = s64(b >> i) & (wrap - 1);

		x -= sa && x >= wrap / 2 ? wrap : 0;
		y -= sb && y >= wrap / 2 ? wrap : 0;
		sum += x * y;
	}
	return fit(sum, 32, is_signed, clamp);
}

/* -------------------------------------------------------------- floats ---- */

static inline bool zero32(uint64_t u)
{
	return !ref_mag(&F32, u);
}

/* A zero factor makes +0. */
static inline uint64_t dx9(uint64_t a, uint64_t b, uint64_t c, int round)
{
	if (!zero32(a) && !zero32(b))
		return ref_fma(&F32, a, b, c, round);
	return ref_add(&F32, 0, c, round);
}

/* b - a, whose first source is still a. */
static inline uint64_t rsub(const struct ref_fmt *f, uint64_t a, uint64_t b,
			    int round)
{
	uint64_t na = ref_is_nan(f, a) ? a : a ^ ref_sign(f);

	return ref_add(f, na, b, round);
}

static inline uint64_t min3(const struct ref_fmt *f, uint64_t a, uint64_t b,
			    uint64_t c, bool ieee)
{
	return ref_pick(f, ref_pick(f, a, b, false, ieee), c, false, ieee);
}

static inline uint64_t max3(const struct ref_fmt *f, uint64_t a, uint64_t b,
			    uint64_t c, bool ieee)
{
	return ref_pick(f, ref_pick(f, a, b, true, ieee), c, true, ieee);
}

static inline uint64_t med3(const struct ref_fmt *f, uint64_t a, uint64_t b,
			    uint64_t c, bool ieee)
{
	uint64_t top = max3(f, a, b, c, ieee);

	if (ref_is_nan(f, a) || ref_is_nan(f, b) || ref_is_nan(f, c))
		return min3(f, a, b, c, ieee);
	if (ref_compare(f, top, a) == REF_EQ)
		return ref_pick(f, b, c, true, ieee);
	if (ref_compare(f, top, b) == REF_EQ)
		return ref_pick(f, a, c, true, ieee);
	return ref_pick(f, a, b, true, ieee);
}

/* What overflowed is the largest number if MODE.FP16_OVFL says so. */
static inline uint64_t ovfl(const struct ref_lane *l, uint64_t u)
{
	bool over = ref_mag(&F16, u) == ref_inf(&F16) && !l->any_inf;

	return over && l->mode & SOFT_MODE_FP16_OVFL ? u - 1 : u;
}

static inline uint64_t ovfl32(const struct ref_lane *l, uint64_t from,
			      uint64_t u)
{
	return ref_mag(&F32, from) == ref_inf(&F32) ? u : ovfl(l, u);
}

static inline uint64_t widened(uint64_t half)
{
	return ref_convert(&F32, &F16, half, REF_SIGNAL);
}

/* a * b + c of f32 sources, rounded once to f16; a NaN comes through f32. */
static inline uint64_t mix_half(const struct ref_lane *l, uint64_t a,
				uint64_t b, uint64_t c, int round)
{
	const uint64_t as_f32 = ref_fma(&F32, a, b, c, round);
	const struct ref_num sum = ref_add_num(
		ref_mul_num(ref_load(&F32, a), ref_load(&F32, b)),
		ref_load(&F32, c), round);
	uint64_t u;

	if (ref_is_nan(&F32, as_f32))
		return ref_convert(&F16, &F32, as_f32, round);
	u = ref_store(&F16, sum, round);
	return ref_mag(&F16, u) == ref_inf(&F16) && !sum.inf &&
			       l->mode & SOFT_MODE_FP16_OVFL ?
		       u - 1 :
		       u;
}

static inline int by(int64_t n)
{
	return (int)least(most(n, -5000), 5000);
}

static inline uint64_t negated(uint64_t u)
{
	return u ^ ref_sign(&F32);
}

/* Cube maps: face, the two coordinates, twice the major axis. */
static inline uint64_t cube(struct ref_lane *l, uint64_t x, uint64_t y,
			    uint64_t z, int what)
{
	uint64_t ax = ref_mag(&F32, x), ay = ref_mag(&F32, y);
	uint64_t az = ref_mag(&F32, z);
	int axis = az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
	uint64_t major = axis == 2 ? z : axis == 1 ? y : x;
	bool neg = major & ref_sign(&F32) && ref_mag(&F32, major);

	l->skip |= ref_is_nan(&F32, x) || ref_is_nan(&F32, y) ||
		   ref_is_nan(&F32, z);
	switch (what) {
	case 0:
		return ref_from_int(&F32, 2 * axis + neg, REF_EVEN);
	case 1:
		return axis == 0 ? (neg ? z : negated(z)) :
		       axis == 2 && neg ? negated(x) :
					  x;
	case 2:
		return axis != 1 ? negated(y) : neg ? negated(z) : z;
	}
	return ref_scale(&F32, major, 1, l->mode & 3);
}

static inline uint64_t mullit(uint64_t a, uint64_t b, uint64_t c, int round)
{
	const uint64_t least_float = 0xff7fffff;

	if (ref_compare(&F32, b, least_float) & (REF_LT | REF_EQ | REF_UN) ||
	    ref_compare(&F32, c, 0) & (REF_LT | REF_EQ | REF_UN))
		return least_float;
	return ref_mul(&F32, a, b, round);
}

static inline uint64_t class_of(const struct ref_fmt *f, uint64_t u)
{
	bool neg = u & ref_sign(f);
	int n;

	if (ref_is_nan(f, u))
		return !ref_is_snan(f, u);
	n = ref_mag(f, u) == ref_inf(f) ? 3 :
	    !ref_mag(f, u)		? 0 :
	    ref_is_denormal(f, u)	? 1 :
					  2;
	return (uint64_t)(neg ? 5 - n : 6 + n);
}

static inline uint64_t half_up(uint64_t u)
{
	long double v = floorl(ref_value(&F32, u) + 0.5L);

	if (isnan(v))
		return 0;
	return (uint64_t)(v >= 0x1p31L	? INT32_MAX :
			  v < -0x1p31L ? INT32_MIN :
					 (int64_t)v);
}

/* [low, 1] times scale, to nearest even. */
static inline int64_t norm(const struct ref_fmt *f, uint64_t u, int low,
			   int scale)
{
	long double v = ref_value(f, u);

	v = isnan(v) ? 0 : v < low ? low : v > 1 ? 1 : v;
	return (int64_t)rintl(v * scale);
}

static inline uint64_t fract(const struct ref_fmt *f, uint64_t u, int round)
{
	int signal = round & REF_SIGNAL;
	uint64_t d = ref_sub(f, u, ref_rint(f, u, REF_DOWN | signal), round);

	if (ref_mag(f, u) == ref_inf(f))
		return ref_nan(f, NULL, 0, 0);
	return ref_is_nan(f, d) || d < ref_one(f) || d & ref_sign(f) ?
		       d :
		       ref_one(f) - 1;
}

static inline int64_t frexp_exp_of(const struct ref_fmt *f, uint64_t u)
{
	int e = 0;

	if (ref_mag(f, u) < ref_inf(f))
		frexpl(ref_value(f, u), &e);
	return e;
}

static inline uint64_t frexp_mant(const struct ref_fmt *f, uint64_t u)
{
	if (ref_is_nan(f, u))
		return u | ref_quiet(f);
	if (ref_mag(f, u) == ref_inf(f))
		return u;
	return ref_scale(f, u, (int)-frexp_exp_of(f, u), REF_EVEN);
}

/* ------------------------------------------------------------ division ---- */

static inline int biased(const struct ref_fmt *f, uint64_t u)
{
	return (int)(ref_mag(f, u) >> f->frac_bits);
}

/*
 * RDNA3 ISA 16.9, V_DIV_SCALE.  Left out: operands that are no numbers or
 * zero, and quotients or reciprocals so near the denormals that exponents
 * alone do not tell.
 */
static inline uint64_t div_scale(const struct ref_fmt *f, struct ref_lane *l,
				 uint64_t a, uint64_t b, uint64_t c)
{
	int bias = (1 << (f->exp_bits - 1)) - 1, up = f == &F32 ? 64 : 128;
	int far = f == &F32 ? 96 : 768, diff = biased(f, c) - biased(f, b);
	bool tiny_inverse = biased(f, b) > 2 * bias - 2;
	bool tiny_quotient = diff < -bias - 3;

	l->skip = !ref_mag(f, b) || !ref_mag(f, c) ||
		  ref_mag(f, a) >= ref_inf(f) || ref_mag(f, b) >= ref_inf(f) ||
		  ref_mag(f, c) >= ref_inf(f) || tiny_inverse ||
		  biased(f, b) > 2 * bias - 5 ||
		  (diff >= -bias - 3 && diff <= -bias + 3) ||
		  ref_is_denormal(f, a) || ref_is_denormal(f, c);
	l->out = diff >= far || (biased(f, b) && tiny_quotient);
	if (diff >= far)
		return a == b ? ref_scale(f, a, up, 0) : a;
	if (!biased(f, b))
		return ref_scale(f, a, up, 0);
	if (tiny_quotient)
		return a == c ? ref_scale(f, a, up, 0) : a;
	return biased(f, c) <= (f == &F32 ? 23 : 53) ? ref_scale(f, a, up, 0) :
						       a;
}

/* A selected lane is scaled up or down, as the addend is large or small. */
static inline uint64_t div_fmas(const struct ref_fmt *f, struct ref_lane *l,
				uint64_t a, uint64_t b, uint64_t c, int round)
{
	int bias = (1 << (f->exp_bits - 1)) - 1, up = f == &F32 ? 64 : 128;
	struct ref_num product = ref_mul_num(ref_load(f, a), ref_load(f, b));
	struct ref_num r = ref_add_num(product, ref_load(f, c), round);

	if (l->in)
		r.exp += biased(f, c) > bias ? up : -up;
	return ref_result(f, r, round, product.nan ? 2 : 3, a, b, c);
}

/*
 * Left out: quotients that are no normal numbers.  gfx1100 takes a half that is
 * infinite, or a NaN, for an overflow (AMD, rocjitsu's adjacent_fp_cases).
 */
static inline uint64_t div_fixup(const struct ref_fmt *f, struct ref_lane *l,
				 uint64_t q, uint64_t den, uint64_t num,
				 int round)
{
	const uint64_t nans[] = { num, den };
	uint64_t sign = (den ^ num) & ref_sign(f);
	uint64_t d = ref_mag(f, den), n = ref_mag(f, num);
	int bias = (1 << (f->exp_bits - 1)) - 1;

	if (n > ref_inf(f) || d > ref_inf(f) || (!n && !d) ||
	    (n == ref_inf(f) && d == ref_inf(f)))
		return ref_nan(f, nans, 2, 0);
	if (!d || n == ref_inf(f))
		return sign | ref_inf(f);
	if (d == ref_inf(f) || !n)
		return sign;
	if (f == &F16 && ref_mag(f, q) >= ref_inf(f))
		return sign | (l->mode & SOFT_MODE_FP16_OVFL ?
				       ref_inf(f) - 1 :
				       ref_overflow(f, sign, round));
	l->skip = ref_is_nan(f, q) ||
		  biased(f, num) - biased(f, den) < -bias + 2;
	return sign | ref_mag(f, q);
}

/* 2 / pi, 24 bits at a time. */
static inline uint64_t trig_preop(uint64_t x, uint64_t segment)
{
	static const uint32_t digits[] = {
		0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62,
		0x95993c, 0x439041, 0xfe5163, 0xabdebb, 0xc561b7, 0x246e3a,
		0x424dd2, 0xe00649, 0x2eea09, 0xd1921c, 0xfe1deb, 0x1cb129,
		0xa73ee8, 0x8235f5, 0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41,
		0x3991d6, 0x398353, 0x39f49c, 0x845f8b, 0xbdf928, 0x3b1ff8,
		0x97ffde, 0x05980f, 0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf,
		0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d, 0x7527ba, 0xc7ebe5,
		0xf17b3d, 0x0739f7, 0x8a5292, 0xea6bfb, 0x5fb11f, 0x8d5d08,
		0x560330, 0x46fc7b, 0x6babf0
	};
	int e = biased(&F64, x);
	int from = (int)(segment % 32) * 53 + (e > 1077 ? e - 1077 : 0);
	struct ref_num r = { .exp = -from - 53 + (e >= 1968 ? 128 : 0) };

	for (int i = from; i < from + 53; i++) {
		/* 1201 bits are there; beyond is 0. */
		unsigned bit = i < 1201 ?
				       digits[i / 24] >> (23 - i % 24) & 1 :
				       0;

		r.m = r.m << 1 | bit;
	}
	return ref_store(&F64, r, REF_EVEN);
}

/* -------------------------------------------------------- dot products ---- */

/* 2^e as the exponent field has it: a denormal's is that of the smallest. */
static inline long double magnitude(const struct ref_fmt *f, uint64_t u)
{
	int e = biased(f, u);

	return ref_mag(f, u) ? ldexpl(1, (e ? e : 1) -
					 ((1 << (f->exp_bits - 1)) - 1)) :
			       0;
}

/*
 * The sum of two products and c, where none overflows; only f16 factors may be
 * denormal.  How the chip cuts them is tested elsewhere.
 */
static inline uint64_t dot2(const struct ref_fmt *f, struct ref_lane *l,
			    uint64_t a, uint64_t b, uint64_t c)
{
	long double sum = ref_value(&F32, ref_flush(&F32, c));
	long double most_of = fabsl(sum);

	l->skip = ref_mag(&F32, c) >= ref_inf(&F32);
	for (int i = 0; i < 32; i += 16) {
		uint64_t x = a >> i & 0xffff, y = b >> i & 0xffff;
		long double p;

		x = f == &BF16 ? ref_flush(f, x) : x;
		y = f == &BF16 ? ref_flush(f, y) : y;
		p = ref_value(f, x) * ref_value(f, y);
		l->skip |= ref_mag(f, x) >= ref_inf(f) ||
			   ref_mag(f, y) >= ref_inf(f);
		sum += p;
		most_of = fmaxl(most_of,
				4 * magnitude(f, x) * magnitude(f, y));
	}
	l->skip |= most_of > 0x1p126L;
	l->tolerance = most_of * 0x1p-22L + 0x1p-120L;
	return ref_from_value(&F32, sum);
}

/* The two products one after the other, each fused and rounded. */
static inline uint64_t dot2_chain(const struct ref_fmt *f, struct ref_lane *l,
				  uint64_t a, uint64_t b, uint64_t c, int round)
{
	for (int i = 0; i < 32; i += 16) {
		uint64_t x = a >> i & 0xffff, y = b >> i & 0xffff;

		l->any_inf = ref_mag(f, x) == ref_inf(f) ||
			     ref_mag(f, y) == ref_inf(f) ||
			     ref_mag(f, c) == ref_inf(f);
		c = ref_fma(f, x, y, c, round);
		c = f == &F16 ? ovfl(l, c) : c;
	}
	return c;
}

/* ----------------------------------------------------- transcendentals ---- */

static inline uint64_t trans(const struct ref_fmt *f, uint64_t a, long double v,
			     int round)
{
	return ref_is_nan(f, a) ? ref_pass(f, a, round) : ref_from_value(f, v);
}

static inline uint64_t trans16(const struct ref_lane *l, uint64_t a,
			       long double v)
{
	uint64_t u = trans(&F16, a, v,
			   l->mode & SOFT_MODE_IEEE ? 0 : REF_SIGNAL);

	return ref_mag(&F16, a) != ref_inf(&F16) &&
			       ref_mag(&F16, u) == ref_inf(&F16) &&
			       l->mode & SOFT_MODE_FP16_OVFL ?
		       u - 1 :
		       u;
}

/* The sine of x turns and `quarter` quarters. */
static inline long double turns(long double x, int quarter)
{
	long double f = fmodl(x, 1) * 4, n = rintl(f);
	long double t = (f - n) * 1.57079632679489661923132169163975144L;

	if (!isfinite(x))
		return NAN;
	switch (((int)n + quarter) & 3) {
	case 0:
		return sinl(t);
	case 1:
		return cosl(t);
	case 2:
		return -sinl(t);
	}
	return -cosl(t);
}

#define TRANS_OF(f, v) (x = ref_value(f, a), trans(f, a, v, rs))
#define TRANS16(v)     (x = ref_value(&F16, a), trans16(l, a, v))
/* The f32 unit knows no denormals. */
#define TRANS32(v)                               \
	(x = ref_value(&F32, ref_flush(&F32, a)), \
	 ref_flush(&F32, trans(&F32, a, v, rs)))

#endif
