/*
 * compiler/ssa/range.c - bounds and zero bits of integers.
 */
#include "compiler/ssa/ssa.h"

enum { DEPTH = 6, MAX_CHAIN = 16 };

static uint64_t top_of(struct ssa_type t)
{
	return ssa_bits_cut(t.kind, ~(uint64_t)0);
}

static struct ssa_bounds full_range(struct ssa_type t)
{
	return (struct ssa_bounds){ 0, top_of(t) };
}

static struct ssa_bounds up_to(uint64_t max)
{
	return (struct ssa_bounds){ 0, max };
}

static struct ssa_bounds value_bounds(const struct ssa_func *f,
				      const struct ssa_inst *i, int depth);

static struct ssa_bounds arg_bounds(const struct ssa_func *f,
				    const struct ssa_inst *i, uint32_t k,
				    int depth)
{
	return value_bounds(f, i->arg[k], depth - 1);
}

/* A grid has fewer than 2^32 work-items in each dimension. */
static struct ssa_bounds leaf_bounds(const struct ssa_func *f,
				     const struct ssa_inst *i)
{
	const uint32_t items = f->group[0] * f->group[1] * f->group[2];

	switch (i->op) {
	case SSA_const:
		return (struct ssa_bounds){ i->imm, i->imm };
	case SSA_local_id:
		return up_to(f->group[i->imm] - 1);
	case SSA_lane:
		return up_to((items < f->wave ? items : f->wave) - 1);
	case SSA_wave:
		return up_to((items - 1) / f->wave);
	case SSA_group_id:
	case SSA_num_groups:
		return up_to(UINT32_MAX / f->group[i->imm]);
	case SSA_clock:
		return up_to(0xfffff);
	default:
		return full_range(i->type);
	}
}

static bool add_fits(uint64_t a, uint64_t b, struct ssa_type t, uint64_t *out)
{
	return !__builtin_add_overflow(a, b, out) && *out <= top_of(t);
}

static bool mul_fits(uint64_t a, uint64_t b, struct ssa_type t, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out) && *out <= top_of(t);
}

static struct ssa_bounds arith_bounds(const struct ssa_func *f,
				      const struct ssa_inst *i, int depth)
{
	const struct ssa_bounds a = arg_bounds(f, i, 0, depth);
	const struct ssa_bounds b = arg_bounds(f, i, 1, depth);
	struct ssa_bounds r = full_range(i->type);
	uint64_t max;

	switch (i->op) {
	case SSA_add:
		if (add_fits(a.max, b.max, i->type, &max))
			r = (struct ssa_bounds){ a.min + b.min, max };
		break;
	case SSA_sub:
		if (a.min >= b.max)
			r = (struct ssa_bounds){ a.min - b.max, a.max - b.min };
		break;
	case SSA_mul:
		if (mul_fits(a.max, b.max, i->type, &max))
			r = (struct ssa_bounds){ a.min * b.min, max };
		break;
	case SSA_shl:
		if (b.max < 32 &&
		    mul_fits(a.max, (uint64_t)1 << b.max, i->type, &max))
			r = (struct ssa_bounds){ a.min << b.min, max };
		break;
	case SSA_shr_u:
		if (b.max < ssa_kind_bits(i->type.kind))
			r = (struct ssa_bounds){ a.min >> b.max,
						 a.max >> b.min };
		break;
	case SSA_and:
		r.max = a.max < b.max ? a.max : b.max;
		break;
	case SSA_rem_u:
		r.max = b.min && b.max - 1 < a.max ? b.max - 1 : a.max;
		break;
	case SSA_div_u:
		if (b.min)
			r = (struct ssa_bounds){ a.min / b.max,
						 a.max / b.min };
		break;
	case SSA_min_u:
		r.min = a.min < b.min ? a.min : b.min;
		r.max = a.max < b.max ? a.max : b.max;
		break;
	case SSA_max_u:
		r.min = a.min > b.min ? a.min : b.min;
		r.max = a.max > b.max ? a.max : b.max;
		break;
	default:
		break;
	}
	return r;
}

/* The value that enters the loop of param k's header, and what comes around. */
static bool loop_values(const struct ssa_inst *param, struct ssa_inst **init,
			struct ssa_inst **next)
{
	const struct ssa_block *b = param->block;
	uint32_t k = 0;

	if (b->loop != b || b->n_preds != 2)
		return false;
	while (b->param[k] != param)
		k++;
	*init = *next = NULL;
	for (uint32_t p = 0; p < 2; p++) {
		const struct ssa_inst *t = b->pred[p]->last;
		const uint32_t e = t->edge[0].to == b ? 0 : 1;

		*(ssa_loop_has(b, b->pred[p]) ? next : init) =
			t->edge[e].arg[k];
	}
	return *init && *next;
}

/*
 * What a trip adds to the parameter: a chain of additions of constants, all
 * with this flag; false if it is something else.
 */
static bool trip_adds(const struct ssa_inst *param, const struct ssa_inst *next,
		      uint16_t flag, uint64_t *sum, uint32_t *zeros)
{
	*sum = 0;
	*zeros = 64;
	for (int n = 0; next != param; n++, next = next->arg[0]) {
		if (n == MAX_CHAIN || next->op != SSA_add ||
		    (next->flags & flag) != flag ||
		    next->arg[1]->op != SSA_const ||
		    !add_fits(*sum, next->arg[1]->imm, param->type, sum))
			return false;
		if (next->arg[1]->imm &&
		    (uint32_t)__builtin_ctzll(next->arg[1]->imm) < *zeros)
			*zeros = (uint32_t)__builtin_ctzll(next->arg[1]->imm);
	}
	return true;
}

/*
 * A counter that starts at 0 or above and is only ever increased, without
 * wrapping, stays there: as a signed number up to the largest one.
 */
static struct ssa_bounds param_bounds(const struct ssa_func *f,
				      const struct ssa_inst *i, int depth)
{
	struct ssa_inst *init, *next;
	struct ssa_bounds r = full_range(i->type);
	const uint64_t half = top_of(i->type) >> 1;
	uint32_t zeros;
	uint64_t sum;

	if (!ssa_kind_is_int(i->type.kind) || i->type.n != 1 ||
	    !loop_values(i, &init, &next))
		return r;
	const struct ssa_bounds from = value_bounds(f, init, depth - 1);

	if (trip_adds(i, next, SSA_NUW, &sum, &zeros))
		r.min = from.min;
	if (from.max <= half && trip_adds(i, next, SSA_NSW, &sum, &zeros) &&
	    sum <= half)
		r = (struct ssa_bounds){ from.min, half };
	return r;
}

static struct ssa_bounds value_bounds(const struct ssa_func *f,
				      const struct ssa_inst *i, int depth)
{
	if (!i->n_args)
		return i->op == SSA_param && depth ?
			       param_bounds(f, i, depth) : leaf_bounds(f, i);
	if (!depth || i->type.n != 1 || !ssa_kind_is_int(i->type.kind))
		return full_range(i->type);
	struct ssa_bounds a, b;

	switch (i->op) {
	case SSA_zext:
	case SSA_read_first:
		return arg_bounds(f, i, 0, depth);
	case SSA_sext:
	case SSA_trunc:
		a = arg_bounds(f, i, 0, depth);
		if (a.max <= (i->op == SSA_trunc ?
				      top_of(i->type) :
				      top_of(i->arg[0]->type) >> 1))
			return a;
		return full_range(i->type);
	case SSA_select:
		a = arg_bounds(f, i, 1, depth);
		b = arg_bounds(f, i, 2, depth);
		return (struct ssa_bounds){ a.min < b.min ? a.min : b.min,
					    a.max > b.max ? a.max : b.max };
	case SSA_clz:
	case SSA_ctz:
	case SSA_popcount:
		return up_to(32);
	default:
		return i->n_args == 2 && i->op < SSA_not ?
			       arith_bounds(f, i, depth) :
		       i->n_args == 2 && i->op < SSA_clz ?
			       arith_bounds(f, i, depth) :
			       full_range(i->type);
	}
}

struct ssa_bounds ssa_bounds(const struct ssa_func *f, const struct ssa_inst *i)
{
	return value_bounds(f, i, DEPTH);
}

static uint32_t zero_bits(const struct ssa_inst *i, int depth)
{
	const uint32_t bits = ssa_kind_bits(i->type.kind);

	if (i->type.n != 1)
		return 0;
	if (i->op == SSA_const)
		return i->imm ? (uint32_t)__builtin_ctzll(i->imm) : bits;
	if (i->op == SSA_param && depth) {
		struct ssa_inst *init, *next;
		uint32_t zeros;
		uint64_t sum;

		if (!loop_values(i, &init, &next) ||
		    !trip_adds(i, next, 0, &sum, &zeros))
			return 0;
		const uint32_t from = zero_bits(init, depth - 1);

		return from < zeros ? from : zeros;
	}
	if (!depth || i->n_args != 2)
		return 0;
	const uint32_t a = zero_bits(i->arg[0], depth - 1);
	const uint32_t b = zero_bits(i->arg[1], depth - 1);

	switch (i->op) {
	case SSA_add:
	case SSA_sub:
	case SSA_or:
	case SSA_xor:
		return a < b ? a : b;
	case SSA_and:
		return a > b ? a : b;
	case SSA_mul:
		return a + b < bits ? a + b : bits;
	case SSA_shl:
		if (i->arg[1]->op != SSA_const || i->arg[1]->imm >= bits)
			return a;
		return a + i->arg[1]->imm < bits ?
			       a + (uint32_t)i->arg[1]->imm : bits;
	default:
		return 0;
	}
}

uint32_t ssa_zero_bits(const struct ssa_inst *i)
{
	return zero_bits(i, DEPTH);
}

bool ssa_adds_exactly(const struct ssa_func *f, const struct ssa_inst *a,
		      const struct ssa_inst *b)
{
	const struct ssa_bounds x = ssa_bounds(f, a), y = ssa_bounds(f, b);
	const uint32_t zeros = ssa_zero_bits(a);
	uint64_t sum;

	return add_fits(x.max, y.max, a->type, &sum) ||
	       (zeros < 64 && y.max < (uint64_t)1 << zeros);
}

bool ssa_never_negative(const struct ssa_func *f, const struct ssa_inst *i)
{
	return ssa_bounds(f, i).max <= top_of(i->type) >> 1;
}
