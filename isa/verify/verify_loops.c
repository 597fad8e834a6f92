/*
 * isa/verify/verify_loops.c - loops that cannot end.
 *
 * A natural loop is a header and all blocks that reach it again.  Its exit
 * conditions have value numbers; one that depends on no value made inside the
 * loop (a join of the loop's blocks, or a load, message or hardware register
 * read there) is loop-invariant.  If all are, the loop ends in its first
 * iteration or never; a constant says which.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/verify/verify_int.h"

struct loop {
	struct verifier *v;
	uint8_t *body; /* [blocks] */
	int *list;     /* the same as numbers */
	int n;
	uint8_t *seen; /* [values] */
};

static bool in_loop(const struct loop *l, int block)
{
	return block >= 0 && l->body[block];
}

/* The natural loop of `header`: all that reaches it without passing it. */
static void find_body(struct loop *l, int header)
{
	const struct cfg *g = &l->v->g;
	const struct cfg_block *h = &g->block[header];

	l->n = 0;
	l->body[header] = 1;
	l->list[l->n++] = header;
	for (int i = 0; i < l->n; i++) {
		const struct cfg_block *x = &g->block[l->list[i]];

		for (int k = 0; k < x->n_preds; k++) {
			int p = g->preds[x->pred + k];

			/* Only back edges of the header are in the loop. */
			if (g->block[p].scc != h->scc || l->body[p] ||
			    (!i && g->block[p].order < h->order))
				continue;
			l->body[p] = 1;
			l->list[l->n++] = p;
		}
	}
}

static bool depends_on_loop(struct loop *l, uint32_t x)
{
	const struct value *y = &l->v->val.v[x];

	if (!x || l->seen[x])
		return false;
	l->seen[x] = 1;
	switch (y->kind) {
	case VAL_CONST:
	case VAL_ENTRY:
		return false;
	case VAL_INSN:
		return in_loop(l, l->v->g.insn[y->a].block);
	case VAL_PHI:
		return in_loop(l, y->a);
	case VAL_HIGH:
		return depends_on_loop(l, y->a);
	case VAL_EXPR:
		/* A special source: its register number, not a value. */
		if ((y->imm & 0xffff) == 0xffff && !y->b && y->a >= 235)
			return true;
		/* fallthrough */
	default:
		return depends_on_loop(l, y->a) || depends_on_loop(l, y->b);
	}
}

/* The instruction that closes the loop: the last branch to its header. */
static int closing_branch(const struct loop *l, int header)
{
	const struct cfg *g = &l->v->g;
	const struct cfg_block *h = &g->block[header];
	int at = h->first;

	for (int i = 0; i < h->n_preds; i++) {
		int p = g->preds[h->pred + i];
		int last = g->block[p].first + g->block[p].n - 1;

		if (in_loop(l, p) && last > at)
			at = last;
	}
	return at;
}

/* May something else stop the wave, or a callee never return? */
static bool may_stop(const struct cfg *g, const struct cfg_block *x)
{
	for (int i = x->first; i < x->first + x->n; i++)
		if (g->insn[i].in.op == ISA_s_sethalt ||
		    g->insn[i].in.op == ISA_s_trap)
			return true;
	return x->end == CFG_CALL;
}

/* Does the branch at the end of the block always leave the loop? */
static bool always_leaves(const struct loop *l, int block)
{
	const struct verifier *v = l->v;
	const struct cfg_block *x = &v->g.block[block];
	const int op = v->g.insn[x->first + x->n - 1].in.op;
	const bool exec = op == ISA_s_cbranch_execz ||
			  op == ISA_s_cbranch_execnz;
	const bool if_zero = op == ISA_s_cbranch_execz ||
			     op == ISA_s_cbranch_vccz ||
			     op == ISA_s_cbranch_scc0;
	uint32_t bits;

	/* Of EXEC in wave64 only the lower half is looked at. */
	if (!val_is_const(&v->val, v->cond_out[block], &bits) ||
	    (exec && !bits && v->in->target.wave == 64))
		return false;
	return !in_loop(l, x->succ[if_zero == !bits]);
}

static void check_loop(struct loop *l, int header)
{
	struct verifier *v = l->v;
	const struct cfg *g = &v->g;
	unsigned long long start = cfg_addr(g, g->block[header].first);
	bool alive = false;
	int at = -1;

	memset(l->seen, 0, v->val.n);
	for (int i = 0; i < l->n && !alive; i++) {
		int b = l->list[i];
		const struct cfg_block *x = &g->block[b];
		int last = x->first + x->n - 1;

		alive = may_stop(g, x);
		if (x->end != CFG_COND ||
		    (in_loop(l, x->succ[0]) && in_loop(l, x->succ[1])))
			continue;
		if (at < 0 || last < at)
			at = last;
		alive |= !v->cond_out[b] ||
			 depends_on_loop(l, v->cond_out[b]) ||
			 always_leaves(l, b);
	}
	if (alive)
		return;
	if (at < 0)
		ver_report(v, VERIFY_ENDLESS, closing_branch(l, header), header,
			   "no branch leaves the loop at 0x%llx", start);
	else
		ver_report(v, VERIFY_ENDLESS, at, header,
			   "nothing in the loop at 0x%llx changes what this "
			   "branch tests, and no other branch leaves it",
			   start);
}

void loops_collect(struct verifier *v)
{
	struct loop l = { .v = v };

	l.body = xcalloc(v->g.n_blocks + 1, 1);
	l.list = xcalloc(v->g.n_blocks + 1, sizeof(*l.list));
	v->loop = xcalloc(v->g.n_blocks + 1, sizeof(*v->loop));
	for (int b = 0; b < v->g.n_blocks; b++) {
		if (!v->g.block[b].header)
			continue;
		find_body(&l, b);
		v->loop[b] = xmalloc((l.n + 1) * sizeof(int));
		memcpy(v->loop[b], l.list, l.n * sizeof(int));
		v->loop[b][l.n] = -1;
		for (int i = 0; i < l.n; i++)
			l.body[l.list[i]] = 0;
	}
	free(l.body);
	free(l.list);
}

void loops_check(struct verifier *v)
{
	struct loop l = { .v = v };

	l.body = xcalloc(v->g.n_blocks + 1, 1);
	l.list = xcalloc(v->g.n_blocks + 1, sizeof(*l.list));
	l.seen = xcalloc(v->val.n, 1);
	for (int b = 0; b < v->g.n_blocks; b++) {
		if (!v->at[b] || !v->g.block[b].header)
			continue;
		find_body(&l, b);
		check_loop(&l, b);
		for (int i = 0; i < l.n; i++)
			l.body[l.list[i]] = 0;
	}
	free(l.body);
	free(l.list);
	free(l.seen);
}
