/*
 * compiler/sim/exec.c - issue of an instruction: the pipes, results and
 * counters that it reserves.
 */
#include <string.h>

#include "compiler/sim/sim_int.h"

static void hold_wave(struct wave *w, uint64_t until, enum sim_stall why)
{
	w->hold = until;
	w->hold_why = why;
}

/* ---- vector ALU ---- */

/*
 * When a source can be read by an execution: forwarded from one of the last
 * few instructions, else through the register file.
 */
static uint64_t source_ready(const struct sim *s, const struct wave *w, int reg)
{
	uint64_t late = sim_cycles(s, COST_VALU_RF);

	if (w->n_valu - w->v_seq[reg] < sim_cycles(s, COST_VALU_FORWARDS) ||
	    !w->v_ready[reg])
		return w->v_ready[reg];
	return sim_max(w->v_ready[reg], w->v_exec[reg] + late);
}

static uint64_t vector_sources(const struct sim *s, const struct wave *w)
{
	const struct info *i = w->info;
	uint64_t t = 0;

	SIM_EACH_REG(k, r, i->vsrc, i->n_vsrc) {
		bool chained = i->wmma && k == i->accum;

		if (w->v_wmma[r])
			t = sim_max(t, chained ? w->v_ready[r]
					       : w->v_wmma[r]);
		else
			t = sim_max(t, source_ready(s, w, r));
	}
	SIM_EACH_REG(k, r, i->ssrc, i->n_ssrc)
		t = sim_max(t, w->s_in_valu[r]);
	return t;
}

/* From issue to the start of execution. */
static uint64_t valu_start(const struct sim *s, const struct info *i)
{
	uint64_t start = sim_cycles(s, COST_WMMA_START);

	if (!i->wmma)
		return i->start;
	return start > i->issue ? start - i->issue : 0;
}

static void vector_results(struct sim *s, struct wave *w, uint64_t exec)
{
	const struct info *i = w->info;
	uint64_t start = sim_cycles(s, COST_VALU_START_VGPR);
	uint64_t to_salu = i->class == COST_CLASS_READLANE
				   ? i->latency
				   : sim_cycles(s, COST_VALU_TO_SALU);
	uint64_t others = exec + sim_cycles(s, COST_WMMA_RESULT) -
			  valu_start(s, i);

	w->n_valu++;
	SIM_EACH_REG(k, r, i->vdst, i->n_vdst) {
		w->v_ready[r] = exec + i->latency;
		w->v_exec[r] = exec;
		w->v_seq[r] = w->n_valu;
		w->v_wmma[r] = i->wmma ? others : 0;
	}
	SIM_EACH_REG(k, r, i->sdst, i->n_sdst) {
		w->s_in_valu[r] = exec + sim_cycles(s, COST_VALU_SGPR);
		w->s_for_salu[r] = exec + to_salu - start;
		w->s_for_valu[r] = w->s_in_salu[r] = 0;
	}
	SIM_EACH_REG(k, r, i->ssrc, i->n_ssrc)
		w->s_read[r] = exec;
}

static void issue_valu(struct sim *s, struct wave *w)
{
	struct simd *simd = &s->simd[w->simd];
	const struct info *i = w->info;
	uint64_t start = sim_cycles(s, COST_VALU_START_VGPR);
	uint64_t to_mem = sim_cycles(s, COST_VALU_TO_MEM) - start;
	uint64_t lead = sim_cycles(s, COST_WMMA_LEAD);
	uint64_t exec = sim_max(s->now + valu_start(s, i), simd->exec_free);
	uint32_t width = i->issue + i->bank_stall;

	if (i->trans)
		exec = sim_max(exec, simd->trans_exec);
	if (i->n_sdst) {
		exec = sim_max(exec, simd->sgpr_free);
		simd->sgpr_free = exec + sim_cycles(s, COST_VALU_SGPR_WRITE);
	}
	exec = sim_max(exec, vector_sources(s, w));
	/* The port: several passes hold it; matrices go into their queue. */
	simd->valu_free = s->now + (i->trans || i->wmma ? 1 : i->issue);
	if (i->trans) {
		simd->trans_free = s->now + i->issue;
		simd->trans_exec = exec + i->issue;
	}
	simd->exec_free = exec + (i->trans ? 1 : width);
	ring_put(&w->valu_exec, exec);
	ring_put(&w->wmma_exec, i->wmma && exec > lead ? exec - lead : 0);
	vector_results(s, w, exec);
	ring_put(i->trans ? &w->trans : &w->valu,
		 exec + i->latency > start ? exec + i->latency - start : 0);
	w->valu_done = sim_max(w->valu_done,
			       exec + (i->trans ? 1 : width) - 1 + to_mem);
	w->busy = width;
}

/* ---- scalar ALU ---- */

/* A wave's next instruction does not issue before its pipe takes one more. */
static void hold_issue(const struct sim *s, struct wave *w)
{
	if (w->info->issue > 1)
		hold_wave(w, s->now + w->info->issue, SIM_PIPE);
}

static void issue_salu(struct sim *s, struct wave *w)
{
	const struct info *i = w->info;
	uint64_t start = sim_cycles(s, COST_SALU_START), exec;
	uint64_t to_valu = sim_cycles(s, COST_SALU_TO_VALU);
	uint64_t to_smem = sim_cycles(s, COST_SALU_TO_SMEM);

	exec = sim_max(s->now + start, w->salu_exec + 1);
	SIM_EACH_REG(k, r, i->ssrc, i->n_ssrc)
		exec = sim_max(exec, w->s_in_salu[r]);
	SIM_EACH_REG(k, r, i->sdst, i->n_sdst) {
		w->s_in_salu[r] = exec + i->latency;
		w->s_for_valu[r] = exec - start + to_valu;
		w->s_in_valu[r] = w->s_for_salu[r] = 0;
	}
	w->salu_exec = exec;
	w->salu_done = exec - start + to_smem;
	w->last_salu = s->now;
	ring_put(&w->salu_execs, exec);
	w->busy = i->issue;
	hold_issue(s, w);
}

/* ---- sequencer ---- */

/* The result that a code of S_DELAY_ALU names (RDNA3 ISA 16.5). */
static uint64_t delay_until(const struct wave *w, uint32_t id)
{
	if (id >= 1 && id <= 4)
		return ring_get(&w->valu, id);
	if (id >= 5 && id <= 7)
		return ring_get(&w->trans, id - 4);
	if (id >= 9 && id <= 11 && w->last_salu)
		return w->last_salu + 1 + (id - 8);
	return 0;
}

static void issue_delay(struct wave *w)
{
	uint32_t imm = w->info->in.f[ISA_F_SIMM16];
	uint32_t skip = imm >> 4 & 7;

	w->delay = sim_max(w->delay, delay_until(w, imm & 15));
	w->delay_skip = (uint8_t)skip;
	w->delay_id = (uint8_t)(imm >> 7 & 15);
	if (!skip) {
		w->delay = sim_max(w->delay, delay_until(w, w->delay_id));
		w->delay_id = 0;
	}
	w->busy = 0;
}

/* One instruction nearer to the second half of an s_delay_alu. */
static void next_delay(struct wave *w)
{
	w->delay = 0;
	if (!w->delay_id)
		return;
	if (w->delay_skip)
		w->delay_skip--;
	if (!w->delay_skip) {
		w->delay = delay_until(w, w->delay_id);
		w->delay_id = 0;
	}
}

static void issue_special(struct sim *s, struct wave *w)
{
	uint32_t imm = w->info->in.f[ISA_F_SIMM16];

	w->busy = w->info->issue;
	hold_issue(s, w);
	switch (w->info->in.op) {
	case ISA_s_nop: /* traces: counts of 16 to 22 wait so long, too */
		hold_wave(w, s->now + 1 + (imm & 127), SIM_NOP);
		break;
	case ISA_s_sleep:
		hold_wave(w,
			  s->now + 1 + (imm & 127) * sim_cycles(s, COST_SLEEP),
			  SIM_NOP);
		break;
	case ISA_s_barrier:
	case ISA_s_barrier_wait: /* the signal before it is no stop */
		if (!(s->c->without & SIM_NO_BARRIERS))
			sim_arrive(s, w);
		break;
	case ISA_s_setprio:
		w->priority = (uint8_t)(imm & 3);
		s->priorities |= w->priority;
		break;
	case ISA_s_sendmsg_rtn_b32:
	case ISA_s_sendmsg_rtn_b64:
		pending_add(sim_scalar_counter(s, w),
			    s->now + w->info->latency, SIM_SMEMCNT);
		break;
	}
}

static uint64_t last_return(const struct pending *p)
{
	return p->n ? p->at[p->n - 1] : 0;
}

static void end_wave(struct sim *s, struct wave *w)
{
	w->end = sim_max(s->now + 1, last_return(&w->vs));
	w->stall[SIM_DRAIN] += w->end - (s->now + 1);
	s->count[w->info->line].stall[SIM_DRAIN] += w->end - (s->now + 1);
	w->ended = true;
	s->ready[w->place] = w->end;
}

static bool is_vector(const struct info *i)
{
	return i->kind == KIND_VALU || i->kind == KIND_LDS ||
	       i->kind == KIND_VMEM || i->kind == KIND_EXPORT;
}

static void issue_by_kind(struct sim *s, struct wave *w,
			  const struct sim_step *st)
{
	switch (w->info->kind) {
	case KIND_VALU:
		issue_valu(s, w);
		break;
	case KIND_SALU:
		issue_salu(s, w);
		break;
	case KIND_BRANCH:
		w->busy = w->info->issue;
		hold_wave(w, s->now + sim_max(w->info->issue, w->info->latency),
			  SIM_BRANCH);
		break;
	case KIND_SMEM:
		sim_smem(s, w, st);
		hold_issue(s, w);
		break;
	case KIND_LDS:
		sim_lds(s, w, st);
		break;
	case KIND_VMEM:
		sim_vmem(s, w, st);
		break;
	case KIND_EXPORT:
		w->busy = w->info->issue;
		pending_add(&w->exp, s->now + w->info->latency, SIM_EXPCNT);
		break;
	case KIND_SPECIAL:
		issue_special(s, w);
		break;
	case KIND_DELAY:
		issue_delay(w);
		break;
	}
}

bool sim_issue(struct sim *s, struct wave *w)
{
	struct sim_step st = { 0 };
	const struct info *i = w->info;

	if (i->back && s->steady && !sim_steady_branch(s, w))
		return false;
	if (!s->src->step(s->src, w->id, s->now, &st, s->e))
		return err_wrap(s->e, "wave %d at 0x%llx", w->id,
				(unsigned long long)w->pc);
	issue_by_kind(s, w, &st);
	if (sim_waits_for_data(s) &&
	    (i->kind == KIND_VALU || i->kind == KIND_SALU))
		sim_data_put(w, 0);
	if (i->kind != KIND_DELAY) {
		next_delay(w);
		w->last_vector = is_vector(i) ? s->now : 0;
		if (!i->store)
			w->store_read = 0;
	}
	s->r->busy[i->pipe] += w->busy;
	if (i->end)
		end_wave(s, w);
	return true;
}
