/*
 * ref-scalar - what a scalar instruction does to a state, by rows of
 * tests/ref/salu.def.
 *
 *	expect_scalar(&in, scalar_rows[in.op], &old, &want);
 */
#ifndef T0_TESTS_REF_SCALAR_H
#define T0_TESTS_REF_SCALAR_H

#include "isa/code/code.h"
#include "tests/ref/lane.h"
#include "tests/ref/state.h"

/* ---------------------------------------------------------- references ---- */

struct scalar {
	uint64_t a, b, d, exec;
	int64_t k;
	bool scc;
	int bits; /* of the destination */
};

static inline uint64_t narrow(const struct scalar *l, uint64_t u)
{
	return l->bits == 32 ? u & UINT32_MAX : u;
}

static inline uint64_t overflow(int64_t v, bool *scc)
{
	*scc = v < INT32_MIN || v > INT32_MAX;
	return (uint64_t)v;
}

static inline uint64_t magnitude32(uint64_t u)
{
	return (u & 0x80000000 ? -u : u) & UINT32_MAX;
}

/* Of each group of four bits: whether any is set, once or four times. */
static inline uint64_t quads(uint64_t u, bool whole)
{
	uint64_t r = 0;

	for (int i = 0; i < 64; i += 4)
		if (u >> i & 15)
			r |= whole ? UINT64_C(15) << i : UINT64_C(1) << i / 4;
	return r;
}

static inline uint64_t field(uint64_t u, uint64_t from, uint64_t n, int bits,
		      bool is_signed)
{
	uint64_t sign, v;

	v = bits == 32 && is_signed ? (uint64_t)s32(u) : u;
	v = is_signed ? (uint64_t)((int64_t)v >> from) : v >> from;
	if (n >= 64)
		return v;
	v &= (UINT64_C(1) << n) - 1;
	sign = n ? UINT64_C(1) << (n - 1) : 0;
	return is_signed ? (v ^ sign) - sign : v;
}

static inline uint64_t lowest(uint64_t u, int bits)
{
	for (int i = 0; i < bits; i++)
		if (u >> i & 1)
			return (uint64_t)i;
	return UINT64_MAX;
}

static inline uint64_t signs_of(uint64_t u, int bits)
{
	for (int i = 1; i < bits; i++)
		if ((u >> (bits - 1 - i) & 1) != (u >> (bits - 1) & 1))
			return (uint64_t)i;
	return UINT64_MAX;
}

static inline uint64_t doubled(uint64_t u)
{
	uint64_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (u >> i & 1) * 3 << 2 * i;
	return r;
}

typedef uint64_t scalar_fn(struct scalar *l);

#define S(name, ...)                                             \
	static inline uint64_t ref_##name(struct scalar *l)           \
	{                                                        \
		uint64_t a = l->a, b = l->b, d = l->d, r;        \
		uint64_t exec = l->exec;                         \
		int64_t k = l->k;                                \
		bool scc = l->scc;                               \
                                                                 \
		r = (uint64_t)(__VA_ARGS__);                     \
		(void)a, (void)b, (void)d, (void)k;              \
		l->scc = scc;                                    \
		l->exec = exec;                                  \
		return r;                                        \
	}
#include "tests/ref/salu.def"

static scalar_fn *const scalar_rows[ISA_OP_COUNT] = {
#define S(name, ...) [ISA_##name] = ref_##name,
#include "tests/ref/salu.def"
};

static inline uint64_t pair_at(const struct state *s, int reg, int dwords)
{
	return s->s[reg] |
	       (dwords == 2 ? (uint64_t)s->s[reg + 1] << 32 : 0);
}

static inline uint64_t value(const struct state *s, const struct isa_operand *o)
{
	uint64_t u;

	if (o->kind == ISA_K_SGPR)
		return o->reg == ISA_R_NULL ? 0 :
					      pair_at(s, o->reg, o->dwords);
	if (o->kind == ISA_K_LITERAL)
		return o->dwords == 2 ? (uint64_t)(int32_t)o->value : o->value;
	if (o->kind == ISA_K_SPECIAL)
		return o->reg == ISA_R_SCC ? s->scc : 0;
	u = isa_inline_value(o->reg, o->dwords == 2 ? ISA_T_F64 : o->type);
	return o->dwords == 2 ? u : u & UINT32_MAX;
}

/* What one computing instruction changes in *want, which is as *old. */
static inline void scalar_apply(const struct isa_inst *in, scalar_fn *fn,
		   const struct state *old, struct state *want)
{
	const struct isa_operand *dst = NULL;
	struct scalar l = { .scc = old->scc, .bits = 32 };
	uint64_t *source = &l.a, d;
	int exec_dwords = strstr(isa_op_info((enum isa_op)in->op)->name,
				 "exec_b64") ? 2 : 1;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];

		if (o->slot == ISA_SLOT_D || o->slot == ISA_SLOT_DIN) {
			l.d = value(old, o);
			dst = o->slot == ISA_SLOT_D ? o : NULL;
			l.bits = o->dwords * 32;
		} else if (o->slot == ISA_SLOT_IMM) {
			l.k = (int16_t)o->value;
		} else {
			*source = value(old, o);
			source = &l.b;
		}
	}
	l.exec = pair_at(old, ISA_R_EXEC_LO, exec_dwords);
	d = fn(&l);
	want->scc = l.scc;
	want->s[ISA_R_EXEC_LO] = (uint32_t)l.exec;
	if (exec_dwords == 2)
		want->s[ISA_R_EXEC_HI] = (uint32_t)(l.exec >> 32);
	if (dst && dst->reg != ISA_R_NULL)
		want->s[dst->reg] = (uint32_t)d;
	if (dst && dst->reg != ISA_R_NULL && dst->dwords == 2)
		want->s[dst->reg + 1] = (uint32_t)(d >> 32);
}

static inline void expect_scalar(const struct isa_inst *in, scalar_fn *fn,
				 const struct state *old, struct state *want)
{
	*want = *old;
	scalar_apply(in, fn, old, want);
}

#endif
