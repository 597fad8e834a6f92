/*
 * compiler/isel/select_matrix.c - matrix products and dot products.
 *
 * Where the chip has no matrix instruction, the lanes that would feed it do the
 * sums themselves.  The layout of fragments is gfx11's (RDNA3 ISA 7.9): of A a
 * lane has the row of its number modulo 16, of B the column, both rows of 16
 * lanes the same; of C and D element j of lane t is row 2 j + t / 16, column
 * t % 16.  So a lane needs two rows of A's lanes one after the other, which DPP
 * shares within a row of lanes, and of B nothing but its own.
 */
#include "compiler/isel/select.h"

enum { ROWS = 8, MOST_TERMS = 16 };

/*
 * A sum's factors in registers, `n` of them, and what adds one product; `onto`
 * adds it to its result and can move A's lanes meanwhile, NONE: there is none.
 */
struct terms {
	struct mir_opnd a[MOST_TERMS], b[MOST_TERMS];
	int n, op, onto;
};

/* ------------------------------------------------------------ products ---- */

static bool has_op(const struct sel *s, enum isa_op op)
{
	return isa_op_info(op)->opcode[s->m->gen] >= 0;
}

/* The floats of a pair of f16. */
static struct mir_opnd f16_low(struct sel *s, struct mir_opnd x)
{
	return sel_v1(s, ISA_v_cvt_f32_f16, x);
}

static struct mir_opnd f16_high(struct sel *s, struct mir_opnd x)
{
	return f16_low(s, sel_v1(s, ISA_v_lshrrev_b32, mir_imm(16), x));
}

/* The floats of a pair of bf16. */
static struct mir_opnd bf16_low(struct sel *s, struct mir_opnd x)
{
	return sel_v1(s, ISA_v_lshlrev_b32, mir_imm(16), x);
}

static struct mir_opnd bf16_high(struct sel *s, struct mir_opnd x)
{
	return sel_v1(s, ISA_v_and_b32, mir_imm(0xffff0000), x);
}

static void float_terms(struct sel *s, struct terms *t, bool bf16,
			struct mir_opnd a, struct mir_opnd b)
{
	const bool dots = !bf16 && has_op(s, ISA_v_dot2_f32_f16);

	t->op = dots ? ISA_v_dot2_f32_f16 : ISA_v_fma_f32;
	t->onto = dots ? ISA_v_dot2acc_f32_f16 : ISA_v_fmac_f32;
	for (int k = 0; k < a.n; k++) {
		struct mir_opnd x = mir_part(a, k, 1), y = mir_part(b, k, 1);

		if (dots) {
			t->a[t->n] = x;
			t->b[t->n++] = y;
			continue;
		}
		t->a[t->n] = bf16 ? bf16_low(s, x) : f16_low(s, x);
		t->b[t->n++] = bf16 ? bf16_low(s, y) : f16_low(s, y);
		t->a[t->n] = bf16 ? bf16_high(s, x) : f16_high(s, x);
		t->b[t->n++] = bf16 ? bf16_high(s, y) : f16_high(s, y);
	}
}

/* An unsigned factor as a signed one that is less by half of its range. */
static struct mir_opnd without_half(struct sel *s, struct mir_opnd x, int bits)
{
	return sel_v1(s, ISA_v_xor_b32,
		      mir_imm(bits == 8 ? 0x80808080 : 0x88888888), x);
}

/* The k-th integer of a register. */
static struct mir_opnd int_part(struct sel *s, struct mir_opnd x, int k,
				int bits, bool has_sign)
{
	return sel_v1(s, has_sign ? ISA_v_bfe_i32 : ISA_v_bfe_u32, x,
		      mir_imm((uint32_t)(k * bits)), mir_imm((uint32_t)bits));
}

/* Without dot products each is a factor of its own. */
static void single_int_terms(struct sel *s, struct terms *t, int bits, bool sa,
			     bool sb, struct mir_opnd a, struct mir_opnd b)
{
	t->op = ISA_v_mad_i32_i24;
	for (int k = 0; k < a.n * 32 / bits; k++) {
		const int at = k * bits / 32, part = k % (32 / bits);

		t->a[t->n] = int_part(s, mir_part(a, at, 1), part, bits, sa);
		t->b[t->n++] = int_part(s, mir_part(b, at, 1), part, bits, sb);
	}
}

/*
 * Bytes or nibbles.  Of factors with and without a sign the one without loses
 * half of its range, and twice a quarter times the other is added.
 */
static void int_terms(struct sel *s, struct terms *t, int bits, bool sa,
		      bool sb, struct mir_opnd a, struct mir_opnd b)
{
	const int with = bits == 8 ? ISA_v_dot4_i32_i8 : ISA_v_dot8_i32_i4;
	const int without = bits == 8 ? ISA_v_dot4_u32_u8 : ISA_v_dot8_u32_u4;
	struct mir_opnd quarter = { 0 };

	if (!has_op(s, with)) {
		single_int_terms(s, t, bits, sa, sb, a, b);
		return;
	}
	t->op = sa || sb ? with : without;
	t->onto = t->op == ISA_v_dot4_i32_i8 ? ISA_v_dot4c_i32_i8 : ISA_OP_NONE;
	if (sa != sb) {
		quarter = sel_new_v(s, 1);
		sel_copy(s, quarter,
			 mir_imm(bits == 8 ? 0x40404040 : 0x44444444));
	}
	for (int k = 0; k < a.n; k++) {
		struct mir_opnd x = mir_part(a, k, 1), y = mir_part(b, k, 1);

		t->a[t->n] = sa || sa == sb ? x : without_half(s, x, bits);
		t->b[t->n++] = sb || sa == sb ? y : without_half(s, y, bits);
		for (int twice = 0; sa != sb && twice < 2; twice++) {
			t->a[t->n] = sa ? x : quarter;
			t->b[t->n++] = sa ? quarter : y;
		}
	}
}

/* ------------------------------------------------------------- by lanes ----
 */

static void move_lanes(struct mir_inst *m, const char *pattern, int flags)
{
	m->tail = pattern;
	m->flags |= MIR_DPP | flags;
}

/* Rows 2 j + 1 of A to where rows 2 j are in the other lanes. */
static struct mir_opnd shift_odd_rows(struct sel *s, struct mir_opnd a)
{
	struct mir_opnd d = sel_new_v(s, 1);

	sel_copy(s, d, a);
	move_lanes(sel_raw(s, ISA_v_mov_b32, d, a),
		   " row_ror:15 row_mask:0xa bank_mask:0xf", MIR_PARTIAL);
	return d;
}

static const char *share_row(struct sel *s, int j)
{
	return arena_printf(s->m->arena,
			    " row_share:%d row_mask:0xf bank_mask:0xf "
			    "bound_ctrl:1",
			    2 * j);
}

static void sum_row(struct sel *s, const struct terms *t, int j,
		    struct mir_opnd d, struct mir_opnd c)
{
	const char *pattern = share_row(s, j);

	if (t->onto)
		sel_copy(s, d, c);
	for (int k = 0; k < t->n; k++) {
		struct mir_opnd x, to = k + 1 < t->n ? sel_new_v(s, 1) : d;

		if (t->onto) {
			move_lanes(sel_raw(s, t->onto, d, t->a[k], t->b[k]),
				   pattern, MIR_PARTIAL);
			continue;
		}
		x = sel_new_v(s, 1);
		move_lanes(sel_raw(s, ISA_v_mov_b32, x, t->a[k]), pattern, 0);
		sel_v(s, t->op, to, x, t->b[k], c);
		c = to;
	}
}

/* f32 to bf16, to nearest; what is no number stays so. */
static void round_bf16(struct sel *s, struct mir_opnd d, struct mir_opnd x)
{
	struct mir_opnd odd =
		sel_v1(s, ISA_v_bfe_u32, x, mir_imm(16), mir_imm(1));
	struct mir_opnd up = sel_v1(s, ISA_v_add3_u32, x, odd, mir_imm(0x7fff));
	struct mir_opnd number = sel_new_mask(s), y = sel_new_v(s, 1);
	struct mir_opnd quiet = sel_v1(s, ISA_v_or_b32, mir_imm(0x400000), x);

	sel_v(s, ISA_v_cmp_o_f32, number, x, x);
	sel_v(s, ISA_v_cndmask_b32, y, quiet, up, number);
	sel_v(s, ISA_v_lshrrev_b32, d, mir_imm(16), y);
}

/* Sums of 16 bits are done in 32. */
static void sum_narrow_row(struct sel *s, const struct terms *t, int j,
			   bool bf16, struct mir_opnd d, struct mir_opnd c)
{
	struct mir_opnd sum = sel_new_v(s, 1);

	c = bf16 ? bf16_low(s, c) : sel_v1(s, ISA_v_cvt_f32_f16, c);
	sum_row(s, t, j, sum, c);
	if (bf16)
		round_bf16(s, d, sum);
	else
		sel_v(s, ISA_v_cvt_f16_f32, d, sum);
}

static void multiply_by_lanes(struct sel *s, const struct ssa_inst *i)
{
	struct mir_opnd a = sel_get_v(s, i->arg[0]);
	struct mir_opnd b = sel_get_v(s, i->arg[1]);
	struct mir_opnd c = sel_get_v(s, i->arg[2]), d = sel_def(s, i);
	const bool sa = i->flags & SSA_SIGNED_A, sb = i->flags & SSA_SIGNED_B;
	const bool bf16 = i->sub == SSA_WMMA_F32_BF16 ||
			  i->sub == SSA_WMMA_BF16_BF16;
	const bool narrow = i->sub == SSA_WMMA_F16_F16 ||
			    i->sub == SSA_WMMA_BF16_BF16;
	struct terms t = { .n = 0 };

	if (i->sub == SSA_WMMA_I32_IU8 || i->sub == SSA_WMMA_I32_IU4)
		int_terms(s, &t, i->sub == SSA_WMMA_I32_IU8 ? 8 : 4, sa, sb, a,
			  b);
	else
		float_terms(s, &t, bf16, a, b);
	for (int k = 0; k < t.n; k++)
		t.a[k] = shift_odd_rows(s, t.a[k]);
	for (int j = 0; j < ROWS; j++) {
		struct mir_opnd to = mir_part(d, j, 1),
				from = mir_part(c, j, 1);

		if (narrow)
			sum_narrow_row(s, &t, j, bf16, to, from);
		else
			sum_row(s, &t, j, to, from);
	}
}

/* ------------------------------------------------------------ matrices ---- */

void sel_wmma(struct sel *s, const struct ssa_inst *i)
{
	static const uint16_t op[SSA_WMMAS] = {
		[SSA_WMMA_F32_F16] = ISA_v_wmma_f32_16x16x16_f16,
		[SSA_WMMA_F32_BF16] = ISA_v_wmma_f32_16x16x16_bf16,
		[SSA_WMMA_F16_F16] = ISA_v_wmma_f16_16x16x16_f16,
		[SSA_WMMA_BF16_BF16] = ISA_v_wmma_bf16_16x16x16_bf16,
		[SSA_WMMA_I32_IU8] = ISA_v_wmma_i32_16x16x16_iu8,
		[SSA_WMMA_I32_IU4] = ISA_v_wmma_i32_16x16x16_iu4,
	};
	bool a = i->flags & SSA_SIGNED_A, b = i->flags & SSA_SIGNED_B;
	struct mir_inst *m;

	if (s->m->wave != 32) {
		sel_refuse(s, i, "matrix products are for wave32 here");
		return;
	}
	if (isa_gen_info(s->m->gen)->dealt_matrices) {
		sel_dealt_matrix(s, i);
		return;
	}
	if (isa_op_info(op[i->sub])->opcode[s->m->gen] < 0) {
		multiply_by_lanes(s, i);
		return;
	}
	m = sel_raw(s, op[i->sub], sel_def(s, i), sel_get_v(s, i->arg[0]),
		    sel_get_v(s, i->arg[1]), sel_get_v(s, i->arg[2]));
	m->flags |= MIR_EARLY | MIR_TIED;
	/* neg_lo means signed here (RDNA3 ISA 7.9). */
	if (i->sub >= SSA_WMMA_I32_IU8 && (a || b))
		m->tail = arena_printf(s->m->arena, " neg_lo:[%d,%d,0]", a, b);
}

/* -------------------------------------------------------- dot products ---- */

/* f16 without dot products: multiply-adds that take halves. */
static void mix_halves(struct sel *s, struct mir_opnd d, struct mir_opnd a,
		       struct mir_opnd b, struct mir_opnd c)
{
	struct mir_opnd low = sel_new_v(s, 1);
	struct mir_inst *m = sel_v(s, ISA_v_fma_mix_f32, low, a, b, c);

	m->tail = " op_sel_hi:[1,1,0]";
	m = sel_v(s, ISA_v_fma_mix_f32, d, a, b, low);
	m->tail = " op_sel:[1,1,0] op_sel_hi:[1,1,0]";
}

static void sum_terms(struct sel *s, const struct terms *t, struct mir_opnd d,
		      struct mir_opnd c)
{
	for (int k = 0; k < t->n; k++) {
		struct mir_opnd to = k + 1 < t->n ? sel_new_v(s, 1) : d;

		sel_v(s, t->op, to, t->a[k], t->b[k], c);
		c = to;
	}
}

void sel_dot(struct sel *s, const struct ssa_inst *i)
{
	bool bf16 = i->arg[0]->type.kind == SSA_BF16;
	struct mir_opnd a = sel_get_v(s, i->arg[0]);
	struct mir_opnd b = sel_get_v(s, i->arg[1]);
	struct terms t = { .n = 0 };
	struct mir_inst *m;

	if (i->op == SSA_dot4_s && has_op(s, ISA_v_dot4_i32_iu8)) {
		m = sel_v(s, ISA_v_dot4_i32_iu8, sel_def(s, i), a, b,
			  sel_get_v(s, i->arg[2]));
		m->tail = " neg_lo:[1,1,0]";
	} else if (i->op == SSA_dot4_s) {
		int_terms(s, &t, 8, true, true, a, b);
		sum_terms(s, &t, sel_def(s, i), sel_get_v(s, i->arg[2]));
	} else if (bf16 && !has_op(s, ISA_v_dot2_f32_bf16)) {
		float_terms(s, &t, true, a, b);
		sum_terms(s, &t, sel_def(s, i), sel_get_v(s, i->arg[2]));
	} else if (!bf16 && !has_op(s, ISA_v_dot2_f32_f16)) {
		mix_halves(s, sel_def(s, i), a, b, sel_get_v(s, i->arg[2]));
	} else {
		sel_v(s, bf16 ? ISA_v_dot2_f32_bf16 : ISA_v_dot2_f32_f16,
		      sel_def(s, i), a, b, sel_get_v(s, i->arg[2]));
	}
}
