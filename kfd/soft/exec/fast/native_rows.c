/*
 * kfd/soft/exec/fast/native_rows.c - vector microops as host code: native.def.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"
#include "kfd/soft/exec/valu_mods.h"

/* ---------------------------------------------------------------- rows ---- */

enum check {
	NONE, NAN_RESULT, ORDERED, LEAST, MOST, PAIRS, FLUSHED,
	HALF, HALF_NAN, HALF_SOURCE,
};

/* What a step names: vregs, then constants. */
enum name {
	A, B, C, A_HIGH, B_HIGH, C_HIGH, T, U, V, T_HIGH, W, X, Y, Z, K_FIRST,
#define K(name, value) K_##name = K_FIRST + SOFT_NATIVE_##name,
#define Q(name, value) K(name, value)
#define F(name, ...)   K(name, )
#include "kfd/soft/exec/fast/constants.def"
#undef F
#undef Q
#undef K
};

enum mask { IN = 1, M, N };

enum step_kind { END, PLAIN, MASKED, WHERE_N, FINDS, FINDS_IN_N, ODD_LANES, ODD_IN_LANES, ODD_PARTS, MAKES,
		 MAKES_IN, JOINS };

struct step {
	uint8_t kind, op, d, s1;
	uint16_t s2;
	uint8_t imm;
};

struct row {
	enum check check;
	const struct step *step; /* END is the last one */
};

#define NAN		       NAN_RESULT
#define DO(op, d, s1, s2)      DOI(op, d, s1, s2, 0)
#define OP1(op, d, s)	       DOI(op, d, 0, s, 0)
#define OP1I(op, d, s, imm)    DOI(op, d, 0, s, imm)
#define DOI(op, d, s1, s2, imm) { PLAIN, SOFT_HOST_##op, d, s1, s2, imm },
#define IF_IN(op, d, s1, s2)   { MASKED, SOFT_HOST_##op, d, s1, s2, 0 },
#define IF_N(op, d, s1, s2)    { WHERE_N, SOFT_HOST_##op, d, s1, s2, 0 },
#define FIND(op, s1, s2, imm)  { FINDS, SOFT_HOST_##op, N, s1, s2, imm },
#define FIND_IN_N(op, s1, s2, imm) \
	{ FINDS_IN_N, SOFT_HOST_##op, N, s1, s2, imm },
#define ODD(op, s1, s2, imm)   { ODD_LANES, SOFT_HOST_##op, N, s1, s2, imm },
#define ODD_IN(op, s1, s2, imm) \
	{ ODD_IN_LANES, SOFT_HOST_##op, N, s1, s2, imm },
#define ODD_ANY(op, s1, s2, imm) \
	{ ODD_PARTS, SOFT_HOST_##op, N, s1, s2, imm },
#define TEST(op, m, s1, s2, relation) \
	{ MAKES, SOFT_HOST_##op, m, s1, s2, relation },
#define TEST_IN(op, m, s1, s2, relation) \
	{ MAKES_IN, SOFT_HOST_##op, m, s1, s2, relation },
#define EITHER(m, n) { JOINS, 0, m, m, n, 0 },
#define STEPS(...)   (const struct step[]){ __VA_ARGS__ { END, 0, 0, 0, 0, 0 } }

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

static bool has_name(const struct row *r, enum name v)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind != JOINS &&
		    (s->s1 == v || s->s2 == v || (v > V && s->d == v)))
			return true;
	return false;
}

static bool has_result(const struct row *r)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind <= WHERE_N && s->d == T)
			return true;
	return false;
}

static bool has_kind(const struct row *r, enum step_kind first,
		     enum step_kind last)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind >= first && s->kind <= last)
			return true;
	return false;
}

static bool reads_mask(const struct row *r)
{
	return has_kind(r, MASKED, MASKED) || has_kind(r, MAKES_IN, MAKES_IN) ||
	       has_kind(r, ODD_IN_LANES, ODD_IN_LANES);
}

static bool has_float(const struct row *r)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind != JOINS && soft_host_is_float(s->op))
			return true;
	return false;
}

static bool is_half(const struct row *r)
{
	return r->check >= HALF;
}

/* ----------------------------------------------------- results of floats ---- */

static const struct isa_operand *result_of(const struct soft_microop *m)
{
	const struct isa_inst *in = &m->u->in;

	return &in->opnd[m->part == SOFT_PART_Y ? in->n_opnd_x : 0];
}

static const struct soft_lane_op *lane_op(const struct soft_microop *m)
{
	const struct isa_inst *in = &m->u->in;

	return &soft_simd_v4.ops[m->part == SOFT_PART_Y ? in->op_y : in->op];
}

static bool is_finished(const struct soft_microop *m)
{
	const struct soft_row_microops *f = soft_simd_v4.row;

	return m->fn == f->row_finish || m->fn == f->row16_finish;
}

/* Do f32 denormals become zeros, before and after? */
static bool flushes(const struct soft_microop *m, uint32_t mode)
{
	const struct soft_lane_op *op = lane_op(m);

	return m->fn == op->flush ||
	       (is_finished(m) && op->flush && !(mode & SOFT_MODE_DENORM_F32));
}

/* Is it all the same, as the sources have no denormals? */
static bool is_flushed(const struct soft_microop *m, uint32_t mode)
{
	return is_finished(m) && lane_op(m)->flags & SOFT_V_KEEP_OUT &&
	       !(mode & SOFT_MODE_DENORM_F32);
}

/* Is a clamp at most what is to be done with the result, and flushing? */
static bool finish_is_clamp(const struct soft_microop *m, uint32_t mode)
{
	const struct soft_lane_op *op = lane_op(m);
	const bool flush = mods_flush(result_of(m)->type,
				      soft_row_mode(op, mode), true);

	if (m->u->in.f[ISA_F_OMOD] && (flush || op->flags & SOFT_V_OMOD))
		return false;
	return !flush || op->flags & (SOFT_V_KEEP | SOFT_V_KEEP_OUT) ||
	       flushes(m, mode);
}

/* A clamp would have to know. */
static bool excludes_nan(const struct row *r)
{
	return r->check != NONE || has_kind(r, ODD_LANES, ODD_PARTS);
}

/* A microop of any row, which does no more than this one. */
static bool is_plain(const struct soft_microop *m, const struct row *r,
		     uint32_t mode)
{
	const struct soft_row_microops *f = soft_simd_v4.row;

	if (is_finished(m))
		return (m->fn == f->row16_finish) == is_half(r) &&
		       finish_is_clamp(m, mode) &&
		       (!m->u->in.f[ISA_F_CLAMP] || excludes_nan(r));
	return m->fn == (is_half(r) ? f->row16 : f->row) &&
	       !m->u->in.f[ISA_F_CLAMP];
}

static bool has_op(const struct row *r, enum soft_host_op op)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind != JOINS && s->op == op)
			return true;
	return false;
}

/* What an instruction needs besides x86-64-v4. */
static bool host_has(const struct row *r)
{
	if (has_op(r, SOFT_HOST_DPBUSD))
		return __builtin_cpu_supports("avx512vnni");
	return !has_op(r, SOFT_HOST_PERMI2B) ||
	       __builtin_cpu_supports("avx512vbmi");
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

/* The row of a microop that is no preparation, NULL: none. */
static const struct row *find_row(const struct soft_microop *m, uint32_t mode)
{
	const struct isa_inst *in = &m->u->in;
	uint16_t op = m->part == SOFT_PART_Y ? in->op_y : in->op;
	const struct row *r = look_up(m, op);

	if (!r || !host_has(r) ||
	    (soft_native_is_mixed(m) && !mix_allows(mode)))
		return NULL;
	return m->fn == soft_simd_v4.ops[op].microop ||
			       m->fn == soft_simd_v4.ops[op].flush ||
			       is_plain(m, r, mode) ?
		       r :
		       NULL;
}

bool soft_native_is_row(const struct soft_microop *m, uint32_t mode)
{
	return soft_native_is_prepared(m) || find_row(m, mode);
}

bool soft_native_makes_mask(const struct soft_microop *m, uint32_t mode)
{
	return !soft_native_is_preparation(m) &&
	       has_kind(find_row(m, mode), MAKES, JOINS);
}

/* --------------------------------------------------------------- steps ---- */

/* Pairs by their names; of constants, where they are. */
struct names {
	int pair[K_FIRST];
};

/*
 * The state of steps that are emitted.  Those of both zmm are mixed, since the
 * host looks ahead only so far; but in turn where IN and M leave no mask
 * register for a second N.
 */
struct steps {
	bool in_turn, odd;
	int k_odd; /* where something is odd; the next one is free */
	int i; /* lanes 16 i and up */
};

static int mask_n(const struct steps *t)
{
	return t->in_turn || !t->i ? SOFT_K_N : SOFT_K_IN;
}

static bool is_odd(const struct step *s)
{
	return s->kind >= ODD_LANES && s->kind <= ODD_PARTS;
}

/* The mask that a step writes. */
static int step_mask(const struct steps *t, const struct step *s)
{
	if (is_odd(s))
		return t->k_odd + t->odd;
	return s->d == M && s->kind >= MAKES ? SOFT_K_M + t->i : mask_n(t);
}

/* And the one of lanes for which it is. */
static int step_lanes(const struct soft_native_run *r, const struct steps *t,
		      const struct step *s)
{
	switch (s->kind) {
	case MASKED:
	case MAKES_IN:
	case ODD_IN_LANES:
		return SOFT_K_IN + t->i;
	case WHERE_N:
	case FINDS_IN_N:
		return mask_n(t);
	case ODD_LANES:
		return r->masked ? SOFT_K_EXEC + t->i : 0;
	default:
		return 0;
	}
}

static void emit_step(struct soft_native_run *r, struct steps *t,
		      const struct step *s, const struct names *n)
{
	const int k = step_lanes(r, t, s), s1 = 2 * n->pair[s->s1] + t->i;
	const int d = s->kind <= WHERE_N ? 2 * n->pair[s->d] + t->i :
					   step_mask(t, s);

	if (s->kind == JOINS)
		soft_host_kor(r->code, d, d, mask_n(t));
	else if (s->s2 >= K_FIRST)
		soft_host_op_mem(
			r->code, s->op, d, k, s1,
			soft_native_at(s->s2 - K_FIRST),
			s->op != SOFT_HOST_BROADCASTD &&
				s->op != SOFT_HOST_BROADCASTQ &&
				soft_native_is_spread(s->s2 - K_FIRST), s->imm);
	else
		soft_host_op(r->code, s->op, d, k, s1,
			     2 * n->pair[s->s2] + t->i, s->imm);
	if (is_odd(s) && t->odd)
		soft_host_kor(r->code, t->k_odd, t->k_odd, t->k_odd + 1);
	t->odd |= is_odd(s);
}

/* All of them; leaves where one finds something odd. */
static void emit_steps(struct soft_native_run *r, const struct step *step,
		       const struct names *n, size_t skip)
{
	const struct row row = { .step = step };
	const bool makes = has_kind(&row, MAKES, JOINS);
	struct steps t = { .in_turn = makes || reads_mask(&row),
			   .k_odd = makes ? SOFT_K_IN : SOFT_K_M };

	if (t.in_turn)
		for (; t.i < 2; t.i++)
			for (const struct step *s = step; s->kind; s++)
				emit_step(r, &t, s, n);
	else
		for (const struct step *s = step; s->kind; s++)
			for (t.i = 0; t.i < 2; t.i++)
				emit_step(r, &t, s, n);
	if (t.odd)
		soft_native_bail(r, soft_host_jump_mask(r->code, t.k_odd), skip);
}

/* Bit of lanes where a relation holds between zmm a and zmm b: to `k`. */
static void emit_unordered(struct soft_native_run *r, int k, int a, int b, int exec)
{
	soft_host_op(r->code, SOFT_HOST_CMPPS, k, exec, a, b, 3);
}

/* Leave if there is a NaN in lanes that execute: of vregs a and b. */
static void check_ordered(struct soft_native_run *r, int a, int b, size_t skip)
{
	for (int i = 0; i < 2; i++) {
		int exec = r->masked ? SOFT_K_EXEC + i : 0;

		emit_unordered(r, i ? SOFT_K_OTHER : SOFT_K_N, 2 * a + i, 2 * b + i,
			       exec);
	}
	soft_host_kor(r->code, SOFT_K_N, SOFT_K_N, SOFT_K_OTHER);
	soft_native_bail(r, soft_host_jump_mask(r->code, SOFT_K_N), skip);
}

/* The same of all lanes of one, in one comparison. */
static void check_nan(struct soft_native_run *r, int t, size_t skip)
{
	if (r->masked) {
		check_ordered(r, t, t, skip);
		return;
	}
	emit_unordered(r, SOFT_K_N, 2 * t, 2 * t + 1, 0);
	soft_native_bail(r, soft_host_jump_mask(r->code, SOFT_K_N), skip);
}

static void check_value(struct soft_native_run *r, int t, enum name value, size_t skip)
{
	const struct soft_host_mem at = soft_native_at(value - K_FIRST);

	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_CMPD, i ? SOFT_K_OTHER : SOFT_K_N,
				 r->masked ? SOFT_K_EXEC + i : 0, 2 * t + i, at,
				 true, 0);
	soft_host_kor(r->code, SOFT_K_N, SOFT_K_N, SOFT_K_OTHER);
	soft_native_bail(r, soft_host_jump_mask(r->code, SOFT_K_N), skip);
}

static void emit_check(struct soft_native_run *r, const struct row *row,
		       const struct names *n, size_t skip)
{
	switch (row->check) {
	case NONE:
	case PAIRS:
	case FLUSHED:
	case HALF:
		break;
	case NAN_RESULT:
		check_nan(r, n->pair[T], skip);
		break;
	case ORDERED:
		check_ordered(r, n->pair[A], n->pair[B], skip);
		if (has_name(row, C))
			check_ordered(r, n->pair[C], n->pair[C], skip);
		break;
	case LEAST:
		check_value(r, n->pair[T], K_SIGN, skip);
		break;
	case MOST:
		check_value(r, n->pair[T], K_ONES, skip);
		break;
	case HALF_NAN:
		check_nan(r, SOFT_PAIR_U, skip);
		break;
	case HALF_SOURCE:
		check_nan(r, n->pair[A], skip);
	}
}

/* ------------------------------------------------------------ microops ---- */

/* 32 lanes of an SGPR of masks to k and k + 1. */
static void load_mask(struct soft_native_run *r, int k, int reg)
{
	struct soft_host_mem m = soft_host_sgpr(reg);

	for (int i = 0; i < 2; i++, m.offset += 2)
		if (r->mask == reg)
			soft_host_kmove16(r->code, k + i, SOFT_K_M + i);
		else
			soft_host_kload16(r->code, k + i, m);
}

/* Those that a row has made, to an SGPR, for lanes that execute. */
static void store_mask(struct soft_native_run *r, const struct soft_microop *m)
{
	soft_host_kunpack(r->code, SOFT_K_M, SOFT_K_M + 1, SOFT_K_M);
	soft_host_store_mask(r->code, soft_host_sgpr(m->mask_out), SOFT_K_M,
			     soft_host_sgpr(ISA_R_EXEC_LO + m->half));
	if (!r->masked)
		r->mask = m->mask_out;
}

/* Of an instruction with DPP they are known. */
void soft_native_exec(struct soft_native_run *r, int half)
{
	if (r->first && r->masked) {
		for (int i = 0; i < 2; i++)
			soft_host_kset16(r->code, SOFT_K_EXEC + i,
					 r->lanes >> 16 * i);
		r->half = SOFT_NOWHERE;
		return;
	}
	if (r->masked && r->half != half)
		load_mask(r, SOFT_K_EXEC, ISA_R_EXEC_LO + half);
	r->half = half;
}

static void name_pairs(struct soft_native_run *r, const struct soft_microop *m,
		       const struct row *row, struct names *n)
{
	const uintptr_t at[] = { m->a, m->b, m->c };
	const uint8_t base[] = { m->ka, m->kb, m->kc };
	const bool all = r->masked && has_kind(row, ODD_PARTS, ODD_PARTS);

	for (int i = A; i <= C_HIGH; i++) {
		if (!has_name(row, i))
			continue;
		n->pair[i] = soft_native_load(
			r, soft_native_vreg(r, base[i % 3],
					    at[i % 3] +
						    (i >= A_HIGH) * SOFT_VREG_BYTES));
		if (all)
			n->pair[i] = soft_native_active(r, n->pair[i]);
		if (soft_native_is_mixed(m))
			n->pair[i] = soft_native_mixed(r, n->pair[i],
						       m->mods[i]);
	}
	n->pair[T] = has_result(row) ? soft_native_take(r) : 0;
	n->pair[U] = SOFT_PAIR_U;
	n->pair[V] = SOFT_PAIR_V;
	for (int i = T_HIGH; i < K_FIRST; i++)
		if (has_name(row, i))
			n->pair[i] = soft_native_take(r);
}

/* T, which is no NaN, to [+0, 1]: its order is that of integers. */
static void emit_clamp(struct soft_native_run *r, const struct soft_microop *m,
		       const struct names *n)
{
	static const struct step full[] = {
		DO(MAXSD, T, T, K_0) DO(MINSD, T, T, K_1F)
		{ END, 0, 0, 0, 0, 0 }
	};
	static const struct step half[] = {
		DO(XORD, U, U, U) DO(MAXSW, T, T, U)
		OP1(BROADCASTD, U, K_1F16) DO(MINSW, T, T, U)
		{ END, 0, 0, 0, 0, 0 }
	};
	const int bits = isa_type_info(result_of(m)->type)->bits;

	emit_steps(r, bits == 16 ? half : full, n, 0);
}

static struct soft_host_mem mode_at(void)
{
	return (struct soft_host_mem){
		SOFT_RDI, (int32_t)offsetof(struct soft_wave, mode) };
}

/* Bits 15:0 of each lane to one half, and the vreg's to the other one. */
static void merge_half(struct soft_native_run *r, int t,
		       struct soft_host_mem vreg, bool high)
{
	const int old = soft_native_load(r, vreg);

	for (int i = 0; i < 2; i++) {
		const int z = 2 * t + i;

		if (high)
			soft_host_op(r->code, SOFT_HOST_SLLD, z, 0, 0, z, 16);
		soft_host_op_mem(r->code, SOFT_HOST_TERNLOGD, z, 0, 2 * old + i,
				 soft_native_at(high ? SOFT_NATIVE_LOW_HALF :
						       SOFT_NATIVE_HIGH_HALF),
				 true, 0xd8);
	}
}

/* FP16_OVFL changes what halves become. */
static void require_plain16(struct soft_native_run *r, size_t skip)
{
	if (!r->plain16)
		soft_native_bail(r, soft_host_jump_bits(r->code, mode_at(),
							SOFT_MODE_FP16_OVFL),
				 skip);
	r->plain16 = true;
}

/* `skip`: where the microop is, counted from the run's. */
static void emit_row(struct soft_native_run *r, const struct soft_microop *m,
		     const struct row *row, size_t skip)
{
	const bool result = has_result(row);
	const bool makes = has_kind(row, MAKES, JOINS);
	struct names n = { { 0 } };

	if (is_half(row) || row->check == PAIRS)
		require_plain16(r, skip);
	if (flushes(m, r->mode) || row->check == FLUSHED)
		soft_native_flush(r, true);
	else if (has_float(row) && !is_flushed(m, r->mode))
		soft_native_flush(r, false);
	soft_native_exec(r, m->half);
	name_pairs(r, m, row, &n);
	if (reads_mask(row))
		load_mask(r, SOFT_K_IN, m->mask_in);
	if (makes || has_kind(row, ODD_LANES, ODD_PARTS))
		r->mask = SOFT_NOWHERE;
	emit_steps(r, row->step, &n, skip);
	emit_check(r, row, &n, skip);
	if (is_finished(m) && m->u->in.f[ISA_F_CLAMP])
		emit_clamp(r, m, &n);
	if (is_half(row))
		merge_half(r, n.pair[T], soft_native_vreg(r, m->half, m->d),
			   m->imm);
	if (makes && m->mask_out != SOFT_NO_MASK)
		store_mask(r, m);
	if (result)
		soft_native_put(r, n.pair[T], soft_native_vreg(r, m->half, m->d));
	if (has_name(row, T_HIGH))
		soft_native_put(r, n.pair[T_HIGH],
			   soft_native_vreg(r, m->half,
					    m->d + SOFT_VREG_BYTES));
}

void soft_native_row(struct soft_native_run *r, const struct soft_microop *m,
		     size_t skip)
{
	if (soft_native_is_preparation(m))
		soft_native_prepare(r, m);
	else
		emit_row(r, m, find_row(m, r->mode), skip);
}
