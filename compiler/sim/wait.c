/*
 * compiler/sim/wait.c - the earliest issue of an instruction: operands, pipes,
 * counters.
 */
#include "compiler/sim/sim_int.h"

enum { LONG_NOP = 11 }; /* valu.then_long_nop */

struct bound {
	uint64_t t;
	enum sim_stall why;
};

static void at_least(struct bound *b, uint64_t t, enum sim_stall why)
{
	if (t > b->t) {
		b->t = t;
		b->why = why;
	}
}

/* Until at most `left` of the accesses have not returned. */
static void wait_for_count(struct bound *b, const struct pending *p, int left)
{
	int i = p->n - left - 1;

	if (i >= 0)
		at_least(b, p->at[i], p->stall[i]);
}

/* A counter cannot count more. */
static void wait_for_slot(struct bound *b, const struct pending *p)
{
	if (p->n >= SIM_PENDING - 1)
		at_least(b, p->at[p->n - SIM_PENDING + 1], SIM_MEMQ);
}

static void scalar_sources(struct bound *b, const struct info *i,
			   const uint64_t *ready)
{
	SIM_EACH_REG(k, r, i->ssrc, i->n_ssrc)
		at_least(b, ready[r], SIM_DEPEND);
}

/* A vector instruction still reads what this one overwrites. */
static void scalar_overwrites(struct bound *b, const struct wave *w)
{
	const struct info *i = w->info;

	SIM_EACH_REG(k, r, i->sdst, i->n_sdst)
		at_least(b, w->s_read[r], SIM_OPERAND);
}

static void vector_overwrites(struct bound *b, const struct wave *w)
{
	const struct info *i = w->info;

	SIM_EACH_REG(k, r, i->vdst, i->n_vdst)
		at_least(b, w->v_read[r], SIM_OPERAND);
}

static void wait_valu(struct bound *b, const struct sim *s,
		      const struct wave *w)
{
	const struct simd *simd = &s->simd[w->simd];
	uint32_t queue = (uint32_t)sim_cycles(s, COST_VALU_QUEUE);
	uint32_t wmmas = (uint32_t)sim_cycles(s, COST_WMMA_QUEUE);

	scalar_sources(b, w->info, w->s_for_valu);
	vector_overwrites(b, w);
	at_least(b, ring_get(&w->valu_exec, queue), SIM_QUEUE);
	at_least(b, ring_get(&w->wmma_exec, wmmas), SIM_QUEUE);
	at_least(b, simd->valu_free, SIM_PIPE);
	if (w->info->trans)
		at_least(b, simd->trans_free, SIM_PIPE);
}

static void wait_salu(struct bound *b, const struct sim *s,
		      const struct wave *w)
{
	uint32_t queue = (uint32_t)sim_cycles(s, COST_SALU_QUEUE);

	scalar_sources(b, w->info, w->s_for_salu);
	scalar_overwrites(b, w);
	at_least(b, ring_get(&w->salu_execs, queue), SIM_QUEUE);
}

/* A branch needs its condition when it issues. */
static void wait_branch(struct bound *b, const struct sim *s,
			const struct wave *w)
{
	uint64_t start = sim_cycles(s, COST_SALU_START);

	scalar_sources(b, w->info, w->s_for_salu);
	for (int k = 0; k < w->info->n_ssrc; k++) {
		uint64_t in = w->s_in_salu[w->info->ssrc[k].reg];
		at_least(b, in > start ? in - start : 0, SIM_DEPEND);
	}
}

static void wait_smem(struct bound *b, const struct sim *s, struct wave *w)
{
	scalar_sources(b, w->info, w->s_for_salu);
	scalar_overwrites(b, w);
	at_least(b, w->salu_done, SIM_OPERAND);
	wait_for_slot(b, sim_scalar_counter(s, w));
}

static void wait_memory(struct bound *b, const struct sim *s,
			const struct wave *w)
{
	const struct cu *cu = &s->cu[w->cu];
	bool lds = w->info->kind == KIND_LDS;

	scalar_sources(b, w->info, w->s_for_valu);
	at_least(b, w->valu_done, SIM_OPERAND);
	at_least(b, ring_get(lds ? &cu->lds_queue : &cu->vmem_queue,
			     (uint32_t)sim_cycles(s, lds ? COST_LDS_QUEUE
							 : COST_VMEM_QUEUE)),
		 SIM_MEMQ);
	if (lds)
		at_least(b, ring_get(&cu->lds_data, (uint32_t)
				     sim_cycles(s, COST_LDS_DEPTH)), SIM_MEMQ);
	wait_for_slot(b, lds ? &w->lgkm : &w->vm);
	wait_for_slot(b, &w->vs);
}

/* How many accesses each counter may have left. */
struct counts {
	int vm, vs, lgkm, km, exp;
};

/* What a wait asks for; false: it is not one for counters. */
static bool counts_of(const struct sim *s, const struct isa_inst *in,
		      struct counts *c)
{
	const uint32_t imm = in->f[ISA_F_SIMM16];
	const int any = SIM_PENDING, six = (int)(imm & 63);
	const struct isa_waits three = isa_waits_of(s->chip->gen, imm);

	*c = (struct counts){ any, any, any, any, any };
	switch (in->op) {
	case ISA_s_waitcnt:
		c->vm = (int)three.vm;
		c->lgkm = (int)three.lgkm;
		c->exp = (int)three.exp;
		return true;
	case ISA_s_waitcnt_vmcnt:
	case ISA_s_wait_loadcnt:
		c->vm = six;
		return true;
	case ISA_s_waitcnt_vscnt:
	case ISA_s_wait_storecnt:
		c->vs = six;
		return true;
	case ISA_s_waitcnt_lgkmcnt:
	case ISA_s_wait_dscnt:
		c->lgkm = six;
		return true;
	case ISA_s_wait_kmcnt:
		c->km = (int)(imm & 31);
		return true;
	case ISA_s_waitcnt_expcnt:
	case ISA_s_wait_expcnt:
		c->exp = (int)(imm & 7);
		return true;
	case ISA_s_wait_loadcnt_dscnt: /* RDNA4 ISA 5.7: dscnt is bits 5:0 */
		c->vm = (int)(imm >> 8 & 63);
		c->lgkm = six;
		return true;
	case ISA_s_wait_storecnt_dscnt:
		c->vs = (int)(imm >> 8 & 63);
		c->lgkm = six;
		return true;
	case ISA_s_wait_idle:
		*c = (struct counts){ 0 };
		return true;
	default:
		return false;
	}
}

static void wait_counts(struct bound *b, const struct wave *w,
			const struct counts *c)
{
	wait_for_count(b, &w->exp, c->exp);
	wait_for_count(b, &w->lgkm, c->lgkm);
	wait_for_count(b, &w->km, c->km);
	wait_for_count(b, &w->vm, c->vm);
	wait_for_count(b, &w->vs, c->vs);
}

/* Does code that was mended do without this wait for loads? */
static bool is_passed_over(const struct sim *s, const struct wave *w)
{
	const int any = SIM_PENDING;
	struct counts c;

	return sim_waits_for_data(s) && w->info->in.op != ISA_s_wait_idle &&
	       counts_of(s, &w->info->in, &c) && c.vs == any &&
	       (c.vm < any || c.lgkm < any || c.km < any);
}

bool sim_waits_for_nothing(const struct sim *s, const struct wave *w)
{
	struct bound b = { s->now, SIM_ISSUE };
	struct counts c;

	if (w->info->in.op == ISA_s_wait_idle ||
	    !counts_of(s, &w->info->in, &c))
		return false;
	wait_counts(&b, w, &c);
	return b.t == s->now;
}

static void wait_special(struct bound *b, const struct sim *s,
			 const struct wave *w)
{
	const struct counts loads = { .vs = SIM_PENDING };
	const enum isa_op op = w->info->in.op;
	uint32_t imm = w->info->in.f[ISA_F_SIMM16];
	struct counts c;

	if (sim_waits_for_data(s) &&
	    (op == ISA_s_barrier || op == ISA_s_barrier_signal))
		wait_counts(b, w, &loads);
	if (is_passed_over(s, w))
		return;
	if (w->last_vector)
		at_least(b, w->last_vector + sim_cycles(s, COST_VALU_THEN_IMM),
			 SIM_NOP);
	if (counts_of(s, &w->info->in, &c))
		wait_counts(b, w, &c);
	if (op == ISA_s_nop && w->last_vector && imm >= LONG_NOP)
		at_least(b, w->last_vector + sim_cycles(s, COST_VALU_THEN_IMM) +
			 sim_cycles(s, COST_VALU_THEN_LONG), SIM_NOP);
	if (op == ISA_s_nop && w->store_read) /* directly behind a store */
		at_least(b, w->store_read + sim_cycles(s, COST_STORE_THEN_NOP),
			 SIM_NOP);
	/* va_vdst is bits 15:12. */
	if (op == ISA_s_wait_idle ||
	    (op == ISA_s_waitcnt_depctr && imm >> 12 != 15))
		at_least(b, w->valu_done, SIM_DEPEND);
}

uint64_t sim_earliest(struct sim *s, struct wave *w, enum sim_stall *why)
{
	struct bound b = { s->now, SIM_ISSUE };

	at_least(&b, w->hold, w->hold_why);
	at_least(&b, sim_fetch(s, w), SIM_FETCH);
	if (w->info->kind != KIND_DELAY)
		at_least(&b, w->delay, SIM_DEPEND);
	/* Addresses and branches wait; what is stored follows when it can. */
	if (sim_waits_for_data(s) &&
	    (w->info->kind == KIND_BRANCH || w->info->kind == KIND_SMEM ||
	     (w->info->kind == KIND_VMEM && w->info->load)))
		at_least(&b, sim_data_ready(w), SIM_DEPEND);
	switch (w->info->kind) {
	case KIND_VALU:
		wait_valu(&b, s, w);
		break;
	case KIND_SALU:
		wait_salu(&b, s, w);
		break;
	case KIND_BRANCH:
		wait_branch(&b, s, w);
		break;
	case KIND_SMEM:
		wait_smem(&b, s, w);
		break;
	case KIND_LDS:
	case KIND_VMEM:
	case KIND_EXPORT:
		wait_memory(&b, s, w);
		break;
	case KIND_SPECIAL:
		wait_special(&b, s, w);
		break;
	}
	*why = b.why;
	return b.t;
}
