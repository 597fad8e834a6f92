/*
 * kfd/soft/exec/fast/translate_valu.c - vector instructions to microops.
 */
#include "kfd/soft/exec/fast/translate.h"
#include "kfd/soft/exec/valu_mods.h"

#define MODE_DENORMS (SOFT_MODE_DENORM_F32 | SOFT_MODE_DENORM_F16_F64)
#define MODE_ROUND   (SOFT_MODE_ROUND_F32 | SOFT_MODE_ROUND_F16_F64)
#define MOST_SOURCES 3

/* The microop behind one of DPP puts EXEC back, which the handler needs whole.
 */
void soft_microop_fall_back(struct soft_wave *w, const struct soft_microop *m)
{
	if (m[1].fn == soft_simd()->row->dpp_end) {
		const struct soft_microop_dpp *d =
			(const struct soft_microop_dpp *)m[1].d;

		w->s[ISA_R_EXEC_LO + m->half] = d->exec;
	}
	soft_valu_run_part(w, m->u, m->half, m->part);
}

static void spread_value(uint32_t *p, uint32_t v)
{
	LANES(i) p[i] = v;
}

/* ------------------------------------------------------------ operands ---- */

/* Where an operand is: a vreg from its base. */
struct place {
	uintptr_t at;
	uint8_t base;
};

/* An instruction, or one part of it, on one half: what its microop will be. */
struct plan {
	const struct soft_uop *u;
	const struct soft_lane_op *row;
	const struct isa_operand *dst, *mask_in, *mask_out;
	const struct isa_operand *src[MOST_SOURCES];
	int n_src, half;
	enum soft_dual part;
	bool flush;  /* by the row's own microop */
	bool finish; /* the result needs omod, clamp or flushing */
	struct soft_microop_dpp *dpp;
};

/* A vreg for a constant or scalar, made or found; NULL: no room. */
static uint8_t *find_known(struct soft_translator *t, uint32_t lo, uint32_t hi,
			   int dwords, bool scalar, bool *valid)
{
	size_t i;

	for (i = 0; i < (size_t)t->n_known; i++)
		if (t->known[i].lo == lo && t->known[i].hi == hi &&
		    t->known[i].dwords == dwords &&
		    t->known[i].scalar == scalar)
			break;
	if (i == ARRAY_SIZE(t->known))
		return NULL;
	if (i == (size_t)t->n_known) {
		uint8_t *p = soft_translator_temps(t, dwords);

		if (!p)
			return NULL;
		t->n_known++;
		t->known[i].lo = lo;
		t->known[i].hi = hi;
		t->known[i].dwords = dwords;
		t->known[i].scalar = scalar;
		t->known[i].valid = false;
		t->known[i].vreg = p;
	}
	*valid = t->known[i].valid;
	t->known[i].valid = true;
	return t->known[i].vreg;
}

static uint8_t *constant_vreg(struct soft_translator *t,
			      const struct soft_uop *u,
			      const struct isa_operand *o)
{
	int dwords = o->dwords > 1 ? 2 : 1;
	uint64_t v = dwords == 2 ? soft_read_scalar(NULL, o, &u->in) :
				   soft_constant(u, o);
	bool valid;
	uint8_t *p = find_known(t, (uint32_t)v, (uint32_t)(v >> 32), dwords,
				false, &valid);

	if (!p || valid)
		return p;
	spread_value((uint32_t *)p, (uint32_t)v);
	if (dwords == 2)
		spread_value((uint32_t *)p + SOFT_LANES, (uint32_t)(v >> 32));
	return p;
}

static uint8_t *scalar_vreg(struct soft_translator *t, const struct soft_uop *u,
			    const struct isa_operand *o)
{
	int dwords = o->dwords > 1 ? 2 : 1;
	struct soft_microop *m;
	bool valid;
	uint8_t *p = find_known(t, o->reg, 0, dwords, true, &valid);

	if (!p || valid)
		return p;
	m = soft_translator_emit(
		t, dwords == 2 ? t->simd->row->spread2 : t->simd->row->spread,
		u);
	m->a = (uintptr_t)p;
	m->imm = o->reg;
	return p;
}

/* Does mods_apply() change anything of this operand? */
static bool has_mods(const struct plan *p, const struct isa_operand *o)
{
	const struct isa_type_info *type = isa_type_info(o->type);
	bool packed = p->u->in.fmt == ISA_FMT_VOP3P && type->bits == 16 &&
		      type->count == 2;

	if (o->type == ISA_T_MIX || (type->count > 1 && type->bits < 16))
		return false;
	return o->mods != (packed ? ISA_M_HI_HI : 0);
}

/* Must denormals of this operand become zeros before the row's microop? */
static bool is_flushed(const struct soft_translator *t, const struct plan *p,
		       const struct isa_operand *o)
{
	return !p->flush && !(p->row->flags & SOFT_V_KEEP) &&
	       mods_flush(o->type, soft_row_mode(p->row, t->mode), false);
}

static bool add_mods(struct soft_translator *t, const struct plan *p,
		     const struct isa_operand *o, struct place *at)
{
	const struct isa_type_info *type = isa_type_info(o->type);
	int dwords = o->dwords > 1 ? o->dwords : 1;
	bool flush = is_flushed(t, p, o);
	struct soft_microop *m;
	uint8_t *vreg;
	bool signs = type->bits == 32 && type->count == 1 &&
		     type->kind != 'M' && strchr("FB", type->kind) &&
		     !(o->mods & ~(ISA_M_NEG | ISA_M_ABS)) && !flush;

	if (!flush && !has_mods(p, o))
		return true;
	vreg = soft_translator_temps(t, dwords);
	if (!vreg)
		return false;
	m = soft_translator_emit(
		t, signs ? t->simd->row->signs : t->simd->row->mods, p->u);
	m->a = (uintptr_t)vreg;
	m->b = at->at;
	m->kb = at->base;
	m->imm = signs ? o->mods :
			 (uint32_t)(o - p->u->in.opnd) | (flush ? 16 : 0);
	at->at = (uintptr_t)vreg;
	at->base = SOFT_BASE_ABSOLUTE;
	return true;
}

static bool place_source(struct soft_translator *t, const struct plan *p,
			 const struct isa_operand *o, struct place *at)
{
	uint8_t *vreg;

	at->base = SOFT_BASE_ABSOLUTE;
	switch (o->kind) {
	case ISA_K_VGPR:
		at->base = (uint8_t)p->half;
		at->at = o->reg * SOFT_VREG_BYTES;
		return true;
	case ISA_K_SGPR:
		vreg = o->reg == ISA_R_NULL ? NULL : scalar_vreg(t, p->u, o);
		break;
	case ISA_K_INLINE:
	case ISA_K_LITERAL:
		vreg = constant_vreg(t, p->u, o);
		break;
	default:
		return false;
	}
	at->at = (uintptr_t)vreg;
	return vreg;
}

/* ----------------------------------------------------------------- DPP ---- */

/* The lanes of DPP, found by moving their numbers. */
static bool add_dpp(struct soft_translator *t, struct plan *p, struct place *at)
{
	const struct isa_inst *in = &p->u->in;
	uint8_t *vreg = soft_translator_temps(t, 3);
	uint32_t number[SOFT_LANES],
		*from = (uint32_t *)(vreg + SOFT_VREG_BYTES);
	struct isa_inst all = *in;
	struct soft_microop_dpp *d;
	struct soft_microop *m;

	if (!vreg)
		return false;
	LANES(i) number[i] = (uint32_t)i;
	d = (struct soft_microop_dpp *)(void *)(vreg + 2 * SOFT_VREG_BYTES);
	memset(d, 0, sizeof(*d));
	d->fetch = in->dpp.fi;
	/* DPP8 writes 0 where there is nothing to read. */
	d->bound = in->form == ISA_FORM_DPP8 || in->dpp.bound_ctrl;
	all.dpp.bound_ctrl = true;
	d->enabled = soft_dpp(&all, ~0u, number, from);
	all.dpp.bound_ctrl = false;
	all.dpp.row_mask = all.dpp.bank_mask = 15;
	d->valid = soft_dpp(&all, ~0u, number, from);
	m = soft_translator_emit(t, t->simd->row->dpp, p->u);
	m->a = (uintptr_t)vreg;
	m->b = at->at;
	m->kb = at->base;
	m->c = (uintptr_t)from;
	m->d = (uintptr_t)d;
	m->half = (uint8_t)p->half;
	at->at = (uintptr_t)vreg;
	at->base = SOFT_BASE_ABSOLUTE;
	p->dpp = d;
	return true;
}

/* --------------------------------------------------------------- plans ---- */

/* Sort the operands as valu.c does; false: not what a microop can do. */
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
static bool mode_allows(const struct soft_translator *t, const struct plan *p)
{
	bool floats = p->row->flags & SOFT_V_ROUND;

	for (int i = 0; i < p->n_src; i++)
		floats |= isa_type_info(p->src[i]->type)->kind == 'F';
	if (p->dst)
		floats |= isa_type_info(p->dst->type)->kind == 'F';
	return !(t->mode & MODE_ROUND) || !floats;
}

/* DPP changes EXEC around the row's microop, which may know nothing of it. */
static bool dpp_allows(const struct plan *p)
{
	const struct isa_inst *in = &p->u->in;

	return in->form == ISA_FORM_PLAIN ||
	       (!(isa_op_info(in->op)->flags & ISA_WEXEC) && p->n_src &&
		!is_exec(p->mask_in) && !is_exec(p->mask_out));
}

/* Whether they are written depends on the wave. */
static bool is_trap_register(int reg)
{
	return reg >= ISA_R_TTMP0 && reg < ISA_R_NULL;
}

static bool plan_allows(const struct soft_translator *t, const struct plan *p)
{
	return p->row->fn && dpp_allows(p) && is_mask_register(p->mask_in) &&
	       (!p->mask_out || (p->mask_out->kind == ISA_K_SGPR &&
				 !is_trap_register(p->mask_out->reg))) &&
	       (!p->dst || (p->dst->kind == ISA_K_VGPR &&
			    p->dst->dwords <= SOFT_OPND_DWORDS)) &&
	       mode_allows(t, p);
}

static uint8_t mask_out(const struct plan *p, int half)
{
	if (isa_op_info(p->u->in.op)->flags & ISA_WEXEC)
		return (uint8_t)(ISA_R_EXEC_LO + half);
	return p->mask_out && is_written(p->mask_out) ?
		       (uint8_t)(p->mask_out->reg + half) :
		       SOFT_NO_MASK;
}

/* What finish() of valu.c would do to the result. */
static bool needs_finish(const struct soft_translator *t, const struct plan *p)
{
	const struct isa_inst *in = &p->u->in;

	return p->dst && isa_type_info(p->dst->type)->kind == 'F' &&
	       (in->f[ISA_F_CLAMP] || in->f[ISA_F_OMOD] ||
		(soft_row_mode(p->row, t->mode) & MODE_DENORMS) !=
			MODE_DENORMS);
}

/* Which microop flushes: one of the row that does, or others around it. */
static void plan_float(const struct soft_translator *t, struct plan *p)
{
	const struct isa_inst *in = &p->u->in;

	p->finish = needs_finish(t, p);
	p->flush = p->row->flush && !in->f[ISA_F_CLAMP] && !in->f[ISA_F_OMOD] &&
		   !(t->mode & SOFT_MODE_DENORM_F32);
	p->finish &= !p->flush;
}

/* The function of the microop, and what it wants in imm. */
static soft_microop_fn *select_function(const struct soft_row_microops *f,
					const struct plan *p, uint32_t *imm)
{
	soft_microop_fn *own = p->flush ? p->row->flush : p->row->microop;
	const struct isa_type_info *type;

	*imm = 0;
	if (!is_written(p->mask_out) || p->finish || p->u->in.f[ISA_F_CLAMP])
		own = NULL;
	if (!p->dst)
		return own ? own : f->row;
	type = isa_type_info(p->dst->type);
	*imm = p->dst->dwords;
	if (type->bits == 16 && type->count == 1) {
		*imm = p->dst->mods & ISA_M_HI ||
		       p->u->in.op == ISA_v_fma_mixhi_f16;
		if (own && p->row->flags & SOFT_V_MICROOP_16)
			return own;
		return p->finish ? f->row16_finish : f->row16;
	}
	if (own &&
	    p->dst->dwords == (p->row->flags & SOFT_V_MICROOP_64 ? 2 : 1))
		return own;
	return p->finish ? f->row_finish : f->row;
}

static bool add_half(struct soft_translator *t, struct plan *p, int half)
{
	struct place at[MOST_SOURCES] = { { 0 } };
	struct soft_microop *m;
	uint32_t imm;

	p->half = half;
	for (int i = 0; i < p->n_src; i++)
		if (!place_source(t, p, p->src[i], &at[i]))
			return false;
	/* Now, since EXEC may be a source. */
	if (p->u->in.form != ISA_FORM_PLAIN && !add_dpp(t, p, &at[0]))
		return false;
	for (int i = 0; i < p->n_src; i++)
		if (!add_mods(t, p, p->src[i], &at[i]))
			return false;
	m = soft_translator_emit(t, select_function(t->simd->row, p, &imm),
				 p->u);
	m->imm = imm;
	m->half = (uint8_t)half;
	m->part = (uint8_t)p->part;
	m->a = at[0].at, m->ka = at[0].base;
	m->b = at[1].at, m->kb = at[1].base;
	m->c = at[2].at, m->kc = at[2].base;
	m->d = p->dst ? p->dst->reg * SOFT_VREG_BYTES : 0;
	for (int i = 0; i < p->n_src; i++)
		m->mods[i] = p->src[i]->mods;
	m->mask_in =
		(uint8_t)((p->mask_in ? p->mask_in->reg : ISA_R_VCC_LO) + half);
	m->mask_out = mask_out(p, half);
	if (p->dpp) {
		m = soft_translator_emit(t, t->simd->row->dpp_end, p->u);
		m->d = (uintptr_t)p->dpp;
		m->half = (uint8_t)half;
	}
	return true;
}

/* A mask that was written may have been broadcast before. */
static void forget_mask(struct soft_translator *t, int reg)
{
	for (int i = 0; i < t->n_known; i++)
		if (t->known[i].scalar && reg != SOFT_NO_MASK &&
		    t->known[i].lo <= (uint32_t)reg + 1 &&
		    t->known[i].lo + t->known[i].dwords > (uint32_t)reg)
			t->known[i].valid = false;
}

static bool add_plan(struct soft_translator *t, const struct soft_uop *u,
		     const struct soft_lane_op *row, enum soft_dual part)
{
	struct plan p = { .u = u, .row = row, .part = part };

	if (!plan_operands(&p) || !plan_allows(t, &p))
		return false;
	plan_float(t, &p);
	if (!add_half(t, &p, 0) || (t->wide && !add_half(t, &p, 1)))
		return false;
	forget_mask(t, mask_out(&p, 0));
	return true;
}

/* Does a part read the register that the other one writes? */
static bool reads_vgpr(const struct isa_inst *in, int from, int to, int reg)
{
	for (int i = from; i < to; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->kind == ISA_K_VGPR && o->role & ISA_SRC && o->reg == reg)
			return true;
	}
	return false;
}

/* Both parts read before either writes: order them so that it is the same. */
static bool add_dual(struct soft_translator *t, const struct soft_uop *u)
{
	const struct isa_inst *in = &u->in;
	const struct soft_lane_op *x = u->op, *y = x - in->op + in->op_y;
	bool y_late =
		!reads_vgpr(in, in->n_opnd_x, in->n_opnd, in->opnd[0].reg);
	bool x_late =
		!reads_vgpr(in, 0, in->n_opnd_x, in->opnd[in->n_opnd_x].reg);

	if (y_late)
		return add_plan(t, u, x, SOFT_PART_X) &&
		       add_plan(t, u, y, SOFT_PART_Y);
	return x_late && add_plan(t, u, y, SOFT_PART_Y) &&
	       add_plan(t, u, x, SOFT_PART_X);
}

bool soft_translate_valu(struct soft_translator *t, const struct soft_uop *u)
{
	size_t before = t->microops.len;
	const struct soft_lane_op *r = u->op;

	if (!soft_is_lane_op(u))
		return false;
	if (u->in.op_y ? add_dual(t, u) : add_plan(t, u, r, SOFT_PART_ALL))
		return true;
	t->microops.len = before;
	return false;
}
