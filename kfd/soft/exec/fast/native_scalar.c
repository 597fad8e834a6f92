/*
 * kfd/soft/exec/fast/native_scalar.c - scalar instructions as host code.
 *
 * Those of 32 bits that index arrays and count loops, on SGPRs and constants.
 * All is done in ecx; SGPRs and SCC are read and written in their places.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"

/* What becomes of the host's flags in SCC. */
enum scc { KEPT, CARRY, NOT_ZERO, OVERFLOW, EQ, NE, GT, GE, LT, LE, ABOVE,
	   NOT_BELOW, BELOW, NOT_ABOVE };

/* The last byte of setcc. */
static const uint8_t setcc[] = {
	[CARRY] = 0x92, [NOT_ZERO] = 0x95, [OVERFLOW] = 0x90,  [EQ] = 0x94,
	[NE] = 0x95,	[GT] = 0x9f,	   [GE] = 0x9d,	       [LT] = 0x9c,
	[LE] = 0x9e,	[ABOVE] = 0x97,	   [NOT_BELOW] = 0x93, [BELOW] = 0x92,
	[NOT_ABOVE] = 0x96,
};

enum kind {
	NONE,
	MOVE,	   /* d = a */
	BINARY,	   /* d = a op b; op r32, r/m32 */
	WITH_CARRY, /* the same, and SCC */
	PRODUCT,
	SHIFT,	 /* op: the prefix of shlx, sarx or shrx in VEX */
	COMPARE,
	CHOICE,	 /* d = SCC ? a : b */
};

static const struct row {
	uint8_t kind, op, scc;
} rows[ISA_OP_COUNT] = {
	[ISA_s_mov_b32] = { MOVE, 0, KEPT },
	[ISA_s_movk_i32] = { MOVE, 0, KEPT },
	[ISA_s_add_u32] = { BINARY, 0x03, CARRY },
	[ISA_s_sub_u32] = { BINARY, 0x2b, CARRY },
	[ISA_s_add_i32] = { BINARY, 0x03, OVERFLOW },
	[ISA_s_sub_i32] = { BINARY, 0x2b, OVERFLOW },
	[ISA_s_addc_u32] = { WITH_CARRY, 0x13, CARRY },
	[ISA_s_subb_u32] = { WITH_CARRY, 0x1b, CARRY },
	[ISA_s_and_b32] = { BINARY, 0x23, NOT_ZERO },
	[ISA_s_or_b32] = { BINARY, 0x0b, NOT_ZERO },
	[ISA_s_xor_b32] = { BINARY, 0x33, NOT_ZERO },
	[ISA_s_mul_i32] = { PRODUCT, 0, KEPT },
	[ISA_s_lshl_b32] = { SHIFT, 1, NOT_ZERO },
	[ISA_s_ashr_i32] = { SHIFT, 2, NOT_ZERO },
	[ISA_s_lshr_b32] = { SHIFT, 3, NOT_ZERO },
	[ISA_s_cselect_b32] = { CHOICE, 0, KEPT },
#define C(name, scc) [ISA_s_cmp_##name] = { COMPARE, 0x3b, scc }
	C(eq_i32, EQ),	  C(lg_i32, NE), C(gt_i32, GT),	   C(ge_i32, GE),
	C(lt_i32, LT),	  C(le_i32, LE), C(eq_u32, EQ),	   C(lg_u32, NE),
	C(gt_u32, ABOVE), C(ge_u32, NOT_BELOW), C(lt_u32, BELOW),
	C(le_u32, NOT_ABOVE),
#undef C
};

static bool is_constant(const struct isa_operand *o)
{
	return o->kind == ISA_K_INLINE || o->kind == ISA_K_LITERAL ||
	       o->kind == ISA_K_IMM;
}

/* Not those that exist for trap handlers only. */
static bool is_usual(const struct isa_operand *o)
{
	return o->kind == ISA_K_SGPR &&
	       (o->reg < ISA_R_TTMP0 || o->reg > ISA_R_NULL);
}

static bool is_null(const struct isa_operand *o)
{
	return o->kind == ISA_K_SGPR && o->reg == ISA_R_NULL;
}

bool soft_native_is_scalar(const struct soft_microop *m)
{
	const struct isa_inst *in = &m->u->in;
	const struct isa_operand *o = in->opnd;
	const struct row *r = &rows[in->op];
	int first = r->kind == COMPARE ? 0 : 1;

	if (m->fn != soft_microop_call || !r->kind)
		return false;
	if (first && !is_usual(&o[0]) && !is_null(&o[0]))
		return false;
	for (int i = first; i < in->n_opnd; i++)
		if (!is_usual(&o[i]) && !is_constant(&o[i]))
			return false;
	/* shlx takes no constant to be shifted, cmov no second one. */
	return !((r->kind == SHIFT && is_constant(&o[1])) ||
		 (r->kind == CHOICE && is_constant(&o[2])));
}

bool soft_native_writes(const struct soft_microop *m, int reg)
{
	const struct isa_operand *o = m->u->in.opnd;

	return o->role & ISA_DST && o->kind == ISA_K_SGPR && o->reg == reg;
}

/* ----------------------------------------------------------------- emit ---- */

static struct soft_host_mem scc_at(void)
{
	return (struct soft_host_mem){
		SOFT_RDI, (int32_t)offsetof(struct soft_wave, scc) };
}

static uint32_t constant_of(const struct soft_microop *m,
			    const struct isa_operand *o)
{
	return o->kind == ISA_K_IMM ? (uint32_t)(int16_t)o->value :
				      (uint32_t)soft_read_scalar(NULL, o,
								 &m->u->in);
}

static void load_ecx(struct buf *code, const struct soft_microop *m,
		     const struct isa_operand *o)
{
	if (is_constant(o))
		soft_host_set32(code, SOFT_RCX, constant_of(m, o));
	else
		soft_host_int(code, SOFT_HOST_MOV, SOFT_RCX,
			      soft_host_sgpr(o->reg));
}

static void apply_ecx(struct buf *code, const struct soft_microop *m,
		      unsigned op, const struct isa_operand *o)
{
	if (is_constant(o))
		soft_host_int_const(code, op, SOFT_RCX, constant_of(m, o));
	else
		soft_host_int(code, op, SOFT_RCX, soft_host_sgpr(o->reg));
}

static void emit_operation(struct buf *code, const struct soft_microop *m,
			   const struct row *r)
{
	const struct isa_operand *o = m->u->in.opnd;

	switch (r->kind) {
	case MOVE:
		load_ecx(code, m, &o[1]);
		break;
	case WITH_CARRY:
		soft_host_carry(code, scc_at());
		/* fall through */
	case BINARY:
		load_ecx(code, m, &o[1]);
		apply_ecx(code, m, r->op, &o[2]);
		break;
	case PRODUCT:
		load_ecx(code, m, &o[1]);
		apply_ecx(code, m, SOFT_HOST_IMUL, &o[2]);
		break;
	case SHIFT:
		load_ecx(code, m, &o[2]);
		soft_host_shift(code, r->op, soft_host_sgpr(o[1].reg));
		break;
	case COMPARE:
		load_ecx(code, m, &o[0]);
		apply_ecx(code, m, r->op, &o[1]);
		break;
	case CHOICE:
		soft_host_test_byte(code, scc_at());
		load_ecx(code, m, &o[1]);
		soft_host_int(code, SOFT_HOST_CMOVZ, SOFT_RCX,
			      soft_host_sgpr(o[2].reg));
	}
}

void soft_native_scalar(struct buf *code, const struct soft_microop *m)
{
	const struct isa_operand *o = m->u->in.opnd;
	const struct row *r = &rows[m->u->in.op];

	emit_operation(code, m, r);
	if (r->scc != KEPT)
		soft_host_int(code, 0x0f00u | setcc[r->scc], 0, scc_at());
	if (r->kind != COMPARE && !is_null(&o[0]))
		soft_host_int(code, SOFT_HOST_PUT, SOFT_RCX,
			      soft_host_sgpr(o[0].reg));
}
