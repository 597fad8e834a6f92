/*
 * isa/verify/verify_arith.c - integer arithmetic on values: what stays linear
 * in constants and lane numbers, and what is an opaque expression.
 */
#include <string.h>

#include "isa/verify/verify_int.h"

static uint32_t step_or(struct step *p, uint32_t a, uint32_t b)
{
	uint32_t za = val_zeros(p->val, a), zb = val_zeros(p->val, b);

	if ((za < 32 && p->val->v[b].hi < 1u << za) || za == 32 ||
	    (zb < 32 && p->val->v[a].hi < 1u << zb) || zb == 32)
		return val_add(p->val, a, b);
	return val_expr(p->val, ISA_v_or_b32, a, b,
			step_flags(p, a) | step_flags(p, b));
}

static uint32_t step_lshl(struct step *p, uint32_t x, uint32_t by)
{
	uint32_t k;

	if (val_is_const(p->val, by, &k))
		return val_scale(p->val, x, 1u << (k & 31));
	return val_expr(p->val, ISA_v_lshlrev_b32, x, by,
			step_flags(p, x) | step_flags(p, by));
}

uint32_t step_product(struct step *p, uint32_t a, uint32_t b)
{
	uint32_t k;

	if (val_is_const(p->val, a, &k))
		return val_scale(p->val, b, k);
	if (val_is_const(p->val, b, &k))
		return val_scale(p->val, a, k);
	if (a > b) {
		uint32_t t = a;

		a = b;
		b = t;
	}
	return val_expr(p->val, ISA_v_mul_lo_u32, a, b,
			step_flags(p, a) | step_flags(p, b));
}

static uint32_t step_sub(struct step *p, uint32_t a, uint32_t b)
{
	return val_add(p->val, a, val_scale(p->val, b, UINT32_MAX));
}

/* The largest work-item number in dimension `d` of the packed ids in v0. */
static uint32_t id_max(const struct step *p, int d)
{
	const struct verify_input *in = p->v->in;

	if (in->workgroup_dim[d] > 0)
		return in->workgroup_dim[d] - 1;
	return in->max_workgroup > 0 && in->max_workgroup < 1024 ?
		       in->max_workgroup - 1 :
		       1023;
}

static uint32_t masked_by(struct step *p, uint32_t a, uint32_t b)
{
	uint32_t k, x;

	if (val_is_const(p->val, a, &k)) {
		uint32_t t = a;

		a = b;
		b = t;
	}
	if (!val_is_const(p->val, b, &k))
		return val_expr(p->val, ISA_v_and_b32, a, b,
				step_flags(p, a) | step_flags(p, b));
	x = val_and(p->val, a, k);
	if (a == val_entry(p->val, 0, R_VGPR) && k == 0x3ff)
		val_bound(p->val, x, 0, id_max(p, 0));
	return x;
}

static uint32_t bits_of(struct step *p, uint32_t x, uint32_t low,
			uint32_t width)
{
	uint32_t l, w, hi = UINT32_MAX;

	if (!val_is_const(p->val, low, &l) || !val_is_const(p->val, width, &w))
		return val_expr(p->val, ISA_v_bfe_u32, x,
				step_pair(p, low, width), step_flags(p, x));
	l &= 31;
	w &= 31;
	if (w)
		hi = (1u << w) - 1;
	if (x == val_entry(p->val, 0, R_VGPR) && w == 10 && l % 10 == 0)
		hi = id_max(p, l / 10);
	else if (p->val->v[x].hi >> l < hi)
		hi = p->val->v[x].hi >> l;
	return val_bound(p->val,
			 val_expr(p->val, ISA_v_bfe_u32, x,
				  step_pair(p, low, width), step_flags(p, x)),
			 0, hi);
}

static uint32_t step_lshr(struct step *p, uint32_t x, uint32_t by)
{
	uint32_t k, c;

	if (!val_is_const(p->val, by, &k))
		return val_expr(p->val, ISA_v_lshrrev_b32, x, by,
				step_flags(p, x) | step_flags(p, by));
	k &= 31;
	if (val_is_const(p->val, x, &c))
		return val_const(p->val, c >> k);
	return val_bound(
		p->val,
		val_expr(p->val, ISA_v_lshrrev_b32, x, by, step_flags(p, x)),
		p->val->v[x].lo >> k, p->val->v[x].hi >> k);
}

/* 32-bit results that stay linear; 0 if the row is none of them. */
uint32_t step_linear(struct step *p)
{
	switch (p->op) {
	case ISA_v_mov_b32:
	case ISA_s_mov_b32:
		return step_src(p, 0);
	case ISA_s_movk_i32:
		return val_const(p->val, (int16_t)p->x->in.f[ISA_F_SIMM16]);
	case ISA_s_addk_i32:
		return val_add(
			p->val, step_old(p),
			val_const(p->val, (int16_t)p->x->in.f[ISA_F_SIMM16]));
	case ISA_s_mulk_i32:
		return val_scale(p->val, step_old(p),
				 (int16_t)p->x->in.f[ISA_F_SIMM16]);
	case ISA_v_add_nc_u32:
	case ISA_s_add_u32:
	case ISA_s_add_i32:
		return val_add(p->val, step_src(p, 0), step_src(p, 1));
	case ISA_v_sub_nc_u32:
	case ISA_s_sub_u32:
	case ISA_s_sub_i32:
		return step_sub(p, step_src(p, 0), step_src(p, 1));
	case ISA_v_subrev_nc_u32:
		return step_sub(p, step_src(p, 1), step_src(p, 0));
	case ISA_v_lshlrev_b32:
		return step_lshl(p, step_src(p, 1), step_src(p, 0));
	case ISA_s_lshl_b32:
		return step_lshl(p, step_src(p, 0), step_src(p, 1));
	case ISA_v_lshrrev_b32:
		return step_lshr(p, step_src(p, 1), step_src(p, 0));
	case ISA_s_lshr_b32:
		return step_lshr(p, step_src(p, 0), step_src(p, 1));
	case ISA_v_lshl_add_u32:
		return val_add(p->val,
			       step_lshl(p, step_src(p, 0), step_src(p, 1)),
			       step_src(p, 2));
	case ISA_v_add_lshl_u32:
		return step_lshl(
			p, val_add(p->val, step_src(p, 0), step_src(p, 1)),
			step_src(p, 2));
	case ISA_v_add3_u32:
		return val_add(p->val,
			       val_add(p->val, step_src(p, 0), step_src(p, 1)),
			       step_src(p, 2));
	case ISA_v_mul_lo_u32:
	case ISA_s_mul_i32:
		return step_product(p, step_src(p, 0), step_src(p, 1));
	case ISA_v_mul_u32_u24:
	case ISA_v_mad_u32_u24:
		/* Compilers use these where both factors have 24 bits. */
		return val_add(
			p->val, step_product(p, step_src(p, 0), step_src(p, 1)),
			p->op == ISA_v_mad_u32_u24 ? step_src(p, 2) :
						     val_const(p->val, 0));
	case ISA_v_and_b32:
	case ISA_s_and_b32:
		return masked_by(p, step_src(p, 0), step_src(p, 1));
	case ISA_v_or_b32:
	case ISA_s_or_b32:
		return step_or(p, step_src(p, 0), step_src(p, 1));
	case ISA_v_lshl_or_b32:
		return step_or(p, step_lshl(p, step_src(p, 0), step_src(p, 1)),
			       step_src(p, 2));
	case ISA_v_and_or_b32:
		return step_or(p, masked_by(p, step_src(p, 0), step_src(p, 1)),
			       step_src(p, 2));
	case ISA_v_bfe_u32:
		return bits_of(p, step_src(p, 0), step_src(p, 1),
			       step_src(p, 2));
	default:
		return 0;
	}
}

/* Carries matter for addresses that s_getpc_b64 starts. */
void step_carry(struct step *p)
{
	uint32_t a, b, c = 0;

	if (!val_is_const(p->val, step_src(p, 0), &a) ||
	    !val_is_const(p->val, step_src(p, 1), &b) ||
	    (p->op == ISA_s_addc_u32 &&
	     !val_is_const(p->val, p->s->v[R_SCC], &c))) {
		step_put(p, R_SCC,
			 val_expr(p->val, p->op | OP_SCC, step_chain(p), 0,
				  step_flags(p, step_chain(p))));
		return;
	}
	step_put(p, R_SCC, val_const(p->val, ((uint64_t)a + b + c) >> 32));
}

bool step_addc(struct step *p)
{
	uint32_t a, b, c;

	if (!val_is_const(p->val, step_src(p, 0), &a) ||
	    !val_is_const(p->val, step_src(p, 1), &b) ||
	    !val_is_const(p->val, p->s->v[R_SCC], &c))
		return false;
	step_put(p, step_reg(&p->o[0]), val_const(p->val, a + b + c));
	step_carry(p);
	return true;
}
