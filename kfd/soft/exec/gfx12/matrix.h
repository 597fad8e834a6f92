/*
 * kfd/soft/exec/gfx12/matrix.h - matrix products of gfx12, and its small
 * floats.
 *
 * D = A * B + C, where D and C are 16 x 16 and the inner dimension K is 16
 * to 64. Registers hold the matrices as follows (AMD's matrix instruction
 * calculator); "group" is the lane divided by 16, "low" the lane modulo 16:
 *
 *   A   lane holds elements of row `low`, B of column `low`.  One bit of k says
 *       whether the group is odd, and in a wave64 another whether it is 2 or 3;
 *       which bits these are depends on the type (struct soft_matrix; of WMMA
 *       with K = 16: 4 and 8 in 16 bits, else 8 and 4, but that 4 bits repeat
 *       in groups 2 and 3).  The elements of a lane follow each other in the
 *       order of k, 32 bits of them a register.
 *   C D element (row, column) is in lane column + 16 * (row / 8), in a wave64
 *       + 32 * (row / 4 % 2), in register row % 8, or row % 4; two 16-bit ones
 *       share a register.
 *
 * Of four neighbours in a row of a sparse A (SWMMAC) two are there; four bits
 * of an index say which, for each four in the order of A's elements.
 *
 * EXEC and MODE are ignored, and sums are rounded, as in wmma.h.
 */
#ifndef T0_KFD_SOFT_MATRIX_H
#define T0_KFD_SOFT_MATRIX_H

#include "kfd/soft/exec/wmma.h"

enum soft_element {
	SOFT_ELEMENT_F16,
	SOFT_ELEMENT_BF16,
	SOFT_ELEMENT_FP8,
	SOFT_ELEMENT_BF8,
	SOFT_ELEMENT_I8,
	SOFT_ELEMENT_I4,
};

struct soft_matrix {
	uint16_t op;
	uint8_t a, b; /* enum soft_element */
	uint8_t acc;  /* enum wmma_type: F32, F16, BF16, IU8 */
	uint8_t k;
	bool sparse;
	/* The bits of k that are groups; 0: groups 2 and 3 repeat 0 and 1. */
	uint8_t odd, upper;
};

/* An fp8 in bits 7:0 as a half. */
uint32_t soft_half_of_fp8(uint32_t v);

#endif
