/*
 * compiler/isel/select.c - SSA to machine instructions: what the wave is given,
 * and which file selects an operation.
 */
#include "compiler/isel/select.h"

#include <string.h>

void sel_refuse(struct sel *s, const struct ssa_inst *i, const char *why)
{
	if (s->failed)
		return;
	s->failed = true;
	err_set(s->e, ERR_UNSUPPORTED, "%s:%u: %%%u = %s.%u of kernel %s: %s",
		s->f->file ? s->f->file : s->f->name, i->line, i->id,
		ssa_op_info(i->op)->name, i->type.n, s->f->name, why);
}

/* ---------------------------------------------- what the wave is given ---- */

static bool uses_op(const struct sel *s, enum ssa_op op, uint64_t imm)
{
	for (struct ssa_block *b = s->f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (i->op == op && (i->imm == imm || imm == UINT64_MAX))
				return true;
	return false;
}

static struct mir_opnd fixed_reg(struct sel *s, enum mir_file file, int phys,
				 int n)
{
	uint32_t v = mir_vreg(s->m, file, n);

	s->m->vreg[v].phys = (int16_t)phys;
	s->m->vreg[v].fixed = true;
	return mir_reg(s->m, v);
}

static bool has_packed_ids(const struct sel *s)
{
	return isa_gen_info(s->m->gen)->packed_ids;
}

/*
 * s[0:1] kernel arguments; the last of the 16 first SGPRs are the workgroup's
 * ids (gfx1100 wants 16 of them set), or TTMP9 has that of X and TTMP7 those of Y
 * and, above it, Z; v0 the work-item's, 10 bits each, or v0 to v2, as far as the
 * group has dimensions.
 */
static void take_inputs(struct sel *s)
{
	const bool ttmp = isa_gen_info(s->m->gen)->ids_in_ttmp;
	int n = 0;

	s->kernarg = fixed_reg(s, MIR_S, 0, 2);
	s->local[0] = fixed_reg(s, MIR_V, 0, 1);
	for (int d = 1; d < 3 && !has_packed_ids(s); d++)
		if (s->f->group[d] > 1)
			s->local[d] = fixed_reg(s, MIR_V, d, 1);
	for (int d = 0; d < 3; d++)
		n += d == 0 || uses_op(s, SSA_group_id, (uint64_t)d);
	for (int d = 0, at = 16 - n; d < 3; d++)
		if (d == 0 || uses_op(s, SSA_group_id, (uint64_t)d))
			s->group_id[d] =
				ttmp ? mir_hw(ISA_R_TTMP0 + (d ? 7 : 9), 1) :
				       fixed_reg(s, MIR_S, at++, 1);
}

static struct mir_opnd local_id(struct sel *s, int dim)
{
	struct mir_opnd d = sel_new_v(s, 1);
	const uint32_t *g = s->f->group;

	if (g[dim] <= 1)
		return mir_imm(0);
	if (!has_packed_ids(s))
		return s->local[dim];
	if (g[1] <= 1 && g[2] <= 1)
		return s->local[0];
	if (dim == 0)
		sel_v(s, ISA_v_and_b32, d, mir_imm(1023), s->local[0]);
	else
		sel_v(s, ISA_v_bfe_u32, d, s->local[0],
		      mir_imm(10u * (uint32_t)dim), mir_imm(10));
	return d;
}

/* Number of the work-item in its group. */
static struct mir_opnd linear_id(struct sel *s)
{
	const uint32_t *g = s->f->group;
	struct mir_opnd id = local_id(s, 0);
	uint32_t scale = g[0];

	for (int dim = 1; dim < 3; dim++) {
		struct mir_opnd d = sel_new_v(s, 1);

		if (g[dim] > 1) {
			sel_v(s, ISA_v_mad_u32_u24, d, local_id(s, dim),
			      mir_imm(scale), id);
			id = d;
		}
		scale *= g[dim] ? g[dim] : 1;
	}
	return id;
}

static void wave_number(struct sel *s, const struct ssa_inst *i)
{
	const uint32_t *g = s->f->group;
	struct mir_opnd t;

	if ((uint64_t)g[0] * (g[1] ? g[1] : 1) * (g[2] ? g[2] : 1) <=
	    (uint64_t)s->m->wave) {
		sel_copy(s, sel_def(s, i), mir_imm(0));
		return;
	}
	t = sel_v1(s, ISA_v_lshrrev_b32, mir_imm(s->m->wave == 64 ? 6 : 5),
		   linear_id(s));
	sel_raw(s, ISA_v_readfirstlane_b32, sel_def(s, i), t);
}

static void lane_number(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), t;

	if (s->m->wave == 32) {
		sel_v(s, ISA_v_mbcnt_lo_u32_b32, d, mir_imm(UINT32_MAX),
		      mir_imm(0));
		return;
	}
	t = sel_v1(s, ISA_v_mbcnt_lo_u32_b32, mir_imm(UINT32_MAX), mir_imm(0));
	sel_v(s, ISA_v_mbcnt_hi_u32_b32, d, mir_imm(UINT32_MAX), t);
}

static void group_number(struct sel *s, const struct ssa_inst *i)
{
	const struct mir_opnd id = s->group_id[i->imm];

	if (id.kind == MIR_VREG)
		sel_alias(s, i, id);
	else if (!i->imm)
		sel_s(s, ISA_s_mov_b32, sel_def(s, i), id);
	else if (i->imm == 1)
		sel_s(s, ISA_s_and_b32, sel_def(s, i), id, mir_imm(0xffff));
	else
		sel_s(s, ISA_s_lshr_b32, sel_def(s, i), id, mir_imm(16));
}

static void group_count(struct sel *s, const struct ssa_inst *i)
{
	s->uses_hidden = true;
	sel_raw(s, ISA_s_load_b32, sel_def(s, i), s->kernarg,
		mir_imm(s->hidden + 4 * (uint32_t)i->imm));
}

static void select_arg(struct sel *s, const struct ssa_inst *i)
{
	const struct ssa_arg *a = &s->f->arg[i->imm];
	struct mir_opnd o = s->arg[i->imm], d;

	if (o.kind != MIR_VREG) /* nobody looks at it */
		return;
	if (a->type.kind == SSA_I1) {
		sel_s(s, ISA_s_bitcmp1_b32, o, mir_imm(8 * (a->offset & 3)));
		s->glue = true;
		sel_s(s, sel_mop(s, s_cselect), sel_def(s, i),
		      mir_imm(UINT32_MAX), mir_imm(0));
		s->glue = false;
		return;
	}
	if (a->offset & 3) {
		d = sel_s1(s, ISA_s_lshr_b32, mir_part(o, 0, 1),
			   mir_imm(8 * (a->offset & 3)));
		o = d;
	}
	sel_alias(s, i, o);
}

/* ------------------------------------------------------------ dispatch ---- */

/* gfx10_1 has a clock of 64 bits, in memory's order. */
static void clock_of_memory(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd now = sel_new_s(s, 2);
	struct mir_inst *m = sel_raw(s, ISA_s_memtime, now);

	m->flags |= MIR_ORDERED | MIR_KEEP;
	sel_s(s, ISA_s_and_b32, sel_def(s, i), mir_part(now, 0, 1),
	      mir_imm(0xfffff));
}

static void clock_now(struct sel *s, const struct ssa_inst *i)
{
	struct mir_inst *m;

	if (s->m->gen == ISA_GFX10_1) {
		clock_of_memory(s, i);
		return;
	}
	m = sel_raw(s, ISA_s_getreg_b32, sel_def(s, i),
		    mir_word("hwreg(HW_REG_SHADER_CYCLES, 0, 20)"));

	m->flags |= MIR_ORDERED | MIR_KEEP;
}

static void select_undef(struct sel *s, const struct ssa_inst *i)
{
	sel_raw(s, MIR_UNDEF, sel_def(s, i));
}

static void select_local_id(struct sel *s, const struct ssa_inst *i)
{
	sel_alias(s, i, local_id(s, (int)i->imm));
}

static void select_lds(struct sel *s, const struct ssa_inst *i)
{
	sel_alias(s, i, mir_imm(s->lds_at[i->imm]));
}

static void pointer_sum(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get(s, i->arg[0]), b = sel_get(s, i->arg[1]);
	struct mir_opnd d = sel_def(s, i);

	if (i->type.kind == SSA_LDS) {
		if (s->val[i->id].cls == SEL_S)
			sel_s(s, ISA_s_add_i32, d, a, sel_lo(b));
		else
			sel_v(s, ISA_v_add_nc_u32, d, a, sel_lo(b));
		return;
	}
	if (i->arg[1]->type.kind != SSA_I64 && b.kind != MIR_IMM) {
		bool v = mir_is_v(s->m, &b);
		struct mir_opnd w = v ? sel_new_v(s, 2) : sel_new_s(s, 2);

		sel_copy(s, mir_part(w, 0, 1), b);
		if (v)
			sel_v(s, ISA_v_ashrrev_i32, mir_part(w, 1, 1),
			      mir_imm(31), b);
		else
			sel_s(s, ISA_s_ashr_i32, mir_part(w, 1, 1), b,
			      mir_imm(31));
		b = w;
	}
	sel_add64(s, d, a, b);
}

/* Operations that one function selects, whatever their type. */
static void (*const selector[SSA_OPS])(struct sel *s,
				       const struct ssa_inst *i) = {
	[SSA_undef] = select_undef,
	[SSA_arg] = select_arg,
	[SSA_local_id] = select_local_id,
	[SSA_group_id] = group_number,
	[SSA_num_groups] = group_count,
	[SSA_lane] = lane_number,
	[SSA_wave] = wave_number,
	[SSA_lds] = select_lds,
	[SSA_clock] = clock_now,
	[SSA_load] = sel_load,
	[SSA_store] = sel_store,
	[SSA_atomic] = sel_atomic,
	[SSA_cmpxchg] = sel_atomic,
	[SSA_fence] = sel_fence,
	[SSA_barrier] = sel_barrier,
	[SSA_zext] = sel_convert_int,
	[SSA_sext] = sel_convert_int,
	[SSA_trunc] = sel_convert_int,
	[SSA_fcvt] = sel_fcvt,
	[SSA_fcvt_from_s] = sel_fcvt_int,
	[SSA_fcvt_from_u] = sel_fcvt_int,
	[SSA_fcvt_to_s] = sel_fcvt_int,
	[SSA_fcvt_to_u] = sel_fcvt_int,
	[SSA_icmp] = sel_icmp,
	[SSA_fcmp] = sel_fcmp,
	[SSA_select] = sel_select,
	[SSA_ptradd] = pointer_sum,
};

static void select_one(struct sel *s, const struct ssa_inst *i)
{
	s->m->line = i->line;
	if (i->op == SSA_const || i->op == SSA_assume)
		return;
	if (selector[i->op])
		selector[i->op](s, i);
	else if (sel_vector(s, i))
		return;
	else if (ssa_op_info(i->op)->flags & SSA_OP_CROSSES)
		sel_lane_op(s, i);
	else if (!sel_int(s, i) && !sel_float(s, i))
		sel_refuse(s, i,
			   "no instruction for this operation on this type");
}

void sel_block(struct sel *s, struct ssa_block *b)
{
	for (struct ssa_inst *i = b->first; i && i != b->last && !s->failed;
	     i = i->next)
		select_one(s, i);
	s->m->line = b->last->line;
}

static void place_lds(struct sel *s)
{
	uint32_t at = 0;

	for (uint32_t k = 0; k < s->f->n_lds; k++) {
		uint32_t a = s->f->lds[k].align_bytes;

		a = a ? a : 16;
		at = (at + a - 1) / a * a;
		s->lds_at[k] = at;
		at += s->f->lds[k].size_bytes;
	}
	s->m->lds_bytes = at;
}

static uint32_t kernarg_end(const struct ssa_func *f)
{
	uint32_t end = 0;

	for (uint32_t a = 0; a < f->n_args; a++) {
		uint32_t e = f->arg[a].offset + ssa_type_bytes(f->arg[a].type);

		end = e > end ? e : end;
	}
	return (end + 7) / 8 * 8;
}

static const bool *overlap_facts(const struct ssa_func *f, struct arena *a)
{
	bool *n = arena_alloc(a, f->n_args + 1);

	for (uint32_t k = 0; k < f->n_args; k++)
		n[k] = f->arg[k].noalias;
	return n;
}

bool sel_run(struct sel *s)
{
	struct arena *a = s->m->arena;

	s->mask = s->m->wave / 32;
	s->val = arena_alloc(a, (s->f->n_insts + 1) * sizeof(*s->val));
	s->arg = arena_alloc(a, (s->f->n_args + 1) * sizeof(*s->arg));
	s->lds_at = arena_alloc(a, (s->f->n_lds + 1) * sizeof(*s->lds_at));
	s->hidden = kernarg_end(s->f);
	s->m->noalias = overlap_facts(s->f, a);
	place_lds(s);
	sel_classify(s);
	sel_find_writes(s);
	s->b = mir_block(s->m);
	mir_append_block(s->m, s->b);
	take_inputs(s);
	sel_args(s);
	sel_flow(s);
	return !s->failed;
}
