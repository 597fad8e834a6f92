/*
 * kfd/soft/step_mem_simd.c - whole planes to memory and back (step_mem.h).
 *
 * Other waves see dwords, so that any order and width of the host's accesses
 * will do.
 */
#include "kfd/soft/step_mem.h"
#include "kfd/soft/valu_step.h"

static void bounds(struct soft_move *m)
{
	const uint32_t *p = m->offset;
	uint32_t any = p[__builtin_ctz(m->exec)];
	uint32_t low = any, high = any;

	LANES(i)
	{
		uint32_t v = m->exec & step_bit[i] ? p[i] : any;

		low = v < low ? v : low;
		high = v > high ? v : high;
	}
	m->low = low;
	m->high = high;
}

/* Do all lanes follow each other, `bytes` apart? */
static inline bool in_order(const struct soft_move *m, uint32_t bytes)
{
	const uint32_t *p = m->offset;
	uint32_t differ = 0;

	if (m->exec != ~0u || m->high - m->low != (SOFT_LANES - 1) * bytes)
		return false;
	LANES(i) differ |= p[i] ^ (p[0] + (uint32_t)i * bytes);
	return !differ;
}

static inline uint32_t get(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void put(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void load_rows(const struct soft_move *m, int n)
{
	const uint8_t *p = m->host + m->low;
	uint32_t row[4 * SOFT_LANES];

	memcpy(row, p, (size_t)n * SOFT_LANES * 4);
	for (int j = 0; j < n; j++)
		LANES(i) m->data[j * SOFT_LANES + i] = row[i * n + j];
}

#if defined(__SSE2__)
/* Four dwords of every lane, four lanes at a time. */
static inline void load_fours(const struct soft_move *m)
{
	for (int i = 0; i < SOFT_LANES; i += 4) {
		const uint8_t *p = m->host;
		const uint32_t *at = m->offset + i;
		__m128 a = _mm_loadu_ps((const float *)(p + at[0]));
		__m128 b = _mm_loadu_ps((const float *)(p + at[1]));
		__m128 c = _mm_loadu_ps((const float *)(p + at[2]));
		__m128 d = _mm_loadu_ps((const float *)(p + at[3]));
		float *to = (float *)(m->data + i);

		_MM_TRANSPOSE4_PS(a, b, c, d);
		_mm_storeu_ps(to, a);
		_mm_storeu_ps(to + SOFT_LANES, b);
		_mm_storeu_ps(to + 2 * SOFT_LANES, c);
		_mm_storeu_ps(to + 3 * SOFT_LANES, d);
	}
}

static inline void store_fours(const struct soft_move *m)
{
	for (int i = 0; i < SOFT_LANES; i += 4) {
		uint8_t *p = m->host;
		const uint32_t *at = m->offset + i;
		const float *from = (const float *)(m->data + i);
		__m128 a = _mm_loadu_ps(from);
		__m128 b = _mm_loadu_ps(from + SOFT_LANES);
		__m128 c = _mm_loadu_ps(from + 2 * SOFT_LANES);
		__m128 d = _mm_loadu_ps(from + 3 * SOFT_LANES);

		_MM_TRANSPOSE4_PS(a, b, c, d);
		_mm_storeu_ps((float *)(p + at[0]), a);
		_mm_storeu_ps((float *)(p + at[1]), b);
		_mm_storeu_ps((float *)(p + at[2]), c);
		_mm_storeu_ps((float *)(p + at[3]), d);
	}
}
#else
#define load_fours(m)  load_lanes(m, 4)
#define store_fours(m) store_lanes(m, 4)
#endif

static inline void load_lanes(const struct soft_move *m, int n)
{
	for (uint32_t e = m->exec; e; e &= e - 1) {
		int i = __builtin_ctz(e);
		const uint8_t *p = m->host + m->offset[i];

		for (int j = 0; j < n; j++)
			m->data[j * SOFT_LANES + i] = get(p + 4 * j);
	}
}

static inline void store_rows(const struct soft_move *m, int n)
{
	uint8_t *p = m->host + m->low;
	uint32_t row[4 * SOFT_LANES];

	for (int j = 0; j < n; j++)
		LANES(i) row[i * n + j] = m->data[j * SOFT_LANES + i];
	memcpy(p, row, (size_t)n * SOFT_LANES * 4);
}

static inline void store_lanes(const struct soft_move *m, int n)
{
	for (uint32_t e = m->exec; e; e &= e - 1) {
		int i = __builtin_ctz(e);
		uint8_t *p = m->host + m->offset[i];

		for (int j = 0; j < n; j++)
			put(p + 4 * j, m->data[j * SOFT_LANES + i]);
	}
}

/*
 * The registers of a load may be those of its addresses: what is read of the
 * offsets is read before the lane is written, and lanes are independent.
 * A second register may be the offsets, too, hence the copy.
 */
#define LOAD(n)                                       \
	if (in_order(m, 4 * (n))) {                   \
		load_rows(m, n);                      \
	} else {                                      \
		load_lanes(m, n);                     \
	}                                             \
	break
#define STORE(n)                                      \
	if (in_order(m, 4 * (n)))                     \
		store_rows(m, n);                     \
	else                                          \
		store_lanes(m, n);                    \
	break

static void load(const struct soft_move *m)
{
	switch (m->dwords) {
	case 1:
		LOAD(1);
	case 2:
		LOAD(2);
	case 3:
		LOAD(3);
	case 4:
		if (m->exec == ~0u)
			load_fours(m);
		else
			load_lanes(m, 4);
	}
}

static void store(const struct soft_move *m)
{
	switch (m->dwords) {
	case 1:
		STORE(1);
	case 2:
		STORE(2);
	case 3:
		STORE(3);
	case 4:
		if (m->exec == ~0u)
			store_fours(m);
		else
			store_lanes(m, 4);
	}
}

const struct soft_movers SIMD(soft_movers) = { bounds, load, store };
