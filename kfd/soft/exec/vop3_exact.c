/*
 * kfd/soft/exec/vop3_exact.c - the rare cases of division and argument
 * reduction.
 *
 * In integer arithmetic, on the bits of any binary format.
 */
#include "kfd/soft/exec/vop3.h"

const struct soft_format soft_format_f16 = { 10, 31, 15 };
const struct soft_format soft_format_f32 = { 23, 255, 127 };
const struct soft_format soft_format_f64 = { 52, 2047, 1023 };

/* ------------------------------------------------------ fused multiply ---- */

typedef unsigned __int128 u128;

/* (-1)^neg * m * 2^exp; m is 0 or has bit TOP set. */
struct wide {
	u128 m;
	int exp;
	bool neg;
};
#define TOP 125

static struct wide normalise_wide(u128 m, int exp, bool neg)
{
	for (int step = 64; step; step >>= 1)
		if (m && !(m >> (TOP + 1 - step))) {
			m <<= step;
			exp -= step;
		}
	return (struct wide){ m, exp, neg };
}

/* The significand of a finite double and its exponent. */
static uint64_t split_double(double v, int *exp)
{
	uint64_t u = f64_bits(v), m = u & 0xfffffffffffffull;
	int e = u >> 52 & 0x7ff;

	*exp = (e ? e : 1) - 1075;
	return e ? m | 1ull << 52 : m;
}

/* m >> n, with a one in bit 0 if anything was lost. */
static u128 shift_sticky(u128 m, int n)
{
	if (n > 127)
		return m != 0;
	return n ? m >> n | ((m & (((u128)1 << n) - 1)) != 0) : m;
}

static struct wide add_wide(struct wide a, struct wide b)
{
	if (!a.m || (b.m && b.exp > a.exp)) {
		struct wide t = a;

		a = b;
		b = t;
	}
	/* Bits lost here lie below a gap that no cancellation can close. */
	b.m = b.m ? shift_sticky(b.m, a.exp - b.exp) : 0;
	if (a.neg == b.neg) {
		u128 m = a.m + b.m;

		return m >> (TOP + 1) ? (struct wide){ shift_sticky(m, 1),
						       a.exp + 1, a.neg } :
					normalise_wide(m, a.exp, a.neg);
	}
	if (b.m > a.m)
		return normalise_wide(b.m - a.m, a.exp, b.neg);
	return normalise_wide(a.m - b.m, a.exp, a.neg);
}

static double max_finite(const struct soft_format *f)
{
	uint64_t m = (1ull << (f->mant_bits + 1)) - 1;

	return (double)m *
	       f64_value((uint64_t)(f->bias - f->mant_bits + 1023) << 52);
}

/* m * 2^exp without rounding; the result is known to be a double. */
static double exact_double(uint64_t m, int exp)
{
	double v = (double)m;

	for (; exp < -1000; exp += 1000)
		v *= 0x1p-1000;
	for (; exp > 1000; exp -= 1000)
		v *= 0x1p1000;
	return v * f64_value((uint64_t)(exp + 1023) << 52);
}

/* Without its last `drop` bits, rounded. */
static uint64_t drop_bits(struct wide v, int drop, unsigned round)
{
	u128 kept = drop > 127 ? 0 : v.m >> drop;
	u128 twice = drop > 127 ? 1 :
				  shift_sticky(v.m << 1, drop - 1) - 4 * kept;
	uint64_t m = (uint64_t)kept;

	/* Of the dropped part: 0 none, 1 below half, 2 half, 3 above. */
	return m + soft_round_away(round, v.neg, m & 1, (uint32_t)twice, 2);
}

static double round_wide(const struct soft_format *f, struct wide v,
			 unsigned round, bool flush)
{
	/* Exponent of the last bit that the result may have. */
	int last = v.exp + TOP - f->mant_bits, min = 1 - f->bias - f->mant_bits;
	int drop = (last > min ? last : min) - v.exp;
	uint64_t m = drop_bits(v, drop, round);
	double r;

	/* One below the least exponent, it may round up to it. */
	if (flush && last < min &&
	    (last < min - 1 || !(drop_bits(v, last - v.exp, round) >>
				 (f->mant_bits + 1))))
		return v.neg ? -0.0 : 0.0;
	if (m && 64 - __builtin_clzll(m) + v.exp + drop > f->bias + 1) {
		bool inf = round == 0 || round == (v.neg ? 2u : 1u);

		r = inf ? __builtin_inf() : max_finite(f);
	} else {
		r = exact_double(m, v.exp + drop);
	}
	return v.neg ? -r : r;
}

double soft_fma_scaled(const struct soft_format *to, double a, double b,
		       double c, int scale, unsigned round, bool flush)
{
	double p = a * b;
	int ea, eb, ec;
	uint64_t neg = (f64_bits(a) ^ f64_bits(b)) & F64_SIGN;

	if (!(a - a == 0 && b - b == 0 && c - c == 0))
		return a - a == 0 && b - b == 0 ? c : p + c;
	if ((a == 0 || b == 0) && c == 0 && neg == (f64_bits(c) & F64_SIGN))
		return c;

	u128 ma = split_double(a, &ea), mc;

	ma *= split_double(b, &eb);
	mc = split_double(c, &ec);
	struct wide sum =
		add_wide(normalise_wide(ma, ea + eb, neg),
			 normalise_wide(mc, ec, f64_bits(c) & F64_SIGN));

	if (!sum.m)
		return round == 2 ? -0.0 : 0.0;
	sum.exp += scale;
	return round_wide(to, sum, round, flush);
}

/* ------------------------------------------------------------ division ---- */

struct parts {
	uint64_t mag; /* without the sign */
	int exp;      /* as encoded */
	bool neg, nan, inf, zero;
};

static uint64_t inf_bits(const struct soft_format *f)
{
	return (uint64_t)f->exp_max << f->mant_bits;
}

static uint64_t sign_bit(const struct soft_format *f)
{
	return (uint64_t)(f->exp_max + 1) << f->mant_bits;
}

static uint64_t quiet_bit(const struct soft_format *f)
{
	return 1ull << (f->mant_bits - 1);
}

static struct parts parts_of(const struct soft_format *f, uint64_t u)
{
	struct parts p = { .mag = u & (sign_bit(f) - 1) };

	p.exp = (int)(p.mag >> f->mant_bits);
	p.neg = u & sign_bit(f);
	p.nan = p.mag > inf_bits(f);
	p.inf = p.mag == inf_bits(f);
	p.zero = !p.mag;
	return p;
}

/* u * 2^by for f32 and f64 */
static uint64_t scale_bits(const struct soft_format *f, uint64_t u, int by,
			   bool ieee)
{
	double two = f64_value((uint64_t)(by + 1023) << 52);

	if (parts_of(f, u).nan)
		return u | (ieee ? quiet_bit(f) : 0);
	if (f->mant_bits == 23)
		return f32_bits((float)(f32_value((uint32_t)u) * two));
	return f64_bits(f64_value(u) * two);
}

/*
 * num / den as the compiler emits it: div_scale of both, a reciprocal, Newton
 * steps, div_fmas, div_fixup.  Scaling keeps the steps away from denormals and
 * overflow.  Denormal quotients and reciprocals are foreseen from the encoded
 * exponents alone, which is what gfx1100 does: 2^-126 / 1 is scaled although
 * it is normal.  Where both the reciprocal and the quotient would be denormal
 * the manual scales the denominator up, which would overflow; it goes down.
 */
uint64_t soft_div_scale(const struct soft_format *f, uint64_t s0, uint64_t s1,
			uint64_t s2, bool ieee, bool *vcc)
{
	struct parts den = parts_of(f, s1), num = parts_of(f, s2);
	bool f64 = f->mant_bits == 52;
	int up = f64 ? 128 : 64, far = f64 ? 768 : 96;
	int diff = num.exp - den.exp;
	bool small_inv = f->bias - den.exp <= 1 - f->bias;
	bool small_quot = diff <= 1 - f->bias;

	*vcc = true;
	if (num.zero || den.zero)
		return sign_bit(f) - quiet_bit(f); /* positive quiet NaN */
	if (diff >= far)
		return s0 == s1 ? scale_bits(f, s0, up, ieee) : s0;
	if (den.exp != 0 && small_inv && small_quot)
		return s0 == s1 ? scale_bits(f, s0, -up, ieee) : s0;
	if (den.exp != 0 && !small_inv && small_quot)
		return s0 == s2 ? scale_bits(f, s0, up, ieee) : s0;
	*vcc = false;
	if (den.exp == 0)
		return scale_bits(f, s0, up, ieee);
	if (small_inv)
		return scale_bits(f, s0, -up, ieee);
	return num.exp <= (f64 ? 53 : 23) ? scale_bits(f, s0, up, ieee) : s0;
}

/*
 * The addend is the quotient before its last correction: it is large exactly
 * if div_scale made it too small.
 */
int soft_div_fmas_scale(const struct soft_format *f, uint64_t s2)
{
	int up = f->mant_bits == 52 ? 128 : 64;

	return parts_of(f, s2).exp > f->bias ? up : -up;
}

/* A magnitude too large or too small, as `round` turns it. */
static uint64_t round_beyond(const struct soft_format *f, bool large, bool neg,
			     unsigned round)
{
	bool outward = round == (neg ? 2u : 1u);

	if (large)
		return inf_bits(f) - !(outward || round == 0);
	return outward;
}

uint64_t soft_div_fixup(const struct soft_format *f, uint64_t s0, uint64_t s1,
			uint64_t s2, unsigned round, bool ovfl)
{
	struct parts q = parts_of(f, s0), den = parts_of(f, s1);
	struct parts num = parts_of(f, s2);
	bool neg = den.neg != num.neg;
	uint64_t sign = neg ? sign_bit(f) : 0;
	/* Quotients below half the smallest denormal; f16 has no such rule. */
	int lowest = f->mant_bits == 10 ? INT32_MIN
					: 1 - f->bias - f->mant_bits - 1;

	if (num.nan)
		return s2 | quiet_bit(f);
	if (den.nan)
		return s1 | quiet_bit(f);
	if ((den.zero && num.zero) || (den.inf && num.inf))
		return sign_bit(f) | inf_bits(f) | quiet_bit(f);
	if (den.zero || num.inf)
		return sign | inf_bits(f);
	if (den.inf || num.zero)
		return sign;
	if (num.exp - den.exp < lowest)
		return sign | round_beyond(f, false, neg, round);
	/*
	 * gfx1100: an estimate that came out as NaN means overflow, and so does
	 * an infinite half (AMD, rocjitsu's adjacent_fp_cases).
	 */
	if (q.nan || (q.inf && f->mant_bits == 10))
		return sign | (ovfl ? inf_bits(f) - 1 :
				      round_beyond(f, true, neg, round));
	return sign | q.mag;
}

/* -------------------------------------------------- argument reduction ---- */

/*
 * The first 1201 bits of 2/pi after the binary point, most significant first.
 * Computed as floor(2^1202 / pi) with pi from Machin's formula, 16 atan(1/5) -
 * 4 atan(1/239), in integers; the test derives them again another way.
 */
static const uint64_t two_over_pi[] = {
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
	0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
	0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
	0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
	0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
	0x56033046fc7b0000,
};

static uint64_t pi_word(unsigned i)
{
	return i < ARRAY_SIZE(two_over_pi) ? two_over_pi[i] : 0;
}

/* RDNA3 ISA, V_TRIG_PREOP_F64: bits [shift, shift + 53) behind the point. */
double soft_trig_preop(double x, uint32_t segment)
{
	int exp = f64_bits(x) >> 52 & 0x7ff;
	int shift = (segment & 31) * 53 + (exp > 1077 ? exp - 1077 : 0);
	unsigned word = shift / 64, bit = shift % 64;
	uint64_t v = pi_word(word) << bit;

	if (bit)
		v |= pi_word(word + 1) >> (64 - bit);
	/* Large arguments get 2^128 back, so that nothing becomes denormal. */
	return exact_double(v >> 11, -53 - shift + (exp >= 1968 ? 128 : 0));
}
