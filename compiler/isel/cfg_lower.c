/*
 * compiler/isel/cfg_lower.c - structured control flow to blocks of the wave.
 *
 * A uniform branch jumps.  A divergent one narrows EXEC: the side that is
 * taken first runs with the lanes that want it, then EXEC turns to the others,
 * and the merge block restores it:
 *
 *	s_and_saveexec s, cond		s_mov s, exec		(a loop)
 *	s_cbranch_execz else	head:	...
 *	...				s_and exec, exec, stay
 * else: s_and_not1 exec, s, exec	s_cbranch_execnz head
 *	s_cbranch_execz merge		s_or exec, exec, s
 *	...
 * merge: s_or exec, exec, s
 *
 * Parameters of blocks are registers that the edges copy into.  Where lanes
 * come one by one (a divergent merge, the exit of a divergent loop) the copies
 * keep the other lanes' values.
 */
#include "compiler/isel/select.h"

#include <stdlib.h>

/* `partial`: the lanes come to `stop` one side after the other. */
static void lower_region(struct sel *s, struct ssa_block *b,
			 const struct ssa_block *stop, bool partial);

static void begin_block(struct sel *s, struct mir_block *b)
{
	for (struct sel_loop *l = s->loop; l; l = l->outer)
		b->depth++;
	mir_append_block(s->m, b);
	s->b = b;
}

/* A block that the current one falls into. */
static struct mir_block *fall_through_to(struct sel *s, struct mir_block *b)
{
	if (!b)
		b = mir_block(s->m);
	mir_add_edge(s->b, b);
	begin_block(s, b);
	return b;
}

static struct mir_inst *mark_term(struct sel *s, struct mir_inst *i)
{
	(void)s;
	i->flags |= MIR_TERM;
	return i;
}

static void branch_to(struct sel *s, int op, struct mir_block *to)
{
	mark_term(s, sel_raw(s, op, mir_label(to)));
	mir_add_edge(s->b, to);
}

/* -------------------------------------------------------- edge copies ---- */

struct copy {
	struct mir_opnd to, from;
	bool partial, done;
};

/* A lane mask keeps the bits of lanes that are off. */
static void merge_mask(struct sel *s, struct mir_opnd to, struct mir_opnd from)
{
	struct mir_opnd off = sel_new_mask(s), on = sel_new_mask(s);

	mark_term(s, sel_s(s, sel_mop(s, s_and_not1), off, to, sel_exec(s)));
	mark_term(s, sel_s(s, sel_mop(s, s_and), on, from, sel_exec(s)));
	mark_term(s, sel_s(s, sel_mop(s, s_or), to, off, on));
}

static void emit_copy(struct sel *s, const struct copy *c)
{
	struct mir_inst *last = s->b->last;

	if (c->partial && mir_is_s(s->m, &c->to)) {
		merge_mask(s, c->to, c->from);
		return;
	}
	sel_copy(s, c->to, c->from);
	for (struct mir_inst *i = s->b->last; i != last; i = i->prev) {
		mark_term(s, i);
		if (c->partial)
			i->flags |= MIR_PARTIAL;
	}
}

static bool copy_is_blocked(const struct copy *c, int n, int k)
{
	for (int j = 0; j < n; j++)
		if (j != k && !c[j].done && c[j].from.kind == MIR_VREG &&
		    c[j].from.reg == c[k].to.reg)
			return true;
	return false;
}

/* All at once: nobody sees what another copy wrote. */
static void put_all(struct sel *s, struct copy *c, int n)
{
	int left = n;

	while (left) {
		int before = left, k;

		for (k = 0; k < n; k++)
			if (!c[k].done && !copy_is_blocked(c, n, k)) {
				emit_copy(s, &c[k]);
				c[k].done = true;
				left--;
			}
		if (left != before)
			continue;
		/* A ring: one value steps aside. */
		for (k = 0; c[k].done; k++)
			;
		struct mir_opnd t = mir_reg(
			s->m, mir_vreg(s->m, s->m->vreg[c[k].to.reg].file,
				       c[k].to.n));
		struct mir_opnd from = c[k].to;

		mark_term(s, sel_raw(s, MIR_COPY, t, from));
		for (int j = 0; j < n; j++)
			if (!c[j].done && c[j].from.kind == MIR_VREG &&
			    c[j].from.reg == from.reg) {
				int sub = c[j].from.sub, w = c[j].from.n;

				c[j].from = mir_part(t, sub, w);
			}
	}
}

static int add_copies(struct sel *s, const struct ssa_edge *e, bool partial,
		      struct copy *c, int n)
{
	for (uint32_t k = 0; k < e->n_args; k++) {
		struct ssa_inst *p = e->to->param[k];
		struct mir_opnd from = sel_get(s, e->arg[k]);

		c[n].to = sel_def(s, p);
		c[n].from = from;
		c[n].done = from.kind == MIR_VREG && from.reg == c[n].to.reg;
		c[n].partial = partial;
		n += !c[n].done;
	}
	return n;
}

static void lower_edge_copies(struct sel *s, const struct ssa_edge *a,
			      bool partial_a, const struct ssa_edge *b)
{
	uint32_t max = a->n_args + (b ? b->n_args : 0);
	struct copy *c = xcalloc(max + 1, sizeof(*c));
	int n = add_copies(s, a, partial_a, c, 0);

	if (b)
		n = add_copies(s, b, false, c, n);
	put_all(s, c, n);
	free(c);
}

/*
 * Registers that lanes fill one by one begin here.  They are complete in block
 * `end`; where one side fills them after the other, the second is from `turn`.
 */
static void begin_partial(struct sel *s, const struct ssa_block *b,
			  struct mir_block *end, struct mir_block *turn)
{
	for (uint32_t k = 0; k < b->n_params; k++) {
		struct mir_opnd d = sel_def(s, b->param[k]);

		if (b->param[k]->type.kind == SSA_I1)
			mark_term(s, sel_raw(s, MIR_COPY, d, mir_imm(0)));
		else if (mir_is_v(s->m, &d))
			mark_term(s, turn ? sel_raw(s, MIR_UNDEF, d,
						    mir_label(end),
						    mir_label(turn)) :
					    sel_raw(s, MIR_UNDEF, d,
						    mir_label(end)));
	}
}

/* ---------------------------------------------------------- two sides ---- */

static bool has_body(const struct ssa_edge *e, const struct ssa_block *merge)
{
	return e->to != merge || e->n_args;
}

static void lower_side(struct sel *s, const struct ssa_edge *e,
		       struct ssa_block *merge, bool partial)
{
	lower_edge_copies(s, e, partial && e->to == merge, NULL);
	lower_region(s, e->to, merge, partial);
}

static void if_uniform(struct sel *s, struct ssa_inst *t)
{
	bool then = has_body(&t->edge[0], t->merge), inverted;
	bool other = has_body(&t->edge[1], t->merge);
	struct mir_block *skip = mir_block(s->m), *merge = mir_block(s->m);
	struct mir_inst *last = s->b->last;
	int first = then ? 0 : 1;

	sel_scc(s, t->arg[0], &inverted);
	for (struct mir_inst *i = s->b->last; i != last; i = i->prev)
		mark_term(s, i);
	branch_to(s, then != inverted ? ISA_s_cbranch_scc0 : ISA_s_cbranch_scc1,
		  then && other ? skip : merge);
	fall_through_to(s, NULL);
	lower_side(s, &t->edge[first], t->merge, false);
	if (then && other) {
		branch_to(s, ISA_s_branch, merge);
		begin_block(s, skip);
		lower_side(s, &t->edge[1], t->merge, false);
	}
	fall_through_to(s, merge);
}

static void narrow_exec(struct sel *s, struct mir_opnd save, struct mir_opnd c,
			bool on)
{
	struct mir_opnd exec = sel_exec(s);

	if (on) {
		mark_term(s, sel_raw(s, sel_mop(s, s_and_saveexec), save, c));
		return;
	}
	mark_term(s, sel_raw(s, s->mask == 2 ? ISA_s_mov_b64 : ISA_s_mov_b32,
			     save, exec));
	mark_term(s, sel_raw(s, sel_mop(s, s_and_not1), exec, exec, c));
}

static void restore_exec(struct sel *s, struct mir_opnd save)
{
	struct mir_opnd exec = sel_exec(s);

	sel_raw(s, sel_mop(s, s_or), exec, exec, save)->flags |= MIR_HEAD;
}

/* Whether a body without lanes does nothing is found out behind it. */
static void skip_if_empty(struct sel *s, struct mir_block *to)
{
	struct mir_inst *i = sel_raw(s, ISA_s_cbranch_execz, mir_label(to));

	i->flags |= MIR_TERM | MIR_SKIP;
	mir_add_edge(s->b, to);
}

static void if_divergent(struct sel *s, struct ssa_inst *t)
{
	bool then = has_body(&t->edge[0], t->merge);
	bool other = has_body(&t->edge[1], t->merge);
	struct mir_block *turn = mir_block(s->m), *merge = mir_block(s->m);
	struct mir_opnd save = sel_new_mask(s), c = sel_get(s, t->arg[0]);
	struct mir_opnd exec = sel_exec(s);

	begin_partial(s, t->merge, merge, then && other ? turn : merge);
	narrow_exec(s, save, c, then);
	skip_if_empty(s, then && other ? turn : merge);
	fall_through_to(s, NULL);
	s->divergent++;
	/* Nobody has filled the other lanes before the first side. */
	lower_side(s, &t->edge[then ? 0 : 1], t->merge, !(then && other));
	if (then && other) {
		fall_through_to(s, turn);
		sel_raw(s, sel_mop(s, s_and_not1), exec, save, exec)->flags |=
			MIR_HEAD;
		skip_if_empty(s, merge);
		fall_through_to(s, NULL);
		lower_side(s, &t->edge[1], t->merge, true);
	}
	s->divergent--;
	fall_through_to(s, merge);
	restore_exec(s, save);
}

static void two_sides(struct sel *s, struct ssa_inst *t)
{
	bool any = has_body(&t->edge[0], t->merge) ||
		   has_body(&t->edge[1], t->merge);

	if (!any)
		return;
	if (t->flags & SSA_UNIFORM || t->arg[0]->flags & SSA_UNIFORM)
		if_uniform(s, t);
	else
		if_divergent(s, t);
}

/* -------------------------------------------------------------- loops ---- */

static bool is_uniform(const struct ssa_inst *t)
{
	return t->flags & SSA_UNIFORM || t->arg[0]->flags & SSA_UNIFORM;
}

static struct ssa_inst *leaving_branch(const struct ssa_block *b,
				       const struct ssa_block *header,
				       int *exit)
{
	struct ssa_inst *t = b->last;

	if (t->op != SSA_branch || t->merge)
		return NULL;
	for (int k = 0; k < 2; k++)
		if (t->edge[k].to != header &&
		    t->edge[k].to->loop_depth < header->loop_depth) {
			*exit = k;
			return t;
		}
	return NULL;
}

static struct ssa_block *latch_of(const struct ssa_block *h)
{
	for (uint32_t k = 0; k < h->n_preds; k++)
		if (ssa_dominates(h, h->pred[k]))
			return h->pred[k];
	return NULL;
}

static void look_at_loop(struct sel_loop *l)
{
	struct ssa_block *ends[2] = { l->header, latch_of(l->header) };

	for (int k = 0; k < 2; k++) {
		struct ssa_inst *t;
		int exit;

		if (!ends[k] ||
		    !(t = leaving_branch(ends[k], l->header, &exit)))
			continue;
		l->exit = t->edge[exit].to;
		l->divergent |= !is_uniform(t);
	}
}

/* The block behind it, NULL if nothing leaves it. */
static struct ssa_block *lower_loop(struct sel *s, struct ssa_block *h)
{
	struct sel_loop l = { .header = h, .outer = s->loop };

	look_at_loop(&l);
	l.head = mir_block(s->m);
	l.out = mir_block(s->m);
	if (l.divergent) {
		l.save = sel_new_mask(s);
		begin_partial(s, l.exit, l.out, NULL);
		sel_raw(s, s->mask == 2 ? ISA_s_mov_b64 : ISA_s_mov_b32, l.save,
			sel_exec(s))
			->flags |= MIR_TERM;
	}
	s->loop = &l;
	fall_through_to(s, l.head);
	l.head->loop_header = true;
	s->divergent += l.divergent;
	lower_region(s, h, NULL, false);
	s->divergent -= l.divergent;
	s->loop = l.outer;
	if (!l.exit)
		return NULL;
	begin_block(s, l.out);
	if (l.divergent)
		restore_exec(s, l.save);
	return l.exit;
}

/* Does an edge out of the loop read what the back edge overwrites? */
static bool reads_params(const struct ssa_edge *out, const struct ssa_block *h)
{
	for (uint32_t k = 0; k < out->n_args; k++)
		for (uint32_t p = 0; p < h->n_params; p++)
			if (out->arg[k] == h->param[p])
				return true;
	return false;
}

/* Lanes leave one by one; `back` is NULL at the header. */
static void leave_divergent(struct sel *s, struct ssa_inst *t, int exit,
			    bool back)
{
	struct sel_loop *l = s->loop;
	struct mir_opnd c = sel_get(s, t->arg[0]), e = sel_exec(s);
	const struct ssa_edge *stay = &t->edge[!exit];

	lower_edge_copies(s, &t->edge[exit], true, back ? stay : NULL);
	mark_term(s,
		  sel_raw(s, exit ? sel_mop(s, s_and) : sel_mop(s, s_and_not1),
			  e, e, c));
	if (back) {
		branch_to(s, ISA_s_cbranch_execnz, l->head);
		mir_add_edge(s->b, l->out);
		return;
	}
	branch_to(s, ISA_s_cbranch_execz, l->out);
	fall_through_to(s, NULL);
	lower_edge_copies(s, stay, false, NULL);
}

static void leave_uniform(struct sel *s, struct ssa_inst *t, int exit,
			  bool back)
{
	struct sel_loop *l = s->loop;
	const struct ssa_edge *out = &t->edge[exit], *stay = &t->edge[!exit];
	bool late = back && !reads_params(out, l->header), inverted;
	struct mir_inst *last = s->b->last;
	bool edge = out->n_args && (late || !back);
	struct mir_block *to = edge ? mir_block(s->m) : l->out;

	sel_scc(s, t->arg[0], &inverted);
	for (struct mir_inst *i = s->b->last; i != last; i = i->prev)
		mark_term(s, i);
	if (back) {
		lower_edge_copies(s, stay, false, late ? NULL : out);
		branch_to(s,
			  (exit == 0) != inverted ? ISA_s_cbranch_scc0 :
						    ISA_s_cbranch_scc1,
			  l->head);
		if (edge) {
			struct sel_loop *in = s->loop;

			s->loop = l->outer;
			fall_through_to(s, to);
			lower_edge_copies(s, out, false, NULL);
			s->loop = in;
		}
		mir_add_edge(s->b, l->out);
		return;
	}
	/* At the header: over the copies of the way out, if there are any. */
	if (!edge) {
		branch_to(s,
			  (exit == 0) != inverted ? ISA_s_cbranch_scc1 :
						    ISA_s_cbranch_scc0,
			  l->out);
		fall_through_to(s, NULL);
	} else {
		branch_to(s,
			  (exit == 0) != inverted ? ISA_s_cbranch_scc0 :
						    ISA_s_cbranch_scc1,
			  to);
		fall_through_to(s, NULL);
		lower_edge_copies(s, out, false, NULL);
		branch_to(s, ISA_s_branch, l->out);
		begin_block(s, to);
	}
	lower_edge_copies(s, stay, false, NULL);
}

/* The end of a header or latch; the block that follows inside the loop. */
static struct ssa_block *lower_loop_end(struct sel *s, struct ssa_block *b)
{
	struct ssa_inst *t = b->last;
	int exit = 0;
	bool back;

	if (!s->loop || !leaving_branch(b, s->loop->header, &exit)) {
		sel_refuse(s, t, "a branch without merge that leaves no loop");
		return NULL;
	}
	back = t->edge[!exit].to == s->loop->header;
	if (s->loop->divergent)
		leave_divergent(s, t, exit, back);
	else
		leave_uniform(s, t, exit, back);
	return back ? NULL : t->edge[!exit].to;
}

/* ------------------------------------------------------------- regions ----
 */

static struct ssa_block *go_on(struct sel *s, struct ssa_block *b,
			       const struct ssa_block *stop, bool partial)
{
	struct ssa_inst *t = b->last;

	switch (t->op) {
	case SSA_ret:
		mark_term(s, sel_raw(s, ISA_s_endpgm, mir_imm(0)))->n_opnd = 0;
		return NULL;
	case SSA_jump:
		lower_edge_copies(s, &t->edge[0],
				  partial && t->edge[0].to == stop, NULL);
		if (s->loop && t->edge[0].to == s->loop->header) {
			branch_to(s, ISA_s_branch, s->loop->head);
			return NULL;
		}
		return t->edge[0].to;
	}
	if (!t->merge)
		return lower_loop_end(s, b);
	two_sides(s, t);
	return t->merge;
}

static bool opens_loop(const struct sel *s, const struct ssa_block *b)
{
	return b->loop == b && (!s->loop || s->loop->header != b);
}

/* From `b` to `stop`, which is not entered; both in the current loop. */
static void lower_region(struct sel *s, struct ssa_block *b,
			 const struct ssa_block *stop, bool partial)
{
	while (b && b != stop && !s->failed) {
		if (opens_loop(s, b)) {
			b = lower_loop(s, b);
			continue;
		}
		sel_block(s, b);
		b = go_on(s, b, stop, partial);
	}
}

void sel_flow(struct sel *s)
{
	lower_region(s, s->f->first, NULL, false);
}

/* ---------------------------------------------------------- lane loops ---- */

void sel_lane_loop_begin(struct sel *s, struct sel_lane_loop *l,
			 const struct ssa_inst *mask)
{
	struct mir_opnd c = mask ? sel_get(s, mask) : sel_exec(s);

	l->save = sel_new_mask(s);
	l->head = mir_block(s->m);
	l->out = mir_block(s->m);
	narrow_exec(s, l->save, c, true);
	skip_if_empty(s, l->out);
	fall_through_to(s, NULL);
	s->divergent++;
}

void sel_lane_loop_head(struct sel *s, struct sel_lane_loop *l)
{
	fall_through_to(s, l->head);
	l->head->loop_header = true;
	l->head->depth++;
}

void sel_lane_loop_end(struct sel *s, struct sel_lane_loop *l,
		       struct mir_opnd again)
{
	struct mir_opnd e = sel_exec(s);

	mark_term(s, sel_raw(s, sel_mop(s, s_and), e, e, again));
	branch_to(s, ISA_s_cbranch_execnz, l->head);
	fall_through_to(s, l->out);
	restore_exec(s, l->save);
	s->divergent--;
}
