/*
 * kfd/soft/step_mem.h - memory instructions as steps (step.h).
 *
 * Private to step_mem.c and step_mem_simd.c.  A step moves the lanes of an
 * instruction at once if all their addresses lie in one mapping (or in LDS) and
 * nothing is wrong with them; whatever is unusual is left to the handler, which
 * has touched nothing yet.
 */
#ifndef T0_KFD_SOFT_STEP_MEM_H
#define T0_KFD_SOFT_STEP_MEM_H

#include "kfd/soft/mem.h"
#include "kfd/soft/step.h"

/* The lanes of one half: byte i of its registers is at host + offset[lane]. */
struct soft_move {
	uint8_t *host;
	const uint32_t *offset; /* [SOFT_LANES] */
	uint32_t exec;
	uint32_t low, high; /* offsets of lanes that execute */
	uint32_t *data;	    /* [dwords][SOFT_LANES] */
	int dwords;
};

typedef void soft_move_fn(const struct soft_move *m);
typedef void soft_bounds_fn(struct soft_move *m);

/* What step_mem_simd.c has for each level of the host. */
struct soft_movers {
	soft_bounds_fn *bounds; /* fill in low and high; exec is not 0 */
	soft_move_fn *load, *store;
};
extern const struct soft_movers soft_movers_v2, soft_movers_v3, soft_movers_v4;

/* Add the step of a memory instruction; false: there is none. */
bool soft_step_memory(struct soft_maker *m, const struct soft_uop *u);

#endif
