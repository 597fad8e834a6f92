/*
 * isa/verify/verify_wait.c - outstanding memory operations and the wait
 * counters.
 *
 * For each register, or half of a VGPR, that an operation will write, the state
 * holds how many operations of the same in-order kind are certainly younger.
 * s_waitcnt with count N lets at most N operations be outstanding, so it has
 * completed every one with N or more younger ones of its own kind, whatever
 * else the counter counts.  Scalar loads and messages return in any order:
 * their age stays 0 and only a wait for 0 completes them (RDNA3 ISA 4.4).
 *
 * vmcnt counts vector memory in the order of issue, but registers are written in
 * that order only within a kind: loads of buffers, flat addresses and images;
 * what goes through the sampler; intersections of rays (LLVM's VmemType in
 * SIInsertWaitcnts.cpp, and ACO's vmem_type).
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "isa/verify/verify_int.h"

enum kind {
	K_VM, /* and K_VM + 1 .. : enum vm_kind */
	K_LDS = K_VM + VM_KINDS,
	K_SMEM,
	K_EXP,
	K_LOCK
};

/* What an instruction does to the counters. */
struct event {
	bool vm, vs, lds, smem, exp, lock;
	enum vm_kind vm_kind; /* if vm */
	int wait_vm, wait_lgkm, wait_exp, wait_vs; /* counts, 255 = none */
	int wait_km; /* scalar loads and messages: lgkm, or their own */
};

enum { NO_WAIT = 255 };

static bool returns_data(const struct isa_inst *in)
{
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].role & ISA_DST && in->opnd[i].dwords)
			return true;
	return false;
}

/* gfx12: a counter each, or two in one instruction. */
static void event_wait_split(const struct isa_inst *in, struct event *e)
{
	const int n = (int)(in->f[ISA_F_SIMM16] & 63);
	const int high = (int)(in->f[ISA_F_SIMM16] >> 8 & 63);

	switch (in->op) {
	case ISA_s_wait_loadcnt:
		e->wait_vm = n;
		return;
	case ISA_s_wait_storecnt:
		e->wait_vs = n;
		return;
	case ISA_s_wait_dscnt:
		e->wait_lgkm = n;
		return;
	case ISA_s_wait_kmcnt:
		e->wait_km = n & 31;
		return;
	case ISA_s_wait_expcnt:
		e->wait_exp = n & 7;
		return;
	case ISA_s_wait_loadcnt_dscnt:
		e->wait_vm = high, e->wait_lgkm = n;
		return;
	case ISA_s_wait_storecnt_dscnt:
		e->wait_vs = high, e->wait_lgkm = n;
		return;
	}
}

static void event_wait(const struct isa_inst *in, struct event *e)
{
	uint32_t imm = in->f[ISA_F_SIMM16];
	const struct isa_waits n = isa_waits_of(in->gen, imm);

	switch (in->op) {
	case ISA_s_waitcnt:
		if (n.vm != ISA_WAITS_VM)
			e->wait_vm = (int)n.vm;
		if (n.lgkm != ISA_WAITS_LGKM)
			e->wait_lgkm = (int)n.lgkm;
		if (n.exp != ISA_WAITS_EXP)
			e->wait_exp = (int)n.exp;
		return;
	case ISA_s_wait_idle:
		e->wait_vm = e->wait_lgkm = e->wait_exp = e->wait_vs = 0;
		return;
	case ISA_s_waitcnt_vscnt:
	case ISA_s_waitcnt_vmcnt:
	case ISA_s_waitcnt_expcnt:
	case ISA_s_waitcnt_lgkmcnt:
		/* A register adds to the count; only null adds nothing. */
		if (in->f[ISA_F_SDST] != ISA_R_NULL || imm > 63)
			return;
		break;
	}
	if (in->op == ISA_s_waitcnt_vscnt)
		e->wait_vs = imm;
	else if (in->op == ISA_s_waitcnt_vmcnt)
		e->wait_vm = imm;
	else if (in->op == ISA_s_waitcnt_expcnt)
		e->wait_exp = imm;
	else if (in->op == ISA_s_waitcnt_lgkmcnt)
		e->wait_lgkm = imm;
}

static enum vm_kind vm_kind(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_image_bvh_intersect_ray:
	case ISA_image_bvh64_intersect_ray:
		return VM_BVH;
	case ISA_image_msaa_load: /* it has no sampler, but goes that way */
		return VM_SAMPLER;
	default:
		return isa_op_info(in->op)->flags & ISA_SAMPLER ? VM_SAMPLER :
								  VM_PLAIN;
	}
}

static void event_of(const struct cfg_insn *x, struct event *e)
{
	bool load = x->flags & ISA_LOAD, store = x->flags & ISA_STORE;
	bool atomic = x->flags & ISA_ATOMIC;
	bool data = (load || atomic) && returns_data(&x->in);

	memset(e, 0, sizeof(*e));
	e->wait_vm = e->wait_lgkm = e->wait_exp = e->wait_vs = NO_WAIT;
	e->wait_km = NO_WAIT;
	if (x->vmem) {
		e->vm = data || load;
		e->vm_kind = vm_kind(&x->in);
		e->vs = store || (atomic && !data);
		e->lds = x->in.fmt == ISA_FMT_FLAT;
		return;
	}
	switch (x->in.fmt) {
	case ISA_FMT_DS:
		e->lds = x->in.op != ISA_ds_nop;
		return;
	case ISA_FMT_SMEM:
		e->smem = load;
		return;
	case ISA_FMT_SOP1:
		e->smem = x->pipe == ISA_PIPE_MSG;
		return;
	case ISA_FMT_LDSDIR:
		e->exp = true;
		return;
	case ISA_FMT_EXP:
		e->lock = true;
		return;
	case ISA_FMT_SOPP:
	case ISA_FMT_SOPK:
		event_wait(&x->in, e);
		e->wait_km = e->wait_lgkm; /* of one counter until gfx12 */
		event_wait_split(&x->in, e);
	}
}

/* --------------------------------------------------------------- ages ---- */

void wait_init(struct vage *a)
{
	memset(a, NOT_PENDING, sizeof(*a));
}

void wait_join(struct vage *into, const struct vage *from, bool *changed)
{
	uint8_t *a = (uint8_t *)into;
	const uint8_t *b = (const uint8_t *)from;
	uint8_t diff = 0;

	for (size_t i = 0; i < sizeof(*into); i++) {
		uint8_t m = a[i] < b[i] ? a[i] : b[i];

		diff |= m ^ a[i];
		a[i] = m;
	}
	*changed |= diff != 0;
}

static void age_outstanding(uint8_t *a, int n)
{
	for (int i = 0; i < n; i++)
		a[i] += a[i] < AGE_MAX;
}

static void retire_to_count(uint8_t *a, int n, int count)
{
	for (int i = 0; i < n; i++)
		a[i] = a[i] >= count ? NOT_PENDING : a[i];
}

void wait_call(struct vage *a)
{
	struct vage was = *a;

	wait_init(a);
	a->scratch_store = was.scratch_store;
	a->global_store = was.global_store;
}

static void apply_waits(struct vage *a, const struct event *e)
{
	if (e->wait_vm != NO_WAIT)
		retire_to_count(a->vm[0], sizeof(a->vm), e->wait_vm);
	if (e->wait_lgkm != NO_WAIT) {
		retire_to_count(a->lds, N_HALVES, e->wait_lgkm);
		retire_to_count(&a->lds_store, 1, e->wait_lgkm);
	}
	if (e->wait_km != NO_WAIT)
		retire_to_count(a->smem, 128, e->wait_km);
	if (e->wait_exp != NO_WAIT) {
		retire_to_count(a->exp, N_HALVES, e->wait_exp);
		retire_to_count(a->lock, N_HALVES, e->wait_exp);
	}
	if (e->wait_vs != NO_WAIT) {
		retire_to_count(&a->scratch_store, 1, e->wait_vs);
		retire_to_count(&a->global_store, 1, e->wait_vs);
		if (a->global_store == NOT_PENDING)
			a->late_store = NOT_PENDING;
	}
}

static bool is_cache_invalidate(const struct isa_inst *in)
{
	return in->op == ISA_buffer_gl0_inv || in->op == ISA_buffer_gl1_inv ||
	       in->op == ISA_global_inv;
}

/*
 * What a buffer_gl0_inv can belong to: after a load or an atomic it makes an
 * acquire of that, which must be complete; after a barrier it belongs to that;
 * else it is a fence.  The last two also release.  So no store may be
 * outstanding there except those before a load or a returning atomic.
 */
static void apply_order(struct vage *a, const struct cfg_insn *x,
			const struct event *e)
{
	if (is_cache_invalidate(
		    &x->in)) /* what was wrong there was reported there */
		a->late_store = a->barrier_store = NOT_PENDING;
	if (x->flags & ISA_BARRIER)
		a->barrier_store = a->global_store == NOT_PENDING ?
					   NOT_PENDING : 0;
	if (e->vm || e->lds || e->vs)
		a->late_store = NOT_PENDING;
	if (e->vm || e->lds || x->flags & ISA_ATOMIC)
		a->barrier_store = NOT_PENDING;
	if (e->vs && !e->lds && x->in.fmt != ISA_FMT_SCRATCH)
		a->late_store = 0;
}

/* Part `i` of a use: a register, or half of a VGPR. */
static int part_of(const struct isa_use *u, int use, int i)
{
	if (u->reg[use].file == ISA_K_SGPR)
		return u->reg[use].reg + i;
	return 2 * u->reg[use].reg +
	       (u->reg[use].halves == ISA_HALF_BOTH ? i :
		u->reg[use].halves == ISA_HALF_HIGH);
}

static int parts_of(const struct isa_use *u, int use)
{
	const bool both = u->reg[use].file == ISA_K_VGPR &&
			  u->reg[use].halves == ISA_HALF_BOTH;

	return u->reg[use].count << both;
}

static void set_ages(uint8_t *a, const struct isa_use *u, int file, int role)
{
	for (int i = 0; i < u->n; i++)
		if (u->reg[i].file == file && u->reg[i].role & role)
			memset(a + part_of(u, i, 0), 0,
			       (size_t)parts_of(u, i));
}

static bool uses_part(const struct cfg_insn *x, enum kind kind, int role,
		      int part)
{
	const struct isa_use *u = &x->use;
	const int file = kind == K_SMEM ? ISA_K_SGPR : ISA_K_VGPR;

	for (int i = 0; i < u->n; i++)
		if (u->reg[i].file == file && u->reg[i].role & role &&
		    part >= part_of(u, i, 0) &&
		    part < part_of(u, i, 0) + parts_of(u, i))
			return true;
	return false;
}

static void apply_events(struct vage *a, const struct cfg_insn *x,
			 const struct event *e)
{
	if (e->vm) {
		age_outstanding(a->vm[0], sizeof(a->vm));
		set_ages(a->vm[e->vm_kind], &x->use, ISA_K_VGPR, ISA_DST);
	}
	if (e->lds) {
		age_outstanding(a->lds, N_HALVES);
		age_outstanding(&a->lds_store, 1);
		set_ages(a->lds, &x->use, ISA_K_VGPR, ISA_DST);
		if (x->flags & (ISA_STORE | ISA_ATOMIC))
			a->lds_store = 0;
	}
	if (e->smem)
		set_ages(a->smem, &x->use, ISA_K_SGPR, ISA_DST);
	if (e->exp) {
		age_outstanding(a->exp, N_HALVES);
		set_ages(a->exp, &x->use, ISA_K_VGPR, ISA_DST);
	}
	if (e->lock)
		set_ages(a->lock, &x->use, ISA_K_VGPR, ISA_SRC);
	if (e->vs) {
		age_outstanding(&a->scratch_store, 1);
		age_outstanding(&a->global_store, 1);
		if (x->in.fmt == ISA_FMT_SCRATCH)
			a->scratch_store = 0;
		else
			a->global_store = 0;
	}
}

/* -------------------------------------------------------------- paths ---- */

/* The age of one part across one instruction; -1: no longer pending. */
static int track_age(const struct cfg_insn *x, enum kind kind, int part,
		     int age)
{
	struct event e;
	int wait;

	event_of(x, &e);
	wait = kind < K_LDS   ? e.wait_vm :
	       kind == K_LDS  ? e.wait_lgkm :
	       kind == K_SMEM ? e.wait_km :
				e.wait_exp;
	if (wait != NO_WAIT && age >= wait)
		return -1;
	if (uses_part(x, kind, kind == K_LOCK ? ISA_DST : ISA_SRC | ISA_DST,
		      part))
		return -1;
	if ((kind < K_LDS && e.vm) || (kind == K_LDS && e.lds) ||
	    (kind == K_EXP && e.exp))
		age += age < AGE_MAX;
	return age;
}

static bool is_producer(const struct cfg_insn *x, enum kind kind, int part)
{
	struct event e;
	int role = kind == K_LOCK ? ISA_SRC : ISA_DST;

	event_of(x, &e);
	if (!(kind < K_LDS   ? e.vm && K_VM + e.vm_kind == kind :
	      kind == K_LDS  ? e.lds :
	      kind == K_SMEM ? e.smem :
	      kind == K_EXP  ? e.exp :
			       e.lock))
		return false;
	return uses_part(x, kind, role, part);
}

struct node {
	int block, age, back, producer;
};

struct search {
	struct verifier *v;
	enum kind kind;
	int part, goal;
	struct node *node;
	int n, cap;
	uint64_t *seen; /* [blocks] bit per age */
};

/* From instruction `i` to the end of its block; true if the goal was met. */
static bool search_block(struct search *s, int i, int *age)
{
	const struct cfg_block *b = &s->v->g.block[s->v->g.insn[i].block];

	for (; i < b->first + b->n; i++) {
		if (i == s->goal)
			return true;
		*age = track_age(&s->v->g.insn[i], s->kind, s->part, *age);
		if (*age < 0)
			return false;
	}
	return false;
}

static void search_push(struct search *s, int from, int block, int age,
			int producer)
{
	if (block < 0 || s->seen[block] >> age & 1)
		return;
	s->seen[block] |= UINT64_C(1) << age;
	VEC_GROW(s->node, s->n, 1, s->cap);
	s->node[s->n++] = (struct node){ block, age, from, producer };
}

static void search_spread(struct search *s, int from, int block, int age,
			  int producer)
{
	const struct cfg_block *b = &s->v->g.block[block];

	if (b->callee >= 0) {
		search_push(s, from, s->v->g.func[b->callee].block, age,
			    producer);
		return;
	}
	search_push(s, from, b->succ[0], age, producer);
	search_push(s, from, b->succ[1], age, producer);
}

/*
 * A shortest chain of blocks from a producer to the goal on which nothing
 * waits.  Returns the producer, -1 if none; blocks go to `out`, their number
 * to *n, the age at the goal to *age.
 */
static int search_run(struct search *s, int *out, int max, int *n, int *age)
{
	struct cfg *g = &s->v->g;
	int found = -1, producer = -1;

	for (int i = 0; i < g->n_insns && found < 0 && producer < 0; i++) {
		int a = 0;

		if (!is_producer(&g->insn[i], s->kind, s->part))
			continue;
		if (i + 1 >= g->block[g->insn[i].block].first +
				     g->block[g->insn[i].block].n) {
			search_spread(s, -1, g->insn[i].block, a, i);
			continue;
		}
		if (search_block(s, i + 1, &a)) {
			producer = i;
			*age = a;
		} else if (a >= 0) {
			search_spread(s, -1, g->insn[i].block, a, i);
		}
	}
	for (int i = 0; i < s->n && producer < 0; i++) {
		int a = s->node[i].age;

		if (search_block(s, g->block[s->node[i].block].first, &a)) {
			found = i;
			producer = s->node[i].producer;
			*age = a;
		} else if (a >= 0) {
			search_spread(s, i, s->node[i].block, a,
				      s->node[i].producer);
		}
	}
	if (producer < 0)
		return -1;
	*n = cfg_path(g, g->func[0].block, g->insn[producer].block, out, max);
	if (*n < 0)
		*n = 0;
	int chain = 0;

	for (int i = found; i >= 0; i = s->node[i].back)
		chain++;
	for (int i = found, k = *n + chain; i >= 0; i = s->node[i].back)
		if (--k < max)
			out[k] = s->node[i].block;
	*n = *n + chain < max ? *n + chain : max;
	return producer;
}

/* -------------------------------------------------------------- checks ---- */

static const struct {
	enum verify_rule rule;
	const char *counter, *doing;
} kinds[] = {
	[K_VM] = { VERIFY_WAIT_VM, "vmcnt", "is still being loaded" },
	[K_VM + VM_SAMPLER] = { VERIFY_WAIT_VM, "vmcnt",
				"is still being loaded" },
	[K_VM + VM_BVH] = { VERIFY_WAIT_VM, "vmcnt", "is still being loaded" },
	[K_LDS] = { VERIFY_WAIT_LGKM, "lgkmcnt", "is still being loaded" },
	[K_SMEM] = { VERIFY_WAIT_LGKM, "lgkmcnt", "is still being loaded" },
	[K_EXP] = { VERIFY_WAIT_EXP, "expcnt", "is still being loaded" },
	[K_LOCK] = { VERIFY_WAIT_EXP, "expcnt", "is still being exported" },
};

/* As the chip's manual calls it. */
static const char *counter_name(const struct verifier *v, enum kind kind)
{
	if (!isa_gen_info(v->in->target.gen)->split_counters)
		return kinds[kind].counter;
	return kind == K_VM + VM_SAMPLER ? "samplecnt" :
	       kind == K_VM + VM_BVH	 ? "bvhcnt" :
	       kind < K_LDS		 ? "loadcnt" :
	       kind == K_LDS		 ? "dscnt" :
	       kind == K_SMEM		 ? "kmcnt" :
					   "expcnt";
}

static void report_pending(struct verifier *v, int insn, enum kind kind,
			   int part, bool read)
{
	enum { MAX = 512 };
	struct search s = { .v = v, .kind = kind, .part = part, .goal = insn };
	int path[MAX], n = 0, age = 0, producer;
	char name[16], at[160] = "";

	s.seen = xcalloc(v->g.n_blocks + 1, sizeof(*s.seen));
	producer = search_run(&s, path, MAX, &n, &age);
	ver_reg_name(kind == K_SMEM ? part : R_VGPR + part / 2, name);
	if (producer >= 0)
		snprintf(at, sizeof(at), " by the %s at 0x%llx",
			 isa_op_info(v->g.insn[producer].in.op)->name,
			 (unsigned long long)cfg_addr(&v->g, producer));
	ver_report_path(v, kinds[kind].rule, insn, path, n,
			"%s %s%s when it is %s; wanted %s(%d) before", name,
			kinds[kind].doing, at, read ? "read" : "overwritten",
			counter_name(v, kind), age);
	free(s.seen);
	free(s.node);
}

/* In order: does the write follow all older operations of the same kind? */
static bool in_order(const struct cfg_insn *x, const struct event *e,
		     enum kind kind)
{
	if (x->in.fmt == ISA_FMT_FLAT)
		return false;
	return (kind < K_LDS && e->vm && kind == K_VM + e->vm_kind) ||
	       (kind == K_LDS && e->lds) ||
	       (kind == K_EXP && e->exp);
}

static void check_access(struct verifier *v, uint8_t *a, int insn,
			 int kind, int use, const struct event *e)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	const int role = x->use.reg[use].role;
	const int from = part_of(&x->use, use, 0);
	const int end = from + parts_of(&x->use, use);
	bool told = false;

	for (int i = from; i < end; i++) {
		if (a[i] == NOT_PENDING)
			continue;
		/* A partial load's old value comes from the same queue. */
		if (role & ISA_DST && in_order(x, e, kind) &&
		    (!(role & ISA_SRC) || x->flags & ISA_LOAD))
			continue;
		if (kind == K_LOCK && !(role & ISA_DST))
			continue;
		if (v->check && !told)
			report_pending(v, insn, kind, i, role & ISA_SRC);
		told = true;
		a[i] = NOT_PENDING;
	}
}

/* Release: stores before a cache invalidation must be visible to others. */
static void check_release(struct verifier *v, const struct vage *a, int insn)
{
	bool barrier = v->several_waves && a->barrier_store != NOT_PENDING;

	if (!barrier && a->late_store == NOT_PENDING)
		return;
	ver_report(v, VERIFY_WAIT_VS, insn, -1,
		   barrier ? "a store may have been outstanding at the barrier "
			     "before, so that other waves read old data; "
			     "wanted vscnt(0) before the barrier" :
			     "a store may be outstanding at this fence; wanted "
			     "vscnt(0) before it");
}

static void check_end(struct verifier *v, const struct vage *a, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	enum { DEALLOC_VGPRS = 3 };

	if (x->in.op == ISA_s_sendmsg &&
	    (x->in.f[ISA_F_SIMM16] & 0xff) == DEALLOC_VGPRS &&
	    a->scratch_store != NOT_PENDING)
		ver_report(v, VERIFY_WAIT_VS, insn, -1,
			   "the wave gives up its registers and scratch while "
			   "a scratch store may be outstanding; wanted "
			   "vscnt(0) before");
	if (is_cache_invalidate(&x->in))
		check_release(v, a, insn);
	if (x->flags & ISA_BARRIER && v->several_waves &&
	    a->lds_store != NOT_PENDING)
		ver_report(v, VERIFY_LDS_RACE, insn, -1,
			   "an LDS store may be outstanding at the barrier; "
			   "wanted lgkmcnt(%d) before",
			   a->lds_store);
}

void wait_step(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	struct vage *a = &s->age;
	struct event e;

	event_of(x, &e);
	for (int i = 0; i < x->use.n; i++) {
		if (x->use.reg[i].file == ISA_K_SGPR) {
			check_access(v, a->smem, insn, K_SMEM, i, &e);
			continue;
		}
		for (int k = 0; k < VM_KINDS; k++)
			check_access(v, a->vm[k], insn, K_VM + k, i, &e);
		check_access(v, a->lds, insn, K_LDS, i, &e);
		check_access(v, a->exp, insn, K_EXP, i, &e);
		check_access(v, a->lock, insn, K_LOCK, i, &e);
	}
	if (v->check)
		check_end(v, a, insn);
	apply_waits(a, &e);
	apply_events(a, x, &e);
	apply_order(a, x, &e);
}
