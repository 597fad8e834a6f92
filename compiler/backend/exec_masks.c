/*
 * compiler/backend/exec_masks.c - masked accesses side by side.
 *
 * Each masked access narrows EXEC and restores it.  Between two neighbours the
 * restore and the save are redundant, since the saved mask still holds:
 *
 *	s_mov_b32 exec, A
 *	s_and_saveexec_b32 A, m		becomes		s_and_b32 exec, A, m
 *
 * and if both masks are the same, nothing remains.
 */
#include "compiler/backend/backend_int.h"

static bool is_exec(const struct mir_opnd *o)
{
	return o->kind == MIR_HW && o->reg == ISA_R_EXEC_LO;
}

static bool same_reg(const struct mir_func *m, const struct mir_opnd *a,
		     const struct mir_opnd *b)
{
	return mir_is_s(m, a) && mir_is_s(m, b) && a->n == b->n &&
	       mir_phys(m, a) == mir_phys(m, b);
}

static bool restores_exec(const struct mir_inst *i)
{
	return (i->op == ISA_s_mov_b32 || i->op == ISA_s_mov_b64) &&
	       i->flags & MIR_GLUED && is_exec(&i->o[0]);
}

static bool saves_exec(const struct mir_inst *i)
{
	return (i->op == ISA_s_and_saveexec_b32 ||
		i->op == ISA_s_and_saveexec_b64) &&
	       !(i->flags & (MIR_TERM | MIR_GLUED));
}

/* What narrowed EXEC before `restore`; NULL if something else happened. */
static const struct mir_inst *narrowed_by(const struct mir_inst *restore)
{
	const struct mir_inst *i = restore->prev;

	while (i && mir_is_memory(i) && i->flags & MIR_GLUED)
		i = i->prev;
	return i && mir_writes_exec(i) ? i : NULL;
}

/* The mask operand of a narrowing instruction, NULL for others. */
static const struct mir_opnd *mask_of(const struct mir_inst *i)
{
	if (!i)
		return NULL;
	if (i->op == ISA_s_and_saveexec_b32 || i->op == ISA_s_and_saveexec_b64)
		return &i->o[1];
	if ((i->op == ISA_s_and_b32 || i->op == ISA_s_and_b64) &&
	    is_exec(&i->o[0]))
		return &i->o[2];
	return NULL;
}

static void merge_masks(struct mir_func *m, struct mir_inst *restore,
			struct mir_inst *save)
{
	const struct mir_opnd *was = mask_of(narrowed_by(restore));
	struct mir_opnd a = restore->o[1], mask = save->o[1];

	if (was && same_reg(m, was, &mask) && !same_reg(m, &a, &mask)) {
		mir_unlink(save);
		mir_unlink(restore);
		return;
	}
	save->op = m->wave == 64 ? ISA_s_and_b64 : ISA_s_and_b32;
	save->o[0] = restore->o[0];
	save->o[1] = a;
	save->o[2] = mask;
	save->n_opnd = 3;
	mir_unlink(restore);
}

void mir_merge_exec_masks(struct mir_func *m)
{
	for (uint32_t b = 0; b < m->n_order; b++) {
		struct mir_inst *next;

		for (struct mir_inst *i = m->order[b]->first; i; i = next) {
			next = i->next;
			if (!restores_exec(i) || !next || !saves_exec(next) ||
			    !same_reg(m, &i->o[1], &next->o[0]) ||
			    same_reg(m, &next->o[0], &next->o[1]))
				continue;
			next = next->next;
			merge_masks(m, i, i->next);
		}
	}
}
