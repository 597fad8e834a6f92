/*
 * kfd/soft/exec/fast/translate_wmma.c - WMMA to microops.
 *
 * Of f32 sums of f16 and bf16 in a wave32, without modifiers; anything else is
 * for the handler.
 */
#include "kfd/soft/exec/fast/translate.h"
#include "kfd/soft/exec/wmma.h"

#define FRAGMENT_VREGS 8 /* 16 x 16 floats */
#define FRAGMENT_VGPRS 8

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
static uint8_t *find_fragment(struct soft_translator *t,
			      const struct soft_uop *u, int reg)
{
	bool bf16 = u->in.op == ISA_v_wmma_f32_16x16x16_bf16;
	struct soft_microop *m;
	int i = 0;

	while (i < t->n_fragments &&
	       (t->fragment[i].reg != reg || t->fragment[i].op != u->in.op))
		i++;
	if (i == SOFT_FRAGMENTS)
		return NULL;
	if (i == t->n_fragments) {
		uint8_t *p = soft_translator_temps(t, FRAGMENT_VREGS);

		if (!p)
			return NULL;
		t->fragment[i].reg = reg;
		t->fragment[i].op = u->in.op;
		t->fragment[i].vreg = p;
		t->fragment[i].valid = false;
		t->n_fragments++;
	}
	if (!t->fragment[i].valid) {
		m = soft_translator_emit(t,
					 bf16 ? t->simd->wmma->from_bf16 :
						t->simd->wmma->from_f16,
					 u);
		m->a = (uintptr_t)reg * SOFT_VREG_BYTES;
		m->c = (uintptr_t)t->fragment[i].vreg;
		t->fragment[i].valid = true;
	}
	return t->fragment[i].vreg;
}

static void forget_fragment(struct soft_translator *t, int reg, int end)
{
	for (int i = 0; i < t->n_fragments; i++)
		if (t->fragment[i].reg < end &&
		    t->fragment[i].reg + FRAGMENT_VGPRS > reg)
			t->fragment[i].valid = false;
}

void soft_translator_forget_written(struct soft_translator *t,
				    const struct soft_uop *u)
{
	for (int i = 0; t->n_fragments && i < u->in.n_opnd; i++) {
		const struct isa_operand *o = &u->in.opnd[i];

		if (o->kind == ISA_K_VGPR && o->role & ISA_DST)
			forget_fragment(t, o->reg,
					o->reg + (o->dwords ? o->dwords : 1));
	}
}

bool soft_translate_wmma(struct soft_translator *t, const struct soft_uop *u)
{
	const struct isa_operand *o = u->in.opnd;
	size_t before = t->microops.len;
	uint8_t *a, *b;
	struct soft_microop *m;

	if (t->wide || !is_plain(&u->in) || !t->simd->wmma->wmma_f32)
		return false;
	a = find_fragment(t, u, o[1].reg);
	b = a ? find_fragment(t, u, o[2].reg) : NULL;
	if (!b) {
		t->microops.len = before;
		t->n_fragments = 0;
		return false;
	}
	m = soft_translator_emit(t, t->simd->wmma->wmma_f32, u);
	m->a = (uintptr_t)a;
	m->b = (uintptr_t)b;
	m->c = o[3].reg * SOFT_VREG_BYTES;
	m->d = o[0].reg * SOFT_VREG_BYTES;
	return true;
}
