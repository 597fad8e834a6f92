/*
 * kfd/soft/exec/valu_cmp_simd.c - compares (valu.def, CMP): one bit per lane.
 */
#define IF_CMP(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"

/* The bit numbers of V_CMP_CLASS (RDNA3 ISA 16.9). */
enum {
	CLASS_SNAN,
	CLASS_QNAN,
	CLASS_NEG_INF,
	CLASS_NEG_NORMAL,
	CLASS_NEG_DENORMAL,
	CLASS_NEG_ZERO,
	CLASS_POS_ZERO,
	CLASS_POS_DENORMAL,
	CLASS_POS_NORMAL,
	CLASS_POS_INF,
};

/* `a` is the number without its sign, inf and quiet as in its format. */
static inline int class_of(uint64_t a, bool negative, uint64_t inf,
			   uint64_t quiet, uint64_t normal)
{
	int neg = a == inf    ? CLASS_NEG_INF :
		  a >= normal ? CLASS_NEG_NORMAL :
		  a	      ? CLASS_NEG_DENORMAL :
				CLASS_NEG_ZERO;

	if (a > inf)
		return a & quiet ? CLASS_QNAN : CLASS_SNAN;
	/* Positive classes mirror the negative ones. */
	return negative ? neg : CLASS_NEG_INF + CLASS_POS_INF - neg;
}

static inline int class_f16(uint32_t u)
{
	return class_of(u & 0x7fff, u & 0x8000, 0x7c00, 0x200, 0x400);
}

static inline int class_f32(uint32_t u)
{
	return class_of(u & 0x7fffffff, u >> 31, 0x7f800000, 0x400000,
			0x800000);
}

static inline int class_f64(uint64_t u)
{
	return class_of(u & ~(1ull << 63), u >> 63, 0x7ffull << 52, 1ull << 51,
			1ull << 52);
}

/*
 * A compare's loop; x->mask_out has the bits.  `type` is a's, load_a and load_b
 * take a lane of a vreg.  v_cmp_lt_i32 (kind CI32, a < b) is
 *
 *	int32_t a = (int32_t)pa[i];
 *	__typeof__((int32_t)pb[i]) b = (int32_t)pb[i];
 *
 *	out |= (uint32_t)(a < b) << i;
 *
 * and its microop does the same into r[i] (MICROOP_COMPARE).
 */
#define COMPARE(name, type, load_a, load_b, ...) \
	LANE_FN(name) \
	{ \
		OPERANDS; \
		_Alignas(64) int32_t r[SOFT_LANES]; \
\
		LANES(i) \
		{ \
			type a = load_a(pa, i); \
			__typeof__(load_b(pb, i)) b = load_b(pb, i); \
\
			r[i] = (__VA_ARGS__) ? -1 : 0; \
		} \
		x->mask_out = soft_lanes_mask(r); \
	} \
	MICROOP_COMPARE(name, type a = load_a(pa, i); \
		     __typeof__(load_b(pb, i)) b = load_b(pb, i), __VA_ARGS__)
#define AS_U32(p, i) p[i]
#define AS_I32(p, i) (int32_t) p[i]
#define AS_U16(p, i) (uint16_t) p[i]
#define AS_I16(p, i) (int16_t) p[i]
#define AS_F32(p, i) f32_value(p[i])
#define AS_F16(p, i) soft_f32_from_f16(p[i])
#define AS_U64(p, i) soft_get64(p, i)
#define AS_I64(p, i) (int64_t) soft_get64(p, i)
#define AS_F64(p, i) f64_value(soft_get64(p, i))
#define KIND_CU32(name, ...) \
	COMPARE(name, uint32_t, AS_U32, AS_U32, __VA_ARGS__)
#define KIND_CI32(name, ...) COMPARE(name, int32_t, AS_I32, AS_I32, __VA_ARGS__)
#define KIND_CU16(name, ...) \
	COMPARE(name, uint16_t, AS_U16, AS_U16, __VA_ARGS__)
#define KIND_CI16(name, ...) COMPARE(name, int16_t, AS_I16, AS_I16, __VA_ARGS__)
#define KIND_CF32(name, ...) COMPARE(name, float, AS_F32, AS_F32, __VA_ARGS__)
#define KIND_CF16(name, ...) COMPARE(name, float, AS_F16, AS_F16, __VA_ARGS__)
#define KIND_CU64(name, ...) \
	COMPARE(name, uint64_t, AS_U64, AS_U64, __VA_ARGS__)
#define KIND_CI64(name, ...) COMPARE(name, int64_t, AS_I64, AS_I64, __VA_ARGS__)
#define KIND_CF64(name, ...) COMPARE(name, double, AS_F64, AS_F64, __VA_ARGS__)
#define KIND_CB16(name, ...) \
	COMPARE(name, uint32_t, AS_U32, AS_U32, __VA_ARGS__)
#define KIND_CB32(name, ...) \
	COMPARE(name, uint32_t, AS_U32, AS_U32, __VA_ARGS__)
#define KIND_CB64(name, ...) \
	COMPARE(name, uint64_t, AS_U64, AS_U32, __VA_ARGS__)

#include "kfd/soft/exec/valu.def"
