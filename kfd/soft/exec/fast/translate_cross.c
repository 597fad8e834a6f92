/*
 * kfd/soft/exec/fast/translate_cross.c - what moves lanes at will, to microops.
 */
#include "kfd/soft/exec/fast/translate.h"

static uint32_t ds_offset(const struct soft_uop *u)
{
	return u->in.f[ISA_F_OFFSET0] | u->in.f[ISA_F_OFFSET1] << 8;
}

static bool add_bpermute(struct soft_translator *t, const struct soft_uop *u)
{
	for (int h = 0; h <= t->wide; h++) {
		struct soft_microop *m =
			soft_translator_emit(t, t->simd->cross->bpermute, u);

		m->half = (uint8_t)h;
		m->a = u->in.f[ISA_F_ADDR] * SOFT_VREG_BYTES;
		m->b = u->in.f[ISA_F_DATA0] * SOFT_VREG_BYTES;
		m->d = u->in.f[ISA_F_VDST] * SOFT_VREG_BYTES;
		m->imm = ds_offset(u);
	}
	return true;
}

static bool add_swizzle(struct soft_translator *t, const struct soft_uop *u)
{
	uint32_t *from = (uint32_t *)(void *)soft_translator_temps(t, 1);

	if (!from)
		return false;
	for (uint32_t i = 0; i < SOFT_LANES; i++)
		from[i] = soft_swizzle_from(i, ds_offset(u));
	for (int h = 0; h <= t->wide; h++) {
		struct soft_microop *m =
			soft_translator_emit(t, t->simd->cross->swizzle, u);

		m->half = (uint8_t)h;
		m->a = (uintptr_t)from;
		m->b = u->in.f[ISA_F_ADDR] * SOFT_VREG_BYTES;
		m->d = u->in.f[ISA_F_VDST] * SOFT_VREG_BYTES;
	}
	return true;
}

/* The handler does both halves of a wave64. */
static bool add_permlane(struct soft_translator *t, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd; /* VGPR, VGPR, low, high */
	struct soft_microop *m;

	if (t->wide)
		return false;
	m = soft_translator_emit(t, t->simd->cross->permlane, u);
	m->b = o[1].reg * SOFT_VREG_BYTES;
	m->d = o[0].reg * SOFT_VREG_BYTES;
	m->part = u->in.f[ISA_F_OPSEL] & 1;
	m->imm = u->in.op == ISA_v_permlanex16_b32 ? 16 : 0;
	return true;
}

const struct soft_microop *soft_translate_lane(struct soft_translator *t,
					       const struct soft_uop *u)
{
	struct soft_microop *m;

	if (u->in.op != ISA_v_readlane_b32 && u->in.op != ISA_v_writelane_b32 &&
	    u->in.op != ISA_v_readfirstlane_b32)
		return NULL;
	m = soft_translator_emit(t, soft_microop_checked, u);
	m->imm = t->wide ? 2 * SOFT_LANES : SOFT_LANES;
	return m;
}

bool soft_translate_cross(struct soft_translator *t, const struct soft_uop *u)
{
	switch (u->in.op) {
	case ISA_ds_bpermute_b32:
		return add_bpermute(t, u);
	case ISA_ds_swizzle_b32:
		return add_swizzle(t, u);
	case ISA_v_permlane16_b32:
	case ISA_v_permlanex16_b32:
		return add_permlane(t, u);
	default:
		return false;
	}
}
