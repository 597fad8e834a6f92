/*
 * compiler/backend/long_branch.c - branches to where no branch reaches.
 *
 * One goes 32,767 dwords far.  Who wants to go farther goes to a hop, another
 * branch to the same place, which lies on the way; the instructions before it
 * jump over it.  That takes neither registers nor SCC.
 *
 * A hop is put before an instruction of program control, a wait mostly: no hint
 * about delays counts instructions across it, and no clause goes on.
 */
#include "compiler/backend/backend_int.h"

enum {
	FAR_BYTES = 4 * INT16_MAX,
	STEP_BYTES = FAR_BYTES - 16384, /* room for hops that come between */
};

static int64_t distance(uint32_t from, uint32_t to)
{
	return from < to ? to - from : from - to;
}

static struct mir_opnd *target_of(struct mir_inst *i)
{
	for (int k = 0; k < i->n_opnd; k++)
		if (i->o[k].kind == MIR_LABEL)
			return &i->o[k];
	return NULL;
}

/* Is it on the way, and not too far for one step? */
static bool is_on_way(uint32_t from, uint32_t at, uint32_t to)
{
	return (from < to ? at > from && at < to : at < from && at > to) &&
	       distance(from, at) <= STEP_BYTES;
}

static bool can_follow_hop(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_SPECIAL && !mir_is_branch(i) &&
	       i->op != ISA_s_delay_alu && i->op != ISA_s_clause &&
	       !(i->flags & MIR_GLUED);
}

/* The place next to `to`, or NULL; *in is its block. */
static struct mir_inst *find_place(struct mir_func *m, uint32_t from,
				   uint32_t to, struct mir_block **in)
{
	struct mir_inst *best = NULL;

	for (uint32_t b = 0; b < m->n_order; b++)
		for (struct mir_inst *i = m->order[b]->first; i; i = i->next) {
			if (!can_follow_hop(i) || !is_on_way(from, i->addr, to))
				continue;
			if (best &&
			    distance(i->addr, to) >= distance(best->addr, to))
				continue;
			best = i;
			*in = m->order[b];
		}
	return best;
}

static struct mir_block *new_block(struct mir_func *m, struct mir_block *after,
				   uint32_t addr)
{
	struct mir_block *b = mir_block(m);
	uint32_t at = 0;

	b->depth = after->depth;
	b->addr = addr;
	mir_append_block(m, b);
	while (m->order[at++] != after)
		;
	memmove(&m->order[at + 1], &m->order[at],
		(m->n_order - 1 - at) * sizeof(*m->order));
	m->order[at] = b;
	return b;
}

static void add_jump(struct mir_func *m, struct mir_block *b,
		     struct mir_block *to, uint32_t addr)
{
	const struct mir_opnd o = mir_label(to);
	struct mir_inst *i = mir_inst(m, ISA_s_branch, &o, 1);

	i->addr = addr;
	mir_append(b, i);
}

/* Before `at`, which with all behind it becomes a block of its own. */
static struct mir_block *add_hop(struct mir_func *m, struct mir_block *b,
				 struct mir_inst *at, struct mir_block *to)
{
	struct mir_block *hop = new_block(m, b, at->addr);
	struct mir_block *rest = new_block(m, hop, at->addr);
	const struct mir_opnd none[2] = { mir_hw(ISA_R_NULL, 1),
					  mir_simm16(0) };

	rest->first = at;
	rest->last = b->last;
	b->last = at->prev;
	if (at->prev)
		at->prev->next = NULL;
	else
		b->first = NULL;
	at->prev = NULL;
	for (struct mir_inst *i = at; i; i = i->next)
		i->block = rest;
	add_jump(m, b, rest, at->addr);
	add_jump(m, hop, to, at->addr);
	/* The new branch may lie between memory of both kinds. */
	if (isa_gen_info(m->gen)->hazards & ISA_HZ_LDS_BRANCH)
		mir_insert(m, at, ISA_s_waitcnt_vscnt, none, 2)->addr =
			at->addr;
	return hop;
}

/* One that is there already, or a new one; NULL: there is no place. */
static struct mir_block *find_hop(struct mir_func *m, const struct mir_inst *i,
				  struct mir_block *to)
{
	struct mir_block *in = NULL;
	struct mir_inst *at;

	for (uint32_t b = 0; b < m->n_order; b++) {
		struct mir_block *h = m->order[b];

		if (h->first && h->first != i && h->first == h->last &&
		    h->first->op == ISA_s_branch &&
		    h->first->o[0].label == to &&
		    is_on_way(i->addr, h->addr, to->addr))
			return h;
	}
	at = find_place(m, i->addr, to->addr, &in);
	return at ? add_hop(m, in, at, to) : NULL;
}

bool mir_insert_hops(struct mir_func *m)
{
	bool any = false;

	for (uint32_t b = 0; b < m->n_order; b++)
		for (struct mir_inst *i = m->order[b]->first, *next; i;
		     i = next) {
			struct mir_opnd *to = target_of(i);
			struct mir_block *hop;

			next = i->next;
			if (!to ||
			    distance(i->addr + 4, to->label->addr) <= FAR_BYTES)
				continue;
			hop = find_hop(m, i, to->label);
			if (hop)
				to->label = hop;
			any |= hop != NULL;
		}
	return any;
}
