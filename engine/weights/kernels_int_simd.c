/*
 * engine/weights/kernels_int_simd.c - products with integer weights.
 *
 * Activations are quantized, too, so that the sums within a group are exact in
 * integers; one multiplication by both scales follows.
 */
#include <math.h>

#include "engine/weights/kernels_simd.h"

/* ---- activations ---- */

/* The largest, by halves. */
static inline int32_t most_of(vi v)
{
#if LANES == 16
	__m256i h = _mm256_max_epi32(
		(__m256i)__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
		(__m256i)__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14,
						 15));
#elif LANES == 8
	__m256i h = (__m256i)v;
#endif
#if LANES >= 8
	__m128i q = _mm_max_epi32(_mm256_castsi256_si128(h),
				  _mm256_extracti128_si256(h, 1));
#else
	__m128i q = (__m128i)v;
#endif
	q = _mm_max_epi32(q, _mm_shuffle_epi32(q, 0x4e));
	return _mm_cvtsi128_si32(_mm_max_epi32(q, _mm_shuffle_epi32(q, 0xb1)));
}

void SIMD(qwen_quantize)(const float *x, uint32_t n,
			 const struct qwen_quants *out)
{
	const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds */

	for (uint32_t g = 0; g < n / QWEN_GROUP; g++, x += QWEN_GROUP) {
		int8_t *q = out->q + g * QWEN_GROUP;
		vi top = { 0 };
		float total[2]; /* exact */
		float most;
		/* Sizes as integers: the same order, and NaN above all. */
		for (int i = 0; i < QWEN_GROUP; i += LANES) {
			vi v = (vi)load(x + i) & 0x7fffffff;
			top = (vi)select_lanes(v > top, (vf)v, (vf)top);
		}
		int32_t bits = most_of(top);
		memcpy(&most, &bits, sizeof(most));
		float d = most / 127, inverse = d > 0 ? 1 / d : 0;
		for (int half = 0; half < 2; half++) {
			vf sum = { 0 };
			for (int j = 0; j < QWEN_GROUP / 2; j += LANES) {
				int i = half * QWEN_GROUP / 2 + j;
				vf v = load(x + i) * inverse + round;
				store_i8(q + i, (vi)v - (vi)splat(round));
				sum += v - round;
			}
			total[half] = sum_lanes(sum);
			if (out->half_sum)
				out->half_sum[2 * g + half] = d * total[half];
		}
		if (out->half) {
			int8_t *h = out->half + g / 4 * 128 + g % 4 * 16;
			memcpy(h, q, QWEN_GROUP / 2);
			memcpy(h + 64, q + QWEN_GROUP / 2, QWEN_GROUP / 2);
		}
		out->d[g] = d;
		out->sum[g] = d * (total[0] + total[1]);
	}
}

/* ---- weights ---- */

void SIMD(qwen_unpack)(const struct qwen_matrix *w, uint32_t row,
		       uint32_t from, uint32_t n, float *out)
{
	if (qwen_is_block(w->type)) {
		unpack_blocks(w, row, from, n, out);
		return;
	}
	bool four = w->type == QWEN_W_INT4;
	size_t at = (size_t)row * w->cols + from;
	const uint8_t *p = (const uint8_t *)w->data + at / (four ? 2 : 1);
	const uint16_t *scale = w->scale + at / QWEN_GROUP;
	const __m128i low = _mm_set1_epi8(15), offset = _mm_set1_epi8(8);

	for (; n; n -= QWEN_GROUP, out += QWEN_GROUP, scale++) {
		__m128i q[2], b = _mm_loadu_si128((const __m128i *)p);
		vf d = splat(f16_one(*scale));
		q[0] = _mm_sub_epi8(_mm_and_si128(b, low), offset);
		q[1] = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(b, 4), low),
				    offset);
		if (!four)
			memcpy(q, p, QWEN_GROUP);
		for (int i = 0; i < QWEN_GROUP; i += LANES)
			store(out + i, load_i8((const int8_t *)q + i) * d);
		p += four ? QWEN_GROUP / 2 : QWEN_GROUP;
	}
}

/* ---- products ---- */

#if LANES == 16
#define TARGET __attribute__((target("avx512vnni"), always_inline))
#else
#define TARGET __attribute__((always_inline))
#endif

#if LANES >= 8
/*
 * A row sums up, of every group, scales times the sum of products; and scales
 * times the sum of the activations, which is what an offset of the weights adds
 * up to.
 */
/* LANES * 4 bytes of weights: groups of INT4 or INT8. */
#define STEP(four) (LANES * 4 / ((four) ? QWEN_GROUP / 2 : QWEN_GROUP))

/* Tokens side by side: as many as the registers hold. */
#if LANES == 16
#define TOKENS 4
typedef __m512i bytes;
#else
#define TOKENS 2
typedef __m256i bytes;
#endif

/* Weights as the instruction takes them; of INT4 both halves. */
struct weights {
	bytes u[2];
};

#if LANES == 16
/*
 * The instruction multiplies unsigned by signed bytes: INT8 weights get
 * OFFSET8 added.
 */
#define OFFSET8 128
static inline TARGET struct weights load_weights(const uint8_t *p, bool four)
{
	const __m512i low = _mm512_set1_epi8(15), flip = _mm512_set1_epi8(-128);
	const __m512i u = _mm512_loadu_si512(p);

	if (!four)
		return (struct weights){ { _mm512_xor_si512(u, flip) } };
	return (struct weights){ { _mm512_and_si512(u, low),
				   _mm512_and_si512((__m512i)((vu)u >> 4),
						    low) } };
}

/*
 * Sums of 4 or, of INT4, 8 products side by side of these weights and the
 * activations at q; those of INT4's second halves lie 64 behind.
 */
static inline TARGET vi dot_group(struct weights w, const int8_t *q, bool four)
{
	const __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), w.u[0],
						_mm512_loadu_si512(q));

	if (!four)
		return (vi)sum;
	return (vi)_mm512_dpbusd_epi32(sum, w.u[1], _mm512_loadu_si512(q + 64));
}
#else
/*
 * The same, and INT8 weights give their signs to the activations.  Sums of
 * pairs are exact in 16 bits: 2 * 128 * 127 fits, or 4 * 15 * 127.
 */
#define OFFSET8 0
static inline TARGET struct weights load_weights(const uint8_t *p, bool four)
{
	const __m256i low = _mm256_set1_epi8(15);
	const __m256i u = _mm256_loadu_si256((const void *)p);

	if (!four)
		return (struct weights){ { _mm256_sign_epi8(u, u), u } };
	return (struct weights){ { _mm256_and_si256(u, low),
				   _mm256_and_si256(_mm256_srli_epi16(u, 4),
						    low) } };
}

static inline TARGET vi dot_group(struct weights w, const int8_t *q, bool four)
{
	const __m256i ones = _mm256_set1_epi16(1);
	__m256i q0 = _mm256_loadu_si256((const void *)q), q1;

	if (!four) {
		q0 = _mm256_maddubs_epi16(w.u[0], _mm256_sign_epi8(q0, w.u[1]));
		return (vi)_mm256_madd_epi16(q0, ones);
	}
	q1 = _mm256_loadu_si256((const void *)(q + 64));
	q0 = _mm256_maddubs_epi16(w.u[0], q0);
	q1 = _mm256_maddubs_epi16(w.u[1], q1);
	return (vi)_mm256_madd_epi16(_mm256_add_epi16(q0, q1), ones);
}
#endif

/* The factors of groups i .. of f, each in the lanes of its sums. */
static inline TARGET vf spread_factors(vf f, int i, bool four)
{
	/* Not __builtin_shuffle(): clang has none. */
#if LANES == 16
	vi lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	vi at = (lane >> (four ? 2 : 3)) + i;

	/* Masked by nothing: gcc 12 warns about the plain form. */
	return (vf)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)at, (__m512)f);
#else
	vi lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
	vi at = (lane >> (four ? 2 : 3)) + i;

	return (vf)_mm256_permutevar8x32_ps((__m256)f, (__m256i)at);
#endif
}

/* A row's weights and scales from some group on. */
struct place {
	const uint8_t *w;
	const uint16_t *scale;
};

/*
 * Of LANES groups of nr rows and nt tokens, from group g of the activations on:
 * what offsets add, and products.  nr, nt and `four` are constants where it is
 * inlined.
 */
static inline TARGET void add_offsets(const struct place *p,
				      const struct qwen_quants *x, size_t g,
				      vf s[2][TOKENS], int nr, int nt)
{
	UNROLL for (int r = 0; r < nr; r++)
	{
		const vf scale = load_f16(p[r].scale);
		UNROLL for (int t = 0; t < nt; t++)
			s[r][t] = fma_(scale, load(x[t].sum + g), s[r][t]);
	}
}

static inline TARGET void add_products(const struct place *p,
				       const struct qwen_quants *x, size_t g,
				       vf s[2][TOKENS], int nr, int nt,
				       bool four)
{
	vf f[2][TOKENS];

	UNROLL for (int r = 0; r < nr; r++)
	{
		const vf scale = load_f16(p[r].scale);
		UNROLL for (int t = 0; t < nt; t++)
			f[r][t] = scale * load(x[t].d + g);
	}
	UNROLL for (int i = 0; i < LANES; i += STEP(four))
	{
		const size_t at =
			(size_t)i * (four ? QWEN_GROUP / 2 : QWEN_GROUP);
		const size_t from =
			g * QWEN_GROUP +
			(four ? i / 4 * 128 + i % 4 * 16 : i * QWEN_GROUP);
		UNROLL for (int r = 0; r < nr; r++)
		{
			if (at % 64 == 0)
				prefetch_line(p[r].w + at);
			const struct weights w =
				load_weights(p[r].w + at, four);
			UNROLL for (int t = 0; t < nt; t++)
			{
				const int8_t *q = four ? x[t].half : x[t].q;
				const vi dot = dot_group(w, q + from, four);
				s[r][t] = fma_(spread_factors(f[r][t], i, four),
					       __builtin_convertvector(dot, vf),
					       s[r][t]);
			}
		}
	}
}

/* The last groups of a row, with zeros behind them. */
struct rest {
	uint8_t w[LANES * QWEN_GROUP];
	uint16_t scale[LANES];
};

static inline TARGET struct place rest_of(struct place p, struct rest *to,
					  size_t n, bool four)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->w, p.w, n * (four ? QWEN_GROUP / 2 : QWEN_GROUP));
	memcpy(to->scale, p.scale, n * sizeof(*p.scale));
	return (struct place){ to->w, to->scale };
}

/*
 * nr rows, and nt tokens whose results lie ldy apart.
 *
 * Nothing here may be written in parts and read as a whole: such a load waits
 * for all before it, so that no row would begin before the last one's end.
 */
static inline TARGET void dot_rows(struct place a, struct place b, size_t n,
				   const struct qwen_quants *x, float *ya,
				   float *yb, size_t ldy, bool add, int nr,
				   int nt, bool four)
{
	const float offset = four ? 8 : OFFSET8;
	struct place p[2] = { a, b };
	vf dot[2][TOKENS], off[2][TOKENS];
	size_t g = 0;

	UNROLL for (int r = 0; r < nr; r++) UNROLL for (int t = 0; t < nt; t++)
		dot[r][t] = off[r][t] = splat(0);
	for (; g + LANES <= n; g += LANES) {
		UNROLL for (int r = 0; r < nr; r++) if (g % 32 == 0)
			prefetch_line(p[r].scale);
		add_products(p, x, g, dot, nr, nt, four);
		UNROLL for (int r = 0; r < nr; r++)
		{
			p[r].w += LANES * (four ? QWEN_GROUP / 2 : QWEN_GROUP);
			p[r].scale += LANES;
		}
	}
	if (g < n) {
		struct rest rest[2];
		UNROLL for (int r = 0; r < nr; r++)
			p[r] = rest_of(p[r], &rest[r], n - g, four);
		add_products(p, x, g, dot, nr, nt, four);
		if (offset != 0)
			add_offsets(p, x, g, off, nr, nt);
	}
	p[0] = a;
	p[1] = b;
	for (g = 0; offset != 0 && g + LANES <= n; g += LANES) {
		add_offsets(p, x, g, off, nr, nt);
		UNROLL for (int r = 0; r < nr; r++) p[r].scale += LANES;
	}
	UNROLL for (int r = 0; r < nr; r++) UNROLL for (int t = 0; t < nt; t++)
	{
		float *y = (r ? yb : ya) + t * ldy;
		float v = sum_lanes(dot[r][t] - offset * off[r][t]);
		*y = add ? *y + v : v;
	}
}
#else
struct place {
	const uint8_t *w;
	const uint16_t *scale;
};

static inline float dot_row(struct place p, size_t n,
			    const struct qwen_quants *x, bool four)
{
	float v = 0;

	for (size_t g = 0; g < n; g++) {
		const int8_t *q = x->q + g * QWEN_GROUP;
		float f = f16_one(p.scale[g]);
		int32_t dot = 0;
		for (int i = 0; i < QWEN_GROUP && !four; i++)
			dot += (int8_t)*p.w++ * q[i];
		for (int i = 0; i < QWEN_GROUP / 2 && four; i++, p.w++)
			dot += (*p.w & 15) * q[i] +
			       (*p.w >> 4) * q[i + QWEN_GROUP / 2];
		v += f * (x->d[g] * (float)dot - (four ? 8 * x->sum[g] : 0));
	}
	return v;
}

#define TOKENS 1
static inline void dot_rows(struct place a, struct place b, size_t n,
			    const struct qwen_quants *x, float *ya, float *yb,
			    size_t ldy, bool add, int nr, int nt, bool four)
{
	float v = dot_row(a, n, x, four);

	(void)ldy;
	(void)nt;
	*ya = add ? *ya + v : v;
	if (nr == 1)
		return;
	v = dot_row(b, n, x, four);
	*yb = add ? *yb + v : v;
}
#endif

static inline TARGET void multiply_pair(const struct qwen_matrix *m,
					struct pair p,
					const struct qwen_quants *x,
					uint32_t nt, float *y, size_t ldy,
					bool add, bool four)
{
	const size_t groups = m->cols / QWEN_GROUP;
	const size_t row_bytes = four ? m->cols / 2 : m->cols;
	const struct place a = { (const uint8_t *)m->data + p.row * row_bytes,
				 m->scale + p.row * groups };
	const struct place b = { a.w + p.apart * row_bytes,
				 a.scale + p.apart * groups };
	float *to = y + p.row;

	if (p.apart && nt == TOKENS)
		dot_rows(a, b, groups, x, to, to + p.apart, ldy, add, 2, TOKENS,
			 four);
	else if (p.apart)
		dot_rows(a, b, groups, x, to, to + p.apart, ldy, add, 2, 1,
			 four);
	else
		for (uint32_t t = 0; t < nt; t++)
			dot_rows(a, a, groups, x + t, to + t * ldy, NULL, ldy,
				 add, 1, 1, four);
}

static inline TARGET void multiply_rows(const struct qwen_matrix *m,
					uint32_t r0, uint32_t r1,
					const struct qwen_quants *x, uint32_t n,
					float *y, size_t ldy, bool add,
					bool four)
{
	struct pair pair[PAIRS_TOGETHER];
	struct pairs p;
	uint32_t some;

	pairs_init(&p, r0, r1, four ? m->cols / 2 : m->cols);
	while ((some = pairs_some(&p, pair)))
		for (uint32_t t = 0, nt; t < n; t += nt) {
			nt = n - t < TOKENS ? 1 : TOKENS;
			for (uint32_t i = 0; i < some; i++)
				multiply_pair(m, pair[i], x + t, nt,
					      y + t * ldy, ldy, add, four);
		}
}

#if LANES == 16
static __attribute__((target("avx512vnni"))) void
product_vnni(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
	     const struct qwen_quants *x, uint32_t n, float *y, size_t ldy,
	     bool add)
{
	if (w->type == QWEN_W_INT4)
		multiply_rows(w, r0, r1, x, n, y, ldy, add, true);
	else
		multiply_rows(w, r0, r1, x, n, y, ldy, add, false);
}
#endif

void SIMD(qwen_product_int)(const struct qwen_matrix *w, uint32_t r0,
			    uint32_t r1, const struct qwen_quants *x,
			    uint32_t n, float *y, size_t ldy, bool add)
{
	if (qwen_is_block(w->type)) {
		SIMD(qwen_product_blocks)(w, r0, r1, x, n, y, ldy, add);
		return;
	}
#if LANES == 16
	/* The first processors with AVX-512 have no such instruction. */
	if (__builtin_cpu_supports("avx512vnni"))
		product_vnni(w, r0, r1, x, n, y, ldy, add);
	else
		qwen_product_int_v3(w, r0, r1, x, n, y, ldy, add);
#else
	if (w->type == QWEN_W_INT4)
		multiply_rows(w, r0, r1, x, n, y, ldy, add, true);
	else
		multiply_rows(w, r0, r1, x, n, y, ldy, add, false);
#endif
}
