/*
 * isa/verify/verify_lds.c - LDS shared between waves, and the declared budgets.
 *
 * Two accesses since the last barrier, one of them a store, conflict when
 * different lanes certainly or very likely touch the same bytes.  Addresses
 * are linear in the work-item's id where the code makes them so.  Whatever
 * comes from scratch, a caller or two loop-carried values is left alone: a
 * double-buffered loop must not raise an alarm.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/verify/verify_int.h"

static bool is_access(const struct cfg_insn *x)
{
	return x->in.fmt == ISA_FMT_DS && !x->in.f[ISA_F_GDS] &&
	       x->flags & (ISA_LOAD | ISA_STORE | ISA_ATOMIC);
}

void lds_collect(struct verifier *v)
{
	const struct cfg *g = &v->g;
	int n = 0;

	v->lds_of = xmalloc((g->n_insns + 1) * sizeof(int));
	for (int i = 0; i < g->n_insns; i++)
		v->lds_of[i] = is_access(&g->insn[i]) ? n++ : -1;
	v->n_lds = n;
	v->lds_words = (n + 63) / 64;
	v->lds = xcalloc(n + 1, sizeof(*v->lds));
	for (int i = 0; i < g->n_insns; i++) {
		struct lds_access *a =
			&v->lds[v->lds_of[i] < 0 ? n : v->lds_of[i]];

		a->insn = i;
		a->atomic = g->insn[i].flags & ISA_ATOMIC;
		a->store = g->insn[i].flags & ISA_STORE || a->atomic;
		a->load = g->insn[i].flags & ISA_LOAD || a->atomic;
	}
}

/* ------------------------------------------------------------- ranges ---- */

/* Bytes of an access, relative to its address register: one or two pieces. */
struct pieces {
	uint32_t off[2], size;
	int n;
};

static uint32_t data_bytes(const struct isa_inst *in)
{
	uint32_t bits = 0;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		const struct isa_type_info *t = isa_type_info(o->type);

		if (o->kind != ISA_K_VGPR || o->slot == ISA_SLOT_VADDR)
			continue;
		if ((uint32_t)t->bits * t->count > bits)
			bits = t->bits * t->count;
	}
	return bits ? bits / 8 : 4;
}

static void pieces_of(const struct isa_inst *in, struct pieces *p)
{
	const char *name = isa_op_info(in->op)->name;
	uint32_t unit;

	p->size = data_bytes(in);
	p->n = 1;
	p->off[0] = in->f[ISA_F_OFFSET0] | in->f[ISA_F_OFFSET1] << 8;
	if (strstr(name, "_src2_")) {
		/* The other place: 15 bits, signed, or the address has it. */
		p->size = strstr(name, "64") ? 8 : 4;
		p->n = p->off[0] & 0x8000 ? 1 : 2;
		p->off[1] = 4 * (uint32_t)((int32_t)(p->off[0] << 17) >> 17);
		p->off[0] = 0;
		return;
	}
	if (!strstr(name, "2addr"))
		return;
	unit = strstr(name, "b64") ? 8 : 4;
	p->size = unit;
	if (strstr(name, "stride64"))
		unit *= 64;
	p->n = 2;
	p->off[0] = in->f[ISA_F_OFFSET0] * unit;
	p->off[1] = in->f[ISA_F_OFFSET1] * unit;
}

static const struct isa_operand *operand_in_slot(const struct isa_inst *in,
						 int which)
{
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].slot == which)
			return &in->opnd[i];
	return NULL;
}

/* -------------------------------------------------------------- races ---- */

enum { UNKNOWN = VF_VARY | VF_MEM, LDS_MAX = 65536 };

/* One piece of an access: constant part, and the rest of its address. */
struct spot {
	uint32_t base, rest, lo, hi, size;
	int flags;
};

/*
 * The same expression, other lanes: is a multiple of the distance between two
 * lanes' addresses within reach?
 */
static bool lanes_meet(const struct verifier *v, const struct spot *a,
		       const struct spot *b)
{
	int64_t step = val_stride(&v->val, a->rest, 0);
	int64_t delta = (int32_t)(b->base - a->base);
	int64_t reach = (int64_t)a->hi - a->lo;

	if (!step)
		return false;
	/* Beyond 32 lanes it is more likely another array. */
	if (reach > 32 * step)
		reach = 32 * step;
	for (int64_t m = step; m <= reach; m += step)
		if ((m > delta - a->size && m < delta + b->size) ||
		    (-m > delta - a->size && -m < delta + b->size))
			return true;
	return false;
}

static bool spots_overlap(const struct spot *a, const struct spot *b)
{
	return a->lo < b->hi + b->size && b->lo < a->hi + a->size;
}

static bool known_lanes(const struct verifier *v, uint32_t exec)
{
	int kind = v->val.v[exec].kind;

	return kind == VAL_ENTRY || kind == VAL_MASK;
}

static bool is_guarded(const struct verifier *v, const struct lds_access *x,
		       const struct lds_access *y)
{
	return v->val.v[x->exec].kind != VAL_ENTRY ||
	       v->val.v[y->exec].kind != VAL_ENTRY;
}

/* Both addresses are the same in all lanes. */
static bool uniform_race(const struct verifier *v, const struct lds_access *x,
			 const struct lds_access *y, const struct spot *a,
			 const struct spot *b)
{
	return a->rest == b->rest && a->base < b->base + b->size &&
	       b->base < a->base + a->size && x->exec != y->exec &&
	       known_lanes(v, x->exec) && known_lanes(v, y->exec);
}

/*
 * Addresses that differ by an index and not by the lane: they meet in another
 * lane's bytes only if the index steps by whole lanes.  Otherwise it selects
 * within an array of the lane's own.
 */
static bool same_lane(struct verifier *v, const struct spot *a,
		      const struct spot *b)
{
	uint32_t diff = val_add(&v->val, b->rest,
				val_scale(&v->val, a->rest, UINT32_MAX));
	uint32_t rest, stride = val_stride(&v->val, a->rest, VF_LANE);

	if (v->val.v[diff].flags & VF_LANE || !stride)
		return false;
	val_split(&v->val, diff, &rest);
	return val_stride(&v->val, rest, 0) % stride != 0;
}

static bool spots_race(struct verifier *v, const struct lds_access *x,
		       const struct lds_access *y, const struct spot *a,
		       const struct spot *b)
{
	if ((a->flags | b->flags) & VF_DARK ||
	    (a->flags & UNKNOWN && b->flags & UNKNOWN))
		return false;
	if (!((a->flags | b->flags) & VF_LANE))
		return uniform_race(v, x, y, a, b);
	if (a->rest == b->rest)
		return lanes_meet(v, a, b);
	if (same_lane(v, a, b))
		return false;
	/*
	 * Under a condition, or with an index that only the data knows, the
	 * bounds say little; the same constant part means the same array.
	 */
	if (is_guarded(v, x, y) || (a->flags | b->flags) & UNKNOWN ||
	    a->hi >= LDS_MAX || b->hi >= LDS_MAX)
		return a->base == b->base;
	return spots_overlap(a, b);
}

static void spot_of(struct verifier *v, const struct lds_access *x,
		    const struct pieces *p, int i, struct spot *s)
{
	const struct value *y = &v->val.v[x->addr];
	uint32_t c = val_split(&v->val, x->addr, &s->rest);

	s->flags = y->flags;
	s->size = p->size;
	s->base = c + p->off[i];
	s->lo = y->lo + p->off[i];
	s->hi = y->hi > LDS_MAX ? LDS_MAX : y->hi + p->off[i];
	if (s->rest && c)
		s->rest = val_add(&v->val, s->rest, val_const(&v->val, -c));
}

static bool has_race(struct verifier *v, const struct lds_access *x,
		     const struct lds_access *y)
{
	struct pieces p, q;

	if ((x->atomic && y->atomic) || !(x->load || y->load) ||
	    !(x->store || y->store) ||
	    (x->store && y->store && !x->load && !y->load))
		return false;
	/*
	 * A condition may be what keeps a load and a later store apart; not
	 * where all lanes store.
	 */
	if (!x->store && v->val.v[y->exec].kind != VAL_ENTRY)
		return false;
	pieces_of(&v->g.insn[x->insn].in, &p);
	pieces_of(&v->g.insn[y->insn].in, &q);
	for (int i = 0; i < p.n; i++)
		for (int k = 0; k < q.n; k++) {
			struct spot a, b;

			spot_of(v, x, &p, i, &a);
			spot_of(v, y, &q, k, &b);
			if (spots_race(v, x, y, &a, &b))
				return true;
		}
	return false;
}

static void check_access(struct verifier *v, const struct vstate *s, int n)
{
	const struct lds_access *y = &v->lds[n];

	for (int w = 0; w < v->lds_words; w++)
		for (uint64_t m = s->lds[w]; m; m &= m - 1) {
			const struct lds_access *x =
				&v->lds[64 * w + __builtin_ctzll(m)];

			if (!has_race(v, x, y))
				continue;
			ver_report(
				v, VERIFY_LDS_RACE, y->insn,
				v->g.insn[x->insn].block,
				"another wave can be at the %s at 0x%llx in "
				"the same LDS bytes: no barrier is between",
				isa_op_info(v->g.insn[x->insn].in.op)->name,
				(unsigned long long)cfg_addr(&v->g, x->insn));
			return;
		}
}

void lds_step(struct verifier *v, struct vstate *s, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];
	int n = v->lds_of[insn];
	const struct isa_operand *o;

	if (x->flags & ISA_BARRIER)
		memset(s->lds, 0, 8 * v->lds_words);
	if (n < 0)
		return;
	o = operand_in_slot(&x->in, ISA_SLOT_VADDR);
	if (!v->check) {
		v->lds[n].addr = o ? step_operand(v, s, o, 0) :
				     val_insn(&v->val, insn, 0, VF_DARK);
		v->lds[n].exec = s->v[ISA_R_EXEC_LO];
	} else if (v->several_waves) {
		check_access(v, s, n);
	}
	s->lds[n / 64] |= UINT64_C(1) << (n & 63);
}

/* ------------------------------------------------------------- budgets ---- */

static void check_registers(struct verifier *v, int insn)
{
	const struct cfg_insn *x = &v->g.insn[insn];

	for (int i = 0; i < x->use.n; i++) {
		int end = x->use.reg[i].reg + x->use.reg[i].count;

		if (x->use.reg[i].file == ISA_K_VGPR && v->in->vgprs >= 0 &&
		    end > v->in->vgprs) {
			ver_report(v, VERIFY_VGPR_BUDGET, insn, -1,
				   "it uses v%d; the descriptor allocates %d "
				   "VGPRs",
				   end - 1, v->in->vgprs);
			return;
		}
		if (x->use.reg[i].file == ISA_K_SGPR && v->in->sgprs >= 0 &&
		    end <= ISA_R_VCC_LO && end > v->in->sgprs) {
			ver_report(v, VERIFY_SGPR_BUDGET, insn, -1,
				   "it uses s%d; %d SGPRs are declared",
				   end - 1, v->in->sgprs);
			return;
		}
	}
}

static bool is_bounded(const struct verifier *v, uint32_t x)
{
	return v->val.v[x].hi < LDS_MAX && !(v->val.v[x].flags & VF_DARK);
}

static void check_lds(struct verifier *v, const struct vstate *s, int insn)
{
	const struct isa_inst *in = &v->g.insn[insn].in;
	const struct isa_operand *o = operand_in_slot(in, ISA_SLOT_VADDR);
	uint32_t addr = o ? step_operand(v, s, o, 0) : 0;
	struct pieces p;

	if (v->lds_of[insn] < 0)
		return;
	if (v->in->lds_bytes < 0) {
		v->r->lds_of_launch = true;
		return;
	}
	if (!v->in->lds_bytes) {
		ver_report(v, VERIFY_LDS_BUDGET, insn, -1,
			   "it accesses LDS; the descriptor declares none");
		return;
	}
	if (!o || !is_bounded(v, addr))
		return;
	pieces_of(in, &p);
	for (int i = 0; i < p.n; i++) {
		int64_t end =
			(int64_t)v->val.v[addr].lo + (int32_t)p.off[i] + p.size;

		if (end <= v->in->lds_bytes)
			continue;
		ver_report(v, VERIFY_LDS_BUDGET, insn, -1,
			   "it reaches byte %lld or beyond; the descriptor "
			   "declares %lld bytes",
			   (long long)end - 1, (long long)v->in->lds_bytes);
		return;
	}
}

static void check_scratch(struct verifier *v, const struct vstate *s, int insn)
{
	const struct isa_inst *in = &v->g.insn[insn].in;
	const struct isa_operand *a = operand_in_slot(in, ISA_SLOT_VADDR);
	const struct isa_operand *b = operand_in_slot(in, ISA_SLOT_SADDR);
	const int unused = in->gen == ISA_GFX12 ? 8 : 19;
	int64_t at = (int32_t)(in->f[ISA_F_OFFSET] << unused) >> unused;
	uint32_t k, x;

	if (in->fmt != ISA_FMT_SCRATCH || v->in->scratch_bytes < 0)
		return;
	if (b && b->kind == ISA_K_SGPR) {
		if (!val_is_const(&v->val, step_operand(v, s, b, 0), &k))
			return;
		at += (int32_t)k;
	}
	if (a && a->kind == ISA_K_VGPR) {
		x = step_operand(v, s, a, 0);
		if (!is_bounded(v, x))
			return;
		at += v->val.v[x].lo;
	}
	if (at >= 0 && at + data_bytes(in) <= v->in->scratch_bytes)
		return;
	ver_report(v, VERIFY_SCRATCH_BUDGET, insn, -1,
		   "it accesses bytes %lld..%lld; the descriptor declares %lld "
		   "bytes of scratch",
		   (long long)at, (long long)at + data_bytes(in) - 1,
		   (long long)v->in->scratch_bytes);
}

void budget_check(struct verifier *v, const struct vstate *s, int insn)
{
	check_registers(v, insn);
	check_lds(v, s, insn);
	check_scratch(v, s, insn);
}
