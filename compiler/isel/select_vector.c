/*
 * compiler/isel/select_vector.c - vectors: packing, taking apart, matrices, dot
 * products.  Elements lie in registers as they lie in memory.
 */
#include "compiler/isel/select.h"

static uint32_t elem_bits(struct ssa_type t)
{
	return ssa_kind_bits(t.kind);
}

/* Halves of two registers to one: low ones, or those known to be upper ones. */
static void pack_half(struct sel *s, struct mir_opnd d,
		      const struct ssa_inst *a, const struct ssa_inst *b)
{
	struct mir_opnd lo = sel_get(s, a), hi = sel_get(s, b);
	uint32_t bytes = 0x05040100;

	if (!mir_is_v(s->m, &d)) {
		sel_s(s, ISA_s_pack_ll_b32_b16, d, lo, hi);
		return;
	}
	if (lo.kind == MIR_IMM && hi.kind == MIR_IMM) {
		sel_copy(s, d, mir_imm((lo.imm & 0xffff) | hi.imm << 16));
		return;
	}
	if (s->val[a->id].upper.kind == MIR_VREG) {
		lo = s->val[a->id].upper;
		bytes += 0x0202;
	}
	if (s->val[b->id].upper.kind == MIR_VREG) {
		hi = s->val[b->id].upper;
		bytes += 0x02020000;
	}
	sel_v(s, ISA_v_perm_b32, d, hi, lo, mir_imm(bytes));
}

/* The upper half of a pair, where it is an fma that is rounded to f16. */
static bool fma_to_upper(struct sel *s, struct mir_opnd d,
			 const struct ssa_inst *lo, const struct ssa_inst *hi)
{
	const struct ssa_inst *sum = sel_rounded_fma(s, hi);
	struct mir_opnd o;

	if (!sum || !mir_is_v(s->m, &d) || s->val[hi->id].uses != 1)
		return false;
	o = sel_get(s, lo);
	if (!mir_is_v(s->m, &o))
		return false;
	sel_copy(s, d, o);
	sel_mixed_fma(s, ISA_v_fma_mixhi_f16, d, sum);
	return true;
}

/* Both halves of one register, in their places. */
static bool are_neighbours(struct sel *s, struct mir_opnd *out,
			   const struct ssa_inst *a, const struct ssa_inst *b)
{
	struct mir_opnd o;

	if (a->op != SSA_extract || b->op != SSA_extract ||
	    a->arg[0] != b->arg[0] || a->imm % 2 || b->imm != a->imm + 1)
		return false;
	o = sel_get(s, a->arg[0]);
	if (o.kind == MIR_IMM)
		return false;
	*out = mir_part(o, (int)a->imm / 2, 1);
	return true;
}

/*
 * Copies to the parts of a vector, in order: what lies side by side where it
 * comes from is one copy, and one that brings all of a register can be avoided.
 */
struct parts {
	struct sel *s;
	struct mir_opnd to, from; /* from.n 0: nothing waits */
	int at;
};

static void parts_end(struct parts *p)
{
	if (p->from.n)
		sel_copy(p->s, mir_part(p->to, p->at, p->from.n), p->from);
	p->from.n = 0;
}

static void parts_add(struct parts *p, int at, struct mir_opnd from)
{
	if (p->from.n && from.kind == MIR_VREG &&
	    p->from.kind == MIR_VREG && p->from.reg == from.reg &&
	    p->from.sub + p->from.n == from.sub && p->at + p->from.n == at) {
		p->from.n = (uint8_t)(p->from.n + from.n);
		return;
	}
	parts_end(p);
	p->from = from;
	p->at = at;
	if (from.kind == MIR_VREG)
		return;
	sel_copy(p->s, mir_part(p->to, at, 1), from);
	p->from.n = 0;
}

static void pack_bytes(struct sel *s, const struct ssa_inst *i,
		       struct mir_opnd d, uint32_t first)
{
	struct mir_opnd acc = sel_ext(s, i->arg[first], false);

	for (uint32_t k = 1; k < 4 && first + k < i->n_args; k++) {
		bool last = k == 3 || first + k + 1 == i->n_args;
		struct mir_opnd o = sel_ext(s, i->arg[first + k], false);
		struct mir_opnd t = last ? d : mir_is_v(s->m, &d) ?
						   sel_new_v(s, 1) :
						   sel_new_s(s, 1);

		if (mir_is_v(s->m, &d)) {
			sel_v(s, ISA_v_lshl_or_b32, t, o, mir_imm(8 * k), acc);
		} else {
			struct mir_opnd u =
				sel_s1(s, ISA_s_lshl_b32, o, mir_imm(8 * k));
			sel_s(s, ISA_s_or_b32, t, u, acc);
		}
		acc = t;
	}
	if (i->n_args - first == 1)
		sel_copy(s, d, acc);
}

/* Elements k and k + 1 of 16 bits. */
static void pack_pair(struct sel *s, struct parts *p, const struct ssa_inst *i,
		      uint32_t k)
{
	const int at = (int)k / 2;
	struct mir_opnd from;

	if (k + 1 == i->n_args)
		parts_add(p, at, sel_get(s, i->arg[k]));
	else if (are_neighbours(s, &from, i->arg[k], i->arg[k + 1]))
		parts_add(p, at, from);
	else if (!fma_to_upper(s, mir_part(p->to, at, 1), i->arg[k],
			       i->arg[k + 1]))
		pack_half(s, mir_part(p->to, at, 1), i->arg[k], i->arg[k + 1]);
}

static void select_pack(struct sel *s, const struct ssa_inst *i)
{
	uint32_t bits = elem_bits(i->type);
	struct mir_opnd d = sel_def(s, i);
	struct parts p = { .s = s, .to = d };

	if (bits == 32) {
		for (uint32_t k = 0; k < i->n_args; k++)
			parts_add(&p, (int)k, sel_get(s, i->arg[k]));
		parts_end(&p);
		return;
	}
	if (bits > 32) {
		int w = (int)bits / 32;

		for (uint32_t k = 0; k < i->n_args; k++)
			sel_copy(s, mir_part(d, (int)k * w, w),
				 sel_get(s, i->arg[k]));
		return;
	}
	if (bits == 16) {
		for (uint32_t k = 0; k < i->n_args; k += 2)
			pack_pair(s, &p, i, k);
		parts_end(&p);
		return;
	}
	for (uint32_t k = 0; k < i->n_args; k += 4)
		pack_bytes(s, i, mir_part(d, (int)k / 4, 1), k);
}

static void select_extract(struct sel *s, const struct ssa_inst *i)
{
	uint32_t bits = elem_bits(i->arg[0]->type);
	struct mir_opnd o = sel_get(s, i->arg[0]), d, w;
	uint32_t at = (uint32_t)i->imm * bits;

	if (o.kind == MIR_IMM) {
		sel_alias(s, i, mir_imm(o.imm >> at));
		return;
	}
	if (bits >= 32) {
		sel_alias(s, i, mir_part(o, (int)at / 32, (int)bits / 32));
		return;
	}
	w = mir_part(o, (int)at / 32, 1);
	if (at % 32 == 0) {
		sel_alias(s, i, w);
		return;
	}
	/* What lies above the element does not matter. */
	d = sel_def(s, i);
	if (mir_is_v(s->m, &d)) {
		sel_v(s, ISA_v_lshrrev_b32, d, mir_imm(at % 32), w);
		if (at % 32 == 16 && mir_is_v(s->m, &w))
			s->val[i->id].upper = w;
	} else {
		sel_s(s, ISA_s_lshr_b32, d, w, mir_imm(at % 32));
	}
}

/* Pairs whose instruction changes a sign, and pairs of bits. */
static bool select_pair(struct sel *s, const struct ssa_inst *i)
{
	struct mir_inst *m;
	struct mir_opnd a;

	if (i->type.n != 2 || elem_bits(i->type) != 16)
		return false;
	switch (i->op) {
	case SSA_fsub:
		if (i->type.kind != SSA_F16)
			return false;
		m = sel_v(s, ISA_v_pk_add_f16, sel_def(s, i),
			  sel_get(s, i->arg[0]), sel_get(s, i->arg[1]));
		m->tail = " neg_lo:[0,1] neg_hi:[0,1]";
		return true;
	case SSA_fneg:
	case SSA_fabs:
		a = sel_get(s, i->arg[0]);
		if (i->op == SSA_fneg)
			sel_v(s, ISA_v_xor_b32, sel_def(s, i),
			      mir_imm(0x80008000), a);
		else
			sel_v(s, ISA_v_and_b32, sel_def(s, i),
			      mir_imm(0x7fff7fff), a);
		return true;
	}
	return false;
}

bool sel_vector(struct sel *s, const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_pack:
		select_pack(s, i);
		return true;
	case SSA_extract:
		select_extract(s, i);
		return true;
	case SSA_bitcast:
		sel_alias(s, i, sel_get(s, i->arg[0]));
		return true;
	case SSA_wmma:
		sel_wmma(s, i);
		return true;
	case SSA_dot2:
	case SSA_dot4_s:
		sel_dot(s, i);
		return true;
	}
	return select_pair(s, i);
}
