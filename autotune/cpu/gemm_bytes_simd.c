/*
 * autotune/cpu/gemm_bytes_simd.c - tiles of 8-bit integers: A and B in groups
 * of 32 k's that share a scale.
 *
 * Within a group sums are integers and exact, four products at a time
 * (gemm_quads.h); then they are multiplied by both scales and added in f32.
 */
#include "autotune/cpu/gemm_quads.h"

#if LANES >= 8

/* ---- the tile ---- */

/* One group of all rows and columns; constants where it is inlined. */
static ALWAYS void add_group(enum kind kind, vf s[ROWS_MAX][VECS_MAX],
			     const char *p, size_t ldp, const float *q,
			     int rows, int vecs)
{
	vi sum[ROWS_MAX][VECS_MAX];
	vf scale[VECS_MAX];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			sum[i][j] = kind == AVX2_BYTES ?
				(vi){ 0 } :
				spread_word(p + (size_t)i * ldp +
					    CPU_BYTES_OFFSET);
	add_products(kind, sum, p, ldp, q, rows, vecs);
#pragma GCC unroll 3
	for (int j = 0; j < vecs; j++)
		scale[j] = load(q + (QUADS * vecs + j) * LANES);
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++) {
		vf a = spread_float(p + (size_t)i * ldp + CPU_BYTES_SCALE);
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			s[i][j] = fma_(__builtin_convertvector(sum[i][j], vf),
				       a * scale[j], s[i][j]);
	}
}

static ALWAYS void run_tile(enum kind kind, const struct cpu_bytes_block *b,
			    int rows, int vecs)
{
	const char *p = b->rows;
	const float *q = b->columns;
	vf s[ROWS_MAX][VECS_MAX];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++) {
			s[i][j] = (vf){ 0 };
			__builtin_prefetch(b->c + (size_t)i * b->ldc +
					   j * LANES);
		}
	for (size_t g = 0; g < b->groups; g++) {
		fetch_rows(p, b->rows_ld_bytes, rows);
		add_group(kind, s, p, b->rows_ld_bytes, q, rows, vecs);
		p += CPU_BYTES_ROW;
		q += (QUADS + 1) * vecs * LANES;
	}
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
		for (int j = 0; j < vecs; j++)
			update_vector(b->c + (size_t)i * b->ldc + j * LANES,
				      s[i][j], b->alpha, b->beta);
}

/* ---- packing ---- */

/* Integers of a vector of floats that are some; their low bytes. */
static ALWAYS void store_bytes(int8_t *p, vi v)
{
#if LANES == 16
	_mm_storeu_si128((__m128i *)p,
			 _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v));
#else
	for (int i = 0; i < LANES; i++)
		p[i] = (int8_t)v[i];
#endif
}

/* The largest of its values without their signs, NaN above all. */
static ALWAYS float most_of(const vf *x)
{
	vi top = (vi)x[0] & 0x7fffffff;
	int32_t most = 0;
	float f;

	for (int i = 1; i < GROUP / LANES; i++)
		top = larger_of(top, (vi)x[i] & 0x7fffffff);
#if LANES == 16
	most = _mm512_reduce_max_epi32((__m512i)top);
#else
	for (int i = 0; i < LANES; i++)
		most = top[i] > most ? top[i] : most;
#endif
	memcpy(&f, &most, sizeof(f));
	return f;
}

/* A group to bytes; returns its scale.  What is no number makes that NaN. */
static ALWAYS float quantize_group(const float *x, size_t n, int8_t *q,
				   int32_t *sum)
{
	const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds */
	vf v[GROUP / LANES];
	vi all = { 0 };

	for (size_t i = 0; i < GROUP / LANES; i++) {
		size_t left = n > i * LANES ? n - i * LANES : 0;
		v[i] = left >= LANES ? load(x + i * LANES) :
		       left	     ? load_some(x + i * LANES, left) :
				       (vf){ 0 };
	}
	float d = most_of(v) / 127, inverse = d > 0 ? 1 / d : 0;
	for (int i = 0; i < GROUP / LANES; i++) {
		vi whole = (vi)(v[i] * inverse + round) - (vi)splat(round);
		store_bytes(q + i * LANES, whole);
		all += whole;
	}
	*sum = 0;
#if LANES == 16
	*sum = _mm512_reduce_add_epi32((__m512i)all);
#else
	for (int i = 0; i < LANES; i++)
		*sum += all[i];
#endif
	return d;
}

static ALWAYS void store_group(char *out, int32_t offset, float scale)
{
	memcpy(out + CPU_BYTES_OFFSET, &offset, sizeof(offset));
	memcpy(out + CPU_BYTES_SCALE, &scale, sizeof(scale));
}

static ALWAYS void pack_group(const float *x, size_t n, char *out)
{
	int32_t sum;
	float d = quantize_group(x, n, (int8_t *)out, &sum);

	/* Of what is infinite it may be anything. */
	store_group(out, (int32_t)(-128u * (uint32_t)sum), d);
}

#if LANES == 16
/*
 * n vectors in one, n a power of 2: lane i gets the lanes of vector i % n that
 * equal it above that, by sum or by the largest.
 */
static ALWAYS vi fold_vectors(vi *v, int n, bool sum)
{
	vi lane;

	for (int i = 0; i < LANES; i++)
		lane[i] = i;
#pragma GCC unroll 4
	for (int s = n / 2; s; s /= 2) {
		vi odd = (lane & s) != 0;
		vi low = lane + (odd & (LANES - s));
		vi high = lane + s + (odd & (LANES - s));
#pragma GCC unroll 8
		for (int i = 0; i < s; i++) {
			vi a = (vi)permute_two((vf)v[i], (vf)v[i + s], low);
			vi b = (vi)permute_two((vf)v[i], (vf)v[i + s], high);
			v[i] = sum ? a + b : larger_of(a, b);
		}
	}
	return v[0];
}

/* Scales of 16 groups, of which no number makes NaN, and their inverses. */
static ALWAYS vf scale_groups(const float *const *x, vf *inverse)
{
	vi top[LANES];
	vf d, one;

#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++) {
		vi a = (vi)load(x[i]) & 0x7fffffff;
		vi b = (vi)load(x[i] + LANES) & 0x7fffffff;
		top[i] = larger_of(a, b);
	}
	d = (vf)fold_vectors(top, LANES, false) / 127;
	one = 1 / d;
	*inverse = (vf)((vi)one & (one < __builtin_inff()));
	return d + (d - d);
}

/* Two groups of 32 values, times a factor each, to their nearest integers. */
static ALWAYS vi round_pair(const float *const *x, const float *factor)
{
	__m512i v[4];

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		v[i] = _mm512_maskz_cvtps_epi32(
			0xffff, (__m512)(load(x[i / 2] + i % 2 * LANES) *
					 splat(factor[i / 2])));
	return pack_bytes(v);
}

/* Their integers and offsets. */
static ALWAYS void round_groups(const float *const *x, const float *scale,
				const float *factor, char *out)
{
	const vi most = (vi){ 0 } + (int32_t)0x80808080;
	vi sum[LANES / 2];
	uint64_t both[LANES]; /* offset, scale */
	vi from, next;

#pragma GCC unroll 8
	for (int i = 0; i < LANES; i += 2) {
		vi q = round_pair(x + i, factor + i);
		char *to = out + i * CPU_BYTES_ROW;
		memcpy(to, &q, GROUP);
		memcpy(to + CPU_BYTES_ROW, (char *)&q + GROUP, GROUP);
		sum[i / 2] = (vi){ 0 };
		add_quads(AVX512_VNNI, &sum[i / 2], most, q);
	}
	/* Of group i it is in lane i / 2, of odd ones 8 lanes behind. */
	for (int i = 0; i < LANES; i++)
		from[i] = i % 2 ? LANES + i / 2 : i / 4 + i / 2 % 2 * 8;
	next = from + ((vi)(from < LANES) & -4) + 8;
	const vf offset = (vf)-fold_vectors(sum, LANES / 2, true);
	store((float *)both, permute_two(offset, load(scale), from));
	store((float *)(both + 8),
	      permute_two(offset, load(scale), next));
	for (int i = 0; i < LANES; i++)
		memcpy(out + i * CPU_BYTES_ROW + CPU_BYTES_OFFSET, &both[i],
		       sizeof(both[i]));
}

/*
 * The same as pack_group() of n whole groups, a multiple of 16, from the `at`-th
 * of all on; first all scales, for integers wait long for theirs.
 */
#define MANY 64
static ALWAYS void pack_groups(const float *a, size_t lda, size_t groups,
			       size_t at, size_t n, char *out)
{
	float scale[MANY], factor[MANY];
	const float *x[MANY];
	size_t row = at / groups, in = at % groups;

	for (size_t i = 0; i < n; i++) {
		x[i] = a + row * lda + in * GROUP;
		in = in + 1 < groups ? in + 1 : 0;
		row += !in;
	}
	for (size_t i = 0; i < n; i += LANES) {
		vf inverse;
		store(scale + i, scale_groups(x + i, &inverse));
		store(factor + i, inverse);
	}
	for (size_t i = 0; i < n; i += LANES)
		round_groups(x + i, scale + i, factor + i,
			     out + (at + i) * CPU_BYTES_ROW);
}
#endif

static void pack_rows(const float *a, size_t lda, size_t rows, size_t k,
		      char *out)
{
	const size_t groups = (k + GROUP - 1) / GROUP, all = rows * groups;
	size_t at = 0;

#if LANES == 16
	for (size_t n; k % GROUP == 0 && (n = (all - at) / LANES * LANES);
	     at += n) {
		n = n < MANY ? n : MANY;
		pack_groups(a, lda, groups, at, n, out);
	}
#endif
	for (; at < all; at++) {
		size_t k0 = at % groups * GROUP;
		pack_group(a + at / groups * lda + k0, k - k0,
			   out + at * CPU_BYTES_ROW);
	}
}

/* The bytes of a stored group, and its scale. */
static ALWAYS float read_group(const struct cpu_gemm *g, size_t row,
			       size_t group, int8_t *q)
{
	const struct cpu_gemm_ints *m = g->b;
	const uint8_t *p = m->q + row * m->q_row + group * m->q_group;

	if (g->b_type != CPU_GEMM_INT4) {
		memcpy(q, p, GROUP);
	} else {
		const __m128i low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
		__m128i b = _mm_loadu_si128((const void *)p);
		__m128i h = _mm_and_si128(_mm_srli_epi16(b, 4), low);
		_mm_storeu_si128((void *)q,
				 _mm_sub_epi8(_mm_and_si128(b, low), eight));
		_mm_storeu_si128((void *)(q + 16), _mm_sub_epi8(h, eight));
	}
	return cpu_gemm_scale(g, row, group);
}

/* LANES columns, as bytes [column][groups * 32] and scales. */
static ALWAYS void read_columns(const struct cpu_gemm *g, size_t column,
				size_t n, size_t groups, int8_t *q, float *d,
				float *made)
{
	for (size_t i = 0; i < n; i++) {
		int8_t *to = q + i * groups * GROUP;
		int32_t sum;
		if (g->b_type != CPU_GEMM_MADE) {
			for (size_t j = 0; j < groups; j++)
				d[j * LANES + i] = read_group(
					g, column + i, j, to + j * GROUP);
			continue;
		}
		g->make(g->b, column + i, 1, 0, g->k, made, groups * GROUP);
		for (size_t j = 0; j < groups; j++)
			d[j * LANES + i] = quantize_group(
				made + j * GROUP, g->k - j * GROUP,
				to + j * GROUP, &sum);
	}
}

/* A vector of LANES columns: [QUADS] words of each, their scales behind. */
static ALWAYS void turn_columns(enum kind kind, const int8_t *q, const float *d,
				size_t groups, size_t vecs, float *out)
{
	const size_t step = (QUADS + 1) * vecs * LANES;

	for (size_t at = 0; at < groups * QUADS; at += LANES) {
		vf v[LANES];
#pragma GCC unroll 16
		for (size_t i = 0; i < LANES; i++) {
			memcpy(&v[i], q + i * groups * GROUP + 4 * at,
			       sizeof(v[i]));
			if (kind != AVX2_BYTES)
				v[i] = (vf)((vu)v[i] ^ 0x80808080);
		}
		transpose(v);
		for (size_t i = 0; i < LANES && at + i < groups * QUADS; i++) {
			size_t k = at + i;
			store(out + k / QUADS * step + k % QUADS * vecs * LANES,
			      v[i]);
		}
	}
	for (size_t j = 0; j < groups; j++)
		store(out + j * step + QUADS * vecs * LANES,
		      load(d + j * LANES));
}

#if LANES == 16
/* The bytes of a stored group and the one behind it, 128 added. */
static ALWAYS vi read_pair(const struct cpu_gemm *g, size_t row, size_t group,
			   bool both)
{
	const struct cpu_gemm_ints *m = g->b;
	const uint8_t *p = m->q + row * m->q_row + group * m->q_group;
	const uint8_t *next = both ? p + m->q_group : p;

	if (g->b_type == CPU_GEMM_INT8) {
		__m256i low = _mm256_loadu_si256((const void *)p);
		__m256i high = _mm256_loadu_si256((const void *)next);
		return (vi)_mm512_inserti64x4(_mm512_castsi256_si512(low), high,
					      1) ^
		       (int32_t)0x80808080;
	}
	__m256i two = _mm256_inserti128_si256(
		_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)),
		_mm_loadu_si128((const void *)next), 1);
	__m512i each = _mm512_maskz_permutexvar_epi64(
		0xff, _mm512_setr_epi64(0, 1, 0, 1, 2, 3, 2, 3),
		_mm512_castsi256_si512(two));
	vi half = (vi)_mm512_maskz_srlv_epi64(
		0xff, each, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
	/* No byte of a half and 120 is above 255. */
	return (vi)((vu)(half & 0x0f0f0f0f) + 0x78787878);
}

/* The same as read_columns() and turn_columns() of LANES stored columns. */
static ALWAYS void turn_stored(const struct cpu_gemm *g, size_t column,
			       size_t groups, size_t vecs, float *out)
{
	const struct cpu_gemm_ints *m = g->b;
	const size_t step = (QUADS + 1) * vecs * LANES;

	for (size_t j = 0; j < groups; j += 2, out += 2 * step) {
		const bool both = j + 1 < groups;
		vf v[LANES];
#pragma GCC unroll 16
		for (size_t i = 0; i < LANES; i++)
			v[i] = (vf)read_pair(g, column + i, j, both);
		transpose(v);
#pragma GCC unroll 16
		for (size_t i = 0; i < LANES; i++)
			if (i < QUADS || both)
				store(out + i / QUADS * step +
					      i % QUADS * vecs * LANES,
				      v[i]);
	}
	out -= (groups + 1) / 2 * 2 * step;
	for (size_t j = 0; j < groups; j++, out += step) {
		const uint8_t *p = m->scale + column * m->scale_row +
				   j * m->scale_group;
		uint16_t h[LANES];
		for (size_t i = 0; i < LANES; i++, p += m->scale_row)
			memcpy(&h[i], p, sizeof(h[i]));
		store(out + QUADS * vecs * LANES, widen_f16(load_half(h)));
	}
}
#endif

static ALWAYS void pack_kind(enum kind kind, const struct cpu_gemm *g,
			     size_t column, size_t columns, size_t groups,
			     float *out, float *space)
{
	size_t vecs = (columns + LANES - 1) / LANES;
	/* What turn_columns() reads behind the last bytes is not used. */
	float *d = space + LANES * groups * QUADS + LANES;
	int8_t *q = (int8_t *)space;
	float *made = d + LANES * groups;

	for (size_t j = 0; j < vecs; j++, out += LANES) {
		size_t left = columns - j * LANES;
#if LANES == 16
		if (left >= LANES && g->b_type != CPU_GEMM_MADE) {
			turn_stored(g, column + j * LANES, groups, vecs, out);
			continue;
		}
#endif
		if (left < LANES) {
			memset(q, 0, LANES * groups * GROUP);
			memset(d, 0, LANES * groups * sizeof(*d));
		}
		read_columns(g, column + j * LANES, left < LANES ? left : LANES,
			     groups, q, d, made);
		turn_columns(kind, q, d, groups, vecs, out);
	}
}

/* ---- integers as f32 ---- */

void SIMD(cpu_gemm_make_ints)(const struct cpu_gemm *g, size_t row,
			      size_t n, size_t k0, size_t k,
			      float *out, size_t ldo)
{
	for (size_t i = 0; i < n; i++)
		for (size_t at = 0; at < k; at += GROUP) {
			int8_t q[GROUP];
			float d = read_group(g, row + i, (k0 + at) / GROUP, q);
			float *to = out + i * ldo + at;
			for (int j = 0; j < GROUP; j++)
				to[j] = d * q[j];
		}
}

/* ---- the tables ---- */

#if LANES == 16
#define ROWS 4
#define EACH_ROWS(do, kind, v) \
	do(kind, 1, v) do(kind, 2, v) do(kind, 3, v) do(kind, 4, v)
#else
#define ROWS 3
#define EACH_ROWS(do, kind, v) \
	do(kind, 1, v) do(kind, 2, v) do(kind, 3, v)
#endif

TABLES(cpu_bytes, .row_step = CPU_BYTES_ROW, .column_step = CPU_BYTES_COLUMN)

#else

void SIMD(cpu_gemm_make_ints)(const struct cpu_gemm *g, size_t row,
			      size_t n, size_t k0, size_t k,
			      float *out, size_t ldo)
{
	const struct cpu_gemm_ints *m = g->b;

	for (size_t i = 0; i < n; i++)
		for (size_t at = 0; at < k; at++) {
			size_t group = (k0 + at) / CPU_BYTES_GROUP;
			size_t in = (k0 + at) % CPU_BYTES_GROUP;
			const uint8_t *p = m->q + (row + i) * m->q_row +
					   group * m->q_group;
			int v = g->b_type != CPU_GEMM_INT4 ? (int8_t)p[in] :
				in < 16 ? (p[in] & 15) - 8 :
					  (p[in - 16] >> 4) - 8;
			out[i * ldo + at] = cpu_gemm_scale(g, row + i, group) *
					    (float)v;
		}
}

#endif
