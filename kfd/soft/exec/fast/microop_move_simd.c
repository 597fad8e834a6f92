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

/* Do all lanes execute and follow each other, `bytes` apart? */
static inline bool in_order(const struct soft_move *m, uint32_t bytes)
{
	return m->exec == ~0u && !lanes_off_line(m->offset, bytes);
}

/* ------------------------------------------------------ lane by lane ---- */

static inline void load_lanes(const struct soft_move *m, int n)
{
	FOR_LANES(i, m->exec)
	{
		const uint8_t *p = m->host + m->offset[i];

		for (int j = 0; j < n; j++)
			m->data[j * SOFT_LANES + i] = get_u32(p + 4 * j);
	}
}

static inline void store_lanes(const struct soft_move *m, int n)
{
	FOR_LANES(i, m->exec)
	{
		uint8_t *p = m->host + m->offset[i];

		for (int j = 0; j < n; j++)
			put_u32(p + 4 * j, m->data[j * SOFT_LANES + i]);
	}
}

/* --------------------------------------------------------- in a line ---- */

static inline void load_line(const struct soft_move *m, int n)
{
	uint32_t row[4 * SOFT_LANES];

	memcpy(row, m->host + m->offset[0], (size_t)n * SOFT_LANES * 4);
	for (int j = 0; j < n; j++)
		LANES(i) m->data[j * SOFT_LANES + i] = row[i * n + j];
}

static inline void store_line(const struct soft_move *m, int n)
{
	uint32_t row[4 * SOFT_LANES];

	for (int j = 0; j < n; j++)
		LANES(i) row[i * n + j] = m->data[j * SOFT_LANES + i];
	memcpy(m->host + m->offset[0], row, (size_t)n * SOFT_LANES * 4);
}

/* --------------------------------------------- four dwords of a lane ---- */

#if defined(__AVX512F__)
/* The maskz forms, since GCC 12 warns about its own plain ones. */
#define ALL16 0xffff
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

/* Matrix fragments are the same in both rows of lanes: half the work. */
static inline void load_fours(const struct soft_move *m)
{
	bool twice = lanes_repeat(m->offset);
	__m512i v[4];

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
#define load_ones(m) load_lanes(m, 1)
#define load_twos(m) load_lanes(m, 2)
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
		load_line(m, 2);
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
		store_line(m, 2);
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
 *	static void load_low_u8(const struct soft_move *m)
 *	{
 *		FOR_LANES(i, m->exec)
 *		{
 *			const uint8_t *p = m->host + m->offset[i];
 *			uint32_t *d = &m->data[i], v = *p;
 *
 *			*d = (*d & 0xffff0000) | v;
 *		}
 *	}
 */
#define LOAD_PART(name, value, merge) \
	static void load_##name(const struct soft_move *m) \
	{ \
		FOR_LANES(i, m->exec) \
		{ \
			const uint8_t *p = m->host + m->offset[i]; \
			uint32_t *d = &m->data[i], v = value; \
\
			*d = merge; \
		} \
	}
LOAD_PART(u8, *p, v)
LOAD_PART(i8, (uint32_t)(int8_t)*p, v)
LOAD_PART(i16, (uint32_t)(int16_t)get_u16(p), v)
LOAD_PART(low_u8, *p, (*d & 0xffff0000) | v)
LOAD_PART(low_i8, (uint16_t)(int8_t)*p, (*d & 0xffff0000) | v)
LOAD_PART(low_16, get_u16(p), (*d & 0xffff0000) | v)
LOAD_PART(high_u8, *p, (*d & 0xffff) | v << 16)
LOAD_PART(high_i8, (uint32_t)(int8_t)*p, (*d & 0xffff) | v << 16)
LOAD_PART(high_16, get_u16(p), (*d & 0xffff) | v << 16)

static void load_u16(const struct soft_move *m)
{
	uint16_t row[SOFT_LANES];

	if (in_order(m, 2)) {
		memcpy(row, m->host + m->offset[0], sizeof(row));
		LANES(i) m->data[i] = row[i];
		return;
	}
	FOR_LANES(i, m->exec) m->data[i] = get_u16(m->host + m->offset[i]);
}

/* Stores of `type`, which is `shift` bits up in the register. */
#define STORE_PART(name, type, shift) \
	static void store_##name(const struct soft_move *m) \
	{ \
		FOR_LANES(i, m->exec) \
		{ \
			type v = (type)(m->data[i] >> (shift)); \
\
			memcpy(m->host + m->offset[i], &v, sizeof(v)); \
		} \
	}
STORE_PART(8, uint8_t, 0)
STORE_PART(high_8, uint8_t, 16)
STORE_PART(high_16, uint16_t, 16)

static void store_16(const struct soft_move *m)
{
	uint16_t row[SOFT_LANES];

	if (in_order(m, 2)) {
		LANES(i) row[i] = (uint16_t)m->data[i];
		memcpy(m->host + m->offset[0], row, sizeof(row));
		return;
	}
	FOR_LANES(i, m->exec)
	{
		uint16_t v = (uint16_t)m->data[i];

		memcpy(m->host + m->offset[i], &v, sizeof(v));
	}
}

const struct soft_move_table SIMD(soft_moves) = { {
#define X(name) name,
	SOFT_MOVES(X)
#undef X
} };
