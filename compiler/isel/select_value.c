/*
 * compiler/isel/select_value.c - which class each value has, and its operand.
 */
#include "compiler/isel/select.h"

static bool is_float(uint8_t kind)
{
	return kind >= SSA_F16 && kind <= SSA_F64;
}

int sel_dwords(const struct sel *s, struct ssa_type t)
{
	if (t.kind == SSA_VOID)
		return 0;
	if (t.kind == SSA_I1)
		return s->mask;
	return (int)(ssa_type_bytes(t) + 3) / 4;
}

bool sel_const(const struct ssa_inst *i, uint64_t *v)
{
	if (i->op != SSA_const)
		return false;
	*v = i->imm;
	return true;
}

/* ------------------------------------------------------------ classes ---- */

bool sel_is_s(const struct sel *s, const struct ssa_inst *i)
{
	return s->val[i->id].cls != SEL_V;
}

static bool all_scalar(const struct sel *s, const struct ssa_inst *i)
{
	for (uint32_t k = 0; k < i->n_args; k++)
		if (!sel_is_s(s, i->arg[k]))
			return false;
	return true;
}

/* Groups of scalar registers that loads and moves know. */
static bool scalar_width(int n)
{
	return n == 1 || n == 2 || n == 4 || n == 8 || n == 16;
}

static bool is_scalar(const struct sel *s, const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_arg:
	case SSA_group_id:
	case SSA_num_groups:
	case SSA_wave:
	case SSA_lds:
	case SSA_clock:
	case SSA_read_first:
	case SSA_read_lane:
	case SSA_ballot:
		return i->type.kind != SSA_I1;
	case SSA_undef:
		return true;
	case SSA_param:
		return !is_float(i->type.kind) &&
		       sel_dwords(s, i->type) <= 2;
	case SSA_load:
		return sel_load_scalar(s, i);
	case SSA_select:
		return all_scalar(s, i) && sel_dwords(s, i->type) <= 2;
	case SSA_bitcast:
	case SSA_extract:
	case SSA_pack:
		return all_scalar(s, i) &&
		       scalar_width(sel_dwords(s, i->type));
	case SSA_fneg:
	case SSA_fabs:
		return false;
	}
	return all_scalar(s, i) && sel_int_scalar(s, i);
}

static uint8_t class_of(const struct sel *s, const struct ssa_inst *i)
{
	if (i->op == SSA_const && i->type.kind != SSA_I1 &&
	    (sel_dwords(s, i->type) == 1 || i->type.kind >= SSA_F64 ||
	     i->type.kind == SSA_I64))
		return SEL_C;
	/* Lane masks. */
	if (i->type.kind == SSA_I1)
		return i->flags & SSA_UNIFORM || i->op == SSA_const ? SEL_S :
								       SEL_V;
	if (!(i->flags & SSA_UNIFORM))
		return SEL_V;
	return is_scalar(s, i) ? SEL_S : SEL_V;
}

void sel_classify(struct sel *s)
{
	for (struct ssa_block *b = s->f->first; b; b = b->next) {
		for (uint32_t k = 0; k < b->n_params; k++)
			s->val[b->param[k]->id].cls =
				class_of(s, b->param[k]);
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			s->val[i->id].cls = class_of(s, i);
			for (uint32_t k = 0; k < i->n_args; k++)
				s->val[i->arg[k]->id].uses++;
			for (int e = 0; e < 2; e++)
				for (uint32_t k = 0; k < i->edge[e].n_args; k++)
					s->val[i->edge[e].arg[k]->id].uses++;
		}
	}
}

/* ----------------------------------------------------------- operands ---- */

static struct mir_opnd mask_const(struct sel *s, bool v)
{
	struct mir_opnd d = sel_new_mask(s);

	sel_raw(s, MIR_COPY, d, mir_imm(v ? UINT32_MAX : 0));
	return d;
}

/* A constant wider than a literal, or than its operand would extend it. */
static struct mir_opnd wide_const(struct sel *s, uint64_t v, bool scalar)
{
	struct mir_opnd d = scalar ? sel_new_s(s, 2) : sel_new_v(s, 2);

	sel_raw(s, MIR_COPY, mir_part(d, 0, 1), mir_imm((uint32_t)v));
	sel_raw(s, MIR_COPY, mir_part(d, 1, 1),
		mir_imm((uint32_t)(v >> 32)));
	return d;
}

static struct mir_opnd const_operand(struct sel *s, const struct ssa_inst *i)
{
	if (i->type.kind == SSA_I1)
		return mask_const(s, i->imm & 1);
	if (sel_dwords(s, i->type) == 1)
		return mir_imm((uint32_t)i->imm);
	/* Wider than 64 bits are only zeros. */
	if (sel_dwords(s, i->type) > 2) {
		struct mir_opnd d = sel_new_v(s, sel_dwords(s, i->type));

		sel_copy(s, d, mir_imm(0));
		return d;
	}
	if (i->type.kind != SSA_F64 && (int64_t)i->imm >= -16 &&
	    (int64_t)i->imm <= 64) {
		struct mir_opnd o = mir_imm((uint32_t)i->imm);

		o.n = 2;
		return o;
	}
	return wide_const(s, i->imm, true);
}

struct mir_opnd sel_def(struct sel *s, const struct ssa_inst *i)
{
	struct sel_val *v = &s->val[i->id];
	int n = sel_dwords(s, i->type);

	if (!v->made) {
		if (v->cls == SEL_S || i->type.kind == SSA_I1)
			v->o = sel_new_s(s, n);
		else
			v->o = sel_new_v(s, n);
		v->made = true;
	}
	return v->o;
}

void sel_alias(struct sel *s, const struct ssa_inst *i, struct mir_opnd o)
{
	struct sel_val *v = &s->val[i->id];

	/* Somebody else already named the register: a parameter. */
	if (v->made) {
		sel_copy(s, v->o, o);
		return;
	}
	v->o = o;
	v->made = true;
}

struct mir_opnd sel_get(struct sel *s, const struct ssa_inst *i)
{
	if (i->op == SSA_const)
		return const_operand(s, i);
	return sel_def(s, i);
}

struct mir_opnd sel_get_v(struct sel *s, const struct ssa_inst *i)
{
	return sel_to_v(s, sel_get(s, i));
}

struct mir_opnd sel_get_s(struct sel *s, const struct ssa_inst *i)
{
	return sel_to_s(s, sel_get(s, i));
}

/* Sign changes of sources are free in vector instructions. */
struct mir_opnd sel_get_f(struct sel *s, const struct ssa_inst *i)
{
	uint8_t mods = 0;
	struct mir_opnd o;

	while (i->type.n == 1 && i->type.kind != SSA_BF16 &&
	       (i->op == SSA_fneg || i->op == SSA_fabs)) {
		if (!(mods & ISA_M_ABS))
			mods = i->op == SSA_fabs ? mods | ISA_M_ABS :
						   mods ^ ISA_M_NEG;
		i = i->arg[0];
	}
	o = sel_get(s, i);
	if (o.kind == MIR_IMM && mods) {
		uint32_t top = i->type.kind == SSA_F32 ? 0x80000000 : 0x8000;

		if (mods & ISA_M_ABS)
			o.imm &= ~top;
		if (mods & ISA_M_NEG)
			o.imm ^= top;
		return o;
	}
	/* Zero is the only f64 constant that stays one. */
	o.mods = mods;
	return o;
}

bool sel_byte(struct sel *s, const struct ssa_inst *i, struct mir_opnd *word,
	      uint32_t *bit)
{
	struct mir_opnd o;

	if (i->type.kind != SSA_I8 || i->type.n != 1)
		return false;
	*bit = 0;
	if (i->op == SSA_extract) {
		*bit = (uint32_t)i->imm % 4 * 8;
		o = sel_get(s, i->arg[0]);
		*word = o.kind == MIR_IMM ? o :
					    mir_part(o, (int)i->imm / 4, 1);
	} else {
		*word = sel_get(s, i);
	}
	return mir_is_v(s->m, word);
}

struct mir_opnd sel_ext(struct sel *s, const struct ssa_inst *i, bool sign)
{
	uint32_t bits = ssa_kind_bits(i->type.kind);
	struct mir_opnd o = sel_get(s, i), d, word = o;
	uint32_t bit = 0;

	if (bits >= 32)
		return o;
	if (o.kind == MIR_IMM) {
		uint32_t v = o.imm << (32 - bits);

		return mir_imm(sign ? (uint32_t)((int32_t)v >> (32 - bits)) :
				      v >> (32 - bits));
	}
	if (mir_is_s(s->m, &o)) {
		d = sel_new_s(s, 1);
		if (sign)
			sel_raw(s, bits == 8 ? ISA_s_sext_i32_i8 :
					       ISA_s_sext_i32_i16, d, o);
		else
			sel_raw(s, ISA_s_and_b32, d, o,
				mir_imm((1u << bits) - 1));
		return d;
	}
	d = sel_new_v(s, 1);
	if (sel_byte(s, i, &word, &bit) && bit == 24)
		sel_v(s, sign ? ISA_v_ashrrev_i32 : ISA_v_lshrrev_b32, d,
		      mir_imm(24), word);
	else if (bits == 8 && (sign || bit))
		sel_v(s, sign ? ISA_v_bfe_i32 : ISA_v_bfe_u32, d, word,
		      mir_imm(bit), mir_imm(8));
	else if (sign)
		sel_v(s, ISA_v_bfe_i32, d, o, mir_imm(0), mir_imm(bits));
	else
		sel_v(s, ISA_v_and_b32, d, mir_imm((1u << bits) - 1), o);
	return d;
}
