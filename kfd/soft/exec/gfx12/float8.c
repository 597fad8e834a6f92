/*
 * kfd/soft/exec/gfx12/float8.c - floats of 8 bits (RDNA4 ISA 16.7, 16.9).
 *
 * fp8 is E4M3 without infinities, 0x7f its NaN; bf8 is E5M2, the upper byte of
 * a half (the OCP's formats).  What is too large becomes NaN or infinity, or,
 * with MODE.FP16_OVFL, the largest number.  Denormals stay whatever MODE says.
 *
 * The stochastic conversions add random bits below the last one that is kept
 * and cut.
 */
#include <math.h>

#include "kfd/soft/exec/gfx12/matrix.h"

struct float8 {
	int fraction, bias; /* bits; of the exponent */
	uint32_t most, inf, nan;
};
static const struct float8 fp8 = { 3, 7, 0x7e, 0x7f, 0x7f };
static const struct float8 bf8 = { 2, 15, 0x7b, 0x7c, 0x7e };

uint32_t soft_half_of_fp8(uint32_t v)
{
	static const uint16_t denormal[8] = { 0,      0x1800, 0x1c00, 0x1e00,
					      0x2000, 0x2100, 0x2200, 0x2300 };
	const uint32_t m = v & 0x7f, sign = (v & 0x80) << 8;

	return sign | (m == 0x7f ? 0x7e00 :
		       m < 8	 ? denormal[m] :
				   (m << 7) + (8 << 10));
}

static float widen_fp8(uint32_t v)
{
	return soft_f32_from_f16(soft_half_of_fp8(v & 0xff));
}

static float widen_bf8(uint32_t v)
{
	return soft_f32_from_f16((v & 0xff) << 8);
}

/*
 * The float of bits u; `random`: as many bits as are cut of a normal number, in
 * the upper bits of the word, or NULL to round to nearest even.
 */
static uint32_t round_to_float8(uint32_t u, const struct float8 *f,
				const uint32_t *random, bool saturates)
{
	const uint32_t sign = u >> 24 & 0x80, a = u & 0x7fffffff;
	const int exp = (int)(a >> 23) - 127 + f->bias, cut = 23 - f->fraction;
	const int shift = exp >= 1 ? cut : cut + 1 - exp;
	uint64_t m, r;

	if (a > F32_INF)
		return sign | f->nan;
	if (a == F32_INF)
		return sign | (saturates ? f->most : f->inf);
	if (shift > 31)
		return sign;
	m = exp >= 1 ? a - ((uint32_t)(127 - f->bias) << 23) :
		       (a & 0x7fffff) | 0x800000;
	r = m >> shift;
	if (random)
		r = (m +
		     ((uint64_t)(*random >> (32 - cut)) << (shift - cut))) >>
		    shift;
	else
		r += soft_round_away(0, 0, r & 1,
				     (uint32_t)m & ((1u << shift) - 1),
				     1u << (shift - 1));
	if (r > f->most)
		return sign | (saturates ? f->most : f->inf);
	return sign | (uint32_t)r;
}

/* ---------------------------------------------------------------- rows ---- */

/* A function for each byte, or half, that op_sel can name. */
#define WIDEN(type, n) \
	static void cvt_f32_##type##_##n(struct soft_lanes *x) \
	{ \
		LANES(i) x->d[i] = f32_bits(widen_##type(x->a[i] >> 8 * (n))); \
	}
#define BYTES(X, type) X(type, 0) X(type, 1) X(type, 2) X(type, 3)
BYTES(WIDEN, fp8)
BYTES(WIDEN, bf8)

#define WIDEN2(type) \
	static void cvt_pk_f32_##type(struct soft_lanes *x) \
	{ \
		LANES(i) \
		{ \
			const uint32_t v = x->a[i]; \
			x->d[i] = f32_bits(widen_##type(v)); \
			x->d[SOFT_LANES + i] = f32_bits(widen_##type(v >> 8)); \
		} \
	}
WIDEN2(fp8)
WIDEN2(bf8)

#define NARROW2(type, n) \
	static void cvt_pk_##type##_f32_##n(struct soft_lanes *x) \
	{ \
		const bool sat = soft_ovfl16(x->mode); \
		LANES(i) \
		x->d[i] = (x->c[i] & ~(0xffffu << 16 * (n))) | \
			  (round_to_float8(x->a[i], &type, NULL, sat) | \
			   round_to_float8(x->b[i], &type, NULL, sat) << 8) \
				  << 16 * (n); \
	}
NARROW2(fp8, 0)
NARROW2(fp8, 1)
NARROW2(bf8, 0)
NARROW2(bf8, 1)

#define NARROW_SR(type, n) \
	static void cvt_sr_##type##_f32_##n(struct soft_lanes *x) \
	{ \
		const bool sat = soft_ovfl16(x->mode); \
		LANES(i) \
		x->d[i] = (x->c[i] & ~(0xffu << 8 * (n))) | \
			  round_to_float8(x->a[i], &type, &x->b[i], sat) \
				  << 8 * (n); \
	}
BYTES(NARROW_SR, fp8)
BYTES(NARROW_SR, bf8)

/* Products are exact; sums are rounded one by one, in this order. */
#define DOT4(ta, tb) \
	static void dot4_f32_##ta##_##tb(struct soft_lanes *x) \
	{ \
		LANES(i) \
		{ \
			float sum = f32_value(x->c[i]); \
			for (int k = 0; k < 32; k += 8) \
				sum += widen_##ta(x->a[i] >> k) * \
				       widen_##tb(x->b[i] >> k); \
			x->d[i] = isnan(sum) ? 0xffc00000 : f32_bits(sum); \
		} \
	}
DOT4(fp8, fp8)
DOT4(fp8, bf8)
DOT4(bf8, fp8)
DOT4(bf8, bf8)

#define ROW(name) \
	{ \
		.fn = name, .flags = SOFT_V_KEEP \
	}
#define FOUR(name) \
	{ \
		ROW(name##_0), ROW(name##_1), ROW(name##_2), ROW(name##_3) \
	}
#define TWO(name) \
	{ \
		ROW(name##_0), ROW(name##_1) \
	}
#define ONE(name) \
	{ \
		ROW(name) \
	}
static const struct {
	uint16_t op;
	struct soft_lane_op row[4]; /* by the part that op_sel names */
} rows[] = {
	{ ISA_v_cvt_f32_fp8, FOUR(cvt_f32_fp8) },
	{ ISA_v_cvt_f32_bf8, FOUR(cvt_f32_bf8) },
	{ ISA_v_cvt_pk_f32_fp8, ONE(cvt_pk_f32_fp8) },
	{ ISA_v_cvt_pk_f32_bf8, ONE(cvt_pk_f32_bf8) },
	{ ISA_v_cvt_pk_fp8_f32, TWO(cvt_pk_fp8_f32) },
	{ ISA_v_cvt_pk_bf8_f32, TWO(cvt_pk_bf8_f32) },
	{ ISA_v_cvt_sr_fp8_f32, FOUR(cvt_sr_fp8_f32) },
	{ ISA_v_cvt_sr_bf8_f32, FOUR(cvt_sr_bf8_f32) },
	{ ISA_v_dot4_f32_fp8_fp8, ONE(dot4_f32_fp8_fp8) },
	{ ISA_v_dot4_f32_fp8_bf8, ONE(dot4_f32_fp8_bf8) },
	{ ISA_v_dot4_f32_bf8_fp8, ONE(dot4_f32_bf8_fp8) },
	{ ISA_v_dot4_f32_bf8_bf8, ONE(dot4_f32_bf8_bf8) },
};

static int part_of(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_v_cvt_pk_fp8_f32:
	case ISA_v_cvt_pk_bf8_f32:
		return in->f[ISA_F_OPSEL] >> 3 & 1;
	}
	return isa_inst_byte_sel(in) < 0 ? 0 : isa_inst_byte_sel(in);
}

soft_handler *soft_float8_handler(const struct isa_inst *in, const void **op)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].op == in->op) {
			*op = &rows[i].row[part_of(in)];
			return soft_valu_run;
		}
	return NULL;
}
