/*
 * compiler/backend/insert_delay_alu.c - performance hints.
 *
 * s_delay_alu names the distance of the result that an instruction waits for,
 * so that other waves get the issue slots meanwhile; s_clause keeps loads of
 * neighbouring addresses together.
 */
#include <math.h>
#include <string.h>

#include "compiler/backend/backend_int.h"

enum { MAX_SKIP = 5, MAX_CLAUSE = 32 };

/* SIMM16 of s_delay_alu: INSTID0 3:0, INSTSKIP 6:4, INSTID1 10:7; INSTIDs. */
enum { VALU_DEP = 0, TRANS32_DEP = 4, SALU_CYCLE = 8 };

enum what { NOTHING, VALU, TRANS, SALU };

/* The youngest unfinished writer of a register. */
struct writer {
	uint8_t what;	/* enum what */
	int16_t cycles; /* left */
	uint8_t valus, trans; /* issued since */
};

struct tracker {
	struct mir_func *m;
	int16_t latency[SALU + 1]; /* how long results are on their way */
	struct writer reg[2][256];
	struct mir_inst *hint; /* the last s_delay_alu with room, or NULL */
	int skip;	       /* instructions since */
};

static enum what kind_of(const struct mir_inst *i)
{
	if (mir_pipe(i) == ISA_PIPE_TRANS)
		return TRANS;
	if (mir_is_valu(i) && mir_pipe(i) != ISA_PIPE_WMMA &&
	    mir_pipe(i) != ISA_PIPE_DOUBLE)
		return VALU;
	return mir_is_salu(i) ? SALU : NOTHING;
}

/* The nearest of each kind that the instruction reads. */
struct needs {
	int valu, trans, salu; /* 0 = none */
};

static void keep_nearest(int *need, int n, int max)
{
	if (n <= max && (!*need || n < *need))
		*need = n;
}

static void find_needs(struct tracker *t, const struct mir_inst *i,
		       struct needs *n)
{
	struct mir_touch x;

	memset(n, 0, sizeof(*n));
	mir_touches(t->m, i, &x);
	for (int k = 0; k < x.n; k++)
		for (int j = 0; x.t[k].read && j < x.t[k].n; j++) {
			int reg = x.t[k].reg + j;
			const struct writer *w =
				&t->reg[x.t[k].file][reg & 255];

			if (w->cycles <= 0)
				continue;
			if (w->what == VALU)
				keep_nearest(&n->valu, w->valus + 1, 4);
			else if (w->what == TRANS)
				keep_nearest(&n->trans, w->trans + 1, 3);
			else if (w->what == SALU)
				keep_nearest(&n->salu, w->cycles, 3);
		}
}

/* INSTID of the k-th kind of dependency, 0 if there is none. */
static uint32_t delay_id(const struct needs *n, int k)
{
	switch (k) {
	case 0:
		return n->trans ? TRANS32_DEP + (uint32_t)n->trans : 0;
	case 1:
		return n->valu ? VALU_DEP + (uint32_t)n->valu : 0;
	default:
		return n->salu ? SALU_CYCLE + (uint32_t)n->salu : 0;
	}
}

static void insert_hint(struct tracker *t, struct mir_inst *i,
			const struct needs *n)
{
	struct mir_opnd o;
	uint32_t id[3];
	int n_ids = 0;

	for (int k = 0; k < 3; k++)
		if (delay_id(n, k))
			id[n_ids++] = delay_id(n, k);
	if (!n_ids)
		return;
	if (n_ids == 1 && t->hint && t->skip >= 1 && t->skip <= MAX_SKIP) {
		t->hint->o[0].imm |= (uint32_t)t->skip << 4 | id[0] << 7;
		t->hint = NULL;
		return;
	}
	o = mir_simm16(id[0] | (n_ids > 1 ? id[1] << 7 : 0));
	t->hint = mir_insert(t->m, i, ISA_s_delay_alu, &o, 1);
	if (n_ids > 1)
		t->hint = NULL;
	t->skip = 0;
}

static void age_writers(struct tracker *t, enum what k)
{
	for (int f = 0; f < 2; f++)
		for (int r = 0; r < 256; r++) {
			struct writer *w = &t->reg[f][r];

			if (w->cycles <= 0)
				continue;
			w->cycles--;
			w->valus += k == VALU;
			w->trans += k == TRANS;
		}
}

static void record_writes(struct tracker *t, const struct mir_inst *i,
			  enum what k)
{
	struct mir_touch x;

	mir_touches(t->m, i, &x);
	for (int o = 0; o < x.n; o++)
		for (int j = 0; x.t[o].write && j < x.t[o].n; j++)
			t->reg[x.t[o].file][(x.t[o].reg + j) & 255] =
				(struct writer){ .what = k, .cycles = t->latency[k] };
}

static bool ends_hint(const struct mir_inst *i)
{
	return mir_pipe(i) == ISA_PIPE_SPECIAL || mir_is_memory(i);
}

static void hint_block(struct tracker *t, struct mir_block *b)
{
	memset(t->reg, 0, sizeof(t->reg));
	t->hint = NULL;
	for (struct mir_inst *i = b->first; i; i = i->next) {
		enum what k = kind_of(i);
		struct needs n;

		if (i->op == ISA_s_waitcnt_depctr ||
		    i->op == ISA_s_wait_alu)
			memset(t->reg, 0, sizeof(t->reg));
		if (k != NOTHING) {
			find_needs(t, i, &n);
			insert_hint(t, i, &n);
		}
		if (ends_hint(i) && i->op != ISA_s_delay_alu)
			t->hint = NULL;
		age_writers(t, k);
		record_writes(t, i, k);
		t->skip++;
	}
}

static int16_t cycles_of(const struct cost_model *costs, enum cost_row row)
{
	return (int16_t)fmin(lround(cost_value(costs, row)), INT16_MAX);
}

void mir_insert_delay_alu(struct mir_func *m, const struct cost_model *costs)
{
	struct tracker t = { .m = m, .latency = {
		[VALU] = cycles_of(costs, COST_VALU_LATENCY),
		[TRANS] = cycles_of(costs, COST_TRANS_LATENCY),
		[SALU] = cycles_of(costs, COST_SALU_LATENCY),
	} };

	if (mir_lacks(m, ISA_s_delay_alu))
		return;
	for (uint32_t b = 0; b < m->n_order; b++)
		hint_block(&t, m->order[b]);
}

/* ------------------------------------------------------------- clauses ---- */

static int clause_kind(const struct mir_inst *i)
{
	if (!mir_is_load(i) || mir_is_store(i))
		return 0;
	return mir_is_vmem(i) ? 1 : mir_is_smem(i) ? 2 : 0;
}

static void insert_clause(struct mir_func *m, struct mir_inst *first, int n)
{
	struct mir_opnd o = mir_imm((uint32_t)n - 1);

	mir_insert(m, first, ISA_s_clause, &o, 1);
}

void mir_insert_clauses(struct mir_func *m)
{
	if (mir_lacks(m, ISA_s_clause))
		return;
	for (uint32_t b = 0; b < m->n_order; b++) {
		struct mir_inst *first = NULL;
		int n = 0;

		for (struct mir_inst *i = m->order[b]->first; i;
		     i = i->next) {
			int k = clause_kind(i);

			if (first && k == clause_kind(first) &&
			    n < MAX_CLAUSE) {
				n++;
			} else {
				if (n > 1)
					insert_clause(m, first, n);
				first = k ? i : NULL;
				n = k != 0;
			}
		}
		if (n > 1)
			insert_clause(m, first, n);
	}
}
