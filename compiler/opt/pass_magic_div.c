/*
 * compiler/opt/pass_magic_div.c - division of i32 by a constant, as a product.
 *
 * Unsigned: with s = ceil(log2 d) and m = ceil(2^(32 + s) / d), which has 33
 * bits, x / d = (m x) >> (32 + s).  The bit above 32 is added separately, in a
 * way that cannot overflow (Granlund and Montgomery, "Division by invariant
 * integers using multiplication", 1994).  Signed: the same with 32 bits and a
 * correction by the sign.
 */
#include "compiler/opt/pass.h"

static struct ssa_inst *const_u32(struct ssa_func *f, uint32_t v)
{
	return ssa_entry_const(f, ssa_type(SSA_I32, 1), v);
}

static struct ssa_inst *emit_shift(struct ssa_func *f, struct ssa_inst *at,
				   enum ssa_op op, struct ssa_inst *x,
				   uint32_t by)
{
	return by ? ssa_emit2(f, at, op, x, const_u32(f, by)) : x;
}

static uint32_t ceil_log2(uint32_t d)
{
	return d <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(d - 1);
}

static struct ssa_inst *quotient_u(struct ssa_func *f, struct ssa_inst *at,
				   struct ssa_inst *x, uint32_t d)
{
	const uint32_t s = ceil_log2(d);
	const unsigned __int128 top = (unsigned __int128)1 << (32 + s);
	const uint64_t m = (uint64_t)((top + d - 1) / d);
	const uint64_t most = ssa_bounds(f, x).max;

	/*
	 * With m - 2^(32+s)/d = e/d, m x is right while x e < 2^(32+s); with
	 * small x a multiplier of 32 bits does.
	 */
	for (uint32_t k = 0; k <= s; k++) {
		const unsigned __int128 t = (unsigned __int128)1 << (32 + k);
		const unsigned __int128 mk = (t + d - 1) / d;
		const uint64_t e = (uint64_t)(mk * d - t);

		if (mk >> 32 || (unsigned __int128)e * most >= t)
			continue;
		return emit_shift(f, at, SSA_shr_u,
				  ssa_emit2(f, at, SSA_mulhi_u, x,
					    const_u32(f, (uint32_t)mk)),
				  k);
	}
	/* h = low 32 bits of m times x, upper half; then (x + h) >> s. */
	struct ssa_inst *h =
		ssa_emit2(f, at, SSA_mulhi_u, x, const_u32(f, (uint32_t)m));
	struct ssa_inst *half = emit_shift(f, at, SSA_shr_u,
					   ssa_emit2(f, at, SSA_sub, x, h), 1);

	return emit_shift(f, at, SSA_shr_u, ssa_emit2(f, at, SSA_add, half, h),
			  s - 1);
}

/* d is positive and above 1. */
static struct ssa_inst *quotient_s(struct ssa_func *f, struct ssa_inst *at,
				   struct ssa_inst *x, uint32_t d)
{
	struct ssa_inst *sign = emit_shift(f, at, SSA_shr_s, x, 31);
	const uint32_t s = ceil_log2(d);

	if (!(d & (d - 1))) { /* round toward zero: add d - 1 if negative */
		struct ssa_inst *low =
			ssa_emit2(f, at, SSA_and, sign, const_u32(f, d - 1));

		return emit_shift(f, at, SSA_shr_s,
				  ssa_emit2(f, at, SSA_add, x, low), s);
	}
	/* m = floor(2^(31 + s) / d) + 1 has 32 bits: as signed, m - 2^32. */
	const uint64_t m = (((uint64_t)1 << (31 + s)) / d) + 1;
	struct ssa_inst *h =
		ssa_emit2(f, at, SSA_mulhi_s, x, const_u32(f, (uint32_t)m));

	if (m >> 31)
		h = ssa_emit2(f, at, SSA_add, h, x);
	return ssa_emit2(f, at, SSA_sub, emit_shift(f, at, SSA_shr_s, h, s - 1),
			 sign);
}

static bool replace_division(struct ssa_func *f, struct ssa_inst *i)
{
	const bool is_signed = i->op == SSA_div_s || i->op == SSA_rem_s;
	const bool rem = i->op == SSA_rem_u || i->op == SSA_rem_s;

	if (i->op < SSA_div_u || i->op > SSA_rem_s ||
	    i->type.kind != SSA_I32 || i->arg[1]->op != SSA_const)
		return false;
	const uint32_t d = (uint32_t)i->arg[1]->imm;

	/* 0 and negative divisors are left to the division. */
	if (d < 2 || (is_signed && d > INT32_MAX))
		return false;
	struct ssa_inst *x = i->arg[0];
	struct ssa_inst *q = is_signed ? quotient_s(f, i, x, d) :
					 quotient_u(f, i, x, d);

	if (rem)
		q = ssa_emit2(f, i, SSA_sub, x,
			      ssa_emit2(f, i, SSA_mul, q, i->arg[1]));
	ssa_forward(i, q);
	return true;
}

bool ssa_pass_magic_div(struct ssa_func *f)
{
	bool any = false;

	ssa_forward_init(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			any |= replace_division(f, i);
	ssa_forward_all(f);
	return any;
}
