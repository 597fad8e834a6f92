/*
 * compiler/isel/select_dealt.c - matrix products of chips that deal K and rows
 * out to lanes (kfd/soft/exec/gfx12/matrix.h), from fragments as enum ssa_wmma
 * has them.
 *
 * There lanes l and l + 16 have the same row of A or column of B; here each
 * takes its half of K.  Which element of K is which does not matter, as A and B
 * agree. There element j of lane l is row 2 j + l / 16 of the result, here 8 (l
 * / 16) + j: so the rows of A change places, and the result is where it
 * belongs.
 */
#include "compiler/isel/select.h"

/* Lane p of A takes the row that result 8 (p / 8) + p % 8 stands for: four
 * bits. */
enum { ROWS_LOW = 0xeca86420, ROWS_HIGH = 0xfdb97531 };
#define UPPER_LANES 0xffff0000

static const struct matrix {
	uint16_t op;
	uint8_t regs; /* of A and B, as SSA has them */
	bool half;    /* results of 16 bits share registers */
} matrices[SSA_WMMAS] = {
	[SSA_WMMA_F32_F16] = { ISA_v_wmma_f32_16x16x16_f16__w12, 8, false },
	[SSA_WMMA_F32_BF16] = { ISA_v_wmma_f32_16x16x16_bf16__w12, 8, false },
	[SSA_WMMA_F16_F16] = { ISA_v_wmma_f16_16x16x16_f16__w12, 8, true },
	[SSA_WMMA_BF16_BF16] = { ISA_v_wmma_bf16_16x16x16_bf16__w12, 8, true },
	[SSA_WMMA_I32_IU8] = { ISA_v_wmma_i32_16x16x16_iu8__w12, 4, false },
	[SSA_WMMA_I32_IU4] = { ISA_v_wmma_i32_16x16x16_iu4__w12, 2, false },
};

static void need_constants(struct sel *s)
{
	if (s->rows_in == s->b)
		return;
	s->rows_in = s->b;
	s->upper_lanes = sel_new_s(s, 1);
	s->row_low = sel_new_s(s, 1);
	s->row_high = sel_new_s(s, 1);
	sel_raw(s, ISA_s_mov_b32, s->upper_lanes, mir_imm(UPPER_LANES));
	sel_raw(s, ISA_s_mov_b32, s->row_low, mir_imm((uint32_t)ROWS_LOW));
	sel_raw(s, ISA_s_mov_b32, s->row_high, mir_imm((uint32_t)ROWS_HIGH));
}

/* Half of the registers: the first ones in lanes 0 to 15, the others above. */
static struct mir_opnd deal_fragment(struct sel *s, const struct ssa_inst *x,
				     int regs, bool is_a)
{
	struct sel_val *v = &s->val[x->id];
	const struct mir_opnd from = sel_get_v(s, x);
	const int n = regs / 2;
	struct mir_opnd to;

	if (v->dealt_in[is_a] == s->b)
		return v->dealt[is_a];
	need_constants(s);
	to = sel_new_v(s, n);
	for (int k = 0; k < n; k++) {
		const struct mir_opnd d = mir_part(to, k, 1);
		const struct mir_opnd t = is_a ? sel_new_v(s, 1) : d;

		sel_raw(s, ISA_v_cndmask_b32, t, mir_part(from, k, 1),
			mir_part(from, n + k, 1), s->upper_lanes);
		if (is_a)
			sel_raw(s, ISA_v_permlane16_b32, d, t, s->row_low,
				s->row_high);
	}
	v->dealt[is_a] = to;
	v->dealt_in[is_a] = s->b;
	return to;
}

/* C of 16 bits: two elements to a register, and back. */
static struct mir_opnd join_halves(struct sel *s, struct mir_opnd c)
{
	struct mir_opnd to = sel_new_v(s, 4);

	for (int k = 0; k < 4; k++)
		sel_raw(s, ISA_v_perm_b32, mir_part(to, k, 1),
			mir_part(c, 2 * k + 1, 1), mir_part(c, 2 * k, 1),
			mir_imm(0x05040100));
	return to;
}

static void part_halves(struct sel *s, struct mir_opnd from, struct mir_opnd d)
{
	for (int k = 0; k < 4; k++) {
		sel_raw(s, ISA_v_and_b32, mir_part(d, 2 * k, 1),
			mir_imm(0xffff), mir_part(from, k, 1));
		sel_raw(s, ISA_v_lshrrev_b32, mir_part(d, 2 * k + 1, 1),
			mir_imm(16), mir_part(from, k, 1));
	}
}

void sel_dealt_matrix(struct sel *s, const struct ssa_inst *i)
{
	const struct matrix *x = &matrices[i->sub];
	const bool sa = i->flags & SSA_SIGNED_A, sb = i->flags & SSA_SIGNED_B;
	const struct mir_opnd a = deal_fragment(s, i->arg[0], x->regs, true);
	const struct mir_opnd b = deal_fragment(s, i->arg[1], x->regs, false);
	struct mir_opnd c = sel_get_v(s, i->arg[2]), d = sel_def(s, i), sum = d;
	struct mir_inst *m;

	if (x->half) {
		c = join_halves(s, c);
		sum = sel_new_v(s, 4);
	}
	m = sel_raw(s, x->op, sum, a, b, c);
	m->flags |= MIR_EARLY | MIR_TIED;
	if (i->sub >= SSA_WMMA_I32_IU8 && (sa || sb))
		m->tail =
			arena_printf(s->m->arena, " neg_lo:[%d,%d,0]", sa, sb);
	if (x->half)
		part_halves(s, sum, d);
}
