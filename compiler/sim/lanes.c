/*
 * compiler/sim/lanes.c - evaluating address arithmetic on all lanes.
 */
#include <string.h>

#include "compiler/sim/sim_int.h"

void sim_lanes_init(struct sim_lanes *l, uint32_t id)
{
	memset(l, 0, sizeof(*l));
	l->id = id;
	for (uint32_t k = 0; k < SIM_LANES; k++)
		l->v[0][k] = k;
}

/* ---- operands ---- */

static uint32_t read_lane(const struct sim_lanes *l,
			  const struct isa_operand *o, int lane, int dword)
{
	switch (o->kind) {
	case ISA_K_VGPR:
		return o->reg + dword < 256 ? l->v[o->reg + dword][lane] : 0;
	case ISA_K_SGPR:
		return o->reg + dword < 128 ? l->s[o->reg + dword] : 0;
	case ISA_K_INLINE:
		return isa_inline_value(o->reg, o->type) >> 32 * dword;
	case ISA_K_LITERAL:
		return dword ? 0 : o->value;
	default:
		return 0;
	}
}

/* The k-th source; masks and carries are not sources here. */
static const struct isa_operand *find_source(const struct isa_inst *in, int k)
{
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (!(o->role & ISA_SRC) || o->slot == ISA_SLOT_CI ||
		    o->role & ISA_DST)
			continue;
		if (!k--)
			return o;
	}
	return NULL;
}

static uint32_t read_source(const struct sim_lanes *l,
			    const struct isa_inst *in, int k, int lane)
{
	const struct isa_operand *o = find_source(in, k);

	return o ? read_lane(l, o, lane, 0) : 0;
}

static uint64_t read_source64(const struct sim_lanes *l,
			      const struct isa_inst *in, int k, int lane)
{
	const struct isa_operand *o = find_source(in, k);

	return o ? read_lane(l, o, lane, 0) |
		   (uint64_t)read_lane(l, o, lane, 1) << 32 : 0;
}

/* ---- values ---- */

/* What 32-bit integer instructions make of their sources; false: unknown. */
static bool compute_int32(enum isa_op op, uint32_t a, uint32_t b, uint32_t c,
			  uint32_t *d)
{
	switch (op) {
	case ISA_v_mov_b32: case ISA_s_mov_b32:
		*d = a;
		return true;
	case ISA_v_add_nc_u32: case ISA_v_add_co_u32: case ISA_s_add_u32:
	case ISA_s_add_i32:
		*d = a + b;
		return true;
	case ISA_v_sub_nc_u32: case ISA_s_sub_u32: case ISA_s_sub_i32:
		*d = a - b;
		return true;
	case ISA_v_lshlrev_b32:
		*d = b << (a & 31);
		return true;
	case ISA_v_lshrrev_b32:
		*d = b >> (a & 31);
		return true;
	case ISA_v_ashrrev_i32:
		*d = (uint32_t)((int32_t)b >> (a & 31));
		return true;
	case ISA_s_lshl_b32:
		*d = a << (b & 31);
		return true;
	case ISA_s_lshr_b32:
		*d = a >> (b & 31);
		return true;
	case ISA_s_ashr_i32:
		*d = (uint32_t)((int32_t)a >> (b & 31));
		return true;
	case ISA_v_and_b32: case ISA_s_and_b32:
		*d = a & b;
		return true;
	case ISA_v_or_b32: case ISA_s_or_b32:
		*d = a | b;
		return true;
	case ISA_v_xor_b32: case ISA_s_xor_b32:
		*d = a ^ b;
		return true;
	case ISA_v_mul_u32_u24:
		*d = (a & 0xffffff) * (b & 0xffffff);
		return true;
	case ISA_v_mul_lo_u32: case ISA_s_mul_i32:
		*d = a * b;
		return true;
	case ISA_v_mad_u32_u24:
		*d = (a & 0xffffff) * (b & 0xffffff) + c;
		return true;
	case ISA_v_lshl_or_b32:
		*d = a << (b & 31) | c;
		return true;
	case ISA_v_lshl_add_u32:
		*d = (a << (b & 31)) + c;
		return true;
	case ISA_v_add_lshl_u32:
		*d = (a + b) << (c & 31);
		return true;
	case ISA_v_and_or_b32:
		*d = (a & b) | c;
		return true;
	case ISA_v_add3_u32:
		*d = a + b + c;
		return true;
	case ISA_v_or3_b32:
		*d = a | b | c;
		return true;
	case ISA_v_bfe_u32:
		*d = a >> (b & 31) & ((1u << (c & 31)) - 1);
		return true;
	default:
		return false;
	}
}

static void store_lane(struct sim_lanes *l, const struct isa_operand *o,
		       int lane, uint64_t value)
{
	for (int d = 0; d < o->dwords; d++, value >>= 32) {
		if (o->kind == ISA_K_VGPR && o->reg + d < 256)
			l->v[o->reg + d][lane] = (uint32_t)value;
		else if (o->kind == ISA_K_SGPR && o->reg + d < 128)
			l->s[o->reg + d] = (uint32_t)value;
	}
}

static uint64_t compute_value(struct sim_lanes *l, const struct isa_inst *in,
			      int lane)
{
	uint32_t a = read_source(l, in, 0, lane),
		 b = read_source(l, in, 1, lane), d = 0;

	switch (in->op) {
	case ISA_v_lshlrev_b64:
		return read_source64(l, in, 1, lane) << (a & 63);
	case ISA_s_lshl_b64:
		return read_source64(l, in, 0, lane) << (b & 63);
	case ISA_s_mov_b64:
		return read_source64(l, in, 0, lane);
	case ISA_v_add_co_ci_u32: case ISA_s_addc_u32:
		d = a + b + l->carry[lane];
		return d;
	default:
		compute_int32(in->op, a, b, read_source(l, in, 2, lane), &d);
		return d;
	}
}

/* ---- instructions ---- */

static bool writes_vgpr(const struct isa_inst *in)
{
	return in->n_opnd && in->opnd[0].kind == ISA_K_VGPR;
}

static void exec_value(struct sim_lanes *l, const struct isa_inst *in)
{
	int n = writes_vgpr(in) ? SIM_LANES : 1;

	for (int lane = 0; lane < n; lane++) {
		uint32_t a = read_source(l, in, 0, lane);
		uint64_t v = compute_value(l, in, lane);

		if (in->op == ISA_v_add_co_u32 || in->op == ISA_s_add_u32)
			l->carry[lane] = (uint32_t)v < a;
		store_lane(l, &in->opnd[0], lane, v);
	}
}

/* Loaded scalars: pointers far apart, in pairs of registers. */
static void exec_smem(struct sim_lanes *l, const struct isa_operand *o)
{
	for (int d = 0; d < o->dwords && o->reg + d < 128; d++)
		l->s[o->reg + d] = d & 1 ? ++l->region << 8 | (l->id & 255)
					 : 0;
}

static bool is_known(enum isa_op op)
{
	uint32_t d;

	switch (op) {
	case ISA_v_lshlrev_b64: case ISA_s_lshl_b64: case ISA_s_mov_b64:
	case ISA_v_add_co_ci_u32: case ISA_s_addc_u32:
		return true;
	default:
		return compute_int32(op, 0, 0, 0, &d);
	}
}

void sim_lanes_exec(struct sim_lanes *l, const struct isa_inst *in)
{
	if (!in->n_opnd || !(in->opnd[0].role & ISA_DST) || in->op_y)
		return;
	if (isa_op_info(in->op)->pipe == ISA_PIPE_SMEM)
		exec_smem(l, &in->opnd[0]);
	else if (is_known(in->op))
		exec_value(l, in);
}

static uint64_t lane_address(const struct sim_lanes *l,
			     const struct isa_inst *in, int lane)
{
	const struct isa_operand *v = sim_operand(in, ISA_SLOT_VADDR);
	const struct isa_operand *s = sim_operand(in, ISA_SLOT_SADDR);
	uint64_t at = in->f[ISA_F_OFFSET];

	if (v && v->kind == ISA_K_VGPR)
		at += read_lane(l, v, lane, 0);
	if (v && v->kind == ISA_K_VGPR && v->dwords > 1)
		at += (uint64_t)read_lane(l, v, lane, 1) << 32;
	if (s && s->kind == ISA_K_SGPR && s->reg < 127)
		at += l->s[s->reg] | (uint64_t)l->s[s->reg + 1] << 32;
	return at;
}

uint32_t sim_access_bytes(const struct isa_inst *in)
{
	uint32_t bytes = 4;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->kind == ISA_K_VGPR && o->slot != ISA_SLOT_VADDR &&
		    o->dwords * 4u > bytes)
			bytes = o->dwords * 4u;
	}
	return bytes;
}

void sim_lanes_access(struct sim_lanes *l, const struct isa_inst *in,
		      struct sim_step *out)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	bool lds = op->pipe == ISA_PIPE_LDS;

	if (!(op->flags & (ISA_LOAD | ISA_STORE | ISA_ATOMIC)) ||
	    !sim_operand(in, ISA_SLOT_VADDR) ||
	    (op->pipe != ISA_PIPE_VMEM && !lds))
		return;
	out->kind = lds ? TRACE_LDS : TRACE_MEMORY;
	out->access_bytes = sim_access_bytes(in);
	out->access = l->access;
	for (int lane = 0; lane < SIM_LANES; lane++) {
		l->access[lane].lane = (int16_t)lane;
		l->access[lane].at = lane_address(l, in, lane);
	}
	out->n_accesses = SIM_LANES;
}
