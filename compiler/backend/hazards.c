/*
 * compiler/backend/hazards.c - hazards that gfx11 does not interlock (the rules
 * are those of isa/verify/verify.def).
 *
 * Transcendentals: one of the next five VALU instructions may read a result too
 * early (gfx11.0), or the result may arrive after that of a later writer of the
 * same register.  s_waitcnt_depctr va_vdst(0) before the reader, or a memory
 * instruction on the way, makes it safe.
 *
 * Matrix products: a result may not be A or B of the very next VALU
 * instruction.
 *
 * Wave64: a VALU instruction may not read sources from both sides of a write of
 * EXEC, nor a lane mask that was overwritten while in use.
 */
#include "compiler/backend/backend_int.h"

#include <string.h>

enum { FAR = MIR_FAR, REACH = 6 };

/* s_waitcnt_depctr: wait for this counter alone to be 0. */
enum { VA_VDST_0 = 0x0fff, SA_SDST_0 = 0xfffe };

struct state {
	uint8_t valus[256];  /* VALU instructions since a TRANS wrote it */
	uint8_t trans[256];  /* TRANS among them */
	uint8_t matrix[256]; /* 0: the last VALU was a matrix that wrote it */
};

/* The wait for such counters, by its name on the chip. */
static int wait_alu(const struct mir_func *m)
{
	return isa_opcode(m->gen, ISA_s_waitcnt_depctr, false) < 0 ?
		       ISA_s_wait_alu :
		       ISA_s_waitcnt_depctr;
}

static bool is_trans(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_TRANS || mir_pipe(i) == ISA_PIPE_TRANS64;
}

static bool drains_valu(const struct mir_inst *i)
{
	return mir_is_vmem(i) || mir_is_ds(i);
}

/* Does it read what a TRANS wrote too few VALU instructions ago? */
static bool reads_trans(const struct mir_func *m, const struct state *s,
			const struct mir_inst *i)
{
	struct mir_touch t;

	mir_touches(m, i, &t);
	for (int k = 0; k < t.n; k++)
		for (int j = 0;
		     t.t[k].file == MIR_V && t.t[k].read && j < t.t[k].n; j++)
			if (s->valus[t.t[k].reg + j] < REACH)
				return true;
	return false;
}

/* A or B of a matrix instruction. */
static bool reads_matrix(const struct mir_func *m, const struct state *s,
			 const struct mir_inst *i)
{
	for (int k = 1; k < 3; k++)
		for (int j = 0; mir_is_v(m, &i->o[k]) && j < i->o[k].n; j++)
			if (!s->matrix[mir_phys(m, &i->o[k]) + j])
				return true;
	return false;
}

static void forget_trans(struct state *s)
{
	memset(s->valus, FAR, sizeof(s->valus));
	memset(s->trans, FAR, sizeof(s->trans));
}

static void issue_valu(const struct mir_func *m, struct state *s,
		       const struct mir_inst *i)
{
	bool trans = is_trans(i);

	for (int r = 0; r < 256; r++) {
		s->valus[r] += s->valus[r] < REACH;
		if (s->trans[r] < 2)
			s->trans[r] += trans;
		if (s->valus[r] >= REACH || s->trans[r] >= 2)
			s->valus[r] = s->trans[r] = FAR;
	}
	memset(s->matrix, FAR, sizeof(s->matrix));
	for (int k = 0; k < i->n_def; k++)
		for (int j = 0; mir_is_v(m, &i->o[k]) && j < i->o[k].n; j++) {
			int r = mir_phys(m, &i->o[k]) + j;

			if (trans)
				s->valus[r] = s->trans[r] = 0;
			if (mir_pipe(i) == ISA_PIPE_WMMA)
				s->matrix[r] = 0;
		}
}

static void resolve_block(struct mir_func *m, struct mir_block *b, void *state,
			  bool insert)
{
	const unsigned hazards = isa_gen_info(m->gen)->hazards;
	struct mir_opnd drained = mir_simm16(VA_VDST_0);
	struct state *s = state;

	for (struct mir_inst *i = b->first; i; i = i->next) {
		if (drains_valu(i))
			forget_trans(s);
		if (!mir_is_valu(i))
			continue;
		if (hazards & ISA_HZ_TRANS && reads_trans(m, s, i)) {
			if (insert)
				mir_insert(m, i, wait_alu(m), &drained, 1);
			forget_trans(s);
		}
		if (hazards & ISA_HZ_MATRIX && mir_pipe(i) == ISA_PIPE_WMMA &&
		    reads_matrix(m, s, i) && insert)
			mir_insert(m, i, ISA_v_nop, NULL, 0);
		issue_valu(m, s, i);
	}
}

/* -------------------------------------------------------------- wave64 ---- */

static bool writes_mask(const struct mir_func *m, const struct mir_inst *i)
{
	if (!mir_is_salu(i))
		return false;
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].n == m->wave / 32 && mir_is_s(m, &i->o[k]))
			return true;
	return false;
}

/* What was issued before is done before EXEC or a mask changes. */
static void separate_halves(struct mir_func *m)
{
	struct mir_opnd valu = mir_simm16(VA_VDST_0);
	struct mir_opnd salu = mir_simm16(SA_SDST_0);

	MIR_EACH_INST (m, i) {
		if (mir_writes_exec(i))
			mir_insert(m, i, wait_alu(m), &valu, 1);
		if (i->prev && writes_mask(m, i->prev))
			mir_insert(m, i, wait_alu(m), &salu, 1);
	}
}

void mir_resolve_hazards(struct mir_func *m)
{
	const unsigned hazards = isa_gen_info(m->gen)->hazards;

	if (hazards & ISA_HZ_VMEM_SGPR)
		mir_resolve_gfx10(m);
	if (hazards & (ISA_HZ_TRANS | ISA_HZ_MATRIX))
		mir_flow_ages(m, sizeof(struct state), resolve_block);
	if (m->wave == 64 && hazards & (ISA_HZ_FORWARD | ISA_HZ_MASK))
		separate_halves(m);
}
