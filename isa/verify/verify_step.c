/*
 * isa/verify/verify_step.c - the values that one instruction leaves in
 * registers.
 *
 * Address arithmetic becomes linear nodes, lane masks become mask nodes, and
 * everything else is an opaque expression over its operands.  Opaque is always
 * sound: it only makes the rules silent.
 */
#include <string.h>

#include "isa/verify/verify_int.h"

void step_put(struct step *p, int reg, uint32_t value)
{
	if (p->n_w < MAX_WRITES) {
		p->w[p->n_w].reg = reg;
		p->w[p->n_w++].value = value;
	}
}

int step_reg(const struct isa_operand *o)
{
	return o->kind == ISA_K_VGPR ? R_VGPR + o->reg : o->reg;
}

uint32_t step_operand(struct verifier *v, const struct vstate *s,
		      const struct isa_operand *o, int dw)
{
	enum isa_type type = o->type;
	int kind = isa_type_info(type)->kind;
	bool wide = isa_type_info(type)->bits == 64;

	switch (o->kind) {
	case ISA_K_VGPR:
		return s->v[R_VGPR + o->reg + dw];
	case ISA_K_SGPR:
		if (o->reg == ISA_R_NULL)
			return val_const(&v->val, 0);
		return s->v[o->reg + dw];
	case ISA_K_INLINE:
		return val_const(&v->val,
				 wide ? isa_inline_value(o->reg, type) >>
						 32 * dw :
					o->value);
	case ISA_K_LITERAL:
		if (wide && kind == 'F')
			return val_const(&v->val, dw ? o->value : 0);
		if (dw)
			return val_const(
				&v->val,
				kind == 'I' ?
					(uint32_t)((int32_t)o->value >> 31) :
					0);
		return val_const(&v->val, o->value);
	case ISA_K_IMM:
		return val_const(&v->val, o->value);
	case ISA_K_SPECIAL:
		return val_expr(&v->val, OP_PAIR, o->reg, 0,
				o->reg == ISA_R_SCC ? VF_VARY : 0);
	}
	return val_const(&v->val, 0);
}

/* Source number `i` of this half, counted without destinations. */
static const struct isa_operand *source_operand(const struct step *p, int i)
{
	for (int k = 0; k < p->n; k++)
		if (!(p->o[k].role & ISA_DST) && !i--)
			return &p->o[k];
	return NULL;
}

uint32_t step_src(struct step *p, int i)
{
	const struct isa_operand *o = source_operand(p, i);

	return o ? step_operand(p->v, p->s, o, 0) : val_const(p->val, 0);
}

uint32_t step_old(struct step *p)
{
	return step_operand(p->v, p->s, &p->o[0], 0);
}

int step_flags(struct step *p, uint32_t x)
{
	return p->val->v[x].flags;
}

uint32_t step_pair(struct step *p, uint32_t a, uint32_t b)
{
	return val_expr(p->val, OP_PAIR, a, b,
			step_flags(p, a) | step_flags(p, b));
}

/* All that the result depends on: sources, modifiers, flags that are read. */
uint32_t step_chain(struct step *p)
{
	const uint32_t *f = p->x->in.f;
	uint32_t c = val_const(
		p->val, f[ISA_F_NEG] | f[ISA_F_ABS] << 4 | f[ISA_F_OPSEL] << 8 |
				f[ISA_F_OPSEL_HI] << 12 |
				f[ISA_F_NEG_HI] << 16 | f[ISA_F_CLAMP] << 20 |
				f[ISA_F_OMOD] << 24);
	uint32_t flags = isa_op_info(p->op)->flags;

	for (int i = 0; i < p->n; i++) {
		int n = p->o[i].dwords ? p->o[i].dwords : 1;

		if (!(p->o[i].role & ISA_SRC))
			continue;
		for (int dw = 0; dw < n; dw++)
			c = step_pair(p, c,
				      step_operand(p->v, p->s, &p->o[i], dw));
	}
	if (flags & ISA_RSCC)
		c = step_pair(p, c, p->s->v[R_SCC]);
	if (flags & ISA_RVCC)
		c = step_pair(p, c, p->s->v[ISA_R_VCC_LO]);
	if (flags & ISA_RM0)
		c = step_pair(p, c, p->s->v[ISA_R_M0]);
	return c;
}

static bool has_modifiers(const struct step *p)
{
	const uint32_t *f = p->x->in.f;

	return p->x->in.form != ISA_FORM_PLAIN || f[ISA_F_NEG] ||
	       f[ISA_F_ABS] || f[ISA_F_OPSEL] || f[ISA_F_CLAMP] ||
	       f[ISA_F_OMOD];
}

/* -------------------------------------------------------------- masks ---- */

static bool is_mask_pair(struct step *p, const struct isa_operand *o)
{
	uint32_t lo = step_operand(p->v, p->s, o, 0);

	return step_operand(p->v, p->s, o, 1) == val_high(p->val, lo);
}

static void put_mask(struct step *p, int reg, uint32_t mask, int dwords)
{
	step_put(p, reg, mask);
	if (dwords == 2)
		step_put(p, reg + 1, val_high(p->val, mask));
}

static void step_opaque(struct step *p);

static bool step_logic(struct step *p)
{
	const struct isa_operand *a = source_operand(p, 0),
				 *b = source_operand(p, 1);
	int dwords = p->o[0].dwords;
	uint32_t m;

	if (!a || !b)
		return false;
	if (dwords == 2 && !(is_mask_pair(p, a) && is_mask_pair(p, b)))
		return false;
	m = val_logic(p->val, p->s->v[ISA_R_EXEC_LO], p->op, step_src(p, 0),
		      step_src(p, 1));
	if (!m)
		return false;
	put_mask(p, step_reg(&p->o[0]), m, dwords);
	step_put(p, R_SCC,
		 val_expr(p->val, p->op | OP_SCC, m, 0, step_flags(p, m)));
	return true;
}

/* D = EXEC; EXEC = f(S0, EXEC).  wrexec: D = EXEC = f. */
static void step_saveexec(struct step *p, bool save)
{
	uint32_t exec = p->s->v[ISA_R_EXEC_LO];
	int dwords = p->o[0].dwords;
	uint32_t s0 = step_src(p, 0), m = 0;

	if (dwords == 1 || is_mask_pair(p, source_operand(p, 0)))
		m = val_logic(p->val, exec, p->op, s0, exec);
	if (!m)
		m = val_expr(p->val, p->op, s0, exec,
			     step_flags(p, s0) | VF_VARY);
	put_mask(p, step_reg(&p->o[0]), save ? exec : m, dwords);
	put_mask(p, ISA_R_EXEC_LO, m, dwords);
	step_put(p, R_SCC,
		 val_expr(p->val, p->op | OP_SCC, m, 0, step_flags(p, m)));
}

/* ------------------------------------------------------------ the rest ---- */

static bool is_written(const struct isa_operand *o)
{
	return o->role & ISA_DST &&
	       (o->kind == ISA_K_VGPR || o->kind == ISA_K_SGPR) &&
	       o->reg != ISA_R_NULL;
}

static void put_all(struct step *p, uint32_t c, int flags)
{
	for (int i = 0; i < p->n; i++) {
		const struct isa_operand *o = &p->o[i];

		if (!is_written(o))
			continue;
		if (o->type == ISA_T_MASK) {
			put_mask(p, o->reg,
				 val_expr(p->val, p->op | i << 20,
					  step_pair(p, c,
						    p->s->v[ISA_R_EXEC_LO]),
					  0, flags),
				 o->dwords);
			continue;
		}
		for (int dw = 0; dw < o->dwords; dw++)
			step_put(p, step_reg(o) + dw,
				 val_expr(p->val, p->op | i << 20 | dw << 24, c,
					  0, flags));
	}
}

static void put_fresh(struct step *p, int flags)
{
	for (int i = 0; i < p->n; i++) {
		const struct isa_operand *o = &p->o[i];

		if (!is_written(o))
			continue;
		for (int dw = 0; dw < o->dwords; dw++)
			step_put(p, step_reg(o) + dw,
				 val_insn(p->val, p->insn, i << 8 | dw, flags));
	}
}

static void step_opaque(struct step *p)
{
	uint32_t c = step_chain(p), flags = isa_op_info(p->op)->flags;
	int f = step_flags(p, c);

	if (p->op == ISA_v_mbcnt_lo_u32_b32 || p->op == ISA_v_mbcnt_hi_u32_b32)
		f |= VF_LANE;
	put_all(p, c, f);
	if (flags & ISA_WSCC)
		step_put(p, R_SCC, val_expr(p->val, p->op | OP_SCC, c, 0, f));
	if (flags & ISA_WEXEC && isa_op_info(p->op)->fmt == ISA_FMT_VOPC)
		put_mask(p, ISA_R_EXEC_LO,
			 val_mask(p->val, p->s->v[ISA_R_EXEC_LO],
				  val_expr(p->val, p->op, c, 0, f), false),
			 p->v->in->target.wave / 32);
	else if (flags & ISA_WEXEC)
		put_mask(p, ISA_R_EXEC_LO,
			 val_insn(p->val, p->insn, 0, VF_VARY),
			 p->v->in->target.wave / 32);
}

/* Scalar loads through kernel arguments read memory that stays constant. */
static void step_smem(struct step *p)
{
	const struct isa_operand *base = source_operand(p, 0);
	uint32_t lo = base ? step_operand(p->v, p->s, base, 0) : 0;

	if (base && p->val->v[lo].kind == VAL_ENTRY && !p->val->v[lo].a &&
	    !p->x->in.f[ISA_F_GLC]) {
		uint32_t c =
			step_pair(p, step_chain(p),
				  val_const(p->val, p->x->in.f[ISA_F_OFFSET]));

		put_all(p, c, step_flags(p, c));
	} else {
		put_fresh(p, 0);
	}
}

static void step_memory(struct step *p)
{
	switch (p->x->in.fmt) {
	case ISA_FMT_SMEM:
		step_smem(p);
		return;
	case ISA_FMT_SCRATCH:
	case ISA_FMT_FLAT:
		put_fresh(p, VF_DARK);
		return;
	case ISA_FMT_DS:
		if (!(p->x->flags & (ISA_LOAD | ISA_ATOMIC))) {
			put_fresh(p, VF_VARY);
			return;
		}
		/* fallthrough */
	default:
		put_fresh(p, VF_MEM);
	}
}

static void step_pc(struct step *p)
{
	uint64_t pc = p->v->in->vaddr + p->x->off + p->x->in.size_bytes;
	int reg = step_reg(&p->o[0]);

	step_put(p, reg, val_const(p->val, pc));
	step_put(p, reg + 1, val_const(p->val, pc >> 32));
}

static void step_wide_mad(struct step *p)
{
	const struct isa_operand *a = source_operand(p, 0),
				 *b = source_operand(p, 1);
	const struct isa_operand *c = source_operand(p, 2);
	int reg = step_reg(&p->o[0]);

	step_opaque(p);
	step_put(p, reg,
		 val_add(p->val,
			 step_product(p, step_operand(p->v, p->s, a, 0),
				      step_operand(p->v, p->s, b, 0)),
			 step_operand(p->v, p->s, c, 0)));
}

/* Rows with semantics of their own; false if this is none. */
static bool step_special(struct step *p)
{
	uint32_t x;

	if (p->x->flags & ISA_SWAP) {
		put_fresh(p, VF_VARY);
		step_put(p, step_reg(&p->o[0]),
			 step_operand(p->v, p->s, &p->o[1], 0));
		step_put(p, step_reg(&p->o[1]),
			 step_operand(p->v, p->s, &p->o[0], 0));
		return true;
	}
	switch (p->op) {
	case ISA_s_getpc_b64:
		step_pc(p);
		return true;
	case ISA_s_swappc_b64:
	case ISA_s_call_b64:
		/* No constant: a jump there is a return, not a call. */
		put_fresh(p, 0);
		return true;
	case ISA_s_mov_b64:
		step_put(p, step_reg(&p->o[0]), step_src(p, 0));
		step_put(p, step_reg(&p->o[0]) + 1,
			 step_operand(p->v, p->s, source_operand(p, 0), 1));
		return true;
	case ISA_s_addc_u32:
		if (step_addc(p))
			return true;
		break;
	case ISA_v_readlane_b32:
	case ISA_v_writelane_b32:
		put_fresh(p, VF_DARK);
		return true;
	case ISA_v_readfirstlane_b32:
		x = step_pair(p, step_src(p, 0), p->s->v[ISA_R_EXEC_LO]);
		put_all(p, x, step_flags(p, step_src(p, 0)) & ~VF_LANE);
		return true;
	case ISA_s_getreg_b32:
	case ISA_s_sendmsg_rtn_b32:
	case ISA_s_sendmsg_rtn_b64:
		put_fresh(p, 0);
		return true;
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
	case ISA_v_permlane64_b32:
		put_fresh(p, VF_VARY);
		return true;
	case ISA_v_mad_u64_u32:
	case ISA_v_mad_co_u64_u32:
		if (!has_modifiers(p)) {
			step_wide_mad(p);
			return true;
		}
		break;
	default:
		break;
	}
	return false;
}

/* One instruction or one half of a VOPD. */
static void step_half(struct step *p)
{
	uint32_t x;

	if (step_special(p))
		return;
	if (p->x->flags & ISA_WEXEC && p->x->in.fmt == ISA_FMT_SOP1 && p->n) {
		step_saveexec(p, !strstr(isa_op_info(p->op)->name, "wrexec"));
		return;
	}
	if (p->x->salu && p->n && step_logic(p))
		return;
	if (p->x->in.form != ISA_FORM_PLAIN) {
		put_fresh(p, VF_VARY);
		if (p->x->flags & ISA_WEXEC)
			step_opaque(p);
		return;
	}
	x = has_modifiers(p) ? 0 : step_linear(p);
	if (!x) {
		if (p->x->pipe == ISA_PIPE_WMMA)
			put_fresh(p, 0);
		else
			step_opaque(p);
		return;
	}
	step_put(p, step_reg(&p->o[0]), x);
	if (p->op == ISA_s_add_u32)
		step_carry(p);
	else if (isa_op_info(p->op)->flags & ISA_WSCC)
		step_put(p, R_SCC,
			 val_expr(p->val, p->op | OP_SCC, step_chain(p), 0,
				  step_flags(p, step_chain(p))));
}

/*
 * A VGPR written while EXEC was narrowed holds two values once EXEC widens:
 * the new one in the lanes that were on, the old one in the others.
 */
static void widen_exec(struct step *p, uint32_t was, uint32_t now)
{
	struct vstate *s = p->s;

	if (was == now || val_narrower(p->val, now, was))
		return;
	for (int i = 0; i < 4; i++) {
		while (s->masked[i]) {
			int r = 64 * i + __builtin_ctzll(s->masked[i]);

			s->masked[i] &= s->masked[i] - 1;
			s->v[R_VGPR + r] = val_insn(p->val, p->insn, R_VGPR + r,
						    VF_VARY | VF_DARK);
		}
	}
}

/*
 * EXEC | EXEC: restores a mask that a constant condition never narrowed.
 */
static bool restores_exec(const struct vstate *s, const struct isa_inst *in)
{
	if ((in->op != ISA_s_or_b32 && in->op != ISA_s_or_b64) ||
	    in->opnd[0].kind != ISA_K_SGPR ||
	    in->opnd[0].reg != ISA_R_EXEC_LO)
		return false;
	for (int i = 1; i < 3; i++)
		if (in->opnd[i].kind != ISA_K_SGPR ||
		    s->v[in->opnd[i].reg] != s->v[ISA_R_EXEC_LO])
			return false;
	return true;
}

static void commit_writes(struct step *p, const struct isa_inst *in)
{
	struct vstate *s = p->s;
	uint32_t exec = s->v[ISA_R_EXEC_LO];
	bool narrow = p->val->v[exec].kind == VAL_MASK;

	for (int i = 0; i < p->n_w; i++) {
		int reg = p->w[i].reg;

		if (reg >= R_COUNT)
			continue;
		s->v[reg] = p->w[i].value;
		if (reg >= R_VGPR && reg < R_SCC) {
			uint64_t bit = UINT64_C(1) << (reg & 63);
			uint64_t *m = &s->masked[(reg - R_VGPR) / 64];

			*m = narrow ? *m | bit : *m & ~bit;
		}
	}
	if (s->v[ISA_R_EXEC_LO] != exec) {
		s->exec_zero = 0;
		widen_exec(p, exec, s->v[ISA_R_EXEC_LO]);
	} else if (restores_exec(s, in)) {
		s->exec_zero = 0;
	}
}

void step_values(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	const struct isa_inst *in = &x->in;
	struct step p;

	if (!in->n_opnd && !(x->flags & (ISA_WSCC | ISA_WEXEC)))
		return;
	p.v = v;
	p.val = &v->val;
	p.s = s;
	p.x = x;
	p.insn = insn;
	p.n_w = 0;
	p.op = in->op;
	p.o = in->opnd;
	p.n = in->fmt == ISA_FMT_VOPD ? in->n_opnd_x : in->n_opnd;
	if (x->vmem || in->fmt == ISA_FMT_SMEM || in->fmt == ISA_FMT_DS) {
		step_memory(&p);
	} else {
		step_half(&p);
		if (in->fmt == ISA_FMT_VOPD) {
			p.op = in->op_y;
			p.o = in->opnd + in->n_opnd_x;
			p.n = in->n_opnd - in->n_opnd_x;
			step_half(&p);
		}
	}
	commit_writes(&p, in);
}

bool step_clobbered(int reg)
{
	if (reg < R_VGPR)
		return reg < 30 || (reg >= ISA_R_VCC_LO && reg < ISA_R_EXEC_LO);
	if (reg == R_SCC)
		return true;
	reg -= R_VGPR;
	return reg < 40 || !(reg & 8);
}
