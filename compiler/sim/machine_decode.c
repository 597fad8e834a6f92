/*
 * compiler/sim/machine_decode.c - form, operands and registers of an
 * instruction.
 */
#include "compiler/sim/machine_int.h"

static bool in_v32(enum isa_op op)
{
	switch (op) {
#define V(name, expr) case ISA_##name:
#define F(name, expr) case ISA_##name:
#include "compiler/sim/machine.def"
		return true;
	default:
		return false;
	}
}

static enum machine_form form_of(enum isa_op op, const struct isa_op_info *info)
{
	if (info->pipe == ISA_PIPE_BRANCH)
		return MACHINE_JUMP;
	if (info->pipe == ISA_PIPE_SMEM)
		return MACHINE_SMEM;
	if (info->pipe == ISA_PIPE_VMEM || info->pipe == ISA_PIPE_LDS ||
	    info->pipe == ISA_PIPE_FLAT)
		return MACHINE_MEMORY;
	if (in_v32(op))
		return MACHINE_V32;
	switch (op) {
#define W(name, expr) case ISA_##name:
#include "compiler/sim/machine.def"
		return MACHINE_V64;
#define C(name, type, expr) case ISA_v_cmp_##name: case ISA_v_cmpx_##name:
#include "compiler/sim/machine.def"
		return MACHINE_CMP;
#define S(name, value, scc) case ISA_##name:
#define T(name, scc) case ISA_##name:
#include "compiler/sim/machine.def"
		return MACHINE_SCALAR;
#define E(name, expr) \
	case ISA_s_##name##_saveexec_b32: case ISA_s_##name##_saveexec_b64:
#include "compiler/sim/machine.def"
		return MACHINE_SAVEEXEC;
	case ISA_v_add_co_u32: case ISA_v_sub_co_u32: case ISA_v_subrev_co_u32:
	case ISA_v_add_co_ci_u32: case ISA_v_sub_co_ci_u32:
	case ISA_v_subrev_co_ci_u32:
		return MACHINE_CARRY;
	case ISA_v_cndmask_b32:
		return MACHINE_CNDMASK;
	case ISA_v_readfirstlane_b32: case ISA_v_readlane_b32:
		return MACHINE_READLANE;
	case ISA_v_writelane_b32:
		return MACHINE_WRITELANE;
	case ISA_s_getpc_b64:
		return MACHINE_GETPC;
	case ISA_s_swappc_b64: case ISA_s_setpc_b64:
		return MACHINE_JUMP;
	default:
		return info->pipe == ISA_PIPE_SPECIAL ? MACHINE_WAIT
						      : MACHINE_FORGET;
	}
}

/* Operands of a half, by what they are for. */
static void find_operands(struct machine_half *h, const struct isa_inst *in,
			  int from, int to)
{
	h->dst = h->mask_in = h->mask_out = MACHINE_NONE;
	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->slot == ISA_SLOT_CO || o->slot == ISA_SLOT_CD)
			h->mask_out = (uint8_t)i;
		else if (o->slot == ISA_SLOT_CI)
			h->mask_in = (uint8_t)i;
		else if (o->role & ISA_DST)
			h->dst = (uint8_t)i;
		else if (h->n_src < MACHINE_SOURCES)
			h->src[h->n_src++] = (uint8_t)i;
	}
}

/* Modifiers of integers and parts of registers are not evaluated. */
static bool is_evaluable(const struct isa_inst *in)
{
	if (in->form != ISA_FORM_PLAIN || in->f[ISA_F_CLAMP] ||
	    in->f[ISA_F_OMOD])
		return false;
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].mods & ~(ISA_M_NEG | ISA_M_ABS))
			return false;
	return true;
}

/* What is written beyond the registers that the wave has stays unknown. */
static void add_register(struct machine_half *h, bool vgpr, int vgprs, int role,
			 int reg, int n)
{
	if (reg + n > (vgpr ? 256 : 128))
		return;
	if (role & ISA_SRC)
		machine_add_bits(vgpr ? h->need_v : h->need_s, reg, n);
	if (vgpr && reg + n > vgprs)
		n = vgprs - reg;
	if (role & ISA_DST)
		machine_add_bits(vgpr ? h->kill_v : h->kill_s, reg, n);
}

static void find_known_registers(struct machine_half *h,
				 const struct isa_inst *in,
				 const struct isa_target *t, int vgprs)
{
	struct isa_use u;

	isa_use(t, in, &u);
	h->need_scc = u.scc_read;
	h->kill_scc = u.scc_write;
	for (int k = 0; k < u.n; k++)
		add_register(h, u.reg[k].file == ISA_K_VGPR, vgprs,
			     u.reg[k].role, u.reg[k].reg, u.reg[k].count);
}

/* Of a half of VOPD, which exists for wave32 only. */
static void find_half_registers(struct machine_half *h,
				const struct isa_inst *in, int vgprs, int from,
				int to)
{
	machine_add_bits(h->need_s, ISA_R_EXEC_LO, 1);
	if (h->op == ISA_v_cndmask_b32)
		machine_add_bits(h->need_s, ISA_R_VCC_LO, 1);
	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->kind == ISA_K_VGPR ||
		    (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL))
			add_register(h, o->kind == ISA_K_VGPR, vgprs, o->role,
				     o->reg, o->dwords);
	}
}

bool machine_evaluates(enum machine_form f)
{
	return f != MACHINE_FORGET && f != MACHINE_WAIT &&
	       f != MACHINE_MEMORY && f != MACHINE_JUMP;
}

static void find_forms(struct machine_op *o, const struct isa_target *t,
		       int vgprs)
{
	const struct isa_inst *in = &o->in;
	const struct isa_op_info *info = isa_op_info(in->op);
	int x = in->op_y ? in->n_opnd_x : in->n_opnd;

	o->end = (info->flags & ISA_END) != 0;
	o->form = form_of(in->op, info);
	o->x.op = in->op;
	o->x.form = o->form;
	find_operands(&o->x, in, 0, x);
	if (!in->op_y)
		find_known_registers(&o->x, in, t, vgprs);
	if (in->op_y) {
		o->dual = true;
		o->y.op = in->op_y;
		o->y.form = form_of(in->op_y, isa_op_info(in->op_y));
		find_operands(&o->y, in, x, in->n_opnd);
		find_half_registers(&o->x, in, vgprs, 0, x);
		find_half_registers(&o->y, in, vgprs, x, in->n_opnd);
		o->form = MACHINE_V32;
	}
	if (machine_evaluates(o->form) && !is_evaluable(in))
		o->form = o->x.form = o->y.form = MACHINE_FORGET;
}

struct machine_op *machine_fetch(struct machine_code *c, uint64_t pc,
				 struct err *e)
{
	uint64_t off = pc - c->va;
	struct isa_target t = { c->gen, c->wave_size, false };

	if (pc < c->va || off >= c->size_bytes || off % 4) {
		err_set(e, ERR_INPUT, "a wave goes to 0x%llx, outside its code",
			(unsigned long long)pc);
		return NULL;
	}
	struct machine_op *o = &c->op[off / 4];
	if (o->form != MACHINE_NEW)
		return o;
	const char *why = isa_decode(&t, c->code + off, c->size_bytes - off,
				     &o->in);
	if (why) {
		err_set(e, ERR_INPUT, "no instruction at offset %llu: %s",
			(unsigned long long)off, why);
		return NULL;
	}
	find_forms(o, &t, c->vgprs);
	return o;
}
