/*
 * ref-memory - what memory instructions do: rows of tests/ref/mem.def.
 */
#ifndef T0_TESTS_REF_MEMORY_H
#define T0_TESTS_REF_MEMORY_H

#include "isa/tables/tables.h"
#include "tests/ref/num.h"

enum half { WHOLE, LOW, HIGH };
/* PAIR and TYPED are or'ed with the first ones. */
enum kind {
	LOADS = 1,
	STORES = 2,
	SWAPS = 3,
	ATOMICS = 4,
	TO_LDS = 5,
	SCALAR = 6,
	TYPED = 8,
	PAIR = 16,
};
enum { RTN = 1, CMP = 2, REAL = 4 };

/* ---------------------------------------------------------- references ---- */

static inline int64_t wide(uint64_t u, int bytes)
{
	return bytes == 4 ? (int32_t)u : (int64_t)u;
}

static inline long double real(uint64_t u)
{
	return ref_value(&F32, u);
}

static inline long double real64(uint64_t u)
{
	return ref_value(&F64, u);
}

/* Each half of m is replaced by that of a if bit 31 of that is set. */
static inline uint64_t halves(uint64_t m, uint64_t a)
{
	uint64_t low = a >> 31 & 1 ? a & 0x7fffffff : m & UINT32_MAX;
	uint64_t high = a >> 63 & 1 ? a >> 32 & 0x7fffffff : m >> 32;

	return low | high << 32;
}

typedef uint64_t atomic_fn(uint64_t m, uint64_t a, uint64_t b);

#define A(name, n, fl, ...)                                              \
	static inline uint64_t ref_##name(uint64_t m, uint64_t a, uint64_t b) \
	{                                                                \
		(void)m, (void)b;                                        \
		return (__VA_ARGS__);                                    \
	}
#define L(...)
#define W(...)
#define P(...)
#define T(...)
#define D(...)
#define K(...)
#include "tests/ref/mem.def"

static const struct memory_row {
	int kind, bytes; /* TYPED: components; SCALAR: dwords */
	bool is_signed;
	enum half half;
	int flags, unit;
	atomic_fn *fn;
} memory_rows[ISA_OP_COUNT] = {
#define L(name, n, sign, h) \
	[ISA_##name] = { .kind = LOADS, .bytes = n, .is_signed = sign, \
			 .half = h },
#define W(name, n, h) [ISA_##name] = { .kind = STORES, .bytes = n, .half = h },
#define A(name, n, fl, ...) \
	[ISA_##name] = { .kind = ATOMICS, .bytes = n, .flags = fl, \
			 .fn = ref_##name },
#define P(name, k, n, u) \
	[ISA_##name] = { .kind = PAIR | k, .bytes = n, .unit = u },
#define T(name, k, n, h) \
	[ISA_##name] = { .kind = TYPED | k, .bytes = n, .half = h },
#define D(name, n, sign) \
	[ISA_##name] = { .kind = TO_LDS, .bytes = n, .is_signed = sign },
#define K(name, n) [ISA_##name] = { .kind = SCALAR, .bytes = n },
#include "tests/ref/mem.def"
};

#endif
