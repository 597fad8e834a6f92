/*
 * float - doubles to the bits of narrower floating-point types and back.
 *
 * A type is given by its widths: 5 and 10 bits of exponent and fraction for
 * f16, 8 and 7 for bf16, 8 and 23 for f32, 11 and 52 for f64; above them stands
 * the sign.  Exponents are biased, the largest is infinity and NaN, zero is
 * zero and subnormals, as IEEE 754 has it.
 */
#ifndef T0_FLOAT_H
#define T0_FLOAT_H

#include <stdint.h>
#include <string.h>

/* ----------------------------------------------------------- float.c ---- */

/*
 * The bits of `v`, rounded once to nearest, ties to even: what is too large
 * becomes infinity, NaN the quiet one with its sign.
 */
uint64_t float_bits(double v, int exp_bits, int man_bits);
/* The value of such bits; every one of these types is exact in a double. */
double float_value(uint64_t bits, int exp_bits, int man_bits);

/* The bits of a number and the number of bits, unchanged and at no cost. */
static inline uint32_t f32_bits(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline float f32_value(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint64_t f64_bits(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline double f64_value(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

#endif
