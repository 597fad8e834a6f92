/*
 * isa/verify_step.c - the values that one instruction leaves in registers.
 *
 * Address arithmetic becomes linear nodes, lane masks become mask nodes, and
 * everything else is an opaque expression over its operands.  Being opaque is
 * always right: it only makes the rules silent.
 */
#include <string.h>

#include "isa/verify_int.h"

enum { MAX_WRITES = 80, OP_PAIR = 0xffff, OP_SCC = 0x10000 };

struct step {
	struct verifier *v;
	struct values *val;
	struct vstate *s;
	const struct cfg_insn *x;
	int insn;
	/* One half of a VOPD, or the whole instruction. */
	enum isa_op op;
	const struct isa_operand *o;
	int n;
	struct {
		uint16_t reg;
		uint32_t value;
	} w[MAX_WRITES];
	int n_w;
};

static void put(struct step *p, int reg, uint32_t value)
{
	if (p->n_w < MAX_WRITES) {
		p->w[p->n_w].reg = reg;
		p->w[p->n_w++].value = value;
	}
}

static int reg_of(const struct isa_operand *o)
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
		return val_const(&v->val, isa_inline_value(o->reg, type) >>
						  (wide ? 32 * dw : 0));
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
static const struct isa_operand *source(const struct step *p, int i)
{
	for (int k = 0; k < p->n; k++)
		if (!(p->o[k].role & ISA_DST) && !i--)
			return &p->o[k];
	return NULL;
}

static uint32_t src(struct step *p, int i)
{
	const struct isa_operand *o = source(p, i);

	return o ? step_operand(p->v, p->s, o, 0) : val_const(p->val, 0);
}

static uint32_t dst_old(struct step *p)
{
	return step_operand(p->v, p->s, &p->o[0], 0);
}

static int flags_of(struct step *p, uint32_t x)
{
	return p->val->v[x].flags;
}

static uint32_t pair(struct step *p, uint32_t a, uint32_t b)
{
	return val_expr(p->val, OP_PAIR, a, b, flags_of(p, a) | flags_of(p, b));
}

/* All that the result depends on: sources, modifiers, flags that are read. */
static uint32_t chain(struct step *p)
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
			c = pair(p, c, step_operand(p->v, p->s, &p->o[i], dw));
	}
	if (flags & ISA_RSCC)
		c = pair(p, c, p->s->v[R_SCC]);
	if (flags & ISA_RVCC)
		c = pair(p, c, p->s->v[ISA_R_VCC_LO]);
	if (flags & ISA_RM0)
		c = pair(p, c, p->s->v[ISA_R_M0]);
	return c;
}

static bool modified(const struct step *p)
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
	put(p, reg, mask);
	if (dwords == 2)
		put(p, reg + 1, val_high(p->val, mask));
}

static void generic(struct step *p);

static bool step_logic(struct step *p)
{
	const struct isa_operand *a = source(p, 0), *b = source(p, 1);
	int dwords = p->o[0].dwords;
	uint32_t m;

	if (!a || !b)
		return false;
	if (dwords == 2 && !(is_mask_pair(p, a) && is_mask_pair(p, b)))
		return false;
	m = val_logic(p->val, p->s->v[ISA_R_EXEC_LO], p->op, src(p, 0),
		      src(p, 1));
	if (!m)
		return false;
	put_mask(p, reg_of(&p->o[0]), m, dwords);
	put(p, R_SCC, val_expr(p->val, p->op | OP_SCC, m, 0, flags_of(p, m)));
	return true;
}

/* D = EXEC; EXEC = f(S0, EXEC).  wrexec: D = EXEC = f. */
static void step_saveexec(struct step *p, bool save)
{
	uint32_t exec = p->s->v[ISA_R_EXEC_LO];
	int dwords = p->o[0].dwords;
	uint32_t s0 = src(p, 0), m = 0;

	if (dwords == 1 || is_mask_pair(p, source(p, 0)))
		m = val_logic(p->val, exec, p->op, s0, exec);
	if (!m)
		m = val_expr(p->val, p->op, s0, exec,
			     flags_of(p, s0) | VF_VARY);
	put_mask(p, reg_of(&p->o[0]), save ? exec : m, dwords);
	put_mask(p, ISA_R_EXEC_LO, m, dwords);
	put(p, R_SCC, val_expr(p->val, p->op | OP_SCC, m, 0, flags_of(p, m)));
}

/* --------------------------------------------------------- arithmetic ---- */

static uint32_t known_zeros(const struct values *s, uint32_t x)
{
	uint32_t low = 32;

	for (; s->v[x].kind == VAL_LIN; x = s->v[x].b) {
		uint32_t z = __builtin_ctz(s->v[x].imm);

		low = z < low ? z : low;
	}
	if (s->v[x].kind != VAL_CONST)
		return 0;
	return s->v[x].imm && (uint32_t)__builtin_ctz(s->v[x].imm) < low ?
		       (uint32_t)__builtin_ctz(s->v[x].imm) :
		       low;
}

static uint32_t either(struct step *p, uint32_t a, uint32_t b)
{
	uint32_t za = known_zeros(p->val, a), zb = known_zeros(p->val, b);

	if ((za < 32 && p->val->v[b].hi < 1u << za) || za == 32 ||
	    (zb < 32 && p->val->v[a].hi < 1u << zb) || zb == 32)
		return val_add(p->val, a, b);
	return val_expr(p->val, ISA_v_or_b32, a, b,
			flags_of(p, a) | flags_of(p, b));
}

static uint32_t shifted(struct step *p, uint32_t x, uint32_t by)
{
	uint32_t k;

	if (val_is_const(p->val, by, &k))
		return val_scale(p->val, x, 1u << (k & 31));
	return val_expr(p->val, ISA_v_lshlrev_b32, x, by,
			flags_of(p, x) | flags_of(p, by));
}

static uint32_t product(struct step *p, uint32_t a, uint32_t b)
{
	uint32_t k;

	if (val_is_const(p->val, a, &k))
		return val_scale(p->val, b, k);
	if (val_is_const(p->val, b, &k))
		return val_scale(p->val, a, k);
	if (a > b) {
		uint32_t t = a;

		a = b;
		b = t;
	}
	return val_expr(p->val, ISA_v_mul_lo_u32, a, b,
			flags_of(p, a) | flags_of(p, b));
}

static uint32_t minus(struct step *p, uint32_t a, uint32_t b)
{
	return val_add(p->val, a, val_scale(p->val, b, UINT32_MAX));
}

/* The largest work-item number in dimension `d` of the packed ids in v0. */
static uint32_t id_max(const struct step *p, int d)
{
	const struct verify_input *in = p->v->in;

	if (in->workgroup_dim[d] > 0)
		return in->workgroup_dim[d] - 1;
	return in->max_workgroup > 0 && in->max_workgroup < 1024 ?
		       in->max_workgroup - 1 :
		       1023;
}

static uint32_t masked_by(struct step *p, uint32_t a, uint32_t b)
{
	uint32_t k, hi;

	if (val_is_const(p->val, a, &k)) {
		uint32_t t = a;

		a = b;
		b = t;
	}
	if (!val_is_const(p->val, b, &k))
		return val_expr(p->val, ISA_v_and_b32, a, b,
				flags_of(p, a) | flags_of(p, b));
	if (val_is_const(p->val, a, &hi))
		return val_const(p->val, hi & k);
	hi = k < p->val->v[a].hi ? k : p->val->v[a].hi;
	if (a == val_entry(p->val, 0, R_VGPR) && k == 0x3ff)
		hi = id_max(p, 0);
	return val_bound(p->val,
			 val_expr(p->val, ISA_v_and_b32, a, b, flags_of(p, a)),
			 0, hi);
}

static uint32_t bits_of(struct step *p, uint32_t x, uint32_t low,
			uint32_t width)
{
	uint32_t l, w, hi = UINT32_MAX;

	if (!val_is_const(p->val, low, &l) || !val_is_const(p->val, width, &w))
		return val_expr(p->val, ISA_v_bfe_u32, x, pair(p, low, width),
				flags_of(p, x));
	l &= 31;
	w &= 31;
	if (w)
		hi = (1u << w) - 1;
	if (x == val_entry(p->val, 0, R_VGPR) && w == 10 && l % 10 == 0)
		hi = id_max(p, l / 10);
	else if (p->val->v[x].hi >> l < hi)
		hi = p->val->v[x].hi >> l;
	return val_bound(p->val,
			 val_expr(p->val, ISA_v_bfe_u32, x, pair(p, low, width),
				  flags_of(p, x)),
			 0, hi);
}

static uint32_t down(struct step *p, uint32_t x, uint32_t by)
{
	uint32_t k, c;

	if (!val_is_const(p->val, by, &k))
		return val_expr(p->val, ISA_v_lshrrev_b32, x, by,
				flags_of(p, x) | flags_of(p, by));
	k &= 31;
	if (val_is_const(p->val, x, &c))
		return val_const(p->val, c >> k);
	return val_bound(
		p->val,
		val_expr(p->val, ISA_v_lshrrev_b32, x, by, flags_of(p, x)), 0,
		p->val->v[x].hi >> k);
}

/* 32-bit results that stay linear; 0 if the row is none of them. */
static uint32_t linear(struct step *p)
{
	switch (p->op) {
	case ISA_v_mov_b32:
	case ISA_s_mov_b32:
		return src(p, 0);
	case ISA_s_movk_i32:
		return val_const(p->val, (int16_t)p->x->in.f[ISA_F_SIMM16]);
	case ISA_s_addk_i32:
		return val_add(
			p->val, dst_old(p),
			val_const(p->val, (int16_t)p->x->in.f[ISA_F_SIMM16]));
	case ISA_s_mulk_i32:
		return val_scale(p->val, dst_old(p),
				 (int16_t)p->x->in.f[ISA_F_SIMM16]);
	case ISA_v_add_nc_u32:
	case ISA_s_add_u32:
	case ISA_s_add_i32:
		return val_add(p->val, src(p, 0), src(p, 1));
	case ISA_v_sub_nc_u32:
	case ISA_s_sub_u32:
	case ISA_s_sub_i32:
		return minus(p, src(p, 0), src(p, 1));
	case ISA_v_subrev_nc_u32:
		return minus(p, src(p, 1), src(p, 0));
	case ISA_v_lshlrev_b32:
		return shifted(p, src(p, 1), src(p, 0));
	case ISA_s_lshl_b32:
		return shifted(p, src(p, 0), src(p, 1));
	case ISA_v_lshrrev_b32:
		return down(p, src(p, 1), src(p, 0));
	case ISA_s_lshr_b32:
		return down(p, src(p, 0), src(p, 1));
	case ISA_v_lshl_add_u32:
		return val_add(p->val, shifted(p, src(p, 0), src(p, 1)),
			       src(p, 2));
	case ISA_v_add_lshl_u32:
		return shifted(p, val_add(p->val, src(p, 0), src(p, 1)),
			       src(p, 2));
	case ISA_v_add3_u32:
		return val_add(p->val, val_add(p->val, src(p, 0), src(p, 1)),
			       src(p, 2));
	case ISA_v_mul_lo_u32:
	case ISA_s_mul_i32:
		return product(p, src(p, 0), src(p, 1));
	case ISA_v_mul_u32_u24:
	case ISA_v_mad_u32_u24:
		/* Compilers use these where both factors have 24 bits. */
		return val_add(p->val, product(p, src(p, 0), src(p, 1)),
			       p->op == ISA_v_mad_u32_u24 ?
				       src(p, 2) :
				       val_const(p->val, 0));
	case ISA_v_and_b32:
	case ISA_s_and_b32:
		return masked_by(p, src(p, 0), src(p, 1));
	case ISA_v_or_b32:
	case ISA_s_or_b32:
		return either(p, src(p, 0), src(p, 1));
	case ISA_v_lshl_or_b32:
		return either(p, shifted(p, src(p, 0), src(p, 1)), src(p, 2));
	case ISA_v_and_or_b32:
		return either(p, masked_by(p, src(p, 0), src(p, 1)), src(p, 2));
	case ISA_v_bfe_u32:
		return bits_of(p, src(p, 0), src(p, 1), src(p, 2));
	default:
		return 0;
	}
}

/* Carries matter for addresses that s_getpc_b64 starts. */
static void put_carry(struct step *p)
{
	uint32_t a, b, c = 0;

	if (!val_is_const(p->val, src(p, 0), &a) ||
	    !val_is_const(p->val, src(p, 1), &b) ||
	    (p->op == ISA_s_addc_u32 &&
	     !val_is_const(p->val, p->s->v[R_SCC], &c))) {
		put(p, R_SCC,
		    val_expr(p->val, p->op | OP_SCC, chain(p), 0,
			     flags_of(p, chain(p))));
		return;
	}
	put(p, R_SCC, val_const(p->val, ((uint64_t)a + b + c) >> 32));
}

static bool step_addc(struct step *p)
{
	uint32_t a, b, c;

	if (!val_is_const(p->val, src(p, 0), &a) ||
	    !val_is_const(p->val, src(p, 1), &b) ||
	    !val_is_const(p->val, p->s->v[R_SCC], &c))
		return false;
	put(p, reg_of(&p->o[0]), val_const(p->val, a + b + c));
	put_carry(p);
	return true;
}

/* ------------------------------------------------------------ the rest ---- */

static void put_all(struct step *p, uint32_t c, int flags)
{
	for (int i = 0; i < p->n; i++) {
		const struct isa_operand *o = &p->o[i];

		if (!(o->role & ISA_DST) ||
		    (o->kind != ISA_K_VGPR && o->kind != ISA_K_SGPR) ||
		    o->reg == ISA_R_NULL)
			continue;
		if (o->type == ISA_T_MASK) {
			put_mask(p, o->reg,
				 val_expr(p->val, p->op | i << 20,
					  pair(p, c, p->s->v[ISA_R_EXEC_LO]), 0,
					  flags),
				 o->dwords);
			continue;
		}
		for (int dw = 0; dw < o->dwords; dw++)
			put(p, reg_of(o) + dw,
			    val_expr(p->val, p->op | i << 20 | dw << 24, c, 0,
				     flags));
	}
}

static void put_fresh(struct step *p, int flags)
{
	for (int i = 0; i < p->n; i++) {
		const struct isa_operand *o = &p->o[i];

		if (!(o->role & ISA_DST) ||
		    (o->kind != ISA_K_VGPR && o->kind != ISA_K_SGPR) ||
		    o->reg == ISA_R_NULL)
			continue;
		for (int dw = 0; dw < o->dwords; dw++)
			put(p, reg_of(o) + dw,
			    val_insn(p->val, p->insn, i << 8 | dw, flags));
	}
}

static void generic(struct step *p)
{
	uint32_t c = chain(p), flags = isa_op_info(p->op)->flags;
	int f = flags_of(p, c);

	if (p->op == ISA_v_mbcnt_lo_u32_b32 || p->op == ISA_v_mbcnt_hi_u32_b32)
		f |= VF_LANE;
	put_all(p, c, f);
	if (flags & ISA_WSCC)
		put(p, R_SCC, val_expr(p->val, p->op | OP_SCC, c, 0, f));
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

/* Scalar loads through the kernel arguments see memory that stays. */
static void step_smem(struct step *p)
{
	const struct isa_operand *base = source(p, 0);
	uint32_t lo = base ? step_operand(p->v, p->s, base, 0) : 0;

	if (base && p->val->v[lo].kind == VAL_ENTRY && !p->val->v[lo].a &&
	    !p->x->in.f[ISA_F_GLC]) {
		uint32_t c = pair(p, chain(p),
				  val_const(p->val, p->x->in.f[ISA_F_OFFSET]));

		put_all(p, c, flags_of(p, c));
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
	int reg = reg_of(&p->o[0]);

	put(p, reg, val_const(p->val, pc));
	put(p, reg + 1, val_const(p->val, pc >> 32));
}

static void step_wide_mad(struct step *p)
{
	const struct isa_operand *a = source(p, 0), *b = source(p, 1);
	const struct isa_operand *c = source(p, 2);
	int reg = reg_of(&p->o[0]);

	generic(p);
	put(p, reg,
	    val_add(p->val,
		    product(p, step_operand(p->v, p->s, a, 0),
			    step_operand(p->v, p->s, b, 0)),
		    step_operand(p->v, p->s, c, 0)));
}

/* Rows that need more than their operands; false if this is none. */
static bool step_special(struct step *p)
{
	uint32_t x;

	if (p->x->flags & ISA_SWAP) {
		put_fresh(p, VF_VARY);
		put(p, reg_of(&p->o[0]), step_operand(p->v, p->s, &p->o[1], 0));
		put(p, reg_of(&p->o[1]), step_operand(p->v, p->s, &p->o[0], 0));
		return true;
	}
	switch (p->op) {
	case ISA_s_getpc_b64:
		step_pc(p);
		return true;
	case ISA_s_swappc_b64:
	case ISA_s_call_b64:
		/* Not a constant: a jump there is a return, not a call. */
		put_fresh(p, 0);
		return true;
	case ISA_s_mov_b64:
		put(p, reg_of(&p->o[0]), src(p, 0));
		put(p, reg_of(&p->o[0]) + 1,
		    step_operand(p->v, p->s, source(p, 0), 1));
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
		x = pair(p, src(p, 0), p->s->v[ISA_R_EXEC_LO]);
		put_all(p, x, flags_of(p, src(p, 0)) & ~VF_LANE);
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
		if (!modified(p)) {
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
			generic(p);
		return;
	}
	x = modified(p) ? 0 : linear(p);
	if (!x) {
		if (p->x->pipe == ISA_PIPE_WMMA)
			put_fresh(p, 0);
		else
			generic(p);
		return;
	}
	put(p, reg_of(&p->o[0]), x);
	if (p->op == ISA_s_add_u32)
		put_carry(p);
	else if (isa_op_info(p->op)->flags & ISA_WSCC)
		put(p, R_SCC,
		    val_expr(p->val, p->op | OP_SCC, chain(p), 0,
			     flags_of(p, chain(p))));
}

/*
 * A VGPR written while EXEC was narrowed holds two values once EXEC widens:
 * the new one in the lanes that were on, the old one in the others.
 */
static void widen(struct step *p, uint32_t was, uint32_t now)
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
 * EXEC or'ed with the very mask that it is: a restore of what a constant
 * condition never narrowed.
 */
static bool restores(const struct vstate *s, const struct isa_inst *in)
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

static void commit(struct step *p, const struct isa_inst *in)
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
		widen(p, exec, s->v[ISA_R_EXEC_LO]);
	} else if (restores(s, in)) {
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
	commit(&p, in);
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
