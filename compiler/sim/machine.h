/*
 * machine - partial evaluation of a wave: scalar instructions, addresses, masks
 * and compares are evaluated, everything else makes its results unknown.
 *
 * So a kernel's path and addresses come from its code object, its arguments
 * and the place of the workgroup alone, at a fraction of what executing it
 * would take: a matrix product costs nothing.  Known at the beginning are what
 * the packet processor sets (work-item and workgroup numbers, the pointers that
 * the descriptor asks for) and the memory of struct sim_memory: arguments.
 * A branch on a value that is not known is an error, ERR_UNSUPPORTED, that says
 * where; such kernels need a trace or a live source.  An address that is not
 * known leaves the access without addresses (struct sim_step), and is counted.
 */
#ifndef T0_SIM_MACHINE_H
#define T0_SIM_MACHINE_H

#include "compiler/sim/sim.h"

struct machine_op;

/* Code, shared by its waves. */
struct machine_code {
	const uint8_t *code;
	uint64_t va;
	size_t size_bytes;
	int wave_size;
	int vgprs; /* of a wave: registers from there on are never known */
	enum isa_gen gen;
	const struct sim_memory *memory; /* [n_memory] */
	int n_memory;
	/* Forward branches on what is not known are not taken, not errors. */
	bool guess;
	struct machine_op *op; /* [dwords], decoded when they are reached */
	struct trace_access access[TRACE_ACCESSES_MAX]; /* of the last step */
	uint64_t unknown; /* accesses without addresses */
};

struct machine {
	uint64_t pc;
	bool ended, scc, know_scc;
	uint32_t s[128];
	uint64_t know_s[2], know_v[4]; /* a bit per register */
	uint32_t *v; /* [vgprs][wave_size] */
	/*
	 * Lanes of a register that are known where it as a whole is not:
	 * scalars are spilled there.  some_v has its bit where there may be
	 * any.
	 */
	uint64_t some_v[4], *know_lane; /* [vgprs] */
};

/* --------------------------------------------------------- machine.c ---- */

/* `code` must have its first seven fields; it is not copied. */
void machine_code_init(struct machine_code *c);
void machine_code_fini(struct machine_code *c);

/* Nothing is known but EXEC, all ones, and NULL; v is allocated. */
void machine_init(const struct machine_code *c, struct machine *m);
void machine_fini(struct machine *m);
void machine_set_sgpr(struct machine *m, int reg, uint32_t value);
void machine_set_vgpr(const struct machine_code *c, struct machine *m, int reg,
		      const uint32_t *lanes);

/*
 * Pass the instruction at m->pc; *out, unless it is NULL, says what it
 * touched, and lives until the next call for this code.
 */
bool machine_step(struct machine_code *c, struct machine *m,
		  struct sim_step *out, struct err *e);
/*
 * Go on to where the branch at `branch` is next and has been taken `most`
 * times, or will not be taken; how often it was, in *taken.
 */
bool machine_jump(struct machine_code *c, struct machine *m, uint64_t branch,
		  uint64_t most, uint64_t *taken, struct err *e);
/* A copy on its own, and over an older one. */
void machine_copy(const struct machine_code *c, struct machine *to,
		  const struct machine *from);

/* -------------------------------------------------- machine_address.c ---- */

/* The addresses of a memory instruction into c->access. */
void machine_access(struct machine_code *c, const struct machine *m,
		    const struct isa_inst *in, struct sim_step *out);
/* Bytes that scalar load `in` reads from `*va`; false: not known where. */
bool machine_scalar_address(const struct machine *m, const struct isa_inst *in,
			    uint64_t *va);

static inline bool machine_knows_s(const struct machine *m, int reg, int n)
{
	for (int r = reg; r < reg + n; r++)
		if (r >= 128 || !(m->know_s[r / 64] >> r % 64 & 1))
			return false;
	return true;
}
static inline bool machine_knows_v(const struct machine *m, int reg, int n)
{
	for (int r = reg; r < reg + n; r++)
		if (r >= 256 || !(m->know_v[r / 64] >> r % 64 & 1))
			return false;
	return true;
}
static inline uint64_t machine_exec(const struct machine *m)
{
	return m->s[ISA_R_EXEC_LO] | (uint64_t)m->s[ISA_R_EXEC_HI] << 32;
}

#endif
