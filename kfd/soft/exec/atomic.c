/*
 * kfd/soft/exec/atomic.c - atomic operations, and how they are applied.
 */
#include <math.h>
#include <string.h>

#include "base/float.h"
#include "kfd/soft/exec/mem.h"

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
#define ATOMIC(name, type, expr)                                     \
	uint64_t soft_atomic_##name(uint64_t m_, uint64_t a_,        \
				    uint64_t b_, uint32_t mode)      \
	{                                                            \
		type m = (type)m_, a = (type)a_, b = (type)b_;       \
		(void)m, (void)a, (void)b, (void)mode;               \
		return (uint64_t)(expr);                             \
	}
#include "kfd/soft/exec/atomic.def"

static uint64_t apply_u32(uint32_t *host, soft_atomic_fn *fn, uint64_t a,
			  uint64_t b, uint32_t mode)
{
	uint32_t old = __atomic_load_n(host, __ATOMIC_RELAXED), new;

	do
		new = (uint32_t)fn(old, a, b, mode);
	while (!__atomic_compare_exchange_n(host, &old, new, true,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	return old;
}

static uint64_t apply_u64(uint64_t *host, soft_atomic_fn *fn, uint64_t a,
			  uint64_t b, uint32_t mode)
{
	uint64_t old = __atomic_load_n(host, __ATOMIC_RELAXED), new;

	do
		new = fn(old, a, b, mode);
	while (!__atomic_compare_exchange_n(host, &old, new, true,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	return old;
}

uint64_t soft_atomic_apply(void *host, int bytes, soft_atomic_fn *fn,
			   uint64_t a, uint64_t b, uint32_t mode)
{
	return bytes == 4 ? apply_u32(host, fn, a, b, mode) :
			    apply_u64(host, fn, a, b, mode);
}
