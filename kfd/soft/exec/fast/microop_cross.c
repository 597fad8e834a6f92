/*
 * kfd/soft/exec/fast/microop_cross.c - adds the steps of step_cross.h.
 */
#include "kfd/soft/exec/fast/microop_cross.h"
#include "kfd/soft/exec/mem.h"

#define PLANE_BYTES (SOFT_LANES * sizeof(uint32_t))

#define STEPS                                                                \
	(soft_vrows() == soft_vrows_v4 ? &soft_cross_steps_v4 :              \
	 soft_vrows() == soft_vrows_v3 ? &soft_cross_steps_v3 :              \
					 &soft_cross_steps_v2)

static uint32_t offset(const struct soft_uop *u)
{
	return u->in.f[ISA_F_OFFSET0] | u->in.f[ISA_F_OFFSET1] << 8;
}

static bool add_bpermute(struct soft_maker *m, const struct soft_uop *u)
{
	for (int h = 0; h <= m->wide; h++) {
		struct soft_step *s = soft_maker_add(m, STEPS->bpermute, u);

		s->half = (uint8_t)h;
		s->a = u->in.f[ISA_F_ADDR] * PLANE_BYTES;
		s->b = u->in.f[ISA_F_DATA0] * PLANE_BYTES;
		s->d = u->in.f[ISA_F_VDST] * PLANE_BYTES;
		s->imm = offset(u);
	}
	return true;
}

static bool add_swizzle(struct soft_maker *m, const struct soft_uop *u)
{
	uint32_t *from = (uint32_t *)(void *)soft_maker_planes(m, 1);

	if (!from)
		return false;
	for (uint32_t i = 0; i < SOFT_LANES; i++)
		from[i] = soft_swizzle_from(i, offset(u));
	for (int h = 0; h <= m->wide; h++) {
		struct soft_step *s = soft_maker_add(m, STEPS->swizzle, u);

		s->half = (uint8_t)h;
		s->a = (uintptr_t)from;
		s->b = u->in.f[ISA_F_ADDR] * PLANE_BYTES;
		s->d = u->in.f[ISA_F_VDST] * PLANE_BYTES;
	}
	return true;
}

/* The handler does both halves of a wave64. */
static bool add_permlane(struct soft_maker *m, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd; /* VGPR, VGPR, low, high */
	struct soft_step *s;

	if (m->wide)
		return false;
	s = soft_maker_add(m, STEPS->permlane, u);
	s->b = o[1].reg * PLANE_BYTES;
	s->d = o[0].reg * PLANE_BYTES;
	s->part = u->in.f[ISA_F_OPSEL] & 1;
	s->imm = u->in.op == ISA_v_permlanex16_b32 ? 16 : 0;
	return true;
}

bool soft_step_cross(struct soft_maker *m, const struct soft_uop *u)
{
	switch (u->in.op) {
	case ISA_ds_bpermute_b32:
		return add_bpermute(m, u);
	case ISA_ds_swizzle_b32:
		return add_swizzle(m, u);
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
		return add_permlane(m, u);
	default:
		return false;
	}
}
