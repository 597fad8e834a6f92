/*
 * compiler/sim/info.c - decoded facts of an instruction, once per address, from
 * its row, its operands and the cost model.
 */
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/sim_int.h"

static const struct {
	uint8_t kind, pipe;
} of_pipe[ISA_PIPE_COUNT] = {
	[ISA_PIPE_SALU] = { KIND_SALU, SIM_PIPE_SALU },
	[ISA_PIPE_SMEM] = { KIND_SMEM, SIM_PIPE_SMEM },
	[ISA_PIPE_VALU] = { KIND_VALU, SIM_PIPE_VALU },
	[ISA_PIPE_VALU64] = { KIND_VALU, SIM_PIPE_VALU },
	[ISA_PIPE_QUARTER] = { KIND_VALU, SIM_PIPE_VALU },
	[ISA_PIPE_TRANS] = { KIND_VALU, SIM_PIPE_TRANS },
	[ISA_PIPE_TRANS64] = { KIND_VALU, SIM_PIPE_VALU },
	[ISA_PIPE_DOUBLE] = { KIND_VALU, SIM_PIPE_VALU },
	[ISA_PIPE_WMMA] = { KIND_VALU, SIM_PIPE_WMMA },
	[ISA_PIPE_LDS] = { KIND_LDS, SIM_PIPE_LDS },
	[ISA_PIPE_LDSDIR] = { KIND_LDS, SIM_PIPE_LDS },
	[ISA_PIPE_FLAT] = { KIND_VMEM, SIM_PIPE_VMEM },
	[ISA_PIPE_VMEM] = { KIND_VMEM, SIM_PIPE_VMEM },
	[ISA_PIPE_EXPORT] = { KIND_EXPORT, SIM_PIPE_EXPORT },
	[ISA_PIPE_BRANCH] = { KIND_BRANCH, SIM_PIPE_BRANCH },
	[ISA_PIPE_MSG] = { KIND_SPECIAL, SIM_PIPE_SPECIAL },
	[ISA_PIPE_SPECIAL] = { KIND_SPECIAL, SIM_PIPE_SPECIAL },
};

static void add_vgpr(struct info *i, int role, int reg, int n)
{
	if (role & ISA_SRC && i->n_vsrc < ARRAY_SIZE(i->vsrc)) {
		i->vsrc[i->n_vsrc].reg = (uint8_t)reg;
		i->vsrc[i->n_vsrc++].n = (uint8_t)n;
	}
	if (role & ISA_DST && i->n_vdst < ARRAY_SIZE(i->vdst)) {
		i->vdst[i->n_vdst].reg = (uint8_t)reg;
		i->vdst[i->n_vdst++].n = (uint8_t)n;
	}
}

static void add_sgpr(struct info *i, int role, int reg, int n)
{
	if (reg + n > SIM_SGPRS)
		return;
	if (role & ISA_SRC && i->n_ssrc < ARRAY_SIZE(i->ssrc)) {
		i->ssrc[i->n_ssrc].reg = (uint8_t)reg;
		i->ssrc[i->n_ssrc++].n = (uint8_t)n;
	}
	if (role & ISA_DST && i->n_sdst < ARRAY_SIZE(i->sdst)) {
		i->sdst[i->n_sdst].reg = (uint8_t)reg;
		i->sdst[i->n_sdst++].n = (uint8_t)n;
	}
}

static void find_registers(struct info *i, const struct isa_target *t)
{
	struct isa_use u;

	isa_use(t, &i->in, &u);
	for (int k = 0; k < u.n; k++) {
		if (u.reg[k].file == ISA_K_VGPR)
			add_vgpr(i, u.reg[k].role, u.reg[k].reg,
				 u.reg[k].count);
		/* EXEC is everybody's source and seldom written: it counts
		 * where it is written by the vector ALU (v_cmpx). */
		else
			add_sgpr(i, u.reg[k].role, u.reg[k].reg,
				 u.reg[k].count);
	}
	add_sgpr(i, (u.scc_read ? ISA_SRC : 0) | (u.scc_write ? ISA_DST : 0),
		 SIM_SCC, 1);
}

/*
 * Sources of one instruction that lie in one bank: each position (SRC0, SRC1,
 * SRC2) has a port of its own on every bank, so plain instructions have no
 * conflict; pairs of a VOPD share a position's port.
 */
static uint8_t vopd_stall(const struct sim *s, const struct isa_inst *in)
{
	int banks = (int)cost_value(s->m, COST_VALU_BANKS), conflicts = 0;

	for (int x = 0; x < in->n_opnd_x; x++)
		for (int y = in->n_opnd_x; y < in->n_opnd; y++)
			conflicts += in->opnd[x].role & in->opnd[y].role &
				     ISA_SRC &&
				     in->opnd[x].kind == ISA_K_VGPR &&
				     in->opnd[y].kind == ISA_K_VGPR &&
				     in->opnd[x].slot == in->opnd[y].slot &&
				     in->opnd[x].reg != in->opnd[y].reg &&
				     in->opnd[x].reg % banks ==
				     in->opnd[y].reg % banks;
	return (uint8_t)(conflicts * cost_value(s->m, COST_VOPD_BANK));
}

/* A, B and C that all begin in one bank (traces: 34 instead of 32). */
static uint8_t wmma_stall(const struct sim *s, const struct isa_inst *in)
{
	int banks = (int)cost_value(s->m, COST_VALU_BANKS), reg[3], n = 0;

	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].kind == ISA_K_VGPR &&
		    in->opnd[i].role & ISA_SRC && n < 3)
			reg[n++] = in->opnd[i].reg;
	if (n < 3 || reg[0] == reg[1] || reg[0] % banks != reg[1] % banks ||
	    reg[0] % banks != reg[2] % banks)
		return 0;
	return (uint8_t)cost_value(s->m, COST_WMMA_BANK);
}

/* Dwords of a lane that an LDS instruction moves: its widest operand. */
static int lds_dwords(const struct isa_inst *in)
{
	int n = 1;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		bool data = o->role & ISA_DST || o->slot == ISA_SLOT_DATA0 ||
			    o->slot == ISA_SLOT_DATA1;

		if (o->kind == ISA_K_VGPR && data && o->dwords > n)
			n = o->dwords;
	}
	return n;
}

/*
 * Cycles in which the VGPR read path is busy: one for the address, one per
 * dword of data (names of trace packets: LDS_WR_2 for b32, LDS_WR_5 for b128).
 */
static int export_cycles(const struct info *i)
{
	int dwords = 0;

	for (int k = 0; k < i->n_vsrc; k++)
		dwords += i->vsrc[k].n;
	return dwords ? dwords : 1;
}

static void find_memory(struct info *i, uint32_t flags)
{
	i->atomic = (flags & ISA_ATOMIC) != 0;
	i->store = (flags & ISA_STORE) != 0;
	i->load = !i->store && (!i->atomic || i->n_vdst);
	i->lds_dwords = (uint8_t)lds_dwords(&i->in);
	i->export_cycles = (uint8_t)export_cycles(i);
}

static void find_wmma(const struct sim *s, struct info *i)
{
	i->wmma = true;
	i->bank_stall = wmma_stall(s, &i->in);
	for (int k = 0; k < i->n_vsrc; k++)
		if (i->n_vdst && i->vsrc[k].reg == i->vdst[0].reg &&
		    i->vsrc[k].n == i->vdst[0].n)
			i->accum = (uint8_t)k;
}

static void find_costs(const struct sim *s, struct info *i)
{
	i->latency = (uint32_t)(cost_latency(s->m, &i->in) + 0.5);
	i->issue = (uint32_t)(cost_issue(s->m, &i->in) + 0.5);
	if (!i->issue)
		i->issue = 1;
	if (i->kind == KIND_VALU)
		i->start = (uint8_t)sim_cycles(s, i->n_vsrc
					       ? COST_VALU_START_VGPR
					       : COST_VALU_START);
	i->trans = i->class == COST_CLASS_TRANS;
	if (i->in.op_y)
		i->bank_stall = vopd_stall(s, &i->in);
}

static uint32_t field_of(const struct isa_fmt_info *f, uint64_t word,
			 enum isa_field field)
{
	for (int i = 0; i < f->n_fields; i++)
		if (f->field[i].field == field)
			return (uint32_t)(word >> f->field[i].low &
					  ((1u << f->field[i].width) - 1));
	return 0;
}

static bool is_vector_format(int fmt)
{
	return fmt == ISA_FMT_VOP1 || fmt == ISA_FMT_VOP2 ||
	       fmt == ISA_FMT_VOP3 || fmt == ISA_FMT_VOP3P ||
	       fmt == ISA_FMT_VOP3SD || fmt == ISA_FMT_VOPC ||
	       fmt == ISA_FMT_VOPD || fmt == ISA_FMT_VINTERP;
}

/* Only the operation, where operands are nonsense: no registers. */
static bool decode_op(enum isa_gen gen, const uint8_t *code, size_t left,
		      struct isa_inst *in)
{
	uint64_t word = 0;

	memcpy(&word, code, left < 8 ? left : 8);
	for (int fmt = 1; fmt < ISA_FMT_COUNT; fmt++) {
		const struct isa_fmt_info *f =
			isa_fmt_info(isa_layout(gen, fmt));

		if (((uint32_t)word & f->mask) != f->bits ||
		    left < f->dwords * 4u)
			continue;
		memset(in, 0, sizeof(*in));
		in->fmt = (uint8_t)fmt;
		in->gen = (uint8_t)gen;
		in->size_bytes = (uint8_t)(f->dwords * 4);
		in->op = (uint16_t)isa_op_at(gen, fmt, (int)
					     field_of(f, word, ISA_F_OP));
		/* An encoding that the tables do not know: its format says
		 * which unit something executes in. */
		if (in->op == ISA_OP_NONE)
			in->op = is_vector_format(fmt) ? ISA_v_nop : ISA_s_nop;
		return true;
	}
	return false;
}

const char *sim_decode(const uint8_t *code, size_t left, struct isa_target *t,
		       struct isa_inst *in)
{
	/* Recorded programs set fields that hardware does not look at, and try
	 * what only a later chip knows. */
	const enum isa_gen gen = t->gen;
	const struct isa_target tries[] = {
		{ gen, 32, false }, { gen, 32, true },
		{ gen == ISA_GFX11 ? ISA_GFX11_5 : gen, 32, true },
	};
	const char *why = NULL;

	for (size_t k = 0; k < ARRAY_SIZE(tries); k++) {
		int wave = t->wave;

		*t = tries[k];
		t->wave = wave;
		const char *no = isa_decode(t, code, left, in);
		if (!no)
			return NULL;
		why = why ? why : no;
	}
	return decode_op(gen, code, left, in) ? NULL : why;
}

static void fill_info(struct sim *s, struct info *i, const struct isa_target *t)
{
	const struct isa_op_info *op = isa_op_info(i->in.op);

	i->class = (uint8_t)cost_class_of(&i->in);
	i->kind = of_pipe[op->pipe].kind;
	i->pipe = of_pipe[op->pipe].pipe;
	i->accum = 255;
	i->end = (op->flags & ISA_END) != 0;
	if (i->in.op == ISA_s_delay_alu)
		i->kind = KIND_DELAY;
	find_registers(i, t);
	find_costs(s, i);
	if (i->kind == KIND_LDS || i->kind == KIND_VMEM ||
	    i->kind == KIND_EXPORT)
		find_memory(i, op->flags);
	if (op->pipe == ISA_PIPE_WMMA)
		find_wmma(s, i);
	i->back = i->kind == KIND_BRANCH && i->in.op != ISA_s_branch &&
		  (int16_t)i->in.f[ISA_F_SIMM16] < 0;
}

static uint32_t add_line(struct sim *s)
{
	struct sim_result *r = s->r;

	VEC_GROW(s->count, r->n_lines, 1, s->cap_lines);
	memset(&s->count[r->n_lines], 0, sizeof(*s->count));
	return (uint32_t)r->n_lines++;
}

const struct isa_operand *sim_operand(const struct isa_inst *in,
				      enum isa_slot slot)
{
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].slot == slot)
			return &in->opnd[i];
	return NULL;
}

struct info *sim_info(struct sim *s, uint64_t pc)
{
	uint64_t off = pc - s->src->code_va;
	struct isa_target t = { s->chip->gen, s->src->wave_size, false };

	if (pc < s->src->code_va || off >= s->src->code_bytes || off % 4) {
		err_set(s->e, ERR_INPUT, "a wave goes to 0x%llx, outside the "
			"code at 0x%llx..0x%llx", (unsigned long long)pc,
			(unsigned long long)s->src->code_va,
			(unsigned long long)(s->src->code_va +
					     s->src->code_bytes));
		return NULL;
	}
	struct info *i = &s->info[off / 4];
	if (i->valid)
		return i;
	const uint8_t *code = s->src->code + off;
	size_t left = s->src->code_bytes - off;
	const char *why = s->c->lax ? sim_decode(code, left, &t, &i->in)
				    : isa_decode(&t, code, left, &i->in);
	if (why) {
		err_set(s->e, ERR_INPUT, "no instruction at 0x%llx (offset "
			"%llu): %s", (unsigned long long)pc,
			(unsigned long long)off, why);
		return NULL;
	}
	fill_info(s, i, &t);
	i->line = add_line(s);
	i->valid = true;
	if (s->info_from >= s->info_end || off / 4 < s->info_from)
		s->info_from = off / 4;
	if (off / 4 >= s->info_end)
		s->info_end = off / 4 + 1;
	return i;
}
