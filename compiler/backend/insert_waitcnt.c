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
#include "compiler/backend/backend_int.h"

#include <string.h>

enum { DONE = MIR_FAR, OLD = 200, N_V = 256, N_S = 128 };

struct state {
	uint8_t vm[N_V], lds[N_V], smem[N_S];
	/* The youngest load of shared data; of LDS. */
	uint8_t shared, any_lds;
	uint8_t store, scratch;
};

struct need {
	int vm, lgkm, vs; /* DONE: none */
	int km;		  /* scalar loads: lgkm, or a counter of their own */
};

static void min_age(int *need, int age)
{
	*need = age < *need ? age : *need;
}

static void age_outstanding(uint8_t *a, int n)
{
	for (int k = 0; k < n; k++)
		a[k] += a[k] < OLD;
}

static void retire_ages(uint8_t *a, int n, int count)
{
	for (int k = 0; k < n; k++)
		a[k] = a[k] >= count ? DONE : a[k];
}

/* --------------------------------------------------------------- needs ---- */

static bool is_vm_load(const struct mir_inst *i)
{
	return mir_is_vmem(i) && i->n_def > 0;
}

static void need_registers(const struct mir_func *m, const struct state *s,
			   const struct mir_inst *i, struct need *n)
{
	struct mir_touch t;

	mir_touches(m, i, &t);
	for (int k = 0; k < t.n; k++)
		for (int j = 0; j < t.t[k].n; j++) {
			int reg = t.t[k].reg + j;

			if (t.t[k].file == MIR_V) {
				min_age(&n->vm, s->vm[reg]);
				min_age(&n->lgkm, s->lds[reg]);
			} else if (reg < N_S && s->smem[reg] != DONE) {
				n->km = 0;
			}
		}
}

static void need_order(const struct state *s, const struct mir_inst *i,
		       struct need *n)
{
	if (i->op == ISA_buffer_gl1_inv || i->op == ISA_global_inv ||
	    mir_isa_flags(i) & ISA_BARRIER) {
		min_age(&n->vm, s->shared);
		min_age(&n->vs, s->store);
		min_age(&n->lgkm, s->any_lds);
	}
	/* Deallocating registers deallocates scratch, too. */
	if (i->op == ISA_s_sendmsg)
		min_age(&n->vs, s->scratch);
}

/* ------------------------------------------------------------- effects ---- */

static void apply_wait(struct state *s, const struct need *n)
{
	if (n->vm != DONE) {
		retire_ages(s->vm, N_V, n->vm);
		retire_ages(&s->shared, 1, n->vm);
	}
	if (n->lgkm != DONE) {
		retire_ages(s->lds, N_V, n->lgkm);
		retire_ages(&s->any_lds, 1, n->lgkm);
	}
	if (n->km == 0)
		memset(s->smem, DONE, sizeof(s->smem));
	if (n->vs != DONE) {
		retire_ages(&s->store, 1, n->vs);
		retire_ages(&s->scratch, 1, n->vs);
	}
}

static void mark_written(const struct mir_func *m, uint8_t *a,
			 const struct mir_inst *i)
{
	for (int k = 0; k < i->n_def; k++)
		if (i->o[k].kind == MIR_VREG)
			memset(a + mir_phys(m, &i->o[k]), 0, i->o[k].n);
}

static void issue_memory(const struct mir_func *m, struct state *s,
			 const struct mir_inst *i)
{
	if (is_vm_load(i)) {
		age_outstanding(s->vm, N_V);
		age_outstanding(&s->shared, 1);
		mark_written(m, s->vm, i);
		if (!(i->flags & MIR_CONST) &&
		    mir_info(i)->fmt != ISA_FMT_SCRATCH)
			s->shared = 0;
	} else if (mir_is_vmem(i) && mir_is_store(i)) {
		age_outstanding(&s->store, 1);
		age_outstanding(&s->scratch, 1);
		s->store = 0;
		if (mir_info(i)->fmt == ISA_FMT_SCRATCH)
			s->scratch = 0;
	} else if (mir_is_ds(i)) {
		age_outstanding(s->lds, N_V);
		mark_written(m, s->lds, i);
		s->any_lds = 0;
	} else if (mir_is_smem(i)) {
		mark_written(m, s->smem, i);
	}
}

/* ---------------------------------------------------------------- walk ---- */

/* Six bits; all ones: not waited for. */
static uint32_t count_field(int age)
{
	return age == DONE ? 63 : age > 62 ? 62 : (uint32_t)age;
}

/* gfx12: a counter each; loads' and LDS's share an instruction. */
static void insert_split_waits(struct mir_func *m, struct mir_inst *i,
			       const struct need *n)
{
	const struct mir_opnd vm = mir_simm16((uint32_t)n->vm);
	const struct mir_opnd ds = mir_simm16((uint32_t)n->lgkm);
	const struct mir_opnd both =
		mir_simm16((uint32_t)n->vm << 8 | (uint32_t)n->lgkm);
	const struct mir_opnd vs = mir_simm16((uint32_t)n->vs);
	const struct mir_opnd km = mir_simm16(0);

	if (n->vm != DONE && n->lgkm != DONE)
		mir_insert(m, i, ISA_s_wait_loadcnt_dscnt, &both, 1);
	else if (n->vm != DONE)
		mir_insert(m, i, ISA_s_wait_loadcnt, &vm, 1);
	else if (n->lgkm != DONE)
		mir_insert(m, i, ISA_s_wait_dscnt, &ds, 1);
	if (n->vs != DONE)
		mir_insert(m, i, ISA_s_wait_storecnt, &vs, 1);
	if (n->km != DONE)
		mir_insert(m, i, ISA_s_wait_kmcnt, &km, 1);
}

/* The counters of the chip; counts are as high as they fit. */
static void settle_need(const struct mir_func *m, struct need *n)
{
	if (isa_gen_info(m->gen)->split_counters) {
		n->vm = n->vm == DONE || n->vm < 62 ? n->vm : 62;
		n->lgkm = n->lgkm == DONE || n->lgkm < 62 ? n->lgkm : 62;
		n->vs = n->vs == DONE || n->vs < 62 ? n->vs : 62;
		return;
	}
	if (n->km == 0)
		n->lgkm = 0;
	if (n->lgkm == 0)
		n->km = 0;
}

static void insert_waits(struct mir_func *m, struct mir_inst *i,
			 const struct need *n)
{
	const struct isa_waits w = { .vm = count_field(n->vm),
				     .exp = ISA_WAITS_EXP,
				     .lgkm = count_field(n->lgkm) };
	struct mir_opnd wait = mir_simm16(isa_waits_encode(m->gen, w));
	struct mir_opnd stores[2] = { mir_hw(ISA_R_NULL, 1),
				      mir_simm16((uint32_t)n->vs) };

	if (isa_gen_info(m->gen)->split_counters) {
		insert_split_waits(m, i, n);
		return;
	}
	if (n->vm != DONE || n->lgkm != DONE)
		mir_insert(m, i, ISA_s_waitcnt, &wait, 1);
	if (n->vs != DONE)
		mir_insert(m, i, ISA_s_waitcnt_vscnt, stores, 2);
}

static void wait_in_block(struct mir_func *m, struct mir_block *b, void *state,
			  bool insert)
{
	struct state *s = state;

	for (struct mir_inst *i = b->first; i; i = i->next) {
		struct need n = { DONE, DONE, DONE, DONE };

		need_registers(m, s, i, &n);
		need_order(s, i, &n);
		settle_need(m, &n);
		if (n.vm != DONE || n.lgkm != DONE || n.vs != DONE ||
		    n.km != DONE) {
			if (insert)
				insert_waits(m, i, &n);
			apply_wait(s, &n);
		}
		issue_memory(m, s, i);
	}
}

void mir_insert_waitcnt(struct mir_func *m)
{
	mir_flow_ages(m, sizeof(struct state), wait_in_block);
}
