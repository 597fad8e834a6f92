/*
 * engine/weights/pack.c - rows of floats as blocks, of GGUF files and our own.
 *
 * Scales are searched: of some around the one that reaches the largest value,
 * the one whose codes leave the least squared error, and for these codes the
 * scale that fits best.  Codes are chosen again for the scales as they are
 * stored.  unpack_simd.c has what the bits mean.
 */
#include <math.h>
#include <string.h>
#include <xmmintrin.h>

#include "base/float.h"
#include "engine/weights/weights.h"

/* ---- numbers ---- */

static float half_put(uint8_t *p, float f)
{
	const uint16_t h = (uint16_t)float_bits(f, 5, 10);

	memcpy(p, &h, 2);
	return (float)float_value(h, 5, 10);
}

/* 1.5 * 2^23: adding it rounds. */
#define ROUND 12582912.0f

/* To nearest even; the bounds are whole and small. */
static inline float clamp_round(float v, float least, float most)
{
	v = v > least ? v : least;
	v = v < most ? v : most;
	return v + ROUND - ROUND;
}

/* ---- codes, and the scale that they need ---- */

/* Whole numbers least .. most, or 16 values in ascending order. */
struct codes {
	int least, most;
	const int8_t *value;
};

static const int8_t uneven[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
				   1, 13, 25, 38, 53, 69, 89, 113 };
static const struct codes codes_uneven = { -127, 113, uneven };
/* Doubled e2m1 numbers; their codes are not in this order. */
static const int8_t doubled[16] = { -12, -8, -6, -4, -3, -2, -1, 0,
				    0, 1, 2, 3, 4, 6, 8, 12 };

/* The code next to v, from 0 on. */
static int code_of(const struct codes *c, float v)
{
	int i = 0;

	if (!c->value)
		return (int)clamp_round(v, (float)c->least, (float)c->most) -
		       c->least;
	/* By halves: is v above the middle between two of them? */
	for (int step = 8; step; step /= 2) {
		const int8_t *below = &c->value[i + step - 1];
		i += 2 * v > (float)(below[0] + below[1]) ? step : 0;
	}
	return i;
}

static float value_of(const struct codes *c, int code)
{
	return (float)(c->value ? c->value[code] : code + c->least);
}

static void codes_choose(const struct codes *c, const float *x, int n, float d,
			 uint8_t *out)
{
	const float inverse = d != 0 ? 1 / d : 0;

	for (int i = 0; i < n; i++)
		out[i] = (uint8_t)code_of(c, x[i] * inverse);
}

static float extreme_of(const float *x, int n)
{
	float top = 0;

	for (int i = 0; i < n; i++)
		top = fabsf(x[i]) > fabsf(top) ? x[i] : top;
	return top;
}

/* Tried are so many scales, 1/64 apart; a multiple of what vectors hold. */
#define TRIED 24

/* What reaches the largest value, by 1 + k / 64 for k around 0. */
static float size_of(int tried)
{
	return 1 + (float)(tried - TRIED / 2) / 64;
}

/* scales_try() of whole numbers; sums stay in registers, of every x86-64. */
static void wholes_try(const struct codes *c, const float *x, int n,
		       const float *inverse, float *xv, float *vv)
{
	enum { VECTORS = TRIED / 4 };
	const __m128 least = _mm_set1_ps((float)c->least);
	const __m128 most = _mm_set1_ps((float)c->most);
	const __m128 round = _mm_set1_ps(ROUND);
	__m128 xs[VECTORS] = { 0 }, vs[VECTORS] = { 0 };

	for (int i = 0; i < n; i++) {
		const __m128 one = _mm_set1_ps(x[i]);
#pragma GCC unroll 8
		for (int k = 0; k < VECTORS; k++) {
			__m128 v = one * _mm_loadu_ps(inverse + 4 * k);
			v = _mm_min_ps(_mm_max_ps(v, least), most);
			v = v + round - round;
			xs[k] += one * v;
			vs[k] += v * v;
		}
	}
	memcpy(xv, xs, sizeof(xs));
	memcpy(vv, vs, sizeof(vs));
}

/* Of every scale the sums of x v and of v v over the values v of its codes. */
static void scales_try(const struct codes *c, const float *x, int n,
		       const float *inverse, float *xv, float *vv)
{
	if (!c->value) {
		wholes_try(c, x, n, inverse, xv, vv);
		return;
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < TRIED; k++) {
			float v = value_of(c, code_of(c, x[i] * inverse[k]));
			xv[k] += x[i] * v;
			vv[k] += v * v;
		}
}

/*
 * d of the least sum of (x - d value)^2, which is less by *gain than that of
 * zeros: of those that bring the largest x to about `stretch` times the least
 * value.  *d stays where none is better than *gain, which the caller has so far.
 */
static void scale_find(const struct codes *c, const float *x, int n,
		       float stretch, float *gain, float *d)
{
	const float top = extreme_of(x, n);
	float inverse[TRIED], xv[TRIED] = { 0 }, vv[TRIED] = { 0 };

	for (int k = 0; k < TRIED; k++)
		inverse[k] = (float)c->least * stretch * size_of(k) / top;
	if (top != 0)
		scales_try(c, x, n, inverse, xv, vv);
	for (int k = 0; k < TRIED; k++)
		if (vv[k] > 0 && xv[k] * xv[k] > *gain * vv[k]) {
			*gain = xv[k] * xv[k] / vv[k];
			*d = xv[k] / vv[k];
		}
}

static float scale_fit(const struct codes *c, const float *x, int n)
{
	float gain = 0, d = 0;

	scale_find(c, x, n, 1, &gain, &d);
	return d;
}

/* x ~ d q + m, with codes q from 0 to some most; so many of them. */
struct line {
	float d, m;
};
struct lines {
	float d[TRIED], m[TRIED], inverse[TRIED];
};

static void lines_invert(struct lines *l)
{
	for (int k = 0; k < TRIED; k++)
		l->inverse[k] = l->d[k] > 0 ? 1 / l->d[k] : 0;
}

/* For the codes of each line the line that fits best; m is at most `top`. */
static void lines_refit(struct lines *l, const float *x, int n, float most,
			float top)
{
	float q1[TRIED] = { 0 }, q2[TRIED] = { 0 }, xq[TRIED] = { 0 }, x1 = 0;

	lines_invert(l);
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < TRIED; k++) {
			float q = clamp_round((x[i] - l->m[k]) * l->inverse[k],
					      0, most);
			q1[k] += q;
			q2[k] += q * q;
			xq[k] += x[i] * q;
		}
		x1 += x[i];
	}
	for (int k = 0; k < TRIED; k++) {
		float size = (float)n * q2[k] - q1[k] * q1[k];
		float d = size > 0 ? ((float)n * xq[k] - x1 * q1[k]) / size : 0;
		float m = (x1 - d * q1[k]) / (float)n;
		if (m > top) {
			m = top;
			d = q2[k] > 0 ? (xq[k] - top * q1[k]) / q2[k] : 0;
		}
		if (d > 0) {
			l->d[k] = d;
			l->m[k] = m;
		}
	}
	lines_invert(l);
}

static struct line line_fit(const float *x, int n, int steps, float top)
{
	const float most = (float)steps;
	float low = x[0], high = x[0], error[TRIED] = { 0 };
	struct lines l;
	int best = 0;

	for (int i = 1; i < n; i++) {
		low = x[i] < low ? x[i] : low;
		high = x[i] > high ? x[i] : high;
	}
	low = low < top ? low : top;
	for (int k = 0; k < TRIED; k++) {
		l.d[k] = (high - low) / most / size_of(k);
		l.m[k] = low;
	}
	lines_refit(&l, x, n, most, top);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < TRIED; k++) {
			float q = clamp_round((x[i] - l.m[k]) * l.inverse[k], 0,
					      most);
			float off = x[i] - (l.d[k] * q + l.m[k]);
			error[k] += off * off;
		}
	for (int k = 1; k < TRIED; k++)
		best = error[k] < error[best] ? k : best;
	return (struct line){ l.d[best], l.m[best] };
}

/* ---- bits ---- */

/* 32 codes as halves of 16 bytes. */
static void nibbles_put(uint8_t *to, const uint8_t *code)
{
	for (int i = 0; i < 16; i++)
		to[i] = (uint8_t)((code[i] & 15) | (code[i + 16] & 15) << 4);
}

/* Bit 4 of 32 codes, in a row. */
static void fifths_put(uint8_t *to, const uint8_t *code)
{
	for (int i = 0; i < 32; i++)
		to[i / 8] = (uint8_t)(to[i / 8] |
				      (code[i] >> 4 & 1) << i % 8);
}

/*
 * Of 256 codes `n` bits from `shift` on: codes i, i + run, i + 2 run ... share
 * a byte.
 */
static void bits_put(uint8_t *to, const uint8_t *code, int shift, int n,
		     int run)
{
	const int per = 8 / n;

	for (int i = 0; i < 256; i++) {
		int part = i / (run * per), at = i / run % per;
		to[part * run + i % run] |= (uint8_t)(
			(code[i] >> shift & ((1 << n) - 1)) << at * n);
	}
}

/* ---- blocks of 32; memory is zero before ---- */

static void pack_Q8_0(const float *x, uint8_t *b)
{
	const struct codes c = { -127, 127, NULL };
	const float d = half_put(b, fabsf(extreme_of(x, 32)) / 127);
	uint8_t code[32];

	codes_choose(&c, x, 32, d, code);
	for (int i = 0; i < 32; i++)
		b[2 + i] = (uint8_t)(code[i] - 127);
}

static void pack_Q4_0(const float *x, uint8_t *b)
{
	const struct codes c = { -8, 7, NULL };
	uint8_t code[32];

	codes_choose(&c, x, 32, half_put(b, scale_fit(&c, x, 32)), code);
	nibbles_put(b + 2, code);
}

static void pack_Q5_0(const float *x, uint8_t *b)
{
	const struct codes c = { -16, 15, NULL };
	uint8_t code[32];

	codes_choose(&c, x, 32, half_put(b, scale_fit(&c, x, 32)), code);
	fifths_put(b + 2, code);
	nibbles_put(b + 6, code);
}

/* Codes 0 .. most of a line whose two numbers are stored as halves. */
static void line_put(const float *x, int most, uint8_t *b, uint8_t *code)
{
	struct line l = line_fit(x, 32, most, INFINITY);

	l.d = half_put(b, l.d);
	l.m = half_put(b + 2, l.m);
	for (int i = 0; i < 32; i++)
		code[i] = (uint8_t)(l.d > 0 ? clamp_round((x[i] - l.m) / l.d, 0,
							  (float)most) : 0);
}

static void pack_Q4_1(const float *x, uint8_t *b)
{
	uint8_t code[32];

	line_put(x, 15, b, code);
	nibbles_put(b + 4, code);
}

static void pack_Q5_1(const float *x, uint8_t *b)
{
	uint8_t code[32];

	line_put(x, 31, b, code);
	fifths_put(b + 4, code);
	nibbles_put(b + 8, code);
}

static void pack_IQ4_NL(const float *x, uint8_t *b)
{
	uint8_t code[32];

	codes_choose(&codes_uneven, x, 32,
		     half_put(b, scale_fit(&codes_uneven, x, 32)), code);
	nibbles_put(b + 2, code);
}

static float e2m1_error(const float *x, float d, uint8_t *code)
{
	const struct codes c = { -12, 12, doubled };
	float sum = 0;

	codes_choose(&c, x, 32, d, code);
	for (int i = 0; i < 32; i++) {
		float off = x[i] - d * value_of(&c, code[i]);
		sum += off * off;
		/* From ascending order to sign and size. */
		code[i] = code[i] < 8 ? 8 | (7 - code[i]) : code[i] - 8;
	}
	return sum;
}

/* A power of two so that the largest value fits, or half of it. */
static void pack_MXFP4(const float *x, uint8_t *b)
{
	const float top = fabsf(extreme_of(x, 32));
	uint8_t code[2][32];
	int e = top > 0 ? ilogbf(top) - 2 + 127 : 1;

	e = e < 1 ? 1 : e > 253 ? 253 : e;
	float low = e2m1_error(x, ldexpf(1, e - 128), code[0]);
	float high = e2m1_error(x, ldexpf(1, e - 127), code[1]);
	b[0] = (uint8_t)(e + (high < low));
	nibbles_put(b + 1, code[high < low]);
}

/* ---- blocks of 256 ---- */

/* Scales of `n` runs in steps of one half: d times whole numbers. */
static float steps_of(const float *scale, int n, int least, int most,
		      uint8_t *half, int *step)
{
	const float d = half_put(half, extreme_of(scale, n) / (float)least);

	for (int i = 0; i < n; i++)
		step[i] = d != 0 ? (int)clamp_round(scale[i] / d, (float)least,
						    (float)most) : 0;
	return d;
}

/* Lines of `n` runs: scales and minima below zero, in steps of two halves. */
struct steps {
	int scale[16], min[16];
};

static void lines_choose(const float *x, int n, int most, int steps,
			 uint8_t *d_at, uint8_t *dmin_at, struct steps *l,
			 uint8_t *code)
{
	const float top_step = (float)steps;
	const int run = 256 / n;
	float scale[16], min[16];

	for (int i = 0; i < n; i++) {
		struct line one = line_fit(x + i * run, run, most, 0);
		scale[i] = one.d;
		min[i] = -one.m;
	}
	float d = half_put(d_at, extreme_of(scale, n) / top_step);
	float dmin = half_put(dmin_at, extreme_of(min, n) / top_step);
	for (int i = 0; i < n; i++) {
		l->scale[i] = d > 0 ? (int)clamp_round(scale[i] / d, 0,
						       top_step) : 0;
		l->min[i] = dmin > 0 ? (int)clamp_round(min[i] / dmin, 0,
							top_step) : 0;
		float by = d * (float)l->scale[i];
		float less = dmin * (float)l->min[i];
		for (int k = i * run; k < (i + 1) * run; k++)
			code[k] = (uint8_t)(by > 0 ? clamp_round(
				(x[k] + less) / by, 0, (float)most) : 0);
	}
}

/* 8 scales and 8 minima of 6 bits. */
static void sixes_put(uint8_t *s, const struct steps *l)
{
	for (int i = 0; i < 4; i++) {
		int scale = l->scale[i + 4], min = l->min[i + 4];
		s[i] = (uint8_t)(l->scale[i] | scale >> 4 << 6);
		s[i + 4] = (uint8_t)(l->min[i] | min >> 4 << 6);
		s[i + 8] = (uint8_t)((scale & 15) | (min & 15) << 4);
	}
}

static void pack_Q4_K(const float *x, uint8_t *b)
{
	struct steps l;
	uint8_t code[256];

	lines_choose(x, 8, 15, 63, b, b + 2, &l, code);
	sixes_put(b + 4, &l);
	bits_put(b + 16, code, 0, 4, 32);
}

static void pack_Q5_K(const float *x, uint8_t *b)
{
	struct steps l;
	uint8_t code[256];

	lines_choose(x, 8, 31, 63, b, b + 2, &l, code);
	sixes_put(b + 4, &l);
	bits_put(b + 16, code, 4, 1, 32);
	bits_put(b + 48, code, 0, 4, 32);
}

static void pack_Q2_K(const float *x, uint8_t *b)
{
	struct steps l;
	uint8_t code[256];

	lines_choose(x, 16, 3, 15, b + 80, b + 82, &l, code);
	for (int i = 0; i < 16; i++)
		b[i] = (uint8_t)(l.scale[i] | l.min[i] << 4);
	bits_put(b + 16, code, 0, 2, 32);
}

/* Scales of `n` runs around zero, in steps of one half. */
static void runs_choose(const struct codes *c, const float *x, int n,
			int least, int most, uint8_t *half, int *step,
			uint8_t *code)
{
	const int run = 256 / n;
	float scale[16];

	for (int i = 0; i < n; i++)
		scale[i] = scale_fit(c, x + i * run, run);
	const float d = steps_of(scale, n, least, most, half, step);
	for (int i = 0; i < n; i++)
		codes_choose(c, x + i * run, run, d * (float)step[i],
			     code + i * run);
}

static void put_Q6_K(const int *step, const uint8_t *code, uint8_t *b)
{
	for (int i = 0; i < 16; i++)
		b[192 + i] = (uint8_t)step[i];
	bits_put(b, code, 0, 4, 64);
	bits_put(b + 128, code, 4, 2, 32);
}

static void pack_Q6_K(const float *x, uint8_t *b)
{
	const struct codes c = { -32, 31, NULL };
	uint8_t code[256];
	int step[16];

	runs_choose(&c, x, 16, -128, 127, b + 208, step, code);
	put_Q6_K(step, code, b);
}

static void put_Q3_K(const int *step, const uint8_t *code, uint8_t *b)
{
	for (int i = 0; i < 16; i++) {
		int s = step[i] + 32;
		b[96 + i % 8] |= (uint8_t)((s & 15) << i / 8 * 4);
		b[104 + i % 4] |= (uint8_t)(s >> 4 << i / 4 * 2);
	}
	bits_put(b, code, 2, 1, 32);
	bits_put(b + 32, code, 0, 2, 32);
}

static void pack_Q3_K(const float *x, uint8_t *b)
{
	const struct codes c = { -4, 3, NULL };
	uint8_t code[256];
	int step[16];

	runs_choose(&c, x, 16, -32, 31, b + 108, step, code);
	put_Q3_K(step, code, b);
}

void qwen_pack_steps(enum qwen_weights type, const int8_t q[256], uint16_t half,
		     const int step[16], uint8_t *out)
{
	const bool six = type == QWEN_W_Q6_K;
	uint8_t code[256];

	memset(out, 0, qwen_layout(type).bytes);
	memcpy(out + (six ? 208 : 108), &half, 2);
	for (int i = 0; i < 256; i++)
		code[i] = (uint8_t)(q[i] + (six ? 32 : 4));
	if (six)
		put_Q6_K(step, code, out);
	else
		put_Q3_K(step, code, out);
}

static void pack_IQ4_XS(const float *x, uint8_t *b)
{
	uint8_t code[256];
	int step[8];

	runs_choose(&codes_uneven, x, 8, -32, 31, b, step, code);
	for (int i = 0; i < 8; i++) {
		int s = step[i] + 32;
		b[2 + i / 4] |= (uint8_t)(s >> 4 << i % 4 * 2);
		b[4 + i / 2] |= (uint8_t)((s & 15) << i % 2 * 4);
		nibbles_put(b + 8 + 16 * i, code + 32 * i);
	}
}

/* ---- our own ---- */

static void pack_run(enum qwen_weights type, const float *x, uint8_t *b)
{
	const struct qwen_codes *own = qwen_codes_of(type);
	const struct codes c = { own->least, own->most, NULL };
	const int n = (int)own->run;
	uint8_t code[256];
	int8_t q[256];
	uint16_t half;

	/* Of many values in few codes the farthest are best cut off. */
	float gain = 0, best = 0;
	for (float stretch = 1; stretch < 3; stretch *= 1.4f)
		scale_find(&c, x, n, stretch, &gain, &best);
	const float d = half_put((uint8_t *)&half, best);
	codes_choose(&c, x, n, d, code);
	for (int i = 0; i < n; i++)
		q[i] = (int8_t)(code[i] + own->least);
	qwen_pack_run(type, q, half, b);
}

#define OWN(NAME) \
	static void pack_##NAME(const float *x, uint8_t *b) \
	{ \
		pack_run(QWEN_W_##NAME, x, b); \
	}
OWN(I6_32)
OWN(I6_64)
OWN(I6_128)
OWN(I6_256)
OWN(I3_32)
OWN(I3_64)
OWN(I3_128)
OWN(I3_256)

/* ---- all of them ---- */

void qwen_pack_row(enum qwen_weights type, const float *x, uint32_t n,
		   uint8_t *out)
{
	static void (*const pack[])(const float *x, uint8_t *b) = {
#define BLOCK(NAME, ...) pack_##NAME,
#include "engine/files/dtype.def"
	};
	const struct qwen_layout l = qwen_layout(type);

	memset(out, 0, (size_t)(n / l.values) * l.bytes);
	for (uint32_t i = 0; i < n; i += l.values, out += l.bytes)
		pack[type - QWEN_W_INT4 - 1](x + i, out);
}
