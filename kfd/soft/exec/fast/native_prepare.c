/*
 * kfd/soft/exec/fast/native_prepare.c - operands before a row: SGPRs in all
 * lanes, other signs, halves from other places, denormals as zeros.
 *
 * They are microops with a temporary vreg as destination, all lanes of it.
 */
#include "kfd/soft/exec/fast/native.h"

static const struct isa_operand *operand_of(const struct soft_microop *m)
{
	return &m->u->in.opnd[m->imm & 15];
}

static bool is_mods(const struct soft_microop *m)
{
	return m->fn == soft_simd()->row->mods;
}

bool soft_native_is_preparation(const struct soft_microop *m)
{
	const struct soft_row_microops *f = soft_simd()->row;

	return m->fn == f->spread || m->fn == f->spread2 || m->fn == f->signs ||
	       is_mods(m);
}

/* Those of one dword; only denormals of f32 become zeros. */
bool soft_native_is_prepared(const struct soft_microop *m)
{
	const struct isa_type_info *t;

	if (!is_mods(m))
		return soft_native_is_preparation(m);
	t = isa_type_info(operand_of(m)->type);
	return (t->bits == 32 && t->count == 1) ||
	       (t->bits == 16 && t->count <= 2 && !(m->imm & 16));
}

/* ------------------------------------------------------- what is wanted ----
 */

/* What becomes of an operand's bits, in this order; 0: nothing. */
struct change {
	enum { AS_IS, SWAP, BOTH_LOW, BOTH_HIGH, DOWN } move; /* of halves */
	int keep, flip; /* constants: and, xor */
	bool flush;
};

/* As mods_apply() of valu_mods.h has it. */
static struct change change_of(const struct soft_microop *m)
{
	const struct isa_operand *o = operand_of(m);
	const struct isa_type_info *t = isa_type_info(o->type);
	const bool packed = m->u->in.fmt == ISA_FMT_VOP3P && t->bits == 16 &&
			    t->count == 2;
	const bool has_sign = strchr("FGB", t->kind);
	const bool abs = o->mods & ISA_M_ABS, neg = o->mods & ISA_M_NEG;
	const bool low = !(o->mods & ISA_M_HI), high = o->mods & ISA_M_HI_HI;
	struct change c = { .flush = m->imm & 16 };

	if (packed) {
		const bool neg_hi = o->mods & ISA_M_NEG_HI;

		c.move = low ? (high ? AS_IS : BOTH_LOW) :
			       (high ? BOTH_HIGH : SWAP);
		c.flip = neg && neg_hi ? SOFT_NATIVE_SIGNS16 :
			 neg	       ? SOFT_NATIVE_SIGN16 :
			 neg_hi	       ? SOFT_NATIVE_SIGN :
					 0;
		return c;
	}
	if (t->count == 1)
		c.move = low ? AS_IS : DOWN;
	if (!has_sign)
		return c;
	c.keep = !abs	       ? 0 :
		 t->bits == 32 ? SOFT_NATIVE_REST :
		 t->count == 2 ? SOFT_NATIVE_RESTS16 :
				 SOFT_NATIVE_REST16;
	c.flip = !neg	       ? 0 :
		 t->bits == 32 ? SOFT_NATIVE_SIGN :
		 t->count == 2 ? SOFT_NATIVE_SIGNS16 :
				 SOFT_NATIVE_SIGN16;
	return c;
}

static struct change signs_of(unsigned mods)
{
	return (struct change){
		.keep = mods & ISA_M_ABS ? SOFT_NATIVE_REST : 0,
		.flip = mods & ISA_M_NEG ? SOFT_NATIVE_SIGN : 0,
	};
}

/* ------------------------------------------------------------------ code ----
 */

/* Zmm d: the halves of zmm s at other places. */
static void move_halves(struct soft_code *code, int move, int d, int s)
{
	switch (move) {
	case SWAP:
		soft_host_op(code, SOFT_HOST_ROLD, d, 0, 0, s, 16);
		return;
	case BOTH_LOW:
		soft_host_op(code, SOFT_HOST_SLLD, d, 0, 0, s, 16);
		soft_host_op_mem(code, SOFT_HOST_TERNLOGD, d, 0, s,
				 soft_native_at(SOFT_NATIVE_LOW_HALF), true,
				 0xf8);
		return;
	case BOTH_HIGH:
		soft_host_op(code, SOFT_HOST_SRLD, d, 0, 0, s, 16);
		soft_host_op_mem(code, SOFT_HOST_TERNLOGD, d, 0, s,
				 soft_native_at(SOFT_NATIVE_HIGH_HALF), true,
				 0xf8);
		return;
	case DOWN:
		soft_host_op(code, SOFT_HOST_SRLD, d, 0, 0, s, 16);
		return;
	}
}

/* Where the exponent is 0, only the sign of zmm z stays; zmm u is free. */
static void flush_zmm(struct soft_code *code, int z, int u)
{
	soft_host_op_mem(code, SOFT_HOST_TESTMD, SOFT_K_N, 0, z,
			 soft_native_at(SOFT_NATIVE_EXPONENT), true, 0);
	soft_host_op(code, SOFT_HOST_MOVD, u, 0, 0, z, 0);
	soft_host_op_mem(code, SOFT_HOST_ANDD, z, 0, z,
			 soft_native_at(SOFT_NATIVE_SIGN), true, 0);
	soft_host_op(code, SOFT_HOST_MOVD, z, SOFT_K_N, 0, u, 0);
}

static void change_zmm(struct soft_native_run *r, const struct change *c, int d,
		       int s)
{
	struct soft_code *code = r->code;

	if (c->move != AS_IS) {
		move_halves(code, c->move, d, s);
		s = d;
	}
	if (c->keep) {
		soft_host_op_mem(code, SOFT_HOST_ANDD, d, 0, s,
				 soft_native_at(c->keep), true, 0);
		s = d;
	}
	if (c->flip) {
		soft_host_op_mem(code, SOFT_HOST_XORD, d, 0, s,
				 soft_native_at(c->flip), true, 0);
		s = d;
	}
	if (s != d)
		soft_host_op(code, SOFT_HOST_MOVD, d, 0, 0, s, 0);
	if (c->flush)
		flush_zmm(code, d, 2 * SOFT_PAIR_U);
}

static void put_pair(struct soft_native_run *r, int pair, uintptr_t at)
{
	const struct soft_host_mem to =
		soft_native_vreg(r, SOFT_BASE_ABSOLUTE, at);

	soft_native_store(r, pair, to);
	soft_native_hold(r, pair, to);
}

static void broadcast_scalar(struct soft_native_run *r, int reg, uintptr_t at)
{
	const int t = soft_native_take(r);

	for (int i = 0; i < 2; i++)
		soft_host_op_mem(r->code, SOFT_HOST_BROADCASTD, 2 * t + i, 0, 0,
				 soft_host_sgpr(reg), false, 0);
	put_pair(r, t, at);
}

static void change_operand(struct soft_native_run *r, const struct soft_microop *m)
{
	const struct change c = is_mods(m) ? change_of(m) : signs_of((unsigned)m->imm);
	const int s = soft_native_load(r, soft_native_vreg(r, m->kb, m->b));
	const int t = soft_native_take(r);

	for (int i = 0; i < 2; i++)
		change_zmm(r, &c, 2 * t + i, 2 * s + i);
	put_pair(r, t, m->a);
}

void soft_native_prepare(struct soft_native_run *r,
			 const struct soft_microop *m)
{
	const struct soft_row_microops *f = soft_simd()->row;

	if (m->fn != f->spread && m->fn != f->spread2) {
		change_operand(r, m);
		return;
	}
	broadcast_scalar(r, (int)m->imm, m->a);
	if (m->fn == f->spread2)
		broadcast_scalar(r, (int)m->imm + 1, m->a + SOFT_VREG_BYTES);
}

/* ------------------------------------------------------- mixed precision ----
 */

bool soft_native_is_mixed(const struct soft_microop *m)
{
	return m->u->in.n_opnd > 1 && m->u->in.opnd[1].type == ISA_T_MIX;
}

/* The half that op_sel names, as a float: zmm d of zmm s. */
static void widen_half(struct soft_code *code, int d, int s, bool high)
{
	if (high)
		soft_host_op(code, SOFT_HOST_SRLD, d, 0, 0, s, 16);
	soft_host_op(code, SOFT_HOST_MOVDW, d, 0, 0, high ? d : s, 0);
	soft_host_op(code, SOFT_HOST_CVTPH2PS, d, 0, 0, d, 0);
}

int soft_native_mixed(struct soft_native_run *r, int pair, unsigned mods)
{
	const bool half = mods & ISA_M_HI_HI;
	const struct change signs = signs_of(mods);
	int t;

	if (!half && !signs.keep && !signs.flip)
		return pair;
	t = soft_native_take(r);
	for (int i = 0; i < 2; i++) {
		const int d = 2 * t + i, s = 2 * pair + i;

		if (half)
			widen_half(r->code, d, s, mods & ISA_M_HI);
		change_zmm(r, &signs, d, half ? d : s);
	}
	return t;
}
