/*
 * compiler/sim/machine.c - partial evaluation of a wave: what is known, control
 * flow.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/machine_int.h"

/* ---- what is known ---- */

static bool knows_sources(const struct machine *m, const struct machine_half *o)
{
	uint64_t missing = 0;

	for (int k = 0; k < 4; k++)
		missing |= o->need_v[k] & ~m->know_v[k];
	for (int k = 0; k < 2; k++)
		missing |= o->need_s[k] & ~m->know_s[k];
	return !missing && (m->know_scc || !o->need_scc);
}

static void forget_results(struct machine *m, const struct machine_half *o)
{
	const uint64_t always = UINT64_C(1) << (ISA_R_NULL - 64);

	for (int k = 0; k < 4; k++) {
		m->know_v[k] &= ~o->kill_v[k];
		for (uint64_t r = o->kill_v[k] & m->some_v[k]; r; r &= r - 1)
			m->know_lane[64 * k + __builtin_ctzll(r)] = 0;
		m->some_v[k] &= ~o->kill_v[k];
	}
	for (int k = 0; k < 2; k++)
		m->know_s[k] &= ~o->kill_s[k];
	m->know_s[1] |= always;
	m->know_scc = m->know_scc && !o->kill_scc;
}

static void learn_results(struct machine *m, const struct machine_half *o)
{
	for (int k = 0; k < 4; k++)
		m->know_v[k] |= o->kill_v[k];
	for (int k = 0; k < 2; k++)
		m->know_s[k] |= o->kill_s[k];
	m->know_scc = m->know_scc || o->kill_scc;
}

/* ---- evaluation ---- */

static void eval_vector(const struct machine_code *c, struct machine *m,
			const struct machine_op *o)
{
	struct machine_value x;

	for (int half = 0; half < c->wave_size / MACHINE_HALF; half++)
		machine_compute(c, m, &o->in, &o->x, half, &x);
	machine_write(c, m, &o->in, &o->x, &x);
}

static bool eval_known(const struct machine_code *c, struct machine *m,
		       const struct machine_op *o)
{
	uint64_t at = m->pc + o->in.size_bytes;

	switch (o->form) {
	case MACHINE_V32: case MACHINE_V64: case MACHINE_CARRY:
	case MACHINE_CMP: case MACHINE_CNDMASK:
		eval_vector(c, m, o);
		return true;
	case MACHINE_SCALAR:
		machine_scalar(m, o);
		return true;
	case MACHINE_SAVEEXEC:
		machine_saveexec(c, m, o);
		return true;
	case MACHINE_SMEM:
		return machine_load(c, m, &o->in);
	case MACHINE_GETPC:
		machine_write_s(m, &o->in.opnd[o->x.dst], at);
		return true;
	default:
		return false;
	}
}

/* One lane of a register may be known without the others. */
static void eval_lane(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o)
{
	bool known = true;

	if (o->form == MACHINE_WRITELANE) {
		if (!machine_write_lane(c, m, o))
			forget_results(m, &o->x);
		return;
	}
	for (int k = 0; k < 2; k++)
		known = known && !(o->x.need_s[k] & ~m->know_s[k]);
	if (known && machine_read_lane(c, m, o))
		learn_results(m, &o->x);
	else
		forget_results(m, &o->x);
}

/* Both read before one writes; one may be known and the other not. */
static void eval_dual(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o)
{
	const struct machine_half *h[2] = { &o->x, &o->y };
	struct machine_value v[2];
	bool good[2];

	for (int k = 0; k < 2; k++) {
		good[k] = (h[k]->form == MACHINE_V32 ||
			   h[k]->form == MACHINE_CNDMASK) &&
			  knows_sources(m, h[k]);
		if (good[k])
			machine_compute(c, m, &o->in, h[k], 0, &v[k]);
	}
	for (int k = 0; k < 2; k++) {
		if (good[k]) {
			machine_write(c, m, &o->in, h[k], &v[k]);
			learn_results(m, h[k]);
		} else {
			forget_results(m, h[k]);
		}
	}
}

/*
 * The lower half of a sum in 64 bits does not depend on upper halves, and those
 * may never have been written: compilers make work-item numbers so.
 */
static bool eval_low_sum(const struct machine_code *c, struct machine *m,
			 const struct machine_op *o)
{
	const struct isa_operand *sum = &o->in.opnd[o->x.src[2]];
	const struct isa_operand *d = &o->in.opnd[o->x.dst];
	uint64_t high[4] = { 0 };

	if ((o->x.op != ISA_v_mad_u64_u32 && o->x.op != ISA_v_mad_i64_i32 &&
	     o->x.op != ISA_v_mad_co_u64_u32 &&
	     o->x.op != ISA_v_mad_co_i64_i32) ||
	    sum->kind != ISA_K_VGPR || !machine_knows_v(m, sum->reg, 1) ||
	    sum->reg + 1 >= 256 || d->reg >= c->vgprs)
		return false;
	high[(sum->reg + 1) / 64] = UINT64_C(1) << (sum->reg + 1) % 64;
	for (int k = 0; k < 4; k++)
		if (o->x.need_v[k] & ~m->know_v[k] & ~high[k])
			return false;
	for (int k = 0; k < 2; k++)
		if (o->x.need_s[k] & ~m->know_s[k])
			return false;
	eval_vector(c, m, o);
	forget_results(m, &o->x);
	machine_add_bits(m->know_v, d->reg, 1);
	return true;
}

/* ---- control ---- */

static bool eval_condition(const struct machine_code *c,
			   const struct machine *m, enum isa_op op, bool *taken)
{
	uint64_t vcc = m->s[ISA_R_VCC_LO];

	if (c->wave_size == 64)
		vcc |= (uint64_t)m->s[ISA_R_VCC_HI] << 32;
	switch (op) {
	case ISA_s_branch:
		*taken = true;
		return true;
	case ISA_s_cbranch_scc0: case ISA_s_cbranch_scc1:
		*taken = m->scc == (op == ISA_s_cbranch_scc1);
		return m->know_scc;
	case ISA_s_cbranch_vccz: case ISA_s_cbranch_vccnz:
		*taken = !vcc == (op == ISA_s_cbranch_vccz);
		return machine_knows_s(m, ISA_R_VCC_LO, c->wave_size / 32);
	case ISA_s_cbranch_execz: case ISA_s_cbranch_execnz:
		*taken = !machine_exec(m) == (op == ISA_s_cbranch_execz);
		return machine_knows_s(m, ISA_R_EXEC_LO, c->wave_size / 32);
	default:
		return false;
	}
}

static bool report_lost(const struct machine_code *c, const struct machine *m,
			const struct machine_op *o, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED, "offset %llu: where %s goes depends "
		       "on data that only executing the kernel computes; use a "
		       "trace (t0-run --trace, t0-sim --trace) or a live source",
		       (unsigned long long)(m->pc - c->va),
		       isa_op_info(o->in.op)->name);
}

static bool eval_jump(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o, struct err *e)
{
	const struct isa_inst *in = &o->in;
	uint64_t next = m->pc + in->size_bytes, to;
	bool taken;

	if (in->op == ISA_s_setpc_b64 || in->op == ISA_s_swappc_b64) {
		if (!knows_sources(m, &o->x))
			return report_lost(c, m, o, e);
		to = machine_read_s(m, &in->opnd[o->x.src[0]]);
		if (in->op == ISA_s_swappc_b64) {
			machine_write_s(m, &in->opnd[o->x.dst], next);
			learn_results(m, &o->x);
		}
		m->pc = to;
		return true;
	}
	if (!eval_condition(c, m, in->op, &taken)) {
		taken = false;
		if (!c->guess || (int16_t)in->f[ISA_F_SIMM16] < 0)
			return report_lost(c, m, o, e);
	}
	m->pc = next + (taken ? (uint64_t)(int64_t)(int16_t)
				in->f[ISA_F_SIMM16] * 4 : 0);
	return true;
}

bool machine_step(struct machine_code *c, struct machine *m,
		  struct sim_step *out, struct err *e)
{
	struct machine_op *o = machine_fetch(c, m->pc, e);

	if (!o)
		return false;
	if (out) {
		*out = (struct sim_step){ .exec = machine_exec(m) };
		if (o->form == MACHINE_MEMORY || o->form == MACHINE_SMEM)
			machine_access(c, m, &o->in, out);
	}
	if (o->end)
		m->ended = true;
	else if (o->form == MACHINE_JUMP)
		return eval_jump(c, m, o, e);
	if (o->dual)
		eval_dual(c, m, o);
	else if (o->form == MACHINE_READLANE || o->form == MACHINE_WRITELANE)
		eval_lane(c, m, o);
	else if (machine_evaluates(o->form) && knows_sources(m, &o->x) &&
		 eval_known(c, m, o))
		learn_results(m, &o->x);
	else if (o->form != MACHINE_V64 || !eval_low_sum(c, m, o))
		forget_results(m, &o->x);
	m->pc += o->in.size_bytes;
	return true;
}

static bool to_branch(struct machine_code *c, struct machine *m,
		      uint64_t branch, struct err *e)
{
	while (m->pc != branch && !m->ended)
		if (!machine_step(c, m, NULL, e))
			return false;
	return !m->ended || err_set(e, ERR_UNSUPPORTED, "offset %llu: the loop "
				    "is left elsewhere",
				    (unsigned long long)(branch - c->va));
}

bool machine_jump(struct machine_code *c, struct machine *m, uint64_t branch,
		  uint64_t most, uint64_t *taken, struct err *e)
{
	for (*taken = 0;; ++*taken) {
		bool again;

		if (!to_branch(c, m, branch, e))
			return false;
		struct machine_op *o = machine_fetch(c, branch, e);
		if (!o)
			return false;
		if (!eval_condition(c, m, o->in.op, &again))
			return report_lost(c, m, o, e);
		if (!again || *taken == most)
			return true;
		if (!machine_step(c, m, NULL, e))
			return false;
	}
}

/* ---- set-up ---- */

void machine_code_init(struct machine_code *c)
{
	c->op = xcalloc(c->size_bytes / 4 + 1, sizeof(*c->op));
	c->unknown = 0;
}

void machine_code_fini(struct machine_code *c)
{
	free(c->op);
	c->op = NULL;
}

void machine_init(const struct machine_code *c, struct machine *m)
{
	memset(m, 0, sizeof(*m));
	m->pc = c->va;
	m->v = xcalloc((size_t)c->vgprs * (size_t)c->wave_size, sizeof(*m->v));
	m->know_lane = xcalloc((size_t)c->vgprs, sizeof(*m->know_lane));
	machine_set_sgpr(m, ISA_R_NULL, 0);
	machine_set_sgpr(m, ISA_R_EXEC_LO, UINT32_MAX);
	machine_set_sgpr(m, ISA_R_EXEC_HI, c->wave_size == 64 ? UINT32_MAX : 0);
}

void machine_copy(const struct machine_code *c, struct machine *to,
		  const struct machine *from)
{
	uint32_t *v = to->v;
	uint64_t *lanes = to->know_lane;
	size_t bytes = (size_t)c->vgprs * (size_t)c->wave_size * sizeof(*v);
	size_t lane_bytes = (size_t)c->vgprs * sizeof(*lanes);

	v = v ? v : xmalloc(bytes);
	lanes = lanes ? lanes : xmalloc(lane_bytes);
	*to = *from;
	to->v = memcpy(v, from->v, bytes);
	to->know_lane = memcpy(lanes, from->know_lane, lane_bytes);
}

void machine_fini(struct machine *m)
{
	free(m->v);
	free(m->know_lane);
	m->v = NULL;
	m->know_lane = NULL;
}

void machine_set_sgpr(struct machine *m, int reg, uint32_t value)
{
	m->s[reg] = value;
	machine_add_bits(m->know_s, reg, 1);
}

void machine_set_vgpr(const struct machine_code *c, struct machine *m, int reg,
		      const uint32_t *lanes)
{
	memcpy(m->v + reg * c->wave_size, lanes,
	       (size_t)c->wave_size * sizeof(*lanes));
	machine_add_bits(m->know_v, reg, 1);
}
