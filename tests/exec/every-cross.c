/*
 * Vector instructions that look across lanes or registers, each by a reference
 * of its own: random registers and masks, both wave sizes, one by one and in
 * the fast form.  tests/ref/cross.def says which; tests/exec/every-valu has the
 * rest.
 */
#include "tests/exec/every.h"

enum { PROGRAMS = 24, WARM = 20 };

/* What one program sees of itself. */
struct program {
	struct isa_inst in;
	int wave;
	const struct state *old;
	struct state *want;
};

static uint32_t old_v(const struct program *p, unsigned reg, int lane)
{
	return p->old->v[lane / 32][reg % REGS][lane % 32];
}

static void want_v(const struct program *p, unsigned reg, int lane, uint32_t u)
{
	p->want->v[lane / 32][reg % REGS][lane % 32] = u;
}

static bool active(const struct program *p, int lane)
{
	return p->old->s[ISA_R_EXEC_LO + lane / 32] >> lane % 32 & 1;
}

static uint32_t scalar(const struct program *p, int operand)
{
	const struct isa_operand *o = &p->in.opnd[operand];

	return o->kind == ISA_K_SGPR ? p->old->s[o->reg] : o->value;
}

static unsigned reg(const struct program *p, int operand)
{
	return p->in.opnd[operand].reg;
}

/* --------------------------------------------------------------- lanes ---- */

static void check_v_nop(const struct program *p)
{
	(void)p;
}

static void check_v_pipeflush(const struct program *p)
{
	(void)p;
}

static void check_v_readfirstlane_b32(const struct program *p)
{
	int first = 0;

	for (int lane = p->wave; lane--;)
		if (active(p, lane))
			first = lane;
	p->want->s[reg(p, 0)] = old_v(p, reg(p, 1), first);
}

static void check_v_readlane_b32(const struct program *p)
{
	p->want->s[reg(p, 0)] =
		old_v(p, reg(p, 1), (int)(scalar(p, 2) % (uint32_t)p->wave));
}

static void check_v_writelane_b32(const struct program *p)
{
	want_v(p, reg(p, 0), (int)(scalar(p, 2) % (uint32_t)p->wave),
	       scalar(p, 1));
}

/* Within rows of 16, or from the other row of the pair. */
static void permlane(const struct program *p, int other)
{
	uint64_t nibbles = scalar(p, 2) | (uint64_t)scalar(p, 3) << 32;
	bool inactive = p->in.f[ISA_F_OPSEL] & 1;
	bool bound = p->in.f[ISA_F_OPSEL] & 2;

	for (int lane = 0; lane < p->wave; lane++) {
		int from = (lane / 16 * 16) ^ other;

		from += nibbles >> 4 * (lane % 16) & 15;
		if (!active(p, lane))
			continue;
		if (inactive || active(p, from))
			want_v(p, reg(p, 0), lane, old_v(p, reg(p, 1), from));
		else if (bound)
			want_v(p, reg(p, 0), lane, 0);
	}
}

static void check_v_permlane16_b32(const struct program *p)
{
	permlane(p, 0);
}

static void check_v_permlanex16_b32(const struct program *p)
{
	permlane(p, 16);
}

static void check_v_permlane64_b32(const struct program *p)
{
	for (int lane = 0; p->wave == 64 && lane < 64; lane++)
		if (active(p, lane))
			want_v(p, reg(p, 0), lane,
			       old_v(p, reg(p, 1), (lane + 32) % 64));
}

/* ----------------------------------------------------------- registers ---- */

static void swap(const struct program *p, unsigned a, unsigned b)
{
	for (int lane = 0; lane < p->wave; lane++) {
		if (!active(p, lane))
			continue;
		want_v(p, a, lane, old_v(p, b, lane));
		want_v(p, b, lane, old_v(p, a, lane));
	}
}

static void check_v_swap_b32(const struct program *p)
{
	swap(p, reg(p, 0), reg(p, 1));
}

static void check_v_swaprel_b32(const struct program *p)
{
	uint32_t m0 = p->old->s[ISA_R_M0];

	swap(p, reg(p, 0) + (m0 >> 16 & 1023), reg(p, 1) + (m0 & 1023));
}

static uint32_t with_half(uint32_t u, bool high, uint32_t h)
{
	return high ? (u & 0xffff) | h << 16 : (u & 0xffff0000) | h;
}

static void check_v_swap_b16(const struct program *p)
{
	bool high_a = p->in.opnd[0].mods & ISA_M_HI;
	bool high_b = p->in.opnd[1].mods & ISA_M_HI;

	for (int lane = 0; lane < p->wave; lane++) {
		uint32_t a = old_v(p, reg(p, 0), lane);
		uint32_t b = old_v(p, reg(p, 1), lane);
		uint32_t ha = (high_a ? a >> 16 : a) & 0xffff;
		uint32_t hb = (high_b ? b >> 16 : b) & 0xffff;

		if (!active(p, lane))
			continue;
		if (reg(p, 0) == reg(p, 1)) {
			a = with_half(with_half(a, high_a, hb), high_b, ha);
			want_v(p, reg(p, 0), lane, a);
			continue;
		}
		want_v(p, reg(p, 0), lane, with_half(a, high_a, hb));
		want_v(p, reg(p, 1), lane, with_half(b, high_b, ha));
	}
}

static void move(const struct program *p, unsigned to, unsigned from)
{
	for (int lane = 0; lane < p->wave; lane++)
		if (active(p, lane))
			want_v(p, to, lane, old_v(p, from, lane));
}

static void check_v_movreld_b32(const struct program *p)
{
	move(p, reg(p, 0) + p->old->s[ISA_R_M0], reg(p, 1));
}

static void check_v_movrels_b32(const struct program *p)
{
	move(p, reg(p, 0), reg(p, 1) + p->old->s[ISA_R_M0]);
}

static void check_v_movrelsd_b32(const struct program *p)
{
	const uint32_t m0 = p->old->s[ISA_R_M0];

	move(p, reg(p, 0) + m0, reg(p, 1) + m0);
}

static void check_v_movrelsd_2_b32(const struct program *p)
{
	const uint32_t m0 = p->old->s[ISA_R_M0];

	move(p, reg(p, 0) + (m0 >> 16 & 1023), reg(p, 1) + (m0 & 1023));
}

/* ------------------------------------------------------------ matrices ---- */

/* Row of A or column of B: element k of `bits` bits, negated or signed. */
static uint32_t element(const struct program *p, int operand, int line, int k,
			int bits)
{
	int each = 32 / bits;
	uint32_t u = old_v(p, reg(p, operand) + (unsigned)(k / each), line);

	return (uint32_t)((uint64_t)u >> k % each * bits) &
	       (uint32_t)((UINT64_C(1) << bits) - 1);
}

/* Register and lane of element (row, column) of C and D. */
static void place(const struct program *p, int row, int column, unsigned *j,
		  int *lane)
{
	int rows = p->wave / 16;

	*j = (unsigned)(row / rows);
	*lane = row % rows * 16 + column;
}

static long double sum_of(const struct program *p, const struct ref_fmt *f,
			  int row, int column)
{
	long double sum = 0;

	for (int k = 0; k < 16; k++) {
		long double a = ref_value(f, element(p, 1, row, k, 16));
		long double b = ref_value(f, element(p, 2, column, k, 16));
		unsigned neg = k & 1 ? ISA_M_NEG_HI : ISA_M_NEG;

		a = p->in.opnd[1].mods & neg ? -a : a;
		b = p->in.opnd[2].mods & neg ? -b : b;
		sum += a * b;
	}
	return sum;
}

static long double addend(const struct program *p, const struct ref_fmt *f,
			  uint32_t u)
{
	long double c = ref_value(f, u);

	c = p->in.opnd[3].mods & ISA_M_NEG_HI ? fabsl(c) : c;
	return p->in.opnd[3].mods & ISA_M_NEG ? -c : c;
}

/* All values are small integers: exact in every order and every format. */
static void float_matrix(const struct program *p, const struct ref_fmt *f,
			 const struct ref_fmt *to)
{
	const bool high = to != &F32 && p->in.f[ISA_F_OPSEL] & 4;

	for (int row = 0; row < 16; row++)
		for (int col = 0; col < 16; col++) {
			uint32_t c, d;
			unsigned j;
			int lane;

			place(p, row, col, &j, &lane);
			c = old_v(p, reg(p, 3) + j, lane);
			d = old_v(p, reg(p, 0) + j, lane);
			if (to != &F32)
				c = high ? c >> 16 : c & 0xffff;
			c = (uint32_t)ref_from_value(
				to, sum_of(p, f, row, col) + addend(p, to, c));
			want_v(p, reg(p, 0) + j, lane,
			       to == &F32 ? c : with_half(d, high, c));
		}
}

static void check_v_wmma_f32_16x16x16_f16(const struct program *p)
{
	float_matrix(p, &F16, &F32);
}

static void check_v_wmma_f32_16x16x16_bf16(const struct program *p)
{
	float_matrix(p, &BF16, &F32);
}

static void check_v_wmma_f16_16x16x16_f16(const struct program *p)
{
	float_matrix(p, &F16, &F16);
}

static void check_v_wmma_bf16_16x16x16_bf16(const struct program *p)
{
	float_matrix(p, &BF16, &BF16);
}

static int64_t integer(const struct program *p, int operand, int line, int k,
		       int bits)
{
	int64_t v = element(p, operand, line, k, bits);
	bool is_signed = p->in.opnd[operand].mods & ISA_M_NEG;

	return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

static void int_matrix(const struct program *p, int bits)
{
	for (int row = 0; row < 16; row++)
		for (int col = 0; col < 16; col++) {
			unsigned j;
			int64_t sum;
			int lane;

			place(p, row, col, &j, &lane);
			sum = (int32_t)old_v(p, reg(p, 3) + j, lane);
			for (int k = 0; k < 16; k++)
				sum += integer(p, 1, row, k, bits) *
				       integer(p, 2, col, k, bits);
			if (p->in.f[ISA_F_CLAMP] && sum > INT32_MAX)
				sum = INT32_MAX;
			if (p->in.f[ISA_F_CLAMP] && sum < INT32_MIN)
				sum = INT32_MIN;
			want_v(p, reg(p, 0) + j, lane, (uint32_t)sum);
		}
}

static void check_v_wmma_i32_16x16x16_iu8(const struct program *p)
{
	int_matrix(p, 8);
}

static void check_v_wmma_i32_16x16x16_iu4(const struct program *p)
{
	int_matrix(p, 4);
}

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

typedef void check_fn(const struct program *p);

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
