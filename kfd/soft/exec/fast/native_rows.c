/*
 * kfd/soft/exec/fast/native_rows.c - vector microops as host code: native.def.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native.h"

/* ---------------------------------------------------------------- rows ---- */

enum check {
	NONE, NAN_RESULT, ORDERED, LEAST, MOST,
	HALF_NAN, HALF_ORDERED, HALF_SUM, HALF_SOURCE,
};

/* What a step names: vregs, then constants. */
enum name {
	A, B, C, T, U, V, K_FIRST, K_31 = K_FIRST + SOFT_NATIVE_31,
	K_24_BITS = K_FIRST + SOFT_NATIVE_24_BITS,
	K_ONES = K_FIRST + SOFT_NATIVE_ONES, K_SIGN = K_FIRST + SOFT_NATIVE_SIGN,
	K_REST = K_FIRST + SOFT_NATIVE_REST,
	K_TIE_BITS = K_FIRST + SOFT_NATIVE_TIE_BITS,
	K_TIE = K_FIRST + SOFT_NATIVE_TIE,
	K_BELOW_HALVES = K_FIRST + SOFT_NATIVE_BELOW_HALVES,
};

enum mask { IN = 1, M, N };

enum step_kind { END, PLAIN, MASKED, MAKES, MAKES_IN, JOINS };

struct step {
	uint8_t kind, op, d, s1, s2, imm;
};

#define MOST_STEPS 11

struct row {
	enum check check;
	struct step step[MOST_STEPS + 1]; /* END is the last one */
};

#define NAN		       NAN_RESULT
#define DO(op, d, s1, s2)      DOI(op, d, s1, s2, 0)
#define OP1(op, d, s)	       DOI(op, d, 0, s, 0)
#define OP1I(op, d, s, imm)    DOI(op, d, 0, s, imm)
#define DOI(op, d, s1, s2, imm) { PLAIN, SOFT_HOST_##op, d, s1, s2, imm },
#define IF_IN(op, d, s1, s2)   { MASKED, SOFT_HOST_##op, d, s1, s2, 0 },
#define TEST(op, m, s1, s2, relation) \
	{ MAKES, SOFT_HOST_##op, m, s1, s2, relation },
#define TEST_IN(op, m, s1, s2, relation) \
	{ MAKES_IN, SOFT_HOST_##op, m, s1, s2, relation },
#define EITHER(m, n) { JOINS, 0, m, m, n, 0 },

static const struct row rows[ISA_OP_COUNT] = {
#define N(name, check, ...) [ISA_##name] = { check, { __VA_ARGS__ } },
#include "kfd/soft/exec/fast/native.def"
#undef N
};

/* The signs of floats, which an instruction's modifiers change. */
static const struct row sign_rows[] = {
	[ISA_M_NEG] = { NONE, { DO(XORD, T, B, K_SIGN) } },
	[ISA_M_ABS] = { NONE, { DO(ANDD, T, B, K_REST) } },
	[ISA_M_NEG | ISA_M_ABS] = { NONE, { DO(ORD, T, B, K_SIGN) } },
};

/* A row of a microop that spreads an SGPR has no steps. */
static const struct row spread_row = { NONE, { { END, 0, 0, 0, 0, 0 } } };

static bool has_name(const struct row *r, enum name v)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind != JOINS && (s->s1 == v || s->s2 == v))
			return true;
	return false;
}

static bool has_result(const struct row *r)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind <= MASKED && s->d == T)
			return true;
	return false;
}

static bool uses_mask(const struct row *r, enum step_kind first,
		      enum step_kind last)
{
	for (const struct step *s = r->step; s->kind; s++)
		if (s->kind >= first && s->kind <= last)
			return true;
	return false;
}

static bool is_half(const struct row *r)
{
	return r->check >= HALF_NAN;
}

/* A microop of any row, which does no more than this one. */
static bool is_plain(const struct soft_microop *m, const struct row *r)
{
	const struct soft_row_microops *f = soft_simd_v4.row;

	return m->fn == (is_half(r) ? f->row16 : f->row) &&
	       !m->u->in.f[ISA_F_CLAMP] && !uses_mask(r, MAKES, JOINS);
}

/* The row of a microop, NULL: none. */
static const struct row *find_row(const struct soft_microop *m)
{
	const struct soft_simd *simd = &soft_simd_v4;
	const struct isa_inst *in = &m->u->in;
	uint16_t op = m->part == SOFT_PART_Y ? in->op_y : in->op;

	if (m->fn == simd->row->spread)
		return &spread_row;
	if (m->fn == simd->row->signs)
		return &sign_rows[m->imm];
	if (!rows[op].step[0].kind)
		return NULL;
	return m->fn == simd->ops[op].microop || is_plain(m, &rows[op]) ?
		       &rows[op] :
		       NULL;
}

bool soft_native_is_preparation(const struct soft_microop *m)
{
	return m->fn == soft_simd_v4.row->spread ||
	       m->fn == soft_simd_v4.row->signs;
}

bool soft_native_is_row(const struct soft_microop *m)
{
	return find_row(m);
}

bool soft_native_makes_mask(const struct soft_microop *m)
{
	return uses_mask(find_row(m), MAKES, JOINS);
}

/* ----------------------------------------------------------- registers ---- */

struct soft_host_mem soft_native_half(struct soft_host_mem vreg, int i)
{
	vreg.offset += i * (int32_t)SOFT_VREG_BYTES / 2;
	return vreg;
}

struct soft_host_mem soft_native_vreg(const struct soft_native_run *r, int base,
				      uintptr_t at)
{
	if (base == SOFT_BASE_ABSOLUTE)
		return (struct soft_host_mem){
			SOFT_R8, (int32_t)(at - (uintptr_t)r->temp) };
	return (struct soft_host_mem){ base ? SOFT_R9 : SOFT_RAX, (int32_t)at };
}

static int find_pair(const struct soft_native_run *r, struct soft_host_mem vreg)
{
	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		if (r->pair[i].used && r->pair[i].vreg.base == vreg.base &&
		    r->pair[i].vreg.offset == vreg.offset)
			return i;
	return SOFT_NOWHERE;
}

/* One that holds nothing, or what was not needed for longest. */
int soft_native_take(struct soft_native_run *r)
{
	int best = 0;

	for (int i = 0; i < SOFT_NATIVE_PAIRS; i++)
		if (r->pair[i].last < r->pair[best].last)
			best = i;
	r->pair[best].used = false;
	r->pair[best].last = r->now;
	return best;
}

void soft_native_hold(struct soft_native_run *r, int pair,
		      struct soft_host_mem vreg)
{
	int old = find_pair(r, vreg);

	if (old != SOFT_NOWHERE)
		r->pair[old].used = false;
	r->pair[pair].vreg = vreg;
	r->pair[pair].used = true;
	r->pair[pair].last = r->now;
}

int soft_native_load(struct soft_native_run *r, struct soft_host_mem vreg)
{
	int pair = find_pair(r, vreg);

	if (pair != SOFT_NOWHERE) {
		r->pair[pair].last = r->now;
		return pair;
	}
	pair = soft_native_take(r);
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_MOVD, 2 * pair + i, 0, 0,
				 soft_native_half(vreg, i), false, 0);
	soft_native_hold(r, pair, vreg);
	return pair;
}

void soft_native_store(struct soft_native_run *r, int pair,
		       struct soft_host_mem vreg)
{
	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_STORED, 2 * pair + i, 0, 0,
				 soft_native_half(vreg, i), false, 0);
}

/* --------------------------------------------------------------- steps ---- */

/* Pairs by their names; of constants, where they are. */
struct names {
	int pair[K_FIRST];
};

static void emit_step(struct soft_native_run *r, const struct step *s,
		      const struct names *n, int i)
{
	int k = s->kind == MASKED || s->kind == MAKES_IN ? SOFT_K_IN + i : 0;
	int d = s->kind < MAKES ? 2 * n->pair[s->d] + i :
		s->d == M	? SOFT_K_M + i :
				  SOFT_K_N;
	int s1 = 2 * n->pair[s->s1] + i;

	if (s->kind == JOINS)
		soft_host_kor(r->code, SOFT_K_M + i, SOFT_K_M + i, SOFT_K_N);
	else if (s->s2 >= K_FIRST)
		soft_host_op_mem(
			r->code, s->op, d, k, s1,
			soft_native_at(s->s2 - K_FIRST),
			s->op != SOFT_HOST_BROADCASTD, s->imm);
	else
		soft_host_op(r->code, s->op, d, k, s1, 2 * n->pair[s->s2] + i,
			     s->imm);
}

/* Bit of lanes where a relation holds between zmm a and zmm b: to `k`. */
static void emit_unordered(struct soft_native_run *r, int k, int a, int b, int exec)
{
	soft_host_op(r->code, SOFT_HOST_CMPPS, k, exec, a, b, 3);
}

void soft_native_bail(struct soft_native_run *r, size_t jump, size_t skip)
{
	struct soft_native_bail b = { jump, skip };

	buf_add(&r->bail, &b, sizeof(b));
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

/* Leave where pair U was rounded to what a tie of halves is, or is tiny. */
static void check_double_rounding(struct soft_native_run *r, size_t skip)
{
	const struct step tie[] = { DO(ANDD, V, U, K_TIE_BITS) };
	const struct step size[] = { DO(ANDD, V, U, K_REST)
					     DO(ADDD, V, V, K_ONES) };
	const struct names n = { { [U] = SOFT_PAIR_U, [V] = SOFT_PAIR_V } };

	for (int i = 0; i < 2; i++) {
		const int v = 2 * SOFT_PAIR_V + i;
		const int exec = r->masked ? SOFT_K_EXEC + i : 0;

		emit_step(r, &tie[0], &n, i);
		soft_host_op_mem(r->code, SOFT_HOST_CMPD, SOFT_K_N, exec, v,
				 soft_native_at(SOFT_NATIVE_TIE), true, 0);
		emit_step(r, &size[0], &n, i);
		emit_step(r, &size[1], &n, i);
		soft_host_op_mem(r->code, SOFT_HOST_CMPUD, SOFT_K_OTHER, exec,
				 v, soft_native_at(SOFT_NATIVE_BELOW_HALVES),
				 true, 2);
		soft_host_kor(r->code, SOFT_K_N, SOFT_K_N, SOFT_K_OTHER);
		soft_native_bail(r, soft_host_jump_mask(r->code, SOFT_K_N),
				 skip);
	}
}

static void emit_check(struct soft_native_run *r, const struct row *row,
		       const struct names *n, size_t skip)
{
	switch (row->check) {
	case NONE:
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
	case HALF_ORDERED:
		check_ordered(r, SOFT_PAIR_U, SOFT_PAIR_V, skip);
		break;
	case HALF_SUM:
		check_nan(r, SOFT_PAIR_U, skip);
		check_double_rounding(r, skip);
		break;
	case HALF_SOURCE:
		check_nan(r, n->pair[A], skip);
	}
}

/* ------------------------------------------------------------ microops ---- */

/* 32 lanes of an SGPR of masks to k and k + 1. */
static void load_mask(struct buf *code, int k, int reg)
{
	struct soft_host_mem m = soft_host_sgpr(reg);

	soft_host_kload16(code, k, m);
	m.offset += 2;
	soft_host_kload16(code, k + 1, m);
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
		load_mask(r->code, SOFT_K_EXEC, ISA_R_EXEC_LO + half);
	r->half = half;
}

/* The result to its vreg, which is then in registers. */
static void put_result(struct soft_native_run *r, int t, struct soft_host_mem vreg)
{
	if (r->masked) {
		int old = soft_native_load(r, vreg);

		for (int i = 0; i < 2; i++)
			soft_host_op(r->code, SOFT_HOST_MOVD, 2 * old + i,
				     SOFT_K_EXEC + i, 0, 2 * t + i, 0);
		t = old;
	}
	soft_native_store(r, t, vreg);
	soft_native_hold(r, t, vreg);
}

static void load_sources(struct soft_native_run *r, const struct soft_microop *m,
			 const struct row *row, struct names *n)
{
	const uintptr_t at[] = { m->a, m->b, m->c };
	const uint8_t base[] = { m->ka, m->kb, m->kc };

	for (int i = A; i <= C; i++)
		n->pair[i] =
			has_name(row, i) ?
				soft_native_load(r, soft_native_vreg(r, base[i], at[i])) :
				0;
}

/* SGPR imm, or the vreg of b with other signs, to the temporary at a. */
static void emit_preparation(struct soft_native_run *r,
			     const struct soft_microop *m,
			     const struct row *row)
{
	struct soft_host_mem to = soft_native_vreg(r, SOFT_BASE_ABSOLUTE, m->a);
	struct names n = { { 0 } };

	if (row != &spread_row)
		n.pair[B] = soft_native_load(r, soft_native_vreg(r, m->kb, m->b));
	n.pair[T] = soft_native_take(r);
	for (int i = 0; i < 2; i++)
		if (row == &spread_row)
			soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD,
					 2 * n.pair[T] + i, 0, 0,
					 soft_host_sgpr((int)m->imm), false, 0);
		else
			emit_step(r, row->step, &n, i);
	soft_native_store(r, n.pair[T], to);
	soft_native_hold(r, n.pair[T], to);
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
				 true, 0xf8);
	}
}

/* `skip`: where the microop is, counted from the run's. */
static void emit_row(struct soft_native_run *r, const struct soft_microop *m,
		     const struct row *row, size_t skip)
{
	bool result = has_result(row);
	struct names n = { { 0 } };

	if (is_half(row) && !r->plain16) {
		soft_native_bail(r, soft_host_jump_bits(
					    r->code, mode_at(),
					    SOFT_MODE_FP16_OVFL), skip);
		r->plain16 = true;
	}
	soft_native_exec(r, m->half);
	load_sources(r, m, row, &n);
	if (uses_mask(row, MASKED, MASKED) || uses_mask(row, MAKES_IN, MAKES_IN))
		load_mask(r->code, SOFT_K_IN, m->mask_in);
	n.pair[T] = result ? soft_native_take(r) : 0;
	n.pair[U] = SOFT_PAIR_U;
	n.pair[V] = SOFT_PAIR_V;
	for (int i = 0; i < 2; i++)
		for (const struct step *s = row->step; s->kind; s++)
			emit_step(r, s, &n, i);
	emit_check(r, row, &n, skip);
	if (is_half(row))
		merge_half(r, n.pair[T], soft_native_vreg(r, m->half, m->d),
			   m->imm);
	if (uses_mask(row, MAKES, JOINS)) {
		soft_host_kunpack(r->code, SOFT_K_M, SOFT_K_M + 1,
				  SOFT_K_M);
		soft_host_store_mask(r->code, soft_host_sgpr(m->mask_out), SOFT_K_M,
				     soft_host_sgpr(ISA_R_EXEC_LO + m->half));
	}
	if (result)
		put_result(r, n.pair[T], soft_native_vreg(r, m->half, m->d));
}

void soft_native_row(struct soft_native_run *r, const struct soft_microop *m,
		     size_t skip)
{
	const struct row *row = find_row(m);

	if (soft_native_is_preparation(m))
		emit_preparation(r, m, row);
	else
		emit_row(r, m, row, skip);
}
