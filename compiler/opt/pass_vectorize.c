/*
 * compiler/opt/pass_vectorize.c - adjacent accesses of a block as one vector.
 *
 * Loads move up to the first of them, stores down to the last, past nothing
 * that may touch the same bytes and past no barrier.  Bases, offsets and masks
 * are the same values; only the constants differ (run `address` before).
 * A vector of up to 16 bytes is as aligned as its first element is known to be;
 * the memory takes global vectors at any multiple of 4 bytes, or of 2 where
 * they have 8 or more, LDS vectors only at a multiple of their size.
 */
#include "compiler/opt/pass.h"

enum { MAX_BYTES = 16, LOOK = 96, MAX_GROUP = 16 };

/* Accesses that follow each other in memory, by rising address. */
struct group {
	struct ssa_inst *at[MAX_GROUP];
	uint32_t n;
};

static struct ssa_type type_of(const struct ssa_inst *i)
{
	return i->op == SSA_store ? i->arg[2]->type : i->type;
}

static bool can_join(const struct ssa_inst *a, const struct ssa_inst *b)
{
	const uint32_t mask = a->op == SSA_store ? 3 : 2;

	return !b->tmp.ptr && a->op == b->op && a->arg[0] == b->arg[0] &&
	       a->arg[1] == b->arg[1] && a->n_args == b->n_args &&
	       type_of(a).kind == type_of(b).kind && type_of(b).n == 1 &&
	       !((a->flags ^ b->flags) & (SSA_STREAM | SSA_INVARIANT)) &&
	       !(b->flags & SSA_VOLATILE) &&
	       (a->n_args <= mask || a->arg[mask] == b->arg[mask]);
}

static uint32_t align_of(const struct ssa_inst *i)
{
	const struct ssa_inst *p = i->arg[0];
	uint32_t bits = ssa_zero_bits(i->arg[1]);

	/* LDS arrays lie at multiples of 16, which back ends keep. */
	if (p->op != SSA_lds)
		return i->align;
	if (i->off)
		bits = (uint32_t)__builtin_ctz((uint32_t)i->off) < bits ?
			       (uint32_t)__builtin_ctz((uint32_t)i->off) : bits;
	bits = bits > 4 ? 4 : bits;
	return bits > i->align ? bits : i->align;
}

/* Loads: does anything between write there?  Stores: touch it at all? */
static bool is_blocked(const struct ssa_func *f, const struct ssa_inst *i,
		       const struct group *g)
{
	const uint16_t flags = ssa_op_info(i->op)->flags;
	const bool load = g->at[0]->op == SSA_load;

	if (!(flags & (SSA_OP_READS | SSA_OP_WRITES)) || i->op == SSA_printf)
		return false;
	if (!ssa_is_access(i))
		return true;
	if (load && (i->op == SSA_load || g->at[0]->flags & SSA_INVARIANT))
		return false;
	for (uint32_t k = 0; k < g->n; k++)
		if (g->at[k] != i && !ssa_disjoint(f, g->at[k], i))
			return true;
	return false;
}

/*
 * All that can go together with `first`, in order of the block.  A store may
 * also not pass what lies between it and the last one, so anything that blocks
 * a member ends the search; so does what would block one found later.
 */
static void gather_group(const struct ssa_func *f, struct ssa_inst *first,
			 struct group *g)
{
	struct group between = { .n = 0 };
	int n = 0;

	*g = (struct group){ { first }, 1 };
	for (struct ssa_inst *i = first->next; i && n < LOOK;
	     i = i->next, n++) {
		if (g->n < MAX_GROUP && can_join(first, i)) {
			const struct group alone = { { i }, 1 };

			for (uint32_t k = 0; k < between.n; k++)
				if (first->op == SSA_load &&
				    is_blocked(f, between.at[k], &alone))
					return;
			g->at[g->n++] = i;
			continue;
		}
		if (is_blocked(f, i, g))
			return;
		if (ssa_op_info(i->op)->flags & SSA_OP_WRITES) {
			if (between.n == MAX_GROUP)
				return;
			between.at[between.n++] = i;
		}
	}
}

static void sort_group(struct group *g)
{
	for (uint32_t k = 1; k < g->n; k++)
		for (uint32_t j = k;
		     j && g->at[j]->off < g->at[j - 1]->off; j--) {
			struct ssa_inst *x = g->at[j];

			g->at[j] = g->at[j - 1];
			g->at[j - 1] = x;
		}
}

/* Whole words, and what the memory takes. */
static bool is_legal_access(const struct ssa_inst *i, uint32_t bytes,
			    uint32_t align)
{
	if (bytes % 4)
		return false;
	if (i->arg[0]->type.kind == SSA_LDS)
		return !(bytes & (bytes - 1)) && align >= 4 && align >= bytes;
	return align >= 4 || (align >= 2 && bytes >= 8);
}

/* How many from at[k] on make one access. */
static uint32_t run_length(const struct group *g, uint32_t k)
{
	const struct ssa_inst *a = g->at[k];
	const uint32_t size = ssa_type_bytes(type_of(a));
	const uint32_t align = 1u << align_of(a);
	uint32_t n = 1;

	while (k + n < g->n && (n + 1) * size <= MAX_BYTES &&
	       g->at[k + n]->off == a->off + (int32_t)(n * size))
		n++;
	while (n > 1 && !is_legal_access(a, n * size, align))
		n--;
	return n;
}

static void join_loads(struct ssa_func *f, struct ssa_inst *first,
		       struct ssa_inst *const *at, uint32_t n)
{
	struct ssa_inst *v = ssa_inst_new(f, SSA_load,
					  ssa_type(at[0]->type.kind, n),
					  at[0]->n_args, at[0]->arg);

	v->flags = at[0]->flags;
	v->line = at[0]->line;
	v->off = at[0]->off;
	v->align = (uint8_t)align_of(at[0]);
	ssa_insert_before(first, v);
	for (uint32_t k = 0; k < n; k++) {
		struct ssa_inst *x = ssa_inst_new(f, SSA_extract, at[k]->type,
						  1, &v);

		x->imm = k;
		x->line = at[k]->line;
		ssa_insert_before(first, x);
		ssa_forward(at[k], x);
	}
}

static void join_stores(struct ssa_func *f, struct ssa_inst *last,
			struct ssa_inst *const *at, uint32_t n)
{
	struct ssa_inst *e[MAX_GROUP], *arg[4];

	for (uint32_t k = 0; k < n; k++)
		e[k] = at[k]->arg[2];
	struct ssa_inst *v = ssa_inst_new(f, SSA_pack,
					  ssa_type(e[0]->type.kind, n), n, e);

	v->line = at[0]->line;
	ssa_insert_before(last, v);
	for (uint32_t k = 0; k < at[0]->n_args; k++)
		arg[k] = k == 2 ? v : at[0]->arg[k];
	struct ssa_inst *s = ssa_inst_new(f, SSA_store, at[0]->type,
					  at[0]->n_args, arg);

	s->flags = at[0]->flags;
	s->line = at[0]->line;
	s->off = at[0]->off;
	s->align = (uint8_t)align_of(at[0]);
	ssa_insert_before(last, s);
	for (uint32_t k = 0; k < n; k++)
		ssa_forward(at[k], v); /* to be unlinked; it has no uses */
}

static bool has_overlap(const struct group *g)
{
	const int32_t size = (int32_t)ssa_type_bytes(type_of(g->at[0]));

	for (uint32_t k = 1; k < g->n; k++)
		if (g->at[k]->off < g->at[k - 1]->off + size)
			return true;
	return false;
}

static bool join_group(struct ssa_func *f, struct ssa_inst *first)
{
	struct group g;
	bool any = false;

	gather_group(f, first, &g);
	if (g.n < 2)
		return false;
	struct ssa_inst *last = g.at[g.n - 1];

	sort_group(&g);
	if (has_overlap(&g))
		return false;
	for (uint32_t k = 0, n; k < g.n; k += n) {
		n = run_length(&g, k);
		if (n < 2)
			continue;
		if (first->op == SSA_load)
			join_loads(f, first, g.at + k, n);
		else
			join_stores(f, last, g.at + k, n);
		any = true;
	}
	return any;
}

bool ssa_pass_vectorize(struct ssa_func *f)
{
	ssa_forward_init(f);
	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if ((i->op == SSA_load || i->op == SSA_store) &&
			    !i->tmp.ptr && type_of(i).n == 1 &&
			    !(i->flags & SSA_VOLATILE))
				join_group(f, i);
	return ssa_forward_all(f);
}
