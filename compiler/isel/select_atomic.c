/*
 * compiler/isel/select_atomic.c - atomics, barriers and fences.
 */
#include "compiler/isel/select.h"

struct atomic_row {
	uint16_t global[2], lds[2], lds_rtn[2]; /* 32 and 64 bits */
};

#define NO ISA_OP_NONE
#define BOTH(g, d, a, b) \
	{ \
		{ ISA_global_atomic_##g##_##a, ISA_global_atomic_##g##_##b }, \
			{ ISA_ds_##d##_##a, ISA_ds_##d##_##b }, \
		{ \
			ISA_ds_##d##_rtn_##a, ISA_ds_##d##_rtn_##b \
		} \
	}
static const struct atomic_row atomic_row[SSA_RMWS] = {
	[SSA_RMW_XCHG] = { { ISA_global_atomic_swap_b32,
			     ISA_global_atomic_swap_b64 },
			   { NO, NO },
			   { ISA_ds_storexchg_rtn_b32,
			     ISA_ds_storexchg_rtn_b64 } },
	[SSA_RMW_ADD] = BOTH(add, add, u32, u64),
	[SSA_RMW_MIN_S] = BOTH(min, min, i32, i64),
	[SSA_RMW_MAX_S] = BOTH(max, max, i32, i64),
	[SSA_RMW_MIN_U] = BOTH(min, min, u32, u64),
	[SSA_RMW_MAX_U] = BOTH(max, max, u32, u64),
	[SSA_RMW_AND] = BOTH(and, and, b32, b64),
	[SSA_RMW_OR] = BOTH(or, or, b32, b64),
	[SSA_RMW_XOR] = BOTH(xor, xor, b32, b64),
	[SSA_RMW_FADD] = { { ISA_global_atomic_add_f32, NO },
			   { ISA_ds_add_f32, NO },
			   { ISA_ds_add_rtn_f32, NO } },
	[SSA_RMW_FMIN] = { { ISA_global_atomic_min_f32, NO },
			   { ISA_ds_min_f32, ISA_ds_min_f64 },
			   { ISA_ds_min_rtn_f32, ISA_ds_min_rtn_f64 } },
	[SSA_RMW_FMAX] = { { ISA_global_atomic_max_f32, NO },
			   { ISA_ds_max_f32, ISA_ds_max_f64 },
			   { ISA_ds_max_rtn_f32, ISA_ds_max_rtn_f64 } },
};
#undef BOTH
#undef NO

static struct mir_inst *emit_atomic(struct sel *s, struct sel_access *a, int op,
				    bool rtn, struct mir_opnd data)
{
	struct mir_inst *m;

	if (a->lds && rtn)
		m = sel_raw(s, op, a->data, a->addr, data);
	else if (a->lds)
		m = sel_raw(s, op, a->addr, data);
	else if (rtn)
		m = sel_raw(s, op, a->data, a->addr, data, a->base);
	else
		m = sel_raw(s, op, a->addr, data, a->base);
	if (!a->lds)
		m->n_def = rtn;
	sel_note(a, m, 0, data.n * 4);
	m->tail = !a->lds && rtn ? " glc" : "";
	m->flags |= MIR_ORDERED | MIR_KEEP;
	if (a->partial && rtn)
		m->flags |= MIR_PARTIAL;
	return m;
}

static bool atomic_type(const struct ssa_inst *i)
{
	switch (i->type.kind) {
	case SSA_I32:
	case SSA_I64:
	case SSA_F32:
	case SSA_F64:
	case SSA_PTR:
		return i->type.n == 1;
	}
	return false;
}

static void select_cmpxchg(struct sel *s, const struct ssa_inst *i,
			   struct sel_access *a)
{
	struct mir_opnd want = sel_get_v(s, i->arg[2]), pair;
	struct mir_opnd new = sel_get_v(s, i->arg[3]);
	bool wide = new.n == 2;
	struct mir_inst *m;

	if (a->lds) {
		if (mir_lacks(s->m, ISA_ds_cmpstore_rtn_b32))
			m = sel_raw(s,
				    wide ? ISA_ds_cmpst_rtn_b64 :
					   ISA_ds_cmpst_rtn_b32,
				    a->data, a->addr, want, new);
		else
			m = sel_raw(s,
				    wide ? ISA_ds_cmpstore_rtn_b64 :
					   ISA_ds_cmpstore_rtn_b32,
				    a->data, a->addr, new, want);
		sel_note(a, m, 0, new.n * 4);
		m->flags |= MIR_ORDERED | MIR_KEEP;
		return;
	}
	pair = sel_new_v(s, 2 * new.n);
	sel_copy(s, mir_part(pair, 0, new.n), new);
	sel_copy(s, mir_part(pair, new.n, new.n), want);
	emit_atomic(s, a,
		    wide ? ISA_global_atomic_cmpswap_b64 :
			   ISA_global_atomic_cmpswap_b32,
		    true, pair);
}

/*
 * The sum of floats in global memory where no instruction does it: a lane tries
 * until nobody came between its load and its exchange.
 */
static void select_fadd_loop(struct sel *s, const struct ssa_inst *i,
			     struct sel_access *a, const struct ssa_inst *mask)
{
	struct mir_opnd x = sel_get_v(s, i->arg[2]), old = a->data;
	struct mir_opnd pair = sel_new_v(s, 2), sum = sel_new_v(s, 1);
	struct mir_opnd again = sel_new_mask(s);
	struct sel_access swap = *a;
	struct sel_lane_loop l;
	struct mir_inst *m;

	sel_copy(s, old, mir_imm(0));
	sel_lane_loop_begin(s, &l, mask);
	m = sel_raw(s, ISA_global_load_b32, old, a->addr, a->base);
	sel_note(a, m, 0, 4);
	m->flags |= MIR_ORDERED | MIR_KEEP | MIR_PARTIAL;
	sel_lane_loop_head(s, &l);
	sel_v(s, ISA_v_add_f32, sum, old, x);
	sel_copy(s, mir_part(pair, 0, 1), sum);
	sel_copy(s, mir_part(pair, 1, 1), old);
	swap.data = sel_new_v(s, 1);
	swap.partial = false;
	emit_atomic(s, &swap, ISA_global_atomic_cmpswap_b32, true, pair);
	sel_v(s, ISA_v_cmp_ne_u32, again, swap.data, old);
	sel_raw(s, ISA_v_mov_b32, old, swap.data)->flags |= MIR_PARTIAL;
	sel_lane_loop_end(s, &l, again);
}

void sel_atomic(struct sel *s, const struct ssa_inst *i)
{
	const struct atomic_row *r = &atomic_row[i->sub % SSA_RMWS];
	bool wide = sel_dwords(s, i->type) == 2;
	bool rtn = s->val[i->id].uses || i->op == SSA_cmpxchg;
	struct sel_access a = { .s = s, .i = i, .tail = "" };
	const struct ssa_inst *mask = NULL;
	struct mir_opnd data, save;
	int op;

	if (!atomic_type(i)) {
		sel_refuse(s, i, "atomics are for 32 and 64 bits");
		return;
	}
	s->mem = i;
	a.data = sel_def(s, i);
	sel_address(s, &a);
	if (i->op == SSA_cmpxchg) {
		select_cmpxchg(s, i, &a);
		s->mem = NULL;
		return;
	}
	mask = i->n_args > 3 ? i->arg[3] : NULL;
	a.partial = mask;
	rtn |= a.lds && i->sub == SSA_RMW_XCHG;
	if (!a.lds && i->sub == SSA_RMW_FADD && !wide &&
	    mir_lacks(s->m, ISA_global_atomic_add_f32)) {
		select_fadd_loop(s, i, &a, mask);
		s->mem = NULL;
		return;
	}
	op = !a.lds ? r->global[wide] : rtn ? r->lds_rtn[wide] : r->lds[wide];
	if (!op) {
		sel_refuse(s, i, "there is no such atomic");
		return;
	}
	data = sel_get_v(s, i->arg[2]);
	if (rtn && mask)
		sel_copy(s, a.data, mir_imm(0));
	save = sel_mask_begin(s, mask);
	emit_atomic(s, &a, op, rtn, data);
	sel_mask_end(s, save);
	s->mem = NULL;
}

/* ------------------------------------------------------------ ordering ---- */

static void mark_ordered(struct mir_inst *m)
{
	m->flags |= MIR_ORDERED | MIR_KEEP;
}

static bool writes_global(const struct ssa_inst *i)
{
	return (i->op == SSA_store || i->op == SSA_atomic ||
		i->op == SSA_cmpxchg) &&
	       i->arg[0]->type.kind == SSA_PTR;
}

static bool block_writes(const struct ssa_block *b, const struct ssa_inst *end)
{
	for (const struct ssa_inst *i = b->first; i && i != end; i = i->next)
		if (writes_global(i))
			return true;
	return false;
}

void sel_find_writes(struct sel *s)
{
	bool changed = true;

	s->behind_write = arena_alloc(s->m->arena, s->f->n_blocks + 1);
	while (changed) {
		changed = false;
		for (struct ssa_block *b = s->f->first; b; b = b->next) {
			bool *mark = &s->behind_write[b->id];

			for (uint32_t k = 0; k < b->n_preds && !*mark; k++)
				changed |= *mark =
					s->behind_write[b->pred[k]->id] ||
					block_writes(b->pred[k], NULL);
		}
	}
}

/*
 * In CU mode a group's accesses go through one cache; in WGP mode through two,
 * so lines that another wave may have written must go.  The waits are
 * compiler/backend/insert_waitcnt.c's.
 */
void sel_barrier(struct sel *s, const struct ssa_inst *i)
{
	mark_ordered(sel_raw_list(s, ISA_s_barrier, NULL, 0));
	if (s->wgp &&
	    (s->behind_write[i->block->id] || block_writes(i->block, i)))
		mark_ordered(sel_raw_list(s, ISA_buffer_gl0_inv, NULL, 0));
}

void sel_fence(struct sel *s, const struct ssa_inst *i)
{
	(void)i;
	mark_ordered(sel_raw_list(s, ISA_buffer_gl1_inv, NULL, 0));
	mark_ordered(sel_raw_list(s, ISA_buffer_gl0_inv, NULL, 0));
}
