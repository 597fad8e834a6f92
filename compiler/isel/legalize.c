/*
 * compiler/isel/legalize.c - legalization: SSA operations that no instruction
 * does become those that one does.
 */
#include "compiler/isel/select.h"

#include <string.h>

struct legal {
	struct ssa_func *f;
	struct ssa_inst *at; /* new instructions go before it */
	int own;	     /* group reductions with their own array */
};

static struct ssa_inst *make_inst(struct legal *l, enum ssa_op op,
				  struct ssa_type t, uint32_t n,
				  struct ssa_inst *const *arg)
{
	struct ssa_inst *i = ssa_inst_new(l->f, op, t, n, arg);

	i->line = l->at->line;
	i->flags = l->at->flags & (SSA_CONTRACT | SSA_FAST | SSA_REASSOC);
	ssa_insert_before(l->at, i);
	return i;
}

static struct ssa_inst *make_const(struct legal *l, struct ssa_type t,
				   uint64_t bits)
{
	struct ssa_inst *c = ssa_const(l->f, t, bits);

	/* Some makers of constants place them, some do not. */
	if (!c->block)
		ssa_insert_before(l->at, c);
	return c;
}

#define MAKE(l, op, t, ...) \
	make_inst(l, op, t, \
		  sizeof((struct ssa_inst *[]){ __VA_ARGS__ }) / \
			  sizeof(struct ssa_inst *), \
		  (struct ssa_inst *[]){ __VA_ARGS__ })

static const struct ssa_type t_i32 = { SSA_I32, 1 }, t_i1 = { SSA_I1, 1 };
static const struct ssa_type t_f32 = { SSA_F32, 1 }, t_lds = { SSA_LDS, 1 };
static const struct ssa_type t_void = { SSA_VOID, 0 };

/* ----------------------------------------------------- group reduction ---- */

static uint32_t waves_of(const struct ssa_func *f)
{
	uint32_t n = 1;

	for (int d = 0; d < 3; d++)
		n *= f->group[d] ? f->group[d] : 1;
	return (n + f->wave - 1) / f->wave;
}

static struct ssa_inst *make_icmp(struct legal *l, enum ssa_pred p,
				  struct ssa_inst *a, struct ssa_inst *b)
{
	struct ssa_inst *i = MAKE(l, SSA_icmp, t_i1, a, b);

	i->sub = (uint8_t)p;
	return i;
}

static struct ssa_inst *reduce_wave(struct legal *l, struct ssa_inst *i,
				    struct ssa_inst *a)
{
	struct ssa_inst *r = MAKE(l, SSA_reduce, a->type, a);

	r->sub = i->sub;
	return r;
}

/*
 * Lane 0 of each wave stores the wave's value; behind the barrier every lane
 * reads all of them, which are few and the same for all lanes, and combines
 * them in one order: all waves get the same bits.
 */
static struct ssa_inst *group_reduce(struct legal *l, struct ssa_inst *i,
				     uint32_t array, bool again)
{
	uint32_t n = waves_of(l->f), bytes = ssa_type_bytes(i->type);
	struct ssa_inst *r = reduce_wave(l, i, i->arg[0]), *lane, *wave, *base;
	struct ssa_inst *off, *m, *v = NULL, *st, *scale, *i0;
	uint8_t log = bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;

	if (n == 1)
		return r;
	lane = make_inst(l, SSA_lane, t_i32, 0, NULL);
	wave = make_inst(l, SSA_wave, t_i32, 0, NULL);
	base = make_inst(l, SSA_lds, t_lds, 0, NULL);
	base->imm = array;
	scale = make_const(l, t_i32, log);
	i0 = make_const(l, t_i32, 0);
	off = MAKE(l, SSA_shl, t_i32, wave, scale);
	m = make_icmp(l, SSA_EQ, lane, i0);
	/* What an earlier reduction left must have been read. */
	if (again)
		make_inst(l, SSA_barrier, t_void, 0, NULL);
	st = MAKE(l, SSA_store, t_void, base, off, r, m);
	st->align = log;
	make_inst(l, SSA_barrier, t_void, 0, NULL);
	for (uint32_t w = 0; w < n; w++) {
		struct ssa_inst *x = MAKE(l, SSA_load, i->type, base, i0);
		static const uint16_t op[SSA_RMWS] = {
			[SSA_RMW_ADD] = SSA_add,
			[SSA_RMW_MIN_S] = SSA_min_s,
			[SSA_RMW_MAX_S] = SSA_max_s,
			[SSA_RMW_MIN_U] = SSA_min_u,
			[SSA_RMW_MAX_U] = SSA_max_u,
			[SSA_RMW_AND] = SSA_and,
			[SSA_RMW_OR] = SSA_or,
			[SSA_RMW_XOR] = SSA_xor,
			[SSA_RMW_FADD] = SSA_fadd,
			[SSA_RMW_FMIN] = SSA_fmin,
			[SSA_RMW_FMAX] = SSA_fmax,
		};

		x->off = (int32_t)(w * bytes);
		x->align = log;
		v = v ? MAKE(l, op[i->sub], i->type, v, x) : x;
	}
	return v;
}

/* --------------------------------------------------------------- pairs ---- */

static bool is_pair(struct ssa_type t)
{
	return t.n == 2 && ssa_kind_bits(t.kind) == 16;
}

/* Which operations on pairs one instruction does. */
static bool is_packed_op(const struct ssa_inst *i)
{
	struct ssa_type t = i->n_args ? i->arg[0]->type : i->type;

	switch (i->op) {
	case SSA_and:
	case SSA_or:
	case SSA_xor:
	case SSA_not:
	case SSA_add:
	case SSA_sub:
	case SSA_mul:
	case SSA_shl:
	case SSA_shr_u:
	case SSA_shr_s:
	case SSA_min_u:
	case SSA_max_u:
	case SSA_min_s:
	case SSA_max_s:
		return t.kind == SSA_I16;
	case SSA_fadd:
	case SSA_fsub:
	case SSA_fmul:
	case SSA_fma:
	case SSA_fmin:
	case SSA_fmax:
		return t.kind == SSA_F16;
	case SSA_fneg:
	case SSA_fabs:
		return true;
	}
	return false;
}

/* Element-wise: the same operation may be done on each scalar. */
static bool element_wise(const struct ssa_inst *i)
{
	return (i->op >= SSA_add && i->op <= SSA_popcount) ||
	       (i->op >= SSA_fadd && i->op <= SSA_fround) ||
	       i->op == SSA_fcvt ||
	       (i->op >= SSA_fcvt_from_s && i->op <= SSA_fcvt_to_u) ||
	       i->op == SSA_zext || i->op == SSA_sext || i->op == SSA_trunc;
}

static struct ssa_inst *extract_elem(struct legal *l, struct ssa_inst *v,
				     uint32_t k)
{
	struct ssa_inst *e;

	if (v->type.n == 1)
		return v;
	e = MAKE(l, SSA_extract, ssa_type(v->type.kind, 1), v);
	e->imm = k;
	return e;
}

static struct ssa_inst *by_elements(struct legal *l, struct ssa_inst *i)
{
	struct ssa_inst *e[SSA_MAX_LANES], *arg[4];

	for (uint32_t k = 0; k < i->type.n; k++) {
		for (uint32_t a = 0; a < i->n_args && a < 4; a++)
			arg[a] = extract_elem(l, i->arg[a], k);
		e[k] = make_inst(l, i->op, ssa_type(i->type.kind, 1), i->n_args,
				 arg);
		e[k]->flags = i->flags;
		e[k]->sub = i->sub;
	}
	return make_inst(l, SSA_pack, i->type, i->type.n, e);
}

/* --------------------------------------------------------------- bf16 ---- */

static bool computes_float(const struct ssa_inst *i)
{
	return i->op >= SSA_fadd && i->op <= SSA_fround && i->op != SSA_fneg &&
	       i->op != SSA_fabs && i->op != SSA_copysign;
}

static struct ssa_inst *widen_bf16(struct legal *l, struct ssa_inst *v)
{
	return v->type.kind == SSA_BF16 ? MAKE(l, SSA_fcvt, t_f32, v) : v;
}

/* f32 holds more than twice the bits: rounding twice is rounding once. */
static struct ssa_inst *in_f32(struct legal *l, struct ssa_inst *i)
{
	struct ssa_inst *arg[4], *r;

	for (uint32_t a = 0; a < i->n_args && a < 4; a++)
		arg[a] = widen_bf16(l, i->arg[a]);
	r = make_inst(l, i->op, i->op == SSA_fcmp ? t_i1 : t_f32, i->n_args,
		      arg);
	r->sub = i->sub;
	r->flags = i->flags;
	return i->op == SSA_fcmp ? r : MAKE(l, SSA_fcvt, i->type, r);
}

static bool through_f32(const struct ssa_inst *i)
{
	struct ssa_type t = i->n_args ? i->arg[0]->type : i->type;

	if (t.n != 1 || t.kind != SSA_BF16)
		return false;
	return i->op == SSA_fcmp || computes_float(i);
}

/* -------------------------------------------------------------- driver ---- */

/* Outside of loops each has an array of its own, while there are few. */
enum { OWN_ARRAYS = 8 };

static struct ssa_inst *reduce_in_array(struct legal *l, struct ssa_inst *i,
					int *array)
{
	uint32_t size = waves_of(l->f) * 8;

	if (!i->block->loop && l->own++ < OWN_ARRAYS)
		return group_reduce(l, i,
				    ssa_lds_add(l->f, "group_reduce", size, 16),
				    false);
	if (*array < 0)
		*array = (int)ssa_lds_add(l->f, "group_reduce", size, 16);
	return group_reduce(l, i, (uint32_t)*array, true);
}

static struct ssa_inst *legalize_inst(struct legal *l, struct ssa_inst *i,
				      int *array)
{
	if (i->op == SSA_group_reduce)
		return reduce_in_array(l, i, array);
	if (i->type.n > 1 && element_wise(i) &&
	    !(is_pair(i->type) && is_packed_op(i)))
		return by_elements(l, i);
	if (through_f32(i))
		return in_f32(l, i);
	return NULL;
}

static bool round_of(struct legal *l, int *array)
{
	bool any = false;

	for (struct ssa_block *b = l->f->first; b; b = b->next) {
		struct ssa_inst *next;

		for (struct ssa_inst *i = b->first; i; i = next) {
			struct ssa_inst *r;

			next = i->next;
			l->at = i;
			r = legalize_inst(l, i, array);
			if (!r)
				continue;
			ssa_replace(l->f, i, r);
			ssa_unlink(i);
			any = true;
		}
	}
	return any;
}

bool sel_legalize(struct ssa_func *f, struct err *e)
{
	struct legal l = { .f = f };
	int array = -1;

	if (!sel_legalize_printf(f, e))
		return false;
	ssa_analyse(f);
	while (round_of(&l, &array))
		;
	return ssa_check(f, e);
}
