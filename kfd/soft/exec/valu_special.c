/*
 * kfd/soft/exec/valu_special.c - VOP1 instructions that are no lane functions.
 *
 * They write two registers, choose registers by M0, or cross lanes.
 */
#include "kfd/soft/exec/mem.h"
#include "kfd/soft/exec/valu.h"

/* The first active lane, or lane 0 if there is none. */
static void run_readfirstlane(struct soft_wave *w, const struct soft_uop *u)
{
	uint64_t exec = soft_exec(w, 0);
	const uint32_t *p;
	int lane;

	if (w->wave_size == 64)
		exec |= (uint64_t)soft_exec(w, 1) << 32;
	lane = exec ? __builtin_ctzll(exec) : 0;
	p = soft_vgpr(w, lane / SOFT_LANES, u->in.opnd[1].reg, 1);
	if (p)
		soft_write_scalar(w, &u->in.opnd[0], p[lane % SOFT_LANES]);
}

static void swap_vgprs(struct soft_wave *w, unsigned a, unsigned b)
{
	for (int half = 0; half < w->wave_size / SOFT_LANES; half++) {
		uint32_t exec = soft_exec(w, half);
		uint32_t *pa = soft_vgpr(w, half, a, 1);
		uint32_t *pb = pa ? soft_vgpr(w, half, b, 1) : NULL;

		if (!pb)
			return;
		LANES(i)
		{
			uint32_t va = pa[i];

			if (!(exec >> i & 1))
				continue;
			pa[i] = pb[i];
			pb[i] = va;
		}
	}
}

static void run_swap_b32(struct soft_wave *w, const struct soft_uop *u)
{
	swap_vgprs(w, u->in.opnd[0].reg, u->in.opnd[1].reg);
}

/* Registers that M0 moves; beyond the file they fault like any other. */
static unsigned shift_register(unsigned reg, uint32_t by)
{
	return by < 0x1000 ? reg + by : 0xff00;
}

/* M0[9:0] moves the source, M0[25:16] the destination. */
static void run_swaprel_b32(struct soft_wave *w, const struct soft_uop *u)
{
	uint32_t m0 = w->s[ISA_R_M0];

	swap_vgprs(w, shift_register(u->in.opnd[0].reg, m0 >> 16 & 0x3ff),
	     shift_register(u->in.opnd[1].reg, m0 & 0x3ff));
}

static void run_swap_b16(struct soft_wave *w, const struct soft_uop *u)
{
	const struct isa_operand *a = &u->in.opnd[0], *b = &u->in.opnd[1];
	int sa = a->mods & ISA_M_HI ? 16 : 0, sb = b->mods & ISA_M_HI ? 16 : 0;

	for (int half = 0; half < w->wave_size / SOFT_LANES; half++) {
		uint32_t exec = soft_exec(w, half);
		uint32_t *pa = soft_vgpr(w, half, a->reg, 1);
		uint32_t *pb = pa ? soft_vgpr(w, half, b->reg, 1) : NULL;

		if (!pb)
			return;
		LANES(i)
		{
			uint32_t va = pa[i] >> sa & 0xffff;
			uint32_t vb = pb[i] >> sb & 0xffff;

			if (!(exec >> i & 1))
				continue;
			/* Both may be halves of one register. */
			pa[i] = (pa[i] & ~(0xffffu << sa)) | vb << sa;
			pb[i] = (pb[i] & ~(0xffffu << sb)) | va << sb;
		}
	}
}

/* Swap the halves of a wave64; nothing in wave32 (RDNA3 ISA 16.8). */
static void run_permlane64(struct soft_wave *w, const struct soft_uop *u)
{
	uint32_t old[2][SOFT_LANES];

	if (w->wave_size != 64)
		return;
	for (int half = 0; half < 2; half++) {
		const uint32_t *p = soft_vgpr(w, half, u->in.opnd[1].reg, 1);

		if (!p)
			return;
		memcpy(old[half], p, sizeof(old[half]));
	}
	for (int half = 0; half < 2; half++) {
		uint32_t *to = soft_vgpr(w, half, u->in.opnd[0].reg, 1);
		uint32_t exec = soft_exec(w, half);

		if (!to)
			return;
		LANES(i) if (exec >> i & 1) to[i] = old[!half][i];
	}
}

/* MOVREL: a move whose registers M0 shifts. */
static void run_movrel(struct soft_wave *w, const struct soft_uop *u)
{
	uint32_t m0 = w->s[ISA_R_M0], from = m0, to = m0;
	struct soft_uop move = *u;

	if (u->in.op == ISA_v_movreld_b32)
		from = 0;
	if (u->in.op == ISA_v_movrels_b32)
		to = 0;
	if (u->in.op == ISA_v_movrelsd_2_b32) {
		from = m0 & 0x3ff;
		to = m0 >> 16 & 0x3ff;
	}
	move.in.op = ISA_v_mov_b32;
	move.op = (const struct soft_lane_op *)u->op - u->in.op + move.in.op;
	move.in.opnd[0].reg = shift_register(u->in.opnd[0].reg, to);
	if (u->in.opnd[1].kind == ISA_K_VGPR)
		move.in.opnd[1].reg = shift_register(u->in.opnd[1].reg, from);
	soft_valu_run(w, &move);
}

soft_handler *soft_vop1_special(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_v_nop:
	case ISA_v_pipeflush:
		return soft_run_nothing;
	case ISA_v_readfirstlane_b32:
		return run_readfirstlane;
	case ISA_v_swap_b32:
		return run_swap_b32;
	case ISA_v_swap_b16:
		return run_swap_b16;
	case ISA_v_swaprel_b32:
		return run_swaprel_b32;
	case ISA_v_permlane64_b32:
		return run_permlane64;
	case ISA_v_movreld_b32:
	case ISA_v_movrels_b32:
	case ISA_v_movrelsd_b32:
	case ISA_v_movrelsd_2_b32:
		return run_movrel;
	default:
		return NULL;
	}
}
