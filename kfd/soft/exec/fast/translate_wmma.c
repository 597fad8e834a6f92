/*
 * kfd/soft/exec/fast/translate_wmma.c - WMMA to microops.
 *
 * Of those without modifiers but the signs of integers, and with C in
 * registers; anything else is for the handler.
 */
#include "kfd/soft/exec/fast/translate.h"
#include "kfd/soft/exec/wmma.h"

#define FRAGMENT_VREGS 8 /* 16 x 16 floats, or 8 x 16 pairs of halves */
#define FRAGMENT_VGPRS 8 /* at most */

static bool is_plain(const struct isa_inst *in, const struct wmma *m)
{
	const struct isa_operand *o = in->opnd; /* D, A, B, C */
	uint8_t mods = o[3].mods;

	if (m->in < WMMA_IU8)
		mods |= o[1].mods | o[2].mods;
	return o[3].kind == ISA_K_VGPR && !in->f[ISA_F_CLAMP] &&
	       !(mods & (ISA_M_NEG | ISA_M_NEG_HI));
}

static enum wmma_from fragment_kind(enum wmma_type in,
				    const struct isa_operand *o)
{
	static const enum wmma_from from[] = {
		[WMMA_F16] = WMMA_FROM_F16, [WMMA_BF16] = WMMA_FROM_BF16,
		[WMMA_FP8] = WMMA_FROM_FP8, [WMMA_BF8] = WMMA_FROM_BF8,
		[WMMA_IU8] = WMMA_FROM_U8,  [WMMA_IU4] = WMMA_FROM_U4,
	};

	return from[in] + (in >= WMMA_IU8 && o->mods & ISA_M_NEG);
}

/* The microops of a type. */
static const struct soft_wmma_microops *
find_microops(const struct soft_translator *t, enum wmma_type in)
{
	const struct soft_wmma_microops *all = t->simd->wmma;
	const bool ints = in == WMMA_IU8 || in == WMMA_IU4;

#if defined(__x86_64__)
	if (ints && all->bytes && __builtin_cpu_supports("avx512vnni"))
		return all->bytes;
#endif
	return all;
}

/* The fragment of an operand, made by `from`; NULL: no room. */
static uint8_t *find_fragment(struct soft_translator *t,
			      const struct soft_uop *u,
			      const struct isa_operand *o, enum wmma_from kind,
			      soft_microop_fn *from)
{
	struct soft_microop *m;
	int i = 0;

	while (i < t->n_fragments &&
	       (t->fragment[i].reg != o->reg || t->fragment[i].kind != kind))
		i++;
	if (i == SOFT_FRAGMENTS)
		return NULL;
	if (i == t->n_fragments) {
		uint8_t *p = soft_translator_temps(t, FRAGMENT_VREGS);

		if (!p)
			return NULL;
		t->fragment[i].reg = o->reg;
		t->fragment[i].kind = kind;
		t->fragment[i].vreg = p;
		t->fragment[i].valid = false;
		t->n_fragments++;
	}
	if (!t->fragment[i].valid) {
		m = soft_translator_emit(t, from, u);
		m->a = (uintptr_t)o->reg * SOFT_VREG_BYTES;
		m->c = (uintptr_t)t->fragment[i].vreg;
		t->fragment[i].valid = true;
	}
	return t->fragment[i].vreg;
}

static bool do_overlap(const struct isa_operand *a, const struct isa_operand *b)
{
	return a->reg < b->reg + b->dwords && b->reg < a->reg + a->dwords;
}

/*
 * Where the sum finds A or B: in a fragment, or its registers, if those are
 * none that it writes.
 */
static bool find_operand(struct soft_translator *t, const struct soft_uop *u,
			 const struct isa_operand *o, enum wmma_type in,
			 enum wmma_layout layout, uintptr_t *at)
{
	const enum wmma_from kind = fragment_kind(in, o);
	soft_microop_fn *from = find_microops(t, in)->from[kind][layout];

	*at = from ? (uintptr_t)find_fragment(t, u, o, kind, from) :
		     (uintptr_t)o->reg * SOFT_VREG_BYTES;
	return from ? *at != 0 : !do_overlap(o, &u->in.opnd[0]);
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
	const struct isa_operand *o = u->in.opnd; /* D, A, B, C */
	size_t before = t->microops.len;
	struct soft_microop *m;
	enum wmma_type sum;
	uintptr_t a, b;
	struct wmma w;

	if (u->fn != soft_wmma_run || !t->simd->wmma->from[0][0])
		return false;
	soft_wmma_types(u, t->wide, &w);
	sum = w.acc == WMMA_IU8 ? w.in : w.acc;
	if (!is_plain(&u->in, &w))
		return false;
	if (!find_operand(t, u, &o[1], w.in, w.layout, &a) ||
	    !find_operand(t, u, &o[2], w.in_b, w.layout, &b)) {
		t->microops.len = before;
		t->n_fragments = 0;
		return false;
	}
	m = soft_translator_emit(t, find_microops(t, w.in)->sum[sum][w.layout],
				 u);
	m->a = a;
	m->b = b;
	m->c = o[3].reg * SOFT_VREG_BYTES;
	m->d = o[0].reg * SOFT_VREG_BYTES;
	m->imm = (uint32_t)w.shift;
	m->mods[0] = o[1].mods & ISA_M_NEG;
	m->mods[1] = o[2].mods & ISA_M_NEG;
	return true;
}
