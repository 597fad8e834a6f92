/*
 * compiler/select_float.c - float operations of several instructions, and
 * conversions.
 */
#include "compiler/select.h"

static struct mir_opnd imm_f32(float v)
{
	union {
		float f;
		uint32_t u;
	} x = { v };

	return mir_imm(x.u);
}

/* ----------------------------------------------------------- sign bits ---- */

static uint32_t sign_of(uint8_t kind)
{
	return kind == SSA_F16 || kind == SSA_BF16 ? 0x8000 : 0x80000000;
}

static void change_sign(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), a = sel_get_v(s, i->arg[0]);
	uint32_t sign = sign_of(i->type.kind);
	int top = d.n - 1;

	if (top)
		sel_copy(s, mir_part(d, 0, 1), mir_part(a, 0, 1));
	if (i->op == SSA_fneg)
		sel_v(s, ISA_v_xor_b32, mir_part(d, top, 1), mir_imm(sign),
		      mir_part(a, top, 1));
	else
		sel_v(s, ISA_v_and_b32, mir_part(d, top, 1), mir_imm(sign - 1),
		      mir_part(a, top, 1));
}

static void copy_sign(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), a = sel_get_v(s, i->arg[0]);
	struct mir_opnd b = sel_get_v(s, i->arg[1]);
	int top = d.n - 1;

	if (top)
		sel_copy(s, mir_part(d, 0, 1), mir_part(a, 0, 1));
	sel_v(s, ISA_v_bfi_b32, mir_part(d, top, 1),
	      mir_imm(sign_of(i->type.kind) - 1), mir_part(a, top, 1),
	      mir_part(b, top, 1));
}

/* --------------------------------------------------- transcendentals, f32 ----
 */

/*
 * The hardware flushes denormals in these: arguments that would be one, or
 * whose result would be, are scaled and the result is scaled back.
 */
static struct mir_opnd pick(struct sel *s, struct mir_opnd c, struct mir_opnd a,
			    struct mir_opnd b)
{
	struct mir_opnd d = sel_new_v(s, 1);

	sel_v(s, ISA_v_cndmask_b32, d, b, a, c);
	return d;
}

static struct mir_opnd below(struct sel *s, struct mir_opnd x, float limit)
{
	struct mir_opnd c = sel_new_mask(s);

	s->m->vreg[c.reg].vcc = true;
	sel_v(s, ISA_v_cmp_gt_f32, c, imm_f32(limit), x);
	return c;
}

static void exp2_f32(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), x = sel_get_f(s, i->arg[0]);
	struct mir_opnd c, y = sel_new_v(s, 1), r = sel_new_v(s, 1);

	if (i->flags & SSA_FAST) {
		sel_v(s, ISA_v_exp_f32, d, x);
		return;
	}
	c = below(s, x, -126.0f);
	sel_v(s, ISA_v_add_f32, y, x, pick(s, c, imm_f32(64), mir_imm(0)));
	sel_v(s, ISA_v_exp_f32, r, y);
	sel_v(s, ISA_v_mul_f32, d, r,
	      pick(s, c, imm_f32(0x1p-64f), imm_f32(1)));
}

static void log2_f32(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), x = sel_get_f(s, i->arg[0]);
	struct mir_opnd c, y = sel_new_v(s, 1), r = sel_new_v(s, 1);

	if (i->flags & SSA_FAST) {
		sel_v(s, ISA_v_log_f32, d, x);
		return;
	}
	c = below(s, x, 0x1p-126f);
	sel_v(s, ISA_v_mul_f32, y, x,
	      pick(s, c, imm_f32(0x1p32f), imm_f32(1)));
	sel_v(s, ISA_v_log_f32, r, y);
	sel_v(s, ISA_v_sub_f32, d, r, pick(s, c, imm_f32(32), mir_imm(0)));
}

static void rsq_f32(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), x = sel_get_f(s, i->arg[0]);
	struct mir_opnd c, y = sel_new_v(s, 1), r = sel_new_v(s, 1);

	if (i->flags & SSA_FAST) {
		sel_v(s, ISA_v_rsq_f32, d, x);
		return;
	}
	c = below(s, x, 0x1p-100f);
	sel_v(s, ISA_v_mul_f32, y, x,
	      pick(s, c, imm_f32(0x1p24f), imm_f32(1)));
	sel_v(s, ISA_v_rsq_f32, r, y);
	sel_v(s, ISA_v_mul_f32, d, r, pick(s, c, imm_f32(0x1p12f), imm_f32(1)));
}

static void rcp_f32(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), x = sel_get_f(s, i->arg[0]);
	struct mir_opnd f, e, r, n;

	if (i->flags & SSA_FAST) {
		sel_v(s, ISA_v_rcp_f32, d, x);
		return;
	}
	f = sel_new_v(s, 1);
	e = sel_new_v(s, 1);
	r = sel_new_v(s, 1);
	n = sel_new_v(s, 1);
	sel_v(s, ISA_v_frexp_mant_f32, f, x);
	sel_v(s, ISA_v_frexp_exp_i32_f32, e, x);
	sel_v(s, ISA_v_rcp_f32, r, f);
	sel_v(s, ISA_v_sub_nc_u32, n, mir_imm(0), e);
	sel_v(s, ISA_v_ldexp_f32, d, r, n);
}

/* -------------------------------------------------------- conversions ---- */

static struct mir_opnd bf16_to_f32(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd d = sel_new_v(s, 1);

	sel_v(s, ISA_v_lshlrev_b32, d, mir_imm(16), a);
	return d;
}

/* Nearest even on the upper half; NaN stays one. */
static void f32_to_bf16(struct sel *s, struct mir_opnd d, struct mir_opnd a)
{
	struct mir_opnd odd = sel_new_v(s, 1), sum = sel_new_v(s, 1);
	struct mir_opnd nan = sel_new_v(s, 1), c = sel_new_mask(s);
	struct mir_opnd r = sel_new_v(s, 1);

	a = sel_to_v(s, a);
	s->m->vreg[c.reg].vcc = true;
	sel_v(s, ISA_v_bfe_u32, odd, a, mir_imm(16), mir_imm(1));
	sel_v(s, ISA_v_add3_u32, sum, a, odd, mir_imm(0x7fff));
	sel_v(s, ISA_v_or_b32, nan, mir_imm(0x400000), a);
	sel_v(s, ISA_v_cmp_u_f32, c, a, a);
	sel_v(s, ISA_v_cndmask_b32, r, sum, nan, c);
	sel_v(s, ISA_v_lshrrev_b32, d, mir_imm(16), r);
}

/*
 * f64 to f32 rounded to odd: what was cut off shows in the last bit, so that
 * the next rounding, to fewer bits, comes out right.
 */
static struct mir_opnd f64_to_odd(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd t = sel_new_v(s, 1), back = sel_new_v(s, 2);
	struct mir_opnd more = sel_new_mask(s), ne = sel_new_mask(s);
	struct mir_opnd down = sel_new_v(s, 1), odd = sel_new_v(s, 1), r;
	struct mir_opnd abs_back = back, abs_a = a;

	sel_v(s, ISA_v_cvt_f32_f64, t, a);
	sel_v(s, ISA_v_cvt_f64_f32, back, t);
	abs_back.mods = abs_a.mods = ISA_M_ABS;
	sel_v(s, ISA_v_cmp_gt_f64, more, abs_back, abs_a);
	sel_v(s, ISA_v_cmp_lg_f64, ne, back, a);
	sel_v(s, ISA_v_add_nc_u32, down, mir_imm(UINT32_MAX), t);
	r = pick(s, more, down, t);
	sel_v(s, ISA_v_or_b32, odd, mir_imm(1), r);
	return pick(s, ne, odd, r);
}

static struct mir_opnd to_f32(struct sel *s, const struct ssa_inst *v)
{
	struct mir_opnd d;

	switch (v->type.kind) {
	case SSA_F32:
		return sel_get_f(s, v);
	case SSA_BF16:
		return bf16_to_f32(s, sel_get(s, v));
	}
	d = sel_new_v(s, 1);
	sel_v(s, ISA_v_cvt_f32_f16, d, sel_get_f(s, v));
	return d;
}

static void from_f32(struct sel *s, uint8_t kind, struct mir_opnd d,
		     struct mir_opnd a)
{
	if (kind == SSA_F16)
		sel_v(s, ISA_v_cvt_f16_f32, d, a);
	else if (kind == SSA_BF16)
		f32_to_bf16(s, d, a);
	else if (kind == SSA_F64)
		sel_v(s, ISA_v_cvt_f64_f32, d, a);
	else
		sel_copy(s, d, a);
}

static struct mir_opnd drop_mods(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd d;

	if (!a.mods)
		return a;
	d = sel_new_v(s, 1);
	sel_v(s, ISA_v_add_f32, d, a, mir_imm(0x80000000));
	return d;
}

void sel_fcvt(struct sel *s, const struct ssa_inst *i)
{
	uint8_t from = i->arg[0]->type.kind, to = i->type.kind;
	struct mir_opnd d = sel_def(s, i);

	if (i->type.n != 1) {
		sel_refuse(s, i, "conversions are for scalars");
		return;
	}
	if (from == to) {
		sel_copy(s, d, sel_get(s, i->arg[0]));
	} else if (from == SSA_F64) {
		struct mir_opnd a = sel_get_v(s, i->arg[0]);

		if (to == SSA_F32)
			sel_v(s, ISA_v_cvt_f32_f64, d, a);
		else
			from_f32(s, to, d, f64_to_odd(s, a));
	} else if (to == SSA_BF16 && from == SSA_F32) {
		from_f32(s, to, d, sel_get(s, i->arg[0]));
	} else if (to == SSA_F32) {
		struct mir_opnd a = to_f32(s, i->arg[0]);

		sel_copy(s, d, drop_mods(s, a));
	} else {
		from_f32(s, to, d, to_f32(s, i->arg[0]));
	}
}

/* ----------------------------------------------------- from integers ---- */

/* Exactly, from 32 bits. */
static struct mir_opnd word_to_f64(struct sel *s, struct mir_opnd a, bool sign)
{
	struct mir_opnd d = sel_new_v(s, 2);

	sel_v(s, sign ? ISA_v_cvt_f64_i32 : ISA_v_cvt_f64_u32, d, a);
	return d;
}

/* Upper half times 2^32 plus the lower: rounded once. */
static void long_to_f64(struct sel *s, struct mir_opnd d, struct mir_opnd a,
			bool sign)
{
	struct mir_opnd hi = word_to_f64(s, sel_hi(a), sign);
	struct mir_opnd lo = word_to_f64(s, sel_lo(a), false);
	struct mir_opnd t = sel_new_v(s, 2);

	sel_v(s, ISA_v_ldexp_f64, t, hi, mir_imm(32));
	sel_v(s, ISA_v_add_f64, d, t, lo);
}

static struct mir_opnd abs64(struct sel *s, struct mir_opnd a,
			     struct mir_opnd *sign)
{
	struct mir_opnd x = sel_new_v(s, 2), d = sel_new_v(s, 2);
	struct mir_opnd m = sel_new_v(s, 2);

	*sign = sel_new_v(s, 1);
	sel_v(s, ISA_v_ashrrev_i32, *sign, mir_imm(31), sel_hi(a));
	sel_copy(s, mir_part(m, 0, 1), *sign);
	sel_copy(s, mir_part(m, 1, 1), *sign);
	sel_add64(s, x, a, m);
	for (int k = 0; k < 2; k++)
		sel_v(s, ISA_v_xor_b32, mir_part(d, k, 1), mir_part(x, k, 1),
		      *sign);
	return d;
}

/* The leading 32 bits, with what is below in the last one. */
static void long_to_f32(struct sel *s, struct mir_opnd d, struct mir_opnd a,
			bool sign)
{
	struct mir_opnd neg = { 0 }, z = sel_new_v(s, 1), zc = sel_new_v(s, 1);
	struct mir_opnd n = sel_new_v(s, 2), low = sel_new_v(s, 1);
	struct mir_opnd top = sel_new_v(s, 1), f = sel_new_v(s, 1);
	struct mir_opnd e = sel_new_v(s, 1), r = sel_new_v(s, 1);

	a = sel_to_v(s, a);
	if (sign)
		a = abs64(s, a, &neg);
	/* clz gives -1 for 0: 32 leading zeros and more end in the low half. */
	sel_v(s, ISA_v_clz_i32_u32, z, sel_hi(a));
	sel_v(s, ISA_v_min_u32, zc, mir_imm(32), z);
	sel_v(s, ISA_v_lshlrev_b64, n, zc, a);
	sel_v(s, ISA_v_min_u32, low, mir_imm(1), mir_part(n, 0, 1));
	sel_v(s, ISA_v_or_b32, top, low, mir_part(n, 1, 1));
	sel_v(s, ISA_v_cvt_f32_u32, f, top);
	sel_v(s, ISA_v_sub_nc_u32, e, mir_imm(32), zc);
	sel_v(s, ISA_v_ldexp_f32, sign ? r : d, f, e);
	if (sign)
		sel_v(s, ISA_v_bfi_b32, d, mir_imm(0x7fffffff), r, neg);
}

static void int_to_float(struct sel *s, const struct ssa_inst *i)
{
	bool sign = i->op == SSA_fcvt_from_s;
	bool wide = sel_dwords(s, i->arg[0]->type) == 2;
	struct mir_opnd a = sel_ext(s, i->arg[0], sign), d = sel_def(s, i), t;
	uint8_t to = i->type.kind;

	if (i->arg[0]->type.kind == SSA_I1) {
		sel_refuse(s, i, "extend i1 to i32 first");
		return;
	}
	if (wide && to == SSA_F64) {
		long_to_f64(s, d, sel_to_v(s, a), sign);
	} else if (wide) {
		/* 16 bits are rounded once more than needed, as f32 then
		 * holds every value that they can tell apart up to 2^24;
		 * above, both round to nearest of nearest. */
		if (to == SSA_F32) {
			long_to_f32(s, d, a, sign);
			return;
		}
		sel_refuse(s, i, "i64 converts to f32 and f64");
	} else if (to == SSA_F64) {
		sel_copy(s, d, word_to_f64(s, a, sign));
	} else if (to == SSA_BF16) {
		t = f64_to_odd(s, word_to_f64(s, a, sign));
		from_f32(s, to, d, t);
	} else {
		t = to == SSA_F32 ? d : sel_new_v(s, 1);
		sel_v(s, sign ? ISA_v_cvt_f32_i32 : ISA_v_cvt_f32_u32, t, a);
		if (to == SSA_F16)
			from_f32(s, to, d, t);
	}
}

/* ------------------------------------------------------- to integers ---- */

static void clamp_small(struct sel *s, const struct ssa_inst *i,
			struct mir_opnd t)
{
	uint32_t bits = ssa_kind_bits(i->type.kind);
	struct mir_opnd d = sel_def(s, i), lo = sel_new_v(s, 1);

	if (i->op == SSA_fcvt_to_u) {
		sel_v(s, ISA_v_min_u32, d, mir_imm((1u << bits) - 1), t);
		return;
	}
	sel_v(s, ISA_v_min_i32, lo, mir_imm((1u << (bits - 1)) - 1), t);
	sel_v(s, ISA_v_max_i32, d, mir_imm(0u - (1u << (bits - 1))), lo);
}

static struct mir_opnd f64_const(struct sel *s, double v)
{
	union {
		double f;
		uint64_t u;
	} x = { v };
	struct mir_opnd d = sel_new_s(s, 2);

	sel_raw(s, MIR_COPY, mir_part(d, 0, 1), mir_imm((uint32_t)x.u));
	sel_raw(s, MIR_COPY, mir_part(d, 1, 1), mir_imm((uint32_t)(x.u >> 32)));
	return d;
}

/* In two halves; beyond the range the lower half is all ones or zeros. */
static void float_to_long(struct sel *s, const struct ssa_inst *i,
			  struct mir_opnd a)
{
	bool sign = i->op == SSA_fcvt_to_s;
	struct mir_opnd d = sel_def(s, i), t = sel_new_v(s, 2);
	struct mir_opnd sc = sel_new_v(s, 2), hi = sel_new_v(s, 2);
	struct mir_opnd lo = sel_new_v(s, 2), l = sel_new_v(s, 1);
	struct mir_opnd big = sel_new_mask(s), small = sel_new_mask(s), x;

	sel_v(s, ISA_v_trunc_f64, t, a);
	sel_v(s, ISA_v_ldexp_f64, sc, t, mir_imm((uint32_t)-32));
	sel_v(s, ISA_v_floor_f64, hi, sc);
	sel_v(s, ISA_v_fma_f64, lo, f64_const(s, -4294967296.0), hi, t);
	sel_v(s, ISA_v_cvt_u32_f64, l, lo);
	sel_v(s, sign ? ISA_v_cvt_i32_f64 : ISA_v_cvt_u32_f64,
	      mir_part(d, 1, 1), hi);
	sel_v(s, ISA_v_cmp_ge_f64, big, t,
	      f64_const(s, sign ? 0x1p63 : 0x1p64));
	sel_v(s, ISA_v_cmp_lt_f64, small, t,
	      f64_const(s, sign ? -0x1p63 : 0.0));
	x = pick(s, big, mir_imm(UINT32_MAX), l);
	sel_v(s, ISA_v_cndmask_b32, mir_part(d, 0, 1), x, mir_imm(0), small);
}

static void float_to_int(struct sel *s, const struct ssa_inst *i)
{
	bool sign = i->op == SSA_fcvt_to_s;
	uint8_t from = i->arg[0]->type.kind;
	bool wide = sel_dwords(s, i->type) == 2;
	struct mir_opnd a, t;

	if (from == SSA_F64) {
		a = sel_get_v(s, i->arg[0]);
	} else {
		a = to_f32(s, i->arg[0]);
		if (wide) {
			t = sel_new_v(s, 2);
			sel_v(s, ISA_v_cvt_f64_f32, t, a);
			a = t;
		}
	}
	if (wide) {
		float_to_long(s, i, a);
		return;
	}
	t = ssa_kind_bits(i->type.kind) < 32 ? sel_new_v(s, 1) : sel_def(s, i);
	if (from == SSA_F64)
		sel_v(s, sign ? ISA_v_cvt_i32_f64 : ISA_v_cvt_u32_f64, t, a);
	else
		sel_v(s, sign ? ISA_v_cvt_i32_f32 : ISA_v_cvt_u32_f32, t, a);
	if (ssa_kind_bits(i->type.kind) < 32)
		clamp_small(s, i, t);
}

void sel_fcvt_int(struct sel *s, const struct ssa_inst *i)
{
	if (i->op == SSA_fcvt_from_s || i->op == SSA_fcvt_from_u)
		int_to_float(s, i);
	else
		float_to_int(s, i);
}

/* ------------------------------------------------------------ the rest ---- */

/* f64 has no subtraction, but signs of sources are free. */
static void sub_f64(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd b = sel_get_v(s, i->arg[1]);

	b.mods = ISA_M_NEG;
	sel_v(s, ISA_v_add_f64, sel_def(s, i), sel_get_v(s, i->arg[0]), b);
}

static bool unary_f32(struct sel *s, const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_frcp:
		rcp_f32(s, i);
		return true;
	case SSA_frsqrt:
		rsq_f32(s, i);
		return true;
	case SSA_fexp2:
		exp2_f32(s, i);
		return true;
	case SSA_flog2:
		log2_f32(s, i);
		return true;
	}
	return false;
}

bool sel_float(struct sel *s, const struct ssa_inst *i)
{
	if (i->type.n != 1)
		return false;
	switch (i->op) {
	case SSA_fneg:
	case SSA_fabs:
		change_sign(s, i);
		return true;
	case SSA_copysign:
		copy_sign(s, i);
		return true;
	case SSA_fdiv:
		sel_fdiv(s, i);
		return true;
	case SSA_fsqrt:
		sel_fsqrt(s, i);
		return true;
	case SSA_fsub:
		if (i->type.kind != SSA_F64)
			return false;
		sub_f64(s, i);
		return true;
	}
	if (i->type.kind == SSA_F64 &&
	    (i->op == SSA_frcp || i->op == SSA_frsqrt)) {
		sel_fdiv(s, i);
		return true;
	}
	return i->type.kind == SSA_F32 && unary_f32(s, i);
}
