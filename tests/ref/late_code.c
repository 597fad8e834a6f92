/*
 * tests/ref/late_code.c - the late executor: fetch, scalar instructions,
 * branches, waits.
 */
#include "tests/ref/late_int.h"

#include <stdlib.h>

#include "tests/ref/scalar.h"

/* ------------------------------------------------------------ control ---- */

static uint64_t scalar_pair(const struct late_wave *w, unsigned reg)
{
	return w->s.s[reg] | (uint64_t)w->s.s[reg + 1] << 32;
}

static void set_pair(struct late_wave *w, unsigned reg, uint64_t u)
{
	w->s.s[reg] = (uint32_t)u;
	w->s.s[reg + 1] = (uint32_t)(u >> 32);
}

static uint64_t lane_mask(const struct late_wave *w, unsigned reg)
{
	return w->lanes == 64 ? scalar_pair(w, reg) : w->s.s[reg];
}

static bool is_taken(const struct late_wave *w, enum isa_op op)
{
	switch (op) {
	case ISA_s_branch:
	case ISA_s_call_b64:
		return true;
	case ISA_s_cbranch_scc0:
		return !w->s.scc;
	case ISA_s_cbranch_scc1:
		return w->s.scc;
	case ISA_s_cbranch_vccz:
		return !lane_mask(w, ISA_R_VCC_LO);
	case ISA_s_cbranch_vccnz:
		return lane_mask(w, ISA_R_VCC_LO);
	case ISA_s_cbranch_execz:
		return !lane_mask(w, ISA_R_EXEC_LO);
	case ISA_s_cbranch_execnz:
		return lane_mask(w, ISA_R_EXEC_LO);
	default:
		return false;
	}
}

/* s_waitcnt (RDNA3 ISA 4.4): vmcnt 15:10, lgkmcnt 9:4, expcnt 2:0. */
static bool wait_counts(struct late_wave *w, uint32_t imm)
{
	const int vm = imm >> 10 & 63, lgkm = imm >> 4 & 63;

	return late_wait(w, LATE_VM, vm) &&
	       late_wait(w, LATE_LDS | LATE_SMEM, lgkm);
}

static int count_of(const struct late_wave *w, const struct isa_inst *in)
{
	const uint32_t reg = in->f[ISA_F_SDST];

	return (int)((in->f[ISA_F_SIMM16] & 63) +
		     (reg < ISA_R_NULL ? w->s.s[reg] & 63 : 0));
}

/* Instructions that only this wave's flow and waiting see; *known: was one. */
static bool run_control(struct late_wave *w, const struct isa_inst *in,
			uint64_t next, bool *known)
{
	*known = true;
	switch (in->op) {
	case ISA_s_endpgm:
		w->state = LATE_ENDED;
		return true;
	case ISA_s_barrier:
		w->state = LATE_AT_BARRIER;
		return true;
	case ISA_s_waitcnt:
		return wait_counts(w, in->f[ISA_F_SIMM16]);
	case ISA_s_waitcnt_vmcnt:
		return late_wait(w, LATE_VM, count_of(w, in));
	case ISA_s_waitcnt_vscnt:
		return late_wait(w, LATE_VS, count_of(w, in));
	case ISA_s_waitcnt_lgkmcnt:
		return late_wait(w, LATE_LDS | LATE_SMEM, count_of(w, in));
	case ISA_s_wait_idle:
		return late_wait(w, LATE_VM | LATE_VS | LATE_LDS | LATE_SMEM,
				 0);
	case ISA_s_setpc_b64:
		w->pc = scalar_pair(w, in->f[ISA_F_SSRC0]);
		return true;
	case ISA_s_swappc_b64:
		w->pc = scalar_pair(w, in->f[ISA_F_SSRC0]);
		set_pair(w, in->f[ISA_F_SDST], next);
		return true;
	case ISA_s_getpc_b64:
		set_pair(w, in->f[ISA_F_SDST], next);
		return true;
	case ISA_s_getreg_b32:
		w->s.s[in->f[ISA_F_SDST]] = 0;
		return true;
	case ISA_s_waitcnt_depctr:
	case ISA_s_waitcnt_expcnt:
	case ISA_s_sendmsg:
	case ISA_s_clause:
	case ISA_s_delay_alu:
	case ISA_s_nop:
	case ISA_s_sleep:
	case ISA_s_setprio:
	case ISA_s_set_inst_prefetch_distance:
	case ISA_s_dcache_inv:
	case ISA_buffer_gl0_inv:
	case ISA_buffer_gl1_inv:
		return true;
	}
	*known = false;
	return true;
}

/* MODE, whose fields are rounding and denormals. */
static bool set_mode(struct late_wave *w, const struct isa_inst *in)
{
	const uint32_t imm = in->f[ISA_F_SIMM16], from = imm >> 6 & 31;
	const uint32_t n = (imm >> 11 & 31) + 1;
	const uint32_t mask = (uint32_t)((UINT64_C(1) << n) - 1) << from;
	const uint32_t u = in->op == ISA_s_setreg_imm32_b32 ?
				   in->literal :
				   w->s.s[in->f[ISA_F_SDST]];

	if ((imm & 63) != 1)
		return false;
	w->mode = (w->mode & ~mask) | (u << from & mask);
	return true;
}

/* -------------------------------------------------------------- fetch ---- */

static const struct isa_inst *fetch_inst(struct late_wave *w)
{
	struct late_grid *g = w->group->grid;
	const struct late_run *r = g->run;
	const struct isa_target t = { ISA_GFX11, w->lanes, true };
	const uint64_t at = w->pc - r->code_va;
	struct isa_inst *in;
	size_t left;

	if (at >= r->code_bytes || at % 4) {
		late_fail(w, "executes at 0x%llx, outside of the code",
			  (unsigned long long)w->pc);
		return NULL;
	}
	if (g->inst[at / 4])
		return g->inst[at / 4];
	left = r->code_bytes - at;
	in = xcalloc(1, sizeof(*in));
	const char *why = isa_decode(&t, late_bytes(r, w->pc, 4), left, in);

	if (why) {
		late_fail(w, "no instruction: %s", why);
		free(in);
		return NULL;
	}
	return g->inst[at / 4] = in;
}

bool late_step(struct late_wave *w)
{
	const struct isa_inst *in = fetch_inst(w);
	struct state old;
	uint64_t next;
	bool known;

	if (!in)
		return false;
	next = w->pc + in->size_bytes;
	if (is_taken(w, (enum isa_op)in->op)) {
		if (in->op == ISA_s_call_b64)
			set_pair(w, in->f[ISA_F_SDST], next);
		w->pc = next + 4 * (uint64_t)(int64_t)(int16_t)
					in->f[ISA_F_SIMM16];
		return true;
	}
	w->pc = next;
	if (!run_control(w, in, next, &known))
		return false;
	if (known || (isa_op_info((enum isa_op)in->op)->pipe ==
		      ISA_PIPE_BRANCH))
		return true;
	if (in->op == ISA_s_setreg_b32 || in->op == ISA_s_setreg_imm32_b32)
		return set_mode(w, in);
	if (late_is_memory(in))
		return late_issue(w, in);
	if (scalar_rows[in->op]) {
		memcpy(old.s, w->s.s, sizeof(old.s));
		old.scc = w->s.scc;
		scalar_apply(in, scalar_rows[in->op], &old, &w->s);
		if (w->lanes == 32)
			w->s.s[ISA_R_EXEC_HI] = 0;
		return true;
	}
	if (late_vector(w, in))
		return true;
	return err_set(w->group->grid->e, ERR_UNSUPPORTED,
		       "%s has no reference",
		       isa_op_info((enum isa_op)in->op)->name);
}
