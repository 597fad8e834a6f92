/*
 * kfd/soft/exec/fast/microop_move_simd.c - lanes of one half to memory and
 * back.
 *
 * The functions of SOFT_MOVES (translate.h).  Other waves see dwords, so that
 * any order and width of the host's accesses will do; but where lanes store to
 * the same place the last one wins, as in the handlers.  The registers of a
 * load may be those of its addresses: offsets of a lane are read before its
 * registers are written, and lanes are independent.
 */
#include "kfd/soft/exec/fast/microop_lanes.h"
#include "kfd/soft/exec/fast/translate.h"

static inline uint32_t get_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t get_u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void put_u16(uint8_t *p, uint32_t v)
{
	uint16_t half = (uint16_t)v;

	memcpy(p, &half, sizeof(half));
}

/* Do all lanes execute and follow each other, `bytes` apart? */
static inline bool in_order(const struct soft_move *m, uint32_t bytes)
{
	return m->exec == ~0u && !lanes_off_line(m->offset, bytes);
}

/* ------------------------------------------------------ lane by lane ---- */

/*
 * `what` of each lane i that executes: mostly all do.  It uses `own`, a copy of
 * *m in registers, as a store to memory might change m itself.
 */
#define EACH_LANE(m, what) \
	do { \
		const struct soft_move own = *(m); \
\
		if (__builtin_expect(own.exec == ~0u, 1)) \
			LANES(i) { what; } \
		else \
			FOR_LANES(i, own.exec) { what; } \
	} while (0)

static inline void load_lane(const struct soft_move *m, uint32_t i, int n)
{
	const uint8_t *p = m->host + m->offset[i];

	for (int j = 0; j < n; j++)
		m->data[j * SOFT_LANES + i] = get_u32(p + 4 * j);
}

static inline void load_lanes(const struct soft_move *m, int n)
{
	EACH_LANE(m, load_lane(&own, (uint32_t)i, n));
}

static inline void store_lane(const struct soft_move *m, uint32_t i, int n)
{
	uint8_t *p = m->host + m->offset[i];

	for (int j = 0; j < n; j++)
		put_u32(p + 4 * j, m->data[j * SOFT_LANES + i]);
}

static inline void store_lanes(const struct soft_move *m, int n)
{
	EACH_LANE(m, store_lane(&own, (uint32_t)i, n));
}

/* --------------------------------------------------------- in a line ---- */

#if defined(__AVX512BW__)
/* The maskz forms, since GCC 12 warns about its own plain ones. */
#define ALL16 0xffff

/* Words `first`, `first` + 2 and so on of 32. */
static inline __m512i every_2nd(__m512i low, __m512i high, int first)
{
	const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16,
					      14, 12, 10, 8, 6, 4, 2, 0);

	return _mm512_maskz_permutex2var_epi32(
		ALL16, low, _mm512_add_epi32(even, _mm512_set1_epi32(first)),
		high);
}

static inline void load_line_64(const struct soft_move *m)
{
	const uint8_t *p = m->host + m->offset[0];
	__m512i v[4];

	for (int i = 0; i < 4; i++)
		v[i] = _mm512_loadu_si512(p + 64 * i);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			_mm512_storeu_si512(
				m->data + j * SOFT_LANES + 16 * i,
				every_2nd(v[2 * i], v[2 * i + 1], j));
}

static inline void store_line_64(const struct soft_move *m)
{
	const __m512i mixed = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19,
					       3, 18, 2, 17, 1, 16, 0);
	uint8_t *p = m->host + m->offset[0];

	for (int i = 0; i < 4; i++) {
		__m512i low = _mm512_loadu_si512(m->data + i / 2 * 16);
		__m512i high = _mm512_loadu_si512(m->data + SOFT_LANES +
						  i / 2 * 16);
		__m512i from = _mm512_add_epi32(
			mixed, _mm512_set1_epi32(i % 2 * 8));

		_mm512_storeu_si512(p + 64 * i,
				    _mm512_maskz_permutex2var_epi32(
					    ALL16, low, from, high));
	}
}

/* Halves in a line, to bits 15:0. */
static inline void load_line_16(const uint8_t *p, uint32_t *to)
{
	for (int i = 0; i < SOFT_LANES; i += 16)
		_mm512_storeu_si512(
			to + i,
			_mm512_maskz_cvtepu16_epi32(
				ALL16, _mm256_loadu_si256(
					       (const __m256i *)(p + 2 * i))));
}

/* Sixteen of them, which both rows of lanes get. */
static inline void load_row_16(const uint8_t *p, uint32_t *to)
{
	const __m512i v = _mm512_maskz_cvtepu16_epi32(
		ALL16, _mm256_loadu_si256((const __m256i *)p));

	_mm512_storeu_si512(to, v);
	_mm512_storeu_si512(to + 16, v);
}

static inline void store_line_16(uint8_t *p, const uint32_t *from, int shift)
{
	for (int i = 0; i < SOFT_LANES; i += 16) {
		__m512i v = _mm512_maskz_srli_epi32(
			ALL16, _mm512_loadu_si512(from + i), (unsigned)shift);

		_mm256_storeu_si256((__m256i *)(p + 2 * i),
				    _mm512_maskz_cvtepi32_epi16(ALL16, v));
	}
}
#else
static inline void load_line_64(const struct soft_move *m)
{
	uint32_t row[2 * SOFT_LANES];

	memcpy(row, m->host + m->offset[0], sizeof(row));
	LANES(i) m->data[i] = row[2 * i];
	LANES(i) m->data[SOFT_LANES + i] = row[2 * i + 1];
}

static inline void store_line_64(const struct soft_move *m)
{
	uint32_t row[2 * SOFT_LANES];

	LANES(i) row[2 * i] = m->data[i];
	LANES(i) row[2 * i + 1] = m->data[SOFT_LANES + i];
	memcpy(m->host + m->offset[0], row, sizeof(row));
}

static inline void load_line_16(const uint8_t *p, uint32_t *to)
{
	uint16_t row[SOFT_LANES];

	memcpy(row, p, sizeof(row));
	LANES(i) to[i] = row[i];
}

static inline void load_row_16(const uint8_t *p, uint32_t *to)
{
	uint16_t row[SOFT_LANES / 2];

	memcpy(row, p, sizeof(row));
	LANES(i) to[i] = row[i % 16];
}

static inline void store_line_16(uint8_t *p, const uint32_t *from, int shift)
{
	uint16_t row[SOFT_LANES];

	LANES(i) row[i] = (uint16_t)(from[i] >> shift);
	memcpy(p, row, sizeof(row));
}
#endif

/* --------------------------------------------- four dwords of a lane ---- */

#if defined(__AVX512F__)
#define INSERT(v, p, k)                                                      \
	_mm512_maskz_inserti32x4(ALL16, v,                                   \
				 _mm_loadu_si128((const __m128i *)(p)), k)

/* The dwords of lanes i, i + 4, i + 8 and i + 12. */
static inline __m512i load_every_4th(const struct soft_move *m, int i)
{
	const uint8_t *p = m->host;
	const uint32_t *at = m->offset + i;
	__m512i v = _mm512_zextsi128_si512(
		_mm_loadu_si128((const __m128i *)(p + at[0])));

	v = INSERT(v, p + at[4], 1);
	v = INSERT(v, p + at[8], 2);
	return INSERT(v, p + at[12], 3);
}

static inline void transpose_4x4(__m512i v[4])
{
	__m512i ab = _mm512_maskz_unpacklo_epi32(ALL16, v[0], v[1]);
	__m512i cd = _mm512_maskz_unpacklo_epi32(ALL16, v[2], v[3]);
	__m512i ef = _mm512_maskz_unpackhi_epi32(ALL16, v[0], v[1]);
	__m512i gh = _mm512_maskz_unpackhi_epi32(ALL16, v[2], v[3]);

	v[0] = _mm512_maskz_unpacklo_epi64(0xff, ab, cd);
	v[1] = _mm512_maskz_unpackhi_epi64(0xff, ab, cd);
	v[2] = _mm512_maskz_unpacklo_epi64(0xff, ef, gh);
	v[3] = _mm512_maskz_unpackhi_epi64(0xff, ef, gh);
}

/* Lane 4 q + b is word q of block b after a transposition, and the reverse. */
static inline __m512i blocks_to_lanes(__m512i v)
{
	const __m512i from = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9,
					      5, 1, 12, 8, 4, 0);

	return _mm512_maskz_permutexvar_epi32(ALL16, from, v);
}

static inline void load_line_128(const struct soft_move *m)
{
	const uint8_t *p = m->host + m->offset[0];
	__m512i v[4];

	for (int i = 0; i < SOFT_LANES; i += 16, p += 256) {
		for (int k = 0; k < 4; k++) {
			__builtin_prefetch(p + 64 * k + SOFT_AHEAD_BYTES);
			v[k] = _mm512_loadu_si512(p + 64 * k);
		}
		transpose_4x4(v);
		for (int k = 0; k < 4; k++)
			_mm512_storeu_si512(m->data + k * SOFT_LANES + i,
					    blocks_to_lanes(v[k]));
	}
}

static inline void store_line_128(const struct soft_move *m)
{
	uint8_t *p = m->host + m->offset[0];
	__m512i v[4];

	for (int i = 0; i < SOFT_LANES; i += 16, p += 256) {
		for (int k = 0; k < 4; k++)
			v[k] = blocks_to_lanes(_mm512_loadu_si512(
				m->data + k * SOFT_LANES + i));
		transpose_4x4(v);
		for (int k = 0; k < 4; k++)
			_mm512_storeu_si512(p + 64 * k, v[k]);
	}
}

/* Matrix fragments are the same in both rows of lanes: half the work. */
static inline void load_fours(const struct soft_move *m)
{
	bool twice = lanes_repeat(m->offset);
	__m512i v[4];

	if (!lanes_off_line(m->offset, 16)) {
		load_line_128(m);
		return;
	}
	for (int i = 0; i < SOFT_LANES; i += 16) {
		if (!i || !twice) {
			for (int k = 0; k < 4; k++)
				v[k] = load_every_4th(m, i + k);
			transpose_4x4(v);
		}
		for (int k = 0; k < 4; k++)
			_mm512_storeu_si512(m->data + k * SOFT_LANES + i, v[k]);
	}
}

#define EXTRACT(p, v, k)                                                     \
	_mm_storeu_si128((__m128i *)(p),                                     \
			 _mm512_maskz_extracti32x4_epi32(0xf, v, k))

static inline void store_fours(const struct soft_move *m)
{
	if (!lanes_off_line(m->offset, 16)) {
		store_line_128(m);
		return;
	}
	for (int i = 0; i < SOFT_LANES; i += 16) {
		const uint32_t *at = m->offset + i;
		uint8_t *p = m->host;
		__m512i v[4];

		for (int k = 0; k < 4; k++)
			v[k] = _mm512_loadu_si512(m->data + k * SOFT_LANES + i);
		transpose_4x4(v);
#define FOUR(q)                                                              \
	EXTRACT(p + at[4 * (q)], v[0], q);                                   \
	EXTRACT(p + at[4 * (q) + 1], v[1], q);                               \
	EXTRACT(p + at[4 * (q) + 2], v[2], q);                               \
	EXTRACT(p + at[4 * (q) + 3], v[3], q)
		FOUR(0);
		FOUR(1);
		FOUR(2);
		FOUR(3);
#undef FOUR
	}
}
#elif defined(__SSE2__)
/* Four lanes at a time. */
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

/* ------------------------------------------- one and two, scattered ---- */

#if defined(__AVX512F__)
/* Gathers take signed indices: from the middle of the 4 GiB. */
#define MIDDLE 0x80000000u

static inline void load_ones(const struct soft_move *m)
{
	const uint8_t *middle = m->host + MIDDLE;
	const __m512i flip = _mm512_set1_epi32((int)MIDDLE);

	for (int i = 0; i < SOFT_LANES; i += 16) {
		__m512i at = _mm512_xor_si512(
			_mm512_loadu_si512(m->offset + i), flip);
		__mmask16 k = (__mmask16)(m->exec >> i);
		__m512i old = _mm512_loadu_si512(m->data + i);

		_mm512_storeu_si512(m->data + i,
				    _mm512_mask_i32gather_epi32(old, k, at,
								middle, 1));
	}
}

/* Both dwords of lanes i and i + 1. */
static inline __m128i load_pair(const struct soft_move *m, int i)
{
	const __m128i first = _mm_loadl_epi64(
		(const __m128i *)(m->host + m->offset[i]));

	return _mm_castps_si128(_mm_loadh_pi(
		_mm_castsi128_ps(first),
		(const __m64 *)(m->host + m->offset[i + 1])));
}

static inline __m512i load_eight_pairs(const struct soft_move *m, int i)
{
	__m512i v = _mm512_zextsi128_si512(load_pair(m, i));

	v = _mm512_maskz_inserti32x4(ALL16, v, load_pair(m, i + 2), 1);
	v = _mm512_maskz_inserti32x4(ALL16, v, load_pair(m, i + 4), 2);
	return _mm512_maskz_inserti32x4(ALL16, v, load_pair(m, i + 6), 3);
}

static inline void load_all_twos(const struct soft_move *m)
{
	for (int i = 0; i < SOFT_LANES; i += 16) {
		const __m512i a = load_eight_pairs(m, i);
		const __m512i b = load_eight_pairs(m, i + 8);

		for (int j = 0; j < 2; j++)
			_mm512_storeu_si512(m->data + j * SOFT_LANES + i,
					    every_2nd(a, b, j));
	}
}

static inline void load_twos(const struct soft_move *m)
{
	const uint8_t *middle = m->host + MIDDLE;
	const __m256i flip = _mm256_set1_epi32((int)MIDDLE);

	for (int i = 0; i < SOFT_LANES; i += 8) {
		__m256i at = _mm256_xor_si256(
			_mm256_loadu_si256((const __m256i *)(m->offset + i)),
			flip);
		__mmask8 k = (__mmask8)(m->exec >> i);
		__m512i v = _mm512_mask_i32gather_epi64(_mm512_setzero_si512(),
							k, at, middle, 1);
		__m512i high = _mm512_maskz_srli_epi64(0xff, v, 32);

		_mm256_mask_storeu_epi32(m->data + i, k,
					 _mm512_maskz_cvtepi64_epi32(0xff, v));
		_mm256_mask_storeu_epi32(m->data + SOFT_LANES + i, k,
					 _mm512_maskz_cvtepi64_epi32(0xff,
								     high));
	}
}
#else
#define load_ones(m)	 load_lanes(m, 1)
#define load_twos(m)	 load_lanes(m, 2)
#define load_all_twos(m) load_lanes(m, 2)
#endif

/* ------------------------------------------------------------- dwords ---- */

static void load_32(const struct soft_move *m)
{
	if (in_order(m, 4))
		memcpy(m->data, m->host + m->offset[0], SOFT_LANES * 4);
	else
		load_ones(m);
}

static void load_64(const struct soft_move *m)
{
	if (in_order(m, 8))
		load_line_64(m);
	else if (m->exec == ~0u)
		load_all_twos(m);
	else
		load_twos(m);
}

static void load_96(const struct soft_move *m)
{
	load_lanes(m, 3);
}

static void load_128(const struct soft_move *m)
{
	if (m->exec == ~0u)
		load_fours(m);
	else
		load_lanes(m, 4);
}

static void store_32(const struct soft_move *m)
{
	if (in_order(m, 4))
		memcpy(m->host + m->offset[0], m->data, SOFT_LANES * 4);
	else
		store_lanes(m, 1);
}

static void store_64(const struct soft_move *m)
{
	if (in_order(m, 8))
		store_line_64(m);
	else
		store_lanes(m, 2);
}

static void store_96(const struct soft_move *m)
{
	store_lanes(m, 3);
}

static void store_128(const struct soft_move *m)
{
	if (m->exec == ~0u)
		store_fours(m);
	else
		store_lanes(m, 4);
}

/* -------------------------------------------------------------- parts ---- */

/*
 * Loads of less than a dword: `value` is what is at p, extended; `merge` puts
 *it (v) into the register *d.  LOAD_PART(low_u8, *p, (*d & 0xffff0000) | v) is
 *
 *	static inline void load_lane_low_u8(const struct soft_move *m, int i)
 *	{
 *		const uint8_t *p = m->host + m->offset[i];
 *		uint32_t *d = &m->data[i], v = *p;
 *
 *		*d = (*d & 0xffff0000) | v;
 *	}
 *
 * and load_low_u8(), which does so for each lane.
 */
#define LOAD_PART(name, value, merge) \
	static inline void load_lane_##name(const struct soft_move *m, int i) \
	{ \
		const uint8_t *p = m->host + m->offset[i]; \
		uint32_t *d = &m->data[i], v = value; \
\
		*d = merge; \
	} \
	static void load_##name(const struct soft_move *m) \
	{ \
		EACH_LANE(m, load_lane_##name(&own, (int)i)); \
	}
LOAD_PART(u8, *p, v)
LOAD_PART(i8, (uint32_t)(int8_t)*p, v)
LOAD_PART(i16, (uint32_t)(int16_t)get_u16(p), v)
LOAD_PART(low_u8, *p, (*d & 0xffff0000) | v)
LOAD_PART(low_i8, (uint16_t)(int8_t)*p, (*d & 0xffff0000) | v)
LOAD_PART(high_u8, *p, (*d & 0xffff) | v << 16)
LOAD_PART(high_i8, (uint32_t)(int8_t)*p, (*d & 0xffff) | v << 16)

/* Halves of all lanes at once, where they lie in a line or two equal ones. */
static inline bool load_halves(const struct soft_move *m, uint32_t *to)
{
	const uint8_t *p = m->host + m->offset[0];

	if (m->exec != ~0u)
		return false;
	if (!lanes_off_line(m->offset, 2))
		load_line_16(p, to);
	else if (lanes_repeat_line(m->offset, 2)) /* as matrix fragments do */
		load_row_16(p, to);
	else
		return false;
	return true;
}

static void load_u16(const struct soft_move *m)
{
	if (!load_halves(m, m->data))
		EACH_LANE(m, own.data[i] = get_u16(own.host + own.offset[i]));
}

/* To one half of a register: what the other one keeps is `mask`. */
static inline void load_half(const struct soft_move *m, uint32_t mask,
			     int shift)
{
	_Alignas(64) uint32_t v[SOFT_LANES];

	if (load_halves(m, v)) {
		LANES(i) m->data[i] = (m->data[i] & mask) | v[i] << shift;
		return;
	}
	EACH_LANE(m, own.data[i] = (own.data[i] & mask) |
				   get_u16(own.host + own.offset[i]) << shift);
}

static void load_low_16(const struct soft_move *m)
{
	load_half(m, 0xffff0000, 0);
}

static void load_high_16(const struct soft_move *m)
{
	load_half(m, 0xffff, 16);
}

/* Stores of `type`, which is `shift` bits up in the register. */
#define STORE_PART(name, type, shift) \
	static inline void store_lane_##name(const struct soft_move *m, int i) \
	{ \
		type v = (type)(m->data[i] >> (shift)); \
\
		memcpy(m->host + m->offset[i], &v, sizeof(v)); \
	} \
	static void store_##name(const struct soft_move *m) \
	{ \
		EACH_LANE(m, store_lane_##name(&own, (int)i)); \
	}
STORE_PART(8, uint8_t, 0)
STORE_PART(high_8, uint8_t, 16)

static inline void store_half(const struct soft_move *m, int shift)
{
	if (in_order(m, 2)) {
		store_line_16(m->host + m->offset[0], m->data, shift);
		return;
	}
	EACH_LANE(m, put_u16(own.host + own.offset[i], own.data[i] >> shift));
}

static void store_16(const struct soft_move *m)
{
	store_half(m, 0);
}

static void store_high_16(const struct soft_move *m)
{
	store_half(m, 16);
}

const struct soft_move_table SIMD(soft_moves) = { {
#define X(name) name,
	SOFT_MOVES(X)
#undef X
} };
