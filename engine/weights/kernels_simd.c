/*
 * engine/weights/kernels_simd.c - the table of kernels of one instruction-set
 * level.
 *
 * With all kernels that are not products (weights.h says what each computes).
 */
#include <math.h>

#include "engine/weights/kernels_simd.h"

static float dot(const float *a, const float *b, uint32_t n)
{
	vf s = { 0 };
	uint32_t i = 0;

	for (; i + LANES <= n; i += LANES)
		s = fma_(load(a + i), load(b + i), s);
	float v = sum_lanes(s);
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

static float find_largest(const float *x, uint32_t n)
{
	vf top = splat(x[0]), other = top;
	uint32_t i = 0;

	for (; i + 2 * LANES <= n; i += 2 * LANES) {
		top = max_(load(x + i), top);
		other = max_(load(x + i + LANES), other);
	}
	top = max_(other, top);
	float most = x[0];
	for (int k = 0; k < LANES; k++)
		most = top[k] > most ? top[k] : most;
	for (; i < n; i++)
		most = x[i] > most ? x[i] : most;
	return most;
}

/* The last n < LANES of a row; returns their sum. */
static float exp_some(float *x, uint32_t n, float top)
{
	float part[LANES] = { 0 };
	float total = 0;

	memcpy(part, x, n * sizeof(*x));
	store(part, exp_(load(part) - top));
	for (uint32_t i = 0; i < n; i++)
		total += part[i];
	memcpy(x, part, n * sizeof(*x));
	return total;
}

/* Vectors whose sum stays in f32 before it goes into the double. */
#define SUMMED 32

static double exp_sum(float *x, uint32_t n, float top)
{
	double total = 0;
	uint32_t i = 0;

	while (i + LANES <= n) {
		vf some = { 0 };
		for (int k = 0; k < SUMMED && i + LANES <= n; k++, i += LANES) {
			vf v = exp_(load(x + i) - top);
			store(x + i, v);
			some += v;
		}
		total += sum_lanes(some);
	}
	if (i < n)
		total += exp_some(x + i, n - i, top);
	return total;
}

static void softmax(float *x, uint32_t n)
{
	float scale = (float)(1 / exp_sum(x, n, find_largest(x, n)));

	for (uint32_t i = 0; i < n; i++)
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
	if (type == QWEN_W_F8) {
		SIMD(qwen_widen_f8)(x, n, y);
		return;
	}
	for (; i + LANES <= n; i += LANES)
		store(y + i, type == QWEN_W_F16 ? load_f16(h + i) :
						  load_bf16(h + i));
	for (; i < n; i++)
		y[i] = type == QWEN_W_F16 ? f16_one(h[i]) : bf16_one(h[i]);
}

/* To the nearest, of two the even one; what is no number stays none. */
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

static void narrow_f16(const float *x, size_t n, uint16_t *h)
{
	size_t i = 0;

#ifdef __F16C__
	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(h + i),
				 _mm256_cvtps_ph(_mm256_loadu_ps(x + i),
						 _MM_FROUND_TO_NEAREST_INT));
#endif
	for (; i < n; i++)
		h[i] = to_f16(x[i]);
}

static void narrow_bf16(const float *x, size_t n, uint16_t *h)
{
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		const vf v = load(x + i);
		const vu u = (vu)v;
		const vu nearest = u + 0x7fff + (u >> 16 & 1);
		const vf kept = select_lanes(v != v, (vf)(u | 0x400000),
					     (vf)nearest);
		*(vhu *)(h + i) = __builtin_convertvector((vu)kept >> 16, vh);
	}
	for (; i < n; i++)
		h[i] = to_bf16(x[i]);
}

static void narrow(enum qwen_weights type, const float *x, size_t n, void *y)
{
	uint16_t *h = y;

	if (type == QWEN_W_F32)
		memcpy(y, x, n * sizeof(*x));
	else if (type == QWEN_W_F16)
		narrow_f16(x, n, h);
	else if (type == QWEN_W_F8)
		SIMD(qwen_narrow_f8)(x, n, y);
	else
		narrow_bf16(x, n, h);
}

#define STRING_(s) #s
#define STRING(s) STRING_(s)
extern const struct qwen_kernels SIMD(qwen_kernels);
const struct qwen_kernels SIMD(qwen_kernels) = {
	.name = STRING(SIMD_LEVEL),
	.product = SIMD(qwen_product),
#if LANES == 16
	.product_pairs = SIMD(qwen_product_pairs),
#endif
	.product_int = SIMD(qwen_product_int),
	.unpack = SIMD(qwen_unpack),
	.quantize = SIMD(qwen_quantize),
	.round_int4 = SIMD(qwen_round_int4),
	.turn = SIMD(qwen_turn),
	.scores = score_keys,
	.mix = mix_values,
	.read = SIMD(qwen_read),
	.fma = SIMD(qwen_fma),
	.rms_norm = rms_norm,
	.rope = rope,
	.swiglu = swiglu,
	.dot = dot,
	.axpy = axpy,
	.softmax = softmax,
	.exp_sum = exp_sum,
	.largest = find_largest,
	.widen = widen,
	.narrow = narrow,
};
