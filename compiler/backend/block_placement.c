/*
 * compiler/backend/block_placement.c - fewer and cheaper branches.
 *
 * A taken branch costs nine times one that is not taken (cost.def).  So jumps
 * to the next block are removed, a branch over a jump is inverted, and a loop
 * that tests at its top is rotated: it gets a copy of the test at its bottom.
 */
#include "compiler/backend/backend_int.h"

#include <string.h>

/* A test that is copied to the bottom has at most so many instructions. */
enum { ROTATE_MAX = 10 };

static int invert_branch(int op)
{
	switch (op) {
	case ISA_s_cbranch_scc0:
		return ISA_s_cbranch_scc1;
	case ISA_s_cbranch_scc1:
		return ISA_s_cbranch_scc0;
	case ISA_s_cbranch_execz:
		return ISA_s_cbranch_execnz;
	case ISA_s_cbranch_execnz:
		return ISA_s_cbranch_execz;
	}
	return ISA_OP_NONE;
}

static struct mir_block *next_of(const struct mir_func *m,
				 const struct mir_block *b)
{
	return b->order + 1 < m->n_order ? m->order[b->order + 1] : NULL;
}

static void remove_block(struct mir_func *m, struct mir_block *b)
{
	memmove(&m->order[b->order], &m->order[b->order + 1],
		(m->n_order - b->order - 1) * sizeof(*m->order));
	m->n_order--;
	for (uint32_t k = 0; k < m->n_order; k++)
		m->order[k]->order = k;
}

static void redirect_branches(struct mir_func *m, const struct mir_block *from,
			      struct mir_block *to)
{
	for (uint32_t k = 0; k < m->n_order; k++) {
		struct mir_block *b = m->order[k];

		for (uint32_t s = 0; s < b->n_succ; s++)
			if (b->succ[s] == from)
				b->succ[s] = to;
		for (struct mir_inst *i = b->last; i && mir_is_branch(i);
		     i = i->prev)
			if (i->n_opnd && i->o[0].kind == MIR_LABEL &&
			    i->o[0].label == from)
				i->o[0].label = to;
	}
}

/* Empty, or a single jump: branches to it may go to its target. */
static bool is_empty_block(const struct mir_func *m, const struct mir_block *b,
			   struct mir_block **to)
{
	*to = next_of(m, b);
	if (b->first && b->first->op == ISA_s_branch)
		*to = b->first->o[0].label;
	else if (b->first)
		return false;
	return *to && *to != b;
}

/* Reached only by jumps: its predecessor in memory does not fall into it. */
static bool is_fallen_into(const struct mir_func *m, const struct mir_block *b)
{
	const struct mir_inst *i;

	if (!b->order)
		return true;
	i = m->order[b->order - 1]->last;
	return !i || (i->op != ISA_s_branch && i->op != ISA_s_endpgm);
}

static bool drop_empty_block(struct mir_func *m)
{
	for (uint32_t k = 1; k < m->n_order; k++) {
		struct mir_block *b = m->order[k], *to;

		if (!is_empty_block(m, b, &to))
			continue;
		/* A jump stays where its predecessor falls into it. */
		if (b->first && is_fallen_into(m, b))
			continue;
		redirect_branches(m, b, to);
		remove_block(m, b);
		return true;
	}
	return false;
}

static bool drop_jumps(struct mir_func *m)
{
	bool any = false;

	for (uint32_t k = 0; k < m->n_order; k++) {
		struct mir_block *b = m->order[k];
		struct mir_inst *i = b->last;

		if (i && i->op == ISA_s_branch &&
		    i->o[0].label == next_of(m, b)) {
			mir_unlink(i);
			any = true;
		}
	}
	return any;
}

/* branch L1; jump L2; L1: */
static bool invert_over_jump(struct mir_func *m)
{
	for (uint32_t k = 0; k + 2 < m->n_order; k++) {
		struct mir_block *a = m->order[k], *b = m->order[k + 1];
		struct mir_inst *i = a->last;

		if (!i || !invert_branch(i->op) || !b->first ||
		    b->first->op != ISA_s_branch ||
		    i->o[0].label != m->order[k + 2])
			continue;
		i->op = (uint16_t)invert_branch(i->op);
		i->flags &= (uint16_t)~MIR_SKIP;
		i->o[0].label = b->first->o[0].label;
		a->n_succ = 0;
		mir_add_edge(a, i->o[0].label);
		mir_add_edge(a, b);
		mir_unlink(b->first);
		b->n_succ = 0;
		mir_add_edge(b, m->order[k + 2]);
		return true;
	}
	return false;
}

/* ------------------------------------------------------------ rotation ---- */

static bool is_short_test(const struct mir_block *h)
{
	uint32_t n = 0;

	for (const struct mir_inst *i = h->first; i; i = i->next)
		if (++n > ROTATE_MAX || (mir_is_branch(i) && i->next))
			return false;
	return h->last && invert_branch(h->last->op);
}

static void append_copy(struct mir_func *m, struct mir_block *b,
			const struct mir_inst *i)
{
	struct mir_inst *c = arena_alloc(m->arena, sizeof(*c));

	*c = *i;
	mir_append(b, c);
	m->n_insts++;
}

/*
 * Hoists a copied compare to where its operands are ready: its result takes
 * long to reach the branch (cost.def, valu.to_salu).
 */
static void hoist_compare(struct mir_func *m, struct mir_inst *cmp)
{
	struct mir_touch mine, other;
	struct mir_inst *at = cmp;

	mir_touches(m, cmp, &mine);
	for (struct mir_inst *i = cmp->prev; i; i = i->prev) {
		mir_touches(m, i, &other);
		if (mir_touches_conflict(&mine, &other) || mir_writes_exec(i) ||
		    mir_is_branch(i) || i->flags & MIR_HEAD)
			break;
		if (!(i->flags & MIR_GLUED))
			at = i;
	}
	if (at == cmp)
		return;
	mir_unlink(cmp);
	mir_before(at, cmp);
}

static void hoist_compares(struct mir_func *m, struct mir_inst *first)
{
	struct mir_inst *next;

	for (struct mir_inst *i = first; i; i = next) {
		next = i->next;
		if (mir_is_valu(i) && i->n_def && mir_is_s(m, &i->o[0]))
			hoist_compare(m, i);
	}
}

static bool rotate_loop(struct mir_func *m, struct mir_block *b)
{
	struct mir_inst *jump = b->last;
	struct mir_block *h, *body, *out;

	if (!jump || jump->op != ISA_s_branch)
		return false;
	h = jump->o[0].label;
	if (h->order > b->order || !h->loop_header || !is_short_test(h))
		return false;
	body = next_of(m, h);
	out = h->last->o[0].label;
	if (!body || out == body || out->order <= b->order)
		return false;
	struct mir_inst *last = jump->prev;

	mir_unlink(jump);
	for (const struct mir_inst *i = h->first; i; i = i->next)
		append_copy(m, b, i);
	hoist_compares(m, last ? last->next : b->first);
	b->last->op = (uint16_t)invert_branch(b->last->op);
	b->last->o[0].label = body;
	b->n_succ = 0;
	mir_add_edge(b, body);
	mir_add_edge(b, out);
	if (next_of(m, b) != out) {
		struct mir_block *x = mir_block(m);
		struct mir_opnd to = mir_label(out);

		x->depth = b->depth;
		mir_append_block(m, x);
		memmove(&m->order[b->order + 2], &m->order[b->order + 1],
			(m->n_order - b->order - 2) * sizeof(*m->order));
		m->order[b->order + 1] = x;
		for (uint32_t k = 0; k < m->n_order; k++)
			m->order[k]->order = k;
		mir_append(x, mir_inst(m, ISA_s_branch, &to, 1));
		b->n_succ = 0;
		mir_add_edge(b, body);
		mir_add_edge(b, x);
		mir_add_edge(x, out);
	}
	body->loop_header = true;
	return true;
}

void mir_place_blocks(struct mir_func *m, bool rotates)
{
	for (uint32_t k = 0; k < m->n_order; k++)
		m->order[k]->order = k;
	while (drop_jumps(m) || invert_over_jump(m) || drop_empty_block(m))
		;
	for (uint32_t k = 0; rotates && k < m->n_order; k++)
		rotate_loop(m, m->order[k]);
	while (drop_jumps(m) || invert_over_jump(m) || drop_empty_block(m))
		;
}
