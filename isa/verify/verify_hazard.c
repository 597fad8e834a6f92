/*
 * isa/verify/verify_hazard.c - dependencies that gfx11 does not interlock, and
 * the rules of matrix instructions.
 *
 * Each check starts at a reader and walks back over all paths until the
 * hazard's producer is found, something that clears it is met, or it is too
 * far away.  A block is entered once per walk, so a walk is short.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/verify/hazard_int.h"

enum { SEEN_MAX = 64 };

static bool walk_back(struct walk *w, look *fn, struct trail t, int first,
		      int last, int *seen, int *n_seen)
{
	const struct cfg *g = &w->v->g;
	const struct cfg_block *b = &g->block[g->insn[first].block];

	for (int i = last; i >= first; i--) {
		enum answer a = fn(w, &t, i);

		if (a == FOUND)
			w->found = i;
		if (a != ON)
			return a == FOUND;
	}
	for (int i = 0; i < b->n_preds; i++) {
		int p = g->preds[b->pred + i];
		const struct cfg_block *x = &g->block[p];
		bool known = x->end == CFG_CALL || *n_seen == SEEN_MAX;

		for (int k = 0; k < *n_seen; k++)
			known |= seen[k] == p;
		if (known)
			continue;
		seen[(*n_seen)++] = p;
		if (walk_back(w, fn, t, x->first, x->first + x->n - 1, seen,
			      n_seen))
			return true;
	}
	return false;
}

bool hazard_is_found(struct walk *w, look *fn, int insn)
{
	const struct cfg *g = &w->v->g;
	struct trail t = { .exec_at = -1 };
	int seen[SEEN_MAX], n_seen = 0;

	memset(t.def_at, -1, sizeof(t.def_at));
	return walk_back(w, fn, t, g->block[g->insn[insn].block].first,
			 insn - 1, seen, &n_seen);
}

static void add_source(struct regs *r, int reg, int count)
{
	for (int i = 0; i < r->n; i++)
		if (r->reg[i] == reg && r->count[i] == count)
			return;
	r->reg[r->n] = reg;
	r->count[r->n++] = count;
}

static void vgpr_sources(const struct cfg_insn *x, struct regs *r)
{
	r->n = 0;
	for (int i = 0; i < x->use.n; i++)
		if (x->use.reg[i].file == ISA_K_VGPR &&
		    x->use.reg[i].role & ISA_SRC)
			add_source(r, x->use.reg[i].reg, x->use.reg[i].count);
}

/* Instructions that make the hardware wait for all VALU results. */
static bool drains_valu(const struct cfg_insn *x)
{
	return x->vmem || x->in.fmt == ISA_FMT_DS || x->in.fmt == ISA_FMT_EXP ||
	       hazard_waits_for(x, HAZARD_VA_VDST);
}

static bool is_trans(const struct cfg_insn *x)
{
	return x->pipe == ISA_PIPE_TRANS || x->pipe == ISA_PIPE_TRANS64;
}

/* ------------------------------------------------- transcendental use ---- */

static enum answer look_trans(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	if (t->valus > 5 || t->trans > 1 || drains_valu(x))
		return CLEAR;
	if (x->valu && is_trans(x))
		for (int i = 0; i < w->src.n; i++)
			if (cfg_uses(x, ISA_K_VGPR, ISA_DST, w->src.reg[i],
				     w->src.count[i]))
				return FOUND;
	t->valus += x->valu;
	t->trans += x->valu && is_trans(x);
	return ON;
}

/* --------------------------------------------------- partial forwarding ----
 */

/* Writers within reach on both sides of an EXEC write by the SALU. */
static enum answer judge_trail(const struct walk *w, const struct trail *t)
{
	int before = -1, after = -1;

	for (int i = 0; i < w->src.n; i++) {
		int d = t->def_at[i];

		if (d < 0)
			continue;
		if (d >= t->exec_at) {
			if (before < 0 || d < before)
				before = d;
		} else if (after < 0 || d < after) {
			after = d;
		}
	}
	if (after < 0)
		return ON;
	if (after > 4 || t->exec_at - after - 1 > 2)
		return CLEAR;
	if (before < 0)
		return ON;
	return before - t->exec_at + t->exec_at - after - 1 > 2 ? CLEAR : FOUND;
}

static enum answer look_forward(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];
	bool changed = false;

	if (t->valus > 8 || drains_valu(x))
		return CLEAR;
	if (x->valu) {
		for (int i = 0; i < w->src.n; i++)
			if (t->def_at[i] < 0 &&
			    cfg_uses(x, ISA_K_VGPR, ISA_DST, w->src.reg[i],
				     w->src.count[i])) {
				t->def_at[i] = t->valus;
				t->writer = changed = true;
			}
	} else if (x->salu && t->exec_at < 0 && t->writer &&
		   cfg_uses(x, ISA_K_SGPR, ISA_DST, ISA_R_EXEC_LO, 2)) {
		t->exec_at = t->valus;
		changed = true;
	}
	if (t->valus > 4 && !t->writer)
		return CLEAR;
	if (changed && t->exec_at >= 0) {
		enum answer a = judge_trail(w, t);

		if (a != ON)
			return a;
	}
	t->valus += x->valu;
	return ON;
}

/* ------------------------------------------------------------ mask write ----
 */

static bool reads_as_mask(const struct cfg_insn *x, int reg, int count)
{
	for (int i = 0; i < x->in.n_opnd; i++) {
		const struct isa_operand *o = &x->in.opnd[i];

		if (o->slot == ISA_SLOT_CI && o->kind == ISA_K_SGPR &&
		    o->reg < reg + count && reg < o->reg + o->dwords)
			return true;
	}
	return x->flags & ISA_RVCC && reg <= ISA_R_VCC_HI &&
	       reg + count > ISA_R_VCC_LO;
}

static bool is_exec(int reg)
{
	return reg == ISA_R_EXEC_LO || reg == ISA_R_EXEC_HI;
}

/*
 * Any other scalar or literal operand of a VALU instruction clears it, VCC
 * without its name too, but not EXEC.
 */
static bool other_scalar(const struct cfg_insn *x)
{
	if (!x->valu)
		return false;
	for (int i = 0; i < x->in.n_opnd; i++) {
		const struct isa_operand *o = &x->in.opnd[i];

		if (o->role & ISA_SRC &&
		    (o->kind == ISA_K_LITERAL ||
		     (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL &&
		      !is_exec(o->reg))))
			return true;
	}
	return x->flags & ISA_RVCC;
}

/* Back from a reader of s[reg]: the SALU write, then the mask use. */
static enum answer look_mask(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	if (hazard_waits_for(x, HAZARD_SA_SDST))
		return CLEAR;
	if (!t->stage) {
		if (!cfg_uses(x, ISA_K_SGPR, ISA_DST, w->reg, w->count))
			return ON;
		if (!x->salu)
			return CLEAR;
		t->stage = 1;
		return ON;
	}
	if (x->valu && reads_as_mask(x, w->reg, w->count))
		return FOUND;
	return other_scalar(x) ? CLEAR : ON;
}

/* --------------------------------------------------------------- others ----
 */

static enum answer look_cmpx(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	(void)t;
	if (x->valu && x->flags & ISA_WEXEC)
		return FOUND;
	return x->valu && x->in.op != ISA_v_nop ? CLEAR : ON;
}

static enum answer look_wmma(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	(void)t;
	if (!x->valu)
		return ON;
	if (x->pipe == ISA_PIPE_WMMA)
		for (int i = 0; i < w->src.n; i++)
			if (cfg_uses(x, ISA_K_VGPR, ISA_DST, w->src.reg[i],
				     w->src.count[i]))
				return FOUND;
	return CLEAR;
}

static enum answer look_direct_valu(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	if (t->valus >= 15 || drains_valu(x))
		return CLEAR;
	if (!x->valu)
		return ON;
	t->trans += is_trans(x);
	if (cfg_uses(x, ISA_K_VGPR, ISA_DST | ISA_SRC, w->reg, 1)) {
		/* Transcendentals overtake others: wait for all. */
		int need = t->trans ? 0 : t->valus;

		return (int)w->at->in.f[ISA_F_WAITVDST] > need ? FOUND : CLEAR;
	}
	t->valus++;
	return ON;
}

static enum answer look_direct_vmem(struct walk *w, struct trail *t, int insn)
{
	const struct cfg_insn *x = &w->v->g.insn[insn];

	(void)t;
	if (x->valu || x->in.fmt == ISA_FMT_EXP || hazard_waits_for(x, HAZARD_VM_VSRC))
		return CLEAR;
	if ((x->vmem || x->in.fmt == ISA_FMT_DS) &&
	    cfg_uses(x, ISA_K_VGPR, ISA_SRC, w->reg, 1))
		return FOUND;
	return ON;
}

void hazard_report(struct walk *w, enum verify_rule rule, int insn,
			  const char *what)
{
	const struct cfg *g = &w->v->g;

	ver_report(w->v, rule, insn, g->insn[w->found].block,
		   "%s (%s at 0x%llx)", what,
		   isa_op_info(g->insn[w->found].in.op)->name,
		   (unsigned long long)cfg_addr(g, w->found));
}

static void check_valu(struct walk *w, int insn)
{
	const struct cfg_insn *x = w->at;
	bool wave64 = w->v->in->target.wave == 64;

	vgpr_sources(x, &w->src);
	if (hazard_exists(w->v, ISA_HZ_TRANS) && w->src.n &&
	    hazard_is_found(w, look_trans, insn))
		hazard_report(
			w, VERIFY_HZ_TRANS, insn,
			"it reads a transcendental result that may be on its way");
	if (hazard_exists(w->v, ISA_HZ_FORWARD) && wave64 && w->src.n > 1 &&
	    hazard_is_found(w, look_forward, insn))
		hazard_report(
			w, VERIFY_HZ_FORWARD, insn,
			"its sources were written before and after a write of "
			"EXEC, too close to it");
}

/* Wave64: the SGPRs that a VALU or SALU instruction or a branch reads. */
static void check_masks(struct walk *w, int insn)
{
	const struct cfg_insn *x = w->at;

	for (int i = 0; i < x->use.n; i++) {
		if (x->use.reg[i].file != ISA_K_SGPR ||
		    !(x->use.reg[i].role & ISA_SRC) ||
		    x->use.reg[i].reg >= ISA_R_M0)
			continue;
		w->reg = x->use.reg[i].reg;
		w->count = x->use.reg[i].count;
		if (hazard_is_found(w, look_mask, insn))
			hazard_report(
				w, VERIFY_HZ_MASK, insn,
				"the mask it reads was overwritten while an "
				"earlier instruction may still have read it");
	}
}

static bool operands_overlap(const struct isa_operand *a,
			     const struct isa_operand *b)
{
	return a->kind == ISA_K_VGPR && b->kind == ISA_K_VGPR &&
	       a->reg < b->reg + b->dwords && b->reg < a->reg + a->dwords;
}

static void check_wmma(struct walk *w, int insn)
{
	const struct isa_operand *o = w->at->in.opnd;
	struct regs *r = &w->src;

	for (int i = 1; i < 3; i++)
		if (operands_overlap(&o[0], &o[i]))
			ver_report(w->v, VERIFY_WMMA_OVERLAP, insn, -1,
				   "D v[%d:%d] overlaps %c v[%d:%d]", o[0].reg,
				   o[0].reg + o[0].dwords - 1, "?AB"[i],
				   o[i].reg, o[i].reg + o[i].dwords - 1);
	if (operands_overlap(&o[0], &o[3]) && o[0].reg != o[3].reg)
		ver_report(w->v, VERIFY_WMMA_OVERLAP, insn, -1,
			   "D v[%d:%d] and C v[%d:%d] overlap but are not the "
			   "same",
			   o[0].reg, o[0].reg + o[0].dwords - 1, o[3].reg,
			   o[3].reg + o[3].dwords - 1);
	r->n = 0;
	for (int i = 1; i < 3; i++)
		if (o[i].kind == ISA_K_VGPR)
			add_source(r, o[i].reg, o[i].dwords);
	if (hazard_is_found(w, look_wmma, insn))
		hazard_report(
			w, VERIFY_WMMA_HAZARD, insn,
			"A or B is the result of the matrix instruction just "
			"before");
}

static void check_direct(struct walk *w, int insn)
{
	w->reg = w->at->in.opnd[0].reg;
	if (hazard_is_found(w, look_direct_valu, insn))
		hazard_report(
			w, VERIFY_HZ_LDSDIR, insn,
			"its destination is still used by the VALU, and wait_vdst "
			"does not cover it");
	if (hazard_is_found(w, look_direct_vmem, insn))
		hazard_report(
			w, VERIFY_HZ_LDSDIR, insn,
			"its destination is still read by a memory instruction");
}

/* Undefined sources do not count. */
static bool overlaps_itself(const struct vstate *s, const struct isa_inst *in)
{
	const struct isa_operand *d = &in->opnd[0];

	for (int i = 2; i < in->n_opnd; i++)
		for (int k = 0; k < in->opnd[i].dwords; k++) {
			int reg = in->opnd[i].reg + k;

			if (in->opnd[i].kind == ISA_K_VGPR && reg >= d->reg &&
			    reg < d->reg + d->dwords &&
			    !ver_undef(s, R_VGPR + reg))
				return true;
		}
	return false;
}

/* Is a VGPR read before it is written again, on some path from `insn`? */
static bool read_later(const struct cfg *g, int insn, int reg)
{
	uint8_t *seen = xcalloc(g->n_blocks + 1, 1);
	int *queue = xmalloc((g->n_blocks + 2) * sizeof(int));
	int head = 0, tail = 0, start = insn + 1;
	bool found = false;

	queue[tail++] = g->insn[insn].block;
	while (head < tail && !found) {
		const struct cfg_block *b = &g->block[queue[head++]];
		bool dead = false;

		for (int i = start > b->first ? start : b->first;
		     i < b->first + b->n && !dead && !found; i++) {
			found = cfg_uses(&g->insn[i], ISA_K_VGPR, ISA_SRC, reg,
					 1);
			dead = cfg_uses(&g->insn[i], ISA_K_VGPR, ISA_DST, reg,
					1);
		}
		start = 0;
		for (int s = 0; s < 2 && !dead && !found; s++)
			if (b->succ[s] >= 0 && !seen[b->succ[s]]) {
				seen[b->succ[s]] = 1;
				queue[tail++] = b->succ[s];
			}
	}
	free(seen);
	free(queue);
	return found;
}

void hazard_check(struct verifier *v, const struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	struct walk w = { .v = v, .at = x };

	if (x->valu)
		check_valu(&w, insn);
	hazard_check_gfx10(&w, insn);
	if (hazard_exists(v, ISA_HZ_MASK) && v->in->target.wave == 64 &&
	    (x->valu || x->salu || x->in.fmt == ISA_FMT_SOPP))
		check_masks(&w, insn);
	if (x->pipe == ISA_PIPE_WMMA)
		check_wmma(&w, insn);
	if (x->lds_dir)
		check_direct(&w, insn);
	switch (x->in.op) {
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
	case ISA_v_permlane64_b32:
		if (hazard_exists(v, ISA_HZ_PERMLANE) && hazard_is_found(&w, look_cmpx, insn))
			hazard_report(&w, VERIFY_HZ_PERMLANE, insn,
				      "EXEC was just written by v_cmpx");
		break;
	case ISA_v_mad_u64_u32:
	case ISA_v_mad_i64_i32:
		/*
		 * The low half is written before the high half has read its
		 * sources; compilers do that when they want the low half only.
		 */
		if (hazard_exists(v, ISA_HZ_MAD) && overlaps_itself(s, &x->in) &&
		    read_later(&v->g, insn, x->in.opnd[0].reg + 1))
			ver_report(v, VERIFY_HZ_MAD, insn, -1,
				   "its destination overlaps a source");
	}
}
