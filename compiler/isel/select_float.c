/*
 * compiler/isel/select_float.c - float operations of several instructions, and
 * conversions.
 */
#include "compiler/isel/select.h"

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

/* -------------------------------------------------------- conversions ---- */

static struct mir_opnd bf16_to_f32(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get(s, i), d = sel_new_v(s, 1);
	const struct mir_opnd upper = s->val[i->id].upper;

	if (upper.kind == MIR_VREG)
		sel_v(s, ISA_v_and_b32, d, mir_imm(0xffff0000), upper);
	else
		sel_v(s, ISA_v_lshlrev_b32, d, mir_imm(16), a);
	return d;
}

/* Nearest even, in the upper half of the result; NaN becomes one NaN. */
static struct mir_opnd f32_to_bf16(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd odd = sel_new_v(s, 1), sum = sel_new_v(s, 1);
	struct mir_opnd r = sel_new_v(s, 1), number = sel_new_mask(s);

	a = sel_to_v(s, a);
	s->m->vreg[number.reg].vcc = true;
	sel_v(s, ISA_v_bfe_u32, odd, a, mir_imm(16), mir_imm(1));
	sel_v(s, ISA_v_add3_u32, sum, a, odd, mir_imm(0x7fff));
	sel_v(s, ISA_v_cmp_o_f32, number, a, a);
	sel_v(s, ISA_v_cndmask_b32, r, mir_imm(0x7fff0000), sum, number);
	return r;
}

static struct mir_opnd to_f32(struct sel *s, const struct ssa_inst *v)
{
	switch (v->type.kind) {
	case SSA_F32:
		return sel_get_f(s, v);
	case SSA_BF16:
		return bf16_to_f32(s, v);
	}
	return sel_v1(s, ISA_v_cvt_f32_f16, sel_get_f(s, v));
}

static void from_f32(struct sel *s, const struct ssa_inst *i,
		     struct mir_opnd d, struct mir_opnd a)
{
	switch (i->type.kind) {
	case SSA_F16:
		sel_v(s, ISA_v_cvt_f16_f32, d, a);
		break;
	case SSA_BF16:
		a = f32_to_bf16(s, a);
		sel_v(s, ISA_v_lshrrev_b32, d, mir_imm(16), a);
		s->val[i->id].upper = a;
		break;
	case SSA_F64:
		sel_v(s, ISA_v_cvt_f64_f32, d, a);
		break;
	default:
		sel_copy(s, d, a);
	}
}

static struct mir_opnd drop_mods(struct sel *s, struct mir_opnd a)
{
	if (!a.mods)
		return a;
	return sel_v1(s, ISA_v_add_f32, a, mir_imm(0x80000000));
}

const struct ssa_inst *sel_rounded_fma(const struct sel *s,
				       const struct ssa_inst *i)
{
	const struct ssa_inst *sum = i->n_args ? i->arg[0] : NULL;

	if (mir_lacks(s->m, ISA_v_fma_mixlo_f16) ||
	    mir_lacks(s->m, ISA_v_fma_mixhi_f16))
		return NULL;
	return i->op == SSA_fcvt && i->type.kind == SSA_F16 &&
	       sum->op == SSA_fma && sum->type.kind == SSA_F32 &&
	       sum->flags & SSA_CONTRACT &&
	       s->val[sum->id].uses == 1 ? sum : NULL;
}

void sel_mixed_fma(struct sel *s, int op, struct mir_opnd d,
		   const struct ssa_inst *sum)
{
	sel_v(s, op, d, sel_get_v(s, sum->arg[0]), sel_get_v(s, sum->arg[1]),
	      sel_get_v(s, sum->arg[2]));
}

void sel_fcvt(struct sel *s, const struct ssa_inst *i)
{
	const struct ssa_inst *sum = sel_rounded_fma(s, i);
	uint8_t from = i->arg[0]->type.kind, to = i->type.kind;
	struct mir_opnd d = sel_def(s, i);

	if (i->type.n != 1) {
		sel_refuse(s, i, "conversions are for scalars");
		return;
	}
	if (sum) {
		sel_raw(s, MIR_UNDEF, d); /* the upper half stays */
		sel_mixed_fma(s, ISA_v_fma_mixlo_f16, d, sum);
	} else if (from == to) {
		sel_copy(s, d, sel_get(s, i->arg[0]));
	} else if (from == SSA_F64) {
		sel_v(s, ISA_v_cvt_f32_f64, d, sel_get_v(s, i->arg[0]));
	} else if (to == SSA_BF16 && from == SSA_F32) {
		from_f32(s, i, d, sel_get(s, i->arg[0]));
	} else if (to == SSA_F32) {
		struct mir_opnd a = to_f32(s, i->arg[0]);

		sel_copy(s, d, drop_mods(s, a));
	} else {
		from_f32(s, i, d, to_f32(s, i->arg[0]));
	}
}

/* One of a register's four bytes, without a sign. */
static bool is_byte(struct sel *s, const struct ssa_inst *x,
		    struct mir_opnd *word, uint32_t *bit)
{
	uint64_t c, shift;
	bool cut;

	if (x->op == SSA_zext)
		return sel_byte(s, x->arg[0], word, bit);
	if (x->type.kind != SSA_I32)
		return false;
	cut = x->op == SSA_and && sel_const(x->arg[1], &c) && c == 255;
	if (cut)
		x = x->arg[0];
	*bit = 0;
	if (x->op == SSA_shr_u && sel_const(x->arg[1], &shift) &&
	    (shift == 24 || (cut && shift % 8 == 0))) {
		*bit = shift & 24;
		x = x->arg[0];
	} else if (!cut) {
		return false;
	}
	*word = sel_get(s, x);
	return mir_is_v(s->m, word);
}

/* Of i32 only; the middle extends what is narrower. */
static void int_to_float(struct sel *s, const struct ssa_inst *i)
{
	static const uint16_t of_byte[] = {
		ISA_v_cvt_f32_ubyte0, ISA_v_cvt_f32_ubyte1,
		ISA_v_cvt_f32_ubyte2, ISA_v_cvt_f32_ubyte3,
	};
	bool sign = i->op == SSA_fcvt_from_s;
	struct mir_opnd a, d = sel_def(s, i), word;
	uint32_t bit;

	if (i->type.kind == SSA_F32 && i->type.n == 1 &&
	    is_byte(s, i->arg[0], &word, &bit)) {
		sel_v(s, of_byte[bit / 8], d, word);
		return;
	}
	a = sel_ext(s, i->arg[0], sign);
	if (i->type.kind == SSA_F64)
		sel_v(s, sign ? ISA_v_cvt_f64_i32 : ISA_v_cvt_f64_u32, d, a);
	else
		sel_v(s, sign ? ISA_v_cvt_f32_i32 : ISA_v_cvt_f32_u32, d, a);
}

/* The hardware saturates and turns NaN into 0. */
static void float_to_int(struct sel *s, const struct ssa_inst *i)
{
	bool sign = i->op == SSA_fcvt_to_s;
	struct mir_opnd a = sel_get_f(s, i->arg[0]), d = sel_def(s, i);

	if (i->arg[0]->type.kind == SSA_F64)
		sel_v(s, sign ? ISA_v_cvt_i32_f64 : ISA_v_cvt_u32_f64, d, a);
	else
		sel_v(s, sign ? ISA_v_cvt_i32_f32 : ISA_v_cvt_u32_f32, d, a);
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
	return false;
}
