/*
 * kfd/soft/exec/fast/microop_row.h - steps for any row of valu.def and vop3.def, and for
 * what comes before and after one.
 *
 * Private to step_valu.c and step_row_simd.c.  Rows that have a step of their
 * own (valu_step.h) need these only for operands that have to be prepared; a
 * prepared operand is a plane of the stretch.
 */
#ifndef T0_KFD_SOFT_STEP_ROW_H
#define T0_KFD_SOFT_STEP_ROW_H

#include "kfd/soft/exec/valu.h"

/* How lanes move by DPP; a plane of the stretch holds one. */
struct soft_step_dpp {
	uint32_t exec;	  /* EXEC while the instruction runs with less */
	uint32_t valid;	  /* lanes whose source is in their row */
	uint32_t enabled; /* by row_mask and bank_mask */
	bool fetch;	  /* sources that do not execute count */
	bool bound;	  /* lanes without a source are written: 0 */
};

struct soft_row_steps {
	/* SGPR imm to the plane at a; and SGPRs imm, imm + 1 to two planes. */
	soft_step_fn *spread, *spread2;
	/*
	 * The plane of b to the plane at a, with the modifiers of operand
	 * imm & 15; imm & 16: denormals become zeros.
	 */
	soft_step_fn *mods;
	/* The signs of 32-bit floats only: imm is 1 to negate, 2: magnitude. */
	soft_step_fn *signs;
	/*
	 * The plane of b to the plane at a, lane i from lane c[i]; d is the
	 * struct soft_step_dpp.  EXEC has the lanes to be written until
	 * dpp_end.
	 */
	soft_step_fn *dpp, *dpp_end;
	/*
	 * Any row, by its lane function; imm: dwords of the result.  Of row16,
	 * the result goes to the half imm of the register.  The others also do
	 * what the instruction wants done with a float: omod, clamp, flush.
	 */
	soft_step_fn *row, *row16, *row_finish, *row16_finish;
};
extern const struct soft_row_steps soft_row_steps_v2, soft_row_steps_v3,
	soft_row_steps_v4;

#endif
