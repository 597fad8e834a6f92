/*
 * kfd/soft/exec/valu_f16_simd.c - arithmetic of halves, and their dot products
 * (valu.def, HALF).
 */
#define IF_HALF(...) __VA_ARGS__
#include "kfd/soft/exec/valu_dot2.h"
#include "kfd/soft/exec/valu_shapes.h"

static inline int32_t order16(uint32_t u)
{
	int32_t s = (int16_t)u;

	return s ^ (s >> 31 & 0x7fff);
}

/* As number32() in valu_f32_simd.c, for halves. */
static inline uint32_t number16(uint32_t a, uint32_t b, uint32_t pick,
				uint32_t mode)
{
	bool ieee = mode & SOFT_MODE_IEEE;
	bool nan_a = (a & 0x7fff) > 0x7c00, nan_b = (b & 0x7fff) > 0x7c00;

	pick = nan_a ? b : pick;
	pick = nan_b ? a : pick;
	pick = ieee && nan_b && !(b & 0x200) ? b | 0x200 : pick;
	return ieee && nan_a && !(a & 0x200) ? a | 0x200 : pick;
}

static inline uint32_t min_f16(uint32_t a, uint32_t b, uint32_t mode)
{
	return number16(a, b, order16(a) < order16(b) ? a : b, mode);
}

static inline uint32_t max_f16(uint32_t a, uint32_t b, uint32_t mode)
{
	return number16(a, b, order16(a) > order16(b) ? a : b, mode);
}

/* One rounding: a half times a power of two is exact in double. */
static inline uint32_t ldexp_f16(uint32_t a, int exp, uint32_t mode)
{
	/* Beyond +-64 every half has become infinite or far below 2^-25. */
	int e = exp > 64 ? 64 : exp < -64 ? -64 : exp;
	double by = f64_value((uint64_t)(1023 + e) << 52);
	uint32_t nan = (a & 0x7fff) > 0x7c00 ? 0x200 : 0;

	if (nan)
		return a | nan;
	return soft_f16_from_f64(soft_f32_from_f16(a) * by, soft_round16(mode),
				 soft_ovfl16(mode));
}

static inline double product16(uint32_t a, uint32_t b)
{
	return (double)soft_f32_from_f16(a) * soft_f32_from_f16(b);
}

static inline uint32_t fma_f16(uint32_t a, uint32_t b, uint32_t c,
			       unsigned round, bool ovfl)
{
	return soft_f16_from_f64(product16(a, b) + soft_f32_from_f16(c), round,
				 ovfl);
}

#define KIND_DOT2(name, lanes) \
	LANE_FN(name) \
	{ \
		lanes(x); \
	}
#define KIND_HFMA(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		unsigned round = soft_round16(x->mode); \
		bool ovfl = soft_ovfl16(x->mode); \
\
		if (soft_plain16(x->mode) && \
		    soft_fma16_vreg(pa, pb, pc, 0, pd)) \
			return; \
		LANES(i) pd[i] = fma_f16(pa[i], pb[i], pc[i], round, ovfl); \
		fix_nan16(x, 3, 0); \
	}
#define KIND_PKFMA(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		unsigned round = soft_round16(x->mode); \
		bool ovfl = soft_ovfl16(x->mode); \
		uint32_t high[SOFT_LANES]; \
\
		if (soft_plain16(x->mode) && \
		    soft_fma16_vreg(pa, pb, pc, 16, high) && \
		    soft_fma16_vreg(pa, pb, pc, 0, pd)) { \
			LANES(i) pd[i] |= high[i] << 16; \
			return; \
		} \
		LANES(i) \
		pd[i] = fma_f16(pa[i], pb[i], pc[i], round, ovfl) | \
			fma_f16(pa[i] >> 16, pb[i] >> 16, pc[i] >> 16, round, \
				ovfl) \
				<< 16; \
		fix_nan16(x, 3, 0); \
		fix_nan16(x, 3, 16); \
	}

#include "kfd/soft/exec/valu.def"
