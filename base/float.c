/*
 * base/float.c - floating-point types by the widths of their fields.
 */
#include <math.h>
#include <stdbool.h>

#include "base/float.h"

uint64_t float_bits(double v, int exp_bits, int man_bits)
{
	int bias = (1 << (exp_bits - 1)) - 1, exp;
	uint64_t inf = ((UINT64_C(1) << exp_bits) - 1) << man_bits;
	uint64_t sign = (uint64_t)!!signbit(v) << (exp_bits + man_bits);
	double a = fabs(v);
	uint64_t bits;

	if (isnan(v))
		return sign | inf | UINT64_C(1) << (man_bits - 1);
	if (a == 0.0)
		return sign;
	if (isinf(a))
		return sign | inf;
	exp = ilogb(a);
	if (exp < 1 - bias)
		exp = 1 - bias; /* subnormal: the exponent stands still */
	/* A carry out of the fraction lands in the exponent, as it should. */
	bits = (uint64_t)(exp + bias - 1) << man_bits;
	bits += (uint64_t)rint(ldexp(a, man_bits - exp));
	return sign | (bits < inf ? bits : inf);
}

double float_value(uint64_t bits, int exp_bits, int man_bits)
{
	int bias = (1 << (exp_bits - 1)) - 1;
	uint64_t max = (UINT64_C(1) << exp_bits) - 1;
	uint64_t frac = bits & ((UINT64_C(1) << man_bits) - 1);
	uint64_t exp = bits >> man_bits & max;
	bool neg = bits >> (exp_bits + man_bits) & 1;
	double v;

	if (exp == max)
		v = frac ? (double)NAN : (double)INFINITY;
	else if (exp)
		v = ldexp((double)(frac | UINT64_C(1) << man_bits),
			  (int)exp - bias - man_bits);
	else
		v = ldexp((double)frac, 1 - bias - man_bits);
	return neg ? -v : v;
}
