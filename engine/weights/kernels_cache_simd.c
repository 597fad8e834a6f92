/*
 * engine/weights/kernels_cache_simd.c - vectors as a cache keeps them: E4M3,
 * groups of 4 bits, and turned so that no value stands out.
 */
#include <math.h>

#include "engine/weights/kernels_simd.h"

/* ---- E4M3 ---- */

/*
 * To nearest even; what is larger than 448 becomes that, what is infinite or no
 * number becomes none.
 */
static inline vi to_f8(vf x)
{
	const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds */
	const vi bits = (vi)x & 0x7fffffff;
	const vf size = min_((vf)bits, splat(448));
	const vi u = (vi)size;
	/* 3 bits of mantissa; exponents count from -7 instead of -127. */
	vi code = ((u + 0x7ffff + (u >> 20 & 1)) >> 20) - (120 << 3);
	/* Below 2^-6 steps are 2^-9. */
	vi small = (vi)(size * 512 + round) - (vi)splat(round);

	code = (vi)select_lanes(u < 121 << 23, (vf)small, (vf)code);
	code = (vi)select_lanes(bits >= 0x7f800000, (vf)((vi){ 0 } + 127),
				(vf)code);
	return code | ((vi)x >> 24 & 0x80);
}

void SIMD(qwen_narrow_f8)(const float *x, size_t n, uint8_t *y)
{
	float part[LANES] = { 0 };
	uint8_t code[LANES];

	for (; n >= LANES; n -= LANES, x += LANES, y += LANES)
		store_i8((int8_t *)y, to_f8(load(x)));
	if (!n)
		return;
	memcpy(part, x, n * sizeof(*x));
	store_i8((int8_t *)code, to_f8(load(part)));
	memcpy(y, code, n);
}

void SIMD(qwen_widen_f8)(const uint8_t *x, size_t n, float *y)
{
	float value[LANES];
	uint8_t part[LANES] = { 0 };

	for (; n >= LANES; n -= LANES, x += LANES, y += LANES)
		store(y, load_f8(x) * F8_UNIT);
	memcpy(part, x, n);
	store(value, load_f8(part) * F8_UNIT);
	memcpy(y, value, n * sizeof(*y));
}

/* ---- groups of 4 bits ---- */

/* The value of a group whose size is largest; NAN if one is no number. */
static inline float most_of(const float *x)
{
	float most[LANES], least[LANES];
	int32_t broken[LANES];
	vf high = load(x), low = high;
	vi bad = { 0 };

	for (int i = 0; i < QWEN_GROUP; i += LANES) {
		vf v = load(x + i);
		high = max_(v, high);
		low = min_(v, low);
		bad |= ((vi)v & 0x7fffffff) >= 0x7f800000;
	}
	memcpy(broken, &bad, sizeof(broken));
	store(most, high);
	store(least, low);
	for (int i = 1; i < LANES; i++) {
		most[0] = most[i] > most[0] ? most[i] : most[0];
		least[0] = least[i] < least[0] ? least[i] : least[0];
		broken[0] |= broken[i];
	}
	return broken[0] ? NAN : most[0] > -least[0] ? most[0] : least[0];
}

void SIMD(qwen_round_int4)(const float *x, uint32_t n, uint8_t *code,
			   uint16_t *scale)
{
	const float round = 12582912.0f;

	for (; n; n -= QWEN_GROUP, x += QWEN_GROUP, scale++) {
		_Float16 d = (_Float16)(most_of(x) / -8);
		float inverse = d != 0 ? 1 / (float)d : 0;
		int8_t q[QWEN_GROUP];
		memcpy(scale, &d, sizeof(*scale));
		for (int i = 0; i < QWEN_GROUP; i += LANES) {
			vf v = load(x + i) * inverse + (round + 8);
			v = min_(max_(v, splat(round)), splat(round + 15));
			store_i8(q + i, (vi)v - (vi)splat(round));
		}
		for (int i = 0; i < QWEN_GROUP / 2; i++)
			*code++ = (uint8_t)(q[i] | q[i + QWEN_GROUP / 2] << 4);
	}
}

/* ---- turned ---- */

/* Sums and differences of lanes whose numbers differ by s, a power of two. */
static inline __attribute__((always_inline)) vf turn_lanes(vf v, int s)
{
	vi from;
	vf sign;

	for (int i = 0; i < LANES; i++) {
		from[i] = i ^ s;
		sign[i] = i & s ? -1 : 1;
	}
	return fma_(v, sign, permute_two(v, v, from));
}

void SIMD(qwen_turn)(float *x, uint32_t n)
{
	const uint32_t block = n & -n;
	const vf scale = splat(1 / sqrtf((float)block));

	for (uint32_t s = LANES; s < block; s *= 2)
		for (uint32_t i = 0; i < n; i += LANES) {
			if (i & s)
				continue;
			vf a = load(x + i), b = load(x + i + s);
			store(x + i, a + b);
			store(x + i + s, a - b);
		}
	for (uint32_t i = 0; i < n; i += LANES) {
		vf v = load(x + i);
#pragma GCC unroll 4
		for (int s = 1; s < LANES; s *= 2)
			v = turn_lanes(v, s);
		store(x + i, v * scale);
	}
}
