/*
 * The kernels of engine/kernels.h for one level of the instruction set, in the
 * compiler's vector types; SIMD_LEVEL is v2, v3 or v4.
 */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "engine/kernels.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
/* The same without alignment, for loads and stores. */
typedef float vfu __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint16_t vhu __attribute__((vector_size(2 * LANES), aligned(1)));

static inline vf load(const float *p)
{
	return *(const vfu *)p;
}

static inline void store(float *p, vf v)
{
	*(vfu *)p = v;
}

static inline vf splat(float x)
{
	return x - (vf){ 0 };
}

static inline vf fma_(vf a, vf b, vf c)
{
	return a * b + c; /* one instruction: this file contracts */
}

static inline vf choose(vi mask, vf a, vf b)
{
	return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

static inline float sum(vf v)
{
	float s[LANES];

	memcpy(s, &v, sizeof(s));
	for (int n = LANES / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			s[i] += s[i + n];
	return s[0];
}

/* ---- 16-bit types ---- */

static inline vf load_bf16(const void *p)
{
	vh h = *(const vhu *)p;

	return (vf)(__builtin_convertvector(h, vu) << 16);
}

static inline vf load_f16(const void *p)
{
#if defined(__AVX512F__)
	/* Masked by nothing: gcc 12 warns about the plain form. */
	return (vf)_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(p));
#elif defined(__F16C__)
	return (vf)_mm256_cvtph_ps(_mm_loadu_si128(p));
#else
	/* Shifted into place, then scaled by 2^112: exact, denormals too. */
	vu h = __builtin_convertvector(*(const vhu *)p, vu);
	vu sign = (h & 0x8000) << 16, rest = (h & 0x7fff) << 13;
	vf v = (vf)rest * 0x1p112f;
	vu big = (vu)((vi)((h & 0x7c00) == 0x7c00));

	v = (vf)(((vu)v & ~big) | ((rest | 0x7f800000) & big));
	return (vf)((vu)v | sign);
#endif
}

static inline vf load_f32(const void *p)
{
	return load(p);
}

static float bf16_one(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static float f16_one(uint16_t h)
{
	vh one = { h };
	uint16_t in[LANES];
	float out[LANES];

	memcpy(in, &one, sizeof(in));
	vf v = load_f16(in);
	memcpy(out, &v, sizeof(out));
	return out[0];
}

static float f32_one(float f)
{
	return f;
}

/* ---- products ---- */

/* Rows and tokens of one block: as many sums as the registers hold. */
#define ROWS 4
#if LANES == 16
#define TOKENS 4
#else
#define TOKENS 2
#endif
#define AHEAD_BYTES 1024

/*
 * One kernel for each stored type: nr rows (at most ROWS) and nt tokens, both
 * constants where it is inlined, so that the sums stay in registers.
 */
#define BLOCK(type, elem, one)                                                 \
	static inline __attribute__((always_inline)) void block_##type(        \
		const elem *w, size_t ldw, uint32_t n, const float *x,         \
		size_t ldx, float *y, size_t ldy, int nr, int nt)              \
	{                                                                      \
		vf s[ROWS][TOKENS] = { 0 };                                    \
		uint32_t c = 0;                                                \
                                                                               \
		for (; c + LANES <= n; c += LANES) {                           \
			vf xs[TOKENS];                                         \
			for (int t = 0; t < nt; t++)                           \
				xs[t] = load(x + t * ldx + c);                 \
			for (int r = 0; r < nr; r++) {                         \
				const elem *p = w + r * ldw + c;               \
				__builtin_prefetch((const char *)p +           \
						   AHEAD_BYTES);               \
				vf v = load_##type(p);                         \
				for (int t = 0; t < nt; t++)                   \
					s[r][t] = fma_(v, xs[t], s[r][t]);     \
			}                                                      \
		}                                                              \
		for (int r = 0; r < nr; r++)                                   \
			for (int t = 0; t < nt; t++) {                         \
				float v = sum(s[r][t]);                        \
				for (uint32_t k = c; k < n; k++)               \
					v += one(w[r * ldw + k]) *             \
					     x[t * ldx + k];                   \
				y[t * ldy + r] = v;                            \
			}                                                      \
	}                                                                      \
                                                                               \
	static void product_##type(const struct qwen_matrix *m, uint32_t r0,   \
				   uint32_t r1, const float *x, size_t ldx,    \
				   uint32_t n, float *y, size_t ldy)           \
	{                                                                      \
		const elem *w = m->data;                                       \
		size_t k = m->cols;                                            \
                                                                               \
		for (uint32_t r = r0; r < r1;) {                               \
			int nr = r + ROWS <= r1 ? ROWS : 1;                    \
			for (uint32_t t = 0; t < n;) {                         \
				int nt = t + TOKENS <= n ? TOKENS : 1;         \
				const float *xt = x + t * ldx;                 \
				float *yt = y + t * ldy + r;                   \
				if (nr == ROWS && nt == TOKENS)                \
					block_##type(w + r * k, k, m->cols,    \
						     xt, ldx, yt, ldy, ROWS,   \
						     TOKENS);                  \
				else if (nr == ROWS)                           \
					block_##type(w + r * k, k, m->cols,    \
						     xt, ldx, yt, ldy, ROWS,   \
						     1);                       \
				else                                           \
					block_##type(w + r * k, k, m->cols,    \
						     xt, ldx, yt, ldy, 1,      \
						     nt == 1 ? 1 : TOKENS);    \
				t += (uint32_t)nt;                             \
			}                                                      \
			r += (uint32_t)nr;                                     \
		}                                                              \
	}

BLOCK(f32, float, f32_one)
BLOCK(f16, uint16_t, f16_one)
BLOCK(bf16, uint16_t, bf16_one)

static void product(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
		    const float *x, size_t ldx, uint32_t n, float *y,
		    size_t ldy)
{
	if (w->type == QWEN_W_F32)
		product_f32(w, r0, r1, x, ldx, n, y, ldy);
	else if (w->type == QWEN_W_F16)
		product_f16(w, r0, r1, x, ldx, n, y, ldy);
	else
		product_bf16(w, r0, r1, x, ldx, n, y, ldy);
}

/* ---- integers ---- */

/*
 * Sum of the 32 products of signed bytes a and unsigned bytes u <= 15 or, with
 * signs moved over, of two signed vectors: exact in 32 bits.
 */
#if defined(__AVX2__)
static inline __m256i dot_unsigned(__m256i u, __m256i a)
{
	return _mm256_madd_epi16(_mm256_maddubs_epi16(u, a),
				 _mm256_set1_epi16(1));
}

/* |q| of -127..127 times the signed other fits 16 bits in pairs. */
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

static float row_int8(const int8_t *w, const uint16_t *scale, uint32_t groups,
		      const struct qwen_group *x)
{
	__m256 s = _mm256_setzero_ps();

	for (uint32_t g = 0; g < groups; g++, w += QWEN_GROUP) {
		__m256i q = _mm256_loadu_si256((const __m256i *)w);
		__m256i a = _mm256_loadu_si256((const __m256i *)x[g].q);
		__builtin_prefetch(w + AHEAD_BYTES);
		float d = _cvtsh_ss(scale[g]) * x[g].d;
		s = _mm256_fmadd_ps(_mm256_set1_ps(d),
				    _mm256_cvtepi32_ps(dot_signed(q, a)), s);
	}
	return sum8(s);
}

static float row_int4(const uint8_t *w, const uint16_t *scale, uint32_t groups,
		      const struct qwen_group *x)
{
	__m256 s = _mm256_setzero_ps();
	float offset = 0;

	for (uint32_t g = 0; g < groups; g++, w += QWEN_GROUP / 2) {
		__m256i a = _mm256_loadu_si256((const __m256i *)x[g].q);
		float f = _cvtsh_ss(scale[g]);
		__builtin_prefetch(w + AHEAD_BYTES);
		s = _mm256_fmadd_ps(_mm256_set1_ps(f * x[g].d),
				    _mm256_cvtepi32_ps(
					    dot_unsigned(unpack4(w), a)), s);
		offset += f * x[g].sum;
	}
	return sum8(s) - 8 * offset;
}
#else
static float row_int8(const int8_t *w, const uint16_t *scale, uint32_t groups,
		      const struct qwen_group *x)
{
	float s = 0;

	for (uint32_t g = 0; g < groups; g++, w += QWEN_GROUP) {
		int32_t dot = 0;
		for (int i = 0; i < QWEN_GROUP; i++)
			dot += w[i] * x[g].q[i];
		s += f16_one(scale[g]) * x[g].d * (float)dot;
	}
	return s;
}

static float row_int4(const uint8_t *w, const uint16_t *scale, uint32_t groups,
		      const struct qwen_group *x)
{
	float s = 0;

	for (uint32_t g = 0; g < groups; g++, w += QWEN_GROUP / 2) {
		int32_t dot = 0;
		for (int i = 0; i < QWEN_GROUP / 2; i++)
			dot += (w[i] & 15) * x[g].q[i] +
			       (w[i] >> 4) * x[g].q[i + QWEN_GROUP / 2];
		s += f16_one(scale[g]) * (x[g].d * (float)dot - 8 * x[g].sum);
	}
	return s;
}
#endif

static void product_int(const struct qwen_matrix *w, uint32_t r0, uint32_t r1,
			const struct qwen_group *x, uint32_t n, float *y,
			size_t ldy)
{
	uint32_t groups = w->cols / QWEN_GROUP;
	size_t row_bytes = w->type == QWEN_W_INT8 ? w->cols : w->cols / 2;

	for (uint32_t r = r0; r < r1; r++) {
		const uint8_t *row = (const uint8_t *)w->data + r * row_bytes;
		const uint16_t *scale = w->scale + (size_t)r * groups;
		for (uint32_t t = 0; t < n; t++) {
			const struct qwen_group *xt = x + (size_t)t * groups;
			y[t * ldy + r] = w->type == QWEN_W_INT8 ?
				row_int8((const int8_t *)row, scale, groups,
					 xt) :
				row_int4(row, scale, groups, xt);
		}
	}
}

static void quantize(const float *x, uint32_t n, struct qwen_group *out)
{
	for (uint32_t g = 0; g < n / QWEN_GROUP; g++, x += QWEN_GROUP) {
		float top = 0;
		int32_t total = 0;
		for (int i = 0; i < QWEN_GROUP; i++)
			top = fmaxf(top, fabsf(x[i]));
		float d = top / 127, inverse = d > 0 ? 1 / d : 0;
		for (int i = 0; i < QWEN_GROUP; i++) {
			int q = (int)rintf(x[i] * inverse);
			out[g].q[i] = (int8_t)(q < -127 ? -127 :
					       q > 127 ? 127 : q);
			total += out[g].q[i];
		}
		out[g].d = d;
		out[g].sum = d * (float)total;
	}
}

/* ---- the rest ---- */

static float dot(const float *a, const float *b, uint32_t n)
{
	vf s = { 0 };
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES)
		s = fma_(load(a + i), load(b + i), s);
	float v = sum(s);
	for (; i < n; i++)
		v += a[i] * b[i];
	return v;
}

static void axpy(float a, const float *x, float *y, uint32_t n)
{
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES)
		store(y + i, fma_(splat(a), load(x + i), load(y + i)));
	for (; i < n; i++)
		y[i] += a * x[i];
}

static void rms_norm(const float *x, const float *w, uint32_t n, float eps,
		     float *y)
{
	float scale = 1 / sqrtf(dot(x, x, n) / (float)n + eps);

	for (uint32_t i = 0; i < n; i++)
		y[i] = x[i] * scale * w[i];
}

static void rope(float *x, const float *cosine, const float *sine, uint32_t n)
{
	uint32_t half = n / 2;

	for (uint32_t i = 0; i < half; i++) {
		float a = x[i], b = x[i + half];
		x[i] = a * cosine[i] - b * sine[i];
		x[i + half] = b * cosine[i] + a * sine[i];
	}
}

/*
 * exp to 2 ulp: x = (k + f) ln 2 with |f| <= 1/2, a polynomial of degree 6 in
 * f ln 2 (Taylor's terms: the next one is below 2^-24 there), times 2^k.
 */
static inline vf exp_(vf x)
{
	x = choose(x < -87, splat(-87), x);
	x = choose(x > 88, splat(88), x);
	vf t = x * 1.44269504f + 12582912.0f; /* rounds: 1.5 * 2^23 */
	vf k = t - 12582912.0f;
	vf r = fma_(k, splat(-0.693145752f), x);
	vi bits = ((vi)t - 0x4b400000 + 127) << 23;

	r = fma_(k, splat(-1.42860677e-6f), r);
	vf p = fma_(r, splat(1.f / 720), splat(1.f / 120));
	p = fma_(p, r, splat(1.f / 24));
	p = fma_(p, r, splat(1.f / 6));
	p = fma_(p, r, splat(.5f));
	p = fma_(p, r, splat(1));
	p = fma_(p, r, splat(1));
	return p * (vf)bits;
}

static void swiglu(const float *gate, const float *up, uint32_t n, float *y)
{
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		vf g = load(gate + i);
		store(y + i, g / (1 + exp_(-g)) * load(up + i));
	}
	for (; i < n; i++)
		y[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

static void softmax(float *x, uint32_t n)
{
	float top = x[0];
	double total = 0;
	uint32_t i = 0;

	for (uint32_t k = 1; k < n; k++)
		top = x[k] > top ? x[k] : top;
	for (; i + LANES <= n; i += LANES) {
		vf v = exp_(load(x + i) - top);
		store(x + i, v);
		total += sum(v);
	}
	for (; i < n; i++)
		total += x[i] = expf(x[i] - top);
	float scale = (float)(1 / total);
	for (i = 0; i < n; i++)
		x[i] *= scale;
}

static void widen(enum qwen_weights type, const void *x, size_t n, float *y)
{
	const uint16_t *h = x;
	size_t i = 0;

	if (type == QWEN_W_F32) {
		memcpy(y, x, n * sizeof(*y));
		return;
	}
	for (; i + LANES <= n; i += LANES)
		store(y + i, type == QWEN_W_F16 ? load_f16(h + i) :
						  load_bf16(h + i));
	for (; i < n; i++)
		y[i] = type == QWEN_W_F16 ? f16_one(h[i]) : bf16_one(h[i]);
}

static uint16_t to_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	if (f != f)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static uint16_t to_f16(float f)
{
	_Float16 h = (_Float16)f;
	uint16_t u;

	memcpy(&u, &h, 2);
	return u;
}

static void narrow(enum qwen_weights type, const float *x, size_t n, void *y)
{
	uint16_t *h = y;

	if (type == QWEN_W_F32)
		memcpy(y, x, n * sizeof(*x));
	else if (type == QWEN_W_F16)
		for (size_t i = 0; i < n; i++)
			h[i] = to_f16(x[i]);
	else
		for (size_t i = 0; i < n; i++)
			h[i] = to_bf16(x[i]);
}

#define STRING_(s) #s
#define STRING(s) STRING_(s)
extern const struct qwen_kernels CAT(qwen_kernels_, SIMD_LEVEL);
const struct qwen_kernels CAT(qwen_kernels_, SIMD_LEVEL) = {
	.name = STRING(SIMD_LEVEL),
	.product = product,
	.product_int = product_int,
	.quantize = quantize,
	.rms_norm = rms_norm,
	.rope = rope,
	.swiglu = swiglu,
	.dot = dot,
	.axpy = axpy,
	.softmax = softmax,
	.widen = widen,
	.narrow = narrow,
};
