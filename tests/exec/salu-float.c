/*
 * Scalar instructions on floats (RDNA3.5) against C's own arithmetic, on special
 * and random values, in all rounding modes, with denormals and without.
 */
#include <fenv.h>
#include <math.h>

#include "tests/exec/every.h"

enum { S_A = 8, S_B = 12, S_D = 16, LITERAL = 255, TRIES = 400 };

typedef __float128 wide; /* products and sums of what is narrower are exact */

static float f(uint32_t u)
{
	float v;

	memcpy(&v, &u, 4);
	return v;
}

static uint32_t bits(float v)
{
	uint32_t u;

	memcpy(&u, &v, 4);
	return u;
}

static _Float16 h(uint32_t u)
{
	const uint16_t s = (uint16_t)u;
	_Float16 v;

	memcpy(&v, &s, 2);
	return v;
}

static uint32_t hbits(_Float16 v)
{
	uint16_t u;

	memcpy(&u, &v, 2);
	return u;
}

/* To a half, as MODE rounds those: even only. */
static uint32_t to_half(wide v)
{
	return hbits((_Float16)v);
}

static uint32_t less(float a, float b, bool most)
{
	if (isnan(a) || isnan(b))
		return bits(isnan(a) ? b : a);
	if (a == b)
		return bits(!signbit(a) == most ? a : b);
	return bits((a < b) != most ? a : b);
}

static uint32_t to_int(float a, bool has_sign)
{
	const double v = trunc((double)a);

	if (isnan(a))
		return 0;
	if (has_sign)
		return v < -0x1p31 ? 0x80000000 : v >= 0x1p31 ? 0x7fffffff :
						   (uint32_t)(int32_t)v;
	return v < 0 ? 0 : v >= 0x1p32 ? UINT32_MAX : (uint32_t)v;
}

/* Towards zero, whatever MODE says. */
static uint32_t to_half_rtz(float v)
{
	_Float16 r = (_Float16)v;

	if (fabsf((float)r) > fabsf(v)) /* one nearer to zero, from infinity, too */
		return hbits(r) - 1;
	return hbits(r);
}

/* [scalar instruction] of sources a, b, and of c: the old d, or the literal. */
#define ROWS                                                                   \
	R(s_add_f32, 'f', bits(f(a) + f(b)))                                   \
	R(s_sub_f32, 'f', bits(f(a) - f(b)))                                   \
	R(s_mul_f32, 'f', bits(f(a) * f(b)))                                   \
	R(s_min_f32, 'f', less(f(a), f(b), false))                             \
	R(s_max_f32, 'f', less(f(a), f(b), true))                              \
	R(s_fmac_f32, 'f', bits(fmaf(f(a), f(b), f(c))))                       \
	R(s_fmaak_f32, 'f', bits(fmaf(f(a), f(b), f(c))))                      \
	R(s_fmamk_f32, 'f', bits(fmaf(f(a), f(c), f(b))))                      \
	R(s_ceil_f32, 'e', bits(ceilf(f(a))))                                  \
	R(s_floor_f32, 'e', bits(floorf(f(a))))                                \
	R(s_trunc_f32, 'e', bits(truncf(f(a))))                                \
	R(s_rndne_f32, 'e', bits(rintf(f(a))))                                 \
	R(s_cvt_f32_i32, 'f', bits((float)(int32_t)a))                         \
	R(s_cvt_f32_u32, 'f', bits((float)a))                                  \
	R(s_cvt_i32_f32, 'i', to_int(f(a), true))                              \
	R(s_cvt_u32_f32, 'i', to_int(f(a), false))                             \
	R(s_cvt_f16_f32, 'h', to_half(f(a)))                                   \
	R(s_cvt_f32_f16, 'f', bits((float)h(a)))                               \
	R(s_cvt_hi_f32_f16, 'f', bits((float)h(a >> 16)))                      \
	R(s_cvt_pk_rtz_f16_f32, 'p', to_half_rtz(f(a)) | to_half_rtz(f(b)) << 16) \
	R(s_add_f16, 'h', to_half((wide)h(a) + h(b)))                          \
	R(s_sub_f16, 'h', to_half((wide)h(a) - h(b)))                          \
	R(s_mul_f16, 'h', to_half((wide)h(a) * h(b)))                          \
	R(s_min_f16, 'h', to_half(f(less(h(a), h(b), false))))                 \
	R(s_max_f16, 'h', to_half(f(less(h(a), h(b), true))))                  \
	R(s_fmac_f16, 'h', to_half((wide)h(a) * h(b) + h(c)))                  \
	R(s_ceil_f16, 'h', to_half(ceilf(h(a))))                               \
	R(s_floor_f16, 'h', to_half(floorf(h(a))))                             \
	R(s_trunc_f16, 'h', to_half(truncf(h(a))))                             \
	R(s_rndne_f16, 'h', to_half(rintf(h(a))))                              \
	COMPARES(f32, f) COMPARES(f16, h)
#define COMPARES(type, v)                                                      \
	R(s_cmp_lt_##type, 'c', v(a) < v(b))                                   \
	R(s_cmp_eq_##type, 'c', v(a) == v(b))                                  \
	R(s_cmp_le_##type, 'c', v(a) <= v(b))                                  \
	R(s_cmp_gt_##type, 'c', v(a) > v(b))                                   \
	R(s_cmp_lg_##type, 'c', v(a) < v(b) || v(a) > v(b))                    \
	R(s_cmp_ge_##type, 'c', v(a) >= v(b))                                  \
	R(s_cmp_o_##type, 'c', !isnan((float)v(a)) && !isnan((float)v(b)))     \
	R(s_cmp_u_##type, 'c', isnan((float)v(a)) || isnan((float)v(b)))       \
	R(s_cmp_nge_##type, 'c', !(v(a) >= v(b)))                              \
	R(s_cmp_nlg_##type, 'c', !(v(a) < v(b) || v(a) > v(b)))                \
	R(s_cmp_ngt_##type, 'c', !(v(a) > v(b)))                               \
	R(s_cmp_nle_##type, 'c', !(v(a) <= v(b)))                              \
	R(s_cmp_neq_##type, 'c', !(v(a) == v(b)))                              \
	R(s_cmp_nlt_##type, 'c', !(v(a) < v(b)))

/*
 * What a row gives: f, a float; e, one that MODE does not round; h, a half, zeros
 * above; p, two; i, an integer; c, SCC.
 */
static const struct row {
	enum isa_op op;
	char gives;
} rows[] = {
#define R(name, gives, expr) { ISA_##name, gives },
	ROWS
#undef R
};

static uint32_t compute(enum isa_op op, uint32_t a, uint32_t b, uint32_t c)
{
	switch (op) {
#define R(name, gives, expr)  \
	case ISA_##name:      \
		return (expr);
		ROWS
#undef R
	default:
		return 0;
	}
}

static int encode(enum isa_op op, struct isa_inst *in, uint32_t literal,
		  uint8_t *code)
{
	static const struct isa_target target = { ISA_GFX11_5, 64, false };
	struct isa_inst made = { 0 };
	int size;

	made.op = (uint16_t)op;
	made.fmt = isa_op_info(op)->fmt;
	made.f[ISA_F_OP] = (uint32_t)isa_op_info(op)->opcode[ISA_GFX11_5];
	made.f[ISA_F_SSRC0] = S_A;
	if (isa_fmt_has(made.fmt, ISA_F_SSRC1))
		made.f[ISA_F_SSRC1] = S_B;
	if (isa_fmt_has(made.fmt, ISA_F_SDST))
		made.f[ISA_F_SDST] = S_D;
	size = isa_encode(&made, code);
	if (op == ISA_s_fmaak_f32 || op == ISA_s_fmamk_f32) {
		memcpy(code + size, &literal, size == 4 ? 4 : 0);
		size = 8;
	}
	return size && !isa_decode(&target, code, (size_t)size, in) ? size : 0;
}

static bool is_nan(uint32_t u, bool half)
{
	return half ? (u & 0x7fff) > 0x7c00 : (u & 0x7fffffff) > 0x7f800000;
}

static uint32_t flush(uint32_t u)
{
	return u & 0x7f800000 ? u : u & 0x80000000;
}

static bool is_row_f32(enum isa_op op)
{
	const char *name = isa_op_info(op)->name;

	return !strcmp(name + strlen(name) - 4, "_f32") &&
	       strcmp(name, "s_cvt_f16_f32");
}

static uint32_t draw(void)
{
	uint32_t u = chance(30) ? (uint32_t)special(32) :
		     chance(40) ? bits((float)((int)(rnd() % 4000) - 2000) / 64) :
				  (uint32_t)rnd();

	if (chance(40)) /* halves */
		u = (u & 0xffff0000) | (chance(50) ? (uint32_t)special(16) :
						     (uint32_t)rnd() & 0xffff);
	/* Signalling ones are another matter (MODE.IEEE). */
	if (is_nan(u & 0xffff, true))
		u |= 1u << 9;
	if (is_nan(u >> 16, true))
		u |= 1u << 25;
	if (is_nan(u, false))
		u |= 1u << 22;
	return u;
}

/* MODE: rounding of f32 in 1:0, its denormals in 5:4; halves as usual. */
static void test_row(struct lanes *t, const struct row *r, unsigned round,
		     bool denormals)
{
	static const int host[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
				    FE_TOWARDZERO };
	static struct state old, got;
	static const struct isa_inst none;
	uint8_t code[2 * ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	int bad = 0;

	t->w.mode = (t->w.mode & ~0xffu) | 0xc0 | round |
		    (denormals ? 0x30 : 0);
	for (int i = 0; i < TRIES && !bad; i++) {
		uint32_t a = draw(), b = draw(), c = draw(), want, is;
		const int size = encode(r->op, &in, c, code);

		bad += !size;
		load(t, code, size);
		fill_state(&old, &none, 64);
		old.s[S_A] = a;
		old.s[S_B] = b;
		old.s[S_D] = c;
		bad += !go(t, &old, 1, &got);
		if (!denormals && is_row_f32(r->op) &&
		    strncmp(isa_op_info(r->op)->name, "s_cvt_f32", 9) &&
		    r->op != ISA_s_cvt_hi_f32_f16)
			a = flush(a), b = flush(b), c = flush(c);
		fesetround(r->gives == 'f' ? host[round] : FE_TONEAREST);
		want = compute(r->op, a, b, c);
		fesetround(FE_TONEAREST);
		if (!denormals && r->gives == 'f')
			want = flush(want);
		is = r->gives == 'c' ? got.scc : got.s[S_D];
		if (strchr("fe", r->gives) && is_nan(want, false))
			bad += !is_nan(is, false);
		else if (r->gives == 'h' && is_nan(want, true))
			bad += !is_nan(is & 0xffff, true) || is >> 16;
		else
			bad += is != want;
		bad += r->gives != 'c' && got.scc != old.scc;
		if (bad)
			diag("%s %08x %08x %08x: got %08x, wanted %08x",
			     isa_op_info(r->op)->name, a, b, c, is, want);
	}
	is_i64(bad, 0, "%s, rounding mode %u%s", isa_op_info(r->op)->name, round,
	       denormals ? "" : ", without denormals");
}

int main(void)
{
	struct lanes *t = lanes_new(64);
	int n = 0;

	diag("seed 0x%llx", (unsigned long long)seed);
	t->env.gen = ISA_GFX11_5;
	t->w.n_vgprs = REGS;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (unsigned round = 0; round < 4; round++)
			for (int denormals = 0; denormals < 2; denormals++)
				test_row(t, &rows[i], round, denormals);
	/* All that gfx1100 lacks, but one hint, have a row. */
	for (int i = 1; i < ISA_OP_COUNT; i++) {
		const int16_t *opcode = isa_op_info((enum isa_op)i)->opcode;

		n += opcode[ISA_GFX11_5] >= 0 && opcode[ISA_GFX11] < 0;
	}
	is_i64(n, (int)ARRAY_SIZE(rows) + 1, "and nothing is left out");
	lanes_free(t);
	return plan_done();
}
