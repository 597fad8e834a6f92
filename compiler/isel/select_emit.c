/*
 * compiler/isel/select_emit.c - instructions whose operands are made legal.
 *
 * A vector instruction reads at most two scalars, a literal counting as one
 * (one for 64-bit shifts), and at most one literal (RDNA3 ISA 6.2.4, 7.2).
 */
#include "compiler/isel/select.h"

#include <string.h>

struct mir_inst *sel_raw_list(struct sel *s, int op, const struct mir_opnd *o,
			      int n)
{
	struct mir_inst *i = mir_inst(s->m, op, o, n);

	if (s->glue)
		i->flags |= MIR_GLUED;
	i->mem = s->mem;
	mir_append(s->b, i);
	return i;
}

struct mir_opnd sel_new_v(struct sel *s, int n)
{
	return mir_reg(s->m, mir_vreg(s->m, MIR_V, n));
}

struct mir_opnd sel_new_s(struct sel *s, int n)
{
	return mir_reg(s->m, mir_vreg(s->m, MIR_S, n));
}

struct mir_opnd sel_new_mask(struct sel *s)
{
	return sel_new_s(s, s->mask);
}

struct mir_opnd sel_exec(const struct sel *s)
{
	return mir_hw(ISA_R_EXEC_LO, s->mask);
}

void sel_copy(struct sel *s, struct mir_opnd to, struct mir_opnd from)
{
	if (mir_is_s(s->m, &to) && mir_is_v(s->m, &from)) {
		for (int k = 0; k < to.n; k++)
			sel_raw(s, ISA_v_readfirstlane_b32, mir_part(to, k, 1),
				mir_part(from, k, 1));
		return;
	}
	sel_raw(s, MIR_COPY, to, from);
}

struct mir_opnd sel_to_v(struct sel *s, struct mir_opnd o)
{
	struct mir_opnd d;

	if (mir_is_v(s->m, &o))
		return o;
	d = sel_new_v(s, o.n);
	sel_copy(s, d, o);
	return d;
}

struct mir_opnd sel_to_s(struct sel *s, struct mir_opnd o)
{
	struct mir_opnd d;

	if (mir_is_s(s->m, &o))
		return o;
	d = sel_new_s(s, o.n);
	sel_copy(s, d, o);
	return d;
}

struct mir_opnd sel_lo(struct mir_opnd o)
{
	o.n = 1;
	return o;
}

/* Constants of 64 bits that stay operands are small: their sign fills up. */
struct mir_opnd sel_hi(struct mir_opnd o)
{
	if (o.kind == MIR_IMM)
		return mir_imm((int32_t)o.imm < 0 ? UINT32_MAX : 0);
	return mir_part(o, 1, 1);
}

struct mir_opnd sel_dword(struct mir_opnd o, int k)
{
	if (!k)
		return sel_lo(o);
	return o.kind == MIR_IMM ? sel_hi(o) : mir_part(o, k, 1);
}

void sel_cndmask(struct sel *s, struct mir_opnd d, struct mir_opnd mask,
		 struct mir_opnd a, struct mir_opnd b)
{
	for (int k = 0; k < d.n; k++)
		sel_v(s, ISA_v_cndmask_b32, mir_part(d, k, 1), sel_dword(b, k),
		      sel_dword(a, k), mask);
}

/* -------------------------------------------------------------- legal ---- */

bool sel_is_inline(uint32_t v, int type)
{
	static const uint32_t f32[] = { 0x3f000000, 0x3f800000, 0x40000000,
					0x40800000 };
	static const uint32_t f16[] = { 0x3800, 0x3c00, 0x4000, 0x4400 };
	bool half = type == ISA_T_F16;

	if ((int32_t)v >= -16 && (int32_t)v <= 64)
		return true;
	for (int i = 0; i < 4; i++)
		if (half ? (v & 0x7fff) == f16[i] && v < 0x10000 :
			   (v & 0x7fffffff) == f32[i])
			return true;
	return false;
}

/* What the sources have used up so far. */
struct bus {
	struct mir_opnd seen[3];
	int n, limit;
	bool literal;
	uint32_t value;
};

static bool bus_takes(struct sel *s, struct bus *b, const struct mir_opnd *o,
		      int type)
{
	if (o->kind == MIR_IMM) {
		if (sel_is_inline(o->imm, type))
			return true;
		if (b->literal)
			return b->value == o->imm;
		if (b->n == b->limit)
			return false;
		b->literal = true;
		b->value = o->imm;
		b->seen[b->n++] = *o;
		return true;
	}
	if (!mir_is_s(s->m, o))
		return true;
	for (int i = 0; i < b->n; i++)
		if (b->seen[i].kind == o->kind && b->seen[i].reg == o->reg &&
		    b->seen[i].sub == o->sub)
			return true;
	if (b->n == b->limit)
		return false;
	b->seen[b->n++] = *o;
	return true;
}

static bool slot_takes(const struct sel *s, const struct isa_op_info *op,
		       int slot, const struct mir_opnd *o)
{
	bool v = mir_is_v(s->m, o);

	switch (slot) {
	case ISA_SLOT_S0V:
	case ISA_SLOT_S1V:
	case ISA_SLOT_S2V:
		return v;
	case ISA_SLOT_S2I:
		return v || (o->kind == MIR_IMM && sel_is_inline(o->imm, 0));
	case ISA_SLOT_S0S:
	case ISA_SLOT_S1S:
	case ISA_SLOT_S2S:
	case ISA_SLOT_CI:
		return true;
	}
	/* Inline constants of packed math fill the low half only. */
	if (op->fmt == ISA_FMT_VOP3P && o->kind == MIR_IMM)
		return o->imm == 0;
	return true;
}

static bool is_shift64(int op)
{
	return op == ISA_v_lshlrev_b64 || op == ISA_v_lshrrev_b64 ||
	       op == ISA_v_ashrrev_i64;
}

static bool can_swap(int op)
{
	switch (op) {
	case ISA_v_add_f32:
	case ISA_v_mul_f32:
	case ISA_v_max_f32:
	case ISA_v_min_f32:
	case ISA_v_add_f16:
	case ISA_v_mul_f16:
	case ISA_v_add_nc_u32:
	case ISA_v_and_b32:
	case ISA_v_or_b32:
	case ISA_v_xor_b32:
	case ISA_v_min_i32:
	case ISA_v_max_i32:
	case ISA_v_min_u32:
	case ISA_v_max_u32:
	case ISA_v_mul_u32_u24:
		return true;
	}
	return false;
}

/* Two-source encodings take a vector register second. */
static void prefer_short(struct sel *s, int op, struct mir_opnd *o)
{
	struct mir_opnd t = o[1];

	if (!mir_is_v(s->m, &o[2]) && mir_is_v(s->m, &o[1]) && can_swap(op)) {
		o[1] = o[2];
		o[2] = t;
	}
}

struct mir_inst *sel_v_list(struct sel *s, int op, const struct mir_opnd *from,
			    int n)
{
	const struct isa_op_info *info = isa_op_info(op);
	struct bus bus = { .limit = is_shift64(op) ? 1 : 2 };
	struct mir_opnd o[MIR_MAX_OPND];

	memcpy(o, from, (size_t)n * sizeof(*o));
	if (n == 3 && info->fmt == ISA_FMT_VOP2)
		prefer_short(s, op, o);
	for (int k = 0; k < n && k < info->n_opnd; k++)
		if (info->opnd[k].slot == ISA_SLOT_CI)
			bus_takes(s, &bus, &o[k], ISA_T_MASK);
	for (int k = 0; k < n && k < info->n_opnd; k++) {
		int slot = info->opnd[k].slot;

		if (slot == ISA_SLOT_D || slot == ISA_SLOT_DS ||
		    slot == ISA_SLOT_CO || slot == ISA_SLOT_CD)
			continue;
		if (!slot_takes(s, info, slot, &o[k]) ||
		    !bus_takes(s, &bus, &o[k], info->opnd[k].type)) {
			uint8_t mods = o[k].mods;

			o[k].mods = 0;
			o[k] = sel_to_v(s, o[k]);
			o[k].mods = mods;
		}
	}
	return sel_raw_list(s, op, o, n);
}

struct mir_inst *sel_s_list(struct sel *s, int op, const struct mir_opnd *from,
			    int n)
{
	const struct isa_op_info *info = isa_op_info(op);
	struct mir_opnd o[MIR_MAX_OPND];
	bool literal = false;

	memcpy(o, from, (size_t)n * sizeof(*o));
	for (int k = 0; k < n && k < info->n_opnd; k++) {
		if (info->opnd[k].slot == ISA_SLOT_D)
			continue;
		if (mir_is_v(s->m, &o[k])) {
			o[k] = sel_to_s(s, o[k]);
		} else if (o[k].kind == MIR_IMM &&
			   !sel_is_inline(o[k].imm, info->opnd[k].type)) {
			if (literal)
				o[k] = sel_to_s(s, o[k]);
			literal = true;
		}
	}
	return sel_raw_list(s, op, o, n);
}

struct mir_opnd sel_v1_list(struct sel *s, int op, const struct mir_opnd *from,
			    int n)
{
	struct mir_opnd o[MIR_MAX_OPND] = { sel_new_v(s, 1) };

	memcpy(o + 1, from, (size_t)n * sizeof(*o));
	sel_v_list(s, op, o, n + 1);
	return o[0];
}

struct mir_opnd sel_s1_list(struct sel *s, int op, const struct mir_opnd *from,
			    int n)
{
	struct mir_opnd o[MIR_MAX_OPND] = { sel_new_s(s, 1) };

	memcpy(o + 1, from, (size_t)n * sizeof(*o));
	sel_s_list(s, op, o, n + 1);
	return o[0];
}
