/*
 * kfd/soft/exec/valu_part_simd.c - rounding, and the parts of floats.
 *
 * Group PART of valu.def.
 */
#define IF_PART(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"

/* x - floor(x), but never 1: the largest number below it. */
static inline float fract_f32(float a)
{
	float f = a - __builtin_floorf(a);

	return f >= 1 ? 0x1.fffffep-1f : f;
}

static inline float fract_f16(float a)
{
	float f = a - __builtin_floorf(a);

	/* Exact in float; what would round to 1 as a half is cut. */
	return f > 0x1.ffcp-1f ? 0x1.ffcp-1f : f;
}

static inline double fract_f64(double a)
{
	double f = a - __builtin_floor(a);

	return f >= 1 ? 0x1.fffffffffffffp-1 : f;
}

/*
 * The exponent e with mantissa * 2^e and the mantissa in [0.5, 1).  Zero,
 * infinity and NaN have exponent 0 and are their own mantissa, but that a NaN
 * becomes quiet, whatever MODE.IEEE says (measured on gfx1100: AMD, rocjitsu).
 */
static inline uint32_t frexp_exp_f32(uint32_t a)
{
	int exp = a >> 23 & 0xff;
	uint32_t m = a & 0x7fffff;
	int den = m ? -117 - __builtin_clz(m | !m) : 0;
	int e = exp ? exp - 126 : den;

	return (uint32_t)(exp == 0xff ? 0 : e);
}

static inline uint32_t frexp_mant_f32(uint32_t a)
{
	int exp = a >> 23 & 0xff;
	uint32_t m = a & 0x7fffff;
	uint32_t den = m << ((__builtin_clz(m | !m) - 8) & 31);
	uint32_t norm = (exp ? m : den & 0x7fffff) | 126u << 23;
	uint32_t nan = m ? 0x400000 : 0;

	if (exp == 0xff)
		return a | nan;
	return exp || m ? (a & 0x80000000) | norm : a;
}

static inline uint32_t frexp_exp_f16(uint32_t a)
{
	int exp = a >> 10 & 0x1f;
	uint32_t m = a & 0x3ff;
	int den = m ? 8 - __builtin_clz(m | !m) : 0;
	int e = exp ? exp - 14 : den;

	return (uint32_t)(exp == 0x1f ? 0 : e);
}

static inline uint32_t frexp_mant_f16(uint32_t a)
{
	int exp = a >> 10 & 0x1f;
	uint32_t m = a & 0x3ff;
	uint32_t den = m << ((__builtin_clz(m | !m) - 21) & 31);
	uint32_t norm = (exp ? m : den & 0x3ff) | 14u << 10;

	if (exp == 0x1f)
		return a | (m ? 0x200 : 0);
	return exp || m ? (a & 0x8000) | norm : a;
}

static inline uint32_t frexp_exp_f64(uint64_t a)
{
	int exp = a >> 52 & 0x7ff;
	uint64_t m = a & ((1ull << 52) - 1);
	int den = m ? -1010 - __builtin_clzll(m | !m) : 0;
	int e = exp ? exp - 1022 : den;

	return (uint32_t)(exp == 0x7ff ? 0 : e);
}

static inline uint64_t frexp_mant_f64(uint64_t a)
{
	uint64_t m = a & ((1ull << 52) - 1);
	int exp = a >> 52 & 0x7ff;
	uint64_t den = m << ((__builtin_clzll(m | !m) - 11) & 63);
	uint64_t low = (exp ? m : den) & ((1ull << 52) - 1);

	if (exp == 0x7ff || (!exp && !m))
		return a | (uint64_t)(exp && m) << 51;
	return (a & 1ull << 63) | 1022ull << 52 | low;
}

#include "kfd/soft/exec/valu.def"
