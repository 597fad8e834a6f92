/*
 * compiler/opt/pass_dse.c - dead store elimination.
 *
 * A store is deleted if a later one of its block overwrites it before anything
 * can have read it.
 */
#include "compiler/opt/pass.h"

enum { LOOK_AHEAD = 64 };

/* Does `later` write all that `store` wrote? */
static bool store_covers(const struct ssa_inst *later,
			 const struct ssa_inst *store)
{
	const struct ssa_place a = ssa_place(later), b = ssa_place(store);

	return later->op == SSA_store && a.base == b.base && a.off == b.off &&
	       (!a.mask || a.mask == b.mask) && a.add <= b.add &&
	       a.add + a.size >= b.add + b.size;
}

static bool is_dead(const struct ssa_func *f, const struct ssa_inst *store)
{
	const struct ssa_inst *i = store->next;

	for (int n = 0; i && n < LOOK_AHEAD; n++, i = i->next) {
		const uint16_t flags = ssa_op_info(i->op)->flags;

		if (!(flags & (SSA_OP_READS | SSA_OP_WRITES)) ||
		    i->op == SSA_printf)
			continue;
		if (!ssa_is_access(i))
			return false; /* a barrier: others may read now */
		if (store_covers(i, store))
			return true;
		if (i->op != SSA_store && !ssa_disjoint(f, i, store))
			return false;
	}
	return false;
}

bool ssa_pass_dse(struct ssa_func *f)
{
	bool any = false;

	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first, *next; i; i = next) {
			next = i->next;
			if (i->op != SSA_store || i->flags & SSA_VOLATILE ||
			    !is_dead(f, i))
				continue;
			ssa_unlink(i);
			any = true;
		}
	return any;
}
