/*
 * blocks - what the blocks of GGUF files mean, value by value, from the
 * published definitions: where each value's bits lie, and in which order what
 * is rounded to float.  It shares no code with the engine.
 */
#ifndef T0_TESTS_BLOCKS_REF_H
#define T0_TESTS_BLOCKS_REF_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `n` bits from bit `at` of byte `byte` on, which may reach into the next. */
static inline unsigned bits_at(const uint8_t *b, int byte, int at, int n)
{
	unsigned all = b[byte + at / 8];

	if (at % 8 + n > 8)
		all |= (unsigned)b[byte + at / 8 + 1] << 8;
	return all >> at % 8 & ((1u << n) - 1);
}

static inline float ref_half(const uint8_t *b, int byte)
{
	unsigned h = b[byte] + 256u * b[byte + 1], e = h >> 10 & 31;
	double v = e == 31 ? (h & 1023 ? NAN : INFINITY) :
		   e ? ldexp(1024 + (h & 1023), (int)e - 25) :
		       ldexp(h & 1023, -24);

	return (float)(h & 0x8000 ? -v : v);
}

/* a b, and a b + c, rounded after each step. */
static inline float ref_times(float a, float b)
{
	volatile float v = a * b;

	return v;
}

static inline float ref_plus(float a, float b)
{
	volatile float v = a + b;

	return v;
}

/* Nibble k of 32 that share 16 bytes: first halves low, second ones high. */
static inline unsigned nibble(const uint8_t *b, int byte, int k)
{
	return bits_at(b, byte + k % 16, k / 16 * 4, 4);
}

static const int ref_uneven[] = { -127, -104, -83, -65, -49, -35, -22, -10, 1,
				  13, 25, 38, 53, 69, 89, 113 };

static inline float ref_block_32(const char *type, const uint8_t *b, int k)
{
	static const double e2m1[] = { 0, .5, 1, 1.5, 2, 3, 4, 6 };

	if (strcmp(type, "q8_0") == 0)
		return ref_times(ref_half(b, 0), (int8_t)b[2 + k]);
	if (strcmp(type, "q4_0") == 0)
		return ref_times(ref_half(b, 0), (float)nibble(b, 2, k) - 8);
	if (strcmp(type, "q4_1") == 0)
		return ref_plus(ref_times(ref_half(b, 0),
					  (float)nibble(b, 4, k)),
				ref_half(b, 2));
	if (strcmp(type, "q5_0") == 0)
		return ref_times(ref_half(b, 0),
				 (float)(nibble(b, 6, k) +
					 16 * bits_at(b, 2, k, 1)) - 16);
	if (strcmp(type, "q5_1") == 0)
		return ref_plus(ref_times(ref_half(b, 0),
					  (float)(nibble(b, 8, k) +
						  16 * bits_at(b, 4, k, 1))),
				ref_half(b, 2));
	if (strcmp(type, "iq4_nl") == 0)
		return ref_times(ref_half(b, 0),
				 (float)ref_uneven[nibble(b, 2, k)]);
	if (strcmp(type, "mxfp4") == 0) {
		unsigned code = nibble(b, 1, k);
		double v = ldexp(e2m1[code & 7], b[0] - 127);
		/* A code of -0 is +0 in the format's table of integers. */
		return (float)(code > 8 ? -v : v);
	}
	abort();
}

/* Six bits of the 8 scales (or, `min`, minima) at `at`. */
static inline unsigned ref_six(const uint8_t *b, int at, int i, int min)
{
	if (i < 4)
		return bits_at(b, at + 4 * min + i, 0, 6);
	return bits_at(b, at + 4 + i, 4 * min, 4) +
	       16 * bits_at(b, at + 4 * min + i - 4, 6, 2);
}

/* d s q - dmin m */
static inline float ref_affine(const uint8_t *b, int d, int dmin, unsigned s,
			       unsigned m, unsigned q)
{
	return ref_plus(ref_times(ref_times(ref_half(b, d), (float)s),
				  (float)q),
			-ref_times(ref_half(b, dmin), (float)m));
}

static inline float ref_scaled(const uint8_t *b, int d, int s, int q)
{
	return ref_times(ref_times(ref_half(b, d), (float)s), (float)q);
}

static inline float ref_block_256(const char *type, const uint8_t *b, int k)
{
	int run = k / 32, in = k % 32;
	/* Two bits of each: runs of 128 share 32 bytes. */
	int two = k / 128 * 32 + in, two_at = k % 128 / 32 * 2;

	if (strcmp(type, "q4_k") == 0)
		return ref_affine(b, 0, 2, ref_six(b, 4, run, 0),
				  ref_six(b, 4, run, 1),
				  bits_at(b, 16 + k / 64 * 32 + in,
					  run % 2 * 4, 4));
	if (strcmp(type, "q5_k") == 0)
		return ref_affine(b, 0, 2, ref_six(b, 4, run, 0),
				  ref_six(b, 4, run, 1),
				  bits_at(b, 48 + k / 64 * 32 + in,
					  run % 2 * 4, 4) +
				  16 * bits_at(b, 16 + in, run, 1));
	if (strcmp(type, "q6_k") == 0)
		return ref_scaled(b, 208, (int8_t)b[192 + k / 16],
				  (int)bits_at(b, k / 128 * 64 + k % 64,
					       k % 128 / 64 * 4, 4) +
				  16 * (int)bits_at(b, 128 + two, two_at, 2) -
				  32);
	if (strcmp(type, "q2_k") == 0)
		return ref_affine(b, 80, 82, bits_at(b, k / 16, 0, 4),
				  bits_at(b, k / 16, 4, 4),
				  bits_at(b, 16 + two, two_at, 2));
	if (strcmp(type, "q3_k") == 0) {
		int s = k / 16;
		return ref_scaled(b, 108,
				  (int)bits_at(b, 96 + s % 8, s / 8 * 4, 4) +
				  16 * (int)bits_at(b, 104 + s % 4, s / 4 * 2,
						    2) - 32,
				  (int)bits_at(b, 32 + two, two_at, 2) -
				  4 * !bits_at(b, in, run, 1));
	}
	if (strcmp(type, "iq4_xs") == 0)
		return ref_scaled(b, 0,
				  (int)bits_at(b, 4, run * 4, 4) +
				  16 * (int)bits_at(b, 2, run * 2, 2) - 32,
				  ref_uneven[nibble(b, 8 + 16 * run, in)]);
	abort();
}

/* Values and bytes of a block, and where its halves are (-1: nowhere). */
static const struct ref_type {
	const char *name;
	int values, bytes, half[2];
} ref_type[] = {
	{ "q8_0", 32, 34, { 0, -1 } },	  { "q5_1", 32, 24, { 0, 2 } },
	{ "q5_0", 32, 22, { 0, -1 } },	  { "q4_1", 32, 20, { 0, 2 } },
	{ "q4_0", 32, 18, { 0, -1 } },	  { "iq4_nl", 32, 18, { 0, -1 } },
	{ "mxfp4", 32, 17, { -1, -1 } },  { "q6_k", 256, 210, { 208, -1 } },
	{ "q5_k", 256, 176, { 0, 2 } },	  { "q4_k", 256, 144, { 0, 2 } },
	{ "iq4_xs", 256, 136, { 0, -1 } }, { "q3_k", 256, 110, { 108, -1 } },
	{ "q2_k", 256, 84, { 80, 82 } },
};

/* Value k of a block. */
static inline float ref_value(const struct ref_type *t, const uint8_t *b, int k)
{
	return t->values == 32 ? ref_block_32(t->name, b, k) :
				 ref_block_256(t->name, b, k);
}

#endif
