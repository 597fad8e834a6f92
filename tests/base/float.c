/*
 * Narrow floats: every 16-bit pattern there and back, constants by hand, the
 * compiler's own _Float16, and a search through all values for bf16.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/float.h"
#include "tests/tap.h"

static double bits_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, 8);
	return d;
}

/* xorshift64* by Vigna. */
static uint64_t next_random(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * UINT64_C(0x2545f4914f6cdd1d);
}

static void by_hand(void)
{
	static const struct {
		double v;
		int exp_bits, man_bits;
		uint64_t bits;
	} known[] = {
		{ 1.0, 5, 10, 0x3c00 },	      { -2.0, 5, 10, 0xc000 },
		{ 65504.0, 5, 10, 0x7bff },   { 65519.99, 5, 10, 0x7bff },
		{ 65520.0, 5, 10, 0x7c00 },   { 0x1p-24, 5, 10, 0x0001 },
		{ 0x1p-25, 5, 10, 0x0000 },   { 0x1.8p-25, 5, 10, 0x0001 },
		{ 0x1.002p0, 5, 10, 0x3c00 }, { 0x1.006p0, 5, 10, 0x3c02 },
		{ 0x1.0020000001p0, 5, 10, 0x3c01 },
		{ 0x1.ffep-15, 5, 10, 0x0400 }, { -0.0, 5, 10, 0x8000 },
		{ 1.0, 8, 7, 0x3f80 },	      { 3.0e38, 8, 7, 0x7f62 },
		{ 0x1.ffp127, 8, 7, 0x7f80 }, { 0x1.01p0, 8, 7, 0x3f80 },
		{ 0x1.03p0, 8, 7, 0x3f82 },   { 0x1.01000001p0, 8, 7, 0x3f81 },
		/* Rounded to f32 first, this would be a tie and end below. */
		{ 0x1.0100000001p0, 8, 7, 0x3f81 },
		{ 0x1p-133, 8, 7, 0x0001 },   { 1.0, 8, 23, 0x3f800000 },
		{ 0.1, 8, 23, 0x3dcccccd },
		{ 0.1, 11, 52, 0x3fb999999999999a },
		{ -INFINITY, 5, 10, 0xfc00 }, { INFINITY, 8, 7, 0x7f80 },
		{ NAN, 5, 10, 0x7e00 },	      { NAN, 8, 7, 0x7fc0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		is_u64(float_bits(known[i].v, known[i].exp_bits,
				  known[i].man_bits),
		       known[i].bits, "%a in %d + %d bits", known[i].v,
		       known[i].exp_bits, known[i].man_bits);
}

static void every_pattern(int exp_bits, int man_bits, const char *name)
{
	int wrong = 0, not_nan = 0, order = 0;
	double last = -INFINITY;

	for (uint32_t b = 0; b < 0x10000; b++) {
		uint32_t frac = b & ((1u << man_bits) - 1);
		bool nan = (b >> man_bits & ((1u << exp_bits) - 1)) ==
				   (1u << exp_bits) - 1 && frac;
		double v = float_value(b, exp_bits, man_bits);

		if (nan)
			not_nan += !isnan(v);
		else
			wrong += float_bits(v, exp_bits, man_bits) != b;
		/* Positive patterns count upwards. */
		if (!nan && b < 0x8000) {
			order += b && !(v > last);
			last = v;
		}
	}
	is_u64((uint64_t)wrong, 0, "%s: all 65536 patterns come back", name);
	is_u64((uint64_t)not_nan, 0, "%s: NaN is NaN", name);
	is_u64((uint64_t)order, 0, "%s: larger patterns are larger", name);
}

/* Random doubles of all sizes that f16 has, and places between its values. */
static void against_compiler(uint64_t seed)
{
#ifdef __FLT16_MAX__
	int wrong = 0;

	for (int i = 0; i < 400000; i++) {
		uint64_t r = next_random(&seed);
		/* Exponents from 2^-30 to 2^17. */
		double v = bits_double((r & UINT64_C(0x800fffffffffffff)) |
				       (1023 - 30 + (r >> 52) % 48) << 52);
		_Float16 h;
		uint16_t bits;

		if (i & 1)
			v = (float_value(r & 0x7bff, 5, 10) +
			     float_value((r & 0x7bff) + 1, 5, 10)) / 2;
		h = (_Float16)v;
		memcpy(&bits, &h, 2);
		wrong += float_bits(v, 5, 10) != bits;
	}
	is_u64((uint64_t)wrong, 0, "400000 doubles round to f16 as the "
				   "compiler rounds them");
#else
	(void)seed;
	skip("this compiler has no _Float16");
#endif
}

/* The nearest bf16 by looking at the values around; ties go to the even. */
static uint32_t nearest_bf16(double v)
{
	uint32_t low = 0, high = 0x7f80;

	while (high - low > 1) {
		uint32_t mid = (low + high) / 2;

		if (float_value(mid, 8, 7) <= v)
			low = mid;
		else
			high = mid;
	}
	/* Infinity begins where the next value would be. */
	double above = high == 0x7f80 ? 0x1p128 : float_value(high, 8, 7);
	double down = v - float_value(low, 8, 7), up = above - v;

	return down < up || (down == up && !(low & 1)) ? low : high;
}

static void against_search(uint64_t seed)
{
	int wrong = 0;

	for (int i = 0; i < 200000; i++) {
		uint64_t r = next_random(&seed);
		double v = bits_double((r & UINT64_C(0xfffffffffffff)) |
				       (1023 - 140 + (r >> 52) % 268) << 52);

		if (i & 1)
			v = (float_value(r & 0x7f7e, 8, 7) +
			     float_value((r & 0x7f7e) + 1, 8, 7)) / 2;
		wrong += float_bits(v, 8, 7) != nearest_bf16(v);
	}
	is_u64((uint64_t)wrong, 0, "200000 doubles round to the nearest bf16");
}

int main(void)
{
	const char *given = getenv("T0_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 20260704;

	diag("T0_SEED=%llu", (unsigned long long)seed);
	by_hand();
	every_pattern(5, 10, "f16");
	every_pattern(8, 7, "bf16");
	against_compiler(seed);
	against_search(seed);
	return plan_done();
}
