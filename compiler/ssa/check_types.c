/*
 * compiler/ssa/check_types.c - the verifier's rules for one instruction: number
 * and types of its operands and of its result.
 */
#include <string.h>

#include "compiler/ssa/ssa_int.h"

/* Sets of kinds, for the rules below. */
enum {
	I1 = 1 << SSA_I1,
	I8 = 1 << SSA_I8,
	I16 = 1 << SSA_I16,
	I32 = 1 << SSA_I32,
	I64 = 1 << SSA_I64,
	F16 = 1 << SSA_F16,
	BF16 = 1 << SSA_BF16,
	F32 = 1 << SSA_F32,
	F64 = 1 << SSA_F64,
	PTR = 1 << SSA_PTR,
	LDS = 1 << SSA_LDS,
	INTS = I16 | I32 | I64,
	FLOATS = F16 | F32 | F64,
	MOVED = I8 | I16 | I32 | F16 | BF16 | F32,
	STORED = MOVED | I64 | F64 | PTR,
	PACKED = 1 << 30, /* pairs of I16 and F16 too, where in the set */
};

/* Which types operand 0 (without operands: the result) may have. */
static const uint32_t operand_kinds[SSA_OPS] = {
	[SSA_local_id] = I32, [SSA_group_id] = I32, [SSA_num_groups] = I32,
	[SSA_lane] = I32, [SSA_wave] = I32, [SSA_lds] = LDS,
	[SSA_add] = INTS | PACKED, [SSA_sub] = INTS | PACKED,
	[SSA_mul] = INTS | PACKED, [SSA_mulhi_u] = I32, [SSA_mulhi_s] = I32,
	[SSA_div_u] = INTS, [SSA_div_s] = INTS, [SSA_rem_u] = INTS,
	[SSA_rem_s] = INTS, [SSA_and] = INTS | I1 | PACKED,
	[SSA_or] = INTS | I1 | PACKED, [SSA_xor] = INTS | I1 | PACKED,
	[SSA_not] = INTS | I1 | PACKED, [SSA_shl] = INTS | PACKED,
	[SSA_shr_u] = INTS | PACKED, [SSA_shr_s] = INTS | PACKED,
	[SSA_min_u] = INTS | PACKED, [SSA_max_u] = INTS | PACKED,
	[SSA_min_s] = INTS | PACKED, [SSA_max_s] = INTS | PACKED,
	[SSA_clz] = I32, [SSA_ctz] = I32, [SSA_popcount] = I32,
	[SSA_dot4_s] = I32, [SSA_fadd] = FLOATS | PACKED,
	[SSA_fsub] = FLOATS | PACKED, [SSA_fmul] = FLOATS | PACKED,
	[SSA_fma] = FLOATS | PACKED, [SSA_fdiv] = F16 | F32,
	[SSA_fneg] = FLOATS | PACKED, [SSA_fabs] = FLOATS | PACKED,
	[SSA_copysign] = FLOATS, [SSA_fmin] = FLOATS | PACKED,
	[SSA_fmax] = FLOATS | PACKED, [SSA_fsqrt] = F16 | F32,
	[SSA_frsqrt] = F16 | F32, [SSA_frcp] = F16 | F32,
	[SSA_fexp2] = F16 | F32, [SSA_flog2] = F16 | F32,
	[SSA_fsin_turns] = F16 | F32, [SSA_fcos_turns] = F16 | F32,
	[SSA_ffloor] = FLOATS, [SSA_fceil] = FLOATS, [SSA_ftrunc] = FLOATS,
	[SSA_fround] = FLOATS, [SSA_icmp] = INTS | PTR | LDS,
	[SSA_fcmp] = FLOATS, [SSA_select] = I1,
	[SSA_zext] = I1 | I8 | I16 | I32,
	[SSA_sext] = I1 | I8 | I16 | I32, [SSA_trunc] = I16 | I32 | I64,
	[SSA_fcvt] = F16 | BF16 | F32 | F64, [SSA_fcvt_from_s] = I32,
	[SSA_fcvt_from_u] = I32, [SSA_fcvt_to_s] = F32 | F64,
	[SSA_fcvt_to_u] = F32 | F64, [SSA_ptradd] = PTR | LDS,
	[SSA_load] = PTR | LDS, [SSA_store] = PTR | LDS,
	[SSA_atomic] = PTR | LDS, [SSA_cmpxchg] = PTR | LDS,
	[SSA_shuffle] = MOVED, [SSA_shuffle_xor] = MOVED,
	[SSA_read_first] = STORED | LDS, [SSA_read_lane] = MOVED,
	[SSA_ballot] = I1, [SSA_reduce] = I32 | F32, [SSA_scan] = I32 | F32,
	[SSA_group_reduce] = I32 | F32, [SSA_clock] = I32, [SSA_assume] = I1,
	[SSA_branch] = I1,
};

static bool in_set(struct ssa_type t, uint32_t set)
{
	const bool pair = t.n == 2 && (t.kind == SSA_I16 || t.kind == SSA_F16);

	return (set >> t.kind & 1) && (t.n == 1 || (pair && set & PACKED));
}

static bool is_type(struct ssa_type t, enum ssa_kind kind, uint32_t n)
{
	return t.kind == kind && t.n == n;
}

bool ssa_type_valid(struct ssa_type t)
{
	if (t.kind == SSA_VOID)
		return t.n == 0;
	return t.kind < SSA_KINDS && t.n >= 1 && t.n <= SSA_MAX_LANES &&
	       (t.n == 1 || in_set(ssa_type(t.kind, 1), STORED));
}

/* Do operands from..to-1 have the type of operand 0? */
static bool args_equal(const struct ssa_inst *i, uint32_t from, uint32_t to)
{
	for (uint32_t k = from; k < to; k++)
		if (!ssa_type_eq(i->arg[0]->type, i->arg[k]->type))
			return false;
	return true;
}

static uint32_t type_bits(struct ssa_type t)
{
	return t.n * ssa_kind_bits(t.kind);
}

static const char *check_leaf(const struct ssa_func *f,
			      const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_const:
		if (i->imm && type_bits(i->type) > 64)
			return "a constant of more than 8 bytes is not zero";
		if (type_bits(i->type) < 64 && i->imm >> type_bits(i->type))
			return "bits set above the type's";
		return NULL;
	case SSA_arg:
		if (i->imm >= f->n_args)
			return "no such kernel argument";
		return ssa_type_eq(i->type, f->arg[i->imm].type) ?
			       NULL : "type differs from the argument's";
	case SSA_lds:
		return i->imm < f->n_lds ? NULL : "no such LDS array";
	case SSA_local_id:
	case SSA_group_id:
	case SSA_num_groups:
		return i->imm < 3 ? NULL : "dimension is not 0, 1 or 2";
	default:
		return NULL;
	}
}

/* Conversions: from operand 0 to the result. */
static const char *check_convert(const struct ssa_inst *i)
{
	const struct ssa_type a = i->arg[0]->type, t = i->type;

	switch (i->op) {
	case SSA_zext:
	case SSA_sext:
		if (!in_set(t, INTS) || type_bits(t) <= type_bits(a))
			return "the result is no wider integer";
		return NULL;
	case SSA_trunc:
		if (!in_set(t, I8 | I16 | I32) || type_bits(t) >= type_bits(a))
			return "the result is no narrower integer";
		return NULL;
	case SSA_bitcast:
		if (type_bits(t) != type_bits(a) || t.kind == SSA_I1)
			return "the number of bits differs";
		return NULL;
	case SSA_fcvt:
		if (!in_set(t, F16 | BF16 | F32 | F64) ||
		    is_type(a, SSA_F32, 1) == is_type(t, SSA_F32, 1))
			return "wanted f32 on exactly one side";
		return NULL;
	case SSA_fcvt_from_s:
	case SSA_fcvt_from_u:
		return in_set(t, F32 | F64) ? NULL : "wanted f32 or f64";
	default:
		return in_set(t, I32) ? NULL : "wanted i32";
	}
}

static const char *check_vector(const struct ssa_inst *i)
{
	if (i->op == SSA_extract) {
		const struct ssa_type v = i->arg[0]->type;

		if (v.n < 2 || i->imm >= v.n)
			return "no such element";
		return is_type(i->type, v.kind, 1) ?
			       NULL :
			       "type is not the element's";
	}
	if (i->type.n != i->n_args || i->type.n < 2)
		return "number of operands is not that of the elements";
	for (uint32_t k = 0; k < i->n_args; k++)
		if (!is_type(i->arg[k]->type, i->type.kind, 1))
			return "an operand has not the element's type";
	return NULL;
}

/* What is read or written, the number of operands without and with mask. */
static const char *check_memory(const struct ssa_inst *i)
{
	const uint32_t fixed = i->op == SSA_load ? 2 : i->op == SSA_cmpxchg ?
						   4 : 3;

	if (i->n_args != fixed &&
	    (i->n_args != fixed + 1 || i->op == SSA_cmpxchg))
		return "wrong number of operands";
	if (!is_type(i->arg[1]->type, SSA_I32, 1))
		return "the offset is not i32";
	if (i->n_args > fixed && !is_type(i->arg[fixed]->type, SSA_I1, 1))
		return "the mask is not i1";
	const struct ssa_type t = i->op == SSA_load ? i->type :
						      i->arg[2]->type;

	if (!in_set(ssa_type(t.kind, 1), STORED))
		return "this type is not kept in memory";
	if (i->op == SSA_load || i->op == SSA_store)
		return NULL;
	if (!ssa_type_eq(t, i->type))
		return "the result's type is not the value's";
	if (i->op == SSA_cmpxchg)
		return !args_equal(&(struct ssa_inst){ .arg = i->arg + 2 }, 1,
				   2) || !in_set(t, I32 | I64) ?
			       "wanted i32 or i64" : NULL;
	return NULL;
}

static const char *check_rmw(const struct ssa_inst *i, struct ssa_type t)
{
	const bool is_float = i->sub >= SSA_RMW_FADD;

	if (i->sub >= SSA_RMWS || (i->sub == SSA_RMW_XCHG &&
				   i->op != SSA_atomic))
		return "no such combining operation";
	if (i->sub == SSA_RMW_XCHG)
		return in_set(t, I32 | I64 | F32) ? NULL : "wrong type";
	if (is_float)
		return in_set(t, F32) ? NULL : "wanted f32";
	return in_set(t, i->op == SSA_atomic ? I32 | I64 : I32) ?
		       NULL : "wanted an integer";
}

/* A and B, then C and D, by enum ssa_wmma. */
static const struct ssa_type wmma_types[SSA_WMMAS][2] = {
	[SSA_WMMA_F32_F16] = { { SSA_F16, 16 }, { SSA_F32, 8 } },
	[SSA_WMMA_F32_BF16] = { { SSA_BF16, 16 }, { SSA_F32, 8 } },
	[SSA_WMMA_F16_F16] = { { SSA_F16, 16 }, { SSA_F16, 16 } },
	[SSA_WMMA_BF16_BF16] = { { SSA_BF16, 16 }, { SSA_BF16, 16 } },
	[SSA_WMMA_I32_IU8] = { { SSA_I32, 4 }, { SSA_I32, 8 } },
	[SSA_WMMA_I32_IU4] = { { SSA_I32, 2 }, { SSA_I32, 8 } },
};

static const char *check_wmma(const struct ssa_func *f,
			      const struct ssa_inst *i)
{
	if (i->sub >= SSA_WMMAS)
		return "no such matrix operation";
	const struct ssa_type *t = wmma_types[i->sub];

	if (f->wave != 32)
		return "needs wave32";
	if (!ssa_type_eq(i->arg[0]->type, t[0]) ||
	    !ssa_type_eq(i->arg[1]->type, t[0]) ||
	    !ssa_type_eq(i->arg[2]->type, t[1]) || !ssa_type_eq(i->type, t[1]))
		return "wrong type of a fragment";
	return NULL;
}

static const char *check_pred(const struct ssa_inst *i)
{
	const bool is_float = i->sub >= SSA_FOEQ;

	if (i->sub >= SSA_PREDS || is_float != (i->op == SSA_fcmp))
		return "no such predicate";
	return NULL;
}

static const char *check_printf(const struct ssa_func *f,
				const struct ssa_inst *i)
{
	if (i->imm >= f->n_formats)
		return "no such format";
	for (uint32_t k = 0; k < i->n_args; k++)
		if (!in_set(i->arg[k]->type, I32 | I64 | F32 | F64 | PTR))
			return "wanted i32, i64, f32, f64 or ptr";
	return NULL;
}

/* What goes beyond operand_kinds[] and the column `result` of ssa.def. */
static const char *check_special(const struct ssa_func *f,
				 const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_ptradd:
		if (is_type(i->arg[1]->type, SSA_I32, 1) ||
		    (is_type(i->arg[1]->type, SSA_I64, 1) &&
		     i->type.kind == SSA_PTR))
			return NULL;
		return "the distance is neither i32 nor, for ptr, i64";
	case SSA_select:
		if (!ssa_type_eq(i->arg[1]->type, i->type) ||
		    !ssa_type_eq(i->arg[2]->type, i->type))
			return "the sides' types differ from the result's";
		return NULL;
	case SSA_dot2:
		if (!ssa_type_eq(i->arg[0]->type, i->arg[1]->type) ||
		    !(is_type(i->arg[0]->type, SSA_F16, 2) ||
		      is_type(i->arg[0]->type, SSA_BF16, 2)) ||
		    !is_type(i->arg[2]->type, SSA_F32, 1) ||
		    !is_type(i->type, SSA_F32, 1))
			return "wanted two pairs and f32";
		return NULL;
	case SSA_shuffle:
	case SSA_read_lane:
		return is_type(i->arg[1]->type, SSA_I32, 1) ?
			       NULL :
			       "the lane is not i32";
	case SSA_shuffle_xor:
		return i->imm < f->wave ? NULL : "beyond the wave";
	case SSA_ballot:
		return is_type(i->type, f->wave == 64 ? SSA_I64 : SSA_I32, 1) ?
			       NULL :
			       "wanted a bit per lane";
	case SSA_atomic:
		return check_rmw(i, i->type);
	case SSA_reduce:
	case SSA_group_reduce:
		return check_rmw(i, i->type);
	case SSA_scan:
		return i->imm < 2 ? check_rmw(i, i->type) :
				    "neither inclusive nor exclusive";
	case SSA_printf:
		return check_printf(f, i);
	case SSA_wmma:
		return check_wmma(f, i);
	default:
		return NULL;
	}
}

static const char *check_shape(const struct ssa_func *f,
			       const struct ssa_inst *i)
{
	switch (i->op) {
	case SSA_zext:
	case SSA_sext:
	case SSA_trunc:
	case SSA_bitcast:
	case SSA_fcvt:
	case SSA_fcvt_from_s:
	case SSA_fcvt_from_u:
	case SSA_fcvt_to_s:
	case SSA_fcvt_to_u:
		return check_convert(i);
	case SSA_pack:
	case SSA_extract:
		return check_vector(i);
	case SSA_load:
	case SSA_store:
	case SSA_atomic:
	case SSA_cmpxchg: {
		const char *why = check_memory(i);

		return why ? why : check_special(f, i);
	}
	case SSA_icmp:
	case SSA_fcmp:
		return check_pred(i);
	default:
		return i->n_args ? check_special(f, i) : check_leaf(f, i);
	}
}

/* Do all operands have one type?  True of arithmetic and comparisons. */
static bool is_even(const struct ssa_inst *i)
{
	return i->op >= SSA_add && i->op <= SSA_fcmp && i->op != SSA_dot2;
}

const char *ssa_check_types(const struct ssa_func *f,
			    const struct ssa_inst *i)
{
	const struct ssa_op_info *info = ssa_op_info(i->op);
	const uint32_t set = operand_kinds[i->op];

	if (info->n_args >= 0 && i->n_args != (uint32_t)info->n_args)
		return "wrong number of operands";
	if (i->op >= SSA_load && i->op <= SSA_atomic && i->n_args < 2)
		return "wrong number of operands";
	if (!ssa_type_valid(i->type))
		return "no such type";
	if ((info->result == 'N') != (i->type.kind == SSA_VOID))
		return info->result == 'N' ? "has a result" : "has no result";
	if (info->result == 'A' && !ssa_type_eq(i->type, i->arg[0]->type))
		return "type differs from operand 0's";
	if (info->result == 'B' && !is_type(i->type, SSA_I1, 1))
		return "wanted i1";
	if (set && !in_set(i->n_args ? i->arg[0]->type : i->type, set))
		return "not of this type";
	if (is_even(i) && !args_equal(i, 1, i->n_args))
		return "the operands' types differ";
	return check_shape(f, i);
}
