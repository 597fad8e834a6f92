/*
 * simplify_int - what the files of the pass share: helpers, and the rules by
 * the kind of instruction.  A rule names an equal value, or changes the
 * instruction in place and returns NULL.
 */
#ifndef T0_COMPILER_SIMPLIFY_INT_H
#define T0_COMPILER_SIMPLIFY_INT_H

#include "compiler/opt/pass.h"

struct simplify {
	struct ssa_func *f;
	bool changed;
};

static inline struct ssa_inst *bits_of(struct simplify *s, struct ssa_type t,
				uint64_t bits)
{
	return ssa_entry_const(s->f, t, bits);
}

static inline bool is_const(const struct ssa_inst *i, uint64_t *bits)
{
	if (i->op != SSA_const || i->type.n != 1)
		return false;
	*bits = i->imm;
	return true;
}

static inline bool is_value(const struct ssa_inst *i, uint64_t bits)
{
	return i->op == SSA_const && i->type.n == 1 &&
	       i->imm == ssa_bits_cut(i->type.kind, bits);
}

static inline bool is_real(const struct ssa_inst *i, double v)
{
	return i->op == SSA_const && i->type.n == 1 &&
	       ssa_kind_is_float(i->type.kind) &&
	       i->imm == ssa_f64_to_bits(i->type.kind, v);
}

/* Turns the instruction into another on at most two operands. */
static inline struct ssa_inst *become(struct simplify *s, struct ssa_inst *i,
			       enum ssa_op op, struct ssa_inst *a,
			       struct ssa_inst *b)
{
	i->op = (uint16_t)op;
	i->flags &= (uint16_t)~(SSA_NUW | SSA_NSW);
	i->arg[0] = a;
	i->n_args = 1;
	if (b) {
		i->arg[1] = b;
		i->n_args = 2;
	}
	s->changed = true;
	return NULL;
}

/* ------------------------------------------------- simplify_values.c ---- */

struct ssa_inst *ssa_simplify_float(struct simplify *s, struct ssa_inst *i);
struct ssa_inst *ssa_simplify_compare(struct simplify *s, struct ssa_inst *i);
/* The opposite of a comparison that is its operand. */
struct ssa_inst *ssa_simplify_not(struct simplify *s, struct ssa_inst *i);
struct ssa_inst *ssa_simplify_select(struct simplify *s, struct ssa_inst *i);
struct ssa_inst *ssa_simplify_convert(struct simplify *s, struct ssa_inst *i);
struct ssa_inst *ssa_simplify_vector(struct simplify *s, struct ssa_inst *i);

#endif
