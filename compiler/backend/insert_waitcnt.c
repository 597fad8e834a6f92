/*
 * compiler/backend/insert_waitcnt.c - wait counts by dataflow.
 *
 * For every register that a memory operation will write, the state holds its
 * age: how many operations of the same in-order kind are younger.  A wait for
 * a count of N completes everything of age N and more.  Scalar loads return in
 * any order: only a wait for 0 completes them (RDNA3 ISA 4.4).  Where paths
 * meet, the younger age counts.  A wait is put where a register is touched
 * whose operation is outstanding, with the highest count that suffices.
 */
#include "compiler/backend/backend.h"

#include <stdlib.h>
#include <string.h>

enum { DONE = 255, OLD = 200, N_V = 256, N_S = 128 };

struct state {
	uint8_t vm[N_V], lds[N_V], smem[N_S];
	/* The youngest load of what others write; of LDS. */
	uint8_t shared, any_lds;
	uint8_t store, scratch;
};

struct need {
	int vm, lgkm, vs; /* DONE: none */
};

struct waiter {
	struct mir_func *m;
	struct state *out; /* [n_order] */
	bool *seen;
	bool insert;
};

static void join(struct state *into, const struct state *from)
{
	uint8_t *a = (uint8_t *)into;
	const uint8_t *b = (const uint8_t *)from;

	for (size_t k = 0; k < sizeof(*into); k++)
		a[k] = a[k] < b[k] ? a[k] : b[k];
}

static void lower(int *need, int age)
{
	*need = age < *need ? age : *need;
}

static void older(uint8_t *a, int n)
{
	for (int k = 0; k < n; k++)
		a[k] += a[k] < OLD;
}

static void complete(uint8_t *a, int n, int count)
{
	for (int k = 0; k < n; k++)
		a[k] = a[k] >= count ? DONE : a[k];
}

/* --------------------------------------------------------------- needs ---- */

static bool is_vm_load(const struct mir_inst *i)
{
	return mir_is_vmem(i) && i->n_def > 0;
}

static void need_registers(const struct waiter *w, const struct state *s,
			   const struct mir_inst *i, struct need *n)
{
	struct mir_touch t;

	mir_touches(w->m, i, &t);
	for (int k = 0; k < t.n; k++)
		for (int j = 0; j < t.t[k].n; j++) {
			int reg = t.t[k].reg + j;

			if (t.t[k].file == MIR_V) {
				lower(&n->vm, s->vm[reg]);
				lower(&n->lgkm, s->lds[reg]);
			} else if (reg < N_S && s->smem[reg] != DONE) {
				n->lgkm = 0;
			}
		}
}

static void need_order(const struct state *s,
		       const struct mir_inst *i, struct need *n)
{
	if (i->op == ISA_buffer_gl1_inv || mir_isa_flags(i) & ISA_BARRIER) {
		lower(&n->vm, s->shared);
		lower(&n->vs, s->store);
		lower(&n->lgkm, s->any_lds);
	}
	/* Whoever gives up registers gives up scratch, too. */
	if (i->op == ISA_s_sendmsg)
		lower(&n->vs, s->scratch);
}

/* ------------------------------------------------------------- effects ---- */

static void apply_wait(struct state *s, const struct need *n)
{
	if (n->vm != DONE) {
		complete(s->vm, N_V, n->vm);
		complete(&s->shared, 1, n->vm);
	}
	if (n->lgkm != DONE) {
		complete(s->lds, N_V, n->lgkm);
		complete(&s->any_lds, 1, n->lgkm);
	}
	if (n->lgkm == 0)
		memset(s->smem, DONE, sizeof(s->smem));
	if (n->vs != DONE) {
		complete(&s->store, 1, n->vs);
		complete(&s->scratch, 1, n->vs);
	}
}

static void mark(const struct waiter *w, uint8_t *a, const struct mir_inst *i)
{
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG)
			memset(a + mir_phys(w->m, &i->o[k]), 0, i->o[k].n);
}

static void apply(const struct waiter *w, struct state *s,
		  const struct mir_inst *i)
{
	if (is_vm_load(i)) {
		older(s->vm, N_V);
		older(&s->shared, 1);
		mark(w, s->vm, i);
		if (!(i->flags & MIR_CONST) &&
		    mir_info(i)->fmt != ISA_FMT_SCRATCH)
			s->shared = 0;
	} else if (mir_is_vmem(i) && mir_is_store(i)) {
		older(&s->store, 1);
		older(&s->scratch, 1);
		s->store = 0;
		if (mir_info(i)->fmt == ISA_FMT_SCRATCH)
			s->scratch = 0;
	} else if (mir_is_ds(i)) {
		older(s->lds, N_V);
		mark(w, s->lds, i);
		s->any_lds = 0;
	} else if (mir_is_smem(i)) {
		mark(w, s->smem, i);
	}
}

/* ---------------------------------------------------------------- walk ---- */

static void put(struct waiter *w, struct mir_inst *i, const struct need *n)
{
	struct arena *a = w->m->arena;
	struct buf b = { 0 };

	if (n->vm != DONE)
		buf_printf(&b, " vmcnt(%d)", n->vm > 62 ? 62 : n->vm);
	if (n->lgkm != DONE)
		buf_printf(&b, " lgkmcnt(%d)", n->lgkm > 62 ? 62 : n->lgkm);
	if (b.len)
		mir_special(w->m, i, ISA_s_waitcnt, arena_strdup(a, b.data));
	if (n->vs != DONE)
		mir_special(w->m, i, ISA_s_waitcnt_vscnt,
			    arena_printf(a, " null, 0x%x", n->vs));
	buf_fini(&b);
}

static void walk(struct waiter *w, struct mir_block *b, struct state *s)
{
	for (struct mir_inst *i = b->first; i; i = i->next) {
		struct need n = { DONE, DONE, DONE };

		need_registers(w, s, i, &n);
		need_order(s, i, &n);
		if (n.vm != DONE || n.lgkm != DONE || n.vs != DONE) {
			if (w->insert)
				put(w, i, &n);
			apply_wait(s, &n);
		}
		apply(w, s, i);
	}
}

static void entry_state(const struct waiter *w, const struct mir_block *b,
			struct state *s)
{
	memset(s, DONE, sizeof(*s));
	for (uint32_t k = 0; k < b->n_preds; k++)
		if (w->seen[b->pred[k]->order])
			join(s, &w->out[b->pred[k]->order]);
}

void mir_waits(struct mir_func *m)
{
	struct waiter w = { .m = m };
	struct state s;
	bool changed = true;

	mir_number(m);
	w.out = xcalloc(m->n_order, sizeof(*w.out));
	w.seen = xcalloc(m->n_order, sizeof(*w.seen));
	while (changed) {
		changed = false;
		for (uint32_t b = 0; b < m->n_order; b++) {
			entry_state(&w, m->order[b], &s);
			walk(&w, m->order[b], &s);
			if (w.seen[b] && !memcmp(&s, &w.out[b], sizeof(s)))
				continue;
			w.seen[b] = true;
			w.out[b] = s;
			changed = true;
		}
	}
	w.insert = true;
	for (uint32_t b = 0; b < m->n_order; b++) {
		entry_state(&w, m->order[b], &s);
		walk(&w, m->order[b], &s);
	}
	free(w.out);
	free(w.seen);
}
