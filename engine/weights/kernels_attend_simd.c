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

#include "engine/weights/kernels_attend.h"

INLINE vf load_value(enum qwen_weights type, const void *p, size_t i)
{
	switch (type) {
	case QWEN_W_F32:
		return load_f32((const float *)p + i);
	case QWEN_W_F16:
		return load_f16((const uint16_t *)p + i);
	case QWEN_W_BF16:
		return load_bf16((const uint16_t *)p + i);
	case QWEN_W_F8: /* but for F8_UNIT */
		return load_f8((const uint8_t *)p + i);
	case QWEN_W_INT4:
		return load_i4(p, i);
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
	case QWEN_W_F8:
		return f8_one(((const uint8_t *)p)[i]);
	default:
		return ((const int8_t *)p)[i];
	}
}

INLINE size_t bytes_of(enum qwen_weights type, size_t values)
{
	switch (type) {
	case QWEN_W_F32:
		return 4 * values;
	case QWEN_W_F16:
	case QWEN_W_BF16:
		return 2 * values;
	case QWEN_W_INT4:
		return values / 2;
	default:
		return values;
	}
}

/* What its values are multiples of, as load_value() has them. */
INLINE float unit_of(enum qwen_weights type)
{
	return type == QWEN_W_F8 ? F8_UNIT : 1;
}

/* ---- scores ---- */

/*
 * `rows` rows at p, one after the other, as the hardware's prefetcher wants
 * them; `heads` heads at q.  Both are constants where it is inlined.
 */
INLINE void sum_rows(enum qwen_weights type, const uint8_t *p, uint32_t d,
		     const float *q, int rows, int heads, vf *s)
{
	const size_t row_bytes = bytes_of(type, d);

#pragma GCC unroll 16
	for (int i = 0; i < rows * heads; i++)
		s[i] = splat(0);
#pragma GCC unroll 16
	for (int r = 0; r < rows; r++, p += row_bytes)
		for (uint32_t c = 0; c + LANES <= d; c += LANES) {
			const vf v = load_value(type, p, c);
			fetch_line(type, p + bytes_of(type, c),
				   bytes_of(type, c));
#pragma GCC unroll 4
			for (int h = 0; h < heads; h++)
				s[h * rows + r] =
					fma_(v, load(q + (size_t)h * d + c),
					     s[h * rows + r]);
		}
}

/*
 * While lanes are added up nothing is read: of rows that nobody asked for the
 * first half is fetched then.  f32, eight rows of 512 bytes: 22 GB/s without,
 * 27 with a half or three quarters, 25 with all (Zen 4, where a plain read has
 * 28).
 */
INLINE void fetch_next(enum qwen_weights type, const uint8_t *p, size_t bytes)
{
	if (rows_ahead(type))
		return;
	for (size_t at = 0; at < bytes / 2; at += 64)
		prefetch_behind(p, at);
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

/* Of d columns: a constant where it is the usual one. */
INLINE void score_columns(enum qwen_weights type, uint32_t d,
			  const struct qwen_matrix *k, const float *q,
			  int heads, float *out, size_t ldo)
{
	const uint32_t rows = LANES / (uint32_t)heads;
	const size_t row_bytes = bytes_of(type, d);
	const uint8_t *p = k->data;
	uint32_t r = 0;
	vf s[LANES];

	for (; r + rows <= k->rows; r += rows, p += rows * row_bytes) {
		float sum[LANES];
		sum_rows(type, p, d, q, (int)rows, heads, s);
		fetch_next(type, p + rows * row_bytes, rows * row_bytes);
		store(sum, sum_all(s) * unit_of(type));
		for (int h = 0; h < heads; h++)
			memcpy(out + h * ldo + r, sum + h * (int)rows,
			       rows * sizeof(float));
		for (uint32_t i = 0; i < LANES && d % LANES; i++)
			out[i / rows * ldo + r + i % rows] +=
				sum_rest(type, p + i % rows * row_bytes, d,
					 q + i / rows * d) *
				unit_of(type);
	}
	for (; r < k->rows; r++, p += row_bytes) {
		sum_rows(type, p, d, q, 1, heads, s);
		for (int h = 0; h < heads; h++)
			out[h * ldo + r] = (sum_lanes(s[h]) +
					    sum_rest(type, p, d, q + h * d)) *
					   unit_of(type);
	}
}

INLINE void score_heads(enum qwen_weights type, const struct qwen_matrix *k,
			const float *q, int heads, float *out, size_t ldo)
{
	if (k->cols == HEAD_DIM)
		score_columns(type, HEAD_DIM, k, q, heads, out, ldo);
	else
		score_columns(type, k->cols, k, q, heads, out, ldo);
}

#define SCORE(type, n, h, k, q, s, lds) \
	score_heads(type, k, q + (size_t)h * k->cols, n, s + h * lds, lds)

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
	case QWEN_W_F8:
		EACH_HEADS(heads, SCORE, QWEN_W_F8, k, q, s, lds)
		return;
	default:
		SIMD(qwen_scores_int)(k, q, heads, s, lds);
	}
}

/* ---- values ---- */

/* Rows that stay in the first cache while heads take them in turn. */
#define BLOCK_ROWS QWEN_MIX_ROWS
/* Heads together, and vectors of each: as many sums as registers hold. */
#define TURN 2
#if LANES == 16
#define WIDE 8
#else
#define WIDE 4
#endif

INLINE bool is_scaled(enum qwen_weights type)
{
	return type == QWEN_W_INT8 || type == QWEN_W_INT4;
}

struct values {
	enum qwen_weights type;
	const uint8_t *p; /* [rows][d] */
	uint32_t d, rows;
	/* [heads][rows][groups]: a row's share, times its scales */
	const float *share;
	uint32_t groups;
};

/*
 * Columns c + `more` .. of `heads` heads, `vecs` vectors: constants where
 * inlined, but for c, a multiple of a group.
 */
INLINE void mix_columns(enum qwen_weights type, const struct values *v,
			uint32_t c, uint32_t more, int heads, int vecs,
			float *y)
{
	const size_t row_bytes = bytes_of(type, v->d);
	const uint32_t ld = v->rows * v->groups;
	const uint32_t first = is_scaled(type) ? c / QWEN_GROUP : 0;
	const uint8_t *p = v->p + bytes_of(type, c);
	vf a[TURN][WIDE];

#pragma GCC unroll 2
	for (int h = 0; h < heads; h++)
#pragma GCC unroll 8
		for (int k = 0; k < vecs; k++)
			a[h][k] = load(y + (size_t)h * v->d + c + more +
				       k * LANES);
	for (uint32_t r = 0; r < v->rows; r++, p += row_bytes) {
		const float *share = v->share + r * v->groups + first;
		for (size_t i = 0; i < row_bytes && c + more == 0; i += 64)
			fetch_line(type, p + i, i);
#pragma GCC unroll 8
		for (int k = 0; k < vecs; k++) {
			vf x = load_value(type, p, more + k * LANES);
			uint32_t g = is_scaled(type) ?
					     (more + k * LANES) / QWEN_GROUP :
					     0;
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
			store(y + (size_t)h * v->d + c + more + k * LANES,
			      a[h][k]);
}

INLINE void mix_turn(enum qwen_weights type, const struct values *v, int heads,
		     float *y)
{
	uint32_t c = 0;

	for (; c + WIDE * LANES <= v->d; c += WIDE * LANES) {
		const uint32_t more =
			WIDE * LANES % QWEN_GROUP ? c % QWEN_GROUP : 0;
		mix_columns(type, v, c - more, more, heads, WIDE, y);
	}
	for (; c + LANES <= v->d; c += LANES)
		mix_columns(type, v, c - c % QWEN_GROUP, c % QWEN_GROUP, heads,
			    1, y);
	for (; c < v->d; c++)
		for (uint32_t r = 0; r < v->rows; r++)
			for (int h = 0; h < heads; h++)
				y[(size_t)h * v->d + c] +=
					v->share[h * (int)v->rows + (int)r] *
					value_of(type, v->p,
						 (size_t)r * v->d + c);
}

/* Rows whose four scales each make a vector, and their shares at s. */
#define QUADS (LANES / 4)

static inline vf spread_quads(const float *s)
{
#if LANES == 16
	return (vf)_mm512_maskz_permutexvar_ps(
		0xffff,
		_mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3,
				  3),
		_mm512_castps128_ps512(_mm_loadu_ps(s)));
#elif LANES == 8
	return (vf){ s[0], s[0], s[0], s[0], s[1], s[1], s[1], s[1] };
#else
	return splat(s[0]);
#endif
}

/* One head's shares of the rows, times the unit or their groups' scales. */
static void shares_scale(const struct values *v, const float *s,
			 const uint16_t *scale, float unit, float *share)
{
	uint32_t r = 0;

	if (!scale)
		for (; r + LANES <= v->rows; r += LANES)
			store(share + r, load(s + r) * unit);
	else if (v->groups == 4)
		for (; r + QUADS <= v->rows; r += QUADS)
			store(share + 4 * r,
			      spread_quads(s + r) * load_f16(scale + 4 * r));
	for (; r < v->rows; r++)
		for (uint32_t g = 0; g < v->groups; g++)
			share[r * v->groups + g] =
				s[r] *
				(scale ? f16_one(scale[r * v->groups + g]) :
					 unit);
}

/* Shares [heads][rows][groups] of a block's rows. */
static void shares_init(const struct qwen_matrix *m, uint32_t row,
			struct values *v, const float *s, size_t lds,
			uint32_t heads, float *share)
{
	const uint16_t *scale = m->scale ? m->scale + (size_t)row * v->groups :
					   NULL;

	for (uint32_t h = 0; h < heads; h++)
		shares_scale(v, s + h * lds + row, scale, unit_of(m->type),
			     share + (size_t)h * v->rows * v->groups);
}

/* Are sums of its values in integers faster? */
INLINE bool is_mixed_in_bytes(enum qwen_weights type,
			      const struct qwen_matrix *m)
{
#if LANES == 16
	return type == QWEN_W_INT8 && m->cols == 128 &&
	       __builtin_cpu_supports("avx512vnni");
#else
	(void)type, (void)m;
	return false;
#endif
}

INLINE void mix_type(enum qwen_weights type, const struct qwen_matrix *m,
		     const float *s, size_t lds, uint32_t heads, float *y,
		     float *share)
{
	const size_t row_bytes = bytes_of(type, m->cols);
	struct values v = { .type = type,
			    .d = m->cols,
			    .share = share,
			    .groups = m->scale ? m->cols / QWEN_GROUP : 1 };

	for (uint32_t row = 0; row < m->rows; row += v.rows) {
		v.rows = m->rows - row < BLOCK_ROWS ? m->rows - row :
						      BLOCK_ROWS;
		v.p = (const uint8_t *)m->data + row * row_bytes;
		for (uint32_t h = 0; h < heads; h += TURN) {
			uint32_t n = heads - h < TURN ? heads - h : TURN;
			float *to = y + (size_t)h * m->cols;
			shares_init(m, row, &v, s + h * lds, lds, n, share);
			if (is_mixed_in_bytes(type, m))
				mix_bytes(v.p, v.rows, share, n, to);
			else if (n == TURN)
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
	case QWEN_W_F8:
		mix_type(QWEN_W_F8, m, s, lds, heads, y, share);
		break;
	case QWEN_W_INT4:
		mix_type(QWEN_W_INT4, m, s, lds, heads, y, share);
		break;
	default:
		mix_type(QWEN_W_INT8, m, s, lds, heads, y, share);
	}
	if (share != few)
		free(share);
}
