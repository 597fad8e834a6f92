/*
 * lanes - guesses addresses from code: which bytes each lane of a wave touches
 * when nobody recorded it.
 *
 * It evaluates the integer instructions that compilers make addresses of, from
 * v0 = number of the lane.  What it does not know (arguments, workgroup ids,
 * loaded data) is 0, and pointers that are loaded are far from each other, so
 * the pattern of the lanes is right where the code follows from it, and the
 * place in memory is not.
 */
#ifndef T0_SIM_LANES_H
#define T0_SIM_LANES_H

#include "compiler/sim/sim.h"

#define LANES 32

struct lanes {
	uint32_t v[256][LANES];
	uint32_t s[128];
	bool carry[LANES]; /* what v_add_co left, whatever the register */
	uint32_t region;   /* pointers handed out */
	uint32_t id;	   /* tells the pointers of waves apart */
	struct trace_access access[LANES];
};

/* ----------------------------------------------------------- lanes.c ---- */

/* `id` tells waves apart whose pointers must differ; equal ones share data. */
void lanes_init(struct lanes *l, uint32_t id);
/* The accesses of a memory instruction, before lanes_exec() of it. */
void lanes_access(struct lanes *l, const struct isa_inst *in,
		  struct sim_step *out);
/* Evaluate an instruction; one it does not know leaves its result as it was. */
void lanes_exec(struct lanes *l, const struct isa_inst *in);

#endif
