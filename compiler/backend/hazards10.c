/*
 * compiler/backend/hazards10.c - hazards that gfx10_1 does not interlock (the
 * rules are those of isa/verify/verify_hazard10.c).
 *
 * Forward dataflow: what memory and branches left behind them until something
 * that the hardware waits for clears it.
 */
#include "compiler/backend/backend_int.h"

#include <string.h>

enum { N_SGPRS = 128, FAR = MIR_FAR };

/* s_waitcnt_depctr: wait for this counter alone to be 0. */
enum { VM_VSRC_0 = 0xffe3, SA_SDST_0 = 0xfffe };

/* All are 0 where there is such a thing, else FAR. */
struct state {
	uint8_t vmem[N_SGPRS]; /* memory may still read the register */
	uint8_t smem[N_SGPRS]; /* a scalar load may still read it */
	uint8_t exec;	       /* something but the VALU may still read EXEC */
	/* An access of LDS [0], of vector memory [1]; one before a branch. */
	uint8_t side[2], before[2];
};

static bool is_memory(const struct mir_inst *i)
{
	return mir_is_vmem(i) || mir_is_ds(i);
}

/* Is a scalar that `i` writes marked? */
static bool writes_marked(const struct mir_touch *t, const uint8_t *marks)
{
	for (int k = 0; k < t->n; k++)
		for (int j = 0;
		     t->t[k].file == MIR_S && t->t[k].write && j < t->t[k].n;
		     j++)
			if (t->t[k].reg + j < N_SGPRS &&
			    !marks[t->t[k].reg + j])
				return true;
	return false;
}

static void mark_reads(const struct mir_touch *t, uint8_t *marks)
{
	for (int k = 0; k < t->n; k++)
		for (int j = 0;
		     t->t[k].file == MIR_S && t->t[k].read && j < t->t[k].n;
		     j++)
			if (t->t[k].reg + j < N_SGPRS)
				marks[t->t[k].reg + j] = 0;
}

static bool touches_scalar(const struct mir_touch *t, int reg, bool write)
{
	for (int k = 0; k < t->n; k++)
		if (t->t[k].file == MIR_S && t->t[k].reg <= reg &&
		    reg < t->t[k].reg + t->t[k].n &&
		    (write ? t->t[k].write : t->t[k].read))
			return true;
	return false;
}

static bool writes_scalar(const struct mir_touch *t)
{
	for (int k = 0; k < t->n; k++)
		if (t->t[k].file == MIR_S && t->t[k].write)
			return true;
	return false;
}

static void forget_marks(uint8_t *marks)
{
	memset(marks, FAR, N_SGPRS);
}

static void forget_sides(struct state *s)
{
	memset(s->side, FAR, sizeof(s->side));
	memset(s->before, FAR, sizeof(s->before));
}

/* --------------------------------------------------------------- mending ----
 */

static void mend_inst(struct mir_func *m, struct state *s, struct mir_inst *i,
		      const struct mir_touch *t, bool insert)
{
	const struct mir_opnd vsrc = mir_simm16(VM_VSRC_0);
	const struct mir_opnd sdst = mir_simm16(SA_SDST_0);
	const struct mir_opnd move[2] = { mir_hw(ISA_R_NULL, 1), mir_imm(0) };
	const struct mir_opnd stores[2] = { mir_hw(ISA_R_NULL, 1),
					    mir_simm16(0) };

	if ((mir_is_salu(i) || mir_is_smem(i)) && writes_marked(t, s->vmem)) {
		if (insert)
			mir_insert(m, i, ISA_s_waitcnt_depctr, &vsrc, 1);
		forget_marks(s->vmem);
	}
	if (mir_is_valu(i) && writes_marked(t, s->smem)) {
		if (insert)
			mir_insert(m, i, ISA_s_mov_b32, move, 2);
		forget_marks(s->smem);
	}
	if (mir_is_valu(i) && mir_writes_exec(i) && !s->exec) {
		if (insert)
			mir_insert(m, i, ISA_s_waitcnt_depctr, &sdst, 1);
		s->exec = FAR;
	}
	if (is_memory(i) && !s->before[!mir_is_vmem(i)]) {
		if (insert)
			mir_insert(m, i, ISA_s_waitcnt_vscnt, stores, 2);
		forget_sides(s);
	}
}

/* --------------------------------------------------------------- effects ----
 */

static void follow_memory(struct state *s, const struct mir_inst *i,
			  const struct mir_touch *t)
{
	const int side = mir_is_vmem(i);

	mark_reads(t, s->vmem);
	s->vmem[ISA_R_EXEC_LO] = s->vmem[ISA_R_EXEC_HI] = 0;
	s->exec = 0;
	forget_sides(s);
	s->side[side] = 0;
}

static void follow_inst(struct state *s, const struct mir_inst *i,
			const struct mir_touch *t)
{
	if (mir_is_valu(i)) {
		forget_marks(s->vmem);
		s->exec = writes_scalar(t) ? FAR : s->exec;
		return;
	}
	if (mir_is_salu(i))
		forget_marks(s->smem);
	if (mir_is_smem(i))
		mark_reads(t, s->smem);
	if (touches_scalar(t, ISA_R_EXEC_LO, false))
		s->exec = 0;
	if (is_memory(i))
		follow_memory(s, i, t);
	if (i->op == ISA_s_waitcnt_vscnt && !i->o[1].imm)
		forget_sides(s);
	for (int k = 0; mir_is_branch(i) && k < 2; k++)
		s->before[k] = s->side[k] ? s->before[k] : 0;
}

static void resolve_block(struct mir_func *m, struct mir_block *b, void *state,
			  bool insert)
{
	for (struct mir_inst *i = b->first; i; i = i->next) {
		struct mir_touch t;

		mir_touches(m, i, &t);
		mend_inst(m, state, i, &t, insert);
		follow_inst(state, i, &t);
	}
}

void mir_resolve_gfx10(struct mir_func *m)
{
	mir_flow_ages(m, sizeof(struct state), resolve_block);
}
