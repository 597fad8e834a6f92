/*
 * compiler/ssa/alias.c - which accesses of memory may overlap.
 */
#include "compiler/ssa/ssa.h"

bool ssa_is_access(const struct ssa_inst *i)
{
	return i->op >= SSA_load && i->op <= SSA_cmpxchg;
}

struct ssa_place ssa_place(const struct ssa_inst *i)
{
	const uint32_t fixed = i->op == SSA_load    ? 2 :
			       i->op == SSA_cmpxchg ? 4 :
						      3;
	struct ssa_place p = {
		.root = i->arg[0],
		.base = i->arg[0],
		.off = i->arg[1],
		.add = i->off,
		.size = ssa_type_bytes(i->op == SSA_load ? i->type :
							   i->arg[2]->type),
		.mask = i->n_args > fixed ? i->arg[fixed] : NULL,
	};

	while (p.root->op == SSA_ptradd)
		p.root = p.root->arg[0];
	if (p.off->op == SSA_const) {
		p.add += (int64_t)p.off->imm;
		p.off = NULL;
	}
	return p;
}

static bool is_private(const struct ssa_func *f, const struct ssa_inst *root)
{
	return root->op == SSA_arg && f->arg[root->imm].noalias;
}

bool ssa_disjoint(const struct ssa_func *f, const struct ssa_inst *a,
		  const struct ssa_inst *b)
{
	const struct ssa_place x = ssa_place(a), y = ssa_place(b);

	if (x.base->type.kind != y.base->type.kind)
		return true;
	if (x.root != y.root) {
		if (x.root->op == SSA_lds && y.root->op == SSA_lds)
			return x.root->imm != y.root->imm;
		if (is_private(f, x.root) && is_private(f, y.root))
			return x.root->imm != y.root->imm;
	}
	return x.base == y.base && x.off == y.off &&
	       (x.add + x.size <= y.add || y.add + y.size <= x.add);
}

bool ssa_same_place(const struct ssa_inst *a, const struct ssa_inst *b)
{
	const struct ssa_place x = ssa_place(a), y = ssa_place(b);

	return x.base == y.base && x.off == y.off && x.add == y.add &&
	       x.size == y.size && x.mask == y.mask;
}

bool ssa_may_clobber(const struct ssa_func *f, const struct ssa_inst *i,
		     const struct ssa_inst *l)
{
	if (i->op == SSA_barrier || i->op == SSA_fence ||
	    i->op == SSA_group_reduce)
		return true;
	return ssa_is_access(i) && i->op != SSA_load && !ssa_disjoint(f, i, l);
}
