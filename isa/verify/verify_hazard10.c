/*
 * isa/verify/verify_hazard10.c - dependencies that gfx10_1 does not interlock.
 *
 * The rules are those by which LLVM 19 mends code for gfx1010
 * (GCNHazardRecognizer.cpp).
 */
#include "isa/verify/hazard_int.h"

/* ----------------------------------------------------- scalar registers ----
 */

static bool is_memory(const struct cfg_insn *x)
{
	return x->vmem || x->in.fmt == ISA_FMT_DS;
}

static bool is_scalar(const struct cfg_insn *x)
{
	return x->in.fmt == ISA_FMT_SOP1 || x->in.fmt == ISA_FMT_SOP2 ||
	       x->in.fmt == ISA_FMT_SOPC || x->in.fmt == ISA_FMT_SOPK;
}

/* Back from a scalar write of s[reg]: memory that reads it. */
static enum answer look_vmem(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	(void)t;
	if (is_memory(x) && cfg_uses(x, ISA_K_SGPR, ISA_SRC, w->reg, w->count))
		return FOUND;
	return x->valu || hazard_waits_for(x, HAZARD_VM_VSRC) ||
			       (x->in.op == ISA_s_waitcnt &&
				!x->in.f[ISA_F_SIMM16]) ?
		       CLEAR :
		       ON;
}

/* A scalar instruction that issues behind the scalar loads before it. */
static bool drains_smem(const struct cfg_insn *x)
{
	const struct isa_waits waits =
		isa_waits_of(x->in.gen, x->in.f[ISA_F_SIMM16]);

	switch (x->in.op) {
	case ISA_s_version:
	case ISA_s_waitcnt_vscnt:
	case ISA_s_waitcnt_vmcnt:
	case ISA_s_waitcnt_expcnt:
		return false;
	case ISA_s_waitcnt_lgkmcnt:
		return !x->in.f[ISA_F_SIMM16];
	case ISA_s_waitcnt:
		return !waits.lgkm;
	}
	return is_scalar(x);
}

/* Back from a vector write of s[reg]: a scalar load that reads it. */
static enum answer look_smem(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	(void)t;
	if (x->in.fmt == ISA_FMT_SMEM &&
	    cfg_uses(x, ISA_K_SGPR, ISA_SRC, w->reg, w->count))
		return FOUND;
	return drains_smem(x) ? CLEAR : ON;
}

/* The SGPRs that it names as results, one after the other. */
static void check_writes(struct walk *w, look *fn, enum verify_rule rule,
			 int insn, const char *what)
{
	for (int i = 0; i < w->at->in.n_opnd; i++) {
		const struct isa_operand *o = &w->at->in.opnd[i];

		if (o->kind != ISA_K_SGPR || !(o->role & ISA_DST) ||
		    o->reg == ISA_R_NULL)
			continue;
		w->reg = o->reg;
		w->count = o->dwords;
		if (hazard_is_found(w, fn, insn)) {
			hazard_report(w, rule, insn, what);
			return;
		}
	}
}

/* -------------------------------------------------------------- v_cmpx ---- */

static bool writes_sgpr(const struct cfg_insn *x)
{
	return cfg_uses(x, ISA_K_SGPR, ISA_DST, 0, 128);
}

static enum answer look_exec(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	(void)t;
	if (!x->valu && cfg_uses(x, ISA_K_SGPR, ISA_SRC, ISA_R_EXEC_LO, 2))
		return FOUND;
	return (x->valu && writes_sgpr(x)) ||
			       hazard_waits_for(x, HAZARD_SA_SDST) ?
		       CLEAR :
		       ON;
}

/* ------------------------------------------------------------ branches ---- */

enum side { SIDE_NONE, SIDE_LDS, SIDE_VMEM };

static enum side side_of(const struct cfg_insn *x)
{
	if (x->in.fmt == ISA_FMT_DS)
		return SIDE_LDS;
	return x->vmem && x->in.fmt != ISA_FMT_FLAT ? SIDE_VMEM : SIDE_NONE;
}

static bool is_branch(const struct cfg_insn *x)
{
	return x->in.fmt == ISA_FMT_SOPP && x->pipe == ISA_PIPE_BRANCH;
}

/* Back from memory of one kind: a branch, and the other kind before it. */
static enum answer look_side(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];
	const enum side side = side_of(x);

	if (x->in.op == ISA_s_waitcnt_vscnt && !x->in.f[ISA_F_SIMM16])
		return CLEAR;
	if (side)
		return t->stage && side != side_of(w->at) ? FOUND : CLEAR;
	t->stage |= is_branch(x);
	return ON;
}

void hazard_check_gfx10(struct walk *w, int insn)
{
	const struct cfg_insn *x = w->at;

	if (hazard_exists(w->v, ISA_HZ_VMEM_SGPR) &&
	    (is_scalar(x) || x->in.fmt == ISA_FMT_SMEM))
		check_writes(w, look_vmem, VERIFY_HZ_VMEM_SGPR, insn,
			     "a memory instruction may still read what it "
			     "writes");
	if (hazard_exists(w->v, ISA_HZ_SMEM_SGPR) && x->valu)
		check_writes(w, look_smem, VERIFY_HZ_SMEM_SGPR, insn,
			     "a scalar load may still read what it writes");
	if (hazard_exists(w->v, ISA_HZ_CMPX) && x->valu &&
	    x->flags & ISA_WEXEC && hazard_is_found(w, look_exec, insn))
		hazard_report(w, VERIFY_HZ_CMPX, insn,
			      "EXEC may still be read");
	if (hazard_exists(w->v, ISA_HZ_LDS_BRANCH) && side_of(x) &&
	    hazard_is_found(w, look_side, insn))
		hazard_report(w, VERIFY_HZ_LDS_BRANCH, insn,
			      "only a branch is between it and memory of the "
			      "other kind");
	if (hazard_exists(w->v, ISA_HZ_BRANCH_3F) && is_branch(x) &&
	    x->in.f[ISA_F_SIMM16] == 0x3f)
		ver_report(w->v, VERIFY_HZ_BRANCH_3F, insn, -1,
			   "the hardware may go elsewhere");
}
