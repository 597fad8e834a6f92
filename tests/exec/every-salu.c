/*
 * Every scalar instruction: what computes by a reference of its own
 * (tests/ref/salu.def) on special and random values, branches by their
 * conditions, hints by leaving everything as it was; one by one and in the
 * fast form.  What other tests have alone is named with the test.
 */
#include "tests/exec/every.h"
#include "tests/ref/scalar.h"

enum {
	PROGRAMS = 24,
	WARM = 20,
	S_A = 8,
	S_B = 12,
	S_D = 16,
	S_TARGET = 20,
};

/* ------------------------------------------------------- instructions ---- */

/* Hints: nothing changes that a program can see. */
static const uint16_t hints[] = {
	ISA_s_nop, ISA_s_sleep, ISA_s_set_inst_prefetch_distance, ISA_s_clause,
	ISA_s_delay_alu, ISA_s_waitcnt_depctr, ISA_s_waitcnt, ISA_s_wait_idle,
	ISA_s_setprio, ISA_s_wakeup, ISA_s_incperflevel, ISA_s_decperflevel,
	ISA_s_ttracedata, ISA_s_ttracedata_imm, ISA_s_icache_inv,
	ISA_s_waitcnt_vscnt, ISA_s_waitcnt_vmcnt, ISA_s_waitcnt_expcnt,
	ISA_s_waitcnt_lgkmcnt, ISA_s_version, ISA_s_gl1_inv, ISA_s_dcache_inv,
	ISA_s_barrier, /* in a workgroup of one wave */
};

enum condition { ALWAYS, NEVER, SCC0, SCC1, VCCZ, VCCNZ, EXECZ, EXECNZ };

/* No debugger is attached: its conditions are false. */
static const struct branch {
	uint16_t op;
	enum condition taken;
} branches[] = {
	{ ISA_s_branch, ALWAYS },
	{ ISA_s_cbranch_scc0, SCC0 },
	{ ISA_s_cbranch_scc1, SCC1 },
	{ ISA_s_cbranch_vccz, VCCZ },
	{ ISA_s_cbranch_vccnz, VCCNZ },
	{ ISA_s_cbranch_execz, EXECZ },
	{ ISA_s_cbranch_execnz, EXECNZ },
	{ ISA_s_cbranch_cdbgsys, NEVER },
	{ ISA_s_cbranch_cdbguser, NEVER },
	{ ISA_s_cbranch_cdbgsys_or_user, NEVER },
	{ ISA_s_cbranch_cdbgsys_and_user, NEVER },
	{ ISA_s_call_b64, ALWAYS },
	{ ISA_s_setpc_b64, ALWAYS },
	{ ISA_s_swappc_b64, ALWAYS },
};

/* Stops of a wave: how it is found. */
static const struct stop {
	uint16_t op, imm;
	enum soft_state state;
	enum soft_fault_kind fault;
} stops[] = {
	{ ISA_s_endpgm, 0, SOFT_ENDED, 0 },
	{ ISA_s_endpgm_saved, 0, SOFT_ENDED, 0 },
	{ ISA_s_trap, 3, SOFT_FAULTED, SOFT_FAULT_TRAP },
	{ ISA_s_code_end, 0, SOFT_FAULTED, SOFT_FAULT_ILLEGAL },
	{ ISA_s_sethalt, 1, SOFT_FAULTED, SOFT_FAULT_HANG },
	{ ISA_s_sendmsghalt, 1, SOFT_FAULTED, SOFT_FAULT_HANG },
	{ ISA_s_rfe_b64, 0, SOFT_FAULTED, SOFT_FAULT_ILLEGAL },
};

/* Each has rows of its own in tests/exec/salu. */
static const uint16_t elsewhere[] = {
	ISA_s_getreg_b32,
	ISA_s_setreg_b32,
	ISA_s_setreg_imm32_b32,
	ISA_s_subvector_loop_begin,
	ISA_s_subvector_loop_end,
	ISA_s_movrels_b32,
	ISA_s_movrels_b64,
	ISA_s_movreld_b32,
	ISA_s_movreld_b64,
	ISA_s_movrelsd_2_b32,
	ISA_s_sendmsg_rtn_b32,
	ISA_s_sendmsg_rtn_b64,
	ISA_s_sendmsg,
};

/* -------------------------------------------------------- instructions ---- */

static int encode(enum isa_op op, struct isa_inst *in, uint8_t *code)
{
	static const struct isa_target target = { ISA_GFX11, 64, false };
	struct isa_inst made = *in;
	int size;

	made.op = (uint16_t)op;
	made.fmt = isa_op_info(op)->fmt;
	made.f[ISA_F_OP] = (uint32_t)isa_op_info(op)->opcode[ISA_GFX11];
	memset(code, 0, ISA_MAX_SIZE_BYTES);
	size = isa_encode(&made, code);
	if (!size || isa_decode(&target, code, (size_t)size, in))
		return 0;
	return size;
}

static uint32_t field_of(int reg)
{
	if (chance(75))
		return (uint32_t)reg;
	return chance(30) ? 240 + (uint32_t)(rnd() % 9) :
			    128 + (uint32_t)(rnd() % 81);
}

static int make(enum isa_op op, struct isa_inst *in, uint8_t *code)
{
	*in = (struct isa_inst){ 0 };
	for (int i = 0; i < isa_op_info(op)->n_opnd; i++)
		switch (isa_op_info(op)->opnd[i].slot) {
		case ISA_SLOT_D:
		case ISA_SLOT_DIN:
			in->f[ISA_F_SDST] = S_D;
			break;
		case ISA_SLOT_S0:
			in->f[ISA_F_SSRC0] = field_of(S_A);
			break;
		case ISA_SLOT_S1:
			in->f[ISA_F_SSRC1] = field_of(S_B);
			break;
		case ISA_SLOT_IMM:
			in->f[ISA_F_SIMM16] = chance(50) ? special(16) :
							   rnd() & 0xffff;
		}
	return encode(op, in, code);
}

static void fill(struct state *s)
{
	static const int at[] = { S_A, S_B, S_D };
	static const struct isa_inst none;

	fill_state(s, &none, 64);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		uint64_t u = chance(50) ? special(64) : lanes_random(&seed);

		if (chance(50))
			u = (u & ~(uint64_t)UINT32_MAX) |
			    (chance(50) ? special(32) : (uint32_t)(rnd() % 40));
		s->s[at[i]] = (uint32_t)u;
		s->s[at[i] + 1] = (uint32_t)(u >> 32);
	}
	if (chance(30))
		s->s[ISA_R_VCC_LO] = s->s[ISA_R_VCC_HI] = 0;
	if (chance(30))
		s->s[ISA_R_EXEC_LO] = s->s[ISA_R_EXEC_HI] = 0;
	if (chance(20)) /* equal sources */
		memcpy(&s->s[S_B], &s->s[S_A], 8);
}

/* --------------------------------------------------------------- tests ---- */

static bool run_both(struct lanes *t, const struct isa_inst *in, bool fast,
		     const struct state *old, const struct state *want)
{
	static struct state got;

	for (int k = 0; fast && k < WARM; k++)
		go(t, old, 1000, &got);
	if (!go(t, old, fast ? 1000 : 1, &got))
		return false;
	if (!memcmp(&got, want, sizeof(got)))
		return true;
	explain(in, 64, t->w.mode, fast ? "fast" : "slow", old, &got, want);
	diag("  SCC: got %u, wanted %u", got.scc, want->scc);
	return false;
}

static void test_row(struct lanes *t, enum isa_op op)
{
	static struct state old, want;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	int bad = 0;

	for (int i = 0; i < PROGRAMS && bad < 2; i++) {
		int size = make(op, &in, code);

		bad += !size;
		if (!size)
			continue;
		load(t, code, size);
		for (int k = 0; k < 4; k++) {
			fill(&old);
			expect_scalar(&in, scalar_rows[op], &old, &want);
			bad += !run_both(t, &in, k & 1, &old, &want);
		}
	}
	is_u64((uint64_t)bad, 0, "%s", isa_op_info(op)->name);
}

static void test_hint(struct lanes *t, enum isa_op op)
{
	static struct state old;
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in = { 0 };
	int size, bad = 0;

	if (isa_op_info(op)->fmt == ISA_FMT_SOPK)
		in.f[ISA_F_SDST] = op == ISA_s_version ? 0 : ISA_R_NULL;
	size = encode(op, &in, code);
	load(t, code, size);
	for (int k = 0; k < 4; k++) {
		fill(&old);
		bad += !size || !run_both(t, &in, k & 1, &old, &old);
	}
	is_u64((uint64_t)bad, 0, "%s changes nothing", isa_op_info(op)->name);
}

static bool is_taken(enum condition c, const struct state *s, int wave)
{
	uint64_t vcc = pair_at(s, ISA_R_VCC_LO, wave / 32);
	uint64_t exec = pair_at(s, ISA_R_EXEC_LO, wave / 32);

	switch (c) {
	case ALWAYS:
		return true;
	case NEVER:
		return false;
	case SCC0:
		return !s->scc;
	case SCC1:
		return s->scc;
	case VCCZ:
		return !vcc;
	case VCCNZ:
		return vcc;
	case EXECZ:
		return !exec;
	case EXECNZ:
		return exec;
	}
	return false;
}

/*
 * The instruction; s_movk_i32 s40, 1; s_endpgm; and where it goes: s_movk_i32
 * s40, 2.
 */
static void test_branch(struct lanes *t, const struct branch *b)
{
	static struct state old, want;
	uint32_t code[5] = { 0, 0xb0280001, 0xbfb00000, 0xb0280002 };
	const uint64_t target = LANES_CODE_VA + 12, next = LANES_CODE_VA + 4;
	struct isa_inst in = { 0 };
	uint8_t bytes[ISA_MAX_SIZE_BYTES];
	int bad = 0;

	if (isa_op_info((enum isa_op)b->op)->fmt == ISA_FMT_SOP1) {
		in.f[ISA_F_SSRC0] = S_TARGET;
		in.f[ISA_F_SDST] = b->op == ISA_s_swappc_b64 ? S_D : 0;
	} else {
		in.f[ISA_F_SIMM16] = 2;
		in.f[ISA_F_SDST] = b->op == ISA_s_call_b64 ? S_D : 0;
	}
	bad += encode((enum isa_op)b->op, &in, bytes) != 4;
	memcpy(code, bytes, 4);
	load(t, (const uint8_t *)code, 16);
	for (int k = 0; k < 40; k++) {
		t->w.wave_size = k & 2 ? 64 : 32;
		fill(&old);
		if (t->w.wave_size == 32)
			old.s[ISA_R_EXEC_HI] = 0;
		old.s[S_TARGET] = (uint32_t)target;
		old.s[S_TARGET + 1] = (uint32_t)(target >> 32);
		want = old;
		want.s[40] = 1 + is_taken(b->taken, &old, t->w.wave_size);
		if (b->op == ISA_s_call_b64 || b->op == ISA_s_swappc_b64) {
			want.s[S_D] = (uint32_t)next;
			want.s[S_D + 1] = (uint32_t)(next >> 32);
		}
		bad += !run_both(t, &in, k & 1, &old, &want);
	}
	t->w.wave_size = 64;
	is_u64((uint64_t)bad, 0, "%s", isa_op_info((enum isa_op)b->op)->name);
}

static void test_getpc(struct lanes *t)
{
	static struct state old, want;
	struct isa_inst in = { .f = { [ISA_F_SDST] = S_D } };
	uint8_t code[ISA_MAX_SIZE_BYTES];
	int bad = 0, size = encode(ISA_s_getpc_b64, &in, code);

	load(t, code, size);
	for (int k = 0; k < 4; k++) {
		fill(&old);
		want = old;
		want.s[S_D] = (uint32_t)(LANES_CODE_VA + 4);
		want.s[S_D + 1] = 0;
		bad += !run_both(t, &in, k & 1, &old, &want);
	}
	is_u64((uint64_t)bad, 0, "s_getpc_b64 gives the next address");
}

/* MODE's fields of rounding and denormals. */
static void test_mode(struct lanes *t, enum isa_op op, int low)
{
	struct isa_inst in = { .f = { [ISA_F_SIMM16] = 9 } };
	uint8_t code[ISA_MAX_SIZE_BYTES];
	static struct state old, got;
	const uint32_t before = t->w.mode;

	load(t, code, encode(op, &in, code));
	fill(&old);
	go(t, &old, 1, &got);
	is_u64(t->w.mode, (before & ~(15u << low)) | 9u << low, "%s",
	       isa_op_info(op)->name);
	t->w.mode = before;
}

static void test_stop(struct lanes *t, const struct stop *s)
{
	struct isa_inst in = { .f = { [ISA_F_SIMM16] = s->imm } };
	uint8_t code[ISA_MAX_SIZE_BYTES];
	static struct state old;
	const char *name = isa_op_info((enum isa_op)s->op)->name;

	load(t, code, encode((enum isa_op)s->op, &in, code));
	fill(&old);
	put_state(t, &old);
	t->w.pc = LANES_CODE_VA;
	t->w.state = SOFT_READY;
	soft_wave_run(&t->w, 10);
	is_u64(t->w.state, s->state, "%s stops the wave", name);
	if (s->state == SOFT_FAULTED)
		is_u64(t->w.fault.kind, s->fault, "%s: kind of fault", name);
}

/* ----------------------------------------------------------- all of it ---- */

static bool is_scalar(const struct isa_op_info *op)
{
	switch (op->fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
		return op->opcode[ISA_GFX11] >= 0 && !(op->flags & ISA_GFX);
	}
	return op->name && (!strcmp(op->name, "s_gl1_inv") ||
			    !strcmp(op->name, "s_dcache_inv"));
}

static void test_elsewhere(const char *name)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	file_read("tests/exec/salu.c", 0, &b, &e);
	has_str(b.data ? b.data : e.msg, name, "%s has rows in tests/exec/salu",
		name);
	buf_fini(&b);
}

static bool test_one(struct lanes *t, uint16_t op)
{
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (hints[i] == op) {
			test_hint(t, (enum isa_op)op);
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(branches); i++)
		if (branches[i].op == op) {
			test_branch(t, &branches[i]);
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
		if (stops[i].op == op) {
			test_stop(t, &stops[i]);
			return true;
		}
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		if (elsewhere[i] == op) {
			test_elsewhere(isa_op_info((enum isa_op)op)->name);
			return true;
		}
	return false;
}

int main(void)
{
	struct lanes *t = lanes_new(64);

	diag("seed 0x%llx", (unsigned long long)seed);
	t->w.n_vgprs = REGS;
	for (int i = 1; i < ISA_OP_COUNT; i++) {
		const struct isa_op_info *op = isa_op_info((enum isa_op)i);

		if (!is_scalar(op))
			continue;
		if (scalar_rows[i])
			test_row(t, (enum isa_op)i);
		else if (i == ISA_s_getpc_b64)
			test_getpc(t);
		else if (i == ISA_s_round_mode || i == ISA_s_denorm_mode)
			test_mode(t, (enum isa_op)i,
				  i == ISA_s_round_mode ? 0 : 4);
		else if (!test_one(t, (uint16_t)i))
			ok(false, "%s has a row", op->name);
	}
	lanes_free(t);
	return plan_done();
}
