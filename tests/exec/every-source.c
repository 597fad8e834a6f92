/*
 * Every vector instruction that is not for graphics only, and interpolation,
 * with every kind of source in every place that takes it, by the reference of
 * tests/ref/vector.h: registers of all files, constants of both sorts,
 * literals, special values; plain, DPP16 and DPP8; both wave sizes; executed
 * one by one and in the fast form.
 */
#include "tests/exec/every-code.h"

enum { TRIES = 4 }; /* programs of a source: half of them are wave64 */

enum kind {
	VGPR,
	SGPR,
	VCC,
	TTMP,
	NONE, /* null */
	M0,
	EXEC,
	SCC,
	INTEGER,
	FLOAT,
	LITERAL,
	KINDS
};
static const char *const kind_name[] = {
	"vgpr", "sgpr", "vcc",	   "ttmp",  "null",    "m0",
	"exec", "scc",	"integer", "float", "literal",
};

static uint32_t field_of(enum kind k)
{
	switch (k) {
	case SGPR:
		return S_SOURCE + rnd() % 4 * 2;
	case VCC:
		return ISA_R_VCC_LO;
	case TTMP:
		return ISA_R_TTMP0 + rnd() % 8 * 2;
	case NONE:
		return ISA_R_NULL;
	case M0:
		return ISA_R_M0;
	case EXEC:
		return ISA_R_EXEC_LO;
	case SCC:
		return ISA_R_SCC;
	case INTEGER:
		return 128 + rnd() % 81;
	case FLOAT:
		return 240 + rnd() % 9;
	case LITERAL:
		return ISA_R_LITERAL;
	default:
		return 256 + rnd() % 24 * 2;
	}
}

static const struct isa_operand_info *source_info(const struct isa_op_info *op,
						  int n)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (source_number(&op->opnd[i]) == n)
			return &op->opnd[i];
	return NULL;
}

/* The kinds that the place takes; the hardware has a fourth one for none. */
static bool takes_kind(const struct isa_inst *in, const struct isa_op_info *op,
		  int n, enum kind k)
{
	const struct isa_operand_info *o = source_info(op, n);
	const bool wide =
		isa_type_info(o->type)->bits * isa_type_info(o->type)->count >
		32;
	const bool only_vgpr =
		(o->slot >= ISA_SLOT_S0V && o->slot <= ISA_SLOT_S2V) ||
		(is_short(in) && n == 1) ||
		(in->form != ISA_FORM_PLAIN && n < 2);

	if (o->slot >= ISA_SLOT_S0S && o->slot <= ISA_SLOT_S2S)
		return k != VGPR && !(k == LITERAL && op->flags & ISA_NOLIT);
	if (k == VGPR)
		return true;
	if (o->slot == ISA_SLOT_S2I)
		return k == INTEGER || k == FLOAT;
	if (k == LITERAL && (op->flags & ISA_NOLIT || in->form))
		return false;
	return !only_vgpr && !(wide && k == M0);
}

/* In 32-bit encodings bit 7 of a half's register chooses the high one. */
static void choose_halves(struct isa_inst *in, const struct isa_op_info *op)
{
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *o = &op->opnd[i];
		int n = source_number(o);

		if (!isa_type_is_half(o->type) || chance(50))
			continue;
		if (o->slot == ISA_SLOT_D)
			in->f[ISA_F_VDST] |= 0x80;
		else if (n == 1)
			in->f[ISA_F_VSRC1] |= 0x80;
		else if (!n && in->form != ISA_FORM_PLAIN)
			in->extra[0] |= 0x80;
		else if (!n && in->f[ISA_F_SRC0] >= 256)
			in->f[ISA_F_SRC0] |= 0x80;
	}
}

static int random_control(void)
{
	int ctrl;

	do
		ctrl = (int)(rnd() % 0x170);
	while (ctrl == 0x100 || ctrl == 0x110 || ctrl == 0x120 ||
	       (ctrl > 0x12f && ctrl < 0x150 && ctrl >> 1 != 0xa0));
	return ctrl;
}

/* The DPP dword, whose low byte is the first source. */
static void put_dpp(struct isa_inst *in, const struct isa_op_info *op)
{
	const uint32_t reg = in->f[ISA_F_SRC0] & 255;
	const uint32_t signs = (op->flags & ISA_MOD0 ? 3 : 0) |
			       (op->flags & ISA_MOD1 ? 12 : 0);

	if (in->form == ISA_FORM_DPP8) {
		in->f[ISA_F_SRC0] = chance(50) ? 233 : 234;
		in->extra[0] = reg | (uint32_t)rnd() << 8;
		return;
	}
	in->f[ISA_F_SRC0] = 250;
	in->extra[0] = reg | (uint32_t)random_control() << 8 |
		       (uint32_t)(rnd() & 3) << 18 |
		       (chance(50) ? 0xff000000 : (uint32_t)rnd() << 24);
	if (is_short(in) && in->op != ISA_v_ldexp_f16)
		in->extra[0] |= (rnd() & signs) << 20;
}

/* `in` with kind k as source n, and sometimes others of their own. */
static void put_sources(struct isa_inst *in, const struct isa_op_info *op,
			int n, enum kind k)
{
	for (int i = 0; i < 3; i++) {
		const struct isa_operand_info *o = source_info(op, i);
		enum kind mine = i == n	    ? k :
				 chance(20) ? (enum kind)(rnd() % KINDS) :
					      VGPR;

		if (!o || (i != n && !takes_kind(in, op, i, mine)))
			continue;
		in->f[ISA_F_SRC0 + i] = field_of(mine);
		if (mine == LITERAL && !in->has_literal) {
			in->has_literal = true;
			in->literal =
				(uint32_t)value_of(isa_type_info(o->type));
			if (isa_type_info(o->type)->bits <= 16)
				in->literal |= (uint32_t)rnd() << 16;
		}
	}
	if (is_short(in))
		in->f[ISA_F_VSRC1] = in->f[ISA_F_SRC1] & 255;
}

/* Wrong results of one program. */
static int run_program(struct lanes *t, const struct isa_inst *in,
		       const uint8_t *code, int wave)
{
	static struct state old, got, want;
	const struct row *row = &rows[in->op];

	t->w.wave_size = wave;
	t->w.mode = random_mode(row->flags);
	load(t, code, in->size_bytes);
	for (int i = 0; i < 2; i++) {
		fill_state(&old, in, wave);
		for (int k = 0; i && k < WARM; k++)
			go(t, &old, 1000, &got);
		if (!go(t, &old, i ? 1000 : 1, &got))
			return 1;
		expect(in, row, wave, t->w.mode, &old, &got, &want);
		if (!memcmp(&got, &want, sizeof(got)))
			continue;
		explain(in, wave, t->w.mode, i ? "fast" : "slow", &old, &got,
			&want);
		return 1;
	}
	return 0;
}

struct count {
	int bad, run, refused[KINDS];
};

static void try_source(struct lanes *t, const struct isa_inst *from, int n,
		       enum kind k, struct count *count)
{
	const struct isa_op_info *op = isa_op_info(from->op);

	for (int i = 0; i < TRIES && count->bad < 3; i++) {
		struct isa_inst in = *from, decoded;
		uint8_t code[ISA_MAX_SIZE_BYTES];
		int wave = i & 1 ? 64 : 32;

		put_sources(&in, op, n, k);
		if (in.form != ISA_FORM_PLAIN)
			put_dpp(&in, op);
		if (is_short(&in))
			choose_halves(&in, op);
		any_modifiers(&in, op, rows[in.op].flags);
		if (encode_decode(&in, wave, &decoded, code)) {
			count->bad += run_program(t, &decoded, code, wave);
			count->run++;
		} else {
			count->refused[k]++;
		}
	}
}

static bool has_form(const struct isa_op_info *op, enum encoding e,
		     enum isa_form form)
{
	if (form == ISA_FORM_PLAIN)
		return true;
	return op->flags &
	       (e == LONG || op->fmt == ISA_FMT_VOP3P ? ISA_DPP64 : ISA_DPP);
}

static void try_form(struct lanes *t, enum isa_op op, enum encoding e,
		     enum isa_form form, struct count *count)
{
	const struct isa_op_info *info = isa_op_info(op);

	for (int n = 0; n < 3; n++)
		for (int k = 0; k < KINDS && source_info(info, n); k++) {
			struct isa_inst in = vector_inst(op, e);

			in.form = (uint8_t)form;
			if (takes_kind(&in, info, n, (enum kind)k))
				try_source(t, &in, n, (enum kind)k, count);
		}
}

static void test_op(struct lanes *t, enum isa_op op)
{
	const struct isa_op_info *info = isa_op_info(op);
	struct count count = { 0 };

	for (int e = 0; e < ENCODINGS; e++)
		for (int form = 0; form <= ISA_FORM_DPP8; form++)
			if (has_encoding(info, (enum encoding)e) &&
			    has_form(info, (enum encoding)e,
				     (enum isa_form)form))
				try_form(t, op, (enum encoding)e,
					 (enum isa_form)form, &count);
	for (int k = 0; k < KINDS; k++)
		if (count.refused[k]) {
			diag("%s: %d programs with %s are refused", info->name,
			     count.refused[k], kind_name[k]);
			count.bad++;
		}
	is_u64((uint64_t)count.bad, 0, "%s: %d programs", info->name,
	       count.run);
}

int main(void)
{
	struct lanes *t = lanes_new(32);

	diag("seed 0x%llx", (unsigned long long)seed);
	t->w.n_vgprs = REGS;
	for (int i = 1; i < ISA_OP_COUNT; i++)
		if (is_vector(isa_op_info((enum isa_op)i)) && !is_cross(i) &&
		    rows[i].fn)
			test_op(t, (enum isa_op)i);
	lanes_free(t);
	return plan_done();
}
