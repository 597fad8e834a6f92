/*
 * kfd/soft/exec/lane.c - VOP3 and VOP3P instructions that look across lanes.
 *
 * They are no lane functions: readlane, writelane, permlane16, permlanex16.
 * WMMA is in wmma.c.
 */
#include "kfd/soft/exec/valu.h"

/* The lane that a scalar operand selects, as half and lane of the half. */
static void select_lane(struct soft_wave *w, const struct soft_uop *u,
			const struct isa_operand *o, int *half, int *lane)
{
	unsigned n = soft_read_scalar(w, o, &u->in) & (w->wave_size - 1);

	*half = n / SOFT_LANES;
	*lane = n % SOFT_LANES;
}

/* EXEC plays no part in either. */
static void run_readlane(struct soft_wave *w, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd; /* scalar, VGPR, lane */
	int half, lane;
	uint32_t *v;

	select_lane(w, u, &o[2], &half, &lane);
	v = soft_vgpr(w, half, o[1].reg, 1);
	if (v)
		soft_write_scalar(w, &o[0], v[lane]);
}

static void run_writelane(struct soft_wave *w, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd; /* VGPR, scalar, lane */
	int half, lane;
	uint32_t *v;

	select_lane(w, u, &o[2], &half, &lane);
	v = soft_vgpr(w, half, o[0].reg, 1);
	if (v)
		v[lane] = (uint32_t)soft_read_scalar(w, &o[1], &u->in);
}

/*
 * Within each row of 16 lanes (permlanex16: from the other row of the pair),
 * lane i takes the lane that nibble i of the selector names.  op_sel[0] is FI:
 * disabled lanes may be read.  op_sel[1] is bound control: without FI a
 * disabled lane reads as 0; without either the destination stays.
 */
static void run_permlane(struct soft_wave *w, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd; /* VGPR, VGPR, low, high */
	uint64_t sel = (uint32_t)soft_read_scalar(w, &o[2], &u->in) |
		       soft_read_scalar(w, &o[3], &u->in) << 32;
	int other = u->in.op == ISA_v_permlanex16_b32 ? 16 : 0;
	bool fi = u->in.f[ISA_F_OPSEL] & 1, bound = u->in.f[ISA_F_OPSEL] & 2;

	for (int half = 0; half < w->wave_size / SOFT_LANES; half++) {
		uint32_t exec = soft_exec(w, half), tmp[SOFT_LANES];
		const uint32_t *from = soft_vgpr(w, half, o[1].reg, 1);
		uint32_t *to = soft_vgpr(w, half, o[0].reg, 1);

		if (!from || !to)
			return;
		memcpy(tmp, from, sizeof(tmp));
		LANES(i)
		{
			int s = ((i & 16) ^ other) | (sel >> 4 * (i & 15) & 15);

			if (!(exec >> i & 1))
				continue;
			if (fi || exec >> s & 1)
				to[i] = tmp[s];
			else if (bound)
				to[i] = 0;
		}
	}
}

/* gfx12: each lane's own source names the lane that it takes. */
static void run_permlane_var(struct soft_wave *w, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd; /* VGPR, VGPR, VGPR */
	const int other = u->in.op == ISA_v_permlanex16_var_b32 ? 16 : 0;
	const bool fi = u->in.f[ISA_F_OPSEL] & 1;
	const bool bound = u->in.f[ISA_F_OPSEL] & 2;

	for (int half = 0; half < w->wave_size / SOFT_LANES; half++) {
		uint32_t exec = soft_exec(w, half), tmp[SOFT_LANES];
		const uint32_t *from = soft_vgpr(w, half, o[1].reg, 1);
		const uint32_t *sel = soft_vgpr(w, half, o[2].reg, 1);
		uint32_t *to = soft_vgpr(w, half, o[0].reg, 1);

		if (!from || !sel || !to)
			return;
		memcpy(tmp, from, sizeof(tmp));
		FOR_LANES(i, exec) {
			const uint32_t s = ((i & 16) ^ (uint32_t)other) |
					   (sel[i] & 15);

			if (fi || exec >> s & 1)
				to[i] = tmp[s];
			else if (bound)
				to[i] = 0;
		}
	}
}

soft_handler *soft_vop3_special(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_v_readlane_b32:
		return run_readlane;
	case ISA_v_writelane_b32:
		return run_writelane;
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
		return run_permlane;
	case ISA_v_permlane16_var_b32:
	case ISA_v_permlanex16_var_b32:
		return run_permlane_var;
	default:
		return NULL;
	}
}
