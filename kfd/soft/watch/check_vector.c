/*
 * kfd/soft/watch/check_vector.c - uninitialised values in vector instructions,
 * lane by lane.
 */
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

/* Validity of 32 lanes or of 64, and what spoils it. */
struct lanes {
	uint32_t m[2];
	struct origin from;
};

static uint32_t all_of(const struct actor *a, int h)
{
	return h < soft_halves(a->w) ? UINT32_MAX : 0;
}

static bool is_covering(const struct actor *a, const struct lanes *l)
{
	for (int h = 0; h < soft_halves(a->w); h++)
		if (soft_exec(a->w, h) & ~l->m[h])
			return false;
	return true;
}

static struct lanes valid_lanes(const struct actor *a)
{
	return (struct lanes){ { all_of(a, 0), all_of(a, 1) },
			       { .kind = ORIGIN_NONE } };
}

static void mark_uninitialized(struct lanes *l, const struct lanes *by,
			       const struct actor *a)
{
	if (!l->from.kind && !is_covering(a, by))
		l->from = by->from;
	l->m[0] &= by->m[0];
	l->m[1] &= by->m[1];
}

static struct lanes read_vgpr(const struct actor *a, int reg)
{
	return (struct lanes){ { a->sw->vgpr[0][reg], a->sw->vgpr[1][reg] },
			       a->sw->vorigin[reg] };
}

static bool is_mask(const struct isa_operand *o)
{
	return o->type == ISA_T_MASK;
}

/* What a source is worth, by lane: masks by bit, other scalars as a whole. */
static struct lanes read_source(const struct actor *a,
				const struct isa_operand *o)
{
	struct lanes l = valid_lanes(a), x;

	if (o->kind == ISA_K_VGPR) {
		for (int i = 0; i < o->dwords && o->reg + i < 256; i++) {
			x = read_vgpr(a, o->reg + i);
			mark_uninitialized(&l, &x, a);
		}
	} else if (o->kind == ISA_K_SGPR && o->reg != ISA_R_NULL) {
		for (int i = 0; i < o->dwords && o->reg + i < 128; i++) {
			const uint32_t ok = a->sw->sgpr[o->reg + i];

			x = valid_lanes(a);
			x.from = a->sw->sorigin[o->reg + i];
			if (is_mask(o))
				x.m[i & 1] &= ok;
			else if (ok != UINT32_MAX)
				x.m[0] = x.m[1] = 0;
			mark_uninitialized(&l, &x, a);
		}
	} else if (o->kind == ISA_K_SPECIAL && o->reg == ISA_R_SCC &&
		   !a->sw->scc) {
		l = (struct lanes){ { 0, 0 }, a->sw->scc_origin };
	}
	return l;
}

static void write_vgpr(struct actor *a, int reg, const uint32_t mask[2],
		       const struct lanes *l)
{
	for (int h = 0; h < soft_halves(a->w); h++) {
		uint32_t *m = &a->sw->vgpr[h][reg];

		*m = (*m & ~mask[h]) | (l->m[h] & mask[h]);
		if (mask[h] & ~l->m[h] && l->from.kind)
			a->sw->vorigin[reg] = l->from;
	}
}

/* A lane mask: inactive lanes are 0, which is a value. */
static void write_mask(struct actor *a, int reg, const struct lanes *l)
{
	for (int h = 0; h < soft_halves(a->w); h++) {
		const uint32_t ok = l->m[h] | ~soft_exec(a->w, h);

		if (reg + h >= 128 || reg == ISA_R_NULL)
			return;
		if (reg >= ISA_R_EXEC_LO) {
			if (ok != UINT32_MAX)
				check_uninit(a, -1, "EXEC", &l->from);
			continue;
		}
		a->sw->sgpr[reg + h] = ok;
		if (ok != UINT32_MAX)
			a->sw->sorigin[reg + h] = l->from;
	}
}

/*
 * Let an instruction that only moves lanes move marks instead of values: 0 in
 * the lanes of `src` that are initialised, 1 in the others.  What it writes
 * to `dst` comes back, with the lanes that it did write in `written`.
 */
static struct lanes move_marks(struct actor *a, const struct soft_uop *u,
			       const struct lanes *src, int src_reg,
			       int dst_reg, int index_reg, uint32_t written[2])
{
	struct lanes r = { .from = src->from };
	struct soft_wave w = *a->w;

	w.n_vgprs = 256;
	for (int h = 0; h < soft_halves(&w); h++) {
		w.v[h] = a->t->lane_plane + 256 * h;
		for (int i = 0; i < SOFT_LANES; i++) {
			w.v[h][dst_reg][i] = 2;
			if (index_reg >= 0)
				w.v[h][index_reg][i] =
					a->w->v[h][index_reg][i];
			w.v[h][src_reg][i] = !(src->m[h] >> i & 1);
		}
	}
	u->fn(&w, u);
	for (int h = 0; h < soft_halves(&w); h++) {
		written[h] = 0;
		for (int i = 0; i < SOFT_LANES; i++) {
			const uint32_t v = w.v[h][dst_reg][i];

			written[h] |= (uint32_t)(v != 2) << i;
			r.m[h] |= (uint32_t)(v == 0) << i;
		}
	}
	return r;
}

/* v_permlane16_b32, ds_swizzle_b32 and the like: pure moves. */
void check_permute(struct actor *a, int src_reg, int dst_reg,
			int index_reg)
{
	const uint32_t exec[2] = { soft_exec(a->w, 0), soft_exec(a->w, 1) };
	struct lanes src = read_vgpr(a, src_reg), r;
	uint32_t written[2];

	if (src_reg == dst_reg || index_reg == src_reg ||
	    index_reg == dst_reg) {
		/* One register in two roles: all lanes, or none. */
		r = is_covering(a, &src) ? valid_lanes(a) : src;
		write_vgpr(a, dst_reg, exec, &r);
		return;
	}
	r = move_marks(a, &a->s->u, &src, src_reg, dst_reg, index_reg, written);
	if (index_reg >= 0) {
		struct lanes index = read_vgpr(a, index_reg);

		mark_uninitialized(&r, &index, a);
	}
	write_vgpr(a, dst_reg, written, &r);
}

/* With DPP: SRC0 comes from other lanes, and some lanes are not written. */
static struct lanes read_dpp(struct actor *a, const struct isa_operand *o,
			     uint32_t written[2])
{
	struct lanes src = read_source(a, o);

	if (!a->s->mov.fn)
		return src;
	return move_marks(a, &a->s->mov, &src, 0, 1, -1, written);
}

static bool keeps_half(const struct isa_operand *o)
{
	const struct isa_type_info *t = isa_type_info(o->type);

	return t->bits == 16 && t->count == 1;
}

/* The lanes that v_cndmask takes from its second source, and their worth. */
static struct lanes run_cndmask(struct actor *a, const struct isa_operand *o,
				int n, struct lanes src[3])
{
	const bool listed = n > 3 && is_mask(&o[3]);
	const int reg = listed ? o[3].reg : ISA_R_VCC_LO;
	struct lanes r = valid_lanes(a), mask = valid_lanes(a);

	for (int h = 0; h < soft_halves(a->w); h++) {
		const uint32_t pick = a->w->s[reg + h];

		mask.m[h] = a->sw->sgpr[reg + h];
		r.m[h] = (src[1].m[h] & ~pick) | (src[2].m[h] & pick);
		r.from = src[1].m[h] & soft_exec(a->w, h) & ~pick ||
				 !src[2].from.kind ? src[1].from : src[2].from;
		if (soft_exec(a->w, h) & pick & ~src[2].m[h])
			r.from = src[2].from;
		else if (soft_exec(a->w, h) & ~pick & ~src[1].m[h])
			r.from = src[1].from;
	}
	mask.from = a->sw->sorigin[reg];
	if (!is_covering(a, &mask))
		r.from = (struct origin){ .kind = ORIGIN_NONE };
	mark_uninitialized(&r, &mask, a);
	return r;
}

static bool same_vgpr(const struct isa_operand *x, const struct isa_operand *y)
{
	return x->kind == ISA_K_VGPR && y->kind == ISA_K_VGPR &&
	       x->reg == y->reg;
}

/*
 * One result of an ALU instruction; a VOPD has two.  Of 64-bit integer
 * operations whose low half does not see the sources' high halves, that half
 * is known apart: compilers leave high halves undefined that they do not use.
 */
struct result {
	struct lanes l, low;
	uint32_t mask[2]; /* lanes written */
};

static bool low_is_apart(enum isa_op op)
{
	return op == ISA_v_mad_u64_u32 || op == ISA_v_mad_i64_i32 ||
	       op == ISA_v_mad_co_u64_u32 || op == ISA_v_mad_co_i64_i32 ||
	       op == ISA_v_lshlrev_b64 || op == ISA_v_lshlrev_b64__vop2;
}

static struct lanes low_half(const struct actor *a, enum isa_op op,
			     const struct isa_operand *o, int n)
{
	struct lanes l = valid_lanes(a);

	for (int i = 0; i < n && low_is_apart(op); i++) {
		struct isa_operand low = o[i];
		struct lanes x;

		if (!(low.role & ISA_SRC))
			continue;
		if (low.dwords == 2)
			low.dwords = 1;
		x = read_source(a, &low);
		mark_uninitialized(&l, &x, a);
	}
	return l;
}

static struct result eval_vector(struct actor *a, enum isa_op op,
				 const struct isa_operand *o, int n)
{
	const uint32_t flags = isa_op_info(op)->flags;
	const bool dpp = a->s->mov.fn;
	struct result r = { valid_lanes(a), low_half(a, op, o, n),
			    { soft_exec(a->w, 0), soft_exec(a->w, 1) } };
	struct lanes src[3] = { r.l, r.l, r.l };
	bool first = true;

	for (int i = 0; i < n; i++) {
		uint32_t written[2] = { UINT32_MAX, UINT32_MAX };
		struct lanes x;

		if (!(o[i].role & ISA_SRC) ||
		    (o[i].role & ISA_DST && keeps_half(&o[i])))
			continue;
		x = dpp && first && !(o[i].role & ISA_DST) ?
			    read_dpp(a, &o[i], written) :
			    read_source(a, &o[i]);
		first &= (o[i].role & ISA_DST) != 0;
		r.mask[0] &= written[0], r.mask[1] &= written[1];
		if (i < 3)
			src[i] = x;
		mark_uninitialized(&r.l, &x, a);
	}
	if (op == ISA_v_cndmask_b32 || op == ISA_v_cndmask_b16)
		r.l = run_cndmask(a, o, n, src);
	else if (flags & ISA_RVCC) {
		const struct isa_operand vcc = {
			.kind = ISA_K_SGPR, .reg = ISA_R_VCC_LO,
			.type = ISA_T_MASK,
			.dwords = (uint8_t)soft_halves(a->w)
		};
		struct lanes x = read_source(a, &vcc);

		mark_uninitialized(&r.l, &x, a);
	}
	if ((op == ISA_v_xor_b32 || op == ISA_v_sub_nc_u32) && n > 2 &&
	    same_vgpr(&o[1], &o[2]))
		r.l = valid_lanes(a);
	return r;
}

static void store_result(struct actor *a, enum isa_op op,
			 const struct isa_operand *o, int n,
			 const struct result *r)
{
	const uint32_t flags = isa_op_info(op)->flags;
	bool masked = false;

	for (int i = 0; i < n; i++) {
		if (!(o[i].role & ISA_DST))
			continue;
		if (o[i].kind == ISA_K_SGPR) {
			write_mask(a, o[i].reg, &r->l);
			masked = true;
			continue;
		}
		for (int k = 0; o[i].kind == ISA_K_VGPR && k < o[i].dwords &&
				o[i].reg + k < 256; k++)
			write_vgpr(a, o[i].reg + k, r->mask,
				   !k && low_is_apart(op) ? &r->low : &r->l);
	}
	if (flags & ISA_WEXEC)
		write_mask(a, ISA_R_EXEC_LO, &r->l);
	else if (flags & ISA_WVCC && !masked)
		write_mask(a, ISA_R_VCC_LO, &r->l);
}

static void run_wmma(struct actor *a)
{
	const uint32_t all[2] = { UINT32_MAX, UINT32_MAX };
	const struct isa_inst *in = &a->s->u.in;
	struct lanes r = valid_lanes(a);

	for (int i = 0; i < in->n_opnd; i++) {
		struct lanes x = read_source(a, &in->opnd[i]);

		if (in->opnd[i].role & ISA_SRC && !is_covering(a, &x)) {
			r.m[0] = r.m[1] = 0;
			r.from = x.from;
		}
	}
	for (int k = 0; k < in->opnd[0].dwords; k++)
		write_vgpr(a, in->opnd[0].reg + k, all, &r);
}

/* v_readlane_b32 and v_readfirstlane_b32: one lane to a scalar register. */
static void run_readlane(struct actor *a, int lane)
{
	const struct isa_inst *in = &a->s->u.in;
	struct lanes x = read_vgpr(a, in->opnd[1].reg);
	const uint32_t ok = x.m[lane / SOFT_LANES] >> lane % SOFT_LANES & 1 ?
				    UINT32_MAX : 0;
	struct scalar s = { { 0, 0 }, { ok, ok }, x.from };

	check_write_scalar(a, in->opnd[0].reg, 1, &s);
}

static int lane_number(struct actor *a, const struct isa_operand *o)
{
	return (int)(soft_read_scalar(a->w, o, &a->s->u.in) &
		     (uint32_t)(a->w->wave_size - 1));
}

static void run_writelane(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	const int lane = lane_number(a, &in->opnd[2]);
	uint32_t mask[2] = { 0, 0 };
	struct scalar s = check_read_scalar(a, &in->opnd[1]);
	struct lanes l = valid_lanes(a);

	/* Part of a lane mask may be undefined: its holder is not. */
	if (!s.ok[0])
		l = (struct lanes){ { 0, 0 }, s.from };
	mask[lane / SOFT_LANES] = 1u << lane % SOFT_LANES;
	write_vgpr(a, in->opnd[0].reg, mask, &l);
}

static int first_lane(const struct soft_wave *w)
{
	for (int h = 0; h < soft_halves(w); h++)
		if (soft_exec(w, h))
			return h * SOFT_LANES + __builtin_ctz(soft_exec(w, h));
	return 0;
}

static void run_swap(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	const uint32_t exec[2] = { soft_exec(a->w, 0), soft_exec(a->w, 1) };
	struct lanes x = read_vgpr(a, in->opnd[0].reg);
	struct lanes y = read_vgpr(a, in->opnd[1].reg);

	write_vgpr(a, in->opnd[0].reg, exec, &y);
	write_vgpr(a, in->opnd[1].reg, exec, &x);
}

void check_vector(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	const bool dual = in->op_y != ISA_OP_NONE;
	const int n = dual ? in->n_opnd_x : in->n_opnd;
	struct result x, y = { 0 };

	switch (in->op) {
	case ISA_v_readfirstlane_b32:
		run_readlane(a, first_lane(a->w));
		return;
	case ISA_v_readlane_b32:
		run_readlane(a, lane_number(a, &in->opnd[2]));
		return;
	case ISA_v_writelane_b32:
		run_writelane(a);
		return;
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
	case ISA_v_permlane64_b32:
		check_permute(a, in->opnd[1].reg, in->opnd[0].reg, -1);
		return;
	case ISA_v_swap_b32:
	case ISA_v_swap_b16:
		run_swap(a);
		return;
	case ISA_v_movreld_b32:
	case ISA_v_movrelsd_b32:
	case ISA_v_movrelsd_2_b32:
	case ISA_v_swaprel_b32: /* M0 says which register is written */
		memset(a->sw->vgpr, 0xff, sizeof(a->sw->vgpr));
		return;
	}
	if (a->s->info->pipe == ISA_PIPE_WMMA) {
		run_wmma(a);
		return;
	}
	x = eval_vector(a, in->op, in->opnd, n);
	if (dual)
		y = eval_vector(a, in->op_y, in->opnd + n, in->n_opnd - n);
	store_result(a, in->op, in->opnd, n, &x);
	if (dual)
		store_result(a, in->op_y, in->opnd + n, in->n_opnd - n, &y);
}
