/*
 * autotune/tuner/fill.c - contents of matrices, and elements as numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/tuner/tune_int.h"
#include "base/float.h"

static const char *const fills[] = { "normal", "uniform", "zero", "constant" };

bool tune_fill_parse(const char *s, enum tune_fill *f, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(fills); i++)
		if (!strcmp(s, fills[i])) {
			*f = (enum tune_fill)i;
			return true;
		}
	return err_set(e, ERR_USAGE, "--operands %s: wanted normal, uniform, "
		       "zero or constant", s);
}

double tune_read_element(enum dsl_type t, const void *base, size_t i)
{
	union {
		uint32_t u;
		float f;
	} bits;

	switch (t) {
	case DSL_BF16:
		bits.u = (uint32_t)((const uint16_t *)base)[i] << 16;
		return bits.f;
	case DSL_F16:
		return (double)((const _Float16 *)base)[i];
	case DSL_I8:
		return ((const int8_t *)base)[i];
	case DSL_I32:
		return ((const int32_t *)base)[i];
	default:
		return ((const float *)base)[i];
	}
}

static void write_element(enum dsl_type t, void *base, size_t i, double v)
{
	switch (t) {
	case DSL_BF16:
		((uint16_t *)base)[i] = (uint16_t)float_bits(v, 8, 7);
		break;
	case DSL_F16:
		((uint16_t *)base)[i] = (uint16_t)float_bits(v, 5, 10);
		break;
	case DSL_I8:
		((int8_t *)base)[i] = (int8_t)lrint(fmax(-128, fmin(127, v)));
		break;
	case DSL_I32:
		((int32_t *)base)[i] = (int32_t)lrint(v);
		break;
	default:
		((float *)base)[i] = (float)v;
	}
}

/* In (0, 1). */
static double draw_unit(uint64_t *state)
{
	return ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53;
}

static double draw_value(enum tune_fill f, uint64_t *state)
{
	switch (f) {
	case TUNE_NORMAL: /* Box and Muller */
		return sqrt(-2 * log(draw_unit(state))) *
		       cos(2 * M_PI * draw_unit(state));
	case TUNE_UNIFORM:
		return 2 * draw_unit(state) - 1;
	case TUNE_CONSTANT:
		return 0.5;
	default:
		return 0;
	}
}

/*
 * Elements are drawn from POOL values, which are drawn from the distribution:
 * large matrices in a fraction of a second.  Integers are 32 times as large,
 * so that rounding leaves most of the distribution.
 */
enum { POOL_BITS = 14, POOL = 1 << POOL_BITS };

void tune_fill_operand(enum tune_fill f, enum dsl_type t, void *base, size_t n,
		       uint64_t seed)
{
	uint32_t size = tune_type_bytes(t);
	uint8_t *pool = xmalloc((size_t)POOL * size), *out = base;
	uint64_t state = seed;

	for (size_t i = 0; i < POOL; i++)
		write_element(t, pool, i,
			      draw_value(f, &state) * (t == DSL_I8 ? 32 : 1));
	for (size_t i = 0; i < n;) {
		uint64_t r = random_next(&state);

		for (int k = 0; k < 4 && i < n; k++, i++, r >>= POOL_BITS)
			memcpy(out + i * size, pool + r % POOL * size, size);
	}
	free(pool);
}

/* ---- integers with scales ---- */

double tune_read_weight(enum dsl_type weights, enum dsl_type in,
			const void *base, const void *scale, size_t i)
{
	double s = tune_read_element(DSL_F16, scale, i / GEMM_GROUP);
	const uint8_t *b = base;
	float rounded; /* room for either type */
	int q;

	if (weights == DSL_U8)
		q = (b[i / 32 * 16 + i % 16] >> i % 32 / 16 * 4 & 15) - 8;
	else
		q = (int8_t)b[i];
	write_element(in, &rounded, 0, q * s);
	return tune_read_element(in, &rounded, 0);
}

/* 4 bits hold two and a half deviations, 8 bits four. */
void tune_fill_weights(enum tune_fill f, enum dsl_type weights, void *base,
		       void *scale, size_t n, uint64_t seed)
{
	const bool small = weights == DSL_U8;
	size_t bytes = small ? n / 2 : n;
	uint64_t state = seed;
	uint8_t *out = base;

	tune_fill_operand(f, DSL_I8, base, bytes, seed);
	for (size_t i = 0; small && i < bytes; i++) {
		int q = (int8_t)out[i] * 3 / 32 + 8;
		int low = (int)(random_next(&state) % 3) - 1 + q;

		if (f != TUNE_NORMAL && f != TUNE_UNIFORM)
			low = q;
		q = q < 0 ? 0 : q > 15 ? 15 : q;
		low = low < 0 ? 0 : low > 15 ? 15 : low;
		out[i] = (uint8_t)(q << 4 | low);
	}
	for (size_t i = 0; i < n / GEMM_GROUP; i++)
		write_element(DSL_F16, scale, i,
			      (0.5 + draw_unit(&state)) / (small ? 3 : 32));
}
