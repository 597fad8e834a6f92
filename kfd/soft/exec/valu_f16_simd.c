/*
 * kfd/soft/exec/valu_f16_simd.c - arithmetic of halves, and their dot products
 * (valu.def, HALF).
 */
#define IF_HALF(...) __VA_ARGS__
#include "kfd/soft/exec/valu_dot2.h"
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

/* One rounding: a half times a power of two is exact in double. */
static inline uint32_t ldexp_f16(uint32_t a, int exp, uint32_t mode)
{
	/* Beyond +-64 every half has become infinite or far below 2^-25. */
	int e = exp > 64 ? 64 : exp < -64 ? -64 : exp;
	double by = f64_value((uint64_t)(1023 + e) << 52);

	if ((a & 0x7fff) > 0x7c00)
		return a | (mode & SOFT_MODE_IEEE ? 0x200 : 0);
	return soft_f16_from_f64(soft_f32_from_f16(a) * by, mode);
}

#include "kfd/soft/exec/valu.def"
