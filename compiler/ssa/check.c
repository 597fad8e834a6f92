/*
 * compiler/ssa/check.c - the verifier: everything that compiler/ssa/ssa.h
 * promises.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/ssa/ssa_int.h"

struct check {
	const struct ssa_func *f;
	struct err *e;
	const struct ssa_inst **def; /* [f->n_insts], by id */
	uint8_t *seen;		     /* [f->n_blocks], by id */
};

/* "saxpy.c:12: %7 = fadd in b2: " and the message. */
static bool fail_at(const struct check *c, const struct ssa_inst *i,
		    const char *fmt, ...) T0_PRINTF(3, 4);
static bool fail_at(const struct check *c, const struct ssa_inst *i,
		    const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(c->e, ERR_INPUT, "%s:%u: %%%u = %s in b%u: %s",
		       c->f->file ? c->f->file : c->f->name, i->line, i->id,
		       i->op < SSA_OPS ? ssa_op_info(i->op)->name : "?",
		       i->block ? i->block->id : 0, text);
}

static bool fail_block(const struct check *c, const struct ssa_block *b,
		       const char *what)
{
	return err_set(c->e, ERR_INPUT, "%s: b%u: %s", c->f->name, b->id, what);
}

/* ---------------------------------------------------------- definitions -- */

/* Is `v` defined before the end of (with `at`: before at in) block b? */
static bool defined_before(const struct ssa_inst *v, const struct ssa_block *b,
			   const struct ssa_inst *at)
{
	if (v->block != b)
		return ssa_dominates(v->block, b);
	/* tmp.num: position in the block, 0 for its parameters. */
	return !at || v->tmp.num < at->tmp.num;
}

static bool check_use(const struct check *c, const struct ssa_inst *user,
		      const struct ssa_inst *v, const struct ssa_inst *at)
{
	if (!v)
		return fail_at(c, user, "an operand is missing");
	if (v->id >= c->f->n_insts || c->def[v->id] != v)
		return fail_at(c, user, "%%%u is not in the function", v->id);
	if (v->type.kind == SSA_VOID)
		return fail_at(c, user, "%%%u has no value", v->id);
	if (!defined_before(v, user->block, at))
		return fail_at(c, user, "%%%u is not defined on every way here",
			       v->id);
	if (v->block->loop && !ssa_loop_has(v->block->loop, user->block))
		return fail_at(c, user,
			       "%%%u leaves its loop without a parameter",
			       v->id);
	return true;
}

static bool check_edge(const struct check *c, const struct ssa_inst *t,
		       const struct ssa_edge *e)
{
	if (e->n_args != e->to->n_params)
		return fail_at(c, t, "%u arguments for b%u, wanted %u",
			       e->n_args, e->to->id, e->to->n_params);
	for (uint32_t k = 0; k < e->n_args; k++) {
		if (!check_use(c, t, e->arg[k], NULL))
			return false;
		if (!ssa_type_eq(e->arg[k]->type, e->to->param[k]->type))
			return fail_at(c, t,
				       "argument %u for b%u has a wrong type",
				       k, e->to->id);
	}
	return true;
}

static bool check_inst(const struct check *c, const struct ssa_inst *i)
{
	for (uint32_t k = 0; k < i->n_args; k++)
		if (!check_use(c, i, i->arg[k], i))
			return false;
	const char *why = ssa_check_types(c->f, i);

	if (why)
		return fail_at(c, i, "%s", why);
	for (uint32_t k = 0; k < ssa_n_edges(i); k++)
		if (!check_edge(c, i, &i->edge[k]))
			return false;
	return true;
}

static bool add_def(const struct check *c, struct ssa_inst *i, uint64_t place)
{
	if (i->op >= SSA_OPS)
		return fail_at(c, i, "no such operation");
	if (i->id >= c->f->n_insts || c->def[i->id])
		return fail_at(c, i, "the number is not unique");
	c->def[i->id] = i;
	i->tmp.num = place;
	return true;
}

static bool define_block(const struct check *c, struct ssa_block *b)
{
	uint64_t place = 0;

	if (b->id >= c->f->n_blocks || c->seen[b->id])
		return fail_block(c, b, "the number is not unique");
	c->seen[b->id] = 1;
	for (uint32_t k = 0; k < b->n_params; k++) {
		if (b->param[k]->op != SSA_param || b->param[k]->block != b ||
		    !b->param[k]->type.n || !ssa_type_valid(b->param[k]->type))
			return fail_at(c, b->param[k], "is no parameter here");
		if (!add_def(c, b->param[k], 0))
			return false;
	}
	for (struct ssa_inst *i = b->first; i; i = i->next) {
		if (i->block != b || (i->next && i->next->prev != i))
			return fail_at(c, i, "is linked wrongly");
		if (!add_def(c, i, ++place))
			return false;
		if (i->op == SSA_param)
			return fail_at(c, i, "is no instruction");
		if (!(ssa_op_info(i->op)->flags & SSA_OP_ENDS) !=
		    (i != b->last))
			return fail_at(c, i, "ends a block, or does not");
	}
	return b->last ? true : fail_block(c, b, "is empty");
}

/* ----------------------------------------------------------- structure -- */

static bool check_region(struct check *c, struct ssa_block *b,
			 const struct ssa_block *stop, struct ssa_block *loop);

/* Walks both sides of a branch up to its merge. */
static bool walk_sides(struct check *c, const struct ssa_inst *t,
		       struct ssa_block *loop)
{
	struct ssa_block *m = t->merge;

	if (t->edge[0].to == t->edge[1].to)
		return fail_at(c, t, "both edges go to b%u", m->id);
	if (m->n_preds != 2 || m->idom != t->block || m->loop != t->block->loop)
		return fail_at(c, t, "b%u is not where just its sides meet",
			       m->id);
	for (int k = 0; k < 2; k++)
		if (!check_region(c, t->edge[k].to, m, loop))
			return false;
	return true;
}

/* A branch without a merge, in the loop of `loop`: *next is where it stays. */
static bool walk_leaving(struct check *c, const struct ssa_inst *t,
			 struct ssa_block *loop, struct ssa_block **exit,
			 struct ssa_block **next)
{
	const struct ssa_edge *stay = &t->edge[0], *leave = &t->edge[1];

	if (!loop)
		return fail_at(c, t, "has no merge and is in no loop");
	if (ssa_loop_has(loop, leave->to)) {
		stay = &t->edge[1];
		leave = &t->edge[0];
	}
	if (!ssa_loop_has(loop, stay->to) || ssa_loop_has(loop, leave->to))
		return fail_at(c, t, "does not leave the loop of b%u",
			       loop->id);
	if (t->block != loop && stay->to != loop)
		return fail_at(c, t, "leaves a loop from its middle");
	if (*exit)
		return fail_at(c, t, "the loop of b%u has a second exit",
			       loop->id);
	if (leave->to->n_preds != 1)
		return fail_at(c, t, "the exit b%u is reached otherwise, too",
			       leave->to->id);
	*exit = leave->to;
	*next = stay->to;
	return true;
}

static bool mark_visited(struct check *c, const struct ssa_block *b)
{
	if (c->seen[b->id])
		return fail_block(c, b, "is reached against the structure");
	c->seen[b->id] = 1;
	return true;
}

/* One block or branch of a loop: *next is what follows it there. */
static bool walk_step(struct check *c, const struct ssa_block *b,
		      struct ssa_block *head, struct ssa_block **exit,
		      struct ssa_block **next)
{
	const struct ssa_inst *t = b->last;

	if (!mark_visited(c, b))
		return false;
	if (t->op == SSA_ret)
		return fail_at(c, t, "in a loop");
	if (t->op == SSA_branch && !t->merge)
		return walk_leaving(c, t, head, exit, next);
	if (t->op == SSA_branch && !walk_sides(c, t, head))
		return false;
	*next = t->op == SSA_branch ? t->merge : t->edge[0].to;
	return ssa_loop_has(head, *next) ?
		       true :
		       fail_at(c, t, "leaves a loop by a jump");
}

/* From header `head` around to it again; *exit is the block behind. */
static bool walk_loop(struct check *c, struct ssa_block *head,
		      struct ssa_block **exit)
{
	struct ssa_block *b = head;

	*exit = NULL;
	if (head->n_preds != 2)
		return fail_block(c, head, "a loop has not one entry and "
					   "one back edge");
	do {
		struct ssa_block *next = NULL;

		if (b != head && b->loop == b) {
			if (!walk_loop(c, b, &next))
				return false;
		} else if (!walk_step(c, b, head, exit, &next)) {
			return false;
		}
		b = next;
	} while (b != head);
	return *exit ? true : fail_block(c, head, "the loop has no exit");
}

/* From b to `stop`, or to where nothing follows if NULL. */
static bool check_region(struct check *c, struct ssa_block *b,
			 const struct ssa_block *stop, struct ssa_block *loop)
{
	while (b != stop) {
		if (b == loop)
			return fail_block(c, b, "a branch's side closes the "
						"loop");
		if (b->loop == b) {
			if (!walk_loop(c, b, &b))
				return false;
			continue;
		}
		if (!mark_visited(c, b))
			return false;
		const struct ssa_inst *t = b->last;

		if (t->op == SSA_ret)
			return stop ? fail_at(c, t, "before the merge b%u",
					      stop->id) :
				      true;
		if (t->op == SSA_branch && !t->merge)
			return fail_at(c, t, "has no merge");
		if (t->op == SSA_branch && !walk_sides(c, t, loop))
			return false;
		b = t->op == SSA_branch ? t->merge : t->edge[0].to;
	}
	return true;
}

static bool check_structure(struct check *c)
{
	if (c->f->first->n_preds || c->f->first->n_params)
		return fail_block(c, c->f->first, "the entry has a predecessor "
						  "or parameters");
	memset(c->seen, 0, c->f->n_blocks);
	if (!check_region(c, c->f->first, NULL, NULL))
		return false;
	for (struct ssa_block *b = c->f->first; b; b = b->next)
		if (!c->seen[b->id])
			return fail_block(c, b, "is outside of the structure");
	return true;
}

static bool check_func(struct check *c, struct ssa_func *f)
{
	if (!f->first)
		return err_set(c->e, ERR_INPUT, "%s: no block", f->name);
	if (f->wave != 32 && f->wave != 64)
		return err_set(c->e, ERR_INPUT, "%s: wave of %u, wanted 32 or "
						"64", f->name, f->wave);
	for (int k = 0; k < 3; k++)
		if (!f->group[k] || f->group[k] > 1024)
			return err_set(c->e, ERR_INPUT,
				       "%s: group of %u, wanted 1 to 1024",
				       f->name, f->group[k]);
	for (struct ssa_block *b = f->first; b; b = b->next)
		if (!define_block(c, b))
			return false;
	/* Dead blocks go, and with them what they define. */
	ssa_analyse(f);
	memset(c->def, 0, (f->n_insts + 1) * sizeof(*c->def));
	memset(c->seen, 0, f->n_blocks + 1);
	for (struct ssa_block *b = f->first; b; b = b->next)
		if (!define_block(c, b))
			return false;
	if (!check_structure(c))
		return false;
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (!check_inst(c, i))
				return false;
	return true;
}

bool ssa_check(struct ssa_func *f, struct err *e)
{
	struct check c = {
		.f = f,
		.e = e,
		.def = xcalloc(f->n_insts + 1, sizeof(*c.def)),
		.seen = xcalloc(f->n_blocks + 1, 1),
	};
	const bool fine = check_func(&c, f);

	free(c.def);
	free(c.seen);
	return fine;
}
