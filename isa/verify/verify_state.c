/*
 * isa/verify/verify_state.c - the state at the entry, where paths meet, and
 * around calls.
 */
#include <string.h>

#include "isa/verify/verify_int.h"

struct vstate *state_entry(struct verifier *v)
{
	struct vstate *s = xcalloc(1, v->state_bytes);
	bool known = v->in->user_sgprs >= 0;

	for (int r = 0; r < R_COUNT; r++)
		s->v[r] = val_entry(&v->val, 0, r);
	if (v->in->target.wave == 64)
		s->v[ISA_R_EXEC_HI] = val_high(&v->val, s->v[ISA_R_EXEC_LO]);
	wait_init(&s->age);
	/* With one dimension v0 is the work-item id itself. */
	if (v->in->workgroup_dim[1] == 1 && v->in->workgroup_dim[2] == 1)
		val_bound(&v->val, s->v[R_VGPR], 0,
			  v->in->workgroup_dim[0] - 1);
	if (known) {
		memset(s->undef, 0xff, sizeof(s->undef));
		s->undef[0] = ~v->in->sgpr_set[0];
		s->undef[1] = ~v->in->sgpr_set[1];
		/* The packed work-item ids. */
		s->undef[R_VGPR / 64] &= ~UINT64_C(1);
	}
	for (int r = ISA_R_TTMP0; r <= ISA_R_EXEC_HI; r++)
		s->undef[r / 64] &= ~(UINT64_C(1) << (r & 63));
	s->undef[1] |= UINT64_C(3) << (ISA_R_VCC_LO - 64);
	s->undef[R_SCC / 64] |= UINT64_C(1) << (R_SCC & 63);
	return s;
}

/* EXEC of two paths: some subset of their nearest common superset. */
static uint32_t join_exec(struct verifier *v, int block, uint32_t a, uint32_t b)
{
	uint32_t phi = val_phi(&v->val, block, ISA_R_EXEC_LO);

	for (uint32_t up = a; v->val.v[up].kind == VAL_MASK;) {
		up = v->val.v[up].a;
		if (val_narrower(&v->val, b, up))
			return val_mask(&v->val, up, phi, false);
	}
	return phi;
}

static void join_values(struct verifier *v, struct vstate *into,
			const struct vstate *from, int block, bool *changed)
{
	for (int r = 0; r < R_COUNT; r++) {
		uint32_t x = into->v[r];

		if (x == from->v[r])
			continue;
		if (r == ISA_R_EXEC_LO)
			x = join_exec(v, block, x, from->v[r]);
		else if (r == ISA_R_EXEC_HI && v->in->target.wave == 64)
			x = val_high(&v->val, into->v[ISA_R_EXEC_LO]);
		else
			x = val_phi(&v->val, block, r);
		*changed |= x != into->v[r];
		into->v[r] = x;
	}
}

static void join_bits(uint64_t *into, const uint64_t *from, int n,
		      bool *changed)
{
	for (int i = 0; i < n; i++) {
		*changed |= (from[i] & ~into[i]) != 0;
		into[i] |= from[i];
	}
}

/*
 * Compilers leave a VGPR undefined on the paths that do not need it, so only
 * those that no path has set stay undefined.
 */
static void join_undef(uint64_t *into, const uint64_t *from, bool *changed)
{
	for (int i = R_VGPR / 64; i < R_SCC / 64; i++) {
		*changed |= (into[i] & ~from[i]) != 0;
		into[i] &= from[i];
	}
	join_bits(into, from, R_VGPR / 64, changed);
	join_bits(into + R_SCC / 64, from + R_SCC / 64, 1, changed);
}

/*
 * Widening at a loop header: a register turned out to vary.  The states of the
 * loop's blocks were computed from the old value and would stay as a false
 * difference, so their next states replace them.  All are visited again.
 */
static void forget_loop(struct verifier *v, int header)
{
	const struct cfg *g = &v->g;

	for (const int *b = v->loop[header] + 1; *b >= 0; b++) {
		bool inside = true;

		for (int i = 0; i < g->block[*b].n_preds; i++)
			inside &=
				g->block[g->preds[g->block[*b].pred + i]].scc ==
				g->block[header].scc;
		v->stale[*b] = inside;
	}
}

bool state_join(struct verifier *v, int block, const struct vstate *from)
{
	struct vstate *into = v->at[block];
	bool changed = false;

	if (!into || v->stale[block]) {
		if (!into)
			v->at[block] = xmalloc(v->state_bytes);
		v->stale[block] = 0;
		memcpy(v->at[block], from, v->state_bytes);
		return true;
	}
	join_values(v, into, from, block, &changed);
	if (changed && v->loop[block])
		forget_loop(v, block);
	wait_join(&into->age, &from->age, &changed);
	join_undef(into->undef, from->undef, &changed);
	join_bits(into->masked, from->masked, 4, &changed);
	join_bits(into->lds, from->lds, v->lds_words, &changed);
	if (from->exec_zero > into->exec_zero) {
		into->exec_zero = from->exec_zero;
		changed = true;
	}
	return changed;
}

/* --------------------------------------------------------------- calls ---- */

void state_call(struct verifier *v, struct vstate *s, int func)
{
	uint32_t full = val_entry(&v->val, func, ISA_R_EXEC_LO);

	s->v[ISA_R_EXEC_LO] = full;
	if (v->in->target.wave == 64)
		s->v[ISA_R_EXEC_HI] = val_high(&v->val, full);
	for (int r = R_VGPR; r < R_SCC; r++)
		s->v[r] = val_entry(&v->val, func, r);
	memset(s->lds, 0, 8 * v->lds_words);
	memset(s->masked, 0, sizeof(s->masked));
	s->exec_zero = 0;
}

static bool has_barrier(const struct verifier *v, int func)
{
	const struct cfg *g = &v->g;

	for (int b = 0; b < g->n_blocks; b++) {
		if (g->block[b].func != func)
			continue;
		for (int i = 0; i < g->block[b].n; i++)
			if (g->insn[g->block[b].first + i].flags & ISA_BARRIER)
				return true;
		/* Deeper callees are not searched: any call may hide one. */
		if (g->block[b].end == CFG_CALL)
			return true;
	}
	return false;
}

void state_return(struct verifier *v, struct vstate *s, int call, int callee)
{
	for (int r = 0; r < R_COUNT; r++)
		if (step_clobbered(r))
			s->v[r] = val_insn(&v->val, call, 0x1000 + r, VF_DARK);
	s->undef[1] |= UINT64_C(3) << (ISA_R_VCC_LO - 64);
	s->undef[R_SCC / 64] |= UINT64_C(1) << (R_SCC & 63);
	for (int r = 0; r < 30; r++)
		s->undef[0] &= ~(UINT64_C(1) << r);
	memset(&s->undef[R_VGPR / 64], 0, 32);
	if (callee < 0 || has_barrier(v, callee))
		memset(s->lds, 0, 8 * v->lds_words);
	if (callee < 0)
		wait_call(&s->age);
	else
		memcpy(&s->age, v->ret[callee], sizeof(s->age));
	s->exec_zero = 0;
}
