/*
 * Every vector instruction that is not for graphics only, by a reference of
 * its own (tests/ref/valu.def): special and random values, both wave sizes,
 * all encodings, modifiers, MODE, masked lanes; executed one by one and in the
 * fast form.  An instruction without a row fails.
 */
#include "tests/exec/every.h"
#include "tests/ref/lane.h"

enum {
	PROGRAMS = 20,	/* of one instruction in one encoding */
	WARM = 20,	/* runs after which the fast form exists */
	SPARE = 20,	/* SGPRs of mask results, and of other operands */
	S_SOURCE = 30,
	S_MASK = 40,
};

/* ---------------------------------------------------------- references ---- */

typedef uint64_t lane_fn(struct ref_lane *l);

#define R(name, flags, ...)                                              \
	static uint64_t ref_##name(struct ref_lane *l)                   \
	{                                                                \
		uint64_t a = l->s[0], b = l->s[1], c = l->s[2], d;       \
		bool clamp = l->clamp, ieee = l->mode & SOFT_MODE_IEEE;  \
		bool in = l->in, out = l->out;                           \
		int rs = l->mode & 3, rh = l->mode >> 2 & 3;             \
		long double x = 0;                                       \
                                                                         \
		d = (uint64_t)(__VA_ARGS__);                             \
		(void)a, (void)b, (void)c, (void)clamp, (void)ieee;      \
		(void)in, (void)rs, (void)rh, (void)x;                   \
		l->out |= out;                                           \
		return d;                                                \
	}
#include "tests/ref/valu.def"

static const struct row {
	lane_fn *fn;
	unsigned flags;
} rows[ISA_OP_COUNT] = {
#define R(name, flags, ...) [ISA_##name] = { ref_##name, flags },
#include "tests/ref/valu.def"
};

/* -------------------------------------------------------- instructions ---- */

enum encoding { SHORT, LONG, ENCODINGS };

/* Encodings of a row: its own format, and VOP3 if it has that, too. */
static bool has_encoding(const struct isa_op_info *op, enum encoding e)
{
	return e == SHORT || op->flags & ISA_E64;
}

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

/* Bits of op_sel that choose a half: the destination's, single sources'. */
static unsigned halves(const struct isa_op_info *op)
{
	unsigned bits = 8;

	for (int i = 0, k = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot >= ISA_SLOT_S0 &&
		    op->opnd[i].slot <= ISA_SLOT_S2S) {
			if (isa_type_info(op->opnd[i].type)->count == 1)
				bits |= 1u << k;
			k++;
		}
	return bits;
}

/* What the row's modifier flags allow, some of the time. */
static void modifiers(struct isa_inst *in, const struct isa_op_info *op,
		      unsigned flags)
{
	const bool floats = isa_type_info(op->opnd[0].type)->kind == 'F';
	unsigned mask = op->flags & ISA_MOD2 ? 7 :
			op->flags & ISA_MOD1 ? 3 :
			op->flags & ISA_MOD0 ? 1 :
					       0;

	if (op->flags & ISA_RD)
		mask &= 3;
	if (chance(40)) {
		in->f[ISA_F_NEG] = rnd() & mask;
		in->f[ISA_F_ABS] = rnd() & mask;
	}
	if (op->flags & ISA_CLAMP && (floats || flags & INTCLAMP))
		in->f[ISA_F_CLAMP] = chance(30);
	if (op->flags & ISA_OMOD && floats && chance(30))
		in->f[ISA_F_OMOD] = rnd() & 3;
	if (op->flags & ISA_OPSEL && chance(50))
		in->f[ISA_F_OPSEL] = rnd() & halves(op);
}

/* Halves and signs of packed math; of mixed math, halves and magnitudes. */
static void packed_modifiers(struct isa_inst *in, const struct isa_op_info *op,
			     unsigned flags)
{
	const struct isa_type_info *t = isa_type_info(op->opnd[1].type);
	bool any = chance(50), three = op->n_opnd == 4;

	in->f[ISA_F_OPSEL_HI] = 3;
	in->f[ISA_F_OPSEL_HI2] = 1;
	if (flags & INTCLAMP || isa_type_info(op->opnd[0].type)->kind == 'F')
		in->f[ISA_F_CLAMP] = chance(25) && op->flags & ISA_CLAMP;
	if (!any)
		return;
	if (flags & MIX || t->bits == 16) {
		in->f[ISA_F_OPSEL] = rnd() & (three ? 7 : 3);
		in->f[ISA_F_OPSEL_HI] = rnd() & 3;
		in->f[ISA_F_OPSEL_HI2] = rnd() & 1;
		if (flags & DOT) /* the third source is one float */
			in->f[ISA_F_OPSEL] &= 3, in->f[ISA_F_OPSEL_HI2] = 1;
	}
	if (t->kind == 'F' || t->kind == 'G' || flags & MIX) {
		in->f[ISA_F_NEG] = rnd() & (three && !(flags & DOT) ? 7 : 3);
		in->f[ISA_F_NEG_HI] = rnd() & (three && !(flags & DOT) ? 7 : 3);
	} else if (op->opnd[1].type == ISA_T_V4I8 ||
		   op->opnd[1].type == ISA_T_V8I4) {
		in->f[ISA_F_NEG] = rnd() & 3;
	}
}

/* False: it does not encode so. */
static bool make(enum isa_op number_of, enum encoding e, int wave,
		 struct isa_inst *out, uint8_t *code)
{
	static const struct isa_target targets[] = { { ISA_GFX11, 32, false },
						     { ISA_GFX11, 64, false } };
	const struct isa_op_info *op = isa_op_info(number_of);
	unsigned flags = rows[number_of].flags;
	struct isa_inst in = { .op = (uint16_t)number_of, .fmt = op->fmt };
	bool used = false, short_form;
	int size;

	if (e == LONG)
		in.fmt = ISA_FMT_VOP3;
	for (int i = 0; i < op->n_opnd; i++)
		if (e == LONG && op->opnd[i].slot == ISA_SLOT_CO)
			in.fmt = ISA_FMT_VOP3SD;
	short_form = in.fmt == ISA_FMT_VOP1 || in.fmt == ISA_FMT_VOP2 ||
		     in.fmt == ISA_FMT_VOPC;
	in.f[ISA_F_OP] = (uint32_t)isa_opcode(ISA_GFX11, number_of, e == LONG);
	in.f[ISA_F_VDST] = (uint32_t)(rnd() % 24 * 2);
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *o = &op->opnd[i];
		int n = (o->slot - ISA_SLOT_S0) % 3;

		if (o->slot == ISA_SLOT_CD || o->slot == ISA_SLOT_DS)
			in.f[ISA_F_VDST] = SPARE;
		else if (o->slot == ISA_SLOT_CO)
			in.f[ISA_F_SDST] = SPARE;
		else if (o->slot == ISA_SLOT_CI)
			in.f[ISA_F_SRC2] = S_MASK;
		else if (o->slot == ISA_SLOT_K)
			in.has_literal = true,
			in.literal = (uint32_t)value_of(isa_type_info(o->type));
		else if (o->slot == ISA_SLOT_S2I)
			in.f[ISA_F_SRC2] = 256 + rnd() % 24 * 2;
		else if (o->slot >= ISA_SLOT_S0 && o->slot <= ISA_SLOT_S2S)
			in.f[ISA_F_SRC0 + n] = source_field(
				o, !short_form || n == 0, &used);
	}
	if (short_form)
		in.f[ISA_F_VSRC1] = in.f[ISA_F_SRC1] & 255;
	if (op->fmt == ISA_FMT_VOP3P)
		packed_modifiers(&in, op, flags);
	else if (!short_form)
		modifiers(&in, op, flags);
	/* The second form of compares writes EXEC and names no register. */
	if (op->flags & ISA_WEXEC && !short_form)
		in.f[ISA_F_VDST] = ISA_R_EXEC_LO;
	memset(code, 0, ISA_MAX_SIZE_BYTES);
	size = isa_encode(&in, code);
	return size && !isa_decode(&targets[wave == 64], code, (size_t)size,
				   out);
}

/* Those that are no function of one lane: tests/exec/every-cross. */
static bool is_cross(int op)
{
	switch (op) {
#define X(name) case ISA_##name:
#include "tests/ref/cross.def"
		return true;
	}
	return false;
}

/* --------------------------------------------------------------- lanes ---- */

/* Bits of a source of one lane, before modifiers. */
static uint64_t raw_source(const struct state *s, const struct isa_operand *o,
			   int lane, int j)
{
	const struct isa_type_info *t = isa_type_info(o->type);

	switch (o->kind) {
	case ISA_K_VGPR:
		return s->v[lane / 32][o->reg + j][lane % 32];
	case ISA_K_SGPR:
		return s->s[o->reg + j];
	case ISA_K_INLINE:
		return isa_inline_value(o->reg, o->dwords == 2 ?
						ISA_T_F64 : o->type) >>
			       32 * j & UINT32_MAX;
	case ISA_K_LITERAL:
		if (t->bits == 64 && t->kind == 'F')
			return j ? o->value : 0;
		return j ? 0 : o->value;
	}
	return 0;
}

static const struct ref_fmt *format_of(const struct isa_type_info *t)
{
	return t->kind == 'G' ? &BF16 :
	       t->kind != 'F' ? NULL :
	       t->bits == 64  ? &F64 :
	       t->bits == 32  ? &F32 :
				&F16;
}

static uint64_t signs_of(uint64_t u, unsigned mods, uint64_t sign)
{
	if (mods & ISA_M_ABS)
		u &= ~sign;
	return mods & ISA_M_NEG ? u ^ sign : u;
}

/* One source with everything that its modifiers do. */
static uint64_t source(const struct state *s, const struct isa_inst *in,
		       const struct isa_operand *o, int lane)
{
	const struct isa_type_info *t = isa_type_info(o->type);
	uint64_t u = raw_source(s, o, lane, 0), low, high;
	bool has_sign = t->kind == 'F' || t->kind == 'G' || t->kind == 'B';

	if (o->type == ISA_T_MIX) {
		const unsigned mods = o->mods;

		if (mods & ISA_M_HI_HI)
			u = ref_convert(&F32, &F16,
					(mods & ISA_M_HI ? u >> 16 : u) &
						0xffff,
					0);
		return signs_of(u, mods, ref_sign(&F32));
	}
	if (o->dwords >= 2)
		return signs_of(u | raw_source(s, o, lane, 1) << 32,
				has_sign ? o->mods : 0, ref_sign(&F64));
	if (t->bits == 32)
		return signs_of(u, has_sign ? o->mods : 0, ref_sign(&F32));
	if (t->bits == 16 && t->count == 1)
		return signs_of((o->mods & ISA_M_HI ? u >> 16 : u) & 0xffff,
				has_sign ? o->mods : 0, ref_sign(&F16));
	if (t->bits != 16)
		return u;
	if (in->fmt != ISA_FMT_VOP3P)
		return signs_of(u, o->mods & (ISA_M_NEG | ISA_M_ABS),
				0x80008000);
	low = o->mods & ISA_M_HI ? u >> 16 : u & 0xffff;
	high = o->mods & ISA_M_HI_HI ? u >> 16 : u & 0xffff;
	if (t->kind == 'F' || t->kind == 'G') {
		low ^= o->mods & ISA_M_NEG ? 0x8000 : 0;
		high ^= o->mods & ISA_M_NEG_HI ? 0x8000 : 0;
	}
	return low | high << 16;
}

/* MODE's denormal bit for this type; every other type keeps them. */
static bool flushes(const struct ref_fmt *f, uint32_t mode, bool output)
{
	return f && f != &BF16 && !(mode >> (f == &F32 ? 4 : 6) >> output & 1);
}

static uint64_t flush_all(const struct ref_fmt *f, uint64_t u, int count)
{
	if (count == 2)
		return pair(ref_flush(f, u & 0xffff), ref_flush(f, u >> 16));
	return ref_flush(f, u);
}

/* omod and clamp of one float (RDNA3 ISA 7.2). */
static uint64_t finish(const struct ref_fmt *f, const struct isa_inst *in,
		       uint32_t mode, uint64_t u)
{
	static const int times[] = { 0, 1, 2, -1 };

	if (in->f[ISA_F_OMOD] && flushes(f, mode, true) &&
	    !(mode & SOFT_MODE_IEEE) && !ref_is_nan(f, u)) {
		u = ref_flush(f, ref_scale(f, u, times[in->f[ISA_F_OMOD]], 0));
		if (!ref_mag(f, u))
			u = 0;
	}
	if (!in->f[ISA_F_CLAMP])
		return u;
	if (ref_is_nan(f, u))
		return mode & SOFT_MODE_DX10_CLAMP ? 0 : u;
	if (u & ref_sign(f))
		return 0;
	return u > ref_one(f) ? ref_one(f) : u;
}

struct sorted {
	const struct isa_operand *dst, *mask_in, *mask_out, *src[4];
	int n;
};

static struct sorted sort_operands(const struct isa_inst *in)
{
	struct sorted r = { 0 };

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->slot == ISA_SLOT_CI)
			r.mask_in = o;
		else if (o->slot == ISA_SLOT_CO || o->slot == ISA_SLOT_CD)
			r.mask_out = o;
		else if (o->role & ISA_DST)
			r.dst = o;
		else
			r.src[r.n++] = o;
	}
	if (r.dst && r.dst->role & ISA_SRC && r.n < 3)
		r.src[r.n++] = r.dst;
	return r;
}

static uint64_t run_row(const struct row *row, struct ref_lane *l)
{
	struct ref_lane half = *l;
	uint64_t low, high;

	if (!(row->flags & PAIR))
		return row->fn(l);
	for (int i = 0; i < 3; i++)
		half.s[i] = l->s[i] & 0xffff;
	/* Each half has overflows of its own. */
	half.any_inf = false;
	for (int i = 0; i < 3; i++)
		half.any_inf |= ref_mag(&F16, half.s[i]) == ref_inf(&F16);
	low = row->fn(&half);
	half.any_inf = false;
	for (int i = 0; i < 3; i++) {
		half.s[i] = l->s[i] >> 16 & 0xffff;
		half.any_inf |= ref_mag(&F16, half.s[i]) == ref_inf(&F16);
	}
	high = row->fn(&half);
	return pair(low, high);
}

static void lane_sources(const struct state *s, const struct isa_inst *in,
			 const struct sorted *o, unsigned flags,
			 struct ref_lane *l)
{
	for (int k = 0; k < o->n; k++) {
		const struct isa_type_info *t = isa_type_info(o->src[k]->type);
		const struct ref_fmt *f = format_of(t);

		l->mods[k] = o->src[k]->mods;
		l->s[k] = source(s, in, o->src[k], l->lane);
		if (o->src[k]->dwords == 4)
			for (int j = 0; j < 4; j++)
				l->wide[j] = (uint32_t)raw_source(
					s, o->src[k], l->lane, j);
		if (f && flushes(f, l->mode, false) && !(flags & MIX))
			l->s[k] = flush_all(f, l->s[k], t->count);
		if (f)
			l->any_inf |= ref_mag(f, l->s[k]) == ref_inf(f);
	}
}

/* What the lane's destination becomes; `got` is taken where it is as good. */
static void lane_result(const struct isa_inst *in, const struct row *row,
			const struct isa_operand *dst, struct ref_lane *l,
			uint64_t d, const struct state *got, struct state *want)
{
	const struct isa_type_info *t = isa_type_info(dst->type);
	const struct ref_fmt *f = format_of(t);
	uint32_t(*v)[SOFT_LANES] = &want->v[l->lane / 32][dst->reg];
	const uint32_t(*g)[SOFT_LANES] = &got->v[l->lane / 32][dst->reg];
	int i = l->lane % 32;
	bool high = dst->mods & ISA_M_HI || in->op == ISA_v_fma_mixhi_f16;
	uint64_t gd = g[0][i];

	if (dst->dwords == 2)
		gd |= (uint64_t)g[1][i] << 32;
	if (t->bits == 16 && t->count == 1)
		gd = (high ? gd >> 16 : gd) & 0xffff;
	if (f && row->flags & ARITH && flushes(f, l->mode, true))
		d = flush_all(f, d, t->count);
	if (f && f != &BF16 && t->count == 2)
		d = pair(finish(f, in, l->mode, d & 0xffff),
			 finish(f, in, l->mode, d >> 16));
	else if (f && f != &BF16)
		d = finish(f, in, l->mode, d);
	if (l->skip)
		d = gd;
	if (row->flags & TRANS &&
	    (ref_ulps(f, gd, d) <= 1 ||
	     (ref_mag(f, gd) >> f->frac_bits <= 1 &&
	      ref_mag(f, d) >> f->frac_bits <= 1 && f == &F32)) &&
	    !ref_is_nan(f, d))
		d = gd;
	if (row->flags & DOT && !in->f[ISA_F_CLAMP] &&
	    fabsl(ref_value(&F32, gd) - ref_value(&F32, d)) <= l->tolerance)
		d = gd;
	if (row->flags & DOT && in->f[ISA_F_CLAMP])
		d = gd; /* the tolerance says nothing after it */
	if (dst->dwords == 4)
		for (int j = 0; j < 4; j++)
			v[j][i] = l->wide[j];
	else if (t->bits == 16 && t->count == 1)
		v[0][i] = high ? (v[0][i] & 0xffff) | (uint32_t)d << 16 :
				 (v[0][i] & 0xffff0000) | (d & 0xffff);
	else
		v[0][i] = (uint32_t)d;
	if (dst->dwords == 2)
		v[1][i] = d >> 32;
}

static bool mask_bit(const struct state *s, const struct isa_operand *o,
		     int lane)
{
	int reg = o ? o->reg : ISA_R_VCC_LO;

	return s->s[reg + lane / 32] >> lane % 32 & 1;
}

/* The state after the instruction, as the reference has it. */
static void expect(const struct isa_inst *in, const struct row *row, int wave,
		   uint32_t mode, const struct state *old,
		   const struct state *got, struct state *want)
{
	const bool to_exec = isa_op_info(in->op)->flags & ISA_WEXEC;
	struct sorted o = sort_operands(in);
	uint64_t mask = 0;

	*want = *old;
	for (int lane = 0; lane < wave; lane++) {
		struct ref_lane l = { .lane = lane, .mode = mode,
				      .clamp = in->f[ISA_F_CLAMP] };
		uint64_t d;

		if (!(old->s[ISA_R_EXEC_LO + lane / 32] >> lane % 32 & 1))
			continue;
		l.in = mask_bit(old, o.mask_in, lane);
		lane_sources(old, in, &o, row->flags, &l);
		d = run_row(row, &l);
		/* Where the manual is silent, the mask is as it came. */
		if (l.skip && o.mask_out)
			l.out = mask_bit(got, o.mask_out, lane);
		mask |= (uint64_t)l.out << lane;
		if (o.dst)
			lane_result(in, row, o.dst, &l, d, got, want);
	}
	for (int h = 0; h < wave / 32; h++)
		if (to_exec)
			want->s[ISA_R_EXEC_LO + h] = (uint32_t)(mask >> 32 * h);
		else if (o.mask_out)
			want->s[o.mask_out->reg + h] =
				(uint32_t)(mask >> 32 * h);
}

/* --------------------------------------------------------------- tests ---- */

static uint32_t random_mode(unsigned flags)
{
	uint32_t mode = 0xf0;

	if (chance(50))
		mode |= SOFT_MODE_IEEE;
	if (chance(50))
		mode |= SOFT_MODE_DX10_CLAMP;
	if (chance(20))
		mode |= SOFT_MODE_FP16_OVFL;
	if (chance(30) && flags & (ARITH | MIX))
		mode |= rnd() & 15;
	if (chance(30) && flags & ARITH)
		mode &= 0xffffff0f | (uint32_t)rnd();
	return mode;
}

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

	h.fmt = ISA_FMT_VOP2;
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

/* Sources of one half: its own row's. */
static void half_sources(struct isa_inst *in, const struct isa_op_info *op,
			 enum isa_field src0, enum isa_field src1)
{
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_operand_info *o = &op->opnd[i];
		bool packed = isa_type_info(o->type)->count > 1;

		if (o->slot == ISA_SLOT_K)
			in->has_literal = true;
		if (o->slot == ISA_SLOT_S1)
			in->f[src1] = rnd() % REGS;
		if (o->slot != ISA_SLOT_S0)
			continue;
		in->f[src0] = 256 + rnd() % REGS;
		if (src0 == ISA_F_SRC0 && !packed && chance(40))
			in->f[src0] = chance(50) ? S_SOURCE + rnd() % 8 :
						   128 + rnd() % 65;
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

static bool is_vector(const struct isa_op_info *op)
{
	switch (op->fmt) {
	case ISA_FMT_VOP1:
	case ISA_FMT_VOP2:
	case ISA_FMT_VOPC:
	case ISA_FMT_VOP3:
	case ISA_FMT_VOP3SD:
	case ISA_FMT_VOP3P:
		return op->opcode[ISA_GFX11] >= 0 && !(op->flags & ISA_GFX);
	}
	return false;
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
