/*
 * Products with integer weights.  Activations are quantized, too, so that the
 * sums within a group are exact in integers; one multiplication by both scales
 * follows.
 */
#include <math.h>

#include "engine/kernels_simd.h"

/* ---- activations ---- */

void LEVEL(qwen_quantize_)(const float *x, uint32_t n,
			   const struct qwen_quants *out)
{
	for (uint32_t g = 0; g < n / QWEN_GROUP; g++, x += QWEN_GROUP) {
		int8_t *q = out->q + g * QWEN_GROUP;
		vi top = { 0 }, total = { 0 };
		int32_t part[LANES], bits = 0;
		float most;
		/* Sizes as integers: the same order, and NaN above all. */
		for (int i = 0; i < QWEN_GROUP; i += LANES) {
			vi v = (vi)load(x + i) & 0x7fffffff;
			top = (vi)choose(v > top, (vf)v, (vf)top);
		}
		memcpy(part, &top, sizeof(part));
		for (int i = 0; i < LANES; i++)
			bits = part[i] > bits ? part[i] : bits;
		memcpy(&most, &bits, sizeof(most));
		float d = most / 127, inverse = d > 0 ? 1 / d : 0;
		for (int i = 0; i < QWEN_GROUP; i += LANES) {
			/* Adding 1.5 * 2^23 rounds to an integer. */
			vi v = (vi)(load(x + i) * inverse + 12582912.0f) -
			       0x4b400000;
			typedef int8_t vb __attribute__((vector_size(LANES)));
			vb b = __builtin_convertvector(v, vb);
			memcpy(q + i, &b, sizeof(b));
			total += v;
		}
		uint32_t word[LANES], all = 0;
		memcpy(word, &total, sizeof(word));
		for (int i = 0; i < LANES; i++)
			all += word[i];
		out->d[g] = d;
		out->sum[g] = d * (float)(int32_t)all;
	}
}

/* ---- weights ---- */

static inline vf load_i8(const int8_t *p)
{
	/* The compiler would widen in halves. */
#if LANES == 16
	vi v = (vi)_mm512_maskz_cvtepi8_epi32(0xffff,
					      _mm_loadu_si128((const void *)p));
#elif LANES == 8
	vi v = (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p));
#else
	vi v = { p[0], p[1], p[2], p[3] };
#endif
	return __builtin_convertvector(v, vf);
}

void LEVEL(qwen_unpack_)(const struct qwen_matrix *w, uint32_t row,
			 uint32_t from, uint32_t n, float *out)
{
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

/* Rows at a time, which share what is made of the activations. */
#define ROWS 2

/* What one block of rows reads. */
struct rows {
	const uint8_t *w;	/* first row */
	size_t ldw;		/* bytes of a row */
	const uint16_t *scale;	/* [rows][groups] */
	uint32_t groups;
};

#if defined(__AVX2__)
/*
 * Sum of the 32 products of signed bytes a and unsigned bytes u <= 127: exact
 * in 16 bits in pairs.
 */
static inline __m256i dot_unsigned(__m256i u, __m256i a)
{
	return _mm256_madd_epi16(_mm256_maddubs_epi16(u, a),
				 _mm256_set1_epi16(1));
}

static inline __m256i dot_signed(__m256i w, __m256i a)
{
	return dot_unsigned(_mm256_sign_epi8(w, w), _mm256_sign_epi8(a, w));
}

static inline __m256i unpack4(const uint8_t *p)
{
	__m128i b = _mm_loadu_si128((const __m128i *)p);
	__m128i low = _mm_set1_epi8(15);

	return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(b, 4), low),
				_mm_and_si128(b, low));
}

static inline float sum8(__m256 v)
{
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(v),
			      _mm256_extractf128_ps(v, 1));

	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* nr rows; `four` and nr are constants where it is inlined. */
static inline __attribute__((always_inline)) void
block(const struct rows *b, const struct qwen_quants *x, float *out, int nr,
      bool four)
{
	size_t bytes = four ? QWEN_GROUP / 2 : QWEN_GROUP;
	__m256 s[ROWS];
	float offset[ROWS] = { 0 };

	for (int r = 0; r < nr; r++)
		s[r] = _mm256_setzero_ps();
	for (uint32_t g = 0; g < b->groups; g++) {
		__m256i a = _mm256_loadu_si256((const __m256i *)x->q + g);
		for (int r = 0; r < nr; r++) {
			const uint8_t *w = b->w + r * b->ldw + g * bytes;
			float f = _cvtsh_ss(b->scale[r * b->groups + g]);
			fetch(w);
			__m256i dot = four ? dot_unsigned(unpack4(w), a) :
				dot_signed(_mm256_loadu_si256(
						   (const __m256i *)w), a);
			s[r] = _mm256_fmadd_ps(_mm256_set1_ps(f * x->d[g]),
					       _mm256_cvtepi32_ps(dot), s[r]);
			if (four)
				offset[r] += f * x->sum[g];
		}
	}
	for (int r = 0; r < nr; r++)
		out[r] = sum8(s[r]) - 8 * offset[r];
}
#else
static inline void block(const struct rows *b, const struct qwen_quants *x,
			 float *out, int nr, bool four)
{
	for (int r = 0; r < nr; r++) {
		const uint8_t *w = b->w + r * b->ldw;
		out[r] = 0;
		for (uint32_t g = 0; g < b->groups; g++) {
			const int8_t *q = x->q + g * QWEN_GROUP;
			float f = f16_one(b->scale[r * b->groups + g]);
			int32_t dot = 0;
			for (int i = 0; i < QWEN_GROUP && !four; i++)
				dot += (int8_t)*w++ * q[i];
			for (int i = 0; i < QWEN_GROUP / 2 && four; i++, w++)
				dot += (*w & 15) * q[i] +
				       (*w >> 4) * q[i + QWEN_GROUP / 2];
			out[r] += f * (x->d[g] * (float)dot -
				       (four ? 8 * x->sum[g] : 0));
		}
	}
}
#endif

#if defined(__AVX512F__)
#define VNNI __attribute__((target("avx512vnni"), always_inline))

/* The scales of 16 groups from g on, times those of the activations. */
static inline VNNI vf scales(const uint16_t *scale, const float *d,
				 uint32_t left)
{
	__mmask16 some = left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
	__m256i h = _mm256_maskz_loadu_epi16(some, scale);

	return (vf)_mm512_maskz_cvtph_ps(0xffff, h) * load(d);
}

/*
 * 64 bytes of weights at a time: 2 groups of INT8, or 4 of INT4.  The
 * instruction multiplies unsigned by signed bytes: INT8 weights get 128 added,
 * INT4 have their 8, and the sums begin at minus that many times the sum of
 * the activations.  What lies behind a row's end has activations of 0.
 */
static inline VNNI void block_vnni(const struct rows *b,
				   const struct qwen_quants *x, float *out,
				   int nr, bool four)
{
	const __m512i low = _mm512_set1_epi8(15), flip = _mm512_set1_epi8(-128);
	const int per = four ? 4 : 2; /* groups of 64 bytes */
	const vi lane = (vi){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
			      15 } >> (four ? 2 : 3);
	vf s[ROWS] = { 0 };

	for (uint32_t g = 0; g < b->groups; g += 16) {
		uint32_t left = b->groups - g;
		vf f[ROWS];
		for (int r = 0; r < nr; r++)
			f[r] = scales(b->scale + r * b->groups + g, x->d + g,
				      left);
		for (int i = 0; i < 16 && (uint32_t)i < left; i += per) {
			const int8_t *q = x->q + (g + i) * QWEN_GROUP;
			__m512i q0 = _mm512_loadu_si512(q), q1, begin;
			vi at = lane + i;
			size_t place = (size_t)(g + i) * (four ? 16 : 32);
			size_t more = b->ldw - place;
			__mmask64 some = more >= 64 ? ~0ull :
						      (1ull << more) - 1;
			begin = _mm512_setzero_si512();
			if (four) {
				__m512i hi = _mm512_loadu_si512(q + 64);
				q1 = __builtin_shufflevector(q0, hi, 2, 3, 6, 7,
							     10, 11, 14, 15);
				q0 = __builtin_shufflevector(q0, hi, 0, 1, 4, 5,
							     8, 9, 12, 13);
				begin = _mm512_dpbusd_epi32(begin,
					_mm512_set1_epi8(8), q1);
				begin = _mm512_dpbusd_epi32(begin,
					_mm512_set1_epi8(8), q0);
			} else {
				begin = _mm512_dpbusd_epi32(begin, flip, q0);
			}
			begin = _mm512_sub_epi32(_mm512_setzero_si512(), begin);
			for (int r = 0; r < nr; r++) {
				const uint8_t *p = b->w + r * b->ldw + place;
				__m512i w = _mm512_maskz_loadu_epi8(some, p);
				__m512i dot;
				fetch(p);
				if (four) {
					dot = _mm512_dpbusd_epi32(begin,
						_mm512_and_si512(w, low), q0);
					w = (__m512i)((vu)w >> 4);
					dot = _mm512_dpbusd_epi32(dot,
						_mm512_and_si512(w, low), q1);
				} else {
					dot = _mm512_dpbusd_epi32(begin,
						_mm512_xor_si512(w, flip), q0);
				}
				/* Not __builtin_shuffle(): clang has none. */
				s[r] = fma_((vf)_mm512_permutexvar_ps(
						    (__m512i)at, (__m512)f[r]),
					    __builtin_convertvector((vi)dot, vf),
					    s[r]);
			}
		}
	}
	for (int r = 0; r < nr; r++)
		out[r] = sum(s[r]);
}

static __attribute__((target("avx512vnni"))) void
some_vnni(const struct rows *b, const struct qwen_quants *x, float *out, int nr,
	  bool four)
{
	if (nr == ROWS && four)
		block_vnni(b, x, out, ROWS, true);
	else if (nr == ROWS)
		block_vnni(b, x, out, ROWS, false);
	else if (four)
		block_vnni(b, x, out, 1, true);
	else
		block_vnni(b, x, out, 1, false);
}
#endif

static void some(const struct rows *b, const struct qwen_quants *x, float *out,
		 int nr, bool four)
{
#if defined(__AVX512F__)
	if (__builtin_cpu_supports("avx512vnni")) {
		some_vnni(b, x, out, nr, four);
		return;
	}
#endif
	if (nr == ROWS && four)
		block(b, x, out, ROWS, true);
	else if (nr == ROWS)
		block(b, x, out, ROWS, false);
	else if (four)
		block(b, x, out, 1, true);
	else
		block(b, x, out, 1, false);
}

void LEVEL(qwen_product_int_)(const struct qwen_matrix *w, uint32_t r0,
			      uint32_t r1, const struct qwen_quants *x,
			      uint32_t n, float *y, size_t ldy, bool add)
{
	bool four = w->type == QWEN_W_INT4;
	struct rows b = { .ldw = four ? w->cols / 2 : w->cols,
			  .groups = w->cols / QWEN_GROUP };

	for (uint32_t r = r0; r < r1;) {
		int nr = r + ROWS <= r1 ? ROWS : 1;
		b.w = (const uint8_t *)w->data + r * b.ldw;
		b.scale = w->scale + (size_t)r * b.groups;
		for (uint32_t t = 0; t < n; t++) {
			float out[ROWS], *yt = y + t * ldy + r;
			some(&b, &x[t], out, nr, four);
			for (int i = 0; i < nr; i++)
				yt[i] = add ? yt[i] + out[i] : out[i];
		}
		r += (uint32_t)nr;
	}
}
