/*
 * kfd/soft/exec/valu_int_simd.c - integers and bits (valu.def, INT).
 */
#define IF_INT(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

static inline uint32_t mul_i24(uint32_t a, uint32_t b, bool clamp)
{
	int64_t p = sext_24(a) * sext_24(b);

	if (clamp && p > INT32_MAX)
		return INT32_MAX;
	if (clamp && p < INT32_MIN)
		return (uint32_t)INT32_MIN;
	return (uint32_t)p;
}

static inline uint32_t mul_u24(uint32_t a, uint32_t b, bool clamp)
{
	uint64_t p = (uint64_t)(a & 0xffffff) * (b & 0xffffff);

	return clamp && p >> 32 ? ~0u : (uint32_t)p;
}

static inline uint32_t reverse_bits(uint32_t u)
{
	u = (u >> 1 & 0x55555555) | (u & 0x55555555) << 1;
	u = (u >> 2 & 0x33333333) | (u & 0x33333333) << 2;
	u = (u >> 4 & 0x0f0f0f0f) | (u & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(u);
}

/* How many leading bits equal the sign bit; -1 if all do. */
static inline uint32_t leading_signs(uint32_t u)
{
	uint32_t differ = u ^ (uint32_t)((int32_t)u >> 31);

	return differ ? (uint32_t)__builtin_clz(differ | !differ) : ~0u;
}

static inline uint32_t sat_u8(uint32_t u)
{
	int v = (int16_t)u;

	return v < 0 ? 0 : v > 255 ? 255 : v;
}

/* Carries in 32 bits, for microops. */
#define MICROOP_v_add_co_ci_u32(name) \
	MICROOP_CARRY(name, w->s[m->mask_in], a + b - cm, a + b < a, \
		      a + b == ~0u)
#define MICROOP_v_sub_co_ci_u32(name) \
	MICROOP_CARRY(name, w->s[m->mask_in], a - b + cm, a < b, a == b)
#define MICROOP_v_subrev_co_ci_u32(name) \
	MICROOP_CARRY(name, w->s[m->mask_in], b - a + cm, b < a, b == a)

/* v_cndmask_b32 */
#define KIND_SELECT(name, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		uint32_t mask = x->mask_in; \
\
		LANES(i) pd[i] = mask >> i & 1 ? pb[i] : pa[i]; \
	} \
	MICROOP_SELECT(name)

#include "kfd/soft/exec/valu.def"
