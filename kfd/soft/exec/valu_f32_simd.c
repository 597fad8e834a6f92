/*
 * kfd/soft/exec/valu_f32_simd.c - arithmetic of floats (valu.def, FLOAT).
 */
#define IF_FLOAT(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"

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
	/* Without branches, or the loop would not become vector code. */
	uint32_t ma = a & 0x7fffffff, mb = b & 0x7fffffff;
	uint32_t quiet = mode & SOFT_MODE_IEEE ? 0x400000 : ~0u;
	uint32_t signal_a = (ma > 0x7f800000) & ((a & quiet) == 0);
	uint32_t signal_b = (mb > 0x7f800000) & ((b & quiet) == 0);

	pick = ma > 0x7f800000 ? b : pick;
	pick = mb > 0x7f800000 ? a : pick;
	pick = signal_b ? b | 0x400000 : pick;
	return signal_a ? a | 0x400000 : pick;
}

static inline uint32_t min_f32(uint32_t a, uint32_t b, uint32_t mode)
{
	return number32(a, b, order32(a) < order32(b) ? a : b, mode);
}

static inline uint32_t max_f32(uint32_t a, uint32_t b, uint32_t mode)
{
	return number32(a, b, order32(a) > order32(b) ? a : b, mode);
}

#include "kfd/soft/exec/valu.def"
