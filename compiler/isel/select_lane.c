/*
 * compiler/isel/select_lane.c - operations between lanes of the wave.
 *
 * Within a row of 16 lanes data moves by DPP, between the two rows by
 * v_permlanex16, between halves of wave64 by v_readlane, anywhere else through
 * the LDS unit (ds_bpermute).  Reductions and scans of an incomplete wave run
 * with all lanes on and the identity in those that were off; that destroys
 * nothing, since a register that other lanes need is allocated.
 */
#include "compiler/isel/select.h"

/* A lane pattern in rows; lanes without a source get 0, or keep theirs. */
static const char *dpp_pattern(struct sel *s, const char *what, uint32_t n,
			       bool zero)
{
	return arena_printf(s->m->arena,
			    " %s:%u row_mask:0xf bank_mask:0xf%s", what, n,
			    zero ? " bound_ctrl:1" : "");
}

static struct mir_inst *emit_dpp_mov(struct sel *s, struct mir_opnd d,
				     struct mir_opnd a, const char *pattern)
{
	struct mir_inst *i = sel_raw(s, ISA_v_mov_b32, d, a);

	i->tail = pattern;
	i->flags |= MIR_DPP;
	return i;
}

/* Nibbles: which lane of the other row each lane of this one reads. */
static void permlane_selectors(uint32_t x, uint32_t out[2])
{
	for (uint32_t h = 0; h < 2; h++) {
		out[h] = 0;
		for (uint32_t k = 0; k < 8; k++)
			out[h] |= ((8 * h + k) ^ x) << 4 * k;
	}
}

static void cross_rows(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		       uint32_t lo, uint32_t hi)
{
	struct mir_opnd sl = mir_imm(lo), sh = mir_imm(hi);

	sl = sel_is_inline(lo, 0) ? sl : sel_to_s(s, sl);
	sh = sel_is_inline(hi, 0) ? sh : sel_to_s(s, sh);
	sel_raw(s, ISA_v_permlanex16_b32, d, a, sl, sh);
}

/*
 * A register of wave64 with its halves exchanged.  gfx10 has no instruction for
 * it: lane by lane, by way of a scalar.
 */
static void swap_halves(struct sel *s, struct mir_opnd d, struct mir_opnd a)
{
	if (!mir_lacks(s->m, ISA_v_permlane64_b32)) {
		sel_raw(s, ISA_v_permlane64_b32, d, a);
		return;
	}
	sel_copy(s, d, a);
	for (uint32_t k = 0; k < 64; k++) {
		struct mir_opnd x = sel_new_s(s, 1);

		sel_raw(s, ISA_v_readlane_b32, x, a, mir_imm(k));
		sel_raw(s, ISA_v_writelane_b32, d, x, mir_imm(k ^ 32))->flags |=
			MIR_PARTIAL;
	}
}

static struct mir_opnd emit_shuffle_xor(struct sel *s, struct mir_opnd a,
					uint32_t x)
{
	struct mir_opnd d = sel_new_v(s, a.n);
	uint32_t p[2];

	permlane_selectors(x & 15, p);
	for (int k = 0; k < a.n; k++) {
		struct mir_opnd to = mir_part(d, k, 1),
				from = mir_part(a, k, 1);

		if (x & 32) {
			struct mir_opnd t = sel_new_v(s, 1);

			swap_halves(s, t, from);
			from = t;
		}
		if (x & 16)
			cross_rows(s, to, from, p[0], p[1]);
		else if (x & 15)
			emit_dpp_mov(s, to, from,
				     dpp_pattern(s, "row_xmask", x & 15, true));
		else
			sel_copy(s, to, from);
	}
	return d;
}

/*
 * In waves of 64 ds_bpermute stays within each 32 lanes, so the halves are
 * also read exchanged, and each lane takes what its lane number is in.
 */
static void shuffle_halves(struct sel *s, const struct ssa_inst *i,
			   struct mir_opnd d, struct mir_opnd a,
			   struct mir_opnd at)
{
	struct mir_opnd low = sel_new_v(s, 1), me = sel_new_v(s, 1);
	struct mir_opnd differs = sel_new_v(s, 1), far = sel_new_mask(s);

	sel_v(s, ISA_v_mbcnt_lo_u32_b32, low, mir_imm(UINT32_MAX), mir_imm(0));
	sel_v(s, ISA_v_mbcnt_hi_u32_b32, me, mir_imm(UINT32_MAX), low);
	sel_v(s, ISA_v_xor_b32, differs, sel_get(s, i->arg[1]), me);
	low = sel_v1(s, ISA_v_and_b32, mir_imm(32), differs);
	sel_v(s, ISA_v_cmp_ne_u32, far, mir_imm(0), low);
	for (int k = 0; k < d.n; k++) {
		struct mir_opnd from = mir_part(a, k, 1);
		struct mir_opnd other = sel_new_v(s, 1);
		struct mir_opnd x = sel_new_v(s, 1), y = sel_new_v(s, 1);

		swap_halves(s, other, from);
		sel_raw(s, ISA_ds_bpermute_b32, x, at, from);
		sel_raw(s, ISA_ds_bpermute_b32, y, at, other);
		sel_v(s, ISA_v_cndmask_b32, mir_part(d, k, 1), x, y, far);
	}
}

static void shuffle_any(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get_v(s, i->arg[0]), d = sel_def(s, i);
	struct mir_opnd at =
		sel_v1(s, ISA_v_lshlrev_b32, mir_imm(2), sel_get(s, i->arg[1]));
	if (s->m->wave == 64) {
		shuffle_halves(s, i, d, a, at);
		return;
	}
	for (int k = 0; k < d.n; k++)
		sel_raw(s, ISA_ds_bpermute_b32, mir_part(d, k, 1), at,
			mir_part(a, k, 1));
}

static void read_lane(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get(s, i->arg[0]), d, at;

	if (!mir_is_v(s->m, &a)) {
		sel_alias(s, i, a);
		return;
	}
	d = sel_def(s, i);
	at = sel_get(s, i->arg[1]);
	if (at.kind == MIR_IMM)
		at.imm &= (uint32_t)s->m->wave - 1;
	else
		at = sel_to_s(s, at);
	for (int k = 0; k < d.n; k++)
		sel_raw(s, ISA_v_readlane_b32, mir_part(d, k, 1),
			mir_part(a, k, 1), at);
}

static void read_first(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get(s, i->arg[0]);

	if (mir_is_v(s->m, &a))
		sel_copy(s, sel_def(s, i), a);
	else
		sel_alias(s, i, a);
}

/* ----------------------------------------------------------- combining ---- */

static int combine_op(uint8_t rmw)
{
	static const uint16_t op[SSA_RMWS] = {
		[SSA_RMW_ADD] = ISA_v_add_nc_u32,
		[SSA_RMW_MIN_S] = ISA_v_min_i32,
		[SSA_RMW_MAX_S] = ISA_v_max_i32,
		[SSA_RMW_MIN_U] = ISA_v_min_u32,
		[SSA_RMW_MAX_U] = ISA_v_max_u32,
		[SSA_RMW_AND] = ISA_v_and_b32,
		[SSA_RMW_OR] = ISA_v_or_b32,
		[SSA_RMW_XOR] = ISA_v_xor_b32,
		[SSA_RMW_FADD] = ISA_v_add_f32,
		[SSA_RMW_FMIN] = ISA_v_min_f32,
		[SSA_RMW_FMAX] = ISA_v_max_f32,
	};

	return op[rmw];
}

static struct mir_opnd emit_combine(struct sel *s, const struct ssa_inst *i,
				    struct mir_opnd a, struct mir_opnd b)
{
	struct mir_opnd d = sel_v1(s, combine_op(i->sub), a, b);
	return d;
}

/* The operation takes a lane pattern itself. */
static struct mir_opnd combine_dpp(struct sel *s, const struct ssa_inst *i,
				   struct mir_opnd a, uint32_t x)
{
	struct mir_opnd d = sel_new_v(s, 1);
	struct mir_inst *m = sel_raw(s, combine_op(i->sub), d, a, a);

	m->tail = dpp_pattern(s, "row_xmask", x, true);
	m->flags |= MIR_DPP;
	return d;
}

/* -------------------------------------------------------- whole waves ---- */

static uint32_t group_size(const struct sel *s)
{
	const uint32_t *g = s->f->group;

	return g[0] * (g[1] ? g[1] : 1) * (g[2] ? g[2] : 1);
}

static bool all_lanes_on(const struct sel *s)
{
	return !s->divergent && group_size(s) % (uint32_t)s->m->wave == 0;
}

static struct mir_opnd all_on(struct sel *s, struct mir_opnd *a, uint32_t fill)
{
	struct mir_opnd save = { 0 }, d;

	if (all_lanes_on(s))
		return save;
	save = sel_new_mask(s);
	d = sel_new_v(s, 1);
	sel_raw(s, sel_mop(s, s_or_saveexec), save, mir_imm(UINT32_MAX));
	s->glue = true;
	sel_v(s, ISA_v_cndmask_b32, d, mir_imm(fill), *a, save);
	*a = d;
	return save;
}

/* Lane `k` in all lanes. */
static struct mir_opnd lane_value(struct sel *s, struct mir_opnd a, uint32_t k)
{
	struct mir_opnd t = sel_new_s(s, 1);

	sel_raw(s, ISA_v_readlane_b32, t, a, mir_imm(k));
	return t;
}

static bool in_order(const struct ssa_inst *i)
{
	return i->sub == SSA_RMW_FADD && !(i->flags & SSA_REASSOC);
}

static struct mir_opnd sum_in_order(struct sel *s, const struct ssa_inst *i,
				    struct mir_opnd a)
{
	struct mir_opnd acc = sel_to_v(s, lane_value(s, a, 0));

	for (int k = 1; k < s->m->wave; k++)
		acc = emit_combine(s, i, lane_value(s, a, (uint32_t)k), acc);
	return acc;
}

static struct mir_opnd reduce_tree(struct sel *s, const struct ssa_inst *i,
				   struct mir_opnd a)
{
	for (uint32_t x = 1; x < 16; x *= 2)
		a = combine_dpp(s, i, a, x);
	for (uint32_t x = 16; x < (uint32_t)s->m->wave; x *= 2)
		a = emit_combine(s, i, emit_shuffle_xor(s, a, x), a);
	return a;
}

static void select_reduce(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get_v(s, i->arg[0]), d = sel_def(s, i), save;

	save = all_on(s, &a, (uint32_t)ssa_rmw_identity(i->sub, i->type));
	a = in_order(i) ? sum_in_order(s, i, a) : reduce_tree(s, i, a);
	sel_mask_end(s, save);
	sel_copy(s, d, a);
}

/* ----------------------------------------------------------------- scan ----
 */

static struct mir_opnd lane_mask(struct sel *s, uint64_t bits)
{
	struct mir_opnd d = sel_new_mask(s);

	sel_raw(s, MIR_COPY, mir_part(d, 0, 1), mir_imm((uint32_t)bits));
	if (d.n == 2)
		sel_raw(s, MIR_COPY, mir_part(d, 1, 1),
			mir_imm((uint32_t)(bits >> 32)));
	return d;
}

/* `b` in the lanes of `bits`, elsewhere `a`. */
static struct mir_opnd in_lanes(struct sel *s, uint64_t bits, struct mir_opnd b,
				struct mir_opnd a)
{
	struct mir_opnd d = sel_new_v(s, a.n), m = lane_mask(s, bits);

	sel_cndmask(s, d, m, b, a);
	return d;
}

/* From n lanes below in the row; without a source: `old`. */
static struct mir_opnd from_below(struct sel *s, struct mir_opnd a, uint32_t n,
				  struct mir_opnd old)
{
	struct mir_opnd d = sel_new_v(s, a.n);

	sel_copy(s, d, old);
	for (int k = 0; k < a.n; k++)
		emit_dpp_mov(s, mir_part(d, k, 1), mir_part(a, k, 1),
			     dpp_pattern(s, "row_shr", n, false))
			->flags |= MIR_PARTIAL;
	return d;
}

/* The last lane of the row before, in all lanes of odd rows. */
static struct mir_opnd row_before(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd d = sel_new_v(s, a.n);

	for (int k = 0; k < a.n; k++)
		cross_rows(s, mir_part(d, k, 1), mir_part(a, k, 1), UINT32_MAX,
			   UINT32_MAX);
	return d;
}

static struct mir_opnd scan_in_order(struct sel *s, const struct ssa_inst *i,
				     struct mir_opnd a, struct mir_opnd none)
{
	struct mir_opnd acc = none, r = none;

	for (int k = 0; k < s->m->wave; k++) {
		struct mir_opnd before = acc;

		acc = emit_combine(s, i, lane_value(s, a, (uint32_t)k), acc);
		r = in_lanes(s, UINT64_MAX << k, i->imm ? acc : before, r);
	}
	return r;
}

static struct mir_opnd scan_tree(struct sel *s, const struct ssa_inst *i,
				 struct mir_opnd a, struct mir_opnd none)
{
	struct mir_opnd r;

	for (uint32_t n = 1; n < 16; n *= 2)
		a = emit_combine(s, i, from_below(s, a, n, none), a);
	a = in_lanes(s, UINT64_C(0xffff0000ffff0000),
		     emit_combine(s, i, row_before(s, a), a), a);
	if (s->m->wave == 64)
		a = in_lanes(s, UINT64_C(0xffffffff00000000),
			     emit_combine(s, i, lane_value(s, a, 31), a), a);
	if (i->imm)
		return a;
	r = from_below(s, a, 1, none);
	r = in_lanes(s, UINT64_C(0x0001000000010000), row_before(s, a), r);
	if (s->m->wave == 64)
		r = in_lanes(s, UINT64_C(1) << 32,
			     sel_to_v(s, lane_value(s, a, 31)), r);
	return r;
}

static void select_scan(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get_v(s, i->arg[0]), d = sel_def(s, i), save;
	const uint32_t identity = (uint32_t)ssa_rmw_identity(i->sub, i->type);
	struct mir_opnd none;

	save = all_on(s, &a, identity);
	none = sel_to_v(s, mir_imm(identity));
	a = in_order(i) ? scan_in_order(s, i, a, none) :
			  scan_tree(s, i, a, none);
	sel_mask_end(s, save);
	sel_copy(s, d, a);
}

/* ------------------------------------------------------------ dispatch ---- */

static bool is_combinable(const struct ssa_inst *i)
{
	bool f = i->sub >= SSA_RMW_FADD;

	return i->type.n == 1 && i->sub != SSA_RMW_XCHG &&
	       i->type.kind == (f ? SSA_F32 : SSA_I32);
}

static void select_ballot(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd d = sel_def(s, i), t = sel_new_mask(s);

	sel_s(s, sel_mop(s, s_and), t, sel_get(s, i->arg[0]), sel_exec(s));
	sel_copy(s, d, mir_part(t, 0, d.n < t.n ? d.n : t.n));
}

void sel_lane_op(struct sel *s, const struct ssa_inst *i)
{
	if (i->type.kind == SSA_I1) {
		sel_refuse(s, i, "extend i1 to i32 first");
		return;
	}
	switch (i->op) {
	case SSA_shuffle:
		shuffle_any(s, i);
		return;
	case SSA_shuffle_xor:
		sel_alias(s, i,
			  emit_shuffle_xor(s, sel_get_v(s, i->arg[0]),
					   (uint32_t)i->imm &
						   ((uint32_t)s->m->wave - 1)));
		return;
	case SSA_read_first:
		read_first(s, i);
		return;
	case SSA_read_lane:
		read_lane(s, i);
		return;
	case SSA_ballot:
		select_ballot(s, i);
		return;
	case SSA_reduce:
	case SSA_scan:
		if (!is_combinable(i))
			break;
		if (i->op == SSA_reduce)
			select_reduce(s, i);
		else
			select_scan(s, i);
		return;
	}
	sel_refuse(s, i, "no such exchange between lanes for this type");
}
