/*
 * kfd/soft/exec/fast/microop_valu.c - the steps of vector instructions (step.h).
 */
#include "kfd/soft/exec/fast/microop_row.h"
#include "kfd/soft/exec/valu_step.h"

#define PLANE_BYTES  (SOFT_LANES * sizeof(uint32_t))
#define MODE_DENORMS (SOFT_MODE_DENORM_F32 | SOFT_MODE_DENORM_F16_F64)
#define MODE_ROUND   (SOFT_MODE_ROUND_F32 | SOFT_MODE_ROUND_F16_F64)
#define MOST_SOURCES 3

#define STEPS                                                                \
	(soft_vrows() == soft_vrows_v4 ? &soft_row_steps_v4 :                \
	 soft_vrows() == soft_vrows_v3 ? &soft_row_steps_v3 :                \
					 &soft_row_steps_v2)

/* The step behind one of DPP puts EXEC back, which the handler needs whole. */
void soft_step_slow(struct soft_wave *w, const struct soft_step *s)
{
	if (s[1].fn == STEPS->dpp_end) {
		const struct soft_step_dpp *d =
			(const struct soft_step_dpp *)s[1].d;

		w->s[ISA_R_EXEC_LO + s->half] = d->exec;
	}
	soft_valu_run_part(w, s->u, s->half, s->part);
}

static void spread(uint32_t *p, uint32_t v)
{
	LANES(i) p[i] = v;
}

/* ------------------------------------------------------------ operands ---- */

/* Where an operand is: a plane from its base. */
struct place {
	uintptr_t at;
	uint8_t base;
};

/* An instruction, or one part of it, on one half: what its step will be. */
struct plan {
	const struct soft_uop *u;
	const struct soft_vrow *row;
	const struct isa_operand *dst, *mask_in, *mask_out;
	const struct isa_operand *src[MOST_SOURCES];
	int n_src, half;
	enum soft_dual part;
	bool flush;  /* by the row's own step */
	bool finish; /* the result needs omod, clamp or flushing */
	struct soft_step_dpp *dpp;
};

/* A plane for a constant or scalar, made or found; NULL: no room. */
static uint8_t *known_plane(struct soft_maker *m, uint32_t lo, uint32_t hi,
			    int dwords, bool scalar, bool *valid)
{
	size_t i;

	for (i = 0; i < (size_t)m->n_known; i++)
		if (m->known[i].lo == lo && m->known[i].hi == hi &&
		    m->known[i].dwords == dwords &&
		    m->known[i].scalar == scalar)
			break;
	if (i == ARRAY_SIZE(m->known))
		return NULL;
	if (i == (size_t)m->n_known) {
		uint8_t *p = soft_maker_planes(m, dwords);

		if (!p)
			return NULL;
		m->n_known++;
		m->known[i].lo = lo;
		m->known[i].hi = hi;
		m->known[i].dwords = dwords;
		m->known[i].scalar = scalar;
		m->known[i].valid = false;
		m->known[i].plane = p;
	}
	*valid = m->known[i].valid;
	m->known[i].valid = true;
	return m->known[i].plane;
}

static uint8_t *constant_plane(struct soft_maker *m, const struct soft_uop *u,
			       const struct isa_operand *o)
{
	int dwords = o->dwords > 1 ? 2 : 1;
	uint64_t v = dwords == 2 ? soft_read_scalar(NULL, o, &u->in) :
				   soft_constant(u, o);
	bool valid;
	uint8_t *p = known_plane(m, (uint32_t)v, (uint32_t)(v >> 32), dwords,
				 false, &valid);

	if (!p || valid)
		return p;
	spread((uint32_t *)p, (uint32_t)v);
	if (dwords == 2)
		spread((uint32_t *)p + SOFT_LANES, (uint32_t)(v >> 32));
	return p;
}

static uint8_t *scalar_plane(struct soft_maker *m, const struct soft_uop *u,
			     const struct isa_operand *o)
{
	int dwords = o->dwords > 1 ? 2 : 1;
	struct soft_step *s;
	bool valid;
	uint8_t *p = known_plane(m, o->reg, 0, dwords, true, &valid);

	if (!p || valid)
		return p;
	s = soft_maker_add(m, dwords == 2 ? STEPS->spread2 : STEPS->spread, u);
	s->a = (uintptr_t)p;
	s->imm = o->reg;
	return p;
}

/* Does soft_apply_mods() change anything of this operand? */
static bool has_mods(const struct plan *p, const struct isa_operand *o)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	bool packed = p->u->in.fmt == ISA_FMT_VOP3P && t->bits == 16 &&
		      t->count == 2;

	if (o->type == ISA_T_MIX || (t->count > 1 && t->bits < 16))
		return false;
	return o->mods != (packed ? ISA_M_HI_HI : 0);
}

/* Must denormals of this operand become zeros before the row's step? */
static bool is_flushed(const struct soft_maker *m, const struct plan *p,
		       const struct isa_operand *o)
{
	return !p->flush && !(p->row->flags & SOFT_V_KEEP) &&
	       soft_flushes(o->type, m->mode, false);
}

static bool add_mods(struct soft_maker *m, const struct plan *p,
		     const struct isa_operand *o, struct place *at)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	int dwords = o->dwords > 1 ? o->dwords : 1;
	bool flush = is_flushed(m, p, o);
	struct soft_step *s;
	uint8_t *plane;
	bool signs = t->bits == 32 && t->count == 1 && t->kind != 'M' &&
		     strchr("FB", t->kind) &&
		     !(o->mods & ~(ISA_M_NEG | ISA_M_ABS)) && !flush;

	if (!flush && !has_mods(p, o))
		return true;
	plane = soft_maker_planes(m, dwords);
	if (!plane)
		return false;
	s = soft_maker_add(m, signs ? STEPS->signs : STEPS->mods, p->u);
	s->a = (uintptr_t)plane;
	s->b = at->at;
	s->kb = at->base;
	s->imm = signs ? o->mods : (uint32_t)(o - p->u->in.opnd) |
					   (flush ? 16 : 0);
	at->at = (uintptr_t)plane;
	at->base = SOFT_STEP_ABSOLUTE;
	return true;
}

static bool place_source(struct soft_maker *m, const struct plan *p,
			 const struct isa_operand *o, struct place *at)
{
	uint8_t *plane;

	at->base = SOFT_STEP_ABSOLUTE;
	switch (o->kind) {
	case ISA_K_VGPR:
		at->base = (uint8_t)p->half;
		at->at = o->reg * PLANE_BYTES;
		return true;
	case ISA_K_SGPR:
		plane = o->reg == ISA_R_NULL ? NULL : scalar_plane(m, p->u, o);
		break;
	case ISA_K_INLINE:
	case ISA_K_LITERAL:
		plane = constant_plane(m, p->u, o);
		break;
	default:
		return false;
	}
	at->at = (uintptr_t)plane;
	return plane;
}

/* ----------------------------------------------------------------- DPP ---- */

/* The lanes of DPP, found by moving their numbers. */
static bool add_dpp(struct soft_maker *m, struct plan *p, struct place *at)
{
	const struct isa_inst *in = &p->u->in;
	uint8_t *plane = soft_maker_planes(m, 3);
	uint32_t number[SOFT_LANES], *from = (uint32_t *)(plane + PLANE_BYTES);
	struct isa_inst all = *in;
	struct soft_step_dpp *d;
	struct soft_step *s;

	if (!plane)
		return false;
	LANES(i) number[i] = (uint32_t)i;
	d = (struct soft_step_dpp *)(void *)(plane + 2 * PLANE_BYTES);
	memset(d, 0, sizeof(*d));
	d->fetch = in->dpp.fi;
	/* DPP8 writes 0 where there is nothing to read. */
	d->bound = in->form == ISA_FORM_DPP8 || in->dpp.bound_ctrl;
	all.dpp.bound_ctrl = true;
	d->enabled = soft_dpp(&all, ~0u, number, from);
	all.dpp.bound_ctrl = false;
	all.dpp.row_mask = all.dpp.bank_mask = 15;
	d->valid = soft_dpp(&all, ~0u, number, from);
	s = soft_maker_add(m, STEPS->dpp, p->u);
	s->a = (uintptr_t)plane;
	s->b = at->at;
	s->kb = at->base;
	s->c = (uintptr_t)from;
	s->d = (uintptr_t)d;
	s->half = (uint8_t)p->half;
	at->at = (uintptr_t)plane;
	at->base = SOFT_STEP_ABSOLUTE;
	p->dpp = d;
	return true;
}

/* --------------------------------------------------------------- plans ---- */

/* Sort the operands as valu.c does; false: not what a step can do. */
static bool plan_operands(struct plan *p)
{
	const struct isa_inst *in = &p->u->in;
	int from = p->part == SOFT_PART_Y ? in->n_opnd_x : 0;
	int to = p->part == SOFT_PART_X ? in->n_opnd_x : in->n_opnd;

	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->slot == ISA_SLOT_CI)
			p->mask_in = o;
		else if (o->slot == ISA_SLOT_CO || o->slot == ISA_SLOT_CD)
			p->mask_out = o;
		else if (o->role & ISA_DST)
			p->dst = o;
		else if (p->n_src < MOST_SOURCES && o->dwords <= 2)
			p->src[p->n_src++] = o;
		else
			return false;
	}
	if (p->dst && p->dst->role & ISA_SRC && p->n_src < MOST_SOURCES)
		p->src[p->n_src++] = p->dst;
	return true;
}

static bool is_mask_register(const struct isa_operand *o)
{
	return !o || (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL);
}

static bool is_exec(const struct isa_operand *o)
{
	return o && (o->reg == ISA_R_EXEC_LO || o->reg == ISA_R_EXEC_HI);
}

/* Of no mask, or one that is no null register. */
static bool is_written(const struct isa_operand *mask)
{
	return !mask || mask->reg != ISA_R_NULL;
}

/* Floats are rounded to nearest. */
static bool mode_allows(const struct soft_maker *m, const struct plan *p)
{
	bool floats = p->row->flags & SOFT_V_ROUND;

	for (int i = 0; i < p->n_src; i++)
		floats |= isa_type_info(p->src[i]->type)->kind == 'F';
	if (p->dst)
		floats |= isa_type_info(p->dst->type)->kind == 'F';
	return !(m->mode & MODE_ROUND) || !floats;
}

/* DPP changes EXEC around the row's step, which may know nothing of it. */
static bool dpp_allows(const struct plan *p)
{
	const struct isa_inst *in = &p->u->in;

	return in->form == ISA_FORM_PLAIN ||
	       (!(isa_op_info(in->op)->flags & ISA_WEXEC) && p->n_src &&
		!is_exec(p->mask_in) && !is_exec(p->mask_out));
}

static bool plan_allows(const struct soft_maker *m, const struct plan *p)
{
	return p->row->fn && dpp_allows(p) && is_mask_register(p->mask_in) &&
	       (!p->mask_out || p->mask_out->kind == ISA_K_SGPR) &&
	       (!p->dst || (p->dst->kind == ISA_K_VGPR &&
			    p->dst->dwords <= SOFT_OPND_DWORDS)) &&
	       mode_allows(m, p);
}

static uint8_t mask_out(const struct plan *p, int half)
{
	if (isa_op_info(p->u->in.op)->flags & ISA_WEXEC)
		return (uint8_t)(ISA_R_EXEC_LO + half);
	return p->mask_out && is_written(p->mask_out) ?
		       (uint8_t)(p->mask_out->reg + half) :
		       SOFT_STEP_NO_MASK;
}

/* What finish() of valu.c would do to the result. */
static bool needs_finish(const struct soft_maker *m, const struct plan *p)
{
	const struct isa_inst *in = &p->u->in;

	return p->dst && isa_type_info(p->dst->type)->kind == 'F' &&
	       (in->f[ISA_F_CLAMP] || in->f[ISA_F_OMOD] ||
		(m->mode & MODE_DENORMS) != MODE_DENORMS);
}

/* Which step flushes: one of the row that does, or others around it. */
static void plan_float(const struct soft_maker *m, struct plan *p)
{
	const struct isa_inst *in = &p->u->in;

	p->finish = needs_finish(m, p);
	p->flush = p->row->flush && !in->f[ISA_F_CLAMP] &&
		   !in->f[ISA_F_OMOD] && !(m->mode & SOFT_MODE_DENORM_F32);
	p->finish &= !p->flush;
}

/* The function of the step, and what it wants in imm. */
static soft_step_fn *pick(const struct plan *p, uint32_t *imm)
{
	soft_step_fn *own = p->flush ? p->row->flush : p->row->step;
	const struct isa_type_info *t;

	*imm = 0;
	if (!is_written(p->mask_out) || p->finish ||
	    p->u->in.f[ISA_F_CLAMP])
		own = NULL;
	if (!p->dst)
		return own ? own : STEPS->row;
	t = isa_type_info(p->dst->type);
	*imm = p->dst->dwords;
	if (t->bits == 16 && t->count == 1) {
		*imm = p->dst->mods & ISA_M_HI ||
		       p->u->in.op == ISA_v_fma_mixhi_f16;
		return p->finish ? STEPS->row16_finish : STEPS->row16;
	}
	if (own && p->dst->dwords ==
			   (p->row->flags & SOFT_V_STEP_64 ? 2 : 1))
		return own;
	return p->finish ? STEPS->row_finish : STEPS->row;
}

static bool add_half(struct soft_maker *m, struct plan *p, int half)
{
	struct place at[MOST_SOURCES] = { { 0 } };
	struct soft_step *s;
	uint32_t imm;

	p->half = half;
	for (int i = 0; i < p->n_src; i++)
		if (!place_source(m, p, p->src[i], &at[i]))
			return false;
	/* Now, since EXEC may be a source. */
	if (p->u->in.form != ISA_FORM_PLAIN && !add_dpp(m, p, &at[0]))
		return false;
	for (int i = 0; i < p->n_src; i++)
		if (!add_mods(m, p, p->src[i], &at[i]))
			return false;
	s = soft_maker_add(m, pick(p, &imm), p->u);
	s->imm = imm;
	s->half = (uint8_t)half;
	s->part = (uint8_t)p->part;
	s->a = at[0].at, s->ka = at[0].base;
	s->b = at[1].at, s->kb = at[1].base;
	s->c = at[2].at, s->kc = at[2].base;
	s->d = p->dst ? p->dst->reg * PLANE_BYTES : 0;
	for (int i = 0; i < p->n_src; i++)
		s->mods[i] = p->src[i]->mods;
	s->mask_in = (uint8_t)((p->mask_in ? p->mask_in->reg : ISA_R_VCC_LO) +
			       half);
	s->mask_out = mask_out(p, half);
	if (p->dpp) {
		s = soft_maker_add(m, STEPS->dpp_end, p->u);
		s->d = (uintptr_t)p->dpp;
		s->half = (uint8_t)half;
	}
	return true;
}

/* A mask that was written may have been broadcast before. */
static void forget_mask(struct soft_maker *m, int reg)
{
	for (int i = 0; i < m->n_known; i++)
		if (m->known[i].scalar && reg != SOFT_STEP_NO_MASK &&
		    m->known[i].lo <= (uint32_t)reg + 1 &&
		    m->known[i].lo + m->known[i].dwords > (uint32_t)reg)
			m->known[i].valid = false;
}

static bool add_plan(struct soft_maker *m, const struct soft_uop *u,
		     const struct soft_vrow *row, enum soft_dual part)
{
	struct plan p = { .u = u, .row = row, .part = part };

	if (!plan_operands(&p) || !plan_allows(m, &p))
		return false;
	plan_float(m, &p);
	if (!add_half(m, &p, 0) || (m->wide && !add_half(m, &p, 1)))
		return false;
	forget_mask(m, mask_out(&p, 0));
	return true;
}

/* Does a part read the register that the other one writes? */
static bool reads(const struct isa_inst *in, int from, int to, int reg)
{
	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->kind == ISA_K_VGPR && o->role & ISA_SRC &&
		    o->reg == reg)
			return true;
	}
	return false;
}

/* Both parts read before either writes: order them so that it is the same. */
static bool add_dual(struct soft_maker *m, const struct soft_uop *u)
{
	const struct isa_inst *in = &u->in;
	const struct soft_vrow *x = u->op, *y = x - in->op + in->op_y;
	bool y_late = !reads(in, in->n_opnd_x, in->n_opnd, in->opnd[0].reg);
	bool x_late = !reads(in, 0, in->n_opnd_x, in->opnd[in->n_opnd_x].reg);

	if (y_late)
		return add_plan(m, u, x, SOFT_PART_X) &&
		       add_plan(m, u, y, SOFT_PART_Y);
	return x_late && add_plan(m, u, y, SOFT_PART_Y) &&
	       add_plan(m, u, x, SOFT_PART_X);
}

bool soft_step_valu(struct soft_maker *m, const struct soft_uop *u)
{
	size_t before = m->steps.len;
	const struct soft_vrow *r = u->op;

	if (!soft_is_lane_row(u))
		return false;
	if (u->in.op_y ? add_dual(m, u) : add_plan(m, u, r, SOFT_PART_ALL))
		return true;
	m->steps.len = before;
	return false;
}
