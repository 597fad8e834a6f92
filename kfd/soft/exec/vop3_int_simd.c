/*
 * kfd/soft/exec/vop3_int_simd.c - integer rows of vop3.def (group INT).
 */
#define IF_INT(...) __VA_ARGS__
#include "kfd/soft/exec/valu_shapes.h"
#include "kfd/soft/exec/vop3.h"

/* ------------------------------------------------------------- helpers ---- */

static inline uint32_t bfe_i32(uint32_t a, uint32_t offset, uint32_t width)
{
	uint32_t unused = (32 - width) & 31;
	int32_t field = (int32_t)a >> offset;

	return width ? (uint32_t)((int32_t)((uint32_t)field << unused) >>
				  unused)
		     : 0;
}

/* Four averages at once; the carry-in of each is bit 0 of c's byte. */
static inline uint32_t lerp_u8(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t even = (a & 0xff00ff) + (b & 0xff00ff) + (c & 0x10001);
	uint32_t odd = (a >> 8 & 0xff00ff) + (b >> 8 & 0xff00ff) +
		       (c >> 8 & 0x10001);

	return (even >> 1 & 0xff00ff) | (odd >> 1 & 0xff00ff) << 8;
}

static inline uint32_t abs_diff(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

static inline uint32_t sad_u8(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (int j = 0; j < 32; j += 8)
		sum += abs_diff(a >> j & 0xff, b >> j & 0xff);
	return sum;
}

/* Bytes that are zero in the reference `b` do not count. */
static inline uint32_t msad_u8(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (int j = 0; j < 32; j += 8)
		sum += b >> j & 0xff ? abs_diff(a >> j & 0xff, b >> j & 0xff)
				     : 0;
	return sum;
}

static inline uint32_t sad_u16(uint32_t a, uint32_t b)
{
	return abs_diff(zext_16(a), zext_16(b)) + abs_diff(a >> 16, b >> 16);
}

/*
 * Selector 0..3 a byte of b, 4..7 of a, 8..11 the sign of bytes 1, 3, 5, 7
 * spread over a byte, 12 zero, above 0xff.
 */
static inline uint32_t perm_byte(uint64_t data, uint32_t sel)
{
	uint32_t byte = data >> (sel & 7) * 8 & 0xff;
	uint32_t sign = data >> ((sel & 3) * 16 + 15) & 1 ? 0xff : 0;
	uint32_t special = sel < 12 ? sign : sel == 12 ? 0 : 0xff;

	return sel < 8 ? byte : special;
}

static inline uint32_t perm_b32(uint32_t a, uint32_t b, uint32_t sel)
{
	uint64_t data = (uint64_t)a << 32 | b;

	return perm_byte(data, sel & 0xff) |
	       perm_byte(data, sel >> 8 & 0xff) << 8 |
	       perm_byte(data, sel >> 16 & 0xff) << 16 |
	       perm_byte(data, sel >> 24) << 24;
}

/* ------------------------------------------------------- rows by hand ---- */

static void cndmask_b16_lanes(struct soft_lanes *x)
{
	OPERANDS;
	const uint32_t mask = x->mask_in;

	LANES(i) pd[i] = mask >> i & 1 ? pb[i] : pa[i];
}

static void mad_u64_u32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	uint32_t mask = 0;

	LANES(i)
	{
		uint64_t c = soft_get64(pc, i);
		uint64_t v = (uint64_t)pa[i] * pb[i] + c;
		uint32_t carry = v < c;

		soft_put64(pd, i, clamp && carry ? UINT64_MAX : v);
		mask |= carry << i;
	}
	x->mask_out = mask;
}

/* The carry is bit 64 of the 65-bit signed sum: the sum's true sign. */
static void mad_i64_i32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	uint32_t mask = 0;

	LANES(i)
	{
		int64_t p = (int64_t)(int32_t)pa[i] * (int32_t)pb[i];
		__int128 v = (__int128)p + (int64_t)soft_get64(pc, i);
		int64_t sat = v < INT64_MIN ? INT64_MIN
			      : v > INT64_MAX ? INT64_MAX : (int64_t)v;

		soft_put64(pd, i, clamp ? (uint64_t)sat : (uint64_t)v);
		mask |= (uint32_t)(v < 0) << i;
	}
	x->mask_out = mask;
}

/* Lanes below this one, counted in the wave: a half's first lane is 0 or 32. */
static void mbcnt_lo_u32_b32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	const bool high = x->half;

	LANES(i)
	{
		uint32_t below = high ? ~0u : (1u << i) - 1;

		pd[i] = (uint32_t)__builtin_popcount(pa[i] & below) + pb[i];
	}
}

static void mbcnt_hi_u32_b32_lanes(struct soft_lanes *x)
{
	OPERANDS;
	const bool high = x->half;

	LANES(i)
	{
		uint32_t below = high ? (1u << i) - 1 : 0;

		pd[i] = (uint32_t)__builtin_popcount(pa[i] & below) + pb[i];
	}
}

/* Four 4-byte windows of a, each a byte further, against b. */
#define WINDOW(i, j) ((uint32_t)(soft_get64(pa, i) >> 8 * (j)))

static inline uint32_t acc_u16(uint32_t sad, uint32_t acc, bool clamp)
{
	return sat_u16((int64_t)sad + acc, clamp) & 0xffff;
}

static void qsad_pk_u16_u8_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		uint64_t c = soft_get64(pc, i), d = 0;

		for (int j = 0; j < 4; j++)
			d |= (uint64_t)acc_u16(sad_u8(WINDOW(i, j), pb[i]),
					       c >> 16 * j & 0xffff, clamp)
			     << 16 * j;
		soft_put64(pd, i, d);
	}
}

static void mqsad_pk_u16_u8_lanes(struct soft_lanes *x)
{
	OPERANDS;

	LANES(i)
	{
		uint64_t c = soft_get64(pc, i), d = 0;

		for (int j = 0; j < 4; j++)
			d |= (uint64_t)acc_u16(msad_u8(WINDOW(i, j), pb[i]),
					       c >> 16 * j & 0xffff, clamp)
			     << 16 * j;
		soft_put64(pd, i, d);
	}
}

static void mqsad_u32_u8_lanes(struct soft_lanes *x)
{
	OPERANDS;

	for (int j = 0; j < 4; j++)
		LANES(i)
		{
			uint32_t acc = pc[j * SOFT_LANES + i];

			pd[j * SOFT_LANES + i] = mad_u32(
				msad_u8(WINDOW(i, j), pb[i]), acc, clamp);
		}
}

/* -------------------------------------------------------- rows by kind ---- */

/* Carries in 32 bits, for microops; there is none in. */
#define MICROOP_v_add_co_u32(name) \
	MICROOP_CARRY(name, 0, a + b - cm, a + b < a, false)
#define MICROOP_v_sub_co_u32(name) \
	MICROOP_CARRY(name, 0, a - b + cm, a < b, false)
#define MICROOP_v_subrev_co_u32(name) \
	MICROOP_CARRY(name, 0, b - a + cm, b < a, false)

/*
 * A 64-bit b, shifted; the microop does it in 32 bits.  v_lshlrev_b64's loop is
 *
 *	const uint32_t a = pa[i];
 *	const uint64_t b = soft_get64(pb, i);
 *
 *	soft_put64(pd, i, (uint64_t)(b << (a & 63)));
 */
#define KIND_Q2(name, ...)                                   \
	LANE_FN(name)                                            \
	{                                                    \
		OPERANDS;                                   \
		LANES(i)                                     \
		{                                            \
			const uint32_t a = pa[i];            \
			const uint64_t b = soft_get64(pb, i); \
			soft_put64(pd, i, (uint64_t)(__VA_ARGS__)); \
		}                                            \
	}                                                    \
	MICROOP_##name(name)
/* The bits that go from one half to the other: all of them from 32 on. */
#define ACROSS_LEFT  (l >> 1 >> (31 - n))
#define ACROSS_RIGHT (h << 1 << (31 - n))
#define MICROOP_v_lshlrev_b64(name)                        \
	MICROOP_SHIFT64(name, far ? 0 : l << n,            \
		     far ? l << n : h << n | ACROSS_LEFT)
#define MICROOP_v_lshlrev_b64__vop2(name) MICROOP_v_lshlrev_b64(name)
#define MICROOP_v_lshrrev_b64(name)                                \
	MICROOP_SHIFT64(name, far ? h >> n : l >> n | ACROSS_RIGHT, \
		     far ? 0 : h >> n)
#define MICROOP_v_ashrrev_i64(name)                                         \
	MICROOP_SHIFT64(name,                                               \
		     far ? (uint32_t)((int32_t)h >> n) :                 \
			   l >> n | ACROSS_RIGHT,                        \
		     (uint32_t)((int32_t)h >> (far ? 31 : n)))

#include "kfd/soft/exec/vop3.def"
