/*
 * Vector instructions that look across lanes or registers, each by a reference
 * of its own: random registers and masks, both wave sizes, one by one and in
 * the fast form.  tests/ref/cross.def says which; tests/exec/every-valu has the
 * rest.
 */
#include "tests/exec/every.h"
#include "tests/ref/cross.h"

enum { PROGRAMS = 24, WARM = 20 };

/* ------------------------------------------------------------ programs ---- */

static bool is_matrix(const struct isa_op_info *op)
{
	return op->pipe == ISA_PIPE_WMMA;
}

static bool make(enum isa_op number_of, int wave, struct isa_inst *out,
		 uint8_t *code)
{
	const struct isa_target target = { ISA_GFX11, wave, false };
	const struct isa_op_info *op = isa_op_info(number_of);
	struct isa_inst in = { .op = (uint16_t)number_of, .fmt = op->fmt };
	int size;

	in.f[ISA_F_OP] = (uint32_t)op->opcode[ISA_GFX11];
	for (int i = 0; i < op->n_opnd; i++) {
		int slot = op->opnd[i].slot;
		uint32_t v = (uint32_t)(rnd() % 20);

		switch (slot) {
		case ISA_SLOT_DS:
			in.f[ISA_F_VDST] = 20 + v % 8;
			break;
		case ISA_SLOT_D:
			in.f[ISA_F_VDST] = is_matrix(op) ? 40 : v;
			break;
		case ISA_SLOT_S0S:
		case ISA_SLOT_S1S:
		case ISA_SLOT_S2S:
			in.f[ISA_F_SRC0 + slot - ISA_SLOT_S0S] =
				chance(50) ? 30 + v % 8 : 128 + v * 3;
			break;
		case ISA_SLOT_S2I:
			in.f[ISA_F_SRC2] = 256 + (chance(50) ? 40 : 30);
			break;
		case ISA_SLOT_S0V:
		case ISA_SLOT_S1V:
		case ISA_SLOT_S2V:
			in.f[ISA_F_SRC0 + slot - ISA_SLOT_S0V] = 256 + v;
			break;
		case ISA_SLOT_S0:
			in.f[ISA_F_SRC0] = 256 + v;
		}
	}
	if (number_of == ISA_v_swap_b16) {
		in.f[ISA_F_VDST] |= chance(50) ? 128 : 0;
		in.f[ISA_F_SRC0] |= chance(50) ? 128 : 0;
	}
	if (op->flags & ISA_OPSEL)
		in.f[ISA_F_OPSEL] = rnd() & 3;
	if (is_matrix(op)) {
		const bool ints = op->flags & ISA_CLAMP;
		const bool halves = isa_type_info(op->opnd[0].type)->bits == 16;

		in.f[ISA_F_OPSEL_HI] = 3;
		in.f[ISA_F_OPSEL_HI2] = 1;
		in.f[ISA_F_OPSEL] = halves && chance(50) ? 4 : 0;
		in.f[ISA_F_CLAMP] = ints && chance(50);
		if (chance(60))
			in.f[ISA_F_NEG] = rnd() & (ints ? 3 : 7);
		if (chance(60) && !ints)
			in.f[ISA_F_NEG_HI] = rnd() & 7;
	}
	memset(code, 0, ISA_MAX_SIZE_BYTES);
	size = isa_encode(&in, code);
	return size && !isa_decode(&target, code, (size_t)size, out);
}

/* A small integer in the format. */
static uint32_t small(const struct ref_fmt *f)
{
	return (uint32_t)ref_from_int(f, (int64_t)(rnd() % 7) - 3, 0);
}

static void fill_small(struct state *s, const struct isa_operand *o)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	const struct ref_fmt *f = t->bits == 32 ? &F32 :
				  t->kind == 'G' ? &BF16 :
						   &F16;

	if (t->kind == 'I')
		return;
	for (int j = 0; j < o->dwords; j++)
		for (int i = 0; i < 64; i++)
			s->v[i / 32][o->reg + j][i % 32] =
				t->bits == 32 ? small(f) :
						small(f) | small(f) << 16;
}

/* Lanes 16 and up of A and B repeat the first ones, as the hardware wants. */
static void repeat(struct state *s, const struct isa_operand *o)
{
	for (int j = 0; j < o->dwords; j++)
		for (int i = 16; i < 64; i++)
			s->v[i / 32][o->reg + j][i % 32] =
				s->v[0][o->reg + j][i % 16];
}

static void prepare(struct state *s, const struct isa_inst *in, int wave)
{
	fill_state(s, in, wave);
	/* Up to 20 + 16 registers are named, of 64. */
	s->s[ISA_R_M0] = (uint32_t)(rnd() % 24);
	if (in->op == ISA_v_swaprel_b32 || in->op == ISA_v_movrelsd_2_b32)
		s->s[ISA_R_M0] |= (uint32_t)(rnd() % 24) << 16;
	if (!is_matrix(isa_op_info((enum isa_op)in->op)))
		return;
	for (int i = 3; i; i--)
		fill_small(s, &in->opnd[i]);
	repeat(s, &in->opnd[1]);
	repeat(s, &in->opnd[2]);
}

static int test_program(struct lanes *t, enum isa_op op, int wave, check_fn *fn)
{
	static struct state old, got, want;
	struct program p = { .wave = wave, .old = &old, .want = &want };
	uint8_t code[ISA_MAX_SIZE_BYTES];

	if (!make(op, wave, &p.in, code)) {
		diag("%s does not encode", isa_op_info(op)->name);
		return 1;
	}
	t->w.wave_size = wave;
	load(t, code, p.in.size_bytes);
	for (int i = 0; i < 4; i++) {
		const bool fast = i & 1;

		prepare(&old, &p.in, wave);
		for (int k = 0; fast && k < WARM; k++)
			go(t, &old, 1000, &got);
		if (!go(t, &old, fast ? 1000 : 1, &got))
			return 1;
		want = old;
		fn(&p);
		if (memcmp(&got, &want, sizeof(got))) {
			explain(&p.in, wave, t->w.mode, fast ? "fast" : "slow",
				&old, &got, &want);
			return 1;
		}
	}
	return 0;
}

static void test(struct lanes *t, enum isa_op op, check_fn *fn)
{
	int bad = 0;

	for (int i = 0; i < PROGRAMS && bad < 2; i++)
		bad += test_program(t, op, i & 1 ? 64 : 32, fn);
	is_u64((uint64_t)bad, 0, "%s", isa_op_info(op)->name);
}

int main(void)
{
	struct lanes *t = lanes_new(32);

	diag("seed 0x%llx", (unsigned long long)seed);
	t->w.n_vgprs = REGS;
#define X(name) test(t, ISA_##name, check_##name);
#include "tests/ref/cross.def"
	lanes_free(t);
	return plan_done();
}
