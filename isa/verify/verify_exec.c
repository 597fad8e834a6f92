/*
 * isa/verify/verify_exec.c - lanes that stay off, and flags that nothing has
 * set.
 *
 * EXEC is a tree of subsets (mask nodes).  Compilers leave EXEC narrowed when
 * nothing but the end of the program follows, so a narrowed EXEC is no fault
 * by itself.  It is one where a path that left a region because EXEC was 0
 * meets vector instructions, where paths with a wider and a narrower EXEC
 * meet and continue without restoring it, and where a function returns.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/verify/verify_int.h"

/* Has it no effect when EXEC is 0? */
static bool needs_lanes(const struct cfg_insn *x)
{
	switch (x->in.op) {
	case ISA_v_readlane_b32:
	case ISA_v_writelane_b32:
	case ISA_v_readfirstlane_b32:
	case ISA_v_nop:
		return false;
	}
	return x->valu || (x->vmem && x->in.n_opnd) ||
	       (x->in.fmt == ISA_FMT_DS && x->in.op != ISA_ds_nop) ||
	       x->in.fmt == ISA_FMT_EXP;
}

bool ver_writes_exec(const struct cfg_insn *x)
{
	return cfg_uses(x, ISA_K_SGPR, ISA_DST, ISA_R_EXEC_LO, 2);
}

/* Is this mask a subset by a condition that differs between lanes? */
static bool by_lane(const struct values *s, uint32_t x)
{
	for (; s->v[x].kind == VAL_MASK; x = s->v[x].a)
		if (s->v[s->v[x].b].flags & VF_LANE)
			return true;
	return false;
}

/*
 * Does s_setpc_b64 go back to the caller?  The address is what a call left, or
 * in s[30:31], where compilers reload it.  All other addresses are tail calls.
 */
static bool goes_back(const struct verifier *v, const struct vstate *s,
		      const struct cfg_insn *x)
{
	const struct isa_operand *o = &x->in.opnd[0];
	const struct value *lo = &v->val.v[s->v[o->reg]];
	int op = lo->kind == VAL_INSN ? v->g.insn[lo->a].in.op : 0;

	return o->reg == 30 || op == ISA_s_swappc_b64 || op == ISA_s_call_b64;
}

/* May the callee of a tail call give back the lanes that are off? */
static bool may_widen(const struct cfg *g, int callee)
{
	for (int b = 0; callee >= 0 && b < g->n_blocks; b++) {
		const struct cfg_block *x = &g->block[b];

		if (x->func != callee)
			continue;
		if (x->end == CFG_CALL || x->callee >= 0)
			return true;
		for (int i = x->first; i < x->first + x->n; i++)
			if (ver_writes_exec(&g->insn[i]))
				return true;
	}
	return callee < 0;
}

static void check_return(struct verifier *v, const struct vstate *s, int insn)
{
	const struct cfg_block *b = &v->g.block[v->g.insn[insn].block];
	uint32_t exec = s->v[ISA_R_EXEC_LO];

	if (b->end != CFG_RETURN || b->func <= 0 || insn != b->first + b->n - 1)
		return;
	if ((b->callee >= 0 ||
	     !goes_back(v, s, &v->g.insn[insn])) &&
	    may_widen(&v->g, b->callee))
		return;
	if (val_narrower(&v->val, exec,
			 val_entry(&v->val, b->func, ISA_R_EXEC_LO)))
		ver_report(v, VERIFY_EXEC_LOST, insn, -1,
			   "the function returns with fewer lanes than it was "
			   "called with");
}

void exec_check(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	bool lanes = needs_lanes(x), barrier = x->flags & ISA_BARRIER;

	if (v->check) {
		check_return(v, s, insn);
		if (barrier && by_lane(&v->val, s->v[ISA_R_EXEC_LO]))
			ver_report(v, VERIFY_BARRIER_EXEC, insn, -1,
				   "EXEC is narrowed by a condition that "
				   "differs between lanes");
		if (s->exec_zero && (lanes || barrier))
			ver_report(v, VERIFY_EXEC_LOST, insn,
				   v->g.insn[s->exec_zero - 1].block,
				   "on the path where the branch at 0x%llx "
				   "finds EXEC 0, no instruction restores it "
				   "before",
				   (unsigned long long)cfg_addr(
					   &v->g, s->exec_zero - 1));
	}
	if (lanes || barrier)
		s->exec_zero = 0;
}

/* -------------------------------------------------------------- joins ---- */

/* Is p -> b the edge of a branch that found EXEC 0? */
static bool zero_edge(const struct cfg *g, int p, int b)
{
	const struct cfg_block *x = &g->block[p];
	int op = g->insn[x->first + x->n - 1].in.op;

	return x->end == CFG_COND &&
	       ((op == ISA_s_cbranch_execz && x->succ[1] == b) ||
		(op == ISA_s_cbranch_execnz && x->succ[0] == b));
}

/* The first instruction from block `b` on that needs lanes, -1 if none. */
static int first_effect(const struct cfg *g, int b)
{
	uint8_t *seen = xcalloc(g->n_blocks + 1, 1);
	int *queue = xmalloc((g->n_blocks + 1) * sizeof(int));
	int head = 0, tail = 0, found = -1;

	queue[tail++] = b;
	seen[b] = 1;
	while (head < tail && found < 0) {
		const struct cfg_block *x = &g->block[queue[head++]];
		bool stop = x->end == CFG_CALL || x->end == CFG_RETURN;

		for (int i = x->first; i < x->first + x->n && found < 0; i++) {
			if (ver_writes_exec(&g->insn[i])) {
				stop = true;
				break;
			}
			if (needs_lanes(&g->insn[i]))
				found = i;
		}
		for (int s = 0; s < 2 && !stop; s++)
			if (x->succ[s] >= 0 && !seen[x->succ[s]]) {
				seen[x->succ[s]] = 1;
				queue[tail++] = x->succ[s];
			}
	}
	free(seen);
	free(queue);
	return found;
}

static void check_join(struct verifier *v, int b)
{
	const struct cfg *g = &v->g;
	const struct cfg_block *x = &g->block[b];

	for (int i = 0; i < x->n_preds; i++) {
		int p = g->preds[x->pred + i], at;

		if (!v->at[p] || zero_edge(g, p, b))
			continue;
		for (int k = 0; k < x->n_preds; k++) {
			int q = g->preds[x->pred + k];

			if (!v->at[q] || zero_edge(g, q, b) ||
			    !val_narrower(&v->val, v->exec_out[p],
					  v->exec_out[q]))
				continue;
			at = first_effect(g, b);
			if (at >= 0)
				ver_report(v, VERIFY_EXEC_LOST, at, p,
					   "paths with different EXEC meet at "
					   "0x%llx, and the narrower is not "
					   "restored",
					   (unsigned long long)cfg_addr(
						   g, x->first));
			return;
		}
	}
}

void exec_check_joins(struct verifier *v)
{
	for (int b = 0; b < v->g.n_blocks; b++)
		if (v->at[b] && !v->g.block[b].header)
			check_join(v, b);
}

/* ---------------------------------------------------------- undefined ---- */

static void set_undef(struct vstate *s, int reg, bool on)
{
	uint64_t bit = UINT64_C(1) << (reg & 63);

	s->undef[reg / 64] = on ? s->undef[reg / 64] | bit :
				  s->undef[reg / 64] & ~bit;
}

static void check_flags(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	const struct value *vcc = &v->val.v[s->v[ISA_R_VCC_LO]];

	if (x->use.scc_read && ver_undef(s, R_SCC))
		ver_report(v, VERIFY_STALE_CC, insn, -1,
			   "SCC is read, and no instruction since the entry or "
			   "the last call has set it on some path");
	for (int i = 0; i < x->use.n; i++)
		for (int r = x->use.reg[i].reg;
		     r < x->use.reg[i].reg + x->use.reg[i].count; r++)
			if (x->use.reg[i].file == ISA_K_SGPR &&
			    x->use.reg[i].role & ISA_SRC &&
			    (r == ISA_R_VCC_LO || r == ISA_R_VCC_HI) &&
			    ver_undef(s, r)) {
				ver_report(v, VERIFY_STALE_CC, insn, -1,
					   "VCC is read, and no instruction "
					   "since the entry or the last call "
					   "has set it on some path");
				return;
			}
	if (x->flags & ISA_RVCC && x->valu && vcc->kind == VAL_EXPR &&
	    isa_op_info(vcc->imm & 0xffff)->fmt == ISA_FMT_VOPC)
		ver_report(v, VERIFY_STALE_CC, insn, -1,
			   "VCC holds the result of %s; this instruction wants "
			   "that of v_div_scale",
			   isa_op_info(vcc->imm & 0xffff)->name);
}

static bool is_address(const struct cfg_insn *x, const struct isa_operand *o)
{
	if (!x->vmem && x->in.fmt != ISA_FMT_DS && x->in.fmt != ISA_FMT_SMEM)
		return false;
	switch (o->slot) {
	case ISA_SLOT_VADDR:
	case ISA_SLOT_SADDR:
	case ISA_SLOT_SBASE:
	case ISA_SLOT_SOFF:
	case ISA_SLOT_SRSRC:
	case ISA_SLOT_SOFFSET:
		return true;
	}
	return false;
}

static void check_addresses(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];

	for (int i = 0; i < x->in.n_opnd; i++) {
		const struct isa_operand *o = &x->in.opnd[i];
		bool sgpr = o->kind == ISA_K_SGPR;
		int reg = sgpr ? o->reg : R_VGPR + o->reg;
		char name[16];

		if (!is_address(x, o) || (!sgpr && o->kind != ISA_K_VGPR) ||
		    (sgpr && o->reg == ISA_R_NULL))
			continue;
		for (int r = reg; r < reg + o->dwords; r++) {
			if (!ver_undef(s, r))
				continue;
			ver_report(v, VERIFY_UNINIT, insn, -1,
				   "%s is an address, and neither the "
				   "descriptor nor an instruction has set it",
				   ver_reg_name(r, name));
			set_undef(s, r, false);
			break;
		}
	}
}

/* Moves propagate undefined values; every other instruction defines. */
static bool copies_undef(struct vstate *s, const struct cfg_insn *x)
{
	const struct isa_operand *d = &x->in.opnd[0], *o = &x->in.opnd[1];
	bool on = false;
	int from, to;

	if (x->in.fmt == ISA_FMT_VOPD || x->in.form != ISA_FORM_PLAIN ||
	    (x->in.op != ISA_s_mov_b32 && x->in.op != ISA_s_mov_b64 &&
	     x->in.op != ISA_v_mov_b32) ||
	    (o->kind != ISA_K_SGPR && o->kind != ISA_K_VGPR) ||
	    o->reg == ISA_R_NULL || d->reg == ISA_R_NULL)
		return false;
	from = o->kind == ISA_K_VGPR ? R_VGPR + o->reg : o->reg;
	to = d->kind == ISA_K_VGPR ? R_VGPR + d->reg : d->reg;
	for (int i = 0; i < d->dwords; i++) {
		on |= ver_undef(s, from + i);
		set_undef(s, to + i, ver_undef(s, from + i));
	}
	return on;
}

void undef_step(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];

	if (v->check) {
		check_flags(v, s, insn);
		check_addresses(v, s, insn);
	}
	if (x->use.scc_write)
		set_undef(s, R_SCC, false);
	if (copies_undef(s, x))
		return;
	for (int i = 0; i < x->use.n; i++) {
		int base = x->use.reg[i].file == ISA_K_VGPR ? R_VGPR : 0;

		if (!(x->use.reg[i].role & ISA_DST))
			continue;
		for (int k = 0; k < x->use.reg[i].count; k++)
			set_undef(s, base + x->use.reg[i].reg + k, false);
	}
}
