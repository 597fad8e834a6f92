/*
 * machine_int - the decoded instructions of machine.h, and what its files
 * share.  Only for compiler/sim/machine*.c.
 */
#ifndef T0_SIM_MACHINE_INT_H
#define T0_SIM_MACHINE_INT_H

#include "compiler/sim/machine.h"

enum {
	MACHINE_HALF = 32,   /* lanes that are computed together */
	MACHINE_SOURCES = 3, /* operands that are read, at most */
	MACHINE_NONE = 255,  /* no such operand */
};

enum machine_form {
	MACHINE_NEW,	/* not decoded yet */
	MACHINE_FORGET,	/* what it writes is not known */
	MACHINE_WAIT,	/* and hints */
	MACHINE_V32,
	MACHINE_V64,
	MACHINE_CARRY,
	MACHINE_CMP,
	MACHINE_CNDMASK,
	MACHINE_READLANE, /* and v_readfirstlane */
	MACHINE_WRITELANE,
	MACHINE_SCALAR,
	MACHINE_SAVEEXEC,
	MACHINE_SMEM,
	MACHINE_GETPC,
	MACHINE_JUMP,
	MACHINE_MEMORY,
};

/* A half of a vector instruction: VOPD has two. */
struct machine_half {
	uint16_t op;
	uint8_t form; /* enum machine_form */
	uint8_t n_src;
	uint8_t src[MACHINE_SOURCES];	/* indices of operands */
	uint8_t dst, mask_out, mask_in; /* the same, or MACHINE_NONE */
	bool need_scc, kill_scc;
	/* Registers that are read, and that are written: a bit each. */
	uint64_t need_s[2], need_v[4], kill_s[2], kill_v[4];
};

struct machine_op {
	uint8_t form; /* enum machine_form */
	bool dual, end;
	struct machine_half x, y;
	struct isa_inst in;
};

/* A result on its way: two dwords of 64 lanes, and a mask. */
struct machine_value {
	uint32_t v[2][2 * MACHINE_HALF]; /* [dword][lane] */
	uint32_t mask[2];
};

/* --------------------------------------------------- machine_decode.c ---- */

/* The instruction at `pc`, decoded when it is first reached; NULL: error. */
struct machine_op *machine_fetch(struct machine_code *c, uint64_t pc,
				 struct err *e);
/* Is what it writes known if what it reads is? */
bool machine_evaluates(enum machine_form f);

/* --------------------------------------------------- machine_vector.c ---- */

/* Lanes of a half of the wave, from 32 * `half` on, into *out. */
void machine_compute(const struct machine_code *c, const struct machine *m,
		     const struct isa_inst *in, const struct machine_half *h,
		     int half, struct machine_value *out);
/* Results of active lanes; masks have zeros for the others. */
void machine_write(const struct machine_code *c, struct machine *m,
		   const struct isa_inst *in, const struct machine_half *h,
		   const struct machine_value *val);
/*
 * v_readlane and v_readfirstlane, all scalars read being known; false: that
 * lane is not known.
 */
bool machine_read_lane(const struct machine_code *c, struct machine *m,
		       const struct machine_op *o);
/* v_writelane, with what becomes known; false: not known in which lane. */
bool machine_write_lane(const struct machine_code *c, struct machine *m,
			const struct machine_op *o);

/* --------------------------------------------------- machine_scalar.c ---- */

void machine_scalar(struct machine *m, const struct machine_op *o);
void machine_saveexec(const struct machine_code *c, struct machine *m,
		      const struct machine_op *o);
/* A scalar load; false: of bytes that are not at hand. */
bool machine_load(const struct machine_code *c, struct machine *m,
		  const struct isa_inst *in);

/* ---- operands ---- */

static inline void machine_add_bits(uint64_t *set, int reg, int n)
{
	for (int r = reg; r < reg + n; r++)
		set[r / 64] |= UINT64_C(1) << r % 64;
}

static inline uint64_t machine_read_s(const struct machine *m,
				      const struct isa_operand *o)
{
	switch (o->kind) {
	case ISA_K_SGPR:
		if (o->reg == ISA_R_NULL)
			return 0;
		return m->s[o->reg] | (o->dwords > 1 && o->reg < 127
			? (uint64_t)m->s[o->reg + 1] << 32 : 0);
	case ISA_K_INLINE:
		return o->dwords > 1 ? isa_inline_value(o->reg, o->type)
				     : o->value;
	case ISA_K_LITERAL:
	case ISA_K_IMM:
		return o->value;
	case ISA_K_SPECIAL:
		return o->reg == ISA_R_SCC ? m->scc : 0;
	default:
		return 0;
	}
}

static inline void machine_write_s(struct machine *m,
				   const struct isa_operand *o, uint64_t value)
{
	if (o->kind != ISA_K_SGPR || o->reg == ISA_R_NULL)
		return;
	m->s[o->reg] = (uint32_t)value;
	if (o->dwords > 1 && o->reg < 127)
		m->s[o->reg + 1] = (uint32_t)(value >> 32);
}

/* Of machine.def: `n` bits from bit `at`, sign-extended; none are 0. */
static inline uint32_t machine_signed_field(int32_t x, uint32_t at, uint32_t n)
{
	if (!n || at + n >= 32)
		return n ? (uint32_t)(x >> at) : 0;
	return (uint32_t)((int32_t)((uint32_t)x << (32 - at - n)) >> (32 - n));
}

/* Of machine.def: bit 0 becomes bit 31. */
static inline uint32_t machine_reverse(uint32_t a)
{
	a = (a & 0x55555555) << 1 | (a >> 1 & 0x55555555);
	a = (a & 0x33333333) << 2 | (a >> 2 & 0x33333333);
	a = (a & 0x0f0f0f0f) << 4 | (a >> 4 & 0x0f0f0f0f);
	return __builtin_bswap32(a);
}

#endif
