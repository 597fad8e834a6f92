/*
 * compiler/select_lane.c - talking to other lanes of the wave.
 *
 * Within a row of 16 lanes data moves by DPP, between the two rows by
 * v_permlanex16, between halves of wave64 by v_readlane, anywhere else through
 * the LDS unit (ds_bpermute).  Reductions and scans of an incomplete wave run
 * with all lanes on and the neutral value in those that were off; nothing
 * alive is in the way, since a register that other lanes need is allocated.
 */
#include "compiler/select.h"

/* A lane pattern in rows; lanes without a source get 0, or keep theirs. */
static const char *dpp(struct sel *s, const char *what, uint32_t n, bool zero)
{
	return arena_printf(s->m->arena,
			    " %s:%u row_mask:0xf bank_mask:0xf%s", what, n,
			    zero ? " bound_ctrl:1" : "");
}

static struct mir_inst *moved(struct sel *s, struct mir_opnd d,
			      struct mir_opnd a, const char *pattern)
{
	struct mir_inst *i = sel_raw(s, ISA_v_mov_b32, d, a);

	i->tail = pattern;
	i->flags |= MIR_DPP;
	return i;
}

/* Nibbles: which lane of the other row each lane of this one reads. */
static void selectors(uint32_t x, uint32_t out[2])
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

static struct mir_opnd shuffled(struct sel *s, struct mir_opnd a, uint32_t x)
{
	struct mir_opnd d = sel_new_v(s, a.n);
	uint32_t p[2];

	selectors(x & 15, p);
	for (int k = 0; k < a.n; k++) {
		struct mir_opnd to = mir_part(d, k, 1), from = mir_part(a, k, 1);

		if (x & 32) {
			struct mir_opnd t = sel_new_v(s, 1);

			sel_raw(s, ISA_v_permlane64_b32, t, from);
			from = t;
		}
		if (x & 16)
			cross_rows(s, to, from, p[0], p[1]);
		else if (x & 15)
			moved(s, to, from, dpp(s, "row_xmask", x & 15, true));
		else
			sel_copy(s, to, from);
	}
	return d;
}

static void shuffle_any(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get_v(s, i->arg[0]), d = sel_def(s, i);
	struct mir_opnd at = sel_new_v(s, 1);

	if (s->m->wave != 32) {
		sel_refuse(s, i, "ds_bpermute reaches 32 lanes only; use wave32");
		return;
	}
	sel_v(s, ISA_v_lshlrev_b32, at, mir_imm(2), sel_get(s, i->arg[1]));
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

static int combine_op(uint8_t rmw, uint8_t kind)
{
	switch (rmw) {
	case SSA_RMW_ADD:
		return ISA_v_add_nc_u32;
	case SSA_RMW_MIN_S:
		return ISA_v_min_i32;
	case SSA_RMW_MAX_S:
		return ISA_v_max_i32;
	case SSA_RMW_MIN_U:
		return ISA_v_min_u32;
	case SSA_RMW_MAX_U:
		return ISA_v_max_u32;
	case SSA_RMW_AND:
		return ISA_v_and_b32;
	case SSA_RMW_OR:
		return ISA_v_or_b32;
	case SSA_RMW_XOR:
		return ISA_v_xor_b32;
	case SSA_RMW_FADD:
		return kind == SSA_F64 ? ISA_v_add_f64 :
		       kind == SSA_F16 ? ISA_v_add_f16 :
					 ISA_v_add_f32;
	case SSA_RMW_FMIN:
		return kind == SSA_F64 ? ISA_v_min_f64 :
		       kind == SSA_F16 ? ISA_v_min_f16 :
					 ISA_v_min_f32;
	case SSA_RMW_FMAX:
		return kind == SSA_F64 ? ISA_v_max_f64 :
		       kind == SSA_F16 ? ISA_v_max_f16 :
					 ISA_v_max_f32;
	}
	return ISA_OP_NONE;
}

static uint64_t neutral(uint8_t rmw, uint8_t kind)
{
	bool wide = kind == SSA_I64 || kind == SSA_F64;
	uint64_t top = wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
	uint64_t inf = kind == SSA_F64 ? UINT64_C(0x7ff0000000000000) :
		       kind == SSA_F16 ? 0x7c00 :
					 0x7f800000;

	switch (rmw) {
	case SSA_RMW_MIN_S:
		return top - 1;
	case SSA_RMW_MAX_S:
		return top;
	case SSA_RMW_MIN_U:
	case SSA_RMW_AND:
		return UINT64_MAX;
	case SSA_RMW_FADD: /* -0: the only neutral one */
		return kind == SSA_F16 ? 0x8000 : top;
	case SSA_RMW_FMIN:
		return inf;
	case SSA_RMW_FMAX:
		return inf | (kind == SSA_F16 ? 0x8000 : top);
	}
	return 0;
}

static void combine_i64(struct sel *s, uint8_t rmw, struct mir_opnd d,
			struct mir_opnd a, struct mir_opnd b)
{
	static const uint16_t cmp[SSA_RMWS] = {
		[SSA_RMW_MIN_S] = ISA_v_cmp_lt_i64,
		[SSA_RMW_MAX_S] = ISA_v_cmp_gt_i64,
		[SSA_RMW_MIN_U] = ISA_v_cmp_lt_u64,
		[SSA_RMW_MAX_U] = ISA_v_cmp_gt_u64,
	};
	struct mir_opnd c;

	if (rmw == SSA_RMW_ADD) {
		sel_add64(s, d, a, b);
		return;
	}
	c = sel_new_mask(s);
	if (cmp[rmw])
		sel_v(s, cmp[rmw], c, a, b);
	for (int k = 0; k < 2; k++) {
		struct mir_opnd x = mir_part(a, k, 1), y = mir_part(b, k, 1);

		if (cmp[rmw])
			sel_v(s, ISA_v_cndmask_b32, mir_part(d, k, 1), y, x, c);
		else
			sel_v(s, combine_op(rmw, SSA_I32), mir_part(d, k, 1), x,
			      y);
	}
}

static void combine(struct sel *s, const struct ssa_inst *i, struct mir_opnd d,
		    struct mir_opnd a, struct mir_opnd b)
{
	if (i->type.kind == SSA_I64)
		combine_i64(s, i->sub, d, a, b);
	else
		sel_v(s, combine_op(i->sub, i->type.kind), d, a, b);
}

/* One instruction where the operation takes a lane pattern itself. */
static struct mir_opnd combine_dpp(struct sel *s, const struct ssa_inst *i,
				   struct mir_opnd a, uint32_t x)
{
	struct mir_opnd d = sel_new_v(s, a.n);

	if (a.n == 1) {
		struct mir_inst *m = sel_raw(
			s, combine_op(i->sub, i->type.kind), d, a, a);

		m->tail = dpp(s, "row_xmask", x, true);
		m->flags |= MIR_DPP;
	} else {
		combine(s, i, d, shuffled(s, a, x), a);
	}
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

static struct mir_opnd all_on(struct sel *s, struct mir_opnd *a, uint64_t fill)
{
	struct mir_opnd save = { 0 }, d, lo, hi;

	if (all_lanes_on(s))
		return save;
	save = sel_new_mask(s);
	d = sel_new_v(s, a->n);
	lo = mir_imm((uint32_t)fill);
	hi = mir_imm((uint32_t)(fill >> 32));
	sel_raw(s, sel_mop(s, s_or_saveexec), save, mir_imm(UINT32_MAX));
	s->glue = true;
	for (int k = 0; k < a->n; k++)
		sel_v(s, ISA_v_cndmask_b32, mir_part(d, k, 1), k ? hi : lo,
		      mir_part(*a, k, 1), save);
	*a = d;
	return save;
}

static void lanes_back(struct sel *s, struct mir_opnd save)
{
	if (save.kind == MIR_VREG)
		sel_raw(s, s->mask == 2 ? ISA_s_mov_b64 : ISA_s_mov_b32,
			sel_exec(s), save);
	s->glue = false;
}

static void reduce(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get_v(s, i->arg[0]), d = sel_def(s, i), save;
	struct mir_opnd last = { 0 };

	save = all_on(s, &a, neutral(i->sub, i->type.kind));
	for (uint32_t x = 1; x < 16; x *= 2)
		a = combine_dpp(s, i, a, x);
	if (s->m->wave == 64) {
		last = sel_new_v(s, a.n);
		combine(s, i, last, shuffled(s, a, 16), a);
		a = last;
	}
	last = sel_new_v(s, a.n);
	combine(s, i, last, shuffled(s, a, s->m->wave == 64 ? 32 : 16), a);
	lanes_back(s, save);
	sel_copy(s, d, last);
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

	for (int k = 0; k < a.n; k++)
		sel_v(s, ISA_v_cndmask_b32, mir_part(d, k, 1),
		      mir_part(a, k, 1), mir_part(b, k, 1), m);
	return d;
}

/* From n lanes below in the row; without a source: `old`. */
static struct mir_opnd from_below(struct sel *s, struct mir_opnd a, uint32_t n,
				  struct mir_opnd old)
{
	struct mir_opnd d = sel_new_v(s, a.n);

	sel_copy(s, d, old);
	for (int k = 0; k < a.n; k++)
		moved(s, mir_part(d, k, 1), mir_part(a, k, 1),
		      dpp(s, "row_shr", n, false))
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

/* Lane 31 in all lanes. */
static struct mir_opnd half_before(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd t = sel_new_s(s, a.n);

	for (int k = 0; k < a.n; k++)
		sel_raw(s, ISA_v_readlane_b32, mir_part(t, k, 1),
			mir_part(a, k, 1), mir_imm(31));
	return sel_to_v(s, t);
}

static void scan(struct sel *s, const struct ssa_inst *i)
{
	uint64_t fill = neutral(i->sub, i->type.kind);
	struct mir_opnd a = sel_get_v(s, i->arg[0]), d = sel_def(s, i), save;
	struct mir_opnd none, t, r;

	save = all_on(s, &a, fill);
	none = sel_new_v(s, a.n);
	for (int k = 0; k < a.n; k++)
		sel_copy(s, mir_part(none, k, 1),
			 mir_imm((uint32_t)(fill >> 32 * k)));
	for (uint32_t n = 1; n < 16; n *= 2) {
		t = sel_new_v(s, a.n);
		combine(s, i, t, from_below(s, a, n, none), a);
		a = t;
	}
	t = sel_new_v(s, a.n);
	combine(s, i, t, row_before(s, a), a);
	a = in_lanes(s, UINT64_C(0xffff0000ffff0000), t, a);
	if (s->m->wave == 64) {
		t = sel_new_v(s, a.n);
		combine(s, i, t, half_before(s, a), a);
		a = in_lanes(s, UINT64_C(0xffffffff00000000), t, a);
	}
	r = a;
	if (!i->imm) {
		r = from_below(s, a, 1, none);
		r = in_lanes(s, UINT64_C(0x0001000000010000),
			     row_before(s, a), r);
		if (s->m->wave == 64)
			r = in_lanes(s, UINT64_C(1) << 32, half_before(s, a),
				     r);
	}
	lanes_back(s, save);
	sel_copy(s, d, r);
}

/* ------------------------------------------------------------ dispatch ---- */

static bool combinable(const struct ssa_inst *i)
{
	switch (i->type.kind) {
	case SSA_I32:
	case SSA_I64:
		return i->sub >= SSA_RMW_ADD && i->sub <= SSA_RMW_XOR;
	case SSA_F16:
	case SSA_F32:
	case SSA_F64:
		return i->sub >= SSA_RMW_FADD;
	}
	return false;
}

static void ballot(struct sel *s, const struct ssa_inst *i)
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
			  shuffled(s, sel_get_v(s, i->arg[0]),
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
		ballot(s, i);
		return;
	case SSA_reduce:
	case SSA_scan:
		if (i->type.n != 1 || !combinable(i))
			break;
		if (i->op == SSA_reduce)
			reduce(s, i);
		else
			scan(s, i);
		return;
	}
	sel_refuse(s, i, "no such exchange between lanes for this type");
}
