/*
 * every - random states of one wave, for tests that go through all mnemonics:
 * values that matter for each operand type, and runs from one state to
 * another.
 *
 *	load(t, code, bytes);		// and s_endpgm
 *	fill_state(&old, &in, 32);	// as the operands of `in` call for
 *	go(t, &old, 1, &got);		// one by one; 1000: fast once warm
 */
#ifndef T0_TESTS_EVERY_H
#define T0_TESTS_EVERY_H

#include "isa/text/text.h"
#include "tests/exec/lanes.h"
#include "tests/ref/num.h"
#include "tests/ref/state.h"

enum { REGS = REF_VGPRS };

static uint64_t seed = 0x5eed3480;

static inline uint64_t rnd(void)
{
	return lanes_random(&seed) >> 7;
}

static inline bool chance(unsigned percent)
{
	return rnd() % 100 < percent;
}

/* -------------------------------------------------------------- values ---- */

static const uint32_t special16[] = {
	0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x83ff, 0x3c00, 0xbc00,
	0x3bff, 0x3c01, 0x3800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
	0x7c01, 0xfd00, 0x4248, 0x7fff, 0xffff, 0x00ff, 0x0010, 0x000f, 0x5000,
};
static const uint32_t special32[] = {
	0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
	0x807fffff, 0x3f800000, 0xbf800000, 0x3f000000, 0x3effffff, 0x3f7fffff,
	0x3f800001, 0x40200000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
	0x7fc00000, 0xffc00001, 0x7f800001, 0xff812345, 0x4effffff, 0x4f000000,
	0xcf000000, 0x4f800000, 0x477fe000, 0x477ff000, 0x33000000, 0x33000001,
	0x7fffffff, 0xffffffff, 0x0000001f, 0x00000020, 0x00ffffff, 0xff800001,
	0x0000ffff, 0xffff8000, 0x00007fff, 0x40490fdb, 0x42fe0000, 0xc2fc0000,
};
static const uint64_t special64[] = {
	0x0000000000000000, 0x8000000000000000, 0x0000000000000001,
	0x800fffffffffffff, 0x0010000000000000, 0x3ff0000000000000,
	0xbff0000000000000, 0x3fe0000000000000, 0x3fefffffffffffff,
	0x3ff0000000000001, 0x7fefffffffffffff, 0xffefffffffffffff,
	0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
	0xfff8000000000001, 0x7ff0000000000001, 0xfff4000000000000,
	0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000,
	0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000,
	0x4330000000000001, 0x3690000000000000, 0x47efffffe0000000,
	0x7fffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
};

static inline uint64_t special(int bits)
{
	if (bits == 64)
		return special64[rnd() % ARRAY_SIZE(special64)];
	if (bits == 32)
		return special32[rnd() % ARRAY_SIZE(special32)];
	return special16[rnd() % ARRAY_SIZE(special16)];
}

/* A number near 1 often, so that sums cancel and products stay in range. */
static inline uint64_t number(int bits)
{
	const struct ref_fmt *f = bits == 64 ? &F64 : bits == 32 ? &F32 : &F16;
	uint64_t u = lanes_random(&seed);
	uint64_t exp = ref_one(f) >> f->frac_bits;

	if (chance(40))
		return u;
	exp += rnd() % 16 - 8;
	u &= ref_sign(f) | (((UINT64_C(1) << f->frac_bits) - 1) &
			    (chance(50) ? ~0ull << (f->frac_bits - 8) : ~0ull));
	return u | exp << f->frac_bits;
}

static inline uint64_t value_of(const struct isa_type_info *t)
{
	int bits = t->bits > 32 ? 64 : t->bits > 16 ? 32 : 16;

	if (t->kind == 'G') /* the upper half of a float */
		return (chance(40) ? special(32) : number(32)) >> 16;
	if (chance(45))
		return special(bits);
	if (t->kind != 'F' && chance(30))
		return rnd() % 70;
	return number(bits);
}

/* -------------------------------------------------------------- states ---- */

static inline void put_state(struct lanes *t, const struct state *s)
{
	for (int h = 0; h < 2; h++)
		memcpy(t->v[h], s->v[h], sizeof(s->v[h]));
	memcpy(t->w.s, s->s, sizeof(s->s));
	t->w.scc = s->scc;
}

static inline void get_state(const struct lanes *t, struct state *s)
{
	for (int h = 0; h < 2; h++)
		memcpy(s->v[h], t->v[h], sizeof(s->v[h]));
	memcpy(s->s, t->w.s, sizeof(s->s));
	s->scc = t->w.scc;
}

/* Each register holds what its operand's type calls for. */
static inline void fill_operand(struct state *s, const struct isa_operand *o)
{
	const struct isa_type_info *t = isa_type_info(o->type);

	for (int j = 0; j < o->dwords; j++)
		for (int i = 0; i < 64; i++) {
			uint64_t u = value_of(t);
			uint32_t w = (uint32_t)u;

			if (t->bits == 64 && j & 1)
				continue;
			if (t->bits <= 16)
				w = (w & 0xffff) | (uint32_t)value_of(t) << 16;
			if (o->kind != ISA_K_VGPR) {
				s->s[(o->reg + j) & 127] = w;
				if (t->bits == 64)
					s->s[(o->reg + j + 1) & 127] = u >> 32;
				continue;
			}
			s->v[i / 32][o->reg + j][i % 32] = w;
			if (t->bits == 64)
				s->v[i / 32][o->reg + j + 1][i % 32] = u >> 32;
		}
}

static inline void fill_state(struct state *s, const struct isa_inst *in,
			      int wave)
{
	memset(s, 0, sizeof(*s));
	for (int r = 0; r < REGS; r++)
		for (int i = 0; i < 64; i++)
			s->v[i / 32][r][i % 32] = (uint32_t)rnd();
	for (int i = 0; i < ISA_R_VCC_HI; i++)
		s->s[i] = (uint32_t)rnd();
	s->s[ISA_R_M0] = 0;
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].kind == ISA_K_VGPR ||
		    (in->opnd[i].kind == ISA_K_SGPR &&
		     in->opnd[i].reg != ISA_R_NULL &&
		     in->opnd[i].type != ISA_T_MASK))
			fill_operand(s, &in->opnd[i]);
	for (int h = 0; h < 2; h++) {
		s->s[ISA_R_EXEC_LO + h] = chance(50) ? ~0u : (uint32_t)rnd();
		s->s[ISA_R_VCC_LO + h] = (uint32_t)rnd();
	}
	if (wave == 32)
		s->s[ISA_R_EXEC_HI] = 0;
	s->scc = rnd() & 1;
}

static inline void load(struct lanes *t, const uint8_t *code, int size)
{
	const uint32_t endpgm = 0xbfb00000;

	memcpy(t->text, code, (size_t)size);
	memcpy((uint8_t *)t->text + size, &endpgm, 4);
	soft_code_cache_reset(t->code);
}

static inline bool go(struct lanes *t, const struct state *from, uint64_t slice,
	       struct state *to)
{
	put_state(t, from);
	t->w.pc = LANES_CODE_VA;
	t->w.state = SOFT_READY;
	for (int i = 0; i < 8 && t->w.state == SOFT_READY; i++)
		soft_wave_run(&t->w, slice);
	get_state(t, to);
	if (t->w.state == SOFT_ENDED)
		return true;
	diag("stopped: %s", t->w.fault.text);
	return false;
}

/* Both states where they differ, and the registers of the operands. */
static inline void explain(const struct isa_inst *in, int wave, uint32_t mode,
		    const char *how, const struct state *old,
		    const struct state *got, const struct state *want)
{
	const struct isa_target target = { ISA_GFX11, wave, false };
	char text[ISA_TEXT_MAX];

	isa_print(&target, in, text, sizeof(text));
	diag("%s (wave%d, MODE 0x%x, %s)", text, wave, mode, how);
	for (int i = 0; i < 128; i++)
		if (got->s[i] != want->s[i])
			diag("  s%d: got 0x%08x, wanted 0x%08x", i, got->s[i],
			     want->s[i]);
	for (int n = 0, r = 0; r < REGS && n < 3; r++)
		for (int i = 0; i < 64 && n < 3; i++) {
			if (got->v[i / 32][r][i % 32] ==
			    want->v[i / 32][r][i % 32])
				continue;
			n++;
			diag("  v%d lane %d: got 0x%08x, wanted 0x%08x", r, i,
			     got->v[i / 32][r][i % 32],
			     want->v[i / 32][r][i % 32]);
			for (int k = 0; k < in->n_opnd; k++)
				if (in->opnd[k].kind == ISA_K_VGPR)
					diag("    v%d = 0x%08x 0x%08x",
					     in->opnd[k].reg,
					     old->v[i / 32][in->opnd[k].reg]
						   [i % 32],
					     old->v[i / 32][in->opnd[k].reg + 1]
						   [i % 32]);
		}
}

#endif
