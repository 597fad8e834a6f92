/*
 * compiler/backend/backend.c - what passes after allocation share, and two
 * small ones.
 */
#include "compiler/backend/backend_int.h"

#include <stdlib.h>
#include <string.h>

int mir_phys(const struct mir_func *m, const struct mir_opnd *o)
{
	return o->kind == MIR_VREG ? m->vreg[o->reg].phys + o->sub :
				     (int)o->reg;
}

static void add_touch(struct mir_touch *t, uint8_t file, int reg, int n,
		      bool read, bool write)
{
	t->t[t->n].file = file;
	t->t[t->n].reg = (uint16_t)reg;
	t->t[t->n].n = (uint16_t)n;
	t->t[t->n].read = read;
	t->t[t->n++].write = write;
}

static void touch_operands(const struct mir_func *m, const struct mir_inst *i,
			   struct mir_touch *t)
{
	for (int k = 0; k < i->n_opnd; k++) {
		const struct mir_opnd *o = &i->o[k];

		if ((o->kind != MIR_VREG && o->kind != MIR_HW) ||
		    (o->kind == MIR_HW && o->reg == ISA_R_NULL))
			continue;
		add_touch(t, mir_is_v(m, o) ? MIR_V : MIR_S, mir_phys(m, o),
			  o->n, k >= i->n_def || mir_reads_result(i),
			  k < i->n_def);
	}
}

void mir_touches(const struct mir_func *m, const struct mir_inst *i,
		 struct mir_touch *t)
{
	uint32_t flags = mir_isa_flags(i);

	t->n = 0;
	touch_operands(m, i, t);
	if (i->pair)
		touch_operands(m, i->pair, t);
	if (flags & (ISA_RVCC | ISA_WVCC))
		add_touch(t, MIR_S, ISA_R_VCC_LO, m->wave / 32,
			  flags & ISA_RVCC, flags & ISA_WVCC);
	if (flags & (ISA_REXEC | ISA_WEXEC))
		add_touch(t, MIR_S, ISA_R_EXEC_LO, m->wave / 32,
			  flags & ISA_REXEC, flags & ISA_WEXEC);
	if (flags & ISA_RM0)
		add_touch(t, MIR_S, ISA_R_M0, 1, true, false);
}

bool mir_touches_conflict(const struct mir_touch *a, const struct mir_touch *b)
{
	for (int j = 0; j < a->n; j++)
		for (int k = 0; k < b->n; k++)
			if (a->t[j].file == b->t[k].file &&
			    (a->t[j].write || b->t[k].write) &&
			    a->t[j].reg < b->t[k].reg + b->t[k].n &&
			    b->t[k].reg < a->t[j].reg + a->t[j].n)
				return true;
	return false;
}

/* ------------------------------------------------------------ dataflow ---- */

struct ages {
	struct mir_func *m;
	size_t size;
	uint8_t *out; /* [n_order][size] states at the ends of blocks */
	bool *seen;   /* [n_order] */
};

static void join_preds(const struct ages *a, const struct mir_block *b,
		       uint8_t *state)
{
	memset(state, MIR_FAR, a->size);
	for (uint32_t k = 0; k < b->n_preds; k++) {
		const uint32_t pred = b->pred[k]->order;

		for (size_t j = 0; a->seen[pred] && j < a->size; j++) {
			const uint8_t age = a->out[pred * a->size + j];

			state[j] = age < state[j] ? age : state[j];
		}
	}
}

void mir_flow_ages(struct mir_func *m, size_t size, mir_walk_fn *walk)
{
	struct ages a = { .m = m, .size = size };
	uint8_t *state = xmalloc(size);
	bool changed = true;

	mir_number(m);
	a.out = xcalloc(m->n_order, size);
	a.seen = xcalloc(m->n_order, sizeof(*a.seen));
	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < m->n_order; b++) {
			uint8_t *out = a.out + b * size;

			join_preds(&a, m->order[b], state);
			walk(m, m->order[b], state, false);
			if (a.seen[b] && !memcmp(state, out, size))
				continue;
			a.seen[b] = true;
			memcpy(out, state, size);
			changed = true;
		}
	}
	for (uint32_t b = 0; b < m->n_order; b++) {
		join_preds(&a, m->order[b], state);
		walk(m, m->order[b], state, true);
	}
	free(a.out);
	free(a.seen);
	free(state);
}

/* ---------------------------------------------------------------- flow ---- */

/* Up to here a body without lanes costs no more than the branch over it. */
enum { SKIP_COST = 12 };

static bool is_cheap(const struct mir_inst *i)
{
	return !mir_is_branch(i) && !mir_is_memory(i) &&
	       !(mir_isa_flags(i) & ISA_BARRIER) &&
	       mir_pipe(i) != ISA_PIPE_MSG && mir_pipe(i) != ISA_PIPE_WMMA &&
	       mir_pipe(i) != ISA_PIPE_TRANS && mir_pipe(i) != ISA_PIPE_DOUBLE;
}

static int body_cost(const struct mir_func *m, const struct mir_block *from,
		     const struct mir_block *to)
{
	int cost = 0;

	for (uint32_t b = from->order + 1; b < to->order; b++) {
		if (m->order[b]->loop_header)
			return SKIP_COST;
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next) {
			if (i->flags & MIR_SKIP)
				continue;
			if (!is_cheap(i))
				return SKIP_COST;
			cost++;
		}
	}
	return cost;
}

static void drop_edge(struct mir_block *b, const struct mir_block *to)
{
	for (uint32_t k = 0; k < b->n_succ; k++)
		if (b->succ[k] == to)
			b->succ[k] = b->succ[--b->n_succ];
}

void mir_drop_skips(struct mir_func *m)
{
	for (uint32_t k = 0; k < m->n_order; k++)
		m->order[k]->order = k;
	for (uint32_t k = 0; k < m->n_order; k++) {
		struct mir_block *b = m->order[k];
		struct mir_inst *i = b->last;

		if (!i || !(i->flags & MIR_SKIP))
			continue;
		if (body_cost(m, b, i->o[0].label) >= SKIP_COST)
			continue;
		drop_edge(b, i->o[0].label);
		mir_unlink(i);
	}
}

/* --------------------------------------------------------------- begin ---- */

void mir_begin_scratch(struct mir_func *m)
{
	enum { BASE = 2, OFFSET = 16 };
	struct mir_inst *first = m->order[0]->first;
	const struct mir_opnd low = mir_hw(BASE, 1), high = mir_hw(BASE + 1, 1);
	const struct mir_opnd add[3] = { low, low, mir_hw(OFFSET, 1) };
	const struct mir_opnd carry[3] = { high, high, mir_imm(0) };
	const struct mir_opnd set[2][2] = {
		{ mir_word("hwreg(HW_REG_FLAT_SCR_LO)"), low },
		{ mir_word("hwreg(HW_REG_FLAT_SCR_HI)"), high },
	};

	if (!m->scratch_bytes || isa_gen_info(m->gen)->own_scratch)
		return;
	mir_insert(m, first, ISA_s_add_u32, add, 3);
	mir_insert(m, first, ISA_s_addc_u32, carry, 3);
	mir_insert(m, first, ISA_s_setreg_b32, set[0], 2);
	mir_insert(m, first, ISA_s_setreg_b32, set[1], 2);
	m->sgprs = m->sgprs > OFFSET ? m->sgprs : OFFSET + 1;
}

/* ----------------------------------------------------------------- end ---- */

static bool has_vmem_store(const struct mir_func *m)
{
	MIR_EACH_INST (m, i)
		if (mir_is_vmem(i) && mir_is_store(i))
			return true;
	return false;
}

/*
 * A wave stays until its stores have arrived, but from gfx11 on its registers
 * may go to others before; not where scratch still needs them (RDNA3 ISA 16.5).
 */
void mir_dealloc_vgprs(struct mir_func *m)
{
	struct mir_opnd zero = mir_imm(0);
	struct mir_opnd message = mir_word("sendmsg(MSG_DEALLOC_VGPRS)");

	if (m->gen < ISA_GFX11 || m->scratch_bytes || !has_vmem_store(m))
		return;
	for (uint32_t k = 0; k < m->n_order; k++) {
		struct mir_inst *i = m->order[k]->last;

		if (!i || i->op != ISA_s_endpgm)
			continue;
		mir_insert(m, i, ISA_s_nop, &zero, 1);
		mir_insert(m, i, ISA_s_sendmsg, &message, 1);
	}
}
