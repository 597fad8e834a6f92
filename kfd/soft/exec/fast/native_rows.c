/*
 * kfd/soft/exec/fast/native_rows.c - rows of native.def as host code.
 */
#include <stddef.h>

#include "kfd/soft/exec/fast/native_table.h"

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
	else if (s->s2 >= K_FIRST) /* K_BELOW is of both zmm */
		soft_host_op_mem(
			r->code, s->op, d, k, s1,
			soft_native_at(s->s2 - K_FIRST +
				       (s->s2 == K_BELOW ? 16 * t->i : 0)),
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

static bool is_mentioned(const struct step *s, int name)
{
	for (; s->kind; s++)
		if (s->s1 == name || s->s2 == name ||
		    (s->kind <= WHERE_N && s->d == name))
			return true;
	return false;
}

static bool is_n_read(const struct step *s)
{
	for (; s->kind && s->kind != FINDS; s++)
		if (s->kind == WHERE_N || s->kind == FINDS_IN_N ||
		    s->kind == JOINS)
			return true;
	return false;
}

/* What a step used for the last time, for 16 lanes; U is looked at later. */
static void forget_used(struct soft_native_run *r, const struct steps *t,
			const struct step *s, const struct names *n)
{
	const int used[] = { s->s1, s->s2, s->kind <= WHERE_N ? s->d : T };

	for (size_t i = 0; i < ARRAY_SIZE(used); i++)
		if (used[i] > U && used[i] < K_FIRST && used[i] != T_HIGH &&
		    !is_mentioned(s + 1, used[i]))
			soft_host_forget(r->code, 2 * n->pair[used[i]] + t->i);
	if (s->kind == WHERE_N && !is_n_read(s + 1))
		soft_host_forget_mask(r->code, mask_n(t));
}

/* All of them; leaves where one finds something odd. */
static void emit_steps(struct soft_native_run *r, const struct step *step,
		       uint32_t kinds, const struct names *n, size_t skip)
{
	struct steps t = { .in_turn = r->code->ymm ||
				      kinds & (SOFT_MAKES | SOFT_READS),
			   .k_odd = kinds & SOFT_MAKES ? SOFT_K_IN : SOFT_K_M };

	if (t.in_turn)
		for (; t.i < 2; t.i++) {
			for (const struct step *s = step; s->kind; s++) {
				emit_step(r, &t, s, n);
				if (r->code->ymm)
					forget_used(r, &t, s, n);
			}
		}
	else
		for (const struct step *s = step; s->kind; s++)
			for (t.i = 0; t.i < 2; t.i++)
				emit_step(r, &t, s, n);
	if (t.odd)
		soft_native_bail(r, soft_host_jump_mask(r->code, t.k_odd), skip);
}

/* Shifts by what is in lanes, and by a constant. */
static const enum soft_host_op shifts[][2] = {
	{ SOFT_HOST_SLLVD, SOFT_HOST_SLLD },
	{ SOFT_HOST_SRLVD, SOFT_HOST_SRLD },
	{ SOFT_HOST_SRAVD, SOFT_HOST_SRAD },
};

/* Is source A, B or C a constant, and which? */
static bool find_constant(const struct soft_microop *m, int name,
			  uint32_t *value)
{
	const struct isa_operand *o = &m->u->in.opnd[1 + name - A];

	if (name > C || m->part != SOFT_PART_ALL ||
	    m->u->in.form == ISA_FORM_DPP16 || m->u->in.form == ISA_FORM_DPP8 ||
	    1 + name - A >= m->u->in.n_opnd ||
	    (o->kind != ISA_K_INLINE && o->kind != ISA_K_LITERAL))
		return false;
	*value = (uint32_t)soft_read_scalar(NULL, o, &m->u->in);
	return true;
}

/*
 * Are the next two steps a shift by five bits of a constant, and is that all
 * these are for?  *to: the one that does the same.
 */
static bool find_shift(const struct step *s, const struct soft_microop *m,
		       struct step *to)
{
	uint32_t by;

	if (s->kind != PLAIN || s->op != SOFT_HOST_ANDD || s->d != U ||
	    s->s2 != K_31 || s[1].kind != PLAIN || s[1].s2 != U ||
	    is_mentioned(s + 2, U))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shifts); i++)
		if (s[1].op == shifts[i][0] && find_constant(m, s->s1, &by)) {
			*to = (struct step){ PLAIN, shifts[i][1], s[1].d,
					     0,	    s[1].s1,	  by & 31 };
			return true;
		}
	return false;
}

/* The steps of a microop, of which there are at most STEPS_MOST, to `to`. */
#define STEPS_MOST 192
static void copy_steps(const struct step *s, const struct soft_microop *m,
		       struct step *to)
{
	int n = 0;

	while (s->kind) {
		const bool shift = find_shift(s, m, &to[n]);

		if (!shift)
			to[n] = *s;
		s += 1 + shift;
		if (++n == STEPS_MOST)
			BUG("more than %d steps", STEPS_MOST - 1);
	}
	to[n].kind = END;
}

/* Bit of lanes where a relation holds between zmm a and zmm b: to `k`. */
static void emit_unordered(struct soft_native_run *r, int k, int a, int b,
			   int exec)
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

static void check_value(struct soft_native_run *r, int t, enum name value,
			size_t skip)
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
		       const struct soft_steps_use *use, const struct names *n,
		       size_t skip)
{
	switch (row->check) {
	case NONE:
	case PAIRS:
	case VNNI:
	case VBMI:
	case POPCNT:
	case HALF:
		break;
	case NAN_RESULT:
		check_nan(r, n->pair[T], skip);
		break;
	case ORDERED:
		check_ordered(r, n->pair[A], n->pair[B], skip);
		if (use->names >> C & 1)
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
		       const struct soft_steps_use *use, struct names *n)
{
	const uintptr_t at[] = { m->a, m->b, m->c };
	const uint8_t base[] = { m->ka, m->kb, m->kc };
	const bool all = r->masked && use->kinds >> ODD_PARTS & 1;

	for (int i = A; i <= C_HIGH; i++) {
		if (!(use->names >> i & 1))
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
	n->pair[T] = use->result ? soft_native_take(r) : 0;
	n->pair[U] = SOFT_PAIR_U;
	n->pair[V] = SOFT_PAIR_V;
	for (int i = T_HIGH; i < K_FIRST; i++)
		if (use->names >> i & 1)
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
	const int bits = isa_type_info(soft_native_result(m)->type)->bits;

	emit_steps(r, bits == 16 ? half : full, 0, n, 0);
}

static struct soft_host_mem mode_at(void)
{
	return (struct soft_host_mem){
		SOFT_RDI, (int32_t)offsetof(struct soft_wave, mode) };
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
	struct step step[STEPS_MOST];
	struct soft_steps_use use;
	struct names n = { { 0 } };

	copy_steps(row->step, m, step);
	use = soft_steps_use(step);
	if (soft_row_is_half(row) || row->check == PAIRS)
		require_plain16(r, skip);
	/*
	 * Others do not mind if it is so: where MODE says it, what they read
	 * has no denormals.
	 */
	if (soft_native_flushes(m, r->mode))
		soft_native_flush(r, true);
	soft_native_exec(r, m->half);
	name_pairs(r, m, &use, &n);
	if (use.kinds & SOFT_READS)
		load_mask(r, SOFT_K_IN, m->mask_in);
	if (use.kinds & (SOFT_MAKES | SOFT_ODD))
		r->mask = SOFT_NOWHERE;
	emit_steps(r, step, use.kinds, &n, skip);
	emit_check(r, row, &use, &n, skip);
	if (soft_native_clamps(m))
		emit_clamp(r, m, &n);
	if (soft_row_is_half(row))
		soft_native_merge_half(r, n.pair[T],
				       soft_native_vreg(r, m->half, m->d),
				       m->imm);
	if (use.kinds & SOFT_MAKES && m->mask_out != SOFT_NO_MASK)
		store_mask(r, m);
	if (use.result)
		soft_native_put(r, n.pair[T], soft_native_vreg(r, m->half, m->d));
	if (use.names >> T_HIGH & 1)
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
		emit_row(r, m, soft_native_find(m, r->mode), skip);
}
