/*
 * kfd/soft/exec/fast/native_cross.c - what moves lanes at will, as host code.
 *
 * Of a wave32 where lanes are named by scalars.  Registers that hold a vreg
 * have lanes 0 to 15 in the first zmm, 16 to 31 in the second.
 */
#include "kfd/soft/exec/fast/native.h"

enum kind { NONE, BPERMUTE, SWIZZLE, PERMLANE, READ, READ_FIRST, WRITE };

/* A register that host code may read and write. */
static bool is_sgpr(const struct isa_operand *o)
{
	return o->kind == ISA_K_SGPR &&
	       (o->reg < ISA_R_TTMP0 || o->reg == ISA_R_M0);
}

static bool is_constant(const struct isa_operand *o)
{
	return o->kind == ISA_K_INLINE || o->kind == ISA_K_LITERAL;
}

/* Of the handlers' instructions: operands are scalar, VGPR, lane. */
static enum kind kind_of_call(const struct isa_inst *in)
{
	const struct isa_operand *o = in->opnd;

	switch (in->op) {
	case ISA_v_readfirstlane_b32:
		return is_sgpr(&o[0]) && o[1].kind == ISA_K_VGPR ? READ_FIRST :
								   NONE;
	case ISA_v_readlane_b32:
		return is_sgpr(&o[0]) &&
				       (is_sgpr(&o[2]) || is_constant(&o[2])) ?
			       READ :
			       NONE;
	case ISA_v_writelane_b32: /* VGPR, scalar, lane */
		return is_sgpr(&o[1]) && is_constant(&o[2]) ? WRITE : NONE;
	}
	return NONE;
}

static enum kind kind_of(const struct soft_microop *m)
{
	const struct soft_cross_microops *f = soft_simd()->cross;
	const struct isa_operand *o = m->u->in.opnd;

	if (m->fn == f->bpermute)
		return BPERMUTE;
	if (m->fn == f->swizzle)
		return SWIZZLE;
	if (m->fn == f->permlane)
		return is_sgpr(&o[2]) && is_sgpr(&o[3]) ? PERMLANE : NONE;
	return m->fn == soft_microop_checked && m->imm == SOFT_LANES ?
		       kind_of_call(&m->u->in) :
		       NONE;
}

bool soft_native_is_cross(const struct soft_microop *m)
{
	return kind_of(m) != NONE;
}

bool soft_native_crosses_all(const struct soft_microop *m)
{
	return kind_of(m) == PERMLANE && !m->part;
}

/* ---------------------------------------------------------- lanes of VGPRs
 * ---- */

/* Pair t: lane i is the one of pair s that lane i of pair `from` names. */
static void take_lanes(struct soft_native_run *r, int t, int from, int s)
{
	for (int i = 0; i < 2; i++) {
		const int z = 2 * t + i;

		soft_host_op(r->code, SOFT_HOST_MOVD, z, 0, 0, 2 * from + i, 0);
		soft_host_op(r->code, SOFT_HOST_PERMI2D, z, 0, 2 * s, 2 * s + 1,
			     0);
	}
}

/* The vreg of b; where a lane that does not execute is read, as 0. */
static int load_source(struct soft_native_run *r, const struct soft_microop *m)
{
	const int s = soft_native_load(r, soft_native_vreg(r, m->half, m->b));

	return r->masked ? soft_native_active(r, s) : s;
}

static void emit_bpermute(struct soft_native_run *r,
			  const struct soft_microop *m, int t)
{
	const int addr =
		soft_native_load(r, soft_native_vreg(r, m->half, m->a));
	const int s = load_source(r, m);

	for (int i = 0; i < 2; i++) {
		const int u = 2 * SOFT_PAIR_U + i;
		int from = 2 * addr + i;

		if (m->imm) {
			soft_host_set32(r->code, SOFT_RCX, m->imm);
			soft_host_op(r->code, SOFT_HOST_BROADCAST_INT, u, 0, 0,
				     SOFT_RCX, 0);
			soft_host_op(r->code, SOFT_HOST_ADDD, u, 0, u, from, 0);
			from = u;
		}
		soft_host_op(r->code, SOFT_HOST_SRLD, u, 0, 0, from, 2);
	}
	take_lanes(r, t, SOFT_PAIR_U, s);
}

static void emit_swizzle(struct soft_native_run *r,
			 const struct soft_microop *m, int t)
{
	const int from = soft_native_load(
		r, soft_native_vreg(r, SOFT_BASE_ABSOLUTE, m->a));

	take_lanes(r, t, from, load_source(r, m));
}

/* Nibble i of two SGPRs is what lane i of each row of 16 reads. */
static void emit_permlane(struct soft_native_run *r,
			  const struct soft_microop *m, int t)
{
	const struct isa_operand *o = m->u->in.opnd;
	const int s = soft_native_load(r, soft_native_vreg(r, m->half, m->b));
	const int u = 2 * SOFT_PAIR_U, other = m->imm ? 1 : 0;

	soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD, u, 0, 0,
			 soft_host_sgpr(o[2].reg), false, 0);
	soft_host_kset16(r->code, SOFT_K_N, 0xff00);
	soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD, u, SOFT_K_N, 0,
			 soft_host_sgpr(o[3].reg), false, 0);
	soft_host_op_mem(r->code, SOFT_HOST_SRLVD, u, 0, u,
			 soft_native_at(SOFT_NATIVE_NIBBLE_SHIFTS), false, 0);
	for (int i = 0; i < 2; i++)
		soft_host_op(r->code, SOFT_HOST_PERMD, 2 * t + i, 0, u,
			     2 * s + (i ^ other), 0);
}

/* --------------------------------------------------- one lane and an SGPR ----
 */

/* A lane of a VGPR in memory: rcx has 4 times its number. */
static struct soft_host_mem lane_of_rcx(struct soft_native_run *r, unsigned reg)
{
	struct soft_host_mem m = soft_native_vreg(r, 0, reg * SOFT_VREG_BYTES);

	soft_host_int_regs(r->code, SOFT_HOST_ADD, true, SOFT_RCX, m.base);
	m.base = SOFT_RCX;
	return m;
}

static struct soft_host_mem lane_at(struct soft_native_run *r, unsigned reg,
				    uint32_t lane)
{
	struct soft_host_mem m = soft_native_vreg(r, 0, reg * SOFT_VREG_BYTES);

	m.offset += (int32_t)(4 * (lane % SOFT_LANES));
	return m;
}

/* rcx = 4 * (SGPR % 32) */
static void scale_lane(struct soft_native_run *r)
{
	soft_host_int_const(r->code, SOFT_HOST_AND, SOFT_RCX, SOFT_LANES - 1);
	soft_host_shift_const(r->code, SOFT_HOST_SHL, SOFT_RCX, 2);
}

static void emit_read(struct soft_native_run *r, const struct soft_microop *m,
		      enum kind kind)
{
	const struct isa_operand *o = m->u->in.opnd;
	struct soft_host_mem from;

	if (kind == READ && is_constant(&o[2])) {
		from = lane_at(
			r, o[1].reg,
			(uint32_t)soft_read_scalar(NULL, &o[2], &m->u->in));
	} else if (kind == READ) {
		soft_host_int(r->code, SOFT_HOST_MOV, SOFT_RCX,
			      soft_host_sgpr(o[2].reg));
		scale_lane(r);
		from = lane_of_rcx(r, o[1].reg);
	} else if (r->masked) {
		/* The number of none is 32, which counts as 0. */
		soft_host_tzcnt(r->code, SOFT_RCX,
				soft_host_sgpr(ISA_R_EXEC_LO));
		scale_lane(r);
		from = lane_of_rcx(r, o[1].reg);
	} else {
		from = lane_at(r, o[1].reg, 0);
	}
	soft_host_int(r->code, SOFT_HOST_MOV, SOFT_RCX, from);
	soft_host_int(r->code, SOFT_HOST_PUT, SOFT_RCX,
		      soft_host_sgpr(o[0].reg));
}

/* In registers, too, so that what follows does not wait for memory. */
static void emit_write(struct soft_native_run *r, const struct soft_microop *m)
{
	const struct isa_operand *o = m->u->in.opnd;
	const uint32_t lane =
		(uint32_t)soft_read_scalar(NULL, &o[2], &m->u->in) % SOFT_LANES;
	const struct soft_host_mem vreg =
		soft_native_vreg(r, 0, o[0].reg * SOFT_VREG_BYTES);
	const int t = soft_native_load(r, vreg), i = lane / 16;

	soft_host_kset16(r->code, SOFT_K_N, 1u << lane % 16);
	soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD, 2 * t + i, SOFT_K_N, 0,
			 soft_host_sgpr(o[1].reg), false, 0);
	soft_host_op_mem(r->code, SOFT_HOST_STORED, 2 * t + i, 0, 0,
			 soft_native_half(vreg, i), false, 0);
}

void soft_native_cross(struct soft_native_run *r, const struct soft_microop *m)
{
	const enum kind kind = kind_of(m);
	int t;

	if (kind >= READ) {
		if (kind == WRITE)
			emit_write(r, m);
		else
			emit_read(r, m, kind);
		return;
	}
	soft_native_exec(r, m->half);
	t = soft_native_take(r);
	(kind == BPERMUTE ? emit_bpermute :
	 kind == SWIZZLE  ? emit_swizzle :
			    emit_permlane)(r, m, t);
	soft_native_put(r, t, soft_native_vreg(r, m->half, m->d));
}
