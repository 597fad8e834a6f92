/*
 * compiler/opt/pass_unroll.c - unrolling of innermost counted loops.
 *
 * A counted loop leaves from its header, where a counter that the latch raises
 * by a constant is compared with a value from outside.  If the trips are known
 * and few, the loop goes altogether.  Otherwise, if all lanes make the same
 * trips (or nothing in the body talks to other lanes), a new loop in front of
 * it does `factor` trips at a time while that many are left; the old one does
 * the rest:
 *
 *	while (i < hi - (factor - 1) step) { body; body; ... }
 *	while (i < hi) { body }
 */
#include <stdlib.h>

#include "compiler/opt/pass.h"

enum { MAX_TRIPS = 32, MAX_FULL = 400, MAX_PART = 160 };

/* A counted loop. */
struct counted {
	struct ssa_block *head, *before, *latch, *body;
	uint32_t stay; /* edge of the header's branch into the body */
	struct ssa_inst *i, *init, *next, *bound;
	uint32_t param; /* number of i */
	int64_t step;
	enum ssa_pred pred; /* of (i, bound) while it goes on: SLT or ULT */
	uint32_t size;	    /* instructions */
	bool crosses;	    /* something talks to other lanes */
};

/* Edge of t that goes to b. */
static struct ssa_edge *edge_to(struct ssa_inst *t, const struct ssa_block *b)
{
	return &t->edge[t->edge[0].to == b ? 0 : 1];
}

static bool find_counter(struct counted *l)
{
	const struct ssa_inst *c = l->head->last->arg[0];

	if (c->op != SSA_icmp || (c->sub != SSA_SLT && c->sub != SSA_ULT) ||
	    c->block != l->head || l->stay != 0)
		return false;
	l->pred = c->sub;
	l->i = c->arg[0];
	l->bound = c->arg[1];
	if (l->i->op != SSA_param || l->i->block != l->head ||
	    ssa_loop_has(l->head, l->bound->block))
		return false;
	while (l->head->param[l->param] != l->i)
		l->param++;
	l->init = edge_to(l->before->last, l->head)->arg[l->param];
	l->next = edge_to(l->latch->last, l->head)->arg[l->param];
	if (l->next->op != SSA_add || l->next->arg[0] != l->i ||
	    l->next->arg[1]->op != SSA_const)
		return false;
	l->step = ssa_bits_to_s(l->i->type.kind, l->next->arg[1]->imm);
	return l->step > 0 && l->step < 1 << 16;
}

/* Innermost, and the header is left towards the exit. */
static bool find_loop(struct ssa_block *head, struct counted *l)
{
	struct ssa_inst *t = head->last;

	*l = (struct counted){ .head = head, .before = ssa_preheader(head) };
	if (!l->before || t->op != SSA_branch || t->merge ||
	    head->n_preds != 2)
		return false;
	l->latch = head->pred[head->pred[0] == l->before];
	l->stay = ssa_loop_has(head, t->edge[0].to) ? 0 : 1;
	l->body = t->edge[l->stay].to;
	if (l->latch == head || l->latch->last->op != SSA_jump)
		return false;
	for (struct ssa_block *b = head; b && ssa_loop_has(head, b);
	     b = b->next) {
		if (b != head && b->loop == b)
			return false;
		for (struct ssa_inst *i = b->first; i; i = i->next) {
			const uint16_t flags = ssa_op_info(i->op)->flags;

			l->size++;
			l->crosses |= (flags & SSA_OP_CROSSES) != 0;
		}
	}
	return find_counter(l);
}

/* Trips, or 0 if they are not known or not few. */
static uint32_t trips_of(const struct counted *l)
{
	if (l->init->op != SSA_const || l->bound->op != SSA_const)
		return 0;
	const enum ssa_kind kind = l->i->type.kind;
	uint64_t i = l->init->imm;
	uint32_t n = 0;

	while (ssa_eval_pred(l->pred, kind, i, l->bound->imm)) {
		if (++n > MAX_TRIPS)
			return 0;
		i = ssa_bits_cut(kind, i + (uint64_t)l->step);
	}
	return n;
}

/*
 * Copies the body behind block `at`: the header's instructions for the values
 * `v` of its parameters, then everything up to the latch.  Returns the copy of
 * the latch without its jump; *v becomes what it would have passed.
 */
static struct ssa_block *repeat_body(struct ssa_clone *c,
				     const struct counted *l,
				     struct ssa_block *at, struct ssa_inst **v)
{
	struct ssa_block *end = NULL;

	ssa_clone_reset(c);
	for (uint32_t k = 0; k < l->head->n_params; k++)
		ssa_clone_set(c, l->head->param[k], v[k]);
	ssa_clone_insts(c, l->head->first, l->head->last, at);
	for (struct ssa_block *b = l->head->next;
	     b && ssa_loop_has(l->head, b); b = b->next)
		ssa_clone_block(c, b);
	const struct ssa_edge *in = &l->head->last->edge[l->stay];
	struct ssa_inst *jump = ssa_jump_to(c->f, at, c->block[l->body->id],
					    in->n_args, in->arg);

	for (uint32_t k = 0; k < in->n_args; k++)
		jump->edge[0].arg[k] = ssa_cloned(c, in->arg[k]);
	for (struct ssa_block *b = l->head->next;
	     b && ssa_loop_has(l->head, b); b = b->next) {
		ssa_clone_insts(c, b->first, b == l->latch ? b->last : NULL,
				c->block[b->id]);
		if (b == l->latch)
			end = c->block[b->id];
	}
	const struct ssa_edge *back = &l->latch->last->edge[0];
	struct ssa_inst **out = xcalloc(back->n_args + 1, sizeof(*out));

	for (uint32_t k = 0; k < back->n_args; k++)
		out[k] = ssa_cloned(c, back->arg[k]);
	for (uint32_t k = 0; k < back->n_args; k++)
		v[k] = out[k];
	free(out);
	return end;
}

/* All trips one after the other, and the last look at the header. */
static void unroll_all(struct ssa_func *f, const struct counted *l, uint32_t n)
{
	const struct ssa_edge *in = &l->before->last->edge[0];
	struct ssa_inst **v = ssa_args_copy(f, in->n_args, in->arg);
	const struct ssa_edge *out = &l->head->last->edge[!l->stay];
	struct ssa_block *at = l->before;
	struct ssa_clone c;

	ssa_clone_init(&c, f);
	ssa_unlink(at->last);
	for (uint32_t k = 0; k < n; k++)
		at = repeat_body(&c, l, at, v);
	ssa_clone_reset(&c);
	for (uint32_t k = 0; k < l->head->n_params; k++)
		ssa_clone_set(&c, l->head->param[k], v[k]);
	ssa_clone_insts(&c, l->head->first, l->head->last, at);
	struct ssa_inst **arg = ssa_args_copy(f, out->n_args, out->arg);

	for (uint32_t k = 0; k < out->n_args; k++)
		arg[k] = ssa_cloned(&c, arg[k]);
	ssa_jump_to(f, at, out->to, out->n_args, arg);
	ssa_clone_fini(&c);
}

/* max(hi, least + c) - c, which does not wrap. */
static struct ssa_inst *earlier_bound(struct ssa_func *f,
				      const struct counted *l, int64_t c)
{
	const struct ssa_type t = l->i->type;
	const bool is_signed = l->pred == SSA_SLT;
	const uint64_t least = is_signed ?
		(uint64_t)1 << (ssa_kind_bits(t.kind) - 1) : 0;
	struct ssa_inst *at = l->before->last;
	struct ssa_inst *hi = ssa_emit2(
		f, at, is_signed ? SSA_max_s : SSA_max_u, l->bound,
		ssa_entry_const(f, t, least + (uint64_t)c));

	return ssa_emit2(f, at, SSA_sub, hi,
			 ssa_entry_const(f, t, (uint64_t)c));
}

/* A header like the old one's, with its own bound; its exit enters the old. */
static void unroll_part(struct ssa_func *f, const struct counted *l,
			uint32_t factor)
{
	struct ssa_inst *bound = earlier_bound(f, l, (factor - 1) * l->step);
	struct ssa_clone c;

	ssa_clone_init(&c, f);
	struct ssa_block *head = ssa_clone_block(&c, l->head);
	struct ssa_block *body = ssa_block_new(f), *exit = ssa_block_new(f);
	struct ssa_inst *const cmp[] = { head->param[l->param], bound };
	struct ssa_inst *go = ssa_inst_new(f, SSA_icmp, ssa_type(SSA_I1, 1), 2,
					   cmp);
	struct ssa_inst *t = ssa_inst_new(f, SSA_branch, ssa_type(SSA_VOID, 0),
					  1, &go);
	struct ssa_inst **v = ssa_args_copy(f, head->n_params, head->param);

	go->sub = (uint8_t)l->pred;
	go->line = t->line = l->head->last->line;
	ssa_append(head, go);
	ssa_append(head, t);
	ssa_edge_set(f, &t->edge[0], body, 0, NULL);
	ssa_edge_set(f, &t->edge[1], exit, head->n_params, head->param);
	for (uint32_t k = 0; k < l->head->n_params; k++)
		ssa_block_param(f, exit, l->head->param[k]->type);
	ssa_jump_to(f, exit, l->head, exit->n_params, exit->param);
	for (uint32_t k = 0; k < factor; k++)
		body = repeat_body(&c, l, body, v);
	ssa_jump_to(f, body, head, head->n_params, v);
	l->before->last->edge[0].to = head;
	ssa_clone_fini(&c);
}

/* So that the rest of an unrolled loop is not unrolled again. */
static bool is_rest(const struct counted *l)
{
	const struct ssa_inst *init = l->init;

	return init->op == SSA_param && init->block->n_preds == 1;
}

static bool unroll_loop(struct ssa_func *f, struct ssa_block *head,
			uint32_t factor)
{
	struct counted l;

	if (!find_loop(head, &l))
		return false;
	const uint32_t trips = trips_of(&l);

	if (trips && trips * l.size <= MAX_FULL) {
		unroll_all(f, &l, trips);
		return true;
	}
	if (trips || factor < 2 || l.size * factor > MAX_PART || is_rest(&l) ||
	    (l.crosses && !(head->last->flags & SSA_UNIFORM)))
		return false;
	unroll_part(f, &l, factor);
	return true;
}

static bool unroll_loops(struct ssa_func *f, uint32_t factor)
{
	struct ssa_block **head = xcalloc(f->n_blocks, sizeof(*head));
	uint32_t n = 0;
	bool any = false;

	ssa_uniform(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		if (b->loop == b)
			head[n++] = b;
	for (uint32_t k = 0; k < n; k++)
		if (unroll_loop(f, head[k], factor)) {
			any = true;
			ssa_analyse(f);
			ssa_uniform(f);
		}
	free(head);
	return any;
}

bool ssa_pass_unroll_full(struct ssa_func *f)
{
	return unroll_loops(f, 1);
}

bool ssa_pass_unroll(struct ssa_func *f)
{
	return unroll_loops(f, 4);
}
