/*
 * kfd/soft/exec/atomic.c - atomic operations, and how they are applied.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "kfd/soft/exec/mem.h"
#include "kfd/soft/exec/valu_half.h"

static uint32_t flush_if(uint32_t bits, bool flush)
{
	return flush && !(bits & 0x7f800000) ? bits & 0x80000000 : bits;
}

static uint32_t add_f32(uint32_t m, uint32_t a, bool flush)
{
	float sum =
		f32_value(flush_if(m, flush)) + f32_value(flush_if(a, flush));

	return flush_if(f32_bits(sum), flush);
}

/* Numbers in the order of integers: -0 comes before +0. */
static bool is_less_f32(uint32_t a, uint32_t b)
{
	const int32_t x = (int32_t)(a ^ (uint32_t)((int32_t)a >> 31) >> 1);
	const int32_t y = (int32_t)(b ^ (uint32_t)((int32_t)b >> 31) >> 1);

	return x < y;
}

static bool is_less_f64(uint64_t a, uint64_t b)
{
	const int64_t x = (int64_t)(a ^ (uint64_t)((int64_t)a >> 63) >> 1);
	const int64_t y = (int64_t)(b ^ (uint64_t)((int64_t)b >> 63) >> 1);

	return x < y;
}

/* Two NaNs give that of the operand, quiet. */
static uint32_t num_f32(uint32_t a, uint32_t m, bool most)
{
	const bool no_a = isnan(f32_value(a)), no_m = isnan(f32_value(m));

	if (no_a || no_m)
		return !no_m ? m : !no_a ? a : a | 0x400000;
	return is_less_f32(most ? m : a, most ? a : m) ? a : m;
}

static uint64_t num_f64(uint64_t a, uint64_t m, bool most)
{
	const bool no_a = isnan(f64_value(a)), no_m = isnan(f64_value(m));

	if (no_a || no_m)
		return !no_m ? m : !no_a ? a : a | 1ull << 51;
	return is_less_f64(most ? m : a, most ? a : m) ? a : m;
}

static uint32_t quiet_nan(float a, float b)
{
	return (isnan(a) ? f32_bits(a) :
		isnan(b) ? f32_bits(b) :
			   0xffc00000) |
	       0x400000;
}

static uint32_t add_f16(uint32_t a, uint32_t b)
{
	const float x = soft_f32_from_f16(a & 0xffff);
	const float y = soft_f32_from_f16(b & 0xffff);
	const float sum = x + y;

	const uint32_t nan = isnan(sum) ? quiet_nan(x, y) : 0;

	return nan ? (nan >> 16 & 0x8000) | 0x7c00 | (nan >> 13 & 0x3ff) :
		     soft_f16_from_f32(sum, SOFT_HALF_EVEN);
}

static uint32_t add_bf16(uint32_t a, uint32_t b)
{
	const float x = f32_value(a << 16), y = f32_value(b << 16);
	const uint32_t sum = f32_bits(x + y);

	return isnan(x + y) ? quiet_nan(x, y) >> 16 :
			      (sum + 0x7fff + (sum >> 16 & 1)) >> 16;
}

static uint32_t add_pair(uint32_t m, uint32_t a,
			 uint32_t (*add)(uint32_t, uint32_t))
{
	return (add(m & 0xffff, a & 0xffff) & 0xffff) | add(m >> 16, a >> 16)
								<< 16;
}

/*
 * ATOMIC(add_32, uint32_t, m + a) becomes
 *
 *	uint64_t soft_atomic_add_32(uint64_t m_, uint64_t a_, uint64_t b_,
 *				    uint32_t mode)
 *	{
 *		uint32_t m = (uint32_t)m_, a = (uint32_t)a_, b = (uint32_t)b_;
 *
 *		return (uint64_t)(m + a);
 *	}
 */
#define ATOMIC(name, type, expr) \
	uint64_t soft_atomic_##name(uint64_t m_, uint64_t a_, uint64_t b_, \
				    uint32_t mode) \
	{ \
		type m = (type)m_, a = (type)a_, b = (type)b_; \
		(void)m, (void)a, (void)b, (void)mode; \
		return (uint64_t)(expr); \
	}
#include "kfd/soft/exec/atomic.def"

static uint64_t apply_u32(uint32_t *host, soft_atomic_fn *fn, uint64_t a,
			  uint64_t b, uint32_t mode)
{
	uint32_t old = __atomic_load_n(host, __ATOMIC_RELAXED), new;

	do
		new = (uint32_t)fn(old, a, b, mode);
	while (!__atomic_compare_exchange_n(
		host, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return old;
}

static uint64_t apply_u64(uint64_t *host, soft_atomic_fn *fn, uint64_t a,
			  uint64_t b, uint32_t mode)
{
	uint64_t old = __atomic_load_n(host, __ATOMIC_RELAXED), new;

	do
		new = fn(old, a, b, mode);
	while (!__atomic_compare_exchange_n(
		host, &old, new, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return old;
}

uint64_t soft_atomic_apply(void *host, int bytes, soft_atomic_fn *fn,
			   uint64_t a, uint64_t b, uint32_t mode)
{
	return bytes == 4 ? apply_u32(host, fn, a, b, mode) :
			    apply_u64(host, fn, a, b, mode);
}
