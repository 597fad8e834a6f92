/*
 * kfd/soft/exec/fast/native_scalar.c - scalar instructions as host code.
 *
 * Those that index arrays, count loops and choose lanes, on SGPRs and constants.
 * All is done in rcx, with r10; SGPRs and SCC are read and written in their
 * places.
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
	PRODUCT_HIGH, /* op: how sources are widened to 64 bits */
	SHIFT,	 /* op: the prefix of shlx, sarx or shrx in VEX */
	COMPARE,
	CHOICE,	 /* d = SCC ? a : b */
	EXTREME, /* the same of what SCC becomes */
	INVERT,
};

static const struct row {
	uint8_t kind, op, scc;
	bool wide; /* 64 bits */
} rows[ISA_OP_COUNT] = {
	[ISA_s_mov_b32] = { MOVE, 0, KEPT, false },
	[ISA_s_movk_i32] = { MOVE, 0, KEPT, false },
	[ISA_s_add_u32] = { BINARY, 0x03, CARRY, false },
	[ISA_s_sub_u32] = { BINARY, 0x2b, CARRY, false },
	[ISA_s_add_i32] = { BINARY, 0x03, OVERFLOW, false },
	[ISA_s_sub_i32] = { BINARY, 0x2b, OVERFLOW, false },
	[ISA_s_addc_u32] = { WITH_CARRY, 0x13, CARRY, false },
	[ISA_s_subb_u32] = { WITH_CARRY, 0x1b, CARRY, false },
	[ISA_s_add_co_u32] = { BINARY, 0x03, CARRY, false },
	[ISA_s_sub_co_u32] = { BINARY, 0x2b, CARRY, false },
	[ISA_s_add_co_i32] = { BINARY, 0x03, OVERFLOW, false },
	[ISA_s_sub_co_i32] = { BINARY, 0x2b, OVERFLOW, false },
	[ISA_s_add_co_ci_u32] = { WITH_CARRY, 0x13, CARRY, false },
	[ISA_s_sub_co_ci_u32] = { WITH_CARRY, 0x1b, CARRY, false },
	[ISA_s_add_nc_u64] = { BINARY, 0x03, KEPT, true },
	[ISA_s_sub_nc_u64] = { BINARY, 0x2b, KEPT, true },
	[ISA_s_and_b32] = { BINARY, 0x23, NOT_ZERO, false },
	[ISA_s_or_b32] = { BINARY, 0x0b, NOT_ZERO, false },
	[ISA_s_xor_b32] = { BINARY, 0x33, NOT_ZERO, false },
	[ISA_s_mul_i32] = { PRODUCT, 0, KEPT, false },
	[ISA_s_lshl_b32] = { SHIFT, 1, NOT_ZERO, false },
	[ISA_s_ashr_i32] = { SHIFT, 2, NOT_ZERO, false },
	[ISA_s_lshr_b32] = { SHIFT, 3, NOT_ZERO, false },
	[ISA_s_cselect_b32] = { CHOICE, 0, KEPT, false },
	[ISA_s_mul_hi_u32] = { PRODUCT_HIGH, 0x8b, KEPT, false },
	[ISA_s_mul_hi_i32] = { PRODUCT_HIGH, 0x63, KEPT, true },
	[ISA_s_not_b32] = { INVERT, 0, NOT_ZERO, false },
	[ISA_s_min_i32] = { EXTREME, 0, LT, false },
	[ISA_s_min_u32] = { EXTREME, 0, BELOW, false },
	[ISA_s_max_i32] = { EXTREME, 0, GE, false },
	[ISA_s_max_u32] = { EXTREME, 0, NOT_BELOW, false },
	[ISA_s_mov_b64] = { MOVE, 0, KEPT, true },
	[ISA_s_and_b64] = { BINARY, 0x23, NOT_ZERO, true },
	[ISA_s_or_b64] = { BINARY, 0x0b, NOT_ZERO, true },
	[ISA_s_xor_b64] = { BINARY, 0x33, NOT_ZERO, true },
	[ISA_s_lshl_b64] = { SHIFT, 1, NOT_ZERO, true },
	[ISA_s_ashr_i64] = { SHIFT, 2, NOT_ZERO, true },
	[ISA_s_lshr_b64] = { SHIFT, 3, NOT_ZERO, true },
	[ISA_s_cselect_b64] = { CHOICE, 0, KEPT, true },
	[ISA_s_cmp_eq_u64] = { COMPARE, 0x3b, EQ, true },
	[ISA_s_cmp_lg_u64] = { COMPARE, 0x3b, NE, true },
#define C(name, scc) [ISA_s_cmp_##name] = { COMPARE, 0x3b, scc, false }
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
	/* shlx takes no constant to be shifted. */
	return r->kind != SHIFT || !is_constant(&o[1]);
}

bool soft_native_writes(const struct soft_microop *m, int reg)
{
	const struct isa_operand *o = m->u->in.opnd;

	return o->role & ISA_DST && o->kind == ISA_K_SGPR && reg >= o->reg &&
	       reg < o->reg + (rows[m->u->in.op].wide ? 2 : 1);
}

/* ----------------------------------------------------------------- emit ---- */

static struct soft_host_mem scc_at(void)
{
	return (struct soft_host_mem){
		SOFT_RDI, (int32_t)offsetof(struct soft_wave, scc) };
}

static uint64_t constant_of(const struct soft_microop *m,
			    const struct isa_operand *o)
{
	return o->kind == ISA_K_IMM ? (uint64_t)(int16_t)o->value :
				      soft_read_scalar(NULL, o, &m->u->in);
}

/* op reg, the operand */
static void apply_second(struct soft_code *code, const struct soft_microop *m,
			 unsigned op, bool wide, enum soft_host_reg reg,
			 const struct isa_operand *o)
{
	if (is_constant(o)) {
		soft_host_set64(code, SOFT_R10, constant_of(m, o));
		soft_host_int_regs(code, op, wide, reg, SOFT_R10);
	} else if (wide) {
		soft_host_int64(code, op, reg, soft_host_sgpr(o->reg));
	} else {
		soft_host_int(code, op, reg, soft_host_sgpr(o->reg));
	}
}

static void load_source(struct soft_code *code, const struct soft_microop *m,
			bool wide, enum soft_host_reg reg,
			const struct isa_operand *o)
{
	if (!is_constant(o))
		apply_second(code, m, SOFT_HOST_MOV, wide, reg, o);
	else if (wide)
		soft_host_set64(code, reg, constant_of(m, o));
	else
		soft_host_set32(code, reg, (uint32_t)constant_of(m, o));
}

/* rcx = a * b >> 32 */
static void emit_high_product(struct soft_code *code,
			      const struct soft_microop *m, const struct row *r)
{
	const struct isa_operand *o = m->u->in.opnd;

	/* r10 is last, for apply_second() uses it. */
	apply_second(code, m, r->op, r->wide, SOFT_RCX, &o[2]);
	apply_second(code, m, r->op, r->wide, SOFT_R10, &o[1]);
	soft_host_int_regs(code, SOFT_HOST_IMUL, true, SOFT_RCX, SOFT_R10);
	soft_host_shift_const(code, SOFT_HOST_SHR, SOFT_RCX, 32);
}

/* rcx = a, unless the relation that will be SCC does not hold: then b. */
static void emit_extreme(struct soft_code *code, const struct soft_microop *m,
			 const struct row *r)
{
	const struct isa_operand *o = m->u->in.opnd;
	const unsigned if_not = setcc[r->scc] ^ 1;

	load_source(code, m, false, SOFT_RCX, &o[1]);
	load_source(code, m, false, SOFT_R10, &o[2]);
	soft_host_int_regs(code, SOFT_HOST_CMP, false, SOFT_RCX, SOFT_R10);
	soft_host_int_regs(code, 0x0f40 | (if_not & 15), false, SOFT_RCX,
			   SOFT_R10);
}

static void emit_operation(struct soft_code *code, const struct soft_microop *m,
			   const struct row *r)
{
	const struct isa_operand *o = m->u->in.opnd;

	switch (r->kind) {
	case MOVE:
		load_source(code, m, r->wide, SOFT_RCX, &o[1]);
		break;
	case WITH_CARRY:
		soft_host_carry(code, scc_at());
		/* fall through */
	case BINARY:
		load_source(code, m, r->wide, SOFT_RCX, &o[1]);
		apply_second(code, m, r->op, r->wide, SOFT_RCX, &o[2]);
		break;
	case PRODUCT:
		load_source(code, m, false, SOFT_RCX, &o[1]);
		apply_second(code, m, SOFT_HOST_IMUL, false, SOFT_RCX, &o[2]);
		break;
	case PRODUCT_HIGH:
		emit_high_product(code, m, r);
		break;
	case SHIFT:
		load_source(code, m, false, SOFT_RCX, &o[2]);
		soft_host_shift(code, r->op, r->wide, soft_host_sgpr(o[1].reg));
		break;
	case COMPARE:
		load_source(code, m, r->wide, SOFT_RCX, &o[0]);
		apply_second(code, m, r->op, r->wide, SOFT_RCX, &o[1]);
		break;
	case CHOICE:
		soft_host_test_byte(code, scc_at());
		load_source(code, m, r->wide, SOFT_RCX, &o[1]);
		apply_second(code, m, SOFT_HOST_CMOVZ, r->wide, SOFT_RCX,
			     &o[2]);
		break;
	case EXTREME:
		emit_extreme(code, m, r);
		break;
	case INVERT:
		load_source(code, m, false, SOFT_RCX, &o[1]);
		soft_host_int_const(code, 0x33, SOFT_RCX, ~0u);
	}
}

void soft_native_scalar(struct soft_code *code, const struct soft_microop *m)
{
	const struct isa_operand *o = m->u->in.opnd;
	const struct row *r = &rows[m->u->in.op];

	emit_operation(code, m, r);
	if (r->scc != KEPT)
		soft_host_int(code, 0x0f00u | setcc[r->scc], 0, scc_at());
	if (r->kind == COMPARE || is_null(&o[0]))
		return;
	if (r->wide && r->kind != PRODUCT_HIGH)
		soft_host_int64(code, SOFT_HOST_PUT, SOFT_RCX,
				soft_host_sgpr(o[0].reg));
	else
		soft_host_int(code, SOFT_HOST_PUT, SOFT_RCX,
			      soft_host_sgpr(o[0].reg));
}
