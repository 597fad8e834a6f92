/*
 * Division as compilers emit it for gfx1100 (the instruction sequences of LLVM
 * 19 for fdiv) is correctly rounded: compared with the host's division.  Also
 * div_scale and div_fmas alone, and the bits of 2/pi.
 */
#include <fenv.h>
#include <math.h>

#include "base/float.h"
#include "tests/code.h"
#include "tests/exec/lanes.h"

/* A division of vop3-div.s, as compilers write it. */
static void run_division(struct lanes *t, const char *label)
{
	struct code c = code_of("tests/exec/vop3-div.s", label);

	lanes_run(t, c.dw, (int)c.n);
}

/*
 * Bits of a number: any exponent, or special, or quotients near the limits,
 * in a format with `mant` significand and `exp` exponent bits.
 */
static uint64_t random_bits(uint64_t *seed, int mant, int exp)
{
	uint64_t u = lanes_random(seed);
	uint64_t m = u & ((1ull << mant) - 1), sign = u >> 63;
	uint64_t e = (u >> mant) & ((1ull << exp) - 1);

	switch (lanes_random(seed) % 12) {
	case 0:
		e = 0; /* denormal */
		break;
	case 1:
		e = 0;
		m &= 7;
		break;
	case 2:
		e = (1ull << exp) - 2 - u % 3;
		break;
	case 3:
		m = 0; /* power of two */
		break;
	case 4:
		m = (1ull << mant) - 1 - (m & 3);
		break;
	case 5:
		e = (1ull << exp) - 1; /* infinity */
		m = 0;
		break;
	}
	return sign << (mant + exp) | e << mant | m;
}

static bool nan_bits64(uint64_t u)
{
	return (u << 1) > 0xffe0000000000000;
}

#define ROUNDS 4000

static void test_f32(uint64_t seed)
{
	struct lanes *t = lanes_new(32);
	int bad = 0;

	for (int n = 0; n < ROUNDS; n++) {
		for (int i = 0; i < SOFT_LANES; i++) {
			t->v[0][0][i] = (uint32_t)random_bits(&seed, 23, 8);
			t->v[0][1][i] = (uint32_t)random_bits(&seed, 23, 8);
		}
		run_division(t, "div32");
		for (int i = 0; i < SOFT_LANES; i++) {
			uint32_t a = t->v[0][0][i], b = t->v[0][1][i];
			uint32_t got = t->v[0][3][i];
			float want = f32_value(a) / f32_value(b);

			if (isnan(want) ? isnan(f32_value(got)) :
					  got == f32_bits(want))
				continue;
			if (!bad++)
				diag("%08x / %08x = %08x, wanted %08x", a, b,
				     got, f32_bits(want));
		}
	}
	is_u64(bad, 0, "f32 division is correctly rounded, denormals too");
	lanes_free(t);
}

static void test_f64(uint64_t seed)
{
	struct lanes *t = lanes_new(32);
	int bad = 0;

	for (int n = 0; n < ROUNDS; n++) {
		for (int i = 0; i < SOFT_LANES; i++)
			for (int k = 0; k < 4; k += 2) {
				uint64_t u = random_bits(&seed, 52, 11);

				t->v[0][k][i] = (uint32_t)u;
				t->v[0][k + 1][i] = (uint32_t)(u >> 32);
			}
		run_division(t, "div64");
		for (int i = 0; i < SOFT_LANES; i++) {
			uint64_t a = lanes_get64(t, 0, i);
			uint64_t b = lanes_get64(t, 2, i);
			uint64_t got = lanes_get64(t, 6, i);
			uint64_t want = f64_bits(f64_value(a) / f64_value(b));

			if (nan_bits64(want) ? nan_bits64(got) : got == want)
				continue;
			if (!bad++)
				diag("%016llx / %016llx = %016llx, wanted "
				     "%016llx",
				     (unsigned long long)a,
				     (unsigned long long)b,
				     (unsigned long long)got,
				     (unsigned long long)want);
		}
	}
	is_u64(bad, 0, "f64 division is correctly rounded, denormals too");
	lanes_free(t);
}

static double half_value(uint32_t h)
{
	int e = h >> 10 & 31, m = h & 0x3ff;
	double v = e == 31 ? (m ? NAN : INFINITY) :
			     ldexp(e ? m | 0x400 : m, (e ? e : 1) - 25);

	return h & 0x8000 ? -v : v;
}

/* The f16 nearest to v, ties to even: v is far from any other tie. */
static uint32_t half_nearest(double v)
{
	uint32_t sign = signbit(v) ? 0x8000 : 0;
	double a = fabs(v);
	int e;

	if (isnan(v))
		return 0x7e00;
	if (a >= 65520)
		return sign | 0x7c00;
	if (a == 0)
		return sign;
	frexp(a, &e);
	e = e < -13 ? -13 : e;
	double m = nearbyint(ldexp(a, 11 - e));

	/* m has the implied bit iff the number is normal. */
	return sign | (uint32_t)(m + ((e + 13) << 10));
}

static void test_f16(uint64_t seed)
{
	struct lanes *t = lanes_new(32);
	int bad = 0;

	for (int n = 0; n < ROUNDS; n++) {
		for (int i = 0; i < SOFT_LANES; i++) {
			t->v[0][0][i] = (uint32_t)random_bits(&seed, 10, 5);
			t->v[0][1][i] = (uint32_t)random_bits(&seed, 10, 5);
		}
		run_division(t, "div16");
		for (int i = 0; i < SOFT_LANES; i++) {
			uint32_t a = t->v[0][0][i], b = t->v[0][1][i];
			uint32_t got = t->v[0][3][i] & 0xffff;
			uint32_t want =
				half_nearest(half_value(a) / half_value(b));

			if (want == 0x7e00 ? (got & 0x7fff) > 0x7c00 :
					     got == want)
				continue;
			if (!bad++)
				diag("%04x / %04x = %04x, wanted %04x", a, b,
				     got, want);
		}
	}
	is_u64(bad, 0, "f16 division is correctly rounded");
	lanes_free(t);
}

/* One lane of one instruction on f32 v0, v1, v2; the mask is VCC. */
static void scale32(const char *why, uint32_t mode, uint32_t s0, uint32_t s1,
		    uint32_t s2, uint32_t want, bool vcc)
{
	/* v_div_scale_f32 v3, vcc_lo, v0, v1, v2 */
	static const char code[] = "v_div_scale_f32 v3, vcc_lo, v0, v1, v2";
	struct lanes *t = lanes_new(32);

	lanes_set(t, 0, s0);
	lanes_set(t, 1, s1);
	lanes_set(t, 2, s2);
	t->w.mode = mode;
	lanes_text(t, code);
	is_u64(t->v[0][3][0], want, "div_scale_f32: %s", why);
	is_u64(t->w.s[ISA_R_VCC_LO] & 1, vcc, "div_scale_f32: %s, VCC", why);
	lanes_free(t);
}

static void test_scale(void)
{
	const uint32_t one = 0x3f800000, huge = 0x7f000000, nan = 0x7fc00000;
	const uint32_t least = 0x00800000, m = LANES_MODE;

	scale32("nothing to do", m, one, 0x40800000, one, one, false);
	scale32("zero denominator", m, one, 0, one, nan, true);
	scale32("zero numerator", m, 0, one, 0, nan, true);
	scale32("near overflow, denominator", m, one, one, 0x7f7fffff,
		0x5f800000, true);
	scale32("near overflow, numerator", m, 0x7f7fffff, one, 0x7f7fffff,
		0x7f7fffff, true);
	scale32("1 / 2^127, numerator", m, one, huge, one, one, true);
	scale32("1 / 2^127, denominator", m, huge, huge, one, 0x5f000000, true);
	scale32("2^-126 / 1, numerator", m, least, one, least, 0x20800000,
		true);
	scale32("2^-126 / 1, denominator", m, one, one, least, one, true);
	scale32("denormal denominator is flushed", m & ~0x30u, 1, 1, one, nan,
		true);
	scale32("tiny numerator, denominator too", m, 0x05000000, 0x05000000,
		0x05000000, 0x25000000, false);
}

/* v_div_fmas_f32 v3, v0, v1, v2: VCC scales by 2^64, down if |v2| < 2. */
static void test_fmas(void)
{
	static const char code[] = "v_div_fmas_f32 v3, v0, v1, v2";
	struct lanes *t = lanes_new(32);

	lanes_set(t, 0, 0x3f800000);
	lanes_set(t, 1, 0x3f800000);
	lanes_set(t, 2, 0x3f800000);
	t->v[0][2][2] = 0x40000000;
	t->w.s[ISA_R_VCC_LO] = 5;
	lanes_text(t, code);
	is_u64(t->v[0][3][0], 0x20000000, "div_fmas: 2 * 2^-64");
	is_u64(t->v[0][3][1], 0x40000000, "div_fmas: no VCC, no scale");
	is_u64(t->v[0][3][2], 0x60400000, "div_fmas: 3 * 2^64");
	/* (1 + 2^-23) * 2^-70 - 2^-149: two roundings would give 2^-134 */
	lanes_set(t, 0, 0x1c800001);
	lanes_set(t, 1, 0x3f800000);
	lanes_set(t, 2, 0x80000001);
	t->w.s[ISA_R_VCC_LO] = 1;
	lanes_text(t, code);
	is_u64(t->v[0][3][0], 0x00008000, "div_fmas: a denormal, rounded once");
	lanes_free(t);
}

/* ---------------------------------------------------------------- 2/pi ---- */

/* Fixed point: word 0 whole, words 1.. fraction, most significant first. */
#define WORDS 42

struct fixed {
	uint32_t w[WORDS];
};

static void divide(struct fixed *f, uint32_t by)
{
	uint64_t rest = 0;

	for (int i = 0; i < WORDS; i++) {
		rest = rest << 32 | f->w[i];
		f->w[i] = (uint32_t)(rest / by);
		rest %= by;
	}
}

static bool is_zero(const struct fixed *f)
{
	for (int i = 0; i < WORDS; i++)
		if (f->w[i])
			return false;
	return true;
}

static void accumulate(struct fixed *f, const struct fixed *g, bool subtract)
{
	int64_t carry = 0;

	for (int i = WORDS - 1; i >= 0; i--) {
		carry += subtract ? (int64_t)f->w[i] - g->w[i] :
				    (int64_t)f->w[i] + g->w[i];
		f->w[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

/* sum += times * atan(1 / x) */
static void add_atan(struct fixed *sum, uint32_t times, uint32_t x, bool negate)
{
	struct fixed power = { { times } };

	divide(&power, x);
	for (uint32_t n = 1; !is_zero(&power); n += 2) {
		struct fixed term = power;

		divide(&term, n);
		accumulate(sum, &term, negate ^ (n & 2));
		divide(&power, x);
		divide(&power, x);
	}
}

/* pi = 24 atan(1/8) + 8 atan(1/57) + 4 atan(1/239), Stoermer's formula */
static struct fixed pi(void)
{
	struct fixed p = { { 0 } };

	add_atan(&p, 24, 8, false);
	add_atan(&p, 8, 57, false);
	add_atan(&p, 4, 239, false);
	return p;
}

/* p * (the 53-bit integer m) * 2^-shift added to sum, 53 <= shift */
static void add_product(struct fixed *sum, const struct fixed *p, uint64_t m,
			int shift)
{
	for (int bit = 0; bit < 53; bit++) {
		int down = shift - bit, words = down / 32, bits = down % 32;
		struct fixed term = { { 0 } };

		if (!(m >> bit & 1))
			continue;
		for (int i = WORDS - 1; i >= words; i--) {
			uint64_t v = p->w[i - words];

			if (i > words)
				v |= (uint64_t)p->w[i - words - 1] << 32;
			term.w[i] = (uint32_t)(v >> bits);
		}
		accumulate(sum, &term, false);
	}
}

/* v_trig_preop_f64 v[6:7], v[0:1], v2 */
static double preop(struct lanes *t, double x, uint32_t segment)
{
	static const char code[] = "v_trig_preop_f64 v[6:7], v[0:1], v2";

	lanes_set64(t, 0, f64_bits(x));
	lanes_set(t, 2, segment);
	lanes_text(t, code);
	return f64_value(lanes_get64(t, 6, 0));
}

/* The segments, put together and multiplied by pi, are just below 2. */
static void test_preop(void)
{
	struct lanes *t = lanes_new(32);
	struct fixed p = pi(), product = { { 0 } };
	int ones = 0;

	is_u64(p.w[0], 3, "pi: whole part");
	is_u64(p.w[1], 0x243f6a88, "pi: first bits of the fraction");
	for (int i = 0; i < 19; i++) {
		double v = preop(t, 1.0, i);
		int shift = 53 * (i + 1);

		add_product(&product, &p, (uint64_t)ldexp(v, shift), shift);
	}
	is_u64(product.w[0], 1, "19 segments * pi: whole part");
	while (ones < 32 * (WORDS - 1) &&
	       product.w[1 + ones / 32] >> (31 - ones % 32) & 1)
		ones++;
	/* 19 * 53 bits of 2/pi are short of it by less than 2^-1007. */
	ok(ones >= 19 * 53 - 2, "2 - segments * pi < 2^-%d", 19 * 53 - 2);
	/*
	 * Exponent 1077 + 5: the window is five bits further on, and shifted.
	 */
	is_u64((uint64_t)ldexp(preop(t, 0x1p59, 0), 58) >> 5,
	       (uint64_t)ldexp(preop(t, 1.0, 0), 53) & 0xffffffffffff,
	       "2^59: the window begins five bits later");
	/* 2^945 has exponent 1968 and gets 2^128 back; one more bit is gone. */
	is_u64((uint64_t)ldexp(preop(t, 0x1p945, 0), 53 + 891 - 128) >> 1,
	       (uint64_t)ldexp(preop(t, 0x1p944, 0), 53 + 890) &
		       0xfffffffffffff,
	       "2^945: scaled by 2^128");
	is_f64(preop(t, 1.0, 31), 0.0, "behind the table are zeros");
	lanes_free(t);
}

int main(void)
{
	uint64_t seed = 20231;

	diag("seed %llu", (unsigned long long)seed);
	test_f32(seed);
	test_f64(seed);
	test_f16(seed);
	test_scale();
	test_fmas();
	test_preop();
	return plan_done();
}
