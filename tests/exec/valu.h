/*
 * tests/exec/valu.h - one wave and one vector instruction at a time, without
 * a device: instructions are encoded, decoded and run by their handler.
 */
#ifndef T0_TESTS_EXEC_VALU_H
#define T0_TESTS_EXEC_VALU_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/exec/valu.h"
#include "tests/tap.h"

#define N_VGPRS 64
#define LANE	5 /* the lane that scalar checks look at */

/* Source fields. */
#define VREG(n) (256 + (n))
#define INT(n)	((n) >= 0 ? 128 + (n) : 192 - (n))

/* MODE after reset of a compute wave: all denormals, IEEE, DX10_CLAMP. */
#define MODE_USUAL (0xf0 | SOFT_MODE_IEEE | SOFT_MODE_DX10_CLAMP)

struct machine {
	struct soft_wave w;
	struct soft_group group;
	struct soft_env env;
	uint32_t v[2][N_VGPRS][SOFT_LANES];
};

/* There is no memory. */
static inline bool no_memory(void *ctx, uint64_t va, struct soft_range *out)
{
	(void)ctx;
	(void)va;
	(void)out;
	return false;
}

static inline void machine_init(struct machine *m, int wave_size)
{
	memset(m, 0, sizeof(*m));
	m->env.gen = ISA_GFX11;
	m->env.find = no_memory;
	m->group.env = &m->env;
	m->w.group = &m->group;
	m->w.wave_size = wave_size;
	m->w.n_vgprs = N_VGPRS;
	m->w.v[0] = m->v[0];
	m->w.v[1] = wave_size == 64 ? m->v[1] : NULL;
	m->w.mode = MODE_USUAL;
	m->w.s[ISA_R_EXEC_LO] = ~0u;
	m->w.s[ISA_R_EXEC_HI] = wave_size == 64 ? ~0u : 0;
}

static inline void fill(struct machine *m, int reg, uint32_t value)
{
	for (int half = 0; half < 2; half++)
		for (int i = 0; i < SOFT_LANES; i++)
			m->v[half][reg][i] = value;
}

static inline void fill64(struct machine *m, int reg, uint64_t value)
{
	fill(m, reg, (uint32_t)value);
	fill(m, reg + 1, value >> 32);
}

static inline uint64_t get64(const struct machine *m, int reg, int lane)
{
	return (uint64_t)m->v[0][reg + 1][lane] << 32 | m->v[0][reg][lane];
}

/* Run `in`, of which op, f[], form, extra and literal are filled in. */
static inline void run_as(struct machine *m, bool vop3,
			  const struct isa_inst *given)
{
	const struct isa_op_info *op = isa_op_info(given->op);
	struct isa_target t = { ISA_GFX11, m->w.wave_size, false };
	uint8_t code[ISA_MAX_SIZE_BYTES] = { 0 };
	struct isa_inst in = *given;
	struct soft_uop u = { 0 };
	const char *why;
	int size;

	in.fmt = op->fmt;
	if (op->fmt != ISA_FMT_VOPD && !in.f[ISA_F_OPY] && !in.op_y)
		in.f[ISA_F_OP] = isa_opcode(t.gen, in.op, vop3);
	if (vop3)
		in.fmt = ISA_FMT_VOP3;
	for (int i = 0; vop3 && i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_CO)
			in.fmt = ISA_FMT_VOP3SD;
	if (in.op_y)
		in.fmt = ISA_FMT_VOPD;
	size = isa_encode(&in, code);
	why = size ? isa_decode(&t, code, size, &u.in) : "does not encode";
	if (!why)
		u.fn = soft_valu_handler(&u.in, &u.op);
	if (!why && u.fn) {
		u.fn(&m->w, &u);
		return;
	}
	printf("Bail out! %s: %s\n", op->name, why ? why : "no handler");
	exit(2);
}

#define RUN(m, opcode, ...) \
	run_as(m, false, \
	       &(struct isa_inst){ .op = (opcode), .f = { __VA_ARGS__ } })
#define RUN64(m, opcode, ...) \
	run_as(m, true, \
	       &(struct isa_inst){ .op = (opcode), .f = { __VA_ARGS__ } })
#define S0(x)  [ISA_F_SRC0] = (x)
#define S1(x)  [ISA_F_SRC1] = (x)
#define S2(x)  [ISA_F_SRC2] = (x)
#define VS1(n) [ISA_F_VSRC1] = (n)
#define D(n)   [ISA_F_VDST] = (n)

#endif
