/*
 * compiler/backend/schedule.c - list scheduling under register pressure.
 */
#include "compiler/backend/backend_int.h"

#include <stdlib.h>
#include <string.h>

enum { PIPES = 4, PIPE_V = 0, PIPE_T, PIPE_M, PIPE_S };

struct scheduler {
	struct mir_func *m;
	struct sched_dag g;
	uint32_t limit;	    /* dwords of vector registers to stay below */
	uint32_t *left;	    /* [n_vregs] uses still to come in the block */
	bool *alive, *after; /* [n_vregs] now; live out of the block */
	int32_t now;	    /* dwords alive */
	uint32_t cycle, free_at[PIPES];
	uint32_t *ready, n_ready; /* nodes whose predecessors are done */
	struct mir_inst *last;	  /* scheduled */
};

/* ------------------------------------------------------------ pressure ---- */

static bool is_v(const struct scheduler *s, const struct mir_opnd *o)
{
	return mir_is_v(s->m, o);
}

/* Each operand register once. */
static bool is_repeated(const struct mir_inst *i, int k)
{
	for (int j = 0; j < k; j++)
		if (i->o[j].kind == MIR_VREG && i->o[j].reg == i->o[k].reg)
			return true;
	return false;
}

/* What scheduling a node adds to the registers alive. */
static int32_t pressure_change(const struct scheduler *s,
			       const struct sched_node *n)
{
	int32_t d = 0;

	for (struct mir_inst *i = n->first;; i = i->next) {
		for (int k = 0; k < i->n_opnd; k++) {
			uint32_t v = i->o[k].reg;

			if (!is_v(s, &i->o[k]) || is_repeated(i, k))
				continue;
			if (k < i->n_def && !s->alive[v])
				d += s->m->vreg[v].n;
			else if (k >= i->n_def && s->left[v] == 1 &&
				 s->alive[v] && !s->after[v])
				d -= s->m->vreg[v].n;
		}
		if (i == n->last)
			return d;
	}
}

static void set_alive(struct scheduler *s, uint32_t v, bool on)
{
	if (s->alive[v] == on)
		return;
	s->alive[v] = on;
	if (s->m->vreg[v].file == MIR_V)
		s->now += on ? s->m->vreg[v].n : -(int32_t)s->m->vreg[v].n;
}

static void track_pressure(struct scheduler *s, const struct mir_inst *i)
{
	for (int k = i->n_def; k < i->n_opnd; k++) {
		uint32_t v = i->o[k].reg;

		if (i->o[k].kind == MIR_VREG && !is_repeated(i, k) &&
		    !--s->left[v] && !s->after[v])
			set_alive(s, v, false);
	}
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG &&
		    (s->left[i->o[k].reg] || s->after[i->o[k].reg]))
			set_alive(s, i->o[k].reg, true);
}

/* State at the start of a block. */
static void begin_block(struct scheduler *s, const struct mir_block *b)
{
	s->now = 0;
	for (uint32_t v = 1; v < s->m->n_vregs; v++) {
		s->left[v] = 0;
		s->alive[v] = false;
		s->after[v] = live_has_register(s->m, b->live_out, v);
		set_alive(s, v, live_has_register(s->m, b->live_in, v));
	}
	for (const struct mir_inst *i = b->first; i; i = i->next)
		for (int k = i->n_def; k < i->n_opnd; k++)
			if (i->o[k].kind == MIR_VREG && !is_repeated(i, k))
				s->left[i->o[k].reg]++;
}

/* The most registers alive if the block stays as it is. */
static int32_t max_pressure(struct scheduler *s, const struct mir_block *b)
{
	int32_t most;

	begin_block(s, b);
	most = s->now;
	for (const struct mir_inst *i = b->first; i; i = i->next) {
		track_pressure(s, i);
		most = s->now > most ? s->now : most;
	}
	return most;
}

/* -------------------------------------------------------------- choice ---- */

static int pipe_of(const struct scheduler *s, const struct mir_inst *i)
{
	if (i->op == MIR_COPY)
		return is_v(s, &i->o[0]) ? PIPE_V : PIPE_S;
	if (mir_pipe(i) == ISA_PIPE_TRANS)
		return PIPE_T;
	if (mir_is_valu(i))
		return PIPE_V;
	return mir_is_memory(i) ? PIPE_M : PIPE_S;
}

static uint32_t start_of(const struct scheduler *s, const struct sched_node *n)
{
	uint32_t f = s->free_at[pipe_of(s, n->first)];

	return n->ready > f ? n->ready : f;
}

/* Loads of one kind side by side make clauses. */
static bool continues_clause(const struct scheduler *s,
			     const struct sched_node *n)
{
	if (!s->last)
		return false;
	if (mir_is_smem(s->last))
		return mir_is_smem(n->first);
	return mir_is_vmem(s->last) && mir_is_vmem(n->first) &&
	       mir_is_load(s->last) == mir_is_load(n->first);
}

static bool is_better(const struct scheduler *s, const struct sched_node *a,
		      const struct sched_node *b)
{
	uint32_t ta = start_of(s, a), tb = start_of(s, b);
	int32_t room = (int32_t)s->limit - s->now;
	int32_t ga = pressure_change(s, a), gb = pressure_change(s, b);

	/* Short of registers: free some first, else the original order. */
	if ((ga > room || gb > room) && ga != gb) {
		if (ga <= 0 || gb <= 0 || (ga > room) != (gb > room))
			return ga < gb;
	}
	if (ga > room && gb > room)
		return a->index < b->index;
	ta = ta > s->cycle ? ta : s->cycle;
	tb = tb > s->cycle ? tb : s->cycle;
	if (ta != tb)
		return ta < tb;
	if (continues_clause(s, a) != continues_clause(s, b))
		return continues_clause(s, a);
	if (a->height != b->height)
		return a->height > b->height;
	return a->index < b->index;
}

static uint32_t choose_ready(struct scheduler *s)
{
	uint32_t best = 0;

	for (uint32_t k = 1; k < s->n_ready; k++)
		if (is_better(s, &s->g.node[s->ready[k]],
			      &s->g.node[s->ready[best]]))
			best = k;
	return best;
}

static void release_successors(struct scheduler *s, struct sched_node *n,
			       uint32_t at)
{
	for (uint32_t k = 0; k < n->n_succ; k++) {
		struct sched_node *to = &s->g.node[n->succ[k]];
		uint32_t t = at + n->lat[k];

		to->ready = t > to->ready ? t : to->ready;
		if (!--to->n_preds)
			s->ready[s->n_ready++] = n->succ[k];
	}
}

static void issue_node(struct scheduler *s, struct sched_node *n)
{
	uint32_t at = start_of(s, n);

	at = at > s->cycle ? at : s->cycle;
	for (struct mir_inst *i = n->first;; i = i->next) {
		track_pressure(s, i);
		s->free_at[pipe_of(s, i)] = at + sched_issue_cycles(&s->g, i);
		s->cycle = ++at;
		s->last = i;
		if (i == n->last)
			break;
	}
	release_successors(s, n, at - 1);
}

/* --------------------------------------------------------------- block ---- */

static void detach_range(struct mir_block *b, struct mir_inst *first,
			 struct mir_inst *last)
{
	struct mir_inst *before = first->prev, *behind = last->next;

	*(before ? &before->next : &b->first) = behind;
	*(behind ? &behind->prev : &b->last) = before;
}

static void put_back(struct mir_block *b, struct mir_inst *behind,
		     struct sched_node *n)
{
	struct mir_inst *before = behind ? behind->prev : b->last;

	n->first->prev = before;
	*(before ? &before->next : &b->first) = n->first;
	n->last->next = behind;
	*(behind ? &behind->prev : &b->last) = n->last;
}

/* Everything between the head and the end of a block. */
static bool find_middle(struct mir_block *b, struct mir_inst **first,
			struct mir_inst **last)
{
	struct mir_inst *i = b->first;

	while (i && i->flags & MIR_HEAD)
		i = i->next;
	*first = *last = i;
	if (!i || i->flags & MIR_TERM)
		return false;
	while ((*last)->next && !((*last)->next->flags & MIR_TERM))
		*last = (*last)->next;
	return *first != *last;
}

static void order_nodes(struct scheduler *s, struct mir_block *b,
			uint32_t *sequence)
{
	struct mir_inst *first, *last;
	uint32_t n = 0;

	find_middle(b, &first, &last);
	begin_block(s, b);
	for (struct mir_inst *i = b->first; i != first; i = i->next)
		track_pressure(s, i);
	s->cycle = 0;
	s->last = NULL;
	memset(s->free_at, 0, sizeof(s->free_at));
	s->n_ready = 0;
	for (uint32_t k = 0; k < s->g.n; k++)
		if (!s->g.node[k].n_preds)
			s->ready[s->n_ready++] = k;
	while (s->n_ready) {
		uint32_t k = choose_ready(s), id = s->ready[k];

		s->ready[k] = s->ready[--s->n_ready];
		sequence[n++] = id;
		issue_node(s, &s->g.node[id]);
	}
	if (n != s->g.n)
		BUG("%u of %u instructions scheduled", n, s->g.n);
}

static void apply_order(struct scheduler *s, struct mir_block *b,
			const uint32_t *sequence)
{
	struct mir_inst *first, *last, *behind;

	find_middle(b, &first, &last);
	behind = last->next;
	detach_range(b, first, last);
	for (uint32_t k = 0; k < s->g.n; k++)
		put_back(b, behind, &s->g.node[sequence ? sequence[k] : k]);
}

static void schedule_block(struct scheduler *s, struct mir_block *b)
{
	struct mir_inst *first, *last;
	uint32_t *sequence;
	int32_t was, is;

	if (!find_middle(b, &first, &last))
		return;
	was = max_pressure(s, b);
	sched_dag_build(&s->g, first, last);
	sequence = xcalloc(s->g.n + 1, sizeof(*sequence));
	s->ready = xcalloc(s->g.n + 1, sizeof(*s->ready));
	order_nodes(s, b, sequence);
	apply_order(s, b, sequence);
	/* Above the limit and worse than the original order: undo. */
	is = max_pressure(s, b);
	if (is > (int32_t)s->limit && is > was)
		apply_order(s, b, NULL);
	free(s->ready);
	free(sequence);
	sched_dag_free(&s->g);
}

/* ------------------------------------------------------------- limits ---- */

/*
 * Vector registers come in granules; a wave more fits a SIMD at each of these
 * counts.  All wave slots are full with what is left of it at most.
 */
static uint32_t occupancy_tier(const struct isa_chip *chip, uint32_t dwords,
			       uint32_t max)
{
	uint32_t t = chip->vgprs / isa_gen_info(chip->gen)->waves_per_simd;

	while (t < dwords)
		t += isa_chip_granule(chip);
	return t < max ? t : max;
}

/* The registers with which so many waves fit a SIMD. */
static uint32_t registers_of(const struct sched_options *o, uint32_t waves)
{
	const uint32_t granule = isa_chip_granule(o->chip);
	uint32_t t = o->chip->vgprs / waves / granule * granule;

	return t < o->max_vgprs ? t : o->max_vgprs;
}

static uint32_t limit_of(struct scheduler *s, const struct sched_options *o)
{
	int32_t most = 0;
	uint32_t tier, free = o->enough ? registers_of(o, o->enough) : 0;

	if (o->waves)
		return registers_of(o, o->waves);
	for (uint32_t k = 0; k < s->m->n_order; k++) {
		int32_t p = max_pressure(s, s->m->order[k]);

		most = p > most ? p : most;
	}
	tier = occupancy_tier(o->chip, (uint32_t)most + 8, o->max_vgprs);
	return tier > free ? tier : free;
}

void mir_schedule(struct mir_func *m, const struct sched_options *o)
{
	struct scheduler s = { .m = m };

	mir_compute_live(m);
	s.g.m = m;
	s.g.costs = o->costs;
	s.left = xcalloc(m->n_vregs, sizeof(*s.left));
	s.alive = xcalloc(m->n_vregs, sizeof(*s.alive));
	s.after = xcalloc(m->n_vregs, sizeof(*s.after));
	s.limit = limit_of(&s, o);
	/* Aligned groups fragment the register file: a reserve for that. */
	s.limit -= s.limit > 64 ? 8 : s.limit / 8;
	for (uint32_t k = 0; k < m->n_order; k++)
		schedule_block(&s, m->order[k]);
	free(s.left);
	free(s.alive);
	free(s.after);
}
