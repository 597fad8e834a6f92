/*
 * tests/bits.h - floats as their bits, and back.
 *
 *	bits32(1.0f) == 0x3f800000, float32(0x3f800000) == 1.0f
 */
#ifndef T0_TESTS_BITS_H
#define T0_TESTS_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits32(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static inline float float32(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static inline uint64_t bits64(double d)
{
	uint64_t u;

	memcpy(&u, &d, sizeof(u));
	return u;
}

static inline double float64(uint64_t u)
{
	double d;

	memcpy(&d, &u, sizeof(d));
	return d;
}

#endif
