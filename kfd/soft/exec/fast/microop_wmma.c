/*
 * kfd/soft/exec/fast/microop_wmma.c - WMMA as steps (step.h): f32 sums of f16 and bf16 in a
 * wave32, without modifiers.  Anything else is for the handler.
 */
#include "kfd/soft/exec/wmma.h"

#define PLANE_BYTES	(SOFT_LANES * sizeof(uint32_t))
#define FRAGMENT_PLANES 8 /* 16 x 16 floats */
#define FRAGMENT_VGPRS	8

#define LEVEL(name)                                                          \
	(soft_vrows() == soft_vrows_v4 ? name##_v4 :                         \
	 soft_vrows() == soft_vrows_v3 ? name##_v3 :                         \
					 name##_v2)

static bool is_plain(const struct isa_inst *in)
{
	const struct isa_operand *o = in->opnd; /* D, A, B, C */

	return (in->op == ISA_v_wmma_f32_16x16x16_f16 ||
		in->op == ISA_v_wmma_f32_16x16x16_bf16) &&
	       o[3].kind == ISA_K_VGPR &&
	       !((o[1].mods | o[2].mods | o[3].mods) &
		 (ISA_M_NEG | ISA_M_NEG_HI));
}

/* The fragment in registers `reg` on, as floats; NULL: no room. */
static uint8_t *fragment(struct soft_maker *m, const struct soft_uop *u,
			 int reg)
{
	bool bf16 = u->in.op == ISA_v_wmma_f32_16x16x16_bf16;
	struct soft_step *s;
	int i = 0;

	while (i < m->n_fragments && (m->fragment[i].reg != reg ||
				      m->fragment[i].op != u->in.op))
		i++;
	if (i == SOFT_STRETCH_FRAGMENTS)
		return NULL;
	if (i == m->n_fragments) {
		uint8_t *p = soft_maker_planes(m, FRAGMENT_PLANES);

		if (!p)
			return NULL;
		m->fragment[i].reg = reg;
		m->fragment[i].op = u->in.op;
		m->fragment[i].plane = p;
		m->fragment[i].valid = false;
		m->n_fragments++;
	}
	if (!m->fragment[i].valid) {
		s = soft_maker_add(m, bf16 ? LEVEL(soft_step_from_bf16) :
					     LEVEL(soft_step_from_f16), u);
		s->a = (uintptr_t)reg * PLANE_BYTES;
		s->c = (uintptr_t)m->fragment[i].plane;
		m->fragment[i].valid = true;
	}
	return m->fragment[i].plane;
}

static void forget(struct soft_maker *m, int reg, int end)
{
	for (int i = 0; i < m->n_fragments; i++)
		if (m->fragment[i].reg < end &&
		    m->fragment[i].reg + FRAGMENT_VGPRS > reg)
			m->fragment[i].valid = false;
}

void soft_maker_written(struct soft_maker *m, const struct soft_uop *u)
{
	for (int i = 0; m->n_fragments && i < u->in.n_opnd; i++) {
		const struct isa_operand *o = &u->in.opnd[i];

		if (o->kind == ISA_K_VGPR && o->role & ISA_DST)
			forget(m, o->reg,
			       o->reg + (o->dwords ? o->dwords : 1));
	}
}

bool soft_step_wmma(struct soft_maker *m, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd;
	size_t before = m->steps.len;
	uint8_t *a, *b;
	struct soft_step *s;

	if (m->wide || !is_plain(&u->in) || !LEVEL(soft_step_wmma_f32))
		return false;
	a = fragment(m, u, o[1].reg);
	b = a ? fragment(m, u, o[2].reg) : NULL;
	if (!b) {
		m->steps.len = before;
		m->n_fragments = 0;
		return false;
	}
	s = soft_maker_add(m, LEVEL(soft_step_wmma_f32), u);
	s->a = (uintptr_t)a;
	s->b = (uintptr_t)b;
	s->c = o[3].reg * PLANE_BYTES;
	s->d = o[0].reg * PLANE_BYTES;
	return true;
}
