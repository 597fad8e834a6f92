/*
 * compiler/ssa/eval.c - what a pure operation computes, on bits.
 */
#include <math.h>
#include <string.h>

#include "compiler/ssa/ssa.h"

/* ------------------------------------------------------------ integers -- */

static uint64_t div_s(int64_t a, int64_t b, bool rem)
{
	if (!b)
		return rem ? (uint64_t)a : ~(uint64_t)0;
	if (b == -1) /* MIN / -1 wraps */
		return rem ? 0 : -(uint64_t)a;
	return (uint64_t)(rem ? a % b : a / b);
}

static bool eval_divide(enum ssa_op op, enum ssa_kind kind, uint64_t a,
			uint64_t b, uint64_t *out)
{
	const int64_t sa = ssa_bits_to_s(kind, a), sb = ssa_bits_to_s(kind, b);

	switch (op) {
	case SSA_div_u:
		*out = b ? a / b : ~(uint64_t)0;
		return true;
	case SSA_rem_u:
		*out = b ? a % b : a;
		return true;
	case SSA_div_s:
		*out = div_s(sa, sb, false);
		return true;
	case SSA_rem_s:
		*out = div_s(sa, sb, true);
		return true;
	default:
		return false;
	}
}

static bool eval_order(enum ssa_op op, enum ssa_kind kind, uint64_t a,
		       uint64_t b, uint64_t *out)
{
	const int64_t sa = ssa_bits_to_s(kind, a), sb = ssa_bits_to_s(kind, b);

	switch (op) {
	case SSA_min_u:
		*out = a < b ? a : b;
		return true;
	case SSA_max_u:
		*out = a > b ? a : b;
		return true;
	case SSA_min_s:
		*out = sa < sb ? a : b;
		return true;
	case SSA_max_s:
		*out = sa > sb ? a : b;
		return true;
	default:
		return eval_divide(op, kind, a, b, out);
	}
}

static bool eval_int2(enum ssa_op op, enum ssa_kind kind, uint64_t a,
		      uint64_t b, uint64_t *out)
{
	const uint32_t count = (uint32_t)b & (ssa_kind_bits(kind) - 1);

	switch (op) {
	case SSA_add:
		*out = a + b;
		return true;
	case SSA_sub:
		*out = a - b;
		return true;
	case SSA_mul:
		*out = a * b;
		return true;
	case SSA_mulhi_u:
		*out = a * b >> 32;
		return true;
	case SSA_mulhi_s:
		*out = (uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32;
		return true;
	case SSA_and:
		*out = a & b;
		return true;
	case SSA_or:
		*out = a | b;
		return true;
	case SSA_xor:
		*out = a ^ b;
		return true;
	case SSA_shl:
		*out = a << count;
		return true;
	case SSA_shr_u:
		*out = a >> count;
		return true;
	case SSA_shr_s:
		*out = (uint64_t)(ssa_bits_to_s(kind, a) >> count);
		return true;
	default:
		return eval_order(op, kind, a, b, out);
	}
}

static bool eval_int1(enum ssa_op op, uint64_t a, uint64_t *out)
{
	const uint32_t low = (uint32_t)a;

	switch (op) {
	case SSA_not:
		*out = ~a;
		return true;
	case SSA_clz:
		*out = low ? (uint64_t)__builtin_clz(low) : 32;
		return true;
	case SSA_ctz:
		*out = low ? (uint64_t)__builtin_ctz(low) : 32;
		return true;
	case SSA_popcount:
		*out = (uint64_t)__builtin_popcount(low);
		return true;
	default:
		return false;
	}
}

static uint64_t eval_dot4(uint64_t a, uint64_t b, uint64_t c)
{
	for (int k = 0; k < 4; k++)
		c += (uint64_t)(int64_t)((int8_t)(a >> 8 * k) *
					 (int8_t)(b >> 8 * k));
	return c;
}

/* -------------------------------------------------------------- floats -- */

/* A number beats a NaN; -0 is less than +0. */
static uint64_t min_max(enum ssa_kind kind, uint64_t a, uint64_t b, bool max)
{
	const double x = ssa_bits_to_f64(kind, a), y = ssa_bits_to_f64(kind, b);

	if (isnan(x))
		return isnan(y) ? ssa_f64_to_bits(kind, NAN) : b;
	if (isnan(y))
		return a;
	if (x == y)
		return (signbit(x) != 0) != max ? a : b;
	return (x < y) != max ? a : b;
}

static bool eval_float2(enum ssa_op op, enum ssa_kind kind, uint64_t a,
			uint64_t b, uint64_t *out)
{
	const double x = ssa_bits_to_f64(kind, a), y = ssa_bits_to_f64(kind, b);
	const uint64_t sign = 1ull << (ssa_kind_bits(kind) - 1);
	double r;

	/* Twice the bits and two: rounding again gives the same. */
	switch (op) {
	case SSA_fadd:
		r = x + y;
		break;
	case SSA_fsub:
		r = x - y;
		break;
	case SSA_fmul:
		r = x * y;
		break;
	case SSA_fdiv:
		r = x / y;
		break;
	case SSA_copysign:
		*out = (a & ~sign) | (b & sign);
		return true;
	case SSA_fmin:
	case SSA_fmax:
		*out = min_max(kind, a, b, op == SSA_fmax);
		return true;
	default:
		return false;
	}
	*out = ssa_f64_to_bits(kind, r);
	return true;
}

/* sin(2 pi x): the nearest quarter turn goes first, so that it is exact. */
static double sin_turns(double x, int quarter)
{
	if (!isfinite(x))
		return NAN;
	const double n = rint(4 * x), r = (x - n / 4) * 2 * M_PI;
	const int q = (int)((int64_t)fmod(n, 4) + quarter) & 3;
	const double v = q & 1 ? cos(r) : sin(r);

	return q & 2 ? -v : v;
}

static bool compute_float1(enum ssa_op op, double x, double *r)
{
	switch (op) {
	case SSA_fsqrt:
		*r = sqrt(x);
		return true;
	case SSA_frsqrt:
		*r = 1 / sqrt(x);
		return true;
	case SSA_frcp:
		*r = 1 / x;
		return true;
	case SSA_fexp2:
		*r = exp2(x);
		return true;
	case SSA_flog2:
		*r = log2(x);
		return true;
	case SSA_fsin_turns:
		*r = sin_turns(x, 0);
		return true;
	case SSA_fcos_turns:
		*r = sin_turns(x, 1);
		return true;
	case SSA_ffloor:
		*r = floor(x);
		return true;
	case SSA_fceil:
		*r = ceil(x);
		return true;
	case SSA_ftrunc:
		*r = trunc(x);
		return true;
	case SSA_fround:
		*r = rint(x);
		return true;
	default:
		return false;
	}
}

static bool eval_float1(enum ssa_op op, enum ssa_kind kind, uint64_t a,
			uint64_t *out)
{
	const uint64_t sign = 1ull << (ssa_kind_bits(kind) - 1);
	double r;

	if (op == SSA_fneg || op == SSA_fabs) {
		*out = op == SSA_fneg ? a ^ sign : a & ~sign;
		return true;
	}
	if (!compute_float1(op, ssa_bits_to_f64(kind, a), &r))
		return false;
	*out = ssa_f64_to_bits(kind, r);
	return true;
}

static uint64_t eval_dot2(enum ssa_kind kind, uint64_t a, uint64_t b,
			  uint64_t c)
{
	double sum = ssa_bits_to_f64(SSA_F32, c);

	/* Products and their sum are exact in double but for wide spans. */
	for (int k = 0; k < 2; k++)
		sum += ssa_bits_to_f64(kind, a >> 16 * k & 0xffff) *
		       ssa_bits_to_f64(kind, b >> 16 * k & 0xffff);
	return ssa_f64_to_bits(SSA_F32, sum);
}

/* --------------------------------------------------------- conversions -- */

static uint64_t to_int(double x, bool is_signed)
{
	const double low = is_signed ? INT32_MIN : 0;
	const double high = is_signed ? INT32_MAX : UINT32_MAX;

	if (isnan(x))
		return 0;
	x = trunc(x);
	x = x < low ? low : x > high ? high : x;
	return is_signed ? (uint32_t)(int32_t)x : (uint32_t)x;
}

static bool eval_convert(const struct ssa_inst *i, uint64_t a, uint64_t *out)
{
	const enum ssa_kind from = i->arg[0]->type.kind, to = i->type.kind;

	switch (i->op) {
	case SSA_zext:
	case SSA_trunc:
	case SSA_bitcast:
		*out = a;
		return true;
	case SSA_sext:
		*out = (uint64_t)ssa_bits_to_s(from, a);
		return true;
	case SSA_fcvt:
		*out = ssa_f64_to_bits(to, ssa_bits_to_f64(from, a));
		return true;
	case SSA_fcvt_from_s:
		*out = ssa_f64_to_bits(to, (int32_t)a);
		return true;
	case SSA_fcvt_from_u:
		*out = ssa_f64_to_bits(to, (uint32_t)a);
		return true;
	case SSA_fcvt_to_s:
	case SSA_fcvt_to_u:
		*out = to_int(ssa_bits_to_f64(from, a), i->op == SSA_fcvt_to_s);
		return true;
	default:
		return false;
	}
}

/* --------------------------------------------------------- comparisons -- */

static bool pred_float(enum ssa_pred p, double x, double y)
{
	const bool unordered = isnan(x) || isnan(y);

	if (p == SSA_ORD || p == SSA_UNO)
		return unordered == (p == SSA_UNO);
	if (unordered)
		return p >= SSA_FUEQ;
	switch (p) {
	case SSA_FOEQ: case SSA_FUEQ: return x == y;
	case SSA_FONE: case SSA_FUNE: return x != y;
	case SSA_FOLT: case SSA_FULT: return x < y;
	case SSA_FOLE: case SSA_FULE: return x <= y;
	case SSA_FOGT: case SSA_FUGT: return x > y;
	default: return x >= y;
	}
}

static bool pred_int(enum ssa_pred p, int64_t x, int64_t y, uint64_t a,
		     uint64_t b)
{
	switch (p) {
	case SSA_EQ: return a == b;
	case SSA_NE: return a != b;
	case SSA_SLT: return x < y;
	case SSA_SLE: return x <= y;
	case SSA_SGT: return x > y;
	case SSA_SGE: return x >= y;
	case SSA_ULT: return a < b;
	case SSA_ULE: return a <= b;
	case SSA_UGT: return a > b;
	default: return a >= b;
	}
}

bool ssa_eval_pred(enum ssa_pred p, enum ssa_kind kind, uint64_t a, uint64_t b)
{
	if (p >= SSA_FOEQ)
		return pred_float(p, ssa_bits_to_f64(kind, a),
				  ssa_bits_to_f64(kind, b));
	return pred_int(p, ssa_bits_to_s(kind, a), ssa_bits_to_s(kind, b), a,
			b);
}

/* ----------------------------------------------------------------- all -- */

static bool eval_scalar(enum ssa_op op, enum ssa_kind kind, const uint64_t *arg,
			uint32_t n, uint64_t *out)
{
	const bool is_float = ssa_kind_is_float(kind);

	if (n == 3 && op == SSA_fma)
		*out = ssa_fma_bits(kind, arg[0], arg[1], arg[2]);
	else if (n == 3 && op == SSA_dot4_s)
		*out = eval_dot4(arg[0], arg[1], arg[2]);
	else if (n == 2 && !(is_float ? eval_float2 : eval_int2)(
				   op, kind, arg[0], arg[1], out))
		return false;
	else if (n == 1 && !(is_float ? eval_float1(op, kind, arg[0], out) :
					eval_int1(op, arg[0], out)))
		return false;
	else if (!n || (n == 3 && op != SSA_fma && op != SSA_dot4_s))
		return false;
	*out = ssa_bits_cut(kind, *out);
	return true;
}

static bool eval_pair(const struct ssa_inst *i, const uint64_t *arg,
		      uint64_t *out)
{
	*out = 0;
	for (uint32_t h = 0; h < 2; h++) {
		uint64_t half[3], r;

		for (uint32_t k = 0; k < i->n_args && k < 3; k++)
			half[k] = arg[k] >> 16 * h & 0xffff;
		if (!eval_scalar(i->op, i->type.kind, half, i->n_args, &r))
			return false;
		*out |= r << 16 * h;
	}
	return true;
}

bool ssa_eval(const struct ssa_inst *i, const uint64_t *arg, uint64_t *out)
{
	if (!i->n_args || i->n_args > 3)
		return false;
	const enum ssa_kind from = i->arg[0]->type.kind;

	if (i->op == SSA_icmp || i->op == SSA_fcmp) {
		*out = ssa_eval_pred(i->sub, from, arg[0], arg[1]);
		return true;
	}
	if (i->op == SSA_select) {
		*out = arg[0] ? arg[1] : arg[2];
		return ssa_type_bytes(i->type) <= 8;
	}
	if (i->op == SSA_dot2) {
		*out = eval_dot2(from, arg[0], arg[1], arg[2]);
		return true;
	}
	if (i->op >= SSA_zext && i->op <= SSA_fcvt_to_u) {
		if (ssa_type_bytes(i->type) > 8 ||
		    !eval_convert(i, arg[0], out))
			return false;
		if (i->type.n == 1)
			*out = ssa_bits_cut(i->type.kind, *out);
		return true;
	}
	if (i->op == SSA_ptradd) {
		*out = arg[0] + (uint64_t)ssa_bits_to_s(i->arg[1]->type.kind,
							arg[1]);
		*out = ssa_bits_cut(i->type.kind, *out);
		return true;
	}
	if (i->op < SSA_add || i->op > SSA_fround)
		return false;
	return i->type.n == 2 ? eval_pair(i, arg, out) :
				eval_scalar(i->op, from, arg, i->n_args, out);
}

bool ssa_eval_exact(const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_frsqrt:
	case SSA_frcp:
	case SSA_fexp2:
	case SSA_flog2:
	case SSA_fsin_turns:
	case SSA_fcos_turns:
	case SSA_dot2:
		return false;
	case SSA_fsqrt:
	case SSA_fdiv:
		return !(i->flags & SSA_FAST);
	default:
		return true;
	}
}

/* ---------------------------------------------------------- reductions -- */

static const uint16_t rmw_op[SSA_RMWS] = {
	[SSA_RMW_ADD] = SSA_add,     [SSA_RMW_MIN_S] = SSA_min_s,
	[SSA_RMW_MAX_S] = SSA_max_s, [SSA_RMW_MIN_U] = SSA_min_u,
	[SSA_RMW_MAX_U] = SSA_max_u, [SSA_RMW_AND] = SSA_and,
	[SSA_RMW_OR] = SSA_or,	     [SSA_RMW_XOR] = SSA_xor,
	[SSA_RMW_FADD] = SSA_fadd,   [SSA_RMW_FMIN] = SSA_fmin,
	[SSA_RMW_FMAX] = SSA_fmax,
};

uint64_t ssa_eval_rmw(enum ssa_rmw op, struct ssa_type t, uint64_t a,
		      uint64_t b)
{
	const uint64_t arg[2] = { a, b };
	uint64_t out = b; /* xchg */

	if (op != SSA_RMW_XCHG &&
	    !eval_scalar(rmw_op[op], t.kind, arg, 2, &out))
		BUG("combining operation %d", op);
	return out;
}

uint64_t ssa_rmw_identity(enum ssa_rmw op, struct ssa_type t)
{
	const uint32_t bits = ssa_kind_bits(t.kind);
	const uint64_t ones = ssa_bits_cut(t.kind, ~(uint64_t)0);

	switch (op) {
	case SSA_RMW_MIN_S:
		return ones >> 1;
	case SSA_RMW_MAX_S:
		return 1ull << (bits - 1);
	case SSA_RMW_MIN_U:
	case SSA_RMW_AND:
		return ones;
	case SSA_RMW_FADD:
		return ssa_f64_to_bits(t.kind, -0.0);
	case SSA_RMW_FMIN:
		return ssa_f64_to_bits(t.kind, INFINITY);
	case SSA_RMW_FMAX:
		return ssa_f64_to_bits(t.kind, -INFINITY);
	default:
		return 0;
	}
}
