/*
 * kfd/soft/watch/check_scalar.c - uninitialised values in scalar instructions:
 * bit by bit where lane masks are combined.
 */
#include <string.h>

#include "kfd/soft/watch/watch_int.h"

struct scalar check_read_scalar(struct actor *a, const struct isa_operand *o)
{
	const uint64_t v = soft_read_scalar(a->w, o, &a->s->u.in);
	struct scalar s = { { (uint32_t)v, (uint32_t)(v >> 32) },
			    { UINT32_MAX, UINT32_MAX },
			    { .kind = ORIGIN_NONE } };

	for (int i = 0; o->kind == ISA_K_SGPR && i < o->dwords && i < 2; i++) {
		s.ok[i] = a->sw->sgpr[o->reg + i];
		if (s.ok[i] != UINT32_MAX)
			s.from = a->sw->sorigin[o->reg + i];
	}
	if (o->kind == ISA_K_SPECIAL && o->reg == ISA_R_SCC && !a->sw->scc) {
		s.ok[0] = s.ok[1] = 0;
		s.from = a->sw->scc_origin;
	}
	return s;
}

/* To registers; EXEC is a sink. */
void check_write_scalar(struct actor *a, int reg, int n,
			const struct scalar *s)
{
	for (int i = 0; i < n && i < 2; i++) {
		if (reg + i >= 128 || reg + i == ISA_R_NULL)
			return;
		if (reg + i >= ISA_R_EXEC_LO) {
			if (s->ok[i] != UINT32_MAX)
				check_uninit(a, -1, "EXEC", &s->from);
			continue;
		}
		a->sw->sgpr[reg + i] = s->ok[i];
		if (s->ok[i] != UINT32_MAX)
			a->sw->sorigin[reg + i] = s->from;
	}
}

static void set_scc(struct actor *a, bool ok, const struct origin *from)
{
	a->sw->scc = ok;
	if (!ok)
		a->sw->scc_origin = *from;
}

/* SCC = (result != 0): a bit that is surely set is enough. */
static void scc_nonzero(struct actor *a, const struct scalar *s, int n)
{
	uint32_t all = s->ok[0], set = s->ok[0] & s->v[0];

	if (n == 2) {
		all &= s->ok[1];
		set |= s->ok[1] & s->v[1];
	}
	set_scc(a, all == UINT32_MAX || set, &s->from);
}

/* Bitwise operations know bits that one source decides alone. */
static struct scalar eval_bitwise(enum site_bits op, struct scalar x,
				  struct scalar y)
{
	struct scalar r = { .from = x.from.kind ? x.from : y.from };

	for (int i = 0; i < 2; i++) {
		uint32_t p = op & BITS_NOT0 ? ~x.v[i] : x.v[i];
		uint32_t q = op & BITS_NOT1 ? ~y.v[i] : y.v[i];

		r.ok[i] = x.ok[i] & y.ok[i];
		switch (op & BITS_OP) {
		case BITS_AND:
			r.v[i] = p & q;
			r.ok[i] |= (x.ok[i] & ~p) | (y.ok[i] & ~q);
			break;
		case BITS_OR:
			r.v[i] = p | q;
			r.ok[i] |= (x.ok[i] & p) | (y.ok[i] & q);
			break;
		default:
			r.v[i] = p ^ q;
		}
		if (op & BITS_INVERT)
			r.v[i] = ~r.v[i];
	}
	return r;
}

static struct scalar read_exec(const struct actor *a)
{
	return (struct scalar){ { a->w->s[ISA_R_EXEC_LO],
				  a->w->s[ISA_R_EXEC_HI] },
				{ UINT32_MAX, UINT32_MAX },
				{ .kind = ORIGIN_NONE } };
}

/* s_and_b32, s_and_saveexec_b32 and the like. */
static void run_bitwise(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	const enum site_bits op = a->s->bits;
	const bool exec = op & (BITS_SAVE | BITS_WRITE);
	const int n = in->opnd[0].dwords;
	struct scalar x = check_read_scalar(a, &in->opnd[1]), y, r, old;

	y = exec ? read_exec(a) : check_read_scalar(a, &in->opnd[2]);
	old = read_exec(a);
	r = eval_bitwise(op, x, y);
	if (!exec && in->opnd[1].kind == ISA_K_SGPR &&
	    in->opnd[2].kind == ISA_K_SGPR &&
	    in->opnd[1].reg == in->opnd[2].reg &&
	    (op & BITS_OP) == BITS_XOR)
		r.ok[0] = r.ok[1] = UINT32_MAX;
	scc_nonzero(a, &r, n);
	if (exec) {
		check_write_scalar(a, ISA_R_EXEC_LO, n, &r);
		r.ok[0] = r.ok[1] = UINT32_MAX;
	}
	check_write_scalar(a, in->opnd[0].reg, n, op & BITS_SAVE ? &old : &r);
}

/* s_cselect, s_cmov: one source is taken. */
static void run_select(struct actor *a, bool moves)
{
	const struct isa_inst *in = &a->s->u.in;
	const bool first = a->w->scc;
	struct scalar r;

	if (moves && !first)
		return;
	if (moves && in->fmt == ISA_FMT_SOPK)
		r = read_exec(a); /* any valid value */
	else
		r = check_read_scalar(a, &in->opnd[first || moves ? 1 : 2]);
	if (!a->sw->scc) {
		r.ok[0] = r.ok[1] = 0;
		r.from = a->sw->scc_origin;
	}
	check_write_scalar(a, in->opnd[0].reg, in->opnd[0].dwords, &r);
}

static void run_bitcmp(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	struct scalar x = check_read_scalar(a, &in->opnd[0]);
	struct scalar y = check_read_scalar(a, &in->opnd[1]);
	const int bit = (int)(y.v[0] & (in->opnd[0].dwords == 2 ? 63 : 31));

	set_scc(a, y.ok[0] == UINT32_MAX && x.ok[bit / 32] >> bit % 32 & 1,
		y.ok[0] == UINT32_MAX ? &x.from : &y.from);
}

/* All that is read must be initialised for what is written to be. */
static void run_salu(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	const uint32_t flags = a->s->info->flags;
	struct scalar r = read_exec(a);

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		struct scalar x;

		if (!(o->role & ISA_SRC) || o->kind == ISA_K_IMM ||
		    o->kind == ISA_K_OFF)
			continue;
		x = check_read_scalar(a, o);
		if ((x.ok[0] & x.ok[1]) != UINT32_MAX) {
			r.ok[0] = r.ok[1] = 0;
			r.from = x.from;
		}
	}
	if (flags & ISA_RSCC && !a->sw->scc) {
		r.ok[0] = r.ok[1] = 0;
		r.from = a->sw->scc_origin;
	}
	if (flags & ISA_WSCC)
		set_scc(a, r.ok[0], &r.from);
	for (int i = 0; i < in->n_opnd; i++)
		if (in->opnd[i].role & ISA_DST &&
		    in->opnd[i].kind == ISA_K_SGPR)
			check_write_scalar(a, in->opnd[i].reg,
					   in->opnd[i].dwords, &r);
}

void check_scalar(struct actor *a)
{
	const struct isa_inst *in = &a->s->u.in;
	struct scalar x;

	switch (in->op) {
	case ISA_s_mov_b32:
	case ISA_s_mov_b64:
	case ISA_s_not_b32:
	case ISA_s_not_b64:
		x = check_read_scalar(a, &in->opnd[1]);
		if (a->s->info->flags & ISA_WSCC) {
			x.v[0] = ~x.v[0], x.v[1] = ~x.v[1];
			scc_nonzero(a, &x, in->opnd[0].dwords);
		}
		check_write_scalar(a, in->opnd[0].reg, in->opnd[0].dwords, &x);
		return;
	case ISA_s_cselect_b32:
	case ISA_s_cselect_b64:
		run_select(a, false);
		return;
	case ISA_s_cmov_b32:
	case ISA_s_cmov_b64:
	case ISA_s_cmovk_i32:
		run_select(a, true);
		return;
	case ISA_s_bitcmp0_b32:
	case ISA_s_bitcmp1_b32:
	case ISA_s_bitcmp0_b64:
	case ISA_s_bitcmp1_b64:
		run_bitcmp(a);
		return;
	case ISA_s_movreld_b32:
	case ISA_s_movreld_b64:
	case ISA_s_movrelsd_2_b32: /* M0 says which register is written */
		memset(a->sw->sgpr, 0xff, sizeof(a->sw->sgpr));
		return;
	}
	if (a->s->bits)
		run_bitwise(a);
	else
		run_salu(a);
}
