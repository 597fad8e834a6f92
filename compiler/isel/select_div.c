/*
 * compiler/isel/select_div.c - division and square root.
 *
 * Integers: an estimate of 2^32 / d by v_rcp_f32, one step of Newton's method
 * in integers, and at most two corrections of the quotient.  64 bits: the same
 * in f32 estimates would need many more; a quotient digit at a time is used
 * where one of the halves is not zero (SRT with 32-bit digits), see
 * emit_div64().  Floats: the hardware's scaled sequence (RDNA3 ISA 16,
 * V_DIV_SCALE_F32), which is correctly rounded with denormals on.
 */
#include "compiler/isel/select.h"

/* ------------------------------------------------------------- 32 bits ---- */

struct quotient {
	struct mir_opnd q, r;
};

static struct mir_opnd ge_u32(struct sel *s, struct mir_opnd a,
			      struct mir_opnd b)
{
	struct mir_opnd c = sel_new_mask(s);

	s->m->vreg[c.reg].vcc = true;
	sel_v(s, ISA_v_cmp_ge_u32, c, a, b);
	return c;
}

/* If r >= d: q + 1, r - d. */
static void correct_quotient(struct sel *s, struct quotient *x,
			     struct mir_opnd d)
{
	struct mir_opnd c = ge_u32(s, x->r, d);
	struct mir_opnd q = sel_v1(s, ISA_v_add_nc_u32, mir_imm(1), x->q);
	struct mir_opnd r = sel_v1(s, ISA_v_sub_nc_u32, x->r, d);

	x->q = sel_v1(s, ISA_v_cndmask_b32, x->q, q, c);
	x->r = sel_v1(s, ISA_v_cndmask_b32, x->r, r, c);
}

/* 2^32 / d, a little less, so that the estimate never is too large. */
static struct mir_opnd recip_u32(struct sel *s, struct mir_opnd d)
{
	struct mir_opnd f = sel_v1(s, ISA_v_cvt_f32_u32, d);

	f = sel_v1(s, ISA_v_rcp_iflag_f32, f);
	f = sel_v1(s, ISA_v_mul_f32, mir_imm(0x4f7ffffe), f);
	return sel_v1(s, ISA_v_cvt_u32_f32, f);
}

static struct quotient div_u32(struct sel *s, struct mir_opnd n,
			       struct mir_opnd d)
{
	struct mir_opnd z = recip_u32(s, d), y, p;
	struct quotient x;

	y = sel_v1(s, ISA_v_sub_nc_u32, mir_imm(0), d);
	y = sel_v1(s, ISA_v_mul_lo_u32, y, z);
	y = sel_v1(s, ISA_v_mul_hi_u32, z, y);
	y = sel_v1(s, ISA_v_add_nc_u32, z, y);
	x.q = sel_v1(s, ISA_v_mul_hi_u32, n, y);
	p = sel_v1(s, ISA_v_mul_lo_u32, x.q, d);
	x.r = sel_v1(s, ISA_v_sub_nc_u32, n, p);
	correct_quotient(s, &x, d);
	correct_quotient(s, &x, d);
	return x;
}

/* By zero: all ones, and the remainder is the dividend. */
static void by_zero(struct sel *s, struct quotient *x, struct mir_opnd n,
		    struct mir_opnd d)
{
	struct mir_opnd c = sel_new_mask(s);

	sel_v(s, ISA_v_cmp_ne_u32, c, mir_imm(0), d);
	x->q = sel_v1(s, ISA_v_cndmask_b32, mir_imm(UINT32_MAX), x->q, c);
	x->r = sel_v1(s, ISA_v_cndmask_b32, n, x->r, c);
}

static bool is_signed(const struct ssa_inst *i)
{
	return i->op == SSA_div_s || i->op == SSA_rem_s;
}

static bool wants_quotient(const struct ssa_inst *i)
{
	return i->op == SSA_div_u || i->op == SSA_div_s;
}

static struct mir_opnd emit_abs(struct sel *s, struct mir_opnd a,
				struct mir_opnd *sign)
{
	*sign = sel_v1(s, ISA_v_ashrrev_i32, mir_imm(31), a);
	return sel_v1(s, ISA_v_xor_b32, sel_v1(s, ISA_v_add_nc_u32, a, *sign),
		      *sign);
}

/* (a ^ sign) - sign */
static struct mir_opnd give_sign(struct sel *s, struct mir_opnd a,
				 struct mir_opnd sign)
{
	return sel_v1(s, ISA_v_sub_nc_u32, sel_v1(s, ISA_v_xor_b32, a, sign),
		      sign);
}

/* ---- the same for all lanes: in the scalar ALU, but for the estimate */

/* compare(a, b) ? *x : y for each of the pairs. */
static void scalar_choose(struct sel *s, int compare, struct mir_opnd a,
			  struct mir_opnd b, struct quotient *x,
			  struct quotient y)
{
	struct quotient d = { sel_new_s(s, 1), sel_new_s(s, 1) };

	sel_s(s, compare, a, b);
	s->glue = true;
	sel_s(s, ISA_s_cselect_b32, d.q, x->q, y.q);
	sel_s(s, ISA_s_cselect_b32, d.r, x->r, y.r);
	s->glue = false;
	*x = d;
}

static void scalar_correct(struct sel *s, struct quotient *x,
			   struct mir_opnd d)
{
	struct quotient y = {
		sel_s1(s, ISA_s_add_i32, x->q, mir_imm(1)),
		sel_s1(s, ISA_s_sub_i32, x->r, d),
	};

	scalar_choose(s, ISA_s_cmp_lt_u32, x->r, d, x, y);
}

static struct quotient scalar_div_u32(struct sel *s, struct mir_opnd n,
				      struct mir_opnd d)
{
	struct mir_opnd z = recip_u32(s, d), y = sel_new_s(s, 1), e;
	struct quotient x;

	sel_raw(s, ISA_v_readfirstlane_b32, y, z);
	e = sel_s1(s, ISA_s_sub_i32, mir_imm(0), d);
	e = sel_s1(s, ISA_s_mul_i32, e, y);
	e = sel_s1(s, ISA_s_mul_hi_u32, y, e);
	y = sel_s1(s, ISA_s_add_i32, y, e);
	x.q = sel_s1(s, ISA_s_mul_hi_u32, n, y);
	e = sel_s1(s, ISA_s_mul_i32, x.q, d);
	x.r = sel_s1(s, ISA_s_sub_i32, n, e);
	scalar_correct(s, &x, d);
	scalar_correct(s, &x, d);
	return x;
}

static struct mir_opnd scalar_sign(struct sel *s, struct mir_opnd a,
				   struct mir_opnd sign)
{
	return sel_s1(s, ISA_s_sub_i32, sel_s1(s, ISA_s_xor_b32, a, sign),
		      sign);
}

static void scalar_div32(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd n = sel_to_s(s, sel_ext(s, i->arg[0], is_signed(i)));
	struct mir_opnd d = sel_to_s(s, sel_ext(s, i->arg[1], is_signed(i)));
	struct mir_opnd sn = { 0 }, sq = { 0 }, n0 = n, d0 = d;
	struct quotient x;

	if (is_signed(i)) {
		sn = sel_s1(s, ISA_s_ashr_i32, n, mir_imm(31));
		sq = sel_s1(s, ISA_s_ashr_i32, sel_s1(s, ISA_s_xor_b32, n, d),
			    mir_imm(31));
		n = sel_s1(s, ISA_s_abs_i32, n0);
		d = sel_s1(s, ISA_s_abs_i32, d0);
	}
	x = scalar_div_u32(s, n, d);
	if (is_signed(i)) {
		x.q = scalar_sign(s, x.q, sq);
		x.r = scalar_sign(s, x.r, sn);
	}
	scalar_choose(s, ISA_s_cmp_lg_u32, d0, mir_imm(0), &x,
		      (struct quotient){ mir_imm(UINT32_MAX), n0 });
	sel_copy(s, sel_def(s, i), wants_quotient(i) ? x.q : x.r);
}

static void emit_div32(struct sel *s, const struct ssa_inst *i)
{
	if (s->val[i->id].cls == SEL_S) {
		scalar_div32(s, i);
		return;
	}
	struct mir_opnd n = sel_to_v(s, sel_ext(s, i->arg[0], is_signed(i)));
	struct mir_opnd d = sel_to_v(s, sel_ext(s, i->arg[1], is_signed(i)));
	struct mir_opnd sn = { 0 }, sd, sq = { 0 }, n0 = n, d0 = d, r;
	struct quotient x;
	uint64_t c;

	if (is_signed(i)) {
		n = emit_abs(s, n, &sn);
		d = emit_abs(s, d, &sd);
		sq = sel_v1(s, ISA_v_xor_b32, sn, sd);
	}
	x = div_u32(s, n, d);
	if (is_signed(i)) {
		x.q = give_sign(s, x.q, sq);
		x.r = give_sign(s, x.r, sn);
	}
	if (!sel_const(i->arg[1], &c) || !c)
		by_zero(s, &x, n0, d0);
	r = wants_quotient(i) ? x.q : x.r;
	sel_copy(s, sel_def(s, i), r);
}

/* ------------------------------------------------------------- 64 bits ---- */

static struct mir_opnd new_v2(struct sel *s)
{
	return sel_new_v(s, 2);
}

static void emit_sub64(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		       struct mir_opnd b)
{
	struct mir_opnd c = sel_new_mask(s), c2 = sel_new_mask(s);

	s->m->vreg[c.reg].vcc = s->m->vreg[c2.reg].vcc = true;
	sel_v(s, ISA_v_sub_co_u32, mir_part(d, 0, 1), c, sel_lo(a), sel_lo(b));
	sel_v(s, ISA_v_sub_co_ci_u32, mir_part(d, 1, 1), c2, sel_hi(a),
	      sel_to_v(s, sel_hi(b)), c);
}

static struct mir_opnd emit_zext64(struct sel *s, struct mir_opnd lo)
{
	struct mir_opnd d = new_v2(s);

	sel_copy(s, mir_part(d, 0, 1), lo);
	sel_copy(s, mir_part(d, 1, 1), mir_imm(0));
	return d;
}

/* a b + c of 32, 32 and 64 bits. */
static struct mir_opnd emit_mad64(struct sel *s, struct mir_opnd a,
				  struct mir_opnd b, struct mir_opnd c)
{
	struct mir_opnd d = new_v2(s);

	sel_v(s, ISA_v_mad_u64_u32, d, mir_hw(ISA_R_NULL, s->mask), a, b, c)
		->flags |= MIR_EARLY;
	return d;
}

/* Upper 64 bits of the product of two 64-bit numbers. */
static struct mir_opnd emit_mulhi64(struct sel *s, struct mir_opnd a,
				    struct mir_opnd b)
{
	struct mir_opnd p, q, r;

	p = emit_zext64(s, sel_v1(s, ISA_v_mul_hi_u32, sel_lo(a), sel_lo(b)));
	q = emit_mad64(s, sel_lo(a), sel_hi(b), p);
	r = emit_mad64(s, sel_hi(a), sel_lo(b),
		       emit_zext64(s, mir_part(q, 0, 1)));
	/* hi(a) hi(b) + hi(q) + hi(r) */
	q = emit_zext64(s, mir_part(q, 1, 1));
	r = emit_zext64(s, mir_part(r, 1, 1));
	p = new_v2(s);
	sel_add64(s, p, q, r);
	return emit_mad64(s, sel_hi(a), sel_hi(b), p);
}

static struct mir_opnd emit_mullo64(struct sel *s, struct mir_opnd a,
				    struct mir_opnd b)
{
	struct mir_opnd t = sel_v1(s, ISA_v_mul_lo_u32, sel_lo(a), sel_hi(b));
	struct mir_opnd u = sel_v1(s, ISA_v_mul_lo_u32, sel_hi(a), sel_lo(b));
	struct mir_opnd hi = sel_v1(s, ISA_v_mul_hi_u32, sel_lo(a), sel_lo(b));
	struct mir_opnd d = new_v2(s);

	sel_v(s, ISA_v_mul_lo_u32, mir_part(d, 0, 1), sel_lo(a), sel_lo(b));
	sel_v(s, ISA_v_add3_u32, mir_part(d, 1, 1), hi, t, u);
	return d;
}

static struct mir_opnd emit_select64(struct sel *s, struct mir_opnd c,
				     struct mir_opnd a, struct mir_opnd b)
{
	struct mir_opnd d = new_v2(s);

	sel_cndmask(s, d, c, a, b);
	return d;
}

static struct mir_opnd make_imm64(uint32_t v)
{
	struct mir_opnd o = mir_imm(v);

	o.n = 2;
	return o;
}

static void correct_quotient64(struct sel *s, struct quotient *x,
			       struct mir_opnd d)
{
	struct mir_opnd c = sel_new_mask(s), q = new_v2(s), r = new_v2(s);

	sel_v(s, ISA_v_cmp_ge_u64, c, x->r, d);
	sel_add64(s, q, x->q, make_imm64(1));
	emit_sub64(s, r, x->r, d);
	x->q = emit_select64(s, c, q, x->q);
	x->r = emit_select64(s, c, r, x->r);
}

/*
 * 2^64 / d as a float estimate of about 22 bits (hi and lo words of a scaled
 * v_rcp_f32), doubled in width by two Newton steps: y += mulhi(y, -d y).
 */
static struct mir_opnd emit_recip64(struct sel *s, struct mir_opnd d)
{
	struct mir_opnd fl = sel_v1(s, ISA_v_cvt_f32_u32, sel_lo(d));
	struct mir_opnd fh = sel_v1(s, ISA_v_cvt_f32_u32, sel_hi(d));
	struct mir_opnd a, b, z = new_v2(s), neg = new_v2(s);

	a = sel_v1(s, ISA_v_fma_f32, mir_imm(0x4f800000), fh, fl);
	a = sel_v1(s, ISA_v_rcp_f32, a);
	/* A little below 2^64, as in 32 bits. */
	a = sel_v1(s, ISA_v_mul_f32, mir_imm(0x5f7ffffc), a);
	b = sel_v1(s, ISA_v_mul_f32, mir_imm(0x2f800000), a);
	b = sel_v1(s, ISA_v_trunc_f32, b);
	a = sel_v1(s, ISA_v_fma_f32, mir_imm(0xcf800000), b, a);
	sel_v(s, ISA_v_cvt_u32_f32, mir_part(z, 0, 1), a);
	sel_v(s, ISA_v_cvt_u32_f32, mir_part(z, 1, 1), b);
	emit_sub64(s, neg, make_imm64(0), d);
	for (int k = 0; k < 2; k++) {
		struct mir_opnd r = emit_mullo64(s, neg, z), y = new_v2(s);

		sel_add64(s, y, z, emit_mulhi64(s, z, r));
		z = y;
	}
	return z;
}

static struct quotient div_u64(struct sel *s, struct mir_opnd n,
			       struct mir_opnd d)
{
	struct mir_opnd z = emit_recip64(s, d);
	struct quotient x = { emit_mulhi64(s, n, z), new_v2(s) };

	emit_sub64(s, x.r, n, emit_mullo64(s, x.q, d));
	correct_quotient64(s, &x, d);
	correct_quotient64(s, &x, d);
	return x;
}

static struct mir_opnd fill_sign64(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd t =
		sel_v1(s, ISA_v_ashrrev_i32, mir_imm(31), sel_hi(a));
	struct mir_opnd d = new_v2(s);

	sel_copy(s, mir_part(d, 0, 1), t);
	sel_copy(s, mir_part(d, 1, 1), t);
	return d;
}

static struct mir_opnd emit_xor64(struct sel *s, struct mir_opnd a,
				  struct mir_opnd b)
{
	struct mir_opnd d = new_v2(s);

	for (int k = 0; k < 2; k++)
		sel_v(s, ISA_v_xor_b32, mir_part(d, k, 1), mir_part(a, k, 1),
		      mir_part(b, k, 1));
	return d;
}

static struct mir_opnd give_sign64(struct sel *s, struct mir_opnd a,
				   struct mir_opnd sign)
{
	struct mir_opnd d = new_v2(s);

	emit_sub64(s, d, emit_xor64(s, a, sign), sign);
	return d;
}

static void emit_div64(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd n = sel_get_v(s, i->arg[0]), d, n0 = n, d0;
	struct mir_opnd sn = { 0 }, sd = { 0 }, c = sel_new_mask(s), r;
	struct quotient x;

	d = d0 = sel_get_v(s, i->arg[1]);
	if (is_signed(i)) {
		sn = fill_sign64(s, n);
		sd = fill_sign64(s, d);
		n = give_sign64(s, n, sn);
		d = give_sign64(s, d, sd);
	}
	x = div_u64(s, n, d);
	if (is_signed(i)) {
		x.q = give_sign64(s, x.q, emit_xor64(s, sn, sd));
		x.r = give_sign64(s, x.r, sn);
	}
	sel_v(s, ISA_v_cmp_ne_u64, c, make_imm64(0), d0);
	r = wants_quotient(i) ?
		    emit_select64(s, c, x.q, make_imm64(UINT32_MAX)) :
		    emit_select64(s, c, x.r, n0);
	sel_copy(s, sel_def(s, i), r);
}

void sel_div(struct sel *s, const struct ssa_inst *i)
{
	if (sel_dwords(s, i->type) == 2)
		emit_div64(s, i);
	else
		emit_div32(s, i);
}

/* -------------------------------------------------------------- floats ---- */

static struct mir_opnd toggle_neg(struct mir_opnd a)
{
	a.mods ^= ISA_M_NEG;
	return a;
}

/* The last steps read whether the scaling changed the dividend from VCC. */
static void div_fmas(struct sel *s, int op, struct mir_opnd d,
		     struct mir_opnd a, struct mir_opnd b, struct mir_opnd c,
		     struct mir_opnd scaled)
{
	sel_raw(s, MIR_COPY, mir_hw(ISA_R_VCC_LO, s->mask), scaled);
	s->glue = true;
	sel_v(s, op, d, a, b, c);
	s->glue = false;
}

static void div_f32(struct sel *s, struct mir_opnd out, struct mir_opnd n,
		    struct mir_opnd d)
{
	struct mir_opnd ds = sel_new_v(s, 1), ns = sel_new_v(s, 1), r, q;
	struct mir_opnd one = mir_imm(0x3f800000), c = sel_new_mask(s), e;
	struct mir_opnd null = mir_hw(ISA_R_NULL, s->mask);
	struct mir_opnd x = sel_new_v(s, 1);

	s->m->vreg[c.reg].vcc = true;
	sel_v(s, ISA_v_div_scale_f32, ds, null, d, d, n);
	sel_v(s, ISA_v_div_scale_f32, ns, c, n, d, n);
	r = sel_v1(s, ISA_v_rcp_f32, ds);
	e = sel_v1(s, ISA_v_fma_f32, toggle_neg(ds), r, one);
	r = sel_v1(s, ISA_v_fma_f32, e, r, r);
	q = sel_v1(s, ISA_v_mul_f32, ns, r);
	e = sel_v1(s, ISA_v_fma_f32, toggle_neg(ds), q, ns);
	q = sel_v1(s, ISA_v_fma_f32, e, r, q);
	e = sel_v1(s, ISA_v_fma_f32, toggle_neg(ds), q, ns);
	div_fmas(s, ISA_v_div_fmas_f32, x, e, r, q, c);
	sel_v(s, ISA_v_div_fixup_f32, out, x, d, n);
}

static void fast_div(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd r = sel_v1(s, ISA_v_rcp_f32, sel_get_f(s, i->arg[1]));

	sel_v(s, ISA_v_mul_f32, sel_def(s, i), sel_get_f(s, i->arg[0]), r);
}

void sel_fdiv(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd t;

	switch (i->type.kind) {
	case SSA_F32:
		if (i->flags & SSA_FAST)
			fast_div(s, i);
		else
			div_f32(s, sel_def(s, i), sel_get_v(s, i->arg[0]),
				sel_get_v(s, i->arg[1]));
		return;
	case SSA_F16:
		/* f32 has more than twice the bits: rounding twice is right. */
		t = sel_new_v(s, 1);
		div_f32(s, t,
			sel_v1(s, ISA_v_cvt_f32_f16, sel_get_f(s, i->arg[0])),
			sel_v1(s, ISA_v_cvt_f32_f16, sel_get_f(s, i->arg[1])));
		sel_v(s, ISA_v_cvt_f16_f32, sel_def(s, i), t);
		return;
	}
	sel_refuse(s, i, "no division of this type");
}

/* ---- square root */

/* +-0 and +inf are their own roots. */
static struct mir_opnd own_root(struct sel *s, int op, struct mir_opnd a)
{
	struct mir_opnd c = sel_new_mask(s);

	sel_v(s, op, c, a, mir_imm(0x260));
	return c;
}

/* An estimate, and the neighbour on whose side the residue says it lies. */
static void sqrt_f32(struct sel *s, struct mir_opnd out, struct mir_opnd a)
{
	struct mir_opnd one = mir_imm(0x3f800000), c = sel_new_mask(s);
	struct mir_opnd low = sel_new_mask(s), high = sel_new_mask(s);
	struct mir_opnd x, r, lo, hi, k, e, f, t;

	sel_v(s, ISA_v_cmp_gt_f32, c, mir_imm(0x0f800000), a);
	k = sel_v1(s, ISA_v_cndmask_b32, one, mir_imm(0x4f800000), c);
	x = sel_v1(s, ISA_v_mul_f32, a, k);
	r = sel_v1(s, ISA_v_sqrt_f32, x);
	lo = sel_v1(s, ISA_v_add_nc_u32, mir_imm(UINT32_MAX), r);
	hi = sel_v1(s, ISA_v_add_nc_u32, mir_imm(1), r);
	e = sel_v1(s, ISA_v_fma_f32, toggle_neg(lo), r, x);
	f = sel_v1(s, ISA_v_fma_f32, toggle_neg(hi), r, x);
	sel_v(s, ISA_v_cmp_ge_f32, low, mir_imm(0), e);
	r = sel_v1(s, ISA_v_cndmask_b32, r, lo, low);
	sel_v(s, ISA_v_cmp_lt_f32, high, mir_imm(0), f);
	r = sel_v1(s, ISA_v_cndmask_b32, r, hi, high);
	k = sel_v1(s, ISA_v_cndmask_b32, one, mir_imm(0x37800000), c);
	t = sel_v1(s, ISA_v_mul_f32, r, k);
	sel_v(s, ISA_v_cndmask_b32, out, t, x,
	      own_root(s, ISA_v_cmp_class_f32, x));
}

void sel_fsqrt(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd t;

	switch (i->type.kind) {
	case SSA_F32:
		if (i->flags & SSA_FAST)
			sel_v(s, ISA_v_sqrt_f32, sel_def(s, i),
			      sel_get_f(s, i->arg[0]));
		else
			sqrt_f32(s, sel_def(s, i), sel_get_v(s, i->arg[0]));
		return;
	case SSA_F16:
		t = sel_v1(s, ISA_v_cvt_f32_f16, sel_get_f(s, i->arg[0]));
		t = sel_v1(s, ISA_v_sqrt_f32, t);
		sel_v(s, ISA_v_cvt_f16_f32, sel_def(s, i), t);
		return;
	}
	sel_refuse(s, i, "no square root of this type");
}
