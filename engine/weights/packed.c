/*
 * engine/weights/packed.c - what the blocks of hipfire's files mean.
 *
 * f32 d, f32 m, then codes: a value is d q + m; in MQ8 f16 d, i8 q: d q.  Codes
 * of 4 bits lie two to a byte, the first in its low half (in Q4F16G64, whose d
 * and m are f16, the first 32 in the low halves); of others the first is in the
 * lowest bits of a little-endian string.
 *
 * Blocks of MQ are of rows that were turned, block by block: times signs, by a
 * Hadamard matrix over 16, times other signs; so they are turned back.  The
 * signs are bit 16 of two generators.
 */
#include <string.h>

#include "base/float.h"
#include "engine/weights/weights.h"

enum { TURNED = 256 };

static float f32_at(const uint8_t *p)
{
	float f;

	memcpy(&f, p, 4);
	return f;
}

static float f16_at(const uint8_t *p)
{
	return (float)float_value(p[0] | (uint32_t)p[1] << 8, 5, 10);
}

/* n codes of so many bits. */
static void codes_read(const uint8_t *b, uint32_t n, unsigned bits, float d,
		       float m, float *y)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = i * bits, byte = at / 8;
		/* Those of 6 and of 3 bits may lie in two bytes. */
		const uint32_t two = b[byte] |
				     (at % 8 + bits > 8 ? b[byte + 1] << 8 : 0);
		y[i] = d * (float)(two >> at % 8 & ((1u << bits) - 1)) + m;
	}
}

static void halves_read(const uint8_t *b, float *y)
{
	const float d = f16_at(b), m = f16_at(b + 2);

	for (int i = 0; i < 32; i++) {
		y[i] = d * (float)(b[4 + i] & 15) + m;
		y[i + 32] = d * (float)(b[4 + i] >> 4) + m;
	}
}

static void bytes_read(const uint8_t *b, float *y)
{
	const float d = f16_at(b);

	for (int i = 0; i < TURNED; i++)
		y[i] = d * (float)(int8_t)b[2 + i];
}

static void signs_make(uint32_t state, float sign[TURNED])
{
	for (int i = 0; i < TURNED; i++) {
		state = (state * 1103515245 + 12345) & 0x7fffffff;
		sign[i] = state >> 16 & 1 ? 1 : -1;
	}
}

struct turning {
	float before[TURNED], after[TURNED]; /* of what was done */
};

static void turn_back(const struct turning *t, float *y)
{
	for (int i = 0; i < TURNED; i++)
		y[i] *= t->after[i];
	for (int step = 1; step < TURNED; step *= 2)
		for (int i = 0; i < TURNED; i++)
			if (!(i & step)) {
				const float a = y[i], b = y[i + step];
				y[i] = a + b;
				y[i + step] = a - b;
			}
	for (int i = 0; i < TURNED; i++)
		y[i] *= t->before[i] / 16;
}

void qwen_packed_row(const struct qwen_tensor *t, size_t row, float *out)
{
	static const struct {
		uint8_t bits; /* of what codes_read() reads */
		bool turned;
	} how[] = {
		[QWEN_Q4F16G64 - QWEN_Q4F16G64] = { 0, false },
		[QWEN_HFQ4G256 - QWEN_Q4F16G64] = { 4, false },
		[QWEN_HFQ4G128 - QWEN_Q4F16G64] = { 4, false },
		[QWEN_HFQ6G256 - QWEN_Q4F16G64] = { 6, false },
		[QWEN_HFQ2G256 - QWEN_Q4F16G64] = { 2, false },
		[QWEN_HFQ2G128 - QWEN_Q4F16G64] = { 2, false },
		[QWEN_HFQ3G256 - QWEN_Q4F16G64] = { 3, false },
		[QWEN_HFQ3G128 - QWEN_Q4F16G64] = { 3, false },
		[QWEN_MQ4G256 - QWEN_Q4F16G64] = { 4, true },
		[QWEN_MQ8G256 - QWEN_Q4F16G64] = { 0, true },
		[QWEN_MQ6G256 - QWEN_Q4F16G64] = { 6, true },
	};
	const uint32_t n = qwen_dtype_values(t->dtype);
	const uint32_t bytes = qwen_dtype_bytes(t->dtype);
	const unsigned bits = how[t->dtype - QWEN_Q4F16G64].bits;
	const bool turned = how[t->dtype - QWEN_Q4F16G64].turned;
	const uint64_t blocks = t->shape[1] / n;
	const uint8_t *b = (const uint8_t *)t->data + row * blocks * bytes;
	struct turning x;

	if (turned) {
		signs_make(42, x.before);
		signs_make(1042, x.after);
	}
	for (uint64_t i = 0; i < blocks; i++, b += bytes, out += n) {
		if (bits)
			codes_read(b + 8, n, bits, f32_at(b), f32_at(b + 4),
				   out);
		else if (turned)
			bytes_read(b, out);
		else
			halves_read(b, out);
		if (turned)
			turn_back(&x, out);
	}
}
