/*
 * engine/weights/kernels_attend_simd.c - attention of one token with keys and
 * values as the cache has them.
 *
 * Heads that share keys take each of them together, as many rows at a time as
 * make a vector of scores: LANES sums, of some rows and some heads, whose lanes
 * are added up all at once.  A row's sum has one order, whatever it stands
 * beside.
 */
#include <stdlib.h>

#include "engine/weights/kernels_simd.h"

#define INLINE static inline __attribute__((always_inline))

/* Heads together, at most. */
#define HEADS 4

INLINE vf load_value(enum qwen_weights type, const void *p, size_t i)
{
	switch (type) {
	case QWEN_W_F32:
		return load_f32((const float *)p + i);
	case QWEN_W_F16:
		return load_f16((const uint16_t *)p + i);
	case QWEN_W_BF16:
		return load_bf16((const uint16_t *)p + i);
	default:
		return load_i8((const int8_t *)p + i);
	}
}

INLINE float value_of(enum qwen_weights type, const void *p, size_t i)
{
	switch (type) {
	case QWEN_W_F32:
		return ((const float *)p)[i];
	case QWEN_W_F16:
		return f16_one(((const uint16_t *)p)[i]);
	case QWEN_W_BF16:
		return bf16_one(((const uint16_t *)p)[i]);
	default:
		return ((const int8_t *)p)[i];
	}
}

INLINE size_t size_of(enum qwen_weights type)
{
	return type == QWEN_W_F32 ? 4 : type == QWEN_W_INT8 ? 1 : 2;
}

/* ---- lanes added up ---- */

/*
 * Which lane of two vectors comes to lane i where, of blocks of n lanes, every
 * other one of both is wanted, the first of each pair; the second is n behind.
 */
#define FROM(i, n)  ((i) % (2 * (n)) < (n) ? (i) : LANES + (i) - (n))
#define FROM4(i, n) FROM(i, n), FROM(i + 1, n), FROM(i + 2, n), FROM(i + 3, n)
#if LANES == 16
#define ALL(n)	    FROM4(0, n), FROM4(4, n), FROM4(8, n), FROM4(12, n)
#define SUM_STEPS(do) do(8) do(4) do(2) do(1)
#elif LANES == 8
#define ALL(n)	    FROM4(0, n), FROM4(4, n)
#define SUM_STEPS(do) do(4) do(2) do(1)
#else
#define ALL(n)	    FROM4(0, n)
#define SUM_STEPS(do) do(2) do(1)
#endif

INLINE vf permute_two(vf a, vf b, vi from)
{
#ifdef __clang__ /* has shuffles by constants only */
	vf r;

	for (int i = 0; i < LANES; i++)
		r[i] = from[i] < LANES ? a[from[i]] : b[from[i] - LANES];
	return r;
#else
	return __builtin_shuffle(a, b, from);
#endif
}

/* n vectors of sums from 2n: blocks of n lanes are added. */
INLINE void sum_step(vf *s, int n, vi from)
{
#pragma GCC unroll 8
	for (int i = 0; i < n; i++)
		s[i] = permute_two(s[i], s[i + n], from) +
		       permute_two(s[i], s[i + n], from + n);
}

/* Lane i becomes the sum of the lanes of s[i], by halves, as sum_lanes(). */
INLINE vf sum_all(vf s[LANES])
{
#define SUM_STEP(n) sum_step(s, n, (vi){ ALL(n) });
	SUM_STEPS(SUM_STEP)
	return s[0];
}

/* ---- scores ---- */

/* `rows` rows at p, `heads` heads at q: constants where it is inlined. */
INLINE void sum_rows(enum qwen_weights type, const uint8_t *p, uint32_t d,
		     const float *q, int rows, int heads, vf *s)
{
	const size_t row_bytes = d * size_of(type);

#pragma GCC unroll 16
	for (int i = 0; i < rows * heads; i++)
		s[i] = splat(0);
	for (uint32_t c = 0; c + LANES <= d; c += LANES) {
		vf x[HEADS];
#pragma GCC unroll 4
		for (int h = 0; h < heads; h++)
			x[h] = load(q + (size_t)h * d + c);
#pragma GCC unroll 16
		for (int r = 0; r < rows; r++) {
			vf v = load_value(type, p + r * row_bytes, c);
#pragma GCC unroll 4
			for (int h = 0; h < heads; h++)
				s[h * rows + r] =
					fma_(v, x[h], s[h * rows + r]);
		}
	}
}

/* What columns that fill no vector add. */
INLINE float sum_rest(enum qwen_weights type, const uint8_t *p, uint32_t d,
		      const float *q)
{
	float sum = 0;

	for (uint32_t c = d / LANES * LANES; c < d; c++)
		sum += value_of(type, p, c) * q[c];
	return sum;
}

/* Asks for what is read some rows later. */
INLINE void fetch_rows(const uint8_t *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64)
		prefetch_line(p + i);
}

INLINE void score_heads(enum qwen_weights type, const struct qwen_matrix *k,
			const float *q, int heads, float *out, size_t ldo)
{
	const uint32_t d = k->cols, rows = LANES / (uint32_t)heads;
	const size_t row_bytes = d * size_of(type);
	const uint8_t *p = k->data;
	uint32_t r = 0;
	vf s[LANES];

	for (; r + rows <= k->rows; r += rows, p += rows * row_bytes) {
		float sum[LANES];
		fetch_rows(p, rows * row_bytes);
		sum_rows(type, p, d, q, (int)rows, heads, s);
		store(sum, sum_all(s));
		for (int h = 0; h < heads; h++)
			memcpy(out + h * ldo + r, sum + h * (int)rows,
			       rows * sizeof(float));
		for (uint32_t i = 0; i < LANES && d % LANES; i++)
			out[i / rows * ldo + r + i % rows] +=
				sum_rest(type, p + i % rows * row_bytes, d,
					 q + i / rows * d);
	}
	for (; r < k->rows; r++, p += row_bytes) {
		sum_rows(type, p, d, q, 1, heads, s);
		for (int h = 0; h < heads; h++)
			out[h * ldo + r] = sum_lanes(s[h]) +
					   sum_rest(type, p, d, q + h * d);
	}
}

/* call(type, heads, ...) for as many heads at a time as there are left. */
#define EACH_HEADS(heads, call, type, ...) \
	for (uint32_t h = 0; h < (heads);) \
		if ((heads) - h >= 4) { \
			call(type, 4, h, __VA_ARGS__); \
			h += 4; \
		} else if ((heads) - h >= 2) { \
			call(type, 2, h, __VA_ARGS__); \
			h += 2; \
		} else { \
			call(type, 1, h, __VA_ARGS__); \
			h++; \
		}
#define SCORE(type, n, h, k, q, s, lds) \
	score_heads(type, k, q + (size_t)h * k->cols, n, s + h * lds, lds)

/* ---- of integers ---- */

#if LANES >= 8
#if LANES == 16
#define TARGET __attribute__((target("avx512vnni"), always_inline))
typedef __m512i vb;
#else
#define TARGET __attribute__((always_inline))
typedef __m256i vb;
#endif
#define BYTES (LANES * 4)

/* Heads' queries as bytes: of one vector of columns. */
struct bytes {
	vb q;
	vf scale;
#if LANES == 16
	vb first; /* what the offset of the keys adds, negative */
#endif
};

/* Sums of four products side by side of keys k and queries. */
static inline TARGET vf dot_bytes(vb k, const struct bytes *q)
{
#if LANES == 16
	vi sum = (vi)_mm512_dpbusd_epi32(q->first, k, q->q);
#else
	vi sum = (vi)_mm256_madd_epi16(
		_mm256_maddubs_epi16(_mm256_abs_epi8(k),
				     _mm256_sign_epi8(q->q, k)),
		_mm256_set1_epi16(1));
#endif
	return __builtin_convertvector(sum, vf);
}

static inline TARGET vb load_bytes(const void *p)
{
#if LANES == 16
	/* The instruction multiplies unsigned bytes by signed ones. */
	return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(-128));
#else
	return _mm256_loadu_si256(p);
#endif
}

/* The factors of the groups in a vector of bytes, each in its lanes. */
static inline TARGET vf spread_scales(const float *d)
{
#if LANES == 16
	return (vf)_mm512_maskz_insertf32x8(
		0xffff, _mm512_castps256_ps512(_mm256_set1_ps(d[0])),
		_mm256_set1_ps(d[1]), 1);
#else
	return splat(d[0]);
#endif
}

/* The columns of INT8 heads that are computed with at once. */
#define MOST_COLS   256
#define MOST_GROUPS (MOST_COLS / QWEN_GROUP)

/* Queries [d] to bytes; groups beyond d are zero. */
static inline TARGET void bytes_init(struct bytes *b, const float *q,
				     uint32_t d)
{
	_Alignas(64) int8_t byte[MOST_COLS] = { 0 };
	float scale[MOST_GROUPS] = { 0 }, sum[MOST_GROUPS];
	const struct qwen_quants to = { byte, scale, sum, NULL };

	LEVEL(qwen_quantize_)(q, d, &to);
	for (uint32_t c = 0; c < d; c += BYTES, b++) {
		memcpy(&b->q, byte + c, sizeof(b->q));
		b->scale = spread_scales(scale + c / QWEN_GROUP);
#if LANES == 16
		b->first = _mm512_slli_epi32(
			_mm512_dpbusd_epi32(_mm512_setzero_si512(),
					    _mm512_set1_epi8(1), b->q), 7);
		b->first = _mm512_sub_epi32(_mm512_setzero_si512(), b->first);
#endif
	}
}

/* Rows and heads as sum_rows() has them; scales are [rows][MOST_GROUPS]. */
static inline TARGET void sum_int(const uint8_t *p, const float *scale,
				  uint32_t d, const struct bytes *b, int rows,
				  int heads, vf *s)
{
	const uint32_t parts = (d + BYTES - 1) / BYTES;

#pragma GCC unroll 16
	for (int i = 0; i < rows * heads; i++)
		s[i] = splat(0);
	for (uint32_t c = 0; c < parts; c++)
#pragma GCC unroll 16
		for (int r = 0; r < rows; r++) {
			vb k = load_bytes(p + (size_t)r * d + c * BYTES);
			vf f = spread_scales(scale + r * MOST_GROUPS +
					     c * BYTES / QWEN_GROUP);
#pragma GCC unroll 4
			for (int h = 0; h < heads; h++) {
				const struct bytes *x = &b[h * (int)parts];
				s[h * rows + r] = fma_(dot_bytes(k, &x[c]),
						       f * x[c].scale,
						       s[h * rows + r]);
			}
		}
}

/* Of `rows` rows from r on, as f32; what is behind the last group stays 0. */
static inline TARGET void widen_scales(const struct qwen_matrix *k, uint32_t r,
				       uint32_t rows, float *scale)
{
	const uint32_t groups = k->cols / QWEN_GROUP;
	const uint16_t *from = k->scale + (size_t)r * groups;

	if (groups == MOST_GROUPS / 2) { /* heads of 128 */
#pragma GCC unroll 16
		for (uint32_t i = 0; i < rows; i++, from += groups) {
			__m128i h = _mm_loadl_epi64((const void *)from);
			_mm_storeu_ps(scale + i * MOST_GROUPS, _mm_cvtph_ps(h));
		}
		return;
	}
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t g = 0; g < groups; g++)
			scale[i * MOST_GROUPS + g] = f16_one(*from++);
}

static inline TARGET void score_int(const struct qwen_matrix *k, const float *q,
				    int heads, float *out, size_t ldo)
{
	const uint32_t d = k->cols, rows = LANES / (uint32_t)heads;
	const uint32_t parts = (d + BYTES - 1) / BYTES;
	float scale[LANES * MOST_GROUPS] = { 0 };
	struct bytes b[HEADS * MOST_COLS / BYTES];
	const uint8_t *p = k->data;
	uint32_t r = 0;
	vf s[LANES];

	for (int h = 0; h < heads; h++)
		bytes_init(b + h * (int)parts, q + (size_t)h * d, d);
	for (; r + rows <= k->rows; r += rows, p += (size_t)rows * d) {
		float sum[LANES];
		fetch_rows(p, (size_t)rows * d);
		widen_scales(k, r, rows, scale);
		sum_int(p, scale, d, b, (int)rows, heads, s);
		store(sum, sum_all(s));
		for (int h = 0; h < heads; h++)
			memcpy(out + (size_t)h * ldo + r, sum + h * (int)rows,
			       rows * sizeof(float));
	}
	for (; r < k->rows; r++, p += d) {
		widen_scales(k, r, 1, scale);
		sum_int(p, scale, d, b, 1, heads, s);
		for (int h = 0; h < heads; h++)
			out[(size_t)h * ldo + r] = sum_lanes(s[h]);
	}
}

#define SCORE_INT(type, n, h, k, q, s, lds) \
	score_int(k, q + (size_t)h * k->cols, n, s + h * lds, lds)
#if LANES == 16
static __attribute__((target("avx512vnni"))) void
#else
static void
#endif
scores_int(const struct qwen_matrix *k, const float *q, uint32_t heads,
	   float *s, size_t lds)
{
	EACH_HEADS(heads, SCORE_INT, QWEN_W_INT8, k, q, s, lds)
}
#endif

#if LANES < 16
/* Row by row as f32: where bytes have no product, or heads are large. */
static void scores_wide(const struct qwen_matrix *k, const float *q,
			uint32_t heads, float *s, size_t lds)
{
	for (uint32_t r = 0; r < k->rows; r++)
		for (uint32_t h = 0; h < heads; h++) {
			float sum = 0;
			for (uint32_t c = 0; c < k->cols; c += QWEN_GROUP) {
				float x[QWEN_GROUP];
				vf v = { 0 };
				LEVEL(qwen_unpack_)(k, r, c, QWEN_GROUP, x);
				for (int i = 0; i < QWEN_GROUP; i += LANES)
					v = fma_(load(x + i),
						 load(q + h * k->cols + c + i),
						 v);
				sum += sum_lanes(v);
			}
			s[h * lds + r] = sum;
		}
}
#endif

void score_keys(const struct qwen_matrix *k, const float *q, uint32_t heads,
		float *s, size_t lds)
{
	switch (k->type) {
	case QWEN_W_F32:
		EACH_HEADS(heads, SCORE, QWEN_W_F32, k, q, s, lds)
		return;
	case QWEN_W_F16:
		EACH_HEADS(heads, SCORE, QWEN_W_F16, k, q, s, lds)
		return;
	case QWEN_W_BF16:
		EACH_HEADS(heads, SCORE, QWEN_W_BF16, k, q, s, lds)
		return;
	default:
		break;
	}
#if LANES == 16
	/* The first processors with AVX-512 have no such instruction. */
	if (__builtin_cpu_supports("avx512vnni") && k->cols <= MOST_COLS)
		scores_int(k, q, heads, s, lds);
	else
		qwen_scores_v3(k, q, heads, s, lds);
#elif LANES == 8
	if (k->cols <= MOST_COLS)
		scores_int(k, q, heads, s, lds);
	else
		scores_wide(k, q, heads, s, lds);
#else
	scores_wide(k, q, heads, s, lds);
#endif
}

/* ---- values ---- */

/* Rows that stay in the first cache while heads take them in turn. */
#define BLOCK_ROWS 32
/* Heads together, and vectors of each: as many sums as registers hold. */
#define TURN 2
#if LANES == 16
#define WIDE 8
#else
#define WIDE 4
#endif

struct values {
	enum qwen_weights type;
	const uint8_t *p; /* [rows][d] */
	uint32_t d, rows;
	/* [heads][rows][groups]: a row's share, with INT8 times its scales */
	const float *share;
	uint32_t groups;
};

/* Columns c .. of `heads` heads, `vecs` vectors: constants where inlined. */
INLINE void mix_columns(enum qwen_weights type, const struct values *v,
			uint32_t c, int heads, int vecs, float *y)
{
	const size_t row_bytes = v->d * size_of(type);
	const uint32_t ld = v->rows * v->groups;
	const uint8_t *p = v->p;
	vf a[TURN][WIDE];

#pragma GCC unroll 2
	for (int h = 0; h < heads; h++)
#pragma GCC unroll 8
		for (int k = 0; k < vecs; k++)
			a[h][k] = load(y + (size_t)h * v->d + c + k * LANES);
	for (uint32_t r = 0; r < v->rows; r++, p += row_bytes) {
		const float *share = v->share + r * v->groups;
		if (c == 0)
			fetch_rows(p, row_bytes);
#pragma GCC unroll 8
		for (int k = 0; k < vecs; k++) {
			vf x = load_value(type, p, c + k * LANES);
			uint32_t g = type == QWEN_W_INT8 ?
				(c + k * LANES) / QWEN_GROUP : 0;
#pragma GCC unroll 2
			for (int h = 0; h < heads; h++)
				a[h][k] = fma_(splat(share[h * ld + g]), x,
					       a[h][k]);
		}
	}
#pragma GCC unroll 2
	for (int h = 0; h < heads; h++)
#pragma GCC unroll 8
		for (int k = 0; k < vecs; k++)
			store(y + (size_t)h * v->d + c + k * LANES, a[h][k]);
}

INLINE void mix_turn(enum qwen_weights type, const struct values *v, int heads,
		     float *y)
{
	uint32_t c = 0;

	for (; c + WIDE * LANES <= v->d; c += WIDE * LANES)
		mix_columns(type, v, c, heads, WIDE, y);
	for (; c + LANES <= v->d; c += LANES)
		mix_columns(type, v, c, heads, 1, y);
	for (; c < v->d; c++)
		for (uint32_t r = 0; r < v->rows; r++)
			for (int h = 0; h < heads; h++)
				y[(size_t)h * v->d + c] +=
					v->share[h * (int)v->rows + (int)r] *
					value_of(type, v->p, (size_t)r * v->d +
							     c);
}

/* Shares [heads][rows] of a block's rows; of INT8 times each group's scale. */
static void shares_init(const struct qwen_matrix *m, uint32_t row,
			struct values *v, const float *s, size_t lds,
			uint32_t heads, float *share)
{
	const uint16_t *scale =
		m->scale ? m->scale + (size_t)row * v->groups : NULL;

	for (uint32_t h = 0; h < heads; h++)
		for (uint32_t r = 0; r < v->rows; r++) {
			float x = s[h * lds + row + r];
			float *to = share + (h * v->rows + r) * v->groups;
			if (!scale)
				*to = x;
#ifdef __F16C__
			else if (v->groups == 4)
				_mm_storeu_ps(to, _mm_set1_ps(x) *
					_mm_cvtph_ps(_mm_loadl_epi64(
						(const void *)(scale +
							       4 * r))));
#endif
			else
				for (uint32_t g = 0; g < v->groups; g++)
					to[g] = x * f16_one(scale[r * v->groups
								  + g]);
		}
}

INLINE void mix_type(enum qwen_weights type, const struct qwen_matrix *m,
		     const float *s, size_t lds, uint32_t heads, float *y,
		     float *share)
{
	const size_t row_bytes = m->cols * size_of(type);
	struct values v = { .type = type, .d = m->cols, .share = share,
			    .groups = m->scale ? m->cols / QWEN_GROUP : 1 };

	for (uint32_t row = 0; row < m->rows; row += v.rows) {
		v.rows = m->rows - row < BLOCK_ROWS ? m->rows - row :
						      BLOCK_ROWS;
		v.p = (const uint8_t *)m->data + row * row_bytes;
		for (uint32_t h = 0; h < heads; h += TURN) {
			uint32_t n = heads - h < TURN ? heads - h : TURN;
			float *to = y + (size_t)h * m->cols;
			shares_init(m, row, &v, s + h * lds, lds, n, share);
			if (n == TURN)
				mix_turn(type, &v, TURN, to);
			else
				mix_turn(type, &v, 1, to);
		}
	}
}

void mix_values(const struct qwen_matrix *m, const float *s, size_t lds,
		uint32_t heads, float *y)
{
	float few[TURN * BLOCK_ROWS * 8], *share = few;

	if (m->scale && m->cols > 8 * QWEN_GROUP)
		share = xmalloc(TURN * BLOCK_ROWS * (m->cols / QWEN_GROUP) *
				sizeof(float));
	switch (m->type) {
	case QWEN_W_F32:
		mix_type(QWEN_W_F32, m, s, lds, heads, y, share);
		break;
	case QWEN_W_F16:
		mix_type(QWEN_W_F16, m, s, lds, heads, y, share);
		break;
	case QWEN_W_BF16:
		mix_type(QWEN_W_BF16, m, s, lds, heads, y, share);
		break;
	default:
		mix_type(QWEN_W_INT8, m, s, lds, heads, y, share);
	}
	if (share != few)
		free(share);
}
