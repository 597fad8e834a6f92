/*
 * kfd/soft/valu_f32_simd.c - arithmetic of floats (valu.def, FLOAT).
 */
#define IF_FLOAT(...) __VA_ARGS__
#include "kfd/soft/valu_shapes.h"

/* Floats in the order of their values, -0 before +0, as signed integers. */
static inline int32_t order32(uint32_t u)
{
	return (int32_t)(u ^ ((uint32_t)((int32_t)u >> 31) & 0x7fffffff));
}

/*
 * `pick` unless a source is a NaN: then the other source, or `a` if both are;
 * but in IEEE mode a signalling NaN wins and becomes quiet (RDNA3 ISA 16.8,
 * V_MIN_F32).
 */
static inline uint32_t number32(uint32_t a, uint32_t b, uint32_t pick,
				uint32_t mode)
{
	bool ieee = mode & SOFT_MODE_IEEE;
	bool nan_a = (a & 0x7fffffff) > 0x7f800000;
	bool nan_b = (b & 0x7fffffff) > 0x7f800000;
	bool signal_a = nan_a && !(a & 0x400000);
	bool signal_b = nan_b && !(b & 0x400000);

	pick = nan_a ? b : pick;
	pick = nan_b ? a : pick;
	pick = ieee && signal_b ? b | 0x400000 : pick;
	return ieee && signal_a ? a | 0x400000 : pick;
}

static inline uint32_t min_f32(uint32_t a, uint32_t b, uint32_t mode)
{
	return number32(a, b, order32(a) < order32(b) ? a : b, mode);
}

static inline uint32_t max_f32(uint32_t a, uint32_t b, uint32_t mode)
{
	return number32(a, b, order32(a) > order32(b) ? a : b, mode);
}

#include "kfd/soft/valu.def"
