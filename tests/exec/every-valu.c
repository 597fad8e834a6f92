/*
 * Every vector instruction that is not for graphics only, and interpolation, by
 * a reference of its own (tests/ref/valu.def): special and random values, both
 * wave sizes, all encodings, modifiers, MODE, masked lanes; executed one by one
 * and in the fast form.  An instruction without a row fails.
 */
#include "tests/exec/every-code.h"

enum {
	PROGRAMS = 20,	/* of one instruction in one encoding */
};

/* -------------------------------------------------------- instructions ---- */

static uint32_t source_field(const struct isa_operand_info *o, bool scalars,
			     bool *used)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	bool packed = t->count > 1 || o->type == ISA_T_MIX;

	if (o->slot >= ISA_SLOT_S0S && o->slot <= ISA_SLOT_S2S)
		return chance(50) ? S_SOURCE + rnd() % 4 * 2 :
				    128 + rnd() % 65;
	if (!scalars || *used || o->slot >= ISA_SLOT_S0V || chance(70) ||
	    packed)
		return 256 + rnd() % 24 * 2;
	*used = true;
	if (chance(50))
		return S_SOURCE + rnd() % 4 * 2;
	return chance(30) ? 240 + rnd() % 9 : 128 + rnd() % 81;
}

static bool make(enum isa_op number_of, enum encoding e, int wave,
		 struct isa_inst *out, uint8_t *code)
{
	const struct isa_op_info *op = isa_op_info(number_of);
	struct isa_inst in = vector_inst(number_of, e);
	bool used = false;

	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *o = &op->opnd[i];
		int n = source_number(o);

		if (n >= 0 && o->slot != ISA_SLOT_S2I)
			in.f[ISA_F_SRC0 + n] = source_field(
				o, !is_short(&in) || n == 0, &used);
	}
	if (is_short(&in))
		in.f[ISA_F_VSRC1] = in.f[ISA_F_SRC1] & 255;
	any_modifiers(&in, op, rows[number_of].flags);
	return encode_decode(&in, wave, out, code);
}

/* --------------------------------------------------------------- tests ---- */

/* Wrong results of one program. */
static int try(struct lanes *t, enum isa_op number_of, enum encoding e,
	       int wave)
{
	static struct state old, got, want;
	const struct row *row = &rows[number_of];
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;

	if (!make(number_of, e, wave, &in, code)) {
		diag("does not encode");
		return 1;
	}
	t->w.wave_size = wave;
	t->w.mode = random_mode(row->flags);
	load(t, code, in.size_bytes);
	for (int i = 0; i < 4; i++) {
		const bool fast = i & 1;

		fill_state(&old, &in, wave);
		for (int k = 0; fast && k < WARM; k++)
			go(t, &old, 1000, &got);
		if (!go(t, &old, fast ? 1000 : 1, &got))
			return 1;
		expect(&in, row, wave, t->w.mode, &old, &got, &want);
		if (!memcmp(&got, &want, sizeof(got)))
			continue;
		explain(&in, wave, t->w.mode, fast ? "fast" : "slow", &old,
			&got, &want);
		return 1;
	}
	return 0;
}

static int test_row(struct lanes *t, enum isa_op op)
{
	int bad = 0, n = 0;

	for (int e = 0; e < ENCODINGS; e++)
		for (int i = 0; i < PROGRAMS && bad < 2; i++) {
			if (!has_encoding(isa_op_info(op), (enum encoding)e))
				break;
			bad += try(t, op, (enum encoding)e, i & 1 ? 64 : 32);
			n++;
		}
	is_u64((uint64_t)bad, 0, "%s: %d programs", isa_op_info(op)->name, n);
	return n;
}

/* ------------------------------------------------------- dual issue ---- */

/* One half of a pair as an instruction of its own. */
static struct isa_inst half_of(const struct isa_inst *in, bool y)
{
	struct isa_inst h = *in;

	h.op_y = ISA_OP_NONE;
	if (y) {
		h.op = in->op_y;
		h.n_opnd = in->n_opnd - in->n_opnd_x;
		memcpy(h.opnd, in->opnd + in->n_opnd_x,
		       h.n_opnd * sizeof(*h.opnd));
	} else {
		h.n_opnd = in->n_opnd_x;
	}
	return h;
}

static uint32_t scalar_field(void)
{
	static const uint8_t others[] = {
		ISA_R_VCC_LO, ISA_R_VCC_HI, ISA_R_TTMP0 + 3, ISA_R_NULL,
		ISA_R_M0,     ISA_R_EXEC_LO, ISA_R_SCC,	     ISA_R_LITERAL,
	};

	switch (rnd() % 4) {
	case 0:
		return S_SOURCE + rnd() % 8;
	case 1:
		return 240 + rnd() % 9;
	case 2:
		return 128 + rnd() % 81;
	}
	return others[rnd() % ARRAY_SIZE(others)];
}

/* Sources of one half: its own row's. */
static void half_sources(struct isa_inst *in, const struct isa_op_info *op,
			 enum isa_field src0, enum isa_field src1)
{
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *o = &op->opnd[i];
		if (o->slot == ISA_SLOT_K)
			in->has_literal = true;
		if (o->slot == ISA_SLOT_S1)
			in->f[src1] = rnd() % REGS;
		if (o->slot != ISA_SLOT_S0)
			continue;
		in->f[src0] = 256 + rnd() % REGS;
		if (src0 == ISA_F_SRC0 && chance(40))
			in->f[src0] = scalar_field();
		in->has_literal |= in->f[src0] == ISA_R_LITERAL;
	}
}

static bool make_dual(int x, int y, struct isa_inst *out, uint8_t *code)
{
	const struct isa_target target = { ISA_GFX11, 32, false };
	struct isa_inst in = { .fmt = ISA_FMT_VOPD };

	in.op = (uint16_t)isa_vopd_op(x, false, NULL);
	in.op_y = (uint16_t)isa_vopd_op(y, true, NULL);
	in.f[ISA_F_OP] = (uint32_t)x;
	in.f[ISA_F_OPY] = (uint32_t)y;
	in.f[ISA_F_VDST] = rnd() % REGS;
	/* Bits 7:1; bit 0 is not that of VDST. */
	in.f[ISA_F_VDSTY] = rnd() % (REGS / 2);
	in.literal = (uint32_t)number(32);
	half_sources(&in, isa_op_info((enum isa_op)in.op), ISA_F_SRC0,
		     ISA_F_VSRC1);
	half_sources(&in, isa_op_info((enum isa_op)in.op_y), ISA_F_SRC0Y,
		     ISA_F_VSRC1Y);
	memset(code, 0, ISA_MAX_SIZE_BYTES);
	return isa_encode(&in, code) &&
	       !isa_decode(&target, code, ISA_MAX_SIZE_BYTES, out);
}

/* Both halves read before either writes. */
static bool try_dual(struct lanes *t, const struct isa_inst *in, bool fast)
{
	static struct state old, got, x, y;
	struct isa_inst hx = half_of(in, false), hy = half_of(in, true);

	fill_state(&old, in, 32);
	for (int k = 0; fast && k < WARM; k++)
		go(t, &old, 1000, &got);
	if (!go(t, &old, fast ? 1000 : 1, &got))
		return false;
	expect(&hx, &rows[hx.op], 32, t->w.mode, &old, &got, &x);
	expect(&hy, &rows[hy.op], 32, t->w.mode, &old, &got, &y);
	memcpy(x.v[0][hy.opnd[0].reg], y.v[0][hy.opnd[0].reg],
	       sizeof(x.v[0][0]));
	if (!memcmp(&got, &x, sizeof(got)))
		return true;
	explain(in, 32, t->w.mode, fast ? "fast" : "slow", &old, &got, &x);
	return false;
}

static int test_pair(struct lanes *t, int x, int y)
{
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;
	int good = 0, tried = 0;

	t->w.wave_size = 32;
	while (good < 4 && tried++ < 400) {
		if (!make_dual(x, y, &in, code))
			continue;
		t->w.mode = random_mode(0);
		load(t, code, in.size_bytes);
		if (!try_dual(t, &in, false) || !try_dual(t, &in, true))
			return 1;
		good++;
	}
	if (!good)
		diag("pair %d %d does not encode", x, y);
	return !good;
}

/* Every first half with every second one. */
static void test_duals(struct lanes *t)
{
	const char *name, *name_y;

	for (int x = 0; x < 16; x++) {
		int bad = 0, n = 0;

		if (!isa_vopd_op(x, false, &name))
			continue;
		for (int y = 0; y < 32 && bad < 2; y++)
			if (isa_vopd_op(y, true, &name_y)) {
				bad += test_pair(t, x, y);
				n++;
			}
		is_u64((uint64_t)bad, 0, "%s with %d others", name, n);
	}
}

int main(void)
{
	struct lanes *t = lanes_new(32);

	diag("seed 0x%llx", (unsigned long long)seed);
	t->w.n_vgprs = REGS;
	for (int i = 1; i < ISA_OP_COUNT; i++)
		if (!is_vector(isa_op_info((enum isa_op)i)) || is_cross(i))
			continue;
		else if (rows[i].fn)
			test_row(t, (enum isa_op)i);
		else
			ok(false, "%s has a row",
			   isa_op_info((enum isa_op)i)->name);
	test_duals(t);
	lanes_free(t);
	return plan_done();
}
