/*
 * compiler/ssa/float.c - small floating-point formats as bits.
 *
 * Conversion and fused multiply-add, rounded to nearest even, with denormals.
 */
#include <math.h>
#include <string.h>

#include "compiler/ssa/ssa.h"

/* Bits of exponent and of mantissa without the hidden one. */
struct format {
	int exp, man;
};

static struct format format_of(enum ssa_kind kind)
{
	return kind == SSA_BF16 ? (struct format){ 8, 7 } :
				  (struct format){ 5, 10 };
}

static double from_small(struct format f, uint64_t bits)
{
	const int bias = (1 << (f.exp - 1)) - 1;
	const int e = (int)(bits >> f.man) & ((1 << f.exp) - 1);
	const uint64_t m = bits & ((1u << f.man) - 1);
	double v;

	if (e == (1 << f.exp) - 1)
		v = m ? NAN : INFINITY;
	else if (!e)
		v = ldexp((double)m, 1 - bias - f.man);
	else
		v = ldexp((double)(m | 1ull << f.man), e - bias - f.man);
	return bits >> (f.exp + f.man) & 1 ? -v : v;
}

static uint64_t to_small(struct format f, double v)
{
	const int bias = (1 << (f.exp - 1)) - 1;
	const uint64_t sign = (uint64_t)(signbit(v) != 0) << (f.exp + f.man);
	const uint64_t inf = ((1ull << f.exp) - 1) << f.man;
	int e;

	if (isnan(v))
		return sign | inf | 1ull << (f.man - 1);
	if (isinf(v))
		return sign | inf;
	frexp(v, &e); /* v = 0.1xxx * 2^e */
	e = e - 1 < 1 - bias ? 1 - bias : e - 1;
	/* In units of the last place; rint() ties to even, as double can. */
	const double units = rint(ldexp(fabs(v), f.man - e));
	const uint64_t m = (uint64_t)units;
	uint64_t bits = m; /* a denormal, or what carries into the exponent */

	if (m >> f.man)
		bits = m + ((uint64_t)(e + bias - 1) << f.man);
	return sign | (bits >= inf ? inf : bits);
}

double ssa_bits_to_f64(enum ssa_kind kind, uint64_t bits)
{
	const uint32_t low = (uint32_t)bits;
	float f;
	double d;

	switch (kind) {
	case SSA_F64:
		memcpy(&d, &bits, 8);
		return d;
	case SSA_F32:
		memcpy(&f, &low, 4);
		return (double)f;
	default:
		return from_small(format_of(kind), bits);
	}
}

uint64_t ssa_f64_to_bits(enum ssa_kind kind, double v)
{
	const float f = (float)v;
	uint64_t bits = 0;

	switch (kind) {
	case SSA_F64:
		memcpy(&bits, &v, 8);
		return bits;
	case SSA_F32:
		memcpy(&bits, &f, 4);
		return bits;
	default:
		return to_small(format_of(kind), v);
	}
}

/*
 * p + c rounded to odd: if the sum is not exact, its last bit is set, so that
 * rounding it again to far fewer bits is the same as rounding once.
 */
static double add_odd(double p, double c)
{
	const double s = p + c;
	const double back = s - p;
	const double rest = (p - (s - back)) + (c - back);
	uint64_t bits;

	if (rest == 0 || !isfinite(s))
		return s;
	memcpy(&bits, &s, 8);
	if (!(bits & 1)) /* toward what is missing */
		bits += (rest > 0) == (s > 0) ? 1 : -1ull;
	memcpy(&p, &bits, 8);
	return p;
}

uint64_t ssa_fma_bits(enum ssa_kind kind, uint64_t a, uint64_t b, uint64_t c)
{
	const double x = ssa_bits_to_f64(kind, a), y = ssa_bits_to_f64(kind, b);
	const double z = ssa_bits_to_f64(kind, c);

	if (kind == SSA_F64)
		return ssa_f64_to_bits(kind, fma(x, y, z));
	if (kind == SSA_F32)
		return ssa_f64_to_bits(
			kind, (double)fmaf((float)x, (float)y, (float)z));
	return ssa_f64_to_bits(kind, add_odd(x * y, z));
}
