/*
 * kfd/soft/exec/fast/native_find.c - which row of native.def does what a microop
 * does.
 */
#include "kfd/soft/exec/fast/native_table.h"
#include "kfd/soft/exec/valu_mods.h"

static const struct row rows[ISA_OP_COUNT] = {
#define N(name, check, ...) [ISA_##name] = { check, STEPS(__VA_ARGS__) },
#define N_SIGNED(name, signs, check, ...)
#include "kfd/soft/exec/fast/native.def"
#undef N_SIGNED
#undef N
};

/* Of instructions whose integers are signed where neg_lo says so. */
static const struct signed_row {
	enum isa_op op;
	uint8_t signs; /* 1: the first source, 2: the second */
	struct row row;
} signed_rows[] = {
#define N(...)
#define N_SIGNED(name, signs, check, ...) \
	{ ISA_##name, signs, { check, STEPS(__VA_ARGS__) } },
#include "kfd/soft/exec/fast/native.def"
#undef N_SIGNED
#undef N
};

struct soft_steps_use soft_steps_use(const struct step *s)
{
	struct soft_steps_use u = { .names = 0 };

	for (; s->kind; s++) {
		u.kinds |= 1u << s->kind;
		if (s->kind == JOINS)
			continue;
		u.names |= 1u << s->s1;
		if (s->s2 < K_FIRST)
			u.names |= 1u << s->s2;
		if (s->kind <= WHERE_N) {
			u.names |= s->d > V ? 1u << s->d : 0;
			u.result |= s->d == T;
		}
	}
	return u;
}

/* --------------------------------------------------- results of floats ---- */

const struct isa_operand *soft_native_result(const struct soft_microop *m)
{
	const struct isa_inst *in = &m->u->in;

	return &in->opnd[m->part == SOFT_PART_Y ? in->n_opnd_x : 0];
}

static const struct soft_lane_op *lane_op(const struct soft_microop *m)
{
	const struct isa_inst *in = &m->u->in;

	return &soft_simd()->ops[m->part == SOFT_PART_Y ? in->op_y : in->op];
}

static bool is_finished(const struct soft_microop *m)
{
	const struct soft_row_microops *f = soft_simd()->row;

	return m->fn == f->row_finish || m->fn == f->row16_finish;
}

bool soft_native_clamps(const struct soft_microop *m)
{
	return is_finished(m) && m->u->in.f[ISA_F_CLAMP];
}

/* Do f32 denormals become zeros, before and after? */
bool soft_native_flushes(const struct soft_microop *m, uint32_t mode)
{
	const struct soft_lane_op *op = lane_op(m);

	return m->fn == op->flush ||
	       (is_finished(m) && op->flush && !(mode & SOFT_MODE_DENORM_F32));
}

/* Is a clamp at most what is to be done with the result, and flushing? */
static bool finish_is_clamp(const struct soft_microop *m, uint32_t mode)
{
	const struct soft_lane_op *op = lane_op(m);
	const bool flush = mods_flush(soft_native_result(m)->type,
				      soft_row_mode(op, mode), true);

	if (m->u->in.f[ISA_F_OMOD] && (flush || op->flags & SOFT_V_OMOD))
		return false;
	return !flush || op->flags & (SOFT_V_KEEP | SOFT_V_KEEP_OUT) ||
	       soft_native_flushes(m, mode);
}

/* A clamp would have to know. */
static bool excludes_nan(const struct row *r)
{
	return r->check != NONE || soft_steps_use(r->step).kinds & SOFT_ODD;
}

/* A microop of any row, which does no more than this one. */
static bool is_plain(const struct soft_microop *m, const struct row *r,
		     uint32_t mode)
{
	const struct soft_row_microops *f = soft_simd()->row;

	if (is_finished(m))
		return (m->fn == f->row16_finish) == soft_row_is_half(r) &&
		       finish_is_clamp(m, mode) &&
		       (!m->u->in.f[ISA_F_CLAMP] || excludes_nan(r));
	return m->fn == (soft_row_is_half(r) ? f->row16 : f->row) &&
	       !m->u->in.f[ISA_F_CLAMP];
}

static bool ymm_have(const struct row *r)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind != JOINS && !soft_ymm_has(s->op, s->imm))
			return false;
	return true;
}

/* What an instruction needs besides x86-64-v4; and without it. */
static bool host_has(const struct row *r)
{
	if (soft_simd() != &soft_simd_v4)
		return ymm_have(r);
	return r->check == VNNI ? __builtin_cpu_supports("avx512vnni") :
	       r->check == VBMI ? __builtin_cpu_supports("avx512vbmi") :
	       r->check == POPCNT ?
				  __builtin_cpu_supports("avx512vpopcntdq") :
				  true;
}

/* What the tables have for an instruction; NULL: nothing. */
static const struct row *look_up(const struct soft_microop *m, uint16_t op)
{
	const uint8_t signs = (m->mods[0] & ISA_M_NEG ? 1 : 0) |
			      (m->mods[1] & ISA_M_NEG ? 2 : 0);

	for (size_t i = 0; i < ARRAY_SIZE(signed_rows); i++)
		if (signed_rows[i].op == op && signed_rows[i].signs == signs)
			return &signed_rows[i].row;
	return rows[op].step ? &rows[op] : NULL;
}

/* Do sources of both precisions keep their denormals? */
static bool mix_allows(uint32_t mode)
{
	return (mode & 0x50) == 0x50;
}

/* What native.def says of it holds for the first 32 lanes only. */
static bool counts_lanes(uint16_t op)
{
	return op == ISA_v_mbcnt_lo_u32_b32 || op == ISA_v_mbcnt_hi_u32_b32;
}

/* The row of a microop that is no preparation, NULL: none. */
const struct row *soft_native_find(const struct soft_microop *m, uint32_t mode)
{
	const struct isa_inst *in = &m->u->in;
	uint16_t op = m->part == SOFT_PART_Y ? in->op_y : in->op;
	const struct row *r = look_up(m, op);

	if (!r || !host_has(r) || (m->half && counts_lanes(op)) ||
	    (soft_native_is_mixed(m) && !mix_allows(mode)))
		return NULL;
	return m->fn == soft_simd()->ops[op].microop ||
			       m->fn == soft_simd()->ops[op].flush ||
			       is_plain(m, r, mode) ?
		       r :
		       NULL;
}

bool soft_native_is_row(const struct soft_microop *m, uint32_t mode)
{
	return soft_native_is_prepared(m) || soft_native_find(m, mode);
}

bool soft_native_makes_mask(const struct soft_microop *m, uint32_t mode)
{
	return !soft_native_is_preparation(m) &&
	       soft_steps_use(soft_native_find(m, mode)->step).kinds &
		       SOFT_MAKES;
}
