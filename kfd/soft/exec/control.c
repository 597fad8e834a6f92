/*
 * kfd/soft/exec/control.c - program control.
 *
 * Branches, barriers, messages, hardware registers, and the many instructions
 * that only steer timing and so do nothing here.
 */
#include "kfd/soft/exec/mem.h"

/* -------------------------------------------------------------- jumps ---- */

/* w->pc is already that of the next instruction. */
static void take_branch(struct soft_wave *w, const struct soft_uop *u)
{
	w->pc += (uint64_t)((int64_t)(int16_t)u->in.f[ISA_F_SIMM16] * 4);
}

/* A function for each condition, which is an expression of w. */
#define BRANCH_IF(name, condition) \
	static void run_##name(struct soft_wave *w, const struct soft_uop *u) \
	{ \
		if (condition) \
			take_branch(w, u); \
	}
BRANCH_IF(s_branch, true)
BRANCH_IF(s_cbranch_scc0, !w->scc)
BRANCH_IF(s_cbranch_scc1, w->scc)
BRANCH_IF(s_cbranch_vccz, soft_is_vccz(w))
BRANCH_IF(s_cbranch_vccnz, !soft_is_vccz(w))
BRANCH_IF(s_cbranch_execz, soft_is_execz(w))
BRANCH_IF(s_cbranch_execnz, !soft_is_execz(w))

static void run_s_getpc_b64(struct soft_wave *w, const struct soft_uop *u)
{
	soft_write_scalar(w, &u->in.opnd[0], w->pc);
}

static void jump_to(struct soft_wave *w, uint64_t to)
{
	w->pc = to & ~UINT64_C(3);
}

static void run_s_setpc_b64(struct soft_wave *w, const struct soft_uop *u)
{
	jump_to(w, soft_read_scalar(w, &u->in.opnd[0], &u->in));
}

static void run_s_swappc_b64(struct soft_wave *w, const struct soft_uop *u)
{
	uint64_t to = soft_read_scalar(w, &u->in.opnd[1], &u->in);

	soft_write_scalar(w, &u->in.opnd[0], w->pc);
	jump_to(w, to);
}

static void run_s_call_b64(struct soft_wave *w, const struct soft_uop *u)
{
	soft_write_scalar(w, &u->in.opnd[0], w->pc);
	take_branch(w, u);
}

static void run_s_rfe_b64(struct soft_wave *w, const struct soft_uop *u)
{
	if (w->privileged) {
		w->privileged = false;
		jump_to(w, soft_read_scalar(w, &u->in.opnd[0], &u->in));
		if (w->halt)
			w->state = SOFT_HALTED;
		return;
	}
	soft_raise(w, SOFT_FAULT_ILLEGAL,
		   "s_rfe_b64 outside of a trap handler");
}

/*
 * The two halves of EXEC one after the other (RDNA3 ISA 16.4): the loop's
 * register holds the half that waits.
 */
static void run_s_subvector_loop_begin(struct soft_wave *w,
				       const struct soft_uop *u)
{
	uint32_t *exec = &w->s[ISA_R_EXEC_LO];

	if (!(exec[0] | exec[1])) {
		take_branch(w, u);
	} else if (!exec[0]) {
		soft_write_scalar(w, &u->in.opnd[0], exec[0]);
	} else {
		soft_write_scalar(w, &u->in.opnd[0], exec[1]);
		exec[1] = 0;
	}
}

static void run_s_subvector_loop_end(struct soft_wave *w,
				     const struct soft_uop *u)
{
	uint32_t *exec = &w->s[ISA_R_EXEC_LO];
	uint32_t saved =
		(uint32_t)soft_read_scalar(w, &u->in.opnd[0], &u->in);

	if (exec[1]) {
		exec[0] = saved;
	} else if (saved) {
		exec[1] = saved;
		soft_write_scalar(w, &u->in.opnd[0], exec[0]);
		exec[0] = 0;
		take_branch(w, u);
	}
}

/* ------------------------------------------------- ends and barriers ---- */

/* Timing only: memory is already in order here. */
void soft_run_nothing(struct soft_wave *w, const struct soft_uop *u)
{
	(void)w;
	(void)u;
}

static void run_s_endpgm(struct soft_wave *w, const struct soft_uop *u)
{
	(void)u;
	w->state = SOFT_ENDED;
}

/* Privileged waves of these chips pass over s_trap 2 (LLVM's gfx11 notes). */
static void run_s_trap(struct soft_wave *w, const struct soft_uop *u)
{
	const unsigned id = u->in.f[ISA_F_SIMM16] & 0xff;

	if (w->privileged && id == 2)
		return;
	if (!soft_trap_enter(w, w->pc - u->in.size_bytes, id))
		soft_raise(w, SOFT_FAULT_TRAP,
			   "s_trap %u without a trap handler", id);
}

/* Only a trap handler can know that somebody will look at the wave. */
static bool set_halt(struct soft_wave *w, bool halt)
{
	if (halt && !w->group->env->traps)
		return false;
	w->halt = halt;
	if (halt && !w->privileged)
		w->state = SOFT_HALTED;
	return true;
}

static void run_s_sethalt(struct soft_wave *w, const struct soft_uop *u)
{
	if (!set_halt(w, u->in.f[ISA_F_SIMM16] & 1))
		soft_raise(w, SOFT_FAULT_HANG,
			   "s_sethalt 1: nothing can resume the wave");
}

static void run_s_code_end(struct soft_wave *w, const struct soft_uop *u)
{
	(void)u;
	soft_raise(w, SOFT_FAULT_ILLEGAL,
		   "s_code_end: execution ran past the end of the program");
}

static void run_s_icache_inv(struct soft_wave *w, const struct soft_uop *u)
{
	(void)u;
	soft_code_cache_stale(w->group->code);
}

/* ---------------------------------------------------- MODE and others ---- */

static void set_mode(struct soft_wave *w, uint32_t mask, uint32_t value)
{
	mask &= ~soft_fixed_mode(w->group->env->gen);
	w->mode = (w->mode & ~mask) | (value & mask);
}

static void run_s_round_mode(struct soft_wave *w, const struct soft_uop *u)
{
	set_mode(w, SOFT_MODE_ROUND_F32 | SOFT_MODE_ROUND_F16_F64,
		 u->in.f[ISA_F_SIMM16]);
}

static void run_s_denorm_mode(struct soft_wave *w, const struct soft_uop *u)
{
	set_mode(w, SOFT_MODE_DENORM_F32 | SOFT_MODE_DENORM_F16_F64,
		 u->in.f[ISA_F_SIMM16] << 4);
}

/* Hardware registers, whatever their numbers in SIMM16[5:0] of s_getreg. */
enum hwreg {
	HWREG_NONE,
	HWREG_MODE,
	HWREG_STATUS,
	HWREG_TRAPSTS,
	HWREG_GPR_ALLOC,
	HWREG_LDS_ALLOC,
	HWREG_SH_MEM_BASES,
	HWREG_FLAT_SCR_LO,
	HWREG_FLAT_SCR_HI,
	HWREG_HW_ID1,
	HWREG_HW_ID2,
	HWREG_SHADER_CYCLES,
	HWREG_SHADER_CYCLES_HI,
	HWREG_STATE_PRIV,
	HWREG_NOTHING, /* reads 0: nothing is outstanding, nothing was raised */
};

/* RDNA3 ISA 3.5, RDNA4 ISA 3.4. */
static const uint8_t gfx11_hwregs[64] = {
	[1] = HWREG_MODE,	  [2] = HWREG_STATUS,
	[3] = HWREG_TRAPSTS,	  [5] = HWREG_GPR_ALLOC,
	[6] = HWREG_LDS_ALLOC,	  [7] = HWREG_NOTHING,
	[15] = HWREG_SH_MEM_BASES, [20] = HWREG_FLAT_SCR_LO,
	[21] = HWREG_FLAT_SCR_HI, [23] = HWREG_HW_ID1,
	[24] = HWREG_HW_ID2,	  [29] = HWREG_SHADER_CYCLES,
};
static const uint8_t gfx10_1_hwregs[64] = { /* RDNA ISA 1.0, 3.4 */
	[1] = HWREG_MODE,	  [2] = HWREG_STATUS,
	[3] = HWREG_TRAPSTS,	  [5] = HWREG_GPR_ALLOC,
	[6] = HWREG_LDS_ALLOC,	  [7] = HWREG_NOTHING,
	[15] = HWREG_SH_MEM_BASES, [20] = HWREG_FLAT_SCR_LO,
	[21] = HWREG_FLAT_SCR_HI, [22] = HWREG_NOTHING, /* XNACK_MASK */
	[23] = HWREG_HW_ID1,	  [24] = HWREG_HW_ID2,
};
static const uint8_t gfx12_hwregs[64] = {
	[1] = HWREG_MODE,	  [2] = HWREG_STATUS,
	[4] = HWREG_STATE_PRIV,	  [5] = HWREG_GPR_ALLOC,
	[6] = HWREG_LDS_ALLOC,	  [7] = HWREG_NOTHING,
	[17] = HWREG_NOTHING,	  [18] = HWREG_NOTHING,
	[19] = HWREG_NOTHING,	  [20] = HWREG_FLAT_SCR_LO,
	[21] = HWREG_FLAT_SCR_HI, [23] = HWREG_HW_ID1,
	[24] = HWREG_HW_ID2,	  [29] = HWREG_SHADER_CYCLES,
	[30] = HWREG_SHADER_CYCLES_HI,
};
static const uint8_t *const hwregs[ISA_GEN_COUNT] = {
	[ISA_GFX10_1] = gfx10_1_hwregs,
	[ISA_GFX10_3] = gfx11_hwregs,
	[ISA_GFX11] = gfx11_hwregs,
	[ISA_GFX11_5] = gfx11_hwregs,
	[ISA_GFX12] = gfx12_hwregs,
};

/* Where nobody models a pipeline: one cycle per instruction. */
static uint64_t shader_cycles(const struct soft_wave *w)
{
	const struct soft_now *now = w->group->env->now;

	return now ? now->cycle : w->start_clock + w->n_insts;
}

static bool hwreg_read(const struct soft_wave *w, int id, uint32_t *value)
{
	const struct soft_env *env = w->group->env;

	*value = 0;
	switch ((enum hwreg)hwregs[env->gen][id & 63]) {
	case HWREG_NONE:
		return false;
	case HWREG_MODE:
		*value = w->mode & ~soft_fixed_mode(env->gen);
		return true;
	case HWREG_STATUS:
		*value = soft_status(w);
		return true;
	case HWREG_STATE_PRIV: /* SCC in bit 9 */
		*value = (uint32_t)w->scc << 9;
		return true;
	case HWREG_TRAPSTS:
		*value = w->trapsts;
		return true;
	case HWREG_LDS_ALLOC: /* base 0, size in 512 bytes at 20:12 */
		*value = (w->group->lds_size_bytes / 512) << 12;
		return true;
	case HWREG_GPR_ALLOC: /* base 0, size in 8 VGPRs less 1 at 19:12 */
		*value = (uint32_t)((w->n_vgprs + 7) / 8 - 1) << 12;
		return true;
	case HWREG_SH_MEM_BASES:
		*value = (uint32_t)(env->private_base >> 48) |
			 (uint32_t)(env->shared_base >> 48) << 16;
		return true;
	case HWREG_FLAT_SCR_LO:
		*value = (uint32_t)w->scratch_va;
		return true;
	case HWREG_FLAT_SCR_HI:
		*value = (uint32_t)(w->scratch_va >> 32);
		return true;
	case HWREG_HW_ID1:
		*value = w->hw_id1;
		return true;
	case HWREG_HW_ID2:
		*value = w->hw_id2;
		return true;
	case HWREG_SHADER_CYCLES: /* 20 bits, from gfx12 on 32 */
		*value = (uint32_t)shader_cycles(w) &
			 (hwregs[env->gen] == gfx12_hwregs ? ~0u : 0xfffff);
		return true;
	case HWREG_SHADER_CYCLES_HI:
		*value = (uint32_t)(shader_cycles(w) >> 32);
		return true;
	case HWREG_NOTHING:
		return true;
	}
	return false;
}

struct hwreg_part {
	int id, offset;
	uint32_t mask; /* before the shift by offset */
};

static struct hwreg_part hwreg_part(const struct soft_uop *u)
{
	uint32_t imm = u->in.f[ISA_F_SIMM16];
	int size = (int)(imm >> 11 & 31) + 1;

	return (struct hwreg_part){ (int)(imm & 63), (int)(imm >> 6 & 31),
				    UINT32_MAX >> (32 - size) };
}

static void run_s_getreg_b32(struct soft_wave *w, const struct soft_uop *u)
{
	struct hwreg_part p = hwreg_part(u);
	uint32_t value;

	if (!hwreg_read(w, p.id, &value)) {
		soft_raise(w, SOFT_FAULT_UNSUPPORTED,
			   "s_getreg_b32: hardware register %d is not there",
			   p.id);
		return;
	}
	soft_write_scalar(w, &u->in.opnd[0], value >> p.offset & p.mask);
}

/* Registers that user programs may not change keep their value. */
static void write_hwreg(struct soft_wave *w, const struct soft_uop *u,
			uint32_t value)
{
	struct hwreg_part p = hwreg_part(u);
	uint32_t mask = p.mask << p.offset, old;

	const enum hwreg reg = hwregs[w->group->env->gen][p.id];

	if (reg == HWREG_MODE)
		set_mode(w, mask, value << p.offset);
	else if (reg == HWREG_TRAPSTS)
		w->trapsts = (w->trapsts & ~mask) | (value << p.offset & mask);
	else if (reg == HWREG_STATUS && w->privileged)
		soft_set_status(w, mask, value << p.offset);
	else if (!hwreg_read(w, p.id, &old))
		soft_raise(w, SOFT_FAULT_UNSUPPORTED,
			   "s_setreg: hardware register %d is not there", p.id);
}

static void run_s_setreg_b32(struct soft_wave *w, const struct soft_uop *u)
{
	write_hwreg(w, u,
		    (uint32_t)soft_read_scalar(w, &u->in.opnd[1], &u->in));
}

static void run_s_setreg_imm32_b32(struct soft_wave *w,
				   const struct soft_uop *u)
{
	write_hwreg(w, u, u->in.literal);
}

/* ---------------------------------------------------------- messages ---- */

enum message {
	MSG_INTERRUPT = 1,
	MSG_DEALLOC_VGPRS = 3,
	MSG_RTN_GET_DOORBELL = 128,
	MSG_RTN_GET_TMA = 130,
	MSG_RTN_GET_REALTIME = 131,
	MSG_RTN_GET_TBA = 133,
};

/* VGPRs that are given back early are simply not used any more. */
static void run_s_sendmsg(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_env *env = w->group->env;
	uint32_t id = u->in.f[ISA_F_SIMM16] & 0xff;

	if (id == MSG_INTERRUPT && env->interrupt)
		env->interrupt(env, w->s[ISA_R_M0] & 0xffffff, w->privileged);
	if (id != 0 && id != MSG_INTERRUPT && id != MSG_DEALLOC_VGPRS)
		soft_raise(w, SOFT_FAULT_UNSUPPORTED,
			   "s_sendmsg: message %u is for graphics or trap "
			   "handlers", id);
}

static void run_s_sendmsghalt(struct soft_wave *w, const struct soft_uop *u)
{
	if (!set_halt(w, true))
		soft_raise(w, SOFT_FAULT_HANG,
			   "s_sendmsghalt: nothing can resume the wave");
	else
		run_s_sendmsg(w, u);
}

/* The addresses of the kernel's own handler are 0: it is none of this code. */
static void run_s_sendmsg_rtn(struct soft_wave *w, const struct soft_uop *u)
{
	const struct soft_env *env = w->group->env;
	uint32_t id = u->in.f[ISA_F_SSRC0];
	uint64_t value = 0;

	if (id == MSG_RTN_GET_REALTIME) {
		value = env->now ? env->now->realtime : env->realtime(env->ctx);
	} else if (id == MSG_RTN_GET_DOORBELL && env->traps) {
		value = env->doorbell;
	} else if (id != MSG_RTN_GET_TMA && id != MSG_RTN_GET_TBA) {
		soft_raise(w, SOFT_FAULT_UNSUPPORTED,
			   "s_sendmsg_rtn: message %u is for trap handlers",
			   id);
		return;
	}
	soft_write_scalar(w, &u->in.opnd[0], value);
}

/* ------------------------------------------------------------- table ---- */

static soft_handler *const handler[ISA_OP_COUNT] = {
#define SAME(name) [ISA_##name] = run_##name
#define NOTHING(name) [ISA_##name] = soft_run_nothing
	SAME(s_branch),
	SAME(s_cbranch_scc0),
	SAME(s_cbranch_scc1),
	SAME(s_cbranch_vccz),
	SAME(s_cbranch_vccnz),
	SAME(s_cbranch_execz),
	SAME(s_cbranch_execnz),
	/* No debugger is attached: these never jump. */
	NOTHING(s_cbranch_cdbgsys),
	NOTHING(s_cbranch_cdbguser),
	NOTHING(s_cbranch_cdbgsys_or_user),
	NOTHING(s_cbranch_cdbgsys_and_user),
	SAME(s_getpc_b64),
	SAME(s_setpc_b64),
	SAME(s_swappc_b64),
	SAME(s_call_b64),
	SAME(s_rfe_b64),
	SAME(s_subvector_loop_begin),
	SAME(s_subvector_loop_end),
	SAME(s_endpgm),
	[ISA_s_endpgm_saved] = run_s_endpgm,
	SAME(s_trap),
	SAME(s_sethalt),
	SAME(s_code_end),
	SAME(s_icache_inv),
	SAME(s_round_mode),
	SAME(s_denorm_mode),
	SAME(s_getreg_b32),
	SAME(s_setreg_b32),
	SAME(s_setreg_imm32_b32),
	SAME(s_sendmsg),
	SAME(s_sendmsghalt),
	[ISA_s_sendmsg_rtn_b32] = run_s_sendmsg_rtn,
	[ISA_s_sendmsg_rtn_b64] = run_s_sendmsg_rtn,
	NOTHING(s_nop),
	NOTHING(s_sleep),
	NOTHING(s_singleuse_vdst),
	NOTHING(s_set_inst_prefetch_distance),
	NOTHING(s_clause),
	NOTHING(s_delay_alu),
	NOTHING(s_waitcnt_depctr),
	NOTHING(s_wait_alu),
	NOTHING(s_wait_loadcnt),
	NOTHING(s_wait_storecnt),
	NOTHING(s_wait_samplecnt),
	NOTHING(s_wait_bvhcnt),
	NOTHING(s_wait_expcnt),
	NOTHING(s_wait_dscnt),
	NOTHING(s_wait_kmcnt),
	NOTHING(s_wait_loadcnt_dscnt),
	NOTHING(s_wait_storecnt_dscnt),
	NOTHING(s_sleep_var),
	NOTHING(s_waitcnt),
	NOTHING(s_wait_idle),
	NOTHING(s_waitcnt_vscnt),
	NOTHING(s_waitcnt_vmcnt),
	NOTHING(s_waitcnt_expcnt),
	NOTHING(s_waitcnt_lgkmcnt),
	NOTHING(s_version),
	NOTHING(s_wakeup),
	NOTHING(s_setprio),
	NOTHING(s_incperflevel),
	NOTHING(s_decperflevel),
	NOTHING(s_ttracedata),
	NOTHING(s_ttracedata_imm),
};

soft_handler *soft_control_handler(const struct isa_inst *in)
{
	return handler[in->op] ? handler[in->op] : soft_barrier_handler(in);
}

bool soft_control_is_nothing(const struct isa_inst *in)
{
	return handler[in->op] == soft_run_nothing;
}
