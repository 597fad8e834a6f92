/*
 * isa/code/reg_use.c - which registers an instruction reads and writes: its
 * operands, and the implicit ones that its row and its encoding name.
 */
#include <string.h>

#include "isa/code/code.h"

static void add_use(struct isa_use *u, uint8_t file, uint8_t role, uint16_t reg,
		    uint16_t count)
{
	if (!count)
		return;
	u->reg[u->n].file = file;
	u->reg[u->n].role = role;
	u->reg[u->n].halves = ISA_HALF_BOTH;
	u->reg[u->n].reg = reg;
	u->reg[u->n].count = count;
	u->n++;
}

/* Vector instructions read EXEC, except those that name their lane. */
static bool reads_exec(enum isa_op id)
{
	if (id == ISA_v_readlane_b32 || id == ISA_v_writelane_b32)
		return false;
	switch (isa_op_info(id)->fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
	case ISA_FMT_SMEM:
		return false;
	default:
		return true;
	}
}

/* Which half of its register a memory instruction loads or stores. */
static uint8_t memory_halves(const struct isa_op_info *op,
			     const struct isa_operand *o)
{
	/* Loads that are not D16 extend to 32 bits. */
	if (isa_type_info(o->type)->count != 1 ||
	    isa_type_info(o->type)->bits > 16 ||
	    (o->role & ISA_DST && !(op->flags & ISA_RD)) ||
	    op->flags & ISA_ATOMIC)
		return ISA_HALF_BOTH;
	return op->flags & ISA_HI ? ISA_HALF_HIGH : ISA_HALF_LOW;
}

static uint8_t halves_of(const struct isa_inst *in, const struct isa_operand *o)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	const uint8_t chosen = o->mods & ISA_M_HI ? ISA_HALF_HIGH :
						    ISA_HALF_LOW;

	if (in->gen < ISA_GFX11 || o->dwords != 1)
		return ISA_HALF_BOTH;
	if (op->flags & (ISA_LOAD | ISA_STORE | ISA_ATOMIC))
		return memory_halves(op, o);
	if (!isa_fmt_is_valu(in->fmt))
		return ISA_HALF_BOTH;
	if (o->type == ISA_T_MIX)
		return o->mods & ISA_M_HI_HI ? chosen : ISA_HALF_BOTH;
	if (in->op == ISA_v_fma_mixhi_f16 && o->role & ISA_DST)
		return ISA_HALF_HIGH;
	return isa_type_is_half(o->type) ? chosen : ISA_HALF_BOTH;
}

/*
 * DPP keeps the destination in lanes that masks or a missing source exclude, and
 * SDWA may keep the rest of a register.
 */
static bool keeps_lanes(const struct isa_inst *in)
{
	if (in->form == ISA_FORM_SDWA)
		return in->sdwa.dst_unused == ISA_SDWA_PRESERVE &&
		       in->sdwa.dst_sel != ISA_SDWA_DWORD;
	return in->form == ISA_FORM_DPP16 &&
	       (!in->dpp.bound_ctrl || in->dpp.row_mask != 15 ||
		in->dpp.bank_mask != 15);
}

static void add_special(struct isa_use *u, int reg, int lanes)
{
	if (reg == ISA_R_VCCZ)
		add_use(u, ISA_K_SGPR, ISA_SRC, ISA_R_VCC_LO, lanes);
	else if (reg == ISA_R_EXECZ)
		add_use(u, ISA_K_SGPR, ISA_SRC, ISA_R_EXEC_LO, lanes);
	else if (reg == ISA_R_SCC)
		u->scc_read = true;
}

void isa_use(const struct isa_target *t, const struct isa_inst *in,
	     struct isa_use *u)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	uint32_t flags = op->flags | isa_op_info(in->op_y)->flags;
	int lanes = t->wave / 32;
	int exec = reads_exec(in->op) ? ISA_SRC : 0;
	int vcc = 0;

	memset(u, 0, sizeof(*u));
	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		int role = o->role;

		if (flags & ISA_SWAP ||
		    (role == ISA_DST && o->kind == ISA_K_VGPR &&
		     keeps_lanes(in)))
			role = ISA_DST | ISA_SRC;
		if (o->kind == ISA_K_VGPR && o->dwords) {
			add_use(u, ISA_K_VGPR, role, o->reg, o->dwords);
			u->reg[u->n - 1].halves = halves_of(in, o);
		} else if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL) {
			add_use(u, ISA_K_SGPR, role, o->reg, o->dwords);
		} else if (o->kind == ISA_K_SPECIAL) {
			add_special(u, o->reg, lanes);
		}
	}
	vcc |= flags & ISA_RVCC ? ISA_SRC : 0;
	vcc |= flags & ISA_WVCC ? ISA_DST : 0;
	exec |= flags & ISA_REXEC ? ISA_SRC : 0;
	exec |= flags & ISA_WEXEC ? ISA_DST : 0;
	if (vcc)
		add_use(u, ISA_K_SGPR, vcc, ISA_R_VCC_LO, lanes);
	if (exec)
		add_use(u, ISA_K_SGPR, exec, ISA_R_EXEC_LO, lanes);
	if (flags & ISA_RM0)
		add_use(u, ISA_K_SGPR, ISA_SRC, ISA_R_M0, 1);
	u->scc_read |= (flags & ISA_RSCC) != 0;
	u->scc_write = (flags & ISA_WSCC) != 0;
}
