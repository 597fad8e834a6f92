/*
 * compiler/opt/pass_licm.c - loop-invariant code motion.
 *
 * Pure operations cannot trap, so they may run although the loop would not.  A
 * load can: it moves only from where it certainly runs (the header, which runs
 * at least once), and if nothing in the loop may write there.
 */
#include "compiler/opt/pass.h"

static bool is_invariant(const struct ssa_block *head, const struct ssa_inst *i)
{
	for (uint32_t k = 0; k < i->n_args; k++)
		if (ssa_loop_has(head, i->arg[k]->block))
			return false;
	return true;
}

static bool loop_writes(const struct ssa_func *f, struct ssa_block *head,
			const struct ssa_inst *load)
{
	for (struct ssa_block *b = head; b && ssa_loop_has(head, b);
	     b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (ssa_may_clobber(f, i, load))
				return true;
	return false;
}

static bool may_move(const struct ssa_func *f, struct ssa_block *head,
		     const struct ssa_inst *i)
{
	if (!is_invariant(head, i))
		return false;
	if (i->op != SSA_load)
		return ssa_op_info(i->op)->flags & SSA_OP_PURE;
	return i->block == head && !(i->flags & SSA_VOLATILE) &&
	       (i->flags & SSA_INVARIANT || !loop_writes(f, head, i));
}

static bool hoist_invariants(const struct ssa_func *f, struct ssa_block *head)
{
	struct ssa_block *before = ssa_preheader(head);
	bool any = false;

	if (!before)
		return false;
	for (struct ssa_block *b = head; b && ssa_loop_has(head, b);
	     b = b->next)
		for (struct ssa_inst *i = b->first, *next; i; i = next) {
			next = i->next;
			if (!may_move(f, head, i))
				continue;
			ssa_unlink(i);
			ssa_insert_before(before->last, i);
			any = true;
		}
	return any;
}

bool ssa_pass_licm(struct ssa_func *f)
{
	bool any = false;

	/* Inner loops have later headers: from the inside out. */
	for (struct ssa_block *b = f->last; b; b = b->prev)
		if (b->loop == b)
			any |= hoist_invariants(f, b);
	return any;
}
