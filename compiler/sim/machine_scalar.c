/*
 * compiler/sim/machine_scalar.c - evaluation of scalar instructions.
 */
#include <string.h>

#include "compiler/sim/machine_int.h"

static int64_t sign_extend(uint64_t a)
{
	return (int32_t)a;
}

void machine_scalar(struct machine *m, const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	const struct machine_half *h = &o->x;
	const struct isa_operand *dst =
		h->dst == MACHINE_NONE ? NULL : &in->opnd[h->dst];
	uint64_t a = h->n_src > 0 ? machine_read_s(m, &in->opnd[h->src[0]]) : 0;
	uint64_t b = h->n_src > 1 ? machine_read_s(m, &in->opnd[h->src[1]]) : 0;
	uint64_t d0 = dst ? machine_read_s(m, dst) : a, d = 0;
	int64_t x = sign_extend(a), y = sign_extend(b), k;
	bool scc = m->scc;

	/* A literal is as wide as the operand: zero-extended to 64 bits. */
	k = (int16_t)in->f[ISA_F_SIMM16];
	switch (in->op) {
#define S(name, value, flag) case ISA_##name: d = value; m->scc = flag; break;
#define T(name, flag) case ISA_##name: m->scc = flag; return;
#include "compiler/sim/machine.def"
	default:
		return;
	}
	if (dst)
		machine_write_s(m, dst, d);
}

void machine_saveexec(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o)
{
	const struct isa_inst *in = &o->in;
	uint64_t a = machine_read_s(m, &in->opnd[o->x.src[0]]);
	uint64_t exec = machine_exec(m), n = exec;

	switch (in->op) {
#define E(name, expr)                                                          \
	case ISA_s_##name##_saveexec_b32:                                      \
	case ISA_s_##name##_saveexec_b64: n = expr; break;
#include "compiler/sim/machine.def"
	default:
		break;
	}
	if (c->wave_size == 32 || in->opnd[o->x.dst].dwords < 2)
		n &= UINT32_MAX;
	machine_write_s(m, &in->opnd[o->x.dst], exec);
	m->s[ISA_R_EXEC_LO] = (uint32_t)n;
	m->s[ISA_R_EXEC_HI] = (uint32_t)(n >> 32);
	m->scc = n != 0;
}

bool machine_load(const struct machine_code *c, struct machine *m,
		  const struct isa_inst *in)
{
	const struct isa_operand *d = &in->opnd[0];
	uint64_t va, bytes = d->dwords * 4u;

	if (!(d->role & ISA_DST) || d->reg + d->dwords > 128 ||
	    !machine_scalar_address(m, in, &va))
		return false;
	for (int k = 0; k < c->n_memory; k++) {
		const struct sim_memory *r = &c->memory[k];

		if (va < r->va || va - r->va > r->size_bytes ||
		    bytes > r->size_bytes - (va - r->va))
			continue;
		memcpy(&m->s[d->reg], (const uint8_t *)r->bytes + (va - r->va),
		       bytes);
		return true;
	}
	return false;
}
