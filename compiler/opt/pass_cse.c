/*
 * compiler/opt/pass_cse.c - common subexpression elimination.
 *
 * A value that was computed before on every path here is not computed again.
 * So are loads, as long as nothing may have written there, and what a store
 * wrote.
 *
 * What is known about memory is followed inside a block and into blocks that
 * have no other predecessor.  Barriers and fences end it.  Operations between
 * lanes are the same only within a block, where the same lanes are active.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/opt/pass.h"

enum { BUCKETS = 1024, MAX_KNOWN = 64 };

struct entry {
	struct entry *next;
	struct ssa_inst *i;
};

/* What memory holds: access `at` read or wrote `value` there. */
struct known {
	struct ssa_inst *at, *value;
};
struct memory {
	struct known known[MAX_KNOWN];
	uint32_t n;
};

struct cse {
	struct ssa_func *f;
	struct arena arena;
	struct entry *bucket[BUCKETS];
	struct memory **out; /* [n_blocks], by id; NULL: not done */
	bool any;
};

/* -------------------------------------------------------------- values -- */

/* Flags that make two operations different; the others are weakened. */
enum { WEAK = SSA_NUW | SSA_NSW | SSA_UNIFORM };

static bool is_mergeable(const struct ssa_inst *i)
{
	const uint16_t flags = ssa_op_info(i->op)->flags;

	if (i->op == SSA_load)
		return i->flags & SSA_INVARIANT && !(i->flags & SSA_VOLATILE);
	if (i->op == SSA_clock)
		return false;
	return flags & (SSA_OP_PURE | SSA_OP_CROSSES) &&
	       !(flags & (SSA_OP_READS | SSA_OP_WRITES));
}

static uint32_t hash_of(const struct ssa_inst *i)
{
	uint64_t h = (uint64_t)i->op * 31 + i->type.kind * 7 + i->imm +
		     i->sub + (uint64_t)(uint32_t)i->off * 13;

	for (uint32_t k = 0; k < i->n_args; k++) /* any order */
		h += (uint64_t)(i->arg[k]->id + 1) * 0x9e3779b97f4a7c15;
	return (uint32_t)((h * 0x9e3779b97f4a7c15) >> 32) % BUCKETS;
}

static bool same_args(const struct ssa_inst *a, const struct ssa_inst *b)
{
	if (a->n_args != b->n_args)
		return false;
	if (ssa_op_info(a->op)->flags & SSA_OP_COMMUTES &&
	    a->arg[0] == b->arg[1] && a->arg[1] == b->arg[0])
		return a->n_args == 2 || a->arg[2] == b->arg[2];
	return !a->n_args ||
	       !memcmp(a->arg, b->arg, a->n_args * sizeof(*a->arg));
}

static bool computes_same(const struct ssa_inst *a, const struct ssa_inst *b)
{
	if (a->op != b->op || a->sub != b->sub || a->imm != b->imm ||
	    a->off != b->off || !ssa_type_eq(a->type, b->type) ||
	    ((a->flags ^ b->flags) & ~WEAK) || !same_args(a, b))
		return false;
	if (ssa_op_info(a->op)->flags & SSA_OP_CROSSES)
		return a->block == b->block;
	return ssa_dominates(a->block, b->block);
}

static struct ssa_inst *find_equal(struct cse *c, struct ssa_inst *i)
{
	struct entry **at = &c->bucket[hash_of(i)];

	for (struct entry *e = *at; e; e = e->next)
		if (computes_same(e->i, i)) {
			e->i->flags &= i->flags | (uint16_t)~WEAK;
			return e->i;
		}
	struct entry *e = arena_alloc(&c->arena, sizeof(*e));

	*e = (struct entry){ *at, i };
	*at = e;
	return NULL;
}

/* -------------------------------------------------------------- memory -- */

static void record_known(struct memory *m, struct ssa_inst *at,
			 struct ssa_inst *value)
{
	if (m->n < MAX_KNOWN)
		m->known[m->n++] = (struct known){ at, value };
}

static void forget_clobbered(const struct ssa_func *f, struct memory *m,
			     const struct ssa_inst *i)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < m->n; k++)
		if (!ssa_may_clobber(f, i, m->known[k].at))
			m->known[n++] = m->known[k];
	m->n = n;
}

static struct ssa_inst *find_loaded(const struct memory *m,
				    const struct ssa_inst *i)
{
	for (uint32_t k = 0; k < m->n; k++)
		if (ssa_same_place(m->known[k].at, i) &&
		    ssa_type_eq(m->known[k].value->type, i->type))
			return m->known[k].value;
	return NULL;
}

/* The value of i if memory or an earlier instruction has it. */
static struct ssa_inst *visit_access(struct cse *c, struct memory *m,
				     struct ssa_inst *i)
{
	if (i->op == SSA_load && !(i->flags & SSA_VOLATILE)) {
		struct ssa_inst *v = find_loaded(m, i);

		if (!v)
			record_known(m, i, i);
		return v;
	}
	forget_clobbered(c->f, m, i);
	/* Under a mask the load gives 0 where nothing was stored. */
	if (i->op == SSA_store && !(i->flags & SSA_VOLATILE) && i->n_args == 3)
		record_known(m, i, i->arg[2]);
	return NULL;
}

static void visit_inst(struct cse *c, struct memory *m, struct ssa_inst *i)
{
	struct ssa_inst *v = NULL;

	for (uint32_t k = 0; k < i->n_args; k++)
		i->arg[k] = ssa_forwarded(i->arg[k]);
	if (is_mergeable(i))
		v = find_equal(c, i);
	else if (ssa_op_info(i->op)->flags & (SSA_OP_READS | SSA_OP_WRITES))
		v = visit_access(c, m, i);
	if (v) {
		ssa_forward(i, v);
		c->any = true;
	}
}

bool ssa_pass_cse(struct ssa_func *f)
{
	struct cse c = { .f = f };

	c.out = arena_alloc(&c.arena, f->n_blocks * sizeof(*c.out));
	ssa_forward_init(f);
	for (struct ssa_block *b = f->first; b; b = b->next) {
		struct memory *m = arena_alloc(&c.arena, sizeof(*m));

		if (b->n_preds == 1 && c.out[b->pred[0]->id])
			*m = *c.out[b->pred[0]->id];
		c.out[b->id] = m;
		for (struct ssa_inst *i = b->first; i; i = i->next)
			visit_inst(&c, m, i);
	}
	ssa_forward_all(f);
	arena_fini(&c.arena);
	return c.any;
}
